r"""What is claimed about sentence vectors, decided in float64 by code that no solver uses.

The loss of a sentence is summed over its words w_t, h_t the mean of the others, N_t words drawn at random:

    sum_t log(1 + exp(-<u_{w_t}, h_t>)) + sum_{v in N_t, v != w_t} log(1 + exp(<u_v, h_t>)).

The drawn words are a function of a fixed seed and the counts, so that everyone draws the same.

- "loss": the recorded mean over some sentences is that of these vectors.
- "better than untrained": it is below that of output vectors 0, log 2 for each product; by less than a
  hundredth, or above a score that is the same for all products, is uninformative.
- "words": the words occur as often as recorded.
- "every word": the recorded mean loss of all words, each with another one as noise: some sentences leave out
  most of the rare words.
- "held-out loss": where sentences were held out (those that the recorded seed draws; copies of one fall on
  one side, so that no step saw one), the mean loss of a word over all of them
  and all draws of noise is below that of output vectors 0. Words, and noise for each, are drawn with a fixed
  seed; the loss less log 2 a product lies in [-(1 + k) log 2, (1 + k) log((1 + e^m) / 2)], m the largest
  product of norms, and the empirical Bernstein inequality bounds its mean. Undecided where 0 lies within the
  radius. The recorded mean over some of them is that of these vectors.
- "gradient": the squared length of the kernel's own step over some sentences is the derivative of the loss
  along the gradient, by a central difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..certificate import Claim, Kind
from ..model_selection.bounds import empirical_bernstein
from ._held_out import (
    below_claim,
    beside_constant,
    constant_loss,
    copies_of,
    other_split,
    wrong_counts,
)
from ._skipgram_claims import noise_claim

__all__ = ["claims", "drawn", "noise_shares", "some"]

Array = NDArray[np.float64]
_SEED, _SOME, _STEPS = 20180301, 256, 4
_WORDS = 5_000  # that are drawn of what was held out
_DELTA = 0.05


def noise_shares(counts: Any) -> Array:
    """The probability of each word to be drawn: the square root of its count."""
    roots = np.sqrt(np.asarray(counts, dtype=np.float64))
    return np.asarray(roots / roots.sum())


def drawn(counts: Any, size: int) -> NDArray[np.int32]:
    """Words drawn with the fixed seed."""
    p = noise_shares(counts)
    return np.random.default_rng(_SEED).choice(len(p), size, p=p).astype(np.int32)


def some(
    encoded: Any, rows: Any, count: int = _SOME
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Words and starts of some of the sentences of two words or more, spread over ``rows``."""
    rows = rows[np.diff(encoded.starts)[rows] > 1]
    if len(rows) > count:
        rows = rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]
    parts = [np.asarray(encoded.ids[encoded.starts[i] : encoded.starts[i + 1]]) for i in rows]
    starts = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return np.concatenate([np.empty(0, np.int32), *parts]).astype(np.int32), starts


def claims(model: Any, encoded: Any, train: Any, held: Any) -> list[Claim]:
    """The claims; ``train`` and ``held`` are the numbers of the sentences of each part."""
    shapes = {np.shape(model.vectors_), np.shape(model.output_vectors_)}
    if shapes != {(len(model.words_), model.n_components)}:
        why = f"vectors of shapes {sorted(shapes)} for {len(model.words_)} words"
        return [Claim.check("loss", why, Kind.EXACT, math.nan, 0.0, "TXT-7")]
    found, free, size = _mean_loss(model, *some(encoded, train))
    away = abs(float(model.loss_) - found)
    bound = 1e-10 * (1.0 + size)
    constant = constant_loss(max(free / math.log(2.0) - 1.0, 0.0))
    out = [
        Claim.check(
            "loss",
            f"the mean loss of a word is {found:.6g}, which the record misses by {away:.2g}",
            Kind.EXACT, away, bound, "TXT-7",
        ),
        beside_constant(
            below_claim(
                "better than untrained",
                f"the mean loss of a word is {found:.6g}, that of untrained vectors {free:.6g}",
                found, free, "TXT-7",
            ),
            constant, found - constant,
        ),
        _words_claim(model, encoded),
        _gradient_claim(model, *some(encoded, train, _STEPS)),
        noise_claim(model.vectors_, model.output_vectors_, "every word", model.noise_loss_, "TXT-7"),
    ]  # fmt: skip
    if model.validation_indices_ is not None:
        out.append(_held_claim(model, encoded, held))
    return out


def _words_claim(model: Any, encoded: Any) -> Claim:
    wrong = wrong_counts(model, encoded.ids)
    statement = f"{wrong} of the words' counts are not those of these sentences"
    return Claim.check("words", statement, Kind.EXACT, wrong, 0.0, "TXT-7")


def _held_claim(model: Any, encoded: Any, held: Any) -> Claim:
    name, kind = "held-out loss", Kind.STATISTICAL
    broken = other_split(model, copies_of(encoded.ids, encoded.starts))
    if broken:
        return Claim.check(name, broken, kind, 1.0, 0.0, "TXT-7")
    found, _, size = _mean_loss(model, *some(encoded, held))
    away = abs(float(model.validation_loss_) - found)
    if not away <= 1e-10 * (1.0 + size):
        why = f"the mean loss of some held-out words is {found:.6g}, which the record misses by {away:.2g}"
        return Claim.check(name, why, kind, math.nan, 0.0, "TXT-7")
    rows = held[np.diff(encoded.starts)[held] > 1]
    if not len(rows):
        return Claim.undecided(name, "no held-out sentence has two known words", kind, "TXT-7")
    losses, untrained, limits = _drawn_losses(model, encoded, rows)
    below = losses - untrained
    radius, gain = empirical_bernstein(below, _DELTA, limits), float(below.mean())
    statement = (
        f"on held-out sentences the mean loss of a word is {losses.mean():.4g}, which differs from that of "
        f"untrained vectors by {gain:.4g} ± {radius:.2g} with probability {1 - _DELTA:g}"
    )
    claim = Claim.criterion(name, statement, kind, gain, gain - radius, gain + radius, 0.0, "TXT-7")
    constant = constant_loss(float(untrained.mean()) / math.log(2.0) - 1.0)
    return beside_constant(claim, constant, gain + radius + float(untrained.mean()) - constant)


def _drawn_losses(model: Any, encoded: Any, rows: Any) -> tuple[Array, Array, tuple[float, float]]:
    """Losses of words drawn at random, those of output vectors 0, and the limits of the difference."""
    rng, k = np.random.default_rng(_SEED), int(model.negative)
    starts, ends = encoded.starts[rows], np.cumsum(np.diff(encoded.starts)[rows])
    at = np.sort(rng.integers(0, ends[-1], _WORDS))
    which = np.searchsorted(ends, at, "right")
    noise = rng.choice(len(model.words_), (_WORDS, k), p=noise_shares(model.word_counts_))
    losses, untrained, own, total = np.empty(_WORDS), np.empty(_WORDS), -1, np.empty(0)
    for n, (place, i) in enumerate(zip(at.tolist(), which.tolist())):
        size = int(encoded.starts[rows[i] + 1] - starts[i])
        words = encoded.ids[starts[i] : starts[i] + size]
        if i != own:
            own, total = i, model.vectors_[words].sum(axis=0, dtype=np.float64)
        word = words[place - int(ends[i]) + size]
        h = (total - model.vectors_[word]) / (size - 1)
        others = noise[n][noise[n] != word]
        s = model.output_vectors_[np.append(word, others)].astype(np.float64) @ h
        s[0] *= -1.0
        losses[n], untrained[n] = np.logaddexp(0.0, s).sum(), len(s) * math.log(2.0)
    largest = math.prod(
        float(np.linalg.norm(part.astype(np.float64), axis=1).max())
        for part in (model.vectors_, model.output_vectors_)
    )
    above = np.logaddexp(0.0, largest) - math.log(2.0)
    return losses, untrained, (-(1 + k) * math.log(2.0), (1 + k) * float(above))


def _sentences(model: Any, ids: Any, starts: Any) -> Iterator[tuple[Any, Any, Array]]:
    """Of each sentence its words, what these are held against, each itself first, and signs; 0 leaves out."""
    k = int(model.negative)
    noise = drawn(model.word_counts_, max(1, k * len(ids)))
    for begin, end in pairwise(starts.tolist()):
        words = ids[begin:end]
        outs = np.column_stack([words, noise[k * begin : k * end].reshape(-1, k)])
        signs = np.where(outs == words[:, None], 0.0, 1.0)
        signs[:, 0] = -1.0
        yield words, outs, signs


def _scores(rows: Array, U: Any, outs: Any) -> tuple[Array, Array]:
    """The mean h of the others for each row of a sentence, and its products with the rows of U."""
    H = (rows.sum(axis=0) - rows) / (len(rows) - 1)
    columns = [np.einsum("nd,nd->n", H, U[column], dtype=np.float64) for column in outs.T]
    return H, np.column_stack(columns)


def _loss(scores: Array, signs: Array) -> float:
    return float(np.where(signs == 0.0, 0.0, np.logaddexp(0.0, signs * scores)).sum())


def _mean_loss(model: Any, ids: Any, starts: Any) -> tuple[float, float, float]:
    """The mean over the words, that of output vectors 0, and the largest product."""
    total, products, largest = 0.0, 0, 0.0
    for words, outs, signs in _sentences(model, ids, starts):
        rows = model.vectors_[words].astype(np.float64)
        _, scores = _scores(rows, model.output_vectors_, outs)
        total += _loss(scores, signs)
        products += int(np.count_nonzero(signs))
        largest = max(largest, float(np.abs(scores).max()))
    return total / max(len(ids), 1), products * math.log(2.0) / max(len(ids), 1), largest


def _gradient_claim(model: Any, ids: Any, starts: Any) -> Claim:
    noise = drawn(model.word_counts_, max(1, int(model.negative) * len(ids)))
    words = np.unique(np.concatenate([ids, noise]))
    Z, U = (part[words].astype(np.float64) for part in (model.vectors_, model.output_vectors_))
    sentences = [
        (np.searchsorted(words, own), np.searchsorted(words, outs), signs)
        for own, outs, signs in _sentences(model, ids, starts)
    ]

    def value(Z: Array, U: Array) -> float:
        return math.fsum(
            _loss(_scores(Z[own], U, outs)[1], signs) for own, outs, signs in sentences
        )

    G, D = np.zeros_like(Z), np.zeros_like(U)
    for own, outs, signs in sentences:
        H, scores = _scores(Z[own], U, outs)
        slopes, pull = signs * expit(signs * scores), np.zeros_like(H)
        for column, slope in zip(outs.T, slopes.T):
            np.add.at(D, column, slope[:, None] * H)
            pull += slope[:, None] * U[column] / (len(own) - 1)
        np.add.at(G, own, pull.sum(axis=0) - pull)
    square = float(np.square(G).sum() + np.square(D).sum())
    length = 1e-5 / max(math.sqrt(square), 1e-300)
    slope = (value(Z + length * G, U + length * D) - value(Z - length * G, U - length * D)) / (
        2.0 * length
    )
    away = abs(slope - float(model.probe_slope_)) / max(abs(slope), 1e-300)
    statement = (
        f"the step over {len(starts) - 1} sentences is a gradient: its squared length and a central "
        f"difference of the loss along it differ by a share of {away:.1e}"
    )
    return Claim.check("gradient", statement, Kind.EXACT, away, 1e-4, "TXT-7")
