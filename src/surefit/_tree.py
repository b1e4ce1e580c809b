"""The tree inside a model file: estimators, parameters and attributes as JSON nodes and tensors.

:class:`Writer` turns values into nodes and collects the arrays; :class:`Reader` turns nodes back
into values. Both know a closed list of types: None, bool, int, float, str, numpy scalars and
arrays, CSR matrices, lists, tuples, dicts, certificates, and surefit's own estimators by name from
a fixed table. See :mod:`surefit.io` for the file around it.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
import sys
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from ._checkpoint import CheckpointError
from ._namespace import is_torch, to_numpy
from .certificate import Certificate

__all__ = ["ModelFileError", "Reader", "Writer"]

MAX_DEPTH = 32  # values within values: estimators, lists, dicts

# The only classes that a file can name, and where they live; imported when first needed.
CLASSES = {
    "BernoulliMixture": "surefit.mixture:BernoulliMixture",
    "CNNClassifier": "surefit.nn.cnn_classifier:CNNClassifier",
    "ConstantPredictor": "surefit._binary_parts:ConstantPredictor",
    "Cooccurrence": "surefit.text.cooccurrence:Cooccurrence",
    "Decorrelate": "surefit.fair:Decorrelate",
    "ElasticNet": "surefit.linear_model:ElasticNet",
    "ElasticNetCV": "surefit.linear_model:ElasticNetCV",
    "FairLogistic": "surefit.fair:FairLogistic",
    "FastTextClassifier": "surefit.text.fasttext:FastTextClassifier",
    "Gaussian": "surefit.kernels:Gaussian",
    "GaussianMixture": "surefit.mixture:GaussianMixture",
    "GloVe": "surefit.text.glove:GloVe",
    "GroupThresholds": "surefit.fair:GroupThresholds",
    "GridSearchCV": "surefit.model_selection:GridSearchCV",
    "HoldOut": "surefit.model_selection:HoldOut",
    "HuberRegressor": "surefit.linear_model:HuberRegressor",
    "KMeans": "surefit.cluster:KMeans",
    "KNeighborsClassifier": "surefit.neighbors:KNeighborsClassifier",
    "KNeighborsRegressor": "surefit.neighbors:KNeighborsRegressor",
    "KernelRidge": "surefit.kernel_ridge:KernelRidge",
    "Laplace": "surefit.kernels:Laplace",
    "Lasso": "surefit.linear_model:Lasso",
    "LassoCV": "surefit.linear_model:LassoCV",
    "Linear": "surefit.kernels:Linear",
    "LinearRegression": "surefit.linear_model:LinearRegression",
    "LinearSVC": "surefit.svm:LinearSVC",
    "LinearSVR": "surefit.svm:LinearSVR",
    "LogisticRegression": "surefit.linear_model:LogisticRegression",
    "LogisticRegressionCV": "surefit.linear_model:LogisticRegressionCV",
    "MLPClassifier": "surefit.nn.mlp:MLPClassifier",
    "MLPRegressor": "surefit.nn.mlp:MLPRegressor",
    "MiniBatchKMeans": "surefit.cluster:MiniBatchKMeans",
    "MatrixFactorization": "surefit.decomposition:MatrixFactorization",
    "MultiTaskElasticNet": "surefit.linear_model:MultiTaskElasticNet",
    "MultiTaskElasticNetCV": "surefit.linear_model:MultiTaskElasticNetCV",
    "MultiTaskLasso": "surefit.linear_model:MultiTaskLasso",
    "MultiTaskLassoCV": "surefit.linear_model:MultiTaskLassoCV",
    "NearestNeighbors": "surefit.neighbors:NearestNeighbors",
    "NeuralClassifier": "surefit.nn.estimators:NeuralClassifier",
    "NeuralRegressor": "surefit.nn.estimators:NeuralRegressor",
    "OneVsOneClassifier": "surefit.multiclass:OneVsOneClassifier",
    "OneVsRestClassifier": "surefit.multiclass:OneVsRestClassifier",
    "Pairwise": "surefit.kernels:Pairwise",
    "Perceptron": "surefit.linear_model:Perceptron",
    "Polynomial": "surefit.kernels:Polynomial",
    "Precomputed": "surefit.kernels:Precomputed",
    "Product": "surefit.kernels:Product",
    "QuantileRegressor": "surefit.linear_model:QuantileRegressor",
    "RandomizedSearchCV": "surefit.model_selection:RandomizedSearchCV",
    "SkipGram": "surefit.text:SkipGram",
    "Ridge": "surefit.linear_model:Ridge",
    "RidgeCV": "surefit.linear_model:RidgeCV",
    "RidgeClassifier": "surefit.linear_model:RidgeClassifier",
    "RidgeClassifierCV": "surefit.linear_model:RidgeClassifierCV",
    "SGDClassifier": "surefit.linear_model:SGDClassifier",
    "SGDRegressor": "surefit.linear_model:SGDRegressor",
    "SVC": "surefit.svm:SVC",
    "SVR": "surefit.svm:SVR",
    "Scaled": "surefit.kernels:Scaled",
    "Sent2Vec": "surefit.text.sent2vec:Sent2Vec",
    "SentenceVectors": "surefit.text.sentences:SentenceVectors",
    "Sigmoid": "surefit.kernels:Sigmoid",
    "Sum": "surefit.kernels:Sum",
    "TableEncoder": "surefit.preprocessing:TableEncoder",
    "TableModel": "surefit.table:TableModel",
    "TukeyRegressor": "surefit.linear_model:TukeyRegressor",
}

# safetensors' name of each dtype, such as "F64": bool, int and uint of 8 to 64 bits, float of 16 to 64
_SIZES = [("I", (1, 2, 4, 8)), ("U", (1, 2, 4, 8)), ("F", (2, 4, 8))]
DTYPES: dict[str, np.dtype[Any]] = {"BOOL": np.dtype(np.bool_)}
DTYPES |= {f"{k}{8 * n}": np.dtype(f"<{k.lower()}{n}") for k, sizes in _SIZES for n in sizes}
CODES = {dtype.str: code for code, dtype in DTYPES.items()}
_SCALARS: dict[str, Any] = {"str": np.str_} | {d.name: d.type for d in DTYPES.values()}
_NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_FITTED_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*(?<!_)_")


class ModelFileError(ValueError):
    """The file is not a model that this version of surefit can read; the message says why."""


# ------------------------------------------------------------------------ values to JSON


class Writer:
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
        if kind is np.ma.MaskedArray:
            data, mask = value.data, np.ma.getmaskarray(value)
            parts: dict[str, NDArray[Any]] = {"data": data, "mask": mask}
            nodes = {part: self.array(array, f"{path}.{part}") for part, array in parts.items()}
            return {"masked": nodes}
        if is_torch(value):  # a file knows no devices: it is loaded as an array
            return self.array(to_numpy(value), path)
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
        module, _, name = CLASSES.get(cls.__name__, "").partition(":")
        if getattr(sys.modules.get(module), name, None) is not cls:
            _refuse(model, path)
        fitted = {k: v for k, v in vars(model).items() if k.endswith("_") and k[0] != "_"}
        for name in [name for name in fitted if not _may_set(cls, name)]:
            if _FITTED_NAME.fullmatch(name):
                del fitted[name]  # a cached property is computed again
            else:
                raise TypeError(f"cannot save {path}.{name}: rename it to letters, digits and _.")
        if hasattr(model, "_file_attributes"):  # weights of a network
            fitted |= model._file_attributes()
        params = model.get_params(deep=False)
        nodes = {
            "params": {
                k: self.parameter(model, k, v, f"{path}.{k}", depth + 1) for k, v in params.items()
            },
            "fitted": {k: self.value(v, f"{path}.{k}", depth + 1) for k, v in fitted.items()},
        }
        return {"estimator": {"class": cls.__name__, **nodes}}

    def parameter(self, model: Any, name: str, value: Any, path: str, depth: int) -> Any:
        """The node of a parameter; code that the model allows to be given again leaves its name only."""
        if name in getattr(model, "_given_again", ()) and callable(value):
            return {"given": name}
        return self.value(value, path, depth)

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
        if tensor.dtype.newbyteorder("<").str not in CODES:
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
        remedy = f"Only surefit's own can be saved: {', '.join(sorted(CLASSES))}."
    elif isinstance(value, np.ndarray):
        kind += f" and dtype {value.dtype}"
        remedy = "Convert it to a plain array of bool, int, float (up to 64 bits) or str."
    elif sp.issparse(value):
        remedy = "Convert it to a two-dimensional CSR matrix with .tocsr()."
    elif callable(value):
        remedy = "A file holds no code: set it to None before saving, and again after loading."
    raise TypeError(f"cannot save {path}: a value of type {kind} is not plain data. {remedy}")


# ------------------------------------------------------------------------ JSON to values


class Reader:
    """Turns JSON nodes back into values; each tensor is used once."""

    def __init__(
        self, tensors: dict[str, NDArray[Any]], given: dict[str, Any] | None = None
    ) -> None:
        self.tensors, self.given = tensors, given or {}
        self.used: set[str] = set()  # names of what was given

    def value(self, node: Any, path: str, depth: int) -> Any:
        """The value of any node."""
        need(depth <= MAX_DEPTH, f"{path} is more than {MAX_DEPTH} levels deep")
        if isinstance(node, list):
            return [self.value(n, f"{path}[{i}]", depth + 1) for i, n in enumerate(node)]
        if not isinstance(node, dict):
            return node  # None, bool, int, float, str
        need(len(node) == 1, f"{path} is not a value with one tag")
        [(tag, body)] = node.items()
        match tag, body:
            case "float" | "numpy", _:
                return _read_scalar(node, path)
            case "tuple", list():
                return tuple(self.value(body, path, depth))
            case "dict", list():
                pairs = [(_read_scalar(k, path), self.value(v, path, depth + 1)) for k, v in body]
                need(len(dict(pairs)) == len(pairs), f"{path} has a key twice")
                return dict(pairs)
            case "array" | "objects" | "csr" | "masked", _:
                return getattr(self, tag)(body, path)
            case "certificate", _:
                return _certificate(body, path)
            case "estimator", _:
                return self.estimator(body, path, depth)
        raise ModelFileError(f"{path} has an unknown or malformed tag {tag!r}")

    def estimator(self, body: Any, path: str, depth: int) -> Any:
        """An estimator of the table; only its own parameters, no name that its class defines."""
        name, params, fitted = fields(body, path, "class", "params", "fitted")
        need(isinstance(name, str) and name in CLASSES, f"{path}: no class {name!r} in the table")
        need(isinstance(params, dict) and isinstance(fitted, dict), f"{path} has no attributes")
        cls = _find_class(name)
        for key in set(params) - set(cls._get_param_names()):
            raise ModelFileError(f"{path}: {name} has no parameter {key!r}")
        for key in fitted:
            need(_may_set(cls, key), f"{path}: {name} has no fitted attribute {key!r}")
        model = cls(**{k: self.parameter(cls, k, v, path, depth + 1) for k, v in params.items()})
        for key, node in fitted.items():
            vars(model)[key] = self.value(node, f"{path}.{key}", depth + 1)
        sound = isinstance(vars(model).get("certificate_", Certificate(())), Certificate)
        need(sound, f"{path}.certificate_ is not a certificate")
        if hasattr(model, "_loaded"):  # a network from its weights
            try:
                model._loaded()
            except CheckpointError as error:
                raise ModelFileError(f"{path}: {error}") from None
        return model

    def parameter(self, cls: Any, name: str, node: Any, path: str, depth: int) -> Any:
        """The value of a parameter; code is not in the file and must have been given."""
        if not (isinstance(node, dict) and set(node) == {"given"}):
            return self.value(node, f"{path}.{name}", depth)
        known = node["given"] == name and name in getattr(cls, "_given_again", ())
        need(known, f"{path}.{name} is not a parameter that can be given")
        need(
            name in self.given,
            f"{path}.{name} was code, which a file does not hold: pass it again as "
            f"surefit.load(path, {name}=...)",
        )
        self.used.add(name)
        return self.given[name]

    def array(self, body: Any, path: str) -> NDArray[Any]:
        """A tensor in the dtype and order it was saved with, not copied."""
        name, dtype, order = fields(body, path, "tensor", "dtype", "order")
        need(name in self.tensors, f"{path} names a tensor {name!r} that is missing or used twice")
        tensor = self.tensors.pop(name)
        shape, own = tensor.shape, tensor.dtype
        if own.str == "<u4" and any(shape[-1:]) and dtype in (f"<U{shape[-1]}", f">U{shape[-1]}"):
            need(tensor.max(initial=0) <= 0x10FFFF, f"{path} has text that is not Unicode")
            shape = shape[:-1]
        else:
            known = (own.str, own.newbyteorder(">").str)
            need(dtype in known, f"{path} has dtype {dtype!r}, its tensor {own.str!r}")
        need(order in ("C", "F"), f"{path} has order {order!r}, neither 'C' nor 'F'")
        if dtype[0] == ">":
            tensor.byteswap(inplace=True)
        array = tensor.view(dtype).reshape(shape)
        return array.T if order == "F" else array

    def objects(self, body: Any, path: str) -> NDArray[Any]:
        """An array of strings, numbers or None as Python objects."""
        shape, items = fields(body, path, "shape", "items")
        array = np.empty(len(items), dtype=object)
        need(count(shape, path) == len(items), f"{path} has a shape that does not fit its items")
        for i, node in enumerate(items):
            array[i] = _read_scalar(node, path)
        return array.reshape(shape)

    def masked(self, body: Any, path: str) -> Any:
        """An array some of whose entries are not there."""
        nodes = fields(body, path, "data", "mask")
        kinds = [isinstance(node, dict) and set(node) <= {"array", "objects"} for node in nodes]
        need(all(kinds), f"{path} is not a masked array")
        data, mask = (self.value(node, path, 0) for node in nodes)
        sound = mask.dtype == np.bool_ and mask.shape == data.shape
        need(sound, f"{path} has a mask that does not fit")
        return np.ma.MaskedArray(data, mask=mask)

    def csr(self, body: Any, path: str) -> Any:
        """A CSR matrix. Compiled code will follow these indices, so each one is checked."""
        kind, shape, *nodes = fields(body, path, "type", "shape", "data", "indices", "indptr")
        data, indices, indptr = (self.array(fields(n, path, "array")[0], path) for n in nodes)
        sound = (
            kind in ("array", "matrix")
            and count(shape, path) >= 0
            and (len(indptr) - 1, len(shape)) == (shape[0], 2)
            and data.ndim == indices.ndim == indptr.ndim == 1
            and data.dtype.kind in "biuf"
            and indices.dtype.str == indptr.dtype.str in ("<i4", "<i8")
            and (0, len(data), len(data)) == (indptr[0], indptr[-1], len(indices))
            and bool((indptr[1:] >= indptr[:-1]).all())
            and bool(((indices >= 0) & (indices < shape[1])).all())
        )
        need(sound, f"{path} is not a sound CSR matrix")
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
    need(certificate.to_dict() == body, f"{path} is not a certificate as surefit writes it")
    return certificate


# ------------------------------------------------------------------------ small parts


def need(sound: bool | np.bool_, message: str) -> None:
    """Refuse the file unless ``sound``."""
    if not sound:
        raise ModelFileError(message)


def fields(node: Any, path: str, *names: str) -> list[Any]:
    """The values of a JSON object that has exactly these keys."""
    exact = isinstance(node, dict) and set(node) == set(names)
    need(exact, f"{path} must have exactly {', '.join(names)}")
    return [node[name] for name in names]


def count(shape: Any, path: str) -> int:
    """The number of items of a shape that numpy can hold."""
    whole = isinstance(shape, list) and all(type(d) is int and d >= 0 for d in shape)
    need(whole and len(shape) <= 64, f"{path} has a shape that is not one")
    # Times 8 bytes, within a signed 64-bit integer, even where another dimension is zero.
    need(math.prod(max(d, 1) for d in shape) < 2**59, f"{path} has a shape that is too large")
    return math.prod(shape)


def _find_class(name: str) -> Any:
    """The class behind a name of the table."""
    module, _, attribute = CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def _may_set(cls: type, name: str) -> bool:
    """Whether a name can be a fitted attribute: public, and no method or property of the class."""
    found = inspect.getattr_static(cls, name, None)
    taken = callable(found) or hasattr(type(found), "__get__")
    return bool(_FITTED_NAME.fullmatch(name)) and not taken
