"""k-means and mixtures on the rows of this rank; rank 0 writes what all ranks agree on."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import surefit
from surefit.cluster import KMeans
from surefit.design import RankRows, RowBlocks
from surefit.distributed import connect
from surefit.mixture import BernoulliMixture, GaussianMixture

__all__ = ["CASES", "ROWS", "data", "form_of", "outcome_of"]

ROWS = 3001
FAR = np.vstack([np.full((2, 5), 10.0) + np.eye(2, 5), 500.0 + np.eye(2, 5)])  # two catch no row
# name: the model, the form of X, whether it is weighted
CASES = {
    "k-means": (KMeans(7, random_state=3, n_init=2), "dense", False),
    "k-means, weights": (KMeans(7, random_state=3), "dense", True),
    "k-means, given rows": (KMeans(3, init="random", random_state=1), "dense", False),
    "k-means, float32": (KMeans(7, random_state=3), "float32", False),
    "k-means, sparse": (KMeans(7, random_state=3), "sparse", False),
    "k-means, tensor": (KMeans(7, random_state=3), "tensor", True),
    "k-means, on disk": (KMeans(7, random_state=3), "disk", False),
    "k-means, empty clusters": (KMeans(4, init=FAR), "dense", True),
    "full": (GaussianMixture(4, random_state=0, init_params="k-means++"), "dense", False),
    "full, kmeans": (GaussianMixture(4, random_state=0), "dense", False),
    "diag, on disk": (
        GaussianMixture(4, covariance_type="diag", random_state=0, init_params="k-means++"),
        "disk", False,
    ),
    "tied, tensor": (
        GaussianMixture(3, covariance_type="tied", random_state=0, init_params="k-means++"),
        "tensor", False,
    ),
    "hard": (GaussianMixture(4, random_state=0, hard=True, init_params="k-means++"), "dense", False),
    "Bernoulli": (BernoulliMixture(3, random_state=0), "binary", False),
}  # fmt: skip


def data():
    """Seven overlapping blobs, and weights."""
    rng = np.random.default_rng(7)
    centres = 3.0 * rng.normal(size=(7, 5))
    X = centres[rng.integers(0, 7, ROWS)] + rng.normal(size=(ROWS, 5)) + 10.0
    return X, rng.uniform(0.0, 2.0, size=ROWS)


def form_of(X, form, rows, folder):
    """The given rows of X in one of its forms."""
    if form == "sparse":
        return sp.csr_array(np.where(X > 11.0, X, 0.0))[rows]
    if form == "float32":
        return X.astype(np.float32)[rows]
    if form == "binary":
        return (X > 10.0).astype(np.float64)[rows]
    if form == "tensor":
        import torch

        return torch.as_tensor(X)[rows]
    if form == "disk":
        path = folder / f"rows-{rows.start}-{rows.stop}.npy"
        np.save(path, X[rows])
        return RowBlocks(path, block_bytes=20_000)
    return X[rows]


def outcome_of(model):
    """What is compared: parameters, how it ended, the claims, the fingerprint."""
    names = ("cluster_centers_", "inertia_", "n_iter_", "weights_", "means_", "covariances_")
    names += ("lower_bound_", "probabilities_", "inertia_trace_")
    found = {name: np.asarray(getattr(model, name)) for name in names if hasattr(model, name)}
    claims = model.certificate_.claims
    found["claims"] = np.array([f"{c.name}: {c.status.value}" for c in claims])
    return found | {"data": np.array(model.certificate_.data_id)}


def main(folder):
    X, weights = data()
    found = {}
    with connect(timeout=60) as group, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # compared below, with the claims
        mine = group.share_of(ROWS)
        for name, (model, form, weighted) in CASES.items():
            rows = RankRows(form_of(X, form, mine, folder), group)
            extra = {"sample_weight": weights[mine]} if weighted else {}
            fitted = clone(model).fit(rows, **extra)
            record = outcome_of(fitted)
            for other in group.gather(record):
                for key, value in record.items():
                    np.testing.assert_array_equal(other[key], value, err_msg=name)  # to the bit
            labels = np.asarray(
                fitted.labels_ if hasattr(fitted, "labels_") else fitted.predict(rows)
            )
            assert len(labels) == rows.rows_here
            record["labels"] = np.concatenate(group.gather(labels))
            record["verified"] = np.array(surefit.verify(fitted, rows, **extra).ok)
            found |= {f"{name}/{key}": value for key, value in record.items()}
        if group.rank == 0:
            np.savez(folder / f"clusters-{group.size}.npz", **found)


if __name__ == "__main__":
    from pathlib import Path

    main(Path(sys.argv[1]))
