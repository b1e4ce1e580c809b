"""Cross-validation: folds partition the rows, and of ridge the leave-one-out error is known (GEN-7)."""

import numpy as np
import pytest

from surefit.linear_model import Ridge
from surefit.model_selection import (
    GridSearchCV,
    KFold,
    LeaveOneOut,
    cross_val_score,
    cross_validate,
)


@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
@pytest.mark.spec("GEN-7")
def test_leave_one_out_of_ridge_is_a_formula(alpha):
    """mean[(e_n / (1 - h_nn))²], with h the hat matrix X(XᵀX + αI)⁻¹Xᵀ, through our cross_validate."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), rng.normal(size=40)
    hat = X @ np.linalg.solve(X.T @ X + alpha * np.eye(5), X.T)
    expected = np.mean(((y - hat @ y) / (1 - np.diag(hat))) ** 2)
    model, scoring = Ridge(alpha=alpha, fit_intercept=False), "neg_mean_squared_error"
    for reuse in (True, False):
        scores = cross_val_score(model, X, y, cv=LeaveOneOut(), scoring=scoring, reuse=reuse)
        assert -scores.mean() == pytest.approx(expected, rel=1e-9)
    search = GridSearchCV(model, {"alpha": [alpha]}, cv=LeaveOneOut(), scoring=scoring).fit(X, y)
    assert -search.best_score_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("folds", [2, 5, 7])
@pytest.mark.spec("GEN-7")
def test_folds_partition_exactly(folds):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(43, 3)), rng.normal(size=43)
    found = cross_validate(Ridge(), X, y, cv=folds, return_indices=True)
    tested = np.concatenate(found["indices"]["test"])
    np.testing.assert_array_equal(np.sort(tested), np.arange(43))
    for train, test in zip(found["indices"]["train"], found["indices"]["test"]):
        np.testing.assert_array_equal(np.sort([*train, *test]), np.arange(43))
    claim = found.certificate_["folds"]
    assert claim.observed == 0
    assert "each of the 43 rows is tested exactly once" in claim.statement


def test_the_cross_validated_error_is_that_of_fewer_rows():
    """ERR-22: unbiased for fits on (K-1)N/K rows. With K = 2 that is another risk than that of N rows."""
    rng = np.random.default_rng(2)
    w = rng.normal(size=8)
    gaps, draws = [], 150
    for _ in range(draws):
        X = rng.normal(size=(24, 8))
        y = X @ w + rng.normal(size=24)
        model = Ridge(alpha=1e-6, fit_intercept=False, certify=False)
        keywords = {"scoring": "neg_mean_squared_error", "cv": KFold(2), "reuse": False}
        scores = cross_val_score(model, X, y, **keywords)
        halves = [model.fit(X[rows], y[rows]).coef_ for rows in (slice(12, 24), slice(0, 12))]
        true = [1 + np.sum((coef - w) ** 2) for coef in halves]
        whole = 1 + np.sum((model.fit(X, y).coef_ - w) ** 2)
        gaps.append((-scores.mean() - np.mean(true), np.mean(true) - whole))
    bias, more = np.mean(gaps, axis=0)
    spread = np.std(gaps, axis=0) / np.sqrt(draws)
    assert abs(bias) < 4 * spread[0]
    assert more > 4 * spread[1]
