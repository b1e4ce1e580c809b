"""Augmentation keeps labels, shapes and its own past: NN-20."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from surefit.nn.augment import Augment, rotate  # noqa: E402

ALL = Augment(flip=True, shift=2, crop=0.7, rotation=20.0)


def _pictures(n=6, channels=3, height=12, width=10, seed=0):
    return torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.spec("NN-20")
@pytest.mark.parametrize(
    "augment",
    [
        Augment(),
        Augment(flip=True),
        Augment(shift=2),
        Augment(crop=0.5),
        Augment(rotation=30.0),
        ALL,
    ],
)
def test_shapes_and_types_are_kept(augment):
    """Each picture stays in its row, so that its label does; bytes stay bytes; the input is left alone."""
    X = _pictures()
    before = X.clone()
    out = augment(X, seed=0, epoch=0, index=range(6))
    assert out.shape == X.shape
    assert out.dtype == X.dtype
    assert torch.equal(X, before)
    raw = (255 * X).to(torch.uint8)
    assert augment(raw, seed=0, epoch=0, index=range(6)).dtype == torch.uint8
    constant = torch.arange(6.0)[:, None, None, None].expand(6, 1, 12, 10)  # row i holds i
    moved = augment(constant.contiguous(), seed=0, epoch=0, index=range(6))
    centre = moved[:, 0, 5:7, 4:6]
    torch.testing.assert_close(centre, constant[:, 0, 5:7, 4:6], rtol=1e-5, atol=1e-5)


@pytest.mark.spec("NN-20")
def test_rotating_by_nothing_is_the_identity():
    X = _pictures()
    assert torch.equal(rotate(X, 0.0), X)
    assert torch.equal(rotate(X, 360.0), X)
    assert torch.equal(Augment()(X, seed=0, epoch=0, index=range(6)), X)
    assert not torch.equal(rotate(X, 1.0), X)


@pytest.mark.spec("NN-20")
@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_rotating_by_quarters_moves_pixels(quarters):
    """Against torch's exact rotation; a picture that is not square can turn by half."""
    square = _pictures(height=9, width=9)
    turned = torch.rot90(square, quarters, dims=(2, 3))
    torch.testing.assert_close(rotate(square, 90.0 * quarters), turned, rtol=0, atol=1e-5)
    if quarters == 2:
        oblong = _pictures()
        torch.testing.assert_close(rotate(oblong, 180.0), oblong.flip(2, 3), rtol=0, atol=1e-5)


def test_rotation_keeps_lengths_in_a_picture_that_is_not_square():
    """A quarter turn of a 9 x 15 picture takes what is 3 above the centre 3 to the left, right goes up."""
    for place, goal in [((1, 7), (4, 4)), ((4, 10), (1, 7))]:
        X = torch.zeros(1, 1, 9, 15)
        X[0, 0, place[0], place[1]] = 1.0
        turned = rotate(X, 90.0)
        assert divmod(int(turned.argmax()), 15) == goal
        assert float(turned.max()) == pytest.approx(1.0, abs=1e-4)


def test_each_picture_has_its_own_draw_that_does_not_hang_on_the_batch():
    """A pure function of (seed, epoch, index): batches, order and company do not matter."""
    X = _pictures(40)
    whole = ALL(X, seed=3, epoch=5, index=torch.arange(40))
    order = np.random.default_rng(0).permutation(40)
    for rows in np.split(order, 8):
        part = ALL(X[rows], seed=3, epoch=5, index=rows)
        assert torch.equal(part, whole[rows])
    for other in ({"seed": 4, "epoch": 5}, {"seed": 3, "epoch": 6}):
        assert not torch.allclose(ALL(X, index=np.arange(40), **other), whole)
    same = X[:1].expand(40, -1, -1, -1)
    different = ALL(same, seed=3, epoch=5, index=np.arange(40))
    assert len({bytes(picture.numpy().tobytes()) for picture in different}) == 40


def test_flips_and_shifts_are_exact_and_cover_their_range():
    """Half are mirrored; all 25 shifts of up to 2 pixels occur, equally often; what comes in is zero."""
    n = 5000
    X = torch.zeros(n, 1, 5, 5)
    X[:, 0, 2, 1] = 1.0
    mirrored = Augment(flip=True)(X, seed=0, epoch=0, index=range(n))
    share = float(mirrored[:, 0, 2, 3].mean())
    assert share == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(n))
    assert float(mirrored.sum()) == n
    X = torch.zeros(n, 1, 5, 5)
    X[:, 0, 2, 2] = 1.0
    counts = Augment(shift=2)(X, seed=0, epoch=0, index=range(n)).sum(dim=(0, 1))
    assert float(counts.sum()) == n
    chi2 = float(((counts - n / 25) ** 2 / (n / 25)).sum())
    assert chi2 < 51.2  # the 99.9 % point with 24 degrees of freedom


def test_a_crop_enlarges_what_it_keeps():
    """A picture that rises linearly from left to right rises by the kept part, pixel for pixel."""
    ramp = torch.linspace(0, 1, 33).expand(200, 1, 33, 33).contiguous()
    out = Augment(crop=0.5)(ramp, seed=0, epoch=0, index=range(200))
    slope = (out[:, 0, 16, 24] - out[:, 0, 16, 8]) / (ramp[:, 0, 16, 24] - ramp[:, 0, 16, 8])
    assert 0.5 - 1e-4 <= float(slope.min()) < 0.55
    assert 0.95 < float(slope.max()) <= 1 + 1e-4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shift": -1}, "shift must be"),
        ({"shift": 1.5}, "shift must be"),
        ({"crop": 0.0}, "crop must be in"),
        ({"rotation": float("nan")}, "rotation must be in"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        Augment(**options)


def test_bad_pictures_and_indices_are_named():
    with pytest.raises(ValueError, match=r"needs \(n, channels, height, width\)"):
        ALL(torch.zeros(3, 4, 4), seed=0, epoch=0, index=range(3))
    with pytest.raises(ValueError, match="one number for each of 3 pictures"):
        ALL(torch.zeros(3, 1, 4, 4), seed=0, epoch=0, index=range(2))


@pytest.mark.spec("NN-20")
def test_the_trainer_gives_each_picture_its_own_index():
    """The pictures of a row come out the same whatever the batches are, and the labels stay with them."""
    from surefit.nn.train import train

    seen = {}

    class Watched:
        def __call__(self, X, *, seed, epoch, index):
            out = ALL(X, seed=seed, epoch=epoch, index=index)
            seen.update({(size, epoch, int(row)): part for row, part in zip(index, out)})
            return out

    X, y = _pictures(12), torch.arange(12) % 3
    for size in (4, 6):
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(360, 3))
        loss = torch.nn.CrossEntropyLoss(reduction="none")
        train(net, (X, y), loss, epochs=2, batch_size=size, augment=Watched(), seed=7, device="cpu")
    epochs = sorted({epoch for _, epoch, _ in seen})
    assert len(epochs) == 2
    assert len(seen) == 48
    for epoch in epochs:
        expected = ALL(X, seed=7, epoch=epoch, index=range(12))
        for size in (4, 6):
            found = torch.stack([seen[size, epoch, row] for row in range(12)])
            torch.testing.assert_close(found, expected)
