"""Reports of hostile and malformed documents: nothing executes, nothing spoofs, nothing breaks."""

import copy
import io
import math
import random
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from rich.console import Console
from tests.report_documents import classification
from tests.report_variants import HOSTILE, hostile, multiclass, poison, regression

from surefit.report import render
from surefit.report.terminal import summary
from surefit.report.words import plain

JUNK = [
    None,
    True,
    "x",
    "nan",
    -1,
    0,
    1e308,
    math.inf,
    10**400,
    [],
    {},
    [[]],
    [None, "a", 3],
    [[1, 2], [3]],
    {"why": "no time was left"},
    {"a": {"b": []}},
    {1: 2, None: 3},
    b"bytes",
]


class Tags(HTMLParser):
    """Every tag with its attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, tuple(name for name, _ in attrs)))

    def shapes(self):
        return set(self.found)


def hidden(text):
    """Characters that a reader cannot see or that reorder what is seen."""
    return {
        c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c != "\n"
    }


def test_hidden_finds_what_it_should():
    assert hidden("a\x1b\u202e\u200b\u2028\n") == {"\x1b", "\u202e", "\u200b", "\u2028"}


@pytest.mark.parametrize("shift", range(len(HOSTILE)))
def test_every_text_in_every_place_stays_text(shift):
    """Rotating the list puts each attack into each field of the document."""
    page = render(poison(classification(), HOSTILE[shift:] + HOSTILE[:shift]))
    assert Tags(page).shapes() <= Tags(render(classification())).shapes()
    assert not hidden(page)
    page.encode("utf-8")
    body = page.split("</style>", 1)[1]
    for attack in (
        "<script",
        "<img",
        "<svg onload",
        "<![CDATA",
        "<!--",
        "</title></style>",
    ):
        assert attack not in body


def test_attributes_cannot_be_closed():
    document = classification()
    for key in ("eps", "certified_accuracy"):
        document["evidence"]["robustness"][key] = ['0" onload="x', 1]
    document["evidence"]["validation_curve"]["parameter"] = '"><script>x</script>'
    assert Tags(render(document)).shapes() <= Tags(render(classification())).shapes()


def test_status_words_cannot_be_forged():
    document = classification()
    document["verdict"]["status"] = 'holds"><script>'
    document["claims"]["optimality"][0]["status"] = "✓ holds"
    page = render(document)
    assert "<script" not in page
    assert 'class="verdict undecided"' in page
    before = render(classification()).count('class="claim undecided"')
    assert page.count('class="claim undecided"') == before + 1


def test_long_and_stacked_text_is_cut():
    page = render(hostile())
    assert "A" * 1000 not in page
    assert not re.search("\u0301{4}", page)
    assert len(page) < 200_000


def test_text_in_other_scripts_is_kept():
    document = classification()
    document["data"]["name"] = "دخل سنوي.csv"
    assert "<bdi>دخل سنوي.csv</bdi>" in render(document)


@pytest.mark.parametrize("width", [40, 100])
def test_the_terminal_prints_no_control_character(width):
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor"
    )
    console.print(summary(hostile(), files=["a\x1b[2J/report.html", "[red]x[/red]"]))
    text = console.file.getvalue()
    without_colours = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert not hidden(without_colours)
    assert "[red]x[/red]" in without_colours.replace("\n", "")
    assert "31mred" not in re.sub(r"\\x1b\[31mred", "", without_colours)
    assert "\x1b]8" not in text


def test_the_terminal_reads_no_markup():
    document = poison(classification(), ["[red]x[/red]"])
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="truecolor")
    console.print(summary(document))
    text = re.sub("\x1b\\[[0-9;]*m", "", console.file.getvalue())
    claims = sum(len(group) for group in document["claims"].values())
    sentences = 1 + len(document["verdict"]["sentences"])
    audits = len(document["evidence"]["fairness"])
    assert text.count("[red]x[/red]") >= claims + sentences + audits + len(document["candidates"])
    assert not re.search(
        r"(?<!\[red\])x(?!\[/red\])", text.replace("uncertified", "").replace("max", "")
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_plain(text):
    shown = plain(text)
    assert len(shown) <= 72
    assert shown.isprintable()
    assert not hidden(shown)


def paths(value, at=()):
    yield at
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*at, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value[:3]):
            yield from paths(inner, (*at, i))


def replaced(document, path, value):
    document = copy.deepcopy(document)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


@pytest.mark.parametrize("make", [classification, regression, multiclass])
def test_any_part_may_be_junk(make):
    rng = random.Random(0)
    document = make()
    places = [path for path in paths(document) if path]
    headings = render(document).count("<h2")
    for path in rng.sample(places, 40):
        for value in rng.sample(JUNK, 3):
            damaged = replaced(document, path, value)
            page = render(damaged)
            assert page.count("<h2") == headings, (path, value)
            Console(file=io.StringIO()).print(summary(damaged))


@pytest.mark.parametrize("make", [classification, regression])
def test_any_top_part_may_be_missing(make):
    document = make()
    for path in [
        path for path in paths(document) if 1 <= len(path) <= 2 and isinstance(path[-1], str)
    ]:
        damaged = copy.deepcopy(document)
        inner = damaged[path[0]] if len(path) == 2 else damaged
        del inner[path[-1]]
        assert render(damaged).rstrip().endswith("</html>")


def test_numbers_of_any_size():
    document = classification()
    for extreme in (1e308, -1e308, 5e-324, 1e-320, "inf", "-inf", 10**300):
        for part in document["evidence"].values():
            if isinstance(part, dict):
                for value in part.values():
                    if isinstance(value, list) and value and isinstance(value[-1], float):
                        value[-1] = extreme
        document["evidence"]["coefficients"][0]["value"] = extreme
        document["candidates"][0]["holdout"]["high"] = extreme
        page = render(document)
        coordinates = re.findall(r' (?:x|y|x1|x2|y1|y2|cx|cy|points)="([^"]*)"', page)
        assert coordinates
        assert not any("nan" in text or "inf" in text for text in coordinates)
