"""Support vector machines: widest margins, certified by their duals."""

from ._bounds import l1_min_c
from .linear_svc import LinearSVC
from .linear_svr import LinearSVR
from .svc import SVC
from .svr import SVR

__all__ = ["SVC", "SVR", "LinearSVC", "LinearSVR", "l1_min_c"]
