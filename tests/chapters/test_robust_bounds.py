"""Certified rows are robust: random points, gradient attacks and special models find nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons
from sklearn.kernel_ridge import KernelRidge as PeerRidge
from sklearn.neighbors import KNeighborsClassifier as PeerNeighbours
from sklearn.svm import SVC as PeerSVC
from tests.data import load

from surefit.kernel_ridge import KernelRidge
from surefit.kernels import Laplace
from surefit.neighbors import KNeighborsClassifier
from surefit.robust import Threat, pgd, scores
from surefit.robust.kernel_bounds import kernel_lower
from surefit.robust.linear import linear_decided
from surefit.robust.neighbour_bounds import neighbours_robust
from surefit.robust.pgd import random_points
from surefit.svm import SVC

MODELS = {
    "gaussian": SVC(),
    "gaussian, peer": PeerSVC(),
    "polynomial 2": SVC(kernel="poly", degree=2, coef0=1.0),
    "polynomial 3": SVC(kernel="poly", degree=3, coef0=0.5),
    "laplace": SVC(kernel=Laplace(gamma=0.3)),
    "laplace l1": SVC(kernel=Laplace(gamma=0.05, norm="l1")),
    "ridge": KernelRidge(kernel="rbf", gamma=0.05),
    "ridge, peer": PeerRidge(kernel="rbf", gamma=0.05),
    "neighbours": KNeighborsClassifier(),
    "neighbours, peer": PeerNeighbours(n_neighbors=4),
    "one neighbour": KNeighborsClassifier(n_neighbors=1),
}
THREATS = {
    "l2": Threat(0.4, 2),
    "linf": Threat(0.1),
    "linf, half fixed": Threat(0.2, mutable=np.arange(6) % 2 == 0),
    "linf, steps and a box": Threat(0.3, step=[0.25, 0, 0.1, 0, 0, 0], lower=-1.5, upper=1.5),
}


def rows(name: str, classes: int = 2):
    """Six columns of real data, standardised; labels -1, 1 for regressors."""
    X, y = load("breast_cancer" if classes == 2 else "wine")
    X = X[:, :6]
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order], y[order]
    return (X, 2 * y - 1) if "ridge" in name else (X, y)


def certified(model, X, y, threat):
    """Rows that are right and stay right, by the bound for the model's family."""
    known = scores(model)
    codes = known.codes(y)
    kind = type(known.family).__name__
    if kind == "Neighbours":
        robust = neighbours_robust(known.family, X, codes, [threat])[0]
    elif kind == "Kernels":
        robust = kernel_lower(known.family, X, codes, [threat])[0] > 0
    else:
        robust = linear_decided(known.family, X, codes, [threat])[0][0]
    return robust & (known.labels(X) == codes), known, codes


@pytest.mark.parametrize("threat", THREATS)
@pytest.mark.parametrize(
    ("name", "classes"),
    [(name, k) for name in MODELS for k in (2, 3) if k == 2 or "ridge" not in name],
)
def test_certified_rows_withstand_attacks(name, threat, classes):
    """10^4 random points and gradient attacks with restarts on the rows that are certified."""
    X, y = rows(name, classes)
    half = len(X) // 2
    model = MODELS[name].fit(X[:half], y[:half])
    X, y = X[half : half + 80], y[half : half + 80]
    allowed = THREATS[threat]
    if name == "laplace l1":  # bounded by distances alone: says something at smaller radii
        allowed = allowed.with_eps(allowed.eps / 4)
    robust, known, codes = certified(model, X, y, allowed)
    assert robust.mean() > 0.1  # the bound says something
    kept = np.flatnonzero(robust)
    random = np.random.RandomState(0)
    many = np.tile(kept, math.ceil(10_000 / len(kept)))
    assert (known.labels(random_points(allowed, X[many], random)) == codes[many]).all()
    ends = allowed.project(
        X[many], X[many] + random.choice([-9.0, 9.0], size=(len(many), X.shape[1]))
    )
    assert (known.labels(ends) == codes[many]).all()
    found = pgd(known, X[kept], y[kept], allowed, restarts=3, random_state=0)
    assert not found.success.any()


@pytest.mark.parametrize("name", ["gaussian", "polynomial 2", "neighbours"])
def test_bounds_are_tight_at_small_radii(name):
    """As the radius shrinks every row that is right is certified, but for rows on the boundary."""
    X, y = rows(name)
    model = MODELS[name].fit(X[:200], y[:200])
    X, y = X[200:], y[200:]
    shares = [certified(model, X, y, Threat(eps))[0].mean() for eps in (0.2, 0.05, 0.01, 1e-4)]
    assert shares == sorted(shares)
    assert shares[-1] >= np.mean(model.predict(X) == y) - 2 / len(X)


def test_the_simple_radius_of_neighbours_is_implied():
    """(b - a)/2 > r certifies; the linear question never certifies less."""
    X, y = make_moons(300, noise=0.2, random_state=0)
    model = KNeighborsClassifier(n_neighbors=5).fit(X[:200], y[:200])
    more = 0
    for eps in (0.02, 0.1, 0.2):
        robust, known, codes = certified(model, X[200:], y[200:], Threat(eps, 2))
        D = cdist(X[200:], X[:200])
        same = known.family.codes == codes[:, None]
        a = np.sort(np.where(same, D, np.inf), axis=1)[:, 2]
        b = np.sort(np.where(same, np.inf, D), axis=1)[:, 2]
        simple = (b - a) / 2 > eps * (1 + 1e-9)
        assert simple.any()
        assert (robust >= simple).all()
        more += int((robust > simple).sum())
    assert more > 0


def test_neighbours_on_a_line_are_exact():
    """One neighbour, one feature: the label changes at the midpoint, and ties count against it."""
    model = KNeighborsClassifier(n_neighbors=1).fit([[0.0], [1.0], [5.0]], [0, 1, 1])
    x, y = np.array([[0.25]]), np.array([0])
    robust = [certified(model, x, y, Threat(eps))[0][0] for eps in (0.249, 0.25, 0.251)]
    assert robust == [True, False, False]


def test_neighbours_count_votes_of_all_other_labels_together():
    random = np.random.default_rng(0)
    X, y = random.standard_normal((90, 2)), random.integers(0, 3, 90)
    model = KNeighborsClassifier(n_neighbors=3).fit(X, y)
    robust, known, codes = certified(model, X, y, Threat(0.02, 2))
    kept = np.repeat(np.flatnonzero(robust), 200)
    assert len(kept)
    points = random_points(Threat(0.02, 2), X[kept], np.random.RandomState(0))
    assert (known.labels(points) == codes[kept]).all()


def test_few_training_rows():
    """Fewer rows of the label than a majority: nothing is certified; fewer others than needed: all is."""
    model = KNeighborsClassifier(n_neighbors=3).fit([[0.0], [0.1], [0.2], [9.0]], [0, 0, 0, 1])
    far = Threat(100.0)
    assert certified(model, np.array([[0.0]]), np.array([0]), far)[0].all()
    assert not certified(model, np.array([[9.0]]), np.array([1]), Threat(1e-9))[0].any()


def test_the_taylor_bound_holds_along_the_worst_line():
    """Gaussian kernel in one feature: the bound against a fine grid, at every radius."""
    random = np.random.default_rng(0)
    X = np.sort(random.uniform(-3, 3, 40))[:, None]
    y = (np.sin(2 * X[:, 0]) > 0).astype(int)
    model = SVC(gamma=1.0, C=10.0).fit(X, y)
    known = scores(model)
    for r in (0.01, 0.1, 0.5, 2.0):
        lower = kernel_lower(known.family, X, y, [Threat(r)])[0]
        grid = X[:, 0][:, None] + np.linspace(-r, r, 401)
        margin = known.margin(grid.reshape(-1, 1), np.repeat(y, 401)).reshape(len(X), -1)
        assert (lower <= margin.min(axis=1)).all()
        if r == 0.01:
            assert (margin.min(axis=1) - lower < 0.02).all()


def test_rows_on_the_boundary_are_not_certified():
    """Rounding counts against the certificate: a margin of a few ulp is none."""
    X, y = rows("gaussian")
    model = SVC().fit(X, y)
    a, b = X[y == 0][0], X[y == 1][0]
    for _ in range(60):  # bisection to the last bit
        middle = (a + b) / 2
        if model.predict(middle[None])[0] == 0:
            a = middle
        else:
            b = middle
    points, labels = np.stack([a, b]), np.array([0, 1])
    assert not certified(model, points, labels, Threat(0.0))[0].any()
