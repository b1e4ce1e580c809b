"""The pass over the rows of :mod:`surefit.cluster._kmeans_look` for tensors, on their device.

Products are in float64 throughout: on a GPU these cost little more than reading the rows. What they leave
open comes to the host, to be decided there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy

__all__ = ["TensorTable"]

Array = NDArray[np.float64]
_CELLS = 1 << 26  # scores at a time


class TensorTable:
    """The centres of a table, and what is needed to compare rows with them, beside a tensor."""

    def __init__(self, table: Any, X: Any) -> None:
        import torch

        def near(values: Any) -> Any:
            return torch.as_tensor(values, dtype=torch.float64, device=X.device)

        self.table, self.centres, self.origin = table, near(table.centres), near(table.origin)
        self.middle = near(table.middle)
        products, halves, self.slope, self.floor = table.kinds[1]
        self.products, self.halves, self.scale = near(products), near(halves), table.scale

    def pieces(self, block: Any) -> Any:
        """(first, rows in float64) of a block, so many that their scores fit into a bounded memory."""
        size = max(1, _CELLS // max(self.centres.shape))
        for first in range(0, len(block), size):
            yield first, block[first : first + size].double()

    def _scores(self, x: Any) -> tuple[Any, Any]:
        """Scores, and twice the bound on their errors."""
        moved = (x - self.origin) * self.scale
        length = moved.square().sum(dim=1).sqrt()
        return self.halves - moved @ self.products, 2.0 * (self.slope * length + self.floor)

    def part(self, x: Any, z: Any, w: Any) -> Any:
        """What :func:`surefit.cluster._kmeans_look._block` finds, for these rows, labels and weights."""
        import torch

        scores, error = self._scores(x)
        z = z.long()[:, None]
        own = scores.gather(1, z)[:, 0]
        rival = scores.scatter_(1, z, torch.inf).min(dim=1).values
        doubt = torch.nonzero(~(rival - own > error))[:, 0]
        gap, centred = x - self.centres[z[:, 0]], x - self.middle
        shares = scores.zero_().scatter_(
            1, z, w[:, None]
        )  # a product adds in the same order each time
        sums = shares.T @ gap, shares.sum(dim=0), centred.sum(dim=0), centred.square().sum(dim=0)
        values = (w * gap.square().sum(dim=1)).sum(), (w * centred.square().sum(dim=1)).sum()
        left = zip(to_numpy(x[doubt]), to_numpy(z[doubt, 0]).tolist())
        return (*map(to_numpy, (*sums, w @ centred)), *map(float, values), list(left))

    def nearest(self, x: Any) -> Any:
        """The nearest centre of each row, in exact arithmetic, the lowest of equals."""
        import torch

        scores, error = self._scores(x)
        best, labels = scores.min(dim=1)
        close = torch.nonzero((scores <= (best + error)[:, None]).sum(dim=1) > 1)[:, 0]
        if len(close):
            exact = self.table.nearest(to_numpy(x[close]))
            labels[close] = torch.as_tensor(exact, device=labels.device)
        return labels

    def sums(self, x: Any, z: Any, w: Any) -> tuple[Array, Array]:
        """The weighted sums of x - origin and of the weights, cluster by cluster."""
        import torch

        shares = torch.zeros((len(x), len(self.centres)), dtype=torch.float64, device=x.device)
        shares.scatter_(1, z[:, None], w[:, None])
        return to_numpy(shares.T @ (x - self.origin)), to_numpy(shares.sum(dim=0))
