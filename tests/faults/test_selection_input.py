"""Bad input of searches, hold-out and curves: scikit-learn's errors, and ours."""

import numpy as np
import pytest
import sklearn.model_selection as theirs
from sklearn.tree import DecisionTreeClassifier

import surefit
from surefit import Status
from surefit.linear_model import LogisticRegression, Ridge, RidgeClassifier
from surefit.model_selection import (
    GridSearchCV,
    HoldOut,
    KFold,
    cross_validate,
    learning_curve,
    validation_curve,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 2)), RNG.normal(size=20)
LABELS = np.arange(20) % 2


@pytest.mark.parametrize(
    ("estimator", "keywords", "target"),
    [
        (Ridge(), {"param_grid": {"alpha": [1.0]}, "cv": 25}, Y),
        (RidgeClassifier(), {"param_grid": {"alpha": [1.0]}, "cv": 15}, LABELS),
        (Ridge(), {"param_grid": {"alpha": []}}, Y),
        (Ridge(), {"param_grid": {"alpha": 1.0}}, Y),
        (Ridge(), {"param_grid": []}, Y),
        (Ridge(), {"param_grid": {"beta": [1.0]}}, Y),
        (Ridge(), {"param_grid": {"alpha": [-1.0]}}, Y),
        (LogisticRegression(), {"param_grid": {"C": [1.0]}}, np.zeros(20)),
        (Ridge(), {"param_grid": {"alpha": [1.0]}, "scoring": "no such score"}, Y),
        (Ridge(), {"param_grid": {"alpha": [1.0]}, "scoring": ["r2", "neg_mean_squared_error"]}, Y),
    ],
)
def test_the_errors_of_scikit_learn(estimator, keywords, target):
    with pytest.raises((ValueError, TypeError)) as theirs_raised:
        theirs.GridSearchCV(estimator, **keywords).fit(X, target)
    with pytest.raises(theirs_raised.type) as ours_raised:
        GridSearchCV(estimator, **keywords).fit(X, target)
    first = str(theirs_raised.value).strip().split("\n")[0][:30]
    assert first in str(ours_raised.value)


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"bound": "tightest"}, "bound"),
        ({"loss_range": (1.0, 0.0)}, "loss_range must be two finite numbers"),
        ({"loss_range": (0.0, np.inf)}, "loss_range must be two finite numbers"),
        ({"loss_range": 1.0}, "loss_range"),
        ({"reuse": "yes"}, "reuse"),
    ],
)
def test_our_own_parameters(keywords, match):
    with pytest.raises(ValueError, match=match):
        GridSearchCV(Ridge(), {"alpha": [1.0]}, **keywords).fit(X, Y)
    if "reuse" not in keywords:
        with pytest.raises(ValueError, match=match):
            HoldOut(Ridge(), **keywords).fit(X, Y)
    with pytest.raises(ValueError, match=match):
        cross_validate(Ridge(), X, Y, **keywords)
    with pytest.raises(ValueError, match=match):
        learning_curve(Ridge(), X, Y, **keywords)
    with pytest.raises(ValueError, match=match):
        validation_curve(Ridge(), X, Y, param_name="alpha", param_range=[1.0], **keywords)


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"test_size": 0.0}, "test_size"),
        ({"test_size": 1.0}, "test_size"),
        ({"test_size": 20}, "test_size"),
        ({"param_grid": {"alpha": []}}, "need to be a non-empty sequence|non-empty"),
        ({"param_grid": {"beta": [1]}}, "Invalid parameter"),
    ],
)
def test_a_hold_out_that_cannot_be(keywords, match):
    with pytest.raises(ValueError, match=match):
        HoldOut(Ridge(), **keywords).fit(X, Y)


def test_a_hold_out_needs_y_and_a_fit():
    with pytest.raises(ValueError, match="requires y to be passed"):
        HoldOut(Ridge()).fit(X)
    with pytest.raises(ValueError, match="not fitted yet"):
        HoldOut(Ridge()).predict(X)
    with pytest.raises(ValueError, match="not fitted yet"):
        HoldOut(Ridge()).statement_  # noqa: B018
    model = HoldOut(Ridge(), certify=False, random_state=0).fit(X, Y)
    with pytest.raises(AttributeError, match="certify=True"):
        model.statement_  # noqa: B018
    assert not hasattr(HoldOut(Ridge()), "predict_proba")
    assert not hasattr(HoldOut(Ridge()), "n_features_in_")


def test_rows_that_are_trained_and_tested_on():
    rows = np.arange(20)
    with pytest.warns(
        surefit.CertificateWarning, match="20 rows are tested by a model that was fitted on them"
    ):
        search = GridSearchCV(
            DecisionTreeClassifier(random_state=0), {"max_depth": [1]}, cv=[(rows, rows)]
        ).fit(X, LABELS)
    assert search.certificate_["generalisation"].status is Status.UNDECIDED
    assert search.certificate_["folds"].status is Status.FAILS


def test_scores_that_are_nan():
    def nothing(model, X, y):
        return float("nan")

    with pytest.warns(UserWarning, match="non-finite"):
        search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, scoring=nothing).fit(X, Y)
    assert search.best_index_ == 0
    assert search.certificate_.ok
    assert surefit.verify(search, X, Y).ok


def test_other_data_at_verification():
    search = GridSearchCV(RidgeClassifier(), {"alpha": [1.0]}, cv=KFold(2)).fit(X, LABELS)
    for rows in (slice(0, 10), slice(0, 19)):
        report = surefit.verify(search, X[rows], LABELS[rows])
        assert report["data"].status is Status.FAILS
        assert report["folds"].status is Status.FAILS
    assert not surefit.verify(search, X, 1 - LABELS).ok
    held = HoldOut(RidgeClassifier(), random_state=0).fit(X, LABELS)
    report = surefit.verify(held, X[:10], LABELS[:10])
    assert report["split"].status is Status.FAILS
    assert report["generalisation"].status is not Status.HOLDS
