r"""The claims of a k-means fit, decided without any code of the solver.

One pass over the rows gives everything. With z the labels, c the centres and d_i = x_i - c_{z_i}:

* *labels*: no centre is nearer to a row than its own, ties to the lowest number. A float32 product with a
  bound on its error settles most rows, a float64 one nearly all others, rational numbers the rest.
* *centres*: sum_{i in j} w_i d_i / w_j is how far the mean of cluster j lies from its centre: the move
  of one more Lloyd step.
* *WCSS*: sum_i w_i |d_i|^2 is ``inertia_``.
* *monotone*: ``inertia_trace_``, kept by the fit, never rises and ends there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._exact_order import SMALL, UNIT, exactly_first
from .._namespace import is_torch, to_numpy
from .._threads import over_rows
from ..certificate import Claim, Kind
from ..design import Dense, Design, as_design

__all__ = ["Findings", "kmeans_claims", "labels_claim", "look", "optimum_claims", "wcss_claim"]

Array = NDArray[np.float64]
_ROWS = 1024  # of a block of products
_PATIENCE = 2000  # rows that rational numbers may decide at fit


class Findings(NamedTuple):
    """What one pass over the rows found, summed over all ranks."""

    wrong: int  # labels that are not the nearest centre
    open: int  # rows that were not decided, to save time
    rows: int
    masses: Array
    moves: Array  # of the centres in one more step; 0 for clusters without weight
    wcss: float
    spread: float  # sum of weight * |x - mean of x|^2
    size: float  # the same as the fit sees it: about 0 for sparse rows, which it does not centre
    variance: float  # mean over the columns, unweighted


def kmeans_claims(model: Any, X: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
    """All claims of a KMeans fit."""
    found = look(model, X, sample_weight, full=full)
    claims = [
        labels_claim(found),
        wcss_claim(model, found),
        _centres_claim(model, found),
        _trace_claim(model, found),
    ]
    if len(model.restart_inertias_) > 1:
        claims.append(_restarts_claim(model))
    return claims + optimum_claims(model, X, sample_weight, found, full=full)


def optimum_claims(
    model: Any, X: Any, sample_weight: Any, found: Findings, *, full: bool
) -> list[Claim]:
    """How far the fit is from the least possible sum of squares: lower bounds are plugged in here."""
    return []


# ---------------------------------------------------------------------------- the sentences


def labels_claim(found: Findings) -> Claim:
    if found.open:
        why = (
            f"{found.open} rows lie so nearly between two centres that only rational numbers tell; "
            "surefit.verify or certify='full' decides them"
        )
        return Claim.undecided("labels", why, Kind.EXACT, "CLU-1")
    statement = (
        f"of {found.rows} rows, {found.wrong} have a label other than their nearest centre, in exact "
        "arithmetic, ties to the lowest number"
    )
    return Claim.check("labels", statement, Kind.EXACT, found.wrong, 0, "CLU-1")


def wcss_claim(model: Any, found: Findings) -> Claim:
    gap = abs(float(model.inertia_) - found.wcss)
    p = model.cluster_centers_.shape[1]
    bound = 2.0 * UNIT * (p + 4.0 * math.sqrt(found.rows) + 64.0) * found.wcss
    statement = (
        f"inertia_ = {float(model.inertia_):.12g} differs by {gap:.1e} from the sum of squares within "
        "clusters, recomputed"
    )
    return Claim.check("WCSS", statement, Kind.EXACT, gap, bound, "CLU-1")


def _centres_claim(model: Any, found: Findings) -> Claim:
    """The move of one more Lloyd step against the tolerance, or against rounding where it is that small."""
    moved = float(np.vdot(found.moves, found.moves))
    centres = to_numpy(model.cluster_centers_)
    unit = float(np.finfo(centres.dtype).eps)
    rms = math.sqrt(found.spread / max(float(found.masses.sum()), 1e-300))
    size = np.sqrt(np.einsum("ij,ij->i", centres, centres, dtype=np.float64)) * unit
    size += 4.0 * UNIT * math.sqrt(found.rows) * rms
    floor = float(size @ size)
    allowed = float(model.tol) * found.variance
    empty = int(np.count_nonzero(found.masses == 0.0))
    words = f"; {empty} clusters hold no row" if empty else ""
    if moved <= floor:
        statement = (
            "each centre is the weighted mean of its rows, to rounding: one more step would move the centres "
            f"by {math.sqrt(moved):.1e} in all; stationary, no optimality claim{words}"
        )
        return Claim.check("centres", statement, Kind.STATIONARY, moved, floor, "CLU-1")
    statement = (
        f"one more step would move the centres by {moved:.2e} (squared, in all), where tol times the mean "
        f"variance is {allowed:.2e}: stationary to that, no optimality claim{words}"
    )
    return Claim.check("centres", statement, Kind.STATIONARY, moved, allowed, "CLU-1")


def _trace_claim(model: Any, found: Findings) -> Claim:
    trace = np.append(np.asarray(model.inertia_trace_, dtype=np.float64), found.wcss)
    rise = float(np.max(np.diff(trace), initial=0.0))
    end = abs(float(trace[-2]) - found.wcss) if len(trace) > 1 else math.inf
    centres = to_numpy(model.cluster_centers_)
    p = centres.shape[1]
    bound = 4.0 * UNIT * (p + 4.0 * math.sqrt(found.rows) + 64.0) * max(found.size, found.wcss)
    if centres.dtype == np.float32:  # the last centres were rounded
        lengths = np.sqrt(np.einsum("ij,ij->i", centres, centres, dtype=np.float64))
        pulls = found.masses * np.sqrt(np.einsum("ij,ij->i", found.moves, found.moves))
        bound += 2.0**-23 * float(lengths @ pulls) + 2.0**-46 * float(found.masses @ lengths**2)
    steps = len(trace) - 2
    statement = (
        f"over {steps} iterations the sum of squares went from {trace[0]:.6g} to {found.wcss:.6g} and rose "
        f"by {max(rise, 0.0):.1e} at most; the trace ends {end:.1e} from the recomputed sum"
    )
    observed = max(rise, end) if steps == int(model.n_iter_) else math.inf
    return Claim.check("monotone", statement, Kind.BOUND, observed, bound, "CLU-1")


def _restarts_claim(model: Any) -> Claim:
    ends = np.asarray(model.restart_inertias_, dtype=np.float64)
    best, worst = float(ends.min()), float(ends.max())
    spread = (worst - best) / best if best > 0 else 0.0
    near = int(np.count_nonzero(ends <= best * 1.001))
    statement = (
        f"{len(ends)} restarts ended between {best:.6g} and {worst:.6g}, {spread:.2%} apart, {near} of them "
        "within 0.1% of the best, which was kept: the outcome depends on the first centres that much"
    )
    excess = float(model.inertia_) - best
    return Claim.check("restarts", statement, Kind.EMPIRICAL, excess, 1e-9 * best, "CLU-2")


# ---------------------------------------------------------------------------- the pass over the rows


class _Table:
    """The centres, for products in float32 and float64 with bounds on their errors."""

    def __init__(self, centres: Array) -> None:
        self.centres = centres
        self.origin = centres.mean(axis=0)
        moved = centres - self.origin
        p = centres.shape[1]
        reach = float(np.abs(moved).max(initial=0.0))
        self.scale = 2.0 ** -min(max(math.frexp(reach)[1], -1000), 1000) if reach > 0 else 1.0
        self.kinds = []
        for kind, unit, tiny in ((np.float32, 2.0**-24, 2.0**-110), (np.float64, UNIT, 2.0**-900)):
            table = moved * self.scale
            halves = 0.5 * np.einsum("ij,ij->i", table, table)
            longest = math.sqrt(2.0 * float(halves.max()))
            # products: p roundings; both factors, the half square and the difference: one each
            slope = 1.01 * unit * (p + 6.0) * longest if p * unit < 0.005 else math.inf
            floor = 2.0 * unit * longest**2 + p * tiny
            self.kinds.append(
                (np.ascontiguousarray(table.T.astype(kind)), halves.astype(kind), slope, floor)
            )

    def doubtful(self, rows: Array, labels: Any, level: int) -> Any:
        """Rows of which products in float32 (level 0) or float64 (1) do not show the label to be right."""
        table, halves, slope, floor = self.kinds[level]
        with np.errstate(all="ignore"):
            part = ((rows - self.origin) * self.scale).astype(table.dtype)
            length = np.sqrt(np.einsum("ij,ij->i", part, part, dtype=np.float64))
            scores = part @ table
            np.subtract(halves, scores, out=scores)
            at = np.arange(len(rows))
            own = scores[at, labels].astype(np.float64)
            scores[at, labels] = np.inf
            rival = scores.min(axis=1).astype(np.float64)
            return np.flatnonzero(~(rival - own > 2.0 * (slope * length + floor)))

    def is_right(self, row: Array, label: int) -> bool:
        """Whether this label is the nearest centre in exact arithmetic, the lowest of equals."""
        gap = self.centres - row
        squares = np.einsum("ij,ij->i", gap, gap)
        below = squares * (1.0 - (len(row) + 8) * 2.0 * UNIT) - SMALL
        return exactly_first(row, self.centres, np.array([label]), below)


def look(model: Any, X: Any, sample_weight: Any, *, full: bool) -> Findings:
    """One pass over the rows."""
    design = as_design(X)
    centres = to_numpy(model.cluster_centers_).astype(np.float64)
    labels = to_numpy(model.labels_)
    k, p = centres.shape
    n = design.shape[0]
    fits = (
        labels.shape == (design.rows_here,)
        and labels.min(initial=0) >= 0
        and labels.max(initial=0) < k
    )
    if design.group.max(np.float64(not fits)):
        return Findings(
            n, 0, n, np.zeros(k), np.full((k, p), np.inf), math.inf, math.inf, math.inf, math.nan
        )
    mine = getattr(sample_weight, "here", sample_weight)  # of the rows held here
    weights = np.ones(design.rows_here) if mine is None else to_numpy(mine)
    table = _Table(centres)
    parts = [
        part
        for rows, block in _stretches(design)
        for part in _parts(block, rows, table, labels, weights)
    ]
    moves, masses, plain, squares, bare = (
        np.sum([part[i] for part in parts], axis=0) for i in range(5)
    )
    sums = [math.fsum(part[i] for part in parts) for i in (5, 6)]
    wrong, open_, left = 0, 0, _PATIENCE
    for part in parts:
        for row, label in part[7]:
            if left == 0 and not full:
                open_ += 1
                continue
            left = max(0, left - 1)
            wrong += not table.is_right(row, label)
    moves, masses, plain, squares, bare, wcss, spread, wrong, open_ = design.group.sum(
        moves,
        masses,
        plain,
        squares,
        bare,
        np.float64(sums[0]),
        np.float64(sums[1]),
        np.int64(wrong),
        np.int64(open_),
    )
    total = max(float(masses.sum()), 1e-300)
    spread = float(spread) - float(bare @ bare) / total  # about the weighted mean
    middle = table.origin + bare / total
    size = spread + (0.0 if design.centres_first else total * float(middle @ middle))
    variance = float(np.mean(squares / n - (plain / n) ** 2))
    moves = moves / np.where(masses > 0.0, masses, 1.0)[:, None]
    moves[masses <= 0.0] = 0.0
    return Findings(
        int(wrong),
        int(open_),
        n,
        masses,
        moves,
        float(wcss),
        max(spread, 0.0),
        max(size, 0.0),
        max(variance, 0.0),
    )


def _stretches(design: Design) -> Iterator[tuple[slice, Any]]:
    local = getattr(design, "local", design)  # of rows over ranks, those held here
    if isinstance(local, Dense):
        yield slice(0, local.shape[0]), local.X
        return
    yield from design.blocks()


def _parts(block: Any, rows: slice, table: _Table, labels: Any, weights: Array) -> list[Any]:
    size = max(_ROWS, len(table.centres))

    def work(first: int, last: int) -> Any:
        total: Any = None
        for k in range(first, last, size):
            part = _block(block, k, min(k + size, last), rows.start, table, labels, weights)
            if total is None:
                total = (*part[:5], [part[5]], [part[6]], part[7])
                continue
            for into, more in zip(total[:5], part[:5]):
                into += more
            for into, more in zip(total[5:7], part[5:7]):
                into.append(more)
            total[7].extend(part[7])
        return (*total[:5], math.fsum(total[5]), math.fsum(total[6]), total[7])

    return over_rows(block.shape[0], work) if block.shape[0] else []


def _block(
    block: Any, first: int, last: int, start: int, table: _Table, labels: Any, weights: Array
) -> Any:
    part = block[first:last]
    part = part.toarray() if sp.issparse(part) else to_numpy(part) if is_torch(part) else part
    x = np.asarray(part, dtype=np.float64)
    z, w = labels[start + first : start + last], weights[start + first : start + last]
    k = len(table.centres)
    doubt = table.doubtful(x, z, 0)
    if len(doubt):
        doubt = doubt[table.doubtful(x[doubt], z[doubt], 1)]
    gap = x - table.centres[z]
    squares = np.einsum("ij,ij->i", gap, gap)
    shares = sp.csr_array((w, (z, np.arange(len(z)))), shape=(k, len(z)))
    centred = x - table.origin
    each = np.einsum("ij,ij->i", centred, centred)
    return (
        shares @ gap, np.bincount(z, weights=w, minlength=k), centred.sum(axis=0),
        np.einsum("ij,ij->j", centred, centred), w @ centred, float(np.sum(w * squares)),
        float(np.sum(w * each)), [(x[i].copy(), int(z[i])) for i in doubt],
    )  # fmt: skip
