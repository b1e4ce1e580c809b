"""The bytes of a file of vectors, unpacked where they are packed, with their place for messages.

Nothing is believed: whatever a header promises is compared with the most bytes the file can hold (gzip makes
at most 1032 bytes of one) before memory is set aside, and memory grows with the bytes that were read.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from types import TracebackType
from typing import Any

__all__ = ["BLOCK", "Source", "VectorFileError"]

BLOCK = 1 << 22
_DEFLATE = 1032  # bytes that one byte can unpack to, at most


class VectorFileError(ValueError):
    """A file of vectors is damaged, or is not what its beginning says."""


class Source:
    """A file that is read forwards; ``at`` is the place in ``buffer``."""

    def __init__(self, path: Any) -> None:
        self.path = os.fspath(path)
        self._raw = open(self.path, "rb")  # noqa: SIM115
        packed = self._raw.read(2) == b"\x1f\x8b"
        self._raw.seek(0)
        self._file: Any = gzip.GzipFile(fileobj=self._raw) if packed else self._raw
        size = os.fstat(self._raw.fileno()).st_size
        self.most = size * _DEFLATE if packed else size  # bytes of it all, at most
        self.buffer, self.at, self._before = b"", 0, 0

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        self._raw.close()

    @property
    def place(self) -> int:
        """The byte, from 0, that is read next."""
        return self._before + self.at

    def fail(self, words: str) -> VectorFileError:
        return VectorFileError(f"{self.path}: {words}")

    def more(self) -> bool:
        """Read a block behind what is left; False at the end of the file."""
        try:
            block = self._file.read(BLOCK)
        except (EOFError, OSError, zlib.error) as error:
            raise self.fail(
                f"it cannot be unpacked beyond byte {self._before + len(self.buffer)}: {error}."
            ) from error
        self._before += self.at
        self.buffer, self.at = self.buffer[self.at :] + block, 0
        return bool(block)

    def holds(self, count: int) -> bool:
        """Whether ``count`` more bytes are there, which are then in the buffer."""
        while len(self.buffer) - self.at < count:
            if not self.more():
                return False
        return True

    def expect(self, count: int, words: str) -> None:
        """Refuse what the file is too short for, before anything is allocated."""
        if count > self.most - self.place:
            raise self.fail(
                f"{words} need at least {count} bytes, but at most {max(0, self.most - self.place)} "
                f"follow byte {self.place}. The file is cut short, or its header is wrong."
            )

    def take(self, count: int, words: str) -> bytes:
        """Exactly ``count`` bytes, of which there are few."""
        if not self.holds(count):
            raise self.fail(f"it ends at byte {self._before + len(self.buffer)}, within {words}.")
        self.at += count
        return self.buffer[self.at - count : self.at]

    def numbers(self, layout: str, words: str) -> tuple[Any, ...]:
        """Numbers of a :mod:`struct` layout, little-endian."""
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout), words))

    def until(self, mark: bytes, limit: int, words: str) -> bytes:
        """The bytes before the next mark, which is passed; at most ``limit`` of them."""
        while (end := self.buffer.find(mark, self.at, self.at + limit + 1)) < 0:
            if len(self.buffer) - self.at > limit:
                raise self.fail(f"{words} has no end within {limit} bytes of byte {self.place}.")
            if not self.more():
                raise self.fail(f"it ends at byte {self.place + len(self.buffer)}, within {words}.")
        found = self.buffer[self.at : end]
        self.at = end + 1
        return found

    def bulk(self, count: int, words: str) -> bytearray:
        """Exactly ``count`` bytes, of which there are many."""
        self.expect(count, words)
        found = bytearray()
        while len(found) < count:
            part = self.buffer[self.at : self.at + count - len(found)]
            self.at += len(part)
            found += part
            if len(found) < count and not self.more():
                raise self.fail(
                    f"it ends at byte {self.place}, within {words}: {len(found)} of {count} bytes."
                )
        return found
