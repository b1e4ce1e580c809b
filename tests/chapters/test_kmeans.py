"""KMeans and MiniBatchKMeans: exact labels, equal results whatever the rows are, resuming, prediction."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.cluster
from tests.data import load

from surefit.cluster import KMeans, MiniBatchKMeans, k_means
from surefit.design import Dense, RowBlocks, as_design
from surefit.distributed import Checkpoint
from surefit.solvers.assignment import Labeller, frame_of
from surefit.solvers.lloyd import describe


def exact_labels(X, centres):
    """By rational numbers, the lowest number among equals."""
    table = [[Fraction(float(c)) for c in centre] for centre in centres]
    labels = []
    for row in X:
        point = [Fraction(float(x)) for x in row]
        squares = [sum((a - b) ** 2 for a, b in zip(point, centre)) for centre in table]
        labels.append(squares.index(min(squares)))
    return np.array(labels)


def labels_of(X, centres):
    design = as_design(X)
    labeller = Labeller(design, describe(design, None, centres).frame, keep=False)
    labeller.step(np.asarray(centres, dtype=np.float64), collect=False)
    return labeller.labels


RNG = np.random.default_rng(0)
ADVERSARIAL = {
    "lattice": (RNG.integers(0, 4, (200, 3)).astype(float), RNG.integers(0, 4, (40, 3)).astype(float)),
    "decimals": (np.array([[0.2], [0.1], [0.3], [0.15]]), np.array([[0.1], [0.3], [0.2], [0.1]])),
    "far": (1e8 + RNG.integers(0, 3, (100, 2)) * 0.1, 1e8 + RNG.integers(0, 3, (9, 2)) * 0.1),
    "mirror": (np.zeros((3, 5)), np.vstack([np.eye(5), -np.eye(5)]) * 0.1),
    "twins": (RNG.standard_normal((50, 4)), np.repeat(RNG.standard_normal((6, 4)), 3, axis=0)),
    "ulps": (np.full((20, 3), 1 / 3), 1 / 3 + np.outer(np.arange(-9, 9), [1, 2, -1]) * 2.0**-54),
    "small": (1e-170 * RNG.standard_normal((30, 2)), 1e-170 * RNG.standard_normal((5, 2))),
    "wide": (RNG.standard_normal((40, 300)) + 100, RNG.standard_normal((70, 300)) * 1e-9 + 100),
    "scales": tuple(RNG.standard_normal((n, 3)) * [1e-12, 1.0, 1e9] for n in (60, 8)),
}  # fmt: skip


@pytest.mark.spec("CLU-1")
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("kind", ["dense", "sparse", "torch", "float32"])
def test_labels_are_exact_on_near_ties(name, kind):
    X, centres = ADVERSARIAL[name]
    if kind == "float32":
        X = X.astype(np.float32)
    expected = exact_labels(X, centres)
    if kind == "torch":
        from surefit.solvers.lloyd import labeller_of

        torch = pytest.importorskip("torch")
        design = as_design(torch.as_tensor(X))
        labeller = labeller_of(design, describe(design, None, centres).frame, None)
        labeller.step(centres, collect=False)
        np.testing.assert_array_equal(labeller.labels.numpy(), expected)
        return
    found = labels_of(sp.csr_array(X) if kind == "sparse" else X, centres)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("n", "p", "k"), [(700, 5, 3), (900, 20, 70), (500, 3, 300), (2500, 8, 700)]
)
def test_bounds_change_no_bit(n, p, k):
    """Passes with bounds give the labels and sums of a fresh pass, through moves small and large."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((n, p)) + 3.0 * rng.integers(0, 3, (n, p))
    frame = frame_of(X.mean(axis=0), float(np.abs(X - X.mean(axis=0)).max()))
    kept = Labeller(Dense(X), frame)
    centres = X[rng.choice(n, k, replace=False)].copy()
    for step in range(12):
        tally = kept.step(centres)
        fresh = Labeller(Dense(X), frame)
        other = fresh.step(centres)
        np.testing.assert_array_equal(kept.labels, fresh.labels)
        np.testing.assert_array_equal(tally.sums, other.sums)
        np.testing.assert_array_equal(tally.masses, other.masses)
        hit = tally.masses > 0
        centres[hit] = frame.mean + tally.sums[hit] / tally.masses[hit, None]
        if step == 6:
            centres[: k // 2] += 0.5 * rng.standard_normal((k // 2, p))


def table(seed=0, n=2500):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5)) + 4.0 * rng.integers(0, 3, (n, 5))
    return np.where(np.abs(X) > 1.0, X, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_the_same_whatever_the_rows_are(tmp_path, weighted, init):
    torch = pytest.importorskip("torch")
    X = table()
    w = np.random.default_rng(1).uniform(0.5, 2.0, len(X)) if weighted else None
    np.save(tmp_path / "rows.npy", X)
    model = KMeans(20, init=init, n_init=2, random_state=3)
    dense = model.fit(X, sample_weight=w)
    centres, labels, inertia = dense.cluster_centers_, dense.labels_, dense.inertia_
    others = [
        sp.csr_matrix(X),
        sp.csr_array(X),
        torch.as_tensor(X),
        RowBlocks(tmp_path / "rows.npy"),
        RowBlocks(tmp_path / "rows.npy", block_bytes=4000),
        RowBlocks(lambda: iter([X[:100], X[100:1300], X[1300:]])),
        np.asfortranarray(X),
    ]
    for rows in others:
        other = KMeans(20, init=init, n_init=2, random_state=3).fit(rows, sample_weight=w)
        np.testing.assert_array_equal(np.asarray(other.labels_), labels)
        np.testing.assert_allclose(np.asarray(other.cluster_centers_), centres, rtol=0, atol=1e-12)
        assert other.inertia_ == pytest.approx(inertia, rel=1e-12)
        assert other.n_iter_ == dense.n_iter_
        np.testing.assert_array_equal(np.asarray(other.predict(rows)), labels)
        assert other.score(rows, sample_weight=w) == pytest.approx(-inertia, rel=1e-12)
        found = np.asarray(other.transform(rows))
        assert found.shape == (len(X), 20)
        nearest = found[np.arange(len(X)), labels] ** 2
        total = nearest.sum() if w is None else nearest @ w
        assert total == pytest.approx(inertia, rel=1e-6)  # distances by products, as scikit-learn's


def test_tensors_stay_tensors():
    torch = pytest.importorskip("torch")
    X = torch.as_tensor(table()).float()
    model = KMeans(5, random_state=0).fit(X)
    assert model.cluster_centers_.dtype == torch.float32
    assert model.labels_.dtype == torch.int32
    assert model.predict(X).equal(model.labels_)
    small = MiniBatchKMeans(5, random_state=0).fit(X)
    assert torch.is_tensor(small.cluster_centers_)
    assert small.certificate_.ok


class Broken(Exception):
    pass


class Breaking(Checkpoint):
    """Breaks off after some saves, as a crash would."""

    def __init__(self, folder, after):
        super().__init__(folder)
        self.left = after

    def save(self, key, state):
        super().save(key, state)
        self.left -= 1
        if self.left == 0:
            raise Broken


@pytest.mark.parametrize("after", [1, 4, 13, 30])
@pytest.mark.parametrize(
    "settings", [{"n_init": 3}, {"init": "random", "n_init": 2, "tol": 0}], ids=str
)
def test_a_resumed_fit_ends_with_the_same_bits(tmp_path, after, settings):
    X = table(4)
    w = np.random.default_rng(0).uniform(0.5, 1.5, len(X))

    def rows(checkpoint):
        np.save(tmp_path / "rows.npy", X)
        design = RowBlocks(tmp_path / "rows.npy")
        design.checkpoint = checkpoint
        return design

    model = KMeans(15, random_state=1, **settings)
    whole = KMeans(15, random_state=1, **settings).fit(rows(None), sample_weight=w)
    with pytest.raises(Broken):
        model.fit(rows(Breaking(tmp_path / "kept", after)), sample_weight=w)
    again = model.fit(rows(Checkpoint(tmp_path / "kept")), sample_weight=w)
    for name in (
        "cluster_centers_",
        "labels_",
        "inertia_",
        "n_iter_",
        "inertia_trace_",
        "restart_inertias_",
    ):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))
    assert again.certificate_.to_dict() == whole.certificate_.to_dict()


def test_a_checkpoint_of_other_rows_or_parameters_is_not_used(tmp_path):
    X = table(4)
    for k, rows in ((5, X), (6, X), (5, X + 1)):
        design = RowBlocks(rows)
        design.checkpoint = Checkpoint(tmp_path)
        kept = KMeans(k, random_state=0).fit(design)
        assert kept.inertia_ == KMeans(k, random_state=0).fit(RowBlocks(rows)).inertia_
    assert len(list(tmp_path.iterdir())) == 3


def test_many_rows_and_threads():
    X = np.random.default_rng(0).standard_normal((20000, 10))
    first = KMeans(40, random_state=0, tol=1e-2).fit(X)
    again = KMeans(40, random_state=0, tol=1e-2).fit(X)
    np.testing.assert_array_equal(first.cluster_centers_, again.cluster_centers_)
    theirs = sklearn.cluster.KMeans(40, random_state=0, tol=1e-2).fit(X)
    assert first.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)


def test_x_is_left_alone():
    X = table() + 5.0
    for copy_x in (True, False):
        before = X.copy()
        KMeans(4, random_state=0, copy_x=copy_x).fit(X)
        np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("sparse", [False, True])
def test_mini_batches_follow_scikit_learn(sparse):
    X = sp.csr_matrix(table()) if sparse else table()
    for settings in ({}, {"init": "random"}, {"tol": 1e-3, "batch_size": 100}):
        ours = MiniBatchKMeans(12, random_state=2, **settings).fit(X)
        theirs = sklearn.cluster.MiniBatchKMeans(12, random_state=2, **settings).fit(X)
        assert ours.n_steps_ == theirs.n_steps_
        assert ours.n_iter_ == theirs.n_iter_
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-6)
    ours, theirs = (
        kind(12, random_state=2) for kind in (MiniBatchKMeans, sklearn.cluster.MiniBatchKMeans)
    )
    for k in range(0, 2500, 500):
        ours.partial_fit(X[k : k + 500])
        theirs.partial_fit(X[k : k + 500])
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=0, atol=1e-9)


def test_the_function_gives_what_the_class_gives():
    X, _ = load("iris")
    centres, labels, inertia, n_iter = k_means(X, 3, random_state=0, return_n_iter=True)
    model = KMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(centres, model.cluster_centers_)
    np.testing.assert_array_equal(labels, model.labels_)
    assert (inertia, n_iter) == (model.inertia_, model.n_iter_)
