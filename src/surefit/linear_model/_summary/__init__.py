"""``model.summary(X, y)``: the checks, the model's own description, and the table made of it."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._namespace import to_numpy
from ...design import as_design
from ...fingerprint import fingerprint
from ...inference.summary import Noise, Summary, intervals
from . import gaussian, logistic, robust, selected  # noqa: F401  (they register their models)
from .core import Array, Estimates, Sample, describe

__all__ = ["summarize"]


def summarize(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    level: float = 0.95,
    covariance: str = "auto",
    weights: str = "precision",
    feature_names: Any = None,
    reference: Any = None,
) -> Summary:
    """The summary of a fitted linear model; see ``LinearRegression.summary``."""
    check_is_fitted(model)
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level!r}: 0.95 is usual.")
    if weights not in ("precision", "frequency"):
        raise ValueError(f"weights must be 'precision' or 'frequency', got {weights!r}.")
    columns = getattr(y, "columns", None)
    given = sample_weight
    names = _feature_names(model, X, feature_names)
    X, y, sample_weight = model._validate_training_data(X, y, sample_weight, reset=False)
    same = _same_data(model, X, y, sample_weight)
    design = as_design(X)
    s = np.ones(design.shape[0])
    if sample_weight is not None:
        s = to_numpy(sample_weight).astype(np.float64)
    sample = Sample(
        X,
        y,
        sample_weight,
        design,
        s,
        _copies(s, given is not None, weights),
        covariance,
        names,
        reference,
        level,
    )
    found = describe(model, sample)
    if not found.outputs and len(found.coef) > 1:
        found.outputs = tuple(f"y{t}" for t in range(len(found.coef)))
        if columns is not None and len(columns) == len(found.coef):
            found.outputs = tuple(str(name) for name in columns)
    found.notes = _data_notes(model, same) + found.notes
    return _table(model, sample, found, level, same)


def _table(
    model: Any, sample: Sample, found: Estimates, level: float, same: bool | None
) -> Summary:
    """Standard errors, tests and intervals from the covariance; one output loses its axis."""
    errors = np.full(found.coef.shape, math.nan)
    if found.covariance is not None:
        with np.errstate(invalid="ignore"):
            errors = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
        if found.identified is not None:
            errors = np.where(found.identified, errors, math.nan)
    df = np.reshape(np.asarray(found.df, dtype=np.float64), (-1, 1))
    statistic, p_value, low, high = intervals(found.coef, errors, df, level)
    nothing = np.full_like(errors, math.nan)
    if not found.has_intervals:
        low, high = nothing, nothing
    if not (found.tested and found.has_intervals):
        statistic, p_value = nothing, nothing
    if found.low is not None and found.high is not None and found.p_value is not None:
        low, high, p_value = found.low, found.high, found.p_value
    log_likelihood = np.asarray(found.log_likelihood, dtype=np.float64)
    counted = np.asarray(found.df_model, dtype=np.float64)
    noise = Noise(
        found.noise.family,
        *(_number(v) for v in (found.noise.scale, found.noise.variance, found.noise.variance_mle)),
    )
    k = found.coef.shape[1]
    return Summary(
        model=type(model).__name__,
        response=found.response,
        names=sample.parameters(k > len(sample.names)),
        outputs=found.outputs,
        coef=_squeezed(found.coef),
        std_error=_squeezed(errors),
        statistic=_squeezed(statistic),
        p_value=_squeezed(p_value),
        low=_squeezed(low),
        high=_squeezed(high),
        covariance=None if found.covariance is None else _squeezed(found.covariance),
        fisher_information=None if found.fisher is None else _squeezed(found.fisher),
        level=level,
        method=found.method,
        noise=noise,
        n_samples=sample.n,
        df_model=_number(counted),
        df_resid=_number(found.df_resid),
        log_likelihood=_number(log_likelihood),
        aic=_number(2.0 * counted - 2.0 * log_likelihood),
        bic=_number(math.log(sample.n) * counted - 2.0 * log_likelihood),
        r2=_number(found.r2),
        r2_kind=found.r2_kind,
        condition=found.condition,
        feature_scale=np.append(np.full(k - len(sample.names), math.nan), sample.spread()),
        same_data=same,
        notes=tuple(found.notes),
    )


def _squeezed(array: Array) -> Array:
    """Without the axis of outputs where there is one."""
    return array[0] if len(array) == 1 else array


def _number(value: Any) -> Any:
    """A float where there is one number."""
    array = np.asarray(value, dtype=np.float64)
    return float(array.ravel()[0]) if array.size == 1 else array


def _feature_names(model: Any, X: Any, given: Any) -> tuple[str, ...]:
    """Those given, those the model was fitted with, those of X, or x0, x1, ..."""
    p = int(model.n_features_in_)
    if given is not None:
        names = tuple(str(name) for name in given)
        if len(names) != p:
            raise ValueError(f"feature_names has {len(names)} names, the model has {p} features.")
        return names
    found = getattr(model, "feature_names_in_", None)
    found = getattr(X, "feature_names", None) if found is None else found
    return tuple(f"x{j}" for j in range(p)) if found is None else tuple(str(name) for name in found)


def _copies(s: Array, weighted: bool, meaning: str) -> Array:
    """The observations behind each row."""
    if meaning == "frequency" and weighted:
        if not np.array_equal(s, np.round(s)):
            raise ValueError(
                "weights='frequency' says how often each row was seen, but sample_weight has values such "
                f"as {float(s[s != np.round(s)][0])!r}: use whole numbers, or weights='precision'."
            )
        return s
    return (s > 0).astype(np.float64)


def _same_data(model: Any, X: Any, y: Any, sample_weight: Any) -> bool | None:
    recorded = getattr(model, "certificate_", None)
    if recorded is None or not recorded.data_id:
        return None
    same = bool(recorded.data_id == fingerprint(X, y, sample_weight))
    if not same:
        warnings.warn(
            f"summary of {type(model).__name__}: X, y and sample_weight are not the data of the fit (their "
            "fingerprints differ). Standard errors belong to the data that the coefficients came from: "
            "pass those.",
            stacklevel=4,
        )
    return same


def _data_notes(model: Any, same: bool | None) -> list[str]:
    if same is None:
        return ["the fit was not certified, so it is not known whether these are its data."]
    notes = []
    if not same:
        notes.append(
            "these are NOT the data of the fit: the noise, the standard errors and the likelihood are "
            "those of other rows, with coefficients that are not fitted to them."
        )
    if not model.certificate_.ok:
        notes.append(
            "the certificate of the fit fails, so the coefficients are not known to be the estimate that "
            "the standard errors are about: see certificate_."
        )
    return notes
