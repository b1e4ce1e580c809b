"""A compiled function on torch's own threads.

Threads of OpenMP wait for work at full speed, a while after the last of it. A second pool beside torch's would
wait for its turn on the same cores; so kernels that run between torch's products run on the same threads. A
team costs about a microsecond. Where torch's pool is not GNU's the function runs on the caller's thread.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["run", "threads"]


def threads() -> int:
    """How many threads torch may use here."""
    import torch

    return torch.get_num_threads()


def run(function: Any, block: NDArray[np.int64]) -> None:
    """Call ``function(address of block)`` on every thread of a team, and wait for all.

    The function, of numba's ``cfunc``, takes parts from a counter in the block until there are none left, so
    that the number of threads changes nothing but the time.
    """
    team = _parallel()
    address = block.ctypes.data
    if team is None or threads() == 1:
        function.ctypes(address)
    else:
        team(function.address, address, threads(), 0)


@functools.cache
def _parallel() -> Any:
    """``GOMP_parallel(function, data, threads, flags)`` of the library that torch has loaded, or None."""
    import torch  # noqa: F401  (loads the library)
    from threadpoolctl import threadpool_info

    for library in threadpool_info():
        if library["user_api"] == "openmp" and library["prefix"] == "libgomp":
            found = getattr(ctypes.CDLL(library["filepath"]), "GOMP_parallel", None)
            if found is not None and "torch" in library["filepath"]:
                found.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
                found.restype = None
                return found
    return None
