r"""What is claimed about a factorisation of log-counts, decided in float64 by code that no solver uses.

With e_ij = <w_i, z_j> + b_i + c_j - log n_ij the gradient of a word's row is sum_j f_ij e_ij (z_j, 1) +
lambda (w_i, b_i), and that of a context's alike.

- "loss": the recorded loss is that of these factors on these counts.
- "vectors": the vectors are the sums of the two factors.
- "words": the words occur as often as recorded; of a matrix of counts the sums of its rows, rounded.
- Alternating least squares: "word block", "context block", the gradient over one side against its size at 0.
  The words were solved for last: theirs is 0 to rounding. The contexts' is at most ``tol`` of its size at 0.
  "monotone loss": the trace never rises, and ends with the loss.
- AdaGrad and SGD: "gradient", for a few entries the squared length of the kernel's first step of a small rate
  is the derivative of the entry's loss along its gradient, by a central difference. "below biases alone",
  the weighted squares are at most the least that biases without factors reach (those of 0 without biases),
  found by alternating weighted means. A fit that did not begin to learn fails it.

None is a claim of optimality: the problem is not convex in both sides together. The rounding of a gradient is
bounded by (sqrt(k) + sqrt(entries)) eps times the sums of the sizes of what is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..certificate import Claim, Kind

__all__ = ["claims", "probes_of"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_CHECKED = 16  # entries whose steps are looked at
_RATE = 2.0**-10  # of these steps
_SWEEPS = 500  # of alternating means


@dataclass(frozen=True)
class Rows:
    """One side: its factors with biases, what they are fitted to, and the entries of its rows."""

    own: Array
    features: Array
    shift: Array
    indptr: NDArray[Any]
    indices: NDArray[Any]
    logs: Array
    weights: Array
    reg: float

    def entries(self, i: int) -> tuple[Array, Array, Array]:
        """Features, targets and weights of row i."""
        here = slice(self.indptr[i], self.indptr[i + 1])
        at = self.indices[here]
        return self.features[at], self.logs[here] - self.shift[at], self.weights[here]


@dataclass(frozen=True)
class Sums:
    """Over the rows of a side: squares of residuals, gradients and sizes that bound their rounding."""

    squares: float
    spread: float
    gradient: float
    at_zero: float
    floor: float


def claims(model: Any, counted: Any, tol: float) -> list[Claim]:
    """The claims about a fitted model on its counts."""
    counts = counted.pairs
    n, k = counts.shape[0], int(model.n_components)
    shapes = {np.shape(model.word_factors_), np.shape(model.context_factors_)}
    lengths = {np.shape(model.word_biases_), np.shape(model.context_biases_)}
    if shapes != {(n, k)} or lengths != {(n,) if model.biases else ()} or counts.nnz == 0:
        shapes |= lengths
        why = f"factors of shapes {sorted(shapes)} for {n} words and {counts.nnz} pairs"
        return [Claim.check("loss", why, Kind.EXACT, math.nan, 0.0, "TXT-3")]
    words, contexts = _sides(model, counts)
    of_words = _sums(words)
    out = [_loss_claim(model, words, contexts, of_words), _vector_claim(model)]
    out.append(_words_claim(model, counted))
    if model.solver == "als":
        out += _block_claims(of_words, _sums(contexts), tol)
        out.append(_monotone_claim(model))
    else:
        out.append(_step_claim(model, words, contexts))
        out.append(_below_claim(model, counts, words, of_words))
    return out


def _sides(model: Any, counts: Any) -> tuple[Rows, Rows]:
    csr = sp.csr_array(counts, dtype=np.float64)
    parts = []
    for factors, biases in (
        (model.word_factors_, model.word_biases_),
        (model.context_factors_, model.context_biases_),
    ):
        own = np.asarray(factors, dtype=np.float64)
        if model.biases:
            own = np.column_stack([own, np.asarray(biases, dtype=np.float64)])
        parts.append(own)
    sides = []
    for own, other, matrix in ((parts[0], parts[1], csr), (parts[1], parts[0], csr.T.tocsr())):
        features, shift = other, np.zeros(len(other))
        if model.biases:
            features, shift = other.copy(), other[:, -1].copy()
            features[:, -1] = 1.0
        weights = np.ones(matrix.nnz)
        if model.weighting == "glove":
            weights = np.minimum(1.0, (matrix.data / model.x_max) ** model.alpha)
        sides.append(
            Rows(
                own, features, shift, matrix.indptr, matrix.indices, np.log(matrix.data), weights,
                float(model._reg()),
            )
        )  # fmt: skip
    return sides[0], sides[1]


def _sums(rows: Rows) -> Sums:
    n, k = rows.own.shape
    norms, own = np.linalg.norm(rows.features, axis=1), np.linalg.norm(rows.own, axis=1)
    gradient, at_zero, size, squares, spread = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        F, t, f = rows.entries(i)
        e = F @ rows.own[i] - t
        g = (f * e) @ F + rows.reg * rows.own[i]
        h = (f * t) @ F
        at = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        big = f * (norms[at] * own[i] + np.abs(t) + 2.0 * np.abs(rows.shift[at]))
        gradient += float(g @ g)
        at_zero += float(h @ h)
        size += (float(big @ norms[at]) + rows.reg * own[i]) ** 2
        squares += float((f * e) @ e)
        spread += float(big @ np.abs(e))
    longest = float(np.diff(rows.indptr).max(initial=0))
    floor = _EPS * (math.sqrt(k) + math.sqrt(longest)) * math.sqrt(size)
    return Sums(squares, spread, math.sqrt(gradient), math.sqrt(at_zero), floor)


def _loss_claim(model: Any, words: Rows, contexts: Rows, found: Sums) -> Claim:
    penalty = words.reg * (float((words.own**2).sum()) + float((contexts.own**2).sum()))
    loss = 0.5 * (found.squares + penalty)
    away = abs(float(model.loss_) - loss)
    terms = math.sqrt(words.own.shape[1]) + math.sqrt(len(words.logs)) + 8.0
    floor = terms * _EPS * (found.spread + found.squares + penalty)
    statement = (
        f"half the weighted squares plus the penalty is {loss:.6g}; the record is off by {away:.2g}"
    )
    return Claim.check("loss", statement, Kind.EXACT, away, floor, "TXT-3")


def _words_claim(model: Any, counted: Any) -> Claim:
    recorded = np.asarray(model.word_counts_)
    same = recorded.shape == counted.words.shape
    wrong = int((recorded != counted.words).sum()) if same else len(counted.words)
    wrong += int(model.n_words_ != counted.n_words)
    statement = f"{wrong} of the words' counts, their total included, are not those of these data"
    return Claim.check("words", statement, Kind.EXACT, wrong, 0.0, "TXT-2")


def _vector_claim(model: Any) -> Claim:
    sums = np.asarray(model.word_factors_) + np.asarray(model.context_factors_)
    same = np.shape(model.vectors_) == sums.shape
    away = float(np.abs(np.asarray(model.vectors_) - sums).max(initial=0.0)) if same else math.nan
    statement = f"the vectors are the sums of words' and contexts' factors, up to {away:.2g}"
    return Claim.check("vectors", statement, Kind.EXACT, away, 0.0, "TXT-4")


def probes_of(entries: int) -> NDArray[np.int64]:
    """Some entries, spread over all, whose step is looked at."""
    return np.unique(np.linspace(0, entries - 1, _CHECKED).astype(np.int64))


def _step_claim(model: Any, words: Rows, contexts: Rows) -> Claim:
    entries, recorded = probes_of(len(words.logs)), np.asarray(model.probe_slopes_)
    worst = 0.0 if len(recorded) == len(entries) else math.nan
    for e, theirs in zip(entries.tolist(), recorded.tolist()):
        slope, allowed = _entry(words, contexts, e, int(model.n_components))
        worst = float(np.maximum(worst, abs(slope - theirs) / allowed))  # NaN stays
    statement = (
        f"the steps of {len(entries)} entries are gradients: squared lengths and central differences of the "
        f"loss along them differ by {worst:.1g} of what float32 may cost"
    )
    return Claim.check("gradient", statement, Kind.EXACT, worst, 1.0, "TXT-3")


def _entry(words: Rows, contexts: Rows, e: int, k: int) -> tuple[float, float]:
    """The slope of an entry's loss along its gradient, and by how much a step's squared length may miss it.

    A row's penalty is spread over its entries. A float32 step of rate r is off by eps |w| / r and by the
    rounding of the error; the root of AdaGrad's sums shortens it by (r g)^2 / 2.
    """
    i, j = int(np.searchsorted(words.indptr, e, "right")) - 1, int(words.indices[e])
    w, z, f, x = words.own[i], contexts.own[j], float(words.weights[e]), float(words.logs[e])
    to_w, to_z = words.features[j], contexts.features[i]  # (z, 1), (w, 1)
    shift = float(words.shift[j])
    lam, mu = (
        side.reg / int(side.indptr[n + 1] - side.indptr[n])
        for side, n in ((words, i), (contexts, j))
    )
    error = float(to_w @ w) + shift - x
    g, h = f * error * to_w + lam * w, f * error * to_z + mu * z

    def value(t: float) -> float:
        a, b = w + t * g, z + t * h
        away = float(a[:k] @ b[:k] + a[k:].sum() + b[k:].sum()) - x
        return 0.5 * (f * away**2 + lam * float(a @ a) + mu * float(b @ b))

    square, size = float(g @ g + h @ h), math.hypot(*w, *z)
    length = 1e-4 * (1.0 + size) / max(math.sqrt(square), 1e-150)
    slope = (value(length) - value(-length)) / (2.0 * length)
    sizes = float(np.abs(to_w) @ np.abs(w)) + abs(shift) + abs(x)
    miss = 2.0**-22 * (size / _RATE + (1.0 + k) * f * sizes * math.hypot(*to_w, *to_z))
    largest = _RATE * float(max(np.abs(g).max(), np.abs(h).max()))
    return slope, 2.0 * math.sqrt(square) * miss + miss**2 + (largest**2 + 1e-6) * square + 1e-300


def _block_claims(words: Sums, contexts: Sums, tol: float) -> list[Claim]:
    out = []
    for name, sums in (("word", words), ("context", contexts)):
        share = f"{sums.gradient / sums.at_zero:.2g} of its size at 0" if sums.at_zero else "0"
        statement = (
            f"the gradient over the {name}s is {sums.gradient:.3g}, {share}; no optimality claim"
        )
        bound = sums.floor if name == "word" else tol * sums.at_zero
        out.append(
            Claim.check(
                f"{name} block", statement, Kind.STATIONARY, sums.gradient, bound, "TXT-4", floor=sums.floor
            )
        )  # fmt: skip
    return out


def _monotone_claim(model: Any) -> Claim:
    trace = np.append(np.asarray(model.loss_trace_, dtype=np.float64), float(model.loss_))
    rise = float(np.diff(trace).max(initial=0.0)) if np.isfinite(trace).all() else math.nan
    bound = 1e3 * _EPS * float(np.abs(trace).max())
    statement = f"over {len(trace) - 1} iterations the loss rose by {rise:.2g} at most"
    return Claim.check("monotone loss", statement, Kind.BOUND, rise, bound, "MF-5")


def _below_claim(model: Any, counts: Any, words: Rows, found: Sums) -> Claim:
    f, x = words.weights, words.logs
    best = 0.5 * float((f * x) @ x)
    if model.biases:
        b, c = _biases(sp.csr_array((f, words.indices, words.indptr), counts.shape), f * x)
        rest = x - np.repeat(b, np.diff(words.indptr)) - c[words.indices]
        best = 0.5 * float((f * rest) @ rest)
    loss = 0.5 * found.squares
    what = "biases alone" if model.biases else "no factors"
    statement = (
        f"half the weighted squares are {loss:.6g}, and {best:.6g} with {what}; no optimality claim"
    )
    return Claim.check("below biases alone", statement, Kind.EMPIRICAL, loss, best, "TXT-4")


def _biases(F: Any, right: Array) -> tuple[Array, Array]:
    """The minimum over b and c of sum f (x - b_i - c_j)^2, by alternating weighted means."""
    G = sp.csr_array((right, F.indices, F.indptr), F.shape)
    T = F.T.tocsr()
    by_row, by_column = np.asarray(F.sum(axis=1)), np.asarray(F.sum(axis=0))
    rows, columns = np.asarray(G.sum(axis=1)), np.asarray(G.sum(axis=0))
    by_row[by_row == 0.0] = by_column[by_column == 0.0] = 1.0
    c = np.zeros(F.shape[1])
    for _ in range(_SWEEPS):
        b = (rows - F @ c) / by_row
        new = (columns - T @ b) / by_column
        moved, c = float(np.abs(new - c).max()), new
        if moved <= 1e-7 * (1.0 + float(np.abs(c).max())):
            break
    return b, c
