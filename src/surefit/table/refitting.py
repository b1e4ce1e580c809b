"""Fits made again for a stranger: the shipped model, the models that were measured, the search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from ..data import Schema, TableError
from .losses import TableLoss
from .measuring import measure
from .model import TableModel
from .plan import Candidate, plan
from .prepare import Folds, Rows, new_encoder
from .recorded import alike
from .reference import fit_reference
from .search import Trial, fit_quietly, search
from .watch import Watch

__all__ = ["holdout_claim", "measured_again", "model_claim", "scores_claim", "search_again"]

Array = NDArray[np.float64]


def candidate_of(model: TableModel, place: int) -> Candidate:
    """The candidate of the plan that an entry of the log stands for."""
    entry = model.candidates_[place]
    return Candidate(model.task, entry["family"], entry["value"])


def measured_again(
    model: TableModel, rows: Rows, schema: Schema, y: NDArray[Any], watch: Watch
) -> dict[int, tuple[float, ...]]:
    """Every model that was measured, fitted again on the training rows and measured on the hold-out.

    The shipped one is measured as it is, unless it was refitted on all rows: the log then is about the fit
    on the training rows, and so is what is found here.
    """
    frame = rows.table.frame
    encoder = new_encoder(schema).fit(frame[rows.train])
    X_train, X_hold = encoder.transform(frame[rows.train]), encoder.transform(frame[rows.holdout])
    measured: dict[int, tuple[float, ...]] = {}
    for place, entry in enumerate(model.candidates_):
        if entry["holdout"] is None:
            continue
        watch.say(f"fitting {entry['name']} again")
        if not entry["certified"]:
            fitted = fit_reference(encoder, X_train, y[rows.train], model)
        elif place == model.chosen_ and not model.refit:
            fitted = model.model_
        else:
            fitted = fit_quietly(candidate_of(model, place), X_train, y[rows.train])
        measured[place] = measure(model, fitted, X_hold, rows)
    if model.chosen_ not in measured:
        raise TableError("the shipped model was not measured on the hold-out, says its log")
    return measured


def model_claim(model: TableModel, X: Array, y: NDArray[Any], others: Array) -> Claim:
    """The shipped model is of the kind the log says, and predicts as a fit on the same rows does.

    ``X`` and ``y`` are the rows it was fitted on, ``others`` the rest.
    """
    name, source = "model", "GEN-6"
    candidate = candidate_of(model, model.chosen_)
    fitted = fit_quietly(candidate, X, y)
    kept, wanted = model.model_.get_params(), fitted.get_params()
    if type(model.model_) is not type(fitted) or any(
        kept[key] != wanted[key] for key in wanted if key != "certify"
    ):
        words = f"it is not the {candidate.name} that the log says was chosen"
        return Claim.check(name, words, Kind.EXACT, 1.0, 0.0, source)
    rows = "all rows" if model.refit else "the training rows"
    both = np.vstack([X, others])
    mine, theirs = np.asarray(model.model_.predict(both)), np.asarray(fitted.predict(both))
    if model.task == "classification":
        differ = float((mine != theirs).sum())
        words = f"it predicts all rows as a fit on {rows} does, but for {differ:.0f} of {len(both)}"
        return Claim.check(name, words, Kind.EXACT, differ, 1.0, source)
    gap = float(np.abs(mine - theirs).max() / (1.0 + np.abs(theirs).max()))
    words = f"it predicts all rows as a fit on {rows} does, to {gap:.1e}"
    return Claim.check(name, words, Kind.EXACT, gap, 1e-6, source)


def holdout_claim(
    model: TableModel, limits: dict[int, dict[str, float | None]], constant: dict[str, Any]
) -> Claim:
    """The losses on the hold-out in the log are those found, and so is that of the constant."""
    wrong = sum(
        not alike(entry["holdout"], limits.get(place))
        for place, entry in enumerate(model.candidates_)
    )
    words = f"the losses of {len(limits)} models on the hold-out are those recorded"
    if wrong:
        words = f"the losses of {wrong} models on the hold-out are not those recorded"
    elif not alike(model.constant_, constant):
        wrong = 1
        words = "the comparison with a constant is not the one recorded"
    return Claim.check("hold-out", words, Kind.EXACT, float(wrong), 0.0, "GEN-6")


def search_again(model: TableModel, folds: Folds, quick: bool, watch: Watch) -> list[Trial]:
    """The trials of the log; those that were tried are fitted again, unless ``quick``."""
    candidates = plan(model.task, model.models)
    trials = [Trial(candidate) for candidate in candidates]
    places = [k for k in range(len(candidates)) if model.candidates_[k]["tried"]]
    if quick or not places:
        return trials
    loss = TableLoss(model.task, model.loss_width_ / model.scale_)
    again = search([candidates[k] for k in places], folds, folds.count, loss, watch)
    if watch.interrupted:  # half a check is none
        raise KeyboardInterrupt
    for place, trial in zip(places, again):
        trials[place] = trial
    return trials


def scores_claim(model: TableModel, rows: Rows, trials: list[Trial]) -> Claim:
    """The validation scores in the log are those that the candidates have when they are tried again."""
    name, source = "scores", "GEN-6"
    places = [k for k, trial in enumerate(trials) if trial.tried]
    if not places:
        why = "the search was not repeated: its scores are as the file has them"
        return Claim.undecided(name, why, Kind.EXACT, source)
    recorded = np.array([model.candidates_[k]["score"] for k in places], dtype=np.float64)
    found = np.array([trials[k].loss * model.scale_ for k in places])
    # a classifier may decide a row at its boundary otherwise on another machine
    limit = 2.0 / len(rows.train) if model.task == "classification" else 1e-6 * model.loss_width_
    worst = float(np.max(np.abs(recorded - found)))
    words = (
        f"the validation scores of {len(places)} candidates, tried again, differ from those recorded by at "
        f"most {worst:.1e}"
    )
    return Claim.check(name, words, Kind.EXACT, worst, limit, source)
