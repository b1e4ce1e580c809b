"""Bad input to the audit and the remedies: each error names the argument, what it got and the remedy."""

import numpy as np
import pytest

from surefit.fair import (
    Decorrelate,
    FairLogistic,
    GroupThresholds,
    audit,
    compare_remedies,
    incompatibility,
    proxies,
)

Y = np.tile([0, 1, 1, 0], 25)
D = np.tile([0, 1, 0, 1], 25)
G = np.repeat(["a", "b"], 50)
X = np.random.default_rng(0).normal(size=(100, 2))


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"y": Y[:5]}, "decision has 100 rows, y has 5"),
        ({"decision": D[:7]}, "decision has 7 rows, y has 100"),
        ({"sensitive": G[:7]}, r"sensitive\['sensitive'\] has 7 rows, y has 100"),
        ({"sensitive": {}}, "at least one sensitive attribute"),
        ({"sensitive": np.zeros((100, 2, 2))}, "must be one column"),
        ({"y": np.arange(100) % 3}, "pass positive="),
        ({"y": np.where(Y == 1, np.nan, 0.0)}, "y has missing values"),
        ({"y": [None, *Y[1:].tolist()]}, "y has missing values"),
        ({"y": [], "decision": [], "sensitive": []}, "y has no rows"),
        ({"positive": "yes"}, "positive='yes' occurs neither in y"),
        ({"decision": np.where(D == 1, "yes", "no")}, "pass decisions in the labels of y"),
        ({"decision": D * 2}, "pass decisions in the labels of y"),
        ({"score": D * 2.0}, r"score must lie in \[0, 1\]"),
        ({"score": np.full(100, np.nan)}, r"score must lie in \[0, 1\]"),
        ({"score": np.zeros((100, 2))}, "pass the column of the positive label"),
        ({"delta": 0.0}, "delta must lie strictly between 0 and 1, got 0.0"),
        ({"delta": float("nan")}, "delta must lie strictly"),
        ({"min_rows": 0}, "min_rows must be a whole number of at least 1, got 0"),
        (
            {"y": np.tile(Y, 11), "decision": np.tile(D, 11), "sensitive": np.arange(1100)},
            "1100 different values, of at most 1000: bin it",
        ),
        ({"tolerance": {"equality": 0.1}}, "tolerance has the key 'equality'"),
        (
            {"tolerance": {"error": 2}},
            r"tolerance\['error'\] must be a number between 0 and 1, got 2",
        ),
        ({"tolerance": {"calibration": 0.1}}, "needs score="),
        ({"features": X[:3]}, "one row for each of the 100 values"),
        ({"features": np.full((100, 1), np.nan)}, "impute them first"),
        ({"features": X, "feature_names": ["one"]}, "1 names for 2 columns"),
    ],
)
def test_the_audit_says_what_is_wrong(keywords, message):
    given = {"y": Y, "decision": D, "sensitive": G, **keywords}
    with pytest.raises(ValueError, match=message):
        audit(given.pop("y"), given.pop("decision"), **given)


def test_too_many_cells_are_not_crossed_and_that_is_said():
    rng = np.random.default_rng(0)
    columns = {"one": np.arange(4000) % 50, "two": rng.integers(0, 50, 4000)}
    found = audit(np.tile(Y, 40), np.tile(D, 40), sensitive=columns)
    assert found.attributes == ["one", "two"]
    assert found.abstained[0]["attribute"] == "one x two"
    assert "too many to cross" in found.abstained[0]["why"]


def test_an_audit_of_odd_but_sound_data():
    one = audit(Y, D, sensitive=np.full(100, "a"))
    assert one.gaps["sensitive"]["independence"]["observed"] is None
    assert "there is one group" in str(one)
    none = audit(Y, np.zeros(100, dtype=int), sensitive=G)  # nobody is selected
    assert none.gaps["sensitive"]["independence"]["observed"] == 0.0
    assert none.gaps["sensitive"]["ppv"]["observed"] is None
    everybody = audit(np.ones(100, dtype=int), np.ones(100, dtype=int), sensitive=G)
    assert everybody.table[0]["rates"]["fpr"]["value"] is None
    alone = audit([1], [1], sensitive=["a"], min_rows=1)
    assert alone.table[0]["rates"]["selection"]["high"] == 1.0
    many = audit(Y, D, sensitive=np.arange(100))  # every row its own group
    assert len(many.abstained) == 100
    assert not many.certificate.failed
    for found in (one, none, everybody, alone, many):
        str(found)
        found._repr_html_()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: incompatibility([0.5, 1.2], 0.8, 0.2), r"base_rates must lie in \[0, 1\]"),
        (lambda: incompatibility([0.5], 1.8, 0.2), r"ppv must lie in \[0, 1\], got 1.8"),
        (lambda: incompatibility([0.5], 0.8, 0.2, groups=["a", "b"]), "2 names for 1 base rates"),
        (lambda: proxies(X, G[:4]), "one row for each of the 4 values"),
        (lambda: audit(Y, D, sensitive=G).pairs("speed"), "rate must be one of"),
        (lambda: audit(Y, D, sensitive=G).pairs(attribute="age"), "attribute must be one of"),
        (lambda: Decorrelate().fit(X), "neither of sensitive_columns and fit"),
        (lambda: Decorrelate([0]).fit(X, sensitive=G), "both of sensitive_columns and fit"),
        (lambda: Decorrelate([5]).fit(X), "sensitive_columns has 5, but X has 2 columns"),
        (lambda: Decorrelate(["age"]).fit(X), "'age', which is no column of X, which has no names"),
        (lambda: Decorrelate([0, 1]).fit(X), "all of them are sensitive_columns"),
        (lambda: Decorrelate([0], alpha=2.0).fit(X), "alpha"),
        (lambda: Decorrelate().fit(X, sensitive=G[:9]), "sensitive has 9 rows, X has 100"),
        (lambda: Decorrelate().fit(X, sensitive=G).transform(X), "give sensitive="),
        (lambda: Decorrelate([0]).fit(X).transform(X, sensitive=G), "part of X already"),
        (lambda: FairLogistic().fit(X, Y), "neither of sensitive_columns and fit"),
        (lambda: FairLogistic(-1.0).fit(X, Y, sensitive=G), "fairness"),
        (lambda: FairLogistic().fit(X, np.arange(100) % 3, sensitive=G), "Only binary"),
        (lambda: FairLogistic().fit(X, np.zeros(100), sensitive=G), "only one class"),
        (lambda: GroupThresholds().fit(X, Y), "neither of sensitive_columns and fit"),
        (lambda: GroupThresholds("passthrough").fit(X, Y, sensitive=G), "one feature, the score"),
        (lambda: GroupThresholds(objective=(1, -1)).fit(X, Y, sensitive=G), "two costs"),
        (lambda: GroupThresholds(objective=(0, 0)).fit(X, Y, sensitive=G), "two costs"),
        (
            lambda: GroupThresholds(constraint="equal_opportunity").fit(
                X, np.where(G == "a", Y, 0), sensitive=G
            ),
            "the group 'b' has no row with the label 1",
        ),
        (
            lambda: GroupThresholds().fit(X, Y, sensitive=G).predict(X, sensitive=np.full(100, "new")),
            "has the group 'new', which the fit did not see",
        ),
        (
            lambda: GroupThresholds(sensitive_columns=[0]).fit(
                np.column_stack([Y[::-1], X]), Y
            ).predict(np.full((3, 3), 7.0)),
            "a group which the fit did not see",
        ),
        (lambda: compare_remedies(X, Y, G, X, Y, np.full(100, "z")), "no group of the training rows"),
        (lambda: compare_remedies(X, np.arange(100) % 3, G, X, Y, G), "pass positive="),
    ],
)  # fmt: skip
def test_functions_and_remedies_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
