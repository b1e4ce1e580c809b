"""Shared by all tests: the specification's item list behind ``@pytest.mark.spec``."""

from __future__ import annotations

import matplotlib
import pytest

from tests.spec_coverage import marked_items, read_items

matplotlib.use("Agg")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A marker that names no item of the specification is a typing error."""
    known = {item.name for item in read_items()}
    for item in items:
        unknown = [name for name in marked_items(item) if name not in known]
        if unknown:
            raise pytest.UsageError(f"{item.nodeid}: unknown specification item {unknown}")
