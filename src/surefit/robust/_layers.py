"""The linear layers of a network, as the bounds need them.

A layer y = L(x) + b gives four things: L(x); |L|(x), the same map with the absolute values of its
coefficients; L'(a), the adjoint; and how many products each of the sums has, from which rounding is
bounded. The adjoint of a convolution is torch's gradient with respect to the input, that of pools, slices
and pads is taken by automatic differentiation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["Affine", "Convolution", "Dense", "Rearranged", "Scaled"]

_UNDER = 1e-150  # at least what a norm loses where squares underflow


class Affine:
    """y = L(x) + bias. ``bias_size`` bounds what was rounded when the bias was made."""

    weight: Tensor | None = None
    bias: Tensor | None = None
    bias_size: Tensor | None = None
    terms = 1  # products in an entry of L(x)
    back_terms = 1  # products in an entry of L'(a)

    def linear(self, x: Tensor) -> Tensor:
        """L(x)."""
        raise NotImplementedError

    def absolute(self, x: Tensor) -> Tensor:
        """|L|(x)."""
        raise NotImplementedError

    def adjoint(self, a: Tensor, shape: tuple[int, ...]) -> Tensor:
        """L'(a), for a batch of functionals; ``shape`` is that of an input without its batch."""
        raise NotImplementedError

    def lengths(self) -> Tensor | None:
        """Upper bounds of the l2 norms of L's rows, where they are at hand; broadcast over outputs."""
        return None

    @property
    def shift(self) -> Any:
        """The bias, or 0."""
        return 0.0 if self.bias is None else self.bias

    @property
    def shift_size(self) -> Any:
        """|bias|, or 0."""
        if self.bias_size is not None:
            return self.bias_size
        return 0.0 if self.bias is None else self.bias.abs()


class Dense(Affine):
    """A matrix, on the last axis."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.back_terms, self.terms = (int(size) for size in weight.shape)

    def linear(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)

    def absolute(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.abs())

    def adjoint(self, a: Tensor, shape: tuple[int, ...]) -> Tensor:
        return a @ self.weight

    def lengths(self) -> Tensor | None:
        return self.weight.square().sum(dim=1).sqrt() + _UNDER

    weight: Tensor


class Convolution(Affine):
    """A convolution in one or two dimensions, with zeros around."""

    weight: Tensor

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        groups: int,
    ) -> None:
        self.weight = weight
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.d = weight.dim() - 2
        self.bias = None if bias is None else bias.reshape(-1, *[1] * self.d)
        area = math.prod(weight.shape[2:])
        self.terms, self.back_terms = weight.shape[1] * area, weight.shape[0] // groups * area

    def _apply(self, x: Tensor, weight: Tensor) -> Tensor:
        convolve: Any = F.conv1d if self.d == 1 else F.conv2d
        return convolve(x, weight, None, self.stride, self.padding, self.dilation, self.groups)

    def linear(self, x: Tensor) -> Tensor:
        return self._apply(x, self.weight)

    def absolute(self, x: Tensor) -> Tensor:
        return self._apply(x, self.weight.abs())

    def adjoint(self, a: Tensor, shape: tuple[int, ...]) -> Tensor:
        back = torch.nn.grad.conv1d_input if self.d == 1 else torch.nn.grad.conv2d_input
        return back(
            (a.shape[0], *shape), self.weight, a, self.stride, self.padding, self.dilation, self.groups
        )  # fmt: skip

    def lengths(self) -> Tensor | None:
        lengths = self.weight.flatten(1).square().sum(dim=1).sqrt() + _UNDER
        return lengths.reshape(-1, *[1] * self.d)


class Scaled(Affine):
    """Entry by entry: x * weight + bias, as batch norm at rest and the scaling of inputs are."""

    weight: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None, bias_size: Tensor | None) -> None:
        self.weight, self.bias, self.bias_size = weight, bias, bias_size

    def linear(self, x: Tensor) -> Tensor:
        return x * self.weight

    def absolute(self, x: Tensor) -> Tensor:
        return x * self.weight.abs()

    def adjoint(self, a: Tensor, shape: tuple[int, ...]) -> Tensor:
        return a * self.weight


class Rearranged(Affine):
    """A linear function without negative coefficients: reshape, slice, pad with zeros, average."""

    def __init__(self, function: Callable[[Tensor], Tensor], terms: int = 1) -> None:
        self.function, self.terms, self.back_terms = function, terms, terms

    def linear(self, x: Tensor) -> Tensor:
        return self.function(x)

    def absolute(self, x: Tensor) -> Tensor:
        return self.function(x)

    def adjoint(self, a: Tensor, shape: tuple[int, ...]) -> Tensor:
        with torch.enable_grad():
            x = a.new_zeros((a.shape[0], *shape), requires_grad=True)
            y = self.function(x)
        (back,) = torch.autograd.grad(y, x, a, create_graph=a.requires_grad)
        return back
