"""k-means on rows spread over processes: each makes its own rows, all end with the same model.

`torchrun --standalone --nproc-per-node=2 examples/distributed_kmeans.py [FOLDER]` prints the certificate on
the first rank; without torchrun it is a job of one process, with the same result to rounding. Where a folder
is named, the fit keeps its state there, and goes on from it when it is started again.
"""

import sys

import numpy as np

import surefit
from surefit.cluster import KMeans
from surefit.design import RankRows
from surefit.distributed import connect

ROWS, COLUMNS, CLUSTERS, CHUNK = 20_000, 8, 5, 1_000


def rows_of(first: int, last: int) -> np.ndarray:
    """Rows first, ..., last - 1 of the data, whoever asks: a chunk depends on its number alone.

    In a job of your own: `np.load("rows.npy", mmap_mode="r")[first:last]`, or `RowBlocks` of its files.
    """
    centres = 4.0 * np.random.default_rng(0).normal(size=(CLUSTERS, COLUMNS))
    chunks = []
    for number in range(first // CHUNK, -(-last // CHUNK)):
        rng = np.random.default_rng([1, number])
        of = rng.integers(CLUSTERS, size=CHUNK)
        chunks.append(centres[of] + rng.normal(size=(CHUNK, COLUMNS)))
    start = first // CHUNK * CHUNK
    return np.concatenate(chunks)[first - start : last - start]


def main(folder: str | None = None) -> None:
    with connect(timeout=120.0) as group:
        mine = group.share_of(ROWS)
        X = RankRows(rows_of(mine.start, mine.stop), group, checkpoint=folder)
        model = KMeans(CLUSTERS, n_init=3, random_state=0).fit(X)
        checked = surefit.verify(model, X)  # every rank takes part
        labels = model.labels_  # of this rank's rows
        assert len(labels) == X.rows_here
        sizes = group.sum(np.bincount(labels, minlength=CLUSTERS))
        if group.rank == 0:
            print(f"{group.size} rank(s), {X.shape[0]} rows, clusters of {np.sort(sizes).tolist()}")
            print(model.certificate_)
            print(f"verified: {checked.ok}")


if __name__ == "__main__":
    main(*sys.argv[1:])
