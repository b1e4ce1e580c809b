"""scikit-learn's own tests of the models that surefit has, with surefit's classes in place of scikit-learn's.

Each installed test module runs in a subprocess of its own, where :mod:`dropin_plugin` swaps the classes
before the module is imported; no installed file is touched. :mod:`dropin_rules` says which tests count. A
counted test that fails must be argued in ``exceptions.toml``, and an argument whose test passes is an error
too. Tests that fail, or are skipped, are run once more with scikit-learn's classes: what happens there as
well says nothing about surefit.

``python -m tests.parity.dropin [module ...]`` prints the outcome (``-k EXPRESSION`` of the tests that match
it only, as pytest does); ``--write-docs``, of all modules, also rewrites the generated parts of
``docs/parity.md``.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import sklearn

from .dropin_rules import SUITES

__all__ = ["EXCEPTIONS", "MODULES", "Record", "Report", "examine", "render"]

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "parity.md"
EXCEPTIONS = Path(__file__).with_name("exceptions.toml")
MODULES = {
    module: package for package, suite in SUITES.items() for module in suite
}  # and the package it is about
REASONS = {
    "absent": "uses a class or function that surefit does not have yet",
    "private": "uses a private helper of scikit-learn",
    "arrays": "is about an array library other than numpy (torch, cupy, ...)",
    "none of ours": "uses none of surefit's classes",
    "skipped": "is skipped with scikit-learn's own classes too",
    "xfailed": "is expected to fail in scikit-learn's suite, and fails there too",
    "failed": "fails with scikit-learn's own classes too, on this machine",
}


class Record(NamedTuple):
    """One collected test: whether it counts, if not why, and how it ended."""

    name: str
    counted: bool
    reason: str
    uses: list[str]
    outcome: str
    seconds: float
    message: str


class Argument(NamedTuple):
    """An exception: patterns of tests that fail (``*`` stands for anything), and why they should."""

    tests: list[str]
    why: str

    def covers(self, test: str) -> bool:
        return any(_matches(pattern, test) for pattern in self.tests)


class Report(NamedTuple):
    """One module of scikit-learn's tests."""

    module: str
    records: list[Record]

    @property
    def counted(self) -> list[Record]:
        return [record for record in self.records if record.counted]

    @property
    def failures(self) -> list[Record]:
        return [record for record in self.counted if record.outcome != "passed"]

    @property
    def rate(self) -> float:
        """The share of the counted tests that pass; 1 where none counts (their classes are absent)."""
        return 1.0 - len(self.failures) / max(1, len(self.counted))

    def unargued(self) -> list[str]:
        """Counted failures that no exception covers."""
        arguments = read_exceptions()
        return [
            f"{self.module}::{record.name}: {record.message}"
            for record in self.failures
            if not any(a.covers(f"{self.module}::{record.name}") for a in arguments)
        ]

    def stale(self) -> list[str]:
        """Patterns of exceptions that match no counted failure, or match a counted test that passes."""
        patterns = [pattern for argument in read_exceptions() for pattern in argument.tests]
        stale = []
        for pattern in patterns:
            if pattern.partition("::")[0] != self.module:
                continue
            hit = [r for r in self.counted if _matches(pattern, f"{self.module}::{r.name}")]
            if not hit or any(record.outcome == "passed" for record in hit):
                stale.append(pattern)
        return stale

    def row(self) -> str:
        """The module's line of the table in ``docs/parity.md``."""
        passed = len(self.counted) - len(self.failures)
        rate = f"{100 * self.rate:.1f} %" if self.counted else "–"
        return (
            f"| `{self.module}` | {len(self.records)} | {len(self.counted)} | {passed} | {rate} |"
        )


def read_exceptions() -> list[Argument]:
    """The table of argued exceptions."""
    entries = tomllib.loads(EXCEPTIONS.read_text(encoding="utf8"))["exception"]
    return [Argument(entry["tests"], " ".join(entry["why"].split())) for entry in entries]


def _matches(pattern: str, test: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), test, re.DOTALL) is not None


@functools.cache
def examine(module: str, matching: str = "") -> Report:
    """Run one of scikit-learn's test modules, or its tests that match, with surefit's classes."""
    records = _run(module, matching)
    doubtful = [r.name for r in records if r.outcome in ("skipped", "xfailed", "failed")]
    theirs = {r.name: r.outcome for r in _run(module, matching, only=doubtful)} if doubtful else {}
    return Report(module, [_settled(record, theirs.get(record.name)) for record in records])


def _settled(record: Record, theirs: str | None) -> Record:
    """Whether the record counts, given how the test ends with scikit-learn's own classes."""
    if theirs in ("skipped", "xfailed", "failed") and record.counted:
        return record._replace(counted=False, reason=theirs)
    return record


def _run(module: str, matching: str, only: list[str] | None = None) -> list[Record]:
    """One subprocess; with ``only``, scikit-learn's own classes on these tests."""
    with tempfile.TemporaryDirectory() as folder:
        report, names = Path(folder, "report.json"), Path(folder, "names.json")
        Path(folder, "pytest.ini").write_text("[pytest]\n")  # none of surefit's own settings
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--disable-warnings"]
        command += ["-p", "no:cacheprovider", "-p", "tests.parity.dropin_plugin"]
        command += ["-c", str(Path(folder, "pytest.ini")), "--rootdir", folder]
        command += ["--dropin-report", str(report)]
        if only is not None:
            names.write_text(json.dumps(only))
            command += ["--dropin-baseline", "--dropin-only", str(names)]
        command += ["-k", matching] if matching else []
        command += ["--pyargs", _where(module)]
        done = subprocess.run(
            command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1, 5) or not report.exists():  # 5: none of them counts
            raise RuntimeError(
                f"{module} did not run:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
            )
        return [Record(**entry) for entry in json.loads(report.read_text())]


def _where(module: str) -> str:
    """The dotted path of a test module: beside its package, or in scikit-learn's own folder of tests."""
    package = MODULES[module]
    is_package = hasattr(importlib.import_module(package), "__path__")
    return f"{package if is_package else 'sklearn'}.tests.{module}"


def _environment() -> dict[str, str]:
    """scikit-learn's defaults: one seed, warnings as warnings; the array API on, for numpy."""
    ignored = {"SKLEARN_TESTS_GLOBAL_RANDOM_SEED", "SKLEARN_WARNINGS_AS_ERRORS", "PYTEST_ADDOPTS"}
    kept = {name: value for name, value in os.environ.items() if name not in ignored}
    return kept | {"SCIPY_ARRAY_API": "1"}


# ---------------------------------------------------------------------------- docs/parity.md


def render(reports: list[Report]) -> dict[str, str]:
    """The generated parts of the document, by name."""
    return {"rates": _rates(reports), "uncounted": _uncounted(reports), "exceptions": arguments()}


def _rates(reports: list[Report]) -> str:
    lines = ["| module | collected | counted | passed | rate |", "|---|---:|---:|---:|---:|"]
    lines += [report.row() for report in reports]
    total = Report("all", [record for report in reports for record in report.records])
    lines.append(total.row().replace("`all`", "all"))
    return "\n".join([f"With scikit-learn {sklearn.__version__}:", "", *lines])


def _uncounted(reports: list[Report]) -> str:
    records = [record for report in reports for record in report.records if not record.counted]
    counts = Counter(record.reason for record in records)
    lines = ["| a test that ... | tests | most often |", "|---|---:|---|"]
    for reason, meaning in REASONS.items():
        names = Counter(name for r in records if r.reason == reason for name in r.uses)
        often = ", ".join(f"`{name}`" for name, _ in names.most_common(5))
        if counts[reason]:
            lines.append(f"| {meaning} | {counts[reason]} | {often} |")
    return "\n".join(lines)


def arguments() -> str:
    """The argued exceptions as a list."""
    lines = []
    for argument in read_exceptions():
        tests = ", ".join(f"`{pattern}`" for pattern in argument.tests)
        lines.append(f"- {tests}: {argument.why}")
    return "\n".join(lines)


def replace_parts(text: str, parts: dict[str, str]) -> str:
    """``text`` with what stands between ``<!-- name -->`` and ``<!-- end -->`` replaced."""
    for name, part in parts.items():
        pattern = rf"(<!-- {name} -->\n).*?(\n<!-- end -->)"
        text, found = re.subn(pattern, lambda m, p=part: m[1] + p + m[2], text, flags=re.DOTALL)
        if found != 1:
            raise ValueError(f"{DOCS.name} has {found} parts named {name}; it needs one")
    return text


def main(arguments: list[str] | None = None) -> int:
    """Print the outcome of the modules; 1 when a failure is not argued or an argument is stale."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.dropin", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="module", help=f"of {', '.join(MODULES)}")
    parser.add_argument("-k", default="", dest="matching", help="only tests that match (pytest -k)")
    parser.add_argument("--write-docs", action="store_true", help=f"rewrite docs/{DOCS.name}")
    options: Any = parser.parse_args(arguments)
    unknown = sorted(set(options.modules) - set(MODULES))
    if unknown:
        parser.error(f"no test module {unknown[0]!r}; there are {', '.join(MODULES)}")
    reports, wrong = [], 0
    for module in options.modules or MODULES:
        report = examine(module, options.matching)
        reports.append(report)
        lines = [f"  not argued: {_one_line(line)}" for line in report.unargued()]
        lines += [] if options.matching else [f"  stale: {line}" for line in report.stale()]
        wrong += len(lines)
        print(report.row(), *lines, sep="\n", flush=True)
    if options.write_docs and len(reports) == len(MODULES) and not options.matching:
        DOCS.write_text(replace_parts(DOCS.read_text(encoding="utf8"), render(reports)), "utf8")
    return int(wrong > 0)


def _one_line(text: str) -> str:
    return textwrap.shorten(text, 240, placeholder=" ...")


if __name__ == "__main__":
    sys.exit(main())
