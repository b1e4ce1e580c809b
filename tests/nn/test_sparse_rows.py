"""Perceptrons on rows of which most entries are zero: the textbook's products, zeros left out."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import neural_network as theirs

torch = pytest.importorskip("torch")

from surefit import _team  # noqa: E402
from surefit.neural_network import MLPClassifier, MLPRegressor  # noqa: E402
from surefit.nn.batches import Batches  # noqa: E402
from surefit.nn.mlp import MLP  # noqa: E402
from surefit.nn.sparse_rows import (  # noqa: E402
    SparseRows,
    linear,
    mostly_zero,
    product,
    transposed_product,
)
from surefit.nn.train import train  # noqa: E402

from .small import equal  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def sparse_table(n=300, d=40, share=0.1, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < share)
    return X.astype(dtype), np.digitize(X[:, :10].sum(axis=1), [-0.3, 0.3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.3, 1.0])
@pytest.mark.parametrize("input_major", [False, True])
def test_products_and_gradients_are_those_of_dense_rows(dtype, share, input_major):
    """Up to the order of a sum of at most 70 terms of order 1: 70 eps, and as many for each of them."""
    rng = np.random.default_rng(1)
    X = sparse_table(50, 70, share)[0].astype(str(dtype)[6:])
    weight = torch.tensor(rng.normal(size=(13, 70)), dtype=dtype)
    weight = weight.t().contiguous().t() if input_major else weight
    bias, slope = torch.tensor(rng.normal(size=13), dtype=dtype), torch.randn(50, 13, dtype=dtype)
    found = []
    for rows in (SparseRows.of(X), SparseRows.of(sp.csc_array(X)), torch.from_numpy(X)):
        w, b = weight.clone().requires_grad_(), bias.clone().requires_grad_()
        out = (
            linear(rows, w, b)
            if isinstance(rows, SparseRows)
            else torch.nn.functional.linear(rows, w, b)
        )
        out.backward(slope)
        found.append([out.detach(), w.grad, b.grad])
    for mine in found[:2]:
        for ours, dense in zip(mine, found[2], strict=True):
            assert (ours - dense).abs().max() <= 100 * torch.finfo(dtype).eps * 10
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("columns", [1, 16, 31, 32, 64, 70])
@pytest.mark.parametrize(("n", "d"), [(1, 5), (16, 32), (33, 47), (200, 16)])
def test_any_shape_and_order_of_the_table(n, d, columns, dtype):
    """Panels of 32 columns and tiles of 16 rows, whole and in part, tables by rows and by columns."""
    generator = torch.Generator().manual_seed(n + d + columns)
    for share in (0.05, 0.6):  # few entries a row of the table: it is read where it lies
        X = torch.randn(n, d, generator=generator, dtype=dtype)
        X *= torch.rand(n, d, generator=generator) < share
        rows = SparseRows.of(X.numpy())
        for times, given, length in ((product, X, d), (transposed_product, X.t(), n)):
            table = torch.randn(length, columns, generator=generator, dtype=dtype)
            bound = 2 * length * torch.finfo(dtype).eps * (given.abs() @ table.abs())
            for lies in (table, table.t().contiguous().t()):
                assert ((times(rows, lies) - given @ lies).abs() <= bound).all()


@pytest.mark.parametrize("without", ["a second thread", "GNU's OpenMP"])
def test_sums_are_the_same_for_any_number_of_threads(without, monkeypatch):
    X, _ = sparse_table(500, 90, 0.2)
    rows, table = SparseRows.of(X), torch.randn(90, 300, dtype=torch.float64)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        several = product(rows, table), transposed_product(rows, table[:1].expand(500, 300))
        if without == "a second thread":
            torch.set_num_threads(1)
        else:
            monkeypatch.setattr(_team, "_parallel", lambda: None)
        alone = product(rows, table), transposed_product(rows, table[:1].expand(500, 300))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(several, alone, strict=True))


def test_compressed_rows_may_be_in_any_order_and_doubled():
    X = sp.coo_array(([1.0, 2.0, 4.0, 8.0], ([0, 0, 1, 0], [2, 2, 0, 1])), shape=(3, 4))
    rows = SparseRows.of(X)
    assert rows.dense().tolist() == X.toarray().tolist()
    assert rows.take(np.array([2, 0, 0])).dense().tolist() == X.toarray()[[2, 0, 0]].tolist()
    assert (len(rows), rows.shape) == (3, (3, 4))
    backwards = sp.csr_array((np.array([5, 6]), np.array([3, 1]), np.array([0, 2])), shape=(1, 4))
    assert SparseRows.of(backwards).dense().tolist() == [[0, 6, 0, 5]]


def test_entries_may_lie_apart_in_memory():
    """scipy keeps entries that are a part of a longer array."""
    X, _ = sparse_table(60, 40, 0.2)
    given, table = sp.csr_array(X), torch.randn(40, 7, dtype=torch.float64)
    same = product(SparseRows.of(X), table)
    for data in (np.repeat(given.data, 2)[::2], given.data[::-1].copy()[::-1]):
        apart = sp.csr_array((data, given.indices, given.indptr), shape=X.shape)
        assert not apart.data.flags.c_contiguous
        rows = SparseRows.of(apart)
        assert rows.dense().tolist() == X.tolist()
        assert torch.equal(product(rows, table), same)


def test_every_second_row_and_rows_backwards():
    X, _ = sparse_table(21, 40, 0.2)
    rows, table = SparseRows.of(X), torch.randn(40, 7, dtype=torch.float64)
    for some in (slice(None, None, 2), slice(None, None, -1), slice(15, 3, -4), slice(2, 9)):
        assert rows[some].dense().tolist() == X[some].tolist()
        same = product(SparseRows.of(X[some]), table)
        assert torch.equal(product(rows[some], table), same)


@pytest.mark.parametrize("times", [product, transposed_product])
def test_tables_that_do_not_fit_are_refused(times):
    """Kernels would read beyond their end."""
    rows = SparseRows.of(sparse_table(30, 20)[0].astype(np.float32))
    length = 20 if times is product else 30
    wrong = [
        torch.zeros(length - 1, 4), torch.zeros(length + 1, 4), torch.zeros(length),
        torch.zeros(length, 4, dtype=torch.float64), torch.zeros(length, 4, dtype=torch.int32),
        torch.zeros(length, 4, device="meta"),
    ]  # fmt: skip
    for table in wrong:
        words = (
            f"table must be a matrix of {length} rows of torch.float32 on the processor.*rows.to"
        )
        with pytest.raises(ValueError, match=words):
            times(rows, table)
    double = rows.to("cpu", torch.float64)
    with pytest.raises(
        ValueError, match=r"of torch.float64 on the processor.*of torch.float32 on cpu"
    ):
        times(double, torch.zeros(length, 4))
    assert times(rows, torch.ones(length, 4)).shape == (50 - length, 4)


def test_nan_is_not_a_zero():
    rows = SparseRows.of(np.array([[0.0, np.nan, -0.0, np.inf], [0.0, 0.0, 0.0, 2.0]]))
    assert rows.indices.tolist() == [1, 3, 3]
    assert (rows.starts.tolist(), rows.ends.tolist()) == ([0, 2], [2, 3])


@pytest.mark.parametrize("solver", ["adam", "sgd", "lbfgs"])
@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_scikit_learn_s_on_sparse_matrices(solver, weighted):
    """As tests/nn/test_mlp.py on dense rows; here the matrix is compressed for both."""
    X, y = sparse_table()
    weight = np.random.default_rng(2).uniform(0.2, 2.0, len(y)) if weighted else None
    settings = {
        "hidden_layer_sizes": (8, 6), "random_state": 1, "shuffle": False, "batch_size": 70,
        "max_iter": 30, "alpha": 0.1, "learning_rate_init": 0.02, "solver": solver,
    }  # fmt: skip
    given = sp.csr_array(X)
    ours = MLPClassifier(**settings).fit(given, y, sample_weight=weight)
    other = theirs.MLPClassifier(**settings).fit(given, y, sample_weight=weight)
    dense = MLPClassifier(**settings).fit(X, y, sample_weight=weight)
    if solver == "lbfgs":
        assert ours.loss_ <= other.loss_ * (1 + 1e-2)
    else:
        np.testing.assert_allclose(ours.loss_curve_, other.loss_curve_, rtol=0, atol=1e-13)
        np.testing.assert_allclose(ours.predict_proba(given), other.predict_proba(X), atol=1e-11)
        np.testing.assert_allclose(dense.loss_curve_, other.loss_curve_, rtol=0, atol=1e-13)
    assert ours.certificate_.ok
    np.testing.assert_allclose(ours.predict_proba(given), ours.predict_proba(X), atol=1e-13)


def test_a_mostly_zero_array_takes_the_short_way(monkeypatch):
    from surefit.nn import perceptron

    X, y = sparse_table(dtype=np.float32)
    assert mostly_zero(X)
    assert not mostly_zero(X + 1)
    seen = []

    def noted(rows, table):
        seen.append(len(rows))
        return product(rows, table)

    monkeypatch.setattr(perceptron, "product", noted)
    model = MLPClassifier((16,), max_iter=2, batch_size=100, random_state=0).fit(X, y)
    assert seen == [100] * 6 + [300]  # and once for the loss at the end
    assert model.module_[0].weight.is_contiguous()
    assert model.coefs_[0].dtype == np.float32
    MLPClassifier((16,), max_iter=2, random_state=0).fit(X + 1, y)
    assert len(seen) == 7


def test_a_wide_sparse_matrix_stays_compressed():
    """Dense, these rows would take 3.2 GB."""
    rng = np.random.default_rng(0)
    X = sp.random_array((2_000, 200_000), density=1e-4, rng=rng, format="csr")
    y = np.asarray(X[:, :1000].sum(axis=1)).ravel() > 0
    tracemalloc.start()
    model = MLPRegressor(hidden_layer_sizes=(4,), max_iter=2, batch_size=500, random_state=0).fit(
        X, y.astype(float)
    )
    model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e8


def test_checkpoints_of_weights_in_another_order(tmp_path):
    """Weights, moments and averages lie column by column here; fused steps go through memory as it lies."""
    X, y = sparse_table(dtype=np.float32)

    def run(**given):
        torch.manual_seed(0)
        net = MLP([40, 8, 3])
        net[0].weight.data = net[0].weight.data.t().contiguous().t()
        loss = torch.nn.CrossEntropyLoss(reduction="none")
        return train(net, (SparseRows.of(X), y), loss, optimizer="adam", epochs=4, ema=0.9, **given)

    calm = run()
    part = run(checkpoint=tmp_path, every_steps=1, max_time=1e-9)
    assert part.step == 1
    again = run(checkpoint=tmp_path)
    assert equal(again.state, calm.state)


def test_batches_of_a_scipy_matrix():
    X, y = sparse_table(20, 6, 0.3)
    batches = Batches((sp.csc_matrix(X), y), batch_size=7, shuffle=False, dtype=torch.float64)
    x, target, _ = batches.fetch(np.array([3, 1]))
    assert x.dense().tolist() == X[[3, 1]].tolist()
    assert target.tolist() == y[[3, 1]].tolist()
    assert len(batches.fetch(np.arange(5))[0]) == 5


def test_augmented_rows_are_dense():
    X, y = sparse_table()
    seen = []

    def noted(x):
        seen.append(type(x))
        return x

    MLPClassifier((4,), max_iter=1, augment=noted).fit(sp.csr_array(X), y)
    assert set(seen) == {torch.Tensor}
