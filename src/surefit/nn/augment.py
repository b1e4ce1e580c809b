"""Augmentation: transforms of pictures that keep their label (NN-20).

Flips, shifts, crops and rotations of a batch of pictures, each picture by its own draw. A draw is a pure
function of (seed, epoch, index of the picture), through the mixing function of SplitMix64: it does not
depend on the batch the picture is in, on the device or on what was drawn before, so that a resumed run, or
one on more machines, sees the same pictures.

Which transforms keep a label is for the user to say: a digit turned by 180 degrees is another digit.

References
----------
Simard, Steinkraus and Platt, "Best practices for convolutional neural networks applied to visual document
analysis", 2003;
Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014, for the mixing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from .batches import mixed

__all__ = ["Augment", "rotate"]


@dataclass(frozen=True)
class Augment:
    """Random transforms of pictures of shape (n, channels, height, width); shapes and dtypes are kept.

    Parameters
    ----------
    flip : bool
        Mirror left and right, with probability 1/2.
    shift : int
        Move by up to this many whole pixels in each direction; zeros come in. This is the "pad and crop" of
        CIFAR.
    crop : float
        The least part of the side that is kept, in (0, 1]; the part is drawn uniformly from [crop, 1], its
        place too, and the crop is enlarged to the picture's size.
    rotation : float
        Turn by up to this many degrees in either direction; zeros come in.

    Examples
    --------
    >>> import torch
    >>> X = torch.arange(32.0).reshape(2, 1, 4, 4)
    >>> moved = Augment(flip=True, shift=1)(X, seed=0, epoch=3, index=[10, 11])
    >>> moved.shape
    torch.Size([2, 1, 4, 4])
    >>> alone = Augment(flip=True, shift=1)(X[1:], seed=0, epoch=3, index=[11])
    >>> bool((alone == moved[1:]).all())
    True
    """

    flip: bool = False
    shift: int = 0
    crop: float = 1.0
    rotation: float = 0.0

    def __post_init__(self) -> None:
        if self.shift < 0 or int(self.shift) != self.shift:
            raise ValueError(f"shift must be a whole number of pixels >= 0, got {self.shift!r}.")
        if not 0 < self.crop <= 1:
            raise ValueError(
                f"crop must be in (0, 1], got {self.crop!r}; 1 keeps the whole picture."
            )
        if not 0 <= self.rotation <= 360:
            raise ValueError(f"rotation must be in [0, 360] degrees, got {self.rotation!r}.")

    def __call__(self, X: torch.Tensor, *, seed: int, epoch: int, index: Any) -> torch.Tensor:
        """The pictures, transformed.

        Parameters
        ----------
        X : tensor of shape (n, channels, height, width)
        seed, epoch : int
        index : n whole numbers
            Of the pictures in their data set.
        """
        if X.dim() != 4:
            raise ValueError(
                f"X has shape {tuple(X.shape)}; augmentation needs (n, channels, height, width)."
            )
        rows = _whole(index)
        if rows.shape != (X.shape[0],):
            raise ValueError(
                f"index has shape {rows.shape}; give one number for each of {len(X)} pictures."
            )

        def draw(which: int) -> NDArray[np.float64]:
            return _uniform(rows, mixed(seed, epoch, which))

        if self.flip:
            mirrored = torch.from_numpy(draw(0) < 0.5).to(X.device)
            X = torch.where(mirrored[:, None, None, None], X.flip(-1), X)
        if self.shift:
            steps = [np.floor(draw(k) * (2 * self.shift + 1)).astype(np.int64) for k in (1, 2)]
            X = _shifted(X, self.shift, steps[0], steps[1])
        if self.crop < 1:
            part = self.crop + (1 - self.crop) * draw(3)
            slack = 1 - part  # how far the crop's centre may move, in units of half a side
            X = _warped(
                X, part, np.zeros_like(part), slack * (2 * draw(4) - 1), slack * (2 * draw(5) - 1)
            )
        if self.rotation:
            X = rotate(X, self.rotation * (2 * draw(6) - 1))
        return X


def rotate(X: torch.Tensor, degrees: Any) -> torch.Tensor:
    """Turn each picture about its centre, anticlockwise, by bilinear interpolation; zeros come in.

    A picture turned by 0 degrees is returned as it was, bit by bit.

    Parameters
    ----------
    X : tensor of shape (n, channels, height, width)
    degrees : number, or n numbers

    Examples
    --------
    >>> import torch
    >>> rotate(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), 90.0).round().tolist()
    [[[[2.0, 4.0], [1.0, 3.0]]]]
    """
    angles = np.broadcast_to(np.asarray(degrees, dtype=np.float64), (len(X),))
    one, zero = np.ones(len(X)), np.zeros(len(X))
    turned = _warped(X, one, np.deg2rad(angles), zero, zero)
    still = torch.from_numpy(angles % 360 == 0).to(X.device)
    return torch.where(still[:, None, None, None], X, turned)


def _warped(X: torch.Tensor, scale: Any, angle: Any, right: Any, down: Any) -> torch.Tensor:
    """X read at scale * rotation(pixel) + (right, down), where 1 is half of the side in question."""
    height, width = X.shape[-2:]
    ratio = height / width
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    theta = np.stack(
        [
            np.stack([cos, -sin * ratio, right], axis=-1),
            np.stack([sin / ratio, cos, down], axis=-1),
        ],
        axis=1,
    )
    values = X if X.is_floating_point() else X.float()
    precise = torch.float64 if X.dtype == torch.float64 else torch.float32
    places = torch.from_numpy(theta).to(precise).to(X.device)
    grid = F.affine_grid(places, list(X.shape), align_corners=False).to(values.dtype)
    warped = F.grid_sample(values, grid, align_corners=False)
    return warped if X.is_floating_point() else warped.round().to(X.dtype)


def _shifted(X: torch.Tensor, most: int, down: Any, right: Any) -> torch.Tensor:
    height, width = X.shape[-2:]
    padded = F.pad(X, (most, most, most, most))
    rows = torch.from_numpy(down[:, None] + np.arange(height)).to(X.device)
    columns = torch.from_numpy(right[:, None] + np.arange(width)).to(X.device)
    which = torch.arange(len(X), device=X.device)[:, None, None]
    moved: torch.Tensor = padded[which, :, rows[:, :, None], columns[:, None, :]]  # (n, h, w, c)
    return moved.permute(0, 3, 1, 2).contiguous()


def _whole(index: Any) -> NDArray[np.int64]:
    if isinstance(index, torch.Tensor):
        index = index.detach().cpu().numpy()
    return np.asarray(index, dtype=np.int64)


def _uniform(rows: NDArray[np.int64], key: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, by SplitMix64's mixing of row and key."""
    z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)  # wraps round
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)).astype(np.float64) * math.ldexp(1.0, -53)
