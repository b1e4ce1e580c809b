"""Words in the plane of the two main directions of their vectors, each beside its point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["plot_words"]

Array = NDArray[np.float64]
_SIZE, _AWAY, _WIDTH = 9, 5, 0.62  # of letters in points; from point to word; of a letter, in sizes
# where a word can stand: (right, middle or left of its point, above, beside or below it)
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1), (1, 0), (-1, 0))


def plot_words(names: list[str], rows: Array, ax: Any = None) -> Any:
    """Points and words; the directions are the principal ones of the rows."""
    from matplotlib import pyplot as plt

    rows = rows - rows.mean(axis=0)
    left, sizes, _ = np.linalg.svd(rows, full_matrices=False)
    plane = np.zeros((len(names), 2))
    plane[:, : min(2, len(sizes))] = (left * sizes)[:, :2]
    total = max(float(np.sum(sizes**2)), np.finfo(float).tiny)
    share = [*(sizes**2 / total).tolist(), 0.0]
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 6), layout="constrained")
    ax.plot(plane[:, 0], plane[:, 1], "o", color="#0072B2", ms=4)
    ax.set(
        xlabel=f"first direction, {share[0]:.0%} of the variance",
        ylabel=f"second direction, {share[1]:.0%}",
    )
    ax.margins(0.12)
    ax.grid(alpha=0.3)
    lengths = np.array([len(name) for name in names])
    points = ax.transData.transform(plane) * 72.0 / ax.figure.dpi
    for name, xy, (right, up) in zip(names, plane.tolist(), sides(points, lengths), strict=True):
        ax.annotate(
            name.replace("$", r"\$"), xy, xytext=(_AWAY * right, _AWAY * up),
            textcoords="offset points", fontsize=_SIZE,
            ha=("right", "center", "left")[right + 1], va=("top", "center", "bottom")[up + 1],
        )  # fmt: skip
    return ax


def sides(points: Array, lengths: NDArray[np.int64]) -> list[tuple[int, int]]:
    """On which side of its point each word of so many letters stands: where it covers least.

    Words take their places one by one; points count as much as words that already stand. Coordinates are in
    typographic points.

    Examples
    --------
    >>> sides(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([4, 4]))
    [(1, 1), (1, -1)]
    """
    dots = np.hstack([points - 3.0, points + 3.0])  # left, bottom, right, top
    placed: list[Array] = []
    found: list[tuple[int, int]] = []
    for k, length in enumerate(lengths.tolist()):
        size = np.array([_WIDTH * _SIZE * length, 1.2 * _SIZE])
        boxes, costs = [], []
        for side in _SIDES:
            corner = points[k] + _AWAY * np.array(side) + (np.array(side) - 1) * size / 2.0
            box = np.concatenate([corner, corner + size])
            others = np.vstack([np.delete(dots, k, axis=0), *placed])
            width = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
            height = np.minimum(box[3], others[:, 3]) - np.maximum(box[1], others[:, 1])
            costs.append(float((width.clip(0.0) * height.clip(0.0)).sum()))
            boxes.append(box)
        best = int(np.argmin(costs))
        found.append(_SIDES[best])
        placed.append(boxes[best][None])
    return found
