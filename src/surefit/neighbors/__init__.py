"""Nearest neighbours, with neighbour sets that are exact for the numbers given (CLS-2).

>>> from surefit.neighbors import KNeighborsClassifier
>>> model = KNeighborsClassifier(n_neighbors=3).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
>>> model.predict([[1.1]]).tolist()
[0]
"""

from __future__ import annotations

from .classifier import KNeighborsClassifier
from .regressor import KNeighborsRegressor
from .unsupervised import NearestNeighbors

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "NearestNeighbors"]
