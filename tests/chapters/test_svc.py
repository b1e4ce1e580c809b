"""Kernel support vector classification: agreement, weights, containers, hard margins, bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import surefit
from surefit import CertificateWarning, Status
from surefit.kernels import Gaussian, Laplace, Linear, Polynomial
from surefit.svm import SVC


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16.0, y[:400]


def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("data", [cancer, digits, iris], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"C": 100.0, "gamma": 0.01},
        {"kernel": "linear", "C": 0.1},
        {"kernel": "poly", "coef0": 1.0, "degree": 2},
        {"class_weight": "balanced", "C": 0.5},
    ],
    ids=str,
)
def test_scikit_learn_agrees(data, params):
    """LIBSVM stores kernel values in single precision, so its decisions are right to some 1e-5."""
    X, y = data()
    ours = SVC(tol=1e-8, decision_function_shape="ovo", **params).fit(X, y)
    theirs = sklearn.svm.SVC(tol=1e-8, decision_function_shape="ovo", **params).fit(X, y)
    scores, other = ours.decision_function(X), theirs.decision_function(X)
    np.testing.assert_allclose(scores, other, atol=2e-4 * np.abs(other).max())
    clear = np.abs(other).min(axis=1) > 1e-3 if other.ndim == 2 else np.abs(other) > 1e-3
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    assert ours.dual_coef_.shape[0] == theirs.dual_coef_.shape[0]
    assert np.abs(ours.n_support_ - theirs.n_support_).max() <= 3  # multipliers near 0
    assert ours.certificate_.ok
    ovr = SVC(**params).fit(X, y).decision_function(X[:20])
    theirs = sklearn.svm.SVC(**params).fit(X, y).decision_function(X[:20])
    np.testing.assert_allclose(ovr, theirs, atol=0.02)


def test_many_classes_state_the_worst_pair():
    X, y = digits()
    model = SVC(tol=1e-6).fit(X, y)
    claim = model.certificate_["duality gap"]
    assert "of 45 pairs of classes the worst is" in claim.statement
    assert claim.status is Status.HOLDS
    model.intercept_[17] += 0.1
    assert not surefit.verify(model, X, y).ok


def test_working_sets_reach_the_solution_of_one_block(monkeypatch):
    """Rounds, a start from a sample, shrinking and single precision end where a single block does."""
    from surefit.solvers import smo

    X, y = make_classification(3000, 8, n_informative=5, flip_y=0.1, random_state=0)
    ours = SVC(gamma=0.1, tol=1e-6, certify="full")
    model = ours.fit(X, y)
    assert model.certificate_.ok
    scores, n_support = model.decision_function(X), model.n_support_.copy()
    monkeypatch.setattr(smo, "_SINGLE", 10_000)
    monkeypatch.setattr("surefit.svm._sources._SMALL", 10_000)
    np.testing.assert_allclose(ours.fit(X, y).decision_function(X), scores, atol=1e-5)
    np.testing.assert_array_equal(model.n_support_, n_support)
    monkeypatch.setattr(smo, "_SINGLE", 100)
    unshrunk = SVC(gamma=0.1, tol=1e-6, shrinking=False, certify="full").fit(X, y)
    np.testing.assert_allclose(unshrunk.decision_function(X), scores, atol=1e-5)


@pytest.mark.parametrize(
    "kernel", ["linear", "poly", Laplace(0.2), Gaussian(0.05) + 0.1 * Linear()], ids=str
)
def test_streamed_kernels_reach_the_solution(kernel, monkeypatch):
    """Rows by features (linear) or from a cache smaller than the working set."""
    from surefit.solvers import smo

    X, y = make_classification(700, 6, n_informative=4, flip_y=0.1, random_state=1)
    X = StandardScaler().fit_transform(X)
    params = {"kernel": kernel, "coef0": 1.0, "degree": 2, "tol": 1e-6, "C": 0.5, "certify": "full"}
    whole = SVC(**params).fit(X, y)
    monkeypatch.setattr(smo, "_SINGLE", 100)
    monkeypatch.setattr("surefit.svm._sources._SMALL", 100)
    streamed = SVC(cache_size=0.1, **params).fit(X, y)
    np.testing.assert_allclose(streamed.decision_function(X), whole.decision_function(X), atol=1e-4)
    assert streamed.certificate_.ok


def test_weights_are_repetitions():
    X, y = cancer()
    X, y = X[:120], y[:120]
    counts = np.random.default_rng(0).integers(0, 4, size=120)
    weighted = SVC(gamma=0.05, tol=1e-10).fit(X, y, sample_weight=counts)
    repeated = SVC(gamma=0.05, tol=1e-10).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-8
    )


def test_class_weight_scales_c():
    X, y = cancer()
    weights = np.where(y == 0, 3.0, 1.0)
    one = SVC(class_weight={0: 3.0}, gamma=0.05, tol=1e-8).fit(X, y)
    other = SVC(gamma=0.05, tol=1e-8).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-7)
    np.testing.assert_allclose(one.class_weight_, [3.0, 1.0])


def test_negative_weights_drop_rows():
    X, y = cancer()
    weights = np.where(np.arange(len(y)) < 100, -1.0, 1.0)
    dropped = SVC(gamma=0.05, tol=1e-8).fit(X, y, sample_weight=weights)
    kept = SVC(gamma=0.05, tol=1e-8).fit(X[100:], y[100:])
    np.testing.assert_allclose(dropped.decision_function(X), kept.decision_function(X), atol=1e-7)
    assert dropped.certificate_.ok
    assert dropped.support_.min() >= 100


def test_a_class_without_weight_never_wins():
    X, y = iris()
    model = SVC().fit(X, y, sample_weight=np.where(y == 1, 0.0, 1.0))
    assert set(model.predict(X)) == {0, 2}
    assert model.certificate_.ok


def test_precomputed_callable_and_kernel_objects_agree():
    X, y = cancer()
    kernel = 2.0 * Gaussian(0.02) + 0.1 * Polynomial(2)
    K = kernel(X)
    found = [
        SVC(kernel=kernel, tol=1e-8).fit(X, y).decision_function(X[:50]),
        SVC(kernel="precomputed", tol=1e-8).fit(K, y).decision_function(K[:50]),
        SVC(kernel=lambda A, B: kernel(A, B), tol=1e-8).fit(X, y).decision_function(X[:50]),
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-7)
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_is_dense(kernel, container):
    X, y = digits()
    dense = SVC(kernel=kernel, tol=1e-9, decision_function_shape="ovo").fit(X, y)
    sparse = SVC(kernel=kernel, tol=1e-9, decision_function_shape="ovo").fit(container(X), y)
    assert sp.issparse(sparse.support_vectors_)
    assert sp.issparse(sparse.dual_coef_)
    np.testing.assert_allclose(
        sparse.decision_function(container(X)), dense.decision_function(X), atol=1e-6
    )
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-6)


def test_float32_stays_float32():
    X, y = cancer()
    model = SVC(tol=1e-6).fit(X.astype(np.float32), y)
    assert model.support_vectors_.dtype == np.float32
    assert model.certificate_.ok
    double = SVC(tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), double.decision_function(X), atol=1e-4)


def test_a_tolerance_below_the_rounding_of_float32_tensors_is_met():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20)).astype(np.float32)
    y = np.where((X**2).sum(axis=1) + rng.standard_normal(300) > 20, 1, -1)
    tensor = SVC(gamma=0.05, tol=1e-9).fit(torch.as_tensor(X), y)
    array = SVC(gamma=0.05, tol=1e-9).fit(X.astype(np.float64), y)
    assert tensor.certificate_["duality gap"].status.name == "HOLDS"
    np.testing.assert_allclose(tensor.intercept_, array.intercept_, atol=1e-6)


def test_torch_tensors_give_the_same_machine():
    torch = pytest.importorskip("torch")
    X, y = cancer()
    kind = torch.float64
    tensor = torch.as_tensor(X, dtype=kind)
    model = SVC(gamma=0.05, tol=1e-8, certify="full").fit(tensor, torch.as_tensor(y))
    plain = SVC(gamma=0.05, tol=1e-8).fit(X, y)
    assert model.certificate_.ok
    scores = model.decision_function(tensor)
    assert isinstance(scores, torch.Tensor)
    np.testing.assert_allclose(scores.numpy(), plain.decision_function(X), atol=1e-7)
    np.testing.assert_array_equal(model.predict(tensor).numpy(), plain.predict(X))
    assert surefit.verify(model, tensor, torch.as_tensor(y)).ok


@pytest.mark.parametrize("resident", [True, False])
def test_tensor_rows_in_rounds(resident, monkeypatch):
    torch = pytest.importorskip("torch")
    from surefit.iterate import run
    from surefit.solvers import smo
    from surefit.solvers.kernel_rows import TensorRows, WholeMatrix

    monkeypatch.setattr(smo, "_SINGLE", 100)
    X, y = make_classification(600, 6, n_informative=4, flip_y=0.1, random_state=2)
    signs = np.where(y == 1, 1.0, -1.0)
    task = smo.BoxTask(signs, np.minimum(signs, 0.0), np.maximum(signs, 0.0), np.arange(600))
    kernel = Gaussian(0.2)
    sources = [
        TensorRows(kernel, torch.as_tensor(X, dtype=torch.float32), resident=resident),
        WholeMatrix(kernel(X)),
    ]
    found = [run(smo.smo(s, task, tol=1e-5, size=128), tol=1e-5, max_iter=10**6) for s in sources]
    assert all(fit.converged for fit in found)
    np.testing.assert_allclose(found[0].value, found[1].value, rtol=1e-7)


# ------------------------------------------------------------------------ hard margins


def test_equal_points_with_opposite_labels_have_no_hard_margin():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    X[7] = X[3]
    y = (np.arange(30) > 5).astype(int)
    with pytest.warns(CertificateWarning, match="give a finite C"):
        model = SVC(C=np.inf).fit(X, y)
    weights = model.farkas_
    assert set(np.flatnonzero(weights > 1e-9)) == {3, 7}
    assert model.certificate_["not separable"].status is Status.HOLDS
    assert surefit.verify(model, X, y)["hard margin"].status is Status.FAILS


def test_overlapping_classes_have_a_farkas_certificate():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, size=200)
    with pytest.warns(CertificateWarning):
        model = SVC(C=np.inf, kernel="linear").fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    weights = model.farkas_
    assert (weights >= 0).all()
    np.testing.assert_allclose((weights * signs) @ X, 0.0, atol=1e-9)
    assert (weights * signs).sum() == pytest.approx(0.0, abs=1e-12)
    assert model.n_iter_[0] < 100_000


def test_one_pair_of_several_is_not_separable():
    X, y = iris()
    with pytest.warns(CertificateWarning):
        model = SVC(C=np.inf, kernel="linear", tol=1e-6).fit(X, y)
    assert model.farkas_.shape == (3, 150)
    assert [bool(row.any()) for row in model.farkas_] == [False, False, True]
    assert model.certificate_["0 vs 1: margin"].status is Status.HOLDS
    assert model.certificate_["1 vs 2: not separable"].status is Status.HOLDS
    assert model.certificate_["1 vs 2: hard margin"].status is Status.FAILS


def test_hard_margin_with_a_gaussian_kernel():
    X, y = cancer()
    model = SVC(C=np.inf, gamma=0.05, tol=1e-6).fit(X, y)
    assert model.certificate_["margin"].status is Status.HOLDS
    assert model.score(X, y) == 1.0
    np.testing.assert_array_equal(model.predict(X), SVC(C=1e10, gamma=0.05).fit(X, y).predict(X))


# ------------------------------------------------------------------------ edges


@pytest.mark.parametrize("C", [1e-10, 1e-4, 1e6])
@pytest.mark.parametrize("gamma", [0.0, 1e-8, 1.0, 1e4])
def test_extreme_parameters_are_certified(C, gamma):
    X, y = cancer()
    model = SVC(C=C, gamma=gamma).fit(X[:150], y[:150])
    assert model.certificate_.ok
    assert np.isfinite(model.decision_function(X)).all()


def test_constant_features_and_equal_rows():
    y = np.array([0, 1] * 10)
    model = SVC().fit(np.ones((20, 3)), y)
    assert model.certificate_.ok
    model = SVC(kernel="linear").fit(np.tile([[0.0], [1.0]], (10, 1)), y)
    np.testing.assert_array_equal(model.predict([[0.0], [1.0]]), [0, 1])


def test_a_fit_cut_short_warns_and_its_claims_fail():
    X, y = cancer()
    with pytest.warns(ConvergenceWarning, match="Solver terminated early"):
        model = SVC(max_iter=3, C=10.0).fit(X, y)
    assert model.fit_status_ == 1
    assert model.n_iter_.tolist() == [3]
    assert not model.certificate_.ok


def test_a_sigmoid_kernel_makes_no_claim_of_optimality():
    X, y = (part[:200] for part in cancer())
    model = SVC(kernel="sigmoid", gamma=0.5).fit(X, y)
    assert model.certificate_["duality gap"].status is Status.UNDECIDED
    again = surefit.verify(model, X, y)
    assert again["duality gap"].status is Status.UNDECIDED
    assert "not positive semi-definite" in again["duality gap"].statement


def test_a_matrix_that_is_no_kernel_is_found_out():
    K = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    model = SVC(kernel="precomputed").fit(K, [0, 1, 1])
    report = surefit.verify(model, K, [0, 1, 1])
    assert report["positive semi-definite"].status is Status.FAILS
    assert "-1" in report["positive semi-definite"].statement


@pytest.mark.parametrize(
    ("params", "X", "y", "words"),
    [
        ({}, [[0.0], [1.0]], [1, 1], "number of classes has to be greater than one; got 1 class"),
        ({}, [[0.0], [1.0]], [0.5, 1.5], "Unknown label type"),
        ({}, [[0.0], [np.nan]], [0, 1], "NaN"),
        ({"kernel": "precomputed"}, np.ones((3, 2)), [0, 1, 1], "must be a square matrix"),
        ({"kernel": "precomputed"}, np.full((2, 2), np.nan), [0, 1], "NaN"),
        ({"kernel": "cosine"}, [[0.0], [1.0]], [0, 1], "'kernel' parameter"),
        ({"C": 0.0}, [[0.0], [1.0]], [0, 1], "'C' parameter"),
        ({"kernel": lambda A, B: np.ones((1, 1))}, [[0.0], [1.0]], [0, 1], "shape"),
        ({}, [[1e200], [1.0]], [0, 1], "large values"),
    ],
)
def test_bad_input_is_named(params, X, y, words):
    with pytest.raises(ValueError, match=words):
        SVC(**params).fit(X, y)


def test_predictions_check_their_rows():
    X, y = cancer()
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match="30 features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match="cannot use sparse input"):
        model.predict(sp.csr_array(X))
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = model.coef_
    with pytest.raises(AttributeError):
        _ = model.predict_proba
