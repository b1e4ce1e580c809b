r"""Stochastic gradient descent for linear models, as a generator of iterates.

For a convex loss l, weights s_i and a penalty, the objective is

    P(w, b) = (1/n) sum_i s_i l(<x_i, w> + b, y_i) + l1 ||w||_1 + (l2/2) ||w||^2,

and one visit to a row steps along the gradient of its own term, which is unbiased, E[grad_i] = grad P
(OPT-5). A step costs the entries of the row, whatever n. The rows are visited in a new order each epoch, the
order of scikit-learn's solvers for the same seed; the perceptron is the same loop on another loss (PER-4).

Steps (OPT-18), t counting visits from 1: constant and adaptive eta0 (the latter divided by 5 when the
objective stalls), invscaling eta0 / t^power, optimal 1 / (alpha (t0 + t - 1)), of which only the last, and
invscaling with power in (1/2, 1], meet the conditions of Robbins and Monro.

References
----------
H. Robbins, S. Monro, "A stochastic approximation method", Ann. Math. Stat. 22, 1951.
L. Bottou, "Stochastic gradient descent tricks", in Neural Networks: Tricks of the Trade, 2012.
S. Shalev-Shwartz, Y. Singer, N. Srebro, "Pegasos", ICML 2007.
K. Crammer et al., "Online passive-aggressive algorithms", JMLR 7, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._csr import distinct_entries
from ..design import RowBlocks
from ..iterate import Iterate

__all__ = ["LOSSES", "RATES", "Point", "Rules", "linear_sgd", "visits"]

Array = NDArray[np.float64]
Order = NDArray[Any]
_Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # X, data, indices, indptr
LOSSES = (  # in the order of the kernel's numbers; the perceptron loss is a hinge at margin 0
    "hinge",
    "squared_hinge",
    "log_loss",
    "modified_huber",
    "squared_error",
    "huber",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
)
RATES = ("constant", "optimal", "invscaling", "adaptive", "pa1", "pa2")
_WORK = 4_000_000  # entries to visit between two yields, at least


class Point(NamedTuple):
    """Where a run stands."""

    w: Array  # the last iterate
    b: float
    mean: tuple[Array, float] | None  # of the iterates since averaging began; None if it has not
    t: float  # 1 + visits
    updates: int  # visits that moved w, since the start of the run
    epoch_updates: int  # in the last epoch
    verdict: str  # "", "flat", "clean" (an epoch without updates) or "diverged"
    dual: Callable[
        [], Array
    ]  # theta with (1/n) X'(s theta) = -l2 w, where w started at 0; a witness


@dataclass(frozen=True)
class Rules:
    """What does not change during a run."""

    loss: str = "hinge"
    edge: float = 1.0  # margin of hinge losses, delta of Huber's, epsilon of the tubes
    learning_rate: str = "constant"
    eta0: float = 1.0
    power_t: float = 0.5
    alpha: float = 0.0001  # for the optimal rate
    l1: float = 0.0
    l2: float = 0.0
    average: int = 0  # from which visit on; 0: never
    fit_intercept: bool = True
    tol: float | None = None
    patience: int = 5
    ends_clean: bool = False

    def packed(self, *, judged: bool) -> Array:
        """For the kernel; where it is not to judge, with a patience of 0."""
        t0 = 0.0
        if self.learning_rate == "optimal":  # the first step is alpha^(-1/4), a typical weight
            t0 = 1.0 / (self.alpha * math.sqrt(1.0 / math.sqrt(self.alpha)))
        numbers = [
            LOSSES.index(self.loss),
            self.edge,
            RATES.index(self.learning_rate),
            self.eta0,
            self.power_t,
            t0,
            self.alpha,
            self.l1,
            self.l2,
            self.average,
            self.fit_intercept,
            math.nan if self.tol is None else self.tol,
            self.patience if judged else 0,
            self.ends_clean,
        ]
        return np.array(numbers, dtype=np.float64)


def linear_sgd(
    X: Any,
    y: Array,
    rules: Rules,
    *,
    weights: Array | None = None,
    held_out: NDArray[np.bool_] | None = None,
    seed: int | None = None,
    orders: Iterator[Order] | None = None,
    start: tuple[Array, float] | None = None,
    mean: tuple[Array, float] | None = None,
    t: float = 1.0,
    max_iter: int = 1000,
    error: Callable[[Array, float], float] | None = None,
    witness: bool = False,
    chunk: int | None = None,
) -> Iterator[Iterate]:
    """Epochs until a rule ends the run, or ``max_iter`` are made.

    Parameters
    ----------
    X : ndarray, CSR matrix or array, or RowBlocks, of shape (n, d)
        Row blocks are read in order, about ``block_bytes`` at a time; the rows that are in memory together
        are visited in random order.
    y : ndarray of shape (n,)
        Targets; labels -1 and +1 for the losses of the margin.
    rules : Rules
    weights : ndarray of shape (n,), optional
        Each row's factor on the step.
    held_out : ndarray of bool of shape (n,), optional
        Rows that are not visited.
    seed : int, optional
        Of the orders; None: the rows in order.
    orders : iterator of int arrays, optional
        Which rows each epoch visits, in which order, instead of ``seed``; see :func:`visits`.
    start : (ndarray of shape (d,), float), optional
        Where to start; 0 by default.
    mean : (ndarray of shape (d,), float), optional
        The mean of the iterates before this run, of which there were t - rules.average.
    t : float
        1 + the visits before this run.
    max_iter : int
        Most epochs.
    error : callable, optional
        ``error(w, b)`` is the validation error, to be judged instead of the objective.
    witness : bool
        Whether to collect a dual point.
    chunk : int, optional
        Epochs between two yields; by default many where an epoch is short.

    Yields
    ------
    Iterate
        ``x`` is a :class:`Point`, ``value`` the mean over the last epoch's visits of the loss before
        the update, plus the penalty, ``estimate`` the updates of that epoch where their absence ends the run,
        ``cost`` the epochs made.
    """
    from .._jit import sgd as jit

    n, d = X.shape
    state = np.zeros(14)
    state[[jit.T, jit.ETA, jit.DUAL_SCALE, jit.BEST]] = t, rules.eta0, 1.0, np.inf
    w, total = np.zeros(d), np.zeros(d if rules.average else 0)
    if start is not None:
        w, state[jit.B] = np.array(start[0], dtype=np.float64), start[1]
    if rules.average and mean is not None:
        before = max(0.0, t - rules.average)
        total, state[jit.B_TOTAL] = before * mean[0], before * mean[1]
    rows = n if witness and rules.l2 > 0 else 0
    dual, era = np.zeros(rows), np.zeros(rows, dtype=np.uint32)
    s = np.ones(n) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    outside = isinstance(X, RowBlocks)
    judged = error is None and not outside
    judgement = rules.packed(judged=True)
    run = _Run(
        y=np.ascontiguousarray(y, dtype=np.float64),
        weights=s,
        held_out=np.empty(0, dtype=np.bool_) if held_out is None else held_out,
        vectors=(w, np.zeros(d if rules.l1 > 0 else 0), total),
        dual=dual,
        era=era,
        state=state,
        rules=rules.packed(judged=judged),
    )
    if outside:
        epochs = run.over_blocks(X, seed)
    elif orders is not None:
        epochs = run.in_orders(X, orders)
    else:
        epochs = run.shuffled(X, seed)
        if chunk is None and judged:
            chunk = max(1, _WORK // ((X.nnz if sp.issparse(X) else n * d) + n + d))

    def theta() -> Array:
        share = np.where(era == state[jit.ERA], dual * state[jit.DUAL_SCALE], 0.0)
        return -rules.l2 * n * share / np.where(s > 0, s, np.inf)

    made, verdict = 0, ""
    while made < max_iter and not verdict:
        state[[jit.VALUE, jit.VISITS, jit.UPDATES]] = 0.0
        cost = epochs(min(chunk or 1, max_iter - made))
        if cost == 0:  # the orders ended
            return
        made += cost
        b, value = float(state[jit.B]), float(state[jit.VALUE] / max(state[jit.VISITS], 1.0))
        value += float(jit.l1_penalty(w, run.rules))
        code = int(state[jit.VERDICT])
        if not judged and code == jit.GOES_ON:
            code = jit.judge(state, value if error is None else error(w, b), judgement)
        verdict = ("", "flat", "clean", "diverged")[code]
        averaged = state[jit.T] - rules.average
        point = Point(
            w.copy(),
            b,
            (total / averaged, float(state[jit.B_TOTAL] / averaged))
            if rules.average and averaged > 0
            else None,
            float(state[jit.T]),
            int(state[jit.ALL_UPDATES]),
            int(state[jit.UPDATES]),
            verdict,
            theta,
        )
        value = np.inf if verdict == "diverged" else value
        estimate = float(point.epoch_updates) if rules.ends_clean else math.nan
        yield Iterate(point, value, estimate, cost=cost)


class _Run(NamedTuple):
    """The arrays that the kernel advances, and the three ways to make an epoch with it."""

    y: Array
    weights: Array
    held_out: NDArray[np.bool_]
    vectors: tuple[Array, Array, Array]  # w, l1 penalty paid, sum of iterates
    dual: Array
    era: NDArray[np.uint32]
    state: Array
    rules: Array

    def advance(self, part: slice, X: _Rows, order: Order, positions: Order, most: int) -> int:
        """Up to ``most`` epochs over the rows ``part``, whose entries are X."""
        from .._jit.sgd import epochs

        return int(
            epochs(
                *X,
                self.y[part],
                self.weights[part],
                self.held_out[part],
                order,
                positions,
                most,
                *self.vectors,
                self.dual[part],
                self.era[part],
                self.state,
                self.rules,
            )
        )

    def shuffled(self, X: Any, seed: int | None) -> Callable[[int], int]:
        """Each epoch permutes the order of the one before."""
        from .._jit.sgd import shuffle_positions

        n, rows = len(self.y), _rows(X)
        order = np.arange(n, dtype=np.uint32)
        positions = order[:0] if seed is None else shuffle_positions(n, np.uint32(seed))
        return lambda most: self.advance(slice(None), rows, order, positions, most)

    def in_orders(self, X: Any, orders: Iterator[Order]) -> Callable[[int], int]:
        """The orders given, one an epoch."""
        rows = _rows(X)

        def epoch(most: int) -> int:
            order = next(orders, None)
            if order is None:
                return 0
            order = np.array(order, dtype=np.uint32)
            return self.advance(slice(None), rows, order, order[:0], 1)

        return epoch

    def over_blocks(self, X: RowBlocks, seed: int | None) -> Callable[[int], int]:
        """The blocks as they are read, the rows that are in memory together in random order."""
        rng = np.random.default_rng(seed)

        def epoch(most: int) -> int:
            parts = X.blocks() if seed is None else _gathered(X)
            for part, block in parts:
                order = np.arange(len(block), dtype=np.uint32)
                if seed is not None:
                    rng.shuffle(order)
                self.advance(part, _rows(block), order, order[:0], 1)
            return 1

        return epoch


def visits(
    n: int, seed: int | None = None, keep: NDArray[np.bool_] | None = None
) -> Iterator[Order]:
    """The order of the rows in each epoch, without end.

    Without a ``seed``: 0, 1, ..., n - 1. With one, a random permutation, composed with itself once
    more each epoch: the sequence of scikit-learn's stochastic solvers. ``keep`` masks rows out.
    """
    from .._jit.sgd import shuffle_positions

    order = np.arange(n)
    positions = order if seed is None else shuffle_positions(n, np.uint32(seed))
    while True:
        order = order[positions]
        yield order if keep is None else order[keep[order]]


def _gathered(X: RowBlocks) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The rows of X, ``block_bytes`` of them at a time: what is shuffled together."""
    size = max(1, X.block_bytes // (X.dtype.itemsize * X.shape[1]))
    held: NDArray[Any] = np.empty((min(size, X.shape[0]), X.shape[1]), dtype=X.dtype)
    first = filled = 0
    for _, block in X.blocks():
        while len(block):
            taken = min(len(block), len(held) - filled)
            held[filled : filled + taken] = block[:taken]
            filled, block = filled + taken, block[taken:]
            if filled == len(held):
                yield slice(first, first + filled), held
                first, filled = first + filled, 0
    if filled:
        yield slice(first, first + filled), held[:filled]


def _rows(X: Any) -> _Rows:
    """The entries of X in the layouts that the kernel was compiled for: dense, or compressed rows."""
    indices, indptr = np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.uint64)
    if not sp.issparse(X):
        X = np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
        return X, X.reshape(-1)[:0], indices, indptr
    X = distinct_entries(X)
    data = np.ascontiguousarray(X.data, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    indices = X.indices.astype(np.int32, copy=False).view(np.uint32)
    indptr = X.indptr.astype(np.int64, copy=False).view(np.uint64)
    return np.empty((0, 0), dtype=data.dtype), data, indices, indptr
