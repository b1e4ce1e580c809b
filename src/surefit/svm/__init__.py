"""Support vector machines: widest margins, certified by their duals."""

from .svc import SVC
from .svr import SVR

__all__ = ["SVC", "SVR"]
