"""The report in a real browser: no error, no request, both colour schemes, phone, keyboard, paper.

Skipped where playwright or Chromium is missing.
"""

import re
import shutil

import pytest

from surefit.report import write
from tests.report_documents import classification
from tests.report_variants import hostile, large, multiclass, regression

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found on PATH")

DOCUMENTS = {
    "classification": classification,
    "regression": regression,
    "multiclass": multiclass,
    "hostile": hostile,
    "large": large,
    "empty": dict,
}
CONTRAST = """
() => {
  const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const lum = c => [.2126, .7152, .0722].reduce((sum, k, i) => sum + k * linear(c[i] / 255), 0);
  const rgb = s => { const n = s.match(/[\\d.]+/g).map(Number);
                     return s.startsWith('color(') ? n.slice(0, 3).map(v => 255 * v).concat(n.slice(3)) : n };
  const over = (top, under) => { const a = top.length > 3 ? top[3] : 1;
                                 return [0, 1, 2].map(i => a * top[i] + (1 - a) * under[i]) };
  const back = e => { const chain = [];
                      for (; e; e = e.parentElement) chain.unshift(rgb(getComputedStyle(e).backgroundColor));
                      return chain.reduce((under, top) => over(top, under), [255, 255, 255]) };
  let worst = [99, ''];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || e.classList.contains('skip')) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e), svg = e.ownerSVGElement;
    if (svg && e.tagName !== 'text') continue;
    const b = back(svg ? svg.parentElement : e), f = over(rgb(svg ? style.fill : style.color), b);
    const [hi, lo] = [lum(f), lum(b)].sort((x, y) => y - x), ratio = (hi + .05) / (lo + .05);
    const name = e.tagName + '.' + e.getAttribute('class') + ': ' + e.textContent.slice(0, 40);
    if (ratio < worst[0]) worst = [ratio, name];
  }
  return worst;
}
"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return {name: write(make(), folder / f"{name}.html") for name, make in DOCUMENTS.items()}


@pytest.fixture
def visit(browser, files):
    """Open a report; messages, dialogs and requests are collected on the page."""
    opened = []

    def go(name, *, width=1280, scheme="light", media="screen"):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        opened.append(page)
        page.messages, page.requests, page.refused = [], [], []
        page.on("console", lambda m: page.messages.append(m.text))
        page.on("pageerror", lambda e: page.messages.append(str(e)))
        page.on("dialog", lambda d: (page.messages.append(d.message), d.dismiss()))
        page.on("request", lambda r: page.requests.append(r.url))
        page.on("requestfailed", lambda r: page.refused.append(f"{r.failure} {r.url}"))
        page.emulate_media(media=media, color_scheme=scheme)
        page.goto(files[name].as_uri())
        return page

    yield go
    for page in opened:
        page.close()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_loads_quietly_with_every_section(visit, files, name):
    page = visit(name)
    assert page.messages == []
    assert page.requests == [files[name].as_uri()]
    assert files[name].stat().st_size <= 1_000_000
    assert page.evaluate("window.hit") is None
    assert page.locator("h1").count() == 1
    assert page.locator("h2").all_inner_texts() == [
        "Optimality",
        "Generalisation",
        "Robustness",
        "Fairness",
        "Model",
        "Data",
        "How to check this yourself",
        "What this page does not say",
    ]
    assert page.locator("script, img, iframe, object").count() == 0
    wide = page.evaluate("document.querySelector('main').getBoundingClientRect().width")
    assert wide > 600  # the style sheet applies


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_sideways_scroll_on_a_phone(visit, name):
    page = visit(name, width=360)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    smallest = page.evaluate(
        "Math.min(99, ...[...document.querySelectorAll('svg.plot text')]"
        ".map(t => t.getBoundingClientRect().height))"
    )
    assert smallest >= 11  # line box of about 9 px text


@pytest.mark.parametrize("name", ["classification", "multiclass"])
def test_light_and_dark_differ_and_both_can_be_read(visit, name):
    backgrounds = []
    for scheme in ("light", "dark"):
        page = visit(name, scheme=scheme)
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        ratio, where = page.evaluate(CONTRAST)
        assert 4.5 <= ratio < 99, where
        backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert backgrounds[0] != backgrounds[1]


def test_keyboard(visit):
    page = visit("classification")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert (
        page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    )  # it comes into view
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert "SUMMARY" in reached
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")


def test_hostile_links_and_fields_do_nothing(visit):
    page = visit("hostile")
    for link in page.locator("a").all():
        assert link.get_attribute("href").startswith("#")
    page.locator("nav a").last.click()
    page.wait_for_timeout(100)
    assert page.evaluate("window.hit") is None
    assert page.messages == []
    assert len(page.requests) == 1


def test_the_policy_stops_what_would_slip_through(visit, files, tmp_path):
    """A script and a style attribute written into the file after all are blocked by the policy."""
    text = files["classification"].read_text(encoding="utf-8")
    bad = '<script>window.hit=1</script><img src="http://x.test/a.png"><p id="p" style="color:red">x</p>'
    files["bad"] = tmp_path / "bad.html"
    files["bad"].write_text(text.replace("</main>", bad + "</main>"), encoding="utf-8")
    page = visit("bad")
    assert page.evaluate("window.hit") is None
    assert page.evaluate("getComputedStyle(document.getElementById('p')).color") != "rgb(255, 0, 0)"
    assert sum("Content Security Policy" in message for message in page.messages) >= 3
    assert page.refused == ["csp http://x.test/a.png"]


def test_plots_have_names(visit):
    page = visit("classification")
    tree = page.locator("#generalisation").aria_snapshot()
    assert re.search(r'img "ROC curve', tree)
    described = page.evaluate(
        "[...document.querySelectorAll('svg[role=img]')]"
        ".map(s => s.getAttribute('aria-labelledby').split(' ')"
        ".map(i => document.getElementById(i)?.textContent ?? '').join(' '))"
    )
    assert len(described) >= 18
    assert all(re.search(r"\d", text) for text in described)


def test_plots_stay_inside_their_figures(visit):
    page = visit("classification")
    outside = page.evaluate(
        "[...document.querySelectorAll('svg.plot text')].filter(t => { const r = t.getBoundingClientRect(),"
        " f = t.ownerSVGElement.getBoundingClientRect();"
        " return r.left < f.left - 4 || r.right > f.right + 4 })"
        ".map(t => t.textContent)"
    )
    assert outside == []


def test_paper(visit):
    page = visit("classification", scheme="dark", media="print", width=690)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("nav").is_hidden()
    rows = page.locator("details tbody tr")
    assert rows.count() > 20
    assert all(
        row.is_visible() for row in rows.all()[:20]
    )  # tables that are folded on screen are printed
    assert page.evaluate("document.documentElement.scrollWidth") <= 690
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF-")
    assert len(paper) > 20_000
