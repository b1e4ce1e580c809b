"""The trainer: its loop is the textbook's to the bit, and its options do what they say."""

import contextlib
import functools
import math
import threading
import time
import weakref

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from surefit.distributed import CheckpointError  # noqa: E402
from surefit.nn.batches import row_at  # noqa: E402
from surefit.nn.history import History  # noqa: E402
from surefit.nn.optimizers import decay_groups  # noqa: E402
from surefit.nn.train import NonFiniteLoss, OutOfMemory, accuracy, train  # noqa: E402
from surefit.solvers.schedules import WarmupCosine  # noqa: E402

from .small import cross_entropy, data, equal, net, squared  # noqa: E402

SETTINGS = {"epochs": 3, "batch_size": 32, "lr": 0.01}


def gradients(module, loss, rows, **settings):
    """The gradient that the first step sees, taken from plain descent with rate 1."""
    before = {k: v.clone() for k, v in module.state_dict().items()}
    X, y = rows
    done = train(
        module, (X, y), loss, optimizer="sgd", lr=1.0, max_steps=1, batch_size=len(X), **settings
    )
    return {k: before[k] - done.state[k] for k in before}, done.history.step_loss[0]


def test_the_loop_is_that_of_a_textbook_to_the_bit():
    X, y = data()
    mine = train(
        net(), (X, y), cross_entropy, weight_decay=0.1, schedule="cosine", warmup=4, clip=0.5, seed=7,
        **SETTINGS,
    )  # fmt: skip
    other, n = net(), len(X)
    decay = [p for p in other.parameters() if p.ndim > 1]
    spare = [p for p in other.parameters() if p.ndim == 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": spare, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.01, fused=True)
    rate, t = WarmupCosine(0.01, 12, 4), 0
    for epoch in range(3):
        order = row_at(7, epoch, np.arange(n), n)
        for first in range(0, n, 32):
            rows = torch.from_numpy(order[first : first + 32])
            loss = cross_entropy(other(torch.from_numpy(X)[rows]), torch.from_numpy(y)[rows])
            optimizer.zero_grad()
            (loss.sum() / len(rows)).backward()
            nn.utils.clip_grad_norm_(other.parameters(), 0.5)
            for group in optimizer.param_groups:
                group["lr"] = rate(t)
            optimizer.step()
            t += 1
    assert equal(mine.state, other.state_dict())
    assert mine.step == 12
    assert mine.stop == "all 3 epochs are done"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("parts", [2, 5, 7])
def test_accumulation_changes_neither_loss_nor_gradient(parts, weighted):
    """23 rows in parts of unequal size. Sums of 23 float64 numbers differ by rounding only."""
    X, y = (torch.from_numpy(a[:23]) for a in data())
    weight = np.random.default_rng(1).uniform(0, 3, 23) if weighted else None
    one, value = gradients(net().double(), cross_entropy, (X, y), sample_weight=weight)
    cut, same = gradients(
        net().double(), cross_entropy, (X, y), sample_weight=weight, accumulate=parts
    )
    assert same == pytest.approx(value, rel=1e-13)
    for name, g in one.items():
        torch.testing.assert_close(cut[name], g, rtol=1e-11, atol=1e-13)
    losses = cross_entropy(net().double()(X.double()), y).detach().numpy()
    assert value == pytest.approx(np.average(losses, weights=weight), rel=1e-12)


def test_a_mean_of_means_would_fail_the_test_above():
    X, y = (torch.from_numpy(a[:23]) for a in data())
    losses = cross_entropy(net()(X), y).detach().numpy()
    means = np.mean([part.mean() for part in np.array_split(losses, 5)])
    assert abs(means - losses.mean()) > 1e-4


def test_a_weight_is_a_number_of_copies():
    X, y = (torch.from_numpy(a[:10]) for a in data())
    counts = np.array([0, 1, 2, 3, 1, 1, 0, 2, 1, 1])
    weighed, value = gradients(net().double(), cross_entropy, (X, y), sample_weight=counts)
    copies = torch.from_numpy(np.repeat(np.arange(10), counts))
    copied, same = gradients(net().double(), cross_entropy, (X[copies], y[copies]))
    assert value == pytest.approx(same, rel=1e-13)
    for name, g in copied.items():
        torch.testing.assert_close(weighed[name], g, rtol=1e-11, atol=1e-13)


def test_same_seed_same_bits_and_the_callers_numbers_are_left_alone():
    X, y = data()
    before = torch.get_rng_state()
    runs = [
        train(net(dropout=0.5), (X, y), cross_entropy, seed=seed, **SETTINGS) for seed in (1, 1, 2)
    ]
    assert torch.equal(torch.get_rng_state(), before)
    assert equal(runs[0].state, runs[1].state)
    assert not equal(runs[0].state, runs[2].state)
    assert runs[0].history.step_loss == runs[1].history.step_loss


def threads_of(*functions):
    """Their results, each in a thread of its own."""
    found = [None] * len(functions)

    def keep(k):
        found[k] = functions[k]()

    threads = [threading.Thread(target=keep, args=(k,)) for k in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_runs_in_two_threads_draw_the_same_numbers_as_alone():
    """Each waits for the other between the seed of its first step and the drop-out that is drawn from it."""
    meeting = threading.Barrier(2)

    def meet(x):
        with contextlib.suppress(threading.BrokenBarrierError):  # in turn, there is nobody to meet
            meeting.wait(0.2)
        return x

    def run(module, seed, augment):
        given = SETTINGS | {"seed": seed, "augment": augment}
        return train(module, data(), cross_entropy, **given).state

    alone = [run(net(dropout=0.5), seed, lambda x: x) for seed in (1, 2)]
    runs = [functools.partial(run, net(dropout=0.5), seed, meet) for seed in (1, 2)]
    before = torch.get_rng_state()
    both = threads_of(*runs)
    assert torch.equal(torch.get_rng_state(), before)
    assert meeting.broken
    for mine, theirs in zip(both, alone, strict=True):
        assert equal(mine, theirs)


def test_runs_that_overlap_leave_the_callers_numbers_alone():
    """The second one starts within the first, and ends after it."""
    started, ended = threading.Event(), threading.Event()

    def run(callback):
        return train(net(dropout=0.5), data(), cross_entropy, callback=callback, **SETTINGS)

    def second():
        run(lambda run: started.set() or not ended.wait(60))

    thread = threading.Thread(target=second)

    def first(live):
        if live.step == 4:
            thread.start()
        return not started.wait(60)

    before = torch.get_rng_state()
    assert run(first).step == 12
    ended.set()
    thread.join(60)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_run_within_a_run_leaves_the_numbers_of_its_caller_alone():
    same = []

    def inner(x):
        before = torch.get_rng_state()
        train(net(dropout=0.5), data(), cross_entropy, seed=9, max_steps=1)
        same.append(torch.equal(torch.get_rng_state(), before))
        return x

    given = SETTINGS | {"max_steps": 2, "batch_size": 60}
    plain = train(net(dropout=0.5), data(), cross_entropy, **given)
    for where in ({"augment": inner}, {"callback": inner}):
        before = torch.get_rng_state()
        done = train(net(dropout=0.5), data(), cross_entropy, **given | where)
        assert torch.equal(torch.get_rng_state(), before)
        if "augment" in where:
            assert equal(done.state, plain.state)
    assert same == [True] * 3


def test_a_forked_process_owes_no_run_of_its_parent_anything():
    """The child unwinds the run that it was forked in, and takes turns with nobody."""
    from surefit.nn import _draws

    torch.manual_seed(0)
    before = torch.get_rng_state()
    with _draws.callers_kept(torch.device("cpu")):
        with _draws.drawing(1, torch.device("cpu")):
            _draws._after_fork()  # what the child runs first
        torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), before)
    assert not _draws._runs


def test_losses_read_late_are_the_same(monkeypatch):
    """As on a GPU: losses are kept and read every few steps."""
    from surefit.nn import _run

    X, y = data()
    now = train(net(), (X, y), cross_entropy, **SETTINGS)
    monkeypatch.setattr(_run, "READ_EVERY", 3)
    plain = _run.Run.__post_init__

    def late(self):
        plain(self)
        self.direct = False

    monkeypatch.setattr(_run.Run, "__post_init__", late)
    later = train(net(), (X, y), cross_entropy, **SETTINGS)
    assert equal(now.state, later.state)
    assert now.history.loss == later.history.loss
    assert now.history.step_loss == later.history.step_loss
    X[17] = np.nan
    with pytest.raises(NonFiniteLoss) as caught:
        train(net(), (X, y), cross_entropy, **SETTINGS)
    assert 17 in caught.value.rows
    assert caught.value.epoch == 0


def test_decay_spares_biases_and_norms():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(1, 2, 3), nn.LayerNorm([2, 4, 4])
            self.batch, self.bias = nn.BatchNorm2d(2), nn.Parameter(torch.zeros(2, 2))
            self.tied = self.conv

    module = Odd()
    decayed, spared = decay_groups(module, 0.1)
    assert [id(p) for p in decayed["params"]] == [id(module.conv.weight)]
    assert len(spared["params"]) == 6
    assert spared["weight_decay"] == 0.0

    still = net()  # a loss without a gradient: decay alone moves
    before = {k: v.clone() for k, v in still.state_dict().items()}
    done = train(
        still, data(), lambda o, t: 0.0 * o.sum(dim=1), lr=0.1, weight_decay=0.5, max_steps=1
    )
    for name, value in done.state.items():
        factor = 0.95 if name in ("0.weight", "4.weight") else 1.0
        torch.testing.assert_close(value, factor * before[name], rtol=1e-6, atol=0)


def test_average_of_weights():
    X, y = data()
    seen = []
    done = train(
        net(), (X, y), cross_entropy, ema=0.8, optimizer="sgd", lr=0.1, epochs=6, batch_size=120,
        callback=lambda run: seen.append({k: v.clone() for k, v in run.module.state_dict().items()}),
    )  # fmt: skip
    mean = dict(net().state_dict())
    for t, weights in enumerate(seen):
        keep = min(0.8, (1 + t) / (10 + t))
        mean = {k: keep * mean[k] + (1 - keep) * weights[k] for k in mean}
    for name, value in done.state.items():
        torch.testing.assert_close(value, mean[name], rtol=1e-5, atol=1e-7)


class Shifted(nn.Module):
    """With a parameter of whole numbers, that is not learnt."""

    def __init__(self):
        super().__init__()
        self.body = net()
        self.shift = nn.Parameter(torch.tensor([3, -1]), requires_grad=False)

    def forward(self, x):
        return self.body(x) + self.shift


def test_averages_leave_whole_numbers_alone(tmp_path):
    given = SETTINGS | {"ema": 0.8}
    calm = train(Shifted(), data(), cross_entropy, **given)
    assert calm.state["shift"].tolist() == [3, -1]
    train(Shifted(), data(), cross_entropy, **given | {"epochs": 1}, checkpoint=tmp_path)
    again = train(Shifted(), data(), cross_entropy, **given, checkpoint=tmp_path)
    assert equal(again.state, calm.state)


def test_early_stopping_loads_the_best_weights():
    X, y = data(40)
    kept = []
    done = train(
        net(width=64), (X, y), cross_entropy, epochs=200, batch_size=8, lr=0.02, patience=4,
        validation=data(200, seed=1), metrics={"accuracy": accuracy},
        callback=lambda run: kept.append({k: v.clone() for k, v in run.module.state_dict().items()}),
    )  # fmt: skip
    values = done.history.validation
    best = int(np.argmin(values))
    assert len(values) == best + 5 < 200
    assert done.stop == "the validation loss has not fallen for 4 epochs"
    assert equal(done.state, kept[best])
    assert not equal(done.state, kept[-1])
    V, w = (torch.from_numpy(a) for a in data(200, seed=1))
    with torch.no_grad():
        output = done.module(V)
    assert values[best] == pytest.approx(cross_entropy(output, w).mean().item(), rel=1e-5)
    hits = (output.argmax(1) == w).double().mean().item()
    assert done.history.metrics["accuracy"][best] == pytest.approx(hits, abs=1e-12)


def test_validation_with_and_without_training_metrics():
    X, y = data()
    done = train(net(), (X, y), cross_entropy, metrics={"accuracy": accuracy}, **SETTINGS)
    assert not done.history.validation
    assert len(done.history.metrics["accuracy"]) == 3
    with torch.no_grad():
        hits = (
            accuracy(done.module(torch.from_numpy(X)), torch.from_numpy(y)).double().mean().item()
        )
    assert done.history.metrics["accuracy"][-1] == pytest.approx(hits, abs=1e-12)


@pytest.mark.parametrize(
    "optimizer",
    [
        "adam", "SGD", "sign", "rmsprop", "adagrad", torch.optim.NAdam,
        functools.partial(torch.optim.SGD, momentum=0.9), lambda groups, lr: torch.optim.RAdam(groups, lr),
    ],
)  # fmt: skip
def test_optimisers(optimizer):
    done = train(net(), data(), cross_entropy, optimizer=optimizer, **SETTINGS)
    assert done.history.loss[-1] < done.history.loss[0]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_sparse_gradients_of_embeddings_are_those_of_dense_ones(kind, optimizer):
    """torch has no fused kernels for them. A sum of at most 16 numbers in another order: 16 eps of it."""
    words = np.random.default_rng(0).integers(0, 30, (64, 5))
    found = []
    for sparse in (False, True):
        torch.manual_seed(0)
        table = kind(30, 4, sparse=sparse)
        parts = [nn.Flatten()] if kind is nn.Embedding else []
        head = nn.Linear(20 if parts else 4, 2)
        module = nn.Sequential(table, *parts, head).double()
        done = train(
            module, (words, words[:, 0] % 2), cross_entropy, optimizer=optimizer, lr=0.1,
            epochs=3, batch_size=16,
        )  # fmt: skip
        assert done.history.loss[-1] < done.history.loss[0]
        found.append(done.state)
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-10, atol=1e-12)


@pytest.mark.spec("OPT-9")
def test_sign_descent_moves_every_weight_by_the_rate():
    before = {k: v.clone() for k, v in net().state_dict().items()}
    done = train(net(), data(), cross_entropy, optimizer="sign", lr=0.01, max_steps=1)
    moved = torch.cat([(done.state[k] - before[k]).abs().ravel() for k in before])
    assert (moved > 0).any()
    torch.testing.assert_close(
        moved[moved > 0], torch.full_like(moved[moved > 0], 0.01), rtol=1e-4, atol=1e-7
    )


def test_clipping_limits_the_step():
    step = {}
    for clip in (None, 0.01):
        g, _ = gradients(net(), cross_entropy, [torch.from_numpy(a) for a in data()], clip=clip)
        step[clip] = math.sqrt(sum(v.double().square().sum().item() for v in g.values()))
    assert step[None] > 0.02
    assert step[0.01] == pytest.approx(0.01, rel=1e-3)


def test_compiled_is_the_same_to_rounding():
    X, y = data()
    plain = train(net(), (X, y), cross_entropy, **SETTINGS)
    compiled = train(net(), (X, y), cross_entropy, compile="aot_eager", **SETTINGS)
    for name, value in plain.state.items():
        torch.testing.assert_close(compiled.state[name], value, rtol=1e-4, atol=1e-5)


def test_bfloat16_trains_float32_weights():
    done = train(net(), data(), cross_entropy, precision="bf16", **SETTINGS)
    assert done.state["0.weight"].dtype == torch.float32
    assert done.history.loss[-1] < done.history.loss[0]
    plain = train(net(), data(), cross_entropy, **SETTINGS)
    assert not equal(done.state, plain.state)  # it did compute in fewer digits


def test_augmentation_sees_rows_and_epochs():
    X, y = data(16)
    seen = []

    def by_row(x, *, seed, epoch, index):
        assert np.array_equal(x.numpy(), X[index])
        seen.append((seed, epoch, tuple(index)))
        return x

    train(
        net(), (X, y), cross_entropy, epochs=2, batch_size=16, accumulate=2, augment=by_row, seed=5
    )
    assert [(s, e, len(rows)) for s, e, rows in seen] == [
        (5, 0, 8),
        (5, 0, 8),
        (5, 1, 8),
        (5, 1, 8),
    ]
    plain = train(net(), (X, y), cross_entropy, epochs=2)
    moved = train(net(), (X, y), cross_entropy, epochs=2, augment=lambda x: x + torch.randn_like(x))
    assert not equal(plain.state, moved.state)


def test_an_input_is_its_own_target():
    X = data()[0]
    module = nn.Linear(6, 6)
    done = train(module, X, squared, epochs=40, batch_size=40, lr=0.05)
    assert done.history.loss[-1] < 0.1 * done.history.loss[0]


# ---------------------------------------------------------------------- ends and words


def test_how_a_run_ends():
    X, y = data()
    run = functools.partial(train, net(), (X, y), cross_entropy, batch_size=32)
    assert run(max_steps=5).stop == "all 5 steps are done"
    assert run(callback=lambda run: run.step >= 8).stop == "the callback asked to stop"

    def slow(output, target):
        time.sleep(0.02)
        return cross_entropy(output, target)

    done = train(net(), (X, y), slow, epochs=10_000, max_time=0.1)
    assert done.stop == "max_time=0.1 seconds have passed"
    assert done.step < 10


def test_progress_in_lines_or_none(capsys):
    train(net(), data(), cross_entropy, **SETTINGS)
    assert capsys.readouterr() == ("", "")
    train(net(), data(), cross_entropy, verbose=1, **SETTINGS)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("epoch 1, loss 0.")
    assert lines[-1].endswith("0 s left")


def test_history_plots_itself_and_returns_from_a_file():
    done = train(net(), data(), cross_entropy, validation=data(seed=3), **SETTINGS)
    axes = done.history.plot()
    assert [line.get_label() for line in axes.lines][:2] == ["training", "validation"]
    assert list(axes.lines[0].get_ydata()) == done.history.loss
    assert len(axes.figure.axes) == 1
    measured = train(net(), data(), cross_entropy, metrics={"right": accuracy}, **SETTINGS)
    below = measured.history.plot().figure.axes[1]
    assert list(below.lines[0].get_ydata()) == measured.history.metrics["right"]
    assert below.get_ylabel() == "on training rows"
    assert all(float(label.get_text()) % 1 == 0 for label in below.get_xticklabels())
    assert measured.history.plot(axes) is axes
    again = History.from_dict(done.history.to_dict())
    assert again == done.history
    assert str(again).count("\n") == 3
    assert done.history.steps == [4, 8, 12]
    assert len(done.history.step_loss) == 12
    weights = [32, 32, 32, 24]
    assert done.history.loss[0] == pytest.approx(
        np.average(done.history.step_loss[:4], weights=weights)
    )


# ---------------------------------------------------------------------- faults


def test_nan_stops_names_the_step_and_keeps_the_weights(tmp_path):
    X, y = data()
    X[77] = np.inf
    module = net()
    with pytest.raises(NonFiniteLoss, match="is nan at step") as caught:
        train(module, (X, y), cross_entropy, checkpoint=tmp_path, every_steps=1, seed=3, **SETTINGS)
    order = row_at(3, 0, np.arange(120), 120).tolist()
    assert caught.value.step == order.index(77) // 32
    assert caught.value.epoch == 0
    assert 77 in caught.value.rows
    assert all(torch.isfinite(p).all() for p in module.parameters())
    if caught.value.step:
        name = f"step-{caught.value.step:012d}.safetensors"
        assert name in str(caught.value)
        assert (tmp_path / name).exists()


def test_an_infinite_gradient_is_named():
    def steep(output, target):
        return output[:, 0].abs().sqrt() * 0  # 0 * inf at 0

    module = nn.Linear(6, 2, bias=False)
    nn.init.zeros_(module.weight)
    with pytest.raises(NonFiniteLoss, match="the norm of the gradient is nan at step 0"):
        train(module, data(), steep, clip=1.0)


def test_batch_norm_of_a_single_row_says_what_to_choose():
    module = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    words = r"no variance over 1 row: of 21 rows, batch_size=5 leaves a step of 1, in 1 part"
    with pytest.raises(ValueError, match=words) as caught:
        train(module, data(21), cross_entropy, batch_size=5)
    assert "Choose a batch_size that leaves more" in str(caught.value)
    with pytest.raises(ValueError, match=r"batch_size=5 leaves a step of 5, in 4 part.*accumulate"):
        train(module, data(20), cross_entropy, batch_size=5, accumulate=4)
    train(module, data(21), cross_entropy, batch_size=7)  # the advice works

    def fault(output, target):
        raise ValueError("of the loss itself")

    with pytest.raises(ValueError, match=r"^of the loss itself$"):
        train(module, data(21), fault, batch_size=7)


@pytest.mark.parametrize("wrong", [lambda o, t: o.mean(), lambda o, t: o, lambda o, t: 0.5])
def test_a_metric_of_the_wrong_shape_is_named(wrong):
    metrics = {"accuracy": accuracy, "hits": wrong}
    words = r"^metrics\['hits'\] must give one number a sample, shape \(120,\), got shape"
    with pytest.raises(ValueError, match=words):
        train(net(), data(), cross_entropy, metrics=metrics)
    with pytest.raises(ValueError, match=r"^loss must give one number a sample"):
        train(net(), data(), wrong)


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError])
def test_out_of_memory_says_what_fits(error):
    seen = []

    def heavy(output, target):
        # what did not fit is given back before the next try
        assert all(other() is None for other in seen)
        seen.append(weakref.ref(output))
        if len(output) > 30:
            raise error("no room")
        return cross_entropy(output, target)

    with pytest.raises(
        OutOfMemory, match=r"100 rows at a time do not fit.*25 do: pass accumulate=4"
    ):
        train(net(), data(), heavy, batch_size=100)
    done = train(net(), data(), heavy, batch_size=100, accumulate=4, epochs=1)  # the advice works
    assert done.step == 2

    def hopeless(output, target):
        raise error("no room")

    with pytest.raises(OutOfMemory, match="a single row does not either"):
        train(net(), data(), hopeless, batch_size=100)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": nn.CrossEntropyLoss()}, r"shape \(120,\), got shape \(\).*reduction"),
        ({"optimizer": "adamv"}, "optimizer must be 'sign', 'adam'"),
        ({"optimizer": 3}, "functools.partial"),
        ({"optimizer": torch.optim.LBFGS}, "LBFGS|parameter groups"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"clip": -1.0}, "clip must be positive"),
        ({"ema": 1.0}, r"ema must be in \[0, 1\)"),
        ({"precision": "fp8"}, "precision must be 'auto'"),
        ({"patience": 3}, "needs validation data"),
        ({"accumulate": 0}, "accumulate must be a whole number of at least 1"),
        ({"parallel": "tensor"}, "parallel must be None, 'ddp' or 'fsdp'"),
        ({"weight_decay": -1.0}, "weight_decay must be finite"),
        ({"keep": 0, "checkpoint": "unused"}, "keep must be a whole number of at least 1"),
    ],
)
def test_wrong_settings(settings, words):
    given = {"loss": cross_entropy, "batch_size": 120} | settings
    with pytest.raises((ValueError, TypeError), match=words):
        train(net(), data(), given.pop("loss"), **given)


@pytest.mark.parametrize("value", [1.5, 2.0, True, "3", math.nan])
@pytest.mark.parametrize(
    "name", ["epochs", "batch_size", "accumulate", "keep", "patience", "every_steps", "max_steps", "seed"]
)  # fmt: skip
def test_whole_numbers_are_asked_for_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be a whole number.*got {value!r}"):
        train(net(), data(), cross_entropy, validation=data(), **{name: value})


def test_whole_numbers_may_be_numpy_s():
    given = {"epochs": np.int64(2), "batch_size": np.int32(60), "seed": np.int64(-3)}
    done = train(net(), data(), cross_entropy, **given)
    same = train(net(), data(), cross_entropy, epochs=2, batch_size=60, seed=-3)
    assert equal(done.state, same.state)


def test_groups_of_one_s_own_keep_their_share_of_the_rate(tmp_path):
    """A tenth of the rate for the first layer: as a run in which its gradients are a tenth."""

    def head_and_body(groups, lr, share=0.1):
        body = {id(p) for p in module[0].parameters()}
        every = [p for group in groups for p in group["params"]]
        apart = [[p for p in every if (id(p) in body) is inside] for inside in (True, False)]
        return torch.optim.SGD(
            [{"params": apart[0], "lr": share * lr}, {"params": apart[1]}], lr=lr
        )

    given = {"schedule": "cosine", "epochs": 2, "batch_size": 40, "lr": 0.5}
    module = net()
    calm = train(module, data(), cross_entropy, optimizer=head_and_body, **given)
    tenth = net()
    for p in tenth[0].parameters():
        p.register_hook(lambda gradient: 0.1 * gradient)
    other = train(tenth, data(), cross_entropy, optimizer="sgd", **given)
    for name, value in calm.state.items():  # six steps in single precision
        torch.testing.assert_close(value, other.state[name], rtol=1e-5, atol=1e-6)
    assert calm.history.lr == other.history.lr
    module = net()
    folder = {"checkpoint": tmp_path, **given}
    train(module, data(), cross_entropy, optimizer=head_and_body, max_time=1e-9, **folder)
    module = net()
    more = functools.partial(head_and_body, share=0.2)
    with pytest.raises(CheckpointError, match=r"share=\[0\.2, 1\.0\] \(the checkpoint has \[0\.1"):
        train(module, data(), cross_entropy, optimizer=more, **folder)
    again = train(module, data(), cross_entropy, optimizer=head_and_body, **folder)
    assert equal(again.state, calm.state)


@pytest.mark.parametrize(("name", "value"), [("lr", 0.5), ("weight_decay", 0.1)])
def test_settings_of_an_optimiser_that_would_be_replaced_are_told(name, value):
    own = functools.partial(torch.optim.SGD, **{name: value})
    with pytest.raises(ValueError, match=f"optimizer has {name}={value}, .*: pass {name}={value}"):
        train(net(), data(), cross_entropy, optimizer=own)
    given = {"epochs": 1, name: value}
    found = [
        train(net(), data(), cross_entropy, optimizer=kind, **given).state
        for kind in (own, torch.optim.SGD)
    ]
    assert equal(*found)


def test_gradients_left_in_a_module_are_not_part_of_the_first_step():
    X, y = data()
    module, fresh = net(), net()
    cross_entropy(module(torch.from_numpy(X)), torch.from_numpy(y)).sum().backward()
    found = [train(m, (X, y), cross_entropy, epochs=1).state for m in (module, fresh)]
    assert equal(*found)


def test_lazy_layers_are_called_first():
    X, y = data()
    lazy = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2))
    with pytest.raises(ValueError, match="module has lazy layers"):
        train(lazy, (X, y), cross_entropy)
    lazy(torch.from_numpy(X[:2]))
    assert train(lazy, (X, y), cross_entropy, epochs=1).stop == "all 1 epochs are done"


def test_nothing_to_learn():
    module = net()
    for p in module.parameters():
        p.requires_grad_(False)
    with pytest.raises(ValueError, match="no parameter that requires a gradient"):
        train(module, data(), cross_entropy)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_gpu_here():
    with pytest.raises(ValueError, match="no CUDA device here; use device='cpu'"):
        train(net(), data(), cross_entropy, device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_as_on_the_processor_to_rounding():
    X, y = data()
    here = train(net(), (X, y), cross_entropy, device="cpu", **SETTINGS)
    there = train(net(), (X, y), cross_entropy, precision="float32", device="cuda", **SETTINGS)
    for name, value in here.state.items():
        torch.testing.assert_close(there.state[name].cpu(), value, rtol=1e-3, atol=1e-4)


def test_validation_rows_may_have_weights():
    """As often as their weights say."""
    X, y = data()
    held, times = slice(0, 40), np.arange(40) % 3
    repeated = np.repeat(np.arange(40), times)
    looks = [(X[held], y[held], times), [X[held], y[held], 2.0 * times], (X[repeated], y[repeated])]
    runs = [
        train(net(), (X, y), cross_entropy, epochs=2, validation=look, metrics={"right": accuracy})
        for look in looks
    ]
    for run in runs[:2]:
        # sums of 40 numbers of order 1 in another order, in double precision
        np.testing.assert_allclose(run.history.validation, runs[2].history.validation, rtol=1e-6)
        np.testing.assert_allclose(
            run.history.metrics["right"], runs[2].history.metrics["right"], rtol=1e-12
        )
    plain = train(net(), (X, y), cross_entropy, epochs=2, validation=(X[held], y[held]))
    assert plain.history.validation != runs[0].history.validation


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"optimizer": "adamw"}, "optimizer='adamw' with weight_decay=0 does not take"),
        ({"optimizer": "sgd", "weight_decay": 0.1}, "with weight_decay=0.1 does not take"),
        ({"optimizer": "sgd", "clip": 1.0}, "clip=1.0 needs dense gradients"),
    ],
)
def test_sparse_gradients_that_cannot_be_used_are_told_before_a_step(settings, words):
    module = nn.Sequential(nn.Embedding(5, 2, sparse=True), nn.Flatten(), nn.Linear(4, 2))
    words_of = np.random.default_rng(0).integers(0, 5, (8, 2))
    with pytest.raises(ValueError, match=words):
        train(module, (words_of, words_of[:, 0] % 2), cross_entropy, **settings)


@pytest.mark.parametrize("rest", [{}, {"ema": 0.5}, {"patience": 5}])
def test_validation_is_in_evaluation_mode(rest):
    """Without dropout and with running means: the loss on record is that of the weights as they predict."""
    module = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 2))
    held = data(40, seed=1)
    done = train(module, data(), cross_entropy, epochs=1, batch_size=40, validation=held, **rest)
    with torch.no_grad():
        output = module.eval()(torch.from_numpy(held[0]))
        loss = float(cross_entropy(output, torch.from_numpy(held[1])).mean())
    assert done.history.validation == pytest.approx([loss], rel=1e-6)
    assert done.history.last()["validation"] == pytest.approx(loss, rel=1e-6)
