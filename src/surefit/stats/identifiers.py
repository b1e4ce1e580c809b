r"""Columns that look like the number of a person or a place: rows with one value belong together.

A column is named when its values and its name say so: numbers (12, "P012", "site-3"), at least 10 different
ones in 1.2 rows each or more, and a name such as ``patient_id``, ``user``, ``zip`` or ``site``. Without a
telling name the values must be unmistakable: at least 20 different numbers, every one of them in a multiple
of :math:`g \ge 2` rows, no more than 50 rows each (60 patients with five rows each); see
:mod:`surefit.stats.repeats` for how unlikely that is by chance. Names of cities are categories, and a plural
(``visits``) is a count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .repeats import common_multiple

__all__ = ["Identifier", "find_identifiers"]

FEWEST_VALUES = 10  # a hospital with four names is a category
FEWEST_UNNAMED = 20
MOSTLY = 0.9  # share of the texts with a digit, from which a column is one of numbers
ROWS_A_VALUE = 1.2  # on average; a column that numbers the rows ties none together
MOST_UNNAMED = 200  # columns without names that are looked at
MOST_ROWS_A_VALUE = 50  # of a column without a telling name
THINGS = (
    "patient|subject|person|participant|respondent|individual|user|customer|client|member|"
    "visitor|guest|student|pupil|teacher|employee|worker|applicant|donor|author|speaker|driver|player|"
    "doctor|physician|rater|annotator|family|household|twin|couple|mother|child|animal|mouse|rat|"
    "cow|herd|litter|cage|plant|tree|plot|field|farm|site|centre|center|clinic|hospital|ward|school|"
    "class(?:room)|shop|store|branch|company|firm|account|card|device|sensor|machine|engine|vehicle|"
    "car|ship|vessel|batch|lot|sample|specimen|slide|session|visit|trip|order|basket|document|article|"
    "video|image|recording|county|district|municipality|city|town|village|station|zip|zip ?code|"
    "postal|post ?code|postcode|plz|tract|block|address|ssn|ticket|group|cluster|fold"
)
KEYS = "id|nr|no|num|number|code|key|uid|uuid|guid|index|idx|pid|sid"
NAME = re.compile(rf"^(?:(?:{THINGS})(?: (?:{KEYS}))?|(?:.* )?(?:id|uid|uuid|guid|pid|sid))$")
COUNTS = re.compile(r"^(?:n|num|number|count|nr|no|age|size|length|total|mean|max|min) (?:of )?")


@dataclass(frozen=True)
class Identifier:
    """A column whose equal values seem to belong together.

    Attributes
    ----------
    name : str
        Of the column, such as "column 'patient'", or its place, "column 0".
    values : int
        How many different values it has.
    rows : float
        Rows a value, on average.
    """

    name: str
    values: int
    rows: float

    @property
    def words(self) -> str:
        """What was found, as half a sentence."""
        return (
            f"{self.name} looks like the number of a person or a place: {self.values:,} values, "
            f"each in {self.rows:.1f} rows on average"
        )


def find_identifiers(names: Sequence[str] | None, columns: Iterable[Any]) -> list[Identifier]:
    """Return the columns that look like the number of a person, a place or a thing.

    Parameters
    ----------
    names : sequence of str, default=None
        Names of the columns; ``None`` counts them, "column 0" and so on, and the values alone decide, of the
        first 200.
    columns : iterable of array
        The columns, one after the other: numbers or text, a missing value being ``None`` or NaN.

    Returns
    -------
    list of Identifier

    Examples
    --------
    >>> import numpy as np
    >>> patient, age = np.repeat(np.arange(60), 5), np.arange(300) % 47
    >>> [one.name for one in find_identifiers(["patient_id", "age"], [patient, age])]
    ["column 'patient_id'"]
    """
    found = []
    for place, values in enumerate(columns):
        if names is None and place >= MOST_UNNAMED:
            break
        name = f"column {place}" if names is None else f"column '{names[place]}'"
        named = names is not None and _is_telling(str(names[place]))
        one = _looks_like_number_of(name, values, named)
        if one is not None:
            found.append(one)
    return found


def _is_telling(name: str) -> bool:
    """Whether a name is that of a person, a place or a key: ``patientId``, ``zip_code``, ``site``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    plain = re.sub(r"[\s_.\-]+", " ", spaced).strip().lower()
    return bool(NAME.match(plain)) and not COUNTS.match(plain)


def _looks_like_number_of(name: str, values: Any, named: bool) -> Identifier | None:
    known = _codes(values)
    if known is None or not len(known):
        return None
    counts = np.unique(known, return_counts=True)[1]
    rows = float(counts.mean())
    if named and len(counts) >= FEWEST_VALUES and rows >= ROWS_A_VALUE:
        return Identifier(name, len(counts), rows)
    if len(counts) < FEWEST_UNNAMED or rows > MOST_ROWS_A_VALUE:
        return None
    return Identifier(name, len(counts), rows) if common_multiple(counts) > 1 else None


def _codes(values: Any) -> Any:
    """Known values of a column of numbers: whole ones, or texts with a digit; ``None`` for any other."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "f":
        known = array[np.isfinite(array)]
        return known if (known == np.rint(known)).all() else None
    if array.dtype.kind in "OUST":
        texts = [str(value) for value in array.tolist() if value is not None and value == value]
        digits = sum(any(letter.isdigit() for letter in text) for text in texts)
        return np.array(texts) if texts and digits > MOSTLY * len(texts) else None
    return None
