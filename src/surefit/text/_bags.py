"""Texts as numbered words, and as bags: the features of each text, one after the other.

Words are split in parallel by a compiled kernel where :meth:`str.split` would do it, else by the given
tokenizer. A bag holds the numbers of the known words and the buckets of hashed n-grams.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._jit.words import bags, character_hashes, split_words, word_hashes
from .._threads import over_rows
from .corpus import Corpus, check_order, tokenized
from .vocabulary import Encoded

__all__ = ["Features", "Texts", "read_texts", "text_list"]

_CHUNK = 4096  # texts that a tokenizer works on at a time
_ERRORS = "surrogatepass"


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts as numbers into their distinct words: text t is ``ids[starts[t]:starts[t + 1]]``.

    ``source`` are the texts as they came. The fingerprint is that of the words' hashes, whatever the
    numbering.
    """

    source: list[Any]
    words: list[str]
    hashes: NDArray[np.int32]
    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def _hashed(self) -> Encoded:
        return Encoded(self.hashes[self.ids], self.starts)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ids) + len(self.starts), 1

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The hash of each word, then the starts."""
        return self._hashed().blocks()

    def take(self, rows: NDArray[np.int64]) -> Texts:
        """Some of the texts."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return Texts([self.source[i] for i in rows], self.words, self.hashes, self.ids[at], starts)


def text_list(X: Any) -> list[Any]:
    """The texts as a list; refuses one string, tables and what is not a sequence."""
    if isinstance(X, str | bytes):
        raise ValueError(
            f"X is one {type(X).__name__}: pass a list of texts, such as [X] for a single one."
        )
    if isinstance(X, Corpus):
        return list(X.texts())
    if hasattr(X, "to_list"):  # a column of a table
        X = X.to_list()
    check_order(X, "X")
    if not hasattr(X, "__iter__"):
        raise TypeError(f"X must be a list of texts or of lists of words, got {type(X).__name__}.")
    return X.tolist() if isinstance(X, np.ndarray) else list(X)


def read_texts(
    X: Any, tokenizer: Callable[[str], list[str]] | None = None, lowercase: bool = False
) -> Texts:
    """The texts of X, strings or lists of words, as numbers; of a corpus, whole ones.

    Examples
    --------
    >>> texts = read_texts(["a b a", "c a"])
    >>> texts.words, texts.ids.tolist(), texts.starts.tolist()
    (['a', 'b', 'c'], [0, 1, 0, 2, 0], [0, 3, 5])
    """
    first = X[0] if isinstance(X, list | tuple) and X else X
    if isinstance(first, os.PathLike) or callable(X):  # files and functions, as fits take them
        X = Corpus(X, tokenizer=tokenizer, lowercase=lowercase)
    rows = text_list(X)
    if tokenizer is None and set(map(type, rows)) <= {str}:
        return _split([row.lower() for row in rows] if lowercase else rows)
    return _tokenize(rows, tokenizer, lowercase)


def _split(rows: list[str]) -> Texts:
    """As :meth:`str.split`, stretch by stretch, each with its own numbering; then one for all."""

    def part(first: int, last: int) -> Any:
        mine = rows[first:last]
        lengths = np.fromiter(map(len, mine), np.int64, len(mine))
        joined = "".join(mine).encode("utf-8", _ERRORS)
        ids, starts, begins, ends, hashes = split_words(np.frombuffer(joined, np.uint8), lengths)
        pairs = zip(begins.tolist(), ends.tolist())
        return [joined[a:b].decode("utf-8", _ERRORS) for a, b in pairs], hashes, ids, starts

    parts = over_rows(len(rows), part, least=512)
    words, hashes, ids, starts = parts[0]
    if len(parts) == 1:
        return Texts(rows, words, hashes, ids, starts)
    known = dict(zip(words, count()))
    all_hashes, all_ids, all_starts = [hashes], [ids], [starts]
    for more, hashes, ids, starts in parts[1:]:
        before = len(known)
        numbers = np.fromiter((known.setdefault(w, len(known)) for w in more), np.int32, len(more))
        all_hashes.append(hashes[numbers >= before])
        all_ids.append(numbers[ids])
        all_starts.append(starts[1:] + all_starts[-1][-1])
    return Texts(
        rows,
        list(known),
        np.concatenate(all_hashes),
        np.concatenate(all_ids),
        np.concatenate(all_starts),
    )


def _tokenize(
    rows: list[Any], tokenizer: Callable[[str], list[str]] | None, lowercase: bool
) -> Texts:
    """With a tokenizer, or words that are split already."""
    known: dict[str, int] = defaultdict(count().__next__)
    ids, lengths = [np.empty(0, np.int32)], [0]
    for first in range(0, len(rows), _CHUNK):
        part = [
            _words(row, first + i, tokenizer, lowercase)
            for i, row in enumerate(rows[first : first + _CHUNK])
        ]
        sizes = list(map(len, part))
        lengths += sizes
        found = map(known.__getitem__, chain.from_iterable(part))
        ids.append(np.fromiter(found, np.int32, sum(sizes)))
    words = list(known)
    return Texts(
        rows, words, _hashes(words)[0], np.concatenate(ids), np.cumsum(np.array(lengths, np.int64))
    )


def _words(row: Any, number: int, tokenizer: Any, lowercase: bool) -> list[str]:
    if isinstance(row, str):
        row = row.lower() if lowercase else row
        words = row.split() if tokenizer is None else tokenized(tokenizer, row)
    elif isinstance(row, list | tuple | np.ndarray):
        words = [w.lower() if lowercase and isinstance(w, str) else w for w in row]
    else:
        raise TypeError(
            f"text {number} of X must be a string or a list of words, got {type(row).__name__}: decode "
            "bytes first, and leave out missing values."
        )
    if set(map(type, words)) <= {str}:
        return words
    if not _all_str(words):
        wrong = next(word for word in words if not isinstance(word, str))
        raise TypeError(f"text {number} of X holds {wrong!r}, which is not a string.")
    return list(map(str, words))


def _all_str(words: Any) -> bool:
    return all(isinstance(word, str) for word in words)


def _hashes(words: list[str]) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64]]:
    """The hashes of words, their bytes and where these start."""
    encoded = [word.encode("utf-8", _ERRORS) for word in words]
    starts = np.cumsum(np.fromiter(chain([0], map(len, encoded)), np.int64, len(words) + 1))
    text, out = np.frombuffer(b"".join(encoded), np.uint8), np.empty(len(words), np.int32)
    word_hashes(text, starts, out)
    return out, text, starts


@dataclass(frozen=True, eq=False)
class Features:
    """What the columns of a bag are: words, then buckets of n-grams that occur.

    Attributes
    ----------
    index : dict
        The number of each word.
    buckets : array of int32
        Those that have a column, ascending: the column is the number of words plus the place here.
    order : int
        Longest n-grams of words.
    chars : (int, int) or None
        Shortest and longest n-grams of characters.
    n_buckets : int
    """

    index: dict[str, int]
    buckets: NDArray[np.int32] | None
    order: int
    chars: tuple[int, int] | None
    n_buckets: int

    def encode(self, texts: Texts) -> tuple[Encoded, NDArray[np.int32]]:
        """The bags of texts, and the buckets that have a column; without ``buckets`` all that occur."""
        number = self.index.get
        numbers = np.fromiter((number(w, -1) for w in texts.words), np.int32, len(texts.words))
        sub_starts, subs = self._characters(texts.words)
        per_word = (numbers >= 0) + (np.diff(sub_starts) if len(sub_starts) > 1 else 0)
        sizes = np.concatenate([[0], np.cumsum(per_word[texts.ids])])[texts.starts]
        lengths = np.diff(texts.starts)
        sizes = np.diff(sizes) + sum(
            np.maximum(lengths - k + 1, 0) for k in range(2, self.order + 1)
        )
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        out = np.empty(starts[-1], np.int32)

        def part(first: int, last: int) -> None:
            bags(
                texts.ids, texts.starts, numbers, texts.hashes, sub_starts, subs, self.order,
                self.n_buckets, len(self.index), starts, out, first, last,
            )  # fmt: skip

        over_rows(len(texts), part, least=512)
        if self.order == 1 and self.chars is None:
            return Encoded(out, starts), np.empty(0, np.int32)
        return self._compact(out, starts)

    def _characters(self, words: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The buckets of each word's characters, and where they start."""
        nothing = np.empty(0, np.int32)
        if self.chars is None:
            return np.zeros(1, np.int64), nothing
        _, text, starts = _hashes([f"<{word}>" for word in words])
        out_starts = np.zeros(len(starts), np.int64)
        total = character_hashes(text, starts, *self.chars, self.n_buckets, out_starts, nothing)
        out = np.empty(total, np.int32)
        if total:
            character_hashes(text, starts, *self.chars, self.n_buckets, out_starts, out)
        return out_starts, out

    def _compact(
        self, ids: NDArray[np.int32], starts: NDArray[np.int64]
    ) -> tuple[Encoded, NDArray[np.int32]]:
        """Columns of buckets without gaps; a bucket without a column is left out."""
        n_words = len(self.index)
        used = self.buckets
        if used is None:
            seen = np.zeros(n_words + self.n_buckets, np.bool_)
            seen[ids] = True
            used = np.flatnonzero(seen[n_words:]).astype(np.int32)
        if 8 * len(ids) > self.n_buckets:  # a table pays
            table = np.full(n_words + self.n_buckets, -1, np.int32)
            table[:n_words] = np.arange(n_words, dtype=np.int32)
            table[n_words + used] = n_words + np.arange(len(used), dtype=np.int32)
            ids = table[ids]
        else:
            columns = np.concatenate([np.arange(n_words, dtype=np.int32), n_words + used])
            at = np.searchsorted(columns, ids)
            ids = np.where(columns[np.minimum(at, len(columns) - 1)] == ids, at, -1).astype(
                np.int32
            )
        if self.buckets is not None and (ids < 0).any():
            before = np.concatenate([[0], np.cumsum(ids >= 0)])
            ids, starts = ids[ids >= 0], before[starts]
        return Encoded(ids, starts), used
