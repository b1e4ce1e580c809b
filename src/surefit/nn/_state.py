"""All that a run needs to go on as if it had not stopped: what it is, how to collect it, how to put it back.

Weights, the optimiser's moments, averages and the best weights are keyed by the names of parameters, and
whole, whatever the split over ranks. The order of rows, learning rates and random numbers are functions of
the step.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import nn

from .._checkpoint import CheckpointError
from ._recipe import differences, not_compared
from .checkpoints import CheckpointWarning, fit_to
from .ema import EMA
from .parallel import like, whole

__all__ = [
    "collect",
    "compare",
    "load_weights",
    "numbers_of",
    "restore",
    "settings_of",
    "weights_of",
]

# settings of an optimiser that change no step
_HOW = ("capturable", "differentiable", "foreach", "fused")


def weights_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """The whole weights and buffers; all ranks must call this."""
    return {name: whole(value) for name, value in module.state_dict().items()}


@torch.no_grad()
def load_weights(module: nn.Module, weights: dict[str, Any]) -> None:
    """Put weights and buffers, whole or of this rank, into the module."""
    state = module.state_dict()
    for name, value in state.items():
        given = weights[name]
        if isinstance(value, torch.Tensor):
            value.copy_(given if hasattr(given, "full_tensor") else like(value, given))
    rest = {k: weights[k] for k, v in state.items() if not isinstance(v, torch.Tensor)}
    if rest:  # what get_extra_state gave
        module.load_state_dict(rest, strict=False)


def collect(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    given: list[dict[str, Any]],
    ema: EMA | None,
    best: dict[str, Any] | None,
) -> dict[str, Any]:
    """What a run has become; all ranks must call this.

    Of the optimiser's settings only those are kept that are no longer as ``given``: some optimisers count
    steps or find their rate there.
    """
    own = [
        {k: v for k, v in now.items() if k not in before or not _same(v, before[k])}
        for now, before in zip(settings_of(optimizer), given)
    ]
    names = {id(p): name for name, p in module.named_parameters()}
    moments = {
        names[id(p)]: {key: whole(value) for key, value in state.items()}
        for p, state in optimizer.state.items()
    }
    return {
        "model": weights_of(module),
        "optimizer": moments,
        "groups": own,
        "ema": None if ema is None else {name: whole(w) for name, w in ema.weights.items()},
        "best": None if best is None else {name: whole(w) for name, w in best.items()},
    }


def settings_of(optimizer: torch.optim.Optimizer) -> list[dict[str, Any]]:
    """The numbers and texts of each group of parameters, but for the learning rate, which is the run's."""
    kinds = (bool, int, float, str, torch.Tensor, type(None))
    return [
        {
            key: value.detach().clone() if isinstance(value, torch.Tensor) else value
            for key, value in group.items()
            if key not in ("params", "lr") and isinstance(value, kinds)
        }
        for group in optimizer.param_groups
    ]


def numbers_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What an optimiser was made with, as a checkpoint holds it; how it is computed is left out."""
    group = optimizer.param_groups[0]
    kinds = (bool, int, float, str, type(None))
    shares = [g.get("share", 1.0) for g in optimizer.param_groups]
    found: dict[str, Any] = {"share": None if set(shares) == {1.0} else shares}
    for key in sorted(set(group) - {"params", "lr", "share", *_HOW}):
        value = group[key]
        if isinstance(value, (tuple, list)) and all(isinstance(part, kinds) for part in value):
            found[key] = list(value)
        elif isinstance(value, kinds):
            found[key] = value
    return found


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, torch.Tensor) and isinstance(other, torch.Tensor):
        return torch.equal(value, other)
    return type(value) is type(other) and bool(value == other)


_RATE = ("lr", "schedule", "warmup")  # which name the learning rate


def compare(
    state: dict[str, Any],
    live: dict[str, Any],
    settings: dict[str, Any],
    code: dict[str, dict[str, Any]],
) -> None:
    """Refuse a checkpoint of another run, and say what could not be compared."""
    fit_to(live, state["model"])
    kept, described = state["settings"], state.get("code", {})
    changed = [
        f"{key}={value!r} (the checkpoint has {kept.get(key)!r})"
        for key, value in settings.items()
        if kept.get(key) != value
    ]
    if any(settings[key] != kept.get(key) for key in _RATE):
        code = {role: own for role, own in code.items() if role != "learning rate"}
    changed += differences(described, code)
    if changed:
        horizon = ""
        if any(words.startswith("learning rate=") for words in changed):
            horizon = (
                " The learning rate follows from epochs and max_steps: leave them as they were."
            )
        raise CheckpointError(
            f"the checkpoint is of another run: {', '.join(changed)}. Use the settings it has, name another "
            f"folder, or pass resume=False.{horizon}"
        )
    unknown = not_compared(described, code)
    if settings["data"] is None:
        unknown.append("data (a dataset may draw what it gives)")
    if unknown:
        warnings.warn(
            "the run goes on from its checkpoint, and not all of it could be compared: "
            f"{'; '.join(unknown)}. Make sure that it is what it was.",
            CheckpointWarning,
            stacklevel=2,
        )


def restore(
    state: dict[str, Any],
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    ema: EMA | None,
) -> dict[str, Any] | None:
    """Put what :func:`collect` found back; the best weights are returned, split as the module is."""
    live = module.state_dict()
    load_weights(module, state["model"])
    parameters = dict(module.named_parameters())
    place = {
        id(p): k
        for k, p in enumerate(p for group in optimizer.param_groups for p in group["params"])
    }
    still = [name for name in state["optimizer"] if id(parameters[name]) not in place]
    if still:
        raise CheckpointError(
            f"the checkpoint is of another run: {', '.join(still[:10])} learnt there, and have requires_grad="
            "False here. Let them learn, name another folder, or pass resume=False."
        )
    moments = {
        place[id(parameters[name])]: {
            key: like(parameters[name], value)
            if key != "step" and getattr(value, "shape", None) == parameters[name].shape
            else value
            for key, value in entry.items()
        }
        for name, entry in state["optimizer"].items()
    }
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})
    for group, own in zip(optimizer.param_groups, state["groups"]):
        group.update(own)
    for name in state["optimizer"]:
        live_state = optimizer.state[parameters[name]]
        for key, value in moments[place[id(parameters[name])]].items():
            # torch gives all the weights' type, also what the optimiser keeps in another one
            if isinstance(value, torch.Tensor) and live_state[key].dtype != value.dtype:
                live_state[key] = value.to(live_state[key].device)
    if ema is not None:
        ema.weights = {name: like(parameters[name], w) for name, w in state["ema"].items()}
    best = state["best"]
    return None if best is None else {name: like(live[name], best[name]) for name in live}
