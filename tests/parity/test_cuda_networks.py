"""Networks, attacks, bounds and word vectors on a GPU: what the processor says, and what only a GPU can do.

Skipped where there is none: ``PYTHONPATH=src python -m pytest tests/parity/test_cuda_networks.py``.
"""

import copy
import math
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits

import surefit
from surefit.robust import Threat, decision_based, fgsm, pgd

torch = pytest.importorskip("torch")

from surefit.neural_network import MLPClassifier, MLPRegressor  # noqa: E402
from surefit.nn import CNNClassifier, NeuralClassifier  # noqa: E402
from surefit.nn.resnet import resnet20  # noqa: E402
from surefit.nn.train import OutOfMemory, train  # noqa: E402
from surefit.robust import (  # noqa: E402
    AdversarialTraining,
    IntervalTraining,
    RandomizedSmoothing,
    apgd,
    evaluate,
    fab,
    minimum_norm,
    network,
    network_lower,
    square,
)

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
nn = torch.nn
THREAT = Threat(0.1, lower=0.0, upper=1.0)


def cross_entropy(output, target):
    return nn.functional.cross_entropy(output, target, reduction="none")


@cache
def digits():
    X, y = load_digits(return_X_y=True)
    return np.float32(X.reshape(-1, 1, 8, 8) / 16), y


def convolutions(seed=0, norm=nn.BatchNorm2d):
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), norm(12), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(12 * 16, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


@cache
def trained():
    """A network on the processor, and test rows."""
    X, y = digits()
    net = convolutions()
    train(net, (X[:1200], y[:1200]), cross_entropy, epochs=12, lr=3e-3, device="cpu")
    return net, torch.from_numpy(X[1200:1400]), torch.from_numpy(y[1200:1400])


def on_gpu():
    net, X, y = trained()
    return copy.deepcopy(net).cuda(), X.cuda(), y.cuda()


# ------------------------------------------------------------------------------ fits


@pytest.mark.parametrize("solver", ["adam", "sgd", "lbfgs"])
def test_a_perceptron_is_certified_and_answers_as_on_the_processor(solver, tmp_path):
    X, y = digits()
    flat = X.reshape(len(X), -1)
    given = {
        "solver": solver,
        "max_iter": 60,
        "learning_rate_init": 0.01 if solver == "adam" else 0.3,
    }
    model = MLPClassifier((32,), random_state=0, device="cuda", **given).fit(flat, y)
    assert model.certificate_.ok, model.certificate_
    assert surefit.verify(model, flat, y).ok
    assert model.score(flat, y) > 0.95
    before = model.predict_proba(flat)
    surefit.save(model, tmp_path / "model.surefit")
    again = surefit.load(tmp_path / "model.surefit")
    again.set_params(device="cpu")
    np.testing.assert_allclose(again.predict_proba(flat), before, rtol=1e-3, atol=1e-4)
    model.coefs_[0][:] = 0.0  # on a GPU these are copies: the module stays
    np.testing.assert_array_equal(model.predict_proba(flat), before)
    model.module_[-1].bias.data += 0.1 * torch.arange(10.0, device="cuda")
    assert not surefit.verify(model, flat, y).ok


def test_losses_of_a_perceptron_are_the_processor_s():
    X, y = digits()
    flat = X.reshape(len(X), -1).astype(np.float64)
    given = {"hidden_layer_sizes": (16,), "max_iter": 5, "random_state": 0}
    for kind, target in ((MLPClassifier, y), (MLPRegressor, y / 9.0)):
        here = kind(**given, device="cpu").fit(flat, target)
        there = kind(**given, device="cuda").fit(flat, target)
        np.testing.assert_allclose(there.loss_curve_, here.loss_curve_, rtol=1e-9)


def test_estimators_of_pictures():
    X, y = digits()
    for model in (
        CNNClassifier(epochs=20, lr=0.003, random_state=0, device="cuda"),
        NeuralClassifier(convolutions(), epochs=25, random_state=0, device="cuda"),
    ):
        model.fit(X[:1200], y[:1200])
        assert model.certificate_.ok, model.certificate_
        assert model.score(X[1200:], y[1200:]) > 0.9
        assert next(model.module_.parameters()).is_cuda


@pytest.mark.filterwarnings("default")  # of torch's compiler
@pytest.mark.parametrize("compiled", [False, True])
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(compiled, tmp_path):
    X, y = digits()
    given = {"epochs": 4, "batch_size": 100, "schedule": "cosine", "ema": 0.9, "clip": 1.0}
    given |= {"device": "cuda", "compile": compiled, "accumulate": 2}
    calm = train(convolutions(), (X, y), cross_entropy, **given)
    kept = {"checkpoint": tmp_path, "every_steps": 7}
    stopped = train(
        convolutions(), (X, y), cross_entropy, callback=lambda live: live.step > 20, **given | kept
    )
    assert stopped.step < calm.step
    again = train(convolutions(1), (X, y), cross_entropy, **given | kept)
    assert again.history.step_loss == calm.history.step_loss
    differs = {
        name: float((again.state[name] - value).abs().max())
        for name, value in calm.state.items()
        if not torch.equal(again.state[name], value)
    }
    assert not differs


def test_parts_of_a_step_change_nothing_but_rounding():
    X, y = digits()
    flat = X.reshape(len(X), -1).astype(np.float64)
    states = []
    for parts in (1, 5):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10)).double()
        done = train(net, (flat, y), cross_entropy, epochs=2, accumulate=parts, device="cuda")
        states.append(done.state)
    for name, value in states[0].items():
        torch.testing.assert_close(states[1][name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_one_rank_over_nccl_is_no_rank(parallel, monkeypatch):
    for name, value in (("RANK", 0), ("LOCAL_RANK", 0), ("WORLD_SIZE", 1), ("MASTER_PORT", 29517)):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    X, y = digits()
    given = {"epochs": 2, "batch_size": 100, "device": "cuda", "precision": "float32"}
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    other = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    other.load_state_dict(net.state_dict())
    alone = train(net, (X, y), cross_entropy, **given).state
    spread = train(other, (X, y), cross_entropy, parallel=parallel, **given).state
    for name, value in alone.items():
        torch.testing.assert_close(spread[name].to(value), value, rtol=1e-4, atol=1e-5)


def test_rows_that_do_not_fit_are_told_and_fewer_do():
    X = torch.zeros(4096, 3, 32, 32)
    y = torch.zeros(4096, dtype=torch.long)
    given = {"epochs": 1, "batch_size": 4096, "device": "cuda", "max_steps": 1}
    whole = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(3e9 / whole)
    try:
        net = resnet20()
        with pytest.raises(OutOfMemory, match=r"rows at a time do not fit .* accumulate=") as found:
            train(net, (X, y), cross_entropy, **given)
        parts = int(str(found.value).split("accumulate=")[1].split(",")[0])
        assert parts > 1
        train(net, (X, y), cross_entropy, accumulate=parts, **given)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_overflow_in_bfloat16_stops_the_run_and_keeps_the_last_good_weights(tmp_path):
    X, y = digits()

    def loss(output, target):
        return cross_entropy(output, target) * (1e38 if len(seen) > 20 else 1.0) * len(target)

    seen = []
    given = {"epochs": 4, "batch_size": 100, "device": "cuda", "checkpoint": tmp_path}
    with pytest.raises(FloatingPointError, match=r"at step 20 .epoch 1.*The last good checkpoint"):
        train(
            convolutions(),
            (X, y),
            lambda o, t: (seen.append(1), loss(o, t))[1],
            every_steps=5,
            **given,
        )
    again = train(convolutions(), (X, y), cross_entropy, every_steps=5, **given)
    assert all(bool(value.isfinite().all()) for value in again.state.values())


# ------------------------------------------------------------------------------ attacks and bounds


ATTACKS = {
    "fgsm": fgsm,
    "pgd": lambda *a, **k: pgd(*a, n_iter=10, **k),
    "pgd, early": lambda *a, **k: pgd(*a, n_iter=10, stop_early=True, **k),
    "apgd-ce": lambda *a, **k: apgd(*a, n_iter=20, **k),
    "apgd-dlr": lambda *a, **k: apgd(*a, loss="dlr", n_iter=20, **k),
    "apgd-t": lambda *a, **k: apgd(*a, loss="targeted", n_iter=15, targets=3, **k),
    "fab": lambda *a, **k: fab(*a, n_iter=15, targets=3, **k),
    "square": lambda *a, **k: square(*a, n_queries=100, **k),
    "decision": lambda *a, **k: decision_based(*a, n_iter=10, **k),
}


@pytest.mark.parametrize("norm", [math.inf, 2])
@pytest.mark.parametrize("name", ATTACKS)
def test_points_are_allowed_and_wrong_for_the_module_itself(name, norm):
    net, X, y = on_gpu()
    threat = THREAT if norm == math.inf else Threat(0.6, 2, lower=0.0, upper=1.0)
    found = ATTACKS[name](net, X, y, threat, random_state=0)
    here, rows, labels = trained()
    there = ATTACKS[name](here, rows, labels, threat, random_state=0)
    points = torch.as_tensor(found.x_adv)
    with torch.no_grad():
        wrong = (net(points.cuda()).argmax(1) != y).cpu().numpy()
    assert (wrong == np.asarray(found.success)).all()
    delta = (points.cpu().double() - rows.double()).flatten(1)
    size = delta.abs().amax(1) if norm == math.inf else delta.norm(dim=1)
    assert float(size.max()) <= threat.eps
    assert float(points.min()) >= 0
    assert float(points.max()) <= 1
    # steps in bfloat16 end elsewhere, not worse: three standard errors of 200 rows
    assert found.rate >= there.rate - 3 * math.sqrt(0.25 / len(rows))


def test_precisions_of_the_steps_change_no_label_that_is_told():
    net, X, y = on_gpu()
    rates = []
    for precision in ("float32", "bfloat16"):
        found = pgd(network(net, precision=precision), X, y, THREAT, n_iter=10, random_state=0)
        with torch.no_grad():
            wrong = net(torch.as_tensor(found.x_adv).cuda()).argmax(1) != y
        assert (wrong.cpu().numpy() == np.asarray(found.success)).all()
        rates.append(found.rate)
    assert abs(rates[0] - rates[1]) <= 0.1


def test_evaluate_brackets_and_is_checked_again_on_the_processor():
    net, X, y = on_gpu()
    chosen = [ATTACKS[name] for name in ("apgd-ce", "apgd-t", "fab", "square")]
    for attack, name in zip(chosen, ("a", "b", "c", "d"), strict=True):
        attack.__name__ = name
    found = evaluate(net, X[:60], y[:60], THREAT.with_eps(0.03), attacks=chosen)
    assert found.certificate.ok
    assert 0 < found.certified_accuracy <= found.attacked_accuracy
    assert found.recheck(net, X[:60], y[:60]).ok
    here, rows, labels = trained()
    assert found.recheck(here, rows[:60], labels[:60]).ok


def test_distances_are_the_processor_s_nearly():
    net, X, y = on_gpu()
    here, rows, labels = trained()
    there = minimum_norm(network(net, precision="float32"), X[:50], y[:50], n_iter=30)
    near = minimum_norm(here, rows[:50], labels[:50], n_iter=30)
    np.testing.assert_allclose(np.median(there.distance), np.median(near.distance), rtol=0.1)


@pytest.mark.parametrize("method", ["interval", "crown-ibp", "crown", "alpha-crown"])
def test_bounds_are_the_processor_s(method):
    net, X, y = on_gpu()
    here, rows, labels = trained()
    net.double()
    given = {"method": method, "arithmetic": "float64"}
    there = network_lower(net, X[:20].double(), y[:20], THREAT.with_eps(0.02), **given)
    near = network_lower(
        copy.deepcopy(here).double(),
        rows[:20].double(),
        labels[:20],
        THREAT.with_eps(0.02),
        **given,
    )
    np.testing.assert_allclose(np.asarray(there.cpu()), np.asarray(near), rtol=1e-6, atol=1e-8)


def test_bounds_cover_what_the_gpu_s_convolutions_round():
    """TF32 is torch's default there: the margins it gives lie above the bounds at eps = 0."""
    net, X, y = on_gpu()
    lower = network_lower(net, X, y, Threat(0.0), method="crown-ibp")
    with torch.no_grad():
        scores = net(X).double()
    rivals = scores.scatter(1, y[:, None], -math.inf).amax(1)
    assert (lower.to(scores) <= scores.gather(1, y[:, None])[:, 0] - rivals).all()


@pytest.mark.parametrize("sequential", [False, True])
def test_votes_of_smoothing_are_counted_again(sequential):
    net, X, y = on_gpu()
    more = {"radii": (0.1, 0.2)} if sequential else {}
    smooth = RandomizedSmoothing(net, sigma=0.25)
    found = smooth.certify(X[:20], y[:20], n=5000, delta=0.01, sequential=sequential, **more)
    assert found.recheck(net, X[:20]).ok
    assert found.certified_accuracy(0.1) > 0.3


def test_adversarial_and_interval_training_pay():
    X, y = digits()
    rows = X[:1200], y[:1200]
    given = {"epochs": 12, "lr": 3e-3, "device": "cuda"}
    plain, hard, certain = convolutions(), convolutions(), convolutions(norm=nn.Identity)
    train(plain, rows, cross_entropy, **given)
    train(hard, rows, cross_entropy, augment=AdversarialTraining(THREAT), **given)
    wrapped = IntervalTraining(certain, eps=0.05, ramp=80)
    train(wrapped, rows, wrapped.loss, **given | {"epochs": 30})
    tests = torch.from_numpy(X[1200:]).cuda(), torch.from_numpy(y[1200:]).cuda()
    falls = [pgd(net, *tests, THREAT, n_iter=10, random_state=0).rate for net in (plain, hard)]
    assert falls[1] < falls[0] - 0.1
    shares = [
        (network_lower(net, *tests, THREAT.with_eps(0.05), method="crown-ibp") > 0).double().mean()
        for net in (plain, certain)
    ]
    assert shares[1] > shares[0] + 0.1
