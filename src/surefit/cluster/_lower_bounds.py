"""How far a clustering can be from the best one: lower bounds on the WCSS, and the claim made of them.

k-means stops where no single step helps, which may be far from the best clustering. Two numbers that no
clustering into K goes below tell how far at most: the PCA tail (one more reading of the rows) and the
semidefinite relaxation (n x n matrices, so up to 2,000 distinct rows). Neither uses anything of the fit
but its labels, and these only as a hint. A bound that is not tight is no fault of the clustering: the
claim then gives the number and stays undecided; below half the WCSS it is uninformative. See
:mod:`surefit.cluster._pca_tail` and :mod:`surefit.cluster._sdp_bound` for the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..certificate import Claim, Kind, Status
from ..design import as_design
from ._pca_tail import Bound, pca_tail_bound
from ._sdp_bound import LARGEST_SDP, METHOD, sdp_bound

__all__ = ["Bound", "lower_bounds", "optimality_claim", "pca_tail_bound", "sdp_bound"]

NAME, SOURCE = "distance from the optimum", "CLU-1"
TIGHT = 1e-6  # share of the WCSS at which a clustering counts as the best
LARGEST_FACTOR = 2.0  # a bound of less than half the WCSS says next to nothing
AT_FIT = 200  # rows up to which the relaxation is tried at fit,
STEPS_AT_FIT = 60  # for so many steps: a tenth of a second
_ROUNDING = 1e-9  # share by which a WCSS computed in float64 may be too small


def lower_bounds(
    X: Any, sample_weight: Any, n_clusters: int, labels: Any, *, full: bool
) -> list[Bound]:
    """What can be said at the price that is due: at fit time, or with ``full`` in :func:`surefit.verify`.

    Examples
    --------
    >>> X = [[0.0], [1.0], [10.0], [11.0], [30.0]]
    >>> [bound.method for bound in lower_bounds(X, None, 3, [0, 0, 1, 1, 2], full=False)]
    ['PCA tail', 'semidefinite relaxation']
    """
    design = as_design(X)
    n = design.shape[0]
    found = [pca_tail_bound(design, sample_weight, n_clusters)]
    if design.group.size > 1:
        return [*found, Bound(0.0, METHOD, "the rows are spread over processes")]
    if len(labels) != n:
        return [*found, Bound(0.0, METHOD, f"there are {len(labels)} labels for {n} rows")]
    if n > LARGEST_SDP:
        return [*found, Bound(0.0, METHOD, f"not tried on {n} rows (at most {LARGEST_SDP})")]
    if n > AT_FIT and not full:
        why = "surefit.verify or certify='full' tries it"
        return [*found, Bound(0.0, METHOD, why)]
    if full:
        return [*found, sdp_bound(design, sample_weight, n_clusters, labels)]
    quick = sdp_bound(
        design, sample_weight, n_clusters, labels, triangles=False, max_iter=STEPS_AT_FIT
    )
    return [*found, quick._replace(words="surefit.verify or certify='full' tries longer")]


def optimality_claim(
    inertia: float, n_clusters: int, bounds: Sequence[Bound], *, floor: float = 0.0
) -> Claim:
    """One claim from all bounds: the best possible, at most so much above it, or impossible.

    Parameters
    ----------
    inertia : float
        The WCSS of the clustering, computed in float64.
    n_clusters : int
    bounds : sequence of Bound
    floor : float, default=0
        What rounding can have added to the inertia: below it, it counts as 0.

    Examples
    --------
    >>> print(optimality_claim(8.4, 2, [Bound(8.0, "PCA tail")]).statement)
    the WCSS 8.4 is at most 5 % above that of the best clustering into 2 (PCA tail: none is below 8);
    whether a better one exists is not decided
    >>> optimality_claim(7.9, 2, [Bound(8.0, "PCA tail")]).status.name      # nobody can have that
    'FAILS'
    """
    best = max(bounds, key=lambda bound: bound.value, default=Bound(0.0, "", "none was computed"))
    into = f"clustering into {n_clusters}"
    if not inertia >= best.value * (1.0 - _ROUNDING) - floor:  # NaN too
        missing = (best.value - inertia) / best.value if best.value else math.nan
        statement = (
            f"the WCSS is given as {inertia:.6g}, and no {into} goes below {best.value:.6g} "
            f"({best.method})"
        )
        return Claim.check(NAME, statement, Kind.OPTIMAL, missing, 0.0, SOURCE)
    if inertia <= floor or inertia == 0.0:
        statement = f"the WCSS {inertia:.3g} is 0 to rounding, and none is below 0"
        return Claim.check(NAME, statement, Kind.OPTIMAL, 0.0, TIGHT, SOURCE)
    share = max(0.0, (inertia - best.value) / inertia)
    if share <= TIGHT:
        statement = (
            f"the WCSS {inertia:.6g} is that of the best possible {into}, to {share:.1e} of it "
            f"({best.method})"
        )
        return Claim.check(NAME, statement, Kind.OPTIMAL, share, TIGHT, SOURCE)
    if not best.value > 0.0:
        why = "; ".join(f"{bound.method}: {bound.words}" for bound in bounds if bound.words)
        why = f"no lower bound for a {into} above 0 is known ({why or best.words})"
        return Claim.uninformative(NAME, why, Kind.BOUND, source=SOURCE)
    rest = "; ".join(f"{bound.method}: {bound.words}" for bound in bounds if bound.words)
    statement = (
        f"the WCSS {inertia:.6g} is {_above(inertia / best.value)} that of the best {into} "
        f"({best.method}: none is below {best.value:.6g}); whether a better one exists is not decided"
    )
    statement += f" ({rest})" if rest else ""
    wide = inertia > LARGEST_FACTOR * best.value
    status = Status.UNINFORMATIVE if wide else Status.UNDECIDED
    return Claim(NAME, statement, Kind.BOUND, share, TIGHT, status, SOURCE)


def _above(factor: float) -> str:
    return (
        f"at most {100 * (factor - 1):.2g} % above"
        if factor < 2.0
        else f"at most {factor:.3g} times"
    )
