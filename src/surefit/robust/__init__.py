"""Attacks on classifiers, exact answers where they exist, and brackets where they do not (ADV-1 to ADV-10).

An attack that succeeds shows that the adversarial risk is at least so much; a bound shows that it is at
most so much. :func:`adversarial_risk` puts both around it, for any classifier.
"""

from __future__ import annotations

from typing import Any

from ._attack import AttackResult
from .curve import RobustnessCurve
from .decision_based import Boundary, boundary_distance, decision_based
from .example import RobustFeatures, robust_features_example
from .fgsm import fgsm
from .linear import linear_radius
from .network import Network, is_network, network
from .pgd import pgd
from .risk import adversarial_risk
from .score_based import Estimate, estimate_gradient, score_based
from .scores import Scores, scores
from .threat import Threat, Worst
from .transfer import Stolen, steal, transfer

__all__ = [
    "AdversarialTraining",
    "AttackResult",
    "Boundary",
    "Estimate",
    "Evaluation",
    "IntervalTraining",
    "Network",
    "RandomizedSmoothing",
    "RobustFeatures",
    "RobustnessCurve",
    "Scores",
    "Smoothed",
    "Stolen",
    "Threat",
    "Worst",
    "adversarial_risk",
    "apgd",
    "boundary_distance",
    "certified_radius",
    "decision_based",
    "estimate_gradient",
    "evaluate",
    "fab",
    "fgsm",
    "is_network",
    "linear_radius",
    "minimum_norm",
    "network",
    "network_lower",
    "pgd",
    "robust_features_example",
    "score_based",
    "scores",
    "square",
    "steal",
    "transfer",
]

_LAZY = {  # what needs torch, and where it is
    "AdversarialTraining": "adversarial_training",
    "Evaluation": "evaluation",
    "IntervalTraining": "certified_training",
    "RandomizedSmoothing": "smoothing",
    "Smoothed": "smoothing",
    "certified_radius": "network_bounds",
    "network_lower": "network_bounds",
    "apgd": "auto_pgd",
    "evaluate": "worst_of_attacks",
    "fab": "adaptive_boundary",
    "minimum_norm": "adaptive_boundary",
    "square": "square_attack",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
