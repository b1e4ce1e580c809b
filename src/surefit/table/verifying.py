"""Every claim about a table model again, for a stranger who has the model and the table.

Nothing that the file says about itself is believed. The table is fingerprinted, the split is drawn from the
seed, the encoder is learnt anew on the training rows and must give the same matrix as the one in the file,
the estimator's own claims are recomputed on that matrix, the plan is written down again and compared with
the log, the measured models are fitted again and measured again, and the claims that follow are compared,
sentence by sentence, with those recorded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate, Claim, Kind, Status
from ..certificate import verify as verify_estimator
from ..data import TableError
from ..fingerprint import fingerprint
from .document import plain
from .drawings import drawings
from .fairness import fairness
from .losses import TableLoss
from .measuring import measure
from .model import SECTIONS, TableModel
from .plan import Candidate, plan
from .prepare import Rows, folds_of, n_folds_of, new_encoder, rows_of
from .recorded import alike, document_claim, evidence_claim, recorded_claim, schema_claim
from .reference import fit_reference
from .robustness import robustness
from .search import ERRORS, Trial, fit_quietly, search
from .sections import generalisation, holdout_limits, optimality, withdrawn
from .watch import Watch

__all__ = ["Verification", "verify_table"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Verification:
    """The outcome: checks of the record itself, and the claims by section."""

    record: tuple[Claim, ...]
    sections: dict[str, tuple[Claim, ...]]
    certificate: Certificate

    @property
    def ok(self) -> bool:
        """True when nothing fails."""
        return self.certificate.ok


def verify_table(
    model: TableModel,
    source: Any,
    *,
    document: Any = None,
    quick: bool = False,
    watch: Watch | None = None,
) -> Verification:
    """Recompute every claim of a table model.

    Parameters
    ----------
    model : TableModel
        Just fitted, or loaded from a file.
    source : path, Table or frame
        The table of the fit.
    document : dict, optional
        The content of a ``certificate.json`` that claims to belong to the model.
    quick : bool
        Do not repeat the search; whether its scores are as recorded is then undecided.
    watch : Watch, optional
        Progress.

    Returns
    -------
    Verification
    """
    watch = Watch(math.inf) if watch is None else watch
    watch.say("reading the table")
    table = model.read(source)
    wanted = list(model.columns_)
    missing = [name for name in wanted if name not in table.columns]
    record = []
    if not missing:
        table = table.select(wanted)
        found = table.fingerprint()
        same = found == model.raw_id_
        words = "the table of the fit" if same else "not the table of the fit"
        statement = f"this is {words} (fingerprint {found})"
        record.append(Claim.check("table", statement, Kind.EXACT, float(not same), 0.0, "DAT-1"))
    else:
        statement = f"this is not the table of the fit: {len(missing)} of its columns are missing"
        record.append(Claim.check("table", statement, Kind.EXACT, 1.0, 0.0, "DAT-1"))
    if record[0].status is not Status.HOLDS:
        return _outcome(model, record, {})
    record.append(_plan_claim(model))
    if record[-1].status is not Status.HOLDS:
        return _outcome(model, record, {})
    record.append(schema_claim(model, table))
    try:
        sections = _recompute(model, table, record, quick, watch)
    except (TableError, *ERRORS, LookupError, TypeError, AttributeError) as error:
        words = f"the claims cannot be recomputed: {str(error)[:300]}"
        record.append(Claim.check("record", words, Kind.EXACT, 1.0, 0.0, "GEN-6"))
        return _outcome(model, record, {})
    record.append(recorded_claim(model, sections))
    if document is not None:
        record.append(document_claim(model, document))
    watch.close()
    return _outcome(model, record, sections)


def _outcome(
    model: TableModel, record: list[Claim], sections: dict[str, tuple[Claim, ...]]
) -> Verification:
    everything = (*record, *(claim for claims in sections.values() for claim in claims))
    recorded = model.certificate_
    certificate = Certificate(everything, recorded.data_id, recorded.stopped, recorded.about)
    return Verification(tuple(record), sections, certificate)


def _plan_claim(model: TableModel) -> Claim:
    """The log lists every candidate of the plan, in its order, and then at most the reference."""
    name, source = "plan", "GEN-4"
    try:
        planned = plan(model.task, model.models)
        log = [record for record in model.candidates_ if record["certified"]]
        expected = [(c.name, c.family, dict(c.params), c.value) for c in planned]
        found = [(r["name"], r["family"], dict(r["params"]), r["value"]) for r in log]
        extra = len(model.candidates_) - len(log)
        chosen = int(model.chosen_)
        sound = found == expected and extra <= 1 and 0 <= chosen < len(planned)
        sound = sound and all(r["certified"] for r in model.candidates_[: len(planned)])
        scores = [r["score"] for r in log if r["tried"]]
        best = min(scores) if scores else None
        first = sound and (best is None or log[chosen]["score"] == best)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        words = f"the log of candidates cannot be read: {str(error)[:200]}"
        return Claim.check(name, words, Kind.EXACT, 1.0, 0.0, source)
    words = f"the log lists the {len(planned)} candidates of the plan, and the best of those tried was chosen"
    if not first:
        words = "the log of candidates is not that of the plan, or another than the best was chosen"
    return Claim.check(name, words, Kind.EXACT, float(not first), 0.0, source)


def _recompute(
    model: TableModel, table: Any, record: list[Claim], quick: bool, watch: Watch
) -> dict[str, tuple[Claim, ...]]:
    """The claims of all sections, anew; what is found about the record itself is added to ``record``."""
    schema, rows, y = _rows(model, table)
    used = np.arange(len(rows.y)) if model.refit else rows.train
    watch.say("encoding")
    frame = rows.table.frame
    mine = model.encoder_.transform(frame[used])
    fresh = new_encoder(schema).fit(frame[used])
    record.append(_encoding_claim(model, mine, fresh.transform(frame[used]), y[used]))
    if model.task == "regression":
        record.append(_scaling_claim(model, rows))
    X_hold = model.encoder_.transform(frame[rows.holdout])
    watch.say("checking the fit")
    sections: dict[str, list[Claim]] = {name: [] for name in SECTIONS}
    sections["optimality"] = optimality(verify_estimator(model.model_, mine, y[used]))
    measured = _measured_again(model, rows, fresh, X_hold, y, record, watch)
    watch.say("checking the hold-out")
    sections["generalisation"], evidence = generalisation(model, rows, X_hold, measured)
    truth = rows.y[rows.holdout]
    sections["robustness"], more = robustness(model, X_hold, truth, mine, watch)
    evidence |= more
    if model.sensitive:
        sections["fairness"], more = fairness(model, rows, X_hold, mine, watch)
        evidence |= more
    limits = holdout_limits(model, measured, len(rows.holdout)) if measured else {}
    record.append(_holdout_claim(model, limits))
    folds = folds_of(rows, schema, y, n_folds_of(len(rows.train)), model.seed)
    trials = _search_again(model, rows, folds, quick, watch)
    record.append(_scores_claim(model, rows, trials))
    left_out = {"learning_curve", "validation_curve"} if quick else set()
    chosen = trials[model.chosen_]
    for name, job in drawings(model, rows, trials, chosen, folds, mine, y, watch).items():
        if name in model.evidence_ and name not in left_out:
            watch.say(f"checking the picture: {name.replace('_', ' ')}")
            evidence[name] = job()
    record.append(evidence_claim(model, plain(evidence), left_out))
    if model.refit:
        sections = {name: withdrawn(name, claims) for name, claims in sections.items()}
    return {name: tuple(claims) for name, claims in sections.items()}


def _search_again(
    model: TableModel, rows: Rows, folds: Any, quick: bool, watch: Watch
) -> list[Trial]:
    """The trials of the log; those that were tried are fitted again, unless ``quick``."""
    candidates = plan(model.task, model.models)
    trials = [Trial(candidate) for candidate in candidates]
    places = [k for k in range(len(candidates)) if model.candidates_[k]["tried"]]
    if quick or not places:
        return trials
    loss = TableLoss(model.task, model.loss_width_ / model.scale_)
    n_folds = n_folds_of(len(rows.train))
    again = search([candidates[k] for k in places], folds, n_folds, loss, watch)
    for place, trial in zip(places, again):
        trials[place] = trial
    return trials


def _scores_claim(model: TableModel, rows: Rows, trials: list[Trial]) -> Claim:
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


def _holdout_claim(model: TableModel, limits: dict[int, dict[str, float]]) -> Claim:
    """The losses on the hold-out in the log are those found."""
    wrong = 0
    for place, entry in enumerate(model.candidates_):
        if model.refit:
            continue
        wrong += not alike(entry["holdout"], limits.get(place))
    words = f"the losses of {len(limits)} models on the hold-out are those recorded"
    if wrong:
        words = f"the losses of {wrong} models on the hold-out are not those recorded"
    return Claim.check("hold-out", words, Kind.EXACT, float(wrong), 0.0, "GEN-6")


def _rows(model: TableModel, table: Any) -> tuple[Any, Rows, NDArray[Any]]:
    """The schema of the file, the rows and split that it draws from the table, and the targets."""
    schema = model.schema
    classes = None if model.task == "regression" else [str(label) for label in model.classes_]
    rows = rows_of(table, schema, classes, model.holdout, model.seed)
    y = rows.y if model.task == "classification" else (rows.y - model.centre_) / model.scale_
    return schema, rows, y


def _encoding_claim(model: TableModel, mine: Array, again: Array, y: NDArray[Any]) -> Claim:
    """The encoder of the file is the one that the training rows give, and so is the training matrix."""
    found, fresh = fingerprint(mine, y, None), fingerprint(again, y, None)
    data_id = getattr(getattr(model.model_, "certificate_", None), "data_id", found)
    same = found == model.matrix_id_ == fresh == data_id
    words = (
        f"the training rows, encoded again, give the matrix of the fit (fingerprint {found})"
        if same
        else "the training rows, encoded again, do not give the matrix of the fit"
    )
    return Claim.check("encoding", words, Kind.EXACT, float(not same), 0.0, "DAT-1")


def _scaling_claim(model: TableModel, rows: Rows) -> Claim:
    """Centre, scale and range of the target are those of the training rows."""
    known = rows.y[rows.train]
    same = (
        model.centre_ == float(known.mean())
        and model.scale_ == float(known.std())
        and model.loss_width_ == float(known.max() - known.min())
    )
    words = f"centre, scale and range of the target are {'' if same else 'not '}those of the training rows"
    return Claim.check("target", words, Kind.EXACT, float(not same), 0.0, "DAT-1")


def _measured_again(
    model: TableModel,
    rows: Rows,
    encoder: Any,
    X_hold: Array,
    y: NDArray[Any],
    record: list[Claim],
    watch: Watch,
) -> dict[int, tuple[float, ...]]:
    """Every model that was measured, fitted again; the shipped one is compared with its fit."""
    frame = rows.table.frame
    if model.refit:
        return {}
    X_train = encoder.transform(frame[rows.train])
    measured: dict[int, tuple[float, ...]] = {}
    for place, entry in enumerate(model.candidates_):
        if entry["holdout"] is None:
            continue
        watch.say(f"fitting {entry['name']} again")
        if not entry["certified"]:
            fitted = fit_reference(encoder, X_train, y[rows.train], model)
        else:
            candidate = Candidate(model.task, entry["family"], entry["value"])
            fitted = fit_quietly(candidate, X_train, y[rows.train])
        if place == model.chosen_:
            record.append(_model_claim(model, fitted, np.vstack([X_train, X_hold])))
            fitted = model.model_
        measured[place] = measure(model, fitted, X_hold, rows)
    if model.chosen_ not in measured:
        raise TableError("the shipped model was not measured on the hold-out, says its log")
    return measured


def _model_claim(model: TableModel, fitted: Any, X: Array) -> Claim:
    """The shipped model predicts as a fit on the training rows alone does."""
    mine, theirs = np.asarray(model.model_.predict(X)), np.asarray(fitted.predict(X))
    if model.task == "classification":
        differ = float((mine != theirs).sum())
        words = f"it predicts all rows as a fit on the training rows does, but for {differ:.0f} of {len(X)}"
        return Claim.check("model", words, Kind.EXACT, differ, 1.0, "GEN-6")
    gap = float(np.abs(mine - theirs).max() / (1.0 + np.abs(theirs).max()))
    words = f"it predicts all rows as a fit on the training rows does, to {gap:.1e}"
    return Claim.check("model", words, Kind.EXACT, gap, 1e-6, "GEN-6")
