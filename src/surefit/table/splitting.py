"""How the rows of a table are split: at random, by groups, or by time.

Every split is a function of the table, the seed and what the user said of the rows, drawn by a generator
whose stream numpy has promised not to change; whoever has the table can draw it again.

* Rows that are independent: a random permutation; the first ones are the hold-out.
* Groups (a patient's rows, copies of a row): the same of the groups. No group is in two parts.
* Time: the latest rows are the hold-out, the folds of the search train on the past and validate on what comes
  next. A later row whose group has earlier rows is in neither part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data import TableError

__all__ = [
    "Part",
    "draw_groups",
    "draw_split",
    "fold_groups",
    "fold_rows",
    "fold_times",
    "one_a_group",
    "split_times",
]

Places = NDArray[np.intp]
Part = tuple[Places, Places]  # rows to fit on, rows to test on
MIN_GROUPS = 5


def draw_split(n: int, share: float, seed: int) -> Part:
    """Training and hold-out rows, each in order.

    Examples
    --------
    >>> train, holdout = draw_split(10, 0.3, seed=0)
    >>> holdout.tolist(), len(train)
    ([2, 4, 8], 7)
    """
    order = np.random.RandomState(seed).permutation(n)
    size = min(max(1, round(n * share)), n - 1)
    return np.sort(order[size:]), np.sort(order[:size])


def draw_groups(codes: Places, share: float, seed: int) -> Part:
    """The same for groups: a share of the groups is held out, whole.

    Examples
    --------
    >>> train, holdout = draw_groups(np.array([0, 0, 1, 1, 1, 2, 3, 4]), 0.4, seed=0)
    >>> train.tolist(), holdout.tolist()
    ([2, 3, 4, 6, 7], [0, 1, 5])
    """
    _, codes = np.unique(codes, return_inverse=True)
    _, held = draw_split(int(codes.max()) + 1, share, seed)
    inside = np.isin(codes, held)
    return np.flatnonzero(~inside), np.flatnonzero(inside)


def split_times(times: NDArray[np.float64], codes: Places, share: float) -> Part:
    """The past, and about the latest ``share`` of the rows; rows of one moment stay together.

    Of groups that the past has seen, later rows are in neither part.
    """
    moments, counts = np.unique(times, return_counts=True)
    if len(moments) < 2:
        raise TableError("the time column has one value only: there is no past and no future.")
    later = len(times) - np.cumsum(counts)[:-1]  # rows from each moment but the first on
    cut = moments[1:][int(np.argmin(np.abs(later - share * len(times))))]
    past = np.flatnonzero(times < cut)
    return past, _unseen(np.flatnonzero(times >= cut), past, codes)


def _unseen(later: Places, past: Places, codes: Places) -> Places:
    """The later rows whose group has no row in the past."""
    return later[~np.isin(codes[later], codes[past])]


def one_a_group(codes: Places, seed: int) -> Places:
    """Places of one row of each group, chosen at random, in order: they are independent if groups are."""
    order = np.random.RandomState(seed).permutation(len(codes))
    _, first = np.unique(codes[order], return_index=True)
    return np.sort(order[first])


# ------------------------------------------------------------------------ folds of the training part


def fold_rows(y: NDArray[np.generic], n_folds: int, seed: int, *, stratify: bool) -> list[Places]:
    """Row numbers of each fold: a random partition, with even class shares where ``stratify``."""
    generator = np.random.RandomState(seed)  # its stream does not change between versions
    order = generator.permutation(len(y))
    if stratify:
        order = order[np.argsort(np.asarray(y)[order], kind="stable")]
    return [np.sort(order[k::n_folds]) for k in range(n_folds)]


def fold_groups(
    y: NDArray[np.generic], codes: Places, n_folds: int, seed: int, *, stratify: bool
) -> list[Part]:
    """Folds of whole groups; where ``stratify``, groups are dealt out by the class of their first row."""
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    n_folds = min(n_folds, len(first))
    folds = fold_rows(np.asarray(y)[first], n_folds, seed, stratify=stratify)
    inside = [np.isin(codes, fold) for fold in folds]
    return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in inside]


def fold_times(times: NDArray[np.float64], codes: Places, n_folds: int) -> list[Part]:
    """Folds with a growing past: fold k is fitted on the first k + 1 parts and tested on the next.

    Examples
    --------
    >>> parts = fold_times(np.arange(6.0), np.arange(6), 2)
    >>> [(fit.tolist(), test.tolist()) for fit, test in parts]
    [([0, 1], [2, 3]), ([0, 1, 2, 3], [4, 5])]
    """
    ordered = np.sort(times)
    places = np.linspace(0, len(times), n_folds + 2)[1:-1].round().astype(np.intp)
    cuts = np.unique(ordered[places])
    ends = np.append(cuts[1:], np.inf)
    parts = []
    for start, end in zip(cuts, ends):
        past = np.flatnonzero(times < start)
        following = np.flatnonzero((times >= start) & (times < end))
        following = _unseen(following, past, codes)
        if len(past) and len(following):
            parts.append((past, following))
    return parts
