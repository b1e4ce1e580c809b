"""Robustness of a table model: what an adversary can change, and what that does to the predictions.

The set of changes is built from the columns: numeric columns and dates may move by eps standard deviations
of the training rows, whole numbers by whole numbers; categories and the columns named by ``immutable`` stay.
A missing number stays marked as missing, but the median that stands for it moves like any other number: the
set is one of encoded rows. Every sentence names its set.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind, Status
from ..data import shown
from .evidence import rounded_up
from .watch import Watch

__all__ = ["EPS", "changes", "robustness"]

Array = NDArray[np.float64]
PAIRS = 4e6  # rows attacked times rows that they are compared with
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


def words_of(
    model: Any, mutable: NDArray[np.bool_], eps: str = "eps", *, steps: bool = True
) -> str:
    """The set of changes in words; without ``steps`` whole numbers move like others."""
    moving = [f for f, moves in zip(model.encoder_.features_, mutable) if moves]
    whole = sum(bool(f["integer"]) for f in moving) if steps else 0
    what = "numeric" if all(f["kind"] == "numeric" for f in moving) else "numeric or date"
    each = f"each of {len(moving)} {what} columns" if len(moving) > 1 else f"one {what} column"
    text = f"{each} moves by at most {eps} standard deviations of the training rows"
    if whole:
        text += f" ({whole} of them by whole numbers)" if len(moving) > 1 else ", by whole numbers"
    missing = {column["name"] for column in model.schema_["columns"] if column["missing"]}
    text += "; categories stay"
    if any(f["column"] in missing for f in moving):
        text += "; for a missing number the median stands, and moves too"
    fixed = [shown(name) for name in model.immutable]
    return text + (f"; {', '.join(fixed)} stay{'s' if len(fixed) == 1 else ''}" if fixed else "")


def _most_rows(fitted: Any) -> int | None:
    """How many hold-out rows are attacked: a function of the model alone, so that anyone attacks the same.

    An attack compares each row with every support vector, or training row, some hundred times: PAIRS of
    them take a few seconds. A vote of neighbours costs about half of a kernel.
    """
    vectors = getattr(fitted, "support_", None)
    pairs = 0.0 if vectors is None else float(len(vectors))
    if vectors is None and hasattr(fitted, "n_samples_fit_"):
        pairs = float(fitted.n_samples_fit_) / 2.0
    pairs *= (
        2.0 if len(getattr(fitted, "classes_", ())) > 2 else 1.0
    )  # each class is a goal of its own
    return None if pairs == 0.0 else int(np.clip(PAIRS // pairs, 200, 1000))


def robustness(
    model: Any, X: Array, truth: NDArray[Any], X_train: Array, watch: Watch
) -> tuple[list[Claim], dict[str, Any]]:
    """Claims and curve for the hold-out rows ``X``."""
    allowed = changes(model)
    if not allowed["mutable"].any():
        why = "no numeric column may change: categories and immutable columns stay as they are"
        return [Claim.undecided("adversarial risk", why, Kind.BOUND, "ADV-1")], {}
    if model.task == "regression":
        return _sensitivity(model, X, allowed), {}
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
        max_rows=_most_rows(model.model_),
        **allowed,
    )
    record = curve.to_dict()
    del record["claims"]  # they are among the claims of the section
    record["exact"] = bool(np.all(curve.exact))
    low, high = 1.0 - np.asarray(curve.high), 1.0 - np.asarray(curve.low)  # of the accuracy
    record |= {"low": low.tolist(), "high": high.tolist()}
    seen = ["the fit has used these rows"] if model.refit else []
    record["words"] = "; ".join([words_of(model, allowed["mutable"]), *curve.notes, *seen])
    claims = [
        claim
        if claim.name == "closed form" or claim.status is Status.UNDECIDED
        else replace(claim, statement=f"{claim.statement}; {record['words']}")
        for claim in curve.claims
    ]
    return claims, {"robustness": record}


def _sensitivity(model: Any, X: Array, allowed: dict[str, Any]) -> list[Claim]:
    """How far a linear prediction can move: eps times the sum of the sizes of the free coefficients.

    The sum is a formula; the hold-out rows are moved by the worst change, and the model's own predictions
    there must not move further than it says.
    """
    name, eps, mutable = "sensitivity", 0.1, allowed["mutable"]
    coef = getattr(model.model_, "coef_", None)
    if coef is None:
        name_of = type(model.model_).__name__
        why = f"{name_of} has no coefficients: how far a prediction can move is not bounded"
        return [Claim.undecided(name, why, Kind.BOUND, "ADV-4")]
    slopes = np.asarray(coef, dtype=np.float64).reshape(-1)
    reach = float(np.abs(slopes[mutable]).sum()) * float(model.scale_) * eps
    worst = X + eps * np.sign(slopes) * mutable
    moved = np.abs(model.predict_encoded(worst) - model.predict_encoded(X))
    seen = float(moved.max(initial=0.0))
    rounding = 1e-9 * (1.0 + float(np.abs(model.predict_encoded(X)).max(initial=0.0)))
    words = words_of(model, mutable, f"{eps:g}", steps=False)
    statement = (
        f"a change of the numeric columns by at most {eps:g} standard deviations each moves no prediction by "
        f"more than {rounded_up(reach)}, in the unit of '{shown(model.target)}' (its range on the training "
        f"rows is {model.loss_width_:.4g}), and the worst one moved those of the hold-out by {seen:.4g}; "
        f"{words}"
    )
    return [Claim.check(name, statement, Kind.BOUND, seen, reach + rounding, "ADV-4")]
