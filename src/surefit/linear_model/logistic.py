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
from collections.abc import Iterator
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils import compute_class_weight
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from .._namespace import array_namespace, is_torch, like, to_numpy
from .._threads import rows_only
from ..base import SPREAD, Certified
from ..certificate import Claim, Kind
from ..design import RowBlocks, as_design
from ..duality import duality_gap, gap_claim, null_value
from ..inputs import as_vector, is_native
from ..iterate import Fit
from ..losses import Logistic, Loss, Softmax
from ..penalties import ElasticNet as ElasticNetPenalty
from ..penalties import NoPenalty, Penalty
from ._attribute_checks import wrong_classes, wrong_counts, wrong_intercept, wrong_shapes
from ._logistic_claims import finite_optimum_claim, gradient_claim
from ._logistic_fit import minimise, take_rows, with_constant
from ._logistic_predictions import LogOddsClassifier, distinct
from ._logistic_words import NOT_CONVERGED, warn_of_deprecated
from .base import check_scale, check_solution, explained_errors, stored, trusts_scale
from .callbacks import FitTasks

if TYPE_CHECKING:
    pass

__all__ = ["LogisticRegression"]

Array = NDArray[np.float64]


class LogisticRegression(CallbackSupportMixin, LogOddsClassifier, SparseCoefMixin, Certified):
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
        warn_of_deprecated(self)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self.classes_ = self._checked_classes(y, sample_weight)
        if len(self.classes_) > 2 and self._has_l1() and is_native(X):
            raise TypeError(
                "LogisticRegression with an l1 part and more than two classes takes arrays and sparse "
                "matrices: pass X.cpu().numpy(), set l1_ratio=0, or fit one model for each class."
            )
        loss, codes, s = self._problem(y, sample_weight)
        kept, rows = s > 0, X
        if not kept.all() and not isinstance(X, RowBlocks):
            rows, codes, s = take_rows(X, kept, codes, s)
        tasks = None
        if hasattr(self, "_skl_callbacks"):
            tasks = FitTasks(self, X, y, sample_weight, lambda point: self._public(point, X))
        with rows_only(rows), explained_errors(X, C=self.C):
            fit = self._solve(rows, codes, s, loss, self._start(X.shape[1]), tasks)
        check_solution(*fit.x)
        self.__dict__.update(self._public(fit.x, X))
        self.n_iter_ = np.array([fit.n_iter], dtype=np.int32)
        del rows, codes, s, kept  # the certificate makes its own
        with rows_only(X):
            self._seal(X, y, sample_weight, fit.stop.value)
        if tasks is not None:
            tasks.finish()
        return self

    def _checked_classes(self, y: Any, sample_weight: Array | None) -> Any:
        """The labels, once it is clear that a model can be fitted to them."""
        classes = distinct(y)
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
            weighed = distinct(y[sample_weight > 0])
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

    def _has_l1(self) -> bool:
        penalty = self._penalty()
        return isinstance(penalty, ElasticNetPenalty) and penalty.l1 > 0

    def _problem(self, y: Any, sample_weight: Array | None) -> tuple[Loss, Array, Array]:
        """The loss, the labels in its coding, and the weight of each sample's loss."""
        xp, classes = array_namespace(y), like(self.classes_, y)
        if len(self.classes_) == 2:
            codes = xp.astype(y == classes[1], xp.float64)
        else:
            codes = as_vector(xp.searchsorted(classes, y), y)
        s = xp.ones_like(codes) if sample_weight is None else sample_weight
        if self.class_weight is not None:
            by_class = compute_class_weight(
                self.class_weight, classes=self.classes_, y=to_numpy(y), sample_weight=to_numpy(s)
            )
            s = s * like(by_class, y)[xp.astype(codes, xp.int64)]
        if not isinstance(self._penalty(), NoPenalty) and self.C != 1.0:
            s = s * float(self.C)
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
        (w, b), free = start, self.fit_intercept
        scaling = self._intercept_scaling()
        if scaling is not None:  # the intercept becomes a feature like any other
            X, free = with_constant(X, scaling), False
            w, b = np.append(w, b / scaling), np.zeros(())
        return minimise(
            X, y, s, loss, self._penalty(), (w, b), free, tol=self.tol, max_iter=self.max_iter,
            verbose=int(self.verbose), name=type(self).__name__, tasks=tasks,
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

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_classes(self, distinct(y))
        rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        yield from wrong_shapes(self, coef_=(rows, X.shape[1]), intercept_=(rows,))
        yield from wrong_intercept(self)
        yield from self._wrong_iterations(X, y)

    def _wrong_iterations(self, X: Any, y: Any) -> Iterator[str]:
        yield from wrong_counts(self, n_iter_=(1,))

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
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
            return [gap_claim(gap, tol, null, "LOG-5", curvature=penalty.strong_convexity)]
        null = null_value(loss, codes, s, fit_intercept=self.fit_intercept)
        design = as_design(X)
        z = design.dot(w.astype(np.float64)) + (float(b) if binary else design.vector(b))
        claims = [gradient_claim(X, codes, s, loss, z, self.fit_intercept, tol, coef.dtype)]
        if full:
            claims.append(gap_claim(gap, tol, null, "LOG-2"))
        else:
            why = "without a penalty the dual point needs a Newton step: surefit.verify decides it"
            claims.append(Claim.undecided("duality gap", why, Kind.OPTIMAL, "LOG-2"))
        point = (w.astype(np.float64), b)
        claims.append(
            finite_optimum_claim(X, codes, s, z, gap if full else None, point, self.fit_intercept)
        )
        return claims

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(
            X, y, sample_weight, reset=reset, ensure_all_finite=not trusts_scale(X)
        )
        if is_torch(y) or y.dtype.kind not in "iub":  # whole numbers are labels
            check_classification_targets(distinct(y) if is_torch(y) else y)
        check_scale(X, estimator=type(self).__name__)
        if not reset and not np.isin(distinct(y), self.classes_).all():
            unknown = np.setdiff1d(distinct(y), self.classes_)[:5].tolist()
            raise ValueError(f"y has labels {unknown} that the model was not fitted on.")
        return X, y, sample_weight

    def _remedy(self) -> str:
        if isinstance(self._penalty(), NoPenalty) and "finite optimum" in self.certificate_:
            return "Use a penalty (a finite C), or more data."
        words = NOT_CONVERGED[self.solver].format(int(self.n_iter_[0]))
        return f"{words}, or scale the data, for instance with StandardScaler."

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")

    def _accepts(self) -> frozenset[str]:
        refused = {"blocks", "ranks"} if self._intercept_scaling() is not None else set()
        return SPREAD - refused - ({"ranks"} if self._has_l1() else set())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = self.solver != "liblinear"
        return tags
