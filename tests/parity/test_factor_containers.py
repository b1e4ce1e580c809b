"""One factorisation, whatever holds the matrix: dense, tensors, rows on disk, batches, rows over ranks."""

import threading

import numpy as np
import pytest

import surefit
from surefit.decomposition import MatrixFactorization, ratings
from surefit.design import RowBlocks, as_design
from surefit.distributed import Alone, Checkpoint

SETTINGS = {"reg": 0.4, "tol": 1e-9, "max_iter": 20000, "random_state": 0}


@pytest.fixture(autouse=True)
def one_thread_of_torch():
    """Small tensors: threads would only wait for one another."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def full(seed=0, n=60, p=30):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)) @ rng.normal(size=(4, p)) + 0.2 * rng.normal(size=(n, p))


def some(seed=0):
    X = full(seed)
    known = np.random.default_rng(seed + 1).random(X.shape) < 0.6
    return ratings(*np.nonzero(known), X[known], shape=X.shape)


def close(model, other, rtol=1e-7):
    for name in ("user_factors_", "item_factors_"):
        a, b = (np.asarray(getattr(m, name)) for m in (model, other))
        np.testing.assert_allclose(a, b, atol=rtol * np.abs(b).max())
    assert model.loss_ == pytest.approx(other.loss_, rel=1e-10)


@pytest.mark.parametrize("biases", [False, True])
def test_row_blocks_are_the_array(tmp_path, biases):
    X = full()
    np.save(tmp_path / "rows.npy", X)
    blocks = RowBlocks(tmp_path / "rows.npy", block_bytes=30 * 8 * 7)
    settings = SETTINGS | {"biases": biases, "tol": 1e-6}
    one = MatrixFactorization(3, **settings).fit(X)
    two = MatrixFactorization(3, **settings).fit(blocks)
    close(two, one)
    np.testing.assert_allclose(two.transform(blocks), one.transform(X), atol=1e-8)
    assert two.score(blocks) == pytest.approx(one.score(X), rel=1e-9)
    assert two.certificate_.ok
    assert two.certificate_.data_id == one.certificate_.data_id
    assert surefit.verify(two, X).ok


@pytest.mark.parametrize("biases", [False, True])
def test_tensors_are_the_array(biases):
    torch = pytest.importorskip("torch")
    X = full()
    settings = SETTINGS | {"biases": biases, "tol": 1e-6}
    one = MatrixFactorization(3, **settings).fit(X)
    two = MatrixFactorization(3, **settings).fit(torch.as_tensor(X))
    assert isinstance(two.item_factors_, torch.Tensor)
    assert isinstance(two.transform(torch.as_tensor(X)), torch.Tensor)
    close(two, one)
    assert two.certificate_.ok
    assert surefit.verify(two, torch.as_tensor(X)).ok
    single = MatrixFactorization(3, **settings).fit(torch.as_tensor(X).float())
    assert single.user_factors_.dtype == torch.float32
    assert single.certificate_.ok
    np.testing.assert_array_equal(
        two.recommend(4, exclude_seen=False)[0], one.recommend(4, exclude_seen=False)[0]
    )


@pytest.mark.parametrize(
    "settings",
    [{}, {"biases": True, "weighted_reg": True, "reg": 0.05}, {"implicit": True}],
    ids=str,
)
def test_batches_are_the_rows(settings):
    """The batched path takes the same steps; they agree to rounding."""
    pytest.importorskip("torch")
    X = some()
    if settings.get("implicit"):
        X.data = np.abs(X.data)
    settings = SETTINGS | {"tol": 1e-3} | settings
    one = MatrixFactorization(3, **settings).fit(X)
    two = MatrixFactorization(3, device="cpu", **settings).fit(X)
    assert one.n_iter_ == two.n_iter_
    close(two, one)
    assert two.certificate_.ok


# ---------------------------------------------------------------------------- ranks


class Thread(Alone):
    """A rank that is a thread: sums through shared memory, in the order of the ranks."""

    def __init__(self, rank, size, box):
        self.rank, self.size, self.box = rank, size, box

    def gather(self, thing):
        found, barrier = self.box
        found[self.rank] = thing
        barrier.wait()
        out = [found[r] for r in range(self.size)]
        barrier.wait()
        return out

    def sum(self, *arrays):
        found = self.gather([np.asarray(a) for a in arrays])
        out = [np.sum([f[k] for f in found], axis=0) for k in range(len(arrays))]
        return out[0] if len(out) == 1 else tuple(out)

    def max(self, *arrays):
        found = self.gather([np.asarray(a) for a in arrays])
        out = [np.max([f[k] for f in found], axis=0) for k in range(len(arrays))]
        return out[0] if len(out) == 1 else tuple(out)

    def share(self, thing):
        return self.gather(thing)[0]


class Rows:
    """What a fit reads of rows over ranks."""

    def __init__(self, rows, group, shape, counts):
        self.rows, self.group, self.shape, self.rows_by_rank = rows, group, shape, counts


def on_ranks(settings, X, size=3):
    """Users spread over threads, each of which alternates on its own rows."""
    from surefit.decomposition._factor_claims import claims

    box = ([None] * size, threading.Barrier(size))
    ends = [X.shape[0] * r // size for r in range(size + 1)]
    found, problems = [None] * size, []

    def job(rank):
        try:
            group = Thread(rank, size, box)
            rows = X[ends[rank] : ends[rank + 1]]
            model = MatrixFactorization(3, **settings)
            fit = model._fit_observed(
                Rows(rows, group, X.shape, ends), rows, group, np.random.default_rng(5)
            )
            design = as_design(rows)
            design.group = group
            design.rows, design.rows_by_rank, design.shape = rows, ends, X.shape
            found[rank] = (model, fit, claims(model, design, full=False, tol=model.tol))
        except BaseException as error:  # the others must not wait for ever
            problems.append(error)
            box[1].abort()

    threads = [threading.Thread(target=job, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return found


@pytest.mark.parametrize(
    "settings",
    [{}, {"biases": True, "weighted_reg": True, "reg": 0.05}, {"implicit": True}],
    ids=str,
)
def test_users_over_ranks(settings):
    X = some()
    if settings.get("implicit"):
        X.data = np.abs(X.data)
    settings = SETTINGS | {"tol": 1e-5} | settings
    alone = MatrixFactorization(3, **settings)
    alone._fit_observed(X, X, Alone(), np.random.default_rng(5))
    found = on_ranks(settings, X)
    for model, _, claims in found:
        np.testing.assert_allclose(model.item_factors_, alone.item_factors_, atol=1e-7)
        np.testing.assert_array_equal(model.item_factors_, found[0][0].item_factors_)
        assert model.loss_ == pytest.approx(alone.loss_, rel=1e-10)
        assert all(claim.status is surefit.Status.HOLDS for claim in claims), claims
    U = np.concatenate([model.user_factors_ for model, *_ in found])
    np.testing.assert_allclose(U, alone.user_factors_, atol=1e-7)


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    """Stopped after 4 iterations and started again: bitwise the factors of a fit that never stopped."""
    X = full()
    settings = SETTINGS | {"tol": 1e-6, "certify": False}
    whole = MatrixFactorization(3, **settings).fit(X)
    kept = Checkpoint(tmp_path)

    class Crash(Exception):
        pass

    class Fragile:
        """Saves, and breaks down after the fourth time."""

        def __init__(self):
            self.count = 0

        def load(self, key):
            return kept.load(key)

        def save(self, key, state):
            kept.save(key, state)
            self.count += 1
            if self.count == 4:
                raise Crash

    model = MatrixFactorization(3, **settings)
    design = as_design(X)
    design.checkpoint = Fragile()
    rng = np.random.default_rng  # the seed that fit() would draw
    seed = int(rng(0).integers(2**62))
    with pytest.raises(Crash):
        model._fit_full(design, X, Alone(), rng(seed))
    again = MatrixFactorization(3, **settings)
    design.checkpoint = kept
    again._fit_full(design, X, Alone(), rng(seed))
    np.testing.assert_array_equal(again.user_factors_, whole.user_factors_)
    np.testing.assert_array_equal(again.loss_trace_, whole.loss_trace_)
    assert again.n_iter_ == whole.n_iter_
