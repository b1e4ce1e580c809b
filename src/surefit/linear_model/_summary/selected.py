"""Summaries of models whose penalty was chosen by cross-validation, and of those with shared sparsity.

The description is that of the model with the chosen penalty. The choice itself was made with the same rows, which
no standard error below accounts for; the notes say so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..multitask import MultiTaskElasticNet
from ..path_cv import ElasticNetCV, LassoCV, MultiTaskElasticNetCV, MultiTaskLassoCV
from ..ridge import Ridge
from ..ridge_cv import RidgeCV
from .core import Estimates, Sample, describe
from .gaussian import listed

__all__: list[str] = []

_GROUPS = (
    "no standard errors: the penalty chose the features that are used at all by looking at the targets, and "
    "ordinary standard errors ignore that choice. Refit LinearRegression with the chosen features on rows that "
    "were not used to choose them."
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


def _chosen(model: Any, inner: Any, sample: Sample) -> Estimates:
    """The description of ``inner`` with the coefficients of ``model``."""
    inner.coef_, inner.intercept_ = model.coef_, model.intercept_
    estimates = describe(inner, sample)
    values = ", ".join(f"{value:.4g}" for value in np.atleast_1d(model.alpha_)[:4])
    estimates.notes.append(
        f"alpha = {values} was chosen by cross-validation on these rows; what is shown takes it as given."
    )
    return estimates
