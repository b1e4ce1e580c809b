"""What a column is, from all its values: the rules of the schema, one column at a time.

Numbers are values that all read as finite numbers. Codes with leading zeros are categories. A column in
which (nearly) every row has its own value names the row and is left out; so are constants and free text.
Every decision comes with the reason in words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ._dates import find_format
from ._words import listed, shown

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ROLES", "Column", "as_text", "describe", "numbers", "numbers_of", "unclear"]

ROLES = ("numeric", "categorical", "date", "text", "identifier", "constant", "ignored")
FEW = 10  # whole numbers with at most so many values may be codes, which is said
MANY = 50  # more categories than this are pooled by the encoder
MOSTLY = 0.5  # share of distinct values from which text names the rows
FEWEST = 20  # rows needed to call a column an identifier
LONG = 25  # letters of a value on average from which it is free text
NEARLY = ("are not numbers", "could change places")  # in the note of an unclear column
# only plain digits: no "inf", "nan", "1_000" or hexadecimal
PLAIN = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
ID_NAME = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid|key|index|rownames?|row_?num(ber)?|unnamed.*)$", re.I
)


@dataclass(frozen=True)
class Column:
    """One column of a schema.

    Attributes
    ----------
    name : str
    role : str
        One of ``numeric``, ``categorical``, ``date`` (these enter the model), ``text``, ``identifier``,
        ``constant`` and ``ignored``.
    integer : bool
        Whether all values are whole numbers.
    missing, distinct : int
        Numbers of missing and of distinct values.
    date_format : str or None
    leak : float or None
        How well this column alone predicts the target: balanced accuracy or R^2 on unseen rows.
    note : str
        Why, in words.
    """

    name: str
    role: str
    integer: bool = False
    missing: int = 0
    distinct: int = 0
    date_format: str | None = None
    leak: float | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def numbers(column: pl.Series) -> pl.Series:
    """The column as Float64; what does not read as a finite number is missing."""
    import polars as pl

    if column.dtype == pl.String:
        plain = column.str.contains(PLAIN)
        if not plain.all():
            column = pl.select(pl.when(plain).then(column)).to_series()
    if column.dtype.is_temporal():
        return pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    values = column.cast(pl.Float64, strict=False)
    if values.is_finite().all() and not values.null_count():
        return values
    return pl.select(pl.when(values.is_finite()).then(values)).to_series().alias(column.name)


def numbers_of(frame: pl.DataFrame, names: Sequence[str]) -> dict[str, pl.Series]:
    """:func:`numbers` of many columns at once: a wide table is thousands of short ones."""
    import polars as pl

    kinds = dict(frame.schema)
    texts = [name for name in names if kinds[name] == pl.String]
    read = frame.select(
        pl.when(pl.col(name).str.contains(PLAIN)).then(pl.col(name)).cast(pl.Float64, strict=False)
        for name in texts
    ).select(pl.when(pl.all().is_finite()).then(pl.all()).name.keep() if texts else pl.all())
    found = {column.name: column for column in read.iter_columns()}
    return {
        name: found[name] if name in found else numbers(frame.get_column(name)) for name in names
    }


def unclear(column: Column) -> bool:
    """Whether a column is nearly numeric or a date, so that its owner should decide."""
    return column.role in ("categorical", "text") and any(words in column.note for words in NEARLY)


def as_text(column: pl.Series) -> pl.Series:
    """The column as text, whole numbers without a decimal point."""
    import polars as pl

    if column.dtype == pl.Float64:
        whole = column.drop_nulls()
        if bool(((whole == whole.round(0)) & (whole.abs() < 2**53)).all()):
            column = column.cast(pl.Int64)
    return column.cast(pl.String)


def describe(column: pl.Series, role: str | None = None) -> Column:
    """What a column is; ``role`` given by the user wins, and the facts are still filled in."""
    import polars as pl

    name = column.name
    values = column.drop_nulls()
    facts: dict[str, Any] = {"missing": column.null_count(), "distinct": values.n_unique()}
    form: str | None = None
    if column.dtype == pl.String:
        parsed = numbers(values)
        unread = parsed.null_count()
    else:
        parsed = values if not values.dtype.is_temporal() else values.head(0)
        unread = 0
    numeric = not unread and len(parsed) > 0
    whole = numeric and bool((parsed.cast(pl.Float64) == parsed.cast(pl.Float64).round(0)).all())
    found, note = _proposal(name, values, parsed, unread, facts["distinct"], whole)
    if found == "date" or role == "date":
        form = find_format(values)[0] if column.dtype == pl.String else None
    if role is not None:
        note = "as given" if role == found else f"as given; proposed was {found}: {note}"
        found = role
    return Column(
        name,
        found,
        whole and found in ("numeric", "identifier"),
        **facts,
        date_format=form,
        note=note,
    )


def _proposal(
    name: str, values: pl.Series, parsed: pl.Series, unread: int, distinct: int, whole: bool
) -> tuple[str, str]:
    """Role and reason."""
    import polars as pl

    rows = len(values)
    if not rows:
        return "constant", "every value is missing"
    if distinct == 1:
        return "constant", f"every value is '{shown(values[0], 30)}'"
    named = bool(ID_NAME.search(name))
    if values.dtype.is_temporal():
        return "date", "times, as stored"
    if not unread:
        if values.dtype == pl.String and bool(values.str.contains(r"^[-+]?0\d").any()):
            first = values.filter(values.str.contains(r"^[-+]?0\d"))[0]
            return "categorical", f"codes with leading zeros such as '{shown(first, 20)}'"
        if whole and rows >= FEWEST:
            steps = parsed.cast(pl.Float64).diff().drop_nulls()
            if distinct == rows and bool((steps == steps[0]).all()):
                return "identifier", f"whole numbers that count the rows in steps of {steps[0]:g}"
            if distinct == rows and bool((steps > 0).all()):
                return "identifier", "whole numbers, all different and rising from row to row"
            if named and distinct > MOSTLY * rows:
                return (
                    "identifier",
                    "named like an identifier, and (nearly) every row has its own number",
                )
        if whole and distinct <= FEW:
            return (
                "numeric",
                f"whole numbers with only {distinct} values; categorical if they are codes",
            )
        return "numeric", "every value reads as a " + ("whole number" if whole else "number")
    form, words = find_format(values)
    if form is not None:
        return "date", words
    return _text_role(name, values, distinct, named, words or _mixed(values, parsed, unread))


def _mixed(values: pl.Series, parsed: pl.Series, unread: int) -> str:
    """What to say of a column in which most values, but not all, are numbers."""
    if unread > 0.5 * len(values):
        return ""
    bad = values.filter(parsed.is_null()).unique(maintain_order=True).head(3)
    return (
        f"{unread:,} of {len(values):,} are not numbers, such as {listed(bad)}; "
        "to read it as numeric, name them as missing values"
    )


def _text_role(
    name: str, values: pl.Series, distinct: int, named: bool, words: str
) -> tuple[str, str]:
    rows = len(values)
    if words:  # neither numbers nor dates, but nearly: never a name of the rows
        if distinct > MANY:
            return "text", f"{words}; left out as it is, with {distinct:,} values"
        return "categorical", f"{distinct:,} values; {words}"
    if rows >= FEWEST and distinct > MOSTLY * rows and distinct > FEW:
        length = float(values.str.len_chars().mean())
        spaces = float(values.str.count_matches(" ").mean())
        if length >= LONG or spaces >= 3:
            return (
                "text",
                f"free text, {length:.0f} characters on average, {distinct:,} different values",
            )
        kind = (
            "every row has its own value"
            if distinct == rows
            else f"{distinct:,} values in {rows:,} rows"
        )
        return "identifier", f"{kind}, so it names the rows"
    if named and distinct > MANY:
        return "identifier", f"named like an identifier, with {distinct:,} values"
    if distinct > MANY:
        length = float(values.str.len_chars().mean())
        if length >= 2 * LONG:
            return "text", f"free text, {length:.0f} characters on average"
        return "categorical", f"{distinct:,} values; rare ones are pooled"
    return "categorical", f"{distinct:,} values"
