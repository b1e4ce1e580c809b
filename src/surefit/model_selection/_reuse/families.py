"""Which family serves an estimator, and which candidates it takes together.

By its very class, since a subclass may fit otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import (
    InvalidParameterError,
    validate_parameter_constraints,
)

from ...kernel_ridge import KernelRidge
from ...linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from ...neighbors import KNeighborsClassifier, KNeighborsRegressor
from ...svm import SVC, LinearSVC
from .elastic_net import ElasticNetFamily
from .family import Family
from .kernel_ridge import KernelRidgeFamily
from .linear_svc import LinearSVCFamily
from .logistic import LogisticFamily
from .neighbours import NeighboursFamily
from .pipeline import PipelineFamily
from .ridge import RidgeClassifierFamily, RidgeFamily
from .rows import Folds
from .svc import SVCFamily

__all__ = ["family_of", "groups", "weights_of"]

_FAMILIES: dict[type, type[Family]] = {
    ElasticNet: ElasticNetFamily,
    KernelRidge: KernelRidgeFamily,
    KNeighborsClassifier: NeighboursFamily,
    KNeighborsRegressor: NeighboursFamily,
    Lasso: ElasticNetFamily,
    LinearRegression: RidgeFamily,
    LinearSVC: LinearSVCFamily,
    LogisticRegression: LogisticFamily,
    Ridge: RidgeFamily,
    RidgeClassifier: RidgeClassifierFamily,
    SVC: SVCFamily,
}


def family_of(estimator: Any) -> type[Family] | None:
    """The family of an estimator, or None."""
    if type(estimator) is Pipeline:
        last = estimator.steps[-1][1] if len(estimator.steps) > 1 else None
        return PipelineFamily if type(last) in _FAMILIES else None
    return _FAMILIES.get(type(estimator))


def weights_of(estimator: Any) -> str:
    """What ``fit`` calls the sample weights."""
    if type(estimator) is Pipeline and estimator.steps:
        return f"{estimator.steps[-1][0]}__sample_weight"
    return "sample_weight"


def groups(
    estimator: Any, candidates: Sequence[dict[str, Any]], folds: Folds
) -> Iterator[tuple[list[int], Family]]:
    """Candidates that differ only in what their family takes together, and the family with them."""
    kind = family_of(estimator)
    if kind is None:
        return
    members: dict[Any, list[int]] = {}
    parts = [kind.parted(estimator, candidate) for candidate in candidates]
    for i, (fixed, _) in enumerate(parts):
        key = tuple((name, _key(fixed[name])) for name in sorted(fixed))
        members.setdefault(key, []).append(i)
    for numbers in members.values():
        fixed = parts[numbers[0]][0]
        try:
            template = clone(estimator).set_params(**fixed)
        except (ValueError, TypeError):  # no such parameter
            continue
        if kind is PipelineFamily:
            values = [parts[i][1] for i in numbers]
            if family_of(template) is kind and len(numbers) > 1:
                yield numbers, PipelineFamily(template, values, folds, groups)
            continue
        template.__dict__["certify"] = False  # the models of the folds carry no certificates
        varying = {name: getattr(template, name) for name in kind.varies if hasattr(template, name)}
        valid, values = [], []
        for i in numbers:
            own = {name: parts[i][1].get(name, varying[name]) for name in varying}
            if _in_range(template, own) and kind.takes(own):
                valid.append(i)
                values.append(own)
        if (
            len(valid) >= kind.least
            and _valid(template, values[0])
            and kind.serves(template, values)
        ):
            yield valid, kind(template, values, folds)


def _key(value: Any) -> Any:
    """Something to tell values apart by; what cannot be compared is only equal to itself."""
    if isinstance(value, (str, bool, int, float, type(None), np.generic)):
        return type(value).__name__, value
    return id(value)


def _in_range(template: Any, values: dict[str, Any]) -> bool:
    rules = type(template)._parameter_constraints
    try:
        own = {name: rules[name] for name in values if name in rules}
        validate_parameter_constraints(own, values, caller_name=type(template).__name__)
    except InvalidParameterError:
        return False
    return True


def _valid(template: Any, values: dict[str, Any]) -> bool:
    try:
        clone(template).set_params(**values)._validate_params()
    except (InvalidParameterError, ValueError):
        return False
    return True
