"""Compressed rows without duplicate entries: a copy only where there are some."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["distinct_entries"]


def distinct_entries(matrix: Any) -> Any:
    """A CSR array with the entries of ``matrix``, those of one place added up, in any order within a row.

    Sorting a large matrix costs as much as several passes over it, and is not needed to know that no entry
    comes twice.
    """
    csr = sp.csr_array(matrix)
    if csr.has_canonical_format:
        return csr
    from ._jit.csr import has_duplicates

    indptr = np.ascontiguousarray(csr.indptr, dtype=np.int64)
    if has_duplicates(np.ascontiguousarray(csr.indices), indptr, csr.shape[1]):
        csr = csr.copy()
        csr.sum_duplicates()
    return csr
