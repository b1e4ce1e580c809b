"""Oracles of searches and hold-outs: scikit-learn's own fits and splits, and the bounds written out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.stats
from sklearn import linear_model as theirs
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv, train_test_split

from surefit import Claim
from tests.tamper import linear_oracle
from tests.tamper.linear_oracle import stated

__all__ = ["CHECKS"]

Check = Callable[[Any, Any, Claim], str]


def _sklearn(model: Any, params: dict[str, Any]) -> Any:
    """scikit-learn's estimator of the same name, with the parameters of a candidate."""
    made = getattr(theirs, type(model.estimator).__name__)()
    given = model.estimator.get_params() | params
    return made.set_params(**{k: v for k, v in given.items() if k in made.get_params()})


def _splits(fits: Any, model: Any) -> list[tuple[Any, Any]]:
    """The folds, or the one split, that scikit-learn gives."""
    X, y = fits.rows.X, np.asarray(fits.rows.y)
    if hasattr(model, "holdout_"):
        seed, size = model.random_state, model.test_size
        train, test = train_test_split(np.arange(len(X)), test_size=size, random_state=seed)
        return [(np.sort(train), np.sort(test))]
    return list(check_cv(model.cv, y, classifier=hasattr(model, "classes_")).split(X, y))


def _again(fits: Any, model: Any) -> Any:
    """Scores of every candidate on every test set."""
    X, y = fits.rows.X, np.asarray(fits.rows.y)
    results = model.results_ if hasattr(model, "results_") else model.cv_results_
    found = []
    for params in results["params"]:
        for train, test in _splits(fits, model):
            fitted = _sklearn(model, params).fit(X[train], y[train])
            found.append(check_scoring(fitted, model.scoring)(fitted, X[test], y[test]))
    return np.reshape(found, (len(results["params"]), -1))


def _recorded(model: Any) -> Any:
    if hasattr(model, "results_"):
        return np.asarray(model.results_["test_score"])[:, None]
    keys = [f"split{k}_test_score" for k in range(model.n_splits_)]
    return np.column_stack([model.cv_results_[key] for key in keys])


def scores(fits: Any, model: Any, claim: Claim) -> str:
    """The recorded scores are those of scikit-learn's fits, to what is stated."""
    apart = float(np.max(np.abs(_again(fits, model) - _recorded(model))))
    said = stated(claim, "agree to")
    return "" if said is not None and apart <= 1.06 * said + 1e-6 else f"they are {apart:.3g} apart"


def split(fits: Any, model: Any, claim: Claim) -> str:
    """The recorded folds, or held-out rows, are those of scikit-learn."""
    splits = _splits(fits, model)
    if hasattr(model, "holdout_"):
        return "" if np.array_equal(model.holdout_, splits[0][1]) else "other rows are held out"
    number = np.empty(len(fits.rows.X), dtype=int)
    for k, (_, test) in enumerate(splits):
        number[test] = k
    return "" if np.array_equal(model.folds_, number) else "the folds are others"


def selection(fits: Any, model: Any, claim: Claim) -> str:
    """The chosen candidate has the best mean of the recorded scores."""
    means = _recorded(model).mean(axis=1)
    best = means[model.best_index_]
    return "" if best >= means.max() - 1e-9 and abs(best - model.best_score_) < 1e-9 else "not best"


def model_again(fits: Any, model: Any, claim: Claim) -> str:
    """The kept model predicts as scikit-learn's fit outside the hold-out."""
    X, y = fits.rows.X, np.asarray(fits.rows.y)
    train, _ = _splits(fits, model)[0]
    fitted = _sklearn(model, model.best_params_).fit(X[train], y[train])
    mine, other = model.predict(X), fitted.predict(X)
    if mine.dtype.kind == "f":
        apart = float(np.abs(mine - other).max() / (1.0 + np.abs(other).max()))
        said = stated(claim, "does, to")
        near = said is not None and apart <= 1.06 * said + 1e-7
    else:
        apart = float((mine != other).sum())
        near = apart == stated(claim, "but for")
    return "" if near else f"predictions are {apart:.3g} apart"


def generalisation(fits: Any, model: Any, claim: Claim) -> str:
    """The stated interval holds that of the stated level: Hoeffding's, or Clopper and Pearson's."""
    errors = 1.0 - _again(fits, model)  # scores with a bound are accuracies here
    sizes = np.array([len(test) for _, test in _splits(fits, model)])
    seen, many = errors[model.best_index_], errors.size
    level = stated(claim, "with probability")
    assert level is not None
    delta = model.promise_["delta"]
    if level > 100.0 * (1.0 - delta) + 1e-9:
        return f"the level is {1.0 - delta:.6g}"
    if model.promise_["bound"] == "clopper-pearson":
        wrong = np.rint(seen * sizes)
        beta, tail = scipy.stats.beta, delta / (2.0 * many)
        low = float(np.where(wrong > 0, beta.ppf(tail, wrong, sizes - wrong + 1), 0.0).mean())
        high = float(np.where(wrong < sizes, beta.isf(tail, wrong + 1, sizes - wrong), 1.0).mean())
    else:
        radius = float(np.sqrt(math.log(2.0 * many / delta) / (2.0 * sizes)).mean())
        low, high = float(seen.mean()) - radius, float(seen.mean()) + radius
    ends = _ends(claim.statement)
    inside = ends is not None and ends[0] <= low + 1e-9 and ends[1] >= high - 1e-9
    return "" if inside else f"the interval is {low:.4g} to {high:.4g}"


def _ends(words: str) -> tuple[float, float] | None:
    """The interval that a statement prints."""
    if found := re.search(r"is within ([\d.]+) of ([\d.]+),", words):
        radius, centre = map(float, found.groups())
        return centre - radius, centre + radius
    found = re.search(r"is between ([\d.]+) and ([\d.]+) ", words)
    return None if found is None else (float(found[1]), float(found[2]))


def of_the_model(name: str) -> Check:
    """A claim about best_estimator_, on the rows that it was fitted on."""

    def check(fits: Any, model: Any, claim: Claim) -> str:
        rows, part = fits.rows, model.best_estimator_
        given = model.estimator.get_params() | model.best_params_
        if any(repr(part.get_params()[key]) != repr(value) for key, value in given.items()):
            return "best_estimator_ has other parameters than were asked for"
        if hasattr(model, "holdout_"):
            seen = np.setdiff1d(np.arange(len(rows.X)), model.holdout_)
            rows = replace(rows, X=rows.X[seen], y=np.asarray(rows.y)[seen])
        inner = replace(fits, rows=rows, model=fits.model.best_estimator_)
        return linear_oracle.CHECKS[type(part).__name__][name](
            inner, part, replace(claim, name=name)
        )

    return check


_SHARED: dict[str, Check] = {
    "scores": scores,
    "selection": selection,
    "generalisation": generalisation,
    **{name: of_the_model(name) for name in ("duality gap", "normal equations")},
}
CHECKS: dict[str, dict[str, Check]] = {
    "GridSearchCV": {**_SHARED, "folds": split},
    "RandomizedSearchCV": {**_SHARED, "folds": split},
    "HoldOut": {**_SHARED, "split": split, "model": model_again},
}
