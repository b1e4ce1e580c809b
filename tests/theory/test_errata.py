"""The formulas which the notes print wrongly, executed next to the right ones.

Each test computes the printed form and the right form of one erratum (ERR-n, see docs/errata.md)
and judges both by an oracle that uses neither: finite differences, quadrature, enumeration,
exact fractions, scipy, or a direct search.
"""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize, signal, special, stats

from surefit.kernel_ridge import KernelRidge

Array = NDArray[np.float64]

# A pair of laws on three points, used by the generative entries.
Q = np.array([0.2, 0.5, 0.3])
P = np.array([0.4, 0.35, 0.25])
# The OR set with the offset as third feature, and the labels of OR and of XOR.
X_OR = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
Y_OR = np.array([-1.0, 1.0, 1.0, 1.0])
Y_XOR = np.array([-1.0, 1.0, 1.0, -1.0])


def sigmoid(t: Array) -> Array:
    """Logistic function, from scipy."""
    return np.asarray(special.expit(t), dtype=np.float64)


def fd_grad(f: Callable[[Array], float], x: Array, h: float = 1e-6) -> Array:
    """Gradient of f at x by central differences, with the shape of x."""
    g = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[i] = h
        g[i] = (f(x + d) - f(x - d)) / (2 * h)
    return g


def fd_hess(f: Callable[[Array], float], x: Array, h: float = 1e-4) -> Array:
    """Hessian of f at the vector x by differences of central-difference gradients."""
    rows = [(fd_grad(f, x + d, h) - fd_grad(f, x - d, h)) / (2 * h) for d in h * np.eye(x.size)]
    return np.array(rows)


def regression(n: int = 20, d: int = 3) -> tuple[Array, Array, Array]:
    """A small seeded regression problem (X, y) and a weight vector w that does not solve it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1) + rng.normal(size=n), rng.normal(size=d)


def feasible(A: Array) -> bool:
    """Whether some v has A v >= 1 in every row, decided by a linear program."""
    r = optimize.linprog(np.zeros(A.shape[1]), A_ub=-A, b_ub=-np.ones(len(A)), bounds=(None, None))
    return bool(r.status == 0)


def perceptron_mistakes(X: Array, y: Array, w: Array, strict: bool = False) -> tuple[int, Array]:
    """Cyclic perceptron for at most 500 passes; a mistake is y<x,w> <= 0 (< 0 when strict)."""
    mistakes = 0
    for _ in range(500):
        before = mistakes
        for x_n, y_n in zip(X, y, strict=True):
            s = y_n * (x_n @ w)
            if s < 0 or (s == 0 and not strict):
                w, mistakes = w + y_n * x_n, mistakes + 1
        if mistakes == before:
            break
    return mistakes, w


# --- data and algebra ---------------------------------------------------------------------------


def test_err_01_xor_labels() -> None:
    """Printed: XOR with OR's labels, and w1+b>0 for (0,1). Right: 4th label -, and w2+b>0."""
    assert feasible(Y_OR[:, None] * X_OR)  # the printed labels are separable
    right = Y_XOR[:, None] * X_OR
    assert not feasible(right)
    np.testing.assert_array_equal(right.sum(axis=0), 0)  # Farkas weights (1,1,1,1)
    printed_proof = right[[0, 1, 1, 3]]  # the line for (1,0) twice
    assert feasible(printed_proof)  # so the printed four lines contradict nothing


def test_err_02_matrix_inner_product() -> None:
    """Printed: <A,BC>=<AB',C>, a quadratic classifier into R^d. Right: <B'A,C>=<AC',B>, into R."""
    rng = np.random.default_rng(0)
    A, B, C = rng.normal(size=(3, 5)), rng.normal(size=(3, 4)), rng.normal(size=(4, 5))
    value = sum(A[i, k] * B[i, j] * C[j, k] for i in range(3) for j in range(4) for k in range(5))
    with pytest.raises(ValueError, match="mismatch"):
        A @ B.T
    assert np.sum((B.T @ A) * C) == pytest.approx(value, abs=1e-12)
    assert np.sum((A @ C.T) * B) == pytest.approx(value, abs=1e-12)
    A2, B2, C2 = rng.normal(size=(3, 4, 4))  # square: the printed form runs, and is wrong
    assert np.sum((A2 @ B2.T) * C2) == pytest.approx(0.669, abs=1e-3)
    assert np.einsum("ik,ij,jk", A2, B2, C2) == pytest.approx(-8.212, abs=1e-3)
    x = rng.normal(size=4)
    assert np.ndim(x @ A2 @ x + math.sqrt(2) * (x @ x) + 1.0) == 0
    phi = np.array([x[0] ** 2, math.sqrt(2) * x[0] * x[1], x[1] ** 2])
    psi = np.array([x[0] ** 2, x[0] * x[1], x[0] * x[1], x[1] ** 2])
    assert phi.size != psi.size  # two feature maps ...
    assert phi @ phi == pytest.approx(psi @ psi)  # ... of one kernel, (x'z)^2
    assert phi @ phi == pytest.approx((x[:2] @ x[:2]) ** 2)


# --- losses and convexity -----------------------------------------------------------------------


def test_err_03_mae_gradient() -> None:
    """Printed: -(1/N) sum sign(e_n), a scalar. Right: -(1/N) sum sign(e_n) x_n."""
    X, y, w = regression()
    s = np.sign(y - X @ w)
    oracle = fd_grad(lambda v: float(np.mean(np.abs(y - X @ v))), w)
    printed, right = -np.mean(s), -X.T @ s / len(y)
    np.testing.assert_allclose(right, oracle, atol=1e-8)
    assert printed == pytest.approx(-0.2)
    np.testing.assert_allclose(oracle, [-0.474, -0.382, -0.449], atol=1e-3)


def test_err_04_strict_convexity() -> None:
    """Printed: < for all u,v and a unique minimiser. Right: u!=v, 0<l<1; at most one minimiser."""
    grid = np.arange(-2.0, 2.25, 0.25)  # dyadic numbers: the squares below are exact
    lam = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    u, v, t = np.meshgrid(grid, grid, lam, indexing="ij")
    less = (t * u + (1 - t) * v) ** 2 < t * u**2 + (1 - t) * v**2
    assert not less.all()  # as printed x^2 would not be strictly convex
    assert less[(u != v) & (t > 0) & (t < 1)].all()
    assert not (grid**2 > 0).all()  # local minimum at 0 with <: fails at w = w* itself
    assert (grid**2 >= 0).all()
    inner = (u != v) & (t > 0) & (t < 1)
    assert (np.exp(t * u + (1 - t) * v) < t * np.exp(u) + (1 - t) * np.exp(v))[inner].all()
    x = np.linspace(-700, 700, 1401)
    assert np.all(np.exp(x - 1) < np.exp(x))  # e^x: strictly convex, every point is beaten


def test_err_05_second_order_test() -> None:
    """Printed: Hessian = 0 and >= 0 give a minimum. Right: gradient = 0 and Hessian > 0."""
    near = np.linspace(-0.1, 0.1, 201)
    f = {"x": np.poly1d([1, 0]), "x^3": np.poly1d([1, 0, 0, 0]), "x^2": np.poly1d([1, 0, 0])}
    at_0 = {k: (p.deriv()(0), p.deriv(2)(0)) for k, p in f.items()}  # slope and curvature at 0
    truth = {k: bool(np.all(p(near) >= p(0))) for k, p in f.items()}
    literal = {k: h == 0 and h >= 0 for k, (_, h) in at_0.items()}
    half_repaired = {k: g == 0 and h >= 0 for k, (g, h) in at_0.items()}
    right = {k: g == 0 and h > 0 for k, (g, h) in at_0.items()}
    assert truth == {"x": False, "x^3": False, "x^2": True}
    assert all(literal[k] != truth[k] for k in f)  # wrong in all three
    assert half_repaired["x^3"] != truth["x^3"]  # gradient 0 and Hessian >= 0 is not enough
    assert right == truth


def test_err_06_smooth_is_not_lipschitz() -> None:
    """Printed: LI >= Hessian makes f L-Lipschitz. Right: it makes the gradient L-Lipschitz."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-100, 100, size=(2, 1000))
    of_f = np.abs(x**2 - y**2) / np.abs(x - y)
    of_gradient = np.abs(2 * x - 2 * y) / np.abs(x - y)
    assert of_f.max() > 50 * 2  # f(x) = x^2 has L = 2
    np.testing.assert_allclose(of_gradient, 2, rtol=1e-9)


def test_err_07_strong_convexity() -> None:
    """Printed: f - m|x|^2 convex. Right: f - (m/2)|x|^2 convex, when mI <= Hessian."""
    rng = np.random.default_rng(0)
    H = np.diag([1.0, 3.0, 10.0])  # m = 1
    U, V = rng.normal(size=(2, 500, 3))

    def worst_excess(c: float) -> float:
        def f(x: Array) -> Array:
            return np.asarray(0.5 * np.sum((x @ H) * x, axis=1) - c * np.sum(x**2, axis=1))

        return float(np.max(f((U + V) / 2) - (f(U) + f(V)) / 2))

    assert worst_excess(1.0) > 0.5  # m|x|^2 takes away too much: a chord below the graph
    assert worst_excess(0.5) < 1e-12


def test_err_08_chain_rule_and_projection() -> None:
    """Printed: chain rule for any q; P(w)=argmin |v-w| with no set. Right: conditions; v in C."""
    u = np.linspace(-2, 2, 401)
    loss = np.abs(u**2 - 1)  # h=|.|, q(w)=w^2-1, at w=0: sign(q(0)) q'(0) = 0
    assert not np.all(loss >= 1.0 + 0.0 * u)  # g=0 is no subgradient: L(1)=0 < L(0)=1
    hinge = np.maximum(1 - 2 * u, 0)  # q affine: g = -2 at w = 0
    assert np.all(hinge >= 1.0 - 2 * u)
    w = np.array([3.0, 0.0])
    printed = optimize.minimize(lambda v: float(np.sum((v - w) ** 2)), np.zeros(2)).x
    assert np.linalg.norm(printed) == pytest.approx(3, abs=1e-4)  # it does not enter C
    right = w / np.linalg.norm(w)  # C: the unit disc
    angle = np.linspace(0, 2 * np.pi, 3601)
    disc = np.vstack([r * np.column_stack([np.cos(angle), np.sin(angle)]) for r in (0.5, 0.9, 1.0)])
    assert np.min(np.linalg.norm(disc - w, axis=1)) == pytest.approx(np.linalg.norm(right - w))
    assert np.min(np.linalg.norm(disc - w, axis=1)) > 1.9  # nothing of C in a 0.1-ball round w


def test_err_09_scaled_objective_and_sgd_sign() -> None:
    """Printed: min f = min cf; estimate +y x 1[mistake]. Right: argmin, c>0; estimate -y x 1[.]."""
    x = np.linspace(-3, 3, 601)
    f = (x - 1) ** 2 + 1
    assert f.min() == pytest.approx(1)
    assert (2 * f).min() == pytest.approx(2)  # the value doubles ...
    assert np.argmin(2 * f) == np.argmin(f)  # ... the minimiser stays
    assert np.argmin(-f) != np.argmin(f)
    X, _, w = regression()
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    wrong = y * (X @ w) <= 0
    oracle = fd_grad(lambda v: float(np.mean(np.maximum(-y * (X @ v), 0))), w)
    printed = np.mean((y * wrong)[:, None] * X, axis=0)  # mean over the random index
    np.testing.assert_allclose(-printed, oracle, atol=1e-8)
    assert np.max(np.abs(printed - oracle)) > 0.1


# --- optimisation -------------------------------------------------------------------------------


def test_err_10_mse_and_its_gradient() -> None:
    """Printed: MSE=(1/N)w'e and gradient +(1/N)X'e. Right: (1/2N)e'e and -(1/N)X'e."""
    X, y, w = regression(n=4, d=4)  # N = D: otherwise w'e has no meaning at all

    def half_mse(v: Array) -> float:
        return sum((float(b) - float(a @ v)) ** 2 for a, b in zip(X, y, strict=True)) / 8

    e = y - X @ w
    assert e @ e / 8 == pytest.approx(half_mse(w))
    assert (w @ e / 4, half_mse(w)) == pytest.approx((2.27, 19.15), abs=0.01)
    oracle = fd_grad(half_mse, w)
    np.testing.assert_allclose(-X.T @ e / 4, oracle, rtol=1e-6)
    assert np.linalg.norm(X.T @ e / 4 - oracle) > np.linalg.norm(oracle)
    assert half_mse(w - 0.1 * (X.T @ e / 4)) > half_mse(w) > half_mse(w + 0.1 * (X.T @ e / 4))


def test_err_11_newton_model() -> None:
    """Printed: model g'H(w-w0)+w'Hw/2, H=X'Xw/N. Right: Taylor's second order, H=X'SX/N."""
    X, y, w0 = regression()
    y = (y > 0).astype(float)

    def loss(w: Array) -> float:
        return float(np.mean(np.logaddexp(0, X @ w) - y * (X @ w)))

    s = sigmoid(X @ w0)
    g, H = X.T @ (s - y) / len(y), (X.T * (s * (1 - s))) @ X / len(y)
    np.testing.assert_allclose(H, fd_hess(loss, w0), atol=1e-6)
    assert (X.T @ X @ w0 / len(y)).shape != H.shape  # the printed Hessian is a vector
    w = w0 + 0.01 * np.ones(3)
    right = loss(w0) + g @ (w - w0) + 0.5 * (w - w0) @ H @ (w - w0)
    printed = g @ H @ (w - w0) + 0.5 * w @ H @ w
    assert right == pytest.approx(loss(w), abs=1e-6)
    assert (printed, loss(w)) == pytest.approx((0.0277, 0.8865), abs=1e-4)
    newton, gradient = w0 - np.linalg.solve(H, g), w0 - g
    assert np.linalg.norm(newton - gradient) > 1  # "Newton is gradient descent": it is not


def test_err_12_stochastic_step_size() -> None:
    """Printed: step 1/k for convex f reaches eps in O(1/eps^2). Right: step c/sqrt(k)."""
    n = 100_000
    k = np.arange(1.0, n + 1)
    a, x0 = 0.01, 10.0  # f(x) = (a/2) x^2 without noise, the easiest case
    printed, right = x0 * np.prod(1 - a / k), x0 * np.prod(1 - a / np.sqrt(k))
    exact = math.exp(special.gammaln(n + 1 - a) - special.gammaln(1 - a) - special.gammaln(n + 1))
    assert printed == pytest.approx(x0 * exact, rel=1e-9)
    assert printed == pytest.approx(8.86, abs=0.01)
    eps = 0.01
    assert a / 2 * printed**2 > 30 * eps  # after 1e5 = 10/eps^2 steps
    assert a / 2 * right**2 < eps
    path = x0 * np.cumprod(1 - a / np.sqrt(k))
    assert a / 2 * np.mean(path) ** 2 < eps  # the averaged iterate too
    bound = (x0**2 + (a * x0) ** 2 * np.sum(1 / k)) / (2 * np.sum(1 / np.sqrt(k)))
    assert a / 2 * np.min(path) ** 2 <= bound


# --- regression and likelihood ------------------------------------------------------------------


def test_err_13_convexity_of_least_squares() -> None:
    """Printed: difference >= 0, Hessian X'X/N for (1/N)|e|^2. Right: <= 0, and 2X'X/N."""
    X, y, w = regression()
    v = np.array([1.0, -1.0, 2.0])

    def mse(u: Array) -> float:
        return float(np.mean((y - X @ u) ** 2))

    diff = mse(0.3 * w + 0.7 * v) - 0.3 * mse(w) - 0.7 * mse(v)
    assert diff == pytest.approx(-0.936, abs=1e-3)  # the printed first line says >= 0
    form = -0.3 * 0.7 * np.sum((X @ (w - v)) ** 2) / len(y)
    assert diff == pytest.approx(form)  # for (1/N)|e|^2; half of it, as printed, for (1/2N)|e|^2
    assert abs(diff - form / 2) > 0.4
    H = fd_hess(mse, w)
    np.testing.assert_allclose(H, 2 * X.T @ X / len(y), atol=1e-5)
    assert np.max(np.abs(H - X.T @ X / len(y))) > 0.5


def test_err_14_gaussian_constant() -> None:
    """Printed: (2 pi)^{d/2}; Sigma PSD; zero covariance = independent. Right: -d/2; PD; no."""
    S = np.array([[2.0, 0.5], [0.5, 1.0]])
    t = np.linspace(-12, 12, 481)
    G = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1)
    kernel = np.exp(-0.5 * np.einsum("...i,ij,...j", G, np.linalg.inv(S), G))
    mass = kernel.sum() * (t[1] - t[0]) ** 2 / math.sqrt(np.linalg.det(S))
    assert (2 * np.pi) ** -1 * mass == pytest.approx(1, abs=1e-9)
    assert (2 * np.pi) ** 1 * mass == pytest.approx((2 * np.pi) ** 2)  # 39.48
    assert (2 * np.pi) ** -1 * kernel[240, 260] / math.sqrt(np.linalg.det(S)) == pytest.approx(
        stats.multivariate_normal(np.zeros(2), S).pdf(G[240, 260])
    )
    with pytest.raises(np.linalg.LinAlgError):  # PSD is not enough
        np.linalg.inv(np.ones((2, 2)))
    third = Fraction(1, 3)  # x uniform on {-1,0,1}, y = x^2
    cov = sum(third * x * x**2 for x in (-1, 0, 1))  # E[x] = 0, so this is E[xy]
    assert cov == 0
    p_y0 = sum(third for x in (-1, 0, 1) if x**2 == 0)
    assert abs(third - third * p_y0) == Fraction(2, 9)  # P(x=0,y=0) against P(x=0)P(y=0)


def test_err_15_log_likelihood_factor() -> None:
    """Printed: log p = -(1/N) sum e^2 + const. Right: -(1/(2 sigma^2)) sum e^2 + const."""
    X, y, w = regression()
    v, sigma = np.zeros(3), 0.7
    oracle = np.sum(stats.norm.logpdf(y, X @ w, sigma) - stats.norm.logpdf(y, X @ v, sigma))
    drop = np.sum((y - X @ v) ** 2) - np.sum((y - X @ w) ** 2)
    right, printed = drop / (2 * sigma**2), drop / len(y)
    assert right == pytest.approx(oracle)
    assert (printed, oracle) == pytest.approx((-2.776, -56.652), abs=1e-3)
    assert abs(oracle / printed) == pytest.approx(len(y) / (2 * sigma**2))  # 20.4 times


def test_err_16_asymptotic_law() -> None:
    """Printed: error ~ (1/N)N(.,1/F), F from first derivatives. Right: N^{-1/2}; second ones."""
    p, n = 0.3, 50
    k = np.arange(n + 1)
    var = float(np.sum(stats.binom.pmf(k, n, p) * (k / n - p) ** 2))  # by enumeration
    h = 1e-4

    def loglik(q: float) -> Array:
        return np.log([q, 1 - q])

    law = np.array([p, 1 - p])
    first = law @ (loglik(p + h) - loglik(p - h)) / (2 * h)
    fisher = -law @ (loglik(p + h) - 2 * loglik(p) + loglik(p - h)) / h**2
    assert abs(first) < 1e-6  # the printed Fisher information is 0
    assert 1 / (n * fisher) == pytest.approx(var, rel=1e-5)
    assert var / (1 / (n**2 * fisher)) == pytest.approx(n, rel=1e-5)  # printed: 50 times less

    def moment(j: int) -> float:  # of the MLE 5/sum(x), x exponential of rate 1, N = 5
        return float(integrate.quad(lambda g: (5 / g) ** j * stats.gamma.pdf(g, 5), 0, np.inf)[0])

    spread = moment(2) - moment(1) ** 2
    assert spread == pytest.approx(25 / 48)  # efficient only in the limit: 0.521 against 1/5


def test_err_17_laplace_density() -> None:
    """Printed: (1/sqrt(2 pi)) exp(-|r|/2). Right: (1/2b) exp(-|r|/b)."""
    b = 2.0
    printed = 2 * integrate.quad(lambda r: math.exp(-r / 2) / math.sqrt(2 * np.pi), 0, np.inf)[0]
    right = 2 * integrate.quad(lambda r: math.exp(-r / b) / (2 * b), 0, np.inf)[0]
    assert printed == pytest.approx(4 / math.sqrt(2 * np.pi))  # 1.596
    assert right == pytest.approx(1)
    assert math.exp(-0.8 / b) / (2 * b) == pytest.approx(stats.laplace.pdf(0.8, scale=b))


def test_err_18_ridge_shift() -> None:
    """Printed: shift 2 lam/N, |w|_1^2 with gradient 2w. Right: shift 2N lam, and |w|_2^2."""
    X, y, w = regression()
    N, lam = len(y), 0.1

    def objective(v: Array) -> float:
        return float(np.sum((y - X @ v) ** 2) / (2 * N) + lam * np.sum(v**2))

    def solve(shift: float) -> Array:
        return np.asarray(np.linalg.solve(X.T @ X + shift * np.eye(3), X.T @ y))

    best = optimize.minimize(objective, np.zeros(3), tol=1e-10).x
    np.testing.assert_allclose(solve(2 * N * lam), best, atol=1e-6)
    np.testing.assert_allclose(best, [1.262, 1.647, 1.843], atol=1e-3)
    np.testing.assert_allclose(solve(2 * lam / N), [1.348, 2.127, 2.395], atol=1e-3)
    assert np.linalg.norm(fd_grad(objective, solve(2 * lam / N))) > 0.5
    whole = np.sum((y - X @ w) ** 2) / N + lam * np.sum(w**2)  # "=" in the notes
    assert abs(whole - objective(w)) > 1
    np.testing.assert_allclose(fd_grad(lambda v: float(np.sum(v**2)), w), 2 * w, atol=1e-8)
    l1 = fd_grad(lambda v: float(np.sum(np.abs(v))) ** 2, w)
    np.testing.assert_allclose(l1, 2 * np.sum(np.abs(w)) * np.sign(w), atol=1e-7)
    assert np.linalg.norm(l1 - 2 * w) > 1


def test_err_19_any_positive_lambda() -> None:
    """Printed: lambda large, no singular values, p points. Right: any > 0, no zero ones, d."""
    rng = np.random.default_rng(0)
    n, d, lam = 4, 6, 1e-3  # D > N: X'X is singular
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    assert np.linalg.matrix_rank(X.T @ X) == n
    s = np.linalg.svd(X.T @ X + n * lam * np.eye(d), compute_uv=False)
    assert s.size == d > 0  # "no singular values" would be 0 of them
    assert s.min() == pytest.approx(n * lam)
    ridge = np.linalg.solve(X.T @ X + n * lam * np.eye(d), X.T @ y)

    def augmented(points: int) -> Array:
        A = np.vstack([X, math.sqrt(n * lam) * np.eye(d)[:points]])
        return np.asarray(np.linalg.lstsq(A, np.append(y, np.zeros(points)), rcond=None)[0])

    np.testing.assert_allclose(augmented(d), ridge, atol=1e-9)
    assert np.linalg.norm(augmented(n) - ridge) > 2  # any other number of points will not do


# --- generalisation -----------------------------------------------------------------------------


def test_err_20_hoeffding() -> None:
    """Printed: 2exp(-2N eps^2), exp(-2N eps^2)/(2N eps^2). Right: 2exp(-2N eps^2/(b-a)^2)."""
    N, eps = 100, 1.0  # Theta in {0, 10}, fair: mean 5, b - a = 10
    k = np.arange(N + 1)
    pmf = stats.binom.pmf(k, N, 0.5)
    true = pmf[np.abs(10 * k / N - 5) >= eps].sum()
    assert true == pytest.approx(0.0569, abs=1e-4)
    assert true <= 2 * math.exp(-2 * N * eps**2 / 100)  # 0.271
    assert true > 1e80 * 2 * math.exp(-2 * N * eps**2)
    dev = 0.15  # the gap bound, with range [0, 1]
    tail = pmf[np.abs(k - 50) >= 15].sum()
    printed = math.exp(-2 * N * dev**2) / (2 * N * dev**2)
    assert tail > 1.3 * printed  # 0.0035 > 0.0025
    assert tail <= 2 * math.exp(-2 * N * dev**2)
    skew = stats.binom.pmf(np.arange(6), 5, 0.9)  # without |.| the lower side is not covered
    away = np.arange(6) / 5 - 0.9
    assert skew[away >= 0.2].sum() == 0
    assert skew[np.abs(away) >= 0.2 - 1e-12].sum() == pytest.approx(0.08146)


def test_err_21_model_selection() -> None:
    """Printed: k* and k^ both argmin L_test; no K in the bound. Right: k*=argmin L_D; ln(2K/d)."""

    def worse_chosen(N: int) -> float:  # models of risk 0.4 and 0.5; a tie takes the second
        k = np.arange(N + 1)
        return float(stats.binom.pmf(k, N, 0.5) @ stats.binom.sf(k - 1, N, 0.4))

    delta = 0.05
    assert worse_chosen(25) == pytest.approx(
        0.283, abs=1e-3
    )  # 0 if k* were the argmin of the same numbers
    assert 2 * math.sqrt(math.log(4 / delta) / (2 * 2000)) < 0.1  # N=2000: the bound excludes it
    assert worse_chosen(2000) <= delta
    K, n, eps = 50, 100, 0.2  # K independent fair models, n test points
    j = np.arange(n + 1)

    def some_deviation(e: float) -> float:
        one = stats.binom.pmf(j, n, 0.5)[np.abs(j / n - 0.5) >= e - 1e-12].sum()
        return float(1 - (1 - one) ** K)

    assert some_deviation(eps) > 50 * math.exp(-2 * n * eps**2) / (2 * n * eps**2)  # as printed
    assert some_deviation(eps) <= 2 * K * math.exp(-2 * n * eps**2)
    assert some_deviation(math.sqrt(math.log(2 / delta) / (2 * n))) > 0.25  # no K in the radius
    assert some_deviation(math.sqrt(math.log(2 * K / delta) / (2 * n))) <= delta


def test_err_22_cross_validation() -> None:
    """Printed: CV estimates risk and variance without bias. Right: size (K-1)N/K; biased var."""
    cv, naive = [], []
    for bits in itertools.product((0, 1), repeat=4):  # fair coins, f_S = mean, square loss, K=2
        y = [Fraction(v) for v in bits]
        folds = []
        for test, train in ((y[:2], y[2:]), (y[2:], y[:2])):
            m = (train[0] + train[1]) / 2
            folds.append(((test[0] - m) ** 2 + (test[1] - m) ** 2) / 2)
        cv.append((folds[0] + folds[1]) / 2)
        naive.append((folds[0] - folds[1]) ** 2 / 4)  # sample variance of the folds / K
    mean = sum(cv, Fraction(0)) / 16

    def risk(m: int) -> Fraction:
        return Fraction(1, 4) + Fraction(1, 4 * m)

    assert mean == risk(2) == Fraction(3, 8)
    assert mean - risk(4) == Fraction(1, 16)
    var = sum((c - mean) ** 2 for c in cv) / 16
    assert (var, sum(naive, Fraction(0)) / 16) == (Fraction(9, 128), Fraction(1, 128))


def test_err_23_bias_variance() -> None:
    """Printed: f and E f_S both as f_S, so bias and variance vanish. Right: f, and E f_S."""
    half, f = Fraction(1, 2), Fraction(1)  # truth 1, noise +-1, f_S = half the mean of 2 samples
    models = [half * (2 * f + a + b) / 2 for a in (-1, 1) for b in (-1, 1)]
    total = sum((f + e - m) ** 2 for m in models for e in (-1, 1)) / 8
    mean = sum(models, Fraction(0)) / 4
    right = 1 + (f - mean) ** 2 + sum((m - mean) ** 2 for m in models) / 4
    printed = Fraction(1)  # the noise alone: both printed brackets read f_S - f_S
    assert right == total == Fraction(11, 8)
    assert total - printed == Fraction(3, 8)


# --- perceptron, logistic regression, SVM -------------------------------------------------------


def test_err_24_mistake_test() -> None:
    """Printed: a mistake is y yhat < 0. Right: <= 0, or w = 0 never moves."""
    printed, w_printed = perceptron_mistakes(X_OR, Y_OR, np.zeros(3), strict=True)
    right, w = perceptron_mistakes(X_OR, Y_OR, np.zeros(3))
    assert printed == 0
    assert not np.any(w_printed)
    assert right == 9
    assert np.all(Y_OR * (X_OR @ w) > 0)


def test_err_25_mistake_bound() -> None:
    """Printed: growth y^2<w,w>, any w0, "after C^2/g^2". Right: <x,x>, w0=0, at most."""
    w, x, y = np.array([1.0, 2.0, -1.0]), np.array([1.0, 1.0, 1.0]), -1.0
    exact = np.linalg.norm(w + y * x) ** 2
    assert w @ w + 2 * y * (w @ x) + x @ x == pytest.approx(exact)  # 5
    assert w @ w + 2 * y * (w @ x) + w @ w == pytest.approx(8)
    best = np.array([2.0, 2.0, -1.0]) / 3  # unit vector of margin 1/3
    gamma = np.min(Y_OR * (X_OR @ best))
    bound = round(3 / gamma**2)
    assert bound == 27
    assert perceptron_mistakes(X_OR, Y_OR, np.zeros(3))[0] == 9  # at most, not exactly
    assert perceptron_mistakes(X_OR, Y_OR, np.array([-50.0, -50.0, 50.0]))[0] == 161 > bound


def test_err_26_one_vs_one_vote() -> None:
    """Printed: "majority vote" sums the scores. Right: it counts the pairs won."""
    S = np.array([[0.0, 1.0, 1.0], [-1.0, 0.0, 10.0], [-1.0, -10.0, 0.0]])
    votes = [sum(1 for other in range(3) if S[k, other] > 0) for k in range(3)]
    assert votes == [2, 1, 0]
    assert int(np.argmax(votes)) == 0  # beats both others
    assert int(np.argmax(S.sum(axis=1))) == 1  # the printed sum: 2, 9, -11


def test_err_27_logistic_nll() -> None:
    """Printed: leading minus; no log in the 2nd term; y'=(y+1)/2. Right: NLL; log; y'=2y-1."""
    X, _, w = regression()
    y, z = (X[:, 0] > 0).astype(float), X @ w
    p = sigmoid(z)
    oracle = -np.sum(stats.bernoulli.logpmf(y.astype(int), p))
    assert np.sum(np.logaddexp(0, z) - y * z) == pytest.approx(oracle)
    assert -np.sum(np.logaddexp(0, z) - y * z) < 0 < oracle  # as printed in {002}
    no_log = np.sum(-y * np.log(p) - (1 - y) * (1 - p))
    assert abs(no_log - oracle) > 1
    assert np.sum(np.logaddexp(0, -(2 * y - 1) * z)) == pytest.approx(oracle)
    assert set((y + 1) / 2) == {0.5, 1.0}  # not -1 and +1
    assert abs(np.sum(np.logaddexp(0, -(y + 1) / 2 * z)) - oracle) > 1
    assert np.min(np.abs(p - (1 - p))) > 1e-3  # "P(x) = 1-P(x)" holds for no sample


def test_err_28_hard_margin() -> None:
    """Printed: max min x'w s.t. yx'w>=1; alpha>0. Right: |w|=1, min|x'w|; alpha>=0."""
    X, y = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, -1.0])
    good, bad = np.array([1.0, 0.0]), np.array([1.0, 10.0])
    for w in (good, bad):
        assert np.all(y * (X @ w) >= 1)
        assert np.min(X @ w) == -1  # the printed objective cannot tell them apart
    t = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    W = np.stack([np.cos(t), np.sin(t)])
    ok = np.all(y[:, None] * (X @ W) >= 0, axis=0)
    margin = np.where(ok, np.min(np.abs(X @ W), axis=0), -1)
    np.testing.assert_allclose(W[:, np.argmax(margin)], good, atol=1e-12)
    assert np.min(y * (X @ bad)) / np.linalg.norm(bad) < 0.1 < margin.max()
    # OR: the dual optimum (4,2,2,0) = 4 has a zero multiplier
    V = Y_OR[:, None] * X_OR[:, :2]
    assert np.sum([4, 2, 2, 0]) - 0.5 * np.sum((np.array([4, 2, 2, 0]) @ V) ** 2) == 4
    A = np.random.default_rng(0).uniform(0.01, 6, size=(5000, 4))
    A[:, 0] = A[:, 1:].sum(axis=1)  # sum alpha y = 0, every alpha > 0
    dual = A.sum(axis=1) - 0.5 * np.sum((A @ V) ** 2, axis=1)
    assert np.all(dual <= 4 - 2 * A[:, 3] + 1e-9)  # slope 1 - y4(<x4,w>+b) = -2


def test_err_29_soft_margin_constraint() -> None:
    """Printed: y - w'x >= 1-xi, and no lambda. Right: y w'x >= 1-xi, (lambda/2)|w|^2."""
    score = 3.0  # y = +1, well on the right side
    assert max(0.0, 1 - (1 - score)) == 3  # slack forced by the printed constraint
    assert max(0.0, 1 - 1 * score) == 0
    assert 1 - (-score) >= 1 > 1 * (-score)  # and a wrong score -3 satisfies it without slack

    def argmin(lam: float) -> float:
        t = np.linspace(-2, 2, 400_001)
        return float(t[np.argmin(lam / 2 * t**2 + np.maximum(1 - t, 0))])  # x = y = 1

    assert argmin(4.0) == pytest.approx(1 / 4)  # right, lambda = 4
    assert argmin(1.0) == pytest.approx(1)  # printed: lambda has no effect


def test_err_30_soft_dual() -> None:
    """Printed: alpha in {0,1}, w=X'Ya/(2N), no linear term. Right: [0,1], 1/(lam N), 1'a/N."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 2))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=8) > 0, 1.0, -1.0)
    N, lam, V = 8, 0.1, y[:, None] * X

    def primal(w: Array) -> float:
        return float(lam / 2 * w @ w + np.mean(np.maximum(1 - V @ w, 0)))

    def dual(a: Array) -> float:
        return float(a.sum() / N - np.sum((a @ V) ** 2) / (2 * lam * N**2))

    r = optimize.minimize(lambda a: -dual(a), np.full(N, 0.5), bounds=[(0, 1)] * N, tol=1e-14)
    best = primal(r.x @ V / (lam * N))
    assert best - dual(r.x) < 1e-5  # gap closed: both are optimal
    corners = max(dual(np.array(a)) for a in itertools.product((0.0, 1.0), repeat=N))
    assert (best, corners) == pytest.approx((0.4988, 0.4852), abs=1e-4)  # {0,1} leaves a gap
    assert primal(r.x @ V / (2 * N)) == pytest.approx(0.964, abs=1e-3)
    garbled = (1 / (2 * N) - lam / 2) * np.sum((r.x @ V) ** 2)
    assert garbled == pytest.approx(0.006, abs=1e-4)


def test_err_31_svm_gradient_objective() -> None:
    """Printed: |w|^2/(2 lam) plus C; hinge(1 - y yhat). Right: one constant; hinge(y yhat)."""
    t = np.linspace(-2, 2, 400_001)

    def argmin(lam: float, C: float) -> float:
        return float(t[np.argmin(t**2 / (2 * lam) + C * np.maximum(1 - t, 0))])

    assert argmin(2, 0.1) == pytest.approx(argmin(1, 0.2))  # only lam*C counts
    assert argmin(2, 0.1) == pytest.approx(0.2)

    def hinge(s: float) -> float:
        return max(1 - s, 0.0)

    confident = 5.0  # y yhat of a point well classified
    assert hinge(1 - confident) == 5
    assert hinge(confident) == 0
    slope = (hinge(1 - (-5.0 + 1e-6)) - hinge(1 - (-5.0 - 1e-6))) / 2e-6
    assert slope == 0  # a point badly wrong: no push at all
    assert (hinge(-5.0 + 1e-6) - hinge(-5.0 - 1e-6)) / 2e-6 == pytest.approx(-1)


# --- calibration and kernels --------------------------------------------------------------------


def test_err_32_perceptron_loss() -> None:
    """Printed: not calibrated, hence cannot generalise. Right: only the first follows."""
    s = np.linspace(-2, 2, 4001)
    perceptron = 0.7 * np.maximum(-s, 0) + 0.3 * np.maximum(s, 0)
    hinge = 0.7 * np.maximum(1 - s, 0) + 0.3 * np.maximum(1 + s, 0)
    assert s[np.argmin(perceptron)] == pytest.approx(0, abs=1e-9)  # no sign: not calibrated
    assert s[np.argmin(hinge)] == pytest.approx(1)
    zero_one = 0.7 * (s <= 0) + 0.3 * (s > 0)
    assert np.ptp(s[zero_one == zero_one.min()]) > 1.9  # of eta(x) only the sign is defined
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    X = X[np.abs(X @ [1.0, 1.0]) > 0.3]
    y = np.sign(X @ [1.0, 1.0])
    mistakes, w = perceptron_mistakes(X[:200], y[:200], np.zeros(2))
    assert mistakes == 2
    assert np.mean(y[200:] * (X[200:] @ w) <= 0) < 0.05  # a chance rule has 0.5


def test_err_34_kernel_ridge() -> None:
    """Printed: (1/N)(X'X+lam I)^{-1}X'y, K=Phi'Phi. Right: X'X/N+lam I inside; Phi Phi'."""
    X, y, _ = regression(n=8)
    N, lam, K = 8, 0.5, X @ X.T

    def objective(v: Array) -> float:
        return float(np.sum((y - X @ v) ** 2) / (2 * N) + lam / 2 * np.sum(v**2))

    best = optimize.minimize(objective, np.zeros(3), tol=1e-10).x
    right = np.linalg.solve(X.T @ X / N + lam * np.eye(3), X.T @ y) / N
    printed = np.linalg.solve(X.T @ X + lam * np.eye(3), X.T @ y) / N
    dual = X.T @ np.linalg.solve(K / N + lam * np.eye(N), y) / N
    np.testing.assert_allclose(right, best, atol=1e-6)
    np.testing.assert_allclose(dual, best, atol=1e-6)
    np.testing.assert_allclose(printed, [0.156, 0.151, 0.329], atol=1e-3)
    np.testing.assert_allclose(best, [1.345, 0.431, 1.144], atol=1e-3)
    alpha = optimize.minimize(
        lambda a: 0.5 * a @ (K / N + lam * np.eye(N)) @ a - y @ a / N, np.zeros(N), tol=1e-10
    ).x
    np.testing.assert_allclose(X.T @ alpha, best, atol=1e-4)
    model = KernelRidge(alpha=N * lam).fit(X, y)  # alpha is N lam
    np.testing.assert_allclose(X.T @ model.dual_coef_, right, atol=1e-10)
    # printed objective a'Ka/2 + lam a - y'a/2: no minimum, K has a kernel where it is linear
    null = np.linalg.svd(K)[0][:, -1]
    slope = lam * null.sum() - 0.5 * y @ null
    assert abs(slope) > 0.1
    assert np.linalg.norm(K @ null) < 1e-9
    assert (X.T @ X).shape == (3, 3)  # Phi'Phi is H x H; the Gram matrix is N x N
    assert K.shape == (N, N)


def test_err_35_kernel_svm_offset() -> None:
    """Printed: no b in the primal, sum alpha y = 0 in the dual. Right: both, or neither."""
    w = np.linspace(-3, 3, 600_001)
    primal = np.min(0.5 * w**2 + np.maximum(1 - w, 0))  # one point x=1, y=+1, C=1, no offset
    a = np.linspace(0, 1, 100_001)
    dual = a - 0.5 * a**2
    assert np.max(dual) == pytest.approx(primal)  # 1/2 = 1/2
    constrained = dual[a * 1.0 == 0]  # sum alpha y = 0 leaves only alpha = 0
    assert primal - np.max(constrained) == pytest.approx(0.5)
    with_offset = min(0.5 * v**2 + max(1 - (v + b), 0) for v in (0, 0.5, 1) for b in (0, 0.5, 1))
    assert with_offset == pytest.approx(np.max(constrained))  # b restored: 0 = 0


# --- networks -----------------------------------------------------------------------------------


def test_err_36_activations() -> None:
    """Printed: tanh=1-2sgm(-t), elu with t_-(e^t-1). Right: sgm(-2t), 1[t<0](e^t-1)."""
    t = np.linspace(-4, 4, 81)
    np.testing.assert_allclose(1 - 2 * sigmoid(-2 * t), np.tanh(t), atol=1e-14)
    np.testing.assert_allclose(1 - 2 * sigmoid(-t), np.tanh(t / 2), atol=1e-14)
    assert np.max(np.abs(1 - 2 * sigmoid(-t) - np.tanh(t))) == pytest.approx(0.3, abs=0.001)
    elu = integrate.quad(math.exp, 0, -2)[0]  # elu' = e^t below 0, elu(0) = 0
    assert np.expm1(-2.0) == pytest.approx(elu)
    for t_minus in (2.0, -2.0):  # either reading of t_-
        assert t_minus * np.expm1(-2.0) == pytest.approx(math.copysign(1.7293, -t_minus), abs=1e-4)
        assert abs(t_minus * np.expm1(-2.0) - elu) > 0.8


def test_err_37_backprop_transpose() -> None:
    """Printed: delta = (W')delta_next * phi'. Right: W delta_next * phi', since z = W'x + b."""
    rng = np.random.default_rng(0)
    W, z, target = rng.normal(size=(3, 3)), rng.normal(size=3), rng.normal(size=3)

    def loss(v: Array) -> float:
        return float(0.5 * np.sum((W.T @ np.tanh(v) - target) ** 2))

    delta = W.T @ np.tanh(z) - target
    oracle = fd_grad(loss, z)
    np.testing.assert_allclose((W @ delta) * (1 - np.tanh(z) ** 2), oracle, atol=1e-8)
    assert np.max(np.abs((W.T @ delta) * (1 - np.tanh(z) ** 2) - oracle)) > 0.3


def test_err_38_universal_approximation() -> None:
    """Printed: sup over R^d is small. Right: sup over a compact set (f = x^2 below)."""
    knots = np.linspace(0, 1, 65)
    slopes = np.diff(knots**2) / np.diff(knots)
    jumps = np.diff(slopes, prepend=0.0)

    def net(x: Array) -> Array:
        return np.asarray(np.maximum(x[:, None] - knots[:-1], 0) @ jumps)

    x = np.linspace(0, 1, 12_801)
    error = np.max(np.abs(net(x) - x**2))
    assert error == pytest.approx((1 / 64) ** 2 / 4, rel=1e-6)  # h^2/4 on [0, 1]
    far = np.array([10.0, 100.0, 1000.0])
    outside = np.abs(net(far) - far**2)
    assert np.all(outside > 0.5 * far**2)  # linear against square: no width helps


def test_err_39_rectangle_and_barron() -> None:
    """Printed: second term phi(w(x2-b1)); error C/n. Right: phi(w(x1-b1)); (2rC)^2/n."""

    def bumps(x1: float, x2: float, second: float) -> float:
        z = 50 * np.array([x1 - 0, second - 1, x2 - 2, x2 - 3])
        return float(sigmoid(z) @ np.array([1, -1, 1, -1]))

    inside, outside = (0.5, 2.5), (1.5, 2.5)  # rectangle [0,1] x [2,3]
    assert bumps(*inside, inside[0]) == pytest.approx(2, abs=1e-6)
    assert bumps(*outside, outside[0]) == pytest.approx(1, abs=1e-6)
    assert bumps(*inside, inside[1]) == pytest.approx(1, abs=1e-6)  # printed: as if outside
    # A cos x on [-pi,pi] has C = A; one sigmoid is monotone, so no better than the best monotone
    x = (np.arange(4000) + 0.5) / 4000 * 2 * np.pi - np.pi
    e1 = np.mean((optimize.isotonic_regression(np.cos(x)).x - np.cos(x)) ** 2)
    A = 20.0
    assert A**2 * e1 == pytest.approx(136, abs=1)
    assert A**2 * e1 > 6 * A / 1  # C/n is broken at n = 1
    assert A**2 * np.var(np.cos(x)) <= (2 * np.pi * A) ** 2 / 1  # a constant already meets it


def test_err_40_he_initialisation() -> None:
    """Printed: sigma^2 = 2K, Var < 1. Right: sigma^2 = 2/K, Var = 1."""
    K = 64
    second = integrate.quad(lambda t: t**2 * stats.norm.pdf(t), 0, np.inf)[0]  # E relu(z)^2
    assert second == pytest.approx(0.5)
    assert K * (2 * K) * second == pytest.approx(K**2)
    rng = np.random.default_rng(0)
    h, w = np.maximum(rng.normal(size=(8000, K)), 0), rng.normal(size=(8000, K))
    unit = np.mean(np.sum(h * w, axis=1) ** 2)  # weights of variance 1
    assert unit * 2 / K == pytest.approx(1, abs=0.1)
    assert unit * 2 * K > 3000  # 4096 expected


def test_err_41_batch_norm() -> None:
    """Printed: /sqrt(z^2+eps), sd=E[var], any a. Right: /sqrt(var+eps), sd^2, a > 0."""
    z = np.random.default_rng(0).normal(3.0, 2.0, size=1000)

    def bn(v: Array) -> Array:
        return np.asarray((v - v.mean()) / np.sqrt(v.var() + 1e-12))

    printed = (z - z.mean()) / np.sqrt(z**2 + 1e-12)
    np.testing.assert_allclose(bn(z), stats.zscore(z), atol=1e-9)
    assert bn(z).var() == pytest.approx(1)
    assert abs(printed.var() - 1) > 0.5
    assert ((z - z.mean()) / z.var()).var() == pytest.approx(1 / z.var())  # sd := E[var]: 1/4
    assert z.var() > 3
    np.testing.assert_allclose(bn(2 * z + 5), bn(z), atol=1e-9)
    np.testing.assert_allclose(bn(-2 * z + 5), -bn(z), atol=1e-9)  # a < 0 flips the sign


def test_err_42_dropout_scale() -> None:
    """Printed: 1/q in the backward pass only. Right: in the forward pass too."""
    h, w, q = np.array([1.0, -2.0, 3.0, 0.5]), np.array([0.5, 1.0, 2.0, -1.0]), 0.8
    unscaled = scaled = 0.0
    for mask in itertools.product((0, 1), repeat=4):
        p = math.prod(q if m else 1 - q for m in mask)
        unscaled += p * float((np.array(mask) * h) @ w)
        scaled += p * float((np.array(mask) * h / q) @ w)
    assert h @ w == pytest.approx(4)  # the network at test time
    assert scaled == pytest.approx(4)
    assert unscaled == pytest.approx(3.2)


# --- convolutions -------------------------------------------------------------------------------


def test_err_43_stride_and_convolution() -> None:
    """Printed: index n+Sk as stride; cross-correlation as convolution. Right: Sn+k; flip f."""
    x, f = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), np.array([1.0, -1.0, 3.0])
    full = signal.correlate(x, f, mode="valid")
    stride2 = [sum(f[k] * x[2 * n + k] for k in range(3)) for n in range(2)]
    np.testing.assert_array_equal(stride2, full[::2])
    printed = [sum(f[k] * x[n + 2 * k] for k in range(3)) for n in range(2)]
    np.testing.assert_array_equal(
        printed, signal.correlate(x, np.array([1.0, 0, -1, 0, 3]), mode="valid")
    )  # a filter with holes: dilation
    assert np.max(np.abs(np.array(printed) - full[::2])) > 10
    true_conv = signal.convolve(x, f, mode="valid")
    assert np.max(np.abs(true_conv - full)) > 1
    np.testing.assert_allclose(true_conv, signal.correlate(x, f[::-1], mode="valid"))
    # {002}'s x_{n-k+1}, k from 1, is the true convolution
    causal = [sum(f[k - 1] * x[n - k] for k in range(1, 4)) for n in range(3, 7)]
    np.testing.assert_allclose(causal, true_conv)


def test_err_44_output_size() -> None:
    """Printed: (W+2P-F)/S. Right: floor(1+(W+2P-F)/S)."""
    for W, F, S, pad in ((224, 11, 4, 2), (28, 5, 1, 0), (7, 3, 2, 1), (10, 4, 3, 0)):
        windows = sum(1 for start in range(0, W + 2 * pad, S) if start + F <= W + 2 * pad)
        assert 1 + (W + 2 * pad - F) // S == windows
        assert (W + 2 * pad - F) / S <= windows - 0.25
    assert (224 + 4 - 11) / 4 == 54.25


def test_err_45_same_padding() -> None:
    """Printed: p=ceil((m(s-a)+a-s)/2), "circulant". Right: m(s-1); blocks of Toeplitz type."""

    def size(m: int, a: int, s: int, p: int) -> int:
        return sum(1 for i in range(0, m + 2 * p, s) if i + a <= m + 2 * p)

    def pad(m: int, a: int, s: int, c: int) -> int:
        return math.ceil((m * (s - c) + a - s) / 2)

    assert pad(28, 5, 1, 5) == -54
    assert pad(28, 5, 1, 1) == 2
    for m, a, s in itertools.product(range(5, 12), range(1, 6), range(1, 4)):
        expected = m + 1 if s == 1 and a % 2 == 0 else m  # even kernels cannot be centred
        assert size(m, a, s, pad(m, a, s, 1)) == expected
    w = np.array([[1.0, 2.0], [3.0, 4.0]])
    E = np.eye(9).reshape(9, 3, 3)
    M = np.stack([signal.correlate2d(e, w, mode="valid").ravel() for e in E], axis=1)
    assert M.shape == (4, 9)  # not square, so not circulant
    np.testing.assert_array_equal(np.roll(M[0], 1), M[1])
    assert not np.array_equal(np.roll(M[1], 1), M[2])  # the shift jumps by 2 between blocks
    np.testing.assert_array_equal(np.roll(M[1], 2), M[2])
    assert np.count_nonzero(M) == 16


# --- transformers and language models -----------------------------------------------------------


def test_err_46_attention_softmax() -> None:
    """Printed: softmax of each entry, sqrt(D), sum over i. Right: per row, sqrt(D_K), over j."""
    rng = np.random.default_rng(0)
    q, k, V = rng.normal(size=(4, 64)), rng.normal(size=(5, 64)), rng.normal(size=(5, 2))
    S = q @ k.T / math.sqrt(64)
    right = special.softmax(S, axis=1)
    by_hand = [[math.exp(s) / sum(math.exp(u) for u in row) for s in row] for row in S]
    np.testing.assert_allclose(right, by_hand, atol=1e-12)
    printed = special.softmax(S[:, :, None], axis=2)[:, :, 0]  # of each number alone: 1
    np.testing.assert_allclose(printed @ V, np.tile(V.sum(axis=0), (4, 1)))
    assert np.all((right @ V <= V.max(axis=0)) & (right @ V >= V.min(axis=0)))
    assert not np.all((printed @ V <= V.max(axis=0)) & (printed @ V >= V.min(axis=0)))
    np.testing.assert_allclose(right.sum(axis=1), 1)
    assert np.max(np.abs(right.sum(axis=0) - 1)) > 0.1  # {000} sums p_ij over i
    a, b = rng.normal(size=(2, 20_000, 64))
    scores = np.sum(a * b, axis=1)
    assert np.var(scores / math.sqrt(64)) == pytest.approx(1, abs=0.05)
    assert np.var(scores / math.sqrt(512)) == pytest.approx(1 / 8, abs=0.01)


def test_err_47_attention_weights() -> None:
    """Printed: X W_Q' X' (no W_K), W_V in its place, X W_SA. Right: X W_Q W_K' X'."""
    rng = np.random.default_rng(0)
    T, D = 4, 3
    X, W_Q, W_K, W_V = (rng.normal(size=s) for s in ((T, D), (D, D), (D, D), (D, D)))

    def attend(S: Array) -> Array:
        return np.asarray(special.softmax(S / math.sqrt(D), axis=1) @ X @ W_V)

    oracle = np.zeros((T, D))
    for i in range(T):
        e = [math.exp((X[i] @ W_Q) @ (X[j] @ W_K) / math.sqrt(D)) for j in range(T)]
        oracle[i] = sum(e[j] * (X[j] @ W_V) for j in range(T)) / sum(e)
    np.testing.assert_allclose(attend(X @ W_Q @ W_K.T @ X.T), oracle, atol=1e-12)
    assert np.max(np.abs(attend(X @ W_Q.T @ X.T) - oracle)) > 0.3
    assert np.max(np.abs(attend(X @ W_Q @ W_V.T @ X.T) - oracle)) > 0.3
    with pytest.raises(ValueError, match="mismatch"):
        X @ W_Q[:, :2].T @ X.T  # D_K < D: the printed product does not exist
    with pytest.raises(ValueError, match="mismatch"):
        attend(X @ W_Q)  # {003}: T x D weights for T tokens


def test_err_48_next_token_conditioning() -> None:
    """Printed: p(x_1|x_2..x_t) predicts the next token. Right: p(x_t|x_1..x_{t-1})."""
    joint = np.random.default_rng(0).dirichlet(np.full(27, 0.3)).reshape(3, 3, 3)
    p1, p12, p23 = joint.sum(axis=(1, 2)), joint.sum(axis=2), joint.sum(axis=0)
    chain = p1[:, None, None] * (p12 / p1[:, None])[:, :, None] * (joint / p12[:, :, None])
    np.testing.assert_allclose(chain, joint, atol=1e-15)
    np.testing.assert_allclose((joint / p12[:, :, None]).sum(axis=2), 1)
    printed = joint / p23[None]
    assert np.max(np.abs(printed.sum(axis=2) - 1)) == pytest.approx(
        0.60, abs=0.01
    )  # not a law over the next token
    p2 = joint.sum(axis=(0, 2))
    product = p1[:, None, None] * (p12 / p2[None])[:, :, None] * printed
    assert product.sum() == pytest.approx(
        1.157, abs=1e-3
    )  # nor do the factors multiply to a law over texts


def gpt_parameters(layers: int, d: int, vocab: int, context: int, final_norm: bool) -> int:
    """Parameters of a GPT decoder with tied output, summed over its tensors."""
    block = [(d, 3 * d), (3 * d,), (d, d), (d,), (d, 4 * d), (4 * d,), (4 * d, d), (d,)]
    block += [(d,)] * 4  # two layer norms
    rest = [(vocab, d), (context, d)] + [(d,)] * (2 if final_norm else 0)
    return layers * sum(map(math.prod, block)) + sum(map(math.prod, rest))


def test_err_49_gpt_sizes() -> None:
    """Printed: GPT-1 110M, GPT-2 10x, GPT-3 100x. Right: 117M, 13x, 112x."""
    gpt1 = gpt_parameters(12, 768, 40_478, 512, final_norm=False)
    gpt2 = gpt_parameters(48, 1600, 50_257, 1024, final_norm=True)
    gpt3 = gpt_parameters(96, 12_288, 50_257, 2048, final_norm=True)
    assert (gpt1, gpt2, gpt3) == (116_534_784, 1_557_611_200, 174_604_259_328)
    assert gpt1 - 110_000_000 > 6_000_000
    assert gpt2 / gpt1 == pytest.approx(13.4, abs=0.05)
    assert gpt3 / gpt2 == pytest.approx(112.1, abs=0.05)


def test_err_50_roberta_is_not_larger() -> None:
    """Printed: RoBERTa is a larger BERT. Right: same layers; its vocabulary adds the rest."""
    d, layers = 768, 12

    def encoder(vocab: int, positions: int, segments: int) -> int:
        layer = [(d, d), (d,)] * 4 + [(d, 4 * d), (4 * d,), (4 * d, d), (d,)] + [(d,)] * 4
        rest = [(vocab + positions + segments, d), (d,), (d,), (d, d), (d,)]
        return layers * sum(map(math.prod, layer)) + sum(map(math.prod, rest))

    bert, roberta = encoder(30_522, 512, 2), encoder(50_265, 514, 1)
    assert (bert, roberta) == (109_482_240, 124_645_632)
    words = (50_265 - 30_522) * d
    assert roberta - bert - words == (2 - 1) * d  # two more positions, one segment less
    assert encoder(30_522, 514, 1) - bert < 1000  # with BERT's vocabulary: no larger


def test_err_51_reward_model() -> None:
    """Printed: r_theta(w) - r(l), the second reward fixed. Right: theta in both."""
    p = 0.8  # A preferred to B with probability p; r = (r_A, r_B)

    def loss(r: Array, fixed: Array) -> float:
        return float(np.array([p, 1 - p]) @ np.logaddexp(0, fixed[::-1] - r))

    r = np.array([math.log(p / (1 - p)), 0.0])  # r_A - r_B = logit p

    def printed(at: Array) -> Array:
        return fd_grad(lambda v: loss(v, at), at)

    np.testing.assert_allclose(fd_grad(lambda v: loss(v, v), r), 0, atol=1e-8)  # stationary
    np.testing.assert_allclose(printed(r), [-0.16, -0.16], atol=1e-8)  # both rewards driven up
    for _ in range(1000):
        r = r - printed(r)
    assert np.min(r) > 100  # and for ever


def test_err_52_rlhf_expectations() -> None:
    """Printed: E over (x,y), unspecified. Right: y ~ policy; with y ~ data the reward is inert."""
    sft, r, beta = np.array([0.5, 0.3, 0.2]), np.array([1.0, 0.0, 2.0]), 0.5
    grid = np.array([(a, b, 100 - a - b) for a in range(1, 99) for b in range(1, 100 - a)]) / 100
    on_policy = np.sum(grid * (r - beta * np.log(grid / sft)), axis=1)
    tilted = sft * np.exp(r / beta)
    assert np.max(np.abs(grid[np.argmax(on_policy)] - tilted / tilted.sum())) < 0.01
    assert on_policy.max() == pytest.approx(beta * math.log(tilted.sum()), abs=1e-3)

    def off_policy(reward: Array) -> Array:
        return np.asarray(np.sum(sft * (reward - beta * np.log(grid / sft)), axis=1))

    best = grid[np.argmax(off_policy(r))]
    np.testing.assert_array_equal(best, grid[np.argmax(off_policy(-r))])  # r does not matter
    assert best.min() == 0.01  # and it runs to the edge: KL(sft|policy) is being maximised
    assert np.max(np.abs(best - tilted / tilted.sum())) > 0.1


# --- adversarial --------------------------------------------------------------------------------


def test_err_53_adversarial_risk_ball() -> None:
    """Printed: |x^-X| < eps in places. Right: <= eps, so that the maximum is attained."""
    x, y, eps = np.array([1.0, 1.0, 3.0, -2.0]), np.array([1.0, -1.0, 1.0, -1.0]), 1.0
    steps = np.linspace(-eps, eps, 2001)  # f = sgn, sgn(0) = -1 as in {004}

    def risk(ball: Array) -> float:
        f = np.where(x[:, None] + ball[None] > 0, 1.0, -1.0)
        return float(np.mean(np.any(f != y[:, None], axis=1)))

    assert risk(np.zeros(1)) == 0.25
    assert risk(steps) == 0.5  # x=1 reaches 0 at distance exactly eps
    assert risk(steps[1:-1]) == 0.25  # the open ball misses it
    assert np.mean(y * x <= eps) == 0.5  # closed form: y g(x) <= eps |w|


def test_err_54_attack_direction() -> None:
    """Printed: y l' <= 0; for y=-1 decrease g; sign(y g). Right: l' <= 0; increase; sign(g)."""
    w, x, y, eps = np.array([1.0, -2.0]), np.array([0.5, 1.0]), -1.0, 0.1

    def loss(v: Array) -> float:
        return float(np.logaddexp(0, -y * (w @ v)))

    slope = -float(sigmoid(np.array(-y * (w @ x))))  # l'(y g) of the logistic loss
    np.testing.assert_allclose(fd_grad(loss, x), y * slope * w, atol=1e-8)
    assert slope < 0 < y * slope  # so "y l' <= 0" fails for y = -1
    assert loss(x) == pytest.approx(0.201, abs=1e-3)
    assert loss(x - eps * y * w) == pytest.approx(0.313, abs=1e-3)  # g increased
    assert loss(x - eps * w) == pytest.approx(0.127, abs=1e-3)  # g decreased, as {000,001} say
    assert np.sign(w @ x) == y  # classified rightly ...
    assert np.sign(y * (w @ x)) != y  # ... sign(y g) would call it an error


def test_err_55_projection_and_one_step() -> None:
    """Printed: eps or eps sign(d); no e_i; step -eps y grad L. Right: clip, e_i, grad g/|.|."""
    delta, eps = np.array([3.0, -3.0, 0.2]), 1.0
    printed = np.where(np.abs(delta) >= eps, eps, eps * np.sign(delta))
    right = np.where(np.abs(delta) >= eps, eps * np.sign(delta), delta)
    box = np.linspace(-eps, eps, 2001)
    nearest = box[np.argmin(np.abs(box[None] - delta[:, None]), axis=1)]
    np.testing.assert_allclose(right, nearest, atol=1e-3)
    np.testing.assert_array_equal(printed, [1, 1, 1])
    w, x, y, a = np.array([1.0, 2.0, -3.0]), np.array([2.0, 1.0, 0.5]), 1.0, 1e-4
    quotients = [(w @ (x + a * e) - w @ x) / a for e in np.eye(3)]
    np.testing.assert_allclose(np.array(quotients) @ np.eye(3), w, atol=1e-6)
    assert abs(sum(quotients)) < 1e-6  # printed: the number 0 instead of a vector

    def loss(v: Array) -> float:
        return float(np.logaddexp(0, -y * (w @ v)))

    step = -eps * y * fd_grad(loss, x)  # {003}: L for g, and no norm
    assert (loss(x), loss(x + step)) == pytest.approx((0.079, 0.028), abs=1e-3)
    assert np.linalg.norm(step) < 0.5 * eps
    assert loss(x - eps * y * w / np.linalg.norm(w)) == pytest.approx(1.495, abs=1e-3)


# --- fairness -----------------------------------------------------------------------------------


def rates(table: dict[tuple[int, int], Fraction]) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Acceptance rate, FPR, FNR and PPV of one group's table {(Y, D): probability}."""
    accept = table[0, 1] + table[1, 1]
    return (
        accept,
        table[0, 1] / (table[0, 0] + table[0, 1]),
        table[1, 0] / (table[1, 0] + table[1, 1]),
        table[1, 1] / accept,
    )


def group(base: Fraction, fpr: Fraction, fnr: Fraction) -> dict[tuple[int, int], Fraction]:
    """Table {(Y, D): probability} of a group with these rates."""
    return {
        (1, 1): base * (1 - fnr),
        (1, 0): base * fnr,
        (0, 1): (1 - base) * fpr,
        (0, 0): (1 - base) * (1 - fpr),
    }


def test_err_56_independence_criterion() -> None:
    """Printed: independence as A indep R given Y. Right: A indep R, equal acceptance rates."""
    half, fifth, zero = Fraction(1, 2), Fraction(1, 5), Fraction(0)
    a, b = rates(group(half, zero, zero)), rates(group(fifth, zero, zero))  # D = Y
    assert a[1:3] == b[1:3]  # given Y the decision does not depend on A: the printed criterion
    assert a[0] - b[0] == Fraction(3, 10)  # yet acceptance is 1/2 against 1/5
    tenth = Fraction(1, 10)
    c, d = rates(group(half, tenth, tenth)), rates(group(fifth, Fraction(3, 8), zero))
    assert c[0] == d[0] == half  # truly independent of A ...
    assert c[1] != d[1]  # ... and the printed criterion fails


def test_err_57_incompatibility() -> None:
    """Printed: the criteria exclude one another. Right: only outside the degenerate cases."""
    half, fifth, zero = Fraction(1, 2), Fraction(1, 5), Fraction(0)
    perfect = rates(group(half, zero, zero)), rates(group(fifth, zero, zero))
    assert perfect[0][1:] == perfect[1][1:]  # separation and sufficiency (PPV) together
    counts = (
        {(1, 1): 40, (1, 0): 10, (0, 1): 20, (0, 0): 30},
        {(1, 1): 8, (1, 0): 2, (0, 1): 4, (0, 0): 6},
    )
    big, small = (rates({k: Fraction(v) / sum(c.values()) for k, v in c.items()}) for c in counts)
    assert big == small  # A independent of Y: all three at once
    twentieth = Fraction(1, 20)
    a, b = rates(group(half, fifth, fifth)), rates(group(fifth, twentieth, fifth))
    assert a[3] == b[3] == Fraction(4, 5)  # else equal PPV and FNR ...
    assert (a[1], b[1]) == (fifth, twentieth)  # ... force unequal FPR


# --- clustering and EM --------------------------------------------------------------------------


def test_err_58_mixture_updates() -> None:
    """Printed: mu=(1/N)sum qx, spherical var without 1/D, K-means with z free. Right: see below."""
    rng = np.random.default_rng(0)
    X = rng.normal(1.0, 2.0, size=(20_000, 5))  # variance 4 in each of D = 5 directions
    q = np.full(len(X), 0.25)

    def loglik(mu: Array, var: float) -> float:
        sq = np.sum((X - mu) ** 2, axis=1)
        return float(q @ (-0.5 * sq / var - 2.5 * np.log(2 * np.pi * var)))

    mu = q @ X / q.sum()
    total = q @ np.sum((X - mu) ** 2, axis=1) / q.sum()
    assert np.max(np.abs(fd_grad(lambda m: loglik(m, 4.0), mu, 1e-4))) < 1e-3
    np.testing.assert_allclose(q @ X / len(X), mu / 4)  # printed: shrunk by the weight of k
    best = optimize.minimize_scalar(lambda v: -loglik(mu, v), bounds=(0.5, 50), method="bounded")
    assert total / 5 == pytest.approx(best.x, rel=1e-4)
    assert total == pytest.approx(20, abs=0.3)  # printed, against 4
    z = np.eye(2)[rng.integers(2, size=100)]
    Y = X[:100]

    def cost(u: Array) -> float:
        centres = (u.T @ Y) / u.sum(axis=0)[:, None]
        return float(np.sum(u * np.sum((Y[:, None] - centres[None]) ** 2, axis=2)))

    assert cost(1e-6 * z) == pytest.approx(1e-6 * cost(z))  # no one-hot z: infimum 0 at once


def test_err_59_em_bound() -> None:
    """Printed: bound log p/q without E_q; F(q_t,th_t) >= L(th_t). Right: E_q; <=."""
    a, b = np.array([0.6, 0.1, 0.5]), np.array([0.2, 0.4, 0.1])  # p(x_n|z=1), p(x_n|z=0)

    def joint(th: float) -> Array:
        return np.stack([th * a, (1 - th) * b])

    def L(th: float) -> float:
        return float(np.sum(np.log(joint(th).sum(axis=0))))

    def F(q: Array, th: float) -> float:
        return float(np.sum(q * np.log(joint(th) / q)))

    half = np.full((2, 3), 0.5)
    at_z1, true = np.log(joint(0.3) / half)[0, 0], math.log(joint(0.3)[:, 0].sum())
    assert (at_z1, true) == pytest.approx((-1.022, -1.139), abs=1e-3)  # above log p(x_1)
    assert F(half, 0.3) <= L(0.3)
    thetas, qs = [0.1], []
    for _ in range(3):
        qs.append(joint(thetas[-1]) / joint(thetas[-1]).sum(axis=0))
        thetas.append(float(qs[-1][0].mean()))
    late = F(qs[0], thetas[1]), L(thetas[1])  # q_t is the posterior of the step before
    assert late == pytest.approx((-4.225, -4.036), abs=1e-3)
    for q, old, new in zip(qs, thetas[:-1], thetas[1:], strict=True):
        assert F(q, old) == pytest.approx(L(old))
        assert L(new) >= F(q, new) >= F(q, old)


# --- matrix factorisation -----------------------------------------------------------------------


def test_err_60_factorisation_symmetry() -> None:
    """Printed: (Bw, -B^{-1}z) is equivalent; d/dw_dk is a matrix. Right: (bw, z/b); a scalar."""
    rng = np.random.default_rng(0)
    W, Z = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    X, beta = W @ Z.T, 3.0

    def loss(A: Array, B: Array) -> float:
        return float(0.5 * np.sum((X - A @ B.T) ** 2))

    assert loss(beta * W, Z / beta) < 1e-24
    assert loss(beta * W, -Z / beta) == pytest.approx(4 * 0.5 * np.sum(X**2))  # 54.8
    V = rng.normal(size=(4, 2))
    d, n = 1, 3

    def entry(A: Array) -> float:
        return float(0.5 * (X[d, n] - A[d] @ Z[n]) ** 2)

    G = fd_grad(entry, V)  # the gradient is the D x K matrix
    e = X[d, n] - V[d] @ Z[n]
    assert -e * Z[n, 0] == pytest.approx(G[d, 0], rel=1e-6)  # by w_{d,0}: a number
    assert not np.any(np.delete(G, d, axis=0))


def test_err_61_als_update() -> None:
    """Printed: W' = (Z'Z+lam I)^{-1} Z'X. Right: (Z'Z+lam I_K)^{-1} Z'X'."""
    rng = np.random.default_rng(0)
    Z, lam = rng.normal(size=(6, 2)), 0.5

    def loss(W: Array, X: Array) -> float:
        return float(0.5 * np.sum((X - W @ Z.T) ** 2) + lam / 2 * np.sum(W**2))

    G = Z.T @ Z + lam * np.eye(2)
    X = rng.normal(size=(6, 6))  # D = N: the printed product exists
    right, printed = np.linalg.solve(G, Z.T @ X.T).T, np.linalg.solve(G, Z.T @ X).T
    assert np.max(np.abs(fd_grad(lambda W: loss(W, X), right))) < 1e-7
    assert np.max(np.abs(fd_grad(lambda W: loss(W, X), printed))) > 1
    assert (loss(printed, X), loss(right, X)) == pytest.approx((16.14, 11.65), abs=0.01)
    with pytest.raises(ValueError, match="mismatch"):
        Z.T @ rng.normal(size=(4, 6))  # D != N: it does not
    with pytest.raises(ValueError, match="broadcast"):
        Z.T @ Z + lam * np.eye(4)  # {003}: I_d for I_K


# --- text ---------------------------------------------------------------------------------------


def test_err_62_observed_counts() -> None:
    """Printed: Omega = non-zeros of X = log n. Right: non-zeros of n (n=1 has log 0)."""
    n = np.array([[1.0, 10.0], [10.0, 100.0]])
    X = np.log(n)
    assert np.count_nonzero(n) == 4
    assert np.count_nonzero(X) == 3
    # rank 1 on the three printed entries fits them exactly and invents the fourth
    w, z = np.array([X[0, 1] / X[1, 1], 1.0]), np.array([X[1, 0], X[1, 1]])
    np.testing.assert_allclose(np.outer(w, z)[X != 0], X[X != 0])
    assert math.exp(np.outer(w, z)[0, 0]) == pytest.approx(math.sqrt(10))  # 3.16 for a count of 1
    U, s, Vt = np.linalg.svd(X)  # all four entries: best rank 1 by Eckart-Young
    best = s[0] * np.outer(U[:, 0], Vt[0])
    assert 0.5 * np.sum((X - best) ** 2) == pytest.approx(0.5 * s[1] ** 2)
    assert np.sum((X - best) ** 2) < 0.7 * np.sum((X - np.outer(w, z)) ** 2)
    assert abs(best[0, 0]) < 0.8 * np.outer(w, z)[0, 0]


def test_err_63_negative_sampling() -> None:
    """Printed: negative sampling is NCE. Right: the optima differ, log(p/(k pn)) and log p."""
    p, noise, k = 0.2, 0.05, 5

    def fit(shift: float) -> float:
        def loss(s: float) -> float:
            t = s - shift
            return float(p * np.logaddexp(0, -t) + k * noise * np.logaddexp(0, t))

        return float(optimize.minimize_scalar(loss, bounds=(-10, 10), method="bounded").x)

    assert fit(0.0) == pytest.approx(math.log(p / (k * noise)), abs=1e-4)  # -0.223
    assert fit(math.log(k * noise)) == pytest.approx(math.log(p), abs=1e-4)  # -1.609
    assert abs(fit(0.0) - fit(math.log(k * noise))) > 1.3


# --- generative ---------------------------------------------------------------------------------


def test_err_65_gan_value() -> None:
    """Printed: swapped expectations, optimum log 4 or -log 1/2. Right: -log 4."""
    D = np.linspace(0.0005, 0.9995, 1999)

    def game(real: Array, fake: Array) -> tuple[float, Array]:
        v = real[:, None] * np.log(D) + fake[:, None] * np.log(1 - D)
        return float(np.sum(v.max(axis=1))), D[np.argmax(v, axis=1)]

    assert game(Q, Q)[0] == pytest.approx(-math.log(4))  # -1.386; every value is below 0
    assert game(Q, P)[0] == pytest.approx(-1.3367338, abs=1e-6)
    assert max(game(Q, Q)[0], game(Q, P)[0]) < 0 < -math.log(1 / 2) < math.log(4)
    np.testing.assert_allclose(game(Q, P)[1], Q / (Q + P), atol=5e-4)
    swapped = game(P, Q)[1]
    assert np.all((swapped > 0.5) == (Q < P))  # "real" wherever the fakes are


def test_err_66_kl_integrand() -> None:
    """Printed: int log(q/p); braced term t(log t - 1) = f. Right: int q log(q/p); it is f - 1."""
    kl = float(stats.entropy(Q, P))
    assert np.sum(Q * np.log(Q / P)) == pytest.approx(kl)  # 0.0944
    assert np.sum(np.log(Q / P)) == pytest.approx(-0.1542, abs=1e-4)  # negative: no divergence
    t = Q / P
    braced, f = t * (np.log(t) - 1), t * np.log(t) - t + 1
    assert np.sum(P * f) == pytest.approx(kl)
    assert np.sum(P * braced) == pytest.approx(kl - 1)
    S = np.log(t)
    assert Q @ S - P @ np.exp(S) == pytest.approx(kl - 1)  # what the printed game attains


def test_err_67_jensen_shannon() -> None:
    """Printed: KL(q|m) twice; -log(1-e^S)-log 4. Right: KL(q|m)+KL(p|m); +log(1-e^S)+log 4."""
    M = (P + Q) / 2
    js = float(stats.entropy(Q, M) + stats.entropy(P, M))
    t = Q / P
    f = t * np.log(t) - (t + 1) * np.log(t + 1) + math.log(4)
    assert P @ f == pytest.approx(js)
    assert js == pytest.approx(0.0495605, abs=1e-7)
    assert 2 * stats.entropy(Q, M) == pytest.approx(0.0525, abs=1e-4)
    S = np.log(Q / (Q + P))
    assert Q @ S + P @ np.log(1 - np.exp(S)) + math.log(4) == pytest.approx(js)
    printed = Q @ S - P @ np.log(1 - np.exp(S)) - math.log(4)  # at the same, optimal S
    assert printed == pytest.approx(-1.383, abs=1e-3)
    D = 1 - 10.0 ** -np.arange(1, 13)
    printed_game = np.log(D) - np.log(1 - D)
    assert np.all(np.diff(printed_game) > 2)  # grows without bound as D -> 1
    s, grid = -0.4, np.linspace(1e-3, 20, 200_001)  # f*(s): the argument is s
    conj = np.max(s * grid - (grid * np.log(grid) - (grid + 1) * np.log1p(grid) + math.log(4)))
    assert -math.log(1 - math.exp(s)) - math.log(4) == pytest.approx(conj, abs=1e-6)
    assert P @ f > 0.04  # "D_f >= 0 iff p = q": it is >= 0, and > 0, for this p != q


def test_err_68_inverse_flow_sign() -> None:
    """Printed: max log r(Sx) - log|det S'|. Right: + log|det S'|."""
    x = np.random.default_rng(0).normal(2.0, 3.0, size=500)

    def objective(a: float, sign: float) -> float:  # S(x) = a (x - mean), r = N(0,1)
        return float(np.mean(stats.norm.logpdf(a * (x - x.mean()))) + sign * math.log(a))

    r = optimize.minimize_scalar(lambda a: -objective(a, 1), bounds=(0.01, 5), method="bounded")
    assert r.x == pytest.approx(1 / x.std(), rel=1e-4)
    assert objective(1 / x.std(), 1) == pytest.approx(
        np.mean(stats.norm.logpdf(x, x.mean(), x.std()))
    )
    printed = [objective(a, -1) for a in (1e-1, 1e-2, 1e-3, 1e-4)]
    assert printed == pytest.approx(
        [1.34, 3.69, 5.99, 8.29], abs=0.01
    )  # better and better as S collapses to a point


def test_err_69_nested_gaussians() -> None:
    """Printed: nested Gaussians give only Gaussians. Right: only with linear means."""
    node, weight = np.polynomial.hermite_e.hermegauss(20)  # exact on these polynomials
    z1, z2 = np.meshgrid(node, node, indexing="ij")
    W = np.outer(weight, weight) / (2 * np.pi)

    def skew(x: Array) -> float:
        c = x - np.sum(W * x)
        return float(np.sum(W * c**3) / np.sum(W * c**2) ** 1.5)

    assert skew(z1**2 + z2) == pytest.approx(8 / 3**1.5)  # 1.54; a Gaussian has 0
    assert skew(0.7 * z1 + z2) == pytest.approx(0, abs=1e-9)


def test_err_70_marginal_recursion() -> None:
    """Printed: p(x_t) = int p(x_{t+1}|x_t)p(x_t) dx_{t+1}; limit N(th,Sig). Right: dx_t; N(0,I)."""
    T = np.array([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.3, 0.7]])
    printed = right = np.array([1.0, 0.0, 0.0])
    for _ in range(400):
        printed = (printed[:, None] * T).sum(axis=1)  # over x_{t+1}: nothing moves
        right = (right[:, None] * T).sum(axis=0)  # over x_t
    np.testing.assert_allclose(printed, [1, 0, 0])
    values, vectors = np.linalg.eig(T.T)
    stationary = np.real(vectors[:, np.argmax(np.real(values))])
    np.testing.assert_allclose(right, stationary / stationary.sum(), atol=1e-9)
    alpha, mean, var = 0.99, 5.0, 9.0
    for _ in range(2000):
        mean, var = alpha * mean, alpha**2 * var + (1 - alpha**2)
    assert (mean, var) == pytest.approx((0, 1), abs=1e-6)


def test_err_71_reverse_step() -> None:
    """Printed: (2-a)x + (1-a)^2 score. Right: (2-a)x + (1-a^2) score."""
    alpha, x_next = 0.99, 1.0  # data N(0,1), so every p_t is N(0,1) and its score is -x
    t = np.linspace(-6, 6, 24_001)
    post = stats.norm.pdf(x_next, alpha * t, math.sqrt(1 - alpha**2)) * stats.norm.pdf(t)
    exact = np.sum(t * post) / np.sum(post)  # Bayes on a grid
    assert exact == pytest.approx(0.99, abs=1e-9)
    printed = (2 - alpha) * x_next + (1 - alpha) ** 2 * (-x_next)
    right = (2 - alpha) * x_next + (1 - alpha**2) * (-x_next)
    assert right == pytest.approx(0.9901)
    assert abs(right - exact) == pytest.approx((1 - alpha) ** 2)  # second order
    assert printed == pytest.approx(1.0099)  # a step away from the data
    assert printed - exact > 100 * abs(right - exact)


def test_err_72_euler_noise() -> None:
    """Printed: noise variance eta^2 GG'. Right: eta GG'."""
    for eta in (0.1, 0.01, 0.001):  # dx = -x dt + sqrt(2) dw has the limit N(0,1)
        printed = right = 0.0
        for _ in range(round(10 / eta)):
            printed = (1 - eta) ** 2 * printed + 2 * eta**2
            right = (1 - eta) ** 2 * right + 2 * eta
        assert right == pytest.approx(1, abs=eta)
        assert printed < 1.1 * eta  # vanishes with eta
    rng = np.random.default_rng(0)
    fine = rng.normal(0, math.sqrt(0.01), size=(20_000, 100)).sum(axis=1)  # w_1 in 100 steps
    assert fine.var() == pytest.approx(1, abs=0.05)
    assert (math.sqrt(0.01) * fine).var() < 0.02  # with eta^2
