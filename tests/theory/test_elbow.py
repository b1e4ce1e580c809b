"""The WCSS against K: it never rises, ends at 0, and bends where the clusters are (CLU-4)."""

from __future__ import annotations

import warnings
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from rich.console import Console
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from tests.data import load
from tests.theory.test_kmeans_lower_bounds import best_of_all

from surefit.cluster.elbow import ElbowTable, elbow
from surefit.design import RowBlocks

CORNERS = [[0, 0], [8, 0], [0, 8]]


def blobs(seed: int = 0, n: int = 150) -> np.ndarray:
    X, _ = make_blobs(n, centers=CORNERS, random_state=seed)
    return X


@pytest.mark.spec("CLU-4")
def test_the_best_wcss_never_rises_and_ends_at_zero() -> None:
    X = np.random.default_rng(0).normal(size=(7, 2))
    best = [best_of_all(X, np.ones(7), k)[0] for k in range(1, 8)]
    assert all(later <= earlier for earlier, later in pairwise(best))
    assert best[-1] == 0.0
    table = elbow(X, range(1, 8), estimator=KMeans(n_init=20), random_state=0)
    assert table.wcss == pytest.approx(best, abs=1e-12)
    assert (np.diff(table.wcss) <= 0).all()
    assert table.wcss[-1] == 0.0
    assert (table.lower_bound <= np.array(best) + 1e-13).all()


@pytest.mark.spec("CLU-4")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("last", [6, 10, 15])
def test_it_finds_three_on_three_blobs(seed: int, last: int) -> None:
    assert elbow(blobs(seed), range(1, last + 1), estimator=KMeans, random_state=0).chosen == 3


@pytest.mark.parametrize("seed", range(4))
def test_overlapping_blobs_too(seed: int) -> None:
    X, _ = make_blobs(300, centers=3, random_state=seed)
    assert elbow(X, estimator=KMeans(n_init=3), random_state=0).chosen == 3


def test_other_numbers_are_found_as_well() -> None:
    X, _ = make_blobs(500, 10, centers=5, random_state=0)
    assert elbow(X, estimator=KMeans(n_init=3), random_state=0).chosen == 5
    unequal, _ = make_blobs(
        [200, 50, 50, 100], centers=[[0, 0], [6, 0], [0, 6], [20, 20]], random_state=1
    )
    assert elbow(unequal, estimator=KMeans(n_init=3), random_state=0).chosen == 4
    X, _ = load("wine")
    assert elbow(X, estimator=KMeans(n_init=3), random_state=0).chosen == 3


def test_the_gap_statistic_can_say_that_there_are_none() -> None:
    uniform = np.random.default_rng(0).uniform(size=(200, 2))
    with_gap = {"estimator": KMeans(n_init=2), "random_state": 0, "n_references": 8}
    assert elbow(uniform, range(1, 7), **with_gap).chosen == 1
    table = elbow(blobs(), range(1, 7), **with_gap)
    assert table.chosen == 3
    assert "8 uniform reference sets" in table.rule
    assert "gap" in str(table)


def test_each_fit_is_no_worse_than_the_one_before() -> None:
    X = np.random.default_rng(1).normal(size=(300, 3))
    poor = KMeans(init="random", n_init=1, max_iter=3)  # by itself it goes up and down
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for seed in range(3):
            table = elbow(X, [1, 2, 5, 6, 7, 12, 13], estimator=poor, random_state=seed)
            assert (np.diff(table.wcss) <= 0).all()


def test_weights_dense_sparse_and_float32_agree() -> None:
    X = blobs(n=90)
    weights = np.random.default_rng(0).integers(0, 3, 90)
    kinds = {
        "weighted": elbow(X, range(1, 5), estimator=KMeans, sample_weight=weights, random_state=0),
        "repeated": elbow(
            np.repeat(X, weights, axis=0), range(1, 5), estimator=KMeans, random_state=0
        ),
    }
    assert kinds["weighted"].wcss[:3] == pytest.approx(kinds["repeated"].wcss[:3], rel=1e-9)
    dense = elbow(X, range(1, 4), estimator=KMeans, random_state=0)
    sparse = elbow(sp.csr_array(X), range(1, 4), estimator=KMeans, random_state=0)
    assert sparse.wcss == pytest.approx(dense.wcss, rel=1e-9)
    single = elbow(X.astype(np.float32), range(1, 4), estimator=KMeans, random_state=0)
    assert single.wcss == pytest.approx(dense.wcss, rel=1e-4)
    assert single.centres[2].dtype == np.float32


def test_the_same_seed_gives_the_same_table() -> None:
    first, second = (elbow(blobs(), estimator=KMeans, random_state=3) for _ in range(2))
    assert first.columns() == second.columns()


def test_the_table_reads_and_draws() -> None:
    table = elbow(blobs(), range(1, 6), estimator=KMeans, random_state=0)
    assert isinstance(table, ElbowTable)
    lines = str(table).splitlines()
    assert lines[3].endswith("←")
    assert lines[-1].startswith(
        "K = 3: farthest below the chord of log WCSS over K = 1, ..., 5; a heuristic"
    )
    console = Console(width=100, record=True, file=None, quiet=True)
    with console.capture():
        console.print(table)
    assert table.explained[0] == pytest.approx(0.0, abs=1e-9)
    with mpl.rc_context({"backend": "agg"}):
        panel = table.plot(Figure().subplots())
    assert panel.get_xlabel() == "number of clusters K"
    assert {text.get_text() for text in panel.get_legend().get_texts()} >= {"WCSS", "K = 3"}


def test_wrong_arguments_are_named(tmp_path) -> None:
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    with pytest.raises(ValueError, match=r"k_values must be whole numbers from 1 on, got \[0, 1\]"):
        elbow(X, [0, 1], estimator=KMeans)
    with pytest.raises(ValueError, match="k_values must be whole numbers"):
        elbow(X, [], estimator=KMeans)
    with pytest.raises(ValueError, match="n_references must be 0 or at least 2, got 1"):
        elbow(X, [1, 2], estimator=KMeans, n_references=1)
    with pytest.raises(ValueError, match="asks for 4 clusters, and X has 3 distinct rows"):
        elbow(X, [1, 2, 3, 4], estimator=KMeans(n_init=5))
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(ValueError, match="needs a dense array"):
        elbow(RowBlocks(tmp_path / "rows.npy"), [1, 2], estimator=KMeans, n_references=5)


def test_equal_rows_and_two_points() -> None:
    assert elbow(np.ones((5, 2)), [1], estimator=KMeans).chosen == 1
    table = elbow(np.array([[0.0], [1.0]]), [1, 2], estimator=KMeans, random_state=0)
    assert table.chosen == 2
    assert table.explained.tolist() == [0.0, 1.0]
