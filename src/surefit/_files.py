"""Writing a file so that a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable
from typing import Any

__all__ = ["write_atomically"]


def write_atomically(target: str, buffers: Iterable[Any]) -> None:
    """Write beside the target, sync, rename: readers see the old file or the new one."""
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".surefit-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for buffer in buffers:
                file.write(buffer)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # make the rename last; not every system can
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
