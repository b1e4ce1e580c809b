"""Files of pairs and of questions that word vectors are compared with (:mod:`.evaluation`)."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["checked_pair", "is_path", "read_analogies", "read_pairs", "sections_of"]

_LINE = 1 << 16  # bytes of a line, at most


def read_pairs(path: Any) -> list[tuple[str, str, float]]:
    """``(word, word, score)`` of a file with one of them a line; ``#`` begins a comment.

    Fields lie between tabs, commas or blanks. Between tabs or commas there may be more than three, as in
    SimLex-999: the score stands where the first pair has its first number. Names of columns that begin with
    "word", as those of WordSim-353 and SimLex-999, are passed over.
    """
    found: list[tuple[str, str, float]] = []
    column = 2
    for number, line in _lines(path):
        if line.startswith("#"):
            continue
        mark = next((mark for mark in "\t," if line.count(mark) >= 2), None)
        fields = [field.strip() for field in line.split(mark)]
        if not found and mark is not None:
            scores = [k for k in range(2, len(fields)) if _score(fields[k]) is not None]
            if not scores and all(field.lower().startswith("word") for field in fields[:2]):
                continue
            column = scores[0] if scores else 2
        score = _score(fields[column]) if column < len(fields) else None
        if score is None or (mark is None and len(fields) != 3):
            raise ValueError(
                f"{os.fspath(path)}: line {number} must be two words and a score, got {line[:60]!r}."
            )
        found.append((fields[0], fields[1], score))
    if not found:
        raise ValueError(f"{os.fspath(path)}: it holds no pairs.")
    return found


def read_analogies(path: Any) -> dict[str, list[tuple[str, ...]]]:
    """Questions by section, of a file with ``: section`` lines and lines of four words."""
    found: dict[str, list[tuple[str, ...]]] = {}
    rows: list[tuple[str, ...]] | None = None
    for number, line in _lines(path):
        if line.startswith(":"):
            rows = found.setdefault(line[1:].strip(), [])
            continue
        words = tuple(line.split())
        if len(words) != 4:
            raise ValueError(
                f"{os.fspath(path)}: line {number} must be four words, got {line[:60]!r}."
            )
        if rows is None:
            raise ValueError(f"{os.fspath(path)}: line {number} comes before a ': section' line.")
        rows.append(words)
    if not any(found.values()):
        raise ValueError(f"{os.fspath(path)}: it holds no questions.")
    return found


def _lines(path: Any) -> Iterator[tuple[int, str]]:
    """(number from 1, line) of those that are not blank; packed with gzip or not."""
    path = os.fspath(path)
    with open(path, "rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        number = 0
        while True:
            try:
                line = file.readline(_LINE)
            except (EOFError, OSError, zlib.error) as error:
                raise ValueError(
                    f"{path}: it cannot be unpacked after line {number}: {error}."
                ) from error
            number += 1
            if not line:
                return
            if len(line) == _LINE:
                raise ValueError(f"{path}: line {number} is longer than {_LINE} bytes.")
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}: line {number} is not UTF-8 at its byte {error.start}."
                ) from error
            if text:
                yield number, text


def checked_pair(pair: Any, number: int) -> tuple[str, str, float]:
    """Two words and a score."""
    if len(pair) != 3 or not (isinstance(pair[0], str) and isinstance(pair[1], str)):
        raise ValueError(f"pair {number} must be two words and a score, got {pair!r}.")
    if (score := _score(pair[2])) is None:
        raise ValueError(f"pair {number} has the score {pair[2]!r}, which is not a finite number.")
    return pair[0], pair[1], score


def _score(value: Any) -> float | None:
    """A finite number, or None."""
    try:
        score = float(value)
    except (TypeError, ValueError):
        return None
    return score if math.isfinite(score) else None


def sections_of(questions: Any) -> dict[str, list[tuple[str, ...]]]:
    """Questions by the names of their sections."""
    if not isinstance(questions, Mapping):
        raise TypeError(
            "questions must be a path or a mapping from section to questions, got "
            f"{type(questions).__name__}."
        )
    found: dict[str, list[tuple[str, ...]]] = {}
    for name, rows in questions.items():
        found[str(name)] = [_four(row, name) for row in rows]
    return found


def _four(row: Iterable[str], name: Any) -> tuple[str, ...]:
    words = () if isinstance(row, str) else tuple(row)  # a string's letters are no words
    if len(words) != 4 or not all(isinstance(word, str) for word in words):
        raise ValueError(f"section {name!r} must hold questions of four words, got {row!r}.")
    return words


def is_path(value: Any) -> bool:
    """Whether this names a file."""
    return isinstance(value, str | os.PathLike)
