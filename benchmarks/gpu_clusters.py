"""Clusters, mixtures and factors on one GPU, against plain torch and scikit-learn's array API beside them.

    PYTHONPATH=src python -m benchmarks.gpu_clusters                          # on a machine with CUDA
    PYTHONPATH=src python -m benchmarks.gpu_clusters --device cpu --quick     # the same logic, anywhere

An iteration is the difference of two fits of different length over the difference of their lengths, so that
what is done once (checks, preparing the rows, the last labels) is not in it; whole fits stand beside it.
Writes ``benchmarks/results/gpu_clusters.json``; ``python -m benchmarks --report`` puts it on the page.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn on tensors asks for it before scipy

import numpy as np

from . import machine
from .report import ROOT, short, size, table

TITLE = "Clusters, mixtures and factors on one GPU"
TEXT = """
Tensors on the device; seconds of one iteration, from the difference of two fits of different length, and of
whole fits. *k-means*: float32 rows, 1 000 centres, the same first centres for all. *Plain torch* is
`(|c|²/2 − x·c).argmin(1)` and `index_add_` in blocks of rows, with torch's default precision, and with
tf32 allowed, in which some of the labels are wrong; ours gives exact labels. The *floor* is the larger of two
times: one product of all rows with all centres at the rate of tf32 matrix products, and one reading of the
rows at the rate of copying, both measured here. *Noise* has no clusters, so bounds save little; *blobs* are
2 000 overlapping ones. *Mixtures*: full covariances, `scikit-learn` is its `GaussianMixture` with
`array_api_dispatch` on the same tensors and the same initial parameters. *near* and *far* components differ
in how many of them count for a row; near ones overlap so much that nothing can be left out. *Factors*:
implicit feedback, 64 components, against our own kernels on the cores of the same machine.
"""
GOALS = {"k-means": 10.0, "mixture": 15.0}
HEADS = {"kmeans": "k-means", "mixture": "mixture", "factors": "implicit"}  # how their rows begin


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu_clusters")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--out", type=Path, help="the JSON file")
    asked = parser.parse_args()
    folder = ROOT / "benchmarks" / "results" / ("local" if asked.quick else "")
    out, start = asked.out or folder / "gpu_clusters.json", time.perf_counter()
    kept: list[dict[str, Any]] = []
    if out.exists() and asked.names:  # the sections that are not measured again are kept
        before = json.loads(out.read_text(encoding="utf8"))["results"]["rows"]
        again = tuple(HEADS[name] for name in asked.names)
        kept = [row for row in before if not row["work"].startswith(again)]
    results = measure(asked.names or list(SECTIONS), asked.device, asked.quick, kept)
    record = {
        "name": "gpu_clusters", "quick": asked.quick, "seconds": time.perf_counter() - start,
        "machine": machine.describe(machine.cores()) | {"device": machine.device_name(asked.device)},
        "missing": [], "results": results,
    }  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(machine.finite(record), indent=1) + "\n", encoding="utf8")
    print(page(results))
    print(f"wrote {out} after {record['seconds']:.0f} s")


def measure(
    names: list[str], device: str, quick: bool, kept: list[dict[str, Any]]
) -> dict[str, Any]:
    """The ceilings of the device, and the rows of these sections behind those that are kept."""
    limits, rows = _ceilings(device, quick), list(kept)
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fits that are stopped on purpose
            rows += SECTIONS[name](device, quick, limits)
    return {"ceilings": limits, "rows": rows, "goals": _goals(rows)}


def page(results: dict[str, Any]) -> str:
    heads = ["work", "ours ms", "peer", "peer ms", "ratio", "goal", "floor ms", "ours / floor", "whole fit s",
             "certified s"]  # fmt: skip
    lines = []
    for row in results["rows"]:
        floor = row.get("floor")
        lines.append([
            row["work"], short(1e3 * row["ours"]), row["peer name"], short(1e3 * row["peer"]),
            f"{row['peer'] / row['ours']:.1f}", f"{row['goal']:g}×" if row.get("goal") else "–",
            short(1e3 * floor) if floor else "–", f"{row['ours'] / floor:.1f}" if floor else "–",
            row["whole"], short(row["certified"]),
        ])  # fmt: skip
    limits = ", ".join(f"{name} {value:.3g}" for name, value in results["ceilings"].items())
    return f"## {TITLE}\n\n{TEXT.strip()}\n\nMeasured: {limits}.\n\n{table(heads, lines)}\n"


def _goals(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    found = []
    for row in rows:
        ratio = row["peer"] / row["ours"]
        if row.get("goal"):
            found.append({
                "work": f"{row['work']} against {row['peer name']}", "goal": f"{row['goal']:g}×",
                "measured": f"{ratio:.1f}", "reached": "yes" if ratio >= row["goal"] else "**no**",
            })  # fmt: skip
        if row.get("floor") and row.get("goal"):
            times = row["ours"] / row["floor"]
            found.append({
                "work": f"{row['work']}, an iteration over its floor", "goal": "2×",
                "measured": f"{times:.1f}", "reached": "yes" if times <= 2.0 else "**no**",
            })  # fmt: skip
    return found


# ------------------------------------------------------------------------------ measuring


def _clock(device: str, action: Callable[[], Any]) -> tuple[float, Any]:
    import torch

    if device != "cpu":
        torch.cuda.synchronize()
    start = time.perf_counter()
    result = action()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def _best(device: str, action: Callable[[], Any], times: int = 3) -> float:
    return min(_clock(device, action)[0] for _ in range(times))


def _iteration(
    device: str, fit: Callable[[int], Any], short_: int, long: int
) -> tuple[float, float]:
    """Seconds of an iteration, and of the longer fit: medians of three pairs."""
    fit(short_)
    pairs = [
        (_clock(device, partial(fit, short_))[0], _clock(device, partial(fit, long))[0])
        for _ in range(3)
    ]
    return statistics.median((b - a) / (long - short_) for a, b in pairs), min(b for _, b in pairs)


def _ceilings(device: str, quick: bool) -> dict[str, float]:
    import torch

    found, side, count = {}, 512 if quick else 8192, 1 << (20 if quick else 32)
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    for name, kind in (
        ("tf32", torch.float32),
        ("float16", torch.float16),
        ("float64", torch.float64),
    ):
        A = torch.randn(side, side, device=device).to(kind)
        found[f"{name} products, TFLOP/s"] = (
            2.0 * side**3 / _best(device, partial(torch.mm, A, A), 5) / 1e12
        )
    torch.backends.cuda.matmul.allow_tf32 = before
    source = torch.zeros(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    found["copying, TB/s"] = 2.0 * count / _best(device, lambda: target.copy_(source), 5) / 1e12
    return found


def _kmeans(device: str, quick: bool, ceilings: dict[str, float]) -> list[dict[str, Any]]:
    rows = []
    for name in ("blobs", "noise"):
        rows += _kmeans_on(name, device, quick, ceilings)
        _free()
    return rows


def _kmeans_on(
    name: str, device: str, quick: bool, ceilings: dict[str, float]
) -> list[dict[str, Any]]:
    import torch

    from surefit.cluster import KMeans

    n, p, k = (20_000, 16, 20) if quick else (10_000_000, 64, 1_000)
    torch.manual_seed(0)
    X = torch.randn(n, p, device=device)
    if name == "blobs":
        means = 3.0 * torch.randn(2 * k, p, device=device)
        X += means[torch.randint(0, 2 * k, (n,), device=device)]
    first = X[torch.randperm(n, device=device)[:k]]

    def fit(count: int, certify: Any = False) -> Any:
        return KMeans(k, init=first, n_init=1, max_iter=count, tol=0, certify=certify).fit(X)

    iteration, whole = _iteration(device, fit, 1, 31)
    early, _ = _iteration(device, fit, 1, 4)
    certified, model = _clock(device, lambda: fit(31, True))
    seeds = KMeans(k, n_init=1, max_iter=1, certify=False, random_state=0)
    seeding, _ = _clock(device, lambda: seeds.fit(X))
    print(f"    k-means++ and one iteration on {name}: {seeding:.2f} s", flush=True)
    floor = max(
        2.0 * n * p * k / (1e12 * ceilings["tf32 products, TFLOP/s"]),
        4.0 * n * p / (0.5e12 * ceilings["copying, TB/s"]),
    )
    rows, work = [], f"k-means {size(n, p)}, k = {k}, {name}"
    for tf32 in (False, True):
        row = {
            "peer name": f"plain torch, {'tf32' if tf32 else 'float32'}",
            "peer": _best(device, _plain_lloyd(X, first, tf32)),
            "floor": floor, "certified": certified, "whole": f"{short(whole)} (31 iterations)",
            "inertia": model.inertia_, "seeding": seeding,
        }  # fmt: skip
        rows.append(
            row | {"work": f"{work}, mean of 30", "ours": iteration, "goal": GOALS["k-means"]}
        )
        rows.append(row | {"work": f"{work}, iterations 2-4", "ours": early, "goal": None})
    return rows


def _plain_lloyd(X: Any, centres: Any, tf32: bool) -> Callable[[], Any]:
    import torch

    def step() -> Any:
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = tf32
        half = 0.5 * centres.square().sum(dim=1)
        sums, counts = torch.zeros_like(centres), torch.zeros_like(half)
        for x in X.split(1 << 19):
            labels = (half - x @ centres.T).argmin(dim=1)
            sums.index_add_(0, labels, x)
            counts.index_add_(0, labels, torch.ones_like(x[:, 0]))
        torch.backends.cuda.matmul.allow_tf32 = before
        return sums / counts[:, None]

    return step


def _mixture(device: str, quick: bool, ceilings: dict[str, float]) -> list[dict[str, Any]]:
    rows = []
    for kind, spread in (("float32", 1.5), ("float64", 1.5), ("float64", 0.7)):
        rows.append(_mixture_on(kind, spread, device, quick))
        _free()
    return rows


def _mixture_on(kind: str, spread: float, device: str, quick: bool) -> dict[str, Any]:
    import sklearn
    import sklearn.mixture
    import torch

    from surefit.mixture import GaussianMixture

    n, p, k = (5_000, 8, 6) if quick else (1_000_000, 64, 128)
    torch.manual_seed(0)
    settings = {"device": device, "dtype": getattr(torch, kind)}
    means = spread * torch.randn(k, p, **settings)
    X = torch.randn(n, p, **settings) + means[torch.randint(0, k, (n,), device=device)]
    host = {"weights_init": np.full(k, 1.0 / k), "means_init": X[:k].cpu().numpy()}
    host["precisions_init"] = np.tile(np.eye(p, dtype=host["means_init"].dtype), (k, 1, 1))
    near = {name: torch.as_tensor(value, **settings) for name, value in host.items()}

    def ours(count: int, certify: Any = False) -> Any:
        return GaussianMixture(k, tol=0, max_iter=count, certify=certify, **host).fit(X)

    def peer(count: int) -> Any:
        with sklearn.config_context(array_api_dispatch=True):
            model = sklearn.mixture.GaussianMixture(
                k, tol=0, max_iter=count, init_params="random_from_data", random_state=0, **near
            )
            return model.fit(X)

    mine, whole = _iteration(device, ours, 2, 12)
    certified, model = _clock(device, lambda: ours(12, True))
    theirs, _ = _iteration(device, peer, 2, 6)
    same = peer(12)
    words = f"{kind}, {'far' if spread > 1 else 'near'} components"
    print(
        f"    {words}: log-likelihood {model.lower_bound_:.9f}, scikit-learn {same.lower_bound_:.9f}"
    )
    return {
        "work": f"mixture {size(n, p)}, k = {k}, {words}", "ours": mine, "peer": theirs,
        "peer name": "scikit-learn, array API", "certified": certified,
        "goal": GOALS["mixture"] if spread > 1 else None, "whole": f"{short(whole)} (12 iterations)",
        "likelihoods": [float(model.lower_bound_), float(same.lower_bound_)],
    }  # fmt: skip


def _factors(device: str, quick: bool, ceilings: dict[str, float]) -> list[dict[str, Any]]:
    import scipy.sparse as sp

    from surefit.decomposition import MatrixFactorization

    users, items, count = (300, 200, 4_000) if quick else (200_000, 50_000, 20_000_000)
    rng = np.random.default_rng(0)
    row, column = rng.integers(0, users, count), (items * rng.random(count) ** 3).astype(np.int64)
    X = sp.csr_array((np.ones(count), (row, column)), shape=(users, items))
    X.sum_duplicates()

    def fit(count: int, where: Any = device, certify: Any = False) -> Any:
        return MatrixFactorization(
            64, implicit=True, max_iter=count, tol=0, device=where, random_state=0, certify=certify
        ).fit(X)

    mine, whole = _iteration(device, fit, 1, 4)
    theirs, _ = _iteration("cpu", lambda count: fit(count, None), 1, 3)
    certified, model = _clock(device, lambda: fit(4, device, True))
    work = f"implicit ALS {size(users, items)}, {X.nnz / 1e6:.1f}M entries, 64 components"
    return [{
        "work": work, "ours": mine, "peer": theirs, "peer name": "ours on the cores beside",
        "certified": certified, "whole": f"{short(whole)} (4 iterations)", "loss": model.loss_,
    }]  # fmt: skip


def _free() -> None:
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


SECTIONS = {"kmeans": _kmeans, "mixture": _mixture, "factors": _factors}

if __name__ == "__main__":
    main()
