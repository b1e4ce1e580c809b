r"""Support vector regression with kernels.

    min_{w, b}  1/2 ||w||^2 + sum_i C_i [|z_i - <w, phi(x_i)> - b| - epsilon]_+

Errors below epsilon cost nothing; the others cost their excess, so rows outside the tube pull with a force of
at most C_i. The dual is the box problem of :mod:`surefit.solvers.smo` with two variables a row, and the
certificate is that of :mod:`surefit.svm._svc_claims`.

References
----------
Drucker et al., "Support vector regression machines", NIPS 9 (1996); Chang & Lin, LIBSVM (2011).
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import column_or_1d

from .._namespace import is_torch, like
from ..certificate import Claim, Kind, Status
from ..iterate import Stop
from ..solvers.smo import BoxTask
from ._machine import solve_machine
from ._rows import kernel_sums, take
from ._svc_claims import Box, box_claims
from .base import RULES, KernelMachine

__all__ = ["SVR"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_CHEAP = 1 << 23  # kernel values that a fit may spend on its certificate
_UNUSED = ("probability", "class_weight", "random_state")


class SVR(RegressorMixin, KernelMachine):
    """Kernel support vector regressor, a drop-in for :class:`sklearn.svm.SVR`.

    Parameters
    ----------
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, Kernel or callable, default="rbf"
    degree, gamma, coef0
        Of the kernels that have them.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, and relative duality gap.
    C : float, default=1.0
        Price of an error beyond ``epsilon``.
    epsilon : float, default=0.1
        Half the width of the tube in which errors cost nothing.
    shrinking, cache_size, verbose, max_iter
        As in :class:`SVC`.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, coef_, fit_status_, n_iter_, shape_fit_
        As in scikit-learn.
    kernel_ : Kernel
        With numbers for all parameters; None for a kernel matrix or a user's function.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.svm import SVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
    >>> model = SVR(kernel="linear", C=10.0, epsilon=0.3, tol=1e-8).fit(X, y)
    >>> (model.coef_ + 0.0).round(4).tolist(), model.certificate_.ok  # the flattest line in the tube
    ([[0.8]], True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in RULES.items() if name not in _UNUSED},
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: int = False,
        max_iter: int = -1,
        certify: bool | str = True,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVR:
        """Fit the machine.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features), or a kernel matrix
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Times C for each row; rows with a weight of 0 or less have no part in the fit.
        """
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self.kernel_ = self._resolved(X)
        rows, bounds = self._rows(y, sample_weight)
        source = self._source(X, rows)
        t, lo, hi, row = self._tube(y[rows], bounds)
        found = solve_machine(
            source, BoxTask(t, lo, hi, row), tol=self.tol, max_iter=self.max_iter,
            shrinking=self.shrinking, verbose=int(self.verbose),
        )  # fmt: skip
        beta = np.bincount(row, weights=found.beta, minlength=len(rows)).astype(np.float64)
        self.intercept_ = np.array([found.offset])
        self.n_iter_ = int(found.n_iter)
        self.fit_status_ = int(self.max_iter >= 0 and found.stop is Stop.MAX_ITER)
        used = np.flatnonzero(beta)
        self.n_support_ = np.array([len(used)], dtype=np.int32)
        self._keep(X, rows[used], beta[used][None, :])
        return self._finish(X, y, sample_weight, found.stop.value)

    def _rows(self, y: Array, sample_weight: Array | None) -> tuple[Index, Array]:
        """The rows with a weight, and their C_i."""
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        rows = np.flatnonzero(weight > 0)
        return rows, float(self.C) * weight[rows]

    def _tube(self, z: Array, bounds: Array) -> tuple[Array, Array, Array, Index]:
        """t, lo, hi and the row of the two variables of each row: below the tube, above it."""
        n, zero, epsilon = len(z), np.zeros(len(z)), float(self.epsilon)
        return (
            np.concatenate([z - epsilon, z + epsilon]),
            np.concatenate([zero, -bounds]),
            np.concatenate([bounds, zero]),
            np.tile(np.arange(n), 2),
        )

    def predict(self, X: Any) -> Any:
        """sum_j dual_coef_j k(x_j, x) + b.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features), or kernel values against
            the rows of the fit

        Returns
        -------
        array of shape (n_samples,), or a tensor on the device of X
        """
        checked = self._check_for_predict(X)
        values = self._sums(checked, self._coefficients().T)[:, 0] + float(self.intercept_[0])
        return like(values, X) if is_torch(X) else values

    def _primal(self) -> Any:
        return safe_sparse_dot(self.dual_coef_, self.support_vectors_)

    @property
    def _dual_coef_(self) -> Any:
        return self.dual_coef_

    @property
    def _intercept_(self) -> Array:
        return self.intercept_

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        return self._checked(X, y, sample_weight, reset=reset, y_numeric=True)

    def _targets(self, y: Any) -> NDArray[Any]:
        y = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
        largest = float(np.abs(y).max(initial=0.0))
        if not largest < 1e150:
            raise ValueError(
                f"y has values as large as {largest:.3g}, whose squares overflow float64. Rescale y first."
            )
        return y

    def _layout_of(self) -> tuple[int, int]:
        return 1, 1

    def _shape_of_steps(self) -> tuple[int, ...]:
        return ()

    def _support_counts(self, y: Any) -> NDArray[np.int64]:
        return np.array([len(self.support_)])

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        support = self._support_claim(X, full=full)
        if support.status is Status.FAILS:
            return [support]
        rows, bounds = self._rows(y, sample_weight)
        place = np.full(X.shape[0], -1)
        place[rows] = np.arange(len(rows))
        at = place[np.asarray(self.support_)]
        stray = int((at < 0).sum())
        if stray:
            words = f"{stray} support vectors are rows without weight"
            return [Claim.check("support rows", words, Kind.EXACT, stray, 0.0, "SVM-3")]
        w = self._coefficients()[0] if len(self.support_) else np.zeros(0)
        beta = np.zeros(len(rows))
        beta[at] = w
        t, lo, hi, row = self._tube(y[rows], bounds)
        both = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
        size = self._largest(X) if len(self.support_) else 1.0
        box = Box(t, lo, hi, row, both, float(self.intercept_[0]), size)
        known, undecided = self._kernel_claims(X, full=full)

        def sums(some: Any, weights: Array) -> Array:
            if not len(self.support_):
                return np.zeros((len(some), weights.shape[1]))
            return kernel_sums(
                self.kernel_, take(X, some), self.support_vectors_, weights, columns=self.support_
            )

        decide = full or self._given or len(rows) * len(self.support_) <= _CHEAP
        claims = box_claims(
            box, lambda weights: sums(rows, weights[at]), tol=tol, decide=decide,
            free_values=lambda some: sums(rows[some], beta[at][:, None])[:, 0],
        )  # fmt: skip
        if undecided is not None:
            claims = [c for c in claims if c.name not in ("duality gap", "margin")] + [undecided]
        return [support, *known, *claims]

    def _largest(self, X: Any) -> float:
        if self._given:
            return float(np.abs(np.diagonal(X)).max(initial=0.0))
        values = self.kernel_.diag(self.support_vectors_)  # type: ignore[union-attr]
        return float(abs(values).max())
