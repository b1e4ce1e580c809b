"""Two ranks train the module of one process, and a killed rank changes nothing."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch.distributed")

from . import trainer
from .launch import ROOT, arrays, launch


@pytest.fixture(scope="module")
def spread(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainer")
    launch("trainer", 2, str(folder), "all")
    return arrays(folder / "trainer-2.npz")


@pytest.mark.parametrize(
    ("parallel", "case"),
    [*itertools.product(("ddp", "fsdp"), trainer.CASES), ("moved", "plain")],
)
def test_two_ranks_are_one_process_to_rounding(case, parallel, spread):
    """Sums of at most 61 float64 losses in another order, through 12 steps of Adam."""
    for key, value in trainer.outcome(trainer.run(case, None)).items():
        found = spread[f"{parallel}/{case}/{key}"]
        assert found.shape == value.shape
        np.testing.assert_allclose(found, value, rtol=1e-8, atol=1e-10, err_msg=key)


def test_a_nan_stops_all_ranks(spread):
    assert "the loss is nan at step" in str(spread["error"])


def test_torchrun_starts_again_after_a_killed_rank_and_the_weights_are_the_same(tmp_path_factory):
    calm, torn = tmp_path_factory.mktemp("calm"), tmp_path_factory.mktemp("torn")
    launch("trainer", 2, str(calm), "calm")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["--max-restarts=2", "--monitor-interval=0.2"]
    command += ["-m", "tests.distributed.trainer", str(torn), "kill"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    before, after = arrays(calm / "found.npz"), arrays(torn / "found.npz")
    for parallel in ("ddp", "fsdp"):
        assert (torn / f"{parallel}.killed").exists()
        assert (
            0 <= after[f"{parallel}/calls"] < before[f"{parallel}/calls"]
        )  # it went on from its checkpoint
    for key, value in before.items():
        if not key.endswith("calls"):
            np.testing.assert_array_equal(after[key], value, err_msg=key)
