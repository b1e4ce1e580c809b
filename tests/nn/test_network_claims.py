"""Certificates of networks: they hold at the fit and notice nudged weights, other data and damaged files."""

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

import surefit
from surefit import Status
from surefit.io import ModelFileError
from surefit.nn import CNNClassifier, MLPClassifier, MLPRegressor, NeuralClassifier, NeuralRegressor
from surefit.nn._network_claims import Problem, network_claims, sample_loss

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def net(n_features, n_outputs):
    return nn.Sequential(nn.Linear(n_features, 16), nn.ReLU(), nn.Linear(16, n_outputs))


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    return X, np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.5]), np.sin(X[:, 0]) + X[:, 1]


def fitted(kind):
    X, y, number = table()
    if kind == "cnn":
        digits = load_digits()
        X, y = digits.images[:200] / 16, digits.target[:200]
    model = {
        "mlp": MLPClassifier((8,), max_iter=30, learning_rate_init=0.05, random_state=0),
        "float32": MLPClassifier(
            (8,), activation="tanh", max_iter=30, learning_rate_init=0.05, random_state=0
        ),
        "lbfgs": MLPRegressor(hidden_layer_sizes=(8,), solver="lbfgs", random_state=0),
        "module": NeuralClassifier(net, epochs=10, batch_size=20, lr=0.01, random_state=0),
        "regressor": NeuralRegressor(net, epochs=10, batch_size=20, lr=0.01, random_state=0),
        "cnn": CNNClassifier(epochs=3, batch_size=50, lr=3e-3, random_state=0),
    }[kind]
    y = number if kind in ("lbfgs", "regressor") else y
    X = X.astype(np.float32) if kind == "float32" else X
    return model.fit(X, y), X, y


KINDS = ["mlp", "float32", "lbfgs", "module", "regressor", "cnn"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_holds_at_the_fit_and_notices_a_nudge_and_other_data(kind):
    model, X, y = fitted(kind)
    assert model.certificate_.ok
    verified = surefit.verify(model, X, y)
    assert verified.ok
    for name in (
        "training loss",
        "sample loss",
        "gradient check",
        "accumulation",
        "gradient norms",
    ):
        assert verified[name].status is Status.HOLDS
    assert verified["optimality"].status is Status.UNDECIDED
    assert "no optimality claim" in verified["optimality"].statement
    nudged = copy.deepcopy(model)
    with torch.no_grad():
        for p in nudged.module_.parameters():
            p += 1e-3 * p.norm() / math.sqrt(p.numel())  # along (1, ..., 1)
    assert "sample loss" in {claim.name for claim in surefit.verify(nudged, X, y).failed}
    other = X.copy()
    other[3] += 0.5
    assert "data" in {claim.name for claim in surefit.verify(model, other, y).failed}
    assert not surefit.verify(model, X, np.roll(y, 1)).ok


def test_a_coefficient_that_is_changed_in_place_is_noticed():
    model, X, y = fitted("mlp")
    model.coefs_[0][0, 0] += 1e-3  # a view of the module's weights
    assert {"training loss", "sample loss"} <= {c.name for c in surefit.verify(model, X, y).failed}


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_a_damaged_file_is_refused(tmp_path, kind):
    model, _, _ = fitted(kind)
    path = tmp_path / "model.surefit"
    model.save(path)
    raw = bytearray(path.read_bytes())
    raw[-5] ^= 1  # in a tensor
    path.write_bytes(raw)
    with pytest.raises(ModelFileError, match="checksum"):
        surefit.load(path)


def cross_entropy(z, t):
    return nn.functional.cross_entropy(z, t, reduction="none")


class Wrong(torch.autograd.Function):
    """The identity with a derivative of 1.001."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return 1.001 * gradient


class Faulty(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.body, self.kind = nn.Linear(5, 3), kind

    def forward(self, x):
        z = self.body(x)
        return Wrong.apply(z) if self.kind == "gradient" else z - z.mean(dim=0)


def problem_of(module):
    X, y, _ = table()
    rows = torch.from_numpy(X)
    found = Problem(
        module=module.double().eval(), inputs=lambda r: rows[r], target=torch.from_numpy(y), weight=None,
        loss=cross_entropy, recorded=0.0,
    )  # fmt: skip
    found.recorded_sample = sample_loss(found)
    return found


def test_a_wrong_derivative_and_a_module_that_looks_across_rows_are_found():
    torch.manual_seed(0)
    claims = {c.name: c for c in network_claims(problem_of(Faulty("gradient")), full=True)}
    assert claims["gradient check"].status is Status.FAILS
    assert claims["accumulation"].status is Status.HOLDS
    claims = {c.name: c for c in network_claims(problem_of(Faulty("rows")), full=True)}
    assert claims["gradient check"].status is Status.HOLDS
    assert claims["accumulation"].status is Status.FAILS


class Ghost(torch.autograd.Function):
    """Zero, with a derivative of 1; or NaN with one of 0."""

    @staticmethod
    def forward(ctx, x, value, slope):
        ctx.slope = slope
        return torch.full_like(x, value)

    @staticmethod
    def backward(ctx, gradient):
        return ctx.slope * gradient, None, None


@pytest.mark.parametrize(
    ("value", "slope", "status"),
    [(0.0, 1.0, "FAILS"), (0.0, 0.0, "HOLDS"), (math.nan, 0.0, "FAILS"), (math.nan, 1.0, "FAILS")],
)
def test_a_gradient_that_differences_say_nothing_of_is_not_shown(value, slope, status):
    """Differences are 0 to the last bit, or NaN: the tolerance is that, too."""
    torch.manual_seed(0)
    problem = problem_of(nn.Linear(5, 3))
    problem.loss = lambda z, t: Ghost.apply(z, value, slope).sum(dim=1)
    claims = {c.name: c for c in network_claims(problem, full=True)}
    assert claims["gradient check"].status.name == status


@pytest.mark.spec("NN-13")
def test_a_dead_layer_is_found():
    torch.manual_seed(0)
    module = net(5, 3)
    nn.init.constant_(module[0].bias, -1e3)  # no ReLU lets anything through
    claims = {c.name: c for c in network_claims(problem_of(module), full=True)}
    assert claims["gradient norms"].status is Status.FAILS


def test_batch_norm_leaves_accumulation_undecided():
    module = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    model = NeuralClassifier(module, random_state=0)
    X, y, _ = table()
    claim = model.fit(X, y).certificate_["accumulation"]
    assert claim.status is Status.UNDECIDED
    assert "batch norm looks across" in claim.statement


def test_the_radius_is_about_rows_that_chose_nothing():
    X, y, _ = table()
    y = (X[:, 0] > 0).astype(int)
    settings = {"epochs": 30, "lr": 0.02, "validation_fraction": 0.25, "random_state": 0}
    model = NeuralClassifier(net, **settings).fit(X, y)
    claim = model.certificate_["test-set radius"]
    assert claim.status is Status.HOLDS
    held = model.validation_rows_
    error = 1 - model.score(X[held], y[held])
    assert claim.estimate == pytest.approx(error)
    assert claim.low == 0
    assert model.held_errors_ == round(error * len(held))
    # Clopper-Pearson: at the bound, so few errors have a probability of 5 %
    from scipy.stats import binom

    assert binom.cdf(round(error * len(held)), len(held), claim.high) == pytest.approx(0.05)
    chosen = NeuralClassifier(net, **settings, patience=2).fit(X, y)
    assert chosen.certificate_["test-set radius"].status is Status.UNDECIDED
    early = MLPClassifier((8,), early_stopping=True, max_iter=5, random_state=0).fit(X, y)
    assert "chose the weights" in early.certificate_["test-set radius"].statement


def test_the_radius_fails_with_other_labels_and_a_forged_record(tmp_path):
    X, y, _ = table()
    y = (X[:, 0] > 0).astype(int)
    settings = {"epochs": 30, "lr": 0.02, "batch_size": 20, "validation_fraction": 0.5}
    model = NeuralClassifier(net, **settings, random_state=0).fit(X, y)
    model.save(tmp_path / "model.surefit")
    again = surefit.load(tmp_path / "model.surefit", module=net)
    assert surefit.verify(again, X, y)["test-set radius"].status is Status.HOLDS
    assert surefit.verify(again, X, 1 - y)["test-set radius"].status is Status.FAILS
    for record in (-1, len(model.validation_rows_) + 1, 0):
        other = copy.deepcopy(model)
        other.held_errors_ = record
        if record == 0:  # and weights that are wrong more often than none of the rows allows
            nn.init.zeros_(other.module_[-1].weight)
        assert surefit.verify(other, X, y)["test-set radius"].status is Status.FAILS
    del other.held_errors_
    assert surefit.verify(other, X, y)["test-set radius"].status is Status.UNDECIDED


@pytest.mark.spec("OPT-16")
def test_the_rate_is_claimed_of_plain_gradient_descent_only():
    X, y, _ = table()
    module = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    settings = {
        "optimizer": "sgd",
        "batch_size": 500,
        "epochs": 100,
        "certify": "full",
        "random_state": 0,
    }
    model = NeuralClassifier(module, lr=0.1, weight_decay=0.01, **settings).fit(X, y)
    claim = model.certificate_["non-convex rate"]
    assert claim.status is Status.HOLDS
    assert "exceeds" not in claim.statement
    far = NeuralClassifier(module, lr=50.0, **settings).fit(X, y)  # beyond 1/L
    claim = far.certificate_["non-convex rate"]
    assert "exceeds 1/L" in claim.statement or claim.status is not Status.HOLDS
    for other in ({"batch_size": 50}, {"optimizer": "adam"}, {"schedule": "cosine"}):
        assert (
            "non-convex rate"
            not in NeuralClassifier(module, **settings | other).fit(X, y).certificate_
        )


@pytest.mark.spec("NN-12")
def test_variance_through_depth_at_fresh_weights():
    X, y, _ = table()
    model = MLPClassifier((32, 32, 32), max_iter=3, random_state=0, certify="full").fit(X, y)
    assert model.certificate_["variance through depth"].status is Status.HOLDS
    cheap = MLPClassifier((32,), max_iter=3, random_state=0).fit(X, y)
    assert cheap.certificate_["variance through depth"].status is Status.UNDECIDED


def deep(gain, n_features, n_outputs):
    """Eight layers of 64, weights from N(0, gain / inputs), biases 0."""
    from surefit.nn.initialisation import he

    sizes = [n_features, *[64] * 8]
    parts = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    return he(nn.Sequential(*parts, nn.Linear(64, n_outputs)), gain=gain)


@pytest.mark.spec("NN-12")
@pytest.mark.parametrize(
    ("gain", "status"),
    [(2.0, "HOLDS"), (0.8, "UNDECIDED"), (0.02, "FAILS"), (200.0, "FAILS")],
)
def test_variance_is_kept_lost_or_neither(gain, status):
    """A gain of v scales the second moment by v / 2 a layer: 0.4^7 is 1/600, 0.01^7 is 1e-14."""
    problem = problem_of(deep(gain, 5, 3))
    problem.fresh = lambda: deep(gain, 5, 3)
    claims = {c.name: c for c in network_claims(problem, full=True)}
    assert claims["variance through depth"].status.name == status


def test_layers_that_begin_at_zero_are_no_failure():
    problem = problem_of(net(5, 3))

    def fresh():
        module = net(5, 3)
        nn.init.zeros_(module[2].weight)
        nn.init.zeros_(module[2].bias)
        return module

    problem.fresh = fresh
    claim = {c.name: c for c in network_claims(problem, full=True)}["variance through depth"]
    assert claim.status is Status.UNDECIDED
    assert "layer 2 puts out zeros" in claim.statement


@pytest.mark.parametrize(
    ("given", "how"),
    [
        (True, {}),
        ("max-autotune", {"mode": "max-autotune"}),
        ("reduce-overhead", {"mode": "reduce-overhead"}),
        ("aot_eager", {"backend": "aot_eager"}),
    ],
)
def test_compile_names_a_mode_or_a_back_end_for_the_claim_too(monkeypatch, given, how):
    asked = []

    def compiler(module, **options):
        asked.append(options)
        return module

    monkeypatch.setattr(torch, "compile", compiler)
    problem = problem_of(net(5, 3))
    problem.compiled = given
    claims = {c.name: c for c in network_claims(problem, full=True)}
    assert claims["compiled against eager"].status is Status.HOLDS
    assert asked == [{"dynamic": False} | how]
    monkeypatch.setattr(torch, "compile", lambda module, **options: lambda x: module(x) + 1e-3)
    claims = {c.name: c for c in network_claims(problem, full=True)}
    assert claims["compiled against eager"].status is Status.FAILS


def test_torch_s_settings_of_products_are_left_as_they_were():
    """allow_tf32 raises an error where the settings were made by fp32_precision; claims read the latter."""
    from surefit.nn._network_claims import _exact_products

    settings = torch.backends.cudnn.conv, torch.backends.cuda.matmul
    kept = [setting.fp32_precision for setting in settings]
    try:
        for value in ("tf32", "ieee"):
            for setting in settings:
                setting.fp32_precision = value
            with _exact_products():
                assert [setting.fp32_precision for setting in settings] == ["ieee", "ieee"]
            assert [setting.fp32_precision for setting in settings] == [value, value]
    finally:
        for setting, value in zip(settings, kept):
            setting.fp32_precision = value


def test_compiled_and_eager_agree():
    X, y, _ = table()
    model = NeuralClassifier(net, compile="aot_eager", epochs=1, random_state=0, certify="full")
    assert model.fit(X, y).certificate_["compiled against eager"].status is Status.HOLDS


class Single(nn.Module):
    """Computes in single precision, whatever it is given."""

    def __init__(self, n_outputs):
        super().__init__()
        self.body = nn.Linear(5, n_outputs)

    def forward(self, x):
        return self.body(x.float() / 2)


@pytest.mark.parametrize("kind", [NeuralClassifier, NeuralRegressor])
def test_a_module_that_cannot_compute_in_double_precision_is_fitted(kind):
    """Claims that need it are open, the others hold and notice a nudge."""
    X, y, number = table()
    model = kind(Single, epochs=30, optimizer="sgd", lr=0.3, batch_size=200, random_state=0)
    y = y if kind is NeuralClassifier else number
    verified = surefit.verify(model.fit(X, y), X, y)
    assert verified.ok
    assert verified["training loss"].status is Status.HOLDS
    for name in (
        "sample loss", "gradient check", "accumulation", "gradient norms", "variance through depth",
        "non-convex rate",
    ):  # fmt: skip
        assert verified[name].status is Status.UNDECIDED
        assert "same dtype" in verified[name].statement
    with torch.no_grad():
        model.module_.body.weight[0] += 1e-2
    assert [claim.name for claim in surefit.verify(model, X, y).failed] == ["training loss"]


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
def test_weight_norms_are_copied_from_a_file(tmp_path):
    def normed(n_features, n_outputs):
        return nn.utils.weight_norm(nn.Linear(n_features, n_outputs))

    X, y, _ = table()
    surefit.save(
        NeuralClassifier(normed, epochs=20, lr=0.1, random_state=0).fit(X, y), tmp_path / "model"
    )
    assert surefit.verify(surefit.load(tmp_path / "model", module=normed), X, y).ok
