"""The tests compare with loops on the processor: the trainer must not choose a GPU by itself here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def on_the_processor(request: pytest.FixtureRequest) -> Iterator[None]:
    if "gpu" in request.node.name:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        patch.setenv("CUDA_VISIBLE_DEVICES", "")  # for processes that a test starts
        yield
