r"""Which words stand together, and how often (TXT-2).

n_ij is the number of contexts that hold both word i and word j. A context is one of two things.

- A *window*: n_ij is the number of pairs of places (p, q) with word i at p, word j at q and 0 < |p - q| <=
  window, each pair counted with 1 or with 1/|p - q|. ``symmetric=False`` counts j after i only: 0 < q - p.
  Places are counted among the known words; a window ends where its segment does.
- A *sentence, paragraph or document*: n_ij is the number of those that hold both. n_ii is the number that
  hold word i at least twice: it takes two to occur together, as it does in a window.

A row of the matrix depends on the places of its word alone. So rows are counted one at a time, in integers,
and written once (:mod:`surefit.text._pair_counts`): the memory is that of the corpus, of the places of some
words, and of one row. Where places and rows pass ``memory_limit``, fewer words are worked on at a time, with
one more pass over the corpus for each such group, and finished rows go to a temporary file that ``counts_``
then maps into memory. A single word is always worked on, whatever it takes.

Every sum is one of integers: its value does not depend on the order, the threads or the groups. For 1/d they
are multiples of 1/m, m the least common multiple of 1..window, divided by m at the end. Where m times the
number of words could overflow 64 bits (windows beyond 20 or so), m is a power of two and the weights are
round(m/d)/m.

Bag-of-words counts are those of :class:`sklearn.feature_extraction.text.CountVectorizer` (TXT-1).

References
----------
K. Lund, C. Burgess (1996), Producing high-dimensional semantic spaces from lexical co-occurrence.
J. Pennington, R. Socher, C. Manning (2014), GloVe: global vectors for word representation (1/d).
F. Gustavson (1978), Two fast algorithms for sparse matrices (a row at a time).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..base import Certified
from ..certificate import Claim
from ._cooccurrence_claims import claims
from ._embedding import invalid_words
from ._pair_counts import count_pairs, equal_weights, harmonic_weights, occurrences, once
from .corpus import Corpus, as_corpus
from .vocabulary import Encoded, Vocabulary

__all__ = ["Contexts", "Cooccurrence"]

_CORPUS = 1 << 26  # bytes of the corpus, four a word, that are held in any case


@dataclass(frozen=True, eq=False)
class Contexts(Encoded):
    """The contexts of a corpus as numbers, and how many words they had, unknown ones included."""

    n_words: int


class Cooccurrence(TransformerMixin, Certified):
    """How often words stand together.

    Parameters
    ----------
    context : {"window", "sentence", "paragraph", "document"}, default="window"
        See :class:`surefit.text.Corpus` for where these end.
    window : int, default=5
        How far apart two words may be.
    symmetric : bool, default=True
        Count the words on both sides, or only those after the word of the row. Windows only.
    weighting : {"uniform", "harmonic"}, default="uniform"
        A pair at distance d counts 1, or 1/d. Windows only.
    min_count : int, default=1
        Rarer words are left out, before windows are laid.
    max_size : int, optional
        Of the vocabulary; the most frequent words are kept.
    tokenizer : callable, optional
        From a string to its words; :meth:`str.split` by default.
    lowercase : bool, default=False
        These two are for texts; a :class:`surefit.text.Corpus` has its own.
    memory_limit : int, default=2**30
        Bytes of buffers, beyond which rows go to a temporary file.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    words_ : list of str
        Most frequent first.
    word_counts_ : array of int64
    n_words_ : int
        Words of the corpus, those left out included.
    counts_ : CSR array of shape (len(words_), len(words_))
        Rows are centres, columns what stands around them; columns in order.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.text.cooccurrence import Cooccurrence
    >>> model = Cooccurrence(window=1).fit(["a b a c", "b a"])
    >>> model.words_
    ['a', 'b', 'c']
    >>> model.counts_.toarray().astype(int).tolist()
    [[0, 3, 1], [3, 0, 0], [1, 0, 0]]
    """

    paradigm = "unsupervised"
    _given_again: ClassVar[frozenset[str]] = frozenset({"tokenizer"})
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "context": [StrOptions({"window", "sentence", "paragraph", "document"})],
        "window": [Interval(Integral, 1, None, closed="left")],
        "symmetric": ["boolean"],
        "weighting": [StrOptions({"uniform", "harmonic"})],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_size": [Interval(Integral, 1, None, closed="left"), None],
        "tokenizer": [callable, None],
        "lowercase": ["boolean"],
        "memory_limit": [Interval(Integral, 1, None, closed="left")],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        context: str = "window",
        *,
        window: int = 5,
        symmetric: bool = True,
        weighting: str = "uniform",
        min_count: int = 1,
        max_size: int | None = None,
        tokenizer: Callable[[str], list[str]] | None = None,
        lowercase: bool = False,
        memory_limit: int = 1 << 30,
        certify: bool | str = True,
    ) -> None:
        self.context = context
        self.window = window
        self.symmetric = symmetric
        self.weighting = weighting
        self.min_count = min_count
        self.max_size = max_size
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.memory_limit = memory_limit
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Cooccurrence:
        """Count; ``y`` is not used.

        Parameters
        ----------
        X : Corpus, path, or iterable of strings or of lists of words
        """
        if self.context != "window":
            for name, only in (("symmetric", True), ("weighting", "uniform")):
                if getattr(self, name) != only:
                    raise ValueError(
                        f"{name}={getattr(self, name)!r} is for windows, and context is "
                        f"{self.context!r}, which has no distances: leave {name} at {only!r}."
                    )
        contexts, _, _ = self._validate_training_data(X, None, None, reset=True)
        self.counts_ = self._count(contexts)
        return self._seal(contexts, None, None)

    def transform(self, X: Any) -> sp.csr_array:
        """The counts of X over the words of the fit, as a CSR array."""
        check_is_fitted(self)
        return self._count(self._contexts(self._corpus(X), self._vocabulary()))

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_array:
        """:meth:`fit`, and its counts."""
        return self.fit(X, y).counts_

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The words of the columns."""
        check_is_fitted(self)
        return np.array(self.words_, dtype=object)

    # ------------------------------------------------------------------ the corpus

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        """The contexts as numbers; at a fit the words are found first."""
        if sample_weight is not None:
            raise ValueError("Cooccurrence takes no sample_weight: repeat texts instead.")
        corpus = self._corpus(X)
        if reset:
            self.__dict__.pop("certificate_", None)
            pieces: Any = _Pieces(corpus, self._segments)
            found = Vocabulary.of(pieces, min_count=self.min_count, max_size=self.max_size)
            self.words_, self.word_counts_ = found.words, found.counts
            self.n_words_ = found.n_words
        return self._contexts(corpus, self._vocabulary()), None, None

    @property
    def _segments(self) -> str:
        return "text" if self.context == "window" else self.context

    def _corpus(self, X: Any) -> Corpus:
        return as_corpus(X, tokenizer=self.tokenizer, lowercase=self.lowercase)

    def _vocabulary(self) -> Vocabulary:
        return Vocabulary(self.words_, self.word_counts_, self.n_words_)

    def _contexts(self, corpus: Corpus, words: Vocabulary) -> Contexts:
        """The corpus as numbers. Windows stay in segments; of other contexts the segments are joined."""
        pieces = _Pieces(corpus, self._segments)
        found = words.encode(pieces, memory=max(int(self.memory_limit), _CORPUS))
        starts = found.starts
        if self.context != "window":
            starts = np.concatenate([starts[:1], starts[1:][pieces.last]])
        return Contexts(found.ids, starts, pieces.n_words)

    # ------------------------------------------------------------------ counting

    def _count(self, contexts: Contexts) -> sp.csr_array:
        n = len(self.words_)
        ids, starts = contexts.ids, contexts.starts
        if self.context == "window":
            longest = min(int(self.window), max(1, int(np.diff(starts).max(initial=1))))
            harmonic = self.weighting == "harmonic"
            weights, scale = (
                harmonic_weights(longest, len(ids)) if harmonic else equal_weights(longest)
            )
            counts, diagonal = occurrences(ids, n), np.zeros(n, dtype=np.int64)
            pairs = counts * longest * (1 + bool(self.symmetric))
        else:
            memory = max(int(self.memory_limit), _CORPUS)
            ids, starts, counts, pairs, diagonal = once(ids, starts, n, memory)
            weights, scale = equal_weights(max(1, int(np.diff(starts).max(initial=1)) - 1))
        return count_pairs(
            ids, starts, counts, pairs, weights, scale, before=bool(self.symmetric), diagonal=diagonal,
            limit=int(self.memory_limit),
        )  # fmt: skip

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from invalid_words(self)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return claims(self, X, full=full)

    def _remedy(self) -> str:
        return "The counts are not those of this corpus: was it changed while it was read?"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class _Pieces:
    """The words of the segments of a corpus, with a record of the last pass."""

    def __init__(self, corpus: Corpus, context: str) -> None:
        self.corpus, self.context = corpus, context
        self.last: list[bool] = []
        self.n_words = 0

    def __iter__(self) -> Iterator[list[str]]:
        self.last, self.n_words = [], 0
        for words, last in self.corpus.segments(self.context):
            self.last.append(last)
            self.n_words += len(words)
            yield words
