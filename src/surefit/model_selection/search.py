"""Search over parameters by cross-validation, and what may be said about the result.

scikit-learn's ``GridSearchCV`` and ``RandomizedSearchCV``: same parameters, same ``cv_results_``. Beyond
them, candidates share work over folds where their family allows it (``reuse``), and the fit leaves a
certificate.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import GridSearchCV as _GridSearchCV
from sklearn.model_selection import RandomizedSearchCV as _RandomizedSearchCV

from ._certified import EXTRAS
from ._search import Search

__all__ = ["GridSearchCV", "RandomizedSearchCV"]


class GridSearchCV(Search, _GridSearchCV):
    """Exhaustive search over a grid of parameters, by cross-validation.

    scikit-learn's class, with two additions. Candidates of one family share work over folds and along paths
    (``reuse_`` says which); scores are those of separate fits. And ``certificate_`` says what was shown:

    * ``"folds"``: no row was tested by a model fitted on it.
    * ``"selection"``: the chosen candidate has the best recorded score.
    * ``"scores"``: the recorded scores are those that separate fits on the recorded folds give. Decided by
      :func:`surefit.verify` or ``certify="full"``, which make all fits again, one by one.
    * ``"generalisation"``: with probability at least 1 - delta the *fold models* of the chosen candidate
      have a mean true loss near the mean score. Each of the K x F models of K candidates and F folds gets
      delta / (K F), whether its fit succeeded or not, so it does not matter which one was chosen. Each is
      tested on rows its fit did not use, but best_estimator_, refitted on all rows, is none of them, and
      has no such claim: :class:`HoldOut` gives one.
    * ``"selection excess"``: how much worse than the best candidate the chosen one can be.

    Under stratified folds, which classifiers get by default, the test rows have the class frequencies of
    all rows. They are then independent given the classes, and the bound is about the error at these class
    frequencies.

    Folds are those of ``cv``; a search never changes them, it checks them. Where a fold tests copies of rows
    that its model was fitted on (repeats that chance does not explain), or rows of a group that ``fit`` was
    given, the statistical claims are undecided; with ``groups`` and ``cv=GroupKFold()`` they are about the
    mean over groups. They are undecided as well where rows nearly repeat each other, or a column looks like
    the number of a person or a place, until ``groups`` are given or ``rows_are_independent=True``.

    Parameters
    ----------
    estimator, param_grid, scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As in scikit-learn.
    delta : float, default=0.05
        Probability that the statistical claims may be wrong.
    bound : {'hoeffding', 'clopper-pearson', 'bernstein'}, default='hoeffding'
        Which bound is quoted; see :mod:`surefit.model_selection.bounds`. Fixed here, before data are seen.
    loss_range : (float, float), default=None
        Least and largest loss of a row, for losses that are not bounded by themselves (squared and
        absolute errors). It must be known beforehand; a loss outside it makes the claim fail.
    reuse : bool, default=True
        Share work between candidates and folds where possible.
    rows_are_independent : bool, default=False
        Say that rows are independent although some nearly repeat each other, or a column looks like the
        number of a person or a place. Copies stay copies. See :mod:`surefit.stats`.
    certify : bool or 'full', default=True
        Which claims to decide at fit.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, multimetric_
        As in scikit-learn.
    reuse_ : str
        How fits shared work, or 'none'.
    folds_ : array or list
        The fold that tests each row, or the (train, test) rows of each fold.
    evidence_ : ndarray of shape (n_candidates, n_splits, 4)
        Mean, variance, least and largest loss of each fold model on its test rows; of grouped rows, mean and
        variance of the means of the groups. NaN where no bound is stated.
    groups_ : ndarray of int or None
        Number of the group of each row, where ``fit`` was given groups.
    certificate_ : Certificate
        The claims.
    statement_ : str
        The claim "generalisation" in words.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0, 10.0]}).fit(X, y)
    >>> search.best_params_
    {'alpha': 0.1}
    >>> print(search.statement_)
    with probability 95 %, the mean true error of the 5 fold models of alpha=0.1 at the class frequencies of
    the test rows is within 0.168 of 0.044, after trying 3 candidates on 5 folds; rows drawn independently
    from one distribution; it is about the fold models, not about best_estimator_
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_GridSearchCV._parameter_constraints,
        **EXTRAS,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        delta: float = 0.05,
        bound: str = "hoeffding",
        loss_range: tuple[float, float] | None = None,
        reuse: bool = True,
        rows_are_independent: bool = False,
        certify: bool | str = True,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.delta = delta
        self.bound = bound
        self.loss_range = loss_range
        self.reuse = reuse
        self.rows_are_independent = rows_are_independent
        self.certify = certify


class RandomizedSearchCV(Search, _RandomizedSearchCV):
    """Search over ``n_iter`` candidates drawn from distributions, by cross-validation.

    Everything else, the certificate included, is as in :class:`GridSearchCV`.

    Parameters
    ----------
    estimator, param_distributions, n_iter, scoring, n_jobs, refit, cv, verbose, pre_dispatch, random_state, \
    error_score, return_train_score
        As in scikit-learn.
    delta, bound, loss_range, reuse, rows_are_independent, certify
        As in :class:`GridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> grid = {"alpha": loguniform(0.01, 100)}
    >>> search = RandomizedSearchCV(RidgeClassifier(), grid, n_iter=4, random_state=0)
    >>> search.fit(X, y).certificate_["selection"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_RandomizedSearchCV._parameter_constraints,
        **EXTRAS,
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        delta: float = 0.05,
        bound: str = "hoeffding",
        loss_range: tuple[float, float] | None = None,
        reuse: bool = True,
        rows_are_independent: bool = False,
        certify: bool | str = True,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.delta = delta
        self.bound = bound
        self.loss_range = loss_range
        self.reuse = reuse
        self.rows_are_independent = rows_are_independent
        self.certify = certify
