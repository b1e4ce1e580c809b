"""The exact elastic net on a working set: faces, factors that follow them, paths, and Newton steps on top."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.exceptions import ConvergenceWarning
from tests.data import load

from surefit.linear_model import Lasso, LogisticRegression, lasso_path
from surefit.losses import Logistic
from surefit.solvers.active_set import Face, active_set, descend
from surefit.solvers.coordinate import ElasticNetData, elastic_net, factorisable
from surefit.solvers.elastic_net_path import elastic_net_path
from surefit.solvers.prox_newton import prox_newton
from surefit.solvers.sweeps import Sweeps
from surefit.solvers.working_set import WorkingSet


def _problem(n=40, p=12, seed=0, correlation=0.5):
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 1))
    X = correlation * common + (1 - correlation) * rng.standard_normal((n, p))
    return X, X @ (rng.standard_normal(p) * (rng.random(p) < 0.5)) + 0.3 * rng.standard_normal(n)


def _by_enumeration(G, c, l1, l2, positive):
    """The best of all faces and signs, each solved on its own: the definition, for few columns."""
    best, found = 0.0, np.zeros(len(c))
    signs = (0.0, 1.0) if positive else (0.0, 1.0, -1.0)
    for face in itertools.product(signs, repeat=len(c)):
        face = np.array(face)
        A = np.flatnonzero(face)
        if len(A) == 0:
            continue
        w = np.zeros(len(c))
        w[A] = np.linalg.solve(G[np.ix_(A, A)] + l2 * np.eye(len(A)), c[A] - l1 * face[A])
        if (w[A] * face[A] <= 0).any():
            continue
        value = 0.5 * w @ G @ w - c @ w + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w
        if value < best:
            best, found = value, w
    return found


@pytest.mark.spec("REG-14")
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("share", [0.7, 0.2, 0.02])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_all_faces(seed, share, l2, positive):
    X, y = _problem(p=6, seed=seed, correlation=0.8)
    G, c = X.T @ X, X.T @ y
    l1 = share * float(np.abs(c).max())
    w, q = np.zeros(6), c.copy()
    null = 0.5 * float(y @ y)
    steps = descend(
        G, w, q, l1, l2, Face(), positive=positive, target=1e-14 * null, null=null, budget=200
    )
    assert steps < 60
    expected = _by_enumeration(G, c, l1, l2, positive)
    np.testing.assert_allclose(w, expected, rtol=0, atol=1e-9 * np.abs(expected).max(initial=1e-3))
    np.testing.assert_allclose(q, c - G @ w, rtol=0, atol=1e-10 * np.abs(c).max())


@pytest.mark.parametrize("seed", range(5))
def test_the_factor_follows_the_face(seed):
    """Whatever enters and leaves, L L' = G_AA + l2 I."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 30))
    G = A.T @ A
    face = Face()
    assert face.reset(G, np.array([3, 1]), np.ones(2), 0.1)
    for _ in range(25):
        outside = np.setdiff1d(np.arange(30), face.members)
        new = rng.choice(outside, size=min(3, len(outside)), replace=False)
        taken, _ = face.enter(G, new, rng.choice([-1.0, 1.0], len(new)))
        assert taken == len(new)
        gone = np.sort(rng.choice(len(face), size=int(rng.integers(0, 3)), replace=False))
        expected = np.delete(face.members, gone)
        assert face.leave(G, gone)
        np.testing.assert_array_equal(face.members, expected)
        H = G[np.ix_(face.members, face.members)] + 0.1 * np.eye(len(face))
        b = rng.standard_normal(len(face))
        np.testing.assert_allclose(H @ face.solve(b), b, rtol=0, atol=1e-9)


def test_a_face_of_dependent_columns_is_refused_and_dependent_columns_do_not_enter():
    A = np.random.default_rng(0).standard_normal((20, 3))
    A = np.column_stack([A, A[:, 0] + A[:, 1]])
    face = Face()
    assert not face.reset(A.T @ A, np.arange(4), np.ones(4), 0.0)
    assert len(face) == 0
    assert face.reset(A.T @ A, np.arange(3), np.ones(3), 0.0)
    assert face.enter(A.T @ A, np.array([3]), np.ones(1))[0] == 0
    assert len(face) == 3


@pytest.mark.parametrize("positive", [False, True])
def test_a_column_that_depends_on_the_face_is_exchanged(positive):
    """x_2 = (x_0 + x_1) / 2 costs half of what its parents cost together: the optimum uses it."""
    rng = np.random.default_rng(1)
    A = np.linalg.qr(rng.standard_normal((30, 2)))[0]
    X = np.column_stack([A, A.sum(axis=1)])
    y = X[:, :2] @ np.array([1.0, 1.2])
    G, c, null = X.T @ X, X.T @ y, 0.5 * float(y @ y)
    w, q = np.zeros(3), c.copy()
    w[:2] = 0.9, 1.1
    q -= G @ w
    active_set(
        G, w, q, 0.05, 0.0, Face(), positive=positive, target=1e-15 * null, null=null, budget=50
    )
    assert w[2] > 0.5
    slack = c - G @ w
    used = w != 0
    np.testing.assert_allclose(np.abs(slack[used]), 0.05, atol=1e-12)
    assert (slack <= 0.05 + 1e-12).all()


@pytest.mark.parametrize("kind", ["dense", "sparse", "denser sparse"])
@pytest.mark.parametrize("centred", [False, True])
def test_the_gram_matrix_of_a_working_set(kind, centred):
    rng = np.random.default_rng(2)
    share = {"dense": 1.0, "sparse": 0.05, "denser sparse": 0.4}[kind]
    X = rng.standard_normal((80, 40)) * (rng.random((80, 40)) < share)
    y, s = rng.standard_normal(80), rng.random(80) + 0.1
    data = ElasticNetData.prepare(
        X if kind == "dense" else sp.csr_array(X), y, s, fit_intercept=centred
    )
    mean = s @ X / s.sum() if centred else np.zeros(40)
    Z = np.sqrt(s)[:, None] * (X - mean)
    columns = WorkingSet(data, np.array([5, 2]))
    columns.enter(np.array([7, 30, 11]))
    columns.enter(np.array([0]))
    expected = Z[:, columns.index].T @ Z[:, columns.index]
    np.testing.assert_allclose(columns.gram[:6, :6], expected, rtol=0, atol=1e-12)
    places = columns.keep(np.array([True, False, True, True, False, True]))
    assert places.tolist() == [0, -1, 1, 2, -1, 3]
    assert columns.index.tolist() == [5, 7, 30, 0]
    np.testing.assert_array_equal(np.flatnonzero(columns.inside), [0, 5, 7, 30])
    np.testing.assert_allclose(
        columns.gram[:4, :4], Z[:, columns.index].T @ Z[:, columns.index], rtol=0, atol=1e-12
    )
    v = rng.standard_normal(4)
    residual = s * (y - data.y_mean - (X - mean)[:, columns.index] @ v)
    np.testing.assert_allclose(columns.weighted_residual(v), residual, rtol=0, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_sweeps_with_conjugate_gradients_reach_the_same_optimum(sparse):
    X, y = _problem(n=120, p=300, seed=3, correlation=0.3)
    X = X * (np.random.default_rng(4).random(X.shape) < 0.3) if sparse else X
    given = sp.csc_array(X) if sparse else X
    data = ElasticNetData.prepare(given, y, np.full(120, 1 / 120), fit_intercept=True)
    l1 = 0.05 * float(np.abs(data.correlations(data.s * (y - data.y_mean))).max())
    exact = np.zeros(300)
    for iterate in elastic_net(data, l1, 0.01, exact):
        if iterate.estimate <= 1e-14:
            break
    w, sweeps = np.zeros(300), Sweeps(data)
    for _ in range(60):
        sweeps.advance(w, np.arange(300), l1, 0.01, positive=False, budget=10)
    np.testing.assert_allclose(w, exact, rtol=0, atol=1e-7 * np.abs(exact).max())


def _gaps(X, y, alphas, coefs):
    """The largest relative duality gap along a path, written down once more."""
    n, worst = len(y), 0.0
    for alpha, w in zip(alphas, coefs.T, strict=True):
        r = y - X @ w
        t = min(1.0, n * alpha / max(float(np.abs(X.T @ r).max()), 1e-300))
        primal = 0.5 * r @ r / n + alpha * np.abs(w).sum()
        worst = max(worst, (primal - (t * r @ y - 0.5 * t * t * r @ r) / n) / (0.5 * y @ y / n))
    return worst


@pytest.mark.spec("REG-14")
@pytest.mark.parametrize(("n", "p"), [(60, 500), (400, 30), (300, 300)])
@pytest.mark.parametrize("tol", [1e-4, 1e-10])
def test_every_point_of_a_path_has_a_gap_within_its_tolerance(n, p, tol):
    X, y = _problem(n, p, seed=5, correlation=0.6)
    alphas, coefs, gaps = lasso_path(X, y, alphas=60, eps=1e-3, tol=tol)
    null = 0.5 * float(y @ y) / n
    assert gaps.max() <= tol * null
    assert _gaps(X, y, alphas, coefs) <= tol + 1e-13
    single = Lasso(alpha=alphas[40], fit_intercept=False, tol=tol).fit(X, y)
    distance = np.linalg.norm(X @ (single.coef_ - coefs[:, 40]))
    assert distance <= 2 * np.sqrt(2 * n * tol * null)  # both are within the gap of the optimum


def test_where_scikit_learns_path_stops_above_its_tolerance():
    """Correlated columns: its sweeps run out of ``max_iter`` with a gap hundreds of times the tolerance."""
    X, y = _problem(60, 500, seed=5, correlation=0.9)
    options = {"alphas": 60, "eps": 1e-3, "tol": 1e-8}
    with pytest.warns(ConvergenceWarning):
        alphas, theirs, _ = sklearn.linear_model.lasso_path(X, y, **options)
    assert _gaps(X, y, alphas, theirs) > 100 * 1e-8
    alphas, ours, _ = lasso_path(X, y, **options)
    assert _gaps(X, y, alphas, ours) <= 1e-8 + 1e-13


@pytest.mark.parametrize("name", ["colon", "rcv1_small"])
def test_a_path_on_real_data_with_more_columns_than_rows(name):
    X, y = load(name)
    y = y - y.mean()
    alphas, coefs, _ = lasso_path(X, y, alphas=40, tol=1e-8)
    assert _gaps(X, y, alphas, coefs) <= 1e-8 + 1e-13


def test_a_path_that_outgrows_its_factor_is_finished_by_sweeps(monkeypatch):
    from surefit.solvers import coordinate

    X, y = _problem(80, 200, seed=6, correlation=0.2)
    expected = lasso_path(X, y, alphas=20, tol=1e-9)[1]
    monkeypatch.setattr(coordinate, "_ALWAYS", 10)
    monkeypatch.setattr(coordinate, "_SWEEPS_WORTH", 0)
    data = ElasticNetData.prepare(X, y, np.full(80, 1 / 80), fit_intercept=False)
    assert factorisable(data, np.arange(5), 10, 0.0)
    assert not factorisable(data, np.arange(5), 11, 0.0)
    found = lasso_path(X, y, alphas=20, tol=1e-9)[1]
    null = 0.5 * float(y @ y) / 80
    distance = np.linalg.norm(X @ (found - expected), axis=0).max()
    assert distance <= 2 * np.sqrt(2 * 80 * 1e-9 * null)


def test_a_budget_ends_a_path_point_and_is_said():
    X, y = _problem(100, 300, seed=7)
    data = ElasticNetData.prepare(X, y, np.full(100, 0.01), fit_intercept=False)
    alphas = np.geomspace(1.0, 1e-3, 20) * float(np.abs(X.T @ y).max()) / 100
    points = list(
        elastic_net_path(
            data, [(a, 0.0) for a in alphas], np.zeros(300), positive=False, tol=1e-12, budget=2
        )
    )
    assert max(point.gap for point in points) > 1e-12
    assert max(point.steps for point in points) >= 2


# ------------------------------------------------------------------------ Newton steps on top


@pytest.mark.spec("LOG-5")
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_newton_on_a_working_set_ends_at_the_optimum(kind, free):
    """The conditions of optimality, written down once more, to rounding."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((150, 400)) * (rng.random((150, 400)) < 0.2)
    y = np.where(X[:, :5].sum(axis=1) + rng.standard_normal(150) > 0, 1.0, -1.0)
    s = rng.random(150) + 0.2
    l1 = 0.15 * float(np.abs(X.T @ (s * y)).max())
    given = sp.csr_array(X) if kind == "sparse" else X
    values = []
    for iterate in prox_newton(
        given, y, s, Logistic(), l1, 0.1, np.zeros(400), np.zeros(()), fit_intercept=free
    ):
        values.append(iterate.value)
        if iterate.estimate <= 1e-14 * values[0] or len(values) > 60:
            break
    w, b = iterate.x
    assert len(values) < 30
    assert np.diff(values).max() <= 1e-14 * values[0]  # never up
    theta = s * Logistic().grad(X @ w + b, y)
    slack = -X.T @ theta - 0.1 * w
    used = w != 0.0
    assert 0 < used.sum() < 100
    np.testing.assert_allclose(slack[used], l1 * np.sign(w[used]), rtol=0, atol=1e-6 * l1)
    assert (np.abs(slack) <= l1 * (1 + 1e-6)).all()
    assert abs(theta.sum()) <= 1e-6 * l1 if free else b == 0.0


def test_many_coefficients_go_by_sweeps_to_the_same_model(monkeypatch):
    from surefit.solvers import prox_newton as module

    rng = np.random.default_rng(9)
    X = sp.csr_array(rng.standard_normal((200, 300)) * (rng.random((200, 300)) < 0.1))
    y = (X[:, :20].sum(axis=1) + 0.3 * rng.standard_normal(200) > 0).astype(int)
    options = {"C": 5.0, "l1_ratio": 1.0, "tol": 1e-10}
    exact = LogisticRegression(**options).fit(X, y)
    monkeypatch.setattr(module, "_SWEEPS_WORTH", 0)
    swept = LogisticRegression(**options).fit(X, y)
    assert exact.certificate_.ok
    assert swept.certificate_.ok
    np.testing.assert_allclose(swept.coef_, exact.coef_, atol=1e-4 * np.abs(exact.coef_).max())


def test_newton_from_a_far_start_never_rises():
    """Where the loss is flat its model is far too wide: the step must be shortened."""
    rng = np.random.default_rng(10)
    X = rng.standard_normal((80, 6))
    y = np.where(X[:, 0] + rng.standard_normal(80) > 0, 1.0, -1.0)
    start = 30.0 * rng.standard_normal(6)
    steps = prox_newton(
        X, y, np.ones(80), Logistic(), 0.5, 0.0, start, np.zeros(()), fit_intercept=True
    )
    values = [iterate.value for iterate, _ in zip(steps, range(40), strict=False)]
    assert np.diff(values).max() <= 1e-13 * values[0]
    cold = LogisticRegression(C=2.0, l1_ratio=1.0, tol=1e-12).fit(X, y)
    z = X @ cold.coef_[0] + cold.intercept_[0]
    best = float(Logistic().pointwise(z, y).sum()) + 0.5 * float(np.abs(cold.coef_).sum())
    assert abs(values[-1] - best) <= 1e-9 * best


@pytest.mark.parametrize(("n", "p"), [(60, 500), (400, 30)])
def test_the_path_by_itself_reaches_its_tolerance(n, p):
    """Without the solver that would finish what it leaves."""
    X, y = _problem(n, p, seed=11, correlation=0.7)
    data = ElasticNetData.prepare(X, y, np.full(n, 1 / n), fit_intercept=True)
    largest = float(np.abs(data.correlations(data.s * (y - data.y_mean))).max())
    penalties = [(largest * t, 0.01 * largest * t) for t in np.geomspace(1, 1e-3, 50)]
    null = 0.5 * float(data.s @ (y - data.y_mean) ** 2)
    points = list(
        elastic_net_path(data, penalties, np.zeros(p), positive=False, tol=1e-9 * null, budget=1000)
    )
    assert len(points) == 50
    for (l1, l2), point in zip(penalties, points, strict=True):
        assert point.gap <= 1e-9 * null
        w = np.zeros(p)
        w[point.columns] = point.values
        u = data.weighted_residual(w)
        slack = np.abs(data.correlations(u) - l2 * w)
        t = min(1.0, l1 / float(slack.max()))
        fit, size = float(u @ (u / data.s)), float(w @ w)
        primal = 0.5 * fit + l1 * float(np.abs(w).sum()) + 0.5 * l2 * size
        dual = t * float(u @ (y - data.y_mean)) - 0.5 * t * t * (fit + l2 * size)
        assert primal - dual <= 1.01e-9 * null


def test_leaving_together_must_not_raise_the_objective():
    """Two coefficients cross zero; with both gone the step would go up, so it ends at the first zero."""
    rng = np.random.default_rng(12)
    for _ in range(300):
        A = rng.standard_normal((8, 5))
        G, c = A.T @ A + 0.05 * np.eye(5), 3.0 * rng.standard_normal(5)
        w = rng.standard_normal(5)
        null = 0.5 * float(c @ np.linalg.solve(G, c))
        start, values = w, [0.5 * w @ G @ w - c @ w + 0.3 * np.abs(w).sum()]
        for budget in range(1, 25):
            w, q = start.copy(), c - G @ start
            active_set(
                G, w, q, 0.3, 0.0, Face(), positive=False, target=0.0, null=null, budget=budget
            )
            values.append(0.5 * w @ G @ w - c @ w + 0.3 * np.abs(w).sum())
        assert np.diff(values).max() <= 1e-12 * null
        slack = c - G @ w
        assert (np.abs(slack) <= 0.3 + 1e-9).all()
        np.testing.assert_allclose(slack[w != 0], 0.3 * np.sign(w[w != 0]), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_sweeps_never_raise_the_objective_whatever_the_gap_does(seed, monkeypatch):
    """Columns of very different size: a few sweeps lower the objective and multiply the largest correlation.

    The penalty is lowered in steps from afar; it must not go up again when that happens.
    """
    from surefit.solvers import coordinate

    monkeypatch.setattr(coordinate, "_ALWAYS", 0)
    monkeypatch.setattr(coordinate, "_SWEEPS_WORTH", 0)
    rng = np.random.default_rng(seed)
    rare = rng.random((300, 900)) < 0.02
    X = sp.csc_array(rare * np.ceil(rng.lognormal(0.0, 2.0, (300, 900))))
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    data = ElasticNetData.prepare(X, y, np.full(300, 1 / 300), fit_intercept=False)
    largest = float(np.abs(X.T @ y).max()) / 300
    w = np.zeros(900)
    for level in (0.01, 0.009):
        l1, values = level * largest, []
        for iterate in elastic_net(data, l1, 0.0, w, budget=2000):
            values.append(iterate.value)
            if iterate.estimate <= 1e-7:
                break
        assert iterate.estimate <= 1e-7
    assert np.diff(values).max() <= 1e-13
