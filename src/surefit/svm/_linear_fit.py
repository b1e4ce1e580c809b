"""From data to the solution of one linear support vector machine; which solver does what."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._threads import one_thread
from ..design import as_design
from ..duality import duality_gap, null_value
from ..iterate import Iterate, run
from ..losses import SquaredHinge
from ..penalties import L1
from ..separation import separate
from ..solvers.box_dual import BoxDual, Intercept, Point, classification
from ..solvers.crammer_singer import crammer_singer
from ..solvers.linear_svm import linear_svm
from ..solvers.prox_newton import prox_newton
from ._linear import intercept_of, rows_of, seed_of

__all__ = ["Solved", "fit_binary", "fit_box", "fit_classes"]

Array = NDArray[np.float64]
# Where Crammer and Singer's machine goes when tol is looser: once the face is found, digits are cheap.
_SMALL, _EXACT, _CLOSE = 100_000, 1e-14, 1e-6
_FEW = 500  # columns, or rows, among which a separating hyperplane is looked for by least squares
_TRIES = 100  # iterations to find out whether a margin is hard


class Solved(NamedTuple):
    """One problem's part of the fitted attributes: a row, or one a class."""

    coef: Array
    intercept: Array
    beta: Array
    n_iter: int
    stopped: str
    farkas: Array | None = None


def fit_binary(
    model: Any, X: Any, name: str, signs: Array, weights: Array, rng: np.random.RandomState
) -> Solved:
    """One problem of a LinearSVC: labels -1 and 1, weights of the rows, C to come."""
    kept, intercept = weights > 0, intercept_of(model)
    rows, y = rows_of(X, kept), signs[kept]
    title = f"{type(model).__name__} {name}".strip(" :")
    if model.penalty == "l1":
        return _fit_l1(model, rows, y, model.C * weights[kept], kept, intercept, title)
    if np.isinf(model.C):
        return _fit_hard(model, rows, y, kept, intercept, rng, title)
    squared = model.loss == "squared_hinge"
    problem = classification(y, model.C * weights[kept], squared=squared, intercept=intercept)
    return fit_box(model, rows, problem, kept, rng, title)


def fit_box(
    model: Any, rows: Any, problem: BoxDual, kept: Any, rng: np.random.RandomState, name: str
) -> Solved:
    """A problem in the form of :mod:`surefit.solvers.box_dual`, on the rows of positive weight."""
    null = problem.null()
    if problem.intercept.free:  # the yardstick of the certificate: P(0) at the best intercept
        null = _null(model, problem)
    fit = linear_svm(
        rows, problem, tol=float(model.tol), null=null, max_iter=int(model.max_iter),
        seed=seed_of(rng), verbose=int(model.verbose), name=name,
    )  # fmt: skip
    point: Point = fit.x
    return Solved(
        point.w[None], np.array([point.b]), _spread(point.beta, kept), fit.n_iter, fit.stop.value
    )


def _null(model: Any, problem: BoxDual) -> float:
    loss, c = (
        model._loss(),
        np.where(problem.d > 0, 0.5 / np.where(problem.d > 0, problem.d, 1.0), 0.0),
    )
    c = np.where(problem.d > 0, c, np.maximum(problem.high, -problem.low))
    return null_value(loss, problem.t, c, fit_intercept=True)


def _spread(values: Array, kept: NDArray[np.bool_]) -> Array:
    """A row of numbers for all samples, 0 for those without weight."""
    out = np.zeros((1, len(kept)))
    out[0, kept] = values
    return out


def _fit_hard(
    model: Any, rows: Any, y: Array, kept: Any, intercept: Intercept, rng: Any, name: str
) -> Solved:
    """The hard margin; where there is none, the soft margin of C = 1 and the proof."""
    if rows.shape[1] > _FEW:
        return _fit_hard_wide(model, rows, y, kept, intercept, rng, name)
    plain = rows if sp.issparse(rows) or isinstance(rows, np.ndarray) else as_design(rows).home()
    size = 2.0 ** round(0.5 * math.log2(float(np.mean(as_design(plain).row_squares())) or 1.0))
    found = separate(plain / size, y, fit_intercept=bool(model.fit_intercept))
    if found.margin <= 0.0:
        problem = classification(y, np.ones(len(y)), squared=False, intercept=intercept)
        soft = fit_box(model, rows, problem, kept, rng, name)
        return soft._replace(farkas=_spread(found.farkas, kept))
    length = float(np.linalg.norm(found.w))
    if intercept.scaling and intercept.penalised:
        length = math.hypot(length, found.b * size / intercept.scaling)
    margin = size * float((y * (plain / size @ found.w + found.b)).min()) / length
    unit = 1.0
    if plain is rows:  # in a unit in which the margin, and so w, is about 1
        unit = 2.0 ** round(math.log2(margin))
        rows, intercept = rows / unit, intercept._replace(scaling=intercept.scaling / unit)
    problem = classification(y, np.full(len(y), np.inf), squared=False, intercept=intercept)
    fit = linear_svm(
        rows, problem, tol=float(model.tol), null=0.5 * (unit / margin) ** 2,
        max_iter=int(model.max_iter), seed=seed_of(rng), verbose=int(model.verbose), name=name,
    )  # fmt: skip
    point: Point = fit.x
    return Solved(
        point.w[None] / unit, np.array([point.b]), _spread(point.beta / unit**2, kept), fit.n_iter,
        fit.stop.value, np.zeros((1, len(kept))),
    )  # fmt: skip


def _fit_hard_wide(
    model: Any, rows: Any, y: Array, kept: Any, intercept: Intercept, rng: Any, name: str
) -> Solved:
    """Many columns: soft margins of a growing C. One whose alpha stay below C is the hard margin.

    Where some reach every C, they are where the classes overlap: few enough, they are searched for the proof.
    """
    scale = float(np.mean(as_design(rows).row_squares())) or 1.0
    for C in (1e3 / scale, 1e6 / scale):
        problem = classification(y, np.full(len(y), C), squared=False, intercept=intercept)
        fit = linear_svm(
            rows, problem, tol=1e-6, null=problem.null(), max_iter=min(int(model.max_iter), _TRIES),
            seed=seed_of(rng), verbose=int(model.verbose), name=name,
        )  # fmt: skip
        held = y * fit.x.beta >= C * (1.0 - 1e-9)
        if held.any():
            continue
        fit = linear_svm(  # the same problem, as exact as its own objective asks for
            rows, problem, tol=float(model.tol), null=abs(fit.value), max_iter=int(model.max_iter),
            start=fit.x, seed=seed_of(rng), verbose=int(model.verbose), name=name,
        )  # fmt: skip
        beta, nothing = _spread(fit.x.beta, kept), np.zeros((1, len(kept)))
        return Solved(fit.x.w[None], np.array([fit.x.b]), beta, fit.n_iter, fit.stop.value, nothing)
    inside = np.flatnonzero(held)
    weights = np.where(held, 1.0 / len(inside), 0.0)
    if len(inside) <= _FEW:
        some = rows_of(rows, held)
        plain = (
            some if sp.issparse(some) or isinstance(some, np.ndarray) else as_design(some).home()
        )
        weights[inside] = separate(plain, y[inside], fit_intercept=bool(model.fit_intercept)).farkas
    problem = classification(y, np.ones(len(y)), squared=False, intercept=intercept)
    return fit_box(model, rows, problem, kept, rng, name)._replace(farkas=_spread(weights, kept))


def _fit_l1(
    model: Any, rows: Any, y: Array, c: Array, kept: Any, intercept: Intercept, name: str
) -> Solved:
    """The squared hinge with an l1 penalty, its intercept an l1-penalised column unless it is free."""
    loss, p = SquaredHinge(), rows.shape[1]
    column = bool(intercept.scaling) and intercept.penalised
    data = _with_constant(rows, intercept.scaling) if column else rows
    null = null_value(loss, y, c, fit_intercept=intercept.free)
    design = as_design(data)
    start = np.zeros(data.shape[1])

    def gap(x: tuple[Array, Array]) -> float:
        return duality_gap(
            design, y, x[0], float(x[1]), loss, L1(1.0), weights=c, fit_intercept=intercept.free
        ).gap

    steps = prox_newton(
        data, y, c, loss, 1.0, 0.0, start, np.asarray(0.0), fit_intercept=intercept.free
    )
    if model.max_iter == 0:
        steps = iter([Iterate((start, np.asarray(0.0)), cost=0)])
    fit = run(
        steps, gap, tol=min(0.5 * float(model.tol), 1e-7) * null, max_iter=max(1, int(model.max_iter)),
        every=1, verbose=int(model.verbose), name=name,
    )  # fmt: skip
    w, b = fit.x[0], float(fit.x[1])
    if column:
        w, b = w[:p], intercept.scaling * float(w[p])
    z = np.asarray(rows @ w) + b
    beta = -c * loss.grad(z, y)
    return Solved(w[None], np.array([b]), _spread(beta, kept), fit.n_iter, fit.stop.value)


def _with_constant(X: Any, value: float) -> Any:
    """X with one column more."""
    column = np.full((X.shape[0], 1), value)
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])


def fit_classes(
    model: Any, X: Any, codes: NDArray[np.int64], c: Array, classes: int, rng: np.random.RandomState
) -> Solved:
    """Crammer and Singer's loss, all classes together.

    Two classes have mirrored hyperplanes, w_1 = -w_0 = w/2, and the loss is the hinge of w: its problem is
    that of the hinge with twice the weights.
    """
    kept = c > 0
    scaling = float(model.intercept_scaling) if model.fit_intercept else 0.0
    if classes == 2:
        signs = np.where(codes[kept] == 1, 1.0, -1.0)
        problem = classification(signs, 2.0 * c[kept], squared=False, intercept=Intercept(scaling))
        half = fit_box(model, rows_of(X, kept), problem, kept, rng, type(model).__name__)
        return half._replace(
            coef=np.vstack([-0.5 * half.coef, 0.5 * half.coef]),
            intercept=np.concatenate([-0.5 * half.intercept, 0.5 * half.intercept]),
            beta=np.vstack([-0.5 * half.beta, 0.5 * half.beta]),
        )
    steps = crammer_singer(
        rows_of(X, kept), codes[kept], c[kept], classes, scaling=scaling, seed=seed_of(rng)
    )
    if model.max_iter == 0:
        steps = iter(())
    tol = min(0.5 * float(model.tol), _EXACT if kept.sum() * classes <= _SMALL else _CLOSE)
    with one_thread:  # the products are of a few rows each
        fit = run(
            steps, tol=tol * float(c.sum()), max_iter=max(1, int(model.max_iter)),
            verbose=int(model.verbose), name=type(model).__name__,
        )  # fmt: skip
    beta = np.zeros((classes, len(c)))
    if fit.x is None:
        return Solved(np.zeros((classes, X.shape[1])), np.zeros(classes), beta, 0, fit.stop.value)
    beta[:, kept] = fit.x.beta.T
    return Solved(fit.x.W.T, fit.x.b, beta, fit.n_iter, fit.stop.value)
