"""Rows over 2 and 4 ranks: the clusters and mixtures are those of one process, with its certificates."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from . import clusters
from .launch import arrays, launch

pytest.importorskip("torch.distributed")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process, without a group, finds."""
    X, weights = clusters.data()
    folder, found = tmp_path_factory.mktemp("alone"), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, (model, form, weighted) in clusters.CASES.items():
            given = clusters.form_of(X, form, slice(0, clusters.ROWS), folder)
            extra = {"sample_weight": weights} if weighted else {}
            fitted = clone(model).fit(given, **extra)
            found[name] = clusters.outcome_of(fitted)
            labels = fitted.labels_ if hasattr(fitted, "labels_") else fitted.predict(given)
            found[name]["labels"] = np.asarray(labels)
    return found


@pytest.fixture(scope="module", params=[2, 4], ids="{} ranks".format)
def spread(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    launch("clusters", request.param, str(folder))
    return arrays(folder / f"clusters-{request.param}.npz")


@pytest.mark.parametrize("name", clusters.CASES)
@pytest.mark.spec("LM-19")
def test_ranks_give_the_clusters_of_one_process(name, alone, spread):
    """The same draws by the numbers of the rows, the same labels, sums in another order.

    Labels are exact and so are the numbers of iterations; EM multiplies a difference of rounding by its rate
    of convergence, which is below 1, so that it stays one.
    """
    one = alone[name]
    single = "float32" in clusters.CASES[name]
    for key, value in one.items():
        found = spread[f"{name}/{key}"]
        if key in ("n_iter_", "labels", "claims", "data"):
            np.testing.assert_array_equal(found, value, err_msg=key)
        else:
            np.testing.assert_allclose(
                found, value, rtol=1e-6 if single else 1e-9, atol=1e-9, err_msg=key
            )
    assert bool(spread[f"{name}/verified"]) == all(": fails" not in c for c in one["claims"])
