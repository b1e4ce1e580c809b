"""What networks reach on MNIST and Fashion-MNIST, and what can be said of their robustness.

    PYTHONPATH=src python -m benchmarks.image_accuracy               # on a GPU; an hour and more on two cores

Needs the folder of public data. Writes ``benchmarks/results/image_accuracy.json``.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

from . import machine
from .report import ROOT, table

TITLE = "Pictures: accuracy and robustness"
TEXT = """
Errors on the 10,000 test pictures, at the end of the last epoch; no test picture was used to choose
anything. Published: a perceptron with 800 hidden units 1.6 % (Simard, Steinkraus and Platt 2003, cross-
entropy, no distortions), LeNet-5 0.95 % (LeCun et al. 1998, no distortions), a small CNN on Fashion-MNIST
6.57 % (C. Masch 2018, mean of five). *Robust accuracy* is a bracket on the first {rows} test pictures, l∞
in [0, 1]: certified by bounds ≤ true ≤ what survived `surefit.robust.evaluate`. Madry et al. (2018) report
89.3 % at 0.3 for their adversarially trained CNN under the strongest of their own attacks; Gowal et al.
(2019) about 97 % certified at 0.1 by interval training.
"""


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.image_accuracy")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="few rows and epochs")
    parser.add_argument("--out", type=Path, help="the JSON file")
    asked = parser.parse_args()
    folder = ROOT / "benchmarks" / "results" / ("local" if asked.quick else "")
    out, start = asked.out or folder / "image_accuracy.json", time.perf_counter()
    kept: list[dict[str, Any]] = []
    if out.exists() and asked.names:  # the sections that are not measured again are kept
        before = json.loads(out.read_text(encoding="utf8"))["results"]["rows"]
        kept = [row for row in before if row["section"] not in asked.names]
    results = measure(asked.names or list(SECTIONS), asked.device, asked.quick, kept)
    record = {
        "name": "image_accuracy", "quick": asked.quick, "seconds": time.perf_counter() - start,
        "machine": machine.describe(machine.cores()) | {"device": asked.device}, "missing": [],
        "results": results,
    }  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(machine.finite(record), indent=1) + "\n", encoding="utf8")
    print(page(results))


def measure(
    names: list[str], device: str, quick: bool, kept: list[dict[str, Any]]
) -> dict[str, Any]:
    """The rows of these sections behind those that are kept."""
    rows = list(kept)
    for name in names:
        for work in SECTIONS[name]:
            rows.append({"section": name} | work(device, quick))
            print(rows[-1], flush=True)
    return {"rows": rows, "bracketed": 64 if quick else 1000, "goals": []}


def page(results: dict[str, Any]) -> str:
    plain = [row for row in results["rows"] if row["section"] == "accuracy"]
    robust = [row for row in results["rows"] if row["section"] != "accuracy"]
    lines = [
        [row["work"], f"{row['error']:.2%}", row["published"], f"{row['seconds']:.0f}"]
        for row in plain
    ]
    found = table(["work", "test error", "published", "training s"], lines)
    lines = [
        [row["work"], f"{eps:g}", f"{row['clean']:.1%}", f"{low:.1%}", f"{high:.1%}"]
        for row in robust
        for eps, low, high in row["bracket"]
    ]
    heads = ["training", "eps", "clean", "certified", "survived attacks"]
    text = " ".join(TEXT.format(rows=results["bracketed"]).split())
    return f"## {TITLE}\n\n{text}\n\n{found}\n\n{table(heads, lines)}\n"


def _data(name: str, quick: bool) -> Any:
    from tests.data import images

    X, y, X_test, y_test = images(name)
    return (X[:2000], y[:2000], X_test[:500], y_test[:500]) if quick else (X, y, X_test, y_test)


def _loss(output: Any, target: Any) -> Any:
    from torch.nn import functional as F

    return F.cross_entropy(output, target, reduction="none")


def _right(module: Any, X: Any, y: Any) -> float:
    import torch

    place = next(module.parameters()).device
    with torch.no_grad():
        labels = torch.cat([module(torch.from_numpy(X[i : i + 2000]).to(place)).argmax(1).cpu()
                            for i in range(0, len(X), 2000)])  # fmt: skip
    return float((labels.numpy() == y).mean())


# ------------------------------------------------------------------------------ accuracy


def _perceptron() -> Any:
    from torch import nn

    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 800), nn.ReLU(), nn.Dropout(0.3), nn.Linear(800, 10)
    )


def _lenet() -> Any:
    from surefit.nn.cnn import LeNet, LeNetSizes

    return LeNet(LeNetSizes(side=28))


def _small_cnn() -> Any:
    """Two pairs of convolutions with batch norms and dropout: 392,674 weights."""
    from torch import nn

    def stage(inputs: int, width: int) -> list[Any]:
        return [
            nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.MaxPool2d(2), nn.Dropout(0.25),
        ]  # fmt: skip

    head = [nn.Flatten(), nn.Linear(64 * 49, 104), nn.ReLU(), nn.Dropout(0.5), nn.Linear(104, 10)]
    return nn.Sequential(*stage(1, 32), *stage(32, 64), *head)


def _accuracy(
    work: str, name: str, build: Any, epochs: int, published: str, flip: bool, device: str, quick: bool
) -> dict[str, Any]:  # fmt: skip
    import torch

    from surefit.nn.augment import Augment
    from surefit.nn.train import train

    X, y, X_test, y_test = _data(name, quick)
    torch.manual_seed(0)
    module, start = build(), time.perf_counter()
    given: dict[str, Any] = {"augment": Augment(flip=True)} if flip else {}
    train(
        module, (X, y), _loss, epochs=2 if quick else epochs, batch_size=128, optimizer="adamw", lr=2e-3,
        weight_decay=0.01, schedule="cosine", warmup=0.05, device=device, precision="float32", **given,
    )  # fmt: skip
    taken = time.perf_counter() - start
    error = 1.0 - _right(module, X_test, y_test)
    return {"work": work, "error": error, "published": published, "seconds": taken}


# ------------------------------------------------------------------------------ robustness


def _cnn() -> Any:
    """Madry's MNIST network with strides instead of pooling, which bounds follow more closely."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 16, 4, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 4, stride=2, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 49, 100), nn.ReLU(), nn.Linear(100, 10),
    )  # fmt: skip


def _wide_cnn() -> Any:
    """The network of Madry et al. (2018): 3,274,634 weights."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 49, 1024), nn.ReLU(), nn.Linear(1024, 10),
    )  # fmt: skip


def _adversarial(
    eps: float, build: Any, lr: float, epochs: int, device: str, quick: bool
) -> dict[str, Any]:
    import torch

    from surefit.nn.train import train
    from surefit.robust import AdversarialTraining, Threat

    X, y, X_test, y_test = _data("mnist", quick)
    torch.manual_seed(0)
    module = build()
    threat = Threat(eps, lower=0.0, upper=1.0)
    train(
        module, (X, y), _loss, epochs=1 if quick else epochs, batch_size=256, lr=lr, schedule="cosine",
        warmup=0.1, device=device, precision="float32",
        augment=AdversarialTraining(threat, n_iter=2 if quick else 10),
    )  # fmt: skip
    radii = sorted({0.1, eps})
    return {"work": f"adversarial, {eps:g}"} | _bracket(module, X_test, y_test, radii, quick)


def _interval(eps: float, device: str, quick: bool) -> dict[str, Any]:
    import torch

    from surefit.nn.train import train
    from surefit.robust.certified_training import IntervalTraining

    X, y, X_test, y_test = _data("mnist", quick)
    torch.manual_seed(0)
    module = _cnn()
    epochs, size = (2, 256) if quick else (15, 256)
    steps = -(-len(X) // size)
    inside = IntervalTraining(
        module, 1.1 * eps, ramp=max(1, epochs // 3) * steps, warmup=steps, lower=0.0, upper=1.0
    )
    train(
        inside, (X, y), inside.loss, epochs=epochs, batch_size=size, lr=1e-3, schedule="cosine",
        device=device, precision="float32",
    )  # fmt: skip
    return {"work": f"interval, {eps:g}"} | _bracket(
        module, X_test, y_test, [0.02, 0.05, eps], quick
    )


def _bracket(module: Any, X: Any, y: Any, radii: list[float], quick: bool) -> dict[str, Any]:
    import torch

    from surefit.robust import Threat, evaluate

    torch.backends.cudnn.allow_tf32 = False  # bounds that leave room for float32, not for 10 bits
    rows = 64 if quick else 1000
    found = []
    for eps in radii:
        threat = Threat(eps, lower=0.0, upper=1.0)
        result = evaluate(
            module.eval(), X[:rows], y[:rows], threat, batch_size=1024, random_state=0
        )
        found.append([eps, result.certified_accuracy, result.attacked_accuracy])
    return {"clean": _right(module, X, y), "bracket": found}


SECTIONS: dict[str, list[Any]] = {
    "accuracy": [
        partial(_accuracy, "MNIST, 784-800-10", "mnist", _perceptron, 25, "1.6 %", False),
        partial(_accuracy, "MNIST, LeNet-5", "mnist", _lenet, 20, "0.95 %", False),
        partial(_accuracy, "Fashion-MNIST, CNN", "fashion-mnist", _small_cnn, 30, "6.57 %", True),
    ],
    "robustness": [partial(_adversarial, 0.1, _cnn, 2e-3, 15)],
    "robustness at 0.3": [partial(_adversarial, 0.3, _wide_cnn, 5e-4, 25)],
    "certified training": [partial(_interval, 0.1)],
}

if __name__ == "__main__":
    main()
