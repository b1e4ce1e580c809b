"""scikit-learn's module of this name: the perceptrons of :mod:`surefit.nn.mlp`. Needs the extra ``torch``.

Examples
--------
>>> from surefit.neural_network import MLPClassifier
>>> MLPClassifier((8,)).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).n_outputs_  # doctest: +SKIP
1
"""

from __future__ import annotations

from .nn.mlp import MLPClassifier, MLPRegressor

__all__ = ["MLPClassifier", "MLPRegressor"]
