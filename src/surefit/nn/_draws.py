"""torch's generators of random numbers belong to the whole process: threads that train take turns in drawing.

A step seeds them and draws: another thread's step in between would change what it draws, and a run of its own
would give the caller's numbers back at the wrong time. So each step holds a lock, which one run alone never
waits for, and of runs that overlap the first one keeps the caller's numbers and the last one puts them back.
A run within another one, such as in its callback, puts back those that it found.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["callers_kept", "drawing", "seeded"]

_turn = threading.RLock()
_runs: dict[torch.device, list[Any]] = {}  # how many there are, and the numbers before the first


def _after_fork() -> None:
    """A forked process has one thread, and nobody in it will give back a lock."""
    global _turn
    _turn = threading.RLock()
    _runs.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def callers_kept(device: torch.device) -> Iterator[None]:
    """Afterwards the generators of the processor and of a device are as before."""
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    with _turn:
        found = {one: _state(one) for one in (torch.device("cpu"), device)}
        for one, state in found.items():
            _runs.setdefault(one, [0, state])[0] += 1
    try:
        yield
    finally:
        with _turn:
            for one, state in found.items():
                run = _runs.get(one, [1, state])  # none in a process forked meanwhile
                run[0] -= 1
                # a step of another run seeds anew, whatever is put back here
                _put_back(one, state if run[0] else run[1])
                if not run[0]:
                    _runs.pop(one, None)


@contextlib.contextmanager
def drawing(seed: int, device: torch.device) -> Iterator[None]:
    """Draws from a seed, in turn with other threads.

    The generator is seeded as by torch.manual_seed, which takes 0.2 ms where there is no CUDA device.
    """
    with _turn:
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):  # which may not be the current one
                torch.cuda.manual_seed(seed)
        yield


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draws from a seed on the processor; its generator is afterwards as before."""
    with _turn, torch.random.fork_rng([]):
        torch.default_generator.manual_seed(seed)
        yield


def _state(device: torch.device) -> torch.Tensor | None:
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.get_rng_state() if device.type == "cpu" else None


def _put_back(device: torch.device, state: Any) -> None:
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    elif state is not None:
        torch.set_rng_state(state)
