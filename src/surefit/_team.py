"""A compiled function on torch's own threads.

Threads of OpenMP wait for work at full speed, a while after the last of it. A second pool beside torch's
would wait for its turn on the same cores; so kernels that run between torch's products run on the same
threads. A team costs about a microsecond. Where torch's pool is not GNU's the caller's thread does it all.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["run", "threads"]


def threads() -> int:
    """How many threads torch may use here."""
    import torch

    return torch.get_num_threads()


def run(function: Any, head: int, parts: int, words: Sequence[int]) -> None:
    """Call ``function(address of a block)`` on every thread of a team, and wait for all.

    The block: the addresses of a function that says which thread asks and of one that waits for the other
    threads, 0 where there is one thread; the number of threads; the number of parts; the ``words``, up to
    ``head`` in all; and a word for each part, 0. The function, of numba's ``cfunc``, claims parts until there
    are none left, so that the number of threads changes nothing but the time.
    """
    block = np.zeros(head + parts, np.int64)
    team, count, address = _parallel(), threads(), block.ctypes.data
    if team is None or count == 1:
        block[2 : 4 + len(words)] = (count, parts, *words)
        function.ctypes(address)
    else:
        block[: 4 + len(words)] = (team.who, team.wait, count, parts, *words)
        team(function.address, address, count, 0)


@functools.cache
def _parallel() -> Any:
    """``GOMP_parallel(function, data, threads, flags)`` of the library that torch has loaded, or None.

    Its ``who`` and ``wait`` are the addresses of ``omp_get_thread_num`` and ``GOMP_barrier``.
    """
    import torch  # noqa: F401  (loads the library)
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        if library["user_api"] == "openmp" and library["prefix"] == "libgomp":
            loaded = ctypes.CDLL(library["filepath"])
            found = getattr(loaded, "GOMP_parallel", None)
            if found is not None and "torch" in library["filepath"]:
                found.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
                found.restype = None
                for name, symbol in (("who", "omp_get_thread_num"), ("wait", "GOMP_barrier")):
                    setattr(
                        found, name, ctypes.cast(getattr(loaded, symbol), ctypes.c_void_p).value
                    )
                return found
    return None
