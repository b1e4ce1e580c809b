"""Wrong tensors, row blocks and sparse matrices: the error says which, where and what to do."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from surefit.design import BlockError, RowBlocks
from surefit.linear_model import (
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    SGDClassifier,
    SGDRegressor,
)

torch = pytest.importorskip("torch")


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 4))
    return X, X @ np.arange(1.0, 5.0) + 0.1 * rng.standard_normal(90)


# ---------------------------------------------------------------------- tensors


def test_a_target_on_another_device_names_both(rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"y is on meta and X is on cpu.*y\.to\(X\.device\)"):
        Ridge().fit(torch.tensor(X), torch.tensor(y, device="meta"))


def test_weights_on_another_device_name_both(rows):
    X, y = rows
    weights = torch.ones(len(y), device="meta")
    with pytest.raises(ValueError, match="sample_weight is on meta and X is on cpu"):
        Ridge().fit(torch.tensor(X), torch.tensor(y), sample_weight=weights)


def test_arrays_with_a_tensor_target_are_refused(rows):
    X, y = rows
    with pytest.raises(TypeError, match="X is ndarray but y or sample_weight is a torch tensor"):
        Ridge().fit(X, torch.tensor(y))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "complex64"])
def test_half_precision_is_refused_with_a_remedy(rows, kind):
    X, y = rows
    with pytest.raises(TypeError, match=rf"tensor of torch.{kind}: pass X\.float\(\)"):
        Ridge().fit(torch.tensor(X).to(getattr(torch, kind)), torch.tensor(y))


def test_mixed_precision_is_taken_in_that_of_x(rows):
    X, y = rows
    mixed = Ridge().fit(torch.tensor(X), torch.tensor(y, dtype=torch.float32))
    assert mixed.coef_.dtype == torch.float64
    same = Ridge().fit(X, y.astype(np.float32).astype(np.float64))
    np.testing.assert_allclose(mixed.coef_.numpy(), same.coef_, rtol=1e-12)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_values_that_are_not_finite(rows, value, word):
    X, y = rows
    broken = torch.tensor(X)
    broken[3, 2] = value
    with pytest.raises(ValueError, match=f"X contains {word}"):
        LinearRegression().fit(broken, torch.tensor(y))
    target = torch.tensor(y)
    target[5] = value
    with pytest.raises(ValueError, match="y contains NaN or infinity"):
        LinearRegression().fit(torch.tensor(X), target)


def test_shapes_of_tensors(rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"Expected 2D array, got a tensor of shape \(90,\)"):
        Ridge().fit(torch.tensor(y), torch.tensor(y))
    with pytest.raises(ValueError, match="X has 90 rows and y has 89"):
        Ridge().fit(torch.tensor(X), torch.tensor(y[1:]))
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        Ridge().fit(torch.zeros(0, 3), torch.zeros(0))
    model = Ridge().fit(torch.tensor(X), torch.tensor(y))
    with pytest.raises(ValueError, match="X has 3 features, but Ridge is expecting 4"):
        model.predict(torch.tensor(X[:, :3]))


def test_text_labels_next_to_a_tensor(rows):
    X, y = rows
    with pytest.raises(ValueError, match="LabelEncoder"):
        LogisticRegression().fit(torch.tensor(X), np.where(y > 0, "yes", "no"))


def test_an_estimator_that_walks_over_columns_says_what_to_do(rows):
    X, y = rows
    blocks = RowBlocks(lambda: iter([X]))
    with pytest.raises(TypeError, match="LassoCV does not take row blocks on disk"):
        LassoCV().fit(blocks, y)
    with pytest.raises(TypeError, match="LinearRegression does not take row blocks on disk"):
        LinearRegression(positive=True).fit(blocks, y)


# ---------------------------------------------------------------------- row blocks


def test_blocks_whose_columns_differ_name_both_files(rows, tmp_path):
    X, _ = rows
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, :3])
    with pytest.raises(BlockError, match=r"b\.npy has 3 columns, .*a\.npy has 4"):
        RowBlocks(tmp_path)


def test_an_iterator_whose_columns_differ_names_the_block(rows):
    X, _ = rows
    with pytest.raises(BlockError, match="block 1 of the iterator has 2 columns"):
        RowBlocks(lambda: iter([X, X[:, :2]]))


def test_a_file_that_vanishes_midway_ends_the_fit(rows, tmp_path):
    X, y = rows
    np.save(tmp_path / "a.npy", X[:50])
    np.save(tmp_path / "b.npy", X[50:])
    blocks = RowBlocks(tmp_path)
    os.remove(tmp_path / "b.npy")
    model = Ridge()
    with pytest.raises(BlockError, match=r"b\.npy can no longer be read"):
        model.fit(blocks, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("estimator", [SGDRegressor(), SGDClassifier(), Perceptron()], ids=str)
def test_a_block_that_vanishes_in_a_later_epoch_ends_the_fit(rows, estimator):
    """Two epochs are made; the third breaks off, and what was reached is not passed off as a model."""
    X, y = rows
    passes = []

    def parts():
        passes.append(1)
        yield X[:50]
        if len(passes) == 4:  # the first pass counts the rows
            raise OSError("the disk is gone")
        yield X[50:]

    target = y if isinstance(estimator, SGDRegressor) else (y > 0).astype(int)
    estimator = estimator.set_params(max_iter=10, tol=None)
    for again in (False, True):  # also where there is a model of an earlier fit
        passes.clear()
        blocks = RowBlocks(parts)
        if again:
            estimator.fit(X, target)
        with pytest.raises(BlockError, match="block 1 of the iterator could not be read: the disk"):
            estimator.fit(blocks, target)
        assert len(passes) == 4
        with pytest.raises(NotFittedError):
            estimator.predict(X)
        assert not hasattr(estimator, "certificate_")


def test_a_file_cut_short_names_the_row(rows, tmp_path):
    X, y = rows
    path = tmp_path / "a.npy"
    np.save(path, X)
    blocks = RowBlocks(path, block_bytes=20 * X.shape[1] * 8)
    good = Ridge().fit(blocks, y)
    with open(path, "r+b") as file:
        file.truncate(128 + 45 * 4 * 8)
    with pytest.raises(BlockError, match=r"a\.npy is cut short: 90 rows .* ends at row 45"):
        good.fit(blocks, y)
    assert not hasattr(good, "certificate_")  # the earlier one is not passed off as this fit's


def test_an_iterator_that_breaks_or_changes_is_noticed(rows):
    X, y = rows
    state = {"calls": 0}

    def shorter():
        state["calls"] += 1
        return iter([X] if state["calls"] < 3 else [X[:80]])

    blocks = RowBlocks(shorter)
    with pytest.raises(BlockError, match="gave 80 rows in pass"):
        Ridge().fit(blocks, y)

    def broken():
        state["calls"] += 1
        yield X[:40]
        if state["calls"] > 100:
            raise OSError("the network is gone")
        yield X[40:]

    blocks = RowBlocks(broken)
    state["calls"] = 200
    with pytest.raises(BlockError, match="block 1 of the iterator could not be read: the network"):
        Ridge().fit(blocks, y)


def test_missing_values_in_a_block_name_row_and_column(rows, tmp_path):
    X, y = rows
    X[61, 2] = np.nan
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ValueError, match=r"X contains NaN: row 61, column 2 \(.*a\.npy\)"):
        Ridge().fit(RowBlocks(tmp_path / "a.npy", block_bytes=500), y)


def test_files_that_are_no_tables(rows, tmp_path):
    X, _ = rows
    np.save(tmp_path / "flat.npy", X[:, 0])
    with pytest.raises(BlockError, match=r"flat\.npy has shape \(90,\)"):
        RowBlocks(tmp_path / "flat.npy")
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    with pytest.raises(BlockError, match="not numbers"):
        RowBlocks(tmp_path / "text.npy")
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    with pytest.raises(BlockError, match="column by column"):
        RowBlocks(tmp_path / "columns.npy")
    (tmp_path / "junk.npy").write_bytes(b"no header at all")
    with pytest.raises(BlockError, match=r"junk\.npy cannot be read as a \.npy file"):
        RowBlocks(tmp_path / "junk.npy")
    np.save(tmp_path / "pickled.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(BlockError, match="not numbers"):
        RowBlocks(tmp_path / "pickled.npy")
    with pytest.raises(BlockError, match=r"only \.npy and \.parquet"):
        RowBlocks(tmp_path / "table.csv")
    with pytest.raises(BlockError, match="cannot be read"):
        RowBlocks(tmp_path / "absent.npy")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BlockError, match=r"has no \.npy or"):
        RowBlocks(tmp_path / "empty")


def test_parquet_with_target_weight_and_names(rows, tmp_path):
    pl = pytest.importorskip("polars")
    X, y = rows
    weights = np.arange(90) % 3 + 1.0
    frame = pl.DataFrame(X, schema=list("abcd")).with_columns(y=pl.Series(y), w=pl.Series(weights))
    frame[:30].write_parquet(tmp_path / "1.parquet")
    frame[30:].write_parquet(tmp_path / "2.parquet")
    blocks = RowBlocks(tmp_path, target="y", weight="w", block_bytes=300)
    model = Ridge().fit(blocks, blocks.target, sample_weight=blocks.weight)
    np.testing.assert_allclose(model.coef_, Ridge().fit(X, y, weights).coef_, rtol=1e-10)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.certificate_.ok
    with pytest.raises(BlockError, match="has no column 'z'"):
        RowBlocks(tmp_path, target="z")
    frame.with_columns(a=pl.lit("text")).write_parquet(tmp_path / "3.parquet")
    with pytest.raises(BlockError, match=r"3\.parquet: the column 'a' holds String"):
        RowBlocks(tmp_path, target="y", weight="w")
    (tmp_path / "3.parquet").unlink()
    frame.rename({"a": "A"}).write_parquet(tmp_path / "4.parquet")
    with pytest.raises(BlockError, match="same columns in the same order"):
        RowBlocks(tmp_path, target="y", weight="w")


def test_targets_of_an_iterator(rows):
    X, y = rows
    pairs = RowBlocks(lambda: zip(np.array_split(X, 5), np.array_split(y, 5), strict=True))
    np.testing.assert_array_equal(pairs.target, y)
    with pytest.raises(ValueError, match="without targets"):
        _ = RowBlocks(lambda: iter([X])).target
    with pytest.raises(BlockError, match="90 rows and 89 targets"):
        RowBlocks(lambda: iter([(X, y[1:])]))


# ---------------------------------------------------------------------- sparse


@pytest.mark.parametrize(
    "estimator", [LinearRegression(), Ridge(), Lasso(0.01), SGDRegressor(random_state=0)]
)
def test_sparse_storage_does_not_matter(rows, estimator):
    """Explicit zeros, unsorted and duplicate indices, 64-bit indices: the same matrix, the same model."""
    X, y = rows
    X[np.abs(X) < 0.8] = 0.0
    plain = sp.csr_array(X)
    zeros = plain.copy()
    zeros.data[::7] = 0.0
    reference = estimator.fit(zeros.toarray(), y).coef_.copy()
    np.testing.assert_allclose(estimator.fit(zeros, y).coef_, reference, rtol=1e-8, atol=1e-12)
    unsorted = zeros.copy()
    for i in range(unsorted.shape[0]):
        part = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
        unsorted.data[part] = unsorted.data[part][::-1].copy()
    unsorted.has_sorted_indices = False
    coo = sp.coo_array(zeros)
    doubled = sp.coo_array(
        (np.tile(coo.data / 2, 2), (np.tile(coo.row, 2), np.tile(coo.col, 2))), shape=coo.shape
    )
    wide = zeros.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for given in (unsorted, doubled, sp.csr_array(wide), sp.csc_matrix(wide)):
        np.testing.assert_allclose(estimator.fit(given, y).coef_, reference, rtol=1e-8, atol=1e-12)
        assert estimator.certificate_.ok


def test_an_l1_penalty_with_three_classes_refuses_a_tensor(rows):
    X, y = rows
    codes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    with pytest.raises(TypeError, match=r"more than two classes.*l1_ratio=0"):
        LogisticRegression(l1_ratio=1.0).fit(torch.tensor(X), torch.tensor(codes))
