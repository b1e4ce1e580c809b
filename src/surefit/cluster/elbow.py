r"""How many clusters: the WCSS against K, and where its curve bends (CLU-4).

The WCSS of the best clustering never rises with K, and is 0 once every distinct row has a centre. The
fits made here keep that: each K is fitted by the estimator as it comes, and once more from the centres of
the K before plus the rows farthest from them; the better one counts. Splitting off a row cannot raise the
WCSS, and no step of k-means does.

**The rule.** The bend is the K farthest below the chord of the points (K, log WCSS), both axes scaled to
[0, 1]. The logarithm asks for *relative* gains: without it the first large split hides all later ones.
This is a heuristic. It names a K for every curve, also for rows without clusters; ``n_references``
compares with those.

**The gap statistic** (``n_references > 0``) compares log WCSS with its mean over that many sets of rows drawn
uniformly from a box along the principal axes of X, fitted alike, and takes the least K with
:math:`\mathrm{gap}(K) \ge \mathrm{gap}(K') - s_{K'}`, K' the next one. It can say 1. It too is a heuristic.

References
----------
Thorndike, "Who belongs in the family?", Psychometrika 18 (1953). Satopää et al., "Finding a 'kneedle' in a
haystack", ICDCS Workshops 2011. Tibshirani, Walther & Hastie, "Estimating the number of clusters in a data
set via the gap statistic", J. R. Stat. Soc. B 63 (2001).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._namespace import is_torch, like, to_numpy
from ..design import Design, as_design
from ._pca_tail import pca_tail_bounds

__all__ = ["ElbowTable", "elbow"]

Array = NDArray[np.float64]
_REFERENCE_ROWS = 2000  # of a reference set; its WCSS is compared a row
_NOTHING = 1e-12  # share of the scatter below which a WCSS counts as 0
_SPARSE_ROWS = 1024  # sparse rows that are spread out at a time


@dataclass(frozen=True, eq=False)
class ElbowTable:
    """WCSS against K, with what no clustering goes below, and a suggestion.

    Attributes
    ----------
    k : ndarray of int
        Numbers of clusters.
    wcss : ndarray
        Within-cluster sums of squares; they never rise.
    lower_bound : ndarray
        What no clustering into k goes below (PCA tail); 0 where it says nothing.
    explained : ndarray
        The share of the scatter about the mean that the clusters explain: 1 - wcss / scatter.
    gap, gap_error : ndarray
        The gap statistic and its standard error; NaN without reference sets.
    centres : tuple of arrays
        The centres of each fit, to start another from: ``KMeans(k, init=table.centres[i])``.
    chosen : int
        The suggested k.
    rule : str
        How it was chosen.
    """

    k: NDArray[np.int64]
    wcss: Array
    lower_bound: Array
    explained: Array
    gap: Array
    gap_error: Array
    centres: tuple[Any, ...]
    chosen: int
    rule: str

    def columns(self) -> dict[str, list[Any]]:
        """The table as lists."""
        names = ["k", "wcss", "lower_bound", "explained"]
        names += ["gap", "gap_error"] if np.isfinite(self.gap).any() else []
        return {name: getattr(self, name).tolist() for name in names}

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        with_gap = np.isfinite(self.gap).any()
        rows = []
        for i, k in enumerate(self.k):
            row = [str(k), f"{self.wcss[i]:.6g}", f"{self.lower_bound[i]:.6g}"]
            row += [f"{100 * self.explained[i]:.1f} %"]
            row += [f"{self.gap[i]:.3f} ± {self.gap_error[i]:.3f}"] if with_gap else []
            rows.append([*row, "←" if k == self.chosen else ""])
        head = ["K", "WCSS", "none below", "explained", *(["gap"] if with_gap else []), ""]
        return head, rows

    def __str__(self) -> str:
        head, rows = self._cells()
        widths = [max(len(line[j]) for line in (head, *rows)) for j in range(len(head))]
        lines = ["  ".join(c.rjust(w) for c, w in zip(line, widths)) for line in (head, *rows)]
        return "\n".join([*(line.rstrip() for line in lines), f"K = {self.chosen}: {self.rule}"])

    def __rich__(self) -> Any:
        from rich.table import Table

        head, rows = self._cells()
        table = Table(title="Elbow", title_justify="left")
        for name in head:
            table.add_column(name, justify="right", no_wrap=True)
        for i, row in enumerate(rows):
            table.add_row(*row, style="bold" if self.k[i] == self.chosen else None)
        table.caption, table.caption_justify = f"K = {self.chosen}: {self.rule}", "left"
        return table

    def plot(self, ax: Any = None) -> Any:
        """WCSS over K with its lower bound; the suggested K is marked."""
        from matplotlib import pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        ax.plot(self.k, self.wcss, "o-", color="#0072B2", lw=1.8, label="WCSS")
        ax.plot(
            self.k, self.lower_bound, "--", color="#999999", lw=1.2, label="no clustering is below"
        )
        i = int(np.flatnonzero(self.k == self.chosen)[0])
        ax.plot(
            self.chosen,
            self.wcss[i],
            "o",
            ms=13,
            mfc="none",
            mec="#D55E00",
            mew=2,
            label=f"K = {self.chosen}",
        )
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="number of clusters K", ylabel="within-cluster sum of squares")
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
        ax.legend(frameon=False)
        return ax


def elbow(
    X: Any,
    k_values: Iterable[int] = range(1, 11),
    *,
    estimator: Any = None,
    sample_weight: Any = None,
    n_references: int = 0,
    random_state: Any = None,
) -> ElbowTable:
    """Fit k-means for several K, each no worse than the one before, and suggest one.

    Parameters
    ----------
    X : array, sparse matrix, tensor or Design
        Whatever the estimator takes; reference sets need a dense array.
    k_values : iterable of int, default=1, ..., 10
    estimator : estimator or class, optional
        With scikit-learn's names: ``n_clusters``, ``init``, ``n_init``, ``inertia_``, ``cluster_centers_``,
        ``labels_``. By default :class:`surefit.cluster.KMeans`.
    sample_weight : array-like, optional
    n_references : int, default=0
        How many reference sets to draw for the gap statistic; 0 leaves it out.
    random_state : int, RandomState or None

    Returns
    -------
    ElbowTable

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(90, centers=[[0, 0], [8, 0], [0, 8]], random_state=0)
    >>> table = elbow(X, range(1, 6), estimator=KMeans, random_state=0)
    >>> table.chosen
    3
    """
    ks = _check(k_values, n_references, X)
    random = check_random_state(random_state)
    template = _template(estimator)
    seed = int(random.randint(np.iinfo(np.int32).max))
    wcss, centres = _curve(template, X, sample_weight, ks, seed)
    bounds = pca_tail_bounds(X, sample_weight, [1, *ks])
    scatter = bounds[0].value
    gap, error = np.full(len(ks), np.nan), np.full(len(ks), np.nan)
    if n_references:
        gap, error = _gaps(template, X, sample_weight, ks, wcss, n_references, random)
        place = _first_gap(gap, error)
        rule = (
            f"the least K whose gap to {n_references} uniform reference sets the next K does not exceed "
            "by more than its standard error; a heuristic"
        )
    else:
        place = _chord(ks, wcss, scatter)
        rule = (
            f"farthest below the chord of log WCSS over K = {ks[0]}, ..., {ks[-1]}; a heuristic, which "
            "names a K for every curve"
        )
    return ElbowTable(
        k=np.array(ks),
        wcss=wcss,
        lower_bound=np.array([bound.value for bound in bounds[1:]]),
        explained=np.maximum(0.0, 1.0 - wcss / scatter) if scatter > 0 else np.ones(len(ks)),
        gap=gap,
        gap_error=error,
        centres=tuple(centres),
        chosen=int(ks[place]),
        rule=rule,
    )


def _check(k_values: Iterable[int], n_references: int, X: Any) -> list[int]:
    given = list(k_values)
    if not given or any(int(k) != k or k < 1 for k in given):
        raise ValueError(f"k_values must be whole numbers from 1 on, got {given!r}.")
    if n_references < 0 or n_references == 1:
        raise ValueError(f"n_references must be 0 or at least 2, got {n_references!r}.")
    if n_references and not isinstance(X, (np.ndarray, list)) and not hasattr(X, "__array__"):
        raise ValueError(
            f"n_references={n_references} needs a dense array to draw reference sets from, got "
            f"{type(X).__name__}; use n_references=0."
        )
    return sorted({int(k) for k in given})


def _template(estimator: Any) -> Any:
    if estimator is None:
        from .kmeans import KMeans

        estimator = KMeans
    estimator = estimator() if isinstance(estimator, type) else clone(estimator)
    if "certify" in estimator.get_params():
        estimator.set_params(certify=False)  # the table has its own bounds
    return estimator


def _curve(
    template: Any, X: Any, sample_weight: Any, ks: list[int], seed: int
) -> tuple[Array, list[Any]]:
    """The WCSS and the centres for each K, each K also started from the one before."""
    design, found, kept = as_design(X), [], []
    before: Any = None
    for k in ks:
        start = None if before is None else _split(design, sample_weight, before, k)
        best = clone(template).set_params(n_clusters=k, random_state=seed)
        best.fit(X, sample_weight=sample_weight)
        if start is not None and best.inertia_ > 0:
            nested = clone(template).set_params(
                n_clusters=k, random_state=seed, init=start, n_init=1
            )
            nested.fit(X, sample_weight=sample_weight)
            best = nested if nested.inertia_ < best.inertia_ else best
        found.append(float(best.inertia_))
        kept.append(best.cluster_centers_)
        before = best
    return np.array(found), kept


def _split(design: Design, sample_weight: Any, model: Any, k: int) -> Any:
    """The centres of a model, and the rows farthest from the centres so far until there are k."""
    given = model.cluster_centers_
    centres = np.asarray(to_numpy(given), dtype=np.float64)
    rounding = (4.0 * float(np.finfo(to_numpy(given).dtype).eps)) ** 2  # of a mean of equal rows
    distances = _squares(design, centres[to_numpy(model.labels_)])
    if sample_weight is not None:
        distances = np.where(to_numpy(sample_weight) > 0, distances, 0.0)
    while len(centres) < k:
        here = int(np.argmax(distances))
        offers = design.group.gather((float(distances[here]), _row(design, here)))
        farthest, row = max(offers, key=lambda offer: offer[0])
        if farthest <= rounding * float(row @ row):
            raise ValueError(
                f"k_values asks for {k} clusters, and X has {len(centres)} distinct rows; leave out larger K."
            )
        centres = np.vstack([centres, row])
        distances = np.minimum(distances, _squares(design, row[None, :]))
    if is_torch(given):
        return like(centres, given).to(given.dtype)
    return centres.astype(given.dtype)


def _squares(design: Design, centres: Array) -> Array:
    """The squared distance of each row held here to its own centre, or to the one that there is."""
    out = np.empty(design.rows_here)
    for rows, block in design.blocks():
        size = _SPARSE_ROWS if sp.issparse(block) else block.shape[0]
        for start in range(0, block.shape[0], size):
            part = block[start : start + size]
            dense = part.toarray() if sp.issparse(part) else to_numpy(part)
            at = slice(rows.start + start, rows.start + start + dense.shape[0])
            own = centres if len(centres) == 1 else centres[at]
            out[at] = np.square(dense - own).sum(axis=1)
    return out


def _row(design: Design, i: int) -> Array:
    """The i-th row held here."""
    for rows, block in design.blocks():
        if rows.start <= i < rows.stop:
            row = block[i - rows.start : i - rows.start + 1]
            return np.asarray(row.toarray() if sp.issparse(row) else to_numpy(row))[0].copy()
    raise IndexError(i)


def _chord(ks: list[int], wcss: Array, scatter: float) -> int:
    """The place of the point farthest below the chord from the first to the last, in log WCSS."""
    visible = wcss > _NOTHING * max(scatter, float(wcss[0]))
    last = int(visible.sum())  # a WCSS of 0 has no logarithm
    if last < 3:
        return last if last < len(ks) else 0
    x, y = np.array(ks[:last], dtype=np.float64), np.log(wcss[:last])
    if y[0] <= y[-1]:
        return 0
    below = 1.0 - (x - x[0]) / (x[-1] - x[0]) - (y - y[-1]) / (y[0] - y[-1])
    return int(np.argmax(below))


def _gaps(
    template: Any,
    X: Any,
    sample_weight: Any,
    ks: list[int],
    wcss: Array,
    count: int,
    random: np.random.RandomState,
) -> tuple[Array, Array]:
    """The gap statistic and its standard error, from log(WCSS per unit of weight)."""
    rows = np.asarray(X, dtype=np.float64)
    weights = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight)
    mean = weights @ rows / weights.sum()
    _, _, axes = np.linalg.svd(rows - mean, full_matrices=False)
    scores = (rows - mean) @ axes.T
    low, high = scores.min(axis=0), scores.max(axis=0)
    n = min(len(rows), _REFERENCE_ROWS)
    logs = np.empty((count, len(ks)))
    for b in range(count):
        reference = random.uniform(low, high, (n, len(low))) @ axes + mean
        seed = int(random.randint(np.iinfo(np.int32).max))
        found, _ = _curve(template, reference, None, ks, seed)
        logs[b] = np.log(found / n)
    tiny = np.finfo(np.float64).tiny
    gap = logs.mean(axis=0) - np.log(np.maximum(wcss / weights.sum(), tiny))
    return gap, logs.std(axis=0) * np.sqrt(1.0 + 1.0 / count)


def _first_gap(gap: Array, error: Array) -> int:
    good = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    return int(good[0]) if len(good) else len(gap) - 1
