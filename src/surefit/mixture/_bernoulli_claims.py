"""What a fitted Bernoulli mixture claims, from the data and its public attributes alone.

The log-probability of a row is added up feature by feature, by xlogy(x, p) + xlog1py(1 - x, -p), where
the fit uses a product with log-odds. The objective, log-likelihood plus alpha sum log p(1 - p), over n,
never falls (its smoothing is a prior, so the theorem of EM holds as it stands), and one more step moves
the model of (x, z) by

    sum_k pi_k' [log pi_k'/pi_k + sum_j KL(p_kj' || p_kj)],

0 at a fixed point only. Without smoothing that is what the step gains in F.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import rel_entr, xlog1py, xlogy

from .._attributes import storage_eps
from .._namespace import is_torch, to_numpy
from ..certificate import ROUNDING_LIMIT, Claim, Kind
from ..design import Design
from ._checks import identity_claim

__all__ = ["bernoulli_claims"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_SAMPLE = 256
_CELLS = 1 << 18


def bernoulli_claims(
    model: Any, design: Design, proba: Callable[[Any], Any], *, full: bool, tol: float
) -> list[Claim]:
    """All claims; ``proba`` gives the model's own responsibilities of some rows, to be checked."""
    weights, p = (to_numpy(v).astype(np.float64) for v in (model.weights_, model.probabilities_))
    unit = storage_eps(to_numpy(model.probabilities_[:1]).dtype)
    single = unit > _EPS
    inside = bool((p >= 0.0).all() and (p <= 1.0).all() and (weights >= 0.0).all())
    total = abs(float(weights.sum()) - 1.0) if inside else math.inf
    said = (
        f"weights and probabilities are between 0 and 1, and the weights add up to 1 to {total:.1e}"
    )
    if not inside:
        said = "a weight or a probability is not between 0 and 1"
    claims = [Claim.check("parameters", said, Kind.EXACT, total, 16 * unit * len(weights), "EM-1")]
    if not inside:
        return claims
    n, K = design.shape[0], len(weights)
    with np.errstate(all="ignore"):
        value, mass, ones, rows, exponents = _pass(model, design, weights, p, full)
        prior = model.alpha * float((np.log(p) + np.log1p(-p)).sum()) / n if model.alpha else 0.0
        objective = value + prior
        rounding = 64 * _EPS * (1.0 + abs(value) + abs(prior) + p.shape[1])
        if single:
            # of log p: its own relative error; of log(1 - p): that of p over 1 - p. A component counts
            # by its rows, or one without any would excuse the others
            zeros = np.where(p < 1.0, np.maximum(mass[:, None] - ones, 0.0), 0.0)
            spare = np.where(p < 1.0, 1.0 - p, 1.0)
            rounding += unit * float((mass.sum() * p.shape[1] + (zeros / spare).sum()) / n)
            rounding += unit * model.alpha * float((1.0 + 1.0 / spare).sum()) / n
        claims.append(_responsibilities(proba, rows, exponents, full, rounding))
        claims.append(_identity(weights, exponents))
        said = f"the objective is {objective:.10g}, and final_lower_bound_ {model.final_lower_bound_:.10g}"
        gap = abs(objective - float(model.final_lower_bound_))
        limit = tol if single and rounding > tol else max(tol, ROUNDING_LIMIT)
        claims.append(_rounded("log-likelihood", said, Kind.EXACT, gap, rounding, limit))
        claims.append(_monotone(model, objective, rounding, limit))
        new = (ones + model.alpha) / (mass + 2 * model.alpha + 10 * _EPS)[:, None]
        # where p is 1, rows of 0 have no share: what is missing from 1 is rounding, and the 10 eps
        short = (n + 10.0 / np.maximum(mass, 1e-300))[:, None] * _EPS
        new = np.where((p == 1.0) & (1.0 - new <= short), 1.0, new)
        moved = rel_entr(mass / n, weights).sum()
        moved += ((mass / n)[:, None] * (rel_entr(new, p) + rel_entr(1.0 - new, 1.0 - p))).sum()
    said = (
        f"one more EM step moves the model of (x, z) by {moved:.1e} nats a row; no optimality claim"
    )
    floor = 64 * _EPS * (1 + p.size / K) + (rounding**2 * K + unit * 8 if single else 0.0)
    claims.append(
        Claim.check(
            "stationarity",
            said,
            Kind.STATIONARY,
            abs(moved),
            tol,
            "EM-1",
            floor=floor,
            largest_floor=limit,
        )
    )
    return claims


def _pass(model: Any, design: Design, weights: Array, p: Array, full: bool) -> tuple[Any, ...]:
    """Mean log-likelihood, sums of the responsibilities, and a sample of rows with their exponents."""
    n = design.shape[0]
    step = 1 if full else max(1, n // _SAMPLE)
    size = max(1, _CELLS // max(1, p.size))
    log_weights = np.log(weights)
    value, mass, ones = 0.0, np.zeros(len(weights)), np.zeros_like(p)
    rows: list[Any] = []
    exponents: list[Array] = []
    for where, block in design.held.blocks():
        for start in range(0, block.shape[0], size):
            part = block[start : start + size]
            dense = np.asarray(part.toarray()) if sp.issparse(part) else to_numpy(part)
            x = dense if model.binarize is None else (dense > model.binarize).astype(np.float64)
            e = log_weights + np.stack(
                [(xlogy(x, row) + xlog1py(1.0 - x, -row)).sum(axis=1) for row in p], axis=1
            )
            top = e.max(axis=1)
            share = np.exp(e - top[:, None])
            whole = share.sum(axis=1)
            q = share / whole[:, None]
            value += float((top + np.log(whole)).sum())
            mass += q.sum(axis=0)
            ones += q.T @ x
            first = (-(where.start + start)) % step
            if first < len(e):
                rows.append(_kept(part[first::step]))
                exponents.append(e[first::step])
    value, mass, ones = design.group.sum(np.float64(value), mass, ones)
    return float(value) / n, mass, ones, rows, exponents


def _kept(rows: Any) -> Any:
    """A copy: a block is gone once the next is asked for."""
    return rows.clone() if is_torch(rows) else rows.copy()


def _responsibilities(proba: Callable[[Any], Any], rows: list[Any], exponents: list[Array], full: bool,
                      rounding: float) -> Claim:  # fmt: skip
    worst, count = 0.0, 0
    for part, e in zip(rows, exponents):
        q = np.exp(e - e.max(axis=1)[:, None])
        q /= q.sum(axis=1)[:, None]
        gap = np.abs(to_numpy(proba(part)) - q).max()
        worst, count = float(np.maximum(worst, gap)), count + len(e)
    which = f"all {count}" if full else f"{count} of the"
    said = f"on {which} rows predict_proba is pi_k p(x|k) / sum_l pi_l p(x|l) to {worst:.1e}"
    return Claim.check(
        "responsibilities", said, Kind.EXACT, worst, 1e-10, "EM-1",
        floor=64 * rounding, largest_floor=ROUNDING_LIMIT,
    )  # fmt: skip


def _identity(weights: Array, exponents: list[Array]) -> Claim:
    worst = 0.0
    prior = weights / weights.sum()
    for e in exponents:
        top = e.max(axis=1)
        total = top + np.log(np.exp(e - top[:, None]).sum(axis=1))
        posterior = np.exp(e - total[:, None])
        q = np.where(np.isfinite(e), 0.5 * posterior + 0.5 * prior, 0.0)
        q /= q.sum(axis=1)[:, None]
        held, logs = np.where(q > 0, e, 0.0), np.log(np.where(q > 0, q, 1.0))
        bound = (q * (held - logs)).sum(axis=1)
        gap = (q * (logs - (held - total[:, None]))).sum(axis=1)
        scale = 1.0 + np.abs(total) + (q * np.abs(held)).sum(axis=1)
        worst = float(np.maximum(worst, (np.abs(total - bound - gap) / scale).max()))
    return identity_claim(worst, "for q halfway between posterior and weights")


def _monotone(model: Any, objective: float, rounding: float, limit: float) -> Claim:
    """By the fit's own record, whose end is tied to the objective computed here."""
    trace = np.append(np.asarray(model.lower_bounds_, dtype=np.float64), objective)
    name = "monotone objective"
    if not 0 < int(model.n_iter_) == len(trace) - 1 or float(model.lower_bound_) != trace[-2]:
        words = "n_iter_, lower_bound_ and lower_bounds_ do not belong together"
        return Claim.check(name, words, Kind.BOUND, math.inf, 0.0, "EM-1")
    fall = float((trace[:-1] - trace[1:]).max())
    said = (
        f"by the fit's record the objective (log-likelihood and prior) went from {trace[0]:.6g} to "
        f"{trace[-1]:.6g} (the last computed here) in {len(trace) - 1} steps; its largest fall was "
        f"{max(0.0, fall):.1e}"
    )
    return _rounded(name, said, Kind.BOUND, fall, rounding, limit)


def _rounded(
    name: str, said: str, kind: Kind, observed: float, rounding: float, limit: float
) -> Claim:
    """A claim to rounding; where that is larger than ``limit``, what is above that is undecided."""
    return Claim.check(
        name, said, kind, observed, min(rounding, limit), "EM-1",
        floor=rounding, largest_floor=limit,
    )  # fmt: skip
