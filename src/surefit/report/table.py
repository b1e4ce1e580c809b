"""The data and the model in words: how the file was read, what each column was used for, who was fitted.

No cell of the table is shown, only counts and names.
"""

from __future__ import annotations

import math
from typing import Any

from .evidence import more
from .reading import mapping, part, real, rows, texts, words, yes
from .words import count, number, plain, sentence, settings

__all__ = ["data", "model"]

SUSPICIOUS = 0.99  # a column that alone predicts the target as well as this is called out
COLUMNS, SUSPECTS, PARSING, NOTES = 60, 12, 40, 20  # entries of each list that are shown


def _column(column: dict[str, Any]) -> dict[str, Any]:
    leak = real(column.get("leak"))
    return {
        "name": plain(words(column.get("name"), "?")),
        "role": plain(words(column.get("role"), "–"), 40),
        "missing": count(column.get("missing")),
        "distinct": count(column.get("distinct")),
        "encoded": count(column.get("encoded")),
        "used": "no" if column.get("used") is False else "yes" if yes(column.get("used")) else "–",
        "note": plain(words(column.get("note")), 240),
        "leak": number(leak) if math.isfinite(leak) else "",
    }


def _suspect(column: dict[str, Any]) -> bool:
    return real(column.get("leak")) >= SUSPICIOUS or "leak" in words(column.get("role")).lower()


def data(document: Any) -> dict[str, Any]:
    """Facts about the table, how it was read, and its columns."""
    d = part(document, "data")
    split = part(document, "split")
    found = rows(mapping(document).get("columns"))
    suspects = [c for c in found if _suspect(c)]
    facts = [
        ("File", plain(words(d.get("name"), "–"))),
        ("Rows", count(d.get("rows"))),
        ("Columns", count(d.get("columns"))),
        ("Target", plain(words(d.get("target"), "–"))),
        ("Sensitive", ", ".join(plain(t) for t in texts(d.get("sensitive"))[:8]) or "none named"),
        ("Immutable", ", ".join(plain(t) for t in texts(d.get("immutable"))[:8]) or "none named"),
        ("Training rows", count(split.get("train"))),
        ("Rows kept aside", count(split.get("holdout"))),
        ("Seed of the split", plain(words(split.get("seed"), "–"), 24)),
    ]
    return {
        "name": plain(words(d.get("name"), "table"), 60),
        "facts": facts,
        "rule": sentence(split.get("rule")),
        "parsing": [
            {k: plain(words(p.get(k)), 200) for k in ("what", "value", "how")}
            for p in rows(d.get("parsing"))[:PARSING]
        ],
        "parsing_more": more(len(rows(d.get("parsing"))), PARSING),
        "notes": [sentence(t) for t in texts(d.get("notes"))[:NOTES]],
        "columns": [_column(c) for c in found[:COLUMNS]],
        "more": more(len(found), COLUMNS),
        "suspects_more": more(len(suspects), SUSPECTS),
        "suspects": [_column(c) for c in suspects[:SUSPECTS]],
        "fingerprint": plain(words(d.get("fingerprint"), "–"), 140),
        "training_fingerprint": plain(words(d.get("training_fingerprint"), "–"), 140),
    }


def model(document: Any) -> dict[str, Any]:
    """The model that was chosen."""
    m = part(document, "model")
    classes = texts(mapping(document).get("classes"))
    return {
        "name": plain(words(m.get("name"), "model")),
        "params": settings(m.get("params"), 400) or "none",
        "words": sentence(m.get("words")),
        "refitted": yes(m.get("refitted")),
        "task": plain(words(mapping(document).get("task"), "–"), 20),
        "classes": ", ".join(plain(c, 30) for c in classes[:12])
        + (", …" if len(classes) > 12 else ""),
        "positive": plain(words(mapping(document).get("positive")), 40),
    }
