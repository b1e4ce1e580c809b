r"""Skip-gram with negative sampling, and its relatives CBOW and subwords.

    min  sum over pairs (i, j) within a window of
         -log sigmoid(<v_i, z_j>) - sum_{k noise words j'} log sigmoid(-<v_i, z_j'>)

The notes' TXT-5: logistic regression tells real pairs from random ones. Without a limit on the dimension the
minimum has <v_i, z_j> = PMI(i, j) - log k. CBOW predicts a word from the mean of its window's vectors; with
subwords the vector of a word is the mean over its own row and those of its character n-grams, so that words
never seen have vectors too.

*Guarantee.* None of optimality. The certificate recomputes the loss on pairs drawn with a fixed seed, bounds
that of all pairs by the empirical Bernstein inequality and holds it against chance; see
:mod:`surefit.text._skipgram_claims`. With ``deterministic=True`` the vectors are a function of text,
parameters and seed; otherwise threads write into the same arrays, and no two fits are equal.

References
----------
T. Mikolov, I. Sutskever, K. Chen, G. Corrado, J. Dean (2013), Distributed representations of words and
phrases and their compositionality. O. Levy, Y. Goldberg (2014), Neural word embedding as implicit matrix
factorization. P. Bojanowski, E. Grave, A. Joulin, T. Mikolov (2017), Enriching word vectors with subword
information. S. Ji, N. Satish, S. Li, P. Dubey (2016), Parallelizing word2vec in shared and distributed memory
(noise words shared by a window).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from .._threads import one_thread
from ..base import Certified
from ..certificate import Claim
from ..solvers._typing import as_generator
from ..solvers.skipgram import Draws, Parts, first_rows, minimise_whole, passes, probe_slopes
from ._embedding import Embedding, Pace, SeenSubwords, invalid_held_out, split_segments
from ._held_out import copies_of, hold_out
from ._skipgram_claims import (
    claims,
    from_ngrams,
    noise_loss,
    noise_shares,
    pair_counts,
    probes_of,
    sampled_loss,
)
from .subwords import Subwords

__all__ = ["SkipGram"]

_WHOLE = 3000  # words up to which the full objective is minimised


class SkipGram(Embedding):
    """Vectors of words from the words around them.

    Parameters
    ----------
    n_components : int, default=100
    architecture : {"skipgram", "cbow"}, default="skipgram"
    window : int, default=5
        Words to each side at most; each place draws its own reach from 1..window.
    negative : int, default=5
        Noise words k of a pair.
    subsample : float, default=1e-3
        The share t of a text from which on words are left out at random; 0 leaves out none.
    noise_power : float, default=0.75
        Noise words are drawn by count^power.
    subwords : (int, int) or None, default=None
        Shortest and longest character n-grams, such as (3, 6); None takes words whole.
    n_buckets : int, default=2_000_000
        Of the n-grams' hashes; only those that occur take memory.
    min_count : int, default=5
    max_size : int or None, default=None
        Words that occur less often, and beyond the most frequent so many, are left out.
    max_iter : int, default=5
        Epochs; of ``solver="full"`` iterations.
    learning_rate : float or None, default=None
        Falls linearly to 0. None takes 0.025, and 0.05 for CBOW and subwords.
    solver : {"sgd", "full"}, default="sgd"
        "full" minimises the objective over all pairs at once, without subsampling: for small vocabularies.
    tol : float, default=1e-6
        Of ``solver="full"``: the largest slope, times the square of the number of words.
    deterministic : bool, default=False
        One thread, in the order of the text: the same vectors for any number of threads. It costs the other
        processors' work (on two cores 1.7 times the time).
    device : str or None, default=None
        "cuda" trains on a GPU (skip-gram of whole words).
    validation_fraction : float, default=0.0
        Share of the texts that no step sees, for the claim "held-out loss"; copies of a text fall on one
        side. Their words are counted.
    tokenizer : callable or None, default=None
        From a string to its words; :meth:`str.split` by default.
    lowercase : bool, default=False
    random_state : int, RandomState or None
    verbose : int, default=0
        Words per second and the time left.
    certify : bool or "full", default=True

    Attributes
    ----------
    words_ : list of str
        Most frequent first, with their ``word_counts_``.
    n_words_ : int
        All words of the corpus.
    vectors_, context_vectors_ : arrays of shape (n_words, n_components)
        v and z.
    bucket_vectors_, buckets_ : arrays or None
        The rows of n-grams, and the numbers of their buckets.
    validation_indices_ : array or None
        The texts that were held out.
    split_seed_ : int or None
        Of their draw.
    loss_ : float
        Mean loss of pairs that are drawn with a fixed seed.
    noise_loss_ : float
        Mean loss of all words, each with another one as noise.
    subword_loss_ : float or None
        The same with vectors made of n-grams alone, as those of words never seen.
    probe_slopes_ : array
        Squared lengths of the steps of a few pairs, for the certificate.
    n_iter_ : int
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.text import SkipGram
    >>> texts = ["the king rules the land", "the queen rules the land", "a cat drinks milk"] * 50
    >>> model = SkipGram(8, window=2, min_count=1, subsample=0, max_iter=30, deterministic=True,
    ...                  random_state=0).fit(texts)
    >>> model.most_similar("king", k=1)[0][0]
    'queen'
    >>> model.transform(["the king", "a cat"]).shape
    (2, 8)
    >>> model.certificate_.ok
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "architecture": [StrOptions({"skipgram", "cbow"})],
        "window": [Interval(Integral, 1, 10_000, closed="both")],
        "negative": [Interval(Integral, 1, 10_000, closed="both")],
        "subsample": [Interval(Real, 0, None, closed="left")],
        "noise_power": [Interval(Real, 0, None, closed="left")],
        "subwords": [tuple, list, None],
        "n_buckets": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_size": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "solver": [StrOptions({"sgd", "full"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "deterministic": ["boolean"],
        "device": [str, None],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "tokenizer": [callable, None],
        "lowercase": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        n_components: int = 100,
        *,
        architecture: str = "skipgram",
        window: int = 5,
        negative: int = 5,
        subsample: float = 1e-3,
        noise_power: float = 0.75,
        subwords: tuple[int, int] | None = None,
        n_buckets: int = 2_000_000,
        min_count: int = 5,
        max_size: int | None = None,
        max_iter: int = 5,
        learning_rate: float | None = None,
        solver: str = "sgd",
        tol: float = 1e-6,
        deterministic: bool = False,
        device: str | None = None,
        validation_fraction: float = 0.0,
        tokenizer: Any = None,
        lowercase: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        certify: bool | str = True,
    ) -> None:
        self.n_components = n_components
        self.architecture = architecture
        self.window = window
        self.negative = negative
        self.subsample = subsample
        self.noise_power = noise_power
        self.subwords = subwords
        self.n_buckets = n_buckets
        self.min_count = min_count
        self.max_size = max_size
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.solver = solver
        self.tol = tol
        self.deterministic = deterministic
        self.device = device
        self.validation_fraction = validation_fraction
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.random_state = random_state
        self.verbose = verbose
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> SkipGram:
        """Learn the vectors; ``y`` is not used.

        Parameters
        ----------
        X : Corpus, path, or iterable of str or of lists of words
        """
        self._check_parameters()
        data, _, _ = self._validate_training_data(X, None, None, reset=True)
        rng = as_generator(self.random_state)
        self.validation_indices_, self.split_seed_ = None, None
        if self.validation_fraction:
            self.split_seed_ = int(rng.integers(2**32))
            copies = copies_of(data.ids, data.starts)
            self.validation_indices_ = hold_out(self.validation_fraction, copies, self.split_seed_)
        seen, _ = self._parts_of(data)
        if not (np.diff(seen.starts) > 1).any():
            raise ValueError(
                f"no text of the corpus has two of the {len(self.words_)} words that occur min_count="
                f"{self.min_count} times: there are no pairs to learn from. Lower min_count or add text."
            )
        self.bucket_vectors_: Any = None
        self.buckets_: Any = None
        self.probe_slopes_ = np.empty(0)
        if self.solver == "full":
            self._fit_whole(seen, rng)
        else:
            self._fit_text(seen, rng)
        self.loss_, self.subword_loss_ = sampled_loss(self, seen), None
        self.noise_loss_ = noise_loss(self.vectors_, self.context_vectors_)
        if self.subwords is not None:
            self.subword_loss_ = noise_loss(from_ngrams(self), self.context_vectors_)
        return self._seal(data, None, None, f"{self.n_iter_} iterations were made")

    def _check_parameters(self) -> None:
        if self.solver == "full" and (self.architecture == "cbow" or self.subwords is not None):
            raise ValueError(
                "solver='full' is for skip-gram of whole words: drop cbow and subwords."
            )
        if self.device is not None:
            if self.architecture == "cbow" or self.subwords is not None or self.solver == "full":
                raise ValueError(
                    f"device={self.device!r} trains skip-gram of whole words by SGD: drop cbow, subwords and "
                    "solver='full', or the device."
                )
            if self.deterministic:
                raise ValueError(
                    f"deterministic=True is for the processor: on device={self.device!r} threads add in any "
                    "order. Drop one."
                )
        if self.subwords is not None:
            whole = [isinstance(n, Integral) for n in self.subwords]
            if whole != [True, True] or not 1 <= self.subwords[0] <= self.subwords[1]:
                raise ValueError(
                    f"subwords must be (shortest, longest) n-grams, such as (3, 6), got {self.subwords!r}."
                )

    # ------------------------------------------------------------------ fitting

    def _parts_of(self, data: Any) -> tuple[Any, Any]:
        """What the fit saw, and what it did not (None where it saw all)."""
        held = self.validation_indices_
        return (data, None) if held is None else split_segments(data, held[held < len(data)])

    def _fit_text(self, data: Any, rng: np.random.Generator) -> None:
        parts, plain = None, self.architecture == "skipgram" and self.subwords is None
        n_inputs = n = len(self.words_)
        if self.subwords is not None:
            parts, self.buckets_ = self._rows_of_words()
            n_inputs += len(self.buckets_)
        draws = Draws.of(self.word_counts_, self.subsample, self.noise_power)
        V, Z = first_rows(n_inputs, n, self.n_components, rng)
        rate = self.learning_rate or (0.025 if plain else 0.05)
        given: dict[str, Any] = {
            "window": self.window, "negative": self.negative, "rate": rate, "n_epochs": self.max_iter,
            "seed": int(rng.integers(2**62)),
        }  # fmt: skip
        pace = Pace(self.verbose, self.max_iter * len(data.ids), "words")
        if self.device is not None:
            from ..solvers.skipgram_device import passes_on

            steps = passes_on(self.device, data, draws, V, Z, **given)
        else:
            given |= {"parts": parts, "cbow": self.architecture == "cbow"}
            steps = passes(data, draws, V, Z, in_order=self.deterministic, **given)
        for done in steps:
            pace.at(done)
        if not (np.isfinite(V).all() and np.isfinite(Z).all()):
            raise ValueError(f"learning_rate={rate:g} made the steps diverge: lower it.")
        if self.device is None:
            self.probe_slopes_ = probe_slopes(V, Z, probes_of(n), parts, given["cbow"])
        k = self.n_components
        self.n_iter_ = self.max_iter
        self.context_vectors_ = np.ascontiguousarray(Z[:n, :k])
        if parts is None:
            self.vectors_ = np.ascontiguousarray(V[:, :k])
        else:
            self.vectors_ = np.ascontiguousarray(parts.means(V)[:, :k])
            self.bucket_vectors_ = np.ascontiguousarray(V[n:, :k])

    def _rows_of_words(self) -> tuple[Parts, NDArray[np.int64]]:
        """Each word's own row and those of its n-grams, and the buckets that occur."""
        indptr, hashed = self._hashing().table(self.words_)
        used, at = np.unique(hashed, return_inverse=True)
        n = len(self.words_)
        rows = np.insert(n + at, indptr[:-1], np.arange(n))
        return Parts(indptr + np.arange(n + 1), rows.astype(np.int64)), used

    def _fit_whole(self, data: Any, rng: np.random.Generator) -> None:
        n, k = len(self.words_), self.n_components
        if n > _WHOLE:
            raise ValueError(
                f"solver='full' holds all {n} x {n} pairs of words, of at most {_WHOLE} words: raise "
                "min_count, set max_size, or use solver='sgd'."
            )
        counts = pair_counts(data, n, self.window)
        noise = noise_shares(self.word_counts_, self.noise_power)
        V, Z = (rng.standard_normal((n, k)) / np.sqrt(k) for _ in range(2))
        with one_thread if self.deterministic else nullcontext():
            self.vectors_, self.context_vectors_, self.n_iter_ = minimise_whole(
                counts, noise, self.negative, V, Z, max_iter=self.max_iter, tol=self.tol
            )

    @property
    def subwords_(self) -> SeenSubwords | None:
        """Vectors of words that are not known, or None without subwords."""
        if getattr(self, "buckets_", None) is None:
            return None
        held = self.__dict__.get("_seen")
        if held is None or held.rows is not self.bucket_vectors_:
            held = SeenSubwords(self._hashing(), self.buckets_, self.bucket_vectors_)
            self.__dict__["_seen"] = held
        return held

    def _hashing(self) -> Subwords:
        shortest, longest = self.subwords or (0, 0)
        return Subwords(shortest, longest, self.n_buckets)

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_seen"}

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from invalid_held_out(self)
        buckets, rows = self.buckets_, self.bucket_vectors_
        if (buckets is None) != (self.subwords is None) or (rows is None) != (buckets is None):
            yield "buckets_ and bucket_vectors_ are there with subwords, and only then"
        elif buckets is not None:
            buckets = np.concatenate([[-1], np.asarray(buckets), [self.n_buckets]])
            if buckets.dtype.kind != "i" or (np.diff(buckets) < 1).any():
                yield f"buckets_ do not ascend within 0 and {self.n_buckets - 1}"

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return claims(self, X)
