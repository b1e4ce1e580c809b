r"""Ridge regression that chooses its penalty by cross-validation, and what that choice rests on.

    min_{w, b}  sum_i s_i (y_i - x_i'w - b)^2 + alpha ||w||^2     with alpha from a grid

With ``cv=None`` each alpha is scored by leave-one-out, through the identity that the model fitted without
row i errs on it by e_i / (1 - h_i), with residual e_i and leverage h_i of the full fit (GEN-7): one
factorisation scores all alphas (:mod:`surefit.solvers.leave_one_out`). With ``cv`` given, every fold is one
eigendecomposition for all alphas (:mod:`surefit.solvers.ridge_path`).

Certificate:

* *duality gap* (OPTIMAL): the final fit is optimal for the chosen alpha, as in :class:`Ridge`;
* *selection* (EXACT): the chosen alpha has the best of the recorded scores, and ``best_score_`` is that;
* *scores* (EXACT, decided by ``verify`` or ``certify="full"``): computed anew from the data, by other means
  (a factorisation for each alpha and fold), all scores are the recorded ones;
* *left-out rows* (EXACT, the same, for leave-one-out): a few rows are left out in earnest; the models fitted
  without them err on them as the identity says.

No claim is made about new data: the best score of several is optimistic.

References
----------
Golub, Heath & Wahba, "Generalized cross-validation" (1979); Rifkin & Lippert, "Notes on regularized least
squares" (2007).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._metadata_requests import _raise_for_params
from sklearn.utils._param_validation import StrOptions

from ._ridge_cv import RidgeChoice
from .base import LinearRegressor, check_solution, stored
from .ridge import Ridge
from .ridge_classifier import RidgeClassifier, RidgeLabels

__all__ = ["RidgeCV", "RidgeClassifierCV"]

Array = NDArray[np.float64]


class RidgeCV(RidgeChoice, LinearRegressor):
    """Ridge regression with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=(0.1, 1.0, 10.0)
        The penalties to try; positive with leave-one-out.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    scoring : str, callable or None, default=None
        What to maximise; by default minus the squared error with leave-one-out, else R^2.
    cv : int, splitter, iterable of (train, test) or None, default=None
        ``None`` is leave-one-out, by its identity.
    gcv_mode : {"auto", "svd", "eigen"}, default=None
        "svd" for a singular value decomposition in any case; otherwise it is used where an
        eigendecomposition would cost digits.
    store_cv_results : bool, default=False
        Keep ``cv_results_`` (leave-one-out only).
    alpha_per_target : bool, default=False
        Choose an alpha for each target (leave-one-out only).
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    alpha_ : float or array of shape (n_targets,)
    best_score_ : float or array of shape (n_targets,)
    cv_results_ : array of shape (n_samples, n_alphas) or (n_samples, n_targets, n_alphas)
        Squared errors times weights, or, with ``scoring``, the predictions of the left-out rows.
    cv_scores_ : array of shape (n_alphas,), (n_alphas, n_targets) or (n_alphas, n_folds)
        What alpha was chosen by.
    folds_ : array of shape (n_samples,) or list of (train, test)
        With ``cv``: the fold that tests each row, or the folds.
    scored_with_ : tuple of str
        The names of what the scorer was given besides predictions and targets.
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from surefit.linear_model import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> model.alpha_, round(model.score(X, y), 4), model.certificate_["selection"].status.name
    (0.01, 0.5166, 'HOLDS')
    """

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        certify: bool | str = True,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeCV:
        """Choose alpha, then fit the model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
        **params
            For the scorer and the splitter, with metadata routing enabled.
        """
        _raise_for_params(params, self, "fit")
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        return self._fit(X, y, sample_weight, params)

    def _problem(self, y: Any, sample_weight: Any) -> tuple[Array, Array | None]:
        return y, sample_weight

    def _model(self) -> Ridge:
        return Ridge(fit_intercept=self.fit_intercept, certify=False)

    def _set_solution(self, coef: Array, intercept: Array, target: Array, X: Any) -> None:
        self._store(coef, intercept, target, X, flat=True)


class RidgeClassifierCV(RidgeChoice, RidgeLabels):
    """Ridge classifier with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters and attributes are those of :class:`RidgeCV` and :class:`RidgeClassifier`. With ``scoring`` and
    leave-one-out the score is that of the predicted labels against the true ones.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifierCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> round(model.score(X, y), 4), model.certificate_.ok
    (0.9631, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: rule
            for name, rule in RidgeChoice._parameter_constraints.items()
            if name not in ("gcv_mode", "alpha_per_target")
        },
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        store_cv_results: bool = False,
        certify: bool | str = True,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.class_weight = class_weight
        self.store_cv_results = store_cv_results
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeClassifierCV:
        """Choose alpha, then fit the model on all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
        sample_weight : float or array-like of shape (n_samples,), optional
        **params
            For the scorer and the splitter, with metadata routing enabled.
        """
        _raise_for_params(params, self, "fit")
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self._learn_labels(y)
        return self._fit(X, y, sample_weight, params)

    def _problem(self, y: Any, sample_weight: Any) -> tuple[Array, Array | None]:
        return self._targets(y), self._weights(y, sample_weight)

    def _model(self) -> RidgeClassifier:
        model = RidgeClassifier(fit_intercept=self.fit_intercept, certify=False)
        model.classes_, model.multilabel_ = self.classes_, self.multilabel_
        return model

    def _set_solution(self, coef: Array, intercept: Array, target: Array, X: Any) -> None:
        flat = coef.shape[1] == 1
        check_solution(coef, intercept)
        self.coef_ = stored(np.ascontiguousarray(coef[:, 0] if flat else coef.T), X)
        self.intercept_ = stored(intercept, X) if self.fit_intercept else 0.0
