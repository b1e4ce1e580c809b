r"""The three criteria from counts: rates by group, gaps between groups, exact intervals for both.

With target Y, decision D and group A (FAIR-1), all of it depends on the counts of (A, Y, D):

============  ============================  =======================================
criterion     says                          measured by
============  ============================  =======================================
independence  D is independent of A         gap of P(D=1 | A) (FAIR-2)
separation    D is independent of A given Y gaps of TPR and FPR (FAIR-3)
sufficiency   Y is independent of A given D gaps of PPV and NPV (FAIR-4)
============  ============================  =======================================

*Guarantee.* Given its denominator, each count is binomial, so Clopper-Pearson limits at
:math:`\delta/K` hold for all K rates at once with probability :math:`1-\delta`. A gap
:math:`\max_a p_a - \min_b p_b` then lies between :math:`\max_a l_a - \min_b u_b` and
:math:`\max_{a \ne b} (u_a - l_b)`, whatever the number of rows: nothing is asymptotic.

*Incompatibility* (FAIR-5). With base rate p, :math:`FPR = \frac{p}{1-p}\frac{1-PPV}{PPV}(1-FNR)`: groups with
different base rates cannot agree on PPV, FNR and FPR at once, unless the decision gives the label away: it is
always right, or always wrong.

References
----------
Barocas, Hardt & Narayanan, *Fairness and Machine Learning* (2023), chapter 3. Chouldechova, "Fair prediction
with disparate impact" (2017). Clopper & Pearson, Biometrika 26 (1934).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..model_selection.bounds import clopper_pearson
from ._groups import shown

__all__ = ["CRITERIA", "RATES", "gap", "group_rates", "incompatibility"]

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# rate -> the cells (label, decision) that count, and those of the denominator
_ALL = ((0, 0), (0, 1), (1, 0), (1, 1))
_CELLS: dict[str, tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]] = {
    "selection": (((0, 1), (1, 1)), _ALL),
    "tpr": (((1, 1),), ((1, 0), (1, 1))),
    "fpr": (((0, 1),), ((0, 0), (0, 1))),
    "ppv": (((1, 1),), ((0, 1), (1, 1))),
    "npv": (((0, 0),), ((0, 0), (1, 0))),
    "error": (((0, 1), (1, 0)), _ALL),
    "base_rate": (((1, 0), (1, 1)), _ALL),
}
_OPPOSITE = {"fnr": "tpr", "tnr": "fpr"}  # 1 - rate: no interval of their own
RATES = (*_CELLS, *_OPPOSITE)
CRITERIA = {
    "independence": ("selection",),
    "separation": ("tpr", "fpr"),
    "sufficiency": ("ppv", "npv"),
}
SOURCES = {
    "independence": "FAIR-2", "separation": "FAIR-3", "sufficiency": "FAIR-4",
    "error": "FAIR-1", "base_rate": "FAIR-5", "calibration": "FAIR-4",
}  # fmt: skip
STATED = len(_CELLS)  # intervals of a group


def group_rates(counts: Counts, delta: float, intervals: int) -> dict[str, dict[str, Array]]:
    """Every rate of every group: value, denominator, exact limits, Hoeffding radius.

    Parameters
    ----------
    counts : array of shape (groups, 2, 2)
        Rows by group, label and decision.
    delta : float
        Probability that any of ``intervals`` limits is wrong.
    intervals : int
        How many two-sided intervals are stated together.

    Returns
    -------
    dict of rate -> {"value", "n", "low", "high", "hoeffding"}, arrays over groups; NaN without rows.
    """
    hits = np.stack([sum(counts[:, y, d] for y, d in top) for top, _ in _CELLS.values()])
    rows = np.stack([sum(counts[:, y, d] for y, d in bottom) for _, bottom in _CELLS.values()])
    some = np.maximum(rows, 1)
    low, high = clopper_pearson(hits, some, delta, models=intervals)
    radius = np.sqrt(math.log(2.0 * intervals / delta) / (2.0 * some))
    empty = rows == 0
    value = np.where(empty, np.nan, hits / some)
    low, high = np.where(empty, 0.0, low), np.where(empty, 1.0, high)
    radius = np.where(empty, 1.0, radius)
    parts = {"value": value, "n": rows, "low": low, "high": high, "hoeffding": radius}
    rates = {
        name: {part: values[i] for part, values in parts.items()} for i, name in enumerate(_CELLS)
    }
    for name, other in _OPPOSITE.items():
        one = rates[other]
        rates[name] = {
            **one,
            "value": 1.0 - one["value"],
            "low": 1.0 - one["high"],
            "high": 1.0 - one["low"],
        }
    return rates


def gap(rate: dict[str, Array], groups: Sequence[int]) -> dict[str, Any]:
    """The largest difference of a rate between groups, with the limits that follow from those of the groups.

    ``groups`` are the places of the groups that can be measured; with fewer than two there is no gap.
    """
    if len(groups) < 2:
        return {"observed": None, "low": 0.0, "high": 1.0, "ratio": None, "places": []}
    at = np.asarray(groups)
    value, low, high = (rate[part][at] for part in ("value", "low", "high"))
    top, bottom = int(value.argmax()), int(value.argmin())
    least = max(0.0, float(low.max() - high.min()))
    # the largest upper limit of one group less the lowest lower limit of another one
    order = np.argsort(low, kind="stable")
    other = np.where(np.arange(len(at)) == order[0], low[order[1]], low[order[0]])
    most = min(1.0, max(0.0, float((high - other).max())))
    return {
        "observed": float(value[top] - value[bottom]),
        "low": least,
        "high": most,
        "ratio": float(value[bottom] / value[top]) if value[top] > 0 else None,
        "places": [int(at[top]), int(at[bottom])],
    }


def incompatibility(
    base_rates: ArrayLike, ppv: float, fnr: float, *, groups: Sequence[str] | None = None
) -> dict[str, Any]:
    r"""What equal PPV and FNR force on the false positive rates of groups with these base rates (FAIR-5).

    .. math:: FPR = \frac{p}{1-p} \cdot \frac{1-PPV}{PPV} \cdot (1-FNR)

    Parameters
    ----------
    base_rates : array-like of shape (groups,)
        P(Y=1 | A) of each group.
    ppv, fnr : float
        The values that all groups would share.
    groups : sequence of str, optional
        Names.

    Returns
    -------
    dict
        ``fpr`` (forced, for each group), ``possible`` (all of them at most 1), ``degenerate`` (None,
        ``"equal base rates"`` or ``"perfect prediction"``), ``gap`` and ``statement``.

    Examples
    --------
    >>> found = incompatibility([0.5, 0.2], ppv=0.8, fnr=0.2)
    >>> [round(rate, 4) for rate in found["fpr"]]
    [0.2, 0.05]
    >>> incompatibility([0.5, 0.2], ppv=1.0, fnr=0.0)["degenerate"]
    'perfect prediction'
    """
    p = np.asarray(base_rates, dtype=np.float64).ravel()
    if not len(p) or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"base_rates must lie in [0, 1], got {base_rates!r}.")
    for name, value in (("ppv", ppv), ("fnr", fnr)):
        if not 0.0 <= value <= 1.0:
            raise ValueError(f"{name} must lie in [0, 1], got {value!r}.")
    names = [shown(g) for g in groups] if groups is not None else [f"{i}" for i in range(len(p))]
    if len(names) != len(p):
        raise ValueError(f"groups has {len(names)} names for {len(p)} base rates: give one each.")
    with np.errstate(divide="ignore", invalid="ignore"):
        fpr = p / (1.0 - p) * (1.0 - ppv) / ppv * (1.0 - fnr)
    forced = [float(rate) if math.isfinite(rate) else None for rate in fpr]
    degenerate = None
    if np.ptp(p) == 0.0:
        degenerate = "equal base rates"
    elif ppv == 1.0 and fnr == 0.0:
        degenerate = "perfect prediction"
    known = [rate for rate in forced if rate is not None]
    return {
        "base_rates": p.tolist(),
        "groups": names,
        "ppv": float(ppv),
        "fnr": float(fnr),
        "fpr": forced,
        "gap": max(known) - min(known) if known else None,
        "possible": len(known) == len(p) and max(known, default=0.0) <= 1.0,
        "degenerate": degenerate,
        "statement": _forced_words(names, p, ppv, fnr, forced, degenerate),
    }


def _forced_words(
    names: list[str],
    p: Array,
    ppv: float,
    fnr: float,
    forced: list[float | None],
    degenerate: str | None,
) -> str:
    """The incompatibility in a sentence, for the two groups whose base rates are furthest apart."""
    a, b = int(p.argmax()), int(p.argmin())
    if degenerate == "equal base rates":
        return (
            f"the base rates are equal ({p[0]:.3f}): the criteria can hold together, and this is one of "
            "the two degenerate cases"
        )
    start = f"base rates are {p[a]:.3f} ({names[a]}) and {p[b]:.3f} ({names[b]})"
    if degenerate == "perfect prediction":
        return f"{start}, but the prediction is perfect: separation and sufficiency hold together"
    rates = [f"{rate:.3f}" if rate is not None else "undefined" for rate in forced]
    beyond = any(rate is not None and rate > 1.0 for rate in forced)
    return (
        f"{start}: with PPV {ppv:.3f} and FNR {fnr:.3f} in all groups, FPR would have to be {rates[a]} and "
        f"{rates[b]}"
        + (", more than 1, which no rule has" if beyond else "")
        + "; separation and sufficiency cannot both hold, unless the prediction is perfect or always wrong"
    )


def differences(
    rate: dict[str, Array], names: Sequence[str], groups: Sequence[int], delta: float
) -> list[dict[str, Any]]:
    """The difference of a rate between any two measured groups, with its limits and Hoeffding radius."""
    pairs = list(itertools.combinations(groups, 2))
    rows = []
    for a, b in pairs:
        n = 1.0 / float(rate["n"][a]) + 1.0 / float(rate["n"][b])
        rows.append(
            {
                "groups": [names[a], names[b]],
                "observed": float(rate["value"][a] - rate["value"][b]),
                "low": max(-1.0, float(rate["low"][a] - rate["high"][b])),
                "high": min(1.0, float(rate["high"][a] - rate["low"][b])),
                "hoeffding": math.sqrt(math.log(2.0 * len(pairs) / delta) / 2.0 * n),
            }
        )
    return rows
