r"""Questions to word vectors: neighbours, similarities, analogies, files.

The similarity of two words is the cosine of the angle between their vectors, 0 where one of them is zero.
``a`` is to ``b`` as ``c`` is to the word whose vector is nearest to the sum of unit vectors

.. math:: \hat v_b - \hat v_a + \hat v_c

(3CosAdd; Mikolov, Yih and Zweig, 2013), the words of the question left out.

Neighbours are searched in blocks. A product of matrices in float32 gives scores that are off by at most
:math:`(d + 2) 2^{-23}` for unit vectors of d numbers. All words within twice that of the k-th score are
scored again, the products summed in float64 and the sum rounded to float32, and ordered by score, then by
number: the answer does not depend on blocks, threads or the matrix library.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .formats import read_vectors, write_vectors

__all__ = ["WordVectors"]

_BLOCK = 1 << 24  # scores held at a time: 64 MiB
_GATHER = 1 << 22  # numbers gathered at a time
_NEAR = 50_000  # words among which one is looked for that is spelt alike


class WordVectors:
    """Words and their vectors.

    Parameters
    ----------
    words : sequence of str
        Most frequent first, where that matters (``restrict`` of evaluations, ``plot``).
    vectors : array-like of shape (n, d)
        Finite; a zero vector is similar to nothing. It must not be changed afterwards.
    counts : array-like of shape (n,), optional
    subwords : object with a method ``vector(word)``, optional
        The vector of a word that is not in the vocabulary, or None; for instance a
        :class:`~surefit.text.subwords.SubwordVectors`.

    Examples
    --------
    >>> words = WordVectors(["man", "woman", "king", "queen"], [[1, 0], [1, 1], [5, 0], [5, 5]])
    >>> [word for word, _ in words.most_similar("queen", k=2)]
    ['woman', 'man']
    >>> words.analogy("man", "woman", "king")[0][0]
    'queen'
    >>> words["kings"]
    Traceback (most recent call last):
    ...
    KeyError: "'kings' is not one of 4 words. Did you mean 'king'? Ask `word in vectors` first, ..."
    """

    def __init__(
        self, words: Sequence[str], vectors: Any, *, counts: Any = None, subwords: Any = None
    ) -> None:
        self.words = [*words]
        for place, word in enumerate(self.words):
            if not isinstance(word, str):
                raise TypeError(f"words[{place}] is {word!r}, which is not a string.")
        self.words = [str(word) for word in self.words]  # numpy's strings print in another way
        self.index = dict(zip(self.words, range(len(self.words)), strict=True))
        if len(self.index) < len(self.words):
            twice = next(word for k, word in enumerate(self.words) if self.index[word] != k)
            raise ValueError(f"words holds {twice!r} more than once: leave the others out.")
        self.vectors: NDArray[Any] = _floats(vectors, "vectors")
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words) or not self.vectors.size:
            raise ValueError(
                f"vectors must hold one row for each of {len(self.words)} words, and at least one number, "
                f"got shape {self.vectors.shape}."
            )
        self.counts = None if counts is None else _counts(counts, len(self.words))
        if subwords is not None and not callable(getattr(subwords, "vector", None)):
            raise TypeError(
                f"subwords must have a method vector(word), got {type(subwords).__name__}."
            )
        self.subwords = subwords
        self.units = np.empty(self.vectors.shape, dtype=np.float32)
        step = max(1, _GATHER // self.vectors.shape[1])
        for first in range(0, len(self), step):
            block = self.vectors[first : first + step]
            bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
            if len(bad):
                raise ValueError(
                    f"the vector of {self.words[first + bad[0]]!r} holds nan or infinity: leave the word "
                    "out, or fit again with a smaller step."
                )
            self.units[first : first + step] = _unit(block)

    def __repr__(self) -> str:
        return f"WordVectors({len(self)} words, {self.vectors.shape[1]} numbers each)"

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.index

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __getitem__(self, word: str) -> NDArray[Any]:
        return self.vector(word)

    def vector(self, word: str) -> NDArray[Any]:
        """The vector of a word; from its subwords where it is not in the vocabulary.

        Raises
        ------
        KeyError
            Names the word, and words that are spelt alike.
        """
        found = self.get(word)
        if found is None:
            raise KeyError(self._unknown(word))
        return found

    def get(self, word: str) -> NDArray[Any] | None:
        """The same, or None. It cannot be written to: a row that changed would have another unit vector."""
        if not isinstance(word, str):
            raise TypeError(f"word must be a string, got {word!r}.")
        place = self.index.get(word)
        if place is None:
            found = None if self.subwords is None else self.subwords.vector(word)
            return None if found is None else np.asarray(found)
        row = self.vectors[place]
        row.flags.writeable = False
        return row

    def _unknown(self, word: str) -> str:
        short = word if len(word) <= 60 else word[:57] + "..."
        near = difflib.get_close_matches(short, self.words[:_NEAR], cutoff=0.75)
        listed = " or ".join(map(repr, near))
        guess = f" Did you mean {listed}?" if near else ""
        lower = word.lower()
        if lower != word and lower in self.index:
            guess = f" The words may be in lower case: {lower!r} is there."
        remedy = (
            "vectors with subwords know every word"
            if self.subwords is None
            else "it has no n-grams either"
        )
        return (
            f"{short!r} is not one of {len(self)} words.{guess} Ask `word in vectors` first, or lower "
            f"min_count and fit again; {remedy}."
        )

    def similarity(self, a: str, b: str) -> float:
        """The cosine between two words; 0 where a vector is zero."""
        pair = _unit(np.array([self.vector(a), self.vector(b)]))
        return float(np.clip(pair[0] @ pair[1], -1.0, 1.0))

    def most_similar(
        self, positive: Any, negative: Any = (), k: int = 10
    ) -> list[tuple[str, float]]:
        """The k words nearest to the mean of unit vectors, those of ``negative`` with a minus.

        Parameters
        ----------
        positive, negative : str, array of shape (d,), or list of these
            Words are left out of the answer.
        k : int, default=10

        Returns
        -------
        list of (word, cosine), nearest first
        """
        with_sign = [(item, 1.0) for item in _listed(positive)]
        with_sign += [(item, -1.0) for item in _listed(negative)]
        if not with_sign:
            raise ValueError("positive and negative are empty: name a word.")
        rows = [self.vector(item) if isinstance(item, str) else item for item, _ in with_sign]
        query = np.zeros(self.vectors.shape[1])
        for row, (_, sign) in zip(rows, with_sign, strict=True):
            query += sign * _unit(self._one(row))[0]
        if not np.abs(query).max() > len(rows) * 2.0**-50:  # what rounding leaves of a - a
            names = ", ".join(
                item if isinstance(item, str) else "a vector" for item, _ in with_sign
            )
            raise ValueError(f"the mean over {names} is zero: nothing is nearest to it.")
        mine = {self.index.get(item, -1) for item, _ in with_sign if isinstance(item, str)}
        wanted = min(_whole(k, "k") + len(mine), len(self))
        places, scores = self.nearest(query[None, :], wanted)
        pairs = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return [(self.words[place], score) for place, score in pairs if place not in mine][:k]

    def analogy(self, a: str, b: str, c: str, k: int = 1) -> list[tuple[str, float]]:
        """The words that are to ``c`` as ``b`` is to ``a``, best first."""
        return self.most_similar([b, c], [a], k)

    def nearest(
        self, matrix: Any, k: int = 10, *, restrict: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """For each row of a matrix the numbers of the k nearest words, and their cosines.

        Parameters
        ----------
        matrix : array-like of shape (m, d)
        k : int, default=10
        restrict : int, optional
            Search the first so many words only.

        Returns
        -------
        places : array of shape (m, k)
            Highest score first; of equal scores, the word that comes first.
        scores : array of shape (m, k), float32
        """
        queries = _floats(matrix, "matrix")
        if queries.ndim != 2 or queries.shape[1] != self.vectors.shape[1]:
            raise ValueError(
                f"matrix must have rows of {self.vectors.shape[1]} numbers, got shape {queries.shape}."
            )
        if not np.isfinite(queries).all():
            raise ValueError("matrix holds nan or infinity.")
        units = self.units[: len(self) if restrict is None else _whole(restrict, "restrict")]
        if _whole(k, "k") > len(units):
            raise ValueError(f"k={k} is more than the {len(units)} words that are searched.")
        places = np.empty((len(queries), k), dtype=np.int64)
        scores = np.empty((len(queries), k), dtype=np.float32)
        step = max(1, _BLOCK // len(units))
        for first in range(0, len(queries), step):
            rows = slice(first, min(first + step, len(queries)))
            places[rows], scores[rows] = _nearest(units, _unit(queries[rows]).astype(np.float32), k)
        return places, scores

    def evaluate(self, similarity: Any = None, analogies: Any = None, **options: Any) -> Any:
        """Agreement with people's judgements; see :func:`surefit.text.evaluation.evaluate`."""
        from .evaluation import evaluate

        return evaluate(self, similarity=similarity, analogies=analogies, **options)

    def save(self, path: Any, format: str = "word2vec") -> None:
        """Write the vectors as float32; see :func:`surefit.text.formats.write_vectors`.

        Parameters
        ----------
        path : path
            Packed where it ends in ``.gz``.
        format : {"word2vec", "word2vec-binary", "fasttext"}
            "fasttext" keeps counts and subwords.
        """
        extra = {"counts": self.counts, "subwords": self.subwords} if format == "fasttext" else {}
        write_vectors(path, self.words, self.vectors, format=format, **extra)

    @classmethod
    def load(cls, path: Any, format: str | None = None, **options: Any) -> WordVectors:
        """Read vectors; ``options`` are those of :func:`surefit.text.formats.read_vectors`."""
        found = read_vectors(path, format, **options)
        return cls(found.words, found.vectors, counts=found.counts, subwords=found.subwords)

    def plot(self, words: Iterable[str] | None = None, k: int = 50, *, ax: Any = None) -> Any:
        """Words in the plane of the two main directions of their unit vectors (PCA).

        Parameters
        ----------
        words : iterable of str, optional
            By default the first ``k``.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from ._plane import plot_words

        names = self.words[: _whole(k, "k")] if words is None else _listed(words)
        if len(names) < 2:
            raise ValueError(f"words must name two or more, got {names!r}.")
        return plot_words(names, _unit(np.array([self.vector(name) for name in names])), ax)

    def _one(self, row: Any) -> NDArray[Any]:
        found = _floats(row, "a vector of positive or negative")
        if found.shape != (self.vectors.shape[1],) or not np.isfinite(found).all():
            raise ValueError(
                f"positive and negative take words and vectors of {self.vectors.shape[1]} finite numbers, "
                f"got an array of shape {found.shape}."
            )
        return found[None, :]


def _nearest(units: Any, queries: Any, k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The exact order of the best k, by (score, number)."""
    rough = queries @ units.T
    n, d = units.shape
    least = np.partition(rough, n - k, axis=1)[:, n - k]
    margin = np.float32(2 * (d + 2) * 2.0**-23)
    rows, columns = np.nonzero(rough >= (least - margin)[:, None])
    scores = np.empty(len(rows), dtype=np.float32)
    step = max(1, _GATHER // d)
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        left, right = queries[rows[part]], units[columns[part]]
        scores[part] = np.einsum("ij,ij->i", left, right, dtype=np.float64)
    np.clip(scores, -1.0, 1.0, out=scores)
    order = np.lexsort((columns, -scores, rows))
    starts = np.searchsorted(rows, np.arange(len(queries)))
    best = order[starts[:, None] + np.arange(k)]
    return columns[best], scores[best]


def _unit(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Rows of length 1 in float64, zeros kept; no square over- or underflows."""
    found = rows.astype(np.float64)
    scale = np.abs(found).max(axis=1, keepdims=True)
    found /= np.where(scale > 0.0, scale, 1.0)
    length = np.sqrt(np.einsum("ij,ij->i", found, found))[:, None]
    found /= np.where(length > 0.0, length, 1.0)
    return found


def _floats(values: Any, name: str) -> NDArray[Any]:
    found = np.asarray(values)
    if found.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold numbers, got dtype {found.dtype}.")
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)


def _counts(values: Any, n: int) -> NDArray[np.int64]:
    given = np.asarray(values)
    if given.shape != (n,):
        raise ValueError(
            f"counts must be one number for each of {n} words, got shape {given.shape}."
        )
    if given.dtype.kind not in "iuf" or not ((given >= 0) & (given < 2.0**63)).all():
        raise ValueError(
            "counts must be whole numbers of 0 or more, and some are not: count again."
        )
    found = given.astype(np.int64)
    if (found != given).any():
        raise ValueError(f"counts holds {given[found != given][0]}, which is no whole number.")
    return found


def _listed(items: Any) -> list[Any]:
    """One word or one vector is a list of one."""
    if isinstance(items, str) or (isinstance(items, np.ndarray) and items.ndim == 1):
        if isinstance(items, np.ndarray) and items.dtype.kind in "UOT":
            return [str(item) for item in items]
        return [items]
    if not isinstance(items, Iterable):
        raise TypeError(f"a word, a vector or a list of these is needed, got {items!r}.")
    return list(items)


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer of 1 or more, got {value!r}.")
    return int(value)
