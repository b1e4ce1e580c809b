"""Linear regression trained by stochastic gradient descent, with the gap that it reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from .._namespace import to_numpy
from ..certificate import Claim
from ..iterate import Fit
from ..solvers.linear_sgd import Rules
from ._online import MAX_INT, Online, Plan, Start, at_home, validation_rows
from ._sgd import CONSTRAINTS, check_rate, inconsistencies, keep, rules_of, warn_of_negative_power
from ._sgd_claims import REGRESSION, claims
from .stochastic_gradient import SGDClassifier

__all__ = ["SGDRegressor"]

Array = NDArray[np.float64]


class SGDRegressor(RegressorMixin, Online):
    r"""Linear regression trained row by row, a drop-in for scikit-learn's ``SGDRegressor``.

    It minimises :math:`\frac1n\sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i)
    + \alpha(\rho\|w\|_1 + \frac{1-\rho}2\|w\|^2)` by steps along the gradient of one row's term at a time.
    Guarantee, certificate, steps and notes are those of :class:`SGDClassifier`; *worst row* is here the
    largest error.

    Parameters
    ----------
    loss : str, default='squared_error'
        'squared_error' (halved), 'huber', 'epsilon_insensitive' or 'squared_epsilon_insensitive'.
    penalty, alpha, l1_ratio, fit_intercept, max_iter, tol, shuffle, verbose, epsilon, random_state
        As in :class:`SGDClassifier`.
    learning_rate : str, default='invscaling'
        'pa1' and 'pa2' go with ``loss='epsilon_insensitive'``.
    eta0 : float, default=0.01
        The first step.
    power_t : float, default=0.25
        Exponent of 'invscaling'.
    early_stopping, validation_fraction, n_iter_no_change
        As in :class:`SGDClassifier`, but the rows are not stratified and their R^2 is watched.
    warm_start, average, max_gap, certify
        As in :class:`SGDClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    n_iter_, t_, dual_, standard_coef_, standard_intercept_, streamed_, certificate_
        As in :class:`SGDClassifier`.
    objective_ : ndarray of shape (1,)
        Loss plus penalty of the fitted model on the training rows.
    worst_ : ndarray of shape (1,)
        The largest error of a training row.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> import surefit
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = surefit.linear_model.SGDRegressor(alpha=0.1, random_state=0).fit(scale(X), y)
    >>> claim = surefit.verify(model, scale(X), y)["duality gap"]
    >>> claim.observed < 0.01 * claim.bound  # how near to the minimum, in terms of a constant's distance
    True
    """

    loss_functions: ClassVar[dict[str, tuple[Any, ...]]] = REGRESSION
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(REGRESSION))],
        **CONSTRAINTS,
    }

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        penalty: str | None = "l2",
        alpha: float = 0.0001,
        l1_ratio: float | None = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        epsilon: float = 0.1,
        random_state: Any = None,
        learning_rate: str = "invscaling",
        eta0: float = 0.01,
        power_t: float = 0.25,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        warm_start: bool = False,
        average: bool | int = False,
        max_gap: float | None = None,
        certify: bool | str = True,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.epsilon = epsilon
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.average = average
        self.max_gap = max_gap
        self.certify = certify

    # ------------------------------------------------------------------ fitting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> SGDRegressor:
        """Visit the rows, epoch after epoch, until a stopping rule fires.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
            Training rows. Row blocks are read in order, once an epoch; ``shuffle`` then means a random order
            among the rows that are read together (32 MB by default).
        y : array-like of shape (n_samples,)
            Targets.
        coef_init, intercept_init : array-like, default=None
            Where to start; None: at 0.
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
        self.t_ = 1.0
        start = _start(X.shape[1], coef_init, intercept_init)
        self.__dict__.pop("coef_", None)  # a run that breaks off leaves no model behind
        fit = self._train(X, y, sample_weight, start, self.max_iter, streams=False)
        self._warn_of_max_iter([fit.stop])
        return cast(SGDRegressor, self._seal(X, y, sample_weight, fit.stop.value))

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> SGDRegressor:
        """One epoch over these rows, from where the model stands.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
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
        self.__dict__.pop("certificate_", None)
        self.t_ = getattr(self, "t_", 1.0)
        start = _start(X.shape[1], None, None)
        if not first:
            W, b = self._planes()
            start = Start(W[0], float(b[0]))
        if not first and self.average and hasattr(self, "standard_coef_"):
            mean = (start.w, start.b) if self.average <= self.t_ - 1.0 else None
            last = to_numpy(self.standard_coef_).astype(np.float64)
            start = Start(last, float(self.standard_intercept_[0]), mean)
        self._train(X, y, sample_weight, start, 1, streams=True)
        return cast(SGDRegressor, self._seal(X, y, sample_weight, "partial_fit makes one epoch"))

    def _rules(self) -> Rules:
        return rules_of(self)

    def _check_parameters(self, *, partial: bool) -> None:
        super()._check_parameters(partial=partial)
        check_rate(self, "epsilon_insensitive")
        if not partial:
            warn_of_negative_power(self)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        return self._validate(
            X, y, sample_weight, reset=reset, accept_sparse="csr", order="C", y_numeric=True
        )

    def _train(
        self, X: Any, y: Array, sample_weight: Any, start: Start, max_iter: int, *, streams: bool
    ) -> Fit:
        """Make the run and set the fitted attributes."""
        rows, y, sample_weight = at_home(X), at_home(y), at_home(sample_weight)
        weights = np.ones(len(y)) if sample_weight is None else sample_weight
        held_out = self._held_out(y, sample_weight, stratify=False)
        error = None
        if held_out is not None:
            predict, kept, s = validation_rows(rows, held_out), y[held_out], weights[held_out]
            spread = float(s @ (kept - np.average(kept, weights=s)) ** 2)

            def error(w: Array, b: float) -> float:  # minus R^2, which scikit-learn watches
                return float(s @ (kept - predict(w) - b) ** 2) / (spread or 1.0) - 1.0

        seed = int(check_random_state(self.random_state).randint(0, MAX_INT))
        plan = Plan(y, weights, seed, held_out, error)
        witness = self.certify is not False and not streams
        fit = self._run(rows, plan, start, max_iter, witness=witness)
        self.streamed_, self.n_iter_ = streams, fit.n_iter
        self.t_ += fit.n_iter * len(y)
        keep(self, [fit], [plan], rows, labels=False, witness=witness)
        self._place(X)
        return fit

    def predict(self, X: Any) -> Any:
        """X @ coef_ + intercept_.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or a tensor on the device of X
        """
        check_is_fitted(self)
        return self._scores_of(X)[:, 0]

    # ------------------------------------------------------------------ certifying

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from inconsistencies(self, int(X.shape[1]))

    def _shape(self, n_features: int) -> tuple[int, ...]:
        return (n_features,)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        n = X.shape[0]
        s = np.full(n, 1.0 / n) if sample_weight is None else sample_weight / n
        return claims(self, X, y, s, 0, "", labels=False, full=full)

    _remedy = SGDClassifier._remedy


def _start(d: int, coef_init: ArrayLike | None, intercept_init: ArrayLike | None) -> Start:
    """The given weights and offset, or zeros."""
    w = np.zeros(d) if coef_init is None else np.array(coef_init, dtype=np.float64).ravel()
    b = np.zeros(1) if intercept_init is None else np.array(intercept_init, np.float64).ravel()
    for name, found, needed in (("coef_init", w, (d,)), ("intercept_init", b, (1,))):
        if found.shape != needed:
            raise ValueError(
                f"Provided {name} does not match dataset. It has {found.size} values, but {d} features "
                f"need {needed[0]}."
            )
    return Start(w, float(b[0]))
