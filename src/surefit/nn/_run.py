"""The loop of a run: steps, losses read now and then, epochs, checkpoints, and why it ended."""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ._state import collect, compare, load_weights, numbers_of, restore, settings_of, weights_of
from ._step import NonFiniteLoss, Step
from .checkpoints import Checkpoints
from .ema import EMA
from .history import History
from .parallel import Replica
from .progress import Progress

__all__ = ["Run", "Training"]

_ASKED = "the callback asked to stop"
READ_EVERY = 50  # steps between two looks at losses that are on a GPU or spread over ranks


@dataclass
class Training:
    """What :func:`train` gives back.

    Attributes
    ----------
    module : nn.Module
        In evaluation mode, with the last weights: their average with ``ema``, the best with ``patience``.
        Under FSDP its parameters are parts of tensors.
    history : History
    stop : str
        Why the run ended, in words.
    step : int
        Steps done, counted from the start of the run, also where it was resumed.
    state : dict of str to Tensor
        The module's weights and buffers, whole.
    """

    module: nn.Module
    history: History
    stop: str
    step: int
    state: dict[str, torch.Tensor]


@dataclass
class Run:
    """A run, from its parts. Ranks that must decide alike decide by numbers summed over all."""

    replica: Replica
    gradient: Step
    optimizer: torch.optim.Optimizer
    rate: Callable[[int], float]
    average: EMA | None
    total: int
    clip: float | None
    patience: int | None
    callback: Callable[[Training], Any] | None
    max_time: float | None
    kept: Checkpoints | None
    every_steps: int | None
    every_minutes: float | None
    resume: bool
    recipe: dict[str, Any]  # settings of the steps, which go on as they began
    code: dict[str, dict[str, Any]]  # of the module, the loss, ..., as `describe` gives it
    look: Callable[[], tuple[float, dict[str, float]]] | None
    judged: bool  # whether what `look` gives is of validation data
    verbose: int

    def __post_init__(self) -> None:
        self.module, self.group = self.replica.module, self.replica.group
        self.batches = self.gradient.batches
        self.history, self.stop = History(), ""
        self.step, self.spent = 0, 0.0
        self.sums = [0.0, 0.0]  # weighted loss and weight of the epoch so far
        self.best: dict[str, torch.Tensor] | None = None
        self.best_value, self.waited = math.inf, 0
        self.pending: list[tuple[torch.Tensor, float, Any]] = []
        # on the processor a loss is read at no cost, and before the weights change
        self.direct = self.batches.device.type == "cpu" and self.group.size == 1
        self.settings = {
            "seed": self.batches.seed, "batch_size": self.batches.batch_size,
            "rows": self.batches.n, "shuffle": bool(self.batches.shuffle),
            "dtype": str(self.batches.dtype),
            "optimizer": type(self.optimizer).__name__, **numbers_of(self.optimizer), **self.recipe,
            "data": None if self.kept is None else self.batches.mark(),
        }  # fmt: skip
        self.given = settings_of(self.optimizer)

    def go(self) -> Training:
        """To the end of the run."""
        self._resume()
        self.module.zero_grad(set_to_none=True)  # what somebody's backward pass left
        steps, saved = self.batches.steps, self.step
        self.started = self.epoch_started = time.perf_counter()
        self.saved_at, self.epoch_step = time.monotonic(), self.step
        self.bar = Progress(self.verbose if self.group.rank == 0 else 0, self.total, self.step)
        each_epoch = self.every_steps is None and self.every_minutes is None
        with contextlib.closing(self.bar):
            while self.step < self.total and not self.stop and not self._waited_enough():
                due = self._advance()
                ends = self.step % steps == 0 or self.step == self.total
                if self.every_steps is not None and self.step % self.every_steps == 0:
                    due = True
                if self.pending and (due or ends or len(self.pending) >= READ_EVERY):
                    due = self._read() or due
                if ends:
                    self._end_of_epoch()
                if self.kept is not None and (due or (ends and each_epoch)):
                    self._save()
                    saved, self.saved_at = self.step, time.monotonic()
        if self.pending:
            self._read()
        if self.kept is not None and saved != self.step:
            self._save()
        elif self.kept is None:
            self._check_weights()
        if self.average is not None:
            self.average.load()
        if self.best is not None:
            load_weights(self.module, self.best)
        self.replica.share_buffers()
        self.module.eval()
        state = weights_of(self.module)
        return Training(self.module, self.history, self._why(), self.step, state)

    def _advance(self) -> bool:
        """One step; whether a checkpoint is due."""
        t, steps, due = self.step, self.batches.steps, False
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(t) * group.get("share", 1.0)
        value, weight = self.gradient(t // steps, t % steps, t)
        norm = None if self.clip is None else self.replica.clip(self.clip)
        self.pending.append((value, weight, norm))
        self.step += 1
        if self.direct:
            due = self._read()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.update(t)
        return due

    def _read(self) -> bool:
        """Look at the losses kept so far; whether a checkpoint is due by the clock."""
        minutes = (time.monotonic() - self.saved_at) / 60
        due = self.every_minutes is not None and minutes >= self.every_minutes
        late = self.max_time is not None and time.perf_counter() - self.started >= self.max_time
        if self.direct:
            losses = [value.item() for value, _, _ in self.pending]
        else:
            values = torch.stack([value for value, _, _ in self.pending]).double()
            flags = torch.tensor([due, late], dtype=torch.float64, device=values.device)
            *losses, due, late = self.group.sum(torch.cat([values, flags])).tolist()
        for k, (value, (_, weight, norm)) in enumerate(zip(losses, self.pending)):
            size = 0.0 if norm is None else float(norm)
            if not (math.isfinite(value) and math.isfinite(size)):
                wrong = f"the norm of the gradient is {size}"
                wrong = wrong if math.isfinite(value) else f"the loss is {value}"
                raise self._non_finite(wrong, self.step - len(self.pending) + k)
            self.history.step_loss.append(value)
            self.sums[0] += value * weight
            self.sums[1] += weight
        self.pending.clear()
        self.bar.step(self.step, losses[-1])
        if late and not self.stop:
            self.stop = f"max_time={self.max_time:g} seconds have passed"
        return bool(due)

    def _end_of_epoch(self) -> None:
        spent = time.perf_counter() - self.epoch_started
        entry: dict[str, Any] = {}
        if self.look is not None:
            with contextlib.nullcontext() if self.average is None else self.average.applied():
                value, entry["metrics"] = self.look()
                if self.judged:
                    entry["validation"] = value
                    self._judge(value)
        self.history.add(
            step=self.step,
            epoch=-(-self.step // self.batches.steps),
            loss=self.sums[0] / self.sums[1] if self.sums[1] else math.nan,
            lr=float(self.rate(self.step - 1)),
            seconds=self._clock(),
            samples_per_second=(self.step - self.epoch_step) * self.batches.batch_size / max(spent, 1e-9),
            **entry,
        )  # fmt: skip
        self.sums = [0.0, 0.0]
        self.bar.epoch(self.step, self.history.last())
        live = Training(self.module, self.history, "", self.step, {})
        if self.callback is not None and self.callback(live):
            self.stop = _ASKED
        self.epoch_started, self.epoch_step = time.perf_counter(), self.step

    def _judge(self, value: float) -> None:
        """Whether these weights are the best so far."""
        if value < self.best_value:
            self.best_value, self.waited = value, 0
            if self.patience is not None:
                state = self.module.state_dict()
                self.best = {  # extra state may be anything
                    name: w.detach().clone() if isinstance(w, torch.Tensor) else copy.deepcopy(w)
                    for name, w in state.items()
                }
        else:
            self.waited += 1

    def _waited_enough(self) -> bool:
        return self.patience is not None and self.waited >= self.patience

    def _why(self) -> str:
        if self.stop:
            return self.stop
        if self._waited_enough():
            return f"the validation loss has not fallen for {self.waited} epochs"
        if self.step > self.total:
            return (
                f"its checkpoint is of step {self.step}, beyond the {self.total} steps of this run"
            )
        epochs, rest = divmod(self.total, self.batches.steps)
        return f"all {self.total} steps are done" if rest else f"all {epochs} epochs are done"

    def _clock(self) -> float:
        return self.spent + time.perf_counter() - self.started

    # ------------------------------------------------------------------ checkpoints

    def _resume(self) -> None:
        kept = self.kept
        if kept is None:
            return
        self.group.agree(lambda: kept.prepare() if self.group.rank == 0 else None)
        found = self.group.agree(kept.latest) if self.resume else None
        if found is None:
            return
        # one rank compares: a function may hold its rank
        live, first = self.module.state_dict(), self.group.rank == 0
        self.group.agree(lambda: compare(found, live, self.settings, self.code) if first else None)
        self.best = restore(found, self.module, self.optimizer, self.average)
        run = found["run"]
        self.step, self.spent, self.sums = run["step"], run["seconds"], run["sums"]
        self.best_value, self.waited = run["best_value"], run["waited"]
        losses = found["history"]["step_loss"].tolist()
        self.history = History.from_dict(found["history"] | {"step_loss": losses})
        state, load = found.get("callback"), getattr(self.callback, "load_state_dict", None)
        if state is not None and load is not None:
            load(state)
            self.stop = _ASKED if run["asked"] else ""

    def _check_weights(self) -> None:
        """A step may spoil the weights after its loss was read: these are neither kept nor returned."""
        bad = [
            ~torch.isfinite(p.to_local() if hasattr(p, "to_local") else p.detach()).all()
            for p in self.module.parameters()
        ]
        if bad and float(self.group.sum(torch.stack(bad).sum().double())):
            raise self._non_finite("the weights are no longer finite", self.step - 1)

    def _save(self) -> None:
        self._check_weights()
        tensors = collect(self.module, self.optimizer, self.given, self.average, self.best)
        run = {
            "step": self.step, "seconds": self._clock(), "sums": self.sums,
            "best_value": self.best_value, "waited": self.waited, "asked": self.stop == _ASKED,
        }  # fmt: skip
        state_of = getattr(self.callback, "state_dict", None)
        if self.kept is not None and self.group.rank == 0:
            losses = torch.tensor(self.history.step_loss, dtype=torch.float64)
            rest = {
                "run": run, "settings": self.settings, "code": self.code,
                "history": self.history.to_dict() | {"step_loss": losses},  # long: not as text
                "callback": None if state_of is None else state_of(),
            }  # fmt: skip
            self.kept.save(self.step, tensors | rest)

    def _non_finite(self, what: str, step: int) -> NonFiniteLoss:
        epoch, place = divmod(step, self.batches.steps)
        files = self.kept.files() if self.kept is not None else []
        words = (
            f"The last good checkpoint is {files[-1]}." if files else "No checkpoint was written."
        )
        return NonFiniteLoss(what, step, epoch, self.batches.rows(epoch, place), words)
