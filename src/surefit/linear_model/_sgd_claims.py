r"""The problem that the SGD models minimise, and what is claimed about their minimum.

    P(w, b) = (1/n) sum_i s_i l(<x_i, w> + b, y_i) + alpha (rho ||w||_1 + (1 - rho)/2 ||w||^2),

s_i the class weight times the sample weight. Stochastic gradient descent promises little about its last
iterate beforehand (its bounds hold in expectation, with constants that are vacuous on real data), so the
certificate states what was reached instead: the duality gap of this very model. Where ``max_gap`` was asked
for, the claim holds or fails by it, as a share of the objective P(0) at w = 0 with the best intercept.
Otherwise nothing was promised. In either case a gap above one percent of the way from the constant model down
to the lower bound is uninformative, and a model that is worse than a constant leaves the claim undecided
where no ``max_gap`` was asked for.

The dual point is the run's own: with an l2 part, w is a sum of rows, and the factors of the rows, decayed
with w, are a dual point whose conjugate is finite by construction (Shalev-Shwartz & Kakade, 2008). It is
handed over as a witness and not trusted. In full, where the loss is smooth, a Newton step in the dual is
tried as well. Nothing here uses the solver.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .._namespace import array_namespace, clip, to_numpy
from .._optimality import optimality_claim, outcome_claim
from .._worst import largest
from ..certificate import Claim, Kind
from ..design import Design, as_design
from ..duality import Gap, duality_gap, null_value
from ..losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    ModifiedHuber,
    PerceptronLoss,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from ..offsets import best_offset
from ..penalties import ElasticNet, NoPenalty, Penalty

__all__ = ["CLASSIFICATION", "REGRESSION", "claims", "loss_of", "objective_of", "worst_of"]

Array = NDArray[np.float64]
_SMALL = 1000  # features up to which a dual Newton step, which needs the Gram matrix, is tried
# Two evaluations of a sum of n products agree this closely, relative to the sizes of what is added up,
# unless the predictions are what is left after cancelling five digits.
_CLOSE = 1e-9


# scikit-learn's names: the loss and, where it has one, the default of its parameter.
REGRESSION: dict[str, tuple[Any, ...]] = {
    "squared_error": (Squared,),
    "huber": (Huber, 0.1),
    "epsilon_insensitive": (EpsilonInsensitive, 0.1),
    "squared_epsilon_insensitive": (SquaredEpsilonInsensitive, 0.1),
}
CLASSIFICATION: dict[str, tuple[Any, ...]] = {
    "hinge": (Hinge,),
    "squared_hinge": (SquaredHinge,),
    "perceptron": (PerceptronLoss,),
    "log_loss": (Logistic,),
    "modified_huber": (ModifiedHuber,),
    **REGRESSION,
}


def loss_of(model: Any) -> Loss:
    """The loss of a model."""
    kind, *defaults = CLASSIFICATION[model.loss]
    if not defaults:
        return cast(Loss, kind())
    smallest = float(np.finfo(np.float64).tiny) if kind is Huber else 0.0  # whose delta is not 0
    return cast(Loss, kind(max(float(model.epsilon), smallest)))


def objective_of(z: Array, y: Array, s: Array, loss: Loss, w: Array, l1: float, l2: float) -> float:
    """P from the predictions; s sums to about 1."""
    penalty = l1 * float(np.abs(w).sum()) + 0.5 * l2 * float(w @ w)
    return float(s @ loss.pointwise(z, y)) + penalty


def worst_of(z: Array, y: Array, *, labels: bool) -> float:
    """The least margin of labelled rows; the largest error otherwise."""
    return float((y * z).min()) if labels else float(abs(y - z).max())


def claims(
    model: Any,
    X: Any,
    y: Array,
    s: Array,
    k: int,
    name: str,
    *,
    labels: bool,
    full: bool,
) -> list[Claim]:
    """What is claimed about problem ``k``: the gap, the objective and the worst row."""
    W, b = model._planes()
    loss, (l1, l2) = loss_of(model), model._penalty_strengths()
    design = as_design(X)
    y, s = design.vector(y), design.vector(s)
    z = design.dot(W[k]) + float(b[k])
    objective = objective_of(z, y, s, loss, W[k], l1, l2)
    slopes = abs(loss.grad(z, y))
    error = _CLOSE * (abs(objective) + float(s @ (slopes * (1.0 + abs(z) + abs(float(b[k]))))))
    statement = f"loss plus penalty on the training rows is {objective:.6g}"
    if isinstance(loss, PerceptronLoss):
        statement += ", that far from its minimum, which is 0 at w = 0; no optimality claim"
    recorded = float(model.objective_[k])
    found = [
        outcome_claim(
            f"{name}objective", Kind.EXACT, abs(objective - recorded), error, "OPT-5",
            holds=statement, otherwise=f"{statement}; objective_ says {recorded:.6g}",
        )
    ]  # fmt: skip
    worst, known = worst_of(z, y, labels=labels), float(model.worst_[k])
    words = "the least margin y(<x, w> + b)" if labels else "the largest error |y - <x, w> - b|"
    words += f" of a training row is {worst:.6g}"
    size = _CLOSE * (1.0 + abs(worst) + float(abs(z).max()))
    found.append(
        outcome_claim(
            f"{name}worst row", Kind.EXACT, abs(worst - known), size, "DAT-8" if labels else "REG-1",
            holds=words, otherwise=f"{words}; worst_ says {known:.6g}",
        )
    )  # fmt: skip
    if not isinstance(loss, PerceptronLoss):
        found.insert(0, _gap_claim(model, design, y, s, z, k, name, loss, full=full))
    return found


def _gap_claim(
    model: Any,
    design: Design,
    y: Array,
    s: Array,
    z: Array,
    k: int,
    name: str,
    loss: Loss,
    *,
    full: bool,
) -> Claim:
    """The objective is within so much of the global minimum."""
    title, source = f"{name}duality gap", "OPT-5"
    l2, free = model._penalty_strengths()[1], bool(model.fit_intercept)
    if model.streamed_ and not full:
        why = (
            "one epoch of partial_fit promises nothing about these rows; surefit.verify states the gap "
            "of the model on any rows"
        )
        return Claim.undecided(title, why, Kind.OPTIMAL, source)
    gap = _gap(model, design, y, s, z, k, loss, full=full)
    null = null_value(loss, y, s, fit_intercept=free)
    if null == 0:
        why = f"the objective is {gap.primal:.6g}; a constant is perfect, and no share of 0 can be asked"
        return Claim.undecided(title, why, Kind.OPTIMAL, source)
    asked = model.max_gap
    bound = null - gap.dual if asked is None else float(asked) * null
    claim = optimality_claim(
        f"the objective {gap.primal:.6g}",
        name=title, primal=gap.primal, dual=gap.dual, gap=gap.gap, null=null, bound=bound,
        floor=gap.floor - gap.stored, stored=gap.stored, source=source, curvature=l2,
    )  # fmt: skip
    if asked is None and gap.gap > largest(null - gap.dual, gap.floor):
        why = f"{claim.statement}: this model is worse than a constant. {model._remedy()}"
        return Claim.undecided(title, why, Kind.OPTIMAL, source)
    return claim


def _gap(
    model: Any, design: Design, y: Array, s: Array, z: Array, k: int, loss: Loss, *, full: bool
) -> Gap:
    W, b = model._planes()
    l1, l2 = model._penalty_strengths()
    w, offset, free = W[k], float(b[k]), bool(model.fit_intercept)
    small = design.shape[1] <= _SMALL and math.isfinite(loss.smoothness)
    if l1 == l2 == 0.0 and not (full and small):
        primal, zero = float(s @ loss.pointwise(z, y)), array_namespace(z).zeros_like(z)
        dual = -float(s @ loss.conjugate(zero, y))  # no model does better than no loss
        return Gap(primal, dual, primal - dual, 0.0, zero)
    penalty: Penalty = NoPenalty()
    if l1 or l2:
        penalty = ElasticNet(l1 + l2, l1 / (l1 + l2))
    coef = w.astype(to_numpy(model.intercept_).dtype)  # its precision is part of the rounding floor

    def at(witness: Array | None) -> Gap:
        return duality_gap(
            design, y, coef, offset, loss, penalty, weights=s, fit_intercept=free, witness=witness
        )

    best = at(_own_witness(model, k, len(y), loss))
    if full and small and l1 == 0.0 < l2:
        best = min(best, at(_newton_witness(design, y, s, w, loss, l2, free)), key=lambda g: g.gap)
    return best


def _own_witness(model: Any, k: int, n: int, loss: Loss) -> Array | None:
    """The dual point that the run handed over, inside the domain of the conjugate."""
    duals = getattr(model, "dual_", None)
    if duals is None or np.shape(duals) != (len(model._planes()[0]), n):
        return None
    theta = np.asarray(duals[k], dtype=np.float64)
    return np.clip(theta, -loss.lipschitz, loss.lipschitz)


def _newton_witness(
    design: Design, y: Array, s: Array, w: Array, loss: Loss, l2: float, free: bool
) -> Array:
    """The dual point at which a Newton step on the primal would end, to first order."""
    z = design.dot(w)
    z = z + (best_offset(loss, z, y, s) if free else 0.0)
    theta, h = loss.grad(z, y), loss.hess(z, y)
    bend = s * h
    mass = float(bend.sum())
    centre = design.mean(bend) if free and mass > 0 else None
    slope = design.tdot(s * theta) + l2 * w
    matrix = design.gram(bend, centre) + l2 * np.eye(len(w))
    move = cast(Array, -np.linalg.solve(matrix, slope))
    moved = design.dot(move)
    if centre is not None:
        moved = moved - float(centre @ move)
    return cast(Array, clip(theta + h * moved, -loss.lipschitz, loss.lipschitz))
