"""Several classes from two: one-vs-rest and one-vs-one, around any classifier.

Scores come from ``decision_function``, or from ``predict_proba`` where there is none. The claims of a whole
are those of its parts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target

from ._binary_parts import part_has, score_of, threshold_of
from ._reduction import RULES, Reduction

__all__ = ["OneVsOneClassifier", "OneVsRestClassifier"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class OneVsRestClassifier(Reduction):
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**RULES, "verbose": ["verbose"]}

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

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        several = np.ndim(y) == 2
        if self.multilabel_ is not several:
            yield f"multilabel_ is {self.multilabel_!r}, and y has the shape {np.shape(y)}"
        elif several and not np.array_equal(self.classes_, np.arange(y.shape[1])):
            yield f"classes_ must number the {y.shape[1]} columns of y"
        elif not several and self.sparse_labels_:
            yield "sparse_labels_ is for indicator matrices, and y has one label a row"
        yield from super()._inconsistencies(X, y, sample_weight)

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


class OneVsOneClassifier(Reduction):
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
        **RULES,
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

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        cut = self.pairwise_indices_
        if (cut is None) == bool(get_tags(self).input_tags.pairwise):
            yield "pairwise_indices_ is for kernel matrices, and is None without one"
        elif cut is not None:
            wanted = [np.flatnonzero(rows) for _, rows, _ in self._parts(y)]
            if len(cut) != len(wanted) or not all(map(np.array_equal, cut, wanted)):
                yield "pairwise_indices_ does not name the rows of each pair of classes"

    def _parts(self, y: Any) -> Iterator[tuple[str, Mask, Mask]]:
        for first, second in combinations(self.classes_, 2):
            yield f"{first} vs {second}", (y == first) | (y == second), y == second
