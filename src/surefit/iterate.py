"""The one loop that drives every iterative solver.

A solver is a generator: the textbook's pseudocode with ``yield`` after each step. :func:`run` owns
everything else: the tolerance, the clock, the callback, progress and the stopping rules (OPT-19), and it
records which rule fired. "Converged" has one meaning here: the certificate holds.

Examples
--------
>>> def halving(x):
...     while True:
...         x = x / 2
...         yield Iterate(x, value=x * x)
>>> fit = run(halving(1.0), certify=lambda x: x * x, tol=1e-6, every=1)
>>> fit.stop.name, fit.n_iter, fit.x
('CERTIFIED', 10, 0.0009765625)
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

__all__ = ["Fit", "Iterate", "Stop", "Trace", "least_finished", "run"]


class Iterate(NamedTuple):
    """One step of a solver.

    Attributes
    ----------
    x : Any
        The current point: whatever the certificate needs.
    value : float
        The objective, where the solver has it for free (NaN otherwise).
    estimate : float
        The solver's own cheap estimate of what the certificate will observe. The certificate is
        computed only when this passes the tolerance; NaN means "no estimate: ask every so often".
    step : float
        The step length used to get here, where that is a thing.
    cost : int
        How many iterations this step counts for (a solver may take several between two yields).
    """

    x: Any
    value: float = math.nan
    estimate: float = math.nan
    step: float = math.nan
    cost: int = 1


class Stop(Enum):
    """Why a run ended (OPT-19). The text completes "ended because ..."."""

    CERTIFIED = "its certificate held"
    ESTIMATED = "the solver's own estimate of the gap passed the tolerance"
    FINISHED = "the solver finished: no further step changes the point"
    FLAT = "the training error is flat"
    VALIDATION = "the validation error is no longer falling"
    CALLBACK = "the callback asked to stop"
    MAX_ITER = "the maximum number of iterations was reached"
    MAX_TIME = "the maximum time was reached"
    DIVERGED = "the objective is no longer finite"


@dataclass
class Trace:
    """What happened along a run: one entry per recorded iterate.

    ``bounds`` holds, where a theorem applies, the value that the theorem promises at each step.
    """

    iterations: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    bound_name: str = ""

    def plot(self, ax: Any = None, *, optimum: float = 0.0) -> Any:
        """Objective minus ``optimum`` against the iteration, with the theorem's bound beside it."""
        from matplotlib import pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(6, 4), layout="constrained")
        gaps = [value - optimum for value in self.values]
        ax.plot(self.iterations, gaps, label="measured", lw=1.8)
        if self.bounds:
            ax.plot(self.iterations, self.bounds, "--", label=self.bound_name or "bound", lw=1.4)
        if all(gap > 0 for gap in gaps):
            ax.set_yscale("log")
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective" if optimum == 0 else "objective − optimum")
        ax.grid(alpha=0.3)
        ax.legend(frameon=False)
        return ax


@dataclass
class Fit:
    """The outcome of :func:`run`: always returned, whatever happened."""

    x: Any
    n_iter: int
    stop: Stop
    observed: float  # what the certificate observed at the end; without one, the solver's estimate
    value: float
    trace: Trace

    @property
    def converged(self) -> bool:
        """True when the certificate held or, where none was given, the solver's estimate passed."""
        return self.stop in (Stop.CERTIFIED, Stop.ESTIMATED)


def run(
    steps: Iterator[Iterate],
    certify: Callable[[Any], float] | None = None,
    *,
    tol: float = 0.0,
    max_iter: int = 1000,
    every: int = 10,
    max_time: float | None = None,
    flat: tuple[float, int] | None = None,
    validate: Callable[[Any], float] | None = None,
    patience: int = 5,
    callback: Callable[[int, Iterate], bool | None] | None = None,
    verbose: int = 0,
    name: str = "fit",
) -> Fit:
    """Drive a solver until the certificate holds or another stopping rule fires.

    Parameters
    ----------
    steps : iterator of Iterate
        The solver.
    certify : callable, optional
        Maps a point to the quantity that must be at most ``tol``. Without it the solver's own
        estimate is compared with ``tol``, and the outcome is said to be estimated.
    tol : float
        Absolute bound on what ``certify`` observes.
    max_iter : int
        Most steps to take.
    every : int
        How often to ask the certificate when iterates carry no estimate.
    max_time : float, optional
        Most seconds to spend.
    flat : (float, int), optional
        Stop when the objective fell by less than ``flat[0]`` (relative) over ``flat[1]`` steps.
    validate : callable, optional
        Maps a point to its validation error; with ``patience``, stops when it no longer falls, and
        the best point seen is returned.
    callback : callable, optional
        Called as ``callback(k, iterate)`` after each step; return True to stop.
    verbose : int
        0 is silent; otherwise progress is shown.

    Returns
    -------
    Fit
        The point, how many steps, which rule fired, and the trace.
    """
    trace = Trace()
    start = time.perf_counter()
    last = Iterate(None)
    best_point, best_error, stale = None, math.inf, 0
    observed, observed_at, n_iter, asked, stop = math.nan, -1, 0, 0, Stop.FINISHED
    with _Progress(name, max_iter, verbose) as progress:
        for asked, last in enumerate(steps, start=1):
            n_iter += last.cost
            elapsed = time.perf_counter() - start
            trace.iterations.append(n_iter)
            trace.values.append(last.value)
            trace.steps.append(last.step)
            trace.seconds.append(elapsed)
            progress.advance(last.value)
            if last.value in (math.inf, -math.inf):
                stop = Stop.DIVERGED
                break
            if certify is not None and _worth_asking(last.estimate, tol, asked, every):
                observed, observed_at = float(certify(last.x)), asked
                if observed <= tol:
                    stop = Stop.CERTIFIED
                    break
            if certify is None:
                observed = last.estimate
                if observed <= tol:
                    stop = Stop.ESTIMATED
                    break
            if callback is not None and callback(n_iter, last):
                stop = Stop.CALLBACK
                break
            if validate is not None:
                error = float(validate(last.x))
                trace.validation.append(error)
                if error < best_error:
                    best_point, best_error, stale = last, error, 0
                else:
                    stale += 1
                if stale >= patience:
                    stop = Stop.VALIDATION
                    break
            if flat is not None and _is_flat(trace.values, *flat):
                stop = Stop.FLAT
                break
            if n_iter >= max_iter:
                stop = Stop.MAX_ITER
                break
            if max_time is not None and elapsed >= max_time:
                stop = Stop.MAX_TIME
                break
    if validate is not None and best_point is not None:
        last = best_point
        observed_at = -1
    if certify is not None and observed_at != asked and last.x is not None:
        observed = float(certify(last.x))
        if observed <= tol and stop in (Stop.FINISHED, Stop.MAX_ITER, Stop.MAX_TIME, Stop.FLAT):
            stop = Stop.CERTIFIED
    return Fit(last.x, n_iter, stop, observed, last.value, trace)


def least_finished(fits: list[Fit]) -> Fit:
    """Of several runs that make one fit, the one whose ending says most: the latest rule of Stop."""
    order = list(Stop)
    return max(fits, key=lambda fit: order.index(fit.stop))


def _worth_asking(estimate: float, tol: float, asked: int, every: int) -> bool:
    if math.isnan(estimate):
        return asked % every == 0
    return estimate <= tol


def _is_flat(values: list[float], tol: float, window: int) -> bool:
    if len(values) <= window:
        return False
    before, now = values[-1 - window], values[-1]
    return before - now <= tol * max(abs(before), abs(now), 1e-300)


class _Progress:
    """A rich bar on a terminal, a line now and then elsewhere, nothing when ``verbose`` is 0."""

    def __init__(self, name: str, total: int, verbose: int) -> None:
        self.name, self.total, self.verbose = name, total, verbose
        self.bar: Any = None
        self.done, self.printed = 0, 0.0

    def __enter__(self) -> _Progress:
        if self.verbose:
            from rich.console import Console
            from rich.progress import Progress

            console = Console(stderr=True)
            if console.is_terminal:
                self.bar = Progress(console=console, transient=True)
                self.task = self.bar.add_task(self.name, total=self.total)
                self.bar.start()
            self.printed = time.perf_counter()
        return self

    def advance(self, value: float) -> None:
        self.done += 1
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done, description=f"{self.name} {value:.6g}")
        elif self.verbose and (self.verbose > 1 or time.perf_counter() - self.printed > 2.0):
            print(
                f"{self.name}: iteration {self.done} of at most {self.total}, objective {value:.6g}"
            )
            self.printed = time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.stop()
