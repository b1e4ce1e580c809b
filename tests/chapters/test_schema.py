"""What each column is: the rules one by one, the task, and columns that give the answer away."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.data import data_folder

from surefit.data import (
    Column,
    Schema,
    Table,
    TableError,
    about,
    labelled,
    load,
    names,
    propose_schema,
    read_table,
    target_values,
)

ROWS = 60


def table(**columns: object) -> Table:
    """A table of text columns with a target ``y`` that no column predicts."""
    rng = np.random.default_rng(0)
    parts = {
        name: [None if v is None else str(v) for v in values] for name, values in columns.items()
    }  # type: ignore[attr-defined]
    size = len(next(iter(parts.values()))) if parts else ROWS
    return read_table(
        {**parts, "other": rng.normal(size=size), "y": rng.choice(["no", "yes"], size)}
    )


def role(values: object, name: str = "x") -> Column:
    return propose_schema(table(**{name: values}), "y")[name]


RNG = np.random.default_rng(1)
FLOATS = RNG.normal(size=ROWS)
SHUFFLED = RNG.permutation(ROWS * 7)[:ROWS]
WORDS = ["red", "green", "blue"] * 20


@pytest.mark.parametrize(
    ("values", "wanted", "words"),
    [
        (FLOATS, "numeric", "reads as a number"),
        (SHUFFLED, "numeric", "whole number"),
        ([1, 2, 3] * 20, "numeric", "categorical if they are codes"),
        (WORDS, "categorical", "3 values"),
        (["true", "false"] * 30, "categorical", "2 values"),
        (["01067", "10115", "80331"] * 20, "categorical", "leading zeros such as '01067'"),
        (range(ROWS), "identifier", "steps of 1"),
        (np.arange(ROWS) ** 2, "identifier", "rising"),
        ([f"k{i}" for i in range(ROWS)], "identifier", "every row has its own value"),
        ([7] * ROWS, "constant", "every value is '7'"),
        ([None] * ROWS, "constant", "every value is missing"),
        ([f"a long sentence with number {i} in it" for i in range(ROWS)], "text", "free text"),
        ([f"2020-01-{i % 28 + 1:02d}" for i in range(ROWS)], "date", "%Y-%m-%d"),
        (
            [f"{i % 28 + 1:02d}.02.2020" for i in range(ROWS)],
            "date",
            "%d.%m.%Y; the other order is impossible",
        ),
        (
            [f"02/{i % 28 + 1:02d}/2020" for i in range(ROWS)],
            "date",
            "%m/%d/%Y; the other order is impossible",
        ),
        ([f"2020-01-{i % 28 + 1:02d} 10:{i % 60:02d}:00" for i in range(ROWS)], "date", "%H:%M:%S"),
        (
            [f"0{i % 9 + 1}/0{i % 7 + 1}/2020" for i in range(40)],
            "categorical",
            "could change places",
        ),
        (
            [*["3"] * 30, *["4.5"] * 29, "oops"],
            "categorical",
            "1 of 60 are not numbers, such as 'oops'",
        ),
        ([*FLOATS, "1e999"], "text", "1 of 61 are not numbers, such as '1e999'"),
        ([*["3"] * 30, *["4"] * 29, "inf"], "categorical", "are not numbers, such as 'inf'"),
    ],
)
def test_roles(values: object, wanted: str, words: str) -> None:
    column = role(values)
    assert column.role == wanted
    assert words in column.note


def test_named_like_an_identifier() -> None:
    values = RNG.permutation(1000)[:ROWS]
    assert role(values, "customer_id").role == "identifier"
    assert role(values, "income").role == "numeric"
    assert role([1, 2, 3] * 20, "group_id").role == "numeric"  # few values: a group, not a row


def test_facts_of_a_column() -> None:
    column = role([1, 2, None, 4] * 15)
    assert (column.missing, column.distinct, column.integer) == (15, 3, True)
    assert not role(FLOATS).integer


def test_roles_can_be_given() -> None:
    schema = propose_schema(
        table(x=[1, 2, 3] * 20, z=WORDS), "y", roles={"x": "categorical", "z": "ignored"}
    )
    assert schema["x"].role == "categorical"
    assert "proposed was numeric" in schema["x"].note
    assert [column.name for column in schema.features] == ["x", "other"]


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (["no", "yes"] * 30, "classification", ["no", "yes"]),
        ([0, 1] * 30, "classification", ["0", "1"]),
        (list(range(20)) * 3, "classification", None),
        (RNG.integers(0, 200, 120), "regression", None),
        (FLOATS, "regression", None),
        (np.round(FLOATS[:12], 3), "regression", None),  # few rows, but decimals
        ([1.5, 2.5, 3.5] * 20, "classification", ["1.5", "2.5", "3.5"]),
    ],
)
def test_task(values: object, task: str, classes: list[str] | None) -> None:
    size = len(values)  # type: ignore[arg-type]
    data = read_table(
        {"x": np.random.default_rng(0).normal(size=size), "t": [str(v) for v in values]}
    )  # type: ignore[attr-defined]
    schema = propose_schema(data, "t")
    assert schema.task == task
    if classes is not None:
        assert schema.classes == classes
    assert any(note["what"] == "task" and note["value"] == task for note in schema.notes)
    target = target_values(data, schema)
    assert target.dtype.kind == ("U" if task == "classification" else "f")
    assert len(target) == size


def test_rows_without_a_target_are_left_out_and_said() -> None:
    data = read_table({"x": [1.0, 5.0, 2.0, 4.0], "y": ["a", None, "b", "?"]})
    schema = propose_schema(data, "y")
    assert {
        "what": "rows left out",
        "value": "2",
        "how": "the target 'y' is missing there",
    } in schema.notes
    assert target_values(data, schema).tolist() == ["a", "b"]
    assert labelled(data, schema).frame["x"].to_list() == [1.0, 2.0]


def test_labels_that_differ_by_a_dot_are_kept_apart_and_said() -> None:
    data = read_table({"x": np.arange(40) % 7 / 3, "y": ["<=50K", ">50K", "<=50K.", ">50K."] * 10})
    schema = propose_schema(data, "y")
    assert schema.classes == ["<=50K", "<=50K.", ">50K", ">50K."]
    [note] = [note for note in schema.notes if "dot" in note["what"]]
    assert note["value"] == "'<=50K.' and '>50K.'"


# ------------------------------------------------------------------------ leaks


def leaky(size: int, seed: int = 0) -> tuple[Table, np.ndarray]:
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=size)
    y = hidden + 0.3 * rng.normal(size=size) > 1.0  # one class is rare
    return (
        read_table(
            {
                "honest": hidden,
                "noise": rng.normal(size=size),
                "word": rng.choice(["a", "b", "c"], size),
                "copy": np.where(y, "granted", "refused"),
                "after": np.where(y, rng.uniform(5, 6, size), rng.uniform(0, 1, size)),
                "gap": np.where(y, rng.normal(size=size), np.nan),
                "y": np.where(y, "yes", "no"),
            }
        ),
        y,
    )


@pytest.mark.parametrize("size", [200, 5000, 60000])
def test_columns_that_give_the_answer_away(size: int) -> None:
    """A copy, a number known only afterwards, and a value that is missing for one class alone."""
    schema = propose_schema(leaky(size)[0], "y")
    assert {column.name for column in schema.leaks} == {"copy", "after", "gap"}
    said = {note["value"] for note in schema.notes if note["what"] == "leak suspect"}
    assert said == {"copy", "after", "gap"}
    assert schema["copy"].leak == 1.0
    assert {"copy", "after", "gap"} <= {
        column.name for column in schema.features
    }  # called out, not removed


def test_noise_is_at_chance_level() -> None:
    """Balanced accuracy of a useless column: 1/2, within four standard deviations of a mean of rare rows."""
    data, y = leaky(5000)
    judged = min(np.sum(y), np.sum(~y)) / 2
    for name in ("noise", "word"):
        leak = propose_schema(data, "y")[name].leak
        assert leak is not None
        assert abs(leak - 0.5) < 4 * np.sqrt(0.25 / judged)


def test_leaks_of_a_regression() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=3000)
    y = np.exp(x) + rng.normal(size=3000)
    data = read_table(
        {
            "x": x,
            "twice": 2 * y + 1,
            "log": np.log(y + 50),
            "noise": rng.normal(size=3000),
            "y": y,
        }
    )
    schema = propose_schema(data, "y")
    assert {column.name for column in schema.leaks} == {"twice", "log"}
    assert schema["noise"].leak < 0.1  # type: ignore[operator]


def test_the_same_seed_gives_the_same_schema() -> None:
    data = leaky(500)[0]
    assert propose_schema(data, "y", seed=5) == propose_schema(data, "y", seed=5)
    assert propose_schema(data, "y", seed=5)["noise"] != propose_schema(data, "y", seed=6)["noise"]


def test_recidivism_table_is_questioned() -> None:
    """In COMPAS, ``is_recid`` and the charges after release nearly are the target."""
    folder = data_folder()
    if folder is None:
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    data = read_table(folder / "tabular" / "compas" / "compas-scores-two-years.csv.gz")
    schema = propose_schema(data, "two_year_recid")
    said = {
        note["value"] for note in schema.notes if note["what"] in ("leak suspect", "strong column")
    }
    assert {"is_recid", "r_charge_degree"} <= said
    assert "age" not in said


# ------------------------------------------------------------------------ bundled sets and records


@pytest.mark.parametrize("name", names())
def test_bundled_sets(name: str) -> None:
    facts = about(name)
    data = load(name)
    assert data.frame.shape == (facts["rows"], facts["columns"])
    schema = propose_schema(data, facts["target"], sensitive=facts["sensitive"])
    assert schema.sensitive == tuple(facts["sensitive"])
    assert all(schema[column].role == "categorical" for column in facts["sensitive"])
    assert schema.task == ("regression" if name == "diabetes" else "classification")
    assert not schema.leaks
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_admissions_are_the_published_counts() -> None:
    """Simpson's paradox of Bickel et al.: 44.5 % of men and 30.4 % of women were admitted (1198 and 557)."""
    frame = load("admissions").frame
    counts = frame.group_by("gender", "admitted").len().sort("gender", "admitted")["len"].to_list()
    assert counts == [1493, 1198, 1278, 557]
    women = frame.filter(gender="woman", department="A")
    assert (women.height, women.filter(admitted="yes").height) == (108, 89)


def test_mortgages_are_the_published_counts() -> None:
    """Stock & Watson, chapter 11: 285 of 2,380 denied; 9.3 % of white and 28.3 % of black applicants."""
    frame = load("mortgages").frame
    black = frame.filter(african_american="yes")
    white = frame.filter(african_american="no")
    assert frame.filter(denied="yes").height == 285
    assert round(100 * black.filter(denied="yes").height / black.height, 1) == 28.3
    assert round(100 * white.filter(denied="yes").height / white.height, 1) == 9.3


def test_no_such_set() -> None:
    with pytest.raises(
        TableError, match=r"no bundled data set 'mortgage'. Did you mean 'mortgages'"
    ):
        load("mortgage")
