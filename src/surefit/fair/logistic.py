r"""FairLogistic: logistic regression with a penalty on scores that go with the group (FAIR-6, in training).

    min_{w, b}  C sum_i log(1 + exp(-y_i z_i)) + 1/2 ||w||^2 + C n mu/2 sum_k cov(A_k, z)^2,    z = Xw + b

A_k are the columns of the sensitive attribute (indicators of the groups), mu is ``fairness``, and cov(A_k,
z) = c_k'w with c_k the covariances of A_k and the features. For ``criterion="separation"`` the covariances
are those within the rows of y = 1 and within those of y = 0. The penalty is a quadratic form, so with Q = I
+ C n mu sum_k c_k c_k' the problem is l2 logistic regression in v = Q^{1/2} w on the rows X Q^{-1/2}:
convex, with an exact dual.

Certificate: *duality gap* (OPTIMAL) of that problem, from the data and ``coef_`` alone; *covariance*
(BOUND): the penalty of the minimiser is at most what w = 0 costs, so sum_k cov^2 <= 2 P(0)/(C n mu). As mu
grows the sum of squared covariances falls, and vanishes in the limit.

References
----------
Zafar, Valera, Gomez Rodriguez & Gummadi, "Fairness constraints: mechanisms for fair classification" (2017).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .._threads import rows_only
from ..certificate import Claim
from ..linear_model._logistic_fit import minimise
from ..linear_model._logistic_predictions import LogOddsClassifier
from ..losses import Logistic
from ..penalties import ElasticNet as ElasticNetPenalty
from ._logistic_claims import covariances, logistic_claims, metric
from ._sensitive import Beside, UsesSensitive, labels_claim, wrong_shape

__all__ = ["FairLogistic", "fair_path"]

Array = NDArray[np.float64]


class FairLogistic(LogOddsClassifier, UsesSensitive):
    """Logistic regression whose score is kept from varying with the sensitive attribute.

    Parameters
    ----------
    fairness : float, default=1.0
        mu, the weight of the squared covariances against the mean loss; 0 is plain logistic regression.
    criterion : {"independence", "separation"}, default="independence"
        Covariances over all rows, or within each label.
    C : float, default=1.0
        Weight of the loss against 1/2 ||w||^2.
    sensitive_columns : sequence of int or str, int, str or None, default=None
        Columns of X that hold the sensitive attribute; ``None`` when ``fit`` is given ``sensitive=``.
    use_sensitive : bool, default=False
        Whether these columns are features too; otherwise their coefficients are 0.
    fit_intercept : bool, default=True
    tol : float, default=1e-4
        The duality gap is claimed to be at most ``tol`` times the objective at w = 0.
    max_iter : int, default=100
        Most Newton steps.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array of shape (2,)
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
    n_iter_ : array of shape (1,)
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.fair import FairLogistic
    >>> rng = np.random.default_rng(0)
    >>> group = rng.choice(["a", "b"], 400)
    >>> X = rng.normal(size=(400, 2)) + (group == "a")[:, None] * [1.0, 0.0]
    >>> y = X.sum(axis=1) + rng.normal(size=400) > 0.5
    >>> plain, fair = (FairLogistic(mu).fit(X, y, sensitive=group) for mu in (0.0, 100.0))
    >>> gaps = [np.ptp([m.predict(X)[group == g].mean() for g in "ab"]) for m in (plain, fair)]
    >>> bool(gaps[0] > 0.2 > 0.1 > gaps[1]), fair.certificate_.ok
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "fairness": [Interval(Real, 0, None, closed="left")],
        "criterion": [StrOptions({"independence", "separation"})],
        "C": [Interval(Real, 0, None, closed="neither")],
        "sensitive_columns": ["array-like", str, int, None],
        "use_sensitive": ["boolean"],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "certify": UsesSensitive._certify_constraint,
    }

    def __init__(
        self,
        fairness: float = 1.0,
        *,
        criterion: str = "independence",
        C: float = 1.0,
        sensitive_columns: Any = None,
        use_sensitive: bool = False,
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: int = 100,
        certify: bool | str = True,
    ) -> None:
        self.fairness = fairness
        self.criterion = criterion
        self.C = C
        self.sensitive_columns = sensitive_columns
        self.use_sensitive = use_sensitive
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, *, sensitive: Any = None) -> FairLogistic:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two labels.
        sensitive : array-like of shape (n_samples,), optional
            Labels of any kind, instead of ``sensitive_columns``.
        """
        return self._fit_from(X, y, sensitive, None)

    def _fit_from(self, X: Any, y: Any, sensitive: Any, start: Any) -> FairLogistic:
        given = X if sensitive is None else Beside(X, sensitive)
        Z, y, _ = self._validate_training_data(given, y, None, reset=True)
        self.classes_ = np.unique(y)
        signs, places = self._signs(y), self._used()
        rows = np.asarray(self._columns(Z, places), dtype=np.float64, order="C")
        root = self._metric(rows, Z, signs)
        w0, b0 = np.zeros(len(places)), np.zeros(())
        if start is not None:
            w0, b0 = root.apply(start[0][places]), np.asarray(start[1])
        changed, s = root.rows(rows), np.full(len(signs), float(self.C))
        with rows_only(changed):
            fit = minimise(
                changed, signs, s, Logistic(), ElasticNetPenalty(1.0, 0.0), (w0, b0), self.fit_intercept,
                tol=self.tol, max_iter=self.max_iter, verbose=0, name=type(self).__name__, tasks=None,
            )  # fmt: skip
        v, b = fit.x
        self.coef_ = np.zeros((1, self.n_features_in_))
        self.coef_[0, places] = root.undo(v)
        self.intercept_ = np.atleast_1d(np.asarray(b, dtype=np.float64))
        self.n_iter_ = np.array([fit.n_iter], dtype=np.int32)
        with rows_only(rows):
            return self._seal(Z, y, None, fit.stop.value)

    def _used(self) -> list[int]:
        """The columns of X that have coefficients."""
        width = self.n_features_in_
        return list(range(width)) if self.use_sensitive else self._feature_places(width)

    def _signs(self, y: Any) -> Array:
        return 2.0 * (y == self.classes_[1]) - 1.0

    def _metric(self, rows: Array, Z: Any, signs: Array) -> Any:
        """The quadratic form of the penalty: C n mu c c' beside the identity."""
        within = signs if self.criterion == "separation" else None
        c = covariances(rows, self._attributes(Z), within)
        return metric(c, self.C * len(rows) * self.fairness)

    def _validate_rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        X, y, _ = self._validate(X, y, None, reset=reset, accept_sparse=False)
        check_classification_targets(y)
        if reset and len(np.unique(y)) != 2:
            many = len(np.unique(y))
            if many > 2:
                raise ValueError(
                    "Only binary classification is supported. The type of the target is "
                    f"{type_of_target(y)}; y has {many} labels: fit one model for each label."
                )
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains "
                f"only one class: {np.unique(y)[0]!r}. Add rows of another class."
            )
        return X, y

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        if len(self.classes_) != 2:
            yield f"classes_ has {len(self.classes_)} labels, and should have 2"
        yield from wrong_shape(self, "coef_", 1, self.n_features_in_)
        yield from wrong_shape(self, "intercept_", 1)
        yield from wrong_shape(self, "n_iter_", 1)
        if not self.fit_intercept and np.any(np.asarray(self.intercept_) != 0.0):
            yield "intercept_ is not 0, and fit_intercept is False"
        steps = np.asarray(self.n_iter_)
        if steps.dtype.kind not in "iu" or (steps < 0).any() or (steps > self.max_iter).any():
            yield f"n_iter_ is {steps.tolist()}: not whole numbers from 0 to max_iter={self.max_iter}"

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        other = labels_claim(y, self.classes_)
        if other is not None:
            return [other]
        signs, places = self._signs(y), self._used()
        rows = np.asarray(self._columns(X, places), dtype=np.float64, order="C")
        outside = np.delete(self.coef_[0], places)
        return logistic_claims(
            rows, signs, self._metric(rows, X, signs), self.coef_[0, places], float(self.intercept_[0]),
            self.C, self.fairness, self.fit_intercept, tol, float(np.abs(outside).max(initial=0.0)),
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def fair_path(
    X: Any, y: Any, *, fairness: Any, sensitive: Any = None, **options: Any
) -> list[FairLogistic]:
    """Fits of :class:`FairLogistic` along increasing ``fairness``, each started from the one before.

    Parameters
    ----------
    X, y, sensitive
        As in :meth:`FairLogistic.fit`.
    fairness : sequence of float
        The weights mu.
    **options
        Other parameters of :class:`FairLogistic`.

    Returns
    -------
    list of FairLogistic
        In increasing order of ``fairness``; the sum of squared covariances falls along it.
    """
    models: list[FairLogistic] = []
    start = None
    for mu in sorted(float(value) for value in fairness):
        model = FairLogistic(mu, **options)
        model._validate_params()
        model._fit_from(X, y, sensitive, start)
        start = (model.coef_[0], model.intercept_[0])
        models.append(model)
    return models
