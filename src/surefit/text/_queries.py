"""What fitted embeddings answer, as :class:`surefit.text.WordVectors` does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .vectors import WordVectors

__all__ = ["Queries"]


class Queries:
    """Mixin: an estimator with ``words_`` and ``vectors_`` answers what :class:`WordVectors` does.

    ``word_counts_`` and ``subwords_`` are used where it has them. Files of vectors are written by
    :meth:`save_vectors`; ``save`` writes the whole estimator.
    """

    words_: Any
    vectors_: Any

    @property
    def word_vectors(self) -> WordVectors:
        """The fitted vectors, made once for each fit."""
        check_is_fitted(self, "vectors_")
        parts = (
            self.words_,
            self.vectors_,
            getattr(self, "word_counts_", None),
            getattr(self, "subwords_", None),
        )
        held = self.__dict__.get("_queries")
        if held is None or not all(map(_same, parts, held[0])):
            words, vectors, counts, subwords = parts
            held = (parts, WordVectors(words, vectors, counts=counts, subwords=subwords))
            self.__dict__["_queries"] = held
        made: WordVectors = held[1]
        return made

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        if isinstance(state, dict):
            state = {name: value for name, value in state.items() if name != "_queries"}
        return state

    def __bool__(self) -> bool:
        return True  # whether it is fitted or not, as any estimator

    def __len__(self) -> int:
        return len(self.word_vectors)

    def __contains__(self, word: object) -> bool:
        return word in self.word_vectors

    def __iter__(self) -> Iterator[str]:
        return iter(self.word_vectors)

    def __getitem__(self, word: str) -> NDArray[Any]:
        return self.word_vectors[word]

    def vector(self, word: str) -> NDArray[Any]:
        """See :meth:`WordVectors.vector`."""
        return self.word_vectors.vector(word)

    def similarity(self, a: str, b: str) -> float:
        """See :meth:`WordVectors.similarity`."""
        return self.word_vectors.similarity(a, b)

    def most_similar(
        self, positive: Any, negative: Any = (), k: int = 10
    ) -> list[tuple[str, float]]:
        """See :meth:`WordVectors.most_similar`."""
        return self.word_vectors.most_similar(positive, negative, k)

    def analogy(self, a: str, b: str, c: str, k: int = 1) -> list[tuple[str, float]]:
        """See :meth:`WordVectors.analogy`."""
        return self.word_vectors.analogy(a, b, c, k)

    def nearest(self, matrix: Any, k: int = 10, *, restrict: int | None = None) -> tuple[Any, Any]:
        """See :meth:`WordVectors.nearest`."""
        return self.word_vectors.nearest(matrix, k, restrict=restrict)

    def evaluate(self, similarity: Any = None, analogies: Any = None, **options: Any) -> Any:
        """See :func:`surefit.text.evaluation.evaluate`."""
        return self.word_vectors.evaluate(similarity, analogies, **options)

    def save_vectors(self, path: Any, format: str = "word2vec") -> None:
        """See :meth:`WordVectors.save`."""
        self.word_vectors.save(path, format)

    def plot(self, words: Iterable[str] | None = None, k: int = 50, *, ax: Any = None) -> Any:
        """See :meth:`WordVectors.plot`."""
        return self.word_vectors.plot(words, k, ax=ax)


def _same(new: Any, old: Any) -> bool:
    """Whether both are one object, or views of the same numbers."""
    both = isinstance(new, np.ndarray) and isinstance(old, np.ndarray)
    return new is old or (both and new.__array_interface__ == old.__array_interface__)
