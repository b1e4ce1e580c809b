"""Random quadratics with right and wrong constants: no bound that holds is false (A8 of the certificate law).

The minimum, the curvatures and the distance are known in closed form, so every claim about suboptimality can
be compared with the truth. Wrong constants are given to :func:`surefit.minimize` in every way a caller can.
"""

import warnings

import numpy as np
import pytest

from surefit import CertificateWarning, Kind, Status, minimize

RATES = ("convex rate", "strongly convex rate", "non-convex rate", "accelerated rate")


class Quadratic:
    """(x - c)' A (x - c) / 2 + offset in a random basis, with the spectrum known."""

    def __init__(self, rng, convex=True):
        n = int(rng.integers(2, 21))
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        self.eigenvalues = np.sort(10.0 ** rng.uniform(-1.5, 1.5, n))
        if not convex:
            self.eigenvalues[0] = -(10.0 ** rng.uniform(-1.5, 0.5))
        self.A = (Q * self.eigenvalues) @ Q.T
        self.A = 0.5 * (self.A + self.A.T)
        self.centre = rng.standard_normal(n)
        self.minimum = float(rng.choice([0.0, rng.normal()]))
        seen = rng.random(n) < 0.7  # the run never leaves the span of these eigenvectors
        seen[rng.integers(n)] = True
        self.x0 = self.centre + Q @ (rng.standard_normal(n) * seen)
        self.m, self.L = np.linalg.eigvalsh(self.A)[[0, -1]]

    def value(self, x):
        return float((x - self.centre) @ self.A @ (x - self.centre)) / 2 + self.minimum

    def grad(self, x):
        return self.A @ (x - self.centre)

    def gap(self, x):
        """The exact distance to the minimum, without the rounding of the offset."""
        with np.errstate(over="ignore", invalid="ignore"):  # with L too small the run diverges
            return float((x - self.centre) @ self.A @ (x - self.centre)) / 2


def fit(q, method="gd", **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        return minimize(q.value, q.x0, grad=q.grad, method=method, **arguments)


def false_bounds(q, result, best=None):
    """Claims that hold and are not true of the exact minimum."""
    truth = q.gap(result.x) if best is None else result.value - best
    found = []
    for claim in result.certificate.claims:
        if claim.status is not Status.HOLDS:
            continue
        if claim.kind is Kind.OPTIMAL and truth > claim.observed * (1 + 1e-9) + 1e-28:
            found.append(claim)
        if claim.name == "optimum" and best is None and result.value < q.minimum - 1e-9:
            found.append(claim)
    return found


def wrong_constants(q, rng):
    """Every wrong statement about a quadratic, by the kind of mistake."""
    much, little = 1.0 + 9.0 * rng.random(), 1.05
    off = q.centre + 0.1 * rng.standard_normal(len(q.centre)) / np.sqrt(len(q.centre))
    room = q.m * much < q.L
    kinds = {
        "m too large": {"strong_convexity": min(much, 0.99 * q.L / q.m) * q.m},
        "m a little too large": {"strong_convexity": little * q.m},
        "L too small": {"smoothness": q.L / much, "strong_convexity": min(q.m, q.L / much)},
        "L a little too small": {"smoothness": q.L / little, "strong_convexity": q.m / little},
        "wrong minimiser": {"smoothness": q.L, "strong_convexity": q.m, "optimum": off},
        "wrong lower bound": {
            "smoothness": q.L,
            "lower_bound": q.minimum + 0.5 * q.gap(q.x0) + 1e-3,
        },
    }
    if room:
        both = {"strong_convexity": q.m * much, "smoothness": max(q.L / 2, q.m * much)}
        kinds["both"] = {**both, "optimum": q.centre}
    return kinds


CONTRADICTED = {
    "m too large": "strong convexity",
    "m a little too large": "strong convexity",
    "L too small": "smoothness",
    "L a little too small": "smoothness",
    "both": "strong convexity",
    "wrong minimiser": "optimum",
    "wrong lower bound": "optimum",
    "convex claimed": "convexity",
    "strongly convex claimed": "strong convexity",
}


def check(seed):
    rng = np.random.default_rng(seed)
    q = Quadratic(rng)
    if q.L / q.m < 1.2:
        return
    right = {"smoothness": q.L, "strong_convexity": q.m, "optimum": q.centre}
    steps = {"max_iter": int(rng.choice([1, 3, 30, 400])), "tol": 1e-8}
    for arguments in (right, {**right, "step": 2 / (q.m + q.L)}, {**right, "step": 0.3 / q.L}):
        result = fit(q, **arguments, **steps)
        certificate = result.certificate
        assert not false_bounds(q, result), (seed, str(certificate))
        wrong = [c for c in certificate.failed if c.kind in (Kind.EMPIRICAL, Kind.BOUND)]
        assert not wrong, (seed, str(certificate))
        assert certificate["strongly convex rate"].status is Status.HOLDS
        if "step" not in arguments:
            assert certificate["convex rate"].status is Status.HOLDS
            assert certificate["non-convex rate"].status is Status.HOLDS
    for kind, arguments in wrong_constants(q, rng).items():
        result = fit(q, **arguments, **steps)
        assert_nothing_false(q, result, kind, seed)
    searched = fit(q, step="backtracking", strong_convexity=2 * q.m, optimum=q.centre, **steps)
    assert_nothing_false(q, searched, "m too large", seed)


def check_saddle(seed):
    rng = np.random.default_rng(seed)
    q = Quadratic(rng, convex=False)
    L = float(np.abs(q.eigenvalues).max())
    steps = {"max_iter": int(rng.choice([1, 5, 20])), "tol": 1e-3}
    for kind, arguments in {
        "convex claimed": {"convex": True, "smoothness": L},
        "strongly convex claimed": {"strong_convexity": 0.1 * L, "smoothness": L},
    }.items():
        result = fit(q, **arguments, **steps)
        assert_nothing_false(q, result, kind, seed, unbounded=True)
        assert "f being convex" not in result.certificate["stationary"].statement


def assert_nothing_false(q, result, kind, seed, unbounded=False):
    certificate = result.certificate
    words = (seed, kind, str(certificate))
    assert certificate[CONTRADICTED[kind]].status is Status.FAILS, words
    assert not result.converged, words
    if unbounded:
        held = [c for c in certificate.claims if c.kind is Kind.OPTIMAL]
        assert all(c.status is not Status.HOLDS for c in held), words
    else:
        assert not false_bounds(q, result), words
    rates = [certificate[name] for name in RATES if name in certificate]
    assert all(rate.status is not Status.HOLDS for rate in rates if rests_on(rate, kind)), words


def rests_on(rate, kind):
    """Which theorems use what is wrong; the non-convex one does not ask for m."""
    return rate.name != "non-convex rate" or CONTRADICTED[kind] in ("smoothness", "optimum")


def check_constrained(seed):
    """The projected method, whose bound rests on both constants, on a ball that the minimiser is not in."""
    rng = np.random.default_rng(seed)
    q = Quadratic(rng)
    radius = 0.5 * np.linalg.norm(q.centre)

    def project(x):
        return x * min(1.0, radius / max(np.linalg.norm(x), 1e-300))

    q.x0 = project(q.x0)
    given = {"method": "projected", "project": project}
    best = fit(q, smoothness=q.L, max_iter=20_000, tol=1e-13, **given).value
    right = {"smoothness": q.L, "strong_convexity": q.m}
    wrong = [
        {"smoothness": q.L, "strong_convexity": min(3 * q.m, q.L)},
        {"smoothness": max(q.L / 3, q.m), "strong_convexity": q.m, "step": 1 / q.L},
    ]
    for k in (1, 10, 300):
        result = fit(q, max_iter=k, tol=1e-8, **right, **given)
        assert not [c for c in result.certificate.failed if c.kind is Kind.EMPIRICAL], seed
        assert result.value - best <= result.certificate["suboptimality"].observed + 1e-12
        for constants in wrong:
            result = fit(q, max_iter=k, tol=1e-8, **constants, **given)
            held = result.certificate["suboptimality"].status is Status.HOLDS
            slack = 1e-12 * max(1.0, abs(best))
            assert not held or result.value - best <= (
                result.certificate["suboptimality"].observed + slack
            ), (seed, str(result.certificate))


@pytest.mark.spec("CVX-7")
def test_no_bound_is_false_on_random_quadratics():
    for seed in range(12):
        check(seed)
        check_saddle(seed)


@pytest.mark.spec("OPT-12")
def test_no_bound_is_false_on_a_ball():
    for seed in range(3):
        check_constrained(seed)


@pytest.mark.slow
def test_no_bound_is_false_on_200_random_quadratics():
    for seed in range(200):
        check(seed)
        check_saddle(seed)
    for seed in range(40):
        check_constrained(seed)
