r"""Minimise a function of one's own, and learn what is true of the result.

The solvers of this package are generators; :func:`minimize` picks one, drives it with
:func:`surefit.iterate.run`, and states the strongest thing that can be said about the end point:

==============================  ======================================================================
given                           claim
==============================  ======================================================================
nothing but f                   stationary: the gradient norm (or the fixed-point residual) is small
``grad``                        the gradient agrees with differences of f (a wrong one FAILS)
``hess``                        strict local minimum, only where the Hessian is safely positive definite
``strong_convexity``            within :math:`\|\nabla f\|^2/(2m)` of the *global* minimum, unless the run
                                contradicts m
``smoothness``, ``optimum``     the convergence theorem held at every step of the run, unless the run
                                contradicts L, convexity or the optimum
``lipschitz``                   grid search: within G times the cell radius of the minimum over the box
==============================  ======================================================================

Examples
--------
>>> import numpy as np
>>> from surefit import minimize
>>> A = np.diag([1.0, 3.0, 10.0])
>>> result = minimize(lambda x: x @ A @ x / 2, [1.0, 1.0, 1.0], grad=lambda x: A @ x,
...                   smoothness=10.0, strong_convexity=1.0, optimum=np.zeros(3))
>>> result.converged, result.stopped.name
(True, 'CERTIFIED')
>>> [(claim.kind.value, claim.name) for claim in result.certificate.claims][:3]
[('optimal', 'suboptimality'), ('stationary', 'stationary'), ('bound', 'strongly convex rate')]
>>> saddle = minimize(lambda x: x[0] ** 3, [0.0], grad=lambda x: 3 * x**2, hess=lambda x: 6 * x)
>>> {claim.name: claim.status.value for claim in saddle.certificate.claims}["strict local minimum"]
'undecided'
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..certificate import Certificate, CertificateWarning, Kind, Status
from ..iterate import Fit, Iterate, Stop, Trace, run
from ._judge import Judge
from ._methods import METHODS, Method, Setup, find_method, resolve_step, watch
from ._problem import Problem, start_point
from ._typing import (
    BatchGradient,
    Gradient,
    Hessian,
    Objective,
    Projection,
    Prox,
    RandomState,
    Vector,
)
from .grid import grid_size
from .linesearch import Backtracking
from .schedules import StepSize

__all__ = ["MinimizeResult", "minimize"]


@dataclass(frozen=True, eq=False)
class MinimizeResult:
    """What :func:`minimize` found, and what is known about it.

    Attributes
    ----------
    x : ndarray of shape (n,)
        The point.
    value : float
        The objective there (with the penalty, if there is one).
    n_iter : int
        Steps taken; for a grid, evaluations.
    stopped : Stop
        Which rule ended the run; ``stopped.value`` is the sentence.
    trace : Trace
        Values and steps along the way, with the theorem's bound where one applies: ``trace.plot()``.
    certificate : Certificate
        The claims.
    """

    x: Vector
    value: float
    n_iter: int
    stopped: Stop
    trace: Trace = field(repr=False)
    certificate: Certificate = field(repr=False)

    @property
    def converged(self) -> bool:
        """True when the run ended because its certificate held, and only then."""
        return self.stopped is Stop.CERTIFIED and self.certificate.ok


def minimize(
    f: Objective,
    x0: ArrayLike,
    *,
    method: str = "gd",
    grad: Gradient | None = None,
    hess: Hessian | None = None,
    step: StepSize | Backtracking | str | None = None,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_time: float | None = None,
    flat: tuple[float, int] | None = None,
    validate: Callable[[Vector], float] | None = None,
    patience: int = 5,
    callback: Callable[[int, Iterate], bool | None] | None = None,
    project: Projection | None = None,
    prox: Prox | None = None,
    penalty: Objective | None = None,
    grad_at: BatchGradient | None = None,
    n_samples: int | None = None,
    batch_size: int = 1,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    smoothness: float | None = None,
    strong_convexity: float | None = None,
    convex: bool | None = None,
    lipschitz: float | None = None,
    optimum: ArrayLike | None = None,
    lower_bound: float | None = None,
    random_state: RandomState = None,
    verbose: int = 0,
    **options: Any,
) -> MinimizeResult:
    r"""Minimise f from x0 and certify the result.

    Parameters
    ----------
    f : callable
        The function; with ``penalty``, its smooth part.
    x0 : array-like of shape (n,)
        Where to start. For a grid only its length matters.
    method : str
        ``"gd"``, ``"sgd"``, ``"momentum"``, ``"adam"``, ``"sign"``, ``"newton"``, ``"subgradient"``,
        ``"projected"``, ``"penalty"``, ``"fista"`` or ``"grid"``; the files of :mod:`surefit.solvers`
        describe them.
    grad, hess : callable, optional
        Gradient (n,) and Hessian (n, n). Without ``grad`` central differences are used; ``hess`` is needed by
        Newton's method and decides, after any method, whether the point is a strict local minimum.
    step : float, callable, Backtracking or "backtracking", optional
        By default 1/L where ``smoothness`` is given, else a line search where the method has one.
    tol : float
        Relative tolerance: the gradient norm (the fixed-point residual) must come to
        ``tol * max(1, the same at x0)``, a gap to the minimum to ``tol * max(1, |f(x0)|)``.
    max_iter : int, optional
        By default 1000 steps, 100 passes for stochastic methods, every point of a grid.
    max_time : float, optional
        Seconds.
    flat : (float, int), optional
        Stop when f fell by less than ``flat[0]`` (relative) over ``flat[1]`` steps (passes, if stochastic).
    validate : callable, optional
        The validation error at x. The run stops when it has not fallen for ``patience`` steps, and the
        best point is returned.
    callback : callable, optional
        ``callback(k, iterate)`` after each step; return True to stop.
    project : callable, optional
        The projection onto the feasible set, for "projected", "penalty" and "fista".
    prox, penalty : callable, optional
        ``prox(v, t)`` and the value of the non-smooth term, for "fista".
    grad_at : callable, optional
        ``grad_at(x, indices)``, the mean gradient of some of the ``n_samples`` terms of f: makes "momentum",
        "adam", "sign", "subgradient" and "projected" stochastic, with ``batch_size`` terms a step.
    bounds : (array-like, array-like), optional
        Opposite corners of the box of a grid.
    smoothness, strong_convexity, lipschitz : float, optional
        L, m and G: the gradient is L-Lipschitz, :math:`f - \tfrac m2\|x\|^2` is convex (m = 0: f is
        convex), f is G-Lipschitz. They cannot be proved from outside, but they are tested: between
        consecutive gradients, between points spread over the run, and at its end along the directions of
        smallest and largest curvature (at most 48 gradients more). A constant that the data contradict
        FAILS, and no bound that rests on it holds; the others say "if the stated constants are right".
    convex : bool, optional
        Whether the theorems on convex functions are claimed; by default if ``strong_convexity`` or
        ``optimum`` is given.
    optimum : array-like of shape (n,), optional
        A minimiser, where it is known: then the rate is checked at every step. It FAILS when a lower value
        is found, or when the gradient there is not zero.
    lower_bound : float, optional
        A number that f never falls below, for the non-convex rate; by default f(optimum).
    random_state : int, Generator, RandomState or None
        For mini-batches and for the directions of the checks (which are the same every time for None).
    verbose : int
        0 is silent.
    **options
        Of the method, such as ``beta1`` for Adam, ``points`` for a grid or ``restart`` for FISTA.

    Returns
    -------
    MinimizeResult
        Always, whatever happened. A :class:`~surefit.CertificateWarning` says which claims do not hold.
    """
    chosen = find_method(method, options)
    start = start_point(x0)
    _check_numbers(tol, max_iter, smoothness, strong_convexity, lipschitz)
    _check_use(method, chosen, project=project, prox=prox, penalty=penalty, bounds=bounds,
               hess=hess, grad_at=grad_at, n_samples=n_samples)  # fmt: skip
    if project is not None and prox is not None:
        raise ValueError("give project or prox, not both: a projection is the prox of its set.")
    stochastic = grad_at is not None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        problem = Problem(f, start, grad, hess, grad_at, n_samples)
        target = None if optimum is None else _like(start, optimum)
        vouched = strong_convexity is not None or target is not None
        if method == "subgradient" and target is not None:
            options = {"radius": float(np.linalg.norm(start - target)), **options}
        setup = Setup(
            problem=problem,
            x0=start,
            step=resolve_step(method, chosen, step, smoothness),
            project=project,
            prox=prox if project is None else (lambda v, t: project(v)),
            penalty=penalty,
            bounds=bounds,
            stochastic=stochastic,
            n_samples=n_samples or 0,
            batch_size=batch_size,
            lipschitz=lipschitz,
            random_state=random_state,
            options=options,
        )
        judge = Judge(
            method=method,
            family=chosen.family,
            setup=setup,
            tol=tol,
            has_hessian=hess is not None,
            smoothness=smoothness,
            strong_convexity=strong_convexity,
            convex=vouched if convex is None else convex,
            convex_is_stated=bool(convex) or strong_convexity is not None,
            optimum=target,
            lower_bound=lower_bound,
        )
        # A stochastic run is looked at once a pass: more often would cost more than its steps.
        every = math.ceil(setup.n_samples / batch_size) if stochastic and batch_size >= 1 else 1
        steps = judge.record(chosen.start(setup))
        if chosen.watched or stochastic:
            steps = watch(steps, judge.value, judge.residual, every)
        if judge.holds_at_start():
            fit = Fit(start, 0, Stop.CERTIFIED, math.nan, judge.value(start), Trace())
        else:
            fit = run(
                steps,
                judge.criterion,
                tol=judge.bound,
                max_iter=max_iter or _default_max_iter(method, setup, every),
                max_time=max_time,
                flat=flat if flat is None else (flat[0], flat[1] * every),
                validate=validate,
                patience=patience,
                callback=callback,
                verbose=verbose,
                name=f"minimize ({method})",
            )
        return _conclude(fit, judge, start, every)


def _conclude(fit: Fit, judge: Judge, start: Vector, every: int) -> MinimizeResult:
    """Certify the end point, warn of what does not hold, and pack up."""
    x = start if fit.x is None else np.asarray(fit.x)
    trace = fit.trace if every == 1 else _recorded(fit.trace)
    claims = judge.claims(x, trace, fit.stop, fit.n_iter)
    optimal = [c for c in claims if c.kind in (Kind.OPTIMAL, Kind.STATIONARY)]
    stop, fine = fit.stop, all(c.status is not Status.FAILS for c in claims)
    if stop is Stop.CERTIFIED and not fine:
        stop = Stop.FINISHED  # the solver's criterion was met, but some other claim fails
    elif stop is Stop.FINISHED and fine and any(c.status is Status.HOLDS for c in optimal):
        stop = Stop.CERTIFIED
    certificate = Certificate(tuple(claims), stopped=stop.value, about=f"minimize ({judge.method})")
    if not certificate.ok:
        message = f"{certificate.failure_message()}\n  {_remedy(stop, certificate)}"
        warnings.warn(message, CertificateWarning, stacklevel=3)
    return MinimizeResult(x, judge.value(x), fit.n_iter, stop, trace, certificate)


def _remedy(stop: Stop, certificate: Certificate) -> str:
    wrong = [c.name for c in certificate.failed if c.kind is Kind.EMPIRICAL]
    if wrong:
        return f"Correct what you gave to minimize first: {', '.join(wrong)}."
    if stop is Stop.DIVERGED:
        return "Take a smaller step, or step='backtracking'."
    if stop in (Stop.MAX_ITER, Stop.MAX_TIME):
        return "Allow more iterations or time, raise tol, or use a step that goes to zero."
    return "Raise tol, or look at trace.plot() to see where the run left its theorem."


def _recorded(trace: Trace) -> Trace:
    """Only the entries whose value was looked at."""
    kept = [i for i, value in enumerate(trace.values) if not math.isnan(value)]

    def pick(entries: list[Any]) -> list[Any]:
        return [entries[i] for i in kept] if len(entries) == len(trace.values) else entries

    return Trace(
        pick(trace.iterations),
        pick(trace.values),
        pick(trace.steps),
        pick(trace.seconds),
        pick(trace.validation),
    )


def _default_max_iter(method: str, setup: Setup, every: int) -> int:
    if method == "grid" and setup.bounds is not None:
        return grid_size(*setup.bounds, **setup.options) + 1  # one more: to see that it ended
    return 100 * every if setup.stochastic else 1000


def _like(start: Vector, optimum: ArrayLike) -> Vector:
    x = start_point(optimum, "optimum")
    if x.shape != start.shape:
        raise ValueError(f"optimum must have the shape of x0, {start.shape}, got {x.shape}.")
    return x


def _check_numbers(
    tol: float,
    max_iter: int | None,
    smoothness: float | None,
    strong_convexity: float | None,
    lipschitz: float | None,
) -> None:
    if not 0 <= tol < math.inf:
        raise ValueError(f"tol must be finite and at least 0, got {tol!r}; for example 1e-6.")
    if max_iter is not None and max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter!r}; None is the default.")
    for name, value in (("smoothness", smoothness), ("lipschitz", lipschitz)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive, got {value!r}; leave it out if unknown.")
    m = strong_convexity
    if m is not None and not 0 <= m <= (math.inf if smoothness is None else smoothness):
        raise ValueError(
            f"strong_convexity must be at least 0 and at most smoothness={smoothness!r}, got {m!r}; "
            "0 says that f is convex."
        )


def _check_use(name: str, method: Method, **given: Any) -> None:
    """Arguments that the method needs and did not get, or got and would ignore."""
    for argument in method.needs:
        if given[argument] is None:
            raise ValueError(f"method={name!r} needs {argument}, got None; see the docstring.")
    for argument in ("project", "prox", "penalty", "bounds"):
        if given[argument] is not None and argument not in method.needs + method.takes:
            users = ", ".join(
                repr(key) for key, m in METHODS.items() if argument in m.needs + m.takes
            )
            raise ValueError(
                f"method={name!r} does not use {argument}; leave it out, or choose one of {users}."
            )
    if given["grad_at"] is not None:
        if not method.stochastic:
            users = ", ".join(repr(key) for key, m in METHODS.items() if m.stochastic)
            raise ValueError(
                f"method={name!r} uses the whole gradient, not grad_at; give grad, or choose one of {users}."
            )
        if given["n_samples"] is None:
            raise ValueError("grad_at needs n_samples, the number of terms of f, got None.")
