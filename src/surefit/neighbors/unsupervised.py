"""The search alone: which training rows are nearest.

The claims are those of the classifier about its rows and its search; see :mod:`surefit.neighbors.classifier`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from .base import Neighbours

__all__ = ["NearestNeighbors"]


class NearestNeighbors(Neighbours):
    """Exact nearest rows, a drop-in for :class:`sklearn.neighbors.NearestNeighbors`.

    Parameters
    ----------
    n_neighbors : int, default=5
    radius : float, default=1.0
        For :meth:`radius_neighbors`, which is scikit-learn's search, in floating point: no claim is made
        about it.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Where candidates are looked for; in the Euclidean distance it does not change the neighbours.
    leaf_size : int, default=30
        For the trees of other metrics.
    metric : str, callable or DistanceMetric, default="minkowski"
    p : float, default=2
        Power of the Minkowski metric.
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
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.neighbors import NearestNeighbors
    >>> model = NearestNeighbors(n_neighbors=2).fit([[0.0], [1.0], [3.0]])
    >>> model.kneighbors([[1.2]], return_distance=False).tolist()
    [[1, 0]]
    """

    paradigm = "unsupervised"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Neighbours._parameter_constraints,
        "radius": [Interval(Real, 0, None, closed="both"), None],
    }

    def __init__(
        self,
        *,
        n_neighbors: Any = 5,
        radius: Any = 1.0,
        algorithm: str = "auto",
        leaf_size: int = 30,
        metric: Any = "minkowski",
        p: Any = 2,
        metric_params: Any = None,
        n_jobs: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> NearestNeighbors:
        """Keep the rows; ``y`` is not used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Or (n_samples, n_samples) distances where ``metric="precomputed"``.
        """
        X, _, _ = self._validate_training_data(X, None, None, reset=True)
        self._keep(X)
        return self._seal(X, None, None)

    def radius_neighbors(
        self,
        X: Any = None,
        radius: Any = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> Any:
        """All rows within a radius of each query, by scikit-learn's search."""
        check_is_fitted(self)
        return self._fitted_other().radius_neighbors(
            X, self.radius if radius is None else radius, return_distance, sort_results
        )

    def radius_neighbors_graph(
        self,
        X: Any = None,
        radius: Any = None,
        mode: str = "connectivity",
        sort_results: bool = False,
    ) -> Any:
        """The same as a CSR matrix of shape (n_queries, n_samples_fit_)."""
        check_is_fitted(self)
        return self._fitted_other().radius_neighbors_graph(
            X, self.radius if radius is None else radius, mode, sort_results
        )
