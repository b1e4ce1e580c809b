"""Convolution as the notes teach it, against torch's layers and by counting: CNN-1 to CNN-10."""

import itertools

import numpy as np
import pytest
from scipy.signal import convolve2d

from surefit.nn.convolution import (
    SOBEL_X,
    SOBEL_Y,
    convolution_matrix,
    cross_correlate,
    gaussian_filter,
    output_size,
    same_padding,
    shared_gradient,
)

torch = pytest.importorskip("torch")
F = torch.nn.functional
RNG = np.random.default_rng(0)


def _conv2d(x, kernel, **options):
    """torch's, on arrays of shape (m, n) or (channels, m, n)."""
    x, kernel = np.asarray(x, dtype=np.float64), np.asarray(kernel, dtype=np.float64)
    if kernel.ndim == 2:
        x, kernel = x[None], kernel[None, None]
    return F.conv2d(torch.from_numpy(x)[None], torch.from_numpy(kernel), **options)[0].numpy()


@pytest.mark.spec("CNN-1")
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 0), (1, 2), (3, 1)])
def test_the_definition_is_torchs_layer(stride, padding):
    """y[n, m] = sum f[k, l] x[Sn + k, Sm + l] in one and two dimensions, a bias added everywhere."""
    x, kernel = RNG.normal(size=(9, 11)), RNG.normal(size=(3, 4))
    options = {"stride": stride, "padding": padding}
    ours = cross_correlate(x, kernel, bias=0.7, **options)
    np.testing.assert_allclose(ours, _conv2d(x, kernel, **options)[0] + 0.7, rtol=1e-12, atol=1e-12)
    line, taps = RNG.normal(size=20), RNG.normal(size=5)
    theirs = F.conv1d(
        torch.from_numpy(line)[None, None], torch.from_numpy(taps)[None, None], **options
    )
    np.testing.assert_allclose(
        cross_correlate(line, taps, **options), theirs[0, 0], rtol=1e-12, atol=1e-12
    )
    if padding == 0:  # the sum, written out
        n, m = 1, 2
        total = sum(
            kernel[k, j] * x[stride * n + k, stride * m + j] for k in range(3) for j in range(4)
        )
        assert ours[n, m] == pytest.approx(total + 0.7, rel=1e-12)


@pytest.mark.spec("CNN-1")
def test_a_true_convolution_has_the_kernel_flipped():
    x, kernel = RNG.normal(size=(8, 8)), RNG.normal(size=(3, 3))
    np.testing.assert_allclose(
        cross_correlate(x, kernel[::-1, ::-1]),
        convolve2d(x, kernel, mode="valid"),
        rtol=1e-12,
        atol=1e-13,
    )
    assert np.abs(cross_correlate(x, kernel) - convolve2d(x, kernel, mode="valid")).max() > 0.1


@pytest.mark.spec("CNN-2")
def test_the_worked_example_of_the_notes():
    x = [[1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]
    result = cross_correlate(x, [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    assert result.dtype.kind == "i"
    np.testing.assert_array_equal(result, [[4, 3, 4], [2, 4, 3], [2, 3, 4]])


@pytest.mark.spec("CNN-3")
def test_five_kernels_over_three_channels():
    """Five 3 x 3 x 3 kernels: five channels and 5 * 27 + 5 = 140 parameters; each adds up its channels."""
    layer = torch.nn.Conv2d(3, 5, 3, dtype=torch.float64)
    assert sum(p.numel() for p in layer.parameters()) == 140
    x = RNG.normal(size=(3, 10, 10))
    out = layer(torch.from_numpy(x)[None])[0].detach().numpy()
    assert out.shape == (5, 8, 8)
    weight, bias = (p.detach().numpy() for p in layer.parameters())
    for o in range(5):
        total = sum(cross_correlate(x[c], weight[o, c]) for c in range(3)) + bias[o]
        np.testing.assert_allclose(out[o], total, rtol=1e-12, atol=1e-12)


@pytest.mark.spec("CNN-4")
def test_output_sizes_are_torchs():
    """floor(1 + (m + 2p - a) / s) for all small sizes; 224, kernel 11, stride 4, padding 2 gives 55."""
    assert output_size(224, 11, stride=4, padding=2) == 55
    for m, a, s, p in itertools.product([5, 6, 9], [1, 2, 3, 5], [1, 2, 3], [0, 1, 2]):
        shape = F.conv2d(
            torch.zeros(1, 1, m, m), torch.zeros(1, 1, a, a), stride=s, padding=p
        ).shape
        assert output_size(m, a, stride=s, padding=p) == shape[-1]


@pytest.mark.spec("CNN-4")
def test_a_stride_longer_than_the_kernel_skips_pixels():
    """The stride should not exceed the kernel: else some inputs touch no output."""
    touched = np.asarray(abs(convolution_matrix(np.ones((2, 2)), (9, 9), stride=3)).sum(axis=0))
    assert (touched == 0).any()
    assert (
        np.asarray(convolution_matrix(np.ones((3, 3)), (9, 9), stride=3).sum(axis=0)) == 1
    ).all()


@pytest.mark.spec("CNN-5")
def test_same_padding_keeps_the_size():
    """p = ceil((m(s-1) + a - s)/2) keeps m for all (m, a, s) but stride 1 with an even kernel."""
    assert same_padding(28, 5) == 2
    for m, a, s in itertools.product(range(1, 15), range(1, 9), range(1, 5)):
        if s == 1 and a % 2 == 0:
            with pytest.raises(ValueError, match="use an odd kernel"):
                same_padding(m, a, stride=s)
            reached = {output_size(m, a, padding=p) for p in range(a, 2 * a)} | {
                output_size(m, a, padding=p) for p in range(a) if m + 2 * p >= a
            }
            assert m not in reached  # no other symmetric padding does it either
        else:
            p = same_padding(m, a, stride=s)
            assert output_size(m, a, stride=s, padding=p) == m


@pytest.mark.spec("CNN-6")
def test_the_four_by_nine_matrix():
    """2 x 2 on 3 x 3: 4 x 9, 16 non-zeros, 4 weights for 36; doubly blocked Toeplitz, and not circulant."""
    kernel = np.array([[1.0, 2.0], [3.0, 4.0]])
    M = convolution_matrix(kernel, (3, 3))
    assert M.shape == (4, 9)
    assert M.nnz == 16
    assert M.shape[0] * M.shape[1] == 36
    dense = M.toarray()
    np.testing.assert_array_equal(
        dense,
        [
            [1, 2, 0, 3, 4, 0, 0, 0, 0],
            [0, 1, 2, 0, 3, 4, 0, 0, 0],
            [0, 0, 0, 1, 2, 0, 3, 4, 0],
            [0, 0, 0, 0, 1, 2, 0, 3, 4],
        ],
    )
    blocks = dense.reshape(2, 2, 3, 3).transpose(0, 2, 1, 3)  # 2 x 3 blocks of 2 x 3
    for i, j in itertools.product(range(2), range(3)):
        block = blocks[i, j]
        assert (block[1:, 1:] == block[:-1, :-1]).all()  # constant along diagonals
        if i > 0 and j > 0:
            np.testing.assert_array_equal(block, blocks[i - 1, j - 1])  # and so are the blocks
    assert not np.array_equal(dense[2], np.roll(dense[1], 1))
    x = RNG.normal(size=(3, 3))
    np.testing.assert_allclose(M @ x.ravel(), cross_correlate(x, kernel).ravel(), rtol=1e-13)


@pytest.mark.spec("CNN-6")
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1), (1, 2), (3, 2)])
def test_the_matrix_of_any_layer(stride, padding):
    """M vec(x) = vec(W * x) with channels, stride and padding."""
    weight, x = RNG.normal(size=(4, 3, 3, 2)), RNG.normal(size=(3, 7, 6))
    M = convolution_matrix(weight, x.shape, stride=stride, padding=padding)
    expected = _conv2d(x, weight, stride=stride, padding=padding)
    np.testing.assert_allclose(M @ x.ravel(), expected.ravel(), rtol=1e-12, atol=1e-12)


@pytest.mark.spec("CNN-7")
def test_a_shift_in_is_a_shift_out():
    """Exactly with circular padding; with zeros, in the interior only."""
    x, kernel = RNG.normal(size=(8, 8)), RNG.normal(size=(3, 3))

    def circular(z):
        return cross_correlate(np.pad(z, 1, mode="wrap"), kernel)

    def zeros(z):
        return cross_correlate(z, kernel, padding=1)

    moved = np.roll(x, (2, 3), axis=(0, 1))
    np.testing.assert_array_equal(circular(moved), np.roll(circular(x), (2, 3), axis=(0, 1)))
    there, here = zeros(moved), np.roll(zeros(x), (2, 3), axis=(0, 1))
    np.testing.assert_array_equal(there[3:-1, 4:-1], here[3:-1, 4:-1])
    assert not np.allclose(there, here)


@pytest.mark.spec("CNN-8")
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_the_gradient_of_shared_weights_is_the_sum_over_their_places(stride, padding):
    """As if every entry of the matrix were its own weight, then summed over the edges: autograd."""
    weight, x = RNG.normal(size=(2, 3, 3, 3)), RNG.normal(size=(3, 6, 5))
    w = torch.from_numpy(weight).requires_grad_()
    out = F.conv2d(torch.from_numpy(x)[None], w, stride=stride, padding=padding)
    out.pow(2).sum().backward()
    M = convolution_matrix(weight, x.shape, stride=stride, padding=padding)
    delta = 2 * (M @ x.ravel())
    unshared = np.outer(delta, x.ravel())  # the gradient of a dense layer
    summed = shared_gradient(unshared, weight.shape, x.shape, stride=stride, padding=padding)
    np.testing.assert_allclose(summed, w.grad.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.spec("CNN-9")
def test_pooling_by_its_definition():
    """max and average over windows, and over everything: one value a channel; size and stride."""
    x = RNG.normal(size=(2, 7, 9))
    t = torch.from_numpy(x)[None]
    for size, stride in [(2, 2), (3, 2), (3, 1)]:
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))
        windows = windows[:, ::stride, ::stride]
        np.testing.assert_array_equal(F.max_pool2d(t, size, stride)[0], windows.max(axis=(-1, -2)))
        np.testing.assert_allclose(
            F.avg_pool2d(t, size, stride)[0], windows.mean(axis=(-1, -2)), rtol=1e-12, atol=1e-14
        )
        assert F.max_pool2d(t, size, stride).shape[-2:] == tuple(
            output_size(side, size, stride=stride) for side in (7, 9)
        )
    everywhere = F.adaptive_avg_pool2d(t, 1)[0, :, 0, 0]
    np.testing.assert_allclose(everywhere, x.mean(axis=(1, 2)), rtol=1e-12)


@pytest.mark.spec("CNN-9")
def test_the_gradient_of_max_pooling_goes_to_the_largest():
    x = torch.from_numpy(RNG.normal(size=(1, 1, 6, 6))).requires_grad_()
    F.max_pool2d(x, 2).sum().backward()
    cells = x.detach().numpy()[0, 0].reshape(3, 2, 3, 2).transpose(0, 2, 1, 3).reshape(9, 4)
    grads = x.grad.numpy()[0, 0].reshape(3, 2, 3, 2).transpose(0, 2, 1, 3).reshape(9, 4)
    expected = np.zeros((9, 4))
    expected[np.arange(9), cells.argmax(axis=1)] = 1.0
    np.testing.assert_array_equal(grads, expected)


@pytest.mark.spec("CNN-10")
def test_sobel_sees_an_edge_and_nothing_else():
    picture = np.zeros((8, 8))
    picture[:, 4:] = 1.0
    across = cross_correlate(picture, SOBEL_X)
    assert set(np.nonzero(across.any(axis=0))[0]) == {2, 3}  # the windows that hold columns 3 and 4
    np.testing.assert_array_equal(across[:, 2:4], 4.0)
    np.testing.assert_array_equal(cross_correlate(picture, SOBEL_Y), 0.0)
    np.testing.assert_array_equal(cross_correlate(picture.T, SOBEL_Y), across.T)


@pytest.mark.spec("CNN-10")
@pytest.mark.parametrize(("size", "sigma"), [(3, 0.5), (5, 1.0), (9, 2.0)])
def test_the_gaussian_sums_to_one_and_smooths(size, sigma):
    kernel = gaussian_filter(size, sigma)
    assert kernel.sum() == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(kernel, kernel[::-1, ::-1], rtol=1e-14)
    np.testing.assert_allclose(kernel, kernel.T, rtol=1e-14)
    assert kernel.argmax() == kernel.size // 2
    noise = np.random.default_rng(1).normal(size=(60, 60))
    smooth = cross_correlate(noise, kernel)
    # the variance of a weighted sum of independent numbers is the sum of squared weights
    assert smooth.var() == pytest.approx((kernel**2).sum(), rel=0.25)
    np.testing.assert_allclose(cross_correlate(np.full((12, 12), 3.0), kernel), 3.0, rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: output_size(3, 5), "kernel 5 is larger"),
        (lambda: output_size(3, 2, stride=0), "stride must be 1 or more"),
        (lambda: output_size(3, 2, padding=-1), "padding must be 0 or more"),
        (lambda: cross_correlate(np.ones(3), np.ones((2, 2))), "both must have 1, or both 2"),
        (lambda: cross_correlate(np.ones((2, 2)), np.ones((3, 3))), "kernel 3 is larger"),
        (lambda: convolution_matrix(np.ones(3), (4, 4)), "kernel has shape"),
        (lambda: convolution_matrix(np.ones((1, 2, 3, 3)), (4, 4)), "2 input channels"),
        (lambda: shared_gradient(np.ones((3, 9)), (2, 2), (3, 3)), "the matrix has"),
        (lambda: gaussian_filter(4, 1.0), "size must be odd"),
        (lambda: gaussian_filter(5, 0.0), "sigma must be a number above 0"),
    ],
)
def test_bad_sizes_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
