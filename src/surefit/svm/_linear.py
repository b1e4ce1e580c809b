"""What the two linear support vector machines share: checks of the data, rows that count, storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._consistency import wrong_counts, wrong_shapes
from .._namespace import is_torch, like, to_numpy
from .._threads import one_thread, rows_only
from ..base import scale_error
from ..design import RowBlocks, as_design
from ..inputs import is_native, validate_native_X
from ..solvers.box_dual import Intercept

__all__ = [
    "REMEDY",
    "check_size",
    "intercept_of",
    "linear_inconsistencies",
    "rows_of",
    "scores",
    "seed_of",
    "stored",
    "threads_for",
]

Array = NDArray[np.float64]
_LARGEST = 1e150  # whose squares, and sums of them, are still numbers
REMEDY = (
    "Liblinear failed to converge, increase the number of iterations. This is scikit-learn's text; here "
    "max_iter, or a larger tol, or scaled features (for instance StandardScaler) help."
)


def check_size(X: Any, y: Any = None) -> None:
    """Refuse values whose squares overflow float64."""
    flat = {} if y is None else {"y": y}
    if not isinstance(X, RowBlocks):
        flat["X"] = X.data if sp.issparse(X) else X
    for name, values in flat.items():
        if values.size if isinstance(values, np.ndarray) else values.numel():
            largest = max(float(values.max()), -float(values.min()))
            if largest > _LARGEST:
                raise scale_error(name, largest)


def intercept_of(model: Any) -> Intercept:
    """The intercept that the parameters ask for."""
    if not model.fit_intercept:
        return Intercept()
    if model.penalize_intercept:
        return Intercept(float(model.intercept_scaling))
    return Intercept(1.0, penalised=False)


def rows_of(X: Any, kept: NDArray[np.bool_]) -> Any:
    """The rows of positive weight: X itself, where that is all of them."""
    if kept.all():
        return X
    if isinstance(X, RowBlocks):
        X = X.home()
    return X.tocsr()[kept] if sp.issparse(X) else X[like(kept, X)]


def threads_for(X: Any) -> AbstractContextManager[None]:
    """One thread of the matrix library where rows are split by us, or where its products are short."""
    return one_thread if sp.issparse(X) else rows_only(X)


def seed_of(rng: np.random.RandomState) -> int:
    """A seed for a solver's own generator."""
    return int(rng.randint(np.iinfo(np.int32).max))


def stored(values: Array, X: Any) -> Any:
    """A fitted attribute: in the precision of X, and on its device where X is a tensor."""
    return like(values.astype(as_design(X).dtype, copy=False), X)


def scores(model: Any, X: Any) -> Any:
    """X @ coef_.T + intercept_ for tensors, on their device, and for row blocks; None for other X."""
    check_is_fitted(model)
    if not is_native(X):
        return None
    X = validate_native_X(model, X, reset=False)
    coef, intercept = to_numpy(model.coef_), to_numpy(model.intercept_)
    if is_torch(X):
        return X @ stored(coef.T, X) + stored(np.asarray(intercept), X)
    return X.dot(coef.astype(np.float64).T) + intercept


def linear_inconsistencies(
    model: Any,
    coef: tuple[int, ...],
    duals: tuple[int, ...],
    sample_weight: Any,
) -> Iterator[str]:
    """What the shapes, the intercept and the dual variables of a linear machine must have in common."""
    yield from wrong_shapes(model, {"coef_": coef, "dual_coef_": duals})
    if model.fit_intercept:
        yield from wrong_shapes(model, {"intercept_": coef[:-1] or (1,)})
    elif np.any(to_numpy(model.intercept_)):
        yield f"intercept_ is {model.intercept_!r}, and fit_intercept=False means 0"
    yield from wrong_counts(model, n_iter_=0)
    if model.n_iter_ > max(model.max_iter, 1):
        yield f"n_iter_ is {model.n_iter_}, and max_iter={model.max_iter}"
    if np.isinf(model.C):
        yield from wrong_shapes(model, {"farkas_": duals})
    beta = np.atleast_2d(np.asarray(model.dual_coef_, dtype=np.float64))
    if sample_weight is not None and beta[:, to_numpy(sample_weight) == 0.0].any():
        yield "dual_coef_ is not 0 on a row without weight"
