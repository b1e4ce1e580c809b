"""What the linear regressors share: validation, prediction, dtypes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import assert_all_finite, check_is_fitted, validate_data

from .._namespace import is_torch, like, to_numpy
from .._ranks import RankVector
from .._threads import over_rows
from ..base import SPARSE_FORMATS, Certified, scale_error
from ..design import Design, RankRows, as_design
from ..inputs import is_native, validate_native_X
from ._attribute_checks import wrong_intercept, wrong_shapes

if TYPE_CHECKING:
    from ..inference import Summary

__all__ = [
    "LinearRegressor",
    "check_scale",
    "check_solution",
    "explained_errors",
    "largest_term",
    "native_scores",
    "stored",
    "trusts_scale",
]

Array = NDArray[np.float64]
_LEAST = {"X": 1e-305, "y": 0.0}  # a sum of squares up to this has underflowed


class LinearRegressor(MultiOutputMixin, RegressorMixin, Certified):
    """A regressor that predicts X @ coef_.T + intercept_."""

    coef_: NDArray[Any]
    intercept_: Any
    fit_intercept: bool
    _overflow: ClassVar[str] = ""  # how scikit-learn's error for values that overflow begins

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the linear model.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets), or a tensor on the device of X
        """
        check_is_fitted(self)
        if is_native(X):
            return native_scores(self, X)
        X = validate_data(
            self, X, accept_sparse=SPARSE_FORMATS, dtype=[np.float64, np.float32], reset=False
        )
        return np.asarray(X @ to_numpy(self.coef_).T) + to_numpy(self.intercept_)

    def summary(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        level: float = 0.95,
        covariance: str = "auto",
        weights: str = "precision",
        feature_names: Any = None,
    ) -> Summary:
        """Coefficients with standard errors and intervals, the noise model, AIC, BIC and R^2.

        Parameters
        ----------
        X, y, sample_weight : array-like
            The training data; a warning says when they are not.
        level : float, default=0.95
            Confidence level of the intervals.
        covariance : str, default="auto"
            "fisher" for noise of equal variance (the default for least squares), "HC0" to "HC3" for a
            sandwich that allows the variance to differ from row to row; others as the model offers.
        weights : {"precision", "frequency"}, default="precision"
            What sample weights mean: the noise variance of a row is proportional to 1 / weight, or the
            row was seen that many times.
        feature_names : sequence of str, optional
            Default: those of the training data, or x0, x1, ...

        Returns
        -------
        surefit.inference.Summary
        """
        from ._summary import summarize

        return summarize(
            self, X, y, sample_weight, level=level, covariance=covariance, weights=weights,
            feature_names=feature_names,
        )  # fmt: skip

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(
            X, y, sample_weight, reset=reset, y_numeric=True, multi_output=True
        )
        check_scale(X, y, self._overflow)
        return X, y, sample_weight

    def _store(self, coef: Array, intercept: Array, y: Any, X: Any, *, flat: bool = False) -> None:
        """Public attributes from (p, T) coefficients: scikit-learn's shapes, X's precision and device.

        With ``flat``, a target of shape (n, 1) gives ``coef_`` of shape (p,), as in Ridge and Lasso.
        """
        check_solution(coef, intercept)
        if y.ndim == 1:
            coef, intercept = coef[:, 0], intercept[0]
        elif flat and y.shape[1] == 1:
            coef = coef[:, 0]
        self.coef_ = stored(np.ascontiguousarray(coef.T), X)
        self.intercept_ = stored(np.asarray(intercept), X)[()] if self.fit_intercept else 0.0

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        targets: tuple[int, ...] = () if y.ndim == 1 else (int(y.shape[1]),)
        shapes = [(*targets, X.shape[1])] + [(X.shape[1],)] * (targets == (1,))
        offsets: list[tuple[int, ...]] = [targets] + [()] * (not self.fit_intercept)
        yield from wrong_shapes(self, coef_=shapes, intercept_=offsets)
        yield from wrong_intercept(self)

    def _solution(self) -> tuple[Array, Array]:
        """(p, T) coefficients and (T,) intercepts from the public attributes."""
        coef = np.atleast_2d(to_numpy(self.coef_)).T
        return coef, np.broadcast_to(np.atleast_1d(to_numpy(self.intercept_)), coef.shape[1:])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def largest_term(design: Design, coef: NDArray[Any]) -> float:
    """A bound of the terms that any prediction is the sum of."""
    return float(design.column_norms(design.ones()) @ np.abs(coef.astype(np.float64)))


def trusts_scale(X: Any) -> bool:
    """Whether :func:`check_scale` will find a NaN or an infinity in X, so that nobody else need look."""
    return isinstance(X, np.ndarray) and X.dtype == np.float64


def check_scale(
    X: Any, y: Array | None = None, words: str = "", estimator: str | None = None
) -> None:
    """Refuse values whose squares overflow float64; one pass over X, none where X is float32."""
    if isinstance(X, RankRows):
        near = y.here if isinstance(y, RankVector) else y
        X.group.agree(lambda: check_scale(X.rows, near, words, estimator))
        return
    flat: dict[str, Any] = {"y": y.reshape(-1)} if y is not None else {}
    if not isinstance(X, Design):  # whose blocks are checked as they are read
        flat["X"] = X.data if sp.issparse(X) else X.reshape(-1) if is_torch(X) else X.ravel("K")
    with np.errstate(over="ignore"):
        size = {name: _square(v) if v.dtype.itemsize == 8 else 1.0 for name, v in flat.items()}
        if np.isfinite(np.prod(np.maximum(1.0, list(size.values())))):  # so is (X'y)^2
            _check_underflow(flat, size)
            return
    if trusts_scale(X):
        assert_all_finite(X, estimator_name=estimator, input_name="X")
    name = max(size, key=lambda name: size[name])
    raise scale_error(name, float(abs(flat[name]).max()), words)


def _check_underflow(flat: dict[str, Any], size: dict[str, float]) -> None:
    """Refuse values whose squares underflow float64, unless all are 0."""
    for name, v in flat.items():
        if size[name] > _LEAST[name] or v.dtype.itemsize < 8:
            continue
        largest = float(abs(v).max()) if len(v) else 0.0
        if largest > 0.0:
            raise ValueError(
                f"{name} has no value larger than {largest:.3g}, whose squares underflow float64. "
                f"Rescale {name} first, for instance by dividing it by {largest:.0e}."
            )


@contextlib.contextmanager
def explained_errors(X: Any, **parameters: Any) -> Iterator[None]:
    """Turn an error of the linear algebra, which extreme scales cause, into one that names them."""
    try:
        yield
    except (np.linalg.LinAlgError, OverflowError) as error:
        design = as_design(X)
        length = float(design.column_norms(design.ones()).max(initial=0.0))
        given = "".join(f", {name}={value!r}" for name, value in parameters.items())
        raise ValueError(
            f"the linear algebra of the fit broke off ({error}): the longest column of X has the norm "
            f"{length:.3g}{given}. Scale the columns of X to similar sizes, for instance with "
            "StandardScaler, and choose the penalty for that scale."
        ) from error


def _square(v: Any) -> float:
    """v'v, the stretches of a long array side by side."""
    return sum(over_rows(len(v), lambda first, last: float(v[first:last] @ v[first:last]), 1 << 18))


def stored(values: Array, X: Any) -> Any:
    """A fitted attribute: in the precision of X, and on its device where X is a tensor."""
    return like(values.astype(as_design(X).dtype, copy=False), X)


def native_scores(model: Any, X: Any) -> Any:
    """X @ coef_.T + intercept_ for tensors, on their device, and for row blocks."""
    X = validate_native_X(model, X, reset=False)
    coef, intercept = to_numpy(model.coef_), to_numpy(model.intercept_)
    if isinstance(X, RankRows):  # predictions are of the rows held here
        X = X.rows if is_torch(X.rows) else X.local
    if is_torch(X):
        return X @ stored(coef.T, X) + stored(intercept, X)
    return X.dot(coef.astype(np.float64).T) + intercept


def check_solution(*arrays: Array) -> None:
    """Refuse a solution that overflowed: the data were too large for float64 squares."""
    for array in arrays:
        if not np.isfinite(array).all():
            raise ValueError(
                "the fit gave non-finite coefficients: X or y has values whose squares overflow "
                "float64. Rescale them first, for instance with StandardScaler."
            )
