"""k-means on iris: what the fit knows, what a proof adds, and the elbow.

`python examples/clusters.py [FILE.png]` prints a certificate, the proof and a table, and draws the elbow
if a file is named.
"""

import sys

from rich.console import Console
from sklearn.datasets import load_iris

import surefit
from surefit.cluster import KMeans, elbow


def main(picture: str | None = None) -> None:
    X = load_iris().data
    say = Console(width=110).print
    model = KMeans(3, n_init=10, random_state=0).fit(X)
    say(model.certificate_)
    say(surefit.verify(model, X)["distance from the optimum"].statement)
    table = elbow(X, range(1, 9), random_state=0)
    say(table)
    if picture is not None:
        table.plot().figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(*sys.argv[1:])
