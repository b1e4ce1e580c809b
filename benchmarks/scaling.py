"""Strong scaling: the same rows over 1, 2 and 4 processes of one thread each, on this machine.

Each process makes its own rows from the seed. All fits of one number of ranks run in one launch; launches
alternate (1, 2, 4, 1, 2, 4), and the best time of each fit is kept: what else the machine does only adds.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .machine import cores, environment
from .report import ROOT, short, size, table

TITLE = "Scaling over processes"
TEXT = """
{n} rows of {p} columns, spread over processes of one thread each (`RankRows`, gloo), each with rows of its
own, made from the seed. *fit* is without a certificate, *certified* with it. *efficiency* is T(1) / (R T(R)),
T(1) a group of one, for both; *plain array* is the same fit of an array in one process of one thread.
*processor* is the processor time of the busiest rank, which other work on the machine does not lengthen.
The mixture takes every rank's first fifth. *bytes* are what a rank handed to sums in one iteration (in the
whole fit for ridge and logistic regression), counted, next to the formula of docs/scaling.md. *model* is
T(1) / min(R, cores) + messages x latency + 2 (R - 1) / R x bytes / bandwidth, with the latency and the
bandwidth of the table below. This machine has {cores} cores: more processes than that cannot be faster, so
that efficiency is judged where the cores exist.
Best of {runs} runs.
"""
WHY = """
logistic regression takes ten evaluations of a few milliseconds and two messages for each; over ranks it does
not use the fused kernel that a plain array has. Both processes share the memory of one machine.
"""
SIZES, CHUNK, SHARE, GOAL = (1, 2, 4), 10_000, 5, 0.8
CLUSTERS, COMPONENTS, STEPS = 64, 8, 10


def measure(options: Any) -> dict[str, Any]:
    n, p = (20_000, 16) if options.quick else (1_000_000, 64)
    repeats, rounds = (1, 1) if options.quick else (2, 2)
    found: dict[int, dict[str, Any]] = {}
    for _ in range(rounds):
        for ranks in SIZES:
            print(f"    {ranks} rank(s) ...", flush=True)
            found[ranks] = _better(found.get(ranks), _launch(ranks, n, p, repeats))
    rows = [_row(name, ranks, found) for name in found[1]["fits"] for ranks in SIZES]
    reduces = {str(ranks): found[ranks]["reduce"] for ranks in SIZES if ranks > 1}
    about = {"n": n, "p": p, "cores": cores(), "runs": repeats * rounds, "reduce": reduces}
    return {"rows": rows, "goals": [_goal(row) for row in rows if _judged(row)]} | about


def page(results: dict[str, Any]) -> str:
    heads = ["work", "ranks", "fit s", "model s", "processor s", "certified s", "efficiency", "certified",
             "plain array s", "messages", "bytes", "formula"]  # fmt: skip
    lines = [
        [
            row["work"], str(row["ranks"]), short(row["fit"]), short(row["model"]),
            short(row["fit cpu"]), short(row["certified"]),
            f"{row['efficiency']:.0%}", f"{row['efficiency certified']:.0%}", short(row["plain"]),
            str(row["messages"]), f"{row['bytes']:.0f}",
            "–" if row["formula"] is None else f"{row['formula']:.0f}",
        ]
        for row in results["rows"]
    ]  # fmt: skip
    about = results | {"n": size(results["n"])}
    text = f"## {TITLE}\n\n{TEXT.format(**about).strip()}\n\n{table(heads, lines)}\n"
    sums = [
        [ranks, f"{1e6 * row['latency']:.0f}", f"{row['bandwidth'] / 1e9:.2f}"]
        for ranks, row in results["reduce"].items()
    ]
    text += f"\n{table(['ranks', 'sum of one number, µs', 'bandwidth of 8 MB, GB/s'], sums)}\n"
    if any(goal["reached"] != "yes" for goal in results["goals"]):
        text += f"\nWhat stands in the way: {' '.join(WHY.split())}\n"
    return text


def _row(name: str, ranks: int, found: dict[int, dict[str, Any]]) -> dict[str, Any]:
    here, one = found[ranks]["fits"][name], found[1]["fits"][name]
    row = {"work": name, "ranks": ranks} | here | {"plain": one["plain"], "model": one["fit"]}
    for kind, word in (("fit", "efficiency"), ("certified", "efficiency certified")):
        row[word] = one[kind] / (ranks * here[kind])
    if ranks > 1:
        reduce = found[ranks]["reduce"]
        row["model"] = one["fit"] / min(ranks, cores()) + here["messages"] * reduce["latency"]
        row["model"] += 2 * (ranks - 1) / ranks * here["all bytes"] / reduce["bandwidth"]
    return row


def _judged(row: dict[str, Any]) -> bool:
    return bool(1 < row["ranks"] <= cores())


def _goal(row: dict[str, Any]) -> dict[str, str]:
    return {
        "work": f"{row['work']}, over {row['ranks']} processes",
        "goal": f"efficiency {GOAL:.0%}",
        "measured": f"{row['efficiency']:.0%}",
        "reached": "yes" if row["efficiency"] >= GOAL else "**no**",
    }


def _better(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """The best time of each fit, and of each sum."""
    if old is None:
        return new
    for name, fit in new["fits"].items():
        for key in ("fit", "certified", "plain", "fit cpu"):
            if fit[key] is not None:
                fit[key] = min(fit[key], old["fits"][name][key])
    if new["reduce"]:
        latency = min(new["reduce"]["latency"], old["reduce"]["latency"])
        bandwidth = max(new["reduce"]["bandwidth"], old["reduce"]["bandwidth"])
        new["reduce"] = {"latency": latency, "bandwidth": bandwidth}
    return new


def _launch(ranks: int, n: int, p: int, repeats: int) -> Any:
    """Run :func:`main` in this many processes; what the first one found."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    places: list[dict[str, str]] = [{}]
    if ranks > 1:
        meet = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        places = [meet | {"RANK": str(k), "LOCAL_RANK": str(k)} for k in range(ranks)]
    command = [sys.executable, "-m", "benchmarks.scaling", str(n), str(p), str(repeats)]
    pipes = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started: list[Any] = [
        subprocess.Popen(command, env=environment(1) | place, cwd=ROOT, **pipes)  # type: ignore[call-overload]
        for place in places
    ]
    try:
        said = [process.communicate(timeout=600) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, (_, error) in zip(started, said, strict=True):
        if process.returncode:
            raise RuntimeError(f"{ranks} ranks: {error[-500:]}")
    return json.loads(said[0][0].splitlines()[-1])


# --------------------------------------------------------------------- in the processes


def rows_of(first: int, last: int, p: int) -> tuple[Any, Any]:
    """X and y of these rows: a chunk depends on its number alone, not on who makes it."""
    rng = np.random.default_rng(0)
    middle, w = rng.standard_normal((2 * CLUSTERS, p)), rng.standard_normal(p) / np.sqrt(p)
    X, y = np.empty((last - first, p)), np.empty(last - first)
    for number in range(first // CHUNK, -(-last // CHUNK)):
        rng = np.random.default_rng([1, number])
        chunk = middle[rng.integers(len(middle), size=CHUNK)] + rng.standard_normal((CHUNK, p))
        target = chunk @ w + rng.standard_normal(CHUNK)
        low, high = max(first, number * CHUNK), min(last, (number + 1) * CHUNK)
        inside = slice(low - number * CHUNK, high - number * CHUNK)
        X[low - first : high - first], y[low - first : high - first] = chunk[inside], target[inside]
    return X, y


def cases(p: int) -> dict[str, tuple[Callable[..., Any], str, int | None, int | None]]:
    """name: the model, its target, its iterations, the float64 numbers handed to sums by the formula."""
    from surefit.cluster import KMeans
    from surefit.linear_model import LogisticRegression, Ridge
    from surefit.mixture import GaussianMixture

    k, K = CLUSTERS, COMPONENTS
    clusters = partial(KMeans, k, init="random", n_init=1, tol=0.0, random_state=0, max_iter=STEPS)
    mixture = partial(
        GaussianMixture, K, init_params="random_from_data", tol=0.0, random_state=0, max_iter=STEPS
    )
    return {
        "ridge": (Ridge, "value", None, p * p + 2 * p + 3),
        "logistic": (LogisticRegression, "class", None, None),
        f"k-means, k = {k}, {STEPS} steps": (clusters, "none", STEPS, k * p + k + 1),
        f"mixture, {K} full, {STEPS} steps": (mixture, "none", STEPS, 1 + K + K * p + K * p * p),
    }


def main(n: int, p: int, repeats: int) -> None:
    from threadpoolctl import threadpool_limits

    from surefit.design import RankRows
    from surefit.distributed import connect

    with connect() as group, threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten steps are not the end, as the certificate says
        mine = group.share_of(n)
        X, y = rows_of(mine.start, mine.stop, p)
        targets = {"value": y, "class": (y > 0).astype(int), "none": None}
        spread, fewer = RankRows(X, group), RankRows(X[: len(X) // SHARE], group)
        fits = {}
        for name, (model, target, steps, numbers) in cases(p).items():
            given, rows, plain = targets[target], spread, X
            if name.startswith("mixture"):
                rows, plain = fewer, fewer.rows
            record: dict[str, Any] = {"plain": None}
            short_y = None if given is None else given[: fewer.rows_here]
            for key, certify, whole, part in (
                ("fit", False, rows, fewer),
                ("certified", True, rows, fewer),
                ("plain", False, plain, fewer.rows),
            ):
                if key != "plain" or group.size == 1:
                    _fit(model, certify, part, short_y)  # compiles
                    fit = partial(_fit, model, certify, whole, given)
                    record[key], record[f"{key} cpu"] = _time(group, repeats, fit)
            record |= _traffic(group, model, rows, given, steps)
            fits[name] = record | {"formula": None if numbers is None else 8 * numbers}
        found = {"fits": fits, "reduce": _reduce(group) if group.size > 1 else None}
        if group.rank == 0:
            print(json.dumps(found))


def _fit(model: Any, certify: bool, rows: Any, y: Any) -> None:
    model(certify=certify).fit(rows, y)


def _time(group: Any, repeats: int, action: Callable[[], Any]) -> tuple[float, float]:
    """The best time from when all ranks begin to when all are done, and of the busiest processor's."""
    taken, busy = [], []
    for _ in range(repeats):
        group.sum(1.0)
        start, used = time.perf_counter(), time.process_time()
        action()
        used = time.process_time() - used
        busy.append(float(group.max(used)))
        taken.append(time.perf_counter() - start)
    return min(taken), min(busy)


def _traffic(group: Any, model: Any, spread: Any, y: Any, steps: int | None) -> dict[str, Any]:
    """Messages and bytes of a whole fit, and the bytes of one iteration where there are some."""
    traffic = getattr(group, "traffic", None)
    if traffic is None:
        return {"messages": 0, "all bytes": 0, "bytes": 0.0}

    def spent(**settings: Any) -> tuple[int, int]:
        before = (traffic.messages, traffic.bytes)
        model(certify=False, **settings).fit(spread, y)
        return traffic.messages - before[0], traffic.bytes - before[1]

    messages, whole = spent()
    each = float(whole)
    if steps is not None:
        each = (whole - spent(max_iter=steps - 2)[1]) / 2
    return {"messages": messages, "all bytes": whole, "bytes": each}


def _reduce(group: Any) -> dict[str, float]:
    """Seconds for a sum of one number; bytes a second, 2 (R - 1) / R of the buffer, for 8 MB."""
    many = np.ones(1_000_000)

    def each(array: Any, count: int) -> float:
        return _time(group, 5, lambda: [group.sum(array) for _ in range(count)])[0] / count

    latency = each(np.ones(1), 200)
    travelled = 2 * (group.size - 1) / group.size * many.nbytes
    return {"latency": latency, "bandwidth": travelled / max(each(many, 5) - latency, 1e-9)}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
