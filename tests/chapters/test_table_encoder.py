"""The table encoder: equal to scikit-learn's parts, learnt on the training rows alone, saved with a model."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.data import data_folder

import surefit
from surefit import _tree
from surefit.data import TableError, about, fetch, load, names, propose_schema, read_table
from surefit.linear_model import LogisticRegression
from surefit.preprocessing import TableEncoder

EPS = np.finfo(np.float64).eps


def made(size: int = 300, seed: int = 0) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    x = rng.normal(5, 3, size)
    x[rng.random(size) < 0.1] = np.nan
    colour = rng.choice(["red", "green", "blue", None], size).astype(object)
    days = pl.Series(rng.integers(0, 5000, size)).cast(pl.Date).cast(pl.String)
    return {
        "x": x,
        "n": rng.integers(0, 100, size),
        "colour": colour,
        "sex": rng.choice(["m", "f"], size),
        "day": days.to_list(),
    }


def columns(encoder: TableEncoder, name: str, matrix: np.ndarray) -> np.ndarray:
    return matrix[:, encoder.blocks_[name]]


def test_numbers_are_as_in_scikit_learn() -> None:
    data = made()
    encoder = TableEncoder()
    matrix = encoder.fit_transform(data)
    peer = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    for name in ("x", "n"):
        values = np.asarray(data[name], dtype=np.float64)[:, None]
        # two ways to add up 300 numbers of size 15: relative error at most 300 eps each
        np.testing.assert_allclose(
            columns(encoder, name, matrix)[:, :1], peer.fit_transform(values), atol=1e4 * EPS
        )
    np.testing.assert_array_equal(columns(encoder, "x", matrix)[:, 1], np.isnan(data["x"]))  # type: ignore[call-overload]
    assert encoder.features_[0]["median"] == np.nanmedian(data["x"])  # type: ignore[call-overload]
    assert len(encoder.blocks_["n"]) == 1  # nothing missing in training, no indicator


def test_categories_are_as_in_scikit_learn() -> None:
    data = made()
    encoder = TableEncoder()
    matrix = encoder.fit_transform(data)
    colour = np.asarray(data["colour"], dtype=object)
    known = [encoder.features_[j]["category"] for j in encoder.blocks_["colour"][:-1]]
    assert sorted(known) == ["blue", "green", "red"]
    counts = [int(np.sum(colour == name)) for name in known]
    assert counts == sorted(counts, reverse=True)  # the most frequent first
    peer = OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False)
    wanted = peer.fit(np.array(known)[:, None]).transform(colour[:, None])
    np.testing.assert_array_equal(columns(encoder, "colour", matrix)[:, :-1], wanted)
    np.testing.assert_array_equal(
        columns(encoder, "colour", matrix)[:, -1], [value is None for value in colour]
    )


def test_two_categories_make_one_column() -> None:
    data = made()
    encoder = TableEncoder()
    matrix = encoder.fit_transform(data)
    assert encoder.categories_["sex"] == ["f", "m"]
    np.testing.assert_array_equal(
        columns(encoder, "sex", matrix)[:, 0], np.asarray(data["sex"]) == "m"
    )
    [feature] = [encoder.features_[j] for j in encoder.blocks_["sex"]]
    assert feature == {
        "name": "sex=m",
        "column": "sex",
        "kind": "category",
        "category": "m",
        "mean": 0.0,
        "scale": 1.0,
        "median": 0.0,
        "integer": True,
    }


def test_dates_are_days() -> None:
    data = {"day": ["1970-01-02", "1970-01-04", "1970-01-03", "1970-01-04"]}
    column = {"name": "day", "role": "date", "date_format": "%Y-%m-%d"}
    np.testing.assert_array_equal(
        TableEncoder([column], numeric="none").fit_transform(data)[:, 0], [1.0, 3.0, 2.0, 3.0]
    )
    half = TableEncoder([{**column, "date_format": "%Y-%m-%d %H:%M"}], numeric="none")
    assert half.fit_transform({"day": ["1970-01-02 12:00"]}).item() == 1.5


def test_features_give_back_the_values() -> None:
    """mean + scale * code is the value: what a report needs to speak in the table's units."""
    data = made()
    encoder = TableEncoder()
    matrix = encoder.fit_transform(data)
    for j, feature in enumerate(encoder.features_):
        if feature["kind"] == "numeric":
            values = np.asarray(data[feature["column"]], dtype=np.float64)
            values = np.where(np.isnan(values), feature["median"], values)
            back = feature["mean"] + feature["scale"] * matrix[:, j]
            np.testing.assert_allclose(back, values, atol=8 * EPS * np.abs(values).max())
    assert [feature["integer"] for feature in encoder.features_[:3]] == [False, True, True]
    assert matrix.flags.c_contiguous
    assert matrix.dtype == np.float64
    assert matrix.shape[1] == len(encoder.get_feature_names_out())


def test_a_row_is_coded_by_itself() -> None:
    data = read_table(made())
    encoder = TableEncoder().fit(data)
    whole = encoder.transform(data)
    order = np.random.default_rng(1).permutation(data.rows)[:50]
    np.testing.assert_array_equal(encoder.transform(data.take(order)), whole[order])
    assert encoder.transform(data.take([])).shape == (0, whole.shape[1])


def test_only_the_training_rows_are_learnt_from() -> None:
    data = read_table(made())
    train, rest = np.arange(200), np.arange(200, 300)
    spoilt = data.frame.with_columns(
        pl.when(pl.int_range(pl.len()) >= 200).then(1e6).otherwise(pl.col("x")).alias("x"),
        pl.when(pl.int_range(pl.len()) >= 200)
        .then(pl.lit("new"))
        .otherwise("colour")
        .alias("colour"),
    )
    one = TableEncoder().fit(data.take(train))
    two = TableEncoder().fit(read_table(spoilt).take(train))
    assert one.features_ == two.features_
    assert two.report_unseen(read_table(spoilt).take(rest)) == {"colour": {"new": 100}}


def test_rare_categories_are_pooled() -> None:
    values = ["a"] * 40 + ["b"] * 30 + ["c"] * 20 + ["d"] * 5 + ["e"] * 4 + ["f"]
    column = [{"name": "k", "role": "categorical"}]
    encoder = TableEncoder(column, max_categories=4, min_frequency=10).fit({"k": values})
    assert encoder.categories_["k"] == ["a", "b", "c", "other"]
    assert encoder.pooled_["k"]
    new = {"k": ["a", "d", "f", "never", None, "b"]}
    matrix = encoder.transform(new)
    assert matrix.argmax(axis=1)[[0, 1, 2, 3, 5]].tolist() == [0, 3, 3, 3, 1]
    assert matrix.sum(axis=1).tolist() == [1, 1, 1, 1, 0, 1]  # nothing was missing in training
    assert encoder.report_unseen(new) == {"k": {"never": 1}}
    few = TableEncoder(column, max_categories=3, min_frequency=50).fit({"k": values})
    assert few.categories_["k"] == ["other"]
    two = TableEncoder(column, max_categories=2).fit({"k": values})
    assert two.categories_["k"] == ["a", "other"]
    assert two.transform({"k": ["a", "z", "b"]}).ravel().tolist() == [0.0, 1.0, 1.0]


def test_words_for_missing_are_the_readers_business() -> None:
    """A value that the reader was told to keep is a category like any other."""
    data = b"k,x\nNA,1\nb,2\nNA,4\nd,8\n"
    kept = TableEncoder([{"name": "k", "role": "categorical"}]).fit(
        read_table(data, missing=["?"]).frame
    )
    assert kept.categories_["k"] == ["NA", "b", "d"]
    gone = TableEncoder([{"name": "k", "role": "categorical"}]).fit(read_table(data).frame)
    assert gone.get_feature_names_out().tolist() == ["k=d", "k missing"]


def test_unseen_categories_without_pooling_are_zeros() -> None:
    encoder = TableEncoder().fit({"k": ["a", "b", "c"] * 10})
    assert encoder.transform({"k": ["zebra"]}).tolist() == [[0.0, 0.0, 0.0]]
    assert encoder.report_unseen({"k": ["zebra", "a"]}) == {"k": {"zebra": 1}}


def test_missing_columns_are_named_with_near_spellings() -> None:
    encoder = TableEncoder().fit(made())
    frame = read_table(made()).frame.rename({"colour": "color"})
    with pytest.raises(
        TableError, match=r"lacks 1 of the 5 columns.*'colour'. Did you mean 'color'\?"
    ):
        encoder.transform(frame)
    assert encoder.missing_columns(frame) == ["colour"]
    extra = read_table(made()).frame.with_columns(extra=pl.lit(1))
    np.testing.assert_array_equal(encoder.transform(extra), encoder.transform(made()))


def test_a_word_where_a_number_should_be() -> None:
    encoder = TableEncoder().fit(read_table(b"x,y\n1.5,a\n2.5,b\n3.5,c\n"))
    with pytest.raises(TableError, match=r"column 'x' must hold a number.* row 2 holds 'four'"):
        encoder.transform(read_table(b"x,y\n1,a\nfour,b\n"))
    with pytest.raises(TableError, match=r"row 1 holds 'inf'"):
        encoder.transform({"x": ["inf"], "y": ["a"]})


def test_text_numbers_and_frames_give_the_same_matrix() -> None:
    """A model fitted on a CSV file codes a typed frame of the same rows alike."""
    data = made()
    frame = read_table(data).frame
    text = read_table(frame.write_csv().encode())
    schema = propose_schema(read_table({**data, "y": ["a", "b"] * 150}), "y")
    encoder = TableEncoder([column.to_dict() for column in schema.features]).fit(text)
    wanted = encoder.transform(text)
    np.testing.assert_array_equal(encoder.transform(frame), wanted)
    pandas = pd.DataFrame({name: frame[name].to_list() for name in frame.columns})
    np.testing.assert_array_equal(encoder.transform(pandas), wanted)


def test_whole_numbers_as_categories() -> None:
    column = [{"name": "zip", "role": "categorical"}]
    encoder = TableEncoder(column).fit({"zip": [80331, 10115, 50667]})
    assert encoder.known_["zip"] == ["10115", "50667", "80331"]
    typed = encoder.transform({"zip": [80331.0, None]})
    np.testing.assert_array_equal(typed, encoder.transform(read_table(b"zip,a\n80331,1\n?,2\n")))


def test_constants_of_a_fold() -> None:
    columns = [
        {"name": "x", "role": "numeric"},
        {"name": "k", "role": "categorical"},
        {"name": "z", "role": "numeric"},
    ]
    encoder = TableEncoder(columns).fit({"x": [0.1] * 7, "k": ["a"] * 7, "z": [None] * 7})
    matrix = encoder.transform({"x": [0.1, 1.1], "k": ["a", "b"], "z": ["3", None]})
    assert encoder.get_feature_names_out().tolist() == ["x", "z", "z missing"]
    np.testing.assert_allclose(matrix, [[0, 3, 0], [1, 0, 1]], atol=4 * EPS)


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1e150, 1e300])
def test_any_size_of_numbers(size: float) -> None:
    values = np.random.default_rng(0).normal(size=50)
    matrix = TableEncoder([{"name": "x", "role": "numeric"}]).fit_transform({"x": values * size})
    wanted = (values - values.mean()) / values.std()
    np.testing.assert_allclose(matrix[:, 0], wanted, atol=1e3 * EPS)


def test_scikit_learn_contract() -> None:
    data = made()
    encoder = TableEncoder(max_categories=9)
    assert clone(encoder).get_params()["max_categories"] == 9
    pipeline = make_pipeline(TableEncoder(), LogisticRegression())
    pipeline.fit(read_table(data).frame, np.asarray(data["sex"]))
    assert pipeline.score(read_table(data).frame, np.asarray(data["sex"])) == 1.0
    frame = TableEncoder().set_output(transform="pandas").fit_transform(pd.DataFrame(data))
    assert list(frame.columns) == TableEncoder().fit(data).get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="max_categories"):
        TableEncoder(max_categories=1).fit(data)
    with pytest.raises(Exception, match="not fitted"):
        TableEncoder().transform(data)


def test_saved_and_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made()
    encoder = TableEncoder().fit(data)
    wanted = encoder.transform(data)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(data), wanted)
    monkeypatch.setitem(_tree.CLASSES, "TableEncoder", "surefit.preprocessing:TableEncoder")
    surefit.save(encoder, tmp_path / "encoder.surefit")
    again = surefit.load(tmp_path / "encoder.surefit")
    np.testing.assert_array_equal(again.transform(data), wanted)
    assert again.features_ == encoder.features_
    assert again.get_params() == encoder.get_params()


@pytest.mark.parametrize("name", names())
def test_bundled_sets_are_coded(name: str) -> None:
    table, facts = load(name), about(name)
    schema = propose_schema(table, facts["target"])
    encoder = TableEncoder([column.to_dict() for column in schema.features])
    matrix = encoder.fit_transform(table)
    assert np.isfinite(matrix).all()
    scaled = [j for j, feature in enumerate(encoder.features_) if feature["kind"] == "numeric"]
    # the mean of n standardised values is rounding: at most n eps times their size, far below 1e-10
    assert np.abs(matrix[:, scaled].mean(axis=0)).max(initial=0.0) < 1e-10
    np.testing.assert_allclose(matrix[:, scaled].std(axis=0), 1.0, atol=1e-10)


def test_adult(tmp_path: Path) -> None:
    folder = data_folder()
    if folder is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    table = fetch("adult", folder=tmp_path, source=folder)
    schema = propose_schema(table, "income", sensitive=["sex"])
    encoder = TableEncoder([column.to_dict() for column in schema.features])
    matrix = encoder.fit_transform(table)
    # 6 numbers; 8+16+7+14+6+5+41 categories, 1 for sex; 3 columns with missing values
    assert matrix.shape == (48842, 6 + 97 + 1 + 3)
    assert not encoder.report_unseen(table)
