"""What the fitted attributes of a cross-validated logistic regression have in common with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._selection import unpack_folds
from ._attribute_checks import wrong_counts, wrong_folds, wrong_values
from ._logistic_cv_spellings import checked_Cs, checked_ratios, l1_share, tables

__all__ = ["wrong_grid"]


def wrong_grid(cv: Any, n: int, p: int) -> Iterator[str]:
    """The grid is that of the parameters, and every table has one entry for each point and fold."""
    yield from wrong_values("Cs_", cv.Cs_, checked_Cs(cv))
    ratios = checked_ratios(cv)
    if np.asarray(cv.l1_ratios_).tolist() != np.asarray(ratios).tolist():
        yield f"l1_ratios_ are {np.asarray(cv.l1_ratios_).tolist()}, the parameters ask for {ratios}"
    yield from wrong_folds(cv.folds_, n)
    if not all(isinstance(name, str) for name in cv.scored_with_):
        yield f"scored_with_ is {cv.scored_with_!r}, expected names"
    labels = cv.classes_[1:] if len(cv.classes_) == 2 else cv.classes_
    folds = len(unpack_folds(cv.folds_))
    grid = (folds, len(ratios), len(cv.Cs_))
    yield from _wrong_tables(cv, labels, grid, p + int(cv.fit_intercept))
    legacy = isinstance(cv.scores_, dict)
    if legacy != (cv.use_legacy_attributes is not False):
        yield f"scores_ has not the form of use_legacy_attributes={cv.use_legacy_attributes!r}"
    shape: tuple[int, ...] = grid
    if legacy:
        plain = ratios == [None]
        shape = (1, grid[0], grid[2]) if plain else (1, grid[0], grid[2], grid[1])
    yield from wrong_counts(cv, n_iter_=shape)
    yield from _wrong_choice(cv, len(labels) if legacy else 0)


def _wrong_tables(cv: Any, labels: Any, grid: tuple[int, ...], size: int) -> Iterator[str]:
    """Scores and coefficients along the paths."""
    if isinstance(cv.scores_, dict):
        for name in ("scores_", "coefs_paths_"):
            if list(getattr(cv, name)) != list(labels):
                yield f"{name} has the keys {list(getattr(cv, name))}, the classes are {list(labels)}"
    scores, coefs = tables(cv)
    if np.shape(scores) != grid:
        yield f"scores_ are those of a grid {np.shape(scores)}, folds and parameters give {grid}"
    if np.asarray(scores).dtype.kind != "f":
        yield f"scores_ are {np.asarray(scores).dtype}, and a fit leaves floats"
    wanted = (*grid, len(labels), size)
    if np.shape(coefs) != wanted:
        yield f"coefs_paths_ hold an array {np.shape(coefs)}, folds and parameters give {wanted}"


def _wrong_choice(cv: Any, several: int) -> Iterator[str]:
    """``C_`` and ``l1_ratio_``: numbers, or in the legacy form one number for each class."""
    for name in ("C_", "l1_ratio_"):
        value = getattr(cv, name)
        shape = (several,) if several else ()
        if np.shape(value) != shape:
            yield f"{name} has the shape {np.shape(value)}, expected {shape}"
        elif len(set(np.ravel(np.asarray(value, dtype=object)).tolist())) > 1:
            yield f"{name} differs between the classes, which were fitted together"
    ratio = np.ravel(np.asarray(cv.l1_ratio_, dtype=object))[0]
    known = {l1_share(cv, r) for r in cv.l1_ratios_.tolist()}
    if cv.refit and l1_share(cv, ratio) not in known:
        yield f"l1_ratio_ is {ratio!r}, which is not in l1_ratios_"
