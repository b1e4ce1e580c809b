r"""What can be said of a trained network, recomputed from the data and the weights.

A network's loss is not convex in its weights, so nothing here says that they are the best ones. What is said:

- *the recorded loss is that of these weights*: the mean loss over the rows, in evaluation mode, again; and
  over some rows in float64, which notices far smaller changes;
- *it is better than a constant*: the mean loss is below that of the best output that is the same for all
  rows (:mod:`._constant_claim`);
- *the gradient is the derivative*: along random directions d, autograd's :math:`\nabla f \cdot d` is compared
  with :math:`D_h = (f(w + h d) - f(w - h d)) / 2h` in float64. For smooth f the one-sided differences are
  :math:`h f''` apart and :math:`D_h` is off by :math:`O(h^2)`; a kink (ReLU, max-pool) within h pulls both
  apart as far as it spoils :math:`D_h`. The tolerance is four times that distance, or that from :math:`D_h`
  to :math:`D_{h/2}` where it is larger, and the rounding :math:`64 \epsilon |f| / h`; kinks on both sides can
  cancel, so the best of several steps counts;
- *accumulation changes nothing*: the gradient of all rows of the sample is the sum over unequal parts;
- *no layer is dead*: the loss's derivative by what each layer puts out (NN-13); how the variance goes through
  depth at fresh weights (NN-12);
- *OPT-16*, where the run was gradient descent on all rows with one step length t: the run is repeated in
  float64 from fresh weights. Where each step lowers f by at least :math:`\frac t2 \|\nabla f\|^2`, as steps
  of at most 1/L do, summing gives :math:`\min_{i \le k} \|\nabla f(x_i)\| \le \sqrt{2 (f(x_0) - f^*) / (t
  (k + 1))}`, with f* = 0;
- *the error on rows that no step has used*, with an exact binomial bound (:mod:`._held_out`).

Nothing of the trainer is used here but how ``compile=`` is read.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..certificate import ROUNDING_LIMIT, Claim, Kind
from ._constant_claim import constant_claim
from ._gradient_claims import (
    EPS,
    SAMPLE,
    accumulation,
    gradient_check,
    gradient_norms_claim,
    sample_loss_claim,
    sampled,
    wide,
)
from ._held_out import HeldOut, held_out
from .initialisation import DepthReport, variance_by_depth
from .parallel import compile_options

__all__ = ["Problem", "mean_loss", "network_claims", "sample_loss"]

BLOCK, NUMBERS = 1024, 1 << 24  # rows, and numbers of them, passed at once at most
MOST_STEPS = 2000  # of a run that is repeated
_IN_FLOAT64 = (
    ("sample loss", Kind.EXACT, "NN-5"), ("gradient check", Kind.EXACT, "NN-7"),
    ("accumulation", Kind.EXACT, "NN-5"), ("gradient norms", Kind.EMPIRICAL, "NN-13"),
)  # fmt: skip


@dataclass
class Problem:
    """A fitted network and its problem.

    Attributes
    ----------
    module : nn.Module
        In evaluation mode.
    inputs : callable
        The tensor of some rows, by their numbers or a slice, as the module takes it.
    target : Tensor
        One entry a row.
    weight : ndarray, optional
        One number a row.
    loss : callable
        (output, target) to one number a row.
    recorded : float
        The mean loss that the fit left.
    recorded_sample : float
        The same over the rows of the sample, in float64.
    decay : float
        c in the objective's term (c/2) times the squares of all weights, biases spared.
    fresh : callable, optional
        A module with the weights that the fit began with.
    descent : (int, float), optional
        Steps and step length, where the run was gradient descent on all rows.
    compiled : bool or str
        How the fit compiled the module.
    held : HeldOut, optional
        Rows that no step has used.
    wrong : callable, optional
        Errors (0 or 1) of outputs against targets.
    constant : callable, optional
        (targets, weights or None) to the best constant output, where it is known.
    """

    module: nn.Module
    inputs: Callable[[Any], torch.Tensor]
    target: torch.Tensor
    weight: NDArray[np.float64] | None
    loss: Callable[[Any, Any], torch.Tensor]
    recorded: float
    recorded_sample: float = math.nan
    decay: float = 0.0
    fresh: Callable[[], nn.Module] | None = None
    descent: tuple[int, float] | None = None
    compiled: bool | str = False
    held: HeldOut | None = None
    wrong: Callable[[Any, Any], torch.Tensor] | None = None
    constant: Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor] | None = None

    def __len__(self) -> int:
        return len(self.target)

    def part(self, rows: NDArray[np.int64]) -> Problem:
        """The problem of some of the rows."""
        inputs = self.inputs
        return replace(
            self,
            inputs=lambda some: inputs(rows[some]),
            target=self.target[torch.from_numpy(rows)],
            weight=None if self.weight is None else self.weight[rows],
            held=None,
        )

    def training(self) -> Problem:
        """The problem of the rows of the steps."""
        if self.held is None or int(self.held.rows.max()) >= len(self):
            return self
        return self.part(np.setdiff1d(np.arange(len(self)), self.held.rows))

    def widened(self) -> Problem:
        """With weights of half precision as exact float32 numbers, so that their rounding excuses nothing."""
        first = next(p for p in self.module.parameters() if p.is_floating_point())
        if first.dtype not in (torch.float16, torch.bfloat16):
            return self
        module, inputs = copy.deepcopy(self.module).float().eval(), self.inputs
        wide = replace(self, module=module, inputs=lambda rows: inputs(rows).float())
        try:
            with torch.inference_mode():
                wide.module(wide.inputs(slice(0, 1)))
        except RuntimeError:  # a module that asks for its own type
            return self
        return wide

    def mean_loss(self) -> tuple[float, float]:
        """(weighted mean loss, mean size of an output)."""
        return mean_loss(self.module, self.inputs, self.target, self.weight, self.loss)


def network_claims(problem: Problem, *, full: bool) -> list[Claim]:
    """All claims, the costly ones undecided unless ``full``."""
    wide = problem.widened()
    loss, size = wide.mean_loss()
    training = wide.training()
    reached = loss if training is wide else training.mean_loss()[0]
    claims: list[Claim | None] = [_recorded_loss(wide, loss, size)]
    claims.append(constant_claim(training, reached))
    sample, why = sampled(problem)
    if sample is None:
        claims += [Claim.undecided(name, why, kind, source) for name, kind, source in _IN_FLOAT64]
    else:
        claims += [sample_loss_claim(sample, problem), gradient_check(sample)]
        claims += [accumulation(sample, problem.module)]
    claims += [_rate(problem, full), _compiled(problem, full), held_out(problem)]
    claims += [None if sample is None else gradient_norms_claim(sample), _variance(problem, full)]
    words = "no optimality claim: the loss is not convex in the weights, and other weights may be better"
    if sample is not None:
        size = float(sample.gradient().norm())
        words += f"; the norm of its gradient over {len(sample.rows)} rows is {size:.3g}"
    claims.append(Claim.undecided("optimality", words, Kind.STATIONARY))
    return [claim for claim in claims if claim is not None]


def mean_loss(
    module: nn.Module,
    inputs: Callable[[Any], torch.Tensor],
    target: torch.Tensor,
    weight: NDArray[np.float64] | None,
    loss: Callable[[Any, Any], torch.Tensor],
) -> tuple[float, float]:
    """(weighted mean loss, mean size of an output), in the module's numbers; sums in float64."""
    n = len(target)
    total, size, mass = 0.0, 0.0, 0.0
    with torch.inference_mode(), _exact_products():
        size_of_row = max(1, inputs(slice(0, 1)).numel())
        block = max(1, min(BLOCK, NUMBERS // size_of_row))
        for start in range(0, n, block):
            rows = slice(start, min(start + block, n))
            output = module(inputs(rows))
            losses = loss(output, target[rows].to(output.device)).double()
            w = torch.ones(len(losses), dtype=torch.float64)
            if weight is not None:
                w = torch.from_numpy(weight[rows])
            w = w.to(losses.device)
            total += float((losses * w).sum())
            mass += float(w.sum())
            size += float(output.double().abs().reshape(len(losses), -1).amax(dim=1).sum())
    return total / mass, size / n


# ------------------------------------------------------------------------ the claims


def _recorded_loss(problem: Problem, found: float, size: float) -> Claim:
    """The loss again. Outputs are products of depth many layers, each with its roundings."""
    first = next(p for p in problem.module.parameters() if p.is_floating_point())
    layers = 1 + sum(isinstance(part, (nn.Linear, nn.Conv2d)) for part in problem.module.modules())
    scale = 8 * layers * max(abs(found), size, 1.0)
    eps = float(torch.finfo(first.dtype).eps)
    tolerance = scale * min(eps, float(torch.finfo(torch.float32).eps))
    statement = (
        f"the mean loss of these weights over {len(problem)} rows is {found:.6g}, "
        f"the fit recorded {problem.recorded:.6g}"
    )
    gap = abs(found - problem.recorded)
    largest = ROUNDING_LIMIT * max(abs(found), 1.0)
    return Claim.check(
        "training loss", statement, Kind.EXACT, gap, tolerance, "NN-5", floor=scale * eps,
        largest_floor=largest,
    )  # fmt: skip


def sample_loss(problem: Problem) -> float:
    """The mean loss over some rows, in float64; NaN where the module cannot compute in it."""
    sample, _ = sampled(problem)
    if sample is None:
        return math.nan
    with torch.no_grad():
        return float(sample.value())


def _variance(problem: Problem, full: bool) -> Claim | None:
    name, source = "variance through depth", "NN-12"
    if problem.fresh is None:
        return None
    if not full:
        why = 'needs fresh weights: certify="full" or surefit.verify decides it'
        return Claim.undecided(name, why, Kind.EMPIRICAL, source)
    module = problem.fresh().double().eval()
    rows = np.arange(min(len(problem), SAMPLE))
    x = wide(problem.inputs(rows))
    module.to(x.device)
    try:
        report = variance_by_depth(module, x)
    except (ValueError, RuntimeError) as error:
        return Claim.undecided(name, str(error).splitlines()[0], Kind.EMPIRICAL, source)
    return _kept_variance(report)


def _kept_variance(report: DepthReport) -> Claim:
    """Kept within a factor of 100 over all layers, lost by one of a million, and no claim in between.

    Halving a layer leaves 1/100 after seven layers and a millionth after twenty. A layer that puts out zeros
    is no failure: branches of residual networks are often made to begin so.
    """
    name, source, kept, lost = "variance through depth", "NN-12", 1e2, 1e6
    count, first = len(report.values), report.values[0]
    if 0.0 in report.values:
        zero = report.names[report.values.index(0.0)]
        why = (
            f"with fresh weights the layer {zero} puts out zeros: no second moment is kept or lost"
        )
        return Claim.undecided(name, why, Kind.EMPIRICAL, source)
    statement = (
        f"with fresh weights the second moment is {first:.3g} after the first of {count} layers, and off it "
        f"by a factor of {report.spread:.3g} at most before the last"
    )
    if kept < report.spread <= lost:
        why = f"{statement}: neither kept (a factor of {kept:g}) nor lost ({lost:g})"
        return Claim.undecided(name, why, Kind.EMPIRICAL, source)
    return Claim.check(name, statement, Kind.EMPIRICAL, report.spread, kept, source)


def _rate(problem: Problem, full: bool) -> Claim | None:
    name, source = "non-convex rate", "OPT-16"
    if problem.descent is None or problem.fresh is None:
        return None
    steps, t = problem.descent
    if not full:
        why = 'the run is to be repeated: certify="full" or surefit.verify decides it'
        return Claim.undecided(name, why, Kind.BOUND, source)
    if steps > MOST_STEPS:
        why = f"{steps} steps are more than the {MOST_STEPS} that are repeated"
        return Claim.undecided(name, why, Kind.BOUND, source)
    try:
        values, norms, ends = _repeat(problem, steps, t)
    except RuntimeError as error:
        why = f"the run cannot be repeated in float64: {str(error).splitlines()[0]}"
        return Claim.undecided(name, why, Kind.BOUND, source)
    if not abs(ends - problem.recorded) <= 1e-3 * max(abs(problem.recorded), 1.0):
        why = f"the repeated run ends at a loss of {ends:.6g}, not at the fit's: it was another run"
        return Claim.undecided(name, why, Kind.BOUND, source)
    k = np.arange(1, len(values))
    bounds = np.sqrt(2 * values[0] / (t * (k + 1)))
    smallest = np.minimum.accumulate(norms)[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.max(np.where(smallest > 0, smallest / bounds, 0.0)))
    promised = values[:-1] - values[1:] >= t / 2 * norms[:-1] ** 2 - 16 * EPS * values[0]
    statement = (
        f"at each of {steps} steps of length {t:g} on all rows the smallest gradient norm so far is at most "
        f"{ratio:.3g} of the bound with f* = 0"
    )
    if not promised.all():
        statement += (
            f"; {int((~promised).sum())} steps lower the objective by less than t/2 times the squared "
            "gradient, so t exceeds 1/L there and the theorem does not promise it"
        )
    return Claim.check(name, statement, Kind.BOUND, ratio, 1.0, source)


def _repeat(problem: Problem, steps: int, t: float) -> tuple[NDArray[Any], NDArray[Any], float]:
    """Values and gradient norms of gradient descent at x0, ..., x_steps in float64; the last mean loss."""
    assert problem.fresh is not None
    module = problem.fresh().double().eval()
    every = np.arange(len(problem))
    x = wide(problem.inputs(every))
    module.to(x.device)
    y = wide(problem.target.to(x.device))
    weight = torch.ones(len(every), dtype=torch.float64)
    if problem.weight is not None:
        weight = torch.from_numpy(problem.weight)
    weight = (weight / weight.sum()).to(x.device)
    learnt = [p for p in module.parameters() if p.requires_grad]
    decayed = [p for p in learnt if p.ndim > 1]
    values, norms, ends = [], [], math.nan
    for step in range(steps + 1):
        value = (problem.loss(module(x), y) * weight).sum()
        ends = float(value.detach())
        for p in decayed:
            value = value + problem.decay / 2 * p.square().sum()
        gradients = torch.autograd.grad(value, learnt)
        values.append(float(value.detach()))
        norms.append(math.sqrt(sum(float(g.square().sum()) for g in gradients)))
        if step < steps:
            with torch.no_grad():
                for p, g in zip(learnt, gradients):
                    p -= t * g
    return np.array(values), np.array(norms), ends


def _compiled(problem: Problem, full: bool) -> Claim | None:
    name = "compiled against eager"
    if not problem.compiled:
        return None
    if not full:
        why = 'the module is to be compiled again: certify="full" or surefit.verify decides it'
        return Claim.undecided(name, why, Kind.EXACT)
    rows = np.arange(min(len(problem), SAMPLE))
    x = problem.inputs(rows)
    try:
        with torch.no_grad(), _exact_products():
            eager = problem.module(x).double()
            other = torch.compile(problem.module, **compile_options(problem.compiled))(x).double()
    except Exception as error:  # a machine without a compiler
        return Claim.undecided(
            name, f"the module cannot be compiled here: {type(error).__name__}", Kind.EXACT
        )
    gap, size = float((eager - other).abs().max()), float(eager.abs().max())
    eps = float(torch.finfo(next(problem.module.parameters()).dtype).eps)
    layers = sum(1 for _ in problem.module.modules())
    statement = (
        f"on {len(rows)} rows the compiled module's outputs are off the eager ones by {gap:.1e}"
    )
    return Claim.check(name, statement, Kind.EXACT, gap, 64 * layers * eps * max(size, 1.0))


# ------------------------------------------------------------------------ small parts


@contextlib.contextmanager
def _exact_products() -> Iterator[None]:
    """Without the 11-digit factors that a GPU uses for convolutions by default, and for matrices if asked.

    ``allow_tf32`` may not be read here: it raises an error where somebody has set ``fp32_precision``.
    """
    settings = [torch.backends.cudnn.conv, torch.backends.cuda.matmul]
    coarse = [(s, s.fp32_precision) for s in settings if s.fp32_precision not in ("ieee", "none")]
    try:
        for setting, _ in coarse:
            setting.fp32_precision = "ieee"
        yield
    finally:
        for setting, kept in coarse:
            setting.fp32_precision = "none"  # what stands above it, which it follows from then on
            if setting.fp32_precision != kept:
                setting.fp32_precision = kept
