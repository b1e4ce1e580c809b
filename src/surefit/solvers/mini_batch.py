r"""One step of mini-batch k-means: label some rows, move each centre to the mean of all rows it ever had.

With v_j the weight that centre j has seen, c_j <- (v_j c_j + sum of the new rows) / (v_j + their weight): a
learning rate that falls as 1 / v_j, so that the centres settle, at no point that is sure to be stationary.
Centres that saw less than a share of what the busiest saw are put on rows of the batch now and then.

References
----------
Sculley, "Web-scale k-means clustering" (WWW 2010).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..design import Design
from .lloyd import describe, inertia, labeller_of, rows_here

__all__ = ["mini_batch_step"]

Array = NDArray[np.float64]


def mini_batch_step(
    batch: Design, weights: Any, centres: Array, seen: Array, random_state: Any, *, reassign: bool,
    ratio: float, verbose: int = 0,
) -> tuple[Array, float]:  # fmt: skip
    """New centres, and the batch's sum of squares about the old ones; ``seen`` is updated in place."""
    frame = describe(batch, weights, centres).frame
    labeller = labeller_of(batch, frame, weights, keep=False)
    tally = labeller.step(centres)
    cost = inertia(batch, centres, labeller.labels, weights)
    hit = tally.masses > 0.0
    new = centres.copy()
    total = seen[hit] + tally.masses[hit]
    gap = (centres[hit] - frame.mean) * seen[hit, None] + tally.sums[hit]
    new[hit] = frame.mean + gap / total[:, None]
    seen[hit] = total
    n = batch.shape[0]
    if reassign and ratio > 0:
        poor = seen < ratio * seen.max()
        if poor.sum() > 0.5 * n:
            poor[np.argsort(seen)[int(0.5 * n) :]] = False
        count = int(poor.sum())
        if count:
            chosen = random_state.choice(n, replace=False, size=count)
            if verbose:
                print(f"[MiniBatchKMeans] Reassigning {count} cluster centers.")
            new[poor] = rows_here(batch, chosen)
        seen[poor] = np.min(seen[~poor])
    return new, cost
