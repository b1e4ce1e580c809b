"""The laws of certified estimators, on those that hold others: searches and the hold-out."""

import copy
import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import surefit
import surefit.model_selection
from surefit.linear_model import LogisticRegression, Ridge, RidgeClassifier
from surefit.model_selection import GridSearchCV, HoldOut, RandomizedSearchCV
from surefit.testing import check_certificate

ESTIMATORS = [
    GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2),
    GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0]}, cv=2, bound="bernstein", reuse=False),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2, certify="full"),
    RandomizedSearchCV(Ridge(), {"alpha": [0.1, 1.0, 2.0]}, n_iter=2, cv=2, random_state=0),
    HoldOut(Ridge(), random_state=0),
    HoldOut(LogisticRegression(), {"C": [0.1, 1.0]}, random_state=0, certify="full"),
    HoldOut(RidgeClassifier(), refit=True, random_state=0, bound="clopper-pearson"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # As in scikit-learn's own suite: some checks feed a search what its fits must refuse.
        for kind in (ConvergenceWarning, FitFailedWarning):
            warnings.simplefilter("ignore", kind)
        warnings.filterwarnings("ignore", "The least populated class in y has only")
        warnings.filterwarnings(
            "ignore", "Scoring failed|One or more of the test scores are non-finite"
        )
        warnings.filterwarnings(
            "ignore", "invalid value encountered in cast"
        )  # splitting on y = inf
        check(estimator)


def test_no_estimator_is_left_out():
    names = surefit.model_selection.__all__
    found = [getattr(surefit.model_selection, name) for name in names]
    ours = {
        thing
        for thing in found
        if inspect.isclass(thing)
        and issubclass(thing, BaseEstimator)
        and thing.__module__.startswith("surefit")
    }
    assert ours == {type(estimator) for estimator in ESTIMATORS}


RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
LABELS = (X[:, 0] + 0.7 * RNG.normal(size=90) > 0).astype(int)
Y = X @ np.array([1.0, 2.0, 0.0, -1.0]) + 0.3 * RNG.normal(size=90)
MODELS = [
    (GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3), Y),
    (GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0]}, cv=3), LABELS),
    (RandomizedSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, n_iter=2, random_state=0), Y),
    (HoldOut(Ridge(), {"alpha": [0.1, 1.0]}, random_state=0), Y),
    (HoldOut(RidgeClassifier(), random_state=0, bound="clopper-pearson"), LABELS),
]


@pytest.mark.parametrize(("model", "target"), MODELS)
def test_a_certificate_holds_and_can_fail(model, target):
    """It holds at the fit; a nudge of the best score, and other data, are noticed."""
    check_certificate(model, X, target, attributes=("best_score_",))


@pytest.mark.parametrize(("model", "target"), MODELS)
def test_a_nudge_of_the_model_inside_is_noticed(model, target):
    fitted = copy.deepcopy(model).fit(X, target)
    assert surefit.verify(fitted, X, target).ok
    fitted.best_estimator_.coef_ = fitted.best_estimator_.coef_ * 1.01
    assert not surefit.verify(fitted, X, target).ok


@pytest.mark.parametrize(("model", "target"), MODELS)
def test_what_was_recorded_is_not_trusted(model, target):
    """Claims are recomputed from data, parameters and models: a forged record changes none of them."""
    fitted = copy.deepcopy(model).fit(X, target)
    honest = surefit.verify(fitted, X, target)
    fitted.evidence_ = np.zeros_like(fitted.evidence_)
    assert surefit.verify(fitted, X, target).claims == honest.claims
    del fitted.certificate_
    again = surefit.verify(fitted, X, target).claims
    assert again == tuple(claim for claim in honest.claims if claim.name != "data")
