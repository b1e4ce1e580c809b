"""Model selection with guarantees: scikit-learn's names, and what may be said about the result.

Splitters, grids and displays are scikit-learn's own; the searches, :func:`cross_validate`, the curves and
:class:`HoldOut` add bounds on true losses, and :func:`bias_variance` takes an error apart.
"""

from __future__ import annotations

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
from .search import GridSearchCV, RandomizedSearchCV
from .validation import cross_val_score, cross_validate

__all__ = [
    "BaseCrossValidator",
    "BaseShuffleSplit",
    "FixedThresholdClassifier",
    "GridSearchCV",
    "GroupKFold",
    "GroupShuffleSplit",
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
    "check_cv",
    "clopper_pearson",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "empirical_bernstein",
    "hoeffding_radius",
    "permutation_test_score",
    "selection_excess",
    "train_test_split",
]
