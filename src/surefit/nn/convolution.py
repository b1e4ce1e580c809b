"""Convolution as arithmetic: sizes, padding, the matrix, and classic filters (CNN-1 to CNN-10).

What networks call a convolution is a cross-correlation: with stride S,

    y[n, m] = sum_{k, l} f[k, l] x[S n + k, S m + l].

A true convolution is the same with the kernel flipped. It is linear in x, hence a matrix: one row for each
output pixel, the same few weights in every row, shifted. For one channel and stride 1 the matrix is doubly
blocked Toeplitz. A 2 x 2 kernel on a 3 x 3 picture is a 4 x 9 matrix with 16 non-zeros that holds 4
different weights, where a dense layer would have 36. The gradient by a weight is the sum of the gradients
by its places in the matrix (CNN-8).

Networks use torch's layers. This module says what they compute, and gives the matrix where one is wanted:
for an exact operator norm, for instance.

References
----------
Dumoulin and Visin, "A guide to convolution arithmetic for deep learning", arXiv:1603.07285.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = [
    "SOBEL_X",
    "SOBEL_Y",
    "convolution_matrix",
    "cross_correlate",
    "gaussian_filter",
    "output_size",
    "same_padding",
    "shared_gradient",
]

Floats = NDArray[Any]

SOBEL_X: Floats = np.array([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
SOBEL_Y: Floats = SOBEL_X.T.copy()
SOBEL_X.setflags(write=False)
SOBEL_Y.setflags(write=False)


def output_size(size: int, kernel: int, *, stride: int = 1, padding: int = 0) -> int:
    """floor(1 + (size + 2 padding - kernel) / stride): the side of what comes out (CNN-4).

    Examples
    --------
    >>> output_size(224, 11, stride=4, padding=2)
    55
    """
    _check_positive(size=size, kernel=kernel, stride=stride)
    if padding < 0:
        raise ValueError(f"padding must be 0 or more, got {padding}.")
    if size + 2 * padding < kernel:
        raise ValueError(
            f"kernel {kernel} is larger than the padded picture, {size} + 2 * {padding}; "
            "use a smaller kernel or more padding."
        )
    return 1 + (size + 2 * padding - kernel) // stride


def same_padding(size: int, kernel: int, *, stride: int = 1) -> int:
    """ceil((size (stride - 1) + kernel - stride) / 2): the output is as large as the input (CNN-5).

    Symmetric padding cannot do it for stride 1 and an even kernel, which is an error; it can for all others.

    Examples
    --------
    >>> same_padding(28, 5)
    2
    """
    _check_positive(size=size, kernel=kernel, stride=stride)
    padding = -(-(size * (stride - 1) + kernel - stride) // 2)
    if stride == 1 and kernel % 2 == 0:
        raise ValueError(
            f"no symmetric padding keeps size {size} with kernel {kernel} and stride {stride}; "
            "use an odd kernel."
        )
    return padding


def cross_correlate(
    x: Any, kernel: Any, *, stride: int = 1, padding: int = 0, bias: float = 0.0
) -> Floats:
    """The definition, for one channel in one or two dimensions (CNN-1); flip the kernel for a convolution.

    Examples
    --------
    >>> cross_correlate([1, 2, 3, 4], [1, -1]).tolist()
    [-1, -1, -1]
    """
    x, kernel = np.asarray(x), np.asarray(kernel)
    if x.ndim != kernel.ndim or x.ndim not in (1, 2):
        raise ValueError(
            f"x has {x.ndim} dimensions and kernel {kernel.ndim}; both must have 1, or both 2."
        )
    for size, side in zip(x.shape, kernel.shape, strict=True):
        output_size(size, side, stride=stride, padding=padding)  # says what is wrong
    x = np.pad(x, padding)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape)
    windows = windows[(slice(None, None, stride),) * kernel.ndim]
    axes = tuple(range(kernel.ndim))
    result = np.tensordot(windows, kernel, axes=(tuple(a + kernel.ndim for a in axes), axes))
    return np.asarray(result if bias == 0.0 else result + bias)


def convolution_matrix(
    kernel: Any, shape: tuple[int, ...], *, stride: int = 1, padding: int = 0
) -> sp.csr_array:
    """The matrix M with M vec(x) = vec(kernel * x), rows of a picture one after another (CNN-6).

    Parameters
    ----------
    kernel : array of shape (a, b) or (outputs, inputs, a, b)
        One channel, or as torch's ``Conv2d.weight`` with one group.
    shape : (m, n) or (inputs, m, n)
        The picture's.
    stride, padding : int

    Returns
    -------
    csr_array
        Places whose weight is 0 are kept as explicit zeros, so that ``nnz`` counts edges.

    Examples
    --------
    >>> M = convolution_matrix([[1, 2], [3, 4]], (3, 3))
    >>> M.shape, M.nnz
    ((4, 9), 16)
    >>> M.toarray()[0].tolist()
    [1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    """
    weights = _as_four(kernel)
    rows, columns, which, size = _edges(weights.shape, shape, stride, padding)
    data = weights.ravel()[which]
    return sp.csr_array((data, (rows, columns)), shape=size)


def shared_gradient(
    matrix_gradient: Any,
    kernel_shape: tuple[int, ...],
    shape: tuple[int, ...],
    *,
    stride: int = 1,
    padding: int = 0,
) -> Floats:
    """The gradient by a kernel from the gradient by every entry of its matrix: the sum over edges (CNN-8).

    Examples
    --------
    >>> import numpy as np
    >>> shared_gradient(np.ones((4, 9)), (2, 2), (3, 3)).tolist()       # each weight has 4 edges
    [[4.0, 4.0], [4.0, 4.0]]
    """
    four = _four_shape(kernel_shape)
    rows, columns, which, size = _edges(four, shape, stride, padding)
    gradient = np.asarray(matrix_gradient, dtype=np.float64)
    if gradient.shape != size:
        raise ValueError(f"matrix_gradient has shape {gradient.shape}, the matrix has {size}.")
    total = np.bincount(which, weights=gradient[rows, columns], minlength=int(np.prod(four)))
    return total.reshape(kernel_shape)


def gaussian_filter(size: int, sigma: float) -> Floats:
    """A size x size Gaussian kernel that sums to 1; size is odd (CNN-10).

    Examples
    --------
    >>> kernel = gaussian_filter(5, 1.0)
    >>> kernel.shape, round(float(kernel.sum()), 12)
    ((5, 5), 1.0)
    """
    if size < 1 or size % 2 == 0:
        raise ValueError(f"size must be odd and positive, got {size}; the kernel needs a centre.")
    if not (sigma > 0 and np.isfinite(sigma)):
        raise ValueError(f"sigma must be a number above 0, got {sigma!r}.")
    line = np.exp(-0.5 * ((np.arange(size) - size // 2) / sigma) ** 2)
    kernel = np.outer(line, line)
    return np.asarray(kernel / kernel.sum())


def _edges(
    kernel_shape: tuple[int, ...], shape: tuple[int, ...], stride: int, padding: int
) -> tuple[Floats, Floats, Floats, tuple[int, int]]:
    """Row, column and weight of every edge from an input pixel to an output pixel, and the matrix's shape."""
    outputs, inputs, a, b = kernel_shape
    picture = (1, *shape) if len(shape) == 2 else tuple(shape)
    if len(picture) != 3 or picture[0] != inputs:
        raise ValueError(
            f"shape {shape} does not fit a kernel with {inputs} input channels; "
            "give (m, n) for one channel, or (channels, m, n)."
        )
    m, n = picture[1:]
    tall = output_size(m, a, stride=stride, padding=padding)
    wide = output_size(n, b, stride=stride, padding=padding)
    o, c, k, el, i, j = np.ix_(
        *(np.arange(length) for length in (outputs, inputs, a, b, tall, wide))
    )
    row, column = stride * i + k - padding, stride * j + el - padding
    inside = (row >= 0) & (row < m) & (column >= 0) & (column < n)
    full = np.broadcast_shapes(inside.shape, o.shape, c.shape)
    keep = np.broadcast_to(inside, full).ravel()

    def flat(index: Any) -> Floats:
        return np.broadcast_to(index, full).ravel()[keep]

    rows = flat((o * tall + i) * wide + j)
    columns = flat((c * m + row) * n + column)
    which = flat(((o * inputs + c) * a + k) * b + el)
    return rows, columns, which, (outputs * tall * wide, inputs * m * n)


def _as_four(kernel: Any) -> Floats:
    weights = np.asarray(kernel, dtype=np.float64)
    return weights.reshape(_four_shape(weights.shape))


def _four_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) not in (2, 4):
        raise ValueError(
            f"kernel has shape {tuple(shape)}; it must be (a, b) or (outputs, inputs, a, b)."
        )
    return (1, 1, *shape) if len(shape) == 2 else tuple(shape)


def _check_positive(**sizes: int) -> None:
    for name, value in sizes.items():
        if value < 1:
            raise ValueError(f"{name} must be 1 or more, got {value}.")
