r"""From a table of words, numbers and dates to a matrix: one encoder, learnt on the given rows only.

A number x becomes (x - mean) / scale with the mean and standard deviation of the training rows, a date its
days since 1970, likewise; a missing value takes the training median and, where the training rows had missing
values, sets an indicator. A category becomes a column of 0 and 1 for each value (one column for two values).
With more than ``max_categories`` values the rare ones are pooled into one.

Guarantee: a row's code depends on that row and on the fitted numbers, on nothing else; so that an encoder
fitted inside a fold cannot see the rows it is judged on, and new rows are coded as the old ones were.
What a new row has that the training rows had not is counted by :meth:`TableEncoder.report_unseen`.

References
----------
Hastie, Tibshirani & Friedman (2009), section 7.10.2 (preprocessing belongs inside the folds).
"""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .data._dates import days
from .data._roles import Column, as_text, describe, numbers
from .data._words import TableError, listed, near, shown
from .data.table import as_frame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TableEncoder"]

Array = NDArray[np.float64]
Feature = dict[str, Any]
USED = ("numeric", "date", "categorical")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Code the columns of a table as a matrix of float64.

    Parameters
    ----------
    columns : list of dict, optional
        The columns of a schema, ``[column.to_dict() for column in schema.features]``; those that do not
        enter a model are passed over. Without it, the roles are proposed from the training rows.
    max_categories : int, default=50
        With more categories than this, the rare ones are pooled.
    min_frequency : int, default=10
        When pooling, a category with fewer training rows is rare.
    numeric : {"standard", "none"}, default="standard"
        Whether numbers and dates are standardised.
    missing : {"median+indicator", "median"}, default="median+indicator"
        What stands for a missing value.
    rare : str, default="other"
        Name of the pooled category.

    Attributes
    ----------
    features_ : list of dict
        One for each column of the matrix: ``name``, ``column``, ``kind`` (``"numeric"``, ``"date"``,
        ``"missing"``, ``"category"``), ``category``, ``mean``, ``scale``, ``median`` and ``integer``.
    blocks_ : dict
        Table column to the places of its matrix columns.
    categories_ : dict
        Table column to its categories, the pooled one last.
    pooled_ : dict
        Table column to whether rare categories are pooled.
    known_ : dict
        Table column to all categories of the training rows.
    specs_ : list of dict
        The columns that are coded, with their roles.
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> from surefit.data import read_table
    >>> from surefit.preprocessing import TableEncoder
    >>> table = read_table(b"age,town\\n20,Ulm\\n40,Bonn\\n?,Kiel\\n")
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age missing', 'town=Bonn', 'town=Kiel', 'town=Ulm']
    >>> encoder.transform(table).round(2)
    array([[-1.22,  0.  ,  0.  ,  0.  ,  1.  ],
           [ 1.22,  0.  ,  1.  ,  0.  ,  0.  ],
           [ 0.  ,  1.  ,  0.  ,  1.  ,  0.  ]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "columns": [list, tuple, None],
        "max_categories": [Interval(Integral, 2, None, closed="left")],
        "min_frequency": [Interval(Integral, 1, None, closed="left")],
        "numeric": [StrOptions({"standard", "none"})],
        "missing": [StrOptions({"median+indicator", "median"})],
        "rare": [str],
    }

    features_: list[Feature]
    blocks_: dict[str, list[int]]
    categories_: dict[str, list[str]]
    pooled_: dict[str, bool]
    known_: dict[str, list[str]]
    specs_: list[dict[str, Any]]

    def __init__(
        self,
        columns: list[dict[str, Any]] | None = None,
        *,
        max_categories: int = 50,
        min_frequency: int = 10,
        numeric: str = "standard",
        missing: str = "median+indicator",
        rare: str = "other",
    ) -> None:
        self.columns = columns
        self.max_categories = max_categories
        self.min_frequency = min_frequency
        self.numeric = numeric
        self.missing = missing
        self.rare = rare

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn means, scales, medians and categories from these rows.

        Parameters
        ----------
        X : Table, frame or dict of columns
            In a frame, null and NaN are missing; words such as ``NA`` are read by :func:`read_table`.
        y : ignored

        Returns
        -------
        TableEncoder
        """
        frame = as_frame(X)
        if not frame.height:
            raise TableError("the table has no rows to learn from; give at least one.")
        used = self._used(frame)
        self.features_, self.blocks_ = [], {}
        self.categories_, self.pooled_, self.known_ = {}, {}, {}
        self.specs_ = [column.to_dict() for column in used]
        self.feature_names_in_ = np.array([column.name for column in used], dtype=object)
        self.n_features_in_ = len(used)
        for column in used:
            series = self._column(frame, column.name)
            start = len(self.features_)
            if column.role == "categorical":
                self._learn_categories(column, as_text(series))
            else:
                self._learn_numbers(column, _values(column, series))
            self.blocks_[column.name] = list(range(start, len(self.features_)))
        return self

    def transform(self, X: Any) -> Array:
        """The matrix of these rows, C-contiguous float64.

        Parameters
        ----------
        X : Table, frame or dict of columns
            Columns that the encoder does not know are passed over.

        Returns
        -------
        array of shape (n_rows, n_features)
        """
        check_is_fitted(self, "features_")
        frame = as_frame(X)
        self._check_columns(frame)
        matrix = np.zeros((frame.height, len(self.features_)))
        for column in (Column(**spec) for spec in self.specs_):
            block = self.blocks_[column.name]
            if not block:
                continue
            series = frame.get_column(column.name)
            if column.role == "categorical":
                self._fill_categories(matrix, column.name, block, as_text(series))
            else:
                self._fill_numbers(matrix, block, _values(column, series))
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the matrix columns: ``age``, ``age missing``, ``town=Ulm``."""
        check_is_fitted(self, "features_")
        return np.array([feature["name"] for feature in self.features_], dtype=object)

    def report_unseen(self, X: Any) -> dict[str, dict[str, int]]:
        """Categories that the training rows did not have, with their counts, by column.

        Examples
        --------
        >>> from surefit.preprocessing import TableEncoder
        >>> encoder = TableEncoder().fit({"town": ["Ulm", "Bonn", "Kiel"]})
        >>> encoder.report_unseen({"town": ["Ulm", "Rom", "Rom"]})
        {'town': {'Rom': 2}}
        """
        check_is_fitted(self, "features_")
        frame = as_frame(X)
        self._check_columns(frame)
        found: dict[str, dict[str, int]] = {}
        for name, known in self.known_.items():
            text = as_text(frame.get_column(name)).drop_nulls()
            fresh = text.filter(~text.is_in(known))
            if len(fresh):
                counts = fresh.value_counts(sort=True).iter_rows()
                found[name] = {str(value): int(count) for value, count in counts}
        return found

    def missing_columns(self, X: Any) -> list[str]:
        """Columns that the encoder needs and the table lacks."""
        check_is_fitted(self, "features_")
        there = set(as_frame(X).columns)
        return [name for name in self.blocks_ if name not in there]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    # ------------------------------------------------------------------------ learning

    def _used(self, frame: pl.DataFrame) -> list[Column]:
        """The columns that are coded."""
        if self.columns is None:
            columns = [describe(frame.get_column(name)) for name in frame.columns]
        else:
            columns = [c if isinstance(c, Column) else Column(**c) for c in self.columns]
        used = [column for column in columns if column.role in USED]
        if not used:
            raise TableError(
                "no column is numeric, categorical or a date, so there is nothing to code: "
                f"{listed(f'{c.name} ({c.role})' for c in columns)}. Name the role of one."
            )
        return used

    def _column(self, frame: pl.DataFrame, name: str) -> pl.Series:
        from polars.exceptions import ColumnNotFoundError

        try:
            return frame.get_column(name)
        except ColumnNotFoundError:
            raise TableError(
                f"there is no column '{shown(name)}'. {near(name, frame.columns)}"
            ) from None

    def _learn_numbers(self, column: Column, values: Array) -> None:
        """Median of the values that are there; mean and scale after it has filled the gaps."""
        gaps = np.isnan(values)
        known = values[~gaps]
        median = float(np.median(known)) if len(known) else 0.0
        filled = np.where(gaps, median, values)
        mean, scale = _moments(filled) if self.numeric == "standard" else (0.0, 1.0)
        feature = _feature(column.name, column, "numeric" if column.role == "numeric" else "date")
        self.features_.append({**feature, "mean": mean, "scale": scale, "median": median})
        if gaps.any() and self.missing == "median+indicator":
            self.features_.append(_feature(f"{column.name} missing", column, "missing"))

    def _learn_categories(self, column: Column, text: pl.Series) -> None:
        """Categories by frequency, then name; two make one column, more than the limit are pooled."""
        counts = text.drop_nulls().value_counts().rows()
        ranked = sorted(((str(value), int(n)) for value, n in counts), key=lambda c: (-c[1], c[0]))
        names = [name for name, _ in ranked]
        self.known_[column.name] = sorted(names)
        pooled = len(names) > self.max_categories
        if pooled:
            most = [name for name, n in ranked if n >= self.min_frequency and name != self.rare]
            names = [*most[: self.max_categories - 1], self.rare]
        self.categories_[column.name], self.pooled_[column.name] = names, pooled
        if (
            len(names) == 2
        ):  # the column is 1 for the second in the alphabet, whichever fold this is
            names = self.categories_[column.name] = sorted(names)
        for name in {1: [], 2: names[1:]}.get(len(names), names):
            feature = _feature(f"{column.name}={name}", column, "category")
            self.features_.append({**feature, "category": name})
        if text.null_count() and self.missing == "median+indicator":
            self.features_.append(_feature(f"{column.name} missing", column, "missing"))

    # ------------------------------------------------------------------------ coding

    def _check_columns(self, frame: pl.DataFrame) -> None:
        there = set(frame.columns)
        absent = [name for name in self.blocks_ if name not in there]
        if not absent:
            return
        hints = " ".join(near(name, frame.columns) for name in absent[:1])
        raise TableError(
            f"the table lacks {len(absent):,} of the {len(self.blocks_):,} columns that the model was fitted "
            f"on: {listed(absent)}. {hints} Rename or add them; a missing value may stand in each row."
        )

    def _fill_numbers(self, matrix: Array, block: list[int], values: Array) -> None:
        feature = self.features_[block[0]]
        gaps = np.isnan(values)
        filled = np.where(gaps, feature["median"], values)
        matrix[:, block[0]] = (filled - feature["mean"]) / feature["scale"]
        if len(block) > 1:
            matrix[:, block[1]] = gaps

    def _fill_categories(self, matrix: Array, name: str, block: list[int], text: pl.Series) -> None:
        import polars as pl

        places = {
            self.features_[j]["category"]: j
            for j in block
            if self.features_[j]["category"] is not None
        }
        default = places.get(self.rare, -1) if self.pooled_[name] else -1
        if self.pooled_[name] and len(self.categories_[name]) == 2:
            # one column for two: a category that is neither belongs to the pooled one
            places = {category: places.get(category, -1) for category in self.categories_[name]}
        codes = text.replace_strict(
            pl.Series(list(places), dtype=pl.String),
            pl.Series(list(places.values()), dtype=pl.Int64),
            default=default,
            return_dtype=pl.Int64,
        )
        gaps = text.is_null().to_numpy()
        place = np.where(gaps, -1, codes.fill_null(-1).to_numpy())
        rows = np.flatnonzero(place >= 0)
        matrix[rows, place[rows]] = 1.0
        if self.features_[block[-1]]["kind"] == "missing":
            matrix[:, block[-1]] = gaps


def _feature(name: str, column: Column, kind: str) -> Feature:
    integer = column.integer or kind in ("missing", "category")
    return {
        "name": name,
        "column": column.name,
        "kind": kind,
        "category": None,
        "mean": 0.0,
        "scale": 1.0,
        "median": 0.0,
        "integer": bool(integer),
    }


def _moments(values: Array) -> tuple[float, float]:
    """Mean and standard deviation; the scale of a constant is 1. Large values do not overflow."""
    size = float(np.abs(values).max())
    if size == 0.0:
        return 0.0, 1.0
    mean = float(np.mean(values / size)) * size
    spread = float(np.sqrt(np.mean(((values - mean) / size) ** 2))) * size
    floor = 4 * np.finfo(np.float64).eps * size  # a constant's deviation is rounding
    return mean, spread if spread > floor else 1.0


def _values(column: Column, series: pl.Series) -> Array:
    """Numbers, or days, with NaN where missing; a value that is neither is refused with its row."""
    if (
        column.role != "date" and series.dtype.is_numeric()
    ):  # the quick way: a wide table's time goes here
        plain = np.asarray(series.to_numpy(), dtype=np.float64)
        if np.count_nonzero(~np.isfinite(plain)) == series.null_count():
            return plain
    if column.role == "date":
        array = days(series, column.date_format)
        words = f"a date ({column.date_format})" if column.date_format else "a date"
    else:
        array = np.asarray(numbers(series).fill_null(float("nan")).to_numpy(), dtype=np.float64)
        words = "a number"
    bad = np.flatnonzero(np.isnan(array) & series.is_not_null().to_numpy())
    if len(bad):
        row = int(bad[0])
        raise TableError(
            f"column '{shown(column.name)}' must hold {words} in every row, but row {row + 1:,} holds "
            f"'{shown(series[row], 40)}' ({len(bad):,} such rows in all); correct it, or leave it empty."
        )
    return array
