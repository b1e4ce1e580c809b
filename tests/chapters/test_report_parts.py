"""The pieces of the report: numbers in words, plots drawn to scale, the file and the terminal."""

import io
import math
import subprocess
import sys

import pytest
from rich.console import Console
from tests.report_documents import classification

from surefit.report import render, write
from surefit.report.curves import objective, robustness, roc, validation
from surefit.report.spreads import calibration, forest, histogram
from surefit.report.svg import Axis
from surefit.report.terminal import summary
from surefit.report.words import count, interval, number, percent, plain, settings

# ---------------------------------------------------------------------------- words and plots


def test_numbers_in_words():
    assert [
        number(x) for x in (0, -0.5, 1e-9, 123456, 1234567.8, 1e12, math.inf, None, True, "x")
    ] == [
        "0",
        "−0.5",
        "1 × 10⁻⁹",
        "123,456",
        "1,234,568",
        "1 × 10¹²",
        "∞",
        "–",
        "–",
        "–",
    ]
    assert number(99999.99) == "100,000"
    assert number(0.99996) == "1"
    assert number(0.00012345, 3) == "0.000123"
    assert percent(1.0) == "100.0 %"
    assert percent(-0.00001) == "−0.001 %"
    assert count(10**400) == "–"
    assert interval("nan", 1) == "–"
    assert settings({}) == settings(None) == ""
    assert settings({"a": [1, None], "b": "x\n"}) == r"a=[1, null], b=x\n"


def test_plain_is_idempotent_and_short():
    for text in (
        "abc",
        "a\x1bb\u202ec",
        "\u200b" * 50,
        "x" * 500,
        "e\u0301\u0301\u0301\u0301",
        "a\\u",
    ):
        once = plain(text)
        assert plain(once) == once
        assert len(once) <= 72
        assert once.isprintable()


@pytest.mark.parametrize(
    "axis",
    [
        Axis.over([0.0, 1.0], ""),
        Axis.over([5.0, 5.0], ""),
        Axis.over([], ""),
        Axis.over([-1e12, 1e-12], ""),
        Axis.over([1e15, 1e15 + 1], ""),
        Axis.over([1e-300, 1e300], "", log=True),
        Axis.over([3.0], "", log=True),
        Axis.over([0.5, 0.501], "", share=True),
        Axis.over([math.nan, math.inf, 2.0], ""),
    ],
)
def test_ticks_lie_inside_and_differ(axis):
    ticks = axis.ticks()
    room = 1e-5 * (axis.high - axis.low)
    assert 2 <= len(ticks) <= 12
    assert all(axis.low - room <= value <= axis.high + room for value, _ in ticks)
    assert all(0 <= axis.at(value) <= 1 for value, _ in ticks)
    if axis.high - axis.low > 1e-3 * abs(
        axis.high
    ):  # else the text has too few digits to tell them apart
        assert len({text for _, text in ticks}) == len(ticks)


def test_points_are_where_their_numbers_are():
    figure = roc({"fpr": [0, 0.5, 1], "tpr": [0, 1, 1], "auc": 0.75})
    (x0, y0), (x1, y1) = figure.place(0, 0), figure.place(1, 1)
    line = next(e for e in figure.root if e.get("class") == "line a" and e.tag == "polyline")
    points = [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
    assert points == [(x0, y0), (round((x0 + x1) / 2, 1), y1), (x1, y1)]
    assert x0 < x1
    assert y1 < y0


def test_intervals_are_drawn_to_scale():
    drawing = forest(
        "f", "t", "d", [("a", 1.0, 0.0, 2.0, ""), ("b", math.nan, math.nan, math.nan, "few")], "x"
    )
    (whisker,) = (e for e in drawing.root if e.get("class") == "whisker a")
    (dot,) = (e for e in drawing.root if e.get("class") == "dot a")
    ends = float(whisker.get("x1")), float(whisker.get("x2"))
    assert float(dot.get("cx")) == pytest.approx(
        sum(ends) / 2, abs=0.11
    )  # coordinates are written to a tenth
    assert any(e.text == "few" for e in drawing.root)


def test_descriptions_carry_the_numbers():
    evidence = classification()["evidence"]
    assert (
        "ends 3.2 × 10⁻⁹ above it, after 8 iterations"
        in objective(
            {
                **evidence["objective"],
                "values": [2.0, 1.0, 3.2e-9],
                "iterations": [0, 4, 8],
                "lower_bound": 0.0,
            }
        ).about
    )
    assert "exact accuracy falls from 85.2 % to 21.0 %" in robustness(evidence["robustness"]).about
    assert "Chosen: C = 0.1, where it is 0.149." in validation(evidence["validation_curve"]).about
    bins = [{"mean": 0.2, "rate": 0.5, "rate_low": 0.4, "rate_high": 0.6}]
    assert "In 0 of 1 bins" in calibration(bins).about
    assert (
        histogram({"histogram": {"edges": [0, 1, 2], "counts": [1, 2]}}).about
        == "3 residuals from 0 to 2; the fullest bar, 1 to 2, holds 2."
    )


# ---------------------------------------------------------------------------- file and terminal


def test_write(tmp_path):
    path = write(classification(), tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == render(classification())
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError, match="create it first"):
        write({}, tmp_path / "no" / "report.html")
    with pytest.raises(IsADirectoryError, match="name a file in it"):
        write({}, tmp_path)
    with pytest.raises(
        TypeError, match=r"document must be a mapping, got list; read certificate\.json"
    ):
        render([])


def printed(document, width=100):
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=True,
        color_system=None,
        legacy_windows=False,
    )
    console.print(summary(document, files=["report.html"]))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [50, 80, 140])
def test_terminal(width):
    text = printed(classification(), width)
    assert all(len(line.rstrip()) <= width for line in text.splitlines())
    joined = " ".join(text.split())
    for part in (
        "▲ A certified model that errs",
        "→",
        "14.8 %",
        "13.7 % to",
        "18.1 (",  # the gap of independence by sex, in points
    ):
        assert part in joined
    assert joined.endswith("Written: report.html")


def test_terminal_shows_eight_models_and_counts_the_rest():
    document = classification()
    model = document["candidates"][1]
    document["candidates"] = [document["candidates"][0]] + [
        {**model, "name": f"m{i}"} for i in range(19)
    ]
    text = printed(document)
    assert "m6" in text
    assert "m7" not in text
    assert "and 12 more" in text


def test_terminal_of_an_empty_document():
    assert printed({}).count("no claim was made") == 4


def test_importing_the_report_imports_nothing_heavy():
    code = (
        "import sys, surefit.report.terminal; print([m for m in sys.argv[1:] if m in sys.modules])"
    )
    heavy = ["jinja2", "rich", "matplotlib", "polars", "torch"]
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
