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

import contextlib
import hashlib
import importlib
import inspect
import json
import math
import os
import platform
import re
import secrets
import shutil
import sys
from collections.abc import Iterable
from io import BufferedReader
from typing import Any, NoReturn

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from . import __version__
from .certificate import Certificate

__all__ = ["ModelFileError", "load", "save"]

FORMAT = 1
MAX_HEADER = 100_000_000  # bytes; the limit of safetensors
MAX_TENSORS = 1_000_000
MAX_DEPTH = 32  # values within values: estimators, lists, dicts

# The only classes that a file can name, and where they live; imported when first needed.
_CLASSES = {
    "ElasticNet": "surefit.linear_model:ElasticNet",
    "Lasso": "surefit.linear_model:Lasso",
    "LinearRegression": "surefit.linear_model:LinearRegression",
    "LogisticRegression": "surefit.linear_model:LogisticRegression",
    "OneVsOneClassifier": "surefit.multiclass:OneVsOneClassifier",
    "OneVsRestClassifier": "surefit.multiclass:OneVsRestClassifier",
    "Perceptron": "surefit.linear_model:Perceptron",
    "Ridge": "surefit.linear_model:Ridge",
}

# safetensors' name of each dtype, such as "F64": bool, int and uint of 8 to 64 bits, float of 16 to 64
_SIZES = [("I", (1, 2, 4, 8)), ("U", (1, 2, 4, 8)), ("F", (2, 4, 8))]
_DTYPES: dict[str, np.dtype[Any]] = {"BOOL": np.dtype(np.bool_)}
_DTYPES |= {f"{k}{8 * n}": np.dtype(f"<{k.lower()}{n}") for k, sizes in _SIZES for n in sizes}
_CODES = {dtype.str: code for code, dtype in _DTYPES.items()}
_SCALARS: dict[str, Any] = {"str": np.str_} | {d.name: d.type for d in _DTYPES.values()}
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_FITTED_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*(?<!_)_")
_BLANK = "0" * 64  # stands for the checksum while it is computed
_FOREIGN = {b"PK\x03\x04": "a zip archive", b"\x89PNG": "a PNG image", b"\x80": "a pickle"}


# What no check below foresees, such as a list where a name belongs, is still the file's fault.
_MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)


class ModelFileError(ValueError):
    """The file is not a model that this version of surefit can read; the message says why."""


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
    writer = _Writer()
    tree = writer.estimator(model, type(model).__name__, 0)
    _write_atomically(target, _assemble(tree, writer.tensors))


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that :func:`save` wrote. Nothing in the file is executed.

    Parameters
    ----------
    path : str or os.PathLike
        The file; its suffix does not matter.

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
            return _read_model(file)
    except ModelFileError as error:
        raise ModelFileError(f"cannot load {name!r}: {_short(error)}") from None
    except _MALFORMED as error:
        raise ModelFileError(f"cannot load {name!r}: malformed, {_short(repr(error))}") from error


# ------------------------------------------------------------------------ values to JSON


class _Writer:
    """Turns values into JSON nodes, and collects the arrays as tensors."""

    def __init__(self) -> None:
        self.tensors: dict[str, NDArray[Any]] = {}

    def value(self, value: Any, path: str, depth: int) -> Any:
        """The node of any value that may be saved."""
        if depth > MAX_DEPTH:
            raise TypeError(f"cannot save {path}: {MAX_DEPTH} levels deep or cyclic. Flatten it.")
        kind = type(value)
        if kind in (list, tuple):
            items = [self.value(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            keys = [_scalar(key, f"a key of {path}") for key in value]
            values = [self.value(v, f"{path}[{k!r}]", depth + 1) for k, v in value.items()]
            return {"dict": [list(pair) for pair in zip(keys, values)]}
        if kind in (np.ndarray, np.memmap):
            return self.array(value, path)
        if kind in (sp.csr_array, sp.csr_matrix) and value.ndim == 2:
            return self.csr(value, path)
        if kind is Certificate:
            return {"certificate": Certificate.from_dict(value.to_dict()).to_dict()}
        if isinstance(value, BaseEstimator):
            return self.estimator(value, path, depth)
        return _scalar(value, path)

    def estimator(self, model: Any, path: str, depth: int) -> Any:
        """Class name, parameters, and the public attributes that end in ``_``."""
        cls = type(model)
        module, _, name = _CLASSES.get(cls.__name__, "").partition(":")
        if getattr(sys.modules.get(module), name, None) is not cls:
            _refuse(model, path)
        fitted = {k: v for k, v in vars(model).items() if k.endswith("_") and k[0] != "_"}
        for name in [name for name in fitted if not _may_set(cls, name)]:
            if _FITTED_NAME.fullmatch(name):
                del fitted[name]  # a cached property is computed again
            else:
                raise TypeError(f"cannot save {path}.{name}: rename it to letters, digits and _.")
        parts = {"params": model.get_params(deep=False), "fitted": fitted}
        nodes = {
            part: {k: self.value(v, f"{path}.{k}", depth + 1) for k, v in values.items()}
            for part, values in parts.items()
        }
        return {"estimator": {"class": cls.__name__, **nodes}}

    def array(self, value: NDArray[Any], path: str) -> Any:
        """Numbers and fixed-width text as a tensor; objects as a list."""
        if value.dtype.kind == "O":
            items = [_scalar(item, f"an item of {path}") for item in value.ravel().tolist()]
            return {"objects": {"shape": list(value.shape), "items": items}}
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        tensor = np.asarray(value.T if order == "F" else value, order="C")  # F: the transpose
        if value.dtype.kind == "U":  # code points, so that the file pays for its width
            shape = (*tensor.shape, value.dtype.itemsize // 4)
            tensor = tensor.reshape(-1).view(f"{value.dtype.str[0]}u4").reshape(shape)
        if tensor.dtype.newbyteorder("<").str not in _CODES:
            _refuse(value, path)
        name = path if path not in self.tensors else f"{path}#{len(self.tensors)}"
        self.tensors[name] = tensor.astype(tensor.dtype.newbyteorder("<"), copy=False)
        return {"array": {"tensor": name, "dtype": value.dtype.str, "order": order}}

    def csr(self, value: Any, path: str) -> Any:
        """A sparse matrix, or sparse array, in CSR format."""
        data, indices = value.data[: value.nnz], value.indices[: value.nnz]
        parts = {"data": data, "indices": indices, "indptr": value.indptr}
        nodes = {part: self.array(array, f"{path}.{part}") for part, array in parts.items()}
        kind = "array" if isinstance(value, sp.csr_array) else "matrix"
        return {"csr": {"type": kind, "shape": [int(d) for d in value.shape], **nodes}}


def _scalar(value: Any, path: str) -> Any:
    """The node of None, a bool, number or string, of Python or numpy."""
    kind = type(value)
    if value is None or kind in (bool, str) or (kind is int and value.bit_length() <= 1024):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    name = "str" if kind is np.str_ else getattr(value, "dtype", np.dtype(object)).name
    if not isinstance(value, np.generic) or name not in _SCALARS:
        _refuse(value, path)
    return {"numpy": [name, _scalar(value.item(), path)]}


def _refuse(value: Any, path: str) -> NoReturn:
    """Name what cannot be saved, its type, and what to do about it."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    remedy = "Use None, numbers, strings, numpy arrays, or lists, tuples and dicts of these."
    if isinstance(value, np.random.Generator | np.random.RandomState):
        remedy = "Give random_state an integer seed instead of a generator."
    elif isinstance(value, BaseEstimator):
        remedy = f"Only surefit's own can be saved: {', '.join(sorted(_CLASSES))}."
    elif isinstance(value, np.ndarray):
        kind += f" and dtype {value.dtype}"
        remedy = "Convert it to a plain array of bool, int, float (up to 64 bits) or str."
    elif sp.issparse(value):
        remedy = "Convert it to a two-dimensional CSR matrix with .tocsr()."
    elif callable(value):
        remedy = "A file holds no code: set it to None before saving, and again after loading."
    raise TypeError(f"cannot save {path}: a value of type {kind} is not plain data. {remedy}")


# ------------------------------------------------------------------------ JSON to values


class _Reader:
    """Turns JSON nodes back into values; each tensor is used once."""

    def __init__(self, tensors: dict[str, NDArray[Any]]) -> None:
        self.tensors = tensors

    def value(self, node: Any, path: str, depth: int) -> Any:
        """The value of any node."""
        _need(depth <= MAX_DEPTH, f"{path} is more than {MAX_DEPTH} levels deep")
        if isinstance(node, list):
            return [self.value(n, f"{path}[{i}]", depth + 1) for i, n in enumerate(node)]
        if not isinstance(node, dict):
            return node  # None, bool, int, float, str
        _need(len(node) == 1, f"{path} is not a value with one tag")
        [(tag, body)] = node.items()
        match tag, body:
            case "float" | "numpy", _:
                return _read_scalar(node, path)
            case "tuple", list():
                return tuple(self.value(body, path, depth))
            case "dict", list():
                pairs = [(_read_scalar(k, path), self.value(v, path, depth + 1)) for k, v in body]
                _need(len(dict(pairs)) == len(pairs), f"{path} has a key twice")
                return dict(pairs)
            case "array" | "objects" | "csr", _:
                return getattr(self, tag)(body, path)
            case "certificate", _:
                return _certificate(body, path)
            case "estimator", _:
                return self.estimator(body, path, depth)
        raise ModelFileError(f"{path} has an unknown or malformed tag {tag!r}")

    def estimator(self, body: Any, path: str, depth: int) -> Any:
        """An estimator of the table; only its own parameters, no name that its class defines."""
        name, params, fitted = _fields(body, path, "class", "params", "fitted")
        _need(isinstance(name, str) and name in _CLASSES, f"{path}: no class {name!r} in the table")
        _need(isinstance(params, dict) and isinstance(fitted, dict), f"{path} has no attributes")
        cls = _find_class(name)
        for key in set(params) - set(cls._get_param_names()):
            raise ModelFileError(f"{path}: {name} has no parameter {key!r}")
        for key in fitted:
            _need(_may_set(cls, key), f"{path}: {name} has no fitted attribute {key!r}")
        model = cls(**{k: self.value(v, f"{path}.{k}", depth + 1) for k, v in params.items()})
        for key, node in fitted.items():
            vars(model)[key] = self.value(node, f"{path}.{key}", depth + 1)
        sound = isinstance(vars(model).get("certificate_", Certificate(())), Certificate)
        _need(sound, f"{path}.certificate_ is not a certificate")
        return model

    def array(self, body: Any, path: str) -> NDArray[Any]:
        """A tensor in the dtype and order it was saved with, not copied."""
        name, dtype, order = _fields(body, path, "tensor", "dtype", "order")
        _need(name in self.tensors, f"{path} names a tensor {name!r} that is missing or used twice")
        tensor = self.tensors.pop(name)
        shape, own = tensor.shape, tensor.dtype
        if own.str == "<u4" and any(shape[-1:]) and dtype in (f"<U{shape[-1]}", f">U{shape[-1]}"):
            _need(tensor.max(initial=0) <= 0x10FFFF, f"{path} has text that is not Unicode")
            shape = shape[:-1]
        else:
            known = (own.str, own.newbyteorder(">").str)
            _need(dtype in known, f"{path} has dtype {dtype!r}, its tensor {own.str!r}")
        _need(order in ("C", "F"), f"{path} has order {order!r}, neither 'C' nor 'F'")
        if dtype[0] == ">":
            tensor.byteswap(inplace=True)
        array = tensor.view(dtype).reshape(shape)
        return array.T if order == "F" else array

    def objects(self, body: Any, path: str) -> NDArray[Any]:
        """An array of strings, numbers or None as Python objects."""
        shape, items = _fields(body, path, "shape", "items")
        array = np.empty(len(items), dtype=object)
        _need(_count(shape, path) == len(items), f"{path} has a shape that does not fit its items")
        for i, node in enumerate(items):
            array[i] = _read_scalar(node, path)
        return array.reshape(shape)

    def csr(self, body: Any, path: str) -> Any:
        """A CSR matrix. Compiled code will follow these indices, so each one is checked."""
        kind, shape, *nodes = _fields(body, path, "type", "shape", "data", "indices", "indptr")
        data, indices, indptr = (self.array(_fields(n, path, "array")[0], path) for n in nodes)
        sound = (
            kind in ("array", "matrix")
            and _count(shape, path) >= 0
            and (len(indptr) - 1, len(shape)) == (shape[0], 2)
            and data.ndim == indices.ndim == indptr.ndim == 1
            and data.dtype.kind in "biuf"
            and indices.dtype.str == indptr.dtype.str in ("<i4", "<i8")
            and (0, len(data), len(data)) == (indptr[0], indptr[-1], len(indices))
            and bool((indptr[1:] >= indptr[:-1]).all())
            and bool(((indices >= 0) & (indices < shape[1])).all())
        )
        _need(sound, f"{path} is not a sound CSR matrix")
        make = sp.csr_array if kind == "array" else sp.csr_matrix
        return make((data, indices, indptr), shape=tuple(shape))


def _read_scalar(node: Any, path: str, *, numpy: bool = True) -> Any:
    """None, a bool, number or string, of Python or numpy; a numpy type must hold it exactly."""
    match node:
        case None | bool() | int() | float() | str():
            return node
        case {"float": "nan" | "inf" | "-inf" as name, **rest} if not rest:
            return _NONFINITE[name]
        case {"numpy": [str(name), inner], **rest} if name in _SCALARS and numpy and not rest:
            plain = _read_scalar(inner, path, numpy=False)
            with np.errstate(all="ignore"):
                value = _SCALARS[name](plain)
            if type(value.item()) is type(plain) and (value.item() == plain or plain != plain):
                return value
    raise ModelFileError(f"{path} has a part that is neither None nor a bool, number or string")


def _certificate(body: Any, path: str) -> Certificate:
    """A certificate that writes itself exactly as the file has it."""
    # NaN as math.nan: a loaded certificate then equals the one that was saved
    claims = [{k: math.nan if v == "nan" else v for k, v in c.items()} for c in body["claims"]]
    certificate = Certificate.from_dict({**body, "claims": claims})
    _need(certificate.to_dict() == body, f"{path} is not a certificate as surefit writes it")
    return certificate


# ------------------------------------------------------------------------ writing the file


def _assemble(tree: Any, tensors: dict[str, NDArray[Any]]) -> list[Any]:
    """The whole file as buffers: the header with its checksum, then the tensors, not copied."""
    versions = {"surefit": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    versions |= {"scikit-learn": sklearn.__version__, "python": platform.python_version()}
    document = {"checksum": _BLANK, "format": FORMAT, "versions": versions, "tree": tree}
    header: dict[str, Any] = {"__metadata__": {"surefit": json.dumps(document, allow_nan=False)}}
    end = 0
    for name, array in tensors.items():
        header[name] = {"dtype": _CODES[array.dtype.str], "shape": list(array.shape)}
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


def _write_atomically(target: str, buffers: list[Any]) -> None:
    """Write beside the target, sync, rename: readers see the old file or the new one."""
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".surefit-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            for buffer in buffers:
                file.write(buffer)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):  # make the rename last; not every system can
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ------------------------------------------------------------------------ reading the file


def _read_model(file: BufferedReader) -> Any:
    """Header, checks, tensors, checksum, and only then the tree."""
    size = os.fstat(file.fileno()).st_size
    text = _read_header(file, size)
    header = _json(text.decode("utf-8"), "the header")
    metadata = header.pop("__metadata__", None)
    ours = isinstance(metadata, dict) and isinstance(metadata.get("surefit"), str)
    _need(ours, "its header has no surefit document; was it written by surefit.save?")
    document = _json(metadata["surefit"], "the surefit document")
    version = document.get("format")
    _need(type(version) is int and version >= 1, f"its format {version!r} is not a number")
    _need(version <= FORMAT, f"it has format {version}, newer than {FORMAT}: upgrade surefit")
    _fields(metadata, "the metadata", "surefit")
    checksum, *_, tree = _fields(document, "it", "checksum", "format", "versions", "tree")
    table = _check_table(header, size - 8 - len(text))
    tensors = {}
    for name, dtype, shape in table:
        tensors[name] = np.empty(shape, dtype)
        complete = file.readinto(_bytes_of(tensors[name])) == tensors[name].nbytes
        _need(complete, f"it ended within tensor {name!r}: is it being written?")
    blank = text.replace(str(checksum).encode(), _BLANK.encode(), 1)
    same = _digest(blank, map(_bytes_of, tensors.values())) == checksum
    _need(same, "its checksum does not match: the file is damaged; copy or save it again")
    for name, tensor in tensors.items():
        sound = tensor.dtype.kind != "b" or tensor.view(np.uint8).max(initial=0) <= 1
        _need(sound, f"tensor {name!r} has bool values other than 0 and 1")
    _need(isinstance(tree, dict) and "estimator" in tree, "its tree holds no estimator")
    reader = _Reader(tensors)
    model = reader.value(tree, "model", 0)
    _need(not reader.tensors, f"it has tensors of no attribute: {list(reader.tensors)[:5]}")
    return model


def _read_header(file: BufferedReader, size: int) -> bytes:
    """The header's bytes, once its length is known to be plausible."""
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) == 8 and length <= min(size - 8, MAX_HEADER):
        text = file.read(length)
        if len(text) == length and text.startswith(b"{"):
            return text
    _need(size > 0, "it is empty")
    for magic, what in _FOREIGN.items():
        _need(not start.startswith(magic), f"it looks like {what}, not a surefit file")
    raise ModelFileError(
        f"it is truncated or not a surefit file: it has {size} bytes, and its start announces a "
        f"header of {length} bytes, of at most {MAX_HEADER}"
    )


def _check_table(header: dict[str, Any], size: int) -> list[tuple[str, np.dtype[Any], list[int]]]:
    """The tensors in file order, after checking that they fill ``size`` bytes exactly."""
    _need(len(header) <= MAX_TENSORS, f"it has {len(header)} tensors, more than {MAX_TENSORS}")
    table = []
    for name, entry in header.items():
        what = f"tensor {name!r}"
        code, shape, offsets = _fields(entry, what, "dtype", "shape", "data_offsets")
        _need(code in _DTYPES, f"{what} has dtype {code!r}, which is none of {list(_DTYPES)}")
        whole = isinstance(offsets, list) and [type(i) for i in offsets] == [int, int]
        inside = whole and 0 <= offsets[0] <= offsets[1] <= size
        _need(inside, f"{what} lies at {offsets}, beyond the file's {size} bytes: truncated?")
        begin, end = offsets
        needed = _count(shape, what) * _DTYPES[code].itemsize
        _need(needed == end - begin, f"{what} needs {needed} bytes and has {end - begin}")
        table.append((begin, end, name, _DTYPES[code], shape))
    table.sort(key=lambda entry: entry[:2])
    position = 0
    for begin, end, name, *_ in table:
        _need(begin == position, f"tensor {name!r} overlaps another, or leaves a gap")
        position = end
    _need(position == size, f"it has {size - position} bytes that belong to no tensor")
    return [(name, dtype, shape) for _, _, name, dtype, shape in table]


# ------------------------------------------------------------------------ small parts


def _need(sound: bool | np.bool_, message: str) -> None:
    """Refuse the file unless ``sound``."""
    if not sound:
        raise ModelFileError(message)


def _json(text: str, what: str) -> Any:
    """A JSON object, strictly: no key twice, no NaN, bounded depth."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _need(len(dict(pairs)) == len(pairs), f"{what} has a key twice")
        return dict(pairs)

    def constant(name: str) -> NoReturn:
        raise ModelFileError(f"{what} has the number {name}, which is not JSON")

    try:
        node = json.loads(text, object_pairs_hook=unique, parse_constant=constant)
    except RecursionError:
        raise ModelFileError(f"{what} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ModelFileError(f"{what} is not valid JSON: {error}") from None
    _need(isinstance(node, dict), f"{what} is not a JSON object")
    return node


def _fields(node: Any, path: str, *names: str) -> list[Any]:
    """The values of a JSON object that has exactly these keys."""
    exact = isinstance(node, dict) and set(node) == set(names)
    _need(exact, f"{path} must have exactly {', '.join(names)}")
    return [node[name] for name in names]


def _count(shape: Any, path: str) -> int:
    """The number of items of a shape that numpy can hold."""
    whole = isinstance(shape, list) and all(type(d) is int and d >= 0 for d in shape)
    _need(whole and len(shape) <= 64, f"{path} has a shape that is not one")
    # Times 8 bytes, within a signed 64-bit integer, even where another dimension is zero.
    _need(math.prod(max(d, 1) for d in shape) < 2**59, f"{path} has a shape that is too large")
    return math.prod(shape)


def _digest(header: bytes, buffers: Iterable[Any]) -> str:
    """Checksum of the header, with zeros in the checksum's place, and of the tensors."""
    digest = hashlib.blake2b(header, digest_size=32)
    for buffer in buffers:
        digest.update(buffer)
    return digest.hexdigest()


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """The memory of a C-contiguous array."""
    return array.reshape(-1).view(np.uint8).data


def _find_class(name: str) -> Any:
    """The class behind a name of the table."""
    module, _, attribute = _CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _may_set(cls: type, name: str) -> bool:
    """Whether a name can be a fitted attribute: public, and no method or property of the class."""
    found = inspect.getattr_static(cls, name, None)
    taken = callable(found) or hasattr(type(found), "__get__")
    return bool(_FITTED_NAME.fullmatch(name)) and not taken


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
