r"""EM for a model of your own: two short functions, and every step checked (EM-1).

You write ``e_step(theta)``, the matrix log p(x_n, z_n = k | theta) with a row for each sample and a
column for each value of its latent, and ``m_step(q)``, the theta that maximises sum_nk q_nk log p(x_n, k
| theta). From the matrix alone follow the posterior q, the likelihood L and, for any q, the bound F(q,
theta); so each step is checked against

    log p(x|theta) = F(q, theta) + KL(q || p(z|x, theta)),        L(theta') >= F(q', theta') >= F(q',
    theta) = L(theta).

The middle inequality is the one that a mistake in ``m_step`` breaks, the others one in ``e_step``'s numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..certificate import Certificate, CertificateWarning, Claim, Kind
from ..iterate import Stop, run
from ..solvers.em import expectation_maximisation
from ._checks import identity_claim

__all__ = ["EMResult", "Evidence", "em", "evidence"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


@dataclass
class EMResult:
    """How a run of :func:`em` ended.

    Attributes
    ----------
    theta : Any
        The parameters after the last M-step.
    q : array of shape (n, K)
        The posterior of the latents at ``theta``.
    value : float
        The objective at ``theta``: the mean log-likelihood, plus the mean log-prior where there is one.
    trace : list of float
        The objective at the start and after each step.
    n_iter : int
    converged : bool
    stopped : str
        Which rule ended the run.
    certificate : Certificate
    """

    theta: Any
    q: Array
    value: float
    trace: list[float]
    n_iter: int
    converged: bool
    stopped: str
    certificate: Certificate


@dataclass
class Evidence:
    """L, F(q) and KL(q || posterior), means over rows; ``error`` is how far they are from adding up."""

    likelihood: float
    bound: float
    divergence: float
    error: float


def evidence(log_joint: Any, q: Any) -> Evidence:
    """The three terms of the identity log p(x) = E_q log[p(x, z)/q] + KL(q || p(z|x)).

    Parameters
    ----------
    log_joint : array of shape (n, K)
        log p(x_n, z_n = k).
    q : array of shape (n, K)
        Rows that add up to 1.

    Examples
    --------
    >>> import numpy as np
    >>> found = evidence(np.log([[0.1, 0.3]]), np.array([[0.5, 0.5]]))
    >>> bool(abs(found.likelihood - np.log(0.4)) < 1e-15), found.error < 1e-15
    (True, True)
    """
    e, q = np.asarray(log_joint, dtype=np.float64), np.asarray(q, dtype=np.float64)
    used = q > 0.0
    logs = np.log(np.where(used, q, 1.0))
    total = _log_sum(e)
    held = np.where(used, e, 0.0)
    bound = (q * (held - logs)).sum(axis=1)
    gap = (q * (logs - (held - total[:, None]))).sum(axis=1)
    scale = 1.0 + np.abs(total) + (q * np.abs(held)).sum(axis=1)
    error = float((np.abs(total - bound - gap) / scale).max())
    return Evidence(float(total.mean()), float(bound.mean()), float(gap.mean()), error)


@dataclass
class _Checked:
    """The two steps of a user's model, with what the theorem says about them watched."""

    e_step: Callable[[Any], Any]
    m_step: Callable[[Array], Any]
    log_prior: Callable[[Any], float] | None
    hard: bool
    trace: list[float] = field(default_factory=list)
    worst_error: float = 0.0
    shortfalls: dict[str, tuple[float, int]] = field(default_factory=dict)
    rounding: float = 0.0
    q: Any = None  # the posterior that the last M-step was given
    before: float = -math.inf  # F(q, theta) of that posterior at the theta it came from

    def matrix(self, theta: Any) -> Array:
        e = to_numpy(self.e_step(theta)).astype(np.float64, copy=False)
        if e.ndim != 2 or not e.size:
            raise ValueError(
                f"e_step must return a matrix log p(x_n, z_n = k), got an array of shape {e.shape}."
            )
        if np.isnan(e).any() or (e == np.inf).any():
            raise ValueError(
                "e_step returned NaN or infinity: log p(x, z) must be finite, or -inf where p is 0."
            )
        if np.isneginf(e.max(axis=1)).any():
            row = int(np.flatnonzero(np.isneginf(e.max(axis=1)))[0])
            raise ValueError(
                f"e_step gives row {row} probability 0 under every latent: keep the probabilities of the "
                "model away from 0, for instance by a prior."
            )
        return e

    def expect(self, theta: Any) -> tuple[Array, float]:
        e = self.matrix(theta)
        prior = 0.0 if self.log_prior is None else float(self.log_prior(theta)) / len(e)
        total = _log_sum(e)
        value = float(e.max(axis=1).mean() if self.hard else total.mean()) + prior
        self.rounding = 64 * _EPS * (1.0 + abs(value) + float(np.abs(e[np.isfinite(e)]).mean()))
        if self.q is not None:
            self._compare(e, value, prior)
        if self.hard:
            q = (np.arange(e.shape[1]) == e.argmax(axis=1)[:, None]).astype(np.float64)
        else:
            q = np.exp(e - total[:, None])
            q /= q.sum(axis=1)[:, None]
        found = evidence(e, q)
        self.worst_error = float(np.maximum(self.worst_error, found.error))
        self.q, self.before = q, found.bound + prior
        self._note("F(q', theta) = L(theta)", abs(value - self.before))
        self.trace.append(value)
        return q, value

    def _compare(self, e: Array, value: float, prior: float) -> None:
        """The chain, at the new theta and the q that it came from."""
        found = evidence(e, self.q)
        self.worst_error = float(np.maximum(self.worst_error, found.error))
        raised = found.bound + prior
        self._note("L(theta') >= F(q', theta')", raised - value)
        self._note("F(q', theta') >= F(q', theta)", self.before - raised)

    def _note(self, name: str, shortfall: float) -> None:
        worst, _ = self.shortfalls.get(name, (-math.inf, 0))
        if not (shortfall <= worst or math.isnan(worst)):  # a NaN stays
            self.shortfalls[name] = (shortfall, len(self.trace))


def em(
    e_step: Callable[[Any], Any],
    m_step: Callable[[Array], Any],
    theta: Any,
    *,
    tol: float = 1e-8,
    max_iter: int = 1000,
    hard: bool = False,
    log_prior: Callable[[Any], float] | None = None,
    callback: Callable[[int, Any, float], bool | None] | None = None,
) -> EMResult:
    """Fit a latent-variable model by EM, and check every step.

    Parameters
    ----------
    e_step : callable
        ``e_step(theta)`` gives log p(x_n, z_n = k | theta) as an (n, K) array; the data are in its closure.
    m_step : callable
        ``m_step(q)`` gives the theta that maximises sum_nk q_nk log p(x_n, k | theta), plus the log-prior
        where there is one. A theta that merely raises it will do (generalised EM).
    theta : Any
        Where to start: whatever ``e_step`` takes.
    tol : float, default=1e-8
        Stop when the objective changes by less; it is a mean over rows.
    max_iter : int, default=1000
    hard : bool, default=False
        q puts all weight on the most probable latent; the objective is the mean of max_k log p(x_n, k).
    log_prior : callable, optional
        ``log_prior(theta)`` for maximum a posteriori: it is added to the log-likelihood of all rows.
    callback : callable, optional
        ``callback(step, theta, objective before the step)``; return True to stop.

    Returns
    -------
    EMResult

    Examples
    --------
    Two coins, ten tosses each time, and nobody noted which coin it was:

    >>> import numpy as np
    >>> from surefit.mixture import em
    >>> heads, tosses = np.array([5, 9, 8, 4, 7]), 10
    >>> def e_step(p):
    ...     return np.log(0.5) + heads[:, None] * np.log(p) + (tosses - heads[:, None]) * np.log(1 - p)
    >>> def m_step(q):
    ...     return (q * heads[:, None]).sum(axis=0) / (tosses * q.sum(axis=0))
    >>> found = em(e_step, m_step, np.array([0.6, 0.5]))
    >>> found.theta.round(2).tolist(), found.certificate.ok
    ([0.8, 0.52], True)
    """
    if not tol >= 0.0:
        raise ValueError(f"tol must not be negative, got {tol!r}.")
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter!r}.")
    checked = _Checked(e_step, m_step, log_prior, hard)
    after = None
    if callback is not None:
        tell = callback

        def after(step: int, iterate: Any) -> bool | None:
            return tell(step, iterate.x, iterate.value)

    steps = expectation_maximisation(theta, checked.expect, m_step)
    fit = run(steps, tol=tol, max_iter=max_iter, callback=after)
    q, value = checked.expect(fit.x)  # at the end, too
    converged = fit.stop is Stop.ESTIMATED
    stopped = "the objective changed by less than tol" if converged else fit.stop.value
    certificate = Certificate(tuple(_claims(checked, tol)), stopped=stopped, about="em")
    if not certificate.ok:
        warnings.warn(certificate.failure_message(), CertificateWarning, stacklevel=2)
    return EMResult(fit.x, q, value, checked.trace, fit.n_iter, converged, stopped, certificate)


def _shortfall(link: tuple[str, tuple[float, int]]) -> float:
    """How far a link of the chain falls short; a NaN is the worst."""
    return math.inf if math.isnan(link[1][0]) else link[1][0]


def _claims(checked: _Checked, tol: float) -> list[Claim]:
    floor = checked.rounding
    claims = [identity_claim(checked.worst_error, "at every step")]
    if (
        checked.hard
    ):  # F of a hard q is the complete likelihood itself: L' >= F' is the new choice of z
        first = "C(z', theta') >= C(z, theta') >= C(z, theta)"
    else:
        first = "L(theta') >= F(q', theta') >= F(q', theta) = L(theta)"
    link, (worst, step) = max(checked.shortfalls.items(), key=_shortfall)
    where = "" if worst <= floor else f"; the worst link is {link} after step {step}"
    said = (
        f"in {len(checked.trace) - 1} steps the chain {first} falls short by at most "
        f"{0.0 if worst <= 0.0 else worst:.1e}{where}"
    )
    claims.append(Claim.check("monotone chain", said, Kind.BOUND, worst, floor, "EM-1"))
    change = abs(checked.trace[-1] - checked.trace[-2])
    said = f"the last EM step moved the objective by {change:.1e}; no optimality claim"
    claims.append(
        Claim.check("stationarity", said, Kind.STATIONARY, change, tol, "EM-1", floor=floor)
    )
    return claims


def _log_sum(e: Array) -> Array:
    top = e.max(axis=1)
    total: Array = top + np.log(np.exp(e - top[:, None]).sum(axis=1))
    return total
