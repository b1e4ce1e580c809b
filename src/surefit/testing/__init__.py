r"""The laws that losses, penalties, projections and certified estimators obey, as public functions.

Write a loss of your own, run :func:`check_loss` on it: gradient, curvature, conjugate, prox and every
stated flag are tested numerically, none is taken on trust. Each ``check_*`` function raises an
``AssertionError`` that names the law, the object and the numbers; it returns when all laws hold.
:func:`check_certificate` asks the converse of a certificate as well: that it *fails* when the model is
nudged and when the data are exchanged.

Examples
--------
>>> from surefit.losses import Huber
>>> from surefit.penalties import L1
>>> check_loss(Huber(1.0))
>>> check_penalty(L1(0.3))
>>> is_convex_on_segments(lambda t: t**2, [-1.0, 0.3, 2.0])
True
"""

from __future__ import annotations

from ._tools import check_gradient, is_convex_on_segments
from .certificates import check_certificate
from .losses import check_loss
from .penalties import check_penalty, check_projection

__all__ = [
    "check_certificate",
    "check_gradient",
    "check_loss",
    "check_penalty",
    "check_projection",
    "is_convex_on_segments",
]
