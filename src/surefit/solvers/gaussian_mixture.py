r"""EM for mixtures of Gaussians: the sums of a pass over the rows, and the next parameters from them (GMM-3).

    E:  q_nk = pi_k N(x_n | mu_k, Sigma_k) / sum_l pi_l N(x_n | mu_l, Sigma_l)
    M:  pi_k = N_k / n,   mu_k = sum_n q_nk x_n / N_k,
        Sigma_k = sum_n q_nk (x_n - mu_k)(x_n - mu_k)' / N_k + reg I,     N_k = sum_n q_nk,

diagonal covariances keep the diagonal, spherical ones its mean (the trace over D: ERR-58), tied ones the
average over components. Hard EM puts q_nk = 1 for the largest of pi_k N (GMM-2).

A pass reads each row once, for both steps. The sums are taken around the *old* means, d = x - mu_k,

    Sigma_k N_k = sum q d d' - s m' - m s' + N_k m m',     s = sum q d,  m = mu_k(new) - mu_k(old),

which is as good as a second pass while m is of the order of the deviations. Where m'm exceeds 1e4 times the
variance, four digits would cancel, and a second pass around the new means is made. One pass costs
O(n K D^2), a step after it O(K D^3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from .._namespace import array_namespace, is_torch, to_numpy
from ..design import Design
from ._mixture_rows import Given, add_rows, joint_rows, prepared, total_of

__all__ = [
    "Gaussians",
    "Start",
    "Sums",
    "from_covariances",
    "from_precisions",
    "log_joint",
    "mean_value",
    "sound",
    "start_sums",
    "steps_of",
    "update",
]

_FAR = 1e4  # squared move of a mean over the variance, from which digits are saved by a second pass
_TINY = 10 * np.finfo(np.float64).eps  # scikit-learn's: a component without rows divides by it
ILL_DEFINED = (
    "Fitting the mixture model failed because some components have ill-defined empirical covariance "
    "(for instance caused by singleton or collapsed samples). Try to decrease the number of components, "
    "increase reg_covar, or scale the input data."
)


class Gaussians(NamedTuple):
    """The parameters, in float64 where the rows are; ``factors`` U of the precisions U U', upper triangular.

    ``slack`` is what the ridge may have cost the last step (see :func:`update`); ``sound`` says whether
    every covariance could be factored.
    """

    kind: str
    weights: Any
    means: Any
    covariances: Any
    factors: Any
    slack: Any = 0.0
    sound: Any = True


class Start(NamedTuple):
    """Responsibilities to start from: a function that begins a pass and gives those of a slice of rows."""

    source: Callable[[], Given]
    covers: bool


class Sums(NamedTuple):
    """What a pass adds up, around ``centres``: N_k, sum q d, sum q d d' (its diagonal for "diag")."""

    centres: Any
    mass: Any
    first: Any
    second: Any
    old: Gaussians


# ---------------------------------------------------------------------------- parameters


def from_covariances(
    kind: str, weights: Any, means: Any, covariances: Any, slack: Any = 0.0
) -> Gaussians:
    """The factors of covariances; a failure is noted in ``sound``, raised by the next pass."""
    if kind in ("diag", "spherical"):
        xp = array_namespace(covariances)
        with np.errstate(invalid="ignore", divide="ignore"):
            return Gaussians(kind, weights, means, covariances, 1.0 / xp.sqrt(covariances), slack,
                             xp.all(covariances > 0.0))  # fmt: skip
    if is_torch(covariances):
        import torch

        lower, info = torch.linalg.cholesky_ex(covariances)
        eye = torch.eye(covariances.shape[-1], dtype=covariances.dtype, device=covariances.device)
        factors = torch.linalg.solve_triangular(lower, eye, upper=False).mT.contiguous()
        return Gaussians(kind, weights, means, covariances, factors, slack, (info == 0).all())
    try:
        lower = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        return Gaussians(kind, weights, means, covariances, covariances, slack, False)
    return Gaussians(kind, weights, means, covariances, _inverse_transposed(lower), slack)


def _inverse_transposed(lower: Any) -> Any:
    """The inverse of lower triangles, transposed."""
    flat = lower.reshape(-1, *lower.shape[-2:])
    return np.stack([lapack.dtrtri(part, lower=1)[0].T for part in flat]).reshape(lower.shape)


def from_precisions(kind: str, weights: Any, means: Any, precisions: Any) -> Gaussians:
    """The same from precisions (numpy): with rows and columns reversed, Cholesky's factor is upper."""
    if kind in ("diag", "spherical"):
        return Gaussians(kind, weights, means, 1.0 / precisions, np.sqrt(precisions))
    turned = np.linalg.cholesky(precisions[..., ::-1, ::-1])
    upper = np.ascontiguousarray(turned[..., ::-1, ::-1])
    root = np.ascontiguousarray(_inverse_transposed(np.swapaxes(upper, -1, -2)))  # U^-1
    return Gaussians(kind, weights, means, np.swapaxes(root, -1, -2) @ root, upper)


def update(kind: str, sums: Sums, reg_covar: float) -> tuple[Gaussians, Any]:
    r"""The M-step, and whether a second pass around the new means would save digits.

    The ridge makes it the maximiser of F - (reg/2) sum_k N_k tr(Sigma_k^-1), not of F: so the mean
    likelihood may fall in a step, by no more than the slack

        (reg/2) sum_k pi_k(new) [tr Sigma_k(old)^-1 - tr Sigma_k(new)^-1],

    which is kept with the new parameters.
    """
    xp = array_namespace(sums.mass)
    mass, first = sums.mass, sums.first
    count = mass + _TINY
    means = sums.centres * (mass / count)[:, None] + first / count[:, None]
    move = means - sums.centres
    if kind in ("diag", "spherical"):
        moment = sums.second - 2.0 * first * move + mass[:, None] * move**2
        variances = moment
        covariances = moment / count[:, None] + reg_covar
        if kind == "spherical":
            covariances = xp.mean(covariances, axis=1)
    else:
        turned = first[:, :, None] * move[:, None, :]
        each = mass[:, None, None] * move[:, :, None] * move[:, None, :]
        each = each - turned - xp.matrix_transpose(turned)
        moment = sums.second + (each if kind == "full" else xp.sum(each, axis=0))
        variances = xp.linalg.diagonal(moment)
        ridge = reg_covar * _eye(moment)
        covariances = moment / (count[:, None, None] if kind == "full" else xp.sum(count)) + ridge
    if kind == "spherical":
        variances = xp.sum(variances, axis=1)[:, None]
    lost = xp.any(mass[:, None] * move**2 > _FAR * variances + 1e-290)
    weights = count / xp.sum(count)
    new = from_covariances(kind, weights, means, covariances)
    old_trace, new_trace = _traces(sums.old), _traces(new)
    with np.errstate(invalid="ignore"):  # of a variance of 0, which the next pass refuses
        slack = 0.5 * reg_covar * xp.sum(weights * (old_trace - new_trace))
    return new._replace(slack=slack), lost


def _eye(like: Any) -> Any:
    xp = array_namespace(like)
    if is_torch(like):
        return xp.eye(like.shape[-1], dtype=like.dtype, device=like.device)
    return xp.eye(like.shape[-1])


def _traces(theta: Gaussians) -> Any:
    """tr Sigma_k^-1 for each component."""
    xp = array_namespace(theta.means)
    squares = theta.factors**2
    if theta.kind == "spherical":
        return theta.means.shape[1] * squares
    if theta.kind == "diag":
        return xp.sum(squares, axis=1)
    return xp.sum(xp.sum(squares, axis=-1), axis=-1)


# ---------------------------------------------------------------------------- the two steps


def steps_of(
    design: Design, reg_covar: float, hard: bool
) -> tuple[Callable[[Gaussians], tuple[Any, float]], Callable[[Any], Gaussians]]:
    """``expect, maximise`` for :func:`surefit.solvers.em.expectation_maximisation`, over these rows."""

    def sums_around(theta: Gaussians, centres: Any) -> tuple[Any, Sums]:
        ready = prepared(theta, centres)
        parts = design.held.fold(lambda blocks: add_rows(blocks, ready, hard))
        total = [sum(columns[1:], columns[0]) for columns in zip(*parts)]
        value, mass, first, second = design.group.sum(*total)
        return value / design.shape[0], Sums(centres, mass, first, second, theta)

    def expect(theta: Gaussians) -> tuple[Any, float]:
        value, sums = sums_around(theta, theta.means)
        new, lost = update(theta.kind, sums, reg_covar)
        value, again, sound = _read(value, lost, theta.sound)  # the one wait for the device
        if not sound:
            raise ValueError(ILL_DEFINED)
        if again:
            _, sums = sums_around(theta, new.means)
            new, _ = update(theta.kind, sums, reg_covar)
        return new, value

    def maximise(new: Gaussians) -> Gaussians:
        return new

    return expect, maximise


def _read(*numbers: Any) -> list[float]:
    if not any(is_torch(number) for number in numbers):
        return [float(number) for number in numbers]
    import torch

    device = next(number.device for number in numbers if is_torch(number))
    read: list[float] = torch.stack(
        [torch.as_tensor(number, dtype=torch.float64, device=device) for number in numbers]
    ).tolist()
    return read


def log_joint(design: Design, theta: Gaussians) -> Any:
    """log pi_k + log N(x_n | mu_k, Sigma_k) for the rows held here, next to them: (n, K)."""
    ready = prepared(theta, theta.means)
    parts = design.held.fold(lambda blocks: [joint_rows(block, ready) for _, block in blocks])
    found = [part for some in parts for part in some]
    return array_namespace(found[0]).concat(found) if len(found) > 1 else found[0]


def mean_value(design: Design, theta: Gaussians, hard: bool) -> float:
    """The objective at theta: the mean over rows of log sum_k, or max_k, of pi_k N."""
    ready = prepared(theta, theta.means)

    def part(blocks: Iterator[tuple[slice, Any]]) -> Any:
        return sum(total_of(joint_rows(block, ready), hard) for _, block in blocks)

    total = sum(design.held.fold(part))
    return float(to_numpy(design.group.sum(total))) / design.shape[0]


def start_sums(design: Design, kind: str, K: int, moments: tuple[Any, Any], start: Start) -> Sums:
    """The sums of given responsibilities around their own means, in two passes.

    ``moments`` are the mean and the covariance of all rows, ``start`` the responsibilities and whether
    every row has some. A tied covariance is scikit-learn's (sum_n x x' - sum_k N_k mu_k mu_k') / sum_k
    N_k, also where most rows have no responsibility.
    """
    mean, covariance = moments
    xp = array_namespace(mean)
    centres = xp.stack([mean] * K)
    shape = "full" if kind == "full" else "diag"
    factors = xp.stack([_eye(mean)] * K) if kind == "full" else xp.ones_like(centres)
    plain = Gaussians(shape, xp.ones_like(centres[:, 0]), centres, None, factors)
    for _ in range(2):
        ready, given = prepared(plain, centres), start.source()
        parts = design.held.fold(lambda blocks, r=ready, g=given: add_rows(blocks, r, False, g))  # type: ignore[misc]
        total = [sum(columns[1:], columns[0]) for columns in zip(*parts)]
        _, mass, first, second = design.group.sum(*total)
        sums = Sums(centres, mass, first, second, plain)
        count = mass + _TINY
        centres = centres * (mass / count)[:, None] + first / count[:, None]
    if kind == "tied":
        around = mean if start.covers else xp.zeros_like(mean)
        away, middle = centres - around, mean - around
        whole = design.shape[0] * (covariance + middle[:, None] * middle[None])
        sums = sums._replace(second=whole - (count * away.T) @ away)
    return sums


def sound(theta: Gaussians) -> Gaussians:
    """theta, or the error that no pass has raised yet."""
    if not bool(to_numpy(theta.sound)):
        raise ValueError(ILL_DEFINED)
    return theta
