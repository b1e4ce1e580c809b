"""The errors on docs/matrix-factorisation.md: MovieLens-100k with its folds u1 to u5.

In each fold a random tenth of the training part chooses the parameters; the model is then fitted to the whole
training part, and the test part is predicted once. Predictions are clipped to 1..5.
"""

from __future__ import annotations

import gzip
import itertools
import warnings
from typing import Any

import numpy as np

__all__ = ["main"]

SHAPE = (943, 1682)
GRIDS: dict[str, list[dict[str, Any]]] = {
    "biases alone": [
        {"n_components": 1, "reg": 1e9, "reg_biases": bias, "max_iter": 40} for bias in (2, 4, 6)
    ],
    "SGD": [
        {"method": "sgd", "n_components": k, "reg": reg, "weighted_reg": True, "max_iter": epochs, "tol": 0.0,
         "learning_rate": 0.015}
        for k, reg, epochs in itertools.product((50, 100), (0.08, 0.1, 0.12), (30, 50, 80))
    ],
    "ALS": [
        {"n_components": k, "reg": reg, "reg_biases": bias, "max_iter": 40}
        for k, reg, bias in itertools.product((5, 8, 20, 50), (8, 10, 12, 15), (2, 4))
    ]
    + [
        {"n_components": k, "reg": reg, "weighted_reg": True, "max_iter": 40}
        for k, reg in itertools.product((5, 20, 50), (0.13, 0.16, 0.2))
    ],
}  # fmt: skip


def main() -> None:
    from tests.data import data_folder

    from surefit.decomposition import MatrixFactorization, ratings

    folder = data_folder()
    if folder is None:
        raise SystemExit("the folder of public data is not here; SUREFIT_DATA names it")
    with gzip.open(folder / "recsys" / "ml-100k" / "u.data.gz") as file:
        data = np.loadtxt(file, np.int64)
    fold = np.load(folder / "recsys" / "ml-100k" / "splits.npz")["fold"]
    users, items, values = data[:, 0] - 1, data[:, 1] - 1, data[:, 2].astype(np.float64)

    def error(settings: dict[str, Any], train: Any, test: Any) -> float:
        X = ratings(users[train], items[train], values[train], shape=SHAPE)
        model = MatrixFactorization(random_state=0, certify=False, biases=True, **settings).fit(X)
        found = np.clip(model.predict(users[test], items[test]), 1, 5)
        return float(np.sqrt(np.mean((found - values[test]) ** 2)))

    for name, grid in GRIDS.items():
        errors = []
        for number in range(1, 6):
            train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            held = np.random.default_rng(number).random(len(train)) < 0.1
            best = min(grid, key=lambda s: error(s, train[~held], train[held]))
            errors.append(error(best, train, test))
            print(f"{name}, u{number}: {errors[-1]:.4f} with {best}", flush=True)
        print(f"{name}: mean {np.mean(errors):.4f}")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that end at max_iter
        main()
