"""The claims about a table model, section by section, from the rows and the model alone.

Each section gets delta of its own: "with probability 95 %" is about the sentences of one section together.
So where a section has several statistical sentences, each is computed with a share of delta, and states the
whole:

* generalisation: half to the error of all models, a quarter to the calibration or the width of an interval
  (to the error as well, where there is neither), a quarter to the comparison with a constant;
* robustness: one sentence, for all radii;
* fairness: half to the audit, a quarter to the proxies (of all sensitive columns), a quarter to the remedies.

* *optimality*: the claims of the chosen estimator about its own fit;
* *generalisation*: the true loss, bounded for all models of the plan at once, the calibration of the
  probabilities or the width that covers 90 % of rows to come, and whether it is better than a constant;
* *robustness* and *fairness*: see :mod:`surefit.table.robustness` and :mod:`surefit.table.fairness`.

A statistical sentence counts independent units (:mod:`surefit.table.units`): losses are averaged over each
unit of the hold-out, and sentences about single rows read one row of each unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from ..model_selection._claims import Statistics, excess_claim, generalisation_claim
from .constant import constant_claim
from .evidence import (
    calibration_bins,
    calibration_claim,
    confusion,
    coverage_claim,
    curves,
    residuals,
)
from .independence import averaged
from .losses import TableLoss
from .prepare import Rows

__all__ = ["generalisation", "holdout_limits", "loss_of", "optimality", "score_of", "withdrawn"]

Array = NDArray[np.float64]
SECOND, COMPARED = 0.25, 0.25  # of delta, to the second sentence and to the comparison
FIXED = "; seed and plan were chosen without a look at the hold-out"


@dataclass(frozen=True)
class SharedStatistics(Statistics):
    """Limits that use a share of delta; the sentences state delta, which other sentences have a part of."""

    share: float = 1.0

    def limits(self) -> tuple[Array, Array]:
        """As of :class:`Statistics`, with ``share`` of delta."""
        return Statistics(
            self.evidence,
            self.sizes,
            self.loss,
            self.stratified,
            self.share * self.delta,
            self.bound,
            grouped=self.grouped,
        ).limits()


def loss_of(model: Any) -> TableLoss:
    """The loss of a fitted table model."""
    return TableLoss(model.task, float(model.loss_width_))


def score_of(model: Any, X: Array) -> Array | None:
    """Probability of the positive class, where the model has probabilities."""
    if not model.has_probabilities:
        return None
    return np.asarray(model.model_.predict_proba(X)[:, model.positive_code], dtype=np.float64)


def optimality(certificate: Any) -> list[Claim]:
    """The estimator's own claims, or that it has none."""
    if certificate is None:
        why = "the fit was not certified"
        return [Claim.undecided("optimality", why, Kind.OPTIMAL, "GEN-6")]
    return list(certificate.claims)


def share_of(model: Any) -> float:
    """Which share of delta the errors get: more where there is one sentence less in the section."""
    return 0.5 if model.task == "regression" or model.has_probabilities else 0.75


def _statistics(model: Any, measured: dict[int, tuple[float, ...]]) -> SharedStatistics:
    """What was measured on the hold-out, with a row of NaN for each model of the plan that was not."""
    loss = loss_of(model)
    table = np.full((len(model.candidates_), 1, 4), np.nan)
    for place, evidence in measured.items():
        table[place, 0] = evidence
    sizes = np.array([model.units_["held_units"]])
    single = model.units_["single"]
    return SharedStatistics(
        table,
        sizes,
        loss.bounded(single),
        False,
        model.delta,
        loss.bound,
        share=share_of(model),
        grouped=not single,
    )


def holdout_limits(
    model: Any, measured: dict[int, tuple[float, ...]]
) -> dict[int, dict[str, float | None]]:
    """Loss on the hold-out and its limits, of every model that was measured there.

    Without limits where the rows may not be independent.
    """
    low, high = _statistics(model, measured).limits()
    width, sure = float(model.loss_width_), not model.units_["why"]
    return {
        place: {
            "loss": float(measured[place][0]),
            "low": max(0.0, float(low[place])) if sure else None,
            "high": min(width, float(high[place])) if sure else None,
        }
        for place in measured
    }


def generalisation(
    model: Any, rows: Rows, X: Array, measured: dict[int, tuple[float, ...]]
) -> tuple[list[Claim], dict[str, Any]]:
    """Claims about rows to come, and what is drawn of the hold-out; ``X`` are its encoded rows."""
    if model.refit:
        why = (
            "nothing is claimed of the true error: the model was refitted on all rows, and is not the one "
            "that was tested. Without --refit the tested one is shipped"
        )
        claims = [Claim.undecided("generalisation", why, Kind.STATISTICAL, "GEN-6")]
        return claims, {}
    raw = np.asarray(model.model_.predict(X))
    predicted = raw if model.task == "classification" else raw * model.scale_ + model.centre_
    claims = [_error_claim(model, measured)]
    # the reference is measured, but is not one of the models to choose from
    statistics, reference = _statistics(model, measured), _is_reference(model)
    excess = excess_claim(statistics, int(model.chosen_), "", excluded=reference)
    claims += [] if excess is None else [excess]
    versus, constant = constant_claim(
        model, rows, loss_of(model), predicted, COMPARED * model.delta
    )
    single = rows.one_a_unit(model.seed)
    places = np.searchsorted(rows.holdout, single.holdout)
    if model.task == "regression":
        more, evidence = _widths(model, rows, predicted, places)
    else:
        more, evidence = _probabilities(model, rows, X, raw.astype(np.intp), places)
    return [*claims, *more, versus], evidence | {"constant": constant}


def _error_claim(model: Any, measured: dict[int, tuple[float, ...]]) -> Claim:
    """The true loss of the shipped model, with limits that hold for all of the plan."""
    reference = _is_reference(model)
    planned = int((~reference).sum())
    words = f", counting all {planned} models of the plan" if planned > 1 else ""
    if reference.any():
        words = f", counting all {planned + 1} models, the {planned} of the plan and the reference"
    words = f"{averaged(model)}{words}"
    return generalisation_claim(
        _statistics(model, measured), int(model.chosen_), "", words, source="GEN-4", caveat=FIXED
    )


def _widths(
    model: Any, rows: Rows, predicted: Array, places: NDArray[np.intp]
) -> tuple[list[Claim], dict[str, Any]]:
    """Of a regression: the width that covers most rows to come, and the residuals."""
    truth = rows.y[rows.holdout]
    errors, width = np.abs(truth - predicted)[places], float(model.loss_width_)
    part = SECOND * model.delta
    middle = np.abs(truth - float(np.median(rows.y[rows.train])))[places]
    claim = coverage_claim(errors, part, model.target, width, stated=model.delta, constant=middle)
    return [claim], {"residuals": residuals(predicted, truth, model.seed)}


def _probabilities(
    model: Any, rows: Rows, X: Array, codes: NDArray[np.intp], places: NDArray[np.intp]
) -> tuple[list[Claim], dict[str, Any]]:
    """Of a classification: confusion, curves, and how far probabilities are from rates."""
    truth, labels = rows.y[rows.holdout], [str(label) for label in model.classes_]
    evidence: dict[str, Any] = {"confusion": confusion(truth, codes, labels)}
    hits = (truth == model.positive_code).astype(np.float64)
    score = score_of(model, X)
    if score is not None:
        bins = calibration_bins(score[places], hits[places], SECOND * model.delta)
        evidence |= {"calibration": bins, **curves(score, hits)}
        return [calibration_claim(bins, model.delta, labels[model.positive_code])], evidence
    if len(labels) == 2 and hasattr(model.model_, "decision_function"):
        margin = np.asarray(model.model_.decision_function(X), dtype=np.float64).reshape(-1)
        evidence |= curves(margin if model.positive_code == 1 else -margin, hits)
    return [], evidence


def _is_reference(model: Any) -> NDArray[np.bool_]:
    return np.array([not record["certified"] for record in model.candidates_])


def withdrawn(section: str, claims: list[Claim]) -> list[Claim]:
    """The claims that still may be made of a model refitted on all rows: those that are no statistics."""
    if section == "generalisation" or not any(c.kind is Kind.STATISTICAL for c in claims):
        return claims
    why = "the model was refitted on all rows, so that none is left that it has not seen: nothing is claimed"
    kept = [claim for claim in claims if claim.kind is not Kind.STATISTICAL]
    return [*kept, Claim.undecided(section, why, Kind.STATISTICAL, "GEN-6")]
