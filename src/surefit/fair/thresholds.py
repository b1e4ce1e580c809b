r"""GroupThresholds: equal rates by thresholds of each group, at the least cost (FAIR-6, after training).

The scores of a classifier stay; the threshold depends on the group, and may be drawn between two or more,
so that rates are equal exactly, not as far as the rows allow. The optimum is exact
(:mod:`surefit.fair._threshold_fit`), over all rules of this kind and any number of groups; no grid.

Certificate: *optimal rule* (OPTIMAL), by weak duality from counts; *equal rates* (EXACT) on the rows of the
fit; *scores* (EXACT): the claims of the estimator that gives them hold, where it has any. With
``randomize=False``: no other single thresholds with rates within ``tolerance`` cost less (OPTIMAL), and the
rates are that close (EXACT). On fresh rows rates are equal up to chance only: :func:`surefit.fair.audit` says
how far.

Reference: Hardt, Price & Srebro, "Equality of opportunity in supervised learning" (2016).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from ..base import Certified
from ..certificate import Claim, Kind, verify
from ._curves import CONSTRAINTS, Curve, curves
from ._draws import row_uniforms
from ._groups import shown
from ._sensitive import Beside, UsesSensitive, labels_claim, wrong_shape
from ._threshold_claims import deterministic_claims, randomised_claims, scores_claim
from ._threshold_fit import (
    MIXED,
    best_deterministic,
    best_deterministic_odds,
    best_odds,
    best_rate,
)

__all__ = ["GroupThresholds"]

Array = NDArray[np.float64]


class GroupThresholds(ClassifierMixin, UsesSensitive):
    """Thresholds by group on the scores of a classifier: equal rates at the least cost.

    Parameters
    ----------
    estimator : classifier, "passthrough" or None, default=None
        What gives the scores; ``None`` is :class:`surefit.linear_model.LogisticRegression`. It sees X without
        the ``sensitive_columns``. With ``"passthrough"`` X has one feature, and that is the score.
    constraint : str, default="demographic_parity"
        Which rate is equal in all groups: ``"demographic_parity"`` (selection rate), ``"equal_opportunity"``
        (TPR), ``"predictive_equality"`` (FPR) or ``"equalized_odds"`` (TPR and FPR).
    objective : {"accuracy", "balanced_accuracy"} or (float, float), default="accuracy"
        What is lost by a mistake; a pair is the cost of a false positive and of a false negative.
    randomize : bool, default=True
        Whether a threshold may be drawn at random, which makes rates exactly equal.
    tolerance : float, default=0.01
        With ``randomize=False``: how far rates may be apart.
    sensitive_columns : sequence of int or str, int, str or None, default=None
        Columns of X that make the groups; ``None`` when ``fit`` and ``predict`` are given ``sensitive=``.
    prefit : bool, default=False
        Whether ``estimator`` is fitted already, and is to be left so.
    draws : {"row", "independent"}, default="row"
        Where a decision is drawn: ``"row"`` makes it a fixed function of the row (who asks again gets the
        same answer, and equal rows are decided alike); ``"independent"`` draws for each row and each call.
    random_state : int, RandomState or None, default=None
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array of shape (2,)
    thresholds_ : array of shape (n_groups, 4)
        A row is accepted when its score is at least the threshold that is drawn.
    weights_ : array of shape (n_groups, 4)
        The probability of each threshold.
    multipliers_ : array of shape (n_groups, 1 or 2)
        Price of the equal rates, from which the certificate bounds the optimum.
    estimator_ : classifier
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.fair import GroupThresholds
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 500)
    >>> X = rng.normal(size=(500, 2)) + (group == "a")[:, None]
    >>> y = X[:, 0] + rng.normal(size=500) > 0.5
    >>> model = GroupThresholds(random_state=0).fit(X, y, sensitive=group)
    >>> accept = model.predict_proba(X, sensitive=group)[:, 1]
    >>> bool(abs(accept[group == "a"].mean() - accept[group == "b"].mean()) < 1e-12)
    True
    >>> model.certificate_.ok
    True
    """

    _may_be_infinite: ClassVar[dict[str, str]] = {
        "thresholds_": "a threshold of minus or plus infinity accepts every row or none"
    }
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), StrOptions({"passthrough"}), None],
        "constraint": [StrOptions(set(CONSTRAINTS))],
        "objective": [StrOptions({"accuracy", "balanced_accuracy"}), tuple, list],
        "randomize": ["boolean"],
        "tolerance": [Interval(Real, 0, 1, closed="both")],
        "sensitive_columns": ["array-like", str, int, None],
        "prefit": ["boolean"],
        "draws": [StrOptions({"row", "independent"})],
        "random_state": ["random_state"],
        "certify": UsesSensitive._certify_constraint,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: str = "demographic_parity",
        objective: Any = "accuracy",
        randomize: bool = True,
        tolerance: float = 0.01,
        sensitive_columns: Any = None,
        prefit: bool = False,
        draws: str = "row",
        random_state: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.objective = objective
        self.randomize = randomize
        self.tolerance = tolerance
        self.sensitive_columns = sensitive_columns
        self.prefit = prefit
        self.draws = draws
        self.random_state = random_state
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, *, sensitive: Any = None) -> GroupThresholds:
        """Fit the estimator, and find the thresholds on the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two labels; the second in sort order is what accepting means.
        sensitive : array-like of shape (n_samples,), optional
            Labels of any kind, instead of ``sensitive_columns``.
        """
        given = X if sensitive is None else Beside(X, sensitive)
        Z, y, _ = self._validate_training_data(given, y, None, reset=True)
        self.classes_ = np.unique(y)
        self.seed_ = _drawn_seed(self.random_state)
        if self.sensitive_columns is not None:
            columns = np.asarray(Z[:, self.sensitive_places_], dtype=np.float64)
            self.group_values_ = (
                np.unique(columns, axis=0) if columns.shape[1] else np.zeros((1, 0))
            )
        features = self._features(Z)
        if self.estimator is None:
            from ..linear_model import LogisticRegression

            self.estimator_ = LogisticRegression(certify=self.certify).fit(features, y)
        elif not isinstance(self.estimator, str):
            self.estimator_ = (
                self.estimator if self.prefit else clone(self.estimator).fit(features, y)
            )
        found = self._curves(Z, y)
        self._check_groups(found)
        costs = self._costs(found)
        if not self.randomize and self.constraint == "equalized_odds":
            rule = best_deterministic_odds(found, costs, self.tolerance)
        elif not self.randomize:
            rule = best_deterministic(found, self.constraint, costs, self.tolerance)
        elif self.constraint == "equalized_odds":
            rule = best_odds(found, costs)
        else:
            rule = best_rate(found, self.constraint, costs)
        self.thresholds_, self.weights_ = rule.thresholds, rule.weights
        self.multipliers_ = rule.multipliers
        return self._seal(Z, y, None, "the optimum was computed")

    def predict_proba(self, X: Any, *, sensitive: Any = None) -> Array:
        """The probability with which the rule rejects and accepts each row."""
        Z = self._rows(X, sensitive)
        accept = self._accept(Z)
        return np.column_stack([1.0 - accept, accept])

    def predict(self, X: Any, *, sensitive: Any = None) -> Any:
        """Decisions; where the rule draws, drawn as ``draws`` says."""
        Z = self._rows(X, sensitive)
        accept = self._accept(Z)
        chosen = accept >= 1.0
        open_ = np.flatnonzero((accept > 0.0) & (accept < 1.0))
        if self.draws == "row":
            uniforms = row_uniforms(Z[open_], self.seed_)
        else:
            uniforms = check_random_state(self.random_state).uniform(size=len(open_))
        chosen[open_] = uniforms < accept[open_]
        return self.classes_[chosen.astype(np.intp)]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive: Any = None) -> float:
        """Expected accuracy, over the draws."""
        y = np.asarray(y)
        accept = self.predict_proba(X, sensitive=sensitive)[:, 1]
        right = np.where(
            y == self.classes_[1], accept, np.where(y == self.classes_[0], 1 - accept, 0)
        )
        return float(np.average(right, weights=sample_weight))

    # ------------------------------------------------------------------ scores and groups

    def _rows(self, X: Any, sensitive: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self._joined(X, sensitive, reset=False)

    def _features(self, Z: Any) -> Any:
        return self._columns(Z, self._feature_places(self.n_features_in_))

    def _scores(self, Z: Any) -> Array:
        """The score of each row: the larger, the more it speaks for the second label."""
        features = self._features(Z)
        if isinstance(self.estimator, str):
            if features.shape[1] != 1:
                raise ValueError(
                    f"estimator='passthrough' needs X with one feature, the score; it has "
                    f"{features.shape[1]}."
                )
            return np.asarray(features[:, 0], dtype=np.float64)
        model = self.estimator_
        if list(np.asarray(model.classes_)) != list(self.classes_):
            raise ValueError(
                f"estimator knows the labels {np.asarray(model.classes_).tolist()}, y has "
                f"{self.classes_.tolist()}: fit it on the same labels."
            )
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(features)[:, 1], dtype=np.float64)
        return np.asarray(model.decision_function(features), dtype=np.float64)

    def _codes(self, Z: Any, *, strict: bool = True) -> NDArray[np.int64]:
        """The group of each row; -1 for a new one, unless strict."""
        if self.sensitive_columns is None:
            return Z[:, -1].astype(np.int64)
        columns = np.asarray(Z[:, self.sensitive_places_], dtype=np.float64)
        if not columns.shape[1]:
            return np.zeros(len(columns), dtype=np.int64)
        values, codes = np.unique(columns, axis=0, return_inverse=True)
        known = {tuple(row): i for i, row in enumerate(self.group_values_.tolist())}
        places = [known.get(tuple(row), -1) for row in values.tolist()]
        if -1 in places and strict:
            new = values[places.index(-1)].tolist()
            raise ValueError(
                f"sensitive_columns have the values {new}, a group which the fit did not see: fit again with "
                "rows of it."
            )
        return np.array(places, dtype=np.int64)[codes.ravel()]

    def _n_groups(self) -> int:
        return len(self.sensitive_names_ if self.sensitive_columns is None else self.group_values_)

    def _curves(self, Z: Any, y: Any) -> list[Curve]:
        hits = (y == self.classes_[1]).astype(np.int64)
        return curves(self._scores(Z), hits, self._codes(Z), self._n_groups())

    def _accept(self, Z: Any) -> Array:
        """The probability of accepting each row."""
        score, codes = self._scores(Z), self._codes(Z)
        accept = np.zeros(len(score))
        for k in range(self.thresholds_.shape[1]):
            accept += self.weights_[codes, k] * (score >= self.thresholds_[codes, k])
        # weights that sum to 1 up to rounding: what is certain stays certain
        return np.where(accept > 1.0 - 1e-12, 1.0, accept)

    # ------------------------------------------------------------------ the problem

    def _costs(self, found: list[Curve]) -> tuple[float, float]:
        """The cost of a false positive and of a false negative."""
        if self.objective == "accuracy":
            return 1.0, 1.0
        if isinstance(self.objective, str):
            negatives = sum(curve.negatives for curve in found)
            positives = sum(curve.positives for curve in found)
            rows = negatives + positives
            return rows / (2.0 * max(negatives, 1.0)), rows / (2.0 * max(positives, 1.0))
        costs = tuple(float(cost) for cost in self.objective)
        if len(costs) != 2 or not all(0.0 <= c < np.inf for c in costs) or not any(costs):
            raise ValueError(
                f"objective must be two costs of at least 0, not both 0, got {self.objective!r}: give "
                "(cost of a false positive, cost of a false negative)."
            )
        return costs[0], costs[1]

    def _check_groups(self, found: list[Curve]) -> None:
        """Every group has the rows that its rate is a share of."""
        needs = {
            "equal_opportunity": ("positives",),
            "predictive_equality": ("negatives",),
            "equalized_odds": ("positives", "negatives"),
        }.get(self.constraint, ())
        for g, curve in enumerate(found):
            for what in needs:
                if getattr(curve, what) == 0:
                    label = self.classes_.tolist()[1 if what == "positives" else 0]
                    names = getattr(self, "sensitive_names_", None)
                    name = shown(names[g]) if names else self.group_values_[g].tolist()
                    raise ValueError(
                        f"sensitive: the group {name!r} has no row with the label {label!r}, so its "
                        f"rate is not "
                        "defined: merge it with another group, or use constraint='demographic_parity'."
                    )

    def _validate_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y, _ = self._validate(X, y, None, reset=reset, accept_sparse=False)
        check_classification_targets(y)
        many = len(np.unique(y)) if reset else 2
        if many > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}; y has {many} labels: fit one model for each label."
            )
        if many < 2:
            raise ValueError(
                "y needs samples of at least 2 classes, but the data contains only one class: "
                f"{np.unique(y)[0]!r}. Add rows of another class."
            )
        return X, y

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        if len(self.classes_) != 2:
            yield f"classes_ has {len(self.classes_)} labels, and should have 2"
        if not (isinstance(self.seed_, int) and 0 <= self.seed_ < 2**31):
            yield f"seed_ is {self.seed_!r}, and should be an integer from 0 to 2**31 - 1"
        if isinstance(self.random_state, Integral) and self.seed_ != _drawn_seed(self.random_state):
            yield f"seed_ is {self.seed_}, not the one that random_state={self.random_state} gives"
        if self.sensitive_columns is not None:
            values = np.asarray(self.group_values_)
            width = len(self.sensitive_places_)
            distinct = np.unique(values, axis=0) if values.ndim == 2 and width else values
            if values.ndim != 2 or values.shape[1] != width or not np.array_equal(distinct, values):
                yield "group_values_ are not sorted and distinct values of sensitive_columns"
        rates = 2 if self.constraint == "equalized_odds" else 1
        yield from wrong_shape(self, "thresholds_", self._n_groups(), MIXED)
        yield from wrong_shape(self, "weights_", self._n_groups(), MIXED)
        yield from wrong_shape(self, "multipliers_", self._n_groups(), rates)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        other = labels_claim(y, self.classes_)
        if other is not None:
            return [other]
        new = int((self._codes(X, strict=False) < 0).sum())
        if new:
            words = f"{new} rows are of groups that the rule has no thresholds for"
            return [Claim.check("groups", words, Kind.EXACT, float(new), 0.0, "FAIR-6")]
        found = self._curves(X, y)
        costs = self._costs(found)
        rule = (self.thresholds_, self.weights_, self.multipliers_)
        own = self._estimator_claims(X, y, full=full, tol=tol)
        if self.randomize:
            return [*randomised_claims(found, rule, self.constraint, costs), *own]
        tolerance = self.tolerance
        return [
            *deterministic_claims(found, rule, self.constraint, costs, tolerance, full=full),
            *own,
        ]

    def _estimator_claims(self, X: Any, y: Any, *, full: bool, tol: float) -> list[Claim]:
        """Whether the claims of the model that gives the scores hold, anew at a verification."""
        model = getattr(self, "estimator_", None)
        if self.prefit or not isinstance(model, Certified):
            return []
        if full:
            return [scores_claim(verify(model, self._features(X), y, tol=tol))]
        made = getattr(model, "certificate_", None)  # absent where it was fitted with certify=False
        return [] if made is None else [scores_claim(made)]

    def _remedy(self) -> str:
        return "The rule is not that of these rows: fit it again."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _drawn_seed(random_state: Any) -> int:
    """The seed of the decisions that are drawn."""
    return int(check_random_state(random_state).randint(2**31 - 1))
