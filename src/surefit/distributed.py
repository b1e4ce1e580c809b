"""Processes that share a fit: but for ``nn/parallel.py``, the only file that touches torch.distributed.

Rows are spread over processes ("ranks"), each of which holds some and runs the same program. A fit adds up
what the ranks have found in their rows (Gram matrices, gradients, sums of clusters) and goes on, everywhere,
from the same numbers. :func:`connect` joins the processes that ``torchrun`` started; without it there is a
group of one, whose sums are its own.

    # torchrun --nproc-per-node=2 job.py
    import numpy as np
    from surefit.cluster import KMeans
    from surefit.design import RankRows
    from surefit.distributed import connect

    with connect() as group:
        X = np.load("rows.npy", mmap_mode="r")
        mine = X[group.share_of(len(X))]
        model = KMeans(8, random_state=0).fit(RankRows(mine, group))

What may go wrong on one rank is made to fail on all: see :meth:`Ranks.agree`. A rank that dies makes the
others fail within the time limit with :class:`RankLost`; ``torchrun --max-restarts`` then starts them again,
and a :class:`Checkpoint` lets the fit go on from where it was. docs/scaling.md shows how to launch.

Examples
--------
>>> with connect() as group:          # no torchrun: one process
...     group.size, float(group.sum(2.5)), group.share_of(10)
(1, 2.5, slice(0, 10, None))
"""

from __future__ import annotations

import contextlib
import datetime
import gc
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._alone import ALONE, Alone, as_array, is_torch, one_or_all, pack_signs, unpack_signs
from ._checkpoint import Checkpoint, CheckpointError, key_of

__all__ = [
    "ALONE",
    "Alone",
    "Checkpoint",
    "CheckpointError",
    "RankError",
    "RankLost",
    "Ranks",
    "Traffic",
    "connect",
    "key_of",
    "pack_signs",
    "shared_random_state",
    "unpack_signs",
]

T = TypeVar("T")


class RankError(ValueError):
    """What went wrong on another rank, raised on this one too."""


class RankLost(ConnectionError):
    """A rank no longer answers."""


@dataclass
class Traffic:
    """What a rank has handed to the others: messages, and bytes of their contents."""

    messages: int = 0
    bytes: int = 0


class Ranks(Alone):
    """The processes of torch.distributed's group.

    Sums are formed in float64 by one all-reduce a call, whatever the number of arrays; every rank receives
    the same bits, so that ranks which decide by them decide alike. Tensors on a GPU are reduced there.

    Attributes
    ----------
    rank, size : int
    traffic : Traffic
        What this rank has handed to sums, maxima and votes so far. The few objects that ranks exchange
        (:meth:`gather`, :meth:`share`) are not counted.
    """

    def __init__(self, timeout: float) -> None:
        import torch.distributed as dist

        self.rank, self.size, self.timeout = dist.get_rank(), dist.get_world_size(), timeout
        self.traffic = Traffic()

    def __repr__(self) -> str:
        return f"Ranks(rank {self.rank} of {self.size})"

    def sum(self, *arrays: Any) -> Any:
        return self._reduce("SUM", arrays)

    def max(self, *arrays: Any) -> Any:
        return self._reduce("MAX", arrays)

    def _reduce(self, how: str, arrays: tuple[Any, ...]) -> Any:
        import torch
        import torch.distributed as dist

        arrays = tuple(as_array(array) for array in arrays)
        device = next((a.device for a in arrays if is_torch(a)), torch.device("cpu"))
        flat = [torch.as_tensor(a, device=device).reshape(-1).double() for a in arrays]
        packed = torch.cat(flat)
        self.traffic.messages += 1
        self.traffic.bytes += 8 * packed.numel()
        with self._named(f"a {how.lower()} of {packed.numel()} numbers"):
            dist.all_reduce(packed, getattr(dist.ReduceOp, how))
        parts = packed.split([part.numel() for part in flat])
        return one_or_all([_like(part, array) for part, array in zip(parts, arrays)])

    def gather(self, thing: T) -> list[T]:
        import torch.distributed as dist

        found: list[Any] = [None] * self.size
        with self._named("gathering"):
            dist.all_gather_object(found, thing)
        return found

    def share(self, thing: T) -> T:
        import torch.distributed as dist

        box = [thing]
        with self._named("sharing"):
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def agree(self, work: Callable[[], T]) -> T:
        problem, result = None, None
        try:
            result = work()
        except Exception as error:
            problem = error
        words = None if problem is None else f"{type(problem).__name__}: {problem}"
        found = [(rank, text) for rank, text in enumerate(self.gather(words)) if text is not None]
        if problem is not None:
            raise problem
        if found:
            rank, text = found[0]
            raise RankError(f"rank {rank} of {self.size} failed, so all stop: {text}")
        return result  # type: ignore[return-value]

    def majority(self, values: Any) -> NDArray[np.int8]:
        import torch
        import torch.distributed as dist

        count, mine = np.size(values), torch.from_numpy(pack_signs(values))
        found = [torch.empty_like(mine) for _ in range(self.size)]
        self.traffic.messages += 1
        self.traffic.bytes += mine.numel()
        with self._named(f"a vote on {count} signs"):
            dist.all_gather(found, mine)
        votes = sum(unpack_signs(part.numpy(), count).astype(np.int64) for part in found)
        return np.sign(votes).astype(np.int8).reshape(np.shape(values))

    @contextlib.contextmanager
    def _named(self, what: str) -> Iterator[None]:
        """torch's error for a rank that is gone, as one that says what to do."""
        try:
            yield
        except RuntimeError as error:  # DistBackendError and its kin are RuntimeErrors
            raise RankLost(
                f"rank {self.rank} of {self.size} lost the others during {what} (time limit "
                f"{self.timeout:g} s): a process ended, or stopped answering. Start the job again, for "
                "instance with torchrun --max-restarts; with RankRows(..., checkpoint=folder) the fit goes "
                f"on from its last state. torch said: {str(error).splitlines()[0]}"
            ) from error


@contextlib.contextmanager
def connect(*, timeout: float = 300.0) -> Iterator[Alone | Ranks]:
    """Join the processes that torchrun started, and leave them at the end.

    Without torchrun's environment variables (``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``) the
    group is this process alone. A process group that exists already is used, and left standing.

    Parameters
    ----------
    timeout : float, default=300
        Seconds to wait for the other ranks in any exchange, after which :class:`RankLost` is raised.
    """
    if not timeout > 0:
        raise ValueError(f"timeout must be positive, got {timeout!r}.")
    ready = "RANK" in os.environ and "WORLD_SIZE" in os.environ
    if not ready and not _joined():
        yield ALONE
        return
    import torch
    import torch.distributed as dist

    mine = not dist.is_initialized()
    if mine:
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
        limit = datetime.timedelta(seconds=timeout)
        store, rank, size = next(iter(dist.rendezvous("env://", timeout=limit)))
        store.set_timeout(limit)
        store = dist.PrefixStore(_attempt(), store)
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=limit)
    try:
        yield Ranks(timeout)
    finally:
        if mine:
            gc.collect()  # DDP's cycles hold the group; it must go while its threads can still end
            dist.destroy_process_group()


def _attempt() -> str:
    """A name for this attempt of a job on one machine.

    torchrun starts the processes again beside the same store, which still holds the addresses of those that
    died. On several machines the number of restarts is each one's own, and no common name; there
    TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 gives each attempt a store of its own (docs/scaling.md).
    """
    alone = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
    return f"surefit-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0') if alone else 'all'}"


def _joined() -> bool:
    """Whether this process is in a group already; does not import torch."""
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and dist.is_initialized()


def _like(part: Any, array: Any) -> Any:
    """A stretch of the sum in the shape, kind and place of what was given."""
    if is_torch(array):
        return part.reshape(array.shape).to(array.dtype)
    kind = array.dtype if array.dtype.kind in "iuf" else np.int64
    return part.cpu().numpy().reshape(array.shape).astype(kind)


def shared_random_state(group: Alone, random_state: Any) -> Any:
    """scikit-learn's generator for ``random_state``, in the same state on every rank.

    A seed gives the numbers that it gives to one process.
    """
    from sklearn.utils import check_random_state

    rng = check_random_state(random_state)
    if group.size > 1 and not isinstance(random_state, (int, np.integer)):
        if (
            random_state is None or random_state is np.random
        ):  # the numbers of other work stay its own
            rng = np.random.RandomState(rng.randint(2**31 - 1))
        rng.set_state(group.share(rng.get_state()))
    return rng
