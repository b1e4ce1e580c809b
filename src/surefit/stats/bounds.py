r"""How far a mean of bounded losses on n fresh rows can be from its expectation.

Pure functions of counts: no estimator, no data. Each takes ``models``, the number of models that were
evaluated on the rows, and holds for all of them at once: by the union bound each gets
:math:`\delta/K` of the probability (GEN-4).

===================  =====================================================  ==============================
function             half-width, K models                                   for
===================  =====================================================  ==============================
hoeffding_radius     :math:`(b-a)\sqrt{\ln(2K/\delta)/(2n)}`                any loss in [a, b]
clopper_pearson      exact binomial limits                                  0-1 losses
empirical_bernstein  :math:`\sqrt{2Vt/n} + 7(b-a)t/(3(n-1))`,               losses of small variance V
                     :math:`t = \ln(3K/\delta)`
===================  =====================================================  ==============================

Which one is quoted is decided before the data are seen. The smallest of the three is not a bound at
level :math:`\delta`.

References
----------
W. Hoeffding, *Probability inequalities for sums of bounded random variables*, JASA 58, 1963.
C. Clopper and E. Pearson, *The use of confidence or fiducial limits*, Biometrika 26, 1934.
A. Maurer and M. Pontil, *Empirical Bernstein bounds and sample-variance penalization*, COLT 2009.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

__all__ = [
    "bernstein_radius",
    "clopper_pearson",
    "empirical_bernstein",
    "hoeffding_radius",
    "selection_excess",
]

Array = NDArray[np.float64]


def hoeffding_radius(
    n: Any, delta: float = 0.05, range: tuple[float, float] = (0.0, 1.0), models: int = 1
) -> Any:
    r"""With probability at least 1 - delta, all ``models`` have :math:`|L_D - L_S|` at most this.

    .. math:: (b - a)\sqrt{\ln(2K/\delta) / (2n)}

    Parameters
    ----------
    n : int or array of int
        Rows that the loss is averaged over: independent, and used by no fit.
    delta : float
        Probability that the statement is wrong.
    range : (float, float)
        The least and the largest value a loss can have.
    models : int
        How many models were evaluated on the rows.

    Returns
    -------
    float or array of float

    Examples
    --------
    >>> round(hoeffding_radius(1000, 0.05), 5), round(hoeffding_radius(1000, 0.05, models=100), 5)
    (0.04295, 0.0644)
    """
    low, high = _check(n, delta, models, range)
    radius = (high - low) * np.sqrt(np.log(2.0 * models / delta) / (2.0 * np.asarray(n)))
    return float(radius) if np.ndim(n) == 0 else radius


def selection_excess(
    n: Any, delta: float = 0.05, range: tuple[float, float] = (0.0, 1.0), models: int = 1
) -> Any:
    r"""With probability at least 1 - delta, choosing the least loss on n rows costs at most this.

    :math:`L_D(f_{\hat k}) \le \min_k L_D(f_k) + 2(b-a)\sqrt{\ln(2K/\delta)/(2n)}`: the chosen model looks
    better than it is by at most one radius, and the best one looks worse by at most another (GEN-5).

    Parameters
    ----------
    n, delta, range, models
        As in :func:`hoeffding_radius`.

    Returns
    -------
    float or array of float

    Examples
    --------
    >>> round(selection_excess(1000, 0.05, models=100), 4)
    0.1288
    """
    return 2.0 * hoeffding_radius(n, delta, range, models)


def clopper_pearson(
    errors: ArrayLike, n: Any, delta: float = 0.05, models: int = 1, *, identical: bool = True
) -> tuple[Any, Any]:
    r"""Exact two-sided limits for the error of ``models`` classifiers, from their mistakes on n rows.

    The lower limit is the p at which so many mistakes or more have probability
    :math:`\delta/(2K)`, the upper one that at which so few or fewer have. They are quantiles of beta
    distributions.

    Parameters
    ----------
    errors : int or array of int
        Mistakes of each model.
    n : int or array of int
        Rows.
    delta, models
        As in :func:`hoeffding_radius`.
    identical : bool
        False where the rows are independent but not drawn alike, as in a stratified sample. The mean of
        their probabilities has the same limits (Hoeffding, *On the distribution of the number of
        successes in independent trials*, 1956), but for one mistake short of n (or one mistake), where the
        tail is n(1-p) instead of 1-p^n; :math:`1-e^{-\delta/(2K)}` in place of :math:`\delta/(2K)`
        covers that. It needs delta/K <= 1/2.

    Returns
    -------
    low, high : float or array of float

    Examples
    --------
    >>> low, high = clopper_pearson(0, 100, 0.05)
    >>> low, round(high, 5)
    (0.0, 0.03622)
    """
    _check(n, delta, models, (0.0, 1.0))
    wrong, rows = np.broadcast_arrays(np.asarray(errors, dtype=np.float64), n)
    if ((wrong < 0) | (wrong > rows)).any():
        raise ValueError(f"errors must lie between 0 and n, got errors={errors!r}, n={n!r}.")
    tail = delta / models / 2.0
    if not identical:
        tail = -math.expm1(-min(tail, 0.25))
    with np.errstate(invalid="ignore"):
        low = np.where(wrong == 0, 0.0, stats.beta.ppf(tail, wrong, rows - wrong + 1.0))
        high = np.where(wrong == rows, 1.0, stats.beta.isf(tail, wrong + 1.0, rows - wrong))
    if wrong.ndim == 0:
        return float(low), float(high)
    return low, high


def empirical_bernstein(
    losses: ArrayLike,
    delta: float = 0.05,
    range: tuple[float, float] = (0.0, 1.0),
    models: int = 1,
) -> float:
    r"""The radius of :func:`bernstein_radius` for the losses of one of ``models`` models.

    Parameters
    ----------
    losses : array of shape (n,)
        The loss of each row, n at least 2.
    delta, range, models
        As in :func:`hoeffding_radius`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.repeat([0.0, 0.1], [950, 50])
    >>> round(empirical_bernstein(losses), 4), round(hoeffding_radius(1000), 4)
    (0.0115, 0.0429)
    """
    losses = np.asarray(losses, dtype=np.float64).ravel()
    low, high = _check(losses.size, delta, models, range)
    if losses.size and (losses.min() < low or losses.max() > high):
        raise ValueError(
            f"losses must lie in range={range!r}, got values from {losses.min():g} to "
            f"{losses.max():g}: state a range that holds for every row."
        )
    variance = float(losses.var(ddof=1)) if losses.size > 1 else math.inf
    return float(bernstein_radius(variance, losses.size, delta, range, models))


def bernstein_radius(
    variance: Any,
    n: Any,
    delta: float = 0.05,
    range: tuple[float, float] = (0.0, 1.0),
    models: int = 1,
) -> Any:
    r"""Empirical Bernstein radius, from the sample variance V (denominator n - 1) of the losses.

    .. math:: \sqrt{2 V t / n} + \frac{7 (b-a)\, t}{3(n-1)}, \qquad t = \ln(3K/\delta)

    Three events make it up, each with probability :math:`\delta/(3K)`: Bernstein's inequality above and
    below, :math:`|\bar\ell - L| \le \sigma\sqrt{2t/n} + (b-a)t/(3n)`, and Maurer and Pontil's Theorem 10,
    :math:`\sigma \le \sqrt V + (b-a)\sqrt{2t/(n-1)}`. Their Theorem 4 is the one-sided form, with two
    events and :math:`\ln(2/\delta)`. Rows need be independent only, not drawn alike.

    Parameters
    ----------
    variance : float or array of float
        Sample variance of the losses.
    n, delta, range, models
        As in :func:`hoeffding_radius`.

    Returns
    -------
    float or array of float
        Infinite for n < 2.
    """
    low, high = _check(n, delta, models, range)
    rows = np.asarray(n, dtype=np.float64)
    log = math.log(3.0 * models / delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        radius = np.sqrt(2.0 * np.asarray(variance) * log / rows)
        radius = radius + 7.0 * (high - low) * log / (3.0 * (rows - 1.0))
    radius = np.where(rows < 2, np.inf, radius)
    return float(radius) if radius.ndim == 0 else radius


def _check(
    n: Any, delta: float, models: int, bounds: tuple[float, float] | None
) -> tuple[float, float]:
    """Arguments that make sense; the ends of the range."""
    if np.min(n, initial=1) < 1:
        raise ValueError(f"n must be at least 1, got {n!r}: a mean needs rows.")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}.")
    if models < 1:
        raise ValueError(f"models must be at least 1, got {models!r}.")
    low, high = (float(end) for end in bounds or (0.0, 1.0))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"range must be two finite numbers, the lower first, got {bounds!r}.")
    return low, high
