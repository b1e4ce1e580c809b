"""Bad input to mixtures and EM: the error says what, and what to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

import surefit
from surefit.design import RowBlocks
from surefit.mixture import BernoulliMixture, GaussianMixture, em, initial_parameters

X = np.random.default_rng(0).normal(size=(30, 3))
KINDS = [GaussianMixture, BernoulliMixture]
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_more_components_than_rows(kind):
    with pytest.raises(
        ValueError,
        match="Expected n_samples >= n_components but got n_components = 31, n_samples = 30",
    ):
        kind(31).fit(X)
    with pytest.raises(
        ValueError, match="n_components must be between 1 and the number of rows, 30, got 31"
    ):
        initial_parameters(X, 31)


@every_kind
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_none(kind, bad):
    rows = X.copy()
    rows[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        kind(2).fit(rows)
    on_disk = {"init_params": "random"} if kind is GaussianMixture else {}
    with pytest.raises(ValueError, match=r"contains (NaN|infinity): row 3, column 1"):
        kind(2, **on_disk).fit(RowBlocks(rows))
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        kind(2).fit(X).predict(rows)


@every_kind
def test_shapes_and_order(kind):
    with pytest.raises(NotFittedError):
        kind(2).predict(X)
    with pytest.raises(NotFittedError):
        kind(2).sample()
    model = kind(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="X has 2 features, but"):
        model.predict_proba(X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        model.score_samples(X[0])
    with pytest.raises(ValueError, match="The sampling requires at least one sample"):
        model.sample(0)
    with pytest.raises(ValueError, match="takes no sample_weight"):
        surefit.verify(model, X, sample_weight=np.ones(30))


@every_kind
@pytest.mark.parametrize(
    "setting",
    [{"n_components": 0}, {"n_init": 0}, {"tol": -1.0}, {"max_iter": -1}, {"certify": "no"}],
)
def test_settings(kind, setting):
    with pytest.raises(InvalidParameterError, match=next(iter(setting))):
        kind(**setting).fit(X)


def test_gaussian_settings():
    for setting in (
        {"covariance_type": "round"},
        {"reg_covar": -1.0},
        {"init_params": "best"},
        {"hard": "yes"},
    ):
        with pytest.raises(InvalidParameterError, match=next(iter(setting))):
            GaussianMixture(2, **setting).fit(X)


def test_sparse_rows_are_refused_as_scikit_learn_does():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        GaussianMixture(2).fit(sp.csr_array(X))


def test_one_row():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        GaussianMixture(1).fit(X[:1])
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        GaussianMixture(1, init_params="random").fit(RowBlocks(X[:1]))


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (
            {"weights_init": np.ones(3) / 3},
            r"The parameter 'weights' should have the shape of \(2,\), but got \(3,\)",
        ),
        ({"weights_init": [1.5, -0.5]}, r"The parameter 'weights' should be in the range \[0, 1\]"),
        ({"weights_init": [0.2, 0.2]}, r"should be normalized, but got sum\(weights\) = 0.40000"),
        (
            {"means_init": X[:3]},
            r"The parameter 'means' should have the shape of \(2, 3\), but got \(3, 3\)",
        ),
        ({"precisions_init": np.eye(3)}, r"'full precision' should have the shape of \(2, 3, 3\)"),
        (
            {"precisions_init": -np.stack([np.eye(3)] * 2)},
            "'full precision' should be symmetric, positive-definite",
        ),
        (
            {"precisions_init": np.stack([np.triu(np.ones((3, 3)))] * 2)},
            "should be symmetric, positive-definite",
        ),
        (
            {"precisions_init": -np.eye(3), "covariance_type": "tied"},
            "'tied precision' should be symmetric",
        ),
        (
            {"precisions_init": np.zeros((2, 3)), "covariance_type": "diag"},
            "'diag precision' should be positive",
        ),
        (
            {"precisions_init": [1.0, -1.0], "covariance_type": "spherical"},
            "'spherical precision' should be positive",
        ),
        ({"means_init": np.full((2, 3), np.nan)}, "NaN"),
    ],
)
def test_initial_parameters_that_are_none(setting, words):
    with pytest.raises(ValueError, match=words):
        GaussianMixture(2, **setting).fit(X)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_rows_that_are_all_the_same(kind):
    rows = np.ones((20, 3))
    if kind in ("full", "tied"):
        with pytest.raises(ValueError, match="ill-defined empirical covariance"):
            GaussianMixture(1, covariance_type=kind, reg_covar=0.0).fit(rows)
    else:  # rounding may leave a variance of 1e-32, here as in scikit-learn
        with pytest.warns(ConvergenceWarning):
            assert (
                not GaussianMixture(1, covariance_type=kind, reg_covar=0.0)
                .fit(rows)
                .certificate_.ok
            )
    model = GaussianMixture(1, covariance_type=kind).fit(rows)  # no warning: harmless, and reported
    assert model.certificate_.ok
    assert model.certificate_["variance floor"].status is surefit.Status.UNDECIDED
    np.testing.assert_allclose(model.means_, 1.0)


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # k-means finds fewer cells
@pytest.mark.parametrize("hard", [False, True])
def test_fewer_distinct_rows_than_components(hard):
    rows = np.repeat([[0.0, 0.0], [5.0, 5.0]], 20, axis=0)
    model = GaussianMixture(4, random_state=0, hard=hard).fit(rows)
    assert np.isfinite(model.score(rows))
    assert model.certificate_["variance floor"].status is surefit.Status.UNDECIDED
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx(1.0)


def test_a_fit_that_ran_out_of_steps_says_so():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.warns(ConvergenceWarning) as told:
        model = GaussianMixture(4, init_params="random", max_iter=3, tol=1e-9, random_state=0).fit(
            rows
        )
    assert any("Best performing initialization did not converge" in str(w.message) for w in told)
    assert model.certificate_["stationarity"].status is surefit.Status.FAILS
    assert not model.converged_
    assert model.n_iter_ == 3


def test_no_step_at_all_leaves_stationarity_open():
    model = GaussianMixture(2, max_iter=0, random_state=0).fit(X)
    assert model.certificate_["stationarity"].status is surefit.Status.UNDECIDED
    assert model.lower_bounds_ == []


def test_em_names_what_is_wrong_with_the_steps():
    def run(matrix, **settings):
        return em(lambda theta: matrix, lambda q: 0, 0, **settings)

    with pytest.raises(ValueError, match=r"e_step must return a matrix .* shape \(3,\)"):
        run(np.zeros(3))
    with pytest.raises(ValueError, match="e_step returned NaN or infinity"):
        run(np.array([[0.0, np.nan]]))
    with pytest.raises(ValueError, match="e_step gives row 1 probability 0 under every latent"):
        run(np.array([[0.0, 0.0], [-np.inf, -np.inf]]))
    with pytest.raises(ValueError, match="tol must not be negative"):
        run(np.zeros((2, 2)), tol=-1.0)
    with pytest.raises(ValueError, match="max_iter must be at least 1"):
        run(np.zeros((2, 2)), max_iter=0)
    assert run(np.array([[0.0, -np.inf]])).certificate.ok  # one latent is impossible, not the row


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"means": "best"}, "means must be"),
        ({"covariance_type": "round"}, "covariance_type must be"),
    ],
)
def test_settings_of_the_start(setting, words):
    with pytest.raises(ValueError, match=words):
        initial_parameters(X, 2, **setting)
