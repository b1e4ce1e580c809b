"""Coverage of the intervals of QuantileRegressor.summary, over sample sizes, quantiles and noise.

Run ``python -m benchmarks.quantile_intervals [repetitions]``; docs/interpretation.md quotes its output.
One covariate, uniform on (0, 2); y = 1 + 2 x + noise, the same for all rows or of size 1/2 + x; normal or
exponential noise. An interval covers the true coefficient exactly when the statistic there is at most its
critical value, so that no interval has to be searched for: with two columns the quantile regression of the
other coefficient is a weighted quantile, in closed form, and the library's own search decides the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from surefit.linear_model._summary.signs import Scores, critical_value

LEVEL = 0.95
SIZES, QUANTILES = (25, 60, 200, 1000), (0.5, 0.9, 0.97)
FAR = 1e6
Array = NDArray[np.float64]


class Case(NamedTuple):
    """One line of the table."""

    n: int
    tau: float
    noise: str
    grows: bool

    def residuals(self, x: Array, rng: np.random.Generator) -> Array:
        """The noise less its quantile: what is left at the true coefficients."""
        law = stats.norm if self.noise == "normal" else stats.expon
        u = law.rvs(size=self.n, random_state=rng) - law.ppf(self.tau)
        return np.asarray((0.5 + x) * u if self.grows else u)


class Result(NamedTuple):
    """Shares of the repetitions: given, covering among these, and null hypotheses rejected."""

    given: Array
    covered: Array
    rejected_5: Array
    rejected_1: Array


def cases() -> Iterator[Case]:
    for n in SIZES:
        for tau in QUANTILES:
            for grows in (False, True):
                for noise in ("normal", "exponential"):
                    yield Case(n, tau, noise, grows)


def profile(scores: Scores, j: int, target: Array) -> float:
    """Q where the score of the other, positive, column is zero: a weighted quantile, in closed form."""
    z = scores.A[:, 1 - j]
    order = np.argsort(target / z)
    mass = np.cumsum(z[order])
    wanted = scores.tau * mass[-1]
    k = int(np.searchsorted(mass, wanted))
    below = np.zeros(len(z))
    below[order[:k]] = 1.0
    below[order[k]] = (wanted - (mass[k - 1] if k else 0.0)) / z[order[k]]
    return scores._size(below - scores.tau)


def measure(case: Case, repetitions: int) -> Result:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 2.0, size=case.n)
    A = np.column_stack([np.ones(case.n), x])
    scores = Scores(A, np.zeros(case.n), np.ones(case.n), case.tau)
    draws = scores.simulate()
    critical, strict = (critical_value(draws, level) for level in (LEVEL, 0.99))
    given, covered, rejected_5, rejected_1 = np.zeros((4, 2))
    for _ in range(repetitions):
        scores.y = case.residuals(x, rng)  # at the truth both coefficients are 0
        for j in range(2):
            size = profile(scores, j, scores.y)
            if size > critical:
                size = min(size, scores.smallest(j, 0.0, 0.0))
            bounded = all(
                profile(scores, j, scores.y - sign * FAR * A[:, j]) > critical for sign in (-1, 1)
            )
            given[j] += bounded
            covered[j] += bounded and size <= critical
            rejected_5[j] += size > critical
            rejected_1[j] += size > strict
    with np.errstate(invalid="ignore"):
        share = covered / given
    return Result(given / repetitions, share, rejected_5 / repetitions, rejected_1 / repetitions)


def main(repetitions: int = 2000) -> None:
    # The least number covered that a true coverage of 95 % leaves in 99.9 % of such simulations.
    print(f"{repetitions} repetitions; intercept / slope")
    print("| n | quantile | noise | interval given | covers | p <= 0.05 | p <= 0.01 |")
    print("|---|---|---|---|---|---|---|")
    for case in cases():
        r = measure(case, repetitions)
        words = f"{case.noise}, {'grows with x' if case.grows else 'same for all'}"
        cells = [
            f"{100 * r.given[0]:.0f} / {100 * r.given[1]:.0f} %",
            " / ".join("—" if np.isnan(c) else f"{c:.3f}" for c in r.covered),
            f"{r.rejected_5[0]:.3f} / {r.rejected_5[1]:.3f}",
            f"{r.rejected_1[0]:.4f} / {r.rejected_1[1]:.4f}",
        ]
        print(f"| {case.n} | {case.tau:g} | {words} | " + " | ".join(cells) + " |", flush=True)
        least = stats.binom.ppf(0.001, repetitions, LEVEL) / repetitions
        given_often = r.given > 0.5
        assert (r.covered[given_often] >= least).all(), (case, r)
        most = [stats.binom.ppf(0.999, repetitions, level) / repetitions for level in (0.05, 0.01)]
        assert (r.rejected_5 <= most[0]).all(), (case, r)
        assert (r.rejected_1 <= most[1]).all(), (case, r)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
