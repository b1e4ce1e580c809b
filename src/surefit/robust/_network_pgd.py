r"""FGSM and PGD on networks (ADV-4, ADV-5): the steps of :mod:`.fgsm` and :mod:`.pgd`, batched on the device.

The loss is cross-entropy, through the log-odds (the same direction, without the point where it
rounds to 0). Each
iterate's loss is a by-product of the pass that gives its gradient, so that keeping the best iterate costs one
forward pass at the end. The point of the linearised step is tried too, for one forward pass more: short steps
need not come as far as it does. Of all of these the one with the lowest margin is kept, so that the loss is
never below that of one step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .._counts import check_counts
from ._attack import AttackResult
from ._ball import Ball
from ._network_attack import Pool, begin, descent, finish, margins, odds, seed_of
from .network import Network, network
from .threat import Threat

__all__ = ["network_fgsm", "network_pgd", "stepper"]


def stepper(net: Network, alpha: float) -> Callable[[Any, Ball, Any], tuple[Any, Any, Any]]:
    """``step(x, ball, codes)`` -> (the next x, the margin at x, the direction): one PGD step."""

    def step(x: Any, ball: Ball, codes: Any) -> tuple[Any, Any, Any]:
        _, margin, g = descent(net, x, codes, odds)
        along = ball.direction(g)
        return ball.project(x + alpha * along), margin, along

    return step


def network_fgsm(
    model: Any, X: Any, y: Any, threat: Threat, *, classes: Any = None, batch_size: int = 512
) -> AttackResult:
    """One linearised step from each row; see :func:`surefit.robust.fgsm`."""
    net = network(model, classes)
    with net.held():
        case = begin(net, X, y, threat, batch_size=batch_size)
        pool = Pool(case, case.ball())
        whole, step = pool.ball, stepper(net, 2.0 * threat.eps)
        for some, ball, codes, _ in pool.parts():
            pool.found[some], _, _ = step(ball.x0, ball, codes)
        return finish(case, pool.found, torch.ones_like(case.rows), whole)


def network_pgd(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    n_iter: int = 20,
    step_size: float | None = None,
    restarts: int = 1,
    stop_early: bool = False,
    random_state: Any = None,
    classes: Any = None,
    batch_size: int = 512,
) -> AttackResult:
    """Projected steps from several starts; see :func:`surefit.robust.pgd`."""
    check_counts(n_iter=n_iter, restarts=restarts)
    if step_size is not None and not step_size > 0:
        raise ValueError(f"step_size must be positive, got {step_size!r}.")
    net, seed = network(model, classes), seed_of(random_state)
    with net.held():
        case = begin(net, X, y, threat, batch_size=batch_size)
        pool = Pool(case, case.ball())
        alpha = 2.5 * threat.eps / n_iter if step_size is None else float(step_size)
        whole, step = pool.ball, stepper(net, alpha)
        for start in range(restarts):
            pool.now = {"x": pool.ball.x0.clone()}
            if start:
                for some, ball, _, now in pool.parts():
                    now["x"].copy_(ball.random(seed + 2 * start, pool.rows(some)))
            # between two looks at who fell; without them one stretch
            every = max(1, n_iter // 4) if stop_early else n_iter
            for first in range(0, n_iter, every):
                for some, ball, codes, now in pool.parts():
                    x = now["x"]
                    for t in range(first, min(first + every, n_iter)):
                        ahead, margin, along = step(x, ball, codes)
                        pool.offer(some, x, margin)
                        if t == start == 0:
                            whole_step = ball.project(x + 2.0 * threat.eps * along)
                            with torch.no_grad():
                                reached = margins(net.logits(whole_step), codes)
                            pool.offer(some, whole_step, reached)
                        x = ahead
                    if first + every >= n_iter:
                        with torch.no_grad():
                            pool.offer(some, x, margins(net.logits(x), codes))
                    now["x"].copy_(x)
                if stop_early:
                    pool.drop()
        return finish(case, pool.found, pool.queries, whole)
