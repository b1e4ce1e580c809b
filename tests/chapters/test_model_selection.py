"""Searches, hold-out and cross-validation: scikit-learn's results, and what the certificate says of them."""

import copy
import math

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.model_selection as theirs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import accuracy_score, make_scorer, zero_one_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import surefit
from surefit import Status
from surefit.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier
from surefit.model_selection import (
    GridSearchCV,
    GroupKFold,
    HoldOut,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RandomizedSearchCV,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
    cross_val_score,
    cross_validate,
    hoeffding_radius,
    learning_curve,
    validation_curve,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6))
LABELS = np.where(X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=120) > 0, "b", "a")
BINARY = (LABELS == "b").astype(int)
Y = X @ np.array([1.0, -2.0, 0.0, 0.0, 0.5, 0.0]) + 0.5 * RNG.normal(size=120)
ALPHAS = {"alpha": [0.01, 1.0, 100.0]}


def generalisation(thing):
    return thing.certificate_["generalisation"]


def same_results(ours, other):
    """cv_results_ but for the times; where candidates share work, to what tol=1e-4 lets fits differ by."""
    assert list(ours) == list(other)
    for key, values in ours.items():
        if "time" in key:
            continue
        if key == "params":
            assert values == other[key]
        else:
            np.testing.assert_array_equal(
                np.ma.getmaskarray(values), np.ma.getmaskarray(other[key])
            )
            kind = np.asarray(values).dtype.kind
            if kind == "f":
                pair = (np.ma.compressed(values), np.ma.compressed(other[key]))
                np.testing.assert_allclose(*pair, rtol=1e-4, atol=1e-6)
            else:
                np.testing.assert_array_equal(
                    np.ma.compressed(values), np.ma.compressed(other[key])
                )


# ------------------------------------------------------------------------ scikit-learn's results


@pytest.mark.parametrize(
    ("estimator", "grid", "target", "keywords"),
    [
        (Ridge(), ALPHAS, Y, {"return_train_score": True}),
        (
            Ridge(),
            [ALPHAS, {"fit_intercept": [True, False]}],
            Y,
            {"cv": KFold(3, shuffle=True, random_state=0)},
        ),
        (
            RidgeClassifier(),
            ALPHAS,
            LABELS,
            {"scoring": ["accuracy", "roc_auc"], "refit": "accuracy"},
        ),
        (LogisticRegression(), {"C": [0.1, 1.0]}, LABELS, {"scoring": "neg_log_loss", "n_jobs": 2}),
        (
            make_pipeline(StandardScaler(), Lasso()),
            {"lasso__alpha": [0.01, 0.1]},
            Y,
            {"cv": RepeatedKFold(n_splits=2, n_repeats=2, random_state=0)},
        ),
        (DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, LABELS, {"refit": False}),
    ],
)
def test_the_results_of_scikit_learn(estimator, grid, target, keywords):
    ours = GridSearchCV(estimator, grid, **keywords).fit(X, target)
    other = theirs.GridSearchCV(estimator, grid, **keywords).fit(X, target)
    same_results(ours.cv_results_, other.cv_results_)
    assert ours.best_params_ == other.best_params_
    assert ours.best_index_ == other.best_index_
    assert ours.best_score_ == pytest.approx(other.best_score_, rel=1e-4)
    if keywords.get("refit", True):
        if target is Y:
            np.testing.assert_allclose(ours.predict(X), other.predict(X))
        else:
            np.testing.assert_array_equal(ours.predict(X), other.predict(X))
        assert ours.score(X, target) == pytest.approx(other.score(X, target))


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, np.float32, list])
def test_sparse_and_single_precision_rows(kind):
    rows = X.tolist() if kind is list else X.astype(np.float32) if kind is np.float32 else kind(X)
    search = GridSearchCV(Ridge(), ALPHAS, scoring="neg_mean_squared_error").fit(rows, Y)
    plain = GridSearchCV(Ridge(), ALPHAS, scoring="neg_mean_squared_error").fit(X, Y)
    tolerance = 1e-4 if kind is np.float32 else 1e-9
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=tolerance
    )
    assert surefit.verify(search, rows, Y).ok
    if kind is np.float32:
        assert search.best_estimator_.coef_.dtype == np.float32


def test_randomized_search_and_sample_weights():
    weights = RNG.uniform(0.5, 2.0, size=120)
    keywords = {"n_iter": 4, "random_state": 3, "cv": 3}
    grid = {"alpha": np.logspace(-3, 3, 50)}
    ours = RandomizedSearchCV(RidgeClassifier(), grid, **keywords)
    other = theirs.RandomizedSearchCV(RidgeClassifier(), grid, **keywords)
    ours.fit(X, LABELS, sample_weight=weights)
    other.fit(X, LABELS, sample_weight=weights)
    same_results(ours.cv_results_, other.cv_results_)
    claim = generalisation(ours)
    assert claim.status is Status.UNDECIDED
    assert "weighted" in claim.statement
    assert surefit.verify(ours, X, LABELS, sample_weight=weights).ok
    assert not surefit.verify(ours, X, LABELS).ok


def test_cross_validation_and_curves_give_scikit_learn_s_numbers():
    keywords = {"cv": 4, "scoring": ["accuracy", "f1_macro"], "return_train_score": True}
    ours = cross_validate(RidgeClassifier(), X, LABELS, **keywords)
    other = theirs.cross_validate(RidgeClassifier(), X, LABELS, **keywords)
    assert list(ours) == list(other)
    for key in (key for key in other if "time" not in key):
        np.testing.assert_allclose(ours[key], other[key])
    np.testing.assert_allclose(
        cross_val_score(Ridge(), X, Y), theirs.cross_val_score(Ridge(), X, Y)
    )
    sizes = {"train_sizes": [0.3, 1.0], "cv": 3}
    for ours_part, other_part in zip(
        learning_curve(RidgeClassifier(), X, LABELS, **sizes),
        theirs.learning_curve(RidgeClassifier(), X, LABELS, **sizes),
        strict=True,
    ):
        np.testing.assert_allclose(ours_part, other_part)
    values = {"param_name": "alpha", "param_range": [0.1, 10.0]}
    for ours_part, other_part in zip(
        validation_curve(Ridge(), X, Y, **values),
        theirs.validation_curve(Ridge(), X, Y, **values),
        strict=True,
    ):
        np.testing.assert_allclose(ours_part, other_part)


# ------------------------------------------------------------------------ what is said


@pytest.mark.spec("GEN-4")
def test_the_sentence_counts_all_candidates_and_folds():
    keywords = {"cv": KFold(4), "delta": 0.1}
    search = GridSearchCV(RidgeClassifier(), ALPHAS, **keywords).fit(X, LABELS)
    claim = generalisation(search)
    radius = hoeffding_radius(30, 0.1, models=12)
    error = 1 - search.best_score_
    assert claim.status is Status.HOLDS
    assert claim.statement == search.statement_
    assert claim.statement.startswith(
        "with probability 90 %, the mean true error of the 4 fold models"
    )
    assert "after trying 3 candidates on 4 folds" in claim.statement
    assert "not about best_estimator_" in claim.statement
    assert claim.observed == pytest.approx(min(error + radius, 1) - max(error - radius, 0))
    excess = search.certificate_["selection excess"]
    assert excess.observed == pytest.approx(2 * radius)
    refitted = search.certificate_["best_estimator_: generalisation"]
    assert refitted.status is Status.UNDECIDED
    assert "HoldOut" in refitted.statement


def test_the_printed_radius_is_never_smaller_than_the_real_one():
    for seed in range(5):
        model = HoldOut(RidgeClassifier(), test_size=53, random_state=seed).fit(X, LABELS)
        words = model.statement_.replace(",", "").replace(";", "").split()
        printed, centre = (float(words[words.index("within") + k]) for k in (1, 3))
        error, radius = 1 - model.best_score_, hoeffding_radius(53)
        assert centre - printed <= error - radius
        assert centre + printed >= error + radius


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        (LeaveOneOut(), "too wide to tell much: 1 test row, where 12 like them would do"),
        (TimeSeriesSplit(3), "time series"),
        (ShuffleSplit(3, test_size=30, random_state=0), "within"),
        (PredefinedSplit(np.arange(120) % 3), "within"),
        (4, "at the class frequencies of the test rows"),
    ],
)
def test_what_the_splitter_allows(cv, words):
    claim = generalisation(GridSearchCV(RidgeClassifier(), ALPHAS, cv=cv).fit(X, LABELS))
    assert words in claim.statement
    assert (claim.status is Status.HOLDS) == (words == "within" or "frequencies" in words)


def test_groups_are_counted_instead_of_rows():
    search = GridSearchCV(RidgeClassifier(), ALPHAS, cv=GroupKFold(3))
    search.fit(X, LABELS, groups=np.arange(120) // 10)
    claim = generalisation(search)
    assert claim.status is Status.UNINFORMATIVE
    assert "each group counting once" in claim.statement
    assert "12 groups, independent of each other" in claim.statement
    assert "4 test groups, where" in claim.statement
    assert surefit.verify(search, X, LABELS).ok
    torn = GridSearchCV(RidgeClassifier(), ALPHAS, cv=KFold(3, shuffle=True, random_state=0))
    with pytest.warns(UserWarning, match="groups parameter is ignored"):
        claim = generalisation(torn.fit(X, LABELS, groups=np.arange(120) // 10))
    assert claim.status is Status.UNDECIDED
    assert (
        "3 of the 3 folds test rows of groups that their models were fitted on" in claim.statement
    )


@pytest.mark.parametrize(
    ("estimator", "target", "scoring", "words"),
    [
        (Ridge(), Y, None, "R² is a ratio"),
        (Ridge(), Y, "neg_mean_squared_error", "give loss_range"),
        (Ridge(), Y, "neg_root_mean_squared_error", "root"),
        (RidgeClassifier(), LABELS, "roc_auc", "AUC"),
        (RidgeClassifier(), LABELS, "f1_macro", "F1"),
        (RidgeClassifier(), LABELS, "balanced_accuracy", "balanced accuracy"),
        (LogisticRegression(), LABELS, "neg_log_loss", "not bounded"),
        (RidgeClassifier(), LABELS, lambda model, X, y: model.score(X, y), "not known"),
        (RidgeClassifier(), LABELS, make_scorer(accuracy_score, normalize=False), "0-1"),
        (DummyClassifier(), LABELS, None, "not known"),
    ],
)
def test_scores_that_are_no_means_of_bounded_losses(estimator, target, scoring, words):
    model = HoldOut(estimator, scoring=scoring, random_state=0).fit(X, target)
    claim = generalisation(model)
    assert claim.status is Status.UNDECIDED
    assert words in claim.statement


@pytest.mark.parametrize(
    ("scoring", "words"),
    [
        ("accuracy", "the true error"),
        (make_scorer(zero_one_loss, greater_is_better=False), "the true error"),
        ("neg_brier_score", "the true Brier score"),
    ],
)
@pytest.mark.parametrize("bound", ["hoeffding", "bernstein"])
def test_scores_that_are(scoring, words, bound):
    model = HoldOut(
        LogisticRegression(), scoring=scoring, bound=bound, test_size=60, random_state=0
    )
    claim = generalisation(model.fit(X, BINARY))
    assert claim.status is Status.HOLDS
    assert words in claim.statement
    assert surefit.verify(model, X, BINARY).ok


def test_top_k_and_three_classes():
    three = np.digitize(X[:, 0] + 0.3 * RNG.normal(size=120), [-0.5, 0.5])
    model = LogisticRegression(C=1.0)
    for scoring, words in (("top_k_accuracy", "top-2 error"), ("neg_brier_score", "Brier")):
        held = HoldOut(model, scoring=scoring, random_state=0, test_size=60).fit(X, three)
        assert generalisation(held).status is Status.HOLDS
        assert words in held.statement_
    assert "0.00" not in held.statement_  # the Brier score of three classes lies in [0, 2]
    claim = generalisation(held)
    assert (claim.bound, claim.low) == (0.8 * 2.0, 0.0)
    assert claim.low <= claim.estimate <= claim.high <= 2.0


def test_a_range_that_losses_leave_makes_the_claim_fail():
    keywords = {"scoring": "neg_mean_absolute_error", "random_state": 0, "test_size": 60}
    wide = HoldOut(Ridge(), loss_range=(0, 10), **keywords).fit(X, Y)
    assert generalisation(wide).status is Status.HOLDS
    with pytest.warns(surefit.CertificateWarning, match="outside the stated range"):
        narrow = HoldOut(Ridge(), loss_range=(0, 0.2), **keywords).fit(X, Y)
    assert generalisation(narrow).status is Status.FAILS
    assert not surefit.verify(narrow, X, Y).ok


def test_clopper_pearson_is_for_errors_only():
    model = HoldOut(RidgeClassifier(), bound="clopper-pearson", random_state=0).fit(X, BINARY)
    assert "is between" in model.statement_
    other = HoldOut(
        LogisticRegression(), scoring="neg_brier_score", bound="clopper-pearson", random_state=0
    ).fit(X, BINARY)
    assert generalisation(other).status is Status.UNDECIDED


def test_the_bound_is_fixed_when_the_fit_begins():
    model = HoldOut(RidgeClassifier(), random_state=0).fit(X, LABELS)
    said = model.statement_
    model.set_params(bound="clopper-pearson", delta=0.5)
    assert surefit.verify(model, X, LABELS)["generalisation"].statement == said


def test_a_refitted_hold_out_claims_nothing():
    model = HoldOut(RidgeClassifier(), ALPHAS, refit=True, random_state=0).fit(X, LABELS)
    claim = generalisation(model)
    assert claim.status is Status.UNDECIDED
    assert "refitted on all rows" in claim.statement
    assert surefit.verify(model, X, LABELS).ok


def test_a_search_inside_a_hold_out_is_one_model():
    search = GridSearchCV(RidgeClassifier(), ALPHAS, cv=3)
    model = HoldOut(search, test_size=60, random_state=0).fit(X, LABELS)
    assert "after trying 1 model;" in model.statement_
    rest = np.setdiff1d(np.arange(120), model.holdout_)
    again = GridSearchCV(RidgeClassifier(), ALPHAS, cv=3).fit(X[rest], LABELS[rest])
    assert model.best_estimator_.best_params_ == again.best_params_
    assert surefit.verify(model, X, LABELS).ok


def test_nested_selection_is_about_the_models_that_the_searches_deliver():
    search = GridSearchCV(RidgeClassifier(), ALPHAS, cv=3)
    found = cross_validate(search, X, LABELS, cv=KFold(3))
    other = theirs.cross_validate(
        theirs.GridSearchCV(RidgeClassifier(), ALPHAS, cv=3), X, LABELS, cv=KFold(3)
    )
    np.testing.assert_allclose(found["test_score"], other["test_score"])
    radius = hoeffding_radius(40, models=3)
    assert (
        f"of the 3 fold models is within {math.ceil(1000 * radius) / 1000:.3f} of"
        in found.statement_
    )


def test_several_scores_share_delta():
    found = cross_validate(
        LogisticRegression(),
        X,
        BINARY,
        cv=KFold(2),
        scoring=["accuracy", "neg_brier_score", "roc_auc"],
    )
    claims = {c.name: c for c in found.certificate_.claims}
    assert claims["generalisation: roc_auc"].status is Status.UNDECIDED
    assert claims["generalisation: accuracy"].statement.startswith("with probability 97.5 %")
    assert claims["generalisation: neg_brier_score"].status is Status.HOLDS


def test_several_scores_without_a_choice():
    search = GridSearchCV(RidgeClassifier(), ALPHAS, scoring=["accuracy", "roc_auc"], refit=False)
    claim = generalisation(search.fit(X, LABELS))
    assert claim.status is Status.UNDECIDED
    assert "name one of them as refit" in claim.statement
    chosen = GridSearchCV(
        RidgeClassifier(), ALPHAS, scoring="accuracy", refit=lambda results: 2
    ).fit(X, LABELS)
    assert chosen.best_index_ == 2
    assert chosen.certificate_["selection"].status is Status.UNDECIDED
    assert "of alpha=100 " in chosen.statement_


# ------------------------------------------------------------------------ failures of candidates


class Moody(ClassifierMixin, BaseEstimator):
    """Refuses to be fitted on a sample that contains the first row, in one mood."""

    def __init__(self, mood="good"):
        self.mood = mood

    def fit(self, X, y):
        if self.mood == "bad" and (X[:, 0] == 0.0).any():
            raise ValueError("not today")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_a_candidate_that_raises_is_reported_and_the_others_go_on():
    rows = np.arange(60.0)[:, None]
    labels = np.arange(60) % 2
    search = GridSearchCV(Moody(), {"mood": ["bad", "good", "sad"]}, cv=KFold(3))
    with (
        pytest.warns(FitFailedWarning, match="not today") as caught,
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(rows, labels)
    [message] = [str(w.message) for w in caught if w.category is FitFailedWarning]
    assert "2 fits failed out of a total of 9" in message
    assert "fold 1 of candidate {'mood': 'bad'}; fold 2 of candidate {'mood': 'bad'}" in message
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False, False]
    assert "after trying 3 candidates" in search.statement_  # failed ones count
    excess = search.certificate_["selection excess"]
    assert excess.status is Status.UNDECIDED  # the one that failed might have been the best
    assert "1 of the 3 candidates was not measured" in excess.statement
    assert surefit.verify(search, rows, labels).ok
    with pytest.raises(ValueError, match="not today"):
        GridSearchCV(Moody(), {"mood": ["bad"]}, error_score="raise").fit(rows, labels)
    with pytest.warns(FitFailedWarning, match="not today"):
        numbered = GridSearchCV(
            Moody(), {"mood": ["bad", "good"]}, error_score=0.9, refit=False, cv=KFold(3)
        ).fit(rows, labels)
    assert numbered.best_params_ == {"mood": "bad"}  # as the user asked
    assert generalisation(numbered).status is Status.UNDECIDED  # but 0.9 is no observation


# ------------------------------------------------------------------------ verification


def test_verification_fits_everything_again():
    search = GridSearchCV(RidgeClassifier(), ALPHAS, cv=3).fit(X, LABELS)
    assert search.certificate_["scores"].status is Status.UNDECIDED
    report = surefit.verify(search, X, LABELS)
    assert report.ok
    assert report["scores"].status is Status.HOLDS
    assert report["best_estimator_: data"].status is Status.HOLDS
    full = GridSearchCV(RidgeClassifier(), ALPHAS, cv=3, certify="full").fit(X, LABELS)
    assert full.certificate_["scores"].status is Status.HOLDS
    bare = GridSearchCV(RidgeClassifier(), ALPHAS, cv=3, certify=False).fit(X, LABELS)
    assert not hasattr(bare, "certificate_")
    assert surefit.verify(bare, X, LABELS)["generalisation"].statement == search.statement_


def forge(model, change):
    forged = copy.deepcopy(model)
    change(forged)
    return forged


def test_forged_searches_are_caught():
    search = GridSearchCV(RidgeClassifier(), ALPHAS, cv=KFold(3)).fit(X, LABELS)

    def better_scores(s):
        s.cv_results_["split0_test_score"] = s.cv_results_["split0_test_score"] + 0.05

    def another_choice(s):
        s.best_index_ = int(np.argmin(s.cv_results_["mean_test_score"]))

    def another_score(s):
        s.best_score_ = s.best_score_ + 0.01

    def leaking_folds(s):
        everything = np.arange(120)
        s.folds_ = [(everything, part) for part in np.split(everything, 3)]

    def other_folds(s):
        s.folds_ = np.random.default_rng(0).permutation(s.folds_)

    def other_parameters(s):
        s.best_params_ = {"alpha": 3.0}

    for change in (
        better_scores,
        another_choice,
        another_score,
        leaking_folds,
        other_folds,
        other_parameters,
    ):
        report = surefit.verify(forge(search, change), X, LABELS)
        assert not report.ok, change.__name__

    def perfect(s):
        s.evidence_ = np.zeros_like(s.evidence_)

    assert (
        surefit.verify(forge(search, perfect), X, LABELS)["generalisation"].statement
        == search.statement_
    )


def test_forged_hold_outs_are_caught():
    tree = DecisionTreeClassifier(random_state=0)
    model = HoldOut(tree, {"max_depth": [None, 8]}, random_state=0).fit(X, LABELS)
    assert surefit.verify(model, X, LABELS).ok

    def trained_on_everything(m):
        m.best_estimator_ = m.best_estimator_.fit(X, LABELS)

    def other_rows(m):
        m.holdout_ = np.arange(30)

    def other_seed(m):
        m.split_seed_ = 1

    def better(m):
        m.best_score_ = 1.0
        m.results_["test_score"][m.best_index_] = 1.0

    for change in (trained_on_everything, other_rows, other_seed, better):
        report = surefit.verify(forge(model, change), X, LABELS)
        assert not report.ok, change.__name__
    for change in (trained_on_everything, other_rows, other_seed):
        claim = surefit.verify(forge(model, change), X, LABELS)["generalisation"]
        assert claim.status is not Status.HOLDS, change.__name__
    random = HoldOut(DecisionTreeClassifier(max_features=1), random_state=0).fit(X, LABELS)
    trained_on_everything(random)
    report = surefit.verify(random, X, LABELS)  # it cannot be fitted again, so nothing is shown
    assert report["model"].status is Status.UNDECIDED
    assert report["generalisation"].status is Status.UNDECIDED


def test_files_keep_searches(tmp_path):
    grid = [{"alpha": [0.1, 1.0]}, {"fit_intercept": [False]}]
    for model in (
        GridSearchCV(RidgeClassifier(), grid, cv=3),
        RandomizedSearchCV(RidgeClassifier(), ALPHAS, n_iter=2, random_state=0, cv=3),
        HoldOut(RidgeClassifier(), grid, random_state=0),
    ):
        model.fit(X, LABELS)
        model.save(tmp_path / "model.surefit")
        loaded = surefit.load(tmp_path / "model.surefit")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        assert loaded.score(X, LABELS) == model.score(X, LABELS)
        assert loaded.statement_ == model.statement_
        assert surefit.verify(loaded, X, LABELS).ok
    search = GridSearchCV(RidgeClassifier(), grid, cv=3).fit(X, LABELS)
    search.save(tmp_path / "search.surefit")
    same_results(surefit.load(tmp_path / "search.surefit").cv_results_, search.cv_results_)
    with pytest.raises(TypeError, match="cannot save"):
        HoldOut(DecisionTreeClassifier(), random_state=0).fit(X, LABELS).save(
            tmp_path / "tree.surefit"
        )


def test_claims_of_a_pipeline_s_last_step():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), RidgeClassifier()), {"ridgeclassifier__alpha": [0.1, 1.0]}
    ).fit(X, LABELS)
    assert "best_estimator_: ridgeclassifier: duality gap" in search.certificate_
    report = surefit.verify(search, X, LABELS)
    assert report.ok
    assert report["best_estimator_: ridgeclassifier: data"].status is Status.HOLDS


def test_texts_and_tables():
    pd = pytest.importorskip("pandas")
    from sklearn.feature_extraction.text import CountVectorizer

    texts = ["good day" if label == "a" else "bad night" for label in LABELS]
    search = GridSearchCV(
        make_pipeline(CountVectorizer(), RidgeClassifier()), {"ridgeclassifier__alpha": [1.0]}, cv=3
    )
    search.fit(texts, LABELS)
    assert surefit.verify(search, texts, LABELS)["data"].status is Status.HOLDS
    assert surefit.verify(search, [*texts[1:], "neither"], LABELS)["data"].status is Status.FAILS
    table = pd.DataFrame(X, columns=list("abcdef"))
    held = HoldOut(RidgeClassifier(), random_state=0).fit(table, LABELS)
    assert held.feature_names_in_.tolist() == list("abcdef")
    assert surefit.verify(held, table, LABELS).ok
    assert surefit.verify(held, table, LABELS).data_id == held.certificate_.data_id


# ------------------------------------------------------------------------ progress


def test_progress_is_silent_or_told(capsys, monkeypatch):
    GridSearchCV(Ridge(), ALPHAS).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    clock = iter(np.arange(0.0, 1e4, 3.0))
    monkeypatch.setattr("surefit.model_selection._progress.time.perf_counter", lambda: next(clock))
    GridSearchCV(Ridge(), ALPHAS, verbose=1, cv=2, reuse=False).fit(X, Y)
    out, err = capsys.readouterr()
    assert out == "Fitting 2 folds for each of 3 candidates, totalling 6 fits\n"
    assert "3 candidates, 2 folds: 6 of 6, 0 s left" in err


def test_a_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    GridSearchCV(Ridge(), ALPHAS, verbose=1, n_jobs=2, cv=2, reuse=False).fit(X, Y)
    assert "3 candidates, 2 folds" in capsys.readouterr().err
