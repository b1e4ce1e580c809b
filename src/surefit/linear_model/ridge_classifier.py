r"""Classification by ridge regression on labels -1 and +1, certified as the regression it is.

    min_{w, b}  sum_i s_i (t_i - x_i'w - b)^2 + alpha ||w||^2,     t_i = +1 for the class, -1 for the rest,

one such problem a class (one in all for two classes), all with the same matrix. The class with the largest
prediction wins. With several labels a row (multilabel), each label is its own problem and its own sign.

Certificate: that of :class:`Ridge` on the targets -1 and +1, the weights times those of the classes. It is
about the squared loss, not about mistakes.

References
----------
Rifkin, Yeo & Poggio, "Regularized least-squares classification" (2003); Bishop, Pattern Recognition and
Machine Learning (2006), section 4.1.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import type_of_target

from ..base import Certified
from ..certificate import Claim
from ._attribute_checks import wrong_classes, wrong_flags, wrong_intercept, wrong_shapes
from .base import check_scale
from .ridge import Ridge

__all__ = ["RidgeClassifier", "RidgeLabels"]

Array = NDArray[np.float64]


class RidgeLabels(LinearClassifierMixin, Certified):
    """What classifiers by ridge regression share: labels to targets, scores to labels."""

    class_weight: Any
    fit_intercept: bool
    classes_: NDArray[Any]
    coef_: NDArray[Any]
    intercept_: Any
    multilabel_: bool

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_labels) for a multilabel problem
        """
        if not getattr(self, "multilabel_", False):
            return np.asarray(super().predict(X))
        scores = self.decision_function(X)
        return (scores > 0).astype(np.int64).reshape(len(scores), -1)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(X, y, sample_weight, reset=reset, multi_output=True)
        if not type_of_target(y).startswith("multilabel"):
            y = column_or_1d(y, warn=True)
        check_scale(X)
        if not reset and y.ndim == 1 and not np.isin(y, self.classes_).all():
            unknown = np.setdiff1d(y, self.classes_)[:5].tolist()
            raise ValueError(f"y has labels {unknown} that the model was not fitted on.")
        return X, y, sample_weight

    def _learn_labels(self, y: NDArray[Any]) -> None:
        binarizer = LabelBinarizer(neg_label=-1, pos_label=1).fit(y)
        self.classes_ = binarizer.classes_
        self.multilabel_ = binarizer.y_type_.startswith("multilabel")

    def _targets(self, y: NDArray[Any]) -> Array:
        """-1 and +1, one column a class; one column for two classes."""
        if self.multilabel_:
            return np.where(np.asarray(y) == 1, 1.0, -1.0)
        if len(self.classes_) > 2:
            return np.where(y[:, None] == self.classes_, 1.0, -1.0)
        positive = y == self.classes_[-1] if len(self.classes_) == 2 else np.zeros(len(y), bool)
        return np.where(positive, 1.0, -1.0)[:, None]

    def _weights(self, y: NDArray[Any], sample_weight: Array | None) -> Array | None:
        """The weights of the rows, times those of their classes.

        Balanced is by weight, so that weights are repetitions here too.
        """
        if self.class_weight is None or self.class_weight == {}:
            return sample_weight
        if sample_weight is None or y.ndim == 2 or not isinstance(self.class_weight, str):
            by_row: Array = compute_sample_weight(self.class_weight, y)
            return by_row if sample_weight is None else sample_weight * by_row
        codes = np.searchsorted(self.classes_, y)
        mass = np.bincount(codes, weights=sample_weight, minlength=len(self.classes_))
        share = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
        return sample_weight * (share * mass.sum() / np.count_nonzero(mass))[codes]

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_flags(self, "multilabel_")
        if bool(self.multilabel_) != (y.ndim == 2):
            yield f"multilabel_ is {self.multilabel_}, y has {y.ndim} dimension(s)"
        if y.ndim == 1:
            yield from wrong_classes(self, y)
        columns = self._targets(y).shape[1]
        one = columns == 1
        coef = (X.shape[1],) if one else (columns, X.shape[1])
        offsets: list[tuple[int, ...]] = [(columns,)] + [()] * (not self.fit_intercept)
        yield from wrong_shapes(self, coef_=coef, intercept_=offsets)
        yield from wrong_intercept(self)

    def _remedy(self) -> str:
        return "Scale the features (for instance with StandardScaler), or use a larger alpha."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


class RidgeClassifier(RidgeLabels):
    """Classifier by ridge regression, a drop-in for :class:`sklearn.linear_model.RidgeClassifier`.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept.
    copy_X : bool, default=True
        Kept for compatibility: X is never overwritten.
    max_iter : int, default=None
        Kept for compatibility; bounds the sweeps when ``positive=True``.
    tol : float, default=1e-4
        The gap is claimed to be at most ``tol`` times the objective at w = 0; it is computed to rounding.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    solver : str, default="auto"
        scikit-learn's names are accepted; all of them are served by one direct method.
    positive : bool, default=False
        Constrain the coefficients to be non-negative (coordinate descent).
    random_state : default=None
        Kept for compatibility: nothing here is random.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coef_ : array of shape (n_features,) for two classes, else (n_classes, n_features)
    intercept_ : float or array of shape (n_targets,)
    multilabel_ : bool
        Whether a row may have several labels.
    n_iter_ : array of shape (n_targets,)
    solver_ : str
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from surefit.linear_model import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifier().fit(X, y)
    >>> round(model.score(X, y), 4), model.certificate_.ok
    (0.9596, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Ridge._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = None,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
        sample_weight : float or array-like of shape (n_samples,), optional
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self._learn_labels(y)
        model = self._regression().fit(X, self._targets(y), self._weights(y, sample_weight))
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        self.n_iter_, self.solver_ = model.n_iter_, model.solver_
        return self._seal(X, y, sample_weight, "the regression on -1 and +1 finished")

    def _regression(self) -> Ridge:
        """The same problem as a regression."""
        own = self.get_params(deep=False)
        return Ridge(**{name: own[name] for name in own if name not in ("class_weight", "certify")},
                     certify=False)  # fmt: skip

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        model = self._regression()
        for name in ("coef_", "intercept_", "n_iter_", "solver_"):
            setattr(model, name, getattr(self, name))
        model.method_ = "coordinate" if self.positive else "direct"
        targets = self._targets(y)
        yield from Ridge._inconsistencies(model, X, targets, self._weights(y, sample_weight))

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        model = self._regression()
        model.coef_, model.intercept_ = self.coef_, self.intercept_
        return model._certify(
            X, self._targets(y), self._weights(y, sample_weight), full=full, tol=tol
        )
