"""Ratings that are wrong, missing or singular: an error that names the remedy, or a documented answer."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import surefit
from surefit.decomposition import MatrixFactorization, ratings

X = np.array([[5.0, 3.0, np.nan], [4.0, np.nan, 1.0], [np.nan, 1.0, 5.0]])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1], [0, 3], [1.0, 2.0]), r"items holds 3, but shape=\(2, 3\) has numbers up to 2"),
        (([0, -1], [0, 1], [1.0, 2.0]), "users holds -1: numbers count from 0"),
        (([0, 0], [1, 1], [1.0, 2.0]), r"name 1 pair\(s\) more than once, first \(0, 1\)"),
        (([0, 1], [0, 1], [1.0, np.nan]), r"values\[1\] is nan: leave out pairs"),
        (([0, 1], [0, 1], [1.0]), "must be of one length"),
        ((["a", "b"], [0, 1], [1.0, 2.0]), "users must be whole numbers"),
        (([0.5, 1], [0, 1], [1.0, 2.0]), "users must be whole numbers"),
        (([[0, 1]], [0, 1], [1.0, 2.0]), "users must have one dimension"),
        (([0, 1], [0, 1], ["x", "y"]), "values must be numbers"),
    ],
)
def test_wrong_triplets(arguments, words):
    with pytest.raises(ValueError, match=words):
        ratings(*arguments, shape=(2, 3))


def test_no_triplets():
    with pytest.raises(ValueError, match="give shape="):
        ratings([], [], [])
    empty = ratings(np.array([], int), np.array([], int), [], shape=(2, 3))
    with pytest.raises(ValueError, match=r"X of shape \(2, 3\) holds no rating"):
        MatrixFactorization().fit(empty)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_a_pair_stored_twice(form):
    twice = sp.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    if form != "coo":
        compressed = sp.csr_array if form == "csr" else sp.csc_array
        indptr = [0, 2, 3] if form == "csr" else [0, 1, 3]
        indices = [1, 1, 0] if form == "csr" else [1, 0, 0]
        twice = compressed(([1.0, 2.0, 3.0], indices, indptr), shape=(2, 2))
    with pytest.raises(ValueError, match="more than one rating of a pair"):
        MatrixFactorization().fit(twice)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"implicit": True, "biases": True}, "biases=True is for ratings"),
        ({"implicit": True, "method": "sgd"}, "use method='als'"),
        ({"solver": "cg", "reg": 0.0}, "needs penalties above 0"),
        ({"solver": "cg", "implicit": True, "weighted_reg": True}, "one penalty for all rows"),
        ({"solver": "cg", "device": "cpu"}, "use solver='cholesky'"),
        ({"method": "sgd", "device": "cpu"}, "on the CPU"),
        ({"method": "sgd", "learning_rate": 50.0}, "SGD diverged with learning_rate=50"),
    ],
)
def test_parameters_that_do_not_go_together(settings, words):
    data = np.nan_to_num(X) if settings.get("implicit") else X
    with pytest.raises(ValueError, match=words):
        MatrixFactorization(2, random_state=0, **settings).fit(data)


def test_entries_that_cannot_be():
    with pytest.raises(ValueError, match="X holds -1: with implicit=True"):
        MatrixFactorization(implicit=True).fit([[1.0, -1.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="NaN"):
        MatrixFactorization(implicit=True).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        MatrixFactorization().fit([[1.0, np.inf], [0.0, 2.0]])
    broken = sp.csr_array(np.nan_to_num(X))
    broken.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MatrixFactorization().fit(broken)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        surefit.verify(MatrixFactorization(1).fit(X), X, sample_weight=np.ones(3))


def test_unknown_users_and_items():
    model = MatrixFactorization(1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="users holds 3, but the model knows users 0 to 2"):
        model.predict(3, 0)
    with pytest.raises(ValueError, match="items holds -1"):
        model.predict(0, -1)
    with pytest.raises(ValueError, match="users must be whole numbers"):
        model.recommend(0.5)
    with pytest.raises(ValueError, match="n must be at least 1"):
        model.recommend(0, 0)
    with pytest.raises(ValueError, match="X has 2 rows, but the model has 3 users"):
        model.score(X[:2])
    with pytest.raises(ValueError, match="Z must have 1 columns"):
        model.inverse_transform(np.ones((2, 3)))
    whole = MatrixFactorization(1, random_state=0).fit(np.nan_to_num(X))
    with pytest.raises(ValueError, match="pass exclude_seen=False"):
        whole.recommend(0)


@pytest.mark.parametrize(
    "settings",
    [{}, {"biases": True}, {"weighted_reg": True}, {"reg": 0.0}, {"device": "cpu"}, {"implicit": True},
     {"implicit": True, "solver": "cg"}, {"method": "sgd", "biases": True}, {"biases": True, "solver": "cg"}],
    ids=str,
)  # fmt: skip
def test_users_and_items_without_ratings(settings):
    """They have no part in the loss: factors 0, and a bias of 0."""
    data = ratings([0, 0, 1, 3], [0, 1, 1, 3], [5.0, 3.0, 4.0, 2.0], shape=(5, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", surefit.CertificateWarning)
        model = MatrixFactorization(2, random_state=0, tol=1e-6, max_iter=2000, **settings).fit(
            data
        )
    assert np.isfinite(model.user_factors_).all()
    assert np.isfinite(model.item_factors_).all()
    if model.method == "als":
        np.testing.assert_array_equal(model.user_factors_[[2, 4]], 0.0)
        np.testing.assert_allclose(model.item_factors_[[2, 4]], 0.0, atol=1e-6)
        if model.biases:
            assert model.predict(2, 0) == pytest.approx(model.global_mean_ + model.item_biases_[0])
    np.testing.assert_array_equal(model.transform(ratings([1], [0], [4.0], shape=(2, 5)))[0], 0.0)
    assert model.certificate_["loss"].status is surefit.Status.HOLDS


@pytest.mark.parametrize("kind", ["full", "sparse", "batched"])
def test_more_components_than_rank_without_a_penalty(kind):
    """Singular systems: the solution of least norm, and an exact fit."""
    full = np.random.default_rng(0).normal(size=(6, 4))
    data = full if kind == "full" else ratings(*np.indices(full.shape).reshape(2, -1), full.ravel())
    device = "cpu" if kind == "batched" else None
    model = MatrixFactorization(9, reg=0.0, tol=1e-8, device=device, random_state=0).fit(data)
    assert model.loss_ < 1e-18
    np.testing.assert_allclose(model.user_factors_ @ model.item_factors_.T, full, atol=1e-8)


@pytest.mark.parametrize("settings", [{}, {"biases": True}, {"method": "sgd", "biases": True}])
def test_all_ratings_equal(settings):
    data = np.where(np.isnan(X), np.nan, 3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = MatrixFactorization(
            1, reg=1e-6, random_state=0, tol=1e-6, max_iter=5000, **settings
        ).fit(data)
    assert model.predict(0, 0) == pytest.approx(3.0, abs=1e-2)
    assert model.certificate_.ok


def test_one_user_one_item():
    model = MatrixFactorization(1, random_state=0, tol=1e-9, max_iter=5000).fit([[4.0]])
    assert model.predict(0, 0) == pytest.approx(4.0 - 0.1, abs=1e-5)  # soft-thresholded
    assert model.certificate_.ok
