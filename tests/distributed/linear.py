"""The linear models on the rows of this rank; rank 0 writes what all ranks agree on."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

import surefit
from surefit import CertificateWarning
from surefit.design import RankRows, RowBlocks
from surefit.distributed import connect
from surefit.linear_model import HuberRegressor, LinearRegression, LogisticRegression, Ridge

__all__ = ["CASES", "data", "form_of", "summary"]

# name: the model, its target, the form of X, whether it is weighted
CASES = {
    "least squares": (LinearRegression(), "value", "dense", False),
    "least squares, weights": (LinearRegression(certify="full"), "value", "dense", True),
    "least squares, no intercept": (LinearRegression(fit_intercept=False), "value", "float32", False),
    "least squares, sparse": (LinearRegression(), "value", "sparse", True),
    "least squares, two targets": (LinearRegression(), "two values", "dense", False),
    "least squares, rank deficient": (LinearRegression(), "value", "collinear", False),
    "ridge": (Ridge(alpha=2.0), "value", "dense", True),
    "ridge, tensor": (Ridge(alpha=2.0), "value", "tensor", False),
    "ridge, on disk": (Ridge(alpha=2.0), "value", "disk", False),
    "ridge, sparse": (Ridge(alpha=0.5), "value", "sparse", False),
    "logistic": (LogisticRegression(tol=1e-10), "two classes", "dense", True),
    "logistic, words": (LogisticRegression(tol=1e-10), "words", "dense", False),
    "logistic, no penalty": (LogisticRegression(C=np.inf, tol=1e-8), "two classes", "dense", False),
    "logistic, on disk": (LogisticRegression(tol=1e-10), "two classes", "disk", False),
    "softmax": (LogisticRegression(tol=1e-10), "three classes", "dense", True),
    "softmax, balanced": (
        LogisticRegression(tol=1e-10, class_weight="balanced"), "three classes", "sparse", False,
    ),
    "Huber": (HuberRegressor(), "value", "dense", True),
    "Huber, no penalty": (HuberRegressor(alpha=0.0), "value", "dense", False),
    "Huber, tensor": (HuberRegressor(), "value", "tensor", False),
}  # fmt: skip
ROWS = 6000


def data():
    """X, the targets by name, and weights, some of them 0; enough rows for the sampled solvers."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(ROWS, 6)) + np.arange(6.0)
    noise = rng.normal(size=ROWS)
    value = X @ np.array([1.0, -2.0, 0.5, 0.0, 3.0, 1.0]) + noise
    value[::19] += 40.0
    two = (X[:, 0] + noise > 0.3).astype(int)
    three = np.digitize(X[:, 0] + X[:, 1] + noise, [0.0, 2.0])
    weights = rng.uniform(0.1, 2.0, size=ROWS)
    weights[::7] = 0.0
    targets = {
        "value": value,
        "two values": np.column_stack([value, X[:, 1] - noise]),
        "two classes": two,
        "words": np.array(["no", "yes"])[two],
        "three classes": three,
    }
    return X, targets, weights


def form_of(X, form, rows, folder):
    """The given rows of X in one of its forms."""
    if form == "sparse":
        return sp.csr_array(X * (X > 1.5))[rows]
    if form == "float32":
        return X.astype(np.float32)[rows]
    if form == "collinear":
        return np.column_stack([X, X[:, 0] + X[:, 1]])[rows]
    if form == "tensor":
        import torch

        return torch.as_tensor(X)[rows]
    if form == "disk":
        path = folder / f"rows-{rows.start}-{rows.stop}.npy"
        np.save(path, X[rows])
        return RowBlocks(path, block_bytes=20_000)
    return X[rows]


def summary(model):
    """What is compared: coefficients, the claims with their numbers, the fingerprint."""
    certificate = model.certificate_
    return {
        "coef": np.asarray(model.coef_),
        "intercept": np.asarray(model.intercept_),
        "claims": np.array([f"{c.name}: {c.status.value}" for c in certificate.claims]),
        "data": np.array(certificate.data_id),
    }


def main(folder):
    X, targets, weights = data()
    found = {}
    with connect(timeout=60) as group, warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)  # what it says is compared
        mine = group.share_of(ROWS)
        for name, (model, target, form, weighted) in CASES.items():
            rows = RankRows(form_of(X, form, mine, folder), group)
            y, s = targets[target][mine], weights[mine] if weighted else None
            fitted = clone(model).fit(rows, y, sample_weight=s)
            assert fitted.predict(rows).shape[0] == rows.rows_here
            report = surefit.verify(fitted, rows, y, sample_weight=s)
            record = summary(fitted) | {"verified": np.array(report.ok)}
            for other in group.gather(record):
                for key, mine_ in record.items():
                    np.testing.assert_array_equal(other[key], mine_, err_msg=name)  # to the bit
            found |= {f"{name}/{key}": value for key, value in record.items()}
        if group.rank == 0:
            np.savez(folder / f"linear-{group.size}.npz", **found)


if __name__ == "__main__":
    from pathlib import Path

    main(Path(sys.argv[1]))
