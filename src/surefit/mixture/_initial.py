"""Where EM starts: scikit-learn's four ways, and the plain one of the textbook (EM-2).

scikit-learn starts from responsibilities: a cell of k-means, a random row of weights, or one row for each
component, and takes the M-step of these. :func:`initial_parameters` is the plain start: uniform weights,
means that are rows (random ones, or by k-means++), and the variance of the data for every component.

Rows are named by their number among all rows and drawn from one generator, so that the start does not
depend on how they are stored or spread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from .._namespace import is_torch, like, to_numpy
from ..design import Design, RowBlocks, as_design
from ..distributed import shared_random_state
from ..inputs import checked_tensor
from ..solvers.gaussian_mixture import Start
from ..solvers.seeding import plus_plus, rows_at

__all__ = ["data_moments", "initial_parameters", "start_from"]

Array = NDArray[np.float64]
Source = Callable[[], Callable[[slice], Any]]


def initial_parameters(
    X: Any,
    n_components: int,
    *,
    covariance_type: str = "full",
    means: str = "k-means++",
    reg_covar: float = 1e-6,
    random_state: Any = None,
) -> dict[str, Array]:
    """The textbook's start (EM-2), ready for :class:`GaussianMixture`: ``GaussianMixture(3, **start)``.

    Parameters
    ----------
    X : array, tensor or RowBlocks of shape (n_samples, n_features)
    n_components : int
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
    means : {"k-means++", "random"}, default="k-means++"
        Rows drawn one after the other with probability proportional to the squared distance from those
        drawn before (of a few draws the best one), or evenly without replacement.
    reg_covar : float, default=1e-6
        Added to the variances.
    random_state : int, RandomState or None

    Returns
    -------
    dict
        ``weights_init``: all 1 / n_components. ``means_init``: the rows. ``precisions_init``: the inverse
        of the data's covariance (divided by n), of its diagonal, or of the mean of that, for every
        component.

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.mixture import initial_parameters
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> start = initial_parameters(X, 2, reg_covar=0.0, random_state=0)
    >>> start["weights_init"].tolist(), bool(np.isin(start["means_init"], X).all())
    ([0.5, 0.5], True)
    >>> (1 / start["precisions_init"]).ravel().tolist() == [X.var(), X.var()]
    True
    """
    if covariance_type not in ("full", "tied", "diag", "spherical"):
        raise ValueError(
            f"covariance_type must be 'full', 'tied', 'diag' or 'spherical', got {covariance_type!r}."
        )
    if means not in ("k-means++", "random"):
        raise ValueError(f"means must be 'k-means++' or 'random', got {means!r}.")
    if is_torch(X):
        X = checked_tensor(X)
    elif not isinstance(X, Design):
        X = check_array(X, dtype=[np.float64, np.float32])
    design = as_design(X)
    if not 1 <= n_components <= design.shape[0]:
        raise ValueError(
            f"n_components must be between 1 and the number of rows, {design.shape[0]}, "
            f"got {n_components}."
        )
    rng = shared_random_state(design.group, random_state)
    how = "k-means++" if means == "k-means++" else "random_from_data"
    chosen = _chosen_rows(design, how, n_components, rng)
    _, covariance = data_moments(design)
    covariance += reg_covar * np.eye(design.shape[1])
    variances = np.diag(covariance)
    choices: dict[str, Any] = {
        "full": lambda: np.linalg.inv(covariance),
        "tied": lambda: np.linalg.inv(covariance),
        "diag": lambda: 1.0 / variances,
        "spherical": lambda: 1.0 / variances.mean(),
    }
    one = choices[covariance_type]()
    one = 0.5 * (one + np.transpose(one))
    each = (
        one if covariance_type == "tied" else np.repeat(np.asarray(one)[None], n_components, axis=0)
    )
    return {
        "weights_init": np.full(n_components, 1.0 / n_components),
        "means_init": rows_at(design, chosen),
        "precisions_init": each,
    }


def start_from(X: Any, design: Design, how: str, n_components: int, rng: Any) -> Start:
    """scikit-learn's initial responsibilities."""
    if how == "random":
        return Start(_random_source(design, n_components, rng), True)
    if how == "kmeans":
        labels = _labels_of_kmeans(X, n_components, rng)
    else:
        labels = np.full(design.rows_here, -1)
        for component, row in enumerate(_chosen_rows(design, how, n_components, rng)):
            if 0 <= row - design.first_row < design.rows_here:
                labels[row - design.first_row] = component
    components = np.arange(n_components)

    def given(rows: slice) -> Any:
        q = (labels[rows, None] == components).astype(np.float64)
        near = getattr(design.held, "X", None)
        return like(q, near) if is_torch(near) else q

    return Start(lambda: given, how == "kmeans")


def _random_source(design: Design, K: int, rng: Any) -> Source:
    """Uniform numbers, each row divided by its sum; drawn in order of the rows."""
    n, first, here = design.shape[0], design.first_row, design.rows_here

    def skip(generator: Any, rows: int) -> None:
        for start in range(0, rows, 65536):
            generator.uniform(size=(min(65536, rows - start), K))

    def draw(generator: Any, rows: int) -> Any:
        q = generator.uniform(size=(rows, K))
        return q / q.sum(axis=1)[:, None]

    if isinstance(design.held, RowBlocks):  # read in order, again at each pass: never all at once
        state = rng.get_state()
        skip(rng, n)

        def begin() -> Callable[[slice], Any]:
            generator = np.random.RandomState()
            generator.set_state(state)
            skip(generator, first)
            return lambda rows: draw(generator, rows.stop - rows.start)

        return begin
    skip(rng, first)
    q = draw(rng, here)
    skip(rng, n - first - here)
    rows_in = getattr(design.held, "X", None)
    q = like(q, rows_in) if is_torch(rows_in) else q
    return lambda: lambda rows: q[rows]


def _labels_of_kmeans(X: Any, K: int, rng: Any) -> Any:
    """The cells of k-means."""
    from ..cluster import KMeans

    model = KMeans(n_clusters=K, n_init=1, random_state=rng, certify=False)
    return to_numpy(model.fit(X).labels_)


def _chosen_rows(design: Design, how: str, K: int, rng: Any) -> Any:
    """The numbers, among all rows, of one row for each component."""
    if how == "random_from_data":
        return rng.choice(design.shape[0], size=K, replace=False)
    return plus_plus(design, K, None, rng)[1]


def data_moments(design: Design) -> tuple[Array, Array]:
    """The mean and the covariance (over n) of all rows, in two passes."""
    n, p = design.shape
    total = np.zeros(p)
    for _, block in design.held.blocks():
        total = total + to_numpy(block.sum(axis=0))
    mean = design.group.sum(total) / n
    return mean, design.gram(center=mean) / n
