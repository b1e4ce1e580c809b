r"""Character n-grams of words and their hashes (Bojanowski et al., 2017), in plain Python.

A word is written between angle brackets, and its n-grams are the stretches of ``minn`` to ``maxn`` code
points of that: "<cat>" has ``<ca cat at>`` for n = 3. The brackets alone are not n-grams. The hash is that of
the fastText programme, so that files can be exchanged: FNV-1a in 32 bits,

.. math:: h \leftarrow (h \oplus b) \cdot 16777619 \bmod 2^{32}, \qquad h_0 = 2166136261,

over the UTF-8 bytes b, of which those from 0x80 on are sign-extended to 32 bits before the exclusive or (the
programme reads them as signed characters). The end of a sentence, ``</s>``, is a mark and has no n-grams.

Fits hash in compiled code (:mod:`surefit.text.subwords`); certificates use this file.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["END", "hash_ngrams", "ngrams"]

END = "</s>"


def ngrams(word: str, minn: int = 3, maxn: int = 6) -> list[str]:
    """The n-grams of "<word>", by beginning, then by length.

    Examples
    --------
    >>> ngrams("cat", 3, 4)
    ['<ca', '<cat', 'cat', 'cat>', 'at>']
    """
    marked = f"<{word}>"
    length = len(marked)
    return [
        marked[i : i + n]
        for i in range(length)
        for n in range(minn, min(maxn, length - i) + 1)
        if n > 1 or 0 < i < length - 1
    ]


def hash_ngrams(grams: Iterable[str]) -> NDArray[np.uint32]:
    """fastText's hash of each n-gram, before it is taken modulo the number of buckets.

    Examples
    --------
    >>> hash_ngrams(["cat", "é"]).tolist()
    [108289031, 1023043777]
    """
    found = []
    for gram in grams:
        value = 2166136261
        for byte in gram.encode():
            value = ((value ^ (byte | 0xFFFFFF00 if byte >= 0x80 else byte)) * 16777619) % (1 << 32)
        found.append(value)
    return np.array(found, dtype=np.uint32)
