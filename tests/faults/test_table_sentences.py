"""Sentences of ``surefit fit`` read as a lawyer would, and forgeries that are consistent in themselves.

The first part: every sentence names its conditions, and says no more than is known. The second: a forger who
recomputes what depends on a change, and writes text that no claim is about.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.forged import fitted, resealed

from surefit import Certificate, Claim
from surefit.data import read_table
from surefit.model_selection._claims import percent
from surefit.model_selection.bounds import clopper_pearson
from surefit.table import fit_table, verify_table
from surefit.table.evidence import coverage_claim
from surefit.table.recorded import recorded_claim
from surefit.table.robustness import robustness
from surefit.table.watch import Watch


def made(n: int = 400, seed: int = 0) -> pl.DataFrame:
    """A small table: numbers with gaps, whole numbers, dates, a category, a sensitive column, targets."""
    generator = np.random.default_rng(seed)
    sex, x = generator.choice(["f", "m"], n), generator.normal(size=n)
    age = [None if u < 0.1 else float(a) for a, u in zip(generator.integers(18, 80, n), x % 1)]
    z = x + 0.03 * np.array([a or 40.0 for a in age]) + (sex == "f") + generator.normal(size=n)
    return pl.DataFrame(
        {
            "x": x,
            "age": age,
            "day": [f"2020-01-{d:02d}" for d in generator.integers(1, 29, n)],
            "town": generator.choice(["a", "b", "c"], n),
            "sex": sex,
            "grade": np.digitize(z, [1.0, 2.5]).astype(str),
            "y": np.where(z > 1.7, "yes", "no"),
            "z": z,
        }
    )


def fit(target: str, drop: Any = (), **asked: Any) -> Any:
    others = [name for name in ("grade", "y", "z") if name != target]
    asked = {"models": ["linear" if target == "z" else "logistic"], "reference": False, **asked}
    return fit_table(made().drop(others, *drop), target, **asked)


@cache
def audited(target: str) -> Any:
    return fit(target, sensitive=["sex"])


def said(model: Any, section: str, name: str) -> str:
    return next(c.statement for c in model.claims(section) if c.name == name)


# -------------------------------------------------------------------- conditions


@pytest.mark.spec("FAIR-2")
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("y", "positive is 'yes'; rows drawn"),
        ("grade", "positive is '2', against the rest; rows drawn"),
        ("z", r"positive is a 'z' above [\d.]+, the median of the training rows; rows drawn"),
    ],
)
def test_gaps_say_what_is_positive(target: str, words: str) -> None:
    """A gap of selection rates has no meaning without what the groups are selected for."""
    for name in ("independence", "separation", "sufficiency", "error"):
        statement = said(audited(target), "fairness", f"{name} (sex)")
        assert re.search(words, statement) or "not known" in statement


@pytest.mark.spec("ADV-1")
def test_robustness_names_its_set_of_changes() -> None:
    model = fit("y", immutable=["x"])
    for name in ("certified accuracy", "attacked accuracy", "true adversarial risk"):
        statement = said(model, "robustness", name)
        assert "each of 2 numeric or date columns moves by at most eps standard" in statement
        assert "for a missing number the median stands, and moves too; x stays" in statement
    whole = fit("y", drop=["age", "day"])
    statement = said(whole, "robustness", "true adversarial risk")
    assert "; one numeric column moves by at most eps" in statement
    assert "missing" not in statement
    assert "stays" not in statement


def test_sensitivity_is_tried_on_the_model_itself() -> None:
    """The sum of coefficients is a formula; where predictions move further, the claim fails."""
    model = copy.deepcopy(audited("z"))
    claim = next(c for c in model.claims("robustness") if c.name == "sensitivity")
    assert claim.observed == pytest.approx(claim.bound, rel=1e-6)  # and it is attained
    X = np.random.default_rng(0).normal(size=(50, len(model.encoder_.features_)))
    assert robustness(model, X, None, X, Watch())[0][0].status.name == "HOLDS"
    plain = model.model_.predict
    model.model_.predict = lambda X: plain(X) ** 3
    assert robustness(model, 10.0 * X, None, X, Watch())[0][0].status.name == "FAILS"


def test_an_interval_that_says_nothing_is_uninformative_and_one_without_an_end_fails() -> None:
    errors = np.linspace(0.0, 1.0, 100)
    assert coverage_claim(errors, 0.05, "y", 10.0).status.name == "HOLDS"
    assert coverage_claim(errors, 0.05, "y", 1.5).status.name == "UNINFORMATIVE"
    claim = coverage_claim(errors, 0.05, "y", 10.0, constant=errors)
    assert claim.status.name == "UNINFORMATIVE"  # no shorter than the interval of a constant
    assert "that of a constant prediction" in claim.statement
    assert coverage_claim(errors, 0.05, "y", 10.0, constant=2 * errors).status.name == "HOLDS"
    for value in (np.nan, np.inf):
        assert coverage_claim(np.full(100, value), 0.05, "y", 1.5).status.name == "FAILS"


def test_sentences_of_a_section_share_delta() -> None:
    """The error gets half of it, beside calibration and comparison; without calibration three quarters."""
    for families, part in ((["logistic"], 0.5), (["svm"], 0.75)):
        model = fit("y", models=families)
        held = model.candidates_[model.chosen_]["holdout"]
        n, K = model.document()["split"]["holdout"], len(model.candidates_)
        limits = clopper_pearson(round(held["loss"] * n), n, part * model.delta, K)
        assert (held["low"], held["high"]) == pytest.approx(limits, abs=1e-12)


def test_no_probability_is_rounded_up_to_certainty() -> None:
    stated = {delta: percent(delta) for delta in (0.05, 0.07, 0.001, 1e-9, 1e-300, 0.123456789)}
    assert stated == {
        0.05: "95 %", 0.07: "93 %", 0.001: "99.9 %", 1e-9: "99.9999 %", 1e-300: "99.9999 %",
        0.123456789: "87.6543 %",
    }  # fmt: skip
    model = fit("y", sensitive=["sex"], delta=1e-8)
    for section in ("generalisation", "robustness", "fairness"):
        assert not any("100 %" in claim.statement for claim in model.claims(section))


# -------------------------------------------------------------------- what was looked at


def test_a_refitted_model_shows_no_interval() -> None:
    """It has seen every row: no limits in the pictures, no confidence in the verdict."""
    model = fit("y", sensitive=["sex"], refit=True)
    assert not any("confidence" in text for text in model.document()["verdict"]["sentences"])
    assert "fairness" not in model.evidence_
    curve = model.evidence_["robustness"]
    assert set(curve["low"]) == {0.0}
    assert set(curve["high"]) == {1.0}
    statement = said(model, "robustness", "certified accuracy")
    assert statement.endswith("the fit has used these rows")
    statistical = [c for c in model.certificate_.claims if c.kind.value == "statistical"]
    assert all(c.status.name == "UNDECIDED" for c in statistical)


def test_rows_that_occur_twice_are_counted() -> None:
    table = made(200).drop("grade", "z")
    model = fit_table(pl.concat([table, table]), "y", models=["knn"], reference=False, seed=1)
    statement = said(model, "generalisation", "generalisation")
    assert "200 of 400 rows repeat inputs of another row, where chance would give 0" in statement
    assert (
        "over 50 different rows, copies of which were kept together and counted once" in statement
    )
    assert model.units_["shared"] == 0
    assert "repeat" not in said(audited("y"), "generalisation", "generalisation")


def test_a_sensitive_column_with_too_many_values_is_said_and_the_fit_goes_on() -> None:
    generator = np.random.default_rng(0)
    n = 5000
    table = pl.DataFrame(
        {
            "x": generator.normal(size=n),
            "income": generator.normal(size=n),
            "sex": generator.choice(["f", "m"], n),
            "y": generator.choice(["no", "yes"], n),
        }
    )
    for sensitive in (["income"], ["income", "sex"]):
        model = fit_table(
            table, "y", sensitive=sensitive, models=["logistic"], reference=False, time=1e-6
        )
        assert "different values" in said(model, "fairness", "audit (income)")
        assert verify_table(model, table, quick=True).ok
    assert "is between" in said(model, "fairness", "independence (sex)")


def test_a_numeric_sensitive_column_names_few_of_its_groups() -> None:
    model = fit("y", sensitive=["age"])
    statement = said(model, "fairness", "independence (age)")
    assert re.search(r"too few rows in .* and \d+ more", statement)
    assert len(statement) < 400


# -------------------------------------------------------------------- consistent forgeries


def failed_rival(model: Any) -> None:
    """A rival that was as good is said to have failed, in every place."""
    place = next(k for k, r in enumerate(model.candidates_) if k != model.chosen_ and r["tried"])
    model.candidates_[place].update(
        tried=False, score=None, holdout=None, status="failed: the matrix is singular"
    )
    old = model.certificate_
    words = "the time was up, or a candidate could not be fitted"
    model.certificate_ = Certificate(old.claims, old.data_id, words, old.about)


def rival(**entries: Any) -> Callable[[Any], None]:
    def change(model: Any) -> None:
        failed_rival(model)
        entry = next(r for r in model.candidates_ if r["status"].startswith("failed"))
        entry.update(entries)

    return change


FORGED: dict[str, Callable[[Any], Any]] = {
    "a rival that did not fail": failed_rival,
    "praise as the state of a rival": rival(status="left out: it was worse in every respect"),
    "praise in an entry of the log": rival(award="model of the year"),
    "praise among what was not measured": lambda m: m.skipped_.append(
        "measuring by an auditor, who found no fault: no time left"
    ),
    "praise as a column left out": lambda m: m.data_["notes"].append(
        "left out on request: nothing, and the auditor agrees"
    ),
    "praise as an immutable column": lambda m: m.immutable.append("everything that matters"),
    "praise as the hour of the fit": lambda m: setattr(m, "created_", "approved by the regulator"),
    "one class more": lambda m: setattr(m, "classes_", np.append(m.classes_, "maybe")),
    "what the inner certificate is about": lambda m: setattr(
        m.model_,
        "certificate_",
        Certificate(m.model_.certificate_.claims, m.model_.certificate_.data_id, "", "Perfection"),
    ),
    "a claim that was withdrawn": resealed(
        lambda m: m.sections_["fairness"].append(
            Claim.undecided(
                "proxies (all)", "none", m.claims("fairness")[0].kind, "FAIR-1"
            ).to_dict()
        )
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_consistent_forgery_is_refused(what: str) -> None:
    table, model = fitted("mortgages")
    forged = copy.deepcopy(model)
    FORGED[what](forged)
    found = verify_table(forged, table, quick=what != "a rival that did not fail")
    assert not found.ok


def with_gap(holder: Any, gap: float) -> None:
    """The certificate of a model with another gap, number and sentence alike."""
    claims = []
    for claim in holder.certificate_.claims:
        record = claim.to_dict()
        if claim.name == "duality gap":
            words = re.sub(
                r"within \S+ of the", f"within {gap:.1e} of the", claim.statement, count=1
            )
            record |= {"observed": gap, "statement": words}
        claims.append(Claim.from_dict(record))
    old = holder.certificate_
    holder.certificate_ = Certificate(tuple(claims), old.data_id, old.stopped, old.about)


@pytest.mark.parametrize("gap", [1e-9, 4.9e-5, 6e-5])
def test_a_gap_may_not_be_stated_smaller_than_it_is(gap: float) -> None:
    """Beside 1 both are small; what is found is 5e-5, in units of an objective in the hundreds."""
    model = copy.deepcopy(fitted("mortgages")[1])
    with_gap(model.model_, 5e-5)
    own = list(model.model_.certificate_.claims)
    sections = {name: model.claims(name) for name in model.sections_}
    sections["optimality"] = own

    def state() -> str:
        model.sections_["optimality"] = [c.to_dict() for c in model.model_.certificate_.claims]
        resealed(lambda m: None)(model)
        return recorded_claim(model, sections, own).status.name

    assert state() == "HOLDS"
    with_gap(model.model_, 5e-5 * (1 + 1e-6))  # as another machine might find
    assert state() == "HOLDS"
    with_gap(model.model_, gap)
    assert state() == "FAILS"


@pytest.mark.spec("FAIR-1")
def test_a_model_that_reads_the_sensitive_column_is_refused() -> None:
    """Everything made anew around it: the schema, the sections, the certificate."""
    from surefit.table.fitting import _certify
    from surefit.table.measuring import measure
    from surefit.table.prepare import rows_of

    table = read_table(made().drop("grade", "z"))
    model = fit_table(
        table, "y", roles={"sex": "categorical"}, models=["logistic"], reference=False
    )
    assert verify_table(model, table, quick=True).ok
    model.sensitive, model.schema_["sensitive"] = ["sex"], ["sex"]
    rows = rows_of(table, model.schema, list(model.classes_), model.holdout, model.seed)
    X, held = (model.encoder_.transform(rows.table.frame[p]) for p in (rows.train, rows.holdout))
    pictures = dict(model.evidence_)
    measured = {model.chosen_: measure(model, model.model_, held, rows)}
    _certify(model, rows, X, held, measured, Watch())
    model.evidence_ = {**pictures, **model.evidence_}
    model.skipped_.append("remedies: no time left")
    failed = verify_table(model, table, quick=True).certificate.failed
    assert failed


def test_columns_left_out_are_named_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    made().drop("grade", "z").write_csv(path)
    model = fit_table(path, "y", drop=["town", "day"], models=["logistic"], reference=False)
    assert verify_table(model, path, quick=True).ok
    model.data_["notes"][-1] = "left out on request: town"
    assert verify_table(model, path, quick=True).ok  # true, if not all of it
    model.data_["notes"][-1] = "left out on request: town, day, sex"
    assert not verify_table(model, path, quick=True).ok


def test_groups_cannot_be_merged_by_reading_one_as_missing(tmp_path: Path) -> None:
    """The record of the reading says that "m" is missing; the notes, which people read, hide it."""
    path = tmp_path / "made.csv"
    made().drop("grade", "z").write_csv(path)
    honest = fit_table(path, "y", sensitive=["sex"], models=["logistic"], reference=False)
    assert verify_table(honest, path, quick=True).ok
    merged = read_table(path, missing=["", "m"])
    model = fit_table(merged, "y", sensitive=["sex"], models=["logistic"], reference=False)
    assert verify_table(model, merged, quick=True).ok  # said in its notes
    model.parsing_["notes"] = copy.deepcopy(honest.parsing_["notes"])
    assert not verify_table(model, path, quick=True).ok
    assert not verify_table(model, merged, quick=True).ok
