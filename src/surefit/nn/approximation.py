"""Networks that are built, not trained: piecewise-linear functions by ReLU, to a requested eps (NN-8, NN-11).

Every continuous piecewise-linear function of one number is a two-layer ReLU network,

    r(x) = a_1 x + b_1 + sum_{j >= 2} a_j (x - k_j)_+,      with slope a_1 + ... + a_i on piece i.

So a continuous f on [a, b] is approximated as closely as one likes: interpolate it at N + 1 equally spaced
knots, h = (b - a)/N apart. With w(d) a modulus of continuity, |f(x) - f(z)| <= w(|x - z|), a point between
two knots has

    |f(x) - r(x)| <= (1 - t) |f(x) - f(left)| + t |f(x) - f(right)| <= w(h),

and N is the least number with w(h) <= eps. The certificate does not trust this count: it evaluates the
network on a grid g apart that holds the knots. Between two neighbours of the grid r is linear, so by the
same argument

    sup |f - r| <= max over the grid |f - r| + w(g),

which is compared with eps. It also looks for two points of the grid that refute the modulus.

References
----------
Cybenko, "Approximation by superpositions of a sigmoidal function", 1989, for the theorem in any dimension;
Yarotsky, "Error bounds for approximations with deep ReLU networks", 2017, for counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate, Claim, Kind

__all__ = ["Approximation", "PiecewiseLinear", "certify", "piecewise_linear", "relu_interpolant"]

Floats = NDArray[Any]
Function = Callable[[Floats], Any]
Modulus = Callable[[float], float]
MOST_PIECES = 20_000
MOST_POINTS, MOST_PRODUCTS = 1e6, 4e9  # of a grid, and of points and knots, to decide a claim
_CELLS = 4_000_000  # of the matrix (points x knots) at a time


@dataclass(frozen=True)
class PiecewiseLinear:
    """r(x) = slope x + offset + sum_j jumps[j] (x - knots[j])_+: a two-layer ReLU network of one number.

    Attributes
    ----------
    slope, offset : float
        The line before the first knot.
    knots, jumps : array
        Where the slope changes, and by how much.
    """

    slope: float
    offset: float
    knots: Floats
    jumps: Floats

    def __call__(self, x: Any) -> Floats:
        """The network's output, by its formula."""
        x = np.asarray(x, dtype=np.float64)
        flat, out = x.ravel(), np.empty(x.size)
        step = max(1, _CELLS // max(1, self.knots.size))
        for start in range(0, flat.size, step):
            part = flat[start : start + step]
            hidden = np.maximum(part[:, None] - self.knots, 0.0)
            out[start : start + step] = self.slope * part + self.offset + hidden @ self.jumps
        return out.reshape(x.shape)

    @property
    def slopes(self) -> Floats:
        """The slope of each piece: a_1, a_1 + a_2, ..."""
        return np.cumsum(np.concatenate([[self.slope], self.jumps]))

    def to_module(self, *, dtype: Any = None) -> Any:
        """The same as a torch module, Linear - ReLU - Linear, from (n, 1) to (n, 1); the line takes two
        more units.

        Examples
        --------
        >>> import torch
        >>> net = piecewise_linear([0.0, 1.0, 2.0], [0.0, 1.0, 0.0]).to_module()
        >>> net(torch.tensor([[0.5], [1.5]], dtype=torch.float64)).ravel().tolist()
        [0.5, 0.5]
        """
        import torch
        from torch import nn

        units = self.knots.size + 2  # x = x_+ - (-x)_+
        net = nn.Sequential(nn.Linear(1, units), nn.ReLU(), nn.Linear(units, 1)).to(
            dtype or torch.float64
        )
        state = {
            "0.weight": np.concatenate([[1.0, -1.0], np.ones(self.knots.size)])[:, None],
            "0.bias": np.concatenate([[0.0, 0.0], -self.knots]),
            "2.weight": np.concatenate([[self.slope, -self.slope], self.jumps])[None, :],
            "2.bias": np.array([self.offset]),
        }
        net.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
        return net


@dataclass(frozen=True)
class Approximation:
    """A network built for a function, with what is claimed about it.

    Attributes
    ----------
    network : PiecewiseLinear
    eps : float
        The requested largest error on ``interval``.
    interval : tuple of float
    pieces : int
        The number of pieces that the modulus of continuity asks for.
    certificate : Certificate
        "sup error": at most eps everywhere on the interval; "modulus": no two points of the grid refute it.
    """

    network: PiecewiseLinear
    eps: float
    interval: tuple[float, float]
    pieces: int
    certificate: Certificate

    def __call__(self, x: Any) -> Floats:
        """The network's output."""
        return self.network(x)


def piecewise_linear(knots: Any, values: Any) -> PiecewiseLinear:
    """The ReLU network through the given points, linear between them and beyond them (NN-11).

    Parameters
    ----------
    knots : increasing array of at least two numbers
    values : array of the same length

    Examples
    --------
    >>> tent = piecewise_linear([0.0, 1.0, 2.0], [0.0, 1.0, 0.0])
    >>> tent.slope, tent.jumps.tolist(), tent([0.5, 1.0, 3.0]).tolist()
    (1.0, [-2.0], [0.5, 1.0, -1.0])
    """
    x, f = np.asarray(knots, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size < 2 or f.shape != x.shape:
        raise ValueError(
            f"knots has shape {x.shape} and values {f.shape}; give two or more points, one value each."
        )
    if not (np.isfinite(x).all() and np.isfinite(f).all() and (np.diff(x) > 0).all()):
        raise ValueError("knots must increase, and knots and values must be finite numbers.")
    slopes = np.diff(f) / np.diff(x)
    return PiecewiseLinear(
        slope=float(slopes[0]),
        offset=float(f[0] - slopes[0] * x[0]),
        knots=x[1:-1].copy(),
        jumps=np.diff(slopes),
    )


def relu_interpolant(
    f: Function,
    a: float,
    b: float,
    *,
    eps: float,
    modulus: float | Modulus,
) -> Approximation:
    """A two-layer ReLU network within eps of f everywhere on [a, b] (NN-8).

    Parameters
    ----------
    f : callable
        From an array to an array, continuous on [a, b].
    a, b : float
        The interval.
    eps : float
        The largest error allowed.
    modulus : float or callable
        A Lipschitz constant L of f, or its modulus of continuity: a function w that does not decrease, with
        |f(x) - f(z)| <= w(|x - z|).

    Returns
    -------
    Approximation

    Examples
    --------
    >>> import numpy as np
    >>> net = relu_interpolant(np.sin, 0.0, 6.0, eps=0.01, modulus=1.0)
    >>> net.pieces, net.certificate.ok
    (600, True)
    >>> root = relu_interpolant(np.sqrt, 0.0, 1.0, eps=0.1, modulus=np.sqrt)
    >>> root.pieces
    100
    """
    _check_request(a, b, eps)
    omega = _modulus(modulus)
    pieces = _count(omega, b - a, eps)
    knots = np.linspace(a, b, pieces + 1)
    values = np.asarray(f(knots), dtype=np.float64)
    if values.shape != knots.shape or not np.isfinite(values).all():
        raise ValueError(
            "f must return one finite number for each entry of an array in [a, b]; it does not at the knots."
        )
    network = piecewise_linear(knots, values)
    certificate = certify(network, f, a, b, eps=eps, modulus=omega)
    return Approximation(network, eps, (a, b), pieces, certificate)


def certify(
    network: PiecewiseLinear,
    f: Function,
    a: float,
    b: float,
    *,
    eps: float,
    modulus: float | Modulus,
) -> Certificate:
    """The claims about any network of this kind, from the network, f and its modulus alone.

    "sup error" holds where the largest error on a grid and what the modulus allows between its points are at
    most eps together. The grid is made finer until this is decided or becomes too costly.

    Examples
    --------
    >>> import numpy as np
    >>> net = relu_interpolant(np.cos, 0.0, 1.0, eps=0.1, modulus=1.0).network
    >>> certify(net, np.cos, 0.0, 1.0, eps=0.1, modulus=1.0).ok
    True
    >>> certify(net, np.sin, 0.0, 1.0, eps=0.1, modulus=1.0).ok
    False
    """
    _check_request(a, b, eps)
    omega = _modulus(modulus)
    inside = network.knots[(network.knots > a) & (network.knots < b)]
    knots = np.concatenate([[a], inside, [b]])
    pieces, fine = knots.size - 1, 16
    while True:
        grid = _grid(knots, fine)
        error = float(np.max(np.abs(np.asarray(f(grid), dtype=np.float64) - network(grid))))
        between = float(omega(float(np.max(np.diff(grid)))))
        total = error + between
        refuted = not error <= eps  # a NaN refutes too
        points = 4 * fine * pieces
        if total <= eps or refuted or points > MOST_POINTS or points * pieces > MOST_PRODUCTS:
            break
        fine *= 4
    statement = (
        f"|f - r| is at most {error:.3g} on {grid.size} points and can grow by {between:.3g} between them: "
        f"at most {total:.3g} everywhere, by the modulus given"
    )
    if total <= eps or refuted:
        sup = Claim.check("sup error", statement, Kind.BOUND, total, eps, "NN-8")
    else:
        why = f"{statement}; eps is {eps:.3g}, and a finer grid would decide it"
        sup = Claim.undecided("sup error", why, Kind.BOUND, "NN-8")
    points = max(4096, 4 * pieces) + 1
    claims = (sup, _modulus_claim(f, np.array([a, b]), points, omega))
    return Certificate(claims, about=f"a ReLU network of {pieces} pieces")


def _check_request(a: float, b: float, eps: float) -> None:
    if not (math.isfinite(a) and math.isfinite(b) and a < b):
        raise ValueError(f"a and b must be finite with a < b, got a={a!r}, b={b!r}.")
    if not (eps > 0 and math.isfinite(eps)):
        raise ValueError(f"eps must be a number above 0, got {eps!r}.")


def _modulus(modulus: float | Modulus) -> Modulus:
    if callable(modulus):
        return modulus
    constant = float(modulus)
    if not (constant >= 0 and math.isfinite(constant)):
        raise ValueError(
            f"modulus must be a Lipschitz constant >= 0 or a function, got {modulus!r}."
        )
    return lambda distance: constant * distance


def _count(omega: Modulus, length: float, eps: float) -> int:
    """The least N with omega(length / N) <= eps, by doubling and bisection: omega does not decrease."""

    def enough(pieces: int) -> bool:
        return omega(length / pieces) <= eps * (1 + 1e-12)

    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_PIECES:
            raise ValueError(
                f"eps {eps!r} needs more than {MOST_PIECES} pieces by this modulus: it is "
                f"{omega(length / high):.3g} at distance {length / high:.3g}. "
                "Raise eps, or give a smaller modulus that f has."
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _grid(knots: Floats, fine: int) -> Floats:
    """The knots, and each piece cut into ``fine`` equal parts."""
    inner = np.linspace(knots[:-1], knots[1:], fine, endpoint=False, axis=1)
    return np.append(inner.ravel(), knots[-1])


def _modulus_claim(f: Function, ends: Floats, points: int, omega: Modulus) -> Claim:
    """The largest |f(x) - f(z)| / omega(|x - z|) over pairs of a grid that are 1, 2, 4, ... steps apart."""
    values = np.asarray(f(np.linspace(ends[0], ends[1], points)), dtype=np.float64)
    worst, lag, gap = 0.0, 1, float(ends[1] - ends[0]) / (points - 1)
    while lag < points:
        rise, allowed = float(np.max(np.abs(values[lag:] - values[:-lag]))), float(omega(lag * gap))
        if rise > 0:
            worst = max(worst, rise / allowed if allowed > 0 else math.inf)
        lag *= 2
    statement = (
        f"over pairs of the grid, |f(x) - f(z)| is at most {worst:.4g} times the modulus given"
    )
    return Claim.check("modulus", statement, Kind.EMPIRICAL, worst, 1 + 1e-9, "NN-8")
