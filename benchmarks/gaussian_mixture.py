"""Gaussian mixtures: 20 steps of EM from the same parameters, 50 000 rows of 20 columns, 20 components."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from .harness import paired, seconds
from .peers import ours, peer
from .report import goal_cells, goal_line, paired_page, ratio_text, short, size

TITLE = "Gaussian mixtures"
TEXT = """
`GaussianMixture(20, max_iter=20, tol=0, weights_init=..., means_init=..., precisions_init=...)`: uniform
weights, random rows as means, the precision of the data for every component. Each contender takes 20 steps of
EM; ours also certifies (*alone* is without). The final parameters are judged by one evaluator, which adds up
scipy's log-densities in float64: *difference* is ours less the peer's mean log-likelihood.
The goal is for full covariances.
"""
WHY = """
the certificate takes 0.05 of 0.22 seconds, since it makes an EM step with code of its own; without it the
ratio is 25.
"""
KINDS = ("full", "tied", "diag", "spherical")
STEPS = 20


def measure(options: Any) -> dict[str, Any]:
    import sklearn.mixture

    model = ours("GaussianMixture", "mixture")
    if model is None:
        return {"skipped": "surefit.mixture has no GaussianMixture yet."}
    peers = [("scikit-learn", sklearn.mixture.GaussianMixture)]
    if intelex := peer("sklearnex.mixture"):
        peers.append(("scikit-learn-intelex", intelex.GaussianMixture))
    n, p, K = (2_000, 5, 3) if options.quick else (50_000, 20, 20)
    X = rows(n, p, K, np.random.default_rng(21))
    record = []
    for kind in KINDS:
        settings = {**start(X, K, kind), "covariance_type": kind, "max_iter": STEPS, "tol": 0.0}
        fit = partial(_fit, model, K, settings, X)
        first, mine = seconds(fit)
        alone = min(
            seconds(partial(_fit, model, K, {**settings, "certify": False}, X))[0] for _ in range(3)
        )
        for name, theirs in peers:
            print(f"    {kind}: {name} ...", flush=True)
            taken, other = seconds(partial(_fit, theirs, K, settings, X))
            count = min(options.pairs, 3) if taken > 10 else options.pairs
            row = {
                "work": f"{kind} covariances, {size(n, p)}, {K} components, {STEPS} steps",
                "peer name": name,
                "first call": first,
                "alone": alone,
                "difference": likelihood(mine, X) - likelihood(other, X),
                "goal": 20.0 if kind == "full" and name == "scikit-learn" else None,
            }
            record.append(row | paired(fit, partial(_fit, theirs, K, settings, X), count))
    return {"rows": record, "goals": [goal_line(row) for row in record if row["goal"]]}


def page(results: dict[str, Any]) -> str:
    heads = [
        "work",
        "peer",
        "ours s",
        "alone s",
        "peer s",
        "ratio",
        "worst",
        "difference",
        "goal",
        "reached",
    ]
    lines = []
    for row in results["rows"]:
        lines.append([
            row["work"], row["peer name"], short(row["ours"]), short(row["alone"]), short(row["peer"]),
            ratio_text(row), f"{row['worst']:.2f}", f"{row['difference']:.1e}", *goal_cells(row),
        ])  # fmt: skip
    return paired_page(TITLE, TEXT, WHY, results, heads, lines)


def rows(n: int, p: int, K: int, rng: np.random.Generator) -> Any:
    """Overlapping clouds, each with correlations of its own."""
    label = rng.integers(0, K, n)
    turns, centres = rng.standard_normal((K, p, p)) / np.sqrt(p), 1.5 * rng.standard_normal((K, p))
    noise = rng.standard_normal((n, p))
    X = np.empty((n, p))
    for k in range(K):
        X[label == k] = noise[label == k] @ turns[k] + centres[k]
    return X


def start(X: Any, K: int, kind: str) -> dict[str, Any]:
    """Uniform weights, random rows, the precision of the data."""
    covariance = np.cov(X.T, bias=True)
    precision = np.linalg.inv(covariance)
    shapes = {
        "full": np.stack([precision] * K),
        "tied": precision,
        "diag": np.stack([1.0 / np.diag(covariance)] * K),
        "spherical": np.full(K, 1.0 / np.diag(covariance).mean()),
    }
    means = X[np.random.default_rng(5).choice(len(X), K, replace=False)]
    return {
        "weights_init": np.full(K, 1.0 / K),
        "means_init": means,
        "precisions_init": shapes[kind],
    }


def likelihood(model: Any, X: Any) -> float:
    """The mean log-likelihood, from weights, means and covariances alone, by scipy's densities."""
    K, p = model.means_.shape
    each = {
        "full": lambda k: model.covariances_[k],
        "tied": lambda k: model.covariances_,
        "diag": lambda k: np.diag(model.covariances_[k]),
        "spherical": lambda k: np.eye(p) * model.covariances_[k],
    }[model.covariance_type]
    parts = [multivariate_normal(model.means_[k], each(k)).logpdf(X) for k in range(K)]
    return float(logsumexp(np.array(parts) + np.log(model.weights_)[:, None], axis=0).mean())


def _fit(model: Any, K: int, settings: dict[str, Any], X: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 20 steps are what was asked for
        return model(K, **settings).fit(X)
