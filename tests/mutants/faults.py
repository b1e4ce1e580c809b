"""Every small fault that can be planted in a source file: one changed expression or statement each.

A fault is a span of the file and the text that replaces it, so that everything else, comments included, stays
as it was. Text that people read is left alone: docstrings, f-strings and type annotations have no faults.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Fault", "faults_of", "plant"]

OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
LOOSENED = 1e4  # how much larger a tolerance or floor becomes
SKIPPED = (ast.JoinedStr, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Fault:
    """One change: characters ``start`` to ``end`` of the file become ``after``."""

    kind: str
    line: int
    start: int
    end: int
    before: str
    after: str


def plant(source: str, fault: Fault) -> str:
    """The file with the fault in it."""
    return source[: fault.start] + fault.after + source[fault.end :]


def faults_of(source: str) -> list[Fault]:
    """All faults of a file, in the order of their places."""
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    raw = source.encode()
    found = []
    for node in _walk(ast.parse(source)):
        span = slice(
            offsets[node.lineno - 1] + node.col_offset,
            offsets[node.end_lineno - 1] + node.end_col_offset,
        )
        for kind, after in _changes(node):
            start = len(raw[: span.start].decode())
            before = raw[span].decode()
            text = f"({ast.unparse(after)})" if isinstance(after, ast.expr) else after
            found.append(Fault(kind, node.lineno, start, start + len(before), before, text))
    return sorted(found, key=lambda fault: (fault.start, fault.kind, fault.after))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Expressions and statements that a program computes with."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, SKIPPED) or _is_text(child):
                continue
            if isinstance(child, (ast.expr, ast.stmt)):
                yield child
            yield from _walk(child)


def _is_text(node: ast.AST) -> bool:
    """Docstrings, and the list of public names."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.expr | str]]:
    """The faults of one node: their kind, and what stands there instead."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        other = OPPOSITES.get(type(node.ops[0]))
        if other is not None:
            yield "comparison", _with(node, ops=[other()])
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED and not _has_text(node):
        yield "arithmetic", _with(node, op=SWAPPED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        for k in range(len(node.values)):
            rest = [value for j, value in enumerate(node.values) if j != k]
            yield "condition", rest[0] if len(rest) == 1 else _with(node, values=rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "sign", node.operand
    elif isinstance(node, ast.Call):
        yield from _call_changes(node)
    elif isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load):
        if isinstance(node, ast.List) and len(node.elts) > 1 and not _has_text(node):
            for k in range(len(node.elts)):
                yield "element", _with(node, elts=[e for j, e in enumerate(node.elts) if j != k])
    elif isinstance(node, ast.IfExp):
        yield "branch", node.body
        yield "branch", node.orelse
    elif isinstance(node, ast.Constant) and type(node.value) is float and node.value != 0.0:
        yield "number", ast.Constant(node.value * (LOOSENED if node.value < 1e-2 else 1.5))
    elif isinstance(node, (ast.AugAssign, ast.Raise)):
        yield "statement", "pass"


def _call_changes(node: ast.Call) -> Iterator[tuple[str, ast.expr | str]]:
    name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")
    plain = not any(isinstance(arg, (ast.Starred, ast.GeneratorExp)) for arg in node.args)
    if name in ("max", "min", "maximum", "minimum") and len(node.args) > 1 and plain:
        for k in range(len(node.args)):
            rest = [arg for j, arg in enumerate(node.args) if j != k]
            yield "term", rest[0] if len(rest) == 1 else _with(node, args=rest)
    if name == "abs" and len(node.args) == 1:
        yield "sign", node.args[0]
    for k, keyword in enumerate(node.keywords):
        if keyword.arg == "floor":
            loose = ast.BinOp(ast.Constant(LOOSENED), ast.Mult(), keyword.value)
            others = list(node.keywords)
            others[k] = ast.keyword("floor", loose)
            yield "floor", _with(node, keywords=others)


def _with(node: ast.expr, **fields: object) -> ast.expr:
    """A copy with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _has_text(node: ast.AST) -> bool:
    """Whether strings are put together here."""
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in ast.walk(node)
    )
