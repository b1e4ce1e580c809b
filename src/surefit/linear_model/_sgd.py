"""What the two SGD models share: the rules of a run, the parameters that go together, what a fit keeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from ..base import Certified
from ..design import as_design
from ..iterate import Fit
from ..solvers.linear_sgd import Rules
from ._attribute_checks import wrong_flags, wrong_shapes
from ._online import Plan
from ._sgd_claims import CLASSIFICATION, loss_of, objective_of, worst_of

__all__ = [
    "CONSTRAINTS",
    "check_rate",
    "inconsistencies",
    "keep",
    "rules_of",
    "warn_of_negative_power",
]

CONSTRAINTS: dict[str, list[Any]] = {  # of both SGD models
    "penalty": [StrOptions({"l2", "l1", "elasticnet"}), None],
    "alpha": [Interval(Real, 0, None, closed="left")],
    "l1_ratio": [Interval(Real, 0, 1, closed="both"), None],
    "fit_intercept": ["boolean"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left"), None],
    "shuffle": ["boolean"],
    "verbose": ["verbose"],
    "epsilon": [Interval(Real, 0, None, closed="left")],
    "random_state": ["random_state"],
    "learning_rate": [
        StrOptions({"constant", "optimal", "invscaling", "adaptive", "pa1", "pa2"}),
    ],
    "eta0": [Interval(Real, 0, None, closed="neither")],
    "power_t": [Interval(Real, None, None, closed="neither")],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "warm_start": ["boolean"],
    "average": [Interval(Integral, 0, None, closed="neither"), "boolean"],
    "max_gap": [Interval(Real, 0, None, closed="neither"), None],
    "certify": Certified._certify_constraint,
}


def inconsistencies(model: Any, n_features: int) -> Iterator[str]:
    """What a fit leaves besides coefficients."""
    shape = model._shape(n_features)
    problems = shape[:1] if len(shape) == 2 else (1,)
    yield from wrong_shapes(model, objective_=problems, worst_=problems)
    yield from wrong_flags(model, "streamed_")
    if hasattr(model, "standard_coef_"):
        yield from wrong_shapes(model, standard_coef_=shape, standard_intercept_=problems)


def rules_of(model: Any) -> Rules:
    """The rules of a run, from scikit-learn's parameters."""
    l1, l2 = model._penalty_strengths()
    has_epsilon = len(CLASSIFICATION[model.loss]) > 1
    return Rules(
        "hinge" if model.loss == "perceptron" else model.loss,
        edge=float(model.epsilon) if has_epsilon else float(model.loss != "perceptron"),
        learning_rate=model.learning_rate,
        eta0=float(model.eta0),
        power_t=float(model.power_t),
        alpha=float(model.alpha),
        l1=l1,
        l2=l2,
        average=int(model.average),
        fit_intercept=bool(model.fit_intercept),
        tol=model.tol,
        patience=model.n_iter_no_change,
    )


def check_rate(model: Any, passive_loss: str) -> None:
    """Refuse a learning rate that does not go with the other parameters."""
    rate = model.learning_rate
    if rate == "optimal" and model.alpha == 0:
        raise ValueError(
            "alpha must be > 0 since learning_rate is 'optimal'. alpha is used to compute the optimal "
            "learning rate. Got alpha=0; use learning_rate='invscaling' without a penalty."
        )
    if rate in ("pa1", "pa2") and model.loss != passive_loss:
        raise ValueError(
            f"Learning rate '{rate}' only works with loss '{passive_loss}'. Got loss={model.loss!r}."
        )
    if model.penalty == "elasticnet" and model.l1_ratio is None:
        raise ValueError(
            "l1_ratio must be set when penalty is 'elasticnet', got l1_ratio=None: give the share of the "
            "l1 part, from 0 to 1."
        )


def warn_of_negative_power(model: Any) -> None:
    """Steps that grow are deprecated in scikit-learn, and do not converge anywhere."""
    if model.power_t < 0:
        warnings.warn(
            "Negative values for `power_t` are deprecated in version 1.8 and will raise an error in 1.10. "
            f"Use values in the range [0.0, inf) instead, not power_t={model.power_t}.",
            FutureWarning,
            stacklevel=5,
        )


def keep(
    model: Any, fits: list[Fit], plans: list[Plan], rows: Any, *, labels: bool, witness: bool
) -> None:
    """The model, its dual point, and the numbers on the training rows that the certificate checks."""
    for stale in ("dual_", "standard_coef_", "standard_intercept_"):
        model.__dict__.pop(stale, None)
    last = [(fit.x.w, fit.x.b) for fit in fits]
    chosen = [fit.x.mean or own for fit, own in zip(fits, last)]
    pairs = {"": chosen, "standard_": last} if model.average else {"": chosen}
    for prefix, planes in pairs.items():
        coef = np.stack([w for w, _ in planes]).astype(rows.dtype)
        setattr(model, f"{prefix}coef_", coef if labels else coef[0])
        setattr(model, f"{prefix}intercept_", np.array([b for _, b in planes], dtype=rows.dtype))
    l1, l2 = model._penalty_strengths()
    if l2 > 0 and witness:
        model.dual_ = np.stack([fit.x.dual() for fit in fits]).astype(np.float32)
    (W, b), loss = model._planes(), loss_of(model)
    scores = as_design(rows).dot(W.T) + b
    model.objective_, model.worst_ = np.empty(len(fits)), np.empty(len(fits))
    for k, plan in enumerate(plans):
        z, s = scores[:, k], plan.weights / rows.shape[0]
        model.objective_[k] = objective_of(z, plan.targets, s, loss, W[k], l1, l2)
        model.worst_[k] = worst_of(z, plan.targets, labels=labels)
