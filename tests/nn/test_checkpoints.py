"""Checkpoints: data only, whole or not at all, and honest about damage."""

import errno
import json
import os
import pickle
import struct

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from surefit.distributed import CheckpointError  # noqa: E402
from surefit.nn.checkpoints import Checkpoints, CheckpointWarning, read, write  # noqa: E402
from surefit.nn.train import train  # noqa: E402

from .small import cross_entropy, data, equal, net  # noqa: E402

STATE = {
    "model": {"a.weight": torch.arange(6.0).reshape(2, 3), "n": torch.tensor(7)},
    "half": torch.ones(2).bfloat16(),
    "empty": torch.empty(0, 3),
    "number": 0.1 + 0.2,
    "limits": [float("inf"), -0.0, 1e-320],
    "words": "x",
    "none": None,
    "list": [1, True, {"t": torch.zeros(1, dtype=torch.bool)}],
}  # fmt: skip


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and type(a) is type(b)


def test_what_is_written_is_read(tmp_path):
    write(tmp_path / "a", STATE)
    assert same(read(tmp_path / "a"), STATE)


def test_tied_and_cut_tensors(tmp_path):
    """safetensors refuses tensors that share memory; a checkpoint copies them."""
    w = torch.arange(12.0).reshape(3, 4)
    write(tmp_path / "a", {"whole": w, "part": w[1:], "turned": w.T, "again": w})
    found = read(tmp_path / "a")
    assert torch.equal(found["turned"], w.T)
    assert torch.equal(found["part"], w[1:])


@pytest.mark.parametrize("thing", [print, {1, 2}, b"raw", np.float32(1), object(), "tensor:000000"])
def test_only_data_is_written(thing, tmp_path):
    with pytest.raises(TypeError, match="numbers, texts and tensors"):
        write(tmp_path / "a", {"x": torch.ones(1), "thing": thing})
    assert not os.listdir(tmp_path)


def test_nothing_is_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    for blob in (pickle.dumps(Trap()), pickle.dumps({"a": Trap()}, protocol=0)):
        (tmp_path / "step-000000000001.safetensors").write_bytes(blob)
        with pytest.raises(CheckpointError, match="cannot be read"):
            read(tmp_path / "step-000000000001.safetensors")
    assert not (tmp_path / "sprung").exists()


def test_every_flipped_byte_and_every_cut_is_noticed(tmp_path):
    path = tmp_path / "a"
    write(path, {"w": torch.arange(8.0), "n": 3})
    blob = path.read_bytes()
    for place in range(len(blob)):  # the length, the document and the tensors
        path.write_bytes(blob[:place] + bytes([blob[place] ^ 4]) + blob[place + 1 :])
        with pytest.raises(CheckpointError):
            read(path)
    for length in range(0, len(blob), 7):
        path.write_bytes(blob[:length])
        with pytest.raises(CheckpointError):
            read(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'n\\":7', b'n\\":8'), (b'"F32"', b'"I32"'), (b"[2,4]", b"[4,2]"), (b'w\\":', b'v\\":')],
    ids=["number", "type", "shape", "name"],
)
def test_a_document_that_can_be_read_but_is_another_is_noticed(old, new, tmp_path):
    """The bytes of the tensors are as they were."""
    path = tmp_path / "a"
    write(path, {"w": torch.arange(8.0).reshape(2, 4), "n": 7})
    blob = path.read_bytes().replace(b'\\": ', b'\\":')
    assert blob.count(old) == 1
    size = struct.unpack("<Q", path.read_bytes()[:8])[0]
    cut = len(path.read_bytes()) - len(blob)
    blob = struct.pack("<Q", size - cut) + blob[8:]
    path.write_bytes(blob)
    assert read(path)["n"] == 7  # without blanks it is the same document
    path.write_bytes(blob.replace(old, new))
    with pytest.raises(CheckpointError, match="checksum does not match"):
        read(path)


@pytest.mark.parametrize("number", [1, 99])
def test_another_format_says_so(number, tmp_path):
    from safetensors.torch import save

    document = json.dumps({"format": number, "checksum": 0, "tree": {}})
    (tmp_path / "a").write_bytes(save({"x": torch.ones(1)}, {"surefit": document}))
    with pytest.raises(CheckpointError, match=f"format is {number}, this version reads 2"):
        read(tmp_path / "a")


def test_a_damaged_one_is_passed_over_with_a_warning(tmp_path):
    kept = Checkpoints(tmp_path, keep=5)
    for step in (1, 2, 3):
        kept.save(step, {"step": step})
    kept.files()[-1].write_bytes(b"\0" * 100)
    with pytest.warns(CheckpointWarning, match="step-000000000003.*The one before it is used"):
        assert kept.latest()["step"] == 2
    for path in kept.files():
        path.write_bytes(b"")
    with (
        pytest.warns(CheckpointWarning),
        pytest.raises(CheckpointError, match="none of the 3 checkpoints"),
    ):
        kept.latest()


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf8")
    (tmp_path / "step-1.safetensors").write_text("mine", encoding="utf8")
    kept = Checkpoints(tmp_path, keep=1)
    for step in range(3):
        kept.save(step, {"step": step})
    assert sorted(os.listdir(tmp_path)) == [
        "notes.txt", "step-000000000002.safetensors", "step-1.safetensors",
    ]  # fmt: skip


def test_a_full_disk_leaves_the_one_before_and_the_run_goes_on(tmp_path, monkeypatch):
    calm = train(net(), data(), cross_entropy, epochs=3)
    plain, seen = os.fsync, [0]

    def full(descriptor):
        seen[0] += 1
        if seen[0] > 2:  # a file and its folder are synced: the first checkpoint passes
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(
        CheckpointWarning, match=r"No space left.*step-000000000001.safetensors is the last"
    ):
        done = train(net(), data(), cross_entropy, epochs=3, checkpoint=tmp_path)
    assert equal(done.state, calm.state)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["step-000000000001.safetensors"]
    assert Checkpoints(tmp_path).latest()["run"]["step"] == 1
    again = train(net(), data(), cross_entropy, epochs=3, checkpoint=tmp_path)
    assert equal(again.state, calm.state)


def test_a_folder_that_is_lost_is_told_and_the_run_goes_on(tmp_path):
    """A file lies where the folder was: it can be neither written to nor made again."""
    calm = train(net(), data(), cross_entropy, epochs=2)
    folder = tmp_path / "kept"

    def lose(run):
        folder.rmdir()
        folder.write_text("a file", encoding="utf8")
        return False

    with pytest.warns(CheckpointWarning, match="was not written.*no checkpoint is the last one"):
        done = train(net(), data(), cross_entropy, epochs=1, checkpoint=folder, callback=lose)
    assert done.step == 1
    folder.unlink()
    again = train(net(), data(), cross_entropy, epochs=2, checkpoint=folder)
    assert equal(again.state, calm.state)


def test_losses_of_steps_are_kept_as_numbers_not_as_text(tmp_path):
    done = train(net(), data(), cross_entropy, batch_size=40, epochs=2, checkpoint=tmp_path)
    losses = Checkpoints(tmp_path).latest()["history"]["step_loss"]
    assert losses.dtype == torch.float64
    assert losses.tolist() == done.history.step_loss
    again = train(net(), data(), cross_entropy, batch_size=40, epochs=2, checkpoint=tmp_path)
    assert again.history.step_loss == done.history.step_loss
    assert again.history.to_dict() == done.history.to_dict()


@pytest.mark.parametrize("schedule", ["constant", lambda step: np.float32(0.01)])
def test_rates_may_be_numpy_s(schedule, tmp_path):
    given = {"lr": np.float32(0.01), "schedule": schedule, "batch_size": 40}
    calm = train(net(), data(), cross_entropy, epochs=2, **given)
    train(net(), data(), cross_entropy, epochs=1, checkpoint=tmp_path, **given)
    again = train(net(), data(), cross_entropy, epochs=2, checkpoint=tmp_path, **given)
    assert equal(again.state, calm.state)
    assert again.history.lr == calm.history.lr == [float(np.float32(0.01))] * 2


def test_when_and_how_many(tmp_path):
    def steps(**settings):
        folder = tmp_path / str(len(os.listdir(tmp_path)))
        train(net(), data(), cross_entropy, batch_size=40, epochs=4, checkpoint=folder, **settings)
        return [int(path.name[5:17]) for path in Checkpoints(folder).files()]

    assert steps(keep=9) == [3, 6, 9, 12]  # after each epoch
    assert steps(every_steps=5, keep=9) == [5, 10, 12]  # and at the end
    assert steps(every_steps=2) == [8, 10, 12]
    assert steps(every_minutes=1e-9, keep=2, device="cpu") == [11, 12]  # on a GPU: now and then
    assert steps(every_minutes=60.0) == [12]
