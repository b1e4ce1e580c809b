r"""Matrix factorisation: ratings as products of users' and items' factors.

    min  1/2 sum_{(i,j) observed} (x_ij - mu - b_i - c_j - <u_i, v_j>)^2
         + 1/2 sum_i s_i lambda_u ||u_i||^2 + 1/2 sum_j t_j lambda_v ||v_j||^2   (and the biases alike)

The notes write X ~ WZ' with items in rows. Here users are the samples, in rows: our X is their X', u_i
their z_n, v_j their w_d, ``reg`` their lambda_z and ``reg_items`` their lambda_w. s_i = t_j = 1, or the
numbers of ratings with ``weighted_reg``. The mean mu is that of the observed ratings, and 0 without biases.

References
---------- Y. Koren, R. Bell, C. Volinsky (2009), Matrix factorization techniques for recommender systems.
Y. Zhou, D. Wilkinson, R. Schreiber, R. Pan (2008), Large-scale parallel collaborative filtering
(weighted_reg). Y. Hu, Y. Koren, C. Volinsky (2008), Collaborative filtering for implicit feedback datasets.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from .._consistency import wrong_counts, wrong_shapes
from .._threads import one_thread, rows_only
from ..base import Certified
from ..certificate import Claim
from ..design import Design
from ..inputs import is_native, validate_native_X
from ..iterate import Stop
from ..solvers._typing import as_generator
from ..solvers.factor_problem import Penalties
from ._factor_claims import claims
from ._fitting import Fitting, held
from ._queries import Queries
from ._ratings import has_repeats, observed

__all__ = ["MatrixFactorization"]

_CG_FROM = (
    24  # components from which a few conjugate gradient steps beat a solve (implicit; measured)
)


class MatrixFactorization(Queries, Fitting, Certified):
    """Factors of users and items whose products are the ratings.

    Parameters
    ----------
    n_components : int, default=10
    method : {"als", "sgd"}, default="als"
        Alternating least squares, or stochastic gradient descent over the observed entries.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        How ALS solves for a row: exactly, or by ``cg_steps`` conjugate gradient steps from where it was.
        "auto" takes the steps for implicit feedback with 24 components or more.
    reg : float, default=0.1
        The penalty lambda_u of the users' factors, and of the items' unless ``reg_items`` says otherwise.
    reg_items, reg_biases : float, default=None
        Those of the items' factors and of both biases; None takes that of the side's factors.
    weighted_reg : bool, default=False
        Multiply the penalty of a row by its number of ratings.
    biases : bool, default=False
        Fit the mean, a bias per user and one per item too. For ratings this is what to do.
    implicit : bool, default=False
        The entries are counts or strengths, not ratings: every pair is in the sum, with target 1 and
        confidence 1 + alpha x where x > 0 is stored, target 0 and confidence 1 elsewhere.
    alpha : float or None, default=1.0
        None takes the stored values themselves as the confidences.
    max_iter : int, default=100
        Iterations of ALS, or epochs of SGD.
    tol : float, default=1e-3
        ALS ends when the gradient over the items' factors is at most ``tol`` of its size at 0 (the users'
        is 0, or at most that with conjugate gradients); SGD when five epochs lower the loss by less than a
        share ``tol``. With ``tol=0`` SGD makes ``max_iter`` epochs and computes the loss at the end only.
    cg_steps : int, default=3
    learning_rate, decay : float, default=0.01, 0.05
        SGD's step in epoch e is learning_rate / (1 + decay e), in units in which the targets (ratings,
        less the mean with biases) have a root mean square of 1.
    device : str or torch.device, default=None
        Where ALS over sparse ratings runs in batches with torch, such as "cuda". A torch tensor X decides
        by itself.
    random_state : int, RandomState or None
        Of the first factors and of SGD's order.
    verbose : int, default=0
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    user_factors_, item_factors_ : arrays of shape (n_users, n_components), (n_items, n_components)
    user_biases_, item_biases_ : arrays, or None without biases
    global_mean_ : float
    components_ : array of shape (n_components, n_items)
        ``item_factors_`` transposed; with biases a row of ones more. X ~ transform(X) @ components_ +
        offset, the offset being ``global_mean_ + item_biases_``.
    loss_ : float
    loss_trace_ : array
        The loss after each iteration.
    n_iter_ : int
    solver_ : str
        "cholesky", "cg" or "sgd".
    seen_ : CSR matrix or None
        The pairs of the fit; None for a full matrix.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.decomposition import MatrixFactorization
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 0.5, 2.0])
    >>> X[3, 2] = np.nan                                              # not known
    >>> model = MatrixFactorization(1, reg=1e-6, random_state=0, tol=1e-8).fit(X)
    >>> round(float(model.predict(3, 2)), 3)
    8.0
    """

    paradigm = "unsupervised"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"als", "sgd"})],
        "solver": [StrOptions({"auto", "cholesky", "cg"})],
        "reg": [Interval(Real, 0, None, closed="left")],
        "reg_items": [Interval(Real, 0, None, closed="left"), None],
        "reg_biases": [Interval(Real, 0, None, closed="left"), None],
        "weighted_reg": ["boolean"],
        "biases": ["boolean"],
        "implicit": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "cg_steps": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "decay": [Interval(Real, 0, None, closed="left")],
        "device": [str, object, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        method: str = "als",
        solver: str = "auto",
        reg: float = 0.1,
        reg_items: float | None = None,
        reg_biases: float | None = None,
        weighted_reg: bool = False,
        biases: bool = False,
        implicit: bool = False,
        alpha: float | None = 1.0,
        max_iter: int = 100,
        tol: float = 1e-3,
        cg_steps: int = 3,
        learning_rate: float = 0.01,
        decay: float = 0.05,
        device: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        certify: bool | str = True,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.solver = solver
        self.reg = reg
        self.reg_items = reg_items
        self.reg_biases = reg_biases
        self.weighted_reg = weighted_reg
        self.biases = biases
        self.implicit = implicit
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.cg_steps = cg_steps
        self.learning_rate = learning_rate
        self.decay = decay
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> MatrixFactorization:
        """Factorise; ``y`` is not used.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks, RankRows} of shape (n_users, n_items)
            Of a sparse matrix the stored entries are observed, stored zeros included (:func:`ratings` makes
            one from triplets). Of a dense array all but NaN. Tensors and row blocks are full matrices.
        """
        self._check_parameters()
        X, _, _ = self._validate_training_data(X, None, None, reset=True)
        rows, group = held(X)
        rng = np.random.default_rng(
            group.share(int(as_generator(self.random_state).integers(2**62)))
        )
        whole = not (sp.issparse(rows) or self.method == "sgd")
        with rows_only(rows) if whole else one_thread:  # the rows are split, not the small products
            fit = (self._fit_full if whole else self._fit_observed)(X, rows, group, rng)
            if self.method == "als" and fit.stop is Stop.MAX_ITER and self.certify is False:
                warnings.warn(
                    f"the maximum of {self.max_iter} iterations was reached before tol={self.tol:g}: raise "
                    "max_iter or tol.",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            return self._seal(X, None, None, fit.stop.value)

    # ------------------------------------------------------------------ fitting

    def _check_parameters(self) -> None:
        if self.implicit and self.biases:
            raise ValueError(
                "biases=True is for ratings: with implicit=True every pair has a target of 0 or 1. Drop one."
            )
        if self.implicit and self.method == "sgd":
            raise ValueError("method='sgd' visits observed entries only: use method='als'.")
        least = min(self.reg, self.reg if self.reg_items is None else self.reg_items)
        if self.solver == "cg" and self.method == "als":
            if least == 0 or (self.biases and self.reg_biases == 0):
                raise ValueError("solver='cg' needs penalties above 0: use solver='cholesky'.")
            if self.implicit and self.weighted_reg:
                raise ValueError(
                    "solver='cg' of implicit feedback needs one penalty for all rows: use "
                    "solver='cholesky' or weighted_reg=False."
                )

    def _penalty_of(self, side: str) -> tuple[float, float]:
        """The penalty of one side's factors and that of its biases."""
        own = self.reg if side == "users" or self.reg_items is None else self.reg_items
        return float(own), float(own if self.reg_biases is None else self.reg_biases)

    def _penalties(self) -> Penalties:
        columns = []
        for name in ("users", "items"):
            own, bias = self._penalty_of(name)
            columns.append(np.append(np.full(self.n_components, own), [bias] * bool(self.biases)))
        return Penalties(columns[0], columns[1], bool(self.weighted_reg), bool(self.biases))

    # ------------------------------------------------------------------ data

    def _accepts(self) -> frozenset[str]:
        return frozenset({"dense", "sparse", "torch", "blocks", "ranks"})

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        """Validated ratings: CSR where something is missing or feedback is implicit, else a full matrix."""
        if sample_weight is not None:
            raise ValueError(
                "MatrixFactorization takes no sample_weight; confidences are entries of X with implicit=True "
                "and alpha=None."
            )
        if reset:
            self.__dict__.pop("certificate_", None)
        if is_native(X) or isinstance(X, Design):
            X = validate_native_X(self, X, reset=reset)
            if self.implicit and not sp.issparse(held(X)[0]):
                raise TypeError(
                    "implicit=True takes sparse matrices and arrays: pass one of these."
                )
            return X, None, None
        if sp.issparse(X) and has_repeats(X):
            raise ValueError(
                "X stores more than one rating of a pair: keep one of each. "
                "surefit.decomposition.ratings names the pair."
            )
        finite: Any = True if sp.issparse(X) or self.implicit else "allow-nan"
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32], order="C",
            ensure_all_finite=finite,
        )  # fmt: skip
        if self.implicit:
            X = sp.csr_array(X)
            if X.nnz and X.data.min() < 0:
                raise ValueError(
                    f"X holds {X.data.min():g}: with implicit=True entries are strengths or "
                    "confidences. Negative values in data passed to MatrixFactorization have no meaning."
                )
        elif not sp.issparse(X):
            X = observed(X)
        if sp.issparse(X) and X.nnz == 0 and reset and not self.implicit:
            raise ValueError(f"X of shape {X.shape} holds no rating: store or give at least one.")
        return X, None, None

    def _confidences(self, rows: Any, mean: float = 0.0) -> Any:
        """The ratings less the mean; of implicit feedback the confidences of what is above 0."""
        csr = sp.csr_array(rows)
        if not self.implicit:
            if mean == 0.0:
                return csr
            data = (csr.data - mean).astype(np.float64)
            return sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)
        data = csr.data.astype(np.float64)
        if self.alpha is None:
            return sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape)
        out = sp.csr_array((self.alpha * data, csr.indices, csr.indptr), shape=csr.shape, copy=True)
        if not (data > 0).all():
            out = sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape, copy=True)
            out.eliminate_zeros()
            out.data *= self.alpha
        out.data += 1.0
        return out

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        rows, k = held(X)[0], self.n_components
        users, items = int(rows.shape[0]), int(X.shape[1])
        shapes: dict[str, tuple[int, ...]] = {
            "user_factors_": (users, k),
            "item_factors_": (items, k),
        }
        if self.biases:
            shapes |= {"user_biases_": (users,), "item_biases_": (items,)}
        elif self.user_biases_ is not None or self.item_biases_ is not None:
            yield "user_biases_ and item_biases_ must be None with biases=False"
        silent = self.method == "sgd" and self.tol == 0.0  # only the last loss is computed
        yield from wrong_counts(self, n_iter_=1)
        shapes["loss_trace_"] = (1 if silent else int(self.n_iter_),)
        yield from wrong_shapes(self, shapes)
        if self.n_iter_ > self.max_iter:
            yield f"n_iter_ is {self.n_iter_}, and max_iter={self.max_iter}"
        if self.solver_ not in (("sgd",) if self.method == "sgd" else ("cholesky", "cg")):
            yield f"solver_ is {self.solver_!r}, and method={self.method!r}"
        yield from self._wrong_pairs(rows)

    def _wrong_pairs(self, rows: Any) -> Iterator[str]:
        """``seen_`` names the pairs of the fit: recommendations leave them out. None names all of them."""
        if self.seen_ is not None and not (
            sp.issparse(self.seen_) and (self.seen_.data == 1).all()
        ):
            yield "seen_ must be None or a sparse matrix of ones"
            return
        whole = not (sp.issparse(rows) or self.method == "sgd")
        if self.seen_ is None or whole:
            every = int(rows.shape[0]) * int(rows.shape[1])
            named = every if self.seen_ is None else self.seen_.nnz
            if named != (every if whole else self._observed_pairs(rows).nnz):
                yield f"seen_ names {named} pairs, and these data have another number"
            return
        pairs, seen = self._observed_pairs(rows), sp.csr_array(self.seen_)
        same = seen.shape == pairs.shape and np.array_equal(seen.indptr, pairs.indptr)
        if not same or not np.array_equal(seen.indices, pairs.indices):
            yield "seen_ does not name the pairs of these data"

    def _observed_pairs(self, rows: Any) -> Any:
        """The matrix whose stored entries are the pairs that the fit uses."""
        return sp.csr_array(
            self._confidences(rows if sp.issparse(rows) else observed(rows, always=True))
        )

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return claims(self, X, full=full, tol=tol)

    def _remedy(self) -> str:
        return "Objective did not converge. Raise max_iter or tol; a larger reg converges faster."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = not self.implicit
        tags.input_tags.positive_only = bool(self.implicit)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
