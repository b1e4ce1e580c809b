"""Networks on the processor: our trainer and MLPClassifier beside scikit-learn, skorch and loops by hand.

Pictures of MNIST where the folder of public data is at hand, else pictures of the same shape made from
prototypes and noise. All start from equal weights where they can, and see rows in an order of their own; the
loss each ends with stands beside its time.
"""

from __future__ import annotations

import statistics
import warnings
from functools import partial
from typing import Any

import numpy as np

from .data import pictures
from .harness import paired, seconds, summary
from .peers import ours, peer
from .report import goal_cells, goal_line, paired_page, ratio_text, short

TITLE = "Networks on two cores"
TEXT = """
*MLP*: 784-256-10, ReLU, Adam with rate 0.001, batches of 200, {epochs} epochs over {n} pictures; ours
includes the certificate. *By hand* is the loop that torch's tutorials write, with the fused Adam. *LeNet*:
61,706 weights, batches of 128, to the first epoch with 99 % of the test pictures right, or {lenet} epochs;
three seeds each, which is luck: the epochs of each stand in brackets, and the goal is asked of an epoch.
The ratio is peer over ours. *loss*: mean cross-entropy of all training pictures at the end, ours and the
peer's. *Overhead*: steps of a perceptron that take 5 ms and more, by the trainer and by hand.
"""
WHY = """
a step of scikit-learn's takes about 1.75 ms here, 0.77 ms of it the two large products in float32. Ours takes
0.8 ms: the two products without the zeros of the pictures (81 % of the pixels) 0.38 ms, sorting by columns
among it, fused Adam 0.08 ms, three products of the last layer 0.08 ms, loss and its slope 0.06 ms, small
layers and the loop 0.2 ms. Other widths of the panels and other numbers of sums at a time gain nothing. Of
the 1.4 s of a fit 0.05 s find the zeros, 0.05 s are the recorded loss and 0.1 s the certificate, which reads
all rows once more, dense.
"""


def measure(options: Any) -> dict[str, Any]:
    import torch

    torch.set_num_threads(options.threads)
    X, y, X_test, y_test = pictures(quick=options.quick)
    flat = X.reshape(len(X), -1)
    epochs, lenet = (2, 2) if options.quick else (5, 12)
    rows = _perceptrons(flat, y, epochs, options) + _lenet(X, y, X_test, y_test, lenet, options)
    rows.append(_overhead(flat, y, options))
    goals = [goal_line(row, row["peer name"]) for row in rows if row["goal"]]
    return {"rows": rows, "goals": goals, "epochs": epochs, "lenet": lenet, "n": len(X)}


def page(results: dict[str, Any]) -> str:
    heads = [
        "work",
        "peer",
        "ours s",
        "peer s",
        "ratio",
        "worst",
        "loss: ours, peer",
        "goal",
        "reached",
    ]
    lines = []
    for row in results["rows"]:
        losses = ", ".join(short(value) for value in row["losses"]) if "losses" in row else "–"
        times = [short(row["ours"]), short(row["peer"]), ratio_text(row), f"{row['worst']:.2f}"]
        lines.append([row["work"], row["peer name"], *times, losses, *goal_cells(row)])
    return paired_page(TITLE, TEXT.format(**results), WHY, results, heads, lines)


# ------------------------------------------------------------------------------ perceptrons


def _perceptrons(X: Any, y: Any, epochs: int, options: Any) -> list[dict[str, Any]]:
    from sklearn.neural_network import MLPClassifier as Peer

    Ours = ours("MLPClassifier", "neural_network")
    given = {"hidden_layer_sizes": (256,), "max_iter": epochs, "alpha": 0.0, "random_state": 0}
    found = []
    for kind in ("float32", "float64"):
        data = X.astype(kind)
        if Ours is not None:
            mine, theirs = partial(_fit, Ours, given, data, y), partial(_fit, Peer, given, data, y)
            losses = [_loss(mine(), data, y), _loss(theirs(), data, y)]
            row = {"work": f"MLP, {kind}", "peer name": "scikit-learn", "goal": 2.0}
            found.append(row | {"losses": losses} | paired(mine, theirs, options.pairs))
    data = X.astype(np.float32)
    mine = partial(_ours, _mlp, data, y, epochs, 200)
    theirs = partial(_by_hand, _mlp, data, y, epochs, 200)
    row = {"work": "MLP, the trainer", "peer name": "by hand", "goal": 0.95}
    losses = [_torch_loss(mine(), data, y), _torch_loss(theirs(), data, y)]
    found.append(row | {"losses": losses} | paired(mine, theirs, 2 * options.pairs + 1))
    skorch = peer("skorch")
    if skorch is not None:
        theirs = partial(_skorch, skorch, data, y, epochs)
        losses = [losses[0], _torch_loss(theirs(), data, y)]
        row = {"work": "MLP, the trainer", "peer name": "skorch", "goal": 1.0}
        found.append(row | {"losses": losses} | paired(mine, theirs, options.pairs))
    return found


def _fit(model: Any, given: dict[str, Any], X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of epochs that are over
        return model(**given).fit(X, y)


def _loss(model: Any, X: Any, y: Any) -> float:
    chosen = model.predict_proba(X)[np.arange(len(y)), y]
    return float(-np.log(np.maximum(chosen, 1e-30)).mean())


def _mlp() -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def _cross_entropy(output: Any, target: Any) -> Any:
    from torch.nn import functional as F

    return F.cross_entropy(output, target, reduction="none")


def _ours(build: Any, X: Any, y: Any, epochs: int, size: int, seed: int = 0, **more: Any) -> Any:
    import torch

    from surefit.nn.train import train

    torch.manual_seed(seed)
    module = build()
    given = {"epochs": epochs, "batch_size": size, "optimizer": "adam", "lr": 1e-3, "device": "cpu"}
    given["seed"] = seed
    train(module, (X, y), _cross_entropy, **given | more)
    return module


def _by_hand(
    build: Any,
    X: Any,
    y: Any,
    epochs: int,
    size: int,
    look: Any = None,
    steps: int = 10**9,
    seed: int = 0,
) -> Any:
    """The loop of the tutorials; ``look(module)`` after each epoch ends it when true."""
    import torch
    from torch.nn import functional as F

    torch.manual_seed(seed)
    module = build()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3, fused=True)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y)
    for _ in range(epochs):
        order = torch.randperm(len(rows))
        for first in range(0, min(len(rows), steps * size), size):
            batch = order[first : first + size]
            loss = F.cross_entropy(module(rows[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if look is not None and look(module):
            break
    return module


def _skorch(skorch: Any, X: Any, y: Any, epochs: int) -> Any:
    import torch

    torch.manual_seed(0)
    net = skorch.NeuralNetClassifier(
        _mlp(), criterion=torch.nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=1e-3,
        batch_size=200, max_epochs=epochs, train_split=None, verbose=0, iterator_train__shuffle=True,
        optimizer__fused=True,
    )  # fmt: skip
    return net.fit(X, y).module_


def _torch_loss(module: Any, X: Any, y: Any) -> float:
    import torch

    with torch.no_grad():
        return float(_cross_entropy(module.eval()(torch.from_numpy(X)), torch.from_numpy(y)).mean())


# ------------------------------------------------------------------------------ pictures, overhead


def _lenet(X: Any, y: Any, X_test: Any, y_test: Any, most: int, options: Any) -> list[Any]:
    import torch

    from surefit.nn.cnn import LeNet, LeNetSizes
    from surefit.nn.train import accuracy

    target = 0.9 if options.quick else 0.99
    build = partial(LeNet, LeNetSizes(side=28))
    tests, labels = torch.from_numpy(X_test), torch.from_numpy(y_test)
    epochs: dict[str, list[int]] = {"ours": [], "peer": []}

    def good(module: Any) -> bool:
        epochs["peer"][-1] += 1
        with torch.no_grad():
            module.eval()
            right = (module(tests).argmax(1) == labels).float().mean().item()
            module.train()
        return right >= target

    def enough(live: Any) -> bool:
        epochs["ours"][-1] = live.history.epochs[-1]
        return live.history.metrics["accuracy"][-1] >= target

    given = {"validation": (X_test, y_test), "metrics": {"accuracy": accuracy}, "callback": enough}
    pairs = []
    for seed in range(1 if options.quick else 3):
        epochs["ours"].append(0)
        epochs["peer"].append(0)
        pairs.append((
            seconds(partial(_ours, build, X, y, most, 128, seed, **given))[0],
            seconds(partial(_by_hand, build, X, y, most, 128, good, seed=seed))[0],
        ))  # fmt: skip
    whole = summary([a for a, _ in pairs], [b for _, b in pairs])
    each = summary(
        [a / n for (a, _), n in zip(pairs, epochs["ours"], strict=True)],
        [b / n for (_, b), n in zip(pairs, epochs["peer"], strict=True)],
    )
    counts = "; ".join(", ".join(map(str, epochs[side])) for side in ("ours", "peer"))
    return [
        {"work": f"LeNet to {target:.0%} (epochs {counts})", "peer name": "by hand", "goal": None}
        | whole,
        {"work": "LeNet, an epoch with its test", "peer name": "by hand", "goal": 1 / 1.1} | each,
    ]


def _overhead(X: Any, y: Any, options: Any) -> dict[str, Any]:
    """Steps of at least 5 ms: a wider perceptron and larger batches."""
    from torch import nn

    def wide() -> Any:
        return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))

    size = 512
    steps = min(60, len(X) // size)
    mine = partial(_ours, wide, X, y, 1, size, max_steps=steps)
    theirs = partial(_by_hand, wide, X, y, 1, size, None, steps)
    mine(), theirs()
    found = paired(mine, theirs, 4 * options.pairs + 1)
    step = statistics.median(b for _, b in found["pairs"]) / steps
    work = f"steps of {1e3 * step:.1f} ms by hand"
    return {"work": work, "peer name": "by hand", "goal": 0.98} | found
