"""Processes that share a fit: the only file that touches torch.distributed.

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
import io
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._files import write_atomically

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
    "pack_signs",
    "unpack_signs",
]

T = TypeVar("T")


class RankError(ValueError):
    """What went wrong on another rank, raised on this one too."""


class RankLost(ConnectionError):
    """A rank no longer answers."""


class CheckpointError(ValueError):
    """A checkpoint that cannot be read."""


@dataclass
class Traffic:
    """What a rank has handed to the others: messages, and bytes of their contents."""

    messages: int = 0
    bytes: int = 0


class Alone:
    """A group of one process: its sums are its own."""

    rank, size = 0, 1

    def sum(self, *arrays: Any) -> Any:
        """The arrays, each summed over the ranks; one array, or a tuple of several."""
        return _one_or_all([_as_array(array) for array in arrays])

    def max(self, *arrays: Any) -> Any:
        """The arrays, each the largest over the ranks, entry by entry."""
        return self.sum(*arrays)

    def gather(self, thing: T) -> list[T]:
        """What each rank gave, in the order of the ranks."""
        return [thing]

    def share(self, thing: T) -> T:
        """What the first rank gave."""
        return thing

    def agree(self, work: Callable[[], T]) -> T:
        """``work()``; what it raises on one rank is raised on all."""
        return work()

    def majority(self, values: Any) -> NDArray[np.int8]:
        """The sign that most ranks gave each entry: 1, -1, or 0 where they are even; a 0 votes for 1.

        A rank sends one bit an entry, 1/32 of a float32. This is the sign of the sum of the signs, and not
        always that of the sum: it is the latter where all ranks have the same sign.
        """
        return unpack_signs(pack_signs(values), np.size(values)).reshape(np.shape(values))

    def share_of(self, count: int) -> slice:
        """The rows of this rank when ``count`` are spread evenly, in order."""
        first, last = (count * k // self.size for k in (self.rank, self.rank + 1))
        return slice(first, last)


ALONE = Alone()


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

        arrays = tuple(_as_array(array) for array in arrays)
        device = next((a.device for a in arrays if is_torch(a)), torch.device("cpu"))
        flat = [torch.as_tensor(a, device=device).reshape(-1).double() for a in arrays]
        packed = torch.cat(flat)
        self.traffic.messages += 1
        self.traffic.bytes += 8 * packed.numel()
        with self._named(f"a {how.lower()} of {packed.numel()} numbers"):
            dist.all_reduce(packed, getattr(dist.ReduceOp, how))
        parts = packed.split([part.numel() for part in flat])
        return _one_or_all([_like(part, array) for part, array in zip(parts, arrays)])

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
            dist.destroy_process_group()


def _attempt() -> str:
    """A name for this attempt of a job on one machine.

    torchrun starts the processes again beside the same store, which still holds the addresses of those that
    died. On several machines the number of restarts is each one's own, and no common name; there
    TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 gives each attempt a store of its own (docs/scaling.md).
    """
    alone = os.environ.get("GROUP_WORLD_SIZE", "1") == "1"
    return f"surefit-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0') if alone else 'all'}"


def pack_signs(values: Any) -> NDArray[np.uint8]:
    """The signs of the entries, eight to a byte; 0 counts as positive.

    Examples
    --------
    >>> import numpy as np
    >>> gradient = np.linspace(-1.0, 2.0, 6400, dtype=np.float32)
    >>> signs = pack_signs(gradient)
    >>> gradient.nbytes / signs.nbytes
    32.0
    >>> bool((unpack_signs(signs, 6400) == np.where(gradient < 0, -1, 1)).all())
    True
    """
    entries = np.asarray(values)
    if np.isnan(entries).any():
        raise ValueError("a value is NaN, which has no sign: check the gradient.")
    return np.packbits(entries.reshape(-1) >= 0)


def unpack_signs(packed: NDArray[np.uint8], count: int) -> NDArray[np.int8]:
    """The ``count`` signs, 1 or -1, that :func:`pack_signs` put into these bytes."""
    if len(packed) != -(-count // 8):
        raise ValueError(f"{count} signs take {-(-count // 8)} bytes, got {len(packed)}.")
    bits = np.unpackbits(packed, count=count)
    return np.where(bits == 1, 1, -1).astype(np.int8)


def is_torch(x: Any) -> bool:
    """Whether x is a torch tensor; does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _joined() -> bool:
    """Whether this process is in a group already; does not import torch."""
    dist = sys.modules.get("torch.distributed")
    return dist is not None and dist.is_available() and dist.is_initialized()


def _as_array(array: Any) -> Any:
    return array if is_torch(array) else np.asarray(array)


def _like(part: Any, array: Any) -> Any:
    """A stretch of the sum in the shape, kind and place of what was given."""
    if is_torch(array):
        return part.reshape(array.shape).to(array.dtype)
    kind = array.dtype if array.dtype.kind in "iuf" else np.int64
    return part.cpu().numpy().reshape(array.shape).astype(kind)


def _one_or_all(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


# ---------------------------------------------------------------------------- checkpoints


class Checkpoint:
    """A folder in which fits keep their state, one file a fit.

    A file is written by the first rank, beside its place, synced and renamed: a crash leaves the last whole
    one. It holds arrays only, and is read without running anything. The state of a fit does not depend on how
    many ranks there are, so that a job may go on with another number of them.

    Parameters
    ----------
    folder : path
        Made where it is not there. All ranks name the same folder; only the first one reads and writes it.
    group : Alone or Ranks

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> kept = Checkpoint(tempfile.mkdtemp())
    >>> kept.load("means-1f")
    >>> kept.save("means-1f", {"step": np.array(3), "centres": np.eye(2)})
    >>> int(kept.load("means-1f")["step"])
    3
    """

    def __init__(self, folder: Any, group: Alone | Ranks = ALONE) -> None:
        self.folder, self.group = os.fspath(folder), group
        group.agree(self._prepare)

    def _prepare(self) -> None:
        if self.group.rank == 0:
            os.makedirs(self.folder, exist_ok=True)

    def _path(self, key: str) -> str:
        if not re.fullmatch(r"[\w.-]+", key):
            raise ValueError(f"key must be letters, digits, '-', '_' and '.', got {key!r}.")
        return os.path.join(self.folder, f"{key}.npz")

    def save(self, key: str, state: dict[str, NDArray[Any]]) -> None:
        """Keep a state; only the first rank writes, and the others do not wait for it."""
        if self.group.rank == 0:
            buffer = io.BytesIO()
            np.savez(buffer, allow_pickle=False, **state)
            write_atomically(self._path(key), [buffer.getbuffer()])

    def load(self, key: str) -> dict[str, NDArray[Any]] | None:
        """The state last kept under this key, on every rank; None where there is none."""
        return self.group.share(self.group.agree(lambda: self._read(key)))

    def _read(self, key: str) -> dict[str, NDArray[Any]] | None:
        path = self._path(key)
        if self.group.rank != 0 or not os.path.exists(path):
            return None
        try:
            with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except (
            OSError,
            ValueError,
            AttributeError,
            TypeError,
            zipfile.BadZipFile,
            EOFError,
            KeyError,
        ) as error:
            raise CheckpointError(
                f"the checkpoint {path} cannot be read: {error}. Delete it to start the fit afresh."
            ) from error
