r"""What is claimed about a kernel ridge fit, from the data, the coefficients and the kernel alone.

    P(f) = sum_i s_i (y_i - f(x_i))^2 + alpha ||f||^2,        f = sum_j a_j k(x_j, .)

Every vector u gives a lower bound on P over all functions f (KER-7; s_i > 0, and u_i = 0 where s_i = 0):

    D(u) = 2 u'y - sum_i u_i^2 / s_i - u'Ku / alpha.

*The whole problem.* u = alpha a makes the difference P - D a sum of squares, sum_i s_i rho_i^2, of the
residual rho = y - Ka - alpha a / s of the linear system that the fit solves: one product with K shows both.
P is strongly convex, so the exact coefficients are within sqrt(max s) ||rho|| / alpha, and the exact
function within ||rho|| / sqrt(alpha) in the norm of the kernel's space, which bounds |f(x) - f*(x)| for
every x, seen or not.

*Centres (Nystrom).* At fit, the normal equations of the centres. In full, one pass over all n^2 kernel values
with u in the direction of s (y - f) gives the duality gap to the whole problem: how far the approximation is
from what it approximates.

All of this needs K to be positive semi-definite. Where the kernel's form does not show that (KER-5), the
matrix is tested in full (KER-3). Everything is computed in float64; no solver is used.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ._attributes import storage_eps
from ._namespace import is_torch, to_numpy
from ._optimality import optimality_claim
from .certificate import ROUNDING_LIMIT, Claim, Kind, Status
from .kernels import Kernel, psd_claim

__all__ = ["centre_claims", "exact_claims", "rounding"]

_EPS = float(np.finfo(np.float64).eps)
_UNIT = 8.0 * _EPS  # a kernel value, a product and a sum


class _Targets(NamedTuple):
    """Targets, coefficients, Ka and |K||a|, all (n, T), and what storing a does to Ka, (T,)."""

    Y: Any
    a: Any
    fitted: Any
    sizes: Any
    storing: Any


def exact_claims(
    kernel: Kernel,
    X: Any,
    Y: Any,
    a: Any,
    alphas: Any,
    weights: Any,
    *,
    tol: float,
    stored: float,
    full: bool,
) -> list[Claim]:
    """Of coefficients a, (n, T), on all rows of X; ``stored`` is the rounding of float32 coefficients."""
    bound = kernel.on(X, np.float64)
    positive = kernel.positive is True
    fitted, sizes = _product(bound, kernel, X, a, positive)
    storing = stored * _storing(kernel, X, a, sizes, weights, positive)
    whole = _Targets(Y, a, fitted, sizes, storing)
    tests: list[Claim] = []
    if not positive:
        tests.append(_positive_test(bound, full))
    known = positive or tests[0].status is Status.HOLDS
    claims = []
    penalised = [t for t, alpha in enumerate(alphas) if alpha > 0.0]
    if penalised:
        parts = _Targets(*(_columns(v, penalised) for v in whole))
        mine = alphas[penalised]
        claims += _system(parts, mine, weights, tol, stored, known, _largest(kernel, X))
    free = [t for t, alpha in enumerate(alphas) if alpha == 0.0]
    if free:
        parts = _Targets(*(_columns(v, free) for v in whole))
        claims.append(_least_squares(bound, parts, weights, tol, stored))
    return claims + tests


def centre_claims(
    kernel: Kernel,
    centres: Any,
    X: Any,
    Y: Any,
    a: Any,
    alphas: Any,
    weights: Any,
    *,
    tol: float,
    stored: float,
    max_gap: float | None,
    full: bool,
) -> list[Claim]:
    """Of coefficients a, (m, T), on m centres."""
    bound = kernel.on(centres, np.float64)
    inner = bound.gram()
    right, adjoint, residual = 0.0, 0.0, []
    own = _roots(kernel, centres)
    # of every prediction: what rounding, and what storing a, can do to it
    reach, stir = _UNIT * (own @ abs(a)), 2.0 * stored * _norms(own[:, None] * a)
    lengths, stored_lengths = 0.0, 0.0
    for rows, block in bound.blocks(X):
        r = Y[rows] - block @ a
        s = 1.0 if weights is None else weights[rows][:, None]
        right, adjoint = right + block.T @ (s * Y[rows]), adjoint + block.T @ (s * r)
        roots = _roots(kernel, X[rows])[:, None]
        lengths = lengths + (s * roots * (_UNIT * abs(Y[rows]) + roots * reach)).sum(0)
        stored_lengths = stored_lengths + (s * roots**2 * stir).sum(0)
        residual.append(r)
    rho = adjoint - (inner @ a) * alphas
    start = _norms(right)
    size = float((own**2).sum()) ** 0.5
    floor = size * lengths + _UNIT * _norms(abs(inner) @ abs(a)) * alphas
    storing = size * stored_lengths + 2.0 * stored * _spread(own, a) * alphas
    relative = _worst(_norms(rho), start)
    m = int(centres.shape[0])
    statement = (
        f"the {m} centres solve their normal equations to {relative:.1e} of the right-hand side"
    )
    claims = [
        _relative_claim(
            "normal equations",
            statement,
            relative,
            tol,
            _worst(floor, start),
            _worst(storing, start),
        )
    ]
    if kernel.positive is not True or not full:
        why = "whether the matrix of all rows is positive semi-definite is not known"
        if kernel.positive is True:
            why = (
                f"the distance of {m} centres from the whole problem takes {X.shape[0]}^2 kernel values: "
                "surefit.verify, or certify='full', decides it"
            )
        return [*claims, Claim.undecided("duality gap", why, Kind.OPTIMAL, "KER-7")]
    return [*claims, _distance(kernel, X, Y, a, inner, residual, alphas, weights, m, max_gap)]


# ------------------------------------------------------------------------ the whole problem


def _system(
    targets: _Targets,
    alphas: Any,
    weights: Any,
    tol: float,
    stored: float,
    positive: bool,
    largest: float,
) -> list[Claim]:
    """The residual of (K + alpha S^-1) a = y, and the duality gap that it is."""
    Y, a, fitted, sizes, storing = targets
    if weights is None:
        root, live = 1.0, 1.0
        c = a
    else:
        root = (weights**0.5)[:, None]
        live = 1.0 * (root > 0)
        c = live * a / (root + (1.0 - live))
    errors = Y - fitted
    q = root * errors - c * alphas
    leak = (1.0 - live) * a  # a row of weight 0 has no coefficient
    size = _norms(root * Y)
    null = float((size**2).sum())
    relative = _worst(_norms(q) + _norms(leak * alphas), size)
    rounding = _worst(_UNIT * _norms(root * (abs(Y) + sizes) + abs(c) * alphas), size)
    storing = storing + stored * _norms(c) * alphas
    shown = relative if math.isnan(relative) else max(relative, rounding)
    statement = f"(K + alpha I) a = y to {shown:.1e} of y"
    if positive:
        length = shown * size
        heavy = 1.0 if weights is None else float(weights.max()) ** 0.5
        coefficients = heavy * float((length / alphas).max())
        function = float((length / alphas**0.5).max()) * largest
        statement += (
            f"; the coefficients are within {coefficients:.1e} of the exact ones, every prediction where "
            f"k(x, x) <= {largest**2:.3g} within {function:.1e}"
        )
    claims = [
        _relative_claim("residual", statement, relative, tol, rounding, _worst(storing, size))
    ]
    if not positive:
        why = "whether the kernel matrix is positive semi-definite is not shown: there may be no minimum"
        return [Claim.undecided("duality gap", why, Kind.OPTIMAL, "KER-7"), *claims]
    if bool((leak != 0).any()):
        why = "a row of weight 0 has a coefficient: the model is not of the form that its dual has"
        return [Claim.undecided("duality gap", why, Kind.OPTIMAL, "KER-7"), *claims]
    norms = (a * fitted).sum(0) * alphas
    losses = ((root * errors) ** 2).sum(0)
    u = a * alphas  # so that u'Ku / alpha is alpha a'Ka
    primal = float((losses + norms).sum())
    dual = float((2.0 * (u * Y).sum(0) - (c**2).sum(0) * alphas**2 - norms).sum())
    mass = float((abs(u) * (2.0 * abs(Y) + sizes)).sum() + losses.sum()) + float(
        (c**2 * alphas**2).sum()
    )
    floor = _UNIT * math.log2(2.0 + len(Y)) * mass
    claim = optimality_claim(
        f"the objective {primal:.6g}",
        primal=primal,
        dual=dual,
        null=null,
        bound=tol * null,
        floor=floor,
        stored=float((storing**2).sum()),  # the gap is the square of the residual
        source="KER-7",
    )
    return [claim, *claims]


def _least_squares(bound: Any, targets: _Targets, weights: Any, tol: float, stored: float) -> Claim:
    """alpha = 0: K S (y - Ka) = 0 says that no coefficients fit the targets better."""
    Y, _, fitted, sizes, _ = targets
    s = 1.0 if weights is None else weights[:, None]
    both = bound.dot(_beside([s * (Y - fitted), s * Y, s * abs(Y) + s * sizes]))
    count = Y.shape[1]
    size = _norms(both[:, count : 2 * count])
    relative = _worst(_norms(both[:, :count]), size)
    reach = _worst(_norms(abs(both[:, 2 * count :])), size)
    statement = (
        f"K (y - Ka) is {relative:.1e} of Ky; where it is 0 no coefficients fit the targets better"
    )
    return _relative_claim(
        "normal equations", statement, relative, tol, _UNIT * reach, stored * reach
    )


def _positive_test(bound: Any, full: bool) -> Claim:
    if full:
        return psd_claim(bound.rows(0, bound.n))
    why = (
        "nothing says that this kernel matrix is positive semi-definite: surefit.verify, or certify='full', "
        "computes its least eigenvalue"
    )
    return Claim.undecided("positive semi-definite", why, Kind.EXACT, "KER-3")


# ------------------------------------------------------------------------ centres against all rows


def _distance(
    kernel: Kernel,
    X: Any,
    Y: Any,
    a: Any,
    inner: Any,
    residual: list[Any],
    alphas: Any,
    weights: Any,
    m: int,
    max_gap: float | None,
) -> Claim:
    """The duality gap to the problem without centres: one pass over the rows of its kernel matrix."""
    r = _below(residual)
    s = 1.0 if weights is None else weights[:, None]
    u = s * r
    quadratic = (u * kernel.on(X, np.float64).dot(u)).sum(0) / alphas
    losses, cross = (s * r**2).sum(0), (u * Y).sum(0)
    norms = (a * (inner @ a)).sum(0) * alphas
    curvature = losses + quadratic
    dual = float((cross**2 / (curvature + (curvature == 0))).sum())  # at the best multiple of u
    primal, null = float((losses + norms).sum()), float((s * Y**2).sum())
    mass = float((abs(u) * abs(Y)).sum() + losses.sum() + abs(quadratic).sum())
    mass += float((abs(a) * (abs(inner) @ abs(a))).sum(0) @ alphas)
    floor = _UNIT * math.log2(2.0 + len(Y)) * mass
    if max_gap is None and primal > null * (1.0 + _EPS * len(Y)):
        why = f"the objective {primal:.6g} exceeds {null:.6g}, that of f = 0: nothing was promised"
        return Claim.undecided("duality gap", why, Kind.OPTIMAL, "KER-7")
    claim = optimality_claim(
        f"the objective {primal:.6g}",
        primal=primal,
        dual=dual,
        null=null,
        bound=null if max_gap is None else max_gap * null,
        floor=floor,
        source="KER-7",
        target=f"the minimum over all {len(Y)} rows instead of {m} centres",
    )
    rows = math.sqrt(
        max(primal - dual, floor) / float(len(Y) if weights is None else weights.sum())
    )
    words = f"{claim.statement}; fitted values differ by at most {rows:.1e} in the root of their mean square"
    return replace(claim, statement=words)


# ------------------------------------------------------------------------ small parts


def _product(bound: Any, kernel: Kernel, X: Any, a: Any, positive: bool) -> tuple[Any, Any]:
    """Ka, and |K||a| for its rounding: by |k(x, z)| <= sqrt(k(x, x) k(z, z)) where that is true."""
    if positive:
        roots = _roots(kernel, X)
        return bound.dot(a), roots[:, None] * (roots @ abs(a))[None]
    parts = [(block @ a, abs(block) @ abs(a)) for _, block in bound.blocks()]
    return _below([f for f, _ in parts]), _below([g for _, g in parts])


def _storing(kernel: Kernel, X: Any, a: Any, sizes: Any, weights: Any, positive: bool) -> Any:
    """The length of the change of Ka when a is rounded, in units of the rounding; (T,).

    Roundings of different coefficients are as good as independent, so that their effects add up as squares
    do; twice that is allowed.
    """
    s = 1.0 if weights is None else weights
    if not positive:
        return _norms(sizes if weights is None else (weights**0.5)[:, None] * sizes)
    roots = _roots(kernel, X)
    return 2.0 * float((s * roots**2).sum()) ** 0.5 * _norms(roots[:, None] * a)


def _spread(roots: Any, a: Any) -> Any:
    return float((roots**2).sum()) ** 0.5 * _norms(roots[:, None] * a)


def _roots(kernel: Kernel, X: Any) -> Any:
    """sqrt(k(x, x)) of each row, in float64."""
    values = kernel.diag(X)
    values = values.double() if is_torch(values) else np.asarray(values, dtype=np.float64)
    return abs(values) ** 0.5


def _largest(kernel: Kernel, X: Any) -> float:
    return float(_roots(kernel, X).max())


def _norms(A: Any) -> Any:
    return (A * A).sum(0) ** 0.5


def _worst(sizes: Any, start: Any) -> float:
    """The largest ratio; a target that is 0 everywhere is compared with 1."""
    return float((sizes / (start + (start == 0))).max())


def _columns(A: Any, chosen: list[int]) -> Any:
    return A if len(chosen) == A.shape[-1] else A[..., chosen]


def _below(parts: list[Any]) -> Any:
    if is_torch(parts[0]):
        import torch

        return torch.cat(parts)
    return np.concatenate(parts)


def _beside(parts: list[Any]) -> Any:
    if is_torch(parts[0]):
        import torch

        return torch.cat(parts, dim=1)
    return np.concatenate(parts, axis=1)


def rounding(values: Any) -> float:
    """The rounding unit of coefficients in float32; 0 for others, whose rounding is counted anyway."""
    unit = storage_eps(to_numpy(values[:1]).dtype)
    return unit if unit > _EPS else 0.0


def _relative_claim(
    name: str, statement: str, observed: float, tol: float, floor: float, stored: float
) -> Claim:
    """A relative residual against the tolerance; storage in float32 beyond it leaves that undecided."""
    limit = tol if stored > tol else max(tol, ROUNDING_LIMIT)
    return Claim.check(
        name,
        statement,
        Kind.EXACT,
        observed,
        tol,
        "KER-7",
        floor=floor + stored,
        largest_floor=limit,
    )
