"""Nearest neighbours: scikit-learn's answers, exact where floats are not, and a certificate that can fail."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.neighbors as theirs
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from tests.data import load

import surefit
from surefit import Kind, Status
from surefit.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from surefit.neighbors._claims import count_wrong, leave_one_out_claim
from surefit.solvers import exact_distances, neighbours
from surefit.solvers.neighbours import NeighbourIndex


def exactly(queries, rows, k):
    """The k nearest rows by (exact distance, row number), from the definition, in rational numbers."""
    found = []
    for q in np.asarray(queries, dtype=np.float64):
        point = [Fraction(float(x)) for x in q]
        squares = [
            sum((a - Fraction(float(x))) ** 2 for a, x in zip(point, row))
            for row in np.asarray(rows, float)
        ]
        found.append(sorted(range(len(rows)), key=lambda i: (squares[i], i))[:k])
    return np.array(found)


def adversarial():
    """Rows on which floating point goes wrong: name -> (queries, rows)."""
    rng = np.random.default_rng(0)
    normal, lattice = rng.normal(size=(12, 3)), rng.integers(0, 3, size=(90, 3)).astype(float)
    near = 1 + rng.integers(-3, 4, size=(90, 3)) * 2.0**-52
    swapped = np.array([rng.permutation([0.1, 0.2, 0.7]) for _ in range(90)])
    return {
        "normal": (normal, rng.normal(size=(90, 3))),
        "lattice, massive ties": (lattice[:12], lattice),
        "tenths": (lattice[:12] / 10, lattice / 10),
        "ties by permutation": (np.full((3, 3), 0.1), swapped),
        "near-ties below rounding": (1 + normal, near),
        "large offset": (1e8 + normal * 1e-6, 1e8 + rng.normal(size=(90, 3)) * 1e-6),
        "query far from the rows": (normal, 1e8 + rng.normal(size=(90, 3)) * 1e-6),
        "query very far": (1e250 * normal, rng.normal(size=(90, 3))),
        "one outlier": (normal, np.vstack([rng.normal(size=(89, 3)), np.full((1, 3), 1e12)])),
        "subnormal": (rng.integers(0, 99, (12, 3)) * 5e-324, rng.integers(0, 99, (90, 3)) * 5e-324),
        "tiny": (normal * 1e-200, rng.normal(size=(90, 3)) * 1e-200),
        "huge": (normal * 1e300, rng.normal(size=(90, 3)) * 1e300),
        "tiny query, huge rows": (normal * 1e-310, np.round(rng.normal(size=(90, 3))) * 1e300),
        "largest": (np.sign(normal) * 1.7e308, np.sign(rng.normal(size=(90, 3))) * 1.7e308),
        "all sizes": (10 ** rng.uniform(-300, 300, (12, 3)), 10 ** rng.uniform(-300, 300, (90, 3))),
        "differences whose squares vanish": (
            normal * 1e-180,
            np.vstack([lattice * 1e-180, np.eye(3)]),
        ),
        "one point many times": (normal, np.full((90, 3), 0.1)),
        "duplicates": (normal, np.repeat(rng.normal(size=(9, 3)), 10, axis=0)),
        "one column": (normal[:, :1], rng.normal(size=(90, 1))),
    }


ADVERSARIAL = adversarial()


# ---------------------------------------------------------------------------- exactness


@pytest.mark.parametrize("way", ["products", "tree", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_neighbours_are_exact(name, dtype, way):
    queries, rows = ADVERSARIAL[name]
    with np.errstate(over="ignore"):
        queries, rows = queries.astype(dtype).astype(np.float64), rows.astype(dtype)
    if not (np.isfinite(rows).all() and np.isfinite(queries).all()):
        pytest.skip("these numbers do not exist in float32")
    table = sp.csr_array(rows.astype(np.float64)) if way == "sparse" else rows
    distances, found = NeighbourIndex(table, tree=way == "tree").query(queries, 7)
    want = exactly(queries, rows, 7)
    np.testing.assert_array_equal(found, want)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert count_wrong(table, queries, found) == 0
    for q, near, row in zip(queries, distances, want):
        for d, i in zip(near, row):
            assert d == pytest.approx(true_distance(q, rows[i]), rel=1e-13, abs=5e-324)


def true_distance(q, t):
    square = sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(q, t))
    if square == 0:
        return 0.0
    shift = max(0, 200 - square.numerator.bit_length() + square.denominator.bit_length())
    shift += shift % 2
    root = Fraction(math.isqrt((square * 2**shift).__floor__()), 2 ** (shift // 2))
    return float(root) if root < 2**1024 - 2**970 else math.inf


def test_a_near_tie_that_float64_cannot_see():
    """A difference below 2^-58 in a square next to 3: lost in float64, not in the exact comparison."""
    query, pair = np.zeros((1, 2)), np.array([[3.0**0.5, 2.0**-29], [3.0**0.5, 2.0**-30]])
    squares = (pair**2).sum(axis=1)
    assert squares[0] == squares[1]
    assert NeighbourIndex(pair).query(query, 2)[1].tolist() == [[1, 0]]
    assert count_wrong(pair, query, np.array([[0]])) == 1


def test_products_in_float32_suffice_for_ordinary_rows(monkeypatch):
    """No query of a normal table needs more than the first step: the fallbacks are not silently in use."""
    rng = np.random.default_rng(1)
    rows, queries = rng.normal(size=(3000, 20)), rng.normal(size=(200, 20))
    index = NeighbourIndex(rows)
    want = theirs.NearestNeighbors(n_neighbors=5, algorithm="brute").fit(rows).kneighbors(queries)
    monkeypatch.setattr(NeighbourIndex, "_one_by_one", None)
    monkeypatch.setattr(neighbours, "rank_by_integers", None)
    monkeypatch.setattr(NeighbourIndex, "_ways", lambda self: ("float32",))
    distances, found = index.query(queries, 5)
    np.testing.assert_array_equal(found, want[1])
    np.testing.assert_allclose(distances, want[0], rtol=1e-12)


def test_the_bound_of_the_products_is_a_bound():
    """For every pair: what the score promises is below the exact squared distance."""
    rng = np.random.default_rng(2)
    for scale, offset in itertools.product((1.0, 1e-30, 1e30), (0.0, 3.0)):
        rows = (rng.normal(size=(40, 9)) + offset) * scale
        queries = (rng.normal(size=(15, 9)) * 3 - offset) * scale
        index = NeighbourIndex(rows)
        for kind in (np.dtype(np.float32), np.dtype(np.float64)):
            found, beyond = index._by_products(queries, 6, kind)
            for q, chosen, bound in zip(queries, found, beyond):
                left = np.setdiff1d(np.arange(40), chosen)
                squares, exponent = exact_distances.squared_distances(q, rows[left])
                least = min(Fraction(s) * Fraction(4) ** exponent for s in squares)
                assert least >= Fraction(float(bound))
                assert bound > 0.5 * float(least)  # and not an empty one


def test_integers_agree_with_fractions():
    rng = np.random.default_rng(3)
    for sizes in ((-5, 5), (-300, 300), (-320, -300)):
        q, rows = 10.0 ** rng.uniform(*sizes, 4), 10.0 ** rng.uniform(*sizes, (6, 4))
        squares, exponent = exact_distances.squared_distances(q, rows)
        for row, square in zip(rows, squares):
            want = sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(q, row))
            assert Fraction(square) * Fraction(2) ** (2 * exponent) == want


# ---------------------------------------------------------------------------- agreement


@pytest.mark.spec("CLS-2")
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
@pytest.mark.parametrize(("k", "weights"), [(1, "uniform"), (5, "uniform"), (10, "distance")])
def test_labels_equal_scikit_learn(name, k, weights):
    X, y = load(name)
    train, test = np.arange(len(y)) % 3 > 0, np.arange(len(y)) % 3 == 0
    options = {"n_neighbors": k, "weights": weights}
    ours = KNeighborsClassifier(**options).fit(X[train], y[train])
    other = theirs.KNeighborsClassifier(**options).fit(X[train], y[train])
    np.testing.assert_array_equal(ours.predict(X[test]), other.predict(X[test]))
    np.testing.assert_allclose(ours.predict_proba(X[test]), other.predict_proba(X[test]), rtol=1e-9)
    assert ours.certificate_.ok


@pytest.mark.parametrize("name", ["a9a", "rcv1_small"])
def test_sparse_rows_on_real_data(name):
    X, y = load(name)
    X, y = X[:450], y[:450]
    ours = KNeighborsClassifier().fit(X[:400], y[:400])
    other = theirs.KNeighborsRegressor().fit(X[:400], y[:400])
    np.testing.assert_allclose(ours.kneighbors(X[400:])[0], other.kneighbors(X[400:])[0], atol=1e-7)
    dense = KNeighborsClassifier().fit(X[:400].toarray(), y[:400])
    np.testing.assert_array_equal(
        ours.kneighbors(X[400:])[1], dense.kneighbors(X[400:].toarray())[1]
    )
    assert ours.certify_neighbors(X[400:420]).ok


METRICS = [
    {"metric": "manhattan"},
    {"metric": "minkowski", "p": 3},
    {"metric": "chebyshev"},
    {"metric": "cosine"},
    {"metric": "sqeuclidean"},
    {"metric": "minkowski", "p": 2, "metric_params": {"w": np.array([1.0, 2.0, 0.5])}},
    {"metric": lambda a, b: float(np.abs(a - b).max())},
]


@pytest.mark.parametrize("options", METRICS, ids=str)
def test_other_metrics(options):
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(80, 3)), rng.normal(size=(9, 3))
    y = X @ np.array([1.0, -2.0, 0.5])
    ours = KNeighborsRegressor(4, weights="distance", **options).fit(X, y)
    other = theirs.KNeighborsRegressor(4, weights="distance", **options).fit(X, y)
    np.testing.assert_allclose(ours.kneighbors(Q)[0], other.kneighbors(Q)[0], rtol=1e-9)
    np.testing.assert_array_equal(ours.kneighbors(Q)[1], other.kneighbors(Q)[1])
    np.testing.assert_allclose(ours.predict(Q), other.predict(Q), rtol=1e-9)
    assert ours.effective_metric_ == other.effective_metric_
    report = surefit.verify(ours, X, y)
    assert report.ok
    assert report["exact neighbours"].status is Status.HOLDS
    assert ours.certify_neighbors(Q).ok


def test_precomputed_distances():
    rng = np.random.default_rng(0)
    X, Q, y = rng.normal(size=(50, 3)), rng.normal(size=(9, 3)), rng.integers(0, 3, 50)
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    E = np.sqrt(((Q[:, None] - X) ** 2).sum(axis=2))
    plain = KNeighborsClassifier(3).fit(X, y)
    known = KNeighborsClassifier(3, metric="precomputed").fit(D, y)
    np.testing.assert_array_equal(plain.predict(Q), known.predict(E))
    np.testing.assert_array_equal(plain.predict(None), known.predict(None))
    assert surefit.verify(known, D, y).ok
    graph = theirs.NearestNeighbors(n_neighbors=6).fit(X).kneighbors_graph(X, mode="distance")
    sparse = KNeighborsClassifier(3, metric="precomputed").fit(graph, y)
    np.testing.assert_array_equal(sparse.predict(graph), plain.predict(X))


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
@pytest.mark.parametrize("p", [2, 5, 30])
def test_the_algorithm_does_not_change_the_neighbours(algorithm, p):
    rng = np.random.default_rng(p)
    X = rng.integers(0, 4, size=(6000, p)).astype(float)  # ties
    model = NearestNeighbors(n_neighbors=6, algorithm=algorithm).fit(X)
    plain = NearestNeighbors(n_neighbors=6, algorithm="brute").fit(X)
    np.testing.assert_array_equal(model.kneighbors(X[:40])[1], plain.kneighbors(X[:40])[1])
    assert model.certify_neighbors(X[:40]).ok


def test_float32_whole_numbers_and_frames():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, size=(60, 3)), rng.integers(0, 2, 60)
    want = KNeighborsClassifier().fit(X.astype(float), y).kneighbors(X[:7])[1]
    for rows in (X, X.astype(np.float32), X.tolist(), pd.DataFrame(X, columns=list("abc"))):
        model = KNeighborsClassifier().fit(rows, y)
        np.testing.assert_array_equal(model.kneighbors(rows[:7])[1], want)
        assert model.certificate_.ok
        assert model.certify_neighbors(rows[:7]).ok
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert KNeighborsClassifier().fit(X.astype(np.float32), y).X_fit_.dtype == np.float32


def test_several_outputs():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)), rng.integers(0, 3, size=(60, 2))
    ours, other = KNeighborsClassifier().fit(X, Y), theirs.KNeighborsClassifier().fit(X, Y)
    np.testing.assert_array_equal(ours.predict(X), other.predict(X))
    for a, b in zip(ours.predict_proba(X), other.predict_proba(X)):
        np.testing.assert_allclose(a, b)
    assert ours.outputs_2d_
    assert surefit.verify(ours, X, Y).ok
    values = KNeighborsRegressor(weights="distance").fit(X, Y)
    other = theirs.KNeighborsRegressor(weights="distance").fit(X, Y)
    np.testing.assert_allclose(values.predict(X + 0.1), other.predict(X + 0.1))


def test_neighbours_of_the_training_rows_leave_themselves_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(70, 3)), rng.integers(0, 2, 70)
    model = KNeighborsClassifier(3).fit(X, y)
    distances, indices = model.kneighbors()
    assert (indices != np.arange(70)[:, None]).all()
    np.testing.assert_array_equal(indices, theirs.KNeighborsClassifier(3).fit(X, y).kneighbors()[1])
    folds = cross_val_score(KNeighborsClassifier(3, certify=False), X, y, cv=KFold(70))
    assert model.score(None, y) == pytest.approx(folds.mean())
    graph = model.kneighbors_graph(mode="distance")
    np.testing.assert_allclose(graph[0, indices[0]].toarray().ravel(), distances[0])


@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_the_lists_of_the_largest_k_serve_every_smaller_one(kind):
    rng = np.random.default_rng(0)
    X, y, Q = rng.normal(size=(90, 4)), rng.integers(0, 3, 90), rng.normal(size=(20, 4))
    for weights in ("uniform", "distance"):
        most = kind(12, weights=weights).fit(X, y)
        lists = most.kneighbors(Q)
        for k in (1, 2, 5, 12):
            want = kind(k, weights=weights).fit(X, y).predict(Q)
            np.testing.assert_array_equal(most._predict_from_neighbours(*lists, k), want)


# ---------------------------------------------------------------------------- theory


@pytest.mark.spec("CLS-2")
def test_one_neighbour_makes_no_training_error_on_distinct_points():
    for name in ("iris", "wine", "digits"):
        X, y = load(name)
        X, first = np.unique(X, axis=0, return_index=True)
        assert KNeighborsClassifier(1).fit(X, y[first]).score(X, y[first]) == 1.0


@pytest.mark.spec("CLS-2")
def test_the_contrast_of_distances_shrinks_with_the_dimension():
    """(farthest - nearest) / nearest tends to 0 for independent coordinates (Beyer et al., 1999)."""
    rng = np.random.default_rng(0)
    contrasts = []
    for d in (2, 10, 100, 1000):
        X, Q = rng.uniform(size=(300, d)), rng.uniform(size=(20, d))
        distances = NearestNeighbors(n_neighbors=300).fit(X).kneighbors(Q)[0]
        contrasts.append(np.median(distances[:, -1] / distances[:, 0]) - 1.0)
    assert all(a > 2 * b for a, b in itertools.pairwise(contrasts))
    assert contrasts[-1] < 0.2


def test_leave_one_out_is_as_near_the_true_error_as_the_theorem_says():
    """Mean squared difference at most (6k + 1)/n: 150 draws of 40 rows, two normal classes."""
    rng = np.random.default_rng(0)
    k, n, squares = 3, 40, []
    fresh_y = rng.integers(0, 2, 1500)
    fresh = rng.normal(size=(1500, 2)) + fresh_y[:, None]
    for _ in range(150):
        y = rng.integers(0, 2, n)
        X = rng.normal(size=(n, 2)) + y[:, None]
        if len(np.unique(y)) < 2:
            continue
        model = KNeighborsClassifier(k, certify=False).fit(X, y)
        squares.append((model.score(None, y) - model.score(fresh, fresh_y)) ** 2)
    assert np.mean(squares) <= (6 * k + 1) / n
    assert np.mean(squares) > 0.002  # there is something to bound


def test_the_leave_one_out_claim():
    claim = leave_one_out_claim(0.12, 10_000, 5)
    assert claim.kind is Kind.STATISTICAL
    assert claim.high - claim.estimate == pytest.approx(math.sqrt(31 / (10_000 * 0.05)))
    assert claim.low == 0.0
    assert "0.1200" in claim.statement
    wide = leave_one_out_claim(0.12, 600, 5)
    assert wide.status is Status.UNINFORMATIVE
    assert "9920 rows" in wide.statement  # 31 / (0.05 * 0.25**2)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2400)
    X = rng.normal(size=(2400, 2)) + y[:, None]
    model = KNeighborsClassifier(1).fit(X, y)
    assert model.certificate_["leave-one-out error"].status is Status.UNDECIDED
    claim = surefit.verify(model, X, y)["leave-one-out error"]
    assert claim.status is Status.HOLDS
    assert f"{1 - model.score(None, y):.4f}" in claim.statement
    tied = KNeighborsClassifier(1).fit(np.round(X), y)
    report = surefit.verify(tied, np.round(X), y)["leave-one-out error"]
    assert report.status is Status.UNDECIDED
    assert "same distance" in report.statement


# ---------------------------------------------------------------------------- the model as an object


def test_pickles_clones_and_files(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.array(["no", "yes"])[rng.integers(0, 2, 60)]
    for rows in (X, sp.csr_array(X), X.astype(np.float32)):
        model = KNeighborsClassifier(3, weights="distance").fit(rows, y)
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(rows[:9]), model.predict(rows[:9]))
        surefit.save(model, tmp_path / "model.surefit")
        loaded = surefit.load(tmp_path / "model.surefit")
        np.testing.assert_array_equal(loaded.kneighbors(rows[:9])[1], model.kneighbors(rows[:9])[1])
        assert surefit.verify(loaded, rows, y).ok
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(TypeError, match=r"cannot save KNeighborsClassifier\.metric"):
        surefit.save(KNeighborsClassifier(metric=true_distance).fit(X, y), tmp_path / "m.surefit")


def test_radii_are_scikit_learns():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(60, 3)), rng.normal(size=(5, 3))
    ours, other = NearestNeighbors(radius=0.8).fit(X), theirs.NearestNeighbors(radius=0.8).fit(X)
    for a, b in zip(ours.radius_neighbors(Q)[1], other.radius_neighbors(Q)[1]):
        np.testing.assert_array_equal(np.sort(a), np.sort(b))
    assert (ours.radius_neighbors_graph(Q) != other.radius_neighbors_graph(Q)).nnz == 0
