r"""Support vector machines by working sets: large blocks chosen by violation, solved by SMO.

Classification and regression are one problem, in the signed multipliers beta_i = y_i alpha_i,

    min_beta  1/2 beta'K beta - t'beta,     sum_i beta_i = 0,     lo_i <= beta_i <= hi_i.

SVC has t = y, and [0, C_i] or [-C_i, 0] as the label says; SVR has two variables a row, t = z - epsilon with
[0, C_i] and t = z + epsilon with [-C_i, 0]. With f = K beta and v = t - f the point is optimal iff every
variable that may rise has v_i <= b and every one that may fall has v_i >= b for one b, the offset. The
violation is max_up v - min_low v.

Each round chooses the worst violators, half from each side, and keeps the variables of the last round that
are still free; the problem on this block is solved by SMO in compiled code; f follows by one product of the
kernel columns whose beta changed. Rows that lie far from the margin on their side are left out of that
product while the others settle (shrinking), and are brought up to date before the end. Small problems are
one block.

Kernel values in single precision carry the first rounds of a large problem; when ``tol`` asks for more than
they can show, f is computed anew in double precision and the rounds go on with that.

References
----------
Platt (1998); Joachims, "Making large-scale SVM learning practical" (1999); Fan, Chen & Lin, JMLR 6 (2005);
Wen et al., "ThunderSVM", JMLR 19 (2018).

Examples
--------
>>> import numpy as np
>>> from surefit.iterate import run
>>> from surefit.solvers.kernel_rows import WholeMatrix
>>> X, y = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]]), np.array([-1.0, 1, 1, 1])
>>> task = BoxTask(y, np.minimum(0, y) * 10, np.maximum(0, y) * 10, np.arange(4))
>>> fit = run(smo(WholeMatrix(X @ X.T), task, tol=1e-12), tol=1e-12, max_iter=1000)
>>> np.abs(fit.x.beta).round(9).tolist(), round(fit.x.offset, 9)
([4.0, 2.0, 2.0, 0.0], -1.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..iterate import Iterate
from .kernel_rows import RowSource
from .smo_block import one_block
from .smo_rounds import rounds
from .smo_state import BoxTask, Multipliers, State, over_rows_of

__all__ = ["BoxTask", "Multipliers", "smo"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_SINGLE = 2048  # variables that are one block
_SHARE = 4  # a sample has one row in so many
_ROUGH = 0.1  # how well its problem is solved
_BAND = 0.05  # half the width about the margin in which a row is of neither side


def smo(
    source: RowSource,
    task: BoxTask,
    *,
    tol: float,
    beta: Array | None = None,
    f: Array | None = None,
    size: int = 1024,
    shrinking: bool = True,
    max_steps: int | None = None,
) -> Iterator[Iterate]:
    """Yield :class:`Multipliers`, with their violation or relative gap, the larger, as the estimate.

    Parameters
    ----------
    source : RowSource
        The kernel matrix.
    task : BoxTask
    tol : float
        What the violation should come to; the driver stops there.
    beta, f : array, optional
        A feasible start, such as the solution for a smaller C, and K beta over the rows if it is known.
    size : int
        Variables in a block.
    shrinking : bool
        Whether rows far from the margin wait.
    max_steps : int, optional
        Most SMO steps in all.
    """
    n = len(task.t)
    beta = np.zeros(n) if beta is None else np.array(beta, dtype=np.float64)
    limit = math.inf if max_steps is None else max_steps
    state = State(source, task, beta, np.zeros(source.n), tol)
    if f is not None:
        state.f[:] = f
    elif beta.any():
        state.refresh()
    elif n > 2 * _SINGLE:
        yield from from_a_sample(state, min(size, n), shrinking, limit)
    if n <= _SINGLE:
        yield from one_block(state, limit)
    else:
        yield from rounds(state, min(size, n), limit, shrinking)


def from_a_sample(state: State, size: int, shrinking: bool, limit: float) -> Iterator[Iterate]:
    """A start: the solution for a quarter of the rows, each counted four times, says which side rows are on.

    Rows in the sample keep a quarter of their multiplier. The others get C or 0 by their loss under that
    solution, and something between within a band about the margin; the offset is moved until they balance.
    """
    task, source = state.task, state.source
    rows = _sample(task, source.n)
    inside = np.zeros(source.n, dtype=np.bool_)
    inside[rows] = True
    place = np.cumsum(inside) - 1
    chosen = np.flatnonzero(inside[task.row])
    part = BoxTask(
        task.t[chosen], _SHARE * task.lo[chosen], _SHARE * task.hi[chosen],
        place[task.row[chosen]],
    )  # fmt: skip
    inner = smo(
        source.among(np.flatnonzero(inside)), part, tol=max(state.tol, _ROUGH), size=size,
        shrinking=shrinking, max_steps=None if limit == math.inf else int(limit),
    )  # fmt: skip
    found, steps = Multipliers(np.zeros(len(chosen)), state.f, 0.0, math.inf), 0
    for iterate in inner:
        found, steps = iterate.x, steps + iterate.cost
        if iterate.estimate <= max(state.tol, _ROUGH) or steps >= limit:
            break
    used, weights = over_rows_of(task.row[chosen], found.beta, source.n)
    rough = np.zeros(source.n)
    source.add(used, weights, rough)
    if np.isfinite(task.hi).all() and np.isfinite(task.lo).all():
        fixed = np.full(len(task.t), np.nan)
        fixed[chosen] = found.beta / _SHARE
        state.beta[:] = _balanced(task, task.t - rough[task.row], found.offset, fixed)
    else:
        state.beta[chosen] = found.beta
    if np.isfinite(task.hi).all() and np.isfinite(task.lo).all():
        new = np.where(inside[task.row], 0.0, state.beta)
        state.f[:] = rough / _SHARE
        state.refresh(new)
    else:
        state.f[:] = rough
    yield state.iterate(steps)._replace(estimate=math.inf)


def _sample(task: BoxTask, n: int) -> Index:
    """One row in ``_SHARE``, from each side alike."""
    side = np.zeros(n)
    side[task.row] = task.hi > 0
    order = np.random.default_rng(0).permutation(n)
    order = order[np.argsort(side[order], kind="stable")]
    return np.sort(order[::_SHARE])


def _balanced(task: BoxTask, v: Array, offset: float, fixed: Array) -> Array:
    """Multipliers by loss, those in ``fixed`` as they are, that sum to 0."""
    free = np.isnan(fixed)
    given = float(fixed[~free].sum())
    lo, hi, v = task.lo[free], task.hi[free], v[free]

    def at(b: float) -> Array:
        share = np.clip(0.5 + (v - b) / (2.0 * _BAND), 0.0, 1.0)
        return np.where(hi > 0, hi * share, lo * (1.0 - share))

    left, right = offset - 1.0, offset + 1.0
    while at(left).sum() + given < 0.0 and left > -1e12:
        left -= 2.0 * (right - left)
    while at(right).sum() + given > 0.0 and right < 1e12:
        right += 2.0 * (right - left)
    for _ in range(60):
        middle = 0.5 * (left + right)
        if at(middle).sum() + given > 0.0:
            left = middle
        else:
            right = middle
    beta = fixed.copy()
    beta[free] = at(0.5 * (left + right))
    return _settle(beta, task)


def _settle(beta: Array, task: BoxTask) -> Array:
    """The same with what is missing to a sum of 0 put where there is room."""
    for _ in range(100):
        rest = float(beta.sum())
        room = beta - task.lo if rest > 0 else task.hi - beta
        k = int(np.argmax(room))
        move = min(abs(rest), float(room[k]))
        if move == 0.0:
            break
        beta[k] -= math.copysign(move, rest)
        if beta.sum() == 0.0:
            break
    return beta
