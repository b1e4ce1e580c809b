"""Linear classifiers trained by stochastic gradient descent, with the gap that they reached."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from .._namespace import array_namespace, clip, is_torch, to_numpy, where
from ..certificate import Claim
from ..iterate import Fit
from ..solvers.linear_sgd import Rules
from ._online import Plan, Start
from ._online_classifier import OnlineClassifier
from ._sgd import CONSTRAINTS, check_rate, inconsistencies, keep, rules_of, warn_of_negative_power
from ._sgd_claims import CLASSIFICATION, claims

__all__ = ["SGDClassifier"]

Array = NDArray[np.float64]


def _has_probabilities(model: SGDClassifier) -> bool:
    if model.loss not in ("log_loss", "modified_huber"):
        raise AttributeError(f"probability estimates are not available for loss={model.loss!r}")
    return True


class SGDClassifier(OnlineClassifier):
    r"""Linear classifiers trained row by row, a drop-in for scikit-learn's ``SGDClassifier``.

    For labels :math:`y_i = \pm1`, weights :math:`s_i` and a loss of the margin (or, against these labels, of
    the error) it minimises

    .. math:: \frac1n\sum_i s_i\,\ell(\langle x_i, w\rangle + b, y_i)
              + \alpha\left(\rho\|w\|_1 + \tfrac{1-\rho}2\|w\|^2\right)

    by steps along the gradient of one row's term at a time, which cost the non-zeros of the row. Several
    classes are treated one-vs-rest.

    **Guarantee.** With steps that meet the conditions of Robbins and Monro ('optimal', and 'invscaling' with
    ``power_t`` in (1/2, 1]) the iterates converge to the minimiser with probability one; with a constant
    step they end in a neighbourhood of it. Nothing useful can be promised about the last iterate in advance.

    **Certificate**, for each binary problem. *duality gap* (OPTIMAL): how far this model is from the
    global minimum at most, by a dual point that the run hands over; ``max_gap`` is the largest that will do.
    *objective* and *worst row* (EXACT): the objective and the least margin
    are what the fit recorded. The perceptron loss has the minimum 0 at w = 0 and no optimality claim.
    A gap of some percent is no fault of a run: the last digits are not what SGD is for, and cost it more
    than other methods (``LogisticRegression``, ``Ridge``, ``HuberRegressor`` minimise to 1e-10).

    Parameters
    ----------
    loss : str, default='hinge'
        'hinge' (linear SVM), 'log_loss' (logistic regression), 'modified_huber', 'squared_hinge' and
        'perceptron' are losses of the margin; 'squared_error', 'huber', 'epsilon_insensitive' and
        'squared_epsilon_insensitive' regress on the labels.
    penalty : {'l2', 'l1', 'elasticnet'} or None, default='l2'
        Penalty on the weights; the intercept is never penalised.
    alpha : float, default=0.0001
        Strength of the penalty; sets the step of ``learning_rate='optimal'`` too.
    l1_ratio : float, default=0.15
        Share :math:`\rho` of the l1 part, for ``penalty='elasticnet'``.
    fit_intercept : bool, default=True
        Whether to learn an offset.
    max_iter : int, default=1000
        Most epochs of ``fit``.
    tol : float or None, default=1e-3
        Stop when the objective (or the validation accuracy) of an epoch has not improved by ``tol`` for
        ``n_iter_no_change`` epochs; None: do not.
    shuffle : bool, default=True
        Visit the rows in a new order in each epoch; row blocks on disk are read in order, and those that are
        read together are shuffled.
    verbose : int, default=0
        Show progress.
    epsilon : float, default=0.1
        Half the width of the tube, or where Huber's loss turns linear.
    n_jobs : int, default=None
        Threads for the one-vs-rest problems.
    random_state : int, RandomState or None, default=None
        Seeds the orders, which are scikit-learn's, and the validation split.
    learning_rate : str, default='optimal'
        'constant': eta0; 'optimal': 1 / (alpha (t0 + t)); 'invscaling': eta0 / t^power_t; 'adaptive': eta0,
        divided by 5 whenever the objective stalls; 'pa1', 'pa2': passive-aggressive, with the hinge loss.
    eta0 : float, default=0.01
        The first step; the largest for 'pa1'.
    power_t : float, default=0.5
        Exponent of 'invscaling'.
    early_stopping : bool, default=False
        Hold out a stratified ``validation_fraction`` of the rows, and stop by their accuracy. On row blocks
        this takes a second reading an epoch.
    validation_fraction : float, default=0.1
        Fraction of rows to hold out.
    n_iter_no_change : int, default=5
        Patience, in epochs.
    class_weight : dict, 'balanced' or None, default=None
        Factors on the loss of the rows of each class.
    warm_start : bool, default=False
        Start ``fit`` from the previous solution.
    average : bool or int, default=False
        Give the mean of the iterates, from visit ``average`` on.
    max_gap : float or None, default=None
        The largest duality gap to accept, as a share of the objective at w = 0 with the best intercept: a
        larger one fails the certificate, and the fit warns. None: nothing is asked for; the claim is the gap
        as it is, undecided where the model is worse than a constant. A gap above one percent of the way
        from the constant model down to the lower bound is uninformative in either case.
    certify : bool or 'full', default=True
        Which claims to decide at the end of ``fit``. ``False`` also drops ``dual_``.

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
    objective_ : ndarray, one for each binary problem
        Loss plus penalty of the fitted model on the training rows.
    worst_ : ndarray, one for each binary problem
        The least margin :math:`y_i(\langle x_i, w\rangle + b)` of a training row.
    dual_ : ndarray of shape (n_problems, n_samples), float32
        The witness of the duality gap, where the penalty has an l2 part.
    standard_coef_, standard_intercept_ : ndarray
        With ``average``, the last iterate, from which ``partial_fit`` goes on.
    class_weight_ : ndarray of shape (n_classes,)
        Factors on the loss of the rows of each class.
    streamed_ : bool
        Whether the last call was ``partial_fit``.
    certificate_ : Certificate
        The claims; see :func:`surefit.verify`.

    Notes
    -----
    On dense rows the fit is scikit-learn's, order of rows included, to rounding. On sparse rows it is the
    dense one: scikit-learn moves the intercept a hundred times more slowly there, charges the l1 penalty of
    a feature only when it occurs, and stops on the norm of the last row's weights. With an l1 part the
    objective that ends a fit is the true one, where scikit-learn's lags behind the truncation, and averages
    are those of the iterates, which its are not.

    References
    ----------
    L. Bottou, "Stochastic gradient descent tricks", in Neural Networks: Tricks of the Trade, 2012.
    T. Zhang, "Solving large scale linear prediction problems using SGD algorithms", ICML 2004.
    Y. Tsuruoka, J. Tsujii, S. Ananiadou, "SGD training for L1-regularized log-linear models", ACL 2009.
    K. Crammer et al., "Online passive-aggressive algorithms", JMLR 7, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.preprocessing import scale
    >>> from surefit.linear_model import SGDClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SGDClassifier(loss="log_loss", alpha=0.01, random_state=0).fit(scale(X), y)
    >>> claim = model.certificate_["class 0: duality gap"]
    >>> claim.kind.name, claim.status.name, claim.observed < 0.1 * claim.bound
    ('OPTIMAL', 'HOLDS', True)
    """

    loss_functions: ClassVar[dict[str, tuple[Any, ...]]] = CLASSIFICATION
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(CLASSIFICATION))],
        **CONSTRAINTS,
        "n_jobs": [Integral, None],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        loss: str = "hinge",
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
        n_jobs: int | None = None,
        random_state: Any = None,
        learning_rate: str = "optimal",
        eta0: float = 0.01,
        power_t: float = 0.5,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.average = average
        self.max_gap = max_gap
        self.certify = certify

    # ------------------------------------------------------------------ fitting

    def _rules(self) -> Rules:
        return rules_of(self)

    def _check_parameters(self, *, partial: bool) -> None:
        super()._check_parameters(partial=partial)
        check_rate(self, "hinge")
        if not partial:
            warn_of_negative_power(self)

    def _wants_witness(self, *, streams: bool) -> bool:
        return self.certify is not False and not streams

    def _starts(self, n_features: int, *, resume: bool) -> list[Start]:
        starts = super()._starts(n_features, resume=resume)
        if not resume or not self.average or not hasattr(self, "standard_coef_"):
            return starts
        begun = self.average <= self.t_ - 1.0
        coef, intercept = to_numpy(self.standard_coef_), to_numpy(self.standard_intercept_)
        lasts = zip(coef.astype(np.float64), intercept)
        return [
            Start(w, float(b), (mean.w, mean.b) if begun else None)
            for (w, b), mean in zip(lasts, starts)
        ]

    def _keep(self, fits: list[Fit], plans: list[Plan], rows: Any, *, streams: bool) -> None:
        self.streamed_ = streams
        keep(self, fits, plans, rows, labels=True, witness=self._wants_witness(streams=streams))

    # ------------------------------------------------------------------ certifying

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from inconsistencies(self, int(X.shape[1]))

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        found: list[Claim] = []
        for k in range(len(self.objective_)):
            name = "" if len(self.classes_) == 2 else f"class {self.classes_[k]}: "
            signs, weights = self._binary_problem(k, y, sample_weight)
            s = weights / len(signs)
            found += claims(self, X, signs, s, k, name, labels=True, full=full)
        return found

    def _remedy(self) -> str:
        return (
            "Scale the features (for instance with StandardScaler), make more epochs (a smaller tol), "
            "average the iterates (average=True), or accept a larger max_gap."
        )

    # ------------------------------------------------------------------ probabilities

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Probability of each class, for the logistic and the modified Huber loss.

        Two classes: the sigmoid of the score, or the score clipped to [-1, 1] and moved to [0, 1] (Zhang,
        2004). More: those of the one-vs-rest problems, normalised to sum to 1 (Zadrozny & Elkan, 2002).

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_classes), or a tensor on the device of X
        """
        z = self.decision_function(X)
        if self.loss != "log_loss":
            shares = (clip(z, -1.0, 1.0) + 1.0) / 2.0
        else:
            shares = z.sigmoid() if is_torch(z) else expit(z)
        xp = array_namespace(z)
        if z.ndim == 1:
            return xp.stack([1.0 - shares, shares], axis=1)
        total = xp.sum(shares, axis=1, keepdims=True)
        shares = where(total > 0, shares, 1.0)  # every class ruled out: all alike
        return shares / xp.sum(shares, axis=1, keepdims=True)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of :meth:`predict_proba`; minus infinity where that is 0."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            return array_namespace(shares).log(shares)
