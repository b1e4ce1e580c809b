"""Classification: surrogates bound the 0-1 risk, features bend boundaries, the geometry of a hyperplane."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import PolynomialFeatures
from tests.data import load

from surefit import losses
from surefit.geometry import margin, project, signed_distance
from surefit.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from surefit.losses import MarginLoss, ZeroOne
from surefit.separation import separate

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
OR, XOR = np.array([-1, 1, 1, 1]), np.array([-1, 1, 1, -1])

SURROGATES = [
    loss()
    for name in losses.__all__
    if isinstance(loss := getattr(losses, name), type)
    and issubclass(loss, MarginLoss)
    and loss not in (MarginLoss, ZeroOne)
    and loss.calibrated
]


# ---------------------------------------------------------------------------- CLS-1


@pytest.mark.spec("CLS-1")
@pytest.mark.parametrize("loss", SURROGATES, ids=lambda loss: type(loss).__name__)
def test_a_surrogate_bounds_the_zero_one_risk_on_real_data(loss):
    """Divided by its value at margin 0 (log 2 of the logistic loss, 1 of the others), at any scores."""
    unit = float(loss.phi(np.zeros(1))[0])
    assert unit == pytest.approx(math.log(2) if isinstance(loss, losses.Logistic) else 1.0)
    for name in ("breast_cancer", "wine"):
        X, y = load(name)
        signs = np.where(y == 0, -1.0, 1.0)
        rules = [LogisticRegression().fit(X, signs), RidgeClassifier().fit(X, signs)]
        scores = [rule.decision_function(X) for rule in rules]
        scores += [0.01 * scores[0], X[:, 0], np.zeros(len(X))]
        for z in scores:
            mistakes = ZeroOne().value(z, signs)
            assert loss.value(z, signs) / unit >= mistakes
    if unit < 1.0:  # base 2 is needed: at margin 0 the natural logarithm is below the mistake
        assert loss.value(np.zeros(3), np.ones(3)) < ZeroOne().value(np.zeros(3), np.ones(3))


@pytest.mark.spec("CLS-1")
def test_every_calibrated_surrogate_is_there():
    names = {type(loss).__name__ for loss in SURROGATES}
    assert names >= {"Logistic", "Hinge", "SquaredHinge", "SquareMargin", "ModifiedHuber"}


@pytest.mark.spec("CLS-1")
def test_the_zero_one_risk_is_not_convex_and_its_surrogates_are():
    """Along a line of weights the 0-1 risk of two rows rises and falls; a convex surrogate does not."""
    x, y = np.array([1.0, 1.0, -2.0]), np.array([1.0, -1.0, -1.0])
    t = np.linspace(-3, 3, 601)
    for loss in (ZeroOne(), *SURROGATES):
        risk = np.array([loss.value(w * x - 1.0, y) for w in t])
        bends = risk[2:] - 2 * risk[1:-1] + risk[:-2]
        assert (bends >= -1e-12).all() == loss.convex


# ---------------------------------------------------------------------------- CLS-4


@pytest.mark.spec("CLS-4")
def test_xor_is_solved_after_adding_the_product():
    assert separate(SQUARE, XOR).margin <= 1e-12
    with_product = np.column_stack([SQUARE, SQUARE[:, 0] * SQUARE[:, 1]])
    assert separate(with_product, XOR).margin > 0.1
    for rule in (Perceptron(), LogisticRegression(C=100.0)):
        assert rule.fit(with_product, XOR).score(with_product, XOR) == 1.0


@pytest.mark.spec("CLS-4")
def test_xor_is_solved_by_quadratic_features():
    quadratic = PolynomialFeatures(2, include_bias=False).fit_transform(SQUARE)
    assert Perceptron().fit(quadratic, XOR).score(quadratic, XOR) == 1.0
    # the quadratic classifier x1 + x2 - 2 x1 x2 - 1/2, found by least squares on all quadratic features
    fitted = LinearRegression().fit(quadratic, XOR.astype(float)).predict(quadratic)
    np.testing.assert_allclose(fitted, XOR, atol=1e-12)


# ---------------------------------------------------------------------------- DAT-9, SVM-1


@pytest.mark.spec("DAT-9")
def test_the_normal_is_perpendicular_to_the_hyperplane():
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=5), 0.7
    on_plane = project((w, b), rng.normal(size=(40, 5)))
    np.testing.assert_allclose(on_plane @ w + b, 0.0, atol=1e-14 * 40)
    np.testing.assert_allclose((on_plane[1:] - on_plane[:-1]) @ w, 0.0, atol=1e-14 * 40)


@pytest.mark.spec("DAT-9")
def test_the_signed_distance_is_the_distance_to_the_projection():
    rng = np.random.default_rng(1)
    X, w, b = rng.normal(size=(30, 4)), rng.normal(size=4), -0.3
    distances = signed_distance((w, b), X)
    np.testing.assert_allclose(distances, (X @ w + b) / np.linalg.norm(w), rtol=1e-12)
    np.testing.assert_allclose(
        np.abs(distances), np.linalg.norm(X - project((w, b), X), axis=1), rtol=1e-12
    )
    other = project((w, b), rng.normal(size=(200, 4)))  # no point of the plane is nearer
    gaps = np.linalg.norm(X[:, None] - other, axis=2).min(axis=1)
    assert (gaps >= np.abs(distances) * (1 - 1e-12)).all()
    sparse = signed_distance((w, b), sp.csr_array(X))
    np.testing.assert_allclose(sparse, distances, rtol=0, atol=4 * 2.0**-52 * np.abs(X).max())


@pytest.mark.spec("SVM-1")
def test_the_margin_does_not_depend_on_the_scale_of_the_weights():
    w, b = np.array([2.0, 2.0]), -1.0
    assert margin((w, b), SQUARE, OR) == pytest.approx(1 / math.sqrt(8), rel=1e-15)
    for c in (1e-300, 1e-3, 7.0, 1e300):
        assert margin((c * w, c * b), SQUARE, OR) == pytest.approx(1 / math.sqrt(8), rel=1e-14)
    assert margin((-w, -b), SQUARE, OR) < 0  # c > 0 matters


@pytest.mark.spec("SVM-1")
def test_the_margin_turns_negative_with_one_misclassified_row():
    plane = ([2.0, 2.0], -1.0)
    flipped = OR.copy()
    flipped[3] = -1
    assert margin(plane, SQUARE, OR) > 0 > margin(plane, SQUARE, flipped)
    assert margin(plane, SQUARE, flipped) == pytest.approx(-3 / math.sqrt(8))


def test_planes_of_fitted_classifiers():
    labels = np.where(OR > 0, "yes", "no")
    for rule in (Perceptron(), LogisticRegression(C=1e4)):
        model = rule.fit(SQUARE, labels)
        w, b = model.coef_[0], model.intercept_[0]
        assert margin(model, SQUARE, labels) == margin((w, b), SQUARE, OR) > 0
        scores = model.decision_function(SQUARE) / np.linalg.norm(w)
        np.testing.assert_allclose(signed_distance(model, SQUARE), scores, rtol=1e-12)
