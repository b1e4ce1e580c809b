r"""GloVe: word vectors whose products are the logarithms of co-occurrence counts (TXT-3, TXT-4).

    min  1/2 sum_{n_ij > 0} f(n_ij) (log n_ij - <w_i, z_j> - b_i - c_j)^2
         + lambda/2 (||W||^2 + ||Z||^2 + ||b||^2 + ||c||^2),   f(n) = min{1, (n / x_max)^alpha}

The sum runs over the pairs that were seen; those seen once have log n = 0 and stay in it. With f = 1 this is
the factorisation of a matrix with missing entries, :class:`surefit.decomposition.MatrixFactorization`. The
vector of a word is w_i + z_i.

*Guarantee.* The problem is not convex, and no optimality is claimed. Alternating least squares ends with the
words' gradient 0 to rounding and the contexts' at most ``tol`` of its size at 0; AdaGrad and SGD end with a
loss below that of the best model without factors. See :mod:`surefit.text._glove_claims`.

References
----------
J. Pennington, R. Socher, C. Manning (2014), GloVe: global vectors for word representation.
J. Duchi, E. Hazan, Y. Singer (2011), Adaptive subgradient methods (AdaGrad).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from .._threads import one_thread
from ..base import Certified
from ..certificate import Claim
from ..iterate import Fit, Stop, run
from ..solvers._typing import as_generator
from ..solvers.glove import als, descend, objective, probe_slopes, side
from ._embedding import Embedding, Pace
from ._glove_claims import claims, probes_of
from .cooccurrence import Cooccurrence

__all__ = ["GloVe", "count_weight"]


def count_weight(counts: Any, x_max: float = 100.0, alpha: float = 0.75) -> NDArray[np.float64]:
    """f(n) = min{1, (n / x_max)^alpha}: rare pairs say less, and frequent ones not ever more.

    Examples
    --------
    >>> count_weight([1, 100, 1000]).round(5).tolist()
    [0.03162, 1.0, 1.0]
    """
    return np.minimum(1.0, (np.asarray(counts, dtype=np.float64) / x_max) ** alpha)


@dataclass(frozen=True, eq=False)
class Counted:
    """What is counted of a corpus: pairs of words above 0 as a CSR array, each word, and all words."""

    pairs: sp.csr_array
    words: NDArray[np.int64]
    n_words: int


class GloVe(Embedding):
    """Vectors of words from how often they occur together.

    Parameters
    ----------
    n_components : int, default=100
    solver : {"adagrad", "sgd", "als"}, default="adagrad"
        Steps over the entries, or alternating least squares (float64; costs K^2 an entry).
    x_max, alpha : float, default=100.0, 0.75
        Of the weights f.
    weighting : {"glove", "none"}, default="glove"
        "none" takes f = 1.
    biases : bool, default=True
    reg : float, default=None
        The penalty lambda of factors and biases. None takes 0, and 0.1 for "als".
    window : int, default=10
        Of the counts, which are symmetric and harmonic.
    min_count : int, default=5
    max_size : int, optional
    max_iter : int, default=25
        Epochs, or iterations of ALS.
    learning_rate : float, default=0.05
        Eta of AdaGrad's steps eta g / sqrt(1 + sum (eta g)^2), on the scale of the authors' program.
        SGD's are g eta / (1 + 0.05 epoch).
    tol : float, default=1e-3
        ALS ends when the gradient over the contexts is at most ``tol`` of its size at 0; the others when five
        epochs lower the loss by less than a share ``tol``, and with 0 after ``max_iter`` epochs.
    deterministic : bool, default=False
        The same vectors for any number of threads. Threads then wait for each other some dozens of times an
        epoch, which costs 10 to 20 % of the speed on two cores. ALS and one thread are so anyway.
    tokenizer : callable, optional
        From a string to its words; :meth:`str.split` by default.
    lowercase : bool, default=False
    random_state : int, RandomState or None
    verbose : int, default=0
        Progress, in pairs per second.
    certify : bool or "full", default=True

    Attributes
    ----------
    words_ : list of str
    word_counts_ : array of int64
        Of a matrix of counts its row sums, rounded.
    n_words_ : int
    vectors_ : array of shape (n_words, n_components)
        w + z.
    word_factors_, context_factors_ : arrays of that shape
    word_biases_, context_biases_ : arrays, or None without biases
    loss_ : float
        Of these factors, penalty included.
    loss_trace_ : array
        The loss after each iteration of ALS; of the others the sum of what each entry cost before its step.
    probe_slopes_ : array
        Squared lengths of the steps of a few entries, for the certificate; none of ALS.
    n_iter_ : int
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.text.glove import GloVe
    >>> texts = ["the king rules the land", "the queen rules the land", "a cat drinks milk"] * 20
    >>> model = GloVe(4, window=2, solver="als", max_iter=200, random_state=0).fit(texts)
    >>> model.most_similar("king", k=1)[0][0]
    'queen'
    >>> model.certificate_.ok
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"adagrad", "sgd", "als"})],
        "x_max": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "weighting": [StrOptions({"glove", "none"})],
        "biases": ["boolean"],
        "reg": [Interval(Real, 0, None, closed="left"), None],
        "window": [Interval(Integral, 1, None, closed="left")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_size": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "deterministic": ["boolean"],
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
        solver: str = "adagrad",
        x_max: float = 100.0,
        alpha: float = 0.75,
        weighting: str = "glove",
        biases: bool = True,
        reg: float | None = None,
        window: int = 10,
        min_count: int = 5,
        max_size: int | None = None,
        max_iter: int = 25,
        learning_rate: float = 0.05,
        tol: float = 1e-3,
        deterministic: bool = False,
        tokenizer: Callable[[str], list[str]] | None = None,
        lowercase: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        certify: bool | str = True,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.x_max = x_max
        self.alpha = alpha
        self.weighting = weighting
        self.biases = biases
        self.reg = reg
        self.window = window
        self.min_count = min_count
        self.max_size = max_size
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.tol = tol
        self.deterministic = deterministic
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.random_state = random_state
        self.verbose = verbose
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, words: Sequence[str] | None = None) -> GloVe:
        """Learn the vectors; ``y`` is not used.

        Parameters
        ----------
        X : Corpus, path, iterable of strings or of lists of words; or square sparse matrix of counts
        words : sequence of str, optional
            Of the rows of a matrix of counts; "0", "1", ... by default.
        """
        counted, _, _ = self._validate_training_data(X, None, None, reset=True)
        counts = counted.pairs
        if words is not None:
            self._name(words, sp.issparse(X))
        logs = sp.csr_array((np.log(counts.data), counts.indices, counts.indptr), counts.shape)
        rng = as_generator(self.random_state)
        with one_thread:  # the rows are split, not the small products
            fit = (self._alternate if self.solver == "als" else self._descend)(counts, logs, rng)
        if self.solver == "als" and fit.stop is Stop.MAX_ITER and self.certify is False:
            warnings.warn(
                f"the maximum of {self.max_iter} iterations was reached before tol={self.tol:g}: raise "
                "max_iter, tol or reg.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self._seal(counted, None, None, fit.stop.value)

    # ------------------------------------------------------------------ the counts

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        """What is counted of X."""
        if sample_weight is not None:
            raise ValueError("GloVe takes no sample_weight: repeat texts, or scale the counts.")
        if reset:
            for name in ("certificate_", "vectors_"):  # of a fit before this one
                self.__dict__.pop(name, None)
        if sp.issparse(X):
            pairs = self._matrix(X, reset)
            words = np.rint(pairs.sum(axis=1)).astype(np.int64)
            return Counted(pairs, words, int(words.sum())), None, None
        counter = Cooccurrence(
            window=self.window, weighting="harmonic", min_count=self.min_count, max_size=self.max_size,
            tokenizer=self.tokenizer, lowercase=self.lowercase, certify=False,
        )  # fmt: skip
        names = ("words_", "word_counts_", "n_words_")
        if not reset:
            for name in names:
                setattr(counter, name, getattr(self, name))
            contexts, _, _ = counter._validate_training_data(X, None, None, reset=False)
            words = np.bincount(contexts.ids, minlength=len(self.words_))
            return Counted(counter._count(contexts), words, contexts.n_words), None, None
        pairs = counter.fit_transform(X)
        if not pairs.nnz:
            raise ValueError(
                f"no two of the {len(counter.words_)} words of X occur together: lower min_count, or give "
                "longer texts."
            )
        for name in names:
            setattr(self, name, getattr(counter, name))
        return Counted(pairs, counter.word_counts_, counter.n_words_), None, None

    def _data_id(self, X: Any, y: Any, sample_weight: Any) -> str:
        return super()._data_id(X.pairs, y, sample_weight)

    def _matrix(self, X: Any, reset: bool) -> sp.csr_array:
        counts = sp.csr_array(X, dtype=np.float64, copy=True)
        counts.sum_duplicates()
        if counts.shape[0] != counts.shape[1]:
            raise ValueError(f"X must be a square matrix of counts, got shape {counts.shape}.")
        if not np.isfinite(counts.data).all() or (counts.data < 0).any():
            raise ValueError("X holds a count that is negative, nan or infinite: count again.")
        counts.eliminate_zeros()
        if not counts.nnz:
            raise ValueError(f"X of shape {counts.shape} holds no count above 0.")
        if reset:
            self.words_ = [str(i) for i in range(counts.shape[0])]
            self.word_counts_ = np.rint(counts.sum(axis=1)).astype(np.int64)
            self.n_words_ = int(self.word_counts_.sum())
        elif counts.shape[0] != len(self.words_):
            raise ValueError(
                f"X has {counts.shape[0]} rows, and the fit had {len(self.words_)} words."
            )
        return counts

    def _name(self, words: Sequence[str], matrix: bool) -> None:
        if not matrix:
            raise ValueError("words names the rows of a matrix of counts; a corpus has its own.")
        if len(words) != len(self.words_) or len(set(words)) != len(words):
            raise ValueError(
                f"words must name {len(self.words_)} rows, each by another word, got {len(words)} of which "
                f"{len(set(words))} differ."
            )
        self.words_ = [str(word) for word in words]

    # ------------------------------------------------------------------ fitting

    def _reg(self) -> float:
        """The penalty that None stands for."""
        return (0.1 if self.solver == "als" else 0.0) if self.reg is None else float(self.reg)

    def _weights(self, counts: Any) -> NDArray[np.float64]:
        if self.weighting == "none":
            return np.ones(len(counts))
        return count_weight(counts, self.x_max, self.alpha)

    def _first(self, count: int, rng: np.random.Generator, scale: float) -> NDArray[np.float64]:
        """Factors to start from; biases start at 0."""
        rows = np.zeros((count, self.n_components + bool(self.biases)))
        rows[:, : self.n_components] = scale * (rng.random((count, self.n_components)) - 0.5)
        return rows

    def _alternate(self, counts: Any, logs: Any, rng: np.random.Generator) -> Fit:
        k = self.n_components + bool(self.biases)
        turned, other = logs.T.tocsr(), counts.T.tocsr()
        words = side(logs, self._weights(counts.data), self._reg(), k)
        contexts = side(turned, self._weights(other.data), self._reg(), k)
        Z = self._first(logs.shape[0], rng, np.sqrt(12.0 / self.n_components))
        Z[np.diff(contexts.indptr) == 0] = 0.0  # nothing is known of these: they stay there
        fit = run(
            als(words, contexts, Z, biases=bool(self.biases)), tol=self.tol, max_iter=self.max_iter,
            verbose=self.verbose, name="ALS",
        )  # fmt: skip
        self._keep(fit)
        self.loss_, self.probe_slopes_ = float(fit.value), np.empty(0)
        return fit

    def _descend(self, counts: Any, logs: Any, rng: np.random.Generator) -> Fit:
        k, biases = self.n_components, bool(self.biases)
        words = side(logs, self._weights(counts.data), self._reg(), k + biases)
        W, Z = (self._first(logs.shape[0], rng, 1.0 / k) for _ in range(2))
        W[np.diff(logs.indptr) == 0] = 0.0  # nothing is known of these: they stay there
        Z[np.bincount(logs.indices, minlength=len(Z)) == 0] = 0.0
        pace = Pace(self.verbose, self.max_iter * logs.nnz, "pairs")
        epochs = descend(
            words, W, Z, rate=self.learning_rate, adaptive=self.solver == "adagrad", biases=biases,
            deterministic=bool(self.deterministic), rng=rng, told=pace.at,
        )  # fmt: skip
        flat = (self.tol, 5) if self.tol > 0 else None
        fit = run(epochs, max_iter=self.max_iter, flat=flat, tol=-1.0)
        self.loss_ = objective(words, *fit.x, biases=biases)
        if fit.stop is Stop.DIVERGED or not np.isfinite(self.loss_):
            raise ValueError(
                f"{self.solver} diverged with learning_rate={self.learning_rate:g}: lower it, for instance "
                f"to {self.learning_rate / 10:g}."
            )
        self._keep(fit)
        (W, Z), adaptive = fit.x, self.solver == "adagrad"
        self.probe_slopes_ = probe_slopes(
            words, W, Z, probes_of(logs.nnz), adaptive=adaptive, biases=biases
        )
        return fit

    def _keep(self, fit: Fit) -> None:
        (W, Z), k = fit.x, self.n_components
        self.word_factors_, self.context_factors_ = W[:, :k].copy(), Z[:, :k].copy()
        self.word_biases_ = W[:, k].copy() if self.biases else None
        self.context_biases_ = Z[:, k].copy() if self.biases else None
        self.vectors_ = self.word_factors_ + self.context_factors_
        self.loss_trace_, self.n_iter_ = np.asarray(fit.trace.values), fit.n_iter

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return claims(self, X, tol)

    def _remedy(self) -> str:
        if self.solver == "als":
            return (
                "Objective did not converge. Raise max_iter or tol; a larger reg converges faster."
            )
        return "Raise max_iter, or change learning_rate."
