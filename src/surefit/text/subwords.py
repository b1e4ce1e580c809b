"""Character n-grams of words, hashed into buckets (Bojanowski, Grave, Joulin and Mikolov, 2017).

An n-gram (:mod:`surefit.text.ngrams`) has no row of its own but that of the bucket its hash falls into. The
vector of a word is the mean over its own row, where it has one, and those of its n-grams, so that a word
never seen has a vector too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._threads import over_rows
from .ngrams import END

__all__ = ["SubwordVectors", "Subwords"]

_BLOCK = 1 << 22  # numbers gathered at a time


class Subwords:
    """Which buckets the n-grams of words fall into.

    Parameters
    ----------
    minn, maxn : int, default=3, 6
        Code points of the shortest and of the longest n-gram; ``maxn=0`` for no n-grams.
    n_buckets : int, default=2_000_000

    Examples
    --------
    >>> indptr, indices = Subwords(3, 4, n_buckets=100).table(["cat", "at", "</s>"])
    >>> indptr.tolist(), indices.tolist()
    ([0, 5, 8, 8], [...])
    """

    def __init__(self, minn: int = 3, maxn: int = 6, n_buckets: int = 2_000_000) -> None:
        for name, value in (("minn", minn), ("maxn", maxn), ("n_buckets", n_buckets)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise ValueError(f"{name} must be an integer of 0 or more, got {value!r}.")
        if maxn > 0 and not 1 <= minn <= maxn:
            raise ValueError(
                f"minn must lie between 1 and maxn={maxn}, got {minn}; maxn=0 for no n-grams."
            )
        if maxn > 0 and not 1 <= n_buckets < 1 << 31:
            raise ValueError(f"n_buckets must lie between 1 and 2^31 - 1, got {n_buckets}.")
        self.minn, self.maxn, self.n_buckets = int(minn), int(maxn), int(n_buckets)

    def __repr__(self) -> str:
        return f"Subwords(minn={self.minn}, maxn={self.maxn}, n_buckets={self.n_buckets})"

    def table(self, words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """``(indptr, indices)``: the buckets of word w are ``indices[indptr[w]:indptr[w + 1]]``.

        A bucket is named once for each n-gram that falls into it.
        """
        from .._jit.subwords import count_ngrams, fill_ngrams

        indptr = np.zeros(len(words) + 1, dtype=np.int64)
        if self.maxn == 0 or not words:
            return indptr, np.empty(0, dtype=np.int64)
        encoded = [b"" if word == END else _bytes(word) for word in words]
        starts = np.zeros(len(words) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=starts[1:])
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)

        def count(first: int, last: int) -> None:
            count_ngrams(text, starts[first : last + 1], self.minn, self.maxn, counts[first:last])

        def fill(first: int, last: int) -> None:
            part = starts[first : last + 1]
            fill_ngrams(
                text, part, self.minn, self.maxn, self.n_buckets, indptr[first:last], indices
            )

        counts = np.zeros(len(words), dtype=np.int64)
        over_rows(len(words), count)
        np.cumsum(counts, out=indptr[1:])
        indices = np.empty(indptr[-1], dtype=np.int64)
        over_rows(len(words), fill)
        return indptr, indices


class SubwordVectors:
    """Vectors of buckets, and of any word as the mean over its n-grams.

    Parameters
    ----------
    subwords : Subwords
    matrix : array of shape (n_buckets, d)

    Examples
    --------
    >>> parts = SubwordVectors(Subwords(3, 3, n_buckets=4), np.eye(4))
    >>> parts.vector("cat").sum().item()
    1.0
    >>> parts.vector("</s>") is None
    True
    """

    def __init__(self, subwords: Subwords, matrix: Any) -> None:
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or len(matrix) != subwords.n_buckets or matrix.dtype.kind != "f":
            raise ValueError(
                f"matrix must hold one row of floats for each of {subwords.n_buckets} buckets, got "
                f"{matrix.dtype} of shape {matrix.shape}."
            )
        self.subwords, self.matrix = subwords, matrix

    def vector(self, word: str) -> NDArray[Any] | None:
        """The mean over the n-grams of the word; None where it has none."""
        _, buckets = self.subwords.table([word])
        if not len(buckets):
            return None
        mean: NDArray[Any] = self.matrix[buckets].mean(axis=0, dtype=np.float64)
        return mean.astype(self.matrix.dtype)

    def sums(self, words: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """For each word the sum of the rows of its n-grams, and how many these are."""
        indptr, indices = self.subwords.table(words)
        counts = np.diff(indptr)
        total = np.zeros((len(words), self.matrix.shape[1]))
        first = 0
        most = max(1, _BLOCK // max(1, self.matrix.shape[1]))
        while first < len(words):
            last = int(np.searchsorted(indptr, indptr[first] + most, "right")) - 1
            last = min(max(last, first + 1), len(words))
            rows = self.matrix[indices[indptr[first] : indptr[last]]].astype(np.float64)
            some = first + np.flatnonzero(counts[first:last])
            if len(some):
                total[some] = np.add.reduceat(rows, indptr[some] - indptr[first], axis=0)
            first = last
        return total, counts

    def compose(self, words: Sequence[str], own: NDArray[Any]) -> NDArray[np.float32]:
        """Vectors of words: the mean over a word's own row and those of its n-grams."""
        total, counts = self.sums(words)
        total += own
        total /= (counts + 1.0)[:, None]
        return total.astype(np.float32)

    def decompose(self, words: Sequence[str], vectors: NDArray[Any]) -> NDArray[np.float32]:
        """The words' own rows: what :meth:`compose` turns into these vectors."""
        total, counts = self.sums(words)
        own = np.asarray(vectors, dtype=np.float64) * (counts + 1.0)[:, None] - total
        return own.astype(np.float32)


def _bytes(word: str) -> bytes:
    try:
        return f"<{word}>".encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the word {word!r} has no UTF-8 form: {error.reason}.") from error
