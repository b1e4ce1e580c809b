r"""What is claimed about a factorisation, decided in float64 by code that no solver uses.

- "user block", "item block": the gradient of the objective over one side's factors and biases, against its
  size at 0. Alternating least squares ends with the users solved for: their gradient is 0 to rounding. The
  items' is at most ``tol`` of its size at 0. The problem is not convex in both sides together, so neither
  is a claim of optimality.
- "loss": the recorded loss and the end of the trace are the loss of these factors on these data.
- "monotone loss": the trace never rises.
- On a full matrix without biases more is known. The loss of any K components is at least

      P_K = sum_{i <= K} h(s_i) + 1/2 sum_{i > K} s_i^2,   h(s) = lambda s - lambda^2/2 where s > lambda,
      else s^2/2,

  s_i the singular values of X and lambda^2 = lambda_u lambda_v: by von Neumann's trace inequality the best
  (U, V) shares the singular vectors of X, and the penalty of a product M is least at lambda ||M||_*. For
  lambda = 0 this is Eckart and Young's theorem. "best of rank K" states how far the loss is above P_K.
- "nuclear norm": min_M 1/2 ||X - M||_F^2 + lambda ||M||_* is convex. Its dual is max <X, Y> - 1/2 ||Y||_F^2
  over ||Y||_op <= lambda. The residual E = X - UV', scaled into the ball, is such a Y, and the difference
  of the two values bounds the distance of the loss to the minimum over all ranks. At the minimum ||E||_op
  <= lambda (MF-3).

The rounding of a gradient is bounded by (sqrt(k) + sqrt(n)) eps times the sums of the sizes of what is
added, eps that of the stored factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._attributes import storage_eps
from .._jit.factor_gradients import row_gradients
from .._namespace import is_torch, like, to_numpy
from .._optimality import optimality_claim
from .._threads import over_rows
from ..certificate import ROUNDING_LIMIT, Claim, Kind
from ..design import Design, as_design
from ._ratings import observed

__all__ = ["claims"]

Array = NDArray[np.float64]
_AT_FIT = 2e8  # n p min(n, p) up to which singular values are computed at the end of a fit
_EVER = 1e12  # and by verify
_EPS = float(np.finfo(np.float64).eps)
_MOST_LOST = ROUNDING_LIMIT  # of the data: where rounding takes more, nothing can be checked
_MOST_EXCESS = 1e3  # of products over the data, beyond which rounding decides no optimality


@dataclass(frozen=True)
class Block:
    """The gradient over one side: its norm, its norm at 0, and the rounding of it."""

    gradient: float
    size: float
    floor: float


@dataclass(frozen=True)
class Evaluation:
    loss: float
    floor: float  # of the loss
    excess: float  # sizes of what the loss adds up, over those of the data
    users: Block
    items: Block


def claims(model: Any, X: Any, *, full: bool, tol: float) -> list[Claim]:
    """The claims about a fitted model on the data of its fit."""
    design = as_design(X)
    U, V = _augmented(model)
    rows = X.rows if hasattr(X, "rows_by_rank") else X  # those of this rank
    sparse = sp.issparse(rows) or model.method == "sgd"
    U = like(to_numpy(U), rows) if is_torch(rows) and not sparse else to_numpy(U)
    found = _observed(model, rows, design.group, U, V) if sparse else _whole(model, design, U, V)
    if not 8.0 * _eps(model) * found.excess <= _MOST_LOST:
        why = (
            f"the products of the factors are {found.excess:.1e} times as large as the data and cancel each "
            "other: rounding leaves nothing to be checked"
        )
        return [Claim.check("loss", why, Kind.EXACT, math.nan, found.floor, "MF-1")]
    out = [_loss_claim(model, found), *_block_claims(model, found, tol)]
    if model.method == "als":
        out.append(_monotone_claim(model, found))
        if not sparse and not model.biases and not model.implicit:
            out += _optimal_claims(model, design, found, full=full, tol=tol)
    return out


# ---------------------------------------------------------------------------- evaluation


def _augmented(model: Any) -> tuple[Any, Array]:
    """(u, b) where the users live, and (v, c) at home, in float64."""
    U, V = model.user_factors_, to_numpy(model.item_factors_).astype(np.float64)
    U = U.double() if hasattr(U, "double") else np.asarray(U, dtype=np.float64)
    if not model.biases:
        return U, V
    c = to_numpy(model.item_biases_).astype(np.float64)
    b = model.user_biases_
    if hasattr(U, "double"):
        import torch

        return torch.cat([U, b.double()[:, None]], dim=1), np.column_stack([V, c])
    return np.column_stack([U, np.asarray(b, dtype=np.float64)]), np.column_stack([V, c])


def _features(Z: Any, biases: bool) -> tuple[Any, Any]:
    """(z, 1) and the shift; without biases z and 0."""
    if not biases:
        return Z, Z[:, 0] * 0.0
    F = Z * 1.0
    F[:, -1] = 1.0
    return F, Z[:, -1] * 1.0


def _eps(model: Any) -> float:
    """The rounding unit of the stored factors."""
    return storage_eps(to_numpy(model.item_factors_[:1]).dtype)


def _limit(model: Any, tol: float, floor: float, size: float) -> float:
    """The largest floor that excuses anything: storage in float32 no more than ``tol`` of ``size``."""
    share = tol if _eps(model) > _EPS and floor > tol * size else max(tol, ROUNDING_LIMIT)
    return share * size


def _strengths(model: Any, counts: Any, side: str) -> tuple[Any, Array]:
    """The factor of each row's penalty, and the penalty of each column."""
    lam, bias = model._penalty_of(side)
    columns = np.full(model.item_factors_.shape[1], lam)
    if model.biases:
        columns = np.append(columns, bias)
    return (counts if model.weighted_reg else counts * 0.0 + 1.0), columns


def _observed(model: Any, rows: Any, group: Any, U: Array, V: Array) -> Evaluation:
    """Sums over observed entries."""
    csr = model._confidences(rows if sp.issparse(rows) else observed(rows, always=True))
    implicit, mean = bool(model.implicit), float(model.global_mean_)
    by_item = csr.T.tocsr()
    user_counts = np.diff(csr.indptr).astype(np.float64)
    item_counts = group.sum(np.diff(by_item.indptr).astype(np.float64))
    s, lam_u = _strengths(model, user_counts, "users")
    t, lam_v = _strengths(model, item_counts, "items")
    eps = _eps(model)
    gram_v, gram_u = V.T @ V, group.sum(U.T @ U)

    grad, right, numbers = _side(csr, V, U, mean, implicit, model.biases)
    grad += s[:, None] * lam_u * U + (U @ gram_v if implicit else 0.0)
    size = numbers[:, 2] + np.linalg.norm(s[:, None] * lam_u * U, axis=1)
    if implicit:
        size = size + np.linalg.norm(U, axis=1) * np.linalg.norm(gram_v)
    totals = [numbers[:, 0].sum(), numbers[:, 1].sum(), np.square(grad).sum(), np.square(right).sum(),
              np.square(size).sum(), s @ np.square(U) @ lam_u,
              np.sum(1.0 + np.abs(csr.data)) if implicit else np.square(np.abs(csr.data) + abs(mean)).sum(),
              ]  # fmt: skip
    squares, spread, grad_u, right_u, size_u, penalty_u, data = group.sum(np.array(totals))
    longest = float(group.max(np.array(user_counts.max(initial=0.0))))
    users = Block(
        math.sqrt(grad_u), math.sqrt(right_u), _rounding(eps, lam_u, longest) * math.sqrt(size_u)
    )

    grad, right, numbers = _side(by_item, U, V, mean, implicit, model.biases)
    grad, right, sizes = group.sum(grad, right, numbers[:, 2])
    grad += t[:, None] * lam_v * V + (V @ gram_u if implicit else 0.0)
    sizes = sizes + np.linalg.norm(t[:, None] * lam_v * V, axis=1)
    if implicit:
        sizes = sizes + np.linalg.norm(V, axis=1) * np.linalg.norm(gram_u)
    longest = float(item_counts.max(initial=0.0))
    items = Block(
        float(np.linalg.norm(grad)), float(np.linalg.norm(right)),
        _rounding(eps, lam_v, longest) * float(np.linalg.norm(sizes)),
    )  # fmt: skip
    penalty = float(penalty_u) + float(t @ np.square(V) @ lam_v)
    if implicit:
        common = float((gram_u * gram_v).sum())
        squares, spread = squares + common, spread + common
    loss = 0.5 * (float(squares) + penalty)
    sizes = float(spread) + penalty + loss
    return Evaluation(loss, 8.0 * eps * sizes, _excess(sizes, float(data)), users, items)


def _excess(sizes: float, data: float) -> float:
    return sizes / data if data > 0.0 else math.inf if sizes > 0.0 else 0.0


def _side(
    csr: Any, other: Array, own: Array, mean: float, implicit: bool, biases: bool
) -> tuple[Array, Array, Array]:
    """Gradients, gradients at 0 and sizes of one side's rows."""
    F, shift = _features(other, biases)
    F = np.ascontiguousarray(F)
    values = np.ascontiguousarray(csr.data, dtype=np.float64)
    indptr = np.ascontiguousarray(csr.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(csr.indices, dtype=np.int32)
    n = csr.shape[0]
    grad, right, numbers = np.zeros(own.shape), np.zeros(own.shape), np.zeros((n, 3))
    norms, own = np.linalg.norm(F, axis=1), np.ascontiguousarray(own)
    shift = np.ascontiguousarray(shift + mean)

    def part(first: int, last: int) -> None:
        row_gradients(
            indptr, indices, values, F, shift, norms, own, implicit, grad, right, numbers, first, last
        )  # fmt: skip

    over_rows(n, part, least=256)
    return grad, right, numbers


def _rounding(eps: float, lam: Array, longest: float) -> float:
    return eps * (math.sqrt(len(lam)) + math.sqrt(longest))


def _whole(model: Any, design: Design, U: Any, V: Array) -> Evaluation:
    """The same on a full matrix, a block of rows at a time."""
    mean, biases, eps = float(model.global_mean_), bool(model.biases), _eps(model)
    n, p = design.shape
    s, lam_u = _strengths(model, np.array(float(p)), "users")
    t, lam_v = _strengths(model, np.array(float(n)), "items")
    F, shift = _features(V, biases)
    norms = np.linalg.norm(F, axis=1)
    total = np.zeros(7)
    grad, right, sizes = np.zeros(V.shape), np.zeros(V.shape), np.zeros(p)
    for rows, block in design.blocks():
        u = U[rows]
        f, move = like(F, block), like(shift + mean, block)
        W, b = _features(u, biases)
        rest = u @ f.T + move - block
        target = block - move
        slope = rest @ f + u * like(float(s) * lam_u, block)
        own = (u * u).sum(axis=1) ** 0.5
        big = own[:, None] * like(norms, block) + abs(block) + abs(move)
        size = big @ like(norms, block)
        total += [
            float(part) for part in (
                (rest * rest).sum(), (abs(rest) * big).sum(), (slope * slope).sum(),
                ((target @ f) ** 2).sum(), (size * size).sum(),
                ((u * u) @ like(float(s) * lam_u, block)).sum(), ((abs(block) + abs(mean)) ** 2).sum(),
            )
        ]  # fmt: skip
        grad += to_numpy(rest.T @ W)
        right += to_numpy((block - mean - b[:, None]).T @ W)
        sizes += to_numpy(big.T @ ((W * W).sum(axis=1) ** 0.5))
    total, grad, right, sizes = design.group.sum(total, grad, right, sizes)
    squares, spread, grad_u, right_u, size_u, penalty_u, data = (float(value) for value in total)
    grad = grad + float(t) * lam_v * V
    users = Block(
        math.sqrt(grad_u), math.sqrt(right_u), _rounding(eps, lam_u, p) * math.sqrt(size_u)
    )
    items = Block(
        float(np.linalg.norm(grad)), float(np.linalg.norm(right)),
        _rounding(eps, lam_v, n) * float(np.linalg.norm(sizes)),
    )  # fmt: skip
    penalty = penalty_u + float(t) * float((np.square(V) @ lam_v).sum())
    loss = 0.5 * (squares + penalty)
    every = spread + penalty + loss
    return Evaluation(loss, 8.0 * eps * every, _excess(every, data), users, items)


# ---------------------------------------------------------------------------- claims


def _loss_claim(model: Any, found: Evaluation) -> Claim:
    trace = np.asarray(model.loss_trace_, dtype=np.float64)
    if not model.biases and model.global_mean_ != 0.0:
        statement = f"there are no biases, but a mean of {model.global_mean_:.6g} is taken off"
        return Claim.check("loss", statement, Kind.EXACT, math.inf, found.floor, "MF-1")
    if not len(trace):
        statement = "loss_trace_ is empty, and a fit records the loss of each iteration"
        return Claim.check("loss", statement, Kind.EXACT, math.inf, found.floor, "MF-1")
    away = float(np.max(np.abs([float(model.loss_) - found.loss, trace[-1] - found.loss])))
    statement = (
        f"half the squared residuals plus the penalty is {found.loss:.6g}, which loss_ or the end of "
        f"loss_trace_ misses by {away:.2g}"
    )
    return Claim.check("loss", statement, Kind.EXACT, away, found.floor, "MF-1")


def _monotone_claim(model: Any, found: Evaluation) -> Claim:
    trace = np.asarray(model.loss_trace_, dtype=np.float64)
    rise = float(np.diff(trace).max(initial=0.0))  # a NaN stays
    bound = 2.0 * found.floor + 8.0 * _eps(model) * float(np.abs(trace).max(initial=0.0))
    statement = (
        f"by the fit's record the loss rose by {rise:.2g} at most over {len(trace)} iterations"
    )
    return Claim.check("monotone loss", statement, Kind.BOUND, rise, bound, "MF-5")


def _block_claims(model: Any, found: Evaluation, tol: float) -> list[Claim]:
    out = []
    for name, block in (("user", found.users), ("item", found.items)):
        share = f"{block.gradient / block.size:.2g} of its size at 0" if block.size else "0"
        statement = f"the gradient over the {name}s' factors is {block.gradient:.3g}, {share}"
        title, kind = f"{name} block", Kind.STATIONARY
        limit = _limit(model, tol, block.floor, block.size)
        if model.method == "sgd":
            statement += "; SGD promises no stationarity, and no optimality claim"
            bound = tol * block.size
            if not block.gradient <= max(bound, block.floor):
                out.append(Claim.undecided(title, statement, kind, "MF-4"))
                continue
        else:
            statement += "; no optimality claim"
            exact = name == "user" and model.solver_ == "cholesky"
            bound = min(block.floor, limit) if exact else tol * block.size
        out.append(
            Claim.check(
                title, statement, kind, block.gradient, bound, "MF-6",
                floor=block.floor, largest_floor=limit,
            )
        )  # fmt: skip
    return out


def _optimal_claims(
    model: Any, design: Design, found: Evaluation, *, full: bool, tol: float
) -> list[Claim]:
    """How far the loss is above the best of rank K, and above the best of any rank."""
    n, p = design.shape
    k = model.item_factors_.shape[1]
    s, lam_u = _strengths(model, np.array(float(p)), "users")
    t, lam_v = _strengths(model, np.array(float(n)), "items")
    lam = math.sqrt(float(s) * float(lam_u[0]) * float(t) * float(lam_v[0]))
    source, work = "MF-3" if lam > 0 else "MF-5", float(n) * p * min(n, p)
    if lam == 0 and (lam_u[0] > 0 or lam_v[0] > 0):
        return []  # the other side takes all the scale, and no minimum is attained
    if found.excess > _MOST_EXCESS:
        why = f"the products of the factors are {found.excess:.1e} times as large as the data, and cancel"
        return [Claim.undecided("best of rank K", why, Kind.OPTIMAL, source)]
    if work > (_EVER if full else _AT_FIT) or design.group.size > 1:
        how = "fit a part of it" if full else "surefit.verify or certify='full' decides it"
        why = f"the singular values of a {n} x {p} matrix were not computed; {how}"
        return [Claim.undecided("best of rank K", why, Kind.OPTIMAL, source)]
    X = np.asarray(design.home(), dtype=np.float64)
    values: Array = np.linalg.svd(X, compute_uv=False).astype(np.float64)
    total = 0.5 * float(values @ values)
    soft = np.where(values > lam, lam * values - 0.5 * lam * lam, 0.5 * values**2)
    best = float(soft[:k].sum() + 0.5 * (values[k:] ** 2).sum())
    noise = 8.0 * (n + p) * _EPS * total
    storage = _eps(model) > _EPS
    common: dict[str, Any] = {
        "null": total,  # of factors that are 0
        "bound": tol * total,
        "floor": noise + (0.0 if storage else found.floor),
        "stored": found.floor if storage else 0.0,
    }
    words = (
        "sum of the squares of the other singular values"
        if lam == 0
        else "soft-thresholded singular values"
    )
    claim = optimality_claim(
        f"the loss {found.loss:.6g}", primal=found.loss, dual=best, source=source, name="best of rank K",
        target=f"{best:.6g}, the least of any {k} components ({words})", **common,
    )  # fmt: skip
    out = [claim]
    if lam > 0:
        out.append(_nuclear_claim(model, X, values, lam, k, found, common))
    return out


def _nuclear_claim(
    model: Any,
    X: Array,
    values: Array,
    lam: float,
    k: int,
    found: Evaluation,
    common: dict[str, Any],
) -> Claim:
    U, V = to_numpy(_augmented(model)[0]), _augmented(model)[1]
    E = X - U @ V.T
    largest = float(np.linalg.norm(E, 2))
    scale = lam / largest if largest > lam else 1.0
    dual = scale * float((X * E).sum()) - 0.5 * scale**2 * float((E * E).sum())
    needed = int((values > lam).sum())
    if needed > k and found.loss - dual > common["bound"]:
        why = (
            f"the loss {found.loss:.6g} is within {found.loss - dual:.1e} of the least over all matrices; "
            f"{needed} components are needed for that minimum, and there are {k}"
        )
        return Claim.undecided("nuclear norm", why, Kind.OPTIMAL, "MF-3")
    return optimality_claim(
        f"the loss {found.loss:.6g}", primal=found.loss, dual=dual, source="MF-3", name="nuclear norm",
        target=(
            f"the least of 1/2||X - M||^2 + lambda ||M||_* over all matrices M (||X - UV'||_op is "
            f"{largest:.6g} for lambda {lam:.6g})"
        ),
        **common,
    )  # fmt: skip
