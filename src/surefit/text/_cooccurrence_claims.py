r"""What is claimed about co-occurrence counts, decided by plain scans of the corpus.

- "rows": the rows of some words, counted again from the places of these words, entry by entry.
- "product": N r for a random vector r of integers, against the sum that it is, r added up around every place
  of the corpus. One wrong entry of N changes its row of N r, whatever r > 0 is; wrong entries that cancel
  each other do so for a share 2^-16 of the vectors (Freivalds, 1977).
- "mass": the sum of all counts is the number of pairs, which follows from the lengths of the segments; of
  other contexts from the numbers of their distinct and of their repeated words.
- "symmetry": N = N', for contexts that have no direction.
- "words": the counts of the words are those of this corpus.

With counts of 1 all are equalities of integers. With 1/d sums are rounded: each has a relative error of at
most the number of its terms times eps, all terms being positive; and the weights of windows beyond 20 or so
are themselves multiples of a power of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ..certificate import Claim, Kind

__all__ = ["claims"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
_BLOCK = 1 << 18  # places at a time
_EPS = float(np.finfo(np.float64).eps)
_ROWS = 4  # words whose rows are counted again; eight times as many by verify


def claims(model: Any, contexts: Any, *, full: bool) -> list[Claim]:
    """The claims about fitted counts on the contexts of the fit, as numbers."""
    n, N = len(model.words_), sp.csr_array(model.counts_)
    sound = N.shape == (n, n) and len(np.asarray(model.word_counts_)) == n
    if not sound:
        why = f"counts of shape {N.shape} for {n} words"
        return [Claim.check("rows", why, Kind.EXACT, math.nan, 0.0, "TXT-2")]
    rng = np.random.default_rng(0)
    r = rng.integers(1, 1 << 16, n).astype(np.float64)
    product, mass, terms = _scan(model, contexts, r)
    slack = _slack(model, contexts)
    chosen = rng.choice(n, min(n, _ROWS * (8 if full else 1)), replace=False)
    return [
        _rows_claim(model, contexts, N, chosen, slack),
        _product_claim(N, r, product, terms, slack),
        _mass_claim(N, mass, slack),
        *([_symmetry_claim(N)] if model.context != "window" or model.symmetric else []),
        _words_claim(model, contexts),
    ]


def _slack(model: Any, contexts: Any) -> float:
    """The relative error of an entry; 0 where all are integers."""
    if model.context != "window" or model.weighting == "uniform":
        return 0.0
    window = min(int(model.window), max(1, int(np.diff(contexts.starts).max(initial=1))))
    multiple = math.lcm(*range(1, window + 1))
    room = 2.0**60 / ((len(contexts.ids) + 1) * (1 + math.log2(window)))
    rounded = 0.0 if multiple <= room / 4 else 4.0 * window / room
    return (window + 4.0) * _EPS + rounded


def _blocks(model: Any, contexts: Any) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """(places, begins of their contexts, ends, numbers of the contexts), some places at a time."""
    starts = contexts.starts
    for first in range(0, len(contexts.ids), _BLOCK):
        places = np.arange(first, min(first + _BLOCK, len(contexts.ids)))
        number = np.searchsorted(starts, places, side="right") - 1
        yield places, starts[number], starts[number + 1], number


def _scan(model: Any, contexts: Any, r: Array) -> tuple[Array, float, float]:
    """N r, the sum of N, and the most terms of a row of N r, by adding up r around each place."""
    n, ids = len(r), contexts.ids
    if model.context != "window":
        return _scan_contexts(contexts, r)
    product, mass = np.zeros(n), 0.0
    reach = min(int(model.window), int(np.diff(contexts.starts).max(initial=1)))
    sums = np.zeros((reach + 1, n))
    for places, _, ends, _ in _blocks(model, contexts):
        for d in range(1, reach + 1):
            p = places[places + d < ends]
            left, right = ids[p], ids[p + d]
            sums[d] += np.bincount(left, r[right], minlength=n)
            if model.symmetric:
                sums[d] += np.bincount(right, r[left], minlength=n)
    for d in range(reach, 0, -1):  # the small ones first
        weight = 1.0 / d if model.weighting == "harmonic" else 1.0
        product += weight * sums[d]
        pairs = np.maximum(np.diff(contexts.starts) - d, 0).sum()
        mass += weight * float(pairs) * (2.0 if model.symmetric else 1.0)
    return product, mass, float(reach)


def _scan_contexts(contexts: Any, r: Array) -> tuple[Array, float, float]:
    """The same for contexts: of each the sum of r over its words, without that of the word itself."""
    n, count = len(r), len(contexts)
    lengths = np.diff(contexts.starts)
    product, mass = np.zeros(n), 0.0
    first = 0
    while first < count:  # whole contexts, about a block of words at a time
        last = int(np.searchsorted(contexts.starts, contexts.starts[first] + _BLOCK, side="right"))
        last = min(max(last - 1, first + 1), count)
        here = slice(int(contexts.starts[first]), int(contexts.starts[last]))
        number = np.repeat(np.arange(last - first), lengths[first:last])
        keys, times = np.unique(number * n + contexts.ids[here], return_counts=True)
        where, word = keys // n, keys % n
        total = np.bincount(where, r[word], minlength=last - first)
        own = np.where(times > 1, 0.0, r[word])
        product += np.bincount(word, total[where] - own, minlength=n)
        size = np.bincount(where, minlength=last - first).astype(np.float64)
        mass += float((size * (size - 1.0)).sum()) + float((times > 1).sum())
        first = last
    return product, mass, 1.0


def _row(model: Any, contexts: Any, i: int) -> Array:
    """Row i, from the places of word i."""
    n, ids, out = len(model.words_), contexts.ids, np.zeros(len(model.words_))
    places = np.flatnonzero(ids == i)
    number = np.searchsorted(contexts.starts, places, side="right") - 1
    if model.context != "window":
        for s, times in zip(*np.unique(number, return_counts=True), strict=True):
            found = np.unique(ids[contexts.starts[s] : contexts.starts[s + 1]])
            out[found] += 1.0
            out[i] -= float(times == 1)
        return out
    begins, ends = contexts.starts[number], contexts.starts[number + 1]
    for d in range(min(int(model.window), len(ids)), 0, -1):
        weight = 1.0 / d if model.weighting == "harmonic" else 1.0
        around = ids[places[places + d < ends] + d]
        out += weight * np.bincount(around, minlength=n)
        if model.symmetric:
            around = ids[places[places - d >= begins] - d]
            out += weight * np.bincount(around, minlength=n)
    return out


def _away(found: Array, expected: Array) -> float:
    """The largest deviation, relative to what is expected; infinite where nothing is."""
    gap = np.abs(found - expected)
    if np.isnan(gap).any():
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(gap == 0.0, 0.0, gap / expected).max(initial=0.0))


def _rows_claim(model: Any, contexts: Any, N: Any, chosen: Ints, slack: float) -> Claim:
    away = [_away(N[[i]].toarray()[0], _row(model, contexts, int(i))) for i in chosen]
    worst = float(np.max(away))
    statement = (
        f"the rows of {len(away)} words, counted again, differ by a share {worst:.2g} at most"
    )
    return Claim.check("rows", statement, Kind.EXACT, worst, slack, "TXT-2")


def _product_claim(N: Any, r: Array, product: Array, terms: float, slack: float) -> Claim:
    away = _away(N @ r, product)
    longest = float(np.diff(N.indptr).max(initial=0))
    bound = slack + (longest + terms) * _EPS if slack else 0.0
    statement = (
        f"N r for a random r is what r adds up to around each word, up to a share {away:.2g}"
    )
    return Claim.check("product", statement, Kind.EXACT, away, bound, "TXT-2")


def _mass_claim(N: Any, mass: float, slack: float) -> Claim:
    total = math.fsum(N.data) if np.isfinite(N.data).all() else math.nan
    away = _away(np.array([total]), np.array([mass]))
    statement = f"the counts add up to {total:.17g}, and the pairs of the corpus to {mass:.17g}"
    return Claim.check("mass", statement, Kind.EXACT, away, slack, "TXT-2")


def _symmetry_claim(N: Any) -> Claim:
    gap = abs(N - N.T)
    away = float(gap.max()) if gap.nnz else 0.0
    statement = f"n_ij and n_ji differ by {away:.2g} at most"
    return Claim.check("symmetry", statement, Kind.EXACT, away, 0.0, "TXT-2")


def _words_claim(model: Any, contexts: Any) -> Claim:
    found = np.bincount(contexts.ids, minlength=len(model.words_))
    wrong = int((found != np.asarray(model.word_counts_)).sum())
    wrong += int(contexts.n_words != model.n_words_)
    statement = f"{wrong} of the words' counts are not those of this corpus"
    return Claim.check("words", statement, Kind.EXACT, float(wrong), 0.0, "TXT-2")
