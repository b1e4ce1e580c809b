"""Products of dense float32 matrices on the processor, by the faster of torch's two libraries.

torch's linear layers call MKL, which gives half of the peak on processors that are not Intel's; its
convolutions call oneDNN, which gives all of it on either. The operation called here is what torch's compiler
puts in place of linear layers. Without it, in float64 and where a product is small, torch's own is called.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["affine", "matmul"]

_LEAST = 1 << 21  # products of numbers from which on the other call pays


def affine(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x @ weight.t() + bias, not differentiable.

    Examples
    --------
    >>> affine(torch.eye(2), torch.tensor([[1.0, 2.0]]), torch.tensor([3.0]))
    tensor([[4.],
            [5.]])
    """
    if _large(x, weight.t()):
        return _by_onednn(x, weight, bias)
    return torch.addmm(bias, x, weight.t())


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b, not differentiable."""
    return _by_onednn(a, b.t(), None) if _large(a, b) else a @ b


def _large(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != torch.float32 or a.shape[0] * a.shape[1] * b.shape[1] < _LEAST:
        return False
    return a.device.type == "cpu" and _FOUND is not None and torch.backends.mkldnn.enabled


def _by_onednn(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    out: torch.Tensor = _FOUND(a, b, bias, "none", [], "")
    return out


def _find() -> Any:
    if not torch.backends.mkldnn.is_available():
        return None
    return getattr(torch.ops.mkldnn, "_linear_pointwise", None)


_FOUND = _find()
