"""The verdict and the claims, as the page and the terminal show them.

A group of claims (optimality, generalisation, robustness, fairness) fails when one of its claims fails. It is
*violated* when none fails and a criterion of fairness is exceeded: such a claim is true, and what it says is
no success. It holds when one holds, and none fails, is violated or leaves a criterion open; how many of each
is always said. A group of claims that are true of nearly any model is uninformative. The status of a claim is
read from the document; but a claim that says it holds while its own numbers say otherwise is shown as
failing, so that an edited document cannot look better than its numbers. Whether a criterion is met is worked
out here, from the interval and the tolerance.
"""

from __future__ import annotations

import math
from typing import Any

from .reading import aligned, mapping, part, real, rows, texts, words
from .words import SENTENCE, interval, number, percent, plain, points, span

__all__ = [
    "GROUPS",
    "MARKS",
    "MOST",
    "OPEN",
    "cards",
    "confidence",
    "group_status",
    "read_claims",
    "verdict",
]

MARKS = {"holds": "✓", "fails": "✗", "violated": "▲", "undecided": "?", "uninformative": "○"}
STATUSES = ("holds", "fails", "undecided", "uninformative")  # of a document
SAID = {
    "holds": "claims hold",
    "fails": "a claim fails",
    "violated": "criteria violated",
    "undecided": "undecided",
    "uninformative": "uninformative",
}
GROUPS = {
    "optimality": ("Optimality", "Is this the best fit of its kind?"),
    "generalisation": ("Generalisation", "How will it do on new rows?"),
    "robustness": ("Robustness", "How small a change of a row changes the answer?"),
    "fairness": ("Fairness", "How differently are groups treated?"),
}
HEADLINES = {
    "holds": "Every claim that was checked holds.",
    "fails": "At least one claim does not hold.",
    "violated": "Every claim that was checked holds; criteria of fairness are violated.",
    "undecided": "Nothing was decided.",
    "uninformative": "Every claim is true of nearly any model.",
}
JUDGE = "; a measured gap is not an approved gap"
OPEN, MOST = 4, 30  # claims of a group that are open, and that are shown at all
_LENGTHS = "statistical"
_FIRST = ("fails", "violated")  # shown before the others


def confidence(document: Any) -> str:
    """The probability that the intervals are stated with; 95 % where the document does not say."""
    delta = real(mapping(document).get("delta"))
    return percent(1 - delta, 0 if delta >= 0.01 else 1) if 0 < delta < 1 else "95 %"


def status_of(value: Any) -> str:
    """One of the four words; undecided for anything else."""
    return value if isinstance(value, str) and value in STATUSES else "undecided"


def criterion_of(low: Any, high: Any, tolerance: Any) -> str:
    """ "met", "violated" or "not decided": an interval against a tolerance; empty where one is missing.

    Examples
    --------
    >>> criterion_of(0.13, 0.2, 0.05), criterion_of(0.0, 0.04, 0.05), criterion_of(0.0, 0.2, None)
    ('violated', 'met', '')
    """
    a, b, most = real(low), real(high), real(tolerance)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(most)):
        return ""
    if b <= most:
        return "met"
    return "violated" if a > most else "not decided"


def read_claim(record: dict[str, Any]) -> dict[str, Any]:
    """One claim, with its numbers as text and its status checked against them."""
    observed, bound = real(record.get("observed")), real(record.get("bound"))
    estimate, low, high = (real(record.get(key)) for key in ("estimate", "low", "high"))
    is_interval = all(map(math.isfinite, (estimate, low, high)))
    status, note = status_of(record.get("status")), ""
    sound = observed <= bound and observed < math.inf
    if is_interval:
        sound = sound and low <= estimate <= high
    if status == "holds" and not sound:
        status, note = "fails", "The document says that this holds; its own numbers do not."
    verdict_ = criterion_of(low, high, record.get("tolerance")) if status != "fails" else ""
    word = verdict_ if status == "holds" and verdict_ else status
    if verdict_ == "violated":
        status = word = "violated"
    elif word == "not decided":
        status = "undecided"
    kind = plain(words(record.get("kind")), 20)
    first, second = (
        ("length of the interval", "range") if kind == _LENGTHS else ("observed", "bound")
    )
    return {
        "name": plain(words(record.get("name"), "claim")),
        "statement": plain(words(record.get("statement")), SENTENCE),
        "status": status,
        "word": word,
        "mark": MARKS[status],
        "note": note,
        "kind": kind,
        "source": plain(words(record.get("source")), 40),
        "interval": f"{number(estimate, 3)} in [{number(low, 3)}, {number(high, 3)}]"
        if is_interval
        else "",
        "tolerance": number(record.get("tolerance"), 3) if verdict_ else "",
        "decided": status != "undecided" and not math.isnan(observed),
        "observed": number(observed, 3),
        "short": number(observed, 2),
        "relation": "≤" if observed <= bound else ">",
        "bound": number(bound, 3),
        "first": first,
        "second": second,
        "means": plain(words(record.get("means")), SENTENCE),
        "does_not": plain(words(record.get("does_not")), SENTENCE),
    }


def read_claims(document: Any, group: str) -> list[dict[str, Any]]:
    """All claims of a group; those that fail first, where not all are open at once."""
    claims = [read_claim(record) for record in rows(part(document, "claims").get(group))]
    return claims if len(claims) <= OPEN else sorted(claims, key=_urgency)


def _urgency(claim: dict[str, Any]) -> int:
    """Failed claims first, then violated criteria."""
    return _FIRST.index(claim["status"]) if claim["status"] in _FIRST else len(_FIRST)


def group_status(claims: list[dict[str, Any]]) -> str:
    """The status of a group, from those of its claims: the worst that has to be known."""
    found = {claim["status"] for claim in claims}
    for status in _FIRST:
        if status in found:
            return status
    if any(claim.get("word") == "not decided" for claim in claims):
        return "undecided"
    if "holds" in found:
        return "holds"
    return "uninformative" if found == {"uninformative"} else "undecided"


def _tally(claims: list[dict[str, Any]]) -> str:
    if not claims:
        return "no claim was made"
    counts = [(sum(c["status"] == s for c in claims), s) for s in MARKS]
    verbs = {
        "holds": ("holds", "hold"),
        "fails": ("fails", "fail"),
        "violated": ("violated",) * 2,
        "undecided": ("undecided",) * 2,
        "uninformative": ("uninformative",) * 2,
    }
    return ", ".join(f"{n} {verbs[s][n != 1]}" for n, s in counts if n)


def _figure(document: Any, group: str) -> tuple[str, str]:
    """The number on a card and what it is; two empty strings where only the claim has one."""
    share = mapping(document).get("task") == "classification"
    if group == "generalisation":
        for row in rows(mapping(document).get("candidates")):
            held = part(row, "holdout")
            if row.get("chosen") is True and not math.isnan(real(held.get("loss"))):
                value = percent(held["loss"]) if share else number(held["loss"])
                ends = interval(held.get("low"), held.get("high"), share=share)
                what = "error on rows kept aside" if share else "loss on rows kept aside"
                return value, f"{what}; {ends} at {confidence(document)}"
    if group == "robustness":
        e = part(document, "evidence", "robustness")
        curve = aligned(e.get("eps"), e.get("certified_accuracy"))
        if curve:
            eps, kept = min(curve, key=lambda p: abs(p[0] - 0.1))
            word = "accuracy" if e.get("exact") is True else "certified accuracy"
            return percent(kept), f"{word} when rows change by up to {number(eps, 3)}"
    if group == "fairness":
        for audit in rows(part(document, "evidence").get("fairness")):
            gap = part(audit, "gaps", "independence")
            if math.isfinite(real(gap.get("gap"))):
                ends = span(gap.get("low"), gap.get("high"))
                name = plain(words(audit.get("attribute"), "group"), 30)
                what = (
                    f"largest difference in selection by {name}; {ends} at {confidence(document)}"
                )
                return f"{points(gap['gap'])} points", what
    return "", ""


def cards(document: Any) -> list[dict[str, Any]]:
    """The four groups in short: mark, number, one sentence."""
    made = []
    for key, (title, question) in GROUPS.items():
        claims = read_claims(document, key)
        status = group_status(claims)
        lead = next((c for c in claims if c["status"] == status), None)
        value, what = _figure(document, key)
        if not value and lead and lead["decided"]:
            value, what = lead["short"], f"{lead['name']}; at most {lead['bound']} was needed"
        made.append(
            {
                "key": key,
                "title": title,
                "question": question,
                "status": status,
                "mark": MARKS[status],
                "said": SAID[status],
                "tally": _tally(claims) + (JUDGE if key == "fairness" and value else ""),
                "value": value,
                "what": what,
                "sentence": plain(lead["statement"], 220) if lead else "",
            }
        )
    return made


def verdict(document: Any) -> dict[str, Any]:
    """Status, headline and sentences; the status is no better than the claims allow."""
    v = part(document, "verdict")
    status = status_of(v.get("status"))
    found = [group_status(read_claims(document, key)) for key in GROUPS]
    sentences = [plain(text, SENTENCE) for text in texts(v.get("sentences"))[:8]]
    headline = plain(words(v.get("headline")), 240) or HEADLINES[status]
    if status == "holds" and "fails" in found:
        status, headline = "fails", HEADLINES["fails"]
        sentences.insert(0, "The document says that every claim holds; a claim in it does not.")
    said = SAID[status]
    if status == "holds" and "violated" in found:
        status, said = "violated", "claims hold, fairness criteria are violated"
    return {
        "status": status,
        "said": said,
        "mark": MARKS[status],
        "headline": headline,
        "sentences": sentences,
    }
