"""One GPU against scikit-learn on the cores beside it: ridge, logistic regression, Lasso, kernel machines.

    PYTHONPATH=src python -m benchmarks.gpu                            # on a machine with CUDA
    PYTHONPATH=src python -m benchmarks.gpu --device cpu --quick       # the same logic, anywhere

The data are tensors on the device for us and numpy arrays in memory for scikit-learn, made before anything
is timed. The race is that of the other benchmarks (:mod:`benchmarks.harness`), judged on the host. Beside
it stand the ceilings of the device, measured by torch: matrix products in float64 and float32, and copying.
Writes ``benchmarks/results/gpu.json``; ``python -m benchmarks --report`` puts it on the page.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import gpu_kernels, machine
from .evaluate import LassoPath, LeastSquares, Logistic
from .harness import Contender, Point, Variant, decades, race, seconds
from .report import ROOT, race_goals, race_page, short, table

TITLE = "One GPU"
TEXT = """
torch tensors in float64 on the GPU into `Ridge`, `LogisticRegression` and `Lasso`, certificate included,
against scikit-learn's best solver, layout and precision on the CPU cores of the same machine. Moving the
data to the device is not timed.
"""
CEILINGS = """
What the device can do, measured by torch beside the race, and how much of it a fit uses. *readings* says how
often a fit read X for its products, the certificate's among them (counted as they happen; checks for NaN and
the fingerprint are not, though their time is in the seconds). The products are those of one Gram matrix (2np²
operations) for ridge; the other two need none on the device.
"""
WHY: dict[str, str] = {}
COPY = "copy (read and write), GB/s"
SIZES = {"ridge": (2_000_000, 1_000), "logistic": (5_000_000, 100), "lasso": (300, 120_000)}
QUICK = {"ridge": (20_000, 50), "logistic": (20_000, 20), "lasso": (100, 2_000)}


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu")
    known = [*SIZES, *gpu_kernels.SIZES]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument(
        "--out", type=Path, help="the JSON file; benchmarks/results/gpu.json by default"
    )
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(known):
        parser.error(f"no section {unknown.pop()!r}; there are {', '.join(known)}")
    folder = ROOT / "benchmarks" / "results" / ("local" if asked.quick else "")
    out = asked.out or folder / "gpu.json"
    start = time.perf_counter()
    described = machine.describe(asked.threads) | {"device": machine.device_name(asked.device)}
    with machine.limit_threads(asked.threads):
        results = measure(asked.names or known, asked.device, asked.quick, asked.pairs)
    record = {
        "name": "gpu",
        "quick": asked.quick,
        "seconds": time.perf_counter() - start,
        "machine": described,
        "missing": [],
        "results": results,
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(machine.finite(record), indent=1) + "\n", encoding="utf8")
    print(page(results))
    print(f"wrote {out} after {record['seconds']:.0f} s")


def measure(names: list[str], device: str, quick: bool, pairs: int) -> dict[str, Any]:
    """The ceilings, then a race for each name, then the kernel machines."""
    limits = ceilings(device, 512 if quick else 8192, 1 << (22 if quick else 32))
    races, rows = [], []
    for name in filter(SIZES.__contains__, names):
        n, p = (QUICK if quick else SIZES)[name]
        found, row = {"ridge": _ridge, "logistic": _logistic, "lasso": _lasso}[name](
            n, p, device, pairs
        )
        races.append(found)
        rows.append(_fractions(found, row, limits))
        _free()
    kernels = []
    for name in filter(gpu_kernels.SIZES.__contains__, names):
        kernels.append(gpu_kernels.measure(name, device, quick, limits[COPY] * 1e9))
        _free()
    results = {"races": races, "ceilings": limits, "work": rows, "kernels": kernels}
    return results | {"goals": [*race_goals(results), *gpu_kernels.goals(kernels)]}


def page(results: dict[str, Any]) -> str:
    limits = results["ceilings"]
    text = race_page(TITLE, TEXT, results, WHY, "gpu")
    rows = [
        [
            row["work"],
            *map(short, (row["ours s"], row["passes"])),
            *map(_share, (row["of float64"], row["of copy"])),
        ]
        for row in results["work"]
    ]
    heads = [
        "work",
        "ours s",
        "readings",
        "of the float64 products",
        "of the copy bandwidth",
    ]
    measured = ", ".join(f"{name} {value:.3g}" for name, value in limits.items())
    text = f"{text}\n{CEILINGS.strip()}\n\nMeasured: {measured}.\n\n{table(heads, rows)}\n"
    kernels = results.get("kernels", [])
    return text + ("\n" + gpu_kernels.page(kernels) if kernels else "")


def ceilings(device: str, size: int, count: int) -> dict[str, float]:
    """Matrix products and copying on the device, the best of some repetitions."""
    import torch

    found = {}
    for kind in (torch.float64, torch.float32):
        A = torch.randn(size, size, dtype=kind, device=device)
        taken = _best(partial(torch.mm, A, A), device)
        found[f"{str(kind).removeprefix('torch.')} products, TFLOP/s"] = (
            2.0 * size**3 / taken / 1e12
        )
        del A
    source = torch.empty(count, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    taken = _best(lambda: target.copy_(source), device)
    found[COPY] = 2.0 * count / taken / 1e9
    return found


def _best(action: Callable[[], Any], device: str, repeats: int = 8) -> float:
    times = []
    for _ in range(repeats + 2):  # the first two are the warm-up
        _synchronize(device)
        taken, _ = seconds(lambda: _finished(action, device))
        times.append(taken)
    return min(times[2:])


def _fractions(
    found: dict[str, Any], work: dict[str, float], limits: dict[str, float]
) -> dict[str, Any]:
    times = [row["ours"] for row in found["peers"] if row.get("ours")]
    taken = float(np.median(times)) if times else float("nan")
    flops = limits["float64 products, TFLOP/s"] * 1e12
    return {
        "work": found["problem"],
        "ours s": taken,
        "passes": work["passes"],
        "of float64": work["flops"] / taken / flops if work["flops"] else None,
        "of copy": work["passes"] * work["bytes"] / taken / (limits[COPY] * 1e9),
    }


# ------------------------------------------------------------------------------ the problems


def _ridge(n: int, p: int, device: str, pairs: int) -> tuple[dict[str, Any], dict[str, float]]:
    import sklearn.linear_model as sk

    from surefit.linear_model import Ridge

    X, host = _normal(n, p, device)
    w = np.random.default_rng(0).standard_normal(p)
    y = host @ w + np.random.default_rng(1).standard_normal(n)
    ours = [Variant("default", _tensor_fit(Ridge, X, y, device))]
    single = host.astype(np.float32)
    variants = [
        Variant("cholesky, float64", _array_fit(sk.Ridge, host, y, solver="cholesky")),
        Variant(
            "cholesky, float32",
            _array_fit(sk.Ridge, single, y.astype(np.float32), solver="cholesky"),
        ),
        Variant("lsqr, float64", _array_fit(sk.Ridge, host, y, solver="lsqr"), decades(-2, -8)),
    ]
    title = f"ridge {n:,} x {p:,}".replace(",", " ")
    peers = [Contender("scikit-learn", variants, goal=20)]
    found = race(
        title, LeastSquares(host, y, l2=1.0), Contender("surefit", ours), peers, pairs=pairs
    )
    return found, {"passes": _readings(ours[0]), "flops": 2.0 * n * p * p, "bytes": 8.0 * n * p}


def _logistic(n: int, p: int, device: str, pairs: int) -> tuple[dict[str, Any], dict[str, float]]:
    import sklearn.linear_model as sk

    from surefit.linear_model import LogisticRegression

    X, host = _normal(n, p, device)
    rng = np.random.default_rng(0)
    z = host @ (rng.standard_normal(p) / np.sqrt(p)) - 0.5
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(np.int64)
    fit = _tensor_fit(LogisticRegression, X, y, device)
    ours = [Variant("default", fit, decades(-2, -10))]
    fixed: dict[str, Any] = {"max_iter": 10_000}
    grid = decades(-2, -9)
    single = host.astype(np.float32)
    variants = [
        Variant("lbfgs, float64", _array_fit(sk.LogisticRegression, host, y, **fixed), grid),
        Variant("lbfgs, float32", _array_fit(sk.LogisticRegression, single, y, **fixed), grid),
        Variant(
            "newton-cholesky",
            _array_fit(sk.LogisticRegression, host, y, solver="newton-cholesky", **fixed),
            grid,
        ),
    ]
    title = f"logistic {n:,} x {p:,}".replace(",", " ")
    peers = [Contender("scikit-learn", variants, goal=20)]
    problem = Logistic(host, 2.0 * y - 1.0, 1.0)
    found = race(title, problem, Contender("surefit", ours), peers, pairs=pairs)
    return found, {"passes": _readings(ours[0]), "flops": 0.0, "bytes": 8.0 * n * p}


def _lasso(n: int, p: int, device: str, pairs: int) -> tuple[dict[str, Any], dict[str, float]]:
    import sklearn.linear_model as sk

    from surefit.linear_model import Lasso

    X, host = _normal(n, p, device)
    rng = np.random.default_rng(0)
    w = np.zeros(p)
    w[rng.choice(p, 50, replace=False)] = rng.standard_normal(50)
    y = host @ w + rng.standard_normal(n)
    alpha = 0.1 * float(np.max(np.abs(host.T @ (y - y.mean())))) / n
    grid = decades(-2, -9)
    ours = [
        Variant("default", _tensor_fit(Lasso, X, y, device, alpha=alpha, max_iter=10_000), grid)
    ]
    columns = np.asfortranarray(host)
    fixed: dict[str, Any] = {"alpha": alpha, "max_iter": 10_000}
    variants = [
        Variant("float64", _array_fit(sk.Lasso, columns, y, **fixed), grid),
        Variant(
            "float32",
            _array_fit(sk.Lasso, columns.astype(np.float32), y.astype(np.float32), **fixed),
            grid,
        ),
    ]
    title = f"Lasso {n:,} x {p:,}".replace(",", " ")
    peers = [Contender("scikit-learn", variants, goal=20)]
    problem = LassoPath(host, y, [alpha], intercept=True)
    found = race(title, problem, Contender("surefit", ours), peers, pairs=pairs)
    return found, {"passes": _readings(ours[0]), "flops": 0.0, "bytes": 8.0 * n * p}


# ------------------------------------------------------------------------------ tensors and arrays


def _normal(n: int, p: int, device: str) -> tuple[Any, Any]:
    """Normal columns with a common factor: a tensor on the device, and the same numbers as an array."""
    import torch

    torch.manual_seed(0)
    X = torch.randn(n, p, dtype=torch.float64, device=device)
    X += 0.3 * torch.randn(n, 1, dtype=torch.float64, device=device)
    return X, X.cpu().numpy().copy()


def _tensor_fit(model: Any, X: Any, y: Any, device: str, **fixed: Any) -> Callable[[Any], Point]:
    import torch

    target = torch.as_tensor(y, device=device)

    def fit(tol: Any) -> Point:
        options = fixed if tol is None else fixed | {"tol": tol}
        fitted = model(**options).fit(X, target)
        _synchronize(device)
        return _numpy(fitted.coef_), _numpy(fitted.intercept_)

    return fit


def _array_fit(model: Any, X: Any, y: Any, **fixed: Any) -> Callable[[Any], Point]:
    def fit(tol: Any) -> Point:
        options = fixed if tol is None else fixed | {"tol": tol}
        fitted = model(**options).fit(X, y)
        return fitted.coef_, fitted.intercept_

    return fit


def _readings(variant: Variant) -> float:
    """How often a fit reads X: whole products, and row blocks as they are handed out."""
    from surefit.design import Torch

    kept = {name: getattr(Torch, name) for name in ("blocks", "dot", "tdot")}
    rows = [0.0]

    def blocks(design: Any) -> Any:
        for place, block in kept["blocks"](design):
            rows[0] += len(block) / design.shape[0]
            yield place, block

    def whole(name: str) -> Any:
        def product(design: Any, vector: Any) -> Any:
            rows[0] += 1.0 if design.dtype == np.float64 else 0.0  # otherwise by blocks
            return kept[name](design, vector)

        return product

    try:
        Torch.blocks, Torch.dot, Torch.tdot = blocks, whole("dot"), whole("tdot")
        variant.fit(variant.settings[len(variant.settings) // 2])
    finally:
        for name, method in kept.items():
            setattr(Torch, name, method)
    return rows[0]


def _numpy(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)


def _finished(action: Callable[[], Any], device: str) -> None:
    action()
    _synchronize(device)


def _synchronize(device: str) -> None:
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()


def _free() -> None:
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _share(value: float | None) -> str:
    if value is None or not np.isfinite(value):
        return "–"
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}"


if __name__ == "__main__":
    main()
