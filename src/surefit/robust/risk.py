r"""The adversarial risk of any classifier, bracketed (ADV-1).

    R_eps = P[some x̂ within eps of X has f(x̂) != Y],    R_0 = R,

is between two numbers on the rows at hand: *at least* the share of rows that an attack made wrong, *at
most* the share not certified. In terms of accuracy: certified <= robust <= attacked. Rows are certified

* for linear models exactly (:mod:`.linear`): both ends agree but for rounding, and but for l2 with whole
  steps;
* for kernel machines by bounds on how far the margin falls (:mod:`.kernel_bounds`);
* for nearest neighbours with equal votes by their distances (:mod:`.neighbour_bounds`);
* for networks by linear bounds through their layers (:mod:`.network_bounds`);
* for other models not at all.

Both ends are monotone in eps by construction: an attack found at one radius counts at larger ones, and a
row certified at one radius is certified at smaller ones. Clopper and Pearson's limits of the two counts,
with delta split over the radii, bracket the risk for the distribution that the rows come from: attacked
rows are a subset of the vulnerable ones, and uncertified rows a superset, so the limits hold however the
attacks were run.

The certificate can fail: the formulas are compared with the model's own labels, and certified rows are
attacked too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from .._namespace import to_numpy
from ..certificate import Claim
from ..fingerprint import fingerprint
from ._attack import begin
from ._attempts import Attempts, chosen_attacks
from ._families import Kernels, Linears, Neighbours
from ._risk_claims import (
    bracket_claim,
    certified_claim,
    closed_form_claim,
    population,
    population_claim,
)
from ._tools import check_eps, check_norm
from .curve import RobustnessCurve
from .kernel_bounds import kernel_lower
from .linear import linear_decided
from .neighbour_bounds import neighbours_robust
from .scores import Scores, scores
from .threat import Threat

__all__ = ["adversarial_risk"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_MANY, _SOME, _FEW = 10**9, 1000, 200  # rows by default: linear, other closed forms, black boxes


def adversarial_risk(
    model: Any,
    X: Any,
    y: Any,
    eps: Sequence[float] = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0),
    *,
    norm: Any = math.inf,
    mutable: Any = None,
    lower: Any = None,
    upper: Any = None,
    step: Any = None,
    groups: Any = None,
    flips: int = 0,
    off: Any = 0.0,
    on: Any = 1.0,
    attacks: Sequence[Any] | None = None,
    delta: float = 0.05,
    fresh: bool = True,
    max_rows: int | None = None,
    time_limit: float | None = None,
    random_state: Any = 0,
    score: Any = None,
    gradient: Any = None,
    classes: Any = None,
) -> RobustnessCurve:
    """Bracket the adversarial risk at several radii.

    Parameters
    ----------
    model : estimator
        Fitted, on the features that X has.
    X, y : array-like
        Rows that no fit has used, and their labels.
    eps : sequence of float
        Radii; 0 is the plain risk.
    norm, mutable, lower, upper, step, groups, flips, off, on
        What the attacker may do; see :class:`Threat`.
    attacks : sequence of str or callable, default=None
        Of "fgsm", "pgd", "score_based", "decision_based", or functions with their signature. None chooses
        by the model; linear models need none.
    delta : float, default=0.05
        Probability that some of the statistical limits are wrong.
    fresh : bool, default=True
        Whether no fit has used these rows. Without that nothing follows for other rows: nothing is claimed,
        and the limits are 0 and 1.
    max_rows : int, default=None
        Evaluate at most so many rows, chosen at random. None is all rows for linear models, 1000 for kernel
        machines and neighbours, 200 for other models.
    time_limit : float, default=None
        Seconds after which no further attack is started. The bracket is then wider, and says so.
    random_state : default=0
    score, gradient, classes : default=None
        See :func:`surefit.robust.scores`.

    Returns
    -------
    RobustnessCurve

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.linear_model import LogisticRegression
    >>> from surefit.robust import adversarial_risk
    >>> X = np.array([[-2.0], [-1.0], [-0.2], [0.2], [1.0], [2.0]])
    >>> y = np.array([0, 0, 0, 1, 1, 1])
    >>> curve = adversarial_risk(LogisticRegression().fit(X, y), X, y, eps=(0.0, 0.5, 1.5))
    >>> curve.certified_accuracy.round(3).tolist(), curve.exact.all()
    ([1.0, 0.667, 0.333], np.True_)
    """
    start = time.monotonic()
    radii = _radii(eps)
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}.")
    threats = [
        Threat(e, check_norm(norm), mutable, lower, upper, step, groups, flips, off, on)
        for e in radii
    ]
    random = check_random_state(random_state)
    known = (
        model
        if isinstance(model, Scores)
        else scores(model, score=score, gradient=gradient, classes=classes)
    )
    rows, y_rows, notes = _rows(X, y, _default_rows(known, max_rows), random)
    task = begin(known, rows, y_rows, threats[-1])
    X_rows, codes, n = task.X, task.codes, len(task.codes)
    if not n:
        raise ValueError("X has no rows: a risk needs at least one.")

    host = np.asarray(to_numpy(X_rows), dtype=np.float64)
    certified, broken, method, claims = _certify(known, host, codes, task.wrong, threats)
    zero = radii == 0.0
    certified[zero], broken[zero] = ~task.wrong, task.wrong
    certified &= ~task.wrong
    certified = np.logical_or.accumulate(certified[::-1], axis=0)[::-1]
    tried = chosen_attacks(known, attacks)
    attempts = Attempts(task, tried, random, None if time_limit is None else start + time_limit)
    for e, threat in enumerate(threats):
        if e:
            broken[e] |= broken[e - 1]
        if threat.eps > 0.0:
            broken[e] |= attempts.at(threat, certified[e], broken[e])
    notes += [
        f"time ran out: attacks at eps {e:g} were left out or cut short" for e in attempts.late
    ]
    exact = (certified == ~broken).all(axis=1)
    names = tuple(_name(attack) for attack in tried)
    words = ", ".join(names) or "closed form"
    low, high = population(broken, certified, delta)
    if not fresh:  # nothing is known of other rows
        low, high = np.zeros_like(low), np.ones_like(high)
    sure = bool(exact.all()) and isinstance(known.family, Linears)
    why_not = (
        "" if fresh else "the rows were used by a fit (fresh=False): nothing follows for other rows"
    )
    claims += [
        certified_claim(
            radii,
            certified,
            attempts.refuted,
            attempts.checked,
            method,
            exact=sure,
            constant=float(np.bincount(codes[codes >= 0]).max(initial=0)) / n,
        ),
        bracket_claim(radii, broken, certified, words, attempts.unproved, attempts.tried),
        population_claim(radii, low, high, n, delta, why_not),
    ]
    return RobustnessCurve(
        eps=radii, certified_accuracy=certified.mean(axis=1), attacked_accuracy=(~broken).mean(axis=1),
        exact=exact, low=low, high=high, n=n, n_given=len(np.asarray(y)),
        norm="l2" if threats[0].norm == 2.0 else "linf", threat=_describe(threats[0]),
        method=method or "no certified bound for this model", attacks=names, delta=float(delta),
        notes=tuple(notes), claims=tuple(claims), about=type(model).__name__,
        data_id=fingerprint(host, codes),
    )  # fmt: skip


# ------------------------------------------------------------------------ certificates


def _certify(
    known: Scores, X: Array, codes: NDArray[np.intp], wrong: Mask, threats: list[Threat]
) -> tuple[Mask, Mask, str, list[Claim]]:
    """Rows certified and rows broken by theory, how, and whether the formulas are the model's."""
    family, m, n = known.family, len(threats), len(X)
    certified, broken = np.zeros((m, n), dtype=np.bool_), np.tile(wrong, (m, 1))
    if known.network is not None:
        from ._network_labels import network_certified

        certified, method = network_certified(known.network, X, codes, wrong, threats)
        return certified, broken, method, []
    if family is None:
        return certified, broken, "", []
    if isinstance(family, Neighbours):
        certified = neighbours_robust(family, X, codes, [*threats, threats[0].with_eps(0.0)])
        claim = closed_form_claim(int((certified[-1] & wrong).sum()), n, "neighbour")
        return certified[:-1], broken, "distances between training rows", [claim]
    plain = threats[0].with_eps(0.0)
    if isinstance(family, Linears):
        certified, fell = linear_decided(family, X, codes, [*threats, plain])
        broken |= fell[:-1]
        method = (
            "closed form for linear models"
            if family.decisive
            else "every pair of classes, in closed form"
        )
        right, left, words = certified[-1], fell[-1], "linear"
        certified = certified[:-1]
    else:
        below = kernel_lower(family, X, codes, [*threats, plain])
        certified, right = below[:-1] > 0.0, below[-1] > 0.0
        assert known.margin is not None
        margin = np.asarray(known.margin(X, codes))
        left = margin + 2.0 * (margin - below[-1]) < 0.0  # negative by more than rounding
        left &= family.rivals.shape[1] == 1  # a lost pair is not a lost vote
        method, words = "bounds on the kernel expansion", "kernel"
    differ = int(((right & wrong) | (left & ~wrong))[codes >= 0].sum())
    return certified, broken, method, [closed_form_claim(differ, n, words)]


def _name(attack: Any) -> str:
    return str(getattr(attack, "__name__", type(attack).__name__))


# ------------------------------------------------------------------------ arguments


def _radii(eps: Any) -> Array:
    values = [eps] if np.ndim(eps) == 0 else list(eps)
    if not values:
        raise ValueError("eps must name at least one radius, got an empty sequence.")
    return np.unique([check_eps(value) for value in values])


def _default_rows(known: Scores, max_rows: int | None) -> int:
    if max_rows is not None:
        if isinstance(max_rows, bool) or max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {max_rows!r}.")
        return int(max_rows)
    if isinstance(known.family, Linears):
        return _MANY
    return _SOME if isinstance(known.family, (Kernels, Neighbours)) else _FEW


def _rows(X: Any, y: Any, most: int, random: Any) -> tuple[Any, Any, list[str]]:
    """At most so many rows, at random, and the note that says so."""
    y = np.asarray(to_numpy(y))
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(y) <= most or len(y) != X.shape[0]:
        return X, y, []
    keep = np.sort(random.permutation(len(y))[:most])
    part = (
        X.iloc[keep] if hasattr(X, "iloc") else X.tocsr()[keep] if hasattr(X, "tocsr") else X[keep]
    )
    return part, y[keep], [f"{most} of {len(y)} rows, chosen at random"]


def _describe(threat: Threat) -> str:
    norm = "l2" if threat.norm == 2.0 else "linf"
    return ", ".join([f"{norm} attacks", *threat.rules()])
