"""What the models that visit one row at a time share: plans, runs, splits, and how they take their data.

Used by :class:`Perceptron`, :class:`SGDClassifier` and :class:`SGDRegressor`. Seeds, splits and orders are
drawn as scikit-learn draws them, so that the same ``random_state`` visits the same rows.

One row after the other is no work for a GPU: tensors are visited as numpy arrays, without a copy where they
are in the memory of the host, and copied there once where they are on a device. The model is put back
next to X.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils.validation import validate_data

from .._namespace import is_torch, like, to_numpy
from ..base import ANYWHERE, Certified
from ..design import RowBlocks, as_design
from ..inputs import is_native, validate_native_X
from ..iterate import Fit, Stop, run
from ..solvers.linear_sgd import Point, Rules, linear_sgd
from ._attribute_checks import wrong_counts, wrong_shapes
from .base import stored

__all__ = ["MAX_INT", "Mask", "Online", "Plan", "Start", "at_home", "validation_rows"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
MAX_INT = np.iinfo(np.int32).max


class Plan(NamedTuple):
    """One run, before it is made."""

    targets: Array
    weights: Array  # of each row's loss
    seed: int
    held_out: Mask | None
    error: Callable[[Array, float], float] | None  # on the rows held out


class Start(NamedTuple):
    """Where a run starts."""

    w: Array
    b: float
    mean: tuple[Array, float] | None = None  # of the iterates before, with averaging


class Online(SparseCoefMixin, Certified):
    """A linear model trained row by row."""

    coef_: Any
    intercept_: Any
    n_iter_: int
    t_: float
    tol: float | None
    max_iter: int
    shuffle: bool
    verbose: int
    penalty: str | None
    alpha: float
    l1_ratio: float | None
    early_stopping: bool
    validation_fraction: float
    random_state: Any

    @abstractmethod
    def _rules(self) -> Rules:
        """Loss, step and penalty, from the parameters."""

    def _accepts(self) -> frozenset[str]:
        return ANYWHERE

    def _check_parameters(self, *, partial: bool) -> None:
        """Refuse parameters that do not go together."""
        if partial and self.early_stopping:
            raise ValueError(
                "early_stopping should be False with partial_fit, got early_stopping=True: "
                "watch the validation error between the calls instead."
            )

    def _penalty_strengths(self) -> tuple[float, float]:
        """Factors of ||w||_1 and of ||w||^2 / 2."""
        ratio = float(self.l1_ratio or 0.0)
        share = {None: 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": ratio}[self.penalty]
        alpha = float(self.alpha) if self.penalty is not None else 0.0
        return alpha * share, alpha * (1.0 - share)

    def _held_out(self, y: Any, sample_weight: Array | None, *, stratify: bool) -> Mask | None:
        """The mask of the validation rows; None without early stopping."""
        if not self.early_stopping:
            return None
        kind = StratifiedShuffleSplit if stratify else ShuffleSplit
        split = kind(test_size=self.validation_fraction, random_state=self.random_state)
        _, rows = next(split.split(np.zeros((len(y), 1)), y))
        if sample_weight is not None and not np.any(sample_weight[rows]):
            raise ValueError(
                "The sample weights for validation set are all zero, consider using a different "
                f"random state than random_state={self.random_state!r}."
            )
        mask = np.zeros(len(y), dtype=np.bool_)
        mask[rows] = True
        return mask

    def _validate(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, **checks: Any) -> Any:
        if self.early_stopping and sample_weight is not None and not np.any(at_home(sample_weight)):
            raise ValueError(
                "The sample weights for validation set are all zero, consider using a different random "
                "state. All weights are zero here: give some rows a positive sample_weight."
            )
        return super()._validate(X, y, sample_weight, reset=reset, **checks)

    def _run(
        self, X: Any, plan: Plan, start: Start, max_iter: int, *, witness: bool = False
    ) -> Fit:
        """Make one run; ``fit.x`` is a Point."""
        rules = self._rules()
        steps = linear_sgd(
            X,
            plan.targets,
            rules,
            weights=plan.weights,
            held_out=plan.held_out,
            seed=plan.seed if self.shuffle else None,
            start=(start.w, start.b),
            mean=start.mean,
            t=self.t_,
            max_iter=max_iter,
            error=plan.error,
            witness=witness,
            chunk=1 if self.verbose else None,
        )
        fit = run(
            steps,
            certify=_epoch_updates if rules.ends_clean else None,
            max_iter=max_iter,
            callback=lambda _, iterate: bool(iterate.x.verdict),
            verbose=int(self.verbose),
            name=type(self).__name__,
        )
        if fit.stop is Stop.DIVERGED:
            raise ValueError(
                f"Floating-point under-/overflow occurred at epoch #{fit.n_iter}: eta0={rules.eta0} "
                "and the values of X are too large. Scaling input data with StandardScaler or "
                "MinMaxScaler might help."
            )
        if fit.stop is Stop.CALLBACK:
            fit.stop = Stop.FLAT if plan.error is None else Stop.VALIDATION
        return fit

    def _warn_of_max_iter(self, stops: list[Stop]) -> None:
        if self.tol is not None and Stop.MAX_ITER in stops:
            warnings.warn(
                "Maximum number of iteration reached before convergence. Consider increasing max_iter to "
                f"improve the fit. {type(self).__name__} made max_iter={self.max_iter} epochs while the "
                "objective was still falling; raising tol ends it sooner.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        shape = self._shape(int(X.shape[1]))
        offsets = shape[:1] if len(shape) == 2 else (1,)
        yield from wrong_shapes(self, coef_=shape, intercept_=offsets, t_=())
        yield from wrong_counts(self, least=1, n_iter_=())
        if not self.t_ >= 1.0 + self.n_iter_:
            yield f"t_ is {self.t_!r} after {self.n_iter_} epochs"

    @abstractmethod
    def _shape(self, n_features: int) -> tuple[int, ...]:
        """The shape of ``coef_``."""

    def _planes(self) -> tuple[Array, Array]:
        """(problems, d) weights and their offsets in float64, dense again after ``sparsify``."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else to_numpy(self.coef_)
        coef = np.atleast_2d(coef).astype(np.float64)
        return coef, to_numpy(self.intercept_).astype(np.float64)

    def _place(self, X: Any) -> None:
        """Put the model next to X, where X is a tensor."""
        if is_torch(X):
            for name in ("coef_", "intercept_", "standard_coef_", "standard_intercept_"):
                if name in self.__dict__:
                    setattr(self, name, like(getattr(self, name), X))

    def _scores_of(self, X: Any) -> Any:
        """(n, problems) scores, in the precision of X and of the model, where X lives."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else to_numpy(self.coef_)
        coef, intercept = np.atleast_2d(coef).T, to_numpy(self.intercept_)
        if not is_native(X):
            X = validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
            )
            return np.asarray(X @ coef) + intercept
        X = validate_native_X(self, X, reset=False)
        if is_torch(X):
            return X @ stored(coef, X) + stored(intercept, X)
        return X.dot(coef.astype(np.float64)) + intercept

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def at_home(values: Any) -> Any:
    """A tensor as a numpy array, without a copy where it is in the memory of the host; others as they are."""
    return to_numpy(values) if is_torch(values) else values


def validation_rows(X: Any, held_out: Mask) -> Callable[[Array], Array]:
    """The function w -> X[held_out] @ w."""
    if isinstance(X, RowBlocks):
        return lambda w: as_design(X).dot(w)[held_out]
    rows = X[held_out]
    return lambda w: rows @ w


def _epoch_updates(point: Point) -> float:
    return float(point.epoch_updates)
