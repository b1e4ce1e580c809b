r"""What is claimed about word vectors by negative sampling, decided in float64 on pairs that are drawn anew.

A pair is drawn as the objective counts it: each pair of places of a text at a distance t has the weight
(window - t + 1) / window, the chance that a random reach of 1..window takes it in. (With CBOW each place has
the same weight, and a random reach.) The noise words come from count^power. The drawing has a fixed seed, so
that anyone draws the same pairs. The loss of a pair is

    l = log(1 + e^{-<h, z_j>}) + sum_{j'} log(1 + e^{<h, z_j'>}),

h the vector of the input. All losses lie in [0, (1 + k) log(1 + e^m)], m the largest product of norms: the
empirical Bernstein inequality (Maurer and Pontil, 2009) bounds the mean over all pairs and noise by that
over the drawn ones. At zero outputs the loss is (1 + k) log 2: chance.

- "loss": the recorded loss is that of these vectors on the drawn pairs.
- "better than chance": the mean loss over *all* pairs of the text is below chance, with probability 0.95;
  undecided where chance lies within the radius, uninformative where a score that is the same for all pairs
  does as well: its loss is log(1 + k) + k log(1 + 1/k).
- "held-out loss": the same for texts that no step saw, where some were held out: those that the recorded seed
  draws, and no copies of others. (Their words were counted.)
- "words": the words occur as often as recorded.
- "gradient": for a few pairs with one noise word each, the squared length of the step that the kernel takes
  at these vectors is the derivative of the pair's loss along its gradient, by a central difference.
- "every word": the recorded mean loss of all words, each with another one as noise: the drawn pairs leave
  out most of the rare words.
- "subwords": the same with vectors made of n-grams alone, which is what words never seen get; n-grams of some
  words, hashed again in plain Python, are those of the compiled code, and have a row.
- Of the full objective (``solver="full"``) instead: "stationary", and, where the dimension is at least the
  number of words and all pairs occur, "PMI": <v_i, z_j> = log(n_ij / (n_i p_j)) - log k.

None of these is a claim of optimality: the problem is not convex in both sides together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit

from ..certificate import Claim, Kind
from ..model_selection.bounds import empirical_bernstein
from ._held_out import beside_constant, constant_loss, copies_of, other_split, wrong_counts
from .ngrams import END, hash_ngrams, ngrams

__all__ = [
    "claims",
    "from_ngrams",
    "noise_claim",
    "noise_loss",
    "noise_shares",
    "pair_counts",
    "probes_of",
    "sampled_loss",
]

Array = NDArray[np.float64]
_SEED = 20_130_917
_PAIRS = 20_000
_BLOCK = 1 << 17  # numbers of output vectors that are held at a time
_DELTA = 0.05
_STATIONARY = 1e-5
_PMI = 1e-2
_STEPS, _HASHED = 8, 64  # pairs whose step, and words whose n-grams, are looked at one by one
_TABLE = (
    1.01 * 2.0**-11
)  # the error of a kernel's sigmoid: from a table of steps 1/256, and 0 or 1 beyond +-8


def claims(model: Any, data: Any) -> list[Claim]:
    """The claims about a fitted model, on the corpus of its fit as numbers."""
    shapes = {np.shape(model.vectors_), np.shape(model.context_vectors_)}
    if shapes != {(len(model.words_), model.n_components)}:
        words = f"vectors of shapes {sorted(shapes)} for {len(model.words_)} words"
        return [Claim.check("loss", words, Kind.EXACT, math.nan, 0.0, "TXT-5")]
    if not np.isfinite(model.vectors_).all() or not np.isfinite(model.context_vectors_).all():
        words = "the vectors hold NaN or infinity"
        return [Claim.check("loss", words, Kind.EXACT, math.nan, 0.0, "TXT-5")]
    seen, aside = model._parts_of(data)
    if not _pairs_in(seen):
        words = "no text has two known words: there is no pair"
        return [Claim.check("loss", words, Kind.EXACT, math.nan, 0.0, "TXT-5")]
    drawn = _Drawn(model, seen)
    found = [_recorded(model, drawn), _chance("better than chance", "the text", drawn)]
    found.append(_words(model, data))
    rows = model.vectors_, model.context_vectors_
    found.append(noise_claim(*rows, "every word", model.noise_loss_, "TXT-5"))
    if model.subwords is not None:
        found.append(_of_ngrams(model))
    if aside is not None:
        found.append(_held_out(model, data, aside))
    return found + (_whole(model, seen) if model.solver == "full" else [_gradient(model)])


def sampled_loss(model: Any, data: Any) -> float:
    """The mean loss over the drawn pairs."""
    return float(_Drawn(model, data).losses.mean())


def noise_loss(V: Any, Z: Any) -> float:
    """The mean of log(1 + e^{<v_i, z_j>}), each word i with one other word j, each of them once."""
    others = np.random.default_rng(_SEED).permutation(len(Z))
    total, step = 0.0, max(1, _BLOCK // Z.shape[1])
    for first in range(0, len(V), step):
        rows = slice(first, first + step)
        scores = np.einsum("nd,nd->n", V[rows], Z[others[rows]], dtype=np.float64)
        total += float(np.logaddexp(0.0, scores).sum())
    return total / len(V)


def noise_claim(V: Any, Z: Any, name: str, recorded: float, source: str) -> Claim:
    """Whether the recorded :func:`noise_loss` is that of these vectors; it leaves out no word."""
    loss = noise_loss(V, Z)
    words = (
        f"the mean loss of all {len(V)} words, each with another one as noise, is {loss:.5g}; recorded is "
        f"{recorded:.5g}"
    )
    away = abs(loss - recorded)
    return Claim.check(name, words, Kind.EXACT, away, 1e-12 * (1.0 + loss), source)


def from_ngrams(model: Any) -> Array:
    """Vectors of the words from n-grams alone, as those of words never seen; NaN where a bucket lacks."""
    indptr, asked = model._hashing().table(model.words_)
    at = np.minimum(np.searchsorted(model.buckets_, asked), len(model.buckets_) - 1)
    share = 1.0 / np.maximum(np.diff(indptr), 1)
    share = np.where(model.buckets_[at] == asked, np.repeat(share, np.diff(indptr)), math.nan)
    shape = (len(model.words_), len(model.buckets_))
    rows = np.asarray(model.bucket_vectors_, dtype=np.float64)
    return np.asarray(sp.csr_array((share, at, indptr), shape=shape) @ rows)


def noise_shares(counts: Any, power: float) -> Array:
    """The probability of each word to be drawn as noise."""
    weights = np.asarray(counts / np.max(counts), dtype=np.float64) ** power
    return np.asarray(weights / weights.sum())


# ---------------------------------------------------------------------------- pairs that are drawn


class _Drawn:
    """Pairs of a text, and their losses."""

    def __init__(self, model: Any, data: Any) -> None:
        rng = np.random.default_rng(_SEED)
        ids, starts, k = np.asarray(data.ids), data.starts, int(model.negative)
        V, Z = model.vectors_, model.context_vectors_
        if model.architecture == "cbow":
            H, side = _window_means(rng, V, ids, starts, int(model.window))
        else:
            own, side = _pairs(rng, starts, int(model.window))
            H = V[ids[own]]
        upto = np.cumsum(noise_shares(model.word_counts_, model.noise_power))
        upto /= upto[-1]
        signs = np.append(-1.0, np.ones(k))
        self.losses, step = np.empty(_PAIRS), max(1, _BLOCK // ((k + 1) * V.shape[1]))
        for first in range(0, _PAIRS, step):
            rows = slice(first, min(first + step, _PAIRS))
            words = np.searchsorted(upto, rng.random((rows.stop - first, k)), "right")
            outs = np.column_stack([ids[side[rows]], words])
            scores = np.einsum("nd,nkd->nk", H[rows], Z[outs], dtype=np.float64)
            self.losses[rows] = np.logaddexp(0.0, signs * scores).sum(axis=1)
        largest = math.prod(_longest(part) for part in (V, Z))
        self.most = (1 + k) * float(np.logaddexp(0.0, largest))
        self.chance, self.constant = (1 + k) * math.log(2.0), constant_loss(k)


def _longest(rows: Any) -> float:
    return math.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64).max())


def _pairs_in(data: Any) -> bool:
    return bool((np.diff(data.starts) > 1).any())


def _pairs(rng: Any, starts: NDArray[np.int64], window: int) -> tuple[Any, Any]:
    """Two places of one segment, with the weight window - t + 1 at distance t.

    Of n - t pairs at distance t in a segment of n words, the weights up to t are F(t) = sum_{s <= t}
    (window - s + 1)(n - s): a segment is drawn by its F, t by bisection, then the place.
    """
    sizes = np.diff(starts)
    segments = np.flatnonzero(sizes > 1)
    n = sizes[segments].astype(np.float64)

    def weight(t: Any, n: Any) -> Any:
        squares = t * (t + 1.0) * (2.0 * t + 1.0) / 6.0
        return (window + 1.0) * n * t - (window + 1.0 + n) * t * (t + 1.0) / 2.0 + squares

    total = weight(np.minimum(n - 1.0, window), n)
    ends = np.cumsum(total)
    which = np.searchsorted(ends, rng.random(_PAIRS) * ends[-1], "right")
    which = np.minimum(which, len(ends) - 1)
    n, asked = n[which], rng.random(_PAIRS) * total[which]
    low, high = np.ones(_PAIRS), np.minimum(n - 1.0, window)
    while (low < high).any():  # the least t with F(t) > asked
        middle = np.floor((low + high) / 2.0)
        above = weight(middle, n) > asked
        low, high = np.where(above, low, middle + 1.0), np.where(above, middle, high)
    place = starts[segments[which]] + (rng.random(_PAIRS) * (n - low)).astype(np.int64)
    other, turned = place + low.astype(np.int64), rng.random(_PAIRS) < 0.5
    return np.where(turned, other, place), np.where(turned, place, other)


def _window_means(
    rng: Any, V: Array, ids: Any, starts: NDArray[np.int64], window: int
) -> tuple[Array, Any]:
    """The mean vector of a random window around a random place with a neighbour, and that place."""
    sizes = np.diff(starts)
    segments = np.flatnonzero(sizes > 1)
    ends = np.cumsum(sizes[segments])
    at = rng.integers(0, ends[-1], _PAIRS)
    which = np.searchsorted(ends, at, "right")
    own = segments[which]
    centre = starts[own] + at - (ends[which] - sizes[own])
    reach = rng.integers(1, window + 1, _PAIRS)
    low = np.maximum(starts[own], centre - reach)
    high = np.minimum(starts[own + 1] - 1, centre + reach)
    H = np.zeros((_PAIRS, V.shape[1]))
    furthest = min(window, int(sizes.max()) - 1)
    for step in range(-furthest, furthest + 1):
        place = centre + step
        inside = (place >= low) & (place <= high) & (step != 0)
        H[inside] += V[ids[place[inside]]]
    return H / (high - low)[:, None], centre


# ---------------------------------------------------------------------------- claims


def _recorded(model: Any, drawn: _Drawn) -> Claim:
    loss = float(drawn.losses.mean())
    words = f"the mean loss of {_PAIRS} drawn pairs is {loss:.5g}; recorded is {model.loss_:.5g}"
    floor = 64 * np.finfo(np.float64).eps * drawn.most
    return Claim.check("loss", words, Kind.EXACT, abs(loss - model.loss_), floor, "TXT-5")


def _of_ngrams(model: Any) -> Claim:
    """What words never seen get; the n-grams of some words are hashed again, one by one."""
    buckets, (n, k) = model.buckets_, np.shape(model.bucket_vectors_)
    if n != len(buckets) or k != model.n_components:
        words = f"rows of shape {(n, k)} for {len(buckets)} buckets"
        return Claim.check("subwords", words, Kind.EXACT, math.nan, 0.0, "TXT-5")
    shortest, longest = model.subwords
    some, wrong = model.words_[:: -(-len(model.words_) // _HASHED)], 0
    indptr, asked = model._hashing().table(some)
    for k, word in enumerate(some):
        grams = [] if word == END else ngrams(word, shortest, longest)
        hashed = hash_ngrams(grams) % model.n_buckets
        same = np.array_equal(np.sort(asked[indptr[k] : indptr[k + 1]]), np.sort(hashed))
        wrong += not (same and np.isin(hashed, buckets).all())
    if wrong:
        words = f"n-grams of {wrong} of {len(some)} words, hashed again, are others or have no row"
        return Claim.check("subwords", words, Kind.EXACT, float(wrong), 0.0, "TXT-5")
    own, recorded = from_ngrams(model), model.subword_loss_
    return noise_claim(own, model.context_vectors_, "subwords", recorded, "TXT-5")


def _chance(name: str, where: str, drawn: _Drawn) -> Claim:
    """Shown, refuted, or undecided where chance lies within the radius."""
    radius = empirical_bernstein(drawn.losses, _DELTA, (0.0, drawn.most))
    loss = float(drawn.losses.mean())
    words = (
        f"the loss of a pair of {where} is {loss:.4g} ± {radius:.2g} on average, with probability "
        f"{1 - _DELTA:g}; chance is {drawn.chance:.4g}"
    )
    ends = loss - radius, loss + radius
    claim = Claim.criterion(name, words, Kind.STATISTICAL, loss, *ends, drawn.chance, "TXT-5")
    return beside_constant(claim, drawn.constant, ends[1] - drawn.constant)


def _words(model: Any, data: Any) -> Claim:
    wrong = wrong_counts(model, data.ids)
    words = f"{wrong} of the words' counts are not those of these texts"
    return Claim.check("words", words, Kind.EXACT, wrong, 0.0, "TXT-5")


def _held_out(model: Any, data: Any, aside: Any) -> Claim:
    name, kind = "held-out loss", Kind.STATISTICAL
    broken = other_split(model, copies_of(data.ids, data.starts))
    if broken:
        return Claim.check(name, broken, kind, 1.0, 0.0, "TXT-5")
    if _pairs_in(aside):
        return _chance(name, "the held-out texts", _Drawn(model, aside))
    why = "no held-out text has two known words"
    return Claim.undecided(name, why, kind, "TXT-5")


def probes_of(n_words: int) -> NDArray[np.int64]:
    """A few inputs, outputs and noise words whose step is looked at, all different."""
    count = min(_STEPS, n_words // 3)
    return np.random.default_rng(7).permutation(n_words)[: 3 * count].reshape(count, 3)


def _gradient(model: Any) -> Claim:
    """The step in h and z_o, from where they are; its parts are off by the errors of two sigmoids at most."""
    triples, recorded = probes_of(len(model.vectors_)), np.asarray(model.probe_slopes_)
    if model.device is not None or not len(triples):
        why = (
            "the steps of a GPU are not taken one by one"
            if len(triples)
            else "it takes three words"
        )
        return Claim.undecided("gradient", why, Kind.EXACT, "TXT-5")
    worst, signs = 0.0 if len(recorded) == len(triples) else math.nan, np.array([-1.0, 1.0])
    for (i, o, j), theirs in zip(triples, recorded):
        h = model.vectors_[i].astype(np.float64)
        Z = model.context_vectors_[[o, j]].astype(np.float64)
        slopes = signs * expit(signs * (Z @ h))
        move, turn = slopes @ Z, np.stack([slopes[0] * h, np.zeros_like(h)])
        square = float(move @ move + np.square(turn).sum())
        length = 1e-4 / max(float(np.abs(turn @ h + Z @ move).max()), 1e-8)

        def value(t: float, h: Any = h, Z: Any = Z, move: Any = move, turn: Any = turn) -> float:
            return float(np.logaddexp(0.0, signs * ((Z + t * turn) @ (h + t * move))).sum())

        slope = (value(length) - value(-length)) / (2.0 * length)
        sizes = np.linalg.norm(Z, axis=1)
        away = _TABLE * math.hypot(sizes.sum(), np.linalg.norm(h))
        away += 2.0**-22 * float(np.linalg.norm(h) + sizes.sum())  # of float32
        allowed = 2.0 * math.sqrt(square) * away + away**2 + 1e-6 * square + 1e-12 / length
        worst = float(np.maximum(worst, abs(slope - float(theirs)) / allowed))  # NaN stays
    words = (
        f"the steps of {len(triples)} pairs are gradients: squared lengths and central differences of the "
        f"loss along them differ by {worst:.1g} of what the kernel's table of the sigmoid may cost"
    )
    return Claim.check("gradient", words, Kind.EXACT, worst, 1.0, "TXT-5")


# ---------------------------------------------------------------------------- the full objective


def pair_counts(data: Any, n_words: int, window: int) -> Array:
    """Expected numbers of pairs over the random reach: distance t counts (window - t + 1) / window."""
    ids, starts = np.asarray(data.ids, dtype=np.int64), data.starts
    sizes = np.diff(starts)
    segment = np.repeat(np.arange(len(sizes)), sizes)
    found = np.zeros((n_words, n_words))
    for t in range(1, min(window, int(sizes.max(initial=1)) - 1) + 1):
        same = segment[t:] == segment[:-t]
        pairs = ids[:-t][same] * n_words + ids[t:][same]
        found += np.bincount(pairs, minlength=n_words**2).reshape(n_words, n_words) * (
            (window - t + 1) / window
        )
    return found + found.T


def _whole(model: Any, data: Any) -> list[Claim]:
    """Stationarity of the full objective, and the identity of its minimum."""
    V, Z = (np.asarray(part, dtype=np.float64) for part in (model.vectors_, model.context_vectors_))
    counts = pair_counts(data, len(V), int(model.window))
    counts /= counts.sum()
    noise = noise_shares(model.word_counts_, model.noise_power)
    drawn = model.negative * counts.sum(axis=1, keepdims=True) * noise
    S = V @ Z.T
    G = drawn * expit(S) - counts * expit(-S)
    size = float(np.linalg.norm(drawn + counts))  # of the slopes, at most
    gradient = math.hypot(*(float(np.linalg.norm(part)) for part in (G @ Z, G.T @ V)))
    scale = size * math.hypot(*(float(np.linalg.norm(part)) for part in (V, Z))) + 1e-300
    words = (
        f"the gradient of the full objective is {gradient / scale:.1e} of its largest possible size"
    )
    found = [
        Claim.check("stationary", words, Kind.STATIONARY, gradient / scale, _STATIONARY, "TXT-5")
    ]
    if model.n_components < len(V) or not (counts > 0).all():
        why = (
            "the products are the shifted PMI where n_components is at least the number of words and all "
            "pairs of words occur: not so here"
        )
        return [*found, Claim.undecided("PMI", why, Kind.EXACT, "TXT-5")]
    pmi = np.log(counts / drawn)
    gap = float(np.abs(S - pmi).max())
    words = f"the products differ from PMI - log k by at most {gap:.1e}"
    return [*found, Claim.check("PMI", words, Kind.EXACT, gap, _PMI, "TXT-5")]
