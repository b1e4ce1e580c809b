"""The words of a corpus, most frequent first, and the corpus as numbers.

Words that occur fewer than ``min_count`` times are left out, and beyond ``max_size`` words the rarest; ties
go by the alphabet, so that the numbering is a function of the counts. Counting holds each distinct word once;
an encoded corpus takes four bytes a word, in a file that is mapped into memory beyond ``memory`` bytes.
"""

from __future__ import annotations

import tempfile
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .corpus import Corpus

__all__ = ["Encoded", "Vocabulary"]

_BLOCK = 1 << 20


class _Numbers(dict[str, int]):
    """The number of a word, -1 of others: looked up without a test in Python."""

    def __missing__(self, word: str) -> int:
        return -1


@dataclass(frozen=True, eq=False)
class Encoded:
    """Segments of known words: those of segment s are ``ids[starts[s]:starts[s + 1]]``.

    It carries a shape and blocks, so that :func:`surefit.fingerprint.fingerprint` takes it as it takes
    rows on disk.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.ids) + len(self.starts), 1

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The numbers, then the starts, as columns of floats."""
        first = 0
        for part in (self.ids, self.starts):
            for begin in range(0, len(part), _BLOCK):
                block = np.asarray(part[begin : begin + _BLOCK], dtype=np.float64)[:, None]
                yield slice(first, first + len(block)), block
                first += len(block)


class Vocabulary:
    """Words with their numbers and counts.

    Attributes
    ----------
    words : list of str
        Most frequent first.
    counts : array of int64
    n_words : int
        All words that were counted, those left out included.

    Examples
    --------
    >>> found = Vocabulary.of(Corpus(["a b a c", "b a"]), min_count=2)
    >>> found.words, found.counts.tolist(), found.n_words
    (['a', 'b'], [3, 2], 6)
    >>> found.encode(Corpus(["b x a"])).ids.tolist()
    [1, 0]
    """

    def __init__(self, words: Sequence[str], counts: Any, n_words: int | None = None) -> None:
        self.words = list(words)
        self.counts: NDArray[np.int64] = np.asarray(counts, dtype=np.int64)
        self.n_words = int(self.counts.sum()) if n_words is None else int(n_words)
        self.index: dict[str, int] = _Numbers(zip(self.words, range(len(self.words)), strict=True))

    @classmethod
    def of(cls, corpus: Corpus, *, min_count: int = 5, max_size: int | None = None) -> Vocabulary:
        """Count the words of a corpus: one pass."""
        for name, value in (("min_count", min_count), ("max_size", max_size)):
            if value is None and name == "max_size":
                continue
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be an integer of 1 or more, got {value!r}.")
        counter: Counter[str] = Counter()
        for words in corpus:
            counter.update(_listed(words))
        if not counter:
            raise ValueError("the corpus is empty: it holds no word. Is it the right file?")
        kept = [(word, count) for word, count in counter.items() if count >= min_count]
        if not kept:
            word, count = max(counter.items(), key=lambda pair: pair[1])
            raise ValueError(
                f"min_count={min_count} leaves no word: the most frequent of {len(counter)}, {word!r}, "
                f"occurs {count} time(s). Lower min_count."
            )
        kept.sort(key=lambda pair: (-pair[1], pair[0]))
        kept = kept[:max_size]
        return cls([word for word, _ in kept], [count for _, count in kept], counter.total())

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def encode(self, corpus: Iterable[list[str]], *, memory: int = 1 << 31) -> Encoded:
        """The corpus as numbers, unknown words left out; in a mapped file beyond ``memory`` bytes."""
        look, file = self.index.__getitem__, None
        held, starts = array("i"), array("q", [0])  # they grow in place, whatever segments are like
        for words in corpus:
            ids = np.fromiter(map(look, _listed(words)), np.int32, len(words))
            ids = ids[ids >= 0]
            held.frombytes(ids.tobytes())
            starts.append(starts[-1] + len(ids))
            if len(held) * held.itemsize > memory:
                file = file or tempfile.TemporaryFile()  # noqa: SIM115
                held.tofile(file)
                held = array("i")
        ends = np.frombuffer(starts, dtype=np.int64)
        if file is None:
            return Encoded(np.frombuffer(held, dtype=np.int32), ends)
        held.tofile(file)
        file.flush()
        found = np.memmap(file, dtype=np.int32, mode="r", shape=(starts[-1],))
        file.close()  # the map has its own handle
        return Encoded(found, ends)


def _listed(words: Any) -> Any:
    """Words; not a string, whose letters would be counted."""
    if isinstance(words, str):
        raise TypeError(
            f"a corpus gives lists of words, got the string {words[:40]!r}: use Corpus."
        )
    return words
