r"""Multi-task Lasso and elastic net that choose their penalty by cross-validation along the path.

    min_{W, b}  1/(2 sum_i s_i) sum_i s_i ||y_i - W'x_i - b||^2
                + alpha (rho sum_j ||W_j|| + (1 - rho)/2 ||W||^2)

with alpha (and rho, ``l1_ratio``) from a grid: the penalty of :class:`MultiTaskElasticNet`, the choice and
the certificate of :class:`ElasticNetCV`, with errors averaged over the targets.

References
----------
Obozinski, Taskar & Jordan, "Joint covariate selection" (2010).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ._path_cv import PathCV
from .multitask import MultiTaskElasticNet, MultiTaskLasso
from .path_cv import ElasticNetCV
from .paths import enet_path, lasso_path

__all__ = ["MultiTaskElasticNetCV", "MultiTaskLassoCV"]


class MultiTaskElasticNetCV(PathCV):
    """Multi-task elastic net with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters and attributes are those of :class:`ElasticNetCV`, without ``precompute`` and ``positive``;
    ``coef_`` has the shape (n_targets, n_features).

    Examples
    --------
    >>> from surefit.linear_model import MultiTaskElasticNetCV
    >>> X, Y = [[0, 0], [1, 1], [2, 2], [3, 3]], [[0, 0], [1, 1], [2, 2], [3, 3]]
    >>> model = MultiTaskElasticNetCV(cv=3, alphas=10).fit(X, Y)
    >>> model.coef_.round(2).tolist(), model.certificate_.ok
    ([[0.53, 0.47], [0.53, 0.47]], True)
    """

    _multitask: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: rule
        for name, rule in ElasticNetCV._parameter_constraints.items()
        if name not in ("precompute", "positive")
    }
    path = staticmethod(enet_path)

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        cv: Any = None,
        copy_X: bool = True,
        verbose: Any = 0,
        n_jobs: int | None = None,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.copy_X = copy_X
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    def _model(self) -> MultiTaskElasticNet:
        common = self._common(MultiTaskElasticNet)
        return MultiTaskElasticNet(**{**common, "l1_ratio": self.l1_ratio_})


class MultiTaskLassoCV(PathCV):
    """Multi-task Lasso with built-in cross-validation, a drop-in for scikit-learn's.

    Parameters and attributes are those of :class:`MultiTaskElasticNetCV`, without ``l1_ratio``.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from surefit.linear_model import MultiTaskLassoCV
    >>> X, Y = make_regression(n_targets=2, noise=4, random_state=0)
    >>> model = MultiTaskLassoCV(cv=5, alphas=20).fit(X, Y)
    >>> model.coef_.shape, model.certificate_.ok
    ((2, 100), True)
    """

    _multitask: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: rule
        for name, rule in PathCV._parameter_constraints.items()
        if name not in ("precompute", "positive")
    }
    path = staticmethod(lasso_path)

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        alphas: Any = 100,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-4,
        copy_X: bool = True,
        cv: Any = None,
        verbose: Any = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.eps = eps
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.copy_X = copy_X
        self.cv = cv
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    def _model(self) -> MultiTaskLasso:
        return MultiTaskLasso(**self._common(MultiTaskLasso))
