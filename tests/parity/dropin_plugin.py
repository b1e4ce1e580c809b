"""The pytest plugin of the drop-in harness; it runs inside the subprocess that :mod:`dropin` starts.

``pytest -p tests.parity.dropin_plugin --dropin-report FILE --pyargs sklearn.linear_model.tests.test_ridge``
swaps surefit's classes in before the module is imported, leaves out the tests that do not count, and writes
one JSON record for each test.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .dropin_rules import Verdict, home_of, judge, swap, swap_in


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("dropin")
    group.addoption("--dropin-report", help="where to write the records, as JSON")
    group.addoption("--dropin-only", help="a JSON list of the names of the tests to run")
    group.addoption("--dropin-baseline", action="store_true", help="keep scikit-learn's classes")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--dropin-report"):
        config.pluginmanager.register(_Recorder(config))


class _Recorder:
    """Swaps before the collection, judges at its end, records outcomes."""

    def __init__(self, config: pytest.Config) -> None:
        self.path = Path(config.getoption("--dropin-report"))
        only = config.getoption("--dropin-only")
        self.only = None if only is None else set(json.loads(Path(only).read_text()))
        self.baseline = config.getoption("--dropin-baseline")
        self.records: dict[str, dict[str, Any]] = {}
        if not self.baseline:
            swap()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Function]
    ) -> None:
        run = []
        for module in {item.module for item in items} if not self.baseline else ():
            swap_in(module)
        for item in items:
            verdict = Verdict(True) if self.baseline else _judge_item(item)
            self.records[item.nodeid] = {
                "name": item.name,
                "counted": verdict.counted,
                "reason": verdict.reason,
                "uses": verdict.names,
                "outcome": "not run",
                "seconds": 0.0,
                "message": "",
            }
            if verdict.counted and (self.only is None or item.name in self.only):
                run.append(item)
        config.hook.pytest_deselected(items=[item for item in items if item not in run])
        items[:] = run

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        record = self.records[report.nodeid]
        record["seconds"] += report.duration
        if report.when != "call" and report.passed:
            return
        record["outcome"] = _outcome(report)
        record["message"] = _message(report)

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(list(self.records.values())))


def _judge_item(item: pytest.Function) -> Verdict:
    module = item.function.__module__
    fixtures = [
        definition.func
        for definitions in item._fixtureinfo.name2fixturedefs.values()
        for definition in definitions
        if definition.func.__module__ == module
    ]
    callspec = getattr(item, "callspec", None)
    params = {} if callspec is None else callspec.params
    return judge(item.function, fixtures, params, home_of(item.module.__name__))


def _outcome(report: pytest.TestReport) -> str:
    expected = hasattr(report, "wasxfail")
    if report.skipped:
        return "xfailed" if expected else "skipped"
    return report.outcome


def _message(report: pytest.TestReport) -> str:
    """The error, or why the test was skipped, without the traceback."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    lines = [line[1:].strip() for line in report.longreprtext.splitlines() if line[:1] == "E"]
    return "\n".join(lines)
