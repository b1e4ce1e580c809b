"""Two constructions with sigmoids: rectangles in the plane, and Barron's rate (NN-9, NN-10).

**Rectangles.** For steep sigmoids, s(w (x1 - a1)) - s(w (x1 - b1)) + s(w (x2 - a2)) - s(w (x2 - b2)) is 2
inside the rectangle, 1 in the strips beside it and 0 elsewhere; another sigmoid with its threshold at 3/2
cuts the rectangle out. A sum of such cells approximates any continuous function on a rectangle.

**Barron's rate.** If f(x) = int fhat(w) e^{i<w, x>} dw has C = int |w| |fhat(w)| dw < inf, then f - f(0) on
the ball of radius r lies in the closed convex hull of steps of height at most 2 r C; n of them drawn at
random and averaged have expected squared error at most (2 r C)^2 / n, in any dimension and for any
probability measure on the ball. Here the draw is carried out for f(x) = exp(-|x|^2 / 2), whose C is known:

    cos(u) - 1 = - int_0^{|w| r} sin(s) [ 1(u > s) + 1(-u > s) ] ds      for |u| <= |w| r,      u = <w, x>.

References
----------
Barron, "Universal approximation bounds for superpositions of a sigmoidal function", IEEE TIT 39, 1993.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln
from sklearn.utils import check_random_state

__all__ = ["SigmoidNetwork", "barron_constant", "barron_network", "rectangle", "rectangles"]

Floats = NDArray[Any]


@dataclass(frozen=True)
class SigmoidNetwork:
    """x -> offset + sum_j heights[j] s(<weights[j], x> + biases[j]): a two-layer network."""

    weights: Floats  # (units, dimension)
    biases: Floats
    heights: Floats
    offset: float

    def hidden(self, X: Any) -> Floats:
        """What the units put out, of shape (samples, units)."""
        return np.asarray(expit(np.asarray(X, dtype=np.float64) @ self.weights.T + self.biases))

    def __call__(self, X: Any) -> Floats:
        """The network's output."""
        return self.hidden(X) @ self.heights + self.offset

    def refitted(self, X: Any, y: Any) -> SigmoidNetwork:
        """The same units with heights and offset by least squares: no worse on (X, y), in mean square."""
        H = np.column_stack([self.hidden(X), np.ones(len(X))])
        solution = np.linalg.lstsq(H, np.asarray(y, dtype=np.float64), rcond=None)[0]
        return SigmoidNetwork(self.weights, self.biases, solution[:-1], float(solution[-1]))


def rectangle(X: Any, low: Any, high: Any, *, steepness: float) -> Floats:
    """The sum of four sigmoids for the rectangle from ``low`` to ``high``: near 2, 1 or 0 (NN-10).

    Examples
    --------
    >>> inside, beside, outside = [0.5, 0.5], [0.5, 2.0], [2.0, 2.0]
    >>> rectangle([inside, beside, outside], [0, 0], [1, 1], steepness=1e4).round(12).tolist()
    [2.0, 1.0, 0.0]
    """
    X, low, high = (np.asarray(part, dtype=np.float64) for part in (X, low, high))
    if not (low < high).all():
        raise ValueError(f"low must be below high in both coordinates, got {low} and {high}.")
    if not steepness > 0:
        raise ValueError(f"steepness must be above 0, got {steepness!r}.")
    rise, fall = expit(steepness * (X - low)), expit(steepness * (X - high))
    return np.asarray((rise - fall).sum(axis=-1))


def rectangles(
    f: Callable[[Floats], Any], low: Any, high: Any, *, cells: int, steepness: float = 1e6
) -> Callable[[Any], Floats]:
    """A network near f on a rectangle: one thresholded rectangle a cell, as high as f in its middle (NN-10).

    Parameters
    ----------
    f : callable
        From (n, 2) to (n,), continuous.
    low, high : two numbers each
        Corners of the rectangle.
    cells : int
        Cells along each side.
    steepness : float
        The factor in both layers of sigmoids.

    Examples
    --------
    >>> net = rectangles(lambda X: X.sum(axis=1), [0, 0], [1, 1], cells=10)
    >>> net([[0.05, 0.95], [0.55, 0.15]]).round(6).tolist()
    [1.0, 0.7]
    """
    if cells < 1:
        raise ValueError(f"cells must be 1 or more, got {cells}.")
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    side = (high - low) / cells
    corners = low + side * np.stack(
        np.meshgrid(*[np.arange(cells)] * 2, indexing="ij"), -1
    ).reshape(-1, 2)
    heights = np.asarray(f(corners + side / 2), dtype=np.float64)

    def network(X: Any) -> Floats:
        X = np.asarray(X, dtype=np.float64)
        total = np.zeros(len(X))
        for corner, height in zip(corners, heights, strict=True):
            bump = rectangle(X, corner, corner + side, steepness=steepness)
            total += height * expit(steepness * (bump - 1.5))
        return total

    return network


def barron_constant(dimension: int) -> float:
    """C = E|w| for w ~ N(0, I), Barron's constant of exp(-|x|^2 / 2): sqrt(2) Gamma((d+1)/2) / Gamma(d/2).

    Examples
    --------
    >>> round(barron_constant(1), 6)                # sqrt(2 / pi)
    0.797885
    """
    if dimension < 1:
        raise ValueError(f"dimension must be 1 or more, got {dimension}.")
    return math.sqrt(2) * math.exp(gammaln((dimension + 1) / 2) - gammaln(dimension / 2))


def barron_network(
    units: int,
    *,
    dimension: int,
    radius: float = 1.0,
    steepness: float = 1e6,
    random_state: Any = None,
) -> SigmoidNetwork:
    """n sigmoids drawn from Barron's measure for exp(-|x|^2 / 2), averaged (NN-9).

    The expected squared error is at most (2 radius C)^2 / units for every probability measure on the ball,
    up to the steps' finite steepness.

    Parameters
    ----------
    units : int
        The number n of sigmoids.
    dimension, radius
        Of the ball.
    steepness : float
        Sigmoids are steps in the limit; this is how far they go.
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> net = barron_network(2000, dimension=2, random_state=0)
    >>> bool(abs(net(np.array([[0.6, 0.0]]))[0] - np.exp(-0.18)) < 0.1)
    True
    """
    if units < 1:
        raise ValueError(f"units must be 1 or more, got {units}.")
    if not (radius > 0 and math.isfinite(radius)):
        raise ValueError(f"radius must be a number above 0, got {radius!r}.")
    rng = check_random_state(random_state)
    directions = rng.normal(size=(units, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    size = np.sqrt(rng.chisquare(dimension + 1, size=units))  # |w| with density |w| fhat(w) / C
    s = rng.uniform(size=units) * size * radius
    # 1(<w, x> > s) = 1(<direction, x> > s / |w|); the sign is in the direction, which is symmetric
    height = -2 * radius * barron_constant(dimension) * np.sin(s) / units
    return SigmoidNetwork(steepness * directions, -steepness * s / size, height, 1.0)
