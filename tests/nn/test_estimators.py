"""Any module as an estimator; pictures; model files of networks."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted
from torch import nn

import surefit
from surefit.io import ModelFileError
from surefit.nn import CNNClassifier, MLPClassifier, MLPRegressor, NeuralClassifier, NeuralRegressor
from surefit.nn.train import NonFiniteLoss


def net(n_features, n_outputs):
    return nn.Sequential(nn.Linear(n_features, 16), nn.ReLU(), nn.Linear(16, n_outputs))


class Net(nn.Module):
    """A class whose constructor names what it needs."""

    def __init__(self, n_outputs: int = 3) -> None:
        super().__init__()
        self.body = nn.Linear(5, n_outputs)

    def forward(self, x):
        return self.body(x)


pytestmark = pytest.mark.filterwarnings("ignore::surefit.CertificateWarning")  # of few epochs


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 5))
    labels = np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    return X, labels, X[:, 0] + X[:, 1]


@pytest.fixture(scope="module")
def pictures():
    digits = load_digits()
    return digits.images[:400] / 16, digits.target[:400]


@pytest.mark.parametrize("module", [net, Net, nn.Linear(5, 3)], ids=["function", "class", "module"])
def test_a_module_in_any_form_learns_labels(table, module):
    X, labels, _ = table
    model = NeuralClassifier(module, epochs=30, batch_size=25, lr=0.02, random_state=0)
    model.fit(X, labels)
    assert model.score(X, labels) > 0.85
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert not model.module_.training
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba, rtol=1e-5)
    assert model.module_(model._tensor(X)).shape == (250, 3)
    assert len(model.loss_curve_) == model.n_iter_ == 30
    assert model.certificate_.ok


def test_a_fit_leaves_the_given_module_alone_and_repeats_itself(table):
    X, labels, _ = table
    given = nn.Linear(5, 3)
    before = given.weight.detach().clone()
    first = NeuralClassifier(given, epochs=2, random_state=0).fit(X, labels)
    second = NeuralClassifier(given, epochs=2, random_state=0).fit(X, labels)
    assert torch.equal(given.weight, before)
    assert torch.equal(first.module_.weight, second.module_.weight)
    assert not torch.equal(first.module_.weight, before)


def test_regression_of_one_and_several_targets(table):
    X, _, number = table
    both = np.column_stack([number, -number])
    for y in (number, both):
        model = NeuralRegressor(net, epochs=40, batch_size=25, lr=0.02, random_state=0).fit(X, y)
        assert model.predict(X).shape == y.shape
        assert model.score(X, y) > 0.9
        assert model.certificate_.ok


def test_partial_fit_warm_start_clone_and_grid_search(table):
    X, labels, _ = table
    model = NeuralClassifier(net, batch_size=25, lr=0.02, random_state=0)
    for _ in range(20):
        model.partial_fit(X, labels, classes=np.unique(labels))
    assert model.score(X, labels) > 0.85
    assert model.n_iter_ == 20
    warm = NeuralClassifier(net, epochs=5, batch_size=25, lr=0.02, warm_start=True, random_state=0)
    first = warm.fit(X, labels).final_loss_
    assert warm.fit(X, labels).final_loss_ < first
    search = GridSearchCV(clone(warm), {"lr": [1e-6, 0.05]}, cv=2).fit(X, labels)
    assert search.best_params_ == {"lr": 0.05}


def test_row_and_class_weights_are_the_same_thing(table):
    X, labels, _ = table
    each = {"low": 1.0, "mid": 5.0, "top": 0.5}
    one = NeuralClassifier(net, class_weight=each, epochs=3, random_state=0).fit(X, labels)
    weight = np.array([each[label] for label in labels])
    two = NeuralClassifier(net, epochs=3, random_state=0).fit(X, labels, sample_weight=weight)
    assert one.loss_curve_ == two.loss_curve_


def test_patience_needs_rows_and_uses_them(table):
    X, labels, _ = table
    with pytest.raises(ValueError, match="patience=2 needs validation rows"):
        NeuralClassifier(net, patience=2).fit(X, labels)
    model = NeuralClassifier(
        net, epochs=200, lr=0.1, patience=2, validation_fraction=0.2, random_state=0
    ).fit(X, labels)
    assert model.n_iter_ < 200
    assert len(model.validation_curve_) == model.n_iter_


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 8), (64,)])
def test_pictures_in_three_shapes_are_one_fit(pictures, shape):
    images, y = pictures
    X = images.reshape(len(images), *shape)
    flat = (8, 8) if shape == (64,) else None
    model = CNNClassifier(epochs=8, batch_size=50, lr=3e-3, image_shape=flat, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.9
    assert model.image_shape_ == (1, 8, 8)
    assert model._tensor(X).shape == (400, 1, 8, 8)
    assert torch.equal(model._tensor(X), model._tensor(torch.from_numpy(X)))


@pytest.mark.parametrize("name", ["lenet", "resnet20", "resnet18"])
def test_named_architectures(name):
    rng = np.random.default_rng(0)
    side, channels = (28, 1) if name == "lenet" else (8, 3)
    X = rng.uniform(size=(8, channels, side, side)).astype(np.float32)
    model = CNNClassifier(name, epochs=1, batch_size=8, random_state=0).fit(X, np.arange(8) % 2)
    assert model.predict_proba(X).shape == (8, 2)
    assert model.certificate_.ok


def test_what_is_refused(table, pictures):
    X, labels, number = table
    images, y = pictures
    with pytest.raises(
        ValueError, match=r"shape \(1, 4\), expected \(1, 3\): one number for each of"
    ):
        NeuralClassifier(nn.Linear(5, 4)).fit(X, labels)
    with pytest.raises(ValueError, match=r"does not take rows of shape \(5,\)"):
        NeuralClassifier(nn.Linear(4, 3)).fit(X, labels)
    with pytest.raises(ValueError, match="NaN"):
        NeuralClassifier(net).fit(torch.full((4, 5), torch.nan), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="one class"):
        NeuralClassifier(net).fit(X, np.zeros(250, dtype=int))
    with pytest.raises(ValueError, match=r"not in `self.classes_`: \['top'\]"):
        NeuralClassifier(net).partial_fit(X, labels, classes=["low", "mid"])
    with pytest.raises(ValueError, match="shape"):
        NeuralRegressor(net).fit(X, np.zeros((250, 2, 2)))
    with pytest.raises(TypeError, match="must give an nn"):
        NeuralRegressor(lambda: 3).fit(X, number)
    with pytest.raises(ValueError, match=r"image_shape=\(7, 7\) needs rows of 49 .* shape \(64,\)"):
        CNNClassifier(image_shape=(7, 7)).fit(images.reshape(-1, 64), y)
    with pytest.raises(ValueError, match=r"received rows of shape \(64,\)"):
        CNNClassifier().fit(images.reshape(-1, 64), y)
    model = CNNClassifier(epochs=1, random_state=0).fit(images, y)
    with pytest.raises(ValueError, match=r"shape \(4, 4\), but .* rows of shape \(8, 8\)"):
        model.predict(images[:, :4, :4])
    for channels in (1, 3):
        last = np.zeros((20, 8, 8, channels), np.float32)
        with pytest.raises(ValueError, match="channels last: channels come first here"):
            CNNClassifier(epochs=1).fit(last, np.arange(20) % 2)
    with pytest.raises(ValueError, match="takes square pictures, received 8 x 6"):
        CNNClassifier().fit(images[:, :, :6], y)


@pytest.mark.parametrize("kind", [NeuralClassifier, MLPClassifier])
def test_labels_that_are_no_classes_leave_the_estimator_unfitted(table, kind):
    X, labels, _ = table
    model = NeuralClassifier(net, random_state=0) if kind is NeuralClassifier else kind((4,))
    with pytest.raises(ValueError, match=r"not in `self.classes_`: \['top'\]"):
        model.partial_fit(X, labels, classes=["low", "mid"])
    with pytest.raises(AttributeError, match="not fitted yet"):
        model.predict(X)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, labels)
    model.partial_fit(X[:, :3], labels, classes=["low", "mid", "top"])  # as if there had been none
    assert model.predict_proba(X[:, :3]).shape == (250, 3)


@pytest.mark.parametrize("of", [np.asarray, torch.from_numpy])
def test_rows_of_another_shape_than_the_fit_s_are_told(pictures, of):
    images, y = pictures
    flat = images.reshape(400, 64)
    model = CNNClassifier(epochs=1, random_state=0).fit(images[:50], y[:50])
    words = r"X has rows of shape \(64,\), but CNNClassifier is expecting rows of shape \(8, 8\)"
    with pytest.raises(ValueError, match=words):
        model.predict(of(flat))
    model = CNNClassifier(image_shape=(8, 8), epochs=1, random_state=0).fit(flat[:50], y[:50])
    with pytest.raises(ValueError, match=r"shape \(8, 8\), but .* rows of shape \(64,\)"):
        model.predict(of(images))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("of", [np.asarray, torch.from_numpy, sp.csr_array])
@pytest.mark.parametrize("where", [0, 249])
def test_features_too_large_for_the_module_are_no_nan(table, of, where):
    X, labels, _ = table
    far = X.copy()
    far[where, 2] = -1e39  # float32 ends at 3.4e38
    words = r"up to 1e\+39, too large for torch.float32.*scale the features"
    if of is not sp.csr_array:
        with pytest.raises(ValueError, match=words):
            NeuralClassifier(net, epochs=1, random_state=0).fit(X, labels).predict(of(far))
    model = MLPClassifier((4,), max_iter=1, random_state=0).fit(X.astype(np.float32), labels)
    with pytest.raises(ValueError, match=words):
        model.predict_proba(of(far))
    wide = MLPClassifier((4,), max_iter=1, random_state=0).fit(X, labels)
    assert np.isfinite(wide.predict_proba(of(far))).all()  # float64 ends at 1.8e308


def test_features_too_large_for_half_precision_are_no_nan(table):
    """float16 ends at 65504."""
    X, labels, _ = table
    model = NeuralClassifier(nn.Linear(5, 3).half(), epochs=1, random_state=0).fit(X, labels)
    with pytest.raises(ValueError, match=r"up to 7e\+04, too large for torch.float16"):
        model.predict(np.full((1, 5), 7e4, np.float32))


# ------------------------------------------------------------------------ files


def brief():
    """A module in bfloat16, which numpy does not have."""
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)).to(torch.bfloat16)


def test_bfloat16_is_predicted_kept_and_verified(tmp_path, table):
    """Numbers of eight binary digits sum to 1 within a rounding each."""
    X, labels, _ = table
    path, module = tmp_path / "model.surefit", brief()
    model = NeuralClassifier(module, epochs=20, lr=0.05, random_state=0).fit(X, labels)
    proba = model.predict_proba(X)
    assert proba.dtype == np.float32
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-6)
    assert model.certificate_.ok
    model.save(path)
    again = surefit.load(path, module=module)
    assert {p.dtype for p in again.module_.parameters()} == {torch.bfloat16}
    assert np.array_equal(again.predict_proba(X), proba)
    assert surefit.verify(again, X, labels).ok


def test_targets_may_be_of_bfloat16(table):
    """Numbers that it holds exactly."""
    y = torch.tensor([0.5, 1.0, -2.0, 0.25])
    model = NeuralRegressor(nn.Linear(5, 1), epochs=2, random_state=0)
    found = [model.fit(table[0][:4], y.to(t)).loss_curve_ for t in (torch.float32, torch.bfloat16)]
    assert found[0] == found[1]


def test_a_file_is_not_rounded_to_the_given_module(tmp_path, table):
    X, labels, _ = table
    model = NeuralClassifier(nn.Linear(5, 3), epochs=1, random_state=0).fit(X, labels)
    model.save(tmp_path / "model.surefit")
    again = surefit.load(tmp_path / "model.surefit", module=nn.Linear(5, 3).to(torch.bfloat16))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


class Two(nn.Module):
    """The first layer in float32, the second in float64, and a count."""

    def __init__(self, n_outputs):
        super().__init__()
        self.body, self.head = nn.Linear(5, 8), nn.Linear(8, n_outputs).double()
        self.register_buffer("count", torch.tensor(7))

    def forward(self, x):
        return self.head(self.body(x).relu().to(self.head.weight.dtype))


def test_each_tensor_of_a_file_keeps_its_type(tmp_path, table):
    X, labels, _ = table
    model = NeuralClassifier(Two, epochs=1, random_state=0).fit(X, labels)
    model.save(tmp_path / "model.surefit")
    again = surefit.load(tmp_path / "model.surefit", module=Two)
    ours, theirs = (m.module_.state_dict() for m in (again, model))
    assert {k: v.dtype for k, v in ours.items()} == {k: v.dtype for k, v in theirs.items()}
    assert all(torch.equal(ours[k], theirs[k]) for k in theirs)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["mlp", "regressor", "cnn", "module"])
def test_a_file_gives_the_same_model(tmp_path, table, pictures, kind):
    X, labels, number = table
    given = {"module": net} if kind == "module" else {}
    model, X, y = {
        "mlp": (
            MLPClassifier((8,), max_iter=20, learning_rate_init=0.05, random_state=0),
            X,
            labels,
        ),
        "regressor": (
            MLPRegressor(
                hidden_layer_sizes=(8,), max_iter=20, learning_rate_init=0.05, random_state=0
            ),
            X.astype(np.float32),
            number,
        ),
        "cnn": (CNNClassifier("resnet20", epochs=1, random_state=0), *pictures),
        "module": (NeuralClassifier(net, epochs=20, lr=0.02, random_state=0), X, labels),
    }[kind]
    path = tmp_path / "model.surefit"
    surefit.save(model.fit(X, y), path)
    again = surefit.load(path, **given)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.certificate_ == model.certificate_
    assert surefit.verify(again, X, y).ok
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_code_is_given_again_and_must_fit(tmp_path, table):
    X, labels, _ = table
    path = tmp_path / "model.surefit"
    NeuralClassifier(net, epochs=1, random_state=0).fit(X, labels).save(path)
    with pytest.raises(ModelFileError, match=r"surefit.load\(path, module=...\)"):
        surefit.load(path)
    with pytest.raises(ModelFileError, match=r"0.weight: not in the module"):
        surefit.load(path, module=nn.Linear(5, 3))
    with pytest.raises(ModelFileError, match=r"0.weight: \(16, 5\).*\(8, 5\)|0.weight: .*8.*16"):
        surefit.load(path, module=nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)))
    with pytest.raises(ModelFileError, match="no code that loss could stand for"):
        surefit.load(path, module=net, loss=nn.CrossEntropyLoss())


def test_importing_the_package_does_not_import_torch():
    import subprocess
    import sys

    words = "import sys, surefit.nn, surefit; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", words], check=True)


def test_a_fit_that_fails_leaves_no_module(table):
    """Nor one that was interrupted."""
    X, y, _ = table
    huge = X.copy()
    huge[-1] = 1e300
    stopped = {"augment": interrupt, "max_iter": 3, "random_state": 0}
    cases = [
        (NeuralClassifier(net, random_state=0), huge, ValueError, "X holds numbers up to 1e\\+300"),
        (NeuralClassifier(net, optimizer="sgd", lr=1e38, batch_size=20), X, NonFiniteLoss, "step"),
        (NeuralClassifier(net, augment=interrupt), X, KeyboardInterrupt, None),
        (MLPClassifier((4,), solver="sgd", learning_rate_init=1e200), X, ValueError, "non-finite"),
        (MLPClassifier((4,), **stopped), X, KeyboardInterrupt, None),
    ]
    for model, rows, error, words in cases:
        with pytest.raises(error, match=words):
            model.fit(rows, y)
        with pytest.raises(NotFittedError):
            model.predict(X)
        with pytest.raises(NotFittedError):
            check_is_fitted(model)


def interrupt(x):
    raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["diverges", "interrupted", "too large"])
def test_a_fit_that_fails_leaves_the_module_it_went_on_with_as_it_was(table, kind):
    """Its weights, its averages and its mode; dropout would show in another one."""
    X, y, _ = table
    noisy = nn.Sequential(
        nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)
    )
    model = NeuralClassifier(noisy, lr=0.05, batch_size=25, random_state=0)
    for _ in range(5):
        model.partial_fit(X, y, classes=np.unique(y))
    before, steps = model.predict_proba(X), model.n_iter_
    rows, error = X, KeyboardInterrupt
    if kind == "diverges":
        model.set_params(clip=None, optimizer="sgd", lr=1e38, batch_size=20, warm_start=True)
        error = NonFiniteLoss
    elif kind == "interrupted":
        calls = iter(range(2))
        model.set_params(augment=lambda x: x if next(calls, None) is not None else interrupt(x))
        model.set_params(batch_size=20)
    else:
        rows, error = np.where(np.arange(len(X))[:, None] == 7, 1e300, X), ValueError
    with pytest.raises(error):
        (model.fit if kind == "diverges" else model.partial_fit)(rows, y)
    assert (model.predict_proba(X) == before).all()
    assert model.n_iter_ == steps
    assert surefit.verify(model, X, y).ok
    model.set_params(augment=None, optimizer="adamw", lr=1e-3)
    assert model.partial_fit(X, y).certificate_.ok


def test_validation_rows_are_weighed_as_the_others(table):
    X, y, _ = table
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weight[y == "top"] *= 5
    given = {"epochs": 2, "validation_fraction": 0.25, "random_state": 0}
    model = NeuralClassifier(net, **given).fit(X, y, sample_weight=weight)
    held = model.validation_rows_
    places = np.searchsorted(model.classes_, y[held])
    losses = -model.predict_log_proba(X[held])[np.arange(len(held)), places]
    expected = np.average(losses, weights=weight[held])
    # means of numbers of order 1 in single precision
    np.testing.assert_allclose(model.validation_curve_[-1], expected, rtol=1e-5)
    assert abs(losses.mean() - expected) > 1e-3 * expected


def test_lazy_layers_take_their_sizes_and_weights_from_the_rows_and_the_seed(tmp_path, table):
    X, y, _ = table
    lazy = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(3))

    def normed():
        return nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.LazyLinear(3))

    assert NeuralClassifier(normed, epochs=2, random_state=0).fit(X, y).certificate_.ok
    models = []
    for seed in (1, 2):
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            models.append(NeuralClassifier(lazy, epochs=2, random_state=0).fit(X, y))
    expected = models[0].predict_proba(X)
    assert (models[1].predict_proba(X) == expected).all()
    assert surefit.verify(models[0], X, y).ok
    surefit.save(models[0], tmp_path / "lazy")
    assert (surefit.load(tmp_path / "lazy", module=lazy).predict_proba(X) == expected).all()


class Turned(nn.Module):
    """Complex weights and buffers, and one that is whole."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(5, 3)
        self.turn = nn.Parameter(torch.exp(1j * torch.arange(3)))
        self.register_buffer("still", 1j * torch.ones(3, 2))
        self.register_buffer("count", torch.arange(3))

    def forward(self, x):
        return (self.body(x) * self.turn * self.still[:, 0]).real + self.count


def test_complex_weights_are_kept_in_a_file(tmp_path, table):
    X, y, _ = table
    model = NeuralClassifier(Turned(), epochs=40, lr=0.1, random_state=0).fit(X, y)
    surefit.save(model, tmp_path / "turned")
    again = surefit.load(tmp_path / "turned", module=Turned())
    state = again.module_.state_dict()
    for name, value in model.module_.state_dict().items():
        assert state[name].dtype == value.dtype
        assert torch.equal(state[name], value)
    assert surefit.verify(again, X, y).ok


def test_nothing_to_learn_says_so(table):
    X, _, number = table
    with pytest.raises(ValueError, match="module has no parameter that requires a gradient"):
        NeuralRegressor(nn.Identity()).fit(X[:, :1], number)
