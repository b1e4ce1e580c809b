"""``surefit fit`` as its users meet it: a short summary, any terminal, wide tables, a budget that is kept."""

import codecs
import io
import itertools
import math
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from tests.data import data_folder

import surefit
from surefit.cli import main
from surefit.cli._say import BarWatch
from surefit.cli._streams import forgiving
from surefit.data._roles import numbers, numbers_of
from surefit.report.brief import brief
from surefit.report.html import render
from surefit.report.terminal import claim_table, summary
from surefit.table import fit_table
from surefit.table.losses import TableLoss
from surefit.table.plan import plan
from surefit.table.reference import cost_of
from surefit.table.robustness import PAIRS, _most_rows
from surefit.table.search import Fold, search
from surefit.table.watch import Watch


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


# ---------------------------------------------------------------------------------- the budget


class Slow(Watch):
    """A clock that moves by a step each time it is read: the same on every machine."""

    def __init__(self, seconds, step):
        super().__init__(seconds)
        self.step, self.ticks = step, itertools.count()

    def left(self, share=1.0):
        return self.seconds * share - self.step * next(self.ticks)


def folds_of(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] > 0).astype(int)
    return lambda k: Fold(X, y, X[:50], y[:50])


def test_no_dear_model_is_probed_when_the_time_is_up(monkeypatch):
    probed = []
    monkeypatch.setattr(
        "surefit.table.search._probe", lambda trial, fold, loss: probed.append(trial) or 0.0
    )
    trials = search(
        plan("classification"), folds_of(200), 2, TableLoss("classification"), Slow(10, 2)
    )
    assert trials[0].tried
    assert any(trial.status == "not reached: no time left" for trial in trials)
    reached = [t for t in trials if t.status != "not reached: no time left"]
    assert len(probed) <= sum(t.candidate.kind.power > 1 for t in reached)


def test_a_dear_model_is_probed_once_a_family(monkeypatch):
    probed = []

    def probe(trial, fold, loss):
        probed.append(trial.candidate.family)
        return 1e9

    monkeypatch.setattr("surefit.table.search._probe", probe)
    trials = search(
        plan("classification"), folds_of(200), 2, TableLoss("classification"), Watch(60)
    )
    assert sorted(probed) == ["kernel", "knn"]
    left_out = [trial for trial in trials if trial.status.startswith("left out: about")]
    assert len(left_out) == 6


def test_without_time_the_first_of_the_plan_is_shipped(mortgages):
    table = mortgages[0]
    model = fit_table(table, "denied", models=["logistic"], watch=Slow(1.0, 0.5))
    assert model.candidates_[0]["status"] == "fitted without a search"
    assert [bool(r["holdout"]) for r in model.candidates_] == [True, False, False, False]
    assert "measuring HistGradientBoosting: no time left" in model.skipped_
    assert model.certificate_.ok
    assert surefit.verify(model, table).ok


def test_attacks_take_fewer_rows_of_a_larger_model():
    class Kernel:
        def __init__(self, n, classes=2):
            self.support_, self.classes_ = np.arange(n), np.arange(classes)

    class Neighbours:
        classes_ = (0, 1)

        def __init__(self, n):
            self.n_samples_fit_ = n

    assert _most_rows(object()) is None  # a linear model: all rows
    rows = [_most_rows(Kernel(n)) for n in (10, 5_000, 10_000, 10**6)]
    assert rows == [1000, int(PAIRS // 5_000), int(PAIRS // 10_000), 200]
    assert _most_rows(Kernel(10_000, classes=3)) == 200
    assert _most_rows(Neighbours(10_000)) == int(PAIRS // 5_000)


def test_the_cost_of_the_reference_grows_with_rows_columns_and_classes():
    class Model:
        def __init__(self, task, classes):
            self.task, self.classes_ = task, classes

    X = np.zeros((1000, 10))
    two, seven = (cost_of(X, Model("classification", range(k))) for k in (2, 7))
    assert seven == pytest.approx(7 * two)
    assert cost_of(X, Model("regression", None)) == two
    assert cost_of(np.zeros((10**6, 10)), Model("regression", None)) > 5.0


# ---------------------------------------------------------------------------------- strange tables


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_wide_table_of_text_is_the_same_as_of_numbers(tmp_path, ends, monkeypatch):
    """Numbers are read once, whatever they were written as; missing ones stay missing."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 300)).round(4)
    X[::7, 3] = np.nan
    y = np.where(X[:, 0] > 0, "up", "down")
    columns = {f"g{j}": [None if np.isnan(v) else float(v) for v in X[:, j]] for j in range(300)}
    lines = [",".join([*columns, "y"])]
    lines += [
        ",".join(["" if np.isnan(v) else repr(v) for v in r] + [c]) for r, c in zip(X.tolist(), y)
    ]
    path = tmp_path / "wide.csv"
    path.write_bytes(ends.join(lines).encode())
    read = fit_table(path, "y", models=["linear"], reference=False)
    given = fit_table(columns | {"y": y.tolist()}, "y", models=["linear"], reference=False)
    assert read.matrix_id_ == given.matrix_id_
    assert "g3 missing" in read.encoder_.get_feature_names_out()
    assert read.evidence_["coefficients"][0]["low"] is None  # more columns than rows: no intervals
    assert surefit.verify(read, path).ok


def test_a_numeric_column_with_a_word_in_it_is_still_refused(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text(
        "x,z,y\n" + "".join(f"{i % 9},{i % 4},{i % 2}\n" for i in range(59)) + "oops,1,0\n"
    )
    assert (
        main(["fit", str(path), "-t", "y", "--role", "x=numeric", "-o", str(tmp_path / "o")]) == 3
    )


REAL = [
    ("german", ["credit", "-s", "sex", "-m", "logistic,kernel"]),
    ("california-housing", ["median_house_value", "-m", "linear"]),
]


@pytest.mark.parametrize(("name", "options"), REAL)
def test_a_real_table_from_end_to_end(name, options, tmp_path, capsys):
    folder = data_folder()
    if folder is None:
        pytest.skip("no folder of public data")
    csv, out = str(tmp_path / f"{name}.csv"), str(tmp_path / "out")
    assert main(["data", "fetch", name, "--from", str(folder / "tabular"), "-o", csv]) == 0
    assert main(["fit", csv, "-t", *options, "-o", out, "--no-reference"]) == 0
    said = capsys.readouterr().out
    assert len(said.splitlines()) < 50
    model = os.path.join(out, "model.surefit")
    assert main(["verify", model, csv]) == 0
    assert "verified: no claim fails" in capsys.readouterr().out
    assert main(["predict", model, csv]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 900
    assert os.path.getsize(os.path.join(out, "report.html")) < 1_000_000


def test_the_closed_form_comes_first_where_coefficients_are_many():
    """Forty classes of a thousand columns: a fit by steps would take the whole of a short budget."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 1000)), np.arange(80) % 40
    names = ["logistic", "linear"]

    def tried(columns, seconds):
        fold = Fold(X[:, :columns], y, X[:40, :columns], y[:40])
        candidates = plan("classification", names)
        return search(candidates, lambda k: fold, 2, TableLoss("classification"), Watch(seconds))

    trials = tried(1000, 1.0)
    assert [t.candidate.family for t in trials][:2] == [
        "logistic",
        "linear",
    ]  # the log is the plan's
    assert trials[0].status.startswith(("left out: about", "not reached"))
    assert trials[1].losses
    assert tried(5, 60.0)[0].tried


def test_many_columns_are_read_as_each_one_is():
    columns = {
        "text": ["1", "x", None, "1e400", "-2.5"],
        "words": ["inf", "nan", "1_0", "0x1", " 3"],
        "whole": [1, None, 2, 3, 4],
        "real": [1.5, float("nan"), float("inf"), None, 0.0],
    }
    frame = pl.DataFrame(columns)
    for names in (list(columns), ["whole"], []):
        found = numbers_of(frame, names)
        assert list(found) == names
        for name in names:
            assert found[name].equals(numbers(frame[name]), check_names=True, null_equal=True)
    assert found == {}
    assert numbers_of(frame, ["text"])["text"].to_list() == [1.0, None, None, None, -2.5]
