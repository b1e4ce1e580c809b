"""From a source to plain bytes: files, pipes, streams; gzip, xz, bzip2, zip and (Python 3.14) zstd.

Compression is recognised by its first bytes, not by the file's name. What comes out is bounded: a small
file that unpacks without end is refused instead of filling the memory.
"""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import lzma
import os
import stat
import sys
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from ._words import TableError, listed, shown

__all__ = ["read_bytes", "unpack"]

MOST_BYTES = 4 * 2**30  # of a table in memory
BOMB_BYTES = 512 * 2**20  # unpacked size above which the ratio is looked at
BOMB_RATIO = 300  # text that people wrote packs by less
CHUNK = 2**22

NOT_TABLES = {
    b"\xd0\xcf\x11\xe0": "an old Excel or Word file: save the sheet as CSV",
    b"%PDF": "a PDF: export the table as CSV",
    b"SQLite format 3": "an SQLite database: export the table as CSV",
    b"ARROW1": "an Arrow file: save it as Parquet or CSV",
    b"\x89HDF": "an HDF5 file: save the table as Parquet or CSV",
    b"\x93NUMPY": "a NumPy array: save it as CSV with column names",
}


def read_bytes(source: Any) -> tuple[bytes, str]:
    """The bytes of a path, of standard input (``"-"``) or of a binary stream, and a name for them."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), "table"
    if isinstance(source, str) and source == "-":
        if sys.stdin is None:
            raise TableError("standard input is closed; name a file instead of '-'.")
        return _drain(getattr(sys.stdin, "buffer", sys.stdin), "standard input"), "standard input"
    if hasattr(source, "read"):
        name = getattr(source, "name", "table")
        name = os.path.basename(name) if isinstance(name, str) else "table"
        return _drain(source, name), name
    path = os.fspath(source)
    path = os.fsdecode(path) if isinstance(path, bytes) else path
    return _read_path(path), os.path.basename(path) or path


def _read_path(path: str) -> bytes:
    """The bytes of a file or pipe."""
    label = shown(path, 120)
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            inside = sorted(name for name in os.listdir(path)[:1000] if _looks_like_table(name))
            hint = f" It holds {listed(inside)}." if inside else ""
            raise TableError(f"{label} is a folder; name the table file inside it.{hint}")
        device = stat.S_ISBLK(mode) or stat.S_ISCHR(mode)
        if device and not path.startswith(("/dev/stdin", "/dev/fd/", os.devnull)):
            raise TableError(f"{label} is a device, not a table file; name a CSV or Parquet file.")
        with open(path, "rb") as file:
            return _drain(file, label)
    except FileNotFoundError as error:
        raise TableError(f"there is no file {label}; {_near_files(path)}") from error
    except PermissionError as error:
        raise TableError(
            f"{label} may not be read by this user; change its permissions or copy it."
        ) from error
    except (OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        reason = shown(getattr(error, "strerror", None) or error, 100)
        raise TableError(f"{label} cannot be read: {reason}. Check the path.") from error


def _near_files(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or ".")[:1000]
    except OSError:
        return f"its folder {shown(folder, 100)} is not there either. Check the path."
    found = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    return f"did you mean {listed(found)}?" if found else "check the path."


def _looks_like_table(name: str) -> bool:
    parts = name.lower().split(".")[1:]
    return bool({"csv", "tsv", "txt", "parquet", "data"} & set(parts))


def _drain(stream: IO[Any], label: str) -> bytes:
    """All bytes of a stream, up to the limit."""
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            part = stream.read(CHUNK)
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, IsADirectoryError | PermissionError):
                raise
            raise TableError(
                f"{shown(label, 120)} breaks off or is damaged ({shown(error, 100)}); fetch it again."
            ) from error
        if not part:
            return b"".join(parts)
        part = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else bytes(part)
        size += len(part)
        if size > MOST_BYTES:
            raise TableError(
                f"{shown(label, 120)} is larger than {MOST_BYTES / 2**30:.3g} GiB, the most that is read "
                "into memory; give a sample of its rows."
            )
        parts.append(part)


def unpack(data: bytes, name: str) -> tuple[bytes, str | None]:
    """Unpacked bytes and the compression that was found, or None."""
    label = shown(name, 120)
    for magic, words in NOT_TABLES.items():
        if data.startswith(magic):
            raise TableError(f"{label} is {words}.")
    if data.startswith(b"\x1f\x8b"):
        return _bounded(lambda file: gzip.GzipFile(fileobj=file), data, label, "gzip"), "gzip"
    if data.startswith(b"\xfd7zXZ\x00"):
        return _bounded(lzma.LZMAFile, data, label, "xz"), "xz"
    if data.startswith(b"BZh"):
        return _bounded(bz2.BZ2File, data, label, "bzip2"), "bzip2"
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        return _bounded(_zstd(label), data, label, "zstd"), "zstd"
    if data.startswith(b"PK\x03\x04"):
        return _bounded(_only_member(label), data, label, "zip"), "zip"
    return data, None


def _zstd(label: str) -> Callable[[IO[bytes]], Any]:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise TableError(
            f"{label} is packed with zstd, which this Python cannot unpack; unpack it with "
            "`zstd -d` first, or use gzip."
        ) from None
    return lambda file: zstd.ZstdFile(file)


def _only_member(label: str) -> Callable[[IO[bytes]], Any]:
    def opened(file: IO[bytes]) -> IO[bytes]:
        archive = zipfile.ZipFile(file)
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if "[Content_Types].xml" in names:
            raise TableError(f"{label} is an Excel or Word file: save the sheet as CSV.")
        if len(names) != 1:
            raise TableError(
                f"{label} is a zip archive with {len(names)} files ({listed(names)}); unpack it and name one."
            )
        return archive.open(names[0])

    return opened


def _bounded(opener: Callable[[IO[bytes]], Any], data: bytes, label: str, how: str) -> bytes:
    """Unpack, stopping at the limits."""
    parts: list[bytes] = []
    size = 0
    try:
        with opener(io.BytesIO(data)) as file:
            while part := file.read(CHUNK):
                size += len(part)
                if size > MOST_BYTES or (size > BOMB_BYTES and size > BOMB_RATIO * len(data)):
                    raise TableError(
                        f"{label} unpacks from {len(data):,} bytes to more than {size:,}; this looks like "
                        "a decompression bomb. Unpack it yourself if you trust it."
                    )
                parts.append(part)
    except TableError:
        raise
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise TableError(
            f"{label} is a damaged {how} file ({shown(error, 100)}); fetch or pack it again."
        ) from error
    except (RuntimeError, NotImplementedError, ValueError) as error:  # encrypted, unknown method
        raise TableError(
            f"{label} cannot be unpacked ({shown(error, 100)}); unpack it yourself."
        ) from error
    return b"".join(parts)
