"""Standard and adversarial risk, exact for linear models (ADV-1, ADV-2)."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.multiclass import OneVsRestClassifier as PeerRest
from tests.data import load

from surefit.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from surefit.multiclass import OneVsOneClassifier, OneVsRestClassifier
from surefit.robust import (
    Threat,
    adversarial_risk,
    decision_based,
    fgsm,
    linear_radius,
    pgd,
    score_based,
)
from surefit.svm import SVC, LinearSVC

LINEAR = [
    LogisticRegression(),
    LinearSVC(),
    RidgeClassifier(),
    Perceptron(),
    SGDClassifier(random_state=0),
    SVC(kernel="linear"),
    Peer(),
    OneVsRestClassifier(LogisticRegression()),
    PeerRest(Peer()),
]
EPS = (0.0, 0.05, 0.1, 0.3, 1.0)


def name(model: object) -> str:
    return f"{type(model).__module__.split('.')[0]}-{type(model).__name__}"


@pytest.mark.spec("ADV-1")
@pytest.mark.filterwarnings("ignore::surefit.CertificateWarning")
@pytest.mark.parametrize("model", LINEAR, ids=name)
@pytest.mark.parametrize("norm", [2, math.inf])
def test_linear_models_are_exact(model, norm):
    """R_0 = R, R_eps grows with eps, and a row is wrong iff y g(x) <= eps ||w||_dual."""
    X, y = load("breast_cancer")
    model.fit(X[:300], y[:300])
    X, y = X[300:], y[300:]
    curve = adversarial_risk(model, X, y, EPS, norm=norm)
    assert curve.exact.all()
    assert curve.certificate.ok
    assert curve.certified_accuracy[0] == np.mean(model.predict(X) == y)
    assert (np.diff(curve.risk_upper) >= 0).all()
    g = (2 * y - 1) * np.ravel(model.decision_function(X))
    part = getattr(model, "estimators_", [model])[0]
    w = np.ravel(part.coef_)
    dual = np.abs(w).sum() if norm == math.inf else np.linalg.norm(w)
    for eps, robust in zip(EPS[1:], curve.attacked_accuracy[1:]):
        assert robust == np.mean(g > eps * dual)


@pytest.mark.spec("ADV-1")
@pytest.mark.parametrize("norm", [2, math.inf])
def test_the_smallest_pairwise_margin_decides_among_several_classes(norm):
    X, y = load("wine")
    model = LogisticRegression().fit(X, y)
    radius = linear_radius(model, X, y, norm)
    right = model.predict(X) == y
    assert (radius[~right] == 0).all()
    # just inside the radius no random or worst direction changes the label; just outside one does
    outside = fgsm_all(model, X, y, radius * (1 + 1e-6), norm)
    inside = fgsm_all(model, X, y, radius * (1 - 1e-6), norm)
    assert outside[right].all()
    assert not inside[right].any()


def fgsm_all(model, X, y, radius, norm):
    """Whether the worst point towards some rival, at a radius for each row, has another label."""
    wrong = np.zeros(len(X), dtype=bool)
    for k in range(3):
        U = model.coef_[k] - model.coef_[y]
        if norm == 2:
            step = U / np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300)
        else:
            step = np.sign(U)
        wrong |= model.predict(X + radius[:, None] * step) != y
    return wrong


@pytest.mark.spec("ADV-1")
def test_one_vs_one_votes_are_bracketed():
    X, y = load("wine")
    model = OneVsOneClassifier(LogisticRegression()).fit(X, y)
    curve = adversarial_risk(model, X, y, EPS, fresh=False)
    assert (curve.certified_accuracy <= curve.attacked_accuracy).all()
    assert curve.certified_accuracy[1] > 0.8
    assert curve.certificate.ok


@pytest.mark.spec("ADV-2")
@pytest.mark.parametrize("attack", [fgsm, pgd, score_based, decision_based])
@pytest.mark.parametrize("norm", [2, math.inf])
def test_points_lie_in_the_ball_and_success_is_the_models_own_word(attack, norm):
    X, y = load("breast_cancer")
    model = SVC().fit(X[:200], y[:200])
    X, y = X[200:260], y[200:260].copy()
    y[:3] = 1 - y[:3]  # rows that are wrong already
    eps = 0.4 if norm == math.inf else 1.5
    found = attack(model, X, y, Threat(eps, norm), random_state=0)
    delta = found.x_adv - X
    size = np.abs(delta).max(axis=1) if norm == math.inf else np.linalg.norm(delta, axis=1)
    rounding = 4 * np.finfo(float).eps * (np.abs(X).max() + eps) * X.shape[1]
    assert (size <= eps + rounding).all()
    np.testing.assert_array_equal(found.success, model.predict(found.x_adv) != y)
    wrong = model.predict(X) != y
    assert wrong[:3].all()
    assert found.success[wrong].all()
    assert (size[wrong] == 0).all()
    assert (found.queries[wrong] == 0).all()
    assert found.success.sum() > wrong.sum()  # the attack does something


@pytest.mark.spec("ADV-1")
def test_limits_cover_the_true_risk():
    """y = ±1, x = y + Z: the risk of sign(x) under an attack of size eps is Phi(eps - 1)."""
    from scipy.stats import norm

    eps = np.array([0.0, 0.25, 0.5, 1.0])
    truth = norm.cdf(eps - 1)
    random = np.random.default_rng(0)
    model = SVC(kernel="linear", C=np.inf, tol=1e-10).fit([[-1.0], [1.0]], [-1, 1])  # sign(x)
    missed = 0
    for _ in range(200):
        y = random.choice([-1, 1], size=300)
        X = (y + random.standard_normal(300))[:, None]
        curve = adversarial_risk(model, X, y, eps, delta=0.1)
        missed += not ((curve.low <= truth) & (truth <= curve.high)).all()
    assert (
        missed <= 34
    )  # Hoeffding: more than 20 + 200 sqrt(log(100)/400) has probability < 1 % at delta = 0.1
