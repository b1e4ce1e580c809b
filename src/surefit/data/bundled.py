"""Data sets that come with the package, as tables, with their source and what to predict.

``mortgages`` and ``admissions`` are about decisions on people and have a sensitive column; the others are
scikit-learn's. See ``bundled/SOURCES.md`` for where the files come from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np

from ._classics import CLASSICS
from ._words import TableError, near, shown
from .reading import read_table
from .table import Table

__all__ = ["about", "load", "names"]

# Bickel, Hammel & O'Connell (1975): department, then admitted and rejected men, admitted and rejected women.
_ADMISSIONS = {
    "A": (512, 313, 89, 19),
    "B": (353, 207, 17, 8),
    "C": (120, 205, 202, 391),
    "D": (138, 279, 131, 244),
    "E": (53, 138, 94, 299),
    "F": (22, 351, 24, 317),
}


def _mortgages() -> Table:
    data = files("surefit.data").joinpath("bundled", "mortgages.csv.gz").read_bytes()
    return read_table(data)


def _admissions() -> Table:
    cells = [("man", "yes"), ("man", "no"), ("woman", "yes"), ("woman", "no")]
    rows = [
        (department, *cell)
        for department, counts in _ADMISSIONS.items()
        for cell, count in zip(cells, counts)
        for _ in range(count)
    ]
    order = np.random.default_rng(1973).permutation(len(rows))  # no row order to learn from
    department, gender, admitted = zip(*(rows[i] for i in order))
    return read_table({"department": department, "gender": gender, "admitted": admitted})


def _sklearn(loader: str, target: str, labels: bool = True, **options: Any) -> Callable[[], Table]:
    def make() -> Table:
        import sklearn.datasets

        bunch = getattr(sklearn.datasets, loader)(**options)
        columns: dict[str, Any] = {
            str(name).replace(" (cm)", "").replace(" ", "_").replace("/", "_"): bunch.data[:, j]
            for j, name in enumerate(bunch.feature_names)
        }
        columns[target] = bunch.target_names[bunch.target] if labels else bunch.target
        if "sex" in columns:
            columns["sex"] = np.where(columns["sex"] == 1, "code 1", "code 2")
        return read_table(columns)

    return make


@dataclass(frozen=True)
class _Set:
    make: Callable[[], Table]
    target: str
    sensitive: tuple[str, ...]
    rows: int
    columns: int
    source: str
    licence: str
    words: str


SETS = {
    "mortgages": _Set(
        _mortgages,
        "denied",
        ("african_american",),
        2380,
        14,
        "Home Mortgage Disclosure Act data, Federal Reserve Bank of Boston; Munnell, Tootell, Browne & "
        "McEneaney (1996), American Economic Review 86; as used in Stock & Watson, Introduction to "
        "Econometrics",
        "public domain (a work of the Federal Reserve System)",
        "mortgage applications in Boston in 1990, and whether they were denied",
    ),
    "admissions": _Set(
        _admissions,
        "admitted",
        ("gender",),
        4526,
        3,
        "Bickel, Hammel & O'Connell (1975), Science 187, 398-404",
        "published counts",
        "applications to the six largest departments of Berkeley's graduate school in 1973",
    ),
    "breast-cancer": _Set(
        _sklearn("load_breast_cancer", "diagnosis"),
        "diagnosis",
        (),
        569,
        31,
        "Wolberg, Street & Mangasarian (1995), UCI; from scikit-learn",
        "CC BY 4.0",
        "measurements of cell nuclei, and whether the tumour was malignant",
    ),
    "iris": _Set(
        _sklearn("load_iris", "species"),
        "species",
        (),
        150,
        5,
        "Fisher (1936), UCI; from scikit-learn",
        "CC BY 4.0",
        "sizes of the flowers of three species of iris",
    ),
    "wine": _Set(
        _sklearn("load_wine", "cultivar"),
        "cultivar",
        (),
        178,
        14,
        "Forina et al. (1991), UCI; from scikit-learn",
        "CC BY 4.0",
        "chemical analyses of wines of three cultivars",
    ),
    "diabetes": _Set(
        _sklearn("load_diabetes", "progression", labels=False, scaled=False),
        "progression",
        ("sex",),
        442,
        11,
        "Efron, Hastie, Johnstone & Tibshirani (2004), Annals of Statistics 32; from scikit-learn",
        "free use",
        "patients with diabetes, and how far the disease had progressed a year later",
    ),
}


def names() -> list[str]:
    """Names of the bundled sets."""
    return list(SETS)


def _find(name: str) -> _Set:
    if name not in SETS:
        hint = near(str(name), names()).replace("The columns are", "The sets are")
        raise TableError(f"there is no bundled data set '{shown(name)}'. {hint}")
    return SETS[name]


def load(name: str) -> Table:
    """A bundled data set.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    Table

    Examples
    --------
    >>> from surefit.data import load
    >>> table = load("admissions")
    >>> table.rows, table.columns
    (4526, ['department', 'gender', 'admitted'])
    """
    return replace(_find(name).make(), name=name)


def about(name: str) -> dict[str, Any]:
    """Target, sensitive columns, size, source, licence and a sentence about a bundled or classic set.

    Examples
    --------
    >>> from surefit.data import about
    >>> about("mortgages")["target"]
    'denied'
    """
    if name in CLASSICS:
        return dict(CLASSICS[name].facts)
    found = _find(name)
    facts = {key: value for key, value in vars(found).items() if key != "make"}
    return {**facts, "sensitive": list(found.sensitive)}
