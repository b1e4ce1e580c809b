"""The certificate of a selection: what :class:`GridSearchCV` and :class:`HoldOut` share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _num_samples, check_is_fitted, indexable

from ..base import Certified
from ..certificate import Certificate, Claim, Kind, Status, verify
from ..fingerprint import fingerprint
from ..stats import Rows, check_labels, treat_rows
from ._claims import nested
from ._losses import BoundedLoss, bounded_loss

__all__ = [
    "EXTRAS",
    "SEED",
    "Selected",
    "check_range",
    "claims_of",
    "data_id",
    "loss_for",
    "may_be_random",
    "parameters_words",
    "same_parameters",
    "scores_claim",
    "wrong_best",
]

Array = NDArray[np.float64]
PLAIN = (bool, Real, str, type(None))  # parameters that a clone repeats to the letter
SEED = "give every random_state an integer, and they can be repeated"
EXTRAS: dict[str, list[Any]] = {
    "delta": [Interval(Real, 0, 1, closed="neither")],
    "bound": [StrOptions({"hoeffding", "clopper-pearson", "bernstein"})],
    "loss_range": [tuple, list, None],
    "reuse": ["boolean"],
    "rows_are_independent": ["boolean"],
    "certify": Certified._certify_constraint,
}


class Selected(Certified):
    """A meta-estimator that chooses by scores: parameters, data and certificate."""

    estimator: Any
    cv: Any
    delta: float
    bound: str
    loss_range: tuple[float, float] | None
    rows_are_independent: bool
    promise_: dict[str, Any]
    groups_: NDArray[np.intp] | None  # as fit was given them; each row's own where there are none
    _may_be_nan: ClassVar[dict[str, str]] = {
        "evidence_": "of scores that are no mean of bounded losses nothing is observed",
        "cv_results_": "a fit that failed has error_score, and a parameter may be NaN",
        "results_": "a fit that failed has error_score, and a parameter may be NaN",
        "best_score_": "all scores may be NaN",
        "best_params_": "missing_values=nan is a parameter",
    }
    _may_be_infinite: ClassVar[dict[str, str]] = {
        "cv_results_": "C=inf is a parameter, and a score may be infinite",
        "results_": "C=inf is a parameter, and a score may be infinite",
        "best_score_": "a score may be infinite",
        "best_params_": "C=inf is a parameter",
    }

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = indexable(X, y, sample_weight)  # the estimator checks what it takes
        return X, y, sample_weight

    def _data_id(self, X: Any, y: Any, sample_weight: Any) -> str:
        name = data_id(X, y, sample_weight)
        if self.groups_ is None or not name:
            return name
        groups = np.asarray(self.groups_, dtype=np.float64)
        return f"{name}, groups {fingerprint(groups[:, None])}"

    def _rows(self, X: Any, y: Any) -> Rows:
        """How rows are treated: from the data, the groups, and what was said before the fit."""
        independent = bool(self.promise_["rows_are_independent"])
        return treat_rows(X, y, groups=self.groups_, independent=independent)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        names: Any = vars(self).get("feature_names_in_")
        inner: Any = getattr(vars(self).get("best_estimator_"), "feature_names_in_", names)
        if not np.array_equal(names, inner):
            yield "feature_names_in_ are not those of best_estimator_"
        yield from _invalid_promise(self.promise_)
        yield from self._other_parameters()
        rows, groups = _num_samples(X), self.groups_
        if groups is None:
            return
        groups = np.asarray(groups)
        if groups.shape != (rows,) or groups.dtype.kind != "i":
            yield f"groups_ must be one whole number for each of the {rows} rows"
        elif not np.array_equal(groups, check_labels(groups, rows)):
            yield "groups_ must number the groups in the order in which they appear"

    def _other_parameters(self) -> Iterator[str]:
        """Parameters of best_estimator_ that are not those of estimator with best_params_."""
        if "best_estimator_" not in vars(self):
            return
        asked = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        found = self.best_estimator_.get_params()
        for name, value in asked.get_params().items():
            other = found.get(name, "missing")
            if all(isinstance(v, PLAIN) for v in (value, other)) and repr(value) != repr(other):
                yield f"best_estimator_ has {name}={other!r}, and was asked for {name}={value!r}"

    def _remedy(self) -> str:
        return (
            "Rows that are tested must not be rows of the fit (cv), losses must lie in loss_range, and "
            "recorded scores must be those the data give."
        )

    @property
    def statement_(self) -> str:
        """The sentence to quote: the claim "generalisation", or why there is none."""
        check_is_fitted(self)
        if "certificate_" not in vars(self):
            raise AttributeError("statement_ needs a certificate: set certify=True and fit again.")
        return self.certificate_["generalisation"].statement

    def _promise(self) -> None:
        """Fix what the statistical claims depend on, before data are seen; later changes do not count."""
        ends = check_range(self.loss_range)
        self.promise_ = {
            "delta": float(self.delta),
            "bound": self.bound,
            "loss_range": ends,
            "rows_are_independent": bool(self.rows_are_independent),
        }

    def _promised(self) -> dict[str, Any]:
        """delta and bound as they were when the fit began."""
        return {"delta": self.promise_["delta"], "bound": self.promise_["bound"]}

    def _loss_of(self, scorers: Any, metric: Any, y: Any, score_params: Any) -> BoundedLoss | str:
        """The bounded loss behind the score that chooses, or why there is none."""
        if any(value is not None for value in (score_params or {}).values()):
            return "scores are weighted by sample_weight, and a weighted mean has no such bound"
        if isinstance(scorers, _MultimetricScorer):
            if not isinstance(metric, str):
                return (
                    "there are several scores: name one of them as refit, before the data are seen"
                )
            scorers = scorers._scorers[metric]
        if y is None:
            return "without y there is no loss that a row could have"
        loss = bounded_loss(scorers, self.estimator, y, self.promise_["loss_range"])
        return loss_for(self.promise_["bound"], loss)


def check_range(loss_range: Any) -> tuple[float, float] | None:
    """The range of a loss as two floats."""
    if loss_range is None:
        return None
    ends = tuple(float(end) for end in loss_range)
    if len(ends) != 2 or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise ValueError(
            f"loss_range must be two finite numbers, the lower first, got {loss_range!r}."
        )
    return ends[0], ends[1]


def loss_for(bound: str, loss: BoundedLoss | str) -> BoundedLoss | str:
    """The loss, or why the bound does not apply to it."""
    if isinstance(loss, str) or bound != "clopper-pearson":
        return loss
    if loss.zero_one and loss.range == (0.0, 1.0):
        return loss
    return (
        f"bound='clopper-pearson' is for 0-1 losses; the {loss.words} is not one. Use 'hoeffding' or "
        "'bernstein'"
    )


def data_id(X: Any, y: Any, sample_weight: Any) -> str:
    """The fingerprint of the data; of texts and other objects, the hash of their pickle."""
    try:
        arrays = [
            a if a is None or hasattr(a, "shape") else np.asarray(a) for a in (X, y, sample_weight)
        ]
        arrays = [a.to_numpy() if hasattr(a, "to_numpy") else a for a in arrays]
        if getattr(arrays[0], "dtype", None) != np.dtype(object):
            return fingerprint(*arrays)
    except (TypeError, ValueError, AttributeError):
        pass
    try:
        return f"objects {joblib.hash((X, y, sample_weight))}"
    except Exception:  # something that cannot be pickled: the claims stand, the data are not named
        return ""


def claims_of(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    full: bool,
    tol: float,
    name: str,
    chosen: bool,
) -> list[Claim]:
    """The claims of a fitted part, under its name; those of a pipeline's last step on what it was given.

    Statistical ones hold for parameters that were fixed beforehand: not where they were ``chosen`` by these
    rows, and not behind steps that were fitted to them.
    """
    if isinstance(model, Pipeline) and isinstance(model[-1], Certified):
        last = model.steps[-1][0]
        rows = X
        if full:
            rows = model[:-1].transform(X) if len(model) > 1 else X
        name, chosen = f"{name}: {last}", chosen or len(model) > 1
        return claims_of(
            model[-1], rows, y, sample_weight, full=full, tol=tol, name=name, chosen=chosen
        )
    found = getattr(model, "certificate_", Certificate(()))
    if full and isinstance(model, Certified):
        try:
            found = verify(model, X, y, sample_weight=sample_weight, tol=tol)
        except ValueError as error:  # other data, which the model cannot take
            words = f"the claims cannot be recomputed on these data: {error}"
            found = Certificate((Claim.check("fit", words, Kind.EXACT, 1.0, 0.0, "GEN-7"),))
    elif not found.claims:
        why = f"{type(model).__name__} left no certificate, so nothing is claimed about its fit"
        found = Certificate((Claim.undecided("fit", why, Kind.EXACT, "GEN-7"),))
    return [
        replace(_undone(claim) if chosen else claim, name=f"{name}: {claim.name}")
        for claim in found.claims
    ]


def _undone(claim: Claim) -> Claim:
    """A statistical claim about a model that was chosen by the rows that it is about."""
    if claim.kind is not Kind.STATISTICAL or claim.status is Status.UNDECIDED:
        return claim
    why = "it is for parameters that were fixed before these rows were seen, and these were not"
    return Claim.undecided(claim.name, why, claim.kind, claim.source)


def scores_claim(
    recorded: Array,
    found: Array,
    sizes: Any,
    what: str,
    *,
    classifier: bool,
    once_more: Callable[[], Array] | None,
    tol: float = 1e-6,
) -> Claim:
    """The recorded scores are those of fits on the recorded rows, each made again on its own.

    Another machine or another order of sums may move a score by ``tol``, more where fits shared work and end
    where their own tolerance lets them; scores of a classifier by one row a test set. Where they differ by
    more and some ``random_state`` is no integer, the fits are made ``once_more``: if these differ among
    themselves, nothing can be decided.
    """
    allowed = tol * (1.0 + np.abs(np.nan_to_num(found)))
    if classifier:
        allowed = np.maximum(allowed, (1.0 + 1e-9) / np.asarray(sizes, dtype=np.float64))
    both = np.isnan(recorded) & np.isnan(found)
    gap = np.where(both, 0.0, np.abs(recorded - found))
    gap = np.where(np.isnan(gap), np.inf, gap)
    worst = np.unravel_index(int(np.argmax(gap / allowed)), gap.shape)
    observed, limit = float(gap[worst]), float(allowed[worst])
    largest = float(np.max(gap))  # what is furthest beyond its own limit need not be the largest
    statement = f"{what}, from fits made again on the recorded rows, agree to {largest:.1e}"
    if (
        observed > limit
        and once_more is not None
        and not np.array_equal(once_more(), found, equal_nan=True)
    ):
        why = f"{statement}, but these fits are random: {SEED}"
        return Claim.undecided("scores", why, Kind.EXACT, "GEN-7")
    return Claim.check("scores", statement, Kind.EXACT, observed, limit, "GEN-7")


def _invalid_promise(promise: dict[str, Any]) -> Iterator[str]:
    """What was fixed before the fit, and is no value that the parameter of this name takes."""
    for name in ("delta", "bound", "loss_range", "rows_are_independent"):
        value = promise.get(name, "missing")
        try:
            validate_parameter_constraints({name: EXTRAS[name]}, {name: value}, "promise_")
            if name == "loss_range":
                check_range(value)
        except (TypeError, ValueError) as error:
            yield f"promise_[{name!r}] is {value!r}: {error}"


def wrong_best(stated: Any, recorded: Any) -> Iterator[str]:
    """What is wrong with ``best_score_``, given the recorded score of the chosen candidate."""
    if np.isnan(stated) != np.isnan(recorded):
        yield f"best_score_ is {stated}, and the chosen candidate scored {recorded}"


def may_be_random(*things: Any) -> bool:
    """Whether some estimator inside has a ``random_state`` that is no integer; it need not use it."""
    return any(
        name.rpartition("__")[2] == "random_state" and not isinstance(value, int | np.integer)
        for name, value in nested(things)
    )


def parameters_words(params: dict[str, Any]) -> str:
    """A candidate in words; long values are cut."""
    words = ", ".join(f"{name}={_short(value)}" for name, value in params.items())
    return words or "the only candidate"


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def same_parameters(first: Any, second: Any) -> bool:
    """Equal parameters, by their text where values cannot be compared."""
    return parameters_words(first) == parameters_words(second)
