"""Warnings of logistic regression in scikit-learn's words, which code that filters them relies on."""

from __future__ import annotations

import warnings
from typing import Any

__all__ = ["NOT_CONVERGED", "warn_of_deprecated"]

_SAG = "The max_iter was reached which means the coef_ did not converge; increase it"
NOT_CONVERGED = {
    "lbfgs": "lbfgs failed to converge. Increase the number of iterations (max_iter)",
    "newton-cg": "newton-cg failed to converge. Increase the number of iterations (max_iter)",
    "newton-cholesky": "Newton solver did not converge after {} iterations. Increase max_iter",
    "liblinear": "Liblinear failed to converge, increase the number of iterations (max_iter)",
    "sag": _SAG,
    "saga": _SAG,
}


def warn_of_deprecated(model: Any) -> None:
    """Parameters that scikit-learn deprecates; called from ``fit``, to whose caller the warnings point."""
    if model.n_jobs is not None:
        warnings.warn(
            "'n_jobs' has no effect since 1.8 and will be removed in 1.10. You provided "
            f"'n_jobs={model.n_jobs}', please leave it unspecified.",
            FutureWarning,
            stacklevel=3,
        )
    if model.l1_ratio is None:
        if model.penalty == "elasticnet":
            raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
        if model.penalty == "deprecated":
            warnings.warn(
                "'l1_ratio=None' was deprecated in version 1.8 and will trigger an error in 1.10. "
                "Use 0<=l1_ratio<=1 instead.",
                FutureWarning,
                stacklevel=3,
            )
    if model.penalty == "deprecated":
        return
    warnings.warn(
        "'penalty' was deprecated in version 1.8 and will be removed in 1.10. Use l1_ratio=0 instead "
        "of penalty='l2', l1_ratio=1 instead of penalty='l1', l1_ratio between 0 and 1 instead of "
        "penalty='elasticnet', and C=np.inf instead of penalty=None.",
        FutureWarning,
        stacklevel=3,
    )
    if model.penalty is None and model.C != 1.0:
        warnings.warn(
            "Setting penalty=None will ignore the C and l1_ratio parameters", stacklevel=3
        )
    ratio = model.l1_ratio
    if model.penalty != "elasticnet" and ratio is not None and 0 < ratio < 1:
        warnings.warn(
            "l1_ratio parameter is only used when penalty is 'elasticnet'. Got "
            f"(penalty={model.penalty})",
            stacklevel=3,
        )
    if {"l2": 0, "l1": 1}.get(str(model.penalty), ratio) != ratio:
        warnings.warn(
            f"Inconsistent values: penalty={model.penalty} with l1_ratio={ratio}. penalty is "
            "deprecated. Please use l1_ratio only.",
            stacklevel=3,
        )
