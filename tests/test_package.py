"""The package as a newcomer meets it: imports, public names, links, the coverage page."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import surefit
from tests.spec_coverage import REPORT, read_items

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def loaded_by(statement: str) -> set[str]:
    heavy = ("torch", "numba", "matplotlib", "rich", "pandas", "polars", "plotly", "starlette")
    code = f"{statement}\nimport sys\nprint(*[m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_stays_light() -> None:
    """Neither the compiler nor the plots nor the networks are loaded before they are used."""
    assert loaded_by("import surefit") == set()
    assert loaded_by("import surefit.linear_model") <= loaded_by("import sklearn.linear_model")


def test_every_public_name_resolves() -> None:
    for name in surefit.__all__:
        assert getattr(surefit, name) is not None
    for name in dir(surefit):
        assert getattr(surefit, name) is not None
    for module in ("linear_model", "losses", "penalties", "projections", "solvers", "multiclass"):
        loaded = importlib.import_module(f"surefit.{module}")
        assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        surefit.nonsense  # noqa: B018


def test_pages_link_to_files_that_exist() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text(encoding="utf8"))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_item_list_is_whole() -> None:
    items = read_items()
    assert len(items) == len({item.name for item in items}) == 256


def test_the_coverage_page_lists_what_the_tests_mark() -> None:
    """The page is generated; this notices when it is stale."""
    marked = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for names in re.findall(r"mark\.spec\(([^)]*)\)", path.read_text(encoding="utf8")):
            marked |= set(re.findall(r'"([A-Z]+-\d+)"', names))
    rows = re.findall(r"^\| ([A-Z]+-\d+) \|.*\| (.+) \|$", REPORT.read_text(encoding="utf8"), re.M)
    assert len(rows) == 256
    listed = {name for name, tests in rows if tests != "none yet"}
    assert listed == marked & {item.name for item in read_items()}
    assert "**failing**" not in REPORT.read_text(encoding="utf8")


def test_the_first_chapters_are_covered() -> None:
    """Data, losses, optimisation, regression, classification, fairness, networks, texts: no item missing."""
    families = (
        "DAT",
        "LOS",
        "CVX",
        "OPT",
        "REG",
        "PER",
        "LOG",
        "CAL",
        "FAIR",
        "NN",
        "CNN",
        "ADV",
        "TXT",
    )
    rows = dict(
        re.findall(r"^\| ([A-Z]+-\d+) \|.*\| (.+) \|$", REPORT.read_text(encoding="utf8"), re.M)
    )
    missing = [n for n, t in rows.items() if n.split("-")[0] in families and t == "none yet"]
    assert missing == []
