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
_BLOCK = 1 << 18  # places, or entries, at a time
_SUMS = 1 << 22  # sums around places that are held at a time: 32 MiB
_EPS = float(np.finfo(np.float64).eps)
_ROWS = 4  # words whose rows are counted again; eight times as many by verify


def claims(model: Any, contexts: Any, *, full: bool) -> list[Claim]:
    """The claims about fitted counts on the contexts of the fit, as numbers."""
    n, N = len(model.words_), sp.csr_array(model.counts_)
    total, within = len(contexts.ids), int(contexts.starts[-1])
    if N.shape != (n, n) or len(np.asarray(model.word_counts_)) != n or within != total:
        why = f"counts of shape {N.shape} for {n} words, and contexts of {within} words of {total}"
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
    window = _reach(model, contexts)
    multiple = math.lcm(*range(1, min(window, 64) + 1))  # of 64 it has more than 64 bits already
    room = 2.0**60 / ((len(contexts.ids) + 1) * (1 + math.log2(window)))
    rounded = 0.0 if multiple <= room / 4 else 4.0 * window / room
    return (window + 4.0) * _EPS + rounded


def _reach(model: Any, contexts: Any) -> int:
    """The largest distance that can occur, at least 1."""
    return min(int(model.window), int(np.diff(contexts.starts).max(initial=1)))


def _stretches(starts: Ints, size: int) -> Iterator[tuple[int, int]]:
    """Numbers first..last of what lies between starts, about ``size`` together, or one alone."""
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + size, side="right")) - 1
        last = min(max(last, first + 1), len(starts) - 1)
        yield first, last
        first = last


def _scan(model: Any, contexts: Any, r: Array) -> tuple[Array, float, float]:
    """N r, the sum of N, and the most terms of a row of N r, by adding up r around each place."""
    if model.context != "window":
        return _scan_contexts(contexts, r)
    n, ids, starts = len(r), contexts.ids, contexts.starts
    product, mass, reach = np.zeros(n), 0.0, _reach(model, contexts)
    some = max(1, _SUMS // n)  # distances
    for longest in range(reach, 0, -some):  # these first: they have the small weights
        distances = range(longest, max(longest - some, 0), -1)
        sums = np.zeros((len(distances), n))
        for first in range(0, len(ids), _BLOCK):
            places = np.arange(first, min(first + _BLOCK, len(ids)))
            ends = starts[np.searchsorted(starts, places, side="right")]
            for total, d in zip(sums, distances, strict=True):
                p = places[places + d < ends]
                left, right = ids[p], ids[p + d]
                total += np.bincount(left, r[right], minlength=n)
                if model.symmetric:
                    total += np.bincount(right, r[left], minlength=n)
        for total, d in zip(sums, distances, strict=True):
            weight = 1.0 / d if model.weighting == "harmonic" else 1.0
            product += weight * total
            pairs = np.maximum(np.diff(starts) - d, 0).sum()
            mass += weight * float(pairs) * (2.0 if model.symmetric else 1.0)
    return product, mass, float(reach)


def _scan_contexts(contexts: Any, r: Array) -> tuple[Array, float, float]:
    """The same for contexts: of each the sum of r over its words, without that of the word itself."""
    n, lengths = len(r), np.diff(contexts.starts)
    product, mass = np.zeros(n), 0.0
    for first, last in _stretches(contexts.starts, _BLOCK):
        here = slice(int(contexts.starts[first]), int(contexts.starts[last]))
        number = np.repeat(np.arange(last - first), lengths[first:last])
        keys, times = np.unique(number * n + contexts.ids[here], return_counts=True)
        where, word = keys // n, keys % n
        total = np.bincount(where, r[word], minlength=last - first)
        own = np.where(times > 1, 0.0, r[word])
        product += np.bincount(word, total[where] - own, minlength=n)
        size = np.bincount(where, minlength=last - first).astype(np.float64)
        mass += float((size * (size - 1.0)).sum()) + float((times > 1).sum())
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
    for d in range(_reach(model, contexts), 0, -1):
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
    away = _asymmetry(N)
    statement = f"n_ij and n_ji differ by {away:.2g} at most"
    return Claim.check("symmetry", statement, Kind.EXACT, away, 0.0, "TXT-2")


def _asymmetry(N: Any) -> float:
    """The largest |n_ij - n_ji|, infinite where only one of them is stored; N' is not built.

    The columns of some rows i are what the rows j hold next: the rows i come in order, and so do the entries
    of each row j.
    """
    if not N.has_canonical_format:
        N = N.copy()
        N.sum_duplicates()
    worst, starts = 0.0, N.indptr.astype(np.int64)
    at, ends = starts[:-1].copy(), starts[1:]
    for first, last in _stretches(starts, max(_BLOCK, len(at))):
        columns = N[first:last].tocsc()
        count = np.diff(columns.indptr)
        if (at + count > ends).any():
            return math.inf
        places = np.repeat(at - columns.indptr[:-1], count) + np.arange(columns.nnz)
        if not np.array_equal(N.indices[places], first + columns.indices):
            return math.inf
        gap = np.abs(N.data[places] - columns.data)
        worst = float(np.maximum(worst, gap.max(initial=0.0)))  # NaN stays
        at += count
    return worst


def _words_claim(model: Any, contexts: Any) -> Claim:
    ids, found = contexts.ids, np.zeros(len(model.words_), dtype=np.int64)
    for first in range(0, len(ids), _BLOCK):
        found += np.bincount(ids[first : first + _BLOCK], minlength=len(found))
    wrong = int((found != np.asarray(model.word_counts_)).sum())
    wrong += int(contexts.n_words != model.n_words_)
    statement = f"{wrong} of the words' counts are not those of this corpus"
    return Claim.check("words", statement, Kind.EXACT, float(wrong), 0.0, "TXT-2")
