"""Kernel machines with their kernel matrix on one GPU: the sections of :mod:`benchmarks.gpu` about them.

scikit-learn cannot be given 100 000 rows in reasonable time. It runs on all cores of the same machine at
sizes that it finishes, ours at the same sizes too; the exponent of its time is fitted to these, and its time
at the full size is that power law continued. The page says which figures are measured and which are not.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from .data import bumps
from .evaluate import Problem, relative_gap
from .evaluate_margins import KernelHinge, KernelRidge
from .harness import Point, seconds
from .peers import ours
from .report import gap_text, short, size, table

__all__ = ["QUICK", "SIZES", "goals", "measure", "page"]

TEXT = """
*With a kernel matrix*: float32 tensors on the GPU into `SVC` and `KernelRidge` with a Gaussian kernel,
certificate included; the matrix stays on the device. scikit-learn (float64 arrays, its default tolerance)
runs on the CPU cores at sizes that it finishes; its time at the full size continues the power law through
the last two of them, and is *not measured*. *gap* is the relative duality gap of ours at the full size,
computed in float64 by the evaluator. *of the copy bandwidth* counts writing the matrix once and every row of
it that the solver read.
"""
COLUMNS = 20
SIZES = {"svm": 100_000, "kernel_ridge": 100_000}
QUICK = {"svm": 3_000, "kernel_ridge": 400}
PEER_SIZES = {"svm": (5_000, 10_000, 20_000), "kernel_ridge": (5_000, 10_000, 20_000)}
GOAL, ALPHA, C = 50.0, 0.1, 1.0
REPEATS = 3


def measure(name: str, device: str, quick: bool, copy_rate: float) -> dict[str, Any]:
    """Ours at the full size and at the peer's; the peer's at its own, and what they say of the full size."""
    n = (QUICK if quick else SIZES)[name]
    sizes = (5 * n // 6, n) if quick else PEER_SIZES[name]
    X, y = _rows(name, n)
    fit, work = _ours(name, X, y, device)
    first, _ = seconds(fit)
    times, point = [], None
    for _ in range(REPEATS):
        taken, point = seconds(fit)
        times.append(taken)
    full = statistics.median(times)
    rows_read = _rows_read(name, work)
    problem = _problem(name, X, y, device)
    gap = relative_gap(problem, problem.primal(*point), problem.dual(*point))
    mine, theirs = [], []
    for few in sizes:
        part, _ = _ours(name, X[:few], y[:few], device)
        part()
        mine.append(statistics.median(seconds(part)[0] for _ in range(REPEATS)))
        print(f"    {name} {few}: scikit-learn ...", flush=True)
        theirs.append(seconds(_peer(name, X[:few], y[:few]))[0])
    exponent = float(np.log(theirs[-1] / theirs[-2]) / np.log(sizes[-1] / sizes[-2]))
    expected = theirs[-1] * (n / sizes[-1]) ** exponent
    return {
        "model": _TITLE[name],
        "work": f"{_TITLE[name]} {size(n, COLUMNS)}",
        "ours s": full,
        "first call": first,
        "gap": gap,
        "sizes": list(sizes),
        "ours at these": mine,
        "peer at these": theirs,
        "exponent": exponent,
        "expected": expected,
        "ratio": expected / full,
        "of copy": 4.0 * n * (n + rows_read) / full / copy_rate,
    }


def page(rows: list[dict[str, Any]]) -> str:
    heads = ["work", "ours s", "gap", "scikit-learn s, not measured", "ratio", "goal", "reached",
             "of the copy bandwidth"]  # fmt: skip
    lines = [[row["work"], short(row["ours s"]), gap_text(row["gap"]), f"≈ {short(row['expected'])}",
              f"≈ {row['ratio']:.0f}", f"{GOAL:g}×", _reached(row), f"{row['of copy']:.1%}"]
             for row in rows]  # fmt: skip
    small = ["work", "rows", "ours s", "scikit-learn s", "ratio"]
    parts = []
    for row in rows:
        for n, mine, theirs in zip(
            row["sizes"], row["ours at these"], row["peer at these"], strict=True
        ):
            parts.append(
                [
                    row["work"].split(" ")[0],
                    size(n),
                    short(mine),
                    short(theirs),
                    f"{theirs / mine:.1f}",
                ]
            )
    laws = "; ".join(f"{row['work']}: exponent {row['exponent']:.2f}" for row in rows)
    return "\n".join(
        [TEXT.strip(), "", table(heads, lines), "", "Measured at smaller sizes:", "", table(small, parts), "",
         f"{laws}.", ""]
    )  # fmt: skip


def goals(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {
            "work": f"{row['work']} against scikit-learn",
            "goal": f"{GOAL:g}×",
            "measured": f"≈ {row['ratio']:.0f} (its time extrapolated)",
            "reached": _reached(row),
        }
        for row in rows
    ]


def _reached(row: dict[str, Any]) -> str:
    fine = row["gap"] is not None and row["gap"] <= 1e-6
    return "yes" if fine and row["ratio"] >= GOAL else "**no**"


# ------------------------------------------------------------------------------ the two problems

_TITLE = {"svm": "RBF SVM", "kernel_ridge": "kernel ridge"}


def _rows(name: str, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(16)
    X, z = bumps(n, COLUMNS, rng)
    X = X.astype(np.float32)
    if name == "kernel_ridge":
        return X, (z + 0.3 * rng.standard_normal(n)).astype(np.float32)
    flipped = rng.random(n) < 0.05
    return X, np.where(flipped, -np.sign(z), np.sign(z)).astype(np.int64)


def _ours(name: str, X: Any, y: Any, device: str) -> tuple[Callable[[], Point], Callable[[], Any]]:
    """A fit that gives its point, and one that gives the model."""
    import torch

    on_device = torch.as_tensor(X, device=device)
    target = torch.as_tensor(y, device=device) if name == "kernel_ridge" else y
    gamma = 1.0 / COLUMNS
    if name == "svm":
        model = ours("SVC", "svm")(kernel="rbf", C=C, gamma=gamma, tol=1e-4)
    else:
        model = ours("KernelRidge", "kernel_ridge")(
            kernel="rbf", alpha=ALPHA, gamma=gamma, tol=1e-4, random_state=0
        )

    def fit() -> Any:
        fitted = model.fit(on_device, target)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return fitted

    def point() -> Point:
        fitted = fit()
        weights = np.asarray(_host(fitted.dual_coef_), dtype=np.float64).ravel()
        if name == "kernel_ridge":
            return (weights,)
        beta = np.zeros(len(y))
        beta[np.asarray(_host(fitted.support_))] = weights
        return beta, _host(fitted.intercept_)

    return point, fit


def _peer(name: str, X: Any, y: Any) -> Callable[[], Any]:
    import sklearn.kernel_ridge
    import sklearn.svm

    X, gamma = X.astype(np.float64), 1.0 / COLUMNS
    if name == "svm":
        model = sklearn.svm.SVC(kernel="rbf", C=C, gamma=gamma, cache_size=8_000)
    else:
        model = sklearn.kernel_ridge.KernelRidge(kernel="rbf", alpha=ALPHA, gamma=gamma)
        y = y.astype(np.float64)
    return lambda: model.fit(X, y)


def _problem(name: str, X: Any, y: Any, device: str) -> Problem:
    X, y = X.astype(np.float64), y.astype(np.float64)
    if name == "svm":
        found: Any = KernelHinge(X, y, C, 1.0 / COLUMNS)
    else:
        found = KernelRidge(X, y, ALPHA, 1.0 / COLUMNS)
    found.product = lambda rows, B: _product(X, X[rows], 1.0 / COLUMNS, B, device)
    return found


def _product(X: Any, Z: Any, gamma: float, B: Any, device: str) -> Any:
    """K(X, Z) B in float64 on the device, as the evaluator has it on the host."""
    import torch

    centre = Z.mean(axis=0)
    z = torch.as_tensor(Z - centre, device=device)
    b, norms = torch.as_tensor(B, device=device), (z * z).sum(1)
    parts = []
    for start in range(0, len(X), 4096):
        x = torch.as_tensor(X[start : start + 4096] - centre, device=device)
        K = (x * x).sum(1)[:, None] + norms - 2.0 * (x @ z.T)
        parts.append((torch.exp(-gamma * K.clamp(min=0.0)) @ b).cpu().numpy())
    return np.concatenate(parts)


def _rows_read(name: str, fit: Callable[[], Any]) -> float:
    """How many rows of the kernel matrix a fit reads, beyond writing them."""
    if name == "kernel_ridge":
        fitted = fit()
        return float(fitted.n_iter_) * len(fitted.X_fit_)
    from surefit.solvers.kernel_rows import TensorRows

    kept, values = TensorRows.add, [0.0]

    def add(source: Any, rows: Any, weights: Any, out: Any, among: Any = None) -> None:
        values[0] += float(len(rows)) * source.n  # after shrinking, rows are shorter
        kept(source, rows, weights, out, among)

    try:
        TensorRows.add = add  # type: ignore[method-assign]
        fitted = fit()
    finally:
        TensorRows.add = kept  # type: ignore[method-assign]
    return values[0] / float(fitted.shape_fit_[0])


def _host(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
