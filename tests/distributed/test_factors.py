"""Users over 2 ranks: the factorisation is that of one process, to rounding, with its certificate."""

import numpy as np
import pytest

from surefit.decomposition import MatrixFactorization

from . import factors
from .launch import arrays, launch

pytest.importorskip("torch.distributed")


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    launch("factors", 2, str(folder))
    return arrays(folder / "factors-2.npz")


@pytest.mark.parametrize("name", factors.CASES)
@pytest.mark.spec("MF-6")
def test_ranks_give_the_factors_of_one_process(name, spread):
    kind, settings = factors.CASES[name]
    one = MatrixFactorization(3, **factors.SETTINGS | settings).fit(factors.data(kind))
    np.testing.assert_allclose(spread[f"{name}/items"], one.item_factors_, atol=1e-9)
    np.testing.assert_allclose(spread[f"{name}/users"], one.user_factors_, atol=1e-9)
    np.testing.assert_allclose(spread[f"{name}/losses"], one.loss_trace_, rtol=1e-10)
    assert str(spread[f"{name}/data"]) == one.certificate_.data_id
    assert bool(spread[f"{name}/verified"])
    alone = [f"{c.name}: {c.status.value}" for c in one.certificate_.claims]
    if kind == "full" and not one.biases:  # singular values are not computed over ranks
        alone = [claim for claim in alone if "nuclear" not in claim and "rank K" not in claim]
        assert "best of rank K: undecided" in spread[f"{name}/claims"].tolist()
    assert set(alone) <= set(spread[f"{name}/claims"].tolist())
