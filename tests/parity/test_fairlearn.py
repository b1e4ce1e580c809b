"""Audit numbers equal fairlearn's, and group thresholds are never worse, on made and on real data."""

import csv
import gzip
import io

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler

from surefit.fair import GroupThresholds, audit
from surefit.linear_model import LogisticRegression
from tests.data import data_folder

SETS = ["made", "adult", "compas", "german"]


def _rows(path, delimiter=","):
    folder = data_folder()
    if folder is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    with gzip.open(folder / "tabular" / path, "rt", encoding="utf8") as file:
        text = file.read()
    return [
        [cell.strip() for cell in row]
        for row in csv.reader(io.StringIO(text), delimiter=delimiter)
        if len(row) > 1
    ]


def _made():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], 3000, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(3000, 3)) + 0.7 * (group == "b")[:, None]
    y = (X.sum(axis=1) + rng.normal(size=3000) > 0.5).astype(int)
    return X, y, group


def _adult():
    rows = np.array(_rows("adult/adult.data.gz"))
    X = rows[:, [0, 4, 10, 11, 12]].astype(float)
    return X, (rows[:, 14] == ">50K").astype(int), rows[:, 9]


def _compas():
    table = _rows("compas/compas-scores-two-years.csv.gz")
    head, rows = table[0], [row for row in table[1:] if len(row) == len(table[0])]
    column = {name: np.array([row[head.index(name)] for row in rows]) for name in set(head)}
    X = np.column_stack(
        [column[name].astype(float) for name in ("age", "priors_count", "decile_score")]
    )
    race = np.where(
        np.isin(column["race"], ["African-American", "Caucasian"]), column["race"], "Other"
    )
    return X, column["two_year_recid"].astype(int), race


def _german():
    rows = np.array(
        [row for row in _rows("german/german.data.gz", delimiter=" ") if len(row) >= 21]
    )
    X = rows[:, [1, 4, 7, 10, 12, 15]].astype(float)
    sex = np.where(np.isin(rows[:, 8], ["A92", "A95"]), "female", "male")
    return X, (rows[:, 20] == "1").astype(int), sex


@pytest.fixture(scope="module", params=SETS)
def case(request):
    """Labels, decisions, scores and groups of a set."""
    X, y, group = {"made": _made, "adult": _adult, "compas": _compas, "german": _german}[
        request.param
    ]()
    score = (
        LogisticRegression().fit(Z := StandardScaler().fit_transform(X), y).predict_proba(Z)[:, 1]
    )
    return y, (score > np.median(score)).astype(int), score, group


def test_rates_and_gaps_equal_fairlearns(case):
    y, decision, _, group = case
    found = audit(y, decision, sensitive=group, min_rows=1)
    frame = metrics.MetricFrame(
        metrics={
            "selection": metrics.selection_rate,
            "tpr": metrics.true_positive_rate,
            "fpr": metrics.false_positive_rate,
            "fnr": metrics.false_negative_rate,
            "tnr": metrics.true_negative_rate,
            "n": metrics.count,
        },
        y_true=y,
        y_pred=decision,
        sensitive_features=group,
    )
    for row in found.table:
        theirs = frame.by_group.loc[row["group"]]
        assert row["n"] == theirs["n"]
        for rate in ("selection", "tpr", "fpr", "fnr", "tnr"):
            assert row["rates"][rate]["value"] == pytest.approx(theirs[rate], abs=1e-12)
    gaps = found.gaps["sensitive"]
    given = {"y_true": y, "y_pred": decision, "sensitive_features": group}
    expected = {
        ("independence", "observed"): metrics.demographic_parity_difference(**given),
        ("independence", "ratio"): metrics.demographic_parity_ratio(**given),
        ("separation", "observed"): metrics.equalized_odds_difference(**given),
        ("separation", "ratio"): metrics.equalized_odds_ratio(**given),
        ("tpr", "observed"): metrics.equal_opportunity_difference(**given),
    }
    for (criterion, part), value in expected.items():
        assert gaps[criterion][part] == pytest.approx(value, abs=1e-12)
    for rate in ("selection", "tpr", "fpr"):
        assert gaps[rate]["observed"] == pytest.approx(frame.difference()[rate], abs=1e-12)


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose score is the first column."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        score = np.asarray(X)[:, 0]
        return np.column_stack([1 - score, score])

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0.5).astype(int)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("demographic_parity", "demographic_parity"),
        ("equalized_odds", "equalized_odds"),
        ("equal_opportunity", "true_positive_rate_parity"),
        ("predictive_equality", "false_positive_rate_parity"),
    ],
)
def test_group_thresholds_are_never_worse_than_fairlearns(case, ours, theirs):
    y, _, score, group = case
    X = pd.DataFrame({"score": score})
    model = GroupThresholds("passthrough", constraint=ours).fit(X, y, sensitive=group)
    peer = ThresholdOptimizer(
        estimator=Scores().fit(X, y),
        constraints=theirs,
        prefit=True,
        predict_method="predict_proba",
    ).fit(X, y, sensitive_features=group)
    accept = peer._pmf_predict(X, sensitive_features=group)[:, 1]
    right = float(np.where(y == 1, accept, 1 - accept).mean())
    assert model.score(X, y, sensitive=group) >= right - 1e-12
    assert model.certificate_.ok
