"""Matrix factorisation: what users and items have in common, from the ratings alone."""

from __future__ import annotations

from ._ratings import ratings
from .matrix_factorization import MatrixFactorization

__all__ = ["MatrixFactorization", "ratings"]
