r"""The worked example of robust and non-robust features (ADV-10).

y = ±1 with equal probability, Z standard normal, and

    x_1 = y + Z_1,    x_i = y sqrt(log d / (d - 1)) + Z_i    for i = 2, ..., d.

The first feature alone gives the risk :math:`\Phi(-1) = 0.1587`, whatever d. The best classifier weighs
every feature by its mean a, sign <a, x>, and has the risk :math:`\Phi(-\|a\|) = \Phi(-\sqrt{1 + \log d})
\to 0`. An attacker who may move each feature by eps changes y<a, x> by :math:`\varepsilon \|a\|_1`. With
eps = 2 sqrt(log d / (d - 1)) the small means change sign: the risk becomes :math:`\Phi((\log d - 1 +
\varepsilon)/\sqrt{1 + \log d}) \to 1`, while the first feature alone loses little, :math:`\Phi(-(1 -
\varepsilon))`.

Reference: Tsipras, Santurkar, Engstrom, Turner & Madry, "Robustness may be at odds with accuracy" (2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.utils import check_random_state

__all__ = ["RobustFeatures", "robust_features_example"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RobustFeatures:
    """The distribution in d features, its classifiers and their risks.

    Attributes
    ----------
    d : int
    eps : float
        2 sqrt(log d / (d - 1)): the attack that flips every weak feature.
    means : array of shape (d,)
        E[x | y = 1]; also the weights of the best classifier.
    risk, adversarial_risk : float
        Of sign <means, x>, without attack and under linf attacks of size eps.
    first_risk, first_adversarial_risk : float
        Of sign(x_1).
    """

    d: int
    eps: float
    means: Array
    risk: float
    adversarial_risk: float
    first_risk: float
    first_adversarial_risk: float

    def sample(self, n: int, random_state: Any = None) -> tuple[Array, NDArray[np.int64]]:
        """n rows and their labels -1, 1."""
        random = check_random_state(random_state)
        y = np.where(random.uniform(size=n) < 0.5, -1, 1)
        return y[:, None] * self.means + random.standard_normal((n, self.d)), y

    def observed(
        self, n: int, random_state: Any = None, *, eps: float = 0.0
    ) -> tuple[float, float]:
        """The adversarial risk of both classifiers on n rows: all features, and the first alone."""
        wrong = np.zeros(2)
        random = check_random_state(random_state)
        weights = (self.means, np.eye(1, self.d)[0])
        height = max(1, (1 << 22) // self.d)
        for first in range(0, n, height):
            X, y = self.sample(min(height, n - first), random)
            for j, w in enumerate(weights):
                wrong[j] += np.count_nonzero(y * (X @ w) <= eps * np.abs(w).sum())
        return float(wrong[0]) / n, float(wrong[1]) / n


def robust_features_example(d: int = 1000) -> RobustFeatures:
    """The example in d features.

    Parameters
    ----------
    d : int, default=1000
        At least 2.

    Returns
    -------
    RobustFeatures

    Examples
    --------
    >>> example = robust_features_example(1000)
    >>> round(example.eps, 4), round(example.risk, 5), round(example.adversarial_risk, 5)
    (0.1663, 0.00246, 0.98461)
    >>> round(example.first_risk, 4), round(example.first_adversarial_risk, 4)
    (0.1587, 0.2022)
    """
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)) or d < 2:
        raise ValueError(f"d must be a whole number >= 2, got {d!r}.")
    weak = math.sqrt(math.log(d) / (d - 1))
    eps = 2.0 * weak
    means = np.full(int(d), weak)
    means[0] = 1.0
    size = math.sqrt(1.0 + math.log(d))
    return RobustFeatures(
        d=int(d),
        eps=eps,
        means=means,
        risk=float(norm.cdf(-size)),
        adversarial_risk=float(norm.cdf((math.log(d) - 1.0 + eps) / size)),
        first_risk=float(norm.cdf(-1.0)),
        first_adversarial_risk=float(norm.cdf(-(1.0 - eps))),
    )
