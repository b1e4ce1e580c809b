"""Wrong input on one rank: what each rank is told. Rank 0 writes the errors of all ranks as JSON."""

from __future__ import annotations

import json
import sys

import numpy as np
import scipy.sparse as sp

from surefit.cluster import KMeans
from surefit.design import RankRows
from surefit.distributed import connect
from surefit.linear_model import HuberRegressor, Lasso, LogisticRegression, Ridge

__all__ = ["attempts"]


def attempts(rank, group):
    """What is tried, by name; in each, rank 1 (or all) holds something wrong."""
    X, y = np.arange(24.0).reshape(12, 2) ** 1.5 + rank, np.arange(12) % 2
    wrong = rank == 1

    def broken(value):
        Z = X.copy()
        Z[3, 1] = value if wrong else 0.0
        return Z

    return {
        "columns": lambda: RankRows(X[:, :1] if wrong else X, group),
        "no rows": lambda: RankRows(X[:0] if wrong else X, group),
        "NaN": lambda: RankRows(broken(np.nan), group),
        "dtype": lambda: RankRows(X.astype(np.float32) if wrong else X, group),
        "sparse here, dense there": lambda: RankRows(sp.csr_array(X) if wrong else X, group),
        "three dimensions": lambda: RankRows(X[None] if wrong else X, group),
        "twice": lambda: RankRows(RankRows(X, group), group),
        "targets": lambda: Ridge().fit(RankRows(X, group), y[:5] if wrong else y),
        "NaN target": lambda: Ridge().fit(RankRows(X, group), np.where(wrong & (y > 0), np.nan, y)),
        "overflow": lambda: Ridge().fit(RankRows(broken(1e200), group), y),
        "negative weights": lambda: Ridge().fit(
            RankRows(X, group), y, sample_weight=-1.0 * y - wrong
        ),
        "weights here only": lambda: Ridge().fit(
            RankRows(X, group), y, sample_weight=y + 1.0 if wrong else None
        ),
        "weights here only, clusters": lambda: KMeans(2).fit(
            RankRows(X, group), sample_weight=y + 1.0 if wrong else None
        ),
        "no weight anywhere": lambda: Ridge().fit(RankRows(X, group), y, sample_weight=0.0 * y),
        "one class": lambda: LogisticRegression().fit(RankRows(X, group), 0 * y),
        "estimator": lambda: Lasso().fit(RankRows(X, group), y),
        "l1 part": lambda: LogisticRegression(l1_ratio=1.0).fit(RankRows(X, group), y),
        "no weight here": lambda: (
            Ridge()
            .fit(RankRows(X, group), y, sample_weight=np.full(12, 1.0 - wrong))
            .certificate_.ok,
            KMeans(20, random_state=0)
            .fit(RankRows(X, group), sample_weight=np.full(12, 1.0 - wrong))
            .certificate_.ok,
        ),
        "fine": lambda: HuberRegressor().fit(RankRows(X, group), y).coef_.shape,
    }


def main(path):
    with connect(timeout=60) as group:
        found = {}
        for name, attempt in attempts(group.rank, group).items():
            try:
                found[name] = f"none: {attempt()}"
            except (ValueError, TypeError) as error:
                found[name] = f"{type(error).__name__}: {error}"
        everyone = group.gather(found)
        if group.rank == 0:
            with open(path, "w", encoding="utf8") as file:
                json.dump(everyone, file)


if __name__ == "__main__":
    main(sys.argv[1])
