"""Dense = sparse = torch = row blocks, to rounding, for every estimator and every input that it takes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import surefit
from surefit import linear_model as lm
from surefit.design import RankRows, RowBlocks, as_design
from surefit.svm import LinearSVC, LinearSVR

torch = pytest.importorskip("torch")

N, P = 240, 6


def _data(seed=0, classes=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P)) * 10.0 ** rng.integers(-1, 2, P) + rng.standard_normal(P)
    X[rng.random((N, P)) < 0.4] = 0.0
    signal = X @ (rng.standard_normal(P) / np.abs(X).max(axis=0))
    if classes is None:
        return X, signal + 0.3 * rng.standard_normal(N), rng.integers(0, 4, N).astype(float)
    noise = rng.gumbel(size=(N, classes)) + np.outer(signal, np.arange(classes))
    return X, noise.argmax(axis=1), rng.integers(0, 4, N).astype(float)


REGRESSORS = {
    "LinearRegression": lm.LinearRegression(),
    "LinearRegression, no intercept": lm.LinearRegression(fit_intercept=False),
    "Ridge": lm.Ridge(alpha=0.7),
    "Ridge, alpha=0": lm.Ridge(alpha=0.0),
    "Ridge, positive": lm.Ridge(alpha=0.7, positive=True),
    "Lasso": lm.Lasso(alpha=0.05, tol=1e-10),
    "Lasso, positive": lm.Lasso(alpha=0.02, positive=True, tol=1e-10),
    "ElasticNet": lm.ElasticNet(alpha=0.05, l1_ratio=0.3, tol=1e-10),
    "HuberRegressor": lm.HuberRegressor(),
    "HuberRegressor, no penalty": lm.HuberRegressor(alpha=0.0, fit_intercept=False),
    "HuberRegressor, least absolute deviations": lm.HuberRegressor(epsilon=1.0),
    "TukeyRegressor": lm.TukeyRegressor(),
    "QuantileRegressor": lm.QuantileRegressor(alpha=0.01),
    "QuantileRegressor, no penalty": lm.QuantileRegressor(alpha=0.0, quantile=0.4),
    "SGDRegressor": lm.SGDRegressor(shuffle=False, eta0=1e-4),
    "SGDRegressor, l1, averaged": lm.SGDRegressor(
        "huber", penalty="l1", average=True, shuffle=False, eta0=1e-3
    ),
    "SGDRegressor, early stopping": lm.SGDRegressor(
        shuffle=False, eta0=1e-4, early_stopping=True, random_state=0
    ),
    "LinearSVR": LinearSVR(epsilon=0.1, tol=1e-12),
    "LinearSVR, squared, free intercept": LinearSVR(
        loss="squared_epsilon_insensitive", penalize_intercept=False, tol=1e-12
    ),
}
CLASSIFIERS = {
    "LogisticRegression": lm.LogisticRegression(tol=1e-10),
    "LogisticRegression, no penalty": lm.LogisticRegression(C=np.inf, tol=1e-10, max_iter=500),
    "LogisticRegression, balanced": lm.LogisticRegression(class_weight="balanced", tol=1e-10),
    "SGDClassifier": lm.SGDClassifier("log_loss", shuffle=False, alpha=1.0),
    "SGDClassifier, elastic net, averaged": lm.SGDClassifier(
        penalty="elasticnet", average=30, shuffle=False, alpha=0.1, class_weight="balanced"
    ),
    "SGDClassifier, early stopping": lm.SGDClassifier(
        "modified_huber", shuffle=False, alpha=1.0, early_stopping=True, random_state=0
    ),
    "Perceptron": lm.Perceptron(shuffle=False),
    "LinearSVC": LinearSVC(tol=1e-12),
    "LinearSVC, hinge": LinearSVC(loss="hinge", C=0.1, tol=1e-12),
    "LinearSVC, hinge, free intercept": LinearSVC(
        loss="hinge", penalize_intercept=False, class_weight="balanced", tol=1e-12
    ),
}
SPARSE_CLASSIFIERS = {
    "LogisticRegression, l1": lm.LogisticRegression(C=0.3, l1_ratio=1.0, tol=1e-10),
    "LogisticRegression, elastic net": lm.LogisticRegression(
        C=0.3, l1_ratio=0.5, tol=1e-10, fit_intercept=False
    ),
}
CASES = [(name, model, None) for name, model in REGRESSORS.items()]
CASES += [(f"{name}, {k} classes", model, k) for name, model in CLASSIFIERS.items() for k in (2, 3)]
CASES += [(f"{name}, 2 classes", model, 2) for name, model in SPARSE_CLASSIFIERS.items()]


def _inputs(X, folder):
    """X in every form, with the kind that an estimator says it takes."""
    np.save(folder / "a.npy", X[:100])
    np.save(folder / "b.npy", X[100:])
    yield "dense", "Fortran order", np.asfortranarray(X)
    yield "sparse", "csr matrix", sp.csr_matrix(X)
    yield "sparse", "csc array", sp.csc_array(X)
    yield "torch", "tensor", torch.tensor(X)
    yield "torch", "strided tensor", torch.tensor(np.asfortranarray(X))
    yield "blocks", "two files", RowBlocks([folder / "a.npy", folder / "b.npy"])
    parts = [folder / "a.npy", folder / "b.npy"]
    yield "blocks", "small blocks", RowBlocks(parts, block_bytes=1000)
    yield "blocks", "an iterator", RowBlocks(lambda: iter(np.array_split(X, 7)))
    yield "ranks", "one rank", RankRows(X)  # several of them: tests/distributed
    yield "ranks", "one rank, sparse", RankRows(sp.csr_array(X))
    yield "ranks", "one rank, on disk", RankRows(RowBlocks(parts))


def _like(values, X):
    return torch.as_tensor(values) if isinstance(X, torch.Tensor) else values


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize(("name", "model", "classes"), CASES, ids=[case[0] for case in CASES])
def test_every_input_gives_the_same_model_and_certificate(name, model, classes, weighted, tmp_path):
    X, y, weights = _data(classes=classes)
    s = weights if weighted else None
    reference = clone(model).fit(X, y, sample_weight=s)
    taken = model._accepts()
    seen = set()
    for kind, form, given in _inputs(X, tmp_path):
        if kind not in taken:
            continue
        seen.add(kind)
        fitted = clone(model).fit(
            given, _like(y, given), sample_weight=None if s is None else _like(s, given)
        )
        if kind == "torch":
            assert isinstance(fitted.coef_, torch.Tensor), form
            assert fitted.coef_.dtype == torch.float64
        scale = np.abs(reference.coef_).max()
        np.testing.assert_allclose(
            np.asarray(fitted.coef_), reference.coef_, rtol=0, atol=1e-8 * scale, err_msg=form
        )
        predicted = fitted.predict(given)
        assert isinstance(predicted, torch.Tensor) == (kind == "torch")
        np.testing.assert_allclose(
            np.asarray(predicted), reference.predict(X), rtol=1e-7, atol=1e-8, err_msg=form
        )
        assert fitted.certificate_.data_id == reference.certificate_.data_id, form
        assert fitted.certificate_.ok
        assert [c.name for c in fitted.certificate_.claims] == [
            c.name for c in reference.certificate_.claims
        ]
        again = surefit.verify(
            fitted,
            given,
            _like(y, given),
            sample_weight=None if s is None else _like(s, given),
        )
        assert again.ok, form
        # a stranger may hold the same data in another form
        assert surefit.verify(fitted, X, y, sample_weight=s).ok
    assert seen == set(taken)


def test_weights_count_repetitions_on_disk_and_in_tensors(tmp_path):
    X, y, weights = _data()
    repeated = np.repeat(np.arange(N), weights.astype(int))
    reference = lm.Ridge().fit(X[repeated], y[repeated])
    np.save(tmp_path / "x.npy", X)
    for given, s in [
        (RowBlocks(tmp_path / "x.npy"), weights),
        (torch.tensor(X), torch.tensor(weights)),
    ]:
        fitted = lm.Ridge().fit(given, _like(y, given), sample_weight=s)
        np.testing.assert_allclose(np.asarray(fitted.coef_), reference.coef_, rtol=1e-9)


def test_float32_stays_float32_and_on_its_device():
    X, y, _ = _data()
    fitted = lm.Ridge().fit(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    assert fitted.coef_.dtype == torch.float32
    assert fitted.predict(torch.tensor(X, dtype=torch.float32)).dtype == torch.float32
    assert fitted.certificate_.ok


def test_several_targets_in_a_tensor():
    X, y, _ = _data()
    Y = np.column_stack([y, -2.0 * y + X[:, 0]])
    fitted = lm.Ridge().fit(torch.tensor(X), torch.tensor(Y))
    np.testing.assert_allclose(fitted.coef_.numpy(), lm.Ridge().fit(X, Y).coef_, rtol=1e-9)
    assert fitted.intercept_.shape == (2,)


def test_operations_of_every_design_agree(tmp_path):
    X, y, weights = _data(3)
    s = weights + 0.5
    np.save(tmp_path / "x.npy", X)
    dense = as_design(X)
    w, center = np.arange(1.0, P + 1), X.mean(axis=0)
    for given in (
        sp.csr_array(X), torch.tensor(X), RowBlocks(tmp_path / "x.npy", block_bytes=700),
        RankRows(X), RankRows(torch.tensor(X)), RankRows(RowBlocks(tmp_path / "x.npy")),
    ):  # fmt: skip
        design = as_design(given)
        near = design.vector(s)
        pairs = [
            (design.dot(w), X @ w),
            (design.tdot(near), X.T @ s),
            (design.gram(near, center), (X - center).T @ (s[:, None] * (X - center))),
            (design.gram(), X.T @ X),
            (design.row_squares(), (X**2).sum(axis=1)),
            (design.column_norms(near, center), np.sqrt(s @ (X - center) ** 2)),
            (design.mean(near), s @ X / s.sum()),
            (design.columns([4, 1]), X[:, [4, 1]]),
            (design.home(), X),
            (design.sample(7).home(), X[::7]),
            (design.sum_squares(near), (s[:, None] * X**2).sum()),
        ]
        target = design.vector(y[:, None])
        for ours, theirs in zip(
            design.moments(target, near, centred=True),
            dense.moments(y[:, None], s, centred=True),
            strict=True,
        ):
            pairs.append((ours, theirs))
        z, mean = design.dot_and_mean(w, near)
        pairs += [(z, X @ w), (mean, s @ X / s.sum())]
        residual = design.respond(w, lambda rows, z, near=near: near[rows] * z, center)
        pairs.append((residual, (X - center).T @ (s * ((X - center) @ w))))
        for ours, theirs in pairs:
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-11, atol=1e-11)


def test_moments_of_rows_that_drift_are_centred_again():
    """The first block is far from the mean: centring there would cancel twelve digits."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 3)) + np.linspace(0.0, 1e6, 60_000)[:, None] * [1, 0, -1]
    X[:, 0] += 1e8
    gram, _, mean, _ = as_design(X).moments(X[:, :1], np.ones(len(X)), centred=True)
    exact = X.astype(np.longdouble)
    exact = exact - exact.mean(axis=0)
    np.testing.assert_allclose(gram, (exact.T @ exact).astype(float), rtol=1e-10, atol=1e-4)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-14, atol=1e-12)


def test_a_model_fitted_on_tensors_predicts_arrays_and_is_saved_as_arrays(tmp_path):
    X, y, _ = _data(classes=3)
    for labels, given in ((y, X), (np.minimum(y, 1), X)):
        model = lm.LogisticRegression().fit(torch.tensor(given), torch.tensor(labels))
        plain = lm.LogisticRegression().fit(given, labels)
        assert torch.equal(model.predict(torch.tensor(given)), torch.tensor(plain.predict(given)))
        for method in ("decision_function", "predict_proba", "predict_log_proba", "predict"):
            ours, theirs = (
                getattr(model, method)(torch.tensor(given)),
                getattr(plain, method)(given),
            )
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(getattr(model, method)(given), theirs, rtol=1e-6, atol=1e-8)
        model.save(tmp_path / "model.surefit")
        loaded = surefit.load(tmp_path / "model.surefit")
        assert isinstance(loaded.coef_, np.ndarray)
        np.testing.assert_array_equal(loaded.predict(given), plain.predict(given))
        assert surefit.verify(loaded, given, labels).ok


def test_log_probabilities_of_tensors_do_not_underflow():
    X = torch.tensor([[-2000.0], [-1.0], [1.0], [2000.0]], dtype=torch.float64)
    model = lm.LogisticRegression(C=100.0).fit(X[1:3], torch.tensor([0, 1]))
    logs = model.predict_log_proba(X)
    assert bool(torch.isfinite(logs).all())
    assert float(logs[0, 1]) < -1000.0


@pytest.mark.spec("REG-14")
@pytest.mark.parametrize("positive", [False, True])
def test_a_wide_path_is_the_same_for_every_input(positive, tmp_path):
    """More columns than rows: the columns of a working set are gathered from wherever they are."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, 900)) * (rng.random((N, 900)) < 0.3)
    y = X[:, ::90].sum(axis=1) + 0.5 * rng.standard_normal(N)
    options = {"alphas": 12, "eps": 0.02, "tol": 1e-10, "positive": positive}
    alphas, reference, _ = lm.lasso_path(X, y, **options)
    null = 0.5 * float(y @ y) / N
    for kind, form, given in _inputs(X, tmp_path):
        if kind == "ranks":
            with pytest.raises(TypeError, match="spread over ranks"):
                lm.lasso_path(given, y, **options)
            continue
        grid, coefs, gaps = lm.lasso_path(given, _like(y, given), **options)
        assert isinstance(coefs, torch.Tensor) == (kind == "torch")
        np.testing.assert_allclose(grid, alphas, rtol=1e-12, err_msg=form)
        assert gaps.max() <= 1e-10 * null
        # a gap of g leaves the predictions within sqrt(2 n g) of the optimum's
        distance = np.linalg.norm(X @ (np.asarray(coefs) - reference), axis=0)
        assert distance.max() <= 2 * np.sqrt(2 * N * 1e-10 * null), form


def test_a_path_for_several_targets_refuses_a_tensor():
    with pytest.raises(TypeError, match="once per target"):
        lm.lasso_path(torch.ones(4, 2), torch.ones(4, 3))
