r"""Randomised smoothing: a classifier that is certified by votes under Gaussian noise (l2 only).

The smoothed classifier gives the class that the model f gives most often near x,

.. math:: g(x) = \arg\max_c P[f(x + \sigma Z) = c], \qquad Z \sim N(0, I).

If class c has probability at least :math:`p > 1/2` there, g gives c at every point within
:math:`\sigma \Phi^{-1}(p)` of x in the l2 norm (Cohen, Rosenfeld & Kolter, 2019). p is not known: it is
bounded from below by counting votes, with exact binomial limits, so a radius is wrong with probability at
most delta *for each row*, over the draws. Over n rows the expected number of wrong ones is at most n delta.

*Fixed*: n0 draws choose the class, n others count it. *Sequential* (``certify_at``, ``sequential=True``):
votes are counted at looks in geometric progression, and a row leaves as soon as every radius asked for is
shown or out of reach (:mod:`._looks`); the error is still at most delta, whatever the stopping. The class is
chosen by draws that are not counted.

Draws are a pure function of (seed, row, block number) on one kind of device, so counts can be recomputed:
:meth:`Smoothed.recheck` does. What is claimed is about g, not about f; and about ideal Gaussian noise, which
torch's generator in the rows' precision stands for.

References
----------
Cohen, Rosenfeld & Kolter, "Certified adversarial robustness via randomized smoothing", ICML 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils import check_random_state
from torch import Tensor, nn

from .._counts import check_counts
from .._namespace import to_numpy
from ..nn.batches import mixed
from ._looks import looks, lower_limit, upper_limit
from ._smoothed import (
    BLOCK,
    CHOICE,
    COUNT,
    VOTE,
    Smoothed,
    count_of,
    limits,
    out_of_reach,
    radius_of,
)
from .network import at_rest, shapes_named

__all__ = ["RandomizedSmoothing", "Smoothed"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
_NEAR = 1e-4  # scores this close, relatively, may change places by rounding


class RandomizedSmoothing:
    """The smoothed classifier of a model.

    Parameters
    ----------
    model : nn.Module or callable
        Gives scores of shape (m, classes), or (m, 1) for two classes; or, if a callable that is no module,
        labels 0, 1, ... of shape (m,) for a tensor of m rows. A module is used in eval mode.
    sigma : float
        Standard deviation of the noise.
    batch_size : int, default=1024
        Rows of one pass.
    random_state : default=0

    Examples
    --------
    >>> import torch
    >>> from surefit.robust.smoothing import RandomizedSmoothing
    >>> smooth = RandomizedSmoothing(lambda x: (x[:, 0] > 0).long(), sigma=0.5)
    >>> x = torch.tensor([[0.6, 0.0], [-0.1, 0.0]])
    >>> found = smooth.certify(x, n=10_000)                 # the exact radii are 0.6 and 0.1
    >>> found.label.tolist(), bool((found.radius <= [0.6, 0.1]).all()), bool(found.radius[0] > 0.55)
    ([1, 0], True, True)
    >>> found.recheck(smooth.model, x).ok
    True
    """

    def __init__(
        self, model: Any, sigma: float, *, batch_size: int = 1024, random_state: Any = 0
    ) -> None:
        if isinstance(sigma, bool) or not 0.0 < float(sigma) < math.inf:
            raise ValueError(f"sigma must be a positive number, got {sigma!r}.")
        if not callable(model):
            raise TypeError(
                f"model must be an nn.Module or a callable giving labels, got {type(model).__name__}."
            )
        check_counts(batch_size=batch_size)
        self.model, self.sigma, self.batch_size = model, float(sigma), int(batch_size)
        if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
            self.seed = int(random_state)
        else:
            self.seed = int(check_random_state(random_state).randint(2**31 - 1))

    # ------------------------------------------------------------------ public

    def predict(self, X: Any, *, n: int = 1000, delta: float = 0.001) -> Ints:
        """The smoothed class of each row; -1 where the vote does not decide it.

        A wrong answer, other than -1, has probability at most delta for each row: the two classes with most
        votes are compared by the exact two-sided binomial test.
        """
        _check(n=n, delta=delta)
        x = self._rows(X)
        counts, _ = self._all_votes(x, np.arange(len(x)), 0, n, VOTE)
        counts = np.pad(counts, ((0, 0), (0, 1)))  # a class without votes is a rival too
        order = np.argsort(-counts, axis=1, kind="stable")
        top = np.take_along_axis(counts, order[:, :2], axis=1)
        p = np.minimum(1.0, 2.0 * stats.binom.sf(top[:, 0] - 1, top.sum(axis=1), 0.5))
        return np.where(p <= delta, order[:, 0], -1).astype(np.int64)

    def certify(
        self,
        X: Any,
        y: Any = None,
        *,
        n0: int = 100,
        n: int = 100_000,
        delta: float = 0.001,
        sequential: bool = False,
        radii: Sequence[float] = (0.25, 0.5, 0.75, 1.0),
    ) -> Smoothed:
        """Certified radii.

        Parameters
        ----------
        X : tensor or array of shape (n, ...)
        y : integers of shape (n,), optional
            For :meth:`Smoothed.certified_accuracy`.
        n0, n : int
            Draws that choose the class, and draws that count it (at most, if sequential).
        delta : float
            The probability that a row's radius is wrong, for each row.
        sequential : bool
            Stop each row as soon as all of ``radii`` are decided. The radius is then the largest one of them
            that was shown.
        radii : sequence of float

        Returns
        -------
        Smoothed
        """
        _check(n0=n0, n=n, delta=delta)
        grid = _grid(radii) if sequential else ()
        x = self._rows(X)
        known = None if y is None else _labels_of(y, len(x))
        rows = np.arange(len(x))
        counts, _ = self._all_votes(x, rows, 0, n0, CHOICE)
        chosen = counts.argmax(axis=1).astype(np.int64) if len(x) else np.zeros(0, np.int64)
        start = Smoothed(
            label=chosen, radius=np.zeros(len(x)), chosen=chosen, successes=np.zeros(len(x), np.int64),
            draws=np.zeros(len(x), np.int64), p_low=np.zeros(len(x)), sigma=self.sigma,
            delta=float(delta), seed=self.seed, n0=n0, n=n, grid=grid,
            y=known,
        )  # fmt: skip
        if sequential:
            found = self._sequential(x, start)
        else:
            counts, _ = self._all_votes(x, rows, 0, n, COUNT)
            found = replace(start, successes=count_of(counts, chosen), draws=np.full(len(x), n))
        p_low = limits(found)
        radius = radius_of(found, p_low)
        label = np.where(radius > 0, chosen, -1)
        return replace(found, p_low=p_low, radius=radius, label=label)

    def certify_at(
        self, X: Any, radius: float, y: Any = None, *, n0: int = 100, n_max: int = 100_000,
        delta: float = 0.001,
    ) -> Smoothed:  # fmt: skip
        """Whether each row is certified at one radius, with as few draws as that takes.

        ``result.radius >= radius`` is yes; ``result.impossible[:, 0]`` says that the chosen class cannot have
        it; neither means that n_max draws did not decide. Each answer is wrong with probability at most
        delta, for each row.
        """
        return self.certify(
            X, y, n0=n0, n=n_max, delta=delta, sequential=True, radii=(radius,)
        )  # fmt: skip

    # ------------------------------------------------------------------ counting

    def _sequential(self, x: Tensor, start: Smoothed) -> Smoothed:
        plan = looks(start.n, start.delta, block=BLOCK)
        goals = stats.norm.cdf(np.asarray(start.grid) / start.sigma)
        m, n = len(goals), len(start.chosen)
        low, impossible = np.zeros(n), np.zeros((n, m), dtype=np.bool_)
        successes, draws = start.successes.copy(), start.draws.copy()
        active, before, path = np.arange(n), 0, []
        for look, share in zip(plan.draws.tolist(), plan.shares.tolist()):
            counts, _ = self._all_votes(x, active, before, look, COUNT)
            successes[active] += count_of(counts, start.chosen[active])
            draws[active], before = look, look
            path.append(successes.copy())
            low[active] = np.maximum(low[active], lower_limit(successes[active], look, share))
            high = upper_limit(successes[active], look, share)
            impossible[active] |= high[:, None] < goals
            open_goals = (low[active][:, None] <= goals) & ~impossible[active]
            active = active[open_goals.any(axis=1)]
            if not len(active):
                break
        found = replace(start, successes=successes, draws=draws, path=tuple(path))
        return replace(found, impossible=out_of_reach(found))

    def _rows(self, X: Any) -> Tensor:
        x = torch.as_tensor(X)
        if not x.is_floating_point() or x.dim() < 2:
            raise ValueError(
                "X must hold rows of floating-point numbers, shape (n, ...), got "
                f"{x.dtype} of shape {tuple(x.shape)}."
            )
        if not bool(torch.isfinite(x).all()):
            raise ValueError("X must be finite; it has NaN or infinite entries.")
        if isinstance(self.model, nn.Module):
            first = next(self.model.parameters(), None)
            if first is not None:
                x = x.to(first.device, first.dtype)
        return x

    def _all_votes(
        self, x: Tensor, rows: Any, first: int, last: int, stream: int
    ) -> tuple[Ints, Ints]:
        """Votes of all rows, in groups that make full passes."""
        group = max(1, self.batch_size // max(1, min(BLOCK, last - first)))
        parts = [
            self._votes(x, rows[i : i + group].tolist(), first, last, stream)
            for i in range(0, len(rows), group)
        ]
        width = max((part[0].shape[1] for part in parts), default=1)
        counts = [np.pad(part[0], ((0, 0), (0, width - part[0].shape[1]))) for part in parts]
        near = [part[1] for part in parts]
        return (
            np.concatenate(counts) if counts else np.zeros((0, 1), np.int64),
            np.concatenate(near) if near else np.zeros(0, np.int64),
        )

    def _votes(
        self, x: Tensor, rows: list[int], first: int, last: int, stream: int
    ) -> tuple[Ints, Ints]:
        """Votes of draws first..last-1 for each class: (rows, classes); and how many were near ties."""
        totals = torch.zeros((len(rows), 1), dtype=torch.int64, device=x.device)
        close = torch.zeros(len(rows), dtype=torch.int64, device=x.device)
        each = max(1, self.batch_size // max(1, len(rows) * BLOCK))  # blocks of a row in one pass
        blocks = list(range(first // BLOCK, -(-last // BLOCK)))
        for i in range(0, len(blocks), each):
            parts, owners = [], []
            for k, row in enumerate(rows):
                for b in blocks[i : i + each]:
                    noise = self._noise(x, row, b, stream)
                    noise = noise[max(0, first - b * BLOCK) : last - b * BLOCK]
                    parts.append(x[row] + self.sigma * noise)
                    owners.append(torch.full((len(noise),), k, dtype=torch.int64))
            owner = torch.cat(owners).to(x.device)
            labels, near = self._labels(torch.cat(parts))
            width = max(int(labels.max()) + 1, totals.shape[1])
            if width > totals.shape[1]:
                totals = torch.nn.functional.pad(totals, (0, width - totals.shape[1]))
            cells = torch.bincount(owner * width + labels, minlength=len(rows) * width)
            totals += cells.reshape(len(rows), width)
            close += torch.bincount(
                owner, weights=near.to(torch.float64), minlength=len(rows)
            ).long()
        return totals.cpu().numpy(), close.cpu().numpy()

    def _noise(self, x: Tensor, row: int, block: int, stream: int) -> Tensor:
        generator = torch.Generator(device=x.device)
        generator.manual_seed(mixed(self.seed, row, 4 * block + stream) % 2**63)
        return torch.randn(
            (BLOCK, *x.shape[1:]), generator=generator, device=x.device, dtype=x.dtype
        )

    def _labels(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The model's labels, and where rounding could change them."""
        with torch.no_grad():
            if isinstance(self.model, nn.Module):
                return self._module_labels(x, self.model)
            labels = torch.as_tensor(self.model(x)).to(x.device)
        if labels.is_floating_point() or labels.shape != (len(x),) or int(labels.min()) < 0:
            raise ValueError(
                f"model must give {len(x)} labels 0, 1, ... for {len(x)} rows, got {labels.dtype} of shape "
                f"{tuple(labels.shape)}."
            )
        return labels.long(), torch.zeros(len(x), dtype=torch.bool, device=x.device)

    def _module_labels(self, x: Tensor, model: nn.Module) -> tuple[Tensor, Tensor]:
        with at_rest(model), shapes_named(x):
            scores = model(x)
        shape = tuple(getattr(scores, "shape", ()))
        if len(shape) != 2 or shape[0] != len(x):
            got = str(shape) if isinstance(scores, Tensor) else type(scores).__name__
            raise ValueError(
                f"the module must give scores of shape ({len(x)}, classes), got {got}."
            )
        if bool(scores.isnan().any()):
            raise FloatingPointError(
                "the module's scores are NaN under noise: no vote follows. Look at weights that overflow."
            )
        if scores.shape[1] == 1:
            scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
        top = scores.topk(2, dim=1)
        near = top.values[:, 0] - top.values[:, 1] <= _NEAR * scores.abs().amax(dim=1)
        return top.indices[:, 0], near


def _labels_of(y: Any, n: int) -> Ints:
    known = np.asarray(to_numpy(y))
    if known.shape != (n,) or known.dtype.kind not in "iu" or known.min(initial=0) < 0:
        raise ValueError(
            f"y must have one class 0, 1, ... a row: {n} whole numbers, got {known.dtype} of shape "
            f"{known.shape}."
        )
    return known.astype(np.int64)


def _grid(radii: Any) -> tuple[float, ...]:
    values = np.unique(np.asarray(radii, dtype=np.float64).ravel())
    if not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"radii must be positive numbers, got {radii!r}.")
    return tuple(values.tolist())


def _check(**given: Any) -> None:
    for name, value in given.items():
        if name == "delta":
            if not 0.0 < value < 1.0:
                raise ValueError(f"delta must lie strictly between 0 and 1, got {value!r}.")
        else:
            check_counts(**{name: value})
