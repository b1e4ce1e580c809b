"""The models of one fold for all candidates of a group, and their answers computed together.

A model handed out is a real estimator with its fitted attributes; only its ``predict`` (or another method
from which its answers follow, such as ``decision_function``) looks first whether it is asked about the rows
of its own fold, for which the answers of all candidates come from one product. It carries no certificate,
and none of the attributes that serve only that.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

__all__ = ["FoldModels", "LinearModels"]

Array = NDArray[np.float64]
_ANSWERS = 1 << 23  # numbers kept at a time: 64 MiB


class FoldModels(ABC):
    """The candidates of a group, fitted to the training rows of one fold.

    Attributes
    ----------
    answers_by : str
        The method whose answers are computed for all candidates at once.
    missing : frozenset of int
        Candidates that were not solved, and are for the caller to fit.
    """

    answers_by: ClassVar[str] = "predict"

    def __init__(self, template: Any, values: Sequence[dict[str, Any]]) -> None:
        self.template, self.values = template, values
        self.missing: frozenset[int] = frozenset()
        self._asked: dict[int, _Answers] = {}

    @abstractmethod
    def attributes(self, j: int) -> dict[str, Any]:
        """The fitted attributes of the j-th candidate."""

    @abstractmethod
    def answers(self, X: Any, first: int, last: int) -> Sequence[Any]:
        """Answers of the candidates from ``first`` to before ``last`` for the rows of X."""

    def predictions(self, X: Any) -> Sequence[Any] | None:
        """Predictions of all candidates, where they are not the answers and do not follow from decisions."""
        if self.answers_by in ("predict", "decision_function"):
            return None
        none = np.empty(0)
        return [
            none if j in self.missing else self.model(j, (X,)).predict(X)
            for j in range(len(self.values))
        ]

    def squared_errors(self, which: str) -> Array | None:
        """Sums of squared errors (m, T) on the test or training rows, where they cost no prediction."""
        return None

    def parts(self, which: str) -> list[tuple[list[int], FoldModels, Any]]:
        """(candidates, their models, X), where the test or training rows are not those of the caller."""
        return []

    def model(self, j: int, own: Sequence[Any] = ()) -> Any:
        """The j-th candidate as an estimator that knows its answers for the objects in ``own``."""
        model = copy.copy(self.template)
        model.__dict__.update(self.values[j])
        model.__dict__.update(self.attributes(j))
        ordinary = getattr(model, self.answers_by)

        def answer(X: Any, *args: Any, **options: Any) -> Any:
            for rows in own:
                if X is rows and not args and not options:
                    return self.asked(rows).of(j)
            return ordinary(X, *args, **options)

        if own:
            answer.__name__ = self.answers_by  # scorers look which method they were given
            model.__dict__[self.answers_by] = answer
        return model

    def asked(self, rows: Any) -> _Answers:
        """The answers for some rows, as far as they are there."""
        if id(rows) not in self._asked:
            self._asked[id(rows)] = _Answers(self, rows)
        return self._asked[id(rows)]


class _Answers:
    """Answers of all candidates for the same rows, a stretch of candidates at a time."""

    def __init__(self, models: FoldModels, rows: Any) -> None:
        self.models, self.rows = models, rows
        self.first, self.last = 0, 0
        self.values: Sequence[Any] = ()

    def of(self, j: int) -> Any:
        if not self.first <= j < self.last:
            count = len(self.models.values)
            width = max(1, _ANSWERS // max(1, _num_samples(self.rows)))
            self.first = j - j % width
            self.last = min(self.first + width, count)
            self.values = self.models.answers(self.rows, self.first, self.last)
        return self.values[j - self.first]


class LinearModels(FoldModels):
    """Linear models: coefficients (m, p, T) and intercepts (m, T), in the precision of the data.

    Parameters
    ----------
    template : estimator
    values : sequence of dict
        The parameters of the candidates that are not those of the template.
    coef, intercept : arrays
    single : bool
        One target: ``coef_`` is a vector and ``intercept_`` a number (for ``rows=True``, one row and an array
        of one).
    rows : bool
        Whether ``coef_`` has a row even for one target, as in LogisticRegression.
    extra : sequence of dict, optional
        More fitted attributes of each candidate.
    """

    def __init__(
        self,
        template: Any,
        values: Sequence[dict[str, Any]],
        coef: NDArray[Any],
        intercept: NDArray[Any],
        *,
        single: bool,
        rows: bool = False,
        extra: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(template, values)
        self.coef, self.intercept, self.single, self.by_row = coef, intercept, single, rows
        self.extra = extra
        if not np.isfinite(coef).all():
            raise FloatingPointError("the fits of a fold overflowed")

    def attributes(self, j: int) -> dict[str, Any]:
        coef, intercept = np.ascontiguousarray(self.coef[j].T), self.intercept[j]
        if self.single and not self.by_row:
            coef, intercept = coef[0], intercept[0]
        if not self.by_row and not self.values[j].get("fit_intercept", self.template.fit_intercept):
            intercept = 0.0
        more = {} if self.extra is None else self.extra[j]
        return {"coef_": coef, "intercept_": intercept, **more}

    def answers(self, X: Any, first: int, last: int) -> Sequence[Any]:
        if not (isinstance(X, np.ndarray) or hasattr(X, "tocsr")):  # a data frame, a list
            X = np.asarray(X, dtype=self.coef.dtype)
        W, b = self.coef[first:last], self.intercept[first:last]
        m, p, T = W.shape
        across = np.ascontiguousarray(np.moveaxis(W, 1, 2).reshape(m * T, p))
        if isinstance(X, np.ndarray):
            Z = across @ X.T  # a row a candidate, so that each answer is in one piece
        else:
            Z = np.ascontiguousarray(np.asarray(X @ across.T).T)
        Z += b.reshape(-1, 1)
        return list(Z if self.single else np.moveaxis(Z.reshape(m, T, -1), 1, 2))
