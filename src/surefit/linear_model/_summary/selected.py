"""Summaries of models whose penalty was chosen by cross-validation, and of those with shared sparsity.

The description is that of the model with the chosen penalty. The choice itself was made with the same rows,
which no standard error below accounts for; the notes say so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..logistic_cv import LogisticRegressionCV
from ..multitask import MultiTaskElasticNet
from ..multitask_cv import MultiTaskElasticNetCV, MultiTaskLassoCV
from ..path_cv import ElasticNetCV, LassoCV
from ..ridge import Ridge
from ..ridge_cv import RidgeCV
from .core import Estimates, Sample, describe
from .gaussian import listed

__all__: list[str] = []

_GROUPS = (
    "no standard errors: the penalty chose the features that are used at all by looking at the targets, and "
    "ordinary standard errors ignore that choice. Refit LinearRegression with the chosen features on rows "
    "that were not used to choose them."
)


@describe.register
def _multi_task(model: MultiTaskElasticNet, sample: Sample) -> Estimates:
    estimates = listed(model, sample, _GROUPS)
    # the non-zeros are shared and shrunk: no simple count is unbiased for the degrees of freedom
    estimates.df_model = np.full(len(estimates.coef), math.nan)
    estimates.df_resid = estimates.df_model
    estimates.noise.variance[:], estimates.noise.scale[:] = math.nan, math.nan
    return estimates


@describe.register
def _ridge(model: RidgeCV, sample: Sample) -> Estimates:
    return _chosen(model, Ridge(model.alpha_, fit_intercept=model.fit_intercept), sample)


@describe.register(ElasticNetCV)
@describe.register(LassoCV)
@describe.register(MultiTaskElasticNetCV)
@describe.register(MultiTaskLassoCV)
def _path(model: Any, sample: Sample) -> Estimates:
    return _chosen(model, model._model(), sample)


@describe.register
def _logistic(model: LogisticRegressionCV, sample: Sample) -> Estimates:
    if not model.refit:
        raise ValueError(
            "refit=False: the coefficients are averages over the folds, whose distribution is not known. "
            "Fit with refit=True."
        )
    C, ratio = np.ravel(model.C_)[:1], np.ravel(np.asarray(model.l1_ratio_))[0]
    weights = model._class_weight(sample.y, sample.sample_weight)
    return _chosen(model, model._model(float(C[0]), ratio, weights), sample, "C", C)


def _chosen(
    model: Any, inner: Any, sample: Sample, name: str = "alpha", value: Any = None
) -> Estimates:
    """The description of ``inner`` with the coefficients of ``model``."""
    inner.coef_, inner.intercept_ = model.coef_, model.intercept_
    estimates = describe(inner, sample)
    value = np.atleast_1d(model.alpha_) if value is None else value
    words = ", ".join(f"{v:.4g}" for v in value[:4]) + (", ..." if len(value) > 4 else "")
    estimates.notes.append(
        f"{name} = {words} was chosen by cross-validation on these rows; what is shown takes it as given."
    )
    return estimates
