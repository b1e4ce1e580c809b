"""Which tests guard which files: the cheapest tests first, since the first failure decides."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

__all__ = ["AREAS", "SHARES", "files_of", "guards_of"]

SHARES = {
    "claims": 4
}  # of the faults; every other area has one: most of what can be false is a claim

# area -> patterns of files below src/surefit -> tests that guard them
AREAS: dict[str, dict[str, list[str]]] = {
    "certificate": {
        "certificate.py": ["tests/laws/test_claims.py"],
        "_attributes.py": ["tests/laws/test_claims.py", "tests/laws/test_attributes.py"],
        "_optimality.py": ["tests/laws/test_claims.py"],
        "_worst.py": ["tests/laws/test_claims.py", "tests/faults/test_forged_linear_models.py"],
        "fingerprint.py": ["tests/laws/test_fingerprint.py"],
    },
    "duality": {
        "duality.py": ["tests/laws/test_duality.py", "tests/faults/test_forged_linear_models.py"],
        "_dual_points.py": [
            "tests/laws/test_duality.py",
            "tests/chapters/test_quantile_regression.py",
        ],
        "offsets.py": ["tests/laws/test_duality.py"],
        "separation.py": ["tests/laws/test_separation.py", "tests/chapters/test_logistic.py"],
        "_exact_separation.py": [
            "tests/laws/test_separation.py",
            "tests/chapters/test_perceptron.py",
        ],
    },
    "losses": {"losses/*.py": ["tests/laws/test_losses.py"]},
    "penalties": {
        "penalties.py": ["tests/laws/test_penalties.py", "tests/laws/test_duality.py"],
        "projections.py": ["tests/laws/test_projections.py"],
    },
    "claims": {
        "linear_model/_least_squares_claims.py": [
            "tests/faults/test_forged_linear_models.py",
            "tests/chapters/test_least_squares.py",
        ],
        "linear_model/_logistic_claims.py": [
            "tests/faults/test_forged_linear_models.py",
            "tests/chapters/test_logistic.py",
        ],
        "linear_model/_sgd_claims.py": [
            "tests/faults/test_forged_linear_models.py",
            "tests/chapters/test_stochastic_gradient.py",
        ],
        "linear_model/_huber_*.py": ["tests/chapters/test_huber_regression.py"],
        "linear_model/_ridge_claims.py": [
            "tests/faults/test_forged_linear_models.py",
            "tests/chapters/test_cross_validated_models.py",
        ],
        "linear_model/_path_claims.py": [
            "tests/faults/test_forged_linear_models.py",
            "tests/chapters/test_cross_validated_models.py",
        ],
        "linear_model/_logistic_cv_claims.py": [
            "tests/faults/test_forged_linear_models.py",
            "tests/chapters/test_cross_validated_models.py",
        ],
        "linear_model/_multitask_gap.py": [
            "tests/laws/test_duality.py",
            "tests/chapters/test_lasso.py",
        ],
        "svm/_*claims.py": [
            "tests/faults/test_forged_machines.py",
            "tests/laws/test_kernel_machines.py",
        ],
        "svm/_hard_margin.py": [
            "tests/faults/test_forged_machines.py",
            "tests/chapters/test_svc.py",
        ],
        "svm/_crammer_singer.py": [
            "tests/faults/test_forged_machines.py",
            "tests/chapters/test_linear_svc.py",
        ],
        "svm/_pairs.py": ["tests/faults/test_forged_machines.py", "tests/chapters/test_svc.py"],
        "_kernel_ridge_claims.py": [
            "tests/faults/test_forged_machines.py",
            "tests/laws/test_kernel_certificates.py",
            "tests/chapters/test_kernel_ridge.py",
        ],
        "neighbors/_claims.py": [
            "tests/faults/test_forged_neighbours.py",
            "tests/laws/test_neighbour_certificates.py",
        ],
        "cluster/_kmeans_claims.py": [
            "tests/faults/test_forged_clusters.py",
            "tests/laws/test_kmeans_certificates.py",
        ],
        "cluster/_lower_bounds.py": [
            "tests/theory/test_kmeans_lower_bounds.py",
            "tests/laws/test_kmeans_certificates.py",
        ],
        "mixture/_*claims.py": [
            "tests/faults/test_forged_mixtures.py",
            "tests/laws/test_mixture_certificates.py",
        ],
        "mixture/_mixture_pass.py": [
            "tests/laws/test_mixture_certificates.py",
            "tests/theory/test_mixture_likelihood.py",
        ],
        "decomposition/_factor_claims.py": [
            "tests/laws/test_factor_certificates.py",
            "tests/chapters/test_matrix_factorization.py",
        ],
        "text/_glove_claims.py": [
            "tests/theory/test_glove.py",
            "tests/faults/test_forged_words.py",
        ],
        "text/_fasttext_claims.py": [
            "tests/theory/test_fasttext.py",
            "tests/faults/test_forged_words.py",
        ],
        "nn/_network_claims.py": [
            "tests/faults/test_forged_networks.py",
            "tests/nn/test_network_claims.py",
            "tests/chapters/test_network_certificates.py",
        ],
        "nn/_held_out.py": [
            "tests/faults/test_forged_networks.py",
            "tests/nn/test_network_claims.py",
        ],
        "solvers/_judge.py": [
            "tests/faults/test_forged_theorems.py",
            "tests/chapters/test_minimize.py",
        ],
        "solvers/assumptions.py": [
            "tests/faults/test_forged_theorems.py",
            "tests/chapters/test_minimize.py",
        ],
        "solvers/rates.py": [
            "tests/faults/test_forged_theorems.py",
            "tests/theory/test_gradient_descent_rates.py",
        ],
    },
    "bounds": {
        "stats/*.py": ["tests/laws/test_rows.py", "tests/theory/test_dependent_rows.py"],
        "model_selection/bounds.py": [
            "tests/laws/test_selection_laws.py",
            "tests/theory/test_coverage_of_claims.py",
        ],
        "model_selection/_claims.py": ["tests/faults/test_selection_claims.py"],
        "model_selection/_holdout_claims.py": ["tests/faults/test_selection_claims.py"],
        "model_selection/_search_claims.py": ["tests/faults/test_selection_claims.py"],
    },
    "robust": {
        "robust/_risk_claims.py": ["tests/faults/test_robust_forgeries.py"],
        "robust/linear.py": [
            "tests/chapters/test_robust_bounds.py",
            "tests/theory/test_linear_margins.py",
        ],
        "robust/kernel_bounds.py": ["tests/chapters/test_robust_bounds.py"],
        "robust/neighbour_bounds.py": ["tests/chapters/test_robust_bounds.py"],
        "robust/interval.py": ["tests/theory/test_network_bounds.py"],
        "robust/crown.py": ["tests/theory/test_network_bounds.py"],
        "robust/_smoothed.py": ["tests/theory/test_smoothing.py"],
    },
    "fairness": {
        "fair/_audit_claims.py": [
            "tests/chapters/test_fair_audit.py",
            "tests/faults/test_fair_forgeries.py",
        ],
        "fair/_logistic_claims.py": [
            "tests/faults/test_fair_forgeries.py",
            "tests/chapters/test_fair_remedies.py",
        ],
        "fair/_threshold_claims.py": [
            "tests/faults/test_fair_forgeries.py",
            "tests/chapters/test_fair_thresholds.py",
        ],
        "fair/criteria.py": ["tests/chapters/test_fair_audit.py", "tests/theory/test_fairness.py"],
        "fair/_groups.py": ["tests/chapters/test_fair_audit.py", "tests/theory/test_fairness.py"],
        "fair/_calibration.py": [
            "tests/chapters/test_fair_audit.py",
            "tests/theory/test_fairness.py",
        ],
    },
    "table": {
        "table/verifying.py": [
            "tests/faults/test_tampered_models.py",
            "tests/faults/test_tampered_claims.py",
        ],
        "table/recorded.py": ["tests/faults/test_tampered_claims.py"],
        "table/refitting.py": [
            "tests/faults/test_tampered_models.py",
            "tests/faults/test_tampered_claims.py",
        ],
        "table/sections.py": [
            "tests/faults/test_tampered_claims.py",
            "tests/faults/test_table_sentences.py",
        ],
        "table/prepare.py": [
            "tests/chapters/test_table_model.py",
            "tests/faults/test_tampered_models.py",
        ],
        "table/evidence.py": [
            "tests/faults/test_tampered_claims.py",
            "tests/chapters/test_table_model.py",
        ],
    },
    "trainer": {
        "nn/train.py": ["tests/nn/test_train.py", "tests/nn/test_resume.py"],
        "nn/_run.py": ["tests/nn/test_train.py", "tests/nn/test_resume.py"],
        "nn/_step.py": ["tests/nn/test_train.py"],
        "nn/_state.py": ["tests/nn/test_resume.py", "tests/nn/test_checkpoints.py"],
        "nn/checkpoints.py": ["tests/nn/test_checkpoints.py"],
        "nn/schedules.py": ["tests/nn/test_schedules.py"],
        "nn/ema.py": ["tests/nn/test_train.py"],
        "nn/batches.py": ["tests/nn/test_batches.py"],
    },
    "loader": {
        "_tree.py": ["tests/faults/test_model_files.py"],
        "io.py": ["tests/faults/test_model_files.py"],
        "_checkpoint.py": ["tests/faults/test_model_files.py", "tests/nn/test_checkpoints.py"],
        "text/formats.py": ["tests/faults/test_vector_files.py"],
        "data/_bytes.py": ["tests/chapters/test_reading.py", "tests/faults/test_bad_tables.py"],
        "data/_records.py": ["tests/chapters/test_reading.py", "tests/faults/test_bad_tables.py"],
    },
}


def files_of(area: str, source: Path) -> list[Path]:
    """The files of an area that exist, below ``source`` (the package's folder)."""
    found = {path for pattern in AREAS[area] for path in source.glob(pattern)}
    return sorted(path for path in found if path.name != "__init__.py")


def guards_of(area: str, name: str, root: Path) -> list[str]:
    """The tests of a file, named below the package, that exist."""
    for pattern, tests in AREAS[area].items():
        if fnmatch(name, pattern):
            return [test for test in tests if (root / test).exists()]
    return []
