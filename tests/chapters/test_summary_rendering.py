"""A summary as text, HTML, rich table, dictionary, frame and forest plot."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from tests.summary_tools import made
from tests.theory.statsmodels_data import data

from surefit.inference import Summary
from surefit.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge

# ---------------------------------------------------------------------------- rendering


def hostile():
    """Names that are code in one renderer or another."""
    X, y = made(40, 4)
    names = ["<script>alert(1)</script>", "[red]price[/red]", r"cost $\frac{a$", "a" * 60]
    return LinearRegression().fit(X, y).summary(X, y, feature_names=names), names


def test_text():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    text = str(LinearRegression().fit(X, y).summary(X, y))
    for part in (
        "Summary of LinearRegression: mean of the target",
        "442 samples, 11 parameters in use, 431 residual degrees of freedom",
        "variance 2932.68",
        "2859.7 (maximum likelihood)",
        "R² 0.517748, log-likelihood -2385.99, AIC 4793.99, BIC 4838.99",
        "Student's t with 431 degrees of freedom",
        "low 95 %",
        "* collinear",
    ):
        assert part in text
    row = next(line for line in text.splitlines() if line.split()[:1] == ["bmi"])
    assert row.split() == ["bmi", "519.85", "66.533", "7.813", "4.3e-14", "389.08", "650.62"]
    assert max(len(line) for line in text.splitlines()) <= 110
    many = np.random.default_rng(0).normal(size=(200, 100))
    assert "... and 41 more rows" in str(
        LinearRegression().fit(many, many[:, 0]).summary(many, many[:, 0])
    )
    assert (
        repr(LinearRegression().fit(X, y).summary(X, y))
        == "<Summary of LinearRegression: 11 parameters>"
    )


def test_html_is_escaped():
    s, names = hostile()
    page = s._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<tr>") == 6
    import xml.etree.ElementTree as ElementTree

    ElementTree.fromstring(page.replace("<br>", "<br/>"))  # every tag is closed
    assert all(name in str(s) for name in names)


def test_terminal():
    from rich.console import Console

    s, names = hostile()
    console = Console(width=200, record=True, file=__import__("io").StringIO())
    console.print(s)
    text = console.export_text()
    for name in names:
        assert name in text
    assert "variance" in text
    ridge = Ridge(50.0).fit(*made()).summary(*made())
    console.print(ridge)
    assert "shrunk" in console.export_text()


def test_dictionary_and_frames():
    X, Y = made(targets=2)
    for s in (
        LinearRegression().fit(X, Y).summary(X, Y),
        Lasso(0.1).fit(X, Y[:, 0]).summary(X, Y[:, 0]),
        LogisticRegression().fit(*data("wine")[:2]).summary(*data("wine")[:2]),
    ):
        record = json.loads(json.dumps(s.to_dict(), allow_nan=False))
        assert record["names"] == list(s.names)
        np.testing.assert_array_equal(np.array(record["coef"], dtype=float), s.coef)
        np.testing.assert_array_equal(np.array(record["std_error"], dtype=float), s.std_error)
        assert record["noise"]["family"] == s.noise.family
        frame, other = s.to_frame(), s.to_frame("polars")
        assert type(frame).__module__.startswith("pandas")
        assert type(other).__module__.startswith("polars")
        np.testing.assert_array_equal(frame["low"].to_numpy(), s.low.ravel())
        np.testing.assert_array_equal(other["high"].to_numpy(), s.high.ravel())
        assert frame["parameter"].tolist() == list(s.names) * max(1, len(s.outputs))
        assert ("output" in frame.columns) == bool(s.outputs)
    with pytest.raises(ValueError, match="library must be 'pandas' or 'polars', got 'arrow'"):
        s.to_frame("arrow")


def test_names_of_targets_and_classes():
    import pandas as pd

    X, Y = made(targets=2)
    Y = pd.DataFrame(Y, columns=["height", "weight"])
    assert LinearRegression().fit(X, Y).summary(X, Y).outputs == ("height", "weight")
    X, y, _ = data("iris")
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    s = LogisticRegression().fit(X, labels).summary(X, labels)
    assert s.response == "log-odds of virginica against versicolor"


# ---------------------------------------------------------------------------- the plot


def drawn(ax):
    return [tick.get_text() for tick in ax.get_yticklabels()]


def test_forest_plot():
    from matplotlib import pyplot as plt

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    s = LinearRegression().fit(X, y).summary(X, y)
    ax = s.plot()
    order = np.argsort(-np.abs(s.coef[1:]))
    assert drawn(ax) == [s.names[1:][j] for j in order]
    ends = [line for c in ax.collections if hasattr(c, "get_segments") for line in c.get_segments()]
    by_row = sorted((round(float(seg[0, 1])), seg[:, 0].tolist()) for seg in ends)
    np.testing.assert_allclose([e for _, e in by_row], np.stack([s.low, s.high], axis=1)[1:][order])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first at the top
    assert 0.0 in [line.get_xdata()[0] for line in ax.lines]
    assert "95 % intervals" in ax.get_xlabel()
    plt.close(ax.figure)
    _, own = plt.subplots()
    assert s.plot(own, sort=False, intercept=True) is own
    assert drawn(own) == list(s.names)
    plt.close(own.figure)
    sd = s.plot(per="sd")
    points = [c.get_offsets()[:, 0] for c in sd.collections if len(c.get_offsets()) > 1]
    np.testing.assert_allclose(np.sort(points[0]), np.sort(s.coef[1:] * s.feature_scale[1:]))
    plt.close(sd.figure)
    for wrong in ({"per": "x"}, {"most": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            s.plot(**wrong)


def test_forest_plot_of_many_features_and_outputs():
    from matplotlib import pyplot as plt

    X = np.random.default_rng(0).normal(size=(300, 100))
    y = X @ np.arange(100.0) + 0.1 * np.random.default_rng(1).normal(size=300)
    s = LinearRegression().fit(X, y).summary(X, y)
    ax = s.plot()
    assert drawn(ax) == [f"x{99 - j}" for j in range(30)]
    assert "the 30 largest of 100 features" in ax.get_title(loc="left")
    ax.figure.canvas.draw()
    plt.close(ax.figure)
    hostile_names, _ = hostile()
    ax = hostile_names.plot()
    ax.figure.canvas.draw()  # a dollar sign must not be read as mathematics
    assert max(len(name) for name in drawn(ax)) <= 32
    plt.close(ax.figure)
    three = LogisticRegression().fit(*data("wine")[:2]).summary(*data("wine")[:2])
    ax = three.plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    ax.figure.canvas.draw()
    plt.close(ax.figure)
    lasso = Lasso(0.1).fit(X, y).summary(X, y)
    ax = lasso.plot(most=5)
    assert "no intervals" in ax.get_xlabel()
    plt.close(ax.figure)
    Y = np.tile(y[:, None], (1, 9))
    with pytest.raises(ValueError, match="at most 8 outputs"):
        LinearRegression().fit(X, Y).summary(X, Y).plot()


def test_a_summary_is_plain_data():
    import pickle

    X, y = made()
    s = LinearRegression().fit(X, y).summary(X, y)
    again = pickle.loads(pickle.dumps(s))
    assert isinstance(again, Summary)
    assert again.to_dict() == s.to_dict()
    with pytest.raises(AttributeError):
        s.coef = None
