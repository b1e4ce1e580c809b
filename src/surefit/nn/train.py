"""The trainer: any ``nn.Module``, any loss, one process or many.

The loop is the textbook's: for each step, the gradient of the mean loss of some rows, and a step of the
optimiser. What surrounds it keeps four promises.

- *The loss is what it says.* ``batch_size`` rows make a step, whatever ``accumulate`` and the number of ranks
  (:mod:`surefit.nn._step`): sums over samples, divided once.
- *A run that was stopped ends as if it had not been*, to the bit: order, learning rate and random numbers are
  functions of (seed, step), everything else is in the checkpoint (:mod:`surefit.nn._state`).
- *A run that goes wrong says where*: the step and its rows, the batch size that fits, tensors that differ.
- *Little of the time is its own*: on a GPU losses stay there and are read every 50 steps.

No claim of optimality goes with a trained network; ``stop`` says in words why the run ended.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from .._counts import check_counts, is_whole
from ..distributed import ALONE, connect
from ._draws import callers_kept
from ._recipe import describe
from ._run import Run, Training
from ._step import NonFiniteLoss, OutOfMemory, Step, evaluate
from .batches import Batches
from .checkpoints import Checkpoints
from .ema import EMA
from .optimizers import make_optimizer, maker_of, sparse_gradients, unshaped
from .parallel import Replica
from .precision import autocast, pick_device
from .schedules import learning_rate

__all__ = ["NonFiniteLoss", "OutOfMemory", "Training", "accuracy", "train"]

Loss = Callable[[Any, Any], torch.Tensor]


def accuracy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The metric ``"accuracy"``: 1 where the largest output is the target's, 0 elsewhere."""
    return (output.argmax(dim=1) == target).to(torch.float32)


def train(
    module: nn.Module,
    data: Any,
    loss: Loss,
    *,
    epochs: int = 10,
    batch_size: int = 128,
    optimizer: str | Callable[..., Any] = "adamw",
    lr: float = 1e-3,
    weight_decay: float = 0.0,
    schedule: str | Callable[[int], float] = "constant",
    warmup: float = 0,
    accumulate: int = 1,
    clip: float | None = None,
    ema: float | None = None,
    precision: str = "auto",
    compile: bool | str = False,
    device: Any = None,
    seed: int = 0,
    shuffle: bool = True,
    sample_weight: Any = None,
    validation: Any = None,
    metrics: dict[str, Loss] | None = None,
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every_steps: int | None = None,
    every_minutes: float | None = None,
    keep: int = 3,
    resume: bool = True,
    parallel: str | None = None,
    augment: Callable[..., Any] | None = None,
    callback: Callable[[Training], Any] | None = None,
    max_steps: int | None = None,
    max_time: float | None = None,
    verbose: int = 0,
) -> Training:
    """Train a module by mini-batches.

    Parameters
    ----------
    module : nn.Module
        Trained in place.
    data : (X, y), X, RowBlocks or map-style dataset
        See :class:`surefit.nn.batches.Batches`.
    loss : callable
        ``loss(output, target)`` gives one number a sample, shape (n,): ``reduction="none"`` in torch's words.
    epochs, batch_size : int
        Passes over the data; rows of one step of the optimiser, over all ranks and parts.
    optimizer : str or callable
        ``"adamw"``, ``"sgd"``, ``"sign"``, ...; or a class or function called as
        ``optimizer(groups, lr=lr)``, whose groups may have rates of their own; see
        :func:`surefit.nn.optimizers.make_optimizer`.
    lr, schedule, warmup
        See :func:`surefit.nn.schedules.learning_rate`.
    weight_decay : float
        On weights only: biases and norms are spared.
    accumulate : int
        Parts in which the rows of a step are passed through the module, to save memory. Changes nothing but
        rounding, unless the module looks across rows (batch norm) or draws random numbers (dropout).
    clip : float, optional
        The largest global norm of a gradient.
    ema : float, optional
        Decay of the moving average of weights, used for validation and at the end.
    precision : {"auto", "float32", "bf16"}
        ``"auto"``: bfloat16 autocast where a CUDA device has it.
    compile : bool or str
        Run through ``torch.compile``; a text names its mode, such as ``"reduce-overhead"``, or its back end.
    device : optional
        By default a GPU where there is one, else where the module is.
    seed, shuffle
        Of the order of rows and of all random numbers drawn in the module or in ``augment``.
    sample_weight : array-like of shape (n,), optional
    validation : as data, or (X, y, weights), optional
        Looked at after each epoch.
    metrics : dict of str to callable, optional
        As the loss, one number a sample; their means are kept. Without validation data they are over the
        training data.
    patience : int, optional
        Stop after so many epochs without a lower validation loss, and load the best weights.
    checkpoint : path, optional
        A folder for checkpoints, every so many steps or minutes, else after each epoch; and at the end.
    keep : int
        How many of them to keep.
    resume : bool
        Go on from the newest checkpoint in the folder, where there is one.
    parallel : {None, "ddp", "fsdp"}
        Under ``torchrun``: copies of the module, or parts of it, on each rank; each has all of the data.
    augment : callable, optional
        Called on the inputs of each part, on the device, as ``augment(x)`` and with those of ``seed``,
        ``epoch``, ``index`` (the numbers of the rows), ``target`` and ``module`` that its signature names:
        :class:`surefit.nn.augment.Augment` takes the first three, adversarial training the last two.
    callback : callable, optional
        Called with a :class:`Training` after each epoch (its ``state`` is empty); a true value ends the run.
        One with ``state_dict()`` and ``load_state_dict(state)`` is kept in checkpoints, and so is its end of
        the run.
    max_steps, max_time : optional
        Steps at most (schedules then end there), seconds at most.
    verbose : int
        0 shows nothing; 1 a bar on a terminal and lines elsewhere; 2 lines.

    Examples
    --------
    >>> import torch
    >>> X = torch.linspace(-1, 1, 64)[:, None]
    >>> net = torch.nn.Linear(1, 1)
    >>> squared = lambda output, target: (output - target).square().sum(dim=1)
    >>> done = train(net, (X, 3 * X + 1), squared, epochs=60, batch_size=16, lr=0.1, schedule="cosine")
    >>> done.stop, done.step, round(net.weight.item(), 3), round(net.bias.item(), 3)
    ('all 60 epochs are done', 240, 3.0, 1.0)
    """
    limits = {"patience": patience, "every_steps": every_steps, "max_steps": max_steps}
    check_counts(
        epochs=epochs, batch_size=batch_size, accumulate=accumulate, keep=keep,
        **{name: value for name, value in limits.items() if value is not None},
    )  # fmt: skip
    if not is_whole(seed, -math.inf):
        raise ValueError(f"seed must be a whole number, got {seed!r}.")
    _check_positive(clip=clip, every_minutes=every_minutes, max_time=max_time)
    if patience is not None and validation is None:
        raise ValueError(f"patience={patience} needs validation data: pass validation=(X, y).")
    if clip is not None and sparse_gradients(module):
        raise ValueError(
            f"clip={clip!r} needs dense gradients, and an embedding of the module has sparse ones: make it "
            "sparse=False, or pass clip=None."
        )
    if unshaped(module):
        raise ValueError(
            "module has lazy layers, whose weights have no shape yet: call it once on a few rows before."
        )
    with contextlib.ExitStack() as stack:
        group = ALONE if parallel is None else stack.enter_context(connect())
        where = pick_device(device, module)
        stack.enter_context(callers_kept(where))
        module.to(where).train()
        if where.type == "cuda" and any(isinstance(part, nn.Conv2d) for part in module.modules()):
            module.to(memory_format=torch.channels_last)  # what the tensor cores read; same numbers
        first = next((p for p in module.parameters() if p.is_floating_point()), None)
        dtype = torch.float32 if first is None else first.dtype
        cast = autocast(precision, where, dtype)
        code = {}
        if checkpoint is not None:  # before the module is wrapped for its ranks
            maker = maker_of(optimizer)
            parts = {"module": module, "loss": loss, "augment": augment, "optimizer": maker}
            code = {role: describe(part, module) for role, part in parts.items()}
        replica = Replica(module, parallel, group, compile)
        place: dict[str, Any] = {"device": where, "dtype": dtype}
        batches = Batches(
            data, batch_size=batch_size, seed=seed, shuffle=shuffle, sample_weight=sample_weight,
            **place,
        )  # fmt: skip
        held = None
        if validation is not None or metrics:
            seen, weights = (data, sample_weight) if validation is None else _weighed(validation)
            held = Batches(
                seen, sample_weight=weights, batch_size=-(-batch_size // accumulate), shuffle=False,
                **place,
            )  # fmt: skip
        total = epochs * batches.steps
        total = total if max_steps is None else min(total, max_steps)
        rate = learning_rate(
            schedule, lr, total=total, warmup=warmup, steps_per_epoch=batches.steps
        )
        run = Run(
            replica=replica,
            gradient=Step(
                replica, batches, loss, accumulate=accumulate, dtype=cast, augment=augment
            ),
            optimizer=make_optimizer(optimizer, module, lr, weight_decay),
            rate=rate,
            average=None if ema is None else EMA(module, ema),
            total=total, clip=clip, patience=patience, callback=callback, max_time=max_time,
            kept=None if checkpoint is None else Checkpoints(checkpoint, keep),
            every_steps=every_steps, every_minutes=every_minutes, resume=resume,
            recipe={
                "lr": float(lr), "weight_decay": float(weight_decay), "warmup": float(warmup),
                "schedule": schedule if isinstance(schedule, str) else "a function",
                "clip": None if clip is None else float(clip), "ema": None if ema is None else float(ema),
                "precision": str(cast or dtype),
                "validation": held.mark() if held is not None and patience and checkpoint else None,
            },
            code=code | ({"learning rate": describe(rate)} if code else {}),
            look=None if held is None else partial(evaluate, replica, held, loss, metrics or {}, cast),
            judged=validation is not None, verbose=verbose,
        )  # fmt: skip
        return run.go()


def _weighed(data: Any) -> tuple[Any, Any]:
    """(data, weights or None) of validation data."""
    three = isinstance(data, (tuple, list)) and len(data) == 3
    return (data[:2], data[2]) if three else (data, None)


def _check_positive(**given: float | None) -> None:
    for name, value in given.items():
        if value is not None and (isinstance(value, bool) or not 0 < value < math.inf):
            raise ValueError(f"{name} must be positive and finite, got {value!r}.")
