r"""Fast adaptive boundary: points with another label *nearest* to a row (Croce & Hein 2020).

For a target class t the boundary :math:`h = z_t - z_y = 0` is replaced by its tangent at x,
:math:`h(x) + \langle \nabla h,
u - x\rangle = 0`. Both x and the row x_0 are projected onto that plane within the box, and the next point is

.. math:: (1 - \alpha)(x + \eta d) + \alpha (x_0 + \eta d_0), \qquad \alpha = \min(\|d\| / (\|d\| +
          \|d_0\|), 0.1),

with :math:`\eta = 1.05`. Once the label has changed, x is drawn back towards x_0 by the factor
0.9, and the nearest
such point is kept. At the end a bisection on the way to x_0 brings it nearer still.

The projection onto a plane within a box is exact: the shortest :math:`\delta` with :math:`\langle
w, \delta\rangle = c` has
:math:`|\delta_i| = \min(t s_i, r_i)`, :math:`s_i = |w_i|` (l2) or 1 (linf), r_i the room there,
and the number t is
read off from the sorted places :math:`r_i / s_i` where entries reach the box.

Guarantee: the distance of a point with another label is at least that of the nearest one. For a
linear module the
first step is exact, :math:`|h| / \|w\|_{dual}` (to the overshoot, which the bisection removes).
Steps are always in the module's own precision: points beside the boundary of a bfloat16 copy
would often lie on the wrong side of its own.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .._counts import check_counts
from .._namespace import to_numpy
from ._attack import AttackResult
from ._ball import Ball, lengths, limits_of, spread
from ._network_attack import Case, Pool, begin, descent, finish, seed_of
from ._tools import check_norm
from .auto_pgd import ranked
from .decision_based import Boundary
from .network import Network, network
from .threat import Threat

__all__ = ["fab", "minimum_norm", "plane_projection"]

_ETA, _ALPHA, _BETA, _HALVINGS = 1.05, 0.1, 0.9, 8


def plane_projection(w: Any, c: Any, room: Any, norm: float) -> Any:
    """The shortest delta with <w, delta> = c and |delta_i| <= room_i, for each row; all the room
    where none is.

    Parameters
    ----------
    w : tensor of shape (n, d)
    c : tensor of shape (n,)
    room : tensor of shape (n, d)
        How far each entry may go in the direction sign(c w_i); may be infinite.
    norm : {2, inf}

    Returns
    -------
    tensor of shape (n, d)

    Examples
    --------
    >>> import math, torch
    >>> w, c = torch.tensor([[3.0, 4.0]]), torch.tensor([5.0])
    >>> plane_projection(w, c, torch.tensor([[9.0, 0.5]]), 2.0)
    tensor([[1.0000, 0.5000]])
    """
    size = w.abs()
    slope = size if norm == 2.0 else torch.ones_like(size)
    place = torch.where(size > 0, room / slope.clamp_min(1e-38), torch.zeros_like(size))
    place, order = place.sort(dim=1)
    # g(t) = sum_i |w_i| min(t s_i, r_i): entries before k are at the box, the others still grow
    a, s = size.gather(1, order), slope.gather(1, order)
    full = (a * torch.nan_to_num(room.gather(1, order), posinf=0.0)).cumsum(dim=1)
    before = torch.cat([torch.zeros_like(full[:, :1]), full[:, :-1]], dim=1)
    rate = (a * s).flip(1).cumsum(dim=1).flip(1)
    t = (c.abs()[:, None] - before) / rate.clamp_min(1e-38)
    fits = (t <= place) & (rate > 0)
    first = fits.to(torch.uint8).argmax(dim=1, keepdim=True)
    height = torch.where(fits.any(dim=1, keepdim=True), t.gather(1, first), torch.inf)
    moved = torch.minimum(torch.nan_to_num(height * slope, nan=0.0), room)
    moved = torch.where(size > 0, moved, torch.zeros_like(moved))
    return torch.nan_to_num(moved, posinf=0.0) * torch.sign(w) * torch.sign(c)[:, None]


def fab(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    n_iter: int = 100,
    restarts: int = 1,
    targets: int = 9,
    compact: bool = True,
    batch_size: int = 512,
    random_state: Any = None,
    classes: Any = None,
) -> AttackResult:
    """Attack each row by walking to the nearest boundary; a point counts if it lies in the allowed set.

    Parameters
    ----------
    model, X, y, threat, compact, batch_size, random_state, classes
        As in :func:`apgd`.
    n_iter : int, default=100
        Steps towards each target class.
    restarts : int, default=1
        Starts: the row itself, then random points within eps / 2 of it.
    targets : int, default=9
        The likeliest other classes are tried.

    Returns
    -------
    AttackResult

    Examples
    --------
    >>> import torch
    >>> from surefit.robust import Threat, fab
    >>> net = torch.nn.Linear(1, 2)
    >>> net.load_state_dict({"weight": torch.tensor([[-1.0], [1.0]]), "bias": torch.zeros(2)})
    <All keys matched successfully>
    >>> X, y = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    >>> fab(net, X, y, Threat(1.5)).success.tolist()
    [False, True, True, False]
    """
    net = network(model, classes).precise()
    with net.held():
        case = begin(net, X, y, threat, batch_size=batch_size)
        pool = Pool(case, case.ball())
        whole = pool.ball
        far, asked = _nearest(case, pool, n_iter, restarts, targets, seed_of(random_state), compact)
        # a point further than eps is no success, but its projection is worth a look
        points = whole.project(pool.found)
        return finish(case, torch.where(spread(far < math.inf, points), points, whole.x0), asked)


def minimum_norm(
    model: Any,
    X: Any,
    y: Any,
    *,
    norm: Any = 2,
    lower: Any = None,
    upper: Any = None,
    n_iter: int = 100,
    targets: int = 9,
    batch_size: int = 512,
    classes: Any = None,
) -> Boundary:
    """The nearest points with another label that FAB finds, and their distances.

    Parameters
    ----------
    model, X, y, batch_size, classes
        As in :func:`apgd`.
    norm : {2, inf}, default=2
    lower, upper : float or array, default=None
        The box.
    n_iter, targets
        As in :func:`fab`.

    Returns
    -------
    Boundary
        Distance 0 where the label is wrong already, infinite where nothing was found.

    Examples
    --------
    >>> import torch
    >>> from surefit.robust import minimum_norm
    >>> net = torch.nn.Linear(2, 1)
    >>> net.load_state_dict({"weight": torch.tensor([[3.0, 4.0]]), "bias": torch.zeros(1)})
    <All keys matched successfully>
    >>> minimum_norm(net, torch.tensor([[1.0, 1.0]]), [1]).distance.round(2).tolist()
    [1.4]
    """
    order = check_norm(norm)
    net = network(model, classes).precise()
    with net.held():
        case = begin(net, X, y, Threat(1e6, order, None, lower, upper), batch_size=batch_size)
        pool = Pool(case, case.ball())
        far, asked = _nearest(case, pool, n_iter, 1, targets, 0, False)
        x, distance = case.x.clone(), torch.zeros(len(case.x), dtype=torch.float64)
        queries = torch.zeros(len(case.x), dtype=torch.int64)
        x[case.rows] = pool.found
        distance[case.rows.cpu()] = far.double().cpu()
        queries[case.rows.cpu()] = asked.cpu()
    return Boundary(to_numpy(x), distance.numpy(), queries.numpy())


# ------------------------------------------------------------------------ the walk


def _nearest(
    case: Case, pool: Pool, n_iter: int, restarts: int, targets: int, seed: int, compact: bool
) -> tuple[Any, Any]:
    """Distances of the points left in ``pool.found``, and rows asked about, for the rows of the case."""
    check_counts(n_iter=n_iter, restarts=restarts, targets=targets)
    net, norm = case.net, case.threat.norm
    lower, upper = limits_of(case.threat, case.x)
    box = (lower.to(case.x.dtype), upper.to(case.x.dtype))
    far = torch.full_like(pool.lowest, math.inf)
    order = ranked(net, pool.ball.x0, pool.codes, case.batch_size)[:, :targets]
    for start in range(restarts):
        for k in range(order.shape[1]):
            for some, ball, codes, _ in pool.parts():
                place = pool.place[some]
                x = ball.x0
                if start:
                    shift = ball.random(seed + 2 * start, pool.rows(some)) - x
                    x = x + shift * 0.5
                found, size = _walk(
                    net, x, ball, codes, order[place, k], box, n_iter, norm, pool.found[place], far[place]
                )  # fmt: skip
                pool.found[place], far[place] = found, size
                pool.queries[place] += n_iter + _HALVINGS
            if compact:
                pool.keep(far[pool.place] > case.threat.eps * (1.0 - 1e-6))
            if not len(pool):
                return far, pool.queries
    return far, pool.queries


def _walk(
    net: Network, x: Any, ball: Ball, codes: Any, target: Any, box: tuple[Any, Any], n_iter: int, norm: float,
    best: Any, far: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """The nearest points with another label for one target class, and their distances."""
    x0, mine = ball.x0, torch.full_like(far, math.inf)
    low, high = torch.minimum(x0, box[0]), torch.maximum(x0, box[1])
    point = best

    def gap(z: Any, c: Any) -> Any:
        return z.gather(1, target[:, None])[:, 0] - z.gather(1, c[:, None])[:, 0]

    for t in range(n_iter + 1):
        h, margin, g = descent(net, x, codes, gap)
        size = lengths(x - x0, norm)
        nearer = (margin < 0) & (size < mine)
        point, mine = torch.where(spread(nearer, x), x, point), torch.where(nearer, size, mine)
        if t == n_iter:
            break
        # from a point past the boundary: back towards the row, with the tangent that is known
        back = x0 + _BETA * (x - x0)
        past = spread(margin < 0, x)
        d, d0 = (_to_plane(h, g, x, here, low, high, norm) for here in (x, x0))
        a, b = lengths(d, norm), lengths(d0, norm)
        alpha = spread((a / (a + b).clamp_min(1e-30)).clamp_max(_ALPHA), x)
        ahead = (1.0 - alpha) * (x + _ETA * d) + alpha * (x0 + _ETA * d0)
        x = torch.minimum(torch.maximum(torch.where(past, back, ahead), low), high)
    point, mine = _bisect(net, x0, point, mine, codes, norm)
    nearer = mine < far
    return torch.where(spread(nearer, x), point, best), torch.where(nearer, mine, far)


def _to_plane(h: Any, g: Any, x: Any, here: Any, low: Any, high: Any, norm: float) -> Any:
    """The step from ``here`` onto the tangent plane of h at x, inside the limits."""
    w, here_flat = g.flatten(1), here.flatten(1)
    c = -(h + (w * (here - x).flatten(1)).sum(dim=1))
    up = spread(c, w) * w > 0
    room = torch.where(up, high.flatten(1) - here_flat, here_flat - low.flatten(1)).clamp_min(0.0)
    return plane_projection(w, c, room, norm).reshape(here.shape)


def _bisect(net: Network, x0: Any, x: Any, far: Any, codes: Any, norm: float) -> tuple[Any, Any]:
    """Halve the way from the row to x while the module itself gives another label."""
    known = far < math.inf
    low, high = torch.zeros_like(far), torch.ones_like(far)
    best = x
    kept = (net.exact(x, len(x)).argmax(dim=1) != codes) & known
    for _ in range(_HALVINGS):
        t = (low + 3.0 * high) / 4.0
        point = x0 + spread(t, x) * (x - x0)
        crossed = (net.exact(point, len(x)).argmax(dim=1) != codes) & known
        best = torch.where(spread(crossed, x), point, best)
        kept = kept | crossed
        high, low = torch.where(crossed, t, high), torch.where(crossed, low, t)
    size = lengths(best - x0, norm)
    return best, torch.where(kept, size, torch.full_like(size, math.inf))
