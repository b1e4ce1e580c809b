"""Robust and non-robust features: the worked example in closed form and simulated (ADV-10)."""

from __future__ import annotations

import numpy as np
import pytest

from surefit.model_selection.bounds import hoeffding_radius
from surefit.robust import adversarial_risk, robust_features_example
from surefit.svm import SVC


@pytest.mark.spec("ADV-10")
def test_the_numbers_of_the_notes():
    example = robust_features_example(1000)
    found = [
        example.eps, example.risk, example.adversarial_risk, example.first_risk,
        example.first_adversarial_risk,
    ]  # fmt: skip
    np.testing.assert_allclose(found[0], 0.1663, atol=5e-5)
    np.testing.assert_allclose(found[1], 0.00246, atol=5e-6)
    np.testing.assert_allclose(found[2], 0.98461, atol=5e-6)
    np.testing.assert_allclose(found[3:], [0.1587, 0.2022], atol=5e-5)


@pytest.mark.spec("ADV-10")
@pytest.mark.parametrize("d", [10, 1000])
def test_simulation_agrees_within_hoeffding(d):
    """Four means of n rows, all within the radius that holds for four at once with probability 99.9 %."""
    example = robust_features_example(d)
    n = 20_000
    radius = hoeffding_radius(n, 1e-3, models=4)
    everything, first = example.observed(n, 0)
    assert abs(everything - example.risk) < radius
    assert abs(first - example.first_risk) < radius
    everything, first = example.observed(n, 1, eps=example.eps)
    assert abs(everything - example.adversarial_risk) < radius
    assert abs(first - example.first_adversarial_risk) < radius


@pytest.mark.spec("ADV-10")
def test_the_limits_in_the_dimension():
    risks = [robust_features_example(d) for d in (10, 10**3, 10**6)]
    assert risks[0].risk > risks[1].risk > risks[2].risk
    assert risks[0].adversarial_risk < risks[1].adversarial_risk < risks[2].adversarial_risk
    assert risks[2].risk < 1e-4
    assert risks[2].adversarial_risk > 0.999
    assert risks[2].first_adversarial_risk < 0.161


def test_the_exact_curve_is_that_of_the_closed_form():
    """A linear machine with the weights of the example, measured on a sample of it."""
    example = robust_features_example(50)
    X, y = example.sample(4000, 0)
    a = example.means
    model = SVC(kernel="linear", C=np.inf, tol=1e-12).fit(np.stack([-a, a]), [-1, 1])
    curve = adversarial_risk(model, X, y, (0.0, example.eps), delta=1e-3)
    assert curve.exact.all()
    for low, truth, high in zip(curve.low, (example.risk, example.adversarial_risk), curve.high):
        assert low <= truth <= high
