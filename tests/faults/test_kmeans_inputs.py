"""Wrong input to k-means: each fault has its error, in scikit-learn's words where it has some."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from surefit.cluster import KMeans, MiniBatchKMeans, kmeans_plusplus
from surefit.design import RowBlocks

X = np.random.default_rng(0).standard_normal((20, 3))
BOTH = pytest.mark.parametrize("kind", [KMeans, MiniBatchKMeans])


@BOTH
def test_more_clusters_than_rows(kind):
    with pytest.raises(ValueError, match=r"n_samples=20 should be >= n_clusters=21\."):
        kind(21).fit(X)
    with pytest.raises(ValueError, match=r"n_samples=20 should be >= n_clusters=21\."):
        kmeans_plusplus(X, 21)


def test_fewer_distinct_rows_than_clusters():
    rows = np.repeat(X[:3], 5, axis=0)
    with pytest.warns(
        ConvergenceWarning,
        match=r"Number of distinct clusters \(3\) found smaller than n_clusters \(5\)",
    ):
        model = KMeans(5, random_state=0).fit(rows)
    assert model.inertia_ < 1e-29  # (x - m) + m is x to an ulp
    assert model.certificate_.ok
    assert "hold no row" in model.certificate_["centres"].statement


def test_duplicate_rows_and_one_row():
    model = KMeans(1).fit(X[:1])
    assert model.inertia_ == 0.0
    assert model.certificate_.ok
    same = KMeans(1).fit(np.ones((7, 2)))
    assert same.cluster_centers_.tolist() == [[1.0, 1.0]]
    assert KMeans(20, random_state=0).fit(X).inertia_ < 1e-29


@BOTH
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(kind, value):
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match="Input X contains"):
        kind(2).fit(bad)
    model = kind(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="Input X contains"):
        model.predict(bad)
    if kind is KMeans:
        with pytest.raises(ValueError, match="Input X contains"):
            kind(2).fit(RowBlocks(bad))


def test_values_whose_squares_overflow():
    with pytest.raises(ValueError, match=r"squares overflow float64\. Rescale X"):
        KMeans(2).fit(X * 1e200)


@BOTH
def test_an_init_of_the_wrong_shape(kind):
    with pytest.raises(
        ValueError,
        match=r"The shape of the initial centers \(2, 3\) does not match the number of clusters 4",
    ):
        kind(4, init=X[:2], n_init=1).fit(X)
    with pytest.raises(ValueError, match=r"does not match the number of features of the data 3"):
        kind(2, init=X[:2, :2], n_init=1).fit(X)
    with pytest.raises(ValueError, match="does not match the number of clusters"):
        kind(4, init=lambda rows, k, random_state: rows[:2], n_init=1).fit(X)
    with pytest.warns(RuntimeWarning, match="Explicit initial center position passed"):
        kind(2, init=X[:2], n_init=3).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        kind(2, init=np.full((2, 3), np.nan), n_init=1).fit(X)


@BOTH
def test_weights(kind):
    with pytest.raises(ValueError, match=r"[Nn]egative values in data"):
        kind(2).fit(X, sample_weight=np.r_[-1.0, np.ones(19)])
    with pytest.raises(ValueError, match="sample_weight"):
        kind(2).fit(X, sample_weight=np.ones(7))
    with pytest.raises(ValueError, match="at least one non-zero number"):
        kind(2).fit(X, sample_weight=np.zeros(20))


@BOTH
def test_tensors_of_half_precision(kind):
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"float16: pass X.float\(\) or X.double\(\)"):
        kind(2).fit(torch.zeros((20, 3), dtype=torch.float16))
    with pytest.raises(ValueError, match="finite and non-negative"):
        kind(2).fit(torch.as_tensor(X), sample_weight=torch.full((20,), -1.0))


def test_mini_batches_take_no_row_blocks():
    with pytest.raises(TypeError, match="MiniBatchKMeans does not take row blocks on disk"):
        MiniBatchKMeans(2).fit(RowBlocks(X))


@BOTH
def test_columns_that_differ(kind):
    model = kind(2, random_state=0).fit(X)
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match="X has 2 features, but"):
            method(X[:, :2])


WRONG = {
    "n_clusters": 0,
    "tol": -1.0,
    "max_iter": 0,
    "init": "near",
    "n_init": 0,
    "algorithm": "full",
    "certify": "some",
}


@pytest.mark.parametrize(("name", "value"), WRONG.items())
def test_parameters(name, value):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of KMeans must be"):
        KMeans(**{name: value}).fit(X)


def test_elkan_with_one_cluster():
    with pytest.warns(
        RuntimeWarning, match="algorithm='elkan' doesn't make sense for a single cluster"
    ):
        KMeans(1, algorithm="elkan").fit(X)
