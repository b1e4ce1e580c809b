"""Model files: what is saved comes back exactly; what is damaged or hostile is refused."""

import builtins
import doctest
import hashlib
import importlib
import json
import os
import pickle
import stat
import struct
import sys
import tracemalloc
import zipfile
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model
from numpy.testing import assert_array_equal
from sklearn.base import RegressorMixin, clone

import surefit
import surefit._tree
import surefit.io
from surefit import Certificate, Claim, Kind, Status, load, save
from surefit.base import Certified
from surefit.io import ModelFileError

DOCS = Path(__file__).parents[2] / "docs"


class Toy(RegressorMixin, Certified):
    """A ridge regression without intercept: the least that has a certificate."""

    def __init__(self, alpha=1.0, *, option=None, random_state=None, certify=True):
        self.alpha = alpha
        self.option = option
        self.random_state = random_state
        self.certify = certify

    def _validate_training_data(self, X, y, sample_weight, *, reset):
        return self._validate(X, y, sample_weight, reset=reset)

    def _gradient(self, X, y):
        return X.T @ (X @ self.coef_ - y) + self.alpha * self.coef_

    def fit(self, X, y):
        X, y, _ = self._validate_training_data(X, y, None, reset=True)
        self.coef_ = np.linalg.solve(X.T @ X + self.alpha * np.eye(X.shape[1]), X.T @ y)
        return self._seal(X, y, None, "it was solved")

    def _certify(self, X, y, sample_weight, *, full, tol):
        size = float(np.linalg.norm(self._gradient(X, y)))
        bound = 1e-9 * float(np.linalg.norm(X.T @ y))
        statement = f"the gradient is {size:.1e}"
        return [
            Claim.check("gradient", statement, Kind.EXACT, size, bound, "T-1"),
            Claim.undecided("rank", "not asked for", Kind.EXACT),
        ]

    def predict(self, X):
        return X @ self.coef_

    @property
    def doubled_(self):
        return 2 * self.coef_

    @cached_property
    def tripled_(self):
        return 3 * self.coef_

    def method_(self):
        return "untouched"


@pytest.fixture(autouse=True)
def _toy_in_the_table(monkeypatch):
    monkeypatch.setitem(surefit._tree.CLASSES, "Toy", f"{__name__}:Toy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.surefit"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    return X, X @ rng.normal(size=5) + rng.normal(size=40)


@pytest.fixture
def fitted(data):
    return Toy(alpha=0.1, option={"a": (1, 2)}).fit(*data)


@pytest.fixture
def saved(fitted, path):
    save(fitted, path)
    return path


def take_apart(path):
    """Header, document and tensor bytes of a file: a second reader of the format."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["surefit"]), content[8 + length :]


def put_together(path, header, document, tensors, raw="null"):
    """Write a file, with a checksum that matches: what a forger would do. "@" stands for ``raw``."""
    digest = "0" * 64
    for _ in range(2):
        inner = json.dumps({**document, "checksum": digest}).replace('"@"', raw)
        header["__metadata__"] = {"surefit": inner}
        text = json.dumps(header).encode()
        digest = hashlib.blake2b(text + tensors, digest_size=32).hexdigest()
    path.write_bytes(struct.pack("<Q", len(text)) + text + tensors)


def forge(path, edit):
    """Alter a good file by ``edit(header, document, body)``, where body is the model's own node."""
    header, document, tensors = take_apart(path)
    tensors = edit(header, document, document["tree"]["estimator"]) or tensors
    put_together(path, header, document, tensors)


def assert_same(a, b):
    """Equal in value, type, dtype, shape and memory order, all the way down."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert len(a) == len(b)
        for (ka, va), (kb, vb) in zip(a.items(), b.items()):
            assert_same(ka, kb)
            assert_same(va, vb)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for va, vb in zip(a, b):
            assert_same(va, vb)
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.dtype.str, a.shape) == (b.dtype, b.dtype.str, b.shape)
        assert (a.flags.c_contiguous, a.flags.f_contiguous) == (
            b.flags.c_contiguous,
            b.flags.f_contiguous,
        )
        if a.dtype.kind in "OU":
            assert_same(a.tolist(), b.tolist())
        else:
            assert a.tobytes() == b.tobytes()
    elif sp.issparse(a):
        assert a.shape == b.shape
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part))
    elif isinstance(a, Certified):
        assert_same(a.get_params(deep=False), b.get_params(deep=False))
        assert_same(vars(a), vars(b))
    elif isinstance(a, Certificate):
        assert a.to_dict() == b.to_dict()
    elif isinstance(a, float | np.floating):
        assert repr(a) == repr(b)
    else:
        assert a == b


# ------------------------------------------------------------------------ what comes back


def test_a_fitted_model_comes_back_whole(fitted, saved, data):
    X, y = data
    loaded = load(saved)
    assert_array_equal(loaded.predict(X), fitted.predict(X), strict=True)
    assert loaded.certificate_ == fitted.certificate_
    assert str(loaded.certificate_) == str(fitted.certificate_)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.n_features_in_ == 5
    assert clone(loaded).get_params() == fitted.get_params()
    assert not hasattr(clone(loaded), "coef_")
    assert_same(loaded, fitted)
    ours, theirs = surefit.verify(loaded, X, y), surefit.verify(fitted, X, y)
    assert ours.to_dict() == theirs.to_dict()
    assert ours.ok


def test_feature_names_and_pickling_survive(path, data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data[0], columns=["a", "ß", "c c", "d", "e"])
    model = Toy().fit(frame, data[1])
    save(model, path)
    loaded = load(path)
    assert_same(loaded.feature_names_in_, model.feature_names_in_)
    assert_same(pickle.loads(pickle.dumps(loaded)), model)


def test_the_method_and_any_path_and_suffix(fitted, tmp_path, data):
    fitted.save(str(tmp_path / "model.bin"))
    save(fitted, tmp_path / "no_suffix")
    for name in ("model.bin", "no_suffix"):
        assert_array_equal(load(str(tmp_path / name)).coef_, fitted.coef_)
    with pytest.raises(TypeError, match=r"path must be a str or os\.PathLike, got int"):
        load(3)
    with pytest.raises(TypeError, match=r"path must be a str or os\.PathLike, got bytes"):
        save(fitted, b"model")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.surefit")
    with pytest.raises(FileNotFoundError, match="create it first"):
        save(fitted, tmp_path / "nowhere" / "model.surefit")


NUMBERS = [*"?bBhHiIqQefd", ">i4", ">f8", ">u2"]
VALUES = {
    "none": None,
    "bools": [True, False],
    "ints": [0, -1, 2**63, -(2**80)],
    "floats": [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1e22, np.nan, np.inf, -np.inf],
    "strings": ["", "a\nb", 'quo"te\\', "ß☃𝄞", "\ud800", "0" * 64, "nan"],
    "nested": [(1, [2, (3,)]), (), [], {}, {"a": {"b": (None,)}}],
    "dict": {0: 1.0, 1: 2.0, "x": 1, 1.5: "y", None: 0, "tensor": {"array": {"tensor": "x"}}},
    "numpy dict": {np.int64(0): np.float32(0.1), np.str_("b"): np.bool_(True)},
    "scalars": [np.dtype(c).type(1) for c in "?bBhHiIlLefd"] + [np.float32(np.nan), np.str_("é")],
    "0-d": np.array(1.5),
    "empty": np.empty((0, 3), dtype=np.float32),
    "non-finite": np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0]),
    "fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "big fortran": np.asfortranarray(np.arange(12.0).reshape(3, 4).astype(">f4")),
    "4-d": np.arange(24, dtype=np.int16).reshape(2, 3, 1, 4),
    "text": np.array(["no", "yes", "ß☃𝄞"]),
    "wide text": np.array(["a", "b", "longer"])[:2],
    "text matrix": np.asfortranarray(np.array([["a", "bcd"], ["", "é"], ["x", "y"]])),
    "big text": np.array(["a", "bc"], dtype=">U4"),
    "text 0-d": np.array("abc"),
    "no text": np.array([], dtype=str),
    "objects": np.array(["b", "a", "long string"], dtype=object),
    "object matrix": np.array([["b", None], [1, np.nan], [True, 2.5]], dtype=object),
    "csr": sp.random(6, 5, density=0.4, format="csr", random_state=0),
    "csr array": sp.csr_array(np.array([[0, 1], [2, 0]], dtype=np.int32)),
    "csr empty": sp.csr_matrix((3, 0), dtype=np.float32),
    "certificate": Certificate((Claim.check("a", "b", Kind.BOUND, 1, np.inf),), about="é"),
    "estimators": [Toy(option=Toy(alpha=np.float64(2))), (Toy(), Toy())],
    **{f"array {c}": np.arange(6).reshape(2, 3).astype(c) for c in NUMBERS},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_every_value_comes_back_exactly(value, path):
    model = Toy(option=value)
    model.value_ = value
    save(model, path)
    loaded = load(path)
    assert_same(loaded.option, value)
    assert_same(loaded.value_, value)


def test_strided_and_mapped_arrays_come_back_as_plain_ones(path, tmp_path):
    model = Toy()
    model.strided_ = np.arange(24).reshape(4, 6)[::-2, ::3]
    model.mapped_ = np.memmap(tmp_path / "raw", dtype=float, mode="w+", shape=(3,))
    model.loose_ = sp.csr_matrix(np.eye(3))
    model.loose_.data = np.append(model.loose_.data, 9.0)  # room to spare, as scipy may leave
    model.loose_.indices = np.append(model.loose_.indices, 0).astype(np.int32)
    save(model, path)
    loaded = load(path)
    assert_array_equal(loaded.strided_, model.strided_)
    assert type(loaded.mapped_) is np.ndarray
    assert_array_equal(loaded.loose_.toarray(), np.eye(3))


def test_names_that_are_kept_and_names_that_are_not(fitted, path):
    fitted._private_ = 1
    fitted.plain = 2
    assert fitted.tripled_ is not None  # now in vars(fitted)
    save(fitted, path)
    loaded = load(path)
    assert set(vars(loaded)) == set(vars(fitted)) - {"_private_", "plain", "tripled_"}
    assert_array_equal(loaded.tripled_, fitted.tripled_)


def test_a_certificate_with_nan_equals_itself_after_a_round_trip(fitted, saved):
    assert np.isnan(fitted.certificate_["rank"].observed)
    assert load(saved).certificate_ == fitted.certificate_


def test_safetensors_reads_the_tensors(fitted, path):
    safetensors = pytest.importorskip("safetensors")
    fitted.flags_, fitted.empty_, fitted.half_ = np.eye(2) > 0, np.empty((0, 2)), np.float16([1])
    save(fitted, path)
    with safetensors.safe_open(path, framework="numpy") as file:
        assert set(file.metadata()) == {"surefit"}
        assert set(file.keys()) == {f"Toy.{n}_" for n in ("coef", "flags", "empty", "half")}
        for name in file.keys():  # noqa: SIM118 (not a dict)
            assert_array_equal(file.get_tensor(name), getattr(fitted, name[4:]), strict=True)


def test_the_same_model_gives_the_same_bytes(fitted, saved, tmp_path):
    again = tmp_path / "again"
    save(load(saved), again)
    assert again.read_bytes() == saved.read_bytes()


# ------------------------------------------------------------------------ refused on saving


class Stranger(Toy):
    pass


cyclic: list = []
cyclic.append(cyclic)
REFUSED = {
    "function": (len, "Toy.option: .*builtin_function_or_method.*A file holds no code"),
    "lambda": (lambda: 0, "Toy.option: .*builtins.function.*A file holds no code"),
    "class": (Toy, "Toy.option: .*A file holds no code"),
    "generator": (np.random.default_rng(0), "Toy.option: .*Generator.*integer seed"),
    "random state": (np.random.RandomState(0), "Toy.option: .*RandomState.*integer seed"),
    "stranger": (Stranger(), "Toy.option: .*Stranger.*Only surefit's own can be saved: .*Ridge"),
    "sklearn": (sklearn.linear_model.Ridge(), "Toy.option: .*sklearn.linear_model._ridge.Ridge"),
    "complex": (1j, "Toy.option: .*builtins.complex.*Use None, numbers, strings"),
    "complex array": (np.ones(2, complex), "Toy.option: .*ndarray and dtype complex128"),
    "numpy complex": (np.complex64(1), "Toy.option: .*numpy.complex64"),
    "long double": (np.ones(2, np.longdouble), "Toy.option: .*up to 64 bits"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "Toy.option: .*datetime64"),
    "bytes array": (np.array([b"a"]), "Toy.option: .*dtype .S1"),
    "structure": (np.zeros(2, [("a", "f8")]), "Toy.option: .*ndarray and dtype"),
    "records": (np.ones(2).view(np.recarray), "Toy.option: .*recarray"),
    "objects in an array": (
        np.array([print], dtype=object),
        "an item of Toy.option: .*holds no code",
    ),
    "csc": (sp.csc_matrix(np.eye(2)), r"Toy.option: .*\.tocsr\(\)"),
    "path": (Path("x"), "Toy.option: .*pathlib"),
    "set": ({1}, "Toy.option: .*builtins.set"),
    "bytes": (b"x", "Toy.option: .*builtins.bytes"),
    "huge integer": (1 << 5000, "Toy.option: .*builtins.int"),
    "deep in": ([1, {"a": (2, {3})}], r"Toy.option\[1\]\['a'\]\[1\]: .*builtins.set"),
    "deep key": ([{(1, 2): 3}], r"a key of Toy.option\[0\]: .*builtins.tuple"),
    "deep model": (Toy(random_state=np.random.RandomState(0)), "Toy.option.random_state: .*seed"),
    "cycle": (cyclic, "levels deep or cyclic"),
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_data_is_refused_with_its_place_type_and_remedy(value, message, path):
    with pytest.raises(TypeError, match=message):
        save(Toy(option=value), path)
    assert os.listdir(path.parent) == []


def test_refusal_names_fitted_attributes_too(fitted, path):
    fitted.hook_ = lambda: 0
    with pytest.raises(TypeError, match=r"cannot save Toy\.hook_: .*function"):
        save(fitted, path)
    del fitted.hook_
    fitted.β_ = 1
    with pytest.raises(TypeError, match=r"cannot save Toy\.β_: rename it"):
        save(fitted, path)


def test_only_surefit_estimators_are_saved(path):
    for stranger in (sklearn.linear_model.Ridge(), Stranger(), "model", None):
        with pytest.raises(TypeError, match="cannot save"):
            save(stranger, path)


def test_limits_hold_on_saving_too(monkeypatch, fitted, path):
    monkeypatch.setattr(surefit.io, "MAX_HEADER", 100)
    with pytest.raises(ValueError, match="Keep long lists in numpy arrays"):
        save(fitted, path)
    assert not path.exists()


# ------------------------------------------------------------------------ atomic writes


@pytest.mark.parametrize("broken", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(broken, error, monkeypatch, fitted, saved):
    before = saved.read_bytes()
    fitted.coef_ = fitted.coef_ + 1

    def fail(*args):
        raise error

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(type(error)):
        save(fitted, saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_data_reach_the_disk_before_the_name(monkeypatch, fitted, path):
    calls = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, n=name, f=real: (calls.append(n), f(*a))[1])
    save(fitted, path)
    assert calls[:2] == ["fsync", "replace"]
    assert calls[2:] == (["fsync"] if os.name == "posix" else [])


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_modes_and_links_are_kept(fitted, saved, tmp_path):
    assert stat.S_IMODE(saved.stat().st_mode) == 0o666 & ~_umask()
    saved.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(saved)
    fitted.coef_ = fitted.coef_ + 1
    save(fitted, link)
    assert link.is_symlink()
    assert stat.S_IMODE(saved.stat().st_mode) == 0o640
    assert_array_equal(load(saved).coef_, fitted.coef_)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ------------------------------------------------------------------------ not a model file


def test_a_directory_is_refused_with_a_suggestion(fitted, tmp_path):
    for action in (lambda: load(tmp_path), lambda: save(fitted, tmp_path)):
        with pytest.raises(ModelFileError, match=r"is a directory; name a file, .*model\.surefit"):
            action()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_does_not_block(fitted, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for action in (lambda: load(tmp_path / "pipe"), lambda: save(fitted, tmp_path / "pipe")):
        with pytest.raises(ModelFileError, match="not a regular file"):
            action()


def _zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model", "x" * 1000)


FOREIGN = {
    "empty": (lambda p: p.write_bytes(b""), "is empty"),
    "one byte": (lambda p: p.write_bytes(b"\0"), "truncated or not a surefit file"),
    "zeros": (lambda p: p.write_bytes(b"\0" * 100), "truncated or not a surefit file"),
    "zip": (_zip, "looks like a zip archive"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps(Toy())), "looks like a pickle"),
    "png": (lambda p: p.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 99), "looks like a PNG"),
    "text": (lambda p: p.write_bytes(b"{" * 5000), "truncated or not a surefit file"),
    "numpy": (
        lambda p: p.write_bytes(b"\x93NUMPY" + b"\0" * 99),
        "truncated or not a surefit file",
    ),
    "huge header": (lambda p: p.write_bytes(b"\xff" * 7 + b"\x7f{}"), "announces a header of"),
    "bad utf-8": (lambda p: p.write_bytes(struct.pack("<Q", 3) + b'{"\xff'), "malformed"),
    "not json": (lambda p: p.write_bytes(struct.pack("<Q", 3) + b"{a}"), "not valid JSON"),
    "bare": (lambda p: p.write_bytes(struct.pack("<Q", 2) + b"{}"), "written by surefit.save"),
    "deep": (
        lambda p: p.write_bytes(struct.pack("<Q", 200_005) + b'{"a":' + b"[" * 200_000),
        "nested too deeply",
    ),
}


@pytest.mark.parametrize(("write", "message"), FOREIGN.values(), ids=FOREIGN.keys())
def test_other_files_are_refused_with_a_name(write, message, path):
    write(path)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_other_safetensors_files_are_refused(path):
    safetensors = pytest.importorskip("safetensors.numpy")
    safetensors.save_file({"w": np.ones(3)}, path)
    with pytest.raises(ModelFileError, match=r"written by surefit\.save"):
        load(path)


# ------------------------------------------------------------------------ damaged files


def test_every_truncation_and_extension_is_refused(saved):
    content = saved.read_bytes()
    for end in [*range(0, len(content), 37), len(content) - 1]:
        saved.write_bytes(content[:end])
        with pytest.raises(ModelFileError):
            load(saved)
    for more in (b"\0", b" " * 8, content):
        saved.write_bytes(content + more)
        with pytest.raises(ModelFileError):
            load(saved)


def test_a_file_that_shrinks_while_it_is_read_is_refused(saved, monkeypatch):
    before = saved.stat()
    monkeypatch.setattr(os, "fstat", lambda descriptor: before)
    saved.write_bytes(saved.read_bytes()[:-8])
    with pytest.raises(ModelFileError, match=r"ended within tensor 'Toy\.coef_'"):
        load(saved)


def test_fuzz_every_damage_is_noticed_or_harmless(fitted, saved):
    rng = np.random.default_rng(0)
    content = saved.read_bytes()
    for trial in range(300):
        at = int(rng.integers(len(content)))
        byte = bytes([int(rng.integers(256))])
        damaged = [
            content[:at] + byte + content[at + 1 :],
            content[:at],
            content[:at] + byte + content[at:],
        ][trial % 3]
        saved.write_bytes(damaged)
        try:
            loaded = load(saved)
        except ModelFileError:
            continue
        assert_same(loaded, fitted)
        assert damaged == content  # the checksum covers every byte


def nest(levels, node=1):
    for _ in range(levels):
        node = [node]
    return node


JUNK = [
    *(None, True, -1, 2**70, 0.5, 1e308, "", "<f8", "Toy", "\ud800", [], [[]], {}, {"a": 1}),
    *({"tuple": 1}, {"dict": [[1]]}, {"array": {}}, {"numpy": ["float16", 1e9]}, {"csr": {}}),
    *({"estimator": {"class": "Toy", "params": {}, "fitted": {}}}, {"float": "nan"}, nest(9)),
]


def places(node):
    """Every (container, key) of a JSON document."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, child in items:
        yield node, key
        if isinstance(child, dict | list):
            yield from places(child)


def test_fuzz_forged_structure_is_refused_or_plain(path):
    model = Toy(option={1: (2.5, None), "a": np.float32(1)})
    model.text_, model.objects_ = np.array(["a", "bc"]), np.array(["a", None, 1], dtype=object)
    model.coef_, model.inner_ = sp.csr_matrix(np.eye(3)), [Toy(alpha=np.nan)]
    model.flags_, model.certificate_ = np.eye(2) > 0, VALUES["certificate"]
    save(model, path)
    content = path.read_bytes()
    rng = np.random.default_rng(1)
    outcomes = set()
    for _ in range(300):
        path.write_bytes(content)
        header, document, tensors = take_apart(path)
        del header["__metadata__"]
        targets = list(places(header if rng.random() < 0.2 else document))
        node, key = targets[int(rng.integers(len(targets)))]
        node[key] = JUNK[int(rng.integers(len(JUNK)))]
        put_together(path, header, document, tensors)
        try:
            outcomes.add(type(load(path)))
        except ModelFileError as error:
            outcomes.add(type(error))
    assert outcomes == {Toy, ModelFileError}


def test_a_flipped_bit_in_a_tensor_or_a_parameter_is_noticed(saved):
    content = saved.read_bytes()
    for damaged in (
        content[:-1] + bytes([content[-1] ^ 1]),
        content.replace(b'\\"alpha\\": 0.1', b'\\"alpha\\": 0.2'),
    ):
        assert damaged != content
        saved.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="checksum does not match"):
            load(saved)


def test_a_forged_checksum_does_not_fool_verify(fitted, saved, data):
    def edit(header, document, body):
        return (fitted.coef_ * (1 + 1e-3)).tobytes()

    forge(saved, edit)
    forged = load(saved)  # the checksum matches: it is no signature
    assert forged.certificate_.ok
    assert surefit.verify(forged, *data)["gradient"].status is Status.FAILS
    assert not surefit.verify(forged, *data).ok


# ------------------------------------------------------------------------ hostile files


def test_the_forger_of_these_tests_is_able(saved, fitted):
    forge(saved, lambda header, document, body: None)
    assert_same(load(saved), fitted)


def in_document(**changes):
    return lambda header, document, body: document.update(changes)


def in_class(name):
    return lambda header, document, body: body.update({"class": name})


def in_params(**nodes):
    return lambda header, document, body: body["params"].update(nodes)


def in_fitted(**nodes):
    return lambda header, document, body: body["fitted"].update(nodes)


def in_table(**changes):
    return lambda header, document, body: header["Toy.coef_"].update(changes)


def in_array(**changes):
    return lambda header, document, body: body["fitted"]["coef_"]["array"].update(changes)


def nest_tag(levels, tag, node=1):
    for _ in range(levels):
        node = {tag: ["int64", node]}
    return node


def overlap(header, document, body):
    header["Toy.other"] = {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}


def gap(header, document, body):
    header["Toy.coef_"].update(data_offsets=[8, 40], shape=[4])


def unused(header, document, body):
    del body["fitted"]["coef_"]


def used_twice(header, document, body):
    body["fitted"]["again_"] = body["fitted"]["coef_"]


def claim(**changes):
    def edit(header, document, body):
        body["fitted"]["certificate_"]["certificate"]["claims"][0].update(changes)

    return edit


HOSTILE = {
    "newer format": (in_document(format=2), "format 2, newer than 1: upgrade surefit"),
    "newer, unknown fields": (in_document(format=9, other=1), "upgrade surefit"),
    "format zero": (in_document(format=0), "format 0 is not a number"),
    "format text": (in_document(format="1"), "is not a number"),
    "format true": (in_document(format=True), "is not a number"),
    "more fields": (in_document(other=1), "must have exactly checksum"),
    "tree of nothing": (in_document(tree=None), "holds no estimator"),
    "tree of a list": (in_document(tree=[]), "holds no estimator"),
    "tree of two": (in_document(tree={"estimator": {}, "x": 1}), "one tag"),
    "class os.system": (in_class("os:system"), "no class 'os:system' in the table"),
    "class popen": (in_class("subprocess.Popen"), "in the table"),
    "class with module": (in_class("surefit.linear_model:Ridge"), "in the table"),
    "class newline": (in_class("Toy\n"), "in the table"),
    "class list": (in_class(["Toy"]), "in the table"),
    "class none": (in_class(None), "in the table"),
    "parameter": (in_params(other=1), "Toy has no parameter 'other'"),
    "parameter self": (in_params(self=1), "no parameter 'self'"),
    "parameter dunder": (in_params(__class__=1), "no parameter"),
    "params list": (lambda h, d, b: b.update(params=["alpha"]), "no attributes"),
    "fitted method": (in_fitted(method_=1), "no fitted attribute 'method_'"),
    "fitted predict": (in_fitted(predict=1), "no fitted attribute 'predict'"),
    "fitted property": (in_fitted(doubled_=1), "no fitted attribute 'doubled_'"),
    "fitted cached": (in_fitted(tripled_=1), "no fitted attribute 'tripled_'"),
    "fitted private": (in_fitted(_private_=1), "no fitted attribute '_private_'"),
    "fitted dunder": (in_fitted(__class__=1), "no fitted attribute '__class__'"),
    "fitted dunder end": (in_fitted(a__=1), "no fitted attribute 'a__'"),
    "fitted newline": (in_fitted(**{"a_\n": 1}), "no fitted attribute"),
    "fitted unicode": (in_fitted(é_=1), "no fitted attribute"),
    "certificate is text": (in_fitted(certificate_="fine"), "is not a certificate"),
    "certificate empty": (in_fitted(certificate_={"certificate": {}}), "malformed"),
    "certificate null": (in_fitted(certificate_={"certificate": None}), "malformed"),
    "claim kind": (claim(kind="perfect"), "malformed"),
    "claim number": (claim(observed="0"), "not a certificate as surefit writes it"),
    "claim list": (claim(name=["a"]), "not a certificate as surefit writes it"),
    "claim extra": (claim(hidden=1), "not a certificate as surefit writes it"),
    "tag": (in_params(option={"pickle": "gASVIAAAAA=="}), "unknown or malformed tag 'pickle'"),
    "tag reduce": (in_params(option={"__reduce__": ["os.system", ["x"]]}), "unknown or malformed"),
    "tag method": (in_params(option={"value": 1}), "unknown or malformed tag 'value'"),
    "two tags": (in_params(option={"tuple": [], "dict": []}), "one tag"),
    "no tags": (in_params(option={}), "one tag"),
    "float": (in_params(option={"float": "1e3"}), "neither None nor"),
    "numpy type": (in_params(option={"numpy": ["object", 1]}), "neither None nor"),
    "numpy range": (in_params(option={"numpy": ["int8", 300]}), "malformed"),
    "numpy inexact": (in_params(option={"numpy": ["float32", 0.1]}), "neither None nor"),
    "numpy overflow": (in_params(option={"numpy": ["float32", 1e300]}), "neither None nor"),
    "numpy kind": (in_params(option={"numpy": ["int64", 1.0]}), "neither None nor"),
    "numpy nested": (in_params(option={"numpy": ["int64", [1]]}), "neither None nor"),
    "dict twice": (in_params(option={"dict": [[1, 2], [1, 3]]}), "key twice"),
    "dict key": (in_params(option={"dict": [[[1], 2]]}), "neither None nor"),
    "dict key tag": (in_params(option={"dict": [[{"tuple": []}, 2]]}), "neither None nor"),
    "dict pairs": (in_params(option={"dict": [1, 2]}), "malformed"),
    "deep value": (in_params(option=nest(40)), "levels deep"),
    "deep numpy": (in_params(option=nest_tag(200, "numpy")), "neither None nor"),
    "deep tuples": (in_params(option=nest_tag(40, "tuple")), "levels deep"),
    "deep estimator": (in_params(option=nest(200)), "levels deep"),
    "object items": (in_fitted(a_={"objects": {"shape": [1], "items": [[1]]}}), "neither None nor"),
    "object shape": (in_fitted(a_={"objects": {"shape": [2], "items": ["a"]}}), "does not fit"),
    "object huge": (in_fitted(a_={"objects": {"shape": [2**62], "items": []}}), "too large"),
    "array dtype O": (in_array(dtype="|O"), "has dtype '|O', its tensor '<f8'"),
    "array dtype": (in_array(dtype="<i8"), "has dtype '<i8'"),
    "array dtype U": (in_array(dtype="<U5"), "has dtype '<U5'"),
    "array dtype list": (in_array(dtype=["<f8"]), "has dtype"),
    "array order": (in_array(order="A"), "has order 'A'"),
    "array missing": (in_array(tensor="other"), "missing or used twice"),
    "array of a list": (in_array(tensor=[]), "malformed"),
    "array twice": (used_twice, "missing or used twice"),
    "array unused": (unused, "tensors of no attribute"),
    "table dtype": (in_table(dtype="O"), "has dtype 'O'"),
    "table dtype list": (in_table(dtype=["F64"]), "malformed"),
    "table bytes": (in_table(shape=[6]), "needs 48 bytes and has 40"),
    "table negative": (in_table(shape=[-5]), "not one"),
    "table float": (in_table(shape=[5.0]), "not one"),
    "table true": (in_table(shape=[True]), "not one"),
    "table none": (in_table(shape=None), "not one"),
    "table overflow": (in_table(shape=[2**32, 2**32, 5]), "too large"),
    "table zero overflow": (in_table(shape=[0, 2**63]), "too large"),
    "table dimensions": (in_table(shape=[1] * 65 + [5]), "not one"),
    "offsets beyond": (in_table(data_offsets=[0, 10**13], shape=[10**13 // 8]), "beyond the file"),
    "offsets negative": (in_table(data_offsets=[-40, 0]), "beyond the file"),
    "offsets swapped": (in_table(data_offsets=[40, 0]), "beyond the file"),
    "offsets float": (in_table(data_offsets=[0.0, 40]), "beyond the file"),
    "offsets short": (in_table(data_offsets=[40]), "beyond the file"),
    "table extra": (in_table(other=1), "must have exactly"),
    "overlap": (overlap, "overlaps another, or leaves a gap"),
    "gap": (gap, "overlaps another, or leaves a gap"),
    "rest": (in_table(data_offsets=[0, 32], shape=[4]), "8 bytes that belong to no tensor"),
}


@pytest.mark.parametrize(("edit", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused_before_anything_is_imported(edit, message, saved, monkeypatch):
    forge(saved, edit)
    imported = []
    real = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda n: (imported.append(n), real(n))[1])
    with pytest.raises(ModelFileError, match=message) as caught:
        load(saved)
    assert set(imported) <= {__name__}  # the module of Toy
    assert str(saved) in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_duplicate_keys_and_json_constants_are_refused(saved):
    header, document, tensors = take_apart(saved)
    good = json.dumps(document)
    for bad, message in [
        (good[:-1] + ', "format": 1}', "key twice"),
        (good.replace('"alpha": 0.1', '"alpha": NaN'), "number NaN, which is not JSON"),
        (good.replace('"alpha": 0.1', '"alpha": 0.1, "alpha": 0.2'), "key twice"),
        (good.replace('"alpha": 0.1', '"alpha": ' + "1" * 5000), "malformed"),
        (good.replace('"alpha": 0.1', '"alpha": ' + "[" * 5000 + "]" * 5000), "too deeply"),
        ("[]", "not a JSON object"),
    ]:
        assert bad != good
        header["__metadata__"] = {"surefit": bad}
        text = json.dumps(header).encode()
        saved.write_bytes(struct.pack("<Q", len(text)) + text + tensors)
        with pytest.raises(ModelFileError, match=message):
            load(saved)
    for metadata in ({"surefit": good, "x": "y"}, {"surefit": 1}, []):
        text = json.dumps({**header, "__metadata__": metadata}).encode()
        saved.write_bytes(struct.pack("<Q", len(text)) + text + tensors)
        with pytest.raises(ModelFileError):
            load(saved)


def test_depths_near_the_recursion_limit_are_refused(saved):
    header, document, tensors = take_apart(saved)
    body = dict(document["tree"]["estimator"])
    for levels in range(100, sys.getrecursionlimit(), 50):
        for key in ("class", "params"):
            document["tree"]["estimator"] = {**body, key: "@"}
            put_together(saved, header, document, tensors, raw="[" * levels + "]" * levels)
            with pytest.raises(ModelFileError):
                load(saved)


def test_tampered_bools_and_text_are_refused(path):
    model = Toy()
    model.flags_ = np.array([True, False])
    save(model, path)
    forge(path, lambda header, document, body: b"\x02\x00")
    with pytest.raises(ModelFileError, match="bool values other than 0 and 1"):
        load(path)
    del model.flags_
    model.text_ = np.array(["ab"])
    save(model, path)
    forge(path, lambda header, document, body: b"\xff" * 8)
    with pytest.raises(ModelFileError, match="not Unicode"):
        load(path)


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("indices", [0, 2, 3]),
        ("indices", [0, -1, 1]),
        ("indptr", [0, 10**9, 2, 3]),
        ("indptr", [1, 1, 2, 3]),
        ("indptr", [0, 1, 2, 4]),
        ("indptr", [0, 1, 2, 2]),
        ("indptr", [-1, 1, 2, 3]),
    ],
)
def test_sparse_indices_cannot_point_outside(part, values, path):
    model = Toy()
    model.coef_ = sp.csr_matrix(np.eye(3))
    save(model, path)

    def edit(header, document, body):
        tensors = bytearray(take_apart(path)[2])
        begin, end = header[f"Toy.coef_.{part}"]["data_offsets"]
        tensors[begin:end] = np.array(values, dtype=np.int32).tobytes()
        body["fitted"]["coef_"]["csr"]["shape"] = [3, 3]
        return bytes(tensors)

    forge(path, edit)
    with pytest.raises(ModelFileError, match="not a sound CSR matrix"):
        load(path)


@pytest.mark.parametrize("change", [{"shape": [4, 3]}, {"shape": [3]}, {"type": "x"}, {"shape": 3}])
def test_sparse_shapes_must_fit(change, path):
    model = Toy()
    model.coef_ = sp.csr_matrix(np.eye(3))
    save(model, path)
    forge(path, lambda header, document, body: body["fitted"]["coef_"]["csr"].update(change))
    with pytest.raises(ModelFileError, match=r"model\.coef_"):
        load(path)


def test_masked_arrays_come_back_with_their_masks(path):
    model = Toy()
    model.numbers_ = np.ma.MaskedArray([1.0, 2.0, 3.0], mask=[False, True, False])
    model.words_ = np.ma.MaskedArray(np.array(["a", None], dtype=object), mask=[False, True])
    model.whole_ = np.ma.MaskedArray([1, 2])
    save(model, path)
    loaded = load(path)
    for name in ("numbers_", "words_", "whole_"):
        ours, other = getattr(loaded, name), getattr(model, name)
        assert type(ours) is np.ma.MaskedArray
        assert ours.dtype == other.dtype
        np.testing.assert_array_equal(np.ma.getmaskarray(ours), np.ma.getmaskarray(other))
        np.testing.assert_array_equal(ours.compressed(), other.compressed())


@pytest.mark.parametrize(
    "change",
    [
        {"mask": None},
        {"mask": [True, False]},
        {"mask": {"objects": {"shape": [2], "items": [True, False]}}},
        {"data": {"tuple": []}},
        {"more": 1},
    ],
)
def test_masks_must_fit(change, path):
    model = Toy()
    model.numbers_ = np.ma.MaskedArray([1.0, 2.0], mask=[False, True])
    save(model, path)
    forge(path, lambda header, document, body: body["fitted"]["numbers_"]["masked"].update(change))
    with pytest.raises(ModelFileError, match="cannot load"):
        load(path)


def test_too_many_tensors_are_refused(saved, monkeypatch):
    monkeypatch.setattr(surefit.io, "MAX_TENSORS", 0)
    with pytest.raises(ModelFileError, match="1 tensors, more than 0"):
        load(saved)


def test_a_small_file_that_claims_ten_terabytes_allocates_nothing(path):
    huge = {"dtype": "F64", "shape": [10**13 // 8], "data_offsets": [0, 10**13]}
    document = {"format": 1, "checksum": "0" * 64, "versions": {}, "tree": {}}
    put_together(path, {"Toy.coef_": huge}, document, b"\0" * 8)
    small = path.read_bytes()
    claims = [small, struct.pack("<Q", 10**13) + small[8:], struct.pack("<Q", 2**64 - 1) + b"{}"]
    load_errors = []
    for content in claims:
        path.write_bytes(content)
        assert len(content) < 400
        tracemalloc.start()
        try:
            load(path)
        except ModelFileError as error:
            load_errors.append(str(error))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 5e6
    assert len(load_errors) == 3
    assert "beyond the file" in load_errors[0]
    assert "announces a header" in load_errors[1]


def test_loading_allocates_about_the_size_of_the_file(path):
    model = Toy()
    model.large_ = np.asfortranarray(np.ones((1000, 2000), dtype=">f8"))
    save(model, path)
    tracemalloc.start()
    load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * path.stat().st_size


def test_loading_neither_unpickles_nor_imports_nor_evaluates(saved, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("loading a model must not do this")

    for module, name in [
        (pickle, "load"),
        (pickle, "loads"),
        (pickle, "Unpickler"),
        (builtins, "eval"),
        (builtins, "exec"),
        (builtins, "compile"),
    ]:
        monkeypatch.setattr(module, name, forbidden)
    before = set(sys.modules)
    load(saved)
    assert set(sys.modules) == before


# ------------------------------------------------------------------------ surefit's own classes

OURS = {
    "LinearRegression": {},
    "Ridge": {"alpha": 0.5},
    "Lasso": {"alpha": 0.01},
    "ElasticNet": {"alpha": 0.01, "l1_ratio": 0.3},
    "LogisticRegression": {"C": 0.5, "class_weight": {"no": 1.0, "yes": 2.0}},
    "Perceptron": {"random_state": 0},
}
CLASSIFIERS = {"LogisticRegression", "Perceptron", "OneVsRestClassifier", "OneVsOneClassifier"}


def ours(name):
    """A class of the table; skips while it is being written."""
    module, _, attribute = surefit._tree.CLASSES[name].partition(":")
    return getattr(pytest.importorskip(module), attribute, None) or pytest.skip(f"no {name} yet")


def separable(data, names):
    """The rows of ``data`` with labels that a linear model gets right."""
    X = data[0]
    edges = np.quantile(X[:, 0], np.linspace(0, 1, len(names) + 1)[1:-1])
    groups = np.searchsorted(edges, X[:, 0])
    return X + 3 * np.eye(5)[0] * groups[:, None], np.array(names)[groups]


def check_round_trip(model, X, y, path):
    save(model, path)
    loaded = load(path)
    assert_same(loaded.get_params(deep=False), model.get_params(deep=False))
    assert_array_equal(loaded.predict(X), model.predict(X), strict=True)
    assert loaded.certificate_.to_dict() == model.certificate_.to_dict()
    assert loaded.certificate_ == model.certificate_
    assert clone(loaded).get_params().keys() == model.get_params().keys()
    ours, theirs = surefit.verify(loaded, X, y), surefit.verify(model, X, y)
    assert ours.to_dict() == theirs.to_dict()
    assert ours.ok
    public = {n for n in vars(model) if n.endswith("_") and not n.startswith("_")}
    assert public <= set(vars(loaded))


@pytest.mark.parametrize("name", OURS)
def test_surefit_models_come_back_whole(name, data, path):
    cls = ours(name)
    X, y = separable(data, ["no", "yes"]) if name in CLASSIFIERS else data
    check_round_trip(cls(**OURS[name]).fit(X, y), X, y, path)


@pytest.mark.parametrize("name", ["OneVsRestClassifier", "OneVsOneClassifier"])
def test_nested_models_come_back_whole(name, data, path):
    cls, inner = ours(name), ours("LogisticRegression")
    X, y = separable(data, ["a", "b", "c"])
    check_round_trip(cls(inner(C=0.5)).fit(X, y), X, y, path)


@pytest.mark.parametrize("name", ["Ridge", "Lasso"])
def test_verify_catches_a_forged_surefit_model(name, data, path):
    model = ours(name)(**OURS[name], tol=1e-10).fit(*data)
    save(model, path)

    def edit(header, document, body):
        tensors = bytearray(take_apart(path)[2])
        begin, end = header[f"{name}.coef_"]["data_offsets"]
        nudged = np.frombuffer(tensors[begin:end]) * (1 + 1e-2)
        tensors[begin:end] = nudged.tobytes()
        return bytes(tensors)

    forge(path, edit)
    forged = load(path)
    assert forged.certificate_.ok
    assert not surefit.verify(forged, *data).ok


def test_the_table_names_only_surefit():
    for name, place in surefit._tree.CLASSES.items():
        if name != "Toy":
            assert place.startswith("surefit.")
            assert place.endswith(f":{name}")


def test_the_page_on_model_files_runs():
    ours("Ridge")
    result = doctest.testfile(str(DOCS / "model-files.md"), module_relative=False)
    assert result.attempted > 5
    assert result.failed == 0
