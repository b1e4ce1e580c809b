"""How often the error on new rows lies in the limits that networks and text classifiers state.

Rows are drawn from a distribution whose error of any classifier can be worked out on fresh rows; the cases
are those in which held-out rows were not new: a fit that goes on (``warm_start``), copies of rows, a module
that was trained before, labels without any relation to the rows. Of each case are counted the fits that state
limits, those whose limits miss the error, and those that decline to (undecided).

Run ``python -m benchmarks.held_out_coverage --repeats 400``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["CASES", "coverage"]

ROWS, FRESH, NOISE = 60, 2000, 0.15
SETTINGS = {"epochs": 15, "lr": 0.03, "batch_size": 20, "validation_fraction": 0.4}


def draw(rng: np.random.Generator, n: int, shuffled: bool = False) -> tuple[Any, Any]:
    """Rows whose label is the sign of a coordinate, but for a share of NOISE; or any label."""
    X = rng.normal(size=(n, 6)).astype(np.float32)
    y = (X[:, 0] > 0) ^ (rng.random(n) < NOISE)
    return X, (rng.integers(2, size=n) if shuffled else y.astype(int))


def network(**more: Any) -> Any:
    """A network that is large enough to know its rows by heart."""
    from torch import nn

    from surefit.nn import NeuralClassifier

    def made(n_features: int, n_outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(n_features, 64), nn.ReLU(), nn.Linear(64, n_outputs))

    return NeuralClassifier(more.pop("module", made), **SETTINGS | {"random_state": None} | more)


def texts(rng: np.random.Generator, n: int, shuffled: bool = False) -> tuple[Any, Any]:
    """Texts of ten words of which some belong to a class."""
    y = rng.integers(2, size=n)
    words = [
        " ".join(f"{'ab'[c] if rng.random() < 0.25 else 'w'}{rng.integers(30)}" for _ in range(10))
        for c in y
    ]
    return words, (rng.integers(2, size=n) if shuffled else y)


def classifier(seed: int) -> Any:
    """fastText, learning its texts by heart."""
    from surefit.text import FastTextClassifier

    return FastTextClassifier(
        6, learning_rate=1.0, max_iter=25, validation_fraction=0.4, deterministic=True, random_state=seed
    )  # fmt: skip


def _independent(rng: Any) -> Any:
    return network().fit(*draw(rng, ROWS)), draw(rng, FRESH)


def _shuffled(rng: Any) -> Any:
    return network().fit(*draw(rng, ROWS, True)), draw(rng, FRESH, True)


def _doubled(rng: Any) -> Any:
    X, y = draw(rng, ROWS // 2, True)
    return network().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)), draw(rng, FRESH, True)


def _twice(rng: Any) -> Any:
    """Two fits with warm_start, on the same rows."""
    X, y = draw(rng, ROWS, True)
    return network(warm_start=True).fit(X, y).fit(X, y), draw(rng, FRESH, True)


def _shuffled_rows(rng: Any) -> Any:
    """Two fits with warm_start, the second on the same rows in another order."""
    X, y = draw(rng, ROWS, True)
    order = rng.permutation(ROWS)
    return network(warm_start=True).fit(X, y).fit(X[order], y[order]), draw(rng, FRESH, True)


def _first_whole(rng: Any) -> Any:
    """A first fit without validation rows."""
    X, y = draw(rng, ROWS, True)
    model = network(warm_start=True, validation_fraction=0.0).fit(X, y)
    return model.set_params(validation_fraction=0.4).fit(X, y), draw(rng, FRESH, True)


def _new_rows(rng: Any) -> Any:
    """The second fit on rows of its own."""
    model = network(warm_start=True).fit(*draw(rng, ROWS, True))
    return model.fit(*draw(rng, ROWS, True)), draw(rng, FRESH, True)


def _trained_module(rng: Any) -> Any:
    X, y = draw(rng, ROWS, True)
    module = network(validation_fraction=0.0).fit(X, y).module_
    return network(module=module).fit(X, y), draw(rng, FRESH, True)


def _texts(rng: Any) -> Any:
    return classifier(int(rng.integers(2**31))).fit(*texts(rng, 80)), texts(rng, FRESH)


def _texts_shuffled(rng: Any) -> Any:
    fresh = texts(rng, FRESH, True)
    return classifier(int(rng.integers(2**31))).fit(*texts(rng, 80, True)), fresh


def _texts_doubled(rng: Any) -> Any:
    X, y = texts(rng, 40, True)
    fresh = texts(rng, FRESH, True)
    return classifier(int(rng.integers(2**31))).fit(X * 2, np.tile(y, 2)), fresh


CASES: dict[str, Callable[[Any], Any]] = {
    "network, independent rows": _independent,
    "network, shuffled labels": _shuffled,
    "network, doubled rows": _doubled,
    "network, warm_start twice": _twice,
    "network, warm_start, other order": _shuffled_rows,
    "network, warm_start, new rows": _new_rows,
    "network, first fit on all rows": _first_whole,
    "network, module trained before": _trained_module,
    "fastText, independent texts": _texts,
    "fastText, shuffled labels": _texts_shuffled,
    "fastText, doubled texts": _texts_doubled,
}


def coverage(case: str, repeats: int, seed: int = 0) -> dict[str, int]:
    """Counts of fits: that state limits, whose limits miss the error on fresh rows, that are undecided."""
    found = {"stated": 0, "missed": 0, "undecided": 0, "informative": 0}
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002  what random_state=None draws from
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, (X, y) = CASES[case](rng)
        certificate = model.certificate_
        name = "test-set radius" if "test-set radius" in certificate else "held-out error"
        claim = certificate[name]
        if claim.low is None or claim.high is None:
            found["undecided"] += 1
            continue
        error = 1.0 - model.score(X, y)
        found["stated"] += 1
        found["informative"] += claim.status.value == "holds"
        found["missed"] += not claim.low <= error <= claim.high
    return found


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--cases", default="", help="only those whose name holds this text")
    asked = parser.parse_args()
    print("| case | fits | limits stated | informative | miss the error | undecided |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        if asked.cases not in case:
            continue
        found = coverage(case, asked.repeats)
        cells = (found[k] for k in ("stated", "informative", "missed", "undecided"))
        print(f"| {case} | {asked.repeats} | {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
