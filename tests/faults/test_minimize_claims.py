"""One planted fault for each term of each claim of ``minimize``, and one loosened floor each.

Every claim is a comparison of something measured with a bound, and many are the worst of several terms. Here
each term alone is made wrong, by little, while the others are right: the claim must not hold. Violations of a
relative 1e-6 to 1e-9 must be seen, so that a floor that was loosened a thousandfold shows.
"""

import warnings

import numpy as np
import pytest

from surefit import CertificateWarning, Kind, Status, minimize
from surefit.iterate import Trace
from surefit.solvers import (
    composite_gap,
    gap_claim,
    gradient_claim,
    grid_claim,
    hessian_claim,
    lipschitz_claim,
    local_minimum_claim,
    rate_claim,
    stationary_claim,
    subgradient_claim,
)
from surefit.solvers._curvature import Curvature, Path, Sample, probe, rounding_error
from surefit.solvers.assumptions import measured_convexity_claim, measured_smoothness_claim

A = np.diag([1.0, 3.0, 10.0])
ZERO, ONE = np.zeros(3), np.ones(3)


def bowl(x):
    return float(x @ A @ x) / 2


def slope(x):
    return A @ x


def sample(x, f=bowl, grad=slope):
    x = np.asarray(x, dtype=float)
    return Sample(x, np.asarray(grad(x), dtype=float), float(f(x)))


def measured(*samples, **options):
    curvature = Curvature(**options)
    curvature.compare_all(samples)
    return curvature


def smooth(curvature, L):
    return measured_smoothness_claim(curvature, L).status


def convex(curvature, m):
    return measured_convexity_claim(curvature, m).status


# ---------------------------------------------------------------------------- curvature between pairs


def test_true_constants_pass_and_constants_wrong_by_a_billionth_do_not():
    pairs = measured(sample(ZERO), sample([0, 0, 1.0]), sample([1.0, 0, 0]))
    assert smooth(pairs, 10.0) is Status.HOLDS
    assert smooth(pairs, 10.0 * (1 - 1e-9)) is Status.FAILS
    assert convex(pairs, 1.0) is Status.HOLDS
    assert convex(pairs, 1.0 + 1e-9) is Status.FAILS


def test_the_gradients_alone_contradict():
    """Without values: the first two inequalities."""
    ends = [Sample(x, slope(x)) for x in (ZERO, np.array([0, 0, 1.0]), np.array([1.0, 0, 0]))]
    assert smooth(measured(*ends), 9.9) is Status.FAILS
    assert convex(measured(*ends), 1.1) is Status.FAILS
    # a rotation of the plane has <Dg, d> = 0 and |Dg| = |d|: only the length of Dg shows L
    turn = [Sample(x, np.array([-x[1], x[0]])) for x in (np.zeros(2), np.array([1.0, 0.0]))]
    assert smooth(measured(*turn), 0.9) is Status.FAILS


def test_the_values_alone_contradict():
    """The gradients at the ends are equal: only the values show what is between."""
    wave = [sample([x], lambda x: np.sin(x[0]), np.cos) for x in (0.0, 2 * np.pi)]
    assert smooth(measured(*wave), 0.3) is Status.FAILS  # |2 * 2 pi / (2 pi)^2| = 1 / pi
    assert convex(measured(*wave), 0.0) is Status.FAILS
    # the same bulge seen from the other end only: f is below its tangent at the second point
    bulge = [
        Sample(np.array([0.0]), np.array([0.0]), 0.0),
        Sample(np.array([1.0]), np.array([1.0]), 2.0),
    ]
    assert convex(measured(*bulge), 0.0) is Status.FAILS
    assert convex(measured(*bulge[::-1]), 0.0) is Status.FAILS
    assert smooth(measured(*bulge), 3.9) is Status.FAILS
    assert smooth(measured(*bulge[::-1]), 3.9) is Status.FAILS


def test_rounding_is_subtracted_and_no_more():
    far = [sample(1e3 * ONE + np.array([0, 0, d])) for d in (0.0, 1e-2)]
    pairs = measured(*far)
    assert 10.0 * (1 - 1e-6) < pairs.largest <= 10.0
    assert pairs.smallest >= 10.0 * (1 - 1e-12)
    noisy = measured(*far, noise=1e-3)  # a gradient known to 1e-3 over a distance of 1e-2
    assert pairs.largest - noisy.largest == pytest.approx(0.1, rel=1e-3)
    values = measured(*far, value_noise=1e-5)
    assert values.smallest >= pairs.smallest
    assert values.largest == pytest.approx(pairs.largest, rel=1e-6)  # the gradients still show it


def test_pairs_too_close_or_not_finite_do_not_count():
    near = measured(sample(ONE), sample(ONE * (1 + 1e-9)))
    broken = measured(Sample(ZERO, ZERO), Sample(ONE, np.full(3, np.nan)))
    infinite = measured(Sample(ZERO, ZERO), Sample(np.full(3, np.inf), ONE))
    for curvature in (near, broken, infinite):
        assert curvature.pairs == 0
        assert smooth(curvature, 1.0) is Status.UNDECIDED
        assert convex(curvature, 1.0) is Status.UNDECIDED


def test_consecutive_gradients_are_compared_even_when_no_point_is_kept():
    """A thousand points, of which sixteen are kept: the one jump between two that are not is seen."""
    path = Path(Curvature())
    for k in range(1001):
        x = np.array([float(k), 0.0])
        steep = 5.0 if k == 777 else 0.0
        path.add(x, np.array([x[0], steep]))
    assert len(path.samples()) <= 18
    assert path.curvature.largest > 5.0
    assert path.curvature.pairs >= 999


def test_the_path_copies_gradients_and_looks_values_up():
    buffer, seen = np.zeros(1), []
    path = Path(Curvature(), known_value=lambda x: seen.append(x) or float(x[0] ** 2))
    for x in (0.0, 1.0, 2.0):
        buffer[0] = 2 * x
        path.add(np.array([x]), buffer)
    assert path.curvature.largest == pytest.approx(2.0)
    assert [s.value for s in path.samples()[:3]] == [0.0, 1.0, 4.0]


@pytest.mark.parametrize("n", [1, 3, 24])
def test_a_probe_finds_both_ends_of_the_spectrum(n):
    rng = np.random.default_rng(n)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    spectrum = np.geomspace(1e-3, 10.0, n)
    B = (Q * spectrum) @ Q.T
    x = Q[:, -1]  # the gradient lies in one eigendirection
    pairs, newton = probe(lambda x: B @ x, x, 1e-3, rng)
    curvature = Curvature()
    for a, b in pairs:
        curvature.compare(Sample(a, B @ a), Sample(b, B @ b))
    assert curvature.smallest == pytest.approx(spectrum[0], rel=1e-5)
    assert curvature.largest == pytest.approx(spectrum[-1], rel=1e-9)
    np.testing.assert_allclose(newton, 0.0, atol=1e-6)


def test_a_probe_stays_inside_and_survives_what_is_not_finite():
    asked = []

    def grad(x):
        asked.append(x)
        return np.where(x >= 0, 2.0 * x, np.nan)

    pairs, _ = probe(grad, ZERO, 0.1, np.random.default_rng(0), lambda y: np.maximum(y, 0.0))
    assert all((x >= 0).all() for x in asked)
    assert all((x >= 0).all() for pair in pairs for x in pair)
    assert probe(lambda x: x * np.nan, ONE, 0.1, np.random.default_rng(0)) == ([], None)


def test_cancelling_terms_are_measured():
    rng = np.random.default_rng(0)
    plain = rounding_error(lambda x: x, ONE, rng)
    somewhere = np.sqrt([2.0, 3.0, 5.0])
    large = rounding_error(lambda x: (7e8 * x + 1e16) - 1e16, somewhere, rng)  # in steps of 2
    assert plain < 1e-14
    assert 1.0 < large < 20.0


# ---------------------------------------------------------------------------- claims about a point


def test_gap_and_stationary_claims_have_no_slack():
    assert gap_claim(1.0, 2.0, 1.0).status is Status.HOLDS
    assert gap_claim(1.0 + 1e-12, 2.0, 1.0).status is Status.FAILS
    rounded = gap_claim(1.5, 2.0, 1.0, rounding=0.6)
    assert rounded.status is Status.HOLDS
    assert "to rounding" in rounded.statement
    assert gap_claim(1.5, 2.0, 1.0, rounding=0.4).status is Status.FAILS
    assert gap_claim(np.nan, 2.0, 1.0).status is Status.FAILS
    assert "if the stated constants are right (m = 2, L = 3)" in (
        gap_claim(1.0, 2.0, 1.0, smoothness=3.0).statement
    )
    assert stationary_claim(1.0, 1.0).status is Status.HOLDS
    assert stationary_claim(1.0 + 1e-15, 1.0).status is Status.FAILS
    assert stationary_claim(np.nan, 1.0).status is Status.FAILS


def test_the_composite_gap_has_all_its_terms():
    """Written out again; each of fall, mapping, m, L and the noise changes it."""
    x, t, m = np.array([1.0, -2.0, 0.5]), 0.1, 1.0
    prox, penalty = (lambda v, t: np.maximum(v, 0.0)), (lambda v: 0.0)
    after = np.maximum(x - t * slope(x), 0.0)
    mapping = np.linalg.norm(x - after) / t
    want = bowl(x) - bowl(after) + mapping**2 * (0.5 / m - 0.5 * t)
    constants = {"smoothness": 10.0, "strong_convexity": m}
    assert composite_gap(bowl, slope, prox, penalty, x, **constants) == pytest.approx(
        want, rel=1e-12
    )
    more = composite_gap(bowl, slope, prox, penalty, x, noise=1e-3, **constants)
    change = ((mapping + 1e-3) ** 2 - mapping**2) * (0.5 / m - 0.5 * t)
    assert more - want == pytest.approx(change, rel=1e-6)


@pytest.mark.parametrize(
    ("smallest", "status"),
    [
        (-1e-12, Status.FAILS),
        (0.0, Status.UNDECIDED),
        (1e-17, Status.UNDECIDED),
        (1e-3, Status.HOLDS),
    ],
)
def test_the_second_order_test_reads_the_smallest_eigenvalue(smallest, status):
    H = np.diag([1.0, 1.0, smallest])
    assert local_minimum_claim(lambda x: H @ x, lambda x: H, ZERO).status is status


@pytest.mark.parametrize(("gradient", "status"), [(0.24, Status.HOLDS), (0.26, Status.UNDECIDED)])
def test_the_kantorovich_number_decides_at_a_quarter(gradient, status):
    """f'' = 1 + x: beta = 1, M = 1, eta = gradient."""
    claim = local_minimum_claim(
        lambda x: np.array([gradient]) + x + x**2 / 2,
        lambda x: np.array([[1.0 + x[0]]]),
        np.zeros(1),
    )
    assert claim.status is status


@pytest.mark.parametrize("error", [1e-5, -1e-5])
def test_derivatives_wrong_by_a_hundred_thousandth_are_caught(error):
    assert gradient_claim(bowl, slope, ONE).status is Status.HOLDS
    assert gradient_claim(bowl, lambda x: (1 + error) * slope(x), ONE).status is Status.FAILS
    assert gradient_claim(bowl, lambda x: slope(x) + error, ONE).status is Status.FAILS
    assert hessian_claim(slope, lambda x: A, ONE).status is Status.HOLDS
    assert hessian_claim(slope, lambda x: (1 + error) * A, ONE).status is Status.FAILS
    assert hessian_claim(slope, lambda x: A + error, ONE).status is Status.FAILS


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("length", [1e-4, 1e-2, 1.0])
def test_a_subgradient_that_is_wrong_at_one_distance_is_caught(side, length):
    """A notch on one side, at one distance: f is 0 but for it, where f is -1e-6."""
    rng_direction = np.random.default_rng(0).standard_normal(1)
    way = np.sign(rng_direction[0])

    def notched(x):
        return -1e-6 if abs(way * x[0] - side * length) < 1e-9 else 0.0

    flat = lambda x: np.zeros(1)  # noqa: E731
    assert subgradient_claim(lambda x: 0.0, flat, np.zeros(1)).status is Status.HOLDS
    assert subgradient_claim(notched, flat, np.zeros(1)).status is Status.FAILS


def test_grid_and_lipschitz_claims_have_no_slack():
    assert grid_claim(1.0, 0.5, 2.0, tol=1.0).status is Status.HOLDS
    assert grid_claim(1.0, 0.5, 2.0, tol=1.0 - 1e-12).status is Status.FAILS
    assert grid_claim(1.0, 0.5, 2.0, optimum=0.0).status is Status.HOLDS
    assert grid_claim(1.0 + 1e-12, 0.5, 2.0, optimum=0.0).status is Status.FAILS
    line = [np.array([0.0]), np.array([1.0])]
    assert lipschitz_claim(lambda x: 2.0 * x[0], 2.0, line).status is Status.HOLDS
    assert lipschitz_claim(lambda x: 2.0 * x[0], 2.0 - 1e-9, line).status is Status.FAILS


# ---------------------------------------------------------------------------- rates


def trace_of(values, step=0.1):
    k = len(values)
    return Trace(list(range(1, k + 1)), list(values), [step] * k, [0.0] * k, [])


K = np.arange(1.0, 6.0)
TIGHT = {
    "convex": (1 / (2 * 0.1 * K), {"distance": 1.0, "smoothness": 10.0}),
    "strongly convex": (
        (1 - 2 * 0.1 * 10 / 11) ** K * 5,
        {"distance": 1.0, "smoothness": 10.0, "strong_convexity": 1.0},
    ),
    "accelerated": (2 / (0.1 * (K + 1) ** 2), {"distance": 1.0, "smoothness": 10.0}),
    "subgradient": ((1 + 4 * K * 0.01) / (2 * K * 0.1), {"distance": 1.0, "lipschitz": 2.0}),
}


@pytest.mark.parametrize("theorem", TIGHT)
@pytest.mark.parametrize("k", range(5))
def test_a_rate_broken_by_a_billionth_at_one_step_fails(theorem, k):
    bounds, constants = TIGHT[theorem]
    assert rate_claim(theorem, trace_of(bounds), **constants).status is Status.HOLDS
    broken = np.where(np.arange(5) == k, bounds * (1 + 1e-9), bounds)
    assert rate_claim(theorem, trace_of(broken), **constants).status is Status.FAILS
    lost = np.where(np.arange(5) == k, np.nan, bounds)
    assert rate_claim(theorem, trace_of(lost), **constants).status is Status.FAILS


@pytest.mark.parametrize("k", range(5))
def test_a_gradient_rate_broken_at_the_last_steps_fails(k):
    bounds = np.sqrt(2 / (0.1 * (K + 1)))
    args = {"start_gap": 1.0, "smoothness": 10.0}
    norms = np.r_[10.0, bounds]
    tight = rate_claim("non-convex", trace_of(bounds), gradient_norms=norms, **args)
    assert tight.status is Status.HOLDS
    broken = np.r_[10.0, np.full(k, 9.0), bounds[k:] * (1 + 1e-9)]
    claim = rate_claim("non-convex", trace_of(bounds), gradient_norms=broken, **args)
    assert claim.status is Status.FAILS


@pytest.mark.parametrize("theorem", ["convex", "strongly convex", "accelerated"])
def test_a_step_longer_than_allowed_by_a_billionth_leaves_a_rate_undecided(theorem):
    bounds, constants = TIGHT[theorem]
    limit = 2 / 11 if theorem == "strongly convex" else 0.1
    for step, allowed in ((limit, True), (limit * (1 + 1e-9), False)):
        claim = rate_claim(theorem, trace_of(bounds * 1e-6, step), **constants)
        assert (claim.status is Status.HOLDS) is allowed
        assert claim.status is not Status.FAILS


def test_only_values_above_their_rounding_are_compared():
    bounds, constants = TIGHT["convex"]
    values = np.r_[bounds[:4], 1e6]
    assert rate_claim("convex", trace_of(values), **constants).status is Status.FAILS
    noise = (
        1e16 + np.r_[bounds[:4], bounds[4] + 8.0]
    )  # 8 is below 16 units in the last place of 1e16
    assert rate_claim("convex", trace_of(noise), optimum=1e16, **constants).status is Status.HOLDS
    above = 1e16 + np.r_[bounds[:4], bounds[4] + 128.0]
    assert rate_claim("convex", trace_of(above), optimum=1e16, **constants).status is Status.FAILS


# ---------------------------------------------------------------------------- what rests on what


def run(**arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        return minimize(bowl, ONE, **{"grad": slope, **arguments}).certificate


RIGHT = {"smoothness": 10.0, "strong_convexity": 1.0, "optimum": ZERO}
NONNEGATIVE = {"project": lambda x: np.maximum(x, 0.0), "method": "projected"}
WRONG = {
    "m": {"strong_convexity": 1.01},
    "L": {"smoothness": 9.9, "step": 0.1},
    "optimum": {"optimum": np.array([1e-3, 0.0, 0.0])},
    "gradient": {"grad": lambda x: 0.99 * slope(x)},
}
RESTS = [
    ("suboptimality", {}, ("m", "gradient")),
    ("suboptimality", NONNEGATIVE, ("m", "L", "gradient")),
    ("stationary", {}, ("gradient",)),
    ("strongly convex rate", {}, ("m", "L", "optimum", "gradient")),
    ("convex rate", {}, ("L", "optimum", "gradient")),
    ("convex rate", NONNEGATIVE, ("L", "optimum", "gradient")),
    ("non-convex rate", {}, ("L", "optimum", "gradient")),
    ("accelerated rate", {"method": "fista", "restart": False}, ("L", "optimum", "gradient")),
]


@pytest.mark.parametrize(("claim", "method", "kinds"), RESTS)
def test_a_bound_does_not_hold_when_what_it_rests_on_is_wrong_by_a_percent(claim, method, kinds):
    held = run(**{**RIGHT, **method})
    assert held.ok
    assert held[claim].status is Status.HOLDS
    for kind in kinds:
        certificate = run(**{**RIGHT, **method, **WRONG[kind]})
        assert certificate[claim].status is not Status.HOLDS, kind
        assert any(c.kind is Kind.EMPIRICAL for c in certificate.failed)


def test_a_wrong_hessian_decides_no_minimum():
    right = run(hess=lambda x: A)
    assert right["strict local minimum"].status is Status.HOLDS
    for wrong in (lambda x: 1.01 * A, lambda x: A if np.abs(x).max() > 0.5 else 2 * A):
        certificate = run(hess=wrong)
        assert certificate["Hessian check"].status is Status.FAILS
        assert certificate["strict local minimum"].status is not Status.HOLDS


@pytest.mark.parametrize("lower", [1e-3, 1e-9])
def test_a_lower_bound_above_the_minimum_fails_before_the_run_gets_there(lower):
    """After one step f is far above the bound: the Newton step of the probe goes below it."""
    right = run(smoothness=10.0, lower_bound=0.0, max_iter=1)
    assert right["optimum"].status is Status.HOLDS
    wrong = run(smoothness=10.0, lower_bound=lower, max_iter=1)
    assert wrong["optimum"].status is Status.FAILS
    assert wrong["non-convex rate"].status is not Status.HOLDS


def test_a_grid_with_a_wrong_lipschitz_constant_bounds_nothing():
    """The narrow valley lies between the random points; the best grid point is on its wall."""
    box = {"method": "grid", "bounds": ([0.0, 0.0], [1.0, 1.0]), "points": 21, "tol": 1.0}

    def valley(x):
        return float(min(0.0, 20.0 * np.abs(x - 0.52).max() - 1.0))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        right = minimize(valley, ZERO[:2], lipschitz=20.0, **box).certificate
        wrong = minimize(valley, ZERO[:2], lipschitz=1.0, **box).certificate
    assert right["grid gap"].status is Status.HOLDS
    assert right["Lipschitz"].status is Status.HOLDS
    assert wrong["Lipschitz"].status is Status.FAILS
    assert wrong["grid gap"].status is Status.UNDECIDED


def test_a_subgradient_bound_rests_on_convexity_and_on_the_longest_subgradient():
    """Both bounds were said to hold: the run itself shows the concave part, and the longer subgradient."""
    start, options = np.array([0.5]), {"method": "subgradient", "step": 0.5, "tol": 10.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        given = {"radius": 0.5, "max_iter": 40, **options}
        wave = minimize(lambda x: float(np.cos(x[0])), start, grad=lambda x: -np.sin(x), **given)
        cone = {"f": lambda x: 3 * abs(float(x[0])), "x0": start, "grad": lambda x: 3 * np.sign(x)}
        right = minimize(**cone, lipschitz=3.0, **given)
        short = minimize(**cone, lipschitz=2.9, **given)
    assert wave.certificate["suboptimality"].status is not Status.HOLDS
    assert right.certificate["suboptimality"].status is Status.HOLDS
    assert right.certificate["Lipschitz"].status is Status.HOLDS
    assert short.certificate["Lipschitz"].status is Status.FAILS
    assert short.certificate["suboptimality"].status is Status.UNDECIDED
