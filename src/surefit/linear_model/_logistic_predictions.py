"""Scores, labels and probabilities of a linear classifier whose scores are log-odds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._namespace import array_namespace, is_torch, like, to_numpy
from .._ranks import RankVector
from ..inputs import is_native
from .base import native_scores

if TYPE_CHECKING:
    from ..inference import Summary

__all__ = ["LogOddsClassifier", "distinct"]


class LogOddsClassifier(LinearClassifierMixin):
    """Mixin: P(class k | x) is the softmax of the scores X @ coef_.T + intercept_ (sigma, for two)."""

    classes_: NDArray[Any]
    coef_: Any
    intercept_: Any

    def decision_function(self, X: Any) -> Any:
        """Scores X @ coef_.T + intercept_: one column a class, or one number for two classes."""
        check_is_fitted(self)
        if is_native(X) or is_torch(self.coef_):
            scores = native_scores(self, X) if is_native(X) else self._numpy_scores(X)
            return scores[:, 0] if scores.shape[1] == 1 else scores
        return super().decision_function(X)

    def _numpy_scores(self, X: Any) -> Any:
        """Arrays, scored by a model that was fitted on tensors."""
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return X @ to_numpy(self.coef_).T + to_numpy(self.intercept_)

    def predict(self, X: Any) -> Any:
        """The label with the largest score; a tensor on the device of X where X is one."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            chosen = array_namespace(scores).astype(scores > 0, array_namespace(scores).int64)
        else:
            chosen = array_namespace(scores).argmax(scores, axis=1)
        return like(self.classes_, scores)[chosen]

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class; columns in the order of ``classes_``, rows sum to 1."""
        z = self.decision_function(X)
        if is_torch(z):
            return z.softmax(1) if z.ndim == 2 else _both((-z).sigmoid(), z.sigmoid())
        if z.ndim == 1:
            return np.column_stack([expit(-z), expit(z)])
        return softmax(z, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of :meth:`predict_proba`, without underflow."""
        z = self.decision_function(X)
        if is_torch(z):
            if z.ndim == 1:
                z = _both(-0.5 * z, 0.5 * z)
            return z.log_softmax(1)
        if z.ndim == 1:
            return np.column_stack([log_expit(-z), log_expit(z)])
        return log_softmax(z, axis=1)

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
        reference: Any = None,
    ) -> Summary:
        """Coefficients with standard errors and intervals, the likelihood, AIC, BIC and McFadden's R^2.

        Parameters are those of :meth:`surefit.linear_model.LinearRegression.summary`, and

        Parameters
        ----------
        reference : label, optional
            The class that the others are compared with. Default: the first of two classes, and for more the
            mean over the classes, as in ``coef_``.

        Returns
        -------
        surefit.inference.Summary
        """
        from ._summary import summarize

        return summarize(
            self, X, y, sample_weight, level=level, covariance=covariance, weights=weights,
            feature_names=feature_names, reference=reference,
        )  # fmt: skip


def distinct(y: Any) -> NDArray[Any]:
    """The labels that occur, in order; on any rank, where the rows are spread over ranks."""
    if isinstance(y, RankVector):
        return np.unique(np.concatenate(y.spread.group.gather(distinct(y.here))))
    if is_torch(y):
        return to_numpy(array_namespace(y).unique_values(y))
    if y.dtype.kind in "iu" and len(y) and int(y.min()) >= 0 and int(y.max()) < 1000:
        return np.flatnonzero(np.bincount(y)).astype(y.dtype)
    return np.unique(y)


def _both(first: Any, second: Any) -> Any:
    return array_namespace(first).stack([first, second], axis=1)
