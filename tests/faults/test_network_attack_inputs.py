"""Attacks on networks with inputs that make no sense, and modules that are not at rest."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from surefit.linear_model import LogisticRegression
from surefit.robust import Threat, adversarial_risk, decision_based, fgsm, pgd

torch = pytest.importorskip("torch")

from surefit.nn import MLPClassifier  # noqa: E402
from surefit.robust import (  # noqa: E402
    AdversarialTraining,
    apgd,
    evaluate,
    fab,
    minimum_norm,
    network,
    square,
)

nn = torch.nn
EVERY = [fgsm, pgd, apgd, fab, square]


@pytest.fixture
def case():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3))
    X = torch.randn(6, 3)
    return net, X, net(X).argmax(1)


@pytest.mark.parametrize("attack", EVERY)
def test_eps_zero_moves_nothing(attack, case):
    net, X, y = case
    y = y.clone()
    y[0] = (y[0] + 1) % 3
    for norm in (2, np.inf):
        found = attack(net, X, y, Threat(0.0, norm), random_state=0)
        assert torch.equal(found.x_adv, X)
        assert found.success.tolist() == [True] + [False] * 5
    result = evaluate(net, X, y, Threat(0.0), attacks=["apgd-ce"])
    assert result.clean_accuracy == result.attacked_accuracy == result.certified_accuracy == 5 / 6


@pytest.mark.parametrize("eps", [-0.1, float("nan"), float("inf"), None])
def test_eps_that_is_no_radius(eps):
    with pytest.raises(ValueError, match="eps must be a finite number >= 0"):
        Threat(eps)


@pytest.mark.parametrize("attack", EVERY)
@pytest.mark.parametrize(
    ("part", "options"),
    [
        ("mutable", {"mutable": [True, True, False]}),
        ("step", {"step": 0.5}),
        ("groups", {"groups": [[0, 1]]}),
    ],
)
def test_parts_of_a_threat_for_tables_are_refused(attack, part, options, case):
    with pytest.raises(ValueError, match=rf"threat\.{part} is about columns of tables.*score="):
        attack(*case, Threat(0.1, **options))


@pytest.mark.parametrize("attack", [*EVERY, decision_based])
def test_labels_out_of_range_are_named(attack, case):
    net, X, y = case
    with pytest.raises(ValueError, match=r"label 7 in row 2"):
        attack(net, X, [0, 1, 7, 0, 1, 2], Threat(0.1))
    with pytest.raises(ValueError, match=r"X has 6 rows, but y has 5|one label a row"):
        attack(net, X, y[:5], Threat(0.1))


@pytest.mark.parametrize("attack", [*EVERY, evaluate, decision_based])
def test_wrong_shapes_are_named(attack, case):
    net, X, y = case
    with pytest.raises(ValueError, match=r"does not take rows of shape \(5,\)"):
        attack(net, torch.randn(6, 5), y, Threat(0.1))
    with pytest.raises(ValueError, match=r"does not take rows of shape \(2, 4, 4\)"):
        attack(
            nn.Sequential(nn.Conv2d(1, 3, 4), nn.Flatten()), torch.zeros(6, 2, 4, 4), y, Threat(0.1)
        )
    with pytest.raises(ValueError, match="one label a row"):
        attack(net, X, y[:, None], Threat(0.1))
    with pytest.raises(ValueError, match="lower has 2 entries, but a row has 3"):
        attack(net, X, y, Threat(0.1, lower=[0.0, 0.0]))
    with pytest.raises(TypeError, match="threat must be a Threat"):
        attack(net, X, y, 0.1)


def test_rows_that_are_not_numbers(case):
    net, X, y = case
    X = X.clone()
    X[1, 1] = torch.nan
    with pytest.raises(ValueError, match="X has NaN or infinite"):
        pgd(net, X, y, Threat(0.1))


class Overflow(nn.Module):
    """NaN on rows whose first entry is above 1: inf - inf."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(3, 2)

    def forward(self, x):
        big = torch.exp(1e4 * (x[:, :1] - 1.0))
        return self.last(x) + (big - big)


def test_logits_that_are_nan_name_the_rows():
    X = torch.zeros(4, 3)
    X[2, 0] = 2.0
    with pytest.raises(FloatingPointError, match=r"NaN on rows \[2\]"):
        apgd(Overflow(), X, [0, 0, 0, 0], Threat(0.1))


def test_an_overflow_on_the_way_does_not_enter_the_points():
    torch.manual_seed(0)
    net = Overflow()
    X = torch.full((4, 3), 0.95)
    y = net(X).argmax(1)
    for attack in (pgd, apgd, fab):
        found = attack(net, X, y, Threat(0.2), random_state=0)
        assert torch.isfinite(found.x_adv).all()


def test_a_row_outside_the_box_may_not_go_further_out(case):
    net, _, _ = case
    X = torch.tensor([[2.0, 0.5, -1.0]])
    y = net(X).argmax(1)
    found = pgd(net, X, y, Threat(0.3, lower=0.0, upper=1.0))
    assert 1.7 - 1e-6 <= found.x_adv[0, 0] <= 2.0
    assert -1.0 <= found.x_adv[0, 2] <= -0.7 + 1e-6


def test_mode_and_gradients_of_the_module_are_restored(case):
    net, X, y = case
    net = nn.Sequential(net, nn.Dropout(0.9))
    net.train()
    net[0][0].weight.requires_grad_(False)
    result = apgd(net, X, net.eval()(X).argmax(1), Threat(0.01), n_iter=5, random_state=0)
    assert not result.success.any()  # dropout was off
    net.train()
    net[0].eval()
    evaluate(net, X, y, Threat(0.1), attacks=["fgsm"], certify=False)
    assert net.training
    assert not net[0].training
    assert net[1].training
    assert [p.requires_grad for p in net.parameters()] == [False, True, True, True]
    assert all(p.grad is None for p in net.parameters())
    with pytest.raises(ValueError, match="label"):
        apgd(net, X, [9] * 6, Threat(0.1))
    assert net.training


def test_networks_that_cannot_be_read(case):
    net, X, y = case
    with pytest.raises(TypeError, match=r"nn\.Module"):
        network(3)
    with pytest.raises(ValueError, match="give classes"):
        network(nn.Flatten())
    with pytest.raises(ValueError, match="3 outputs for 2 classes"):
        fgsm(net, X, [0] * 6, Threat(0.1), classes=[0, 1])
    with pytest.raises(ValueError, match="precision must be"):
        network(net, precision="half")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no CUDA device"):
            network(net, device="cuda")
    model = LogisticRegression().fit(np.array([[0.0], [1.0]]), [0, 1])
    with pytest.raises(TypeError, match="use adversarial_risk"):
        evaluate(model, X, y, Threat(0.1))
    with pytest.raises(ValueError, match="attacks must be functions or of"):
        evaluate(net, X, y, Threat(0.1), attacks=["best"])


def test_module_spread_over_devices():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))
    with pytest.raises(ValueError, match="several devices"):
        network(net)


def test_an_unsupported_layer_certifies_nothing_and_says_so(case):
    _, X, y = case

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(3, 3)

        def forward(self, x):
            return self.last(torch.sort(x, dim=1).values)

    found = evaluate(Odd(), X, y, Threat(0.1), attacks=["fgsm"])
    assert not found.certified.any()
    assert "no certified bound" in str(found)


def test_time_that_ran_out_is_said(case):
    net, X, y = case
    found = evaluate(net, X, y, Threat(0.1), time_limit=-1.0, certify=False)
    assert found.attacks == ()
    assert len(found.notes) == 4
    assert "time ran out: apgd-ce was left out" in str(found)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_iter": 0}, "n_iter must be a whole number of at least 1"),
        ({"step_size": -1.0}, "step_size must be positive"),
        ({"mode": "x"}, "mode must be"),
    ],
)
def test_adversarial_training_names_its_arguments(options, words):
    with pytest.raises(ValueError, match=words):
        AdversarialTraining(Threat(0.1), **options)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "3"])
@pytest.mark.parametrize(
    ("attack", "names"),
    [
        (pgd, ["n_iter", "restarts", "batch_size"]),
        (apgd, ["n_iter", "restarts", "targets", "batch_size"]),
        (fab, ["n_iter", "restarts", "targets", "batch_size"]),
        (minimum_norm, ["n_iter", "targets", "batch_size"]),
        (square, ["n_queries", "batch_size"]),
        (evaluate, ["batch_size"]),
    ],
)
def test_counts_that_are_none_name_their_argument(attack, names, value, case):
    net, X, y = case
    given = (net, X, y) if attack is minimum_norm else (net, X, y, Threat(0.1))
    for name in names:
        with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got"):
            attack(*given, **{name: value})


@pytest.mark.parametrize("value", [0, 1.5, True, None])
def test_steps_of_adversarial_training_are_counted(value):
    with pytest.raises(ValueError, match="n_iter must be a whole number of at least 1, got"):
        AdversarialTraining(Threat(0.1), n_iter=value)
    assert AdversarialTraining(Threat(0.1), n_iter=np.int64(2)).n_iter == 2


def test_p_of_square_is_named(case):
    for p in (0.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match="p must lie above 0 and be 1 at most"):
            square(*case, Threat(0.1), p=p)


class Gives(nn.Module):
    """A layer and what is made of its output."""

    def __init__(self, change):
        super().__init__()
        self.last, self.change = nn.Linear(3, 3), change

    def forward(self, x):
        return self.change(self.last(x))


@pytest.mark.parametrize("attack", EVERY)
@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda z: (z, z), TypeError, "must give a tensor of logits, got tuple"),
        (lambda z: {"logits": z}, TypeError, "got dict.*returns the logits alone"),
        (lambda z: z[:-1], ValueError, r"got shape \(5, 3\) for 6 rows"),
        (lambda z: z.T[:2], ValueError, r"got shape \(2, 6\) for 6 rows"),
        (lambda z: z.flatten(), ValueError, r"got shape \(18,\) for 6 rows"),
        (lambda z: z.sum(), ValueError, r"got shape \(\) for 6 rows"),
        (lambda z: z[:, :, None], ValueError, r"got shape \(6, 3, 1\) for 6 rows"),
    ],
)
def test_outputs_that_are_no_logits_are_named(attack, change, error, words, case):
    with pytest.raises(error, match=words):
        attack(Gives(change), case[1], case[2], Threat(0.1))


@pytest.mark.parametrize("classes", [[0, 1, 1], ["a", "b", "a"]])
def test_classes_that_are_the_same_are_refused(classes, case):
    with pytest.raises(ValueError, match="classes must differ from each other"):
        network(case[0], classes)


class Quiet(nn.Module):
    """Logits without a gradient in the rows."""

    def __init__(self, change):
        super().__init__()
        self.last, self.change = nn.Linear(3, 3), change

    def forward(self, x):
        return self.last(self.change(x))


@pytest.mark.parametrize(
    "change", [lambda x: x.detach(), lambda x: (x > 0).float(), lambda x: torch.ones(len(x), 3)]
)
def test_networks_without_a_gradient_are_named(change, case):
    net, X, y = Quiet(change), case[1], case[2]
    net.last.load_state_dict({"weight": 5.0 * torch.eye(3), "bias": torch.zeros(3)})
    y = net(X).argmax(1)
    words = "no gradient in its rows .* such as square and decision_based"
    for attack in (fgsm, pgd, apgd, fab):
        with pytest.raises(ValueError, match=words):
            attack(net, X, y, Threat(0.1))
    with pytest.raises(ValueError, match=words):
        minimum_norm(net, X, y)
    with pytest.raises(ValueError, match=words):
        AdversarialTraining(Threat(0.1))(X, y, net)
    with pytest.raises(ValueError, match=words):
        adversarial_risk(net, X, y, eps=(0.1,))
    found = evaluate(net, X, y, Threat(0.1), attacks=["square", "decision"])
    assert found.recheck(net, X, y).ok


def test_rechecks_of_other_rows_and_labels_say_so(case):
    net, X, y = case
    found = evaluate(net, X, y, Threat(0.01), attacks=["fgsm"])
    assert found.certified.any()
    for rows, labels in ((X[:3], y[:3]), (X, y[:3]), (X[:3], y)):
        with pytest.raises(ValueError, match="the evaluation is about 6 rows; X has"):
            found.recheck(net, rows, labels)
    with pytest.raises(ValueError, match=r"does not take rows of shape \(5,\)"):
        found.recheck(net, torch.randn(6, 5), y)
    for labels in (y + 7, y - 5, np.array(list("abcabc"))):  # labels that the network does not know
        again = found.recheck(net, X, labels)
        assert again["certified rows"].observed == found.certified.sum()
        assert not again.ok


@pytest.mark.parametrize("kind", [torch.float32, torch.bool, object])
def test_labels_of_any_kind_that_are_the_classes_are_rechecked(kind):
    torch.manual_seed(0)
    net, X = nn.Linear(3, 2), torch.randn(9, 3)
    y = net(X).argmax(1)
    y = y.numpy().astype(object) if kind is object else y.to(kind)
    found = evaluate(net, X, y, Threat(0.05), attacks=["fgsm"])
    assert found.certified.any()
    assert found.recheck(net, X, y).ok


def test_sparse_rows_of_an_estimator_are_evaluated_and_rechecked():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.5)
    y = np.where(X[:, 0] + X[:, 1] > 0, "high", "low")
    model = MLPClassifier(tol=0.1, random_state=0).fit(X, y)
    rows, dense = sp.csr_matrix(X[:9]), X[:9]
    found = evaluate(model, rows, y[:9], Threat(0.1), attacks=["fgsm"], fresh=False)
    assert found.x_adv.shape == (9, 5)
    assert found.recheck(model, rows, y[:9]).ok
    assert found.recheck(model, dense, y[:9]).ok
    same = evaluate(model, dense, y[:9], Threat(0.1), attacks=["fgsm"], fresh=False)
    assert (found.certified == same.certified).all()
    assert (found.robust == same.robust).all()
