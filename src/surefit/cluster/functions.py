"""k-means as functions, with scikit-learn's arguments."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import _check_sample_weight

from .._namespace import is_torch, like
from ..design import Design, as_design
from ..inputs import checked_tensor
from ..solvers.seeding import plus_plus
from .base import _canonical
from .kmeans import KMeans

__all__ = ["k_means", "kmeans_plusplus"]


def k_means(
    X: Any,
    n_clusters: int,
    *,
    sample_weight: Any = None,
    init: Any = "k-means++",
    n_init: Any = "auto",
    max_iter: int = 300,
    verbose: bool = False,
    tol: float = 1e-4,
    random_state: Any = None,
    copy_x: bool = True,
    algorithm: str = "lloyd",
    return_n_iter: bool = False,
) -> Any:
    """Centres, labels and inertia of a :class:`KMeans` fit (and its iterations, with ``return_n_iter``).

    Examples
    --------
    >>> from surefit.cluster import k_means
    >>> centres, labels, inertia = k_means([[0.0], [1.0], [9.0]], 2, random_state=0)
    >>> inertia
    0.5
    """
    model = KMeans(
        n_clusters=n_clusters, init=init, n_init=n_init, max_iter=max_iter, verbose=int(verbose), tol=tol,
        random_state=random_state, copy_x=copy_x, algorithm=algorithm,
    ).fit(X, sample_weight=sample_weight)  # fmt: skip
    found = (model.cluster_centers_, model.labels_, model.inertia_)
    return (*found, model.n_iter_) if return_n_iter else found


@validate_params(
    {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "sample_weight": ["array-like", None],
        "x_squared_norms": ["array-like", None],
        "random_state": ["random_state"],
        "n_local_trials": [Interval(Integral, 1, None, closed="left"), None],
    },
    prefer_skip_nested_validation=True,
)
def kmeans_plusplus(
    X: Any,
    n_clusters: int,
    *,
    sample_weight: Any = None,
    x_squared_norms: Any = None,
    random_state: Any = None,
    n_local_trials: int | None = None,
) -> tuple[Any, Any]:
    """First centres by D^2 sampling, and the numbers of their rows.

    Parameters
    ----------
    X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
    n_clusters : int
    sample_weight : array-like of shape (n_samples,), optional
    x_squared_norms : array-like, optional
        Checked, and without effect: distances are formed from differences.
    random_state : int, RandomState or None
    n_local_trials : int, optional
        Draws for each centre, of which the best is kept; 2 + log(n_clusters) by default, 1 for the method of
        the theorem.

    Examples
    --------
    >>> from surefit.cluster import kmeans_plusplus
    >>> centres, rows = kmeans_plusplus([[0.0], [0.1], [9.0]], 2, random_state=0)
    >>> sorted((rows > 1).tolist())
    [False, True]
    """
    if is_torch(X):
        X = kept = checked_tensor(X)
    elif isinstance(X, Design):
        kept = X
    else:
        kept = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        kept = _canonical(kept)
    design = as_design(kept)
    n = design.shape[0]
    if sample_weight is not None:
        sample_weight = _check_sample_weight(
            sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True
        )
    if n < n_clusters:
        raise ValueError(f"n_samples={n} should be >= n_clusters={n_clusters}.")
    if x_squared_norms is not None:
        norms = check_array(x_squared_norms, dtype=design.dtype, ensure_2d=False)
        if norms.shape[0] != n:
            raise ValueError(
                f"The length of x_squared_norms {norms.shape[0]} should be equal to the length of "
                f"n_samples {n}."
            )
    state = check_random_state(random_state)
    centres, index = plus_plus(design, n_clusters, sample_weight, state, n_local_trials)
    kind = (
        getattr(X, "dtype", design.dtype)
        if not isinstance(X, Design) and not is_torch(X)
        else design.dtype
    )
    return like(centres.astype(kind), kept), index
