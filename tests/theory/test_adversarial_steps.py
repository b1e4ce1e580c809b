"""Gradients of margins, the linearised step, projected gradient descent (ADV-3, ADV-4, ADV-5)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.data import load

from surefit.kernel_ridge import KernelRidge
from surefit.kernels import Laplace
from surefit.linear_model import LogisticRegression
from surefit.neighbors import KNeighborsClassifier
from surefit.robust import Threat, estimate_gradient, fgsm, pgd, scores
from surefit.svm import SVC, LinearSVC

MODELS = {
    "logistic": LogisticRegression(),
    "linear svc": LinearSVC(),
    "gaussian": SVC(gamma=0.05),
    "polynomial": SVC(kernel="poly", degree=3, coef0=1.0),
    "laplace": SVC(kernel=Laplace(gamma=0.2)),
    "laplace l1": SVC(kernel=Laplace(gamma=0.05, norm="l1")),
    "neighbours": KNeighborsClassifier(),
}


@pytest.mark.spec("ADV-3")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("data", ["breast_cancer", "wine"])
def test_gradients_are_those_of_the_margin(name, data):
    """A step along minus the gradient lowers the margin, for either label."""
    X, y = load(data)
    model = MODELS[name].fit(X[::2], y[::2])
    X, y = X[1:60:2], y[1:60:2]
    known = scores(model)
    codes = known.codes(y)
    gradient = known.gradient(X, codes)
    alpha = 1e-6
    measured = estimate_gradient(
        lambda Z: known.margin(Z, np.resize(codes, len(Z))), X, method="central", alpha=alpha
    ).gradient
    size = np.abs(measured).max()
    assert size > 0
    # differences: rounding of the margin / alpha, and alpha^2 times a third derivative
    margin = np.abs(known.margin(X, codes)).max()
    assert (
        np.abs(gradient - measured).max()
        <= 1e-5 * size + 1e4 * np.finfo(float).eps * margin / alpha
    )
    step = 1e-6 * gradient / np.linalg.norm(gradient, axis=1, keepdims=True)
    assert (known.margin(X - step, codes) < known.margin(X, codes)).all()


@pytest.mark.spec("ADV-3")
@pytest.mark.parametrize("label", [-1, 1])
def test_the_step_goes_against_the_label(label):
    X, y = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([-1, 1])
    model = KernelRidge(kernel="linear", alpha=0.1).fit(X, y)  # g grows with x_1
    row = X[y == label]
    moved = fgsm(model, row, [label], Threat(0.25)).x_adv
    assert (moved - row)[0, 0] == -0.25 * label


@pytest.mark.spec("ADV-4")
@pytest.mark.parametrize("norm", [2, math.inf])
def test_no_random_perturbation_beats_the_linearised_step(norm):
    """The value is eps ||g||_2 or eps ||g||_1, and random perturbations of the same size stay below."""
    random = np.random.default_rng(0)
    eps, d = 0.3, 6
    g = random.standard_normal((5, d))
    worst = Threat(eps, norm).worst_linear(np.zeros((5, d)), g)
    dual = np.linalg.norm(g, axis=1) if norm == 2 else np.abs(g).sum(axis=1)
    np.testing.assert_allclose(worst.value, eps * dual, rtol=1e-14)
    delta = random.standard_normal((20_000, d))
    size = np.linalg.norm(delta, axis=1) if norm == 2 else np.abs(delta).max(axis=1)
    tried = (eps * delta / size[:, None]) @ g.T
    assert (tried.max(axis=0) < worst.value).all()
    assert (tried.max(axis=0) > 0.5 * worst.value).all()


@pytest.mark.spec("ADV-4")
@pytest.mark.parametrize("norm", [2, math.inf])
def test_the_formulas_of_the_notes(norm):
    """x - eps y grad g / ||grad g||_2 and x - eps y sign(grad g); exact for a linear g."""
    X, y = load("breast_cancer")
    model = LogisticRegression().fit(X, y)
    right = model.predict(X) == y
    X, y, w = X[right], y[right], model.coef_[0]
    eps, sign = 0.2, (2 * y - 1)[:, None]
    found = fgsm(model, X, y, Threat(eps, norm))
    step = w / np.linalg.norm(w) if norm == 2 else np.sign(w)
    np.testing.assert_allclose(found.x_adv, X - eps * sign * step, rtol=0, atol=1e-14)
    dual = np.linalg.norm(w) if norm == 2 else np.abs(w).sum()
    margin = sign[:, 0] * model.decision_function(X) - eps * dual
    np.testing.assert_allclose(found.loss, np.logaddexp(0, -margin), rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found.success, margin <= 0)


@pytest.mark.spec("ADV-5")
@pytest.mark.parametrize("norm", [2, math.inf])
@pytest.mark.parametrize("name", ["gaussian", "polynomial", "neighbours"])
def test_many_steps_are_at_least_as_good_as_one(norm, name):
    X, y = load("breast_cancer")
    model = MODELS[name].fit(X[:200], y[:200])
    threat = Threat(0.5, norm)
    once, often = (f(model, X[200:300], y[200:300], threat) for f in (fgsm, pgd))
    assert (often.loss >= once.loss).all()
    assert (often.loss > once.loss).any()
    assert (often.success >= once.success).all()


@pytest.mark.spec("ADV-5")
@pytest.mark.parametrize("norm", [2, math.inf])
def test_one_step_from_zero_with_alpha_eps_is_the_linearised_step(norm):
    X, y = load("breast_cancer")
    model = MODELS["gaussian"].fit(X[:200], y[:200])
    threat = Threat(0.3, norm)
    one = pgd(model, X[200:], y[200:], threat, n_iter=1, step_size=0.3)
    same = fgsm(model, X[200:], y[200:], threat)
    went_down = (
        same.loss > 0
    )  # every row: the step lowers the margin, or the row itself is the best iterate
    np.testing.assert_allclose(
        one.loss[went_down], np.maximum(one.loss, same.loss)[went_down], rtol=1e-12
    )
    moved = (one.x_adv != X[200:]).any(axis=1)
    assert moved.mean() > 0.9
    np.testing.assert_allclose(one.x_adv[moved], same.x_adv[moved], rtol=0, atol=1e-14)


@pytest.mark.spec("ADV-5")
def test_projections_rescale_and_clip():
    x0, x = np.zeros((2, 2)), np.array([[3.0, 4.0], [0.1, -0.2]])
    np.testing.assert_allclose(Threat(1.0, 2).project(x0, x), [[0.6, 0.8], [0.1, -0.2]], rtol=1e-15)
    np.testing.assert_array_equal(Threat(1.0).project(x0, x), [[1.0, 1.0], [0.1, -0.2]])


def test_the_best_iterate_is_kept_and_restarts_do_not_hurt():
    X, y = load("breast_cancer")
    model = MODELS["gaussian"].fit(X[:200], y[:200])
    threat = Threat(0.5)
    short = pgd(model, X[200:300], y[200:300], threat, n_iter=5, step_size=0.4)
    longer = pgd(model, X[200:300], y[200:300], threat, n_iter=9, step_size=0.4)
    restarted = pgd(
        model, X[200:300], y[200:300], threat, n_iter=5, step_size=0.4, restarts=3, random_state=0
    )
    assert (longer.loss >= short.loss).all()
    assert (restarted.loss >= short.loss).all()


def test_the_same_seed_gives_the_same_points():
    X, y = load("breast_cancer")
    model = MODELS["gaussian"].fit(X[:200], y[:200])
    twice = [
        pgd(model, X[200:250], y[200:250], Threat(0.5), restarts=2, random_state=7).x_adv
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*twice)


def test_tensors_take_their_gradients_from_autograd():
    """A function of tensors as score: the same points as the closed form on arrays."""
    torch = pytest.importorskip("torch")
    X, y = load("breast_cancer")
    model = LogisticRegression().fit(X, y)
    w, b = torch.as_tensor(model.coef_[0]), float(model.intercept_[0])

    class Network:
        classes_ = np.array([0, 1])

        def predict(self, rows):
            return (rows @ w + b > 0).long()

    for norm in (2, math.inf):
        arrays = pgd(model, X, y, Threat(0.3, norm))
        tensors = pgd(
            Network(), torch.as_tensor(X), y, Threat(0.3, norm), score=lambda rows: rows @ w + b
        )
        assert isinstance(tensors.x_adv, torch.Tensor)
        np.testing.assert_allclose(tensors.x_adv.numpy(), arrays.x_adv, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(tensors.success, arrays.success)


@pytest.mark.parametrize("norm", [2, math.inf])
def test_stopping_early_finds_the_same_rows(norm):
    """A row whose margin is negative has fallen: going on only makes its loss larger."""
    X, y = load("breast_cancer")
    model = MODELS["gaussian"].fit(X[:200], y[:200])
    threat = Threat(0.5 if norm == math.inf else 2.0, norm)
    whole, early = (
        pgd(model, X[200:], y[200:], threat, restarts=2, stop_early=stop, random_state=0)
        for stop in (False, True)
    )
    assert early.success.mean() > 0.1
    np.testing.assert_array_equal(whole.success[early.success], True)
    assert (early.loss <= whole.loss).all()
    assert (early.loss[early.success] < whole.loss[early.success]).any()
