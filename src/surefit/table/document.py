"""The document of a table model: ``certificate.json``, and what the report is drawn from.

Plain JSON types, version ``surefit.certificate/1``; every key is described in ``docs/certificate-json.md``.
It is made from the model alone, so that a report can be written again without the table.
"""

from __future__ import annotations

import math
from typing import Any

from ..certificate import Claim, Status
from ..data import shown
from ..data.schema import STRONG
from ..model_selection._claims import percent
from .constant import BETTER
from .independence import rule_of, where_of
from .model import SECTIONS
from .plan import FAMILIES
from .words import explained

__all__ = ["SCHEMA", "document_of", "verdict"]

SCHEMA = "surefit.certificate/1"
UNITS = ("train", "holdout", "neither", "kind", "held_units", "copies", "shared", "assumed", "why")


def document_of(model: Any) -> dict[str, Any]:
    """Everything that is claimed and shown, as plain data."""
    claims = {name: model.claims(name) for name in SECTIONS}
    schema = model.schema_
    encoded = {name: len(places) for name, places in model.encoder_.blocks_.items()}
    chosen = model.candidates_[model.chosen_]
    columns = [
        {
            "name": column["name"],
            "role": _role(model, column),
            "missing": column["missing"],
            "distinct": column["distinct"],
            "note": column["note"],
            "leak": column["leak"],
            "encoded": encoded.get(column["name"], 0),
            "used": column["name"] in encoded,
        }
        for column in schema["columns"]
    ]
    family = FAMILIES[model.task][chosen["family"]]
    doubts = [model.units_["why"]] if model.units_["why"] else []
    document = {
        "schema": SCHEMA,
        "surefit": model.version_,
        "created": model.created_,
        "data": {
            **{key: model.data_[key] for key in ("name", "rows", "columns")},
            "notes": [*doubts, *model.data_["notes"]],
            "target": model.target,
            "sensitive": list(model.sensitive),
            "immutable": list(model.immutable),
            "fingerprint": model.raw_id_,
            "training_fingerprint": model.matrix_id_,
            "parsing": [dict(note) for note in model.parsing_["notes"]],
        },
        "columns": columns,
        "task": model.task,
        "classes": [str(label) for label in model.classes_]
        if model.task == "classification"
        else None,
        "positive": model.positive,
        "split": {
            "seed": model.seed,
            **{key: model.units_[key] for key in UNITS},
            "group": model.group,
            "time_column": model.time_column,
            "rows_are_independent": bool(model.rows_are_independent),
            "rule": rule_of(model),
        },
        "model": {
            "name": type(model.model_).__name__,
            "family": chosen["family"],
            "params": dict(chosen["params"]),
            "words": family.words,
            "refitted": bool(model.refit),
        },
        "candidates": [
            {key: value for key, value in record.items() if key not in ("value", "tried")}
            | {"chosen": place == model.chosen_}
            for place, record in enumerate(model.candidates_)
        ],
        "constant": dict(model.constant_) or None,
        "delta": model.delta,
        "stopped": model.certificate_.stopped,
        "left_out": list(model.skipped_),
        "claims": {
            name: [explained(claim, name) for claim in section] for name, section in claims.items()
        },
        "evidence": model.evidence_ | {"why": _absent(model)},
    }
    document["verdict"] = verdict(model, claims)
    return plain(document)


def _absent(model: Any) -> dict[str, str]:
    """Why a picture that people look for is not there; what there was no time for is in ``left_out``."""
    name, fitted, found = type(model.model_).__name__, model.model_, model.evidence_
    no_time = {text.partition(":")[0].replace(" ", "_") for text in model.skipped_}
    reasons = {
        "calibration": "" if model.has_probabilities else f"{name} gives no probabilities",
        "coefficients": "" if hasattr(fitted, "coef_") else f"{name} has no coefficients",
        "objective": f"there is no formula for the objective of {name} here",
        "validation_curve": "fewer than two values of its parameter were tried",
        "learning_curve": "the training rows are too few",
        "robustness": "it is about classes" if model.task == "regression" else "",
    }
    if model.refit:
        reasons["calibration"] = "the model was refitted on all rows"
    absent = reasons.keys() - found.keys() - no_time
    return {key: why for key, why in reasons.items() if why and key in absent}


def _role(model: Any, column: dict[str, Any]) -> str:
    if column["name"] == model.target:
        return "target"
    return "sensitive" if column["name"] in model.sensitive else str(column["role"])


def verdict(model: Any, claims: dict[str, list[Claim]]) -> dict[str, Any]:
    """The first lines of the report: a headline and a few sentences in plain words."""
    everything = [claim for section in claims.values() for claim in section]
    failed = [claim for claim in everything if claim.status is Status.FAILS]
    open_ = [claim for claim in everything if claim.status is Status.UNDECIDED]
    empty = [claim for claim in everything if claim.status is Status.UNINFORMATIVE]
    status = "fails" if failed else _shown(claims["generalisation"])
    headline = f"{len(failed)} of {len(everything)} claims about this model do not hold"
    if not failed:
        headline = f"{_article(model)} that predicts {_quoted(model.target)}{_how_well(model)}"
    sentences = [_loss_sentence(model), _optimality_sentence(claims["optimality"])]
    sentences += _robustness_sentences(model) + _fairness_sentences(model)
    sentences += _violation_sentences(claims["fairness"])
    sentences += _leak_sentences(model)
    sentences += [f"{claim.name}: {claim.statement}." for claim in failed[:3]]
    if open_:
        names = ", ".join(claim.name for claim in open_[:4])
        sentences.append(f"{len(open_)} of {len(everything)} claims are undecided: {names}.")
    if empty:
        names = ", ".join(claim.name for claim in empty[:4])
        sentences.append(f"{len(empty)} of {len(everything)} claims are uninformative: {names}.")
    return {"status": status, "headline": headline, "sentences": [s for s in sentences if s]}


def _shown(generalisation: list[Claim]) -> str:
    """ "holds" for a model that is shown to be better than a constant; a ✓ on any other would mislead."""
    found = [c.status for c in generalisation if c.name == BETTER]
    return found[0].value if found else "undecided"


def _percent(share: float) -> str:
    """A share as people read it."""
    return f"{100 * share:.1f} %"


def _least(share: float) -> float:
    """A lower limit in per cent, rounded down to a tenth: an interval is not made shorter by its digits."""
    return math.floor(1000 * share + 1e-7) / 10


def _most(share: float) -> float:
    """An upper limit in per cent, rounded up to a tenth."""
    return math.ceil(1000 * share - 1e-7) / 10


def _amount(value: float) -> str:
    """A number in the target's unit, with four digits or, where it is large, whole."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _article(model: Any) -> str:
    """The model in words, as the start of a headline."""
    chosen = model.candidates_[model.chosen_]
    words = FAMILIES[model.task][chosen["family"]].words.partition(" with")[0].partition(",")[0]
    return words[0].upper() + words[1:]


def _how_well(model: Any) -> str:
    """How often it is wrong on held-out rows, beside a constant, for the headline."""
    record = model.candidates_[model.chosen_]["holdout"]
    if record is None or model.refit:
        return ""
    found = _measured(model, record["loss"])
    return f", {found} {where_of(model)}{_beside_constant(model)}"


def _measured(model: Any, loss: float) -> str:
    """A loss in words."""
    if model.task == "classification":
        return f"wrong in {_percent(loss)}"
    return f"off by {_amount(loss)} on average"


def _beside_constant(model: Any) -> str:
    """What the best constant does on the same rows, and whether the model is shown to be better."""
    constant = model.constant_
    number = model.task == "regression"
    loss = _amount(constant["loss"]) if number else _percent(constant["loss"])
    always = "always the median" if number else f"always {_quoted(constant['value'])}"
    if constant["better"] and not model.units_["why"]:
        return f" ({always}: {loss})"
    return f", which is not shown to be better than {always} ({loss})"


def _quoted(name: str) -> str:
    return f"“{shown(name)}”"


def _loss_sentence(model: Any) -> str:
    record = model.candidates_[model.chosen_]["holdout"]
    if record is None or model.refit:
        return "The model was refitted on all rows; nothing is claimed of its error on new rows."
    where = where_of(model)
    text = f"It is {_measured(model, record['loss'])} {where}"
    if record["low"] is None:
        text += f"; of rows to come nothing is claimed: {model.units_['why']}."
    elif model.task == "classification":
        text += (
            f"; with {percent(model.delta)} confidence the true share is between "
            f"{_least(record['low']):.1f} % and {_most(record['high']):.1f} %."
        )
    else:
        text += (
            f"; with {percent(model.delta)} confidence the true mean is between {_amount(record['low'])} and "
            f"{_amount(record['high'])}, each error counted up to {_amount(model.loss_width_)}."
        )
    other = [r for r in model.candidates_ if not r["certified"] and r["holdout"]]
    if other:
        theirs = other[0]["holdout"]["loss"]
        unit = f"{_percent(theirs)}" if model.task == "classification" else _amount(theirs)
        text += (
            f" Gradient boosting, which comes without a certificate, has {unit} on the same rows."
        )
    return text


def _optimality_sentence(claims: list[Claim]) -> str:
    gap = [claim for claim in claims if claim.name == "duality gap"]
    if gap and gap[0].status is Status.HOLDS:
        return (
            "No other coefficients have a smaller training loss with its penalty, but for a proved gap of "
            f"{gap[0].observed:.1e}."
        )
    held = sum(claim.status is Status.HOLDS for claim in claims)
    return f"Of the {len(claims)} claims about the fit itself, {held} hold."


def _robustness_sentences(model: Any) -> list[str]:
    curve = model.evidence_.get("robustness")
    if not curve:
        return []
    eps, sure, attacked = curve["eps"], curve["certified_accuracy"], curve["attacked_accuracy"]
    place = min(range(len(eps)), key=lambda k: abs(eps[k] - 0.1))
    between = (
        f"{_percent(sure[place])}"
        if abs(sure[place] - attacked[place]) < 5e-4
        else f"between {_percent(sure[place])} and {_percent(attacked[place])}"
    )
    stay = " that may change" if model.immutable else ""
    rows = "rows the fit has used" if model.refit else "held-out rows"
    return [
        f"If the numeric columns{stay} may be off by {eps[place]:g} standard deviations, in the worst way "
        f"for each row, {between} of the decisions on {rows} are still right."
    ]


def _leak_sentences(model: Any) -> list[str]:
    """Columns that nearly predict the target alone, which should come before any pride in the error."""
    strong = [
        column["name"]
        for column in model.schema_["columns"]
        if (column["leak"] or 0.0) >= STRONG and column["name"] in model.encoder_.blocks_
    ]
    if not strong:
        return []
    names = ", ".join(_quoted(name) for name in strong[:4])
    more = f" and {len(strong) - 4} more" if len(strong) > 4 else ""
    one = len(strong) == 1
    return [
        f"{names}{more} nearly {'predicts' if one else 'predict'} the target alone: is "
        f"{'it' if one else 'each of them'} known when a prediction is made? If not, leave "
        f"{'it' if one else 'them'} out with --drop."
    ]


def _fairness_sentences(model: Any) -> list[str]:
    sentences = []
    for record in model.evidence_.get("fairness", []):
        gap = record.get("gaps", {}).get("independence")
        if gap and gap.get("gap") is not None:
            what = (
                f"decided {_quoted(str(model.positive))}"
                if model.positive
                else "predicted above the median"
            )
            sentences.append(
                f"Groups by {_quoted(record['attribute'])} differ by {100 * gap['gap']:.1f} percentage "
                f"points in how often they are {what} (with {percent(model.delta)} confidence between "
                f"{_least(gap['low']):.1f} and {_most(gap['high']):.1f})."
            )
    return sentences


def _violation_sentences(claims: list[Claim]) -> list[str]:
    """Which criteria of fairness are violated, and against which tolerance."""
    violated = [claim for claim in claims if claim.word == "violated"]
    if not violated:
        return []
    names = ", ".join(f"{claim.name}, tolerance {claim.tolerance:g}" for claim in violated[:6])
    more = f"; and {len(violated) - 6} more" if len(violated) > 6 else ""
    one = len(violated) == 1
    return [
        f"{len(violated)} {'criterion' if one else 'criteria'} of fairness "
        f"{'is' if one else 'are'} violated: {names}{more}."
    ]


def plain(value: Any) -> Any:
    """The same with Python's own numbers; NaN and infinities as text, since JSON has none."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value
