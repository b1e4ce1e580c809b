"""MLPClassifier and MLPRegressor against scikit-learn's: the same objective, weights, steps and stopping."""

import warnings

import numpy as np
import pytest
from sklearn import neural_network as theirs
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import surefit
from surefit import Status
from surefit.neural_network import MLPClassifier, MLPRegressor
from surefit.nn.mlp import MLP

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 5))
    return {
        "X": X,
        "two": (X[:, 0] > 0).astype(int),
        "three": np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.5]),
        "several": np.column_stack([X[:, 0] > 0, X[:, 1] * X[:, 2] > 0]).astype(int),
        "number": np.sin(X[:, 0]) + X[:, 1],
        "count": rng.poisson(np.exp(X[:, 0] / 2)).astype(float),
        "weight": rng.uniform(0.2, 2.0, 250),
    }


SOLVERS = [
    {"solver": "adam"},
    {"solver": "sgd"},
    {"solver": "sgd", "nesterovs_momentum": False},
    {"solver": "sgd", "learning_rate": "invscaling"},
    {"solver": "sgd", "learning_rate": "adaptive", "tol": 1e-2, "n_iter_no_change": 2},
]
SETTINGS = {
    "hidden_layer_sizes": (8, 6), "random_state": 1, "shuffle": False, "batch_size": 60,
    "max_iter": 40, "alpha": 0.1, "learning_rate_init": 0.02,
}  # fmt: skip


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: "-".join(map(str, s.values())))
@pytest.mark.parametrize("kind", ["two", "three", "several", "number"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_scikit_learn_s_to_rounding(table, solver, kind, weighted):
    """250 rows in batches of 60: the last batch has 10, whose penalty weighs more."""
    name = "MLPRegressor" if kind == "number" else "MLPClassifier"
    weight = table["weight"] if weighted else None
    ours, other = (getattr(m, name)(**SETTINGS, **solver) for m in (surefit.neural_network, theirs))
    ours.fit(table["X"], table[kind], sample_weight=weight)
    other.fit(table["X"], table[kind], sample_weight=weight)
    # 40 epochs of 5 steps leave each loss a few roundings of numbers of order 1
    np.testing.assert_allclose(ours.loss_curve_, other.loss_curve_, rtol=0, atol=1e-13)
    for mine, their in zip(ours.coefs_ + ours.intercepts_, other.coefs_ + other.intercepts_):
        np.testing.assert_allclose(mine, their, atol=1e-11)
    assert (ours.n_iter_, ours.t_, ours.n_layers_) == (other.n_iter_, other.t_, other.n_layers_)
    assert ours.out_activation_ == other.out_activation_
    assert ours.n_outputs_ == other.n_outputs_
    assert np.array_equal(ours.predict(table["X"]) > 0.5, other.predict(table["X"]) > 0.5)
    if kind != "number":
        mine, their = (m.predict_proba(table["X"]) for m in (ours, other))
        np.testing.assert_allclose(mine, their, atol=1e-11)


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
def test_lbfgs_reaches_scikit_learn_s_loss(table, activation):
    settings = {"solver": "lbfgs", "random_state": 1, "max_iter": 300, "alpha": 0.1}
    settings |= {"hidden_layer_sizes": (6,), "activation": activation, "tol": 1e-5}
    for name, y in (("MLPClassifier", "three"), ("MLPRegressor", "number")):
        ours, other = (getattr(m, name)(**settings) for m in (surefit.neural_network, theirs))
        ours.fit(table["X"], table[y])
        other.fit(table["X"], table[y])
        # the same start; roundings may part the ways of two runs by a few steps near the end, and kinks of
        # ReLU by more of them: a thousandth of what constant outputs leave
        constant = np.log(3) if y == "three" else table[y].var() / 2
        slack = 1e-3 * constant if activation == "relu" else 1e-2 * other.loss_
        assert ours.loss_ <= other.loss_ + slack


def test_poisson_loss_and_partial_fit_are_scikit_learn_s(table):
    ours = MLPRegressor("poisson", **SETTINGS).fit(table["X"], table["count"])
    other = theirs.MLPRegressor("poisson", **SETTINGS).fit(table["X"], table["count"])
    np.testing.assert_allclose(ours.loss_curve_, other.loss_curve_, rtol=1e-12)
    pair = MLPClassifier(**SETTINGS), theirs.MLPClassifier(**SETTINGS)
    for start in range(0, 250, 50):  # the optimiser's moments go on from call to call
        rows = slice(start, start + 50)
        for model in pair:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # batch_size is clipped
                model.partial_fit(table["X"][rows], table["three"][rows], classes=[0, 1, 2])
    np.testing.assert_allclose(pair[0].loss_curve_, pair[1].loss_curve_, rtol=1e-12)


def test_early_stopping_keeps_the_best_weights_as_scikit_learn_does(table):
    settings = SETTINGS | {"early_stopping": True, "max_iter": 60, "n_iter_no_change": 4}
    ours = MLPClassifier(**settings).fit(table["X"], table["three"])
    other = theirs.MLPClassifier(**settings).fit(table["X"], table["three"])
    assert len(ours.validation_scores_) == ours.n_iter_
    assert ours.best_validation_score_ == max(ours.validation_scores_)
    held = ours.validation_rows_
    assert ours.score(table["X"][held], table["three"][held]) == ours.best_validation_score_
    assert ours.best_validation_score_ == pytest.approx(other.best_validation_score_, abs=0.2)
    assert ours.best_loss_ is None


@pytest.mark.parametrize("kind", ["two", "three", "number"])
def test_early_stopping_weighs_the_rows_kept_out_as_scikit_learn_does(table, kind):
    """A row of weight 3 counts as three: the score is that of repeated rows."""
    name = "MLPRegressor" if kind == "number" else "MLPClassifier"
    settings = SETTINGS | {"early_stopping": True, "max_iter": 20, "n_iter_no_change": 30}
    X, y, counts = table["X"], table[kind], np.random.default_rng(4).integers(0, 4, 250)
    ours, other = (getattr(m, name)(**settings) for m in (surefit.neural_network, theirs))
    ours.fit(X, y, sample_weight=counts)
    other.fit(X, y, sample_weight=counts.astype(float))
    np.testing.assert_allclose(ours.validation_scores_, other.validation_scores_, atol=1e-10)
    held = np.repeat(ours.validation_rows_, counts[ours.validation_rows_])
    assert ours.score(X[held], y[held]) == pytest.approx(ours.best_validation_score_, rel=1e-12)
    plain = ours.score(X[ours.validation_rows_], y[ours.validation_rows_])
    assert abs(plain - ours.best_validation_score_) > 1e-3  # not the same thing


def test_a_score_of_numbers_that_are_not_finite_is_none(table, monkeypatch):
    """As in scikit-learn: NaN, no error; the fit goes on, and keeps the weights of the best score."""
    plain, calls = MLPRegressor.predict, []

    def predict(model, X):
        calls.append(len(X))
        found = plain(model, X)
        return found if len(calls) % 2 else np.where(np.arange(len(X)) == 3, np.inf, found)

    monkeypatch.setattr(MLPRegressor, "predict", predict)
    settings = SETTINGS | {"early_stopping": True, "max_iter": 5}
    model = MLPRegressor(**settings).fit(table["X"], table["number"])
    assert calls == [25] * 5
    assert np.isnan(model.validation_scores_).tolist() == [False, True, False, True, False]
    assert model.best_validation_score_ == np.nanmax(model.validation_scores_)


def test_a_single_class_is_certain(table):
    X = table["X"]
    model = MLPClassifier((4,), max_iter=3, random_state=0).fit(X, np.full(250, 7))
    assert model.predict(X).tolist() == [7] * 250
    assert model.predict_proba(X).tolist() == [[1.0]] * 250
    assert model.predict_log_proba(X).tolist() == [[0.0]] * 250


def test_float32_is_kept(table):
    X = table["X"].astype(np.float32)
    model = MLPClassifier((8,), max_iter=3, random_state=0).fit(X, table["three"])
    assert model.coefs_[0].dtype == model.predict_proba(X).dtype == np.float32
    assert MLPClassifier((8,), max_iter=3).fit(table["X"], table["two"]).coefs_[0].dtype == float


def test_sparse_rows_and_tensors_give_the_same_fit(table):
    import scipy.sparse as sp
    import torch

    settings = {"hidden_layer_sizes": (8,), "max_iter": 5, "random_state": 0}
    dense = MLPClassifier(**settings).fit(table["X"], table["three"])
    for X in (sp.csr_array(table["X"]), torch.from_numpy(table["X"])):
        again = MLPClassifier(**settings).fit(X, table["three"])
        assert np.array_equal(again.coefs_[0], dense.coefs_[0])
        assert np.array_equal(again.predict(X), dense.predict(table["X"]))


def test_warm_start_goes_on_and_clone_begins_anew(table):
    model = MLPClassifier((8,), max_iter=5, random_state=0, warm_start=True, tol=0.0)
    first = model.fit(table["X"], table["three"]).loss_
    assert model.fit(table["X"], table["three"]).loss_ < first
    assert len(model.loss_curve_) == 10
    again = clone(model).fit(table["X"], table["three"])
    assert again.loss_ == first
    with pytest.raises(ValueError, match="same classes"):
        model.fit(table["X"], table["two"])


def test_class_weights_are_row_weights(table):
    settings = SETTINGS | {"max_iter": 10}
    by_class = MLPClassifier(**settings, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
    by_class.fit(table["X"], table["three"])
    by_row = MLPClassifier(**settings).fit(
        table["X"], table["three"], sample_weight=np.array([1.0, 2.0, 0.5])[table["three"]]
    )
    assert by_class.loss_curve_ == by_row.loss_curve_


def test_balanced_class_weights_count_a_row_of_weight_two_twice(table):
    """As sklearn's compute_class_weight with sample_weight; and for several labels, compute_sample_weight."""
    from sklearn.utils.class_weight import compute_sample_weight

    X, y, settings = table["X"], table["three"], {"hidden_layer_sizes": (4,), "alpha": 0.0}
    settings |= {"solver": "lbfgs", "max_iter": 30, "random_state": 0}
    counts = np.random.default_rng(0).integers(0, 3, size=len(y))
    model = MLPClassifier(class_weight="balanced", **settings).fit(X, y, sample_weight=counts)
    again = MLPClassifier(class_weight="balanced", **settings)
    again.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert model.final_loss_ == pytest.approx(again.final_loss_, rel=1e-6)
    several = table["several"]
    model = MLPClassifier(class_weight="balanced", **settings).fit(X, several)
    by_row = MLPClassifier(**settings)
    by_row.fit(X, several, sample_weight=compute_sample_weight("balanced", several))
    assert model.loss_curve_ == pytest.approx(by_row.loss_curve_, rel=1e-9)
    with pytest.raises(ValueError, match="is for one label a row, and y has 2"):
        MLPClassifier(class_weight={0: 1.0}, **settings).fit(X, several)


def test_small_probabilities_of_the_first_class_are_not_lost(table):
    """1 - p is 0 from a logit of 37 on; the other sigmoid is not."""
    model = MLPClassifier((4,), max_iter=3, random_state=0).fit(table["X"], table["two"])
    model.intercepts_ = [model.intercepts_[0], np.array([100.0])]
    p = model.predict_proba(table["X"])
    assert (p[:, 0] > 0).all()
    assert (p[:, 0] < 1e-30).all()
    logs = model.predict_log_proba(table["X"])
    np.testing.assert_allclose(np.log(p), logs, rtol=1e-12, atol=1e-15)


def test_grid_search(table):
    search = GridSearchCV(
        MLPClassifier((8,), max_iter=5, random_state=0), {"learning_rate_init": [1e-6, 0.05]}, cv=2
    )
    assert search.fit(table["X"], table["two"]).best_params_ == {"learning_rate_init": 0.05}


def test_the_random_state_decides_everything(table):
    X, y = table["X"], table["two"]
    models = [MLPClassifier((8,), max_iter=3, random_state=s).fit(X, y) for s in (0, 0, 1)]
    assert np.array_equal(models[0].coefs_[0], models[1].coefs_[0])
    assert not np.array_equal(models[0].coefs_[0], models[2].coefs_[0])


@pytest.mark.spec("NN-1")
def test_a_2_2_1_net_has_nine_parameters():
    assert sum(p.numel() for p in MLP([2, 2, 1]).parameters()) == 9


@pytest.mark.spec("NN-5")
def test_ten_samples_are_overfitted_and_the_rate_holds_in_full_batch_mode():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 4)), np.arange(10) % 2
    model = MLPClassifier((32,), solver="lbfgs", alpha=0.0, max_iter=500, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model.final_loss_ < 1e-3
    descent = MLPClassifier(
        (16,), activation="tanh", solver="sgd", momentum=0, batch_size=10, learning_rate_init=0.1,
        max_iter=300, random_state=0, tol=0.0, certify="full",
    ).fit(X, y)  # fmt: skip
    claim = descent.certificate_["non-convex rate"]
    assert (claim.status, claim.source) == (surefit.Status.HOLDS, "OPT-16")
    assert "300 steps" in claim.statement
    assert "exceeds" not in claim.statement


def test_what_is_refused(table):
    X, y = table["X"], table["three"]
    with pytest.raises(ValueError, match="classes must be passed"):
        MLPClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"not in `self.classes_`: \[2\]"):
        MLPClassifier().partial_fit(X, y, classes=[0, 1])
    model = MLPClassifier((4,), max_iter=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but MLPClassifier is expecting 5"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(np.arange(5) == 1, np.nan, X), y)
    with pytest.raises(ValueError, match="shape"):
        MLPRegressor().fit(X, np.zeros((250, 2, 2)))
    with pytest.raises(ValueError, match="y >= 0"):
        MLPRegressor("poisson").fit(X, table["number"])
    with pytest.raises(ValueError, match="hidden_layer_sizes must be whole numbers > 0"):
        MLPClassifier((4, 0)).fit(X, y)
    for size in (4.5, np.nan, np.inf, "4"):
        with pytest.raises(
            ValueError, match=r"hidden_layer_sizes must be whole numbers > 0, got \["
        ):
            MLPClassifier((size, 3)).fit(X, y)
    with pytest.raises(AttributeError, match="partial_fit"):
        MLPClassifier(solver="lbfgs").partial_fit(X, y)
    with pytest.warns(ConvergenceWarning, match="Maximum iterations"):
        MLPClassifier((4,), max_iter=2).fit(X, y)


@pytest.mark.parametrize(("name", "value"), [("activation", "tanh"), ("dropout", 0.5)])
def test_a_parameter_that_the_module_was_not_made_with_is_named(name, value):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    model = MLPRegressor(
        hidden_layer_sizes=(4,), max_iter=60, learning_rate_init=0.03, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, X[:, 0])
    assert surefit.verify(model, X, X[:, 0]).ok
    model.set_params(**{name: value})
    claim = surefit.verify(model, X, X[:, 0])["attributes"]
    assert "module_ is not the network of" in claim.statement
    assert claim.status is Status.FAILS
