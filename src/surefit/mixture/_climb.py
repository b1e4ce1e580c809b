"""Restarts of EM, the best of which is kept, with scikit-learn's stopping rule, messages and warning.

Where the rows come with a checkpoint, the state is kept every second: the parameters, the trace, which
restart, the best so far and the generator. A fit that is started again goes on from there, and ends with
the same bits as one that never stopped.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._namespace import to_numpy
from ..design import Design
from ..distributed import key_of
from ..fingerprint import fingerprint
from ..iterate import Iterate, Stop, run

__all__ = ["Climb", "Restarts"]

SAVE_EVERY = 1.0  # seconds


@dataclass
class Climb:
    """One run of EM: where it ended, and the objective on the way."""

    theta: Any
    bounds: list[float] = field(default_factory=list)
    slacks: list[Any] = field(default_factory=list)
    converged: bool = False
    stop: Stop = Stop.MAX_ITER

    @property
    def lower_bound(self) -> float:
        """The objective at the last E-step, that is, before the last M-step."""
        return self.bounds[-1] if self.bounds else -math.inf


@dataclass
class Restarts:
    """Runs of EM from several starts.

    Attributes
    ----------
    start : callable
        rng -> theta.
    steps : callable
        (theta, objective before) -> iterator over Iterate.
    pack, unpack : callables
        theta -> dict of arrays, and back, for checkpoints.
    """

    model: Any
    design: Design
    start: Callable[[Any], Any]
    steps: Callable[[Any, float], Iterator[Iterate]]
    pack: Callable[[Any], dict[str, Any]]
    unpack: Callable[[dict[str, Any]], Any]

    def run(self, n_init: int, rng: Any, before: float = -math.inf) -> Climb:
        """The best climb; warns when it did not converge."""
        first, current, best = self._resumed(rng)
        for number in range(first, n_init):
            self._say(1, f"Initialization {number}")
            if current is None:
                current = Climb(self.start(rng))
            if self.model.max_iter == 0:
                best = current
            else:
                self._climb(current, number, best, rng, before)
                words = "converged" if current.converged else "did not converge"
                self._say(1, f"Initialization {words}.")
                if best is None or current.lower_bound > best.lower_bound:
                    best = current
            current = None
        assert best is not None
        if not best.converged and self.model.max_iter > 0:
            warnings.warn(
                "Best performing initialization did not converge. Try different init parameters, or "
                "increase max_iter, tol, or check for degenerate data.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return best

    def _climb(
        self, climb: Climb, number: int, best: Climb | None, rng: Any, before: float
    ) -> None:
        clock = time.perf_counter()
        saved = clock

        def after(step: int, iterate: Iterate) -> None:
            nonlocal saved, clock
            climb.theta = iterate.x
            climb.bounds.append(iterate.value)
            climb.slacks.append(getattr(iterate.x, "slack", 0.0))
            now = time.perf_counter()
            if (done := len(climb.bounds)) % self.model.verbose_interval == 0:
                self._say(
                    1,
                    f"  Iteration {done}",
                    f"\t time lapse {now - clock:.5f}s\t ll change {iterate.estimate:.5f}",
                )
                clock = now
            if self.design.checkpoint is not None and now - saved >= SAVE_EVERY:
                self._save(climb, number, best, rng)
                saved = now

        done = len(climb.bounds)
        steps = self.steps(climb.theta, climb.lower_bound if done else before)
        left = self.model.max_iter - done
        if left <= 0:
            return
        # the callback comes after run's own test of the tolerance: the last step is added below
        fit = run(steps, tol=self.model.tol, max_iter=left, callback=after)
        if fit.stop is Stop.ESTIMATED:
            climb.bounds.append(fit.value)
            climb.slacks.append(getattr(fit.x, "slack", 0.0))
            climb.converged = True
        climb.theta, climb.stop = fit.x, fit.stop

    def _say(self, level: int, words: str, more: str = "") -> None:
        if self.model.verbose >= level:
            print(words + (more if self.model.verbose >= 2 else ""))

    # ------------------------------------------------------------------ checkpoints

    def _save(self, climb: Climb, number: int, best: Climb | None, rng: Any) -> None:
        _, keys, place, has, cached = rng.get_state(legacy=True)
        state = {"restart": np.array(number), "keys": keys, "rest": np.array([place, has, cached])}
        for name, one in (("now", climb), ("best", best)):
            if one is not None:
                state |= {f"{name}_{k}": to_numpy(v) for k, v in self.pack(one.theta).items()}
                state[f"{name}.bounds"] = np.array(one.bounds)
                state[f"{name}.slacks"] = np.array([float(to_numpy(s)) for s in one.slacks])
                state[f"{name}.converged"] = np.array(one.converged)
        self.design.checkpoint.save(self.key, state)  # type: ignore[union-attr]

    def _resumed(self, rng: Any) -> tuple[int, Climb | None, Climb | None]:
        """(restart, the climb under way, the best so far) of a fit that was cut off."""
        if self.design.checkpoint is None:
            return 0, None, None
        self.key = key_of(self.model, fingerprint(self.design))
        state = self.design.checkpoint.load(self.key)
        if state is None:
            return 0, None, None
        place, has, cached = state["rest"]
        rng.set_state(("MT19937", state["keys"], int(place), int(has), float(cached)))
        found: list[Climb | None] = []
        for name in ("now", "best"):
            head = f"{name}_"
            parts = {k.removeprefix(head): v for k, v in state.items() if k.startswith(head)}
            if not parts:
                found.append(None)
                continue
            found.append(
                Climb(
                    self.unpack(parts),
                    [float(b) for b in state[f"{name}.bounds"]],
                    [float(s) for s in state[f"{name}.slacks"]],
                    bool(state[f"{name}.converged"]),
                )
            )
        return int(state["restart"]), found[0], found[1]
