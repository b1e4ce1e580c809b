"""The law of certificates for k-means: holds at the fit, fails when model or data are changed."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import surefit
from surefit import CertificateError, CertificateWarning, Status
from surefit.cluster import KMeans, MiniBatchKMeans
from surefit.design import RowBlocks


def rows(kind="float64", seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = 3.0 * rng.standard_normal((6, 4))[rng.integers(0, 6, n)] + rng.standard_normal((n, 4))
    if kind == "sparse":
        return sp.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    if kind == "tensor":
        return pytest.importorskip("torch").as_tensor(X)
    return X + 1e6 if kind == "offset" else X.astype(kind)


KINDS = ["float64", "float32", "sparse", "offset", "tensor"]


@pytest.mark.spec("CLU-1")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tol", [1e-4, 0.0])
def test_it_holds_at_the_fit_and_for_a_stranger(kind, weighted, tol):
    X = rows(kind, n=120)
    w = np.random.default_rng(1).uniform(0.5, 2.0, 120) if weighted else None
    model = KMeans(6, random_state=0, n_init=2, tol=tol).fit(X, sample_weight=w)
    names = {"labels", "WCSS", "centres", "monotone", "restarts", "distance from the optimum"}
    assert {claim.name for claim in model.certificate_.claims} == names
    for claim in model.certificate_.claims:  # the relaxation is left to verify for 300 rows
        undecided = claim.name == "distance from the optimum"
        assert claim.status is (Status.UNDECIDED if undecided else Status.HOLDS)
    report = surefit.verify(model, X, sample_weight=w)
    assert report.ok
    assert report["data"].status is Status.HOLDS


def changed(model, **attributes):
    other = copy.deepcopy(model)
    for name, value in attributes.items():
        setattr(other, name, value)
    return other


@pytest.mark.spec("CLU-1")
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_it_fails_when_the_model_is_changed(kind):
    X = rows(kind)
    model = KMeans(6, random_state=0).fit(X)
    centres, labels = model.cluster_centers_, model.labels_
    length = np.linalg.norm(centres)
    rng = np.random.default_rng(0)
    for direction in (centres, rng.standard_normal(centres.shape), np.eye(6, 4)):
        step = (1e-3 * length / np.linalg.norm(direction)) * direction
        report = surefit.verify(
            changed(model, cluster_centers_=(centres + step).astype(centres.dtype)), X
        )
        assert "WCSS" in {claim.name for claim in report.failed}
    swapped = labels.copy()
    swapped[5] = (swapped[5] + 1) % 6
    report = surefit.verify(changed(model, labels_=swapped), X)
    assert report["labels"].observed == 1
    assert report["labels"].status is Status.FAILS
    permuted = surefit.verify(changed(model, labels_=(labels + 1) % 6), X)
    assert permuted["labels"].observed == 300
    for other in (model.inertia_ * (1 + 1e-3), model.inertia_ * (1 - 1e-9)):
        assert surefit.verify(changed(model, inertia_=other), X)["WCSS"].status is Status.FAILS
    for other in (np.nan, -model.inertia_):
        report = surefit.verify(changed(model, inertia_=other), X)
        assert "inertia_" in report["attributes"].statement
    trace = list(model.inertia_trace_)
    for forged in ([trace[0] / 2, *trace[1:]], trace[:-1], [*trace[:-1], trace[-1] * 1.001], []):
        assert (
            surefit.verify(changed(model, inertia_trace_=forged), X)["monotone"].status
            is Status.FAILS
        )


@pytest.mark.parametrize("wrong", [-1, 6, 2**31 - 1])
def test_labels_that_name_no_centre_are_wrong(wrong):
    X = rows()
    model = KMeans(6, random_state=0).fit(X)
    labels = model.labels_.copy()
    labels[0] = wrong
    assert not surefit.verify(changed(model, labels_=labels), X).ok
    assert not surefit.verify(changed(model, labels_=labels[:-1]), X).ok


def test_it_notices_other_data():
    X = rows()
    model = KMeans(6, random_state=0).fit(X)
    other = X.copy()
    other[7, 2] += 1e-3
    for Z in (other, X[::-1], X[:-1], X * 1.001):
        report = surefit.verify(model, Z)
        assert report["data"].status is Status.FAILS
        with pytest.raises(CertificateError):
            report.raise_if_failed()
    assert not surefit.verify(model, X, sample_weight=np.full(300, 2.0)).ok


def test_centres_that_still_move_are_said_to():
    with pytest.warns(CertificateWarning, match="one more step would move the centres"):
        model = KMeans(6, random_state=0, max_iter=1, init="random", n_init=1).fit(rows())
    claim = model.certificate_["centres"]
    assert claim.status is Status.FAILS
    assert claim.observed > claim.bound == pytest.approx(1e-4 * rows().var(axis=0).mean(), rel=1e-9)
    assert model.certificate_["labels"].status is Status.HOLDS


def test_a_stop_by_tol_claims_no_more_than_tol():
    X = np.random.default_rng(0).standard_normal((3000, 3))
    model = KMeans(30, random_state=0, tol=1e-2).fit(X)
    claim = model.certificate_["centres"]
    assert "tol times the mean variance" in claim.statement
    assert 0.0 < claim.observed <= claim.bound
    assert model.certificate_.stopped == "the centres moved by less than tol allows"


def test_a_short_last_step_is_checked_from_where_it_began():
    """The step after a short one may be longer than tol allows; the last one is repeated from the witness."""
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2000, 5)) + 4.0 * rng.integers(0, 3, (2000, 5))
        model = KMeans(5, random_state=0).fit(X)
        claim = model.certificate_["centres"]
        assert claim.status is Status.HOLDS
        if claim.statement.startswith("the last step moved"):
            found += 1
            moved = np.sum((model.cluster_centers_ - model.centers_before_) ** 2)
            assert claim.observed == pytest.approx(moved, rel=1e-12)
            forged = changed(model, centers_before_=model.cluster_centers_.copy())
            assert surefit.verify(forged, X, tol=1e-4)["centres"].status is Status.FAILS
    assert found > 0


@pytest.mark.parametrize(
    "estimator", [KMeans(6, random_state=0), MiniBatchKMeans(6, random_state=0)]
)
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_it_survives_the_file_and_a_forged_file_is_caught(estimator, kind, tmp_path):
    X = rows(kind)
    model = copy.deepcopy(estimator).fit(X)
    path = tmp_path / "model.surefit"
    model.save(path)
    again = surefit.load(path)
    assert surefit.verify(again, X).ok
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    forged = changed(
        model, cluster_centers_=model.cluster_centers_ * model.cluster_centers_.dtype.type(1.001)
    )
    forged.save(path)
    assert not surefit.verify(surefit.load(path), X).ok
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="checksum"):
        surefit.load(path)


def test_mini_batches_claim_labels_and_sum_only():
    X = rows()
    model = MiniBatchKMeans(6, random_state=0).fit(X)
    assert model.certificate_["labels"].status is Status.HOLDS
    assert model.certificate_["WCSS"].status is Status.HOLDS
    assert model.certificate_["centres"].status is Status.UNDECIDED
    assert "no optimality claim" in model.certificate_["centres"].statement
    assert not hasattr(model.partial_fit(X), "certificate_")


def test_rows_on_disk_are_certified(tmp_path):
    np.save(tmp_path / "rows.npy", rows())
    model = KMeans(6, random_state=0).fit(RowBlocks(tmp_path / "rows.npy", block_bytes=1000))
    assert model.certificate_.ok
    assert surefit.verify(model, rows()).ok  # the fingerprint does not depend on the container


def test_many_exact_ties_wait_for_verify():
    """Between two centres lie more rows than rational numbers decide at fit."""
    third = 1.0 / 3.0
    X = np.array([[0.0, 0.0], [2 * third, 0.0], [third, 0.1]] + 2500 * [[third, 0.0]])
    model = KMeans(2, init=X[:2], n_init=1, max_iter=1, tol=1e9).fit(X)
    claim = surefit.verify(model, X)["labels"]
    assert claim.status is Status.HOLDS
