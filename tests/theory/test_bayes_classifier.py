"""The Bayes classifier: its rule, its risk, and that nothing beats it (CLS-3)."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import surefit
from surefit import Status
from surefit.bayes import BayesClassifier
from surefit.densities import Gaussian, Laplace
from surefit.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from surefit.neighbors import KNeighborsClassifier

NORMAL = [Gaussian([-1.0], [[1.0]]), Gaussian([1.0], [[1.0]])]


def draw(n, seed):
    """x = y + N(0, 1), y = -1 or +1 with probability 1/2."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.uniform(size=n) < 0.5, -1, 1)
    return y[:, None] + rng.normal(size=(n, 1)), y


@pytest.mark.spec("CLS-3")
def test_the_risk_of_two_normal_classes_is_phi_of_minus_one():
    X, y = draw(50, 0)
    model = BayesClassifier(NORMAL, [0.5, 0.5]).fit(X, y)
    risk = model.risk()
    assert risk.method == "closed form"
    assert risk.value == pytest.approx(ndtr(-1.0), rel=1e-14)
    assert round(risk.value, 4) == 0.1587
    np.testing.assert_array_equal(model.predict([[-0.01], [0.01]]), [-1, 1])
    assert model.decision_function([[0.3]]) == pytest.approx([0.6])  # log-odds 2x


@pytest.mark.spec("CLS-3")
@pytest.mark.parametrize(
    "rule",
    [
        LogisticRegression(),
        Perceptron(
            certify=False
        ),  # its certificate decides separability, which is not the question
        RidgeClassifier(),
        SGDClassifier(random_state=0),
        KNeighborsClassifier(1),
        KNeighborsClassifier(25),
        BayesClassifier(Gaussian.fit),
    ],
    ids=str,
)
@pytest.mark.filterwarnings(
    "ignore::surefit.CertificateWarning"
)  # a perceptron on inseparable rows
def test_no_fitted_rule_beats_it_beyond_the_hoeffding_radius(rule):
    X, y = draw(500, 1)
    fresh, labels = draw(20_000, 2)
    error = 1.0 - rule.fit(X, y).score(fresh, labels)
    radius = math.sqrt(math.log(2 / 1e-4) / (2 * len(labels)))  # at 99.99 %
    assert error >= ndtr(-1.0) - radius
    best = 1.0 - BayesClassifier(NORMAL, [0.5, 0.5]).fit(X, y).score(fresh, labels)
    assert abs(best - ndtr(-1.0)) <= radius


@pytest.mark.parametrize("prior", [0.5, 0.2, 0.95])
def test_closed_form_quadrature_and_draws_agree(prior):
    """The same problem three ways; scipy's frozen densities have no closed form here."""
    priors = [prior, 1 - prior]
    X, y = draw(10, 0)
    closed = BayesClassifier(NORMAL, priors, certify=False).fit(X, y).risk()
    frozen = [stats.norm(-1, 1), stats.norm(1, 1)]
    line = BayesClassifier(frozen, priors, certify=False).fit(X, y).risk()
    assert line.method == "quadrature"
    assert abs(line.value - closed.value) <= line.error + closed.error < 1e-9
    plane = [stats.multivariate_normal([-1, 0]), stats.multivariate_normal([1, 0])]
    wide = BayesClassifier(plane, priors, certify=False).fit(np.column_stack([X, X]), y)
    drawn = wide.risk(delta=1e-4)
    assert drawn.method == "Monte Carlo"
    assert abs(drawn.value - closed.value) <= drawn.error
    assert drawn.error == pytest.approx(0.5 * math.sqrt(math.log(2 / 1e-4) / 2e5))


@pytest.mark.parametrize(
    ("densities", "risk"),
    [
        ([Laplace(-1.0, 1.0), Laplace(1.0, 1.0)], math.exp(-1) / 2),
        ([stats.uniform(0, 1), stats.uniform(0.5, 1)], 0.25),  # they overlap on a half
        ([stats.expon(), stats.expon(1)], None),
        ([stats.norm(0, 1), stats.norm(0, 3)], None),  # two boundaries
        ([stats.cauchy(0, 1), stats.cauchy(2, 1)], 0.5 - math.atan(1) / math.pi),  # boundary at 1
    ],
    ids=["laplace", "uniform", "exponential", "scales", "cauchy"],
)
def test_risks_on_the_line(densities, risk):
    X, y = draw(10, 0)
    found = BayesClassifier(densities, [0.5, 0.5], certify=False).fit(X, y).risk()
    if risk is None and isinstance(densities[0].dist, type(stats.expon)):
        # the second has the larger density from 1 on: only draws of the first beyond 1 are lost
        risk = 0.5 * math.exp(-1)
    elif risk is None:
        edge = 3 * math.sqrt(math.log(3) / 4)  # where the two densities are equal
        risk = 0.5 * 2 * ndtr(-edge) + 0.5 * (2 * ndtr(edge / 3) - 1)
    assert found.value == pytest.approx(risk, abs=1e-9)
    assert found.error < 1e-8


def test_several_classes_and_dimensions():
    """The mean of 1 - max posterior over fresh rows is the risk; so is the share of errors."""
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    densities = [Gaussian(m, np.eye(2) * s) for m, s in zip(means, (1.0, 0.5, 2.0))]
    y = rng.choice(3, size=20_000, p=[0.5, 0.3, 0.2])
    X = np.vstack([densities[c].sample(1, rng) for c in y])
    model = BayesClassifier(densities, [0.5, 0.3, 0.2]).fit(X[:300], y[:300])
    assert model.certificate_["risk"].status is Status.UNDECIDED
    assert surefit.verify(model, X[:300], y[:300])["risk"].status is Status.HOLDS
    risk = model.risk(delta=1e-4)
    radius = math.sqrt(math.log(2 / 1e-4) / (2 * len(y)))
    assert abs(np.mean(model.predict(X) != y) - risk.value) <= radius + risk.error
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(shares), model.predict_log_proba(X), atol=1e-12)
    assert model.decision_function(X).shape == (20_000, 3)


def test_plug_in_rules_are_discriminant_analysis():
    """Fitted Gaussians give scikit-learn's quadratic rule, one common covariance its linear rule."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 3)) * (1 + y[:, None]) + y[:, None]
    plug = BayesClassifier(Gaussian.fit).fit(X, y)
    theirs = QuadraticDiscriminantAnalysis().fit(X, y)  # which divides by n - 1
    assert np.mean(plug.predict(X) == theirs.predict(X)) > 0.99
    assert plug.certificate_["risk"].status is Status.UNDECIDED
    pooled = sum(Gaussian.fit(X[y == c]).cov * np.mean(y == c) for c in (0, 1))
    same = [Gaussian(X[y == c].mean(axis=0), pooled) for c in (0, 1)]
    linear = BayesClassifier(same).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(linear.decision_function(X), theirs.decision_function(X), rtol=1e-8)


def test_labels_and_rows_outside_every_support():
    X, y = np.array([[0.2], [1.4]]), np.array(["left", "right"])
    model = BayesClassifier([stats.uniform(0, 1), stats.uniform(1, 1)], [0.3, 0.7]).fit(X, y)
    assert model.predict([[0.5], [1.5], [9.0]]).tolist() == ["left", "right", "right"]
    np.testing.assert_allclose(model.predict_proba([[9.0], [0.5]]), [[0.3, 0.7], [1.0, 0.0]])
    backwards = BayesClassifier(model.densities[::-1], [0.7, 0.3], classes=["right", "left"]).fit(
        X, y
    )
    assert backwards.predict([[0.5], [1.5]]).tolist() == ["left", "right"]
    assert surefit.verify(backwards, X, y).ok


def test_equal_densities_leave_the_rarer_class():
    X, y = draw(10, 0)
    model = BayesClassifier([NORMAL[0], NORMAL[0]], [0.8, 0.2], certify=False).fit(X, y)
    assert model.risk().value == pytest.approx(0.2)
    sure = BayesClassifier(NORMAL, [1.0, 0.0], certify=False).fit(X, y)
    assert sure.risk().value == 0.0
    assert set(sure.predict(X)) == {-1}
