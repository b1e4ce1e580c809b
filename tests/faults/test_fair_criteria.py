"""Criteria of fairness: a measured gap beyond its tolerance is never shown as a success.

Selection rates of 0.1 and 0.9 used to give "✓ independence, observed 0.085 <= 1" and ``audit.ok`` was True:
the tick meant that the interval was informative. Here: what an interval and a criterion say, in every place
that shows them, and that a violated criterion is not confused with a failed claim.
"""

from __future__ import annotations

import copy
import io
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import surefit
from surefit import Certificate, Claim, Kind, Status
from surefit.fair import audit
from surefit.report import render
from surefit.report.claims import cards, criterion_of, read_claim, verdict
from surefit.report.terminal import summary
from surefit.table import fit_table

STATISTICAL = Kind.STATISTICAL


def claim(low: float, high: float, tolerance: float | None = 0.05, **more: Any) -> Claim:
    middle = 0.5 * (low + high)
    return Claim.interval(
        "gap", "a gap", STATISTICAL, middle, low, high, tolerance=tolerance, widest=0.5, **more
    )


# -------------------------------------------------------------------- one claim


@pytest.mark.parametrize(
    ("low", "high", "status", "word", "mark"),
    [
        (0.0, 0.05, Status.HOLDS, "met", "✓"),
        (0.0, 0.0501, Status.HOLDS, "not decided", "?"),
        (0.05, 0.4, Status.HOLDS, "not decided", "?"),
        (0.0501, 0.4, Status.HOLDS, "violated", "▲"),
        (0.0501, 0.99, Status.UNINFORMATIVE, "violated", "▲"),
        (0.0, 0.9, Status.UNINFORMATIVE, "uninformative", "○"),
    ],
)
def test_an_interval_has_a_status_and_a_verdict(
    low: float, high: float, status: Status, word: str, mark: str
) -> None:
    found = claim(low, high)
    assert (found.status, found.word, found.mark) == (status, word, mark)
    assert found.colour == {"✓": "green", "?": "yellow", "▲": "red", "○": "bright_black"}[mark]
    whole = Certificate((found,))
    assert whole.ok  # a violated criterion is a correct measurement
    assert [c.name for c in whole.violated] == (["gap"] if word == "violated" else [])
    assert str(whole).splitlines()[1].strip().startswith(mark)
    assert f"{mark} {word}</b>" in whole._repr_html_()
    again = Claim.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found
    assert again.verdict == found.to_dict()["verdict"] == criterion_of(low, high, 0.05)


def test_an_interval_without_a_tolerance_has_no_verdict() -> None:
    found = claim(0.7, 0.9, None)
    assert (found.verdict, found.word) == ("", "holds")
    assert "verdict" not in found.to_dict()


@pytest.mark.parametrize(
    "ends", [(np.nan, 0.1, 0.2), (0.3, 0.1, 0.2), (0.05, 0.1, 0.2), (0.15, np.nan, 0.2),
             (0.15, 0.1, np.nan), (0.15, 0.1, np.inf), (0.15, -np.inf, 0.2)],
)  # fmt: skip
def test_an_unsound_interval_fails_whatever_its_verdict(ends: tuple[float, float, float]) -> None:
    found = Claim.interval("gap", "a gap", STATISTICAL, *ends, tolerance=0.05)
    assert (found.status, found.word, found.mark) == (Status.FAILS, "fails", "✗")
    assert not Certificate((found,)).ok


# -------------------------------------------------------------------- an audit


def unfair(n: int = 1000, low: float = 0.1, high: float = 0.9) -> Any:
    """The program of the issue: selection rates of 0.1 and 0.9."""
    generator = np.random.default_rng(0)
    group = np.repeat(["a", "b"], n // 2)
    y = np.tile([0, 1], n // 2)
    decision = (generator.random(n) < np.where(group == "a", low, high)).astype(int)
    return y, decision, group


@pytest.mark.spec("FAIR-2")
def test_selection_rates_of_a_tenth_and_nine_tenths_are_no_success() -> None:
    y, decision, group = unfair()
    found = audit(y, decision, sensitive={"group": group})
    assert not found.ok
    assert found.criteria["independence (group)"] == "violated"
    assert [c.name for c in found.violated] == ["independence (group)", "separation (group)"]
    claim = found.certificate["independence (group)"]
    assert claim.low is not None
    assert 0.7 < claim.low < claim.estimate < claim.high < 0.9
    assert "exceeds the tolerance 0.05" in claim.statement
    out = io.StringIO()
    Console(file=out, width=300, force_terminal=True).print(found)
    lines = [line for line in out.getvalue().splitlines() if "independence (group)" in line]
    assert lines
    assert all("\x1b[31m▲ violated" in line for line in lines)
    assert "✓ independence" not in str(found)
    assert "✓ violated" not in found._repr_html_()
    assert "criteria: 2 violated, 2 not decided" in str(found)


@pytest.mark.spec("FAIR-2")
def test_equal_rates_on_many_rows_meet_the_tolerance() -> None:
    y, decision, group = unfair(60_000, 0.5, 0.5)
    found = audit(y, decision, sensitive=group)
    assert found.ok
    assert set(found.criteria.values()) == {"met"}
    assert "which is within the tolerance 0.05" in found.claims[0].statement


def test_the_tolerance_is_the_users() -> None:
    y, decision, group = unfair(20_000, 0.4, 0.5)
    assert audit(y, decision, sensitive=group).criteria["independence (sensitive)"] == "violated"
    wide = audit(y, decision, sensitive=group, tolerance=0.2)
    assert wide.criteria["independence (sensitive)"] == "met"
    named = audit(y, decision, sensitive=group, tolerance={"independence": 0.2})
    assert named.criteria["independence (sensitive)"] == "met"
    assert named.criteria["separation (sensitive)"] == "violated"  # 0.05, the default
    silent = audit(y, decision, sensitive=group, tolerance={"independence": 1.0})
    assert "independence (sensitive)" not in silent.criteria
    assert silent.certificate["independence (sensitive)"].tolerance is None


@pytest.mark.parametrize("tolerance", [-0.1, 1.5, "0.05", None, True, float("nan"), {"x": 0.1}])
def test_a_tolerance_that_is_none_is_refused(tolerance: Any) -> None:
    y, decision, group = unfair(100)
    with pytest.raises(ValueError, match="tolerance"):
        audit(y, decision, sensitive=group, tolerance=tolerance)


def test_a_violated_audit_fails_no_claim_and_a_failed_claim_is_not_ok() -> None:
    y, decision, group = unfair()
    found = audit(y, decision, sensitive=group)
    assert found.certificate.ok
    good = audit(*unfair(60_000, 0.5, 0.5)[:2], sensitive=unfair(60_000)[2])
    broken = Claim.check("x", "x", Kind.EXACT, 1.0, 0.0)
    assert good.ok
    object.__setattr__(good, "claims", (*good.claims, broken))
    assert not good.ok


@pytest.mark.spec("FAIR-5")
def test_a_conflict_is_not_claimed_where_base_rates_may_be_equal() -> None:
    y, decision, group = unfair()
    found = audit(y, decision, sensitive=group).certificate["incompatibility (sensitive)"]
    assert found.status is Status.UNDECIDED
    assert "no conflict is shown" in found.statement
    y = np.where(group == "a", y, 1)
    apart = audit(y, decision, sensitive=group).certificate["incompatibility (sensitive)"]
    assert apart.status is Status.HOLDS


# -------------------------------------------------------------------- a table: files, report, terminal


def people(n: int = 3000) -> pl.DataFrame:
    """The column ``job`` gives the group away, and decides."""
    generator = np.random.default_rng(1)
    sex = generator.choice(["f", "m"], n)
    job = np.where(generator.random(n) < 0.95, sex, "x")
    x = generator.normal(size=n)
    y = np.where(0.2 * x + (sex == "m") + 0.1 * generator.normal(size=n) > 0.5, "yes", "no")
    return pl.DataFrame({"x": x, "job": job, "sex": sex, "y": y})


@cache
def model(tolerance: float = 0.05) -> Any:
    return fit_table(
        people(), "y", sensitive=["sex"], models=["logistic"], reference=False,
        fairness_tolerance=tolerance,
    )  # fmt: skip


def test_a_violated_criterion_of_a_table_is_said_and_fails_nothing() -> None:
    found = model()
    assert found.certificate_.ok
    violated = [c.name for c in found.certificate_.violated]
    assert "independence (sex)" in violated
    document = found.document()
    record = next(c for c in document["claims"]["fairness"] if c["name"] == "independence (sex)")
    assert (record["status"], record["verdict"], record["tolerance"]) == ("holds", "violated", 0.05)
    assert any("violated: independence (sex)" in text for text in document["verdict"]["sentences"])
    again = surefit.verify(found, people())
    assert again.ok
    assert [c.name for c in again.violated] == violated
    assert "✓ STATISTICAL independence" not in str(found.certificate_)


def test_a_tolerance_of_the_user_is_kept() -> None:
    found = model(1.0)
    assert not found.certificate_.violated
    assert surefit.verify(found, people()).ok


@pytest.mark.parametrize("end", ["estimate", "low", "high", "tolerance"])
def test_a_file_whose_interval_was_edited_is_noticed(end: str) -> None:
    """The verdict follows from these numbers, so a forger of the verdict has to change one."""
    forged = copy.deepcopy(model())
    for record in forged.sections_["fairness"]:
        if record["name"] == "independence (sex)":
            record[end] = float(record[end]) + 0.01
    claims = [Claim.from_dict(c) for part in forged.sections_.values() for c in part]
    old = forged.certificate_
    forged.certificate_ = Certificate(tuple(claims), old.data_id, old.stopped, old.about)
    assert not surefit.verify(forged, people()).ok


def test_the_report_says_it_in_the_headline_of_the_section() -> None:
    document = model().document()
    fair = next(card for card in cards(document) if card["key"] == "fairness")
    assert (fair["status"], fair["said"], fair["mark"]) == ("violated", "criteria violated", "▲")
    page = render(document)
    section = page[page.index('<section id="fairness"') :]
    first = section[: section.index("<article")]
    violated = [claim.name for claim in model().certificate_.violated]
    assert violated
    assert re.search(r"<b>\d of \d criteria (is|are) violated\.</b>", first)
    for article in re.findall(r"<article.*?</article>", section, flags=re.S):
        name = re.search(r"<bdi>(.*?)</bdi>", article)
        assert name is not None
        if name[1] in violated:
            assert 'class="badge violated"' in article
            assert "holds" not in article
    assert verdict(document)["status"] == "violated"


def test_the_terminal_shows_no_green_beside_it() -> None:
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True, color_system="standard")
    console.print(summary(model().document()))
    text = out.getvalue()
    line = next(line for line in text.splitlines() if "independence (sex)" in line)
    assert "\x1b[31m  ▲" in line
    assert "\x1b[32m" not in text.splitlines()[0]
    assert "criteria are violated" in text


def test_the_command_line_passes_the_tolerance_and_exits_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from surefit.cli import main

    people().write_csv(tmp_path / "people.csv")
    folder = tmp_path / "out"
    asked = ["-t", "y", "-s", "sex", "-m", "logistic", "--no-reference", "--time", "20"]
    asked += ["--fairness-tolerance", "0.2", "-o", str(folder), "-q"]
    assert main(["fit", str(tmp_path / "people.csv"), *asked]) == 0
    document = json.loads((folder / "certificate.json").read_text())
    found = {c["name"]: c for c in document["claims"]["fairness"]}
    assert found["independence (sex)"]["tolerance"] == 0.2
    assert found["independence (sex)"]["verdict"] == "violated"
    capsys.readouterr()
    assert main(["verify", str(folder / "model.surefit"), str(tmp_path / "people.csv")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "of fairness violated" in said
    assert "▲ independence (sex)" in said
    assert (
        main(["fit", str(tmp_path / "people.csv"), *asked[:-5], "--fairness-tolerance", "2"]) == 2
    )


# -------------------------------------------------------------------- what a page makes of a document


def test_a_document_cannot_hide_a_violation_by_its_own_verdict() -> None:
    """The page works the verdict out from the interval and the tolerance."""
    record = claim(0.3, 0.4).to_dict() | {"verdict": "met"}
    assert read_claim(record)["word"] == "violated"
    outside = claim(0.3, 0.4).to_dict() | {"estimate": 0.01}
    assert read_claim(outside)["status"] == "fails"
    wide = claim(0.3, 0.99).to_dict()
    assert read_claim(wide)["word"] == "violated"


@pytest.mark.parametrize("status", ["uninformative", "fails", "undecided"])
def test_each_status_has_its_own_mark_on_the_page(status: str) -> None:
    record = {"name": "n", "statement": "s", "status": status, "observed": 0.0, "bound": 0.0}
    found = read_claim(record)
    assert found["word"] == status
    assert found["mark"] == Status(status).mark
