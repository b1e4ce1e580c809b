r"""sent2vec: word vectors trained so that their average represents a sentence.

Each word w_t of a sentence is told from words drawn at random by the mean h_t of the other words' vectors:

    min_{Z, U}  sum_sentences sum_t [ log(1 + e^{-<u_{w_t}, h_t>}) + sum_{v drawn} log(1 + e^{<u_v, h_t>}) ]

with v drawn in proportion to the square roots of the counts. What is averaged in use is what was averaged in
training. Frequent words are targets less often, with probability min(1, sqrt(t/f) + t/f) for a frequency f.
This is the unigram model; ``dropout`` leaves words out of the mean at random. Steps are taken a sentence at a
time, in a random order, with a rate that falls to 0 in a straight line, by threads without a lock;
``deterministic=True`` uses one thread.

References
----------
M. Pagliardini, P. Gupta, M. Jaggi (2018), Unsupervised learning of sentence embeddings using compositional
n-gram features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._jit.sent2vec import sentence_steps
from .._threads import one_thread, over_rows
from ..base import Certified
from ..certificate import Claim
from ..iterate import Iterate, run
from ..solvers._typing import as_generator
from ._embedding import Pace, invalid_held_out, invalid_words, two_parts
from ._held_out import copies_of, hold_out
from ._queries import Queries
from ._sent2vec_claims import claims, drawn, noise_shares, some
from ._skipgram_claims import noise_loss
from .corpus import CONTEXTS, Corpus, as_corpus
from .sentences import SentenceVectors
from .vocabulary import Encoded, Vocabulary

__all__ = ["Sent2Vec"]

_NOISE = 1 << 20  # drawn words that are gone through from a random place on
_TINY = 1e-7  # rate of the step that is compared with the gradient


class Sent2Vec(Queries, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Certified):
    """Word vectors whose averages are sentence vectors.

    Parameters
    ----------
    n_components : int, default=100
    max_iter : int, default=5
        Epochs.
    negative : int, default=10
        Words drawn for each word.
    learning_rate : float, default=0.2
    min_count : int, default=5
    subsample : float, default=1e-4
        The frequency t above which words are targets less often; 0 takes all.
    dropout : float, default=0.0
        The probability of a word to be left out of the mean.
    context : {"text", "sentence", "paragraph", "document"}, default="text"
        What counts as a sentence; see :meth:`Corpus.segments`. After ``max_words`` of the corpus it is cut.
    tokenizer : callable, default=None
    lowercase : bool, default=False
    validation_fraction : float, default=0.0
        Share of the sentences that no step sees; copies of one fall on one side. Their words are counted.
    deterministic : bool, default=False
        One thread: a seed gives the same vectors anywhere, in as many times the time.
    random_state : int, RandomState or None
    verbose : int, default=0
    certify : bool or "full", default=True

    Attributes
    ----------
    words_ : list of str
    word_counts_ : array of int64
    vectors_, output_vectors_ : arrays of shape (n_words, n_components)
        Z and U.
    loss_ : float
        The mean loss of a word over some training sentences, with fixed drawn words.
    noise_loss_ : float
        Mean loss of all words, each with another one as noise.
    loss_trace_ : array
        The mean loss of a target in each epoch.
    probe_slope_ : float
        Squared length of the step over a few sentences, for the certificate.
    validation_indices_, validation_loss_, split_seed_
        The sentences held out, the loss there, and the seed of their draw; None without.
    certificate_ : Certificate

    Examples
    --------
    >>> X = ["the cat purred softly", "the dog barked loudly"] * 50
    >>> model = Sent2Vec(8, max_iter=20, subsample=0, random_state=0).fit(X)
    >>> model.transform(["cat purred", "purred cat"]).shape, model.certificate_.ok
    ((2, 8), True)
    """

    paradigm = "unsupervised"
    _given_again: ClassVar[frozenset[str]] = frozenset({"tokenizer"})
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "negative": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "subsample": [Interval(Real, 0, None, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "context": [StrOptions(set(CONTEXTS))],
        "tokenizer": [callable, None],
        "lowercase": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "deterministic": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        max_iter: int = 5,
        negative: int = 10,
        learning_rate: float = 0.2,
        min_count: int = 5,
        subsample: float = 1e-4,
        dropout: float = 0.0,
        context: str = "text",
        tokenizer: Callable[[str], list[str]] | None = None,
        lowercase: bool = False,
        validation_fraction: float = 0.0,
        deterministic: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        certify: bool | str = True,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.negative = negative
        self.learning_rate = learning_rate
        self.min_count = min_count
        self.subsample = subsample
        self.dropout = dropout
        self.context = context
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.validation_fraction = validation_fraction
        self.deterministic = deterministic
        self.random_state = random_state
        self.verbose = verbose
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Sent2Vec:
        """Train on a corpus or a list of texts; ``y`` is not used."""
        encoded, _, _ = self._validate_training_data(X, None, None, reset=True)
        rng = as_generator(self.random_state)
        n = len(encoded)
        self.validation_indices_, self.split_seed_ = None, None
        if self.validation_fraction:
            self.split_seed_ = int(rng.integers(2**32))
            copies = copies_of(encoded.ids, encoded.starts)
            self.validation_indices_ = hold_out(self.validation_fraction, copies, self.split_seed_)
        train, held = two_parts(n, self.validation_indices_)
        if not len(train) or not (np.diff(encoded.starts)[train] > 1).any():
            raise ValueError(
                f"no sentence has two known words: lower min_count={self.min_count} or choose another "
                "context."
            )
        shape = (len(self.words_), self.n_components)
        Z = (rng.random(shape, dtype=np.float32) * 2 - 1) / np.float32(self.n_components)
        U = np.zeros(shape, dtype=np.float32)
        with one_thread:
            self.loss_trace_ = self._steps(encoded, train, Z, U, rng)
            if not (np.isfinite(Z).all() and np.isfinite(U).all()):
                raise ValueError(
                    f"learning_rate={self.learning_rate:g} made the steps diverge: lower it."
                )
            self.vectors_, self.output_vectors_ = Z, U
            self.loss_, self.noise_loss_ = self._fixed_loss(*some(encoded, train)), noise_loss(Z, U)
            self.validation_loss_ = None
            if self.validation_indices_ is not None:
                self.validation_loss_ = self._fixed_loss(*some(encoded, held))
            self.probe_slope_ = self._probe(*some(encoded, train, 4))
            return self._seal(encoded, None, None, f"all {self.max_iter} epochs were made")

    def transform(self, X: Any) -> NDArray[np.float64]:
        """The mean of the vectors of each text's known words."""
        check_is_fitted(self, "vectors_")
        pool = SentenceVectors(self, tokenizer=self.tokenizer, lowercase=self.lowercase)
        return pool._pooled(X)

    @property
    def _n_features_out(self) -> int:
        return int(self.vectors_.shape[1])

    # ------------------------------------------------------------------ steps

    def _steps(
        self, encoded: Encoded, train: Any, Z: Any, U: Any, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        shares = self.word_counts_ / self.word_counts_.sum()
        ratio = self.subsample / shares if self.subsample > 0 else np.ones_like(shares)
        keep = np.minimum(1.0, np.sqrt(ratio) + ratio)
        noise = rng.choice(len(shares), _NOISE, p=noise_shares(self.word_counts_)).astype(np.int32)
        size = int(np.diff(encoded.starts)[train].sum())
        pace = Pace(self.verbose, self.max_iter * size, "words")

        def epochs() -> Iterator[Iterate]:
            for epoch in range(self.max_iter):
                order = rng.permutation(train)
                offsets = rng.integers(_NOISE, size=len(encoded))
                begin = self.learning_rate * (1.0 - epoch / self.max_iter)

                def part(
                    a: int, b: int, order: Any = order, offsets: Any = offsets, begin: float = begin
                ) -> tuple[float, float]:
                    return sentence_steps(
                        encoded.ids, encoded.starts, order, keep, noise, offsets, self.negative,
                        float(self.dropout), Z, U, begin, self.learning_rate / self.max_iter, a, b,
                    )  # fmt: skip

                n = len(order)
                parts = [part(0, n)] if self.deterministic else over_rows(n, part, least=256)
                loss, targets = (math.fsum(column) for column in zip(*parts))
                pace.at((epoch + 1) * size)
                yield Iterate(None, value=loss / max(targets, 1.0))

        return np.array(run(epochs(), max_iter=self.max_iter, tol=-1.0).trace.values)

    def _once(self, ids: Any, starts: Any, Z: Any, U: Any, rate: float) -> tuple[float, float]:
        """All sentences once, with the fixed drawn words; nothing is left to chance."""
        noise = drawn(self.word_counts_, max(1, self.negative * len(ids)))
        return sentence_steps(
            ids, starts, np.arange(len(starts) - 1), np.full(len(Z), 2.0), noise,
            self.negative * starts[:-1], self.negative, 0.0, Z, U, rate, 0.0, 0, len(starts) - 1,
        )  # fmt: skip

    def _fixed_loss(self, ids: Any, starts: Any) -> float:
        Z, U = self.vectors_.astype(np.float64), self.output_vectors_.astype(np.float64)
        loss, targets = self._once(ids, starts, Z, U, 0.0)
        return loss / max(targets, 1.0)

    def _probe(self, ids: Any, starts: Any) -> float:
        Z, U = self.vectors_.astype(np.float64), self.output_vectors_.astype(np.float64)
        before = Z.copy(), U.copy()
        rate = _TINY / max(1.0, len(ids) / 10)  # the outputs move from target to target
        self._once(ids, starts, Z, U, rate)
        squares = [float(np.square((a - b) / rate).sum()) for a, b in zip((Z, U), before)]
        return math.fsum(squares)

    # ------------------------------------------------------------------ data

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        if sample_weight is not None:
            raise ValueError("Sent2Vec takes no sample_weight: repeat sentences instead.")
        corpus = as_corpus(X, tokenizer=self.tokenizer, lowercase=self.lowercase)
        if reset:
            for name in ("certificate_", "vectors_"):  # of a fit before this one
                self.__dict__.pop(name, None)
            found = Vocabulary.of(corpus, min_count=self.min_count)
            self.words_, self.word_counts_ = found.words, found.counts
        vocabulary = Vocabulary(self.words_, self.word_counts_)
        return vocabulary.encode(_sentences(corpus, self.context)), None, None

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from invalid_words(self)
        yield from invalid_held_out(self)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return claims(self, X, *two_parts(len(X), self.validation_indices_))

    def _remedy(self) -> str:
        trace = self.loss_trace_
        if len(trace) and trace[-1] > (1 + self.negative) * np.log(2.0):
            return "The loss grew beyond that of untrained vectors: lower learning_rate."
        return "The vectors did not learn enough: raise learning_rate or max_iter."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _sentences(corpus: Corpus, context: str) -> Iterator[list[str]]:
    """Each context as one list, whose pieces a corpus reads one by one, of ``max_words`` words at most."""
    held: list[str] = []
    for words, last in corpus.segments(context):
        if len(held) + len(words) > corpus.max_words:
            yield held
            held = []
        held += words
        if last and held:
            yield held
            held = []
    if held:
        yield held
