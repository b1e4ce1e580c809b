r"""How well word vectors agree with people's judgements.

*Similarity*: pairs of words that people gave scores. Spearman's :math:`\rho` is the correlation between the
ranks of those scores and of the cosines. Its limits are Fisher's, with the variance of Bonett and Wright
(2000),

.. math:: \tanh\left(\operatorname{artanh}\rho \pm z_{1-\delta/2}\sqrt{(1 + \rho^2/2)/(n - 3)}\right).

They are approximate: they hold for many independent pairs. Pairs with an unknown word are left out, and the
share of pairs that is left is said.

*Analogies*: questions "a is to b as c is to ?", answered with the nearest word to
:math:`\hat v_b - \hat v_a + \hat v_c` other than a, b and c, among the ``restrict`` most frequent. The share
of right answers has Hoeffding's radius :math:`\sqrt{\ln(2/\delta)/(2n)}`, which holds for independent
questions of one kind; the total's and each section's are one statement each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from .._counts import is_whole
from ..model_selection.bounds import hoeffding_radius
from ._evaluation_files import checked_pair, is_path, read_analogies, read_pairs, sections_of

if TYPE_CHECKING:
    from .vectors import WordVectors

__all__ = [
    "Analogies",
    "Evaluation",
    "Section",
    "Similarity",
    "evaluate",
    "evaluate_analogies",
    "evaluate_similarity",
    "read_analogies",
    "read_pairs",
]

_QUESTIONS = 4096  # answered at a time


@dataclass(frozen=True)
class Similarity:
    """Spearman's rho with its limits; ``n`` pairs of ``total`` had both words."""

    name: str
    rho: float
    low: float
    high: float
    n: int
    total: int
    delta: float

    @property
    def covered(self) -> float:
        """The share of pairs with both words known."""
        return self.n / self.total

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, None for NaN."""
        return _plain({**asdict(self), "covered": self.covered})

    def __str__(self) -> str:
        limits = "" if math.isnan(self.low) else f" [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.name}: rho {self.rho:.4f}{limits}, {self.n} of {self.total} pairs"


@dataclass(frozen=True)
class Section:
    """Questions of one kind: ``correct`` of ``n`` answered, of ``total`` asked."""

    name: str
    correct: int
    n: int
    total: int
    radius: float

    @property
    def accuracy(self) -> float:
        """The share of right answers; NaN where no question could be asked."""
        return self.correct / self.n if self.n else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, None for NaN."""
        return _plain({**asdict(self), "accuracy": self.accuracy})

    def __str__(self) -> str:
        if not self.n:
            return f"{self.name}: none of {self.total} questions has all its words"
        return (
            f"{self.name}: {self.accuracy:.2%} +- {self.radius:.2%}, {self.correct} of {self.n} "
            f"({self.total} asked)"
        )


@dataclass(frozen=True)
class Analogies:
    """Accuracy by section and in all."""

    sections: tuple[Section, ...]
    total: Section
    restrict: int
    delta: float

    @property
    def accuracy(self) -> float:
        """The share of right answers over all sections."""
        return self.total.accuracy

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "sections": [section.to_dict() for section in self.sections],
            "total": self.total.to_dict(),
            "restrict": self.restrict,
            "delta": self.delta,
        }

    def __str__(self) -> str:
        return "\n".join(str(section) for section in (*self.sections, self.total))


@dataclass(frozen=True)
class Evaluation:
    """What :func:`evaluate` found."""

    similarity: tuple[Similarity, ...] = ()
    analogies: tuple[Analogies, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "similarity": [part.to_dict() for part in self.similarity],
            "analogies": [part.to_dict() for part in self.analogies],
        }

    def __str__(self) -> str:
        return "\n".join(str(part) for part in (*self.similarity, *self.analogies))


def evaluate(
    vectors: WordVectors, similarity: Any = None, analogies: Any = None, **options: Any
) -> Evaluation:
    """Both evaluations.

    Parameters
    ----------
    vectors : WordVectors, or an estimator that has fitted some
    similarity : path, list of pairs, or list of paths, optional
    analogies : path or sections, optional
    **options
        ``restrict`` for analogies; ``case_sensitive`` and ``delta`` for both.
    """
    if similarity is None and analogies is None:
        raise ValueError("name what to evaluate on: similarity=, analogies=, or both.")
    if wrong := set(options) - {"restrict", "case_sensitive", "delta"}:
        raise TypeError(f"evaluate takes no {sorted(wrong)[0]!r}: restrict, case_sensitive, delta.")
    vectors = getattr(vectors, "word_vectors", vectors)
    many = isinstance(similarity, list | tuple) and similarity and is_path(similarity[0])
    sets = [] if similarity is None else list(similarity) if many else [similarity]
    both = {name: value for name, value in options.items() if name != "restrict"}
    return Evaluation(
        tuple(evaluate_similarity(vectors, pairs, **both) for pairs in sets),
        () if analogies is None else (evaluate_analogies(vectors, analogies, **options),),
    )


def evaluate_similarity(
    vectors: WordVectors, pairs: Any, *, case_sensitive: bool = False, delta: float = 0.05
) -> Similarity:
    """Spearman's correlation between people's scores of pairs and the cosines.

    Parameters
    ----------
    vectors : WordVectors
        With subwords, words outside the vocabulary count as known.
    pairs : path, or iterable of (word, word, score)
    case_sensitive : bool, default=False
        Otherwise a word is the most frequent one that differs in case only.
    delta : float, default=0.05
        One minus the confidence of the limits.

    Examples
    --------
    >>> from surefit.text.vectors import WordVectors
    >>> words = WordVectors("abcd", [[1, 0], [1, 0.1], [1, 1], [-1, 0]])
    >>> print(evaluate_similarity(words, [("a", "b", 9), ("a", "c", 5), ("A", "d", 1), ("a", "x", 3)]))
    pairs: rho 1.0000, 3 of 4 pairs
    """
    _check_delta(delta)
    named = is_path(pairs)
    listed = read_pairs(pairs) if named else [checked_pair(pair, k) for k, pair in enumerate(pairs)]
    if not listed:
        raise ValueError("pairs is empty: there is nothing to compare.")
    look = _lookup(vectors, len(vectors), case_sensitive)
    people, cosines = [], []
    for a, b, score in listed:
        a, b = look(a), look(b)
        if vectors.get(a) is not None and vectors.get(b) is not None:
            people.append(score)
            cosines.append(vectors.similarity(a, b))
    if len(people) < 2:
        raise ValueError(
            f"{len(people)} of {len(listed)} pairs have both words in the vocabulary, which is too few; "
            f"the first is {listed[0][:2]}."
        )
    rho = _correlation(rankdata(people), rankdata(cosines))
    low, high = _limits(rho, len(people), delta)
    name = Path(pairs).name.removesuffix(".gz").removesuffix(".txt") if named else "pairs"
    return Similarity(name, rho, low, high, len(people), len(listed), delta)


def evaluate_analogies(
    vectors: WordVectors,
    questions: Any,
    restrict: int = 30_000,
    *,
    case_sensitive: bool = False,
    delta: float = 0.05,
) -> Analogies:
    """The share of analogies that are solved.

    Parameters
    ----------
    vectors : WordVectors
        Most frequent words first.
    questions : path, or mapping from section to a list of (a, b, c, answer)
    restrict : int, default=30_000
        Only the first so many words ask and answer.
    case_sensitive : bool, default=False
    delta : float, default=0.05
        Probability that a radius is too small.
    """
    _check_delta(delta)
    if not is_whole(restrict):
        raise ValueError(f"restrict must be an integer of 1 or more, got {restrict!r}.")
    restrict = min(int(restrict), len(vectors))
    asked = read_analogies(questions) if is_path(questions) else sections_of(questions)
    number = _numbers(vectors.words[:restrict], case_sensitive)
    fold = _fold(case_sensitive)
    same = [number[fold(word)] for word in vectors.words[:restrict]]  # the word it counts as
    found = []
    for name, rows in asked.items():
        known = [
            places
            for row in rows
            if min(places := [number.get(fold(word), -1) for word in row]) >= 0
        ]
        correct = _solved(vectors, np.array(known), np.array(same), restrict) if known else 0
        found.append(_section(name, correct, len(known), len(rows), delta))
    if not any(section.total for section in found):
        raise ValueError("questions is empty: there is nothing to answer.")
    correct, n = sum(part.correct for part in found), sum(part.n for part in found)
    total = _section("total", correct, n, sum(part.total for part in found), delta)
    return Analogies(tuple(found), total, restrict, delta)


def _solved(vectors: WordVectors, known: Any, same: Any, restrict: int) -> int:
    """How many of the questions, rows of word numbers, are answered right."""
    units, correct = vectors.units, 0
    variants = int(np.bincount(same).max())  # of one word, in case
    extra = min(restrict, 3 * variants + 1)  # at least one that is none of a, b, c
    for first in range(0, len(known), _QUESTIONS):
        a, b, c, answer = known[first : first + _QUESTIONS].T
        queries = units[b].astype(np.float64) - units[a] + units[c]
        places, _ = vectors.nearest(queries, extra, restrict=restrict)
        guesses = same[places]
        own = (guesses == a[:, None]) | (guesses == b[:, None]) | (guesses == c[:, None])
        best = guesses[np.arange(len(guesses)), np.argmin(own, axis=1)]
        correct += int(np.sum((best == answer) & ~own.all(axis=1)))
    return correct


def _section(name: str, correct: int, n: int, total: int, delta: float) -> Section:
    radius = hoeffding_radius(n, delta) if n else math.nan
    return Section(name, correct, n, total, radius)


def _plain(parts: dict[str, Any]) -> dict[str, Any]:
    missing = {name for name, value in parts.items() if value != value}
    return {name: None if name in missing else value for name, value in parts.items()}


def _correlation(x: Any, y: Any) -> float:
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    if size == 0.0:
        raise ValueError("all scores, or all cosines, are equal: they have no ranks to compare.")
    return min(1.0, max(-1.0, float(x @ y) / size))


def _limits(rho: float, n: int, delta: float) -> tuple[float, float]:
    """Limits for rho; NaN for fewer than 4 pairs, and for 1 and -1, where the formula has no width."""
    if n < 4 or abs(rho) == 1.0:
        return math.nan, math.nan
    width = NormalDist().inv_cdf(1.0 - delta / 2.0) * math.sqrt((1.0 + rho * rho / 2.0) / (n - 3))
    return math.tanh(math.atanh(rho) - width), math.tanh(math.atanh(rho) + width)


def _check_delta(delta: Any) -> None:
    if not (isinstance(delta, Real) and 0.0 < float(delta) < 1.0):
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}.")


def _fold(case_sensitive: bool) -> Any:
    return str if case_sensitive else str.upper


def _numbers(words: Sequence[str], case_sensitive: bool) -> dict[str, int]:
    """The number of a word; the first of those that differ in case only."""
    fold = _fold(case_sensitive)
    return {fold(words[k]): k for k in range(len(words) - 1, -1, -1)}


def _lookup(vectors: WordVectors, restrict: int, case_sensitive: bool) -> Any:
    if case_sensitive:
        return str
    number = _numbers(vectors.words[:restrict], False)
    return lambda word: vectors.words[k] if (k := number.get(word.upper(), -1)) >= 0 else word
