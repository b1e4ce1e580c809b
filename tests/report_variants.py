"""More documents for the tests of the report: regression, several classes, hostile text, too much."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np

from tests.report_documents import classification

__all__ = ["HOSTILE", "hostile", "large", "multiclass", "poison", "regression"]

HOSTILE = [
    "<script>window.hit=1</script>",
    "\"><img src=x onerror='window.hit=1'>",
    "</title></style></svg><script>alert(1)</script>",
    "<svg onload=window.hit=1>",
    "<a href=javascript:window.hit=1>x</a>",
    "{{ 7*7 }}{% raw %}",
    "[bold red]markup[/bold red] [link=http://x.test]y[/link]",
    "\x1b[31mred\x1b[2J\x1b]8;;http://x.test\x07\x9b5m",
    "abc\u202egnp.exe\u2066",
    "zero\u200bwidth\ufeff\u00ad\u2060",
    "nul\x00\x08\x7f\ud800",
    "]]><!-- --><![CDATA[",
    "Z" + "\u0301" * 400,
    "A" * 10_000,
    "&lt;b&gt; &amp;",
    "line\nbreak\ttab\r\u2028end",
    "دخل سنوي",
    'style="position:fixed" \' ` = ;',
]


def regression() -> dict[str, Any]:
    """A table of prices: no classes, no groups, coefficients without intervals."""
    rng = np.random.default_rng(1)
    document = classification()
    predicted = rng.uniform(20, 300, 400)
    residual = rng.normal(0, 12, 400) * (1 + predicted / 300)
    counts, edges = np.histogram(residual, 30)
    document.update(task="regression", classes=None, positive=None)
    document["data"].update(
        name="diabetes.parquet", target="progression", sensitive=[], rows=442, columns=10
    )
    document["model"].update(
        name="Ridge", family="ridge", params={"alpha": 1.0}, words="Least squares with shrinkage."
    )
    document["verdict"].update(
        status="undecided", headline="A model whose error on new rows is not bounded.", sentences=[]
    )
    document["claims"]["fairness"] = []
    document["claims"]["generalisation"][0].update(status="undecided", observed="nan", bound="nan")
    document["candidates"] = [
        {
            "name": "Ridge",
            "family": "ridge",
            "params": {"alpha": 10.0**i},
            "score": 3011.2 + i,
            "score_name": "mean squared error",
            "seconds": 0.01,
            "status": "tried",
            "holdout": {"loss": 2913.4 + 9 * i, "low": 2400.0, "high": 3500.0} if i else None,
            "certified": True,
            "chosen": i == 1,
        }
        for i in range(4)
    ]
    kept = {
        key: document["evidence"][key]
        for key in ("objective", "learning_curve", "validation_curve")
    }
    document["evidence"] = kept | {
        "residuals": {
            "predicted": predicted.tolist(),
            "residual": residual.tolist(),
            "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
        },
        "coefficients": [
            {"name": f"x{i}", "value": v, "low": None, "high": None}
            for i, v in enumerate(rng.normal(0, 200, 10).tolist())
        ],
        "robustness": {"why": "the target is a number: there is no decision to flip."},
    }
    return document


def multiclass() -> dict[str, Any]:
    """Three classes, no curve that needs two, one claim that fails."""
    document = classification()
    document.update(classes=["setosa", "versicolor", "virginica"], positive=None)
    document["data"].update(name="iris.csv", target="species", sensitive=[], rows=150, columns=4)
    document["verdict"].update(
        status="fails",
        headline="The fit did not reach the minimum.",
        sentences=["Give it more time."],
    )
    document["claims"]["optimality"][0].update(status="fails", observed=0.04)
    document["claims"]["fairness"] = []
    evidence = document["evidence"]
    for key in ("roc", "pr", "calibration", "fairness", "remedies"):
        del evidence[key]
    evidence["why"] = {"roc": "there are more than two classes"}
    evidence["confusion"] = {
        "labels": document["classes"],
        "counts": [[10, 0, 0], [0, 9, 1], [0, 2, 8]],
    }
    evidence["robustness"].update(exact=False, certified_accuracy=[0.9, 0.7, 0.5, 0.3, 0.1])
    return document


def poison(document: dict[str, Any], attacks: list[str]) -> dict[str, Any]:
    """The document with its texts, but for statuses, replaced by the attacks in turn."""
    turn = itertools.cycle(attacks)

    def replace(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                k: v if k in ("status", "kind", "task") else replace(v) for k, v in value.items()
            }
        if isinstance(value, list):
            return [replace(v) for v in value]
        return next(turn) if isinstance(value, str) else value

    return replace(document)


def hostile() -> dict[str, Any]:
    """Every text of the document, but for statuses, is an attack."""
    return poison(classification(), HOSTILE)


def large(long: str = "<&\u202e\"'" * 200) -> dict[str, Any]:
    """More of everything than a page shows, with names that grow when they are escaped."""
    document = classification()
    for text in document["claims"].values():
        text[:] = [
            {**c, "statement": long, "means": long, "does_not": long, "name": long}
            for c in text * 20
        ]
    document["verdict"]["sentences"] = [long] * 20
    document["candidates"] = [
        {**c, "name": long, "status": long} for c in document["candidates"]
    ] * 50
    document["columns"] = [
        {**c, "name": f"{long}{i}", "note": long} for i, c in enumerate(document["columns"] * 15)
    ]
    document["data"].update(
        parsing=[{"what": long, "value": long, "how": long}] * 50, notes=[long] * 50
    )
    document["classes"] = [long] * 50
    document["model"]["params"] = {f"{long}{i}": long for i in range(50)}
    evidence = document["evidence"]
    evidence["coefficients"] = [
        {"name": f"{long}{i}", "value": i, "low": i - 1, "high": i + 1} for i in range(1500)
    ]
    evidence["confusion"] = {"labels": [long] * 40, "counts": [[1] * 40] * 40}
    for curve in ("roc", "pr", "learning_curve", "robustness"):
        evidence[curve] = {
            k: np.repeat(v, 100).tolist() if isinstance(v, list) else v
            for k, v in evidence[curve].items()
        }
    evidence["calibration"] = evidence["calibration"] * 20
    evidence["residuals"] = regression()["evidence"]["residuals"]
    evidence["residuals"]["predicted"] *= 10
    evidence["residuals"]["residual"] *= 10
    audit = evidence["fairness"][0]
    audit["groups"] = [
        {**g, "group": f"{long}{i}", "why": long} for i, g in enumerate(audit["groups"] * 20)
    ]
    audit["attribute"] = long
    audit["incompatibility"]["words"] = [long] * 40
    audit["proxies"] = {"words": long, "columns": [{"name": long, "strength": 0.5}] * 20}
    evidence["fairness"] = [copy.deepcopy(audit) for _ in range(8)]
    evidence["remedies"] = [{**r, "remedy": long, "words": long} for r in evidence["remedies"] * 20]
    return document
