"""Bad input to attacks: each error names the argument, the value and the remedy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression

from surefit.linear_model import LogisticRegression
from surefit.robust import (
    Threat,
    adversarial_risk,
    decision_based,
    fgsm,
    linear_radius,
    pgd,
    robust_features_example,
    score_based,
    scores,
    steal,
)
from surefit.svm import SVC

X = np.random.default_rng(0).standard_normal((40, 3))
Y = (X[:, 0] > 0).astype(int)
MODEL = LogisticRegression().fit(X, Y)


class Labels:
    """A model that gives labels only."""

    classes_ = np.array([0, 1])

    def predict(self, rows):
        return (np.asarray(rows)[:, 0] > 0).astype(int)


@pytest.mark.parametrize("eps", [-0.1, float("nan"), float("inf"), "0.1", None, True, 1j])
def test_radii_must_be_finite_and_not_negative(eps):
    with pytest.raises(ValueError, match="eps must be a finite number >= 0"):
        Threat(eps)
    with pytest.raises(ValueError, match="eps must be a finite number >= 0"):
        adversarial_risk(MODEL, X, Y, [0.1, eps])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": 1}, "norm must be 2 or inf"),
        ({"norm": "l1"}, "norm must be 2 or inf"),
        ({"norm": None}, "norm must be 2 or inf"),
        ({"mutable": [1, 0, 1]}, "mutable must be a vector of True and False"),
        ({"mutable": [[True]]}, "mutable must be a vector"),
        ({"step": [-1.0, 0, 0]}, "step must be >= 0"),
        ({"step": np.inf}, "step must be >= 0"),
        ({"step": np.nan}, "step must be a number or a vector without NaN"),
        ({"lower": 1.0, "upper": 0.0}, "lower must not exceed upper"),
        ({"groups": [[0, 1], [1, 2]]}, "named twice"),
        ({"groups": [[]]}, "none of them empty"),
        ({"groups": [[-1]]}, "columns >= 0"),
        ({"flips": -1}, "flips must be a whole number"),
        ({"flips": 1.5}, "flips must be a whole number"),
    ],
)
def test_threats_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        Threat(0.1, **options)
    with pytest.raises(ValueError, match=message):
        adversarial_risk(MODEL, X, Y, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mutable": [True, False]}, "mutable has 2 entries, but the rows have 3"),
        ({"step": [0.1, 0.2]}, "step has 2 entries"),
        ({"lower": np.zeros(5)}, "lower has 5 entries"),
        ({"groups": [[2, 3]]}, "groups names column 3"),
    ],
)
def test_threats_that_do_not_fit_the_rows(options, message):
    with pytest.raises(ValueError, match=message):
        pgd(MODEL, X, Y, Threat(0.1, **options))
    with pytest.raises(ValueError, match=message):
        adversarial_risk(MODEL, X, Y, **options)


@pytest.mark.parametrize("attack", [fgsm, pgd, score_based, decision_based])
def test_rows_and_labels(attack):
    threat = Threat(0.1)
    with pytest.raises(ValueError, match="one label a row"):
        attack(MODEL, X, Y[:-1], threat)
    with pytest.raises(ValueError, match="NaN or infinite"):
        attack(MODEL, np.where(X > 1, np.nan, X), Y, threat)
    with pytest.raises(ValueError, match="table of shape"):
        attack(MODEL, X[0], Y[:1], threat)
    with pytest.raises(TypeError, match="threat must be a Threat"):
        attack(MODEL, X, Y, 0.1)


@pytest.mark.parametrize("attack", [fgsm, pgd, score_based])
def test_models_without_scores_are_sent_to_the_attack_for_them(attack):
    with pytest.raises(ValueError, match=r"labels only\. Use decision_based"):
        attack(Labels(), X, Y, Threat(0.1))
    assert decision_based(Labels(), X, Y, Threat(0.5), random_state=0).success.any()


@pytest.mark.parametrize("attack", [fgsm, pgd, score_based, decision_based])
def test_no_rows_give_no_rows(attack):
    found = attack(MODEL, X[:0], Y[:0], Threat(0.1))
    assert found.x_adv.shape == (0, 3)
    assert found.success.shape == found.loss.shape == found.queries.shape == (0,)


@pytest.mark.parametrize("attack", [fgsm, pgd, score_based, decision_based])
def test_rows_that_are_all_wrong_are_left_alone(attack):
    found = attack(MODEL, X, 1 - MODEL.predict(X), Threat(0.1))
    assert found.success.all()
    np.testing.assert_array_equal(found.x_adv, X)


def test_parameters_of_attacks():
    threat = Threat(0.1)
    with pytest.raises(ValueError, match="n_iter and restarts"):
        pgd(MODEL, X, Y, threat, n_iter=0)
    with pytest.raises(ValueError, match="step_size must be positive"):
        pgd(MODEL, X, Y, threat, step_size=0.0)
    with pytest.raises(ValueError, match="method must be one of"):
        score_based(MODEL, X, Y, threat, method="guess")
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        score_based(MODEL, X, Y, threat, alpha=0.0)
    with pytest.raises(ValueError, match="samples must be at least 1"):
        score_based(MODEL, X, Y, threat, samples=0)
    with pytest.raises(ValueError, match="samples >= 1"):
        decision_based(MODEL, X, Y, threat, samples=0)


def test_models_that_are_none():
    with pytest.raises(ValueError, match="has no classes_"):
        scores(LogisticRegression())
    with pytest.raises(TypeError, match="must have predict"):
        scores(3, classes=[0, 1])
    with pytest.raises(ValueError, match="two labels or more"):
        scores(Labels(), classes=[0])
    with pytest.raises(TypeError, match="is not linear"):
        linear_radius(SVC().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="columns for 3 classes"):
        fgsm(Labels(), X, Y, Threat(0.1), score=lambda rows: rows[:, :2], classes=[0, 1, 2])


def test_a_regressor_is_a_classifier_by_its_sign():
    model = LinearRegression().fit(X, 2 * Y - 1)
    curve = adversarial_risk(model, X, 2 * Y - 1, fresh=False)
    assert curve.exact.all()
    assert curve.certified_accuracy[0] == np.mean((model.predict(X) > 0) == Y)


def test_sparse_rows_are_taken_in_full():
    ours = adversarial_risk(MODEL, sp.csr_array(X), Y)
    np.testing.assert_array_equal(
        ours.certified_accuracy, adversarial_risk(MODEL, X, Y).certified_accuracy
    )
    with pytest.raises(ValueError, match="need it in full"):
        pgd(MODEL, sp.csr_array((1 << 20, 1 << 10)), np.zeros(1 << 20), Threat(0.1))


def test_frames_and_lists_are_taken():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = LogisticRegression().fit(frame, Y)
    named = adversarial_risk(model, frame, pandas.Series(Y))
    plain = adversarial_risk(MODEL, X.tolist(), Y.tolist())
    np.testing.assert_array_equal(named.certified_accuracy, plain.certified_accuracy)
    assert adversarial_risk(model, frame, Y, max_rows=10).n == 10


def test_parameters_of_the_risk():
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        adversarial_risk(MODEL, X, Y, delta=1.0)
    with pytest.raises(ValueError, match="max_rows must be at least 1"):
        adversarial_risk(MODEL, X, Y, max_rows=0)
    with pytest.raises(ValueError, match="at least one radius"):
        adversarial_risk(MODEL, X, Y, [])
    with pytest.raises(ValueError, match="attacks must be functions or of"):
        adversarial_risk(MODEL, X, Y, attacks=["magic"])
    with pytest.raises(ValueError, match="X has no rows"):
        adversarial_risk(MODEL, X[:0], Y[:0])


def test_stealing_needs_a_boundary():
    with pytest.raises(ValueError, match="same label"):
        steal(MODEL, np.repeat(X[:1], 5, axis=0))


@pytest.mark.parametrize("d", [1, 0, -3, 2.5, True, "10"])
def test_the_example_needs_two_features(d):
    with pytest.raises(ValueError, match="d must be a whole number >= 2"):
        robust_features_example(d)
