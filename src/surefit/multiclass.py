"""Several classes from two: one-vs-rest and one-vs-one, around any classifier.

Scores come from ``decision_function``, or from ``predict_proba`` where there is none. The claims of a whole
are those of its parts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import (
    _check_partial_fit_first_call,
    check_classification_targets,
    type_of_target,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ._binary_parts import ConstantPredictor, fitted_part, part_has, score_of, threshold_of
from .base import Certified
from .certificate import Certificate, Claim, Kind, verify

__all__ = ["OneVsOneClassifier", "OneVsRestClassifier"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_RULES: dict[str, list[Any]] = {
    "estimator": [HasMethods("fit")],
    "n_jobs": [Integral, None],
    "certify": Certified._certify_constraint,
}


class _Reduction(ClassifierMixin, MetaEstimatorMixin, Certified):
    """What the two reductions share: one clone fitted for each part, and their claims collected."""

    estimator: Any
    n_jobs: int | None
    classes_: Any
    _what: ClassVar[str] = "classes"  # in the words of an error
    _parts: Any  # of y: for each binary problem its name, the rows in it, which rows are positive

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    @_fit_context(prefer_skip_nested_validation=False)  # the parts validate their own parameters
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit one clone of ``estimator`` for each binary problem.

        Parameters
        ----------
        X, y, sample_weight : array-like
            Training rows (dense or sparse), labels, and weights, which ``estimator`` must then take.

        Returns
        -------
        self
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        if sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight was given, but fit of estimator={self.estimator!r} does not take it: "
                "leave it out, or choose an estimator that does."
            )
        self._learn_classes(y)
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(fitted_part)(clone(self.estimator), rows, labels, weights)
            for _, rows, labels, weights in self._problems(X, y, sample_weight)
        )
        return self._seal(X, y, sample_weight, "all binary problems are fitted")

    @available_if(part_has("partial_fit"))
    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """``partial_fit`` of each part on these rows.

        Parameters
        ----------
        X, y, sample_weight : array-like
            Rows, labels, and weights, which ``estimator`` must then take.
        classes : array-like, default=None
            All labels there will ever be; needed on the first call.

        Returns
        -------
        self
            Its certificate is about the rows of this call.
        """
        first = _check_partial_fit_first_call(self, classes)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=first)
        if len(np.setdiff1d(y, self.classes_)):
            raise ValueError(
                f"Mini-batch contains {np.unique(y)} while {self._what} must be subset of {self.classes_}"
            )
        problems = list(self._problems(X, y, sample_weight))
        if first:
            self.estimators_ = [clone(self.estimator) for _ in problems]
        both = np.array([0, 1])
        self.estimators_ = [
            part.partial_fit(rows, labels, classes=both, **weights) if len(labels) else part
            for part, (_, rows, labels, weights) in zip(self.estimators_, problems)
        ]
        return self._seal(X, y, sample_weight, "partial_fit visits the rows once")

    def _learn_classes(self, y: Any) -> None:
        self.classes_ = np.unique(y)

    def _checked(self, X: Any) -> Any:
        """Rows to score; what they may hold beyond numbers is for the parts to say."""
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False,
            reset=False,
        )  # fmt: skip

    def _problems(self, X: Any, y: Any, sample_weight: Any) -> Iterator[tuple[str, Any, Any, Any]]:
        pairwise = get_tags(self).input_tags.pairwise
        for name, rows, positive in self._parts(y):
            weights = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
            part = X if rows.all() else X[rows]
            if pairwise and not rows.all():  # a kernel matrix is cut both ways
                part = part[:, rows]
            yield name, part, positive[rows].astype(np.int64), weights

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        checked = self._validate(
            X, y, sample_weight, reset=reset, accept_sparse="csr", ensure_all_finite=False
        )
        check_classification_targets(checked[1])
        return checked

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        """The claims of the parts, each under the name of its problem."""
        claims: list[Claim] = []
        problems = self._problems(X, y, sample_weight)
        for part, (name, rows, labels, weights) in zip(self.estimators_, problems):
            found = getattr(part, "certificate_", Certificate(()))
            if len(labels) == 0:
                missing = "the data have no row of these classes"
                found = Certificate((Claim.check("rows", missing, Kind.EXACT, 1, 0, "PER-9"),))
            elif isinstance(part, ConstantPredictor):
                wrong = int((part.predict(rows) != labels).sum())
                told = (
                    f"a constant was fitted, and {wrong} of {len(labels)} rows have another label"
                )
                found = Certificate((Claim.check("constant", told, Kind.EXACT, wrong, 0, "PER-8"),))
            elif full and isinstance(part, Certified):
                found = verify(part, rows, labels, **weights)
            elif not found.claims:
                why = f"{type(part).__name__} left no certificate, so nothing is claimed about it"
                found = Certificate((Claim.undecided("fit", why, Kind.EXACT, "PER-8"),))
            claims += [replace(claim, name=f"{name}: {claim.name}") for claim in found.claims]
        return claims

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.sparse, inner.pairwise
        tags.input_tags.allow_nan = inner.allow_nan
        return tags


class OneVsRestClassifier(_Reduction):
    r"""One classifier a class, that class against all others; the largest score wins.

    :math:`\hat y(x) = \arg\max_k \langle x, w_k\rangle + b_k`, with c classifiers for c > 2 classes. For
    two classes the two would mirror each other: one is fitted, and its sign decides. Of several equal
    scores the first in ``classes_`` wins. An indicator matrix as y means several labels a row: each has its
    own classifier, and its sign decides.

    Parameters
    ----------
    estimator : estimator
        With ``fit`` and ``decision_function``, or ``predict_proba``; a regressor is asked for its prediction.
    n_jobs : int, default=None
        Fits at the same time.
    verbose : int, default=0
        Kept for scikit-learn's signature; the progress shown is that of ``estimator``.
    certify : bool or 'full', default=True
        Which claims of the parts to collect.

    Attributes
    ----------
    estimators_ : list of estimators
        One for each class; a single one for two classes.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    multilabel_ : bool
        Whether y was an indicator matrix.
    certificate_ : Certificate
        The claims of the parts, named ``"<class> vs rest: <claim>"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from surefit.linear_model import Perceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsRestClassifier(Perceptron()).fit(X, y)
    >>> len(model.estimators_), model.certificate_["0 vs rest: training mistakes"].observed
    (3, 0.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**_RULES, "verbose": ["verbose"]}

    def __init__(
        self,
        estimator: Any,
        *,
        n_jobs: int | None = None,
        verbose: int = 0,
        certify: bool | str = True,
    ) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.certify = certify

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the highest score; of an indicator matrix, those above the threshold."""
        X = self._checked(X)
        scores = np.column_stack([score_of(part, X) for part in self.estimators_])
        if self.multilabel_ or scores.shape[1] == 1:
            chosen = scores > threshold_of(self.estimators_[0])
            if self.multilabel_:
                return self.label_binarizer_.inverse_transform(
                    sp.csr_array(chosen.astype(np.int64))
                )
            return self.classes_[chosen[:, 0].astype(int)]
        return self.classes_[scores.argmax(axis=1)]

    @available_if(part_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Scores of shape (n_samples, n_classes); of two classes, those of the second."""
        X = self._checked(X)
        scores = [part.decision_function(X) for part in self.estimators_]
        return scores[0] if len(scores) == 1 else np.column_stack([np.ravel(z) for z in scores])

    @available_if(part_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probabilities of shape (n_samples, n_classes): of the parts, and, unless several labels may go with
        a row, divided by their sum."""
        X = self._checked(X)
        p = np.column_stack([np.asarray(part.predict_proba(X))[:, 1] for part in self.estimators_])
        if len(self.estimators_) == 1:
            p = np.hstack([1.0 - p, p])
        if self.multilabel_:
            return p
        total = p.sum(axis=1, keepdims=True)
        return np.divide(p, total, out=p, where=total != 0)

    @property
    def label_binarizer_(self) -> LabelBinarizer:
        """scikit-learn's encoder of these labels."""
        if getattr(self, "multilabel_", False):
            return LabelBinarizer(sparse_output=self.sparse_labels_).fit(
                sp.csr_array(np.eye(len(self.classes_), dtype=np.int64))
                if self.sparse_labels_
                else np.eye(len(self.classes_), dtype=np.int64)
            )
        return LabelBinarizer(sparse_output=True).fit(self.classes_)

    def _learn_classes(self, y: Any) -> None:
        self.multilabel_ = y.ndim == 2
        self.classes_ = np.arange(y.shape[1]) if self.multilabel_ else np.unique(y)
        if len(self.classes_) == 1 and not self.multilabel_:
            return  # a constant, and nothing to warn of
        for label, (_, _, positive) in zip(self._labels(), self._parts(y)):
            if positive.all() or not positive.any():
                what = label if positive.all() else f"not {label}"
                warnings.warn(f"Label {what} is present in all training examples.", stacklevel=4)

    def _labels(self) -> Any:
        binary = len(self.classes_) == 2 and not self.multilabel_
        return self.classes_[1:] if binary else self.classes_

    def _parts(self, y: Any) -> Iterator[tuple[str, Mask, Mask]]:
        every = np.ones(len(y), dtype=np.bool_)
        for k, label in enumerate(self._labels()):
            positive = y[:, k] != 0 if self.multilabel_ else y == label
            single = len(self.classes_) == 1 and not self.multilabel_
            yield f"{label} vs rest", every, positive & (not single)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        table = y if sp.issparse(y) else np.asarray(y)
        several = table.ndim == 2 and table.shape[1] > 1
        kind = type_of_target(table, input_name="y") if several else ""
        if kind.startswith("multilabel"):
            sparse = sp.issparse(y)
            if reset:
                self.sparse_labels_ = sparse
            y = y.toarray() if sparse else y
            X, y, sample_weight = self._validate(
                X, y, sample_weight, reset=reset, accept_sparse="csr", ensure_all_finite=False,
                multi_output=True,
            )  # fmt: skip
            return X, y, sample_weight
        if "multioutput" in kind:
            raise ValueError("Multioutput target data is not supported with label binarization")
        if reset:
            self.multilabel_ = self.sparse_labels_ = False
        return super()._validate_training_data(X, y, sample_weight, reset=reset)


class OneVsOneClassifier(_Reduction):
    r"""One classifier a pair of classes; they vote.

    The classifier of classes k < l is positive for l, and :math:`w_{lk} = -w_{kl}`, so :math:`c(c-1)/2` are
    fitted. Class k gets :math:`\sum_{l\ne k} 1[\langle x, w_{kl}\rangle + b_{kl} > 0]` votes (PER-9). Of
    several classes with the most votes, the one with the largest sum of scores wins: as in scikit-learn,
    the sum S, scaled to :math:`S / (3 (|S| + 1))`, is added to the votes, which it cannot overrule.
    ``tie_break=False`` gives the bare votes of the notes, where a score of exactly 0 is a vote for neither
    and the first in ``classes_`` wins a tie; ``scores=True`` sums the scores themselves.

    Parameters
    ----------
    estimator : estimator
        With ``fit`` and ``decision_function``, or ``predict_proba``.
    scores : bool, default=False
        Sum scores instead of votes.
    n_jobs : int, default=None
        Fits at the same time.
    tie_break : bool, default=True
        Whether scores decide between classes with as many votes.
    certify : bool or 'full', default=True
        Which claims of the parts to collect.

    Attributes
    ----------
    estimators_ : list of estimators
        One for each pair of classes: first and second, first and third, ...
    classes_ : ndarray of shape (n_classes,)
        The labels.
    pairwise_indices_ : list of ndarray
        With a precomputed kernel, the rows of each pair; None otherwise.
    certificate_ : Certificate
        The claims of the parts, named ``"<class> vs <class>: <claim>"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from surefit.linear_model import Perceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsOneClassifier(Perceptron(), tie_break=False).fit(X, y)
    >>> len(model.estimators_), model.decision_function(X[:1]).tolist()
    (3, [[2.0, 1.0, 0.0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_RULES,
        "scores": ["boolean"],
        "tie_break": ["boolean"],
    }
    _what = "it"

    def __init__(
        self,
        estimator: Any,
        *,
        scores: bool = False,
        n_jobs: int | None = None,
        tie_break: bool = True,
        certify: bool | str = True,
    ) -> None:
        self.estimator = estimator
        self.scores = scores
        self.n_jobs = n_jobs
        self.tie_break = tie_break
        self.certify = certify

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the highest ``decision_function``; of several, the first in ``classes_``."""
        totals = self.decision_function(X)
        if totals.ndim == 1:
            plain = self.scores or not self.tie_break
            threshold = 0.0 if plain else threshold_of(self.estimators_[0])
            return self.classes_[(totals > threshold).astype(int)]
        return self.classes_[totals.argmax(axis=1)]

    def decision_function(self, X: Any) -> Array:
        """Votes or summed scores of shape (n_samples, n_classes); of two classes, one column of them."""
        X = self._checked(X)
        cut = getattr(self, "pairwise_indices_", None) or [slice(None)] * len(self.estimators_)
        rows = [X if isinstance(index, slice) else X[:, index] for index in cut]
        margins = np.column_stack([score_of(part, r) for part, r in zip(self.estimators_, rows)])
        pairs = list(combinations(range(self.n_classes_), 2))
        sums, votes = (np.zeros((len(margins), self.n_classes_)) for _ in range(2))
        for column, (k, other) in zip(margins.T, pairs):
            sums[:, k] -= column
            sums[:, other] += column
            votes[:, k] += column < 0
            votes[:, other] += column > 0
        if self.n_classes_ == 2 and (self.scores or not self.tie_break):
            return margins.ravel()
        if self.scores:
            return sums
        if not self.tie_break:
            return votes
        votes[:] = 0.0
        for part, r, (k, other) in zip(self.estimators_, rows, pairs):
            said = part.predict(r)
            votes[:, k] += said == 0
            votes[:, other] += said == 1
        totals = votes + sums / (3.0 * (np.abs(sums) + 1.0))
        return totals[:, 1] if self.n_classes_ == 2 else totals

    def _learn_classes(self, y: Any) -> None:
        super()._learn_classes(y)
        if len(self.classes_) < 2:
            raise ValueError(
                "OneVsOneClassifier can not be fit when only one class is present. The number of classes "
                f"has to be greater than one; got 1 class: all of y is {self.classes_[0]!r}. Add rows of "
                "another class."
            )
        pairwise = get_tags(self).input_tags.pairwise
        self.pairwise_indices_ = (
            [np.flatnonzero(rows) for _, rows, _ in self._parts(y)] if pairwise else None
        )

    def _parts(self, y: Any) -> Iterator[tuple[str, Mask, Mask]]:
        for first, second in combinations(self.classes_, 2):
            yield f"{first} vs {second}", (y == first) | (y == second), y == second
