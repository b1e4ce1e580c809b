"""``CNNClassifier``: pictures in, labels out, by a convolution network (CNN-11, CNN-12, CNN-14).

Rows are pictures (n, height, width), (n, channels, height, width), or flat with ``image_shape``; the
network is named or made by a function. All else is :class:`surefit.nn.estimators.NeuralClassifier`, its
certificate too.

References
----------
LeCun, Bottou, Bengio, Haffner, "Gradient-based learning applied to document recognition", Proc. IEEE, 1998;
He, Zhang, Ren, Sun, "Deep residual learning for image recognition", CVPR 2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions
from torch import nn

from .cnn import ConvNet, ConvNetSizes, LeNet, LeNetSizes
from .estimators import NeuralClassifier
from .resnet import ResNet, ResNetSizes

__all__ = ["ARCHITECTURES", "CNNClassifier"]

ARCHITECTURES = ("convnet", "lenet", "resnet20", "resnet18")


class CNNClassifier(NeuralClassifier):
    """A classifier of pictures.

    Parameters
    ----------
    architecture : {"convnet", "lenet", "resnet20", "resnet18"}, class or function
        ``"convnet"`` is for small square pictures, ``"lenet"`` for 28² or 32², the residual ones for any size
        from 8² up. A function is called as the ``module`` of :class:`NeuralClassifier`.
    image_shape : tuple of int, optional
        (height, width) or (channels, height, width) of a flat row.
    loss, epochs, batch_size, optimizer, lr, weight_decay, schedule, warmup, accumulate, clip, ema, precision,
    compile, device, patience, validation_fraction, class_weight, augment, checkpoint, warm_start, verbose,
    random_state, certify
        As in :class:`NeuralClassifier`.

    Attributes
    ----------
    image_shape_ : tuple of int
        (channels, height, width).
    module_, classes_, loss_, loss_curve_, validation_curve_, n_iter_, final_loss_, certificate_
        As in :class:`NeuralClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> digits = load_digits()
    >>> X, y = digits.images[:600] / 16, digits.target[:600]
    >>> model = CNNClassifier(epochs=8, batch_size=50, lr=3e-3, random_state=0).fit(X, y)
    >>> model.image_shape_, bool(model.score(X, y) > 0.9)
    ((1, 8, 8), True)
    """

    _given_again: ClassVar[frozenset[str]] = (NeuralClassifier._given_again - {"module"}) | {
        "architecture"
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{k: v for k, v in NeuralClassifier._parameter_constraints.items() if k != "module"},
        "architecture": [StrOptions(set(ARCHITECTURES)), callable, nn.Module],
        "image_shape": ["array-like", None],
    }

    def __init__(
        self,
        architecture: Any = "convnet",
        *,
        image_shape: Any = None,
        loss: Any = None,
        epochs: int = 10,
        batch_size: int = 128,
        optimizer: Any = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        schedule: Any = "constant",
        warmup: float = 0,
        accumulate: int = 1,
        clip: float | None = None,
        ema: float | None = None,
        precision: str = "auto",
        compile: bool | str = False,
        device: Any = None,
        patience: int | None = None,
        validation_fraction: float = 0.0,
        class_weight: Any = None,
        augment: Any = None,
        checkpoint: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        certify: bool | str = True,
    ) -> None:
        super().__init__(
            architecture, loss=loss, epochs=epochs, batch_size=batch_size, optimizer=optimizer, lr=lr,
            weight_decay=weight_decay, schedule=schedule, warmup=warmup, accumulate=accumulate,
            clip=clip, ema=ema, precision=precision, compile=compile, device=device,
            patience=patience, validation_fraction=validation_fraction, class_weight=class_weight,
            augment=augment, checkpoint=checkpoint, warm_start=warm_start, verbose=verbose,
            random_state=random_state, certify=certify,
        )  # fmt: skip
        del self.module
        self.architecture = architecture
        self.image_shape = image_shape

    def _checked(self, X: Any, *, reset: bool) -> Any:
        X = super()._checked(X, reset=reset)
        if reset:
            self.image_shape_ = self._picture(tuple(int(size) for size in X.shape[1:]))
        return X

    def _picture(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """(channels, height, width) of rows of this shape."""
        given = None if self.image_shape is None else tuple(int(size) for size in self.image_shape)
        if given is not None:
            if len(given) not in (2, 3) or min(given) < 1:
                raise ValueError(
                    f"image_shape must be (height, width) or (channels, height, width), got {given}."
                )
            whole = given if len(given) == 3 else (1, *given)
            if shape not in (given, whole, (math.prod(given),)):
                raise ValueError(
                    f"image_shape={given} needs rows of {math.prod(given)} numbers or of shape {given}, "
                    f"but those of X have shape {shape}."
                )
            return whole
        if len(shape) == 2:
            return (1, *shape)
        if len(shape) == 3:
            if shape[0] == shape[1] > shape[2] and shape[2] in (1, 3, 4):
                raise ValueError(
                    f"X has rows of shape {shape}, pictures with their channels last: channels come first "
                    "here, pass X.transpose(0, 3, 1, 2); or image_shape, if the shape is right."
                )
            return shape
        raise ValueError(
            "X must have shape (n, height, width) or (n, channels, height, width), or image_shape must be "
            f"given for flat rows; received rows of shape {shape}."
        )

    def _wrong_outputs(self, X: Any, y: Any) -> Iterator[str]:
        if tuple(self.image_shape_) != self._picture(tuple(int(size) for size in X.shape[1:])):
            yield f"image_shape_ is {self.image_shape_}, and rows have the shape {X.shape[1:]}"
            return
        yield from super()._wrong_outputs(X, y)

    def _module_shape(self) -> tuple[int, ...]:
        return tuple(self.image_shape_)

    def _shaped(self, X: Any) -> Any:
        return X.reshape(len(X), *self.image_shape_)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        if isinstance(self.architecture, str) and repr(self.module_) != repr(self._fresh()):
            yield f"module_ is not the network of architecture={self.architecture!r}"

    def _maker(self) -> Any:
        if not isinstance(self.architecture, str):
            return self.architecture
        channels, height, width = self.image_shape_
        name, classes = self.architecture, self._outputs_wanted()
        if name in ("convnet", "lenet") and height != width:
            raise ValueError(
                f"architecture={name!r} takes square pictures, received {height} x {width}: pad them, or use "
                "'resnet20'."
            )
        if name == "convnet":
            halved = (16, 32) if height >= 4 else (16,)
            sizes = ConvNetSizes(channels=channels, side=height, widths=halved, classes=classes)
            return lambda: ConvNet(sizes)
        if name == "lenet":
            return lambda: LeNet(LeNetSizes(channels=channels, side=height, classes=classes))
        if name == "resnet20":
            return lambda: ResNet(ResNetSizes(channels=channels, classes=classes))
        blocks, wide = (2, 2, 2, 2), (64, 128, 256, 512)
        residual = ResNetSizes(blocks, wide, projected=True, channels=channels, classes=classes)
        return lambda: ResNet(residual)
