"""The scripts of examples/ run, and print or draw what their pages say."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import matplotlib as mpl
import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {
        "clusters",
        "demo",
        "distributed_kmeans",
        "margins",
        "model_selection",
    }


def test_demo_shows_a_certificate_that_holds_and_one_that_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script("demo").main()
    said = capsys.readouterr().out
    assert "duality gap" in said
    assert "✗" in said  # a coefficient was changed


def test_model_selection_says_a_sentence_that_may_be_quoted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script("model_selection").main()
    said = " ".join(capsys.readouterr().out.split())
    assert "with probability 95 %, the true error is within" in said
    assert "after trying 40 models" in said
    assert "HoldOut keeps some" in said  # nothing is claimed of a model refitted on all rows
    assert re.findall(r"True|False", said) == ["True", "False"]  # the data of the fit, other data


def test_clusters_proves_iris_and_draws_the_elbow(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with mpl.rc_context({"backend": "agg"}):
        script("clusters").main(str(tmp_path / "elbow.png"))
    said = " ".join(capsys.readouterr().out.split())
    assert "the WCSS 78.8514 is that of the best possible clustering into 3" in said
    assert "K = 3: farthest below the chord" in said
    assert (tmp_path / "elbow.png").stat().st_size > 5000


def test_margins_draws_both_pictures(tmp_path: Path) -> None:
    script("margins").main(str(tmp_path))
    assert "margin 0.3536" in (tmp_path / "or_margin.svg").read_text(encoding="utf8")
    assert "support vectors; gap HOLDS" in (tmp_path / "rbf_boundary.svg").read_text(
        encoding="utf8"
    )


def test_distributed_kmeans_is_the_same_on_two_ranks_and_goes_on_from_its_checkpoint(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("torch.distributed")
    script("distributed_kmeans").main(str(tmp_path / "one"))
    alone = capsys.readouterr().out
    assert alone.startswith("1 rank(s), 20000 rows, clusters of [")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    job = [str(EXAMPLES / "distributed_kmeans.py"), str(tmp_path / "two")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(EXAMPLES.parent / "src")}
    said = [
        subprocess.run(
            [*command, *job],
            env=environment,
            text=True,
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for _ in range(2)  # the second goes on from the last state of the first
    ]
    assert said[0] == said[1]
    assert "verified: True" in said[0]
    assert said[0].splitlines()[0] == alone.splitlines()[0].replace("1 rank(s)", "2 rank(s)")
    assert len(list((tmp_path / "two").iterdir())) == 1
