"""Decorrelate, FairLogistic, and the comparison of remedies."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import surefit
from surefit import _tree
from surefit.fair import Decorrelate, FairLogistic, compare_remedies, fair_path
from surefit.linear_model import LogisticRegression
from surefit.testing import check_certificate


def table(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += group == "a"
    X[:, 1] -= 0.5 * (group == "b")
    y = (X @ [1.0, 1.0, 0.5, 0.0] + rng.normal(size=n) > 0.3).astype(int)
    return X, y, group


# ------------------------------------------------------------------------ Decorrelate


def test_group_means_are_equal_after_and_fresh_rows_use_the_same_map():
    X, _, group = table()
    change = Decorrelate().fit(X, sensitive=group)
    out = change.transform(X, sensitive=group)
    means = np.array([out[group == g].mean(axis=0) for g in "abc"])
    np.testing.assert_allclose(means, np.tile(X.mean(axis=0), (3, 1)), atol=1e-13)
    np.testing.assert_array_equal(
        change.transform(X[5:9], sensitive=group[5:9]), out[5:9]
    )  # row by row
    assert change.certificate_["covariance"].observed < 1e-14


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_alpha_leaves_a_share_of_the_covariance(alpha):
    X, _, group = table()
    a = (group == "a").astype(float)
    Z = np.column_stack([a, X])
    out = Decorrelate([0], alpha=alpha).fit_transform(Z)
    assert out.shape == X.shape
    before, after = (np.cov(a, M[:, 0], bias=True)[0, 1] for M in (X, out))
    assert after == pytest.approx((1 - alpha) * before, abs=1e-14)


def test_names_of_columns_in_a_frame_and_a_pipeline():
    X, y, group = table()
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(sex=(group == "a").astype(float))
    change = Decorrelate(["sex"]).set_output(transform="pandas")
    out = change.fit_transform(frame)
    assert list(out.columns) == list("pqrs")
    model = make_pipeline(Decorrelate("sex"), LogisticRegression()).fit(frame, y)
    assert model.score(frame, y) > 0.6


def test_decorrelate_notices_a_nudge_and_other_data():
    X, _, group = table()
    Z = np.column_stack([group == "a", X]).astype(float)
    change = Decorrelate([0]).fit(Z)
    assert surefit.verify(change, Z).ok
    moved = copy.deepcopy(change)
    moved.coef_ = change.coef_ * (1 + 1e-3)
    assert not surefit.verify(moved, Z).ok
    assert not surefit.verify(change, Z[::-1]).ok
    beside = Decorrelate().fit(X, sensitive=group)
    assert beside.verify(X, sensitive=group).ok
    assert not beside.verify(X, sensitive=group[::-1]).ok


# ------------------------------------------------------------------------ FairLogistic


def objective(theta, X, y, attributes, mu, C, within):
    w, b = theta[:-1], theta[-1]
    z = X @ w + b
    value = C * np.logaddexp(0, -(2 * y - 1) * z).sum() + 0.5 * w @ w
    for rows in within:
        A = attributes[rows] - attributes[rows].mean(axis=0)
        cov = A.T @ z[rows] / rows.sum()
        value += C * len(y) * mu / 2 * float(cov @ cov)
    return value


@pytest.mark.parametrize("criterion", ["independence", "separation"])
def test_the_fit_minimises_the_stated_objective(criterion):
    X, y, group = table(300)
    attributes = np.column_stack([group == g for g in "abc"]).astype(float)
    all_rows = np.full(len(y), True)
    within = [all_rows] if criterion == "independence" else [y == 0, y == 1]
    model = FairLogistic(5.0, C=0.7, criterion=criterion, tol=1e-12).fit(X, y, sensitive=group)
    arguments = (X, y, attributes, 5.0, 0.7, within)
    peer = minimize(objective, np.zeros(5), arguments, method="BFGS", options={"gtol": 1e-6})
    ours = objective(np.append(model.coef_[0], model.intercept_), *arguments)
    assert ours <= peer.fun + 1e-9 * abs(peer.fun)
    # strong convexity 1 in w: BFGS's own gap bounds how far the two can be apart
    np.testing.assert_allclose(model.coef_[0], peer.x[:-1], atol=1e-4)
    claim = model.certificate_["duality gap"]
    assert f"the objective {ours:.6g}" in claim.statement


def test_no_penalty_is_plain_logistic_regression():
    X, y, group = table()
    fair = FairLogistic(0.0, tol=1e-10).fit(X, y, sensitive=group)
    plain = LogisticRegression(tol=1e-10).fit(X, y)
    np.testing.assert_allclose(fair.coef_, plain.coef_, rtol=1e-6)


def test_sensitive_columns_have_no_coefficient_unless_asked():
    X, y, group = table()
    Z = np.column_stack([X, group == "a"]).astype(float)
    model = FairLogistic(sensitive_columns=[4]).fit(Z, y)
    assert model.coef_[0, 4] == 0.0
    beside = FairLogistic().fit(X, y, sensitive=group == "a")
    assert beside.coef_.shape == (1, 4)
    # one column instead of two indicators: half of the penalty
    twice = FairLogistic(2.0, sensitive_columns=[4], tol=1e-12).fit(Z, y)
    np.testing.assert_allclose(
        twice.coef_[0, :4],
        FairLogistic(tol=1e-12).fit(X, y, sensitive=group == "a").coef_[0],
        rtol=1e-5,
    )
    used = FairLogistic(sensitive_columns=[4], use_sensitive=True).fit(Z, y)
    assert used.coef_[0, 4] != 0.0
    forged = copy.deepcopy(model)
    forged.coef_[0, 4] = 0.01
    assert surefit.verify(forged, Z, y)["features"].status is surefit.Status.FAILS


@pytest.mark.parametrize("criterion", ["independence", "separation"])
def test_fair_logistic_obeys_the_law_of_certificates(criterion):
    X, y, group = table(200)
    Z = np.column_stack([group == "a", group == "b", X]).astype(float)
    check_certificate(FairLogistic(3.0, criterion=criterion, sensitive_columns=[0, 1]), Z, y)


def test_the_path_is_in_order_and_equals_cold_starts():
    X, y, group = table()
    models = fair_path(X, y, fairness=[10, 0.1, 1], sensitive=group, tol=1e-10)
    assert [m.fairness for m in models] == [0.1, 1.0, 10.0]
    for model in models:
        cold = FairLogistic(model.fairness, tol=1e-10).fit(X, y, sensitive=group)
        np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-5)


def test_saved_remedies_come_back(tmp_path, monkeypatch):
    X, y, group = table()
    for model in (Decorrelate(), FairLogistic(2.0)):
        name = type(model).__name__
        monkeypatch.setitem(_tree.CLASSES, name, f"surefit.fair:{name}")
        model.fit(X, y, sensitive=group)
        surefit.save(model, tmp_path / name)
        loaded = surefit.load(tmp_path / name)
        assert loaded.verify(X, y if name == "FairLogistic" else None, sensitive=group).ok
        np.testing.assert_array_equal(loaded.coef_, model.coef_)


@parametrize_with_checks(
    [
        Decorrelate(sensitive_columns=[0]),
        Decorrelate(sensitive_columns=[], alpha=0.5),
        FairLogistic(sensitive_columns=[0]),
        FairLogistic(sensitive_columns=[]),
        FairLogistic(
            sensitive_columns=[0], use_sensitive=True, criterion="separation", certify="full"
        ),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------ all of them


def test_remedies_are_compared_on_rows_no_fit_has_used():
    X, y, group = table(6000)
    train, test = slice(0, 3000), slice(3000, None)
    rows = compare_remedies(X[train], y[train], group[train], X[test], y[test], group[test])
    json.dumps(rows, allow_nan=False)
    by_name = {row["remedy"]: row for row in rows}
    none = by_name["none"]
    plain = LogisticRegression().fit(X[train], y[train])
    assert none["error"] == pytest.approx(np.mean(plain.predict(X[test]) != y[test]))
    for row in rows:
        assert row["failed"] == ""
        assert row["certified"]
        assert row["error_low"] <= row["error"] <= row["error_high"]
        for criterion in ("independence", "separation", "sufficiency"):
            gap = row[criterion]
            assert gap["low"] <= gap["observed"] <= gap["high"]
    for name in ("decorrelated features", "group thresholds, equal selection rate"):
        assert by_name[name]["independence"]["observed"] < 0.4 * none["independence"]["observed"]
        assert by_name[name]["error"] > none["error"]


def test_one_label_against_the_rest_and_a_model_without_probabilities():
    from surefit.svm import LinearSVC

    X, y, group = table(3000)
    three = np.where((y == 1) & (X[:, 3] > 0), "maybe", np.where(y == 1, "yes", "no"))
    half = slice(0, 1500), slice(1500, None)
    for model in (None, LinearSVC().fit(X[half[0]], three[half[0]])):
        rows = compare_remedies(
            X[half[0]], three[half[0]], group[half[0]], X[half[1]], three[half[1]], group[half[1]],
            model=model, positive="no",
        )  # fmt: skip
        assert all(row["failed"] == "" for row in rows)
        gaps = {row["remedy"]: row["independence"]["observed"] for row in rows}
        assert gaps["group thresholds, equal selection rate"] < 0.6 * gaps["none"]


def test_a_remedy_that_cannot_be_fitted_says_why():
    X, y, group = table(600)
    y = np.where(group == "c", 0, y)
    rows = compare_remedies(X[:300], y[:300], group[:300], X[300:], y[300:], group[300:])
    failed = {row["remedy"]: row["failed"] for row in rows if row["failed"]}
    assert list(failed) == ["group thresholds, equal odds"]
    assert "group 'c' has no row with the label 1" in failed["group thresholds, equal odds"]


def test_remedies_on_bundled_data():
    """Breast cancer data, with large cells as a made-up group: it goes with everything."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    group = np.where(X[:, 3] > 0, "large", "small")
    X = np.delete(X, 3, axis=1)
    rows = compare_remedies(X[::2], y[::2], group[::2], X[1::2], y[1::2], group[1::2], min_rows=20)
    gaps = {row["remedy"]: row["independence"]["observed"] for row in rows}
    assert gaps["none"] > 0.5
    assert gaps["decorrelated features"] < gaps["none"] - 0.1
