"""Real data for tests: what scikit-learn bundles, and a folder of public sets where there is one.

The folder is named by the environment variable ``SUREFIT_DATA``; without it, ``../shared/data`` beside the
repository is tried. Its layout is that of its own README. Tests that need it are skipped when it is missing;
the suite passes without it.

>>> X, y = load("diabetes")
>>> X.shape
(442, 10)
"""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.datasets
from sklearn.preprocessing import StandardScaler

__all__ = ["BUNDLED", "FOLDER_SETS", "data_folder", "images", "load"]

ROOT = Path(__file__).resolve().parent.parent


def data_folder() -> Path | None:
    """The folder of public data sets, or None."""
    named = os.environ.get("SUREFIT_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if (folder / "libsvm").is_dir() else None


@cache
def load(name: str) -> tuple[Any, Any]:
    """X and y of a set in :data:`BUNDLED` or :data:`FOLDER_SETS`; skips the test if it is not there.

    Dense columns are standardised; sparse matrices are as published. Labels are 0, 1, ...
    """
    if name in BUNDLED:
        return BUNDLED[name]()
    folder = data_folder()
    if folder is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    return FOLDER_SETS[name](folder)


def _standardised(X: Any, y: Any) -> tuple[Any, Any]:
    return StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)), y


def _bundled(loader: Callable[..., Any]) -> Callable[[], tuple[Any, Any]]:
    return lambda: _standardised(*loader(return_X_y=True))


def _codes(y: Any) -> Any:
    return np.unique(np.asarray(y), return_inverse=True)[1]


def _libsvm(file: str, n_features: int, rows: int | None = None) -> Callable[[Path], Any]:
    def read(folder: Path) -> tuple[Any, Any]:
        X, y = sklearn.datasets.load_svmlight_file(
            str(folder / "libsvm" / file), n_features=n_features
        )
        return sp.csr_array(X[:rows]), _codes(y[:rows])

    return read


def _highdim(file: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> tuple[Any, Any]:
        with np.load(folder / "tabular" / "highdim" / file) as part:
            if "x" in part:
                return _standardised(part["x"], _codes(part["y"].ravel()))
            shape = tuple(int(size) for size in part["shape"])
            X = sp.csr_array((part["data"], part["indices"], part["indptr"]), shape=shape)
            return X.astype(np.float64), _codes(part["y"].ravel())

    return read


def _uci(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> tuple[Any, Any]:
        with np.load(folder / "tabular" / "uci_regression" / f"{name}.npz") as part:
            return _standardised(part["x"], part["y"].ravel().astype(np.float64))

    return read


def _california(folder: Path) -> tuple[Any, Any]:
    """The last column, the median house value, in units of 100 000."""
    with gzip.open(folder / "tabular" / "california_housing" / "cal_housing.data.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    return _standardised(table[:, :-1], table[:, -1] / 1e5)


BUNDLED: dict[str, Callable[[], tuple[Any, Any]]] = {
    "diabetes": _bundled(sklearn.datasets.load_diabetes),
    "breast_cancer": _bundled(sklearn.datasets.load_breast_cancer),
    "iris": _bundled(sklearn.datasets.load_iris),
    "wine": _bundled(sklearn.datasets.load_wine),
    "digits": _bundled(sklearn.datasets.load_digits),
}
FOLDER_SETS: dict[str, Callable[[Path], tuple[Any, Any]]] = {
    "california_housing": _california,
    "elevators": _uci("elevators"),
    "concrete": _uci("concrete"),
    "yacht": _uci("yacht"),
    "a9a": _libsvm("a9a.gz", 123, 4000),
    "w8a": _libsvm("w8a.gz", 300, 4000),
    "german": _libsvm("german.numer_scale.gz", 24),
    "rcv1_small": _libsvm("rcv1_small.train1000.gz", 47236),
    "mushrooms": _libsvm("mushrooms.gz", 112),
    "colon": _highdim("colon.npz"),
    "BASEHOCK": _highdim("BASEHOCK.npz"),
}


def images(name: str) -> tuple[Any, Any, Any, Any]:
    """``mnist`` or ``fashion-mnist``: pictures of (1, 28, 28) in [0, 1] and labels, of training and test."""
    folder = data_folder()
    if folder is None or not (folder / "images" / name).is_dir():
        pytest.skip(f"{name} is not at hand")
    files = {path.name.split(".")[0]: path for path in (folder / "images" / name).iterdir()}

    def read(start: str, kind: str) -> Any:
        path = next(p for stem, p in files.items() if stem.startswith(start) and kind in stem)
        raw = lzma.decompress(path.read_bytes())
        shape = np.frombuffer(raw, ">i4", raw[3], 4)
        return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)

    parts = []
    for start in ("train", "t10k"):
        X = read(start, "images").astype(np.float32)[:, None] / np.float32(255)
        parts += [X, read(start, "labels").astype(np.int64)]
    return tuple(parts)  # type: ignore[return-value]
