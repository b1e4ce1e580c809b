r"""Regression by the mean of the nearest neighbours' targets.

    f(x) = sum_{i in N_k(x)} w_i y_i / sum_{i in N_k(x)} w_i,

with N_k(x) the k nearest training rows. The claims are those of the classifier about its rows and its
search; see :mod:`surefit.neighbors.classifier`.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._consistency import wrong_shapes
from ._weights import neighbour_weights
from .base import Neighbours

__all__ = ["KNeighborsRegressor"]


class KNeighborsRegressor(RegressorMixin, MultiOutputMixin, Neighbours):
    """The mean of the k nearest rows, a drop-in for :class:`sklearn.neighbors.KNeighborsRegressor`.

    Parameters
    ----------
    n_neighbors : int, default=5
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        "distance" weights a neighbour by 1 / distance; a callable takes the array of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Where candidates are looked for; in the Euclidean distance it does not change the neighbours.
    leaf_size : int, default=30
        For the trees of other metrics.
    p : float, default=2
        Power of the Minkowski metric.
    metric : str, callable or DistanceMetric, default="minkowski"
    metric_params : dict, default=None
    n_jobs : int, default=None
        For other metrics; the Euclidean search uses the threads that the matrix library is allowed.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    effective_metric_, effective_metric_params_ : str or callable, dict
    n_samples_fit_ : int
    X_fit_ : {array, CSR matrix}
        The training rows.
    y_fit_ : array
        Their targets.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.neighbors import KNeighborsRegressor
    >>> model = KNeighborsRegressor(n_neighbors=2).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[1.5]]).tolist()
    [0.5]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Neighbours._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],  # predict asks for a number
        "weights": [StrOptions({"uniform", "distance"}), callable, None],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: Any = 2,
        metric: Any = "minkowski",
        metric_params: Any = None,
        n_jobs: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> KNeighborsRegressor:
        """Keep the rows and their targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Or (n_samples, n_samples) distances where ``metric="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        X, y, _ = self._validate_training_data(X, y, None, reset=True)
        self.y_fit_ = y
        self._keep(X)
        return self._seal(X, y, None)

    def predict(self, X: Any) -> NDArray[Any]:
        """The (weighted) mean of the neighbours' targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_queries, n_features), or None
            None for the training rows, each without itself: leave-one-out predictions.

        Returns
        -------
        array of shape (n_queries,) or (n_queries, n_outputs)
        """
        check_is_fitted(self)
        return self._predict_from_neighbours(*self.kneighbors(X))

    def _predict_from_neighbours(
        self, distances: Any, indices: Any, n_neighbors: int | None = None
    ) -> NDArray[Any]:
        """Predictions from lists of neighbours, nearest first, of which the first ``n_neighbors`` count.

        The lists of the largest k serve every smaller one.
        """
        distances, indices = distances[:, :n_neighbors], indices[:, :n_neighbors]
        weights = neighbour_weights(distances, self.weights)
        targets = self.y_fit_[indices]
        if weights is None:
            return targets.mean(axis=1)
        lifted = weights if targets.ndim == 2 else weights[:, :, None]
        total = weights.sum(axis=1)
        return (lifted * targets).sum(axis=1) / (total if targets.ndim == 2 else total[:, None])

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_shapes(self, {"y_fit_": y.shape})

    def _kept_targets(self) -> Any:
        return np.asarray(self.y_fit_)

    def _validate(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, **checks: Any) -> Any:
        return super()._validate(X, y, sample_weight, reset=reset, y_numeric=True, **checks)
