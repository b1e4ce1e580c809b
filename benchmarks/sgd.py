"""Epochs of stochastic gradient descent, sparse and dense."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from .data import correlated, labels, text_like
from .perceptron import epochs, epochs_page

TITLE = "Stochastic gradient descent, epochs"
TEXT = """
`SGDClassifier(max_iter={epochs}, tol=None, random_state=0)`, hinge and logistic loss, on rows made like
rcv1's and on dense rows. As for the perceptron there is no gap to reach in a fixed number of epochs: the
columns say how far the coefficients of the two are apart and how many rows each has right. Ours includes
the certificate.
"""
WHY = """five epochs are few. An epoch takes less time than scikit-learn's, but the certificate costs as much
as all of them, for a hinge loss more: most of that is the search for the best intercept among its kinks."""
EPOCHS = 5


def measure(options: Any) -> dict[str, Any]:
    rng = np.random.default_rng(8)
    fixed: dict[str, Any] = {"max_iter": EPOCHS, "tol": None, "random_state": 0}
    cases = [(loss, fixed | {"loss": loss}) for loss in ("hinge", "log_loss")]
    n, p = (500, 2_000) if options.quick else (100_000, 47_236)
    X, y = text_like(n, p, 74, rng)
    title = f"SGD {n:,} x {p:,} sparse".replace(",", " ")
    sparse = epochs("SGDClassifier", title, csr_matrix(X), y, cases, 1.0, options.pairs)
    if "skipped" in sparse:
        return sparse
    n, p = (2_000, 20) if options.quick else (300_000, 50)
    D = correlated(n, p, rng)
    y = labels(D @ (rng.standard_normal(p) / np.sqrt(p)), rng)
    title = f"SGD {n:,} x {p} dense".replace(",", " ")
    dense = epochs("SGDClassifier", title, D, y, cases, 1.0, options.pairs)
    return {key: sparse[key] + dense[key] for key in ("epochs", "goals")}


def page(results: dict[str, Any]) -> str:
    return epochs_page(TITLE, TEXT.format(epochs=EPOCHS), results, WHY)
