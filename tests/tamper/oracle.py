"""Whether the claims about a changed model are true, decided without surefit's duality and claims code.

An oracle computes the number that a claim states by its own formula, from what the model *does*: its
predictions or decision function on the rows of the fit, and its coefficients. The least objective comes from
a tight fit, whose objective the same formula evaluates: it lies above the minimum, so that the distance found
is at most the true one, and a claim that it refutes is false.

A claim that says what it said before, about a model that answers as before, is as true as before. All others
must be confirmed here; a claim for which there is no formula counts as false.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from surefit import Certificate, Claim, Status
from tests.tamper import cluster_oracle, linear_oracle, selection_oracle, table_oracle
from tests.tamper.models import Fits

__all__ = ["confirm", "oracle_of"]

Check = Callable[[Any, Any, Claim], str]


def checks_of(model: Any) -> dict[str, Check]:
    """The formulas for the claims about an estimator."""
    name = type(model).__name__
    for module in (linear_oracle, cluster_oracle, selection_oracle, table_oracle):
        if name in module.CHECKS:
            return module.CHECKS[name]
    return {}


def oracle_of(fits: Fits) -> Any:
    """The oracle of a fitted model: it returns why a claim is false, or the empty string."""
    return confirm


def confirm(fits: Fits, model: Any, certificate: Certificate, new: set[str]) -> str:
    """Check the claims named ``new``; the first one that is false, with the reason."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for claim in certificate.claims:
            if claim.status is not Status.HOLDS or claim.name not in new:
                continue
            check = checks_of(model).get(claim.name.rpartition(": ")[2])
            if check is None:
                return f"no oracle for {claim.name!r}"
            try:
                wrong = check(fits, model, claim)
            except Exception as error:
                wrong = f"the oracle cannot evaluate the model ({type(error).__name__}: {error})"
            if wrong:
                return f"{claim.name}: {wrong}"
    return ""
