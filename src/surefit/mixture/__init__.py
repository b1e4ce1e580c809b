"""Mixtures and EM."""
from ._initial import initial_parameters
from .gaussian import GaussianMixture
__all__ = ["GaussianMixture", "initial_parameters"]
