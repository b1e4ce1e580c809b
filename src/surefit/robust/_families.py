r"""Models whose margins are known in closed form: linear, kernel, nearest neighbours.

Nothing here calls the model: outputs are computed from its public attributes, in float64. That they are the
model's is checked, not assumed, wherever a claim rests on it (:mod:`surefit.robust.risk`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import like, to_numpy
from ..kernels import Gaussian, Kernel, Laplace, Linear, Polynomial, as_kernel

__all__ = [
    "Kernels",
    "Linears",
    "Neighbours",
    "family_of",
    "kernel_vjp",
    "neighbour_margin",
    "one_vs_one",
    "one_vs_rest",
    "squared_distances",
]

Array = NDArray[np.float64]
_CELLS = 1 << 22  # entries of a block of kernel values


class Last:
    """The last answer of a function: an attack asks for a margin, then for its gradient at the same rows."""

    def __init__(self) -> None:
        self.asked: tuple[Any, ...] = ()
        self.answer: Any = None

    def get(self, function: Any, *arguments: Any) -> Any:
        """function(*arguments), without computing it twice in a row for equal arrays."""
        same = len(self.asked) == len(arguments) and all(
            np.array_equal(old, new) for old, new in zip(self.asked, arguments)
        )
        if not same:
            self.answer = function(*arguments)
            self.asked = tuple(np.array(argument) for argument in arguments)
        return self.answer


@dataclass(frozen=True)
class Linears:
    """Outputs f(x) = W x + b; the margin of class c is min_r <rivals[c, r], f(x)>.

    ``decisive``: a negative margin means another label. One-vs-one votes are not.
    """

    W: Array
    b: Array
    rivals: Array
    decisive: bool
    unit: float


@dataclass(frozen=True)
class Kernels:
    """Outputs f_m(x) = sum_j a_jm k(x, s_j) + b_m."""

    kernel: Kernel
    S: Array
    a: Array
    b: Array
    rivals: Array
    unit: float
    last: Last = field(default_factory=Last)

    @property
    def name(self) -> str:
        """The kernel in a word."""
        return type(self.kernel).__name__

    def outputs(self, X: Any) -> Any:
        """f(x) of each row, in blocks of rows."""
        rows = np.asarray(to_numpy(X), dtype=np.float64)
        height = max(1, _CELLS // max(1, len(self.S)))
        parts = [self._values(rows[i : i + height]) @ self.a for i in range(0, len(rows), height)]
        return like(np.concatenate(parts) + self.b if parts else np.zeros((0, len(self.b))), X)

    def _values(self, rows: Array) -> Array:
        return self.last.get(self._fresh_values, rows)

    def _fresh_values(self, rows: Array) -> Array:
        kernel: Any = self.kernel
        if isinstance(kernel, Gaussian):
            return np.exp(-kernel.gamma * squared_distances(rows, self.S))
        if isinstance(kernel, Laplace):
            return np.exp(-kernel.gamma * _laplace_distances(kernel, rows, self.S))
        return (kernel.gamma * (rows @ self.S.T) + kernel.coef0) ** int(kernel.degree)


@dataclass(frozen=True)
class Neighbours:
    """The rows and label codes that vote, each with one vote, in the Euclidean distance."""

    rows: Array
    codes: NDArray[np.intp]
    k: int
    last: Last = field(default_factory=Last)


def one_vs_rest(k: int) -> Array:
    """A[c, r] of shape (k, k - 1, k): z_c - z_r for each other class; (2, 1, 1) for the one score of two."""
    if k == 2:
        return np.array([[[-1.0]], [[1.0]]])
    eye = np.eye(k)
    return np.stack([[eye[c] - eye[r] for r in range(k) if r != c] for c in range(k)])


def one_vs_one(k: int) -> Array:
    """A[c, r]: the decision of the pair of c and another class, positive for c; pairs favour their first."""
    pairs = list(combinations(range(k), 2))
    A = np.zeros((k, k - 1, len(pairs)))
    for j, (a, b) in enumerate(pairs):
        A[a, b - 1, j], A[b, a, j] = 1.0, -1.0
    return A


def family_of(model: Any, k: int) -> Linears | Kernels | Neighbours | None:
    """What is known of a model from its public attributes; None where margins have no closed form here."""
    if hasattr(model, "dual_coef_") and hasattr(model, "kernel"):
        return _kernel_machine(model, k)
    if hasattr(model, "n_neighbors") and hasattr(model, "classes_"):
        return _neighbours(model)
    parts = getattr(model, "estimators_", None)
    if parts is not None and type(model).__name__ in ("OneVsRestClassifier", "OneVsOneClassifier"):
        if getattr(model, "multilabel_", False) or not all(_is_linear(part) for part in parts):
            return None
        W = np.concatenate([_matrix(part.coef_) for part in parts])
        b = np.concatenate([np.atleast_1d(np.asarray(part.intercept_, float)) for part in parts])
        if (
            type(model).__name__ == "OneVsOneClassifier" and k > 2
        ):  # its parts favour the second class
            return _linears(-W, -b, k, W.dtype, pairs=True)
        return _linears(W, b, k, W.dtype)
    if _is_linear(model):
        W = _matrix(model.coef_)
        return _linears(W, np.atleast_1d(np.asarray(model.intercept_, float)), k, model.coef_.dtype)
    return None


def _is_linear(model: Any) -> bool:
    known = hasattr(model, "coef_") and hasattr(model, "intercept_")
    return known and (hasattr(model, "decision_function") or not hasattr(model, "classes_"))


def _matrix(coef: Any) -> Array:
    coef = coef.toarray() if sp.issparse(coef) else to_numpy(coef)
    return np.atleast_2d(np.asarray(coef, dtype=np.float64))


def _linears(W: Array, b: Array, k: int, dtype: Any, *, pairs: bool = False) -> Linears | None:
    wanted = k * (k - 1) // 2 if pairs else (1 if k == 2 else k)
    if len(W) != wanted or len(b) not in (1, wanted):
        return None
    unit = float(np.finfo(np.float32 if "32" in str(dtype) else np.float64).eps)
    rivals = one_vs_one(k) if pairs else one_vs_rest(k)
    return Linears(W, np.broadcast_to(b, wanted).copy(), rivals, not pairs, unit)


# ------------------------------------------------------------------------ kernel machines


def _kernel_machine(model: Any, k: int) -> Linears | Kernels | None:
    from ..svm._pairs import multipliers_by_pair

    machine = hasattr(model, "support_vectors_")
    S: Any = model.support_vectors_ if machine else getattr(model, "X_fit_", None)
    if S is None or not min(S.shape):
        return None
    kernel = _kernel(model, S.shape[1])
    if kernel is None or (machine and not hasattr(model, "classes_")):
        return None
    S = np.asarray(S.toarray() if sp.issparse(S) else to_numpy(S))
    unit = float(np.finfo(S.dtype if S.dtype == np.float32 else np.float64).eps)
    S = S.astype(np.float64)
    dual = model.dual_coef_
    dual = np.asarray(dual.toarray() if sp.issparse(dual) else to_numpy(dual), dtype=np.float64)
    pairs = machine and k > 2
    if not machine:
        a, b = dual.reshape(len(S), -1), np.zeros(1)
        if a.shape[1] != 1:
            return None
    elif pairs:
        a = multipliers_by_pair(dual, model.n_support_, k)
        b = np.asarray(model.intercept_, dtype=np.float64)
    else:
        a, b = dual.T, np.asarray(model.intercept_, dtype=np.float64)
    if isinstance(kernel, Linear):
        return _linears(a.T @ S, b, k, np.float32 if unit > 1e-10 else np.float64, pairs=pairs)
    return Kernels(kernel, S, a, b, one_vs_one(k) if pairs else one_vs_rest(k), unit)


def _kernel(model: Any, d: int) -> Kernel | None:
    """The kernel of a machine with numbers for its parameters, of the four with closed forms; else None."""
    kernel: Any = getattr(model, "kernel_", None)
    if kernel is None and isinstance(model.kernel, (str, Kernel)):
        if isinstance(model.kernel, str) and model.kernel == "precomputed":
            return None
        gamma = getattr(model, "_gamma", getattr(model, "gamma", None))
        kernel = as_kernel(
            model.kernel, gamma=1.0 / d if gamma is None else gamma, degree=model.degree,
            coef0=model.coef0,
        )  # fmt: skip
    if isinstance(kernel, Polynomial) and float(kernel.degree) != int(kernel.degree):
        return None
    known = isinstance(kernel, (Gaussian, Laplace, Linear, Polynomial))
    return kernel if known else None


def squared_distances(X: Array, S: Array) -> Array:
    """||x_i - s_j||^2, of centred rows, never negative."""
    centre = S.mean(axis=0)
    X, S = X - centre, S - centre
    D = (X**2).sum(axis=1)[:, None] + (S**2).sum(axis=1) - 2.0 * (X @ S.T)
    return np.maximum(D, 0.0)


def _laplace_distances(kernel: Any, X: Array, S: Array) -> Array:
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(X, S, "cityblock" if kernel.norm == "l1" else "euclidean"))


def kernel_vjp(family: Kernels, X: Any, V: Any) -> Any:
    """The gradient of sum_m V_im f_m(x_i) with respect to x_i."""
    rows = np.asarray(to_numpy(X), dtype=np.float64)
    weights = np.asarray(to_numpy(V), dtype=np.float64) @ family.a.T
    kernel: Any = family.kernel
    S, K = family.S, family._values(rows)
    if isinstance(kernel, Gaussian):
        c = -2.0 * kernel.gamma * weights * K
        slope = rows * c.sum(axis=1)[:, None] - c @ S
    elif isinstance(kernel, Laplace) and kernel.norm == "l1":
        c = -kernel.gamma * weights * K
        slope = np.stack(
            [(c * np.sign(rows[:, j, None] - S[:, j])).sum(axis=1) for j in range(S.shape[1])],
            axis=1,
        )
    elif isinstance(kernel, Laplace):
        D = _laplace_distances(kernel, rows, S)
        c = -kernel.gamma * weights * K / np.where(D > 0, D, 1.0) * (D > 0)
        slope = rows * c.sum(axis=1)[:, None] - c @ S
    else:
        degree = int(kernel.degree)
        t = kernel.gamma * (rows @ S.T) + kernel.coef0
        inner = degree * kernel.gamma * t ** (degree - 1) if degree else 0.0 * t
        slope = (weights * inner) @ S
    return like(slope, X)


# ------------------------------------------------------------------------ nearest neighbours


def _neighbours(model: Any) -> Neighbours | None:
    rows = getattr(model, "X_fit_", getattr(model, "_fit_X", None))
    codes = getattr(model, "y_fit_", getattr(model, "_y", None))
    metric = str(getattr(model, "effective_metric_", ""))
    equal = getattr(model, "weights", None) in ("uniform", None)
    if rows is None or codes is None or sp.issparse(rows) or np.ndim(codes) != 1 or not equal:
        return None
    params = getattr(model, "effective_metric_params_", None) or {}
    plain = metric in ("euclidean", "l2", "sqeuclidean") or (
        metric == "minkowski" and params == {"p": 2}
    )
    if not plain or params.get("w") is not None:
        return None
    kept = np.asarray(to_numpy(rows), dtype=np.float64)
    return Neighbours(kept, np.asarray(codes, dtype=np.intp), int(model.n_neighbors))


def neighbour_margin(family: Neighbours, X: Any, codes: NDArray[np.intp]) -> tuple[Any, Any]:
    """Distance to the m-th nearest row of another class less that to the m-th of the class; its gradient.

    m is the smallest majority of k. For two classes and an odd k the sign says which label wins.
    """
    rows = np.asarray(to_numpy(X), dtype=np.float64)
    value, slope = family.last.get(lambda r, c: _margin_and_slope(family, r, c), rows, codes)
    return like(value, X), like(slope, X)


def _margin_and_slope(
    family: Neighbours, rows: Array, codes: NDArray[np.intp]
) -> tuple[Array, Array]:
    value, slope = np.zeros(len(rows)), np.zeros_like(rows)
    m = family.k // 2 + 1
    for c in np.unique(codes):
        mine = np.flatnonzero(codes == c)
        here = rows[mine]
        for sign, chosen in ((-1.0, family.codes == c), (1.0, family.codes != c)):
            pool = family.rows[chosen]
            if not len(pool):
                value[mine] += sign * 1e300
                continue
            place = min(m, len(pool)) - 1
            D = squared_distances(here, pool)
            target = pool[np.argpartition(D, place, axis=1)[:, place]]
            gap = here - target
            length = np.sqrt((gap**2).sum(axis=1))
            value[mine] += sign * length
            slope[mine] += sign * gap / np.where(length > 0, length, 1.0)[:, None]
    return value, slope
