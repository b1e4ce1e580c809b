"""The claims about the choice along a path: which error is least, and that the errors are what they say.

For the models of :mod:`surefit.linear_model.path_cv` and :mod:`surefit.linear_model.multitask_cv`, from the
data and their public attributes alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._selection import later_claim, rescored_claim, selection_claim, unpack_folds, worst_claim
from ..certificate import Claim, Kind
from ._path_folds import mean_squares

__all__ = ["choice_claims"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def choice_claims(
    cv: Any, X: Any, y: Array, sample_weight: Array | None, *, full: bool, tol: float
) -> list[Claim]:
    """*selection*, and with ``full`` *fold models* and *scores*."""
    ratios, folds = cv._ratios(), unpack_folds(cv.folds_)
    grids = np.broadcast_to(cv.alphas_, (len(ratios), np.shape(cv.alphas_)[-1]))
    errors = cv.mse_path_.reshape(*grids.shape, len(folds))
    averages = errors.mean(axis=2)
    here = grids == cv.alpha_
    if hasattr(cv, "l1_ratio_"):
        here = here & (np.asarray(ratios) == cv.l1_ratio_)[:, None]
    chosen = float(averages[here].min()) if here.any() else math.nan
    words = f"alpha_ = {cv.alpha_:.4g}"
    claims = [selection_claim(words, -chosen, -averages, kind="error")]
    if not full:
        return [*claims, later_claim("fold models", Kind.OPTIMAL), later_claim()]
    n, p = X.shape
    known = cv.folds_ if isinstance(cv.folds_, np.ndarray) else None
    most = max(int(max(a.max(initial=0), b.max(initial=0))) for a, b in folds)
    fits = most < n if known is None else len(known) == n
    if not fits or cv.fold_coef_.shape[0] != len(folds) or cv.fold_coef_.shape[-1] != p:
        why = f"the recorded folds, or their models, are not of data of the shape {X.shape}"
        return [*claims, Claim.undecided("scores", why, Kind.EXACT, "GEN-7")]
    recorded = errors[tuple(np.argwhere(here)[int(np.argmin(averages[here]))])] if here.any() \
        else np.full(len(folds), math.nan)  # fmt: skip
    return claims + _fold_claims(cv, X, y, sample_weight, folds, recorded, tol)


def _fold_claims(
    cv: Any,
    X: Any,
    y: Array,
    sample_weight: Array | None,
    folds: list[Any],
    recorded: Array,
    tol: float,
) -> list[Claim]:
    """The fold models are optimal where they were fitted, and err as recorded where they were not."""
    X = X.tocsr() if sp.issparse(X) else X
    optimal, errors, floors = [], [], []
    for k, (train, test) in enumerate(folds):
        model = cv._model()
        model.coef_, model.intercept_ = cv.fold_coef_[k], cv.fold_intercept_[k]
        s = None if sample_weight is None else sample_weight[train]
        optimal.append(model._certify(X[train], y[train], s, full=False, tol=tol)[0])
        coef = np.atleast_2d(cv.fold_coef_[k])[:, :, None]
        weights = None if sample_weight is None else sample_weight[test]
        offsets = np.atleast_1d(cv.fold_intercept_[k])[:, None]
        Y = y[test].reshape(len(test), -1)
        errors.append(float(mean_squares(X[test], Y, weights, coef, offsets)[0]))
        size = float(np.max(np.abs(Y), initial=0.0)) + math.sqrt(abs(errors[-1]))
        floors.append(64.0 * _EPS * math.sqrt(X.shape[1]) * size * (size + 1e-300))
    return [
        worst_claim("fold models", "on its training rows", optimal),
        rescored_claim(
            recorded, np.array(errors), np.array(floors),
            f"the errors of the chosen alpha in {len(folds)} folds",
        ),
    ]  # fmt: skip
