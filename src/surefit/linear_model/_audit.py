"""Facts about one hyperplane and one binary problem, and the claims they support.

Used by :class:`surefit.linear_model.Perceptron`; knows nothing of how the hyperplane was found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
        self.margin = float(self.margins.min(initial=np.inf)) / length if length > 0 else 0.0
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
        close = int(np.sum(~(self.margins > 0) & (self.margins > -self.slack)))
        return Claim.check(
            f"{name}training mistakes",
            statement,
            Kind.EXACT,
            self.wrong,
            recorded,
            "PER-1",
            floor=recorded + close if self.wrong > recorded else 0.0,
        )

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
        return Claim.check(
            f"{name}margin", statement, Kind.EXACT, abs(self.margin - recorded), error, "PER-3"
        )

    def objective_claim(self, name: str, recorded: float) -> Claim:
        """The penalised objective, whose minimum is known: 0, at 0 (PER-5)."""
        statement = (
            f"loss plus penalty is {self.objective:.4g}, that far from its minimum, which is 0 at w = 0; "
            "a constant step hovers above it, so no optimality claim"
        )
        error = float(np.mean(self.weights * self.slack)) + self.rounding * abs(recorded)
        return Claim.check(
            f"{name}penalised objective",
            statement,
            Kind.EXACT,
            abs(self.objective - recorded),
            error,
            "PER-5",
        )

    def separability_claim(self, name: str, best: Separation | None, *, full: bool) -> Claim:
        """Whether any hyperplane separates the rows that this model does not (PER-6)."""
        title, kind, source = f"{name}separability", Kind.EXACT, "PER-6"
        if best is None:
            why = "not separated by this model; " + (
                "the hard-margin problem was too large to settle whether any hyperplane does"
                if full
                else "certify='full' or surefit.verify settles whether any hyperplane does"
            )
            return Claim.undecided(title, why, kind, source)
        margin = self.safe_margin(best.margin)
        if margin > 0:
            statement = f"another hyperplane separates all rows, with margin {margin:.4g}"
            return Claim.check(title, statement, kind, -margin, 0.0, source)
        terms = np.count_nonzero(best.farkas) + len(self.w) + 4
        floor = 4.0 * terms * _EPS * float(self.norms.max())
        if best.residual > floor:
            why = f"the widest margin is between {best.margin:.2g} and {best.residual:.2g}: too close to call"
            return Claim.undecided(title, why, kind, source)
        statement = (
            "no hyperplane separates the rows: Farkas weights λ ≥ 0 with sum 1 have "
            f"‖Σ λ y (x, 1)‖ = {best.residual:.1e}, and no margin exceeds that"
        )
        return Claim.check(title, statement, kind, best.residual, floor, source)


def penalised_loss(margins: Array, weights: Array, w: Array, l1: float, l2: float) -> float:
    """Mean perceptron loss plus penalty."""
    loss = float(np.mean(weights * np.maximum(-margins, 0.0)))
    return loss + l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(w @ w)
