"""The perceptron, and what can be proved about it: mistakes, margins, and that no hyperplane exists."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from .._optimality import outcome_claim
from ..base import Certified
from ..certificate import Claim, Kind
from ..design import as_design
from ..iterate import Fit
from ..separation import Separation, separate
from ..solvers.linear_sgd import Rules
from ._attribute_checks import wrong_counts, wrong_flags, wrong_shapes
from ._audit import Audit, penalised_loss
from ._online import Plan, Start, at_home
from ._online_classifier import OnlineClassifier

__all__ = ["Perceptron"]

Array = NDArray[np.float64]
_MOST_ENTRIES = 20_000_000  # of a dense copy of the data for the hard-margin problem: 160 MB
_STARTED_ELSEWHERE = "this one started elsewhere or continues on other rows"


class Perceptron(OnlineClassifier):
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
    scikit-learn moves the intercept a hundred times more slowly.

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
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
            Training rows. Row blocks are read in order, once an epoch for each binary problem; ``shuffle``
            then means a random order among the rows that are read together (32 MB by default).
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
        return super().fit(X, y, coef_init, intercept_init, sample_weight)

    def _rules(self) -> Rules:
        l1, l2 = self._penalty_strengths()
        return Rules(
            "hinge",
            edge=0.0,
            eta0=float(self.eta0),
            l1=l1,
            l2=l2,
            fit_intercept=bool(self.fit_intercept),
            tol=self.tol,
            patience=self.n_iter_no_change,
            ends_clean=l1 == l2 == 0.0,
        )

    def _given_starts(self, n_features: int, coef_init: Any, intercept_init: Any) -> list[Start]:
        starts = super()._given_starts(n_features, coef_init, intercept_init)
        self.cold_start_ = not any(np.any(start.w) or start.b for start in starts)
        self.mistakes_ = np.zeros(len(starts), dtype=np.int64)
        return starts

    def _starts(self, n_features: int, *, resume: bool) -> list[Start]:
        starts = super()._starts(n_features, resume=resume)
        self.cold_start_ = not resume
        return starts

    def _keep(self, fits: list[Fit], plans: list[Plan], X: Any, *, streams: bool) -> None:
        """The model, and what it does on the training rows: the numbers that the certificate checks."""
        self.coef_ = np.stack([fit.x.w for fit in fits]).astype(X.dtype)
        self.intercept_ = np.array([fit.x.b for fit in fits], dtype=X.dtype)
        made = np.array([fit.x.updates for fit in fits], dtype=np.int64)
        self.mistakes_ = self.mistakes_ + made
        margins = self._scores(X)
        for k, plan in enumerate(plans):
            margins[:, k] *= plan.targets
        self.training_mistakes_ = np.sum(~(margins > 0), axis=0)
        W, b = self._planes()
        lengths = np.hypot(np.linalg.norm(W, axis=1), b)
        self.margin_ = margins.min(axis=0) / np.where(lengths > 0, lengths, 1.0)
        l1, l2 = self._penalty_strengths()
        self.objective_ = np.array(
            [
                penalised_loss(margins[:, k], plan.weights, W[k], l1, l2)
                for k, plan in enumerate(plans)
            ]
        )

    def _scores(self, X: Any) -> Array:
        """X W' + b in float64, a column a binary problem."""
        W, b = self._planes()
        if len(W) > 1:
            return cast(Array, as_design(X).dot(W.T)) + b
        return cast(Array, as_design(X).dot(W[0]) + b[0])[:, None]

    # ------------------------------------------------------------------ certifying

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        problems = (1 if len(self.classes_) == 2 else len(self.classes_),)
        yield from wrong_counts(self, mistakes_=problems, training_mistakes_=problems)
        yield from wrong_shapes(self, margin_=problems, objective_=problems)
        yield from wrong_flags(self, "cold_start_")
        for k, audit in enumerate(self._audits(at_home(X), y, sample_weight)):
            if not abs(audit.objective - self.objective_[k]) <= audit.objective_error():
                yield f"objective_ holds {self.objective_[k]:.6g}, these rows give {audit.objective:.6g}"
            least = self._least_mistakes(audit)
            if self.mistakes_[k] < least:
                yield f"mistakes_ holds {self.mistakes_[k]}, and so long a vector takes {least:.0f}"

    def _least_mistakes(self, audit: Audit) -> float:
        """How many updates a plain run from 0 needs for weights of this length: each adds eta0 C at most."""
        if self._obstacle(audit):
            return 0.0
        step = float(self.eta0) * float(audit.norms.max(initial=0.0))
        length = float(np.hypot(np.linalg.norm(audit.w), audit.b))
        return np.floor(length / step * (1.0 - 1e-6)) if 0.0 < step < np.inf else 0.0

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        claims: list[Claim] = []
        X = at_home(X)
        rows = _dense_rows(X) if full else None
        for k, audit in enumerate(self._audits(X, y, sample_weight)):
            name = "" if len(self.classes_) == 2 else f"class {self.classes_[k]}: "
            claims.append(audit.mistakes_claim(name, int(self.training_mistakes_[k])))
            claims.append(audit.margin_claim(name, float(self.margin_[k])))
            if self.penalty is not None:
                claims.append(audit.objective_claim(name, float(self.objective_[k])))
                claims += self._norm_claims(name, audit)
            best = None
            if rows is not None and (audit.wrong or self.penalty is None):
                best = _best_separation(rows, audit.signs, self.fit_intercept)
            if audit.wrong:
                points = rows
                if points is not None and self.fit_intercept:
                    points = np.column_stack([points, np.ones(len(points))])
                claims.append(audit.separability_claim(name, points, best, full=full))
            claims.append(self._bound_claim(name, audit, int(self.mistakes_[k]), best, full=full))
        return claims

    def _audits(self, X: Any, y: Any, sample_weight: Any) -> Iterator[Audit]:
        """The facts about each binary problem, from the data and the fitted model, in float64."""
        (W, b), scores = self._planes(), self._scores(X)
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
        limit = f"C²/γ² = {radius**2:.4g}/{margin:.4g}² = {bound:.4g}"
        return outcome_claim(
            title, kind, mistakes, bound, source,
            holds=f"the run recorded {mistakes} mistakes, and {limit} allows no more (γ of {whose})",
            otherwise=f"{mistakes} mistakes are recorded, more than {limit} allows a run from 0",
        )  # fmt: skip

    def _obstacle(self, audit: Audit) -> str:
        """Why Novikoff's theorem does not speak about this run; empty if it does."""
        if self.penalty is not None:
            return f"this one has penalty={self.penalty!r}"
        if not self.cold_start_:
            return _STARTED_ELSEWHERE
        if audit.weights.size and np.ptp(audit.weights) > 0:
            return "this one has sample or class weights"
        if audit.b != 0 and not self.fit_intercept:
            return "this one has an intercept that was not learned"
        return ""

    def _norm_claims(self, name: str, audit: Audit) -> list[Claim]:
        """With an L2 part, each step maps the ball of radius R/l2 into itself (PER-5)."""
        _, l2 = self._penalty_strengths()
        if l2 == 0:
            return []
        title = f"{name}weight norm"
        if not self.cold_start_:
            why = f"the bound is about runs from 0: {_STARTED_ELSEWHERE}"
            return [Claim.undecided(title, why, Kind.BOUND, "PER-5")]
        longest = float(np.max(audit.weights * audit.norms, initial=0.0))
        bound = longest * max(1.0 / l2, float(self.eta0)) * (1 + audit.rounding)
        norm = float(np.linalg.norm(audit.w))
        ball = f"no step of a penalised run from 0 leaves the ball of radius {bound:.4g}"
        statement = f"the weights have norm {norm:.4g}; {ball}"
        return [
            outcome_claim(
                title, Kind.BOUND, norm, bound, "PER-5",
                holds=statement, otherwise=f"{statement}, so these are not such weights",
            )
        ]  # fmt: skip


def _dense_rows(X: Any) -> Array | None:
    """X as a float64 array, or None where the hard-margin problem would be too large."""
    if X.shape[0] * (X.shape[1] + 1) > _MOST_ENTRIES:
        return None
    return np.asarray(as_design(X).home(), dtype=np.float64)


def _best_separation(rows: Array, signs: Array, fit_intercept: bool) -> Separation | None:
    """:func:`separate`, or None where its active-set method did not finish."""
    try:
        return separate(rows, signs, fit_intercept=fit_intercept)
    except RuntimeError:
        return None
