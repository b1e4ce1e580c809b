r"""Which solver fits a linear support vector machine, and how far it goes; paths over C.

All of them solve the problem of :mod:`surefit.solvers.box_dual`.

* few columns, a squared loss: Newton's method on the primal (:mod:`surefit.solvers.squared_hinge`);
* few columns, a hinge: an interior-point method (:mod:`surefit.solvers.hinge_interior`), on the rows that
  matter where there are many (:mod:`surefit.solvers.hinge_rows`);
* few rows, many columns: the same on the rows in an orthonormal basis of their span, since the penalty does
  not see a rotation;
* many of both: coordinate descent on the dual, with a Newton finish (:mod:`surefit.solvers.dual_coordinate`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from .._threads import one_thread
from ..design import Dense, Design, Sparse, as_design
from ..iterate import Fit, Iterate, run
from .box_dual import BoxDual, Point
from .dual_coordinate import dual_coordinate
from .hinge_interior import hinge_interior, sides_of
from .hinge_rows import hinge_rows, sampling_pays
from .squared_hinge import squared_hinge

__all__ = ["linear_svm", "linear_svm_path"]

Array = NDArray[np.float64]
_COLUMNS = 1000  # up to which matrices of this size are factorised,
_WORK = 2e10  # as long as forming one costs no more than this
_LONG = 5  # rows for a column
_LIMIT = 3000  # the same where coordinate descent makes no end
_LOOKS = 20  # after so many looks at all rows
_NARROW = 64  # columns up to which a rotation gains nothing
_CELLS = 2e7  # numbers of a dense matrix that is made for a rotation
_SMALL = 500  # rows or columns up to which a second thread of the matrix library gains nothing
_ROUNDING = 1e-15
_EXACT = (
    1e-10  # of the objective at 0: where methods that converge quadratically go, whatever tol is
)
_CLOSE = 1e-6  # where the others go; half of tol, where that is less


def linear_svm(
    X: Any,
    problem: BoxDual,
    *,
    tol: float,
    null: float,
    max_iter: int = 1000,
    seed: int = 0,
    start: Point | None = None,
    callback: Callable[[int, Iterate], bool | None] | None = None,
    verbose: int = 0,
    name: str = "linear SVM",
) -> Fit:
    """Minimise until the gap is ``tol * null``, or less where that is cheap; ``Fit.x`` is a Point.

    Parameters
    ----------
    X : matrix, tensor, row blocks or Design
        Rows of positive weight only.
    problem : BoxDual
    tol, null : float
        The gap asked for is their product.
    start : Point, optional
        Where methods that can start anywhere begin; its beta must lie in the box.
    """
    design = as_design(X)
    with one_thread if min(design.shape) <= _SMALL else nullcontext():
        steps, tight = _method(design, problem, 0.5 * min(tol, _CLOSE) * null, start, seed)
        if (known := _obvious(design, problem, null, max_iter)) is not None:
            steps = iter([known])
        fit = run(
            steps, tol=min(0.5 * tol, tight) * null, max_iter=max(1, max_iter), callback=callback,
            verbose=verbose, name=name,
        )  # fmt: skip
    fit.x = fit.x._replace(beta=_at_bounds(fit.x.beta, problem))
    return fit


def _obvious(X: Design, problem: BoxDual, null: float, max_iter: int) -> Iterate | None:
    """Where a constant is perfect, or no step may be made; None elsewhere."""
    free, offset = problem.intercept.free, 0.0
    one_sided = not (problem.low < 0).any() or not (problem.high > 0).any()
    perfect = null == 0.0 or (free and one_sided)  # a single class: sum(beta) = 0 leaves beta = 0
    if max_iter > 0 and not perfect:
        return None
    if free and perfect:
        offset = 0.5 * float(problem.t.max() + problem.t.min())
    nothing = Point(np.zeros(X.shape[1]), offset, np.zeros(X.shape[0]))
    return Iterate(nothing, 0.0, 0.0) if perfect and max_iter > 0 else Iterate(nothing, cost=0)


def _at_bounds(beta: Array, problem: BoxDual) -> Array:
    """Variables that lie within rounding of a bound, on it."""
    width = np.where(np.isfinite(problem.high - problem.low), problem.high - problem.low, 1.0)
    for bound in (problem.low, problem.high, np.zeros_like(beta)):
        beta = np.where(np.abs(beta - bound) <= _ROUNDING * width, bound, beta)
    return beta


def _method(
    X: Design, problem: BoxDual, target: float, start: Point | None, seed: int
) -> tuple[Iterator[Iterate], float]:
    """The iterates, and the relative gap down to which they are cheap."""
    n, p = X.shape
    wide = p > max(2 * n, _NARROW)
    long = n >= _LONG * p  # where coordinate descent is slow, whatever a factor costs
    if p <= _COLUMNS and (n * p**2 <= _WORK or long) and not wide:
        return _small(X, problem, target, start, seed)
    if wide and n <= _COLUMNS and n * p <= _CELLS:
        basis, R = scipy.linalg.qr(X.home().T, mode="economic", check_finite=False)
        steps, tight = _small(Dense(np.ascontiguousarray(R.T)), problem, target, None, seed)
        return _rotated(steps, basis), tight
    rows = X.X if isinstance(X, (Dense, Sparse)) else X.home()
    beta = None if start is None else start.beta
    steps = dual_coordinate(rows, problem, beta, seed=2 * seed + 1)
    if p <= _LIMIT and n * p**2 <= 10.0 * _WORK:
        return _patient(steps, lambda: _small(X, problem, target, start, seed)[0]), _CLOSE / 2
    return steps, _CLOSE / 2


def _patient(steps: Iterator[Iterate], other: Callable[[], Iterator[Iterate]]) -> Iterator[Iterate]:
    """Sweeps, and where they have not come to an end after some looks, the method that does not mind."""
    yield from itertools.islice(steps, _LOOKS)
    yield from other()


def _small(
    X: Design, problem: BoxDual, target: float, start: Point | None, seed: int
) -> tuple[Iterator[Iterate], float]:
    if problem.smooth:
        return squared_hinge(X, problem, start), _EXACT
    if sampling_pays(X, problem):
        assert isinstance(X, Dense)
        return hinge_rows(X, problem, tol=target, seed=seed), _CLOSE / 2
    interior = hinge_interior(X, sides_of(problem), problem.intercept)
    return (step._replace(x=step.x[0]) for step in interior), _EXACT


def _rotated(steps: Iterator[Iterate], basis: Array) -> Iterator[Iterate]:
    for step in steps:
        yield step._replace(x=step.x._replace(w=basis @ step.x.w))


def linear_svm_path(
    X: Any, build: Callable[[float], BoxDual], Cs: Sequence[float], *, tol: float, **options: Any
) -> list[Fit]:
    """One fit for each C, in increasing order, each starting from the one before.

    A dual point is rescaled with C: a bounded beta stays at its bound, and the others move with it. ``build``
    makes the problem of a C; the fits come back in the order of ``Cs``.

    Examples
    --------
    >>> from surefit.solvers.box_dual import Intercept, classification
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([-1.0, 1.0, -1.0, 1.0])
    >>> def build(C):
    ...     return classification(y, np.full(4, C), squared=False, intercept=Intercept(1.0))
    >>> fits = linear_svm_path(X, build, [1.0, 0.1], tol=1e-8)
    >>> [round(fit.value, 6) for fit in fits]
    [3.25, 0.38]
    """
    X = X.tocsr() if sp.issparse(X) else X
    fits: dict[int, Fit] = {}
    before: tuple[float, Point] | None = None
    for k in np.argsort(np.asarray(Cs, dtype=np.float64), kind="stable"):
        problem, start = build(float(Cs[k])), None
        if before is not None:
            last, point = before
            scaled = np.clip(point.beta * (float(Cs[k]) / last), problem.low, problem.high)
            start = point._replace(beta=scaled)
        fit = linear_svm(X, problem, tol=tol, null=problem.null(), start=start, **options)
        fits[int(k)], before = fit, (float(Cs[k]), fit.x)
    return [fits[k] for k in range(len(fits))]
