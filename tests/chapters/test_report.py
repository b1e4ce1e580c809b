"""The report: what is on the page, and that its numbers are those of the document."""

import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from tests.report_documents import classification
from tests.report_variants import large, multiclass, regression

from surefit.report import render
from surefit.report.claims import cards, group_status, read_claims, verdict
from surefit.report.evidence import leaderboard
from surefit.report.words import number

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
            if "estimate" in claim:
                ends = (number(claim[key], 3) for key in ("estimate", "low", "high"))
                assert "{} in [{}, {}]".format(*ends) in outline.text
            elif claim["status"] != "undecided":
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
    assert "18.1 percentage points , and lies between 16.1 and 20.1 at" in text


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
    assert "13.7 % to 16.0 % at 95 %" in Outline(render(document)).text
    document["delta"] = 0.1
    text = Outline(render(document)).text
    assert "13.7 % to 16.0 % at 90 %" in text
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
        "error on rows kept aside; 13.7 % to 16.0 % at 95 %",
    )
    assert robust["value"] == "71.2 %"
    assert fair["value"] == "18.1 points"
    assert fair["tally"].startswith("1 holds, 1 violated, 2 undecided; ")
    assert [card["status"] for card in cards({})] == ["undecided"] * 4
