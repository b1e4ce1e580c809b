"""A run that was stopped, anyhow and anywhere, ends as if it had not been: to the bit."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from surefit.distributed import CheckpointError  # noqa: E402
from surefit.nn import _step  # noqa: E402
from surefit.nn.checkpoints import Checkpoints  # noqa: E402
from surefit.nn.train import accuracy, train  # noqa: E402

from .small import cross_entropy, data, equal, net  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FULL = {
    "epochs": 5, "batch_size": 32, "lr": 0.02, "weight_decay": 0.1, "schedule": "cosine", "warmup": 3,
    "ema": 0.9, "clip": 1.0, "accumulate": 2, "seed": 4, "metrics": {"accuracy": accuracy},
}  # fmt: skip


class Stopped(Exception):
    pass


@contextlib.contextmanager
def stopping(after):
    """Break off a run that asks for the losses of more than so many parts; the loss stays as it is."""
    seen, plain = [0], _step.per_sample

    def counted(loss, output, target, n, name="loss"):
        seen[0] += output.requires_grad
        if seen[0] > after:
            raise Stopped
        return plain(loss, output, target, n, name)

    _step.per_sample = counted
    try:
        yield
    finally:
        _step.per_sample = plain


def run(loss=cross_entropy, **settings):
    return train(net(dropout=0.3), data(), loss, validation=data(60, seed=1), **FULL | settings)


def same(first, second):
    assert equal(first.state, second.state)
    ours, theirs = first.history.to_dict(), second.history.to_dict()
    for key in ("steps", "epochs", "loss", "lr", "validation", "metrics", "step_loss"):
        assert ours[key] == theirs[key], key
    assert first.stop == second.stop
    assert first.step == second.step


@pytest.mark.parametrize("after", [1, 7, 12, 16, 25, 38])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_stopped_anywhere(after, optimizer, tmp_path):
    """Within an epoch, at its end, in the warm-up, before the first checkpoint; with dropout and averages."""
    if optimizer == "sgd":
        from functools import partial

        optimizer = partial(torch.optim.SGD, momentum=0.9)
    calm = run(optimizer=optimizer)
    with pytest.raises(Stopped), stopping(after):
        run(optimizer=optimizer, checkpoint=tmp_path, every_steps=3)
    again = run(optimizer=optimizer, checkpoint=tmp_path, every_steps=3)
    same(again, calm)
    same(run(optimizer=optimizer, checkpoint=tmp_path), calm)  # it is done: nothing is left to do


def test_stopped_again_and_again(tmp_path):
    calm = run()
    for _ in range(30):
        try:
            with stopping(5):
                done = run(checkpoint=tmp_path, every_steps=1)
            break
        except Stopped:
            continue
    same(done, calm)


def test_the_other_way_of_stopping(tmp_path):
    """By the clock, with a last checkpoint where it stopped; checkpoints by the clock as well."""
    calm = run()
    part = run(checkpoint=tmp_path, max_time=1e-9, every_minutes=1e-9)
    assert part.step == 1
    assert part.stop.startswith("max_time")
    same(run(checkpoint=tmp_path), calm)


def test_early_stopping_goes_on_waiting(tmp_path):
    settings = {"epochs": 60, "patience": 3, "lr": 0.1, "warmup": 0}
    calm = run(**settings)
    assert "not fallen for 3" in calm.stop
    assert calm.step < 200
    for after in (2 * (calm.step - 9), 2 * (calm.step - 2)):
        with pytest.raises(Stopped), stopping(after):
            run(checkpoint=tmp_path / str(after), every_steps=2, **settings)
        same(run(checkpoint=tmp_path / str(after), **settings), calm)
    same(run(checkpoint=tmp_path / str(after), **settings), calm)


def test_without_resume_it_starts_afresh(tmp_path):
    """What the run before left does not outlive the first checkpoint of the new one."""
    run(checkpoint=tmp_path, seed=9)
    with pytest.raises(Stopped), stopping(7):
        run(checkpoint=tmp_path, every_steps=2, resume=False)
    assert [path.name[5:17] for path in Checkpoints(tmp_path).files()] == ["000000000002"]
    same(run(checkpoint=tmp_path), run())


def test_weights_that_are_not_finite_are_not_kept(tmp_path):
    """A gradient that is infinite in the last step: its loss was finite, and no loss comes after it."""
    from surefit.nn.train import NonFiniteLoss

    def loss(output, target):
        value = cross_entropy(output, target)
        if seen.pop():
            total = output.sum(dim=1)
            value = value + (total - total.detach()).sqrt()  # 0, of infinite slope
        return value

    given = FULL | dict.fromkeys(("clip", "ema", "metrics"))
    given |= {"max_steps": 3, "accumulate": 1, "warmup": 0, "every_steps": 1}
    for folder in (None, tmp_path):
        seen = [True, False, False]
        with pytest.raises(NonFiniteLoss, match="weights are no longer finite at step 2"):
            train(net(), data(), loss, **given, checkpoint=folder)
    assert [path.name[5:17] for path in Checkpoints(tmp_path).files()] == [
        "000000000001",
        "000000000002",
    ]


def test_moments_left_out_would_be_noticed(tmp_path):
    """The test above can fail: without the optimiser's moments the weights differ."""
    from surefit.nn.checkpoints import read, write

    calm = run()
    with pytest.raises(Stopped), stopping(20):
        run(checkpoint=tmp_path, every_steps=1)
    path = Checkpoints(tmp_path).files()[-1]
    state = read(path)
    for entry in state["optimizer"].values():
        entry["exp_avg"].zero_()
    write(path, state)
    assert not equal(run(checkpoint=tmp_path).state, calm.state)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 5}, r"seed=5 \(the checkpoint has 4\)"),
        ({"batch_size": 31}, r"batch_size=31 \(the checkpoint has 32\)"),
        ({"optimizer": "adam"}, "optimizer='Adam'"),
        ({"ema": None}, r"ema=None \(the checkpoint has 0\.9\)"),
    ],
)
def test_a_checkpoint_of_another_run(changed, words, tmp_path):
    run(checkpoint=tmp_path, max_time=1e-9)
    with pytest.raises(CheckpointError, match=words):
        run(checkpoint=tmp_path, **changed)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"lr": 0.01}, "lr=0.01 (the checkpoint has 0.02)"),
        ({"weight_decay": 0}, "weight_decay=0.0 (the checkpoint has 0.1)"),
        ({"warmup": 2}, "warmup=2.0 (the checkpoint has 3.0)"),
        ({"schedule": "linear"}, "schedule='linear' (the checkpoint has 'cosine')"),
        ({"schedule": lambda step: 0.1}, "schedule='a function' (the checkpoint has 'cosine')"),
        ({"clip": 2.0}, "clip=2.0 (the checkpoint has 1.0)"),
        ({"clip": None}, "clip=None (the checkpoint has 1.0)"),
        ({"ema": 0.5}, "ema=0.5 (the checkpoint has 0.9)"),
        ({"lr": 0.01, "clip": 2.0}, "lr=0.01 (the checkpoint has 0.02), clip=2.0 (the checkpoint has 1.0)"),
    ],
    ids=lambda given: None if isinstance(given, str) else "-".join(given),
)  # fmt: skip
def test_steps_go_on_as_they_began_or_not_at_all(changed, words, tmp_path):
    """The error names what differs, and that alone."""
    run(checkpoint=tmp_path, max_time=1e-9)
    with pytest.raises(CheckpointError) as caught:
        run(checkpoint=tmp_path, **changed)
    assert f"is of another run: {words}. Use the settings it has" in str(caught.value)


def test_other_data_or_weights_are_another_run(tmp_path):
    X, y = data()
    settings = {"epochs": 1, "batch_size": 32, "checkpoint": tmp_path}
    first = train(net(), (X, y), cross_entropy, **settings)
    moved = X.copy()
    moved[-1, 2] += 1
    given = [
        {"data": (moved, y)}, {"data": (X, 1 - y)}, {"data": (X[::-1], y[::-1])},
        {"data": (X, y), "sample_weight": np.linspace(1, 2, 120)},
    ]  # fmt: skip
    for other in given:
        with pytest.raises(
            CheckpointError, match=r"another run: data='\w+' \(the checkpoint has '"
        ):
            train(net(), loss=cross_entropy, **other, **settings)
    same = train(net(), (X.astype(float), torch.from_numpy(y)), cross_entropy, **settings)
    assert equal(same.state, first.state)


class Pairs(torch.utils.data.Dataset):
    def __init__(self):
        self.X, self.y = data()

    def __len__(self):
        return len(self.X)

    def __getitem__(self, row):
        return self.X[row], self.y[row]


def test_numbers_of_another_type_are_another_run(tmp_path):
    """Averages and moments keep theirs, which steps of other weights cannot use."""
    settings = {"ema": 0.9, "checkpoint": tmp_path}
    train(net(), Pairs(), cross_entropy, epochs=1, **settings)
    with pytest.raises(
        CheckpointError, match=r"dtype='torch.float64' \(the checkpoint has 'torch.fl"
    ):
        train(net().double(), Pairs(), cross_entropy, epochs=2, **settings)


def test_weights_that_learnt_and_are_now_held_still_are_named(tmp_path):
    run(checkpoint=tmp_path, max_time=1e-9)
    still = net(dropout=0.3)
    still[0].requires_grad_(False)
    with pytest.raises(CheckpointError, match=r"0\.weight, 0\.bias learnt there"):
        train(still, data(), cross_entropy, checkpoint=tmp_path, **FULL)


def test_a_checkpoint_beyond_the_end_says_so(tmp_path):
    """120 rows in steps of 32 are 4 steps an epoch."""
    whole = run(checkpoint=tmp_path, schedule="constant")
    short = run(checkpoint=tmp_path, schedule="constant", epochs=2)
    assert (short.step, short.stop) == (
        20, "its checkpoint is of step 20, beyond the 8 steps of this run",
    )  # fmt: skip
    assert equal(short.state, whole.state)
    assert run(checkpoint=tmp_path, schedule="constant").stop == "all 5 epochs are done"


class Slowing(torch.optim.SGD):
    """Keeps in its groups how many steps it took, a factor as a tensor, and what it does in words."""

    def __init__(self, groups, lr):
        super().__init__(groups, lr=lr, momentum=0.9)
        for group in self.param_groups:
            group |= {"count": 0, "factor": torch.tensor(1.0), "now": "begins"}

    def step(self, closure=None):
        for group in self.param_groups:
            group["count"] += 1
            group["factor"] *= 0.9
            group["lr"] *= float(group["factor"]) / group["count"]
            if group["now"] == "begins":
                group["lr"] *= 0.1
            group["now"] = "goes on"
        return super().step(closure)


@pytest.mark.parametrize("after", [7, 25])
def test_settings_that_an_optimiser_changes_itself_are_kept(after, tmp_path):
    calm = run(optimizer=Slowing)
    with pytest.raises(Stopped), stopping(after):
        run(optimizer=Slowing, checkpoint=tmp_path, every_steps=3)
    same(run(optimizer=Slowing, checkpoint=tmp_path), calm)


class Exact(torch.optim.Optimizer):
    """Weights in bfloat16 that are roundings of others in float64; and a mean of slopes in float32."""

    def __init__(self, groups, lr):
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["exact"], state["mean"] = p.double(), torch.zeros((), dtype=torch.float32)
                state["mean"].lerp_(p.grad.float().mean(), 0.1)
                state["exact"] -= group["lr"] * (p.grad.double() + state["mean"])
                p.copy_(state["exact"])


def test_moments_in_other_numbers_than_the_weights_are_kept(tmp_path):
    def run(epochs, **more):
        module = net(dropout=0.3).to(torch.bfloat16)
        given = {"optimizer": Exact, "lr": 0.01, "batch_size": 32, "epochs": epochs} | more
        return train(module, data(), cross_entropy, **given)

    calm = run(4)
    run(1, checkpoint=tmp_path)
    assert equal(run(4, checkpoint=tmp_path).state, calm.state)


def test_a_checkpoint_of_another_architecture(tmp_path):
    run(checkpoint=tmp_path, max_time=1e-9)
    wider = net(width=20)
    with pytest.raises(CheckpointError) as caught:
        train(wider, data(), cross_entropy, checkpoint=tmp_path, **FULL)
    assert "0.weight: (20, 6) in the module, (16, 6) in the checkpoint" in str(caught.value)
    other = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Linear(16, 2))
    with pytest.raises(CheckpointError) as caught:
        train(other, data(), cross_entropy, checkpoint=tmp_path, **FULL)
    assert "4.weight: not in the module" in str(caught.value)
    assert "1.weight: (2, 16) in the module, (16,) in the checkpoint" in str(caught.value)


JOB = """
import os, signal, sys, torch
from pathlib import Path
from tests.nn import test_resume as job
from surefit.nn import _step, checkpoints

folder, where, after = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
marker = folder / f"killed-{where}"
torch.set_num_threads(1)


def die(*_):
    if not marker.exists():
        marker.write_text("once", encoding="utf8")
        os.kill(os.getpid(), signal.SIGKILL)


if where == "step":
    plain, seen = _step.per_sample, [0]
    def per_sample(loss, output, *given):
        seen[0] += output.requires_grad
        if seen[0] > after:
            die()
        return plain(loss, output, *given)
    _step.per_sample = per_sample
else:
    plain, seen = os.fsync, [0]
    def fsync(descriptor):
        seen[0] += 1
        if seen[0] > after:  # the file is written in part or whole, not yet in its place
            if where == "part":
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            die()
        return plain(descriptor)
    os.fsync = fsync
done = job.run(checkpoint=folder / "kept", every_steps=2)
torch.save({"state": done.state, "history": done.history.step_loss}, folder / "done.pt")
"""


@pytest.mark.parametrize(("where", "after"), [("step", 21), ("part", 5), ("whole", 6)])
def test_sigkill_in_a_step_and_in_a_checkpoint(where, after, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as below: sums are equal to the bit at equal threads
    try:
        calm = run()
    finally:
        torch.set_num_threads(threads)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-c", JOB, str(tmp_path), where, str(after)]

    def start():
        return subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    assert start().returncode == -signal.SIGKILL
    left = Checkpoints(tmp_path / "kept")
    assert left.files()
    assert left.latest() is not None
    if where != "step":
        assert list((tmp_path / "kept").glob(".surefit-*.tmp"))  # what was being written
    done = start()
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "kept").glob(".surefit-*.tmp"))
    found = torch.load(tmp_path / "done.pt", weights_only=True)
    assert found["history"] == calm.history.step_loss
    assert equal(found["state"], calm.state)
    assert np.isfinite(calm.history.loss).all()


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"momentum": 0.9}, {"momentum": 0.5}, r"momentum=0\.5 \(the checkpoint has 0\.9\)"),
        ({"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}, r"nesterov=True"),
        (
            {"betas": (0.9, 0.99)},
            {"betas": (0.8, 0.99)},
            r"betas=\[0\.8, 0\.99\] \(the checkpoint has",
        ),
    ],
)
def test_an_optimiser_with_other_settings_is_of_another_run(first, second, words, tmp_path):
    kind = torch.optim.Adam if "betas" in first else torch.optim.SGD
    runs = [
        {"optimizer": functools.partial(kind, **given), "batch_size": 32, "epochs": epochs}
        for given, epochs in ((first, 1), (second, 2), (first | {"foreach": True}, 2))
    ]
    train(net(), data(), cross_entropy, checkpoint=tmp_path, **runs[0])
    with pytest.raises(CheckpointError, match=words):
        train(net(), data(), cross_entropy, checkpoint=tmp_path, **runs[1])
    done = train(net(), data(), cross_entropy, checkpoint=tmp_path, **runs[2])
    assert done.history.epochs[-1] == 2  # how a step is computed may change


class Counting(nn.Module):
    """Counts its passes in training, in what ``get_extra_state`` gives, and computes with the count."""

    def __init__(self):
        super().__init__()
        self.inner, self.count = net(), 0

    def forward(self, x):
        self.count += self.training
        return self.inner(x) * (1 + 0.1 * self.count)

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state):
        self.count = state["count"]


def test_the_extra_state_of_a_module_goes_on_too(tmp_path):
    given = {"epochs": 3, "batch_size": 40, "patience": 3, "validation": data(60, seed=1)}
    modules = [Counting(), Counting(), Counting()]
    calm = train(modules[0], data(), cross_entropy, **given)
    given["checkpoint"] = tmp_path
    train(modules[1], data(), cross_entropy, max_time=1e-9, **given)
    again = train(modules[2], data(), cross_entropy, **given)
    assert again.state["_extra_state"] == calm.state["_extra_state"]
    assert modules[2].count == modules[0].count > 0
    assert again.history.step_loss == calm.history.step_loss


# ------------------------------------------------------------------------ code and horizon


def absolute(output, target):
    return (output[:, 0] - target).abs()


def squares(output, target):
    return (output[:, 0] - target).square()


WEIGHT = 2.0


def weighed(output, target):
    return WEIGHT * squares(output, target)


def made(factor):
    return lambda output, target: factor * squares(output, target)


class Scaled(nn.Module):
    """Code of a user's own, with a setting."""

    def __init__(self, scale=1.0, activation=torch.tanh):
        super().__init__()
        self.body, self.scale, self.activation = net(), scale, activation

    def forward(self, x):
        return self.scale * self.activation(self.body(x))


class Doubled(Scaled):
    def forward(self, x):
        return 2 * super().forward(x)


def doubled(x):
    return 2 * x


class Noise:
    def __init__(self, size):
        self.size = size

    def __call__(self, x):
        return x + self.size * torch.randn_like(x)


def hooked(module):
    module.body.register_forward_hook(lambda part, given, output: output + 1)
    return module


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({"loss": squares}, {"loss": absolute}, "loss=absolute (the checkpoint has squares)"),
        ({"loss": made(1.0)}, {"loss": made(2.0)}, "a value that it uses, is not that"),
        ({"loss": nn.MSELoss(reduction="none")}, {"loss": nn.L1Loss(reduction="none")}, "loss=_column"),
        ({"augment": None}, {"augment": doubled}, "augment=doubled (the checkpoint has None)"),
        ({"augment": Noise(0.1)}, {"augment": Noise(0.2)}, "augment=Noise"),
        ({"module": Scaled}, {"module": Doubled}, "module=Doubled (the checkpoint has Scaled)"),
        ({"module": Scaled}, {"module": lambda: Scaled(2.0)}, "module=Scaled (its code, or a value"),
        ({"module": Scaled}, {"module": lambda: Scaled(1.0, torch.sigmoid)}, "module=Scaled"),
        ({"module": Scaled}, {"module": lambda: hooked(Scaled())}, "module=Scaled"),
        ({"module": net}, {"module": lambda: net(dropout=0.5)}, "module=Sequential"),
        ({"schedule": "cosine"}, {"schedule": "cosine", "epochs": 4}, "learning rate=WarmupCosine"),
        ({"schedule": "cosine"}, {"schedule": "cosine", "max_steps": 3}, "epochs and max_steps: leave"),
        ({"schedule": "linear"}, {"schedule": "linear", "epochs": 3}, "total=9"),
        ({"warmup": 0.5}, {"warmup": 0.5, "epochs": 4}, "steps=6"),
        ({"precision": "float32"}, {"precision": "bf16"}, "precision="),
    ],
)  # fmt: skip
def test_other_code_or_another_horizon_is_another_run(first, second, words, tmp_path):
    """Each of these went on silently, with the old weights or another rate."""

    def go(module=net, loss=squares, **given):
        X, y = data(90)
        loss = _column(loss) if isinstance(loss, nn.Module) else loss
        given = {"epochs": 2, "batch_size": 30, "checkpoint": tmp_path} | given
        return train(module(), (X, y.astype(np.float32)), loss, **given)

    go(**first)
    go(**first)  # the same code goes on
    with pytest.raises(CheckpointError, match="of another run") as caught:
        go(**second)
    assert words in str(caught.value)


def _column(loss):
    return lambda output, target: loss(output[:, 0], target)


def test_a_value_that_the_loss_reads_is_compared(tmp_path, monkeypatch):
    given = {"epochs": 1, "checkpoint": tmp_path}
    X, y = data(60)
    train(net(), (X, y), weighed, **given)
    monkeypatch.setitem(globals(), "WEIGHT", 3.0)
    with pytest.raises(CheckpointError, match="loss=weighed"):
        train(net(), (X, y), weighed, **given)


def test_more_epochs_at_a_rate_that_does_not_depend_on_them(tmp_path):
    given = {"batch_size": 32, "schedule": "inverse_sqrt"}
    calm = train(net(), data(), cross_entropy, epochs=4, **given)
    train(net(), data(), cross_entropy, epochs=2, checkpoint=tmp_path, **given)
    again = train(net(), data(), cross_entropy, epochs=4, checkpoint=tmp_path, **given)
    assert equal(again.state, calm.state)


def test_what_cannot_be_compared_is_said(tmp_path):
    from surefit.nn.checkpoints import CheckpointWarning, read, write

    train(net(), Pairs(), cross_entropy, epochs=1, checkpoint=tmp_path)
    with pytest.warns(CheckpointWarning, match="data \\(a dataset may draw what it gives\\)"):
        train(net(), Pairs(), cross_entropy, epochs=2, checkpoint=tmp_path)
    path = Checkpoints(tmp_path).files()[-1]
    state = read(path)
    state["code"]["loss"]["python"] = "3.0"  # of other bytecode
    del state["code"]["augment"]
    write(path, state)
    with pytest.warns(CheckpointWarning) as told:
        train(net(), Pairs(), absolute, epochs=2, checkpoint=tmp_path)
    text = str(told[0].message)
    assert "augment (the checkpoint does not describe it)" in text
    assert "loss (the checkpoint was written by Python 3.0)" in text


def test_validation_rows_that_choose_are_compared(tmp_path):
    given = {"epochs": 2, "patience": 3, "checkpoint": tmp_path}
    train(net(), data(), cross_entropy, validation=data(60, seed=1), **given)
    with pytest.raises(CheckpointError, match="validation="):
        train(net(), data(), cross_entropy, validation=data(60, seed=2), **given)
