"""Runs of Lloyd's algorithm from several starts, the best of which is kept; resumable.

The state of a fit is small: which restart, its iteration, the centres of this and the last iteration, the
trace, the best so far, and the state of the random numbers. A checkpoint holds it; labels are functions of
the centres and are found again. So a fit that goes on ends with the bits of one that never stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._namespace import to_numpy
from ..design import Design
from ..distributed import key_of
from ..iterate import Stop, run
from ..solvers.lloyd import Setting, inertia, labeller_of, lloyd
from .base import initial_centres

__all__ = ["Kept", "Outcome", "best_of"]

Array = NDArray[np.float64]


class Outcome(NamedTuple):
    """The best run."""

    centres: Array
    before: Array  # one step earlier
    labels: Any
    inertia: float
    n_iter: int
    trace: list[float]
    restarts: list[float]
    stopped: str


_STOPS = {
    "settled": "no label changed",
    "tol": "the centres moved by less than tol allows",
    "max_iter": Stop.MAX_ITER.value,
}


def best_of(
    model: Any, X: Any, design: Design, weights: Any, setting: Setting, given: Array | None, runs: int,
    random_state: Any, tol: float, kept: Kept,
) -> Outcome:  # fmt: skip
    """Run Lloyd's algorithm ``runs`` times."""
    state = kept.load()
    best: Outcome | None = None
    restarts: list[float] = []
    first = 0
    if state is not None:
        restarts, first = state["restarts"].tolist(), int(state["restart"])
        random_state.set_state(
            ("MT19937", state["keys"], *state["place"].tolist(), float(state["gauss"]))
        )
        if "best_centres" in state:
            centres = state["best_centres"]
            labels = _labels(design, setting, weights, centres)
            stop = str(state["best_stop"])
            best = Outcome(
                centres, state["best_before"], labels, float(state["best_inertia"]),
                int(state["best_n_iter"]),
                state["best_trace"].tolist(), restarts, stop,
            )  # fmt: skip
    for restart in range(first, runs):
        kept.begin(restart, restarts, best)
        if state is not None and "centres" in state:
            start = state
        else:
            centres = initial_centres(model, X, design, weights, given, random_state)
            if model.verbose:
                print("Initialization complete")
            start = {"centres": centres, "trace": np.empty(0)}
        kept.numbers(random_state)
        found = _one(model, design, weights, setting, start, tol, kept)
        state = None
        restarts.append(found.inertia)
        if best is None or (
            found.inertia < best.inertia
            and not _same(design, found.labels, best.labels, model.n_clusters)
        ):
            best = found
    assert best is not None
    return best._replace(restarts=restarts)


def _one(
    model: Any,
    design: Design,
    weights: Any,
    setting: Setting,
    start: dict[str, Any],
    tol: float,
    kept: Kept,
) -> Outcome:
    """One run, from first centres or from where a checkpoint left it."""
    labeller = labeller_of(design, setting.frame, weights)
    centres, trace = start["centres"], start["trace"].tolist()
    if "previous" in start:
        labeller.step(start["previous"], collect=False)
    before, done, ended = start.get("previous", centres), len(trace), "max_iter"
    if done < model.max_iter and not start.get("over", False):
        last, shift = [centres], [0.0]

        def note(_: int, iterate: Any) -> bool:
            trace.append(iterate.value)
            if model.verbose:
                print(f"Iteration {len(trace) - 1}, inertia {iterate.value}.")
            kept.save(iterate.x.centres, last[-1], trace)
            shift[0] = iterate.estimate
            last[:] = [*last[-1:], iterate.x.centres]
            return bool(iterate.x.settled or iterate.estimate <= tol)

        fit = run(
            lloyd(labeller, centres, setting.spread),
            tol=-1.0,
            max_iter=model.max_iter - done,
            callback=note,
        )
        before, centres = last[0], fit.x.centres
        if fit.x.settled:
            ended = "settled"
        elif fit.stop is Stop.CALLBACK:
            ended = "tol"
        if model.verbose and ended != "max_iter":
            words = (
                "strict convergence"
                if ended == "settled"
                else f"center shift {shift[0]} within tolerance {tol}"
            )
            print(f"Converged at iteration {len(trace) - 1}: {words}.")
    public = centres.astype(design.dtype).astype(np.float64)
    if ended != "settled" or not np.array_equal(public, before):
        labeller.step(public, collect=False)
    final = inertia(design, public, labeller.labels, weights)
    return Outcome(
        public, before, labeller.labels, final, len(trace), [*trace, final], [], _STOPS[ended]
    )


def _labels(design: Design, setting: Setting, weights: Any, centres: Array) -> Any:
    labeller = labeller_of(design, setting.frame, weights, keep=False)
    labeller.step(centres, collect=False)
    return labeller.labels


def _same(design: Design, one: Any, two: Any, k: int) -> bool:
    """Whether two clusterings are the same up to the names of the clusters, over all ranks."""
    pairs = np.unique(to_numpy(one).astype(np.int64) * k + to_numpy(two))
    pairs = np.unique(np.concatenate(design.group.gather(pairs)))
    return len(np.unique(pairs // k)) == len(pairs)


class Kept:
    """The checkpoint of a fit; does nothing where the design has none."""

    def __init__(self, model: Any, design: Design, data_id: Callable[[], str]) -> None:
        self.place = design.checkpoint
        self.fixed: dict[str, Any] = {}
        if self.place is None:
            return
        self.key = key_of(model, data_id())

    def load(self) -> dict[str, Any] | None:
        return None if self.place is None else self.place.load(self.key)

    def begin(self, restart: int, restarts: list[float], best: Outcome | None) -> None:
        self.fixed = {"restart": np.array(restart), "restarts": np.array(restarts)}
        if best is not None:
            self.fixed |= {
                "best_centres": best.centres, "best_before": best.before,
                "best_inertia": np.array(best.inertia),
                "best_n_iter": np.array(best.n_iter), "best_trace": np.array(best.trace),
                "best_stop": np.array(best.stopped),
            }  # fmt: skip

    def numbers(self, random_state: Any) -> None:
        _, keys, position, has, gauss = random_state.get_state(legacy=True)
        self.fixed |= {"keys": keys, "place": np.array([position, has]), "gauss": np.array(gauss)}

    def save(self, centres: Array, previous: Array, trace: list[float]) -> None:
        if self.place is not None:
            moving = {"centres": centres, "previous": previous, "trace": np.array(trace)}
            self.place.save(self.key, self.fixed | moving)
