r"""k-means: min over labels z and centres c of sum_i w_i |x_i - c_{z_i}|^2, by Lloyd's algorithm.

What the certificate says: every label is the nearest centre in exact arithmetic; the centres are the means of
their rows (to rounding, or to ``tol`` where that ended the fit), a stationary point and no more; the sum of
squares is ``inertia_`` and never rose. Where there were restarts, how far apart they ended.

References
----------
Lloyd, "Least squares quantization in PCM" (1982); Arthur & Vassilvitskii, "k-means++" (2007).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _is_arraylike_not_scalar

from .._consistency import wrong_shapes
from .._namespace import like, to_numpy
from ..certificate import Claim
from ..design import as_design
from ..distributed import shared_random_state
from ..fingerprint import fingerprint
from ..solvers.lloyd import describe
from ._kmeans_claims import kmeans_claims
from ._kmeans_fit import Kept, best_of
from .base import Means, check_scale, held, stored_in

__all__ = ["KMeans"]


class KMeans(Means):
    """k-means clustering, a drop-in for :class:`sklearn.cluster.KMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
    init : {"k-means++", "random"}, callable or array-like, default="k-means++"
        An array has the shape (n_clusters, n_features); a callable takes X, n_clusters and random_state.
    n_init : "auto" or int, default="auto"
        Restarts, of which the best is kept; "auto" is 10 for ``init="random"`` or a callable, else 1.
    max_iter : int, default=300
    tol : float, default=1e-4
        Times the mean variance of the columns: the squared move of all centres at which to stop.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None
    copy_x : bool, default=True
        Without effect: X is never changed.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        Without effect: bounds that save work are always used, and labels are exact.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters, n_features), or a tensor
    labels_ : array of int32 of shape (n_samples,), or a tensor
    inertia_ : float
    n_iter_ : int
    inertia_trace_ : list of float
        The sum of squares in each iteration, and at the end.
    centers_before_ : array of shape (n_clusters, n_features)
        The centres one step before the last, from which the certificate checks a stop by ``tol``.
    restart_inertias_ : list of float
        Where each restart ended.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.cluster import KMeans
    >>> model = KMeans(2, random_state=0).fit([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> sorted(model.cluster_centers_.tolist()), model.inertia_
    ([[1.0, 2.0], [10.0, 2.0]], 16.0)
    >>> model.certificate_["labels"].observed
    0.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Means._parameter_constraints,
        "copy_x": ["boolean"],
        "algorithm": [StrOptions({"lloyd", "elkan"})],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
        certify: bool | str = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeans:
        """Find the centres; ``y`` is not used.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
        sample_weight : array-like of shape (n_samples,), optional
        """
        X, _, weights = self._validate_training_data(X, y, sample_weight, reset=True)
        design = as_design(X)
        self._check_count(design.shape[0])
        runs = self._runs()
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
                stacklevel=2,
            )
        given = self._given_centres(X)
        random_state = shared_random_state(design.group, self.random_state)
        w = held(weights, design)
        setting = describe(design, w, given)
        check_scale(setting.spread, 1.0 / setting.frame.scale)
        kept = Kept(self, design, lambda: fingerprint(X, None, weights))
        tol = self.tol * setting.variance
        found = best_of(self, X, design, w, setting, given, runs, random_state, tol, kept)
        self.cluster_centers_ = like(found.centres.astype(design.dtype), stored_in(design))
        self.labels_ = found.labels
        self.inertia_ = found.inertia
        self.n_iter_ = found.n_iter
        self.inertia_trace_ = found.trace
        self.centers_before_ = found.before
        self.restart_inertias_ = found.restarts
        present = np.unique(to_numpy(found.labels))
        distinct = len(np.unique(np.concatenate(design.group.gather(present))))
        if distinct < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({distinct}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self._seal(X, None, weights, found.stopped)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        design = as_design(X)
        yield from wrong_shapes(
            self,
            {
                "labels_": (design.rows_here,),
                "centers_before_": (self.n_clusters, int(X.shape[1])),
                "restart_inertias_": (self._runs_kept(),),
            },
        )
        if self.n_iter_ > self.max_iter:
            yield f"n_iter_ is {self.n_iter_}, and max_iter={self.max_iter}"

    def _runs_kept(self) -> int:
        """How many restarts a fit with these parameters records."""
        return 1 if _is_arraylike_not_scalar(self.init) else self._runs_asked_for()

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return kmeans_claims(self, X, sample_weight, full=full, tol=tol)

    def _remedy(self) -> str:
        return (
            "The centres still move, or the model is not that of these rows. You might want to increase "
            "max_iter, raise tol, or fit it again."
        )
