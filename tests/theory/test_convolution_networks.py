"""The pipeline, LeNet, AlexNet and ResNet: shapes, counts, and that they learn: CNN-11 to CNN-14."""

import io
import lzma

import numpy as np
import pytest
import sklearn.datasets
from sklearn.linear_model import LogisticRegression
from tests.data import data_folder

torch = pytest.importorskip("torch")
nn = torch.nn

from surefit.nn.cnn import AlexNet, AlexNetSizes, ConvNet, ConvNetSizes, LeNet, LeNetSizes  # noqa: E402
from surefit.nn.resnet import (  # noqa: E402
    Residual,
    ResNet,
    ResNetSizes,
    resnet18,
    resnet18_cifar,
    resnet20,
    resnet34,
    resnet50,
)


def _count(net):
    return sum(p.numel() for p in net.parameters())


def _shapes(net, X):
    """The shapes after each part of a Sequential, without the batch."""
    shapes = []
    for part in net:
        X = part(X)
        shapes.append(tuple(X.shape[1:]))
    return shapes


def _descend(net, X, y, *, steps, lr, loss=nn.functional.cross_entropy):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    values = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(net(X), y)
        value.backward()
        optimizer.step()
        values.append(float(value.detach()))
    return values


def _decoded(path):
    """(n, 32, 32, 3) bytes from planes G, R - G, B - G that were differenced along both sides, modulo 256."""
    with lzma.open(path) as file:
        planes = np.load(io.BytesIO(file.read()))
    for axis in (2, 3):
        planes = np.add.accumulate(planes, axis, dtype=np.uint8)
    planes[:, 1:] += planes[:, :1]
    return np.ascontiguousarray(planes[:, [1, 0, 2]].transpose(0, 2, 3, 1))


@pytest.mark.spec("CNN-11")
def test_the_pipeline_beats_a_linear_model_on_digits():
    """[conv + ReLU + pool]*, flatten, perceptron, softmax: above logistic regression on 8 x 8 digits."""
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    X = (X / 16.0).astype(np.float32)
    train, test = np.arange(0, 900), np.arange(900, 1797)
    linear = LogisticRegression(max_iter=2000).fit(X[train], y[train]).score(X[test], y[test])
    torch.manual_seed(0)
    net = ConvNet(ConvNetSizes(side=8, widths=(16, 32), hidden=64))
    pictures = torch.from_numpy(X).reshape(-1, 1, 8, 8)
    _descend(net, pictures[train], torch.from_numpy(y[train]), steps=120, lr=5e-3)
    with torch.no_grad():
        scores = net(pictures[test])
    accuracy = float((scores.argmax(1).numpy() == y[test]).mean())
    assert accuracy > linear + 0.01
    torch.testing.assert_close(scores.softmax(1).sum(1), torch.ones(len(test)))


@pytest.mark.spec("CNN-12")
def test_lenet_has_the_published_shapes_and_counts():
    net = LeNet()
    shapes = _shapes(net, torch.zeros(1, 1, 32, 32))
    pooled = [(6, 28, 28), (6, 14, 14), (16, 10, 10), (16, 5, 5), (120,), (84,), (10,)]
    assert [shapes[i] for i in (0, 2, 3, 5, 7, 9, 11)] == pooled
    weighted = [_count(part) for part in net if _count(part)]
    assert weighted == [156, 2416, 48120, 10164, 850]
    assert _count(net) == 61706
    small = LeNet(LeNetSizes(side=28))
    assert _count(small) == 61706
    assert small(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


@pytest.mark.spec("CNN-13")
def test_alexnet_has_the_published_shapes_and_counts():
    with torch.device("meta"):
        net = AlexNet()
        shapes = _shapes(net, torch.zeros(1, 3, 224, 224))
        whole = AlexNet(AlexNetSizes(groups=1))
    sides = [(96, 55, 55), (96, 27, 27), (256, 27, 27), (256, 13, 13), (384, 13, 13), (384, 13, 13)]
    assert [shapes[i] for i in (0, 3, 4, 7, 8, 10)] == sides
    assert [shapes[i] for i in (12, 14, 15)] == [(256, 13, 13), (256, 6, 6), (9216,)]
    assert [shapes[i] for i in (17, 20, 22)] == [(4096,), (4096,), (1000,)]
    assert _count(net[0]) == 34944
    assert _count(net) == 60965224
    assert _count(whole) == 62378344


@pytest.mark.spec("CNN-14")
@pytest.mark.parametrize(
    ("make", "count", "side", "layers"),
    [
        (resnet20, 269722, 32, 20),
        (resnet18_cifar, 11173962, 32, 18),
        (resnet18, 11689512, 224, 18),
        (resnet34, 21797672, 224, 34),
        (resnet50, 25557032, 224, 50),
    ],
)
def test_resnets_have_the_published_counts(make, count, side, layers):
    with torch.device("meta"):
        net = make()
        out = net(torch.zeros(2, 3, side, side))
    assert _count(net) == count
    assert out.shape == (2, 10 if side == 32 else 1000)
    weighted = [n for n, m in net.named_modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert sum("shortcut" not in name for name in weighted) == layers


@pytest.mark.spec("CNN-14")
def test_a_block_without_a_residual_is_the_identity_and_its_jacobian_is_one_more():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)).double()
    block, x = Residual(body), torch.randn(4, dtype=torch.float64)
    total = torch.autograd.functional.jacobian(block, x)
    inner = torch.autograd.functional.jacobian(body, x)
    torch.testing.assert_close(
        total, torch.eye(4, dtype=torch.float64) + inner, rtol=1e-13, atol=1e-13
    )
    for p in body.parameters():
        nn.init.zeros_(p)
    assert torch.equal(block(x), x)
    # in a ResNet, whose blocks end in a ReLU: with the last norm's gain 0, what is not negative passes
    part = ResNet(ResNetSizes()).layer1[0].eval()
    nn.init.zeros_(part.bn2.weight)
    image = torch.rand(1, 16, 8, 8)
    assert torch.equal(part(image), image)


@pytest.mark.spec("CNN-14")
def test_a_deep_residual_net_trains_where_a_plain_one_stalls():
    """40 layers of the same width and start: x + R(x) learns, R(x) alone stays where it began."""

    def made(residual):
        torch.manual_seed(1)
        blocks = []
        for _ in range(40):
            body = nn.Sequential(nn.Linear(16, 16), nn.Tanh())
            nn.init.normal_(body[0].weight, 0.0, 0.1)
            blocks.append(Residual(body) if residual else body)
        return nn.Sequential(nn.Linear(2, 16), *blocks, nn.Linear(16, 2))

    generator = torch.Generator().manual_seed(2)
    X = torch.randn(128, 2, generator=generator)
    y = (X[:, 0] * X[:, 1] > 0).long()  # exclusive or of the signs
    plain = _descend(made(False), X, y, steps=100, lr=3e-3)
    deep = _descend(made(True), X, y, steps=100, lr=3e-3)
    share = float(y.float().mean())
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    assert plain[-1] > entropy - 0.02  # no better than the share of the classes
    assert deep[-1] < 0.2


@pytest.mark.spec("CNN-14")
def test_published_weights_of_resnet20_load_and_classify():
    """91.5 % of 1000 CIFAR-10 test pictures, as published for these weights on them."""
    folder = data_folder()
    if folder is None or not (folder / "weights" / "resnet20_cifar10.npz").exists():
        pytest.skip("the folder of public data sets is not here; SUREFIT_DATA names it")
    net = resnet20().eval()
    with np.load(folder / "weights" / "resnet20_cifar10.npz") as stored:
        state = {name: torch.from_numpy(stored[name]) for name in stored.files}
    lost = net.load_state_dict(state, strict=False)
    assert not lost.unexpected_keys
    assert all(name.endswith("num_batches_tracked") for name in lost.missing_keys)
    pictures = _decoded(folder / "images" / "cifar10" / "test1k_images_delta.npy.xz")
    labels = np.load(folder / "images" / "cifar10" / "test1k_labels.npy")
    X = torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255
    mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    X = (X - mean[:, None, None]) / spread[:, None, None]
    with torch.no_grad():
        found = torch.cat([net(part).argmax(1) for part in X.split(250)]).numpy()
    assert (found == labels).mean() == pytest.approx(
        0.915, abs=0.0011
    )  # a picture on the border may flip


def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="side must be 28 or 32"):
        LeNet(LeNetSizes(side=30))
    with pytest.raises(ValueError, match="cannot be halved 3 times"):
        ConvNet(ConvNetSizes(side=4, widths=(4, 4, 4)))
    with pytest.raises(ValueError, match="one entry for each stage"):
        ResNet(ResNetSizes(blocks=(1, 2)))
