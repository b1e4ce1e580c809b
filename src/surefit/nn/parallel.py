"""One module over several processes, applied from outside: DDP and FSDP2 under ``torchrun``.

The rows of a step are the same for any number of ranks: each takes its share, divides its sum of losses by
the weight of the whole step, and gradients are *summed*. So the gradient is that of one process, to rounding,
whatever the shares; an average of averages would not be. (DDP averages over ranks: there the loss is
multiplied by their number beforehand.) A rank whose share is empty passes one row with weight zero, because
all must take part in each exchange.

``"ddp"`` keeps a copy of the module on each rank; ``"fsdp"`` keeps a part of each tensor (``fully_shard``),
gathered block by block as needed. What a run keeps in checkpoints is whole in either case, so that a run may
go on with another number of ranks or another kind of split.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from ..distributed import ALONE, Alone

__all__ = ["Replica", "compile_options", "like", "whole"]

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class Replica:
    """A module as this process runs it.

    Attributes
    ----------
    module : nn.Module
        What was given; under FSDP its parameters are parts.
    runner : callable
        What to call for the forward pass.
    group : Alone or Ranks
    scale : float
        What to multiply a loss by before going back through it.
    """

    def __init__(
        self, module: nn.Module, parallel: str | None, group: Alone, compile: bool | str = False
    ) -> None:
        if parallel not in (None, "ddp", "fsdp"):
            raise ValueError(f"parallel must be None, 'ddp' or 'fsdp', got {parallel!r}.")
        self.module = module
        self.group = group if parallel is not None else ALONE
        self.kind = parallel if self.group.size > 1 else None
        self.scale = 1.0
        self.runner: Any = module
        self.evaluator: Any = module  # the same without exchanges of DDP
        if self.kind == "fsdp":
            _same_everywhere([*module.parameters(), *module.buffers()])
            _shard(module, self.group.size)
        if compile:
            self.runner = self.evaluator = torch.compile(module, **compile_options(compile))
        if self.kind == "ddp":
            self.runner = nn.parallel.DistributedDataParallel(self.runner)
            # DDP averages; a hook that sums would run Python on the threads of the back end
            self.scale = float(self.group.size)

    def parts(self, rows: Any, count: int = 1) -> list[tuple[Any, bool]]:
        """This rank's rows of a step in ``count`` parts, each with whether it counts.

        Several ranks make equally many parts, for each is an exchange: an empty one becomes one row that
        counts for nothing.
        """
        mine = rows[self.group.share_of(len(rows))]
        mine = [mine] if count == 1 else np.array_split(mine, count)
        if self.kind is None:
            return [(part, True) for part in mine if len(part)]
        return [(part, True) if len(part) else (rows[:1], False) for part in mine]

    def backward(self, last: bool) -> Any:
        """A context for forward and backward; only the last one of a step exchanges gradients."""
        if self.kind == "ddp" and not last:
            return self.runner.no_sync()
        if self.kind == "fsdp":
            self.module.set_requires_gradient_sync(last)  # type: ignore[operator,unused-ignore]
        return contextlib.nullcontext()

    def share_buffers(self) -> None:
        """The first rank's buffers on all: each has made means of batch norm from its own rows."""
        if self.kind is not None:
            _same_everywhere(self.module.buffers())

    def settle(self) -> None:
        """Drop tensors that a forward pass without a backward pass left gathered."""
        if self.kind == "fsdp":
            for part in self.module.modules():
                if hasattr(part, "reshard"):
                    part.reshard()  # type: ignore[operator,unused-ignore]

    def clip(self, limit: float) -> Any:
        """Scale the gradient to this global norm at most; the norm before."""
        norm = nn.utils.clip_grad_norm_(self.module.parameters(), limit)
        return whole(norm)


def compile_options(compile: bool | str) -> dict[str, Any]:
    """What ``torch.compile`` is given: a text names its mode or its back end.

    Each shape has a graph of its own. One for several is made once a second shape was seen, so that what a
    step rounds to would depend on the steps before it, and a resumed run would part from a calm one.

    Examples
    --------
    >>> compile_options("max-autotune"), compile_options("aot_eager")
    ({'dynamic': False, 'mode': 'max-autotune'}, {'dynamic': False, 'backend': 'aot_eager'})
    """
    options: dict[str, Any] = {"dynamic": False}
    if not isinstance(compile, bool):
        options["mode" if compile in _MODES else "backend"] = compile
    return options


def whole(value: Any) -> Any:
    """A tensor, gathered from its parts where it is spread over ranks (all must call this)."""
    value = value.detach() if isinstance(value, torch.Tensor) else value
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def like(target: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A whole tensor, of its own type, in the place, the split and the strides of another of its shape.

    Fused optimisers go through the memory of weights and moments side by side, whatever their strides say.
    """
    if not isinstance(target, torch.Tensor):
        return value
    if not hasattr(target, "full_tensor"):
        return torch.empty_like(target, dtype=value.dtype, requires_grad=False).copy_(value)
    moved = value.to(target.device)
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(moved, target.device_mesh, target.placements)


def _shard(module: nn.Module, size: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    device = next(module.parameters()).device.type
    mesh = init_device_mesh(device, (size,))
    for owner in reversed(list(module.modules())):  # from the inside out
        if isinstance(owner, (nn.ModuleList, nn.Sequential)):
            for block in owner:
                if any(True for _ in block.parameters()) and not hasattr(block, "unshard"):
                    fully_shard(block, mesh=mesh)
    fully_shard(module, mesh=mesh)
    for part in module.modules():
        if hasattr(part, "set_gradient_divide_factor"):
            part.set_gradient_divide_factor(1.0)
            part.set_force_sum_reduction_for_comms(True)


def _same_everywhere(tensors: Iterable[torch.Tensor]) -> None:
    """The first rank's numbers on all."""
    import torch.distributed as dist

    with torch.no_grad():
        for tensor in tensors:
            dist.broadcast(tensor.detach(), src=0)
