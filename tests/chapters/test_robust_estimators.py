"""Attacks and bounds on fitted estimators of networks, as users hold them."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

pytest.importorskip("torch")

from surefit.neural_network import MLPClassifier
from surefit.nn import CNNClassifier
from surefit.robust import Threat, adversarial_risk, evaluate, pgd


@pytest.fixture(scope="module")
def tumours():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X).astype(np.float32)
    names = np.array(["malignant", "benign"])[y]
    model = MLPClassifier((8,), solver="lbfgs", max_iter=2000, alpha=1.0, random_state=0).fit(
        X[:400], names[:400]
    )
    return model, X[400:], names[400:]


def test_a_bracket_around_a_perceptron_with_one_output(tumours):
    model, X, y = tumours
    found = evaluate(model, X, y, Threat(0.1), attacks=["apgd-ce", "fab-t"], random_state=0)
    assert found.certified_accuracy <= found.attacked_accuracy <= model.score(X, y)
    assert found.certified_accuracy > 0.5
    assert found.certificate.ok
    assert found.recheck(model, X, y).ok
    wrong = model.predict(found.x_adv) != y
    np.testing.assert_array_equal(wrong, ~found.robust)
    model.intercepts_[-1][:] += 3.0  # another model: the points no longer show what they showed
    assert not found.recheck(model, X, y).ok
    model.intercepts_[-1][:] -= 3.0


def test_the_curve_of_a_perceptron_brackets_its_risk(tumours):
    model, X, y = tumours
    curve = adversarial_risk(model, X, y, eps=(0.0, 0.05, 0.2), max_rows=60)
    assert (curve.certified_accuracy <= curve.attacked_accuracy).all()
    assert curve.certified_accuracy[0] == curve.attacked_accuracy[0]
    assert (np.diff(curve.attacked_accuracy) <= 0).all()


def test_pictures_of_a_convolution_network_are_attacked_in_their_shape():
    digits = load_digits()
    X = (digits.images / 16).astype(np.float32)
    model = CNNClassifier("convnet", epochs=4, batch_size=64, lr=5e-3, random_state=0, device="cpu")
    model.fit(X[:1400], digits.target[:1400])
    some, y = X[1400:1440], digits.target[1400:1440]
    found = pgd(model, some, y, Threat(0.2, lower=0.0, upper=1.0), random_state=0)
    assert found.x_adv.shape == some.shape
    np.testing.assert_array_equal(model.predict(found.x_adv) != y, found.success)
    assert found.rate > 1.0 - model.score(some, y)
