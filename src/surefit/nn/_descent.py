r"""scikit-learn's objective and optimisers of a multi-layer perceptron, on torch's fused kernels.

The objective of a batch B with weights :math:`w_i` and :math:`W = \sum_{i \in B} w_i` is

.. math:: \frac1W \Bigl(\sum_{i \in B} w_i \ell_i + \frac{\alpha}{2} \sum_l \|W^{(l)}\|_F^2\Bigr) ,

biases spared. The penalty's value is added to the losses; its gradient :math:`\alpha W^{(l)} / W` is the
optimiser's weight decay, set before each step, for W differs in the last batch of an epoch.

torch's optimisers differ from scikit-learn's in two places, both undone before a step. scikit-learn's Adam
adds :math:`\epsilon` to :math:`\sqrt{v}`, torch's to :math:`\sqrt{v / (1 - \beta_2^t)}`, so it is given
:math:`\epsilon / \sqrt{1 - \beta_2^t}`. scikit-learn's velocity of SGD holds past learning rates; torch's
buffer holds gradients, and is scaled when the rate changes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

__all__ = ["Descent"]


class Descent:
    """The loss, the optimiser and the learning rate of one model, also over calls of ``partial_fit``.

    Parameters
    ----------
    module : nn.Module
    loss : callable
        (output, target) to one number a row.
    settings : object
        With scikit-learn's names: solver, alpha, momentum, beta_1, ...

    Attributes
    ----------
    weighted : bool
        Whether the last column of the target is the row's weight.
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Callable[[Any, Any], torch.Tensor],
        settings: Any,
    ) -> None:
        self.settings, self.base = settings, loss
        self.matrices = [p for p in module.parameters() if p.ndim > 1]
        self.lr = float(settings.learning_rate_init)
        self.weighted = False
        self.total, self.steps, self.last_lr = 1.0, 0, self.lr
        self.made: torch.optim.Optimizer | None = None

    def loss(self, output: Any, target: Any) -> torch.Tensor:
        """One number a row; the penalty is shared among them."""
        self.total = float(len(target))
        if self.weighted:
            self.total = float(target[:, -1].sum())
            target = target[:, :-1]
        losses = self.base(output, target)
        if self.settings.alpha and self.total:
            with torch.no_grad():
                flat = [w.detach().reshape(-1) for w in self.matrices]
                squares = sum(torch.dot(w, w) for w in flat)
                share = squares * (self.settings.alpha / 2 / self.total)
            losses = losses + share
        return losses

    def optimizer(self, groups: Any, lr: float) -> torch.optim.Optimizer:
        """The optimiser, made once."""
        if self.made is None:
            s = self.settings
            if s.solver == "adam":
                betas = (s.beta_1, s.beta_2)
                on_processor = all(p.device.type == "cpu" for g in groups for p in g["params"])
                kind = _Adam if on_processor else torch.optim.Adam
                self.made = kind(groups, lr=lr, betas=betas, eps=s.epsilon, fused=True)
            else:
                nesterov = bool(s.nesterovs_momentum and s.momentum > 0)
                self.made = torch.optim.SGD(
                    groups, lr=lr, momentum=s.momentum, nesterov=nesterov, fused=True
                )
            for group in self.made.param_groups:
                group["decays"] = group["weight_decay"] > 0
            if isinstance(self.made, _Adam):
                self.made.before = self._before
            else:
                self.made.register_step_pre_hook(self._before)
        return self.made

    def recipe(self) -> dict[str, Any]:
        """What the steps are, for a run that goes on from a checkpoint."""
        names = ("solver", "learning_rate", "power_t", "beta_1", "beta_2", "epsilon", "momentum")
        settings = {name: getattr(self.settings, name) for name in names}
        return settings | {"loss": self.base, "weighted": self.weighted}

    def state_dict(self) -> dict[str, Any]:
        """What steps after these depend on, but for the optimiser's own state."""
        return {"lr": self.lr, "last_lr": self.last_lr, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.lr, self.last_lr, self.steps = state["lr"], state["last_lr"], state["steps"]

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        s = self.settings
        self.steps += 1
        decay = s.alpha / self.total if self.total else 0.0
        for group in optimizer.param_groups:
            if group["decays"]:
                group["weight_decay"] = decay
            if s.solver == "adam":
                group["eps"] = s.epsilon / math.sqrt(1 - s.beta_2**self.steps)
            elif s.momentum and group["lr"] != self.last_lr:
                for p in group["params"]:
                    buffer = optimizer.state[p].get("momentum_buffer")
                    if buffer is not None:
                        buffer.mul_(self.last_lr / group["lr"])
        if optimizer.param_groups:
            self.last_lr = optimizer.param_groups[0]["lr"]

    def rate(self, step: int) -> float:
        """The learning rate; it changes at the ends of epochs only."""
        return self.lr

    def epoch_ends(self, seen: int) -> None:
        """``learning_rate="invscaling"``, after so many rows."""
        s = self.settings
        if s.solver == "sgd" and s.learning_rate == "invscaling":
            self.lr = float(s.learning_rate_init) / (seen + 1) ** s.power_t

    def slower(self) -> bool:
        """After too many epochs without progress: whether there is a lower rate to go on with."""
        s = self.settings
        if s.solver != "sgd" or s.learning_rate != "adaptive" or self.lr <= 1e-6:
            return False
        self.lr /= 5.0
        return True


class _Adam(torch.optim.Adam):
    """torch's fused kernel without the calls around it, which take longer than it does on a small perceptron.

    There are no hooks but ``before``.
    """

    before: Callable[..., None]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Gradients are set to None."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override,unused-ignore]
        self.before(self, (), {})
        for group in self.param_groups:
            learnt = [p for p in group["params"] if p.grad is not None]
            states = [self.state[p] for p in learnt]
            for p, state in zip(learnt, states):
                if not state:
                    state["step"] = torch.zeros((), dtype=torch.float32)
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
            steps = [state["step"] for state in states]
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(
                learnt, [p.grad for p in learnt], [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states], [], steps, lr=group["lr"],
                beta1=group["betas"][0], beta2=group["betas"][1], weight_decay=group["weight_decay"],
                eps=group["eps"], amsgrad=False, maximize=False,
            )  # fmt: skip

    step.hooked = True
