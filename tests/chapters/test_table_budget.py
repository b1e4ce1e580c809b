"""``surefit fit`` keeps to its time, and takes wide and strange tables."""

import itertools
import os

import numpy as np
import polars as pl
import pytest
from tests.data import data_folder

import surefit
from surefit.cli import main
from surefit.data._roles import numbers, numbers_of
from surefit.table import fit_table
from surefit.table.losses import TableLoss
from surefit.table.plan import plan
from surefit.table.reference import cost_of
from surefit.table.robustness import PAIRS, _most_rows
from surefit.table.search import Fold, search
from surefit.table.watch import Watch


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


def test_without_time_the_first_of_the_plan_is_shipped():
    table = surefit.data.load("mortgages")
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
