"""Oracles of kernel machines, neighbours and clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surefit import Claim

__all__ = ["CHECKS"]

CHECKS: dict[str, dict[str, Callable[[Any, Any, Claim], str]]] = {}
