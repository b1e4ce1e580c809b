"""The order of rows is a pure function of (seed, epoch, index), whatever the form of the data."""

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse as sp
from scipy import stats

torch = pytest.importorskip("torch")

from surefit.design import RowBlocks  # noqa: E402
from surefit.nn.batches import Batches, row_at  # noqa: E402


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17, 1000, 4096, 70_000])
def test_an_epoch_is_a_permutation(n):
    for seed, epoch in [(0, 0), (0, 1), (12345678901, 7)]:
        assert np.array_equal(np.sort(row_at(seed, epoch, np.arange(n), n)), np.arange(n))


def test_order_depends_on_seed_and_epoch_and_on_nothing_else():
    n = 500
    order = row_at(3, 4, np.arange(n), n)
    for other in [row_at(3, 5, np.arange(n), n), row_at(4, 4, np.arange(n), n)]:
        assert (order != other).mean() > 0.9
    one_by_one = [int(row_at(3, 4, [i], n)[0]) for i in range(n)]
    assert one_by_one == order.tolist()
    # written down once: no version of any library may change it
    assert row_at(0, 0, np.arange(8), 8).tolist() == [1, 4, 6, 7, 0, 5, 3, 2]


def test_orders_are_equally_likely():
    """The first 3 of 5 rows, 60 orders, over 4800 epochs: chi-squared below its quantile at 1 - 1e-6."""
    counts: dict = {}
    for epoch in range(4800):
        order = tuple(row_at(1, epoch, np.arange(5), 5))[:3]
        counts[order] = counts.get(order, 0) + 1
    found = np.array(list(counts.values()) + [0] * (60 - len(counts)))
    chi2 = ((found - 80) ** 2 / 80).sum()
    assert chi2 < stats.chi2.isf(1e-6, 59)


def test_neighbours_in_the_data_are_not_neighbours_in_an_epoch():
    """The correlation of place and row is that of a random permutation: sd 1/sqrt(n - 1)."""
    n = 10_000
    for epoch in range(20):
        r = np.corrcoef(np.arange(n), row_at(0, epoch, np.arange(n), n))[0, 1]
        assert abs(r) < 5 / np.sqrt(n - 1)


@pytest.mark.parametrize("batch_size", [1, 7, 64, 300])
def test_batches_cut_the_order(batch_size):
    X = np.arange(300.0)[:, None]
    batches = Batches((X, X[:, 0]), batch_size=batch_size, seed=9)
    for epoch in (0, 3):
        rows = np.concatenate([batches.rows(epoch, k) for k in range(batches.steps)])
        assert np.array_equal(rows, row_at(9, epoch, np.arange(300), 300))
    x, y, weight = batches.fetch(batches.rows(3, 0))
    assert np.array_equal(x[:, 0].numpy(), row_at(9, 3, np.arange(batch_size), 300))
    assert torch.equal(x[:, 0], y)
    assert weight is None


def test_long_epochs_are_ordered_in_chunks(monkeypatch):
    from surefit.nn import batches as module

    monkeypatch.setattr(module, "_CHUNK", 64)
    X = np.zeros((1000, 1))
    batches = Batches((X, X), batch_size=24, seed=2)
    rows = np.concatenate([batches.rows(1, k) for k in range(batches.steps)])
    assert np.array_equal(rows, row_at(2, 1, np.arange(1000), 1000))


class Pairs:
    def __init__(self, X, y):
        self.X, self.y = X, y

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], self.y[i]


def test_all_forms_of_data_give_the_same_tensors(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)).astype(np.float32), rng.integers(0, 4, 50)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "big.npy", X.astype(">f8"))
    np.save(tmp_path / "long.npy", X.astype(np.longdouble))
    read_only = X.copy()
    read_only.flags.writeable = False
    forms = {
        "arrays": (X, y),
        "tensors": (torch.from_numpy(X), torch.from_numpy(y)),
        "memory map": (np.load(tmp_path / "X.npy", mmap_mode="r"), y),
        "read only": (read_only, y.astype(np.int32)),
        "big-endian": (X.astype(">f4"), y.astype(">i2")),
        "big-endian memory map": (np.load(tmp_path / "big.npy", mmap_mode="r"), y),
        "long double memory map": (np.load(tmp_path / "long.npy", mmap_mode="r"), y),
        "tables": (pandas.DataFrame(X), pandas.Series(y)),
        "float64, Fortran order": (np.asfortranarray(X.astype(float)), y),
        "backwards": (np.ascontiguousarray(X[::-1])[::-1], y),
        "dataset": Pairs(X, y),
        "row blocks": (RowBlocks(tmp_path / "X.npy", block_bytes=100), y),
        "row blocks with targets": RowBlocks(lambda: iter([(X[:20], y[:20]), (X[20:], y[20:])])),
    }
    rows = [3, 49, 0, 7]
    for name, data in forms.items():
        x, target, _ = Batches(data).fetch(rows)
        assert (x.dtype, target.dtype) == (torch.float32, torch.int64), name
        np.testing.assert_array_equal(x.numpy(), X[rows], err_msg=name)
        np.testing.assert_array_equal(target.numpy(), y[rows], err_msg=name)


def test_long_double_is_not_cut_down_to_single_and_half_is_widened(tmp_path):
    X = np.array([[1 / 3, 1e300], [2 / 3, -1e-300]])
    np.save(tmp_path / "X.npy", X.astype(np.longdouble))
    for given in (X.astype(np.longdouble), np.load(tmp_path / "X.npy", mmap_mode="r")):
        x = Batches(given, dtype=torch.float64).fetch([1, 0])[0]
        assert x.tolist() == X[::-1].tolist()
    half = Batches(X[:, :1].astype(np.float16)).fetch([0, 1])[0]
    assert half.tolist() == X[:, :1].astype(np.float16).tolist()


@pytest.mark.parametrize("form", [np.asarray, pandas.DataFrame, polars.DataFrame])
def test_without_targets_the_input_is_the_target(form):
    """A table is no dataset of pairs, though it has a length and square brackets."""
    x, y, _ = Batches(form(np.eye(4))).fetch([2])
    assert x is y
    assert x.tolist() == [[0, 0, 1, 0]]


def test_a_mark_tells_data_apart_and_is_the_same_for_the_same_numbers():
    X, y = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32), np.arange(300) % 2
    mark = Batches((X, y)).mark()
    for same in [
        (X.astype(float), y),
        (torch.from_numpy(X), y.astype(np.int8)),
        (X[::-1][::-1], y),
    ]:
        assert Batches(same, batch_size=7, seed=3).mark() == mark
    for other in [(X + 1, y), (X, 1 - y), (X[:-1], y[:-1]), (X[::-1], y)]:
        assert Batches(other).mark() != mark
    weighed = [Batches((X, y), sample_weight=w).mark() for w in (np.ones(300), np.arange(300.0))]
    assert len({mark, *weighed}) == 3
    sparse = [Batches((sp.csr_array(np.maximum(X, low)), y)).mark() for low in (0, 0, 0.5)]
    assert (sparse[0] == sparse[1], sparse[0] == sparse[2]) == (True, False)
    assert Batches(Pairs(X, y)).mark() is None  # a dataset may draw what it gives


def test_pictures_and_tokens_keep_their_type():
    assert Batches(np.zeros((3, 2, 2), np.uint8)).fetch([0])[0].dtype == torch.uint8
    x, y, _ = Batches((np.zeros((3, 2), np.int64), np.zeros(3))).fetch([0])
    assert x.dtype == torch.int64
    assert y.dtype == torch.float32


@pytest.mark.parametrize(
    ("data", "settings", "words"),
    [
        ((np.eye(3), np.ones(2)), {}, "X has 3 rows and y has 2"),
        ((np.eye(0), np.ones(0)), {}, "no rows"),
        ((np.eye(3), np.ones(3)), {"batch_size": 0}, "batch_size must be at least 1"),
        ((np.eye(3), np.ones(3)), {"sample_weight": [1, 2]}, r"shape \(3,\), got \(2,\)"),
        ((np.eye(3), np.ones(3)), {"sample_weight": [1, -2, 1]}, "not negative"),
        ((np.eye(3), np.ones(3)), {"sample_weight": [0, 0, 0]}, "not all zero"),
        ((np.eye(3), np.array(["a", "b", "c"])), {}, "y holds <U1"),
        (7, {}, "data must be"),
        ((np.eye(3), np.ones(3), 1), {}, "a pair"),
    ],
)
def test_wrong_data(data, settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        Batches(data, **settings)


def test_a_place_outside_the_epoch():
    with pytest.raises(ValueError, match="from 0 to n - 1 = 4"):
        row_at(0, 0, [5], 5)
