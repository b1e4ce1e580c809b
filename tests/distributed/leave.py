"""Rank 1 leaves without a word in the middle of a job; the others say what became of them."""

from __future__ import annotations

import os
import sys

import numpy as np

from surefit.distributed import RankLost, connect


def main(how):
    with connect(timeout=5) as group:
        assert float(group.sum(1.0)) == group.size
        if group.rank == 1 and how == "dies":
            os._exit(7)
        if group.rank == 1 and how == "hangs":
            import time

            time.sleep(8)  # beyond the time limit
            os._exit(7)
        try:
            for _ in range(5):
                group.sum(np.ones(1000))
        except RankLost as error:
            print(f"RankLost: {error}", flush=True)
            os._exit(3)  # the group is gone: nothing to take leave of


if __name__ == "__main__":
    main(sys.argv[1])
