"""What the classifiers that visit one row at a time share: labels, one-vs-rest, ``fit`` and ``partial_fit``.

Used by :class:`Perceptron` and :class:`SGDClassifier`. Seeds, splits and orders are drawn as scikit-learn
draws them, so that the same ``random_state`` visits the same rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._namespace import array_namespace, is_torch, like, to_numpy
from ..design import RowBlocks
from ..inputs import is_native
from ..iterate import Fit, Stop
from ._attribute_checks import wrong_values
from ._online import MAX_INT, Mask, Online, Plan, Start, at_home, validation_rows

__all__ = ["OnlineClassifier"]

Array = NDArray[np.float64]
Self = TypeVar("Self", bound="OnlineClassifier")


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
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
            Training rows. Row blocks are read in order, once an epoch for each binary problem; ``shuffle``
            then means a random order among the rows that are read together (32 MB by default).
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
        self.classes_ = np.unique(at_home(y))
        self.t_ = 1.0
        starts = self._given_starts(X.shape[1], coef_init, intercept_init)
        self.__dict__.pop("coef_", None)  # a run that breaks off leaves no model behind
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
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
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
            Its certificate is about the rows of this call. A call that breaks off leaves the model as
            it was, without a certificate.
        """
        first = not hasattr(self, "coef_")
        if first:
            self._check_parameters(partial=True)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=first)
        _check_partial_fit_first_call(self, classes)
        self.__dict__.pop("certificate_", None)
        self.t_ = getattr(self, "t_", 1.0)
        starts = self._starts(X.shape[1], resume=not first)
        self._train(X, y, sample_weight, starts, 1, streams=True)
        return cast(Self, self._seal(X, y, sample_weight, "partial_fit makes one epoch"))

    def decision_function(self, X: Any) -> Any:
        """Scores X @ coef_.T + intercept_: one column a class, or one number for two classes."""
        check_is_fitted(self)
        if not is_native(X) and not is_torch(self.coef_):
            return super().decision_function(X)
        scores = self._scores_of(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The label with the largest score; a tensor on the device of X where X is one."""
        scores = self.decision_function(X)
        xp = array_namespace(scores)
        if scores.ndim == 1:
            chosen = xp.astype(scores > 0, xp.int64)
        else:
            chosen = xp.argmax(scores, axis=1)
        return like(self.classes_, scores)[chosen]

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
        check_classification_targets(np.unique(to_numpy(y)) if is_torch(y) else y)
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
        rows, y, sample_weight = at_home(X), at_home(y), at_home(sample_weight)
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        plans = list(self._plans(rows, y, sample_weight))
        witness = self._wants_witness(streams=streams)
        jobs = [(rows, plan, start, max_iter) for plan, start in zip(plans, starts)]
        if len(jobs) == 1 or isinstance(X, RowBlocks):
            fits = [self._run(*job, witness=witness) for job in jobs]
        else:
            parallel = Parallel(n_jobs=self.n_jobs, require="sharedmem")
            fits = parallel(delayed(self._run)(*job, witness=witness) for job in jobs)
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.t_ += self.n_iter_ * X.shape[0]
        self._keep(fits, plans, rows, streams=streams)
        self._place(X)
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

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        expected = compute_class_weight(self.class_weight, classes=self.classes_, y=at_home(y))
        yield from wrong_values("class_weight_", self.class_weight_, expected)

    def _shape(self, n_features: int) -> tuple[int, ...]:
        return (1 if len(self.classes_) == 2 else len(self.classes_), n_features)

    def _binary_problem(self, k: int, y: Any, sample_weight: Any) -> tuple[Array, Array]:
        """Signs and weights of the rows: the second class against the first, or class k against all."""
        y, sample_weight = at_home(y), at_home(sample_weight)
        binary = len(self.classes_) == 2
        positive = 1 if binary else k
        signs = np.where(y == self.classes_[positive], 1.0, -1.0)
        rest = self.class_weight_[0] if binary else 1.0
        weights = np.where(signs > 0, self.class_weight_[positive], rest)
        return signs, weights if sample_weight is None else weights * sample_weight


def _mistake_rate(
    rows: Callable[[Array], Array], positive: Mask, weights: Array | None
) -> Callable[[Array, float], float]:
    """Minus the weighted accuracy on the held-out rows, which scikit-learn watches."""
    return lambda w, b: -float(np.average((rows(w) + b > 0) == positive, weights=weights))
