"""A kernel machine whose attributes were changed after the fit: some claim fails, none is left out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import surefit
from surefit.certificate import Status
from surefit.svm import SVC, SVR

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + RNG.normal(size=60) > 0.8).astype(int)
Y3 = RNG.integers(0, 3, 60)


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
