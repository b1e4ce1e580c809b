"""Forged one-vs-rest and one-vs-one models, and a forged Bayes classifier."""

import copy

import numpy as np
import pytest

import surefit
from surefit.bayes import BayesClassifier
from surefit.certificate import Status
from surefit.densities import Gaussian
from surefit.multiclass import OneVsOneClassifier, OneVsRestClassifier
from surefit.svm import SVC, LinearSVC

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) + np.repeat([0.0, 2.0, 4.0], 20)[:, None]
Y = np.repeat([0, 1, 2], 20)
SEVERAL = np.column_stack([Y == 0, Y >= 1]).astype(int)


def nudged(part):
    other = copy.deepcopy(part)
    other.coef_ = other.coef_ * 1.1
    return other


FORGERIES = {
    "a part less": lambda m: setattr(m, "estimators_", m.estimators_[:-1]),
    "a part twice": lambda m: setattr(m, "estimators_", [*m.estimators_, m.estimators_[0]]),
    "parts in another order": lambda m: setattr(m, "estimators_", m.estimators_[::-1]),
    "a part of another kind": lambda m: m.estimators_.__setitem__(0, SVC().fit(X, Y == 0)),
    "a part changed": lambda m: m.estimators_.__setitem__(0, nudged(m.estimators_[0])),
    "classes in another order": lambda m: setattr(m, "classes_", m.classes_[::-1].copy()),
    "classes twice": lambda m: setattr(m, "classes_", np.array([0, 1, 1])),
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("reduction", [OneVsRestClassifier, OneVsOneClassifier])
def test_a_changed_reduction_is_noticed(reduction, forgery):
    model = reduction(LinearSVC()).fit(X, Y)
    assert surefit.verify(model, X, Y).ok
    FORGERIES[forgery](model)
    assert not surefit.verify(model, X, Y).ok


def test_flags_and_pairs_go_with_the_labels():
    model = OneVsRestClassifier(LinearSVC()).fit(X, Y)
    for name in ("multilabel_", "sparse_labels_"):
        forged = copy.deepcopy(model)
        setattr(forged, name, True)
        assert name in surefit.verify(forged, X, Y)["attributes"].statement
    several = OneVsRestClassifier(LinearSVC()).fit(X, SEVERAL)
    assert surefit.verify(several, X, SEVERAL).ok
    several.classes_ = np.array([0, 1, 2])
    assert not surefit.verify(several, X, SEVERAL).ok
    pairs = OneVsOneClassifier(SVC(kernel="precomputed")).fit(X @ X.T, Y)
    assert surefit.verify(pairs, X @ X.T, Y).ok
    for cut in (None, pairs.pairwise_indices_[::-1], pairs.pairwise_indices_[:-1]):
        forged = copy.deepcopy(pairs)
        forged.pairwise_indices_ = cut
        assert "pairwise" in surefit.verify(forged, X @ X.T, Y)["attributes"].statement


# ------------------------------------------------------------------------ the Bayes rule


DENSITIES = [Gaussian([-1.0], [[1.0]]), Gaussian([1.0], [[1.0]])]


def draws(n):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, n)
    return rng.normal(size=(n, 1)) + 2.0 * y[:, None] - 1.0, y


class NotANumber:
    """A density that gives NaN on one side of the line."""

    def log_prob(self, rows):
        return np.where(rows[:, 0] > 0.0, np.nan, -1.0)


def test_each_attribute_of_the_bayes_classifier():
    rows, y = draws(400)
    model = BayesClassifier(DENSITIES, priors=[0.5, 0.5]).fit(rows, y)
    assert surefit.verify(model, rows, y).ok
    for name, value in (
        ("priors_", np.array([0.4, 0.6])),
        ("priors_", np.array([1.0])),
        ("classes_", np.array([1, 0])),
        ("densities_", DENSITIES[::-1]),
        ("densities_", DENSITIES[:1]),
    ):
        forged = copy.deepcopy(model)
        setattr(forged, name, value)
        assert not surefit.verify(forged, rows, y).ok
    named = BayesClassifier(DENSITIES, priors=[0.5, 0.5], classes=[1, 0]).fit(rows, 1 - y)
    assert surefit.verify(named, rows, 1 - y).ok  # in the order of the densities


@pytest.mark.filterwarnings("ignore::surefit.CertificateWarning")
def test_a_density_that_is_not_a_number_breaks_the_rule():
    """No posterior was larger than NaN, and no row counted as wrong."""
    rows, y = draws(40)
    model = BayesClassifier([NotANumber(), NotANumber()], priors=[0.5, 0.5]).fit(rows, y)
    assert model.certificate_["Bayes rule"].status is Status.FAILS


def test_a_radius_as_wide_as_all_errors_is_uninformative():
    for n, status in ((4, Status.UNINFORMATIVE), (400, Status.HOLDS)):
        rows, y = draws(n)
        model = BayesClassifier(DENSITIES, priors=[0.5, 0.5]).fit(rows, y)
        assert model.certificate_["risk"].status is status
