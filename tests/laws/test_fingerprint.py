"""The fingerprint: blind to storage, sensitive to content (DAT-1)."""

import numpy as np
import pytest
import scipy.sparse as sp

import surefit.fingerprint as module
from surefit.fingerprint import fingerprint

SHAPES = [(1, 1), (3, 2), (17, 5), (40, 1), (2, 300)]


def table(shape, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape).astype(np.float32).astype(np.float64)  # exact in both precisions
    return np.where(rng.random(shape) < density, X, 0.0)


# ---------------------------------------------------------------------------- storage is invisible


@pytest.mark.parametrize("shape", SHAPES)
def test_precision_and_memory_layout_do_not_matter(shape):
    X = table(shape)
    want = fingerprint(X)
    assert fingerprint(X.astype(np.float32)) == want
    assert fingerprint(np.asfortranarray(X)) == want
    assert fingerprint(np.repeat(X, 2, axis=1)[:, ::2]) == want
    assert fingerprint(np.ascontiguousarray(X[::-1])[::-1]) == want
    assert fingerprint(X.astype(np.longdouble)) == want
    assert fingerprint(X.copy().view(X.dtype.newbyteorder("="))) == want


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.int64, bool])
def test_integers_and_booleans_are_their_float_values(dtype):
    X = np.random.default_rng(0).integers(0, 2, size=(9, 4)).astype(dtype)
    assert fingerprint(X) == fingerprint(X.astype(np.float64))
    assert fingerprint(sp.csr_array(X)) == fingerprint(X.astype(np.float64))


@pytest.mark.parametrize("density", [0.0, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_sparse_is_dense(shape, density):
    X = table(shape, density=density)
    want = fingerprint(X)
    for form in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix):
        assert fingerprint(form(X)) == want
    assert fingerprint(sp.csr_array(X.astype(np.float32))) == want


def test_explicit_zeros_and_unsorted_or_duplicate_entries():
    X = table((6, 4), density=0.5)
    want = fingerprint(X)
    zeros = sp.csr_array(X + 1.0)  # every entry stored
    zeros.data = X.ravel().copy()
    assert (zeros.data == 0).any()
    assert fingerprint(zeros) == want
    rows, columns = np.nonzero(X)
    halves = np.tile(X[rows, columns] / 2.0, 2)  # each entry given as two equal halves
    rows, columns = np.tile(rows, 2), np.tile(columns, 2)
    assert fingerprint(sp.coo_array((halves, (rows, columns)), shape=X.shape)) == want
    order = np.lexsort((-columns, rows))  # rows in order, columns backwards and repeated
    indptr = np.searchsorted(rows[order], np.arange(7))
    messy = sp.csr_array((halves[order], columns[order], indptr), shape=X.shape)
    before = messy.data.copy(), messy.indices.copy()
    assert not messy.has_canonical_format
    assert fingerprint(messy) == want
    np.testing.assert_array_equal(messy.data, before[0])  # the caller's matrix is left alone
    np.testing.assert_array_equal(messy.indices, before[1])


@pytest.mark.parametrize("block", [1, 3, 7, 64, 10_000])
def test_block_size_does_not_matter(monkeypatch, block):
    X, y = table((23, 5)), table((23,))
    want = fingerprint(X, y)
    monkeypatch.setattr(module, "_BLOCK", block)
    assert fingerprint(X, y) == want
    assert fingerprint(sp.csr_array(X), y) == want


def test_more_rows_than_a_block():
    X = table((module._BLOCK // 4 + 5, 8))
    changed = X.copy()
    changed[-1, -1] += 1.0
    assert fingerprint(X) == fingerprint(sp.csr_array(X))
    assert fingerprint(X) != fingerprint(changed)


def test_negative_zero_is_zero():
    X = np.array([[0.0, 1.0], [-0.0, 0.0]])
    assert fingerprint(X) == fingerprint(np.abs(X))
    assert fingerprint(np.zeros(3)) == fingerprint(-np.zeros(3))


def test_the_input_is_not_modified():
    X = table((5, 3))
    before = X.copy()
    fingerprint(X)
    np.testing.assert_array_equal(X, before)


# ---------------------------------------------------------------------------- content is visible


def test_each_cell_matters():
    X = table((7, 6))
    seen = {fingerprint(X)}
    for i in np.ndindex(X.shape):
        changed = X.copy()
        changed[i] = np.nextafter(changed[i], np.inf)
        seen.add(fingerprint(changed))
    assert len(seen) == X.size + 1


@pytest.mark.parametrize("value", [1.0, -3.7, 1e-300, 2.0**-1074])
def test_each_of_the_64_bits_matters(value):
    """One bit of one cell, in a table and in a vector; NaN patterns are left out."""
    seen, count = set(), 0
    for bit in range(64):
        cell = np.array([value]).view(np.uint64) ^ np.uint64(1 << bit)
        number = cell.view(np.float64)[0]
        if np.isnan(number):
            continue
        count += 1
        X = table((4, 3))
        X[2, 1] = number
        seen.add(fingerprint(X))
        assert fingerprint(np.array([number])) != fingerprint(np.array([value]))
    assert len(seen) == count


@pytest.mark.parametrize("bit", [0, 1, 7, 8, 31, 32, 51, 52, 56, 62, 63])
def test_the_same_bit_in_two_cells(bit):
    """Both cells of a row, both cells of a column, all cells: changes that could cancel in a sum."""
    X = np.abs(table((6, 4))) % 0.5 + 2.0  # in [2, 2.5): finite after any of these flips
    flipped = (X.view(np.uint64) ^ np.uint64(1 << bit)).view(np.float64)
    seen = {fingerprint(X), fingerprint(flipped)}
    for j in range(1, 4):
        changed = X.copy()
        changed[2, [0, j]] = flipped[2, [0, j]]
        seen.add(fingerprint(changed))
        changed = X.copy()
        changed[[0, j + 1], 1] = flipped[[0, j + 1], 1]
        seen.add(fingerprint(changed))
    assert len(seen) == 8


@pytest.mark.parametrize("count", [2, 4])
def test_sign_flips_in_one_row(count):
    """Flipping signs changes bit 63, and 2^63 (c_j + c_k) = 0 modulo 2^64 for odd keys."""
    X = table((5, 8))
    seen = {fingerprint(X)}
    for start in range(8 - count + 1):
        changed = X.copy()
        changed[3, start : start + count] *= -1.0
        seen.add(fingerprint(changed))
    assert len(seen) == 8 - count + 2


def test_order_of_rows_and_columns():
    X = table((6, 6))
    seen = {fingerprint(X), fingerprint(X.T), fingerprint(X[::-1]), fingerprint(X[:, ::-1])}
    for i in range(5):
        rows, columns = X.copy(), X.copy()
        rows[[i, i + 1]] = rows[[i + 1, i]]
        columns[:, [i, i + 1]] = columns[:, [i + 1, i]]
        seen |= {fingerprint(rows), fingerprint(columns)}
        entries = X.copy()  # two entries of one row exchanged
        entries[0, [i, i + 1]] = entries[0, [i + 1, i]]
        seen.add(fingerprint(entries))
    assert len(seen) == 4 + 15


def test_shape_matters():
    X = table((4, 6))
    shapes = [(4, 6), (6, 4), (24, 1), (1, 24), (24,), (12, 2)]
    assert len({fingerprint(X.reshape(shape)) for shape in shapes}) == len(shapes)
    padded = [np.zeros((n, p)) for n in (1, 2, 3) for p in (1, 2, 3)]
    assert len({fingerprint(Z) for Z in padded}) == 9


def test_which_array_is_which():
    a, b = table((5,), 1), table((5,), 2)
    pairs = [(a, b), (b, a), (a, b, None), (a, None, b), (a, a), (b, b), (a,), (None, a)]
    assert len({fingerprint(*pair) for pair in pairs}) == len(pairs)


def test_repeated_rows_are_counted():
    row = table((1, 4))
    assert fingerprint(np.repeat(row, 3, axis=0)) != fingerprint(np.repeat(row, 5, axis=0))
    X = np.repeat(row, 6, axis=0)
    changed = X.copy()
    changed[[1, 4]] += 1.0  # two equal rows changed alike: they differ by their index
    other = X.copy()
    other[[2, 3]] += 1.0
    assert len({fingerprint(X), fingerprint(changed), fingerprint(other)}) == 3


# ---------------------------------------------------------------------------- labels


def test_label_strings():
    y = np.array(["cat", "dog", "cat", "eel"])
    want = fingerprint(y)
    assert fingerprint(y.astype(object)) == want
    assert fingerprint(y.astype("U20")) == want
    others = [
        ["cat", "dog", "dog", "eel"],  # one label
        ["dog", "cat", "cat", "eel"],  # two exchanged
        ["bat", "dog", "bat", "eel"],  # a class renamed, its order kept
        ["cat", "dog", "cat", "eels"],
        ["dog", "cat", "dog", "eel"],  # two classes renamed into each other
    ]
    assert len({want} | {fingerprint(np.array(o)) for o in others}) == 6


def test_names_of_labels_do_not_run_into_each_other():
    """Equal codes, and names that are equal one after the other."""
    pairs = [
        ("a", "bc"),
        ("ab", "c"),
        ("abc", ""),
        ("a\x1fb", "c"),
        ("a", "b\x1fc"),
        ("a\\sb", "c"),
    ]
    assert len({fingerprint(np.array(sorted(pair))) for pair in pairs}) == len(pairs)


def test_no_accidental_collisions():
    """20,000 tables that differ in a single small integer: none share an identifier."""
    seen = {
        fingerprint(np.array([[float(i), 1.0], [2.0, float(j)]]))
        for i in range(140)
        for j in range(140)
    }
    assert len(seen) == 140**2
