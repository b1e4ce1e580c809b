r"""Decorrelate: features less their part that is linear in the sensitive attribute (FAIR-6, pre-processing).

    x' = x - alpha B'(a - mean(a)),      B = argmin_B ||X - mean(X) - (A - mean(A)) B||^2

Each column is replaced by its residual in the regression on A, so that the covariance of X' with A is zero
on the rows of the fit (alpha = 1), or (1 - alpha) of what it was. With indicators of groups this makes the
mean of every column the same in all groups. What is not linear (a spread that differs, a product of
columns) stays.

Certificate: *covariance* (EXACT), recomputed from the data and ``coef_``, and at rounding level; *means*
(EXACT): those of the features are kept, which pins down ``attribute_mean_``.

Reference: Kamiran & Calders, "Data preprocessing techniques for classification without discrimination"
(2012).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from ..certificate import Claim, Kind
from ._sensitive import Beside, UsesSensitive, wrong_shape

__all__ = ["Decorrelate"]

Array = NDArray[np.float64]


class Decorrelate(TransformerMixin, UsesSensitive):
    """Remove from every feature what is linear in the sensitive attribute.

    Parameters
    ----------
    sensitive_columns : sequence of int or str, int, str or None, default=None
        Columns of X that hold the sensitive attribute; they are left out of the output. ``None`` when it is
        given beside X, as ``fit(X, sensitive=...)`` and ``transform(X, sensitive=...)``.
    alpha : float, default=1.0
        How much of it to remove, from 0 to 1.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_attributes, n_features_out)
        B of the regression on the sensitive attribute.
    attribute_mean_ : array of shape (n_attributes,)
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.fair import Decorrelate
    >>> sex = np.array([0.0, 0.0, 1.0, 1.0])
    >>> X = np.column_stack([sex, [1.0, 2.0, 5.0, 6.0]])
    >>> Decorrelate(sensitive_columns=[0]).fit_transform(X).ravel().tolist()
    [3.0, 4.0, 3.0, 4.0]
    """

    paradigm = "transform"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "sensitive_columns": ["array-like", str, int, None],
        "alpha": [Interval(Real, 0, 1, closed="both")],
        "certify": UsesSensitive._certify_constraint,
    }

    def __init__(
        self,
        sensitive_columns: Any = None,
        *,
        alpha: float = 1.0,
        certify: bool | str = True,
    ) -> None:
        self.sensitive_columns = sensitive_columns
        self.alpha = alpha
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, sensitive: Any = None) -> Decorrelate:
        """Regress the features on the sensitive attribute.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : not used
        sensitive : array-like of shape (n_samples,), optional
            Labels of any kind, instead of ``sensitive_columns``.
        """
        given = X if sensitive is None else Beside(X, sensitive)
        Z, _, _ = self._validate_training_data(given, None, None, reset=True)
        features, attributes = self._features(Z), self._attributes(Z)
        self.attribute_mean_ = attributes.mean(axis=0) if attributes.size else np.zeros(0)
        centred = attributes - self.attribute_mean_
        values = features - features.mean(axis=0)
        # through the few columns of A: an orthogonal basis of them, whatever the number of features
        basis, sizes, right = np.linalg.svd(centred, full_matrices=False)
        kept = sizes > sizes.max(initial=0.0) * max(centred.shape) * np.finfo(np.float64).eps
        self.coef_ = (right[kept].T / sizes[kept]) @ (basis[:, kept].T @ values)
        return self._seal(Z, None, None, "the regression was solved")

    def transform(self, X: Any, *, sensitive: Any = None) -> Any:
        """The features less ``alpha`` times their part that is linear in the sensitive attribute."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        Z = self._joined(X, sensitive, reset=False)
        return self._apply(Z).astype(X.dtype, copy=False)

    def fit_transform(self, X: Any, y: Any = None, *, sensitive: Any = None) -> Any:
        """Fit, and transform the same rows."""
        return self.fit(X, y, sensitive=sensitive).transform(X, sensitive=sensitive)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns that are left."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(self.n_features_in_)]
        if input_features is not None:
            if len(input_features) != self.n_features_in_:
                raise ValueError(
                    f"input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(input_features)}"
                )
            if hasattr(self, "feature_names_in_") and list(input_features) != list(names):
                raise ValueError("input_features is not equal to feature_names_in_")
            names = input_features
        return np.asarray(names, dtype=object)[self._feature_places(self.n_features_in_)]

    def _validate_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        if reset:
            self.__dict__.pop("certificate_", None)
        X = validate_data(
            self, X, dtype=[np.float64, np.float32], reset=reset, ensure_min_samples=1
        )
        return X, None

    def _features(self, Z: Any) -> Array:
        """The columns to be changed, in float64."""
        return np.asarray(
            self._columns(Z, self._feature_places(self.n_features_in_)), dtype=np.float64
        )

    def _apply(self, Z: Any) -> Array:
        return self._features(Z) - self.alpha * (
            (self._attributes(Z) - self.attribute_mean_) @ self.coef_
        )

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        attributes = self._n_attributes()
        features = len(self._feature_places(self.n_features_in_))
        yield from wrong_shape(self, "coef_", attributes, features)
        yield from wrong_shape(self, "attribute_mean_", attributes)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        features, changed = self._features(X), self._apply(X)
        return [
            covariance_claim(features, changed, self._attributes(X), self.alpha),
            means_claim(features, changed, self.alpha * self._reach(X)),
        ]

    def _reach(self, Z: Any) -> Array:
        """The most that the sensitive attribute can take from each column."""
        return np.abs(self._attributes(Z)).max(axis=0, initial=0.0) @ np.abs(self.coef_)

    def _remedy(self) -> str:
        return "The columns differ so much in scale that rounding shows: standardise them first."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def covariance_claim(features: Array, changed: Array, attributes: Array, alpha: float) -> Claim:
    """cov(X', A) is (1 - alpha) cov(X, A), relative to the scales of the columns before the change."""
    n = len(features)
    if not attributes.shape[1]:
        words = "there is no sensitive column: nothing is removed"
        return Claim.check("covariance", words, Kind.EXACT, 0.0, 0.0, "FAIR-6")
    centred = attributes - attributes.mean(axis=0)
    before = (features - features.mean(axis=0)).T @ centred / n
    after = (changed - changed.mean(axis=0)).T @ centred / n
    sizes = np.abs(features).max(axis=0) * np.sqrt((centred**2).mean(axis=0))[:, None]
    excess = np.abs(after - (1.0 - alpha) * before).T
    relative = np.divide(excess, sizes, out=excess.copy(), where=sizes != 0)  # NaN stays NaN
    observed = float(relative.max(initial=0.0)) if np.isfinite(relative).all() else np.nan
    left = "zero" if alpha == 1.0 else f"{1.0 - alpha:g} of what it was"
    statement = (
        f"the covariance of every feature with the sensitive attribute is {left}, to {observed:.1e} of the "
        f"scale of the columns"
    )
    # n terms are added, and the regression is solved with that rounding too
    bound = 64.0 * np.finfo(np.float64).eps * (1.0 + np.sqrt(n)) * attributes.shape[1]
    return Claim.check("covariance", statement, Kind.EXACT, observed, bound, "FAIR-6")


def means_claim(features: Array, changed: Array, reach: Array) -> Claim:
    """mean(X') is mean(X): what is taken from one group is given to the others."""
    sizes = np.abs(features).max(axis=0, initial=0.0) + reach  # what rounding is relative to
    moved = np.abs(changed.mean(axis=0) - features.mean(axis=0))
    relative = np.divide(moved, sizes, out=moved.copy(), where=sizes != 0)  # NaN stays NaN
    observed = float(relative.max(initial=0.0)) if np.isfinite(relative).all() else np.nan
    statement = (
        f"the mean of every feature is what it was, to {observed:.1e} of the scale of the column"
    )
    bound = 64.0 * np.finfo(np.float64).eps * (1.0 + np.sqrt(len(features)))
    return Claim.check("means", statement, Kind.EXACT, observed, bound, "FAIR-6")
