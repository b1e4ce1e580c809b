r"""Word vectors by negative sampling: stochastic steps over a text, and the whole objective at once.

A pair (i, j) of words that stood within a window is told from k pairs (i, j') with words j' drawn from the
noise p_j ~ count_j^power, by logistic regression on the products of an input and an output vector:

    -log sigmoid(<v_i, z_j>) - sum_{j'} log sigmoid(-<v_i, z_j'>)

(Mikolov, Sutskever, Chen, Corrado and Dean, 2013). :func:`passes` steps through the text pair by pair,
frequent words left out with probability 1 - sqrt(t/f) - t/f, on several threads without locks (Niu, Recht,
Re and Wright, 2011), or on one, in the order of the text. :func:`minimise_whole` minimises the expectation
of the sum over all pairs by L-BFGS, for small vocabularies: without the limit of the dimension its minimum
has <v_i, z_j> = log(n_ij / (n_i p_j)) - log k (Levy and Goldberg, 2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from .._jit.skipgram import SIGMOID, bag_steps, pair_steps
from .._threads import over_rows

__all__ = ["Draws", "Parts", "first_rows", "minimise_whole", "passes", "probe_slopes"]

Rows = NDArray[np.float32]
_ROUND = 1 << 20  # words between two looks at the clock
_LANES = 16  # rows are padded to a multiple of this
_LEAST = 1e-4  # of the rate, at the end
_PART = 1 << 22  # numbers gathered at a time


@dataclass(frozen=True, eq=False)
class Draws:
    """What is random: the share of each word that is kept, and the alias table of the noise."""

    keep: NDArray[np.float32]
    shares: NDArray[np.float32]
    others: NDArray[np.int32]

    @classmethod
    def of(cls, counts: NDArray[np.int64], subsample: float, power: float) -> Draws:
        """From the counts of the words.

        Examples
        --------
        >>> Draws.of(np.array([4, 4]), 0.0, 0.75).keep.tolist()
        [1.0, 1.0]
        """
        share = counts / counts.sum()
        keep = np.ones(len(counts))
        if subsample > 0:
            keep = np.minimum(1.0, np.sqrt(subsample / share) + subsample / share)
        return cls(keep.astype(np.float32), *_alias((counts / counts.max()) ** power))


@dataclass(frozen=True, eq=False)
class Parts:
    """The rows of V whose mean is the vector of a word: ``rows[indptr[w]:indptr[w + 1]]``."""

    indptr: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def whole(cls, n_words: int) -> Parts:
        """Words of one row each."""
        return cls(np.arange(n_words + 1, dtype=np.int64), np.arange(n_words, dtype=np.int64))

    def means(self, V: Rows) -> Rows:
        """The vectors of all words."""
        n, sizes = len(self.indptr) - 1, np.diff(self.indptr)
        out, first = np.empty((n, V.shape[1]), np.float32), 0
        while first < n:  # the rows of all words at once may not fit into memory
            reach = self.indptr[first] + _PART // V.shape[1]
            last = max(first + 1, int(np.searchsorted(self.indptr, reach, "right")) - 1)
            begin, end = self.indptr[first], self.indptr[last]
            sums = np.add.reduceat(V[self.rows[begin:end]], self.indptr[first:last] - begin, axis=0)
            out[first:last] = sums / sizes[first:last, None]
            first = last
        return out


def first_rows(
    n_inputs: int, n_words: int, size: int, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Inputs uniform in +-1/(2 size), outputs 0, padded; of the outputs one row more (see the kernels)."""
    width = -(-size // _LANES) * _LANES
    V, Z = np.zeros((n_inputs, width), np.float32), np.zeros((n_words + 1, width), np.float32)
    V[:, :size] = (rng.random((n_inputs, size), dtype=np.float32) - 0.5) / size
    return V, Z


def passes(
    data: Any, draws: Draws, V: Rows, Z: Rows, *, window: int, negative: int, rate: float, n_epochs: int,
    seed: int, parts: Parts | None = None, cbow: bool = False, in_order: bool = False,
) -> Iterator[int]:  # fmt: skip
    """Go ``n_epochs`` times over the text, changing V and Z; yields the number of words done so far.

    ``data`` is an encoded corpus. With ``in_order`` one thread does it all, and the result is a function of
    the arguments; else threads share the arrays.
    """
    ids, starts, done = data.ids, data.starts, 0
    n, total = len(ids), max(1, n_epochs * len(ids))
    # a segment's stream is a function of the sum of a seed and its number: seeds that lie apart
    seeds = np.random.default_rng(seed).integers(2**64, size=n_epochs, dtype=np.uint64)
    for epoch in range(n_epochs):
        for begin in range(0, max(n, 1), _ROUND):
            end = min(begin + _ROUND, n)
            bounds = [rate * max(1.0 - (done + d) / total, _LEAST) for d in (0, end - begin)]
            own = seeds[epoch]

            def work(
                a: int, b: int, begin: int = begin, rates: Any = bounds, own: Any = own
            ) -> None:
                first, last = np.searchsorted(starts, [begin + a, begin + b])
                if first == last:
                    return
                given = (ids, starts, first, last, draws.keep, draws.shares, draws.others)
                rest = (V, Z, SIGMOID, window, negative, *rates, own)
                if parts is None and not cbow:
                    pair_steps(*given, *rest)
                else:
                    bag = parts or Parts.whole(len(draws.keep))
                    bag_steps(*given, bag.indptr, bag.rows, *rest, cbow)

            if in_order:
                work(0, end - begin)
            else:
                over_rows(end - begin, work)
            done += end - begin
            yield done


def probe_slopes(
    V: Rows, Z: Rows, triples: Iterable[Any], parts: Parts | None = None, cbow: bool = False
) -> NDArray[np.float64]:
    """What a kernel's step of rate 1 moves an input and an output by, the squared length of both.

    A triple (i, o, j) is an input, an output and the one noise word: a text of i and o alone, on copies of
    their rows. Its first window moves them from where they are.
    """
    found, bag = [], parts or Parts.whole(len(Z) - 1)
    ids = np.array([0, 1] if parts is not None and not cbow else [1, 0], np.int32)
    for triple in triples:
        rows = [bag.rows[bag.indptr[w] : bag.indptr[w + 1]] for w in triple]
        indptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        A, B = V[np.concatenate(rows)], Z[[*triple, -1]]
        v, z = A[0].astype(np.float64), B[1].astype(np.float64)
        given = (ids, np.array([0, 2]), 0, 1, np.ones(3, np.float32), np.zeros(3, np.float32))
        rest = (A, B, SIGMOID, 1, 1, 1.0, 1.0, np.uint64(0))
        noise = np.full(3, 2, np.int32)
        if parts is None and not cbow:
            pair_steps(*given, noise, *rest)
        else:
            bag_steps(*given, noise, indptr, np.arange(indptr[-1]), *rest, cbow)
        found.append(float(np.square(A[0] - v).sum() + np.square(B[1] - z).sum()))
    return np.array(found)


def minimise_whole(
    counts: Any,
    noise: NDArray[np.float64],
    negative: int,
    V: Any,
    Z: Any,
    *,
    max_iter: int,
    tol: float,
) -> tuple[Any, Any, int]:
    """The minimum of the mean of -n_ij log sigmoid(s_ij) - k n_i p_j log sigmoid(-s_ij), s = V Z'.

    Returns V, Z in float64 and the number of iterations.
    """
    positive = np.asarray(counts.todense() if hasattr(counts, "todense") else counts, np.float64)
    total = positive.sum()
    positive = positive / total
    drawn = negative * positive.sum(axis=1, keepdims=True) * noise
    shape, split = V.shape, V.size

    def loss(x: Any) -> tuple[float, Any]:
        A, B = x[:split].reshape(shape), x[split:].reshape(shape)
        S = A @ B.T
        value = (positive * np.logaddexp(0.0, -S) + drawn * np.logaddexp(0.0, S)).sum()
        G = drawn * expit(S) - positive * expit(-S)
        return float(value), np.concatenate([(G @ B).ravel(), (G.T @ A).ravel()])

    start = np.concatenate([V.ravel(), Z.ravel()]).astype(np.float64)
    given = {
        "maxiter": max_iter,
        "maxfun": 10 * max_iter,
        "gtol": tol / len(noise) ** 2,
        "ftol": 0.0,
    }
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=given | {"maxcor": 30})
    return found.x[:split].reshape(shape), found.x[split:].reshape(shape), int(found.nit)


def _alias(weights: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Walker's table: cell i is i with probability shares[i], else others[i]."""
    n = len(weights)
    mass = (weights * (n / weights.sum())).tolist()
    shares, others = [1.0] * n, list(range(n))
    small = [i for i in range(n) if mass[i] < 1.0]
    large = [i for i in range(n) if mass[i] >= 1.0]
    while small and large:
        low, high = small.pop(), large.pop()
        shares[low], others[low] = mass[low], high
        mass[high] -= 1.0 - mass[low]
        (small if mass[high] < 1.0 else large).append(high)
    return np.array(shares, np.float32), np.array(others, np.int32)
