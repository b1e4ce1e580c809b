r"""Sentence vectors: sums and averages of the vectors of a text's words.

    s(text) = sum_w a_w n_w v_w   (sum),    divided by sum_w n_w   (mean, weighted),

n_w how often the word w occurs. a_w = 1, or a/(a + p(w)) for "weighted", p(w) the share of the word in the
counts: frequent words say less (SIF). The direction that all sentences have in common, the first right
singular vector of the sentences' matrix, may be removed.

Words are counted, and counts times vectors added up in the order of the words' numbers: the order of words
in a text cannot matter, to the last bit (TXT-7).

References
----------
S. Arora, Y. Liang, T. Ma (2017), A simple but tough-to-beat baseline for sentence embeddings.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ._bags import read_texts

__all__ = ["SentenceVectors"]

Array = NDArray[np.float64]


class SentenceVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts as sums or averages of given word vectors.

    Parameters
    ----------
    vectors : object
        With ``words_`` and ``vectors_`` (any fitted estimator of word vectors), or ``words`` and
        ``vectors``. "weighted" also needs ``word_counts_`` or ``counts``. Clones have the same ones: they are
        data here, and no fit of this class, or of a pipeline around it, fits them again.
    pooling : {"mean", "sum", "weighted"}, default="mean"
    a : float, default=1e-3
        Of the weights a/(a + p(w)).
    remove_component : bool, default=False
        Take off the first principal direction of the texts given to ``fit``.
    normalise : bool, default=False
        Divide by the length; zeros stay.
    unknown : {"skip", "error"}, default="skip"
        What to do with a text without a known word: zeros, or an error.
    tokenizer : callable, default=None
    lowercase : bool, default=False

    Attributes
    ----------
    component_ : array of shape (d,), or None
        The direction that is removed.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> known = SimpleNamespace(words=["a", "b"], vectors=[[1.0, 0.0], [0.0, 2.0]])
    >>> SentenceVectors(known).fit_transform(["a b", "b x", "x"])
    array([[0.5, 1. ],
           [0. , 2. ],
           [0. , 0. ]])
    """

    _given_again: ClassVar[frozenset[str]] = frozenset({"tokenizer"})
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "vectors": [object],
        "pooling": [StrOptions({"mean", "sum", "weighted"})],
        "a": [Interval(Real, 0, None, closed="neither")],
        "remove_component": ["boolean"],
        "normalise": ["boolean"],
        "unknown": [StrOptions({"skip", "error"})],
        "tokenizer": [callable, None],
        "lowercase": ["boolean"],
    }

    def __init__(
        self,
        vectors: Any,
        *,
        pooling: str = "mean",
        a: float = 1e-3,
        remove_component: bool = False,
        normalise: bool = False,
        unknown: str = "skip",
        tokenizer: Callable[[str], list[str]] | None = None,
        lowercase: bool = False,
    ) -> None:
        self.vectors = vectors
        self.pooling = pooling
        self.a = a
        self.remove_component = remove_component
        self.normalise = normalise
        self.unknown = unknown
        self.tokenizer = tokenizer
        self.lowercase = lowercase

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None) -> SentenceVectors:
        """Find the direction to remove; without that, check the parameters only."""
        self.component_ = None
        self._given()
        if self.remove_component:
            S = self._sums(X)
            self.component_ = np.linalg.eigh(S.T @ S)[1][:, -1]
        return self

    def transform(self, X: Any) -> Array:
        """The vectors of texts, one row each."""
        return self._pooled(X)

    def _pooled(self, X: Any) -> Array:
        if self.remove_component:
            check_is_fitted(self, "component_")
        S = self._sums(X)
        if self.remove_component:
            u = np.asarray(self.component_, dtype=np.float64)
            S = S - (S * u).sum(axis=1, keepdims=True) * u
        if self.normalise:
            lengths = np.linalg.norm(S, axis=1, keepdims=True)
            S = S / np.where(lengths > 0, lengths, 1.0)
        return S

    def __sklearn_clone__(self) -> SentenceVectors:
        """As :func:`sklearn.base.clone`, but for the vectors, which an estimator's clone has lost."""
        names = set(self.get_params(deep=False)) - {"vectors"}
        made = type(self)(
            self.vectors, **{name: clone(getattr(self, name), safe=False) for name in names}
        )
        for name in ("_sklearn_output_config", "_metadata_request"):
            if name in self.__dict__:
                made.__dict__[name] = copy.deepcopy(self.__dict__[name])
        return made

    @property
    def _n_features_out(self) -> int:
        return int(self._given()[1].shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return not self.remove_component or hasattr(self, "component_")

    def _sums(self, X: Any) -> Array:
        words, V = self._given()
        texts = read_texts(X, self.tokenizer, self.lowercase)
        index = {word: number for number, word in enumerate(words)}
        numbers = np.array([index.get(word, -1) for word in texts.words], dtype=np.int64)[texts.ids]
        row = np.repeat(np.arange(len(texts)), np.diff(texts.starts))[numbers >= 0]
        ones = np.ones(len(row))
        counts = sp.csr_array((ones, (row, numbers[numbers >= 0])), shape=(len(texts), len(words)))
        counts.sum_duplicates()  # in the order of the words' numbers
        sizes = np.asarray(counts.sum(axis=1)).ravel()
        if self.unknown == "error" and (sizes == 0).any():
            first = int(np.flatnonzero(sizes == 0)[0])
            raise ValueError(
                f"text {first} has no known word: leave it out, or set unknown='skip' for zeros."
            )
        if self.pooling == "weighted":
            counts.data *= self._weights()[counts.indices]
        S = np.asarray(counts @ V)
        return S if self.pooling == "sum" else S / np.maximum(sizes, 1.0)[:, None]

    def _given(self) -> tuple[Any, Array]:
        for names in (("words_", "vectors_"), ("words", "vectors")):
            if all(hasattr(self.vectors, name) for name in names):
                words, V = (getattr(self.vectors, name) for name in names)
                V = np.asarray(V, dtype=np.float64)
                if V.ndim != 2 or len(V) != len(words):
                    raise ValueError(
                        f"vectors has {len(words)} words and an array of shape {V.shape}: give one row "
                        "for each word."
                    )
                return words, V
        raise TypeError(
            f"vectors must have words_ and vectors_, or words and vectors, got "
            f"{type(self.vectors).__name__}: fit it first. A search clones the estimators among its "
            "candidates: give it their word_vectors."
        )

    def _weights(self) -> Array:
        for name in ("word_counts_", "counts"):
            counts = getattr(self.vectors, name, None)
            if counts is not None:
                share = np.asarray(counts, dtype=np.float64) / np.sum(counts)
                return np.asarray(self.a / (self.a + share))
        raise ValueError(
            "pooling='weighted' needs the counts of the words: give vectors with word_counts_ or counts, or "
            "use pooling='mean'."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
