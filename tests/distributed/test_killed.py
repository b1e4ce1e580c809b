"""SIGKILL to one rank in the middle of a fit: after the restart the result is the same, to the bit."""

import os
import subprocess
import sys

import numpy as np
import pytest

from . import killed
from .launch import ROOT, arrays, launch

pytest.importorskip("torch.distributed")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """What the fits give undisturbed, and with rank 1 killed once in each."""
    calm, torn = tmp_path_factory.mktemp("calm"), tmp_path_factory.mktemp("torn")
    launch("killed", 2, str(calm))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [f"--max-restarts={len(killed.FITS)}", "--monitor-interval=0.2"]
    command += ["-m", "tests.distributed.killed", str(torn), "kill"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return arrays(calm / "found.npz"), arrays(torn / "found.npz"), torn


@pytest.mark.parametrize("name", killed.FITS)
def test_a_killed_rank_changes_nothing(name, runs):
    calm, torn, folder = runs
    assert (folder / f"{name}.killed").exists()  # it was killed, and the fit went on afterwards
    for key in killed.FITS[name][-1]:
        np.testing.assert_array_equal(torn[f"{name}/{key}"], calm[f"{name}/{key}"], err_msg=key)


@pytest.mark.parametrize("name", killed.FITS)
def test_the_fit_went_on_from_its_checkpoint(name, runs):
    """The last attempt exchanged fewer messages than a fit from the start does."""
    calm, torn, folder = runs
    assert len(list((folder / "kept").iterdir())) == len(killed.FITS)
    assert 0 < int(torn[f"{name}/exchanges"]) < 0.8 * int(calm[f"{name}/exchanges"])
    assert int(calm[f"{name}/exchanges"]) > killed.FITS[name][1]  # it was killed before its end
