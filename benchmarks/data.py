"""The data of the benchmarks: public sets where their folder is there, made ones of their kind otherwise."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = ["bumps", "correlated", "labels", "pictures", "public", "text_like", "wide"]

Array = NDArray[np.float64]


def correlated(n: int, p: int, rng: np.random.Generator, share: float = 0.5) -> Array:
    """Standard normal columns with a common factor: n rows, C order."""
    X = rng.standard_normal((n, p))
    X += share * rng.standard_normal((n, 1))
    return X


def labels(z: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """0 or 1, drawn with probability sigma(z)."""
    return (rng.random(len(z)) < 1.0 / (1.0 + np.exp(-z))).astype(np.int64)


def wide(n: int, p: int, support: int, rng: np.random.Generator) -> tuple[Any, Array]:
    """p >> n in Fortran order: neighbouring columns correlate by 0.5, a sparse signal, some noise."""
    X = np.asfortranarray(rng.standard_normal((n, p)))
    for j in range(1, p):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    w = np.zeros(p)
    w[rng.choice(p, support, replace=False)] = rng.standard_normal(support)
    signal = X @ w
    y = signal + 0.3 * signal.std() * rng.standard_normal(n)
    return X, y - y.mean()


def text_like(
    n: int, p: int, terms: int, rng: np.random.Generator
) -> tuple[Any, NDArray[np.int64]]:
    """tf-idf vectors as rcv1's: Zipf's columns, unit rows with about ``terms`` entries; labels 0 or 1."""
    count = np.maximum(5, rng.lognormal(np.log(terms) - 0.15, 0.55, n).astype(np.int64))
    popular = 1.0 / (np.arange(p) + 20.0)
    columns = np.searchsorted(np.cumsum(popular / popular.sum()), rng.random(int(count.sum())))
    rows = np.repeat(np.arange(n), count)
    X = sp.coo_array((np.ones(len(rows)), (rows, np.minimum(columns, p - 1))), (n, p)).tocsr()
    X.data = 1.0 + np.log(X.data)
    idf = np.log((1 + n) / (1 + np.bincount(X.indices, minlength=p)))
    X.data *= idf[X.indices]
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    w = rng.standard_normal(p) * (rng.random(p) < 0.2)
    z = X @ w
    shuffled = rng.permutation(p)  # the column number says nothing
    index, ptr = shuffled[X.indices].astype(np.int32), X.indptr.astype(np.int32)
    X = sp.csr_array((X.data, index, ptr), X.shape)
    X.sort_indices()
    return X, labels(3.0 * (z - np.median(z)) / z.std(), rng)


def public(name: str) -> tuple[Any, Any] | None:
    """A set from the folder of public data, or None where that is not there."""
    from sklearn.datasets import load_svmlight_file
    from tests.data import data_folder

    folder = data_folder()
    if folder is None:
        return None
    if name == "rcv1":
        parts = [folder / "libsvm" / f"rcv1_small.{part}.gz" for part in ("train1000", "test500")]
        read = [load_svmlight_file(str(part), n_features=47236) for part in parts]
        return sp.vstack([X for X, _ in read], format="csr"), np.concatenate([y for _, y in read])
    if name == "news20":
        return _xz(folder / "libsvm" / "news20_multiclass.xz")
    if name == "leukemia":
        with np.load(folder / "tabular" / "highdim" / "ALLAML.npz") as part:
            X, y = part["x"].astype(np.float64), part["y"].ravel().astype(np.float64)
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
        return np.asfortranarray(X), y - y.mean()
    if name in ("a9a", "w8a"):
        return load_svmlight_file(str(folder / "libsvm" / f"{name}.gz"))
    if name == "mnist":
        return _idx(folder / "images" / "mnist")
    raise ValueError(
        f"no public set {name!r}; there are rcv1, news20, leukemia, a9a, w8a and mnist."
    )


def _idx(folder: Path) -> tuple[Any, Any]:
    """MNIST's training images as rows of 784 grey values (float64), and its test images."""
    parts = []
    for name in ("train-images-idx3-ubyte.xz", "t10k-images-idx3-ubyte.xz"):
        raw = np.frombuffer(lzma.decompress((folder / name).read_bytes()), np.uint8, offset=16)
        parts.append(raw.reshape(-1, 784).astype(np.float64))
    return parts[0], parts[1]


def bumps(n: int, p: int, rng: np.random.Generator, centres: int = 200) -> tuple[Array, Array]:
    """Standard normal rows and a smooth score: Gaussian bumps of either sign around random rows, scaled.

    What a kernel method can learn and a linear one cannot; the score has mean 0 and variance 1.
    """
    X, middle = rng.standard_normal((n, p)), rng.standard_normal((centres, p))
    z = np.zeros(n)
    for m, sign in zip(middle, rng.standard_normal(centres), strict=True):
        z += sign * np.exp(-np.sum((X - m) ** 2, axis=1) / (2.0 * p))
    return X, (z - z.mean()) / z.std()


def _xz(path: Path) -> tuple[Any, Any]:
    from sklearn.datasets import load_svmlight_file

    with lzma.open(path) as file:
        X, y = load_svmlight_file(file)
    return X, y


def pictures(*, quick: bool = False) -> tuple[Any, Any, Any, Any]:
    """MNIST, or pictures of its shape: training in [0, 1] of (1, 28, 28), labels, and those for testing."""
    from tests.data import data_folder, images

    n, m = (4_000, 1_000) if quick else (60_000, 10_000)
    if data_folder() is None:
        rng = np.random.default_rng(0)
        means = rng.random((10, 1, 28, 28)) * (rng.random((10, 1, 28, 28)) < 0.3)
        y = rng.integers(0, 10, n + m)
        X = np.clip(means[y] + 0.2 * rng.standard_normal((n + m, 1, 28, 28)), 0, 1)
        return X[:n].astype(np.float32), y[:n], X[n:].astype(np.float32), y[n:]
    X, y, X_test, y_test = images("mnist")
    return X[:n], y[:n], X_test[:m], y_test[:m]
