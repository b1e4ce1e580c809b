r"""Training for certificates: the cross-entropy of the worst scores that intervals allow (IBP training).

For a row x of class y, interval propagation gives lower bounds m_k of :math:`z_y - z_k` over the allowed
inputs; the scores that an attacker could reach at most are worse than :math:`z_k = -m_k, z_y = 0`. The loss

.. math:: (1 - \kappa)\, \ell(z(x), y) + \kappa\, \ell(-m, y)

is minimised, with the radius rising from 0 to ``eps`` and kappa from 0 to ``kappa`` over the first ``ramp``
training passes, since intervals are useless at first. A network trained so has intervals that are tight where
it matters: it is certified by :func:`surefit.robust.network_bounds.network_lower`, which shares no number
with this loss.

Reference: Gowal et al., "On the effectiveness of interval bound propagation for training verifiably robust
models", 2018 (MNIST, linf 0.1: 97.8 % certified, for their large network).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._graph import Graph, Window, build, traced
from ._layers import Affine, Dense
from ._tools import check_eps
from .interval import pooled

__all__ = ["IntervalTraining", "interval_margins"]


class IntervalTraining(nn.Module):
    """A module that gives its scores and, while it trains, the margins that intervals guarantee.

    Parameters
    ----------
    module : nn.Module
        Ends in a Linear layer; layers as in :mod:`surefit.robust._graph`, without batch norm or dropout. It
        is trained in place.
    eps : float
        The linf radius.
    ramp : int
        Training passes over which the radius and kappa rise.
    warmup : int, default=0
        Training passes before that, with the plain loss.
    kappa : float, default=0.5
        The final weight of the worst-case loss.
    lower, upper : float, default=None
        The box that inputs stay in.

    Examples
    --------
    >>> import torch
    >>> from surefit.nn.train import train
    >>> from surefit.robust import Threat
    >>> from surefit.robust.network_bounds import network_lower
    >>> _ = torch.manual_seed(0)
    >>> x = torch.rand(256, 2) * 2 - 1
    >>> x, y = x + 0.3 * x.sign(), (x[:, 0] > 0).long()
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    >>> wrapped = IntervalTraining(net, 0.2, ramp=100)
    >>> _ = train(wrapped, (x, y), wrapped.loss, epochs=30, batch_size=32, lr=0.01, device="cpu")
    >>> certified = network_lower(net, x, y, Threat(0.2), method="interval") > 0
    >>> bool(certified.double().mean() > 0.9)
    True
    """

    passes: Tensor

    def __init__(
        self,
        module: nn.Module,
        eps: float,
        *,
        ramp: int,
        warmup: int = 0,
        kappa: float = 0.5,
        lower: float | None = None,
        upper: float | None = None,
    ) -> None:
        super().__init__()
        if not 0.0 <= kappa <= 1.0:
            raise ValueError(f"kappa must lie between 0 and 1, got {kappa!r}.")
        if ramp < 1 or warmup < 0:
            raise ValueError(
                f"ramp must be at least 1 and warmup at least 0, got {ramp}, {warmup}."
            )
        self.module, self.eps, self.ramp, self.warmup = module, check_eps(eps), ramp, warmup
        self.kappa, self.lower, self.upper = float(kappa), lower, upper
        self.plan = [traced(module)]  # in a list: no second copy among the parameters
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64))

    @property
    def share(self) -> float:
        """How far the radius and kappa have risen, in [0, 1]."""
        return min(1.0, max(0.0, (int(self.passes) - self.warmup) / self.ramp))

    def forward(self, x: Tensor) -> Tensor:
        """Scores (n, k) at rest; (n, k + k²) in training: scores, then all margins' lower bounds."""
        if not self.training:
            return self.module(x)
        scores = self.module(x.clone())  # it may write into what it gets
        if scores.shape[-1] == 1:
            raise ValueError(
                "module has one output column; training by intervals compares two or more: end it in "
                "Linear(..., 2), whose difference is the one score."
            )
        self.passes += 1
        eps = self.eps * self.share
        low, high = x - eps, x + eps
        if self.lower is not None:  # a row outside the box is not forced into it
            low = torch.minimum(x, low.clamp(min=self.lower))
        if self.upper is not None:
            high = torch.maximum(x, high.clamp(max=self.upper))
        graph = build(self.plan[0], tuple(x.shape[1:]), dtype=None)
        return torch.cat([scores, interval_margins(graph, low, high).flatten(1)], dim=1)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """One number a row, for the trainer."""
        k = round((math.sqrt(1.0 + 4.0 * output.shape[1]) - 1.0) / 2.0)
        if k * k + k != output.shape[1] or not self.training:
            return F.cross_entropy(output, target, reduction="none")
        scores, margins = output[:, :k], output[:, k:].reshape(-1, k, k)
        worst = -margins[torch.arange(len(target), device=target.device), target]
        kappa = self.kappa * self.share
        plain = F.cross_entropy(scores, target, reduction="none")
        return (1.0 - kappa) * plain + kappa * F.cross_entropy(worst, target, reduction="none")


def interval_margins(graph: Graph, low: Tensor, high: Tensor) -> Tensor:
    """Lower bounds of z_y - z_k for all pairs, shape (n, k, k), differentiable and without rounding."""
    last = graph.nodes[-1].op
    if not isinstance(last, Dense):
        raise NotImplementedError(
            f"training by intervals needs a Linear layer at the end, got {graph.nodes[-1].name!r}."
        )
    ends: list[tuple[Tensor, Tensor]] = [(low, high)]
    for node in graph.nodes[1:-1]:
        ends.append(_interval(node, [ends[i] for i in node.inputs]))
    low, high = ends[graph.nodes[-1].inputs[0]]
    middle, radius = 0.5 * (low + high), 0.5 * (high - low)
    W = last.weight[:, None] - last.weight[None]  # (y, k, d)
    flat = W.flatten(0, 1)
    found = middle @ flat.T - radius @ flat.abs().T
    if last.bias is not None:
        found = found + (last.bias[:, None] - last.bias[None]).flatten()
    return found.reshape(-1, *W.shape[:2])


def _interval(node: Any, ends: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    low, high = ends[0]
    if isinstance(node.op, Affine):
        middle, radius = 0.5 * (low + high), 0.5 * (high - low)
        centre, wide = node.op.linear(middle) + node.op.shift, node.op.absolute(radius)
        return centre - wide, centre + wide
    if node.op is None:
        return low + ends[1][0], high + ends[1][1]
    if isinstance(node.op, Window):
        return pooled(low, node.op), pooled(high, node.op)
    return node.op.value(low), node.op.value(high)
