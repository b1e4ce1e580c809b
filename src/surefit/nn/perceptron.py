"""The module of a multi-layer perceptron (NN-1): linear layers with an activation between them.

Estimators with scikit-learn's interface are in :mod:`surefit.nn.mlp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from .sparse_rows import SparseRows, linear, product, transposed_product

__all__ = ["ACTIVATIONS", "MLP"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity, "logistic": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU,
}  # fmt: skip


class MLP(nn.Sequential):
    """Linear layers with an activation between them; the last one is linear (NN-1).

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden units of each layer, outputs.
    activation : {"relu", "tanh", "logistic", "identity"}
    dropout : float
        The share of hidden units that are left out of a step.

    Examples
    --------
    >>> net = MLP([2, 2, 1])
    >>> sum(p.numel() for p in net.parameters())
    9
    """

    def __init__(
        self, sizes: Sequence[int], activation: str = "relu", dropout: float = 0.0
    ) -> None:
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {list(ACTIVATIONS)}, got {activation!r}.")
        parts: list[nn.Module] = []
        for k, (inputs, outputs) in enumerate(pairwise(sizes)):
            if k:
                parts.append(ACTIVATIONS[activation]())
                parts += [nn.Dropout(dropout)] if dropout else []
            parts.append(nn.Linear(inputs, outputs))
        super().__init__(*parts)
        self.activation = activation

    def forward(self, input: Any) -> torch.Tensor:
        """The outputs of rows, a tensor or :class:`~surefit.nn.sparse_rows.SparseRows`."""
        if not isinstance(input, SparseRows):
            return super().forward(input)
        first, *others = self
        if input.device.type == first.weight.device.type == "cpu" and not self._drops():
            learnt = [p for layer in self.layers() for p in (layer.weight, layer.bias)]
            found: torch.Tensor = _Passes.apply(input, self.activation, *learnt)
            return found
        output = linear(input, first.weight, first.bias)
        for part in others:
            output = part(output)
        return output

    def _drops(self) -> bool:
        """Whether units are left out now."""
        return self.training and any(isinstance(part, nn.Dropout) and part.p for part in self)

    def layers(self) -> list[nn.Linear]:
        """The linear layers."""
        return [part for part in self if isinstance(part, nn.Linear)]


class _Passes(torch.autograd.Function):
    r"""Both passes over compressed rows as one operation (NN-7), in the words of :mod:`surefit.nn.backprop`:

    .. math:: \delta^{(l)} = (W^{(l+1)} \delta^{(l+1)}) \circ \phi'(z^{(l)}), \qquad
        \partial W^{(l)} = \delta^{(l)} x^{(l-1)\prime} .

    A step of a small perceptron is a few products; an operation each would take as long to keep account of.
    """

    @staticmethod
    def forward(ctx: Any, rows: SparseRows, activation: str, *learnt: torch.Tensor) -> torch.Tensor:
        weights, biases = [w.detach() for w in learnt[::2]], [b.detach() for b in learnt[1::2]]
        x = product(rows, weights[0].t()).add_(biases[0])
        ctx.rows, ctx.weights, ctx.slope, ctx.inputs = rows, weights, _SLOPES[activation], []
        for W, b in zip(weights[1:], biases[1:]):
            ctx.inputs.append(_IN_PLACE[activation](x))
            x = torch.addmm(b, x, W.t())
        return x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, delta: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        found: list[torch.Tensor | None] = []
        for W, x in zip(ctx.weights[:0:-1], ctx.inputs[::-1]):
            found += [delta.sum(dim=0), delta.t() @ x]
            delta = ctx.slope(delta @ W, x)
        found += [delta.sum(dim=0), transposed_product(ctx.rows, delta).t()]
        return None, None, *found[::-1]


_IN_PLACE: dict[str, Any] = {
    "identity": lambda z: z, "logistic": torch.sigmoid_, "tanh": torch.tanh_, "relu": torch.relu_,
}  # fmt: skip
# delta phi'(z), by x = phi(z)
_SLOPES: dict[str, Any] = {
    "identity": lambda delta, x: delta,
    "logistic": torch.ops.aten.sigmoid_backward,
    "tanh": torch.ops.aten.tanh_backward,
    "relu": lambda delta, x: torch.ops.aten.threshold_backward(delta, x, 0),
}
