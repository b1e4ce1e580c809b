"""Two pictures of support vector machines: the widest margin between points, and a curved boundary.

`python examples/margins.py FOLDER` writes ``or_margin.svg`` and ``rbf_boundary.svg``, which
docs/margins-and-kernels.md shows.
"""

import io
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from surefit.svm import SVC

BLUE, RED = "#0072B2", "#D55E00"
LOOK = {"svg.fonttype": "none", "svg.hashsalt": "surefit", "font.size": 9}


def or_margin(panel) -> None:
    """The OR problem: w = (2, 2), b = -1, and a margin of 1/sqrt(8) that three of the four points hold."""
    X, y = np.array([[0, 0], [1, 0], [0, 1], [1, 1]]), np.array([-1, 1, 1, 1])
    model = SVC(C=np.inf, kernel="linear", tol=1e-10).fit(X, y)
    (w,), (b,) = model.coef_, model.intercept_
    x = np.linspace(-0.4, 1.4, 2)
    for level, style in ((-1, "--"), (0, "-"), (1, "--")):
        panel.plot(x, (level - b - w[0] * x) / w[1], style, color="black", linewidth=1)
    points(panel, X, y, model.support_)
    panel.set(xlim=(-0.4, 1.4), ylim=(-0.4, 1.4), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    panel.set_title(f"margin {1 / np.linalg.norm(w):.4f}")


def rbf_boundary(panel) -> None:
    """Two moons with a Gaussian kernel: the boundary, the two lines of the margin, the support vectors."""
    X, y = make_moons(120, noise=0.2, random_state=0)
    model = SVC(C=1.0, gamma=1.0).fit(X, y)
    a, b = np.meshgrid(np.linspace(-1.8, 2.8, 140), np.linspace(-1.3, 1.8, 110))
    scores = model.decision_function(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    panel.contour(
        a, b, scores, [-1, 0, 1], colors="black", linestyles=["--", "-", "--"], linewidths=1
    )
    points(panel, X, 2 * y - 1, model.support_)
    gap = model.certificate_["duality gap"]
    panel.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    panel.set_title(
        f"{len(model.support_)} of {len(X)} rows are support vectors; gap {gap.status.name}"
    )


def points(panel, X, y, support) -> None:
    for label, colour, marker in ((-1, BLUE, "o"), (1, RED, "s")):
        panel.scatter(
            *X[y == label].T, s=18, color=colour, marker=marker, label=f"y = {label}", zorder=3
        )
    panel.scatter(
        *X[support].T, s=70, facecolors="none", edgecolors="black", label="support vector", zorder=4
    )
    panel.legend(fontsize=7, frameon=False, loc="upper right")


def main(folder: str = "docs/plots") -> None:
    for draw, width in ((or_margin, 3.6), (rbf_boundary, 5.2)):
        with mpl.rc_context(LOOK):
            figure = Figure(figsize=(width, 3.6), layout="constrained")
            draw(figure.subplots())
            buffer = io.StringIO()
            figure.savefig(buffer, format="svg", metadata={"Date": None})
        text = re.sub(r"\s+\n", "\n", buffer.getvalue())
        Path(folder, f"{draw.__name__}.svg").write_text(text, encoding="utf8")


if __name__ == "__main__":
    main(*sys.argv[1:])
