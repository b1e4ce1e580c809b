r"""The exponential moving average of weights.

.. math:: \bar w \leftarrow d_t\, \bar w + (1 - d_t)\, w, \qquad d_t = \min\{d,\ (1 + t) / (10 + t)\},

so that the first weights, which are random, are soon forgotten. Buffers (the means of batch norm) are those
of the last step.

References
----------
B. Polyak, A. Juditsky. Acceleration of stochastic approximation by averaging. SIAM Journal on Control and
Optimization 30, 1992.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

__all__ = ["EMA"]


class EMA:
    """Averaged weights beside those of a module.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Linear(1, 1, bias=False)
    >>> _ = torch.nn.init.zeros_(net.weight)
    >>> average = EMA(net, decay=0.99)
    >>> _ = torch.nn.init.ones_(net.weight)
    >>> average.update(step=0)
    >>> with average.applied():
    ...     round(net.weight.item(), 6)
    0.9
    >>> net.weight.item()
    1.0
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"ema must be in [0, 1), got {decay!r}; 0.999 is usual.")
        self.decay = float(decay)
        named = module.named_parameters()  # whole numbers have no mean, and are not learnt
        self._live = {name: p for name, p in named if p.is_floating_point() or p.is_complex()}
        self.weights = {name: p.detach().clone() for name, p in self._live.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move the averages towards the weights after step number ``step``."""
        keep = min(self.decay, (1 + step) / (10 + step))
        live = [self._live[name].detach() for name in self.weights]
        means = list(self.weights.values())
        if any(hasattr(mean, "full_tensor") for mean in means):  # parts of tensors, one by one
            for mean, weight in zip(means, live):
                mean.lerp_(weight, 1.0 - keep)
        else:
            torch._foreach_lerp_(means, live, 1.0 - keep)

    @torch.no_grad()
    def load(self) -> None:
        """Put the averages into the module."""
        for name, mean in self.weights.items():
            self._live[name].copy_(mean)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The averages in the module for a while."""
        kept = {name: p.detach().clone() for name, p in self._live.items()}
        self.load()
        try:
            yield
        finally:
            with torch.no_grad():
                for name, weight in kept.items():
                    self._live[name].copy_(weight)
