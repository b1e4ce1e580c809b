r"""Rows that nearly repeat each other: several measurements of one patient, one picture taken five times.

**The rule.** Let :math:`d_{i1} \le d_{i2} \le \dots` be the distances from row i to its neighbours. Among
independent rows whose density is smooth on that scale, in m dimensions, the k nearest are uniform in a ball,
so

.. math:: L_{ik} = k \ln(d_{i,k+1}/d_{ik}) \quad\text{is exponential with rate } m

for every k, whatever the density. Near repeats of a row leave a *gap*: its own kind lies close, all others
far away, and one :math:`L_{ik}` is far too large. A row has a gap where for some :math:`k \le K`

.. math:: L_{ik} > \ln(K/\alpha)/m, \qquad d_{i,k+1} > 3\, d_{ik},

with m from the median of all :math:`L_{ik}`. Chance gives a share :math:`\alpha = 10^{-3}` of such rows;
a tenth of the rows or more is taken for near repeats.

Distances are Euclidean, over the columns that vary continuously: at least two, in each of which a fifth of
the rows and more have values of their own. Columns of few values would make gaps by themselves, so tables of
integers and of categories have no near repeats. Each column is divided by its interquartile range.

**Cost.** A k-d tree in at most 12 columns (6 beyond 20,000 rows), drawn at random: rows that are close in all
columns are close in these. Of longer tables, the 100,000 rows whose values in one column lie next to each
other. The gaps of at most 1,000 rows are looked at. Labels are given to tables of up to 20,000 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from ._row_keys import column, row_keys, row_matrix

__all__ = ["NearRepeats", "find_near_repeats"]

Array = NDArray[np.float64]
FEWEST_ROWS = 30
FEWEST_COLUMNS = 2
MOST_COLUMNS = 12
MOST_COLUMNS_LONG = 6  # of a table of more than MOST_LABELLED rows
MOST_ROWS = 100_000  # in the tree
MOST_LOOKED_AT = 1_000  # rows whose gaps are looked at
MOST_LABELLED = 20_000  # rows; of longer tables a sample decides, and no labels are given
NEIGHBOURS = 40  # groups of fewer rows are found
OWN_VALUES = 0.2  # share of the rows that have different values in a continuous column
CHANCE = 1e-3  # share of the rows that have a gap by chance
TIMES = 3.0  # a gap at least triples the distance
SHARE = 0.1  # of the rows, from which gaps are called near repeats


@dataclass(frozen=True)
class NearRepeats:
    """Rows far closer to each other than the spreads of the columns explain.

    Attributes
    ----------
    share : float
        Share of the rows that have a gap after their nearest neighbours; 0 where nothing was looked at.
    columns : int
        How many continuous columns were compared.
    labels : ndarray of shape (rows,) or None
        Groups: connected components of rows and their near repeats. ``None`` where nothing was found, or
        the table is too long.
    """

    share: float
    columns: int
    labels: NDArray[np.intp] | None

    @property
    def found(self) -> bool:
        """Whether there are near repeats."""
        return self.share >= SHARE

    @property
    def words(self) -> str:
        """What was found, as half a sentence; empty where nothing was."""
        if not self.found:
            return ""
        share = f"{100 * self.share:.0f} % of the rows"
        found = f"{share} lie far closer to a few others than chance explains"
        if self.labels is None:
            return found
        return f"{found}, in about {int(self.labels.max()) + 1:,} clusters"


def find_near_repeats(X: Any, *, seed: int = 0) -> NearRepeats:
    """Look for rows that are far closer to each other than chance explains.

    Exact repeats count as one row: they are the business of :func:`find_repeats`.

    Parameters
    ----------
    X : array, data frame or sparse matrix
        Rows; of a sparse matrix nothing is found.
    seed : int
        Of the rows and columns that are looked at.

    Returns
    -------
    NearRepeats

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> patients = rng.normal(size=(60, 4))
    >>> visits = np.repeat(patients, 5, axis=0) + 0.01 * rng.normal(size=(300, 4))
    >>> find_near_repeats(visits).words
    '100 % of the rows lie far closer to a few others than chance explains, in about 60 clusters'
    >>> find_near_repeats(rng.normal(size=(300, 4))).found
    False
    """
    matrix = row_matrix(X)
    rng = np.random.default_rng(seed)
    nothing = NearRepeats(0.0, 0, None)
    if sparse.issparse(matrix) or len(matrix) < FEWEST_ROWS:
        return nothing
    kept = _continuous(matrix, rng)
    if len(kept) < FEWEST_COLUMNS:
        return nothing
    points = np.column_stack(_window(kept, rng))
    keys = row_keys(points, [np.arange(len(kept))])[0]
    _, first, back = np.unique(keys, return_index=True, return_inverse=True)
    points = points[first]
    if len(points) < FEWEST_ROWS:
        return nothing
    tree = cKDTree(points)
    looked = np.sort(rng.permutation(len(points))[:MOST_LOOKED_AT])
    many = min(NEIGHBOURS, len(points) // 4)
    reach = _gap_reach(tree.query(points[looked], k=many + 1)[0][:, 1:])
    share = float((reach.gap > 0.0).mean())
    if share < SHARE or matrix.shape[0] > MOST_LABELLED:
        return NearRepeats(share, len(kept), None)
    near, places = tree.query(points, k=many + 1)
    gap = _gap_reach(near[:, 1:], reach.dimension).gap
    linked = near <= gap[:, None]
    start = np.repeat(np.arange(len(points)), linked.sum(axis=1))
    graph = sparse.coo_array(
        (np.ones(len(start)), (start, places[linked])), shape=(len(points),) * 2
    )
    _, labels = connected_components(graph, directed=False)
    return NearRepeats(share, len(kept), np.asarray(labels[back.ravel()], dtype=np.intp))


def _window(columns: list[Array], rng: np.random.Generator) -> list[Array]:
    """All rows, or of many those next to each other in the first column: near repeats stay together."""
    spare = len(columns[0]) - MOST_ROWS
    if spare <= 0:
        return columns
    start = int(rng.integers(spare + 1))
    order = np.argsort(columns[0], kind="stable")[start : start + MOST_ROWS]
    return [values[order] for values in columns]


@dataclass(frozen=True)
class _Reach:
    gap: Array  # distance up to which a row has near repeats; 0 without a gap
    dimension: float


def _gap_reach(distances: Array, dimension: float | None = None) -> _Reach:
    """Where each row's gap begins, from the sorted distances to its neighbours."""
    ranks = np.arange(1, distances.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = distances[:, 1:] / distances[:, :-1]
        logs = np.nan_to_num(ranks * np.log(ratios), nan=0.0, posinf=np.inf)
    if dimension is None:
        positive = logs[logs > 0.0]
        dimension = float(np.log(2.0) / np.median(positive)) if len(positive) else np.inf
    threshold = np.log(len(ranks) / CHANCE) / dimension
    gaps = (logs > threshold) & (ratios > TIMES)
    place = np.where(gaps.any(axis=1), gaps.argmax(axis=1), -1)
    reach = np.where(place >= 0, distances[np.arange(len(distances)), place], 0.0)
    return _Reach(reach, dimension)


def _continuous(matrix: Any, rng: np.random.Generator) -> list[Array]:
    """Columns in which many rows have their own value, in units of their interquartile range."""
    kept: list[Array] = []
    rows = matrix.shape[0]
    most = MOST_COLUMNS if rows <= MOST_LABELLED else MOST_COLUMNS_LONG
    sample = np.sort(rng.permutation(rows)[:MOST_LABELLED])
    for j in rng.permutation(matrix.shape[1]):
        values = column(matrix, j)
        if not np.isfinite(values).all():
            continue
        looked = values[sample]
        if len(np.unique(looked)) < OWN_VALUES * len(looked):
            continue
        low, high = np.quantile(looked, [0.25, 0.75])
        if high > low:
            kept.append(values / (high - low))
        if len(kept) == most:
            break
    return kept
