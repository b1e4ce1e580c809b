r"""Linear support vector regression, certified by its duality gap.

    min_{w, b}  1/2 ||w||^2 (+ 1/2 (b/B)^2) + C sum_i s_i [|y_i - <x_i, w> - b| - epsilon]_+

or the squares of the losses. Errors inside the tube cost nothing; with epsilon = 0 the loss is the absolute
error. The intercept is that of :class:`surefit.svm.LinearSVC`.

Certificate: *duality gap* (OPTIMAL, SVM-7), at most ``tol`` times the objective at w = 0, and *complementary
slackness* (EXACT, SVM-9). The dual variables are ``dual_coef_``, one a row; they are repaired, not trusted.

References
----------
Vapnik, The Nature of Statistical Learning Theory (1995); Ho & Lin, "Large-scale linear support vector
regression" (2012).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from .._namespace import to_numpy
from ..base import ANYWHERE, SPARSE_FORMATS, Certified
from ..certificate import Claim
from ..design import as_design
from ..losses import EpsilonInsensitive, Loss, SquaredEpsilonInsensitive
from ..solvers.box_dual import regression
from ._linear import (
    REMEDY,
    check_size,
    intercept_of,
    linear_inconsistencies,
    rows_of,
    scores,
    stored,
    threads_for,
)
from ._linear_claims import linear_claims, penalised_scaling
from ._linear_fit import fit_box

__all__ = ["LinearSVR"]

Array = NDArray[np.float64]


class LinearSVR(RegressorMixin, Certified):
    """Linear support vector regression, a drop-in for :class:`sklearn.svm.LinearSVR`.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube; not negative.
    tol : float, default=1e-4
        The duality gap asked for, as a share of the objective at w = 0.
    C : float, default=1.0
        Weight of the losses.
    loss : {'epsilon_insensitive', 'squared_epsilon_insensitive'}, default='epsilon_insensitive'
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        Value of the constant feature whose coefficient makes the intercept.
    dual : bool or 'auto', default='auto'
        Which form scikit-learn would solve. The model is the same; combinations that it refuses are refused.
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
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    n_iter_ : int
    dual_coef_ : ndarray of shape (n_samples,)
        The dual variables, -C to C; ``coef_`` is their sum of rows.
    certificate_ : Certificate

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 90.0]
    >>> model = LinearSVR(C=10.0, penalize_intercept=False).fit(X, y)
    >>> model.coef_.round(6).tolist(), model.intercept_.round(6).tolist()
    ([2.0], [1.0])
    >>> model.certificate_["duality gap"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "dual": ["boolean", StrOptions({"auto"})],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "penalize_intercept": ["boolean"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | str = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        penalize_intercept: bool = True,
        certify: bool | str = True,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
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
        if self.loss == "epsilon_insensitive" and self.dual is False:
            raise ValueError(
                "Unsupported set of arguments: The combination of penalty='l2' and "
                "loss='epsilon_insensitive' "
                f"are not supported when dual=False, Parameters: penalty='l2', loss={self.loss!r}, dual=False"
            )
        c = self._weights(len(y), sample_weight)
        kept = c > 0
        problem = regression(
            to_numpy(y)[kept], c[kept], float(self.epsilon),
            squared=self.loss == "squared_epsilon_insensitive", intercept=intercept_of(self),
        )  # fmt: skip
        with threads_for(X):
            rng = check_random_state(self.random_state)
            solved = fit_box(self, rows_of(X, kept), problem, kept, rng, type(self).__name__)
            self.coef_ = stored(solved.coef[0], X)
            self.intercept_ = stored(solved.intercept, X) if self.fit_intercept else 0.0
            self.dual_coef_, self.n_iter_ = solved.beta[0], solved.n_iter
            return self._seal(X, y, sample_weight, solved.stopped)

    def predict(self, X: Any) -> Any:
        """X @ coef_ + intercept_; a tensor on the device of X where X is one."""
        native = scores(self, X)
        if native is not None:
            return native
        X = validate_data(
            self, X, accept_sparse=SPARSE_FORMATS, dtype=[np.float64, np.float32], reset=False
        )
        return np.asarray(X @ to_numpy(self.coef_)) + to_numpy(self.intercept_)

    def _loss(self) -> Loss:
        kind = (
            EpsilonInsensitive if self.loss == "epsilon_insensitive" else SquaredEpsilonInsensitive
        )
        return kind(float(self.epsilon))

    def _weights(self, n: int, sample_weight: Any) -> Array:
        s = np.ones(n) if sample_weight is None else to_numpy(sample_weight)
        return float(self.C) * s

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(
            X, y, sample_weight, reset=reset, accept_sparse="csr", order="C", y_numeric=True
        )
        check_size(X, y)
        return X, y, sample_weight

    def _accepts(self) -> frozenset[str]:
        return ANYWHERE

    def _remedy(self) -> str:
        return REMEDY

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        n, p = X.shape
        yield from linear_inconsistencies(self, (p,), (n,), sample_weight)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        b = float(np.ravel(to_numpy(self.intercept_))[0])
        return linear_claims(
            as_design(X), to_numpy(y), self._weights(len(y), sample_weight), to_numpy(self.coef_), b,
            self._loss(), l1=False, intercept=penalised_scaling(self),
            fit_intercept=bool(self.fit_intercept), beta=getattr(self, "dual_coef_", None),
            tol=tol, name="", full=full,
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
