"""From a table to a certified model: what ``surefit fit`` does, as functions.

>>> import surefit
>>> table = surefit.data.load("mortgages")
>>> model = surefit.table.fit_table(table, "denied", models=["logistic"], reference=False)
>>> str(model.predict(table)[0])
'no'
"""

from .fitting import fit_table
from .model import TableModel
from .plan import families, plan
from .verifying import Verification, verify_table
from .watch import Watch

__all__ = ["TableModel", "Verification", "Watch", "families", "fit_table", "plan", "verify_table"]
