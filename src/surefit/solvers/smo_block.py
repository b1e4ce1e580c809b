"""SMO on all variables of a small problem at once, with Newton steps on the free ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .._jit.smo import solve_block
from ..iterate import Iterate
from .smo_state import State

__all__ = ["one_block"]

Array = NDArray[np.float64]
_ROUND = 20_000  # steps of a block between two looks at the clock
_POLISH = 8  # times that a small problem goes on after its tolerance is met
_SMALL = 1024
_FREE = 600  # free variables up to which their linear system is solved
_WORK = 5e8  # the cubes of their numbers, summed over the steps of a round
_ROUGH = 0.05  # a tolerance that needs no Newton steps
_SWEEPS = 50  # bounds that the Newton steps of one round may run into
_EPS = float(np.finfo(np.float64).eps)


def one_block(state: State, limit: float) -> Iterator[Iterate]:
    """SMO on all variables at once, with Newton steps on the free ones.

    SMO finds out which variables are free; given these, the rest is a linear system. Small problems so end at
    the rounding of f, not at ``tol``: the model then depends on the data, not on the order of the rows.
    """
    if not state.source.exact:  # float64 costs little here, and float32 may never show tol
        state.source = state.source.sharper()
        state.f[:] = 0.0
        state.refresh()
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
        if done < limit and state.tol < _ROUGH:
            _newton(state, K, task.t - K @ state.beta)
        rows, moves = state.moved(start)
        source.add(rows, moves, state.f)
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


def _newton(state: State, K: NDArray[Any], v: Array) -> None:
    """Solve for the free variables with the others fixed, as far as their bounds allow.

    v_F - K_FF d = b 1, sum(d) = 0: the stationarity of the objective on the free variables. K_FF gets the
    rounding of its entries added to its diagonal. Where it is singular, for instance with more free variables
    than features, the step then runs along its null space until a variable meets its bound.
    """
    task, beta, full = state.task, state.beta, 0
    work = 0.0
    for _ in range(_SWEEPS):
        free = np.flatnonzero((beta > task.lo) & (beta < task.hi))
        work += float(len(free)) ** 3
        if not 2 <= len(free) <= _FREE or work > _WORK:
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
