r"""Square attack: random search with shrinking squares, from scores alone (Andriushchenko et al. 2020).

For linf a random square of the picture is set to :math:`x_0 \pm \varepsilon`, one sign a channel;
for l2 the length that two
squares have, and what is left of the radius, is moved into one of them, in a pyramid of random sign. The
change is kept where the margin falls. The share p of the picture that a square covers is halved at fixed
places of the schedule, down to single entries. No gradient is asked for, so masked gradients do not help.

Rows that are no pictures are taken as pictures of height 1, whose squares are intervals. What a
row draws is a
function of the seed, the row and the iteration, not of the rows beside it.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .._counts import check_counts
from ._attack import AttackResult
from ._ball import Ball, lengths, spread
from ._network_attack import Pool, begin, finish, margins, seed_of
from ._noise import integers
from .network import Network, network
from .threat import Threat

__all__ = ["share_at", "square"]

_HALVE = (10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000)  # of 10 000 queries


def share_at(t: int, n_queries: int, p: float) -> float:
    """The share of a picture that the square of query t covers.

    Examples
    --------
    >>> share_at(0, 10_000, 0.8), share_at(300, 10_000, 0.8)
    (0.8, 0.1)
    """
    return p * 0.5 ** sum(t * 10_000 / n_queries > place for place in _HALVE)


def square(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    n_queries: int = 5000,
    p: float = 0.8,
    compact: bool = True,
    batch_size: int = 512,
    random_state: Any = None,
    classes: Any = None,
) -> AttackResult:
    """Attack each row by random search.

    Parameters
    ----------
    model, X, y, threat, compact, batch_size, random_state, classes
        As in :func:`apgd`.
    n_queries : int, default=5000
        Forward passes of each row.
    p : float, default=0.8
        Share of the picture that the first square covers.

    Returns
    -------
    AttackResult

    Examples
    --------
    >>> import torch
    >>> from surefit.robust import Threat, square
    >>> net = torch.nn.Linear(1, 2)
    >>> net.load_state_dict({"weight": torch.tensor([[-1.0], [1.0]]), "bias": torch.zeros(2)})
    <All keys matched successfully>
    >>> X, y = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    >>> square(net, X, y, Threat(1.5), n_queries=20, random_state=0).success.tolist()
    [False, True, True, False]
    """
    check_counts(n_queries=n_queries)
    if not 0.0 < p <= 1.0:
        raise ValueError(f"p must lie above 0 and be 1 at most, got {p!r}.")
    net, seed = network(model, classes), seed_of(random_state)
    with net.held(), torch.no_grad():
        case = begin(net, X, y, threat, batch_size=batch_size)
        pool = Pool(case, case.ball())
        whole = pool.ball
        looks = [t for t in (1, 4, 10, 20, 50, 100, 200) if t < n_queries]
        looks += [*range(300, n_queries, 100), n_queries]
        last = 0
        for look in looks:
            for some, ball, codes, _ in pool.parts():
                _search(net, pool, some, ball, codes, seed, last, look, n_queries, p)
            last = look
            if compact:
                pool.drop()
            if not len(pool):
                break
        return finish(case, pool.found, pool.queries, whole)


def _search(
    net: Network, pool: Pool, some: slice, ball: Ball, codes: Any, seed: int, first: int, last: int,
    n_queries: int, p: float,
) -> None:  # fmt: skip
    """Queries ``first`` to ``last`` of one batch; the pool keeps the best point of each row."""
    place, rows = pool.place[some], pool.rows(some)
    x, low = pool.found[place], pool.lowest[place]
    shape = tuple(x.shape)
    if x.ndim == 4:
        c, h, w = shape[1:]
    else:
        c, h, w = 1, 1, math.prod(shape[1:])
    change = _signs if ball.norm == math.inf else _pyramids
    for t in range(first, last):
        key = (seed + 1) * 1_000_003 + 7 * t
        cells = share_at(t, n_queries, p) * h * w
        side = max(1, round(math.sqrt(cells) if h > 1 else cells))
        delta = (x - ball.x0).reshape(-1, c, h, w)
        if t == 0:
            delta = _stripes(ball, key, rows, c, h, w)
        else:
            delta = change(ball.eps, delta, key, rows, min(side, h), min(side, w))
        ahead = ball.project(ball.x0 + delta.reshape(shape))
        margin = margins(net.logits(ahead), codes).to(low.dtype)
        better = margin < low
        x, low = torch.where(spread(better, x), ahead, x), torch.where(better, margin, low)
    pool.found[place], pool.lowest[place] = x, low
    pool.queries[place] += last - first


def _sign(key: int, rows: Any, shape: tuple[int, ...], like: Any) -> Any:
    return (2 * integers(key, rows, shape, 2) - 1).to(like.dtype)


def _stripes(ball: Ball, key: int, rows: Any, c: int, h: int, w: int) -> Any:
    """The start: vertical stripes of +-eps (linf), or random signs scaled to the radius (l2)."""
    signs = _sign(key, rows, (c, 1, w), ball.x0).expand(-1, c, h, w)
    if ball.norm == math.inf:
        return ball.eps * signs
    return ball.eps * signs / math.sqrt(c * h * w)


def _window(key: int, rows: Any, h: int, w: int, high: int, wide: int) -> Any:
    """A random window of each row as a mask of shape (n, 1, h, w)."""
    top = integers(key, rows, (1,), h - high + 1)
    left = integers(key + 1, rows, (1,), w - wide + 1)
    i, j = (torch.arange(size, device=rows.device) for size in (h, w))
    down = (i >= top) & (i < top + high)
    across = (j >= left) & (j < left + wide)
    return (down[:, :, None] & across[:, None, :])[:, None]


def _signs(eps: float, delta: Any, key: int, rows: Any, high: int, wide: int) -> Any:
    """A window set to +-eps, one sign a channel."""
    _, c, h, w = delta.shape
    window = _window(key, rows, h, w, high, wide)
    return torch.where(window, eps * _sign(key + 2, rows, (c, 1, 1), delta), delta)


def _pyramids(eps: float, delta: Any, key: int, rows: Any, high: int, wide: int) -> Any:
    """The length of two windows, and what the radius has left, moved into the first."""
    _, c, h, w = delta.shape
    one = _window(key, rows, h, w, high, wide)
    two = _window(key + 2, rows, h, w, high, wide)
    both = one | two
    left = (eps**2 - ((delta * ~both) ** 2).flatten(1).sum(dim=1)).clamp_min(0.0)
    # heights fall from the middle of the window; a random sign for each channel
    down = one[:, 0].any(dim=2).to(delta.dtype)
    across = one[:, 0].any(dim=1).to(delta.dtype)
    rise = torch.minimum(down.cumsum(1), down.flip(1).cumsum(1).flip(1))[:, :, None]
    run = torch.minimum(across.cumsum(1), across.flip(1).cumsum(1).flip(1))[:, None, :]
    bump = torch.minimum(rise, run)[:, None] * one * _sign(key + 4, rows, (c, 1, 1), delta)
    old = delta * one
    size_of_old = spread(lengths(old, 2.0).clamp_min(1e-12), old)
    new = bump / spread(lengths(bump, 2.0).clamp_min(1e-12), bump) + old / size_of_old
    new = new / spread(lengths(new, 2.0).clamp_min(1e-12), new)
    return delta * ~both + spread(torch.sqrt(left), new) * new
