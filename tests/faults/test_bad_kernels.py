"""Bad kernels and bad matrices get an error that names them, or an honest certificate."""

import numpy as np
import pytest

from surefit.kernel_ridge import KernelRidge
from surefit.kernels import Gaussian, Polynomial

X = np.random.default_rng(0).normal(size=(12, 3))
Y = X[:, 0] + 1.0


@pytest.mark.parametrize(
    ("given", "data", "words"),
    [
        (
            {"kernel": "precomputed"},
            X,
            "square matrix of all pairs of samples, got shape \\(12, 3\\)",
        ),
        ({"kernel": "precomputed"}, np.full((12, 12), np.nan), "contains NaN"),
        (
            {"kernel": "precomputed", "n_components": 3},
            X @ X.T,
            "with kernel='precomputed' there are none",
        ),
        ({"alpha": [1.0, 2.0]}, X, "one for each of the 1 targets"),
        ({"alpha": [-1.0]}, X, "finite and >= 0"),
        ({"alpha": 0.0, "solver": "cg"}, X, "needs alpha > 0"),
        ({"alpha": 0.0, "solver": "nystrom"}, X, "needs alpha > 0"),
        ({"kernel": Gaussian(-1.0)}, X, "gamma must be a number >= 0"),
        ({"kernel": Polynomial("three")}, X, "degree must be a number >= 0, got 'three'"),
        ({"kernel": "gauss"}, X, "'kernel' parameter"),
        ({"gamma": -1.0, "kernel": "rbf"}, X, "'gamma' parameter"),
        ({"n_components": 0}, X, "'n_components' parameter"),
    ],
    ids=str,
)
def test_errors_name_the_argument(given, data, words):
    with pytest.raises(ValueError, match=words):
        KernelRidge(**given).fit(data, Y)


def test_rows_of_the_wrong_length():
    model = KernelRidge(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="12 features"):
        model.predict(X @ X[:5].T)


def test_a_function_that_gives_no_number():
    with pytest.raises(ValueError, match="gave NaN or infinity"):
        KernelRidge(kernel=lambda x, z: None).fit(X, Y)


def test_centres_need_a_kernel():
    """-<x, z> is no kernel: the factor is refused with a sentence, nothing hangs."""

    def negative(x, z):
        return -float(x @ z) - 1.0

    with pytest.raises(ValueError, match="not positive semi-definite"):
        KernelRidge(kernel=negative, n_components=5, random_state=0).fit(X, Y)


def test_a_fit_that_breaks_off_leaves_no_certificate():
    model = KernelRidge().fit(X, Y)
    with pytest.raises(ValueError, match="alpha"):
        model.set_params(alpha=[1.0, 2.0]).fit(X, Y)
    assert not hasattr(model, "certificate_")


@pytest.mark.parametrize("solver", ["cholesky", "cg", "nystrom"])
def test_extremes(solver):
    """One row, equal rows, targets of 0, huge and tiny gamma: an answer and a certificate that holds."""
    for data, y, gamma in [
        (X[:1], Y[:1], 1.0),
        (np.ones((12, 3)), Y, 1.0),
        (X, np.zeros(12), 1.0),
        (X, Y, 1e12),
        (X, Y, 1e-12),
        (X * 1e8, Y * 1e-8, None),
    ]:
        model = KernelRidge(kernel="rbf", gamma=gamma, solver=solver, random_state=0).fit(data, y)
        assert np.isfinite(model.predict(data)).all()
        assert model.certificate_.ok
