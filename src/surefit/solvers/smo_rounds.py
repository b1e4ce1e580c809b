"""Rounds of working sets: the worst violators and the free variables of the last round, solved by SMO."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._jit.smo import solve_block
from ..iterate import Iterate
from .smo_state import State

__all__ = ["rounds"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_INNER = 0.1  # of the violation: how well a block is solved
_NEAR = 1.0  # the violation below which rows begin to wait,
_FEWER = 0.8  # and the share of the rows that must be left
_SHOW = 10  # rounds between two looks at the objective
_PATIENCE = 60  # rounds without progress: rounding is all that is left
_EPS32 = float(np.finfo(np.float32).eps)


def rounds(state: State, size: int, limit: float, shrinking: bool) -> Iterator[Iterate]:
    """Rounds until the violation and the gap are met over all rows, in the precision that this takes."""
    kept = np.empty(0, dtype=np.int64)
    done, aim, best, stale, rounds_made = 0, state.tol, math.inf, 0, 0
    point = state.iterate(0)
    yield point
    while done < limit:
        chosen, violation = _choose(state, size, kept)
        reach = _reach(state)
        best, stale = (violation, 0) if violation < 0.9 * best else (best, stale + 1)
        if violation <= max(aim, reach) or len(chosen) < 2 or stale > _PATIENCE:
            if state.active is not None:  # bring everything up to date before believing it
                _catch_up(state)
                best, stale = math.inf, 0
                continue
            point = state.iterate(0)
            if point.estimate <= state.tol and reach <= state.tol:
                yield point
                return
            if not state.source.exact and (reach > 0.5 * aim or stale > _PATIENCE):
                state.source = state.source.sharper()
                state.f[:] = 0.0
                state.refresh()
            elif violation <= state.floor() or stale > _PATIENCE:
                yield point
                return
            else:
                aim *= 0.5  # the violation is met, but not yet the gap
            best, stale = math.inf, 0
            continue
        room = int(min(limit - done, 1 << 40))
        steps, kept = _round(state, chosen, violation, max(aim, reach), room)
        done += steps
        if shrinking:
            _shrink(state, violation)
        rounds_made += 1
        if rounds_made % _SHOW == 0 or done >= limit:
            point = state.iterate(steps)
        else:  # the objective over all rows costs as much as the choice of a block: not each time
            point = point._replace(cost=steps)
        yield point._replace(estimate=math.inf)  # f of waiting rows is behind


def _reach(state: State) -> float:
    """What single precision can show: the rounding of f, a sum over the multipliers."""
    if state.source.exact:
        return 0.0
    largest = 1.0 + getattr(state.source, "largest", 1.0)
    return 2.0 * _EPS32 * largest * float(np.linalg.norm(state.beta))


def _choose(state: State, size: int, kept: Index) -> tuple[Index, float]:
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
    state: State, chosen: Index, violation: float, goal: float, limit: int
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
    changed, moves = state.moved(start, chosen)
    if state.active is None:
        state.source.add(changed, moves, state.f)
    else:
        state.source.add(changed, moves, state.f, state.live)
        for _, behind in state.waiting:
            behind[changed] += moves
    free = (local > lo) & (local < hi)
    stay = chosen[free]
    if len(stay) > len(chosen) // 2:
        stay = stay[: len(chosen) // 2]
    return steps, stay


def _shrink(state: State, violation: float) -> None:
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
        state.active, state.live = stays, np.unique(task.row[stays])


def _catch_up(state: State) -> None:
    """Bring f of the waiting rows up to date, and let all take part again."""
    for group, behind in state.waiting:
        rows = np.flatnonzero(behind)
        if len(rows) and len(group):
            state.source.add(rows, behind[rows], state.f, group)
    state.active, state.live, state.waiting = None, None, []
