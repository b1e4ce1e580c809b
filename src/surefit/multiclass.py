"""Several classes from two: one-vs-rest and one-vs-one, around any margin classifier.

A margin classifier is one whose ``decision_function`` is positive for its second class. The claims of a
whole are those of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from .base import Certified
from .certificate import Certificate, Claim, Kind, verify

__all__ = ["OneVsOneClassifier", "OneVsRestClassifier"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_RULES: dict[str, list[Any]] = {
    "estimator": [HasMethods(["fit", "decision_function"])],
    "n_jobs": [Integral, None],
    "certify": Certified._certify_constraint,
}


class _Reduction(ClassifierMixin, MetaEstimatorMixin, Certified):
    """What the two reductions share: one clone fitted for each part, and their claims collected."""

    estimator: Any
    n_jobs: int | None
    decision_function: Any
    _parts: Any  # of y: for each binary problem its name, the rows in it, which rows are positive

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
        self.classes_ = np.unique(y)
        self.n_classes_ = len(self.classes_)
        if self.n_classes_ < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got 1 class: all of y is "
                f"{self.classes_[0]!r}. Add rows of another class."
            )
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(clone(self.estimator).fit)(rows, labels, **weights)
            for _, rows, labels, weights in self._problems(X, y, sample_weight)
        )
        return self._seal(X, y, sample_weight, "all binary problems are fitted")

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the highest ``decision_function``; of several, the first in ``classes_``."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def _scores(self, X: Any) -> Array:
        """The margins of all parts, one column each."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.column_stack([part.decision_function(X) for part in self.estimators_])

    def _problems(self, X: Any, y: Any, sample_weight: Any) -> Iterator[tuple[str, Any, Any, Any]]:
        for name, rows, positive in self._parts(y):
            weights = {} if sample_weight is None else {"sample_weight": sample_weight[rows]}
            yield name, X if rows.all() else X[rows], positive[rows].astype(np.int64), weights

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        checked = self._validate(X, y, sample_weight, reset=reset, accept_sparse="csr")
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
            elif full and isinstance(part, Certified):
                found = verify(part, rows, labels, **weights)
            elif not found.claims:
                why = f"{type(part).__name__} left no certificate, so nothing is claimed about it"
                found = Certificate((Claim.undecided("fit", why, Kind.EXACT, "PER-8"),))
            claims += [replace(claim, name=f"{name}: {claim.name}") for claim in found.claims]
        return claims

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


class OneVsRestClassifier(_Reduction):
    r"""One classifier a class, that class against all others; the largest score wins.

    :math:`\hat y(x) = \arg\max_k \langle x, w_k\rangle + b_k`, with c classifiers for c > 2 classes.
    For two classes the two would mirror each other: one is fitted, and its sign decides. Multi-label
    targets are not taken.

    Parameters
    ----------
    estimator : estimator
        A margin classifier: ``fit`` and ``decision_function``.
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

    def _parts(self, y: Any) -> Iterator[tuple[str, Mask, Mask]]:
        for label in self.classes_[1:] if self.n_classes_ == 2 else self.classes_:
            yield f"{label} vs rest", np.ones(len(y), dtype=np.bool_), y == label

    def decision_function(self, X: Any) -> Array:
        """Scores of shape (n_samples, n_classes); of two classes, those of the second."""
        scores = self._scores(X)
        return scores.ravel() if self.n_classes_ == 2 else scores


class OneVsOneClassifier(_Reduction):
    r"""One classifier a pair of classes; they vote.

    The classifier of classes k < l is positive for k, and :math:`w_{lk} = -w_{kl}`, so
    :math:`c(c-1)/2` are fitted. Class k gets :math:`\sum_{l\ne k} 1[\langle x, w_{kl}\rangle + b_{kl} > 0]`
    votes; a score of exactly 0 is a vote for neither, and of several classes with the most votes the
    first in ``classes_`` wins (scikit-learn breaks such ties by the scores). With ``scores=True`` the
    scores themselves are summed instead of votes.

    Parameters
    ----------
    estimator : estimator
        A margin classifier: ``fit`` and ``decision_function``.
    scores : bool, default=False
        Sum scores instead of votes.
    n_jobs : int, default=None
        Fits at the same time.
    certify : bool or 'full', default=True
        Which claims of the parts to collect.

    Attributes
    ----------
    estimators_ : list of estimators
        One for each pair of classes: first and second, first and third, ...
    classes_ : ndarray of shape (n_classes,)
        The labels.
    certificate_ : Certificate
        The claims of the parts, named ``"<class> vs <class>: <claim>"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from surefit.linear_model import Perceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsOneClassifier(Perceptron()).fit(X, y)
    >>> len(model.estimators_), model.decision_function(X[:1]).tolist()
    (3, [[2.0, 1.0, 0.0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**_RULES, "scores": ["boolean"]}

    def __init__(
        self,
        estimator: Any,
        *,
        scores: bool = False,
        n_jobs: int | None = None,
        certify: bool | str = True,
    ) -> None:
        self.estimator = estimator
        self.scores = scores
        self.n_jobs = n_jobs
        self.certify = certify

    def _parts(self, y: Any) -> Iterator[tuple[str, Mask, Mask]]:
        for first, second in combinations(self.classes_, 2):
            yield f"{first} vs {second}", (y == first) | (y == second), y == first

    def decision_function(self, X: Any) -> Array:
        """Votes or summed scores of shape (n_samples, n_classes); of two classes, one score."""
        margins = self._scores(X)
        if self.n_classes_ == 2:
            return -margins.ravel()  # positive for the second class, as everywhere
        totals = np.zeros((len(margins), self.n_classes_))
        for margin, (k, other) in zip(margins.T, combinations(range(self.n_classes_), 2)):
            totals[:, k] += margin if self.scores else margin > 0
            totals[:, other] += -margin if self.scores else -margin > 0
        return totals
