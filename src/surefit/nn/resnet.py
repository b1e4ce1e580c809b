"""Residual networks: blocks that add to what they are given (CNN-14).

    x -> x + R(x),      with Jacobian I + R'.

Where R is small the block is close to the identity, so that signals and gradients pass through many blocks;
a plain stack of as many layers stalls. Shortcuts that change shape are 1 x 1 convolutions (``projected``),
or take every second pixel and pad with channels of zeros, without weights.

================== ============ =============== ============
function           input        weighted layers parameters
================== ============ =============== ============
resnet20           3 @ 32²      20 (padded)     269,722
resnet18_cifar     3 @ 32²      21              11,173,962
resnet18           3 @ 224²     21              11,689,512
resnet34           3 @ 224²     37              21,797,672
resnet50           3 @ 224²     54              25,557,032
================== ============ =============== ============

Parameters count weights and biases of all layers and norms, with 10 or 1000 classes; layers include
projections.

References
----------
He, Zhang, Ren and Sun, "Deep residual learning for image recognition", CVPR 2016.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

__all__ = [
    "ResNet",
    "ResNetSizes",
    "Residual",
    "resnet18",
    "resnet18_cifar",
    "resnet20",
    "resnet34",
    "resnet50",
]


class Residual(nn.Module):
    """x + R(x), for any module R that keeps the shape (CNN-14). Its Jacobian is I + R'.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> body = nn.Linear(3, 3)
    >>> _ = nn.init.zeros_(body.weight), nn.init.zeros_(body.bias)
    >>> Residual(body)(torch.tensor([1.0, 2.0, 3.0])).tolist()          # R = 0 is the identity
    [1.0, 2.0, 3.0]
    """

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x)


@dataclass(frozen=True)
class ResNetSizes:
    """Sizes of :class:`ResNet`: ``blocks[i]`` blocks of ``widths[i]`` channels; later stages halve sides."""

    blocks: tuple[int, ...] = (3, 3, 3)
    widths: tuple[int, ...] = (16, 32, 64)
    bottleneck: bool = False  # 1x1, 3x3, 1x1 with four times the width, instead of two 3x3
    projected: bool = (
        False  # shortcuts that change shape: 1x1 convolutions, or subsampled and padded
    )
    large: bool = False  # 7x7 stride 2 and pooling before the first stage, for pictures of 224²
    channels: int = 3
    classes: int = 10


class Shortcut(nn.Module):
    """The shortcut without weights: every second pixel, and channels of zeros on both sides."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.before = (outputs - inputs) // 2
        self.after = outputs - inputs - self.before
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[:, :, :: self.stride, :: self.stride]
        return F.pad(x, (0, 0, 0, 0, self.before, self.after))


class Block(nn.Module):
    """relu(shortcut(x) + R(x)), where R is two or three convolutions with batch norms."""

    def __init__(self, inputs: int, width: int, stride: int, sizes: ResNetSizes) -> None:
        super().__init__()
        outputs = 4 * width if sizes.bottleneck else width
        if sizes.bottleneck:
            self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
            self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        else:
            self.conv1 = nn.Conv2d(inputs, width, 3, stride=stride, padding=1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.bn3 = nn.BatchNorm2d(outputs) if sizes.bottleneck else None
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            if sizes.projected:
                projection = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)
                self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outputs))
            else:
                self.shortcut = Shortcut(inputs, outputs, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        r = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.bn3 is not None:
            r = self.bn3(self.conv3(F.relu(r)))
        return F.relu(self.shortcut(x) + r)


class ResNet(nn.Module):
    """A residual network; :func:`resnet20` and the others below give the published sizes (CNN-14).

    Parameters' names are those in common use: conv1, bn1, layer1.0.conv1, ..., linear.

    Examples
    --------
    >>> sum(p.numel() for p in resnet20().parameters())
    269722
    """

    def __init__(self, sizes: ResNetSizes = ResNetSizes()) -> None:  # noqa: B008 (frozen)
        super().__init__()
        if len(sizes.blocks) != len(sizes.widths) or not sizes.blocks:
            raise ValueError(
                f"blocks {sizes.blocks} and widths {sizes.widths} must have one entry for each stage."
            )
        self.sizes = sizes
        width = sizes.widths[0]
        if sizes.large:
            self.conv1 = nn.Conv2d(sizes.channels, width, 7, stride=2, padding=3, bias=False)
        else:
            self.conv1 = nn.Conv2d(sizes.channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool: nn.Module = nn.MaxPool2d(3, 2, padding=1) if sizes.large else nn.Identity()
        inputs = width
        for stage, (count, width) in enumerate(zip(sizes.blocks, sizes.widths, strict=True), 1):
            parts = []
            for i in range(count):
                parts.append(Block(inputs, width, 2 if stage > 1 and i == 0 else 1, sizes))
                inputs = 4 * width if sizes.bottleneck else width
            setattr(self, f"layer{stage}", nn.Sequential(*parts))
        self.linear = nn.Linear(inputs, sizes.classes)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for stage in range(1, len(self.sizes.blocks) + 1):
            x = getattr(self, f"layer{stage}")(x)
        return self.linear(x.mean(dim=(2, 3)))  # global average pooling: one value a channel


def resnet20(*, classes: int = 10) -> ResNet:
    """The ResNet-20 of the paper's CIFAR section: 269,722 weights, 3 @ 32², shortcuts padded."""
    return ResNet(ResNetSizes(classes=classes))


def resnet18_cifar(*, classes: int = 10) -> ResNet:
    """The common ResNet-18 for pictures of 32²: a 3x3 first layer and no pooling before the first stage."""
    widths = (64, 128, 256, 512)
    return ResNet(ResNetSizes((2, 2, 2, 2), widths, projected=True, classes=classes))


def resnet18(*, classes: int = 1000) -> ResNet:
    """ResNet-18 for pictures of 224²."""
    return _large((2, 2, 2, 2), classes)


def resnet34(*, classes: int = 1000) -> ResNet:
    """ResNet-34 for pictures of 224²."""
    return _large((3, 4, 6, 3), classes)


def resnet50(*, classes: int = 1000) -> ResNet:
    """ResNet-50 for pictures of 224², in bottlenecks; the 3x3 convolution of a block halves."""
    return _large((3, 4, 6, 3), classes, bottleneck=True)


def _large(blocks: tuple[int, ...], classes: int, *, bottleneck: bool = False) -> ResNet:
    return ResNet(
        ResNetSizes(
            blocks,
            (64, 128, 256, 512),
            bottleneck=bottleneck,
            projected=True,
            large=True,
            classes=classes,
        )
    )
