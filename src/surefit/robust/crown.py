r"""Linear bounds carried backwards through a network (CROWN).

A functional :math:`\langle a, z\rangle` of the output is replaced, node by node from the last to the first,
by one of earlier nodes that is nowhere larger on the set of inputs:

* affine, y = Wx + b: :math:`\langle a, y\rangle = \langle W'a, x\rangle + \langle a, b\rangle`;
* activation, below :math:`\alpha t + b` and above :math:`\lambda t + \beta` on the node's interval
  (:mod:`._relaxations`): the lower line where a > 0, the upper one where a < 0;
* maximum over a window: at least any one entry (the one with the largest middle); at most
  :math:`\max(x_j, m) \le \lambda x_j + \beta` with j the entry of the largest upper end and m the next end;
* sum: the functional goes to both.

What is left is linear in the input, and its least value is known (:mod:`._input_set`). Every slope
:math:`\alpha \in [0, 1]` of a ReLU is valid: it is chosen by area, and ``alpha_crown`` improves it by
gradient steps.

*Rounding.* At each node the functional as stored, applied to the node's true values v, is compared with what
replaces it. Both the rounding of W'a and :math:`\langle a, b\rangle` here, and the rounding of the layer in
the module's own pass, are at most a rate :math:`\gamma` times :math:`\langle |a|, S\rangle` with S of
:mod:`.interval`: :math:`|W|'|a|` against :math:`\max|x|` is :math:`|a|` against :math:`|W|\max|x|`. What
underflows comes on top. These are added up along the way and subtracted, with 1 % for their own rounding. So
the bound holds for the network of real numbers and for each pass in the arithmetic that :mod:`.interval`
describes.

References
----------
Zhang, Weng, Chen, Hsieh & Daniel, "Efficient neural network robustness certification with general activation
functions", 2018; Xu et al., "Fast and complete: enabling complete verification with rapid and massively
parallel incomplete verifiers", 2021, for optimised slopes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ._graph import Graph, Window
from ._layers import Affine
from ._relaxations import Activation
from .interval import DOUBLE, FLOOR, Ranges, gamma, pooled

__all__ = ["alpha_crown", "crown_refine", "lower_functional"]

Slopes = dict[int, Tensor]


def lower_functional(
    ranges: Ranges, start: int, a: Tensor, *, slopes: Slopes | None = None, deep: bool = True
) -> Tensor:
    """Lower bounds of <a, node ``start``>, shape (n, q).

    Parameters
    ----------
    ranges : Ranges
    start : int
        A node.
    a : tensor of shape (n or 1, q, *shape of the node)
    slopes : dict of int to tensor
        Lower slopes, in [0, 1], of activation nodes: (n, q or 1, *shape).
    deep : bool
        False stops at the first activation and takes its interval.
    """
    graph, ball = ranges.graph, ranges.ball
    n, q = ball.x.shape[0], a.shape[1]
    many = len(graph.nodes) + 16  # the sum over nodes is rounded too
    waiting: dict[int, Tensor] = {start: a}
    total = torch.zeros((n, q), dtype=torch.float64, device=ball.x.device)
    slack = torch.full_like(total, FLOOR)
    for index in range(start, -1, -1):
        if index not in waiting:
            continue
        a, node = waiting.pop(index), graph.nodes[index]
        if not node.inputs:
            value, size = ball.least(a.flatten(2))
            total = total + value
            slack = slack + gamma(node.size + many, DOUBLE) * size
            continue
        flat = a.flatten(2)
        slack = slack + _dot(flat.abs(), ranges.lost(index).flatten(1))
        if isinstance(node.op, Affine):
            (before,) = node.inputs
            if node.op.bias is not None:
                bias = node.op.bias.expand(node.shape).flatten()
                total = total + flat @ bias
                slack = slack + gamma(node.size + many, DOUBLE) * (flat.abs() @ bias.abs())
            shape = graph.nodes[before].shape
            back = node.op.adjoint(a.flatten(0, 1), shape)
            _give(waiting, before, back.reshape(a.shape[0], q, *shape))
        elif node.op is None:
            for before in node.inputs:
                _give(waiting, before, a)
        elif not deep:
            ends = ranges.low[index].flatten(1), ranges.high[index].flatten(1)
            total = total + _dot(flat.clamp(min=0), ends[0]) + _dot(flat.clamp(max=0), ends[1])
            reach = torch.maximum(ends[0].abs(), ends[1].abs())
            slack = slack + gamma(node.size + many, DOUBLE) * _dot(flat.abs(), reach)
        else:
            (before,) = node.inputs
            if isinstance(node.op, Activation):
                chosen = None if slopes is None else slopes.get(index)
                back, constant, sizes = _activation(ranges, before, node.op, a, chosen)
            else:
                back, constant, sizes = _maximum(ranges, before, node.op, a)
            total = total + constant
            slack = slack + gamma(node.size + many, DOUBLE) * sizes
            _give(waiting, before, back)
    return total - 1.01 * slack


def _give(waiting: dict[int, Tensor], index: int, a: Tensor) -> None:
    waiting[index] = waiting[index] + a if index in waiting else a


def _dot(a: Tensor, v: Tensor) -> Tensor:
    """<a, v> for a of shape (n or 1, q, d) and v of shape (n, d): (n, q)."""
    return torch.matmul(a, v[:, :, None])[..., 0]


def _activation(
    ranges: Ranges, before: int, op: Activation, a: Tensor, chosen: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The functional before an activation, its constant, and the sum of absolute values."""
    low, high = ranges.low[before][:, None], ranges.high[before][:, None]
    lines = op.lines(low, high, chosen)
    plus, minus = a.clamp(min=0), a.clamp(max=0)
    back = plus * lines.below + minus * lines.above
    ends = (plus * lines.below_at_0).flatten(2), (minus * lines.above_at_0).flatten(2)
    constant = ends[0].sum(dim=2) + ends[1].sum(dim=2)
    sizes = ends[0].abs().sum(dim=2) + ends[1].abs().sum(dim=2)
    # the rounding of the products, and of the lines' values: against |slope| max |x|
    reach = ranges.reach(before).flatten(1)
    return back, constant, sizes + _dot(back.abs().flatten(2), reach)


def _maximum(
    ranges: Ranges, before: int, window: Window, a: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The functional before a maximum over windows: one entry below, a line in one entry above."""
    low, high = ranges.low[before], ranges.high[before]
    _, below = F.max_pool2d(
        0.5 * (low + high), window.kernel, window.stride, window.padding, return_indices=True
    )
    top, above = F.max_pool2d(
        high, window.kernel, window.stride, window.padding, return_indices=True
    )
    next_end = _second(high, window)
    bottom = low.flatten(2).gather(2, above.flatten(2)).reshape(top.shape)
    wide = top > bottom
    slope = torch.where(wide, (top - next_end) / torch.where(wide, top - bottom, 1.0), 0.0)
    slope = slope.clamp(0.0, 1.0)
    size = torch.maximum(top.abs(), bottom.abs()) + next_end.abs().clamp(max=1e300)
    shift = torch.maximum(
        torch.maximum(bottom, next_end) - slope * bottom,
        torch.maximum(top, next_end) - slope * top,
    ) + 32.0 * DOUBLE * torch.where(next_end.isfinite(), size, top.abs() + bottom.abs())
    alone = bottom >= next_end  # the entry is the maximum, exactly
    slope = torch.where(alone, 1.0, slope)
    shift = torch.where(alone, 0.0, shift)
    plus, minus = a.clamp(min=0), a.clamp(max=0)
    back = a.new_zeros((low.shape[0], a.shape[1], *low.shape[1:])).flatten(3)
    places = [i[:, None].expand(-1, a.shape[1], -1, -1, -1).flatten(3) for i in (below, above)]
    shape = (low.shape[0], *a.shape[1:])
    back = back.scatter_add(3, places[0], plus.expand(shape).flatten(3))
    back = back.scatter_add(3, places[1], (minus * slope[:, None]).expand(shape).flatten(3))
    back = back.reshape(low.shape[0], a.shape[1], *low.shape[1:])
    ends = (minus * shift[:, None]).flatten(2)
    sizes = ends.abs().sum(dim=2) + _dot(
        a.abs().flatten(2), torch.maximum(top.abs(), pooled(low.abs(), window)).flatten(1)
    )
    return back, ends.sum(dim=2), sizes


def _second(high: Tensor, window: Window) -> Tensor:
    """The second largest upper end of each window; -inf where there is one entry only."""
    (kh, kw), (ph, pw) = window.kernel, window.padding
    padded = F.pad(high, (pw, pw, ph, ph), value=-math.inf)
    parts = padded.unfold(2, kh, window.stride[0]).unfold(3, kw, window.stride[1])
    flat = parts.flatten(4)
    if flat.shape[-1] == 1:
        return torch.full_like(flat[..., 0], -math.inf)
    return flat.topk(2, dim=4).values[..., 1]


def crown_refine(ranges: Ranges, index: int, cells: int) -> None:
    """Tighten the interval of a node that an activation or a maximum reads, by functionals of its entries."""
    graph = ranges.graph
    readers = [node.op for node in graph.nodes if index in node.inputs]
    wanted = [op for op in readers if isinstance(op, (Activation, Window))]
    if not wanted or index == 0 or _first(graph, index, ranges):
        return
    low, high = ranges.low[index].flatten(1), ranges.high[index].flatten(1)
    need = torch.zeros_like(low, dtype=torch.bool)
    for op in wanted:
        need |= op.open(low, high) if isinstance(op, Activation) else high > low
    entries = need.any(dim=0).nonzero()[:, 0]
    node = graph.nodes[index]
    n = low.shape[0]
    widest = max(graph.nodes[i].size for i in range(index + 1))
    step = max(1, cells // (2 * n * widest))
    for first in range(0, len(entries), step):
        part = entries[first : first + step]
        a = torch.zeros((1, len(part), node.size), dtype=torch.float64, device=low.device)
        a[0, torch.arange(len(part), device=low.device), part] = 1.0
        a = torch.cat([a, -a], dim=1).reshape(1, -1, *node.shape)
        found = lower_functional(ranges, index, a)
        low[:, part] = torch.fmax(low[:, part], found[:, : len(part)])  # NaN is no bound
        high[:, part] = torch.fmin(high[:, part], -found[:, len(part) :])
    ranges.low[index], ranges.high[index] = (
        low.reshape(-1, *node.shape),
        high.reshape(-1, *node.shape),
    )


def _first(graph: Graph, index: int, ranges: Ranges) -> bool:
    """Whether the interval is exact already: one affine map from the input, linf or l2 without box."""
    node = graph.nodes[index]
    exact = ranges.ball.radius is None or (
        not ranges.ball.boxed and isinstance(node.op, Affine) and node.op.lengths() is not None
    )
    return isinstance(node.op, Affine) and node.inputs == (0,) and exact


def alpha_crown(
    ranges: Ranges, start: int, a: Tensor, best: Tensor, *, steps: int, rate: float = 0.2
) -> Tensor:
    """The best bound found while the lower slopes of ReLU nodes climb the gradient; never below ``best``."""
    graph, q = ranges.graph, a.shape[1]
    slopes: Slopes = {}
    for index, node in enumerate(graph.nodes):
        if index <= start and isinstance(node.op, Activation):
            low, high = (end[node.inputs[0]] for end in (ranges.low, ranges.high))
            begin = (high >= -low).to(torch.float64) if node.op.roundings == 0 else 0.5 + 0.0 * low
            slopes[index] = begin[:, None].repeat(1, q, *[1] * (low.dim() - 1)).requires_grad_()
    if not slopes:
        return best
    optimizer = torch.optim.Adam(list(slopes.values()), lr=rate)
    for _ in range(steps):
        with torch.enable_grad():
            found = lower_functional(ranges, start, a, slopes=slopes)
            loss = -found.sum()
            optimizer.zero_grad()
            loss.backward()
        best = torch.fmax(best, found.detach())
        optimizer.step()
        with torch.no_grad():
            for slope in slopes.values():
                slope.clamp_(0.0, 1.0)
        for group in optimizer.param_groups:
            group["lr"] *= 0.95
    return best
