"""Forged one-vs-rest and one-vs-one models, and a forged Bayes classifier."""

import copy

import numpy as np
import pytest
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surefit
from surefit.bayes import BayesClassifier
from surefit.certificate import Status
from surefit.densities import Gaussian
from surefit.kernels import Gaussian as GaussianKernel
from surefit.kernels import Polynomial as PolynomialKernel
from surefit.linear_model import LogisticRegression, SGDClassifier
from surefit.model_selection import GridSearchCV
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


# ------------------------------------------------------------------------ the parts of a reduction


@pytest.mark.parametrize(
    ("name", "value"),
    [("C", 0.99), ("intercept_scaling", 2.0), ("penalize_intercept", False)],
)
@pytest.mark.parametrize("reduction", [OneVsRestClassifier, OneVsOneClassifier])
def test_a_part_with_other_parameters_solves_another_problem(reduction, name, value):
    model = reduction(LinearSVC()).fit(X, Y)
    other = reduction(LinearSVC(**{name: value})).fit(X, Y)
    forged = copy.deepcopy(model)
    forged.estimators_[1] = other.estimators_[1]
    found = surefit.verify(forged, X, Y)
    assert f"estimators_[1] has {name}=" in found["attributes"].statement


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(kernel=GaussianKernel(0.3) + 0.1 * PolynomialKernel(2)),
        SGDClassifier(random_state=np.random.RandomState(0)),
        LogisticRegression(class_weight={0: 1.0, 1: 2.0}),
        make_pipeline(StandardScaler(), LinearSVC()),
        GridSearchCV(LogisticRegression(), {"C": np.array([0.5, 1.0])}, cv=KFold(3, shuffle=True)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_parts_of_honest_fits_have_the_parameters_of_the_estimator(estimator):
    """Kernels, generators, pipelines and splitters are copied, and some are changed by a fit."""
    model = OneVsRestClassifier(estimator).fit(X, Y)
    assert "attributes" not in [claim.name for claim in surefit.verify(model, X, Y).claims]


def test_a_constant_part_has_no_parameters():
    with pytest.warns(UserWarning, match="is present in all training examples"):
        model = OneVsRestClassifier(LinearSVC()).fit(X, np.column_stack([Y == 0, Y >= 0]) * 1)
    assert surefit.verify(model, X, np.column_stack([Y == 0, Y >= 0]) * 1).ok
