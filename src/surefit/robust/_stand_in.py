"""A fast copy of a module for the steps of an attack: folded batch norms, bfloat16, channels-last.

In evaluation mode a batch norm is the affine map s ⊙ x + t; after a convolution with weight W and
bias b it is a
convolution with s ⊙ W and s ⊙ b + t. Folding saves a pass over memory forward and one backward. The copy
only guides the attack; labels are the module's own.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

__all__ = ["Padded", "folded", "stand_in"]


def stand_in(module: Any, *, half: bool, compile: bool) -> Any:
    """The module itself, or a frozen copy in bfloat16; compiled if asked for."""
    fast = module
    if half:
        fast = copy.deepcopy(module).eval().requires_grad_(False)
        fast = folded(fast).to(torch.bfloat16)
        if any(p.ndim == 4 for p in fast.parameters()):
            fast = fast.to(memory_format=torch.channels_last)
    return Padded(torch.compile(fast, dynamic=False)) if compile else fast


class Padded:
    """A compiled module that sees batches of 64, 128, 256, ... rows only.

    Each new size is compiled anew, and after eight torch gives up compiling. Attacks that leave out rows as
    they fall make many sizes; repeating the first row up to the next power of two makes few.

    Examples
    --------
    >>> import torch
    >>> Padded(lambda x: 2 * x)(torch.ones(70, 1)).shape
    torch.Size([70, 1])
    """

    def __init__(self, compiled: Any, least: int = 64) -> None:
        self.compiled, self.least = compiled, least

    def __call__(self, x: Any) -> Any:
        """The outputs of the rows of x."""
        n = len(x)
        size = max(self.least, 1 << (n - 1).bit_length())
        if size == n or n == 0:
            return self.compiled(x)
        return self.compiled(torch.cat([x, x[:1].expand(size - n, *x.shape[1:])]))[:n]


def folded(module: Any) -> Any:
    """The module in evaluation mode with each batch norm folded into the convolution or linear map before it.

    A module that cannot be traced is returned as it is.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU()).eval()
    >>> x = torch.ones(1, 1, 4, 4)
    >>> bool(torch.allclose(net(x), folded(net)(x), atol=1e-6)), len(list(folded(net).children()))
    (True, 2)
    """
    import torch.fx

    try:
        traced = torch.fx.symbolic_trace(module)
    except Exception:  # control flow on values: any error means "not traceable"
        return module
    parts = dict(traced.named_modules())
    kinds = {nn.BatchNorm1d: nn.Linear, nn.BatchNorm2d: nn.Conv2d, nn.BatchNorm3d: nn.Conv3d}
    used = [node.target for node in traced.graph.nodes if node.op == "call_module"]
    for node in list(traced.graph.nodes):
        if node.op != "call_module" or type(parts[node.target]) not in kinds:
            continue
        before, norm = node.args[0], parts[node.target]
        if before.op != "call_module" or len(before.users) > 1 or norm.running_var is None:
            continue
        layer = parts[before.target]
        twice = used.count(before.target) > 1 or used.count(node.target) > 1
        if twice or type(layer) is not kinds[type(norm)]:
            continue
        _set(traced, before.target, _merged(layer, norm))
        parts[before.target] = traced.get_submodule(before.target)
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def _merged(layer: Any, norm: Any) -> Any:
    """One layer that does both."""
    new = copy.deepcopy(layer)
    scale = torch.rsqrt(norm.running_var + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight
    shift = -norm.running_mean * scale
    if norm.bias is not None:
        shift = shift + norm.bias
    shape = (-1,) + (1,) * (layer.weight.ndim - 1)
    with torch.no_grad():
        new.weight = nn.Parameter(layer.weight * scale.reshape(shape), requires_grad=False)
        bias = shift if layer.bias is None else shift + layer.bias * scale
        new.bias = nn.Parameter(bias.detach().clone(), requires_grad=False)
    return new


def _set(root: Any, path: str, module: Any) -> None:
    parent, _, name = path.rpartition(".")
    setattr(root.get_submodule(parent), name, module)
