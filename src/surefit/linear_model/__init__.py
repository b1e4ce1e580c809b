"""Linear models with scikit-learn's names, parameters and results, and a certificate for every fit."""

from __future__ import annotations

from .coordinate_descent import ElasticNet, Lasso, enet_path, lasso_path
from .huber import HuberRegressor
from .least_squares import LinearRegression
from .logistic import LogisticRegression
from .logistic_cv import LogisticRegressionCV
from .multitask import MultiTaskElasticNet, MultiTaskLasso
from .multitask_cv import MultiTaskElasticNetCV, MultiTaskLassoCV
from .path_cv import ElasticNetCV, LassoCV
from .perceptron import Perceptron
from .quantile import QuantileRegressor
from .ridge import Ridge, ridge_regression
from .ridge_classifier import RidgeClassifier
from .ridge_cv import RidgeClassifierCV, RidgeCV
from .stochastic_gradient import SGDClassifier
from .stochastic_gradient_regressor import SGDRegressor
from .tukey import TukeyRegressor

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LinearRegression",
    "LogisticRegression",
    "LogisticRegressionCV",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "Perceptron",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
    "SGDRegressor",
    "TukeyRegressor",
    "enet_path",
    "lasso_path",
    "ridge_regression",
]
