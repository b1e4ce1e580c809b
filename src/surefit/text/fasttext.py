r"""fastText: a linear classifier on averaged bags of n-grams, through K dimensions.

    min_{W, Z}  sum_n s_n l(W Z'x_n, y_n)

x_n is the bag of text n divided by the number of its features: its words, hashed n-grams of words and,
where asked for, of characters. Z has a row of K numbers for each feature, W one for each class, or a single
one with the logistic loss of two classes, f(y_n W Z'x_n) (TXT-6; ERR-64). There is no intercept.

``solver="sgd"`` takes one step a text, in a random order, with a rate that falls in a straight line to 0,
threads side by side without a lock. What depends on chance is then the order in which threads write:
``deterministic=True`` uses one thread and gives the same weights anywhere, for a time as many times longer as
there would be threads. ``solver="exact"`` minimises

    sum_n s_n l(W Z'x_n, y_n) / sum_n s_n + reg/2 ||W Z'||_F^2.

The penalty is on the product, which is all that the scores see. So the minimum over factors of K >= rank
components is that over all matrices M = WZ', which is logistic regression on the same bags, and convex. (A
penalty on W and Z each would be the nuclear norm of M instead.)

Only the buckets that occur in the training texts have a row in Z: the table of n_buckets rows that the
original tool keeps is not needed, and n-grams that training never saw are left out of a new text's bag.
The original also counts the end of each line as a word; this does not.

References
----------
A. Joulin, E. Grave, P. Bojanowski, T. Mikolov (2017), Bag of tricks for efficient text classification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, softmax
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._jit.fasttext import bag_means
from .._threads import one_thread, over_rows
from ..base import Certified, check_weights
from ..certificate import Claim, Kind
from ..solvers._typing import as_generator
from ._bags import Features, Texts, read_texts
from ._embedding import Pace, invalid_held_out, invalid_words, two_parts
from ._fasttext_claims import claims, probes_of
from ._fasttext_fit import bag_matrix, factorise, fit_steps, logistic, mean_loss, probe_slopes
from ._held_out import copies_of, hold_out
from ._queries import Queries

__all__ = ["FastTextClassifier"]

Array = NDArray[np.float64]


class FastTextClassifier(
    Queries, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, Certified
):
    """Classifier of texts by averaged vectors of their words and n-grams.

    Its words can be asked as those of :class:`~surefit.text.WordVectors`: ``most_similar`` and the like.

    Parameters
    ----------
    n_components : int, default=100
        K. 10 classifies about as well, in a third of the time.
    word_ngrams : int, default=1
        Longest n-grams of words.
    n_buckets : int, default=2_000_000
        How many values the hash of an n-gram can take. Memory is needed for those that occur.
    min_count : int, default=1
        Words that occur fewer times have no vector.
    loss : {"softmax", "logistic"}, default="softmax"
        "logistic" sets each class against the rest.
    learning_rate : float, default=0.1
        At the start; of 0.1 to 1.
    max_iter : int, default=5
        Epochs of ``solver="sgd"``.
    solver : {"sgd", "exact"}, default="sgd"
        "exact" is the global minimum of the penalised loss.
    reg : float, default=0.0
        The penalty on the product WZ': above 0 for "exact", 0 for "sgd".
    tol : float, default=1e-6
        "exact" is within this share of the objective at 0.
    char_ngrams : (int, int), default=None
        Shortest and longest n-grams of characters.
    tokenizer : callable, default=None
        From a text to its words; :meth:`str.split` by default.
    lowercase : bool, default=False
    validation_fraction : float, default=0.0
        Share of the texts that is held out, for an estimate of the error with its limits. Copies of a text
        fall on one side.
    deterministic : bool, default=False
        One thread, so that a seed gives the same weights whatever the number of threads.
    random_state : int, RandomState or None
    verbose : int, default=0
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    words_ : list of str
        Most frequent first.
    word_counts_ : array of int64
    buckets_ : array of int32
        Of n-grams that occur.
    input_vectors_ : array of shape (n_words + n_used_buckets, n_components)
        Z: the words' rows, then those of the buckets.
    output_vectors_ : array of shape (n_classes, n_components), or (1, n_components)
        W.
    loss_ : float
        The mean loss over the training texts.
    loss_trace_ : array
        The mean loss that each epoch met on its way.
    probe_slopes_ : array
        Squared lengths of the steps of a few texts, for the certificate.
    validation_indices_, validation_error_, split_seed_
        The texts that were held out, the error there, and the seed of their draw; None without.
    certificate_ : Certificate

    Examples
    --------
    >>> X = ["good film", "a good plot", "bad film", "a bad plot"] * 5
    >>> y = ["up", "up", "down", "down"] * 5
    >>> model = FastTextClassifier(5, learning_rate=1.0, max_iter=50, random_state=0).fit(X, y)
    >>> model.predict(["good", "bad bad"]).tolist()
    ['up', 'down']
    >>> exact = FastTextClassifier(1, solver="exact", reg=0.01).fit(X, y)
    >>> exact.certificate_["duality gap"].status.name
    'HOLDS'
    """

    _given_again: ClassVar[frozenset[str]] = frozenset({"tokenizer"})
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "word_ngrams": [Interval(Integral, 1, None, closed="left")],
        "n_buckets": [Interval(Integral, 1, 2**30, closed="both")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions({"softmax", "logistic"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"sgd", "exact"})],
        "reg": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "char_ngrams": [tuple, list, None],
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
        word_ngrams: int = 1,
        n_buckets: int = 2_000_000,
        min_count: int = 1,
        loss: str = "softmax",
        learning_rate: float = 0.1,
        max_iter: int = 5,
        solver: str = "sgd",
        reg: float = 0.0,
        tol: float = 1e-6,
        char_ngrams: tuple[int, int] | None = None,
        tokenizer: Callable[[str], list[str]] | None = None,
        lowercase: bool = False,
        validation_fraction: float = 0.0,
        deterministic: bool = False,
        random_state: Any = None,
        verbose: int = 0,
        certify: bool | str = True,
    ) -> None:
        self.n_components = n_components
        self.word_ngrams = word_ngrams
        self.n_buckets = n_buckets
        self.min_count = min_count
        self.loss = loss
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.solver = solver
        self.reg = reg
        self.tol = tol
        self.char_ngrams = char_ngrams
        self.tokenizer = tokenizer
        self.lowercase = lowercase
        self.validation_fraction = validation_fraction
        self.deterministic = deterministic
        self.random_state = random_state
        self.verbose = verbose
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FastTextClassifier:
        """Fit on texts, strings or lists of words, and their labels.

        Parameters
        ----------
        X : list of n texts
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        """
        self._check_parameters()
        texts, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        rng = as_generator(self.random_state)
        self.validation_indices_, self.split_seed_ = None, None
        if self.validation_fraction:
            self.split_seed_ = int(rng.integers(2**32))
            copies = copies_of(texts.ids, texts.starts)
            self.validation_indices_ = hold_out(self.validation_fraction, copies, self.split_seed_)
        train, labels, weights = self._training_part(texts, y, sample_weight)
        codes, rows = self._choose_classes(labels)
        self._choose_words(train)
        encoded, self.buckets_ = self._features(None).encode(train)
        soft, p = self.loss == "softmax", len(self.words_) + len(self.buckets_)
        self.probe_slopes_ = np.empty(0)
        with one_thread:
            if self.solver == "exact":
                A = bag_matrix(encoded, p)
                A.sum_duplicates()
                M = logistic(A, codes, weights, rows, soft, self.reg, self.tol)
                W, Z = factorise(M, self.n_components)
                self.loss_trace_ = np.empty(0)
                stopped = "logistic regression was solved"
            else:
                pace = Pace(self.verbose, self.max_iter * len(train.ids), "words")
                Z, W, self.loss_trace_ = fit_steps(
                    encoded, p, codes, weights, rows, n_components=self.n_components, softmax=soft,
                    rate=self.learning_rate, epochs=self.max_iter, deterministic=self.deterministic,
                    rng=rng, told=lambda epochs: pace.at(epochs * len(train.ids)),
                )  # fmt: skip
                probes = probes_of(np.diff(encoded.starts), weights)
                self.probe_slopes_ = probe_slopes(encoded, probes, Z, W, codes, soft)
                stopped = f"all {self.max_iter} epochs were made"
            self.loss_ = mean_loss(encoded, Z, W, codes, weights, soft)
            if not np.isfinite(self.loss_):
                raise ValueError(
                    f"learning_rate={self.learning_rate:g} made the steps diverge: lower it."
                )
            self.input_vectors_, self.output_vectors_ = Z, W
            self.validation_error_ = None
            if self.validation_indices_ is not None:
                labels, held = self._held_out(texts, y)
                self.validation_error_ = float((labels != held).mean())
            return self._seal(texts, y, sample_weight, stopped)

    # ------------------------------------------------------------------ predictions

    def transform(self, X: Any) -> Array:
        """Z'x of each text: the mean of the vectors of its features, 0 for a text without any."""
        return self._means(X)

    def _means(self, X: Any) -> Array:
        check_is_fitted(self, "input_vectors_")
        Z, W = self.input_vectors_, self.output_vectors_
        size = len(self.words_) + len(self.buckets_)
        if Z.shape != (size, W.shape[-1]):  # compiled code follows the numbers of features
            raise ValueError(
                f"input_vectors_ is of shape {Z.shape}, and there are {size} words and buckets and "
                f"output_vectors_ of shape {W.shape}: the model was changed. Fit it again."
            )
        if not self._ascending():
            raise ValueError(
                f"buckets_ must ascend within 0 and n_buckets - 1, n_buckets={self.n_buckets}: the model was "
                "changed. Fit it again."
            )
        encoded, _ = self._features(self.buckets_).encode(self._read(X))
        out = np.empty((len(encoded), Z.shape[1]))

        def part(first: int, last: int) -> None:
            bag_means(encoded.ids, encoded.starts, Z, out, first, last)

        over_rows(len(encoded), part, least=256)
        return out

    def decision_function(self, X: Any) -> Any:
        """Scores W Z'x, one column a class; for two classes one number, positive for the second."""
        scores = self._means(X) @ self.output_vectors_.T.astype(np.float64)
        if scores.shape[1] == 1:
            return scores[:, 0]
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The label of the largest score."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def predict_proba(self, X: Any) -> Array:
        """Probabilities: softmax of the scores; with "logistic" the sigma of each, over their sum."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        if self.loss == "softmax":
            return np.asarray(softmax(scores, axis=1))
        # by logarithms: each sigma may be 0 to rounding
        return np.asarray(softmax(log_expit(scores), axis=1))

    @property
    def vectors_(self) -> Any:
        """The vectors of ``words_``: the first rows of ``input_vectors_``."""
        return self.input_vectors_[: len(self.words_)]

    @property
    def _n_features_out(self) -> int:
        return int(self.input_vectors_.shape[1])

    # ------------------------------------------------------------------ data

    def _check_parameters(self) -> None:
        if self.solver == "exact" and not self.reg > 0:
            raise ValueError(
                f"reg={self.reg} leaves solver='exact' without a minimum where words tell the classes "
                "apart: set reg above 0, such as 1e-4."
            )
        if self.solver == "sgd" and self.reg > 0:
            raise ValueError(
                f"reg={self.reg} is for solver='exact': the penalty on WZ' moves every row of Z in every "
                "step. Set reg=0, or solver='exact'."
            )
        if self.char_ngrams is not None:
            whole = [isinstance(k, Integral) for k in self.char_ngrams]
            if (
                len(whole) != 2
                or not all(whole)
                or not 1 <= self.char_ngrams[0] <= self.char_ngrams[1]
            ):
                raise ValueError(
                    f"char_ngrams must be the shortest and the longest length, such as (3, 6), got "
                    f"{self.char_ngrams!r}."
                )

    def _read(self, X: Any) -> Texts:
        return X if isinstance(X, Texts) else read_texts(X, self.tokenizer, self.lowercase)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        if reset:
            for name in ("certificate_", "input_vectors_"):  # of a fit before this one
                self.__dict__.pop(name, None)
        texts = self._read(X)
        if y is None:
            raise ValueError("y is missing: FastTextClassifier needs a label for each text.")
        y = column_or_1d(y, warn=True)
        if not len(texts):
            raise ValueError("X has no text: FastTextClassifier needs some of each class.")
        check_classification_targets(y)
        if len(y) != len(texts):
            raise ValueError(f"X has {len(texts)} texts and y {len(y)} labels: give one for each.")
        return texts, y, check_weights(sample_weight, np.zeros((len(texts), 1)))

    def _training_part(self, texts: Texts, y: Any, sample_weight: Any) -> tuple[Texts, Any, Array]:
        """The texts that are fitted on, their labels and weights."""
        weights = np.ones(len(texts)) if sample_weight is None else sample_weight
        if self.validation_indices_ is not None:
            kept, _ = two_parts(len(texts), self.validation_indices_)
            texts, y, weights = texts.take(kept), y[kept], np.ascontiguousarray(weights[kept])
        if not weights.sum() > 0:
            raise ValueError("sample_weight is 0 on all texts that are fitted on: weigh some.")
        return texts, y, weights

    def _choose_classes(self, y: Any) -> tuple[NDArray[np.int64], int]:
        """The number of each text's class, and how many rows W has."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only, {self.classes_.tolist()}: give texts of at least two."
            )
        rows = 1 if self.loss == "logistic" and len(self.classes_) == 2 else len(self.classes_)
        return codes.astype(np.int64), rows

    def _choose_words(self, texts: Texts) -> None:
        """The words that occur often enough, most frequent first, then in order of appearance."""
        counts = np.bincount(texts.ids, minlength=len(texts.words))
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] >= self.min_count]
        if not len(texts.ids):
            raise ValueError("X holds no word: its texts are empty. Is it the right column?")
        if not len(order):
            raise ValueError(
                f"min_count={self.min_count} leaves no word: the most frequent occurs {counts.max()} "
                "time(s). Lower min_count."
            )
        self.words_ = [texts.words[i] for i in order]
        self.word_counts_ = counts[order].astype(np.int64)

    def _features(self, buckets: Any) -> Features:
        index = {word: number for number, word in enumerate(self.words_)}
        chars = None if self.char_ngrams is None else (self.char_ngrams[0], self.char_ngrams[1])
        return Features(index, buckets, self.word_ngrams, chars, self.n_buckets)

    def _ascending(self) -> bool:
        """Whether the buckets are numbers of buckets, in order: they are looked up by halving."""
        buckets = np.concatenate([[-1], self.buckets_, [self.n_buckets]])
        return buckets.dtype.kind == "i" and bool((np.diff(buckets) > 0).all())

    def _held_out(self, texts: Texts, y: Any) -> tuple[Any, Any]:
        """Predicted and true labels of what was held out."""
        _, rows = two_parts(len(texts), self.validation_indices_)
        return self.predict(texts.take(rows)), y[rows]

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from invalid_words(self)
        yield from invalid_held_out(self)
        rows = 1 if self.loss == "logistic" and len(self.classes_) == 2 else len(self.classes_)
        if np.ndim(self.output_vectors_) != 2 or len(self.output_vectors_) != rows:
            shape = np.shape(self.output_vectors_)
            yield f"output_vectors_ are of shape {shape}, and {rows} rows follow from the classes"

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        shapes, size = (self.input_vectors_.shape, self.output_vectors_.shape), len(self.words_)
        if shapes[0] != (size + len(self.buckets_), shapes[1][-1]):
            why = f"vectors of shapes {shapes} for {size} words and {len(self.buckets_)} buckets"
            return [Claim.check("bags", why, Kind.EXACT, math.nan, 0.0, "TXT-1")]
        if not self._ascending():
            why = f"buckets that do not ascend within 0 and {self.n_buckets - 1}"
            return [Claim.check("bags", why, Kind.EXACT, math.nan, 0.0, "TXT-1")]
        train, labels, weights = self._training_part(X, y, sample_weight)
        last = len(self.classes_) - 1
        codes = np.minimum(
            np.searchsorted(self.classes_, labels), last
        )  # of other labels: wrong ones
        encoded, _ = self._features(self.buckets_).encode(train)
        held = None
        if self.validation_indices_ is not None:
            copies = copies_of(X.ids, X.starts)
            held = (*self._held_out(X, y), copies)
        A = bag_matrix(encoded, len(self.input_vectors_))
        return claims(self, train, encoded, A, codes, weights, held, full=full, tol=tol)

    def _remedy(self) -> str:
        return (
            "The model did not learn enough: raise learning_rate (0.1 to 1) or max_iter; with "
            "solver='exact' raise tol or reg."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags
