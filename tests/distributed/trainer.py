"""Runs of the trainer on this rank; rank 0 writes what came out. With "kill", rank 1 is killed once."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import torch
from torch import nn

from surefit.distributed import connect
from surefit.nn.train import train

__all__ = ["CASES", "net", "outcome", "run"]

ROWS = 61  # in steps of 16: the last has 13 rows, odd shares
# name: what the run is given
CASES = {
    "plain": {},
    "weights, parts": {"accumulate": 3, "weights": True},
    "clipped, averaged": {"clip": 0.05, "ema": 0.9, "validation": True},
    "few rows": {"batch_size": 20, "rows": 21},  # the last step has one row: one rank has none
}


class Blocks(nn.Module):
    """Odd sizes, so that parts of tensors are unequal; blocks in a list, as in a transformer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(5, 7)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(7), nn.Linear(7, 7)) for _ in range(2)
        )
        self.last = nn.Linear(7, 3)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + torch.tanh(block(x))
        return self.last(x)


def net(seed):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return Blocks().double()


def loss(output, target):
    return nn.functional.cross_entropy(output, target, reduction="none")


def data(rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5))
    return X, np.argmax(X[:, :3] + 0.5 * rng.normal(size=(rows, 3)), axis=1)


def run(case, parallel, *, seed=0, loss=loss, **extra):
    given = {"batch_size": 16, "rows": ROWS, "weights": False} | CASES[case]
    X, y = data(given.pop("rows"))
    if given.pop("weights"):
        given["sample_weight"] = np.random.default_rng(1).uniform(0, 2, len(X))
    if given.get("validation"):
        given["validation"] = data(33, seed=2)
    settings = {
        "optimizer": "adam",
        "epochs": 3,
        "lr": 0.01,
        "weight_decay": 0.01,
        "schedule": "cosine",
    }
    return train(net(seed), (X, y), loss, parallel=parallel, **settings | given | extra)


def outcome(done):
    found = {f"state/{name}": value.numpy() for name, value in done.state.items()}
    found |= {"loss": np.array(done.history.step_loss)}
    return found | {"validation": np.array(done.history.validation)}


def all_cases(folder, group):
    found = {}
    for parallel in ("ddp", "fsdp"):
        for case in CASES:
            # each rank starts from weights of its own: those of the first count
            mine = outcome(run(case, parallel, seed=group.rank))
            for other in group.gather(mine):
                for key, value in mine.items():
                    np.testing.assert_array_equal(
                        other[key], value, err_msg=f"{parallel} {case} {key}"
                    )
            found |= {f"{parallel}/{case}/{key}": value for key, value in mine.items()}
        # batch norm's means are made from a rank's own rows; those of the first count on all
        odd = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).double()
        given = {
            "parallel": parallel,
            "batch_size": 16,
            "epochs": 2,
            "validation": data(33, seed=2),
        }
        mine = outcome(train(odd, data(ROWS), loss, patience=1, **given))
        for other in group.gather(mine):
            for key, value in mine.items():
                np.testing.assert_array_equal(other[key], value, err_msg=f"{parallel} norm {key}")
    # a checkpoint of parts, half-way, goes on as copies
    kept = str(folder / "kept")
    run("plain", "fsdp", checkpoint=kept, callback=lambda live: live.step >= 4)
    moved = outcome(run("plain", "ddp", checkpoint=kept))
    found |= {f"moved/plain/{key}": value for key, value in moved.items()}
    try:
        wrong = data(ROWS)[0]
        wrong[3] = np.nan
        train(net(0), (wrong, data(ROWS)[1]), loss, parallel="ddp", batch_size=16)
    except FloatingPointError as error:
        words = group.gather(str(error))
        assert len(set(words)) == 1, words  # all ranks stop, with the same words
        found["error"] = np.array(words[0])
    if group.rank == 0:
        np.savez(folder / f"trainer-{group.size}.npz", **found)


def killed(folder, group, parallel, kill):
    marker, seen = folder / f"{parallel}.killed", [0]

    def dying(output, target):
        seen[0] += 1
        if kill and seen[0] == 7 and group.rank == 1 and not marker.exists():
            marker.write_text("killed in the middle", encoding="utf8")
            os.kill(os.getpid(), signal.SIGKILL)
        return loss(output, target)

    done = run("plain", parallel, checkpoint=folder / f"kept-{parallel}", every_steps=2, loss=dying)
    return {f"{parallel}/{key}": value for key, value in outcome(done).items()} | {
        f"{parallel}/calls": np.array(seen[0])
    }


def main(folder, what):
    with connect(timeout=30) as group:
        if what == "all":
            all_cases(folder, group)
            return
        found = {}
        for parallel in ("ddp", "fsdp"):
            found |= killed(folder, group, parallel, what == "kill")
        if group.rank == 0:
            np.savez(folder / "found.npz", **found)


if __name__ == "__main__":
    from pathlib import Path

    torch.set_num_threads(1)
    main(Path(sys.argv[1]), sys.argv[2])
    # Under load, torch's threads can abort a process that used DDP while the interpreter ends ("terminate
    # called without an active exception"; seen with a loop of DDP that does not use surefit). The run is over
    # by now, and what it wrote is what the tests look at.
    sys.stdout.flush()
    os._exit(0)
