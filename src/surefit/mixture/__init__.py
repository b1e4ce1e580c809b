"""Mixtures fitted by EM, and EM for models of your own.

:class:`GaussianMixture` is a drop-in for scikit-learn's; :class:`BernoulliMixture` is for binary data;
:func:`em` takes two functions and checks every step.
"""

from ._initial import initial_parameters
from .bernoulli import BernoulliMixture
from .gaussian import GaussianMixture
from .general import EMResult, Evidence, em, evidence

__all__ = [
    "BernoulliMixture",
    "EMResult",
    "Evidence",
    "GaussianMixture",
    "em",
    "evidence",
    "initial_parameters",
]
