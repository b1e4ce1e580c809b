"""Matrix factorisation: the items of chapter 14, and what the estimator answers."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from tests.data import data_folder

import surefit
from surefit import Status
from surefit._jit.factor_steps import sgd_block
from surefit.decomposition import MatrixFactorization, ratings
from surefit.distributed import ALONE
from surefit.solvers.factor_als import als, shared_item_step
from surefit.solvers.factor_problem import Penalties, features, sides


def planted(n=60, p=40, k=3, share=0.6, noise=0.0, seed=0):
    """Ratings of a share of the pairs of a matrix of rank k, and the matrix."""
    rng = np.random.default_rng(seed)
    T = rng.normal(size=(n, k)) @ rng.normal(size=(p, k)).T
    known = rng.random((n, p)) < share
    return np.where(known, T + noise * rng.normal(size=T.shape), np.nan), T


def films(seed=0, n=300, p=120, share=0.25):
    """Ratings from 1 to 5 with users' and items' biases and three tastes."""
    rng = np.random.default_rng(seed)
    T = 3.5 + 0.4 * rng.normal(size=(n, 1)) + 0.6 * rng.normal(size=p)
    T = T + 0.7 * rng.normal(size=(n, 3)) @ rng.normal(size=(p, 3)).T / np.sqrt(3)
    full = np.clip(np.round(T + 0.5 * rng.normal(size=T.shape)), 1, 5)
    known = rng.random((n, p)) < share
    test = known & (rng.random((n, p)) < 0.2)
    return full, known & ~test, test


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


# ---------------------------------------------------------------------------- the model


@pytest.mark.spec("MF-1")
def test_a_planted_matrix_is_recovered():
    X, T = planted()
    model = MatrixFactorization(3, reg=1e-8, tol=1e-10, max_iter=2000, random_state=0).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.user_factors_), T, atol=1e-4)
    assert model.certificate_.ok


@pytest.mark.spec("MF-1")
def test_not_jointly_convex_and_scale_free():
    """The midpoint of (W, Z) and (-W, -Z) is 0, with a larger loss; (beta W, Z / beta) changes nothing."""
    X, _ = planted(noise=0.1)
    W = MatrixFactorization(3, reg=0.0, tol=1e-8, max_iter=1000, random_state=0).fit(X)

    def loss(U, V):
        return 0.5 * np.nansum((X - U @ V.T) ** 2)

    U, V = W.user_factors_, W.item_factors_
    assert loss(U, V) == pytest.approx(loss(-U, -V), rel=1e-12)
    assert loss(0 * U, 0 * V) > 100 * loss(U, V)
    for beta in (0.1, 3.0):
        assert loss(beta * U, V / beta) == pytest.approx(loss(U, V), rel=1e-10)
    assert W.loss_ == pytest.approx(loss(U, V), rel=1e-9)


@pytest.mark.spec("MF-2")
@pytest.mark.parametrize("shape", [(12, 8), (8, 12)])
def test_enough_components_fit_anything_exactly(shape):
    X = np.random.default_rng(0).normal(size=shape)
    model = MatrixFactorization(8, reg=0.0, tol=1e-12, random_state=0).fit(X)
    assert model.loss_ <= 1e-20 * (X**2).sum()
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-9)
    for U, V in ((X, np.eye(shape[1])), (np.eye(shape[0]), X.T)):  # (X, I) and (I, X)
        assert np.abs(X - U @ V.T).max() == 0.0
    assert model.certificate_["best of rank K"].status is Status.HOLDS


@pytest.mark.spec("MF-2")
def test_more_components_fit_better_and_predict_worse():
    X, T = planted(n=40, p=30, k=2, noise=0.5, share=0.5)
    out = np.isnan(X)
    fits = {
        k: MatrixFactorization(k, reg=0.01, tol=1e-4, max_iter=3000, random_state=0).fit(X)
        for k in (2, 12)
    }
    held = {k: rmse(m.inverse_transform(m.user_factors_)[out], T[out]) for k, m in fits.items()}
    assert fits[12].loss_ < 0.05 * fits[2].loss_
    assert held[12] > 1.5 * held[2]


# ---------------------------------------------------------------------------- SGD


@pytest.mark.spec("MF-4")
def test_an_sgd_step_touches_two_rows_and_follows_the_gradient():
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    b, c = rng.normal(size=6), rng.normal(size=5)
    d, n, x, lam = 2, 3, 1.7, 0.3

    def loss(U, V, b, c):
        e = x - U[d] @ V[n] - b[d] - c[n]
        return 0.5 * e * e + 0.5 * lam * (U[d] @ U[d] + V[n] @ V[n] + b[d] ** 2 + c[n] ** 2)

    before = [z.copy() for z in (U, V, b, c)]
    step, one = 1e-3, np.ones(6) * lam
    entry = (np.array([d], np.int32), np.array([n], np.int32), np.array([x]))
    sgd_block(*entry, np.array([0]), 1, U, V, b, c, one, one[:5], one, one[:5], step, True)
    for k, z in enumerate((U, V, b, c)):
        row = (d, n, d, n)[k]
        others = np.arange(len(z)) != row
        np.testing.assert_array_equal(z[others], before[k][others])
        gradient = (before[k] - z)[row] / step
        for a, value in enumerate(np.atleast_1d(gradient)):
            ends = []
            for sign in (1, -1):
                moved = [w.copy() for w in before]
                moved[k].reshape(len(z), -1)[row, a] += sign * 1e-5
                ends.append(loss(*moved))
            assert value == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-8)


@pytest.mark.spec("MF-4")
def test_sgd_comes_near_the_loss_of_als():
    full, train, test = films()
    X = np.where(train, full, np.nan)
    settings = {"reg": 0.05, "weighted_reg": True, "biases": True, "random_state": 0}
    one = MatrixFactorization(3, tol=1e-6, max_iter=1000, **settings).fit(X)
    two = MatrixFactorization(3, method="sgd", tol=0, max_iter=400, **settings).fit(X)
    assert one.loss_ <= two.loss_ * (1 + 1e-6)
    assert two.loss_ <= 1.1 * one.loss_
    assert two.certificate_.ok
    assert len(two.loss_trace_) == 1
    assert rmse(two.predict(*np.nonzero(test)), full[test]) < 0.75


def test_sgd_gives_the_same_bits_with_one_thread_and_with_two():
    from threadpoolctl import threadpool_limits

    full, train, _ = films()
    X = np.where(train, full, np.nan)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            model = MatrixFactorization(4, method="sgd", max_iter=5, biases=True, random_state=0)
            found.append(model.fit(X).user_factors_)
    np.testing.assert_array_equal(*found)


# ---------------------------------------------------------------------------- ALS


@pytest.mark.spec("MF-6")
@pytest.mark.parametrize("biases", [False, True])
def test_block_gradients_vanish_after_each_solve(biases):
    X, _ = planted(noise=0.2)
    csr = sp.csr_array(ratings(*np.nonzero(~np.isnan(X)), X[~np.isnan(X)], shape=X.shape))
    k = 3 + biases
    penalties = Penalties(np.full(k, 0.4), np.full(k, 0.7), False, biases)
    users, items = sides(csr, penalties, implicit=False, dtype=np.float64, group=ALONE)
    V = np.random.default_rng(1).normal(size=(40, k))

    def slope(Z, F, shift, lam, matrix):
        known = ~np.isnan(matrix)
        rest = np.where(known, Z @ F.T + shift - np.nan_to_num(matrix), 0.0)
        return rest @ F + lam * Z

    for step, iterate in enumerate(als(users, items, V, penalties, group=ALONE)):
        U, V, _ = iterate.x
        F, shift = features(V, biases=biases)
        assert np.abs(slope(U, F, shift, 0.4, X)).max() < 1e-11
        if step == 5:
            break
    F, shift = features(U, biases=biases)
    solved, gradient, size = shared_item_step(items, F, shift, V, ALONE)  # as ranks do it
    assert np.abs(slope(solved, F, shift, 0.7, X.T)).max() < 1e-11
    found = np.linalg.norm(slope(V, F, shift, 0.7, X.T))
    assert np.sqrt(gradient) == pytest.approx(found, rel=1e-9)
    assert np.sqrt(gradient / size) == pytest.approx(iterate.estimate, rel=1e-9)


@pytest.mark.spec("MF-6")
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_pairs_observed_is_the_full_matrix(biases, weighted):
    X = planted(share=1.1, noise=0.3)[0]
    settings = {"biases": biases, "weighted_reg": weighted, "reg": 0.2, "random_state": 0}
    settings |= {"tol": 1e-10, "max_iter": 20000}
    stored = ratings(*np.indices(X.shape).reshape(2, -1), X.ravel())
    one = MatrixFactorization(3, **settings).fit(X)
    two = MatrixFactorization(3, **settings).fit(stored)
    assert one.loss_ == pytest.approx(two.loss_, rel=1e-12)
    assert one.n_iter_ == two.n_iter_
    np.testing.assert_allclose(one.user_factors_, two.user_factors_, atol=1e-6)
    assert surefit.verify(one, stored).ok  # the same data, however they are stored
    assert one.certificate_.data_id == two.certificate_.data_id


@pytest.mark.spec("MF-6")
def test_it_beats_the_item_means_on_made_ratings():
    full, train, test = films()
    X = np.where(train, full, np.nan)
    model = MatrixFactorization(
        3, reg=4.0, reg_biases=1.0, biases=True, tol=1e-4, max_iter=500, random_state=0
    ).fit(X)
    means = np.nan_to_num(np.nanmean(X, axis=0), nan=3.5)
    ours = rmse(model.predict(*np.nonzero(test)), full[test])
    assert ours < 0.85 * rmse(means[np.nonzero(test)[1]], full[test])
    held = np.where(test, full, np.nan)
    assert model.score(held) == pytest.approx(-ours, rel=1e-12)


def movielens():
    folder = data_folder()
    if folder is None or not (folder / "recsys" / "ml-100k").is_dir():
        pytest.skip("MovieLens 100k is not here; SUREFIT_DATA names the folder of public data")
    with gzip.open(folder / "recsys" / "ml-100k" / "u.data.gz") as file:
        table = np.loadtxt(file, np.int64)
    fold = np.load(folder / "recsys" / "ml-100k" / "splits.npz")["fold"]
    return table[:, 0] - 1, table[:, 1] - 1, table[:, 2].astype(float), fold


@pytest.mark.spec("MF-6")
def test_it_beats_the_item_means_on_movielens():
    users, items, values, fold = movielens()
    train, test = fold != 1, fold == 1
    X = ratings(users[train], items[train], values[train], shape=(943, 1682))
    model = MatrixFactorization(
        5, reg=10.0, reg_biases=3.0, biases=True, tol=1e-2, random_state=0
    ).fit(X)
    counts = np.bincount(items[train], minlength=1682)
    means = np.bincount(items[train], values[train], minlength=1682) / np.maximum(counts, 1)
    means[counts == 0] = values[train].mean()
    ours = rmse(model.predict(users[test], items[test]), values[test])
    assert ours < 0.945 < 1.03 < rmse(means[items[test]], values[test])
    assert model.certificate_.ok


def test_implicit_feedback_is_the_dense_weighted_problem():
    """Every pair counts: the factors solve the normal equations that a loop over all pairs gives."""
    rng = np.random.default_rng(0)
    X, alpha, lam = rng.poisson(0.4, size=(30, 20)).astype(float), 2.0, 0.3
    C, P = 1 + alpha * X, (X > 0).astype(float)
    for solver in ("cholesky", "cg"):
        model = MatrixFactorization(
            4,
            implicit=True,
            alpha=alpha,
            reg=lam,
            solver=solver,
            tol=1e-8,
            max_iter=5000,
            random_state=0,
        ).fit(X)
        U, V = model.user_factors_, model.item_factors_
        exact = np.array(
            [np.linalg.solve((V.T * c) @ V + lam * np.eye(4), V.T @ (c * p)) for c, p in zip(C, P)]
        )
        np.testing.assert_allclose(U, exact, atol=1e-6)
        loss = 0.5 * (C * (P - U @ V.T) ** 2).sum() + 0.5 * lam * ((U**2).sum() + (V**2).sum())
        assert model.loss_ == pytest.approx(loss, rel=1e-12)
        given = MatrixFactorization(
            4,
            implicit=True,
            alpha=None,
            reg=lam,
            solver=solver,
            tol=1e-8,
            max_iter=5000,
            random_state=0,
        ).fit(np.where(X > 0, C, 0.0))
        np.testing.assert_allclose(given.user_factors_, U, atol=1e-6)
        assert model.certificate_.ok
        assert surefit.verify(model, sp.csr_array(X)).ok


# ---------------------------------------------------------------------------- answers


def test_folding_in_is_the_row_of_a_fit():
    full, train, _ = films()
    X = np.where(train, full, np.nan)
    for settings in ({"biases": True}, {"weighted_reg": True}, {}):
        model = MatrixFactorization(3, reg=0.3, random_state=0, tol=1e-2, **settings).fit(X)
        Z = model.transform(X)
        np.testing.assert_allclose(Z[:, :3], model.user_factors_, atol=1e-10)
        if model.biases:
            np.testing.assert_allclose(Z[:, 3], model.user_biases_, atol=1e-10)
        np.testing.assert_allclose(model.transform(X[7:8])[0], Z[7], atol=1e-10)
        i, j = np.nonzero(train)
        np.testing.assert_allclose(model.inverse_transform(Z)[i, j], model.predict(i, j), atol=1e-9)
        assert model.get_feature_names_out().shape == (Z.shape[1],)


def test_recommendations_leave_out_what_was_seen():
    full, train, _ = films()
    X = np.where(train, full, np.nan)
    model = MatrixFactorization(3, reg=3.0, biases=True, tol=1e-2, random_state=0).fit(X)
    items, scores = model.recommend(np.arange(300), 7)
    assert items.shape == scores.shape == (300, 7)
    assert not train[np.arange(300)[:, None], items].any()
    np.testing.assert_allclose(scores, model.predict(np.arange(300)[:, None], items), rtol=1e-10)
    every = model.predict(np.arange(300)[:, None], np.arange(120)[None, :])
    every[train] = -np.inf
    np.testing.assert_array_equal(items, np.argsort(-every, axis=1, kind="stable")[:, :7])
    one, _ = model.recommend(5, 7)
    np.testing.assert_array_equal(one, items[5])
    np.testing.assert_array_equal(model.predict(X), items[:, 0])
    seen, _ = model.recommend(5, 200, exclude_seen=False)
    assert sorted(seen[seen >= 0]) == list(range(120))
    left, low = model.recommend(5, 120)
    assert (left >= 0).sum() == 120 - train[5].sum()
    assert np.isneginf(low[left < 0]).all()
    near, cosines = model.similar_items(3, 4)
    V = model.item_factors_
    assert cosines[0] == pytest.approx(
        V[near[0]] @ V[3] / np.linalg.norm(V[near[0]]) / np.linalg.norm(V[3])
    )
    assert 3 not in near


def test_ratings_from_triplets():
    X = ratings([2, 0, 2], [1, 1, 0], [3.0, 0.0, 4.0], shape=(4, 2))
    assert X.nnz == 3  # the rating of 0 is one
    np.testing.assert_array_equal(X.toarray(), [[0, 0], [0, 0], [4, 3], [0, 0]])
    model = MatrixFactorization(1, random_state=0).fit(X)
    np.testing.assert_array_equal(model.user_factors_[[1, 3]], 0.0)  # nothing is known of them


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_precision_of_the_ratings_is_kept(kind):
    full, train, _ = films()
    X = np.where(train, full, np.nan).astype(kind)
    model = MatrixFactorization(3, biases=True, reg=3.0, tol=1e-3, random_state=0).fit(X)
    assert model.user_factors_.dtype == model.item_biases_.dtype == kind
    assert model.transform(X).dtype == kind
    assert model.certificate_.ok
    same = MatrixFactorization(3, biases=True, reg=3.0, tol=1e-3, random_state=0).fit(
        X.astype(np.float64)
    )
    assert model.loss_ == pytest.approx(same.loss_, rel=1e-4)
