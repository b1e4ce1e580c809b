"""What a file says about itself beside its claims: the log, the split, what was left out, why it stopped.

Seconds and the hour of a fit cannot be found again. Everything else here either follows from the table, or
has to agree with another part of the file.
"""

from __future__ import annotations

import math
from typing import Any

from ..certificate import Claim, Kind
from ..data import shown
from .model import TableModel
from .reference import NAME

__all__ = ["about_of", "facts_claim", "score_name", "stopped_of"]

TRIED, UNTESTED = "tried", "fitted without a search"
NOT_TRIED = ("not reached: ", "left out: ", "stopped: ", "failed: ")
WHY = ("no time left", "interrupted")
PICTURES = ("objective", "coefficients", "learning curve", "validation curve", "remedies")


def about_of(model: TableModel) -> str:
    """What the certificate is about."""
    return f"{type(model.model_).__name__} for '{shown(model.target)}'"


def stopped_of(model: TableModel, interrupted: bool) -> str:
    """Why the search ended."""
    if interrupted:
        return "the user interrupted it"
    if any(not record["tried"] for record in model.candidates_ if record["certified"]):
        return "the time was up, or a candidate could not be fitted"
    return "the candidates of the plan were tried"


def score_name(task: str) -> str:
    """What the scores of the log are."""
    return "error" if task == "classification" else "mean absolute error"


def facts_claim(model: TableModel, n_rows: int) -> Claim:
    """The facts of the file agree with the table and with each other."""
    certificate = model.certificate_
    endings = {stopped_of(model, False), stopped_of(model, bool(model.interrupted_))}
    found = {
        "the positive class": _positive(model),
        "the sensitive columns": not set(model.sensitive) & set(model.encoder_.blocks_),
        "the number of rows": model.n_rows_ == n_rows,
        "the log": all(_entry(model, k) for k in range(len(model.candidates_))),
        "what was left out": all(_left_out(model, text) for text in model.skipped_),
        "the data of the certificate": certificate.data_id == model.raw_id_,
        "what the certificate is about": certificate.about == about_of(model),
        "why the fit ended": certificate.stopped in endings,
    }
    wrong = [name for name, sound in found.items() if not sound]
    words = "log, split and what was left out agree with the table and with each other"
    if wrong:
        words = f"the file contradicts the table or itself in: {', '.join(wrong)}"
    return Claim.check("facts", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def _positive(model: TableModel) -> bool:
    if model.task == "regression":
        return model.positive is None
    return model.positive in [str(label) for label in model.classes_]


def _entry(model: TableModel, place: int) -> bool:
    """Whether an entry of the log is one that a fit writes."""
    entry: dict[str, Any] = model.candidates_[place]
    seconds, score, status = entry["seconds"], entry["score"], str(entry["status"])
    if entry["score_name"] != score_name(model.task) or not 0.0 <= float(seconds) < math.inf:
        return False
    if not entry["certified"]:
        rest = (entry["name"], entry["family"], entry["params"], entry["value"])
        made: tuple[Any, ...] = (NAME, "boosting", {}, None)
        return (
            rest == made
            and score is None
            and (status, entry["tried"])
            == (
                "uncertified reference",
                False,
            )
        )
    if entry["tried"]:
        return status == TRIED and isinstance(score, float) and math.isfinite(score)
    untested = place == model.chosen_ and status == UNTESTED
    if score is not None or not (untested or status.startswith(NOT_TRIED)):
        return False
    return untested or entry["holdout"] is None


def _left_out(model: TableModel, text: Any) -> bool:
    """Whether something that is said to be left out is indeed not there."""
    what, _, why = str(text).rpartition(": ")
    if why not in WHY:
        return False
    if what.startswith("measuring "):
        name = what.removeprefix("measuring ")
        return not any(r["name"] == name and r["holdout"] for r in model.candidates_)
    return bool(what) and what.replace(" ", "_") not in model.evidence_ and what in PICTURES
