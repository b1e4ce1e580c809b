"""Files of word vectors: word2vec text and binary, GloVe text, fastText.

*word2vec text* (also fastText's ``.vec``): a line ``n d``, then n lines of a word and d numbers. GloVe writes
the same without the first line. *word2vec binary*: the line ``n d``, then n times the word, a blank, d
numbers of float32, little-endian, and a newline that some programmes leave out. fastText's ``.bin``, which
holds vectors of n-grams too, is in :mod:`surefit.text._fasttext_file`. Any of them may be packed with gzip.

Text is read a few megabytes at a time. A header is compared with the size of the file before memory is set
aside; a row that is not what the header says, a number that is not finite, a word that is not UTF-8 or comes
twice stop the reading with their place. Files are written beside their name and renamed, so that a reader
sees the old one or the new one.
"""

from __future__ import annotations

import math
import os
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._counts import is_whole
from .._files import write_atomically
from ._source import BLOCK, Source, VectorFileError
from .subwords import SubwordVectors

__all__ = ["FORMATS", "VectorFile", "VectorFileError", "read_vectors", "write_vectors"]

FORMATS = ("word2vec", "word2vec-binary", "fasttext")
MAGIC = (793712314).to_bytes(4, "little")  # of fastText's .bin
WORD = 1 << 16  # bytes of a word, at most
_NUMBER = 64  # bytes of a number in text, at most
_LARGE = (2.0 - 2.0**-24) * 2.0**127  # from here on float32 is infinite; below, its largest number
_PLAIN = bytes(k for k in range(128) if chr(k).isalnum() or chr(k) in "+-._()# \t\r\n")


@dataclass(frozen=True, eq=False)
class VectorFile:
    """What a file of vectors holds.

    ``counts`` and ``subwords`` are None where the format has none. ``labels``, their ``label_counts`` and
    ``output``, the matrix behind the vectors, are those of a fastText model.
    """

    words: list[str]
    vectors: NDArray[np.float32]
    counts: NDArray[np.int64] | None = None
    subwords: SubwordVectors | None = None
    labels: tuple[str, ...] = ()
    label_counts: NDArray[np.int64] | None = None
    output: NDArray[np.float32] | None = None


class Words:
    """The words of a file as they are read: decoded, and each of them once."""

    def __init__(self, source: Source, errors: str, duplicates: str) -> None:
        self.source, self.errors, self.keep_first = source, errors, duplicates == "first"
        self.number: dict[str, int] = {}

    def add(self, raw: bytes, where: str) -> bool:
        """Whether the word is new."""
        try:
            word = raw.decode("utf-8", self.errors)
        except UnicodeDecodeError as error:
            raise self.source.fail(
                f"{where}: the word {shortened(raw)} is not UTF-8, its byte {error.start} is "
                f"0x{raw[error.start]:02x}. Pass errors='replace' to read it all the same."
            ) from error
        if word in self.number:
            if self.keep_first:
                return False
            raise self.source.fail(
                f"{where}: the word {shortened(word)} is there already, as word {self.number[word] + 1}."
                " Pass duplicates='first' to keep the first."
            )
        self.number[word] = len(self.number)
        return True

    def __len__(self) -> int:
        return len(self.number)


def read_vectors(
    path: Any,
    format: str | None = None,
    *,
    errors: str = "strict",
    duplicates: str = "error",
    limit: int | None = None,
) -> VectorFile:
    """Read a file of word vectors.

    Parameters
    ----------
    path : path
    format : {"word2vec", "word2vec-binary", "fasttext"}, optional
        By default what the file looks like. "word2vec" is text, with or without a header.
    errors : {"strict", "replace", ...}
        What to do with words that are not UTF-8, as :meth:`bytes.decode` takes it.
    duplicates : {"error", "first"}
        What to do with a word that comes twice; words can become equal under ``errors="replace"``.
    limit : int, optional
        Read this many words at most; not for "fasttext".

    Returns
    -------
    VectorFile
    """
    if format not in (None, *FORMATS):
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, or None, got {format!r}.")
    if duplicates not in ("error", "first"):
        raise ValueError(f"duplicates must be 'error' or 'first', got {duplicates!r}.")
    if limit is not None and not is_whole(limit):
        raise ValueError(f"limit must be an integer of 1 or more, or None, got {limit!r}.")
    with Source(path) as source:
        if not source.holds(1):
            raise source.fail("it is empty.")
        words = Words(source, errors, duplicates)
        format = format or _sniff(source)
        if format == "fasttext":
            from ._fasttext_file import read_fasttext

            if limit is not None:
                raise ValueError("limit is for the formats of word2vec: n-grams follow all words.")
            return read_fasttext(source, words)
        reader = _read_binary if format == "word2vec-binary" else _read_text
        vectors = reader(source, words, math.inf if limit is None else limit)
    if not len(words):
        raise source.fail("it holds no words.")
    return VectorFile(list(words.number), vectors)


def write_vectors(
    path: Any,
    words: Sequence[str],
    vectors: Any,
    *,
    format: str = "word2vec",
    counts: Any = None,
    subwords: Any = None,
    output: Any = None,
) -> None:
    """Write word vectors, as float32; packed where the name ends in ``.gz``.

    Text holds as many digits as float32 needs to be read back the same. ``counts``, ``subwords`` and
    ``output`` are for "fasttext"; the other formats have no place for them.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}.")
    given = np.asarray(vectors)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"vectors must hold numbers, got dtype {given.dtype}.")
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(given, dtype="<f4")
    if rows.ndim != 2 or len(rows) != len(words) or not rows.size:
        raise ValueError(
            f"vectors must hold one row for each of {len(words)} words, got {rows.shape}."
        )
    step = max(1, BLOCK // rows.shape[1])
    for first in range(0, len(rows), step):
        bad = np.flatnonzero(~np.isfinite(rows[first : first + step]).all(axis=1))
        if len(bad):
            word = words[first + bad[0]]
            raise ValueError(
                f"the vector of {word!r} is not finite in float32: leave the word out."
            )
    encoded = [_encoded(word) for word in words]
    if len(number := dict(zip(encoded, range(len(encoded)), strict=True))) < len(encoded):
        twice = next(word for k, word in enumerate(words) if number[encoded[k]] != k)
        raise ValueError(f"words holds {twice!r} more than once: leave the others out.")
    parts: Iterable[Any]
    if format == "fasttext":
        from ._fasttext_file import fasttext_parts

        parts = fasttext_parts(words, encoded, rows, counts, subwords, output)
    else:
        parts = _text_parts(encoded, rows) if format == "word2vec" else _binary_parts(encoded, rows)
    target = os.path.abspath(os.fspath(path))
    write_atomically(target, _packed(parts) if target.endswith(".gz") else parts)


def shortened(value: Any) -> str:
    """A word as messages show it."""
    return repr(value if len(value) <= 40 else value[:37]) + ("..." if len(value) > 40 else "")


# ------------------------------------------------------------------------------ reading


def _sniff(source: Source) -> str:
    """The format that the first bytes look like."""
    source.holds(BLOCK // 4)
    head = source.buffer
    if head.startswith(MAGIC):
        return "fasttext"
    first, _, rest = head.partition(b"\n")
    if (header := _header(first)) is None or not rest:
        return "word2vec"
    numbers = rest.partition(b" ")[2][: 4 * min(header[1], BLOCK)]
    _, *fields = rest.partition(b"\n")[0].split() or [b""]  # of a short line, before other words
    text = len(fields) == header[1] and all(_value(field) is not None for field in fields)
    return "word2vec-binary" if numbers.translate(None, _PLAIN) and not text else "word2vec"


def _header(line: bytes) -> tuple[int, int] | None:
    """(n, d), or None where the line is not of two whole numbers, behind a byte order mark or not."""
    fields = line.removeprefix(BOM_UTF8)[:64].split()
    if len(fields) != 2 or len(line) > 64 or not all(field.isdigit() for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _checked(
    source: Source, header: tuple[int, int], per_number: int, rest: int, limit: float
) -> None:
    n, d = header
    if d < 1 or n < 1:
        raise source.fail(f"its header says {n} words of {d} numbers: there is nothing in it.")
    count = n if limit >= n else int(limit)
    words = f"{count} words of {d} numbers, which the header speaks of,"
    source.expect(count * (per_number * d + rest) - 1, words)


def _read_text(source: Source, words: Words, limit: float) -> NDArray[np.float32]:
    """Lines of a word and its numbers."""
    from .._jit.vector_text import parse_lines

    first = _first_line(source)
    header = _header(first)
    if header is not None:
        _checked(source, header, 2, 2, limit)
        n, d = header
        line = 1  # the last line that was passed
    else:
        n, d, line = -1, len(first.split()) - 1, 0
        source.at = 0
        if d < 1:
            raise source.fail(f"line 1 holds a word without numbers: {shortened(first)}.")
    longest = max(BLOCK, WORD + _NUMBER * d)
    vectors, count = np.empty((0, d), dtype=np.float32), 0
    last = False
    while not last and count < limit:
        last = not source.more()
        end = source.buffer.rfind(b"\n") + 1
        if last and end < len(source.buffer):
            source.buffer += b"\n"
            end = len(source.buffer)
        if len(source.buffer) - end > longest:
            at = line + 1 + source.buffer.count(b"\n")
            raise source.fail(
                f"line {at} is longer than {longest} bytes, too long for {d} numbers."
            )
        if not end:
            continue
        text = np.frombuffer(source.buffer, dtype=np.uint8)
        # a line takes 2 d + 2 bytes or is wrong: beyond so many, one is found before there is no room
        size = min(source.buffer.count(b"\n"), end // (2 * d + 2) + 1)
        lines, rows = np.empty((size, 5), dtype=np.int64), np.empty((size, d), dtype=np.float32)
        found = parse_lines(text, end, lines, rows)
        keep = np.zeros(found, dtype=bool)
        for k, (begin, after, stop, state, before) in enumerate(lines[:found].tolist()):
            if count >= limit:
                break
            raw, number = source.buffer[begin:after], line + before + 1
            if state == 1:
                whole = source.buffer[begin:stop]
                raw, rows[k] = _careful(source, whole, d, number, header is None)
            count += 1
            if 0 <= n < count:
                raise source.fail(f"line {number}: the header says {n} words, but there are more.")
            keep[k] = words.add(raw, f"line {number}")
        line += source.buffer.count(b"\n", 0, end)
        source.at = end
        vectors = _appended(vectors, rows[:found][keep], len(words))
    if 0 <= count < min(n, limit):
        raise source.fail(f"the header says {n} words, but the file ends after {count}.")
    vectors.resize((len(words), d), refcheck=False)
    return vectors


def _first_line(source: Source) -> bytes:
    """The first line, passed; bounded."""
    while (end := source.buffer.find(b"\n")) < 0:
        if len(source.buffer) > BLOCK:
            raise source.fail(f"line 1 is longer than {BLOCK} bytes: is this a file of vectors?")
        if not source.more():
            end = len(source.buffer)
            break
    source.at = min(end + 1, len(source.buffer))
    return source.buffer[:end]


def _careful(
    source: Source, text: bytes, d: int, line: int, blanks: bool
) -> tuple[bytes, list[float]]:
    """A line that is not plain: hard numbers, words with blanks (GloVe has some), or wrong."""
    fields = text.split()
    if text[:1].isspace():
        raise source.fail(f"line {line} begins with a blank, where a word should be.")
    count = len(fields) - 1
    if blanks and count > d and _value(fields[-d - 1]) is None:
        fields = [b" ".join(fields[:-d]), *fields[-d:]]
    elif count != d:
        raise source.fail(
            f"line {line} holds {count} number(s), not {d}, after {shortened(fields[0])}."
        )
    found = []
    for j, field in enumerate(fields[1:]):
        value = _value(field)
        if value is None:
            raise source.fail(f"line {line}: number {j + 1} is {shortened(field)}.")
        if not abs(value) < _LARGE:
            raise source.fail(
                f"line {line}: number {j + 1} of the word {shortened(fields[0])} is {field.decode()}, "
                "which is not finite in float32."
            )
        found.append(value)
    return fields[0], found


def _value(field: bytes) -> float | None:
    if b"_" in field:
        return None
    try:
        return float(field)
    except ValueError:
        return None


def _appended(
    vectors: NDArray[np.float32], rows: NDArray[np.float32], size: int
) -> NDArray[np.float32]:
    """The rows up to ``size``; memory grows by half, in place where the system can."""
    if size > len(vectors):
        vectors.resize((max(size, len(vectors) * 3 // 2), rows.shape[1]), refcheck=False)
    vectors[size - len(rows) : size] = rows
    return vectors


def _read_binary(source: Source, words: Words, limit: float) -> NDArray[np.float32]:
    """Words, each followed by a blank and its numbers."""
    first = _first_line(source)
    header = _header(first)
    if header is None:
        raise source.fail(
            f"it begins with {shortened(first)}, not with a line of two whole numbers."
        )
    _checked(source, header, 4, 2, limit)
    n, d = header
    vectors, rows = np.empty((0, d), dtype=np.float32), []
    for k in range(n if limit >= n else int(limit)):
        words_of = f"word {k + 1} of {n}"
        if source.holds(1) and source.buffer[source.at : source.at + 1] == b"\n":
            source.at += 1
        raw = source.until(b" ", WORD, words_of)
        row = np.frombuffer(source.take(4 * d, f"the numbers of {words_of}"), dtype="<f4")
        if not raw:
            raise source.fail(f"{words_of} is empty, before byte {source.place}.")
        if words.add(raw, words_of):
            rows.append(row)
        if len(rows) * d >= BLOCK // 4:
            vectors, rows = _appended(vectors, _finite(source, rows, words), len(words)), []
    if rows:
        vectors = _appended(vectors, _finite(source, rows, words), len(words))
    if limit >= n and source.holds(1) and (source.buffer[source.at :].strip() or source.more()):
        raise source.fail(
            f"the header says {n} words, but bytes follow them from {source.place} on."
        )
    vectors.resize((len(words), d), refcheck=False)
    return vectors


def _finite(source: Source, rows: list[NDArray[Any]], words: Words) -> NDArray[np.float32]:
    block = np.array(rows, dtype=np.float32)
    bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
    if len(bad):
        k = len(words) - len(rows) + int(bad[0])
        raise source.fail(
            f"the vector of {shortened(list(words.number)[k])}, word {k + 1}, is not finite: the file is "
            "damaged, or is of another format."
        )
    return block


# ------------------------------------------------------------------------------ writing


def _encoded(word: Any) -> bytes:
    if not isinstance(word, str):
        raise TypeError(f"words must be strings, got {word!r}.")
    try:
        raw = word.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the word {word!r} has no UTF-8 form: {error.reason}.") from error
    if not raw or raw.split() != [raw] or b"\0" in raw:
        raise ValueError(
            f"the word {word!r} is empty or holds a blank, a line's end or a zero byte, which end a word in "
            "these formats: replace them, for instance with '_'."
        )
    if len(raw) > WORD:
        raise ValueError(f"the word {shortened(word)} has more than {WORD} bytes.")
    return raw


def _text_parts(words: list[bytes], rows: NDArray[np.float32]) -> Iterator[bytes]:
    yield b"%d %d\n" % rows.shape
    for first in range(0, len(words), 1024):
        block = rows[first : first + 1024]
        pairs = zip(words[first : first + 1024], block.astype("U16").tolist(), strict=True)
        yield b"".join(b"%b %b\n" % (word, " ".join(texts).encode()) for word, texts in pairs)


def _binary_parts(words: list[bytes], rows: NDArray[np.float32]) -> Iterator[bytes]:
    yield b"%d %d\n" % rows.shape
    for first in range(0, len(words), 4096):
        pairs = zip(words[first : first + 4096], rows[first : first + 4096], strict=True)
        yield b"".join(b"%b %b\n" % (word, row.tobytes()) for word, row in pairs)


def _packed(parts: Iterable[Any]) -> Iterator[bytes]:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)  # 31: with gzip's header, without a time
    for part in parts:
        yield packer.compress(part)
    yield packer.flush()
