"""Kernel support vector machines over C: one kernel matrix, each C from the solution for the last.

Most multipliers at a bound stay there as C grows, and the others follow from a linear system
(:mod:`surefit.solvers.box_active_set`). Where that does not settle, or the matrix is too large to be kept,
SMO starts from the last multipliers: they are feasible for every larger C, and so are all multiples of them
up to the ratio of the two, of which the one with the largest dual value is taken. The decisions of all C are
one product with the kernel values between test and training rows. Every machine reaches ``tol``, as one
fitted by itself.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import compute_class_weight

from ..._threads import one_thread
from ...iterate import Stop
from ...solvers.box_active_set import box_active_set
from ...solvers.kernel_rows import WholeMatrix
from ...solvers.smo import BoxTask
from ...svm._machine import Machine, solve_machine
from ...svm._pairs import Pair, pairs_of
from ...svm._rows import kernel_sums
from ...svm._sources import row_source
from .family import Family
from .kernel_blocks import FoldKernel, FoldKernels
from .models import FoldModels
from .rows import take

__all__ = ["SVCFamily"]

Array = NDArray[np.float64]
_BLOCK = (
    256,
    2048,
)  # variables of a block: near the solution few are wrong, but all free ones must fit in


class SVCFamily(Family):
    """SVC over C."""

    name = "one kernel matrix for all C, each from the last"
    varies: ClassVar[frozenset[str]] = frozenset({"C"})

    @classmethod
    def takes(cls, own: dict[str, Any]) -> bool:
        return bool(np.isfinite(own["C"]))

    @classmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        return template.probability is not True and not template._custom

    def prepare(self) -> None:
        folds, model = self.folds, self.template
        self.X, self.y, self.weights = model._validate_training_data(
            folds.X, folds.y, folds.sample_weight, reset=True
        )
        self.order = np.argsort([float(v["C"]) for v in self.values], kind="stable")
        self.kernels = FoldKernels(self.X, folds, model._resolved)

    def fit(self, k: int) -> FoldModels:
        with one_thread:  # small systems: threads of the matrix library would wait for each other
            return self._fit(k)

    def _fit(self, k: int) -> FoldModels:
        train, _ = self.folds.splits[k]
        model, blocks = copy.copy(self.template), self.kernels.of(k)
        rows = self.X[np.ix_(train, train)] if model._given else take(self.X, train)
        y, own = self.y[train], None if self.weights is None else self.weights[train]
        model.classes_, codes = np.unique(y, return_inverse=True)
        model.class_weight_ = compute_class_weight(model.class_weight, classes=model.classes_, y=y)
        model.kernel_, model._platt_ = blocks.kernel, np.empty((0, 2))
        if len(model.classes_) < 2 or (own is not None and not own.any()):
            raise ValueError("one class")
        sources: dict[tuple[int, int], Any] = {}
        before: dict[tuple[int, int], tuple[float, Machine]] = {}
        models: list[Any] = [None] * len(self.values)
        for j in self.order:
            candidate = copy.copy(model)
            candidate.C = C = float(self.values[j]["C"])
            pairs = pairs_of(codes, len(model.classes_), candidate._bounds(codes, own))
            found = []
            for pair in pairs:
                name = pair.first, pair.second
                if name not in sources:
                    sources[name] = _source(model, rows, blocks, pair)
                machine = _solved(candidate, sources[name], pair, before.get(name))
                found.append(machine)
                before[name] = C, machine
            if any(machine.stop is Stop.MAX_ITER for machine in found):
                continue
            candidate._layout(rows, codes, pairs, found)
            models[j] = candidate
        return _Machines(self, k, model, blocks, rows, models)


def _source(model: Any, rows: Any, blocks: FoldKernel, pair: Pair) -> Any:
    """The kernel matrix of two classes."""
    if blocks.train is not None:
        K = blocks.train[np.ix_(pair.rows, pair.rows)]
        source: Any = WholeMatrix(K if np.array_equal(K, K.T) else 0.5 * (K + K.T))
    else:
        part = take(rows, pair.rows)
        source = row_source(model.kernel_, part, cache_mb=model.cache_size)
    if not np.isfinite(source.diag).all():
        raise ValueError("kernel values overflow")
    return source


def _solved(model: Any, source: Any, pair: Pair, before: tuple[float, Machine] | None) -> Machine:
    signs, bounds, zero = pair.signs, pair.bounds, np.zeros(len(pair.rows))
    if not (signs > 0).any() or not (signs < 0).any():
        raise ValueError("a pair of classes has rows of one only")
    task = BoxTask(
        signs, np.where(signs > 0, zero, -bounds), np.where(signs > 0, bounds, zero),
        np.arange(len(signs)),
    )  # fmt: skip
    start: Machine | None = None
    size: int | None = None
    if before is not None:
        C, last = before
        bend = float(last.beta @ last.f)
        most = float(model.C) / C
        scale = np.clip(float(signs @ last.beta) / bend, 1.0, most) if bend > 0.0 else most
        beta = np.clip(scale * last.beta, task.lo, task.hi)
        start = last._replace(beta=beta, f=scale * last.f)
        if isinstance(source, WholeMatrix):
            near = box_active_set(
                source.K, task, last.beta, last.f, tol=0.1 * model.tol, ratio=most
            )
            beta = beta if near is None else near[0]
            start = last._replace(
                beta=beta, f=source.K @ beta
            )  # afresh: errors must not add up along C
        free = np.count_nonzero((last.beta > task.lo / most) & (last.beta < task.hi / most))
        size = int(np.clip(3 * free, *_BLOCK))
    found = solve_machine(
        source, task, tol=model.tol, max_iter=model.max_iter, shrinking=model.shrinking,
        start=start, size=size,
    )  # fmt: skip
    v, beta = signs - found.f, found.beta
    violation = np.max(v[beta < task.hi], initial=-np.inf) - np.min(
        v[beta > task.lo], initial=np.inf
    )
    return found if violation <= model.tol else found._replace(stop=Stop.MAX_ITER)


class _Machines(FoldModels):
    answers_by = "_pair_decisions"

    def __init__(
        self,
        family: SVCFamily,
        k: int,
        template: Any,
        blocks: FoldKernel,
        rows: Any,
        models: list[Any],
    ) -> None:
        super().__init__(template, family.values)
        self.family, self.k, self.blocks, self.rows, self.models = family, k, blocks, rows, models
        self.missing = frozenset(j for j, model in enumerate(models) if model is None)

    def attributes(self, j: int) -> dict[str, Any]:
        return dict(self.models[j].__dict__)

    def answers(self, X: Any, first: int, last: int) -> Sequence[Any]:
        """The decisions of each pair of classes, positive for its first class."""
        found = [self.models[j] for j in range(first, last) if j not in self.missing]
        if not found:
            return [None] * (last - first)
        pairs, n = len(found[0].intercept_), self.rows.shape[0]
        W = np.zeros((n, len(found), pairs))
        for i, model in enumerate(found):
            W[model.support_, i] = model._pair_weights()
        tested = X is self.family.folds.rows(self.k, "test")[0]
        K = self.blocks.test if tested else self.blocks.train
        flat = W.reshape(n, -1)
        if K is not None:
            Z = K @ flat
        else:
            checked = found[0]._check_for_predict(X)
            Z = kernel_sums(self.blocks.kernel, checked, self.rows, flat)
        Z = np.moveaxis(Z.reshape(-1, len(found), pairs), 1, 0)
        values = iter(Z[i] + model._intercept_ for i, model in enumerate(found))
        return [None if j in self.missing else next(values) for j in range(first, last)]
