"""Every claim about a table model again, for a stranger who has the model and the table.

Nothing that the file says about itself is believed. The table is fingerprinted, the split is drawn from the
seed, the encoder is learnt anew on the training rows and must give the same matrix as the one in the file, the
estimator's own claims are recomputed on that matrix, the plan is written down again and compared with the log,
the measured models are fitted again and measured again, and the claims that follow are compared, sentence by
sentence, with those recorded.
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
from .fairness import fairness
from .fitting import measure
from .losses import TableLoss
from .model import SECTIONS, TableModel
from .plan import Candidate, plan
from .prepare import Rows, folds_of, n_folds_of, new_encoder, rows_of
from .reference import fit_reference
from .robustness import robustness
from .search import ERRORS, fit_quietly, search
from .sections import generalisation, optimality, withdrawn
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
    try:
        sections = _recompute(model, table, record, watch)
        record.append(_scores_claim(model, table, quick, watch))
    except (TableError, *ERRORS, LookupError, TypeError, AttributeError) as error:
        words = f"the claims cannot be recomputed: {str(error)[:300]}"
        record.append(Claim.check("record", words, Kind.EXACT, 1.0, 0.0, "GEN-6"))
        return _outcome(model, record, {})
    record.append(_recorded_claim(model, sections))
    if document is not None:
        record.append(_document_claim(model, document))
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
    model: TableModel, table: Any, record: list[Claim], watch: Watch
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
    sections["generalisation"], _ = generalisation(model, rows, X_hold, measured)
    truth = rows.y[rows.holdout]
    sections["robustness"], _ = robustness(model, X_hold, truth, mine, watch)
    if model.sensitive:
        sections["fairness"], _ = fairness(model, rows, X_hold, mine, watch, full=True)
    if model.refit:
        sections = {name: withdrawn(name, claims) for name, claims in sections.items()}
    return {name: tuple(claims) for name, claims in sections.items()}


def _scores_claim(model: TableModel, table: Any, quick: bool, watch: Watch) -> Claim:
    """The validation scores in the log are those that the candidates have when they are tried again."""
    name, source = "scores", "GEN-6"
    places = [k for k, entry in enumerate(model.candidates_) if entry["tried"]]
    if quick or not places:
        why = "the search was not repeated" if quick else "no candidate was tried on all folds"
        return Claim.undecided(name, f"{why}: its scores are as the file has them", Kind.EXACT, source)
    schema, rows, y = _rows(model, table)
    n_folds = n_folds_of(len(rows.train))
    folds = folds_of(rows, schema, y, n_folds, model.seed)
    loss = TableLoss(model.task, model.loss_width_ / model.scale_)
    candidates = plan(model.task, model.models)
    trials = search([candidates[k] for k in places], folds, n_folds, loss, watch)
    recorded = np.array([model.candidates_[k]["score"] for k in places], dtype=np.float64)
    found = np.array([trial.loss * model.scale_ for trial in trials])
    # a classifier may decide a row at its boundary otherwise on another machine
    limit = 2.0 / len(rows.train) if model.task == "classification" else 1e-6 * model.loss_width_
    worst = float(np.max(np.abs(recorded - found), initial=0.0))
    words = f"the validation scores of {len(places)} candidates, fitted again, are those recorded, to {worst:.1e}"
    return Claim.check(name, words, Kind.EXACT, worst, limit, source)


def _rows(model: TableModel, table: Any) -> tuple[Any, Rows, NDArray[Any]]:
    """The schema of the file, the rows and split that it draws from the table, and the targets."""
    schema = model.schema
    classes = None if model.task == "regression" else [str(label) for label in model.classes_]
    rows = rows_of(table, schema, classes, model.holdout, model.seed)
    y = rows.y if model.task == "classification" else (rows.y - model.centre_) / model.scale_
    return schema, rows, y


def _encoding_claim(model: TableModel, mine: Array, again: Array, y: NDArray[Any]) -> Claim:
    """The encoder of the file is the one that the training rows give, and so is the training matrix."""
    found, fresh = fingerprint(mine, y), fingerprint(again, y)
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
    """Every model that was measured, fitted on the training rows again; the shipped one is compared with itself."""
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


def _recorded_claim(model: TableModel, sections: dict[str, tuple[Claim, ...]]) -> Claim:
    """The claims in the file are those found: same names, statuses, numbers."""
    wrong = []
    for name in SECTIONS:
        recorded = model.claims(name) if name in model.sections_ else []
        found = list(sections[name])
        if name == "optimality":  # verify decides what the fit left undecided, and adds the data
            recorded, found = _decided(recorded, found)
        if [c.name for c in recorded] != [c.name for c in found]:
            wrong.append(f"the list of claims on {name}")
            continue
        wrong += [f"{name}: {a.name}" for a, b in zip(recorded, found) if not _same(a, b)]
    flat = [claim for name in SECTIONS for claim in model.claims(name)]
    if {c.name: c for c in flat} != {c.name: c for c in model.certificate_.claims}:
        wrong.append("the certificate, which is not that of the sections")
    words = f"the {len(flat)} recorded claims are those found"
    if wrong:
        words = f"recorded claims differ from those found: {'; '.join(wrong[:5])}"
    return Claim.check("record", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")


def _decided(recorded: list[Claim], found: list[Claim]) -> tuple[list[Claim], list[Claim]]:
    """The claims on the fit that were decided then, and the same ones now."""
    then = [claim for claim in recorded if claim.status is not Status.UNDECIDED]
    now = {claim.name: claim for claim in found}
    return then, [now[claim.name] for claim in then if claim.name in now]


def _same(a: Claim, b: Claim) -> bool:
    """Equal but for the rounding of another machine: kind, status, source and numbers."""
    if (a.kind, a.status, a.source) != (b.kind, b.status, b.source):
        return False
    if a.kind in (Kind.STATISTICAL, Kind.BOUND, Kind.EMPIRICAL) and a.statement != b.statement:
        return False
    pairs = ((a.observed, b.observed), (a.bound, b.bound))
    if a.kind in (Kind.OPTIMAL, Kind.EXACT, Kind.STATIONARY):  # residuals at rounding level
        return abs(a.bound - b.bound) <= 1e-6 * abs(b.bound) or a.bound == b.bound or a.bound != a.bound
    return all((x != x and z != z) or abs(x - z) <= 1e-9 * max(1.0, abs(z)) for x, z in pairs)


def _document_claim(model: TableModel, document: Any) -> Claim:
    """``certificate.json`` says what the model says."""
    own = model.document()
    other = document if isinstance(document, dict) else {}
    wrong = sorted(key for key in own.keys() | other.keys() if own.get(key) != other.get(key))
    words = "certificate.json says what the model file says"
    if wrong:
        words = f"certificate.json differs from the model file in: {', '.join(map(str, wrong[:8]))[:300]}"
    return Claim.check("certificate.json", words, Kind.EXACT, float(len(wrong)), 0.0, "GEN-6")
