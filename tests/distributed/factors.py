"""A job of the tests: factorisations of rows over ranks, and again from their checkpoints."""

import sys

import numpy as np

import surefit
from surefit.decomposition import MatrixFactorization, ratings
from surefit.distributed import connect

ROWS = 61
SETTINGS = {"reg": 0.4, "tol": 1e-6, "max_iter": 5000, "random_state": 0}
CASES = {
    "sparse": ("sparse", {}),
    "biases": ("sparse", {"biases": True, "weighted_reg": True, "reg": 0.05}),
    "implicit": ("counts", {"implicit": True}),
    "full": ("full", {}),
    "full, biases": ("full", {"biases": True, "tol": 1e-4}),
}


def data(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 4)) @ rng.normal(size=(4, 30)) + 0.2 * rng.normal(size=(ROWS, 30))
    if kind == "full":
        return X
    known = rng.random(X.shape) < 0.6
    values = np.abs(X[known]) if kind == "counts" else X[known]
    return ratings(*np.nonzero(known), values, shape=X.shape)


def main(folder):
    from surefit.design import RankRows

    found = {}
    with connect(timeout=60) as group:
        mine = group.share_of(ROWS)
        for name, (kind, settings) in CASES.items():
            rows = RankRows(data(kind)[mine], group, checkpoint=folder / "kept")
            model = MatrixFactorization(3, **SETTINGS | settings).fit(rows)
            again = MatrixFactorization(3, **SETTINGS | settings).fit(
                rows
            )  # from the last state kept
            np.testing.assert_array_equal(again.user_factors_, model.user_factors_)
            np.testing.assert_array_equal(again.loss_trace_, model.loss_trace_)
            for other in group.gather(model.item_factors_):
                np.testing.assert_array_equal(other, model.item_factors_)  # to the bit
            certificate = model.certificate_
            found |= {
                f"{name}/users": np.concatenate(group.gather(model.user_factors_)),
                f"{name}/items": model.item_factors_,
                f"{name}/losses": model.loss_trace_,
                f"{name}/data": np.array(certificate.data_id),
                f"{name}/claims": np.array(
                    [f"{c.name}: {c.status.value}" for c in certificate.claims]
                ),
                f"{name}/verified": np.array(surefit.verify(model, rows).ok),
            }
        if group.rank == 0:
            np.savez(folder / f"factors-{group.size}.npz", **found)


if __name__ == "__main__":
    from pathlib import Path

    main(Path(sys.argv[1]))
