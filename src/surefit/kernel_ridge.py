r"""Kernel ridge regression: least squares in the space of a kernel, with primal = dual checked.

    min_f  sum_i s_i (y_i - f(x_i))^2 + alpha ||f||^2

over all functions of the kernel's space. By the representer theorem (KER-6) the minimiser is
f(x) = sum_i a_i k(x, x_i), and its coefficients solve (K + alpha S^-1) a = y (KER-7). The notes' N lambda is
``alpha``. With a linear kernel this is ridge regression without an intercept.

Certificate:

* *duality gap* (OPTIMAL): the value of the dual problem is a lower bound on the objective of every function
  in the space, and the model's is that close to it; at most ``tol`` of the objective of f = 0.
* *residual* (EXACT): of the linear system, computed from float64 kernel values that are not the solver's;
  at most ``tol`` of y. It bounds the distance to the exact coefficients and to every exact prediction.
* *positive semi-definite* (EXACT), for matrices and functions whose form does not show that they are kernels:
  the least eigenvalue, in full.
* *normal equations* (EXACT), and in full the *duality gap* to the problem without centres, of a fit on
  centres.
* *model rows* (EXACT): predictions use the rows of these data, and the kernel that the parameters say.

References
----------
Saunders, Gammerman & Vovk, "Ridge regression learning algorithm in dual variables", ICML 1998; Rudi,
Carratino & Rosasco, "FALKON", NeurIPS 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from ._consistency import shape_of, wrong_counts, wrong_shapes
from ._kernel_ridge_claims import centre_claims, exact_claims, rounding
from ._kernel_ridge_fit import solve_kernel_ridge
from ._namespace import is_torch, like, to_numpy
from .base import SPARSE_FORMATS, Certified
from .certificate import Claim, Kind
from .inputs import is_native, validate_native_X
from .kernels import NAMES, Kernel, Precomputed, as_kernel
from .kernels.mercer import indefinite_remedy
from .kernels.spelling import same_kernel

__all__ = ["KernelRidge"]


class KernelRidge(MultiOutputMixin, RegressorMixin, Certified):
    """Kernel ridge regression, a drop-in for :class:`sklearn.kernel_ridge.KernelRidge`.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1
        Weight of the penalty, the same or one for each target.
    kernel : str, Kernel or callable, default="linear"
        A name of scikit-learn's, "precomputed", an object of :mod:`surefit.kernels`, or a function of two
        rows.
    gamma, degree, coef0 : float
        Parameters of the named kernels; ``gamma=None`` is 1 / n_features.
    kernel_params : dict, default=None
        Keywords for a function.
    solver : {"auto", "cholesky", "cg", "nystrom"}, default="auto"
        "cholesky" factorises the n x n matrix; "cg" iterates with it in float32 and corrects in float64;
        "nystrom" fits on ``n_components`` centres and never has the matrix. "auto" takes the first for few
        rows, the second while the matrix fits into ``memory_limit`` bytes, and the third beyond: see
        ``solver_``.
    n_components : int, default=None
        Centres of "nystrom"; 4 sqrt(n) by default.
    tol : float, default=1e-8
        Bound on the residual relative to y. The gap of the objective is the square of it.
    max_iter : int, default=1000
        Most steps of "cg".
    max_gap : float, default=None
        With centres: the largest distance from the whole problem that ``certify="full"`` and
        :func:`surefit.verify` let pass, as a share of the objective of f = 0.
    memory_limit : float, default=None
        Bytes that a kernel matrix may take; 8e9, or 60 % of the memory of X's device.
    random_state : int, RandomState or None, default=None
        For the pivots of the preconditioner and the centres.
    verbose : int, default=0
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples,) or (n_samples, n_targets)
        The coefficients a; of the centres, with "nystrom".
    X_fit_ : array or CSR matrix of shape (n_samples, n_features)
        The rows that predictions use; the centres, with "nystrom".
    kernel_ : Kernel
        With numbers for all parameters.
    solver_ : str
    n_iter_ : int
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.kernel_ridge import KernelRidge
    >>> X = np.linspace(0.0, 6.0, 50)[:, None]
    >>> model = KernelRidge(kernel="rbf", gamma=1.0, alpha=1e-3).fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5]]).round(3).tolist()
    [0.998]
    >>> model.certificate_["duality gap"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "kernel": [StrOptions(set(NAMES)), callable],
        "gamma": [Interval(Real, 0, None, closed="left"), StrOptions({"scale", "auto"}), None],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "solver": [StrOptions({"auto", "cholesky", "cg", "nystrom"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_gap": [Interval(Real, 0, None, closed="left"), None],
        "memory_limit": [Interval(Real, 0, None, closed="neither"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        solver: str = "auto",
        n_components: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 1000,
        max_gap: float | None = None,
        memory_limit: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
        certify: bool | str = True,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.solver = solver
        self.n_components = n_components
        self.tol = tol
        self.max_iter = max_iter
        self.max_gap = max_gap
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.verbose = verbose
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel matrix of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), optional
        """
        X, y, weights = self._validate_training_data(X, y, sample_weight, reset=True)
        kernel = self._spelled().resolve(X)
        Y = y[:, None] if y.ndim == 1 else y
        solver, kept, fit = solve_kernel_ridge(self, kernel, X, Y, self._alphas(Y), weights)
        self.solver_, self.n_iter_, self.kernel_ = solver, max(1, fit.n_iter), kernel
        self.X_fit_ = X if kept is None else X[kept]
        self.dual_coef_ = _stored(fit.x[:, 0] if y.ndim == 1 else fit.x, X)
        return self._seal(X, y, weights, fit.stop.value)

    def predict(self, X: Any) -> Any:
        """f(x) = sum_i a_i k(x, x_i) for each row (KER-8).

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features)
            With ``kernel="precomputed"``, k(x, x_i) for each row x and each row x_i of the fit.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets), or a tensor on the device of X
        """
        check_is_fitted(self)
        if is_native(X):
            X = validate_native_X(self, X, reset=False)
        else:
            X = validate_data(
                self, X, accept_sparse=SPARSE_FORMATS, dtype=[np.float64, np.float32], reset=False
            )
            X = X.tocsr() if sp.issparse(X) else X
        centres, a = self.X_fit_, self.dual_coef_
        if is_torch(X) != is_torch(centres):
            centres, a = (like(to_numpy(v), X) for v in (centres, a))
        if is_torch(X) and a.dtype != X.dtype:
            a = a.to(X.dtype)
        return self.kernel_.on(centres, X.dtype).dot(a, X)

    # ------------------------------------------------------------------ the parts of a fit

    def _spelled(self) -> Kernel:
        return as_kernel(
            self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0,
            kernel_params=self.kernel_params, pairwise=True,
        )  # fmt: skip

    def _alphas(self, Y: Any) -> Any:
        """One penalty for each target, where Y lives."""
        alphas = np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))
        count = int(Y.shape[1])
        if alphas.ndim != 1 or len(alphas) not in (1, count):
            raise ValueError(
                f"alpha must be one number or one for each of the {count} targets, got shape {alphas.shape}."
            )
        if not np.isfinite(alphas).all() or (alphas < 0).any():
            raise ValueError(f"alpha must be finite and >= 0, got {self.alpha!r}.")
        return like(np.broadcast_to(alphas, (count,)).copy(), Y)

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, sample_weight = self._validate(
            X, y, sample_weight, reset=reset, y_numeric=True, multi_output=True
        )
        if is_torch(X):
            y = like(y, X).double()
        X = X.tocsr() if sp.issparse(X) else X
        if self._is_pairwise() and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed metric requires shape (n_queries, n_indexed): kernel='precomputed' needs the "
                f"square matrix of all pairs of samples, got shape {tuple(X.shape)}."
            )
        return X, y, sample_weight

    def _accepts(self) -> frozenset[str]:
        return frozenset({"dense", "sparse", "torch"})

    def _is_pairwise(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )

    def _remedy(self) -> str:
        return indefinite_remedy(self.certificate_) or (
            "You might want to raise max_iter, use solver='cholesky', or raise alpha; with centres, raise "
            "n_components."
        )

    # ------------------------------------------------------------------ certificate

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        if self.solver_ not in ("cholesky", "cg", "nystrom"):
            yield f"solver_ must be 'cholesky', 'cg' or 'nystrom', and is {self.solver_!r}"
        rows = X.shape[0] if self.solver_ != "nystrom" else shape_of(self.X_fit_)[0]
        targets = tuple(y.shape[1:])
        yield from wrong_shapes(
            self, {"X_fit_": (rows, X.shape[1]), "dual_coef_": (rows, *targets)}
        )
        yield from wrong_counts(self, n_iter_=1)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        kernel = self._spelled().resolve(X)
        Y = y[:, None] if y.ndim == 1 else y
        a = like(to_numpy(self.dual_coef_).astype(np.float64), X)
        a = a[:, None] if a.ndim == 1 else a
        stored = rounding(self.dual_coef_)
        centres = (
            self.X_fit_ if is_torch(X) == is_torch(self.X_fit_) else like(to_numpy(self.X_fit_), X)
        )
        whole = self.solver_ != "nystrom"
        claims = [self._rows_claim(kernel, X, centres, whole)]
        common: dict[str, Any] = {"tol": tol, "stored": stored, "full": full}
        alphas = self._alphas(Y)
        if whole:
            return claims + exact_claims(kernel, X, Y, a, alphas, sample_weight, **common)
        common["max_gap"] = self.max_gap
        return claims + centre_claims(kernel, centres, X, Y, a, alphas, sample_weight, **common)

    def _rows_claim(self, kernel: Kernel, X: Any, centres: Any, whole: bool) -> Claim:
        """Predictions use ``kernel_`` and ``X_fit_``: these are what the parameters and the data say."""
        wrong = not same_kernel(kernel, self.kernel_)
        words = f"predictions use {self.kernel_!r}" + (f", not {kernel!r}" if wrong else "")
        if whole:
            same = _same_rows(X, centres)
            words += f" on {'the' if same else 'other rows than the'} {X.shape[0]} rows of the data"
            wrong = wrong or not same
        else:
            words += f" on {centres.shape[0]} centres"
        return Claim.check("model rows", words, Kind.EXACT, float(wrong), 0.0, "KER-8")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_pairwise()
        return tags


def _stored(values: Any, X: Any) -> Any:
    """A fitted attribute in the precision of X."""
    return values.to(X.dtype) if is_torch(values) else np.ascontiguousarray(values, dtype=X.dtype)


def _same_rows(X: Any, centres: Any) -> bool:
    if X is centres:
        return True
    if tuple(X.shape) != tuple(centres.shape) or sp.issparse(X) != sp.issparse(centres):
        return False
    if sp.issparse(X):
        return bool((centres != X).nnz == 0)
    return bool((centres == X).all())
