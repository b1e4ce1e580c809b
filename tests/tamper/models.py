"""One small fitted model for every public estimator and for its main variants, fitted once a session.

Only the data and the arguments are written here; the estimators that must appear are read from surefit's own
tables (:func:`public_estimators`), and a test asserts that none is missing.
"""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import clone

import surefit
from surefit import Certificate, Claim
from surefit._tree import CLASSES
from surefit.base import Certified
from surefit.bayes import BayesClassifier
from surefit.cluster import KMeans, MiniBatchKMeans
from surefit.data import read_table
from surefit.decomposition import MatrixFactorization
from surefit.densities import Gaussian as GaussianDensity
from surefit.fair import Decorrelate, FairLogistic, GroupThresholds
from surefit.kernel_ridge import KernelRidge
from surefit.kernels import Gaussian, Polynomial
from surefit.linear_model import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    Perceptron,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    SGDClassifier,
    SGDRegressor,
    TukeyRegressor,
)
from surefit.mixture import BernoulliMixture, GaussianMixture
from surefit.model_selection import GridSearchCV, HoldOut, RandomizedSearchCV
from surefit.multiclass import OneVsOneClassifier, OneVsRestClassifier
from surefit.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from surefit.neural_network import MLPClassifier, MLPRegressor
from surefit.nn import CNNClassifier, NeuralClassifier, NeuralRegressor
from surefit.svm import SVC, SVR, LinearSVC, LinearSVR
from surefit.table import TableModel, fit_table
from surefit.text import Cooccurrence, FastTextClassifier, GloVe, Sent2Vec, SkipGram

__all__ = ["CASES", "Case", "Fits", "certified_estimators", "fits", "own_verify"]

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 40, 3


@dataclass(frozen=True)
class Rows:
    """Data to fit on, rows to predict, and other data of the same shape and labels."""

    X: Any
    y: Any
    other_X: Any
    other_y: Any
    unseen: Any
    extra: dict[str, Any] = field(default_factory=dict)  # keywords of fit and verify
    other_extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """An estimator, the same with other parameters, and the name of its data."""

    family: str
    name: str
    estimator: Any
    other: Any
    data: str
    seal: Callable[[Any], Any] | None = None  # what a forger does after a change


@dataclass(frozen=True)
class Fits:
    """A fitted model, two others to exchange attributes with, and the data."""

    case: Case
    rows: Rows
    model: Any
    others: dict[str, Any]


# ------------------------------------------------------------------------ data


def _numbers() -> dict[str, Rows]:
    X, Z = (RNG.normal(size=(ROWS, COLUMNS)) for _ in range(2))
    unseen = RNG.normal(size=(8, COLUMNS)) * 2.0
    slope = np.array([2.0, -1.0, 0.5])
    y, z = (A @ slope + 1.0 + 0.5 * RNG.normal(size=ROWS) for A in (X, Z))
    margins = [A @ slope + RNG.normal(size=ROWS) for A in (X, Z)]
    two = [np.where(m > 0, "yes", "no") for m in margins]
    three = [np.digitize(m, [-1.0, 1.0]) + 1 for m in margins]
    apart = [np.where(A @ slope > 0, 2, 1) for A in (X, Z)]  # separable
    far = [np.round(A, 1) + 3.0 * (t[:, None] == "yes") for A, t in zip((X, Z), two)]
    pairs = [np.column_stack([t, t**2 - 1.0]) for t in (y, z)]
    positive = np.array([0.5, 1.0, 0.2])
    plus = [np.abs(A) @ positive + 0.5 * RNG.normal(size=ROWS) for A in (X, Z)]
    ratings = [
        sp.csr_array(np.where(RNG.uniform(size=(12, 8)) < 0.6, RNG.uniform(1, 5, (12, 8)), 0.0))
        for _ in range(2)
    ]
    bits = [(A > 0).astype(float) for A in (X, Z)]
    groups = [np.where(A[:, 0] + RNG.normal(size=ROWS) > 0, "a", "b") for A in (X, Z)]
    beside = {"sensitive": groups[0]}, {"sensitive": groups[1]}
    images = [RNG.normal(size=(ROWS, 1, 6, 6)).astype(np.float32) for _ in range(2)]
    return {
        "values": Rows(X, y, Z, z, unseen),
        "positive values": Rows(np.abs(X), plus[0], np.abs(Z), plus[1], np.abs(unseen)),
        "two targets": Rows(X, pairs[0], Z, pairs[1], unseen),
        "two": Rows(X, two[0], Z, two[1], unseen),
        "three": Rows(X, three[0], Z, three[1], unseen),
        "separable": Rows(X, apart[0], Z, apart[1], unseen),
        "apart": Rows(far[0], two[0], far[1], two[1], unseen),
        "points": Rows(X, None, Z, None, unseen),
        "few points": Rows(X[:14], None, Z[:14], None, unseen),
        "bits": Rows(bits[0], None, bits[1], None, (unseen > 0).astype(float)),
        "ratings": Rows(ratings[0], None, ratings[1], None, ratings[0]),
        "groups": Rows(X, (y > 1).astype(int), Z, (z > 1).astype(int), unseen, *beside),
        "groups only": Rows(X, None, Z, None, unseen, *beside),
        "images": Rows(images[0], three[0], images[1], three[1], images[1][:8]),
    }


def _texts() -> dict[str, Rows]:
    def sentences(seed: int) -> tuple[list[str], Any]:
        rng = np.random.default_rng(seed)
        topic = rng.integers(2, size=ROWS)
        own = rng.integers(6, size=(ROWS, 3)) * 2 + topic[:, None]
        ids = np.concatenate([own, rng.integers(12, size=(ROWS, 4))], axis=1)
        return [" ".join(f"w{i}" for i in row) for row in ids], np.where(topic, "left", "right")

    (X, y), (Z, z) = sentences(1), sentences(2)
    return {
        "texts": Rows(X, y, Z, z, Z[:6]),
        "corpus": Rows(X, None, Z, None, Z[:6]),
    }


DATA = _numbers() | _texts()


# ------------------------------------------------------------------------ estimators


def _pairs(family: str, data: str, *pairs: tuple[Any, dict[str, Any]]) -> list[Case]:
    """Cases of estimators, each with the parameters that differ in the other fit."""
    cases = []
    for estimator, changed in pairs:
        other = clone(estimator).set_params(**changed)
        name = re.sub(r"at0x[0-9a-f]+|\s", "", repr(estimator).replace(" ", ""))
        cases.append(Case(family, f"{name}-{data}", estimator, other, data))
    return cases


def _network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(COLUMNS, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))


def _voting_network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(COLUMNS, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))


DENSITIES = [GaussianDensity(np.full(COLUMNS, m), np.eye(COLUMNS)) for m in (-0.5, 0.5)]
TIGHT = {"tol": 1e-10}

LINEAR = [
    *_pairs(
        "linear",
        "values",
        (LinearRegression(), {"fit_intercept": False}),
        (LinearRegression(fit_intercept=False), {"fit_intercept": True}),
        (LinearRegression(positive=True), {"positive": False}),
        (Ridge(), {"alpha": 3.0}),
        (Ridge(alpha=2.0, positive=True), {"alpha": 0.1}),
        (Ridge(alpha=0.0, fit_intercept=False), {"alpha": 1.0}),
        (Lasso(alpha=0.1, **TIGHT), {"alpha": 0.3}),
        (Lasso(alpha=0.1, positive=True), {"alpha": 0.3}),
        (ElasticNet(alpha=0.1, **TIGHT), {"alpha": 0.3}),
        (ElasticNet(alpha=0.1, fit_intercept=False), {"l1_ratio": 0.1}),
        (RidgeCV(), {"alphas": [0.01, 0.5]}),
        (RidgeCV(cv=3), {"alphas": [0.01, 0.5]}),
        (RidgeCV(store_cv_results=True), {"alphas": [0.01, 0.5, 1.0]}),
        (LassoCV(alphas=3, cv=3, **TIGHT), {"alphas": [0.3, 0.5, 0.6]}),
        (ElasticNetCV(alphas=[0.01, 0.1], l1_ratio=[0.2, 0.8], cv=3), {"alphas": [0.3, 0.5]}),
        (HuberRegressor(), {"alpha": 1.0}),
        (HuberRegressor(alpha=0.1, epsilon=1.1, tol=1e-9), {"epsilon": 2.0}),
        (QuantileRegressor(alpha=0.0), {"quantile": 0.8}),
        (QuantileRegressor(alpha=0.02, quantile=0.8), {"quantile": 0.5}),
        (TukeyRegressor(), {"delta": 3.0}),
        (TukeyRegressor(alpha=1.0, scale=1.0), {"alpha": 3.0}),
        (SGDRegressor(alpha=0.01, random_state=0), {"alpha": 0.3}),
        (
            SGDRegressor(loss="huber", epsilon=1.0, penalty="l1", alpha=0.01, random_state=0),
            {"alpha": 0.3},
        ),
        (LinearSVR(epsilon=0.1), {"C": 0.1}),
        (LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.2), {"C": 0.1}),
    ),
    *_pairs(
        "linear",
        "two targets",
        (LinearRegression(), {"fit_intercept": False}),
        (Ridge(alpha=0.5), {"alpha": 3.0}),
        (MultiTaskElasticNet(alpha=0.1, **TIGHT), {"alpha": 0.3}),
        (MultiTaskLasso(alpha=0.1, **TIGHT), {"alpha": 0.3}),
        (MultiTaskElasticNetCV(alphas=3, cv=3), {"alphas": [0.3, 0.5, 0.6]}),
        (MultiTaskLassoCV(alphas=3, cv=3), {"alphas": [0.3, 0.5, 0.6]}),
    ),
    *_pairs(
        "linear",
        "two",
        (LogisticRegression(), {"C": 0.1}),
        (LogisticRegression(C=np.inf, **TIGHT), {"C": 1.0}),
        (LogisticRegression(l1_ratio=1.0), {"C": 0.1}),
        (LogisticRegression(solver="liblinear", class_weight="balanced"), {"C": 0.1}),
        (
            LogisticRegressionCV(
                Cs=2, cv=3, l1_ratios=(0,), scoring=None, use_legacy_attributes=False
            ),
            {"Cs": [0.5, 1.0]},
        ),
        (RidgeClassifier(), {"alpha": 3.0}),
        (RidgeClassifierCV(), {"alphas": [0.5, 3.0, 4.0]}),
        (Perceptron(), {"penalty": "l2", "alpha": 0.01}),
        (Perceptron(penalty="l2", alpha=0.01), {"alpha": 0.3}),
        (SGDClassifier(random_state=0), {"alpha": 0.3}),
        (SGDClassifier(loss="log_loss", alpha=0.01, random_state=0), {"alpha": 0.3}),
        (LinearSVC(), {"C": 0.1}),
        (LinearSVC(loss="hinge", penalize_intercept=False), {"C": 0.1}),
        (LinearSVC(penalty="l1", dual=False), {"C": 0.1}),
    ),
    *_pairs("linear", "separable", (Perceptron(), {"fit_intercept": False})),
    *_pairs(
        "linear",
        "three",
        (LogisticRegression(), {"C": 0.1}),
        (LogisticRegression(l1_ratio=0.5, C=0.5), {"C": 0.1}),
        (RidgeClassifier(), {"alpha": 3.0}),
        (Perceptron(), {"penalty": "l2", "alpha": 0.01}),
        (SGDClassifier(loss="log_loss", alpha=0.01, random_state=0), {"alpha": 0.3}),
        (LinearSVC(), {"C": 0.1}),
        (LinearSVC(multi_class="crammer_singer"), {"C": 0.1}),
    ),
]
KERNELS = [
    *_pairs(
        "kernels",
        "values",
        (SVR(C=1.0), {"C": 0.1}),
        (SVR(kernel="linear", epsilon=0.3), {"C": 0.1}),
        (KernelRidge(alpha=0.1, kernel="rbf"), {"alpha": 1.0}),
        (KernelRidge(alpha=0.5, kernel=Gaussian(0.3) + 0.1 * Polynomial(2)), {"alpha": 1.0}),
        (KernelRidge(alpha=0.1, kernel="rbf", n_components=10, random_state=0), {"alpha": 1.0}),
        (KNeighborsRegressor(3), {"n_neighbors": 5}),
        (KNeighborsRegressor(3, weights="distance", metric="manhattan"), {"n_neighbors": 5}),
    ),
    *_pairs("kernels", "two targets", (KernelRidge(alpha=0.5), {"alpha": 1.0})),
    *_pairs(
        "kernels",
        "two",
        (SVC(), {"C": 0.1}),
        (SVC(kernel="linear", class_weight="balanced"), {"C": 0.1}),
        (SVC(probability=True, random_state=0), {"C": 0.1}),
        (KNeighborsClassifier(3), {"n_neighbors": 5}),
        (BayesClassifier(DENSITIES), {"priors": [0.2, 0.8]}),
    ),
    *_pairs("kernels", "apart", (SVC(kernel="linear", C=np.inf), {"C": 0.1})),
    *_pairs(
        "kernels",
        "three",
        (SVC(), {"C": 0.1}),
        (SVC(kernel="poly", degree=2, decision_function_shape="ovo"), {"C": 0.1}),
        (KNeighborsClassifier(3, weights="distance"), {"n_neighbors": 5}),
        (OneVsRestClassifier(LogisticRegression()), {"estimator__C": 0.1}),
        (OneVsOneClassifier(LinearSVC()), {"estimator__C": 0.1}),
    ),
    *_pairs(
        "kernels",
        "points",
        (NearestNeighbors(n_neighbors=3), {"n_neighbors": 5}),
        (MiniBatchKMeans(3, random_state=0, batch_size=20), {"random_state": 1}),
        (GaussianMixture(2, random_state=0), {"covariance_type": "diag"}),
        (GaussianMixture(2, covariance_type="tied", random_state=0), {"reg_covar": 0.1}),
        (
            GaussianMixture(2, covariance_type="spherical", hard=True, random_state=0),
            {"reg_covar": 0.1},
        ),
    ),
    *_pairs("kernels", "few points", (KMeans(2, random_state=0), {"n_clusters": 3})),
    *_pairs("kernels", "bits", (BernoulliMixture(2, random_state=0), {"alpha": 1.5})),
    *_pairs(
        "kernels",
        "ratings",
        (MatrixFactorization(2, random_state=0), {"reg": 0.5}),
        (MatrixFactorization(2, biases=True, weighted_reg=True, random_state=0), {"reg": 0.5}),
        (MatrixFactorization(2, implicit=True, random_state=0), {"reg": 0.5}),
        (MatrixFactorization(2, method="sgd", random_state=0), {"reg": 0.5}),
    ),
]
SHORT = {"max_iter": 40, "learning_rate_init": 0.03, "random_state": 0}
QUICK = {"epochs": 12, "lr": 0.03, "random_state": 0, "batch_size": 16}
NETS = [
    *_pairs(
        "nets",
        "values",
        (
            MLPRegressor(hidden_layer_sizes=(4,), **SHORT),
            {"alpha": 0.1},
        ),
        (
            MLPRegressor(hidden_layer_sizes=(4,), max_iter=20, solver="lbfgs", random_state=0),
            {"alpha": 0.1},
        ),
        (NeuralRegressor(_network, **QUICK), {"lr": 0.1}),
        (NeuralRegressor(_network, validation_fraction=0.2, **QUICK), {"lr": 0.1}),
    ),
    *_pairs(
        "nets",
        "three",
        (
            MLPClassifier(hidden_layer_sizes=(4,), **SHORT),
            {"alpha": 0.1},
        ),
        (
            MLPClassifier(
                hidden_layer_sizes=(4,),
                max_iter=40,
                learning_rate_init=0.03,
                early_stopping=True,
                random_state=0,
            ),
            {"alpha": 0.1},
        ),
        (NeuralClassifier(_voting_network, **QUICK), {"lr": 0.1}),
        (NeuralClassifier(_voting_network, validation_fraction=0.2, **QUICK), {"lr": 0.1}),
    ),
    *_pairs(
        "nets", "images", (CNNClassifier(epochs=3, batch_size=16, random_state=0), {"lr": 0.1})
    ),
    *_pairs(
        "nets",
        "texts",
        (
            FastTextClassifier(2, max_iter=30, learning_rate=0.5, min_count=1, random_state=0),
            {"learning_rate": 0.4},
        ),
        (
            FastTextClassifier(2, solver="exact", reg=1e-2, min_count=1, random_state=0),
            {"reg": 0.1},
        ),
        (
            FastTextClassifier(
                2,
                max_iter=30,
                learning_rate=0.5,
                min_count=1,
                validation_fraction=0.3,
                random_state=0,
            ),
            {"learning_rate": 0.4},
        ),
    ),
    *_pairs(
        "nets",
        "corpus",
        (Cooccurrence(min_count=1), {"window": 1}),
        (GloVe(2, max_iter=30, min_count=1, random_state=0), {"reg": 0.1}),
        (SkipGram(2, max_iter=2, min_count=1, random_state=0), {"learning_rate": 0.1}),
        (
            SkipGram(2, solver="full", max_iter=300, min_count=1, random_state=0),
            {"n_components": 1},
        ),
        (
            Sent2Vec(2, max_iter=30, min_count=1, subsample=0, random_state=0),
            {"learning_rate": 0.1},
        ),
    ),
]
SELECTION = [
    *_pairs(
        "selection",
        "values",
        (GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=3), {"cv": 4}),
        (
            RandomizedSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, n_iter=2, cv=3, random_state=0),
            {"cv": 4},
        ),
        (HoldOut(Ridge(), {"alpha": [0.1, 1.0]}, random_state=0), {"random_state": 1}),
    ),
    *_pairs(
        "selection",
        "two",
        (GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0]}, cv=3), {"cv": 4}),
        (
            HoldOut(RidgeClassifier(), random_state=0, bound="clopper-pearson"),
            {"random_state": 1},
        ),
    ),
]
FAIR = [
    *_pairs(
        "fair",
        "groups",
        (GroupThresholds(random_state=0), {"constraint": "equalized_odds"}),
        (
            GroupThresholds(LogisticRegression(), randomize=False, random_state=0),
            {"tolerance": 0.1},
        ),
        (FairLogistic(5.0, **TIGHT), {"fairness": 1.0}),
        (FairLogistic(5.0, criterion="separation"), {"fairness": 1.0}),
    ),
    *_pairs("fair", "groups only", (Decorrelate(), {"alpha": 0.5})),
]


def _visits(seed: int) -> Any:
    """A small table with numbers, a category and a label."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=80)
    columns: dict[str, list[Any]] = {
        "a": a.tolist(),
        "b": rng.normal(size=80).tolist(),
        "c": rng.choice(["u", "v", "w"], 80).tolist(),
        "y": np.where(a + rng.normal(size=80) > 0, "yes", "no").tolist(),
    }
    return read_table(columns)


def _fit_table(rows: Rows) -> dict[str, Any]:
    """A model of a table, of another table, and with another seed."""
    asked: dict[str, Any] = {"models": ["logistic"], "reference": False}
    return {
        "model": fit_table(rows.X, "y", seed=3, **asked),
        "other data": fit_table(rows.other_X, "y", seed=3, **asked),
        "other parameters": fit_table(rows.X, "y", seed=4, **asked),
    }


def _resealed(model: Any) -> Any:
    """A model of a table with a certificate that repeats its sections, as a forger would write it."""
    try:
        records = [r for name in SECTIONS for r in model.sections_[name]]
        claims = tuple(Claim.from_dict(record) for record in records)
        old = _table_fits()["model"].certificate_
        vars(model)["certificate_"] = Certificate(claims, old.data_id, old.stopped, old.about)
    except (AttributeError, LookupError, TypeError, ValueError):
        pass
    return model


SECTIONS = ("optimality", "generalisation", "robustness", "fairness")
TABLE = [Case("table", "TableModel", TableModel("y"), TableModel("y"), "table", seal=_resealed)]


@cache
def _table_fits() -> dict[str, Any]:
    table, other = _visits(0), _visits(1)
    rows = Rows(table, None, other, None, table)
    return {"rows": rows, **_fit_table(rows)}


CASES = {case.name: case for case in (*LINEAR, *KERNELS, *NETS, *SELECTION, *FAIR, *TABLE)}


# ------------------------------------------------------------------------ fits


def certified_estimators() -> set[type]:
    """Every public estimator that carries claims: of the table of model files, and of each package."""
    found: set[type] = set()
    for where in CLASSES.values():
        module, _, name = where.partition(":")
        found.add(getattr(importlib.import_module(module), name))
    for package in surefit._MODULES:
        module_ = importlib.import_module(f"surefit.{package}")
        public = [getattr(module_, name) for name in getattr(module_, "__all__", ())]
        found |= {thing for thing in public if inspect.isclass(thing)}
    return {c for c in found if issubclass(c, Certified) and not inspect.isabstract(c)}


@cache
def fits(name: str) -> Fits:
    """The fits of a case."""
    case = CASES[name]
    if case.family == "table":
        found = _table_fits()
        others = {whose: found[whose] for whose in ("other data", "other parameters")}
        return Fits(case, found["rows"], found["model"], others)
    rows = DATA[case.data]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _fit(case.estimator, rows.X, rows.y, rows.extra)
        on_others = _fit(case.estimator, rows.other_X, rows.other_y, rows.other_extra)
        otherwise = _fit(case.other, rows.X, rows.y, rows.extra)
    return Fits(case, rows, model, {"other data": on_others, "other parameters": otherwise})


def _fit(estimator: Any, X: Any, y: Any, extra: dict[str, Any]) -> Any:
    model = clone(estimator)
    return model.fit(X, **extra) if y is None else model.fit(X, y, **extra)


def own_verify(model: Any, rows: Rows) -> Certificate:
    """surefit.verify, or the method of an estimator that needs more than X and y."""
    if rows.extra:
        return model.verify(rows.X, rows.y, **rows.extra)
    return surefit.verify(model, rows.X, rows.y)
