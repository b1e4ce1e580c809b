r"""Optimisers by name, weight decay that spares biases and norms, and sign descent for networks.

torch's optimisers are used as they are. ``"sign"`` is OPT-9, :math:`x_i \leftarrow x_i - \eta\,
\mathrm{sign}(g_i)`, which torch lacks; with ``momentum`` the sign is that of the running mean of gradients.

Weight decay pulls weights to zero. A bias or the scale of a norm has no reason to be near zero, so their
group has none: parameters of one dimension or none, those named ``bias``, and all those of norm layers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

__all__ = ["SignDescent", "decay_groups", "make_optimizer"]

_NAMES = {
    "adam": "Adam", "adamw": "AdamW", "sgd": "SGD", "rmsprop": "RMSprop", "adagrad": "Adagrad",
    "nadam": "NAdam", "radam": "RAdam", "adamax": "Adamax", "adadelta": "Adadelta",
}  # fmt: skip
_FUSED = {
    "adam": ("cpu", "cuda"),
    "adamw": ("cpu", "cuda"),
    "sgd": ("cpu", "cuda"),
    "adagrad": ("cpu",),
}
_SPARSE = ("sgd", "adagrad")  # these take sparse gradients
_NORMS = (
    nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.LocalResponseNorm,
)  # fmt: skip


class SignDescent(torch.optim.Optimizer):
    """Descent along the sign of the gradient (OPT-9).

    Examples
    --------
    >>> import torch
    >>> x = torch.nn.Parameter(torch.tensor([3.0, -0.1, 0.0]))
    >>> x.grad = x.detach().clone()
    >>> SignDescent([x], lr=0.5).step()
    >>> x.data
    tensor([2.5000, 0.4000, 0.0000])
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
    ) -> None:
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {momentum!r}; 0.9 is usual.")
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override,unused-ignore]
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                direction = p.grad
                if group["momentum"]:
                    state = self.state[p]
                    mean = state.setdefault("mean", torch.zeros_like(p))
                    direction = mean.lerp_(p.grad, 1 - group["momentum"])
                if group["weight_decay"]:
                    p.mul_(1 - group["lr"] * group["weight_decay"])
                p.add_(direction.sign(), alpha=-group["lr"])


def decay_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Groups of the parameters that learn: those that decay, those that are spared; one without decay.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    >>> [(len(g["params"]), g["weight_decay"]) for g in decay_groups(net, 0.1)]
    [(1, 0.1), (3, 0.0)]
    """
    if not 0 <= weight_decay < float("inf"):
        raise ValueError(f"weight_decay must be finite and at least 0, got {weight_decay!r}.")
    decayed: list[Any] = []
    spared: list[Any] = []
    seen: set[int] = set()
    for owner in module.modules():
        for name, p in owner.named_parameters(recurse=False):
            if not p.requires_grad or id(p) in seen:
                continue
            seen.add(id(p))
            small = p.ndim < 2 or name.endswith("bias") or isinstance(owner, _NORMS)
            (spared if small else decayed).append(p)
    if not weight_decay:  # each group is a kernel call or more a step
        decayed, spared = [], decayed + spared
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": spared, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def make_optimizer(
    optimizer: str | Callable[..., Any], module: nn.Module, lr: float, weight_decay: float
) -> torch.optim.Optimizer:
    """The optimiser of a module's parameters.

    A name, or a class or function called as ``optimizer(groups, lr=lr)``: settings go in by
    ``functools.partial(torch.optim.SGD, momentum=0.9)``. A function may make groups of its own: a group's
    ``"share"`` is its rate divided by ``lr``, which it keeps throughout the schedule.
    """
    groups = decay_groups(module, weight_decay)
    if not groups:
        raise ValueError("module has no parameter that requires a gradient: nothing can be learnt.")
    if isinstance(optimizer, str):
        name = optimizer.lower()
        if name == "sign":
            return SignDescent(groups, lr=lr)
        if name not in _NAMES:
            raise ValueError(
                f"optimizer must be 'sign', {', '.join(map(repr, _NAMES))}, or a class or function "
                f"called as optimizer(groups, lr=lr), got {optimizer!r}."
            )
        if sparse_gradients(module) and (name not in _SPARSE or weight_decay):
            raise ValueError(
                f"module has an embedding with sparse gradients, which optimizer={optimizer!r} with "
                f"weight_decay={weight_decay:g} does not take: use 'sgd' or 'adagrad' without weight decay, "
                "or make it sparse=False."
            )
        fused = (
            {}
            if sparse_gradients(module) or not _plain(groups, _FUSED.get(name, ()))
            else {"fused": True}
        )
        return getattr(torch.optim, _NAMES[name])(groups, lr=lr, **fused)
    if isinstance(optimizer, torch.optim.Optimizer) or not callable(optimizer):
        raise TypeError(
            f"optimizer must be a name, a class or a function of (groups, lr), got {optimizer!r}; "
            "for settings use functools.partial(torch.optim.SGD, momentum=0.9)."
        )
    for name, value in {"lr": lr, "weight_decay": weight_decay}.items():
        own = getattr(optimizer, "keywords", {}).get(name, value)  # of functools.partial
        if own != value:
            raise ValueError(
                f"optimizer has {name}={own!r}, which {name}={value!r} would replace: pass {name}={own!r} "
                "beside it."
            )
    made = optimizer(groups, lr=lr)
    if isinstance(made, torch.optim.LBFGS):
        raise ValueError("optimizer: LBFGS needs the whole data in a closure; use surefit.solvers.")
    for group in made.param_groups:
        group.setdefault("share", float(group.get("lr", lr)) / lr)
    return made


def maker_of(optimizer: Any) -> Any:
    """The name, class or function behind settings given by ``functools.partial``."""
    while isinstance(optimizer, functools.partial):
        optimizer = optimizer.func
    return optimizer


def sparse_gradients(module: nn.Module) -> bool:
    """Whether an embedding gives them."""
    kinds = (nn.Embedding, nn.EmbeddingBag)
    return any(isinstance(part, kinds) and part.sparse for part in module.modules())


def unshaped(module: nn.Module) -> bool:
    """Whether some weights wait for a first row to have a shape."""
    return any(is_lazy(p) for p in (*module.parameters(), *module.buffers()))


def _plain(groups: list[dict[str, Any]], devices: tuple[str, ...]) -> bool:
    """Whether there are fused kernels for these parameters on their devices."""
    every = [p for group in groups for p in group["params"]]
    return all(p.is_floating_point() and p.device.type in devices for p in every)
