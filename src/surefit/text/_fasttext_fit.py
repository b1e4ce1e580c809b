r"""How the fastText classifier is fitted: by steps, or through logistic regression.

Steps: see :mod:`surefit._jit.fasttext`. Through logistic regression: the model sees W and Z through M = WZ'
alone, a matrix of rank K at most. Logistic regression with the penalty reg/2 ||M||_F^2 has one best M*, which
is W Z' for W = U S^{1/2}, Z = V S^{1/2}, M* = U S V', as soon as K is at least the rank of M*. The columns
of M* of softmax sum to 0, so that C - 1 components suffice for C classes; one does for one row of W.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._jit.fasttext import first_rows, text_losses, text_steps
from .._threads import over_rows
from ..iterate import Iterate, run
from .vocabulary import Encoded

__all__ = ["bag_matrix", "factorise", "fit_steps", "logistic", "mean_loss", "probe_slopes"]

Array = NDArray[np.float64]
_WIDTH = 16  # numbers in a line of memory
_NEWTON_STEPS = 200


def bag_matrix(bags: Encoded, n_features: int) -> Any:
    """The averaged bags as a CSR matrix: a row of n features has n entries 1/n, some in the same column."""
    sizes = np.diff(bags.starts)
    data = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    small = np.int32 if len(bags.ids) < 2**31 else np.int64
    parts = (data, bags.ids.astype(small), bags.starts.astype(small))
    return sp.csr_array(parts, shape=(len(bags), n_features))


def mean_loss(
    bags: Encoded, Z: Any, W: Any, codes: NDArray[np.int64], weights: Array, softmax: bool
) -> float:
    """The weighted mean of the losses."""

    def part(first: int, last: int) -> float:
        return text_losses(bags.ids, bags.starts, Z, W, codes, weights, softmax, first, last)

    return math.fsum(over_rows(len(bags), part, least=256)) / float(weights.sum())


def fit_steps(
    bags: Encoded,
    n_features: int,
    codes: NDArray[np.int64],
    weights: Array,
    rows: int,
    *,
    n_components: int,
    softmax: bool,
    rate: float,
    epochs: int,
    deterministic: bool,
    rng: np.random.Generator,
    told: Callable[[int], None],
) -> tuple[Any, Any, Array]:
    """Z, W and the mean loss that each epoch met on its way; ``told`` is called with the epochs done."""
    width = -(-n_components // _WIDTH) * _WIDTH
    Z, W = _aligned(n_features, width), np.zeros((rows, width), dtype=np.float32)
    seed = np.uint64(rng.integers(2**63))
    over_rows(n_features, lambda a, b: first_rows(Z, n_components, seed, a, b))
    n, mass = len(bags), float(weights.sum())
    relative = weights * (n / mass)

    def steps() -> Iterator[Iterate]:
        for epoch in range(epochs):
            order = rng.permutation(n)
            begin, fall = rate * (1.0 - epoch / epochs), rate / epochs

            def part(
                first: int, last: int, order: Any = order, begin: float = begin, fall: float = fall
            ) -> float:
                return text_steps(
                    bags.ids, bags.starts, order, codes, relative, Z, W, softmax, begin, fall, first, last
                )  # fmt: skip

            parts = [part(0, n)] if deterministic else over_rows(n, part, least=256)
            told(epoch + 1)
            yield Iterate(None, value=math.fsum(parts) / n)

    with np.errstate(all="ignore"):
        trace = run(steps(), max_iter=epochs, tol=-1.0).trace
    Z, W = (np.ascontiguousarray(part[:, :n_components]) for part in (Z, W))
    return Z, W, np.array(trace.values)


def _aligned(n: int, width: int) -> NDArray[np.float32]:
    """Rows that begin where a line of memory begins."""
    raw = np.empty(n * width + _WIDTH, dtype=np.float32)
    skip = (-raw.ctypes.data % 64) // 4
    return raw[skip : skip + n * width].reshape(n, width)


def probe_slopes(
    bags: Encoded, rows: Any, Z: Any, W: Any, codes: NDArray[np.int64], softmax: bool
) -> Array:
    """The squared length of the kernel's own step of rate 1, in float64, for a few texts."""
    out = []
    for i in rows:
        columns, own = np.unique(bags.ids[bags.starts[i] : bags.starts[i + 1]], return_inverse=True)
        here, there = Z[columns].astype(np.float64), W.astype(np.float64)
        before = (here.copy(), there.copy())
        text_steps(
            own.astype(np.int32), np.array([0, len(own)]), np.zeros(1, np.int64), codes[i : i + 1],
            np.ones(1), here, there, softmax, 1.0, 0.0, 0, 1,
        )  # fmt: skip
        moved = [float(np.square(a - b).sum()) for a, b in zip((here, there), before)]
        out.append(math.fsum(moved))
    return np.array(out)


def logistic(
    bags: Any,
    codes: NDArray[np.int64],
    weights: Array,
    rows: int,
    softmax: bool,
    reg: float,
    tol: float,
) -> Array:
    """The M of penalised logistic regression, one row for each row of W."""
    from ..linear_model import LogisticRegression

    def solve(labels: Any, strength: float) -> Array:
        C = 1.0 / (strength * float(weights.sum()))
        model = LogisticRegression(
            C=C, fit_intercept=False, tol=tol / 4.0, max_iter=_NEWTON_STEPS, certify=False
        )
        return np.asarray(model.fit(bags, labels, weights).coef_, dtype=np.float64)

    if not softmax:
        if rows == 1:
            return solve(codes, reg)
        return np.concatenate([solve(codes == c, reg) for c in range(rows)])
    if rows == 2:  # scores (-w, w)/2 differ by w, and ||M||^2 = ||w||^2/2
        w = solve(codes, reg / 2.0)
        return np.concatenate([-w, w]) / 2.0
    M = solve(codes, reg)
    return M - M.mean(axis=0)


def factorise(M: Array, n_components: int) -> tuple[Array, Array]:
    """W and Z with WZ' = M, of the same size; refuses too few components."""
    eps = float(np.finfo(np.float64).eps)
    U, S, Vt = np.linalg.svd(M, full_matrices=False)
    rank = int(np.count_nonzero(S / max(S[0], 1e-300) > max(M.shape) * eps))
    if n_components < rank:
        raise ValueError(
            f"n_components={n_components} is too few for solver='exact': the best matrix of coefficients has "
            f"rank {rank}. Set n_components={rank} or more, or solver='sgd'."
        )
    roots = np.sqrt(S[:rank])
    W, Z = np.zeros((M.shape[0], n_components)), np.zeros((M.shape[1], n_components))
    W[:, :rank], Z[:, :rank] = U[:, :rank] * roots, Vt[:rank].T * roots
    return W, Z
