"""Exact labels of a torch tensor's rows, on its device, as :mod:`surefit.solvers.assignment` does it.

One product a block of rows, in float32 with the bound E; rows that it leaves open are compared by
differences in float64, and what is still open there goes to the processor, to be decided exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..design import Dense, Design
from .assignment import Centres, Frame, Labeller, Tally

__all__ = ["TorchLabeller"]

Array = NDArray[np.float64]
_CELLS = 1 << 24  # scores, or differences, at a time


class TorchLabeller:
    """The labels of a tensor's rows; see :class:`surefit.solvers.assignment.Labeller`."""

    def __init__(self, design: Design, frame: Frame, weights: Any = None) -> None:
        import torch

        self.design, self.frame, self.weights = design, frame, weights
        local: Any = getattr(design, "local", design)
        self.X = local.X
        device = self.X.device
        self.labels = torch.full((design.rows_here,), -1, dtype=torch.int32, device=device)
        self.mean = torch.as_tensor(frame.mean, device=device)

    def step(self, centres: Array, *, collect: bool = True) -> Tally:
        """Label every row; with ``collect`` also add up the rows of each cluster."""
        import torch

        X = self.X
        k, p = centres.shape
        now = Centres(centres, self.frame)
        table = torch.as_tensor(now.centres, device=X.device)
        rounded = torch.as_tensor(now.rounded, device=X.device)
        halves = torch.as_tensor(now.halves.reshape(-1)[now.place], device=X.device)
        sums = torch.zeros((k, p), dtype=torch.float64, device=X.device)
        masses = torch.zeros(k, dtype=torch.float64, device=X.device)
        changed, step = 0, max(1, _CELLS // max(k, p))
        for start in range(0, len(X), step):
            rows = slice(start, min(start + step, len(X)))
            gap = X[rows].double() - self.mean
            labels = self._block(X[rows], gap, table, rounded, halves, now)
            changed += int((labels != self.labels[rows]).sum())
            self.labels[rows] = labels
            if collect:
                w = torch.ones(len(gap), dtype=torch.float64, device=X.device)
                w = w if self.weights is None else self.weights[rows]
                _add(sums, masses, labels.long(), gap, w)
        return Tally(to_numpy(sums), to_numpy(masses), changed)

    def _block(self, X: Any, gap: Any, table: Any, rounded: Any, halves: Any, now: Centres) -> Any:
        import torch

        a = (gap * self.frame.scale).float()
        scores = torch.addmm(halves.expand(len(a), -1), a, rounded.T, alpha=-1.0)
        if len(halves) == 1:
            return torch.zeros(len(a), dtype=torch.int32, device=X.device)
        least, at = torch.topk(scores, 2, dim=1, largest=False)
        loose = 2.0**13 if _coarse(X) else 1.0  # tensor cores that keep ten bits
        error = loose * (now.slope * a.double().square().sum(dim=1).sqrt() * 1.001 + now.floor)
        labels = at[:, 0].int()
        open_ = torch.nonzero(~((least[:, 1] - least[:, 0]).double() > 2.0 * error)).flatten()
        size = max(1, _CELLS // table.numel())
        for k in range(0, len(open_), size):
            part = open_[k : k + size]
            labels[part] = self._differences(X[part].double(), table, now)
        return labels

    def _differences(self, x: Any, table: Any, now: Centres) -> Any:
        """Labels by float64 differences; by the processor's exact ways where these are too close."""
        import torch

        squares = (x[:, None, :] - table[None]).square().sum(dim=2)
        least, at = squares.min(dim=1)
        error = (table.shape[1] + 8) * 2.0**-53
        near = (squares <= (least * (1.0 + 4.0 * error) + 2.0**-899)[:, None]).sum(dim=1)
        labels = at.int()
        tied = torch.nonzero(near > 1).flatten()
        if len(tied):
            exact = Labeller(Dense(np.ascontiguousarray(to_numpy(x[tied]))), self.frame, keep=False)
            exact.step(now.centres, collect=False)
            labels[tied] = torch.as_tensor(exact.labels, device=x.device)
        return labels


def _coarse(X: Any) -> bool:
    import torch

    return X.device.type == "cuda" and torch.backends.cuda.matmul.allow_tf32


def _add(sums: Any, masses: Any, labels: Any, gap: Any, w: Any) -> None:
    """sums[label] += w * row, the same bits each time: products on a GPU, where adding in place is not."""
    import torch

    if gap.device.type == "cpu":
        sums.index_add_(0, labels, w[:, None] * gap)
        masses.index_add_(0, labels, w)
        return
    shares = torch.nn.functional.one_hot(labels, len(masses)).double() * w[:, None]
    sums += shares.T @ gap
    masses += shares.sum(dim=0)
