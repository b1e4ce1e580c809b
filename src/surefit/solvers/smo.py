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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._jit.smo import solve_block
from ..iterate import Iterate
from .kernel_rows import RowSource, WholeMatrix

__all__ = ["BoxTask", "Multipliers", "smo"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_SINGLE = 2048  # variables that are one block
_SHARE = 4  # a sample has one row in so many
_ROUGH = 0.1  # how well its problem is solved
_BAND = 0.05  # half the width about the margin in which a row is of neither side
_INNER = 0.1  # of the violation: how well a block is solved
_NEAR = 1.0  # the violation below which rows begin to wait,
_FEWER = 0.8  # and the share of the rows that must be left
_ROUND = 20_000  # steps of a block between two looks at the clock
_POLISH = 8  # times that a small problem goes on after its tolerance is met
_SMALL = 1024
_FREE = 600  # free variables up to which their linear system is solved
_SWEEPS = 50  # bounds that the Newton steps of one round may run into
_EPS = float(np.finfo(np.float64).eps)
_EPS32 = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class BoxTask:
    """The numbers of the problem; ``row[i]`` is the row of the kernel matrix that variable i belongs to."""

    t: Array
    lo: Array
    hi: Array
    row: Index

    def null_value(self) -> float:
        """The primal objective at w = 0 with its best offset; 0 where it is infinite."""
        if not (np.isfinite(self.hi).all() and np.isfinite(self.lo).all()):
            return 0.0
        order = np.argsort(self.t)
        t, up, down = self.t[order], self.hi[order], -self.lo[order]
        slope = np.cumsum(down) - (up.sum() - np.cumsum(up))  # right of t_k
        b = t[min(int(np.searchsorted(slope, 0.0)), len(t) - 1)]
        return float(up @ np.maximum(t - b, 0.0) + down @ np.maximum(b - t, 0.0))


class Multipliers(NamedTuple):
    """A point: ``f`` is K beta over the rows of the kernel matrix."""

    beta: Array
    f: Array
    offset: float
    violation: float


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
    state = _State(source, task, beta, np.zeros(source.n), tol)
    if f is not None:
        state.f[:] = f
    elif beta.any():
        _refresh(source, task, beta, state.f)
    elif n > 2 * _SINGLE:
        yield from _from_a_sample(state, min(size, n), shrinking, limit)
    if n <= _SINGLE:
        yield from _one_block(state, limit)
    else:
        yield from _rounds(state, min(size, n), limit, shrinking)


def _from_a_sample(state: _State, size: int, shrinking: bool, limit: float) -> Iterator[Iterate]:
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
    weights = np.bincount(task.row[chosen], weights=found.beta, minlength=source.n)
    used = np.flatnonzero(weights)
    rough = np.zeros(source.n)
    source.add(used, weights[used], rough)
    if np.isfinite(task.hi).all() and np.isfinite(task.lo).all():
        fixed = np.full(len(task.t), np.nan)
        fixed[chosen] = found.beta / _SHARE
        state.beta[:] = _balanced(task, task.t - rough[task.row], found.offset, fixed)
    else:
        state.beta[chosen] = found.beta
    if np.isfinite(task.hi).all() and np.isfinite(task.lo).all():
        new = np.where(inside[task.row], 0.0, state.beta)
        state.f[:] = rough / _SHARE
        _refresh(source, task, new, state.f)
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


class _State:
    """What the rounds change: beta, f, and which rows of f are kept up to date."""

    def __init__(self, source: RowSource, task: BoxTask, beta: Array, f: Array, tol: float) -> None:
        self.source, self.task, self.beta, self.f, self.tol = source, task, beta, f, tol
        self.null = task.null_value()
        self.active: Index | None = None  # variables whose f is kept; None: all
        # groups of rows that wait, each with the moves of beta, over rows, that its f has not seen
        self.waiting: list[tuple[Index, Array]] = []

    def sides(self, among: Index | None = None) -> tuple[Array, Array, Array]:
        """v, and v where the variable may rise (else -inf) or fall (else inf)."""
        task = self.task
        pick = slice(None) if among is None else among
        v = task.t[pick] - self.f[task.row[pick]]
        up = np.where(self.beta[pick] < task.hi[pick], v, -np.inf)
        low = np.where(self.beta[pick] > task.lo[pick], v, np.inf)
        return v, up, low

    def floor(self) -> float:
        """What rounding does to f: below it a violation says nothing."""
        largest = float(self.source.diag.max(initial=0.0))
        return 8.0 * _EPS * (largest * float(np.linalg.norm(self.beta)) + 1.0)

    def iterate(self, steps: int) -> Iterate:
        """The point with its offset, over all variables."""
        task, beta = self.task, self.beta
        v, up, low = self.sides()
        top, bottom = float(up.max(initial=-np.inf)), float(low.min(initial=np.inf))
        free = (beta < task.hi) & (beta > task.lo)
        middle = 0.5 * (top + bottom) if math.isfinite(top + bottom) else max(top, -1e300)
        offset = float(v[free].mean()) if free.any() else middle
        quadratic = float(beta @ self.f[task.row])
        losses = np.maximum(v - offset, 0.0) @ _finite(task.hi) + np.maximum(
            offset - v, 0.0
        ) @ _finite(-task.lo)
        dual = float(task.t @ beta) - 0.5 * quadratic
        violation = max(top - bottom, 0.0)
        gap = 0.5 * quadratic + float(losses) - dual
        if not np.isfinite(task.hi).all() or not np.isfinite(task.lo).all():
            gap = 0.0  # a bound on the losses says nothing where they may not occur
        relative = gap / self.null if self.null > 0 else 0.0
        point = Multipliers(beta, self.f, offset, violation)
        return Iterate(point, value=-dual, estimate=max(violation, relative), cost=max(steps, 1))


def _finite(bounds: Array) -> Array:
    return np.where(np.isfinite(bounds), bounds, 0.0)


def _one_block(state: _State, limit: float) -> Iterator[Iterate]:
    """SMO on all variables at once, with Newton steps on the free ones.

    SMO finds out which variables are free; given these, the rest is a linear system. Small problems so end at
    the rounding of f, not at ``tol``: the model then depends on the data, not on the order of the rows.
    """
    task, source = state.task, state.source
    K = np.ascontiguousarray(source.block(task.row))
    diag, seen = source.diag[task.row], np.empty(1)
    v, inner, done, more = task.t - state.f[task.row], state.tol, 0, _POLISH
    limit = min(limit, max(10_000_000, 100 * len(v)))
    yield state.iterate(0)
    while done < limit:
        start = state.beta.copy()
        room = int(min(_ROUND, max(1000, 10 * len(v)), limit - done))
        steps = solve_block(K, diag, v, state.beta, task.lo, task.hi, inner, room, seen)
        done += steps
        if done < limit:
            _newton(state, K, task.t - K @ state.beta)
        move = np.bincount(task.row, weights=state.beta - start, minlength=source.n)
        rows = np.flatnonzero(move)
        source.add(rows, move[rows], state.f)
        v = task.t - state.f[task.row]  # without the rounding of many small updates
        point = state.iterate(steps)
        if point.x.violation <= state.floor() or not len(rows):
            yield point._replace(estimate=min(point.estimate, point.x.violation))
            return
        if point.estimate <= state.tol and more and len(v) <= _SMALL:
            more -= 1
        else:
            yield point
        inner = min(inner, 0.1 * point.x.violation)


def _newton(state: _State, K: NDArray[Any], v: Array) -> None:
    """Solve for the free variables with the others fixed, as far as their bounds allow.

    v_F - K_FF d = b 1, sum(d) = 0: the stationarity of the objective on the free variables. K_FF gets the
    rounding of its entries added to its diagonal. Where it is singular, for instance with more free variables
    than features, the step then runs along its null space until a variable meets its bound.
    """
    task, beta, full = state.task, state.beta, 0
    for _ in range(_SWEEPS):
        free = np.flatnonzero((beta > task.lo) & (beta < task.hi))
        if not 2 <= len(free) <= _FREE:
            return
        system = np.zeros((len(free) + 1, len(free) + 1))
        system[:-1, :-1] = K[np.ix_(free, free)]
        scale = float(np.abs(np.diagonal(system)).max()) or 1.0
        system[:-1, -1] = system[-1, :-1] = scale
        system.flat[: -1 : len(free) + 2] += 64.0 * _EPS * scale
        d = _linear_solve(system, np.append(v[free], 0.0))
        d = d[:-1] - d[:-1].mean()
        if (
            not np.isfinite(d).all() or not d @ v[free] > 0.0
        ):  # not a direction of ascent of the dual
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(
                d > 0, (task.hi[free] - beta[free]) / d, (task.lo[free] - beta[free]) / d
            )
        room[d == 0] = np.inf
        step = min(1.0, float(room.min()))
        moved = np.clip(beta[free] + step * d, task.lo[free], task.hi[free])
        if step < 1.0:
            hit = int(np.argmin(room))
            moved[hit] = task.hi[free[hit]] if d[hit] > 0 else task.lo[free[hit]]
        v -= K[:, free] @ (moved - beta[free])
        beta[free] = moved
        full += step == 1.0
        if full == 2:  # the second corrects what was added to the diagonal
            return


def _linear_solve(system: Array, right: Array) -> Array:
    """LAPACK's symmetric solver; a system that is singular after all gives infinities."""
    *_, x, info = scipy.linalg.lapack.dsysv(system, right)
    return x if info == 0 else np.full(len(right), np.inf)


def _rounds(state: _State, size: int, limit: float, shrinking: bool) -> Iterator[Iterate]:
    task = state.task
    kept = np.empty(0, dtype=np.int64)
    done, goal = 0, max(state.tol, _reach(state))
    point = state.iterate(0)
    yield point
    while done < limit:
        chosen, violation = _choose(state, size, kept)
        if violation <= goal or len(chosen) < 2:
            if state.active is not None:  # bring everything up to date before believing it
                _catch_up(state)
                continue
            point = state.iterate(0)
            if point.estimate <= state.tol and state.source.exact:
                yield point
                return
            if not state.source.exact and state.tol < goal:
                state.source = state.source.sharper()
                state.f[:] = 0.0
                _refresh(state.source, task, state.beta, state.f)
                goal = state.tol
                continue
            if point.estimate <= state.tol or violation <= state.floor():
                yield point
                return
            goal *= 0.5  # the violation is met, but not yet the gap
            continue
        steps, kept = _round(state, chosen, violation, goal, int(min(limit - done, 1 << 40)))
        done += steps
        if shrinking:
            _shrink(state, violation)
        yield state.iterate(steps)._replace(estimate=math.inf)  # f of waiting rows is behind


def _reach(state: _State) -> float:
    """What single precision can show: the rounding of f, a sum over the multipliers."""
    if state.source.exact:
        return 0.0
    largest = 1.0 + getattr(state.source, "largest", 1.0)
    return (
        8.0 * _EPS32 * largest * math.sqrt(float(_finite(state.task.hi) @ _finite(state.task.hi)))
    )


def _choose(state: _State, size: int, kept: Index) -> tuple[Index, float]:
    """The block of the next round, and the violation over the variables that are kept up to date."""
    among = state.active
    _, up, low = state.sides(among)
    top, bottom = up.max(initial=-np.inf), low.min(initial=np.inf)
    violation = float(top - bottom)
    if not violation > 0.0:
        return np.empty(0, dtype=np.int64), 0.0
    position = np.arange(len(up)) if among is None else among
    taken = np.zeros(len(state.task.t), dtype=np.bool_)
    taken[kept] = True
    fresh = size - len(kept)
    chosen = [kept]
    for score in (-up, low):
        order = _smallest(score, size)
        order = order[np.isfinite(score[order])]
        order = position[order]
        order = order[~taken[order]][: (fresh + 1) // 2]
        taken[order] = True
        chosen.append(order)
    return np.concatenate(chosen), violation


def _smallest(score: Array, count: int) -> Index:
    if count >= len(score):
        return np.argsort(score)
    first = np.argpartition(score, count)[:count]
    return first[np.argsort(score[first])]


def _round(
    state: _State, chosen: Index, violation: float, goal: float, limit: int
) -> tuple[int, Index]:
    """Solve the block; the steps made, and the variables to keep for the next round."""
    task, beta = state.task, state.beta
    rows = task.row[chosen]
    K, seen = np.ascontiguousarray(state.source.block(rows)), np.empty(1)
    local, v = beta[chosen], task.t[chosen] - state.f[rows]
    start = local.copy()
    inner = max(_INNER * violation, 0.5 * goal)
    lo, hi = task.lo[chosen], task.hi[chosen]
    steps = solve_block(K, state.source.diag[rows], v, local, lo, hi, inner, limit, seen)
    beta[chosen] = local
    move = np.bincount(rows, weights=local - start, minlength=state.source.n)
    changed = np.flatnonzero(move)
    if state.active is None:
        state.source.add(changed, move[changed], state.f)
    else:
        live = np.unique(task.row[state.active])
        state.source.add(changed, move[changed], state.f, live)
        for _, behind in state.waiting:
            behind[changed] += move[changed]
    free = (local > lo) & (local < hi)
    stay = chosen[free]
    if len(stay) > len(chosen) // 2:
        stay = stay[: len(chosen) // 2]
    return steps, stay


def _shrink(state: _State, violation: float) -> None:
    """Let variables wait that are at a bound and lie beyond the violators by as much as these violate."""
    task, among = state.task, state.active
    if violation > _NEAR:
        return
    pick = np.arange(len(task.t)) if among is None else among
    v, up, low = state.sides(among)
    top, bottom = float(up.max(initial=-np.inf)), float(low.min(initial=np.inf))
    wide = max(top - bottom, 0.0)
    waits = ((up == -np.inf) & (v > top + wide)) | ((low == np.inf) & (v < bottom - wide))
    stays = pick[~waits]
    if len(stays) < _FEWER * len(pick):
        left = np.setdiff1d(task.row[pick], task.row[stays])
        state.waiting.append((left, np.zeros(state.source.n)))
        state.active = stays


def _catch_up(state: _State) -> None:
    """Bring f of the waiting rows up to date, and let all take part again."""
    for group, behind in state.waiting:
        rows = np.flatnonzero(behind)
        if len(rows) and len(group):
            state.source.add(rows, behind[rows], state.f, group)
    state.active, state.waiting = None, []


def _refresh(source: RowSource, task: BoxTask, beta: Array, f: Array) -> None:
    """Add K beta to f."""
    weights = np.bincount(task.row, weights=beta, minlength=source.n)
    rows = np.flatnonzero(weights)
    if len(rows):
        source.add(rows, weights[rows], f)
