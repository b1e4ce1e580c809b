r"""The claims of a k-means fit, decided without any code of the solver.

One pass over the rows gives everything. With z the labels, c the centres and d_i = x_i - c_{z_i}:

* *labels*: no centre is nearer to a row than its own, ties to the lowest number. A float32 product with a
  bound on its error settles most rows, a float64 one nearly all others, rational numbers the rest.
* *centres*: sum_{i in j} w_i d_i / w_j is how far the mean of cluster j lies from its centre: the move
  of one more Lloyd step.
* *WCSS*: sum_i w_i |d_i|^2 is ``inertia_``.
* *monotone*: ``inertia_trace_``, kept by the fit, never rises and ends there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._attributes import storage_eps
from .._exact_order import UNIT
from .._namespace import to_numpy
from ..certificate import ROUNDING_LIMIT, Claim, Kind, Status
from ._kmeans_look import Findings, last_step, look, wcss_before
from ._lower_bounds import lower_bounds, optimality_claim

__all__ = ["kmeans_claims", "labels_claim", "optimum_claims", "wcss_claim"]


def kmeans_claims(model: Any, X: Any, sample_weight: Any, *, full: bool, tol: float) -> list[Claim]:
    """All claims of a KMeans fit."""
    found = look(model, X, sample_weight, full=full)
    claims = [
        labels_claim(found),
        wcss_claim(model, found),
        _centres_claim(model, X, sample_weight, found, tol),
        _trace_claim(model, found),
    ]
    if full:
        claims.append(_before_claim(model, X, sample_weight, found))
    if len(model.restart_inertias_) > 1:
        claims.append(_restarts_claim(model, found))
    broken = any(claim.status is Status.FAILS for claim in claims)  # not worth minutes
    return claims + optimum_claims(model, X, sample_weight, found, full=full and not broken)


def optimum_claims(
    model: Any, X: Any, sample_weight: Any, found: Findings, *, full: bool
) -> list[Claim]:
    """How far the fit is from the least possible sum of squares."""
    bounds = lower_bounds(X, sample_weight, model.n_clusters, model.labels_, full=full)
    floor = UNIT**2 * found.size * (found.rows + 16.0) + _positions(found)
    return [optimality_claim(float(model.inertia_), model.n_clusters, bounds, floor=floor)]


# ---------------------------------------------------------------------------- the sentences


def labels_claim(found: Findings) -> Claim:
    if found.open:
        why = (
            f"{found.open} rows lie so nearly between two centres that only rational numbers tell; "
            "surefit.verify or certify='full' decides them"
        )
        return Claim.undecided("labels", why, Kind.EXACT, "CLU-1")
    how = "in exact arithmetic, ties to the lowest number"
    statement = (
        f"of {found.rows} rows, {found.wrong} have a label other than their nearest centre, {how}"
    )
    if not found.wrong:
        statement = f"all {found.rows} rows carry the label of their nearest centre, {how}"
    return Claim.check("labels", statement, Kind.EXACT, found.wrong, 0, "CLU-1")


def wcss_claim(model: Any, found: Findings) -> Claim:
    gap = abs(float(model.inertia_) - found.wcss)
    p = model.cluster_centers_.shape[1]
    bound = 2.0 * UNIT * (p + 4.0 * math.sqrt(found.rows) + 64.0) * found.wcss
    floor = bound + _lost(found) + _positions(found)
    statement = (
        f"inertia_ = {float(model.inertia_):.12g} differs by {gap:.1e} from the sum of squares within "
        "clusters, recomputed"
    )
    return Claim.check(
        "WCSS", statement, Kind.EXACT, gap, bound, "CLU-1",
        floor=floor, largest_floor=_largest_floor(found, floor),
    )  # fmt: skip


def _lost(found: Findings) -> float:
    """What squares below the range of float64 may have lost."""
    return 8.0 * found.moves.shape[1] * (found.rows + float(found.masses.sum())) * 2.0**-1074


def _positions(found: Findings) -> float:
    """The squares of what rounding moves rows and centres by; they are all there is where rows coincide."""
    return 64.0 * UNIT**2 * found.place


def _largest_floor(found: Findings, floor: float) -> float:
    """Rounding excuses a thousandth of the WCSS; where all of that is rounding, both sums count as 0."""
    return math.inf if found.wcss <= floor else ROUNDING_LIMIT * found.wcss


def _centres_claim(model: Any, X: Any, sample_weight: Any, found: Findings, tol: float) -> Claim:
    """The move of one more Lloyd step against the tolerance, or against rounding where it is that small."""
    each = np.einsum("ij,ij->i", found.moves, found.moves)
    moved = float(each.sum())
    centres = to_numpy(model.cluster_centers_)
    unit = storage_eps(centres.dtype)
    rms = math.sqrt(found.size / max(float(found.masses.sum()), 1e-300))
    size = np.sqrt(np.einsum("ij,ij->i", centres, centres, dtype=np.float64)) * unit
    size += 4.0 * UNIT * math.sqrt(found.rows) * rms
    held = found.masses > 0.0  # a centre without rows may lie anywhere, and excuses no other
    floor = float(size[held] @ size[held])
    allowed = tol * found.variance
    empty = int(np.count_nonzero(found.masses == 0.0))
    words = f"; {empty} clusters hold no row" if empty else ""
    limit = max(allowed, ROUNDING_LIMIT * found.variance)
    if (each <= size**2).all():
        statement = (
            "each centre is the weighted mean of its rows, to rounding: one more step would move the centres "
            f"by {math.sqrt(moved):.1e} in all; stationary, no optimality claim{words}"
        )
        return Claim.check(
            "centres", statement, Kind.STATIONARY, moved, min(floor, limit), "CLU-1",
            floor=floor, largest_floor=limit,
        )  # fmt: skip
    last = last_step(model, X, sample_weight, size, allowed) if moved > allowed else math.inf
    if last <= allowed:
        statement = (
            f"the last step moved the centres by {last:.2e} (squared, in all), where tol times the mean "
            f"variance is {allowed:.2e}; one more would move them by {moved:.2e}: stationary to that, "
            f"no optimality claim{words}"
        )
        return Claim.check("centres", statement, Kind.STATIONARY, last, allowed, "CLU-1")
    end = "stationary to that" if moved <= allowed else "they still move"
    statement = (
        f"one more step would move the centres by {moved:.2e} (squared, in all), where tol times the mean "
        f"variance is {allowed:.2e}: {end}, no optimality claim{words}"
    )
    return Claim.check("centres", statement, Kind.STATIONARY, moved, allowed, "CLU-1")


def _trace_claim(model: Any, found: Findings) -> Claim:
    """By the fit's own record, whose end is tied to the sum computed here."""
    name, record = "monotone", np.asarray(model.inertia_trace_, dtype=np.float64)
    steps = len(record) - 1
    if steps != int(model.n_iter_):
        words = f"inertia_trace_ holds {len(record)} sums, and n_iter_ = {model.n_iter_} leaves one more"
        return Claim.check(name, words, Kind.BOUND, math.inf, 0.0, "CLU-1")
    trace = np.append(record, found.wcss)
    rise, end = float(np.max(np.diff(trace))), float(abs(record[-1] - found.wcss))
    centres = to_numpy(model.cluster_centers_)
    p = centres.shape[1]
    bound = 4.0 * UNIT * (p + 4.0 * math.sqrt(found.rows) + 64.0) * max(found.size, found.wcss)
    floor = bound + _lost(found) + _positions(found)
    if centres.dtype == np.float32:  # the last centres were rounded
        lengths = np.sqrt(np.einsum("ij,ij->i", centres, centres, dtype=np.float64))
        pulls = found.masses * np.sqrt(np.einsum("ij,ij->i", found.moves, found.moves))
        floor += 2.0**-23 * float(lengths @ pulls) + 2.0**-46 * float(found.masses @ lengths**2)
    statement = (
        f"by the fit's record the sum of squares went from {trace[0]:.6g} to {record[-1]:.6g} over {steps} "
        f"iterations and rose by {0.0 if rise <= 0.0 else rise:.1e} at most; the record ends {end:.1e} from "
        "the sum computed here"
    )
    return Claim.check(
        name, statement, Kind.BOUND, float(np.maximum(rise, end)), bound, "CLU-1",
        floor=floor, largest_floor=_largest_floor(found, floor),
    )  # fmt: skip


def _before_claim(model: Any, X: Any, sample_weight: Any, found: Findings) -> Claim:
    """``centers_before_`` are those that the last but one entry of the record belongs to."""
    said, value = float(model.inertia_trace_[-2:][0]), wcss_before(model, X, sample_weight)
    p = model.cluster_centers_.shape[1]
    bound = 4.0 * UNIT * (p + 4.0 * math.sqrt(found.rows) + 64.0) * max(found.size, value)
    floor = bound + _lost(found) + 2.0 * _positions(found)
    statement = (
        f"the sum of squares at centers_before_ is {value:.12g}, where the record has {said:.12g}"
    )
    return Claim.check(
        "centres before", statement, Kind.EXACT, abs(value - said), bound, "CLU-1",
        floor=floor, largest_floor=_largest_floor(found, floor),
    )  # fmt: skip


def _restarts_claim(model: Any, found: Findings) -> Claim:
    ends = np.asarray(model.restart_inertias_, dtype=np.float64)
    best, worst = float(ends.min()), float(ends.max())
    spread = (worst - best) / best if best > 0 else 0.0
    near = int(np.count_nonzero(ends <= best * 1.001))
    statement = (
        f"by the fit's record {len(ends)} restarts ended between {best:.6g} and {worst:.6g}, {spread:.2%} "
        f"apart, {near} of them within 0.1% of the best, and {float(model.inertia_):.6g} was kept"
    )
    excess = abs(float(model.inertia_) - best)
    bound = 1e-9 * best + _positions(found)
    return Claim.check("restarts", statement, Kind.EMPIRICAL, excess, bound, "CLU-2")
