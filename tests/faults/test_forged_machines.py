"""A kernel machine whose attributes were changed after the fit: some claim fails, none is left out."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import surefit
from surefit.certificate import Status
from surefit.kernel_ridge import KernelRidge
from surefit.svm import SVC, SVR, LinearSVC, LinearSVR

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + RNG.normal(size=60) > 0.8).astype(int)
Y3 = RNG.integers(0, 3, 60)
RNG_TARGETS = 0.3 * RNG.normal(size=60)


def product(A: Any, B: Any) -> Any:
    return np.asarray(A) @ np.asarray(B).T


def test_the_class_weights_are_those_that_the_parameter_means() -> None:
    model = SVC().fit(X, Y)
    assert surefit.verify(model, X, Y).ok
    model.class_weight = "balanced"  # class_weight_ still says that both count the same
    assert "class_weight_" in surefit.verify(model, X, Y)["attributes"].statement
    model.class_weight_ = SVC(class_weight="balanced").fit(X, Y).class_weight_
    found = surefit.verify(model, X, Y)
    assert found["duality gap"].status is Status.FAILS
    assert surefit.verify(SVC(class_weight="balanced").fit(X, Y), X, Y).ok


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_support_", np.array([1, 1, 1])), ("intercept_", np.zeros(1)), ("intercept_", np.zeros(0))],
)
def test_shapes_that_do_not_fit_are_a_failed_claim(name: str, value: Any) -> None:
    model = SVC().fit(X, Y3)
    setattr(model, name, value)
    found = surefit.verify(model, X, Y3)["attributes"]
    assert found.status is Status.FAILS
    assert name in found.statement


@pytest.mark.parametrize("machine", [SVC, SVR])
def test_the_rows_that_a_function_is_asked_about_are_those_of_the_fit(machine: Any) -> None:
    model = machine(kernel=product).fit(X, Y)
    assert surefit.verify(model, X, Y).ok
    model._rows_of_fit = X[::-1].copy()
    assert surefit.verify(model, X, Y)["support rows"].status is Status.FAILS


@pytest.mark.parametrize("gap", [1e-6, 1e-7, 1e-8, 1e-9])
def test_a_margin_as_thin_as_rounding(gap: float) -> None:
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    rows[1::2, 0] += gap  # x_0 - x_1 > gap / 2 separates them, with a margin of gap / sqrt(8)
    widest = gap / np.sqrt(8.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(C=np.inf, kernel="linear", certify="full").fit(rows, [0, 1, 0, 1])
    claims = {c.name: c for c in model.certificate_.claims}
    if "not separable" in claims:
        statement = claims["not separable"].statement
        assert "no hyperplane separates" not in statement
        assert float(statement.rpartition(" ")[2]) >= widest
    elif claims["duality gap"].status is Status.HOLDS:
        shown = float(claims["duality gap"].statement.split("= ")[1].split(" ")[0])
        assert abs(shown - 0.5 / widest**2) <= 0.01 * shown  # 1/2 ||w||^2 is 1 / (2 margin^2)
    else:
        assert claims["margin"].status is Status.UNDECIDED


def test_a_hard_margin_of_rows_at_the_origin() -> None:
    rows = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    with pytest.warns(surefit.CertificateWarning, match="finite C"):
        model = SVC(C=np.inf, kernel="linear").fit(rows, [0, 1, 1])
    assert model.certificate_["not separable"].status is Status.HOLDS


# ------------------------------------------------------------------------ separability


POINTS = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])


@pytest.mark.filterwarnings("ignore::surefit.CertificateWarning")
@pytest.mark.parametrize("machine", [SVC(C=np.inf, kernel="linear"), LinearSVC(C=np.inf)], ids=repr)
@pytest.mark.parametrize("gap", [0.0, 2.0**-52, 1e-12, 1e-9])
def test_points_nearly_on_a_line_are_not_said_to_be_inseparable(machine: Any, gap: float) -> None:
    """The middle one has the other label: moved off the line by a rounding, a hyperplane separates it."""
    rows = POINTS.copy()
    rows[1, 0] += gap
    model = copy.deepcopy(machine).fit(rows, [0, 1, 0])
    claims = {c.name: c for c in surefit.verify(model, rows, [0, 1, 0]).claims}
    if gap == 0.0:
        assert claims["not separable"].status is Status.HOLDS
        assert "exact arithmetic" in claims["not separable"].statement
    else:
        assert claims["not separable"].status is Status.FAILS
        assert "no hyperplane separates" not in claims["not separable"].statement
        assert claims["hard margin"].status is Status.FAILS
        assert ">= 1 for every row" not in claims["hard margin"].statement


def test_overlap_in_another_kernels_space_is_left_undecided() -> None:
    """Rows of both classes with the same features under x -> x^2, and the same rows: only these are exact."""
    rows = np.array([[1.0], [-1.0], [3.0], [-3.0]])
    with pytest.warns(surefit.CertificateWarning):
        model = SVC(C=np.inf, kernel="poly", degree=2, gamma=1.0).fit(rows, [0, 1, 0, 1])
    assert model.certificate_["not separable"].status is Status.UNDECIDED
    same = np.abs(rows)
    with pytest.warns(surefit.CertificateWarning):
        model = SVC(C=np.inf, kernel="poly", degree=2, gamma=1.0).fit(same, [0, 1, 0, 1])
    assert model.certificate_["not separable"].status is Status.HOLDS


# ------------------------------------------------------------------------ one forgery a term


def moved(values: Any, by: float, at: int = 0) -> Any:
    out = np.array(values, dtype=np.float64)
    out.flat[at] += by
    return out


KERNEL_FORGERIES: dict[str, Any] = {
    "balance": lambda m: setattr(m, "dual_coef_", moved(m.dual_coef_, 1e-9, _inner(m))),
    "box": lambda m: setattr(m, "dual_coef_", m.dual_coef_ * (1.0 + 1e-9)),
    "offset": lambda m: setattr(m, "intercept_", m.intercept_ + 0.05),
    "a support vector twice": lambda m: setattr(m, "support_", _twice(m.support_)),
    "no such row": lambda m: setattr(m, "support_", moved(m.support_, 100).astype(np.int32)),
    "other support vectors": lambda m: setattr(m, "support_vectors_", m.support_vectors_ + 1e-9),
    "a negative row": lambda m: setattr(m, "support_", -m.support_ - 1),
    "row numbers that are not whole": lambda m: setattr(m, "support_", m.support_ + 0.0),
    "counts": lambda m: setattr(
        m, "n_support_", m.n_support_ + np.resize([1, -1], m.n_support_.shape)
    ),
    "a count more": lambda m: setattr(m, "n_support_", m.n_support_ + 1),
    "rows of the fit": lambda m: setattr(m, "shape_fit_", (59, 3)),
    "kernel": lambda m: setattr(m, "gamma", 0.2),
    "steps": lambda m: setattr(m, "n_iter_", np.asarray(m.n_iter_) * -1),
    "status": lambda m: setattr(m, "fit_status_", 1),
}


def _inner(model: Any) -> int:
    """A multiplier inside its box: a little more keeps it there, and breaks the sum."""
    sizes = np.abs(np.asarray(model.dual_coef_)[0])
    return int(np.flatnonzero((sizes > 0.05) & (sizes < 0.95))[0])


def _twice(rows: Any) -> Any:
    return np.append(rows[:-1], rows[0]).astype(rows.dtype)


@pytest.mark.parametrize("forgery", KERNEL_FORGERIES)
@pytest.mark.parametrize("machine", [SVC(tol=1e-6), SVR(tol=1e-6)], ids=repr)
def test_each_term_of_a_kernel_machines_claims(machine: Any, forgery: str) -> None:
    targets = Y if isinstance(machine, SVC) else X[:, 0] + RNG_TARGETS
    model = copy.deepcopy(machine).fit(X, targets)
    assert surefit.verify(model, X, targets).ok
    KERNEL_FORGERIES[forgery](model)
    report = surefit.verify(model, X, targets)
    assert not report.ok
    if forgery == "balance":  # the smallest change: nothing but the sum is wrong
        assert [claim.name for claim in report.failed] == ["dual feasibility"]


LINEAR_FORGERIES: dict[str, Any] = {
    "intercept that was not asked for": lambda m: setattr(m, "intercept_", np.array([1e-6])),
    "half precision": lambda m: setattr(m, "coef_", m.coef_.astype(np.float16)),
    "a coefficient more": lambda m: setattr(m, "coef_", np.append(m.coef_, m.coef_, axis=-1)),
    "duals outside their box": lambda m: setattr(m, "dual_coef_", m.dual_coef_ * (1.0 + 1e-9)),
    "duals of the other sign": lambda m: setattr(m, "dual_coef_", -m.dual_coef_),
    "duals in another order": lambda m: setattr(m, "dual_coef_", m.dual_coef_[..., ::-1].copy()),
    "duals that are not the coefficients'": lambda m: setattr(
        m, "dual_coef_", m.dual_coef_ * 0.999
    ),
    "a dual less": lambda m: setattr(m, "dual_coef_", m.dual_coef_[..., :-1]),
    "steps": lambda m: setattr(m, "n_iter_", -1),
    "too many steps": lambda m: setattr(m, "n_iter_", 10**9),
}


@pytest.mark.parametrize("forgery", LINEAR_FORGERIES)
@pytest.mark.parametrize(
    "machine",
    [LinearSVC(loss="hinge", fit_intercept=False), LinearSVR(fit_intercept=False)],
    ids=repr,
)
def test_each_term_of_a_linear_machines_claims(machine: Any, forgery: str) -> None:
    targets = Y if isinstance(machine, LinearSVC) else X[:, 0] + RNG_TARGETS
    model = copy.deepcopy(machine).fit(X, targets)
    assert surefit.verify(model, X, targets).ok
    LINEAR_FORGERIES[forgery](model)
    assert not surefit.verify(model, X, targets).ok


def test_a_multiplier_on_a_row_without_weight() -> None:
    weights = np.ones(60)
    weights[:5] = 0.0
    for machine in (LinearSVR(), LinearSVC()):
        targets = Y if isinstance(machine, LinearSVC) else X[:, 0]
        model = machine.fit(X, targets, sample_weight=weights)
        assert surefit.verify(model, X, targets, sample_weight=weights).ok
        model.dual_coef_[..., 2] = 1e-12
        assert not surefit.verify(model, X, targets, sample_weight=weights).ok
    model = SVR().fit(X, X[:, 0], sample_weight=weights)
    model.support_ = model.support_.copy()
    model.support_[0], model.support_vectors_[0] = 2, X[2]
    found = surefit.verify(model, X, X[:, 0], sample_weight=weights)["support rows"]
    assert found.status is Status.FAILS
    assert "without weight" in found.statement


def test_targets_of_a_tiny_range_show_nothing() -> None:
    """The tolerance of the slackness is absolute, as LIBSVM's: a model of zeros met it."""
    with pytest.warns(surefit.CertificateWarning, match="duality gap"):
        model = SVR(epsilon=0.0).fit(X, 1e-6 * X[:, 0])
    assert model.certificate_["complementary slackness"].status is Status.UNINFORMATIVE


def test_a_gap_above_one_percent_is_uninformative() -> None:
    model = SVC().fit(X, Y)
    model.dual_coef_ = 0.8 * model.dual_coef_
    found = surefit.verify(model, X, Y, tol=0.5)["duality gap"]
    assert found.observed <= found.bound
    assert found.status is Status.UNINFORMATIVE
    assert "% of the way down" in found.statement
    rows, labels = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    hard = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(rows, labels)
    hard.intercept_ = (
        hard.intercept_ + 0.05
    )  # the margin is 5 % narrower, the square of w as it was
    found = surefit.verify(hard, rows, labels, tol=0.5)["duality gap"]
    assert found.observed <= found.bound
    assert found.status is Status.UNINFORMATIVE


# ------------------------------------------------------------------------ functions that are not kernels


def test_the_remedy_of_an_indefinite_kernel_is_another_kernel() -> None:
    rows = np.abs(X)
    K = rows @ rows.T - 5.0 * np.eye(60)
    for machine in (
        SVC(kernel="precomputed", certify="full"),
        KernelRidge(kernel="precomputed", alpha=9.0, certify="full"),
    ):
        with pytest.warns(surefit.CertificateWarning, match="eigenvalue of -5") as caught:
            machine.fit(K, Y)
        text = str(caught[0].message)
        assert "shift the spectrum" in text
        assert "raise tol" not in text


def test_four_bytes_are_not_single_precision() -> None:
    """An integer array of four bytes an entry took the rounding of float32."""
    model = KernelRidge(kernel="rbf", alpha=1e-3).fit(X, np.round(5.0 * X[:, 0]))
    model.dual_coef_ = np.round(model.dual_coef_).astype(np.int32)
    found = surefit.verify(model, X, np.round(5.0 * X[:, 0]))["residual"]
    assert found.status is Status.FAILS


def test_single_precision_beyond_the_tolerance_is_undecided() -> None:
    model = KernelRidge(kernel="rbf", alpha=1e-3).fit(X, X[:, 0])
    model.dual_coef_ = model.dual_coef_.astype(np.float32)
    found = surefit.verify(model, X, X[:, 0], tol=1e-12)
    assert found["residual"].status is Status.UNDECIDED
    assert surefit.verify(model, X, X[:, 0]).proved


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_ties_are_broken_with_one_score_a_class(shape: str) -> None:
    """``predict`` raises with pairs, and every claim held."""
    model = SVC(decision_function_shape=shape).fit(X, Y3)
    model.break_ties = True
    found = surefit.verify(model, X, Y3)
    assert found.ok == (shape == "ovr")
    assert shape == "ovr" or "break_ties" in found["attributes"].statement
