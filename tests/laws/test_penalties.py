"""The laws of penalties: every penalty obeys them, every broken one is caught (CVX-10, OPT-13)."""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from surefit.penalties import L1, L2, Ball, Box, ElasticNet, NoPenalty, Penalty
from surefit.testing import check_penalty

PENALTIES: list[Penalty] = [
    L1(0.3), L1(30.0), L1(1e-3), L1(0.3, positive=True), L2(0.7), L2(100.0), L2(0.3, positive=True),
    ElasticNet(0.4, 0.5), ElasticNet(1e-3, 0.5), ElasticNet(0.4, 0.0), ElasticNet(0.4, 1.0),
    ElasticNet(0.4, 0.3, positive=True), NoPenalty(), NoPenalty(positive=True),
    Box(-0.5, 1.0), Box(0.0, 2.0), Ball(1.3),
]  # fmt: skip


@pytest.mark.spec("CVX-10")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_every_penalty_obeys_the_laws(penalty, seed):
    check_penalty(penalty, np.random.default_rng(seed))


def broken(base, *args, **changes):
    return type(f"Broken{base.__name__}", (base,), changes)(*args)


BROKEN = [
    (L1, (0.3,), "prox is a minimiser", {"prox": lambda self, w, step: w / (1 + step)}),
    (L1, (0.3,), "Moreau identity", {"value": lambda self, w: 0.31 * np.abs(w).sum()}),
    (Box, (5.0, 6.0), "prox is feasible", {"prox": lambda self, w, step: w}),
    (L2, (0.7,), "Moreau identity", {"conjugate": lambda self, v: float(np.vdot(v, v))}),
    (L1, (0.3,), "feasible_scale is feasible", {"feasible_scale": lambda self, v: 1.0}),
    (L2, (0.7,), "feasible_scale is maximal|Moreau", {"feasible_scale": lambda self, v: 0.5}),
    (L1, (0.3,), "feasible_scale lies in|Moreau", {"feasible_scale": lambda self, v: -1.0}),
    # A conjugate that ignores its domain lets any scale pass as feasible, not as maximal.
    (L1, (0.3,), "maximal", {"conjugate": lambda self, v: 0.0}),
    (L2, (0.7,), "strong_convexity", {"strong_convexity": 0.8}),
    (L2, (0.7,), "strong_convexity", {"strong_convexity": 0.6}),
    (L1, (0.3,), "strong_convexity", {"strong_convexity": 0.1}),
    (
        L1,
        (0.3,),
        "subdiff_distance is 0",
        {"subdiff_distance": lambda self, w, g: np.abs(g + 0.3 * np.sign(w))},
    ),
    (L1, (0.3,), "subdiff_distance is positive", {"subdiff_distance": lambda self, w, g: 0.0 * w}),
]


@pytest.mark.parametrize(("base", "args", "law", "changes"), BROKEN)
def test_a_broken_penalty_is_caught(base, args, law, changes):
    with pytest.raises(AssertionError, match=law):
        check_penalty(broken(base, *args, **changes))


# ---------------------------------------------------------------------------- penalties on blocks


class Blocks(Penalty):
    """alpha times the sum of a norm over blocks; a user writes one like this, with a prox that shrinks blocks."""

    strong_convexity = 0.0

    def __init__(self, alpha=0.4):
        self.alpha = alpha

    def blocks(self, w):
        """Views of w as vectors."""
        raise NotImplementedError

    def value(self, w):
        return self.alpha * sum(float(np.linalg.norm(b)) for b in self.blocks(w))

    def prox(self, w, step):
        shrunk = w.copy()
        for block in self.blocks(shrunk):
            length = np.linalg.norm(block)
            block *= max(0.0, 1.0 - step * self.alpha / length) if length > 0 else 0.0
        return shrunk

    def largest(self, v):
        return max(float(np.linalg.norm(b)) for b in self.blocks(v))

    def conjugate(self, v):
        return 0.0 if self.largest(v) <= self.alpha * (1 + 1e-12) else math.inf

    def feasible_scale(self, v):
        return min(1.0, self.alpha / self.largest(v)) if self.largest(v) > 0 else 1.0


class WholeNorm(Blocks):
    """All coefficients are one group."""

    def blocks(self, w):
        return [w.reshape(-1)]


class Rows(Blocks):
    """The l21 norm: each row of a matrix is a group, a vector is a matrix of one column."""

    def blocks(self, w):
        return list(w.reshape(len(w), -1))


class Groups(Blocks):
    """The group lasso for stated groups of five features."""

    def blocks(self, w):
        return [w[:2], w[2:]]


class Nuclear(Blocks):
    """The sum of the singular values of a matrix; a vector is one column."""

    def spectrum(self, w):
        return np.linalg.svd(w.reshape(len(w), -1), full_matrices=False)

    def value(self, w):
        return self.alpha * float(self.spectrum(w)[1].sum())

    def prox(self, w, step):
        U, size, V = self.spectrum(w)
        return ((U * np.maximum(size - step * self.alpha, 0.0)) @ V).reshape(w.shape)

    def largest(self, v):
        return float(self.spectrum(v)[1].max())


class RidgedGroups(Groups):
    """The same with a quadratic part, which is strongly convex."""

    strong_convexity = 0.6

    def value(self, w):
        return super().value(w) + 0.3 * float(w @ w)

    def prox(self, w, step):
        return super().prox(w / (1 + 0.6 * step), step / (1 + 0.6 * step))

    def conjugate(self, v):
        return sum(max(0.0, np.linalg.norm(b) - self.alpha) ** 2 / 1.2 for b in self.blocks(v))

    def feasible_scale(self, v):
        return 1.0


FIVE = ((5,),)
ON_BLOCKS = [
    (WholeNorm(), None), (WholeNorm(30.0), None), (Rows(), None), (Nuclear(), None), (Nuclear(3.0), None),
    (Groups(), FIVE), (Groups(5.0), FIVE), (RidgedGroups(), FIVE), (Rows(), ((2, 2), (7, 3))),
]  # fmt: skip


@pytest.mark.spec("CVX-10")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("penalty", "shapes"), ON_BLOCKS)
def test_a_penalty_on_blocks_obeys_the_laws(penalty, shapes, seed):
    given = {} if shapes is None else {"shapes": shapes}
    check_penalty(penalty, np.random.default_rng(seed), **given)


def by_entry(self, w, step):
    """Soft thresholding, which is right for groups of one only."""
    return np.sign(w) * np.maximum(np.abs(w) - step * self.alpha, 0.0)


def too_far(self, w, step):
    return Blocks.prox(self, w, 1.05 * step)


def whole(self, w, step):
    """Shrinks all groups together."""
    return WholeNorm(self.alpha).prox(w, step)


BROKEN_ON_BLOCKS = [
    (Groups, {"prox": by_entry}, "Moreau"),
    (Groups, {"prox": too_far}, "Moreau"),
    (Groups, {"prox": whole}, "prox is a minimiser"),
    (Groups, {"strong_convexity": 0.05}, "strong_convexity"),
    (RidgedGroups, {"strong_convexity": 0.55}, "strong_convexity"),
    (RidgedGroups, {"strong_convexity": 0.65}, "strong_convexity"),
    (Groups, {"feasible_scale": lambda self, v: min(1.0, 0.4 / np.abs(v).max())}, "feasible_scale|Moreau"),
    (Groups, {"largest": lambda self, v: float(np.linalg.norm(v))}, "maximal|Moreau"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "changes", "law"), BROKEN_ON_BLOCKS)
def test_a_broken_penalty_on_blocks_is_caught(base, changes, law):
    with pytest.raises(AssertionError, match=law):
        check_penalty(broken(base, **changes), shapes=FIVE)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.2, 0.5, 1.0])
def test_elastic_net_against_mpmath(l1_ratio, positive):
    """Value and conjugate in 50 digits; the conjugate also by maximising each coordinate."""
    mpmath.mp.dps = 50
    rng = np.random.default_rng(0)
    penalty = ElasticNet(0.7, l1_ratio, positive)
    w, v = np.abs(rng.normal(size=5)), rng.normal(scale=2, size=5)
    l1, l2 = mpmath.mpf(0.7) * l1_ratio, mpmath.mpf(0.7) * (1 - mpmath.mpf(l1_ratio))
    want = sum(l1 * abs(mpmath.mpf(x)) + l2 * mpmath.mpf(x) ** 2 / 2 for x in w)
    assert penalty.value(w) == pytest.approx(float(want), rel=1e-15)
    v = penalty.feasible_scale(v) * v

    def best(
        x,
    ):  # the maximiser of x u - l1 |u| - l2 u^2 / 2 is (|x| - l1)_+ / l2 with the sign of x
        size = x if positive else abs(x)
        u = max(size - l1, mpmath.mpf(0)) / l2 if l2 else mpmath.mpf(0)
        return size * u - l1 * u - l2 * u**2 / 2

    want = sum(best(mpmath.mpf(x)) for x in v)
    assert penalty.conjugate(v) == pytest.approx(float(want), rel=1e-14, abs=1e-15)
    if penalty.l2 > 0:
        split = minimize(  # u = a - b with a, b >= 0, so that the problem is smooth
            lambda ab: penalty.l1 * ab.sum() + penalty.l2 / 2 * np.sum((ab[:5] - ab[5:]) ** 2)
            - v @ (ab[:5] - ab[5:]),
            np.ones(10), bounds=[(0, None)] * 5 + [(0, 0 if positive else None)] * 5,
            options={"ftol": 1e-15, "gtol": 1e-10},
        )  # fmt: skip
        assert penalty.conjugate(v) == pytest.approx(-split.fun, abs=1e-7)


def test_positive_penalties_refuse_negative_coefficients():
    for penalty in (L1(0.3, positive=True), L2(0.3, positive=True), NoPenalty(positive=True)):
        assert penalty.value(np.array([1.0, -1e-300])) == math.inf
        assert penalty.prox(np.array([-3.0, 2.0]), 0.5)[0] == 0.0
        # Only v_j > 0 can leave the dual set.
        assert penalty.conjugate(np.array([-100.0])) == 0.0
        assert penalty.feasible_scale(np.array([-100.0])) == 1.0


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e8])
def test_feasible_scale_lands_in_the_domain_at_every_scale(scale):
    rng = np.random.default_rng(1)
    penalty = L1(0.37 * scale)
    for _ in range(200):
        v = scale * rng.normal(scale=10, size=7)
        assert penalty.conjugate(penalty.feasible_scale(v) * v) == 0.0


@pytest.mark.parametrize("alpha", [-1.0, math.inf, math.nan])
def test_alpha_is_checked(alpha):
    with pytest.raises(ValueError, match="alpha"):
        ElasticNet(alpha)


@pytest.mark.parametrize("l1_ratio", [-0.1, 1.1, math.nan])
def test_l1_ratio_is_checked(l1_ratio):
    with pytest.raises(ValueError, match="l1_ratio"):
        ElasticNet(1.0, l1_ratio)


def test_half_open_box_is_a_constraint():
    """Box(0, inf) is w >= 0: a negative coefficient is infeasible, and the conjugate is NoPenalty's."""
    box, reference = Box(0.0, math.inf), NoPenalty(positive=True)
    assert box.value(np.array([-5.0])) == math.inf
    assert box.value(np.array([5.0, 0.0])) == 0.0
    for v in ([0.0, -1.0], [1.0, -1.0], [-2.0, -3.0]):
        assert box.conjugate(np.array(v)) == reference.conjugate(np.array(v))
        assert box.feasible_scale(np.array(v)) == reference.feasible_scale(np.array(v))


def test_constraint_bounds_are_checked():
    with pytest.raises(ValueError, match="low"):
        Box(1.0, 0.0)
    with pytest.raises(ValueError, match="radius"):
        Ball(-1.0)
