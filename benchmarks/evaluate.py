r"""The neutral evaluator: what a point is worth, in float64, by code that no contender shares.

It sees the data and a contender's coefficients and intercepts, nothing else, and uses numpy alone. Each
problem below writes its objective P once, and one *dual bound*: from any point it makes a dual vector,
repairs it until it is feasible, and returns its value D, a number below the minimum of P whatever the point
was. With D* the best bound over all contenders, the relative duality gap of a point is

    (P(point) - D*) / P(0),        P(0) the objective at w = 0 with the best intercept,

so that no contender is judged by its own bound, and a loose bound of ours cannot hurt a peer. Problems are
written as their solvers write them (scikit-learn's scaling); P(0) takes the scale out. ``primal`` and
``dual`` return one number for each subproblem: one for a fit, a hundred for a path, whose gap is the
largest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Huber",
    "LassoPath",
    "LeastSquares",
    "Logistic",
    "Problem",
    "Quantile",
    "Softmax",
    "flat",
    "relative_gap",
]

Array = NDArray[np.float64]


class Problem(ABC):
    """min P over points; a point is ``(coef,)`` or ``(coef, intercept)``."""

    scale: float  # P(0)

    @abstractmethod
    def primal(self, *point: Any) -> Array:
        """P at the point, one value a subproblem."""

    @abstractmethod
    def dual(self, *point: Any) -> Array:
        """A lower bound on min P, from the dual vector that the point suggests."""


def relative_gap(problem: Problem, primal: Array, best_dual: Array) -> float:
    """The largest (P - D*) / P(0); infinite where the point is not finite."""
    if not np.isfinite(primal).all():
        return float("inf")
    return float(np.max((primal - best_dual) / problem.scale))


class LeastSquares(Problem):
    r"""1/2 \sum_i (y_i - x_i'w - b)^2 + l2/2 ||w||^2.

    Dual: y't - t't/2 - ||X't||^2/(2 l2) with 1't = 0, t from the centred residuals; where l2 = 0 the
    constraint is X't = 0, and t is projected onto it.
    """

    def __init__(self, X: Any, y: Array, l2: float = 0.0) -> None:
        self.X, self.y, self.l2 = X, y, l2
        self._gram: Array | None = None
        self.scale = 0.5 * float(np.sum((y - y.mean()) ** 2))

    def primal(self, *point: Any) -> Array:
        w, b = flat(point)
        r = self.y - self.X @ w - b
        return np.array([0.5 * float(r @ r) + 0.5 * self.l2 * float(w @ w)])

    def dual(self, *point: Any) -> Array:
        w, b = flat(point)
        t = self.y - self.X @ w - b
        t = t - t.mean()
        if self.l2 > 0:
            leak = self.X.T @ t
            return np.array([float(self.y @ t - 0.5 * t @ t - 0.5 * leak @ leak / self.l2)])
        if self._gram is None:
            self._gram = _moments(self.X)
        t = _annihilate(t, self.X, slice(None), self._gram, np.zeros(len(w) + 1))
        return np.array([float(self.y @ t - 0.5 * t @ t)])


class LassoPath(Problem):
    r"""1/(2n) ||y - X w||^2 + alpha ||w||_1 for each alpha; with an intercept on request.

    Dual: y't - n/2 t't with |X't| <= alpha (and 1't = 0), t the residuals scaled as well as the constraint
    lets.
    """

    def __init__(self, X: Any, y: Array, alphas: Any, *, intercept: bool = False) -> None:
        self.X, self.y, self.alphas = X, y, np.asarray(alphas, dtype=np.float64)
        self.intercept = intercept
        middle = y.mean() if intercept else 0.0
        self.scale = 0.5 * float(np.mean((y - middle) ** 2))

    def _residuals(self, point: tuple[Any, ...]) -> tuple[Array, Array]:
        W = np.asarray(point[0], dtype=np.float64).reshape(self.X.shape[1], len(self.alphas))
        R = self.y[:, None] - self.X @ W
        if self.intercept:
            R = R - R.mean(axis=0)  # the best intercept, for everybody
        return W, R

    def primal(self, *point: Any) -> Array:
        W, R = self._residuals(point)
        return 0.5 * np.mean(R**2, axis=0) + self.alphas * np.abs(W).sum(axis=0)

    def dual(self, *point: Any) -> Array:
        _, R = self._residuals(point)
        n = len(self.y)
        reach = np.max(np.abs(self.X.T @ R), axis=0) / n
        yR, RR = self.y @ R, np.einsum("ij,ij->j", R, R)
        most = np.divide(self.alphas, reach, out=np.full(len(reach), np.inf), where=reach > 0)
        best = np.divide(yR, RR, out=np.zeros(len(RR)), where=RR > 0)
        t = np.clip(best, -most, most)
        return (t * yR - 0.5 * t**2 * RR) / n


class Logistic(Problem):
    r"""C \sum_i log(1 + exp(-y_i z_i)) + 1/2 ||w||^2 (or ||w||_1), y in {-1, 1}, z = Xw + b.

    Dual: the entropies of a_i = sigma(-y_i z_i) times C, less 1/2 ||X'(C a y)||^2 (or with |X'(C a y)| <=
    1). The free intercept asks for \sum a_i y_i = 0: the heavier class is shrunk.
    """

    def __init__(self, X: Any, y: Any, C: float, *, l1: bool = False, intercept: bool = True):
        self.X, self.y, self.C, self.l1, self.intercept = X, y, C, l1, intercept
        share = float(np.mean(y > 0)) if intercept else 0.5
        self.scale = C * len(y) * float(_entropy(np.array([share]))[0])

    def _point(self, point: tuple[Any, ...]) -> tuple[Array, float]:
        return flat(point if self.intercept else point[:1])

    def primal(self, *point: Any) -> Array:
        w, b = self._point(point)
        loss = float(np.sum(np.logaddexp(0.0, -self.y * (self.X @ w + b))))
        penalty = float(np.abs(w).sum()) if self.l1 else 0.5 * float(w @ w)
        return np.array([self.C * loss + penalty])

    def dual(self, *point: Any) -> Array:
        w, b = self._point(point)
        a = _sigmoid(-self.y * (self.X @ w + b))
        if self.intercept:
            up, down = float(a[self.y > 0].sum()), float(a[self.y < 0].sum())
            a = a * np.where(self.y > 0, min(1.0, down / up), min(1.0, up / down))
        v = self.X.T @ (self.C * a * self.y)
        if self.l1:
            a = a * min(1.0, 1.0 / max(float(np.max(np.abs(v))), 1e-300))
            return np.array([self.C * float(_entropy(a).sum())])
        return np.array([self.C * float(_entropy(a).sum()) - 0.5 * float(v @ v)])


class Softmax(Problem):
    r"""C \sum_i (log \sum_k exp z_ik - z_{i y_i}) + 1/2 ||W||^2, z = X W' + b, y in 0..K-1.

    Dual: C \sum_i entropy(p_i) - 1/2 ||X'(C (p - onehot))||^2 over distributions p_i with \sum_i p_i = the
    class counts (the free intercepts). The softmax of the point is shifted to these sums and mixed with the
    class frequencies until no entry is negative.
    """

    def __init__(self, X: Any, y: Any, C: float) -> None:
        self.X, self.y, self.C = X, np.asarray(y), C
        self.counts = np.bincount(self.y).astype(np.float64)
        share = self.counts / len(self.y)
        self.scale = -C * float(self.counts @ np.log(share))

    def _scores(self, point: tuple[Any, ...]) -> tuple[Array, Array]:
        W, b = (np.asarray(part, dtype=np.float64) for part in point)
        Z = self.X @ W.T + b
        return W, Z - Z.max(axis=1, keepdims=True)

    def primal(self, *point: Any) -> Array:
        W, Z = self._scores(point)
        picked = Z[np.arange(len(Z)), self.y]
        loss = float(np.sum(np.log(np.exp(Z).sum(axis=1)) - picked))
        return np.array([self.C * loss + 0.5 * float(np.sum(W**2))])

    def dual(self, *point: Any) -> Array:
        _, Z = self._scores(point)
        p = np.exp(Z)
        p /= p.sum(axis=1, keepdims=True)
        p += (self.counts - p.sum(axis=0)) / len(p)
        lowest, share = p.min(axis=0), self.counts / len(p)
        mix = float(np.max(np.maximum(-lowest, 0.0) / (share + np.maximum(-lowest, 0.0))))
        p = np.maximum((1.0 - mix) * p + mix * share, 0.0)
        entropy = -float(np.sum(p * np.log(np.where(p > 0, p, 1.0))))
        p[np.arange(len(p)), self.y] -= 1.0
        v = self.C * (self.X.T @ p)
        return np.array([self.C * entropy - 0.5 * float(np.sum(v**2))])


class Huber(Problem):
    r"""\sum_i (s + s H((y_i - x_i'w - b)/s)) + alpha ||w||^2, minimised over the scale s > 0 too.

    H(e) = e^2 for |e| <= epsilon, 2 epsilon |e| - epsilon^2 beyond (scikit-learn's HuberRegressor). The
    scale of a point is the best one for its residuals. Dual: y'u - ||X'u||^2/(4 alpha) with |u| <= 2
    epsilon, 1'u = 0 and \sum u_i^2 <= 4n, the last from the scale; u = H' of the residuals, moved on the
    inliers until X'u = 2 alpha w, then shrunk into the box.
    """

    def __init__(self, X: Any, y: Array, epsilon: float, alpha: float) -> None:
        self.X, self.y, self.epsilon, self.alpha = X, y, epsilon, alpha
        middle = float(np.median(y))
        for _ in range(50):  # the best constant: Newton on the inliers
            s = self._scale_of(y - middle)
            inlier = np.abs(y - middle) <= epsilon * s
            slope = float(np.sum(np.clip((y - middle) / s, -epsilon, epsilon)))
            middle += s * slope / max(1, int(inlier.sum()))
        self.scale = float(self.primal(np.zeros(X.shape[1]), middle)[0])

    def _scale_of(self, r: Array) -> float:
        """The s at which \\sum min(r^2/s^2, epsilon^2) = n; epsilon > 1 makes it exist."""
        low, high = 0.0, float(np.sqrt(np.mean(r**2))) + 1e-300
        for _ in range(200):
            s = 0.5 * (low + high)
            if float(np.sum(np.minimum((r / s) ** 2, self.epsilon**2))) > len(r):
                low = s
            else:
                high = s
            if high - low <= 1e-15 * high:
                break
        return high

    def primal(self, *point: Any) -> Array:
        w, b = flat(point)
        r = self.y - self.X @ w - b
        if not np.isfinite(r).all():
            return np.array([np.inf])
        s, e = self._scale_of(r), self.epsilon
        size = np.abs(r / s)
        values = np.where(size <= e, size**2, 2 * e * size - e**2)
        return np.array([len(r) * s + s * float(values.sum()) + self.alpha * float(w @ w)])

    def dual(self, *point: Any) -> Array:
        w, b = flat(point)
        r = self.y - self.X @ w - b
        s, most = self._scale_of(r), 2.0 * self.epsilon
        u = np.clip(2.0 * r / s, -most, most)
        free = np.abs(u) < most
        wanted = np.append(2.0 * self.alpha * w, 0.0)
        u = _annihilate(u, self.X, free, _moments(self.X[free]), wanted)
        excess = max(1.0, float(np.max(np.abs(u))) / most, float(np.sqrt(u @ u / (4 * len(u)))))
        u = u / excess
        leak = self.X.T @ u
        bent = 0.25 * float(leak @ leak) / self.alpha if self.alpha > 0 else 0.0
        return np.array([float(self.y @ u) - bent])


class Quantile(Problem):
    r"""1/n \sum_i max(q e_i, (q-1) e_i), e = y - Xw - b, without a penalty.

    Dual: y'a/n with q-1 <= a <= q, X'a = 0, 1'a = 0. At a vertex p + 1 residuals are zero: their a follow
    from the equations, the others from the signs; then a is shrunk into the box.
    """

    def __init__(self, X: Any, y: Array, q: float) -> None:
        self.X, self.y, self.q = X, y, q
        self.scale = float(self.primal(np.zeros(X.shape[1]), float(np.quantile(y, q)))[0])

    def primal(self, *point: Any) -> Array:
        w, b = flat(point)
        e = self.y - self.X @ w - b
        return np.array([float(np.mean(np.maximum(self.q * e, (self.q - 1.0) * e)))])

    def dual(self, *point: Any) -> Array:
        w, b = flat(point)
        e = self.y - self.X @ w - b
        if not np.isfinite(e).all():
            return np.array([-np.inf])
        basis = np.argpartition(np.abs(e), len(w))[: len(w) + 1]
        a = np.where(e > 0, self.q, self.q - 1.0)
        a[basis] = 0.0
        A = np.column_stack([self.X[basis], np.ones(len(basis))])
        wanted = -np.append(self.X.T @ a, a.sum())
        a[basis] = np.linalg.lstsq(A.T, wanted, rcond=None)[0]
        if np.max(np.abs(np.append(self.X.T @ a, a.sum()))) > 1e-8 * len(a):
            return np.array([0.0])  # the basis is singular; 0 is always a bound
        inside = np.max(np.maximum(a / self.q, a / (self.q - 1.0)))
        return np.array([float(self.y @ a) / max(1.0, float(inside)) / len(a)])


def flat(point: tuple[Any, ...]) -> tuple[Array, float]:
    """Coefficients as a vector and the intercept as a number (0 where there is none)."""
    w = np.asarray(point[0], dtype=np.float64).ravel()
    b = float(np.asarray(point[1], dtype=np.float64).ravel()[0]) if len(point) > 1 else 0.0
    return w, b


def _moments(rows: Any) -> Array:
    """A'A for A = (rows, 1)."""
    sums = rows.sum(axis=0)
    return np.block([[rows.T @ rows, sums[:, None]], [sums[None, :], np.full((1, 1), len(rows))]])


def _annihilate(t: Array, X: Any, free: Any, gram: Array, wanted: Array) -> Array:
    """The nearest vector that equals t outside the rows ``free`` and has (X'u, 1'u) = wanted.

    ``gram`` is :func:`_moments` of these rows. Each pass removes what rounding left in the one before.
    """
    u, rows = t.copy(), X if isinstance(free, slice) else X[free]
    for _ in range(3):
        step = np.linalg.solve(gram, np.append(X.T @ u, u.sum()) - wanted)
        u[free] -= rows @ step[:-1] + step[-1]
    return u


def _sigmoid(z: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -z))


def _entropy(a: Array) -> Array:
    inner = (a > 0) & (a < 1)
    safe = np.where(inner, a, 0.5)
    return np.where(inner, -safe * np.log(safe) - (1 - safe) * np.log1p(-safe), 0.0)
