"""What estimators of word vectors share: reading a corpus, vectors of texts, questions about words."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..base import Certified
from ..nn.progress import clock
from ._bags import read_texts
from ._queries import Queries
from .corpus import as_corpus
from .subwords import Subwords
from .vocabulary import Encoded, Vocabulary

__all__ = [
    "Embedding", "Pace", "SeenSubwords", "invalid_held_out", "invalid_words", "split_segments", "two_parts",
]  # fmt: skip


class Embedding(Queries, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Certified):
    """A fit that leaves ``words_`` with ``word_counts_`` and ``vectors_``, and turns texts into vectors."""

    paradigm = "unsupervised"
    _given_again: ClassVar[frozenset[str]] = frozenset({"tokenizer"})
    min_count: int
    max_size: int | None
    tokenizer: Callable[[str], list[str]] | None
    lowercase: bool
    words_: list[str]
    word_counts_: NDArray[np.int64]
    n_words_: int
    vectors_: NDArray[Any]

    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.words_, self.word_counts_, self.n_words_)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        """The corpus as numbers; at a fit its words are counted first."""
        if sample_weight is not None:
            raise ValueError(f"{type(self).__name__} takes no sample_weight: repeat texts instead.")
        corpus = as_corpus(X, tokenizer=self.tokenizer, lowercase=self.lowercase)
        if reset:
            for name in ("certificate_", "vectors_"):  # of a fit before this one
                self.__dict__.pop(name, None)
            found = Vocabulary.of(corpus, min_count=self.min_count, max_size=self.max_size)
            self.words_, self.word_counts_, self.n_words_ = found.words, found.counts, found.n_words
        return self._vocabulary().encode(corpus), None, None

    def transform(self, X: Any) -> NDArray[Any]:
        """The mean of the vectors of each text's known words; zeros where there are none.

        Parameters
        ----------
        X : Corpus, path, or iterable of str or of lists of words
            Of files each line is a text.

        Returns
        -------
        array of shape (n_texts, n_components)
        """
        check_is_fitted(self, "vectors_")
        texts = read_texts(X, self.tokenizer, self.lowercase)
        number = self._vocabulary().index.__getitem__
        ids = np.fromiter(map(number, texts.words), np.int32, len(texts.words))[texts.ids]
        known = ids >= 0
        starts = np.concatenate([[0], np.cumsum(known)])[texts.starts]
        shape = (len(texts), len(self.words_))
        bags = sp.csr_array(
            (np.ones(known.sum(), self.vectors_.dtype), ids[known], starts), shape=shape
        )
        bags.sum_duplicates()  # by number: the order of the words does not matter
        mean: NDArray[Any] = bags @ self.vectors_
        return mean / np.maximum(np.diff(starts), 1).astype(mean.dtype)[:, None]

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from invalid_words(self)

    @property
    def _n_features_out(self) -> int:
        return int(self.vectors_.shape[1])

    def _remedy(self) -> str:
        return "Train longer (max_iter), on more text, or with another learning_rate."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = True
        return tags


class Pace:
    """Lines on standard error: how far a fit has come, how fast, and the time left."""

    def __init__(self, verbose: int, total: int, unit: str) -> None:
        self.verbose, self.total, self.unit = int(verbose), total, unit
        self.begun = self.said = time.perf_counter()

    def at(self, done: int) -> None:
        """So many units are done."""
        now = time.perf_counter()
        if not self.verbose or (now - self.said < 2.0 and done < self.total and self.verbose < 2):
            return
        self.said = now
        rate = done / max(now - self.begun, 1e-9)
        left = clock((self.total - done) / max(rate, 1e-9))
        text = f"{done / max(self.total, 1):4.0%}, {rate:,.0f} {self.unit}/s, {left} left"
        print(text, file=sys.stderr, flush=True)


def invalid_words(model: Any) -> Iterator[str]:
    """What is wrong with the words of a fitted model and their counts."""
    words, counts = model.words_, np.asarray(model.word_counts_)
    if not all(isinstance(word, str) for word in words) or len(set(words)) != len(words):
        yield "words_ are not distinct strings"
    if counts.shape != (len(words),) or counts.dtype.kind != "i" or (counts < 0).any():
        yield f"word_counts_ are not {len(words)} counts"
    total = vars(model).get("n_words_")
    if total is not None and (not isinstance(total, Integral) or total < counts.sum()):
        yield f"n_words_ is {total!r}, and the words occur {counts.sum()} times"


def invalid_held_out(model: Any) -> Iterator[str]:
    """What is wrong with the numbers of held-out texts."""
    held, asked = model.validation_indices_, model.validation_fraction > 0
    if (held is not None) != asked:
        there = "there are none" if held is None else f"there are {np.size(held)}"
        yield f"validation_fraction is {model.validation_fraction:g}, and of held-out texts {there}"
    if held is None:
        return
    held = np.asarray(held)
    if (
        held.ndim != 1
        or held.dtype.kind != "i"
        or (held[:1] < 0).any()
        or (np.diff(held) < 1).any()
    ):
        yield "validation_indices_ are not ascending numbers of texts"


def two_parts(n: int, held: NDArray[np.int64] | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """The numbers of the texts that are fitted on, and of those held out.

    Of other data with fewer texts these are the ones that are there: its claims fail, with a number.
    """
    away = np.empty(0, np.int64) if held is None else held[held < n]
    return np.setdiff1d(np.arange(n), away, assume_unique=True), away


def split_segments(data: Encoded, chosen: NDArray[np.int64]) -> tuple[Encoded, Encoded]:
    """The segments that were not chosen, and those that were."""
    sizes = np.diff(data.starts)
    mark = np.zeros(len(sizes), np.bool_)
    mark[chosen] = True
    inside = np.repeat(mark, sizes)
    return tuple(  # type: ignore[return-value]
        Encoded(np.asarray(data.ids[which]), np.concatenate([[0], np.cumsum(sizes[segments])]))
        for which, segments in ((~inside, ~mark), (inside, mark))
    )


class SeenSubwords:
    """Vectors of unknown words from n-grams that occurred in the fit, of which alone rows are kept.

    ``matrix`` has a row for each bucket, zeros for the others, as files of fastText want it.
    """

    def __init__(self, subwords: Subwords, buckets: NDArray[np.int64], rows: NDArray[Any]) -> None:
        self.subwords, self.buckets, self.rows = subwords, buckets, rows

    @property
    def matrix(self) -> NDArray[Any]:
        found = np.zeros((self.subwords.n_buckets, self.rows.shape[1]), self.rows.dtype)
        found[self.buckets] = self.rows
        return found

    def vector(self, word: str) -> NDArray[Any] | None:
        """The mean over the n-grams that are known; None where none is."""
        _, asked = self.subwords.table([word])
        if not len(self.buckets):
            return None
        at = np.minimum(np.searchsorted(self.buckets, asked), len(self.buckets) - 1)
        at = at[self.buckets[at] == asked]
        if not len(at):
            return None
        mean: NDArray[Any] = self.rows[at].mean(axis=0, dtype=np.float64)
        return mean.astype(self.rows.dtype)
