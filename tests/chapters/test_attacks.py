"""What an attacker may do: fixed, integer and categorical columns, boxes; attacks keep to it exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from surefit.linear_model import LogisticRegression
from surefit.neighbors import KNeighborsClassifier
from surefit.robust import Threat, decision_based, fgsm, pgd, score_based, scores, transfer
from surefit.svm import SVC

# columns: 0, 1 continuous; 2 integer with scale 5; 3 fixed; 4-6 one-hot; 7-8 one-hot, fixed; 9 yes/no
RULES = {
    "mutable": np.array([True] * 3 + [False] + [True] * 3 + [False] * 2 + [True]),
    "step": np.array([0, 0, 0.2, 0, 0, 0, 0, 0, 0, 0]),
    "groups": [[4, 5, 6], [7, 8], [9]],
}


def table(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with the columns above, and labels that depend on all of them."""
    random = np.random.default_rng(seed)
    X = np.zeros((n, 10))
    X[:, [0, 1, 3]] = random.standard_normal((n, 3))
    X[:, 2] = random.integers(-5, 6, size=n) * 0.2
    X[np.arange(n), 4 + random.integers(0, 3, size=n)] = 1.0
    X[np.arange(n), 7 + random.integers(0, 2, size=n)] = 1.0
    X[:, 9] = random.integers(0, 2, size=n)
    w = np.array([1.0, -0.5, 1.5, 0.5, 0.7, -0.7, 0.0, 0.4, -0.4, 0.6])
    return X, (X @ w + 0.3 * random.standard_normal(n) > np.median(X @ w)).astype(int)


def all_points(x: np.ndarray, threat: Threat, fine: int) -> np.ndarray:
    """Every allowed point on a grid: ends and ``fine`` points of continuous columns, steps, switches."""
    choices = []
    reach = np.linspace(-threat.eps, threat.eps, fine)
    for j in (0, 1):
        choices.append([x[j] + t for t in reach])
    whole = math.floor(threat.eps / 0.2 + 1e-9)
    choices.append([x[2] + 0.2 * k for k in range(-whole, whole + 1)])
    categories = [
        [np.array([x[4], x[5], x[6]]), *np.eye(3)],
        [x[9:10], np.array([0.0]), np.array([1.0])],
    ]
    points = []
    for a, b, c, one, flag in itertools.product(*choices, *categories):
        moved = np.array([a, b, c]) - x[:3]
        size = np.abs(moved).max() if threat.norm == math.inf else np.linalg.norm(moved)
        switched = int((one != x[4:7]).any()) + int((flag != x[9:10]).any())
        if size <= threat.eps * (1 + 1e-12) and switched <= threat.flips:
            points.append([a, b, c, x[3], *one, x[7], x[8], *flag])
    points = np.array(points)
    if threat.lower is not None:
        points = points[(points[:, :3] >= threat.lower - 1e-12).all(axis=1)]
    return points


@pytest.mark.parametrize("eps", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("flips", [0, 1, 2])
@pytest.mark.parametrize("lower", [None, -0.4])
def test_the_worst_point_is_that_of_exhaustive_search(eps, flips, lower):
    """linf, where the best continuous moves are the ends: the search is over all of them."""
    X, _ = table(20)
    X[:, :3] = np.clip(X[:, :3], -0.4, None).round(1)
    random = np.random.default_rng(1)
    threat = Threat(eps, flips=flips, lower=lower, **RULES)
    G = random.standard_normal((20, 10))
    worst = threat.worst_linear(X, G)
    assert threat.exact
    assert threat.contains(X, worst.x).all()
    np.testing.assert_allclose(worst.value, (G * (worst.x - X)).sum(axis=1), atol=1e-13)
    for x, g, value in zip(X, G, worst.value):
        if lower is None:
            points = all_points(x, threat, 3)
        else:  # the ends move to the wall
            points = np.array([np.concatenate([np.maximum(p[:2], lower), p[2:]])
                               for p in all_points(x, Threat(eps, flips=flips, **RULES), 3)])  # fmt: skip
            points = points[points[:, 2] >= lower - 1e-12]
        np.testing.assert_allclose(((points - x) @ g).max(), value, atol=1e-12)


@pytest.mark.parametrize("flips", [0, 1])
def test_l2_with_steps_lies_between_a_point_and_a_bound(flips):
    X, _ = table(5)
    random = np.random.default_rng(1)
    threat = Threat(0.5, 2, flips=flips, **RULES)
    G = random.standard_normal((5, 10))
    worst = threat.worst_linear(X, G)
    assert not threat.exact
    assert threat.contains(X, worst.x).all()
    for x, g, value, bound in zip(X, G, worst.value, worst.bound):
        best = ((all_points(x, threat, 21) - x) @ g).max()
        assert best <= bound + 1e-12
        assert value <= bound + 1e-12
        assert value >= 0.7 * best  # rounding gives away at most a step


def test_l2_in_a_box_is_exact():
    """Water filling against a solver for the same problem."""
    from scipy.optimize import minimize

    random = np.random.default_rng(0)
    x0, g = random.uniform(-1, 1, (6, 4)), random.standard_normal((6, 4))
    threat = Threat(0.7, 2, lower=-1.0, upper=1.0)
    worst = threat.worst_linear(x0, g)
    assert threat.contains(x0, worst.x).all()
    assert (worst.x <= 1).all()
    assert (worst.x >= -1).all()
    for x, direction, value in zip(x0, g, worst.value):
        found = minimize(
            lambda p, x=x, c=direction: -c @ (p - x), x, jac=lambda p, c=direction: -c,
            bounds=[(-1, 1)] * 4, method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
            constraints={"type": "ineq", "fun": lambda p, x=x: 0.49 - ((p - x) ** 2).sum(),
                         "jac": lambda p, x=x: -2 * (p - x)},
        )  # fmt: skip
        np.testing.assert_allclose(-found.fun, value, rtol=1e-6)


@pytest.mark.parametrize("norm", [2, math.inf])
@pytest.mark.parametrize("flips", [0, 1, 2])
def test_projections_land_in_the_set_and_leave_it_alone(norm, flips):
    X, _ = table(200)
    random = np.random.default_rng(2)
    threat = Threat(0.45, norm, flips=flips, lower=-3.0, upper=3.0, **RULES)
    moved = threat.project(X, X + random.standard_normal(X.shape))
    assert threat.contains(X, moved).all()
    assert not threat.contains(X, X + 2.0).any()
    np.testing.assert_array_equal(moved[:, [3, 7, 8]], X[:, [3, 7, 8]])
    again = threat.project(X, moved)
    np.testing.assert_allclose(again, moved, rtol=0, atol=1e-14)


@pytest.mark.parametrize("flips", [0, 1, 2])
@pytest.mark.parametrize("norm", [2, math.inf])
@pytest.mark.parametrize("attack", ["fgsm", "pgd", "score_based", "decision_based", "transfer"])
@pytest.mark.parametrize("model", ["logistic", "svc", "neighbours", "forest"])
def test_attacks_respect_columns_exactly(attack, norm, flips, model):
    X, y = table(150)
    fitted = {
        "logistic": LogisticRegression(),
        "svc": SVC(),
        "neighbours": KNeighborsClassifier(),
        "forest": RandomForestClassifier(5, max_depth=3, random_state=0),
    }[model].fit(X[:100], y[:100])
    X, y = X[100:], y[100:]
    eps = 0.5
    threat = Threat(eps, norm, flips=flips, **RULES)
    options = (
        {"surrogate": LogisticRegression().fit(*table(100, 1))} if attack == "transfer" else {}
    )
    run = {
        "fgsm": fgsm,
        "pgd": pgd,
        "score_based": score_based,
        "decision_based": decision_based,
        "transfer": transfer,
    }[attack]
    found = run(fitted, X, y, threat, random_state=0, **options)
    moved = found.x_adv
    np.testing.assert_array_equal(moved[:, [3, 7, 8]], X[:, [3, 7, 8]])
    steps = (moved[:, 2] - X[:, 2]) / 0.2
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-12)
    switched = (moved[:, 4:7] != X[:, 4:7]).any(axis=1).astype(int) + (moved[:, 9] != X[:, 9])
    assert switched.max() <= flips
    np.testing.assert_array_equal(np.sort(moved[:, 4:7], axis=1), [[0.0, 0.0, 1.0]] * len(X))
    assert np.isin(moved[:, 9], [0.0, 1.0]).all()
    delta = moved[:, :3] - X[:, :3]
    size = np.abs(delta).max(axis=1) if norm == math.inf else np.linalg.norm(delta, axis=1)
    assert (size <= eps * (1 + 1e-12)).all()
    np.testing.assert_array_equal(found.success, fitted.predict(moved) != y)


def test_switches_are_found_by_gradient_steps():
    """With switches allowed the attack breaks rows that it could not break without."""
    X, y = table(200)
    model = LogisticRegression().fit(X, y)
    rates = [pgd(model, X, y, Threat(0.3, flips=flips, **RULES)).rate for flips in (0, 1, 2)]
    assert rates[0] < rates[1] < rates[2]


def test_scaled_blocks_switch_between_their_two_values():
    off, on = np.full(3, -0.5), np.full(3, 1.5)
    x0 = np.array([[1.5, -0.5, -0.5]])
    threat = Threat(0.1, groups=[[0, 1, 2]], flips=1, off=off, on=on)
    worst = threat.worst_linear(x0, np.array([0.0, 1.0, 0.5]))
    np.testing.assert_array_equal(worst.x, [[-0.5, 1.5, -0.5]])
    assert worst.value[0] == 2.0
    assert threat.contains(x0, worst.x).all()
    assert not threat.contains(x0, np.array([[-0.5, -0.5, -0.5]])).any()


def test_a_row_outside_the_box_is_not_forced_into_it():
    threat = Threat(0.5, lower=0.0, upper=1.0)
    x0 = np.array([[2.0, 0.5]])
    assert threat.contains(x0, x0).all()
    worst = threat.worst_linear(x0, np.array([1.0, 1.0]))
    np.testing.assert_allclose(worst.x, [[2.0, 1.0]])


@pytest.mark.parametrize("norm", [2, math.inf])
def test_nothing_moves_at_radius_zero(norm):
    X, y = table(40)
    model = LogisticRegression().fit(X, y)
    found = pgd(model, X, y, Threat(0.0, norm, flips=2, **RULES), restarts=2, random_state=0)
    np.testing.assert_array_equal(found.x_adv, X)
    np.testing.assert_array_equal(found.success, model.predict(X) != y)


def test_single_precision_stays_single():
    X, y = table(60)
    model = LogisticRegression().fit(X, y)
    found = pgd(model, X.astype(np.float32), y, Threat(0.3, 2))
    assert found.x_adv.dtype == np.float32
    assert found.success.any()


def test_labels_that_the_model_does_not_know_are_wrong_already():
    X, y = table(40)
    model = LogisticRegression().fit(X, y)
    found = fgsm(model, X[:5], [7] * 5, Threat(0.3))
    assert found.success.all()
    np.testing.assert_array_equal(found.x_adv, X[:5])


def test_kinds_of_models():
    X, y = table(60)
    kinds = {
        "linear": LogisticRegression(),
        "kernel machine, Gaussian kernel": SVC(),
        "nearest neighbours": KNeighborsClassifier(),
        "known by its scores": DecisionTreeClassifier(),
    }
    for words, model in kinds.items():
        assert scores(model.fit(X, y)).words == words
    only = scores(lambda rows: np.zeros(len(rows), dtype=int), classes=[0, 1])
    assert only.words == "labels only"
    assert only.margin is None
    searched = type("Search", (), {"best_estimator_": kinds["linear"]})()
    assert scores(searched).words == "linear"


def test_torch_and_numpy_sets_agree():
    torch = pytest.importorskip("torch")
    X, _ = table(30)
    random = np.random.default_rng(0)
    G = random.standard_normal(X.shape)
    for norm in (2, math.inf):
        for rules in ({}, {"lower": -1.0}, RULES, {**RULES, "flips": 1}):
            threat = Threat(0.4, norm, **rules)
            ours = threat.worst_linear(X, G)
            theirs = threat.worst_linear(torch.as_tensor(X), torch.as_tensor(G))
            np.testing.assert_allclose(theirs.x.numpy(), ours.x, rtol=0, atol=1e-14)
            np.testing.assert_allclose(
                threat.project(torch.as_tensor(X), torch.as_tensor(X + G)).numpy(),
                threat.project(X, X + G), rtol=0, atol=1e-14,
            )  # fmt: skip
