r"""The gradient of one step, and what can go wrong in it.

With rows :math:`B` of the step, weights :math:`w_i` and losses :math:`\ell_i`, the step's loss is

.. math:: \frac{1}{W} \sum_{i \in B} w_i\, \ell_i, \qquad W = \sum_{i \in B} w_i ,

whatever parts the rows are cut into: each part adds its sum divided by the W of the whole, which is known
beforehand. A mean of the means of parts would weigh the rows of a short part more.

Random numbers (dropout, augmentation) are drawn from a generator seeded by (seed, step, rank) at each step,
so that there is no state of it to keep.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ._draws import drawing
from .batches import Batches, mixed
from .parallel import Replica
from .precision import context

__all__ = ["NonFiniteLoss", "OutOfMemory", "Step", "evaluate", "per_sample"]


class NonFiniteLoss(FloatingPointError):
    """A loss or gradient that is NaN or infinite.

    Attributes
    ----------
    step, epoch : int
        Both from 0.
    rows : ndarray of int
        Numbers of the rows of the step.
    """

    def __init__(
        self, what: str, step: int, epoch: int, rows: NDArray[np.int64], kept: str
    ) -> None:
        self.step, self.epoch, self.rows = step, epoch, rows
        shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
        super().__init__(
            f"{what} at step {step} (epoch {epoch}), whose {len(rows)} rows are [{shown}]. {kept} "
            "Look at these rows, lower lr, or limit the gradient with clip=1.0."
        )


class OutOfMemory(MemoryError):
    """The rows of a step do not fit; the message says how many do."""


class Step:
    """Leaves the gradient of a step's loss in the parameters."""

    def __init__(
        self,
        replica: Replica,
        batches: Batches,
        loss: Callable[[Any, Any], torch.Tensor],
        *,
        accumulate: int = 1,
        dtype: torch.dtype | None = None,
        augment: Callable[..., Any] | None = None,
    ) -> None:
        if accumulate < 1:
            raise ValueError(f"accumulate must be at least 1, got {accumulate!r}.")
        self.replica, self.batches, self.loss = replica, batches, loss
        self.accumulate, self.dtype, self.augment = int(accumulate), dtype, augment
        # what it takes by name; without index it draws from the generator of the step
        self._wanted = () if augment is None else tuple(inspect.signature(augment).parameters)

    def __call__(self, epoch: int, place: int, step: int) -> tuple[torch.Tensor, float]:
        """(this rank's part of the loss, the weight of the step); the loss stays on the device."""
        batches, replica = self.batches, self.replica
        rows = batches.rows(epoch, place)
        total = batches.total(rows)
        parts = replica.parts(rows, self.accumulate)
        value: Any = None
        with drawing(mixed(batches.seed, step, replica.group.rank) >> 1, batches.device):
            for k, (part, counts) in enumerate(parts):
                with replica.backward(last=k == len(parts) - 1):
                    found = self._descended(part, total or 1.0, epoch, counts, len(rows))
                value = found if value is None else value + found
        return value, total

    def _descended(
        self, part: NDArray[np.int64], total: float, epoch: int, counts: bool, step: int
    ) -> torch.Tensor:
        """The loss of a part of so many rows of a step, whose gradient is added to the parameters'."""
        found: Any
        try:
            found = self._part(part, total, epoch, counts)
            (found if self.replica.scale == 1.0 else found * self.replica.scale).backward()
            return found.detach()
        except (torch.OutOfMemoryError, MemoryError) as error:
            found = None
            traceback.clear_frames(error.__traceback__)  # these held what was worked out so far
            raise self._out_of_memory(part, total, epoch, step) from error
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise self._too_few(part, step) from error

    def _part(
        self, rows: NDArray[np.int64], total: float, epoch: int, counts: bool = True
    ) -> torch.Tensor:
        x, y, weight = self.batches.fetch(rows)
        if self.augment is not None:
            given = {"seed": self.batches.seed, "epoch": epoch, "index": rows}
            given |= {"target": y, "module": self.replica.module}
            x = self.augment(x, **{name: given[name] for name in given if name in self._wanted})
        with context(self.dtype, self.batches.device):
            losses = per_sample(self.loss, self.replica.runner(x), y, len(rows))
        if not counts:
            return losses.sum() * 0.0
        return (losses if weight is None else losses * weight).sum() / total

    def _too_few(self, part: NDArray[np.int64], step: int) -> ValueError:
        """What to do about a part of too few rows for batch norm: most often the last batch of an epoch."""
        return ValueError(
            f"batch norm has no variance over {len(part)} row: of {self.batches.n} rows, batch_size="
            f"{self.batches.batch_size} leaves a step of {step}, in {self.accumulate} part(s). Choose a "
            "batch_size that leaves more, or less accumulate."
        )

    def _out_of_memory(
        self, rows: NDArray[np.int64], total: float, epoch: int, step: int
    ) -> OutOfMemory:
        """Halve the part until one passes forward and back."""
        size = len(rows) // 2
        told = f"{len(rows)} rows at a time do not fit into the memory of {self.batches.device}"
        while size >= 1 and self.replica.kind is None:
            self.replica.module.zero_grad(set_to_none=True)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            try:
                self._part(rows[:size], total, epoch).backward()
            except (torch.OutOfMemoryError, MemoryError) as error:
                traceback.clear_frames(error.__traceback__)
                size //= 2
                continue
            self.replica.module.zero_grad(set_to_none=True)
            needed = -(-step // size)
            return OutOfMemory(
                f"{told}, {size} do: pass accumulate={needed}, which leaves loss and gradient of a step "
                f"as they are, or batch_size={size}."
            )
        self.replica.module.zero_grad(set_to_none=True)
        if self.replica.kind is not None and size >= 1:
            return OutOfMemory(f"{told}: pass a larger accumulate (now {self.accumulate}).")
        return OutOfMemory(f"{told}, and a single row does not either: use a smaller module.")


def per_sample(
    loss: Callable[[Any, Any], torch.Tensor], output: Any, target: Any, n: int, name: str = "loss"
) -> torch.Tensor:
    """The losses of n samples, checked to be so many."""
    losses = loss(output, target)
    shape = tuple(getattr(losses, "shape", ()))
    if shape != (n,):
        raise ValueError(
            f"{name} must give one number a sample, shape ({n},), got shape {shape}: use "
            'reduction="none", and sum over what belongs to one sample.'
        )
    return losses


def evaluate(
    replica: Replica,
    batches: Batches,
    loss: Callable[[Any, Any], torch.Tensor],
    metrics: dict[str, Callable[[Any, Any], torch.Tensor]],
    dtype: torch.dtype | None = None,
) -> tuple[float, dict[str, float]]:
    """(weighted mean loss, weighted means of the metrics) over all rows, in evaluation mode."""
    module = replica.module
    replica.share_buffers()
    module.eval()
    functions = {"loss": loss} | {f"metrics[{name!r}]": f for name, f in metrics.items()}
    sums = torch.zeros(len(functions), dtype=torch.float64, device=batches.device)
    with torch.no_grad():
        for place in range(batches.steps):
            for part, counts in replica.parts(batches.rows(0, place)):
                x, y, weight = batches.fetch(part)
                with context(dtype, batches.device):
                    output = replica.evaluator(x)
                    found = [
                        per_sample(f, output, y, len(part), name).double()
                        for name, f in functions.items()
                    ]
                if counts:
                    sums += torch.stack(
                        [(v if weight is None else v * weight).sum() for v in found]
                    )
    replica.settle()
    module.train()
    total = batches.n if batches.weight is None else float(batches.weight.sum())
    means = (replica.group.sum(sums) / total).tolist()
    return means[0], dict(zip(metrics, means[1:]))
