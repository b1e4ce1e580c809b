"""What scikit-learn spells in two ways: parameters and attributes of its cross-validated logistic regression.

Defaults and names that are on their way out come with its warnings; the fitted attributes have the shapes
that ``use_legacy_attributes`` asks for. Used by :class:`surefit.linear_model.LogisticRegressionCV`.
"""

from __future__ import annotations

import math
import numbers
import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "checked_Cs",
    "checked_ratios",
    "l1_share",
    "publish",
    "scoring_of",
    "tables",
    "warn_of_deprecated",
]

Array = NDArray[np.float64]


def warn_of_deprecated(cv: Any) -> None:
    """As scikit-learn does; to be called by ``fit`` itself, so that the warnings point at its caller."""

    def warn(message: str, kind: type[Warning] = FutureWarning) -> None:
        warnings.warn(message, kind, stacklevel=5)

    if isinstance(cv.l1_ratios, str):
        warn(
            "The default value for l1_ratios will change from None to (0.0,) in version 1.10 (of "
            "scikit-learn). From version 1.10 onwards, only array-like with values in [0, 1] will be "
            "allowed, None will be forbidden. To avoid this warning, explicitly set a value, e.g. "
            "l1_ratios=(0,)."
        )
    if cv.penalty != "deprecated":
        warn(
            "'penalty' was deprecated in version 1.8 and will be removed in 1.10. To avoid this warning, "
            "leave 'penalty' set to its default value and use 'l1_ratios' and 'Cs' instead. Use "
            "l1_ratios=(0,) instead of penalty='l2', l1_ratios=(1,) instead of penalty='l1', l1_ratios "
            "set to floats between 0 and 1 instead of penalty='elasticnet', and Cs=(np.inf,) instead "
            "of penalty=None."
        )
        if cv.penalty != "elasticnet" and not isinstance(cv.l1_ratios, str | None):
            warn(
                "l1_ratios parameter is only used when penalty is 'elasticnet'. Got "
                f"(penalty={cv.penalty})",
                UserWarning,
            )
    elif cv.l1_ratios is None:
        warn(
            "'l1_ratios=None' was deprecated in version 1.8 and will trigger an error in 1.10. Use an "
            "array-like with values in [0, 1] instead."
        )
    if isinstance(cv.scoring, str) and cv.scoring == "warn":
        warn(
            "The default value of the parameter 'scoring' will change from None, i.e. accuracy, to "
            "'neg_log_loss' in version 1.11. To silence this warning, explicitly set the scoring "
            "parameter: scoring='neg_log_loss' for the new, scoring='accuracy' or scoring=None for the "
            "old default."
        )
    if cv.use_legacy_attributes == "warn":
        warn(
            f"The fitted attributes of {type(cv).__name__} will be simplified in scikit-learn 1.10 to "
            "remove redundancy. Set `use_legacy_attributes=False` to enable the new behavior now, or set "
            "it to `True` to silence this warning during the transition period while keeping the "
            "deprecated behavior for the time being. The default value of use_legacy_attributes will "
            f"change from True to False in scikit-learn 1.10. See the docstring of {type(cv).__name__} "
            "for more details."
        )


def checked_Cs(cv: Any) -> Array:
    """The Cs of the grid."""
    if isinstance(cv.Cs, Integral):
        return np.logspace(-4, 4, int(cv.Cs))
    Cs = np.asarray(cv.Cs, dtype=np.float64)
    if Cs.ndim != 1 or len(Cs) == 0 or not (Cs > 0).all():
        raise ValueError(f"Cs must be an integer or a list of positive numbers, got {cv.Cs!r}.")
    return Cs


def checked_ratios(cv: Any) -> list[Any]:
    """The l1_ratios of the grid; [None] where they were not given."""
    ratios = None if isinstance(cv.l1_ratios, str) else cv.l1_ratios
    sound = ratios is not None and len(ratios) > 0 and all(
        isinstance(r, numbers.Number) and 0 <= r <= 1 for r in ratios  # type: ignore[operator]
    )  # fmt: skip
    if (cv.penalty == "elasticnet" or ratios is not None) and not sound:
        raise ValueError(
            f"l1_ratios must be an array-like of numbers between 0 and 1; got (l1_ratios={ratios!r})"
        )
    return [None] if ratios is None else list(ratios)


def l1_share(cv: Any, ratio: Any) -> float:
    """l1_ratio in scikit-learn's old and new spellings."""
    return float({"l1": 1.0, "l2": 0.0}.get(str(cv.penalty), ratio or 0.0))


def scoring_of(cv: Any) -> Any:
    """``scoring``; None for the default."""
    return None if isinstance(cv.scoring, str) and cv.scoring == "warn" else cv.scoring


def publish(
    cv: Any, ratios: list[Any], scores: Array, coefs: Array, iterations: NDArray[np.int32]
) -> None:
    """The fitted attributes in the shapes of ``use_legacy_attributes``."""
    cv.l1_ratios_ = np.asarray(ratios)
    if cv.use_legacy_attributes is False:
        cv.scores_, cv.coefs_paths_, cv.n_iter_ = scores, coefs, iterations
        cv.l1_ratio_ = l1_share(cv, cv.l1_ratio_)
        return
    labels = cv.classes_[1:] if len(cv.classes_) == 2 else cv.classes_
    cv.C_ = np.full(len(labels), cv.C_)
    cv.l1_ratio_ = np.asarray([cv.l1_ratio_] * len(labels))
    plain = ratios == [None]  # without l1_ratios, without their dimension
    table = scores[:, 0] if plain else scores.swapaxes(1, 2)
    paths = coefs[:, 0] if plain else coefs.swapaxes(1, 2)
    cv.n_iter_ = (iterations[:, 0] if plain else iterations.swapaxes(1, 2))[None]
    cv.scores_ = dict.fromkeys(labels, table)
    cv.coefs_paths_ = {label: paths[..., k, :] for k, label in enumerate(labels)}


def tables(cv: Any) -> tuple[Array, Array]:
    """``scores_`` (folds, ratios, Cs) and ``coefs_paths_`` (folds, ratios, Cs, classes, dof)."""
    scores, coefs = cv.scores_, cv.coefs_paths_
    if not isinstance(scores, dict):
        return scores, coefs
    table = np.asarray(next(iter(scores.values())))
    if any(not np.array_equal(table, other, equal_nan=True) for other in scores.values()):
        table = np.full_like(table, math.nan)  # one table, once for each class
    paths = np.stack(list(coefs.values()), axis=-2)
    if table.ndim == 2:
        return table[:, None], paths[:, None]
    return table.swapaxes(1, 2), paths.swapaxes(1, 2)
