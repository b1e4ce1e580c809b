"""Novikoff's theorem: from 0, the perceptron makes at most C^2 / gamma^2 mistakes (PER-3).

And its companions: what happens without a separating hyperplane (PER-6, PER-7) and with a penalty (PER-5).
"""

from __future__ import annotations

import copy
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog, minimize

import surefit
from surefit import Kind, Status
from surefit.linear_model import Perceptron
from surefit.separation import separate
from surefit.solvers.perceptron import perceptron, updates, visits

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
OR = np.array([-1.0, 1.0, 1.0, 1.0])
XOR = np.array([-1.0, 1.0, 1.0, -1.0])
WORDS = ("11011", "00110", "01100", "10010", "10101", "10110")
EMAILS = np.array([[int(word) for word in row] for row in WORDS])
SPAM = np.array([1, -1, 1, -1, 1, -1])
EPS = np.finfo(np.float64).eps


def padded(X: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))])


def separable(seed: int, n: int = 60, d: int = 4, margin: float = 0.1):
    """Rows at least ``margin`` from a hidden hyperplane (unit normal in the space of (x, 1))."""
    rng = np.random.default_rng(seed)
    plane = rng.normal(size=d + 1)
    plane /= np.linalg.norm(plane)
    X = rng.normal(size=(40 * n, d))
    scores = padded(X) @ plane
    keep = np.flatnonzero(np.abs(scores) >= margin)[:n]
    return X[keep], np.sign(scores[keep]), plane


def cyclic(X, y, **parameters):
    return Perceptron(shuffle=False, tol=None, **parameters).fit(X, y)


def linearly_separable(X: np.ndarray, y: np.ndarray) -> bool:
    """By linear programming: is there a v with y (x, 1) v >= 1 in every row?"""
    Z = y[:, None] * padded(X)
    bounds = [(None, None)] * Z.shape[1]
    return linprog(np.zeros(Z.shape[1]), -Z, -np.ones(len(Z)), bounds=bounds).status == 0


# ---------------------------------------------------------------------------- the bound


@pytest.mark.spec("PER-3")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("shuffle", [False, True])
def test_mistakes_never_exceed_the_bound(seed, shuffle):
    X, y, plane = separable(seed)
    gamma = np.min(y * (padded(X) @ plane))
    C2 = np.max(np.sum(padded(X) ** 2, axis=1))
    model = Perceptron(shuffle=shuffle, random_state=seed, tol=None).fit(X, y)
    assert gamma >= 0.1
    assert 0 < model.mistakes_[0] <= C2 / gamma**2
    assert model.training_mistakes_[0] == 0
    claim = model.certificate_["mistake bound"]
    assert claim.status is Status.HOLDS
    assert claim.kind is Kind.BOUND
    assert claim.observed == model.mistakes_[0]


@pytest.mark.spec("PER-3")
@pytest.mark.parametrize("seed", range(4))
def test_the_two_inequalities_of_the_proof_hold_at_every_update(seed):
    X, y, plane = separable(seed)
    gamma = np.min(y * (padded(X) @ plane))
    C2 = np.max(np.sum(padded(X) ** 2, axis=1))
    count = 0
    for here, _ in updates(X, y, epochs=200):
        count += 1
        v = np.append(here.w, here.b)
        slack = 10 * count * EPS * C2  # rounding of a sum of ``count`` rows
        assert v @ plane >= gamma * here.mistakes - slack
        assert v @ v <= C2 * here.mistakes + slack
    assert count > 3


@pytest.mark.spec("PER-3", "DAT-5", "PER-1")
def test_the_numbers_of_the_or_function():
    model = cyclic(SQUARE, OR)
    assert_array_equal(model.coef_, [[2.0, 2.0]])
    assert_array_equal(model.intercept_, [-1.0])
    assert_array_equal(model.mistakes_, [9])
    report = surefit.verify(model, SQUARE, OR)
    assert report.ok
    bound = report["mistake bound"]
    assert bound.observed == 9
    assert bound.bound == pytest.approx(27, rel=1e-12)
    best = separate(SQUARE, OR)
    assert best.margin == pytest.approx(1 / 3, rel=1e-12)
    assert best.residual == pytest.approx(1 / 3, rel=1e-12)  # no margin is wider
    assert_allclose(np.append(best.w, best.b) / best.b, [-2, -2, 1], rtol=1e-12)


@pytest.mark.spec("PER-3", "DAT-4")
def test_the_numbers_of_the_e_mails():
    model = cyclic(EMAILS, SPAM)
    fitted = model.certificate_["mistake bound"]
    assert (fitted.observed, fitted.status) == (4, Status.HOLDS)
    assert fitted.bound == pytest.approx(5 * 6, rel=1e-12)  # the margin of w itself: 1/sqrt(6)
    best = surefit.verify(model, EMAILS, SPAM)["mistake bound"]
    assert best.bound == pytest.approx(5 * 3, rel=1e-9)  # the widest: 1/sqrt(3)
    assert "widest" in best.statement
    full = cyclic(EMAILS, SPAM, certify="full").certificate_["mistake bound"]
    assert full.bound == best.bound


@pytest.mark.spec("PER-3")
@pytest.mark.parametrize("d", [2, 7, 50])
def test_the_bound_is_attained(d):
    """Orthonormal rows: d mistakes, C = 1, gamma = 1/sqrt(d). No slack for a sloppy bound."""
    signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0)
    model = cyclic(np.eye(d), signs, fit_intercept=False, certify="full")
    claim = model.certificate_["mistake bound"]
    assert claim.observed == d
    assert claim.bound == pytest.approx(d, rel=1e-9)
    assert claim.status is Status.HOLDS


@pytest.mark.spec("PER-3")
def test_any_separating_hyperplane_gives_a_valid_weaker_bound():
    X, y, _ = separable(3)
    model = Perceptron(tol=None).fit(X, y)
    own = model.certificate_["mistake bound"]
    best = surefit.verify(model, X, y)["mistake bound"]
    assert model.mistakes_[0] <= best.bound <= own.bound
    assert "fitted hyperplane" in own.statement


# ---------------------------------------------------------------------------- what it assumes


@pytest.mark.spec("PER-3")
def test_the_bound_assumes_a_start_at_zero():
    """ERR-25: from a bad start there are more mistakes than C^2/gamma^2, and nothing is claimed."""
    model = Perceptron(shuffle=False, tol=None)
    model.fit(SQUARE, OR, coef_init=[[-50.0, -50.0]], intercept_init=[0.0])
    assert model.mistakes_[0] > 27
    claim = model.certificate_["mistake bound"]
    assert claim.status is Status.UNDECIDED
    assert "started elsewhere" in claim.statement


@pytest.mark.spec("PER-1", "DAT-8")
def test_a_strict_mistake_test_never_moves():
    """ERR-24: with y * score < 0 instead of <= 0, w = 0 stays for ever."""
    w = np.zeros(3)
    for x, label in zip(padded(SQUARE), OR):
        if label * (x @ w) < 0:
            w = w + label * x
    assert_array_equal(w, 0)
    assert cyclic(SQUARE, OR, max_iter=1).mistakes_[0] > 0


@pytest.mark.spec("PER-3")
@pytest.mark.parametrize(
    ("parameters", "weight", "reason"),
    [
        ({"penalty": "l2"}, None, "penalty='l2'"),
        ({"class_weight": {-1: 1.0, 1: 3.0}}, None, "weights"),
        ({}, [1.0, 2.0, 1.0, 1.0], "weights"),
    ],
)
def test_other_runs_are_left_undecided_with_the_reason(parameters, weight, reason):
    model = cyclic(SQUARE, OR, max_iter=200, **parameters)
    if weight is not None:
        model.fit(SQUARE, OR, sample_weight=weight)
    claim = model.certificate_["mistake bound"]
    assert claim.status is Status.UNDECIDED
    assert reason in claim.statement


@pytest.mark.spec("PER-3")
def test_equal_weights_and_the_step_only_scale_the_run():
    plain = cyclic(SQUARE, OR)
    scaled = cyclic(SQUARE, OR, eta0=0.25).fit(SQUARE, OR, sample_weight=np.full(4, 4.0))
    assert_array_equal(scaled.coef_, plain.coef_)
    assert scaled.certificate_["mistake bound"].status is Status.HOLDS


# ---------------------------------------------------------------------------- it can fail


@pytest.mark.spec("PER-3")
def test_a_forged_mistake_count_fails():
    model = cyclic(SQUARE, OR)
    forged = copy.deepcopy(model)
    forged.mistakes_ = np.array([28])
    assert surefit.verify(forged, SQUARE, OR)["mistake bound"].status is Status.FAILS
    forged.mistakes_ = np.array([26])  # within the bound: the theorem has nothing against it
    assert surefit.verify(forged, SQUARE, OR)["mistake bound"].status is Status.HOLDS


@pytest.mark.spec("PER-3")
def test_nudges_are_noticed():
    X, y, _ = separable(5)
    model = Perceptron(tol=None).fit(X, y)
    broken = copy.deepcopy(model)
    worst = int(np.argmin(y * model.decision_function(X)))
    broken.coef_ = model.coef_ - 2 * y[worst] * X[worst] * np.abs(
        model.decision_function(X)[worst] / (X[worst] @ X[worst])
    )
    assert "objective_" in surefit.verify(broken, X, y)["attributes"].statement
    broken.objective_ = np.maximum(-y * broken.decision_function(X), 0).mean(keepdims=True)
    report = surefit.verify(broken, X, y)
    assert report["training mistakes"].status is Status.FAILS
    assert report["margin"].status is Status.FAILS
    slight = copy.deepcopy(model)
    slight.coef_ = model.coef_ * (1 + 1e-6)
    report = surefit.verify(slight, X, y)
    assert report["training mistakes"].status is Status.HOLDS  # still true of the nudged model
    assert report["margin"].status is Status.FAILS
    shifted = copy.deepcopy(model)
    shifted.intercept_ = model.intercept_ + 1e-6
    assert surefit.verify(shifted, X, y)["margin"].status is Status.FAILS


# ---------------------------------------------------------------------------- no hyperplane


@pytest.mark.spec("PER-6", "DAT-5")
def test_the_farkas_weights_of_xor():
    lam = np.ones(4)
    assert_array_equal(lam @ (XOR[:, None] * padded(SQUARE)), 0)
    found = separate(SQUARE, XOR)
    assert_allclose(4 * found.farkas, lam, rtol=1e-12)
    assert found.residual <= 20 * EPS
    assert found.margin <= found.residual
    claim = surefit.verify(cyclic(SQUARE, XOR, max_iter=10), SQUARE, XOR)["separability"]
    assert claim.status is Status.HOLDS
    assert claim.kind is Kind.EXACT
    assert "no hyperplane separates" in claim.statement


@pytest.mark.spec("PER-6")
def test_the_four_inequalities_of_xor_contradict():
    """ERR-1: b < 0, w1 + b > 0, w2 + b > 0, w1 + w2 + b < 0; with the OR label they do not."""
    assert not linearly_separable(SQUARE, XOR)
    assert linearly_separable(SQUARE, OR)


@pytest.mark.spec("PER-6")
@pytest.mark.parametrize("seed", range(30))
def test_exactly_one_side_of_the_alternative_holds(seed):
    """Gordan: a separating hyperplane or Farkas weights, never both; decided as the LP decides."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(rng.integers(4, 14), 3)).astype(float)
    y = rng.choice([-1.0, 1.0], size=len(X))
    found = separate(X, y)
    Z = y[:, None] * padded(X)
    C = np.sqrt(np.max(np.sum(Z**2, axis=1)))
    floor = 100 * len(X) * EPS * C
    assert np.all(found.farkas >= 0)
    assert found.farkas.sum() == pytest.approx(1, rel=1e-12)
    assert np.linalg.norm(found.farkas @ Z) == pytest.approx(found.residual, abs=floor)
    if linearly_separable(X, y):
        v = np.append(found.w, found.b)
        assert np.min(Z @ v) / np.linalg.norm(v) == pytest.approx(found.margin, abs=floor)
        assert 0 < found.margin <= found.residual + floor
        assert found.residual - found.margin <= 1e-7 * C  # the two proofs meet
    else:
        assert found.residual <= floor
        assert found.margin <= floor


@pytest.mark.spec("PER-3")
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_widest_margin_is_the_hard_margin_solution(fit_intercept):
    """min ||v||^2 subject to y (x, 1) v >= 1 has ||v|| = 1/gamma; solved by SLSQP."""
    X, y, _ = separable(11, n=25, d=2)
    if not fit_intercept:
        X = X + 3 * np.outer(y, [1.0, 1.0])
    Z = y[:, None] * (padded(X) if fit_intercept else X)
    found = separate(X, y, fit_intercept=fit_intercept)
    start = (np.append(found.w, found.b) if fit_intercept else found.w) / found.margin**2
    solved = minimize(
        lambda v: v @ v,
        1.5 * start,
        jac=lambda v: 2 * v,
        constraints={"type": "ineq", "fun": lambda v: Z @ v - 1, "jac": lambda v: Z},
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    assert solved.success
    assert found.margin == pytest.approx(1 / np.sqrt(solved.fun), rel=1e-6)


@pytest.mark.spec("PER-6")
def test_a_stopped_run_on_separable_data_is_told_so():
    X, y, _ = separable(2, margin=0.02)
    model = Perceptron(max_iter=1, tol=None).fit(X, y)
    assert model.training_mistakes_[0] > 0
    assert model.certificate_["separability"].status is Status.UNDECIDED
    assert "not separated by this model" in model.certificate_["separability"].statement
    claim = surefit.verify(model, X, y)["separability"]
    assert claim.status is Status.HOLDS
    assert "another hyperplane separates" in claim.statement


@pytest.mark.spec("PER-6")
@pytest.mark.parametrize("seed", range(10))
def test_columns_of_very_unequal_size_are_settled_too(seed):
    """Separability does not depend on the units of the columns; the answer does not either."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 6)), np.repeat([-1.0, 1.0], 15)
    truth = linearly_separable(X, y)
    units = 10.0 ** rng.integers(-6, 7, size=6)
    found = separate(X * units, y)
    assert (found.margin > 0) == truth
    if not truth:
        assert found.residual <= 100 * EPS * 36 * np.linalg.norm(X * units, axis=1).max()


@pytest.mark.spec("PER-6")
def test_labels_are_checked():
    with pytest.raises(ValueError, match=r"y must hold a label -1 or \+1"):
        separate(SQUARE, [0, 1, 1, 0])


@pytest.mark.spec("PER-7", "PER-6", "DAT-5")
def test_xor_returns_to_zero_after_every_epoch():
    for here in islice(perceptron(SQUARE, XOR), 25):
        assert_array_equal(here.x.w, 0)
        assert here.x.b == 0
        assert here.x.epoch_mistakes == 4
    model = cyclic(SQUARE, XOR, max_iter=25)
    assert_array_equal(model.coef_, 0)
    assert model.n_iter_ == 25


@pytest.mark.spec("PER-7")
@pytest.mark.parametrize("seed", range(5))
def test_without_a_hyperplane_the_iterates_cycle(seed):
    """Integer data: the iterates stay in a bounded set of integer vectors, so a state comes back."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(12, 2)).astype(float)
    y = rng.choice([-1.0, 1.0], size=12)
    assert not linearly_separable(X, y)
    run = perceptron(X, y)
    seen, states = {}, []
    for here in islice(run, 5000):
        assert here.x.epoch_mistakes > 0  # never converges
        state = (*here.x.w, here.x.b)
        if state in seen:
            break
        seen[state] = len(states)
        states.append(state)
    else:
        pytest.fail("no state came back in 5000 epochs")
    period = len(states) - seen[state]
    again = [(*it.x.w, it.x.b) for it in islice(run, period)]
    assert again[-1] == state
    assert max(map(np.linalg.norm, states)) <= 12 * np.max(np.linalg.norm(padded(X), axis=1))


# ---------------------------------------------------------------------------- with a penalty


@pytest.mark.spec("PER-5")
@pytest.mark.parametrize("rate", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("l2", [0.1, 0.5])
def test_the_regret_of_the_penalised_run_is_bounded(rate, l2):
    """On XOR from w = 0, where the objective is least: mean of loss + penalty <= (rate/2) G^2.

    G bounds the subgradients -y(x, 1) + l2 (w, 0): ||(x, 1)|| <= R, and w stays in the ball R/l2.
    """
    R = np.sqrt(3.0)
    run = list(islice(perceptron(SQUARE, XOR, rate=rate, l2=l2), 300))
    assert all(np.linalg.norm(here.x.w) <= R / l2 for here in run)
    mean = np.mean([here.value for here in run])
    assert 0 < mean <= rate / 2 * (2 * R) ** 2


@pytest.mark.spec("PER-5")
@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet"])
def test_a_penalised_fit_on_xor_has_a_finite_optimum_and_a_certificate(penalty):
    model = cyclic(SQUARE, XOR, penalty=penalty, alpha=0.1, eta0=0.01, max_iter=300, certify="full")
    certificate = model.certificate_
    assert certificate.ok
    share = {"l1": 1.0, "l2": 0.0, "elasticnet": model.l1_ratio}[penalty]

    def objective(v):
        w, b = v[:2], v[2]
        loss = np.maximum(-XOR * (SQUARE @ w + b), 0).mean()
        return loss + 0.1 * (share * np.abs(w).sum() + (1 - share) / 2 * w @ w)

    here = np.append(model.coef_[0], model.intercept_)
    assert objective(np.zeros(3)) == 0  # the minimum: both terms are never negative
    solved = minimize(
        objective, here, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}
    )
    assert 0 <= solved.fun <= objective(here)
    assert model.objective_[0] == pytest.approx(objective(here), rel=1e-12)
    assert objective(here) <= 0.02  # a small step hovers close to it
    assert certificate["penalised objective"].status is Status.HOLDS
    assert "no optimality claim" in certificate["penalised objective"].statement
    assert ("weight norm" in certificate) == (penalty != "l1")
    forged = copy.deepcopy(model)
    forged.coef_ = model.coef_ + 1e-6
    assert "objective_" in surefit.verify(forged, SQUARE, XOR)["attributes"].statement
    if penalty != "l1":
        forged.coef_ = np.full((1, 2), 1e3)
        forged.objective_ = np.array([objective(np.append(forged.coef_[0], forged.intercept_))])
        assert surefit.verify(forged, SQUARE, XOR)["weight norm"].status is Status.FAILS


@pytest.mark.spec("PER-3")
def test_the_orders_are_permutations_and_masks_are_kept_out():
    keep = np.arange(50) % 5 > 0
    orders = list(islice(visits(50, seed=7, keep=keep), 20))
    assert all(sorted(order) == list(np.flatnonzero(keep)) for order in orders)
    assert len({tuple(order) for order in orders}) == 20
