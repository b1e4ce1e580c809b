"""Model selection with guarantees: scikit-learn's names, and what may be said about the result.

Splitters, grids and displays are scikit-learn's own; the searches, :func:`cross_validate`, the curves and
:class:`HoldOut` add bounds on true losses, and :func:`bias_variance` takes an error apart.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sklearn.model_selection import (
    BaseCrossValidator,
    BaseShuffleSplit,
    FixedThresholdClassifier,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LearningCurveDisplay,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    LeavePOut,
    ParameterGrid,
    ParameterSampler,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
    ValidationCurveDisplay,
    check_cv,
    cross_val_predict,
    permutation_test_score,
    train_test_split,
)

from .bounds import clopper_pearson, empirical_bernstein, hoeffding_radius, selection_excess

if TYPE_CHECKING:
    from .curves import learning_curve, validation_curve
    from .decomposition import BiasVariance, bias_variance
    from .holdout import HoldOut
    from .search import GridSearchCV, RandomizedSearchCV
    from .validation import cross_val_score, cross_validate

# Searches know every family of models, with its compiled kernels; bounds and splitters need none of them.
_WHERE = {
    "BiasVariance": "decomposition",
    "GridSearchCV": "search",
    "HoldOut": "holdout",
    "RandomizedSearchCV": "search",
    "bias_variance": "decomposition",
    "cross_val_score": "validation",
    "cross_validate": "validation",
    "learning_curve": "curves",
    "validation_curve": "curves",
}

__all__ = [
    "BaseCrossValidator",
    "BaseShuffleSplit",
    "BiasVariance",
    "FixedThresholdClassifier",
    "GridSearchCV",
    "GroupKFold",
    "GroupShuffleSplit",
    "HoldOut",
    "KFold",
    "LearningCurveDisplay",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "LeavePGroupsOut",
    "LeavePOut",
    "ParameterGrid",
    "ParameterSampler",
    "PredefinedSplit",
    "RandomizedSearchCV",
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedGroupKFold",
    "StratifiedKFold",
    "StratifiedShuffleSplit",
    "TimeSeriesSplit",
    "TunedThresholdClassifierCV",
    "ValidationCurveDisplay",
    "bias_variance",
    "check_cv",
    "clopper_pearson",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "empirical_bernstein",
    "hoeffding_radius",
    "learning_curve",
    "permutation_test_score",
    "selection_excess",
    "train_test_split",
    "validation_curve",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'surefit.model_selection' has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
