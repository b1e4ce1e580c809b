"""What a family of models gives to be fitted along a grid: which parameters it takes together, and a fold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from .models import FoldModels
from .rows import Folds

__all__ = ["Family"]


class Family(ABC):
    """The candidates of a group: one estimator, different only in the parameters named by ``varies``.

    What the folds share is computed by :meth:`prepare`, once; a fold by :meth:`fit`, in any order and side by
    side. Either may raise: the candidates are then fitted one by one, which says what is wrong with them.

    Parameters
    ----------
    template : estimator
        With the parameters that all candidates of the group share.
    values : list of dict
        The others, of each candidate.
    folds : Folds
    """

    name: ClassVar[str]
    varies: ClassVar[frozenset[str]]
    least: ClassVar[int] = 2  # candidates from which a group is worth it

    def __init__(self, template: Any, values: Sequence[dict[str, Any]], folds: Folds) -> None:
        self.template, self.values, self.folds = template, values, folds

    @classmethod
    def takes(cls, own: dict[str, Any]) -> bool:
        """Whether a candidate with these parameters may be in a group."""
        return True

    @classmethod
    @abstractmethod
    def serves(cls, template: Any, values: Sequence[dict[str, Any]]) -> bool:
        """Whether these candidates have something in common that separate fits would compute again."""

    @classmethod
    def parted(
        cls, estimator: Any, candidate: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The parameters of a candidate that a group shares, and those that vary in it."""
        own = {name: value for name, value in candidate.items() if name in cls.varies}
        return {name: value for name, value in candidate.items() if name not in own}, own

    def prepare(self) -> None:
        """What all folds share."""
        return

    @abstractmethod
    def fit(self, k: int) -> FoldModels:
        """All candidates, fitted to the training rows of a fold."""

    def refit(self, model: Any, X: Any, y: Any) -> bool:
        """Fit an estimator of this family to all rows with what is known of them; False: it is not done."""
        return False
