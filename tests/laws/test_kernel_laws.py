"""The law of kernels, over every kind, container and precision.

A kernel equals its definition, entry by entry; its Gram matrix is exactly symmetric and positive
semi-definite; rows, blocks and buffers give the same numbers; it can be cloned, searched over and saved.
"""

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import surefit
from surefit import Status
from surefit._jit.exponential import exponentials
from surefit.kernel_ridge import KernelRidge
from surefit.kernels import (
    Custom,
    Gaussian,
    Laplace,
    Linear,
    Pairwise,
    Polynomial,
    Precomputed,
    Reweighted,
    Sigmoid,
    as_kernel,
    psd_claim,
)

KERNELS = [
    Linear(),
    Polynomial(3, gamma=0.3, coef0=0.5),
    Polynomial(2.5, gamma=0.01, coef0=5.0),
    Gaussian(0.2),
    Laplace(0.4),
    Laplace(0.2, norm="l1"),
    Sigmoid(0.05, 0.1),
    Gaussian(0.5) + 0.5 * Polynomial(3),
    Gaussian(0.1) * Laplace(0.1) + 2.0 * Linear(),
    Reweighted(Gaussian(0.3), lambda X: 1.0 + abs(X).sum(1)),
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def by_definition(kernel, x, z):
    """k(x, z) for two rows in float64, from the formula."""
    d = np.linalg.norm(x - z)
    match kernel:
        case Linear():
            return x @ z
        case Polynomial():
            return (kernel.gamma * (x @ z) + kernel.coef0) ** kernel.degree
        case Gaussian():
            return np.exp(-kernel.gamma * d**2)
        case Laplace(norm="l1"):
            return np.exp(-kernel.gamma * np.abs(x - z).sum())
        case Laplace():
            return np.exp(-kernel.gamma * d)
        case Sigmoid():
            return np.tanh(kernel.gamma * (x @ z) + kernel.coef0)
        case Reweighted():
            f = [float(kernel.weight(v[None])[0]) for v in (x, z)]
            return f[0] * by_definition(kernel.kernel, x, z) * f[1]
    name = type(kernel).__name__
    if name == "Scaled":
        return kernel.scale * by_definition(kernel.kernel, x, z)
    pair = by_definition(kernel.left, x, z), by_definition(kernel.right, x, z)
    return sum(pair) if name == "Sum" else pair[0] * pair[1]


def rows(n, seed, offset=0.0):
    X = np.random.default_rng(seed).normal(size=(n, 5)) + offset
    X[-1] = X[0]  # equal rows
    X[-2] = X[1] * (1.0 + 1e-9)  # and nearly equal ones
    return X


def matrix(kernel, X, Z):
    return np.array([[by_definition(kernel, x, z) for z in Z] for x in X])


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_is_its_definition(kernel, dtype):
    X, Z = rows(11, 0).astype(dtype), rows(9, 1).astype(dtype)
    expected = matrix(kernel, X.astype(float), Z.astype(float))
    K = kernel(X, Z)
    assert K.dtype == dtype
    # a dozen roundings of numbers as large as the largest value, or the exponents
    np.testing.assert_allclose(K, expected, atol=30 * np.finfo(dtype).eps * np.abs(expected).max())
    gram = kernel(X)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_allclose(
        np.asarray(kernel.diag(X)), gram.diagonal(), rtol=30 * np.finfo(dtype).eps
    )
    if kernel.positive:
        assert psd_claim(gram).status is Status.HOLDS


@every_kernel
def test_containers_and_blocks_agree(kernel):
    torch = pytest.importorskip("torch")
    X, Z = rows(300, 0), rows(250, 1)
    expected = kernel(X, Z)
    np.testing.assert_allclose(kernel(torch.as_tensor(X), torch.as_tensor(Z)), expected, rtol=1e-11)
    gram = kernel(torch.as_tensor(X))
    assert bool((gram == gram.T).all())
    if not isinstance(kernel, Reweighted):
        sparse = kernel(sp.csr_array(X), sp.csr_array(Z))
        np.testing.assert_allclose(sparse, expected, rtol=1e-11)
    whole = kernel(Z)
    bound, buffer = kernel.on(Z), np.full((4, 250), np.nan)
    np.testing.assert_allclose(
        bound.take(np.array([7, 249, 0, 7]), buffer), whole[[7, 249, 0, 7]], rtol=1e-12
    )
    assert bound.take(np.array([1, 2, 3, 4]), buffer) is buffer
    np.testing.assert_allclose(bound.rows(3, 90), whole[3:90], rtol=1e-12)
    np.testing.assert_allclose(bound.gram(), whole, rtol=1e-12)
    fortran = np.empty((300, 250), order="F")
    np.testing.assert_allclose(bound(X, fortran), expected, rtol=1e-12)
    V = np.random.default_rng(2).normal(size=(250, 2))
    np.testing.assert_allclose(bound.dot(V), whole @ V, atol=1e-10 * np.abs(whole).max())
    np.testing.assert_allclose(bound.dot(V, X), expected @ V, atol=1e-10 * np.abs(expected).max())
    small = [(r, b.copy()) for r, b in bound.blocks(X, entries=250 * 64)]
    assert [r.start for r, _ in small] == [0, 64, 128, 192, 256]
    np.testing.assert_allclose(np.concatenate([b for _, b in small]), expected, rtol=1e-12)
    np.testing.assert_allclose(
        kernel.on(Z, np.float32)(X), expected, atol=1e-4 * np.abs(expected).max()
    )


def test_rows_of_many_columns_stay_sparse():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 5000), density=0.002, rng=rng, format="csr")
    X = sp.vstack([X, X[:1]]).tocsr()
    Z = sp.random_array((50, 5000), density=0.002, rng=rng, format="csr")
    for kernel in (Linear(), Polynomial(2), Gaussian(0.5), Laplace(0.5), Laplace(0.5, "l1")):
        expected = kernel(X.toarray(), Z.toarray())
        for left, right in ((X, Z), (X.toarray(), Z), (X, Z.toarray())):
            np.testing.assert_allclose(kernel(left, right), expected, rtol=1e-10)
        np.testing.assert_allclose(kernel(X), kernel(X.toarray()), rtol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplace(0.3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_offset_of_the_data_does_no_harm(kernel, dtype):
    """Rows 1e4 away from 0: centring keeps the distances; without it float32 would lose all digits."""
    X = rows(50, 0, offset=1e4).astype(dtype)
    expected = matrix(kernel, X.astype(float), X.astype(float))
    np.testing.assert_allclose(kernel(X), expected, atol=50 * np.finfo(dtype).eps)
    half = kernel.on(X, np.float32).rows(0, 50)
    np.testing.assert_allclose(half, expected, atol=50 * np.finfo(np.float32).eps)


@pytest.mark.parametrize(("dtype", "low"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_the_exponential_is_right_to_one_ulp(dtype, low):
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(low, 0, 4000), -(10.0 ** rng.uniform(-30, 1, 4000)), [0.0, low]]
    )
    x = x.astype(dtype)
    out = np.empty_like(x)
    exponentials(x, out)
    if dtype == np.float32:
        exact = np.exp(x.astype(np.float64))
    else:
        with mpmath.workdps(40):
            exact = np.array([mpmath.exp(mpmath.mpf(float(v))) for v in x])
    assert (
        float(max(abs((o - e) / e) for o, e in zip(out.astype(object), exact)))
        <= np.finfo(dtype).eps
    )
    special = np.array([-np.inf, low - 1.0, -1e30, np.nan], dtype=dtype)
    out = np.empty_like(special)
    exponentials(special, out)
    assert (out[:3] == 0.0).all()
    assert np.isnan(out[3])


@every_kernel
def test_kernels_are_cloned_and_searched_over(kernel):
    copy = clone(kernel)
    assert str(copy.get_params()) == str(kernel.get_params())
    X = rows(20, 0)
    np.testing.assert_array_equal(copy(X), kernel(X))


def test_nested_parameters():
    model = KernelRidge(kernel=Gaussian(0.5) + 0.5 * Polynomial(3))
    model.set_params(
        kernel__left__gamma=2.0, kernel__right__scale=0.1, kernel__right__kernel__degree=2
    )
    X = rows(20, 0)
    np.testing.assert_allclose(
        model.kernel(X), Gaussian(2.0)(X) + 0.1 * Polynomial(2)(X), rtol=1e-13
    )


@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if not isinstance(k, Reweighted)] + [Pairwise("cosine")], ids=str
)
def test_kernels_are_saved_with_their_models(kernel, tmp_path):
    X = np.abs(rows(20, 0))
    model = KernelRidge(kernel=kernel).fit(X, X[:, 0])
    model.save(tmp_path / "model.surefit")
    again = surefit.load(tmp_path / "model.surefit")
    # a product with itself and with a copy may differ in the last bit
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-13)
    assert str(again.kernel_) == str(model.kernel_)


def test_names():
    X = np.abs(rows(10, 0))
    from sklearn.metrics.pairwise import pairwise_kernels

    for name in (
        "linear",
        "poly",
        "polynomial",
        "rbf",
        "laplacian",
        "sigmoid",
        "cosine",
        "chi2",
        "additive_chi2",
    ):
        given = {} if name in ("linear", "cosine", "additive_chi2") else {"gamma": 0.3}
        given |= {"coef0": 0.5} if name in ("poly", "polynomial", "sigmoid") else {}
        np.testing.assert_allclose(
            as_kernel(name, **given)(X), pairwise_kernels(X, metric=name, **given), rtol=1e-9
        )
    K = Linear()(X)
    np.testing.assert_array_equal(as_kernel("precomputed")(K), K)
    assert as_kernel(Gaussian(0.5)).gamma == 0.5
    np.testing.assert_allclose(as_kernel(lambda A, B: A @ B.T)(X), K)
    np.testing.assert_allclose(as_kernel(lambda x, z: x @ z, pairwise=True)(X), K)


def test_errors_name_the_parameter():
    X = rows(10, 0)
    for kernel, words in [
        (Gaussian(-1.0), "gamma must be a number >= 0"),
        (Gaussian("wide"), "gamma must be a number, 'scale', 'auto' or None, got 'wide'"),
        (Laplace(1.0, norm="l3"), "norm must be 'l1' or 'l2', got 'l3'"),
        (Polynomial(-1), "degree must be a number >= 0"),
        (Polynomial(2, coef0=np.nan), "coef0 must be a finite number"),
        (Sigmoid(coef0=np.inf), "coef0 must be a finite number"),
        (Pairwise("euclid"), "metric must be"),
        (Custom(lambda A, B: A @ B.T[:, :3]), "must be \\(10, 10\\)"),
        (Reweighted(Linear(), lambda A: A), "one number a row"),
    ]:
        with pytest.raises(ValueError, match=words):
            kernel(X)
    with pytest.raises(ValueError, match="a kernel needs rows"):
        Linear()(X[0])
    with pytest.raises(ValueError, match="square"):
        Precomputed().on(X)
    with pytest.raises(ValueError, match="kernel must be one of"):
        as_kernel("gauss")
    with pytest.raises(ValueError, match="NaN"):
        psd_claim(np.array([[np.nan]]))
