"""Robustness of a table model: what an adversary can change, and what that does to the predictions.

The set of changes is built from the columns: numeric columns may move by eps standard deviations, whole
numbers to whole numbers, categories and the columns named by ``immutable`` stay. Missing values stay
missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from .evidence import rounded_up
from .watch import Watch

__all__ = ["EPS", "changes", "robustness"]

Array = NDArray[np.float64]
EPS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)


def changes(model: Any) -> dict[str, Any]:
    """Which encoded columns may move, and by which steps."""
    features = model.encoder_.features_
    fixed = set(model.immutable) | set(model.sensitive)
    mutable = np.array(
        [f["kind"] in ("numeric", "date") and f["column"] not in fixed for f in features],
        dtype=bool,
    )
    step = np.array(
        [1.0 / f["scale"] if f["integer"] and f["scale"] > 0 else 0.0 for f in features]
    )
    return {"mutable": mutable, "step": np.where(mutable, step, 0.0)}


def words_of(model: Any, mutable: NDArray[np.bool_]) -> str:
    """The set of changes in words."""
    features = model.encoder_.features_
    moving = [f["column"] for f, moves in zip(features, mutable) if moves]
    whole = sum(bool(f["integer"]) for f, moves in zip(features, mutable) if moves)
    fixed = list(model.immutable)
    text = f"each of {len(moving)} numeric columns moves by at most eps standard deviations"
    if whole:
        text += f" ({whole} of them by whole numbers)"
    text += "; categories and missing values stay"
    return text + (f"; {', '.join(map(str, fixed))} stay" if fixed else "")


def robustness(
    model: Any, X: Array, truth: NDArray[Any], X_train: Array, watch: Watch
) -> tuple[list[Claim], dict[str, Any]]:
    """Claims and curve for the hold-out rows ``X``."""
    allowed = changes(model)
    if not allowed["mutable"].any():
        why = "no numeric column may change: categories and immutable columns stay as they are"
        return [Claim.undecided("adversarial risk", why, Kind.BOUND, "ADV-1")], {}
    if model.task == "regression":
        return _sensitivity(model, allowed), {}
    from ..robust import adversarial_risk

    curve = adversarial_risk(
        model.model_,
        X,
        truth,
        EPS,
        norm=np.inf,
        delta=model.delta,
        fresh=not model.refit,
        random_state=model.seed,
        **allowed,
    )
    record = curve.to_dict()
    del record["claims"]  # they are among the claims of the section
    record["exact"] = bool(np.all(curve.exact))
    low, high = 1.0 - np.asarray(curve.high), 1.0 - np.asarray(curve.low)  # of the accuracy
    record |= {"low": low.tolist(), "high": high.tolist()}
    record["words"] = "; ".join([words_of(model, allowed["mutable"]), *curve.notes])
    return list(curve.claims), {"robustness": record}


def _sensitivity(model: Any, allowed: dict[str, Any]) -> list[Claim]:
    """How far a linear prediction can move: eps times the sum of the sizes of the free coefficients."""
    name = "sensitivity"
    coef = getattr(model.model_, "coef_", None)
    if coef is None:
        name_of = type(model.model_).__name__
        why = f"{name_of} has no coefficients: how far a prediction can move is not bounded"
        return [Claim.undecided(name, why, Kind.BOUND, "ADV-4")]
    sizes = np.abs(np.asarray(coef, dtype=np.float64)).reshape(-1)[allowed["mutable"]]
    reach = float(sizes.sum()) * float(model.scale_) * 0.1
    statement = (
        f"a change of every numeric column by at most 0.1 standard deviations moves no prediction by more "
        f"than {rounded_up(reach)}, in the unit of '{model.target}' (its range on the training rows is "
        f"{model.loss_width_:.4g})"
    )
    return [Claim.check(name, statement, Kind.BOUND, reach, float(model.loss_width_), "ADV-4")]
