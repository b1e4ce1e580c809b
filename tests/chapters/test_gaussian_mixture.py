"""Gaussian mixtures: soft and hard EM, their starts, scikit-learn's results, and every kind of input."""

import numpy as np
import pytest
import sklearn.mixture
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris

import surefit
from surefit.design import RowBlocks
from surefit.distributed import Alone, Checkpoint
from surefit.mixture import GaussianMixture, _climb, em, initial_parameters

KINDS = ("full", "tied", "diag", "spherical")
every_kind = pytest.mark.parametrize("kind", KINDS)


def blobs(n=500, p=4, K=3, seed=0, spread=3.0, shift=0.0):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(p, p))
    return (
        rng.normal(size=(n, p)) @ mix
        + spread * rng.normal(size=(K, p))[rng.integers(0, K, n)]
        + shift
    )


def same(
    ours,
    theirs,
    rtol=1e-8,
    attributes=("weights_", "means_", "covariances_", "precisions_cholesky_"),
):
    for name in attributes:
        a, b = np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(), err_msg=name)


# ---------------------------------------------------------------------------- soft EM


@pytest.mark.spec("GMM-3")
@every_kind
@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_equals_scikit_learn(kind, init, shift):
    """The same start, the same number of steps, the same parameters and bounds, to rounding."""
    X = blobs(shift=shift)
    settings = {"covariance_type": kind, "init_params": init, "random_state": 3, "max_iter": 300}
    ours = GaussianMixture(3, **settings).fit(X)
    theirs = sklearn.mixture.GaussianMixture(3, **settings).fit(X)
    assert ours.n_iter_ == theirs.n_iter_
    same(ours, theirs, 1e-7)
    np.testing.assert_allclose(ours.lower_bounds_[1:], theirs.lower_bounds_[1:], rtol=1e-9)
    # a start on single rows has variance 0; scikit-learn's x^2 - mu^2 leaves rounding next to the ridge
    assert ours.lower_bounds_[0] == pytest.approx(theirs.lower_bounds_[0], rel=1e-4)
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, rel=1e-10)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-8)
    assert (ours.predict(X) == theirs.predict(X)).all()
    for name in ("score", "aic", "bic"):
        assert getattr(ours, name)(X) == pytest.approx(getattr(theirs, name)(X), rel=1e-9)
    ours.random_state = theirs.random_state = 5
    for a, b in zip(ours.sample(40), theirs.sample(40)):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.spec("GMM-3")
@every_kind
def test_the_m_step_is_the_formula(kind):
    """One step, by hand: q, N_k, mu = sum q x / sum q (ERR-58: not / N), Sigma, pi; rows of q add up to 1."""
    X = blobs()
    start = initial_parameters(X, 3, covariance_type=kind, random_state=1)
    with pytest.warns(surefit.certificate.ConvergenceWarning):
        model = GaussianMixture(
            3, covariance_type=kind, max_iter=1, reg_covar=0.0, certify=False, **start
        ).fit(X)
    precision = start["precisions_init"]
    each = {
        "full": lambda: precision,
        "tied": lambda: np.stack([precision] * 3),
        "diag": lambda: np.stack([np.diag(v) for v in precision]),
        "spherical": lambda: np.stack([np.eye(4) * v for v in precision]),
    }[kind]()
    away = X[:, None] - start["means_init"]
    log_joint = (
        np.log(1 / 3)
        + 0.5 * np.linalg.slogdet(each)[1]
        - 0.5 * np.einsum("nki,kij,nkj->nk", away, each, away)
    )
    q = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    mass = q.sum(axis=0)
    means = (q.T @ X) / mass[:, None]
    away = X[:, None] - means
    full = np.einsum("nk,nki,nkj->kij", q, away, away) / mass[:, None, None]
    diagonal = np.diagonal(full, axis1=1, axis2=2)
    expected = {
        "full": full,
        "tied": np.einsum("k,kij->ij", mass / len(X), full),
        "diag": diagonal,
        "spherical": diagonal.mean(axis=1),
    }[kind]
    np.testing.assert_allclose(model.weights_, mass / len(X), rtol=1e-12)
    np.testing.assert_allclose(model.means_, means, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(model.covariances_, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.spec("GMM-3")
def test_small_deviations_make_k_means():
    """sigma -> 0 with equal weights: the responsibilities are those of k-means, and so are the centres."""
    X = load_iris().data
    centres = X[[0, 60, 120]]
    lloyd = KMeans(3, init=centres, n_init=1, tol=0.0, max_iter=300).fit(X)
    found = em(*fixed_sphere(X, 1e-3), centres, tol=0.0, max_iter=30)
    np.testing.assert_allclose(found.theta, lloyd.cluster_centers_, rtol=1e-12)
    assert (found.q.argmax(axis=1) == lloyd.labels_).all()
    wide = em(*fixed_sphere(X, 1.0), centres, tol=1e-10)
    assert np.abs(wide.theta - lloyd.cluster_centers_).max() > 1e-2


def fixed_sphere(X, sigma):
    """A mixture of spheres of one fixed size and uniform weights: only the means are free."""

    def e_step(means):
        return -((X[:, None] - means) ** 2).sum(axis=2) / (2 * sigma**2)

    def m_step(q):
        return (q.T @ X) / q.sum(axis=0)[:, None]

    return e_step, m_step


# ---------------------------------------------------------------------------- hard EM


@pytest.mark.spec("GMM-2")
@pytest.mark.parametrize("sigma", [0.1, 1.0, 30.0])
def test_hard_em_with_equal_spheres_is_k_means(sigma):
    """Whatever the common sigma: each step is one of Lloyd's."""
    X = load_iris().data
    for seed in range(4):
        centres = X[np.random.default_rng(seed).choice(len(X), 3, replace=False)]
        lloyd = KMeans(3, init=centres, n_init=1, tol=0.0, max_iter=300).fit(X)
        found = em(*fixed_sphere(X, sigma), centres, hard=True, tol=1e-12)
        np.testing.assert_allclose(found.theta, lloyd.cluster_centers_, rtol=1e-12)
        assert (np.diff(found.trace) >= -1e-12).all()
        assert found.certificate.ok


@pytest.mark.spec("GMM-2")
@every_kind
def test_hard_em_refits_on_its_own_labels(kind):
    """At the end, the parameters are counts, means and covariances of the labelled rows, z the argmax."""
    X = blobs(n=400)
    model = GaussianMixture(
        3, covariance_type=kind, hard=True, reg_covar=1e-9, random_state=0, tol=0.0, max_iter=200
    )
    with pytest.warns(surefit.certificate.ConvergenceWarning):  # tol=0 is never met
        model.fit(X)
    z = model.predict(X)
    counts = np.bincount(z, minlength=3)
    np.testing.assert_allclose(model.weights_, counts / len(X), rtol=1e-12)
    np.testing.assert_allclose(model.means_, [X[z == k].mean(axis=0) for k in range(3)], rtol=1e-10)
    covariances = np.stack([np.cov(X[z == k].T, bias=True) for k in range(3)])
    expected = {
        "full": covariances,
        "tied": np.einsum("k,kij->ij", counts / len(X), covariances),
        "diag": np.diagonal(covariances, axis1=1, axis2=2),
        "spherical": np.diagonal(covariances, axis1=1, axis2=2).mean(axis=1),
    }[kind]
    np.testing.assert_allclose(model.covariances_, expected, rtol=1e-7, atol=1e-8)
    trace = [*model.lower_bounds_, model.final_lower_bound_]
    assert (np.diff(trace) >= -1e-8).all()  # the ridge of 1e-9
    joint = model._log_joint(X)
    assert model.final_lower_bound_ == pytest.approx(joint.max(axis=1).mean(), rel=1e-12)
    assert model.final_lower_bound_ < model.score(X)


# ---------------------------------------------------------------------------- starts


@pytest.mark.spec("EM-2")
@every_kind
@pytest.mark.parametrize("means", ["random", "k-means++"])
def test_the_textbook_start(kind, means):
    X = blobs()
    start = initial_parameters(
        X, 3, covariance_type=kind, means=means, reg_covar=0.0, random_state=0
    )
    assert (start["weights_init"] == 1 / 3).all()
    assert all((row == X).all(axis=1).any() for row in start["means_init"])
    assert len(np.unique(start["means_init"], axis=0)) == 3
    covariance = np.cov(X.T, bias=True)
    expected = {
        "full": np.stack([np.linalg.inv(covariance)] * 3),
        "tied": np.linalg.inv(covariance),
        "diag": np.stack([1 / X.var(axis=0)] * 3),
        "spherical": np.full(3, 1 / X.var(axis=0).mean()),
    }[kind]
    np.testing.assert_allclose(start["precisions_init"], expected, rtol=1e-10)
    model = GaussianMixture(3, covariance_type=kind, max_iter=0, **start).fit(X)
    np.testing.assert_allclose(model.precisions_, expected, rtol=1e-9)
    np.testing.assert_array_equal(model.means_, start["means_init"])
    fitted = GaussianMixture(3, covariance_type=kind, max_iter=500, **start).fit(X)
    assert fitted.certificate_.ok
    other = sklearn.mixture.GaussianMixture(3, covariance_type=kind, max_iter=500, **start).fit(X)
    same(fitted, other, 1e-7)


def test_k_means_plus_plus_spreads_the_start():
    X = np.vstack(
        [np.random.default_rng(0).normal(size=(200, 2)) + c for c in ([0, 0], [100, 0], [0, 100])]
    )
    for rows in (X, RowBlocks(X)):
        means = initial_parameters(rows, 3, random_state=1)["means_init"]
        assert len(np.unique(np.round(means / 100), axis=0)) == 3


def test_some_parameters_given():
    X = blobs()
    for given in (
        {"means_init": X[:3]},
        {"weights_init": [0.2, 0.3, 0.5]},
        {"precisions_init": np.stack([np.eye(4)] * 3)},
    ):
        settings = {"init_params": "random", "random_state": 0, "max_iter": 300, **given}
        same(
            GaussianMixture(3, **settings).fit(X),
            sklearn.mixture.GaussianMixture(3, **settings).fit(X),
            1e-6,
        )


def test_warm_start_goes_on():
    X = blobs()
    whole = GaussianMixture(3, init_params="random", random_state=0, max_iter=300, tol=1e-7).fit(X)
    model = GaussianMixture(
        3, init_params="random", random_state=0, max_iter=4, tol=1e-7, warm_start=True
    )
    with pytest.warns(surefit.certificate.ConvergenceWarning):
        model.fit(X)
    model.set_params(max_iter=300).fit(X)
    same(model, whole, 1e-6)
    assert model.n_iter_ == whole.n_iter_ - 4


# ---------------------------------------------------------------------------- accuracy


@every_kind
@pytest.mark.parametrize("p", [1, 3, 5, 8, 17, 70])
@pytest.mark.parametrize("hard", [False, True])
def test_kernels_and_products_agree(kind, p, hard, monkeypatch):
    """Odd widths, tails of blocks, both ways of adding up, against a plain evaluation."""
    from surefit.solvers import _mixture_rows

    X = blobs(n=431, p=p, K=2)
    start = initial_parameters(X, 2, covariance_type=kind, random_state=0)
    settings = {
        "covariance_type": kind,
        "max_iter": 3,
        "tol": 0.0,
        "certify": False,
        "hard": hard,
        **start,
    }
    found = []
    for narrow in (0, 100):
        monkeypatch.setattr(_mixture_rows, "_NARROW", narrow)
        with pytest.warns(surefit.certificate.ConvergenceWarning):
            found.append(GaussianMixture(2, **settings).fit(X))
    same(found[0], found[1], 1e-8)
    assert found[0].lower_bound_ == pytest.approx(found[1].lower_bound_, rel=1e-12)
    if not hard:
        other = {k: v for k, v in settings.items() if k not in ("certify", "hard")}
        with pytest.warns(surefit.certificate.ConvergenceWarning):
            theirs = sklearn.mixture.GaussianMixture(2, **other).fit(X)
        same(found[0], theirs, 1e-7)


@every_kind
def test_far_from_zero_no_digits_are_lost(kind):
    """At a distance of 1e7 the covariances keep the digits that the rows have."""
    X = np.round(blobs(n=300), 3)
    moved = X + 2.0**24
    start = dict(initial_parameters(X, 3, covariance_type=kind, random_state=0).items())
    here = GaussianMixture(3, covariance_type=kind, max_iter=300, **start).fit(X)
    there = GaussianMixture(
        3,
        covariance_type=kind,
        max_iter=300,
        **{**start, "means_init": start["means_init"] + 2.0**24},
    ).fit(moved)
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_allclose(there.covariances_, here.covariances_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(there.means_ - 2.0**24, here.means_, atol=1e-5)


def test_a_start_far_away_takes_a_second_pass():
    """The old mean is 1e9 deviations away: the scatter around it would have no digits left."""
    rng = np.random.default_rng(0)
    X = 1e-3 * rng.normal(size=(300, 2))
    for kind in KINDS:
        shape = {
            "full": np.eye(2)[None],
            "tied": np.eye(2),
            "diag": np.ones((1, 2)),
            "spherical": np.ones(1),
        }[kind]
        with pytest.warns(surefit.certificate.ConvergenceWarning):
            model = GaussianMixture(
                1,
                covariance_type=kind,
                means_init=[[1e6, 1e6]],
                weights_init=[1.0],
                precisions_init=shape * 1e-12,
                max_iter=1,
                reg_covar=0.0,
                certify=False,
            ).fit(X)
        covariance = np.cov(X.T, bias=True)
        expected = {
            "full": covariance,
            "tied": covariance,
            "diag": np.diag(covariance),
            "spherical": np.diag(covariance).mean(),
        }[kind]
        np.testing.assert_allclose(np.squeeze(model.covariances_), expected, rtol=1e-6, atol=1e-12)


# ---------------------------------------------------------------------------- inputs


@every_kind
def test_rows_on_disk_are_read_once_an_iteration(kind, tmp_path):
    X = blobs(n=2000)
    np.save(tmp_path / "rows.npy", X)
    start = initial_parameters(X, 3, covariance_type=kind, random_state=0)
    settings = {"covariance_type": kind, "tol": 1e-4, "max_iter": 300, **start}
    rows = RowBlocks(tmp_path / "rows.npy", block_bytes=1 << 12)
    model = GaussianMixture(3, certify=False, **settings).fit(rows)
    assert rows.passes == model.n_iter_ + 1  # one for the final bound
    same(model, GaussianMixture(3, **settings).fit(X), 1e-9)
    certified = GaussianMixture(3, **settings).fit(rows)
    assert certified.certificate_.ok
    assert surefit.verify(certified, X).ok
    np.testing.assert_allclose(
        certified.predict_proba(rows), certified.predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize("init", ["k-means++", "random", "random_from_data"])
def test_starts_do_not_depend_on_where_the_rows_are(init):
    X = blobs(n=700)
    models = [
        GaussianMixture(3, init_params=init, random_state=2, max_iter=300).fit(rows)
        for rows in (X, RowBlocks(X))
    ]
    if init != "k-means++":  # in memory that is scikit-learn's, which tries several rows
        same(*models, 1e-8)
    assert models[1].certificate_.ok
    assert GaussianMixture(3, random_state=2).fit(RowBlocks(X)).certificate_.ok  # from k-means


@every_kind
@pytest.mark.parametrize("hard", [False, True])
def test_tensors(kind, hard):
    torch = pytest.importorskip("torch")
    X = blobs(n=600)
    settings = {
        "covariance_type": kind,
        "random_state": 0,
        "tol": 1e-5,
        "max_iter": 500,
        "hard": hard,
    }
    model = GaussianMixture(3, **settings).fit(torch.from_numpy(X))
    plain = GaussianMixture(3, **settings).fit(X)
    assert model.certificate_.ok
    assert isinstance(model.means_, torch.Tensor)
    assert model.means_.dtype == torch.float64
    same(model, plain, 1e-8)
    proba = model.predict_proba(torch.from_numpy(X))
    assert isinstance(proba, torch.Tensor)
    np.testing.assert_allclose(proba.numpy(), plain.predict_proba(X), atol=1e-9)
    assert (model.predict(torch.from_numpy(X)).numpy() == plain.predict(X)).all()
    assert surefit.verify(model, torch.from_numpy(X)).ok
    rows, labels = model.sample(10)
    assert rows.shape == (10, 4)
    assert labels.shape == (10,)
    single = GaussianMixture(3, **settings).fit(torch.from_numpy(X.astype(np.float32)))
    assert single.means_.dtype == torch.float32
    assert single.certificate_.ok, str(single.certificate_)


@every_kind
def test_float32_stays_float32(kind):
    X = blobs().astype(np.float32)
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        assert getattr(model, name).dtype == np.float32
    assert model.predict_proba(X).dtype == np.float32
    assert model.certificate_.ok
    same(model, GaussianMixture(3, covariance_type=kind, random_state=0).fit(X.astype(float)), 1e-5)


# ---------------------------------------------------------------------------- checkpoints and ranks


class Cut(Exception):
    """The machine went away."""


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_a_fit_that_was_cut_off_goes_on_to_the_same_bits(tmp_path, monkeypatch, init):
    monkeypatch.setattr(_climb, "SAVE_EVERY", 0.0)
    X = blobs(n=800)
    model = GaussianMixture(
        3, n_init=3, init_params=init, random_state=0, tol=1e-5, max_iter=400, certify=False
    )
    whole = GaussianMixture(**model.get_params()).fit(RowBlocks(X))

    class Failing(RowBlocks):
        left = 25

        def blocks(self):
            self.left -= 1
            if self.left < 0:
                raise Cut
            return super().blocks()

    for _ in range(100):
        rows = Failing(X)
        rows.checkpoint = Checkpoint(tmp_path)
        rows.left = 25
        try:
            model.fit(rows)
            break
        except Cut:
            continue
    for name in ("weights_", "means_", "covariances_", "ridge_slacks_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
    assert model.lower_bounds_ == whole.lower_bounds_


class Half(Alone):
    """One of two ranks that run in two threads of this process."""

    size = 2

    def __init__(self, rank, box, barrier):
        self.rank, self.box, self.barrier = rank, box, barrier

    def gather(self, thing):
        self.box[self.rank] = thing
        self.barrier.wait(60)
        found = list(self.box)
        self.barrier.wait(60)
        return found

    def share(self, thing):
        return self.gather(thing)[0]

    def sum(self, *arrays):
        mine, theirs = self.gather([np.asarray(a) for a in arrays])
        total = [a + b for a, b in zip(mine, theirs)]
        return total[0] if len(total) == 1 else tuple(total)


@pytest.mark.parametrize("init", ["random", "random_from_data", "k-means++"])
def test_rows_on_two_ranks(init):
    import threading

    X = blobs(n=601)
    settings = {
        "init_params": init,
        "random_state": 0,
        "tol": 1e-6,
        "max_iter": 500,
        "certify": False,
    }
    box, barrier, models = [None, None], threading.Barrier(2), [None, None]

    class Rows(RowBlocks):
        def __init__(self, group):
            self.part = group.share_of(len(X))
            super().__init__(X[self.part])
            self.group, self.first_row, self.shape = group, self.part.start, X.shape

        @property
        def rows_here(self):
            return self.part.stop - self.part.start

        def blocks(self):
            return RowBlocks(X[self.part]).blocks()

    def fit(rank):
        models[rank] = GaussianMixture(3, **settings).fit(Rows(Half(rank, box, barrier)))

    threads = [threading.Thread(target=fit, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(*models, 1e-15)
    if init != "k-means++":  # the seed goes through the group: another stream than one process has
        seed = int(np.random.RandomState(0).randint(2**31 - 1))
        alone = GaussianMixture(3, **{**settings, "random_state": seed}).fit(RowBlocks(X))
        same(models[0], alone, 1e-7)
        assert models[0].n_iter_ == alone.n_iter_
