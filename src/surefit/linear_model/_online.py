"""What the models that visit one row at a time share: plans, runs, labels, the contract of ``partial_fit``.

Used by :class:`Perceptron`, :class:`SGDClassifier` and :class:`SGDRegressor`. Seeds, splits and orders are
drawn as scikit-learn draws them, so that the same ``random_state`` visits the same rows.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.parallel import Parallel, delayed

from ..base import Certified
from ..design import RowBlocks, as_design
from ..inputs import is_native
from ..iterate import Fit, Stop, run
from ..solvers.linear_sgd import Point, Rules, linear_sgd
from .base import native_scores

__all__ = ["MAX_INT", "Online", "OnlineClassifier", "Plan", "Start"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
MAX_INT = np.iinfo(np.int32).max
Self = TypeVar("Self", bound="OnlineClassifier")


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
        return frozenset({"dense", "sparse", "blocks"})

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
        if self.early_stopping and sample_weight is not None and not np.any(sample_weight):
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

    def _planes(self) -> tuple[Array, Array]:
        """(problems, d) weights and their offsets in float64, dense again after ``sparsify``."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else np.asarray(self.coef_)
        coef = np.atleast_2d(coef).astype(np.float64)
        return coef, np.asarray(self.intercept_, dtype=np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OnlineClassifier(LinearClassifierMixin, Online):
    """A classifier trained row by row; several classes are treated one-vs-rest."""

    classes_: Any
    class_weight: Any
    warm_start: bool
    n_jobs: int | None

    @abstractmethod
    def _keep(self, fits: list[Fit], plans: list[Plan], X: Any, *, streams: bool) -> None:
        """Set the fitted attributes of a subclass from its runs."""

    def _starts(self, n_features: int, *, resume: bool) -> list[Start]:
        """Where ``partial_fit`` goes on: at 0 on the first call."""
        if not resume:
            return self._given_starts(n_features, None, None)
        return [Start(w, float(b)) for w, b in zip(*self._planes())]

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self: Self,
        X: Any,
        y: Any,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Visit the rows, epoch after epoch, until a stopping rule fires.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowBlocks} of shape (n_samples, n_features)
            Training rows. Row blocks are visited in order, shuffled inside each block.
        y : array-like of shape (n_samples,)
            Labels.
        coef_init, intercept_init : array-like, default=None
            Where to start; shaped like ``coef_`` and ``intercept_``. None: at 0.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative factors on the step.

        Returns
        -------
        self
        """
        self._check_parameters(partial=False)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        if self.warm_start and hasattr(self, "coef_"):
            coef, intercept = self._planes()
            coef_init = coef if coef_init is None else coef_init
            intercept_init = intercept if intercept_init is None else intercept_init
        self.classes_ = np.unique(y)
        self.t_ = 1.0
        starts = self._given_starts(X.shape[1], coef_init, intercept_init)
        stops = self._train(X, y, sample_weight, starts, self.max_iter, streams=False)
        self._warn_of_max_iter(stops)
        reasons = sorted({stop.value for stop in stops})
        return cast(Self, self._seal(X, y, sample_weight, "; ".join(reasons)))

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self: Self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """One epoch over these rows, from where the model stands.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowBlocks} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like, default=None
            All labels there will ever be; needed on the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative factors on the step.

        Returns
        -------
        self
            Its certificate is about the rows of this call.
        """
        first = not hasattr(self, "classes_")
        if first:
            self._check_parameters(partial=True)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=first)
        _check_partial_fit_first_call(self, classes)
        self.t_ = getattr(self, "t_", 1.0)
        starts = self._starts(X.shape[1], resume=not first)
        self._train(X, y, sample_weight, starts, 1, streams=True)
        return cast(Self, self._seal(X, y, sample_weight, "partial_fit makes one epoch"))

    def decision_function(self, X: Any) -> Any:
        """Scores X @ coef_.T + intercept_: one column a class, or one number for two classes."""
        if not is_native(X):
            return super().decision_function(X)
        scores = native_scores(self, X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _check_parameters(self, *, partial: bool) -> None:
        super()._check_parameters(partial=partial)
        if partial and self.class_weight == "balanced":
            raise ValueError(
                "class_weight 'balanced' is not supported for partial_fit. In order to use 'balanced' "
                "weights, use compute_class_weight('balanced', classes=classes, y=y). In place of y you "
                "can use a large enough sample of the full training set target to properly estimate "
                "the class frequency distributions. Pass the resulting weights as the class_weight "
                "parameter. Got class_weight='balanced'; a dict is needed."
            )

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(
            X, y, sample_weight, reset=reset, accept_sparse="csr", order="C"
        )
        check_classification_targets(y)
        return X, y, sample_weight

    def _given_starts(
        self, n_features: int, coef_init: ArrayLike | None, intercept_init: ArrayLike | None
    ) -> list[Start]:
        """Copies of the given weights and offsets, or zeros; one a binary problem."""
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {n_classes} class: "
                f"y has the single label {self.classes_.tolist()}. Add rows of another class."
            )
        problems = 1 if n_classes == 2 else n_classes
        W, b = np.zeros((problems, n_features)), np.zeros(problems)
        for name, given, target in (
            ("coef_init", coef_init, W),
            ("intercept_init", intercept_init, b),
        ):
            if given is None:
                continue
            values = np.asarray(given, dtype=np.float64)
            if problems == 1 and values.size == target.size:
                values = values.reshape(target.shape)
            if values.shape != target.shape:
                raise ValueError(
                    f"Provided {name} does not match dataset. {name} has shape {values.shape}, but "
                    f"{n_classes} classes and {n_features} features need {target.shape}."
                )
            target[...] = values
        return [Start(w, float(offset)) for w, offset in zip(W, b)]

    def _train(
        self,
        X: Any,
        y: Any,
        sample_weight: Array | None,
        starts: list[Start],
        max_iter: int,
        *,
        streams: bool,
    ) -> list[Stop]:
        """Run every binary problem and set the fitted attributes; why each run ended."""
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        plans = list(self._plans(X, y, sample_weight))
        witness = self._wants_witness(streams=streams)
        jobs = [(X, plan, start, max_iter) for plan, start in zip(plans, starts)]
        if len(jobs) == 1 or isinstance(X, RowBlocks):
            fits = [self._run(*job, witness=witness) for job in jobs]
        else:
            parallel = Parallel(n_jobs=self.n_jobs, require="sharedmem")
            fits = parallel(delayed(self._run)(*job, witness=witness) for job in jobs)
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.t_ += self.n_iter_ * X.shape[0]
        self._keep(fits, plans, X, streams=streams)
        return [fit.stop for fit in fits]

    def _wants_witness(self, *, streams: bool) -> bool:
        """Whether a run should hand over a dual point."""
        return False

    def _plans(self, X: Any, y: Any, sample_weight: Array | None) -> Iterator[Plan]:
        """Labels, weights, seed and held-out rows of each binary problem, drawn as scikit-learn does."""
        rng = check_random_state(self.random_state)
        if len(self.classes_) == 2:
            rng.randint(1, MAX_INT)  # scikit-learn draws one number that it does not use
            held_out = self._held_out(y, sample_weight, stratify=True)
            seeds = [int(rng.randint(MAX_INT))]
        else:
            held_out = self._held_out(y, sample_weight, stratify=True)
            seeds = []
            for seed in rng.randint(MAX_INT, size=len(self.classes_)):
                rng_k = check_random_state(int(seed))
                rng_k.randint(1, MAX_INT)
                seeds.append(int(rng_k.randint(MAX_INT)))
        rows = None if held_out is None else validation_rows(X, held_out)
        for k, seed in enumerate(seeds):
            signs, weights = self._binary_problem(k, y, sample_weight)
            error = None
            if held_out is not None and rows is not None:
                given = None if sample_weight is None else sample_weight[held_out]
                error = _mistake_rate(rows, signs[held_out] > 0, given)
            yield Plan(signs, weights, seed, held_out, error)

    def _binary_problem(self, k: int, y: Any, sample_weight: Any) -> tuple[Array, Array]:
        """Signs and weights of the rows: the second class against the first, or class k against all."""
        binary = len(self.classes_) == 2
        positive = 1 if binary else k
        signs = np.where(y == self.classes_[positive], 1.0, -1.0)
        rest = self.class_weight_[0] if binary else 1.0
        weights = np.where(signs > 0, self.class_weight_[positive], rest)
        return signs, weights if sample_weight is None else weights * sample_weight


def validation_rows(X: Any, held_out: Mask) -> Callable[[Array], Array]:
    """The function w -> X[held_out] @ w."""
    if isinstance(X, RowBlocks):
        return lambda w: as_design(X).dot(w)[held_out]
    rows = X[held_out]
    return lambda w: rows @ w


def _mistake_rate(
    rows: Callable[[Array], Array], positive: Mask, weights: Array | None
) -> Callable[[Array, float], float]:
    """Minus the weighted accuracy on the held-out rows, which scikit-learn watches."""
    return lambda w, b: -float(np.average((rows(w) + b > 0) == positive, weights=weights))


def _epoch_updates(point: Point) -> float:
    return float(point.epoch_updates)
