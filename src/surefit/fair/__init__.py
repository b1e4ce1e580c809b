"""Fairness: an audit with exact intervals, and three remedies with certificates (FAIR-1 to FAIR-6).

:func:`audit` measures independence, separation and sufficiency between groups from counts, with intervals
that hold at once for any number of rows. :class:`Decorrelate` changes the features, :class:`FairLogistic` the
training, :class:`GroupThresholds` the decisions; :func:`compare_remedies` says what each would cost.
"""

from __future__ import annotations

from .audit import Audit, audit
from .criteria import CRITERIA, RATES, incompatibility
from .decorrelate import Decorrelate
from .logistic import FairLogistic, fair_path
from .proxies import proxies
from .remedies import compare_remedies
from .thresholds import GroupThresholds

__all__ = [
    "CRITERIA",
    "RATES",
    "Audit",
    "Decorrelate",
    "FairLogistic",
    "GroupThresholds",
    "audit",
    "compare_remedies",
    "fair_path",
    "incompatibility",
    "proxies",
]
