"""Forged counts of words: verify raised an OverflowError once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import surefit
from surefit.text import Cooccurrence, SkipGram

TEXTS = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 4
MODELS = [Cooccurrence(), SkipGram(max_iter=1, min_count=1, n_components=2, random_state=0)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("value", [np.inf, 17.0, -1, True], ids=str)
def test_a_number_of_words_is_a_whole_number(model: Any, value: Any) -> None:
    model.fit(TEXTS)
    assert surefit.verify(model, TEXTS).ok
    model.n_words_ = value
    assert "n_words_" in surefit.verify(model, TEXTS)["attributes"].statement
