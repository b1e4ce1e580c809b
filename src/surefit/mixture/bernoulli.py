r"""Mixtures of Bernoulli vectors: EM on binary data.

    p(x) = sum_k pi_k prod_j p_kj^x_j (1 - p_kj)^(1 - x_j)

The M-step is p_kj = (sum_n q_nk x_nj + alpha) / (N_k + 2 alpha), pi_k = N_k / n. With alpha > 0
(Laplace's smoothing) it maximises the likelihood times a Beta(1 + alpha, 1 + alpha) density for each
p_kj, so what never falls is

    (1/n) [sum_n log p(x_n) + alpha sum_kj log p_kj (1 - p_kj)],

exactly: unlike the ridge of a Gaussian mixture, the smoothing is a prior. Both this and
:class:`GaussianMixture` run through :func:`surefit.solvers.em.expectation_maximisation`. Products with
the rows are all there is to a pass, so sparse rows, tensors and rows on disk go the same way.

References
----------
Bishop, Pattern Recognition and Machine Learning (2006), section 9.3.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from .._consistency import wrong_shapes
from .._namespace import array_namespace, is_torch, like, to_numpy
from .._threads import one_thread
from ..base import Certified
from ..certificate import Claim
from ..design import Design, as_design
from ..distributed import shared_random_state
from ..solvers.em import expectation_maximisation
from ._base import Mixture
from ._bernoulli_claims import bernoulli_claims
from ._checks import run_inconsistencies
from ._climb import Restarts

__all__ = ["BernoulliMixture"]


class _Bernoullis(NamedTuple):
    weights: Any
    probabilities: Any  # (K, D)


class BernoulliMixture(Mixture):
    """Mixture of independent Bernoulli features.

    Parameters
    ----------
    n_components : int, default=1
    alpha : float, default=1.0
        Laplace's smoothing: so many imagined ones and zeros for each feature and component. With 0 a
        probability may become 0 or 1, and a new row impossible.
    binarize : float or None, default=0.0
        Values above it are 1, the others 0, as in :class:`sklearn.naive_bayes.BernoulliNB`; None for rows
        of 0 and 1.
    tol : float, default=1e-6
        EM stops when the objective, a mean over rows, changes by less.
    max_iter : int, default=500
    n_init : int, default=1
    random_state : int, RandomState or None, default=None
        Starts are random responsibilities.
    verbose, verbose_interval : int, default=0, 10
    certify : bool or "full", default=True

    Attributes
    ----------
    weights_ : array of shape (n_components,)
    probabilities_ : array of shape (n_components, n_features)
    converged_, n_iter_ : bool, int
    lower_bound_, lower_bounds_, final_lower_bound_ : float, list of float, float
        The objective (with its prior) at the last E-step, at each, and at the fitted parameters.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.mixture import BernoulliMixture
    >>> X = np.array([[1, 1, 0, 0]] * 5 + [[0, 0, 1, 1]] * 5)
    >>> model = BernoulliMixture(2, random_state=0).fit(X)
    >>> model.probabilities_.round(2).max(axis=0).tolist(), model.certificate_.ok
    ([0.86, 0.86, 0.86, 0.86], True)
    """

    probabilities_: Any
    _sparse = "csr"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0.0, None, closed="left")],
        "binarize": [Real, None],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        alpha: float = 1.0,
        binarize: float | None = 0.0,
        tol: float = 1e-6,
        max_iter: int = 500,
        n_init: int = 1,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
        certify: bool | str = True,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.binarize = binarize
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.certify = certify

    def _accepts(self) -> frozenset[str]:
        return frozenset({"dense", "sparse", "torch", "blocks", "ranks"})

    # ------------------------------------------------------------------ fitting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> BernoulliMixture:
        """Estimate the parameters by EM.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)
        y : ignored
        """
        X, _, _ = self._validate_training_data(X, None, None, reset=True)
        design = as_design(X)
        rng = shared_random_state(design.group, self.random_state)
        restarts = Restarts(
            self,
            design,
            start=lambda rng: self._first(X, design, rng),
            steps=lambda theta, before: expectation_maximisation(
                theta, lambda t: self._expect(design, t), lambda sums: self._maximise(*sums), before
            ),
            pack=lambda t: t._asdict(),
            unpack=lambda parts: _Bernoullis(*(self._bring(parts[k], X) for k in _Bernoullis._fields)),
        )  # fmt: skip
        with one_thread:  # rows are split instead; see _threads.py
            best = restarts.run(self.n_init, rng)
        theta = best.theta
        kind = np.float32 if design.dtype == np.float32 else np.float64
        for name, values in theta._asdict().items():
            stored = (
                values.to(getattr(X, "rows", X).dtype) if is_torch(values) else values.astype(kind)
            )
            if kind == np.float32:  # only what is 0 or 1 says never or always
                inside = (values > 0.0) & (values < 1.0)
                held = array_namespace(stored).clip(stored, 2.0**-126, 1.0 - 2.0**-24)
                stored = array_namespace(stored).where(inside, held, stored)
            setattr(self, f"{name}_", stored)
        self.converged_, self.n_iter_ = best.converged, len(best.bounds)
        self.lower_bound_, self.lower_bounds_ = best.lower_bound, best.bounds
        self.final_lower_bound_ = self._expect(design, theta)[1]
        words = "the objective changed by less than tol" if best.converged else best.stop.value
        return self._seal(X, None, None, words)

    def _first(self, X: Any, design: Design, rng: Any) -> _Bernoullis:
        """The M-step of random responsibilities."""
        K = self.n_components
        skipped, rest = design.first_row, design.shape[0] - design.first_row - design.rows_here

        def sums() -> tuple[Any, Any]:
            mass, ones = np.zeros(K), np.zeros((K, design.shape[1]))
            for _, block in design.held.blocks():
                q = rng.uniform(size=(block.shape[0], K))
                q /= q.sum(axis=1)[:, None]
                mass = mass + q.sum(axis=0)
                near = like(q, block) if is_torch(block) else q
                ones = ones + to_numpy(self._ones(near, self._binary(block)))
            return mass, ones

        rng.uniform(size=(skipped, K))
        mass, ones = design.group.sum(
            *design.group.agree(sums)
        )  # a row that is not binary ends all
        rng.uniform(size=(rest, K))
        return self._maximise(self._bring(mass, X), self._bring(ones, X))

    def _expect(self, design: Design, theta: _Bernoullis) -> tuple[Any, float]:
        """Sums of the responsibilities, and the objective."""

        def part(blocks: Iterator[tuple[slice, Any]]) -> list[Any]:
            total: list[Any] = []
            for _, block in blocks:
                binary = self._binary(block)
                e = self._joint_of(binary, theta)
                xp = array_namespace(e)
                top = xp.max(e, axis=1)
                q = xp.exp(e - top[:, None])
                whole = xp.sum(q, axis=1)
                q = q / whole[:, None]
                sums = [xp.sum(top + xp.log(whole)), xp.sum(q, axis=0), self._ones(q, binary)]
                total = [a + b for a, b in zip(total, sums)] if total else sums
            return total

        totals = [sum(columns[1:], columns[0]) for columns in zip(*design.held.fold(part))]
        value, mass, ones = design.group.sum(*totals)
        return (mass, ones), (float(value) + self._log_prior(theta.probabilities)) / design.shape[0]

    def _maximise(self, mass: Any, ones: Any) -> _Bernoullis:
        xp = array_namespace(mass)
        count = mass + 10 * np.finfo(np.float64).eps
        probabilities = (ones + self.alpha) / (count + 2.0 * self.alpha)[:, None]
        return _Bernoullis(count / xp.sum(count), xp.clip(probabilities, 0.0, 1.0))

    def _log_prior(self, p: Any) -> float:
        if self.alpha == 0.0:
            return 0.0
        xp = array_namespace(p)
        return self.alpha * float(xp.sum(xp.log(p) + xp.log1p(-p)))

    # ------------------------------------------------------------------ the model

    def _binary(self, block: Any) -> Any:
        """Rows of 0 and 1 in float64."""
        if self.binarize is not None:
            if sp.issparse(block):
                if self.binarize < 0.0:
                    raise ValueError(
                        f"binarize={self.binarize!r} would make every zero of a sparse X a one: use 0."
                    )
                out = block.copy()
                out.data = (out.data > self.binarize).astype(np.float64)
                return out
            high = block > self.binarize
            return high.double() if is_torch(block) else high.astype(np.float64)
        values = block.data if sp.issparse(block) else block
        if not bool(((values == 0.0) | (values == 1.0)).all()):
            raise ValueError(
                "X must hold 0 and 1 where binarize=None, and it holds other values. Set binarize to the "
                "threshold above which a value counts as 1."
            )
        return block

    @staticmethod
    def _ones(q: Any, binary: Any) -> Any:
        """sum_n q_nk x_nj."""
        return np.asarray((binary.T @ q).T) if sp.issparse(binary) else q.T @ binary

    @staticmethod
    def _joint_of(binary: Any, theta: _Bernoullis) -> Any:
        """log pi_k + sum_j x log p + (1 - x) log(1 - p), where 0 log 0 = 0."""
        xp = array_namespace(theta.weights)
        p = theta.probabilities
        low = -1e300 / max(1, p.shape[1])  # stands for log 0, and can be added up
        never, always = p <= 0.0, p >= 1.0
        with np.errstate(divide="ignore"):
            yes = xp.where(never, p * 0.0, xp.log(p))
            no = xp.where(always, p * 0.0, xp.log1p(-p))
            weights = xp.clip(xp.log(theta.weights), low, None)
        e = binary @ (yes - no).T
        e = (np.asarray(e) if sp.issparse(binary) else e) + (weights + xp.sum(no, axis=1))
        if not bool((never | always).any()):
            return e
        # counted apart: what stands for log 0 has no digits left for the rest
        ones = xp.astype(always, p.dtype)
        broken = binary @ (xp.astype(never, p.dtype) - ones).T
        return e + low * (
            (np.asarray(broken) if sp.issparse(binary) else broken) + xp.sum(ones, axis=1)
        )

    def _log_joint(self, X: Any) -> Any:
        theta = _Bernoullis(self._bring(self.weights_, X), self._bring(self.probabilities_, X))
        found = [
            self._joint_of(self._binary(block), theta) for _, block in as_design(X).held.blocks()
        ]
        return array_namespace(found[0]).concat(found)

    def _n_parameters(self) -> int:
        K, p = self.probabilities_.shape
        return int(K * p + K - 1)

    def _drawn(self, rng: Any, counts: Any) -> Any:
        p = to_numpy(self.probabilities_).astype(np.float64)
        return (rng.uniform(size=(counts.sum(), p.shape[1])) < np.repeat(p, counts, axis=0)).astype(
            np.float64
        )

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        K = self.n_components
        yield from wrong_shapes(self, {"weights_": (K,), "probabilities_": (K, int(X.shape[1]))})
        yield from run_inconsistencies(self)

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return bernoulli_claims(self, as_design(X), self._proba, full=full, tol=tol)

    def _remedy(self) -> str:
        return "Increase max_iter or tol; with alpha=0 a probability may reach 0 or 1: set alpha above 0."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
