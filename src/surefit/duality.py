r"""One duality gap for every convex loss and penalty.

For the problem, with weights s_i >= 0,

    P(w, b) = sum_i s_i l(x_i'w + b, y_i) + Omega(w),

every dual point theta gives a lower bound on P over *all* (w, b):

    D(theta) = - sum_i s_i l*(theta_i, y_i) - Omega*(-X'(s theta)),     sum_i s_i theta_i = 0,

the equality being there when b is free (unpenalised). P(w, b) - D(theta) therefore bounds how far (w, b) is
from the global minimum, whoever proposed it. The dual candidate is theta_i = l'(z_i, y_i) at the model's own
predictions, or a witness that the fit hands over; :mod:`surefit._dual_points` repairs it to exact
feasibility, so that a bad candidate can only weaken the bound. The norm constraint, X'(s theta) in the dual
ball, is met by scaling (:meth:`Penalty.feasible_scale`). Where no repair is feasible, only the least value
that the losses can take bounds the objective from below, and the gap is undecided unless that suffices.

``Gap.floor`` estimates what rounding alone can do to the difference; a gap is never below ``-floor``.
This module imports no solver (an import contract keeps it so).

References
----------
Rockafellar, Convex Analysis (1970), section 31; Ndiaye, Fercoq, Gramfort & Salmon, "Gap Safe screening
rules", JMLR 18 (2017).

Examples
--------
>>> import numpy as np
>>> from surefit.losses import Squared
>>> from surefit.penalties import L1
>>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 2.9])
>>> far = duality_gap(X, y, np.zeros(1), 0.0, Squared(), L1(0.1), fit_intercept=False)
>>> near = duality_gap(X, y, np.array([0.957142857142857]), 0.0, Squared(), L1(0.1), fit_intercept=False)
>>> far.gap > 1.0, near.gap < 1e-12
(True, True)
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._attributes import storage_eps
from ._dual_points import adjoint, candidates, is_balanced, is_rounding, repair, within_l1
from ._namespace import array_namespace, to_numpy, where
from ._optimality import optimality_claim, scientific
from ._threads import by_rows, sum_rows
from ._worst import largest
from .certificate import Claim, Kind
from .design import Design, as_design
from .losses import Absolute, Loss, MarginLoss, Quantile, Softmax, Squared
from .offsets import best_offset, null_value
from .penalties import L1, ElasticNet, NoPenalty, Penalty

__all__ = ["Gap", "best_offset", "duality_gap", "gap_claim", "null_value", "unit_of"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
# A gap of this share of the objective is looked at again, at the cost of a pass over X, where the slopes of
# the loss are that much larger than those of the penalty: the bound may be lost in rounding.
_SUSPECT, _LONG = 0.9, 1e6


@dataclass(frozen=True)
class Gap:
    """Primal value, dual value, their difference, and the rounding floor of that difference.

    ``stored`` is the part of the floor that is due to coefficients stored in float32.
    ``trivial`` says that no dual point near the model was feasible, and ``dual`` is the least value that
    the losses can take at all. The values are in units of ``2**exponent``.
    """

    primal: float
    dual: float
    gap: float
    floor: float
    theta: Array
    trivial: bool = False
    stored: float = 0.0
    exponent: int = 0


def duality_gap(
    X: Any,
    y: Array,
    coef: Array,
    intercept: float | Array,
    loss: Loss,
    penalty: Penalty,
    *,
    weights: Array | None = None,
    fit_intercept: bool = True,
    intercept_scaling: float | None = None,
    witness: Array | None = None,
) -> Gap:
    """The duality gap at (coef, intercept).

    Parameters
    ----------
    X : matrix of shape (n, p) or Design
    y : array of shape (n,)
        Targets; labels in {-1, +1} for margin losses, codes 0..K-1 for softmax.
    coef : array of shape (p,) or (p, K)
    intercept : float or array of shape (K,)
    loss, penalty : Loss, Penalty
    weights : array of shape (n,), optional
        The s_i of the objective; 1/n each by default.
    fit_intercept : bool
        Whether b is a free variable.
    intercept_scaling : float, optional
        When given, the intercept is the coefficient of a constant feature with this value, penalised
        like the others (liblinear's convention).
    witness : array, optional
        A dual point to try besides the model's own; not trusted.

    Returns
    -------
    Gap
    """
    design = as_design(X)
    n = design.shape[0]
    s = design.ones() / n if weights is None else design.vector(weights)
    y = design.vector(y)
    w, b = coef.astype(np.float64), np.asarray(intercept, dtype=np.float64)
    z, mean = design.dot_and_mean(w, s)
    z += design.vector(b) if b.ndim else float(b)
    free = fit_intercept and intercept_scaling is None
    params = _parameters(w, b, intercept_scaling)
    pointwise = by_rows(loss.pointwise, z, y)
    primal = float(s @ pointwise) + penalty.value(params)

    unpenalised = isinstance(penalty, NoPenalty) and not penalty.positive
    norms = design.column_norms(s) if unpenalised else np.zeros(0)
    stored = _storage_floor(coef, b, params, design, s, loss, penalty, intercept_scaling)
    rounded = (
        stored  # and what rounding of the predictions does where the loss has a kink or a flat
    )
    if isinstance(loss, Squared):  # errors y - z below the rounding of y and z are none
        squares = sum_rows(lambda s, y, z: s @ (abs(y) + abs(z)) ** 2, s, y, z)
        rounded += 64.0 * _EPS**2 * float(squares)
    if isinstance(loss, (Absolute, Quantile)):
        sizes = norms / math.sqrt(float(s.sum())) if unpenalised else np.abs(mean)
        terms = float(sizes @ np.abs(w)) + abs(float(b))  # those that z is the sum of
        kinks = abs(y - z) <= 8.0 * _EPS * (abs(y) + abs(z) + terms)
        rounded += float(s @ where(kinks, pointwise, 0.0))
    best, longest = replace(_trivial(primal, loss, z, y, s), floor=rounded, stored=stored), 0.0
    reach = 0.0
    for theta in candidates(loss, z, y, s, free, witness):
        size = _largest(theta)
        theta = repair(theta, design, mean, y, z, s, loss, norms, free, unpenalised)
        if free and not is_balanced(theta, s):
            continue
        v = adjoint(theta, design, mean, s, free, intercept_scaling)
        leak = np.abs(v) if unpenalised else np.zeros_like(v)
        if _is_kinked_lasso(loss, penalty) and intercept_scaling is None:
            theta, v, leak = within_l1(theta, v, design, mean, s, loss, penalty.l1, free)  # type: ignore
        if _largest(theta) <= 1e-10 * size:  # the repair leads to 0
            best = replace(best, trivial=False)
        # those of the model's own point, which comes last: a witness is not trusted
        reach = largest(np.abs(v))
        longest = math.sqrt(float(s @ (theta**2).reshape(len(s), -1).sum(axis=1)))
        for t in _scales(penalty, v, params):
            conjugates = by_rows(functools.partial(_conjugates, loss, t), theta, y, s)
            dual_penalty = 0.0 if unpenalised else penalty.conjugate(t * v)
            dual = -float(s @ conjugates) - dual_penalty
            if not math.isfinite(dual) or (unpenalised and not is_rounding(v, theta, norms, s)):
                continue
            if dual <= best.dual:  # feasible, and no better than what was known
                best = replace(best, trivial=False)
                continue
            mass = _mass(loss, z, y, s, theta, pointwise, conjugates, mean, w, b)
            mass += abs(float(np.vdot(v, params))) + penalty.value(params) + abs(dual_penalty)
            lost = float((leak * np.abs(params)).sum())
            floor = 4.0 * _EPS * (8.0 + math.log2(n)) * mass + lost + rounded
            point = theta if t == 1.0 else t * theta
            best = Gap(primal, dual, primal - dual, floor, point, stored=stored)
        if not best.trivial and best.gap <= best.floor:  # a witness that leaves nothing to improve
            break
    if isinstance(penalty, ElasticNet) and not unpenalised and best.gap > _SUSPECT * abs(primal):
        slope = penalty.l1 + penalty.l2 * largest(np.abs(params))
        if reach > _LONG * slope:
            lost = _lost_in_scales(
                longest, design, s, penalty, params, abs(primal), intercept_scaling
            )
            best = replace(best, floor=best.floor + lost)
    return best


def _lost_in_scales(
    length: float,
    design: Design,
    s: Array,
    penalty: ElasticNet,
    params: Array,
    size: float,
    intercept_scaling: float | None,
) -> float:
    """What rounding of v = -X'(s theta) costs next to a penalty that is tiny for columns of this length.

    An l2 term divides the square of the error by its weight; without one, v is scaled back into a box that
    is smaller than the error. It matters where columns are so long, or penalties so small, that the gap
    cannot be computed in float64; the certificate then says that nothing is shown. ``length`` is that of
    the longest theta.
    """
    norms = design.column_norms(s)
    if intercept_scaling is not None:
        norms = np.append(norms, intercept_scaling * math.sqrt(float(s.sum())))
    noise = 8.0 * _EPS * norms * length
    costs = []
    if penalty.l1 > 0.0:
        costs.append(float(noise.max(initial=0.0)) / penalty.l1 * size)
    if penalty.l2 > 0.0:
        terms = noise @ np.abs(params).reshape(len(params), -1).sum(axis=1)
        with np.errstate(over="ignore"):
            costs.append(2.0 * float(terms) + float(noise @ noise) / (2.0 * penalty.l2))
    return min(costs, default=0.0)


def _parameters(w: Array, b: Array, intercept_scaling: float | None) -> Array:
    """What the penalty sees: the coefficients and, if it is penalised too, the intercept."""
    if intercept_scaling is None:
        return w
    last = np.atleast_1d(b) / intercept_scaling
    return np.concatenate([w, last[None] if w.ndim == 2 else last])


def _mass(
    loss: Loss,
    z: Array,
    y: Array,
    s: Array,
    theta: Array,
    pointwise: Array,
    conjugates: Array,
    mean: Array,
    w: Array,
    b: Array,
) -> float:
    """The sizes of the numbers that are added up, which rounding errors are relative to."""

    def sums(s: Array, theta: Array, z: Array, pointwise: Array, conjugates: Array) -> Array:
        push = s @ abs(theta).reshape(len(s), -1)  # what an error in z does to the objective
        moved = float(s @ abs(theta * z).reshape(len(s), -1).sum(axis=1))
        return np.append(to_numpy(push), moved + float(s @ (abs(pointwise) + abs(conjugates))))

    *push, mass = sum_rows(sums, s, theta, z, pointwise, conjugates)
    if isinstance(loss, (MarginLoss, Softmax)):  # a perfect fit is made of such numbers too
        mass += float(s.sum() * loss.pointwise(0.0 * z[:1], y[:1])[0])
    reach = np.abs(mean) @ np.abs(w).reshape(len(w), -1) + np.abs(b)
    return float(mass) + float(reach @ np.array(push))


def _storage_floor(
    coef: NDArray[Any],
    b: Array,
    params: Array,
    design: Design,
    s: Array,
    loss: Loss,
    penalty: Penalty,
    intercept_scaling: float | None,
) -> float:
    """What rounding the coefficients to float32 does to the gap; 0 for float64.

    It moves the predictions by dz and v by X'(s l'' dz). The objective feels that to second order, and so
    does a conjugate with an l2 term; without one v is scaled back into the l1 box, which costs a
    first-order term, |v|'|w|.
    """
    eps = storage_eps(coef.dtype)
    if eps <= _EPS:
        return 0.0
    norms, mass = design.column_norms(s), float(s.sum())
    size = np.abs(params).reshape(len(params), -1)
    offset = mass * float((b**2).sum())
    if intercept_scaling is not None:
        norms, offset = np.append(norms, intercept_scaling * math.sqrt(mass)), 0.0
    moved = eps * math.sqrt(float(norms**2 @ (size**2).sum(axis=1)) + offset)
    if not math.isfinite(loss.smoothness):
        return loss.lipschitz * math.sqrt(mass) * moved
    bend = loss.smoothness * moved
    l1, l2 = (penalty.l1, penalty.l2) if isinstance(penalty, ElasticNet) else (math.inf, 0.0)
    costs = [0.0] if l1 == l2 == 0.0 else []
    if l1 > 0.0:
        costs.append(bend * float(norms.max(initial=0.0)) * float(size.sum()))
    if l2 > 0.0:
        costs.append(float(((norms[:, None] * bend + l2 * eps * size) ** 2).sum()) / (2.0 * l2))
    return bend * moved + min(costs)


def _trivial(primal: float, loss: Loss, z: Array, y: Array, s: Array) -> Gap:
    """theta = 0 is always feasible: no model does better than the least value of each loss."""
    nothing = array_namespace(z).zeros_like(z)
    if isinstance(loss, (MarginLoss, Softmax)):  # the same for every label
        dual = -float(s.sum() * loss.conjugate(nothing[:1], y[:1])[0])
    else:
        dual = -float(sum_rows(lambda theta, y, s: s @ loss.conjugate(theta, y), nothing, y, s))
    return Gap(primal, dual, primal - dual, 0.0, nothing, trivial=True)


def gap_claim(gap: Gap, tol: float, null: float, source: str, *, curvature: float = 0.0) -> Claim:
    """The claim "within gap of the global minimum", bounded by ``tol * P(0)``.

    ``curvature`` is the strong convexity of the objective in the coefficients: where it is positive, the
    gap also bounds their distance to the optimal ones, by sqrt(2 gap / curvature).
    """
    if gap.trivial and gap.gap > tol * null:
        why = "no feasible dual point was found near this model: nothing is shown"
        return Claim.undecided("duality gap", why, Kind.OPTIMAL, source)
    value = scientific(gap.primal, gap.exponent, 5) if gap.exponent else f"{gap.primal:.6g}"
    return optimality_claim(
        f"the objective {value}",
        primal=gap.primal,
        dual=gap.dual,
        null=null,
        bound=tol * null,
        floor=gap.floor - gap.stored,
        stored=gap.stored,
        source=source,
        curvature=curvature,
        exponent=gap.exponent,
        gap=gap.gap,
    )


def unit_of(y: Any) -> int:
    """An exponent k such that ``y / 2**k`` has squares that float64 holds; 0 where y itself has."""
    size = float(abs(y).max())
    if size == 0.0 or not math.isfinite(size) or 2.0**-200 <= size <= 2.0**200:
        return 0
    return math.frexp(size)[1]


def _conjugates(loss: Loss, t: float, theta: Array, y: Array, s: Array) -> Array:
    """The conjugate of each sample's loss at t theta; a sample without weight has no part in it."""
    return where(s > 0, loss.conjugate(theta if t == 1.0 else t * theta, y), 0.0)


def _largest(theta: Array) -> float:
    """The largest size of an entry; NaN where one is."""
    return largest(float(theta.max()), -float(theta.min()))


def _scales(penalty: Penalty, v: Array, params: Array) -> list[float]:
    """Multiples of a dual point to try: the feasible one and, for l1 + l2, that of the augmented Lasso.

    The elastic net is a Lasso on data with sqrt(l2) I appended, whose dual constraint is
    |v - l2 w| <= l1; scaling to meet it avoids dividing a violation by a tiny l2.
    """
    if isinstance(penalty, NoPenalty) and not penalty.positive:
        return [1.0]
    scales = [penalty.feasible_scale(v)]
    if isinstance(penalty, ElasticNet) and penalty.l1 > 0 and penalty.l2 > 0:
        slack = v - penalty.l2 * params
        longest = float((slack if penalty.positive else np.abs(slack)).max(initial=0.0))
        if longest > penalty.l1:
            scales.append(penalty.l1 / longest)
    return scales


def _is_kinked_lasso(loss: Loss, penalty: Penalty) -> bool:
    return isinstance(loss, (Absolute, Quantile)) and type(penalty) is L1 and not penalty.positive
