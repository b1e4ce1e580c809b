"""Convolution networks: the pipeline of the notes, LeNet and AlexNet (CNN-11 to CNN-13).

Each is a torch module made of torch's layers, with its sizes in a frozen dataclass. Shapes are comments at
the line's end, as channels @ side². All return one score a class, without softmax.

LeNet-5 has 61,706 parameters and AlexNet 60,965,224. Residual networks are in :mod:`surefit.nn.resnet`.

References
----------
LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE, 1998;
Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional neural networks", 2012.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from .convolution import output_size

__all__ = [
    "AlexNet",
    "AlexNetSizes",
    "ConvNet",
    "ConvNetSizes",
    "LeNet",
    "LeNetSizes",
]


@dataclass(frozen=True)
class ConvNetSizes:
    """Sizes of :class:`ConvNet`; one convolution for each entry of ``widths``, each followed by halving."""

    channels: int = 1
    side: int = 28
    widths: tuple[int, ...] = (16, 32)
    hidden: int = 128
    classes: int = 10


class ConvNet(nn.Sequential):
    """The pipeline of the notes: [3 x 3 convolution, ReLU, max-pool]*, flatten, a two-layer perceptron
    (CNN-11).

    Examples
    --------
    >>> import torch
    >>> ConvNet(ConvNetSizes(side=8, widths=(8, 16)))(torch.zeros(5, 1, 8, 8)).shape
    torch.Size([5, 10])
    """

    def __init__(self, sizes: ConvNetSizes = ConvNetSizes()) -> None:  # noqa: B008 (frozen)
        parts: list[nn.Module] = []
        channels, side = sizes.channels, sizes.side
        for width in sizes.widths:
            if side < 2:
                raise ValueError(
                    f"side {sizes.side} cannot be halved {len(sizes.widths)} times; give fewer widths."
                )
            parts += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            channels, side = width, side // 2
        parts += [nn.Flatten(), nn.Linear(channels * side**2, sizes.hidden), nn.ReLU()]
        super().__init__(*parts, nn.Linear(sizes.hidden, sizes.classes))
        self.sizes = sizes


@dataclass(frozen=True)
class LeNetSizes:
    """Sizes of :class:`LeNet`. Pictures of 28 x 28 are padded to 32 x 32 by the first convolution."""

    channels: int = 1
    side: int = 32
    classes: int = 10


class LeNet(nn.Sequential):
    """LeNet-5 with ReLU, average pooling, a dense second convolution and a linear last layer (CNN-12).

    Examples
    --------
    >>> sum(p.numel() for p in LeNet().parameters())
    61706
    """

    def __init__(self, sizes: LeNetSizes = LeNetSizes()) -> None:  # noqa: B008 (frozen)
        if sizes.side not in (28, 32):
            raise ValueError(
                f"LeNet: side must be 28 or 32, got {sizes.side}; ConvNet takes others."
            )
        super().__init__(
            nn.Conv2d(sizes.channels, 6, 5, padding=(32 - sizes.side) // 2),  # 6 @ 28²
            nn.ReLU(),
            nn.AvgPool2d(2),  # 6 @ 14²
            nn.Conv2d(6, 16, 5),  # 16 @ 10²
            nn.ReLU(),
            nn.AvgPool2d(2),  # 16 @ 5²
            nn.Flatten(),
            nn.Linear(16 * 5 * 5, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, sizes.classes),
        )
        self.sizes = sizes


@dataclass(frozen=True)
class AlexNetSizes:
    """Sizes of :class:`AlexNet`. ``groups=2`` is the published network, cut in two for two devices."""

    channels: int = 3
    side: int = 224
    classes: int = 1000
    groups: int = 2
    dropout: float = 0.5


class AlexNet(nn.Sequential):
    """AlexNet with local response norms, overlapping pooling and dropout (CNN-13).

    torch divides the norm's alpha by its size, the paper does not: 5e-4 here is 1e-4 there.

    Examples
    --------
    >>> import torch
    >>> with torch.device("meta"):                       # counts without using memory
    ...     sum(p.numel() for p in AlexNet().parameters())
    60965224
    """

    def __init__(self, sizes: AlexNetSizes = AlexNetSizes()) -> None:  # noqa: B008 (frozen)
        side = output_size(sizes.side, 11, stride=4, padding=2)
        for _ in range(3):
            side = output_size(side, 3, stride=2)  # 55, 27, 13, 6
        g = sizes.groups
        super().__init__(
            nn.Conv2d(sizes.channels, 96, 11, stride=4, padding=2),  # 96 @ 55²
            nn.ReLU(),
            nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2.0),
            nn.MaxPool2d(3, 2),  # 96 @ 27²
            nn.Conv2d(96, 256, 5, padding=2, groups=g),  # 256 @ 27²
            nn.ReLU(),
            nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2.0),
            nn.MaxPool2d(3, 2),  # 256 @ 13²
            nn.Conv2d(256, 384, 3, padding=1),  # 384 @ 13²
            nn.ReLU(),
            nn.Conv2d(384, 384, 3, padding=1, groups=g),
            nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1, groups=g),  # 256 @ 13²
            nn.ReLU(),
            nn.MaxPool2d(3, 2),  # 256 @ 6²
            nn.Flatten(),
            nn.Dropout(sizes.dropout),
            nn.Linear(256 * side**2, 4096),
            nn.ReLU(),
            nn.Dropout(sizes.dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Linear(4096, sizes.classes),
        )
        self.sizes = sizes
