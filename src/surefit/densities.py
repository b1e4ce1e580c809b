r"""Densities, and the view of regression as maximum likelihood (REG-6 to REG-9).

With Gaussian noise the log-likelihood of the errors e = y - Xw is -(1/2 sigma^2) sum e^2 plus a constant, so
least squares is maximum likelihood and sigma^2 = mean e^2; with Laplace noise it is -(1/b) sum |e| plus a
constant, so the least absolute deviations are, and b = mean |e|. The Fisher information of the Gaussian
model, X'X / sigma^2, is the inverse of the covariance of the least-squares coefficients.

Examples
--------
>>> import numpy as np
>>> g = Gaussian(mean=[0.0, 1.0], cov=[[2.0, 0.5], [0.5, 1.0]])
>>> g.log_prob(np.array([[0.0, 1.0]])).round(4)            # -log(2 pi) - log(det) / 2
array([-2.1177])
>>> Laplace.fit([1.0, 2.0, 6.0])
Laplace(loc=2.0, scale=1.6666666666666667)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, eigvalsh, solve_triangular

__all__ = [
    "Gaussian",
    "Laplace",
    "fisher_information",
    "gaussian_log_likelihood",
    "gaussian_noise_scale",
    "laplace_log_likelihood",
    "laplace_noise_scale",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gaussian:
    r"""N(x | mean, cov) = (2 pi)^{-d/2} det(cov)^{-1/2} exp(-(x - mean)' cov^{-1} (x - mean) / 2).

    Parameters
    ----------
    mean : array of shape (d,)
    cov : array of shape (d, d)
        Symmetric positive definite.
    """

    mean: Array
    cov: Array

    def __post_init__(self) -> None:
        mean = np.atleast_1d(np.array(self.mean, dtype=np.float64))
        cov = np.atleast_2d(np.array(self.cov, dtype=np.float64))
        if mean.ndim != 1 or cov.shape != (len(mean), len(mean)):
            raise ValueError(f"mean of shape {mean.shape} needs a square cov, got {cov.shape}.")
        if not np.allclose(cov, cov.T, rtol=1e-10, atol=0.0):
            raise ValueError(
                "cov must be symmetric; its largest asymmetry is "
                f"{np.abs(cov - cov.T).max():.3g}. Use (cov + cov.T) / 2."
            )
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "cov", cov)
        object.__setattr__(self, "_factor", _cholesky(cov))

    @classmethod
    def fit(cls, X: ArrayLike) -> Gaussian:
        """Maximum likelihood: the mean row and the covariance with 1/n.

        Examples
        --------
        >>> Gaussian.fit([[0.0], [2.0]]).cov
        array([[1.]])
        """
        rows = _rows(X)
        mean = rows.mean(axis=0)
        centred = rows - mean
        return cls(mean, centred.T @ centred / len(rows))

    def log_prob(self, X: ArrayLike) -> Array:
        """The log-density of each row of X, shape (n,)."""
        rows = _rows(X)
        if rows.shape[1] != len(self.mean):
            raise ValueError(f"X has {rows.shape[1]} columns, the density {len(self.mean)}.")
        factor: Array = self._factor  # type: ignore[attr-defined]
        white = solve_triangular(factor, (rows - self.mean).T, lower=True)  # (d, n)
        log_det = 2.0 * np.log(np.diag(factor)).sum()
        constant = -0.5 * (len(self.mean) * math.log(2.0 * math.pi) + log_det)
        result: Array = constant - 0.5 * np.einsum("ij,ij->j", white, white)
        return result

    def sample(self, n: int, random_state: Any = None) -> Array:
        """n independent rows, shape (n, d)."""
        factor: Array = self._factor  # type: ignore[attr-defined]
        normal = _generator(random_state).standard_normal((n, len(self.mean)))
        return self.mean + normal @ factor.T


@dataclass(frozen=True)
class Laplace:
    """p(x) = exp(-|x - loc| / scale) / (2 scale) on the line.

    Parameters
    ----------
    loc : float
    scale : float
        Positive.
    """

    loc: float
    scale: float

    def __post_init__(self) -> None:
        _check_positive("scale", self.scale)

    @classmethod
    def fit(cls, x: ArrayLike) -> Laplace:
        """Maximum likelihood: the median and the mean absolute deviation from it."""
        values = np.asarray(x, dtype=np.float64)
        loc = float(np.median(values))
        return cls(loc, float(np.abs(values - loc).mean()))

    def log_prob(self, x: ArrayLike) -> Array:
        """The log-density at each entry of x."""
        distance = np.abs(np.asarray(x, dtype=np.float64) - self.loc)
        result: Array = -math.log(2.0 * self.scale) - distance / self.scale
        return result

    def sample(self, n: int, random_state: Any = None) -> Array:
        """n independent numbers, shape (n,)."""
        return _generator(random_state).laplace(self.loc, self.scale, size=n)


# ---------------------------------------------------------------------------- regression


def gaussian_log_likelihood(e: ArrayLike, sigma: float) -> float:
    """log p of the errors under N(0, sigma^2): -(1/2 sigma^2) sum e^2 - n log(sigma sqrt(2 pi)).

    Examples
    --------
    >>> round(gaussian_log_likelihood([0.0], 1.0), 4)
    -0.9189
    """
    _check_positive("sigma", sigma)
    scaled = np.asarray(e, dtype=np.float64).ravel() / sigma
    constant = len(scaled) * (math.log(sigma) + 0.5 * math.log(2.0 * math.pi))
    return float(-0.5 * (scaled @ scaled) - constant)


def laplace_log_likelihood(e: ArrayLike, b: float) -> float:
    """log p of the errors under the Laplace density: -(1/b) sum |e| - n log(2 b).

    Examples
    --------
    >>> round(laplace_log_likelihood([0.0], 1.0), 4)
    -0.6931
    """
    _check_positive("b", b)
    errors = np.abs(np.asarray(e, dtype=np.float64).ravel())
    return float(-errors.sum() / b - len(errors) * math.log(2.0 * b))


def gaussian_noise_scale(e: ArrayLike) -> float:
    """The sigma that maximises :func:`gaussian_log_likelihood`: sigma^2 = mean e^2 (REG-7).

    Examples
    --------
    >>> gaussian_noise_scale([3.0, -3.0])
    3.0
    """
    return math.sqrt(float(np.mean(np.square(np.asarray(e, dtype=np.float64)))))


def laplace_noise_scale(e: ArrayLike) -> float:
    """The b that maximises :func:`laplace_log_likelihood`: b = mean |e| (REG-9).

    Examples
    --------
    >>> laplace_noise_scale([1.0, -3.0])
    2.0
    """
    return float(np.mean(np.abs(np.asarray(e, dtype=np.float64))))


def fisher_information(X: ArrayLike, sigma: float) -> Array:
    """-E[d^2 log p / dw dw'] of the Gaussian model for all rows of X: X'X / sigma^2 (REG-8).

    Its inverse is the covariance of the least-squares coefficients, and no unbiased estimate has a
    smaller one (Cramer-Rao). One row's share is this divided by the number of rows.

    Examples
    --------
    >>> fisher_information([[1.0], [2.0]], sigma=0.5)
    array([[20.]])
    """
    _check_positive("sigma", sigma)
    scaled = np.asarray(X, dtype=np.float64) / sigma
    return scaled.T @ scaled


# ---------------------------------------------------------------------------- helpers


def _rows(X: ArrayLike) -> Array:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or len(rows) == 0:
        raise ValueError(f"X must have shape (n, d) with n >= 1, got {rows.shape}.")
    return rows


def _cholesky(cov: Array) -> Array:
    """The lower factor of cov, or an error that names the smallest eigenvalue."""
    smallest, largest = (float(x) for x in eigvalsh(cov)[[0, -1]])
    # An eigenvalue below d eps ||cov|| is rounding: the density would depend on it alone.
    if not smallest > len(cov) * np.finfo(np.float64).eps * largest:
        raise ValueError(
            f"cov must be positive definite, but its smallest eigenvalue is {smallest:.6g}. "
            "Use more samples than features, drop a dependent feature, or add a multiple of the "
            "identity to cov."
        )
    factor: Array = cholesky(cov, lower=True)
    return factor


def _check_positive(name: str, value: float) -> None:
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be a positive finite number, got {value!r}.")


def _generator(random_state: Any) -> np.random.Generator:
    """One Generator from None, an integer, a Generator or an old RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
