"""Forged classifiers under ``adversarial_risk``: a model that is not what its attributes say is noticed.

The certified share is computed from attributes (coefficients, support vectors, stored rows). A forger ships
a model whose ``predict`` does something else: at the rows, near them, or at the points that an attack tries.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from surefit.linear_model import LogisticRegression
from surefit.neighbors import KNeighborsClassifier
from surefit.robust import RobustnessCurve, adversarial_risk
from surefit.svm import SVC

RNG = np.random.default_rng(1)
X = RNG.normal(size=(240, 3))
Y = (X @ [1.5, -1.0, 0.5] + 0.3 * RNG.normal(size=240) > 0).astype(int)
TRAIN, REST = slice(0, 120), slice(120, 240)
EPS = (0.0, 0.1, 0.3)


class Sly(LogisticRegression):
    """Predicts as its coefficients say on the rows it knows, and the other class everywhere else."""

    def predict(self, X: Any) -> Any:
        known = (np.asarray(X)[:, None, :] == self.rows_[None]).all(axis=2).any(axis=1)
        plain = super().predict(X)
        return np.where(known, plain, 1 - plain)


def curve(model: Any, **asked: Any) -> RobustnessCurve:
    return adversarial_risk(model, X[REST], Y[REST], EPS, **asked)


@pytest.mark.spec("ADV-1")
@pytest.mark.parametrize("model", [LogisticRegression(), SVC(), KNeighborsClassifier(5)])
def test_honest_models_hold(model: Any) -> None:
    assert curve(model.fit(X[TRAIN], Y[TRAIN])).certificate.ok


@pytest.mark.spec("ADV-1")
def test_a_model_that_turns_away_from_its_rows_is_noticed() -> None:
    """On the rows themselves the formula agrees; at the worst points of certified rows it does not."""
    model = Sly().fit(X[TRAIN], Y[TRAIN])
    model.rows_ = X
    found = curve(model).certificate
    assert found["closed form"].status.name == "HOLDS"
    assert found["certified accuracy"].status.name == "FAILS"


@pytest.mark.parametrize("attribute", ["coef_", "intercept_"])
def test_coefficients_that_are_not_those_of_the_predictions(attribute: str) -> None:
    model = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    honest = copy.deepcopy(model)
    setattr(model, attribute, getattr(model, attribute) * -3.0 + 1.0)
    model.predict = honest.predict  # type: ignore[method-assign]
    assert curve(model).certificate["closed form"].status.name == "FAILS"


def test_stored_rows_that_are_not_those_of_the_votes() -> None:
    model = KNeighborsClassifier(5).fit(X[TRAIN], Y[TRAIN])
    honest = copy.deepcopy(model)
    model.y_fit_ = 1 - model.y_fit_
    model.predict = honest.predict  # type: ignore[method-assign]
    assert curve(model).certificate["closed form"].status.name == "FAILS"


def test_rows_that_a_fit_has_used_have_no_limits() -> None:
    """Neither a claim, nor numbers that a picture could draw as one."""
    model = LogisticRegression().fit(X, Y)
    found = curve(model, fresh=False)
    assert found.certificate["true adversarial risk"].status.name == "UNDECIDED"
    assert found.low.tolist() == [0.0] * len(EPS)
    assert found.high.tolist() == [1.0] * len(EPS)
    fresh = curve(model)
    assert (fresh.high - fresh.low).max() < 0.5


def test_no_confidence_is_stated_as_certain() -> None:
    model = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    found = curve(model, delta=1e-9)
    assert "with probability 99.9999 %" in found.certificate["true adversarial risk"].statement
    assert "100 %" not in str(found)
