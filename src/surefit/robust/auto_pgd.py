r"""Auto-PGD: projected steps with momentum, whose size adapts to the loss (Croce & Hein 2020).

.. math:: z = P(x + \eta\, \mathrm{step}(\nabla f)), \qquad x^+ = P(x + a (z - x) + (1 - a)(x -
          x^-)), \quad a = 0.75,

from :math:`\eta = 2\varepsilon`. At checkpoints :math:`w_j` (shares 0, 0.22, 0.41, ... of the
iterations) the step
of a row is halved, and the row goes back to its best point, if the loss grew in less than 75 % of the steps
since the last one, or if neither step nor best loss changed since then. :math:`x^-` stays, as in their
Algorithm 1: the first step after that has momentum from the last iterate. The losses f are cross-entropy (as
log-odds), the difference-of-logits ratio, which does not change when logits are scaled,

.. math:: DLR = -\frac{z_y - \max_{k \ne y} z_k}{z_{\pi_1} - z_{\pi_3}}, \qquad
          DLR_t = -\frac{z_y - z_t}{z_{\pi_1} - (z_{\pi_3} + z_{\pi_4})/2},

with :math:`z_{\pi_1} \ge z_{\pi_2} \ge \ldots`; for three classes the targeted one has the
denominator of the first, for two
there is none. Rows that have fallen are left out at each checkpoint.

Guarantee: every point is in the allowed set and success is the module's own label. A failure shows nothing.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .._counts import check_counts
from ._attack import AttackResult
from ._ball import Ball, spread
from ._network_attack import Loss, Pool, begin, descent, finish, margins, odds, seed_of
from .network import Network, network
from .threat import Threat

__all__ = ["apgd", "checkpoints", "dlr", "targeted_dlr"]

_MOMENTUM, _RHO = 0.75, 0.75


def checkpoints(n_iter: int) -> list[int]:
    """Iterations at which the step may be halved; the last one is ``n_iter``.

    Examples
    --------
    >>> checkpoints(100)
    [22, 41, 57, 70, 80, 87, 93, 99, 100]
    """
    shares, places = [0.0, 0.22], [max(1, math.ceil(0.22 * n_iter))]
    while shares[-1] < 1.0:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
        place = math.ceil(round(shares[-1] * n_iter, 9))
        if places[-1] < place < n_iter:
            places.append(place)
    return [*[p for p in places if p < n_iter], n_iter]


def dlr(z: Any, codes: Any) -> Any:
    """The difference-of-logits ratio; the margin itself for two classes."""
    gap = -margins(z, codes)
    if z.shape[1] < 3:
        return gap
    top = z.topk(3, dim=1).values
    return gap / (top[:, 0] - top[:, 2] + 1e-12)


def targeted_dlr(target: Any) -> Loss:
    """The ratio towards one class for each row."""

    def loss(z: Any, codes: Any) -> Any:
        gap = z.gather(1, target[:, None])[:, 0] - z.gather(1, codes[:, None])[:, 0]
        if z.shape[1] < 3:
            return gap
        top = z.topk(min(4, z.shape[1]), dim=1).values
        return gap / (top[:, 0] - top[:, 2:].mean(dim=1) + 1e-12)

    return loss


def apgd(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    loss: str = "ce",
    n_iter: int = 100,
    restarts: int = 1,
    targets: int = 9,
    compact: bool = True,
    batch_size: int = 512,
    random_state: Any = None,
    classes: Any = None,
) -> AttackResult:
    """Attack each row by Auto-PGD from random starts.

    Parameters
    ----------
    model : nn.Module, fitted estimator of surefit.nn, or Network
    X : tensor or array of shape (n, d) or (n, c, h, w)
    y : array of shape (n,)
    threat : Threat
        eps, norm, lower and upper.
    loss : {"ce", "dlr", "targeted"}, default="ce"
        "targeted" is DLR towards the likeliest other classes, one after the other.
    n_iter : int, default=100
        Steps from each start.
    restarts : int, default=1
        Starts (for each target).
    targets : int, default=9
        Classes to try where ``loss="targeted"``.
    compact : bool, default=True
        Whether to leave rows that have fallen.
    batch_size : int, default=512
    random_state : default=None
    classes : array, default=None
        See :func:`surefit.robust.network`.

    Returns
    -------
    AttackResult

    Examples
    --------
    >>> import torch
    >>> from surefit.robust import Threat, apgd
    >>> net = torch.nn.Linear(1, 2)
    >>> net.load_state_dict({"weight": torch.tensor([[-1.0], [1.0]]), "bias": torch.zeros(2)})
    <All keys matched successfully>
    >>> X, y = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    >>> apgd(net, X, y, Threat(1.5), random_state=0).success.tolist()
    [False, True, True, False]
    """
    if loss not in ("ce", "dlr", "targeted"):
        raise ValueError(f"loss must be 'ce', 'dlr' or 'targeted', got {loss!r}.")
    check_counts(n_iter=n_iter, restarts=restarts, targets=targets)
    net, seed = network(model, classes), seed_of(random_state)
    with net.held():
        case = begin(net, X, y, threat, batch_size=batch_size)
        pool = Pool(case, case.ball())
        whole = pool.ball
        order = ranked(net, case.x[case.rows], pool.codes, batch_size)[:, :targets]
        rounds = order.shape[1] if loss == "targeted" else 1
        for k in range(rounds):
            for start in range(restarts):
                pool.now = {"target": order[pool.place, k]}
                _climb(net, pool, loss, n_iter, seed + 1000 * k + 2 * start, compact)
        return finish(case, pool.found, pool.queries, whole)


def ranked(net: Network, x: Any, codes: Any, batch_size: int) -> Any:
    """The other classes of each row, likeliest first, shape (n, K - 1)."""
    z = net.exact(x, batch_size).scatter(1, codes[:, None], float("-inf"))
    return z.argsort(dim=1, descending=True, stable=True)[:, :-1]


def _climb(net: Network, pool: Pool, loss: str, n_iter: int, seed: int, compact: bool) -> None:
    """One run of the pool's rows, from random starts; what it finds is offered to the pool."""
    first = True
    last = 0
    for place in checkpoints(n_iter):
        for some, ball, codes, now in pool.parts() if not first else _started(pool, seed):
            f = odds if loss == "ce" else dlr if loss == "dlr" else targeted_dlr(now["target"])
            if first:
                value, margin, g = descent(net, now["x"], codes, f)
                pool.offer(some, now["x"], margin)
                for name, new in (("f", value), ("best_f", value), ("mark", value)):
                    now[name].copy_(new)
                now["g"].copy_(g)
                now["best_g"].copy_(g)
            _stretch(net, pool, some, ball, codes, now, f, last, place)
        first, last = False, place
        if compact:
            pool.drop()
        if not len(pool):
            return


def _started(pool: Pool, seed: int) -> Any:
    """The batches of a pool whose state is made: points, best points, steps."""
    x = torch.empty_like(pool.ball.x0)
    for some, ball, _, _ in pool.parts():
        x[some] = ball.random(seed, pool.rows(some), edge=True)
    zeros = torch.zeros_like(x[:, :1].flatten(1)[:, 0]) if x.numel() else x.new_zeros(len(x))
    pool.now |= {
        "x": x,
        "back": x.clone(),
        "best_x": x.clone(),
        "g": x.clone(),
        "best_g": x.clone(),
    }
    pool.now |= {name: zeros.clone() for name in ("f", "best_f", "mark")}
    pool.now |= {"eta": zeros + 2.0 * pool.ball.eps, "halved": torch.ones_like(pool.place)}
    return pool.parts()


def _stretch(
    net: Network, pool: Pool, some: slice, ball: Ball, codes: Any, now: dict[str, Any], f: Loss,
    first: int, last: int,
) -> None:  # fmt: skip
    """The steps from one checkpoint to the next on one batch, then the rule for the step."""
    x, back, g, value = now["x"], now["back"], now["g"], now["f"]
    best_x, best_g, best = now["best_x"], now["best_g"], now["best_f"]
    eta, grew = spread(now["eta"], x), torch.zeros_like(value)
    for t in range(first, last):
        a = _MOMENTUM if t else 1.0
        z = ball.project(x + eta * ball.direction(g))
        ahead = ball.project(x + a * (z - x) + (1.0 - a) * (x - back))
        new, margin, g = descent(net, ahead, codes, f)
        pool.offer(some, ahead, margin)
        grew, back, x = grew + (new > value), x, ahead
        value, better = new, new > best
        best = torch.where(better, new, best)
        best_x = torch.where(spread(better, x), x, best_x)
        best_g = torch.where(spread(better, x), g, best_g)
    stalled = (now["halved"] == 0) & (best <= now["mark"])
    cut = (grew < _RHO * (last - first)) | stalled
    whole = spread(cut, x)
    now["eta"].copy_(torch.where(cut, now["eta"] / 2.0, now["eta"]))
    now["halved"].copy_(cut.long())
    parts = {  # back first: after a stretch of one step it is a view of what x is written to
        "back": back, "x": torch.where(whole, best_x, x),
        "g": torch.where(whole, best_g, g), "f": torch.where(cut, best, value),
        "best_x": best_x, "best_g": best_g, "best_f": best, "mark": best,
    }  # fmt: skip
    for name, part in parts.items():
        now[name].copy_(part)
