"""Where a module computes, and in which numbers.

``"auto"`` is bfloat16 autocast where a CUDA device has it and the weights are float32, and the numbers of the
weights elsewhere. bfloat16 has the range of float32, so that gradients need no scaling; weights and the
optimiser's moments stay float32.

Examples
--------
>>> import torch
>>> autocast("auto", torch.device("cpu"), torch.float32) is None
True
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

__all__ = ["autocast", "context", "pick_device"]


def pick_device(device: Any, module: torch.nn.Module) -> torch.device:
    """The device asked for; else a GPU where there is one; else where the module is."""
    if device is not None:
        chosen = torch.device(device)
        if chosen.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device={device!r}: there is no CUDA device here; use device='cpu'.")
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    first = next(module.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def autocast(precision: str, device: torch.device, weights: torch.dtype) -> torch.dtype | None:
    """The dtype of autocast, or None where there is none."""
    if precision == "auto":
        able = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if able and weights == torch.float32 else None
    if precision in ("float32", "fp32", "full"):
        return None
    if precision in ("bf16", "bfloat16"):
        return torch.bfloat16
    raise ValueError(f"precision must be 'auto', 'float32' or 'bf16', got {precision!r}.")


def context(dtype: torch.dtype | None, device: torch.device) -> Any:
    """A context to compute in."""
    if dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype)
