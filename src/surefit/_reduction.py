"""What one-vs-rest and one-vs-one share: a clone fitted for each binary problem, their claims collected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ._binary_parts import ConstantPredictor, fitted_part, part_has
from .base import Certified
from .certificate import Certificate, Claim, Kind, verify

__all__ = ["RULES", "Reduction"]

RULES: dict[str, list[Any]] = {
    "estimator": [HasMethods("fit")],
    "n_jobs": [Integral, None],
    "certify": Certified._certify_constraint,
}


class Reduction(ClassifierMixin, MetaEstimatorMixin, Certified):
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

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        problems = sum(1 for _ in self._parts(y))
        if len(self.estimators_) != problems:
            yield f"estimators_ holds {len(self.estimators_)} parts for {problems} binary problems"
        for part in self.estimators_:
            if type(part) not in (type(self.estimator), ConstantPredictor):
                yield f"estimators_ holds a {type(part).__name__}, and estimator={self.estimator!r}"
        yield from self._wrong_parameters()

    def _wrong_parameters(self) -> Iterator[str]:
        """Parameters of a part that are not those of ``estimator``: it solves another problem."""
        asked = self.estimator.get_params()
        for place, part in enumerate(self.estimators_):
            if isinstance(part, ConstantPredictor):
                continue
            found = part.get_params()
            for name in sorted(asked.keys() | found.keys()):
                if not _is_same_value(asked.get(name), found.get(name)):
                    yield (
                        f"estimators_[{place}] has {name}={found.get(name)!r}, and estimator has "
                        f"{name}={asked.get(name)!r}"
                    )

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
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
                found = verify(part, rows, labels, **weights, tol=tol)
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


def _is_same_value(one: Any, other: Any) -> bool:
    """Whether two parameters are equal; objects without an equality of their own need the same type.

    A clone copies such objects, and a fit may use them up, as it does a random generator.
    """
    if isinstance(one, Real) and isinstance(other, Real):
        return bool(one == other) or (one != one and other != other)
    if type(one) is not type(other):
        return False
    if isinstance(one, BaseEstimator):
        return _is_same_value(one.get_params(deep=False), other.get_params(deep=False))
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_is_same_value, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_same_value(one[k], other[k]) for k in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if not any("__eq__" in vars(base) for base in type(one).__mro__[:-1]):
        return True
    try:
        return bool(one == other)
    except (RuntimeError, TypeError, ValueError):  # sparse matrices and tensors have no yes or no
        return True
