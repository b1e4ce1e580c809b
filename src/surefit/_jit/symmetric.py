"""Products with a symmetric matrix of which only the lower triangle is stored, each number read once.

A panel holds rows first..last of the matrix up to column ``last``. What stands left of its diagonal block
serves twice, for its own rows and, transposed, for the rows above: half the memory and half the reading of
a full product, and reading is what takes the time. A closed file.
"""

from __future__ import annotations

from numba import njit

__all__ = ["add_panel"]

_FAST = {"reassoc", "contract", "nsz"}


@njit(
    "void(Array(float32, 2, 'C', readonly=True), int64, Array(float32, 1, 'C', readonly=True), "
    "float32[::1], float64[::1])",
    cache=True,
    nogil=True,
    fastmath=_FAST,
)
def add_panel(panel, first, x, above, out):
    """Add the panel's part of K x to ``out``; ``above`` is space for ``first`` numbers."""
    height, width = panel.shape
    for j in range(first):
        above[j] = 0.0
    whole = height - height % 4
    for i in range(
        0, whole, 4
    ):  # four rows at a time, so that ``above`` is read and written once for them
        p0, p1, p2, p3 = panel[i], panel[i + 1], panel[i + 2], panel[i + 3]
        x0, x1, x2, x3 = x[first + i], x[first + i + 1], x[first + i + 2], x[first + i + 3]
        s0 = s1 = s2 = s3 = x0 - x0
        for j in range(first):
            s0 += p0[j] * x[j]
            s1 += p1[j] * x[j]
            s2 += p2[j] * x[j]
            s3 += p3[j] * x[j]
            above[j] += p0[j] * x0 + p1[j] * x1 + p2[j] * x2 + p3[j] * x3
        for j in range(first, width):
            s0 += p0[j] * x[j]
            s1 += p1[j] * x[j]
            s2 += p2[j] * x[j]
            s3 += p3[j] * x[j]
        out[first + i] += s0
        out[first + i + 1] += s1
        out[first + i + 2] += s2
        out[first + i + 3] += s3
    for i in range(whole, height):
        row, xi = panel[i], x[first + i]
        s = xi - xi
        for j in range(first):
            s += row[j] * x[j]
            above[j] += row[j] * xi
        for j in range(first, width):
            s += row[j] * x[j]
        out[first + i] += s
    for j in range(first):
        out[j] += above[j]
