"""The law of tampering: no change of a fitted model passes `verify` with a claim that is false.

Each change of each parameter and public fitted attribute (:mod:`tests.tamper.changes`) of each public
estimator (:mod:`tests.tamper.models`) is one of

* *caught*: `verify` fails, by recomputation alone, since every recorded certificate was removed;
* *without effect*: the model answers as before, and every claim that holds says what it said before;
* *true by oracle*: every claim that holds is true of the changed model, as an independent formula finds.

Anything else is *uncaught*. What is known to be uncaught stands with its reason in ``uncaught.txt``, and
nowhere else: a change that is caught by now must leave the list. The suite tries a seeded sample;
``make test-all`` tries every change and prints the counts.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from surefit import Certificate, Claim, Kind
from surefit.linear_model import Ridge
from tests.tamper.law import CAUGHT, SAME, TRUE, UNCAUGHT, Change, Law, Verdict, changes_of
from tests.tamper.models import CASES, Case, Fits, certified_estimators, fits, own_verify
from tests.tamper.oracle import oracle_of

SAMPLE = {"linear": 14, "kernels": 12, "nets": 3, "selection": 6, "fair": 12, "table": 8}
TABLES = Path(__file__).with_name("uncaught.txt")


@cache
def known_uncaught() -> dict[tuple[str, str, str], str]:
    """What is known to be uncaught: (estimator, place, change) -> the reason."""
    found = {}
    for line in TABLES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            case, place, change, reason = (part.strip() for part in line.split(" | "))
            found[case, place, change] = reason
    return found


def _key(case: Case, change: Change) -> tuple[str, str, str]:
    return case.name, change.place, change.name


@cache
def _law(name: str) -> Law:
    found = fits(name)
    return Law(found, oracle_of(found))


def _judge(name: str, changes: Iterable[Change]) -> tuple[Counter[str], list[Verdict]]:
    """The counts, and the uncaught changes that are not known."""
    law, counts, surprises = _law(name), Counter[str](), []
    for change in changes:
        verdict = law.judge(change)
        counts[verdict.outcome] += 1
        listed = _key(CASES[name], change) in known_uncaught()
        if listed != (verdict.outcome == UNCAUGHT):
            surprises.append(verdict)
    return counts, surprises


def _report(surprises: list[Verdict]) -> str:
    lines = [f"{v.change.place} | {v.change.name} | {v.outcome}: {v.words}" for v in surprises]
    return "\n".join(["changes that are not as uncaught.txt says:", *lines])


def test_every_estimator_is_tried() -> None:
    """The table of models names every public estimator that makes claims."""
    tried = {type(case.estimator) for case in CASES.values()}
    assert certified_estimators() - tried == set()


@pytest.mark.parametrize("name", CASES)
def test_a_sample_of_changes(name: str) -> None:
    """A seeded sample of the changes of one model, another for each estimator."""
    changes = list(changes_of(fits(name)))
    chosen = random.Random(name).sample(changes, SAMPLE[CASES[name].family])
    assert _law(name).certificate.ok, str(_law(name).certificate)
    _, surprises = _judge(name, chosen)
    assert not surprises, _report(surprises)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_change(name: str, record_property, capsys) -> None:
    """All changes of one model."""
    counts, surprises = _judge(name, changes_of(fits(name)))
    for outcome in (CAUGHT, SAME, TRUE, UNCAUGHT):
        record_property(outcome, counts[outcome])
    with capsys.disabled():
        print(f"\n{name}: {counts.total()} changes, {dict(counts)}")
    assert not surprises, _report(surprises)


@pytest.mark.parametrize(
    "name", ["Ridge()-values", "SVC()-two", "KNeighborsClassifier(n_neighbors=3)-two"]
)
def test_a_recorded_certificate_does_not_help(name: str) -> None:
    """What is caught without a certificate is caught under the honest one, kept from before, as well."""
    found = fits(name)
    law = _law(name)
    chosen = random.Random(name).sample(list(changes_of(found)), 40)
    for change in chosen:
        if law.judge(change).outcome != CAUGHT:
            continue
        changed = change.build()
        vars(changed)["certificate_"] = found.model.certificate_
        try:
            certificate = own_verify(changed, found.rows)
        except ValueError:
            continue
        assert not certificate.ok, (change.place, change.name)


# ---------------------------------------------------------------------------- the weak points of the issue


def _set(name: str, place: str, value: object) -> Change:
    def build() -> object:
        model = copy.copy(fits(name).model)
        vars(model).pop("certificate_", None)
        vars(model)[place] = value
        return model

    return Change(place, repr(value), build)


def _named(start: str) -> str:
    return next(name for name in CASES if name.startswith(start))


@pytest.mark.parametrize(
    ("start", "place", "change"),
    [
        ("LinearRegression()", "coef_", lambda v: v * np.nan),
        ("LinearRegression()", "intercept_", lambda v: np.float64(np.nan)),
        ("LinearRegression(positive=True)", "coef_", lambda v: v * np.nan),
        ("LinearRegression()", "coef_", lambda v: (0.9 * v).astype(np.float16)),
        ("LogisticRegression(C=inf", "coef_", lambda v: (0.99 * v).astype(np.float16)),
        ("LinearSVC()", "coef_", lambda v: (0.8 * v).astype(np.float16)),
        ("LinearSVR(", "coef_", lambda v: (0.9 * v).astype(np.float16)),
        ("TukeyRegressor()", "coef_", lambda v: (0.9 * v).astype(np.float16)),
        ("QuantileRegressor(", "coef_", lambda v: (0.9 * v).astype(np.float16)),
        ("LinearSVC()", "classes_", lambda v: np.array([v[0], v[0]])),
        ("Perceptron()", "classes_", lambda v: np.array([v[1], v[1]])),
        ("SGDClassifier(", "classes_", lambda v: v[::-1]),
        ("KNeighborsClassifier(", "n_samples_fit_", lambda v: 0),
        ("SVR(", "n_support_", lambda v: v + 1),
    ],
)
def test_what_the_attacks_found_is_caught(start: str, place: str, change) -> None:
    name = _named(start)
    value = change(getattr(fits(name).model, place))
    assert _law(name).judge(_set(name, place, value)).outcome == CAUGHT


def test_a_tolerance_of_a_million_does_not_help() -> None:
    for start in ("Ridge()", "Lasso(", "LogisticRegression()", "LinearSVC()", "HuberRegressor()"):
        name = _named(start)
        changes = [c for c in changes_of(fits(name)) if c.name == "all 5, with tol=1e6"]
        fives = [c for c in changes if c.place == "coef_"]
        assert fives, name
        assert all(_law(name).judge(change).outcome == CAUGHT for change in fives), name


# ---------------------------------------------------------------------------- the law can fail


class Credulous(Ridge):
    """Certifies whatever it is shown."""

    def _inconsistencies(self, X, y, sample_weight):
        return iter(())

    def _certify(self, X, y, sample_weight, *, full, tol):
        words = "the objective 9.12595 is within 1.0e-12 of the global minimum"
        return [Claim.check("duality gap", words, Kind.OPTIMAL, 0.0, 1.0)]


def test_a_credulous_estimator_is_convicted() -> None:
    found = fits(_named("Ridge()"))
    case = SimpleNamespace(name="credulous", seal=None)
    model = Credulous().fit(found.rows.X, found.rows.y)
    law = Law(Fits(case, found.rows, model, {}), oracle_of(found))
    verdicts = [law.judge(change) for change in changes_of(law.fits)]
    wrong = {v.change.place for v in verdicts if v.outcome == UNCAUGHT}
    assert {"coef_", "intercept_"} <= wrong
    assert not any(v.outcome == CAUGHT for v in verdicts if v.change.place == "coef_")


def test_an_oracle_refutes_a_false_gap() -> None:
    """The formula, not the words, decides: a nudged model with an honest-looking claim is false."""
    found = fits(_named("Ridge()"))
    nudged = copy.deepcopy(found.model)
    nudged.coef_ = nudged.coef_ * 1.01
    claim = Claim.check(
        "duality gap",
        "the objective 9.12595 is within 1.0e-12 of the global minimum",
        Kind.OPTIMAL,
        0.0,
        1.0,
    )
    assert oracle_of(found)(found, nudged, Certificate((claim,)), {"duality gap"})


@pytest.mark.parametrize(
    "name", [n for n in CASES if CASES[n].family in ("linear", "selection", "fair")]
)
def test_the_oracle_confirms_honest_fits(name: str) -> None:
    """Each formula gives the numbers that the claims about the unchanged model state."""
    law = _law(name)
    held = {c.name for c in law.certificate.claims if c.status.name == "HOLDS"}
    wrong = oracle_of(law.fits)(law.fits, law.model, law.certificate, held)
    assert not wrong or wrong.startswith("no oracle"), wrong
