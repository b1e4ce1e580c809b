"""LinearSVC: scikit-learn's answers, sooner and certified."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import StandardScaler

import surefit
from surefit import Status
from surefit.design import as_design
from surefit.losses import Hinge, SquaredHinge
from surefit.separation import separate
from surefit.solvers.box_dual import Intercept, classification, regression
from surefit.solvers.dual_coordinate import dual_coordinate
from surefit.solvers.hinge_interior import hinge_interior, sides_of
from surefit.solvers.hinge_rows import hinge_rows, sampling_pays
from surefit.solvers.linear_svm import linear_svm, linear_svm_path
from surefit.solvers.squared_hinge import squared_hinge
from surefit.svm import LinearSVC, l1_min_c

BINARY = load_breast_cancer(return_X_y=True)
SCALED = StandardScaler().fit_transform(BINARY[0]), BINARY[1]


def noisy(n=200, p=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X @ rng.normal(size=p) + rng.normal(size=n) > 0, 1, 0)


def objective(X, y, w, b, C, *, squared=False, scaling=1.0):
    slack = np.maximum(0, 1 - np.where(y == np.max(y), 1, -1) * (X @ w + b))
    return 0.5 * (w @ w + (b / scaling) ** 2) + C * (slack**2 if squared else slack).sum()


# ---------------------------------------------------------------------- scikit-learn's answers


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "hinge"},
        {"loss": "hinge", "C": 0.01, "intercept_scaling": 7.0},
        {},
        {"C": 30.0},
        {"fit_intercept": False},
        {"class_weight": {0: 3.0, 1: 0.5}},
        {"class_weight": "balanced", "loss": "hinge"},
        {"penalty": "l1", "dual": False},
        {"penalty": "l1", "dual": False, "C": 0.05, "intercept_scaling": 4.0},
    ],
    ids=str,
)
def test_two_classes_agree_with_scikit_learn(options):
    X, y = SCALED
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    ours = LinearSVC(tol=1e-10, **options).fit(X, y, weights)
    theirs = sklearn.svm.LinearSVC(tol=1e-9, max_iter=1_000_000, random_state=0, **options)
    theirs.fit(X, y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)
    assert ours.certificate_.ok
    assert ours.coef_.shape == theirs.coef_.shape


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "hinge"},
        {"class_weight": {0: 1.0, 1: 3.0, 2: 0.5}},
        {"penalty": "l1", "dual": False},
        {"multi_class": "crammer_singer"},
        {"multi_class": "crammer_singer", "fit_intercept": False, "class_weight": "balanced"},
    ],
    ids=str,
)
def test_three_classes_agree_with_scikit_learn(options):
    X, y = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    ours = LinearSVC(tol=1e-10, **options).fit(X, y)
    theirs = sklearn.svm.LinearSVC(tol=1e-9, max_iter=1_000_000, random_state=0, **options).fit(
        X, y
    )
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-5)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=5e-5)
    if "multi_class" not in options:
        names = {claim.name for claim in ours.certificate_.claims}
        assert {
            "0 vs rest: duality gap",
            "1 vs rest: duality gap",
            "2 vs rest: duality gap",
        } <= names


def test_crammer_and_singer_of_two_classes_is_one_hyperplane():
    X, y = noisy()
    ours = LinearSVC(multi_class="crammer_singer", tol=1e-10).fit(X, y)
    theirs = sklearn.svm.LinearSVC(multi_class="crammer_singer", tol=1e-10, max_iter=1_000_000)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y).coef_, atol=1e-6)
    assert ours.coef_.shape == (1, 6)
    assert ours.certificate_.ok


def test_sparse_is_dense_and_matrices_are_arrays():
    X, y = noisy()
    X = X * (np.random.default_rng(1).uniform(size=X.shape) < 0.5)
    for options in (
        {"loss": "hinge"},
        {},
        {"penalty": "l1", "dual": False},
        {"multi_class": "crammer_singer"},
    ):
        dense = LinearSVC(tol=1e-12, **options).fit(X, y)
        for container in (sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array):
            sparse = LinearSVC(tol=1e-12, **options).fit(container(X), y)
            np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
            assert sparse.certificate_.data_id == dense.certificate_.data_id


def test_duplicate_entries_are_added_up():
    X, y = noisy(60, 4)
    rows, cols = np.nonzero(X)
    values = np.concatenate([0.25 * X[rows, cols], 0.75 * X[rows, cols]])
    order = np.argsort(np.concatenate([rows, rows]), kind="stable")
    ptr = np.arange(0, 2 * X.size + 1, 2 * X.shape[1])
    twice = sp.csr_array((values[order], np.concatenate([cols, cols])[order], ptr), X.shape)
    problem = classification(
        np.where(y, 1.0, -1.0), np.ones(60), squared=False, intercept=Intercept(1.0)
    )
    a, b = (next(dual_coordinate(data, problem)).x.w for data in (twice, sp.csr_array(X)))
    np.testing.assert_allclose(a, b, rtol=1e-9)


def test_weights_are_repetitions_and_zero_is_absence():
    X, y = noisy()
    counts = np.random.default_rng(2).integers(0, 4, len(y))
    for options in (
        {"loss": "hinge"},
        {},
        {"penalty": "l1", "dual": False},
        {"multi_class": "crammer_singer"},
    ):
        weighted = LinearSVC(tol=1e-12, **options).fit(X, y, counts)
        repeated = LinearSVC(tol=1e-12, **options).fit(
            np.repeat(X, counts, axis=0), np.repeat(y, counts)
        )
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=2e-6)
        assert (weighted.dual_coef_[:, counts == 0] == 0).all() or options.get("multi_class")


def test_float32_stays_float32():
    X, y = noisy()
    for options in ({"loss": "hinge"}, {}, {"penalty": "l1", "dual": False}):
        model = LinearSVC(**options).fit(X.astype(np.float32), y)
        assert model.coef_.dtype == model.intercept_.dtype == np.float32
        assert model.decision_function(X.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(model.coef_, LinearSVC(**options).fit(X, y).coef_, atol=1e-3)
        assert model.certificate_.ok


@pytest.mark.parametrize("C", [1e-8, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalize", [True, False])
def test_any_c(C, loss, penalize):
    X, y = noisy()
    model = LinearSVC(loss=loss, C=C, penalize_intercept=penalize, tol=1e-9).fit(X, y)
    assert model.certificate_["duality gap"].status is Status.HOLDS


def test_constant_columns_duplicated_rows_and_a_zero_row():
    X, y = noisy(60, 3)
    X = np.vstack([np.column_stack([X, np.ones(60), np.zeros(60)])] * 2 + [np.zeros((1, 5))])
    y = np.concatenate([y, y, [1]])
    for loss in ("hinge", "squared_hinge"):
        for data in (X, sp.csr_array(X)):
            model = LinearSVC(loss=loss, tol=1e-9).fit(data, y)
            assert model.certificate_.ok
            assert model.coef_[0, 4] == 0.0


def test_more_columns_than_rows():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3000)), rng.integers(0, 2, 40)
    for options in ({"loss": "hinge"}, {}, {"loss": "hinge", "penalize_intercept": False}):
        model = LinearSVC(tol=1e-9, C=0.001, **options).fit(X, y)
        assert model.certificate_.ok
        assert model.coef_.shape == (1, 3000)
        np.testing.assert_allclose(model.dual_coef_ @ X, model.coef_, atol=1e-6)


# ---------------------------------------------------------------------- the solvers


def certified(problem, X, point):
    z = X @ point.w + point.b
    made = np.asarray(X.T @ point.beta)
    b = problem.intercept.scaling**2 * point.beta.sum() if problem.intercept.penalised else 0.0
    return problem.primal(point.w, point.b, z) - problem.dual(point.beta, problem.size(made, b))


def solve(steps, tol, most=300):
    for k, step in enumerate(steps):
        if step.estimate <= tol or k >= most:
            return step
    return step


@pytest.mark.parametrize(
    "intercept", [Intercept(), Intercept(2.0), Intercept(1.0, penalised=False)], ids=str
)
@pytest.mark.parametrize("kind", ["hinge", "squared", "tube", "squared tube"])
def test_all_solvers_find_the_same_minimum(kind, intercept):
    X, y = noisy(120, 5, seed=4)
    c = np.random.default_rng(5).uniform(0.2, 2.0, len(y))
    squared = "squared" in kind
    if "tube" in kind:
        target = X @ np.ones(5) + np.random.default_rng(6).normal(size=120)
        problem = regression(target, c, 0.3, squared=squared, intercept=intercept)
    else:
        problem = classification(np.where(y, 1.0, -1.0), c, squared=squared, intercept=intercept)
    tol = 1e-9 * problem.null()
    first = solve(dual_coordinate(X, problem, seed=3), tol)
    sparse = solve(dual_coordinate(sp.csr_array(X), problem, seed=3), tol)
    if squared:
        other = solve(squared_hinge(as_design(X), problem), tol)
        point = other.x
    else:
        other = solve(hinge_interior(as_design(X), sides_of(problem), intercept), tol)
        point = other.x[0]
    assert first.value == pytest.approx(other.value, rel=1e-7)
    assert sparse.value == pytest.approx(other.value, rel=1e-7)
    np.testing.assert_allclose(first.x.w, point.w, atol=1e-4)
    assert abs(certified(problem, X, point)) <= 1e-7 * problem.null()
    assert abs(certified(problem, X, first.x)) <= 1e-7 * problem.null()


def test_rows_that_are_left_out_change_nothing():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(30_000, 3))
    signs = np.where(X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0, 1.0, -1.0)
    for problem in (
        classification(signs, rng.uniform(0.5, 2, len(X)), squared=False, intercept=Intercept(1.0)),
        regression(X[:, 1] + rng.normal(size=len(X)), np.ones(len(X)), 0.2, squared=False,
                   intercept=Intercept(1.0, penalised=False)),
    ):  # fmt: skip
        design, tol = as_design(X), 1e-9 * problem.null()
        assert sampling_pays(design, problem)
        some = solve(hinge_rows(design, problem, tol=tol), tol)
        every = solve(hinge_interior(design, sides_of(problem), problem.intercept), tol)
        assert some.value == pytest.approx(every.value, rel=1e-8)
        assert some.estimate <= tol


def test_a_path_over_c_is_the_single_fits():
    X, y = noisy(150, 400, seed=8)
    signs, Cs = np.where(y, 1.0, -1.0), [1.0, 0.01, 0.1]
    data = sp.csr_array(X * (np.abs(X) > 1.0))

    def build(C):
        return classification(signs, np.full(150, C), squared=False, intercept=Intercept(1.0))

    path = linear_svm_path(data, build, Cs, tol=1e-9)
    for C, fit in zip(Cs, path):
        alone = linear_svm(data, build(C), tol=1e-9, null=build(C).null())
        assert fit.value == pytest.approx(alone.value, rel=1e-8)


def test_the_same_seed_gives_the_same_bits():
    rng = np.random.default_rng(9)
    X = sp.random_array((1500, 2000), density=0.01, rng=rng, format="csr")
    y = rng.integers(0, 2, 1500)
    a, b = (LinearSVC(loss="hinge", random_state=3).fit(X, y) for _ in range(2))
    assert np.array_equal(a.coef_, b.coef_)
    assert a.certificate_.ok


# ---------------------------------------------------------------------- certificates


def test_where_liblinear_plateaus_its_gap_says_so_and_ours_holds():
    """Unscaled features: a million sweeps of liblinear end 24 % above the minimum; here, twenty thousand."""
    X, y = BINARY
    ours = LinearSVC(loss="hinge", tol=1e-8).fit(X, y)
    assert ours.certificate_["duality gap"].status is Status.HOLDS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn.svm.LinearSVC(loss="hinge", max_iter=20_000, random_state=0).fit(X, y)
    value, best = (objective(X, y, m.coef_[0], m.intercept_[0], 1.0) for m in (theirs, ours))
    assert value > 1.1 * best
    claimed = LinearSVC(loss="hinge", tol=1e-4).fit(X, y)
    claimed.coef_, claimed.intercept_ = theirs.coef_, theirs.intercept_
    report = surefit.verify(claimed, X, y)
    assert report["duality gap"].status is Status.FAILS
    assert report["duality gap"].observed >= 0.99 * (value - best)  # and by how much


@pytest.mark.parametrize(
    "options", [{"loss": "hinge"}, {}, {"multi_class": "crammer_singer"}], ids=str
)
def test_a_forged_dual_point_only_weakens_the_claim(options):
    X, y = noisy()
    model = LinearSVC(tol=1e-6, **options).fit(X, y)
    rng = np.random.default_rng(0)
    honest = model.certificate_["duality gap"].observed
    for forged in (
        rng.normal(size=model.dual_coef_.shape) * 1e3,
        np.full(model.dual_coef_.shape, np.nan),
        np.zeros(3),
        "no numbers",
    ):
        model.dual_coef_ = forged
        report = surefit.verify(model, X, y)
        if "duality gap" in report:
            assert not report["duality gap"].observed < honest - 1e-9
        assert not report.ok
        shifted = LinearSVC(tol=1e-6, certify=False, **options).fit(X, y)
        shifted.coef_, shifted.dual_coef_ = shifted.coef_ + 0.5, forged
        report = surefit.verify(shifted, X, y)
        assert "duality gap" not in report or report["duality gap"].status is not Status.HOLDS


def test_forged_farkas_weights_prove_nothing():
    X, y = [[0, 0], [1, 0], [0, 1], [1, 1]], [0, 1, 1, 1]
    model = LinearSVC(loss="hinge", C=np.inf).fit(X, y)
    assert model.certificate_.ok
    assert not model.farkas_.any()
    model.farkas_ = np.full((1, 4), 0.25)
    report = surefit.verify(model, X, y)
    assert report["not separable"].status is Status.FAILS
    for nothing in (-model.farkas_, np.full((1, 4), np.nan), np.zeros(2)):
        model.farkas_ = nothing
        assert "not separable" not in surefit.verify(model, X, y)


def test_a_hard_margin_on_many_rows_with_and_without_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 8))
    X = X[np.abs(X[:, 0]) > 0.2]
    y = np.where(X[:, 0] > 0, 1, -1)
    model = LinearSVC(loss="hinge", C=np.inf, penalize_intercept=False, tol=1e-8).fit(X, y)
    assert model.certificate_.ok
    found = separate(X, y)
    assert found.margin == pytest.approx(found.residual, rel=1e-6)
    distance = (y * (X @ model.coef_[0] + model.intercept_[0])).min() / np.linalg.norm(model.coef_)
    assert distance >= 0.2
    y[:3] *= -1
    with pytest.warns(surefit.CertificateWarning, match="no hyperplane separates"):
        model = LinearSVC(loss="hinge", C=np.inf, penalize_intercept=False).fit(X, y)
    assert model.certificate_["not separable"].status is Status.HOLDS
    assert model.farkas_.sum() == pytest.approx(1.0)
    three = load_iris(return_X_y=True)  # one class is separable from the others, two are not
    with pytest.warns(surefit.CertificateWarning):
        several = LinearSVC(C=np.inf).fit(*three)
    assert several.certificate_["0 vs rest: hard margin"].status is Status.HOLDS
    assert several.certificate_["1 vs rest: hard margin"].status is Status.FAILS
    assert several.certificate_["1 vs rest: not separable"].status is Status.HOLDS


def test_a_hard_margin_with_many_columns_with_and_without_one():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 2000), density=0.01, rng=rng, format="csr")
    y = rng.integers(0, 2, 300)
    for penalize in (True, False):
        model = LinearSVC(loss="hinge", C=np.inf, penalize_intercept=penalize, tol=1e-6).fit(X, y)
        assert model.certificate_.ok
        assert not model.farkas_.any()
    twice = sp.vstack([X, X[:3]], format="csr")
    with pytest.warns(surefit.CertificateWarning, match="no hyperplane separates"):
        model = LinearSVC(loss="hinge", C=np.inf).fit(twice, np.append(y, 1 - y[:3]))
    assert model.certificate_["not separable"].status is Status.HOLDS
    assert np.flatnonzero(model.farkas_[0]).tolist()  # among the rows that contradict each other
    assert set(np.flatnonzero(model.farkas_[0])) <= {0, 1, 2, 300, 301, 302}


def test_a_fit_that_was_cut_short_says_so():
    X, y = BINARY
    with pytest.warns(surefit.CertificateWarning, match="Liblinear failed to converge"):
        model = LinearSVC(loss="hinge", max_iter=3).fit(X, y)
    assert model.n_iter_ == 3
    assert not model.certificate_.ok
    with pytest.warns(surefit.CertificateWarning):
        nothing = LinearSVC(loss="hinge", max_iter=0).fit(X, y)
    assert (nothing.coef_ == 0).all()


def test_a_model_file_keeps_the_witness(tmp_path):
    X, y = noisy()
    model = LinearSVC(loss="hinge", tol=1e-9).fit(X, y)
    model.save(tmp_path / "model.surefit")
    again = surefit.load(tmp_path / "model.surefit")
    assert np.array_equal(again.dual_coef_, model.dual_coef_)
    assert surefit.verify(again, X, y).ok


def test_sparsified_coefficients_are_certified_too():
    X, y = noisy()
    model = LinearSVC(penalty="l1", dual=False, C=0.05).fit(X, y).sparsify()
    assert sp.issparse(model.coef_)
    assert surefit.verify(model, X, y).ok


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"penalty": "l1", "loss": "hinge"},
            "Unsupported set of arguments.*penalty='l1'.*loss='hinge'",
        ),
        ({"loss": "hinge", "dual": False}, "not supported when dual=False"),
        ({"penalty": "l1", "dual": True}, "not supported when dual=True"),
        ({"penalty": "l1", "dual": False, "C": np.inf}, "give a finite C"),
        ({"multi_class": "crammer_singer", "C": np.inf}, "give a finite C"),
        ({"multi_class": "crammer_singer", "penalize_intercept": False}, "raise intercept_scaling"),
    ],
)
def test_combinations_that_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        LinearSVC(**options).fit(*noisy())


def test_one_class_and_values_that_overflow():
    X, y = noisy()
    with pytest.raises(ValueError, match=r"at least 2 classes.*only one class"):
        LinearSVC().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="Rescale X first"):
        LinearSVC().fit(X * 1e200, y)


def test_the_smallest_c_of_an_l1_penalty():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300] % 3
    least = l1_min_c(X, y)
    assert least == pytest.approx(sklearn.svm.l1_min_c(X, y))
    assert not LinearSVC(penalty="l1", dual=False, C=least).fit(X, y).coef_.any()
    assert LinearSVC(penalty="l1", dual=False, C=1.01 * least, tol=1e-8).fit(X, y).coef_.any()
    with pytest.raises(ValueError, match="Ill-posed"):
        l1_min_c([[0, 0], [0, 0]], [0, 1])


def test_losses_of_the_problem_are_those_of_the_library():
    rng = np.random.default_rng(0)
    z, y, c = (
        rng.normal(size=20) * 2,
        np.where(rng.uniform(size=20) > 0.5, 1.0, -1.0),
        rng.uniform(1, 2, 20),
    )
    for loss, squared in ((Hinge(), False), (SquaredHinge(), True)):
        problem = classification(y, c, squared=squared, intercept=Intercept())
        np.testing.assert_allclose(problem.losses(z), c * loss.pointwise(z, y), rtol=1e-14)


def test_crammer_singer_with_rows_of_zeros():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 3
    X[:5] = 0.0
    model = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-8).fit(X, y)
    assert model.certificate_["duality gap"].status is Status.HOLDS


@pytest.mark.parametrize("unit", [1e-6, 1e-2, 1e2, 1e6])
@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_a_hard_margin_in_any_unit(unit, penalize_intercept):
    rng = np.random.default_rng(0)
    for _ in range(5):
        y = np.arange(8) % 2
        X = unit * (rng.normal(size=(8, 2)) + 8.0 * y[:, None])
        model = LinearSVC(
            C=np.inf, penalize_intercept=penalize_intercept, intercept_scaling=unit, tol=1e-6
        ).fit(X, y)
        assert model.certificate_.ok
