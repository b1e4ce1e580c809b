r"""Linear support vector classification, certified by its duality gap.

    min_{w, b}  1/2 ||w||^2 (+ 1/2 (b/B)^2) + C sum_i s_i [1 - y_i (<x_i, w> + b)]_+

(SVM-5), or the squares of the losses, with scikit-learn's intercept: the coefficient of a constant feature
of value B = ``intercept_scaling``, penalised like the others. ``penalize_intercept=False`` leaves it free,
as in the textbook. The lambda form of the notes is this one at C = 1 / (lambda N) (SVM-6). ``C=np.inf`` is
the hard margin; on classes that no hyperplane separates, the certificate proves that instead.

Several classes are treated one-vs-rest, or together by Crammer and Singer's loss. Each binary problem has
claims:

* *duality gap* (OPTIMAL, SVM-7), at most ``tol`` times the objective at w = 0;
* *complementary slackness* (EXACT, SVM-9), with the number of rows beyond, on and inside the margin;
* *margin* (EXACT, SVM-1), where every row is on its side;
* for the hard margin, *hard margin* (SVM-2), and *not separable* where there is none.

References
----------
Cortes & Vapnik, "Support-vector networks" (1995); Fan, Chang, Hsieh, Wang & Lin, "LIBLINEAR" (2008).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from .._namespace import array_namespace, is_torch, like, to_numpy
from ..base import ANYWHERE, Certified
from ..certificate import Claim
from ..inputs import is_native
from ..losses import Hinge, Loss, SquaredHinge
from ._linear import REMEDY, check_size, linear_inconsistencies, scores, stored, threads_for
from ._linear_fit import Solved, fit_binary, fit_classes
from ._linear_svc_claims import linear_svc_claims

__all__ = ["LinearSVC"]

Array = NDArray[np.float64]


class _Binary(NamedTuple):
    """One binary problem: its name in the certificate, labels -1 and 1, the weights of the rows."""

    name: str
    signs: Array
    weights: Array


class LinearSVC(LinearClassifierMixin, SparseCoefMixin, Certified):
    """Linear support vector classifier, a drop-in for :class:`sklearn.svm.LinearSVC`.

    Parameters
    ----------
    penalty : {'l1', 'l2'}, default='l2'
        'l1' goes with the squared hinge.
    loss : {'hinge', 'squared_hinge'}, default='squared_hinge'
    dual : bool or 'auto', default='auto'
        Which form scikit-learn would solve. The model is the same; combinations that it refuses are refused.
    tol : float, default=1e-4
        The duality gap asked for, as a share of the objective at w = 0.
    C : float, default=1.0
        Weight of the losses; infinite for a hard margin.
    multi_class : {'ovr', 'crammer_singer'}, default='ovr'
        'crammer_singer' ignores ``loss``, ``penalty`` and ``dual``.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        Value of the constant feature whose coefficient makes the intercept.
    class_weight : dict or 'balanced', default=None
        Factors on C.
    verbose : int, default=0
    random_state : int, RandomState instance or None, default=None
        Seeds the order of coordinates, where there is one.
    max_iter : int, default=1000
    penalize_intercept : bool, default=True
        False leaves the intercept free.
    certify : bool or 'full', default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    n_iter_ : int
        Most iterations of a binary problem.
    dual_coef_ : ndarray of shape (1, n_samples) or (n_classes, n_samples)
        The dual variables y_i alpha_i; with an l2 penalty ``coef_`` is their sum of rows.
    farkas_ : ndarray of the shape of ``dual_coef_``
        With C infinite: weights of the rows that prove that no hyperplane separates; 0 where one does.
    certificate_ : Certificate

    Examples
    --------
    The hard margin of OR (SVM-2):

    >>> import numpy as np
    >>> X, y = [[0, 0], [1, 0], [0, 1], [1, 1]], [-1, 1, 1, 1]
    >>> model = LinearSVC(loss="hinge", C=np.inf, penalize_intercept=False).fit(X, y)
    >>> model.coef_.round(6).tolist(), model.intercept_.round(6).tolist()
    ([[2.0, 2.0]], [-1.0])
    >>> print(model.certificate_["hard margin"].statement)
    y(<x, w> + b) >= 1 for every row, to within ...; the margin is 0.353553
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="right")],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "penalize_intercept": ["boolean"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        penalize_intercept: bool = True,
        certify: bool | str = True,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C.

        Returns
        -------
        self
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        labels = to_numpy(y)
        self.classes_ = np.unique(labels)
        self._check_combination()
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data contains only one "
                f"class: {self.classes_[0]!r}. Add rows of another class."
            )
        weights = self._class_weights(labels, sample_weight)
        with threads_for(X):
            if self.multi_class == "crammer_singer":
                solved = [self._fit_classes(X, labels, weights, sample_weight)]
            else:
                rng = check_random_state(self.random_state)
                problems = self._problems(labels, weights, sample_weight)
                solved = [fit_binary(self, X, *problem, rng) for problem in problems]
            self._store(solved, X)
            reasons = sorted({part.stopped for part in solved})
            return self._seal(X, y, sample_weight, "; ".join(reasons))

    def decision_function(self, X: Any) -> Any:
        """Scores X @ coef_.T + intercept_: one column a class, or one number for two classes."""
        native = scores(self, X)
        if native is None and not is_torch(self.coef_):
            return super().decision_function(X)
        if native is None:
            native = np.asarray(X @ to_numpy(self.coef_).T) + to_numpy(self.intercept_)
        return native[:, 0] if native.shape[1] == 1 else native

    def predict(self, X: Any) -> Any:
        """The label with the largest score; a tensor on the device of X where X is one."""
        z = self.decision_function(X)
        xp = array_namespace(z)
        chosen = xp.astype(z > 0, xp.int64) if z.ndim == 1 else xp.argmax(z, axis=1)
        return like(self.classes_, z)[chosen]

    def _fit_classes(self, X: Any, y: Any, weights: Array, sample_weight: Any) -> Solved:
        codes, c = self._class_problem(y, weights, sample_weight)
        seed = check_random_state(self.random_state)
        return fit_classes(self, X, codes, c, len(self.classes_), seed)

    def _store(self, solved: list[Solved], X: Any) -> None:
        """scikit-learn's shapes and X's precision; two classes of Crammer and Singer are one hyperplane."""
        coef = np.vstack([part.coef for part in solved])
        intercept = np.concatenate([part.intercept for part in solved])
        if self.multi_class == "crammer_singer" and len(self.classes_) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        self.coef_ = stored(coef, X)
        self.intercept_ = stored(intercept, X) if self.fit_intercept else 0.0
        self.dual_coef_ = np.vstack([part.beta for part in solved])
        self.n_iter_ = max(part.n_iter for part in solved)
        self.__dict__.pop("farkas_", None)
        if np.isinf(self.C):
            self.farkas_ = np.vstack([part.farkas for part in solved if part.farkas is not None])

    def _loss(self) -> Loss:
        return Hinge() if self.loss == "hinge" else SquaredHinge()

    def _class_weights(self, y: Any, sample_weight: Any) -> Array:
        weights = None if sample_weight is None else to_numpy(sample_weight)
        found = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=weights
        )
        return np.asarray(found, dtype=np.float64)

    def _problems(self, y: Any, weights: Array, sample_weight: Any) -> Iterator[_Binary]:
        """The second class against the first, or each class against the others, whose weight is then 1."""
        s = np.ones(len(y)) if sample_weight is None else to_numpy(sample_weight)
        binary = len(self.classes_) == 2
        for k, label in enumerate(self.classes_):
            if binary and k == 0:
                continue
            positive = y == label
            rest = weights[0] if binary else 1.0
            name = "" if binary else f"{label} vs rest: "
            yield _Binary(
                name, np.where(positive, 1.0, -1.0), s * np.where(positive, weights[k], rest)
            )

    def _class_problem(
        self, y: Any, weights: Array, sample_weight: Any
    ) -> tuple[NDArray[np.int64], Array]:
        """Codes 0, ..., K-1, and C times the weights of the rows; a label that was never seen is refused."""
        codes = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        if not (self.classes_[codes] == y).all():
            unseen = np.setdiff1d(y, self.classes_)[:4].tolist()
            raise ValueError(
                f"y has labels {unseen} that the model was not fitted with: {self.classes_.tolist()}."
            )
        s = np.ones(len(y)) if sample_weight is None else to_numpy(sample_weight)
        return codes.astype(np.int64), self.C * s * weights[codes]

    def _check_combination(self) -> None:
        """scikit-learn's refusals, in its words, and those of the hard margin."""
        many = self.multi_class == "crammer_singer"
        if np.isinf(self.C) and (many or self.penalty == "l1"):
            what = "multi_class='crammer_singer'" if many else "penalty='l1'"
            raise ValueError(
                f"C=inf, a hard margin, is there for penalty='l2' and multi_class='ovr', got {what}: give a "
                "finite C."
            )
        if many:
            if self.fit_intercept and not self.penalize_intercept:
                raise ValueError(
                    "multi_class='crammer_singer' has a penalised intercept only, got "
                    "penalize_intercept=False: raise intercept_scaling, or use multi_class='ovr'."
                )
            return
        refused = ""
        if (self.penalty, self.loss) == ("l1", "hinge"):
            refused = "The combination of penalty='l1' and loss='hinge' is not supported"
        elif (self.penalty == "l1" and self.dual is True) or (
            self.loss == "hinge" and self.dual is False
        ):
            refused = (
                f"The combination of penalty='{self.penalty}' and loss='{self.loss}' are not supported when "
                f"dual={self.dual}"
            )
        if refused:
            raise ValueError(
                f"Unsupported set of arguments: {refused}, Parameters: penalty={self.penalty!r}, "
                f"loss={self.loss!r}, dual={self.dual!r}"
            )

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(
            X, y, sample_weight, reset=reset, accept_sparse="csr", order="C"
        )
        check_size(X)
        check_classification_targets(np.unique(to_numpy(y)) if is_native(y) else y)
        return X, y, sample_weight

    def _accepts(self) -> frozenset[str]:
        if self.multi_class == "crammer_singer" or self.penalty == "l1":
            return super()._accepts()
        return ANYWHERE

    def _remedy(self) -> str:
        if np.isinf(self.C):
            return "Give a finite C: a soft margin exists for every data set."
        return REMEDY

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        k, (n, p) = len(self.classes_), X.shape
        machines = 1 if k == 2 else k
        duals = k if self.multi_class == "crammer_singer" else machines
        yield from linear_inconsistencies(self, (machines, p), (duals, n), sample_weight)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return linear_svc_claims(self, X, y, sample_weight, full=full, tol=tol)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
