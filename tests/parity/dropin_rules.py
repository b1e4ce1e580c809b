"""Which of scikit-learn's tests count for surefit, decided by reading each test.

Each of scikit-learn's test modules is about one package (:data:`SUITES`), its *home*. A test counts when
everything it uses from there exists in surefit. "Uses" is read off the source: the names in the body of the
test, of the fixtures it asks for and of the helpers of its module that it calls, and the values it is
parametrised with. Four reasons take a test out:

* *absent*: it uses a public class or function of its home that surefit does not have;
* *private*: it uses a private part of its home or a private attribute;
* *arrays*: it is parametrised with an array library other than numpy (the array API);
* *none of ours*: it uses nothing that surefit has written. What surefit passes on from scikit-learn
  unchanged (the splitters) exists, but a test of it says nothing about surefit.

A name that is only compared with (``isinstance(model, RidgeCV)``, ``model is RidgeCV``) is not used, and the
private attributes that a class of the test module gives its own ``self`` are its own. In the other packages
surefit's classes are swapped in too, where it has them; they and the rest of scikit-learn (pipelines,
metrics, the tools of its tests) are the environment and decide nothing: a grid search has to take any model.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

__all__ = ["SHARED", "SUITES", "Verdict", "home_of", "judge", "swap", "swap_in"]

# What surefit offers under scikit-learn's names, and scikit-learn's test modules about it.
SUITES = {
    "sklearn.linear_model": """
        test_base test_ridge test_coordinate_descent test_sparse_coordinate_descent test_logistic
        test_perceptron test_sgd test_huber test_quantile test_common
    """.split(),
    "sklearn.svm": ["test_svm", "test_sparse", "test_bounds"],
    "sklearn.kernel_ridge": ["test_kernel_ridge"],
    "sklearn.neighbors": ["test_neighbors", "test_neighbors_pipeline", "test_graph"],
    "sklearn.cluster": ["test_k_means"],
    "sklearn.multiclass": ["test_multiclass"],
    "sklearn.model_selection": ["test_search", "test_validation", "test_split"],
}
_BY_NAME = ("hasattr", "getattr", "setattr", "delattr")


def _public(package: str) -> set[str]:
    """The public names of one of scikit-learn's modules."""
    module = importlib.import_module(package)
    defined = [name for name, value in vars(module).items() if _home(value) == package]
    return {name for name in getattr(module, "__all__", defined) if not name.startswith("_")}


def _home(thing: Any) -> str:
    return str(getattr(thing, "__module__", ""))


def _offered(package: str) -> dict[str, Any]:
    """The same names of surefit's module, where it has the module and the name."""
    ours = package.replace("sklearn", "surefit", 1)
    try:
        module = importlib.import_module(ours)
    except ModuleNotFoundError as error:
        if error.name != ours:
            raise
        return {}
    return {name: getattr(module, name) for name in sorted(_public(package) & set(module.__all__))}


_NAMES = {package: _public(package) for package in SUITES}
_OFFERED = {package: _offered(package) for package in SUITES}
_THEIRS = {
    package: {name: getattr(importlib.import_module(package), name) for name in offered}
    for package, offered in _OFFERED.items()
}
SHARED = sorted(name for offered in _OFFERED.values() for name in offered)


def home_of(module: str) -> str:
    """The package that a test module is about."""
    where, _, name = module.rpartition(".")
    for package, suite in SUITES.items():
        if name in suite and where in (f"{package}.tests", "sklearn.tests"):
            return package
    raise ValueError(f"{module} is not in SUITES")


class Verdict(NamedTuple):
    """Whether a test counts; if not, the reason and the names that make it."""

    counted: bool
    reason: str = ""
    names: tuple[str, ...] = ()


def swap() -> None:
    """Make ``from sklearn.linear_model import Ridge`` give surefit's, for every shared name."""
    for package, offered in _OFFERED.items():
        for name, ours in offered.items():
            setattr(importlib.import_module(package), name, ours)


def swap_in(module: ModuleType) -> None:
    """The same in a test module that took a public name from the private file that defines it."""
    for name, theirs in _THEIRS[home_of(module.__name__)].items():
        if vars(module).get(name) is theirs:
            setattr(module, name, _OFFERED[home_of(module.__name__)][name])


def judge(
    test: Callable[..., Any],
    helpers: list[Callable[..., Any]],
    params: dict[str, Any],
    home: str = "sklearn.linear_model",
) -> Verdict:
    """Read a test, the fixtures it asks for and its parameters.

    Parameters
    ----------
    test : the test function
    helpers : its fixture functions
    params : what it is parametrised with
    home : the package it is about
    """
    reader = _Reader(inspect.unwrap(test).__module__, home)
    for function in (test, *helpers):
        reader.read(function)
    for value in params.values():
        reader.note(value)
    library = params.get("array_namespace", "numpy")
    if reader.private:
        return Verdict(False, "private", tuple(sorted(reader.private)))
    if reader.absent:
        return Verdict(False, "absent", tuple(sorted(reader.absent)))
    if not str(library).endswith("numpy"):
        return Verdict(False, "arrays", (str(library),))
    if not reader.ours:
        return Verdict(False, "none of ours")
    return Verdict(True)


class _Reader:
    """Collects what functions and values use of the package under test."""

    def __init__(self, module: str, home: str) -> None:
        self.module = module  # only functions of the test's own module are followed
        self.home, self.package = home, importlib.import_module(home)
        self.ours: set[str] = set()
        self.absent: set[str] = set()
        self.private: set[str] = set()
        self._seen: set[int] = set()

    def note(self, value: Any) -> None:
        """Sort one value; look into containers, estimators, and functions of the test module."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        for part in _parts(value):
            self.note(part)
        thing = value if isinstance(value, (type, FunctionType, ModuleType)) else type(value)
        name = getattr(thing, "__name__", "")
        home = name if isinstance(thing, ModuleType) else _home(thing)
        if _OFFERED[self.home].get(name) is thing:
            self.ours.update([name] if home.startswith("surefit.") else [])
        elif home == self.module and not isinstance(thing, ModuleType):
            self.read(thing)
        elif thing is self.package or home.startswith(f"{self.home}.tests."):
            return  # what is taken from it is noted where it is taken; a tool of the tests
        elif home == self.home or home.startswith(self.home + "."):
            (self.absent if name in _NAMES[self.home] else self.private).add(name)

    def read(self, source: Any) -> None:
        """Note every global that a function or class uses, and its private attributes."""
        source = inspect.unwrap(source)
        tree = ast.parse(textwrap.dedent(inspect.getsource(source))).body[0]
        names = inspect.getmodule(source).__dict__  # type: ignore[union-attr]
        for node in _uses(tree):
            if isinstance(node, ast.Name):
                if node.id in names and node.id not in _locals(source):
                    self.note(names[node.id])
            elif isinstance(node, ast.ImportFrom):
                if f"{node.module}.".startswith(f"{self.home}._"):
                    self.private.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Attribute) and _is_private(node.attr):
                if getattr(node.value, "id", "") != "self":
                    self.private.add(f".{node.attr}")
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                local = node.value.id in _locals(source)
                if names.get(node.value.id) is self.package and not local:
                    self.note(getattr(self.package, node.attr))
            elif isinstance(node, ast.Constant) and str(node.value).startswith(f"{self.home}._"):
                self.private.add(str(node.value))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in _BY_NAME:
                wanted = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
                self.private.update(f".{name}" for name in wanted if _is_private(str(name)))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple, set, frozenset)):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, functools.partial):
        yield from (value.func, value.args, value.keywords)
    elif isinstance(value, BaseEstimator):
        yield from value.get_params(deep=False).values()


def _locals(source: Any) -> tuple[str, ...]:
    code = getattr(source, "__code__", None)
    return () if code is None else code.co_varnames + code.co_cellvars


def _is_private(attribute: str) -> bool:
    return attribute.startswith("_") and not attribute.endswith("__")


def _uses(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below, decorators and mere comparisons with a name left out."""
    for child in _children(node):
        yield child
        yield from _uses(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield from (*getattr(node, "bases", ()), *node.body)
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
        yield node.args[0]
    elif isinstance(node, ast.Compare) and isinstance(
        node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.Eq, ast.NotEq)
    ):
        yield from (side for side in (node.left, *node.comparators) if not _is_naming(side))
    else:
        yield from ast.iter_child_nodes(node)


def _is_naming(node: ast.AST) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(_is_naming(element) for element in node.elts)
    return isinstance(node, ast.Name)
