"""The law of a certified estimator: its certificate holds, and can fail."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ..certificate import Certificate, Status, verify
from ._tools import (
    require,
)

__all__ = ["check_certificate"]

Array = NDArray[np.float64]
# Fits and verdicts are this strict: at the default of `verify` a small nudge may truly be within tolerance.
TOLERANCE = 1e-10


def check_certificate(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    nudge: float = 1e-3,
    direction: ArrayLike | None = None,
    attributes: Sequence[str] | None = None,
) -> Certificate:
    """A certificate holds at the solution, and fails when the model or the data are tampered with.

    A clone is fitted with ``tol=1e-10`` and many iterations, where it has these parameters. Its
    certificate must be ok, with finite bounds (an infinite one says nothing), and
    ``surefit.verify(model, X, y, tol=1e-10)`` must confirm it and recognise the data. A model stored in
    float32, whose rounding exceeds that, may leave claims undecided; none may fail, and at the default
    tolerance of ``verify`` some claim must hold. Then
    ``coef_`` is moved by ``nudge * ||coef_||``, and a free ``intercept_`` by
    ``nudge * (1 + |intercept_|)``: each time a claim must fail. So must one when an entry of either
    becomes NaN or infinite, or the array float16, whatever the tolerance. Finally one cell of X, one
    target, the order of the rows and the number of rows change: each time the claim ``"data"`` must fail.

    Parameters
    ----------
    estimator : surefit estimator
        Never touched: clones and copies are.
    X, y, sample_weight : array-like
        Training data. X may be sparse.
    nudge : float
        Relative length of the nudge.
    direction : array of the shape of ``coef_``, optional
        Where ``coef_`` is moved to; along itself by default. It must not be a direction in which the
        objective is flat (a null vector of X, a common shift of all softmax classes).
    attributes : sequence of str, optional
        The fitted arrays to nudge instead, each along itself: ``("dual_coef_", "intercept_")`` of a kernel
        machine, say. ``direction`` goes with the first.

    Returns
    -------
    Certificate
        Of the fitted clone.

    Raises
    ------
    AssertionError
        Naming the law, the estimator and the claims.

    Examples
    --------
    >>> from surefit.linear_model import Ridge
    >>> X, y = [[0.0], [1.0], [2.0], [4.0]], [0.0, 1.1, 1.9, 4.2]
    >>> check_certificate(Ridge(alpha=0.1), X, y).ok
    True
    """
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    y, weight = np.asarray(y), None if sample_weight is None else np.asarray(sample_weight)
    before = _state(estimator)
    model = _fit_tightly(estimator, X, y, weight)
    certificate: Certificate = model.certificate_
    require(certificate.ok, "the certificate holds at the solution", model, str(certificate))
    empty = [c.name for c in certificate.claims if c.status is Status.HOLDS and math.isinf(c.bound)]
    require(not empty, "a claim that holds has a finite bound", model, str(certificate))
    fitted = _state(model)
    again = verify(model, X, y, sample_weight=weight, tol=TOLERANCE)
    require(again.ok, "verify confirms the fit", model, str(again))
    usual = verify(model, X, y, sample_weight=weight)
    require(usual.ok, "verify confirms the fit at its default tolerance", model, str(usual))
    holding = [c.name for c in usual.claims if c.status is Status.HOLDS and c.name != "data"]
    require(bool(holding), "some claim holds at the default tolerance", model, str(usual))
    known = "data" in again and again["data"].status is Status.HOLDS
    require(known, "verify recognises the data of the fit", model, str(again))
    for name, nudged in _nudged(model, nudge, direction, attributes):
        report = verify(nudged, X, y, sample_weight=weight, tol=TOLERANCE)
        require(not report.ok, f"a nudge of {nudge:g} to {name} is noticed", model, str(report))
    for name, broken in _broken(model, _nudged_names(model, attributes)):
        report = verify(broken, X, y, sample_weight=weight)
        require(not report.ok, f"{name} is refused", model, str(report))
    for name, other_X, other_y, other_weight in _tampered(X, y, weight):
        report = verify(model, other_X, other_y, sample_weight=other_weight)
        fails = "data" in report and report["data"].status is Status.FAILS
        require(fails, f"other data ({name}) are noticed", model, str(report))
    require(_state(model) == fitted, "verify changes nothing", model, "the model changed")
    unchanged = _state(estimator) == before
    require(unchanged, "the estimator given is left alone", estimator, "it changed")
    return certificate


def _state(model: Any) -> Any:
    """Something that differs when the model does; masked arrays have no hash."""
    try:
        return joblib.hash(model)
    except ValueError:
        return pickle.dumps(model)


def _fit_tightly(estimator: Any, X: Any, y: Any, weight: Any) -> Any:
    model = clone(estimator)
    wanted = {"tol": 1e-10, "max_iter": 100_000, "certify": True}
    had = model.get_params(deep=False)
    if had.get("certify") == "full":
        wanted.pop("certify")
    model.set_params(**{name: value for name, value in wanted.items() if name in had})
    keywords = {} if weight is None else {"sample_weight": weight}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a failed claim is asserted on, with its numbers
        return model.fit(X, y, **keywords)


def _nudged(
    model: Any, nudge: float, direction: ArrayLike | None, attributes: Sequence[str] | None
) -> list[tuple[str, Any]]:
    """Copies of the model, each with one fitted array moved."""
    first, *others = _nudged_names(model, attributes)
    copies = [(first, _moved(model, first, nudge, direction))]
    return copies + [(name, _shifted(model, name, nudge)) for name in others]


def _nudged_names(model: Any, attributes: Sequence[str] | None) -> Sequence[str]:
    """The fitted arrays to tamper with: coef_ and a free intercept_ unless others are named."""
    if attributes is not None:
        return attributes
    free = model.get_params(deep=False).get("fit_intercept", False)
    return ("coef_", "intercept_") if free else ("coef_",)


def _broken(model: Any, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Copies of the model whose arrays hold a NaN, an infinity, or half-precision numbers."""
    for name in names:
        for value in (math.nan, math.inf, -math.inf):
            for row, words in ((0, "first"), (-1, "last")):
                yield f"{value} as {words} entry of {name}", _with_entry(model, name, row, value)
        yield f"{name} in float16", _with_half_precision(model, name)


def _with_entry(model: Any, name: str, row: int, value: float) -> Any:
    """A copy with one entry of a fitted array replaced."""
    values = getattr(model, name)
    if np.ndim(values) == 0 and not sp.issparse(values):
        return _replaced(model, name, type(values)(value))
    changed = values.copy()
    flat = changed.data if sp.issparse(changed) else changed
    flat.flat[row] = value
    return _replaced(model, name, changed)


def _with_half_precision(model: Any, name: str) -> Any:
    """A copy with a fitted array cast to float16; values beyond its range become infinite."""
    values = getattr(model, name)
    with np.errstate(over="ignore"):
        half = values.toarray() if sp.issparse(values) else values
        return _replaced(model, name, np.asarray(half, dtype=np.float16)[()])


def _replaced(model: Any, name: str, values: Any) -> Any:
    changed = copy.deepcopy(model)
    setattr(changed, name, values)
    return changed


def _moved(model: Any, name: str, nudge: float, direction: ArrayLike | None) -> Any:
    """A copy with a vector or matrix moved by ``nudge`` of its length."""
    values = getattr(model, name)
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    along = (
        values
        if direction is None
        else np.asarray(direction, dtype=np.float64).reshape(values.shape)
    )
    length = float(np.linalg.norm(along))
    require(length > 0.0, "there is something to nudge", model, f"{name} is 0: pass a direction")
    step = nudge * np.linalg.norm(values) / length
    return _replaced(model, name, (values + step * along).astype(values.dtype))


def _shifted(model: Any, name: str, nudge: float) -> Any:
    """A copy with the first entry moved by ``nudge * (1 + |entry|)``: softmax ignores a common shift."""
    values = np.asarray(getattr(model, name))
    shifted = np.atleast_1d(values).copy()
    shifted.flat[0] += nudge * (1.0 + abs(shifted.flat[0]))
    moved = shifted if values.ndim else type(getattr(model, name))(shifted[0])
    return _replaced(model, name, moved)


def _tampered(X: Any, y: Any, weight: Any) -> Sequence[tuple[str, Any, Any, Any]]:
    """The data with one cell, one target, the order or the number of rows changed."""
    n = X.shape[0]
    if sp.issparse(X):
        cell = X.astype(np.float64)
        cell.data[0] = cell.data[0] * (1.0 + 1e-3) if cell.data[0] else 1e-3
    else:
        cell = X.astype(np.float64)
        cell.flat[0] = cell.flat[0] * (1.0 + 1e-3) if cell.flat[0] else 1e-3
    values, counts = np.unique(y, return_counts=True)
    common = values[counts.argmax()]  # a class keeps a member when one of these changes
    row = int(np.nonzero((y == common).reshape(n, -1).any(axis=1))[0][0])
    target = y.copy()
    if y.dtype.kind == "f":
        target[row] = target[row] + 1e-3 * (1.0 + np.abs(target[row]))
    else:
        target[row] = values[values != common][0]
    order, kept = np.arange(n)[::-1], np.delete(np.arange(n), row)
    changes: list[tuple[str, Any, Any, Any]] = [
        ("one cell changed", cell, y, weight),
        ("one target changed", X, target, weight),
        ("rows reversed", X[order], y[order], None if weight is None else weight[order]),
        ("one sample dropped", X[kept], y[kept], None if weight is None else weight[kept]),
    ]
    if weight is not None:
        heavier = weight.astype(np.float64)
        heavier[0] += 1.0
        changes.append(("one weight changed", X, y, heavier))
    return changes
