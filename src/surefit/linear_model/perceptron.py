"""The perceptron, and what can be proved about it: mistakes, margins, and that no hyperplane exists."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import _check_partial_fit_first_call, check_classification_targets
from sklearn.utils.parallel import Parallel, delayed

from ..base import Certified
from ..certificate import Claim, Kind
from ..design import as_design
from ..iterate import Fit, Iterate, Stop, run
from ..separation import Separation, separate
from ..solvers.perceptron import Hyperplane, perceptron, visits
from ._audit import Audit, penalised_loss

__all__ = ["Perceptron"]

Array = NDArray[np.float64]
_MAX_INT = np.iinfo(np.int32).max
_MOST_ENTRIES = 20_000_000  # of a dense copy of the data for the hard-margin problem: 160 MB


class Perceptron(LinearClassifierMixin, SparseCoefMixin, Certified):
    r"""Rosenblatt's perceptron: add the rows you get wrong.

    Rows are visited one by one; a row with :math:`y(\langle x, w\rangle + b) \le 0` is a mistake, and
    then :math:`w \leftarrow w + \eta y x`, :math:`b \leftarrow b + \eta y`. This is stochastic
    subgradient descent with a constant step on the perceptron loss
    :math:`\frac1n\sum_i [-y_i(\langle x_i, w\rangle + b)]_+`, plus
    :math:`\alpha\,(\rho\|w\|_1 + \frac{1-\rho}2\|w\|^2)` where a penalty is asked for. Several classes
    are treated one-vs-rest.

    **Guarantee** (Novikoff). From :math:`w = 0`, without penalty: if a unit vector :math:`(w^*, b^*)`
    has :math:`y_i(\langle x_i, w^*\rangle + b^*) \ge \gamma` on all rows and
    :math:`\|(x_i, 1)\| \le C`, then at most :math:`C^2/\gamma^2` mistakes are made in all. If no
    hyperplane separates the rows, the iterates stay bounded and never settle; there is no optimality
    claim.

    **Certificate**, one set of claims for each binary problem. *training mistakes*: how many rows the
    model has wrong, and *margin*: how close the closest row is, both computed again. *mistake bound*:
    the mistakes of the run against :math:`C^2/\gamma^2`, with the margin of the fitted hyperplane (any
    separating hyperplane gives a valid bound) or, in full, of the best one. *separability*, where the
    model does not separate the rows: in full, another hyperplane that does, or Farkas weights
    :math:`\lambda \ge 0, \sum\lambda_i = 1, \sum_i\lambda_i y_i(x_i, 1) = 0`, which prove that none
    does. With a penalty: the *penalised objective* and the *weight norm*.

    Parameters
    ----------
    penalty : {'l2', 'l1', 'elasticnet'}, default=None
        Penalty on the weights; the intercept is never penalised.
    alpha : float, default=0.0001
        Strength of the penalty.
    l1_ratio : float, default=0.15
        Share :math:`\rho` of the L1 part, for ``penalty='elasticnet'``.
    fit_intercept : bool, default=True
        Whether to learn an offset ``b``.
    max_iter : int, default=1000
        Most epochs of ``fit``. A run without penalty ends sooner, after an epoch without mistakes.
    tol : float or None, default=1e-3
        Stop when the mean loss (or the validation accuracy) of an epoch has not improved by ``tol``
        for ``n_iter_no_change`` epochs; None: do not.
    shuffle : bool, default=True
        Visit the rows in a new order in each epoch.
    verbose : int, default=0
        Show progress.
    eta0 : float, default=1
        The step. From 0 and without penalty it only scales the result.
    n_jobs : int, default=None
        Threads for the one-vs-rest problems.
    random_state : int, RandomState or None, default=0
        Seeds the orders, which are scikit-learn's, and the validation split.
    early_stopping : bool, default=False
        Hold out a stratified ``validation_fraction`` of the rows, and stop by their accuracy.
    validation_fraction : float, default=0.1
        Fraction of rows to hold out.
    n_iter_no_change : int, default=5
        Patience, in epochs.
    class_weight : dict, 'balanced' or None, default=None
        Factors on the step for the rows of each class.
    warm_start : bool, default=False
        Start ``fit`` from the previous solution.
    certify : bool or 'full', default=True
        Which claims to decide at the end of ``fit``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights, one row a binary problem, in the precision of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Offsets.
    n_iter_ : int
        Epochs made, the most over the binary problems.
    t_ : float
        ``n_iter_ * n_samples + 1``, summed over calls of ``partial_fit``.
    mistakes_ : ndarray of int, one for each binary problem
        Updates made along the run.
    training_mistakes_ : ndarray of int, one for each binary problem
        Rows that the fitted model has wrong.
    margin_ : ndarray, one for each binary problem
        :math:`\min_i y_i(\langle x_i, w\rangle + b) / \|(w, b)\|`; positive when the rows are separated.
    objective_ : ndarray, one for each binary problem
        Mean perceptron loss plus penalty of the fitted model.
    class_weight_ : ndarray of shape (n_classes,)
        Factors on the step for the rows of each class.
    cold_start_ : bool
        Whether the run started from 0 and saw only these rows, as the mistake bound asks.
    certificate_ : Certificate
        The claims; see :func:`surefit.verify`.

    Notes
    -----
    On dense data the fit is scikit-learn's, order of rows included, and stops earlier when an epoch
    passes without mistakes (nothing would change any more). On sparse data it is the dense one, where
    scikit-learn moves the intercept a hundred times more slowly; with both penalties at once the two
    agree only as far as it does not matter in which order a weight is scaled and truncated.

    References
    ----------
    F. Rosenblatt, "The perceptron", Psychological Review 65, 1958.
    A. Novikoff, "On convergence proofs for perceptrons", Symp. Math. Theory of Automata, 1962.

    Examples
    --------
    >>> from surefit.linear_model import Perceptron
    >>> X, y = [[0, 0], [1, 0], [0, 1], [1, 1]], [-1, 1, 1, 1]  # the OR function
    >>> model = Perceptron(shuffle=False, tol=None).fit(X, y)
    >>> model.coef_.tolist(), model.intercept_.tolist(), model.mistakes_.tolist()
    ([[2.0, 2.0]], [-1.0], [9])
    >>> claim = model.certificate_["mistake bound"]
    >>> round(claim.observed), round(claim.bound)
    (9, 27)
    """

    coef_: Any
    intercept_: Any
    classes_: Any
    mistakes_: NDArray[np.int64]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "verbose": ["verbose"],
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "warm_start": ["boolean"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        *,
        penalty: str | None = None,
        alpha: float = 0.0001,
        l1_ratio: float = 0.15,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        shuffle: bool = True,
        verbose: int = 0,
        eta0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = 0,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        warm_start: bool = False,
        certify: bool | str = True,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.verbose = verbose
        self.eta0 = eta0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
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
    ) -> Perceptron:
        """Visit the rows until an epoch passes without mistakes or a stopping rule fires.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Labels.
        coef_init, intercept_init : array-like, default=None
            Where to start; shaped like ``coef_`` and ``intercept_``. None: at 0.
        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative factors on the step; a row of weight 0 is never a mistake.

        Returns
        -------
        self
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        if self.warm_start and hasattr(self, "coef_"):
            coef, intercept = self._hyperplanes()
            coef_init = coef if coef_init is None else coef_init
            intercept_init = intercept if intercept_init is None else intercept_init
        self.classes_ = np.unique(y)
        self.t_ = 1.0
        W, b = self._starting_point(X.shape[1], coef_init, intercept_init)
        self.cold_start_ = not (np.any(W) or np.any(b))
        stops = self._train(X, y, sample_weight, W, b, self.max_iter)
        if self.tol is not None and Stop.MAX_ITER in stops:
            warnings.warn(
                f"Perceptron reached max_iter={self.max_iter} epochs while the loss was still "
                "falling: increase max_iter, or raise tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        reasons = sorted({stop.value for stop in stops})
        return cast(Perceptron, self._seal(X, y, sample_weight, "; ".join(reasons)))

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: Any = None,
    ) -> Perceptron:
        """One epoch over these rows, from where the model stands.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
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
        if first and self.early_stopping:
            raise ValueError(
                "early_stopping should be False with partial_fit, got early_stopping=True: "
                "watch the validation error between the calls instead."
            )
        if first and self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all labels at once and is not supported for "
                "partial_fit; pass the weights of sklearn.utils.compute_class_weight('balanced', "
                "classes=classes, y=y), computed on a large enough sample, as a dict."
            )
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=first)
        _check_partial_fit_first_call(self, classes)
        start = (None, None) if first else self._hyperplanes()
        W, b = self._starting_point(X.shape[1], *start)
        before = 0 if first else self.mistakes_
        self.t_ = getattr(self, "t_", 1.0)
        self.cold_start_ = first
        self._train(X, y, sample_weight, W, b, 1)
        self.mistakes_ = before + self.mistakes_
        return cast(Perceptron, self._seal(X, y, sample_weight, "partial_fit makes one epoch"))

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(
            X, y, sample_weight, reset=reset, accept_sparse="csr", order="C"
        )
        check_classification_targets(y)
        return X, y, sample_weight

    def _starting_point(
        self, n_features: int, coef_init: ArrayLike | None, intercept_init: ArrayLike | None
    ) -> tuple[Array, Array]:
        """Copies of the given weights and offsets, or zeros; one row a binary problem."""
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
                    f"{name} has shape {values.shape}, but {n_classes} classes and {n_features} "
                    f"features need {target.shape}."
                )
            target[...] = values
        return W, b

    def _train(
        self, X: Any, y: Any, sample_weight: Array | None, W: Array, b: Array, max_iter: int
    ) -> list[Stop]:
        """Run every binary problem and set the fitted attributes; why each run ended."""
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        rows = X.astype(np.float64, copy=False)
        plans = list(self._plans(y, sample_weight))
        jobs = [(rows, plan, W[k], float(b[k]), max_iter) for k, plan in enumerate(plans)]
        if len(jobs) == 1:
            fits = [self._solve(*jobs[0])]
        else:
            parallel = Parallel(n_jobs=self.n_jobs, require="sharedmem")
            fits = parallel(delayed(self._solve)(*job) for job in jobs)
        self.coef_ = np.stack([fit.x.w for fit in fits]).astype(X.dtype)
        self.intercept_ = np.array([fit.x.b for fit in fits], dtype=X.dtype)
        self.mistakes_ = np.array([fit.x.mistakes for fit in fits], dtype=np.int64)
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.t_ += self.n_iter_ * X.shape[0]
        self._take_stock(rows, plans)
        return [fit.stop for fit in fits]

    def _take_stock(self, X: Any, plans: list[_Plan]) -> None:
        """What the fitted model does on the training rows: the numbers that the certificate checks."""
        W, b = self._hyperplanes()
        margins = np.stack([plan.signs for plan in plans], axis=1) * (X @ W.T + b)
        self.training_mistakes_ = np.sum(~(margins > 0), axis=0)
        lengths = np.hypot(np.linalg.norm(W, axis=1), b)
        self.margin_ = margins.min(axis=0) / np.where(lengths > 0, lengths, 1.0)
        l1, l2 = self._penalty_strengths()
        self.objective_ = np.array(
            [
                penalised_loss(margins[:, k], plan.weights, W[k], l1, l2)
                for k, plan in enumerate(plans)
            ]
        )

    def _plans(self, y: Any, sample_weight: Array | None) -> Iterator[_Plan]:
        """Labels, weights, seed and held-out rows of each binary problem, drawn as scikit-learn does."""
        rng = check_random_state(self.random_state)
        if len(self.classes_) == 2:
            rng.randint(1, _MAX_INT)  # scikit-learn draws one number that it does not use
            held_out = self._held_out(y, sample_weight)
            seeds = [int(rng.randint(_MAX_INT))]
        else:
            held_out = self._held_out(y, sample_weight)
            seeds = []
            for seed in rng.randint(_MAX_INT, size=len(self.classes_)):
                rng_k = check_random_state(int(seed))
                rng_k.randint(1, _MAX_INT)
                seeds.append(int(rng_k.randint(_MAX_INT)))
        for k, seed in enumerate(seeds):
            signs, weights = self._binary_problem(k, y, sample_weight)
            yield _Plan(signs, weights, sample_weight, seed, held_out)

    def _binary_problem(self, k: int, y: Any, sample_weight: Any) -> tuple[Array, Array]:
        """Signs and weights of the rows: the second class against the first, or class k against all."""
        binary = len(self.classes_) == 2
        positive = 1 if binary else k
        signs = np.where(y == self.classes_[positive], 1.0, -1.0)
        rest = self.class_weight_[0] if binary else 1.0
        weights = np.where(signs > 0, self.class_weight_[positive], rest)
        return signs, weights if sample_weight is None else weights * sample_weight

    def _held_out(self, y: Any, sample_weight: Array | None) -> NDArray[np.bool_] | None:
        """The mask of the validation rows; None without early stopping."""
        if not self.early_stopping:
            return None
        split = StratifiedShuffleSplit(
            test_size=self.validation_fraction, random_state=self.random_state
        )
        _, rows = next(split.split(np.zeros((len(y), 1)), y))
        if sample_weight is not None and not np.any(sample_weight[rows]):
            raise ValueError(
                "The sample weights for validation set are all zero, consider using a different "
                f"random state than random_state={self.random_state!r}."
            )
        mask = np.zeros(len(y), dtype=np.bool_)
        mask[rows] = True
        return mask

    def _solve(self, X: Any, plan: _Plan, w: Array, b: float, max_iter: int) -> Fit:
        """One binary problem."""
        l1, l2 = self._penalty_strengths()
        keep = None if plan.held_out is None else ~plan.held_out
        steps = perceptron(
            X,
            plan.signs,
            orders=visits(X.shape[0], plan.seed if self.shuffle else None, keep),
            w=w,
            b=b,
            fit_intercept=bool(self.fit_intercept),
            rate=float(self.eta0),
            weights=plan.weights,
            l1=l1,
            l2=l2,
        )
        measure = _training_loss if plan.held_out is None else _validation_error(X, plan)
        fit = run(
            steps,
            certify=None if l1 or l2 else _epoch_mistakes,
            max_iter=max_iter,
            callback=_Patience(measure, self.tol, self.n_iter_no_change),
            verbose=int(self.verbose),
            name=type(self).__name__,
        )
        if fit.stop is Stop.DIVERGED:
            raise ValueError(
                f"Floating-point under-/overflow occurred at epoch #{fit.n_iter}: eta0={self.eta0} "
                "and the values of X are too large. Scaling input data with StandardScaler or "
                "MinMaxScaler might help."
            )
        if fit.stop is Stop.CALLBACK:
            fit.stop = Stop.FLAT if plan.held_out is None else Stop.VALIDATION
        return fit

    def _penalty_strengths(self) -> tuple[float, float]:
        """Factors of ||w||_1 and of ||w||^2 / 2."""
        share = {None: 0.0, "l2": 0.0, "l1": 1.0, "elasticnet": float(self.l1_ratio)}[self.penalty]
        alpha = float(self.alpha) if self.penalty is not None else 0.0
        return alpha * share, alpha * (1.0 - share)

    # ------------------------------------------------------------------ certifying

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        claims: list[Claim] = []
        for k, audit in enumerate(self._audits(X, y, sample_weight)):
            name = "" if len(self.classes_) == 2 else f"class {self.classes_[k]}: "
            claims.append(audit.mistakes_claim(name, int(self.training_mistakes_[k])))
            claims.append(audit.margin_claim(name, float(self.margin_[k])))
            if self.penalty is not None:
                claims.append(audit.objective_claim(name, float(self.objective_[k])))
                claims += self._norm_claims(name, audit)
            best = None
            if full and (audit.wrong or self.penalty is None):
                best = _best_separation(X, audit.signs, self.fit_intercept)
            if audit.wrong:
                claims.append(audit.separability_claim(name, best, full=full))
            claims.append(self._bound_claim(name, audit, int(self.mistakes_[k]), best, full=full))
        return claims

    def _audits(self, X: Any, y: Any, sample_weight: Any) -> Iterator[Audit]:
        """The facts about each binary problem, from the data and the fitted model, in float64."""
        W, b = self._hyperplanes()
        scores = as_design(X).dot(W.T) + b
        with np.errstate(over="ignore"):
            norms = np.sqrt(as_design(X).row_squares() + (1.0 if self.fit_intercept else 0.0))
        for k in range(len(W)):
            signs, weights = self._binary_problem(k, y, sample_weight)
            penalty = self._penalty_strengths()
            yield Audit(W[k], float(b[k]), scores[:, k], signs, norms, weights, penalty)

    def _bound_claim(
        self, name: str, audit: Audit, mistakes: int, best: Separation | None, *, full: bool
    ) -> Claim:
        """Novikoff's bound, with the best separating hyperplane at hand."""
        title, kind, source = f"{name}mistake bound", Kind.BOUND, "PER-3"
        obstacle = self._obstacle(audit)
        if obstacle:
            why = f"the bound is about plain runs from 0: {obstacle}"
            return Claim.undecided(title, why, kind, source)
        margin, whose = audit.margin, "the fitted hyperplane; a better one tightens it"
        if best is not None and best.margin > margin:
            margin, whose = best.margin, "the widest margin found"
        margin = audit.safe_margin(margin)
        radius = float(audit.norms.max(initial=0.0))
        if not margin > 0 or not np.isfinite(radius):
            hint = "" if full else "; certify='full' or surefit.verify looks for one"
            why = f"{mistakes} mistakes, and no separating hyperplane is at hand{hint}"
            return Claim.undecided(title, why, kind, source)
        bound = (radius / margin) ** 2 * (1 + audit.rounding)
        statement = (
            f"{mistakes} mistakes were made, and C²/γ² = {radius**2:.4g}/{margin:.4g}² = {bound:.4g} "
            f"allows no more (γ of {whose})"
        )
        return Claim.check(title, statement, kind, mistakes, bound, source)

    def _obstacle(self, audit: Audit) -> str:
        """Why Novikoff's theorem does not speak about this run; empty if it does."""
        if self.penalty is not None:
            return f"this one has penalty={self.penalty!r}"
        if not self.cold_start_:
            return "this one started elsewhere or continues on other rows"
        if audit.weights.size and np.ptp(audit.weights) > 0:
            return "this one has sample or class weights"
        if audit.b != 0 and not self.fit_intercept:
            return "this one has an intercept that was not learned"
        return ""

    def _norm_claims(self, name: str, audit: Audit) -> list[Claim]:
        """With an L2 part, each step maps the ball of radius R/l2 into itself (PER-5)."""
        _, l2 = self._penalty_strengths()
        if l2 == 0 or not self.cold_start_:
            return []
        longest = float(np.max(audit.weights * audit.norms, initial=0.0))
        bound = longest * max(1.0 / l2, float(self.eta0)) * (1 + audit.rounding)
        norm = float(np.linalg.norm(audit.w))
        statement = (
            f"the weights have norm {norm:.4g}; from 0, no step of this penalised run leaves the ball "
            f"of radius {bound:.4g}"
        )
        return [Claim.check(f"{name}weight norm", statement, Kind.BOUND, norm, bound, "PER-5")]

    def _hyperplanes(self) -> tuple[Array, Array]:
        """Weights and offsets in float64, dense again after ``sparsify``."""
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        return np.asarray(coef, dtype=np.float64), np.asarray(self.intercept_, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _best_separation(X: Any, signs: Array, fit_intercept: bool) -> Separation | None:
    """:func:`separate`, or None where the problem is too large for it."""
    if X.shape[0] * (X.shape[1] + 1) > _MOST_ENTRIES:
        return None
    try:
        return separate(X, signs, fit_intercept=fit_intercept)
    except RuntimeError:  # the active-set method did not finish
        return None


class _Plan(NamedTuple):
    """One binary problem, before it is run."""

    signs: Array
    weights: Array  # class weight times sample weight
    sample_weight: Array | None
    seed: int
    held_out: NDArray[np.bool_] | None


class _Patience:
    """scikit-learn's stopping rule: no improvement by ``tol`` for so many epochs in a row."""

    def __init__(self, measure: Callable[[Iterate], float], tol: float | None, epochs: int) -> None:
        self.measure, self.tol, self.epochs = measure, tol, epochs
        self.best, self.stale = np.inf, 0

    def __call__(self, k: int, iterate: Iterate) -> bool:
        if self.tol is None:
            return False
        error = self.measure(iterate)
        self.stale = self.stale + 1 if error > self.best - self.tol else 0
        self.best = min(self.best, error)
        return self.stale >= self.epochs


def _training_loss(iterate: Iterate) -> float:
    return iterate.value


def _validation_error(X: Any, plan: _Plan) -> Callable[[Iterate], float]:
    """Minus the weighted accuracy on the held-out rows."""
    held_out = cast(NDArray[np.bool_], plan.held_out)
    rows, positive = X[held_out], plan.signs[held_out] > 0
    weights = None if plan.sample_weight is None else plan.sample_weight[held_out]

    def error(iterate: Iterate) -> float:
        right = (rows @ iterate.x.w + iterate.x.b > 0) == positive
        return -float(np.average(right, weights=weights))

    return error


def _epoch_mistakes(plane: Hyperplane) -> float:
    return float(plane.epoch_mistakes)
