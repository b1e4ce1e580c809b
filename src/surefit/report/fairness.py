"""The fairness section: rates by group, gaps, what cannot hold together, proxies, remedies.

Three criteria (FAIR-2 to FAIR-4): *independence* compares how often each group is selected, *separation*
compares true and false positive rates, *sufficiency* compares how often a positive decision is right. A group
that is too small for a statement is listed with the reason; it is never left out in silence.
"""

from __future__ import annotations

import math
from typing import Any

from . import spreads
from .claims import MARKS, criterion_of
from .evidence import more, reason
from .reading import mapping, part, real, rows, texts, words, yes
from .words import count, interval, number, outward, percent, plain, points, sentence

__all__ = ["audits", "remedies", "violations"]

GROUPS, ATTRIBUTES, REMEDIES, PROXIES = 30, 4, 24, 12  # entries of each list that are shown
CRITERIA = {
    "independence": ("Independence", "Is each group selected equally often?", ("selection_rate",)),
    "separation": ("Separation", "Are errors equally common in each group?", ("tpr", "fpr")),
    "sufficiency": ("Sufficiency", "Does a decision mean the same in each group?", ("ppv",)),
}
RATES = {
    "selection_rate": "selected",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "ppv": "positive predictive value",
    "base_rate": "share of positives",
    "error": "error",
}


_STATUS = {"met": "holds", "violated": "violated", "not decided": "undecided"}


def violations(claims: list[dict[str, Any]], most: int = 8) -> dict[str, str]:
    """The headline of the section where criteria are violated, from the claims; empty where none is."""
    judged = [claim for claim in claims if claim["tolerance"]]
    found = [claim for claim in judged if claim["status"] == "violated"]
    if not found:
        return {}
    verb = "is" if len(found) == 1 else "are"
    names = "; ".join(f"{claim['name']}: tolerance {claim['tolerance']}" for claim in found[:most])
    cut = more(len(found), min(len(found), most))
    return {
        "headline": f"{len(found)} of {len(judged)} criteria {verb} violated.",
        "names": f"{names}{f'; {cut}' if cut else ''}.",
    }


def _plot(name: str, rate: str, groups: list[dict[str, Any]]) -> Any:
    lines: list[spreads.Row] = []
    for group in groups:
        r = part(group, "rates", rate)
        silent = yes(group.get("abstained"))
        value = math.nan if silent else real(r.get("value"))
        why = "too few rows: no statement" if silent else "not measured"
        lines.append(
            (words(group.get("group"), "?"), value, real(r.get("low")), real(r.get("high")), why)
        )
    known = [line for line in lines if math.isfinite(line[1])]
    if not known:
        return None
    least, largest = min(known, key=lambda r: r[1]), max(known, key=lambda r: r[1])
    about = (
        f"From {percent(least[1])} ({plain(least[0], 40)}) "
        f"to {percent(largest[1])} ({plain(largest[0], 40)}), in {len(known)} groups"
        + (f"; no statement about {len(lines) - len(known)}." if len(known) < len(lines) else ".")
    )
    title = f"{RATES[rate].capitalize()} by group"
    return spreads.forest(name, title, about, lines, RATES[rate], share=True)


def _criterion(
    key: str, audit: dict[str, Any], groups: list[dict[str, Any]], index: int
) -> dict[str, Any]:
    title, question, rates = CRITERIA[key]
    gap = part(audit, "gaps", key)
    low, high = outward(gap.get("low"), gap.get("high"))
    judged = real(gap.get("tolerance")) < 1.0 and math.isfinite(real(gap.get("gap")))
    verdict = criterion_of(gap.get("low"), gap.get("high"), gap.get("tolerance")) if judged else ""
    status = _STATUS.get(verdict, "undecided")
    between = [plain(text, 40) for text in texts(gap.get("between"))[:2]]
    return {
        "title": title,
        "question": question,
        "gap": points(gap.get("gap")) if math.isfinite(real(gap.get("gap"))) else "",
        "low": points(low),
        "high": points(high),
        "tolerance": points(gap.get("tolerance")),
        "verdict": verdict,
        "status": status,
        "mark": MARKS[status],
        "between": between if len(between) == 2 else [],
        "why": reason(gap.get("why")),
        "figures": [f for f in (_plot(f"fair{index}-{r}", r, groups) for r in rates) if f],
    }


def _group(group: dict[str, Any]) -> dict[str, Any]:
    rates = part(group, "rates")
    cells = []
    for key in RATES:
        r = mapping(rates.get(key))
        known = math.isfinite(real(r.get("value"))) and not yes(group.get("abstained"))
        value = percent(r.get("value")) if known else "–"
        cells.append(
            {
                "value": value,
                "interval": interval(r.get("low"), r.get("high"), share=True) if known else "",
            }
        )
    return {
        "name": plain(words(group.get("group"), "?")),
        "n": count(group.get("n")),
        "abstained": yes(group.get("abstained")),
        "why": plain(words(group.get("why")), 200),
        "cells": cells,
    }


def audits(document: Any) -> list[dict[str, Any]]:
    """One audit a sensitive column."""
    made = []
    for index, audit in enumerate(rows(part(document, "evidence").get("fairness"))[:ATTRIBUTES]):
        found = rows(audit.get("groups"))
        shown = found[:GROUPS]
        silent = [_group(g) for g in shown if yes(g.get("abstained"))]
        partly = [_group(g) for g in shown if g.get("why") and not yes(g.get("abstained"))]
        proxies = part(audit, "proxies")
        made.append(
            {
                "attribute": plain(words(audit.get("attribute"), "group")),
                "criteria": [_criterion(key, audit, shown, index) for key in CRITERIA],
                "groups": [_group(g) for g in shown],
                "more": more(len(found), len(shown)),
                "silent": silent,
                "partly": partly,
                "rates": list(RATES.values()),
                "base": _plot(f"fair{index}-base", "base_rate", shown),
                "incompatible": [
                    sentence(t) for t in texts(part(audit, "incompatibility").get("words"))[:8]
                ],
                "proxy_words": sentence(proxies.get("words")),
                "proxies": [
                    {
                        "name": plain(words(c.get("name"), "?")),
                        "strength": number(c.get("strength"), 3),
                    }
                    for c in rows(proxies.get("columns"))[:PROXIES]
                ],
                "proxies_more": more(len(rows(proxies.get("columns"))), PROXIES),
            }
        )
    return made


def remedies(document: Any) -> dict[str, Any]:
    """What each remedy would cost, and what it would change."""
    found = rows(part(document, "evidence").get("remedies"))
    lines = [
        {
            "name": plain(words(r.get("remedy"), "?")),
            "error": percent(r.get("error")),
            "interval": interval(r.get("error_low"), r.get("error_high"), share=True),
            "independence": points(r.get("independence")),
            "separation": points(r.get("separation")),
            "sufficiency": points(r.get("sufficiency")),
            "attribute": plain(words(r.get("attribute")), 40),
            "words": "" if r.get("words") == r.get("remedy") else plain(words(r.get("words")), 300),
        }
        for r in found[:REMEDIES]
    ]
    several = len({line["attribute"] for line in lines}) > 1
    return {"rows": lines, "more": more(len(found), len(lines)), "several": several}
