"""What the neighbour estimators share: the rows they keep, the search, and its claims.

Euclidean neighbours (also "minkowski" with p=2, "l2", "sqeuclidean") of dense and sparse rows come from
:class:`surefit.solvers.neighbours.NeighbourIndex`: the sets are exact for the floats given, ties broken
by the number of the row. ``algorithm`` then only says where candidates are looked for. Other metrics,
precomputed distances and callables are scikit-learn's own search, exact to the rounding of the metric.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import DistanceMetric
from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE, BallTree, KDTree
from sklearn.neighbors import NearestNeighbors as OtherMetrics
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .._consistency import wrong_shapes
from ..base import Certified
from ..certificate import Certificate, Claim
from ..fingerprint import fingerprint
from ..solvers.neighbours import NeighbourIndex
from ._claims import neighbours_claim, rows_claim, sampled_claim
from ._rows import narrow, without_self

__all__ = ["Neighbours"]

Array = NDArray[np.float64]
_EUCLIDEAN = ("euclidean", "l2", "sqeuclidean")
_TREE_FEATURES = 5  # up to here a tree is faster than products, if there are rows enough (measured)
_TREE_ROWS = 5000
_TREE_LIMIT = 15  # beyond it a tree visits nearly all rows: one that was asked for is not used
_METRICS = sorted({name for names in VALID_METRICS.values() for name in names})


class Neighbours(Certified):
    """A model that keeps its training rows, ``X_fit_``, and answers from the nearest of them."""

    n_neighbors: Any
    algorithm: str
    leaf_size: int
    metric: Any
    p: Any
    metric_params: Any
    n_jobs: Any
    X_fit_: Any
    _may_be_nan: ClassVar[dict[str, str]] = {
        "X_fit_": "metric='nan_euclidean' takes rows with gaps; other rows were checked before the fit"
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "algorithm": [StrOptions({"auto", "ball_tree", "kd_tree", "brute"})],
        "leaf_size": [Interval(Integral, 1, None, closed="left")],
        "p": [Interval(Real, 0, None, closed="right"), None],
        "metric": [StrOptions(set(_METRICS)), callable, DistanceMetric],
        "metric_params": [dict, None],
        "n_jobs": [Integral, None],
        "certify": Certified._certify_constraint,
    }

    # ------------------------------------------------------------------ fitting

    def _keep(self, X: Any) -> None:
        """Store validated rows, after scikit-learn's own checks of metric, algorithm and shapes."""
        model = self._checked_metric(X)
        whole = self.metric == "precomputed"
        self.effective_metric_ = model.effective_metric_
        self.effective_metric_params_ = model.effective_metric_params_
        self._other = None
        if not self._euclidean:
            self._other = model if whole else model.fit(X)
        self.X_fit_ = X
        self.n_samples_fit_ = X.shape[0]
        self._index = self._new_index() if self._euclidean else None

    def _checked_metric(self, X: Any) -> Any:
        """scikit-learn's search with this metric and these settings, on as few rows as it needs."""
        names = ("algorithm", "leaf_size", "metric", "p", "metric_params", "n_jobs")
        model = OtherMetrics(**{name: getattr(self, name) for name in names})
        return model.fit(X if self.metric == "precomputed" else X[:1])

    @property
    def _euclidean(self) -> bool:
        metric = self.effective_metric_
        return (
            isinstance(metric, str) and metric in _EUCLIDEAN and not self.effective_metric_params_
        )

    def _new_index(self) -> NeighbourIndex:
        rows = self.X_fit_
        n, p = rows.shape
        if self.algorithm == "auto":
            tree = p <= _TREE_FEATURES and n >= _TREE_ROWS
        else:
            tree = self.algorithm != "brute" and p <= _TREE_LIMIT
        if not sp.issparse(rows):
            rows = np.ascontiguousarray(rows)
        return NeighbourIndex(rows, tree=tree)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        """Validated ``X, y, None``; X may also be a tree of scikit-learn's or a fitted neighbour model."""
        if sample_weight is not None:
            raise ValueError(
                f"{type(self).__name__} takes no sample_weight: neighbours are counted, not weighted. "
                "Leave it out, or set weights='distance' or a callable."
            )
        if isinstance(X, (KDTree, BallTree)):
            X = np.asarray(X.data)
        elif isinstance(X, Neighbours):
            X = X.X_fit_
        checks = self._checks()
        if self.__sklearn_tags__().target_tags.required:
            return self._validate(X, y, None, reset=reset, multi_output=True, **checks)
        if reset:
            self.__dict__.pop("certificate_", None)
        return self._floats(validate_data(self, X, reset=reset, **checks)), None, None

    def _validate(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, **checks: Any) -> Any:
        X, y, sample_weight = super()._validate(X, y, sample_weight, reset=reset, **checks)
        return self._floats(X), y, sample_weight

    def _checks(self) -> dict[str, Any]:
        """How X is validated: whole numbers stay, since other metrics may ask for them."""
        missing = isinstance(self.metric, str) and self.metric == "nan_euclidean"
        finite = "allow-nan" if missing else True
        return {
            "accept_sparse": "csr", "dtype": "numeric", "order": "C", "ensure_all_finite": finite
        }  # fmt: skip

    def _floats(self, X: Any) -> Any:
        """Rows for the Euclidean search are float32 or float64; sparse ones have no entry twice."""
        if not isinstance(self.metric, str) or self.metric not in (*_EUCLIDEAN, "minkowski"):
            return narrow(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        if sp.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    # ------------------------------------------------------------------ queries

    def kneighbors(
        self, X: Any = None, n_neighbors: Any = None, return_distance: bool = True
    ) -> Any:
        """The nearest training rows of each query, nearest first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_queries, n_features), optional
            Queries; ``(n_queries, n_samples_fit_)`` distances where ``metric="precomputed"``. Without it, the
            neighbours of each training row, itself not counted.
        n_neighbors : int, optional
            How many; the parameter of the model by default.
        return_distance : bool, default=True

        Returns
        -------
        distances : array of shape (n_queries, n_neighbors)
            Only with ``return_distance``.
        indices : array of shape (n_queries, n_neighbors)
        """
        check_is_fitted(self)
        k = self._checked_count(n_neighbors)
        queries = None if X is None else self._checked_queries(X)
        count = self.n_samples_fit_ if queries is None else queries.shape[0]
        if k + (queries is None) > self.n_samples_fit_:
            relation = "<" if queries is None else "<="
            raise ValueError(
                f"Expected n_neighbors {relation} n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {self.n_samples_fit_}, n_samples = {count}. Lower n_neighbors."
            )
        distances, indices = self._nearest(queries, k)
        return (distances, indices) if return_distance else indices

    def _nearest(self, queries: Any, k: int) -> tuple[Array, NDArray[np.int64]]:
        """Distances and row numbers for queries that were checked; None for the training rows."""
        if not self._euclidean:
            distances, indices = self._fitted_other().kneighbors(queries, k)
            return distances, indices
        if queries is None:
            return without_self(*self._search(self.X_fit_, k + 1))
        return self._search(queries, k)

    def _search(self, queries: Any, k: int) -> tuple[Array, NDArray[np.int64]]:
        """The exact Euclidean search."""
        index = self.__dict__.get("_index")
        if (
            index is None or index.source is not self.X_fit_
        ):  # a model from a file, or a changed one
            index = self._index = self._new_index()
        distances, indices = index.query(queries, k)
        return (np.square(distances) if self.metric == "sqeuclidean" else distances), indices

    def _fitted_other(self) -> Any:
        """scikit-learn's search, for the metrics that are not Euclidean and for radii."""
        model = self.__dict__.get("_other")
        if model is None:
            settings = self.get_params(deep=False)
            known = OtherMetrics().get_params(deep=False)
            model = OtherMetrics(
                **{name: value for name, value in settings.items() if name in known}
            ).fit(self.X_fit_)
            self._other = model if not self._euclidean else None
        return model

    def __getstate__(self) -> dict[str, Any]:
        """The rows without what the search made of them, which is made again when it is needed."""
        state: dict[str, Any] = super().__getstate__()
        return {name: v for name, v in state.items() if name not in ("_index", "_other")}

    def _checked_count(self, n_neighbors: Any) -> int:
        if n_neighbors is None:
            n_neighbors = self.n_neighbors
        elif not isinstance(n_neighbors, Integral):
            raise TypeError(
                f"n_neighbors does not take {type(n_neighbors)} value, enter integer value"
            )
        if n_neighbors is None or n_neighbors <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {n_neighbors}")
        return int(n_neighbors)

    def _checked_queries(self, X: Any) -> Any:
        if self.metric == "precomputed":
            queries = X if sp.issparse(X) else check_array(X, ensure_non_negative=True)
            if queries.shape[1] != self.n_samples_fit_:
                raise ValueError(
                    f"X has {queries.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_samples_fit_} features as input: with metric='precomputed', the distances "
                    "to all training rows."
                )
            return queries
        queries = self._floats(validate_data(self, X, reset=False, **self._checks()))
        trees = self.algorithm in ("kd_tree", "ball_tree") and not sp.issparse(self.X_fit_)
        if self._euclidean and sp.issparse(queries) and trees:
            raise ValueError(
                f"{self.algorithm} does not work with sparse matrices. Densify the data, or set "
                "algorithm='brute'"
            )
        return queries

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: Any = None, mode: str = "connectivity"
    ) -> Any:
        """The neighbours as a CSR matrix of shape (n_queries, n_samples_fit_).

        Parameters
        ----------
        X, n_neighbors : as in :meth:`kneighbors`
        mode : {"connectivity", "distance"}
            Entries 1, or the distances.
        """
        check_is_fitted(self)
        if mode not in ("connectivity", "distance"):
            raise ValueError(
                'Unsupported mode, must be one of "connectivity", or "distance" but got '
                f'"{mode}" instead'
            )
        distances, indices = self.kneighbors(X, n_neighbors)
        m, k = indices.shape
        values = distances.ravel() if mode == "distance" else np.ones(m * k)
        start = np.arange(0, m * k + 1, k)
        return sp.csr_matrix((values, indices.ravel(), start), shape=(m, self.n_samples_fit_))

    # ------------------------------------------------------------------ claims

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_shapes(self, {"X_fit_": tuple(X.shape)})
        numbers = self.X_fit_.data if sp.issparse(self.X_fit_) else self.X_fit_
        if self.metric != "nan_euclidean" and np.isnan(numbers).any():
            yield "X_fit_ holds NaN"
        if (
            not isinstance(self.n_samples_fit_, Integral)
            or self.n_samples_fit_ != self.X_fit_.shape[0]
        ):
            yield f"n_samples_fit_ is {self.n_samples_fit_!r}, and X_fit_ has {self.X_fit_.shape[0]} rows"
        meant = self._checked_metric(X)
        if self.effective_metric_ != meant.effective_metric_ or not _same_settings(
            self.effective_metric_params_, meant.effective_metric_params_
        ):
            yield (
                f"effective_metric_ is {self.effective_metric_!r} with {self.effective_metric_params_}, and "
                f"the parameters mean {meant.effective_metric_!r} with {meant.effective_metric_params_}"
            )

    def certify_neighbors(self, X: Any, n_neighbors: Any = None) -> Certificate:
        """A certificate that the neighbours of these queries are the exact ones.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        n_neighbors : int, optional

        Examples
        --------
        >>> from surefit.neighbors import NearestNeighbors
        >>> model = NearestNeighbors(n_neighbors=1).fit([[0.0], [0.3], [1.0]])
        >>> model.certify_neighbors([[0.15], [2.0]])["exact neighbours"].observed
        0.0
        """
        check_is_fitted(self)
        _, indices = self.kneighbors(X, n_neighbors)
        queries = self._checked_queries(X)
        claim = neighbours_claim(
            self.X_fit_, queries, indices, self.effective_metric_, self.effective_metric_params_,
            f"{len(indices)} queries",
        )  # fmt: skip
        return Certificate((claim,), fingerprint(self.X_fit_, queries), "", type(self).__name__)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return [rows_claim(self.X_fit_, X, self._kept_targets(), y), sampled_claim(self, full=full)]

    def _kept_targets(self) -> Any:
        """The targets as they were given, from the stored ones."""
        return None

    def _remedy(self) -> str:
        return "The model no longer holds the rows it was fitted on, or its search is wrong: fit it again."

    def _takes_sparse(self) -> bool:
        if not isinstance(self.metric, str):
            return True
        powers = {1: "manhattan", 2: "euclidean"}  # the Minkowski metrics that have a name there
        plain = self.metric_params is None and self.metric == "minkowski"
        return (powers.get(self.p, "") if plain else self.metric) in VALID_METRICS_SPARSE["brute"]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "X_fit_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.positive_only = tags.input_tags.pairwise
        tags.input_tags.allow_nan = isinstance(self.metric, str) and self.metric == "nan_euclidean"
        return tags


def _same_settings(one: dict[str, Any], two: dict[str, Any]) -> bool:
    """Whether two sets of a metric's parameters are equal, arrays included."""
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)
