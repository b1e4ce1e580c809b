"""The stated bounds fail no more often than delta, in the cases that are hard for them.

A majority classifier on coin flips has error 1/2 whatever it does, yet its cross-validated error strays:
without the tested rows, the majority tips against them. A sentence that treats the pooled error as a mean of
n independent losses is then wrong more often than it says. Ours counts the fold models.

Failures are counted over draws with a fixed seed; at most the 99.9 % quantile of a binomial with
probability delta is allowed.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier

from surefit import Status
from surefit.model_selection import (
    GridSearchCV,
    HoldOut,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    cross_validate,
    hoeffding_radius,
)
from surefit.model_selection._claims import Statistics
from surefit.model_selection._losses import BoundedLoss

DRAWS, DELTA = 2000, 0.05
ZERO_ONE = BoundedLoss("error", 0.0, 1.0, 1.0, True)
UNIT = BoundedLoss("loss", 0.0, 1.0, 0.0, False)


def most(draws, delta=DELTA):
    """More failures than this have probability below 1e-3 if the claim is true."""
    return int(stats.binom.ppf(0.999, draws, delta))


def evidence_of(losses):
    """Mean, variance, least and largest of the losses along the last axis."""
    losses = np.asarray(losses, dtype=float)
    spread = losses.var(axis=-1, ddof=1) if losses.shape[-1] > 1 else np.zeros(losses.shape[:-1])
    return np.stack([losses.mean(-1), spread, losses.min(-1), losses.max(-1)], axis=-1)


def limits(losses, bound, loss=ZERO_ONE, stratified=False, delta=DELTA):
    """Limits that the claims use, of an array of losses (candidates, folds, rows)."""
    sizes = np.full(losses.shape[1], losses.shape[2])
    return Statistics(evidence_of(losses), sizes, loss, stratified, delta, bound).limits()


# ------------------------------------------------------------------------ coin flips


def fold_errors(y, folds):
    """Errors (draws, folds) of the majority of the other folds; a tie goes to class 0."""
    parts = y.reshape(len(y), folds, -1)
    ones, size = parts.sum(axis=2), parts.shape[2]
    others = ones.sum(axis=1, keepdims=True) - ones
    says_one = 2 * others > y.shape[1] - size
    return np.where(says_one, size - ones, ones) / size


@pytest.mark.parametrize("folds", [100, 10])
@pytest.mark.spec("GEN-7")
def test_a_naive_sentence_about_the_pooled_error_fails_too_often(folds):
    y = np.random.default_rng(0).integers(0, 2, size=(20_000, 100))
    pooled = fold_errors(y, folds).mean(axis=1)
    wrong = int((np.abs(pooled - 0.5) > hoeffding_radius(100, DELTA)).sum())
    assert stats.binom.sf(wrong - 1, len(y), DELTA) < 1e-3
    assert 0.055 < wrong / len(y) < 0.10


@pytest.mark.parametrize("bound", ["hoeffding", "clopper-pearson", "bernstein"])
@pytest.mark.spec("GEN-7")
def test_the_claim_about_the_fold_models_does_not(bound):
    """1000 rows, 10 folds: each majority has error 1/2 on fresh rows."""
    y = np.random.default_rng(1).integers(0, 2, size=(DRAWS, 1000))
    errors = fold_errors(y, 10)
    wrong, short = 0, 0
    for row in errors:
        variance = row * (1 - row) * 100 / 99
        evidence = np.stack([row, variance, row * 0, row * 0 + 1], axis=-1)[None]
        sizes = np.full(10, 100)
        low, high = Statistics(evidence, sizes, ZERO_ONE, False, DELTA, bound).limits()
        wrong += not low[0] <= 0.5 <= high[0]
        short += high[0] - low[0] < 1.0
    assert wrong <= most(DRAWS)
    assert short == DRAWS  # the claim says something each time


@pytest.mark.parametrize(
    ("cv", "n", "status"),
    [
        (LeaveOneOut(), 60, Status.UNINFORMATIVE),
        (KFold(10), 300, Status.HOLDS),
        (KFold(2), 60, Status.HOLDS),
        (StratifiedKFold(2), 60, Status.HOLDS),
    ],
)
def test_the_real_search_on_coin_flips(cv, n, status):
    """Through GridSearchCV itself: no draw has a claim that leaves 1/2 out; one row a fold allows none."""
    rng = np.random.default_rng(2)
    draws, wrong = (100 if status is Status.HOLDS else 3), 0
    for _ in range(draws):
        y = rng.integers(0, 2, size=n)
        X = np.zeros((n, 1))
        grid = {"strategy": ["most_frequent"]}
        search = GridSearchCV(DummyClassifier(), grid, cv=cv, scoring="accuracy").fit(X, y)
        claim = search.certificate_["generalisation"]
        assert claim.status is status
        if status is Status.UNINFORMATIVE:
            assert "too wide to tell much: 1 test row" in claim.statement
            continue
        radius, centre = numbers(claim.statement)
        # the true error is 1/2; with strata it is that at the class frequencies of the test rows
        truth = 0.5
        if isinstance(cv, StratifiedKFold):
            truth = np.mean(
                [
                    np.mean(y[test] != np.bincount(y[train], minlength=2).argmax())
                    for train, test in cv.split(X, y)
                ]
            )
        wrong += abs(truth - centre) > radius
    assert wrong <= most(draws)


def numbers(statement):
    """(radius, centre) of "... within 0.1 of 0.2 ..."."""
    words = statement.replace(",", "").replace(";", "").split()
    place = words.index("within")
    return float(words[place + 1]), float(words[place + 3])


# ------------------------------------------------------------------------ selection among many


@pytest.mark.parametrize("bound", ["hoeffding", "clopper-pearson", "bernstein"])
@pytest.mark.spec("GEN-4")
def test_the_best_of_a_hundred_random_classifiers(bound):
    """The winner's error looks far better than 1/2; its interval still contains 1/2."""
    rng = np.random.default_rng(3)
    wrong = naive = 0
    for _ in range(DRAWS):
        errors = rng.binomial(200, 0.5, size=(100, 1)) / 200
        spread = errors * (1 - errors) * 200 / 199
        evidence = np.stack([errors, spread, errors * 0, errors * 0 + 1], axis=-1)
        low, high = Statistics(evidence, np.array([200]), ZERO_ONE, False, DELTA, bound).limits()
        best = int(errors.argmin())
        wrong += not low[best] <= 0.5 <= high[best]
        naive += abs(errors[best, 0] - 0.5) > hoeffding_radius(200, DELTA)
    assert wrong <= most(DRAWS)
    assert naive > 4 * DELTA * DRAWS  # counting one model instead of a hundred


class Wave(ClassifierMixin, BaseEstimator):
    """Predicts by the sign of a wave: as good as a coin."""

    def __init__(self, frequency=1.0):
        self.frequency = frequency

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X):
        return (np.sin(self.frequency * X[:, 0]) > 0).astype(int)


@pytest.mark.parametrize("bound", ["hoeffding", "clopper-pearson"])
def test_the_real_hold_out_among_random_classifiers(bound):
    rng = np.random.default_rng(4)
    wrong = 0
    for draw in range(60):
        X, y = rng.uniform(0, 1e3, size=(120, 1)), rng.integers(0, 2, size=120)
        grid = {"frequency": list(rng.uniform(1, 100, size=10))}
        model = HoldOut(Wave(), grid, test_size=100, random_state=draw, bound=bound).fit(X, y)
        claim = model.certificate_["generalisation"]
        assert claim.status is Status.HOLDS
        assert "after trying 10 models" in claim.statement
        if bound == "hoeffding":
            radius, centre = numbers(claim.statement)
            low, high = centre - radius, centre + radius
        else:
            words = claim.statement.split()
            place = words.index("between")
            low, high = float(words[place + 1]), float(words[place + 3])
        wrong += not low <= 0.5 <= high
    assert wrong <= most(60)


# ------------------------------------------------------------------------ few rows, no errors, strata


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("p", [0.0, 0.03, 0.5, 0.98, 1.0])
@pytest.mark.parametrize("bound", ["hoeffding", "clopper-pearson", "bernstein"])
@pytest.mark.spec("GEN-3")
def test_few_rows_and_rare_errors(n, p, bound):
    losses = np.random.default_rng(5).random(size=(DRAWS, 1, n)) < p
    evidence = evidence_of(losses)
    wrong = 0
    for row in evidence:
        low, high = Statistics(row[None], np.array([n]), ZERO_ONE, False, DELTA, bound).limits()
        wrong += not low[0] <= p <= high[0]
    assert wrong <= most(DRAWS)


@pytest.mark.parametrize("bound", ["hoeffding", "bernstein"])
@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1.0, 50.0), (0.05, 0.4)])
def test_losses_between_0_and_1(a, b, bound):
    losses = np.random.default_rng(6).beta(a, b, size=(DRAWS, 1, 80))
    truth, wrong = a / (a + b), 0
    for row in losses:
        low, high = limits(row[None], bound, UNIT)
        wrong += not low[0] <= truth <= high[0]
    assert wrong <= most(DRAWS)


@pytest.mark.parametrize("bound", ["hoeffding", "clopper-pearson", "bernstein"])
@pytest.mark.parametrize("strata", [(0.0, 0.2), (0.5, 0.5), (0.02, 1.0), (0.0, 0.99)])
def test_rows_that_are_independent_but_not_alike(strata, bound):
    """A stratified test set: half the rows err with one probability, half with another."""
    p = np.repeat(strata, 10)
    losses = (np.random.default_rng(7).random(size=(DRAWS, 1, 1, 20)) < p).astype(float)
    wrong = 0
    for row in losses:
        low, high = limits(row, bound, stratified=True)
        wrong += not low[0] <= p.mean() <= high[0]
    assert wrong <= most(DRAWS)


class Threshold(ClassifierMixin, BaseEstimator):
    """Positive above the mean of the training rows."""

    def fit(self, X, y):
        self.classes_, self.threshold_ = np.array([0, 1]), float(np.mean(X))
        return self

    def predict(self, X):
        return (X[:, 0] > self.threshold_).astype(int)


@pytest.mark.parametrize("stratified", [False, True])
def test_the_real_cross_validation_against_known_errors(stratified):
    """Two Gaussian classes: the true error of each fold model is known, and the claim is about their mean."""
    rng, wrong, draws = np.random.default_rng(8), 0, 100
    cv = StratifiedKFold(3) if stratified else KFold(3)
    for _ in range(draws):
        y = (rng.random(150) < 0.2).astype(int)
        X = rng.normal(2.0 * y)[:, None]
        found = cross_validate(Threshold(), X, y, cv=cv, return_estimator=True, return_indices=True)
        share = [y[test].mean() if stratified else 0.2 for test in found["indices"]["test"]]
        cuts = np.array([model.threshold_ for model in found["estimator"]])
        misses, alarms = stats.norm.cdf(cuts - 2.0), stats.norm.sf(cuts)
        truth = np.mean(np.array(share) * misses + (1 - np.array(share)) * alarms)
        radius, centre = numbers(found.statement_)
        wrong += abs(truth - centre) > radius
        assert ("class frequencies" in found.statement_) is stratified
    assert wrong <= most(draws)
