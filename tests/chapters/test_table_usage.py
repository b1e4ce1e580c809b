"""``surefit fit`` as its users meet it: a short summary, a page that can be read, any terminal."""

import codecs
import io
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

import surefit
from surefit.cli._say import BarWatch
from surefit.cli._streams import forgiving
from surefit.report.brief import brief
from surefit.report.html import render
from surefit.report.terminal import claim_table, summary
from surefit.table import fit_table


@pytest.fixture(scope="module")
def mortgages():
    table = surefit.data.load("mortgages")
    return table, fit_table(
        table, "denied", sensitive=["african_american"], models=["logistic", "knn"], reference=False
    )


def printed(renderable, width):
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system=None, emoji=False
    )
    console.print(renderable)
    return console.file.getvalue()


# ---------------------------------------------------------------------------------- the summary


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_summary_fits_a_screen_and_loses_no_word(mortgages, width):
    _, model = mortgages
    text = printed(summary(model.document()), width)
    assert max(len(line) for line in text.splitlines()) <= width
    if width >= 80:
        assert len(text.splitlines()) <= 40
    record = model.candidates_[model.chosen_]["holdout"]
    joined = " ".join(text.split())
    assert f"(found {100 * record['loss']:.1f} %)" in joined
    for section in ("Optimality", "Generalisation", "Robustness", "Fairness"):
        assert section in joined
    for claim in model.claims("generalisation") + model.claims("robustness"):
        assert claim.name in joined
    gap = model.evidence_["fairness"][0]["gaps"]["independence"]
    low, high = math.floor(1000 * gap["low"]) / 10, math.ceil(1000 * gap["high"]) / 10
    assert f"{100 * gap['gap']:.1f} ({low:.1f} to {high:.1f})" in joined  # rounded outwards


def test_whole_sentences_on_request(mortgages):
    _, model = mortgages
    text = " ".join(printed(summary(model.document(), verbose=True), 700).split())
    for section in model.sections_:
        for claim in model.claims(section):
            assert claim.statement[:500] in text
    assert model.document()["verdict"]["sentences"][0] in text


def test_a_claim_that_fails_is_said_in_full():
    sentence = "the objective 12 is within 3.0e+02 of the global minimum, the coefficients within 1"
    claims = [{"name": "duality gap", "statement": sentence, "status": "fails"}]
    assert sentence in " ".join(printed(claim_table(claims), 60).split())
    claims[0]["status"] = "holds"
    text = " ".join(printed(claim_table(claims), 80).split())
    assert "objective within 3.0e+02 of the least possible" in text
    assert "coefficients" not in text


def test_every_short_form_quotes_the_number_of_its_claim(mortgages):
    """A short form that is out of date would fall back to the sentence: these must not."""
    _, model = mortgages
    numeric = fit_table(
        surefit.data.load("diabetes"), "progression", models=["linear"], reference=False
    )
    short = {
        "duality gap": "objective within ",
        "generalisation": "true error ",
        "calibration": " points",
        "certified accuracy": "right for sure: ",
        "attacked accuracy": "wrong if attacked: ",
        "true adversarial risk": " of rows to come at eps 0.1",
        "closed form": "the formula contradicts the model on ",
        "independence": " points (",
        "separation": " points (",
        "error": " points (",
        "proxies": "balanced accuracy ",
        "prediction interval": " of rows to come are within ",
        "sensitivity": "0.1 standard deviations move no prediction by more than ",
    }
    found = set()
    for claim in [*model.certificate_.claims, *numeric.certificate_.claims]:
        name = claim.name.partition(" (")[0]
        if (
            name in short
            and claim.status.value == "holds"
            and "mean absolute" not in claim.statement
        ):
            assert short[name] in brief(claim.name, claim.statement), claim.statement
            found.add(name)
    assert found >= short.keys() - {"separation"}  # too few rows for it here


def test_a_column_cannot_forge_a_short_form():
    """Its name is part of the sentence: where it looks like the number, the sentence is shown."""
    name = "age is between 0.0 and 0.0 (observed 0.0: none)"
    statement = (
        f"with probability 95 %, the largest gap of the selection rate between the 2 groups of {name} that "
        "could be measured is between 0.1 and 0.3 (observed 0.2: a and b); rows drawn independently"
    )
    said = brief(f"independence ({name})", statement)
    assert "0.1 and 0.3" in said
    assert not said.startswith("0 points")


def test_models_not_measured_are_counted_and_the_chosen_one_comes_first(mortgages):
    _, model = mortgages
    document = model.document()
    text = printed(summary(document), 80)
    lines = text[text.index("  model") :].splitlines()
    measured = [c for c in document["candidates"] if c["holdout"]]
    assert lines[1].startswith("→")
    assert len(measured) == 2
    assert f"and {len(document['candidates']) - 2} more" in text


def test_notes_on_columns_and_on_what_was_left_out():
    document = {
        "data": {"notes": ["task: x", "strong column: a (how)", "strong column: b (how)", "c: d"]},
        "left_out": ["learning curve: no time left", "remedies: no time left"],
    }
    text = " ".join(printed(summary(document), 80).split())
    assert "close to leaks: a, b (" in text
    assert "c: d" in text
    assert "task: x" not in text
    assert "left out: learning curve, remedies" in text


def test_a_column_that_nearly_tells_the_target_is_in_the_verdict():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    told = np.where(rng.random(600) < 0.97, y, 1 - y)
    columns = {"told": told.tolist(), "x": rng.normal(size=600).tolist(), "y": y.tolist()}
    model = fit_table(columns, "y", models=["linear"], reference=False)
    said = [s for s in model.document()["verdict"]["sentences"] if "--drop" in s]
    assert len(said) == 1
    assert "“told” nearly predicts" in said[0]
    assert "“x”" not in said[0]


# ---------------------------------------------------------------------------------- the page


def test_the_page_says_why_a_picture_is_missing(mortgages):
    _, model = mortgages
    document = model.document()
    del document["evidence"]["learning_curve"]
    page = render(document | {"left_out": ["learning curve: no time left"]})
    assert "Learning curve: not measured, because there was no time left for it." in page
    assert "There was no time for learning curve." in page
    page = render(document | {"left_out": ["learning curve: interrupted"]})
    assert "interrupted before learning curve" in page
    assert "There was no time for" not in page


def test_many_claims_are_folded_and_failures_are_not():
    def claim(k, status):
        numbers = {"observed": 1.0 + (status == "fails"), "bound": 1.5}
        return {
            "name": f"c{k}",
            "statement": f"s{k}.",
            "kind": "exact",
            "status": status,
            **numbers,
        }

    for count in range(1, 9):
        claims = [claim(k, "fails" if k == count - 1 else "holds") for k in range(count)]
        page = render({"claims": {"fairness": claims}})
        before, _, folded = page.partition('<details class="folded">')
        assert f"c{count - 1}</bdi>" in before  # the last of them fails
        assert bool(folded) == (count > 5)
        if folded:
            assert f"<summary>{count - 4} more claims</summary>" in folded
            assert page.count('<article class="claim') == count


# ---------------------------------------------------------------------------------- terminals


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1", "utf-8"])
def test_a_terminal_without_a_tick(mortgages, tmp_path, encoding):
    path = tmp_path / "model.surefit"
    surefit.save(mortgages[1], path)
    done = subprocess.run(
        [sys.executable, "-m", "surefit", "show", str(path)],
        env=os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "80", "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    said = done.stdout.decode(encoding)
    tick = "✓" if encoding == "utf-8" else "+"
    assert f"{tick} generalisation" in said
    assert "? generalisation" not in said  # the mark of an undecided claim
    assert done.stderr == b""


def test_letters_that_are_not_there_are_spelt():
    forgiving()
    handler = codecs.lookup_error("surefit.spelt")
    assert handler is not None
    assert "✓ 10⁻⁹ ≤ 1…é".encode("ascii", "surefit.spelt") == b"+ 10-9 <= 1...\\xe9"


def test_a_dumb_terminal_gets_no_bar(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    watch = BarWatch(10.0)
    assert watch.bar is None
    watch.close()


def test_what_the_bar_says():
    watch = BarWatch(100.0, quiet=True, started=-1e6)
    assert (watch.used(), watch.left_words()) == (1.0, "finishing")
    watch = BarWatch(1e9, quiet=True)
    assert (watch.used(0.25), watch.left_words()) == (0.25, "")
