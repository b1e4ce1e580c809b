"""One-vs-one for kernel machines: pairs of classes, LIBSVM's layout of their multipliers, their claims."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..certificate import Claim, Kind
from ..kernels import Linear
from ._rows import kernel_sums, take
from ._separability import decide_separable, separability_claim, shared_row
from ._svc_claims import Box, box_claims, undecided_gap

__all__ = [
    "Pair",
    "Regimes",
    "multipliers_by_class",
    "multipliers_by_pair",
    "pair_claims",
    "pairs_of",
]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
_CHEAP = 1 << 23  # kernel values that a fit may spend on its certificate
_EPS = float(np.finfo(np.float64).eps)


class Pair(NamedTuple):
    """The rows of two classes, those of the first before ``split``, with their labels +1, -1 and C_i."""

    first: int
    second: int
    rows: Index
    split: int
    signs: Array
    bounds: Array


class Regimes(NamedTuple):
    """Rows by their multiplier (SVM-9): outside the margin, on it, inside or on the wrong side."""

    outside: Index
    on: Index
    inside: Index

    @classmethod
    def of(cls, pair: Pair, alpha: Array) -> Regimes:
        """Those of a pair, from the multipliers of all rows."""
        a = alpha[pair.rows]
        inside = (a >= pair.bounds) & (a > 0)
        masks = (a == 0, (a > 0) & ~inside, inside)
        return cls(*(np.sort(pair.rows[mask]) for mask in masks))


def pairs_of(codes: Index, k: int, bounds: Array) -> list[Pair]:
    """Every pair of classes, without rows whose bound is 0."""
    groups = [np.flatnonzero((codes == c) & (bounds > 0)) for c in range(k)]
    found = []
    for a, b in combinations(range(k), 2):
        rows = np.concatenate([groups[a], groups[b]])
        signs = np.repeat([1.0, -1.0], [len(groups[a]), len(groups[b])])
        found.append(Pair(a, b, rows, len(groups[a]), signs, bounds[rows]))
    return found


def multipliers_by_class(pairs: list[Pair], betas: list[Array], k: int, n: int) -> Array:
    """LIBSVM's layout, of shape (k - 1, n): for each row its multipliers against each other class."""
    dual = np.zeros((k - 1, n))
    for pair, beta in zip(pairs, betas):
        dual[pair.second - 1, pair.rows[: pair.split]] = beta[: pair.split]
        dual[pair.first, pair.rows[pair.split :]] = beta[pair.split :]
    return dual


def multipliers_by_pair(dual: Array, n_support: Any, k: int) -> Array:
    """The way back: a column for each pair over the support vectors, which are sorted by class."""
    ends = np.cumsum([0, *n_support])
    pairs = list(combinations(range(k), 2))
    W = np.zeros((dual.shape[1], len(pairs)))
    for w, (a, b) in zip(W.T, pairs):
        w[ends[a] : ends[a + 1]] = dual[b - 1, ends[a] : ends[a + 1]]
        w[ends[b] : ends[b + 1]] = dual[a, ends[b] : ends[b + 1]]
    return W


def pair_claims(
    model: Any, X: Any, pairs: list[Pair], undecided: Claim | None, *, full: bool, tol: float
) -> list[tuple[str, list[Claim]]]:
    """The claims about each pair, under its name."""
    W, offsets = model._pair_weights(), model._intercept_
    support = np.asarray(model.support_)
    farkas = np.atleast_2d(getattr(model, "farkas_", np.zeros((len(pairs), 0))))
    cost = sum(len(pair.rows) * np.count_nonzero(w) for pair, w in zip(pairs, W.T))
    decide = bool(full or model._given or cost <= _CHEAP)
    found = []
    for k, pair in enumerate(pairs):
        name = f"{model.classes_[pair.first]} vs {model.classes_[pair.second]}"
        place = np.full(X.shape[0], -1)
        place[pair.rows] = np.arange(len(pair.rows))
        used = np.flatnonzero(W[:, k])
        if (len(used) and (place[support[used]] < 0).any()) or not len(pair.rows):
            words = "a support vector is not a row of these classes"
            claim = Claim.check("support rows", words, Kind.EXACT, 1.0, 0.0, "SVM-3")
            found.append((name, [claim]))
            continue
        part = _Part(model, X, pair, W[used, k], used, place[support[used]], float(offsets[k]))
        if not (pair.signs > 0).any() or not (pair.signs < 0).any():
            found.append((name, [_feasible_only(part)]))
            continue
        if (
            np.isinf(model.C)
            and farkas.shape[1] == X.shape[0]
            and farkas[min(k, len(farkas) - 1)].any()
        ):
            claims = part.farkas_claims(farkas[min(k, len(farkas) - 1)][pair.rows])
        else:
            claims = box_claims(part.box, part.values, tol=tol, decide=decide, free_values=part.at)
        if undecided is not None:
            claims = [c for c in claims if c.name not in ("duality gap", "margin")] + [undecided]
        found.append((name, claims))
    return found


def _feasible_only(part: _Part) -> Claim:
    size = float(np.abs(part.box.beta).max(initial=0.0))
    words = (
        f"only one class has rows with weight: its multipliers are 0 (the largest is {size:.1e})"
    )
    return Claim.check("dual feasibility", words, Kind.EXACT, size, 0.0, "SVM-7")


class _Part:
    """The box problem of a pair, with kernel sums over its rows."""

    def __init__(
        self, model: Any, X: Any, pair: Pair, w: Array, used: Index, place: Index, offset: float
    ) -> None:
        self.model, self.X, self.pair, self.used, self.place = model, X, pair, used, place
        zero, signs, n = np.zeros(len(pair.rows)), pair.signs, len(pair.rows)
        beta = zero.copy()
        beta[place] = w
        lo = np.where(signs > 0, 0.0, -pair.bounds)
        hi = np.where(signs > 0, pair.bounds, 0.0)
        self.box = Box(signs, lo, hi, np.arange(n), beta, offset, self._size())

    def _size(self) -> float:
        support = np.asarray(self.model.support_)[self.used]
        if not len(support):
            return 1.0
        if self.model._given:
            return float(np.abs(self.X[support, support]).max())
        rows = take(self.X, support)
        return float(np.abs(np.asarray(_host(self.model.kernel_.diag(rows)))).max())

    def _sums(self, rows: Index, weights: Array) -> Array:
        model = self.model
        if not len(self.used):
            return np.zeros((len(rows), weights.shape[1]))
        right = None if model._given else take(model.support_vectors_, self.used)
        columns = np.asarray(model.support_)[self.used]
        return kernel_sums(model.kernel_, take(self.X, rows), right, weights, columns=columns)

    def values(self, weights: Array) -> Array:
        """K @ weights over the rows of the pair."""
        return self._sums(self.pair.rows, weights[self.place])

    def at(self, rows: Index) -> Array:
        """The model's sums at some rows of the pair."""
        return self._sums(self.pair.rows[rows], self.box.beta[self.place][:, None])[:, 0]

    def farkas_claims(self, weights: Array) -> list[Claim]:
        """From weights of both classes: their hulls meet to rounding, which bounds every margin."""
        weights, signs = np.maximum(np.nan_to_num(weights), 0.0), self.pair.signs
        for side in (signs > 0, signs < 0):
            weights[side] /= max(float(weights[side].sum()), 1e-300)
        kept = np.flatnonzero(weights)
        rows, signed = self.pair.rows[kept], (weights * signs)[kept]
        if self.model._given:
            K = np.asarray(self.X[np.ix_(rows, rows)], dtype=np.float64)
            product, size = K @ signed, float(np.abs(np.diagonal(K)).max(initial=0.0))
        else:
            part = take(self.X, rows)
            product = kernel_sums(self.model.kernel_, part, part, signed[:, None])[:, 0]
            size = float(np.abs(np.asarray(_host(self.model.kernel_.diag(part)))).max(initial=0.0))
        sums = [float(weights[signs > 0].sum()), float(weights[signs < 0].sum())]
        balanced = all(abs(total - 1.0) < 1e-9 for total in sums)
        apart = math.sqrt(max(float(signed @ product), 0.0)) if balanced else math.inf
        floor = math.sqrt(64.0 * _EPS * max(size, 1e-300) * math.sqrt(len(kept) + 1.0))
        margin = 0.5 * math.hypot(apart, floor)
        words = (
            f"convex combinations of the two classes, of {len(kept)} rows in all, are {apart:.1e} apart in "
            f"feature space, where distances are known to {floor:.1e}: no hyperplane has a margin wider than "
            f"{margin:.1e}"
        )
        none = (
            f"this model is no hard margin, and none is wider than {margin:.1e} (see 'not separable'); a "
            "finite C allows rows inside the margin"
        )
        separable = self._is_separable(weights)
        return [
            separability_claim(separable, words, apart, floor, "SVM-2"),
            Claim.check("hard margin", none, Kind.BOUND, 1.0, 0.0, "SVM-2"),
            undecided_gap(f"no hyperplane has a margin wider than {margin:.1e}: rounding hides it"),
        ]

    def _is_separable(self, weights: Array) -> bool | None:
        """In exact arithmetic, where the features are the columns of X, or a row is in both classes."""
        rows, signs = take(self.X, self.pair.rows), self.pair.signs
        if isinstance(self.model.kernel_, Linear):
            return decide_separable(rows, signs, weights, fit_intercept=True)
        held = np.flatnonzero(weights > 0.0)
        return False if shared_row(take(rows, held), signs[held]) else None


def _host(values: Any) -> Any:
    return values.cpu().numpy() if hasattr(values, "cpu") else values
