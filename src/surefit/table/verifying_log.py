"""Whether the log, and other text of a file that people read, is what a fit writes.

Free text is where a forger writes what no claim says: "failed: singular" beside a rival that does well, "left
out: an auditor found no fault". So every text has to be of a form that a fit writes, and a candidate that is
said to have failed is tried again.
"""

from __future__ import annotations

import re
from typing import Any

from ..certificate import Claim, Kind
from ..data import shown
from .losses import TableLoss
from .model import TableModel
from .plan import plan
from .prepare import Folds
from .reference import NAME
from .search import search
from .watch import Watch

__all__ = ["dropped_fit", "log_claim"]

KEYS = {
    "name", "family", "params", "value", "score", "score_name", "seconds", "status", "tried", "holdout",
    "certified",
}  # fmt: skip
_STATUS = re.compile(
    r"tried|fitted without a search|uncertified reference|not reached: (no time left|interrupted)"
    r"|left out: about [\d.]+ s were needed and [\d.]+ s were left"
    r"|stopped: no time left after \d+ of \d+ folds|failed: .*",
    re.S,
)
_VERSION = re.compile(r"\d+(\.\d+){1,3}([a-z]+\d*)?")
_HOUR = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def log_claim(model: TableModel, folds: Folds, quick: bool, watch: Watch) -> Claim:
    """The text of the file is of the form that a fit writes, and what failed fails again."""
    log = model.candidates_
    names = {*(entry["name"] for entry in log), NAME}
    inner = model.model_.certificate_
    found = {
        "the entries of the log": all(set(entry) == KEYS for entry in log),
        "what became of a candidate": all(_STATUS.fullmatch(str(e["status"])) for e in log),
        "what was not measured": all(_known(str(text), names) for text in model.skipped_),
        "the hour of the fit": _HOUR.fullmatch(model.created_) is not None,
        "the version of surefit": _VERSION.fullmatch(model.version_) is not None,
        "the immutable columns": set(model.immutable) <= set(model.columns_),
        "the classes": model.task == "regression"
        or [str(label) for label in model.classes_] == list(model.schema_["classes"]),
        "what the estimator's certificate is about": inner.about == type(model.model_).__name__,
    }
    wrong = [name for name, sound in found.items() if not sound]
    failed = [k for k, entry in enumerate(log) if str(entry["status"]).startswith("failed: ")]
    if failed and not quick:
        candidates = [plan(model.task, model.models)[k] for k in failed]
        loss = TableLoss(model.task, model.loss_width_ / model.scale_)
        again = search(candidates, folds, folds.count, loss, watch)
        told = [f"{log[k]['name']}, which did not fail when it was tried again" for k in failed]
        wrong += [
            text for text, trial in zip(told, again) if not trial.status.startswith("failed: ")
        ]
    words = "the log and the other texts of the file are of the form that a fit writes"
    if wrong:
        words = f"the file has texts that no fit writes: {', '.join(wrong)}"
    return Claim.check("texts", words[:300], Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def _known(text: str, names: set[str]) -> bool:
    """Whether what was not measured is a model of the log; other things are checked with the facts."""
    what = text.rpartition(": ")[0]
    return not what.startswith("measuring ") or what.removeprefix("measuring ") in names


def dropped_fit(note: str, others: list[str]) -> bool:
    """Whether a note names columns of the table that the model does not have, and says nothing else.

    Examples
    --------
    >>> dropped_fit("left out on request: b, a", ["a", "b", "c"])
    True
    >>> dropped_fit("left out on request: nothing of importance", ["a", "b", "c"])
    False
    """
    start, text = "left out on request: ", note.removeprefix("left out on request: ")
    if not note.startswith(start) or not text:
        return False
    left: list[Any] = sorted((shown(name) for name in others), key=len, reverse=True)
    while text:
        name = next((n for n in left if text == n or text.startswith(f"{n}, ")), None)
        if name is None:
            return False
        left.remove(name)
        text = text[len(name) :].removeprefix(", ")
    return True
