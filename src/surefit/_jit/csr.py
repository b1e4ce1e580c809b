"""Questions about compressed rows that are answered in one reading.

A closed file: every jitted function called here lives here.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, int32, int64, njit, types

__all__ = ["has_duplicates"]

_INDICES = [types.Array(kind, 1, "C", readonly=True) for kind in (int32, int64)]


@njit([boolean(kind, _INDICES[1], int64) for kind in _INDICES], cache=True, nogil=True)
def has_duplicates(indices, indptr, columns):
    """Whether a row names a column twice; the entries of a row may be in any order."""
    last = np.full(columns, -1, dtype=np.int64)  # the last row in which the column was met
    for i in range(len(indptr) - 1):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if last[j] == i:
                return True
            last[j] = i
    return False
