"""The module of a multi-layer perceptron (NN-1): linear layers with an activation between them.

Estimators with scikit-learn's interface are in :mod:`surefit.nn.mlp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from .sparse_rows import SparseRows, linear

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

    def forward(self, input: Any) -> torch.Tensor:
        """The outputs of rows, a tensor or :class:`~surefit.nn.sparse_rows.SparseRows`."""
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
