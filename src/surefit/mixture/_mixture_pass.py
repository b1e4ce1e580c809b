"""The certificate's own pass over the rows of a Gaussian mixture; see ``_mixture_claims.py``.

Nothing here is shared with the fit: covariances are factored by scipy, rows whitened by one product with
all inverse factors, and one more EM step is taken where every component is a standard normal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from .._namespace import array_namespace, like, to_numpy
from ..design import Design

__all__ = [
    "EPS",
    "Model",
    "Pass",
    "Step",
    "log_sum",
    "losses_of",
    "model_of",
    "one_step",
    "over_rows_of",
    "rounding_of",
]

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
_SAMPLE = 256  # rows on which identities are checked at fit
_CELLS = 1 << 18  # numbers of the whitened rows worked on at a time
_DEVICE_CELLS = 1 << 26


class Model(NamedTuple):
    """Public parameters in float64; spherical and tied ones spread over the components."""

    weights: Array
    means: Array
    roots: Array  # C^-1: (K, D, D), or one over the deviations (K, D)
    log_dets: Array  # of C
    smallest: Array  # variance of each component
    largest: Array


class Pass(NamedTuple):
    """What a pass found: sums over all rows, and a sample of rows with their exponents."""

    value: float
    mass: Array
    first: Array
    second: Array
    reach: Array  # of each component: root mean square of ||y||, and about that of ||x - centre||
    rows: Any
    exponents: Array


def model_of(kind: str, weights: Array, means: Array, covariances: Array) -> Model:
    K, p = means.shape
    if kind in ("full", "tied"):
        each = covariances if kind == "full" else covariances[None]
        factors = [cholesky(part, lower=True) for part in each]
        roots = np.stack([solve_triangular(c, np.eye(p), lower=True) for c in factors])
        log_dets = np.array([np.log(np.diag(c)).sum() for c in factors])
        values: Array = np.linalg.eigvalsh(each).astype(np.float64)
        small, large = values[:, 0], values[:, -1]
    else:
        each = covariances if kind == "diag" else np.repeat(covariances[:, None], p, axis=1)
        if not (each > 0.0).all():
            raise ValueError("a variance is not positive")
        roots, log_dets = 1.0 / np.sqrt(each), 0.5 * np.log(each).sum(axis=1)
        small, large = each.min(axis=1), each.max(axis=1)
    if kind == "tied":
        roots, log_dets, small, large = (
            np.repeat(v, K, axis=0) for v in (roots, log_dets, small, large)
        )
    return Model(weights, means, roots, log_dets, small, large)


def over_rows_of(design: Design, model: Model, kind: str, hard: bool, full: bool) -> Pass:
    K, p = model.means.shape
    centre = design.near_mean()  # of the rows: a component without any may lie anywhere
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
                sums = [
                    value,
                    xp.sum(q, axis=0),
                    xp.sum(heavy, axis=0),
                    second,
                ]
                total = [a + b for a, b in zip(total, sums)] if total else sums
                first = (-(where.start + start)) % step
                if first < len(rows):
                    some = block[start + first : start + size : step]  # copied: blocks do not stay
                    sample.append((xp.asarray(some, copy=True), to_numpy(e[first::step])))
        return [total, sample]

    parts = design.held.fold(part)
    totals = [sum(columns[1:], columns[0]) for columns in zip(*(total for total, _ in parts))]
    value, mass, first, second = (to_numpy(v) for v in design.group.sum(*totals))
    rows, exponents = zip(*(entry for _, some in parts for entry in some))
    n = design.shape[0]
    return Pass(
        float(value) / n,
        mass,
        first,
        second,
        _reach(model, mass, second, centre),
        array_namespace(rows[0]).concat(rows),
        np.concatenate(exponents),
    )


def _squares(y: Any) -> Any:
    """||y_nk||^2."""
    if array_namespace(y) is np:
        return np.einsum("nkp,nkp->nk", y, y)
    return (y * y).sum(axis=2)


def _reach(model: Model, mass: Array, second: Array, centre: Array) -> Array:
    """Root mean squares over the rows of a component, 0 where it has none."""
    total = np.trace(second, axis1=1, axis2=2) if second.ndim == 3 else second.sum(axis=1)
    lengths = np.sqrt(np.maximum(total, 0.0) / np.maximum(mass, 1e-300))
    away = np.linalg.norm(model.means - centre, axis=1) + np.sqrt(model.largest) * lengths
    return np.where(mass > 0.0, [lengths, away], 0.0)


def losses_of(model: Model, found: Pass, unit: float) -> tuple[Array, Array]:
    """What rounding may do to the exponents of a component's rows: by digits lost, by float32 attributes.

    Of each component by itself: one that has no rows must not excuse the others.
    """
    p, (lengths, away) = model.means.shape[1], found.reach
    sharp = 1.0 / np.sqrt(model.smallest)
    digits = p * (1.0 + sharp * away * np.maximum(1.0, lengths / math.sqrt(p)))
    if unit <= EPS:
        return digits, np.zeros_like(digits)
    reach = np.abs(model.means).max(axis=1) * sharp * math.sqrt(p)
    return digits, p * model.largest / model.smallest + reach * (1.0 + unit * reach)


def rounding_of(model: Model, found: Pass, unit: float, *, worst: bool = False) -> float:
    """How far two evaluations of the objective may be apart: by rounding, and by float32 attributes.

    With ``worst`` those of a single row, else of the mean over all of them.
    """
    digits, single = losses_of(model, found, unit)
    if worst:
        some = found.mass > 1e-12
        lost, rounded = (float(v.max(initial=0.0, where=some)) for v in (digits, single))
    else:
        share = found.mass / found.mass.sum()
        lost, rounded = float(share @ digits), float(share @ single)
    slack = 16 * EPS * (1.0 + abs(found.value) + lost)
    return slack + (unit * (abs(found.value) + rounded) if unit > EPS else 0.0)


class Step(NamedTuple):
    divergence: float
    gradient: float
    model: Model | None  # None where a covariance is no longer positive definite


def one_step(fitted: Model, found: Pass, kind: str, reg: float, n: int) -> Step:
    """One more EM step in whitened coordinates: how far it goes, and where."""
    p = fitted.means.shape[1]
    pi = found.mass / n
    mass = found.mass + 10 * EPS
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
    alive, weights = pi > 0.0, fitted.weights / fitted.weights.sum()  # of float32 they may miss 1
    shift = np.where(alive, pi * (np.log(np.where(alive, pi, 1.0)) - np.log(weights)), 0.0)
    divergence = float(np.where(alive, shift + 0.5 * pi * (spread + length), 0.0).sum())
    share = (pi - weights) ** 2 / np.maximum(weights, 1e-300)
    gradient = math.sqrt(float((share + pi * (length + 0.5 * size)).sum()))
    try:
        moved = _moved(fitted, mass / mass.sum(), m, A)
    except (np.linalg.LinAlgError, ValueError):
        moved = None
    return Step(abs(divergence), gradient, moved)


def _moved(fitted: Model, weights: Array, m: Array, A: Array) -> Model:
    """The new parameters, back from the whitened coordinates."""
    if fitted.roots.ndim == 2:
        return model_of("diag", weights, fitted.means + m / fitted.roots, A / fitted.roots**2)
    C = np.linalg.inv(fitted.roots)
    covariances = C @ A @ np.swapaxes(C, 1, 2)
    means = fitted.means + np.einsum("kij,kj->ki", C, m)
    return model_of("full", weights, means, 0.5 * (covariances + np.swapaxes(covariances, 1, 2)))


def log_sum(e: Array) -> Array:
    top = e.max(axis=1)
    total: Array = top + np.log(np.exp(e - top[:, None]).sum(axis=1))
    return total
