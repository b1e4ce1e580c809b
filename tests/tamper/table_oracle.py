"""The oracle of a table model's log: scikit-learn's fits on the folds of the search."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from surefit import Claim
from surefit.table.prepare import folds_of, n_folds_of, rows_of
from surefit.table.units import Asked
from tests.tamper.linear_oracle import stated

__all__ = ["CHECKS"]


def log_scores(fits: Any, model: Any, claim: Claim) -> str:
    """The recorded errors differ from those of scikit-learn's fits by what is stated."""
    classes = [str(label) for label in model.classes_]
    split = model.holdout, model.seed, Asked.of(model)
    rows = rows_of(fits.rows.X, model.schema, classes, *split)
    folds = folds_of(rows, model.schema, rows.y, n_folds_of(len(rows.train)), model.seed)
    apart = 0.0
    for entry in model.candidates_:
        errors = []
        for k in range(folds.count):
            fold, asked = folds(k), {"tol": 1e-10, "max_iter": 10_000, **entry["params"]}
            fitted = LogisticRegression(**asked).fit(fold.X, fold.y)
            errors.append((fitted.predict(fold.X_valid) != fold.y_valid).mean())
        apart = max(apart, abs(float(np.mean(errors)) - entry["score"]))
    said = stated(claim, "at most")
    return "" if said is not None and apart <= 1.06 * said + 1e-9 else f"they are {apart:.3g} apart"


CHECKS = {"TableModel": {"scores": log_scores}}
