"""One forgery for each term of the claims about neighbours, and for what their models keep."""

import copy

import numpy as np
import pytest

import surefit
from surefit.certificate import Status
from surefit.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from surefit.neighbors._claims import leave_one_out_claim, neighbours_claim

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = RNG.integers(0, 3, 40)
LINE = np.array([[0.0], [1.0], [3.0], [7.0]])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize(
    ("lists", "wrong"),
    [
        ([[0, 1]], 0),
        ([[0, 0]], 1),  # a row named twice
        ([[1, 1]], 1),
        ([[0, 2]], 1),  # one left out
        ([[1, 0]], 1),  # not in order
    ],
    ids=str,
)
def test_each_way_in_which_a_list_of_neighbours_is_wrong(metric, lists, wrong):
    query = np.array([[0.1]])
    claim = neighbours_claim(LINE, query, np.array(lists), metric, {}, "1 query")
    assert claim.observed == wrong
    assert (claim.status is Status.HOLDS) == (wrong == 0)
    assert ("other than the nearest" in claim.statement) == (wrong == 1)


@pytest.mark.parametrize("lists", [[[0, 4]], [[-1, 0]]], ids=str)
def test_a_row_that_there_is_not(lists):
    claim = neighbours_claim(LINE, LINE[:1], np.array(lists), "euclidean", {}, "1 query")
    assert claim.observed == 1


def test_a_row_named_twice_among_equal_rows():
    """Distances cannot tell: all of them are the same."""
    same = np.zeros((4, 2))
    for lists, wrong in (([[0, 1, 2]], 0), ([[0, 0, 1]], 1), ([[0, 2, 1]], 1)):
        claim = neighbours_claim(same, same[:1], np.array(lists), "euclidean", {}, "1 query")
        assert claim.observed == wrong


MODELS = {
    "classifier": (KNeighborsClassifier(3), X, Y),
    "outputs": (KNeighborsClassifier(3), X, np.column_stack([Y, Y[::-1]])),
    "regressor": (KNeighborsRegressor(3), X, X[:, 0]),
    "search": (NearestNeighbors(n_neighbors=3), X, None),
    "manhattan": (KNeighborsClassifier(3, metric="manhattan"), X, Y),
}
FORGERIES = {
    "no rows": lambda m: setattr(m, "n_samples_fit_", 0),
    "a row more": lambda m: setattr(m, "n_samples_fit_", 41),
    "rows that are not whole": lambda m: setattr(m, "n_samples_fit_", 40.0),
    "other metric": lambda m: setattr(m, "effective_metric_", "chebyshev"),
    "metric parameter": lambda m: setattr(m, "metric", "chebyshev"),
    "its settings": lambda m: setattr(m, "effective_metric_params_", {"w": np.ones(3)}),
    "a row less": lambda m: setattr(m, "X_fit_", m.X_fit_[:-1]),
    "rows in another order": lambda m: setattr(m, "X_fit_", m.X_fit_[::-1].copy()),
    "a NaN": lambda m: m.X_fit_.__setitem__((0, 0), np.nan),
    "half precision": lambda m: setattr(m, "X_fit_", m.X_fit_.astype(np.float16)),
    "targets in another order": lambda m: setattr(m, "y_fit_", m.y_fit_[::-1].copy()),
    "a target less": lambda m: setattr(m, "y_fit_", m.y_fit_[:-1]),
    "codes that are not whole": lambda m: setattr(m, "y_fit_", m.y_fit_ + 0.5),
    "a class that nobody has": lambda m: setattr(m, "classes_", np.array([0, 1, 2, 3])),
    "classes twice": lambda m: setattr(m, "classes_", np.array([0, 1, 1])),
    "several outputs": lambda m: setattr(m, "outputs_2d_", not m.outputs_2d_),
}


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("name", MODELS)
def test_a_changed_model_is_noticed(name, forgery):
    estimator, rows, targets = MODELS[name]
    model = copy.deepcopy(estimator).fit(rows.copy(), targets)
    assert surefit.verify(model, rows, targets).ok
    before = set(vars(model))
    try:
        FORGERIES[forgery](model)
    except AttributeError:
        return  # a search has no targets, a regressor no classes
    if set(vars(model)) != before:
        return
    if name == "outputs" and forgery in ("a class that nobody has", "classes twice"):
        model.classes_ = [model.classes_, np.array([0, 1, 2])]
    report = surefit.verify(model, rows, targets)
    assert not report.ok
    assert not any("nan" in claim.statement for claim in report.failed)


def test_a_wide_interval_is_uninformative():
    k, n = 3, 10_000
    assert leave_one_out_claim(0.3, n, k).status is Status.HOLDS
    edge = int((6 * k + 1) / (0.05 * 0.25**2))
    assert leave_one_out_claim(0.3, edge - 1, k).status is Status.UNINFORMATIVE
    assert leave_one_out_claim(0.3, edge + 1, k).status is Status.HOLDS
    claim = leave_one_out_claim(0.3, n, k)
    assert (claim.estimate, claim.low < 0.3 < claim.high) == (0.3, True)
    assert leave_one_out_claim(np.nan, n, k).status is Status.FAILS


@pytest.mark.parametrize("cls", [KNeighborsClassifier, KNeighborsRegressor])
def test_a_model_that_predicts_has_a_number_of_neighbours(cls):
    with pytest.raises(ValueError, match="'n_neighbors' parameter"):
        cls(n_neighbors=None).fit(X, Y)
    model = cls(n_neighbors=3).fit(X, Y)
    model.n_neighbors = None
    assert "n_neighbors" in surefit.verify(model, X, Y)["attributes"].statement


def test_without_a_number_nothing_is_claimed_about_the_search():
    model = NearestNeighbors(n_neighbors=None).fit(X)
    found = surefit.verify(model, X)
    assert found.ok
    assert found["exact neighbours"].status is Status.UNDECIDED
    assert "n_neighbors=None" in found["exact neighbours"].statement
    assert model.certify_neighbors(X, 2)["exact neighbours"].status is Status.HOLDS
