"""The law of certificates for factorisations: they hold at the fit, and fail when factors, trace or data
are changed.

Nudges go along the factors themselves, one side at a time: that changes the products. Moving both sides by
(beta U, V / beta), or by a rotation, changes the products not at all, and with equal penalties a rotation
changes nothing: it must pass.
"""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import surefit
from surefit import Status
from surefit.decomposition import MatrixFactorization, ratings


def table(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 30)) + 0.3 * rng.normal(size=(50, 30)) + 3.0
    if kind == "full":
        return X
    if kind == "counts":
        return sp.csr_array(rng.poisson(0.4, size=X.shape).astype(float))
    known = rng.random(X.shape) < 0.5
    if kind == "float32":
        return np.where(known, X, np.nan).astype(np.float32)
    return ratings(*np.nonzero(known), X[known], shape=X.shape)


@pytest.fixture(autouse=True)
def one_thread_of_torch():
    """Small tensors: threads would only wait for one another."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


CASES = [
    ("sparse", {}),
    ("sparse", {"biases": True, "weighted_reg": True, "reg": 0.05}),
    ("sparse", {"solver": "cg"}),
    ("sparse", {"device": "cpu", "biases": True, "reg": 2.0, "tol": 1e-3}),
    ("float32", {"biases": True, "tol": 1e-4}),
    ("full", {}),
    ("full", {"biases": True}),
    ("full", {"reg": 0.0}),
    ("counts", {"implicit": True}),
    ("counts", {"implicit": True, "solver": "cg"}),
    ("sparse", {"method": "sgd", "biases": True}),
]


def fitted(kind, settings):
    settings = {"reg": 0.5, "tol": 1e-8, "max_iter": 20000, "random_state": 0} | settings
    if settings.get("method") == "sgd":
        settings |= {"max_iter": 30}
    return MatrixFactorization(3, **settings).fit(table(kind))


@pytest.mark.parametrize(("kind", "settings"), CASES, ids=str)
def test_the_law(kind, settings, tmp_path):
    X, model = table(kind), fitted(kind, settings)
    assert model.certificate_.ok, str(model.certificate_)
    assert surefit.verify(model, X).ok
    names = ["user_factors_", "item_factors_"]
    names += ["user_biases_", "item_biases_"] if model.biases else []
    for name in names:
        for along in ("itself", "one entry"):
            moved, values = copy.deepcopy(model), getattr(model, name)
            step = 1e-3 * values
            if along == "one entry":
                step = np.zeros_like(values)
                step.flat[0] = 1e-3 * np.linalg.norm(values)
            setattr(moved, name, (values + step).astype(values.dtype))
            assert not surefit.verify(moved, X).ok, (name, along)
    path = tmp_path / "model.surefit"
    surefit.save(model, path)
    again = surefit.load(path)
    assert surefit.verify(again, X).ok
    again.item_factors_ = again.item_factors_ * np.float32(1.001)
    assert not surefit.verify(again, X).ok


@pytest.mark.parametrize(("kind", "settings"), CASES[:8:3], ids=str)
def test_other_data_and_forged_records_are_noticed(kind, settings):
    X, model = table(kind), fitted(kind, settings)
    other = X.copy()
    if sp.issparse(other):
        other.data[3] += 0.01
    else:
        other[0, np.flatnonzero(~np.isnan(other[0]))[0]] += 0.01
    report = surefit.verify(model, other)
    assert report["data"].status is report["user block"].status is Status.FAILS
    for change in ("end", "rise", "loss", "short"):
        forged = copy.deepcopy(model)
        if change == "end":
            forged.loss_trace_ = np.append(model.loss_trace_, 0.9 * model.loss_)
        elif change == "rise":
            forged.loss_trace_ = np.append(0.5 * model.loss_, model.loss_trace_)
        elif change == "loss":
            forged.loss_ = 0.999 * model.loss_
        else:
            forged.loss_trace_ = model.loss_trace_[:0]
        assert not surefit.verify(forged, X).ok, change


def test_a_zero_that_is_stored_is_a_rating():
    """The fingerprint does not see it; the pairs of the fit do, and the gradient does."""
    X = table("sparse")
    model = fitted("sparse", {})
    dense = X.toarray()
    i, j = np.argwhere(dense == 0)[0]
    rows, columns = X.nonzero()
    extra = ratings(
        np.append(rows, i),
        np.append(columns, j),
        np.append(dense[rows, columns], 0.0),
        shape=X.shape,
    )
    assert "seen_" in surefit.verify(model, extra)["attributes"].statement
    model.seen_ = MatrixFactorization(3, random_state=0).fit(extra).seen_
    report = surefit.verify(model, extra)
    assert report["user block"].status is Status.FAILS
    assert report["loss"].status is Status.FAILS


def test_a_rotation_changes_nothing_and_a_scale_only_the_penalty():
    X, model = table("sparse"), fitted("sparse", {})
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turned = copy.deepcopy(model)
    turned.user_factors_, turned.item_factors_ = model.user_factors_ @ Q, model.item_factors_ @ Q
    assert surefit.verify(turned, X).ok
    turned.user_factors_, turned.item_factors_ = model.user_factors_ * 2, model.item_factors_ / 2
    assert surefit.verify(turned, X)["user block"].status is Status.FAILS


def test_a_fit_that_was_cut_short_says_so():
    with pytest.warns(surefit.CertificateWarning, match="item block"):
        model = MatrixFactorization(3, max_iter=2, tol=1e-6, random_state=0).fit(table("sparse"))
    assert model.certificate_["item block"].status is Status.FAILS
    assert model.certificate_["user block"].status is Status.HOLDS
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        MatrixFactorization(3, max_iter=2, tol=1e-6, random_state=0, certify=False).fit(
            table("sparse")
        )


def test_sgd_promises_no_stationarity():
    model = fitted("sparse", {"method": "sgd", "biases": True})
    assert "promises no stationarity" in model.certificate_["item block"].statement
    assert model.certificate_.ok
    assert "monotone loss" not in model.certificate_
