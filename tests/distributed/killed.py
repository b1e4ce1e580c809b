"""Fits that a rank does not survive: rank 1 is killed in the middle of each, once; torchrun starts all again.

Without the argument "kill" the same fits run undisturbed. Rank 0 writes what came out.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from surefit.cluster import KMeans
from surefit.decomposition import MatrixFactorization
from surefit.design import RankRows
from surefit.distributed import connect
from surefit.mixture import GaussianMixture, _climb

from . import clusters, factors

__all__ = ["FITS"]

# name: the model, the form of X, after how many exchanges its rank 1 is killed, what is compared
FITS = {
    "k-means": (
        KMeans(7, init="random", random_state=5, n_init=3, tol=0), 60,
        ("cluster_centers_", "inertia_", "n_iter_", "inertia_trace_", "restart_inertias_"),
    ),
    "mixture": (
        GaussianMixture(7, random_state=0, init_params="random", tol=1e-7, max_iter=200), 60,
        ("weights_", "means_", "covariances_", "lower_bounds_", "n_iter_"),
    ),
    "factors": (
        MatrixFactorization(3, **factors.SETTINGS), 60, ("item_factors_", "loss_trace_", "n_iter_"),
    ),
}  # fmt: skip


def arm(group, marker, after):
    """Count sums; rank 1 kills itself after so many, unless it has done so before."""
    plain, seen = type(group).sum.__get__(group), [0]

    def sum_(*arrays):
        seen[0] += 1
        if seen[0] == after and group.rank == 1 and marker and not marker.exists():
            marker.write_text("killed in the middle", encoding="utf8")
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*arrays)

    group.sum = sum_
    return seen


def main(folder, kill):
    _climb.SAVE_EVERY = 0.0  # after each iteration, so that there is something to go on from
    X, _ = clusters.data()
    found = {}
    with connect(timeout=30) as group, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, (model, after, attributes) in FITS.items():
            table = factors.data("sparse") if name == "factors" else X
            mine = group.share_of(table.shape[0])
            rows = RankRows(table[mine], group, checkpoint=folder / "kept")
            seen = arm(group, folder / f"{name}.killed" if kill else None, after)
            model.fit(rows)
            found |= {f"{name}/{key}": np.asarray(getattr(model, key)) for key in attributes}
            found[f"{name}/exchanges"] = np.array(seen[0])
        if group.rank == 0:
            np.savez(folder / "found.npz", **found)


if __name__ == "__main__":
    from pathlib import Path

    main(Path(sys.argv[1]), "kill" in sys.argv[2:])
