"""What every attack on a network does first and last, and the pool of rows that still stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from .._counts import check_counts
from .._namespace import to_numpy
from ._attack import AttackResult
from ._ball import Ball, check_threat, spread
from .network import Network, network
from .threat import Threat

__all__ = ["Case", "Pool", "begin", "descent", "finish", "gradient", "margins", "odds", "seed_of"]

Loss = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class Case:
    """Rows, labels, network and allowed sets of one attack; ``rows`` are those not yet wrong."""

    net: Network
    x: Any
    codes: Any
    threat: Threat
    wrong: Any
    rows: Any
    given: Any  # X as it came: what the result is shaped like
    batch_size: int

    def ball(self) -> Ball:
        """The sets around the rows to attack."""
        return Ball.around(self.x[self.rows], self.threat)


def begin(
    model: Any, X: Any, y: Any, threat: Threat, *, batch_size: int = 512, classes: Any = None
) -> Case:
    """Check the arguments and find the rows that are right. Call it inside ``net.held()``."""
    check_counts(batch_size=batch_size)
    net = network(model, classes)
    x, codes = net.tensor(X), net.codes(y)
    check_threat(threat, tuple(x.shape[1:]))
    if len(x) != len(codes):
        raise ValueError(f"X has {len(x)} rows, but y has {len(codes)} labels.")
    wrong = net.exact(x, batch_size).argmax(dim=1) != codes
    return Case(net, x, codes, threat, wrong, torch.nonzero(~wrong).ravel(), X, int(batch_size))


def finish(case: Case, found: Any, queries: Any, ball: Ball | None = None) -> AttackResult:
    """Put the points found for ``case.rows`` in their places, and verify them with the module itself."""
    x_adv, total = case.x.clone(), torch.zeros_like(case.codes)
    if len(case.rows):
        ball = case.ball() if ball is None else ball
        found = ball.settle(found)
        if not bool(ball.contains(found).all()):
            raise RuntimeError(
                "the attack returned a point outside the allowed set; this is a bug."
            )
        x_adv[case.rows] = found
        total[case.rows] = queries
    z = case.net.exact(x_adv, case.batch_size)
    success = case.wrong.clone()
    success[case.rows] = z.argmax(dim=1)[case.rows] != case.codes[case.rows]
    loss = torch.nn.functional.softplus(-margins(z.double(), case.codes))
    points: Any = x_adv
    if not isinstance(case.given, torch.Tensor):
        shape = np.shape(case.given)
        points = to_numpy(x_adv)
        points = points.reshape(shape) if points.size == int(np.prod(shape)) else points
    return AttackResult(points, success.cpu().numpy(), loss.cpu().numpy(), total.cpu().numpy())


# ------------------------------------------------------------------------ losses


def margins(z: Any, codes: Any) -> Any:
    """z_y - max_k z_k: positive where the label wins."""
    own = z.gather(1, codes[:, None])[:, 0]
    return own - _without(z, codes).amax(dim=1)


def odds(z: Any, codes: Any) -> Any:
    """log sum_{k != y} exp(z_k) - z_y = log((1 - p_y) / p_y): cross-entropy is log(1 + e^this).

    It orders points as cross-entropy does, and its gradient has the same direction; but where p_y rounds to
    1 the gradient of cross-entropy is 0, and that of this is not.
    """
    own = z.gather(1, codes[:, None])[:, 0]
    return torch.logsumexp(_without(z, codes), dim=1) - own


def _without(z: Any, codes: Any) -> Any:
    return z.scatter(1, codes[:, None], float("-inf"))


def descent(net: Network, x: Any, codes: Any, loss: Loss) -> tuple[Any, Any, Any]:
    """(loss, margin, gradient of the loss with respect to x), row by row: one pass forward, one backward."""
    with torch.enable_grad():
        point = x.detach().requires_grad_(True)
        z = net.logits(point)
        value = loss(z, codes)
        g = gradient(value, point)
    net.tally.backward += len(x)
    return value.detach(), margins(z.detach(), codes), g


def gradient(value: Any, point: Any) -> Any:
    """The gradient of the sum of ``value``; an error where the network gives none."""
    found = None
    if value.requires_grad:
        (found,) = torch.autograd.grad(value.sum(), point, allow_unused=True)
    if found is None:
        raise ValueError(
            "the network's outputs have no gradient in its rows (detach, no_grad or a comparison in "
            "forward): use attacks that need none, such as square and decision_based."
        )
    return found


# ------------------------------------------------------------------------ rows that still stand


class Pool:
    """Tensors with one entry a row, cut to the rows that still stand, and taken in batches of equal size.

    ``now`` is a dictionary of such tensors, among them ``row`` (the place in the case), ``code``, and the
    parts of the ball. :meth:`drop` asks the module itself about the rows that seem to have fallen.
    """

    def __init__(self, case: Case, ball: Ball, **more: Any) -> None:
        self.case, self.net = case, case.net
        n = len(case.rows)
        self.place = torch.arange(n, device=case.net.device)
        self.found = ball.x0.clone()  # for all rows of the case
        self.lowest = torch.full((n,), float("inf"), device=case.net.device, dtype=ball.x0.dtype)
        self.queries = torch.zeros_like(self.place)
        self.ball, self.codes = ball, case.codes[case.rows]
        self.now: dict[str, Any] = more

    def __len__(self) -> int:
        return len(self.place)

    def parts(self) -> Iterator[tuple[slice, Ball, Any, dict[str, Any]]]:
        """(rows, ball, codes, state) of each batch; the state's tensors are views to write to."""
        for first in range(0, len(self), self.case.batch_size):
            some = slice(first, first + self.case.batch_size)
            state = {name: value[some] for name, value in self.now.items()}
            yield some, self.ball.take(some), self.codes[some], state

    def rows(self, some: slice) -> Any:
        """Numbers of the rows among all rows given: what their random numbers are a function of."""
        rows = self.case.rows[self.place[some]]
        return rows if self.net.ids is None else self.net.ids[rows]

    def offer(self, some: slice, x: Any, margin: Any) -> None:
        """Keep x where its margin is lower than any before."""
        place = self.place[some]
        self.queries[place] += 1
        before = self.lowest[place]
        lower = margin < before
        self.lowest[place] = torch.where(lower, margin.to(before.dtype), before)
        self.found[place] = torch.where(spread(lower, x), x, self.found[place])

    def drop(self) -> None:
        """Leave out the rows that the module itself gives another label at the point found."""
        if not len(self):
            return
        seem = torch.nonzero(self.lowest[self.place] < 0).ravel()
        if not len(seem):
            return
        places = self.place[seem]
        points = self.ball.take(seem).settle(self.found[places])
        label = self.net.exact(points, self.case.batch_size).argmax(dim=1)
        fell = torch.zeros(len(self), dtype=torch.bool, device=self.place.device)
        fell[seem] = label != self.codes[seem]
        self.lowest[places[label == self.codes[seem]]] = 0.0  # half precision was wrong: look on
        self.found[places] = points
        self.keep(~fell)

    def keep(self, mask: Any) -> None:
        """Go on with these rows only."""
        rows = torch.nonzero(mask).ravel()
        self.place, self.codes, self.ball = self.place[rows], self.codes[rows], self.ball.take(rows)
        self.now = {name: value[rows] for name, value in self.now.items()}


def seed_of(random_state: Any) -> int:
    """One whole number from whatever ``random_state`` is."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
