"""What fits hand to sums: numbers and messages an iteration, and in all. Rank 0 writes them as JSON."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np

from surefit.cluster import KMeans
from surefit.decomposition import MatrixFactorization, ratings
from surefit.design import RankRows
from surefit.distributed import connect
from surefit.linear_model import LinearRegression, Ridge
from surefit.mixture import BernoulliMixture, GaussianMixture

__all__ = ["ITERATIVE", "K", "N", "P", "T"]

N, P, K, T = 600, 7, 3, 2  # rows, columns, clusters (components, factors), targets
MANY = 60_000  # rows a rank: so many that least squares does not refine its solution
SHORT, LONG = 3, 6  # iterations
MIXTURE = {"tol": 0.0, "init_params": "random_from_data", "random_state": 0, "certify": False}
FACTORS = {"tol": 0.0, "random_state": 0, "certify": False, "reg": 0.1}

# name: the model, the form of X
ITERATIVE = {
    "k-means": (KMeans(K, init="random", n_init=1, tol=0.0, random_state=1, certify=False), "dense"),
    "mixture, full": (GaussianMixture(K, covariance_type="full", **MIXTURE), "dense"),
    "mixture, tied": (GaussianMixture(K, covariance_type="tied", **MIXTURE), "dense"),
    "mixture, diag": (GaussianMixture(K, covariance_type="diag", **MIXTURE), "dense"),
    "mixture, spherical": (GaussianMixture(K, covariance_type="spherical", **MIXTURE), "dense"),
    "Bernoulli mixture": (BernoulliMixture(K, tol=0.0, random_state=0, certify=False), "binary"),
    "ALS": (MatrixFactorization(K, **FACTORS), "ratings"),
    "ALS, biases": (MatrixFactorization(K, biases=True, **FACTORS), "ratings"),
    "ALS, implicit": (MatrixFactorization(K, implicit=True, **FACTORS), "counts"),
    "ALS, full matrix": (MatrixFactorization(K, **FACTORS), "dense"),
}  # fmt: skip


def data():
    """The forms of X, without clusters that would be found before the last iteration."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    known = np.nonzero(rng.random(X.shape) < 0.6)
    return {
        "dense": X,
        "binary": (X > 0).astype(float),
        "ratings": ratings(*known, X[known], shape=X.shape),
        "counts": ratings(*known, np.abs(X[known]), shape=X.shape),
    }


def main(path):
    found = {}
    with connect(timeout=60) as group, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopped at max_iter, as they should
        mine, forms = group.share_of(N), data()

        def cost(model, rows, y=None):
            before = (group.traffic.bytes, group.traffic.messages)
            model.fit(RankRows(rows, group), y)
            spent = (group.traffic.bytes - before[0], group.traffic.messages - before[1])
            return np.array(spent), model

        for name, (model, form) in ITERATIVE.items():
            rows = forms[form][mine]
            short, first = cost(model.set_params(max_iter=SHORT), rows)
            assert first.n_iter_ == SHORT, name
            long, second = cost(model.set_params(max_iter=LONG), rows)
            assert second.n_iter_ == LONG, name
            found[name] = ((long - short) / (LONG - SHORT)).tolist()
        rng = np.random.default_rng(group.rank)
        many, y = rng.normal(size=(MANY, P)), rng.normal(size=(MANY, T))
        for name, model in {"ridge": Ridge, "least squares": LinearRegression}.items():
            found[name] = cost(model(certify=False), many, y)[0].tolist()
        signs = np.arange(1001.0) % (2 + group.rank) - 0.5
        before = group.traffic.bytes
        votes = group.majority(signs)
        found["vote"] = [group.traffic.bytes - before, votes.tolist()]
        everyone = group.gather(found)
        assert all(other == found for other in everyone)
        if group.rank == 0:
            with open(path, "w", encoding="utf8") as file:
                json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1])
