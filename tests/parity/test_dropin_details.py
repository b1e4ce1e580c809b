"""What scikit-learn's tests taught surefit, kept here in short so that every run of the suite sees it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as reference
from sklearn.callback import ProgressBar
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning

from surefit import verify
from surefit.certificate import CertificateWarning
from surefit.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    ridge_regression,
)

SOLVERS = ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")


@pytest.mark.parametrize("convert", [np.asarray, sp.csc_array])
def test_a_lasso_of_one_column_or_one_row(convert):
    column = convert(np.array([[2019.0], [2020.0], [2021.0]]))
    model = Lasso(alpha=0.1, tol=1e-12).fit(column, [-1.0, 0.0, 1.0])
    assert model.coef_ == pytest.approx([0.85], abs=1e-9)  # eps (2020)^2 where centring is implicit
    row = convert(np.array([[1.0, 2.0]]))
    model = Lasso(alpha=0.1, fit_intercept=False, tol=1e-12).fit(row, [1.0])
    assert model.coef_ == pytest.approx([0.0, 0.475], abs=1e-9)


def test_a_sparse_matrix_with_duplicates_is_left_as_it_was():
    X = sp.csc_array(([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 2], [0, 3, 4]), shape=(3, 2))
    before = X.toarray()
    Lasso(alpha=0.01).fit(X, [1.0, 2.0, 3.0])
    assert np.array_equal(X.toarray(), before)
    assert X.nnz == 4


def test_values_that_overflow_are_refused_in_scikit_learns_words():
    X = np.finfo(np.float64).max * np.random.default_rng(0).uniform(size=(10, 2))
    with pytest.raises(ValueError, match="resulted in non-finite parameter values: X has values"):
        ElasticNet().fit(X, np.arange(10.0))


@pytest.mark.filterwarnings("ignore:With alpha=0")
@pytest.mark.parametrize("shape", [(40, 5), (10, 30)])
def test_an_elastic_net_without_penalty_is_least_squares(shape):
    X, y = make_regression(*shape, noise=1.0, random_state=0)
    model, plain = ElasticNet(alpha=0).fit(X, y), LinearRegression().fit(X, y)
    assert np.array_equal(model.coef_, plain.coef_)
    assert model.certificate_["normal equations"].status.name == "HOLDS"
    assert verify(model, X, y).ok


def test_without_the_checks_the_layout_is_the_callers_affair():
    X, y = make_regression(20, 5, random_state=0)
    expected = Lasso().fit(X, y).coef_
    assert np.allclose(Lasso().fit(np.asfortranarray(X), y, check_input=False).coef_, expected)
    with pytest.raises(ValueError, match="Fortran order"):
        Lasso().fit(X, y, check_input=False)


def test_a_gram_matrix_of_uncentred_data_warns():
    X, y = make_regression(30, 4, random_state=0)
    with pytest.warns(UserWarning, match="X was centered to fit intercept"):
        ElasticNet(precompute=(X + 1.0).T @ (X + 1.0)).fit(X + 1.0, y)


@pytest.mark.parametrize("name", ["Ridge", "Lasso", "ElasticNet", "LinearRegression"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("ndim", [1, 2])
def test_shapes_for_one_target_are_scikit_learns(name, fit_intercept, ndim):
    X, y = make_regression(20, 3, random_state=0)
    y = y if ndim == 1 else y[:, None]
    ours, theirs = (
        getattr(module, name)(fit_intercept=fit_intercept).fit(X, y)
        for module in (__import__("surefit.linear_model", fromlist=[name]), reference)
    )
    for attribute in ("coef_", "intercept_"):
        assert np.shape(getattr(ours, attribute)) == np.shape(getattr(theirs, attribute))
    assert ours.predict(X).shape == theirs.predict(X).shape


def test_ridge_reports_the_solver_asked_for_and_the_method_that_ran():
    X, y = make_regression(20, 3, random_state=0)
    assert Ridge(solver="sag").fit(X, y).solver_ == "sag"
    assert Ridge().fit(X, y).solver_ == reference.Ridge().fit(X, y).solver_
    assert Ridge().fit(sp.csr_array(X), y).solver_ == "sparse_cg"
    assert Ridge(positive=True).fit(X, y).method_ == "coordinate"
    with pytest.raises(ValueError, match="only 'sag' solver can directly fit the intercept"):
        ridge_regression(X, y, 1.0, solver="cholesky", return_intercept=True)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_unfinished_logistic_fit_warns_in_scikit_learns_words(solver):
    X, y = make_classification(200, random_state=0)
    with pytest.warns(CertificateWarning) as ours:
        LogisticRegression(solver=solver, max_iter=1, tol=1e-12).fit(X, y)
    with pytest.warns(ConvergenceWarning) as theirs:
        reference.LogisticRegression(solver=solver, max_iter=1, tol=1e-12).fit(X, y)
    begin = " ".join(str(theirs[-1].message).split()[:4]).rstrip(".,")
    assert begin in str(ours[0].message)


# ------------------------------------------------------------------ scikit-learn's callbacks


class Recorder:
    """A fit callback that keeps the models it sees and may ask for the end."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.models, self.open, self.stop_after = [], 0, stop_after

    def setup(self, estimator, context):
        self.open += 1

    def teardown(self, estimator, context):
        self.open -= 1

    def on_fit_task_begin(self, estimator, context):
        self.open += 1

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.open -= 1
        if context.parent is not None and fitted_estimator is not None:
            self.models.append(fitted_estimator)
        return len(self.models) == self.stop_after


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_callbacks_see_every_iteration(solver, l1_ratio):
    X, y = make_classification(100, random_state=0)
    seen = Recorder()
    model = LogisticRegression(solver=solver, l1_ratio=l1_ratio).set_callbacks(seen).fit(X, y)
    assert seen.open == 0
    assert len(seen.models) == model.n_iter_[0]
    assert np.array_equal(seen.models[-1].coef_, model.coef_)
    assert np.array_equal(seen.models[-1].predict(X), model.predict(X))


def test_without_iterations_callbacks_see_the_start():
    X, y = make_classification(100, random_state=0)
    seen = Recorder()
    with pytest.warns(CertificateWarning):
        model = LogisticRegression(max_iter=0).set_callbacks(seen).fit(X, y)
    assert model.n_iter_[0] == 0
    assert len(seen.models) == 1


def test_a_callback_can_end_the_fit():
    X, y = make_classification(100, random_state=0)
    model = LogisticRegression().set_callbacks(Recorder(stop_after=2))
    with pytest.warns(CertificateWarning):
        model.fit(X, y)
    assert model.n_iter_[0] == 2
    assert "callback" in model.certificate_.stopped


def test_scikit_learns_progress_bar_runs(capsys):
    X, y = make_classification(100, random_state=0)
    LogisticRegression().set_callbacks(ProgressBar()).fit(X, y)
    assert "LogisticRegression" in capsys.readouterr().out
