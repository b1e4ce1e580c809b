r"""Logistic and softmax regression, certified by their duality gap.

    min_{w, b}  C sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + rho ||w||_1 + (1 - rho)/2 ||w||^2

for two classes, and the softmax cross-entropy with one column of coefficients per class for more
(LOG-7); rho is ``l1_ratio``, and ``C = inf`` means no penalty. In the notes' form with (lambda/2)
||w||^2 and a mean loss, C = 1 / (lambda N) (LOG-5).

Two solvers serve every ``solver=`` name: Newton's method where the penalty is smooth, proximal
Newton with coordinate descent where it is not. ``solver="liblinear"`` keeps its own objective: the
intercept is the coefficient of a constant feature ``intercept_scaling`` and is penalised like the
others.

Certificate:

* *duality gap* (OPTIMAL), at most ``tol`` times the objective at w = 0. Without a penalty its dual
  point needs a Newton correction, so it is decided by ``verify`` or ``certify="full"``;
* *gradient* (STATIONARY, without a penalty): the gradient is zero to ``tol`` of its scale;
* *finite optimum* (EXACT, without a penalty): on separable data the likelihood has no maximiser, the
  coefficients grow without bound; this is detected and said. Where the corrected dual point exists,
  it proves that the data are not separable.

References
----------
Hastie, Tibshirani & Friedman (2009), section 4.4; Albert & Anderson, "On the existence
of maximum likelihood estimates in logistic regression models" (1984).
"""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._namespace import array_namespace, is_torch, like, scale_rows, to_numpy, where
from ..base import ANYWHERE, Certified
from ..certificate import Claim, Kind
from ..design import RowBlocks, as_design
from ..duality import Gap, duality_gap, gap_claim, null_value
from ..inputs import as_vector, is_native
from ..iterate import Fit, Iterate, run
from ..losses import Logistic, Loss, Softmax
from ..penalties import ElasticNet as ElasticNetPenalty
from ..penalties import NoPenalty, Penalty
from ..solvers.glm_newton import glm_newton
from ..solvers.glm_sampled import glm_sampled, sampling_pays
from ..solvers.prox_newton import prox_newton
from ..solvers.prox_newton_softmax import prox_newton_softmax
from .base import check_scale, check_solution, native_scores, stored
from .callbacks import FitTasks

if TYPE_CHECKING:
    from ..inference import Summary

__all__ = ["LogisticRegression"]

Array = NDArray[np.float64]
_TIGHT = 1e-8  # Newton's last step squares the error, so the fit goes this far when tol is looser
_TIGHT_SAMPLED = 1e-6  # the same where each step gains a few digits only, and with an l1 term
_SAG = "The max_iter was reached which means the coef_ did not converge; increase it"
_NOT_CONVERGED = {  # in scikit-learn's words
    "lbfgs": "lbfgs failed to converge. Increase the number of iterations (max_iter)",
    "newton-cg": "newton-cg failed to converge. Increase the number of iterations (max_iter)",
    "newton-cholesky": "Newton solver did not converge after {} iterations. Increase max_iter",
    "liblinear": "Liblinear failed to converge, increase the number of iterations (max_iter)",
    "sag": _SAG,
    "saga": _SAG,
}


class LogisticRegression(CallbackSupportMixin, LinearClassifierMixin, SparseCoefMixin, Certified):
    """Logistic regression, a drop-in for :class:`sklearn.linear_model.LogisticRegression`.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet", None}, default="deprecated"
        Deprecated as in scikit-learn: use ``C`` and ``l1_ratio``.
    C : float, default=1.0
        Weight of the loss; ``np.inf`` for no penalty.
    l1_ratio : float, default=0.0
        Share of the l1 penalty: 0 is ridge, 1 is the Lasso, between is the elastic net.
    dual : bool, default=False
        Kept for compatibility.
    tol : float, default=1e-4
        The duality gap is claimed to be at most ``tol`` times the objective at w = 0.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    intercept_scaling : float, default=1
        With ``solver="liblinear"`` only: the value of the constant feature.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    random_state : default=None
        Kept for compatibility: nothing here is random.
    solver : str, default="lbfgs"
        Any of scikit-learn's names, with any penalty.
    max_iter : int, default=100
        Most Newton steps.
    verbose : int, default=0
        Show progress.
    warm_start : bool, default=False
        Start from the previous solution.
    n_jobs : default=None
        Deprecated as in scikit-learn.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    n_iter_ : array of shape (1,)
        Newton steps used.
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from surefit.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression().fit(X, y)
    >>> round(model.score(X, y), 3), model.certificate_.ok
    (0.973, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [
            StrOptions({"l1", "l2", "elasticnet"}),
            None,
            Hidden(StrOptions({"deprecated"})),
        ],
        "C": [Interval(Real, 0, None, closed="right")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
        "dual": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "random_state": ["random_state"],
        "solver": [
            StrOptions({"lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"})
        ],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "n_jobs": [None, Integral],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        penalty: str | None = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "lbfgs",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
        certify: bool | str = True,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
        """
        self._warn_of_deprecated()
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self.classes_ = self._checked_classes(y, sample_weight)
        loss, codes, s = self._problem(y, sample_weight)
        kept, rows = s > 0, X
        if not kept.all() and not isinstance(X, RowBlocks):
            rows, codes, s = _take(X, kept), codes[kept], s[kept]
        tasks = None
        if hasattr(self, "_skl_callbacks"):
            tasks = FitTasks(self, X, y, sample_weight, lambda point: self._public(point, X))
        fit = self._solve(rows, codes, s, loss, self._start(X.shape[1]), tasks)
        check_solution(*fit.x)
        self.__dict__.update(self._public(fit.x, X))
        self.n_iter_ = np.array([fit.n_iter], dtype=np.int32)
        self._seal(X, y, sample_weight, fit.stop.value)
        if tasks is not None:
            tasks.finish()
        return self

    def _checked_classes(self, y: Any, sample_weight: Array | None) -> Any:
        """The labels, once it is clear that a model can be fitted to them."""
        classes = _distinct(y)
        if len(classes) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains "
                f"only one class: {classes[0]!r}. Add rows of another class."
            )
        if self.solver == "liblinear" and len(classes) > 2:
            raise ValueError(
                "The 'liblinear' solver does not support multiclass classification (n_classes >= 3). "
                "Only binary classification is supported. Use another solver, or wrap the estimator in "
                "a OneVsRestClassifier."
            )
        # A class without weight has no balanced weight, and makes a free intercept infinite.
        free = self.fit_intercept and self._intercept_scaling() is None
        if sample_weight is not None and (free or self.class_weight == "balanced"):
            weighed = _distinct(y[sample_weight > 0])
            if len(weighed) < len(classes):
                raise ValueError(
                    f"sample_weight is zero on all rows but those of the class(es) {weighed.tolist()}, of "
                    f"{classes.tolist()}: give every class some weight, or drop its rows."
                )
        return classes

    # ------------------------------------------------------------------ the problem

    def _penalty(self) -> Penalty:
        """The penalty of the objective, in scikit-learn's old and new spellings."""
        ratio = {"l1": 1.0, "l2": 0.0}.get(str(self.penalty), self.l1_ratio or 0.0)
        if self.penalty is None or math.isinf(self.C):
            return NoPenalty()
        return ElasticNetPenalty(1.0, float(ratio))

    def _problem(self, y: Any, sample_weight: Array | None) -> tuple[Loss, Array, Array]:
        """The loss, the labels in its coding, and the weight of each sample's loss."""
        xp, classes = array_namespace(y), like(self.classes_, y)
        if len(self.classes_) == 2:
            codes = where(y == classes[1], 1.0, 0.0)
        else:
            codes = as_vector(xp.searchsorted(classes, y), y)
        s = 0.0 * codes + 1.0 if sample_weight is None else sample_weight
        if self.class_weight is not None:
            by_class = compute_class_weight(
                self.class_weight, classes=self.classes_, y=to_numpy(y), sample_weight=to_numpy(s)
            )
            s = s * like(by_class, y)[xp.astype(codes, xp.int64)]
        s = s * (1.0 if isinstance(self._penalty(), NoPenalty) else float(self.C))
        if len(self.classes_) > 2:
            return Softmax(), codes, s
        return Logistic(), 2.0 * codes - 1.0, s

    def _start(self, n_features: int) -> tuple[Array, Array]:
        classes = len(self.classes_)
        columns = () if classes == 2 else (classes,)
        w, b = np.zeros((n_features, *columns)), np.zeros(columns)
        previous = getattr(self, "coef_", None)
        if self.warm_start and previous is not None:
            previous = previous.toarray() if sp.issparse(previous) else to_numpy(previous)
            if np.atleast_2d(w.T).shape == previous.shape:
                w = previous.T.astype(np.float64).reshape(w.shape)
                b = to_numpy(self.intercept_).astype(np.float64).reshape(b.shape)
        return w, b

    # ------------------------------------------------------------------ the fit

    def _solve(
        self,
        X: Any,
        y: Array,
        s: Array,
        loss: Loss,
        start: tuple[Array, Array],
        tasks: FitTasks | None,
    ) -> Fit:
        penalty, free = self._penalty(), self.fit_intercept
        w, b = start
        scaling = self._intercept_scaling()
        if scaling is not None:  # the intercept becomes a feature like any other
            X, free = _with_constant(X, scaling), False
            w, b = np.append(w, b / scaling), np.zeros(())
        null = null_value(loss, y, s, fit_intercept=free)
        l1, l2 = (
            (0.0, 0.0) if not isinstance(penalty, ElasticNetPenalty) else (penalty.l1, penalty.l2)
        )
        tight = _TIGHT
        if l1 > 0:
            tight = _TIGHT_SAMPLED
            method = prox_newton if w.ndim == 1 else prox_newton_softmax
            steps = method(X, y, s, loss, l1, l2, w, b, fit_intercept=free)
        else:
            sampled = sampling_pays(X.shape[0], w.size + b.size)
            if (
                sampled
            ):  # without a penalty the claim is about the gradient, the root of the estimate
                tight = _TIGHT_SAMPLED if l2 > 0 else 0.01 * self.tol**2
            solver = glm_sampled if sampled else glm_newton
            steps = solver(as_design(X), y, s, loss, l2, w, b, fit_intercept=free)
        if self.max_iter == 0:
            steps = iter([Iterate((w, b), cost=0)])
        if tasks is not None:
            steps = tasks.watch(steps, (w, b))
        design = as_design(X)

        def gap(x: tuple[Array, Array]) -> float:
            return duality_gap(
                design, y, x[0], x[1], loss, penalty, weights=s, fit_intercept=free
            ).gap

        return run(  # until the gap passes; with a smooth problem, the solver's own estimate of it
            steps, gap if l1 > 0 else None,
            tol=min(self.tol, tight) * null, max_iter=max(self.max_iter, 1),
            callback=None if tasks is None else lambda *_: tasks.stop,
            verbose=int(self.verbose), name=type(self).__name__,
        )  # fmt: skip

    def _public(self, point: tuple[Array, Array], X: Any) -> dict[str, NDArray[Any]]:
        """``coef_`` and ``intercept_`` at a point of the solver, in the precision of X."""
        w, b = point
        scaling = self._intercept_scaling()
        if scaling is not None:
            w, b = w[:-1], scaling * w[-1]
        if w.ndim == 2:  # the softmax does not see a common shift of the classes: take it out
            b = b - b.mean()
            if isinstance(self._penalty(), NoPenalty):
                w = w - w.mean(axis=1, keepdims=True)
        coef, intercept = np.ascontiguousarray(np.atleast_2d(w.T)), np.atleast_1d(b)
        if self.solver == "liblinear":  # float64, as in scikit-learn
            return {"coef_": like(coef, X), "intercept_": like(intercept, X)}
        return {"coef_": stored(coef, X), "intercept_": stored(intercept, X)}

    def _intercept_scaling(self) -> float | None:
        if self.solver == "liblinear" and self.fit_intercept:
            return float(self.intercept_scaling)
        return None

    # ------------------------------------------------------------------ the claims

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        loss, codes, s = self._problem(y, sample_weight)
        penalty, scaling = self._penalty(), self._intercept_scaling()
        coef: Any = self.coef_
        coef = coef.toarray() if sp.issparse(coef) else to_numpy(coef)
        binary, intercept = len(self.classes_) == 2, to_numpy(self.intercept_)
        w, b = (coef[0], intercept[0]) if binary else (coef.T, intercept)
        if not isinstance(penalty, NoPenalty) or full:
            gap = duality_gap(
                X, codes, w, b, loss, penalty,
                weights=s, fit_intercept=self.fit_intercept, intercept_scaling=scaling,
            )  # fmt: skip
        if not isinstance(penalty, NoPenalty):
            null = null_value(loss, codes, s, fit_intercept=self.fit_intercept and scaling is None)
            return [gap_claim(gap, self.tol, null, "LOG-5", curvature=penalty.strong_convexity)]
        null = null_value(loss, codes, s, fit_intercept=self.fit_intercept)
        design = as_design(X)
        z = design.dot(w.astype(np.float64)) + (float(b) if binary else design.vector(b))
        claims = [_gradient_claim(X, codes, s, loss, z, self.fit_intercept, self.tol, coef.dtype)]
        if full:
            claims.append(gap_claim(gap, self.tol, null, "LOG-2"))
        else:
            why = "without a penalty the dual point needs a Newton step: surefit.verify decides it"
            claims.append(Claim.undecided("duality gap", why, Kind.OPTIMAL, "LOG-2"))
        claims.append(_finite_optimum_claim(codes, s, z, gap if full else None))
        return claims

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(X, y, sample_weight, reset=reset)
        check_classification_targets(_distinct(y) if is_torch(y) else y)
        check_scale(X)
        if not reset and not np.isin(_distinct(y), self.classes_).all():
            unknown = np.setdiff1d(_distinct(y), self.classes_)[:5].tolist()
            raise ValueError(f"y has labels {unknown} that the model was not fitted on.")
        return X, y, sample_weight

    def _remedy(self) -> str:
        if isinstance(self._penalty(), NoPenalty) and "finite optimum" in self.certificate_:
            return "Use a penalty (a finite C), or more data."
        words = _NOT_CONVERGED[self.solver].format(int(self.n_iter_[0]))
        return f"{words}, or scale the data, for instance with StandardScaler."

    def _warn_of_deprecated(self) -> None:
        if self.n_jobs is not None:
            warnings.warn(
                "'n_jobs' has no effect since 1.8 and will be removed in 1.10. You provided "
                f"'n_jobs={self.n_jobs}', please leave it unspecified.",
                FutureWarning,
                stacklevel=3,
            )
        if self.l1_ratio is None:
            if self.penalty == "elasticnet":
                raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
            if self.penalty == "deprecated":
                warnings.warn(
                    "'l1_ratio=None' was deprecated in version 1.8 and will trigger an error in 1.10. "
                    "Use 0<=l1_ratio<=1 instead.",
                    FutureWarning,
                    stacklevel=3,
                )
        if self.penalty == "deprecated":
            return
        warnings.warn(
            "'penalty' was deprecated in version 1.8 and will be removed in 1.10. Use l1_ratio=0 instead "
            "of penalty='l2', l1_ratio=1 instead of penalty='l1', l1_ratio between 0 and 1 instead of "
            "penalty='elasticnet', and C=np.inf instead of penalty=None.",
            FutureWarning,
            stacklevel=3,
        )
        if self.penalty is None and self.C != 1.0:
            warnings.warn(
                "Setting penalty=None will ignore the C and l1_ratio parameters", stacklevel=3
            )
        ratio = self.l1_ratio
        if self.penalty != "elasticnet" and ratio is not None and 0 < ratio < 1:
            warnings.warn(
                "l1_ratio parameter is only used when penalty is 'elasticnet'. Got "
                f"(penalty={self.penalty})",
                stacklevel=3,
            )
        if {"l2": 0, "l1": 1}.get(str(self.penalty), ratio) != ratio:
            warnings.warn(
                f"Inconsistent values: penalty={self.penalty} with l1_ratio={ratio}. penalty is "
                "deprecated. Please use l1_ratio only.",
                stacklevel=3,
            )

    # ------------------------------------------------------------------ prediction

    def decision_function(self, X: Any) -> Any:
        """Scores X @ coef_.T + intercept_: one column a class, or one number for two classes."""
        check_is_fitted(self)
        if is_native(X) or is_torch(self.coef_):
            scores = native_scores(self, X) if is_native(X) else self._numpy_scores(X)
            return scores[:, 0] if scores.shape[1] == 1 else scores
        return super().decision_function(X)

    def _numpy_scores(self, X: Any) -> Any:
        """Arrays, scored by a model that was fitted on tensors."""
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return X @ to_numpy(self.coef_).T + to_numpy(self.intercept_)

    def predict(self, X: Any) -> Any:
        """The label with the largest score; a tensor on the device of X where X is one."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            chosen = array_namespace(scores).astype(scores > 0, array_namespace(scores).int64)
        else:
            chosen = array_namespace(scores).argmax(scores, axis=1)
        return like(self.classes_, scores)[chosen]

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class; columns in the order of ``classes_``, rows sum to 1."""
        z = self.decision_function(X)
        if is_torch(z):
            return z.softmax(1) if z.ndim == 2 else _both((-z).sigmoid(), z.sigmoid())
        if z.ndim == 1:
            return np.column_stack([expit(-z), expit(z)])
        return softmax(z, axis=1)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of :meth:`predict_proba`, without underflow."""
        z = self.decision_function(X)
        if is_torch(z):
            if z.ndim == 1:
                z = _both(-0.5 * z, 0.5 * z)
            return z.log_softmax(1)
        if z.ndim == 1:
            return np.column_stack([log_expit(-z), log_expit(z)])
        return log_softmax(z, axis=1)

    def summary(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        level: float = 0.95,
        covariance: str = "auto",
        weights: str = "precision",
        feature_names: Any = None,
        reference: Any = None,
    ) -> Summary:
        """Coefficients with standard errors and intervals, the likelihood, AIC, BIC and McFadden's R^2.

        Parameters are those of :meth:`surefit.linear_model.LinearRegression.summary`, and

        Parameters
        ----------
        reference : label, optional
            The class that the others are compared with. Default: the first of two classes, and for more the
            mean over the classes, as in ``coef_``.

        Returns
        -------
        surefit.inference.Summary
        """
        from ._summary import summarize

        return summarize(
            self, X, y, sample_weight, level=level, covariance=covariance, weights=weights,
            feature_names=feature_names, reference=reference,
        )  # fmt: skip

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _accepts(self) -> frozenset[str]:
        smooth = isinstance(self._penalty(), NoPenalty) or not self._penalty().l1  # type: ignore[attr-defined]
        if not smooth:  # coordinate descent walks over columns
            return Certified._accepts(self)
        return ANYWHERE - ({"blocks"} if self._intercept_scaling() is not None else set())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = self.solver != "liblinear"
        return tags


def _distinct(y: Any) -> NDArray[Any]:
    """The labels that occur, in order."""
    if is_torch(y):
        return to_numpy(array_namespace(y).unique_values(y))
    if y.dtype.kind in "iu" and len(y) and int(y.min()) >= 0 and int(y.max()) < 1000:
        return np.flatnonzero(np.bincount(y)).astype(y.dtype)
    return np.unique(y)


def _both(first: Any, second: Any) -> Any:
    return array_namespace(first).stack([first, second], axis=1)


def _take(X: Any, kept: NDArray[np.bool_]) -> Any:
    return X.tocsr()[kept] if sp.issparse(X) else X[kept]


def _with_constant(X: Any, value: float) -> Any:
    if is_torch(X):
        return array_namespace(X).concat([X, array_namespace(X).full_like(X[:, :1], value)], axis=1)
    column = np.full((X.shape[0], 1), value)
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])


def _gradient_claim(
    X: Any, y: Array, s: Array, loss: Loss, z: Array, fit_intercept: bool, tol: float, dtype: Any
) -> Claim:
    """max_j |x_j'(s theta)| relative to ||x_j|| ||theta||, the intercept's column of ones included."""
    design = as_design(X)
    theta = loss.grad(z, y)
    st = scale_rows(s, theta)
    slopes = np.abs(design.tdot(st)).reshape(design.shape[1], -1).max(axis=1)
    sizes = design.column_norms(s)
    if fit_intercept:
        slopes = np.append(slopes, float(abs(st.sum(axis=0)).max()))
        sizes = np.append(sizes, math.sqrt(float(s.sum())))
    # the scale is that of the residuals at w = 0, so that a perfect fit is not divided by 0
    start = loss.grad(0.0 * z, y)
    scale = sizes * math.sqrt(float(s @ (start**2).reshape(len(s), -1).sum(axis=1)))
    observed = float(np.max(np.divide(slopes, scale, out=np.zeros_like(slopes), where=scale > 0)))
    statement = (
        f"the gradient is zero to {observed:.1e} of its scale at w = 0, and the loss is convex"
    )
    floor = 100.0 * float(np.finfo(dtype).eps)
    return Claim.check("gradient", statement, Kind.STATIONARY, observed, tol, "LOG-4", floor=floor)


def _finite_optimum_claim(y: Any, s: Any, z: Any, gap: Gap | None) -> Claim:
    """Whether the likelihood has a maximiser at all."""
    name, source = "finite optimum", "LOG-5"
    y, s, z = to_numpy(y), to_numpy(s), to_numpy(z)
    if z.ndim == 1:
        margins = y * z
    else:
        own = z[np.arange(len(z)), y.astype(np.intp)]
        others = z.copy()
        others[np.arange(len(z)), y.astype(np.intp)] = -np.inf
        margins = own - others.max(axis=1)
    smallest = float(margins[s > 0].min())
    if smallest > 0:
        statement = (
            f"the classes are separated (smallest margin {smallest:.2g}): the likelihood has no "
            "maximiser, and the coefficients would grow without bound"
        )
        return Claim.check(name, statement, Kind.EXACT, smallest, 0.0, source)
    interior = (
        gap is not None
        and math.isfinite(gap.gap)
        and _is_interior(to_numpy(gap.theta)[s > 0], y[s > 0])
    )
    if interior:
        statement = (
            "a dual point with every sample in use shows that no hyperplane separates the classes"
        )
        return Claim.check(name, statement, Kind.EXACT, 0.0, 0.0, source)
    why = "this model does not separate the classes; "
    why += (
        "surefit.verify looks for the dual point that settles it"
        if gap is None
        else "no dual point with every sample in use was found, so a separating limit is not excluded"
    )
    return Claim.undecided(name, why, Kind.EXACT, source)


def _is_interior(theta: Array, y: Array) -> bool:
    """Every probability behind a dual point strictly between 0 and 1: only then is no limit left out.

    The point is feasible to rounding, |X'(s theta)| <= 1e-11 ||x|| ||theta||, so that a probability up to
    about 1e-11 times the number of rows may be a 0 in truth: on quasi-separated data some are.
    """
    least = 1e-10 * len(theta)
    if theta.ndim == 1:
        return bool((-y * theta > least).all() and (-y * theta < 1.0 - least).all())
    own = np.zeros(theta.shape, dtype=bool)
    own[np.arange(len(theta)), y.astype(np.intp)] = True
    return bool((theta[own] < -least).all() and (theta[~own] > least).all())
