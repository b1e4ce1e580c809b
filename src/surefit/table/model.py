"""The model of a table: how the file is read and encoded, the model, and what is claimed of it.

A :class:`TableModel` is what ``surefit fit`` writes to ``model.surefit``. It is made by
:func:`surefit.table.fit_table` and holds one encoder and one certified estimator, the rule and seed of the
split, the log of all candidates and two fingerprints: of the raw rows, and of the encoded training matrix.
With the table at hand, :func:`surefit.verify` draws the split again, encodes again, fits again and
recomputes every claim.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from ..base import Certified
from ..certificate import DEFAULT_TOLERANCE, Certificate, Claim
from ..data import Parsing, Schema, Table, read_table
from ..io import ModelFileError
from ..preprocessing import TableEncoder

__all__ = ["SECTIONS", "TableModel"]

Array = NDArray[np.float64]
_PARTS: dict[str, Any] = {
    "model_": Certified,
    "encoder_": TableEncoder,
    "schema_": dict,
    "parsing_": dict,
    "data_": dict,
    "columns_": list,
    "candidates_": list,
    "chosen_": int,
    "n_rows_": int,
    "centre_": float,
    "scale_": float,
    "loss_width_": float,
    "raw_id_": str,
    "matrix_id_": str,
    "created_": str,
    "version_": str,
    "skipped_": list,
    "sections_": dict,
    "evidence_": dict,
    "roles_": dict,
    "units_": dict,
    "constant_": dict,
    "interrupted_": bool,
    "certificate_": Certificate,
}
SECTIONS = ("optimality", "generalisation", "robustness", "fairness")


class TableModel(Certified):
    """A fitted model of a table, with its preprocessing and its certificate.

    Parameters
    ----------
    target : str
        The column that is predicted.
    task : {"classification", "regression"}
    sensitive : list of str
        Columns that the fairness claims are about; the model does not read them.
    immutable : list of str
        Columns that nobody can change, for the robustness claims.
    positive : str or None
        The class that counts as a favourable or positive decision.
    models : list of str
        Families of the plan.
    holdout : float
        Share of the rows that is held out; of groups, where rows are grouped.
    seed : int
        Seed of the split and of everything random.
    delta : float
        Probability with which each section's statistical claims may be wrong.
    refit : bool
        Whether the shipped model was fitted on all rows; nothing is then claimed of its true error.
    group : str or None
        The column that tells which rows belong together; no split separates them.
    time_column : str or None
        The column that tells when a row was made; every split trains on the past and tests on the future.
    rows_are_independent : bool
        Whether the owner of the table said that its rows are independent.
    fairness_tolerance : float or dict
        Largest acceptable gap between groups, as ``tolerance`` of :func:`surefit.fair.audit`.
    certify : bool or "full"
        As for every estimator.

    Attributes
    ----------
    model_ : estimator
        The chosen model, on encoded rows.
    encoder_ : TableEncoder
        Raw columns to numbers, learnt on the training part.
    classes_ : ndarray of str
        The classes, in the order of the codes that ``model_`` predicts (classification).
    parsing_, schema_ : dict
        How the file was read, and the part each column plays.
    centre_, scale_ : float
        Of the target on the training part (regression; 0 and 1 otherwise).
    loss_width_ : float
        The largest loss that is counted: 1, or the range of the target on the training part.
    candidates_ : list of dict
        Every candidate of the plan with its validation loss, or why it was not tried; then the reference.
    chosen_ : int
        The place of the shipped model among them.
    raw_id_, matrix_id_ : str
        Fingerprints of the raw rows and of the encoded training matrix.
    units_ : dict
        What the rows of the hold-out are: how many independent units, copies, and what casts doubt.
    constant_ : dict
        The best constant prediction, its loss on the hold-out, and whether the model is shown to be better.
    sections_ : dict
        The claims by section, as plain data.
    evidence_ : dict
        What the report draws, as plain data.
    certificate_ : Certificate
        All claims.
    """

    def __init__(
        self,
        target: str = "",
        task: str = "classification",
        *,
        sensitive: Any = (),
        immutable: Any = (),
        positive: str | None = None,
        models: Any = (),
        holdout: float = 0.25,
        seed: int = 0,
        delta: float = 0.05,
        refit: bool = False,
        group: str | None = None,
        time_column: str | None = None,
        rows_are_independent: bool = False,
        fairness_tolerance: Any = 0.05,
        certify: bool | str = True,
    ) -> None:
        self.target = target
        self.task = task
        self.sensitive = sensitive
        self.immutable = immutable
        self.positive = positive
        self.models = models
        self.holdout = holdout
        self.seed = seed
        self.delta = delta
        self.refit = refit
        self.group = group
        self.time_column = time_column
        self.rows_are_independent = rows_are_independent
        self.fairness_tolerance = fairness_tolerance
        self.certify = certify

    # ------------------------------------------------------------------ reading and predicting

    @property
    def schema(self) -> Schema:
        """The part that each column plays."""
        return Schema.from_dict(self.schema_)

    @property
    def parsing(self) -> Parsing:
        """How the training file was read."""
        return Parsing.from_dict(self.parsing_)

    def read(self, source: Any) -> Table:
        """A file read as the training file was; frames and tables are taken as they are."""
        if isinstance(source, Table):
            return source
        parsing = self.parsing
        return read_table(source, parsing=parsing if parsing.format == "csv" else None)

    def encode(self, source: Any) -> Array:
        """The matrix that ``model_`` reads."""
        if "model_" not in vars(self):
            raise NotFittedError(
                "this TableModel is not fitted; surefit.table.fit_table makes one."
            )
        encoder: TableEncoder = self.encoder_
        return encoder.transform(self.read(source).frame)

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes or numbers for the rows of a file, a table or a frame."""
        return self.predict_encoded(self.encode(X))

    def predict_encoded(self, X: Array) -> NDArray[Any]:
        """Predictions for encoded rows: labels of classes, or numbers in the target's unit."""
        raw = np.asarray(self.model_.predict(X))
        if self.task == "classification":
            labels: NDArray[Any] = self.classes_[raw.astype(np.intp)]
            return labels
        return np.asarray(raw * self.scale_ + self.centre_, dtype=np.float64)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, where the chosen model has them."""
        return np.asarray(self.model_.predict_proba(self.encode(X)), dtype=np.float64)

    @property
    def has_probabilities(self) -> bool:
        """Whether the chosen model gives probabilities."""
        return self.task == "classification" and hasattr(self.model_, "predict_proba")

    @property
    def positive_code(self) -> int:
        """The code of the positive class."""
        labels = [str(label) for label in self.classes_]
        return labels.index(str(self.positive)) if self.positive in labels else len(labels) - 1

    def check_whole(self) -> None:
        """Refuse a file that lacks a part of a table model, or has one of another kind, before it is used."""
        wrong = [
            name for name, kind in _PARTS.items() if not isinstance(vars(self).get(name), kind)
        ]
        if not wrong:
            sections = all(isinstance(self.sections_.get(name), list) for name in SECTIONS)
            wrong = [] if sections else ["sections_"]
        labels = vars(self).get("classes_")
        if not wrong and self.task == "classification" and not isinstance(labels, np.ndarray):
            wrong = ["classes_"]
        if wrong:
            raise ModelFileError(
                f"the file is not a whole table model: {', '.join(wrong)} is missing or wrong."
            )

    # ------------------------------------------------------------------ certificates

    def claims(self, section: str) -> list[Claim]:
        """The recorded claims of a section."""
        return [Claim.from_dict(record) for record in self.sections_[section]]

    def document(self) -> dict[str, Any]:
        """What ``certificate.json`` and the report say, as plain data."""
        from .document import document_of

        return document_of(self)

    def verify(self, source: Any, *, tol: float = DEFAULT_TOLERANCE) -> Any:
        """Every claim again, by section, from the table alone; see :func:`surefit.table.verify_table`."""
        from .verifying import verify_table

        return verify_table(self, source, tol=tol)

    def _recertify(
        self, X: Any, y: Any, sample_weight: Any, tol: float = DEFAULT_TOLERANCE
    ) -> Certificate:
        if y is not None or sample_weight is not None:
            raise TypeError(
                "a table model is verified with its table alone: surefit.verify(model, table)."
            )
        certificate: Certificate = self.verify(X, tol=tol).certificate
        return certificate

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        """The claims from the table ``X``."""
        return list(self.verify(X, tol=tol).certificate.claims)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        return self.read(X), y, sample_weight
