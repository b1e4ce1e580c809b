"""Full matrices without a penalty: ALS ends at the best approximation of rank K (MF-5)."""

import numpy as np
import pytest

import surefit
from surefit import Status
from surefit.decomposition import MatrixFactorization
from surefit.design import as_design
from surefit.solvers.factor_full import als_full
from surefit.solvers.factor_problem import Penalties


def matrix(n=40, p=25, seed=0, values=None):
    """A matrix with known singular values."""
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.normal(size=(n, p)))[0]
    B = np.linalg.qr(rng.normal(size=(p, p)))[0]
    return (A * (np.arange(p, 0, -1.0) if values is None else values)) @ B.T


@pytest.mark.spec("MF-5")
@pytest.mark.parametrize("k", [1, 4, 10])
def test_the_loss_is_half_the_squares_of_the_other_singular_values(k):
    X = matrix()
    model = MatrixFactorization(k, reg=0.0, tol=1e-9, max_iter=2000, random_state=0).fit(X)
    s = np.linalg.svd(X, compute_uv=False)
    assert model.loss_ == pytest.approx(0.5 * (s[k:] ** 2).sum(), rel=1e-10)
    claim = model.certificate_["best of rank K"]
    assert claim.status is Status.HOLDS
    assert claim.kind is surefit.Kind.OPTIMAL
    M = model.inverse_transform(model.user_factors_)
    np.testing.assert_allclose(np.linalg.svd(M, compute_uv=False)[:k], s[:k], rtol=1e-8)


@pytest.mark.spec("MF-5")
def test_the_loss_never_rises_and_the_updates_are_the_closed_forms():
    """Users: X V (V'V + lambda I_K)^{-1}; items: X'U (U'U + lambda I_K)^{-1} (ERR-61)."""
    X, k, lam = matrix(), 3, 0.7
    rng = np.random.default_rng(1)
    V = rng.normal(size=(X.shape[1], k))
    penalties = Penalties(np.full(k, lam), np.full(k, 2 * lam), False, False)
    losses = []
    for step, iterate in enumerate(als_full(as_design(X), V, 0.0, penalties)):
        U, V, new = iterate.x
        np.testing.assert_allclose(
            U, X @ V @ np.linalg.inv(V.T @ V + lam * np.eye(k)), rtol=1e-8, atol=1e-10
        )
        solved = X.T @ U @ np.linalg.inv(U.T @ U + 2 * lam * np.eye(k))
        # the next items are these in the basis of least penalty: the same column space
        back = solved @ np.linalg.lstsq(solved, new, rcond=None)[0]
        np.testing.assert_allclose(back, new, rtol=1e-8, atol=1e-9)
        losses.append(iterate.value)
        fit = X - U @ V.T
        value = 0.5 * (fit**2).sum() + 0.5 * lam * (U**2).sum() + lam * (V**2).sum()
        assert iterate.value == pytest.approx(value, rel=1e-12)
        if step == 30:
            break
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()


@pytest.mark.spec("MF-5")
def test_a_saddle_is_told_from_the_minimum():
    """The second and third singular vectors are stationary too; the gap to the best of rank 2 says so."""
    X = matrix()
    A, s, Bt = np.linalg.svd(X, full_matrices=False)
    model = MatrixFactorization(2, reg=0.0, tol=1e-9, max_iter=3000, random_state=0).fit(X)
    model.user_factors_, model.item_factors_ = A[:, 1:3] * s[1:3], Bt[1:3].T.copy()
    model.loss_ = 0.5 * float((s[[0, *range(3, 25)]] ** 2).sum())
    model.loss_trace_, model.n_iter_ = np.append(model.loss_trace_[:1], model.loss_), 2
    report = surefit.verify(model, X)
    assert report["user block"].status is report["item block"].status is Status.HOLDS
    claim = report["best of rank K"]
    assert claim.status is Status.FAILS
    assert claim.observed == pytest.approx(0.5 * (s[0] ** 2 - s[2] ** 2), rel=1e-9)


def test_a_large_matrix_is_left_undecided_at_fit_and_decided_by_verify():
    X = np.outer(np.arange(900.0), np.ones(600)) + matrix(900, 600, values=np.ones(600))
    model = MatrixFactorization(1, reg=0.0, tol=1e-6, random_state=0).fit(X)
    assert model.certificate_["best of rank K"].status is Status.UNDECIDED
    assert surefit.verify(model, X)["best of rank K"].status is Status.HOLDS
