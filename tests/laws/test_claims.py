"""The law of claims: NaN never holds, a floor excuses little, an interval is not a success by itself."""

import copy
import dataclasses
import json
import math
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

import surefit
from surefit import Certificate, Claim, Kind, Status
from surefit._attributes import (
    MAX_DEPTH,
    invalid_attributes,
    invalid_classes,
    invalid_counts,
    storage_eps,
)
from surefit._optimality import INFORMATIVE_SHARE, gradient_claim, optimality_claim
from surefit._worst import badness
from surefit.certificate import DEFAULT_TOLERANCE, ROUNDING_LIMIT, CertificateError
from surefit.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge

NAN, INF = math.nan, math.inf


def check(observed, bound, **more):
    return Claim.check("n", "s", Kind.OPTIMAL, observed, bound, "REG-14", **more)


# ---------------------------------------------------------------------------- one observation


@pytest.mark.parametrize(
    ("observed", "bound", "status"),
    [
        (1.0, 1.0, "holds"),
        (0.0, 0.0, "holds"),
        (-1.0, 0.0, "holds"),
        (np.nextafter(1.0, 2.0), 1.0, "fails"),
        (NAN, 1.0, "fails"),
        (0.0, NAN, "fails"),
        (NAN, NAN, "fails"),
        (NAN, INF, "fails"),
        (INF, 1.0, "fails"),
        (INF, INF, "fails"),
        (-INF, 1.0, "fails"),
        (1.0, -INF, "fails"),
        (1.0, INF, "uninformative"),
    ],
)
def test_a_claim_holds_when_a_finite_number_is_within_a_finite_bound(observed, bound, status):
    assert check(observed, bound).status.value == status


@pytest.mark.parametrize(
    ("floor", "largest", "status", "bound"),
    [
        (2.0, INF, "holds", 2.0),
        (1.5, 1.5, "holds", 1.5),
        (2.0, 1.5, "undecided", 1.0),
        (1.2, INF, "fails", 1.0),
        (INF, INF, "fails", 1.0),
        (NAN, INF, "fails", 1.0),
        (2.0, NAN, "fails", 1.0),
    ],
)
def test_a_floor_excuses_no_more_than_it_may(floor, largest, status, bound):
    claim = check(1.5, 1.0, floor=floor, largest_floor=largest)
    assert (claim.status.value, claim.bound) == (status, bound)
    words = {"holds": "to rounding", "undecided": "nothing is shown", "fails": "s"}[status]
    assert words in claim.statement


def test_a_floor_that_is_not_a_number_spoils_a_claim_that_would_hold():
    assert check(0.5, 1.0, floor=NAN).status is Status.FAILS
    assert check(0.5, 1.0, largest_floor=NAN).status is Status.FAILS
    assert check(0.5, 1.0, floor=2.0, largest_floor=1.0).status is Status.HOLDS


# ---------------------------------------------------------------------------- intervals, criteria


@pytest.mark.parametrize(
    ("ends", "more", "status"),
    [
        ((0.3, 0.2, 0.4), {}, "holds"),
        ((0.2, 0.2, 0.2), {}, "holds"),
        ((0.3, 0.0, 1.0), {}, "uninformative"),
        ((0.3, 0.1, 0.7), {"widest": 0.5}, "uninformative"),
        ((3.0, 1.0, 7.0), {"limits": (0.0, 10.0)}, "holds"),
        ((3.0, 1.0, 7.0), {"limits": (1.0, 7.0)}, "uninformative"),
        ((0.5, 0.2, 0.4), {}, "fails"),
        ((0.1, 0.2, 0.4), {}, "fails"),
        ((NAN, 0.2, 0.4), {}, "fails"),
        ((0.3, NAN, 0.4), {}, "fails"),
        ((0.3, 0.2, NAN), {}, "fails"),
        ((0.3, -INF, 0.4), {}, "fails"),
    ],
)
def test_an_interval_as_wide_as_its_range_says_nothing(ends, more, status):
    claim = Claim.interval("n", "s", Kind.STATISTICAL, *ends, "GEN-6", **more)
    assert claim.status.value == status
    if status != "fails":
        assert (claim.estimate, claim.low, claim.high) == ends
        assert claim.observed == pytest.approx(ends[2] - ends[1])
        assert claim.numbers == f"{ends[0]:.3g} in [{ends[1]:.3g}, {ends[2]:.3g}]"


@pytest.mark.parametrize(
    ("ends", "status", "observed"),
    [
        ((0.01, 0.0, 0.05), "holds", 0.05),
        ((0.04, 0.01, 0.06), "undecided", 0.06),
        ((0.80, 0.70, 0.90), "fails", 0.70),
        ((0.06, 0.05, 0.07), "undecided", 0.07),
        ((NAN, 0.0, 0.01), "fails", None),
        ((0.02, 0.0, 0.01), "fails", None),
    ],
)
def test_a_criterion_is_met_violated_or_not_decided(ends, status, observed):
    claim = Claim.criterion("independence", "s", Kind.STATISTICAL, *ends, 0.05, "FAIR-1")
    assert claim.status.value == status
    assert observed is None or (claim.observed, claim.bound) == (observed, 0.05)


def test_a_criterion_without_a_tolerance_is_never_met():
    claim = Claim.criterion("n", "s", Kind.STATISTICAL, 0.0, 0.0, 0.01, NAN)
    assert claim.status is Status.FAILS


def test_other_claims_keep_their_numbers():
    told = Claim.uninformative("n", "why", Kind.BOUND, 0.4, 1.0, "GEN-6")
    assert (told.status, told.observed, told.bound) == (Status.UNINFORMATIVE, 0.4, 1.0)
    assert told.numbers == "4.00e-01 <= 1.00e+00"
    assert Claim.undecided("n", "why", Kind.BOUND).numbers == ""
    assert check(2.0, 1.0).numbers == "2.00e+00 > 1.00e+00"


CLAIMS = (
    check(0.5, 1.0),
    check(2.0, 1.0),
    Claim.undecided("u", "why", Kind.OPTIMAL),
    Claim.uninformative("o", "why", Kind.BOUND, 0.5, INF),
    Claim.interval("i", "s", Kind.STATISTICAL, 0.3, 0.2, 0.4),
    Claim.interval("w", "s", Kind.STATISTICAL, 0.3, 0.0, 1.0),
    Claim.criterion("c", "s", Kind.STATISTICAL, 0.04, 0.01, 0.06, 0.05),
)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.name}-{claim.status.value}")
def test_a_claim_survives_json(claim):
    again = Claim.from_dict(json.loads(json.dumps(claim.to_dict())))
    assert again == claim
    assert hash(again) == hash(claim)
    for name in ("name", "statement", "observed", "bound", "source"):
        other = dataclasses.replace(
            claim, **{name: "x" if isinstance(getattr(claim, name), str) else 7.0}
        )
        assert other != claim
    assert ("low" in claim.to_dict()) == (claim.low is not None)


def test_claims_are_ordered_from_failed_to_held():
    order = [check(2.0, 1.0), CLAIMS[2], CLAIMS[3], check(0.9, 1.0), check(0.1, 1.0)]
    assert sorted(order, key=badness, reverse=True) == order
    assert badness(check(1e-9, 0.0, floor=1e-8)) > badness(check(0.0, 1.0))
    assert badness(check(NAN, 1.0)) > badness(check(5.0, 1.0))
    assert badness(check(5.0, -1.0)) > badness(check(5.0, 1.0))
    # the larger share of its bound is the worse, not the larger number
    assert badness(check(0.9, 1.0)) > badness(check(2.0, 10.0))
    assert badness(check(-1.0, 0.0)) < badness(check(0.1, 1.0))


# ---------------------------------------------------------------------------- certificates


@pytest.mark.parametrize(
    ("claims", "ok", "proved"),
    [
        ([], True, False),
        ([check(0.5, 1.0)], True, True),
        ([check(2.0, 1.0)], False, False),
        ([check(0.5, 1.0), CLAIMS[2]], True, False),
        ([check(0.5, 1.0), Claim.uninformative("o", "w", Kind.OPTIMAL)], True, False),
        ([check(0.5, 1.0), Claim.undecided("u", "w", Kind.BOUND)], True, True),
        ([Claim.check("e", "s", Kind.EXACT, 0.0, 0.0)], True, True),
        ([Claim.check("data", "s", Kind.EXACT, 0.0, 0.0)], True, False),
        ([Claim.undecided("e", "w", Kind.EXACT)], True, False),
        (
            [
                Claim.check("e", "s", Kind.EXACT, 0.0, 0.0),
                Claim.check("g", "s", Kind.STATIONARY, 0.0, 0.0),
            ],
            True,
            False,
        ),
    ],
)
def test_proved_says_more_than_ok(claims, ok, proved):
    certificate = Certificate(tuple(claims), notes=("judged",))
    assert (certificate.ok, certificate.proved) == (ok, proved)
    assert Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))) == certificate
    assert certificate.raise_if_failed() is certificate if ok else True
    if not ok:
        with pytest.raises(CertificateError, match=r"1 claim\(s\) do not hold[\s\S]*needed <= 1"):
            certificate.raise_if_failed()


def test_every_rendering_shows_every_status_and_the_notes():
    from io import StringIO

    from rich.console import Console

    certificate = Certificate(CLAIMS, "abc", "it was done", "Model", ("judged at 0.001",))
    out = StringIO()
    Console(file=out, width=400).print(certificate)
    for text in (str(certificate), certificate._repr_html_(), " ".join(out.getvalue().split())):
        for mark in ("✓", "✗", "?", "○", "judged at 0.001", "it was done", "abc", "in [0.2, 0.4]"):
            assert mark in text
    assert "2 holds, 1 fails, 2 undecided, 2 uninformative" in str(certificate)
    assert str(Certificate(())) == "Certificate: no claims"
    assert len({status.mark for status in Status}) == len(Status)


def test_a_claim_is_found_by_its_name():
    certificate = Certificate(CLAIMS)
    assert certificate["i"].low == 0.2
    assert "i" in certificate
    assert "z" not in certificate
    with pytest.raises(KeyError, match="no claim named 'z'; this certificate has: 'n'"):
        certificate["z"]


# ---------------------------------------------------------------------------- gaps


def gap(primal, dual, *, null=1.0, bound=1e-3, floor=1e-15, stored=0.0, curvature=0.0):
    return optimality_claim(
        "the objective", primal=primal, dual=dual, null=null, bound=bound, floor=floor,
        stored=stored, source="REG-14", curvature=curvature,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        (gap(0.5, 0.5 - 1e-4), "holds"),
        (gap(0.5, 0.5), "holds"),
        (gap(0.5, 0.4), "fails"),
        (gap(0.5, 0.5 + 1e-6), "fails"),  # below its own lower bound
        (gap(0.5, 0.5 + 1e-6, floor=1e-5), "holds"),
        (gap(NAN, 0.4), "fails"),
        (gap(0.5, NAN), "fails"),
        (gap(0.5, -INF), "fails"),
        # the tolerance is met, and the range is hardly longer than the gap
        (gap(0.9999, 0.9995, null=1.0), "uninformative"),
        (gap(1.0, 0.9999, null=1.0), "uninformative"),
        (gap(1.0, 1.0, null=1.0), "holds"),
        (gap(0.5, -0.5, bound=1e6), "uninformative"),
        # rounding of the arithmetic excuses a thousandth of the constant model's objective at most
        (gap(0.5, 0.5 - 1e-6, bound=1e-9, floor=1e-5), "holds"),
        (gap(0.5, 0.5 - 2e-3, bound=1e-9, floor=3e-3), "undecided"),
        # rounding of float32 excuses nothing beyond the tolerance
        (gap(0.5, 0.5 - 1e-6, bound=1e-9, stored=1e-5), "undecided"),
        (gap(0.5, 0.5 - 1e-6, bound=1e-5, stored=1e-5), "holds"),
    ],
)
def test_a_gap_is_judged_by_tolerance_range_and_rounding(claim, status):
    assert claim.status.value == status, claim


def test_the_share_of_the_range_is_said():
    assert "0.02 % of the way down from the constant model" in gap(0.5, 0.4999).statement
    assert "%" not in gap(0.5, 0.5, floor=0.0).statement
    near = gap(0.9, 0.9 - 0.1 * INFORMATIVE_SHARE * 0.99)
    assert near.status is Status.HOLDS
    assert "within 1.0e-01 of the optimal ones" in gap(0.5, 0.495, curvature=1.0).statement
    tiny = gap(1e-320, 0.0, curvature=1.0, floor=0.0, bound=1.0, null=1e-318)
    assert "within 1.4e-160 of the optimal" in tiny.statement
    assert DEFAULT_TOLERANCE == ROUNDING_LIMIT == 1e-3
    # sqrt(2 * 0.005 / 4): the curvature divides
    assert "within 5.0e-02 of the optimal ones" in gap(0.5, 0.495, curvature=4.0).statement


def test_rounding_is_measured_by_the_size_of_the_constant_model():
    """Its objective is negative for a likelihood, and excuses as much as a positive one."""
    claim = gap(-1.5, -1.5 - 1e-6, null=-1.0, bound=1e-9, floor=1e-5)
    assert claim.status is Status.HOLDS
    assert "to rounding" in claim.statement


@pytest.mark.parametrize(
    ("observed", "tolerance", "floor", "status"),
    [
        (1e-5, 1e-4, 0.0, "holds"),
        (0.05, 0.1, 0.0, "uninformative"),
        (0.05, 1e-4, 0.0, "fails"),
        (NAN, 1e-4, 0.0, "fails"),
        (2e-4, 1e-4, 3e-4, "undecided"),
    ],
)
def test_a_gradient_is_judged_by_tolerance_and_scale(observed, tolerance, floor, status):
    claim = gradient_claim(
        observed, tolerance, "LOG-4", scale="its scale at 0", holds=": a minimiser", floor=floor
    )
    assert claim.status.value == status
    assert (": a minimiser" in claim.statement) == (status == "holds")


# ---------------------------------------------------------------------------- attributes

X = np.random.default_rng(0).normal(size=(40, 3))
VALUES = X @ [1.0, -2.0, 0.5] + 0.1 * X[::-1, 0]
LABELS = (X[:, 0] + 0.3 * X[::-1, 1] > 0).astype(int)


@pytest.mark.parametrize(
    "estimator", [LinearRegression(), LinearRegression(positive=True), Ridge()]
)
@pytest.mark.parametrize("name", ["coef_", "intercept_"])
@pytest.mark.parametrize(("bad", "words"), [(NAN, "NaN"), (INF, "infinity"), (-INF, "infinity")])
def test_numbers_that_are_not_finite_are_refused(estimator, name, bad, words):
    model = clone(estimator).fit(X, VALUES)
    setattr(model, name, np.full_like(getattr(model, name), bad))
    report = surefit.verify(model, X, VALUES)
    assert not report.ok
    assert f"{name} holds" in report["attributes"].statement
    assert words in report["attributes"].statement


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, np.complex128])
def test_a_dtype_that_no_fit_stores_is_refused(dtype):
    model = LinearRegression().fit(X, VALUES)
    model.coef_ = (0.9 * model.coef_).astype(dtype)
    assert not surefit.verify(model, X, VALUES).ok
    assert storage_eps(dtype) == np.finfo(np.float64).eps
    assert storage_eps(np.float32) == np.finfo(np.float32).eps


def test_numbers_are_found_inside_lists_dictionaries_and_masked_arrays():
    class Model:
        _may_be_infinite: ClassVar = {"far_": "a centre nobody uses"}
        _may_be_nan: ClassVar = {"hole_": "not scored"}

    sound = {"a_": [1.0, {"b": np.ones(2)}], "m_": np.ma.array([1.0, NAN], mask=[0, 1])}
    exempt = {"far_": np.array([INF]), "hole_": np.array([NAN]), "_hidden_": NAN, "word": NAN}
    model = Model()
    vars(model).update(sound | exempt)
    assert list(invalid_attributes(model)) == []
    for value in ([1.0, {"b": np.array([NAN])}], (INF,), np.array([1.0, None, NAN], dtype=object)):
        model.a_ = value
        (found,) = invalid_attributes(model)
        assert found.startswith("a_ holds")
    model.a_, model.far_ = 1.0, np.array([NAN])
    assert list(invalid_attributes(model)) == ["far_ holds NaN"]
    model.far_, model.hole_ = 1.0, np.array([INF])
    assert list(invalid_attributes(model)) == ["hole_ holds an infinity"]


@pytest.mark.parametrize(
    "classes", [[1, 1], [1, 0], [0], [0, 2], [[0, 1]], ["0", "1"], [0.5, 1.0], [0, None]], ids=str
)
def test_classes_are_sorted_distinct_and_those_of_the_rows(classes):
    model = LogisticRegression().fit(X, LABELS)
    model.classes_ = np.array(classes)
    report = surefit.verify(model, X, LABELS)
    assert "classes_" in report["attributes"].statement
    assert not report.ok


def test_numbers_are_looked_for_a_few_levels_deep_and_no_further():
    class Model:
        _may_be_infinite: ClassVar = {}
        _may_be_nan: ClassVar = {}

    def nested(levels, value):
        for _ in range(levels):
            value = {"a": [value]} if levels % 2 else [value]
        return value

    model, loop = Model(), []
    model.a_ = nested(MAX_DEPTH - 1 - (MAX_DEPTH - 1) % 2, np.array([NAN]))
    assert list(invalid_attributes(model)) == ["a_ holds NaN"]
    loop.append(loop)  # an attribute that contains itself ends, too
    model.a_ = loop
    assert list(invalid_attributes(model)) == []
    model.a_ = around = {}
    around["a"] = around
    assert list(invalid_attributes(model)) == []


@pytest.mark.parametrize(
    ("value", "sound"),
    [
        (3, True),
        (np.int32(0), True),
        (None, True),
        (-1, False),
        (1.5, False),
        (True, False),
        ([2, 1.5], False),
        (np.array([2, 4]), True),
        (np.array([2.0]), False),
    ],
    ids=repr,
)
def test_counts_are_whole_numbers_from_0_on(value, sound):
    class Model:
        pass

    model = Model()
    model.n_iter_ = value
    assert (not list(invalid_counts(model))) == sound


def test_classes_of_several_targets_are_checked_one_by_one():
    class Model:
        classes_ = None

    model, y = Model(), np.array([[0, 5], [1, 6]])
    model.__dict__["classes_"] = [np.array([0, 1]), np.array([5, 6])]
    assert list(invalid_classes(model, y)) == []
    model.__dict__["classes_"] = [np.array([0, 1]), np.array([6, 5])]
    assert len(list(invalid_classes(model, y))) == 1
    assert list(invalid_classes(model, None)) == []


def test_whose_tolerance_it_is():
    """The model's own tol does not decide: 1e6 and all coefficients 5 was "within tolerance"."""
    model = Lasso(alpha=0.1, tol=1e6).fit(X, VALUES)
    model.coef_ = np.full(3, 5.0)
    report = surefit.verify(model, X, VALUES)
    assert not report.ok
    assert report.notes == (
        "judged at the verifier's tolerance 0.001; the model's own is looser, 1e+06",
    )
    honest = Lasso(alpha=0.1).fit(X, VALUES)
    assert surefit.verify(honest, X, VALUES).proved
    assert surefit.verify(honest, X, VALUES).notes == ("judged at the verifier's tolerance 0.001",)
    assert honest.certificate_.notes == ()
    near = copy.deepcopy(honest)
    near.coef_ = honest.coef_ * (1.0 + 1e-4)
    assert surefit.verify(near, X, VALUES).ok
    assert not surefit.verify(near, X, VALUES, tol=1e-12).ok


@pytest.mark.parametrize("tol", [-1.0, NAN, INF, -1e-300])
def test_a_tolerance_that_is_none_is_refused(tol):
    model = Ridge().fit(X, VALUES)
    with pytest.raises(ValueError, match="tol must be a finite number that is not negative"):
        surefit.verify(model, X, VALUES, tol=tol)


def test_parameters_are_checked_again():
    model = Ridge().fit(X, VALUES)
    model.alpha = -1.0
    report = surefit.verify(model, X, VALUES)
    assert "'alpha' parameter of Ridge" in report["attributes"].statement
    assert report["data"].status is Status.HOLDS


def test_what_cannot_be_computed_is_a_failed_claim():
    model = Ridge().fit(X, VALUES)
    model.coef_ = np.ones((2, 7))
    report = surefit.verify(model, X, VALUES)
    assert not report.ok
    assert "attributes" in report
