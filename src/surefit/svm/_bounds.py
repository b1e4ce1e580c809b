"""The smallest C at which an l1-penalised classifier is not empty."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils._param_validation import Interval, StrOptions, validate_params
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_array, check_consistent_length

__all__ = ["l1_min_c"]


@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "y": ["array-like"],
        "loss": [StrOptions({"squared_hinge", "log"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
    },
    prefer_skip_nested_validation=True,
)
def l1_min_c(
    X: Any,
    y: Any,
    *,
    loss: str = "squared_hinge",
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
) -> float:
    r"""The C below which all coefficients of an l1-penalised model are 0.

    w = 0 is optimal exactly when no column's slope exceeds its price, :math:`C |\sum_i l'(0) y_i x_{ij}|
    \le 1`, with slope 2 for the squared hinge and 1/2 for the logistic loss at 0.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    loss : {'squared_hinge', 'log'}, default='squared_hinge'
    fit_intercept : bool, default=True
        Whether there is a constant feature of value ``intercept_scaling``, penalised like the others.
    intercept_scaling : float, default=1.0

    Returns
    -------
    float

    Examples
    --------
    >>> X, y = [[0.0, 1.0], [2.0, 0.0], [3.0, 1.0]], [0, 1, 1]
    >>> float(l1_min_c(X, y, fit_intercept=False))
    0.1
    """
    X = check_array(X, accept_sparse="csc")
    check_consistent_length(X, y)
    Y = LabelBinarizer(neg_label=-1).fit_transform(y).T
    steepest = float(np.max(np.abs(safe_sparse_dot(Y, X))))
    if fit_intercept:
        steepest = max(steepest, intercept_scaling * float(np.abs(Y.sum(axis=1)).max()))
    if steepest == 0.0:
        raise ValueError(
            "Ill-posed l1_min_c calculation: l1 will always select zero coefficients for this data"
        )
    return 0.5 / steepest if loss == "squared_hinge" else 2.0 / steepest
