"""Attacks with scores only, with labels only, and through other models (ADV-6, ADV-7, ADV-8)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.data import load

from surefit.linear_model import LogisticRegression
from surefit.robust import (
    Threat,
    boundary_distance,
    decision_based,
    estimate_gradient,
    linear_radius,
    pgd,
    score_based,
    steal,
    transfer,
)
from surefit.svm import SVC


def smooth(X):
    return np.sin(X[:, 0]) + X[:, 0] * X[:, 1] ** 2 + np.exp(0.3 * X[:, 2])


def smooth_gradient(X):
    return np.stack(
        [np.cos(X[:, 0]) + X[:, 1] ** 2, 2 * X[:, 0] * X[:, 1], 0.3 * np.exp(0.3 * X[:, 2])], axis=1
    )


@pytest.mark.spec("ADV-6")
@pytest.mark.parametrize(("method", "order", "queries"), [("forward", 1, 4), ("central", 2, 6)])
def test_differences_have_their_order_and_their_price(method, order, queries):
    """Error O(alpha) with d + 1 queries, O(alpha^2) with 2d."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    asked = 0

    def counted(rows):
        nonlocal asked
        asked += len(rows)
        return smooth(rows)

    errors = []
    for alpha in (0.02, 0.01, 0.005):
        asked = 0
        found = estimate_gradient(counted, X, method=method, alpha=alpha)
        assert found.queries == queries
        assert asked == queries * len(X)
        errors.append(np.abs(found.gradient - smooth_gradient(X)).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    np.testing.assert_allclose(ratios, 2.0**order, rtol=0.05)


@pytest.mark.spec("ADV-6")
def test_random_directions_average_to_the_gradient():
    X = np.array([[0.3, -0.5, 0.2]])
    found = estimate_gradient(
        smooth, X, method="random", alpha=1e-4, samples=20_000, random_state=0
    )
    assert found.queries == 40_000
    g = smooth_gradient(X)
    # each entry has variance at most 2 ||g||^2 / samples; five standard deviations
    assert np.abs(found.gradient - g).max() < 5 * math.sqrt(2.0 / 20_000) * np.linalg.norm(g)


@pytest.mark.spec("ADV-6")
@pytest.mark.parametrize("method", ["forward", "central", "random"])
def test_an_attack_by_scores_counts_its_queries(method):
    X, y = load("breast_cancer")
    fitted = SVC().fit(X[:200], y[:200])
    asked = 0

    class Service:
        """A model behind a door: scores and labels, no attributes."""

        classes_ = fitted.classes_

        def decision_function(self, rows):
            nonlocal asked
            asked += len(rows)
            return fitted.decision_function(rows)

        def predict(self, rows):
            return fitted.predict(rows)

    X, y = X[200:230], y[200:230]
    found = score_based(Service(), X, y, Threat(0.5), method=method, n_iter=3, random_state=0)
    assert asked == found.queries.sum() + len(X)  # and one each for the loss that is reported
    right = fitted.predict(X) == y
    per_gradient = {"forward": 31, "central": 60, "random": 100}[method]
    # each step: one gradient, the margin of the new point; the first also that of the linearised step
    assert (found.queries[right] == 1 + 3 * (per_gradient + 1) + 1).all()
    white = pgd(fitted, X, y, Threat(0.5), n_iter=3)
    if method != "random":
        assert abs(found.rate - white.rate) <= 2 / len(X)
    assert found.rate > np.mean(~right)


@pytest.mark.spec("ADV-7")
@pytest.mark.parametrize("norm", [2, math.inf])
def test_labels_alone_find_the_distance_to_a_hyperplane(norm):
    """The distance tends to |g(x)| / ||w||_dual as the walk goes on, and is never below it."""
    random = np.random.default_rng(0)
    X = random.standard_normal((40, 4))
    y = (X @ [1.0, -2.0, 0.5, 1.5] + 0.3 > 0).astype(int)
    model = LogisticRegression(C=10.0).fit(X, y)
    y = model.predict(X)
    truth = linear_radius(model, X, y, norm)
    errors = []
    for n_iter in (0, 5, 40):
        found = boundary_distance(model, X, y, norm=norm, n_iter=n_iter, random_state=0)
        assert (model.predict(found.x) != y).all()
        assert (found.distance >= truth * (1 - 1e-9)).all()
        errors.append(np.median(found.distance / truth) - 1)
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.02


@pytest.mark.spec("ADV-7")
def test_an_attack_by_labels_only_calls_predict():
    X, y = load("breast_cancer")
    fitted = LogisticRegression().fit(X, y)
    asked = 0

    class Labels:
        classes_ = fitted.classes_

        def predict(self, rows):
            nonlocal asked
            asked += len(rows)
            return fitted.predict(rows)

    X, y = X[:40], y[:40]
    threat = Threat(1.5, 2)
    found = decision_based(Labels(), X, y, threat, n_iter=15, random_state=0)
    exact = linear_radius(fitted, X, y, 2) <= 1.5
    assert np.isnan(found.loss).all()
    assert (found.success <= exact).all()
    assert found.success.sum() >= 0.8 * exact.sum()
    right = int((fitted.predict(X) == y).sum())
    # besides the queries: labels of all rows at the start, of the pool of starts, and the check at the end
    assert asked == found.queries.sum() + 2 * len(X) + right


@pytest.mark.spec("ADV-8")
def test_a_linear_victim_is_recovered():
    """The angle between the stolen and the true normal tends to 0 as the pairs come closer."""
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 10))
    victim = LogisticRegression().fit(X, X @ random.standard_normal(10) > 0.2)
    angles = []
    for halvings in (2, 6, 12):
        found = steal(victim, X, halvings=halvings, random_state=1)
        w, v = victim.coef_[0], np.ravel(found.model.coef_)
        gap = w / np.linalg.norm(w) - v / np.linalg.norm(v)
        angles.append(2 * math.asin(np.linalg.norm(gap) / 2))
        assert found.queries == 200 + 200 * halvings
    assert angles[0] > angles[1] > angles[2]
    assert angles[2] < 1e-4
    assert found.agreement == 1.0


@pytest.mark.spec("ADV-8")
@pytest.mark.parametrize("route", ["similar data", "stolen labels"])
def test_attacks_on_a_surrogate_transfer_better_than_noise(route):
    X, y = load("breast_cancer")
    victim = SVC().fit(X[:200], y[:200])
    if route == "similar data":
        surrogate = LogisticRegression().fit(X[200:400], y[200:400])
    else:
        surrogate = steal(victim, X[200:400], learner=LogisticRegression(), random_state=0).model
    X, y = X[400:], y[400:]
    eps = 0.6
    moved = transfer(victim, X, y, Threat(eps), surrogate=surrogate)
    noise = eps * np.random.default_rng(0).choice([-1.0, 1.0], size=X.shape)
    by_noise = np.mean(victim.predict(X + noise) != y)
    assert moved.rate > by_noise + 0.2
    np.testing.assert_array_equal(moved.success, victim.predict(moved.x_adv) != y)
