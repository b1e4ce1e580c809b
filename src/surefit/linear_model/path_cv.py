r"""Lasso and elastic net that choose their penalty by cross-validation along the regularisation path.

    min_{w, b}  1/(2 sum_i s_i) sum_i s_i (y_i - x_i'w - b)^2 + alpha (rho ||w||_1 + (1 - rho)/2 ||w||^2)

with alpha (and rho, ``l1_ratio``) from a grid: on the training rows of each fold the whole path is fitted,
each alpha starting from the last, and scored by the mean squared error on the test rows. The alpha with the
least error, averaged over the folds, is fitted to all rows. Several targets are in
:mod:`surefit.linear_model.multitask_cv`.

Certificate:

* *duality gap* (OPTIMAL): the final fit is optimal for the chosen alpha, as in :class:`Lasso`;
* *selection* (EXACT): alpha_ has the least of the recorded mean errors;
* *fold models* (OPTIMAL, decided by ``verify`` or ``certify="full"``): the models of the folds at the chosen
  alpha, kept as ``fold_coef_``, are optimal on their training rows: their duality gaps;
* *scores* (EXACT, the same): on the test rows these models have the errors recorded in ``mse_path_``.

The recorded errors of the other alphas are taken as they are, and no claim is made about new data: the least
error of several is optimistic.

References
----------
Friedman, Hastie & Tibshirani, "Regularization paths for generalized linear models via coordinate descent"
(2010), JSS 33.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from ._path_cv import PathCV
from .coordinate_descent import ElasticNet, Lasso
from .paths import enet_path, lasso_path

__all__ = ["ElasticNetCV", "LassoCV"]


class ElasticNetCV(PathCV):
    """Elastic net with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters
    ----------
    l1_ratio : float or list of float, default=0.5
        Share of the l1 penalty; of a list, the best.
    eps : float, default=1e-3
        Smallest over largest penalty of the default grid.
    alphas : int or array-like, default=100
        The penalties, or how many to lay from the largest useful one downwards.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    precompute : "auto", bool or array, default="auto"
        Kept for compatibility.
    max_iter : int, default=1000
        Most sweeps over the coordinates, for each alpha.
    tol : float, default=1e-4
        Each fit ends when its duality gap is at most ``tol`` times the objective at w = 0.
    cv : int, splitter, iterable of (train, test) or None, default=None
        The folds; ``None`` is five.
    copy_X : bool, default=True
        Kept for compatibility: X is never overwritten.
    verbose : int, default=0
        Show progress over the folds.
    n_jobs : int, default=None
        How many folds to fit at once, in threads.
    positive : bool, default=False
        Constrain the coefficients to be non-negative.
    random_state : int, RandomState or None, default=None
        For ``selection="random"``.
    selection : {"cyclic", "random"}, default="cyclic"
        Order in which the coordinates are visited.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        The chosen penalty.
    coef_ : array of shape (n_features,)
    intercept_ : float
    mse_path_ : array of shape (n_l1_ratio, n_alphas, n_folds)
        Mean squared errors on the test rows; dimensions of length 1 are left out.
    alphas_ : array of shape (n_alphas,) or (n_l1_ratio, n_alphas)
    dual_gap_ : float
        The solver's own gap at the end; the certificate computes its own.
    n_iter_ : int
    fold_coef_ : array of shape (n_folds, n_features)
    fold_intercept_ : array of shape (n_folds,)
        The models of the folds at the chosen penalty.
    folds_ : array of shape (n_samples,) or list of (train, test)
        The fold that tests each row, or the folds.
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from surefit.linear_model import ElasticNetCV
    >>> X, y = make_regression(n_features=2, random_state=0)
    >>> model = ElasticNetCV(cv=5, random_state=0).fit(X, y)
    >>> round(float(model.alpha_), 3), model.certificate_["selection"].status.name
    (0.199, 'HOLDS')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PathCV._parameter_constraints,
        "l1_ratio": [Interval(Real, 0, 1, closed="both"), "array-like"],
    }
    path = staticmethod(enet_path)

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        cv: Any = None,
        copy_X: bool = True,
        verbose: Any = 0,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    def _model(self) -> ElasticNet:
        return ElasticNet(**{**self._common(ElasticNet), "l1_ratio": self.l1_ratio_})


class LassoCV(PathCV):
    """Lasso with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters and attributes are those of :class:`ElasticNetCV`, without ``l1_ratio``.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from surefit.linear_model import LassoCV
    >>> X, y = make_regression(noise=4, random_state=0)
    >>> model = LassoCV(cv=5, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 4), model.certificate_.ok
    (0.9994, True)
    """

    path = staticmethod(lasso_path)

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        precompute: Any = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    def _model(self) -> Lasso:
        return Lasso(**self._common(Lasso))
