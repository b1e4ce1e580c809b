r"""Claims about a kernel support vector machine, from the data and the fitted attributes alone.

A binary machine is a box problem in the signed multipliers beta (SVM-7; SVR has two of them a row):

    P(w, b) = 1/2 ||w||^2 + sum_i hi_i [t_i - f_i]_+ + sum_i (-lo_i) [f_i - t_i]_+,  f_i = <w, phi(x_i)> + b,
    D(beta) = t'beta - 1/2 beta'K beta,     sum_i beta_i = 0,     lo_i <= beta_i <= hi_i.

The primal point is the model: w = sum_j dual_coef_j phi(x_j), b = intercept_. The dual point is made from
the same multipliers: each is moved into its box, and then those of the heavier sign are scaled down until the
sum is 0. So it is feasible whatever the attributes say, and P - D bounds the distance to the optimum; wrong
attributes can only make the bound worse. The kernel must be positive semi-definite for that; where nobody
knows, the kernel matrix is tested first, or nothing is claimed.

* *support rows* (EXACT): the support vectors are rows of these data, and the kernel is the one the parameters
  mean.
* *dual feasibility* (EXACT): 0 <= alpha_i <= C_i and sum_i y_i alpha_i = 0.
* *complementary slackness* (STATIONARY; SVM-9): rows with alpha = 0 lie outside the margin, with alpha = C
  inside, the others on it, which gives one offset b. At fit it is checked on free rows alone.
* *duality gap* (OPTIMAL; SVM-7), at most tol * P(0). It needs a kernel value for each row and support
  vector: decided at fit when these are few, else by ``verify``.
* with ``C=inf``, *margin* (BOUND; SVM-2): no hyperplane has a wider one than 1 / sqrt(2 D); or, from the
  weights ``farkas_``, *not separable* (EXACT), and *hard margin* fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._optimality import INFORMATIVE_SHARE, optimality_claim
from .._worst import badness
from ..certificate import ROUNDING_LIMIT, Claim, Kind, Status
from ._least_norm import least_norm_claim

__all__ = ["Box", "box_claims", "feasible", "null_value", "several", "undecided_gap"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Box:
    """One binary problem and the model's multipliers; ``row[i]`` is the row that variable i belongs to."""

    t: Array
    lo: Array
    hi: Array
    row: Index
    beta: Array
    offset: float
    size: float  # the largest k(x, x)

    @property
    def hard(self) -> bool:
        """Whether losses are forbidden."""
        return not (np.isfinite(self.hi).all() and np.isfinite(self.lo).all())

    def slack(self, v: Array, among: Any = slice(None)) -> Array:
        """How far each variable is from its regime, given v = t - f without the offset."""
        lo, hi, beta = self.lo[among], self.hi[among], self.beta[among]
        up = np.where(beta >= hi, 0.0, v - self.offset)
        low = np.where(beta <= lo, 0.0, self.offset - v)
        return np.maximum(np.maximum(up, low), 0.0)

    def rounding(self) -> float:
        """What rounding does to a value of f: a sum of kernel values times multipliers."""
        largest = float(np.abs(self.t).max(initial=0.0)) + abs(self.offset)
        return 64.0 * _EPS * (self.size * float(np.linalg.norm(self.beta)) + largest)


def feasible(box: Box) -> Array:
    """Multipliers in the box that sum to 0, near the model's."""
    beta = np.clip(np.nan_to_num(box.beta, posinf=0.0, neginf=0.0), box.lo, box.hi)
    up, down = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
    if up > down:
        beta[beta > 0] *= down / up
    elif down > up:
        beta[beta < 0] *= up / down
    return beta


def null_value(box: Box) -> float:
    """P at w = 0 with its best offset, which is one of the t_i."""
    order = np.argsort(box.t)
    t, up, down = box.t[order], box.hi[order], -box.lo[order]
    slope = np.cumsum(down) + np.cumsum(up) - up.sum()
    b = t[min(int(np.searchsorted(slope, 0.0)), len(t) - 1)]
    return float(up @ np.maximum(t - b, 0.0) + down @ np.maximum(b - t, 0.0))


def box_claims(
    box: Box,
    values: Callable[[Array], Array],
    *,
    tol: float,
    decide: bool,
    free_values: Callable[[Index], Array] | None = None,
    cap: int = 1024,
) -> list[Claim]:
    """The claims about one binary problem.

    Parameters
    ----------
    box : Box
    values : callable
        Maps weights of shape (n_rows, k), non-zero only where the model or its repair has support, to K @
        weights.
    tol : float
    decide : bool
        Whether all kernel values may be used.
    free_values : callable, optional
        Maps row indices to the model's f without offset there; used when ``decide`` is False.
    cap : int
        Most rows for that.
    """
    claims = [_feasibility(box)]
    if not decide:
        free = np.flatnonzero((box.beta > box.lo) & (box.beta < box.hi) & (box.beta != 0.0))[:cap]
        if free_values is not None and len(free):
            v = box.t[free] - free_values(box.row[free])
            claims.append(_slackness(box, box.slack(v, free), tol, "on free rows"))
        return [*claims, undecided_gap()]
    repaired, n = feasible(box), int(box.row.max(initial=-1)) + 1
    both = np.column_stack(
        [np.bincount(box.row, weights=beta, minlength=n) for beta in (box.beta, repaired)]
    )
    f = values(np.asarray(both, dtype=np.float64))
    v = box.t - f[box.row, 0]
    claims.append(_slackness(box, box.slack(v), tol, "over all rows"))
    quadratic = float(both[:, 0] @ f[:, 0])
    dual = float(box.t @ repaired) - 0.5 * float(both[:, 1] @ f[:, 1])
    if box.hard:
        return claims + _margin(box, v, quadratic, dual, tol)
    return [*claims, _gap(box, v, quadratic, dual, tol)]


def undecided_gap(why: str = "") -> Claim:
    """The gap where nothing was computed."""
    why = why or (
        "a kernel value for each row and support vector would decide it: surefit.verify, or certify='full'"
    )
    return Claim.undecided("duality gap", why, Kind.OPTIMAL, "SVM-7")


def _feasibility(box: Box) -> Claim:
    size, total = np.abs(box.beta).max(initial=0.0), np.abs(box.beta).sum()
    outside = np.maximum(box.beta - box.hi, box.lo - box.beta).max(initial=0.0) / max(size, 1e-300)
    balance = abs(box.beta.sum()) / max(total, 1e-300)
    statement = (
        f"the multipliers leave 0 <= alpha <= C by {outside:.1e} and sum(y alpha) = 0 by {balance:.1e}, "
        "relative to their size"
    )
    worst = float(np.max([outside, balance]))  # a NaN stays
    bound = 4.0 * _EPS * math.sqrt(len(box.beta)) + 1e-13
    return Claim.check("dual feasibility", statement, Kind.EXACT, worst, bound, "SVM-7")


def _slackness(box: Box, slack: Array, tol: float, where: str) -> Claim:
    name, kind, source = "complementary slackness", Kind.STATIONARY, "SVM-9"
    free = int(((box.beta > box.lo) & (box.beta < box.hi)).sum())
    worst, floor = float(slack.max(initial=0.0)), box.rounding()
    spread = 0.5 * float(np.ptp(box.t)) if len(box.t) else 0.0  # 1 for a classifier
    bound = tol * max(spread, 1.0)
    if worst > bound and floor > ROUNDING_LIMIT * float(np.abs(box.t).max(initial=0.0)):
        return Claim.undecided(name, _too_large(box, floor), kind, source)
    statement = (
        f"{where}, alpha = 0 lies outside the margin, alpha = C inside, and {free} free vectors agree on one "
        f"offset, to {worst:.2e}"
    )
    claim = Claim.check(name, statement, kind, worst, bound, source, floor=floor)
    if claim.status is Status.HOLDS and worst > max(floor, INFORMATIVE_SHARE * spread):
        words = f"{statement}, where half the range of y is {spread:.2g}: fit with a smaller tol"
        return replace(claim, statement=words, status=Status.UNINFORMATIVE)
    return claim


def _gap(box: Box, v: Array, quadratic: float, dual: float, tol: float) -> Claim:
    over, under = np.maximum(v - box.offset, 0.0), np.maximum(box.offset - v, 0.0)
    primal = 0.5 * quadratic + float(box.hi @ over) - float(box.lo @ under)
    null, gap = null_value(box), primal - dual
    at_risk = (over > 0) & (box.hi > 0) | (under > 0) & (box.lo < 0) | (box.beta != 0)
    mass = float(np.maximum(box.hi, -box.lo)[at_risk].sum())
    floor = box.rounding() * max(mass, 1.0) + 16.0 * _EPS * (abs(primal) + abs(dual))
    if not gap <= tol * null and floor > ROUNDING_LIMIT * null:
        return undecided_gap(_too_large(box, floor))
    return optimality_claim(
        f"the objective {primal:.6g}",
        primal=primal,
        dual=dual,
        null=null,
        bound=tol * null,
        floor=floor,
        source="SVM-7",
    )


def _too_large(box: Box, floor: float) -> str:
    return (
        f"kernel values as large as {box.size:.1e} leave a rounding of {floor:.1e}, which hides it; scale "
        "the features (for instance with StandardScaler), or choose a smaller gamma or degree"
    )


def _margin(box: Box, v: Array, quadratic: float, dual: float, tol: float) -> list[Claim]:
    """Hard margin: the model, scaled until its nearest row is at 1, against the dual bound."""
    distance = np.where(box.hi > 0, 1.0 - (v - box.offset), 1.0 - (box.offset - v))
    rows = (box.hi > 0) | (box.lo < 0)
    least = float(distance[rows].min(initial=math.inf))
    if not (least > 0.0 and quadratic > 0.0):
        statement = f"a row has y f(x) = {least:.3g}: the model does not separate the classes"
        return [
            Claim.check("hard margin", statement, Kind.BOUND, 1.0 - least, 0.0, "SVM-2"),
            undecided_gap("the objective is infinite: a row is on the wrong side"),
        ]
    primal = 0.5 * quadratic / least**2
    gap = primal - dual
    floor = 64.0 * _EPS * (primal + abs(dual)) + 4.0 * primal * box.rounding()
    if not gap <= tol * primal and floor > ROUNDING_LIMIT * primal:
        why = (
            f"the margin is so thin that rounding moves 1/2 ||w||^2 = {primal:.6g} by {floor:.1e}: neither "
            "that it is least nor a bound on wider margins is shown"
        )
        return [undecided_gap(why), Claim.undecided("margin", why, Kind.BOUND, "SVM-2")]
    width, widest = least / math.sqrt(quadratic), 1.0 / math.sqrt(2.0 * max(dual, 1e-300))
    short = max(1.0 - width / widest, 0.0)
    statement = (
        f"every row is {width:.6g} or further from the boundary, and no hyperplane does better than "
        f"{widest:.6g}"
    )
    return [
        least_norm_claim(primal, dual, tol=tol, floor=floor),
        Claim.check("margin", statement, Kind.BOUND, short, tol, "SVM-2", floor=floor / primal),
    ]


# ------------------------------------------------------------------------ several problems


def several(found: list[tuple[str, list[Claim]]], most: int = 10) -> list[Claim]:
    """The claims of the pairs of classes under their names; of many pairs, the worst of each claim."""
    if len(found) == 1:
        return found[0][1]
    if len(found) <= most:
        return [replace(c, name=f"{pair}: {c.name}") for pair, claims in found for c in claims]
    names = list(dict.fromkeys(c.name for _, claims in found for c in claims))
    worst = []
    for name in names:
        group = [(pair, c) for pair, claims in found for c in claims if c.name == name]
        pair, claim = max(group, key=lambda item: badness(item[1]))
        words = f"of {len(group)} pairs of classes the worst is {pair}: {claim.statement}"
        worst.append(replace(claim, statement=words))
    return worst
