"""Mini-batch k-means: Lloyd's steps on a few rows at a time.

What the certificate says: labels are exact and the sum of squares is ``inertia_``. The centres are not
stationary; the certificate says how far one full step would move them, and claims nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from .._consistency import wrong_counts, wrong_shapes
from .._namespace import like, to_numpy
from ..certificate import Claim, Kind
from ..design import Dense, Design, Sparse, Torch, as_design
from ..solvers.lloyd import describe, inertia
from ..solvers.mini_batch import mini_batch_step
from ._kmeans_claims import labels_claim, wcss_claim
from ._kmeans_look import look
from .base import Means, check_scale, initial_centres

__all__ = ["MiniBatchKMeans"]

Array = NDArray[np.float64]


class MiniBatchKMeans(Means):
    """Mini-batch k-means, a drop-in for :class:`sklearn.cluster.MiniBatchKMeans`.

    Parameters
    ----------
    n_clusters, init, max_iter, verbose, random_state, n_init : as in :class:`KMeans`
        With ``n_init="auto"``, 3 starts are compared for ``init="random"`` or a callable.
    batch_size : int, default=1024
    compute_labels : bool, default=True
        Whether to label all rows at the end.
    tol : float, default=0.0
    max_no_improvement : int or None, default=10
    init_size : int or None, default=None
        Rows that the first centres are chosen from; 3 * batch_size by default.
    reassignment_ratio : float, default=0.01
    certify : bool or "full", default=True

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_iter_ : as in :class:`KMeans`
    n_steps_ : int
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.cluster import MiniBatchKMeans
    >>> X = np.array([[1.0, 2.0], [1.0, 4.0], [10.0, 2.0], [10.0, 4.0]])
    >>> model = MiniBatchKMeans(2, random_state=0, batch_size=4).fit(X)
    >>> model.certificate_["labels"].observed
    0.0
    """

    _runs_by_default = 3
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Means._parameter_constraints,
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "compute_labels": ["boolean"],
        "max_no_improvement": [Interval(Integral, 0, None, closed="left"), None],
        "init_size": [Interval(Integral, 1, None, closed="left"), None],
        "reassignment_ratio": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        max_iter: int = 100,
        batch_size: int = 1024,
        verbose: int = 0,
        compute_labels: bool = True,
        random_state: Any = None,
        tol: float = 0.0,
        max_no_improvement: Any = 10,
        init_size: Any = None,
        n_init: Any = "auto",
        reassignment_ratio: float = 0.01,
        certify: bool | str = True,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.verbose = verbose
        self.compute_labels = compute_labels
        self.random_state = random_state
        self.tol = tol
        self.max_no_improvement = max_no_improvement
        self.init_size = init_size
        self.n_init = n_init
        self.reassignment_ratio = reassignment_ratio
        self.certify = certify

    def _accepts(self) -> frozenset[str]:
        return frozenset({"dense", "sparse", "torch"})

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MiniBatchKMeans:
        """Find the centres by steps on random batches; ``y`` is not used."""
        X, _, weights = self._validate_training_data(X, y, sample_weight, reset=True)
        design = as_design(X)
        n = design.shape[0]
        self._check_count(n)
        runs, size = self._runs(), min(self.batch_size, n)
        first_rows = self._first_rows(n, size)
        given = self._given_centres(X)
        random_state = check_random_state(self.random_state)
        setting = describe(design, weights, given)
        check_scale(setting.spread, 1.0 / setting.frame.scale)
        tol = self.tol * setting.variance
        w = np.ones(n) if weights is None else to_numpy(weights)
        seen = random_state.randint(0, n, first_rows)
        valid, valid_weights = _rows(X, seen), w[seen]
        best = math.inf
        centres = np.empty(0)
        for _ in range(runs):
            start = self._start(X, design, weights, given, random_state, first_rows)
            cost = self._cost(valid, valid_weights, start)
            if cost < best or not centres.size:
                centres, best = start, cost
        counts = np.zeros(self.n_clusters)
        watch = _Watch(self, size, n, tol)
        steps = (self.max_iter * n) // size
        shares = w / w.sum()
        since, i, stopped = 0, 0, "the maximum number of iterations was reached"
        for i in range(steps):
            index = random_state.choice(n, size, p=shares, replace=True)
            since += size
            reassign = bool((counts == 0).any()) or since >= 10 * self.n_clusters
            since = 0 if reassign else since
            new, cost = mini_batch_step(
                as_design(_rows(X, index)), None, centres, counts, random_state, reassign=reassign,
                ratio=self.reassignment_ratio, verbose=self.verbose,
            )  # fmt: skip
            moved = float(np.sum((new - centres) ** 2)) if tol > 0 else 0.0
            centres = new
            if watch.says_stop(i, steps, moved, cost):
                stopped = watch.why
                break
        self._publish(centres, X, design)
        self._counts = counts
        self.n_steps_ = i + 1
        self.n_iter_ = math.ceil((i + 1) * size / n)
        if not self.compute_labels:
            self.__dict__.pop("labels_", None)
            self.inertia_ = (watch.smooth or 0.0) * float(w.sum())
            self.__dict__.pop("certificate_", None)
            return self
        self.labels_ = self._label(X)
        self.inertia_ = inertia(design, to_numpy(self.cluster_centers_), self.labels_, weights)
        return self._seal(X, None, weights, stopped)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MiniBatchKMeans:
        """One step on the rows of X; ``y`` is not used. Leaves no certificate: the other batches are gone."""
        fresh = not hasattr(self, "cluster_centers_")
        X, _, weights = self._validate_training_data(X, y, sample_weight, reset=fresh)
        for name in ("certificate_", "n_iter_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        design = as_design(X)
        n = design.shape[0]
        if fresh:
            self._check_count(n)
            self._runs()
            self._random = check_random_state(self.random_state)
            first_rows = self._first_rows(n, min(self.batch_size, n))
            given = self._given_centres(X)
            centres = self._start(X, design, weights, given, self._random, first_rows)
            self._counts, self._since, self.n_steps_ = np.zeros(self.n_clusters), 0, 0
            self._size = min(self.batch_size, n)
        else:
            centres = to_numpy(self.cluster_centers_).astype(np.float64)
            if not hasattr(self, "_random"):
                self._random, self._since = check_random_state(self.random_state), 0
                self._size = min(self.batch_size, n)
                self._counts = getattr(self, "_counts", np.zeros(self.n_clusters))
        self._since += self._size
        reassign = bool((self._counts == 0).any()) or self._since >= 10 * self.n_clusters
        self._since = 0 if reassign else self._since
        centres, _ = mini_batch_step(
            design, weights, centres, self._counts, self._random, reassign=reassign,
            ratio=self.reassignment_ratio, verbose=self.verbose,
        )  # fmt: skip
        self._publish(centres, X, design)
        if self.compute_labels:
            self.labels_ = self._label(X)
            self.inertia_ = inertia(design, to_numpy(self.cluster_centers_), self.labels_, weights)
        self.n_steps_ += 1
        return self

    def _publish(self, centres: Array, X: Any, design: Design) -> None:
        self.cluster_centers_ = like(centres.astype(design.dtype), X)

    def _first_rows(self, n: int, size: int) -> int:
        """How many rows the first centres are chosen from."""
        count = self.init_size
        if count is None:
            count = 3 * size if 3 * size >= self.n_clusters else 3 * self.n_clusters
        elif count < self.n_clusters:
            warnings.warn(
                f"init_size={count} should be larger than n_clusters={self.n_clusters}. Setting it to "
                "min(3*n_clusters, n_samples)",
                RuntimeWarning,
                stacklevel=3,
            )
            count = 3 * self.n_clusters
        return int(min(count, n))

    def _start(
        self,
        X: Any,
        design: Design,
        weights: Any,
        given: Array | None,
        random_state: Any,
        count: int,
    ) -> Array:
        if count < design.shape[0]:
            index = random_state.randint(0, design.shape[0], count)
            X = _rows(X, index)
            design = as_design(X)
            weights = None if weights is None else weights[index]
        return initial_centres(self, X, design, weights, given, random_state)

    def _cost(self, rows: Any, weights: Any, centres: Array) -> float:
        design = as_design(rows)
        self.cluster_centers_ = centres
        cost = inertia(design, centres, self._label(rows), like(weights, rows))
        del self.cluster_centers_
        return cost

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_counts(self, n_steps_=1)
        # A fit leaves n_iter_ and labels all rows; partial_fit leaves none and labels its own rows.
        labelled = self.compute_labels or hasattr(self, "labels_")
        if hasattr(self, "n_iter_") and labelled:
            yield from wrong_shapes(self, {"labels_": (int(X.shape[0]),)})

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        if not hasattr(self, "labels_") or len(self.labels_) != X.shape[0]:
            why = "there are no labels of these rows to check: none were found, or the last step had others"
            return [Claim.undecided("labels", why, Kind.EXACT, "CLU-1")]
        found = look(self, X, sample_weight, full=full)
        moved = float(np.vdot(found.moves, found.moves))
        why = (
            f"mini-batches do not end at a stationary point: a full step would move the centres by "
            f"{moved:.2e} (squared, in all); no optimality claim"
        )
        return [
            labels_claim(found),
            wcss_claim(self, found),
            Claim.undecided("centres", why, Kind.STATIONARY, "CLU-1"),
        ]


class _Watch:
    """scikit-learn's stopping rule: an exponentially weighted average of the cost of a batch."""

    def __init__(self, model: Any, size: int, n: int, tol: float) -> None:
        self.model, self.size, self.n, self.tol = model, size, n, tol
        self.smooth: float | None = None
        self.least: float | None = None
        self.stale, self.why = 0, ""

    def says_stop(self, step: int, steps: int, moved: float, cost: float) -> bool:
        cost, step, verbose = cost / self.size, step + 1, self.model.verbose
        head = f"Minibatch step {step}/{steps}: mean batch inertia: {cost}"
        if step == 1:
            if verbose:
                print(head)
            return False
        alpha = min(1.0, self.size * 2.0 / (self.n + 1))
        self.smooth = cost if self.smooth is None else self.smooth * (1 - alpha) + cost * alpha
        if verbose:
            print(f"{head}, ewa inertia: {self.smooth}")
        if self.tol > 0.0 and moved <= self.tol:
            if verbose:
                print(f"Converged (small centers change) at step {step}/{steps}")
            self.why = "the centres moved by less than tol allows"
            return True
        if self.least is None or self.smooth < self.least:
            self.stale, self.least = 0, self.smooth
        else:
            self.stale += 1
        limit = self.model.max_no_improvement
        if limit is not None and self.stale >= limit:
            if verbose:
                print(f"Converged (lack of improvement in inertia) at step {step}/{steps}")
            self.why = "the average cost of a batch no longer falls"
            return True
        return False


def _rows(X: Any, index: Any) -> Any:
    """Some rows of an array, a sparse matrix or a tensor."""
    if isinstance(X, Dense | Sparse | Torch):
        X = X.X
    return X[index]
