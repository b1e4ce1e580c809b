"""The classic sets: where their publishers keep them, their digests, and how they become tidy tables.

A digest is the SHA-256 of the published file, unpacked. An address that ends in ``#name`` is an archive,
and the file is its member of that name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .parsing import Parsing
from .reading import read_table
from .table import Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CLASSICS", "Classic", "File"]

UCI = "https://archive.ics.uci.edu/"
ADULT = (
    "age workclass fnlwgt education education_num marital_status occupation relationship race sex "
    "capital_gain capital_loss hours_per_week native_country income"
).split()
GERMAN = (
    "checking_account duration credit_history purpose amount savings employment instalment_rate "
    "personal_status other_debtors residence_since property age other_instalments housing "
    "existing_credits job dependants telephone foreign_worker credit"
).split()
GERMAN_WORDS = {
    "checking_account": {
        "A11": "below 0",
        "A12": "0 to 200",
        "A13": "200 or more",
        "A14": "no account",
    },
    "credit_history": {
        "A30": "no credits or all paid",
        "A31": "all paid at this bank",
        "A32": "existing paid so far",
        "A33": "delays in the past",
        "A34": "critical account",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "holiday",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "savings": {
        "A61": "below 100",
        "A62": "100 to 500",
        "A63": "500 to 1000",
        "A64": "1000 or more",
        "A65": "unknown or no savings",
    },
    "employment": {
        "A71": "unemployed",
        "A72": "below 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "other_debtors": {"A101": "nobody", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "real estate",
        "A122": "savings agreement or life insurance",
        "A123": "car or other",
        "A124": "unknown or no property",
    },
    "other_instalments": {"A141": "bank", "A142": "stores", "A143": "no others"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "job": {
        "A171": "unskilled, not resident",
        "A172": "unskilled, resident",
        "A173": "skilled",
        "A174": "management or self-employed",
    },
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "credit": {"1": "good", "2": "bad"},
}
GERMAN_SEX = {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}
HOUSING = (
    "longitude latitude housing_median_age total_rooms total_bedrooms population households "
    "median_income median_house_value"
).split()
COMPAS = (
    "age sex race juv_fel_count juv_misd_count juv_other_count priors_count c_charge_degree two_year_recid"
).split()


@dataclass(frozen=True)
class File:
    """A published file: its name, its addresses and the digests it may have."""

    name: str
    urls: tuple[str, ...]
    digests: tuple[str, ...]


@dataclass(frozen=True)
class Classic:
    """A classic set: its files, how they become a table, and facts about it."""

    files: tuple[File, ...]
    tidy: Callable[[dict[str, bytes]], Table]
    facts: dict[str, Any]


def _table(frame: pl.DataFrame, *notes: tuple[str, str, str]) -> Table:
    said = tuple({"what": what, "value": value, "how": how} for what, value, how in notes)
    return Table("table", frame, Parsing(notes=said))


def _adult(parts: dict[str, bytes]) -> Table:
    """Training and test part in one table, the dots of the test part's labels taken off."""
    import polars as pl

    first = read_table(parts["adult.data"], delimiter=",", header=False).frame
    second = read_table(parts["adult.test"], delimiter=",", header=False).frame
    frame = pl.concat([first, second])
    frame.columns = ADULT
    frame = frame.with_columns(pl.col("income").str.strip_chars_end("."))
    return _table(
        frame,
        ("parts", "2", f"adult.data ({first.height:,} rows), then adult.test ({second.height:,})"),
        (
            "labels",
            f"{second.height:,}",
            "the dot at the end of the labels of adult.test was taken off",
        ),
        ("missing values", f"{sum(frame.null_count().row(0)):,}", "'?'"),
    )


def _german(parts: dict[str, bytes]) -> Table:
    """Codes spelt out; sex from the personal status, which is then left out."""
    import polars as pl

    frame = read_table(parts["german.data"], delimiter=" ", header=False, missing=()).frame
    frame.columns = GERMAN
    words = [pl.col(name).replace_strict(codes) for name, codes in GERMAN_WORDS.items()]
    sex = pl.col("personal_status").replace_strict(GERMAN_SEX).alias("sex")
    order = [name if name != "personal_status" else "sex" for name in GERMAN]
    return _table(
        frame.with_columns(*words, sex).select(order),
        ("sex", "male, female", "from the personal status: A91, A93, A94 and A92, A95"),
        ("credit", "good, bad", "from 1 and 2"),
    )


def _compas(parts: dict[str, bytes]) -> Table:
    """ProPublica's filter: scores within 30 days of the arrest, known outcomes, no traffic offences."""
    import polars as pl

    frame = read_table(
        parts["compas-scores-two-years.csv"], delimiter=",", missing=("", "N/A")
    ).frame
    kept = frame.filter(
        pl.col("days_b_screening_arrest").cast(pl.Float64).is_between(-30, 30)
        & (pl.col("is_recid") != "-1")
        & (pl.col("c_charge_degree") != "O")
        & pl.col("score_text").is_not_null()
    )
    how = "screening within 30 days of the arrest, outcome known, no traffic offence, score given"
    return _table(kept.select(COMPAS), ("rows kept", f"{kept.height:,} of {frame.height:,}", how))


def _housing(parts: dict[str, bytes]) -> Table:
    frame = read_table(parts["cal_housing.data"], delimiter=",", header=False).frame
    frame.columns = HOUSING
    return _table(frame)


def _facts(
    target: str, sensitive: list[str], rows: int, columns: int, *words: str
) -> dict[str, Any]:
    source, licence, about = words
    return {
        "target": target,
        "sensitive": sensitive,
        "rows": rows,
        "columns": columns,
        "source": source,
        "licence": licence,
        "words": about,
    }


CLASSICS = {
    "adult": Classic(
        (
            File(
                "adult.data",
                (
                    f"{UCI}ml/machine-learning-databases/adult/adult.data",
                    f"{UCI}static/public/2/adult.zip#adult.data",
                ),
                ("5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",),
            ),
            File(
                "adult.test",
                (
                    f"{UCI}ml/machine-learning-databases/adult/adult.test",
                    f"{UCI}static/public/2/adult.zip#adult.test",
                ),
                ("a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",),
            ),
        ),
        _adult,
        _facts(
            "income",
            ["sex"],
            48842,
            15,
            "Becker & Kohavi (1996), Adult, UCI Machine Learning Repository",
            "CC BY 4.0",
            "people of the US census of 1994, and whether they earned more than 50,000 dollars",
        ),
    ),
    "german": Classic(
        (
            File(
                "german.data",
                (
                    f"{UCI}ml/machine-learning-databases/statlog/german/german.data",
                    f"{UCI}static/public/144/statlog+german+credit+data.zip#german.data",
                ),
                ("b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",),
            ),
        ),
        _german,
        _facts(
            "credit",
            ["sex"],
            1000,
            21,
            "Hofmann (1994), Statlog (German Credit Data), UCI Machine Learning Repository",
            "CC BY 4.0",
            "applicants for credit at a German bank, and whether they were good or bad risks",
        ),
    ),
    "compas": Classic(
        (
            File(
                "compas-scores-two-years.csv",
                (
                    "https://raw.githubusercontent.com/propublica/compas-analysis/master/"
                    "compas-scores-two-years.csv",
                ),
                (
                    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",  # as published
                    # the same without names, birth dates and case numbers
                    "a5e5c34bfd2d1f065bb12a44c0323421baf74b98b97d585915a0c2e1513ecaba",
                ),
            ),
        ),
        _compas,
        _facts(
            "two_year_recid",
            ["race"],
            6172,
            9,
            "Larson, Mattu, Kirchner & Angwin (2016), ProPublica",
            "public records; no explicit licence",
            "defendants in Broward County, Florida, and whether they were charged again within two years",
        ),
    ),
    "california-housing": Classic(
        (
            File(
                "cal_housing.data",
                (
                    "https://ndownloader.figshare.com/files/5976036#CaliforniaHousing/cal_housing.data",
                    "https://www.dcc.fc.up.pt/~ltorgo/Regression/cal_housing.tgz"
                    "#CaliforniaHousing/cal_housing.data",
                ),
                ("a2b44dcc7e1c9091b43c4f458b25cbd1f7e8068d08edd26bc4703108d3fa6214",),
            ),
        ),
        _housing,
        _facts(
            "median_house_value",
            [],
            20640,
            9,
            "Pace & Barry (1997), Statistics & Probability Letters 33; StatLib",
            "free use",
            "districts of California in the census of 1990, and the median value of their houses",
        ),
    ),
}
