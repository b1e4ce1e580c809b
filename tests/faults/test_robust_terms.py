"""One forgery for each term of each claim of ``surefit.robust``, and one just above each rounding floor.

And what such claims may not be called a success for: nothing certified, nothing broken, an interval as long
as the range.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from surefit import Status
from surefit.linear_model import LogisticRegression
from surefit.neighbors import KNeighborsClassifier
from surefit.robust import Threat, adversarial_risk, pgd
from surefit.robust._risk_claims import (
    bracket_claim,
    certified_claim,
    closed_form_claim,
    population,
    population_claim,
)
from surefit.svm import SVC

EPS = np.array([0.0, 0.1])
RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 3))
Y = (X @ [1.5, -1.0, 0.5] + 0.3 * RNG.normal(size=160) > 0).astype(int)
TRAIN, REST = slice(0, 80), slice(80, 160)


def certified(shares: Any, **changes: Any) -> Any:
    asked = {"refuted": 0, "checked": 5, "method": "closed form", "exact": True, "constant": 0.6}
    asked |= changes
    return certified_claim(EPS, np.array(shares, dtype=bool), **asked)


# -------------------------------------------------------------------- claims that say nothing


def test_nothing_certified_is_no_success() -> None:
    """ "Right for sure: 0 %" was green."""
    some, none = [[1, 1, 0, 1], [1, 0, 0, 0]], [[1, 1, 0, 1], [0, 0, 0, 0]]
    assert certified(some).status is Status.HOLDS
    empty = certified(none)
    assert empty.status is Status.UNINFORMATIVE
    assert "no row is certified at a radius above 0" in empty.statement
    assert "the best constant answer has 0.6000 at every radius" in empty.statement
    assert certified(none, refuted=1).status is Status.FAILS
    assert certified(some, method="").status is Status.UNDECIDED
    at_rest = certified_claim(
        EPS[:1], np.zeros((1, 4), bool), 0, 0, "closed form", exact=True, constant=0.6
    )
    assert at_rest.status is Status.HOLDS  # of the rows as they are


def test_a_refuted_bound_does_not_say_that_nothing_can_happen() -> None:
    claim = certified([[1, 1], [1, 0]], refuted=1)
    assert claim.status is Status.FAILS
    assert "no allowed perturbation" not in claim.statement
    assert "1 found a wrong label" in claim.statement


def test_nothing_broken_is_no_success_while_rows_are_open() -> None:
    broken, sure = np.zeros((2, 3), bool), np.array([[1, 1, 1], [1, 1, 0]], bool)
    open_ = bracket_claim(EPS, broken, sure, "pgd", 0, 0)
    assert open_.status is Status.UNINFORMATIVE
    closed = bracket_claim(EPS, broken, np.ones((2, 3), bool), "pgd", 0, 0)
    assert closed.status is Status.HOLDS
    found = bracket_claim(EPS, ~sure, sure, "pgd", 0, 0)
    assert found.status is Status.HOLDS


def test_intervals_as_long_as_the_range_are_no_success() -> None:
    low, high = np.array([0.1, 0.0]), np.array([0.2, 1.0])
    rest = population_claim(EPS, low, high, 50, 0.05, "")
    assert rest.status is Status.UNINFORMATIVE
    assert "between 0.1000 and 0.2000 at eps 0" in rest.statement
    nothing = population_claim(EPS, np.zeros(2), np.ones(2), 50, 0.05, "")
    assert nothing.status is Status.UNINFORMATIVE
    known = population_claim(EPS, low, np.array([0.2, 0.9]), 50, 0.05, "")
    assert (known.status, known.observed) == (Status.HOLDS, 0.9)
    assert population_claim(EPS, low, high, 50, 0.05, "why").status is Status.UNDECIDED


def test_a_model_without_bounds_and_a_certified_one() -> None:
    """The same through the public function: tiny radii certify rows, huge ones none."""
    model = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    small = adversarial_risk(model, X[REST], Y[REST], (0.0, 0.01)).certificate
    large = adversarial_risk(model, X[REST], Y[REST], (0.0, 100.0)).certificate
    assert small["certified accuracy"].status is Status.HOLDS
    assert large["certified accuracy"].status is Status.UNINFORMATIVE
    share = max(np.mean(Y[REST] == c) for c in (0, 1))
    assert f"constant answer has {math.floor(share * 1e4) / 1e4:.4f}" in (
        small["certified accuracy"].statement
    )


# -------------------------------------------------------------------- each term of the claims of a curve


def test_each_count_of_a_curve_fails_alone() -> None:
    assert closed_form_claim(1, 80, "linear").status is Status.FAILS
    assert certified([[1, 1], [1, 0]], refuted=1).status is Status.FAILS
    broken, sure = np.array([[0, 1], [0, 1]], bool), np.array([[1, 0], [1, 0]], bool)
    assert bracket_claim(EPS, broken, sure, "pgd", 0, 3).status is Status.HOLDS
    assert bracket_claim(EPS, broken, sure, "pgd", 1, 3).status is Status.FAILS
    both = bracket_claim(EPS, np.array([[0, 1], [1, 1]], bool), sure, "pgd", 0, 3)
    assert (both.status, both.observed) == (Status.FAILS, 1.0)
    earlier = np.array([[1, 0], [0, 0]], bool)  # broken at a smaller radius, certified there too
    assert bracket_claim(EPS, earlier, sure, "pgd", 0, 0).status is Status.FAILS


def test_limits_of_the_risk_count_broken_and_uncertified_rows() -> None:
    broken = np.zeros((2, 400), bool)
    broken[1, :100] = True
    sure = np.zeros((2, 400), bool)
    sure[:, 200:] = True
    low, high = population(broken, sure, 0.05)
    assert low[0] == 0.0
    assert 0.19 < low[1] < 0.25
    assert 0.5 < high[0] < 0.56
    one = population(broken[1:], sure[1:], 0.05)
    assert low[1] < one[0][0]  # all radii at once
    assert high[1] > one[1][0]


class Swapped:
    """Another model's labels on some rows; attributes and scores of the honest one."""

    def __init__(self, model: Any, rows: Any) -> None:
        self.__dict__ |= vars(model)
        self.model, self.rows = model, rows

    def decision_function(self, rows: Any) -> Any:
        return self.model.decision_function(rows)

    def predict(self, rows: Any) -> Any:
        plain = self.model.predict(rows)
        known = (np.asarray(rows)[:, None, :] == self.rows[None]).all(axis=2).any(axis=1)
        return np.where(known, 1 - plain, plain)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_a_formula_that_disagrees_on_one_row_is_noticed(right: bool, kind: str) -> None:
    """On a row where the model is right by the formula, and on one where it is wrong."""
    y = Y.copy()
    y[80:90] = 1 - y[80:90]  # some rows that the model has wrong, by far
    model = (LogisticRegression() if kind == "linear" else SVC()).fit(X[TRAIN], Y[TRAIN])
    far = np.abs(model.decision_function(X[REST])) > 0.3
    place = np.flatnonzero(far & ((model.predict(X[REST]) == y[REST]) == right))[0]
    forged = Swapped(model, X[REST][place : place + 1])
    asked = {"attacks": ()} if kind == "linear" else {"attacks": ("fgsm",)}
    honest = adversarial_risk(model, X[REST], y[REST], (0.0,), **asked).certificate
    assert honest["closed form"].status is Status.HOLDS
    found = adversarial_risk(forged, X[REST], y[REST], (0.0,), **asked).certificate
    assert (found["closed form"].status, found["closed form"].observed) == (Status.FAILS, 1.0)


def test_a_row_that_the_model_has_wrong_is_never_certified() -> None:
    """Whatever the formula says of it."""
    model = LogisticRegression().fit(X[TRAIN], Y[TRAIN])
    right = model.predict(X[REST]) == Y[REST]
    place = int(np.argmax(np.where(right, np.abs(model.decision_function(X[REST])), 0.0)))
    forged = Swapped(model, X[REST][place : place + 1])
    found = adversarial_risk(forged, X[REST], Y[REST], (0.0, 0.01), attacks=())
    assert found.certified_accuracy[0] == right.mean() - 1.0 / len(right)


def test_a_row_that_fell_stays_broken_at_larger_radii() -> None:
    """An attack that finds nothing at a larger radius: what it found at the smaller one is allowed there."""
    model = SVC().fit(X[TRAIN], Y[TRAIN])

    def lazy(known: Any, rows: Any, labels: Any, threat: Threat, **options: Any) -> Any:
        return pgd(
            known, rows, labels, threat.with_eps(0.5 if threat.eps < 1.0 else 0.0), **options
        )

    found = adversarial_risk(model, X[REST], Y[REST], (0.0, 0.5, 1.0), attacks=[lazy])
    assert found.attacked_accuracy[1] < found.attacked_accuracy[0]
    assert found.attacked_accuracy[2] <= found.attacked_accuracy[1]


def test_worst_points_that_keep_their_label_are_noticed() -> None:
    """A linear model whose labels off the rows are those of the nearest row, so that nothing ever falls."""
    model = LogisticRegression().fit(X[TRAIN], Y[TRAIN])

    class Stubborn(Swapped):
        def predict(self, rows: Any) -> Any:
            gaps = np.square(np.asarray(rows)[:, None, :] - X[REST][None]).sum(axis=2)
            return self.model.predict(X[REST][gaps.argmin(axis=1)])

    forged = Stubborn(model, X[REST][:0])
    found = adversarial_risk(forged, X[REST], Y[REST], (0.0, 0.05), attacks=()).certificate
    assert found["closed form"].status is Status.HOLDS
    assert found["attacked accuracy"].status is Status.FAILS


def test_neighbours_that_vote_otherwise_are_noticed() -> None:
    model = KNeighborsClassifier(3).fit(X[TRAIN], Y[TRAIN])
    forged = copy.deepcopy(model)
    right = np.flatnonzero(model.predict(X[REST]) == Y[REST])[0]
    plain = model.predict

    def predict(rows: Any) -> Any:
        known = (np.asarray(rows) == X[REST][right]).all(axis=1)
        return np.where(known, 1 - plain(rows), plain(rows))

    forged.predict = predict
    found = adversarial_risk(forged, X[REST], Y[REST], (0.0, 1e-6)).certificate
    assert (found["closed form"].status, found["closed form"].observed) == (Status.FAILS, 1.0)


# -------------------------------------------------------------------- evaluations of networks


@pytest.fixture(scope="module")
def evaluated() -> Any:
    torch = pytest.importorskip("torch")
    from surefit.robust import evaluate

    torch.manual_seed(0)
    net = torch.nn.Linear(4, 3)
    rows = torch.randn(60, 4)
    labels = net(rows).argmax(1)
    labels[:6] = (labels[:6] + 1) % 3  # wrong without an attack
    found = evaluate(net, rows, labels, Threat(0.25), attacks=["fgsm"], random_state=0)
    assert found.recheck(net, rows, labels).ok
    fallen = np.flatnonzero(found.clean & ~found.robust)
    open_ = np.flatnonzero(found.robust)
    assert len(fallen) > 2
    assert found.certified.any()
    return net, rows, labels, found, fallen, open_


def again(evaluated: Any, **change: Any) -> Any:
    net, rows, labels, found, *_ = evaluated
    return dataclasses.replace(found, **change).recheck(net, rows, labels)


def test_a_point_outside_the_set(evaluated: Any) -> None:
    _, rows, _, found, fallen, _ = evaluated
    points = found.x_adv.clone()
    step = points[fallen[0]] - rows[fallen[0]]
    points[fallen[0]] = rows[fallen[0]] + step * (1.0 + 1e-4)  # still wrong, a little too far
    claim = again(evaluated, x_adv=points)["adversarial examples"]
    assert (claim.status, claim.observed) == (Status.FAILS, 1.0)
    assert "1 have a stored point outside" in claim.statement


def test_a_point_with_the_right_label(evaluated: Any) -> None:
    *_, rows, _, found, fallen, _ = evaluated
    points = found.x_adv.clone()
    points[fallen[0]] = rows[fallen[0]]
    claim = again(evaluated, x_adv=points)["adversarial examples"]
    assert (claim.status, claim.observed) == (Status.FAILS, 1.0)
    assert "at 1 of the points the network's own label is right" in claim.statement


def test_a_point_that_is_right_by_little_more_than_rounding(evaluated: Any) -> None:
    """A margin of a ten-thousandth of the scores is no rounding in float32."""
    import torch

    net, rows, labels, found, fallen, _ = evaluated
    row = int(fallen[0])
    points = found.x_adv.double().clone()
    start, end = rows[row].double(), points[row].clone()
    exact = copy.deepcopy(net).double()

    def margin(t: float) -> float:
        z = exact((start + t * (end - start))[None]).detach()[0]
        rivals = torch.cat([z[: labels[row]], z[labels[row] + 1 :]])
        return float(z[labels[row]] - rivals.max()) / max(1.0, float(z.abs().max()))

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if margin(middle) > 1e-4 else (low, middle)
    forged = found.x_adv.clone()
    forged[row] = (start + low * (end - start)).float()
    claim = again(evaluated, x_adv=forged)["adversarial examples"]
    assert (claim.status, claim.observed) == (Status.FAILS, 1.0)


def test_a_row_that_is_counted_as_standing(evaluated: Any) -> None:
    *_, found, fallen, _ = evaluated
    robust, by = found.robust.copy(), found.by.copy()
    robust[fallen[0]] = True
    by[fallen[0]] = ""
    stands = (*found.stands[:-1], found.stands[-1] + 1)
    one = again(evaluated, robust=robust, by=by, stands=stands)["adversarial examples"]
    assert (one.status, one.observed) == (Status.FAILS, 1.0)  # its point is wrong
    only = again(evaluated, by=by)["adversarial examples"]
    assert (only.status, only.observed) == (Status.FAILS, 1.0)  # broken by nothing
    late = again(evaluated, stands=stands)["adversarial examples"]
    assert (late.status, late.observed) == (Status.FAILS, 1.0)


def test_certified_rows_are_bounded_and_stand(evaluated: Any) -> None:
    *_, found, fallen, open_ = evaluated
    more = found.certified.copy()
    more[fallen[0]] = True
    both = again(evaluated, certified=more)["certified rows"]
    assert (both.status, both.observed) == (Status.FAILS, 2.0)
    robust = found.robust.copy()
    robust[np.flatnonzero(found.certified)[0]] = False  # bounded, and counted as broken
    fell = again(evaluated, robust=robust)["certified rows"]
    assert (fell.status, fell.observed) == (Status.FAILS, 1.0)
    assert "1 were broken by an attack, and 1 have no positive lower bound" in both.statement
    none = again(evaluated, certified=np.zeros_like(found.certified))
    assert none["certified rows"].status is Status.UNINFORMATIVE
    loose = [row for row in open_ if not found.certified[row]]
    if loose:
        more = found.certified.copy()
        more[loose[0]] = True
        assert again(evaluated, certified=more)["certified rows"].observed == 1.0


def test_rows_with_another_label_are_never_certified(evaluated: Any) -> None:
    """The first six rows are wrong: counted as broken, and without a bound of their margin."""
    from surefit.robust import evaluate

    net, rows, labels, found, *_ = evaluated
    more = found.certified.copy()
    more[:6] = True
    assert again(evaluated, certified=more)["certified rows"].observed == 12.0
    at_rest = evaluate(net, rows, labels, Threat(0.0), attacks=())
    assert at_rest.recheck(net, rows, labels).ok
    forged = dataclasses.replace(at_rest, certified=np.ones(60, bool))
    assert forged.recheck(net, rows, labels)["certified rows"].observed == 12.0


def test_a_clean_label_and_a_bracket_upside_down(evaluated: Any) -> None:
    net, rows, labels, found, fallen, _ = evaluated
    clean = found.clean.copy()
    clean[fallen[0]] = False
    assert again(evaluated, clean=clean)["clean accuracy"].observed == 1.0
    upside = again(evaluated, certified=np.ones_like(found.certified))["robust accuracy"]
    assert upside.status is Status.FAILS
    assert "cannot be at least 1.0000" in upside.statement
    moved = found.recheck(net, rows + 1e-3, labels)["data"]
    assert moved.status is Status.FAILS
    other = labels.clone()
    other[0] = (other[0] + 1) % 3
    assert found.recheck(net, rows, other)["data"].status is Status.FAILS


def test_an_evaluation_that_learnt_nothing_is_no_success(evaluated: Any) -> None:
    """No row certified, no row broken: the robust accuracy is at most the clean one, as always."""
    net, rows, labels, *_ = evaluated
    from surefit.robust import evaluate

    right = net(rows).argmax(1) == labels
    empty = evaluate(net, rows[right], labels[right], Threat(1e-6), attacks=["fgsm"], certify=False)
    assert empty.attacked_accuracy == empty.clean_accuracy == 1.0
    statuses = {claim.name: claim.status for claim in empty.claims}
    assert statuses["robust accuracy"] is Status.UNINFORMATIVE
    assert statuses["certified rows"] is Status.UNINFORMATIVE
    assert statuses["adversarial examples"] is Status.UNINFORMATIVE
    assert statuses["true adversarial risk"] is Status.UNINFORMATIVE
    assert statuses["clean accuracy"] is Status.HOLDS


@pytest.mark.parametrize(
    "change",
    [
        {"robust": np.ones(60)},
        {"certified": np.ones(59, bool)},
        {"clean": np.ones((60, 1), bool)},
        {"by": np.array([""])},
        {"queries": np.zeros(3, np.int64)},
        {"delta": 0.0},
        {"delta": math.nan},
    ],
)
def test_arrays_that_do_not_fit_together_are_a_failed_claim(
    evaluated: Any, change: dict[str, Any]
) -> None:
    found = again(evaluated, **change)
    assert [claim.name for claim in found.failed] == ["attributes"]
    name = next(iter(change))
    assert name in found["attributes"].statement
    *_, kept, _, _ = evaluated
    short = again(evaluated, x_adv=kept.x_adv[:-1])
    assert "x_adv" in short["attributes"].statement


# -------------------------------------------------------------------- randomised smoothing


def half_space(x: Any) -> Any:
    return (x[:, 0] > 0).long()


@pytest.fixture(scope="module", params=[False, True])
def smoothed(request: Any) -> Any:
    torch = pytest.importorskip("torch")
    from surefit.robust.smoothing import RandomizedSmoothing

    x = torch.tensor([[0.5], [-0.4], [2.0], [0.01]], dtype=torch.float64)
    found = RandomizedSmoothing(half_space, 0.5).certify(x, n=500, sequential=request.param)
    assert found.recheck(half_space, x).ok
    return x, found


@pytest.mark.parametrize("change", [1e-7, 0.1, math.nan, math.inf])
def test_a_radius_beyond_the_counts(smoothed: Any, change: float) -> None:
    _, found = smoothed
    radius = found.radius.copy()
    radius[2] += change
    claim = dataclasses.replace(found, radius=radius).certificate["smoothed radii"]
    assert claim.status is Status.FAILS
    assert "does not change" not in claim.statement


def test_each_list_of_votes_counts(smoothed: Any) -> None:
    _, found = smoothed
    more = found.draws + 1
    for change in (
        {"p_low": found.p_low + 1e-7},
        {"successes": more},
        {"successes": -1 - found.successes},
        {"label": np.where(np.arange(4) == 0, 1 - found.label, found.label)},
        {"draws": np.where(np.arange(4) == 0, found.draws - 1, found.draws)},
    ):
        claim = dataclasses.replace(found, **change).certificate["smoothed labels"]
        assert claim.status is Status.FAILS, change


@pytest.mark.parametrize("name", ["label", "radius", "chosen", "successes", "draws", "p_low"])
def test_a_list_of_another_length_is_a_failed_claim(smoothed: Any, name: str) -> None:
    x, found = smoothed
    for values in (getattr(found, name)[:-1], np.repeat(getattr(found, name), 2)):
        forged = dataclasses.replace(found, **{name: values})
        for certificate in (forged.certificate, forged.recheck(half_space, x[: len(forged.draws)])):
            assert [claim.name for claim in certificate.failed] == ["attributes"]


@pytest.mark.parametrize(
    "change", [{"delta": 0.0}, {"delta": 1.0}, {"sigma": 0.0}, {"sigma": math.nan}]
)
def test_a_probability_or_noise_that_is_none(smoothed: Any, change: dict[str, float]) -> None:
    _, found = smoothed
    assert "attributes" in dataclasses.replace(found, **change).certificate


def test_votes_for_another_class_are_counted_again(smoothed: Any) -> None:
    x, found = smoothed
    other = np.where(np.arange(4) == 2, 1 - found.chosen, found.chosen)
    claim = dataclasses.replace(found, chosen=other).recheck(half_space, x)["counts"]
    assert claim.status is Status.FAILS
    for seed in (found.seed + 1,):
        assert not dataclasses.replace(found, seed=seed).recheck(half_space, x).ok


def test_the_class_of_most_votes_is_the_one_that_is_counted(smoothed: Any) -> None:
    """A row that abstains, its votes counted rightly for a class that nobody voted for."""
    x, found = smoothed
    row = np.arange(4) == 2
    forged = dataclasses.replace(
        found,
        chosen=np.where(row, 1 - found.chosen, found.chosen),
        successes=np.where(row, 0, found.successes),
        path=tuple(np.where(row, 0, seen) for seen in found.path),
        p_low=np.where(row, 0.0, found.p_low),
        radius=np.where(row, 0.0, found.radius),
        label=np.where(row, -1, found.label),
        impossible=None,
    )
    certificate = forged.recheck(half_space, x)
    assert [claim.name for claim in certificate.failed] == ["counts"]
    assert certificate["counts"].observed == forged.n0
    if found.path:
        short = dataclasses.replace(found, path=(found.path[0][:-1], *found.path[1:]))
        assert "path" in short.certificate["attributes"].statement


def test_a_vote_that_decides_nothing_is_no_success() -> None:
    """Rows on the boundary: no radius for any of them."""
    torch = pytest.importorskip("torch")
    from surefit.robust.smoothing import RandomizedSmoothing

    x = torch.zeros(3, 1, dtype=torch.float64)
    found = RandomizedSmoothing(half_space, 0.5).certify(x, n=500)
    assert not (found.radius > 0).any()
    claim = found.certificate["smoothed radii"]
    assert claim.status is Status.UNINFORMATIVE
    assert "no row has a radius" in claim.statement
