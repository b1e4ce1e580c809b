"""Is a network better than one number a target? Its training loss against that of the best constant output.

The constant model knows no input: its outputs are the same for all rows. A loss above its loss is worse than
no network at all, however sound the arithmetic behind it, and fails. A loss that is lower by less than a
hundredth says too little to be a success. For cross-entropy, squared error and the Poisson deviance the best
constant is known; for a loss of a user's own it is searched for by L-BFGS on some rows, and any constant
that is found will do to show that a network is worse.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..certificate import Claim, Kind

if TYPE_CHECKING:
    from ._network_claims import Problem

__all__ = ["constant_claim", "log_shares", "weighted_mean"]

SHARE = 0.01  # of the constant's loss: less is no success, and no failure
_BLOCK = 1 << 15  # rows whose losses are worked out at once
_SEARCHED = 2048  # rows that a constant is fitted to
_ITERATIONS = 100
_NAME, _SOURCE = "better than a constant", "NN-5"


def constant_claim(problem: Problem, loss: float) -> Claim:
    """The claim that the mean loss over the rows of the steps is below that of the best constant output.

    ``problem`` is that of these rows alone, and ``loss`` the network's.
    """
    try:
        best = min(_loss_of(problem, constant) for constant in _constants(problem))
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        why = f"the loss takes no constant outputs: {str(error).splitlines()[0]}"
        return Claim.undecided(_NAME, why, Kind.BOUND, _SOURCE)
    if not math.isfinite(best):
        why = "no constant output of finite loss was found"
        return Claim.undecided(_NAME, why, Kind.BOUND, _SOURCE)
    found = "" if problem.constant is not None else " found"
    statement = (
        f"the mean loss over {len(problem)} training rows is {loss:.6g}, that of the best constant "
        f"output{found} {best:.6g}"
    )
    least = _least(problem)
    if best <= least and loss <= least + 1.0:  # e.g. targets that are all equal
        why = f"{statement}: the targets are all alike, and there is nothing to learn"
        return Claim.uninformative(_NAME, why, Kind.BOUND, loss, best, _SOURCE)
    margin = SHARE * abs(best)
    if best - margin < loss <= best + margin:
        why = f"{statement}: no better than a constant, within a share of {SHARE:g}"
        return Claim.uninformative(_NAME, why, Kind.BOUND, loss, best, _SOURCE)
    return Claim.check(_NAME, statement, Kind.BOUND, loss, best, _SOURCE)


def _least(problem: Problem) -> float:
    """The loss at and below which targets are all alike; none where the loss is a user's own."""
    eps = float(np.finfo(np.float64).eps)
    return (
        -math.inf if problem.constant is None else 1024 * eps * (1.0 + _size(problem.target) ** 2)
    )


def _size(target: torch.Tensor) -> float:
    return float(target.double().abs().max())


def weighted_mean(target: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
    """The mean of each column, in float64."""
    columns = target.double().reshape(len(target), -1)
    if weight is None:
        return columns.mean(dim=0)
    return (columns * weight[:, None]).sum(dim=0) / weight.sum()


def log_shares(codes: torch.Tensor, weight: torch.Tensor | None, classes: int) -> torch.Tensor:
    """The logarithms of the classes' shares; a class that does not occur gets a very small one."""
    counts = torch.bincount(codes.long(), weights=weight, minlength=classes).double()
    return (counts / counts.sum()).clamp_min(1e-300).log()


# ------------------------------------------------------------------------ constants and their losses


def _constants(problem: Problem) -> list[torch.Tensor]:
    if problem.constant is not None:
        weight = None if problem.weight is None else torch.from_numpy(problem.weight)
        return [problem.constant(problem.target.cpu(), weight)]
    return _searched(problem)


def _loss_of(problem: Problem, constant: torch.Tensor) -> float:
    """The weighted mean loss of a constant output."""
    n, total, mass = len(problem), 0.0, 0.0
    for first in range(0, n, _BLOCK):
        rows = slice(first, min(first + _BLOCK, n))
        target = problem.target[rows].cpu()
        output = constant.expand(len(target), *constant.shape)
        losses = problem.loss(output, target).double()
        weight = torch.ones(len(losses), dtype=torch.float64)
        if problem.weight is not None:
            weight = torch.from_numpy(problem.weight[rows])
        total += float((losses * weight).sum())
        mass += float(weight.sum())
    return total / mass


def _searched(problem: Problem) -> list[torch.Tensor]:
    """Zeros, the targets' mean where it has the form of an output, and what L-BFGS makes of them."""
    with torch.inference_mode():
        shape = problem.module(problem.inputs(np.arange(1))).shape[1:]
    starts = [torch.zeros(shape, dtype=torch.float64)]
    mean = weighted_mean(problem.target.cpu(), None)
    if mean.numel() == starts[0].numel() and problem.target.is_floating_point():
        starts.append(mean.reshape(shape))
    rows = torch.from_numpy(np.unique(np.linspace(0, len(problem) - 1, _SEARCHED).astype(np.int64)))
    target = problem.target[rows].cpu()
    target = target.double() if target.is_floating_point() else target
    weight = torch.ones(len(rows), dtype=torch.float64)
    if problem.weight is not None:
        weight = torch.from_numpy(problem.weight)[rows]
    weight = weight / weight.sum()
    found = list(starts)
    for start in starts:
        constant = start.clone().requires_grad_()
        optimizer = torch.optim.LBFGS(
            [constant], max_iter=_ITERATIONS, line_search_fn="strong_wolfe"
        )

        def value(constant: torch.Tensor = constant) -> torch.Tensor:
            output = constant.expand(len(target), *constant.shape)
            return (problem.loss(output, target).double() * weight).sum()

        def step(optimizer: torch.optim.Optimizer = optimizer) -> float:
            optimizer.zero_grad()
            here = value(optimizer.param_groups[0]["params"][0])
            here.backward()
            return float(here.detach())

        optimizer.step(step)
        if bool(constant.isfinite().all()):
            found.append(constant.detach())
    return found
