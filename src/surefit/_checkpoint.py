"""State of a fit that outlives its process; see :class:`surefit.distributed.Checkpoint`."""

from __future__ import annotations

import io
import os
import re
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._alone import ALONE, Alone
from ._files import write_atomically

__all__ = ["Checkpoint", "CheckpointError", "key_of"]

_ASIDE = {"algorithm", "certify", "copy_x", "verbose", "verbose_interval"}  # change no bit of a fit


class CheckpointError(ValueError):
    """A checkpoint that cannot be read."""


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
    >>> from surefit.distributed import Checkpoint
    >>> kept = Checkpoint(tempfile.mkdtemp())
    >>> kept.load("means-1f")
    >>> kept.save("means-1f", {"step": np.array(3), "centres": np.eye(2)})
    >>> int(kept.load("means-1f")["step"])
    3
    """

    def __init__(self, folder: Any, group: Alone = ALONE) -> None:
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


def key_of(model: Any, data_id: str) -> str:
    """The key of a fit's state in a :class:`Checkpoint`: its class, its parameters and its data.

    Parameters are told apart by all their numbers, so that of two arrays of first centres each has its own
    state. A generator counts by its state, which a program that is started again makes anew.
    """
    import joblib

    chosen = {
        name: value.detach().cpu().numpy() if hasattr(value, "detach") else value
        for name, value in sorted(model.get_params(deep=False).items())
        if name not in _ASIDE
    }
    return f"{type(model).__name__}-{joblib.hash(chosen)}-{data_id}"
