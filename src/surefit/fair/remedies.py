"""What each remedy would cost: error and gaps on rows that no fit has used."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..certificate import CertificateWarning
from ..linear_model import LogisticRegression
from ._groups import binary
from ._sensitive import one_column
from .audit import audit
from .decorrelate import Decorrelate
from .logistic import FairLogistic
from .thresholds import GroupThresholds

__all__ = ["compare_remedies"]


def compare_remedies(
    X: Any,
    y: Any,
    sensitive: Any,
    X_test: Any,
    y_test: Any,
    sensitive_test: Any,
    *,
    model: Any = None,
    positive: Any = None,
    fairness: float = 10.0,
    C: float = 1.0,
    delta: float = 0.05,
    min_rows: int = 30,
    random_state: int = 0,
) -> list[dict[str, Any]]:
    """Fit every remedy on the training rows, and measure it on the others.

    Parameters
    ----------
    X, y, sensitive : arrays of shape (n, p), (n,), (n,)
        Training rows; X does not contain the sensitive attribute and is scaled.
    X_test, y_test, sensitive_test : arrays
        Rows that no fit has used. Those of groups that the training rows lack are left out.
    model : classifier, optional
        The fitted model that thresholds are put on, and the row "none"; a logistic regression by default.
    positive : label, optional
        The label that counts as 1; the last in sort order by default. With more than two labels it is needed,
        and stands against the rest.
    fairness, C : float
        Parameters of :class:`FairLogistic`.
    delta : float, default=0.05
        Probability that any limit in any row is wrong.
    min_rows : int, default=30
        As in :func:`audit`.
    random_state : int, default=0

    Returns
    -------
    list of dict
        Plain JSON data. ``remedy``, ``what`` (before, in or after training, or none), ``error``,
        ``error_low``, ``error_high``, and for each of ``independence``, ``separation``, ``sufficiency`` a
        dict ``{"observed", "low", "high"}``; ``certified`` (whether the claims of its fit hold) and
        ``failed`` (why it could not be fitted, or "").

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 4000)
    >>> X = rng.normal(size=(4000, 3)) + a[:, None]
    >>> y = X.sum(axis=1) + rng.normal(size=4000) > 1.5
    >>> rows = compare_remedies(X[:2000], y[:2000], a[:2000], X[2000:], y[2000:], a[2000:])
    >>> gaps = {row["remedy"]: row["independence"]["observed"] for row in rows}
    >>> gaps["none"] > 0.3 > 0.1 > gaps["group thresholds, equal selection rate"]
    True
    """
    X, X_test = np.asarray(X, dtype=np.float64), np.asarray(X_test, dtype=np.float64)
    y, y_test = np.asarray(y), np.asarray(y_test)
    names, codes = one_column(sensitive)
    test_names, test_codes = one_column(sensitive_test)
    known = np.isin(test_codes, [i for i, name in enumerate(test_names) if name in names])
    labels = np.array(test_names)[test_codes][known]
    X_test, y_test = X_test[known], y_test[known]
    if not len(y_test):
        raise ValueError(
            "sensitive_test has no group of the training rows: test on rows of the same groups."
        )
    groups = np.array(names)[codes]  # texts, so that an error names the group
    base = LogisticRegression(C=C).fit(X, y) if model is None else model
    y, label = binary(y, positive, "y")
    y_test = (y_test == label).astype(np.int64)

    def thresholds(constraint: str) -> Any:
        rule = GroupThresholds(
            "passthrough", constraint=constraint, draws="independent", random_state=random_state
        )  # draws that do not depend on the last bits of a score
        score = _scores(base, label, X), _scores(base, label, X_test)
        rule.fit(score[0], y, sensitive=groups)
        return rule, lambda m: m.predict(score[1], sensitive=labels)

    def before() -> Any:
        change = Decorrelate().fit(X, sensitive=groups)
        changed = change.transform(X, sensitive=groups)
        fitted = LogisticRegression(C=C).fit(changed, y)
        return fitted, lambda m: m.predict(change.transform(X_test, sensitive=labels))

    def inside(criterion: str) -> Any:
        fitted = FairLogistic(fairness, criterion=criterion, C=C).fit(X, y, sensitive=groups)
        return fitted, lambda m: m.predict(X_test)

    plan: list[tuple[str, str, Any]] = [
        ("none", "none", lambda: (base, lambda m: np.asarray(m.predict(X_test)) == label)),
        ("decorrelated features", "before", before),
        ("penalty on independence", "in", lambda: inside("independence")),
        ("penalty on separation", "in", lambda: inside("separation")),
        (
            "group thresholds, equal selection rate",
            "after",
            lambda: thresholds("demographic_parity"),
        ),
        ("group thresholds, equal odds", "after", lambda: thresholds("equalized_odds")),
    ]
    rows = []
    for remedy, what, make in plan:
        row: dict[str, Any] = {"remedy": remedy, "what": what, "failed": ""}
        try:
            with warnings.catch_warnings():  # a claim that fails is said in the row
                warnings.simplefilter("ignore", CertificateWarning)
                fitted, decide = make()
        except ValueError as error:  # such as a group without positives
            rows.append({**row, **_nothing(), "failed": str(error)})
            continue
        decision = np.asarray(decide(fitted)).astype(np.int64)
        share = delta / len(plan)
        found = audit(
            y_test, decision, sensitive=labels, positive=1, delta=share, min_rows=min_rows
        )
        wrong = found.overall["rates"]["error"]
        row |= {"error": wrong["value"], "error_low": wrong["low"], "error_high": wrong["high"]}
        for criterion in ("independence", "separation", "sufficiency"):
            entry = found.gaps["sensitive"][criterion]
            row[criterion] = {part: entry[part] for part in ("observed", "low", "high")}
        certificate = getattr(fitted, "certificate_", None)
        row["certified"] = bool(certificate is not None and certificate.ok)
        rows.append(row)
    return rows


def _scores(model: Any, label: Any, X: Any) -> Any:
    """The score of the positive label, as one column."""
    place = np.asarray(model.classes_).tolist().index(label)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))[:, [place]]
    score = np.asarray(model.decision_function(X))
    return score[:, [place]] if score.ndim == 2 else score[:, None] * (1.0 if place == 1 else -1.0)


def _nothing() -> dict[str, Any]:
    gap = {"observed": None, "low": 0.0, "high": 1.0}
    empty = {name: dict(gap) for name in ("independence", "separation", "sufficiency")}
    return {"error": None, "error_low": 0.0, "error_high": 1.0, "certified": False, **empty}
