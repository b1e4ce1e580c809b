"""The claims of a neighbour model, decided without any code of the search.

A list of neighbours is right when it is the beginning of all rows sorted by (exact distance, row
number). Float64 distances with a bound on their rounding leave a few rivals for each query; where these
bounds do not settle the order, rational numbers do.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import EfficiencyWarning
from sklearn.metrics import pairwise_distances

from .._exact_order import SMALL, UNIT, exactly_first, plain, row_squares
from ..certificate import Claim, Kind

__all__ = ["count_wrong", "leave_one_out_claim", "neighbours_claim", "rows_claim", "sampled_claim"]

Array = NDArray[np.float64]
_CELLS = 1 << 23  # entries of a block of distances
_WIDEST = 0.25  # of a radius: an interval half as wide as all there is says little
_WORK = 1 << 26  # multiplications that the claims at fit may cost
_EUCLIDEAN = ("euclidean", "l2", "sqeuclidean")


def rows_claim(kept: Any, X: Any, kept_targets: Any, y: Any) -> Claim:
    """That the model holds the training rows and targets, entry by entry."""
    differing = _differences(kept, X)
    words = "rows"
    if y is not None:
        differing += _differences(kept_targets, y)
        words = "rows and targets"
    statement = f"{differing} entries of the stored {words} differ from the training data"
    if not differing:
        statement = f"the stored {words} are the training data, entry by entry"
    return Claim.check("training rows kept", statement, Kind.EXACT, differing, 0, "CLS-2")


def _differences(kept: Any, given: Any) -> int:
    if kept is None or tuple(kept.shape) != tuple(given.shape):
        return int(np.prod(given.shape))
    if sp.issparse(kept) or sp.issparse(given):
        if not (sp.issparse(kept) and sp.issparse(given)):
            kept, given = sp.csr_array(kept), sp.csr_array(given)
        return int((kept != given).nnz)
    differ = np.asarray(kept) != np.asarray(given)
    if kept.dtype.kind == "f" and given.dtype.kind == "f":
        differ &= ~(np.isnan(kept) & np.isnan(given))
    return int(np.count_nonzero(differ))


def neighbours_claim(
    table: Any, queries: Any, indices: Any, metric: Any, settings: dict[str, Any], words: str
) -> Claim:
    """That ``indices`` are the nearest rows: exactly in the Euclidean distance, else to rounding."""
    k = indices.shape[1]
    if isinstance(metric, str) and metric in _EUCLIDEAN and not settings:
        wrong = count_wrong(table, queries, indices)
        how = "in exact arithmetic, ties by row number"
    else:
        wrong, tolerance = _count_wrong_to_rounding(table, queries, indices, metric, settings)
        how = f"to {tolerance:.0e} of the largest distance"
    statement = (
        f"of {words}, {wrong} have a list of {k} neighbours other than the nearest rows, {how}"
    )
    if not wrong:
        statement = f"the {k} neighbours of {words} are the nearest rows, {how}"
    return Claim.check("exact neighbours", statement, Kind.EXACT, wrong, 0, "CLS-2")


def sampled_claim(model: Any, *, full: bool) -> Claim:
    """The claim about the search, on as many training rows as the time at fit allows, or on all."""
    name, n = "exact neighbours", model.n_samples_fit_
    if callable(model.metric) and not full:
        why = "a metric in Python is slow; surefit.verify or certify='full' decides it"
        return Claim.undecided(name, why, Kind.EXACT, "CLS-2")
    if model.n_neighbors is None:
        why = "n_neighbors=None: each query gives its own number, and certify_neighbors checks its answer"
        return Claim.undecided(name, why, Kind.EXACT, "CLS-2")
    cost = n * model.X_fit_.shape[1] * (1 if model._euclidean else 50)
    count = n if full else int(np.clip(_WORK // max(1, cost), 1, 32))
    chosen = np.unique(np.linspace(0, n - 1, min(count, n)).astype(np.int64))
    queries = model.X_fit_[chosen]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EfficiencyWarning)  # the fit said so already
            _, indices = model._nearest(queries, min(model.n_neighbors, n))
    except ValueError as error:
        if model._euclidean:
            raise
        why = f"this metric does not take the training rows as queries: {error}"
        return Claim.undecided(name, why, Kind.EXACT, "CLS-2")
    words = f"all {n} training rows" if len(chosen) == n else f"{len(chosen)} of {n} training rows"
    return neighbours_claim(
        model.X_fit_,
        queries,
        indices,
        model.effective_metric_,
        model.effective_metric_params_,
        words,
    )


# ---------------------------------------------------------------------------- Euclidean


def count_wrong(table: Any, queries: Any, indices: NDArray[Any]) -> int:
    """How many lists of neighbours are not the first rows by (exact Euclidean distance, row number).

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0.0], [0.1], [0.3]])
    >>> count_wrong(rows, np.array([[0.2]]), np.array([[1]]))   # 0.3 - 0.2 < 0.2 - 0.1 as floats
    1
    """
    n, p = table.shape
    if indices.min(initial=0) < 0 or indices.max(initial=0) >= n:
        return len(indices)
    with np.errstate(all="ignore"):
        centre = np.zeros(p) if sp.issparse(table) else table.mean(axis=0, dtype=np.float64)
        centre = centre if np.isfinite(centre).all() else np.zeros(p)
        rows = table.astype(np.float64) if sp.issparse(table) else table - centre
        share = 1.0 - (4 * p + 32) * UNIT  # for the rounding of products, norms and centring
        norms = row_squares(rows) * share
        step, wrong = max(1, _CELLS // max(n, p * indices.shape[1])), 0
        for start in range(0, len(indices), step):
            block = plain(queries[start : start + step])
            lists = indices[start : start + step]
            centred = block - centre
            products = (rows @ centred.T).T if sp.issparse(rows) else centred @ rows.T
            lower = np.ascontiguousarray(products)  # then below the squared distances of all rows
            lower *= -2.0
            lower += norms
            lower += share * np.einsum("ij,ij->i", centred, centred)[:, None]
            for i in np.flatnonzero(~_clearly_right(block, table, lists, lower)):
                wrong += not exactly_first(block[i], table, lists[i], lower[i])
    return wrong


def _clearly_right(queries: Array, table: Any, lists: NDArray[Any], lower: Array) -> Any:
    """Lists that rounding leaves no doubt about: in strict order, and every other row beyond reach."""
    m, k = lists.shape
    p = queries.shape[1]
    error = (p + 8) * UNIT
    near = plain(table[lists.ravel()]).reshape(m, k, p)
    squares = np.square(near - queries[:, None]).sum(axis=2)
    itself = (near[:, 0] == queries).all(axis=1)  # at distance 0, and not by underflow
    visible = (squares > SMALL) | (itself[:, None] & (np.arange(k) == 0))
    ordered = (squares[:, 1:] > squares[:, :-1] * (1.0 + 4.0 * error)).all(axis=1)
    reach = squares[:, -1] * (1.0 + 4.0 * error) + SMALL
    alone = np.count_nonzero(~(lower > reach[:, None]), axis=1) == k
    return visible.all(axis=1) & ordered & alone & np.isfinite(reach)


# ---------------------------------------------------------------------------- other metrics


def _count_wrong_to_rounding(
    table: Any, queries: Any, indices: NDArray[Any], metric: Any, settings: dict[str, Any]
) -> tuple[int, float]:
    """Lists with a row that is farther than one left out, beyond the rounding of the metric."""
    tolerance = 1e-4 if table.dtype == np.float32 else 1e-9
    step, wrong = max(1, _CELLS // max(table.shape)), 0
    for start in range(0, len(indices), step):
        block, lists = queries[start : start + step], indices[start : start + step]
        if isinstance(metric, str) and metric == "precomputed":
            distances = _known_distances(block)
        elif hasattr(metric, "pairwise"):
            distances = metric.pairwise(block, table)
        else:
            distances = pairwise_distances(block, table, metric=metric, **settings)
        for line, neighbours in zip(np.asarray(distances, dtype=np.float64), lists):
            slack = tolerance * np.abs(line[np.isfinite(line)]).max(initial=0.0)
            mine = line[neighbours]
            rest = np.delete(line, neighbours).min(initial=np.inf)
            distinct = len(np.unique(neighbours)) == len(neighbours)
            sorted_ = bool((mine[1:] >= mine[:-1] - slack).all())
            wrong += not (distinct and sorted_ and mine[-1] <= rest + slack)
    return wrong, tolerance


def _known_distances(block: Any) -> Array:
    """A precomputed block; what a sparse one does not store is not a neighbour."""
    if not sp.issparse(block):
        return np.asarray(block, dtype=np.float64)
    full = np.full(block.shape, np.inf)
    entries = block.tocoo()
    full[entries.row, entries.col] = entries.data
    return full


# ---------------------------------------------------------------------------- statistics


def leave_one_out_claim(error: float, n: int, k: int, delta: float = 0.05) -> Claim:
    r"""The distance of the leave-one-out error from the true error of the k-neighbour rule.

    For n independent rows of one distribution in which no two distances are equal (almost surely), and k
    fixed beforehand, :math:`E[(L_{loo} - L)^2] \le (6k + 1)/n`, whatever the distribution; Chebyshev's
    inequality makes that a radius.

    References
    ----------
    Rogers & Wagner, "A finite sample distribution-free performance bound for local discrimination rules",
    Annals of Statistics 6 (1978); Devroye, Gyoerfi & Lugosi, A Probabilistic Theory of Pattern Recognition
    (1996), chapter 24.
    """
    name, source = "leave-one-out error", "CLS-2"
    radius = math.sqrt((6 * k + 1) / (n * delta))
    if not radius < _WIDEST:
        need = math.ceil((6 * k + 1) / (delta * _WIDEST**2))
        why = (
            f"the leave-one-out error is {error:.4f}, and its distribution-free radius at {1 - delta:.0%} "
            f"{radius:.2g}; {need} rows would make that {_WIDEST:g}, and there are {n}"
        )
        return Claim.uninformative(name, why, Kind.STATISTICAL, radius, _WIDEST, source)
    statement = (
        f"with probability {1 - delta:.0%} over the draw of the rows, the true error is within {radius:.4f} "
        f"of the leave-one-out error {error:.4f} (for independent rows without ties in distance and "
        "n_neighbors chosen before they were seen)"
    )
    low, high = max(error - radius, 0.0), min(error + radius, 1.0)
    return Claim.interval(name, statement, Kind.STATISTICAL, error, low, high, source)
