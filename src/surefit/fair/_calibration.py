r"""Calibration within groups: :math:`P(Y=1 | R=r, A=a) = r` (FAIR-4), tested bin by bin.

Given the scores, calibration makes the labels of a cell (bin, group) independent Bernoulli variables whose
mean probability is the mean score of the cell. Hoeffding (1956) showed that Clopper-Pearson limits, at a
slightly smaller level, hold for such sums too. A cell whose mean score lies outside its limits refutes
calibration. The bins are fixed before the data are seen: equal widths on [0, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model_selection.bounds import clopper_pearson

__all__ = ["BINS", "calibration_table", "check_score"]

BINS = 10


def check_score(score: Any, n: int) -> NDArray[np.float64]:
    """Scores as float64 in [0, 1], one for each row."""
    array = np.asarray(score, dtype=np.float64)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise ValueError(
            f"score must have one value for each of the {n} rows, got shape {array.shape}; of "
            "predict_proba pass the column of the positive label."
        )
    if not (array.min(initial=0.0) >= 0.0 and array.max(initial=1.0) <= 1.0):
        raise ValueError(
            f"score must lie in [0, 1], got values from {array.min():g} to {array.max():g}: pass "
            "probabilities of the positive label, or leave it out."
        )
    return array


def calibration_table(
    score: NDArray[np.float64],
    y: NDArray[np.int64],
    groups: dict[str, tuple[list[str], NDArray[np.int64]]],
    measured: dict[str, list[int]],
    delta: float,
    min_rows: int,
) -> dict[str, Any]:
    """Share of positives by bin and group with exact simultaneous limits, and the largest deviation."""
    bins = np.minimum((score * BINS).astype(np.int64), BINS - 1)
    counted = {}
    for attribute, (names, codes) in groups.items():
        cells, size = codes * BINS + bins, len(names) * BINS
        total = np.bincount(cells, minlength=size)
        hits = np.bincount(cells, weights=y, minlength=size)
        mean = np.bincount(cells, weights=score, minlength=size) / np.maximum(total, 1)
        inside = np.isin(np.arange(size) // BINS, measured[attribute]) & (total >= min_rows)
        counted[attribute] = (names, total, hits, mean, np.flatnonzero(inside))
    # the sizes of the cells depend on scores and groups only, so they may decide what is stated
    stated = max(1, sum(len(kept) for *_, kept in counted.values()))
    attributes = {}
    for attribute, (names, total, hits, mean, kept) in counted.items():
        if not len(kept):
            attributes[attribute] = _nothing(min_rows)
            continue
        low, high = clopper_pearson(
            hits[kept], total[kept], delta, models=max(stated, 1), identical=False
        )
        share, r = hits[kept] / total[kept], mean[kept]
        deviation = np.abs(share - r)
        least = np.maximum(0.0, np.maximum(low - r, r - high))
        most = np.maximum(high - r, r - low)
        worst = int(deviation.argmax())
        cells_out = [
            {
                "group": names[k // BINS], "bin": [int(k % BINS) / BINS, (int(k % BINS) + 1) / BINS],
                "n": int(total[k]), "mean_score": float(r[i]), "share": float(share[i]),
                "low": float(low[i]), "high": float(high[i]),
            }
            for i, k in enumerate(kept.tolist())
        ]  # fmt: skip
        cell: Any = cells_out[worst]
        attributes[attribute] = {
            "observed": float(deviation[worst]), "low": float(least.max()), "high": float(most.max()),
            "groups": [f"{cell['group']}, scores {cell['bin'][0]:g} to {cell['bin'][1]:g}"],
            "refuted": bool((least > 0.0).any()), "cells": cells_out, "why": "",
        }  # fmt: skip
    return {"bins": BINS, "delta": delta, "intervals": stated, "attributes": attributes}


def _nothing(min_rows: int) -> dict[str, Any]:
    why = f"no bin of a group has {min_rows} rows"
    return {
        "observed": None, "low": 0.0, "high": 1.0, "groups": [], "refuted": False, "cells": [], "why": why,
    }  # fmt: skip
