"""Bad input to neighbours, the Bayes classifier and the geometry: the error says what, and what to do."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import InvalidParameterError

import surefit
from surefit.bayes import BayesClassifier
from surefit.densities import Gaussian, Laplace
from surefit.geometry import margin, project, signed_distance
from surefit.linear_model import LogisticRegression
from surefit.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors

X = np.random.default_rng(0).normal(size=(20, 3))
y = np.arange(20) % 2
KINDS = [KNeighborsClassifier, KNeighborsRegressor]
every_kind = pytest.mark.parametrize("kind", [*KINDS, NearestNeighbors])


@every_kind
def test_more_neighbours_than_rows(kind):
    model = kind(n_neighbors=21).fit(X, y)
    with pytest.raises(
        ValueError, match="Expected n_neighbors <= n_samples_fit, but n_neighbors = 21"
    ):
        model.kneighbors(X)
    model = kind(n_neighbors=20).fit(X, y)
    with pytest.raises(
        ValueError, match="Expected n_neighbors < n_samples_fit, but n_neighbors = 20"
    ):
        model.kneighbors()
    assert model.kneighbors(X)[0].shape == (20, 20)


@every_kind
@pytest.mark.parametrize("k", [0, -1, 2.5, "three"])
def test_no_number_of_neighbours(kind, k):
    with pytest.raises(InvalidParameterError, match="n_neighbors"):
        kind(n_neighbors=k).fit(X, y)
    model = kind().fit(X, y)
    with pytest.raises((ValueError, TypeError), match="n_neighbors"):
        model.kneighbors(X, k)


@every_kind
def test_numbers_that_are_none(kind):
    for bad in (np.nan, np.inf):
        rows = X.copy()
        rows[3, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            kind().fit(rows, y)
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            kind().fit(X, y).kneighbors(rows)
    with pytest.raises(ValueError, match=r"numeric"):
        kind().fit(np.full((20, 3), "a"), y)


@every_kind
def test_shapes(kind):
    with pytest.raises(ValueError, match="0 sample"):
        kind().fit(np.empty((0, 3)), np.empty(0))
    model = kind().fit(X, y)
    with pytest.raises(ValueError, match="X has 2 features, but"):
        model.kneighbors(X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        model.kneighbors(X[0])
    with pytest.raises(NotFittedError):
        kind().kneighbors(X)


@pytest.mark.parametrize("kind", KINDS)
def test_targets(kind):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        kind().fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        kind().fit(X, None)


def test_one_class_and_real_targets():
    model = KNeighborsClassifier().fit(X, np.ones(20))
    assert set(model.predict(X)) == {1.0}
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((20, 1)))
    with pytest.raises(ValueError, match="Unknown label type"):
        KNeighborsClassifier().fit(X, X[:, 0])


def test_precomputed_distances_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"must be square\. Input is a 20x3 matrix"):
        KNeighborsClassifier(metric="precomputed").fit(np.abs(X), y)
    with pytest.raises(ValueError, match="Negative values"):
        KNeighborsClassifier(metric="precomputed").fit(X @ X.T, y)
    model = KNeighborsClassifier(metric="precomputed").fit(np.abs(X @ X.T), y)
    with pytest.raises(
        ValueError, match="is expecting 20 features as input: with metric='precomputed'"
    ):
        model.predict(np.abs(X))


def test_metrics():
    with pytest.raises(InvalidParameterError, match="metric"):
        KNeighborsClassifier(metric="nonsense").fit(X, y)
    with pytest.raises(ValueError, match="Metric 'haversine' not valid for sparse input"):
        KNeighborsClassifier(metric="haversine").fit(sp.csr_array(X[:, :2]), y)
    with pytest.raises(ValueError, match="kd_tree does not support callable metric"):
        KNeighborsClassifier(metric=lambda a, b: 0.0, algorithm="kd_tree").fit(X, y)
    model = KNeighborsClassifier(algorithm="kd_tree").fit(X, y)
    with pytest.raises(ValueError, match="does not work with sparse matrices"):
        model.predict(sp.csr_array(X))


def test_weights():
    with pytest.raises(ValueError, match="takes no sample_weight"):
        surefit.verify(KNeighborsClassifier().fit(X, y), X, y, sample_weight=np.ones(20))
    model = KNeighborsClassifier(weights=np.zeros_like).fit(X, y)
    with pytest.raises(ValueError, match="getting zero weights"):
        model.predict(X)


def test_a_failed_fit_leaves_no_certificate_behind():
    model = KNeighborsClassifier().fit(X, y)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, y[:-1])
    assert not hasattr(model, "certificate_")


# ---------------------------------------------------------------------------- the Bayes classifier

PAIR = [Gaussian(np.zeros(3), np.eye(3)), Gaussian(np.ones(3), np.eye(3))]


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (BayesClassifier(PAIR[:1]), ValueError, "densities has 1 entries for 2 classes"),
        (
            BayesClassifier(PAIR, [0.5, 0.6]),
            ValueError,
            "priors must be 2 numbers >= 0 that sum to 1",
        ),
        (BayesClassifier(PAIR, [1.5, -0.5]), ValueError, "priors must be 2 numbers"),
        (BayesClassifier(PAIR, [1.0]), ValueError, "priors must be 2 numbers"),
        (
            BayesClassifier(PAIR, classes=[0, 5]),
            ValueError,
            r"y has labels \[1\] that are not in classes",
        ),
        (BayesClassifier(["a", "b"]), TypeError, "neither log_prob nor logpdf"),
        (BayesClassifier([Laplace(0, 1), Laplace(1, 1)]), ValueError, "one a row is needed"),
        (
            BayesClassifier([Gaussian([0.0], [[1.0]])] * 2),
            ValueError,
            "X has 3 columns, the density 1",
        ),
        (BayesClassifier("gaussian"), InvalidParameterError, "densities"),
        (
            BayesClassifier(Gaussian.fit, classes=[0, 1, 2]),
            ValueError,
            "class .*2.*: y has no row of it",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bayes_classifier_that_cannot_be(model, error, words):
    with pytest.raises(error, match=words):
        model.fit(X, y)


def test_a_bayes_classifier_is_not_saved_and_needs_draws(tmp_path):
    model = BayesClassifier(PAIR).fit(X, y)
    with pytest.raises(TypeError, match="holds densities, which a model file cannot"):
        model.save(tmp_path / "model.surefit")
    with pytest.raises(TypeError, match="cannot save"):
        surefit.save(model, tmp_path / "model.surefit")

    class Silent:
        def log_prob(self, rows):
            return -np.abs(rows).sum(axis=1)

    with pytest.raises(TypeError, match="neither sample nor rvs"):
        BayesClassifier([Silent(), Silent()], [0.5, 0.5]).fit(X, y).risk()
    other = BayesClassifier([stats.multivariate_normal(np.zeros(3))] * 2, certify=False).fit(X, y)
    with pytest.raises(ValueError, match="n_samples must be positive"):
        other.risk(n_samples=0)


# ---------------------------------------------------------------------------- geometry


def test_planes():
    with pytest.raises(TypeError, match=r"fitted linear classifier or a pair \(w, b\), got str"):
        signed_distance("plane", X)
    with pytest.raises(ValueError, match="not all 0"):
        signed_distance((np.zeros(3), 1.0), X)
    with pytest.raises(ValueError, match="X has 3 columns, the hyperplane 2"):
        project(([1.0, 2.0], 0.0), X)
    with pytest.raises(
        ValueError, match=r"y must hold -1 or 1 for each of the 20 rows.*labels \['0', '1'\]"
    ):
        margin(([1.0, 2.0, 0.0], 0.0), X, y)
    three = LogisticRegression().fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="with 3 hyperplanes: pass one of them"):
        signed_distance(three, X)
