"""Bad input gets a clear error and loses nothing; hard input gets the right answer, or a warning.

Errors name the argument, what was found and, where it is not plain, what to do. Warnings are errors in this
suite, so that no overflow or invalid value passes silently.
"""

import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

import surefit
from surefit import CertificateWarning, Status
from surefit.linear_model import (
    ElasticNet,
    Lasso,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    SGDClassifier,
    SGDRegressor,
    enet_path,
)

REGRESSORS = [
    LinearRegression(),
    LinearRegression(positive=True),
    Ridge(),
    Ridge(positive=True),
    Lasso(alpha=0.01),
    ElasticNet(alpha=0.01),
    ElasticNet(alpha=0.01, positive=True),
]
CLASSIFIERS = [
    LogisticRegression(),
    LogisticRegression(l1_ratio=1.0),
    LogisticRegression(C=np.inf),
    LogisticRegression(solver="liblinear"),
    Perceptron(),
    Perceptron(penalty="l2"),
    SGDClassifier(random_state=0),
    SGDClassifier("log_loss", penalty="l1", random_state=0),
]
ONLINE = (Perceptron, SGDClassifier, SGDRegressor)  # which stop where the steps have led them
ESTIMATORS = [*REGRESSORS, *CLASSIFIERS, SGDRegressor(random_state=0)]
SQUARES = [e for e in ESTIMATORS if not isinstance(e, ONLINE)]  # whose fit is made of squares
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)


def good(estimator, n=30, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = X @ np.arange(1.0, p + 1) + rng.normal(size=n)
    if is_classifier(estimator):
        y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return X, y


def changed(X, value):
    X = X.copy()
    X[3, 1] = value
    return X


# ---------------------------------------------------------------------------- refused

REFUSED = {
    "NaN in X": (lambda X, y: (changed(X, np.nan), y), r"X contains NaN"),
    "infinity in X": (lambda X, y: (changed(X, np.inf), y), r"X contains infinity"),
    "NaN in sparse X": (lambda X, y: (sp.csr_array(changed(X, np.nan)), y), r"X contains NaN|dense"),
    "NaN in y": (lambda X, y: (X, np.where(np.arange(len(y)) == 2, np.nan, y)), r"y contains NaN"),
    "infinity in y": (
        lambda X, y: (X, np.where(np.arange(len(y)) == 2, np.inf, y)),
        r"y contains infinity",
    ),
    "no rows": (lambda X, y: (X[:0], y[:0]), r"0 sample\(s\) \(shape=\(0, 4\)\).*minimum of 1"),
    "no columns": (lambda X, y: (X[:, :0], y), r"0 feature\(s\) \(shape=\(30, 0\)\).*minimum of 1"),
    "a vector for X": (lambda X, y: (X[:, 0], y), r"Expected 2D array, got 1D.*Reshape your data"),
    "a cube for X": (lambda X, y: (X[:, :, None], y), r"dim 3, while dim <= 2 is required"),
    "a number for X": (lambda X, y: (3.0, y), r"Expected 2D array, got scalar|scalar array"),
    "too few targets": (lambda X, y: (X, y[:-1]), r"inconsistent numbers of samples: \[30, 29\]"),
    "no targets": (lambda X, y: (X, None), r"requires y to be passed, but the target y is None"),
    "a cube for y": (lambda X, y: (X, np.zeros((30, 2, 2))), r"dim 3|y should be a 1d array"),
    "text in X": (lambda X, y: ([["a", "b"]] * 30, y), r"X.*must hold numbers.*'a'.*OneHotEncoder"),
    "complex X": (lambda X, y: (X + 1j, y), r"Complex data not supported"),
    "complex y": (lambda X, y: (X, y + 1j), r"Complex data not supported|Unknown label type"),
}  # fmt: skip
REFUSED_WEIGHTS = {
    "negative": (lambda n: -np.ones(n), r"Negative values.*sample_weight"),
    "one negative": (lambda n: np.r_[-1e-9, np.ones(n - 1)], r"Negative values.*sample_weight"),
    "all zero": (np.zeros, r"[Ss]ample.weights? must contain at least one non-zero"),
    "NaN": (lambda n: np.r_[np.nan, np.ones(n - 1)], r"sample_weight contains NaN"),
    "too short": (lambda n: np.ones(n - 1), r"sample_weight.shape == \(29,\), expected \(30,\)"),
    "a table": (lambda n: np.ones((n, 2)), r"Sample weights must be 1D array or scalar, got 2D"),
    "text": (lambda n: np.array(["a"] * n), r"could not convert string to float|number"),
}


def refused(estimator, X, y, message, sample_weight=None):
    """The fit raises with this message, and a model fitted before is as it was, and still verifies."""
    Xg, yg = good(estimator)
    model = clone(estimator)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y, sample_weight=sample_weight)
    assert not hasattr(model, "coef_")
    model = clone(estimator).fit(Xg, yg)
    before, predictions = joblib.hash((model.coef_, model.intercept_)), model.predict(Xg)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y, sample_weight=sample_weight)
    assert joblib.hash((model.coef_, model.intercept_)) == before
    return model, Xg, yg, predictions


@every_estimator
@pytest.mark.parametrize("fault", REFUSED)
def test_bad_data_are_refused(estimator, fault):
    X, y = good(estimator)
    break_it, message = REFUSED[fault]
    bad_X, bad_y = break_it(X, y)
    kept = joblib.hash((bad_X, bad_y))
    refused(estimator, bad_X, bad_y, f"(?s){message}")
    assert joblib.hash((bad_X, bad_y)) == kept  # the caller's arrays are not touched


@every_estimator
@pytest.mark.parametrize("fault", REFUSED_WEIGHTS)
def test_bad_weights_are_refused(estimator, fault):
    X, y = good(estimator)
    weights, message = REFUSED_WEIGHTS[fault]
    model, Xg, yg, predictions = refused(estimator, X, y, message, weights(len(y)))
    np.testing.assert_array_equal(model.predict(Xg), predictions)
    assert surefit.verify(model, Xg, yg).ok


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
def test_one_class_is_refused_and_the_old_model_survives(estimator):
    X, _ = good(estimator)
    for label in (0, "yes"):
        refused(estimator, X, np.array([label] * 30), r"class.*(yes|0).*Add rows of another class")
    if isinstance(estimator, LogisticRegression):
        model, Xg, yg, predictions = refused(estimator, X, np.zeros(30), "only one class")
        np.testing.assert_array_equal(model.predict(Xg), predictions)
        assert surefit.verify(model, Xg, yg).ok


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
def test_continuous_labels_are_refused(estimator):
    X, _ = good(estimator)
    with pytest.raises(ValueError, match=r"Unknown label type: continuous.*regression"):
        clone(estimator).fit(X, np.linspace(0.0, 1.0, 30))


@pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
def test_text_targets_are_refused(estimator):
    X, _ = good(estimator)
    with pytest.raises(ValueError, match=r"y of a regression, must hold numbers.*'a'"):
        clone(estimator).fit(X, np.array(["a"] * 30))


@every_estimator
def test_predictions_on_other_columns_are_refused(estimator):
    X, y = good(estimator)
    model = clone(estimator).fit(X, y)
    message = r"X has 3 features, but \w+ is expecting 4 features"
    with pytest.raises(ValueError, match=message):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=message):
        surefit.verify(model, X[:, :3], y)
    with pytest.raises(ValueError, match="X contains NaN"):
        model.predict(changed(X, np.nan))


BAD_PARAMETERS = [
    (Ridge(alpha=-1.0), r"'alpha' parameter of Ridge must be.*Got -1.0|alpha must be non-negative"),
    (Ridge(alpha=[1.0, -2.0]), r"alpha must be non-negative|Number of targets"),
    (Ridge(solver="qr"), r"'solver' parameter of Ridge must be.*Got 'qr'"),
    (Lasso(alpha=-0.1), r"'alpha' parameter of Lasso must be.*Got -0.1"),
    (Lasso(alpha="big"), r"'alpha' parameter of Lasso must be.*Got 'big'"),
    (Lasso(max_iter=0), r"'max_iter' parameter of Lasso must be.*Got 0"),
    (Lasso(selection="best"), r"'selection' parameter of Lasso must be.*Got 'best'"),
    (ElasticNet(l1_ratio=1.5), r"'l1_ratio' parameter of ElasticNet must be.*Got 1.5"),
    (ElasticNet(tol=-1.0), r"'tol' parameter of ElasticNet must be.*Got -1.0"),
    (LinearRegression(certify="most"), r"'certify' parameter of LinearRegression must be.*Got 'most'"),
    (LogisticRegression(C=0.0), r"'C' parameter of LogisticRegression must be.*Got 0.0"),
    (LogisticRegression(C=-1.0), r"'C' parameter of LogisticRegression must be.*Got -1.0"),
    (LogisticRegression(C=np.nan), r"'C' parameter of LogisticRegression must be.*Got nan"),
    (LogisticRegression(l1_ratio=2.0), r"'l1_ratio' parameter of LogisticRegression must be.*Got 2.0"),
    (LogisticRegression(class_weight={7: 1.0}), r"classes, \[0, 1\], are not in class_weight"),
    (LogisticRegression(intercept_scaling=0.0), r"'intercept_scaling' parameter.*Got 0.0"),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "message"), BAD_PARAMETERS, ids=str)
def test_bad_parameters_are_named_with_their_value(estimator, message):
    X, y = good(estimator)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        estimator.fit(X, y)


def test_bad_paths_are_refused():
    X, y = good(Lasso())
    for arguments, message in (
        ({"y": y[:-1]}, "30.*29|inconsistent"),
        ({"X": changed(X, np.nan)}, "NaN"),
        ({"l1_ratio": 0.0}, "l1_ratio=0"),
        ({"wrong": 1}, "Unexpected parameters"),
        ({"selection": "best"}, "random or cyclic"),
    ):
        with pytest.raises(ValueError, match=message):
            enet_path(**{"X": X, "y": y, "alphas": 5, **arguments})


# ---------------------------------------------------------------------------- scales


def outcome(estimator, X, y, sample_weight=None):
    """("refused", message), ("warned", message) or ("held", model): nothing else may happen."""
    model = clone(estimator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", CertificateWarning)
        try:
            model.fit(X, y, sample_weight=sample_weight)
        except ValueError as error:
            return "refused", str(error)
    if caught:
        assert not model.certificate_.ok
        return "warned", str(caught[0].message)
    assert model.certificate_.ok
    assert np.isfinite(model.coef_).all()
    return "held", model


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("exponent", [155, 200, 300])
@pytest.mark.parametrize("estimator", SQUARES, ids=str)
def test_squares_that_overflow_are_refused_with_a_remedy(estimator, exponent, form):
    X, y = good(estimator)
    if isinstance(estimator, LinearRegression) and estimator.positive and form is sp.csr_array:
        pytest.skip("dense only")
    for bad in (X * 10.0**exponent, changed(X, 10.0**exponent)):
        what, message = outcome(estimator, form(bad), y)
        assert what == "refused"
        assert f"X has values as large as {np.abs(bad).max():.3g}" in message
        assert "Rescale X first, for instance with sklearn.preprocessing.StandardScaler" in message
    if not is_classifier(estimator):
        what, message = outcome(estimator, form(X), y * 10.0**exponent)
        assert what == "refused"
        assert "y has values as large as" in message
        assert "Rescale y first" in message


@pytest.mark.parametrize("exponent", [-200, -150, -30, 30, 100, 150])
@pytest.mark.parametrize("estimator", SQUARES, ids=str)
def test_extreme_scales_give_the_right_answer_or_a_warning(estimator, exponent):
    """Held means right: the predictions are those of the problem at unit scale."""
    X, y = good(estimator)
    factor = 10.0**exponent
    what, found = outcome(estimator, X * factor, y)
    if exponent == -200:
        assert what == "refused"  # squares of 1e-200 are 0: no column has a length
        assert "Rescale X" in found
        return
    if isinstance(estimator, LinearRegression):
        assert what == "held"  # least squares does not depend on the scale of a column
        plain = clone(estimator).fit(X, y)
        np.testing.assert_allclose(found.predict(X * factor), plain.predict(X), rtol=1e-9)
    elif what == "held" and exponent < 0 and np.isfinite(getattr(estimator, "C", 1.0)):
        scores = found.coef_ @ (X * factor).T  # the penalty wins: nothing depends on X
        assert np.abs(scores).max() < 1e-6
    if what != "held":
        assert what == "warned"
        assert "scale the" in found.lower()  # the remedy: scale the features, scale the data


@pytest.mark.parametrize("exponent", [-150, 150])
def test_one_column_of_another_scale(exponent):
    """Least squares and the unpenalised likelihood do not depend on the unit of a column."""
    factors = np.array([1.0, 10.0**exponent, 1.0, 1.0])
    X, y = good(LinearRegression())
    what, model = outcome(LinearRegression(), X * factors, y)
    assert what == "held"
    np.testing.assert_allclose(
        model.coef_ * factors, LinearRegression().fit(X, y).coef_, rtol=1e-12
    )
    assert surefit.verify(model, X * factors, y).ok


@pytest.mark.parametrize("estimator", [*SQUARES, Perceptron(), SGDRegressor()], ids=str)
@pytest.mark.parametrize("weight", [1e-300, 1e300])
def test_extreme_weights(estimator, weight):
    """Only their proportions matter to least squares, Lasso and the unpenalised likelihood."""
    X, y = good(estimator)
    if isinstance(estimator, ONLINE) and weight > 1:
        pytest.skip("a step of 1e300 overflows: eta0 and the weights scale a perceptron's steps")
    what, found = outcome(estimator, X, y, np.full(len(y), weight))
    scale_free = isinstance(estimator, (LinearRegression, Lasso, ElasticNet))
    if scale_free:
        assert what == "held"
        np.testing.assert_allclose(found.coef_, clone(estimator).fit(X, y).coef_, rtol=1e-6)
    else:
        assert what in ("held", "warned", "refused")
        if what == "refused":
            assert "overflow" in found


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, bool, object])
@every_estimator
def test_every_number_type_is_taken(estimator, dtype):
    X, y = good(estimator)
    typed = np.round(X * 3).astype(dtype)
    model, plain = (clone(estimator).fit(Z, y) for Z in (typed, typed.astype(np.float64)))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-3, atol=1e-3)
    assert model.certificate_.ok
    report = surefit.verify(model, typed, y)
    if dtype is bool and np.isinf(getattr(estimator, "C", 1.0)):
        # a column is True on all rows of one class: no finite coefficient is best, which is shown exactly
        assert [claim.name for claim in report.failed] == ["finite optimum"]
    else:
        assert report.ok


# ---------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
def test_one_row(estimator):
    X, y = good(estimator)
    model = clone(estimator).fit(X[:1], y[:1])
    np.testing.assert_allclose(model.predict(X[:1]), y[:1], rtol=1e-12)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-12)
    assert surefit.verify(model, X[:1], y[:1]).ok


@pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
def test_constant_target(estimator):
    X, _ = good(estimator)
    for value in (0.0, 0.1, -1e6):
        model = clone(estimator).fit(X, np.full(30, value))
        np.testing.assert_allclose(model.predict(X), value, rtol=1e-9, atol=1e-12)
        assert surefit.verify(model, X, np.full(30, value)).ok


@every_estimator
@pytest.mark.parametrize("table", ["constant column", "zero column", "all constant", "all zero"])
def test_columns_without_information(estimator, table):
    X, y = good(estimator)
    bad = {
        "constant column": np.column_stack([X, np.full(30, 0.1)]),
        "zero column": np.column_stack([X, np.zeros(30)]),
        "all constant": np.full((30, 3), 0.1),
        "all zero": np.zeros((30, 3)),
    }[table]
    model = clone(estimator).fit(bad, y)
    report = surefit.verify(model, bad, y)
    assert report.ok, str(report)
    free = not isinstance(estimator, ONLINE) and getattr(estimator, "solver", "") != "liblinear"
    if "all" in table and free:  # all that can be said is the mean, or the odds
        np.testing.assert_allclose(model.coef_, 0.0, atol=1e-9)
        if is_classifier(estimator):
            assert model.predict_proba(bad)[0, 1] == pytest.approx(y.mean(), rel=1e-4)
        else:
            np.testing.assert_allclose(model.predict(bad), y.mean(), rtol=1e-9)
    if "column" in table and free:
        plain = clone(estimator).fit(X, y)
        np.testing.assert_allclose(model.predict(bad), plain.predict(X), rtol=1e-2, atol=1e-2)


@every_estimator
@pytest.mark.parametrize("table", ["duplicate column", "sum of two", "more columns than rows"])
def test_rank_deficiency(estimator, table):
    """Whatever the rank, a certificate says what was shown, and what the data leave open."""
    X, y = good(estimator)
    bad = {
        "duplicate column": np.column_stack([X, X[:, 0]]),
        "sum of two": np.column_stack([X, X[:, 0] + X[:, 1]]),
        "more columns than rows": np.random.default_rng(1).normal(size=(30, 80)),
    }[table]
    separable = table == "more columns than rows" and is_classifier(estimator)
    if separable and np.isinf(getattr(estimator, "C", 1.0)):
        what, message = outcome(estimator, bad, y)
        assert what == "warned"
        assert "finite optimum" in message
        assert "Use a penalty" in message
        return
    model = clone(estimator).set_params(
        **({"max_iter": 20_000} if hasattr(estimator, "max_iter") else {})
    )
    model.fit(bad, y)
    report = surefit.verify(model, bad, y)
    assert report.ok, str(report)
    if isinstance(estimator, LinearRegression) and not estimator.positive:
        assert report["minimum norm"].status is Status.HOLDS
        assert "do not determine the coefficients" in report["coefficients"].statement
        expected = np.linalg.pinv(bad - bad.mean(axis=0), rcond=1e-12) @ (y - y.mean())
        np.testing.assert_allclose(model.coef_, expected, rtol=0, atol=1e-12)


@every_estimator
def test_duplicate_rows_and_conflicting_targets(estimator):
    X, y = good(estimator)
    rows, targets = np.repeat(X[:3], 10, axis=0), y
    model = clone(estimator).fit(rows, targets)
    assert surefit.verify(model, rows, targets).ok


@every_estimator
def test_lists_frames_and_strided_views_are_taken(estimator):
    pandas = pytest.importorskip("pandas")
    X, y = good(estimator)
    plain = clone(estimator).fit(X, y)
    for other in (X.tolist(), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X[::-1][::-1]):
        np.testing.assert_allclose(
            clone(estimator).fit(other, list(y)).coef_, plain.coef_, rtol=1e-10
        )
    X.flags.writeable = False
    clone(estimator).fit(X, y)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = clone(estimator).fit(frame, pandas.Series(y))
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("dcba")])
