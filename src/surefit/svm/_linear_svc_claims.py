"""What is claimed about a :class:`LinearSVC`, problem by problem. This module uses no solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..certificate import Claim
from ..design import as_design
from ._crammer_singer import crammer_singer_claims
from ._hard_margin import hard_margin_claims
from ._linear_claims import linear_claims, penalised_scaling, sum_claim

__all__ = ["linear_svc_claims"]

Array = NDArray[np.float64]


def linear_svc_claims(
    model: Any, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
) -> list[Claim]:
    """The claims of each binary problem, or of Crammer and Singer's."""
    design, labels = as_design(X), to_numpy(y)
    weights = _class_weights_of(model, labels, sample_weight)
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else to_numpy(model.coef_)
    b = np.broadcast_to(np.asarray(to_numpy(model.intercept_), dtype=np.float64), len(coef))
    beta = np.asarray(getattr(model, "dual_coef_", np.zeros((0, 0))))
    if model.multi_class == "crammer_singer":
        return _class_claims(
            model, design, labels, weights, sample_weight, coef, b, beta, full=full, tol=tol
        )
    loss = model._loss()
    found: list[Claim] = []
    for k, (name, signs, s) in enumerate(model._problems(labels, weights, sample_weight)):
        common: dict[str, Any] = {
            "intercept": penalised_scaling(model),
            "fit_intercept": bool(model.fit_intercept),
            "beta": beta[k] if beta.ndim == 2 and k < len(beta) else None,
            "tol": tol, "name": name,
        }  # fmt: skip
        if np.isinf(model.C):
            farkas = np.asarray(getattr(model, "farkas_", np.zeros((0, 0))))
            weights_k = farkas[k] if farkas.ndim == 2 and k < len(farkas) else None
            found += hard_margin_claims(
                design, signs, s > 0, coef[k], float(b[k]), farkas=weights_k, **common
            )
            if full and common["beta"] is not None:
                claim = sum_claim(design, common["beta"][None], coef[k][None])
                found.append(replace(claim, name=name + claim.name))
        else:
            found += linear_claims(
                design, signs, model.C * s, coef[k], float(b[k]), loss, l1=model.penalty == "l1",
                full=full, **common,
            )  # fmt: skip
    return found


def _class_claims(
    model: Any,
    design: Any,
    y: Any,
    weights: Array,
    sample_weight: Any,
    coef: Array,
    b: Any,
    beta: Array,
    *,
    full: bool,
    tol: float,
) -> list[Claim]:
    codes, c = model._class_problem(y, weights, sample_weight)
    if len(model.classes_) == 2:  # the two hyperplanes mirror each other
        coef, b = np.vstack([-0.5 * coef, 0.5 * coef]), np.concatenate([-0.5 * b, 0.5 * b])
    scaling = float(model.intercept_scaling) if model.fit_intercept else 0.0
    claims = crammer_singer_claims(
        design, codes, c, coef.T, b, scaling=scaling, beta=beta, tol=tol,
    )  # fmt: skip
    return [*claims, sum_claim(design, beta, coef)] if full else claims


def _class_weights_of(model: Any, y: Any, sample_weight: Any) -> Array:
    """Of the data at hand; where a class is missing there, each its own 1."""
    try:
        return model._class_weights(y, sample_weight)
    except ValueError:
        return np.ones(len(model.classes_))
