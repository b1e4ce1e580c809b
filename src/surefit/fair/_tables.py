"""The tables of an audit: rows, gaps, and what was left out, in plain JSON types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._groups import shown
from .criteria import CRITERIA, RATES, gap, group_rates, incompatibility

__all__ = ["forced_rates", "group_gaps", "group_rows", "overall_row"]


def overall_row(counts: Any, delta: float, stated: int) -> dict[str, Any]:
    """The row of all rows together."""
    return group_rows("", ["all"], counts, group_rates(counts, delta, stated), [0])[0]


def group_rows(
    attribute: str, names: list[str], counts: Any, rates: Any, measured: list[int]
) -> list[dict[str, Any]]:
    """The rows of the table, in plain numbers."""
    plain = {
        name: {part: values.tolist() for part, values in parts.items()}
        for name, parts in rates.items()
    }
    inside = set(measured)
    rows = []
    for i, group in enumerate(names):
        (tn, fp), (fn, tp) = counts[i].tolist()
        values = {}
        for name, parts in plain.items():
            one = {part: column[i] for part, column in parts.items()}
            one["value"] = None if one["n"] == 0 else one["value"]
            values[name] = one
        rows.append(
            {
                "attribute": attribute,
                "group": group,
                "n": tn + fp + fn + tp,
                "measured": i in inside,
                "counts": {"tp": tp, "fp": fp, "fn": fn, "tn": tn},
                "rates": values,
            }
        )
    return rows


def group_gaps(
    attribute: str, names: list[str], rates: Any, measured: list[int], min_rows: int, delta: float
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The gap of each criterion and rate, and the groups that were left out of it."""
    left_out: list[dict[str, Any]] = []
    sizes = rates["selection"]["n"].tolist()
    for i in sorted(set(range(len(names))) - set(measured)):
        why = f"{sizes[i]} rows, fewer than min_rows={min_rows}"
        left_out.append(_absent(attribute, names[i], sizes[i], None, why))
    found: dict[str, Any] = {}
    for rate in RATES:
        rows = rates[rate]["n"].tolist()
        over = [i for i in measured if rows[i] >= min_rows]
        if rate not in ("fnr", "tnr"):
            for i in measured:
                if rows[i] < min_rows:
                    why = f"{rows[i]} rows to measure {rate} on, fewer than min_rows={min_rows}"
                    left_out.append(_absent(attribute, names[i], rows[i], rate, why))
        entry = gap(rates[rate], over)
        at = entry.pop("places")
        pairs = max(1, len(over) * (len(over) - 1) // 2)
        entry["groups"] = [names[i] for i in at]
        entry["hoeffding"] = None
        if at:
            inverse = 1.0 / rows[at[0]] + 1.0 / rows[at[1]]
            entry["hoeffding"] = float(np.sqrt(np.log(2.0 * pairs / delta) / 2.0 * inverse))
        entry["over"] = [names[i] for i in over]
        few = _listed([names[i] for i in range(len(names)) if i not in set(over)])
        entry["why"] = "" if at else f"too few rows in {few}" if few else "there is one group"
        found[rate] = entry
    for criterion, parts in CRITERIA.items():
        found[criterion] = _widest({part: found[part] for part in parts})
    return found, left_out


def _listed(names: list[str], most: int = 8) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def _absent(attribute: str, group: str, n: int, rate: str | None, why: str) -> dict[str, Any]:
    return {"attribute": attribute, "group": group, "n": n, "rate": rate, "why": why}


def _widest(parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A criterion of two rates: the larger gap, and the limits of the larger.

    Where the two could not be measured in the same groups, ``over`` has the groups of either, and ``each``
    says how many there are for which rate: the limits are about no others.
    """
    known = [part for part in parts.values() if part["observed"] is not None]
    if len(known) < len(parts):
        return next(part for part in parts.values() if part["observed"] is None)
    worst = max(known, key=lambda part: part["observed"])
    ratios = [part["ratio"] for part in known]
    apart = len({tuple(part["over"]) for part in known}) > 1
    each = {"each": {name: len(part["over"]) for name, part in parts.items()}} if apart else {}
    return {
        **worst,
        **each,
        "over": list(dict.fromkeys(group for part in known for group in part["over"])),
        "low": max(part["low"] for part in known),
        "high": max(part["high"] for part in known),
        "ratio": None if None in ratios else min(ratios),
    }


def forced_rates(overall: Any, table: list[dict[str, Any]], gaps: dict[str, Any]) -> dict[str, Any]:
    """The incompatibility with this data's base rates, at the PPV and FNR of all rows."""
    ppv, fnr = overall["rates"]["ppv"]["value"], overall["rates"]["fnr"]["value"]
    found: dict[str, Any] = {}
    if ppv is None or fnr is None or ppv == 0.0:
        return found
    for attribute in gaps:
        rows = [r for r in table if r["attribute"] == attribute and r["measured"]]
        if len(rows) > 1:
            base = [row["rates"]["base_rate"]["value"] for row in rows]
            names = [row["group"] for row in rows]
            found[attribute] = incompatibility(base, ppv, fnr, groups=names)
    return found
