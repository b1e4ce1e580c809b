"""What ``surefit fit`` claims, against simulation, the formulas of the specification, and fairlearn."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_diabetes, load_iris
from tests.data import data_folder

from surefit import data
from surefit.data import load, read_table
from surefit.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier
from surefit.model_selection.bounds import clopper_pearson
from surefit.svm import LinearSVC
from surefit.table import fit_table, plan, verify_table
from surefit.table.evidence import (
    calibration_bins,
    calibration_claim,
    coverage_claim,
    rounded_up,
)
from surefit.table.losses import TableLoss
from surefit.table.objective import objective
from surefit.table.prepare import draw_split, rows_of
from surefit.table.sections import withdrawn
from surefit.table.splitting import fold_rows

DRAWS, DELTA = 2000, 0.05


def most(draws: int = DRAWS, delta: float = DELTA) -> int:
    """More failures than this have probability below 1e-3 if the claim is true."""
    return int(stats.binom.ppf(0.999, draws, delta))


# -------------------------------------------------------------------- statistics by simulation


@pytest.mark.spec("GEN-3")
@pytest.mark.parametrize(
    "law", [stats.halfnorm(), stats.expon(), stats.pareto(1.5), stats.randint(0, 6)]
)
def test_prediction_intervals_cover(law: Any) -> None:
    """With probability 1 - delta the number stated covers 90 % of rows to come, whatever the errors."""
    errors = law.rvs(size=(DRAWS, 150), random_state=0).astype(float)
    failures = 0
    for row in errors:
        found = re.search(
            r"within (\S+) of the prediction", coverage_claim(row, DELTA, "y").statement
        )
        assert found is not None
        failures += law.cdf(float(found.group(1))) < 0.9
    assert failures <= most()


@pytest.mark.spec("GEN-3")
def test_prediction_intervals_are_not_wider_than_needed() -> None:
    """For continuous errors the stated order statistic is the least that has the confidence."""
    n = 150
    errors = np.arange(1.0, n + 1)
    k = round(float(re.search(r"within (\S+) of", coverage_claim(errors, DELTA, "y").statement)[1]))
    assert stats.binom.cdf(k - 1, n, 0.9) >= 1 - DELTA > stats.binom.cdf(k - 2, n, 0.9)


def test_too_few_rows_for_an_interval_are_said() -> None:
    """0.9^28 > 0.05 >= 0.9^29: with 28 rows even the largest error does not do."""
    assert coverage_claim(np.ones(28), DELTA, "y").status.name == "UNDECIDED"
    assert coverage_claim(np.ones(29), DELTA, "y", 10.0).status.name == "HOLDS"


def test_numbers_of_sentences_are_rounded_up() -> None:
    values = 10.0 ** np.random.default_rng(0).uniform(-9, 9, 2000)
    found = np.array([float(rounded_up(value)) for value in values])
    assert np.all(found >= values)
    assert np.all(found <= values * (1 + 1.001e-3))


@pytest.mark.spec("FAIR-4")
@pytest.mark.parametrize("power", [1.0, 3.0])
def test_calibration_bins_cover_together(power: float) -> None:
    """All intervals hold at once: of unequal probabilities in a bin, calibrated (1) or far from it (3)."""
    generator = np.random.default_rng(1)
    score = generator.beta(0.7, 0.9, size=400)
    chance = score**power
    place = np.minimum((score * 10).astype(int), 9)
    true_rate = np.bincount(place, chance, 10) / np.maximum(np.bincount(place, minlength=10), 1)
    failures = wrong_claims = 0
    for truth in generator.random((DRAWS, 400)) < chance:
        bins = calibration_bins(score, truth.astype(float), DELTA)
        rates = [true_rate[round(10 * b["low"])] for b in bins]
        missed = [not b["rate_low"] <= rate <= b["rate_high"] for b, rate in zip(bins, rates)]
        failures += any(missed)
        claim = calibration_claim(bins, DELTA, "yes")
        far = [abs(b["mean"] - rate) for b, rate in zip(bins, rates) if b["n"] >= 50]
        stated = float(re.search(r"is within ([\d.]+) of", claim.statement)[1])
        wrong_claims += max(far) > stated
    assert failures <= most()
    assert wrong_claims <= most()


@pytest.mark.spec("GEN-4")
@pytest.mark.parametrize(("width", "law"), [(1.0, stats.uniform()), (3.0, stats.beta(0.3, 2.0))])
def test_the_loss_of_a_regression_is_bounded_by_its_width(width: float, law: Any) -> None:
    """Errors beyond the width count as the width, NaN and infinities too: Bernstein's bound applies."""
    loss = TableLoss("regression", width)
    predicted = np.array([0.0, np.nan, np.inf, 10 * width])
    found = loss.rows(np.zeros(4), predicted)
    assert found.tolist() == [0.0, width, width, width]
    assert loss.bound == "bernstein"
    rows = loss.rows(np.zeros(500), law.rvs(size=500, random_state=2) * 2 * width)
    assert 0 <= rows.min() <= rows.max() <= width


# -------------------------------------------------------------------- objectives


def _quoted(model: Any) -> float:
    statement = model.certificate_["duality gap"].statement
    return float(re.search(r"the objective (\S+) is within", statement)[1])


IRIS = load_iris(return_X_y=True)
SUGAR = load_diabetes(return_X_y=True)


@pytest.mark.parametrize(
    ("model", "X", "y"),
    [
        (LogisticRegression(C=0.7), IRIS[0], IRIS[1] == 1),
        (LogisticRegression(C=0.7), *IRIS),
        (LinearSVC(C=0.3), IRIS[0], IRIS[1] == 1),
        (Ridge(alpha=2.0), *SUGAR),
        (RidgeClassifier(alpha=2.0), IRIS[0], IRIS[1] == 1),
        (Lasso(alpha=0.1), *SUGAR),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_objectives_are_those_of_the_certificates(model: Any, X: Any, y: Any) -> None:
    """The formula of the picture gives the number that the model's own certificate quotes (six digits)."""
    fitted = model.fit(X, y)
    assert objective(fitted, X, np.asarray(y)) == pytest.approx(_quoted(fitted), rel=1e-5)


def test_no_coefficients_lie_below_the_line() -> None:
    """The proved bound of the picture, at 200 other places near and far."""
    model = fit_table(load("breast-cancer"), "diagnosis", models=["logistic"], reference=False)
    rows = rows_of(load("breast-cancer"), model.schema, list(model.classes_), 0.25, 0)
    X = model.encoder_.transform(rows.table.frame[rows.train])
    y = rows.y[rows.train]
    curve = model.evidence_["objective"]
    assert curve["values"][-1] == pytest.approx(objective(model.model_, X, y), rel=1e-12)
    assert all(value >= curve["lower_bound"] for value in [*curve["values"], curve["start"]])
    generator = np.random.default_rng(0)
    best = model.model_.coef_.copy()
    for size in np.repeat([1e-6, 1e-3, 0.1, 1.0], 50):
        model.model_.coef_ = best + size * generator.normal(size=best.shape)
        assert objective(model.model_, X, y) >= curve["lower_bound"]


# -------------------------------------------------------------------- splits, plans, columns


@pytest.mark.spec("GEN-6")
def test_the_split_is_a_function_of_seed_and_size() -> None:
    """The same rows for any content; another seed draws others; the parts are a partition."""
    train, holdout = draw_split(1000, 0.25, 7)
    assert len(holdout) == 250
    np.testing.assert_array_equal(np.sort(np.r_[train, holdout]), np.arange(1000))
    np.testing.assert_array_equal(holdout, draw_split(1000, 0.25, 7)[1])
    assert not np.array_equal(holdout, draw_split(1000, 0.25, 8)[1])
    generator = np.random.default_rng(0)
    parts = []
    for scale in (1.0, 1e6):
        x = scale * generator.normal(size=200)
        table = read_table({"x": x, "y": np.where(x > generator.normal(), "a", "b")})
        model = fit_table(table, "y", models=["logistic"], reference=False, seed=5)
        rows = rows_of(table, model.schema, ["a", "b"], 0.25, 5)
        parts.append(rows.holdout)
    np.testing.assert_array_equal(*parts)


@pytest.mark.spec("GEN-7")
@pytest.mark.parametrize("stratify", [True, False])
@pytest.mark.parametrize("n", [23, 100])
def test_folds_partition_the_rows(n: int, stratify: bool) -> None:
    y = np.arange(n) % 3 == 0
    folds = fold_rows(y, 5, 1, stratify=stratify)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(n))
    sizes = [len(fold) for fold in folds]
    assert max(sizes) - min(sizes) <= 1
    if stratify:
        shares = [y[fold].sum() for fold in folds]
        assert max(shares) - min(shares) <= 1


@pytest.mark.spec("GEN-4")
@pytest.mark.parametrize("reference", [False, True])
def test_the_bound_counts_the_whole_plan(reference: bool) -> None:
    """K is the number of models of the plan, tried or not, and the reference where it is measured."""
    families = ["logistic", "knn"]
    model = fit_table(load("iris"), "species", models=families, reference=reference, time=1e-6)
    many = fit_table(load("iris"), "species", models=families, reference=reference)
    for found, extra in ((model, 0), (many, int(reference))):  # no time: no reference either
        K = len(plan("classification", families)) + extra
        assert len(found.candidates_) == K
        held = found.candidates_[found.chosen_]["holdout"]
        n = found.document()["split"]["holdout"]
        # half of delta is for the calibration, the other sentence of the section
        half = found.delta / (2 if found.has_probabilities else 1)
        low, high = clopper_pearson(round(held["loss"] * n), n, half, K)
        assert (held["low"], held["high"]) == pytest.approx((low, high), abs=1e-12)
        assert f"counting all {K} models" in found.claims("generalisation")[0].statement


@pytest.mark.spec("FAIR-1")
def test_the_sensitive_column_never_reaches_the_model() -> None:
    """Not among the encoded columns, and no prediction depends on it."""
    import polars as pl

    table = load("mortgages")
    model = fit_table(
        table, "denied", sensitive=["african_american"], models=["logistic"], reference=False
    )
    assert "african_american" not in model.encoder_.blocks_
    assert not any("african_american" in name for name in model.encoder_.get_feature_names_out())
    flipped = table.frame.with_columns(
        pl.when(pl.col("african_american") == "yes")
        .then(pl.lit("no"))
        .otherwise(pl.lit("yes"))
        .alias("african_american")
    )
    np.testing.assert_array_equal(model.predict(table), model.predict(flipped))
    np.testing.assert_array_equal(
        model.predict(table), model.predict(table.frame.drop("african_american", "denied"))
    )


def test_withdrawn_claims_leave_the_rest() -> None:
    model = fit_table(
        load("mortgages"),
        "denied",
        sensitive=["african_american"],
        models=["logistic"],
        reference=False,
    )
    for name in ("robustness", "fairness"):
        claims = model.claims(name)
        kept = withdrawn(name, claims)
        exact = [c for c in claims if c.kind.value != "statistical"]
        assert kept[:-1] == exact
        assert kept[-1].status.name == "UNDECIDED"
    assert withdrawn("optimality", model.claims("optimality")) == model.claims("optimality")


# -------------------------------------------------------------------- the classic tables, end to end


def _classic(name: str, tmp_path: Path) -> Any:
    folder = data_folder()
    if folder is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    return data.fetch(name, folder=tmp_path, source=folder)


@pytest.mark.spec("FAIR-2")
@pytest.mark.spec("FAIR-3")
@pytest.mark.parametrize("name", ["mortgages", "adult", "compas", "german"])
def test_classic_tables_from_end_to_end(name: str, tmp_path: Path) -> None:
    """A fit, its verification, and an audit whose numbers are fairlearn's on the same rows."""
    from fairlearn import metrics as fm
    from sklearn.metrics import precision_score, recall_score

    table = load(name) if name == "mortgages" else _classic(name, tmp_path)
    facts = data.about(name)
    sensitive = list(facts["sensitive"])
    model = fit_table(
        table, facts["target"], sensitive=sensitive, models=["logistic"], reference=False
    )
    assert model.certificate_.ok
    assert verify_table(model, table, document=model.document(), quick=True).ok
    rows = rows_of(table, model.schema, list(model.classes_), model.holdout, model.seed)
    held = rows.table.take(rows.holdout)
    truth = (rows.y[rows.holdout] == model.positive_code).astype(int)
    decided = (model.predict(held) == model.positive).astype(int)
    rates = {
        "selection_rate": fm.selection_rate,
        "tpr": fm.true_positive_rate,
        "fpr": fm.false_positive_rate,
        "ppv": lambda y, d: precision_score(y, d, zero_division=np.nan),
        "tnr": fm.true_negative_rate,
        "fnr": lambda y, d: 1 - recall_score(y, d, zero_division=np.nan),
    }
    document = model.document()
    for record in document["evidence"]["fairness"]:
        if record["attribute"] not in sensitive:
            continue
        groups = rows.column(record["attribute"], rows.holdout)
        frame = fm.MetricFrame(
            metrics=rates, y_true=truth, y_pred=decided, sensitive_features=groups
        )
        compared = 0
        for group in record["groups"]:
            for rate in rates:
                value = group["rates"][rate]["value"]
                if value is not None and group["rates"][rate]["n"]:
                    wanted = frame.by_group.loc[group["group"], rate]
                    assert value == pytest.approx(wanted, abs=1e-12), (group["group"], rate)
                    compared += 1
        assert compared >= 6
        gap = record["gaps"]["independence"]["gap"]
        measured = [g["group"] for g in record["groups"] if not g["abstained"]]
        if gap is not None and len(measured) == len(record["groups"]):
            difference = fm.demographic_parity_difference(truth, decided, sensitive_features=groups)
            assert gap == pytest.approx(difference, abs=1e-12)
