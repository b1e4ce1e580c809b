r"""Bias, variance and noise: where the error of an estimator comes from (GEN-8).

At a point x with target :math:`y = f(x) + \varepsilon`, over training samples S,

.. math::

   E_S E_\varepsilon\,(y - f_S(x))^2
   = \underbrace{\operatorname{Var}\varepsilon}_{\text{noise}}
   + \underbrace{(f(x) - E_S f_S(x))^2}_{\text{bias}^2}
   + \underbrace{E_S (f_S(x) - E_S f_S(x))^2}_{\text{variance}}.

The noise is a floor: no estimator gets below it. A poor model has bias, a rich one variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

__all__ = ["BiasVariance", "bias_variance"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BiasVariance:
    """The three terms, averaged over the test points, with Monte-Carlo standard errors.

    Attributes
    ----------
    noise, bias2, variance, total : float
        ``total`` is measured on noisy targets of its own, not added up.
    errors : dict
        Standard error of each of these, and of ``"gap"``.
    gap : float
        ``total - (noise + bias2 + variance)``: zero but for Monte-Carlo error.
    points : dict
        The same terms at each test point.
    n_draws : int
        How many training samples were drawn.
    """

    noise: float
    bias2: float
    variance: float
    total: float
    gap: float
    errors: dict[str, float]
    points: dict[str, Array]
    n_draws: int

    def __str__(self) -> str:
        terms = ("noise", "bias2", "variance", "total")
        lines = [
            f"{name:<9}{getattr(self, name):>12.6g} ± {self.errors[name]:.2g}" for name in terms
        ]
        return "\n".join([*lines, f"{'gap':<9}{self.gap:>12.2g} ± {self.errors['gap']:.2g}"])

    def plot(self, ax: Any = None, *, x: Any = None) -> Any:
        """The terms at each test point, stacked, with the measured total over them.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw.
        x : array of shape (n_points,), optional
            Horizontal position of the test points; their number by default.
        """
        from matplotlib import pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        place = np.arange(len(self.points["total"])) if x is None else np.asarray(x).ravel()
        order = np.argsort(place)
        stack = [
            np.maximum(self.points[name], 0.0)[order] for name in ("noise", "bias2", "variance")
        ]
        ax.stackplot(place[order], *stack, labels=["noise", "bias²", "variance"], alpha=0.7)
        ax.plot(place[order], self.points["total"][order], "k.", ms=3, label="measured total")
        ax.set_ylabel("squared error")
        ax.legend(frameon=False)
        return ax


def bias_variance(
    estimator: Any,
    truth: Callable[[Any], Any],
    draw: Callable[[int, np.random.Generator], Any],
    X: Any,
    *,
    noise: float | Callable[[Any, np.random.Generator], Any] = 1.0,
    n_train: int = 50,
    n_draws: int = 200,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> BiasVariance:
    r"""Estimate noise, bias and variance of an estimator on a known problem, by simulation.

    ``n_draws`` training samples of ``n_train`` rows are drawn, and the estimator is fitted on each. The
    estimates are unbiased: from R draws with mean prediction m(x) and sample variance s²(x), variance is s²
    and bias² is (f - m)² - s²/R, which may be slightly negative where there is no bias. The total is
    measured on targets with noise of their own. Standard errors are those of means over draws.

    Parameters
    ----------
    estimator : regressor
        Cloned for each sample.
    truth : callable
        f: maps rows to their expected target.
    draw : callable
        ``draw(n, rng)`` returns n rows.
    X : array of shape (n_points, n_features)
        Test points.
    noise : float or callable, default=1.0
        Standard deviation of Gaussian noise, or ``noise(X, rng)``, which returns one value of zero mean a
        row.
    n_train, n_draws : int
        Rows of a training sample, and how many samples; at least 2.
    n_jobs : int, default=None
        Fits at the same time.
    random_state : int, RandomState instance or None, default=None
        Seeds everything that is drawn here.

    Returns
    -------
    BiasVariance

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.linear_model import LinearRegression
    >>> X = np.linspace(-1, 1, 21)[:, None]
    >>> parts = bias_variance(
    ...     LinearRegression(), lambda X: X[:, 0] ** 2, lambda n, rng: rng.uniform(-1, 1, (n, 1)), X,
    ...     noise=0.3, n_train=30, random_state=0)
    >>> parts.bias2 > parts.variance                          # a line cannot follow a parabola
    True
    >>> abs(parts.gap) < 4 * parts.errors["gap"]
    True
    """
    if n_draws < 2 or n_train < 1:
        raise ValueError(
            f"n_draws must be at least 2 and n_train at least 1, got n_draws={n_draws!r}, "
            f"n_train={n_train!r}: a variance needs two fits."
        )
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    seeds = np.random.SeedSequence(seed).spawn(n_draws)
    shake = noise if callable(noise) else _Gaussian(float(noise))
    found = Parallel(n_jobs=n_jobs)(
        delayed(_draw)(clone(estimator), truth, draw, X, shake, n_train, part) for part in seeds
    )
    predictions = np.array([prediction for prediction, _ in found])  # (R, points)
    extra = np.array([noises for _, noises in found])
    return _decompose(np.asarray(truth(X), dtype=np.float64).ravel(), predictions, extra)


class _Gaussian:
    """Noise of one standard deviation; a class, so that it travels to other processes."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, X: Any, rng: np.random.Generator) -> Array:
        return rng.normal(0.0, self.scale, size=X.shape[0])


def _draw(
    model: Any, truth: Any, draw: Any, X: Any, noise: Any, n_train: int, seed: Any
) -> tuple[Array, Array]:
    """Predictions at X of a model fitted on a fresh sample, and fresh noise at X."""
    rng = np.random.default_rng(seed)
    rows = draw(n_train, rng)
    target = np.asarray(truth(rows), dtype=np.float64).ravel() + noise(rows, rng)
    prediction = np.asarray(model.fit(rows, target).predict(X), dtype=np.float64).ravel()
    return prediction, np.asarray(noise(X, rng), dtype=np.float64).ravel()


def _decompose(truth: Array, predictions: Array, noises: Array) -> BiasVariance:
    """The terms from R predictions and noises at each point."""
    draws = len(predictions)
    centre = predictions.mean(axis=0)
    away = predictions - centre
    variance = (away**2).sum(axis=0) / (draws - 1)
    bias2 = (truth - centre) ** 2 - variance / draws
    noise = (noises**2).mean(axis=0)
    losses = (truth + noises - predictions) ** 2
    total = losses.mean(axis=0)
    # the share of each draw in the averages over points: their spread over draws is the error
    parts = {
        "noise": (noises**2).mean(axis=1),
        "bias2": -2.0 * ((truth - centre) * away).mean(axis=1),
        "variance": (away**2).mean(axis=1),
        "total": losses.mean(axis=1),
        "gap": 2.0 * (noises * (truth - predictions)).mean(axis=1),
    }
    errors = {name: float(part.std(ddof=1) / np.sqrt(draws)) for name, part in parts.items()}
    terms = {"noise": noise, "bias2": bias2, "variance": variance, "total": total}
    means = {name: float(term.mean()) for name, term in terms.items()}
    gap = means["total"] - means["noise"] - means["bias2"] - means["variance"]
    return BiasVariance(**means, gap=gap, errors=errors, points=terms, n_draws=draws)
