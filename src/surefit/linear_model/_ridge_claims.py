"""The claims about the scores that chose a ridge penalty: every score once more, from the data.

Each fold and each alpha has a linear system of its own here, solved by itself; nothing of the solver is used.
What rounding may do to a score is estimated from the condition of the system, and a score that it may spoil
is left undecided.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.utils.validation import _check_method_params

from .._attributes import storage_eps
from .._selection import dense_rows, rescored_claim, take_rows, unpack_folds
from ..certificate import Claim, Kind
from ..design import as_design
from ._ridge_scores import fold_predictions, score_errors, score_fold, spread
from .least_squares import kept_rows
from .ridge_classifier import RidgeLabels

__all__ = ["folds_claim", "loo_claims"]

Array = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_LARGEST = 5000  # rows or columns, whichever are fewer, up to which everything is computed again


def loo_claims(
    cv: Any, X: Any, y: Any, target: Array, weights: Array | None, alphas: Array
) -> list[Claim]:
    """All leave-one-out scores, and a few rows left out in earnest."""
    rows, Y, s = kept_rows(X, target, weights)
    why = _too_large(rows) or _unknown_metadata(cv)
    if not why and cv.cv_scores_.shape[0] != len(alphas):
        why = f"{cv.cv_scores_.shape[0]} scores are recorded for {len(alphas)} alphas"
    if why:
        return [Claim.undecided("scores", why, Kind.EXACT, "GEN-7")]
    errors, slips = _loo_again(rows, Y, s, alphas, cv.fit_intercept)
    whole = errors
    if len(Y) < len(target):
        path, _ = _path_again(rows, Y, s, alphas, cv.fit_intercept)
        whole = spread(X, target, np.asarray(weights), errors, path)
    extra = {} if "sample_weight" not in cv.scored_with_ else {"sample_weight": weights}
    scored = score_errors(cv, whole, y, target, weights, extra)
    floor = _score_floor(cv, scored.scores, slips, target, weights)
    what = f"the leave-one-out scores of all {len(alphas)} alphas"
    claims = [rescored_claim(cv.cv_scores_, scored.scores, floor, what)]
    recorded = getattr(cv, "cv_results_", None)
    if recorded is not None:
        claims.append(_results_claim(cv, recorded, scored.values, errors, slips, target, weights))
    claims.append(_left_out_claim(cv, rows, Y, s))
    return claims


def folds_claim(
    cv: Any, X: Any, y: Any, target: Array, weights: Array | None, alphas: Array
) -> Claim:
    """All scores of all folds, each from a factorisation of its own."""
    folds = unpack_folds(cv.folds_)
    n = len(target)
    s = np.ones(n) if weights is None else weights
    why = _too_large(X) or _unknown_metadata(cv)
    if sum(len(test) for _, test in folds) > 0 and (
        max(int(max(a.max(initial=0), b.max(initial=0))) for a, b in folds) >= n
        or (isinstance(cv.folds_, np.ndarray) and len(cv.folds_) != n)
    ):
        why = f"the recorded folds are not folds of {n} rows"
    if not why and cv.cv_scores_.shape != (len(alphas), len(folds)):
        why = f"{cv.cv_scores_.shape} scores are recorded for {len(alphas)} alphas, {len(folds)} folds"
    if why:
        return Claim.undecided("scores", why, Kind.EXACT, "GEN-7")
    Y = target.reshape(n, -1)
    X = X.tocsr() if hasattr(X, "tocsr") else X
    extra = {} if "sample_weight" not in cv.scored_with_ else {"sample_weight": weights}
    again, floor = np.empty(cv.cv_scores_.shape), np.empty(cv.cv_scores_.shape)
    for k, (train, test) in enumerate(folds):
        kept = train[s[train] > 0]
        path, slips = _path_again(X[kept], Y[kept], s[kept], alphas, cv.fit_intercept)
        given = _check_method_params(X, params=extra, indices=test)
        again[:, k] = score_fold(
            cv, X[test], y[test], path, np.asarray(cv.alphas).reshape(-1), given,
            flat=target.ndim == 1,
        )  # fmt: skip
        floor[:, k] = _score_floor(cv, again[:, k], slips, target[test], None)
        if isinstance(cv, RidgeLabels):  # a row on the border may fall on either side
            floor[:, k] += _borderline(fold_predictions(X[test], path), slips)
    what = f"the scores of all {len(alphas)} alphas in all {len(folds)} folds"
    return rescored_claim(cv.cv_scores_, again, floor, what)


def _too_large(X: Any) -> str:
    n, p = X.shape
    if min(n, p) > _LARGEST:
        return f"the matrix, {n} x {p}, is too large to compute every score again"
    return ""


def _unknown_metadata(cv: Any) -> str:
    others = sorted(set(cv.scored_with_) - {"sample_weight"})
    if others:
        return f"the scorer was given {', '.join(others)}, which verify does not have"
    return ""


def _score_floor(
    cv: Any, scores: Array, slips: Array, target: Array, weights: Array | None
) -> Array:
    """What an error of ``slips`` in each prediction may do to a score."""
    slips = slips if scores.ndim == 1 else slips[:, None]
    if cv.scoring is None and cv.cv is None:  # a mean of squares
        heavy = 1.0 if weights is None else float(np.max(weights))
        bend = math.sqrt(heavy) * slips
        out: Array = 2.0 * bend * np.sqrt(np.abs(scores)) + bend**2 + 1e-13 * np.abs(scores)
        return out
    scale = float(np.std(target)) or 1.0
    return (1.0 + np.abs(np.nan_to_num(scores))) * (20.0 * slips / scale + 1e-12)


def _borderline(decisions: Array, slips: Array) -> Array:
    """The share of rows whose decision an error of ``slips`` can change."""
    if decisions.shape[1] == 1:
        margins = np.abs(decisions[:, 0])
    else:
        ordered = np.sort(decisions, axis=1)
        margins = np.minimum(ordered[:, -1] - ordered[:, -2], np.abs(decisions).min(axis=1))
    return (margins <= 2.0 * slips).mean(axis=0)


def _results_claim(
    cv: Any,
    recorded: NDArray[Any],
    values: Array,
    errors: Array,
    slips: Array,
    target: Array,
    weights: Array | None,
) -> Claim:
    """``cv_results_``, entry by entry."""
    values = values[:, 0] if target.ndim == 1 else values
    if recorded.shape != values.shape:
        why = f"cv_results_ has the shape {recorded.shape}, these data give {values.shape}"
        return Claim.undecided("cv_results", why, Kind.EXACT, "GEN-7")
    bend = slips * (1.0 if weights is None else math.sqrt(float(weights.max())))
    rounding = storage_eps(recorded.dtype) * (np.abs(values) + float(np.abs(target).max()))
    if cv.scoring is None:
        rounding = storage_eps(recorded.dtype) * np.abs(values)
        bend = 2.0 * bend * np.sqrt(values) + bend**2
    what = "cv_results_"
    return rescored_claim(recorded, values, 4.0 * bend + 4.0 * rounding, what, name="cv_results")


def _left_out_claim(cv: Any, rows: Any, Y: Array, s: Array) -> Claim:
    """Three rows, left out: the models fitted without them err as the identity says."""
    alphas = np.atleast_1d(np.asarray(cv.alpha_, dtype=np.float64))
    coef = np.atleast_2d(cv.coef_).T.astype(np.float64)
    residual = Y - (as_design(rows).dot(coef) + np.asarray(cv.intercept_, dtype=np.float64))
    largest = int(np.argmax(np.abs(residual).max(axis=1)))
    worst, bound = 0.0, 0.0
    picked = sorted({0, len(Y) // 2, largest}) if len(Y) > 1 else []
    targets = np.arange(Y.shape[1])
    for alpha in np.unique(alphas):
        mine = targets if len(alphas) == 1 else targets[alphas == alpha]
        rest, relative = _System(rows, Y, s, cv.fit_intercept).rest(float(alpha))
        for i in picked:
            others = np.arange(len(Y)) != i
            path, own = _path_again(
                take_rows(rows, others), Y[others][:, mine], s[others], np.array([alpha]),
                cv.fit_intercept,
            )  # fmt: skip
            missed = Y[i, mine] - fold_predictions(take_rows(rows, [i]), path)[0, :, 0]
            said = residual[i, mine] / rest[i]
            eps = storage_eps(cv.coef_.dtype)
            size = float(np.abs(Y).max()) + float(np.abs(missed).max(initial=0.0))
            size += float(np.abs(as_design(rows).dot(coef)).max())
            slack = float(own[0]) + (relative + 8.0 * eps / max(float(rest[i]), 1e-300)) * size
            gap = float(np.abs(missed - said).max(initial=0.0))
            if not gap - slack <= worst - bound or (worst == 0.0 and bound == 0.0):
                worst, bound = gap, slack
    statement = (
        f"{len(picked)} rows left out: models fitted without them err on them by e / (1 - h), to "
        f"{worst:.1e}"
    )
    size = float(np.abs(Y).max(initial=0.0)) or 1.0
    if not math.isfinite(bound) or bound > 1e-3 * size:
        why = f"a fit without a row could be computed to {bound:.1e} only: nothing is shown"
        return Claim.undecided("left-out rows", why, Kind.EXACT, "GEN-7")
    return Claim.check("left-out rows", statement, Kind.EXACT, worst, bound, "GEN-7")


# ------------------------------------------------------------------------ the linear algebra of the above


class _System:
    """(A'A + alpha I) w = A'B of the centred, weighted rows, or (A A' + alpha I) c = B where these are few.

    In the second form A A' is 0 along u = sqrt(s / sum(s)) with an intercept; a multiple of u u' is added, so
    that this direction does not drown the others.
    """

    def __init__(self, X: Any, Y: Array, s: Array, fit_intercept: bool) -> None:
        self.design, self.s = as_design(X), s
        n, p = self.design.shape
        self.mean, self.y_mean, self.own = np.zeros(p), np.zeros(Y.shape[1]), np.zeros(n)
        if fit_intercept:
            self.mean, self.y_mean = self.design.mean(s), s @ Y / s.sum()
            self.own = s / s.sum()
        R = Y - self.y_mean
        self.targets = R
        self.size = float(np.sqrt(np.mean(R**2))) if Y.size else 0.0
        self.typical = self.design.column_norms(s) / math.sqrt(float(s.sum()))  # of an entry of X
        self.A: Array | None = None
        if n > 2 * p:
            weighted = s[:, None] * R
            self.matrix = self.design.gram(s, self.mean if fit_intercept else None)
            self.right = self.design.tdot(weighted) - np.outer(self.mean, weighted.sum(axis=0))
        else:
            root = np.sqrt(s)[:, None]
            self.A, self.right = root * (dense_rows(X) - self.mean), root * R
            self.matrix = self.A @ self.A.T
            self.raised = float(np.trace(self.matrix)) / max(1, n)
            self.matrix += self.raised * np.sqrt(np.outer(self.own, self.own))
        self.ends = np.linalg.eigvalsh(self.matrix)[[0, -1]] if len(self.matrix) else np.ones(2)

    def rounding(self, a: float) -> float:
        """The relative error of a solution for alpha = a."""
        condition = float((self.ends[1] + a) / (max(self.ends[0], 0.0) + a))
        return 8.0 * _EPS * math.sqrt(len(self.matrix)) * condition

    def solve(self, a: float) -> tuple[Array, Array]:
        """Coefficients, and what was solved for on the way to them."""
        shifted = self.matrix + a * np.eye(len(self.matrix))
        solved: Array = np.asarray(np.linalg.solve(shifted, self.right), dtype=np.float64)
        return (solved if self.A is None else self.A.T @ solved), solved

    def rest(self, a: float) -> tuple[Array, float]:
        """1 - h of each row, and the relative error that the smallest may have."""
        shifted = self.matrix + a * np.eye(len(self.matrix))
        if self.A is None:
            rest = 1.0 - self.own - self._quadratic(shifted)
            lost = 1.0 / max(float(rest.min()), 1e-300)
        else:
            whole = np.diag(np.linalg.inv(shifted))
            rest = a * (whole - self.own / (self.raised + a))
            lost = 1.0 + float(np.max(a * whole / np.maximum(rest, 1e-300)))
        return rest, self.rounding(a) * lost

    def left_out(self, a: float) -> tuple[Array, float]:
        """e / (1 - h) of each row and target, and the error that it may have."""
        coef, solved = self.solve(a)
        rest, relative = self.rest(a)
        if self.A is not None:  # e = alpha c / sqrt(s): both are small together
            errors = a * solved / rest[:, None] / np.sqrt(self.s)[:, None]
            return errors, (relative + self.rounding(a)) * float(np.abs(errors).max(initial=0.0))
        fitted = self.design.dot(coef) - self.mean @ coef
        errors = (self.targets - fitted) / rest[:, None]
        slip = self.rounding(a) * self.size + self.adding_up(coef)
        slip /= max(float(rest.min()), 1e-300)
        return errors, slip + relative * float(np.abs(errors).max(initial=0.0))

    def adding_up(self, coef: Array) -> float:
        """The rounding of a prediction."""
        return 16.0 * _EPS * float(np.max(self.typical @ np.abs(coef), initial=0.0))

    def _quadratic(self, shifted: Array) -> Array:
        """s_i (x_i - mean)' shifted^-1 (x_i - mean)."""
        lower = np.linalg.cholesky(shifted)
        out = np.empty(self.design.shape[0])
        for rows, block in self.design.blocks():
            dense = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
            solved = scipy.linalg.solve_triangular(lower, (dense - self.mean).T, lower=True)
            out[rows] = self.s[rows] * np.einsum("ji,ji->i", solved, solved)
        return out


def _path_again(
    X: Any, Y: Array, s: Array, alphas: Array, fit_intercept: bool
) -> tuple[tuple[Array, Array], Array]:
    """Coefficients and intercepts for each alpha, and the error that their predictions may have."""
    system = _System(X, Y, s, fit_intercept)
    coef, slips = np.empty((len(alphas), X.shape[1], Y.shape[1])), np.empty(len(alphas))
    for k, a in enumerate(alphas):
        if a == 0.0:
            root = np.sqrt(s)[:, None]
            A = root * (dense_rows(X) - system.mean)
            coef[k], _, _, d = np.linalg.lstsq(A, root * (Y - system.y_mean), rcond=None)
            cond = float(d[0] / d[-1]) if d[-1] > 0 else math.inf
            slips[k] = _EPS * len(s) * cond**2 * system.size
        else:
            coef[k], _ = system.solve(float(a))
            slips[k] = system.rounding(float(a)) * system.size
        slips[k] += system.adding_up(coef[k])
    return (coef, system.y_mean - system.mean @ coef), slips


def _loo_again(
    X: Any, Y: Array, s: Array, alphas: Array, fit_intercept: bool
) -> tuple[Array, Array]:
    """e / (1 - h) for every row, target and alpha, and the error it may have."""
    system = _System(X, Y, s, fit_intercept)
    parts = [system.left_out(float(a)) for a in alphas]
    return np.stack([errors for errors, _ in parts], axis=2), np.array([slip for _, slip in parts])
