r"""Adversarial training: the trainer's batches replaced by the worst points found beside them (ADV-9).

.. math:: \min_\theta \frac1N \sum_i \max_{\|\hat x - x_i\| \le \varepsilon} \ell(f_\theta(\hat x), y_i),

projected gradient steps inside, the trainer's steps outside. By Danskin's theorem the gradient of
the inner maximum
is the gradient of the loss at a maximiser, so that training on the points is training on the maximum. For a
linear module, :math:`y g(x) = y(\langle w, x\rangle + b)`, one step reaches it: the loss is
:math:`\ell(y g(x) - \varepsilon
\|w\|_1)` for linf and has :math:`\|w\|_2` for l2.

The cost of a step is that of ``n_iter`` passes forward and back to the input, and the usual pass.

Reference: Madry, Makelov, Schmidt, Tsipras & Vladu, "Towards deep learning models resistant to adversarial
attacks" (2018).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch

from .._counts import check_counts
from ..nn.precision import autocast, context
from ._ball import Ball, check_threat, lengths, spread
from ._network_attack import gradient, odds
from .threat import Threat

__all__ = ["AdversarialTraining"]


class AdversarialTraining:
    """For the trainer's ``augment=``: each batch is attacked before it is trained on.

    Parameters
    ----------
    threat : Threat
        eps, norm, lower and upper.
    n_iter : int, default=7
        Projected gradient steps of the inner attack.
    step_size : float, default=None
        None is 2.5 eps / n_iter.
    loss : callable, default=None
        ``loss(output, target)`` with one number a sample, to be made large. None is cross-entropy
        for whole-number
        targets: log(1 + e^-yz) where the module has one output.
    random_start : bool, default=True
        Whether to start at a random point of the set, drawn from torch's generator of the step.
    mode : {"train", "eval"}, default="train"
        The mode of the module during the attack; it is restored afterwards. In "train" mode
        running statistics
        of batch norms are kept as they are.

    Examples
    --------
    >>> import torch
    >>> from surefit.robust import AdversarialTraining, Threat
    >>> net = torch.nn.Linear(2, 1)
    >>> net.load_state_dict({"weight": torch.tensor([[1.0, -2.0]]), "bias": torch.zeros(1)})
    <All keys matched successfully>
    >>> attack = AdversarialTraining(Threat(0.5), n_iter=1, step_size=1.0, random_start=False)
    >>> attack(torch.zeros(2, 2), target=torch.tensor([0, 1]), module=net)
    tensor([[ 0.5000, -0.5000],
            [-0.5000,  0.5000]])
    """

    def __init__(
        self,
        threat: Threat,
        n_iter: int = 7,
        step_size: float | None = None,
        loss: Any = None,
        random_start: bool = True,
        mode: str = "train",
    ) -> None:
        if not isinstance(threat, Threat):
            raise TypeError(
                f"threat must be a Threat, such as Threat(0.1), got {type(threat).__name__}."
            )
        check_counts(n_iter=n_iter)
        if step_size is not None and not step_size > 0:
            raise ValueError(f"step_size must be positive, got {step_size!r}.")
        if mode not in ("train", "eval"):
            raise ValueError(f"mode must be 'train' or 'eval', got {mode!r}.")
        self.threat, self.n_iter, self.step_size = threat, int(n_iter), step_size
        self.loss, self.random_start, self.mode = loss, bool(random_start), mode

    def __repr__(self) -> str:
        return f"AdversarialTraining({self.threat}, n_iter={self.n_iter})"

    def __call__(self, x: Any, target: Any, module: Any) -> Any:
        """The points that a batch is trained on; x itself where eps is 0."""
        check_threat(self.threat, tuple(x.shape[1:]))
        if self.threat.eps == 0.0 or not len(x):
            return x
        ball = Ball.around(x.detach(), self.threat)
        alpha = self.step_size or 2.5 * self.threat.eps / self.n_iter
        loss = _likely if self.loss is None else self.loss
        point = _random(ball) if self.random_start else ball.x0
        numbers = context(autocast("auto", x.device, x.dtype), x.device)
        with _held(module, self.mode), numbers:
            for _ in range(self.n_iter):
                with torch.enable_grad():
                    at = point.detach().requires_grad_(True)
                    value = loss(module(at.clone()), target)  # it may write into what it gets
                    g = gradient(value, at)
                point = ball.project(at.detach() + alpha * ball.direction(g))
        return point


def _likely(output: Any, target: Any) -> Any:
    """Cross-entropy, through the log-odds: the same direction, and not 0 where the network is sure."""
    if target.is_floating_point() or target.ndim != 1:
        raise ValueError(
            f"target is of {target.dtype} with shape {tuple(target.shape)}: give loss=, one number a sample."
        )
    z = output[:, None] if output.ndim == 1 else output
    if z.shape[1] == 1:
        z = torch.cat([torch.zeros_like(z), z], dim=1)
    return odds(z.float() if z.dtype == torch.bfloat16 else z, target)


def _random(ball: Ball) -> Any:
    """Random points of the set, from torch's default generator: seeded by the trainer at each step."""
    if ball.norm == math.inf:
        delta = 2.0 * torch.rand_like(ball.x0) - 1.0
    else:
        delta = torch.randn_like(ball.x0)
        share = torch.rand(len(delta), dtype=delta.dtype, device=delta.device)
        size = share ** (1.0 / math.prod(delta.shape[1:])) / lengths(delta, 2.0).clamp_min(1e-12)
        delta = delta * spread(size, delta)
    return ball.project(ball.x0 + ball.eps * delta)


@contextlib.contextmanager
def _held(module: Any, mode: str) -> Iterator[None]:
    """Parameters without gradient, the mode asked for, buffers kept; all restored at the end."""
    wants = [(p, p.requires_grad) for p in module.parameters()]
    modes = [(part, part.training) for part in module.modules()]
    kept = [(b, b.clone()) for b in module.buffers()] if mode == "train" else []
    try:
        for p, _ in wants:
            p.requires_grad_(False)
        module.train(mode == "train")
        yield
    finally:
        for p, want in wants:
            p.requires_grad_(want)
        for part, was in modes:
            part.training = was
        with torch.no_grad():
            for buffer, value in kept:
                buffer.copy_(value)
