"""The laws of kernel machines: scikit-learn's checks, certificates that hold and can fail, model files."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import surefit
from surefit import Status
from surefit.kernels import Gaussian, Laplace, Linear, Polynomial
from surefit.svm import SVC, SVR
from surefit.testing import check_certificate

MACHINES = [
    SVC(),
    SVC(kernel="linear"),
    SVC(kernel="poly", class_weight="balanced", certify="full"),
    SVC(kernel="precomputed"),
    SVC(kernel=Gaussian(0.5) + 0.1 * Linear(), C=10.0),
    SVC(gamma=0.1, break_ties=True, shrinking=False),
    SVR(),
    SVR(kernel="linear", epsilon=0.0, certify="full"),
    SVR(kernel="precomputed"),
    SVR(gamma=0.1, C=10.0),
]
SCALE = "gamma='scale' is 1 / (p var(X)) of the rows as given, not weighted, as in scikit-learn's own class"


def expected_failures(estimator):
    scaled = estimator.kernel == "rbf" and estimator.gamma == "scale"
    names = [
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ]
    return dict.fromkeys(names, SCALE) if scaled else {}


@parametrize_with_checks(MACHINES, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# ------------------------------------------------------------------------ certificates


def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    z = X @ rng.normal(size=6) + 2.0 + rng.normal(size=60)
    weights = rng.uniform(0.2, 3.0, size=60)
    weights[:4] = 0.0
    two = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    three = np.digitize(X[:, 0] + X[:, 1] + rng.normal(size=60), [-1.0, 1.0])
    thin = X * (rng.uniform(size=X.shape) < 0.4)
    return {
        "dense": (X, z, None, two, three),
        "weights": (X, z, weights, two, three),
        "float32": (X.astype(np.float32), z, None, two, three),
        "sparse, weights": (sp.csr_array(thin), z, weights, two, three),
        "offset 1e4": (X + 1e4, z, None, two, three),
    }


TABLES = tables()
CERTIFIED = [
    SVC(),
    SVC(kernel="linear", C=0.5),
    SVC(kernel="poly", coef0=1.0, degree=2, class_weight="balanced"),
    SVC(kernel="sigmoid", gamma=0.02),
    SVC(kernel=Gaussian(0.2) + 0.5 * Polynomial(2), C=3.0),
    SVC(certify="full", C=20.0, gamma=0.1),
    SVR(),
    SVR(kernel="linear", C=0.5, epsilon=0.3),
    SVR(kernel=Laplace(0.3), C=10.0),
]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("machine", CERTIFIED, ids=repr)
def test_a_certificate_holds_and_can_fail(machine, name):
    X, z, weights, two, three = TABLES[name]
    if name == "offset 1e4" and (machine.kernel in ("poly", "sigmoid") or "Poly" in repr(machine)):
        pytest.skip(
            "the values of these kernels are beyond float64 there; another test sees it said"
        )
    for y in (two, three) if isinstance(machine, SVC) else (z,):
        check_certificate(machine, X, y, weights, attributes=("dual_coef_", "intercept_"))


def test_kernel_values_beyond_rounding_are_undecided_not_held():
    X, _, _, two, _ = TABLES["offset 1e4"]
    model = SVC(kernel="poly", degree=3).fit(X, two)
    for name in ("duality gap", "complementary slackness"):
        claim = surefit.verify(model, X, two)[name]
        assert claim.status is Status.UNDECIDED
        assert "scale the features" in claim.statement


FORGERIES = {
    "support rows": lambda m: setattr(m, "support_", np.roll(m.support_, 1)),
    "support vectors": lambda m: setattr(m, "support_vectors_", m.support_vectors_ + 1e-3),
    "kernel": lambda m: setattr(m, "kernel_", Gaussian(m.kernel_.gamma * 1.01)),
    "row out of range": lambda m: m.support_.__setitem__(0, 10_000),
    "one multiplier": lambda m: m.dual_coef_.__setitem__((0, 0), 1.2 * m.dual_coef_[0, 0]),
    "NaN multiplier": lambda m: m.dual_coef_.__setitem__((0, 0), np.nan),
    "NaN offset": lambda m: m.intercept_.__setitem__(0, np.nan),
    "infinite offset": lambda m: m.intercept_.__setitem__(0, np.inf),
}


@pytest.mark.parametrize("forged", FORGERIES)
@pytest.mark.parametrize("machine", [SVC(tol=1e-6), SVR(tol=1e-6)], ids=repr)
def test_forged_attributes_make_a_claim_fail(machine, forged):
    X, z, _, two, _ = TABLES["dense"]
    y = two if isinstance(machine, SVC) else z
    model = copy.deepcopy(machine).fit(X, y)
    FORGERIES[forged](model)
    with np.errstate(invalid="ignore"):
        assert not surefit.verify(model, X, y).ok


def test_forged_farkas_weights_prove_nothing():
    X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), [0, 0, 1, 1]
    model = SVC(kernel="linear", C=np.inf, tol=1e-8).fit(X, y)
    assert model.certificate_["margin"].status is Status.HOLDS
    model.farkas_ = np.ones(4)
    assert surefit.verify(model, X, y)["not separable"].status is Status.FAILS


def test_many_rows_leave_the_gap_to_verify():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4200, 3))
    y = (X[:, 0] + rng.normal(size=4200) > 0).astype(int)
    model = SVC(gamma=0.5).fit(X, y)
    assert len(model.support_) * len(X) > 1 << 23
    assert model.certificate_["duality gap"].status is Status.UNDECIDED
    assert model.certificate_["complementary slackness"].status is Status.HOLDS
    assert surefit.verify(model, X, y)["duality gap"].status is Status.HOLDS


@pytest.mark.parametrize(
    "machine",
    [SVC(), SVC(kernel=Gaussian(0.2) + Linear()), SVC(kernel="precomputed"), SVR()],
    ids=repr,
)
def test_a_model_file_keeps_the_machine(machine, tmp_path):
    X, z, _, _, three = TABLES["dense"]
    y = three if isinstance(machine, SVC) else z
    data = X @ X.T if machine.kernel == "precomputed" else X
    model = machine.fit(data, y)
    model.save(tmp_path / "machine.surefit")
    again = surefit.load(tmp_path / "machine.surefit")
    np.testing.assert_array_equal(model.predict(data), again.predict(data))
    assert surefit.verify(again, data, y).ok
