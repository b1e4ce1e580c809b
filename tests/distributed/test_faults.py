"""What goes wrong on one rank ends in an error on every rank, within the time limit, and not in a hang."""

import json

import numpy as np
import pytest

from surefit.distributed import ALONE, Checkpoint, CheckpointError, connect

from .launch import launch, outcome, start

pytest.importorskip("torch.distributed")

# name: what rank 1 is told, what the other ranks are told
WRONG = {
    "columns": (
        "RankError: the ranks disagree on the columns of X (rank 0: 2, rank 1: 1, rank 2: 2)",
        "RankError: the ranks disagree on the columns of X (rank 0: 2, rank 1: 1, rank 2: 2)",
    ),
    "no rows": ("ValueError: this rank holds no rows: use fewer processes", "rank 1 of 3 failed"),
    "NaN": (
        "ValueError: Input X contains NaN",
        "rank 1 of 3 failed, so all stop: ValueError: Input X",
    ),
    "dtype": (
        "RankError: the ranks disagree on the data type",
        "RankError: the ranks disagree on the data",
    ),
    "sparse here, dense there": ("some ranks hold sparse rows", "some ranks hold sparse rows"),
    "three dimensions": ("ValueError: Found array with dim 3", "rank 1 of 3 failed"),
    "twice": (
        "TypeError: X is spread over ranks already",
        "TypeError: X is spread over ranks already",
    ),
    "targets": ("ValueError: X has 12 rows and y has 5", "rank 1 of 3 failed"),
    "NaN target": ("ValueError: Input y contains NaN", "rank 1 of 3 failed"),
    "overflow": ("whose squares overflow float64", "rank 1 of 3 failed"),
    "weights here only": ("RankError: some ranks gave sample_weight",) * 2,
    "weights here only, clusters": ("RankError: some ranks gave sample_weight",) * 2,
    "no weight anywhere": ("ValueError: sample_weight is zero on every rank",) * 2,
    "no weight here": ("none: (True, True)",) * 2,
    "negative weights": (
        "ValueError: Negative values in data",
        "ValueError: Negative values in data",
    ),
    "one class": ("needs samples of at least 2 classes", "needs samples of at least 2 classes"),
    "estimator": (
        "TypeError: Lasso does not take rows spread",
        "TypeError: Lasso does not take rows",
    ),
    "l1 part": (
        "TypeError: LogisticRegression does not take rows spread",
        "does not take rows spread",
    ),
    "fine": ("none: (2,)", "none: (2,)"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrong") / "errors.json"
    launch("wrong", 3, str(path))
    return json.loads(path.read_text(encoding="utf8"))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_on_one_rank_is_an_error_on_all(name, told):
    mine, theirs = WRONG[name]
    assert mine in told[1][name]
    assert theirs in told[0][name]
    assert theirs in told[2][name]


@pytest.fixture(scope="module")
def left():
    """Both ways to leave, side by side: most of it is waiting."""
    jobs = {how: start("leave", 3, how) for how in ("dies", "hangs")}
    return {how: outcome(ranks, limit=60.0) for how, ranks in jobs.items()}


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_a_lost_rank_is_an_error_within_the_time_limit(how, left):
    """The time limit is 5 seconds; a rank that waited on would be killed at 60."""
    found = left[how]
    assert found[1][0] == 7
    for rank in (0, 2):
        status, text = found[rank]
        assert status == 3, text
        assert f"RankLost: rank {rank} of 3 lost the others during a sum of 1000 numbers" in text
        assert "torchrun --max-restarts" in text


def test_without_torchrun_there_is_a_group_of_one():
    with connect() as group:
        assert group is ALONE
        a, b = group.sum(np.arange(3), 2.0)
        assert a.tolist() == [0, 1, 2]
        assert float(b) == 2.0
        assert group.gather("x") == ["x"]
        assert group.share_of(5) == slice(0, 5)
    with pytest.raises(ValueError, match="timeout must be positive, got 0"), connect(timeout=0):
        pass


def test_a_checkpoint_is_whole_or_refused(tmp_path):
    kept = Checkpoint(tmp_path / "made" / "here")
    assert kept.load("fit") is None
    kept.save("fit", {"step": np.array(4), "centres": np.eye(3, dtype=np.float32)})
    again = Checkpoint(tmp_path / "made" / "here").load("fit")
    assert int(again["step"]) == 4
    assert again["centres"].dtype == np.float32
    path = tmp_path / "made" / "here" / "fit.npz"
    assert [p.name for p in path.parent.iterdir()] == ["fit.npz"]  # nothing half-written is left
    sound = path.read_bytes()
    for damaged in (sound[: len(sound) // 2], sound[:100], b"", b"not a zip"):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="Delete it to start the fit afresh"):
            kept.load("fit")
    with pytest.raises(ValueError, match="letters, digits"):
        kept.save("../elsewhere", {})


def test_a_checkpoint_runs_nothing_from_its_file(tmp_path):
    kept = Checkpoint(tmp_path)
    np.savez(tmp_path / "fit.npz", state=np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(CheckpointError, match="cannot be read"):
        kept.load("fit")
