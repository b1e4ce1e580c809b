"""The tests compare with loops on the processor: the trainer must not choose a GPU by itself here."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def on_the_processor(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "cuda" not in request.node.name and "gpu" not in request.node.name:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
