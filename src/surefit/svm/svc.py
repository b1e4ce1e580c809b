r"""Support vector classification with kernels (SVM-1 to SVM-9, KER-8).

    min_{w, b}  1/2 ||w||^2 + sum_i C_i [1 - y_i (<w, phi(x_i)> + b)]_+

C_i is C times the weights of the row and of its class; the offset is not penalised. ``C=inf`` is the hard
margin. The fit solves the dual (:mod:`surefit.solvers.smo`); the decision is sum_i y_i alpha_i k(x_i, x) + b.
More than two classes are fitted pair by pair and vote.

Certificate: see :mod:`surefit.svm._svc_claims`. With many pairs the worst of each claim is stated.

References
----------
Cortes & Vapnik, "Support-vector networks", Machine Learning 20 (1995); Chang & Lin, LIBSVM (2011).
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import _ovr_decision_function, check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._consistency import wrong_shapes
from .._namespace import is_torch, like
from .._threads import one_thread
from ..certificate import Claim, Status
from ..iterate import Stop
from ..solvers.smo import BoxTask
from ._machine import Machine, solve_machine
from ._pairs import (
    Pair,
    Regimes,
    multipliers_by_class,
    multipliers_by_pair,
    pair_claims,
    pairs_of,
)
from ._probability import PairProbabilities, warn_probability
from ._svc_claims import several
from .base import RULES, KernelMachine

__all__ = ["SVC", "Regimes"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


class SVC(PairProbabilities, ClassifierMixin, KernelMachine):
    """Kernel support vector classifier, a drop-in for :class:`sklearn.svm.SVC`.

    Parameters
    ----------
    C : float, default=1.0
        Price of a margin violation; ``np.inf`` for the hard margin.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, Kernel or callable, default="rbf"
        A :class:`surefit.kernels.Kernel` brings its own parameters; a callable maps two tables to a matrix.
    degree, gamma, coef0
        Of the kernels that have them.
    shrinking : bool, default=True
        Whether rows far from the margin wait while the others settle.
    probability : bool, default="deprecated"
        Whether to fit Platt's probabilities, as scikit-learn did until 1.9.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, and relative duality gap.
    cache_size : float, default=200
        Megabytes for kernel rows, where rows are kept.
    class_weight : dict or "balanced", default=None
    verbose : int or bool, default=False
    max_iter : int, default=-1
        Most SMO steps for each pair of classes; -1 for no limit.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
    break_ties : bool, default=False
    random_state : int, default=None
        Of the folds of ``probability=True``.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    support_, support_vectors_, dual_coef_, intercept_, n_support_, coef_, classes_, class_weight_
        As in scikit-learn; ``dual_coef_`` holds y_i alpha_i.
    fit_status_, n_iter_, shape_fit_
    kernel_ : Kernel
        With numbers for all parameters; None for a kernel matrix or a user's function.
    farkas_ : array of shape (n_samples,) or (n_pairs, n_samples)
        Only when a hard margin does not exist: convex weights of the two classes with one mean.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.svm import SVC
    >>> X, y = [[0, 0], [1, 0], [0, 1], [1, 1]], [-1, 1, 1, 1]  # OR
    >>> model = SVC(C=np.inf, kernel="linear", tol=1e-10).fit(X, y)
    >>> (model.coef_ + 0.0).round(6).tolist(), model.intercept_.round(6).tolist()
    ([[2.0, 2.0]], [-1.0])
    >>> model.certificate_["duality gap"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RULES,
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Fit the machine, one for each pair of classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features), or a kernel matrix
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Times C for each row; rows with a weight of 0 or less have no part in the fit.
        """
        random = check_random_state(self.random_state)
        warn_probability(self)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=True)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        self.kernel_ = self._resolved(X)
        pairs = pairs_of(codes, len(self.classes_), self._bounds(codes, sample_weight))
        found = self._solve(X, pairs)
        self._layout(X, codes, pairs, found)
        if self.probability is True:
            seeds = random.randint(np.iinfo(np.int32).max, size=len(pairs))
            self._platt_ = self._cross_validated(X, pairs, seeds)
        else:
            self._platt_ = np.empty((0, 2))
        stops = [machine.stop for machine in found]
        stop = max(stops, key=list(Stop).index)
        return self._finish(X, y, sample_weight, stop.value)

    # ------------------------------------------------------------------ the fit

    def _class_weights(self, y: Any) -> Array:
        """What class_weight means on these labels; each its own 1 where a class is missing among them."""
        try:
            found = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        except ValueError:
            found = np.ones(len(self.classes_))
        return np.asarray(found, dtype=np.float64)

    def _bounds(
        self, codes: Index, sample_weight: Array | None, class_weight: Array | None = None
    ) -> Array:
        """C_i of each row; by ``class_weight_`` unless another is given."""
        known = self.class_weight_ if class_weight is None else class_weight
        weight = known[np.minimum(codes, len(known) - 1)]
        weight = weight if sample_weight is None else weight * sample_weight
        with np.errstate(invalid="ignore"):
            bounds = np.where(weight > 0, float(self.C) * weight, 0.0)
        if sample_weight is not None and len(np.unique(codes[bounds > 0])) == 1:
            raise ValueError(
                "Invalid input - all samples with positive weights belong to the same class."
            )
        return np.asarray(bounds, dtype=np.float64)

    def _solve(self, X: Any, pairs: list[Pair]) -> list[Machine]:
        """The machine of each pair, side by side where they are large."""

        def one(pair: Pair) -> Machine:
            return self._machine(X, pair.rows, pair.signs, pair.bounds)

        if len(pairs) == 1 or max(len(p.rows) for p in pairs) < 200 or is_torch(X):
            return [one(pair) for pair in pairs]
        workers = one_thread.allowed
        with one_thread, ThreadPoolExecutor(max(1, workers)) as pool:
            return list(pool.map(one, pairs))

    def _machine(self, X: Any, rows: Index, signs: Array, bounds: Array) -> Machine:
        if not (signs > 0).any() or not (signs < 0).any():  # nothing to separate
            offset = 1.0 if (signs > 0).any() else -1.0
            zero = np.zeros(len(rows))
            return Machine(zero, zero, offset, 0, Stop.FINISHED, None)
        source = self._source(X, rows)
        zero = np.zeros(len(rows))
        task = BoxTask(
            signs, np.where(signs > 0, zero, -bounds), np.where(signs > 0, bounds, zero),
            np.arange(len(rows)),
        )  # fmt: skip
        return solve_machine(
            source, task, tol=self.tol, max_iter=self.max_iter, shrinking=self.shrinking,
            verbose=int(self.verbose),
        )  # fmt: skip

    def _layout(self, X: Any, codes: Index, pairs: list[Pair], found: list[Machine]) -> None:
        """LIBSVM's layout: support vectors class by class, a row of multipliers for each other class."""
        n, k = X.shape[0], len(self.classes_)
        dual = multipliers_by_class(pairs, [machine.beta for machine in found], k, n)
        used = np.flatnonzero(dual.any(axis=0))
        support = used[np.argsort(codes[used], kind="stable")]
        self.n_support_ = np.bincount(codes[support], minlength=k).astype(np.int32)
        sign = -1.0 if k == 2 else 1.0
        self.intercept_ = sign * np.array([machine.offset for machine in found])
        self.n_iter_ = np.array([machine.n_iter for machine in found], dtype=np.int32)
        reached = [machine.stop is Stop.MAX_ITER for machine in found]
        self.fit_status_ = int(self.max_iter >= 0 and any(reached))
        self._keep(X, support, sign * dual[:, support] + 0.0)
        self.__dict__.pop("farkas_", None)
        if any(machine.farkas is not None for machine in found):
            farkas = np.zeros((len(pairs), n))
            for weights, pair, machine in zip(farkas, pairs, found):
                if machine.farkas is not None:
                    weights[pair.rows] = machine.farkas
            self.farkas_ = farkas[0] if k == 2 else farkas

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        return self._checked(X, y, sample_weight, reset=reset)

    def _targets(self, y: Any) -> NDArray[Any]:
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        return y

    # ------------------------------------------------------------------ predictions

    @property
    def _sign(self) -> float:
        """Two classes: the public attributes are positive for the second, the pair for the first."""
        return -1.0 if len(self.classes_) == 2 else 1.0

    @property
    def _dual_coef_(self) -> Any:
        return self._sign * self.dual_coef_

    @_dual_coef_.setter
    def _dual_coef_(self, values: Any) -> None:
        self.dual_coef_ = self._sign * values

    @property
    def _intercept_(self) -> Array:
        return self._sign * self.intercept_

    def _pair_weights(self) -> Array:
        """The multipliers of each pair as a column over the support vectors, positive for its first class."""
        dual, k = self._sign * self._coefficients(), len(self.classes_)
        return multipliers_by_pair(dual, self.n_support_, k)

    def _pair_decisions(self, X: Any) -> Array:
        """The decision of each pair, positive for its first class."""
        X = self._check_for_predict(X)
        return self._sums(X, self._pair_weights()) + self._intercept_

    def decision_function(self, X: Any) -> Any:
        """Scores: of two classes those of the second; else votes with ties broken ("ovr"), or pairs ("ovo").

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor} of shape (n_samples, n_features), or kernel values against
            the rows of the fit

        Returns
        -------
        array of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
        """
        scores = self._pair_decisions(X)
        if len(self.classes_) == 2:
            scores = -scores.ravel()
        elif self.decision_function_shape == "ovr":
            scores = _ovr_decision_function(scores < 0, -scores, len(self.classes_))
        return like(scores, X) if is_torch(X) else scores

    def predict(self, X: Any) -> Any:
        """The class with the most votes of the pairs; of several, the first."""
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        k = len(self.classes_)
        if self.break_ties and k > 2:
            scores = self._pair_decisions(X)
            winner = _ovr_decision_function(scores < 0, -scores, k).argmax(axis=1)
        else:
            scores = self._pair_decisions(X)
            votes = np.zeros((len(scores), k), dtype=np.int64)
            for score, (a, b) in zip(scores.T, combinations(range(k), 2)):
                votes[:, a] += score > 0
                votes[:, b] += ~(score > 0)
            winner = votes.argmax(axis=1)
        labels = self.classes_[winner]
        return like(labels, X) if is_torch(X) and labels.dtype.kind in "iufb" else labels

    def _primal(self) -> Any:
        if len(self.classes_) == 2:
            return safe_sparse_dot(self.dual_coef_, self.support_vectors_)
        W = self._pair_weights()
        if sp.issparse(self.support_vectors_):
            return sp.csr_array(W.T) @ self.support_vectors_
        return W.T @ self.support_vectors_

    def alpha_regimes(self, y: Any, sample_weight: Any = None) -> Any:
        """Training rows by their multiplier (SVM-9).

        Parameters
        ----------
        y, sample_weight : array-like of shape (n_samples,)
            As in the fit: they set the bounds C_i.

        Returns
        -------
        Regimes
            Row indices with alpha = 0 (outside the margin), 0 < alpha < C (on it), alpha = C (inside it or on
            the wrong side). With more than two classes a dict from pairs of labels to these.
        """
        codes = np.searchsorted(self.classes_, np.asarray(y))
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        pairs = pairs_of(codes, len(self.classes_), self._bounds(codes, weight))
        W, found = self._pair_weights(), {}
        for pair, w in zip(pairs, W.T):
            alpha = np.zeros(len(codes))
            alpha[self.support_] = np.abs(w)
            names = (self.classes_[pair.first], self.classes_[pair.second])
            found[names] = Regimes.of(pair, alpha)
        return next(iter(found.values())) if len(found) == 1 else found

    # ------------------------------------------------------------------ claims

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        if self.break_ties and self.decision_function_shape == "ovo":
            yield "break_ties=True asks for decision_function_shape='ovr', and predict raises with 'ovo'"
        if not np.array_equal(self.class_weight_, self._class_weights(y)):
            yield (
                f"class_weight_ is {np.asarray(self.class_weight_).tolist()}, and "
                f"class_weight={self.class_weight!r} means {self._class_weights(y).tolist()}"
            )
        codes = np.searchsorted(self.classes_, y)[self.support_]
        if (np.diff(codes) < 0).any():
            yield "support_ does not name the support vectors class by class"
        if hasattr(self, "farkas_"):
            pairs, n = self._layout_of()[0], int(X.shape[0])
            yield from wrong_shapes(self, {"farkas_": (n,) if pairs == 1 else (pairs, n)})

    def _layout_of(self) -> tuple[int, int]:
        k = len(self.classes_)
        return k * (k - 1) // 2, k - 1

    def _shape_of_steps(self) -> tuple[int, ...]:
        return self._layout_of()[:1]

    def _support_counts(self, y: Any) -> NDArray[np.int64]:
        codes = np.searchsorted(self.classes_, y)[self.support_]
        return np.bincount(codes, minlength=len(self.classes_)).astype(np.int64)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        support = self._support_claim(X, full=full)
        codes = np.searchsorted(self.classes_, y)
        codes[codes == len(self.classes_)] = 0
        codes = np.where(self.classes_[codes] == y, codes, len(self.classes_))
        if support.status is Status.FAILS:
            return [support]
        known, undecided = self._kernel_claims(X, full=full)
        bounds = self._bounds(codes, sample_weight, self._class_weights(y))
        pairs = pairs_of(codes, len(self.classes_), bounds)
        return [
            support,
            *known,
            *several(pair_claims(self, X, pairs, undecided, full=full, tol=tol)),
        ]

    def _remedy(self) -> str:
        if np.isinf(self.C) and hasattr(self, "farkas_"):
            return "The hard margin (C=inf) needs classes that a hyperplane separates: give a finite C."
        return super()._remedy()
