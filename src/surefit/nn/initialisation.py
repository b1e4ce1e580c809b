"""Initial weights, and what they do to signals and gradients through depth (NN-12, NN-13).

With K inputs a layer, weights drawn from N(0, v) and a ReLU before each layer, Var z^(l+1) = (K v / 2) Var
z^(l): half of a symmetric z is cut away. He's v = 2/K keeps the variance at every depth; v = 1/K halves it
a layer, so that after 50 layers 2^-50 of it is left. Gradients travel back through the same matrices and
vanish or explode likewise. Glorot's v = 2/(inputs + outputs) is the same balance for activations that are
close to linear at 0.

The draws are torch's (``nn.init``). This module goes over a network's layers with a seed, and reports.

References
----------
He, Zhang, Ren and Sun, "Delving deep into rectifiers", ICCV 2015;
Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..certificate import Claim, Kind

__all__ = ["DepthReport", "glorot", "gradient_norms", "he", "variance_by_depth"]

WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


@dataclass(frozen=True)
class DepthReport:
    """A number for every layer with weights, in the order in which they run.

    Attributes
    ----------
    quantity : str
        What was measured: ``"variance"`` or ``"gradient norm"``.
    names : tuple of str
        The layers' names in their module.
    values : tuple of float
    """

    quantity: str
    names: tuple[str, ...]
    values: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The largest factor between the first layer's number and another's; inf where one is 0.

        The last of three or more layers is left out: it is as wide as there are outputs, and a variance over
        one or two units says little.
        """
        compared = self.values[:-1] if len(self.values) > 2 else self.values
        first = compared[0]
        if not all(math.isfinite(v) and v > 0 for v in self.values):
            return math.inf
        return max(max(v / first, first / v) for v in compared)

    def claim(self, *, factor: float = 10.0) -> Claim:
        """That no layer's number is off the first's by more than ``factor``: nothing vanishes or explodes."""
        spread = self.spread
        statement = (
            f"the {self.quantity} is {self.values[0]:.3g} at the first of {len(self.values)} layers; "
            f"before the last, the largest factor from it to another's is {spread:.3g}"
        )
        source = "NN-12" if self.quantity == "variance" else "NN-13"
        return Claim.check(
            f"{self.quantity} through depth", statement, Kind.EMPIRICAL, spread, factor, source
        )

    def __str__(self) -> str:
        width = max(len(name) for name in self.names)
        lines = [f"{name:<{width}}  {v:.3e}" for name, v in zip(self.names, self.values)]
        return "\n".join([f"{self.quantity} by layer", *lines])


def he(module: nn.Module, *, gain: float = 2.0, seed: int = 0) -> nn.Module:
    """Draw every weight from N(0, gain / inputs), set every bias to 0; returns the module.

    Parameters
    ----------
    module : torch.nn.Module
        Linear and convolution layers are set; norms and others are left as they are.
    gain : float
        2 for ReLU (He), 1 for linear layers.
    seed : int
        The draws are a function of it and of the order of the layers.

    Examples
    --------
    >>> from torch import nn
    >>> layer = he(nn.Linear(1000, 1000))
    >>> round(float(layer.weight.detach().var()) * 1000, 1)
    2.0
    """
    if not (gain > 0 and math.isfinite(gain)):
        raise ValueError(f"gain must be a number above 0, got {gain!r}; He's is 2.")
    return _draw(module, seed, lambda fan_in, fan_out: gain / fan_in)


def glorot(module: nn.Module, *, seed: int = 0) -> nn.Module:
    """Draw every weight from N(0, 2 / (inputs + outputs)), set every bias to 0; returns the module.

    Examples
    --------
    >>> from torch import nn
    >>> layer = glorot(nn.Linear(1000, 500))
    >>> round(float(layer.weight.detach().var()) * 750, 1)
    1.0
    """
    return _draw(module, seed, lambda fan_in, fan_out: 2.0 / (fan_in + fan_out))


def variance_by_depth(module: nn.Module, X: torch.Tensor) -> DepthReport:
    """The second moment of what each linear or convolution layer puts out on X (NN-12).

    The module runs once, in its present mode, without gradients.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> net = he(nn.Sequential(*[part for _ in range(20) for part in (nn.Linear(500, 500), nn.ReLU())]))
    >>> X = torch.randn(100, 500, generator=torch.Generator().manual_seed(0))
    >>> variance_by_depth(net, X).claim().status.name
    'HOLDS'
    """
    found: list[tuple[str, float]] = []

    def measure(name: str, output: torch.Tensor) -> torch.Tensor:
        found.append((name, float(output.double().pow(2).mean())))
        return output

    with torch.no_grad():
        _watched(module, lambda: module(X), measure)
    return DepthReport("variance", tuple(n for n, _ in found), tuple(v for _, v in found))


def gradient_norms(module: nn.Module, loss: Callable[[], torch.Tensor]) -> DepthReport:
    """The root mean square of the loss's derivative by what each layer puts out: the delta of NN-7 (NN-13).

    The weights' own gradients would not do. They are products of delta, which shrinks from the last layer to
    the first, and of the layer's input, which shrinks the other way.

    Parameters
    ----------
    module : torch.nn.Module
    loss : callable
        Without arguments; runs the module and returns a scalar. Stored gradients are left as they are.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    >>> gradient_norms(net, lambda: net(torch.ones(5, 3)).pow(2).mean()).names
    ('0', '2')
    """
    names: list[str] = []
    outputs: list[torch.Tensor] = []

    def keep(name: str, output: torch.Tensor) -> torch.Tensor:
        if not output.requires_grad:  # a frozen layer
            output = output.detach().requires_grad_()
        names.append(name)
        outputs.append(output)
        return output.clone()  # so that an in-place activation leaves it alone

    def differentiate() -> Any:
        value = loss()
        if value.numel() != 1:
            raise ValueError(
                f"loss returned a tensor of shape {tuple(value.shape)}; it must return one number."
            )
        return torch.autograd.grad(value, outputs, allow_unused=True)

    with torch.enable_grad():
        gradients = _watched(module, differentiate, keep)
    sizes = [0.0 if g is None else float(g.double().pow(2).mean().sqrt()) for g in gradients]
    return DepthReport("gradient norm", tuple(names), tuple(sizes))


def _watched(
    module: nn.Module,
    run: Callable[[], Any],
    watch: Callable[[str, torch.Tensor], torch.Tensor],
) -> Any:
    """``run()``, with each weighted layer's output passed through ``watch`` as it appears."""

    def hook_for(name: str) -> Callable[..., torch.Tensor]:
        return lambda layer, inputs, output: watch(name, output)

    averages = [(buffer, buffer.clone()) for buffer in module.buffers()]
    hooks = [layer.register_forward_hook(hook_for(name)) for name, layer in _weighted(module)]
    try:
        return run()
    finally:
        for hook in hooks:
            hook.remove()
        for (
            buffer,
            before,
        ) in averages:  # a measurement does not move a batch norm's running averages
            buffer.detach().copy_(before)


def _draw(module: nn.Module, seed: int, variance: Callable[[int, int], float]) -> nn.Module:
    generators: dict[torch.device, torch.Generator] = {}
    for _, layer in _weighted(module):
        weight = layer.weight
        field = weight[0, 0].numel()  # pixels of a kernel; 1 for a linear layer
        fan_in, fan_out = weight.shape[1] * field, weight.shape[0] * field
        if weight.device not in generators:
            generators[weight.device] = torch.Generator(weight.device).manual_seed(seed)
        spread = math.sqrt(variance(fan_in, fan_out))
        nn.init.normal_(weight, 0.0, spread, generator=generators[weight.device])
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return module


def _weighted(module: nn.Module) -> list[tuple[str, Any]]:
    layers = [(n or "itself", m) for n, m in module.named_modules() if isinstance(m, WEIGHTED)]
    if not layers:
        raise ValueError(
            f"module {type(module).__name__} has no linear or convolution layer; nothing to set or measure."
        )
    return layers
