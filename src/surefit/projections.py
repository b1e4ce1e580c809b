"""Projections onto convex sets: ball, box, simplex (CVX-9).

P_C(w) = argmin over v in C of ||v - w|| exists and is unique for a closed convex C; it is characterised by
<w - P w, v - P w> <= 0 for all v in C, is idempotent, and never increases distances.

Examples
--------
>>> import numpy as np
>>> project_simplex(np.array([0.75, 0.5, -1.0])).tolist()
[0.625, 0.375, 0.0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["project_ball", "project_box", "project_simplex"]

Array = NDArray[np.float64]


def project_ball(w: Array, radius: float = 1.0) -> Array:
    """The nearest point with ||v||_2 <= radius."""
    if not radius >= 0:
        raise ValueError(f"radius must be non-negative, got {radius!r}.")
    norm = float(np.linalg.norm(w))
    return w if norm <= radius else w * (radius / norm)


def project_box(w: Array, low: float = 0.0, high: float = 1.0) -> Array:
    """The nearest point with low <= v <= high, coordinate by coordinate."""
    if not low <= high:
        raise ValueError(f"low must not exceed high, got low={low!r}, high={high!r}.")
    return np.clip(w, low, high)


def project_simplex(w: Array, total: float = 1.0) -> Array:
    """The nearest point with v >= 0 and sum(v) = total.

    v = [w - tau]_+ with tau chosen to meet the sum; sorting finds tau in O(d log d)
    (Held, Wolfe & Crowder 1974; Duchi et al. 2008).
    """
    if not total > 0:
        raise ValueError(f"total must be positive, got {total!r}.")
    w = w - w.max()  # a common shift changes nothing, and keeps the sums below exact
    descending = np.sort(w)[::-1]
    excess = np.cumsum(descending) - total
    support = np.nonzero(descending * np.arange(1, len(w) + 1) > excess)[0][-1]
    return np.maximum(w - excess[support] / (support + 1), 0.0)
