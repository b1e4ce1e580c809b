r"""Whether a hyperplane separates two classes, decided for the stored numbers themselves, without rounding.

The rows :math:`z_i = y_i (x_i, 1)` are separated when some v has <z_i, v> > 0 for all i. Gordan: either
that, or some weights lambda >= 0, not all 0, have :math:`\sum_i \lambda_i z_i = 0`. Stiemke: either some v
has <z_i, v> >= 0 for all i and not 0 for all, or some lambda > 0 have :math:`\sum_i \lambda_i z_i = 0`.
Floating point finds v and lambda only nearly. Two ways lead from there to a proof:

* *A correction that is shown to exist.* With :math:`G = Z'\Lambda Z` and :math:`r = Z'\lambda`, the weights
  :math:`\lambda_i (1 - \langle z_i, G^{-1} r\rangle)` balance exactly, and are positive where
  :math:`\sum_j |z_{ij}| |G^{-1} r|_j < 1`. An approximate inverse R bounds :math:`G^{-1} r` by
  :math:`\|R r\|_\infty / (1 - \|I - R G\|_\infty)`, every rounding error included (Rump).
* *Exact arithmetic.* Floating-point numbers are integers times powers of two, and the scale of a column
  changes nothing. A small problem is solved by the simplex method on integers (Edmonds), which
  ends with v or with lambda.

What neither can settle is left undecided. Nothing here uses a solver.

References
----------
Gordan (1873); Stiemke (1915); Edmonds, "Systems of distinct representatives and linear algebra" (1967);
Rump, "Verification methods: rigorous results using floating-point arithmetic", Acta Numerica 19 (2010).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["can_balance", "correction_exists", "is_balanced_by_all", "is_separable", "separates"]

Array = NDArray[np.float64]
Integers = NDArray[Any]  # Python integers, which have no size limit
_EPS = float(np.finfo(np.float64).eps)
_TINY = 1e-290  # far above what underflow can lose
_COLUMNS = 40  # exact arithmetic takes seconds beyond
_ENTRIES = 40_000  # of an exact simplex tableau
_BITS = 2200  # of an integer: the range of float64 itself
_ROUNDS = 30  # of adding rows to an exact problem


def is_separable(
    Z: Array, *, plane: Array | None = None, weights: Array | None = None
) -> bool | None:
    """Whether some v has Z v > 0 for all rows; None where that could not be decided.

    Parameters
    ----------
    Z : array of shape (n, d)
        The rows times their labels, a column of labels for the intercept included.
    plane : array of shape (d,), optional
        A v that nearly separates; not trusted.
    weights : array of shape (n,), optional
        Weights that nearly balance the rows; not trusted.

    Examples
    --------
    >>> import numpy as np
    >>> is_separable(np.array([[-1.0, -1.0], [1.0 + 2.0**-52, 1.0]]))
    True
    >>> is_separable(np.array([[-1.0, -1.0], [1.0, 1.0]]))
    False
    """
    Z = np.asarray(Z, dtype=np.float64)
    if not len(Z) or not np.isfinite(Z).all():
        return None
    plane, weights = _usable(plane, Z.shape[1]), _usable(weights, len(Z))
    if _has_opposite_rows(Z):
        return False
    if plane is not None and separates(Z, plane):
        return True
    if weights is not None and can_balance(Z[weights > 0.0], weights[weights > 0.0]):
        return False
    return _separable_exactly(Z, _first_rows(Z, plane, weights))


def is_balanced_by_all(Z: Array, weights: Array | None = None) -> bool | None:
    """Whether some lambda > 0, in every entry, has Z'lambda = 0; None where that could not be decided.

    If so, a loss that falls in every margin has a minimiser; if not, some direction lowers it without end.
    """
    Z = np.asarray(Z, dtype=np.float64)
    if not len(Z) or not np.isfinite(Z).all():
        return None
    if weights is not None and can_balance(Z, weights):
        return True
    if (integers := _integers(Z)) is None or (integers.shape[1] + 1) * len(Z) > _ENTRIES:
        return None
    found = _Simplex(integers.T, -integers.sum(axis=0)).solve()  # lambda = 1 + mu, mu >= 0
    return None if found is None else found[0]


def separates(Z: Array, plane: Array) -> bool:
    """Whether <z_i, v> > 0 for every row, in exact arithmetic."""
    plane = np.asarray(plane, dtype=np.float64)
    if plane.shape != Z.shape[1:] or not np.isfinite(plane).all():
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        scores = Z @ plane
        errors = 2.0 * (Z.shape[1] + 2) * _EPS * (np.abs(Z) @ np.abs(plane)) + _TINY
    close = np.flatnonzero(~(scores > errors))
    if len(close) > _ENTRIES:
        return False
    exact = [Fraction(float(v)) for v in plane]
    return all(_dot(Z[i], exact) > 0 for i in close)


def _usable(hint: Array | None, length: int) -> Array | None:
    """A hint as finite numbers of the right shape; None where it is not."""
    if hint is None:
        return None
    hint = np.asarray(hint, dtype=np.float64)
    return hint if hint.shape == (length,) and np.isfinite(hint).all() else None


def _has_opposite_rows(Z: Array) -> bool:
    """Whether some row is the negative of another: the same x under both labels."""
    seen = {row.tobytes() for row in Z + 0.0}  # + 0.0 makes -0.0 and 0.0 the same
    return any(row.tobytes() in seen for row in 0.0 - Z)


def _dot(row: Array, plane: list[Fraction]) -> Fraction:
    return sum((Fraction(float(a)) * v for a, v in zip(row, plane)), Fraction(0))


# ------------------------------------------------------------------ a correction that exists


def can_balance(Z: Array, weights: Array) -> bool:
    """Whether positive weights near these have Z'lambda = 0 exactly, as far as this can be shown.

    False shows nothing.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if not len(Z) or not np.isfinite(weights).all() or not (weights > 0.0).all():
        return False
    Z = Z * _powers(np.abs(Z).max(axis=0))
    weights = weights * float(_powers(np.array([weights.max()]))[0])
    size = np.abs(Z)
    root = np.sqrt(weights)[:, None]
    gram = (root * Z).T @ (root * Z)
    mass = (root * size).T @ (root * size)
    slack = 2.0 * (len(Z) + 8) * _EPS * mass + _TINY
    residual = np.abs(Z.T @ weights) + 2.0 * (len(Z) + 8) * _EPS * (size.T @ weights) + _TINY
    return correction_exists(gram, slack, residual, size.max(axis=0))


def correction_exists(gram: Array, slack: Array, residual: Array, reach: Array) -> bool:
    r"""Whether :math:`|\langle z, G^{-1} r\rangle| < 1` for all G, r and z within these bounds.

    Parameters
    ----------
    gram, slack : array of shape (d, d)
        A matrix that is within ``slack`` of G, entry by entry.
    residual : array of shape (d,)
        Bounds of the sizes of the entries of r.
    reach : array of shape (d,)
        Bounds of the sizes of the entries of z.
    """
    d = len(gram)
    if not all(np.isfinite(a).all() for a in (gram, slack, residual, reach)):
        return False
    if (np.diag(gram) <= 0.0).any():
        return False
    unit = _powers(np.sqrt(np.diag(gram)))  # a unit diagonal nearly: u = unit * (the scaled one)
    scaled = gram * unit * unit[:, None]
    error = slack * unit * unit[:, None]
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return False
    if not np.isfinite(inverse).all():
        return False
    product = np.abs(inverse) @ (np.abs(scaled) * 2.0 * (d + 4) * _EPS + error)
    defect = float((np.abs(np.eye(d) - inverse @ scaled) + 1.01 * product).sum(axis=1).max())
    if not 1.01 * defect < 0.5:
        return False
    moved = float((np.abs(inverse) @ (residual * unit)).max()) / (1.0 - 1.01 * defect)
    return bool(1.01 * moved * float(unit @ reach) < 1.0)


def _powers(sizes: Array) -> Array:
    """Powers of two that bring these sizes near 1; 1 for a size of 0. Multiplying by them is exact."""
    _, exponents = np.frexp(sizes)
    return np.where(sizes > 0.0, np.ldexp(1.0, -np.clip(exponents, -1000, 1000)), 1.0)


# ------------------------------------------------------------------ exact arithmetic


def _first_rows(Z: Array, plane: Array | None, weights: Array | None) -> NDArray[np.intp]:
    """The rows to begin with: those that carry weight, and those that a plane has nearest."""
    n, few = len(Z), 2 * Z.shape[1] + 2
    picked = np.zeros(n, dtype=np.bool_)
    if weights is not None:
        heavy = np.argsort(-weights)[: 2 * few]
        picked[heavy[weights[heavy] > 0.0]] = True
    if plane is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            picked[np.argsort(Z @ plane)[:few]] = True
    if picked.sum() < few:
        picked[np.linspace(0, n - 1, min(few, n)).astype(np.intp)] = True
    return np.flatnonzero(picked)


def _separable_exactly(Z: Array, first: NDArray[np.intp]) -> bool | None:
    """Rows are added until nothing separates them, or what separates them separates all."""
    integers = _integers(Z)
    if integers is None:
        return None
    d = integers.shape[1]
    inside = np.zeros(len(Z), dtype=np.bool_)
    inside[first] = True
    for _ in range(_ROUNDS):
        rows = np.flatnonzero(inside)
        if len(rows) * (d + 2) > _ENTRIES:
            return None
        ones = np.array([1] * len(rows), dtype=object)
        target = np.array([0] * d + [1], dtype=object)
        found = _Simplex(np.vstack([integers[rows].T, ones]), target).solve()
        if found is None or found[0]:
            return None if found is None else False
        plane = -found[1][:d]
        scores = integers @ plane
        beyond = np.flatnonzero(scores <= 0)
        if not len(beyond):
            return True
        worst = beyond[np.argsort(scores[beyond], kind="stable")]
        inside[worst[: 2 * d + 2]] = True
    return None


def _integers(Z: Array) -> Integers | None:
    """Z with each column times a power of two that makes it whole; None where that is too large.

    Columns of zeros say nothing and are left out.
    """
    Z = Z[:, np.abs(Z).max(axis=0) > 0.0]
    if not 1 <= Z.shape[1] <= _COLUMNS or Z.size > 50 * _ENTRIES:
        return None
    mantissas, exponents = np.frexp(Z)
    exponents = np.where(Z == 0.0, 5000, exponents)
    shifts = exponents - exponents.min(axis=0)
    if np.where(Z == 0.0, 0, shifts).max() > _BITS:
        return None
    whole = np.ldexp(mantissas, 53).astype(np.int64).astype(object)
    shifts = np.where(Z == 0.0, 0, shifts).astype(object)
    columns = whole << shifts if whole.size else whole
    return np.asarray(_without_common_factors(columns), dtype=object)


def _without_common_factors(columns: Integers) -> Integers:
    """Each column divided by the greatest common divisor of its entries: smaller numbers are faster."""
    divisors = np.array([math.gcd(*column) or 1 for column in columns.T], dtype=object)
    reduced: Integers = columns // divisors
    return reduced


class _Simplex:
    """Whether some x >= 0 has A x = b, by the simplex method on integers (phase 1).

    The tableau is kept in integers over one common denominator, which is the pivot before (Edmonds): every
    division is exact.
    """

    def __init__(self, A: Integers, b: Integers) -> None:
        m, n = A.shape
        signs = np.array([-1 if value < 0 else 1 for value in b], dtype=object)
        body = np.array(A, dtype=object) * signs[:, None]
        artificial = np.array([[int(i == j) for j in range(m)] for i in range(m)], dtype=object)
        right = (np.array(b, dtype=object) * signs)[:, None]
        table = np.hstack([body, artificial, right])
        costs = -table.sum(axis=0)
        costs[n : n + m] = 0
        self.table = np.vstack([table, costs])
        self.basis = list(range(n, n + m))
        self.n, self.m, self.signs, self.denominator = n, m, signs, 1

    def solve(self) -> tuple[bool, Integers] | None:
        """True and x >= 0 exists; False and y with y'A <= 0 < y'b; None: too many steps."""
        quick, most = 6 * self.m + 20, 60 * self.m + 400
        for step in range(most):
            column = self._entering(by_index=step > quick)
            if column is None:
                break
            self._pivot(self._leaving(column), column)
        else:
            return None
        feasible = self.table[-1, -1] == 0
        last = self.table[-1, self.n : self.n + self.m]
        return bool(feasible), (self.denominator - last) * self.signs

    def _entering(self, *, by_index: bool) -> int | None:
        """A column whose cost falls: the steepest, or (Bland, who never cycles) the first."""
        costs = self.table[-1, : self.n]
        falling = np.flatnonzero(costs < 0)
        if not len(falling):
            return None
        return int(falling[0] if by_index else falling[np.argmin(costs[falling])])

    def _leaving(self, column: int) -> int:
        """The row whose ratio is least; of several, that of the first basic variable."""
        best = -1
        for i in range(self.m):
            if self.table[i, column] <= 0:
                continue
            if best >= 0:
                here = self.table[i, -1] * self.table[best, column]
                there = self.table[best, -1] * self.table[i, column]
                if here > there or (here == there and self.basis[i] > self.basis[best]):
                    continue
            best = i
        return best

    def _pivot(self, row: int, column: int) -> None:
        pivot, chosen = self.table[row, column], self.table[row].copy()
        factors = self.table[:, column].copy()
        self.table = (self.table * pivot - factors[:, None] * chosen) // self.denominator
        self.table[row] = chosen
        self.denominator = pivot
        self.basis[row] = column
