r"""Dual coordinate descent with a Newton finish, for sparse or wide support vector machines.

The problem is that of :mod:`surefit.solvers.box_dual`. A sweep visits the rows in random order and
minimises over one beta_i at a time, which costs the entries of one row (Hsieh et al., 2008). That finds out
quickly which beta_i lie at a bound, and approaches the values of the others slowly, at a rate that the
condition of their kernel matrix sets. So between sweeps the free ones make a step together: conjugate
gradients on

    (X_F X_F' + diag(d_F)) delta = t_F - eps sign(beta_F) - z_F - d_F beta_F

is Newton's step on the face of the box, cut off where it leaves the box. Each step lowers the dual objective,
and once the face is the right one a step divides the error by a hundred or more, at any accuracy.

A free intercept is an equality, sum_i beta_i = 0, which single coordinates cannot keep. It is reached by the
method of multipliers: the problem with a penalised intercept, whose targets move by the intercept found.

References
----------
Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for large-scale linear SVM"
(2008); More & Toraldo, "On the solution of large quadratic programming problems with bound constraints"
(1991).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._csr import distinct_entries
from .._jit.dual_coordinate import add_rows, dot_rows, sweep_dense, sweep_sparse
from .._threads import over_rows
from ..iterate import Iterate
from .box_dual import BoxDual, Point

__all__ = ["dual_coordinate"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_SWEEPS = 6  # between two looks at all rows,
_BETWEEN = 2  # and after a Newton step
_SLOW = 0.85  # by which a sweep must reduce the violations for sweeps alone to be the fastest way
_ROUGH, _FINE = (
    0.1,
    0.01,
)  # how far a Newton step reduces its residual: while the face changes, and after
_STEPS = 60  # most conjugate gradient steps
_SHRINK = (
    0.3  # of the largest violation: a row that its bound holds by more waits for the next look
)
_FLAT = 1e-12  # curvature, of the diagonal's, that counts as none
_FACES = 32  # most faces in a row, where sweeps gain little
_LEAST = 1024  # rows that are worth a thread


def dual_coordinate(
    X: Any, problem: BoxDual, beta: Array | None = None, *, seed: int = 1
) -> Iterator[Iterate]:
    """Yield ``Iterate(x=Point, value=P, estimate=gap, cost=sweeps and Newton steps)``; without end.

    ``beta``, a start inside the box, is 0 by default.
    """
    rows, n = _Rows(X), len(problem.t)
    state = _State(rows, problem, np.zeros(n) if beta is None else beta.copy(), seed)
    face = np.zeros(n, dtype=np.bool_)
    newton, faces, before = False, 1, np.inf
    for looks in itertools.count(1):
        if newton:
            now = state.free()
            changed = np.count_nonzero(now != face)
            face = now
            tol = _FINE if changed <= 0.01 * np.count_nonzero(now) else _ROUGH
            state.newton(np.flatnonzero(face), tol, faces)
        if problem.intercept.free and np.isfinite(before):
            state.move_intercept()
        sweeps = _BETWEEN if newton else _SWEEPS
        violations = [state.sweep() for _ in range(sweeps)]
        step = state.iterate(sweeps)
        yield step
        state.activate()
        faces = min(2 * faces, _FACES) if step.estimate > 0.3 * before else max(1, faces // 2)
        before = step.estimate
        slow = violations[-1] > _SLOW ** (sweeps - 1) * violations[0]
        newton = newton or (slow and looks > 1)


def _to_bound(beta: Array, along: Array, low: Array, high: Array) -> float:
    """The longest step that stays in the box."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room = np.where(
            along > 0, (high - beta) / along, np.where(along < 0, (low - beta) / along, np.inf)
        )
    return min(max(float(room.min(initial=np.inf)), 0.0), 1e100)


class _Rows:
    """The rows of X and the three products with some of them, in two halves where they are many."""

    def __init__(self, X: Any) -> None:
        self.sparse = sp.issparse(X)
        if self.sparse:
            csr = distinct_entries(X)
            self.parts = (
                np.ascontiguousarray(csr.data, dtype=np.float64), csr.indices,
                csr.indptr.astype(csr.indices.dtype, copy=False),
            )  # fmt: skip
            starts = np.minimum(csr.indptr[:-1], max(len(csr.data) - 1, 0))
            squares = (
                np.add.reduceat(self.parts[0] ** 2, starts) if csr.nnz else np.zeros(csr.shape[0])
            )
            self.norm2 = np.where(np.diff(csr.indptr) > 0, squares, 0.0)
        else:
            self.X = np.ascontiguousarray(X, dtype=np.float64)
            self.norm2 = np.einsum("ij,ij->i", self.X, self.X)
        self.shape = (int(X.shape[0]), int(X.shape[1]))

    def take(self, index: Index) -> Any:
        """Whatever :meth:`dot` and :meth:`tdot` want to know about some rows."""
        return index if self.sparse else self.X[index]

    def dot(self, part: Any, w: Array) -> Array:
        if not self.sparse:
            return part @ w
        out = np.empty(len(part))
        over_rows(len(part), lambda a, b: dot_rows(*self.parts, part, w, out, a, b), _LEAST)
        return out

    def tdot(self, part: Any, r: Array) -> Array:
        if not self.sparse:
            return part.T @ r

        def some(first: int, last: int) -> Array:
            total = np.zeros(self.shape[1])
            add_rows(*self.parts, part, r, total, first, last)
            return total

        return sum(over_rows(len(part), some, _LEAST))  # type: ignore[return-value]


class _State:
    """beta, and the w = X'beta and v = B sum(beta) that go with it."""

    def __init__(self, rows: _Rows, problem: BoxDual, beta: Array, seed: int) -> None:
        self.rows, self.problem, self.beta = rows, problem, beta
        self.bias = problem.intercept.scaling
        if problem.intercept.free:  # the weight of the penalty on sum(beta): that of a row
            self.bias = float(np.sqrt(max(rows.norm2.mean(), 1e-300)))
        self.offset = 0.0  # of a free intercept, found so far
        self.everything = np.arange(rows.shape[0])
        self.w = rows.tdot(rows.take(self.everything), beta)
        self.v = np.array([self.bias * float(beta.sum())])
        self.norm2 = rows.norm2 + self.bias**2
        self.random = np.array([seed | 1], dtype=np.uint64)
        self.order, self.count, self.limit = self.everything.copy(), rows.shape[0], np.inf

    def activate(self) -> None:
        """The rows to be visited: all but those that their bound holds by more than any violation."""
        p, beta = self.problem, self.beta
        slope = self.z + p.d * beta - p.t
        right = slope + np.where(beta >= 0.0, p.eps, -p.eps)
        left = slope + np.where(beta > 0.0, p.eps, -p.eps)
        held = np.minimum(
            np.where(beta < p.high, right, np.inf), np.where(beta > p.low, -left, np.inf)
        )
        worst = -float(held.min(initial=0.0))
        self.order = np.flatnonzero(held <= _SHRINK * worst)
        self.count, self.limit = len(self.order), _SHRINK * worst if worst > 0.0 else np.inf

    def sweep(self) -> float:
        """One; the largest violation that it met."""
        kernel = sweep_sparse if self.rows.sparse else sweep_dense
        p = self.problem
        self.count, worst = kernel(
            *(self.rows.parts if self.rows.sparse else (self.rows.X,)), self.norm2,
            self.targets, p.d, p.low, p.high, p.eps, self.bias, self.w, self.v, self.beta,
            self.order, self.count, self.limit, self.random,
        )  # fmt: skip
        self.limit = _SHRINK * worst if worst > 0.0 else np.inf
        return float(worst)

    @property
    def targets(self) -> Array:
        return self.problem.t - self.offset if self.offset else self.problem.t

    def free(self) -> NDArray[np.bool_]:
        p, beta = self.problem, self.beta
        inside = (beta > p.low) & (beta < p.high)
        return inside & (beta != 0.0) if p.eps > 0.0 else inside

    def newton(self, face: Index, tol: float, most: int) -> None:
        """Newton steps on the face of the free variables, and on the smaller faces that they lead to."""
        p = self.problem
        low, high = p.low, p.high
        if p.eps > 0.0:  # a free variable keeps its sign, or stops at 0
            low = np.where(self.beta > 0, 0.0, low)
            high = np.where(self.beta < 0, 0.0, high)
        for _ in range(most):
            if not len(face) or not self._newton(face, low[face], high[face], tol):
                return
            beta = self.beta[face]
            inside = (beta > low[face]) & (beta < high[face])
            if inside.all():
                return
            face = face[inside]

    def _newton(self, face: Index, low: Array, high: Array, tol: float) -> bool:
        """Conjugate gradients on some variables, then as far as the dual objective falls; whether it did."""
        p, part, old = self.problem, self.rows.take(face), self.beta[face]
        d = p.d[face]
        slope = self.targets[face] - p.eps * np.sign(old) - d * old
        slope -= self.rows.dot(part, self.w) + self.bias * self.v[0]
        diagonal = np.maximum(self.norm2[face] + d, 1e-300)
        r, delta, along = slope.copy(), np.zeros_like(slope), slope / diagonal
        mass = first = float(r @ along)
        for _ in range(_STEPS):
            if mass <= tol**2 * first or mass == 0.0:
                break
            bent = self.rows.dot(part, self.rows.tdot(part, along)) + d * along
            bent += self.bias**2 * along.sum()
            curvature = float(along @ bent)
            if curvature <= _FLAT * float(diagonal @ along**2):
                delta += _to_bound(old + delta, along, low, high) * along  # it falls all the way
                break
            length = mass / curvature
            delta += length * along
            r -= length * bent
            bent = r / diagonal
            mass, before = float(r @ bent), mass
            along = bent + mass / before * along
        for step in (1.0, 0.5, 0.25, _to_bound(old, delta, low, high)):
            new = np.clip(old + step * delta, low, high)
            move = new - old
            w, total = self.rows.tdot(part, move), float(move.sum())
            gain = float(slope @ move) - 0.5 * float(w @ w) - 0.5 * (self.bias * total) ** 2
            gain -= 0.5 * float(d @ move**2)
            if gain > 0.0:
                self.beta[face] = new
                self.w += w
                self.v += self.bias * total
                return True
        return False

    def move_intercept(self) -> None:
        """A step of the method of multipliers: the intercept found so far joins the targets."""
        self.offset += self.bias * float(self.v[0])

    def iterate(self, cost: int) -> Iterate:
        p, rows = self.problem, self.rows
        b = self.offset + self.bias * float(self.v[0])
        self.z = rows.dot(rows.take(self.everything) if rows.sparse else rows.X, self.w) + b
        value = p.primal(self.w, b, self.z)
        dual = p.dual(self.beta, p.size(self.w, b))
        if p.intercept.free:  # what is missing in the equality, at the price of the intercept
            total = abs(float(self.beta.sum()))
            dual -= total * (abs(b) + 1.0)
        return Iterate(Point(self.w.copy(), b, self.beta.copy()), value, value - dual, cost=cost)
