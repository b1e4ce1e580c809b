"""A corpus that is read anew on each pass, a segment of words at a time.

A *segment* is a list of at most ``max_words`` words. Where it ends for good is what a context is: a line of a
file, a sentence, a paragraph, a document. Files may be compressed, larger than the memory, and hold lines of
any length: a line is cut where it passes 65,536 characters or ``max_words`` words. In strings as in files,
lines end where :func:`open` ends them; a byte order mark is no part of a word. Words are what
:meth:`str.split` finds, unless a tokenizer says otherwise.

Bytes that are not text in the given encoding stop the reading, with the file and the place, or are replaced
where ``errors="replace"`` asks for it: a mixture of encodings is seen, not guessed at.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from .._counts import is_whole

__all__ = ["CONTEXTS", "Corpus", "as_corpus", "check_order", "tokenized"]

CONTEXTS = ("text", "sentence", "paragraph", "document")
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_CHUNK = 1 << 16  # bytes read, and characters of a line after which it is cut
_SENTENCE = re.compile(r"([.!?][\"')\]”’]*)\s+")  # the end of one, quotes included, and blanks
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, OSError)


class Corpus:
    """Sentences as lists of words, read again on each pass.

    Parameters
    ----------
    source : path, list of paths, iterable, or function that returns an iterator
        Files (``.gz``, ``.xz`` and ``.bz2`` are unpacked; of a folder all files, by name); or an iterable of
        strings or of lists of words that can be gone through more than once; or a function that begins it.
    tokenizer : callable, optional
        From a string to its words; :meth:`str.split` by default.
    lowercase : bool, default=False
    encoding, errors : str, default="utf-8", "strict"
        As :func:`open` takes them.
    max_words : int, default=10_000
        Of a segment.

    Examples
    --------
    >>> corpus = Corpus(["the cat sat. it purred.", "the dog"])
    >>> list(corpus)
    [['the', 'cat', 'sat.', 'it', 'purred.'], ['the', 'dog']]
    >>> [words for words, _ in corpus.segments("sentence")]
    [['the', 'cat', 'sat.'], ['it', 'purred.'], ['the', 'dog']]
    """

    def __init__(
        self,
        source: Any,
        *,
        tokenizer: Callable[[str], list[str]] | None = None,
        lowercase: bool = False,
        encoding: str = "utf-8",
        errors: str = "strict",
        max_words: int = 10_000,
    ) -> None:
        if tokenizer is not None and not callable(tokenizer):
            raise TypeError(
                f"tokenizer must be a function from a string to its words, got {tokenizer!r}."
            )
        if not is_whole(max_words):
            raise ValueError(f"max_words must be an integer of 1 or more, got {max_words!r}.")
        "".encode(encoding)  # one that is unknown, or is not for text, is named at once
        codecs.lookup_error(errors)
        self.tokenizer, self.lowercase = tokenizer, lowercase
        self.encoding, self.errors, self.max_words = encoding, errors, int(max_words)
        self.files = _files(source)
        self.source, self._texts = source, 0  # how many texts the last pass found
        check_order(source, "source")
        if self.files is None and not callable(source):
            if isinstance(source, Iterator):
                raise TypeError(
                    f"source is used up after one pass ({type(source).__name__}), and a corpus is read "
                    "several times: pass a list, or a function that returns a new iterator."
                )
            if not isinstance(source, Iterable):
                raise TypeError(
                    f"source must be a path, paths, an iterable of strings or of lists of words, or a "
                    f"function that returns an iterator, got {type(source).__name__}."
                )

    def __iter__(self) -> Iterator[list[str]]:
        """The segments: of lines of files, of strings, of lists."""
        for words, _ in self.segments():
            yield words

    def texts(self) -> Iterator[list[str]]:
        """The words of each line of files, string or list, whole; of an empty one too."""
        held: list[str] = []
        for words, ends in self._pieces("text"):
            held += words
            if ends:
                yield held
                held = []

    def segments(self, context: str = "text") -> Iterator[tuple[list[str], bool]]:
        """``(words, last)``: up to ``max_words`` words, and whether the context ends after them.

        Parameters
        ----------
        context : {"text", "sentence", "paragraph", "document"}
            "text" is a line of a file, a string, a list of words. A sentence ends after ``. ! ?`` and a
            blank, and where a line ends; a paragraph at an empty line; a document is a file, a string or a
            list. A list of words is all of these.
        """
        if context not in CONTEXTS:
            raise ValueError(f"context must be one of {', '.join(CONTEXTS)}, got {context!r}.")
        most, open_ = self.max_words, False
        for words, ends in self._pieces(context):
            for start in range(0, len(words), most):
                whole = start + most >= len(words)
                yield words[start : start + most], ends and whole
                open_ = not (ends and whole)
            if ends and not words and open_:
                yield [], True
                open_ = False

    def _pieces(self, context: str) -> Iterator[tuple[list[str], bool]]:
        """(words, whether the context ends) of whatever is read at a time."""
        if self.files is not None:
            for path in self.files:
                yield from self._of_lines(self._lines(path), context, file=True)
            return
        count = 0
        for count, text in enumerate(self._begun(), 1):
            if isinstance(text, str):
                whole = context in ("text", "document")
                lines = [(text, True)] if whole else ((line, True) for line in _split(text))
                yield from self._of_lines(lines, context, file=False)
            else:
                yield self._listed(text, count - 1), True
        if self._texts and not count:
            raise ValueError(
                f"source gave {self._texts} texts on an earlier pass, and none on this one: it must begin "
                "anew each time. Pass a list, or a function that makes a new iterator."
            )
        self._texts = count

    def _begun(self) -> Iterable[Any]:
        """The texts, from the first."""
        begun = self.source() if callable(self.source) else self.source
        if isinstance(begun, str | bytes) or not isinstance(begun, Iterable):
            raise TypeError(
                f"source must return an iterator over texts, got {type(begun).__name__}: return a list."
            )
        return begun

    def _of_lines(
        self, lines: Iterable[tuple[str, bool]], context: str, file: bool
    ) -> Iterator[tuple[list[str], bool]]:
        """Words of lines, which may be cut, and where the context ends."""
        blank = True  # all of the line so far
        for line, ended in lines:
            if context == "sentence":
                begin = 0
                for end in _SENTENCE.finditer(line):
                    yield self._words(line[begin : end.end(1)]), True
                    begin = end.end()
                yield self._words(line[begin:]), ended
            elif context == "paragraph":
                blank = blank and not line.strip()
                yield ([], True) if blank and ended else (self._words(line), False)
                blank = blank or ended
            else:
                yield self._words(line), ended and (context == "text" or not file)
        if context in ("paragraph", "document"):
            yield [], True

    def _words(self, text: str) -> list[str]:
        text = text.lower() if self.lowercase else text
        if self.tokenizer is None or not text:
            return text.split()
        return tokenized(self.tokenizer, text)

    def _listed(self, words: Any, number: int) -> list[str]:
        name = f"text {number} of the corpus"
        if isinstance(words, Iterator) and isinstance(self.source, list | tuple):
            raise TypeError(
                f"{name} is used up after one pass ({type(words).__name__}): pass a list of its words."
            )
        found = _strings(words, name, "a string or a list of words")
        return [word.lower() for word in found] if self.lowercase else found

    def _lines(self, path: Path) -> Iterator[tuple[str, bool]]:
        """(line, True), or (a stretch of it, False) of a line that is too long to hold."""
        decoder = io.IncrementalNewlineDecoder(
            codecs.getincrementaldecoder(self.encoding)(self.errors), translate=True
        )
        rest, read, open_ = "", 0, False  # the last: whether the beginning of a line is given
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            while True:
                try:
                    block = file.read(_CHUNK)
                except _DAMAGED as error:
                    raise ValueError(
                        f"{path} cannot be read beyond byte {read} of its text: {error}. Is it a whole "
                        f"{path.suffix or 'text'} file?"
                    ) from error
                try:
                    rest += decoder.decode(block, final=not block)
                except UnicodeDecodeError as error:
                    at = read + error.start - (len(error.object) - len(block))
                    byte = error.object[error.start]
                    raise ValueError(
                        f"{path} is not {self.encoding}: byte {at} of its text is 0x{byte:02x} "
                        f"({error.reason}). Pass the encoding it has, or errors='replace' for a mixture."
                    ) from error
                rest = rest if read else rest.removeprefix("\ufeff")
                read += len(block)
                *lines, rest = rest.split("\n")
                for line in lines:
                    yield line, True
                open_ = open_ and not lines
                if not block:
                    if rest or open_:  # the end of a line that was cut may be empty
                        yield rest, True
                    return
                if len(rest) > _CHUNK:  # cut after the last blank, or anywhere where there is none
                    word = "" if rest[-1].isspace() else rest.rsplit(None, 1)[-1]
                    cut = len(rest) - len(word) or len(rest)
                    yield rest[:cut], False
                    rest, open_ = rest[cut:], True


def as_corpus(X: Any, *, tokenizer: Any = None, lowercase: bool = False) -> Corpus:
    """X itself where it is a corpus, else a corpus of it.

    Examples
    --------
    >>> as_corpus("the cat")
    Traceback (most recent call last):
    ...
    ValueError: X is one string: pass a list of texts, or pathlib.Path('the cat') where it names a file.
    """
    if isinstance(X, Corpus):
        return X
    if isinstance(X, str):
        short = X if len(X) <= 40 else X[:37] + "..."
        raise ValueError(
            f"X is one string: pass a list of texts, or pathlib.Path({short!r}) where it names a file."
        )
    if hasattr(X, "to_list"):  # a column of a table
        X = X.to_list()
    return Corpus(X, tokenizer=tokenizer, lowercase=lowercase)


def tokenized(tokenizer: Callable[[str], Any], text: str) -> list[str]:
    """The words that a tokenizer finds."""
    words = tokenizer(text)
    if isinstance(words, str):
        raise TypeError(f"tokenizer must return a list of words, got the string {words[:40]!r}.")
    return _strings(words, "what tokenizer returns", "a list of words")


def check_order(texts: Any, name: str) -> None:
    """Refuse what gives something else than texts one after the other: tables, mappings, sets."""
    kind = type(texts).__name__
    if hasattr(texts, "columns"):
        raise TypeError(
            f"{name} is a table ({kind}), which goes through the names of its columns: pass the column that "
            "holds the texts."
        )
    if getattr(texts, "ndim", 1) != 1:
        raise ValueError(
            f"{name} has shape {texts.shape}: pass a list of texts, or the one column that holds them."
        )
    if isinstance(texts, Mapping):
        raise TypeError(
            f"{name} is a mapping ({kind}), which goes through its keys: pass a list of its values."
        )
    if isinstance(texts, AbstractSet):
        raise TypeError(
            f"{name} is a set ({kind}), whose order is not the same in another process: pass a list."
        )


def _files(source: Any) -> list[Path] | None:
    """The files that are named, or None where the source is something else."""
    if isinstance(source, str | os.PathLike):
        source = [Path(source)]
    elif not (isinstance(source, list | tuple) and source and isinstance(source[0], os.PathLike)):
        return None
    found: list[Path] = []
    for entry in source:
        path = Path(entry)
        if os.path.isdir(path):  # unlike the methods of Path, False for a name that is too long
            found += sorted(inner for inner in path.rglob("*") if inner.is_file())
        elif os.path.isfile(path):
            found.append(path)
        else:
            name = str(path) if len(str(path)) <= 200 else str(path)[:197] + "..."
            raise FileNotFoundError(
                f"source names {name!r}, which is no file or folder here: pass a list for texts."
            )
    if not found:
        raise FileNotFoundError("source names a folder without files.")
    return found


def _split(text: str) -> Iterator[str]:
    for line in io.StringIO(text, newline=None):  # the lines that a file has
        yield line.removesuffix("\n")


def _strings(words: Any, name: str, wanted: str) -> list[str]:
    """Words as a list; what has no order, or is no text, is refused."""
    if isinstance(words, bytes | Mapping | AbstractSet) or not isinstance(words, Iterable):
        raise TypeError(
            f"{name} must be {wanted}, got {type(words).__name__}: decode bytes first, leave out missing "
            "values, and take the text out of a record."
        )
    found = list(words)
    if set(map(type, found)) <= {str}:  # several times as fast as the loop
        return found
    for word in found:
        if not isinstance(word, str):
            raise TypeError(f"{name} holds {word!r}, which is not a string.")
    return list(map(str, found))  # numpy's strings print, and are saved, in another way
