"""What the kernel machines share: parameters, kernels, validation, decision values."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from .._consistency import wrong_counts, wrong_indices, wrong_shapes
from .._namespace import is_torch, to_numpy
from ..base import Certified
from ..certificate import Claim, Kind, Status
from ..inputs import is_native, validate_native, validate_native_X
from ..kernels import Custom, Kernel, Precomputed, as_kernel, psd_claim
from ..kernels.mercer import indefinite_remedy
from ..kernels.spelling import same_kernel
from ..solvers.kernel_rows import RowSource
from ._rows import double, kernel_sums, take
from ._sources import row_source
from ._svc_claims import undecided_gap

__all__ = ["NOT_FINITE", "RULES", "KernelMachine"]

Array = NDArray[np.float64]
NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values and need "
    "to be preprocessed."
)
RULES: dict[str, list[Any]] = {
    "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}), callable],
    "degree": [Interval(Integral, 0, None, closed="left")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "C": [Interval(Real, 0.0, None, closed="right")],
    "shrinking": ["boolean"],
    "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
    "cache_size": [Interval(Real, 0, None, closed="neither")],
    "class_weight": [StrOptions({"balanced"}), dict, None],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
    "random_state": ["random_state"],
    "certify": Certified._certify_constraint,
}


class KernelMachine(Certified):
    """A machine whose decision is a sum of kernel values over support vectors."""

    kernel: Any
    degree: int
    gamma: Any
    coef0: float
    tol: float
    C: float
    cache_size: float
    max_iter: int
    shrinking: bool
    verbose: int
    support_: NDArray[np.int32]
    support_vectors_: Any
    dual_coef_: Any
    intercept_: Array
    n_support_: NDArray[np.int32]
    shape_fit_: tuple[int, ...]
    kernel_: Kernel | None
    _rows_of_fit: Any

    # ------------------------------------------------------------------ kernels

    @property
    def _custom(self) -> bool:
        """A user's function: the rows may be anything that it takes."""
        return callable(self.kernel) and not isinstance(self.kernel, Kernel)

    @property
    def _given(self) -> bool:
        """Whether what is fitted is a kernel matrix."""
        return self._custom or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    def _resolved(self, X: Any) -> Kernel | None:
        """The kernel the parameters mean on X; None for a kernel matrix."""
        if self._given:
            return None
        kernel = as_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        if isinstance(kernel, (Custom, Precomputed)):
            raise ValueError(f"pass kernel={kernel!r} as a function, or as 'precomputed'.")
        return kernel.resolve(X)

    @property
    def _gamma(self) -> float:
        return float(getattr(self.kernel_, "gamma", 0.0))

    @property
    def _sparse(self) -> bool:
        return sp.issparse(self.support_vectors_)

    @property
    def _n_support(self) -> Any:
        return self.n_support_

    def _gram(self, X: Any, rows: Any) -> Array:
        """A user's function of X against the rows of the fit."""
        K = self.kernel(X, rows)
        K = K.toarray() if sp.issparse(K) else np.asarray(to_numpy(K), dtype=np.float64)
        n, m = _num_samples(X), _num_samples(rows)
        if K.shape != (n, m):
            raise ValueError(
                f"the kernel function gave a matrix of shape {K.shape} for {n} rows against {m}; it must be "
                f"({n}, {m}): X.shape[1] should be equal to {m}, the number of samples at training time."
            )
        if not np.isfinite(K).all():
            raise ValueError("the kernel function gave NaN or infinity.")
        return K

    # ------------------------------------------------------------------ validation

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, **checks: Any) -> Any:
        """X (or its kernel matrix, for a user's function), y, and weights that may be negative."""
        if reset:
            self.__dict__.pop("certificate_", None)
        if self._custom:
            check_consistent_length(X, y)
            if reset:
                self._rows_of_fit = X
            X = self._gram(X, X)
            y = self._targets(y)
        elif is_native(X, y):
            X, y, _ = validate_native(self, X, y, None, reset=reset, **checks)
            y = self._targets(to_numpy(y))
        else:
            if sp.issparse(X) and self._given:
                raise TypeError("Sparse precomputed kernels are not supported.")
            X, y = validate_data(
                self, X, y, reset=reset, dtype=[np.float64, np.float32], order="C",
                accept_sparse="csr", accept_large_sparse=False, **checks,
            )  # fmt: skip
            if sp.issparse(X) and not X.has_sorted_indices:
                X = X.copy()
                X.sort_indices()
            y = self._targets(y)
        if self._given and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix."
                f" Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        largest = X.data if sp.issparse(X) else X
        if largest.shape[0] and not float(abs(largest).max()) < 1e150:
            raise ValueError(NOT_FINITE)
        if sample_weight is not None:
            if not (np.asarray(to_numpy(sample_weight)) > 0).any():
                raise ValueError("Invalid input - all samples have zero or negative weights.")
            sample_weight = _check_sample_weight(to_numpy(sample_weight), np.empty((X.shape[0], 0)))
            sample_weight = np.maximum(np.asarray(sample_weight, dtype=np.float64), 0.0)
        return X, y, sample_weight

    @abstractmethod
    def _targets(self, y: Any) -> NDArray[Any]:
        """y, checked."""

    def _accepts(self) -> frozenset[str]:
        known = isinstance(self.kernel, (str, Kernel)) and not self._given
        return frozenset({"dense", "sparse", "torch"} if known else {"dense", "sparse"})

    def _check_for_predict(self, X: Any) -> Any:
        """X of a prediction, as the kernel takes it: rows, or kernel values against the rows of the fit."""
        check_is_fitted(self)
        if self._custom:
            return self._gram(X, self._rows_of_fit)
        if is_torch(X) or is_torch(self.support_vectors_):
            if not is_torch(X):
                import torch

                X = torch.as_tensor(np.asarray(X), device=self.support_vectors_.device)
            X = validate_native_X(self, X, reset=False)
        else:
            X = validate_data(
                self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32], order="C",
                accept_large_sparse=False,
            )  # fmt: skip
        if sp.issparse(X) and not self._sparse and not self._given:
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data"
            )
        if self._sparse and not sp.issparse(X):
            X = sp.csr_array(X)
        if self._given and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, the number of samples "
                "at training time"
            )
        altered = self.n_support_.sum() != len(self.support_)
        if altered:
            raise ValueError(f"The internal representation of {type(self).__name__} was altered")
        return X

    def _source(self, X: Any, rows: Any) -> RowSource:
        """The kernel matrix of some rows, as the solver takes it."""
        part = X[np.ix_(rows, rows)] if self._given else take(X, rows)
        source = row_source(self.kernel_, part, cache_mb=self.cache_size)
        if not np.isfinite(source.diag).all():
            raise ValueError(NOT_FINITE)
        return source

    # ------------------------------------------------------------------ decision values

    def _sums(self, X: Any, weights: Array) -> Array:
        """sum_j k(x, support vector j) weights_j for checked rows, in double precision."""
        if not len(self.support_):
            return np.zeros((X.shape[0], weights.shape[1]))
        return kernel_sums(
            self.kernel_, X, self.support_vectors_, weights,
            columns=self.support_ if self._given else None,
        )  # fmt: skip

    def _coefficients(self) -> Array:
        """``dual_coef_`` as a plain array."""
        dual = self.dual_coef_
        return np.asarray(dual.toarray() if sp.issparse(dual) else to_numpy(dual), dtype=np.float64)

    @property
    def coef_(self) -> Any:
        """Weights of the features, for ``kernel="linear"``."""
        if not isinstance(self.kernel, str) or self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._primal()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    @abstractmethod
    def _primal(self) -> Any:
        """w of a linear machine."""

    def _keep(self, X: Any, support: Any, dual: Array) -> None:
        """The public attributes of a fit: support vectors as X stores rows."""
        self.support_ = support.astype(np.int32)
        if self._given:
            self.support_vectors_ = np.empty((0, 0))
        else:
            self.support_vectors_ = take(X, support)
        self.dual_coef_ = sp.csr_array(dual) if sp.issparse(X) else dual
        if sp.issparse(X) and isinstance(X, sp.spmatrix):
            self.dual_coef_ = sp.csr_matrix(dual)
        self.shape_fit_ = tuple(int(d) for d in X.shape)
        if not (np.isfinite(dual).all() and np.isfinite(self.intercept_).all()):
            raise ValueError(NOT_FINITE)

    def _finish(self, X: Any, y: Any, sample_weight: Any, stop: str) -> Any:
        """Seal the fit; one that max_iter cut short warns, with its failed claims where these say so."""
        self._seal(X, y, sample_weight, stop)
        certificate = getattr(self, "certificate_", None)
        if self.fit_status_ == 1 and (certificate is None or certificate.ok):
            warnings.warn(self._remedy(), ConvergenceWarning, stacklevel=4)
        return self

    def _remedy(self) -> str:
        if self.fit_status_ == 1:
            return (
                f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your data "
                "with StandardScaler or MinMaxScaler."
            )
        return indefinite_remedy(self.certificate_) or super()._remedy()

    fit_status_: int

    # ------------------------------------------------------------------ claims

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_indices("support_", self.support_, X.shape[0])
        machines, rows = self._layout_of()
        shapes: dict[str, tuple[int, ...]] = {
            "intercept_": (machines,),
            "dual_coef_": (rows, len(self.support_)),
        }
        if not self._given:
            shapes["support_vectors_"] = (len(self.support_), X.shape[1])
        yield from wrong_shapes(self, shapes)
        if tuple(self.shape_fit_) != tuple(X.shape):
            yield f"shape_fit_ is {self.shape_fit_}, and these data have the shape {tuple(X.shape)}"
        expected = self._support_counts(y)
        if not np.array_equal(self.n_support_, expected):
            found = np.asarray(self.n_support_).tolist()
            yield f"n_support_ is {found}, and support_ names {expected.tolist()} rows of these data"
        yield from wrong_counts(self, n_support_=0, n_iter_=0)
        yield from wrong_shapes(self, {"n_iter_": self._shape_of_steps()})
        most = self.max_iter
        if most >= 0 and np.max(self.n_iter_) > most:
            yield f"n_iter_ is {self.n_iter_}, and max_iter={most}"
        reached = most >= 0 and np.max(self.n_iter_) >= most
        if self.fit_status_ not in ((0, 1) if reached else (0,)):
            yield f"fit_status_ is {self.fit_status_!r}, n_iter_ {self.n_iter_} and max_iter={most}"

    @abstractmethod
    def _layout_of(self) -> tuple[int, int]:
        """How many offsets there are, and how many multipliers a support vector has."""

    @abstractmethod
    def _shape_of_steps(self) -> tuple[int, ...]:
        """The shape of ``n_iter_``."""

    @abstractmethod
    def _support_counts(self, y: Any) -> NDArray[np.int64]:
        """``n_support_`` as ``support_`` and the targets have it."""

    def _support_claim(self, X: Any, *, full: bool) -> Claim:
        """The model is made of rows of these data, by the kernel its parameters mean."""
        support = np.asarray(self.support_)
        n = X.shape[0]
        wrong = int(((support < 0) | (support >= n)).sum()) + len(support) - len(np.unique(support))
        if not wrong and not self._given:
            rows = take(X, support)
            if tuple(rows.shape) != tuple(self.support_vectors_.shape):
                wrong = max(len(support), 1)
            elif sp.issparse(rows):
                wrong = int(np.unique((rows != self.support_vectors_).nonzero()[0]).size)
            elif is_torch(rows):
                same = np.asarray(to_numpy(rows) == to_numpy(self.support_vectors_))
                wrong = int((~same.all(axis=1)).sum())
            else:
                wrong = int((~(rows == to_numpy(self.support_vectors_)).all(axis=1)).sum())
        words = f"{wrong} of the {len(support)} support vectors are not rows of these data"
        if self._custom and full and not wrong:  # predictions ask the function about the rows kept
            wrong = self._rows_that_differ(X)
            words = f"the user's kernel of the rows kept for predictions differs in {wrong} entries"
        if not same_kernel(self._resolved(X), self.kernel_):
            wrong, words = wrong + 1, f"{words}; kernel_ is not what the parameters mean"
        return Claim.check("support rows", words, Kind.EXACT, float(wrong), 0.0, "SVM-3")

    def _rows_that_differ(self, K: Any) -> int:
        """In how many entries the kernel of the rows that predictions use differs from that of the data."""
        kept = getattr(self, "_rows_of_fit", None)
        if kept is None or _num_samples(kept) != K.shape[0]:
            return int(K.size)
        rounding = 64.0 * float(np.finfo(np.float64).eps) * float(np.abs(K).max(initial=0.0))
        return int(np.count_nonzero(~(np.abs(self._gram(kept, kept) - K) <= rounding)))

    def _kernel_claims(self, X: Any, *, full: bool) -> tuple[list[Claim], Claim | None]:
        """What is known of the kernel: claims, and the undecided gap where that is not enough."""
        if self.kernel_ is not None and self.kernel_.positive:
            return [], None
        words = "a user's kernel" if self._custom else f"kernel={self.kernel!r}"
        if not full:
            why = (
                f"{words} may not be positive semi-definite; surefit.verify tests the kernel matrix"
            )
            return [], undecided_gap(why)
        claim = psd_claim(X if self.kernel_ is None else self.kernel_.on(double(X)).gram())
        if claim.status is Status.HOLDS:
            return [claim], None
        negative = claim.status is Status.FAILS
        what = "is not" if negative else "is not shown to be"
        why = f"{words} {what} positive semi-definite here ({claim.statement}): no dual bounds the objective"
        if self.kernel_ is not None:  # known to be none in general: said, not held against the fit
            return [], undecided_gap(why)
        return [claim], undecided_gap(why)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = precomputed
        tags.input_tags.sparse = not precomputed
        return tags
