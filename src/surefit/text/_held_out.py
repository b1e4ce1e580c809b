"""Which texts are held out: copies of a text fall on one side, and whoever verifies a fit draws them again.

Texts are equal where their known words are, in their order. What was held out is then no copy of what was
learnt from, and a mean over it counts each distinct text once.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind, Status

__all__ = [
    "below_claim", "beside_constant", "constant_loss", "copies_of", "hold_out", "other_split",
    "wrong_counts",
]  # fmt: skip

_ROUNDING = 1e-12  # a loss that is equal to rounding is not below
_SHARE = 0.01  # of the other loss: less says too little to be a success

_BLOCK = 1 << 20  # words that are looked at together
_GOLDEN, _MIXER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


def copies_of(ids: Any, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of each text's group: equal texts share one; numbered in the order of the first of each.

    Examples
    --------
    >>> copies_of(np.array([1, 2, 2, 1, 1, 2]), np.array([0, 2, 4, 6]))
    array([0, 1, 0])
    """
    starts = np.asarray(starts)
    keys = np.zeros(len(starts) - 1, dtype=np.uint64)
    first = 0
    while first < len(keys):
        last = int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), len(keys))
        words = np.asarray(ids[starts[first] : starts[last]]).astype(np.int64).view(np.uint64)
        sizes = np.diff(starts[first : last + 1])
        place = np.arange(len(words)) - np.repeat(starts[first:last] - starts[first], sizes)
        mixed = _mix(words * _GOLDEN + _mix(place.astype(np.uint64) + np.uint64(1)))
        sums = np.append(np.uint64(0), np.cumsum(mixed, dtype=np.uint64))  # wraps round
        ends = starts[first : last + 1] - starts[first]
        keys[first:last] = sums[ends[1:]] - sums[ends[:-1]]
        first = last
    _, begins, labels = np.unique(keys, return_index=True, return_inverse=True)
    place = np.empty(len(begins), dtype=np.int64)
    place[np.argsort(begins)] = np.arange(len(begins))
    return place[labels.ravel()]


def hold_out(share: float, copies: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The numbers of the texts that are held out, ascending.

    Groups of copies in a random order, until a ``share`` of the texts is reached.
    """
    n = len(copies)
    count = round(share * n)
    if not 0 < count < n:
        raise ValueError(
            f"validation_fraction={share:g} of {n} texts is {count}: hold out at least one and leave at "
            "least one."
        )
    sizes = np.bincount(copies)
    if len(sizes) < 2:
        raise ValueError(
            f"validation_fraction={share:g} needs texts that differ: all {n} are copies of one."
        )
    order = np.random.default_rng(seed).permutation(len(sizes))
    enough = int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1
    chosen = order[: min(enough, len(sizes) - 1)]
    return np.flatnonzero(np.isin(copies, chosen)).astype(np.int64)


def other_split(model: Any, copies: NDArray[np.int64]) -> str:
    """What shows that a model's held-out texts are not those that its seed draws; empty where they are."""
    held = model.validation_indices_
    try:
        drawn = hold_out(float(model.validation_fraction), copies, int(model.split_seed_))
    except (TypeError, ValueError) as error:
        return f"the held-out texts cannot be drawn again: {error}"
    if np.array_equal(drawn, held):
        return ""
    return (
        f"the {np.size(held)} held-out texts on record are not the {len(drawn)} that the fit's seed draws "
        "from these texts"
    )


def constant_loss(noise: float) -> float:
    """The least loss of a score that is the same for all pairs, with so many noise words for each of them.

    log(1 + e^-c) + k log(1 + e^c) is least at e^c = 1/k: such a score tells no pair from another one.

    Examples
    --------
    >>> round(constant_loss(1), 4), round(constant_loss(5), 4)
    (1.3863, 2.7034)
    """
    return math.log1p(noise) + (noise * math.log1p(1.0 / noise) if noise > 0.0 else 0.0)


def beside_constant(claim: Claim, constant: float, gap: float) -> Claim:
    """The claim, uninformative where a score that is the same for all pairs does as well.

    ``gap`` is by how much the loss may be below that of the constant; positive where it may be above.
    """
    if claim.status is not Status.HOLDS or gap <= 0.0:
        return claim
    words = (
        f"{claim.statement}; a score that is the same for all pairs reaches {constant:.4g}: that pairs are "
        "told apart is not shown"
    )
    return replace(claim, statement=words, status=Status.UNINFORMATIVE)


def below_claim(name: str, statement: str, loss: float, other: float, source: str) -> Claim:
    """The claim that a loss is below another one; by less than a hundredth is uninformative."""
    claim = Claim.check(name, statement, Kind.BOUND, loss, other * (1.0 - _ROUNDING), source)
    if claim.status is Status.HOLDS and loss > other * (1.0 - _SHARE):
        why = f"{statement}: less by a share below {_SHARE:g}, which says next to nothing"
        return Claim.uninformative(name, why, Kind.BOUND, loss, other, source)
    return claim


def wrong_counts(model: Any, ids: Any) -> int:
    """How many words do not occur as often among these as the fit recorded."""
    found = np.bincount(np.asarray(ids), minlength=len(model.words_))
    return int((found != np.asarray(model.word_counts_)).sum())


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * _MIXER
    return words ^ (words >> np.uint64(31))
