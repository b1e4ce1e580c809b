"""The module of a multi-layer perceptron (NN-1): linear layers with an activation between them.

Estimators with scikit-learn's interface are in :mod:`surefit.nn.mlp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from ._products import affine, matmul
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

    Attributes
    ----------
    by_hand : bool
        Whether a forward pass that records slopes is one operation of torch's, which gives those by the
        weights once: what steps of descent need. False at first; estimators set it while they train.

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
        self.activation, self.by_hand = activation, False

    def forward(self, input: Any) -> torch.Tensor:
        """The outputs of rows, a tensor or :class:`~surefit.nn.sparse_rows.SparseRows`."""
        if self._apart(input):
            if torch.is_grad_enabled():
                found: torch.Tensor = _Passes.apply(input, self.activation, *self._learnt())
                return found
            return _forward(input, self.activation, self._learnt())[0]
        if not isinstance(input, SparseRows):
            return super().forward(input)
        first, *others = self
        output = linear(input, first.weight, first.bias)
        for part in others:
            output = part(output)
        return output

    def layers(self) -> list[nn.Linear]:
        """The linear layers."""
        return [part for part in self if isinstance(part, nn.Linear)]

    def _learnt(self) -> list[torch.Tensor]:
        return [p for layer in self.layers() for p in (layer.weight, layer.bias)]

    def _apart(self, input: Any) -> bool:
        """Whether torch needs no graph of layers: numbers alone are wanted, or slopes by weights, once."""
        graph = torch.is_grad_enabled()
        if not (self.by_hand if graph else torch.is_inference_mode_enabled()):
            return False
        weight = self[0].weight
        if not input.device.type == weight.device.type == "cpu" or torch.is_autocast_enabled("cpu"):
            return False
        if self.training and any(isinstance(part, nn.Dropout) and part.p for part in self):
            return False
        if isinstance(input, SparseRows):
            return True
        fits = bool(input.ndim == 2 and input.dtype == weight.dtype)
        return fits and not (graph and input.requires_grad) and not torch.compiler.is_compiling()


class _Passes(torch.autograd.Function):
    r"""Both passes over a batch as one operation (NN-7), in the words of :mod:`surefit.nn.backprop`:

    .. math:: \delta^{(l)} = (W^{(l+1)} \delta^{(l+1)}) \circ \phi'(z^{(l)}), \qquad
        \partial W^{(l)} = \delta^{(l)} x^{(l-1)\prime} .

    A step of a small perceptron is a few products; an operation each would take as long to keep account of.
    """

    @staticmethod
    def forward(ctx: Any, rows: Any, activation: str, *learnt: torch.Tensor) -> torch.Tensor:
        output, ctx.inputs = _forward(rows, activation, learnt)
        ctx.weights, ctx.slope = [w.detach() for w in learnt[::2]], _SLOPES[activation]
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, delta: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        found: list[torch.Tensor | None] = []
        for W, x in zip(ctx.weights[:0:-1], ctx.inputs[:0:-1]):
            found += [delta.sum(dim=0), matmul(delta.t(), x)]
            delta = ctx.slope(matmul(delta, W), x)
        rows = ctx.inputs[0]
        sparse = isinstance(rows, SparseRows)
        first = transposed_product(rows, delta).t() if sparse else matmul(delta.t(), rows)
        found += [delta.sum(dim=0), first]
        return None, None, *found[::-1]


def _forward(
    rows: Any, activation: str, learnt: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, list[Any]]:
    """(outputs, the input of each layer)."""
    inputs: list[Any] = []
    x = rows.to("cpu", learnt[0].dtype) if isinstance(rows, SparseRows) else rows
    for W, b in zip(learnt[::2], learnt[1::2]):
        if inputs:
            x = _IN_PLACE[activation](x)
        inputs.append(x)
        W, b = W.detach(), b.detach()
        if isinstance(x, SparseRows):
            x = product(x, W.t()).add_(b)
        else:
            x = affine(x, W, b)
    return x, inputs


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
