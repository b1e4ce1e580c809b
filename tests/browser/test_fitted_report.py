"""The report of a model that was really fitted, in a real browser: light, dark, phone, paper.

Skipped where playwright or Chromium is missing.
"""

import shutil

import numpy as np
import pytest

import surefit
from surefit.report import write
from surefit.table import fit_table
from tests.browser.test_report_page import CONTRAST

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found on PATH")
SIZES = [(1280, "light"), (1280, "dark"), (360, "light")]


def two_attributes():
    """Decisions audited by two columns and by both: some twenty claims of fairness."""
    rng = np.random.default_rng(0)
    n = 3000
    age, kind = rng.choice(["old", "young"], n), rng.choice(["a", "b", "c"], n)
    x, z = rng.normal(size=n) + (age == "old"), rng.normal(size=n)
    y = np.where(x + z + rng.normal(size=n) > 0.5, "yes", "no")
    columns = {"age": age, "kind": kind, "x": x, "z": z, "y": y}
    table = {name: values.tolist() for name, values in columns.items()}
    return fit_table(table, "y", sensitive=["age", "kind"], models=["logistic", "linear"])


def neighbours():
    """Numbers predicted by neighbours, for which half of the pictures do not exist."""
    return fit_table(surefit.data.load("diabetes"), "progression", models=["knn"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    made = {"two attributes": two_attributes(), "neighbours": neighbours()}
    return {
        name: write(model.document(), folder / f"{k}.html")
        for k, (name, model) in enumerate(made.items())
    }


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def visit(browser, files):
    opened = []

    def go(name, width, scheme):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        opened.append(page)
        page.messages = []
        page.on("console", lambda m: page.messages.append(m.text))
        page.on("pageerror", lambda e: page.messages.append(str(e)))
        page.goto(files[name].as_uri())
        return page

    yield go
    for page in opened:
        page.close()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("name", ["two attributes", "neighbours"])
def test_it_can_be_read_everywhere(visit, files, name, width, scheme):
    page = visit(name, width, scheme)
    assert page.messages == []
    assert files[name].stat().st_size < 1_000_000
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where  # WCAG 2.1, level AA
    cut = "[...document.querySelectorAll('.figure')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert page.evaluate(cut) == 0  # no number of a card runs over its edge


@pytest.mark.parametrize("width", [1280, 360])
def test_rows_of_the_table_of_models_are_low(visit, width):
    """A narrow column of words once made each row as high as the screen of a phone."""
    page = visit("two attributes", width, "light")
    highest = "Math.max(...[...document.querySelectorAll('.board tr')].map(r => r.offsetHeight))"
    assert page.evaluate(highest) < 150


def test_many_claims_are_folded_and_open_with_the_keyboard(visit):
    page = visit("two attributes", 1280, "light")
    section = page.locator("#fairness")
    claims = section.locator("article.claim")
    assert claims.count() > 12
    assert sum(claim.is_visible() for claim in claims.all()) == 4
    fold = section.locator("details.folded").first
    fold.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert all(claim.is_visible() for claim in claims.all())


def test_everything_is_printed(visit):
    page = visit("two attributes", 690, "light")
    page.emulate_media(media="print")
    claims = page.locator("#fairness article.claim")
    assert all(claim.is_visible() for claim in claims.all())
    third = page.locator("details.folded figure")
    assert third.count() > 0
    assert all(figure.is_visible() for figure in third.all())


def test_pictures_that_do_not_exist_say_why(visit):
    text = visit("neighbours", 1280, "light").locator("main").inner_text()
    assert "Coefficients: not measured, because KNeighborsRegressor has no coefficients." in text
    assert "there is no formula for the objective of KNeighborsRegressor here" in text
