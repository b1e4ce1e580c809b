"""Networks on one GPU: training, attacks and smoothing, against plain torch, torchattacks and foolbox.

    PYTHONPATH=src python -m benchmarks.gpu_networks                          # on a machine with CUDA
    PYTHONPATH=src python -m benchmarks.gpu_networks --device cpu --quick     # the same logic, anywhere

Writes ``benchmarks/results/gpu_networks.json``; ``python -m benchmarks --report`` puts it on the page.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from . import machine
from .peers import peer
from .report import ROOT, short, table

TITLE = "Networks on one GPU"
TEXT = """
ResNet-18 at CIFAR's shapes (11,173,962 weights, 3.34 GFLOP an image forward and back), pictures made from
prototypes and noise, tensors on the device. *Training*: batches of 1024, AdamW; ours is `train(...,
compile=True)` (bfloat16 autocast, channels last), a plain loop is the tutorials' with torch's defaults
(tf32 convolutions) and with bfloat16 autocast. Rates are images a second over epochs after the first, which
compiles. *Ceiling*: bf16 matrix products measured here, over 3.34 GFLOP. *PGD*: 10 steps, eps 8/255, step
2/255, batches of 1,024, on a network trained here as usual and on one trained on attacked pictures (of twice
the contrast: of the others no network can be right within eps). Ours takes the gradient in bfloat16 and
decides labels in float32; *until wrong* (`stop_early=True`) leaves a picture when it is wrong, *all steps*
does not, *as many wrong* takes the fewest steps (of the default size, 2.5 eps over their number) that make as
many pictures wrong as the peer's ten do; the share of wrong pictures stands beside it. *evaluate*: four
attacks, each row until it falls, against the same attacks on all rows one by one. *Smoothing*: noise samples
that the sequential test needs against the fixed number, same confidence, radii and rows; the ratio is of
samples.
"""
WHY = """
What stands in the way of PGD's goal where pictures hold out: ten passes forward and back in bfloat16 take
0.27 s of the 0.37 s. Their convolutions alone, timed layer by layer, take 0.22 s, which is all that the goal
allows: cuDNN reaches 420 to 650 TFLOP/s on them, and little on the first one, whose three channels leave its
tiles empty (padded with zeros to 8 channels a pass takes 3 % less). Its search for faster kernels finds none.
The rest are passes in the module's own precision that decide labels, which the peers do without; they find
fewer wrong pictures, and ours needs fewer steps for as many.
"""
FLOPS = 3 * 2 * 0.5566e9


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu_networks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    parser.add_argument("--out", type=Path, help="the JSON file")
    asked = parser.parse_args()
    folder = ROOT / "benchmarks" / "results" / ("local" if asked.quick else "")
    out, start = asked.out or folder / "gpu_networks.json", time.perf_counter()
    kept: list[dict[str, Any]] = []
    runs: list[dict[str, Any]] = []  # in which each section was measured
    names = asked.names or list(SECTIONS)
    if out.exists() and asked.names:  # the sections that are not measured again are kept
        before = json.loads(out.read_text(encoding="utf8"))["results"]
        kept = [row for row in before["rows"] if row["section"] not in names]
        runs = [
            {**run, "sections": [k for k in run["sections"] if k not in names]}
            for run in before["runs"]
        ]
    results = measure(names, asked.device, asked.quick, kept)
    runs.append({"sections": names, "seconds": time.perf_counter() - start})
    results["runs"] = [run for run in runs if run["sections"]]
    record = {
        "name": "gpu_networks", "quick": asked.quick,
        "seconds": sum(run["seconds"] for run in results["runs"]),
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
    """The rows of these sections behind those that are kept."""
    limit, rows = _ceiling(device, quick), list(kept)
    for name in names:
        for row in SECTIONS[name](device, quick):
            rows.append({"section": name} | row)
            print(rows[-1], flush=True)
    return {"ceiling": limit, "rows": rows, "goals": _goals(rows)}


def page(results: dict[str, Any]) -> str:
    heads = ["work", "ours", "peer", "its", "unit", "ratio", "goal", "of the ceiling", "ours, peer"]
    lines = []
    for row in results["rows"]:
        share = "–"
        if row["section"] == "training":
            share = f"{row['ours'] * FLOPS / results['ceiling'] / 1e12:.0%}"
        lines.append([
            row["work"], short(row["ours"]), row["peer name"], short(row["peer"]), row["unit"],
            f"{row['ratio']:.1f}", f"{row['goal']:g}×" if row.get("goal") else "–", share,
            row.get("quality", "–"),
        ])  # fmt: skip
    runs = (f"{', '.join(run['sections'])} ({run['seconds']:.0f} s)" for run in results["runs"])
    found = f"Runs: {'; '.join(runs)}. Measured: bf16 products {results['ceiling']:.0f} TFLOP/s."
    return f"## {TITLE}\n\n{TEXT.strip()}\n\n{found}\n\n{table(heads, lines)}\n{WHY}"


def _goals(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [
        {
            "work": f"{row['work']} against {row['peer name']}", "goal": f"{row['goal']:g}×",
            "measured": f"{row['ratio']:.1f}",
            "reached": "yes" if row["ratio"] >= row["goal"] else "**no**",
        }
        for row in rows if row.get("goal")
    ]  # fmt: skip


# ------------------------------------------------------------------------------ training


def _pictures(n: int, device: str, contrast: float = 0.1) -> tuple[Any, Any]:
    """Ten smooth prototypes in [0, 1], mixed with noise: a network gets most of them right."""
    import torch

    made = torch.Generator().manual_seed(0)
    coarse = torch.rand(10, 3, 8, 8, generator=made)
    means = torch.nn.functional.interpolate(coarse, size=32, mode="bilinear").to(device)
    y = torch.randint(0, 10, (n,), generator=made).to(device)
    noise = torch.randn(n, 3, 32, 32, device=device)
    return (0.5 + contrast * (means[y] - 0.5) + 0.15 * noise).clamp(0, 1), y


def _loss(output: Any, target: Any) -> Any:
    return _functional().cross_entropy(output, target, reduction="none")


def _functional() -> Any:
    from torch.nn import functional

    return functional


def _training(device: str, quick: bool) -> list[dict[str, Any]]:
    import torch

    from surefit.nn.resnet import resnet18_cifar
    from surefit.nn.train import train

    n, size, epochs = (256, 64, 2) if quick else (49_152, 1024, 4)
    X, y = _pictures(n, device)

    def ours(compile: Any) -> float:
        torch.manual_seed(0)
        given = {"epochs": epochs, "batch_size": size, "device": device, "compile": compile}
        done = train(resnet18_cifar(), (X, y), _loss, **given)
        return statistics.median(done.history.samples_per_second[1:])

    def plain(dtype: Any) -> float:
        torch.manual_seed(0)
        module = resnet18_cifar().to(device)
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.0)
        rates = []
        for _ in range(epochs):
            start, order = _now(device), torch.randperm(n, device=device)
            for first in range(0, n, size):
                batch = order[first : first + size]
                with torch.autocast(device, dtype=dtype, enabled=dtype is not None):
                    loss = _functional().cross_entropy(module(X[batch]), y[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            rates.append(n / (_now(device) - start))
        return statistics.median(rates[1:])

    compiled, eager = (ours(False), ours(False)) if quick else (ours(True), ours(False))
    full, half = plain(None), plain(torch.bfloat16)
    unit = {"unit": "images/s"}
    return [
        {"work": "ResNet-18, compiled", "ours": compiled, "peer name": "plain eager loop", "peer": full,
         "ratio": compiled / full, "goal": 2.0} | unit,
        {"work": "ResNet-18, compiled", "ours": compiled, "peer name": "plain eager loop, bf16",
         "peer": half, "ratio": compiled / half} | unit,
        {"work": "ResNet-18, not compiled", "ours": eager, "peer name": "plain eager loop, bf16",
         "peer": half, "ratio": eager / half} | unit,
    ]  # fmt: skip


# ------------------------------------------------------------------------------ attacks


def _victim(device: str, quick: bool, defended: bool = False) -> tuple[Any, Any, Any]:
    """A trained network, and pictures it has not seen; ``defended`` trains it on attacked pictures.

    These have twice the contrast: of the others no network can be right within 8/255.
    """
    import torch

    from surefit.nn.resnet import resnet18_cifar
    from surefit.nn.train import train
    from surefit.robust import AdversarialTraining, Threat

    n, m = (256, 64) if quick else (20_480, 4_096)
    X, y = _pictures(n + m, device, 0.2 if defended else 0.1)
    torch.manual_seed(0)
    module, given = resnet18_cifar(), {}
    if defended:
        given["augment"] = AdversarialTraining(Threat(8 / 255, lower=0.0, upper=1.0), n_iter=3)
    epochs = 1 if quick else 8 if defended else 4
    train(module, (X[:n], y[:n]), _loss, epochs=epochs, batch_size=256, device=device, **given)
    return module.to(device).eval(), X[n:], y[n:]


def _pgd(device: str, quick: bool) -> list[dict[str, Any]]:
    """Ten steps for each row; ten at most; and the fewest steps that make as many wrong as a peer's ten."""
    from surefit.robust import Threat, network, pgd

    eps, step = 8 / 255, 2 / 255
    threat, rows = Threat(eps, lower=0.0, upper=1.0), []
    for defended, victim in ((False, "plain network"), (True, "adversarially trained")):
        module, X, y = _victim(device, quick, defended)
        clean, net = _wrong(module, X, y), network(module, compile=not quick)
        mine = partial(pgd, net, X, y, threat, random_state=0)
        ours = {
            "until wrong": (4.0, partial(mine, n_iter=10, step_size=step, stop_early=True)),
            "all steps": (None, partial(mine, n_iter=10, step_size=step)),
        }
        for name, attack in _peers(module, X, y, eps, step).items():
            peer_s, theirs = _timed(device, attack)
            reached = _wrong(module, theirs, y)
            fewer = {
                f"as many wrong, {n} steps": (4.0, partial(mine, n_iter=n))
                for n in (2, 3, 4, 5, 6, 8)
            }
            for words, (goal, run) in (ours | fewer).items():
                ours_s, found = _timed(device, run)
                wrong = _wrong(module, found.x_adv, y)
                if words in fewer and wrong < reached:
                    continue
                rows.append({
                    "work": f"PGD-10, {len(X)} pictures, {victim}, {words}", "ours": ours_s,
                    "peer name": name, "peer": peer_s, "unit": "s", "ratio": peer_s / ours_s, "goal": goal,
                    "quality": f"{wrong:.2%}, {reached:.2%} wrong ({clean:.2%} before)",
                })  # fmt: skip
                if words in fewer:
                    break
    return rows


def _peers(module: Any, X: Any, y: Any, eps: float, step: float) -> dict[str, Callable[[], Any]]:
    """The same attack by others, in batches that they take at once."""
    import torch

    size, found = 1024, {}

    def batched(attack: Any) -> Any:
        return torch.cat([attack(a, b) for a, b in zip(X.split(size), y.split(size))])

    torchattacks, foolbox = peer("torchattacks"), peer("foolbox")
    if torchattacks is not None:
        theirs = torchattacks.PGD(module, eps=eps, alpha=step, steps=10, random_start=True)
        found["torchattacks"] = partial(batched, theirs)
    if foolbox is not None:
        wrapped = foolbox.PyTorchModel(module, bounds=(0, 1), device=X.device)
        attack = foolbox.attacks.LinfPGD(abs_stepsize=step, steps=10)
        found["foolbox"] = partial(batched, lambda a, b: attack(wrapped, a, b, epsilons=eps)[1])
    return found


def _wrong(module: Any, X: Any, y: Any) -> float:
    import torch

    with torch.no_grad():
        labels = torch.cat([module(part).argmax(1) for part in X.split(1024)])
    return float((labels != y).float().mean())


def _evaluate(device: str, quick: bool) -> list[dict[str, Any]]:
    from surefit.robust import Threat, evaluate

    module, X, y = _victim(device, quick)
    X, y = (X[:32], y[:32]) if quick else (X[:512], y[:512])
    rows = []
    for eps in (8 / 255,):
        threat = Threat(eps, lower=0.0, upper=1.0)
        mine = partial(evaluate, module, X, y, threat, certify=False, random_state=0)
        ours_s, found = _timed(device, mine, 1)
        theirs = partial(_one_by_one, module, X, y, threat)
        peer_s, accuracy = _timed(device, theirs, 1)
        quality = f"{found.attacked_accuracy:.2%}, {accuracy:.2%} robust"
        rows.append({
            "work": f"evaluate, eps {255 * eps:.0f}/255", "ours": ours_s, "peer name": "its parts, all rows",
            "peer": peer_s, "unit": "s", "ratio": peer_s / ours_s, "goal": 5.0, "quality": quality,
        })  # fmt: skip
    return rows


def _one_by_one(module: Any, X: Any, y: Any, threat: Any) -> float:
    """Each attack of the suite on all rows; the share that none made wrong."""
    from surefit.robust import evaluate

    standing = None
    for attack in evaluate(module, X[:8], y[:8], threat, certify=False).attacks:
        found = evaluate(
            module, X, y, threat, attacks=[attack], certify=False, compact=False, random_state=0
        ).robust
        standing = found if standing is None else standing & found
    return float(standing.mean())


def _smoothing(device: str, quick: bool) -> list[dict[str, Any]]:
    from surefit.robust.smoothing import RandomizedSmoothing

    module, X, y = _victim(device, quick)
    X, y = (X[:4], y[:4]) if quick else (X[:32], y[:32])
    n, rows = (2_000 if quick else 100_000), []
    y = y.cpu()
    smooth = RandomizedSmoothing(module, 0.25, random_state=0)
    first, fixed = _timed(device, partial(smooth.certify, X, y, n=n), 1)
    for radius in (0.25, 0.5):
        again, found = _timed(device, partial(smooth.certify_at, X, radius, y, n_max=n), 1)
        sure, shown = (int((part.radius >= radius).sum()) for part in (fixed, found))
        quality = f"{shown}, {sure} of {len(X)} rows; {again:.1f}, {first:.1f} s"
        theirs, mine = float(fixed.total_draws), float(found.total_draws)
        rows.append({
            "work": f"smoothing, radius {radius:g}", "ours": mine, "peer name": f"fixed {n}",
            "peer": theirs, "unit": "samples", "ratio": theirs / mine, "goal": 5.0, "quality": quality,
        })  # fmt: skip
    return rows


# ------------------------------------------------------------------------------ measuring


def _now(device: str) -> float:
    import torch

    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


def _timed(device: str, action: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The median time after a first call, and what came of the last."""
    if times > 1:
        action()
    taken = []
    for _ in range(times):
        start = _now(device)
        result = action()
        taken.append(_now(device) - start)
    return statistics.median(taken), result


def _ceiling(device: str, quick: bool) -> float:
    """TFLOP/s of a product of large bfloat16 matrices."""
    import torch

    side = 256 if quick else 8192
    A = torch.randn(side, side, device=device).bfloat16()
    taken, _ = _timed(device, lambda: [A @ A for _ in range(5)], 5)
    return 5 * 2.0 * side**3 / taken / 1e12


SECTIONS: dict[str, Callable[[str, bool], list[dict[str, Any]]]] = {
    "training": _training,
    "pgd": _pgd,
    "evaluate": _evaluate,
    "smoothing": _smoothing,
}

if __name__ == "__main__":
    main()
