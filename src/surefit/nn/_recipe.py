"""What a run is made of besides numbers: the code of its module, loss, augmentation and the like.

A run that goes on from a checkpoint must go on with the same code, or its end is that of no run. Code is
compared through a digest: of a function its bytecode, constants, defaults, the values it closes over, and
the functions and plain values among the globals that it reads; of an object its class and attributes; of a
module those of all its layers, without the weights, which the checkpoint holds. Functions and classes of
installed libraries go by their names. What has no such description (an object that shows no attributes) is
listed, so that the resumed run can say that it was not compared.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["describe", "differences", "not_compared"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, np.generic)
_LIBRARIES = {"numpy", "scipy", "sklearn", "surefit", "torch", "torchvision"}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_STATE = {"training", "call_super_init", "dump_patches"}  # of nn.Module, no setting of a layer
_DEEPEST = 12


def describe(value: Any, trained: nn.Module | None = None) -> dict[str, Any]:
    """The name, the digest, and what could not be described of a function, an object or a module.

    Parameters
    ----------
    value : object
    trained : nn.Module, optional
        The module whose weights the checkpoint holds: its tensors are left out.
    """
    found = _Description(trained)
    found.add(value, "it", 0)
    digest = hashlib.blake2b("\x1f".join(found.parts).encode("utf-8", "replace"), digest_size=16)
    return {
        "name": _readable(value),
        "digest": digest.hexdigest(),
        "python": ".".join(map(str, sys.version_info[:2])),  # whose bytecode it is
        "unknown": sorted(set(found.unknown)),
    }


def differences(kept: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is not as it was, in words, of descriptions by role."""
    changed = []
    for role, here in now.items():
        there = kept.get(role)
        if there is None or _other_python(here, there) or there["digest"] == here["digest"]:
            continue
        if there["name"] != here["name"]:
            changed.append(f"{role}={here['name']} (the checkpoint has {there['name']})")
        else:
            words = "its code, or a value that it uses, is not that of the checkpoint"
            changed.append(f"{role}={here['name']} ({words})")
    return changed


def not_compared(kept: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The roles, and parts of them, that the two descriptions cannot compare."""
    missing = []
    for role, here in now.items():
        there = kept.get(role)
        if there is None:
            missing.append(f"{role} (the checkpoint does not describe it)")
        elif _other_python(here, there):
            missing.append(f"{role} (the checkpoint was written by Python {there['python']})")
        else:
            missing += [f"{role}: {part}" for part in here["unknown"]]
    return missing


def _other_python(here: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    return bool(here["python"] != there["python"])


class _Description:
    """Texts that are equal where two values do the same."""

    def __init__(self, trained: nn.Module | None) -> None:
        self.parts: list[str] = []
        self.unknown: list[str] = []
        self.trained = set() if trained is None else {id(part) for part in trained.modules()}
        self.met: dict[int, tuple[int, Any]] = {}  # with the objects, which keep their ids

    def add(self, value: Any, where: str, depth: int) -> None:
        """Append the description of a value; what comes twice is described once."""
        if isinstance(value, _PLAIN):
            self.parts.append(f"{type(value).__name__}:{value!r}")
        elif isinstance(value, enum.Enum):
            self.parts.append(f"{_qualified(type(value))}.{value.name}")
        elif id(value) in self.met:
            self.parts.append(f"as {self.met[id(value)][0]}")
        elif depth > _DEEPEST:
            self.unknown.append(where)
        else:
            self.met[id(value)] = (len(self.met), value)
            self._add_structure(value, where, depth + 1)

    def _add_structure(self, value: Any, where: str, depth: int) -> None:
        if isinstance(value, CodeType):
            self._add_code(value, where, depth)
        elif isinstance(value, (tuple, list)):
            self.parts.append(f"{len(value)} items")
            for k, item in enumerate(value):
                self.add(item, f"{where}[{k}]", depth)
        elif isinstance(value, (set, frozenset)):
            self.parts.append(repr(sorted(map(repr, value))))
        elif isinstance(value, Mapping):
            self._add_named(value, where, depth)
        elif isinstance(value, (np.ndarray, torch.Tensor)):
            self._add_numbers(value)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.add(part, where, depth)
        elif isinstance(value, MethodType):
            self.add(value.__func__, where, depth)
            self.add(value.__self__, f"the object of {_readable(value)}", depth)
        elif isinstance(value, FunctionType):
            self._add_function(value, where, depth)
        elif isinstance(value, type):
            self._add_class(value, where, depth)
        elif isinstance(value, nn.Module):
            self._add_module(value, where, depth)
        elif inspect.isroutine(value):  # compiled: its name is all there is
            self.parts.append(_qualified(value))
        else:
            self._add_object(value, where, depth)

    def _add_named(self, items: Mapping[Any, Any], where: str, depth: int) -> None:
        for key in sorted(items, key=repr):
            self.parts.append(f"key {key!r}")
            self.add(items[key], f"{where}.{key}", depth)

    def _add_numbers(self, value: Any) -> None:
        array = value.detach().cpu() if isinstance(value, torch.Tensor) else value
        if isinstance(array, torch.Tensor):
            array = array.float() if array.dtype == torch.bfloat16 else array
            array = array.numpy()
        data = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16)
        self.parts.append(f"{array.dtype} {array.shape} {data.hexdigest()}")

    def _add_function(self, value: FunctionType, where: str, depth: int) -> None:
        self.parts.append(_qualified(value))
        for part in (value.__defaults__, value.__kwdefaults__):
            self.add(part, f"the defaults of {_readable(value)}", depth)
        changed = _stored(value.__code__)
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            if name not in changed:  # a counter of its own
                self._add_cell(name, cell, depth)
        if _from_library(value):
            return
        self.add(value.__code__, where, depth)
        for name in sorted(_loaded(value.__code__) - changed):
            used = value.__globals__.get(name)
            if isinstance(used, (*_PLAIN, tuple, FunctionType, type, functools.partial)):
                self.parts.append(f"global {name}")
                self.add(used, f"the global {name}", depth)

    def _add_cell(self, name: str, cell: Any, depth: int) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # not yet given
            return
        self.parts.append(f"closes over {name}")
        self.add(value, f"the value {name}", depth)

    def _add_code(self, code: CodeType, where: str, depth: int) -> None:
        self.parts += [code.co_code.hex(), repr(code.co_names), repr(code.co_varnames)]
        for constant in code.co_consts:
            self.add(constant, where, depth)

    def _add_class(self, value: type, where: str, depth: int) -> None:
        for kind in value.__mro__:
            self.parts.append(_qualified(kind))
            if _from_library(kind):
                continue
            for name, member in sorted(vars(kind).items()):
                self._add_member(name, member, f"{_readable(kind)}.{name}", depth)

    def _add_member(self, name: str, member: Any, where: str, depth: int) -> None:
        member = getattr(member, "__func__", member)  # of static and class methods
        member = member.fget if isinstance(member, property) else member
        dunder = name.startswith("__") and name.endswith("__")
        if isinstance(member, FunctionType) or (isinstance(member, _PLAIN) and not dunder):
            self.parts.append(f"member {name}")
            self.add(member, where, depth)

    def _add_module(self, value: nn.Module, where: str, depth: int) -> None:
        """A layer: its class, settings, hooks and layers; and its tensors, where nobody trains it."""
        self._add_class(type(value), where, depth)
        self.parts.append(value.extra_repr())
        own_state = type(value).get_extra_state is not nn.Module.get_extra_state
        for name, attribute in sorted(vars(value).items()):
            if name.startswith("_") or name in _STATE or own_state:
                continue
            self.parts.append(f"attribute {name}")
            self.add(attribute, f"{where}.{name}", depth)
        for name in _HOOKS:
            for hook in getattr(value, name, {}).values():
                self.add(hook, f"a hook of {where}", depth)
        if id(value) not in self.trained:
            for name, tensor in [*value._parameters.items(), *value._buffers.items()]:
                self.add(tensor, f"{where}.{name}", depth)
        for name, part in value.named_children():
            self.parts.append(f"layer {name}")
            self.add(part, f"{where}.{name}", 1)  # a deep network is no deep nesting

    def _add_object(self, value: Any, where: str, depth: int) -> None:
        self._add_class(type(value), where, depth)
        recipe = getattr(value, "recipe", None)
        if inspect.ismethod(recipe):  # it says itself what its work depends on
            self.add(recipe(), where, depth)
            return
        attributes = dict(getattr(value, "__dict__", {}))
        for kind in type(value).__mro__:
            slots = getattr(kind, "__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    attributes[name] = getattr(value, name)
        if not attributes and " at 0x" in repr(value) and "__repr__" not in vars(type(value)):
            if _from_library(type(value)):
                self.unknown.append(f"{where} ({_readable(type(value))})")
            return
        if not attributes:
            self.parts.append(repr(value))
        library = _from_library(type(value))
        kept = {k: v for k, v in attributes.items() if not (library and k.startswith("_"))}
        self._add_named(kept, where, depth)


def _instructions(code: CodeType) -> Iterable[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)


def _loaded(code: CodeType) -> set[str]:
    """The globals that a function reads."""
    return {str(i.argval) for i in _instructions(code) if i.opname == "LOAD_GLOBAL"}


def _stored(code: CodeType) -> set[str]:
    """The globals and outer variables that it changes: state, not settings."""
    names = ("STORE_GLOBAL", "STORE_DEREF")
    return {str(i.argval) for i in _instructions(code) if i.opname in names}


def _from_library(value: Any) -> bool:
    """Whether code is that of an installed library, which goes by its name."""
    name = str(getattr(value, "__module__", None) or "builtins").split(".")[0]
    if name in _LIBRARIES or (name in sys.stdlib_module_names and name != "__main__"):
        return True
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    return "site-packages" in file


def _qualified(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__name__)
    module = getattr(value, "__module__", "")
    return str(name) if module == "__main__" else f"{module}.{name}"


def _readable(value: Any) -> str:
    """A short name for a message."""
    if value is None:
        return "None"
    if isinstance(value, functools.partial):
        return f"partial({_readable(value.func)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_readable(item)}" for key, item in value.items()) + "}"
    name = getattr(value, "__qualname__", None)
    if name is None and not isinstance(value, nn.Module):
        shown = repr(value)
        if " at 0x" not in shown and len(shown) <= 80:
            return shown
    return str(name or type(value).__qualname__)
