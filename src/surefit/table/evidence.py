"""What the report draws: calibration, ROC and precision-recall curves, confusion, residuals.

Everything is measured on the hold-out and returned as plain JSON types; points of a curve are thinned to what
an eye can see. Rates come with exact (Clopper-Pearson) intervals that hold together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from ..data import shown
from ..model_selection._claims import ASSUMED, percent
from ..model_selection.bounds import clopper_pearson

__all__ = [
    "calibration_bins",
    "calibration_claim",
    "coverage_claim",
    "curves",
    "residuals",
    "rounded_up",
    "rows_needed",
]

Array = NDArray[np.float64]
POINTS = 120  # of a curve
WIDEST = 0.5  # share of the range up to which an interval says something


def calibration_bins(
    score: Array, truth: Array, delta: float, bins: int = 10
) -> list[dict[str, Any]]:
    """Rows by their predicted probability: mean prediction, rate found, interval of the true rate.

    The bins have fixed ends (tenths), chosen before the scores are seen, and the intervals hold together with
    probability at least 1 - delta: given the scores, the rows of a bin are independent, and their number of
    positives has a mean that is the bin's mean probability. How many bins have rows, and how many they have,
    is known from the scores alone, so that it may decide what is stated. The limits for unequal probabilities
    contain those for equal ones: they hold for the rate of all rows to come of the tenth too.
    """
    place = np.minimum((score * bins).astype(np.intp), bins - 1)
    n = np.bincount(place, minlength=bins)
    hits = np.bincount(place, weights=truth, minlength=bins)
    means = np.bincount(place, weights=score, minlength=bins)
    used = np.flatnonzero(n)
    # rows of a bin are independent, not alike: the limits are those for unequal probabilities
    low, high = clopper_pearson(hits[used], n[used], delta, len(used), identical=False)
    return [
        {
            "low": k / bins,
            "high": (k + 1) / bins,
            "n": int(n[k]),
            "mean": float(means[k] / n[k]),
            "rate": float(hits[k] / n[k]),
            "rate_low": float(low[i]),
            "rate_high": float(high[i]),
        }
        for i, k in enumerate(used)
    ]


def calibration_claim(bins: list[dict[str, Any]], delta: float, positive: str) -> Claim:
    """In every bin the true rate is near the mean prediction, by the number stated."""
    name = "calibration"
    large = [b for b in bins if b["n"] >= 50]
    if not large:
        why = "no bin of predicted probabilities has 50 rows: too few to say anything"
        return Claim.undecided(name, why, Kind.STATISTICAL, "FAIR-4")
    far = max(large, key=lambda b: max(b["rate_high"] - b["mean"], b["mean"] - b["rate_low"]))
    most = max(far["rate_high"] - far["mean"], far["mean"] - far["rate_low"])
    refuted = [b for b in bins if not b["rate_low"] <= b["mean"] <= b["rate_high"]]
    words = "the data do not refute that the probabilities are right on average in each tenth"
    if refuted:
        worst = max(refuted, key=lambda b: abs(b["rate"] - b["mean"]))
        words = (
            f"the data refute that they are exactly right: where {worst['mean']:.2f} is predicted, "
            f"{worst['rate']:.2f} is found, on {worst['n']} rows"
        )
    statement = (
        f"with probability {percent(delta)}, the true rate of '{shown(positive)}' is within "
        f"{math.ceil(most * 1e3) / 1e3:.3f} of the mean predicted probability of the hold-out rows, in each "
        f"of the {len(large)} tenths of the predicted probability that have 50 of them or more; {words}; "
        f"{ASSUMED}"
    )
    if most <= WIDEST / 2:
        return Claim.check(name, statement, Kind.STATISTICAL, most, WIDEST / 2, "FAIR-4")
    needed = rows_needed(far["n"], most, WIDEST / 2)
    why = (
        f"{statement}; that says little: about {needed:,} held-out rows in that tenth, where there are "
        f"{far['n']:,}, would bring it below {WIDEST / 2:g} if the probabilities are right"
    )
    return Claim.uninformative(name, why, Kind.STATISTICAL, most, WIDEST / 2, "FAIR-4")


def rows_needed(n: int, width: float, wanted: float) -> int:
    """About how many rows give an interval of the width wanted: it shrinks with their square root.

    Examples
    --------
    >>> rows_needed(60, 0.4, 0.2)
    240
    """
    return math.ceil(n * (width / wanted) ** 2)


def coverage_claim(
    errors: Array,
    delta: float,
    unit: str,
    width: float = math.inf,
    coverage: float = 0.9,
    *,
    stated: float | None = None,
    constant: Array | None = None,
) -> Claim:
    r"""With probability 1 - delta, ``coverage`` of rows to come have at most the error stated.

    The k-th smallest of n independent errors is at least the ``coverage`` quantile with probability
    :math:`P[\mathrm{Bin}(n, c) \le k - 1]`, whatever their distribution (Wilks, 1941): take the least k for
    which that is 1 - delta. ``stated`` is the delta of the sentence, where that of the limit is a share of
    it. The interval says something where it is shorter than ``width``, the range of the target, and than the
    interval of a constant prediction, whose errors are ``constant``.
    """
    from scipy import stats

    name, n = "prediction interval", len(errors)
    k = int(stats.binom.ppf(1.0 - delta, n, coverage)) + 1
    if k > n:
        why = f"{n} rows are too few for a statement about {coverage:.0%} of rows to come"
        return Claim.undecided(name, why, Kind.STATISTICAL, "GEN-3")
    errors = np.where(
        np.isfinite(errors), errors, np.inf
    )  # a prediction that is no number is far off
    radius = float(np.partition(errors, k - 1)[k - 1])
    found = float((errors <= radius).mean())
    beside = math.inf if constant is None else float(np.partition(constant, k - 1)[k - 1])
    statement = (
        f"with probability {percent(stated or delta)}, at least {coverage:.0%} of rows to come have "
        f"a '{shown(unit)}' within {rounded_up(radius)} of the prediction (on the hold-out: {found:.1%}); "
        f"{ASSUMED}"
    )
    length, bound = 2.0 * radius, min(width, 2.0 * beside)
    if not bound <= length < math.inf:
        return Claim.check(name, statement, Kind.STATISTICAL, length, bound, "GEN-3")
    words = f"the range of '{shown(unit)}' on the training rows, {width:.4g}"
    if 2.0 * beside < width:
        words = f"that of a constant prediction, {rounded_up(2.0 * beside)}"
    why = (
        f"{statement}; an interval of {rounded_up(length)} is no shorter than {words}: more rows or columns "
        "to learn from could shorten it"
    )
    return Claim.uninformative(name, why, Kind.STATISTICAL, length, bound, "GEN-3")


def rounded_up(value: float) -> str:
    """Four digits, rounded up, so that a sentence does not promise more than was found.

    Examples
    --------
    >>> rounded_up(0.123412), rounded_up(123411.0), rounded_up(0.0)
    ('0.1235', '1.235e+05', '0')
    """
    if not 0 < value < math.inf:
        return f"{value:.4g}"
    text = f"{value:.4g}"
    if float(text) >= value:
        return text
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    return f"{float(text) + step:.4g}"


def curves(score: Array, truth: Array) -> dict[str, Any]:
    """ROC and precision-recall curve of a score for a 0-1 truth; the last bits of a score decide nothing."""
    from sklearn.metrics import precision_recall_curve, roc_auc_score, roc_curve

    if not 0 < truth.sum() < len(truth):
        return {}
    largest = float(np.abs(score).max())
    score = np.round(score / largest, 9) if largest > 0 else score  # equal rows tie on any machine
    fpr, tpr, _ = roc_curve(truth, score)
    precision, recall, _ = precision_recall_curve(truth, score)
    keep, held = _thinned(len(fpr)), _thinned(len(recall))
    return {
        "roc": {
            "fpr": _plain(fpr[keep]),
            "tpr": _plain(tpr[keep]),
            "auc": float(roc_auc_score(truth, score)),
        },
        "pr": {
            "recall": _plain(recall[held]),
            "precision": _plain(precision[held]),
            "base": float(truth.mean()),
        },
    }


def residuals(predicted: Array, truth: Array, seed: int) -> dict[str, Any]:
    """Means of residuals in 60 groups of equal size by prediction (no single rows), and a histogram."""
    error = truth - predicted
    order = np.argsort(predicted, kind="stable")
    parts = [part for part in np.array_split(order, min(60, max(1, len(order) // 5))) if len(part)]
    counts, edges = np.histogram(error, bins=30)
    return {
        "predicted": _plain([predicted[part].mean() for part in parts]),
        "residual": _plain([error[part].mean() for part in parts]),
        "low": _plain([np.quantile(error[part], 0.1) for part in parts]),
        "high": _plain([np.quantile(error[part], 0.9) for part in parts]),
        "histogram": {"edges": _plain(edges), "counts": [int(c) for c in counts]},
    }


def confusion(truth: Any, predicted: Any, labels: list[str]) -> dict[str, Any]:
    """Counts of true (rows) against predicted (columns) codes."""
    k = len(labels)
    counts = np.bincount(np.asarray(truth) * k + np.asarray(predicted), minlength=k * k)
    return {"labels": labels, "counts": counts.reshape(k, k).tolist()}


def _thinned(n: int) -> NDArray[np.intp]:
    """At most POINTS places of n, the ends among them."""
    return np.unique(np.linspace(0, n - 1, min(n, POINTS)).round().astype(np.intp))


def _plain(values: Any) -> list[float]:
    """Floats with six digits: enough for a plot."""
    return [float(f"{value:.6g}") for value in np.asarray(values, dtype=np.float64)]
