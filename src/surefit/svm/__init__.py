"""Support vector machines, certified by their duality gap."""

from ._bounds import l1_min_c
from .linear_svc import LinearSVC
from .linear_svr import LinearSVR

__all__ = ["LinearSVC", "LinearSVR", "l1_min_c"]
