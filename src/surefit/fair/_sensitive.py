"""Where an estimator finds the sensitive attribute: in columns of X, or beside X.

``sensitive_columns`` names columns of X (by place or by name), so that the estimator works in a pipeline;
their numbers are used as they are, which for a category means its one-hot columns. Or ``fit(X, y,
sensitive=labels)`` gives labels of any kind beside X, which become one indicator a group. Both ways the
rows of the fit are one matrix: X itself, or X with the number of the group as its last column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import Certified
from ..certificate import DEFAULT_TOLERANCE, Certificate, Claim, Kind, verify
from ._groups import as_codes, columns_of, crossed, shown

__all__ = [
    "Beside",
    "UsesSensitive",
    "group_codes",
    "labels_claim",
    "one_column",
    "wrong_shape",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Beside:
    """X, and the labels of the sensitive attribute beside it."""

    X: Any
    sensitive: Any


def one_column(sensitive: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Names and codes of one attribute; several columns are crossed."""
    parts = [
        as_codes(column, f"sensitive[{name!r}]") for name, column in columns_of(sensitive).items()
    ]
    return parts[0] if len(parts) == 1 else crossed(parts)


def group_codes(
    sensitive: Any, known: list[str], n: int, *, strict: bool = True
) -> NDArray[np.int64]:
    """The place of each row's group among the groups of the fit; -1 for a new one, unless strict."""
    names, codes = one_column(sensitive)
    if len(codes) != n:
        raise ValueError(
            f"sensitive has {len(codes)} rows, X has {n}: give one value for each row."
        )
    new = [name for name in names if name not in known]
    if new and strict:
        raise ValueError(
            f"sensitive has the group {shown(new[0])!r}, which the fit did not see (it saw "
            f"{', '.join(map(shown, known[:8]))}): fit again with rows of it."
        )
    places = {name: place for place, name in enumerate(known)}
    return np.array([places.get(name, -1) for name in names], dtype=np.int64)[codes]


def wrong_shape(model: Any, name: str, *shape: int) -> Iterator[str]:
    """A sentence where a fitted array has another shape than its fit gave it."""
    found = np.shape(getattr(model, name))
    if found != shape:
        yield f"{name} has shape {found}, and should have {shape}"


def labels_claim(y: Any, classes: Any) -> Claim | None:
    """The labels of a model are those of the rows; None where they are, which needs no sentence."""
    found = np.unique(y)
    if np.array_equal(found, np.asarray(classes)):
        return None
    words = (
        f"the rows have the labels {shown(found.tolist(), 80)}, the model has "
        f"{shown(np.asarray(classes).tolist(), 80)}"
    )
    return Claim.check("labels", words, Kind.EXACT, 1.0, 0.0, "FAIR-6")


class UsesSensitive(Certified):
    """Mixin: the sensitive attribute from ``sensitive_columns`` or from the keyword ``sensitive``."""

    sensitive_columns: Any
    sensitive_names_: list[str]
    sensitive_places_: list[int]

    def verify(
        self, X: Any, y: Any = None, *, sensitive: Any = None, tol: float = DEFAULT_TOLERANCE
    ) -> Certificate:
        """All claims again, as :func:`surefit.verify` does, for a fit with ``sensitive=`` beside X too."""
        given = X if sensitive is None else Beside(X, sensitive)
        return verify(self, given, y, tol=tol)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        places, width = list(self.sensitive_places_), self.n_features_in_
        if not all(type(place) is int and 0 <= place < width for place in places):
            yield f"sensitive_places_ are {places}, which are not columns of X"
        elif self.sensitive_columns is None:
            if places:
                yield "sensitive_places_ names columns, and sensitive_columns is None"
            names = list(self.sensitive_names_)
            if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
                yield "sensitive_names_ are not distinct names"
        elif places != self._places_of(self.sensitive_columns, width):
            yield "sensitive_places_ are not the places of sensitive_columns"

    def _n_attributes(self) -> int:
        """How many columns :meth:`_attributes` gives."""
        beside = self.sensitive_columns is None
        return len(self.sensitive_names_ if beside else self.sensitive_places_)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        sensitive = None
        if isinstance(X, Beside):
            X, sensitive = X.X, X.sensitive
        X, y = self._validate_rows(X, y, reset=reset)
        if reset:
            self._find_columns(sensitive, X.shape[1])
        # other data, at a verification, are a claim that fails, not an error
        return self._joined(X, sensitive, reset=reset, strict=reset), y, None

    def _validate_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        """X and y as arrays; a transformer has no y."""
        raise NotImplementedError

    def _find_columns(self, sensitive: Any, width: int) -> None:
        """Where the sensitive columns are, once it is clear that they are given once."""
        if (sensitive is None) == (self.sensitive_columns is None):
            given = "both" if sensitive is not None else "neither"
            raise ValueError(
                f"{given} of sensitive_columns and fit(..., sensitive=...) was given: name columns of X, or "
                "give the labels beside X."
            )
        columns = None if sensitive is not None else self.sensitive_columns
        self.sensitive_places_ = [] if columns is None else self._places_of(columns, width)

    def _places_of(self, columns: Any, width: int) -> list[int]:
        """The places of columns of X that are given by place or by name."""
        known = list(getattr(self, "feature_names_in_", []))
        places = []
        for column in [columns] if isinstance(columns, str | int | np.integer) else columns:
            if isinstance(column, str):
                if column not in known:
                    raise ValueError(
                        f"sensitive_columns has {column!r}, which is no column of X"
                        + (
                            f" ({', '.join(map(str, known[:8]))})"
                            if known
                            else ", which has no names"
                        )
                        + ": give a name or a place."
                    )
                places.append(known.index(column))
            elif -width <= column < width:
                places.append(int(column) % width)
            else:
                raise ValueError(
                    f"sensitive_columns has {column!r}, but X has {width} columns: give places below {width}."
                )
        return places

    def _joined(self, X: Any, sensitive: Any, *, reset: bool, strict: bool = True) -> Any:
        """One matrix that holds features and sensitive attribute."""
        if sensitive is None:
            if self.sensitive_columns is None:
                raise ValueError(
                    f"this {type(self).__name__} was fitted with sensitive=... beside X: give sensitive=... "
                    "again (verification: model.verify(X, y, sensitive=...))."
                )
            return X
        if self.sensitive_columns is not None:
            raise ValueError("sensitive_columns are part of X already: leave sensitive=... out.")
        if reset:
            self.sensitive_names_ = one_column(sensitive)[0]
        codes = group_codes(sensitive, self.sensitive_names_, X.shape[0], strict=strict)
        return np.column_stack([X, codes.astype(X.dtype)])

    def _feature_places(self, width: int) -> list[int]:
        """The columns of X that are features."""
        kept = [j for j in range(width) if j not in set(self.sensitive_places_)]
        if not kept:
            raise ValueError(
                f"X has {width} feature(s), and all of them are sensitive_columns: nothing is left to use."
            )
        return kept

    def _columns(self, Z: Any, places: list[int]) -> Any:
        """These columns, row by row in memory; not copied where they are the first ones."""
        if places == list(range(len(places))):
            return Z[:, : len(places)]
        return np.ascontiguousarray(Z[:, places])

    def _attributes(self, Z: Any) -> Array:
        """The sensitive attribute as numbers: the columns as they are, or one indicator a group."""
        if self.sensitive_columns is None:
            codes = Z[:, -1].astype(np.int64)
            indicators = np.eye(len(self.sensitive_names_) + 1)[:, :-1]  # none, for a new group
            return indicators[codes]
        return np.asarray(Z[:, self.sensitive_places_], dtype=np.float64)
