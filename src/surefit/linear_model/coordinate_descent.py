r"""Lasso and elastic net by coordinate descent, certified by their duality gap.

    min_{w, b}  1/(2 sum_i s_i) sum_i s_i (y_i - x_i'w - b)^2 + alpha (rho ||w||_1 + (1 - rho)/2 ||w||^2)

rho is ``l1_ratio``; the Lasso has rho = 1. The corners of the l1-ball give sparsity: w = 0 exactly
when alpha rho >= max_j |x_j'(y - ybar)| / n, and at the optimum |x_j'e| / n <= alpha, with equality
on the support (REG-14).

Certificate: the duality gap (OPTIMAL), recomputed from the data and the coefficients alone, at most
``tol`` times the objective at w = 0. With ``certify="full"`` (or :func:`surefit.verify`) it also
says how many of the zero coefficients are zero in *every* optimal solution (the Gap Safe sphere
test).

References
----------
Tibshirani (1996); Zou & Hastie (2005); Ndiaye et al., "Gap Safe screening rules" (2017).
"""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions, validate_params

from ..base import Certified
from ..certificate import CertificateWarning, Claim, Kind
from ..design import Design, as_design
from ..duality import Gap, duality_gap, null_value
from ..iterate import Fit, run
from ..losses import Squared
from ..penalties import ElasticNet as ElasticNetPenalty
from ..penalties import NoPenalty, Penalty
from ..solvers.coordinate import ElasticNetData, elastic_net, largest_penalty
from .base import LinearRegressor
from .least_squares import kept_rows
from .ridge import worst_gap_claim

__all__ = ["ElasticNet", "Lasso", "enet_path", "lasso_path"]

Array = NDArray[np.float64]
_FLOOR = 1e-15  # relative gap below which further sweeps only move rounding


class ElasticNet(LinearRegressor):
    """Linear regression with an l1 and an l2 penalty, a drop-in for scikit-learn's.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty. 0 is allowed but LinearRegression is the better tool.
    l1_ratio : float, default=0.5
        Share of the l1 penalty.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    precompute : bool or array of shape (n_features, n_features), default=False
        Kept for compatibility; a given Gram matrix is checked against X, not used.
    max_iter : int, default=1000
        Most sweeps over the coordinates.
    copy_X : bool, default=True
        Kept for compatibility: X is never overwritten.
    tol : float, default=1e-4
        The fit ends when its duality gap is at most ``tol`` times the objective at w = 0.
    warm_start : bool, default=False
        Start from the previous solution.
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
    coef_ : array of shape (n_features,) or (n_targets, n_features)
    intercept_ : float or array of shape (n_targets,)
    dual_gap_ : float or array of shape (n_targets,)
        The solver's own gap at the end; the certificate computes its own.
    n_iter_ : int or list of int
        Sweeps used.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.linear_model import ElasticNet
    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(n_features=2, random_state=0)
    >>> model = ElasticNet(random_state=0).fit(X, y)
    >>> model.coef_.round(3).tolist(), model.certificate_.ok
    ([18.838, 64.56], True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "fit_intercept": ["boolean"],
        "precompute": ["boolean", "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "copy_X": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "positive": ["boolean"],
        "random_state": ["random_state"],
        "selection": [StrOptions({"cyclic", "random"})],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        precompute: Any = False,
        max_iter: int | None = 1000,
        copy_X: bool = True,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True
    ) -> ElasticNet:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
            Only the proportions matter.
        check_input : bool, default=True
            Kept for compatibility: the input is always checked.
        """
        if self.alpha == 0:
            warnings.warn(
                "With alpha=0, this algorithm does not converge well. You are advised to use the "
                "LinearRegression estimator",
                stacklevel=2,
            )
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        rows, Y, s = kept_rows(X, y, sample_weight)
        check_gram(self.precompute, rows, s, self.fit_intercept)
        rng = _generator(self.selection, self.random_state)
        coef = self._start(X.shape[1], Y.shape[1])
        intercept = np.zeros(Y.shape[1])
        fits: list[Fit] = []
        for k in range(Y.shape[1]):
            data = ElasticNetData.prepare(
                rows, Y[:, k], s / s.sum(), fit_intercept=self.fit_intercept
            )
            fits.append(
                _solve(data, self.alpha, self.l1_ratio, coef[:, k], self.positive, rng, self.tol,
                       self.max_iter)
            )  # fmt: skip
            intercept[k] = data.y_mean - float(data.mean @ coef[:, k])
        self._store(coef, intercept, y, X.dtype, flat=True)
        gaps = np.array([fit.observed for fit in fits], dtype=X.dtype)
        single = len(fits) == 1
        self.n_iter_ = fits[0].n_iter if single else [fit.n_iter for fit in fits]
        self.dual_gap_ = gaps[0] if single else gaps
        return self._seal(X, y, sample_weight, fits[-1].stop.value)

    def _start(self, n_features: int, n_targets: int) -> Array:
        if self.warm_start and hasattr(self, "coef_"):
            start = np.atleast_2d(self.coef_).T.astype(np.float64)
            if start.shape == (n_features, n_targets):
                return np.asfortranarray(start)
        return np.zeros((n_features, n_targets), order="F")

    @property
    def sparse_coef_(self) -> Any:
        """``coef_`` as a sparse matrix."""
        return sp.csr_matrix(np.atleast_2d(self.coef_))

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> Any:
        """The whole regularisation path: :func:`enet_path`."""
        return enet_path(X, y, **options)

    def _penalty(self) -> Penalty:
        if self.alpha == 0:
            return NoPenalty(positive=self.positive)
        return ElasticNetPenalty(float(self.alpha), float(self.l1_ratio), self.positive)

    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
        coef, intercept = self._solution()
        design, Y = as_design(X), y.reshape(len(y), -1)
        weights = np.ones(len(Y)) if sample_weight is None else sample_weight
        s = weights / weights.sum()
        penalty = self._penalty()
        if isinstance(penalty, NoPenalty) and (not full or penalty.positive):
            why = "without a penalty the dual needs the spectrum of X: use LinearRegression"
            return [Claim.undecided("duality gap", why, Kind.OPTIMAL, "REG-14")]
        gaps = [
            duality_gap(
                design, Y[:, k], coef[:, k], intercept[k], Squared(), penalty,
                weights=s, fit_intercept=self.fit_intercept,
            )
            for k in range(Y.shape[1])
        ]  # fmt: skip
        nulls = [null_value(Squared(), t, s, fit_intercept=self.fit_intercept) for t in Y.T]
        curvature = np.full(len(gaps), penalty.strong_convexity)
        claims = [worst_gap_claim(gaps, nulls, self.tol, "REG-14", curvature)]
        if full and len(gaps) == 1 and isinstance(penalty, ElasticNetPenalty) and penalty.l1 > 0:
            claims.append(_zeros_claim(design, s, coef[:, 0], gaps[0], penalty, self.fit_intercept))
        return claims


class Lasso(ElasticNet):
    """Linear regression with an l1 penalty, a drop-in for scikit-learn's.

    Parameters and attributes are those of :class:`ElasticNet`, without ``l1_ratio``.

    Examples
    --------
    >>> from surefit.linear_model import Lasso
    >>> model = Lasso(alpha=0.1).fit([[0, 0], [1, 1], [2, 2]], [0, 1, 2])
    >>> model.coef_.round(4).tolist(), round(float(model.intercept_), 4)
    ([0.85, 0.0], 0.15)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        key: value for key, value in ElasticNet._parameter_constraints.items() if key != "l1_ratio"
    }
    l1_ratio = 1.0

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        precompute: Any = False,
        copy_X: bool = True,
        max_iter: int | None = 1000,
        tol: float = 1e-4,
        warm_start: bool = False,
        positive: bool = False,
        random_state: Any = None,
        selection: str = "cyclic",
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.certify = certify

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> Any:
        """The whole regularisation path: :func:`lasso_path`."""
        return lasso_path(X, y, **options)


# ---------------------------------------------------------------------------- paths


@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "y": ["array-like", "sparse matrix"],
        "l1_ratio": [Interval(Real, 0.0, 1.0, closed="both")],
        "eps": [Interval(Real, 0, None, closed="neither"), None],
        "n_alphas": [
            Interval(Integral, 1, None, closed="left"),
            Hidden(StrOptions({"deprecated"})),
        ],
        "alphas": [
            Interval(Integral, 1, None, closed="left"),
            "array-like",
            None,
            Hidden(StrOptions({"warn"})),
        ],
        "precompute": [StrOptions({"auto"}), "boolean", "array-like"],
        "Xy": ["array-like", None],
        "copy_X": ["boolean"],
        "coef_init": ["array-like", None],
        "verbose": ["verbose"],
        "return_n_iter": ["boolean"],
        "positive": ["boolean"],
        "check_input": ["boolean"],
    },
    prefer_skip_nested_validation=True,
)
def enet_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    eps: float | None = 1e-3,
    n_alphas: Any = "deprecated",
    alphas: Any = "warn",
    precompute: Any = "auto",
    Xy: Any = None,
    copy_X: bool = True,
    coef_init: Any = None,
    verbose: Any = False,
    return_n_iter: bool = False,
    positive: bool = False,
    check_input: bool = True,
    **params: Any,
) -> Any:
    """The elastic net along a decreasing sequence of penalties, each fit starting from the last.

    As in scikit-learn there is no intercept: centre X and y first if one is wanted.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    l1_ratio : float, default=0.5
    eps : float, default=1e-3
        Smallest over largest penalty of the default grid.
    alphas : int or array-like, default=100
        The penalties, or how many to lay from the largest useful one downwards.
    coef_init : array of shape (n_features,), optional
    return_n_iter : bool, default=False
    positive : bool, default=False
    **params
        ``tol``, ``max_iter``, ``selection``, ``random_state``, ``sample_weight``, as in ElasticNet.
        ``precompute``, ``Xy``, ``copy_X`` and ``check_input`` are kept for compatibility.

    Returns
    -------
    alphas : array of shape (n_alphas,)
    coefs : array of shape (n_features, n_alphas)
    dual_gaps : array of shape (n_alphas,)
    n_iters : list of int
        Only with ``return_n_iter``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.2], [2.0, -0.1], [3.0, 0.4]]); y = np.array([1.0, 2.0, 3.1])
    >>> alphas, coefs, gaps = enet_path(X, y, alphas=[5.0, 0.5], l1_ratio=1.0)
    >>> coefs.round(3).tolist()
    [[0.0, 0.914], [0.0, 0.0]]
    """
    grid = _requested_alphas(n_alphas, alphas)
    tol, max_iter = params.pop("tol", 1e-4), params.pop("max_iter", 1000)
    selection, random_state = params.pop("selection", "cyclic"), params.pop("random_state", None)
    sample_weight = params.pop("sample_weight", None)
    for unused in ("X_offset", "X_scale", "do_screening"):
        params.pop(unused, None)
    if params:
        raise ValueError("Unexpected parameters in params", params.keys())
    if selection not in ("cyclic", "random"):
        raise ValueError(f"selection should be either random or cyclic, got {selection!r}.")
    X = check_array(X, accept_sparse="csc", dtype=[np.float64, np.float32])
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    if y.ndim != 1:
        raise ValueError(
            f"y must be one-dimensional, got shape {y.shape}; call the path once per target."
        )
    if len(y) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)}; they must agree.")
    weights = (
        np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    )
    rows, Y, s = kept_rows(X, y, weights)
    check_gram(False if isinstance(precompute, str) else precompute, rows, s, False)
    data = ElasticNetData.prepare(rows, Y[:, 0], s / s.sum(), fit_intercept=False)
    if isinstance(grid, Integral):
        grid = _alpha_grid(data, l1_ratio, positive, float(eps or 1e-3), int(grid))
    grid = np.sort(np.asarray(grid, dtype=np.float64))[::-1]
    rng = _generator(selection, random_state)
    w = np.zeros(X.shape[1]) if coef_init is None else np.array(coef_init, dtype=np.float64).ravel()
    coefs = np.empty((X.shape[1], len(grid)), dtype=X.dtype)
    gaps, sweeps = np.empty(len(grid)), []
    bound = tol * 0.5 * float(data.s @ data.y**2)
    for i, alpha in enumerate(grid):
        fit = _solve(data, float(alpha), l1_ratio, w, positive, rng, tol, max_iter)
        coefs[:, i], gaps[i] = w, fit.observed
        sweeps.append(fit.n_iter)
        if fit.observed > bound:
            _warn_path(float(alpha), fit, bound)
        if verbose:
            print(f"alpha {alpha:.3g} ({i + 1} of {len(grid)}): gap {gaps[i]:.1e}")
    return (grid, coefs, gaps, sweeps) if return_n_iter else (grid, coefs, gaps)


def lasso_path(X: Any, y: Any, **options: Any) -> Any:
    """:func:`enet_path` with ``l1_ratio=1``; the same options and results.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 2, 3.1], [2.3, 5.4, 4.3]]).T
    >>> alphas, coefs, gaps = lasso_path(X, np.array([1, 2, 3.1]), alphas=[5.0, 1.0, 0.5], tol=1e-9)
    >>> coefs.round(4).tolist()
    [[0.0, 0.0, 0.4692], [0.2159, 0.4426, 0.2367]]
    """
    return enet_path(X, y, l1_ratio=1.0, **options)


def _requested_alphas(n_alphas: Any, alphas: Any) -> Any:
    grid = 100
    if not isinstance(n_alphas, str):
        warnings.warn(
            "'n_alphas' was deprecated in 1.9 and will be removed in 1.11 (of scikit-learn): pass the "
            "number as 'alphas' instead.",
            FutureWarning,
            stacklevel=3,
        )
        grid = int(n_alphas)
    if alphas is None:
        warnings.warn(
            "'alphas=None' is deprecated and will be removed in 1.11 (of scikit-learn): pass 'alphas=100' "
            "instead.",
            FutureWarning,
            stacklevel=3,
        )
        return grid
    return grid if isinstance(alphas, str) else alphas


def _alpha_grid(
    data: ElasticNetData, l1_ratio: float, positive: bool, eps: float, count: int
) -> Array:
    if l1_ratio == 0:
        raise ValueError(
            "Automatic alpha grid generation is not supported for l1_ratio=0. Please supply a grid "
            "by providing your estimator with the appropriate `alphas=` argument."
        )
    largest = largest_penalty(data, positive=positive) / l1_ratio
    tiny = float(np.finfo(np.float64).resolution)
    if largest <= tiny:
        return np.full(count, tiny)
    return np.geomspace(largest, largest * eps, num=count)


def _solve(
    data: ElasticNetData,
    alpha: float,
    l1_ratio: float,
    w: Array,
    positive: bool,
    rng: np.random.Generator | None,
    tol: float,
    max_iter: int | None,
) -> Fit:
    """Sweep until the solver's gap is at most tol times the objective at 0, or at rounding."""
    budget = 1000 if max_iter is None else int(max_iter)
    null = 0.5 * float(data.s @ (data.y - data.y_mean) ** 2)
    if not math.isfinite(null) or not np.isfinite(data.norm2).all():
        raise ValueError(
            "Coordinate descent iterations resulted in non-finite parameter values: X or y has values "
            "whose squares overflow float64. Rescale them, for instance with StandardScaler."
        )
    steps = elastic_net(
        data,
        alpha * l1_ratio,
        alpha * (1.0 - l1_ratio),
        w,
        positive=positive,
        rng=rng,
        budget=budget,
    )
    return run(steps, tol=max(tol, _FLOOR) * null, max_iter=budget)


def _generator(selection: str, random_state: Any) -> np.random.Generator | None:
    if selection != "random":
        return None
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def _warn_path(alpha: float, fit: Fit, bound: float) -> None:
    warnings.warn(
        f"Objective did not converge. You might want to increase the number of iterations (max_iter), "
        f"raise tol, or scale the features. alpha={alpha:.3g}: duality gap {fit.observed:.3e}, needed "
        f"{bound:.3e}; ended because {fit.stop.value}.",
        CertificateWarning,
        stacklevel=4,
    )


def check_gram(precompute: Any, X: Any, s: Array, fit_intercept: bool) -> None:
    """A given Gram matrix must be that of the (centred, weighted) X: three entries are compared.

    That of an X that still has to be centred is of no use: a warning says so, as in scikit-learn.
    """
    if isinstance(precompute, (bool, np.bool_)):
        return
    gram = np.asarray(precompute, dtype=np.float64)
    p = X.shape[1]
    if gram.shape != (p, p):
        raise ValueError(
            f"precompute has shape {gram.shape}, but X has {p} columns: pass ({p}, {p})."
        )
    design = as_design(X)
    mean = design.mean(s) if fit_intercept else np.zeros(p)
    if not np.allclose(mean, 0.0):
        warnings.warn(
            "Gram matrix was provided but X was centered to fit intercept: recomputing Gram matrix. "
            "Centre X first, or pass precompute=False.",
            stacklevel=3,
        )
        return
    for i, j in {(0, 0), (p // 2, p - 1), (p - 1, 0)}:
        pair = X[:, [i, j]].toarray() if sp.issparse(X) else np.asarray(X)[:, [i, j]]
        pair = pair.astype(np.float64) - mean[[i, j]]
        expected = float(s / s.mean() @ (pair[:, 0] * pair[:, 1]))
        scale = math.sqrt(abs(float(gram[i, i] * gram[j, j]))) + 1e-300
        if abs(gram[i, j] - expected) > 1e-4 * max(scale, abs(expected)):
            raise ValueError(
                "Gram matrix passed in via 'precompute' parameter did not pass validation when a "
                f"single element was checked: entry ({i}, {j}) is {gram[i, j]:.6g}, X gives "
                f"{expected:.6g}. Pass precompute=False, or the Gram matrix of the centred X."
            )


def _zeros_claim(
    design: Design, s: Array, coef: Array, gap: Gap, penalty: ElasticNetPenalty, fit_intercept: bool
) -> Claim:
    """Gap Safe: x_j'theta inside the box by more than ||x_j|| sqrt(2 gap) means w_j = 0 at every optimum."""
    center = design.mean(s) if fit_intercept else None
    norms = design.column_norms(s, center)
    corr = -design.tdot(s * gap.theta)
    if center is not None:
        corr = corr + center * float(s @ gap.theta)
    reach = corr if penalty.positive else np.abs(corr)
    radius = math.sqrt(2.0 * max(gap.gap, gap.floor))
    certain = reach + norms * radius < penalty.l1
    wrong = int(np.count_nonzero(coef[certain]))
    zeros = int(np.count_nonzero(coef == 0))
    statement = (
        f"{int(certain.sum()) - wrong} of the {zeros} zero coefficients are zero in every optimal "
        f"solution, and {wrong} non-zero ones should be"
    )
    return Claim.check("zeros", statement, Kind.BOUND, float(wrong), 0.0, "REG-14")
