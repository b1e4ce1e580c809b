"""Every claim about a table model again, for a stranger who has the model and the table.

Nothing that the file says about itself is believed. The table is fingerprinted, the split is drawn from the
seed, the encoder is learnt anew on the training rows and must give the same matrix as the one in the file,
the estimator's own claims are recomputed on that matrix, the plan is written down again and compared with
the log, the measured models are fitted again and measured again, and the claims that follow are compared,
sentence by sentence, with those recorded.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from ..base import Certified
from ..certificate import DEFAULT_TOLERANCE, Certificate, Claim, Kind, Status
from ..certificate import verify as verify_estimator
from ..fingerprint import fingerprint
from .document import plain
from .drawings import drawings
from .facts import facts_claim
from .held_out import held_out
from .independence import record_of, units_claim
from .model import SECTIONS, TableModel
from .plan import plan
from .prepare import Rows, folds_of, n_folds_of, new_encoder, rows_of
from .recorded import alike, document_claim, evidence_claim, recorded_claim, schema_claim
from .refitting import holdout_claim, measured_again, model_claim, scores_claim, search_again
from .search import ERRORS
from .sections import holdout_limits, optimality, withdrawn
from .units import Asked
from .verifying_log import log_claim
from .verifying_reading import reading_claim
from .watch import Watch

__all__ = ["Verification", "verify_table"]

Array = NDArray[np.float64]
# what a changed file makes the code raise that reads it
UNREADABLE = (*ERRORS, LookupError, TypeError, AttributeError, PolarsError)


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

    @property
    def proved(self) -> bool:
        """True when nothing fails and the fit itself is shown to be optimal, or exact."""
        return self.ok and Certificate(self.sections.get("optimality", ())).proved


def verify_table(
    model: TableModel,
    source: Any,
    *,
    document: Any = None,
    quick: bool = False,
    watch: Watch | None = None,
    tol: float = DEFAULT_TOLERANCE,
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
    tol : float
        The verifier's tolerance, as in :func:`surefit.verify`.

    Returns
    -------
    Verification
    """
    watch = Watch(math.inf) if watch is None else watch
    watch.say("reading the table")
    table = whole = model.read(source)
    wanted = list(model.columns_)
    missing = [name for name in wanted if name not in table.columns]
    record = []
    if len(set(wanted)) < len(wanted):
        statement = "this is not the table of the fit: columns_ names a column twice"
        record.append(Claim.check("table", statement, Kind.EXACT, 1.0, 0.0, "DAT-1"))
    elif not missing:
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
        return _outcome(model, record, {}, tol)
    if _recorded(model) is None:
        words = "the model has no certificate_, so that no recorded claim can be compared"
        record.append(Claim.check("record", words, Kind.EXACT, 1.0, 0.0, "GEN-6"))
        return _outcome(model, record, {}, tol)
    record.append(_plan_claim(model))
    if record[-1].status is not Status.HOLDS:
        return _outcome(model, record, {}, tol)
    others = [name for name in whole.columns if name not in wanted]
    try:
        record.append(schema_claim(model, table, others))
        record.append(reading_claim(model, source, whole))
        sections = _recompute(model, table, record, quick, watch, tol)
        if document is not None:
            record.append(document_claim(model, document))
    except UNREADABLE as error:
        words = f"the claims cannot be recomputed: {str(error)[:300]}"
        record.append(Claim.check("record", words, Kind.EXACT, 1.0, 0.0, "GEN-6"))
        return _outcome(model, record, {}, tol)
    watch.close()
    return _outcome(model, record, sections, tol)


def _recorded(model: TableModel) -> Certificate | None:
    """The certificate that the model carries, if it has one."""
    found = vars(model).get("certificate_")
    return found if isinstance(found, Certificate) else None


def _outcome(
    model: TableModel, record: list[Claim], sections: dict[str, tuple[Claim, ...]], tol: float
) -> Verification:
    """The outcome, with a word on whose tolerance it was judged by."""
    everything = (*record, *(claim for claims in sections.values() for claim in claims))
    recorded = _recorded(model) or Certificate(())
    inner = getattr(model, "model_", None)
    notes = tuple(inner._notes(tol)) if isinstance(inner, Certified) else ()
    certificate = Certificate(everything, recorded.data_id, recorded.stopped, recorded.about, notes)
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
    except UNREADABLE as error:
        words = f"the log of candidates cannot be read: {str(error)[:200]}"
        return Claim.check(name, words, Kind.EXACT, 1.0, 0.0, source)
    words = f"the log lists the {len(planned)} candidates of the plan, and the best of those tried was chosen"
    if not first:
        words = "the log of candidates is not that of the plan, or another than the best was chosen"
    return Claim.check(name, words, Kind.EXACT, float(not first), 0.0, source)


def _recompute(
    model: TableModel, table: Any, record: list[Claim], quick: bool, watch: Watch, tol: float
) -> dict[str, tuple[Claim, ...]]:
    """The claims of all sections, anew; what is found about the record itself is added to ``record``."""
    schema, rows, y = _rows(model, table)
    model = copy.copy(model)  # of which the units are those found, not those recorded
    recorded, model.units_ = model.units_, record_of(rows)
    used = np.arange(len(rows.y)) if model.refit else rows.train
    watch.say("encoding")
    frame = rows.table.frame
    mine = model.encoder_.transform(frame[used])
    fresh = new_encoder(schema).fit(frame[used])
    record.append(_encoding_claim(model, mine, fresh, y[used]))
    record.append(_scaling_claim(model, rows))
    record.append(facts_claim(model, len(rows.y)))
    record.append(units_claim(recorded, model.units_))
    X_hold = model.encoder_.transform(frame[rows.holdout])
    watch.say("checking the fit")
    sections: dict[str, list[Claim]] = {name: [] for name in SECTIONS}
    sections["optimality"] = optimality(verify_estimator(model.model_, mine, y[used], tol=tol))
    others = model.encoder_.transform(frame[np.setdiff1d(np.arange(len(rows.y)), used)])
    record.append(model_claim(model, mine, y[used], others))
    measured = measured_again(model, rows, schema, y, watch)
    watch.say("checking the hold-out")
    found, evidence = held_out(model, rows, X_hold, mine, measured, watch)
    sections |= found
    constant = evidence.pop("constant", {})
    record.append(holdout_claim(model, holdout_limits(model, measured), constant))
    folds = folds_of(rows, schema, y, n_folds_of(len(rows.train)), model.seed)
    trials = search_again(model, folds, quick, watch)
    record.append(scores_claim(model, rows, trials))
    record.append(log_claim(model, folds, quick, watch))
    left_out = {"learning_curve", "validation_curve"} if quick else set()
    chosen = trials[model.chosen_]
    for name, job in drawings(model, rows, trials, chosen, folds, mine, y, watch).items():
        said = any(str(text).startswith(f"{name.replace('_', ' ')}: ") for text in model.skipped_)
        if name not in left_out and (name in model.evidence_ or not said):
            watch.say(f"checking the picture: {name.replace('_', ' ')}")
            evidence[name] = job()
    made = {name: picture for name, picture in evidence.items() if picture is not None}
    record.append(evidence_claim(model, plain(made), left_out))
    own = list(_claims_at_fit(model, mine, y[used]))
    as_made = {**sections, "optimality": own}
    if model.refit:
        for parts in (sections, as_made):
            parts["optimality"] = withdrawn("optimality", parts["optimality"])
    record.append(recorded_claim(model, as_made, own))
    return {name: tuple(claims) for name, claims in sections.items()}


def _rows(model: TableModel, table: Any) -> tuple[Any, Rows, NDArray[Any]]:
    """The schema of the file, the rows and split that it draws from the table, and the targets."""
    schema = model.schema
    classes = None if model.task == "regression" else [str(label) for label in model.classes_]
    rows = rows_of(table, schema, classes, model.holdout, model.seed, Asked.of(model))
    y = rows.y if model.task == "classification" else (rows.y - model.centre_) / model.scale_
    return schema, rows, y


def _claims_at_fit(model: TableModel, X: Array, y: NDArray[Any]) -> tuple[Claim, ...]:
    """The claims that the estimator makes at the end of its fit; a verification decides more of them."""
    checked = model.model_._validate_training_data(X, y, None, reset=False)
    return Certificate(
        tuple(model.model_._certify(*checked, full=False, tol=model.model_._own_tolerance()))
    ).claims


def _encoding_claim(model: TableModel, mine: Array, fresh: Any, y: NDArray[Any]) -> Claim:
    """The encoder of the file is the one that the training rows give, and so is the training matrix."""
    found = fingerprint(mine, y, None)
    data_id = getattr(getattr(model.model_, "certificate_", None), "data_id", found)
    same = found == model.matrix_id_ == data_id and alike(
        _state(model.encoder_), _state(fresh), 1e-9
    )
    words = (
        f"the training rows, encoded again, give the matrix of the fit (fingerprint {found})"
        if same
        else "the training rows, encoded again, do not give the matrix of the fit"
    )
    return Claim.check("encoding", words, Kind.EXACT, float(not same), 0.0, "DAT-1")


def _state(encoder: Any) -> list[tuple[str, Any]]:
    """What an encoder was made with and has learnt, the order of its columns included."""
    learnt = {key: value for key, value in vars(encoder).items() if key.endswith("_")}
    learnt["feature_names_in_"] = [str(name) for name in encoder.feature_names_in_]
    learnt["blocks_"] = [list(item) for item in encoder.blocks_.items()]
    return sorted((encoder.get_params() | learnt).items())


def _scaling_claim(model: TableModel, rows: Rows) -> Claim:
    """Centre, scale and range of the target are those of the training rows."""
    wanted = [0.0, 1.0, 1.0]
    if model.task == "regression":
        known = rows.y[rows.train]
        wanted = [float(known.mean()), float(known.std()), float(known.max() - known.min())]
    same = alike([model.centre_, model.scale_, model.loss_width_], wanted, 1e-9)
    words = f"centre, scale and range of the target are {'' if same else 'not '}those of the training rows"
    return Claim.check("target", words, Kind.EXACT, float(not same), 0.0, "DAT-1")
