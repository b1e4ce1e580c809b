r"""Regularisation paths of the Lasso and the elastic net, for one target or several.

    min_w  1/(2 sum_i s_i) sum_i s_i (y_i - x_i'w)^2 + alpha (rho ||w||_1 + (1 - rho)/2 ||w||^2)

for a decreasing sequence of alpha, each fit starting from the last. Several targets share one penalty a
feature: ||w||_1 becomes the sum of ||W_j||, and a feature is in use for all of them or for none. Each point
of the path comes with the duality gap of its solver, and a gap above ``tol`` times the objective at 0 warns.

References
----------
Friedman, Hastie & Tibshirani (2010), JSS 33; Obozinski, Taskar & Jordan, "Joint covariate selection" (2010).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions, validate_params

from .._namespace import is_torch, like, to_numpy
from ..certificate import CertificateWarning
from ..design import RankRows, as_design
from ..inputs import as_vector, checked_tensor, is_native, vectors_of
from ..iterate import Fit, Stop, Trace, run
from ..solvers.coordinate import ElasticNetData, elastic_net, largest_penalty
from ..solvers.elastic_net_path import elastic_net_path
from ..solvers.multitask import largest_group_penalty, multi_task
from .least_squares import kept_rows

__all__ = ["check_gram", "enet_path", "lasso_path", "random_order", "solve", "solve_path"]

Array = NDArray[np.float64]
_FLOOR = 1e-15  # relative gap below which further sweeps only move rounding


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
    X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
        Of a tensor, ``coefs`` is a tensor on its device.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Several targets share one penalty a feature, ``l1_ratio ||W_j|| + (1 - l1_ratio)/2 ||W_j||^2``: the
        multi-task elastic net.
    l1_ratio : float, default=0.5
    eps : float, default=1e-3
        Smallest over largest penalty of the default grid.
    alphas : int or array-like, default=100
        The penalties, or how many to lay from the largest useful one downwards.
    coef_init : array of shape (n_features,) or (n_targets, n_features), optional
    return_n_iter : bool, default=False
    positive : bool, default=False
    **params
        ``tol``, ``max_iter``, ``selection``, ``random_state``, ``sample_weight``, as in ElasticNet.
        ``precompute``, ``Xy``, ``copy_X`` and ``check_input`` are kept for compatibility.

    Returns
    -------
    alphas : array of shape (n_alphas,)
    coefs : array of shape (n_features, n_alphas) or (n_targets, n_features, n_alphas)
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
    tol, max_iter, rng, sample_weight = _path_options(params)
    X, y, weights = _path_data(X, y, sample_weight, positive)
    rows, Y, s = kept_rows(X, y, weights)
    check_gram(False if isinstance(precompute, str) else precompute, rows, s, False)
    targets = Y[:, 0] if y.ndim == 1 else Y
    data = ElasticNetData.prepare(rows, targets, s / s.sum(), fit_intercept=False)
    if isinstance(grid, Integral):
        grid = _alpha_grid(data, l1_ratio, positive, float(eps or 1e-3), int(grid))
    grid = np.sort(np.asarray(grid, dtype=np.float64))[::-1]
    shape = (X.shape[1],) if y.ndim == 1 else (y.shape[1], X.shape[1])
    w = np.zeros(shape)
    if coef_init is not None:
        w[:] = np.reshape(coef_init, shape)
    coefs = np.zeros((*shape, len(grid)), dtype=as_design(X).dtype, order="F")
    gaps, steps = np.empty(len(grid)), []
    bound = tol * 0.5 * float((data.s @ data.y**2).sum())
    fits = solve_path(
        data, grid, l1_ratio, w, positive=positive, rng=rng, tol=tol, max_iter=max_iter
    )
    for i, (alpha, fit) in enumerate(zip(grid, fits, strict=True)):
        coefs[..., i], gaps[i] = fit.x, fit.observed
        steps.append(fit.n_iter)
        if fit.observed > bound:
            _warn_path(float(alpha), fit, bound)
        if verbose:
            print(f"alpha {alpha:.3g} ({i + 1} of {len(grid)}): gap {gaps[i]:.1e}")
    found = like(coefs, X) if is_torch(X) else coefs
    return (grid, found, gaps, steps) if return_n_iter else (grid, found, gaps)


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


def _path_options(params: dict[str, Any]) -> tuple[float, Any, np.random.Generator | None, Any]:
    """``tol, max_iter, rng, sample_weight`` from the loose keyword arguments."""
    options: dict[str, Any] = {"tol": 1e-4, "max_iter": 1000, "selection": "cyclic"}
    options |= dict.fromkeys(
        ("random_state", "sample_weight", "X_offset", "X_scale", "do_screening")
    )
    unknown = params.keys() - options.keys()
    if unknown:
        raise ValueError("Unexpected parameters in params", sorted(unknown))
    options |= params
    if options["selection"] not in ("cyclic", "random"):
        raise ValueError(
            f"selection should be either random or cyclic, got {options['selection']!r}."
        )
    rng = random_order(options["selection"], options["random_state"])
    return options["tol"], options["max_iter"], rng, options["sample_weight"]


def _path_data(X: Any, y: Any, sample_weight: Any, positive: bool) -> tuple[Any, Array, Array]:
    if isinstance(X, RankRows):
        raise TypeError(
            "lasso_path and enet_path do not take rows spread over ranks: gather the rows on one process, or "
            "fit Ridge or LogisticRegression, which do."
        )
    if is_native(X, y, sample_weight):
        X = checked_tensor(X) if is_torch(X) else X
        y, sample_weight = vectors_of(X, y, sample_weight, y_numeric=True, multi_output=True)
        if y.ndim == 2:
            raise TypeError(
                "a path for several targets is computed on arrays: pass X.cpu().numpy(), or call it once "
                "per target."
            )
        weights = as_vector(np.ones(len(y)), X) if sample_weight is None else sample_weight
        return X, y, weights
    X = check_array(X, accept_sparse="csc", dtype=[np.float64, np.float32])
    y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    if y.ndim != 1 and positive:
        raise ValueError(
            f"positive=True is not allowed for multi-output (y has shape {y.shape}): call the path once "
            "per target."
        )
    if len(y) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y has {len(y)}; they must agree.")
    if sample_weight is None:
        return X, y, np.ones(len(y))
    return X, y, np.asarray(sample_weight, dtype=np.float64)


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
    if data.y.ndim == 2:
        largest = largest_group_penalty(data) / l1_ratio
    else:
        largest = largest_penalty(data, positive=positive) / l1_ratio
    tiny = float(np.finfo(np.float64).resolution)
    if largest <= tiny:
        return np.full(count, tiny)
    return np.geomspace(largest, largest * eps, num=count)


def solve_path(
    data: ElasticNetData,
    alphas: Array,
    l1_ratio: float,
    w: Array,
    *,
    positive: bool,
    rng: np.random.Generator | None,
    tol: float,
    max_iter: int | None,
) -> Iterator[Fit]:
    """:func:`solve` for each of a decreasing sequence of alphas; each ``fit.x`` is w, the start, itself."""
    options: dict[str, Any] = {"positive": positive, "tol": tol, "max_iter": max_iter}
    done = 0
    if data.y.ndim == 1 and l1_ratio > 0 and rng is None and len(alphas) > 1:
        null, budget = _null(data), _budget(max_iter)
        bound = max(tol, _FLOOR) * null
        penalties = [(float(a) * l1_ratio, float(a) * (1.0 - l1_ratio)) for a in alphas]
        points = elastic_net_path(data, penalties, w, positive=positive, tol=bound, budget=budget)
        for alpha, point in zip(alphas, points, strict=False):
            w[:] = 0.0
            w[point.columns] = point.values
            if point.gap <= bound or point.steps >= budget:
                stop = Stop.ESTIMATED if point.gap <= bound else Stop.MAX_ITER
                yield Fit(w, point.steps, stop, point.gap, math.nan, Trace())
            else:
                yield solve(data, float(alpha), l1_ratio, w, rng=rng, **options)
            done += 1
    for alpha in alphas[done:]:
        yield solve(data, float(alpha), l1_ratio, w, rng=rng, **options)


def solve(
    data: ElasticNetData,
    alpha: float,
    l1_ratio: float,
    w: Array,
    *,
    positive: bool,
    rng: np.random.Generator | None,
    tol: float,
    max_iter: int | None,
) -> Fit:
    """Iterate until the solver's gap is at most tol times the objective at 0, or at rounding."""
    null, budget = _null(data), _budget(max_iter)
    l1, l2 = alpha * l1_ratio, alpha * (1.0 - l1_ratio)
    if data.y.ndim == 2:
        steps = multi_task(data, l1, l2, w, rng=rng, budget=budget)
    else:
        steps = elastic_net(data, l1, l2, w, positive=positive, rng=rng, budget=budget)
    return run(steps, tol=max(tol, _FLOOR) * null, max_iter=budget)


def _budget(max_iter: int | None) -> int:
    return 1000 if max_iter is None else int(max_iter)


def _null(data: ElasticNetData) -> float:
    """The objective at w = 0, which must be a number."""
    null = 0.5 * float((data.s @ (data.y - data.y_mean) ** 2).sum())
    if not math.isfinite(null) or not np.isfinite(data.norm2).all():
        raise ValueError(
            "Coordinate descent iterations resulted in non-finite parameter values: X or y has values "
            "whose squares overflow float64. Rescale them, for instance with StandardScaler."
        )
    return null


def random_order(selection: str, random_state: Any) -> np.random.Generator | None:
    """The generator of the order of the coordinates; None for the cyclic one."""
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
        pair = design.columns([i, j]) - mean[[i, j]]
        expected = float(to_numpy(s / s.mean()) @ (pair[:, 0] * pair[:, 1]))
        scale = math.sqrt(abs(float(gram[i, i] * gram[j, j]))) + 1e-300
        if abs(gram[i, j] - expected) > 1e-4 * max(scale, abs(expected)):
            raise ValueError(
                "Gram matrix passed in via 'precompute' parameter did not pass validation when a "
                f"single element was checked: entry ({i}, {j}) is {gram[i, j]:.6g}, X gives "
                f"{expected:.6g}. Pass precompute=False, or the Gram matrix of the centred X."
            )
