"""Dates in text: which format reads a column, and days since 1970.

A short list of formats, ISO 8601 first. Where a day and a month could change places, a format is taken only
if the other order is impossible for some value; otherwise no reading is chosen and both are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

__all__ = ["days", "find_format"]

_TIMES = {"": "", " %H:%M": r" \d{1,2}:\d{2}", " %H:%M:%S": r" \d{1,2}:\d{2}:\d{2}"}
_FORMATS: dict[str, str] = {}
for _time, _pattern in _TIMES.items():
    _FORMATS["%Y-%m-%d" + _time] = r"\d{4}-\d{1,2}-\d{1,2}" + _pattern
    if _time:
        _FORMATS["%Y-%m-%dT" + _time[1:]] = r"\d{4}-\d{2}-\d{2}T" + _pattern[1:]
    _FORMATS["%Y/%m/%d" + _time] = r"\d{4}/\d{1,2}/\d{1,2}" + _pattern
    for _mark in "/.-":
        _FORMATS[f"%d{_mark}%m{_mark}%Y" + _time] = (
            rf"\d{{1,2}}[{_mark}]\d{{1,2}}[{_mark}]\d{{4}}" + _pattern
        )
_FORMATS["%Y-%m-%dT%H:%M:%SZ"] = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z"
_FORMATS["%Y-%m-%d %H:%M:%S%.f"] = r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d+"
_FORMATS["%Y-%m-%dT%H:%M:%S%.f"] = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d+"
_FORMATS["%d %b %Y"] = r"\d{1,2} [A-Za-z]{3} \d{4}"
_FORMATS["%d-%b-%Y"] = r"\d{1,2}-[A-Za-z]{3}-\d{4}"
_FORMATS["%b %d, %Y"] = r"[A-Za-z]{3} \d{1,2}, \d{4}"


def find_format(values: pl.Series) -> tuple[str | None, str]:
    """The format that reads every value of a text column without missing ones, or None, and the reason."""
    start = values.head(20)
    for form, pattern in _FORMATS.items():
        whole = f"^(?:{pattern})$"
        if not start.str.contains(whole).all() or not values.str.contains(whole).all():
            continue
        if not form.startswith("%d") or "%b" in form:
            if _reads(values, form):
                return form, f"every value reads as a date, {form}"
            continue
        swapped = "%m" + form[2] + "%d" + form[5:]
        first, second = _reads(values, form), _reads(values, swapped)
        if first and second:
            return None, (
                f"dates in which day and month could change places ({form} or {swapped}); "
                "write them as year-month-day"
            )
        if first or second:
            form = form if first else swapped
            return form, f"every value reads as a date, {form}; the other order is impossible"
    return None, ""


def _parse(values: pl.Series, form: str) -> pl.Series:
    import polars as pl

    if "%H" in form:
        return values.str.to_datetime(form, strict=False, time_unit="us")
    return values.str.to_date(form, strict=False).cast(pl.Datetime("us"))


def _reads(values: pl.Series, form: str) -> bool:
    start = values.head(20)
    return not _parse(start, form).null_count() and not _parse(values, form).null_count()


def days(values: Any, form: str | None) -> NDArray[np.float64]:
    """Days since 1970-01-01, NaN where missing or not a date; text is read with ``form``."""
    import polars as pl

    if values.dtype == pl.String:
        values = _parse(values, form or "%Y-%m-%d")
    if not values.dtype.is_temporal():
        return np.full(len(values), np.nan)
    micro = values.dt.epoch("us").cast(pl.Float64) / 86_400e6
    return np.asarray(micro.fill_null(float("nan")).to_numpy(), dtype=np.float64)
