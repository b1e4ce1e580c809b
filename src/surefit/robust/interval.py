r"""Interval propagation: the range of every number in a network, from the range of its inputs (IBP).

With the middle c and half-width r of a node's interval, an affine map y = Wx + b has

.. math:: y \in Wc + b \pm |W| r,

an increasing activation maps ends to ends, a maximum takes the maxima of ends, and a sum adds them. At the
first layer under l2 attacks r is also at most :math:`\varepsilon \|w_i\|_2` for output i.

*Rounding.* A sum of k products, in any order, with unit of rounding u is off by at most
:math:`\gamma_k = ku/(1 - ku)` times the sum of absolute values. So each affine node is off by at most
:math:`\gamma_{k+8} S`, with :math:`S = |W| \max(|l|, |u|) + |b|`, from this computation (:math:`u =
2^{-53}`), and from the module's own pass in its arithmetic; both are added to the interval. Where
factors are cut to fewer digits before they are multiplied (TF32), each product is off by at most a share p of
its size besides, and the sum by :math:`p + (1 + p) \gamma_{k+8}`. The intervals therefore hold for the
network of real numbers *and* for every pass in which each layer is rounded with unit u, in any order of
summation, without fused transforms (Winograd, FFT) and without overflow. For tanh, sigmoid and exp eight
units are assumed for the library's functions. A result near 0 underflows: each product and sum may be off by
the least normal number of its arithmetic as well, :math:`2^{-126}` for float32 (whether it is rounded there
or flushed to 0; weights and rows that are themselves smaller are taken to be read as they are).

References
----------
Gowal et al., "On the effectiveness of interval bound propagation for training verifiably robust models",
2018; Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ._graph import Graph, Node, Window
from ._input_set import Ball
from ._layers import Affine

__all__ = ["Ranges", "Rounding", "gamma", "interval_ranges"]

DOUBLE = 2.0**-53
FLOOR = 1e-280


def gamma(k: int, unit: float) -> float:
    """The relative error of a sum of k products: k u / (1 - k u), rounded up."""
    if k * unit >= 0.5:
        return float("inf")
    return k * unit / (1.0 - k * unit) * (1.0 + 1e-9)


class Rounding(NamedTuple):
    """How a pass of the module rounds: its unit, what share of a product is lost before it is summed, and the
    least normal number."""

    unit: float
    products: float = 0.0
    least: float = 2.0**-1022

    def affine(self, terms: int) -> float:
        """The relative error of a sum of so many products and a bias."""
        return self.products + (1.0 + self.products) * gamma(terms + 8, self.unit)


class Ranges:
    """For each node: its interval, a bound S of what its rounding is relative to, and the rate."""

    def __init__(self, graph: Graph, ball: Ball, rounding: Rounding) -> None:
        self.graph, self.ball, self.rounding = graph, ball, rounding
        self.low: list[Tensor] = []
        self.high: list[Tensor] = []
        self.size: list[Tensor] = []
        self.rate: list[float] = []
        self.floor: list[float] = []  # what underflow can add to rate * S

    def lost(self, index: int) -> Tensor:
        """How far rounding can move a node, here and in the module's pass."""
        return self.rate[index] * self.size[index] + self.floor[index]

    def reach(self, index: int) -> Tensor:
        """The largest absolute value of a node."""
        return torch.maximum(self.low[index].abs(), self.high[index].abs())

    def append(self, index: int) -> None:
        """The interval of the next node, from those before it."""
        node = self.graph.nodes[index]
        if not node.inputs:
            self._push(self.ball.low, self.ball.high, self.ball.low.abs() + self.ball.high.abs())
            self.rate.append(gamma(8, DOUBLE))
            self.floor.append(0.0)
            return
        terms = node.op.terms if isinstance(node.op, Affine) else 0
        self.floor.append((terms + 8) * self.rounding.least)
        if isinstance(node.op, Affine):
            rate = self.rounding.affine(node.op.terms)
            low, high, size = self._affine(node, node.op)
            self.rate.append(rate + gamma(node.op.back_terms + 8, DOUBLE))
        elif node.op is None:
            first, second = node.inputs
            low = self.low[first] + self.low[second]
            high = self.high[first] + self.high[second]
            size = self.reach(first) + self.reach(second)
            rate = gamma(2, self.rounding.unit)
            self.rate.append(rate + gamma(8, DOUBLE))
        elif isinstance(node.op, Window):
            (before,) = node.inputs
            low, high = (pooled(end[before], node.op) for end in (self.low, self.high))
            rate, size = 0.0, torch.maximum(low.abs(), high.abs())
            self.rate.append(gamma(8, DOUBLE))
        else:
            (before,) = node.inputs
            low, high = node.op.interval(self.low[before], self.high[before])
            rate = gamma(node.op.roundings, self.rounding.unit)
            size = torch.maximum(low.abs(), high.abs())
            self.rate.append(rate + gamma(8, DOUBLE))
        if rate:
            away = rate * size + self.floor[index] + FLOOR
            low, high = low - away, high + away
        self._push(low, high, size)

    def _affine(self, node: Node, op: Affine) -> tuple[Tensor, Tensor, Tensor]:
        (before,) = node.inputs
        low, high = self.low[before], self.high[before]
        middle = 0.5 * (low + high)
        radius = torch.maximum(high - middle, middle - low)
        centre = op.linear(middle) + op.shift
        wide = op.absolute(radius)
        size = op.absolute(middle.abs() + radius) + op.shift_size
        if before == 0 and self.ball.radius is not None and not self.ball.boxed:
            lengths = op.lengths()
            if lengths is not None:  # about x itself, which is the middle
                ends = [1] * (centre.dim() - 1)
                ball = self.ball.radius.reshape(-1, *ends) * lengths
                wide = torch.minimum(wide, ball * (1.0 + 1e-10) + gamma(8, DOUBLE) * size)
        return centre - wide, centre + wide, size

    def _push(self, low: Tensor, high: Tensor, size: Tensor) -> None:
        self.low.append(low.nan_to_num(-math.inf, math.inf, -math.inf))  # NaN is no bound
        self.high.append(high.nan_to_num(math.inf, math.inf, -math.inf))
        self.size.append(size)

    def tighten(self, index: int, low: Tensor, high: Tensor) -> None:
        """Keep the better of two intervals that both hold."""
        self.low[index] = torch.maximum(self.low[index], low)
        self.high[index] = torch.minimum(self.high[index], high)

    def rows(self, rows: Any) -> Ranges:
        """The same for some rows."""
        part = Ranges(self.graph, self.ball[rows], self.rounding)
        part.low = [end[rows] for end in self.low]
        part.high = [end[rows] for end in self.high]
        part.size, part.rate = [size[rows] for size in self.size], self.rate
        part.floor = self.floor
        return part


def interval_ranges(
    graph: Graph,
    ball: Ball,
    rounding: Rounding,
    refine: Callable[[Ranges, int], None] | None = None,
) -> Ranges:
    """All intervals, in order; ``refine`` may tighten each before the next is made."""
    ranges = Ranges(graph, ball, rounding)
    for index in range(len(graph.nodes)):
        ranges.append(index)
        if refine is not None:
            refine(ranges, index)
    return ranges


def pooled(x: Tensor, window: Window) -> Tensor:
    """The maximum over windows."""
    return F.max_pool2d(x, window.kernel, window.stride, window.padding)
