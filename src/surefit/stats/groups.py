r"""The mean of the means of independent groups, from the losses of their rows.

Rows of one group (one patient, the copies of one row) are not independent; groups are. So the claim is
about

.. math:: \mu = \frac1G \sum_g \mathbb E[\bar\ell_g],

where :math:`\bar\ell_g` is the mean loss of the rows of group g: a group with many rows counts as much as one
with few. The means lie in [a, b] and are independent, and two intervals hold for them; neither needs to know
how the rows within a group depend on each other.

*Hoeffding-KL.* With the means scaled to [0, 1] and :math:`\mathrm{kl}(p, q)` the divergence of two coins,

.. math:: P\bigl(\mathrm{kl}(\hat\mu, \mu) \ge \ln(1/\alpha)/G,\ \hat\mu < \mu\bigr) \le \alpha

and the same above (Hoeffding 1963, Theorem 1, whose first form needs independence only). *Empirical
Bernstein* is short where the means vary little. Each is given half of delta, and their intersection is
stated: that rule is fixed before the data are seen, and holds with probability :math:`1-\delta`.

The exact binomial (Clopper-Pearson) is for 0-1 losses where every group has one row, and nowhere else.

References
----------
W. Hoeffding, *Probability inequalities for sums of bounded random variables*, JASA 58, 1963.
A. Maurer and M. Pontil, *Empirical Bernstein bounds and sample-variance penalization*, COLT 2009.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .bounds import bernstein_radius

__all__ = ["group_interval", "group_limits", "group_means", "hoeffding_kl"]

Array = NDArray[np.float64]
HALVINGS = 60  # of [0, 1]: to 1e-18


def group_means(losses: ArrayLike, groups: ArrayLike) -> Array:
    """Return the mean loss of each group.

    Examples
    --------
    >>> group_means([1.0, 0.0, 0.5], ["a", "a", "b"])
    array([0.5, 0.5])
    """
    losses = np.asarray(losses, dtype=np.float64)
    _, labels = np.unique(np.asarray(groups), return_inverse=True)
    return np.bincount(labels.ravel(), weights=losses) / np.bincount(labels.ravel())


def group_interval(
    losses: ArrayLike,
    groups: ArrayLike,
    delta: float = 0.05,
    range: tuple[float, float] = (0.0, 1.0),
    models: int = 1,
) -> tuple[float, float, float]:
    """Return the mean of the group means, and an interval for its expectation.

    Parameters
    ----------
    losses : array of shape (n,)
        The loss of each row.
    groups : array of shape (n,)
        The group of each row. Groups are independent of each other and of the model.
    delta, range, models
        As in :func:`surefit.stats.bounds.hoeffding_radius`.

    Returns
    -------
    mean, low, high : float

    Examples
    --------
    >>> import numpy as np
    >>> losses, patients = np.tile([0.0, 0.0, 0.0, 0.0, 1.0], 60), np.repeat(np.arange(60), 5)
    >>> mean, low, high = group_interval(losses, patients)
    >>> round(mean, 3), round(low, 3), round(high, 3)
    (0.2, 0.079, 0.377)
    """
    means = group_means(losses, groups)
    if len(means) and not range[0] <= means.min() <= means.max() <= range[1]:
        raise ValueError(
            f"losses must lie in range={range!r}, got group means from {means.min():g} to "
            f"{means.max():g}: state a range that holds for every row."
        )
    variance = float(means.var(ddof=1)) if len(means) > 1 else math.inf
    low, high = group_limits(means.mean(), variance, len(means), delta, range, models)
    return float(means.mean()), float(low), float(high)


def group_limits(
    mean: Any,
    variance: Any,
    groups: Any,
    delta: float = 0.05,
    range: tuple[float, float] = (0.0, 1.0),
    models: int = 1,
) -> tuple[Any, Any]:
    """Limits of :func:`group_interval`, from mean and variance of the group means; arrays are allowed.

    Examples
    --------
    >>> low, high = group_limits(0.0, 0.0, 100)
    >>> float(low), round(float(high), 4)
    (0.0, 0.0429)
    """
    kl_low, kl_high = hoeffding_kl(mean, groups, delta / 2.0, range, models)
    radius = bernstein_radius(variance, groups, delta / 2.0, range, models)
    return np.maximum(kl_low, mean - radius), np.minimum(kl_high, mean + radius)


def hoeffding_kl(
    mean: Any,
    groups: Any,
    delta: float = 0.05,
    range: tuple[float, float] = (0.0, 1.0),
    models: int = 1,
) -> tuple[Any, Any]:
    r"""Limits q with :math:`\mathrm{kl}(\hat\mu, q) \le \ln(2K/\delta)/G`, for a mean of G independent terms.

    Parameters
    ----------
    mean : float or array
        Of terms in ``range``.
    groups : int or array
        How many terms.
    delta, range, models
        As in :func:`surefit.stats.bounds.hoeffding_radius`. Never longer than its interval (Pinsker).

    Returns
    -------
    low, high : float or array
    """
    start, end = range
    with np.errstate(invalid="ignore"):
        centre = np.clip((np.asarray(mean, dtype=np.float64) - start) / (end - start), 0.0, 1.0)
    level = math.log(2.0 * models / delta) / np.asarray(groups, dtype=np.float64)
    low = 1.0 - _upper(1.0 - centre, level)
    high = _upper(centre, level)
    return start + (end - start) * low, start + (end - start) * high


def _upper(centre: Any, level: Any) -> Any:
    """The largest q >= centre with kl(centre, q) <= level, rounded up."""
    inside, outside = (
        np.broadcast_arrays(centre, level)[0].copy(),
        np.ones(np.broadcast(centre, level).shape),
    )
    for _ in np.arange(HALVINGS):
        middle = (inside + outside) / 2.0
        below = _divergence(centre, middle) <= level
        inside, outside = np.where(below, middle, inside), np.where(below, outside, middle)
    return np.where(np.isnan(centre), np.nan, outside)


def _divergence(p: Any, q: Any) -> Any:
    """Kullback-Leibler divergence of a coin with p from one with q."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0.0, p * np.log(p / q), 0.0)
        tails = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
    return heads + tails
