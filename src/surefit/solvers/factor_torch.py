r"""Alternating least squares over observed entries in batches, on any device of torch.

Rows are sorted by their number of entries and taken in batches of about equal lengths, padded with a row of
zeros: a batch of m rows with L entries each is one gather into (m, L, K), one batched product for the
normal equations, one batched Cholesky factorisation (``cholesky_ex``, which reports instead of raising) and
one solve. Rows whose matrix is singular get the solution of least norm from its eigenvalues. The steps are
those of :mod:`surefit.solvers.factor_als`; the two agree to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..iterate import Iterate
from .factor_problem import Penalties, Side, balance, features, share

__all__ = ["TorchSide", "als_batched"]

_BATCH = 1 << 25  # numbers of a gathered batch
_PAD = 1.25  # a batch is closed when a row would be padded by more than this factor


class TorchSide:
    """One side's rows on a device, and the batches that they are solved in."""

    def __init__(self, rows: Side, k: int, device: Any, dtype: Any) -> None:
        import torch

        def put(values: Any, kind: Any) -> Any:
            return torch.as_tensor(np.ascontiguousarray(values), dtype=kind, device=device)

        self.rows, self.implicit = rows.rows, bool(len(rows.weights))
        counts = np.diff(rows.indptr)
        self.indices, self.targets = put(rows.indices, torch.int64), put(rows.targets, dtype)
        self.weights = put(rows.weights, dtype)
        self.begin, self.counts = put(rows.indptr[:-1], torch.int64), put(counts, torch.int64)
        self.lam, self.scale = put(rows.lam, dtype), put(rows.scale, dtype)
        self.batches = [put(batch, torch.int64) for batch in _batches(counts, k)]
        self.lengths = [int(counts[to].max()) for to in (b.cpu().numpy() for b in self.batches)]

    def solve(
        self, F: Any, shift: Any, old: Any, *, losses: bool
    ) -> tuple[Any, float, float, float]:
        """Least squares of every row: factors, loss, squared gradient at ``old`` and its size at 0."""
        import torch

        k = F.shape[1]
        Z = torch.zeros((self.rows, k), dtype=F.dtype, device=F.device)
        gram = F.T @ F if self.implicit else torch.zeros((k, k), dtype=F.dtype, device=F.device)
        F0 = torch.cat([F, torch.zeros_like(F[:1])])  # the last row is the padding
        shift0 = torch.cat([shift, torch.zeros_like(shift[:1])])
        sums = torch.zeros(3, dtype=torch.float64, device=F.device)
        for batch, length in zip(self.batches, self.lengths, strict=True):
            place = torch.arange(length, device=F.device)
            there = place[None, :] < self.counts[batch][:, None]
            entry = torch.where(there, self.begin[batch][:, None] + place[None, :], 0)
            at = torch.where(there, self.indices[entry], len(F))
            f = F0[at]  # (m, L, k)
            y = torch.where(there, self.targets[entry], 0.0) - torch.where(there, shift0[at], 0.0)
            w = torch.where(there, self.weights[entry], 0.0) if self.implicit else None
            A = torch.bmm((f if w is None else f * w[:, :, None]).transpose(1, 2), f) + gram
            A += torch.diag_embed(self.scale[batch][:, None] * self.lam[None, :])
            right = torch.bmm(y[:, None, :], f)[:, 0]
            grad = (A @ old[batch][:, :, None])[:, :, 0] - right
            z = _solved(A, right)
            Z[batch] = z
            sums[1] += (grad.double() ** 2).sum()
            sums[2] += (right.double() ** 2).sum()
            if losses:
                m = torch.bmm(f, z[:, :, None])[:, :, 0].double()
                t = y.double()
                if w is None:
                    fit = ((t - m) ** 2).sum()
                else:
                    fit = (t * (1.0 - m) ** 2 - m**2).sum() + ((z @ gram).double() * z).sum()
                sums[0] += fit + (self.scale[batch].double() @ z.double() ** 2) @ self.lam.double()
        found = sums.cpu().numpy()
        return Z, 0.5 * float(found[0]), float(found[1]), float(found[2])

    def penalty(self, Z: Any) -> float:
        return 0.5 * float((self.scale.double() @ Z.double() ** 2) @ self.lam.double())

    def gram(self, Z: Any) -> Any:
        """sum_i s_i z_i z_i' as a numpy array."""
        return ((Z.double().T * self.scale.double()) @ Z.double()).cpu().numpy()


def als_batched(
    users: TorchSide, items: TorchSide, V: Any, penalties: Penalties
) -> Iterator[Iterate]:
    """As :func:`surefit.solvers.factor_als.als`, for tensors."""
    import torch

    none = torch.zeros((users.rows, V.shape[1]), dtype=V.dtype, device=V.device)
    while True:
        F, shift = features(V, biases=penalties.biases)
        U, loss, _, _ = users.solve(F, shift, none, losses=True)
        F, shift = features(U, biases=penalties.biases)
        new, _, grads, right = items.solve(F, shift, V, losses=False)
        bases = balance(users.gram(U), items.gram(new), penalties)
        if bases is not None:
            new = new @ torch.as_tensor(bases[1], dtype=V.dtype, device=V.device)
        yield Iterate((U, V, new), loss + items.penalty(V), share(grads, right))
        V = new


def _solved(A: Any, right: Any) -> Any:
    """The solutions of a batch; of least norm where a matrix is singular."""
    import torch

    L, info = torch.linalg.cholesky_ex(A)
    diagonal = L.diagonal(dim1=1, dim2=2) ** 2
    eps = torch.finfo(A.dtype).eps
    least = 8 * A.shape[1] * eps * A.diagonal(dim1=1, dim2=2)
    bad = (info != 0) | ~(diagonal > least).all(dim=1)
    z = torch.cholesky_solve(
        right[:, :, None],
        torch.where(bad[:, None, None], torch.eye(A.shape[1], dtype=A.dtype, device=A.device), L),
    )[:, :, 0]
    if bool(bad.any()):
        values, vectors = torch.linalg.eigh(A[bad])
        kept = values > 8 * A.shape[1] * eps * values[:, -1:]
        inverse = torch.where(kept, 1.0 / torch.where(kept, values, 1.0), 0.0)
        turned = (vectors.transpose(1, 2) @ right[bad][:, :, None])[:, :, 0]
        z[bad] = (vectors @ (inverse * turned)[:, :, None])[:, :, 0]
    return z


def _batches(counts: Any, k: int) -> list[Any]:
    """Row numbers by falling number of entries, cut where memory or padding asks for it."""
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    out, start = [], 0
    lengths = counts[order]
    while start < len(order):
        longest = int(lengths[start])
        most = max(1, _BATCH // (k * max(longest, k)))
        short = int(np.searchsorted(-lengths, -longest / _PAD - 8, side="right"))
        stop = min(len(order), start + most, max(short, start + 1))
        out.append(order[start:stop])
        start = stop
    return out
