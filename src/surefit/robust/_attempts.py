"""Attacks on the rows of a curve, radius by radius, with a tally of what certified rows withstood."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._namespace import like, to_numpy
from ._attack import Task
from ._families import Kernels, Linears, Neighbours
from .decision_based import decision_based
from .fgsm import fgsm
from .linear import worst_points
from .pgd import pgd
from .score_based import score_based
from .scores import Scores
from .threat import Threat

__all__ = ["Attempts", "chosen_attacks"]

Mask = NDArray[np.bool_]
_ATTACKS: dict[str, Callable[..., Any]] = {
    "fgsm": fgsm,
    "pgd": pgd,
    "score_based": score_based,
    "decision_based": decision_based,
}
_CHECKED = 200  # certified rows, and rows broken by theory, that are tried at each radius
_BATCH = 256  # rows of one call, after which the clock is read


class Attempts:
    """Attacks on the rows of ``task``, until the time is over.

    Attributes
    ----------
    checked, refuted : int
        Attacks on certified rows, and those that succeeded: none should.
    tried, unproved : int
        Worst points of linear models that were tried, and those that kept their label: none should.
    late : list of float
        Radii at which attacks were left out or cut short.
    """

    def __init__(self, task: Task, attacks: list[Any], random: Any, deadline: float | None) -> None:
        self.task, self.attacks, self.random, self.deadline = task, attacks, random, deadline
        self.checked = self.refuted = self.tried = self.unproved = 0
        self.late: list[float] = []
        known = task.scores
        self.y = known.classes[np.maximum(task.codes, 0)]

    def at(self, threat: Threat, certified: Mask, broken: Mask) -> Mask:
        """Rows made wrong at this radius, besides those that are broken already."""
        task, found = self.task, np.zeros(len(broken), dtype=np.bool_)
        sure = self._some(np.flatnonzero(certified & ~broken))
        if isinstance(task.scores.family, Linears) and task.scores.family.decisive:
            found[sure] = self._worst_is_wrong(sure, threat)
            fell = self._some(np.flatnonzero(broken & ~task.wrong))
            self.tried += len(fell)
            self.unproved += int((~self._worst_is_wrong(fell, threat)).sum())
        todo = np.union1d(np.flatnonzero(~broken & ~certified), sure)
        for attack in self.attacks:
            self._run(attack, threat, todo, found)
        self.checked += len(sure)
        self.refuted += int((found & certified).sum())
        return found

    def _run(self, attack: Any, threat: Threat, todo: NDArray[np.intp], found: Mask) -> None:
        X = self.task.X
        for first in range(0, len(todo), _BATCH):
            if self.deadline is not None and time.monotonic() > self.deadline:
                if threat.eps not in self.late:
                    self.late.append(threat.eps)
                return
            rows = todo[first : first + _BATCH]
            rows = rows[~found[rows]]
            options: dict[str, Any] = {"starts": X} if attack is decision_based else {}
            if attack is pgd:
                options["stop_early"] = self._decisive()
                if isinstance(self.task.scores.family, Neighbours):
                    options["n_iter"] = 8  # each step asks for distances to all training rows
            seed = int(self.random.randint(2**31 - 1))
            part = X[like(rows, X)]
            result = attack(
                self.task.scores, part, self.y[rows], threat, random_state=seed, **options
            )
            found[rows] |= result.success

    def _worst_is_wrong(self, rows: NDArray[np.intp], threat: Threat) -> Mask:
        """Whether the model's label at the worst point for a linear model differs from the row's."""
        task = self.task
        family = task.scores.family
        assert isinstance(family, Linears)
        if not len(rows):
            return np.zeros(0, dtype=np.bool_)
        here, codes = np.asarray(to_numpy(task.X))[rows], task.codes[rows]
        points = worst_points(family, here, codes, threat)
        return task.scores.labels(like(points, task.X)) != codes

    def _decisive(self) -> bool:
        """Whether a negative margin is another label: not so for votes of pairs, nor for shared votes."""
        family = self.task.scores.family
        if isinstance(family, Linears):
            return family.decisive
        if isinstance(family, Neighbours):
            return len(self.task.scores.classes) == 2 and family.k % 2 == 1
        return not isinstance(family, Kernels) or family.rivals.shape[1] == 1

    def _some(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        return np.sort(rows[self.random.permutation(len(rows))[:_CHECKED]])


def chosen_attacks(known: Scores, attacks: Sequence[Any] | None) -> list[Any]:
    """The attacks by name or as given; by default those that suit the model."""
    if attacks is None:
        if isinstance(known.family, Linears) and known.family.decisive:
            return []
        if known.gradient is not None:
            return [pgd]
        return [decision_based] if known.margin is None else [score_based, decision_based]
    names = [attacks] if isinstance(attacks, str) or callable(attacks) else list(attacks)
    unknown = [name for name in names if not callable(name) and name not in _ATTACKS]
    if unknown:
        raise ValueError(
            f"attacks must be functions or of {', '.join(_ATTACKS)}, got {unknown[0]!r}."
        )
    return [name if callable(name) else _ATTACKS[name] for name in names]
