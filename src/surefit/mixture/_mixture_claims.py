r"""What a fitted Gaussian mixture claims, from the data and its public attributes alone.

One pass in whitened coordinates: with Sigma_k = C C' (factored here, from ``covariances_``) and y = C^-1
(x - mu_k),

    log p(x_n, k) = log pi_k - D/2 log 2 pi - log det C - ||y||^2 / 2,
    N_k = sum_n q_nk,    m_k = sum_n q_nk y / N_k,    A_k = sum_n q_nk y y' / N_k - m_k m_k' + reg C^-1 C^-T.

*Stationarity.* One more EM step takes N(mu_k, Sigma_k) to N(m_k, A_k) in these coordinates, and pi to N_k
/ n. The Kullback-Leibler divergence of the new model of (x, z) from the old,

    sum_k (N_k/n) [log (N_k/n)/pi_k + (tr A_k + m_k'm_k - D - log det A_k) / 2],

is 0 at a fixed point only, does not depend on units, and without the ridge is what the step gains in F,
so at most what it gains in likelihood. It must be at most ``tol``.

*Monotonicity.* With the ridge the M-step maximises F - (reg/2) sum_k N_k tr(Sigma_k^-1), not F, so the
likelihood itself may fall; but never by more than the slack of the step,

    L(new) >= F(q, new) >= L(old) - (reg/2) sum_k pi_k(new) [tr Sigma_k(old)^-1 - tr Sigma_k(new)^-1],

q being the posterior at the old parameters. That holds for hard EM too, with the complete log-likelihood.
The trace and the slacks are the run's own record; its last value is tied to the objective computed here.

*Floor.* A component whose smallest variance is less than twice ``reg_covar`` owes it to the ridge more
than to the data. Without the ridge the likelihood has no maximum there. That may be a component that sits
on one row, or a column that is constant: which is the user's to say, so it is reported and not failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._attributes import storage_eps
from .._namespace import to_numpy
from .._worst import badness
from ..certificate import ROUNDING_LIMIT, Claim, Kind
from ..design import Design
from ._checks import identity_claim
from ._mixture_pass import (
    EPS,
    Model,
    Pass,
    log_sum,
    losses_of,
    model_of,
    one_step,
    over_rows_of,
    rounding_of,
)

__all__ = ["gaussian_claims"]

Array = NDArray[np.float64]
_STARTING = 1e-6  # how far from 1 starting weights may add up, as `weights_init` may


def gaussian_claims(
    model: Any, design: Design, proba: Callable[[Any], Any], *, full: bool, tol: float
) -> list[Claim]:
    """All claims; ``proba`` gives the model's own responsibilities of some rows, to be checked."""
    kind, reg = model.covariance_type, float(model.reg_covar)
    covariances = to_numpy(model.covariances_).astype(np.float64)
    weights, means = (to_numpy(v).astype(np.float64) for v in (model.weights_, model.means_))
    try:
        with np.errstate(all="ignore"):
            fitted = model_of(kind, weights, means, covariances)
    except (np.linalg.LinAlgError, ValueError):
        words = "a covariance is not positive definite: these are not the parameters of a mixture"
        return [Claim.check("parameters", words, Kind.EXACT, math.inf, 0.0, "GMM-3")]
    with np.errstate(all="ignore"):
        found = over_rows_of(design, fitted, kind, model.hard, full)
        unit = _unit(model.means_)
        rounding = rounding_of(fitted, found, unit)
        claims = [
            _weights(model, fitted, unit),
            _parameters(model, fitted, covariances, unit),
            _responsibilities(found, proba, rounding_of(fitted, found, unit, worst=True), full),
            _identity(fitted, found),
            _value(model, found, rounding, _limit(tol, rounding, unit)),
            _stationary(model, design, fitted, found, kind, reg, unit, full, tol),
        ]
    if len(model.lower_bounds_) or model.max_iter > 0:
        claims.append(_monotone(model, found, rounding, _limit(tol, rounding, unit)))
    return [*claims, _floor(fitted, reg, kind)]


def _unit(values: Any) -> float:
    """The rounding of the attributes as they are kept."""
    return storage_eps(to_numpy(values[:1]).dtype)


def _limit(tol: float, floor: float, unit: float) -> float:
    """The largest floor that excuses anything, in nats a row: storage in float32 no more than ``tol``."""
    return tol if unit > EPS and floor > tol else max(tol, ROUNDING_LIMIT)


# ---------------------------------------------------------------------------- exact claims


def _weights(model: Any, fitted: Model, unit: float) -> Claim:
    least, apart = float(fitted.weights.min()), abs(float(fitted.weights.sum()) - 1.0)
    statement = f"the weights add up to 1 to {apart:.1e}, and the least of them is {least:.3g}"
    start = model.max_iter == 0  # starting weights may be given to six digits
    bound = _STARTING if start else 16.0 * unit * len(fitted.weights)
    observed = apart if least >= 0.0 else math.inf
    return Claim.check("weights", statement, Kind.EXACT, observed, bound, "GMM-3")


def _parameters(model: Any, fitted: Model, covariances: Array, unit: float) -> Claim:
    precisions, factors = (
        to_numpy(v).astype(np.float64) for v in (model.precisions_, model.precisions_cholesky_)
    )
    p, K = fitted.means.shape[1], len(fitted.weights)
    if model.covariance_type in ("full", "tied"):
        inverses = np.abs(precisions @ covariances - np.eye(p))
        squared = np.abs(factors @ np.swapaxes(factors, -1, -2) - precisions)
    else:
        inverses = np.abs(precisions * covariances - 1.0)
        squared = np.abs(factors**2 - precisions)
    parts = 1 if model.covariance_type == "tied" else K  # each is judged by its own condition
    inverses, squared, sizes = (
        np.abs(v).reshape(parts, -1).max(axis=1) for v in (inverses, squared, precisions)
    )
    floors = 16.0 * unit * (p * fitted.largest / fitted.smallest + K)
    bound = 16.0 * unit * (p + K)
    checks = []
    for inverse, square, floor in zip(inverses, squared / sizes, floors):
        statement = (
            f"precisions_ times covariances_ is the identity to {inverse:.1e}, and precisions_cholesky_ "
            f"squares to precisions_ to {square:.1e}"
        )
        checks.append(
            Claim.check(
                "parameters", statement, Kind.EXACT, inverse, bound, "GMM-3",
                floor=floor, largest_floor=ROUNDING_LIMIT,
            )
        )  # fmt: skip
        checks.append(Claim.check("parameters", statement, Kind.EXACT, square, bound, "GMM-3"))
    return max(checks, key=badness)


def _responsibilities(
    found: Pass, proba: Callable[[Any], Any], rounding: float, full: bool
) -> Claim:
    e = found.exponents
    given, count = to_numpy(proba(found.rows)).astype(np.float64), len(e)
    gap = float(np.abs(given - np.exp(e - log_sum(e)[:, None])).max())
    sums = float(np.abs(given.sum(axis=1) - 1.0).max())
    which = f"all {count}" if full else f"{count} of the"
    statement = (
        f"on {which} rows predict_proba adds up to 1 to {sums:.1e} and is pi_k N_k / sum_l pi_l N_l to "
        f"{gap:.1e}"
    )
    return Claim.check(
        "responsibilities", statement, Kind.EXACT, float(np.maximum(gap, sums)), 1e-10, "GMM-3",
        floor=64.0 * rounding, largest_floor=ROUNDING_LIMIT,
    )  # fmt: skip


def _identity(fitted: Model, found: Pass) -> Claim:
    """log p = F(q) + KL(q || posterior) for a q that is not the posterior: halfway to the weights."""
    e, prior = found.exponents, fitted.weights / fitted.weights.sum()
    total = log_sum(e)
    q = 0.5 * np.exp(e - total[:, None]) + 0.5 * prior
    logs = np.log(np.where(q > 0.0, q, 1.0))
    held = np.where(q > 0.0, e, 0.0)  # a component of weight 0 has no part in it
    bound = (q * (held - logs)).sum(axis=1)
    gap = (q * (logs - (held - total[:, None]))).sum(axis=1)
    scale = 1.0 + (q * np.abs(held)).sum(axis=1)
    worst, largest = float((np.abs(total - bound - gap) / scale).max()), float(gap.max())
    return identity_claim(
        worst,
        f"for q halfway between posterior and weights (divergence up to {largest:.2g})",
    )


def _value(model: Any, found: Pass, rounding: float, limit: float) -> Claim:
    said = float(model.final_lower_bound_)
    what = "complete log-likelihood" if model.hard else "log-likelihood"
    statement = (
        f"the mean {what} of the rows is {found.value:.10g}, and final_lower_bound_ {said:.10g}"
    )
    return _rounded(
        "log-likelihood", statement, Kind.EXACT, abs(said - found.value), rounding, limit
    )


def _rounded(
    name: str, statement: str, kind: Kind, observed: float, rounding: float, limit: float
) -> Claim:
    """A claim to rounding; where that is larger than ``limit``, what is above that is undecided."""
    source = "EM-1" if kind is Kind.BOUND else "GMM-3"
    return Claim.check(
        name, statement, kind, observed, min(rounding, limit), source,
        floor=rounding, largest_floor=limit,
    )  # fmt: skip


# ---------------------------------------------------------------------------- the run


def _monotone(model: Any, found: Pass, rounding: float, limit: float) -> Claim:
    """By the fit's own record, whose end is tied to the objective computed here."""
    trace = np.append(np.asarray(model.lower_bounds_, dtype=np.float64), found.value)
    slacks = np.maximum(np.asarray(model.ridge_slacks_, dtype=np.float64), 0.0)
    told = float(model.lower_bound_)
    steps = int(model.n_iter_)
    if not 0 < steps == len(trace) - 1 == len(slacks) or told != trace[-2]:
        words = "n_iter_, lower_bound_, lower_bounds_ and ridge_slacks_ do not belong together"
        return Claim.check("monotone likelihood", words, Kind.BOUND, math.inf, 0.0, "EM-1")
    falls = trace[:-1] - trace[1:]
    beyond = float((falls - slacks).max())
    p = model.means_.shape[1]
    most = 0.5 * p * (1.0 + 1e-6) if float(model.reg_covar) > 0.0 else 0.0
    if (slacks[1:] > most).any():  # once reg_covar is in, no precision exceeds 1 / reg_covar
        words = f"ridge_slacks_ holds {slacks[1:].max():.3g}, and reg_covar costs a step {most:.3g} at most"
        return Claim.check("monotone likelihood", words, Kind.BOUND, math.inf, 0.0, "EM-1")
    what = "complete log-likelihood" if model.hard else "log-likelihood"
    statement = (
        f"by the fit's record the mean {what} went from {trace[0]:.6g} to {trace[-1]:.6g} (the last "
        f"computed here) in {steps} steps; its largest fall was {max(0.0, falls.max()):.1e}, of which the "
        f"ridge reg_covar explains all but {max(0.0, beyond):.1e} (by the record it may have cost up to "
        f"{slacks.max():.1e} in a step)"
    )
    return _rounded("monotone likelihood", statement, Kind.BOUND, beyond, rounding, limit)


def _stationary(model: Any, design: Design, fitted: Model, found: Pass, kind: str, reg: float, unit: float,
                full: bool, tol: float) -> Claim:  # fmt: skip
    name, source = "stationarity", "GMM-2" if model.hard else "GMM-3"
    if model.max_iter == 0:
        why = "no step was asked for (max_iter=0): these are the starting values"
        return Claim.undecided(name, why, Kind.STATIONARY, source)
    step = one_step(fitted, found, kind, reg, design.shape[0])
    p = fitted.means.shape[1]
    share = found.mass / found.mass.sum()
    floor = 64 * EPS * p * (1.0 + EPS * float(share @ losses_of(fitted, found, unit)[0]))
    if unit > EPS:
        condition = fitted.largest / fitted.smallest
        reach = np.abs(fitted.means).max(axis=1) / np.sqrt(fitted.smallest)
        floor += 4.0 * p * unit**2 * float(share @ (condition**2 + reach**2 + 1.0))
    observed, gained = step.divergence, ""
    if full and step.model is not None:
        moved = over_rows_of(design, step.model, kind, model.hard, False)
        gained = f" and its objective by {moved.value - found.value:+.1e}"
    statement = (
        f"one more EM step moves the model of (x, z) by {step.divergence:.1e} nats a row{gained}; the "
        f"gradient in (pi, mu, Sigma), less the ridge, has length {step.gradient:.1e} in the metric of the "
        "complete data; no optimality claim"
    )
    return Claim.check(
        name, statement, Kind.STATIONARY, observed, tol, source,
        floor=floor, largest_floor=_limit(tol, floor, unit),
    )  # fmt: skip


def _floor(fitted: Model, reg: float, kind: str) -> Claim:
    """Which components owe their smallest variance to the ridge."""
    name, source = "variance floor", "GMM-1"
    low = float(fitted.smallest.min())
    if reg == 0.0:
        statement = (
            "there is no floor (reg_covar=0), so the likelihood has no maximum; the smallest variance is "
            f"{low:.2g}"
        )
        return Claim.uninformative(name, statement, Kind.BOUND, source=source)
    held = np.flatnonzero(fitted.smallest < 2.0 * reg)
    if len(held):
        which = ", ".join(str(k) for k in held[:8]) + (", ..." if len(held) > 8 else "")
        words = (
            "all components"
            if kind == "tied"
            else f"component {which}"
            if len(held) == 1
            else f"components {which}"
        )
        statement = (
            f"the smallest variance of {words} is {low:.3g}, held up by the floor reg_covar={reg:.3g}: "
            "without it the likelihood would be unbounded, and its value here is the floor's choice, not "
            "the data's"
        )
        return Claim.undecided(name, statement, Kind.BOUND, source)
    statement = f"every variance is at least {low:.3g}, clear of the floor reg_covar={reg:.3g}"
    return Claim.check(name, statement, Kind.BOUND, reg / low, 0.5, source)
