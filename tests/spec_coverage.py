"""Which items of the specification have a passing test.

``make coverage-spec`` runs every test that carries ``@pytest.mark.spec("...")``, prints a summary and writes
``docs/spec-coverage.md``. The item list is the project's own copy, ``docs/spec-items.tsv``.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
ITEMS = ROOT / "docs" / "spec-items.tsv"
REPORT = ROOT / "docs" / "spec-coverage.md"


class SpecItem(NamedTuple):
    name: str
    title: str
    chapter: str


def read_items() -> list[SpecItem]:
    """The items in the order of the specification."""
    lines = ITEMS.read_text(encoding="utf8").splitlines()[1:]
    return [SpecItem(*line.split("\t")) for line in lines if line]


def marked_items(item: pytest.Item) -> list[str]:
    """The specification items that a test says it checks."""
    return [name for marker in item.iter_markers("spec") for name in marker.args]


class Collector:
    """A pytest plugin that notes the outcome of every marked test, per item."""

    def __init__(self) -> None:
        self.passed: dict[str, set[str]] = defaultdict(set)
        self.failed: dict[str, set[str]] = defaultdict(set)
        self.marks: dict[str, list[str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.marks = {item.nodeid: marked_items(item) for item in items}

    def pytest_runtest_logreport(self, report: Any) -> None:
        for name in self.marks.get(report.nodeid, []):
            test = report.nodeid.split("[")[0]
            if report.failed:
                self.failed[name].add(test)
            elif report.when == "call" and report.passed:
                self.passed[name].add(test)


def render(items: list[SpecItem], passed: dict[str, set[str]], failed: dict[str, set[str]]) -> str:
    """The report as Markdown: one table a chapter."""
    covered = [item for item in items if passed.get(item.name) and not failed.get(item.name)]
    lines = [
        "# Specification coverage",
        "",
        "Written by `make coverage-spec`. An item is covered when at least one test marked with it passes",
        "and none fails.",
        "",
        f"**{len(covered)} of {len(items)} items covered.**",
    ]
    totals = Counter(item.chapter for item in items)
    done = Counter(item.chapter for item in covered)
    for chapter in dict.fromkeys(item.chapter for item in items):
        lines += ["", f"## {chapter} ({done[chapter]} of {totals[chapter]})", ""]
        lines += ["| item | | tests |", "|---|---|---|"]
        for item in items:
            if item.chapter == chapter:
                lines.append(f"| {item.name} | {item.title} | {_status(item, passed, failed)} |")
    return "\n".join(lines) + "\n"


def _status(item: SpecItem, passed: dict[str, set[str]], failed: dict[str, set[str]]) -> str:
    if failed.get(item.name):
        return "**failing**: " + ", ".join(sorted(_short(t) for t in failed[item.name]))
    tests = sorted({_short(test) for test in passed.get(item.name, set())})
    return ", ".join(tests) if tests else "none yet"


def _short(nodeid: str) -> str:
    path, _, name = nodeid.partition("::")
    return f"`{Path(path).stem}::{name}`"


def main() -> int:
    collector = Collector()
    status = pytest.main(
        ["-q", "-m", "spec and not slow", str(ROOT / "tests")], plugins=[collector]
    )
    items = read_items()
    REPORT.write_text(render(items, collector.passed, collector.failed), encoding="utf8")
    covered = {
        i.name for i in items if collector.passed.get(i.name) and not collector.failed.get(i.name)
    }
    for chapter in dict.fromkeys(item.chapter for item in items):
        names = [item.name for item in items if item.chapter == chapter]
        missing = [name for name in names if name not in covered]
        print(f"{chapter}: {len(names) - len(missing)} of {len(names)}", *missing)
    print(f"{len(covered)} of {len(items)} items have a passing test; written to {REPORT.name}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
