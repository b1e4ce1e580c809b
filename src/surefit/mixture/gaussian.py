r"""Gaussian mixtures by EM (GMM-1, GMM-2, GMM-3).

    p(x) = sum_k pi_k N(x | mu_k, Sigma_k),     maximise (1/n) sum_n log p(x_n)

is not convex, has K! equal solutions (the components may be renamed), and without a floor under the
variances no maximum at all: a component that sits on one row may shrink for ever. ``reg_covar`` is that
floor. The certificate therefore speaks of a stationary point, of what is exact at it, and of the
components that the floor holds up; see ``_mixture_claims.py``. The algorithm is in
``surefit/solvers/gaussian_mixture.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from .._consistency import wrong_shapes
from .._namespace import is_torch, to_numpy
from .._threads import one_thread
from ..base import Certified
from ..certificate import Claim
from ..design import Design, as_design
from ..distributed import shared_random_state
from ..solvers.em import expectation_maximisation
from ..solvers.gaussian_mixture import (
    Gaussians,
    from_covariances,
    from_precisions,
    log_joint,
    mean_value,
    sound,
    start_sums,
    steps_of,
    update,
)
from ._base import Mixture
from ._checks import (
    checked_means,
    checked_precisions,
    checked_weights,
    run_inconsistencies,
)
from ._climb import Climb, Restarts
from ._initial import data_moments, start_from
from ._mixture_claims import gaussian_claims

__all__ = ["GaussianMixture"]

_KINDS = ("full", "tied", "diag", "spherical")
_EASY = ("random", "random_from_data")


class GaussianMixture(Mixture):
    """Mixture of Gaussians, a drop-in for :class:`sklearn.mixture.GaussianMixture`.

    Parameters
    ----------
    n_components : int, default=1
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A matrix for each component, one for all, a diagonal for each, a number for each.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood changes by less.
    reg_covar : float, default=1e-6
        Added to the variances: the floor without which the likelihood has no maximum. The claim "variance
        floor" names the components that it holds up.
    max_iter : int, default=100
    n_init : int, default=1
        How many starts; the best end is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        See also :func:`initial_parameters`.
    weights_init, means_init, precisions_init : array-like, default=None
        The start, in place of what ``init_params`` gives.
    random_state : int, RandomState or None, default=None
    warm_start : bool, default=False
        Go on from the last fit.
    verbose, verbose_interval : int, default=0, 10
    hard : bool, default=False
        Hard EM: each row counts for its most probable component alone, and the objective is the complete
        log-likelihood (1/n) sum_n max_k log pi_k N_k.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : arrays
        As in scikit-learn; tensors on the device of X where that is one.
    converged_, n_iter_ : bool, int
    lower_bound_ : float
        The objective at the last E-step: that of the parameters *before* the last M-step.
    lower_bounds_ : list of float
        The same for each step.
    final_lower_bound_ : float
        The objective at the fitted parameters.
    ridge_slacks_ : array of shape (n_iter_,)
        How much each step may have lost to ``reg_covar`` (an untrusted witness for the claim on
        monotonicity).
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.mixture import GaussianMixture
    >>> X = np.array([[1, 2], [2, 4], [1, 0], [10, 2], [11, 4], [10, 0]])
    >>> model = GaussianMixture(2, random_state=0).fit(X)
    >>> sorted(model.means_.round(3).tolist())
    [[1.333, 2.0], [10.333, 2.0]]
    >>> model.certificate_.ok
    True
    """

    covariances_: Any
    means_: Any
    precisions_: Any
    precisions_cholesky_: Any
    _least_rows = 2

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance_type": [StrOptions(set(_KINDS))],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "reg_covar": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "random", "random_from_data", "k-means++"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", None],
        "precisions_init": ["array-like", None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
        "hard": ["boolean"],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        hard: bool = False,
        certify: bool | str = True,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.hard = hard
        self.certify = certify

    # ------------------------------------------------------------------ fitting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> GaussianMixture:
        """Estimate the parameters by EM.

        Parameters
        ----------
        X : array-like, tensor or RowBlocks of shape (n_samples, n_features)
            Row blocks are read once for each iteration.
        y : ignored
        """
        with one_thread:  # rows are split instead; see _threads.py
            X = self._fitted_on(X)
            return self._seal(X, None, None, self._stopped)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """:meth:`fit`, then the most probable component of each row."""
        with one_thread:
            X = self._fitted_on(X)
            self._seal(X, None, None, self._stopped)
            return self._log_joint(X).argmax(axis=1)

    def _fitted_on(self, X: Any) -> Any:
        X, _, _ = self._validate_training_data(X, None, None, reset=True)
        if X.shape[0] < self._least_rows:
            raise ValueError(
                f"Found array with {X.shape[0]} sample(s) while a minimum of 2 is required."
            )
        self._check_dispatch()
        design = as_design(X)
        given = self._given(design.shape[1])
        rng = shared_random_state(design.group, self.random_state)
        expect, maximise = steps_of(design, self.reg_covar, self.hard)
        restarts = Restarts(
            self,
            design,
            start=lambda rng: self._first(X, design, given, rng),
            steps=lambda theta, before: expectation_maximisation(theta, expect, maximise, before),
            pack=lambda t: {"weights": t.weights, "means": t.means, "covariances": t.covariances},
            unpack=lambda parts: from_covariances(
                self.covariance_type, *(self._bring(parts[k], X) for k in ("weights", "means", "covariances"))
            ),
        )  # fmt: skip
        if self.warm_start and hasattr(self, "converged_"):
            restarts.start = lambda rng: self._theta(X)
            best = restarts.run(1, rng, self.lower_bound_)
        else:
            best = restarts.run(self.n_init, rng)
        self._keep(best, X, design)
        return X

    def _check_dispatch(self) -> None:
        """scikit-learn's refusal where its array API is switched on."""
        if get_config()["array_api_dispatch"] and self.init_params not in _EASY:
            raise NotImplementedError(
                f"Allowed `init_params` are {list(_EASY)} if 'array_api_dispatch' is enabled. You passed "
                f"init_params={self.init_params!r}, which are not implemented to work with "
                "'array_api_dispatch' enabled. Please disable 'array_api_dispatch' to use "
                f"init_params={self.init_params!r}."
            )

    def _given(self, p: int) -> dict[str, Any]:
        """The initial parameters that were passed, checked."""
        K, kind, given = self.n_components, self.covariance_type, {}
        if self.weights_init is not None:
            given["weights"] = checked_weights(self.weights_init, K)
        if self.means_init is not None:
            given["means"] = checked_means(self.means_init, K, p)
        if self.precisions_init is not None:
            given["precisions"] = checked_precisions(self.precisions_init, kind, K, p)
        return given

    def _first(self, X: Any, design: Design, given: dict[str, Any], rng: Any) -> Gaussians:
        """Where a climb starts: the M-step of initial responsibilities, but for what was given."""
        kind, K = self.covariance_type, self.n_components
        if len(given) < 3:
            start = start_from(X, design, self.init_params, K, rng)
            mean, covariance = (self._bring(part, X) for part in data_moments(design))
            sums = start_sums(design, kind, K, (mean, covariance), start)
            theta, _ = update(kind, sums, self.reg_covar)
            share = (sums.mass + 10 * np.finfo(np.float64).eps) / design.shape[0]  # as scikit-learn
            weights, means = given.get("weights"), given.get("means")
            theta = theta._replace(
                weights=share if weights is None else self._bring(weights, X),
                means=theta.means if means is None else self._bring(means, X),
            )
            if "precisions" not in given:
                return sound(theta)
            given = {**given, "weights": to_numpy(theta.weights), "means": to_numpy(theta.means)}
        theta = from_precisions(kind, given["weights"], given["means"], given["precisions"])
        return theta._replace(**{
            name: self._bring(getattr(theta, name), X)
            for name in ("weights", "means", "covariances", "factors")
        })  # fmt: skip

    def _keep(self, best: Climb, X: Any, design: Design) -> None:
        """The public attributes, in the precision of X and where it lives."""
        theta = sound(best.theta)
        kind = self.covariance_type

        def stored(values: Any) -> Any:
            if is_torch(values):
                return values.to(getattr(X, "rows", X).dtype)
            return np.asarray(
                values, dtype=design.dtype if design.dtype == np.float32 else np.float64
            )

        self.weights_, self.means_ = stored(theta.weights), stored(theta.means)
        self.covariances_, self.precisions_cholesky_ = (
            stored(theta.covariances),
            stored(theta.factors),
        )
        wide = theta.factors if kind in ("full", "tied") else None
        precisions = theta.factors**2 if wide is None else wide @ wide.swapaxes(-1, -2)
        self.precisions_ = stored(precisions)
        self.converged_, self.n_iter_ = best.converged, len(best.bounds)
        self.lower_bound_, self.lower_bounds_ = best.lower_bound, best.bounds
        self.final_lower_bound_ = mean_value(design, theta, self.hard)
        self.ridge_slacks_ = np.array([float(to_numpy(slack)) for slack in best.slacks])
        words = "the objective changed by less than tol" if best.converged else best.stop.value
        self._stopped = words if self.max_iter else "no step was asked for (max_iter=0)"

    # ------------------------------------------------------------------ the model

    def _theta(self, X: Any) -> Gaussians:
        """The fitted parameters next to X, in float64."""
        names = ("weights_", "means_", "covariances_", "precisions_cholesky_")
        return Gaussians(
            self.covariance_type, *(self._bring(getattr(self, name), X) for name in names)
        )

    def _log_joint(self, X: Any) -> Any:
        return log_joint(as_design(X), self._theta(X))

    def _n_parameters(self) -> int:
        K, p = self.means_.shape
        per = {
            "full": K * p * (p + 1) // 2,
            "diag": K * p,
            "tied": p * (p + 1) // 2,
            "spherical": K,
        }
        return int(per[self.covariance_type] + p * K + K - 1)

    def _drawn(self, rng: Any, counts: Any) -> Any:
        means, covariances = (
            to_numpy(v).astype(np.float64) for v in (self.means_, self.covariances_)
        )
        kind, rows = self.covariance_type, []
        for k, count in enumerate(counts):
            if kind in ("full", "tied"):
                matrix = covariances[k] if kind == "full" else covariances
                rows.append(rng.multivariate_normal(means[k], matrix, int(count)))
            else:
                noise = rng.standard_normal(size=(count, means.shape[1]))
                rows.append(means[k] + noise * np.sqrt(covariances[k]))
        return np.vstack(rows)

    # ------------------------------------------------------------------ certificate

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        K, p = self.n_components, int(X.shape[1])
        each = {"full": (K, p, p), "tied": (p, p), "diag": (K, p), "spherical": (K,)}
        shape = each[self.covariance_type]
        yield from wrong_shapes(
            self,
            {
                "weights_": (K,),
                "means_": (K, p),
                "covariances_": shape,
                "precisions_": shape,
                "precisions_cholesky_": shape,
            },
        )
        yield from run_inconsistencies(self)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return gaussian_claims(self, as_design(X), self._proba, full=full, tol=tol)

    def _remedy(self) -> str:
        return (
            "Increase max_iter or tol where EM has not converged; where a component is at the variance "
            "floor, use fewer components, a larger reg_covar, or features that vary."
        )
