"""The audit: what it counts, what it leaves out, what it claims, and how it shows itself."""

import io
import json

import numpy as np
import pytest
from rich.console import Console

from surefit import Status
from surefit.fair import Audit, audit
from surefit.fair._groups import as_codes


def example(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n) < 0.4, "f", "m")
    race = rng.choice(["x", "y", "z"], n, p=[0.7, 0.295, 0.005])
    score = rng.beta(2, 3, size=n)
    y = (rng.random(n) < score).astype(int)
    decision = (score + 0.1 * (sex == "m") > 0.5).astype(int)
    return y, decision, score, sex, race


def test_groups_with_few_rows_are_named_and_left_out_of_the_gap():
    y, decision, _, _, race = example()
    decision = np.where(race == "z", 1, decision)  # the small group would make the gap
    found = audit(y, decision, sensitive={"race": race}, min_rows=30)
    few = int((race == "z").sum())
    assert few < 30
    assert [(a["group"], a["n"], a["rate"]) for a in found.abstained] == [("z", few, None)]
    assert "min_rows=30" in found.abstained[0]["why"]
    gap = found.gaps["race"]["independence"]
    assert gap["over"] == ["x", "y"]
    claim = found.certificate["independence (race)"]
    assert "between the 2 groups of race that could be measured" in claim.statement
    assert gap["observed"] < 0.1
    assert (
        audit(y, decision, sensitive=race, min_rows=2).gaps["sensitive"]["independence"]["observed"]
        > 0.4
    )


def test_a_small_denominator_leaves_a_group_out_of_that_rate_only():
    y = np.r_[np.tile([0, 1], 100), np.r_[np.ones(5), np.zeros(195)]].astype(int)
    decision = np.tile([0, 0, 1, 1], 100)
    found = audit(y, decision, sensitive=np.repeat(["a", "b"], 200))
    assert found.gaps["sensitive"]["tpr"]["observed"] is None
    assert found.gaps["sensitive"]["fpr"]["observed"] is not None
    claim = found.certificate["separation (sensitive)"]
    assert claim.status is Status.UNDECIDED
    assert ("b", "tpr") in [(a["group"], a["rate"]) for a in found.abstained]


def test_several_attributes_are_audited_each_and_crossed():
    y, decision, score, sex, race = example()
    found = audit(y, decision, score, sensitive={"sex": sex, "race": race})
    assert found.attributes == ["sex", "race", "sex x race"]
    cells = {row["group"]: row["n"] for row in found.table if row["attribute"] == "sex x race"}
    assert cells["f x y"] == int(((sex == "f") & (race == "y")).sum())
    assert sum(cells.values()) == len(y)
    # more statements at once, wider intervals
    alone = audit(y, decision, score, sensitive={"sex": sex}).gaps["sex"]["independence"]
    both = found.gaps["sex"]["independence"]
    assert both["low"] < alone["low"] < alone["high"] < both["high"]
    matrix = audit(y, decision, sensitive=np.column_stack([sex, race]))
    assert matrix.attributes == ["sensitive 0", "sensitive 1", "sensitive 0 x sensitive 1"]


@pytest.mark.parametrize(
    ("tolerance", "verdict"), [(0.9, "met"), (0.0, "violated"), (0.1, "not decided")]
)
def test_a_criterion_is_met_violated_or_not_decided(tolerance, verdict):
    y = np.tile([0, 1], 2000)
    decision = np.repeat([1, 0, 1, 0], [800, 1200, 600, 1400])  # rates 0.4 and 0.3
    group = np.repeat(["a", "b"], 2000)
    others = dict.fromkeys(("separation", "sufficiency", "error"), 1.0)  # measured, not judged
    found = audit(y, decision, sensitive=group, tolerance={**others, "independence": tolerance})
    gap = found.gaps["sensitive"]["independence"]
    assert gap["observed"] == pytest.approx(0.1)
    assert 0.0 < gap["low"] < gap["observed"] < gap["high"]
    assert found.criteria == {"independence (sensitive)": verdict}
    assert found.certificate["independence (sensitive)"].status is Status.HOLDS
    assert found.certificate.ok
    assert found.ok is (verdict != "violated")


def test_a_claim_states_its_interval_and_its_length():
    y, decision, _, sex, _ = example()
    found = audit(y, decision, sensitive=sex)
    claim, gap = (
        found.certificate["independence (sensitive)"],
        found.gaps["sensitive"]["independence"],
    )
    assert claim.observed == pytest.approx(gap["high"] - gap["low"], abs=1e-15)
    assert (claim.estimate, claim.low, claim.high) == (gap["observed"], gap["low"], gap["high"])
    assert claim.bound == 0.5  # half of the range
    assert f"observed {gap['observed']:.4f}" in claim.statement
    few = audit(y[:8], decision[:8], sensitive=sex[:8], min_rows=1)
    assert few.certificate["separation (sensitive)"].status is Status.UNDECIDED


def test_labels_of_any_kind_and_the_positive_one():
    y, decision, _, sex, _ = example()
    words = np.array(["no", "yes"])
    plain = audit(y, decision, sensitive=sex)
    named = audit(words[y], words[decision], sensitive=sex)
    assert named.table == plain.table
    assert named.positive == "yes"
    other = audit(words[y], words[decision], sensitive=sex, positive="no")
    assert other.table[0]["rates"]["tpr"]["value"] == plain.table[0]["rates"]["tnr"]["value"]
    three = np.where(np.arange(len(y)) % 5 == 0, 2, y)
    rest = audit(three, np.minimum(decision, three), sensitive=sex, positive=1)
    np.testing.assert_allclose(rest.overall["rates"]["base_rate"]["value"], (three == 1).mean())
    alone = audit(np.full(len(y), "no"), words[decision], sensitive=sex)  # y has one label only
    assert alone.positive == "yes"
    assert alone.overall["counts"]["fp"] == int(decision.sum())
    as_bool = audit(y.astype(bool), decision.astype(bool), sensitive=sex)
    assert as_bool.table == plain.table


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["b", "a", None, "a"], ["a", "b", "missing"]),
        ([2.0, 10.0, float("nan"), 2.0], ["2", "10", "missing"]),
        (np.array([10, 2, 10, 2]), ["2", "10"]),
        (np.array([10**12, 2, 10, 2]), ["2", "10", str(10**12)]),
        ([True, False, True, True], ["False", "True"]),
        (np.array(["b", "", "a", "a"]), ["a", "b", "missing"]),
        ([1, "1", None, (2,)], ["(2,)", "1", "missing"]),
    ],
)
def test_group_names_in_order_with_missing_last(values, names):
    found, codes = as_codes(values)
    assert found == names
    expected = ["missing" if v is None or v == "" or v != v else str(v) for v in values]
    expected = [name.removesuffix(".0") for name in expected]
    assert [found[c] for c in codes] == expected


def test_many_texts_pandas_categories_and_polars_series_give_the_same_codes():
    import pandas as pd
    import polars as pl

    rng = np.random.default_rng(0)
    texts = np.array([f"group {k}" for k in range(40)])[rng.integers(0, 40, 500)]
    names, codes = as_codes(texts)
    assert names == sorted(set(texts))
    for other in (texts.astype(object), list(texts), pd.Series(texts, dtype="category"),
                  pd.Series(texts), pl.Series("g", texts.tolist())):  # fmt: skip
        again, same = as_codes(other)
        assert again == names
        np.testing.assert_array_equal(same, codes)


def test_an_audit_survives_json():
    y, decision, score, sex, race = example()
    features = np.column_stack([score, sex == "m"])
    found = audit(
        y, decision, score, sensitive={"sex": sex, "race": race}, features=features,
        feature_names=["score", "is m"], tolerance={"independence": 0.01},
    )  # fmt: skip
    again = Audit.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again == found
    assert not again.ok
    assert found.proxies["sex"]["columns"][0]["name"] == "is m"
    with pytest.raises(ValueError, match="version 9"):
        Audit.from_dict({**found.to_dict(), "version": 9})


def test_group_names_are_text_in_every_rendering():
    y, decision, _, sex, _ = example()
    bad = "<script>alert(1)</script>"
    markup, escape = "[red]boo[/red][/]", "\x1b[31mevil\x07\u202e"
    names = np.where(sex == "f", bad, markup).astype(object)
    names[::3] = escape
    found = audit(y, decision, sensitive={"<b>sex</b>": names})
    html = found._repr_html_()
    assert "<script>" not in html
    assert "<b>sex" not in html
    assert "&lt;script&gt;" in html
    for text in (str(found), html):
        assert "\x1b" not in text
        assert "\u202e" not in text
    out = io.StringIO()
    Console(file=out, width=400, force_terminal=False).print(found)
    assert "[red]boo[/red]" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_the_plot_shows_an_interval_for_each_measured_group():
    y, decision, _, _, race = example()
    found = audit(y, decision, sensitive={"race": np.where(race == "y", "$y", race)})
    ax = found.plot(rate="tpr")
    assert len(ax.lines) == 4  # an interval and a dot for each of two groups
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[0] == r"\$y"
    assert "too few rows" in labels[2]
    ax.figure.canvas.draw()
    with pytest.raises(ValueError, match="no rate 'nothing'"):
        found.plot(rate="nothing")
