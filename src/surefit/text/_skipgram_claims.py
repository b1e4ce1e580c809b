r"""What is claimed about word vectors by negative sampling, decided in float64 on pairs that are drawn anew.

A pair is drawn as the objective says: a place of the text at random, a window of 1..window words at random, a
word of it at random with the weight of the window; the noise words from count^power. The drawing has a fixed
seed, so that anyone draws the same pairs. Its loss is

    l = log(1 + e^{-<h, z_j>}) + sum_{j'} log(1 + e^{<h, z_j'>}),

h the vector of the input. All losses lie in [0, (1 + k) log(1 + e^m)], m the largest product of norms: the
empirical Bernstein inequality (Maurer and Pontil, 2009) bounds the mean over all pairs and noise by that
over the drawn ones. At zero outputs the loss is (1 + k) log 2: chance.

- "loss": the recorded loss is that of these vectors on the drawn pairs.
- "better than chance": the mean loss over *all* pairs of the text is below chance, with probability 0.95;
  undecided where chance lies within the radius.
- "held-out loss": the same for texts that the fit did not see, where some were put aside.
- "gradient": the slope of the loss along a random direction, by the formula and by differences.
- Of the full objective (``solver="full"``): "stationary", and, where the dimension is at least the number of
  words and all pairs occur, "PMI": <v_i, z_j> = log(n_ij / (n_i p_j)) - log k.

None of these is a claim of optimality: the problem is not convex in both sides together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..certificate import Claim, Kind
from ..model_selection.bounds import empirical_bernstein

__all__ = ["claims", "pair_counts", "sampled_loss"]

_PAIRS = 20_000
_DELTA = 0.05
_STATIONARY = 1e-5
_PMI = 1e-2


def claims(model: Any, data: Any, *, full: bool) -> list[Claim]:
    """The claims about a fitted model, on the corpus of its fit as numbers."""
    if not np.isfinite(model.vectors_).all() or not np.isfinite(model.context_vectors_).all():
        words = "the vectors hold NaN or infinity"
        return [Claim.check("loss", words, Kind.EXACT, math.nan, 0.0, "TXT-5")]
    seen, aside = model._parts_of(data)
    drawn = _Drawn(model, seen)
    found = [_recorded(model, drawn), _chance("better than chance", "the text", model, drawn)]
    if aside is not None:
        found.append(_chance("held-out loss", "the texts put aside", model, _Drawn(model, aside)))
    found.append(_slope(drawn))
    if model.solver == "full":
        found += _whole(model, seen)
    return found


def sampled_loss(model: Any, data: Any) -> float:
    """The mean loss over the drawn pairs."""
    return float(_Drawn(model, data).losses.mean())


class _Drawn:
    """Pairs of a text, with their inputs, outputs and losses."""

    def __init__(self, model: Any, data: Any) -> None:
        rng = np.random.default_rng(20_130_917)
        ids, starts = np.asarray(data.ids), data.starts
        k, window = int(model.negative), int(model.window)
        self.negative = k
        noise = model.word_counts_.astype(np.float64) ** model.noise_power
        centre, reach, low, high = _places(rng, starts, window)
        self.H, side = _inputs(model, ids, centre, reach, low, high, rng)
        drawn = rng.choice(len(noise), size=(len(centre), k), p=noise / noise.sum())
        outs = np.column_stack([ids[side], drawn])
        self.Z = np.asarray(model.context_vectors_, dtype=np.float64)[outs]
        self.signs = np.append(-1.0, np.ones(k))
        self.scores = np.einsum("nd,nkd->nk", self.H, self.Z)
        self.losses = np.logaddexp(0.0, self.signs * self.scores).sum(axis=1)
        lengths = np.linalg.norm(model.vectors_.astype(np.float64), axis=1).max()
        lengths *= np.linalg.norm(model.context_vectors_.astype(np.float64), axis=1).max()
        self.most = (1 + k) * float(np.logaddexp(0.0, lengths))

    @property
    def chance(self) -> float:
        return (1 + self.negative) * math.log(2.0)


def _places(rng: Any, starts: NDArray[np.int64], window: int) -> tuple[Any, ...]:
    """Places with a neighbour, the reach of their windows, and the first and last place of these."""
    sizes = np.diff(starts)
    segments = np.flatnonzero(sizes > 1)
    if not len(segments):
        raise ValueError("no text has two known words: there are no pairs to learn from.")
    ends = np.cumsum(sizes[segments])
    at = rng.integers(0, ends[-1], _PAIRS)
    which = np.searchsorted(ends, at, "right")
    own = segments[which]
    centre = starts[own] + at - (ends[which] - sizes[own])
    reach = rng.integers(1, window + 1, _PAIRS)
    return (
        centre,
        reach,
        np.maximum(starts[own], centre - reach),
        np.minimum(starts[own + 1] - 1, centre + reach),
    )


def _inputs(model: Any, ids: Any, centre: Any, reach: Any, low: Any, high: Any, rng: Any) -> Any:
    """The input of each pair, and the place of the output."""
    other = low + (rng.random(len(centre)) * (high - low)).astype(np.int64)
    other += other >= centre
    V = np.asarray(model.vectors_, dtype=np.float64)
    if model.architecture != "cbow":
        return V[ids[centre]], other
    H = np.zeros((len(centre), V.shape[1]))
    for step in range(-int(model.window), int(model.window) + 1):
        place = centre + step
        inside = (place >= low) & (place <= high) & (step != 0)
        H[inside] += V[ids[place[inside]]]
    return H / (high - low)[:, None], centre


def _recorded(model: Any, drawn: _Drawn) -> Claim:
    loss = float(drawn.losses.mean())
    words = f"the mean loss of {_PAIRS} drawn pairs is {loss:.5g}; recorded is {model.loss_:.5g}"
    floor = 64 * np.finfo(np.float64).eps * drawn.most
    return Claim.check("loss", words, Kind.EXACT, abs(loss - model.loss_), floor, "TXT-5")


def _chance(name: str, where: str, model: Any, drawn: _Drawn) -> Claim:
    """Shown, refuted, or undecided where chance lies within the radius."""
    radius = empirical_bernstein(drawn.losses, _DELTA, (0.0, drawn.most))
    loss = float(drawn.losses.mean())
    words = (
        f"the loss of a pair of {where} is {loss:.4g} ± {radius:.2g} on average, with probability "
        f"{1 - _DELTA:g}; chance is {drawn.chance:.4g}"
    )
    if loss - radius <= drawn.chance < loss + radius:
        return Claim.undecided(name, words, Kind.STATISTICAL, "TXT-5")
    return Claim.check(name, words, Kind.STATISTICAL, loss + radius, drawn.chance, "TXT-5")


def _slope(drawn: _Drawn) -> Claim:
    """d/dt of the mean loss along random changes of inputs and outputs, in two ways."""
    rng, n = np.random.default_rng(7), 256
    H, Z, signs = drawn.H[:n], drawn.Z[:n], drawn.signs
    A, B = rng.standard_normal(H.shape), rng.standard_normal(Z.shape)
    A, B = A / math.sqrt(A.shape[1]), B / math.sqrt(B.shape[2])

    def loss(t: float) -> Any:
        scores = np.einsum("nd,nkd->nk", H + t * A, Z + t * B)
        return np.logaddexp(0.0, signs * scores).sum(axis=1).mean()

    factor = signs * expit(signs * np.einsum("nd,nkd->nk", H, Z))
    formula = (
        (factor * (np.einsum("nd,nkd->nk", A, Z) + np.einsum("nd,nkd->nk", H, B)))
        .sum(axis=1)
        .mean()
    )
    t = 1e-4
    slope = (loss(t) - loss(-t)) / (2 * t)
    size = abs(formula) + float(drawn.losses[:n].mean())
    words = f"the slope along a random direction is {formula:.5g} by the formula, {slope:.5g} by differences"
    return Claim.check("gradient", words, Kind.EXACT, abs(slope - formula), 1e-5 * size, "TXT-5")


def pair_counts(data: Any, n_words: int, window: int) -> NDArray[np.float64]:
    """Expected numbers of pairs over the random reach: distance t counts (window - t + 1) / window."""
    ids, starts = np.asarray(data.ids, dtype=np.int64), data.starts
    segment = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    found = np.zeros((n_words, n_words))
    for t in range(1, window + 1):
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
    noise = model.word_counts_.astype(np.float64) ** model.noise_power
    drawn = model.negative * counts.sum(axis=1, keepdims=True) * (noise / noise.sum())
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
