"""Fetching the classic sets: from their publishers or a folder, checked, kept, and made tidy.

Nothing is used whose SHA-256 is not the published one, wherever it comes from. A file is written beside its
place and renamed, so that an interrupted download leaves nothing behind. A folder can stand in for the
network: ``source=``, or the environment variable ``SUREFIT_DATA_SOURCE``; its files may be packed with gzip.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from dataclasses import replace
from pathlib import Path

from .._files import write_atomically
from ._bytes import unpack
from ._classics import CLASSICS, Classic, File
from ._words import TableError, near, shown
from .table import Table

__all__ = ["cache_folder", "fetch", "fetchable"]

TIMEOUT = 30.0  # seconds without an answer
MOST_BYTES = 64 * 2**20  # of a download


def fetchable() -> list[str]:
    """Names of the sets that :func:`fetch` knows.

    Examples
    --------
    >>> from surefit.data import fetchable
    >>> fetchable()
    ['adult', 'german', 'compas', 'california-housing']
    """
    return list(CLASSICS)


def cache_folder() -> Path:
    """Where fetched files are kept: ``SUREFIT_DATA_HOME``, or the system's folder for caches."""
    if named := os.environ.get("SUREFIT_DATA_HOME"):
        return Path(named)
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "surefit"
    if os.name == "nt":
        return (
            Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "surefit" / "Cache"
        )
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "surefit"


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    source: str | os.PathLike[str] | None = None,
) -> Table:
    """A classic data set as a tidy table; downloaded once, checked each time.

    Parameters
    ----------
    name : str
        One of :func:`fetchable`.
    folder : path, optional
        Where files are kept; :func:`cache_folder` without one.
    source : path or address, optional
        A folder (or its ``file://`` or ``https://`` address) that stands in for the publisher; the
        environment variable ``SUREFIT_DATA_SOURCE`` without one.

    Returns
    -------
    Table
        ``table.parsing.notes`` says what was done to the published files.

    Raises
    ------
    TableError
        Where there is no network, or a file is not the published one.
    """
    classic = _find(name)
    place = Path(folder) if folder is not None else cache_folder()
    source = source if source is not None else os.environ.get("SUREFIT_DATA_SOURCE") or None
    parts = {file.name: _obtain(file, name, place / name, source) for file in classic.files}
    return replace(classic.tidy(parts), name=name)


def _find(name: str) -> Classic:
    if name not in CLASSICS:
        hint = near(str(name), fetchable()).replace("The columns are", "The sets are")
        raise TableError(f"there is no data set '{shown(name)}' to fetch. {hint}")
    return CLASSICS[name]


def _sound(data: bytes, file: File) -> bool:
    return hashlib.sha256(data).hexdigest() in file.digests


def _obtain(file: File, name: str, folder: Path, source: str | os.PathLike[str] | None) -> bytes:
    """The bytes of a file: kept from last time if still sound, else obtained, checked and kept."""
    target = folder / file.name
    try:
        kept = target.read_bytes()
    except OSError:
        kept = b""
    if kept and _sound(kept, file):
        return kept
    data, origin = _from_source(file, name, source) if source else _from_publisher(file, name)
    if not _sound(data, file):
        raise TableError(
            f"{shown(origin, 150)} is not the published {file.name}: its SHA-256 is "
            f"{hashlib.sha256(data).hexdigest()[:16]}..., not {file.digests[0][:16]}.... It was not kept; "
            "try again, or fetch it from another place."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(str(target), [data])
    except OSError as error:
        reason = shown(error.strerror or error, 100)
        raise TableError(
            f"{shown(folder, 150)} cannot be written ({reason}); name another folder, or set "
            "SUREFIT_DATA_HOME."
        ) from error
    return data


def _from_source(file: File, name: str, source: str | os.PathLike[str]) -> tuple[bytes, str]:
    """From a folder, or an address that stands in for one."""
    text = os.fspath(source)
    parts = urllib.parse.urlsplit(text)
    if parts.scheme in ("http", "https"):
        address = f"{text.rstrip('/')}/{file.name}"
        return _download(address), address
    folder = Path(urllib.request.url2pathname(parts.path)) if parts.scheme == "file" else Path(text)
    if not folder.is_dir():
        raise TableError(
            f"source: there is no folder {shown(folder, 150)}; name one that holds {file.name}."
        )
    below = ("", name, name.replace("-", "_"))
    for inner in (*below, *(f"tabular/{part}" for part in below[1:])):
        for ending in ("", ".gz"):
            path = folder / inner / (file.name + ending)
            if path.is_file():
                return unpack(path.read_bytes(), str(path))[0], str(path)
    raise TableError(
        f"source: {shown(folder, 150)} has no {file.name}, nor {name}/{file.name}, plain or as .gz; "
        "put it there."
    )


def _from_publisher(file: File, name: str) -> tuple[bytes, str]:
    """From the first address that answers."""
    problem = ""
    for url in file.urls:
        address, _, member = url.partition("#")
        try:
            data = _download(address)
            return (_member(data, member) if member else data), address
        except TableError as error:
            problem = problem or str(error)
    raise TableError(
        f"{file.name} of '{name}' could not be fetched: {problem} Without a network, put the file into a "
        "folder and give it as source."
    )


def _download(address: str) -> bytes:
    """The bytes at an address, within limits."""
    label = shown(address, 150)
    request = urllib.request.Request(address, headers={"User-Agent": "surefit"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            data: bytes = answer.read(MOST_BYTES + 1)
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = shown(getattr(error, "reason", None) or error, 100)
        raise TableError(f"{label} does not answer ({reason}).") from error
    if len(data) > MOST_BYTES:
        raise TableError(
            f"{label} is larger than {MOST_BYTES >> 20} MiB, so it is not the published file."
        )
    return data


def _member(data: bytes, member: str) -> bytes:
    """One file of a zip or tar archive, read in memory."""
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                return archive.read(member)
        with tarfile.open(fileobj=io.BytesIO(data)) as bundle:
            inner = bundle.extractfile(member)
            return inner.read(MOST_BYTES) if inner is not None else b""
    except (KeyError, OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise TableError(f"the archive has no {member} ({shown(error, 100)}).") from error
