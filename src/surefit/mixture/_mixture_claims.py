r"""What a fitted Gaussian mixture claims, from the data and its public attributes alone.

One pass in whitened coordinates: with Sigma_k = C C' (factored here, from ``covariances_``) and y = C^-1 (x - mu_k),

    log p(x_n, k) = log pi_k - D/2 log 2 pi - log det C - ||y||^2 / 2,
    N_k = sum_n q_nk,    m_k = sum_n q_nk y / N_k,    A_k = sum_n q_nk y y' / N_k - m_k m_k' + reg C^-1 C^-T.

*Stationarity.* One more EM step takes N(mu_k, Sigma_k) to N(m_k, A_k) in these coordinates, and pi to N_k / n. The
Kullback-Leibler divergence of the new model of (x, z) from the old,

    sum_k (N_k/n) [log (N_k/n)/pi_k + (tr A_k + m_k'm_k - D - log det A_k) / 2],

is 0 at a fixed point only, does not depend on units, and without the ridge is what the step gains in F, so at most
what it gains in likelihood. It must be at most ``tol``.

*Monotonicity.* With the ridge the M-step maximises F - (reg/2) sum_k N_k tr(Sigma_k^-1), not F, so the likelihood
itself may fall; but never by more than the slack of the step,

    L(new) >= F(q, new) >= L(old) - (reg/2) sum_k pi_k(new) [tr Sigma_k(old)^-1 - tr Sigma_k(new)^-1],

q being the posterior at the old parameters. That holds for hard EM too, with the complete log-likelihood. The trace
and the slacks are the run's own record; its last value is tied to the objective computed here.

*Floor.* A component whose smallest variance is less than twice ``reg_covar`` owes it to the ridge more than to the
data. Without the ridge the likelihood has no maximum there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from .._namespace import array_namespace, like, to_numpy
from ..certificate import Claim, Kind
from ..design import Design

__all__ = ["gaussian_claims"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_SAMPLE = 256  # rows on which identities are checked at fit
_CELLS = 1 << 18  # numbers of the whitened rows worked on at a time
_DEVICE_CELLS = 1 << 26


class _Model(NamedTuple):
    """Public parameters in float64; spherical and tied ones spread over the components."""

    weights: Array
    means: Array
    roots: Array  # C^-1: (K, D, D), or one over the deviations (K, D)
    log_dets: Array  # of C
    smallest: Array  # variance of each component
    largest: Array


class _Pass(NamedTuple):
    """What a pass found: sums over all rows, and a sample of rows with their exponents."""

    value: float
    mass: Array
    first: Array
    second: Array
    spread: float  # root mean square of ||x - centre||
    rows: Any
    exponents: Array


def gaussian_claims(model: Any, design: Design, proba: Callable[[Any], Any], *, full: bool) -> list[Claim]:  # fmt: skip
    """All claims; ``proba`` gives the model's own responsibilities of some rows, to be checked."""
    kind, reg = model.covariance_type, float(model.reg_covar)
    covariances = to_numpy(model.covariances_).astype(np.float64)
    weights, means = (to_numpy(v).astype(np.float64) for v in (model.weights_, model.means_))
    try:
        with np.errstate(all="ignore"):
            fitted = _model(kind, weights, means, covariances)
    except (np.linalg.LinAlgError, ValueError):
        words = "a covariance is not positive definite: these are not the parameters of a mixture"
        return [Claim.check("parameters", words, Kind.EXACT, math.inf, 0.0, "GMM-3")]
    with np.errstate(all="ignore"):
        found = _over(design, fitted, kind, model.hard, full)
        unit = _unit(model.means_)
        rounding = _rounding(fitted, found, unit)
        claims = [
            _parameters(model, fitted, covariances, unit),
            _responsibilities(fitted, found, proba, rounding, full),
            _identity(fitted, found),
            _value(model, found, rounding),
            _stationary(model, design, fitted, found, kind, reg, unit, full),
        ]
    if len(model.lower_bounds_):
        claims.append(_monotone(model, found, rounding))
    return [*claims, _floor(fitted, reg, kind)]


def _unit(values: Any) -> float:
    """The rounding of the attributes as they are kept."""
    return float(np.finfo(np.float32).eps) if "float32" in str(values.dtype) else _EPS


# ---------------------------------------------------------------------------- the pass


def _model(kind: str, weights: Array, means: Array, covariances: Array) -> _Model:
    K, p = means.shape
    if kind in ("full", "tied"):
        each = covariances if kind == "full" else covariances[None]
        factors = [cholesky(part, lower=True) for part in each]
        roots = np.stack([solve_triangular(c, np.eye(p), lower=True) for c in factors])
        log_dets = np.array([np.log(np.diag(c)).sum() for c in factors])
        values = np.linalg.eigvalsh(each)
        small, large = values[:, 0], values[:, -1]
    else:
        each = covariances if kind == "diag" else np.repeat(covariances[:, None], p, axis=1)
        if not (each > 0.0).all():
            raise ValueError("a variance is not positive")
        roots, log_dets = 1.0 / np.sqrt(each), 0.5 * np.log(each).sum(axis=1)
        small, large = each.min(axis=1), each.max(axis=1)
    if kind == "tied":
        roots, log_dets, small, large = (np.repeat(v, K, axis=0) for v in (roots, log_dets, small, large))
    return _Model(weights, means, roots, log_dets, small, large)


def _over(design: Design, model: _Model, kind: str, hard: bool, full: bool) -> _Pass:
    K, p = model.means.shape
    centre = model.weights @ model.means
    matrix = model.roots.ndim == 3
    step = 1 if full else max(1, design.shape[0] // _SAMPLE)
    constants = np.log(model.weights) - 0.5 * p * math.log(2.0 * math.pi) - model.log_dets
    away = model.means - centre
    if matrix:  # rows carry a 1, so that one product whitens and shifts them
        offsets = np.einsum("kij,kj->ki", model.roots, away)
        stacked = np.vstack([model.roots.reshape(K * p, p).T, -offsets.reshape(1, -1)])
    else:
        stacked = model.roots

    def part(blocks: Iterator[tuple[slice, Any]]) -> list[Any]:
        total: list[Any] = []
        sample: list[Any] = []
        for where, block in blocks:
            xp = array_namespace(block)
            mid, wide, off, const = (like(v, block) for v in (centre, stacked, away, constants))
            on_device = xp is not np and block.device.type != "cpu"
            size = max(1, (_DEVICE_CELLS if on_device else _CELLS) // (K * p))
            for start in range(0, block.shape[0], size):
                rows = block[start : start + size] - mid
                if matrix:
                    ones = xp.ones_like(rows[:, :1])
                    y = (xp.concat([rows, ones], axis=1) @ wide).reshape(-1, K, p)
                else:
                    y = (rows[:, None] - off) * wide
                e = const - 0.5 * _squares(y)
                top = xp.max(e, axis=1)
                share = xp.exp(e - top[:, None])
                whole = xp.sum(share, axis=1)
                if hard:
                    q = xp.astype(e == top[:, None], e.dtype)
                    q = q / xp.sum(q, axis=1)[:, None]
                    value = xp.sum(top)
                else:
                    q = share / whole[:, None]
                    value = xp.sum(top + xp.log(whole))
                heavy = q[:, :, None] * y
                if matrix:
                    second = xp.stack([heavy[:, k].T @ y[:, k] for k in range(K)])
                else:
                    second = (heavy * y).sum(axis=0)
                sums = [value, xp.sum(q, axis=0), xp.sum(rows * rows), xp.sum(heavy, axis=0), second]
                total = [a + b for a, b in zip(total, sums)] if total else sums
                first = (-(where.start + start)) % step
                if first < len(rows):
                    sample.append((block[start + first : start + size : step], to_numpy(e[first::step])))
        return [total, sample]

    parts = design.fold(part)
    totals = [sum(columns[1:], columns[0]) for columns in zip(*(total for total, _ in parts))]
    value, mass, square, first, second = (to_numpy(v) for v in design.group.sum(*totals))
    rows, exponents = zip(*(entry for _, some in parts for entry in some))
    n = design.shape[0]
    return _Pass(
        float(value) / n,
        mass,
        first,
        second,
        math.sqrt(float(square) / n),
        array_namespace(rows[0]).concat(rows),
        np.concatenate(exponents),
    )


def _squares(y: Any) -> Any:
    """||y_nk||^2."""
    if array_namespace(y) is np:
        return np.einsum("nkp,nkp->nk", y, y)
    return (y * y).sum(axis=2)


def _rounding(model: _Model, found: _Pass, unit: float) -> float:
    """How far two evaluations of the objective may be apart: by rounding, and by float32 attributes."""
    p = model.means.shape[1]
    sharp = 1.0 / math.sqrt(float(model.smallest.min()))
    slack = 16 * _EPS * (1.0 + abs(found.value) + p * (1.0 + found.spread * sharp))
    if unit > _EPS:
        reach = float(np.abs(model.means).max(initial=0.0)) * sharp * math.sqrt(p)
        condition = float((model.largest / model.smallest).max())
        slack += unit * (abs(found.value) + p * condition + reach * (1.0 + unit * reach))
    return slack


# ---------------------------------------------------------------------------- exact claims


def _parameters(model: Any, fitted: _Model, covariances: Array, unit: float) -> Claim:
    precisions, factors = (
        to_numpy(v).astype(np.float64) for v in (model.precisions_, model.precisions_cholesky_)
    )
    p = fitted.means.shape[1]
    if model.covariance_type in ("full", "tied"):
        inverse = np.abs(precisions @ covariances - np.eye(p)).max()
        squares = np.abs(factors @ np.swapaxes(factors, -1, -2) - precisions).max() / np.abs(precisions).max()
    else:
        inverse = np.abs(precisions * covariances - 1.0).max()
        squares = np.abs(factors**2 - precisions).max() / np.abs(precisions).max()
    total = abs(float(fitted.weights.sum()) - 1.0)
    total = total if (fitted.weights >= 0.0).all() else math.inf
    if model.max_iter == 0:
        total = 0.0  # a start's weights need not add up
    observed = max(total, float(inverse), float(squares))
    condition = float((fitted.largest / fitted.smallest).max())
    statement = (
        f"the weights are not negative and add up to 1 to {total:.1e}, precisions_ times covariances_ is the "
        f"identity to {inverse:.1e}, and precisions_cholesky_ squares to precisions_ to {squares:.1e}"
    )
    bound = 16 * unit * (p * condition + len(fitted.weights))
    return Claim.check("parameters", statement, Kind.EXACT, observed, bound, "GMM-3")


def _responsibilities(fitted: _Model, found: _Pass, proba: Callable[[Any], Any], rounding: float, full: bool) -> Claim:  # fmt: skip
    e = found.exponents
    given, count = to_numpy(proba(found.rows)).astype(np.float64), len(e)
    gap = np.abs(given - np.exp(e - _log_sum(e)[:, None])).max()
    worst = float(np.maximum(gap, np.abs(given.sum(axis=1) - 1.0).max()))  # a NaN stays
    which = f"all {count}" if full else f"{count} of the"
    statement = (
        f"on {which} rows predict_proba adds up to 1 and is pi_k N_k / sum_l pi_l N_l to {worst:.1e}"
    )
    bound = max(1e-10, 64.0 * rounding)
    return Claim.check("responsibilities", statement, Kind.EXACT, worst, bound, "GMM-3")


def _identity(fitted: _Model, found: _Pass) -> Claim:
    """log p = F(q) + KL(q || posterior) for a q that is not the posterior: halfway to the weights."""
    e, prior = found.exponents, fitted.weights / fitted.weights.sum()
    total = _log_sum(e)
    q = 0.5 * np.exp(e - total[:, None]) + 0.5 * prior
    logs = np.log(np.where(q > 0.0, q, 1.0))
    held = np.where(q > 0.0, e, 0.0)  # a component of weight 0 has no part in it
    bound = (q * (held - logs)).sum(axis=1)
    gap = (q * (logs - (held - total[:, None]))).sum(axis=1)
    scale = 1.0 + (q * np.abs(held)).sum(axis=1)
    worst, largest = float((np.abs(total - bound - gap) / scale).max()), float(gap.max())
    statement = (
        f"log p(x) = E_q log p(x, z)/q + KL(q || p(z|x)) to {worst:.1e} of the terms, for q halfway between posterior "
        f"and weights (divergence up to {largest:.2g})"
    )
    return Claim.check("evidence identity", statement, Kind.EXACT, worst, 1e-10, "EM-1")


def _value(model: Any, found: _Pass, rounding: float) -> Claim:
    said = float(model.final_lower_bound_)
    what = "complete log-likelihood" if model.hard else "log-likelihood"
    statement = f"the mean {what} of the rows is {found.value:.10g}, and final_lower_bound_ {said:.10g}"
    return Claim.check("log-likelihood", statement, Kind.EXACT, abs(said - found.value), rounding, "GMM-3")


# ---------------------------------------------------------------------------- the run


def _monotone(model: Any, found: _Pass, rounding: float) -> Claim:
    trace = np.append(np.asarray(model.lower_bounds_, dtype=np.float64), found.value)
    slacks = np.maximum(np.asarray(model.ridge_slacks_, dtype=np.float64), 0.0)
    told = float(model.lower_bound_)
    if len(slacks) != len(trace) - 1 or told != trace[-2]:
        words = "lower_bound_, lower_bounds_ and ridge_slacks_ do not belong together"
        return Claim.check("monotone likelihood", words, Kind.BOUND, math.inf, 0.0, "EM-1")
    falls = trace[:-1] - trace[1:]
    beyond = float((falls - slacks).max())
    p = model.means_.shape[1]
    if (slacks[1:] > 0.5 * p * (1.0 + 1e-6)).any():  # once reg_covar is in, no precision exceeds 1 / reg_covar
        beyond = math.inf
    what = "complete log-likelihood" if model.hard else "log-likelihood"
    statement = (
        f"in {len(slacks)} steps the mean {what} rose from {trace[0]:.6g} to {trace[-1]:.6g} (the last computed here); "
        f"its largest fall was {max(0.0, falls.max()):.1e}, of which the ridge reg_covar explains all but "
        f"{max(0.0, beyond):.1e} (by the theorem it may cost up to {slacks.max():.1e} in a step)"
    )
    return Claim.check("monotone likelihood", statement, Kind.BOUND, beyond, rounding, "EM-1")


def _stationary(model: Any, design: Design, fitted: _Model, found: _Pass, kind: str, reg: float, unit: float,
                full: bool) -> Claim:  # fmt: skip
    name, source = "stationarity", "GMM-2" if model.hard else "GMM-3"
    if model.max_iter == 0:
        why = "no step was asked for (max_iter=0): these are the starting values"
        return Claim.undecided(name, why, Kind.STATIONARY, source)
    step = _step(fitted, found, kind, reg, design.shape[0])
    p = fitted.means.shape[1]
    sharp = 1.0 / math.sqrt(float(fitted.smallest.min()))
    floor = 64 * _EPS * p * (1.0 + found.spread * sharp * _EPS * p)
    if unit > _EPS:
        condition = float((fitted.largest / fitted.smallest).max())
        reach = float(np.abs(fitted.means).max(initial=0.0)) * sharp
        floor += 4.0 * p * unit**2 * (condition**2 + reach**2 + 1.0)
    observed, gained = step.divergence, ""
    if full:
        moved = _over(design, step.model, kind, model.hard, False)
        gained = f" and its objective by {moved.value - found.value:+.1e}"
    statement = (
        f"one more EM step moves the model of (x, z) by {step.divergence:.1e} nats a row{gained}; the gradient in "
        f"(pi, mu, Sigma), less the ridge, has length {step.gradient:.1e} in the metric of the complete data; no "
        "optimality claim"
    )
    return Claim.check(name, statement, Kind.STATIONARY, observed, float(model.tol), source, floor=floor)


class _Step(NamedTuple):
    divergence: float
    gradient: float
    model: _Model


def _step(fitted: _Model, found: _Pass, kind: str, reg: float, n: int) -> _Step:
    """One more EM step in whitened coordinates: how far it goes, and where."""
    K, p = fitted.means.shape
    pi = found.mass / n
    mass = found.mass + 10 * _EPS
    m = found.first / mass[:, None]
    if fitted.roots.ndim == 3:
        ridge = reg * fitted.roots @ np.swapaxes(fitted.roots, 1, 2)
        A = found.second / mass[:, None, None] - m[:, :, None] * m[:, None, :]
        if kind == "tied":
            A[:] = np.einsum("k,kij->ij", pi, A)
        A = A + ridge
        change = A - np.eye(p)
        size = np.einsum("kij,kij->k", change, change)
        spread = np.trace(A, axis1=1, axis2=2) - p - np.linalg.slogdet(A)[1]
    else:
        A = found.second / mass[:, None] - m**2
        if kind == "spherical":
            A[:] = A.mean(axis=1)[:, None]
        A = A + reg * fitted.roots**2
        size = ((A - 1.0) ** 2).sum(axis=1)
        spread = (A - 1.0 - np.log(A)).sum(axis=1)
    length = (m**2).sum(axis=1)
    alive = pi > 0.0
    shift = np.where(alive, pi * (np.log(np.where(alive, pi, 1.0)) - np.log(fitted.weights)), 0.0)
    divergence = float(np.where(alive, shift + 0.5 * pi * (spread + length), 0.0).sum())
    share = (pi - fitted.weights) ** 2 / np.maximum(fitted.weights, 1e-300)
    gradient = math.sqrt(float((share + pi * (length + 0.5 * size)).sum()))
    moved = fitted
    if fitted.roots.ndim == 3:
        C = np.linalg.inv(fitted.roots)
        covariances = C @ A @ np.swapaxes(C, 1, 2)
        moved = _model("full", mass / mass.sum(), fitted.means + np.einsum("kij,kj->ki", C, m),
                       0.5 * (covariances + np.swapaxes(covariances, 1, 2)))  # fmt: skip
    else:
        means = fitted.means + m / fitted.roots
        moved = _model("diag", mass / mass.sum(), means, A / fitted.roots**2)
    return _Step(abs(divergence), gradient, moved)


def _floor(fitted: _Model, reg: float, kind: str) -> Claim:
    """Which components owe their smallest variance to the ridge."""
    name, source = "variance floor", "GMM-1"
    low = float(fitted.smallest.min())
    if reg == 0.0:
        statement = (
            f"there is no floor (reg_covar=0), so the likelihood has no maximum; the smallest variance is {low:.2g}"
        )
        return Claim.check(name, statement, Kind.BOUND, 0.0, 0.5, source)
    held = np.flatnonzero(fitted.smallest < 2.0 * reg)
    if len(held):
        which = ", ".join(str(k) for k in held[:8]) + (", ..." if len(held) > 8 else "")
        words = "all components" if kind == "tied" else f"component {which}" if len(held) == 1 else f"components {which}"
        statement = (
            f"the smallest variance of {words} is {low:.3g}, held up by reg_covar={reg:.3g}: without this floor the "
            "likelihood grows for ever, and its value here is the floor's choice, not the data's"
        )
    else:
        statement = f"every variance is at least {low:.3g}, clear of the floor reg_covar={reg:.3g}"
    return Claim.check(name, statement, Kind.BOUND, reg / low, 0.5, source)


def _log_sum(e: Array) -> Array:
    top = e.max(axis=1)
    total: Array = top + np.log(np.exp(e - top[:, None]).sum(axis=1))
    return total
