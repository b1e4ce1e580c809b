"""Rows over 2 and 4 ranks: the linear models are those of one process, to rounding, with its certificates."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from surefit import CertificateWarning

from . import linear
from .launch import arrays, launch

pytest.importorskip("torch.distributed")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process, without a group, finds."""
    X, targets, weights = linear.data()
    folder, found = tmp_path_factory.mktemp("alone"), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        for name, (model, target, form, weighted) in linear.CASES.items():
            given = linear.form_of(X, form, slice(0, linear.ROWS), folder)
            fitted = clone(model).fit(
                given, targets[target], sample_weight=weights if weighted else None
            )
            found[name] = linear.summary(fitted)
    return found


@pytest.fixture(scope="module", params=[2, 4], ids="{} ranks".format)
def spread(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    launch("linear", request.param, str(folder))
    return arrays(folder / f"linear-{request.param}.npz")


@pytest.mark.parametrize("name", linear.CASES)
@pytest.mark.spec("LM-19")
def test_ranks_give_the_model_of_one_process(name, alone, spread):
    """Sums over ranks are the sums over all rows, in another order.

    A minimum of a smooth function is determined to the root of the rounding of its value where a solver
    ends on the value (Huber), to a few eps times the condition elsewhere.
    """
    one = alone[name]
    scale = np.abs(one["coef"]).max()
    share = 1e-7 if "Huber" in name else 2e-6 if "float32" in linear.CASES[name] else 1e-9
    np.testing.assert_allclose(spread[f"{name}/coef"], one["coef"], rtol=0, atol=share * scale)
    np.testing.assert_allclose(
        spread[f"{name}/intercept"], one["intercept"], rtol=0, atol=10 * share * (1 + scale)
    )
    assert spread[f"{name}/claims"].tolist() == one["claims"].tolist()
    assert str(spread[f"{name}/data"]) == str(one["data"])
    assert bool(spread[f"{name}/verified"])
