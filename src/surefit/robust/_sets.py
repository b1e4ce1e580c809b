"""Pieces of the set of allowed perturbations: water filling in a box, one-hot blocks and their switches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["nearest_patterns", "patterns_of", "sum_of_largest", "water_fill"]

Array = NDArray[np.float64]


def water_fill(g: Array, room: Array, radius: Array) -> Array:
    r"""argmax <g, delta> with ||delta||_2 <= radius and 0 <= sign(g_j) delta_j <= room_j, row by row.

    The answer is delta = sign(g) min(t |g|, room). Its norm grows with t, so that the columns reach their
    room in the order of room_j / |g_j|; between two of them the norm is known in closed form: ||delta||^2 =
    sum_{full} room^2 + t^2 sum_{free} g^2.
    """
    size = np.abs(g)
    used = (size > 0) & (room > 0)
    full_at = np.where(used, room / np.where(used, size, 1.0), np.inf)
    order = np.argsort(full_at, axis=1)
    sizes = np.take_along_axis(np.where(used, size, 0.0), order, axis=1)
    rooms = np.take_along_axis(np.where(used, room, 0.0), order, axis=1)
    spent = np.cumsum(rooms**2, axis=1) - rooms**2  # by the columns that are full before column j
    free = np.cumsum((sizes**2)[:, ::-1], axis=1)[:, ::-1]  # of column j and those after it
    t_full = np.take_along_axis(full_at, order, axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        norm_when_full = spent + np.where(free > 0, t_full**2 * free, 0.0)
    square = (radius**2)[:, None]
    over = norm_when_full > square
    first = np.where(over.any(axis=1), over.argmax(axis=1), over.shape[1] - 1)[:, None]
    left = np.maximum(square - np.take_along_axis(spent, first, axis=1), 0.0)
    rest = np.take_along_axis(free, first, axis=1)
    t = np.sqrt(left / np.where(rest > 0, rest, 1.0))
    everything = ~over.any(axis=1, keepdims=True)
    delta = np.where(everything, room, np.minimum(t * size, room))
    delta = np.where(used, np.sign(g) * delta, 0.0)
    norm = np.sqrt((delta**2).sum(axis=1))
    limit = radius * (1.0 - 4.0 * np.finfo(np.float64).eps)  # rounding stays inside
    shrink = np.where(norm > limit, limit / np.where(norm > 0, norm, 1.0), 1.0)
    return delta * np.where(everything[:, 0] & (norm <= radius), 1.0, shrink)[:, None]


def patterns_of(threat: Any, group: NDArray[np.intp], d: int) -> Array:
    """The categories of a block as rows: one column on, the others off; a single column is on or off."""
    off, on = (np.broadcast_to(value, d)[group] for value in (threat.off, threat.on))
    if len(group) == 1:
        return np.array([[off[0]], [on[0]]])
    return np.where(np.eye(len(group), dtype=np.bool_), on, off)


def nearest_patterns(threat: Any, x0: Array, x: Array, out: Array | None) -> Any:
    """Which rows of x differ from x0 in at most ``flips`` blocks, each by a switch to a category.

    With ``out``, write there the blocks of the allowed point that is nearest to x instead.
    """
    moved, targets, exact = [], [], np.ones(len(x0), dtype=np.bool_)
    for group in threat.flipping:
        P = patterns_of(threat, group, x0.shape[1])
        gap = ((x[:, None, group] - P[None]) ** 2).sum(axis=2)
        best = gap.argmin(axis=1)
        stay = ((x[:, group] - x0[:, group]) ** 2).sum(axis=1)
        targets.append(P[best])
        moved.append(stay - gap.min(axis=1))
        exact &= (x[:, group] == x0[:, group]).all(axis=1) | (gap.min(axis=1) == 0.0)
    if not moved:
        return exact
    gain = np.stack(moved, axis=1)
    if out is None:
        return exact & ((gain > 0).sum(axis=1) <= threat.flips)
    order = np.argsort(-gain, axis=1, kind="stable")[:, : threat.flips]
    chosen = np.zeros(gain.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order, True, axis=1)
    chosen &= gain > 0
    for j, group in enumerate(threat.flipping):
        out[:, group] = np.where(chosen[:, j, None], targets[j], x0[:, group])
    return exact


def sum_of_largest(values: Array, k: int) -> Array:
    """The sum of the k largest entries of each row."""
    return np.sort(values, axis=1)[:, ::-1][:, :k].sum(axis=1)
