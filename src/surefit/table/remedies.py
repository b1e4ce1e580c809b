"""What each fairness remedy would cost on this table, measured on the hold-out."""

from __future__ import annotations

from typing import Any

__all__ = ["remedies"]


def remedies(model: Any, rows: Any, X_train: Any, y: Any) -> list[dict[str, Any]]:
    """Rows of error and gaps for the model as it is and for each remedy."""
    from ..fair import compare_remedies

    raise NotImplementedError(compare_remedies)
