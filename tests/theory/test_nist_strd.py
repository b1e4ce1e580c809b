"""Least squares against NIST's certified values: how many digits are right, and what the certificate says.

The log relative error (LRE), -log10 of the largest relative error of a coefficient, counts right digits.
Three numbers are compared for each set: the certified values (of the published decimals), the exact
solution for the decimals as float64 rounds them, and what the fit returns. Rounding the powers of Filip's x
to float64 alone costs it seven digits, whoever solves it.
"""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
import sklearn.linear_model
from tests.theory.nist_data import SETS

import surefit
from surefit import Status
from surefit.linear_model import LinearRegression

# Refinement runs in the long double of the machine: 64 bits of mantissa on x86, 53 on some others.
EXTENDED = np.finfo(np.longdouble).eps < 1e-18

# Right digits of the certified values, and of the exact solution of the rounded problem, each a little
# below what is reached. Without an extended type no method on doubles promises more than 6 on these.
DIGITS = {
    "Norris": (12.0, 12.0),
    "Pontius": (12.5, 13.0),
    "NoInt1": (14.0, 14.5),
    "NoInt2": (14.5, 14.5),
    "Filip": (7.0, 9.5),
    "Longley": (13.5, 14.0),
    "Wampler1": (12.5, 12.5),
    "Wampler2": (12.5, 14.0),
    "Wampler3": (12.0, 12.0),
    "Wampler4": (11.0, 11.0),
    "Wampler5": (8.5, 8.5),
}
BY_NAME = {data.name: data for data in SETS}
every_set = pytest.mark.parametrize("data", SETS, ids=lambda data: data.name)


def exact_least_squares(rows, y):
    """The solution of the normal equations in exact fractions."""
    p = len(rows[0])
    A = [[sum(r[i] * r[j] for r in rows) for j in range(p)] for i in range(p)]
    b = [sum(r[i] * t for r, t in zip(rows, y)) for i in range(p)]
    for k in range(p):
        for i in range(k + 1, p):
            factor = A[i][k] / A[k][k]
            A[i] = [a - factor * pivot for a, pivot in zip(A[i], A[k])]
            b[i] -= factor * b[k]
    w = [Fraction(0)] * p
    for k in reversed(range(p)):
        w[k] = (b[k] - sum(A[k][j] * w[j] for j in range(k + 1, p))) / A[k][k]
    return w


def with_ones(rows, data):
    return [[Fraction(1), *row] for row in rows] if data.intercept else rows


@cache
def solutions(name):
    """The fit, scikit-learn's fit, and the exact solution of the problem in float64."""
    data = BY_NAME[name]
    X, y = data.arrays()
    ours = LinearRegression(fit_intercept=data.intercept).fit(X, y)
    theirs = sklearn.linear_model.LinearRegression(fit_intercept=data.intercept).fit(X, y)
    rows = with_ones([[Fraction(v) for v in row] for row in X.tolist()], data)
    exact = exact_least_squares(rows, [Fraction(v) for v in y.tolist()])
    return ours, theirs, [float(w) for w in exact]


def coefficients(model, data):
    return [float(model.intercept_)] * data.intercept + model.coef_.tolist()


def digits(found, true):
    found, true = np.array(found, dtype=float), np.array(true, dtype=float)
    return min(15.0, -np.log10(max(np.abs((found - true) / true).max(), 1e-16)))


@every_set
def test_the_decimals_are_the_published_ones(data):
    """In exact arithmetic they give all certified digits: one wrong datum would not."""
    rows, y = with_ones(data.columns(Fraction), data), [Fraction(v) for v in data.y]
    for found, certified in zip(exact_least_squares(rows, y), data.certified, strict=True):
        # 15 significant digits: half a unit of the last is at most 5e-15 of the number
        assert abs(found - Fraction(certified)) <= Fraction(5, 10**15) * abs(found)


def test_a_wrong_digit_would_be_found():
    data = BY_NAME["Filip"]
    rows, y = with_ones(data.columns(Fraction), data), [Fraction(v) for v in data.y]
    rows[40][1] += Fraction(1, 10**9)  # the last digit of one x
    found = exact_least_squares(rows, y)
    errors = [abs(w / Fraction(c) - 1) for w, c in zip(found, data.certified)]
    assert max(errors) > Fraction(1, 10**13)


@pytest.mark.spec("REG-2", "REG-4")
@every_set
def test_right_digits(data):
    ours, theirs, exact = solutions(data.name)
    published = [float(value) for value in data.certified]
    of_published, of_rounded = DIGITS[data.name] if EXTENDED else (6.0, 6.0)
    assert digits(coefficients(ours, data), published) >= of_published
    assert digits(coefficients(ours, data), exact) >= of_rounded
    if EXTENDED:
        their_digits = digits(coefficients(theirs, data), published)
        assert digits(coefficients(ours, data), published) >= their_digits - 0.5


@pytest.mark.spec("REG-2", "REG-4")
@every_set
def test_the_certificate_holds_and_bounds_the_true_error(data):
    """cond times backward error is at least the error, in the norm of the unit columns it is stated in."""
    ours, _, exact = solutions(data.name)
    X, y = data.arrays()
    certificate = surefit.verify(ours, X, y)
    assert [claim.status for claim in certificate.claims] == [Status.HOLDS] * 4
    claim = certificate["coefficients"]
    centred = X - X.mean(axis=0) if data.intercept else X
    scale = np.linalg.norm(centred, axis=0)
    true = np.array(exact[int(data.intercept) :])
    error = np.linalg.norm(scale * (ours.coef_ - true)) / np.linalg.norm(scale * true)
    assert error <= claim.observed
    quoted = float(claim.statement.split("unit columns is ")[1].split()[0])
    assert quoted == pytest.approx(
        np.linalg.cond(centred / scale), rel=0.05
    )  # two digits are quoted
    assert f"rank {X.shape[1]} of {X.shape[1]}" in claim.statement


@pytest.mark.spec("REG-4")
def test_filip_is_the_ill_conditioned_one():
    ours, theirs, _ = solutions("Filip")
    X, y = BY_NAME["Filip"].arrays()
    claim = surefit.verify(ours, X, y)["coefficients"]
    assert 1e-8 < claim.observed < 1e-4  # it says that about half of the digits may be lost
    published = BY_NAME["Filip"].coefficients()
    if EXTENDED:
        ahead = digits(coefficients(ours, BY_NAME["Filip"]), published) - digits(
            coefficients(theirs, BY_NAME["Filip"]), published
        )
        assert ahead > 1.0


@pytest.mark.spec("REG-4")
@pytest.mark.parametrize("name", ["Filip", "Wampler5"])
def test_in_single_precision_the_certificate_declines(name):
    """The data do not determine these coefficients to three digits in float32, and it says so."""
    X, y = BY_NAME[name].arrays()
    model = LinearRegression(certify="full").fit(X.astype(np.float32), y)
    claim = model.certificate_["coefficients"]
    assert claim.status is Status.UNDECIDED
    assert "do not determine the coefficients" in claim.statement
    assert model.certificate_["normal equations"].status is Status.HOLDS  # a minimiser all the same


@pytest.mark.spec("REG-2")
@pytest.mark.parametrize("name", ["Longley", "Wampler1", "Filip"])
def test_a_change_in_the_eighth_digit_is_noticed(name):
    """Filip's columns span nine decades: the claim must not be blind to the small ones."""
    ours, _, _ = solutions(name)
    X, y = BY_NAME[name].arrays()
    nudged = LinearRegression(certify=False).fit(X, y)
    for j in range(X.shape[1]):
        nudged.coef_ = ours.coef_.copy()
        nudged.coef_[j] *= 1.0 + 1e-8
        nudged.intercept_ = y.mean() - X.mean(axis=0) @ nudged.coef_
        report = surefit.verify(nudged, X, y)
        assert report["normal equations"].status is Status.FAILS
