"""The duality gap against a second implementation, for every loss, penalty, weight and scaling.

Nothing here reuses the library's formulas: losses are written out again in extended precision, their
conjugates are found by searching for the maximum in 40 digits, and optima come from scipy.
"""

import itertools
import math
import warnings
from dataclasses import dataclass, replace
from functools import cache

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize, minimize_scalar
from threadpoolctl import threadpool_limits

from surefit.base import Certified
from surefit.certificate import Certificate, Claim, Kind, Status
from surefit.duality import best_offset, duality_gap, gap_claim, null_value
from surefit.losses import (
    Absolute,
    Hinge,
    Huber,
    Logistic,
    Quantile,
    Softmax,
    Squared,
    SquaredHinge,
    SquareMargin,
)
from surefit.penalties import L1, L2, ElasticNet, NoPenalty
from surefit.testing import check_certificate

ALPHA = 0.02
SMOOTH = [Squared(), Huber(1.0), Logistic(), SquaredHinge(), SquareMargin(), Softmax()]
PINBALL = [Absolute(), Quantile(0.3)]
KINKED = [Hinge(), *PINBALL]
PENALTIES = [
    L1(ALPHA), L1(ALPHA, positive=True), L2(ALPHA), L2(ALPHA, positive=True), ElasticNet(ALPHA, 0.5),
    ElasticNet(ALPHA, 0.5, positive=True), ElasticNet(ALPHA, 0.0), ElasticNet(ALPHA, 1.0),
]  # fmt: skip
FREE = [NoPenalty(), NoPenalty(positive=True)]
INTERCEPTS = ["none", "free", "scaled"]
WEIGHTS = ["uniform", "random", "zeros"]
SCALING = 2.0
CONTAINERS = [
    np.asarray,
    np.asfortranarray,
    lambda X: X.astype(np.float32),
    sp.csr_array,
    lambda X: sp.csc_array(X.astype(np.float32)),
]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """The matrices are tiny: threads would only wait for each other."""
    with threadpool_limits(1):
        yield


def name(x):
    return x if isinstance(x, str) else repr(x).replace("alpha=", "").replace("l1_ratio=", "")


# ---------------------------------------------------------------------------- second implementation


def loss_again(loss, z, y, dtype=np.longdouble):
    """The losses from their definitions, in extended precision."""
    z, y = np.asarray(z, dtype=dtype), np.asarray(y, dtype=dtype)
    if isinstance(loss, Softmax):
        top = z.max(axis=-1)
        picked = np.take_along_axis(z, y.astype(int)[:, None], axis=-1)[..., 0]
        return np.log(np.exp(z - top[..., None]).sum(axis=-1)) + top - picked
    e, eta = y - z, y * z
    match loss:
        case Squared():
            return e * e / 2
        case Huber():
            d = dtype(loss.delta)
            return np.where(abs(e) <= d, e * e / 2, d * abs(e) - d * d / 2)
        case Absolute():
            return abs(e)
        case Quantile():
            return np.maximum(dtype(loss.up) * e, -dtype(loss.down) * e)
        case Logistic():
            return np.log1p(np.exp(-abs(eta))) + np.maximum(-eta, 0)
        case Hinge():
            return np.maximum(1 - eta, 0)
        case SquaredHinge():
            return np.maximum(1 - eta, 0) ** 2
        case _:
            return (1 - eta) ** 2


def slope_again(loss, z, y):
    """Derivatives in z, for scipy."""
    if isinstance(loss, Softmax):
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return p - np.eye(z.shape[1])[y.astype(int)]
    e, eta = y - z, y * z
    match loss:
        case Squared():
            return -e
        case Huber():
            return np.maximum(np.minimum(-e, loss.delta), -loss.delta)
        case Logistic():
            return -y / (1 + np.exp(np.minimum(eta, 700)))
        case SquaredHinge():
            return -2 * y * np.maximum(1 - eta, 0)
        case _:
            return -2 * y * (1 - eta)


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray
    loss: object
    penalty: object
    s: np.ndarray | None
    intercept: str

    @property
    def weights(self):
        return np.full(len(self.y), 1 / len(self.y)) if self.s is None else self.s

    def primal(self, w, b):
        """P(w, b) anew; w of shape (p,) or (p, K)."""
        Xl, w, b = (np.asarray(a, dtype=np.longdouble) for a in (self.X, w, b))
        total = self.weights @ loss_again(self.loss, Xl @ w + b, self.y)
        if self.intercept == "scaled":
            w = np.concatenate([w.ravel(), np.atleast_1d(b) / SCALING])
        if self.penalty.positive and (w < 0).any():
            return math.inf
        return float(
            total
            + self.penalty.l1 * abs(w).sum()
            + self.penalty.l2 / np.longdouble(2) * (w * w).sum()
        )

    def gap(self, w, b, *, form=np.asarray, witness=None):
        return duality_gap(
            form(self.X), self.y, np.asarray(w), b, self.loss, self.penalty, weights=self.s,
            fit_intercept=self.intercept != "none", witness=witness,
            intercept_scaling=SCALING if self.intercept == "scaled" else None,
        )  # fmt: skip

    @property
    def null(self):
        return null_value(self.loss, self.y, self.weights, fit_intercept=self.intercept != "none")


@cache
def data(kind, weights):
    """X exact in float32, targets of the kind, and weights; coefficients that come out non-zero."""
    rng = np.random.default_rng(7)
    n, p = 24, 3
    X = rng.normal(size=(n, p)).astype(np.float32).astype(np.float64)
    X[rng.random((n, p)) < 0.2] = 0.0
    signal = X @ np.array([1.0, 0.7, 0.5])
    if kind == "regression":
        y = signal + 0.4 + rng.standard_t(2, size=n)
    elif kind == "margin":
        noisy = signal + 0.8 * rng.normal(size=n)
        y = np.where(noisy > np.median(noisy), 1.0, -1.0)
    else:
        y = np.argmax(X + rng.normal(size=(n, 3)), axis=1).astype(float)
    s = {"uniform": None, "random": rng.uniform(0.1, 2.0, size=n) / n}.get(weights)
    if weights == "zeros":
        s = rng.uniform(0.1, 2.0, size=n) * (rng.random(n) < 0.8) / n
    return X, y, s


def make(loss, penalty, intercept="free", weights="uniform"):
    regression = isinstance(loss, (Squared, Huber, Absolute, Quantile))
    kind = "regression" if regression else "classes" if isinstance(loss, Softmax) else "margin"
    X, y, s = data(kind, weights)
    return Problem(X, y, loss, penalty, s, intercept)


def solve(problem):
    """(w, b, dual point or None) at the optimum, by scipy."""
    if isinstance(problem.loss, (Hinge, Absolute, Quantile)):
        return solve_kinked(problem)
    return (*solve_smooth(problem), None)


@cache
def solved(loss, penalty, intercept, weights):
    return solve(make(loss, penalty, intercept, weights))


def solve_smooth(problem):
    """L-BFGS-B in w = u - v with u, v >= 0, where the objective is smooth."""
    loss, penalty, y, s = problem.loss, problem.penalty, problem.y, problem.weights
    scaled, free = problem.intercept == "scaled", problem.intercept == "free"
    X = np.column_stack([problem.X, np.full(len(y), SCALING)]) if scaled else problem.X
    shape = (X.shape[1], 3) if isinstance(loss, Softmax) else (X.shape[1],)
    size, offsets = math.prod(shape), 3 if isinstance(loss, Softmax) else 1
    split = penalty.l1 > 0 and not penalty.positive

    def unpack(x):
        w = x[:size] - x[size : 2 * size] if split else x[:size]
        return w.reshape(shape), (x[-offsets:] if free else np.zeros(offsets))

    def objective(x):
        w, b = unpack(x)
        z = X @ w + (b if len(b) > 1 else b[0])
        magnitude = x[: 2 * size].sum() if split else x[:size].sum()
        value = s @ loss_again(loss, z, y, np.float64) + penalty.l2 / 2 * np.sum(w * w)
        g = (s * slope_again(loss, z, y).T).T
        gw = (X.T @ g + penalty.l2 * w).ravel()
        parts = [gw + penalty.l1] + ([penalty.l1 - gw] if split else [])
        parts += [g.sum(axis=0).ravel()] if free else []
        return value + penalty.l1 * magnitude, np.concatenate([np.atleast_1d(q) for q in parts])

    count = size * (2 if split else 1)
    bound = (0, None) if split or penalty.positive else (None, None)
    bounds = [bound] * count + [(None, None)] * (offsets if free else 0)
    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10, "maxcor": 40}
    x = np.zeros(len(bounds)) + 0.1
    for _ in range(2):
        x = minimize(objective, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    w, b = unpack(x)
    if scaled:
        w, b = w[:-1], SCALING * np.atleast_1d(w[-1])
    return w, (b if offsets > 1 else float(b[0]))


def solve_kinked(problem):
    """l(z, y) = max over theta in a box of theta (z - y): the dual is an LP (L1) or a small QP."""
    loss, penalty, y, s = problem.loss, problem.penalty, problem.y, problem.weights
    scaled, free = problem.intercept == "scaled", problem.intercept == "free"
    X = np.column_stack([problem.X, np.full(len(y), SCALING)]) if scaled else problem.X
    A = X.T * s
    if isinstance(loss, Hinge):
        box = [(-1.0, 0.0) if label > 0 else (0.0, 1.0) for label in y]
    else:
        box = [(-loss.up, loss.down)] * len(y)
    if penalty.l2 == 0:
        sides = -A if penalty.positive else np.vstack([-A, A])
        r = linprog(
            s * y, A_ub=sides, b_ub=np.full(len(sides), penalty.l1), bounds=box,
            A_eq=s[None] if free else None, b_eq=[0.0] if free else None,
        )  # fmt: skip
        theta, half = r.x, len(A)
        w = -r.ineqlin.marginals[:half]
        w = w if penalty.positive else w + r.ineqlin.marginals[half:]
    else:

        def excess(theta):
            v = -A @ theta
            return np.sign(v) * np.maximum((v if penalty.positive else abs(v)) - penalty.l1, 0.0)

        r = minimize(
            lambda t: s @ (y * t) + np.sum(excess(t) ** 2) / (2 * penalty.l2),
            np.array([0.3 * (a + b) + 0.05 for a, b in box]),
            jac=lambda t: s * y - excess(t) @ A / penalty.l2, method="SLSQP", bounds=box,
            constraints={"type": "eq", "fun": lambda t: s @ t, "jac": lambda t: s} if free else (),
            options={"ftol": 1e-13, "maxiter": 300},
        )  # fmt: skip
        theta = r.x
        w = excess(theta) / penalty.l2
    if scaled:
        return w[:-1], float(SCALING * w[-1]), theta
    z = problem.X @ w
    kinks = y - z if free else np.zeros(1)  # the best offset is at a kink
    costs = [float(s @ loss_again(loss, z + b, y)) for b in kinks]
    return w, float(kinks[int(np.argmin(costs))]), theta


def points(problem, w, b, seed=0):
    """Points to certify: zero, random ones, and ones near the optimum (all feasible)."""
    rng = np.random.default_rng(seed)
    fold = np.abs if problem.penalty.positive else np.asarray
    scaled = problem.intercept == "scaled"
    shape, none = np.shape(w), problem.intercept == "none"

    def offset(base, scale):
        moved = base + scale * rng.normal(size=np.shape(b))
        return (
            np.zeros_like(moved) if none else np.abs(moved) if scaled and fold is np.abs else moved
        )

    found = [(np.zeros(shape), offset(0.0, 0.0))]
    found += [(fold(rng.normal(scale=t, size=shape)), offset(0.0, t)) for t in (0.1, 1.0, 5.0)]
    near = [1e-1, 1e-3, 1e-5]
    found += [(fold(w + t * rng.normal(size=shape)), offset(b, t)) for t in near]
    return [*found, (w, offset(b, 0.0))]


def cases():
    for loss, penalty in itertools.product(SMOOTH + KINKED, PENALTIES):
        yield loss, penalty, INTERCEPTS
    for loss, penalty in itertools.product(SMOOTH, FREE):
        yield loss, penalty, INTERCEPTS[:2]
    for loss in PINBALL:
        yield loss, NoPenalty(), INTERCEPTS[:2]
        yield loss, L1(1e-9), INTERCEPTS[:2]  # rounding is no violation of a tiny bound


CASES = [pytest.param(*case, id=f"{name(case[0])}-{name(case[1])}") for case in cases()]


# ---------------------------------------------------------------------------- (b) weak duality


@pytest.mark.parametrize(("loss", "penalty", "intercepts"), CASES)
def test_weak_duality(loss, penalty, intercepts):
    """No dual value exceeds a primal value, whichever points they were computed from."""
    pairs = zip(["free", "none", "free", "scaled"], [*WEIGHTS, "random"])
    for k, (intercept, weights) in enumerate(pair for pair in pairs if pair[0] in intercepts):
        problem = make(loss, penalty, intercept, weights)
        w, b, theta = solved(loss, penalty, intercept, weights)
        lowest = min(problem.primal(*at) for at in points(problem, w, b, seed=1))
        for i, at in enumerate(points(problem, w, b)):
            want = problem.primal(*at)
            form = CONTAINERS[(i + k) % 5]  # each point meets each container in some of the loops
            for witness in (None,) if theta is None else (None, theta):
                g = problem.gap(*at, form=form, witness=witness)
                assert g.primal == pytest.approx(want, rel=1e-13)
                assert g.dual <= lowest + g.floor
                assert g.gap >= -g.floor
                assert g.gap == g.primal - g.dual
                # What the claim says must be true: if it holds, the point is optimal.
                claim = gap_claim(g, 1e-9, problem.null, "")
                if claim.status is Status.HOLDS:
                    assert want - lowest <= 2e-9 * problem.null


@pytest.mark.parametrize(("loss", "penalty", "intercepts"), CASES)
def test_strong_duality_and_nudges(loss, penalty, intercepts):
    """At scipy's optimum the gap nearly closes; a nudge of 1e-3 opens it visibly."""
    if isinstance(penalty, NoPenalty) and penalty.positive:
        pytest.skip("w >= 0 without a penalty is certified by its optimality conditions instead")
    for intercept, weights in itertools.product(intercepts, WEIGHTS):
        problem = make(loss, penalty, intercept, weights)
        w, b, theta = solved(loss, penalty, intercept, weights)
        # The accuracy of the reference: L-BFGS-B leaves a gradient of 1e-8, which counts once (L1); the
        # LP is exact; SLSQP stops at 1e-7 of the objective.
        tight = 1e-6 if theta is not None and penalty.l2 > 0 else 3e-7
        best = problem.gap(w, b, witness=theta)
        assert best.gap <= tight * problem.null
        assert best.floor <= 1e-11 * problem.null
        assert np.linalg.norm(w) > 0.1
        nudged = problem.gap(w * (1 + 1e-3), b, witness=theta)
        # The objective itself rises by half the curvature times 1e-6 |w|^2, at least.
        rise = problem.primal(w * (1 + 1e-3), b) - problem.primal(w, b)
        assert nudged.gap >= rise - best.floor
        assert nudged.gap > max(1.5 * best.gap, 1e-8 * problem.null)
        far = problem.gap(w * 1.1, b, witness=theta)
        assert far.gap > max(20 * best.gap, 1e-5 * problem.null)


@pytest.mark.parametrize("loss", KINKED, ids=name)
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_the_witness_is_what_closes_the_gap_of_a_kinked_loss(loss, penalty):
    problem = make(loss, penalty)
    w, b, theta = solved(loss, penalty, "free", "uniform")
    without, with_it = problem.gap(w, b), problem.gap(w, b, witness=theta)
    assert with_it.gap < 1e-2 * without.gap
    assert with_it.primal == without.primal


@pytest.mark.parametrize("intercept", INTERCEPTS[:2])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("loss", PINBALL, ids=name)
def test_the_witness_of_an_unpenalised_pinball_loss_is_repaired(loss, weights, intercept):
    """A projection repairs a witness that is nearly right; one that is wrong shows less, never more."""
    problem = make(loss, NoPenalty(), intercept, weights)
    w, b, theta = solved(loss, NoPenalty(), intercept, weights)
    best = problem.gap(w, b, witness=theta)
    assert abs(best.gap) <= 1e-12 * problem.null
    assert not best.trivial
    without = problem.gap(w + 1e-14, b)  # no residual is exactly 0, which would give theta away
    assert without.gap > 1e-3 * problem.null
    rng = np.random.default_rng(0)
    free, used = problem.intercept == "free", problem.weights > 0
    for size in (1e-14, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 1e3):
        g = problem.gap(w, b, witness=theta + size * rng.normal(size=len(theta)))
        st = problem.weights * g.theta
        # exactly in the box, and in the null space to rounding: it is a lower bound on any objective
        assert (g.theta[used] >= -loss.up).all()
        assert (g.theta[used] <= loss.down).all()
        assert np.abs(problem.X.T @ st).max() <= 1e-13 * np.abs(problem.X).max()
        assert not free or abs(st.sum()) <= 1e-15
        assert g.dual <= best.primal + g.floor
        assert g.gap >= best.gap - best.floor
        assert g.gap <= problem.gap(w, b).gap + 1e-12 * problem.null
        if size <= 1e-6:  # what was disturbed by a little is repaired to within a little
            assert g.gap <= 50 * size * problem.null + best.floor
    # the coordinates inside the box alone can take up what they alone have wrong: nothing is lost
    inner = used & (theta > -loss.up + 1e-6) & (theta < loss.down - 1e-6)
    near = problem.gap(w + 1e-14, b, witness=theta + 1e-7 * inner * rng.normal(size=len(theta)))
    assert near.gap <= 1e-11 * problem.null
    for bad in (np.full(len(theta), np.nan), np.full(len(theta), np.inf), theta[:-1], "text", None):
        assert problem.gap(w + 1e-14, b, witness=bad).gap == without.gap


@pytest.mark.parametrize("penalty", [L1(ALPHA), L2(ALPHA), NoPenalty()], ids=name)
def test_a_dual_point_that_is_not_balanced_is_not_believed(penalty):
    """With a free intercept sum s theta = 0 is part of the bound; centring X must not hide that it fails."""

    class Careless(Squared):
        def balance(self, theta, y, weights):
            return theta

    X = make(Squared(), penalty).X
    y = np.full(len(X), 10.0)
    for w in (np.zeros(3), np.full(3, 0.1)):
        g = duality_gap(X, y, w, 10.0, Careless(), penalty, witness=-y)
        assert g.dual <= g.floor  # the optimum is 0; the witness would show 50


@pytest.mark.parametrize("loss", PINBALL, ids=name)
@pytest.mark.parametrize("penalty", [L1(ALPHA), L1(1e-9), NoPenalty()], ids=name)
def test_a_witness_outside_the_box_is_moved_into_it(loss, penalty):
    problem = make(loss, penalty)
    w, b, theta = solved(loss, penalty, "free", "uniform")
    g = problem.gap(w + 1e-14, b, witness=theta * (1 + 1e-7))
    assert (g.theta >= -loss.up).all()
    assert (g.theta <= loss.down).all()
    assert g.gap <= 1e-5 * problem.null


# ---------------------------------------------------------------------------- (a) 40 digits


def conjugate_again(loss, theta, y):
    """max over z of theta z - l(z, y) by golden section on [-200, 200], in 40 digits."""
    theta, y, one = mpmath.mpf(float(theta)), mpmath.mpf(float(y)), mpmath.mpf(1)

    def value(z):
        e, eta = y - z, y * z
        match loss:
            case Squared():
                cost = e * e / 2
            case Huber():
                d = mpmath.mpf(loss.delta)
                cost = e * e / 2 if abs(e) <= d else d * abs(e) - d * d / 2
            case Absolute():
                cost = abs(e)
            case Quantile():
                cost = max(mpmath.mpf(loss.up) * e, -mpmath.mpf(loss.down) * e)
            case Logistic():
                cost = mpmath.log1p(mpmath.exp(-eta))
            case Hinge():
                cost = max(one - eta, 0 * one)
            case SquaredHinge():
                cost = max(one - eta, 0 * one) ** 2
            case _:
                cost = (1 - eta) ** 2
        return theta * z - cost

    ratio = (mpmath.sqrt(5) - 1) / 2
    low, high = mpmath.mpf(-200), mpmath.mpf(200)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    f_left, f_right = value(left), value(right)
    for _ in range(110):  # 400 * 0.618^110 = 4e-21
        if f_left >= f_right:
            high, right, f_right = right, left, f_left
            left = high - ratio * (high - low)
            f_left = value(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + ratio * (high - low)
            f_right = value(right)
    return value((low + high) / 2)


@pytest.mark.parametrize("loss", SMOOTH[:-1] + KINKED, ids=name)
def test_conjugates_in_40_digits(loss):
    mpmath.mp.dps = 40
    problem = make(loss, L2(1.0))
    rng = np.random.default_rng(0)
    y = problem.y[:12]
    theta = loss.grad(rng.normal(scale=2, size=12), y)
    theta = theta * np.where(np.arange(12) % 3 == 0, 0.37, 1.0)  # inside, and at the ends
    got = loss.conjugate(theta, y)
    for i in range(12):
        want = float(conjugate_again(loss, theta[i], y[i]))
        assert got[i] == pytest.approx(want, rel=1e-14, abs=1e-15)


def test_softmax_conjugate_in_40_digits():
    """At theta = p - e_y the maximum is at z = log p: its value, and no random z does better."""
    mpmath.mp.dps = 40
    rng = np.random.default_rng(0)
    z, y = rng.normal(scale=2, size=(10, 4)), rng.integers(4, size=10).astype(float)
    theta = Softmax().grad(z, y)
    got = Softmax().conjugate(theta, y)
    for i in range(10):
        p = [mpmath.mpf(t) + int(k == y[i]) for k, t in enumerate(theta[i])]
        log_p = [mpmath.log(q) for q in p]
        at_best = sum(mpmath.mpf(t) * q for t, q in zip(theta[i], log_p))
        cost = mpmath.log(sum(mpmath.exp(q) for q in log_p)) - log_p[int(y[i])]
        assert got[i] == pytest.approx(float(at_best - cost), rel=1e-13)
        for other in rng.normal(scale=3, size=(200, 4)):
            reached = theta[i] @ other - loss_again(Softmax(), other[None], y[i : i + 1])[0]
            assert reached <= got[i] + 1e-13


def penalty_conjugate_again(penalty, v):
    """max over w of <v, w> - Omega(w), coordinate by coordinate, in mpmath."""
    total = mpmath.mpf(0)
    for x in np.ravel(v):
        size = mpmath.mpf(float(x)) if penalty.positive else abs(mpmath.mpf(float(x)))
        over = size - mpmath.mpf(penalty.l1)
        if over <= 0:
            continue
        if penalty.l2 == 0:
            # Rounding of the scale t = l1 / max|v| may leave one unit in the last place.
            assert over <= 1e-12 * penalty.l1
            continue
        total += over**2 / (2 * mpmath.mpf(penalty.l2))
    return total


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("loss", SMOOTH[:-1] + KINKED, ids=name)
def test_the_dual_value_recomputed_from_its_dual_point(loss, penalty, intercept):
    """D(theta) in 40 digits from the theta that is returned, and theta's feasibility."""
    mpmath.mp.dps = 40
    full = make(loss, penalty, intercept, "random")
    problem = replace(full, X=full.X[:6], y=full.y[:6], s=full.s[:6])
    w, b, witness = solve(problem)
    w, b = 1.01 * w, 1.01 * b  # near enough to the optimum for the dual point to be more than 0
    g = problem.gap(w, b, witness=None if witness is None else 0.99 * witness)
    assert np.abs(g.theta).max() > 1e-3
    s, theta = problem.weights, g.theta
    st = [mpmath.mpf(a) * mpmath.mpf(t) for a, t in zip(s, theta)]
    imbalance = float(abs(sum(st)))
    columns = [*problem.X.T, *([np.full(6, SCALING)] if intercept == "scaled" else [])]
    v = np.array([float(-sum(mpmath.mpf(x) * q for x, q in zip(column, st))) for column in columns])
    if intercept == "free":
        assert imbalance <= 1e-15
    dual = -sum(
        mpmath.mpf(a) * conjugate_again(loss, t, label) for a, t, label in zip(s, theta, problem.y)
    )
    dual -= penalty_conjugate_again(penalty, v)
    rounding = max(g.floor, 1e-14 * g.primal)
    assert abs(g.dual - float(dual)) <= rounding
    assert abs(g.primal - problem.primal(w, b)) <= rounding


# ---------------------------------------------------------------------------- scales and means


@pytest.mark.parametrize("mean", [1e3, 1e6])
@pytest.mark.parametrize(
    "penalty", [L1(ALPHA), L2(ALPHA), ElasticNet(ALPHA, 0.5), NoPenalty()], ids=name
)
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_large_column_means(loss, penalty, mean, form):
    """X + mean with b - mean'w is the same model: the same objective, the same optimum."""
    plain = make(loss, penalty)
    w, b, _ = solved(loss, penalty, "free", "uniform")
    rng = np.random.default_rng(0)
    shift = mean * rng.choice([-1.0, 1.0], size=3)
    problem = replace(plain, X=plain.X + shift)
    w = np.round(w, 12)
    b = b - shift @ w
    g = problem.gap(w, b, form=form)
    assert g.gap >= -g.floor
    # Adding the mean rounds X by eps * mean, and the predictions by eps * mean * |w|.
    assert g.gap <= 1e-7 * problem.null + 1e3 * mean * 2.2e-16 * problem.null
    assert gap_claim(g, 1e-6, problem.null, "").status is Status.HOLDS
    nudged = problem.gap(w * (1 + 1e-3), b + shift @ w - shift @ (w * (1 + 1e-3)), form=form)
    assert gap_claim(nudged, 1e-8, problem.null, "").status is Status.FAILS


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize(
    "penalty", [L1(ALPHA), L2(ALPHA), ElasticNet(ALPHA, 0.5), NoPenalty()], ids=name
)
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_scales_of_x(loss, penalty, intercept, scale):
    """Scaling X by c, w by 1/c, the l1 weight by c and the l2 weight by c^2 changes nothing."""
    plain = make(loss, penalty, intercept)
    w, b, _ = solved(loss, penalty, intercept, "uniform")
    if not isinstance(penalty, NoPenalty):
        alpha = penalty.l1 * scale + penalty.l2 * scale**2
        penalty = ElasticNet(alpha, penalty.l1 * scale / alpha)
    problem = replace(plain, X=plain.X * scale, penalty=penalty)
    g, want = problem.gap(w / scale, b), plain.gap(w, b)
    assert g.gap >= -g.floor
    assert g.gap == pytest.approx(want.gap, abs=1e-9 * problem.null)
    nudged = problem.gap(w / scale * (1 + 1e-3), b)
    assert gap_claim(nudged, 1e-8, problem.null, "").status is Status.FAILS


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_one_column_of_another_scale_without_penalty(loss, scale):
    """Leaving out a tiny column is not optimal when it matters: the certificate must not say so."""
    plain = make(loss, NoPenalty())
    factors = np.array([scale, 1.0, 1.0])
    problem = replace(plain, X=plain.X * factors)
    w, b, _ = solved(loss, NoPenalty(), "free", "uniform")
    optimal = problem.gap((w.T / factors).T, b)
    assert gap_claim(optimal, 1e-6, problem.null, "").status is not Status.FAILS
    rest = replace(plain, X=plain.X[:, 1:])
    w_rest, b_rest, _ = solve(rest)
    without = np.concatenate([np.zeros_like(w_rest[:1]), w_rest])
    loses = problem.primal(without, b_rest) - problem.primal((w.T / factors).T, b)
    assert loses > 1e-3 * problem.null
    g = problem.gap(without, b_rest)
    assert g.gap >= loses - g.floor
    assert gap_claim(g, 1e-6, problem.null, "").status is not Status.HOLDS


@pytest.mark.parametrize("scale", [1e-8, 1e8])
@pytest.mark.parametrize("penalty", [L1(ALPHA), L2(ALPHA), NoPenalty()], ids=name)
def test_scales_of_y(penalty, scale):
    plain = make(Squared(), penalty)
    w, b, _ = solved(Squared(), penalty, "free", "uniform")
    if not isinstance(penalty, NoPenalty):
        penalty = ElasticNet(penalty.alpha * (scale if penalty.l1 else 1.0), penalty.l1_ratio)
    problem = replace(plain, y=plain.y * scale, penalty=penalty)
    g, want = problem.gap(w * scale, b * scale), plain.gap(w, b)
    assert g.gap >= -g.floor
    assert g.gap == pytest.approx(want.gap * scale**2, abs=1e-9 * problem.null)


# ---------------------------------------------------------------------------- no penalty


def test_no_penalty_needs_a_feasible_dual_point():
    """Huber, every error beyond delta: no curvature, so no correction can make X'theta = 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, 10.0, -10.0)
    zero = duality_gap(X, y, np.zeros(3), 0.0, Huber(1.0), NoPenalty(), fit_intercept=False)
    better = duality_gap(
        X, y, np.array([5.0, 0, 0]), 0.0, Huber(1.0), NoPenalty(), fit_intercept=False
    )
    assert better.primal < zero.primal - 1.0
    assert zero.dual <= better.primal
    assert gap_claim(zero, 1e-6, zero.primal, "").status is not Status.HOLDS


def test_no_penalty_positive_does_not_hide_slackness_in_the_floor():
    """v'w with v <= 0 is a real gap of the constraint w >= 0, not rounding."""
    X = np.abs(np.random.default_rng(0).normal(size=(30, 3)))
    y = X @ np.ones(3)
    far = duality_gap(
        X, y, np.full(3, 20.0), 0.0, Squared(), NoPenalty(positive=True), fit_intercept=False
    )
    assert far.primal > 100.0  # the optimum is 0
    assert gap_claim(far, 1e-6, 1.0, "").status is not Status.HOLDS


@pytest.mark.parametrize("intercept", ["none", "free"])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_no_penalty_closes_the_gap_near_the_optimum(loss, weights, intercept):
    """The Newton-corrected dual is second order: a nudge of t leaves a gap of order t^2."""
    problem = make(loss, NoPenalty(), intercept, weights)
    w, b, _ = solved(loss, NoPenalty(), intercept, weights)
    gaps = [problem.gap(w * (1 + t), b).gap for t in (1e-3, 1e-5)]
    assert gaps[0] <= 1e-3 * problem.null
    assert abs(gaps[1]) <= 1e-7 * problem.null


def test_interpolation_without_penalty():
    """More features than samples: the minimum is 0, and it is certified."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 9)), rng.normal(size=5)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    g = duality_gap(X, y, w, 0.0, Squared(), NoPenalty(), fit_intercept=False)
    null = null_value(Squared(), y, np.full(5, 0.2), fit_intercept=False)
    assert gap_claim(g, 1e-9, null, "").status is Status.HOLDS
    g = duality_gap(X, y, w * 1.01, 0.0, Squared(), NoPenalty(), fit_intercept=False)
    assert gap_claim(g, 1e-9, null, "").status is Status.FAILS


# ---------------------------------------------------------------------------- (c) witnesses


def bad_witnesses(shape):
    rng = np.random.default_rng(0)
    return {
        "random": rng.normal(size=shape),
        "large": 1e6 * rng.normal(size=shape),
        "huge": np.full(shape, 1e200),
        "tiny": np.full(shape, 1e-320),
        "zero": np.zeros(shape),
        "ones": np.ones(shape),
        "minus ones": -np.ones(shape),
        "just outside": np.sign(rng.normal(size=shape)) * (1 + 9e-13),
        "nan": np.full(shape, np.nan),
        "one nan": np.where(np.arange(math.prod(shape)).reshape(shape) == 3, np.nan, 0.1),
        "inf": np.full(shape, np.inf),
        "short": np.zeros((shape[0] - 1, *shape[1:])),
        "deep": np.zeros((*shape, 2)),
        "scalar": np.array(1.0),
        "integers": np.ones(shape, dtype=int),
        "objects": np.full(shape, None),
        "words": np.full(shape, "a"),
        "list": np.zeros(shape).tolist(),
    }


@pytest.mark.parametrize("weights", ["uniform", "zeros"])
@pytest.mark.parametrize("loss", SMOOTH + KINKED, ids=name)
def test_a_bad_witness_can_only_weaken(loss, weights):
    """The dual stays below the optimum, never falls below what it is without a witness, no warning."""
    for penalty in (L1(ALPHA), ElasticNet(ALPHA, 0.5, positive=True), NoPenalty()):
        if isinstance(penalty, NoPenalty) and isinstance(loss, Hinge):
            continue
        problem = make(loss, penalty, "free", weights)
        w, b, _ = solved(loss, penalty, "free", weights)
        lowest = problem.primal(w, b)
        for at in ((w, b), (np.zeros_like(w), b)):
            alone = problem.gap(*at)
            shape = (24, 3) if isinstance(loss, Softmax) else (24,)
            for kind, witness in bad_witnesses(shape).items():
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    got = problem.gap(*at, witness=witness)
                assert got.dual >= alone.dual, kind
                assert got.dual <= lowest + alone.floor, kind
                assert got.gap >= -got.floor, kind
                assert got.floor <= 1e-9 * problem.null + 10 * alone.floor, kind


@pytest.mark.parametrize("loss", KINKED, ids=name)
def test_a_witness_outside_its_domain_by_rounding_is_not_believed(loss):
    """theta beyond its box by 9e-13 gains 9e-13 |z| a sample: more than rounding, not a better bound."""
    problem = make(loss, L1(ALPHA))  # the LP solution is exact, so that any gain shows
    w, b, theta = solved(loss, L1(ALPHA), "free", "uniform")
    ends = (1.0,) if isinstance(loss, Hinge) else (loss.up, loss.down)
    at_end = np.isclose(np.abs(theta)[:, None], ends, atol=1e-12).any(axis=1)
    assert at_end.any()
    shifted = replace(problem, y=problem.y + (0 if isinstance(loss, Hinge) else 100.0))
    offset = b if isinstance(loss, Hinge) else b + 100.0
    for side in (1, -1):
        chosen = at_end & (np.sign(theta) == side)
        g = shifted.gap(w, offset, witness=np.where(chosen, theta * (1 + 9e-13), theta))
        assert g.gap >= -g.floor
        assert g.gap <= 1e-9


# ---------------------------------------------------------------------------- (d), (e) one dimension


def one_dimensional(problem, z=0.0):
    """min over b of sum_i s_i l(z_i + b, y_i), by scipy."""
    loss, y, s = problem.loss, problem.y, problem.weights
    if isinstance(loss, Softmax):
        z = z + np.zeros((len(y), 3))
        r = minimize(
            lambda b: float(s @ loss_again(loss, z + b, y)), np.zeros(3),
            jac=lambda b: s @ slope_again(loss, z + b, y), tol=1e-12,
        )  # fmt: skip
        return r.x - r.x.mean(), r.fun
    z = z + np.zeros(len(y))
    span = float(np.abs(y - z).max()) + 50.0
    kinks = np.concatenate([y - z, [-span, span]])
    costs = [float(s @ loss_again(loss, z + b, y)) for b in kinks]
    r = minimize_scalar(
        lambda b: float(s @ loss_again(loss, z + b, y)), bounds=(-span, span), method="bounded",
        options={"xatol": 1e-12, "maxiter": 2000},
    )  # fmt: skip
    return (r.x, r.fun) if r.fun <= min(costs) else (kinks[int(np.argmin(costs))], min(costs))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("loss", SMOOTH + KINKED, ids=name)
def test_null_value_is_the_best_constant_model(loss, weights):
    problem = make(loss, L2(1.0), "free", weights)
    assert problem.null == pytest.approx(one_dimensional(problem)[1], rel=1e-8)
    without = make(loss, L2(1.0), "none", weights)
    z = np.zeros((24, 3)) if isinstance(loss, Softmax) else np.zeros(24)
    want = float(without.weights @ loss_again(loss, z, without.y))
    assert without.null == pytest.approx(want, rel=1e-14)


@pytest.mark.parametrize("loss", [Squared(), Huber(1.0), Absolute(), Quantile(0.3)], ids=name)
def test_null_value_does_not_see_a_shift_of_the_targets(loss):
    """With a free intercept, y + 1000 is as hard as y: the yardstick of tol must not grow."""
    problem = make(loss, L2(1.0))
    shifted = replace(problem, y=problem.y + 1000.0)
    assert shifted.null == pytest.approx(problem.null, rel=1e-9)


@pytest.mark.parametrize(
    "loss", [Logistic(), SquaredHinge(), SquareMargin(), Hinge(), Softmax()], ids=name
)
def test_null_value_of_a_single_class_is_zero(loss):
    y = np.zeros(10) if isinstance(loss, Softmax) else np.ones(10)
    assert null_value(loss, y, np.full(10, 0.1), fit_intercept=True) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("spread", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("loss", SMOOTH, ids=name)
def test_best_offset_solves_the_one_dimensional_problem(loss, weights, spread):
    problem = make(loss, L2(1.0), "free", weights)
    rng = np.random.default_rng(5)
    z = spread * rng.normal(size=(24, 3) if isinstance(loss, Softmax) else 24)
    b = best_offset(loss, z, problem.y, problem.weights)
    value = one_dimensional(problem, z)[1]
    reached = float(problem.weights @ loss_again(loss, z + b, problem.y))
    assert reached <= value + 1e-12 * (1 + abs(value))
    slope = problem.weights @ slope_again(loss, z + b, problem.y)
    assert np.abs(slope).max() <= 1e-13 * (1 + spread)


@pytest.mark.parametrize("loss", KINKED, ids=name)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_best_offset_of_kinked_losses(loss, weights):
    problem = make(loss, L2(1.0), "free", weights)
    z = np.random.default_rng(5).normal(size=24)
    b = best_offset(loss, z, problem.y, problem.weights)
    reached = float(problem.weights @ loss_again(loss, z + b, problem.y))
    assert reached <= one_dimensional(problem, z)[1] * (1 + 1e-12)


# ---------------------------------------------------------------------------- the claim


def test_the_claim_reads_the_gap():
    problem = make(Squared(), L2(ALPHA))
    w, b, _ = solved(Squared(), L2(ALPHA), "free", "uniform")
    g = problem.gap(w, b)
    claim = gap_claim(g, 1e-6, problem.null, "REG-11", curvature=ALPHA)
    assert claim.status is Status.HOLDS
    assert claim.bound == 1e-6 * problem.null
    # Strong convexity: ||w - w*||^2 <= 2 gap / curvature, checked at a point away from the optimum.
    far = problem.gap(w * 1.2, b)
    assert np.linalg.norm(0.2 * w) <= math.sqrt(2 * far.gap / ALPHA)
    assert gap_claim(far, 1e-6, problem.null, "").status is Status.FAILS
    assert gap_claim(replace(g, gap=-1.0), 1e-6, 1.0, "").status is Status.FAILS
    nothing = replace(g, gap=1.0, trivial=True)  # no feasible dual point near the model
    assert gap_claim(nothing, 1e-6, 1.0, "").status is Status.UNDECIDED
    assert gap_claim(replace(g, gap=math.nan), 1e-6, 1.0, "").status is Status.FAILS


def test_float32_coefficients_have_their_own_floor():
    """A float32 fit is right to float32: the floor says so, and a visible error still fails."""
    problem = make(Squared(), L2(ALPHA))
    w, b, _ = solved(Squared(), L2(ALPHA), "free", "uniform")
    g = problem.gap(w.astype(np.float32), np.float32(b))
    assert gap_claim(g, 1e-10, problem.null, "").status is Status.HOLDS
    nudged = problem.gap((w * 1.05).astype(np.float32), np.float32(b))
    assert gap_claim(nudged, 1e-10, problem.null, "").status is Status.FAILS


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=name)
def test_weights_are_repetitions(loss):
    """Weight 3 is three copies: the same primal, dual and gap."""
    problem = make(loss, L1(ALPHA))
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, size=24)
    s = counts / counts.sum()
    w, b = rng.normal(size=3), 0.2
    once = replace(problem, s=s).gap(w, b)
    copies = replace(
        problem, X=np.repeat(problem.X, counts, axis=0), y=np.repeat(problem.y, counts), s=None
    ).gap(w, b)
    assert once.primal == pytest.approx(copies.primal, rel=1e-13)
    assert once.dual == pytest.approx(copies.dual, rel=1e-12)


# ---------------------------------------------------------------------------- check_certificate


class ToyRidge(Certified):
    """Ridge in closed form with the gap as its claim: what check_certificate expects of a model."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, certify=True):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.certify = certify

    def _validate_training_data(self, X, y, sample_weight, *, reset):
        return self._validate(X, y, sample_weight, reset=reset)

    def fit(self, X, y, sample_weight=None):
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        s = np.ones(len(y)) if sample_weight is None else sample_weight
        A = X.toarray() if sp.issparse(X) else X
        mean, level = (s @ A / s.sum(), s @ y / s.sum()) if self.fit_intercept else (0.0, 0.0)
        gram = (s[:, None] * (A - mean)).T @ (A - mean) + self.alpha * np.eye(A.shape[1])
        self.coef_ = np.linalg.solve(gram, (A - mean).T @ (s * (y - level)))
        self.intercept_ = float(level - np.sum(mean * self.coef_))
        return self._seal(X, y, sample_weight)

    def _certify(self, X, y, sample_weight, *, full, tol):
        s = np.ones(len(y)) if sample_weight is None else sample_weight
        gap = duality_gap(
            X, y, self.coef_, self.intercept_, Squared(), L2(self.alpha), weights=s,
            fit_intercept=self.fit_intercept,
        )  # fmt: skip
        null = null_value(Squared(), y, s, fit_intercept=self.fit_intercept)
        return [gap_claim(gap, 1e-10, null, "REG-11")]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_check_certificate_accepts_an_honest_model(form, fit_intercept, weights):
    X, y, s = data("regression", weights)
    model = ToyRidge(0.5, fit_intercept=fit_intercept)
    certificate = check_certificate(model, form(X), y, s)
    assert certificate["duality gap"].status is Status.HOLDS
    assert not hasattr(model, "coef_")
    check_certificate(model, form(X), y, s, direction=[1.0, 0.0, 0.0])


class Wrong(ToyRidge):
    """A solver with a bug: half of the penalty."""

    def fit(self, X, y, sample_weight=None):
        alpha, self.alpha = self.alpha, self.alpha / 2
        super().fit(X, y, sample_weight)
        self.alpha = alpha
        return self._seal(*self._validate_training_data(X, y, sample_weight, reset=False))


class Echo(ToyRidge):
    """A claim that repeats what the fit recorded, instead of looking at the coefficients."""

    def _certify(self, X, y, sample_weight, *, full, tol):
        self.recorded_ = getattr(self, "recorded_", None) or super()._certify(
            X, y, sample_weight, full=full, tol=tol
        )
        return list(self.recorded_)


class Vacuous(ToyRidge):
    """A bound that nothing exceeds."""

    def _certify(self, X, y, sample_weight, *, full, tol):
        return [Claim.check("duality gap", "small", Kind.OPTIMAL, 1.0, math.inf)]


class Unbounded(ToyRidge):
    """The same, called a success by hand."""

    def _certify(self, X, y, sample_weight, *, full, tol):
        return [Claim("duality gap", "small", Kind.OPTIMAL, 1.0, math.inf, Status.HOLDS)]


class Blind(ToyRidge):
    """Never compares the data with those of the fit."""

    def _recertify(self, X, y, sample_weight, tol):
        same = Claim.check("data", "the data", Kind.EXACT, 0.0, 0.0)
        others = super()._recertify(X, y, sample_weight, tol).claims
        return Certificate((*(claim for claim in others if claim.name != "data"), same))


class IgnoresIntercept(ToyRidge):
    """Certifies with the best intercept, whatever the model's own is."""

    def _certify(self, X, y, sample_weight, *, full, tol):
        kept, s = self.intercept_, np.ones(len(y)) if sample_weight is None else sample_weight
        self.intercept_ = float(s @ (y - X @ self.coef_) / s.sum())
        claims = super()._certify(X, y, sample_weight, full=full, tol=tol)
        self.intercept_ = kept
        return claims


class Meddles(ToyRidge):
    """verify changes the model."""

    def _certify(self, X, y, sample_weight, *, full, tol):
        self.seen_ = getattr(self, "seen_", 0) + 1
        return super()._certify(X, y, sample_weight, full=full, tol=tol)


class ReadsHalfPrecision(ToyRidge):
    """Looks at the coefficients only after a round trip, so that their dtype is not seen."""

    def _inconsistencies(self, X, y, sample_weight):
        return (s for s in super()._inconsistencies(X, y, sample_weight) if "float16" not in s)

    def _certify(self, X, y, sample_weight, *, full, tol):
        kept = self.coef_
        if self.coef_.dtype == np.float16:
            self.coef_ = ToyRidge().fit(X, y, sample_weight=sample_weight).coef_
        claims = super()._certify(X, y, sample_weight, full=full, tol=tol)
        self.coef_ = kept
        return claims


class DropsNaN(ToyRidge):
    """Takes a coefficient that is not a number for 0 from the fit."""

    def _inconsistencies(self, X, y, sample_weight):
        return (s for s in super()._inconsistencies(X, y, sample_weight) if "NaN" not in s)

    def _certify(self, X, y, sample_weight, *, full, tol):
        kept = self.coef_
        if np.isnan(kept).any():
            self.coef_ = ToyRidge().fit(X, y, sample_weight=sample_weight).coef_
        claims = super()._certify(X, y, sample_weight, full=full, tol=tol)
        self.coef_ = kept
        return claims


@pytest.mark.parametrize(
    ("cls", "law"),
    [
        (Wrong, "holds at the solution"),
        (Echo, "nudge of 0.001 to coef_"),
        (Vacuous, "some claim holds at the default tolerance"),
        (Unbounded, "finite bound"),
        (Blind, "other data"),
        (IgnoresIntercept, "nudge of 0.001 to intercept_"),
        (Meddles, "verify changes nothing"),
        (DropsNaN, "nan as first entry of coef_ is refused"),
        (ReadsHalfPrecision, "coef_ in float16 is refused"),
    ],
)
def test_check_certificate_catches(cls, law):
    X, y, _ = data("regression", "uniform")
    with pytest.raises(AssertionError, match=law):
        check_certificate(cls(), X, y)


def test_check_certificate_needs_something_to_nudge():
    X, y, _ = data("regression", "uniform")
    with pytest.raises(AssertionError, match="pass a direction"):
        check_certificate(ToyRidge(), X, np.ones_like(y))
