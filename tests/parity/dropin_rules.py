"""Which of scikit-learn's tests count for surefit, decided by reading each test.

A test counts when everything it uses from :mod:`sklearn.linear_model` exists in surefit. "Uses" is read off
the source: the names in the body of the test, of the fixtures it asks for and of the helpers of its module
that it calls, and the values it is parametrised with. Four reasons take a test out:

* *absent*: it uses a public class or function that surefit does not have;
* *private*: it uses a private part of :mod:`sklearn.linear_model` or a private attribute;
* *arrays*: it is parametrised with an array library other than numpy (the array API);
* *none of ours*: it uses nothing that surefit has.

A name that is only compared with (``isinstance(model, RidgeCV)``, ``model is RidgeCV``) is not used. The
rest of scikit-learn (pipelines, metrics, the tools of its tests) is the environment and decides nothing.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import sklearn.linear_model
from sklearn.base import BaseEstimator

import surefit.linear_model

__all__ = ["SHARED", "Verdict", "judge", "swap"]

PACKAGE = "sklearn.linear_model"
_BY_NAME = ("hasattr", "getattr", "setattr", "delattr")
SHARED = sorted(set(sklearn.linear_model.__all__) & set(surefit.linear_model.__all__))
_OURS = {name: getattr(surefit.linear_model, name) for name in SHARED}


class Verdict(NamedTuple):
    """Whether a test counts; if not, the reason and the names that make it."""

    counted: bool
    reason: str = ""
    names: tuple[str, ...] = ()


def swap() -> None:
    """Make ``from sklearn.linear_model import Ridge`` give surefit's, for every shared name."""
    for name, ours in _OURS.items():
        setattr(sklearn.linear_model, name, ours)


def judge(
    test: Callable[..., Any], helpers: list[Callable[..., Any]], params: dict[str, Any]
) -> Verdict:
    """Read a test, the fixtures it asks for and its parameters.

    Parameters
    ----------
    test : the test function
    helpers : its fixture functions
    params : what it is parametrised with
    """
    reader = _Reader(inspect.unwrap(test).__module__)
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

    def __init__(self, module: str) -> None:
        self.module = module  # only functions of the test's own module are followed
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
        home = name if isinstance(thing, ModuleType) else str(getattr(thing, "__module__", ""))
        if _OURS.get(name) is thing:
            self.ours.add(name)
        elif home == self.module and not isinstance(thing, ModuleType):
            self.read(thing)
        elif thing is sklearn.linear_model:
            return  # what is taken from it is noted where it is taken
        elif home == PACKAGE or home.startswith(PACKAGE + "."):
            (self.absent if name in sklearn.linear_model.__all__ else self.private).add(name)

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
                if f"{node.module}.".startswith(f"{PACKAGE}._"):
                    self.private.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Attribute) and _is_private(node.attr):
                self.private.add(f".{node.attr}")
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if names.get(node.value.id) is sklearn.linear_model:
                    self.note(getattr(sklearn.linear_model, node.attr))
            elif isinstance(node, ast.Constant) and str(node.value).startswith(f"{PACKAGE}._"):
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
