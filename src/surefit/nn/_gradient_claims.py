"""Claims about gradients, on a few rows and in float64 (:mod:`surefit.nn._network_claims`)."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from ..certificate import Claim, Kind
from .initialisation import gradient_norms

if TYPE_CHECKING:
    from ._network_claims import Problem

__all__ = [
    "EPS", "SAMPLE", "Sample", "accumulation", "gradient_check", "gradient_norms_claim", "sample_loss_claim",
    "sampled", "wide",
]  # fmt: skip

SAMPLE = 64  # rows that are looked at
DIRECTIONS = 3
STEPS = (1e-5, 1e-6, 1e-7, 1e-4)  # shares of the weights' length
EPS = float(np.finfo(np.float64).eps)
_BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)


def sample_loss_claim(sample: Sample, problem: Problem) -> Claim:
    """The loss of the sample again, to the rounding of float64."""
    with torch.no_grad():
        found = float(sample.value())
        size = float(sample.module(sample.x).abs().max())
    depth = sum(1 for _ in sample.module.modules())
    bound = 64 * depth * EPS * max(abs(found), size, 1.0)
    statement = (
        f"in float64 the mean loss over {len(sample.rows)} rows is {found:.15g}, the fit recorded "
        f"{problem.recorded_sample:.15g}"
    )
    gap = abs(found - problem.recorded_sample)
    return Claim.check("sample loss", statement, Kind.EXACT, gap, bound, "NN-5")


class Sample:
    """Some rows and a copy of the module in float64."""

    def __init__(self, problem: Problem) -> None:
        n = len(problem)
        self.rows = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int64))
        self.module = copy.deepcopy(problem.module).double().eval()
        for p in self.module.parameters():
            p.requires_grad_(p.is_floating_point())
        self.x = wide(problem.inputs(self.rows))
        self.y = wide(problem.target[torch.from_numpy(self.rows)].to(self.x.device))
        self.loss = problem.loss
        self.weights = [p for p in self.module.parameters() if p.requires_grad]

    def value(self, part: slice = slice(None)) -> torch.Tensor:
        """The sum of losses over a part of the sample, divided by the size of the whole."""
        return self.loss(self.module(self.x[part]), self.y[part]).sum() / len(self.rows)

    def gradient(self, part: slice = slice(None)) -> torch.Tensor:
        """The gradient of that value, all weights one after another."""
        with torch.enable_grad():
            found = torch.autograd.grad(self.value(part), self.weights, allow_unused=True)
        return torch.cat(
            [
                (torch.zeros_like(p) if g is None else g).reshape(-1)
                for g, p in zip(found, self.weights)
            ]
        )


def sampled(problem: Problem) -> tuple[Sample | None, str]:
    """The sample, or why there is none: a module may ask for numbers of one type."""
    sample = Sample(problem)
    try:
        sample.gradient()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        return None, f"the module does not compute in float64: {str(error).splitlines()[0]}"
    return sample, ""


def gradient_check(sample: Sample) -> Claim:
    """Autograd against central differences along random directions; kinks are allowed for."""
    base = torch.cat([p.detach().reshape(-1) for p in sample.weights])  # in any memory order
    gradient = sample.gradient()
    scale = float(base.norm()) or 1.0
    generator = torch.Generator().manual_seed(0)

    def at(vector: torch.Tensor) -> float:
        nn.utils.vector_to_parameters(vector, sample.weights)
        with torch.no_grad():
            return float(sample.value())

    here = at(base)
    worst, tried, error = 0.0, 0, math.nan
    for _ in range(DIRECTIONS):
        d = torch.randn(base.shape, generator=generator, dtype=torch.float64).to(base.device)
        d *= scale / d.norm()
        slope = float(gradient @ d)
        best = math.inf
        for h in STEPS:
            above, below, near, under = (at(base + s * h * d) for s in (1, -1, 0.5, -0.5))
            forward, backward = (above - here) / h, (here - below) / h
            wide, narrow = (forward + backward) / 2, (near - under) / h
            apart = max(abs(forward - backward), abs(wide - narrow))
            tolerance = 4 * apart + 64 * EPS * max(abs(above), abs(below)) / h
            off = abs(wide - slope)
            ratio = off / tolerance if tolerance else math.inf if off else 0.0
            if not ratio >= best:
                best, error = ratio, off
            if best <= 1:
                break
        worst, tried = float(np.maximum(worst, best)), tried + 1  # NaN stays NaN
    nn.utils.vector_to_parameters(base, sample.weights)
    statement = (
        f"on {len(sample.rows)} rows in float64, autograd and central differences along {tried} random "
        f"directions differ by {worst:.2g} of the tolerance (the last by {error:.1e}; the best of up to "
        f"{len(STEPS)} step lengths, for kinks)"
    )
    return Claim.check("gradient check", statement, Kind.EXACT, worst, 1.0, "NN-7")


def accumulation(sample: Sample, module: nn.Module) -> Claim:
    """The gradient of the whole is the sum of those of its parts."""
    n = len(sample.rows)
    name, source = "accumulation", "NN-5"
    if n < 2:
        return Claim.undecided(name, "one row cannot be cut into parts", Kind.EXACT, source)
    whole = sample.gradient()
    first = max(1, n // 3)
    parts = [sample.gradient(slice(0, first)), sample.gradient(slice(first, n))]
    gap = float((whole - (parts[0] + parts[1])).norm())
    size = float(whole.norm() + parts[0].norm() + parts[1].norm())
    depth = sum(1 for _ in module.modules())
    bound = 16 * depth * EPS * math.sqrt(n) * size
    statement = (
        f"the gradient over {n} rows and the sum over parts of {first} and {n - first} differ by "
        f"{gap:.1e}"
    )
    if any(isinstance(part, _BATCH_NORMS) for part in module.modules()):
        return Claim.undecided(
            name,
            f"in evaluation mode {statement}; in training mode batch norm looks across the rows of a part, "
            "so that parts are not the whole",
            Kind.EXACT,
            source,
        )
    return Claim.check(name, statement, Kind.EXACT, gap, bound, source)


def gradient_norms_claim(sample: Sample) -> Claim:
    """No layer has a gradient that is zero or not finite."""
    name, source = "gradient norms", "NN-13"
    try:
        report = gradient_norms(sample.module, sample.value)
    except ValueError as error:
        return Claim.undecided(name, str(error), Kind.EMPIRICAL, source)
    value = float(sample.value().detach())
    dead = [
        layer
        for layer, size in zip(report.names, report.values)
        if not math.isfinite(size) or (size == 0.0 and value > 0)
    ]
    listed = ", ".join(f"{n} {v:.1e}" for n, v in list(zip(report.names, report.values))[:8])
    more = f", ... ({len(report.names)} layers)" if len(report.names) > 8 else ""
    statement = (
        f"{len(dead)} layers have a gradient that is zero or not finite; root mean squares: "
        f"{listed}{more}"
    )
    return Claim.check(name, statement, Kind.EMPIRICAL, len(dead), 0.0, source)


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """Numbers in float64; whole numbers as they are."""
    return tensor.double() if tensor.is_floating_point() else tensor
