"""fastText's ``.bin``: the model's settings, its dictionary, the input matrix, the output matrix.

All numbers are little-endian. The file begins with a magic number and version 12 (11 is read too), then

1. settings: dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate as int32
   and t as float64; model is 1 (cbow), 2 (skip-gram) or 3 (supervised);
2. the dictionary: size, words and labels as int32, tokens and the size of the pruning index as int64; then
   for each entry its bytes and a zero byte, its count as int64, and 0 for a word or 1 for a label;
3. one byte that says whether it is quantised, and the input matrix: rows and columns as int64, float32; the
   rows of the words, then those of the buckets;
4. the same for the output matrix.

The vector of a word is the mean over its own row and those of its n-grams. Quantised and pruned models are
refused. Written are vectors of a skip-gram model; the rows of the words are found from their vectors.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._source import Source
from .formats import MAGIC, WORD, VectorFile, shortened
from .subwords import Subwords, SubwordVectors

if TYPE_CHECKING:
    from .formats import Words

__all__ = ["fasttext_parts", "read_fasttext"]

_SETTINGS = "12id"
_SUPERVISED = 3
_ROWS = 1 << 14  # rows checked or written at a time


def read_fasttext(source: Source, words: Words) -> VectorFile:
    """What a model holds, the vectors composed."""
    magic = source.take(4, "its magic number")
    if magic != MAGIC:
        raise source.fail(f"it begins with {magic!r}, which is not a fastText model.")
    (version,) = source.numbers("i", "its version")
    if version not in (11, 12):
        raise source.fail(f"it is of version {version}; versions 11 and 12 are read.")
    settings = source.numbers(_SETTINGS, "its settings")
    dim, model, bucket, minn, maxn = (settings[k] for k in (0, 7, 8, 9, 10))
    if version == 11 and model == _SUPERVISED:
        maxn = 0  # such models were trained without n-grams of characters
    if dim < 1 or bucket < 0 or model not in (1, 2, 3) or maxn < 0:
        raise source.fail(
            f"its settings say dim={dim}, model={model}, bucket={bucket}, maxn={maxn}."
        )
    minn = max(minn, 1)  # the programme's loop begins with n-grams of one character
    if minn > maxn or not bucket:
        maxn = 0  # no n-gram is that long, or there is no bucket for it
    entries, counts, labels = _dictionary(source, words)
    for raw, place in entries:
        words.add(raw, f"word {place}")
    n = len(words)
    if n != len(counts):
        raise source.fail(
            "a word comes twice, and the rows of a model cannot be left out; errors='backslashreplace' keeps "
            "words apart that are not UTF-8."
        )
    matrix = _matrix(source, "input", n + bucket, dim)
    names, parts = list(words.number), None
    if maxn:
        parts = SubwordVectors(Subwords(minn, maxn, bucket), matrix[n:])
        vectors = parts.compose(names, matrix[:n])
    else:
        vectors = matrix[:n].copy() if bucket else matrix  # n-grams of words are not kept
    output = _matrix(source, "output", None, dim)
    if source.holds(1):
        raise source.fail(f"bytes follow the model from {source.place} on.")
    return VectorFile(
        names,
        vectors,
        counts,
        parts,
        tuple(label for label, _ in labels),
        np.array([count for _, count in labels], dtype=np.int64),
        output,
    )


def _dictionary(source: Source, words: Words) -> tuple[Any, Any, list[tuple[str, int]]]:
    """((bytes, number) of the words, their counts, (label, count))."""
    size, n_words, n_labels, _, pruned = source.numbers("3i2q", "its dictionary")
    if min(size, n_words, n_labels) < 0 or n_words + n_labels != size or not n_words:
        raise source.fail(
            f"its dictionary says {size} entries: {n_words} words, {n_labels} labels."
        )
    if pruned >= 0:
        raise source.fail(
            "it is pruned (made by 'fasttext quantize'): read the model it came from."
        )
    source.expect(10 * size, f"{size} entries of the dictionary")
    found, labels, counts = [], [], []
    for k in range(size):
        raw = source.until(b"\0", WORD, f"entry {k + 1} of {size}")
        count, kind = source.numbers("qb", f"entry {k + 1} of {size}")
        if kind != int(k >= n_words):
            raise source.fail(
                f"entry {k + 1}, {shortened(raw)}, is of kind {kind}: words come first."
            )
        if kind:
            labels.append((raw.decode("utf-8", "backslashreplace"), count))
        else:
            found.append((raw, k + 1))
            counts.append(count)
    return found, np.array(counts, dtype=np.int64), labels


def _matrix(source: Source, name: str, rows: int | None, columns: int) -> NDArray[np.float32]:
    (quantised,) = source.numbers("B", f"the {name} matrix")
    if quantised:
        raise source.fail(
            f"its {name} matrix is quantised (a .ftz file): read the .bin file that it was made from."
        )
    n, d = source.numbers("2q", f"the {name} matrix")
    if d != columns or n < 0 or (rows is not None and n != rows):
        wanted = columns if rows is None else (rows, columns)
        raise source.fail(
            f"the {name} matrix is of shape ({n}, {d}), not {wanted} as the settings say."
        )
    raw = source.bulk(4 * n * d, f"the {n} x {d} numbers of the {name} matrix")
    matrix: NDArray[np.float32] = np.frombuffer(raw, dtype="<f4").reshape(n, d)
    for first in range(0, n, _ROWS):
        bad = np.flatnonzero(~np.isfinite(matrix[first : first + _ROWS]).all(axis=1))
        if len(bad):
            raise source.fail(f"row {first + bad[0] + 1} of the {name} matrix is not finite.")
    return matrix


def fasttext_parts(
    words: Sequence[str],
    encoded: list[bytes],
    rows: NDArray[np.float32],
    counts: Any,
    subwords: Any,
    output: Any,
) -> Iterator[bytes]:
    """The bytes of a skip-gram model with these vectors."""
    if subwords is not None and not isinstance(subwords, SubwordVectors):
        if not isinstance(getattr(subwords, "subwords", None), Subwords):
            raise TypeError(
                "subwords must be a SubwordVectors, or have its subwords and matrix, for format='fasttext', "
                f"got {type(subwords).__name__}."
            )
        subwords = SubwordVectors(subwords.subwords, subwords.matrix)
    n, d = rows.shape
    known = np.ones(n, dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    if known.shape != (n,):
        raise ValueError(
            f"counts must be one number for each of {n} words, got shape {known.shape}."
        )
    known = np.maximum(known, 1)  # readers leave out words that never occurred
    out = None if output is None else np.ascontiguousarray(output, dtype="<f4")
    if out is not None and (out.ndim != 2 or out.shape[1] != d):
        raise ValueError(f"output must have {d} columns, got shape {out.shape}.")
    own, matrix = rows, np.empty((0, d), dtype="<f4")
    minn = maxn = 0
    if subwords is not None and subwords.subwords.maxn:
        if subwords.matrix.shape[1] != d:
            raise ValueError(
                f"subwords has vectors of {subwords.matrix.shape[1]} numbers, not {d}."
            )
        own = subwords.decompose(words, rows)
        matrix = subwords.matrix
        minn, maxn = subwords.subwords.minn, subwords.subwords.maxn
    return _parts(encoded, known, own, matrix, out, minn, maxn)


def _parts(
    encoded: list[bytes],
    counts: NDArray[np.int64],
    own: NDArray[Any],
    matrix: NDArray[Any],
    output: NDArray[Any] | None,
    minn: int,
    maxn: int,
) -> Iterator[bytes]:
    n, d = own.shape
    # dim ws epoch minCount neg wordNgrams loss(2: negative sampling) model(2: skip-gram) ...
    yield MAGIC + struct.pack("<i", 12)
    yield struct.pack("<" + _SETTINGS, d, 5, 5, 1, 5, 1, 2, 2, len(matrix), minn, maxn, 100, 1e-4)
    yield struct.pack("<3i2q", n, n, 0, int(counts.sum()), -1)
    for word, count in zip(encoded, counts.tolist(), strict=True):
        yield word + b"\0" + struct.pack("<qb", count, 0)
    yield struct.pack("<B2q", 0, n + len(matrix), d)
    yield from _numbers(own)
    yield from _numbers(matrix)
    yield struct.pack("<B2q", 0, n if output is None else len(output), d)
    if output is not None:
        yield from _numbers(output)
    else:
        for first in range(0, n, _ROWS):
            yield bytes(4 * d * min(_ROWS, n - first))


def _numbers(matrix: NDArray[Any]) -> Iterator[bytes]:
    for first in range(0, len(matrix), _ROWS):
        yield matrix[first : first + _ROWS].astype("<f4").tobytes()
