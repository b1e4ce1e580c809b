"""Which models are tried on a table, in which order, and what each is called.

A plan depends on the task, the families asked for and nothing else, so that anyone can write it down again:
the bound on the true error counts every model of the plan, tried or not, and a log from which one was cut
no longer fits its plan.

=========  ==============================  ==============================
family     classification                  regression
=========  ==============================  ==============================
linear     ``RidgeClassifier``             ``Ridge``
logistic   ``LogisticRegression``
lasso                                      ``Lasso``
svm        ``LinearSVC``                   ``LinearSVR``
kernel     ``SVC``, Gaussian kernel        ``KernelRidge``, Gaussian kernel
knn        ``KNeighborsClassifier``        ``KNeighborsRegressor``
=========  ==============================  ==============================

Families are tried from the cheapest to the dearest, and ties go to the earlier one: of two models that make
as many mistakes the simpler is kept.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FAMILIES", "Candidate", "families", "plan"]


@dataclass(frozen=True)
class Family:
    """A kind of model, the values of the one parameter that is tried, and how its cost grows.

    Attributes
    ----------
    path : str
        Where the class lives, ``module:name``.
    parameter : str
        The parameter that is tried.
    values : tuple
        Its values, the first to be tried first.
    fixed : dict
        Other parameters.
    power : float
        A fit on n rows takes about n to this power.
    words : str
        What it is, for people.
    """

    path: str
    parameter: str
    values: tuple[float, ...]
    words: str
    power: float = 1.0
    fixed: dict[str, Any] = field(default_factory=dict)

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return self.path.partition(":")[2]


FAMILIES: dict[str, dict[str, Family]] = {
    "classification": {
        "logistic": Family(
            "surefit.linear_model:LogisticRegression",
            "C",
            (1.0, 0.1, 10.0, 0.01),
            "logistic regression with a squared penalty",
        ),
        "linear": Family(
            "surefit.linear_model:RidgeClassifier",
            "alpha",
            (1.0, 10.0, 100.0),
            "least squares on the classes with a squared penalty",
        ),
        "svm": Family(
            "surefit.svm:LinearSVC",
            "C",
            (0.1, 1.0, 0.01),
            "a linear support vector machine with squared hinge loss",
        ),
        "knn": Family(
            "surefit.neighbors:KNeighborsClassifier",
            "n_neighbors",
            (15, 5, 45),
            "a vote of the nearest rows",
            power=2.0,
        ),
        "kernel": Family(
            "surefit.svm:SVC",
            "C",
            (1.0, 10.0, 0.1),
            "a support vector machine with a Gaussian kernel",
            power=2.0,
        ),
    },
    "regression": {
        "linear": Family(
            "surefit.linear_model:Ridge",
            "alpha",
            (1.0, 10.0, 100.0, 0.1),
            "least squares with a squared penalty",
        ),
        "lasso": Family(
            "surefit.linear_model:Lasso",
            "alpha",
            (0.01, 0.1, 0.001),
            "least squares with an absolute penalty, on a target of unit variance",
        ),
        "svm": Family(
            "surefit.svm:LinearSVR",
            "C",
            (1.0, 0.1),
            "a linear support vector regression, on a target of unit variance",
            fixed={"epsilon": 0.1},
        ),
        "knn": Family(
            "surefit.neighbors:KNeighborsRegressor",
            "n_neighbors",
            (15, 5, 45),
            "the mean of the nearest rows",
            power=2.0,
        ),
        "kernel": Family(
            "surefit.kernel_ridge:KernelRidge",
            "alpha",
            (1.0, 0.1, 10.0),
            "least squares with a Gaussian kernel",
            power=2.5,
            fixed={"kernel": "rbf"},
        ),
    },
}


@dataclass(frozen=True)
class Candidate:
    """One model of the plan: a family and the value of its parameter."""

    task: str
    family: str
    value: float

    @property
    def kind(self) -> Family:
        """The family's entry."""
        return FAMILIES[self.task][self.family]

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the model that differ from its defaults."""
        return {self.kind.parameter: self.value, **self.kind.fixed}

    @property
    def name(self) -> str:
        """Class and parameter: what people read, and what a log is compared by."""
        return f"{self.kind.class_name}({self.kind.parameter}={self.value:g})"

    def make(self, *, columns: int, certify: bool | str = False) -> Any:
        """The estimator, not fitted; ``columns`` of the matrix set the width of a Gaussian kernel."""
        module, _, name = self.kind.path.partition(":")
        params = dict(self.params)
        if self.family == "kernel":
            params["gamma"] = 1.0 / max(columns, 1)
        return getattr(importlib.import_module(module), name)(**params, certify=certify)


def families(task: str) -> tuple[str, ...]:
    """Names of the families for a task, in the order in which they are tried."""
    return tuple(FAMILIES[task])


def plan(task: str, names: Any = None) -> list[Candidate]:
    """Every candidate of the families named, the first of each family first.

    Parameters
    ----------
    task : {"classification", "regression"}
    names : iterable of str, optional
        Families; ``None`` for all of the task.

    Returns
    -------
    list of Candidate

    Examples
    --------
    >>> [candidate.name for candidate in plan("classification", ["logistic"])]
    ['LogisticRegression(C=1)', 'LogisticRegression(C=0.1)', 'LogisticRegression(C=10)',
     'LogisticRegression(C=0.01)']
    """
    known = families(task)
    asked = known if names is None else tuple(names)
    unknown = [name for name in asked if name not in known]
    if unknown or not asked:
        other = "regression" if task == "classification" else "classification"
        elsewhere = [name for name in unknown if name in FAMILIES[other]]
        hint = f" ({', '.join(elsewhere)}: only for {other})" if elsewhere else ""
        found = ", ".join(map(repr, unknown)) or "none"
        raise ValueError(
            f"models: {found} is not a family of models for {task}{hint}; choose among {', '.join(known)}."
        )
    chosen = [FAMILIES[task][name] for name in known if name in asked]
    ordered = [name for name in known if name in asked]
    longest = max(len(family.values) for family in chosen)
    return [
        Candidate(task, name, family.values[place])
        for place in range(longest)
        for name, family in zip(ordered, chosen)
        if place < len(family.values)
    ]
