"""Facts about one hyperplane and one binary problem, and the claims they support.

Used by :class:`surefit.linear_model.Perceptron`; knows nothing of how the hyperplane was found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._exact_separation import is_separable
from .._optimality import outcome_claim
from ..certificate import Claim, Kind
from ..separation import Separation

__all__ = ["Audit", "penalised_loss"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


class Audit:
    """Facts about one binary problem and one hyperplane; knows nothing of how it was found."""

    def __init__(
        self,
        w: Array,
        b: float,
        scores: Array,
        signs: Array,
        norms: Array,
        weights: Array,
        penalty: tuple[float, float],
    ) -> None:
        self.w, self.b, self.signs, self.norms, self.weights = w, b, signs, norms, weights
        self.margins = signs * scores
        self.wrong = int(np.sum(~(self.margins > 0)))
        self.rounding = 2.0 * (len(w) + 4) * _EPS  # relative error of a sum of d + 1 products
        length = float(np.hypot(np.linalg.norm(w), b))
        with np.errstate(over="ignore", invalid="ignore"):
            self.slack = self.rounding * norms * length  # bounds the error of each score
        self.margin = float(self.margins.min(initial=np.inf)) / length if length != 0 else 0.0
        self.objective = penalised_loss(self.margins, weights, w, *penalty)

    def safe_margin(self, margin: float) -> float:
        """A margin less the largest rounding error it may carry."""
        return margin - self.rounding * float(self.norms.max(initial=0.0))

    def mistakes_claim(self, name: str, recorded: int) -> Claim:
        """How many rows are wrong, against the number that the fit reported."""
        statement = (
            f"{self.wrong} of {len(self.margins)} rows are on the wrong side of, or on, the "
            "hyperplane; no optimality claim"
        )
        close = int(np.sum(~(np.abs(self.margins) > self.slack)))  # rounding may put them elsewhere
        less, more = sorted((self.wrong, recorded))
        return outcome_claim(
            f"{name}training mistakes", Kind.EXACT, more, less, "PER-1",
            holds=statement, otherwise=f"{statement}; training_mistakes_ says {recorded}",
            floor=less + close, largest_floor=less + 0.01 * len(self.margins),
        )  # fmt: skip

    def margin_claim(self, name: str, recorded: float) -> Claim:
        """The margin, against the one that the fit reported: it moves with every coefficient."""
        if self.wrong:
            statement = f"not separated by this model: the margin is {self.margin:.4g}"
        else:
            statement = (
                f"separated: every row is {self.margin:.4g} or more from the hyperplane, in the "
                "space of (x, 1)"
            )
        error = 2.0 * self.rounding * float(self.norms.max(initial=0.0))
        if not self.wrong and not self.margin > error:
            statement += ", which rounding may have made positive"
        return outcome_claim(
            f"{name}margin", Kind.EXACT, abs(self.margin - recorded), error, "PER-3",
            holds=statement, otherwise=f"{statement}; margin_ says {recorded:.4g}",
        )  # fmt: skip

    def objective_claim(self, name: str, recorded: float) -> Claim:
        """The penalised objective, whose minimum is known: 0, at 0 (PER-5)."""
        statement = (
            f"loss plus penalty is {self.objective:.4g}, that far from its minimum, which is 0 at w = 0; "
            "a constant step hovers above it, so no optimality claim"
        )
        return outcome_claim(
            f"{name}penalised objective", Kind.EXACT, abs(self.objective - recorded),
            self.objective_error(), "PER-5",
            holds=statement, otherwise=f"{statement}; objective_ says {recorded:.4g}",
        )  # fmt: skip

    def objective_error(self) -> float:
        """What rounding may do to the objective."""
        return float(np.mean(self.weights * self.slack)) + self.rounding * abs(self.objective)

    def separability_claim(
        self, name: str, rows: Array | None, best: Separation | None, *, full: bool
    ) -> Claim:
        """Whether any hyperplane separates the rows (x, 1) that this model does not (PER-6)."""
        title, kind, source = f"{name}separability", Kind.EXACT, "PER-6"
        if best is None or rows is None:
            why = "not separated by this model; " + (
                "the hard-margin problem was too large to settle whether any hyperplane does"
                if full
                else "certify='full' or surefit.verify settles whether any hyperplane does"
            )
            return Claim.undecided(title, why, kind, source)
        Z = self.signs[:, None] * rows
        plane = np.append(best.w, best.b) if Z.shape[1] > len(self.w) else best.w
        found = is_separable(Z, plane=plane, weights=best.farkas)
        if found is None:
            why = (
                f"no margin is wider than {best.residual:.2g}, but whether any hyperplane separates the "
                "rows was not settled in exact arithmetic"
            )
            return Claim.undecided(title, why, kind, source)
        if found:
            width = f"margin {best.margin:.4g}" if best.margin > 0 else "a margin below rounding"
            statement = f"another hyperplane separates all rows, with {width}"
        else:
            statement = (
                "no hyperplane separates the rows, in exact arithmetic: some Farkas weights λ ≥ 0 with sum "
                "1 have Σ λ y (x, 1) = 0"
            )
        return Claim.check(title, statement, kind, 0.0, 0.0, source)


def penalised_loss(margins: Array, weights: Array, w: Array, l1: float, l2: float) -> float:
    """Mean perceptron loss plus penalty."""
    loss = float(np.mean(weights * np.maximum(-margins, 0.0)))
    return loss + l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(w @ w)
