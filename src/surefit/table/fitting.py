"""From a table to a certified model: search on the training part, measure on the hold-out, certify.

The order is that of the argument. The hold-out is drawn first and looked at last: candidates are compared by
cross-validation on the training part; the best one, and the best of each other family, are fitted on the
training part and measured on the hold-out; the one that validation chose is shipped as it was measured. The bound
on its error counts every model of the plan, so that it holds whichever of them is shipped.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate, CertificateWarning
from ..data import Schema, Table, TableError, propose_schema, read_table, shown
from ..fingerprint import fingerprint
from .coefficients import coefficients
from .curves import learning_curve, validation_curve
from .fairness import fairness
from .losses import TableLoss
from .model import SECTIONS, TableModel
from .objective import objective_curve
from .plan import Candidate, families, plan
from .prepare import Rows, folds_of, n_folds_of, new_encoder, rows_of
from .reference import NAME as REFERENCE
from .reference import fit_reference
from .remedies import remedies
from .robustness import robustness
from .search import ERRORS, Trial, best_of, fit_quietly, search
from .sections import generalisation, holdout_limits, loss_of, optimality, withdrawn
from .watch import Watch

__all__ = ["fit_table", "measure"]

Array = NDArray[np.float64]


def fit_table(
    source: Any,
    target: str,
    *,
    sensitive: Sequence[str] = (),
    immutable: Sequence[str] = (),
    drop: Sequence[str] = (),
    task: str = "auto",
    positive: str | None = None,
    models: Sequence[str] | None = None,
    time: float = 60.0,
    holdout: float = 0.25,
    delta: float = 0.05,
    refit: bool = False,
    reference: bool = True,
    seed: int = 0,
    roles: dict[str, str] | None = None,
    watch: Watch | None = None,
) -> TableModel:
    """Select, fit and certify a model of a table.

    Parameters
    ----------
    source : path, Table, frame or dict of columns
        See :func:`surefit.data.read_table`.
    target : str
        The column to predict.
    sensitive : sequence of str
        Columns to audit fairness by. They are not given to the model.
    immutable : sequence of str
        Columns that an adversary cannot change.
    drop : sequence of str
        Columns to leave out.
    task : {"auto", "classification", "regression"}
    positive : str, optional
        The class that counts as a positive decision; by default the last in the order of the alphabet.
    models : sequence of str, optional
        Families to try, of :func:`surefit.table.families`; all by default.
    time : float
        Seconds for everything. What does not fit is left out, and the log says what.
    holdout : float
        Share of rows that is kept aside.
    delta : float
        Probability with which the statistical claims of a section may be wrong.
    refit : bool
        Ship a model fitted on all rows; nothing is then claimed of its true error.
    reference : bool
        Also measure scikit-learn's gradient boosting on the hold-out, as an uncertified row.
    seed : int
        Seed of the split and of all else that is random.
    roles : dict, optional
        Column name to role, where the proposed one is wrong.
    watch : Watch, optional
        Clock and progress; made from ``time`` by default.

    Returns
    -------
    TableModel

    Examples
    --------
    >>> import surefit
    >>> from surefit.table import fit_table
    >>> table = surefit.data.load("mortgages")
    >>> model = fit_table(table, "denied", sensitive=["african_american"], models=["logistic"], reference=False)
    >>> model.certificate_.ok
    True
    >>> surefit.verify(model, table).ok
    True
    """
    watch = Watch(time) if watch is None else watch
    _check(holdout, delta, time)
    watch.say("reading the table")
    table = source if isinstance(source, Table) else read_table(source)
    table, schema, notes = _schema(table, target, sensitive, drop, task, roles, seed)
    raw_id = table.fingerprint()
    classes = _classes(schema, positive)
    rows = rows_of(table, schema, classes, holdout, seed)
    _check_parts(rows, schema, classes)
    names = families(schema.task) if models is None else tuple(models)
    candidates = plan(schema.task, names)
    model = TableModel(
        target=target,
        task=schema.task,
        sensitive=list(sensitive),
        immutable=_known(table, immutable, "immutable"),
        positive=None if classes is None else positive or classes[-1],
        models=[name for name in families(schema.task) if name in names],
        holdout=float(holdout),
        seed=int(seed),
        delta=float(delta),
        refit=bool(refit),
    )
    model.schema_, model.parsing_ = schema.to_dict(), table.parsing.to_dict()
    model.data_ = {"name": table.name, "rows": table.rows, "columns": len(table.columns), "notes": notes}
    model.raw_id_, model.n_rows_, model.columns_ = raw_id, len(rows.y), list(table.columns)
    if classes is not None:
        model.classes_ = np.array(classes)
    y = _scaled_target(model, rows)
    return _fit(model, rows, schema, candidates, y, watch, reference)


def _fit(
    model: TableModel,
    rows: Rows,
    schema: Schema,
    candidates: list[Candidate],
    y: NDArray[Any],
    watch: Watch,
    reference: bool,
) -> TableModel:
    """Search, measure, certify; everything that the model keeps is set here."""
    n_folds = n_folds_of(len(rows.train))
    folds = folds_of(rows, schema, y, n_folds, model.seed)
    scaled_loss = TableLoss(model.task, model.loss_width_ / model.scale_)
    trials = search(candidates, folds, n_folds, scaled_loss, watch)
    chosen = best_of(trials)
    if chosen is None:  # interrupted before the first was done: the first of the plan, untested
        chosen = trials[0]
        if chosen.status.startswith("failed"):
            raise TableError(f"no model could be fitted: {chosen.status}")
        chosen.status = "fitted without a search"
    watch.say("fitting the chosen model", done=0.6)
    model.encoder_ = new_encoder(schema).fit(rows.table.frame[rows.train])
    X_train = model.encoder_.transform(rows.table.frame[rows.train])
    X_hold = model.encoder_.transform(rows.table.frame[rows.holdout])
    model.chosen_ = trials.index(chosen)
    model.candidates_ = _log(trials, scaled_loss, model.scale_)
    model.model_ = _final_fit(chosen.candidate, X_train, y[rows.train])
    measured = {model.chosen_: measure(model, model.model_, X_hold, rows)}
    for trial in _finalists(trials, chosen):
        name = f"measuring {trial.candidate.name}"
        cost = trial.seconds / max(1, len(trial.losses)) * 1.5

        def work(trial: Trial = trial) -> Any:
            other = fit_quietly(trial.candidate, X_train, y[rows.train])
            return measure(model, other, X_hold, rows)

        evidence = watch.optional(name, work, seconds=cost, share=0.75)
        if evidence is not None:
            measured[trials.index(trial)] = evidence
    if reference:
        _add_reference(model, rows, X_train, X_hold, y, measured, watch)
    for place, limits in holdout_limits(model, measured, len(rows.holdout)).items():
        model.candidates_[place]["holdout"] = limits
    if model.refit:
        watch.say("fitting on all rows", done=0.8)
        model.encoder_ = new_encoder(schema).fit(rows.table.frame)
        X_train = model.encoder_.transform(rows.table.frame)
        model.model_ = _final_fit(chosen.candidate, X_train, y)
    model.matrix_id_ = fingerprint(X_train, y if model.refit else y[rows.train])
    _certify(model, rows, X_train, X_hold, measured, watch)
    _draw(model, rows, trials, chosen, folds(0), X_train, y, watch)
    model.created_ = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    model.skipped_ = list(watch.skipped)
    model.interrupted_ = bool(watch.interrupted)
    watch.close()
    return model


def _certify(
    model: TableModel,
    rows: Rows,
    X_train: Array,
    X_hold: Array,
    measured: dict[int, tuple[float, ...]],
    watch: Watch,
) -> None:
    """The four sections, and the certificate made of them."""
    watch.say("certifying", done=0.85)
    if model.refit:  # the encoder has changed
        X_hold = model.encoder_.transform(rows.table.frame[rows.holdout])
    sections: dict[str, list[Any]] = {name: [] for name in SECTIONS}
    sections["optimality"] = optimality(getattr(model.model_, "certificate_", None))
    sections["generalisation"], evidence = generalisation(model, rows, X_hold, measured)
    truth = rows.y[rows.holdout]
    sections["robustness"], more = robustness(model, X_hold, truth, X_train, watch)
    evidence |= more
    if model.sensitive:
        sections["fairness"], more = fairness(model, rows, X_hold, X_train, watch)
        evidence |= more
    if model.refit:
        sections = {name: withdrawn(name, claims) for name, claims in sections.items()}
    model.evidence_ = evidence
    model.sections_ = {name: [c.to_dict() for c in claims] for name, claims in sections.items()}
    everything = tuple(claim for claims in sections.values() for claim in claims)
    stopped = "the candidates of the plan were tried"
    if watch.interrupted:
        stopped = "the user interrupted it"
    elif any(not record["tried"] for record in model.candidates_ if record["certified"]):
        stopped = "the time was up, or a candidate could not be fitted"
    model.certificate_ = Certificate(everything, model.raw_id_, stopped, _about(model))
    if not model.certificate_.ok:
        warnings.warn(model.certificate_.failure_message(), CertificateWarning, stacklevel=4)


def _draw(
    model: TableModel,
    rows: Rows,
    trials: list[Trial],
    chosen: Trial,
    fold: Any,
    X_train: Array,
    y: NDArray[Any],
    watch: Watch,
) -> None:
    """What is drawn besides the claims, as far as there is time."""
    evidence = model.evidence_
    targets = y if model.refit else y[rows.train]
    loss = TableLoss(model.task, model.loss_width_ / model.scale_)
    cost = chosen.seconds / max(1, len(chosen.losses))
    jobs: dict[str, Any] = {
        "objective": lambda: objective_curve(chosen.candidate, model.model_, X_train, targets, watch),
        "coefficients": lambda: coefficients(model, X_train, targets),
        "learning_curve": lambda: learning_curve(chosen.candidate, fold, loss, watch),
        "validation_curve": lambda: validation_curve(trials, chosen),
    }
    if model.sensitive and model.task == "classification" and len(model.classes_) == 2:
        jobs["remedies"] = lambda: remedies(model, rows, X_train, y)
    for name, job in jobs.items():
        found = watch.optional(name.replace("_", " "), job, seconds=min(cost, 5.0), share=0.97)
        if found is not None:
            evidence[name] = found


# ------------------------------------------------------------------------ parts


def _schema(
    table: Table,
    target: str,
    sensitive: Sequence[str],
    drop: Sequence[str],
    task: str,
    roles: dict[str, str] | None,
    seed: int,
) -> tuple[Table, Schema, list[str]]:
    """The table without the columns to drop, its schema, and what the user should know."""
    dropped = _known(table, drop, "drop")
    if target in dropped:
        raise TableError(f"drop: '{shown(target)}' is the target and cannot be left out.")
    kept = [name for name in table.columns if name not in dropped]
    table = table.select(kept) if dropped else table
    parts = {name: "ignored" for name in sensitive} | dict(roles or {})  # the model does not read them
    schema = propose_schema(
        table, target, sensitive=tuple(sensitive), task=task, roles=parts, seed=seed
    )
    notes = [f"{note['what']}: {note['value']} ({note['how']})" for note in schema.notes]
    if dropped:
        notes.append(f"left out on request: {', '.join(shown(name) for name in dropped)}")
    return table, schema, notes


def _classes(schema: Schema, positive: str | None) -> list[str] | None:
    """The classes in the order of the alphabet; ``None`` for a regression."""
    if schema.task == "regression":
        if positive is not None:
            raise TableError(f"positive: got '{shown(positive)}', but the task is a regression.")
        return None
    classes = list(schema.classes or [])
    if positive is not None and positive not in classes:
        names = ", ".join(shown(label) for label in classes[:10])
        raise TableError(f"positive: '{shown(positive)}' is not a class of the target; choose among {names}.")
    return classes


def _check(holdout: float, delta: float, seconds: float) -> None:
    if not 0.0 < holdout < 1.0:
        raise ValueError(f"holdout must lie between 0 and 1, got {holdout!r}; 0.25 keeps a quarter aside.")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}; 0.05 is 95 % confidence.")
    if not seconds > 0:
        raise ValueError(f"time must be a positive number of seconds, got {seconds!r}.")


def _check_parts(rows: Rows, schema: Schema, classes: list[str] | None) -> None:
    """Every class must be there to be learnt, often enough for folds."""
    if classes is None:
        return
    counts = np.bincount(rows.y[rows.train], minlength=len(classes))
    rare = [f"'{shown(classes[k])}' ({counts[k]})" for k in np.flatnonzero(counts < 2)]
    if rare:
        raise TableError(
            f"the target '{shown(schema.target)}' has classes with fewer than 2 rows to learn from: "
            f"{', '.join(rare[:5])}. Join rare classes, leave their rows out, or use --task regression."
        )


def _known(table: Table, names: Sequence[str], argument: str) -> list[str]:
    """The names, if the table has them all."""
    for name in names:
        if name not in table.columns:
            known = ", ".join(shown(column) for column in table.columns[:10])
            raise TableError(f"{argument}: there is no column '{shown(name)}'; the columns are {known}.")
    return list(names)


def _scaled_target(model: TableModel, rows: Rows) -> NDArray[Any]:
    """Targets as models see them: codes, or numbers with mean 0 and variance 1 on the training part."""
    model.centre_, model.scale_, model.loss_width_ = 0.0, 1.0, 1.0
    if model.task == "classification":
        return rows.y
    known = rows.y[rows.train]
    model.loss_width_ = float(known.max() - known.min())
    if not model.loss_width_ > 0:
        raise TableError(f"the target '{shown(model.target)}' has one value only: nothing can be learnt.")
    model.centre_, model.scale_ = float(known.mean()), float(known.std())
    return np.asarray((rows.y - model.centre_) / model.scale_)


def _final_fit(candidate: Candidate, X: Array, y: NDArray[Any]) -> Any:
    """The shipped model; what its certificate says of it is part of ours, so it need not warn by itself."""
    try:
        return fit_quietly(candidate, X, y, certify=True)
    except ERRORS as error:
        raise TableError(f"{candidate.name} could not be fitted: {error}") from error


def _finalists(trials: list[Trial], chosen: Trial) -> list[Trial]:
    """The best trial of each family but the chosen one's, the best first."""
    kinds = {trial.candidate.family for trial in trials} - {chosen.candidate.family}
    best = [best_of([t for t in trials if t.candidate.family == kind]) for kind in kinds]
    return sorted((t for t in best if t is not None), key=lambda trial: trial.loss)


def measure(model: TableModel, fitted: Any, X: Array, rows: Rows) -> tuple[float, ...]:
    """Mean, variance, least and largest loss of a fitted estimator on the hold-out."""
    loss = loss_of(model)
    raw = np.asarray(fitted.predict(X))
    predicted = raw if model.task == "classification" else raw * model.scale_ + model.centre_
    return loss.evidence(loss.rows(rows.y[rows.holdout], predicted))


def _log(trials: list[Trial], loss: TableLoss, scale: float) -> list[dict[str, Any]]:
    """The trials as plain data, losses in the unit of the target."""
    return [
        {
            "name": trial.candidate.name,
            "family": trial.candidate.family,
            "params": dict(trial.candidate.params),
            "value": trial.candidate.value,
            "score": trial.loss * scale if trial.tried else None,
            "score_name": "error" if loss.task == "classification" else "mean absolute error",
            "seconds": round(trial.seconds, 4),
            "status": trial.status,
            "tried": trial.tried,
            "holdout": None,
            "certified": True,
        }
        for trial in trials
    ]


def _add_reference(
    model: TableModel,
    rows: Rows,
    X_train: Array,
    X_hold: Array,
    y: NDArray[Any],
    measured: dict[int, tuple[float, ...]],
    watch: Watch,
) -> None:
    """Gradient boosting, measured like the others and marked as uncertified."""

    def work() -> Any:
        return watch.timed(
            lambda: measure(
                model, fit_reference(model.encoder_, X_train, y[rows.train], model), X_hold, rows
            )
        )

    found = watch.optional(f"measuring {REFERENCE}", work, seconds=1e-4 * len(X_train), share=0.9)
    if found is None:
        return
    evidence, seconds = found
    measured[len(model.candidates_)] = evidence
    model.candidates_.append(
        {
            "name": REFERENCE,
            "family": "boosting",
            "params": {},
            "value": None,
            "score": None,
            "score_name": model.candidates_[0]["score_name"],
            "seconds": round(seconds, 4),
            "status": "uncertified reference",
            "tried": False,
            "holdout": None,
            "certified": False,
        }
    )


def _about(model: TableModel) -> str:
    return f"{type(model.model_).__name__} for '{shown(model.target)}'"
