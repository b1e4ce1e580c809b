"""Attacks on classifiers, exact answers where they exist, and brackets where they do not (ADV-1 to ADV-10).

An attack that succeeds shows that the adversarial risk is at least so much; a bound shows that it is at
most so much. :func:`adversarial_risk` puts both around it, for any classifier.
"""

from __future__ import annotations

from ._attack import AttackResult
from .curve import RobustnessCurve
from .decision_based import Boundary, boundary_distance, decision_based
from .example import RobustFeatures, robust_features_example
from .fgsm import fgsm
from .linear import linear_radius
from .pgd import pgd
from .risk import adversarial_risk
from .score_based import Estimate, estimate_gradient, score_based
from .scores import Scores, scores
from .threat import Threat, Worst
from .transfer import Stolen, steal, transfer

__all__ = [
    "AttackResult",
    "Boundary",
    "Estimate",
    "RobustFeatures",
    "RobustnessCurve",
    "Scores",
    "Stolen",
    "Threat",
    "Worst",
    "adversarial_risk",
    "boundary_distance",
    "decision_based",
    "estimate_gradient",
    "fgsm",
    "linear_radius",
    "pgd",
    "robust_features_example",
    "score_based",
    "scores",
    "steal",
    "transfer",
]
