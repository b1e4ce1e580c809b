"""The report: what is on the page and on the terminal, and that its numbers are those of the document."""

import io
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from rich.console import Console
from tests.report_documents import classification
from tests.report_variants import large, multiclass, regression

from surefit.report import render, write
from surefit.report.claims import cards, group_status, read_claims, verdict
from surefit.report.curves import objective, robustness, roc, validation
from surefit.report.evidence import leaderboard
from surefit.report.spreads import calibration, forest, histogram
from surefit.report.svg import Axis
from surefit.report.terminal import summary
from surefit.report.words import count, interval, number, percent, plain, settings

DOCUMENTS = {
    "classification": classification,
    "regression": regression,
    "multiclass": multiclass,
    "empty": dict,
}
VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}
SECTIONS = [
    "Optimality",
    "Generalisation",
    "Robustness",
    "Fairness",
    "Model",
    "Data",
    "How to check this yourself",
    "What this page does not say",
]


class Outline(HTMLParser):
    """Tags as they nest, headings with their text, and ids."""

    def __init__(self, page):
        super().__init__()
        self.stack, self.tags, self.headings, self.ids, self.refs, self.words = (
            [],
            [],
            [],
            [],
            [],
            [],
        )
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.refs += (attrs.get("aria-labelledby") or "").split()
        self.refs += [attrs["href"][1:]] if (attrs.get("href") or "").startswith("#") else []
        if tag not in VOID:
            self.stack.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append([int(tag[1]), ""])

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] not in ("style", "script"):
            self.words.append(data)
        if any(re.fullmatch("h[1-6]", tag) for tag in self.stack):
            self.headings[-1][1] += data

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words)).replace("\u00a0", " ")


@pytest.fixture(scope="module", params=DOCUMENTS)
def page(request):
    document = DOCUMENTS[request.param]()
    html = render(document)
    return document, html, Outline(html)


def test_markup_nests_and_ids_are_unique(page):
    _, html, outline = page
    assert html.startswith("<!doctype html>")
    assert outline.stack == []
    assert len(outline.ids) == len(set(outline.ids))
    assert set(outline.refs) <= set(outline.ids)


def test_headings_are_ordered(page):
    _, _, outline = page
    levels = [level for level, _ in outline.headings]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert [text for level, text in outline.headings if level == 2] == SECTIONS


def test_nothing_that_a_strict_policy_would_block(page):
    _, html, outline = page
    names = {tag for tag, _ in outline.tags}
    assert not names & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "foreignObject",
    }
    for _, attributes in outline.tags:
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in html
    assert "@import" not in html


def test_tables_and_figures_are_accessible(page):
    _, html, outline = page
    assert html.count("<table") == html.count("<caption")
    assert all("scope" in attributes for tag, attributes in outline.tags if tag == "th")
    plots = [a for tag, a in outline.tags if tag == "svg" and a["class"] == "plot"]
    assert html.count("<desc ") == len(plots)
    assert all(a["role"] == "img" and len(a["aria-labelledby"].split()) == 2 for a in plots)
    assert all(
        a["aria-hidden"] == "true"
        for tag, a in outline.tags
        if tag == "svg" and a["class"] == "mini"
    )
    for landmark in ("<main", "<nav", "<footer", 'class="skip"', 'lang="en"'):
        assert landmark in html


def test_every_claim_with_its_number(page):
    document, _, outline = page
    for claims in document.get("claims", {}).values():
        for claim in claims:
            assert claim["statement"] in outline.text
            assert claim["means"] in outline.text
            assert claim["does_not"] in outline.text
            if claim["status"] != "undecided":
                assert number(claim["observed"], 3) in outline.text


def test_a_document_survives_json(page):
    document, html, _ = page
    assert render(json.loads(json.dumps(document))) == html


def test_plots_of_a_classification():
    html = render(classification())
    for name in (
        "objective",
        "calibration",
        "roc",
        "pr",
        "learning",
        "validation",
        "robustness",
        "coefficients",
    ):
        assert f'id="{name}-t"' in html
    for i in (0, 1):
        for rate in ("selection_rate", "tpr", "fpr", "ppv", "base"):
            assert f'id="fair{i}-{rate}-t"' in html
    text = Outline(html).text
    assert "Area under the curve: 0.9023." in text
    assert "uncertified reference" in text
    assert "Group 11 (363 rows; fewer than 400 rows)" in text
    assert "Leak suspect: income-band . Alone it predicts the target with score 0.9997" in text
    assert "surefit verify model.surefit data.csv" in text
    assert "18.1 % , and lies between 16.1 % and 20.1 %" in text


def test_plots_of_a_regression():
    html = render(regression())
    assert 'id="residuals-t"' in html
    assert 'id="histogram-t"' in html
    assert 'id="roc-t"' not in html
    text = Outline(html).text
    assert (
        "Accuracy under change: not measured, because the target is a number: there is no decision to flip."
        in text
    )
    assert "no sensitive column was named (--sensitive)." in text
    assert "No intervals are stated." in text


def test_what_is_missing_is_said():
    text = Outline(render(multiclass())).text
    assert "ROC curve: not measured, because there are more than two classes." in text
    assert "Precision and recall: not measured." in text
    empty = Outline(render({})).text
    assert empty.count("not measured") >= 7
    assert "Nothing was decided." in empty


def test_refitted_models_say_so():
    document = classification()
    assert "refitted on all rows" not in render(document)
    document["model"]["refitted"] = True
    assert "refitted on all rows" in render(document)


def test_lists_are_cut_and_say_so():
    document = large()
    html = render(document)
    assert len(html.encode()) < 1_000_000
    text = Outline(html).text
    for total, shown in (
        (len(document["columns"]), 60),
        (len(document["candidates"]), 40),
        (len(document["evidence"]["coefficients"]), 40),
        (len(document["evidence"]["fairness"][0]["groups"]), 30),
    ):
        assert f"and {total - shown:,} more" in text


def test_the_chosen_model_and_the_reference_are_never_cut():
    document = classification()
    *models, reference = document["candidates"]
    document["candidates"] = [{**models[1], "name": f"m{i}"} for i in range(50)] + [
        models[0],
        reference,
    ]
    text = Outline(render(document)).text
    assert "LogisticRegression chosen" in text
    assert "HistGradientBoostingClassifier uncertified reference" in text
    assert "and 12 more" in text


@pytest.mark.parametrize("letter", ['"', "\U0001f600", "&", "\u202e"])
def test_under_one_megabyte_whatever_the_text(letter):
    """A quotation mark is five bytes in HTML, an emoji four: limits on characters alone are not enough."""
    assert len(render(large(1000 * letter)).encode()) <= 1_000_000


# ---------------------------------------------------------------------------- claims


def test_an_edited_status_does_not_beat_its_numbers():
    document = classification()
    document["claims"]["optimality"][0]["observed"] = (
        1.0  # the bound is 1e-6; the status still says "holds"
    )
    claim = read_claims(document, "optimality")[0]
    assert claim["status"] == "fails"
    found = verdict(document)
    assert found["status"] == "fails"
    assert found["headline"] == "At least one claim does not hold."
    text = Outline(render(document)).text
    assert "The document says that this holds; its own numbers do not." in text


@pytest.mark.parametrize(
    ("observed", "bound"), [("nan", 1.0), (None, None), ("inf", "inf"), (2.0, 1.0), ([], {})]
)
def test_a_claim_without_numbers_does_not_hold(observed, bound):
    document = {
        "claims": {"optimality": [{"status": "holds", "observed": observed, "bound": bound}]}
    }
    assert read_claims(document, "optimality")[0]["status"] == "fails"


def test_a_failed_claim_is_never_cut():
    """Of a hundred claims the last one fails: it is shown, and it decides the verdict."""
    document = classification()
    good = document["claims"]["optimality"][0]
    bad = {**good, "name": "the last one", "status": "fails", "observed": 1.0}
    document["claims"]["optimality"] = [good] * 99 + [bad]
    text = Outline(render(document)).text
    assert verdict(document)["status"] == "fails"
    assert "the last one ✗ fails" in text
    assert "and 70 more; those that fail are all counted, and shown first." in text


def test_the_confidence_is_that_of_the_document():
    document = classification()
    assert "13.8 % to 15.9 % at 95 %" in Outline(render(document)).text
    document["delta"] = 0.1
    text = Outline(render(document)).text
    assert "13.8 % to 15.9 % at 90 %" in text
    assert "90 % interval" in text


def test_leak_suspects_by_their_score():
    document = {
        "columns": [{"name": "near", "leak": 0.98}, {"name": "exact", "leak": 0.995, "used": True}]
    }
    text = Outline(render(document)).text
    assert "Leak suspect: exact" in text
    assert "It was used." in text
    assert "Leak suspect: near" not in text


def test_models_are_listed_best_first():
    document = classification()
    document["candidates"] = document["candidates"][::-1]
    names = [row["loss"] for row in leaderboard(document)["rows"]]
    assert names == ["14.8 %", "15.2 %", "15.6 %", "16.0 %", "16.4 %", "16.8 %", "–", "12.7 %"]


def test_group_status():
    def group(*states):
        return group_status([{"status": s} for s in states])

    assert group("holds", "undecided") == "holds"
    assert group("holds", "fails", "undecided") == "fails"
    assert group("undecided") == group() == "undecided"


def test_cards_carry_the_numbers():
    optimality, generalisation, robust, fair = cards(classification())
    assert optimality["value"] == "3.2 × 10⁻⁹"
    assert (generalisation["value"], generalisation["what"]) == (
        "14.8 %",
        "error on rows kept aside; 13.8 % to 15.9 % at 95 %",
    )
    assert robust["value"] == "71.2 %"
    assert fair["value"] == "18.1 %"
    assert fair["tally"].startswith("1 holds, 1 undecided; ")
    assert [card["status"] for card in cards({})] == ["undecided"] * 4


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
        "✓ A certified model that errs",
        "→",
        "14.8 %",
        "13.8 % to",
        "Gaps by sex: independence 18.1 %",
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
