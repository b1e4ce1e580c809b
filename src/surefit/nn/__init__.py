"""Networks: one trainer, estimators, and modules that are ordinary torch ones. Needs the extra ``torch``.

Names are loaded when they are first used: importing this package does not import torch. The trainer is
``surefit.nn.train.train``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cnn import AlexNet, ConvNet, LeNet
    from .cnn_classifier import CNNClassifier
    from .estimators import NeuralClassifier, NeuralRegressor
    from .mlp import MLP, MLPClassifier, MLPRegressor
    from .resnet import ResNet, resnet18, resnet20

_WHERE = {
    "AlexNet": "cnn",
    "CNNClassifier": "cnn_classifier",
    "ConvNet": "cnn",
    "LeNet": "cnn",
    "MLP": "mlp",
    "MLPClassifier": "mlp",
    "MLPRegressor": "mlp",
    "NeuralClassifier": "estimators",
    "NeuralRegressor": "estimators",
    "ResNet": "resnet",
    "resnet18": "resnet",
    "resnet20": "resnet",
}

__all__ = [
    "MLP",
    "AlexNet",
    "CNNClassifier",
    "ConvNet",
    "LeNet",
    "MLPClassifier",
    "MLPRegressor",
    "NeuralClassifier",
    "NeuralRegressor",
    "ResNet",
    "resnet18",
    "resnet20",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
