r"""Linear models: the adversarial risk exactly (ADV-1).

For g(x) = <w, x> + b the worst point of the ball changes y g(x) by eps ||w|| in the dual norm, so that a
row is wrong under attack if and only if :math:`y g(x) \le \varepsilon \|w\|_*`: l1 for linf attacks, l2 for
l2. With several classes the label falls at the first rival: :math:`\min_{k \ne y} (z_y - z_k) / \|w_y -
w_k\|_*`. Fixed columns, boxes, whole steps and switches enter through the worst point of a linear function
(:meth:`Threat.worst_linear`).

Rounding is counted against both sides: a row is *robust* where the margin that is left exceeds the error
bound of its computation, *broken* where it is below minus that, and neither in between.

Reference: Goodfellow, Shlens & Szegedy, "Explaining and harnessing adversarial examples" (2015), section 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._families import Linears
from ._tools import check_norm
from .scores import dense_rows, scores
from .threat import Threat

__all__ = ["linear_decided", "linear_radius", "worst_points"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]


def linear_radius(
    model: Any, X: Any, y: Any, norm: Any = math.inf, *, mutable: Any = None
) -> Array:
    """The distance of each row to the nearest point with another label; 0 for a row that is wrong.

    Parameters
    ----------
    model : linear classifier
        With ``coef_`` and ``intercept_``; one-vs-rest, softmax and pairs of classes as well. For one-vs-one
        votes the number is a lower bound.
    X, y : array-like
    norm : {2, inf}, default=inf
    mutable : array of bool of shape (d,), default=None
        The columns that may move.

    Returns
    -------
    array of shape (n,)
        Infinite where no perturbation helps.

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.robust import linear_radius
    >>> from surefit.svm import SVC
    >>> X, y = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([0, 1])
    >>> model = SVC(kernel="linear", C=np.inf, tol=1e-10).fit(X, y)
    >>> linear_radius(model, X, y, norm=2).round(6).tolist()
    [2.5, 2.5]
    >>> linear_radius(model, X, y).round(6).tolist()
    [1.785714, 1.785714]
    """
    family, X = _linear(model), np.asarray(dense_rows(X), dtype=np.float64)
    codes = scores(model).codes(y)
    order = check_norm(norm)
    free = np.ones(X.shape[1]) if mutable is None else np.asarray(mutable, dtype=np.float64)
    radius = np.zeros(len(X))
    for c in np.unique(codes[codes >= 0]):
        U, b = _directions(family, c)
        mine = codes == c
        margin = X[mine] @ U.T + b
        dual = (
            np.abs(U * free).sum(axis=1)
            if order == math.inf
            else np.sqrt(((U * free) ** 2).sum(axis=1))
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(
                dual > 0, margin / np.where(dual > 0, dual, 1.0), np.where(margin > 0, np.inf, 0.0)
            )
        radius[mine] = np.maximum(each.min(axis=1), 0.0)
    return radius


def linear_decided(
    family: Linears, X: Array, codes: Codes, threats: Sequence[Threat]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows are certainly robust, and which broken, for each threat: two (threats, n) arrays."""
    robust = np.zeros((len(threats), len(X)), dtype=np.bool_)
    broken = np.zeros_like(robust)
    for c in np.unique(codes[codes >= 0]):
        U, b = _directions(family, c)
        mine = np.flatnonzero(codes == c)
        here = X[mine]
        margin = here @ U.T + b
        unit = max(family.unit, float(np.finfo(X.dtype).eps)) * (X.shape[1] + 8.0)
        size = np.abs(here) @ np.abs(U).T + np.abs(b)
        for e, threat in enumerate(threats):
            bound, value = _falls(threat, here, U)
            error = 2.0 * unit * (size + np.abs(bound))
            robust[e, mine] = (margin - bound > error).all(axis=1)
            if family.decisive:
                broken[e, mine] = (margin - value < -error).any(axis=1)
    return robust, broken


def worst_points(family: Linears, X: Array, codes: Codes, threat: Threat) -> Array:
    """The allowed point at which the least margin of each row is smallest."""
    points = X.copy()
    for c in np.unique(codes[codes >= 0]):
        U, b = _directions(family, c)
        mine = np.flatnonzero(codes == c)
        left = X[mine] @ U.T + b - _falls(threat, X[mine], U)[1]
        points[mine] = threat.worst_linear(X[mine], -U[left.argmin(axis=1)]).x
    return points


def _falls(threat: Threat, X: Array, U: Array) -> tuple[Array, Array]:
    """How much each margin can fall: at most, and at a point that is known; (rows or 1, rivals)."""
    base = np.zeros((1, X.shape[1])) if threat.uniform else X
    found = [threat.worst_linear(base, -u) for u in U]
    bound = np.stack([worst.bound for worst in found], axis=1)
    return bound, np.stack([worst.value for worst in found], axis=1)


def _directions(family: Linears, c: int) -> tuple[Array, Array]:
    """The margins of class c against its rivals, as linear functions."""
    return family.rivals[c] @ family.W, family.rivals[c] @ family.b


def _linear(model: Any) -> Linears:
    family = scores(model).family
    if not isinstance(family, Linears):
        raise TypeError(
            f"{type(model).__name__} is not linear: linear_radius needs coef_ and intercept_. Use "
            "adversarial_risk, which brackets the risk of any classifier."
        )
    return family
