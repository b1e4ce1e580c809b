"""The claims about a table model, section by section, from the rows and the model alone.

Each section gets delta of its own: "with probability 95 %" is about the sentences of one section together.
So where a section has two statistical sentences, each is computed with half of delta, and states the whole:

* generalisation: the error of all models, then the calibration or the width of an interval;
* robustness: one sentence, for all radii;
* fairness: half to the audit, a quarter to the proxies (of all sensitive columns), a quarter to the remedies.

* *optimality*: the claims of the chosen estimator about its own fit;
* *generalisation*: the true loss, bounded for all models of the plan at once, the calibration of the
  probabilities or the width that covers 90 % of rows to come;
* *robustness* and *fairness*: see :mod:`surefit.table.robustness` and :mod:`surefit.table.fairness`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from ..model_selection._claims import Statistics, excess_claim, generalisation_claim
from .evidence import (
    calibration_bins,
    calibration_claim,
    confusion,
    coverage_claim,
    curves,
    residuals,
)
from .losses import TableLoss
from .prepare import Rows

__all__ = ["generalisation", "holdout_limits", "loss_of", "optimality", "score_of", "withdrawn"]

Array = NDArray[np.float64]
FIXED = ", and seed and plan chosen without a look at the hold-out"


@dataclass(frozen=True)
class SharedStatistics(Statistics):
    """Limits that use a share of delta; the sentences state delta, which other sentences have a part of."""

    share: float = 1.0

    def limits(self) -> tuple[Array, Array]:
        """As of :class:`Statistics`, with ``share`` of delta."""
        part = self.share * self.delta
        return Statistics(
            self.evidence, self.sizes, self.loss, self.stratified, part, self.bound
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
    """Which share of delta the errors get: half, where there is a second sentence in the section."""
    return 0.5 if model.task == "regression" or model.has_probabilities else 1.0


def _statistics(model: Any, measured: dict[int, tuple[float, ...]], n: int) -> SharedStatistics:
    """What was measured on the hold-out, with a row of NaN for each model of the plan that was not."""
    loss = loss_of(model)
    table = np.full((len(model.candidates_), 1, 4), np.nan)
    for place, evidence in measured.items():
        table[place, 0] = evidence
    return SharedStatistics(
        table, np.array([n]), loss.bounded(), False, model.delta, loss.bound, share_of(model)
    )


def holdout_limits(
    model: Any, measured: dict[int, tuple[float, ...]], n: int
) -> dict[int, dict[str, float]]:
    """Loss on the hold-out and its limits, of every model that was measured there."""
    low, high = _statistics(model, measured, n).limits()
    width = float(model.loss_width_)
    return {
        place: {
            "loss": float(measured[place][0]),
            "low": max(0.0, float(low[place])),
            "high": min(width, float(high[place])),
        }
        for place in measured
    }


def generalisation(
    model: Any, rows: Rows, X: Array, measured: dict[int, tuple[float, ...]]
) -> tuple[list[Claim], dict[str, Any]]:
    """Claims about rows to come, and what is drawn of the hold-out; ``X`` are its encoded rows."""
    truth = rows.y[rows.holdout]
    n, delta = len(truth), model.delta
    if model.refit:
        why = (
            "nothing is claimed of the true error: the model was refitted on all rows, and is not the one "
            "that was tested. Without --refit the tested one is shipped"
        )
        claims = [Claim.undecided("generalisation", why, Kind.STATISTICAL, "GEN-6")]
        return claims, {}
    reference = _is_reference(model)
    planned = int((~reference).sum())
    words = f", counting all {planned} models of the plan" if planned > 1 else ""
    if reference.any():
        words = f", counting all {planned + 1} models, the {planned} of the plan and the reference"
    statistics = _statistics(model, measured, n)
    best = int(model.chosen_)
    caveat = FIXED + repeated_words(model, rows)
    claims = [generalisation_claim(statistics, best, "", words, source="GEN-4", caveat=caveat)]
    # the reference is measured, but is not one of the models to choose from
    excess = excess_claim(statistics, best, "", excluded=reference)
    claims += [] if excess is None else [excess]
    if model.task == "regression":
        found = model.predict_encoded(X)
        errors, width = np.abs(truth - found), float(model.loss_width_)
        claims.append(coverage_claim(errors, delta / 2.0, model.target, width, stated=delta))
        return claims, {"residuals": residuals(found, truth, model.seed)}
    codes = np.asarray(model.model_.predict(X)).astype(np.intp)
    labels = [str(label) for label in model.classes_]
    evidence: dict[str, Any] = {"confusion": confusion(truth, codes, labels)}
    hits = (truth == model.positive_code).astype(np.float64)
    score = score_of(model, X)
    if score is not None:
        bins = calibration_bins(score, hits, delta / 2.0)
        evidence |= {"calibration": bins, **curves(score, hits)}
        claims.append(calibration_claim(bins, delta, labels[model.positive_code]))
    elif len(labels) == 2 and hasattr(model.model_, "decision_function"):
        margin = np.asarray(model.model_.decision_function(X), dtype=np.float64).reshape(n)
        evidence |= curves(margin if model.positive_code == 1 else -margin, hits)
    return claims, evidence


def repeated_words(model: Any, rows: Rows) -> str:
    """How many rows of the hold-out are among the training rows too; "" for none.

    Rows drawn independently may be equal, where columns have few values. Where they are not, equal rows were
    copied, and the error on them is none of a row to come: only the owner of the table knows.
    """
    names = dict.fromkeys([*model.encoder_.blocks_, model.target])
    hashes = rows.table.frame.select(list(names)).hash_rows(seed=0).to_numpy()
    count = int(np.isin(hashes[rows.holdout], hashes[rows.train]).sum())
    if not count:
        return ""
    return f"; {count} of the {len(rows.holdout)} rows of the hold-out are equal to training rows"


def _is_reference(model: Any) -> NDArray[np.bool_]:
    return np.array([not record["certified"] for record in model.candidates_])


def withdrawn(section: str, claims: list[Claim]) -> list[Claim]:
    """The claims that still may be made of a model refitted on all rows: those that are no statistics."""
    if section == "generalisation" or not any(c.kind is Kind.STATISTICAL for c in claims):
        return claims
    why = "the model was refitted on all rows, so that none is left that it has not seen: nothing is claimed"
    kept = [claim for claim in claims if claim.kind is not Kind.STATISTICAL]
    return [*kept, Claim.undecided(section, why, Kind.STATISTICAL, "GEN-6")]
