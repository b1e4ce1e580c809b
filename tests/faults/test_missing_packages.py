"""What is optional and not installed: the error says what to install, or what to do without it."""

from __future__ import annotations

import sys

import pytest

from surefit.design import RowBlocks


def test_parquet_without_polars_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match=r"install polars.*numpy\.save"):
        RowBlocks(tmp_path / "a.parquet")
