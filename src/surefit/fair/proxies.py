r"""Proxies: how well the sensitive attribute is predicted from the other columns (FAIR-1).

Leaving A out of the features does not remove it: columns that go with it stand in for it. Two answers.

*All columns together*: a certified logistic regression of one group against the rest, on half of the rows (or
on all, where others are given to test on; on 10,000 at most); its error and balanced accuracy on the rest
with Clopper-Pearson limits, against the share of the larger class and 1/2.

*Each column*: the squared correlation with the indicator of each group (for a set of indicator columns, the
share of the variance of A that they explain, which is Cramer's V squared for one group against the rest).
Its p value needs no draw: when A is independent of the column, the group is a random subset of its values,
and Bernstein's inequality holds for draws without replacement, with the variance :math:`\sigma^2` and range
R of all values known (Hoeffding 1963, theorem 4):

.. math:: P(|\bar x_a - \bar x| \ge t) \le 2\exp\left(-\frac{n_a t^2}{2\sigma^2 + 2Rt/3}\right),

times the number of columns and groups tried.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linear_model import LogisticRegression
from ..model_selection._claims import percent
from ..model_selection.bounds import clopper_pearson
from ._audit_claims import ASSUMED
from ._groups import shown
from ._sensitive import one_column

__all__ = ["proxies", "proxies_words"]

Array = NDArray[np.float64]
FITTED = 10_000  # rows that the classifier is fitted on, at most


def proxies(
    X: Any,
    sensitive: Any,
    *,
    feature_names: Sequence[str] | None = None,
    groups_of_features: Mapping[str, Sequence[int]] | None = None,
    delta: float = 0.05,
    random_state: int = 0,
    test: tuple[Any, Any] | None = None,
) -> dict[str, Any]:
    """Find what predicts the sensitive attribute among features that do not contain it.

    Parameters
    ----------
    X : array-like of shape (n, p)
        The features, without the sensitive attribute.
    sensitive : array-like of shape (n,)
        The sensitive attribute.
    feature_names : sequence of str, optional
    groups_of_features : dict of name -> places, optional
        Columns that belong together, such as the indicators of one category; they are ranked as one.
    delta : float, default=0.05
        Probability that a limit of ``error`` or ``balanced_accuracy`` is wrong.
    random_state : int, default=0
        Splits the rows.
    test : (X, sensitive), optional
        Rows to test the classifier on, which nothing was learnt from, the coding of X included. It is then
        fitted on ``X``. By default it is fitted on half of ``X`` and tested on the other half. At most 10,000
        rows, drawn at random, are fitted on.

    Returns
    -------
    dict
        Plain JSON data: ``group`` (which one is predicted, against the rest), ``n_train``, ``n_test``,
        ``error``, ``error_low``, ``error_high``, ``chance`` (the error of the best constant),
        ``balanced_accuracy``, ``balanced_low``, ``balanced_high``, ``above_chance``, ``columns`` (``name``,
        ``strength``, ``group``, ``p_value``, strongest first) and ``statement``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 1000)
    >>> X = np.column_stack([rng.normal(size=1000), sex + rng.normal(size=1000)])
    >>> found = proxies(X, sex, feature_names=["noise", "proxy"])
    >>> found["columns"][0]["name"], found["above_chance"]
    ('proxy', True)
    """
    rows = np.asarray(X, dtype=np.float64)
    names, codes = one_column(sensitive)
    if rows.ndim != 2 or len(rows) != len(codes):
        raise ValueError(
            f"X must have one row for each of the {len(codes)} values of sensitive, got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise ValueError("X has missing or infinite values: impute them first.")
    labels = [f"x{j}" for j in range(rows.shape[1])]
    if feature_names is not None:
        labels = [str(name) for name in feature_names]
        if len(labels) != rows.shape[1]:
            raise ValueError(
                f"feature_names has {len(labels)} names for {rows.shape[1]} columns: give one each."
            )
    centred = rows - rows.mean(axis=0)
    columns = _columns(centred, codes, names, labels, groups_of_features or {})
    order = np.random.default_rng(random_state).permutation(len(codes))
    if test is None:
        fit, rest = order[: len(codes) // 2][:FITTED], order[len(codes) // 2 :]
        parts = rows[fit], codes[fit], rows[rest], codes[rest]
    else:
        more, others = one_column(test[1])
        place = {name: code for code, name in enumerate(names)}
        unseen = np.array([place.get(name, -1) for name in more])[others]
        fit = order[:FITTED]
        parts = rows[fit], codes[fit], np.asarray(test[0], dtype=np.float64), unseen
        if parts[2].shape != (len(unseen), rows.shape[1]):
            raise ValueError(
                f"test must have {rows.shape[1]} columns and one row for each of its {len(unseen)} values of "
                f"sensitive, got shape {parts[2].shape}."
            )
    target = 1 if len(names) == 2 else int(np.bincount(codes).argmax())
    found = _together(*parts, target if len(names) > 1 else -1, delta)
    found["group"] = names[min(target, len(names) - 1)]
    return {**found, "statement": proxies_words(found, delta), "columns": columns}


def proxies_words(found: Mapping[str, Any], delta: float) -> str:
    """The sentence about all columns together, for limits that hold with probability 1 - delta."""
    if found["error"] is None:
        return "too few rows of a group, or no columns: nothing can be predicted"
    least = (
        math.floor(found["balanced_low"] * 1e3) / 1e3
    )  # outwards: what is printed is true as well
    most = math.ceil(found["balanced_high"] * 1e3) / 1e3
    return (
        f"from the other columns, {shown(found['group'])} is told from the rest by a logistic regression "
        f"with balanced accuracy {found['balanced_accuracy']:.3f} (between {least:.3f} and {most:.3f} with "
        f"probability {percent(delta)}), where guessing has 0.5; error {found['error']:.3f}, where "
        f"the best constant has {found['chance']:.3f}; {ASSUMED}"
    )


def _together(
    X: Array,
    codes: NDArray[np.int64],
    X_test: Array,
    codes_test: NDArray[np.int64],
    target: int,
    delta: float,
) -> dict[str, Any]:
    """A classifier of the most frequent group, or of the second of two, on rows it was not fitted on."""
    a, truth = (codes == target).astype(np.int64), codes_test == target
    found: dict[str, Any] = {
        "group": "", "n_train": len(a), "n_test": len(truth),
        "error": None, "error_low": None, "error_high": None, "chance": None, "balanced_accuracy": None,
        "balanced_low": None, "balanced_high": None, "above_chance": False,
    }  # fmt: skip
    if len(np.unique(a)) < 2 or len(np.unique(truth)) < 2 or not X.shape[1]:
        return found
    mean, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    model = LogisticRegression().fit((X - mean) / spread, a)
    score = model.decision_function((X_test - mean) / spread)
    wrong = int(((score > 0) != truth).sum())
    share = float(a.mean())
    above = score > np.log(share / (1.0 - share))  # the threshold at which classes count alike
    hits, spared = int(above[truth].sum()), int((~above[~truth]).sum())
    n = (len(truth), int(truth.sum()), int((~truth).sum()))
    low, high = clopper_pearson([wrong, hits, spared], np.array(n), delta, models=3)
    least, most = float(low[1] + low[2]) / 2.0, float(high[1] + high[2]) / 2.0
    return {
        **found, "error": wrong / n[0], "error_low": float(low[0]), "error_high": float(high[0]),
        "chance": float(min(truth.mean(), 1.0 - truth.mean())),
        "balanced_accuracy": (hits / n[1] + spared / n[2]) / 2.0,
        "balanced_low": least, "balanced_high": most, "above_chance": least > 0.5,
    }  # fmt: skip


def _columns(
    centred: Array,
    codes: NDArray[np.int64],
    names: list[str],
    labels: list[str],
    together: Mapping[str, Sequence[int]],
) -> list[dict[str, Any]]:
    """Columns, and sets of columns, by how much they tell of a group."""
    n, p = centred.shape
    if not p:
        return []
    counts = np.bincount(codes, minlength=len(names)).astype(np.float64)
    sums = np.stack(
        [np.bincount(codes, weights=column, minlength=len(names)) for column in centred.T]
    )
    variance = np.einsum("ij,ij->j", centred, centred) / n
    reach = np.abs(centred).max(axis=0)
    spread = counts / n * (1.0 - counts / n)  # of the indicator of each group
    covariance = sums / n
    with np.errstate(divide="ignore", invalid="ignore"):
        strength = np.nan_to_num(covariance**2 / (variance[:, None] * spread))
        t = np.abs(sums / counts)
        exponent = counts * t**2 / (2.0 * variance[:, None] + 2.0 / 3.0 * reach[:, None] * t)
    chance = np.minimum(1.0, 2.0 * p * len(names) * np.exp(-np.nan_to_num(exponent)))
    taken = {place for places in together.values() for place in places}
    found = [
        _entry(labels[j], strength[j], chance[j].min(), names) for j in range(p) if j not in taken
    ]
    for name, places in together.items():
        at = list(places)
        if not at:  # a column that is constant on these rows tells nothing
            continue
        gram = centred[:, at].T @ centred[:, at] / n
        solved = np.linalg.lstsq(gram, covariance[at], rcond=1e-10)[0]
        explained = np.nan_to_num(
            (covariance[at] * solved).sum(axis=0) / np.where(spread > 0, spread, 1)
        )
        found.append(_entry(str(name), explained, chance[at].min(), names))
    return sorted(found, key=lambda entry: -entry["strength"])


def _entry(label: str, strength: Array, p_value: float, names: list[str]) -> dict[str, Any]:
    best = int(strength.argmax())
    return {
        "name": label,
        "strength": float(min(max(strength[best], 0.0), 1.0)),
        "group": names[best],
        "p_value": float(p_value),
    }
