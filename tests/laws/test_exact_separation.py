"""Separability, decided for the stored numbers: against linear programming, and where that rounds."""

import numpy as np
import pytest
from scipy.optimize import linprog

from surefit._exact_separation import (
    can_balance,
    correction_exists,
    is_balanced_by_all,
    is_separable,
    separates,
)
from surefit.separation import separate

ULP = 2.0**-52


def draw_problem(seed):
    """A small problem whose rows, as integers or random numbers, may or may not be separable."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 20)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d))
    if seed % 2:
        X = rng.integers(-2, 3, size=(n, d)) * rng.choice([1.0, 1e-5, 1e8], size=d)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if seed % 3 == 0:
        y = np.where(X @ rng.standard_normal(d) > 0, 1.0, -1.0)
    return X, y, y[:, None] * np.column_stack([X, np.ones(n)])


@pytest.mark.parametrize("seed", range(60))
def test_verdicts_are_those_of_linear_programming(seed):
    X, y, Z = draw_problem(seed)
    n, d = Z.shape
    unit = Z / np.maximum(np.abs(Z).max(axis=0), 1e-300)
    box = [(-1, 1)] * d
    strict = linprog(
        np.r_[np.zeros(d), -1.0], A_ub=np.column_stack([-unit, np.ones(n)]), b_ub=np.zeros(n),
        bounds=[*box, (None, 1)],
    )  # fmt: skip
    found = separate(X, y)
    weak = linprog(-unit.sum(axis=0), A_ub=-unit, b_ub=np.zeros(n), bounds=box)
    for hints in ({}, {"plane": np.append(found.w, found.b), "weights": found.farkas}):
        assert is_separable(Z, **hints) is bool(-strict.fun > 1e-9)
    assert is_balanced_by_all(Z) is bool(-weak.fun < 1e-9)


def test_one_unit_in_the_last_place_separates():
    apart = np.array([[-1.0, -1.0], [1.0 + ULP, 1.0]])
    together = np.array([[-1.0, -1.0], [1.0, 1.0]])
    assert is_separable(apart) is True
    assert is_separable(together) is False
    assert is_balanced_by_all(apart) is False
    assert is_balanced_by_all(together) is True


def test_hints_are_not_trusted():
    Z = np.array([[-1.0, -1.0], [1.0 + ULP, 1.0]])
    for plane in ([1.0, -1.0], [np.nan, 0.0], [1.0], [np.inf, -np.inf]):
        assert is_separable(Z, plane=np.array(plane)) is True
        assert not separates(Z, np.array(plane))
    for weights in ([0.5, 0.5], [np.nan, 1.0], [-1.0, 2.0]):
        assert is_separable(Z, weights=np.array(weights)) is True
        assert not can_balance(Z, np.array(weights))


def test_a_plane_is_checked_beyond_rounding():
    Z = np.array([[-1.0, -1.0], [1.0 + ULP, 1.0]])
    assert separates(
        Z, np.array([1.5, -(1.5 + ULP)])
    )  # found by hand: 1.5 < 1.5 + ulp < 1.5 (1 + ulp)
    assert not separates(Z, np.array([1.0, -(1.0 + ULP)]))


def test_a_larger_problem_is_decided_without_exact_arithmetic():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((500, 60))
    balanced = np.vstack([Z, -Z.sum(axis=0)])
    assert can_balance(balanced, np.ones(501))
    assert is_balanced_by_all(balanced, np.ones(501)) is True
    assert not can_balance(np.abs(Z), np.ones(500))
    assert not can_balance(np.hstack([balanced, balanced[:, :1]]), np.ones(501))  # rank-deficient


def test_what_cannot_be_decided_is_none():
    rng = np.random.default_rng(1)
    assert is_separable(rng.standard_normal((100, 60))) is None
    assert is_separable(np.array([[1.0, np.nan]])) is None
    assert is_separable(np.array([[1e-310, 1.0], [1e300, -1.0]])) in (True, None)
    assert is_balanced_by_all(np.zeros((0, 2))) is None


@pytest.mark.parametrize("spoiled", range(4))
def test_nan_proves_nothing(spoiled):
    arguments = [np.eye(2), np.zeros((2, 2)), np.zeros(2), np.ones(2)]
    assert correction_exists(*arguments)
    arguments[spoiled] = arguments[spoiled] * np.nan
    assert not correction_exists(*arguments)


def test_the_bounds_of_a_correction_are_used():
    eye, nothing, one = np.eye(2), np.zeros((2, 2)), np.ones(2)
    assert not correction_exists(eye, np.full((2, 2), 0.5), 0.0 * one, one)  # G may be singular
    assert not correction_exists(eye, nothing, one, one)  # r moves a weight to 0
    assert not correction_exists(eye, nothing, 0.01 * one, 50.0 * one)
    assert not correction_exists(np.diag([1.0, 0.0]), nothing, 0.0 * one, one)
