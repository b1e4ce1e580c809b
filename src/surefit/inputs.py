"""Checks of data that scikit-learn's validation would copy: torch tensors and row blocks on disk.

A tensor is checked on its device and stays there; a row block is checked as it is read. y and sample_weight
may be lists or arrays, which are moved next to X, but a tensor on another device is refused: moving it
silently would hide a slow mistake.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d

from ._namespace import is_torch, to_numpy
from ._ranks import RankVector
from .design import Design, RankRows
from .distributed import RankError

__all__ = [
    "as_vector",
    "checked_tensor",
    "is_native",
    "validate_native",
    "validate_native_X",
    "vectors_of",
    "weights_over_ranks",
]

_KINDS = {
    "torch": "torch tensors: pass X.cpu().numpy()",
    "blocks": "row blocks on disk: load the rows into memory (numpy.load), or fit a sample of them",
    "ranks": "rows spread over ranks, with these parameters: gather the rows, or fit a sample of them",
}


def is_native(X: Any, *others: Any) -> bool:
    """Whether the data are tensors, row blocks, or rows spread over ranks."""
    return isinstance(X, Design) or any(is_torch(array) for array in (X, *others))


def validate_native(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    reset: bool,
    y_numeric: bool = False,
    multi_output: bool = False,
    **_: Any,
) -> tuple[Any, Any, Any]:
    """Checked ``X, y, sample_weight``; vectors are float64 where X lives, labels stay as they are."""
    X = validate_native_X(estimator, X, reset=reset)
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    return X, *vectors_of(X, y, sample_weight, y_numeric=y_numeric, multi_output=multi_output)


def vectors_of(
    X: Any, y: Any, sample_weight: Any, *, y_numeric: bool, multi_output: bool
) -> tuple[Any, Any]:
    """Checked ``y, sample_weight`` next to an X that has been checked."""
    if isinstance(X, RankRows):
        rows = X.rows if is_torch(X.rows) else X.local
        checks = {"y_numeric": y_numeric, "multi_output": multi_output}
        found = X.group.agree(lambda: vectors_of(rows, y, None, **checks))
        return _spread(found[0], X), weights_over_ranks(sample_weight, X)
    n = X.shape[0]
    if is_torch(X):
        y = _tensor("y", y, X)
        if y.ndim == 2 and y.shape[1] == 1 and not multi_output:
            y = y[:, 0]
        if y.ndim != 1 and not (multi_output and y.ndim == 2):
            raise ValueError(
                f"y should be a 1d array, got a tensor of shape {tuple(y.shape)} instead."
            )
        if y.is_floating_point() and not bool(y.isfinite().all()):
            raise ValueError("Input y contains NaN or infinity.")
        y = y.double() if y_numeric else y
    elif multi_output:
        y = check_array(y, dtype=np.float64 if y_numeric else None, ensure_2d=False, input_name="y")
    else:
        y = column_or_1d(y, warn=True, dtype=np.float64 if y_numeric else None)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity.")
    if len(y) != n:
        raise ValueError(f"X has {n} rows and y has {len(y)}; they must agree.")
    return y, _check_weights(sample_weight, X)


def validate_native_X(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Checked X of an estimator that takes it, with ``n_features_in_`` set or compared."""
    name = type(estimator).__name__
    if not isinstance(X, Design) and not is_torch(X):
        raise TypeError(
            f"X is {type(X).__name__} but y or sample_weight is a torch tensor: give all three as tensors "
            "on one device, or all as arrays."
        )
    kind = "torch" if is_torch(X) else "ranks" if isinstance(X, RankRows) else "blocks"
    if kind not in estimator._accepts():
        raise TypeError(f"{name} does not take {_KINDS[kind]}.")
    if kind == "torch":
        X = checked_tensor(X)
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        if getattr(X, "feature_names", None) is not None:
            estimator.feature_names_in_ = np.array(X.feature_names, dtype=object)
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features "
            "as input."
        )
    return X


def checked_tensor(X: Any) -> Any:
    """X, dense, two-dimensional, of finite float32 or float64."""
    import torch

    X = X.detach()
    if X.layout != torch.strided:
        raise TypeError(f"X is a {X.layout} tensor: pass a dense one, or a scipy.sparse matrix.")
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a tensor of shape {tuple(X.shape)} instead. Reshape your data."
        )
    for size, words in zip(X.shape, ("sample", "feature"), strict=True):
        if size < 1:
            raise ValueError(
                f"Found array with 0 {words}(s) (shape={tuple(X.shape)}) while a minimum of 1 is required."
            )
    if X.dtype in (torch.float16, torch.bfloat16) or X.is_complex():
        raise TypeError(f"X is a tensor of {X.dtype}: pass X.float() or X.double().")
    if not X.is_floating_point():
        X = X.double()
    if not bool(X.isfinite().all()):
        kind = "NaN" if bool(X.isnan().any()) else "infinity"
        raise ValueError(f"Input X contains {kind}. Drop or impute it first.")
    return X


def _tensor(name: str, values: Any, X: Any) -> Any:
    """``values`` as a tensor on the device of X; a tensor elsewhere is refused."""
    import torch

    if is_torch(values):
        if values.device != X.device:
            raise ValueError(
                f"{name} is on {values.device} and X is on {X.device}: move it with "
                f"{name}.to(X.device)."
            )
        return values.detach()
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} holds {values.dtype}, which a tensor cannot: encode the labels as integers first, "
            "for instance with sklearn.preprocessing.LabelEncoder."
        )
    return torch.as_tensor(values, device=X.device)


def weights_over_ranks(sample_weight: Any, X: RankRows) -> Any:
    """Checked weights of the rows held here: on all ranks or on none, and not zero on all of them."""
    rows = X.rows if is_torch(X.rows) else X.local
    given = getattr(sample_weight, "here", sample_weight)
    found = X.group.agree(lambda: _check_weights(given, rows, some=False))
    sums = X.group.gather(None if found is None else float(found.sum()))
    if None in sums and any(value is not None for value in sums):
        raise RankError(
            "some ranks gave sample_weight and some did not: give it on all or on none."
        )
    if found is not None and not any(sums):
        raise ValueError("sample_weight is zero on every rank: give some row a weight.")
    return _spread(found, X)


def _check_weights(sample_weight: Any, X: Any, *, some: bool = True) -> Any:
    """Checked weights next to X; with ``some`` not all of them 0."""
    if sample_weight is None:
        return None
    if not is_torch(X):
        rows = np.empty((X.shape[0], 0))
        return _check_sample_weight(
            sample_weight,
            rows,
            dtype=np.float64,
            ensure_non_negative=True,
            allow_all_zero_weights=not some,
        )
    weights = _tensor("sample_weight", sample_weight, X).double()
    if weights.ndim == 0:
        weights = weights.expand(X.shape[0])
    if tuple(weights.shape) != (X.shape[0],):
        raise ValueError(
            f"sample_weight.shape == {tuple(weights.shape)}, expected {(X.shape[0],)}!"
        )
    if not bool(weights.isfinite().all()) or bool((weights < 0).any()):
        raise ValueError("sample_weight must be finite and non-negative, and it is not.")
    if some and not bool((weights > 0).any()):
        raise ValueError("sample_weight is zero everywhere: give some row a weight.")
    return weights


def _spread(values: Any, X: RankRows) -> Any:
    """What one rank holds of a vector over samples, as a part of the whole; labels stay as they are."""
    if values is None or isinstance(values, RankVector):
        return values
    return RankVector(to_numpy(values), X.spread)


def as_vector(values: Any, X: Any) -> Any:
    """A float64 vector over samples next to X (a tensor, rows over ranks, or an array)."""
    if isinstance(X, RankRows):
        return X.vector(values)
    if isinstance(X, RankVector):
        return X.like(np.asarray(values, dtype=np.float64))
    if is_torch(X):
        import torch

        return torch.as_tensor(values, dtype=torch.float64, device=X.device)
    return np.asarray(values, dtype=np.float64)
