r"""What is claimed about a fastText classifier, decided in float64 by code that no solver uses.

With A the averaged bags and M = WZ', the scores are AM': the product is formed first, where the fit
averages rows of Z first.

- "bags": those of some texts, split and hashed again in plain Python, are the ones that were fitted on, and
  the words occur as often as recorded.
- "loss": the recorded loss is the mean loss of this model on these texts.
- "better than a constant": the loss is below that of the best scores that are the same for all texts, the
  entropy of the class frequencies; by less than a hundredth is uninformative.
- "gradient": for a few texts, the squared length of the step that the kernel takes at this model is the
  derivative of the loss along it, by a central difference.
- "gap to logistic regression": no logistic regression on the same bags whose coefficients are no longer than
  ||M||_F = r has a loss below

      L = sum_i s_i H(p_i(t)) - t r ||A'(s theta)||_F,    p_i(t) = onehot(y_i) + t theta_i,

  theta = l'(AM') and t in [0, 1]: weak duality with the conjugate of the loss, the negative entropy -H.
  The loss is within its distance to L of the best of these; nothing is decided where L is not above 0. A
  distance above a hundredth of that from L to the best constant scores is uninformative: a model that has
  learnt nothing is near the least of an empty ball.
- "duality gap", for ``solver="exact"``: that of logistic regression with the penalty reg/2 ||M||_F^2, at most
  ``tol`` of the objective at 0 (TXT-6).
- "held-out error": that of texts which no step has seen, nor a copy of them, with exact binomial limits for
  new texts; where copies of a text are among them, limits for the mean over distinct texts.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax, xlogy

from .._optimality import INFORMATIVE_SHARE, optimality_claim
from ..certificate import Claim, Kind, Status
from ..duality import duality_gap, gap_claim
from ..losses import Logistic, Softmax
from ..penalties import L2
from ..stats import clopper_pearson, group_interval
from ._held_out import below_claim, other_split

__all__ = ["claims", "probes_of"]

Array = NDArray[np.float64]
_STEPS, _BAGS = 8, 32  # texts whose step, and bag, are looked at one by one
_BLOCK = 1 << 16  # rows of Z at a time
_EPS = float(np.finfo(np.float64).eps)
_DELTA = 0.05
_GAP = "gap to logistic regression"
_SCALES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)


def claims(
    model: Any,
    texts: Any,
    encoded: Any,
    A: Any,
    codes: Any,
    weights: Array,
    held: Any,
    *,
    full: bool,
    tol: float,
) -> list[Claim]:
    """The claims; ``held`` is (predicted, true) labels of what was held out, with the groups of copies of
    all texts, or None."""
    W, Z = np.asarray(model.output_vectors_, dtype=np.float64), model.input_vectors_
    M = np.concatenate(
        [Z[i : i + _BLOCK].astype(np.float64) @ W.T for i in range(0, len(Z), _BLOCK)]
    )
    scores, s = A @ M, weights / weights.sum()
    signs = _signs(codes, W.shape[0])
    soft = model.loss == "softmax"
    loss = float(s @ _pointwise(scores, codes, signs, soft))
    probes = probes_of(np.diff(encoded.starts), weights)
    best = _constant_loss(codes, s, len(model.classes_), W.shape[0], soft)
    words = f"the mean training loss is {loss:.6g}, that of the best constant scores {best:.6g}"
    out = [
        _bag_claim(model, texts, encoded),
        _loss_claim(model, loss, scores),
        below_claim("better than a constant", words, loss, best, "TXT-6"),
    ]
    if model.solver == "exact":
        out.append(_exact_claim(model, A, M, codes, signs, s, soft, tol))
    else:
        out.append(_gradient_claim(model, A, W, probes, codes, signs, soft))
        if full:
            out.append(_ball_claim(A, M, scores, signs, s, soft, loss, best))
        else:
            why = "surefit.verify or certify='full' bounds it"
            out.append(Claim.undecided(_GAP, why, Kind.OPTIMAL, "TXT-6"))
    if held is not None:
        frequent = np.bincount(codes, weights=s, minlength=len(model.classes_)).argmax()
        labels, true, copies = held
        out.append(_held_claim(model, labels, true, copies, model.classes_[frequent]))
    return out


# ---------------------------------------------------------------------------- losses


def _signs(codes: Any, rows: int) -> Array:
    """1 where a row of W is for the text's class, else -1."""
    if rows == 1:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(rows), 1.0, -1.0)


def _pointwise(scores: Array, codes: Any, signs: Array, soft: bool) -> Array:
    if soft:
        return -log_softmax(scores, axis=1)[np.arange(len(codes)), codes]
    return np.logaddexp(0.0, -signs * scores).sum(axis=1)


def _slope(scores: Array, signs: Array, soft: bool) -> Array:
    if soft:
        return softmax(scores, axis=1) - (signs > 0)
    return expit(scores) - (signs > 0)


def _entropy(p: Array, soft: bool) -> Array:
    p = np.clip(p, 0.0, 1.0)
    return -(xlogy(p, p) + (0.0 if soft else xlogy(1.0 - p, 1.0 - p))).sum(axis=1)


# ---------------------------------------------------------------------------- claims


def probes_of(sizes: Any, weights: Array) -> Any:
    """Some texts with words and weight, spread over all."""
    there = np.flatnonzero((sizes > 0) & (weights > 0))
    return _spread(there, _STEPS)


def _spread(rows: Any, count: int) -> Any:
    if len(rows) <= count:
        return rows
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _bag_claim(model: Any, texts: Any, encoded: Any) -> Claim:
    index = {word: number for number, word in enumerate(model.words_)}
    buckets, wrong = model.buckets_.tolist(), 0
    rows = _spread(np.arange(len(texts)), _BAGS)
    for i in rows:
        found = Counter(encoded.ids[encoded.starts[i] : encoded.starts[i + 1]].tolist())
        wrong += found != _bag(_split(texts.source[i], model), index, buckets, model)
    counts = np.bincount(encoded.ids, minlength=len(index))[: len(index)]
    other = int((counts != np.asarray(model.word_counts_)).sum())
    statement = (
        f"{wrong} of {len(rows)} bags differ from those found word by word, and {other} counts of words from "
        "those of these texts"
    )
    wrong += other
    return Claim.check("bags", statement, Kind.EXACT, wrong, 0, "TXT-1")


def _split(text: Any, model: Any) -> list[str]:
    if not isinstance(text, str):
        return [str(word).lower() if model.lowercase else str(word) for word in text]
    text = text.lower() if model.lowercase else text
    return text.split() if model.tokenizer is None else list(model.tokenizer(text))


def _hash(word: str) -> int:
    """FNV-1a of 32 bits, bytes extended by their sign."""
    h = 2166136261
    for byte in word.encode("utf-8", "surrogatepass"):
        h = ((h ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) % 2**32
    return h


def _bag(words: list[str], index: dict[str, int], buckets: list[int], model: Any) -> Counter[int]:
    hashed: list[int] = []
    if model.char_ngrams is not None:
        least, most = model.char_ngrams
        for word in words:
            marked = f"<{word}>"
            for begin in range(len(marked)):
                for end in range(begin + least, min(begin + most, len(marked)) + 1):
                    if end - begin > 1 or 0 < begin < len(marked) - 1:
                        hashed.append(_hash(marked[begin:end]))
    if model.word_ngrams > 1:
        long = [h - 2**32 if h >= 2**31 else h for h in map(_hash, words)]
        for begin in range(len(words)):
            chained = long[begin] % 2**64
            for other in long[begin + 1 : begin + model.word_ngrams]:
                chained = (chained * 116049371 + other) % 2**64
                hashed.append(chained)
    bag = [index[word] for word in words if word in index]
    for h in hashed:
        at = bisect.bisect_left(buckets, h % model.n_buckets)
        if at < len(buckets) and buckets[at] == h % model.n_buckets:
            bag.append(len(index) + at)
    return Counter(bag)


def _loss_claim(model: Any, loss: float, scores: Array) -> Claim:
    away = abs(float(model.loss_) - loss)
    floor = 256.0 * _EPS * (1.0 + float(np.abs(scores).max(initial=0.0))) * scores.shape[1]
    statement = f"the mean training loss is {loss:.6g}, which the record misses by {away:.2g}"
    return Claim.check("loss", statement, Kind.EXACT, away, floor, "TXT-6")


def _constant_loss(codes: Any, s: Array, classes: int, rows: int, soft: bool) -> float:
    """The loss of the best scores that are the same for all texts: the entropy of the classes' shares."""
    shares = np.asarray(np.bincount(codes, weights=s, minlength=classes), dtype=np.float64)
    return float(_entropy((shares[1:] if rows == 1 else shares)[None], soft)[0])


def _gradient_claim(
    model: Any, A: Any, W: Array, probes: Any, codes: Any, signs: Array, soft: bool
) -> Claim:
    """Along the gradient W moves by d h' and h by ||x||^2 W'd."""
    recorded = np.asarray(model.probe_slopes_, dtype=np.float64)
    worst = 0.0 if len(recorded) == len(probes) else math.nan
    for i, theirs in zip(probes, recorded):
        x = A[[int(i)]]
        x.sum_duplicates()
        h = x.data @ model.input_vectors_[x.indices].astype(np.float64)
        d = _slope((W @ h)[None], signs[[i]], soft)[0]
        turn, move = np.outer(d, h), float(x.data @ x.data) * (W.T @ d)
        rate = float(np.abs(turn @ h + W @ move).max())
        length = 1e-4 / max(rate, 1e-8)

        def value(
            t: float, turn: Any = turn, move: Any = move, h: Any = h, i: int = int(i)
        ) -> float:
            scores = (W + t * turn) @ (h + t * move)
            return float(_pointwise(scores[None], codes[[i]], signs[[i]], soft)[0])

        slope = (value(length) - value(-length)) / (2.0 * length)
        floor = 64.0 * _EPS * (1.0 + value(0.0)) / length
        away = abs(slope - theirs) / (abs(slope) + 1e5 * floor + 1e-300)
        worst = float(np.maximum(worst, away))  # NaN stays
    statement = (
        f"the steps of {len(probes)} texts are gradients: squared lengths and central differences of the "
        f"loss along them differ by a share of {worst:.1e}"
    )
    return Claim.check("gradient", statement, Kind.EXACT, worst, 1e-5, "TXT-6")


def _ball_claim(
    A: Any,
    M: Array,
    scores: Array,
    signs: Array,
    s: Array,
    soft: bool,
    loss: float,
    constant: float,
) -> Claim:
    theta = _slope(scores, signs, soft)
    norm = float(np.linalg.norm(M))
    pull = norm * float(np.linalg.norm(A.T @ (s[:, None] * theta)))
    best = max(float(s @ _entropy((signs > 0) + t * theta, soft)) - t * pull for t in _SCALES)
    zero = math.log(signs.shape[1]) if soft else signs.shape[1] * math.log(2.0)
    if best <= 0.0 <= loss:
        why = (
            f"the loss is {loss:.3g} above 0, and no higher bound was found for logistic regression on the "
            f"same bags with coefficients of norm {norm:.3g} or less; solver='exact' decides it"
        )
        return Claim.undecided(_GAP, why, Kind.OPTIMAL, "TXT-6")
    gap, width = loss - best, constant - best
    target = f"logistic regression on the same bags with coefficients of norm {norm:.3g} or less"
    if gap >= 0.0 and gap > INFORMATIVE_SHARE * width:
        share = f"{100.0 * gap / width:.3g} % of the way" if width > 0.0 else "all of the way"
        why = (
            f"the loss {loss:.6g} is within {gap:.3g} of the least of {target}, {share} down from the best "
            f"constant scores ({constant:.6g}): more epochs, or solver='exact', show more"
        )
        return Claim.uninformative(_GAP, why, Kind.OPTIMAL, gap, zero, "TXT-6")
    return optimality_claim(
        f"the loss {loss:.6g}", primal=loss, dual=best, null=constant, bound=zero, floor=1e-9 * zero,
        source="TXT-6", name=_GAP, target=f"the least of {target}",
    )  # fmt: skip


def _exact_claim(
    model: Any, A: Any, M: Array, codes: Any, signs: Array, s: Array, soft: bool, tol: float
) -> Claim:
    """The gap, summed over the rows of M where each has a problem of its own."""
    penalty = L2(float(model.reg))
    options: dict[str, Any] = {"weights": s, "fit_intercept": False}
    if soft:
        zero = np.zeros(M.shape[1])
        gap = duality_gap(A, codes, M, zero, Softmax(), penalty, **options)
        return gap_claim(gap, tol, math.log(M.shape[1]), "TXT-6")
    total = math.log(2.0)
    found = [
        gap_claim(
            duality_gap(A, signs[:, c], M[:, c].copy(), 0.0, Logistic(), penalty, **options),
            tol, total, "TXT-6",
        )
        for c in range(M.shape[1])
    ]  # fmt: skip
    return max(found, key=_badness)


_ORDER = (Status.HOLDS, Status.UNINFORMATIVE, Status.UNDECIDED, Status.FAILS)


def _badness(claim: Claim) -> tuple[int, float]:
    """The worse of two claims is the larger one."""
    observed = math.inf if math.isnan(claim.observed) else claim.observed
    return _ORDER.index(claim.status), observed


def _held_claim(model: Any, labels: Any, true: Any, copies: Any, constant: Any) -> Claim:
    """Errors of held-out texts, with limits; ``constant`` is the most frequent class of the others."""
    name, kind, source = "held-out error", Kind.STATISTICAL, "GEN-3"
    broken = other_split(model, copies)
    if broken or not len(true):
        broken = broken or "none of the texts that were held out is there"
        return Claim.check(name, broken, kind, 1.0, 0.0, source)
    errors = np.asarray(labels != true, dtype=np.float64)
    away = abs(float(model.validation_error_) - errors.mean())
    if not away <= 1e-12:
        words = f"the held-out error is {errors.mean():.4f}, which the record misses by {away:.1g}"
        return Claim.check(name, words, kind, away, 1e-12, source)
    wrong, n, groups = int(errors.sum()), len(true), copies[model.validation_indices_]
    distinct = len(np.unique(groups))
    rivals = np.asarray(true != constant, dtype=np.float64)
    if distinct == n:
        estimate, (low, high) = wrong / n, clopper_pearson(wrong, n, _DELTA)
        rival, what = float(rivals.mean()), f"{wrong} of {n} held-out texts are misclassified"
        new = "new texts"
    else:
        estimate, low, high = group_interval(errors, groups, _DELTA)
        rival = group_interval(rivals, groups, _DELTA)[0]
        what = f"{wrong} of {n} held-out texts, {distinct} of them different, are misclassified"
        new = "new texts, each counted once,"
    statement = f"{what}; with probability 0.95 the error on {new} is in [{low:.4f}, {high:.4f}]"
    claim = Claim.interval(name, statement, kind, estimate, low, high, source)
    if claim.status is not Status.HOLDS:
        return claim
    if high >= rival:
        statement = (
            f"{statement}; always answering {constant!s} has an error of {rival:.4f} on them: hold out more "
            "texts, or train a better model, to tell the two apart"
        )
        return replace(claim, statement=statement, bound=rival, status=Status.UNINFORMATIVE)
    return replace(claim, bound=rival)
