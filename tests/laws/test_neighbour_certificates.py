"""The law of certificates for the neighbour models and the Bayes classifier.

It holds at the fit; it fails when a stored row, a stored label or the search is changed; it notices other
data.
"""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import surefit
from surefit import CertificateError, Status
from surefit.bayes import BayesClassifier
from surefit.densities import Gaussian
from surefit.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from surefit.solvers.neighbours import NeighbourIndex
from surefit.testing import check_certificate


def table(kind, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 4))
    y = rng.integers(0, 3, 50)
    if kind == "sparse":
        return sp.csr_array(X * (rng.uniform(size=X.shape) < 0.5)), y
    return {"dense": X, "float32": X.astype(np.float32), "lattice": np.round(X), "offset": X + 1e6}[
        kind
    ], y


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "lattice", "offset"])
@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(3),
        KNeighborsClassifier(3, weights="distance", algorithm="kd_tree"),
        KNeighborsClassifier(1, certify="full"),
        KNeighborsClassifier(4, metric="manhattan"),
        KNeighborsClassifier(4, metric="cosine"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:cannot use tree with sparse input")
def test_the_law_for_classifiers(estimator, kind):
    X, y = table(kind)
    if kind != "lattice" or estimator.metric != "cosine":  # a row of zeros has no direction
        check_certificate(estimator, X, y, attributes=("X_fit_",))


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
@pytest.mark.parametrize(
    "estimator", [KNeighborsRegressor(3), KNeighborsRegressor(5, weights="distance", p=1)], ids=str
)
def test_the_law_for_regressors(estimator, kind):
    X, y = table(kind)
    check_certificate(estimator, X, y + 0.5, attributes=("X_fit_", "y_fit_"))
    check_certificate(estimator, X, np.column_stack([y, -y]) + 0.5, attributes=("X_fit_",))


def test_one_changed_label_is_noticed():
    X, y = table("dense")
    for targets in (y, np.column_stack([y, y[::-1]]), np.array(["a", "b", "c"])[y]):
        model = KNeighborsClassifier().fit(X, targets)
        assert surefit.verify(model, X, targets).ok
        changed = copy.deepcopy(model)
        changed.y_fit_.flat[7] = (changed.y_fit_.flat[7] + 1) % 3
        report = surefit.verify(changed, X, targets)
        assert report["training rows kept"].observed == 1
        changed.y_fit_.flat[7] = 99  # not a class at all
        assert not surefit.verify(changed, X, targets).ok
        changed = copy.deepcopy(model)
        if changed.outputs_2d_:
            changed.classes_ = changed.classes_[::-1]
        else:
            changed.classes_ = changed.classes_[::-1].copy()
            assert not surefit.verify(changed, X, targets).ok


def test_labels_that_the_fit_has_not_seen_are_other_data():
    X, y = table("dense")
    model = KNeighborsClassifier().fit(X, y)
    report = surefit.verify(model, X, np.where(y == 2, 7, y))
    assert report["data"].status is Status.FAILS
    assert "lack the label 7" in report["attributes"].statement


def test_other_rows_are_noticed_without_a_recorded_fingerprint():
    X, y = table("dense")
    model = KNeighborsClassifier(certify=False).fit(X, y)
    assert surefit.verify(model, X, y).ok
    other = X.copy()
    other[3, 2] = np.nextafter(other[3, 2], 9.0)
    report = surefit.verify(model, other, y)
    assert report["training rows kept"].observed == 1
    assert not report.ok


@pytest.mark.parametrize("harm", ["wrong row", "swapped", "row twice", "no such row"])
def test_a_search_that_errs_is_caught(monkeypatch, harm):
    """One list in one query is enough, at fit and later."""
    X, y = table("dense")
    model = KNeighborsClassifier(3).fit(X, y)
    right = NeighbourIndex.query

    def wrong(self, queries, k):
        distances, rows = right(self, queries, k)
        rows = rows.copy()
        if harm == "wrong row":
            rows[-1, -1] = right(self, queries, k + 1)[1][-1, -1]
        elif harm == "swapped":
            rows[-1, [1, 2]] = rows[-1, [2, 1]]
        else:
            rows[-1, -1] = rows[-1, 0] if harm == "row twice" else 10**6
        return distances, rows

    monkeypatch.setattr(NeighbourIndex, "query", wrong)
    for certificate in (surefit.verify(model, X, y), model.certify_neighbors(X[:9] + 0.01)):
        assert certificate["exact neighbours"].status is Status.FAILS
        with pytest.raises(CertificateError, match="exact neighbours"):
            certificate.raise_if_failed()


def test_a_tie_in_the_wrong_order_is_caught(monkeypatch):
    X = np.array([[0.0], [1.0], [-1.0], [5.0]])
    model = NearestNeighbors(n_neighbors=2).fit(X)
    assert model.certify_neighbors([[0.0]]).ok
    monkeypatch.setattr(
        NeighbourIndex, "query", lambda *_: (np.array([[0.0, 1.0]]), np.array([[0, 2]]))
    )
    assert not model.certify_neighbors([[0.0]]).ok


def test_nearest_neighbors_alone():
    X, _ = table("dense")
    model = NearestNeighbors(certify="full").fit(X)
    assert model.certificate_["exact neighbours"].statement.startswith(
        "the 5 neighbours of all 50 training rows are the nearest rows"
    )
    assert surefit.verify(model, X).ok
    changed = copy.deepcopy(model)
    changed.X_fit_ = X * 1.001
    assert not surefit.verify(changed, X).ok
    assert surefit.verify(model, X[::-1])["data"].status is Status.FAILS


# ---------------------------------------------------------------------------- the Bayes classifier


def normal_classes(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=n) < 0.5, -1, 1)
    return rng.normal(size=(n, 1)) + y[:, None], y


GIVEN = [Gaussian([-1.0], [[1.0]]), Gaussian([1.0], [[1.0]])]


def test_the_law_for_the_bayes_classifier():
    X, y = normal_classes()
    check_certificate(BayesClassifier(GIVEN, [0.5, 0.5]), X, y, attributes=("priors_",))
    check_certificate(BayesClassifier(Gaussian.fit), X, y, attributes=("priors_",))
    check_certificate(BayesClassifier(GIVEN, certify="full"), X, y, attributes=("priors_",))


def test_a_bayes_classifier_that_was_changed_or_does_not_fit_the_rows():
    X, y = normal_classes()
    model = BayesClassifier(GIVEN, [0.5, 0.5]).fit(X, y)
    changed = copy.deepcopy(model)
    changed.densities_ = changed.densities_[::-1]
    assert surefit.verify(changed, X, y)["Bayes rule"].observed > 300
    wide = [
        Gaussian([-3.0], [[1.0]]),
        Gaussian([3.0], [[1.0]]),
    ]  # promises fewer errors than there are
    with pytest.warns(surefit.CertificateWarning, match="may not come from these densities"):
        wrong = BayesClassifier(wide, [0.5, 0.5]).fit(X, y)
    assert wrong.certificate_["risk"].status is Status.FAILS
