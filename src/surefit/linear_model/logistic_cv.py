r"""Logistic regression that chooses its penalty by cross-validation, and what that choice rests on.

    min_{w, b}  C sum_i s_i log(1 + exp(-y_i (x_i'w + b))) + rho ||w||_1 + (1 - rho)/2 ||w||^2

with C (and rho, ``l1_ratio``) from a grid; softmax cross-entropy for more than two classes, as in
:class:`LogisticRegression`. On the training rows of each fold the models for all C are fitted one after the
other, each starting from the last, and scored on the test rows. The C with the best average score is fitted
to all rows.

Certificate:

* *duality gap* (OPTIMAL): the final fit is optimal for the chosen C, as in :class:`LogisticRegression`; with
  ``refit=False``, where the coefficients are an average over the folds, *average* (EXACT): they are that;
* *selection* (EXACT): the chosen C has the best of the recorded scores;
* *fold models* (OPTIMAL, decided by ``verify`` or ``certify="full"``): the models of ``coefs_paths_`` at the
  chosen C are optimal on their training rows;
* *scores* (EXACT, the same): all models of ``coefs_paths_`` have on the test rows the scores recorded in
  ``scores_``.

No claim is made about new data: the best score of several is optimistic.

References
----------
Friedman, Hastie & Tibshirani, "Regularization paths for generalized linear models via coordinate descent"
(2010), JSS 33.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils._metadata_requests import _raise_for_params, _routing_enabled, process_routing
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed

from .._selection import pack_folds
from ._logistic_cv import LogisticChoice
from ._logistic_cv_spellings import (
    checked_Cs,
    checked_ratios,
    publish,
    scoring_of,
    warn_of_deprecated,
)
from ._logistic_folds import fold_path
from .base import explained_errors
from .logistic import LogisticRegression

__all__ = ["LogisticRegressionCV"]


class LogisticRegressionCV(LogisticChoice):
    """Logistic regression with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters
    ----------
    Cs : int or array-like, default=10
        The weights of the loss, or how many to lay from 1e-4 to 1e4.
    l1_ratios : array-like or None, default=None
        Shares of the l1 penalty to try; the default will be (0.0,), as in scikit-learn.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    cv : int, splitter, iterable of (train, test) or None, default=None
        The folds; ``None`` is five, stratified.
    dual : bool, default=False
        Kept for compatibility.
    penalty : {"l1", "l2", "elasticnet"}, default="deprecated"
        Deprecated as in scikit-learn: use ``l1_ratios``.
    scoring : str, callable or None, default=None
        What to maximise; ``None`` is accuracy, and the default will be "neg_log_loss", as in scikit-learn.
    solver : str, default="lbfgs"
        Any of scikit-learn's names, with any penalty.
    tol : float, default=1e-4
        The duality gaps are claimed to be at most ``tol`` times the objective at w = 0.
    max_iter : int, default=100
        Most Newton steps, for each C.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; "balanced" is by all rows, not fold by fold.
    n_jobs : int, default=None
        How many folds to fit at once, in threads.
    verbose : int, default=0
        Show progress over the folds.
    refit : bool, default=True
        Whether to fit the chosen C to all rows; if not, the best C and the coefficients are averages over the
        folds.
    intercept_scaling : float, default=1.0
        With ``solver="liblinear"`` only: the value of the constant feature.
    random_state : default=None
        Kept for compatibility: nothing here is random.
    use_legacy_attributes : bool, default=True
        The shapes of the fitted attributes, as in scikit-learn.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    Cs_, l1_ratios_ : array
        The grid.
    C_, l1_ratio_ : float; array of shape (1,) or (n_classes,) in the legacy form
    coefs_paths_ : array of shape (n_folds, n_l1_ratios, n_cs, n_classes, n_dof); dict in the legacy form
        The models of the folds; the intercept comes last.
    scores_ : array of shape (n_folds, n_l1_ratios, n_cs); dict in the legacy form
    n_iter_ : array of shape (n_folds, n_l1_ratios, n_cs); (1, n_folds, n_cs, ...) in the legacy form
    folds_ : array of shape (n_samples,) or list of (train, test)
        The fold that tests each row, or the folds.
    scored_with_ : tuple of str
        The names of what the scorer was given besides the model, rows and labels.
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from surefit.linear_model import LogisticRegressionCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegressionCV(
    ...     cv=5, l1_ratios=(0,), scoring="neg_log_loss", use_legacy_attributes=False
    ... ).fit(X, y)
    >>> round(model.score(X, y), 3), model.certificate_["selection"].status.name
    (-0.041, 'HOLDS')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: rule
            for name, rule in LogisticRegression._parameter_constraints.items()
            if name not in ("C", "warm_start", "l1_ratio")
        },
        "Cs": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "l1_ratios": ["array-like", None, Hidden(StrOptions({"warn"}))],
        "cv": ["cv_object"],
        "scoring": [
            StrOptions(set(get_scorer_names())),
            callable,
            None,
            Hidden(StrOptions({"warn"})),
        ],
        "refit": ["boolean"],
        "penalty": [
            StrOptions({"l1", "l2", "elasticnet"}),
            Hidden(StrOptions({"deprecated"})),
        ],
        "use_legacy_attributes": ["boolean", Hidden(StrOptions({"warn"}))],
    }

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratios: Any = "warn",
        fit_intercept: bool = True,
        cv: Any = None,
        dual: bool = False,
        penalty: str = "deprecated",
        scoring: Any = "warn",
        solver: str = "lbfgs",
        tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        refit: bool = True,
        intercept_scaling: float = 1.0,
        random_state: Any = None,
        use_legacy_attributes: bool | str = "warn",
        certify: bool | str = True,
    ) -> None:
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.dual = dual
        self.penalty = penalty
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.refit = refit
        self.intercept_scaling = intercept_scaling
        self.random_state = random_state
        self.use_legacy_attributes = use_legacy_attributes
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LogisticRegressionCV:
        """Choose the penalty, then fit the model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            For the fits and, where the scorer takes them, for the scores.
        **params
            For the splitter and the scorer, with metadata routing enabled.
        """
        _raise_for_params(params, self, "fit")
        warn_of_deprecated(self)
        ratios = checked_ratios(self)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self.classes_ = self._checked_classes(y, sample_weight)
        self.Cs_ = checked_Cs(self)
        split: dict[str, Any] = {}
        given: dict[str, Any] = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            split, given = dict(routed.splitter.split), dict(routed.scorer.score)
        rows = X.tocsr() if sp.issparse(X) else X
        cv = check_cv(self.cv, y, classifier=True)
        folds = [(np.asarray(a), np.asarray(b)) for a, b in cv.split(rows, y, **split)]
        if scoring_of(self) is None:
            given = {} if sample_weight is None else {"sample_weight": sample_weight}
        weights = self._class_weight(y, sample_weight)
        jobs = (
            delayed(fold_path)(
                self._model(math.nan, ratio, weights), rows, y, sample_weight, train, test,
                self.Cs_, scoring_of(self), given,
            )
            for train, test in folds
            for ratio in ratios
        )  # fmt: skip
        with explained_errors(rows, Cs=self.Cs_.tolist()):
            paths = Parallel(n_jobs=self.n_jobs, verbose=int(self.verbose), prefer="threads")(jobs)
        shape = (len(folds), len(ratios), len(self.Cs_))
        scores = np.array([path.scores for path in paths]).reshape(shape)
        coefs = np.array([path.coefs for path in paths])
        coefs = coefs.reshape(*shape, *coefs.shape[2:])
        self.folds_, self.scored_with_ = pack_folds(folds, len(y)), tuple(sorted(given))
        self._choose(rows, y, sample_weight, ratios, scores, coefs)
        iterations = np.array([path.n_iter for path in paths], dtype=np.int32).reshape(shape)
        publish(self, ratios, scores, coefs, iterations)
        self._warn_of_unfinished(sum(path.unfinished for path in paths), scores.size)
        return self._seal(X, y, sample_weight, "the models of all folds, and the last, were fitted")
