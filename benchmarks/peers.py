"""The peers, where they are installed; benchmarks run with those that are there and name the others."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .harness import Variant

__all__ = ["MISSING", "fitting", "limited", "ours", "peer", "precisions"]

PACKAGE = {
    "sklearnex": "scikit-learn-intelex",
    "celer": "celer",
    "implicit": "implicit",
    "surprise": "scikit-surprise",
    "skglm": "skglm",
    "liblinear": "liblinear-official",
    "statsmodels": "statsmodels",
    "faiss": "faiss-cpu",
    "foolbox": "foolbox",
    "fasttext": "fasttext-wheel",
    "gensim": "gensim",
    "skorch": "skorch",
    "torchattacks": "torchattacks",
}
MISSING: list[str] = []


def peer(module: str) -> Any:
    """The module, or None."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = PACKAGE[module.split(".")[0]]
        if package not in MISSING:
            MISSING.append(package)
        return None


def ours(name: str, module: str = "linear_model") -> Any:
    """A class of one of surefit's modules, or None while it is not written."""
    where = f"surefit.{module}"
    try:
        return getattr(importlib.import_module(where), name, None)
    except ModuleNotFoundError as error:
        if error.name != where:
            raise
        return None


def fitting(
    model: Any, X: Any, y: Any, *, knob: str = "tol", **fixed: Any
) -> Callable[[Any], tuple[Any, Any]]:
    """A contender's function: fit ``model`` with ``knob`` at the setting, return its point."""

    def fit(setting: Any) -> tuple[Any, Any]:
        options = fixed if setting is None else fixed | {knob: setting}
        fitted = model(**options).fit(X, y)
        return fitted.coef_, fitted.intercept_

    return fit


def limited(action: Callable[[], Any], cap: float) -> Any:
    """What the action returns, run in a forked process that is ended after ``cap`` seconds: None then.

    For peers that no option stops and that start no threads, which a fork would lack. It sees the data in
    memory; the result is sent back.
    """
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_report, args=(send, action))
    child.start()
    send.close()
    try:
        found = receive.recv() if receive.poll(cap) else None
    except EOFError:
        found = RuntimeError(f"the process ended with status {child.exitcode}")
    if child.pid is not None and child.is_alive():
        os.killpg(
            child.pid, signal.SIGKILL
        )  # it leads a group of its own: what it started ends too
    child.join()
    if isinstance(found, Exception):
        raise found
    return found


def _report(send: Any, action: Callable[[], Any]) -> None:
    os.setsid()
    try:
        send.send(action())
    except Exception as error:
        send.send(RuntimeError(f"{type(error).__name__}: {error}"))


def precisions(
    model: Any, X: Any, y: Any, settings: Sequence[Any] = (None,), **fixed: Any
) -> list[Variant]:
    """Variants of a fit on the data in float64 and in float32; labels stay as they are."""
    single = y.astype(np.float32) if y.dtype.kind == "f" else y
    return [
        Variant("float64", fitting(model, X, y, **fixed), settings),
        Variant("float32", fitting(model, X.astype(np.float32), single, **fixed), settings),
    ]
