"""Which solver minimises the objective of logistic regression, and how far it goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._namespace import array_namespace, is_torch
from ..design import RankRows, as_design
from ..duality import duality_gap, null_value
from ..iterate import Fit, Iterate, run
from ..losses import Loss
from ..penalties import ElasticNet, Penalty
from ..solvers.glm_newton import glm_newton
from ..solvers.glm_sampled import glm_sampled, sampling_pays
from ..solvers.prox_newton import prox_newton
from ..solvers.prox_newton_softmax import prox_newton_softmax
from .callbacks import FitTasks

__all__ = ["minimise", "take_rows", "with_constant"]

Array = NDArray[np.float64]
_TIGHT = 1e-8  # Newton's last step squares the error, so the fit goes this far when tol is looser
_BEYOND = 0.01  # two digits further than tol, but no further than this:
_TIGHT_SAMPLED = 1e-6  # the same where each step gains a few digits only, and with an l1 term


def minimise(
    X: Any,
    y: Array,
    s: Array,
    loss: Loss,
    penalty: Penalty,
    start: tuple[Array, Array],
    free: bool,
    *,
    tol: float,
    max_iter: int,
    verbose: int,
    name: str,
    tasks: FitTasks | None,
) -> Fit:
    """min_{w, b} sum_i s_i l(x_i'w + b, y_i) + penalty(w) from ``start``; b stays where it is unless free."""
    w, b = start
    null = null_value(loss, y, s, fit_intercept=free)
    l1, l2 = (0.0, 0.0) if not isinstance(penalty, ElasticNet) else (penalty.l1, penalty.l2)
    tight = _TIGHT
    if l1 > 0:
        tight = _TIGHT_SAMPLED
        method = prox_newton if w.ndim == 1 else prox_newton_softmax
        steps = method(X, y, s, loss, l1, l2, w, b, fit_intercept=free)
    else:
        sampled = sampling_pays(X.shape[0], w.size + b.size)
        if sampled and l2 > 0:
            tight = max(_TIGHT_SAMPLED, _BEYOND * tol)
        elif sampled:  # the claim is about the gradient, the root of the estimate
            tight = 0.01 * tol**2
        solver = glm_sampled if sampled else glm_newton
        steps = solver(as_design(X), y, s, loss, l2, w, b, fit_intercept=free)
    if max_iter == 0:
        steps = iter([Iterate((w, b), cost=0)])
    if tasks is not None:
        steps = tasks.watch(steps, (w, b), looks=max_iter > 0)
    design = as_design(X)

    def gap(x: tuple[Array, Array]) -> float:
        return duality_gap(design, y, x[0], x[1], loss, penalty, weights=s, fit_intercept=free).gap

    # until the gap passes; the solver's own gap, where that is one: it leaves out what a free intercept asks
    own = l1 == 0 or (w.ndim == 1 and not free)
    return run(
        steps, None if own else gap,
        tol=min(tol, tight) * null, max_iter=max(max_iter, 1),
        callback=None if tasks is None else lambda *_: tasks.stop,
        verbose=verbose, name=name,
    )  # fmt: skip


def take_rows(X: Any, kept: Any, *vectors: Any) -> tuple[Any, ...]:
    """The rows where ``kept`` is true, and these entries of vectors over samples."""
    if isinstance(X, RankRows):
        return X.keep(kept, *vectors)
    return X.tocsr()[kept] if sp.issparse(X) else X[kept], *(v[kept] for v in vectors)


def with_constant(X: Any, value: float) -> Any:
    """X with one column more."""
    if is_torch(X):
        return array_namespace(X).concat([X, array_namespace(X).full_like(X[:, :1], value)], axis=1)
    column = np.full((X.shape[0], 1), value)
    return sp.hstack([X, column], format="csr") if sp.issparse(X) else np.hstack([X, column])
