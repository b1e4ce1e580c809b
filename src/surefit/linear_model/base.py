"""What the linear regressors share: validation, prediction, dtypes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..base import SPARSE_FORMATS, Certified, scale_error

__all__ = ["LinearRegressor", "check_scale", "check_solution"]

Array = NDArray[np.float64]


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
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        X = validate_data(
            self, X, accept_sparse=SPARSE_FORMATS, dtype=[np.float64, np.float32], reset=False
        )
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(
            X, y, sample_weight, reset=reset, y_numeric=True, multi_output=True
        )
        y = np.asarray(y, dtype=np.float64)
        check_scale(X, y, self._overflow)
        return X, y, sample_weight

    def _store(
        self, coef: Array, intercept: Array, y: Array, dtype: Any, *, flat: bool = False
    ) -> None:
        """Public attributes from (p, T) coefficients: scikit-learn's shapes, X's precision.

        With ``flat``, a target of shape (n, 1) gives ``coef_`` of shape (p,), as in Ridge and Lasso.
        """
        check_solution(coef, intercept)
        if y.ndim == 1:
            coef, intercept = coef[:, 0], intercept[0]
        elif flat and y.shape[1] == 1:
            coef = coef[:, 0]
        self.coef_ = np.ascontiguousarray(coef.T, dtype=dtype)
        self.intercept_ = np.asarray(intercept, dtype=dtype)[()] if self.fit_intercept else 0.0

    def _solution(self) -> tuple[Array, Array]:
        """(p, T) coefficients and (T,) intercepts from the public attributes."""
        coef = np.atleast_2d(self.coef_).T
        return coef, np.broadcast_to(np.atleast_1d(self.intercept_), coef.shape[1:])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def check_scale(X: Any, y: Array | None = None, words: str = "") -> None:
    """Refuse values whose squares overflow float64; one pass over X, none where X is float32."""
    flat = {"X": X.data if sp.issparse(X) else X.ravel(order="K")}
    if y is not None:
        flat["y"] = y.ravel()
    with np.errstate(over="ignore"):
        size = {name: float(v @ v) if v.dtype == np.float64 else 1.0 for name, v in flat.items()}
        if np.isfinite(np.prod([max(1.0, total) for total in size.values()])):  # so is (X'y)^2
            return
    name = max(size, key=lambda name: size[name])
    raise scale_error(name, float(np.abs(flat[name]).max()), words)


def check_solution(*arrays: Array) -> None:
    """Refuse a solution that overflowed: the data were too large for float64 squares."""
    for array in arrays:
        if not np.isfinite(array).all():
            raise ValueError(
                "the fit gave non-finite coefficients: X or y has values whose squares overflow "
                "float64. Rescale them first, for instance with StandardScaler."
            )
