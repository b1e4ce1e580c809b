"""Data, terminology and the linear algebra everything else stands on (DAT-1 to DAT-13)."""

from __future__ import annotations

import inspect
from itertools import islice

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import surefit
import surefit.linear_model
import surefit.multiclass
from surefit import Status
from surefit.linear_model import LinearRegression, Perceptron
from surefit.solvers import gradient_descent

EPS = np.finfo(np.float64).eps
WORDS = ("and", "viagra", "the", "of", "nigeria")
BAGS = ("11011", "00110", "01100", "10010", "10101", "10110")
EMAILS = np.array([[int(word) for word in bag] for bag in BAGS])
SPAM = np.array([1, -1, 1, -1, 1, -1])
PARADIGMS = {
    "supervised",
    "unsupervised",
    "reinforcement",
    "semi-supervised",
    "active",
    "self-supervised",
}


def exported_estimators() -> list[type]:
    return [
        value
        for module in (surefit.linear_model, surefit.multiclass)
        for value in (getattr(module, name) for name in module.__all__)
        if inspect.isclass(value) and issubclass(value, BaseEstimator)
    ]


# ---------------------------------------------------------------------------- data sets


@pytest.mark.spec("DAT-1")
def test_train_predict_evaluate_on_a_real_table():
    X, y = load_diabetes(return_X_y=True)
    rows = np.arange(len(y))
    X_train, X_test, y_train, y_test, train, test = train_test_split(X, y, rows, random_state=0)
    assert not set(train) & set(test)
    assert sorted([*train, *test]) == list(rows)
    model = LinearRegression().fit(X_train, y_train)
    assert model.predict(X_test).shape == y_test.shape
    errors = [
        np.mean((model.predict(A) - b) ** 2) for A, b in ((X_train, y_train), (X_test, y_test))
    ]
    constant = np.mean((y_test - y_train.mean()) ** 2)
    assert errors[0] < np.var(y_train)
    assert errors[1] < 0.75 * constant  # test rows carry no labels into the fit, and are predicted
    assert surefit.verify(model, X_train, y_train)["data"].status is Status.HOLDS
    assert surefit.verify(model, X_test, y_test)["data"].status is Status.FAILS


@pytest.mark.spec("DAT-1")
@pytest.mark.parametrize("model", [LinearRegression(), Perceptron()], ids=str)
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], [0, 1, 1], "inconsistent numbers of samples"),
        ([1.0, 2.0], [0, 1], "Expected 2D array"),
        ([[1.0], [np.nan]], [0, 1], "NaN"),
        (np.empty((0, 2)), np.empty(0), "0 sample"),
        ([[1.0], [2.0]], [0, np.nan], "NaN"),
    ],
    ids=["lengths", "one-dimensional", "missing value", "empty", "missing label"],
)
def test_shapes_and_labels_are_checked(model, X, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.spec("DAT-1")
def test_labels_must_be_classes_and_columns_must_match():
    with pytest.raises(ValueError, match="Unknown label type"):
        Perceptron().fit([[1.0], [2.0], [3.0]], [0.1, 0.2, 0.3])
    model = Perceptron().fit([[1.0], [-2.0]], ["yes", "no"])
    assert_array_equal(model.predict([[5.0], [-5.0]]), ["yes", "no"])
    with pytest.raises(ValueError, match="2 features, but Perceptron is expecting 1"):
        model.predict([[1.0, 2.0]])


@pytest.mark.spec("DAT-2")
def test_correlation_is_not_causation():
    """x = z + e and y = z with equal variances: the slope is 1/2, the effect of x on y is 0.

    The slope of n pairs has standard deviation sqrt((1 - rho^2)/n) sd(y)/sd(x): sqrt(1/4/n) for these
    (rho^2 = 1/2), sqrt(1/2/n) once x is set independently of z.
    """
    n = 40_000
    rng = np.random.default_rng(0)
    z, e = rng.normal(size=(2, n))
    x, y = z + e, z
    slope = LinearRegression().fit(x[:, None], y).coef_[0]
    deviation = np.sqrt(0.25 / n)
    assert slope == pytest.approx(0.5, abs=5 * deviation)
    chosen = rng.permutation(x)  # intervene: x is set at random, and y stays what z made it
    effect = LinearRegression().fit(chosen[:, None], y).coef_[0]
    assert effect == pytest.approx(0.0, abs=5 * np.sqrt(0.5 / n))


@pytest.mark.spec("DAT-3")
def test_every_estimator_says_its_paradigm():
    estimators = exported_estimators()
    assert {Perceptron, surefit.multiclass.OneVsOneClassifier, LinearRegression} <= set(estimators)
    for estimator in estimators:
        assert estimator.paradigm in PARADIGMS, estimator
        assert estimator.paradigm == "supervised"  # all of these two modules


@pytest.mark.spec("DAT-4")
def test_the_bag_of_words_of_the_e_mails():
    texts = {
        0: "and viagra of nigeria",
        4: "and the nigeria",
    }
    for row, text in texts.items():
        assert_array_equal(EMAILS[row], [word in text.split() for word in WORDS])
    model = Perceptron(shuffle=False, tol=None).fit(EMAILS, SPAM)
    assert_array_equal(model.mistakes_, [4])
    assert_array_equal(model.coef_, [[0, 2, 0, -1, 1]])
    assert_array_equal(model.intercept_, [0])
    query = [[int(word in ("and", "viagra")) for word in WORDS]]
    assert_array_equal(query, [[1, 1, 0, 0, 0]])
    assert model.decision_function(query) == 2
    assert model.predict(query) == 1  # spam
    claim = surefit.verify(model, EMAILS, SPAM)["mistake bound"]
    assert claim.observed == 4
    assert claim.bound == pytest.approx(15, rel=1e-9)


@pytest.mark.spec("DAT-5")
def test_or_is_separable_and_xor_is_not():
    points = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    either, exactly_one = points.any(axis=1), points.sum(axis=1) == 1
    labels_or, labels_xor = np.where(either, 1, -1), np.where(exactly_one, 1, -1)
    assert_array_equal(labels_or, [-1, 1, 1, 1])
    assert_array_equal(labels_xor, [-1, 1, 1, -1])  # ERR-1: the fourth label is -
    good = Perceptron(shuffle=False, tol=None).fit(points, labels_or)
    assert good.training_mistakes_[0] == 0
    bad = Perceptron(shuffle=False, tol=None, max_iter=100).fit(points, labels_xor)
    assert bad.training_mistakes_[0] > 0
    report = surefit.verify(bad, points, labels_xor)
    assert "no hyperplane separates" in report["separability"].statement
    assert report["separability"].status is Status.HOLDS


# ---------------------------------------------------------------------------- linear maps


@pytest.mark.spec("DAT-6")
def test_an_offset_is_a_feature_that_is_always_one():
    X, y = load_diabetes(return_X_y=True)
    padded = np.column_stack([X, np.ones(len(X))])
    explicit = LinearRegression().fit(X, y)
    as_feature = LinearRegression(fit_intercept=False).fit(padded, y)
    conditioning = np.linalg.cond(padded)
    assert_allclose(
        explicit.predict(X), as_feature.predict(padded), rtol=100 * conditioning * EPS, atol=0
    )
    assert as_feature.coef_[-1] == pytest.approx(explicit.intercept_, rel=100 * conditioning * EPS)
    labels = y > np.median(y)
    with_b = Perceptron(shuffle=False, tol=None, max_iter=20).fit(X, labels)
    without = Perceptron(shuffle=False, tol=None, max_iter=20, fit_intercept=False)
    without.fit(padded, labels)
    assert_array_equal(with_b.predict(X), without.predict(padded))
    assert_array_equal(with_b.mistakes_, without.mistakes_)
    atol = 1e3 * EPS * np.abs(without.coef_).max()
    assert_allclose(np.append(with_b.coef_, with_b.intercept_), without.coef_[0], rtol=0, atol=atol)


@pytest.mark.spec("DAT-7")
def test_a_linear_map_is_its_values_on_the_unit_vectors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X @ [1.0, -2.0, 0.5, 3.0] + 0.1 * rng.normal(size=60)
    linear = LinearRegression(fit_intercept=False).fit(X, y)
    w = linear.predict(np.eye(4))  # w_i = f(e_i)
    assert_array_equal(w, linear.coef_)
    points = rng.normal(size=(1000, 4))
    assert_allclose(linear.predict(points) - points @ w, 0, atol=16 * EPS * np.abs(w).sum() * 4)
    affine = LinearRegression().fit(X, y + 7)
    u, v = rng.normal(size=(2, 1, 4))

    def additivity(f):
        return float(abs(f(u + v) - f(u) - f(v))[0])

    assert additivity(linear.predict) <= 64 * EPS
    assert additivity(affine.predict) == pytest.approx(affine.intercept_, rel=1e-12)
    assert affine.intercept_ > 6
    assert additivity(lambda x: affine.predict(x) - affine.intercept_) <= 64 * EPS


@pytest.mark.spec("DAT-8")
def test_the_sign_of_zero_is_minus_one():
    model = Perceptron(shuffle=False, tol=None).fit([[1.0, 0.0], [-1.0, 0.0]], [1, -1])
    assert model.decision_function([[0.0, 5.0]]) == 0
    assert model.predict([[0.0, 5.0]]) == -1
    assert model.predict([[np.nextafter(0, 1), 5.0]]) == 1
    still = Perceptron(shuffle=False, tol=None, max_iter=1).fit([[0.0], [0.0]], [1, -1])
    assert still.mistakes_[0] == 2  # both scores were 0, and 0 is a mistake for either label


@pytest.mark.spec("DAT-9")
def test_the_weights_are_normal_to_the_hyperplane():
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], 30)
    X = rng.normal(size=(60, 3)) + 4 * y[:, None] + 1
    model = Perceptron().fit(X, y)
    w, b = model.coef_[0], model.intercept_[0]
    norm = np.linalg.norm(w)
    distance = model.decision_function(X) / norm
    foot = X - distance[:, None] * w / norm  # the nearest points of H
    scale = norm * np.abs(X).max() + abs(b)
    assert_allclose(model.decision_function(foot), 0, atol=32 * EPS * scale)
    differences = foot[:, None, :] - foot[None, :, :]
    assert_allclose(differences @ w, 0, atol=64 * EPS * scale)  # <w, x' - x> = 0 in H
    assert_allclose(np.linalg.norm(X - foot, axis=1), np.abs(distance), rtol=1e-12)
    assert_array_equal(model.predict(X), np.where(distance > 0, 1, -1))
    scaled = Perceptron(eta0=8.0).fit(X, y)  # the distance does not depend on the length of w
    assert_allclose(
        scaled.decision_function(X) / np.linalg.norm(scaled.coef_), distance, rtol=1e-12
    )


# ---------------------------------------------------------------------------- features


@pytest.mark.spec("DAT-10")
def test_one_point_and_two_coefficients():
    """w0 + w1 x through one point: every (w + t null vector) fits, the shortest is the pseudo-inverse."""
    X, y = np.array([[1.0, 2.0]]), np.array([3.0])
    model = LinearRegression(fit_intercept=False).fit(X, y)
    null = np.array([-2.0, 1.0])
    assert_allclose(X @ null, 0)
    for t in (-1.0, 0.5, 10.0):
        assert_allclose(X @ (model.coef_ + t * null), y, rtol=1e-14)
        assert np.linalg.norm(model.coef_ + t * null) > np.linalg.norm(model.coef_)
    assert_allclose(model.coef_, np.linalg.pinv(X) @ y, rtol=1e-14)
    assert_allclose(model.coef_, [0.6, 1.2], rtol=1e-14)


@pytest.mark.spec("DAT-10")
def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 12)), rng.normal(size=5)
    model = LinearRegression(fit_intercept=False).fit(X, y)
    assert np.linalg.matrix_rank(X) == 5 < 12
    assert_allclose(X @ model.coef_, y, atol=1e3 * EPS)
    assert_allclose(model.coef_, np.linalg.pinv(X) @ y, atol=1e3 * EPS)


@pytest.mark.spec("DAT-11")
@pytest.mark.parametrize("n", [2, 4, 7])
def test_a_polynomial_of_degree_n_minus_one_interpolates(n):
    x = np.linspace(-1, 1, n)[:, None]
    y = np.random.default_rng(n).normal(size=n)
    powers = PolynomialFeatures(n - 1, include_bias=False)
    model = make_pipeline(powers, LinearRegression()).fit(x, y)
    conditioning = np.linalg.cond(np.vander(x[:, 0]))
    assert_allclose(model.predict(x), y, rtol=0, atol=100 * conditioning * EPS)
    if n > 2:
        poorer = make_pipeline(PolynomialFeatures(n - 2, include_bias=False), LinearRegression())
        assert np.max(np.abs(poorer.fit(x, y).predict(x) - y)) > 1e-3


@pytest.mark.spec("DAT-11")
def test_standardising_lowers_the_condition_number_and_the_iterations():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, size=(100, 1))
    raw = PolynomialFeatures(2, include_bias=False).fit_transform(x) * [1.0, 10.0]
    y = raw @ [1.0, -0.2] + 0.1 * rng.normal(size=100)

    def conditioning_and_steps(features):
        A = np.column_stack([np.ones(100), features])
        H = A.T @ A / 100
        best = np.linalg.lstsq(A, y)[0]
        steps = gradient_descent(
            lambda w: float(np.mean((A @ w - y) ** 2) / 2),
            lambda w: A.T @ (A @ w - y) / 100,
            np.zeros(3),
            1 / np.linalg.norm(H, 2),
        )
        floor = np.mean((A @ best - y) ** 2) / 2
        start = np.mean(y**2) / 2 - floor
        for k, here in enumerate(islice(steps, 200_000), start=1):
            if here.value - floor <= 1e-6 * start:
                return np.linalg.cond(H), k
        raise AssertionError("gradient descent did not get there")

    cond_raw, steps_raw = conditioning_and_steps(raw)
    cond_scaled, steps_scaled = conditioning_and_steps(StandardScaler().fit_transform(raw))
    assert cond_scaled < cond_raw / 10
    assert steps_scaled < steps_raw / 5


@pytest.mark.spec("DAT-12")
def test_infinitely_many_functions_interpolate():
    """A Gaussian interpolant g plus c * prod_i ||x - x_i||^2 passes through every point, for every c."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, size=(8, 2)), rng.normal(size=8)
    K = np.exp(-cdist(X, X, "sqeuclidean") / 0.1)
    weights = np.linalg.solve(K, y)

    def interpolant(points, c):
        bump = np.prod(cdist(points, X, "sqeuclidean"), axis=1)
        return np.exp(-cdist(points, X, "sqeuclidean") / 0.1) @ weights + c * bump

    elsewhere = rng.uniform(-1, 1, size=(5, 2))
    tolerance = 10 * np.linalg.cond(K) * EPS * np.abs(y).max()
    previous = None
    for c in (0.0, -3.0, 1e3, 1e6):
        assert_allclose(interpolant(X, c), y, rtol=0, atol=tolerance)
        values = interpolant(elsewhere, c)
        assert previous is None or np.all(np.abs(values - previous) > 1e-3)
        previous = values


# ---------------------------------------------------------------------------- matrices


@pytest.mark.spec("DAT-13")
def test_matrix_identities():
    rng = np.random.default_rng(0)
    inner = np.vdot
    A, B, C = rng.normal(size=(6, 4)), rng.normal(size=(4, 5)), rng.normal(size=(6, 5))
    assert_allclose(inner(A @ B, C), inner(B, A.T @ C), rtol=1e-12)
    P, Q, R = rng.normal(size=(6, 5)), rng.normal(size=(6, 4)), rng.normal(size=(4, 5))
    assert_allclose(inner(P, Q @ R), inner(Q.T @ P, R), rtol=1e-12)
    assert_allclose(inner(P, Q @ R), inner(P @ R.T, Q), rtol=1e-12)
    with pytest.raises(ValueError, match="matmul"):
        inner(P @ Q.T, R)  # ERR-2: the printed <A B', C> has mismatched shapes
    D, E, F = rng.normal(size=(3, 4, 5))
    assert_allclose(inner(D * E, F), inner(E, D * F), rtol=1e-12)  # Hadamard
    assert_array_equal(D.reshape(-1), np.concatenate(list(D)))  # row-major vec
    assert_allclose(inner(D, E), D.reshape(-1) @ E.reshape(-1), rtol=1e-12)


@pytest.mark.spec("DAT-13")
def test_row_major_vec_and_the_kronecker_product():
    """vec(A M B) = (A kron B') vec(M), with vec by rows."""
    rng = np.random.default_rng(1)
    A, M, B = rng.normal(size=(3, 4)), rng.normal(size=(4, 5)), rng.normal(size=(5, 2))
    assert_allclose(
        (A @ M @ B).reshape(-1), np.kron(A, B.T) @ M.reshape(-1), rtol=1e-12, atol=1e-13
    )
