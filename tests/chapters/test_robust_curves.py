"""Brackets of the adversarial risk: consistent, monotone, honest about what was left out, able to fail."""

from __future__ import annotations

import io
import json
import math

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from tests.data import data_folder, load

from surefit import Kind, Status
from surefit.linear_model import LogisticRegression
from surefit.model_selection.bounds import clopper_pearson
from surefit.neighbors import KNeighborsClassifier
from surefit.robust import RobustnessCurve, adversarial_risk, linear_radius
from surefit.svm import SVC

EPS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)


def moons():
    X, y = make_moons(400, noise=0.15, random_state=0)
    return X, y


DATA = {
    "moons": moons,
    "breast cancer": lambda: load("breast_cancer"),
    "wine": lambda: load("wine"),
}
MODELS = {
    "logistic": LogisticRegression(),
    "svc": SVC(),
    "pairs": SVC(kernel="linear"),
    "neighbours": KNeighborsClassifier(),
    "bayes": GaussianNB(),
    "forest": RandomForestClassifier(10, random_state=0),
}


def split(data):
    X, y = DATA[data]()
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[::2], order[1::2]
    return X[train], y[train], X[test], y[test]


@pytest.mark.spec("ADV-1")
@pytest.mark.parametrize("norm", [2, math.inf])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", MODELS)
def test_brackets_are_consistent(name, data, norm):
    X, y, Z, t = split(data)
    model = MODELS[name].fit(X, y)
    curve = adversarial_risk(model, Z, t, EPS, norm=norm, max_rows=60)
    assert (curve.certified_accuracy <= curve.attacked_accuracy).all()
    assert (np.diff(curve.certified_accuracy) <= 0).all()
    assert (np.diff(curve.attacked_accuracy) <= 0).all()
    assert curve.exact[0]
    assert curve.n == 60
    assert curve.notes[0] == f"60 of {len(Z)} rows, chosen at random"
    assert (curve.low <= 1 - curve.attacked_accuracy).all()
    assert (curve.high >= 1 - curve.certified_accuracy).all()
    assert curve.attacked_accuracy[-1] < curve.attacked_accuracy[0]
    assert curve.certificate.ok
    if name in ("svc", "neighbours"):
        assert curve.certified_accuracy[1] > 0.6
    if name in ("bayes", "forest"):
        assert (curve.certified_accuracy[1:] == 0).all()
        assert curve.certificate["certified accuracy"].status is Status.UNDECIDED


def test_the_claims_say_their_numbers():
    X, y, Z, t = split("breast cancer")
    model = LogisticRegression().fit(X, y)
    curve = adversarial_risk(model, Z, t, (0.0, 0.1), delta=0.1)
    certificate = curve.certificate
    assert certificate["closed form"].observed == 0
    exact = certificate["certified accuracy"]
    assert exact.kind is Kind.EXACT
    assert (
        f"{math.floor(curve.certified_accuracy[1] * 1e4) / 1e4:.4f} at eps 0.1" in exact.statement
    )
    wrong = round((1 - curve.attacked_accuracy[1]) * len(Z))
    low, high = clopper_pearson(wrong, len(Z), 0.1, 2)
    claim = certificate["true adversarial risk"]
    assert claim.kind is Kind.STATISTICAL
    assert claim.bound == 1.0
    np.testing.assert_allclose(
        [curve.low[1], curve.high[1], claim.observed], [low, high, high - low]
    )


def test_rows_of_the_fit_allow_no_claim_about_others():
    X, y, _, _ = split("breast cancer")
    curve = adversarial_risk(LogisticRegression().fit(X, y), X, y, fresh=False)
    assert curve.certificate["true adversarial risk"].status is Status.UNDECIDED


@pytest.mark.parametrize("inner", [LogisticRegression(), SVC()], ids=["linear", "kernel"])
@pytest.mark.parametrize("lie", ["labels", "near the rows", "weights"])
def test_a_model_that_lies_is_noticed(inner, lie):
    """The attributes promise a robust model; its predictions are others."""
    X, y, Z, t = split("breast cancer")
    inner.fit(X, y)

    class Liar(type(inner)):
        def predict(self, rows):
            found = super().predict(rows)
            if lie == "labels":  # every third row the other label
                return np.where(np.arange(len(found)) % 3 == 0, 1 - found, found)
            if lie == "near the rows":  # right on the rows it was shown, wrong beside them
                shown = (np.abs(rows[:, None, :3] - Z[None, :, :3]).max(axis=2) == 0).any(axis=1)
                return np.where(shown, found, 1 - found)
            return found

    model = Liar(**inner.get_params())
    model.__dict__.update(inner.__dict__)
    if lie == "weights":
        if hasattr(model, "coef_") and isinstance(model, LogisticRegression):
            model.decision_function = None
            true = inner.predict
            model.predict = lambda rows: true(np.asarray(rows)[:, ::-1])
        else:
            model.predict = lambda rows: inner.predict(np.asarray(rows)[:, ::-1])
    assert adversarial_risk(inner, Z, t, EPS).certificate.ok
    curve = adversarial_risk(model, Z, t, EPS)
    assert not curve.certificate.ok
    failed = {claim.name for claim in curve.certificate.failed}
    assert failed & {"closed form", "certified accuracy", "attacked accuracy"}


def test_liars_among_neighbours_are_noticed():
    X, y, Z, t = split("moons")

    class Liar(KNeighborsClassifier):
        def predict(self, rows):
            found = super().predict(rows)
            shown = (np.asarray(rows)[:, None] == Z[None]).all(axis=2).any(axis=1)
            return np.where(shown, found, 1 - found)

    curve = adversarial_risk(Liar().fit(X, y), Z, t, EPS)
    assert not curve.certificate.ok
    assert curve.certificate["certified accuracy"].observed > 0


def test_fixed_columns_and_switches_change_the_curve():
    X, y, Z, t = split("breast cancer")
    model = LogisticRegression().fit(X, y)
    free = adversarial_risk(model, Z, t, EPS)
    fixed = adversarial_risk(model, Z, t, EPS, mutable=np.zeros(X.shape[1], dtype=bool))
    half = adversarial_risk(model, Z, t, EPS, mutable=np.arange(X.shape[1]) < 15)
    assert (fixed.certified_accuracy == fixed.certified_accuracy[0]).all()
    assert (free.certified_accuracy <= half.certified_accuracy).all()
    assert (free.certified_accuracy < half.certified_accuracy).any()
    assert "15 columns fixed" in half.threat
    coarse = adversarial_risk(model, Z, t, EPS, step=0.15)
    np.testing.assert_array_equal(coarse.certified_accuracy[:3], [free.certified_accuracy[0]] * 3)
    assert coarse.exact.all()
    mixed = adversarial_risk(model, Z, t, EPS, norm=2, step=0.15)
    assert mixed.certificate.ok
    assert not mixed.exact.all()


def test_the_linear_curve_counts_radii():
    X, y, Z, t = split("wine")
    model = LogisticRegression().fit(X, y)
    curve = adversarial_risk(model, Z, t, EPS)
    radius = linear_radius(model, Z, t)
    for eps, share in zip(EPS[1:], curve.certified_accuracy[1:]):
        assert share == np.mean(radius > eps)


def test_time_limits_are_kept_and_said():
    X, y, Z, t = split("breast cancer")
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    curve = adversarial_risk(model, Z, t, EPS, time_limit=0.0)
    assert curve.notes[-1] == "time ran out: attacks at eps 1 were left out or cut short"
    assert (curve.attacked_accuracy == curve.attacked_accuracy[0]).all()
    assert curve.certificate["true adversarial risk"].status is Status.HOLDS
    linear = adversarial_risk(LogisticRegression().fit(X, y), Z, t, EPS, time_limit=0.0)
    assert linear.exact.all()


def test_nothing_to_say_is_said():
    X, y, Z, t = split("moons")
    model = LogisticRegression().fit(X, y)
    right = model.predict(Z) == t

    class Labels:
        classes_ = model.classes_

        def predict(self, rows):
            return model.predict(rows)

    curve = adversarial_risk(Labels(), Z[right], t[right], (1e-9,))
    claim = curve.certificate["true adversarial risk"]
    assert claim.status is Status.UNINFORMATIVE
    assert "nothing can be said" in claim.statement
    attacked = curve.certificate["attacked accuracy"]
    assert attacked.status is Status.UNINFORMATIVE
    assert "no row was broken" in attacked.statement
    both = adversarial_risk(Labels(), Z[right], t[right], (0.0, 1e-9)).certificate[
        "true adversarial risk"
    ]
    assert both.status is Status.UNINFORMATIVE  # of the clean error alone something is known
    assert "nothing can be said at eps 1e-09" in both.statement


def test_the_same_seed_gives_the_same_curve():
    X, y, Z, t = split("breast cancer")
    model = SVC().fit(X, y)
    a, b = (adversarial_risk(model, Z, t, EPS, max_rows=50, random_state=3) for _ in range(2))
    assert a.to_dict() == b.to_dict()
    other = adversarial_risk(model, Z, t, EPS, max_rows=50, random_state=4)
    assert other.data_id != a.data_id


def test_attacks_can_be_chosen():
    X, y, Z, t = split("moons")
    model = SVC().fit(X, y)
    one = adversarial_risk(model, Z, t, EPS, attacks=["fgsm"])
    assert one.attacks == ("fgsm",)
    asked = []

    def mine(model, X, y, threat, *, random_state=None):
        from surefit.robust import pgd

        asked.append(threat.eps)
        return pgd(model, X, y, threat, random_state=random_state)

    own = adversarial_risk(model, Z, t, EPS, attacks=["fgsm", mine])
    assert own.attacks == ("fgsm", "mine")
    assert set(asked) <= set(EPS[1:])
    assert (own.attacked_accuracy <= one.attacked_accuracy).all()


def test_curves_travel_as_json():
    X, y, Z, t = split("moons")
    curve = adversarial_risk(SVC().fit(X, y), Z, t, EPS)
    record = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert set(record) == {
        "eps", "certified_accuracy", "attacked_accuracy", "exact", "low", "high", "n", "n_given", "norm",
        "threat", "method", "attacks", "delta", "notes", "about", "data_id", "claims",
    }  # fmt: skip
    again = RobustnessCurve.from_dict(record)
    assert again.to_dict() == curve.to_dict()
    assert str(again) == str(curve)


def test_curves_can_be_read():
    from rich.console import Console

    X, y, Z, t = split("moons")
    for model in (LogisticRegression(), SVC()):
        curve = adversarial_risk(model.fit(X, y), Z, t, EPS)
        text = str(curve)
        assert f"Robust accuracy of {type(model).__name__} on 200 rows" in text
        assert text.count("eps ") == len(EPS)
        console = Console(width=140, record=True, file=io.StringIO())
        console.print(curve)
        assert "robust accuracy" in console.export_text()
        axes = curve.plot()
        labels = [item.get_text() for item in axes.get_legend().get_texts()]
        assert ("exact" in labels) == isinstance(model, LogisticRegression)
        assert curve.plot(axes) is axes


def test_a_public_table():
    """Thousands of rows of a sparse public set, exactly."""
    if data_folder() is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    X, y = load("a9a")
    model = LogisticRegression().fit(X[:2000], y[:2000])
    curve = adversarial_risk(model, X[2000:], y[2000:], EPS)
    assert curve.exact.all()
    assert curve.n == X.shape[0] - 2000
    assert curve.certified_accuracy[0] == model.score(X[2000:], y[2000:])
