"""From a table to a certified model: search on the training part, measure on the hold-out, certify.

The order is that of the argument. The hold-out is drawn first and looked at last: candidates are compared by
cross-validation on the training part; the best one, and the best of each other family, are fitted on the
training part and measured on the hold-out; the one that validation chose is shipped as it was measured. The
bound on its error counts every model of the plan, so that it holds whichever of them is shipped.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .. import __version__
from ..certificate import Certificate, CertificateWarning
from ..data import Schema, Table, TableError, read_table
from ..fingerprint import fingerprint
from .asked import check_numbers, check_parts, classes_of, known, scale_target, schema_of
from .drawings import drawings
from .facts import UNTESTED, about_of, stopped_of
from .fairness import check_fairness_tolerance
from .held_out import held_out
from .independence import record_of
from .losses import TableLoss
from .measuring import add_reference, final_fit, log_of, measure, measure_finalists
from .model import SECTIONS, TableModel
from .plan import Candidate, families, plan
from .prepare import Rows, folds_of, n_folds_of, new_encoder, rows_of
from .reference import NAME, cost_of
from .search import best_of, search
from .sections import holdout_limits, optimality, withdrawn
from .units import Asked
from .watch import Watch

__all__ = ["fit_table"]

Array = NDArray[np.float64]
SMALL = 5_000_000  # cells of a table


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
    group: str | None = None,
    time_column: str | None = None,
    rows_are_independent: bool = False,
    reference: bool = True,
    seed: int = 0,
    roles: dict[str, str] | None = None,
    fairness_tolerance: float | dict[str, float] = 0.05,
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
        Share of rows that is held out; of groups, where rows are grouped.
    delta : float
        Probability with which the statistical claims of a section may be wrong.
    refit : bool
        Ship a model fitted on all rows; nothing is then claimed of its true error.
    group : str, optional
        The column that tells which rows belong together, such as the number of a patient. No split separates
        them, the model does not read the column, and claims are about the mean of group means.
    time_column : str, optional
        The column that tells when a row was made: dates, or numbers such as years. Every split trains on the
        past and tests on the future, and claims suppose that the future resembles the past. The model does
        not read the column unless ``roles`` says so.
    rows_are_independent : bool
        Say that rows are independent although some are equal or nearly equal, or a column looks like the
        number of a person. The claims then say on whose word.
    reference : bool
        Also measure scikit-learn's gradient boosting on the hold-out, as an uncertified row.
    seed : int
        Seed of the split and of all else that is random.
    roles : dict, optional
        Column name to role, where the proposed one is wrong.
    fairness_tolerance : float or dict
        Largest acceptable gap between groups of a sensitive column, as ``tolerance`` of
        :func:`surefit.fair.audit`. Each criterion is met, violated or not decided against it.
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
    >>> model = fit_table(table, "denied", models=["logistic"], reference=False)
    >>> model.certificate_.ok
    True
    >>> surefit.verify(model, table).ok
    True
    """
    watch = Watch(time) if watch is None else watch
    sensitive, immutable = list(dict.fromkeys(sensitive)), list(dict.fromkeys(immutable))
    check_numbers(holdout, delta, time, seed)
    check_fairness_tolerance(fairness_tolerance)
    watch.say("reading the table")
    table = source if isinstance(source, Table) else read_table(source)
    asked = Asked(group, time_column, bool(rows_are_independent))
    table, schema, notes = schema_of(table, target, sensitive, drop, task, roles, seed, asked)
    raw_id = table.fingerprint()
    classes = classes_of(schema, positive)
    rows = rows_of(table, schema, classes, holdout, seed, asked)
    check_parts(rows, schema, classes)
    names = families(schema.task) if models is None else tuple(models)
    candidates = plan(schema.task, names)
    model = TableModel(
        target=target,
        task=schema.task,
        sensitive=list(sensitive),
        immutable=known(table, immutable, "immutable"),
        positive=None if classes is None else positive or classes[-1],
        models=[name for name in families(schema.task) if name in names],
        holdout=float(holdout),
        seed=int(seed),
        delta=float(delta),
        refit=bool(refit),
        group=group,
        time_column=time_column,
        rows_are_independent=bool(rows_are_independent),
        fairness_tolerance=fairness_tolerance,
    )
    model.schema_, model.parsing_ = schema.to_dict(), table.parsing.to_dict()
    model.data_ = {
        "name": table.name,
        "rows": table.rows,
        "columns": len(table.columns),
        "notes": notes,
    }
    model.roles_ = dict(roles or {})
    model.units_, model.constant_ = record_of(rows), {}
    model.raw_id_, model.n_rows_, model.columns_ = raw_id, len(rows.y), list(table.columns)
    if classes is not None:
        model.classes_ = np.array(classes)
    y = scale_target(model, rows)
    # products of matrices of this size gain nothing from a second thread, and where the machine is busy with
    # other work its threads spin while they wait for each other
    small = table.rows * len(table.columns) <= SMALL
    with threadpool_limits(1 if small else None, user_api="blas"):
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
    folds = folds_of(rows, schema, y, n_folds_of(len(rows.train)), model.seed)
    scaled_loss = TableLoss(model.task, model.loss_width_ / model.scale_)
    trials = search(candidates, folds, folds.count, scaled_loss, watch)
    chosen = best_of(trials)
    if chosen is None:  # interrupted, or out of time, before one was done: the one that was begun
        chosen = max(trials, key=lambda trial: len(trial.losses))
        if chosen.status.startswith("failed"):
            raise TableError(f"no model could be fitted: {chosen.status}")
        chosen.status = UNTESTED
    watch.say("fitting the chosen model", done=0.6)
    model.encoder_ = new_encoder(schema).fit(rows.table.frame[rows.train])
    X_train = model.encoder_.transform(rows.table.frame[rows.train])
    X_hold = model.encoder_.transform(rows.table.frame[rows.holdout])
    model.chosen_ = trials.index(chosen)
    model.candidates_ = log_of(trials, scaled_loss, model.scale_)
    model.model_ = final_fit(chosen.candidate, X_train, y[rows.train])
    measured = {model.chosen_: measure(model, model.model_, X_hold, rows)}
    measured |= measure_finalists(model, trials, chosen, X_train, X_hold, rows, y, watch)
    if reference and watch.left(0.9) < cost_of(X_train, model):
        watch.skip(f"measuring {NAME}")
    elif reference:
        add_reference(model, rows, X_train, X_hold, y, measured, watch)
    for place, limits in holdout_limits(model, measured).items():
        model.candidates_[place]["holdout"] = limits
    if model.refit:
        watch.say("fitting on all rows", done=0.8)
        model.encoder_ = new_encoder(schema).fit(rows.table.frame)
        X_train = model.encoder_.transform(rows.table.frame)
        model.model_ = final_fit(chosen.candidate, X_train, y)
    model.matrix_id_ = fingerprint(X_train, y if model.refit else y[rows.train], None)
    _certify(model, rows, X_train, X_hold, measured, watch)
    cost = min(5.0, chosen.seconds / max(1, len(chosen.losses)))
    for name, job in drawings(model, rows, trials, chosen, folds, X_train, y, watch).items():
        found = watch.optional(name.replace("_", " "), job, seconds=cost, share=0.97)
        if found is not None:
            model.evidence_[name] = found
        elif watch.left(0.9) <= 0 and not watch.interrupted:
            watch.skip(name.replace("_", " "))  # begun, but there was no time for two points
    model.created_ = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    model.skipped_, model.version_ = list(watch.skipped), __version__
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
    found, evidence = held_out(model, rows, X_hold, X_train, measured, watch)
    sections |= found
    model.constant_ = evidence.pop("constant", {})
    if model.refit:
        sections["optimality"] = withdrawn("optimality", sections["optimality"])
    model.evidence_ = evidence
    model.sections_ = {name: [c.to_dict() for c in claims] for name, claims in sections.items()}
    everything = tuple(claim for claims in sections.values() for claim in claims)
    stopped = stopped_of(model, watch.interrupted)
    model.certificate_ = Certificate(everything, model.raw_id_, stopped, about_of(model))
    if not model.certificate_.ok:
        warnings.warn(model.certificate_.failure_message(), CertificateWarning, stacklevel=4)
