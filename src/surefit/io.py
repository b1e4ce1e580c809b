"""Saving and loading models: one data-only ``.surefit`` file, no pickle, no code.

A file is a valid `safetensors <https://github.com/huggingface/safetensors>`_ file: the length of
the header (8 bytes, little-endian), a JSON header that says where each tensor lies, the tensors. The
header's ``__metadata__`` has one key, ``"surefit"``: a JSON document with the format version, a
checksum, the versions of the libraries, and a *tree* of class names, parameters and fitted
attributes, in which an array is the name of a tensor. ``docs/model-files.md`` shows it on one page.

The container is read and written here rather than by the ``safetensors`` package (which opens our
files, and does so in our tests): the package holds the whole file in memory to write it, reads only
what it is asked for, which leaves no place to check the bytes against a checksum, and says nothing of
a duplicate key. What is left of its job is an 8-byte integer, ``json`` and ``readinto``.

Nothing in a file is trusted. Class names are looked up in a fixed table of surefit's own classes;
attribute names cannot reach a method, a property or a private name; every size is compared with the
size of the file before memory is allocated. The checksum guards against accidents, not forgery:
whoever alters a model can recompute it. What they cannot do is make :func:`surefit.verify` agree.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable
from io import BufferedReader
from typing import Any, NoReturn

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from . import __version__
from ._files import write_atomically
from ._tree import CODES, DTYPES, ModelFileError, Reader, Writer, count, fields, need

__all__ = ["ModelFileError", "load", "save"]

FORMAT = 1
MAX_HEADER = 100_000_000  # bytes; the limit of safetensors
MAX_TENSORS = 1_000_000

_BLANK = "0" * 64  # stands for the checksum while it is computed
_FOREIGN = {b"PK\x03\x04": "a zip archive", b"\x89PNG": "a PNG image", b"\x80": "a pickle"}


# What no check below foresees, such as a list where a name belongs, is still the file's fault.
_MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write an estimator to one ``.surefit`` file, atomically.

    The parameters and the fitted attributes (public names ending in ``_``) are kept, with the
    certificate. On failure, whatever was at ``path`` before is still there.

    Parameters
    ----------
    model : estimator
        A surefit estimator, fitted or not.
    path : str or os.PathLike
        Where to write; an existing file is replaced. The customary suffix is ``.surefit``.

    Raises
    ------
    TypeError
        If a parameter or attribute is not plain data (a function, a random generator, an object
        of another library). The message names it and what to do.

    Examples
    --------
    >>> import os, tempfile, surefit
    >>> from surefit.linear_model import Ridge
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     surefit.save(Ridge(alpha=0.5), os.path.join(folder, "ridge.surefit"))
    ...     os.listdir(folder)
    ['ridge.surefit']
    """
    target = os.path.realpath(_file_name(path))  # a link is followed, not replaced
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(f"path: the directory of {target!r} is not there; create it first.")
    writer = Writer()
    tree = writer.estimator(model, type(model).__name__, 0)
    write_atomically(target, _assemble(tree, writer.tensors))


def load(path: str | os.PathLike[str], **given: Any) -> Any:
    """Read an estimator that :func:`save` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or os.PathLike
        The file; its suffix does not matter.
    **given
        Parameters that were code, which a file does not hold: the ``module`` of a
        :class:`surefit.nn.NeuralClassifier`, its ``loss``, ``optimizer``, ``schedule`` or ``augment``, the
        ``architecture`` of a :class:`surefit.nn.CNNClassifier`. Others are refused.

    Returns
    -------
    estimator
        With the parameters, fitted attributes and certificate it was saved with. The certificate
        is what the file says: :func:`surefit.verify` recomputes it from the data.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, or written by a newer surefit.

    Examples
    --------
    >>> import os, tempfile, surefit
    >>> from surefit.linear_model import Ridge
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.1, 1.9]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "ridge.surefit")
    ...     surefit.save(Ridge(alpha=0.5).fit(X, y), path)
    ...     model = surefit.load(path)
    >>> model
    Ridge(alpha=0.5)
    >>> surefit.verify(model, X, y).ok
    True
    """
    name = _file_name(path)
    try:
        with open(name, "rb") as file:
            return _read_model(file, given)
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {name!r}: {_short(error)}") from None
    except _MALFORMED as error:
        raise ModelFileError(f"cannot load {name!r}: malformed, {_short(repr(error))}") from error


# ------------------------------------------------------------------------ writing the file


def _assemble(tree: Any, tensors: dict[str, NDArray[Any]]) -> list[Any]:
    """The whole file as buffers: the header with its checksum, then the tensors, not copied."""
    versions = {"surefit": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    versions |= {"scikit-learn": sklearn.__version__, "python": platform.python_version()}
    document = {"checksum": _BLANK, "format": FORMAT, "versions": versions, "tree": tree}
    header: dict[str, Any] = {"__metadata__": {"surefit": json.dumps(document, allow_nan=False)}}
    end = 0
    for name, array in tensors.items():
        header[name] = {"dtype": CODES[array.dtype.str], "shape": list(array.shape)}
        header[name]["data_offsets"] = [end, end := end + array.nbytes]
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER or len(tensors) > MAX_TENSORS:
        raise ValueError(
            f"model has {len(text)} bytes of parameters and text, of at most {MAX_HEADER}, and "
            f"{len(tensors)} arrays, of at most {MAX_TENSORS}. Keep long lists in numpy arrays."
        )
    buffers = [_bytes_of(array) for array in tensors.values()]
    text = text.replace(_BLANK.encode(), _digest(text, buffers).encode(), 1)
    return [len(text).to_bytes(8, "little"), text, *buffers]


# ------------------------------------------------------------------------ reading the file


def _read_model(file: BufferedReader, given: dict[str, Any]) -> Any:
    """Header, checks, tensors, checksum, and only then the tree."""
    size = os.fstat(file.fileno()).st_size
    text = _read_header(file, size)
    header = _json(text.decode("utf-8"), "the header")
    metadata = header.pop("__metadata__", None)
    ours = isinstance(metadata, dict) and isinstance(metadata.get("surefit"), str)
    need(ours, "its header has no surefit document; was it written by surefit.save?")
    document = _json(metadata["surefit"], "the surefit document")
    version = document.get("format")
    need(type(version) is int and version >= 1, f"its format {version!r} is not a number")
    need(version <= FORMAT, f"it has format {version}, newer than {FORMAT}: upgrade surefit")
    fields(metadata, "the metadata", "surefit")
    checksum, *_, tree = fields(document, "it", "checksum", "format", "versions", "tree")
    table = _check_table(header, size - 8 - len(text))
    tensors = {}
    for name, dtype, shape in table:
        tensors[name] = np.empty(shape, dtype)
        complete = file.readinto(_bytes_of(tensors[name])) == tensors[name].nbytes
        need(complete, f"it ended within tensor {name!r}: is it being written?")
    blank = text.replace(str(checksum).encode(), _BLANK.encode(), 1)
    same = _digest(blank, map(_bytes_of, tensors.values())) == checksum
    need(same, "its checksum does not match: the file is damaged; copy or save it again")
    for name, tensor in tensors.items():
        sound = tensor.dtype.kind != "b" or tensor.view(np.uint8).max(initial=0) <= 1
        need(sound, f"tensor {name!r} has bool values other than 0 and 1")
    need(isinstance(tree, dict) and "estimator" in tree, "its tree holds no estimator")
    reader = Reader(tensors, given)
    model = reader.value(tree, "model", 0)
    need(not reader.tensors, f"it has tensors of no attribute: {list(reader.tensors)[:5]}")
    unused = sorted(set(given) - reader.used)
    need(not unused, f"it holds no code that {', '.join(unused)} could stand for: leave it out")
    return model


def _read_header(file: BufferedReader, size: int) -> bytes:
    """The header's bytes, once its length is known to be plausible."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) == 8 and length <= min(size - 8, MAX_HEADER):
        text = file.read(length)
        if len(text) == length and text.startswith(b"{"):
            return text
    need(size > 0, "it is empty")
    for magic, what in _FOREIGN.items():
        need(not start.startswith(magic), f"it looks like {what}, not a surefit file")
    raise ModelFileError(
        f"it is truncated or not a surefit file: it has {size} bytes, and its start announces a "
        f"header of {length} bytes, of at most {MAX_HEADER}"
    )


def _check_table(header: dict[str, Any], size: int) -> list[tuple[str, np.dtype[Any], list[int]]]:
    """The tensors in file order, after checking that they fill ``size`` bytes exactly."""
    need(len(header) <= MAX_TENSORS, f"it has {len(header)} tensors, more than {MAX_TENSORS}")
    table = []
    for name, entry in header.items():
        what = f"tensor {name!r}"
        code, shape, offsets = fields(entry, what, "dtype", "shape", "data_offsets")
        need(code in DTYPES, f"{what} has dtype {code!r}, which is none of {list(DTYPES)}")
        whole = isinstance(offsets, list) and [type(i) for i in offsets] == [int, int]
        inside = whole and 0 <= offsets[0] <= offsets[1] <= size
        need(inside, f"{what} lies at {offsets}, beyond the file's {size} bytes: truncated?")
        begin, end = offsets
        needed = count(shape, what) * DTYPES[code].itemsize
        need(needed == end - begin, f"{what} needs {needed} bytes and has {end - begin}")
        table.append((begin, end, name, DTYPES[code], shape))
    table.sort(key=lambda entry: entry[:2])
    position = 0
    for begin, end, name, *_ in table:
        need(begin == position, f"tensor {name!r} overlaps another, or leaves a gap")
        position = end
    need(position == size, f"it has {size - position} bytes that belong to no tensor")
    return [(name, dtype, shape) for _, _, name, dtype, shape in table]


# ------------------------------------------------------------------------ small parts


def _json(text: str, what: str) -> Any:
    """A JSON object, strictly: no key twice, no NaN, bounded depth."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), f"{what} has a key twice")
        return dict(pairs)

    def constant(name: str) -> NoReturn:
        raise ModelFileError(f"{what} has the number {name}, which is not JSON")

    try:
        node = json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except RecursionError:
        raise ModelFileError(f"{what} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ModelFileError(f"{what} is not valid JSON: {error}") from None
    need(isinstance(node, dict), f"{what} is not a JSON object")
    return node


def _digest(header: bytes, buffers: Iterable[Any]) -> str:
    """Checksum of the header, with zeros in the checksum's place, and of the tensors."""
    digest = hashlib.blake2b(header, digest_size=32)
    for buffer in buffers:
        digest.update(buffer)
    return digest.hexdigest()


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """The memory of a C-contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def _file_name(path: str | os.PathLike[str]) -> str:
    """The path as text, if it leads to a file or to nothing yet."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"path must be a str or os.PathLike, got {type(path).__name__}.")
    if os.path.isdir(name):
        example = os.path.join(name, "model.surefit")
        raise ModelFileError(f"path {name!r} is a directory; name a file, such as {example!r}.")
    if os.path.exists(name) and not os.path.isfile(name):  # reading a pipe could block for ever
        raise ModelFileError(f"path {name!r} is not a regular file; name another.")
    return name


def _short(message: object) -> str:
    """A message that quotes a hostile file must not be as long as the file."""
    text = str(message)
    return text if len(text) <= 500 else f"{text[:500]}..."
