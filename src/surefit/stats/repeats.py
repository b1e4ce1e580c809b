r"""Rows that occur more than once, and whether chance explains them.

Rows drawn independently repeat each other where their values are few: 2,201 passengers of the Titanic have 14
different inputs. Rows that were copied repeat each other although their values are many, and an interval that
counts each copy is too short.

**The rule.** Let :math:`C` be the number of pairs of equal rows among all :math:`T = n(n-1)/2`, and
:math:`C_S` the pairs that are equal in the columns :math:`S`. Repeats are *unexplained* when all of the
following hold.

1. Independent columns do not give them. Permuting each column on its own gives
   :math:`E = T \prod_j C_{\{j\}}/T` equal pairs on average; there are more than twice as many, and a Poisson
   variable of that mean is as large with probability below 1e-6.
2. Dependent columns do not give them either. Cut the columns into two sides :math:`A` and :math:`B`, in
   several ways. Among independent rows with few values, many pairs that agree on one side differ on the
   other. A copy agrees on both: :math:`C \ge a \min(C_A, C_B)` for *every* cut that is tried, with a = 0.8
   for the inputs alone, and 0.64 for inputs with target, which is one thing more that copies agree on.
3. There are many values: :math:`T/C \ge 20`, the number of equally frequent values that repeat so often.
   Below it, rows are categories, not copies.

Where the columns cannot tell (few values), the multiplicities can: every value occurs a multiple of
:math:`g \ge 2` times. The count of a value that occurs, of independent draws in Poissonian number, is a
multiple of :math:`g` with probability at most :math:`q_g \le 1/2`, whatever the value's probability; with
:math:`m` values this is chance with probability at most :math:`q_g^m`. Below :math:`10^{-6} / g^2` the table
was copied :math:`g` times.

Both are applied to the inputs with the target, and to the inputs alone: a copy with another target is a copy.

**What it cannot see.** Single copies in a table of few values look like chance. Many rows that are equal for
a reason of their own (all zero in a twentieth of a table of many values, say) look like copies; grouping them
is then careful without need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ._row_keys import column, count_pairs, multiplicities, row_keys, row_matrix, target_matrix

__all__ = ["Repeats", "find_repeats"]

Labels = NDArray[np.intp]
CHANCE = 1e-6  # probability of calling chance a copy
FAR_ABOVE = 2.0  # times the expected pairs
FEWEST_VALUES = 20.0  # effective number of values of a table whose copies the columns can tell
AGREEING = {"inputs": 0.8, "rows": 0.64}  # share of pairs equal on one side that are equal on both
MOST_SINGLE = 16  # columns that are cut off one by one
ROUNDS = 3  # random partitions of the columns into quarters
MOST_COLUMNS = 256  # that enter the product of agreements; fewer can only raise it
MOST_ROWS = 100_000  # a sample of this size gives the agreement of one column


@dataclass(frozen=True)
class Repeats:
    """How often rows occur, and which belong together.

    Attributes
    ----------
    rows : int
        Number of rows.
    distinct_inputs, distinct_rows : int
        Different inputs, and different inputs with their target.
    expected : float
        Pairs of equal rows that independent columns would give, on average: of what ``by`` names, or of
        inputs with target.
    by : str
        What is repeated without explanation: ``"inputs"``, ``"rows"`` (inputs with target), or ``""``.
    copies : int
        The number of times the whole table seems to occur, where only the multiplicities tell; else 1.
    labels : ndarray of shape (rows,)
        Number of the group of each row. Equal rows share one where chance does not explain them; else each
        row has its own.
    """

    rows: int
    distinct_inputs: int
    distinct_rows: int
    expected: float
    by: str
    copies: int
    labels: Labels

    @property
    def explained(self) -> bool:
        """Whether chance explains the repeats, if there are any."""
        return not self.by

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self.labels.max()) + 1 if self.rows else 0

    @property
    def words(self) -> str:
        """What was found, as half a sentence; empty without repeats."""
        repeated = self.rows - (self.distinct_inputs if self.by == "inputs" else self.distinct_rows)
        if not repeated:
            return ""
        what = "inputs of another row" if self.by == "inputs" else "another row"
        verb = "repeats" if repeated == 1 else "repeat"
        found = f"{repeated:,} of {self.rows:,} rows {verb} {what}"
        if not self.by:
            return f"{found}, which their few values explain"
        if self.copies > 1:
            return f"{found}: every one occurs a multiple of {self.copies} times"
        return f"{found}, where chance would give {_about(self.expected)}"


def find_repeats(X: Any, y: Any = None, *, seed: int = 0) -> Repeats:
    """Count equal rows, decide whether chance explains them, and group them where it does not.

    Parameters
    ----------
    X : array, sparse matrix, data frame or list
        Rows. Columns of text are compared by value, missing values are equal.
    y : array, default=None
        Targets.
    seed : int
        Of the random cuts of the columns.

    Returns
    -------
    Repeats

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> find_repeats(np.repeat(X, 2, axis=0)).words
    '100 of 200 rows repeat inputs of another row, where chance would give 0'
    >>> find_repeats(np.random.default_rng(0).integers(3, size=(100, 2))).words
    '91 of 100 rows repeat another row, which their few values explain'
    """
    inputs = row_matrix(X)
    rows, width = inputs.shape
    targets = target_matrix(y, rows)
    own = np.arange(rows)
    if rows < 2:
        return Repeats(rows, rows, rows, 0.0, "", 1, own)
    whole = row_keys(inputs, [np.arange(width)])[0]
    ends = row_keys(targets, [np.arange(targets.shape[1])], width)[0]
    tables = {
        "inputs": (whole, [(inputs, width, 0)]),
        "rows": (whole + ends, [(inputs, width, 0), (targets, targets.shape[1], width)]),
    }
    found = {name: multiplicities(keys) for name, (keys, _) in tables.items()}
    many, few = (len(found[name][1]) for name in ("rows", "inputs"))
    if few == rows:
        return Repeats(rows, few, many, 0.0, "", 1, own)
    expected = 0.0
    for name, (_, blocks) in tables.items():
        labels, counts = found[name]
        pairs = _pairs(counts)
        expected = _expected_pairs(blocks, rows, seed)
        many_values = rows * (rows - 1) / 2.0 >= FEWEST_VALUES * pairs
        if (
            many_values
            and _far_above(pairs, expected)
            and _copies_agree(blocks, pairs, AGREEING[name], seed)
        ):
            return Repeats(rows, few, many, expected, name, 1, _in_order(labels))
    for name in ("rows", "inputs"):
        labels, counts = found[name]
        times = common_multiple(counts)
        if times > 1:
            return Repeats(rows, few, many, expected, name, times, _in_chunks(labels, times))
    return Repeats(rows, few, many, expected, "", 1, own)


def common_multiple(counts: Any) -> int:
    """The g of which all counts are multiples, where chance does not explain that; else 1."""
    times = int(reduce(np.gcd, counts))
    if times < 2:
        return 1
    share = _multiple_probability(times)
    return times if len(counts) * np.log(share) <= np.log(CHANCE / times**2) else 1


# ------------------------------------------------------------------------ the two conditions


def _far_above(pairs: float, expected: float) -> bool:
    """More equal pairs than independent columns give."""
    if pairs <= FAR_ABOVE * expected:
        return False
    return bool(stats.poisson.sf(pairs - 1.0, expected) < CHANCE) if expected else pairs > 0


def _expected_pairs(blocks: list[Any], rows: int, seed: int) -> float:
    """Equal pairs among rows whose columns are permuted, each on its own."""
    rng = np.random.default_rng(seed)
    chosen = np.sort(rng.permutation(rows)[:MOST_ROWS])
    sample = len(chosen) * (len(chosen) - 1) / 2.0
    product = rows * (rows - 1) / 2.0
    for matrix, width, _ in blocks:
        for j in rng.permutation(width)[:MOST_COLUMNS]:
            product *= count_pairs(column(matrix, j)[chosen]) / sample
    return float(product)


def _copies_agree(blocks: list[Any], pairs: float, agreeing: float, seed: int) -> bool:
    """Pairs that agree on one side of the columns agree on the other, for every cut."""
    width, rows = sum(block[1] for block in blocks), blocks[0][0].shape[0]
    if width < 2:
        return False
    for side in _cuts(width, np.random.default_rng(seed)):
        other = np.setdiff1d(np.arange(width), side)
        keys = np.zeros((2, rows), dtype=np.uint64)
        for matrix, many, first in blocks:
            parts = [_inside(columns, first, many) for columns in (side, other)]
            keys += row_keys(matrix, parts, first)
        fewest = min(count_pairs(one) for one in keys)
        if pairs < agreeing * fewest:
            return False
    return True


def _cuts(width: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """One side of each cut: single columns, and quarters of the columns at random."""
    order = rng.permutation(width)
    sides = [order[[k]] for k in range(min(width, MOST_SINGLE))]
    for _ in range(ROUNDS):
        sides += [part for part in np.array_split(rng.permutation(width), 4) if len(part) > 1]
    return [side for side in sides if len(side) < width]


def _inside(side: NDArray[np.intp], first: int, width: int) -> NDArray[np.intp]:
    """The columns of a side that lie in one block, counted from its first."""
    return side[(side >= first) & (side < first + width)] - first


def _multiple_probability(times: int) -> float:
    r"""The largest probability, over its mean, that a Poisson count above 0 is a multiple of ``times``."""
    rates = np.geomspace(1e-2, 100.0 * times, 600)
    top = int(rates[-1] + 20.0 * np.sqrt(rates[-1])) // times
    terms = stats.poisson.pmf(times * np.arange(1, top + 1)[:, None], rates).sum(axis=0)
    return float((terms / -np.expm1(-rates)).max())


# ------------------------------------------------------------------------ labels and words


def _pairs(counts: Any) -> float:
    counts = np.asarray(counts, dtype=np.float64)
    return float((counts * (counts - 1.0) / 2.0).sum())


def _in_order(labels: Labels) -> Labels:
    """The same groups, numbered in the order in which they appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.intp)
    place[np.argsort(first)] = np.arange(len(first))
    return place[inverse.ravel()]


def _in_chunks(labels: Labels, times: int) -> Labels:
    """Equal rows in groups of ``times``: which copies belong together does not matter, they are equal."""
    order = np.argsort(labels, kind="stable")
    chunks = np.empty(len(labels), dtype=np.intp)
    chunks[order] = np.arange(len(labels)) // times
    return _in_order(chunks)


def _about(pairs: float) -> str:
    return f"about {pairs:.2g}" if pairs >= 0.05 else "0"
