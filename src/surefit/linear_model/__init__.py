"""Linear models with scikit-learn's names, parameters and results, and a certificate for every fit."""

from __future__ import annotations

from .coordinate_descent import ElasticNet, Lasso, enet_path, lasso_path
from .huber import HuberRegressor
from .least_squares import LinearRegression
from .logistic import LogisticRegression
from .perceptron import Perceptron
from .ridge import Ridge, ridge_regression

__all__ = [
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LogisticRegression",
    "Perceptron",
    "Ridge",
    "enet_path",
    "lasso_path",
    "ridge_regression",
]
