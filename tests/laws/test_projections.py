"""Projections onto convex sets (CVX-9)."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from surefit.projections import project_ball, project_box, project_simplex
from surefit.testing import check_projection


def in_ball(v):
    return bool(np.linalg.norm(v) <= 1.0 + 1e-12)


def in_box(v):
    return bool((v >= 0.0).all() and (v <= 1.0).all())


def in_simplex(v):
    return bool((v >= 0.0).all() and abs(v.sum() - 1.0) <= 1e-12)


SETS = [(project_ball, in_ball), (project_box, in_box), (project_simplex, in_simplex)]


@pytest.mark.spec("CVX-9")
@pytest.mark.parametrize("dim", [1, 2, 7])
@pytest.mark.parametrize(("project", "contains"), SETS)
def test_projection_laws(project, contains, dim):
    check_projection(project, contains, dim)
    check_projection(project, contains, dim, np.random.default_rng(1))


@pytest.mark.spec("CVX-9")
@pytest.mark.parametrize("size", [0.01, 3.0, 1e4])
def test_projection_laws_at_other_sizes(size):
    check_projection(
        lambda w: project_ball(w, size), lambda v: np.linalg.norm(v) <= size * (1 + 1e-12), 5
    )
    check_projection(
        lambda w: project_box(w, -size, 2 * size),
        lambda v: bool(((v >= -size) & (v <= 2 * size)).all()),
        5,
    )
    check_projection(
        lambda w: project_simplex(w, size),
        lambda v: bool((v >= 0).all() and abs(v.sum() - size) <= 1e-12 * size),
        5,
    )


@pytest.mark.parametrize(
    ("law", "project", "contains"),
    [
        ("lies in the set", lambda w: w, in_ball),
        ("obtuse angle", lambda w: w if in_box(w) else np.full(3, 0.5), in_box),
        ("P P = P", lambda w: np.clip(w / 2, 0.0, 1.0), in_box),
        ("obtuse angle", lambda w: np.maximum(w, 1e-3) / np.maximum(w, 1e-3).sum(), in_simplex),
        # Of the two unit points: nearest, idempotent, and not a convex set.
        ("obtuse angle|convex|nonexpansive", np.sign, lambda v: bool((np.abs(v) == 1).all())),
    ],
)
def test_a_map_that_is_no_projection_is_caught(law, project, contains):
    with pytest.raises(AssertionError, match=law):
        check_projection(project, contains, 3)


@pytest.mark.spec("CVX-9")
@pytest.mark.parametrize("seed", range(5))
def test_simplex_projection_equals_a_quadratic_program(seed):
    w = np.random.default_rng(seed).normal(size=4)
    r = minimize(
        lambda v: 0.5 * np.sum((v - w) ** 2), np.full(4, 0.25), jac=lambda v: v - w, method="SLSQP",
        bounds=[(0, None)] * 4, constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    np.testing.assert_allclose(project_simplex(w), r.x, atol=1e-7)


@pytest.mark.spec("CVX-9")
def test_intersection_of_convex_sets_is_convex():
    rng = np.random.default_rng(0)
    points = [project_simplex(rng.normal(size=3)) for _ in range(200)]
    both = [v for v in points if np.linalg.norm(v - 0.5) <= 0.7]
    assert 10 < len(both) < 200
    for u, v in itertools.pairwise(both):
        middle = 0.3 * u + 0.7 * v
        assert in_simplex(middle)
        assert np.linalg.norm(middle - 0.5) <= 0.7 + 1e-12


def test_ball_is_the_frobenius_ball_of_a_matrix():
    w = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_allclose(project_ball(w, 2.0), 2.0 * w / np.sqrt((w**2).sum()), rtol=1e-15)


def test_simplex_projection_of_huge_entries():
    """Entries so large that a unit is below their rounding: only the differences matter."""
    np.testing.assert_array_equal(project_simplex(np.array([1e20, 0.0])), [1.0, 0.0])
    np.testing.assert_array_equal(project_simplex(np.array([1e20, 1e20])), [0.5, 0.5])
    np.testing.assert_array_equal(project_simplex(np.array([-1e300, 0.0])), [0.0, 1.0])


def test_arguments_are_checked():
    w = np.zeros(2)
    with pytest.raises(ValueError, match="radius"):
        project_ball(w, -1.0)
    with pytest.raises(ValueError, match="low"):
        project_box(w, 1.0, 0.0)
    with pytest.raises(ValueError, match="total"):
        project_simplex(w, 0.0)
