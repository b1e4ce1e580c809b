r"""What an attack knows of a model: labels, margins, gradients (ADV-2, ADV-3).

The *margin* of a row with label y is positive where the model gives that label: y g(x) for two classes,
:math:`z_y - \max_{k \ne y} z_k` for several. An attack makes it small. Its gradient is taken with respect
to the input, not the weights. Losses that decrease in the margin, such as log(1 + exp(-margin)), grow along
minus it.

Models come in four kinds:

* linear (``coef_`` and ``intercept_``, one-vs-rest and one-vs-one of such): margins are linear functions;
* kernel machines (``SVC``, ``KernelRidge``; Gaussian, Laplace, polynomial): gradients in closed form;
* nearest neighbours with equal votes: the distance to the m-th other row less that to the m-th row of the
  class;
* any other: ``decision_function`` or ``predict_proba`` by finite differences; ``predict`` alone gives
  labels only.

A regressor is taken as a classifier of -1 and 1 by the sign of its prediction. A model may also be given by
functions: ``score(X)`` of shape (n,) or (n, classes), and ``gradient(X, V)``, the gradient of sum(V *
score(X)) with respect to X. For torch tensors the gradient is taken by autograd when it is not given.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_regressor

from .._namespace import array_namespace, is_torch, like, to_numpy
from ._families import (
    Kernels,
    Linears,
    Neighbours,
    family_of,
    kernel_vjp,
    neighbour_margin,
    one_vs_one,
    one_vs_rest,
)
from .network import is_network

__all__ = ["Scores", "autograd", "dense_rows", "scores"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Scores:
    """A model as attacks see it.

    Attributes
    ----------
    classes : array
        Labels; a code is a position in it.
    labels : callable
        Codes of the predicted labels of rows.
    margin : callable or None
        ``margin(X, codes)``: positive where the label wins. None where only labels are known.
    gradient : callable or None
        ``gradient(X, codes)``: of the margin with respect to X. None where nothing but differences can tell.
    family : Linears, Kernels, Neighbours or None
        What bounds are computed from.
    words : str
        What sort of model this is.
    network : Network or None
        What torch computes, if that is what the model is.
    """

    classes: NDArray[Any]
    labels: Callable[[Any], Codes]
    margin: Callable[[Any, Codes], Any] | None
    gradient: Callable[[Any, Codes], Any] | None
    family: Linears | Kernels | Neighbours | None
    words: str
    network: Any = None

    def codes(self, y: Any) -> Codes:
        """Positions of labels in ``classes``; -1 for a label that the model does not know."""
        y = np.asarray(to_numpy(y))
        order = np.argsort(self.classes, kind="stable")
        place = np.searchsorted(self.classes, y, sorter=order)
        found = order[np.minimum(place, len(order) - 1)]
        return np.where(self.classes[found] == y, found, -1).astype(np.intp)


def scores(model: Any, *, score: Any = None, gradient: Any = None, classes: Any = None) -> Scores:
    """The labels, margins and gradients of a fitted model.

    Parameters
    ----------
    model : estimator, network, or callable of rows giving labels
    score : callable, default=None
        ``score(X)``: of shape (n,), positive for the second class, or (n, classes).
    gradient : callable, default=None
        ``gradient(X, V)``: of sum(V * score(X)) with respect to X.
    classes : array, default=None
        The labels, where the model has no ``classes_``.

    Returns
    -------
    Scores

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> known = scores(LogisticRegression().fit(X, y))
    >>> known.words, bool((known.margin(X, y) > 0).all())
    ('linear', True)
    """
    model = getattr(model, "best_estimator_", model)
    if score is None and is_network(model):
        from ._network_labels import network_scores

        return network_scores(model, classes=classes)
    sign = is_regressor(model) if hasattr(model, "fit") else False
    names = _classes(model, classes, sign)
    labels = _labels(model, names, sign)
    if score is not None:
        A = _rule(names)
        margin, slope = _from_outputs(_two_d(score), _user_vjp(gradient), A)
        return Scores(names, labels, margin, slope, None, "given by its score")
    family = family_of(model, len(names))
    if isinstance(family, Linears):
        W, b = family.W, family.b
        margin, slope = _from_outputs(
            lambda X: X @ like(W.T, X) + like(b, X), lambda X, V: V @ like(W, X), family.rivals
        )
        return Scores(names, labels, margin, slope, family, "linear")
    if isinstance(family, Kernels):
        margin, slope = _from_outputs(
            family.outputs, lambda X, V: kernel_vjp(family, X, V), family.rivals
        )
        return Scores(names, labels, margin, slope, family, f"kernel machine, {family.name} kernel")
    if isinstance(family, Neighbours):
        return Scores(
            names, labels, lambda X, c: neighbour_margin(family, X, c)[0],
            lambda X, c: neighbour_margin(family, X, c)[1], family, "nearest neighbours",
        )  # fmt: skip
    raw = getattr(model, "decision_function", None) or getattr(model, "predict_proba", None)
    if raw is None and sign:
        raw = model.predict
    if raw is None:
        return Scores(names, labels, None, None, None, "labels only")
    A = _rule(names)
    margin, _ = _from_outputs(_two_d(_quiet(raw)), None, A)
    return Scores(names, labels, margin, None, None, "known by its scores")


# ------------------------------------------------------------------------ margins from outputs


def _from_outputs(outputs: Any, vjp: Any, A: Any) -> tuple[Any, Any]:
    """The margin min_r <A[c, r], f(x)> and its gradient, from the outputs f and their vjp."""

    def rule(f: Any) -> Array:
        return A(f.shape[1]) if callable(A) else A

    def margins(f: Any, codes: Codes) -> tuple[Any, Any]:
        chosen = like(rule(f)[np.maximum(codes, 0)], f)
        return (chosen * f[:, None, :]).sum(axis=2), chosen

    def margin(X: Any, codes: Codes) -> Any:
        each, _ = margins(outputs(X), codes)
        return array_namespace(each).min(each, axis=1)

    def gradient(X: Any, codes: Codes) -> Any:
        each, chosen = margins(outputs(X), codes)
        least = array_namespace(each).argmin(each, axis=1)
        rows = like(np.arange(len(codes)), each)
        return vjp(X, chosen[rows, least])

    return margin, None if vjp is None else gradient


def _rule(names: Any) -> Any:
    """The comparison of outputs, once their number is known."""
    k = len(names)

    def rule(outputs: int) -> Array:
        if outputs == 1 and k == 2:
            return one_vs_rest(2)
        if outputs == k:
            return one_vs_rest(k) if k > 2 else np.array([[[1.0, -1.0]], [[-1.0, 1.0]]])
        if outputs == k * (k - 1) // 2:
            return one_vs_one(k)
        raise ValueError(
            f"the scores have {outputs} columns for {k} classes; one a class is needed."
        )

    return rule


def _two_d(function: Any) -> Any:
    def outputs(X: Any) -> Any:
        f = function(X)
        f = f if is_torch(f) else np.asarray(f, dtype=np.float64)
        return f[:, None] if f.ndim == 1 else f

    return outputs


def _user_vjp(gradient: Any) -> Any:
    """The user's gradient, for scores of one column and of several."""
    if gradient is None:
        return None

    def vjp(X: Any, V: Any) -> Any:
        return gradient(X, V[:, 0] if V.shape[1] == 1 else V)

    return vjp


def autograd(score: Any) -> Any:
    """``gradient(X, V)`` of a function of tensors."""

    def gradient(X: Any, V: Any) -> Any:
        import torch

        point = X.detach().requires_grad_(True)
        return torch.autograd.grad((score(point) * V).sum(), point)[0]

    return gradient


# ------------------------------------------------------------------------ labels


def _classes(model: Any, classes: Any, sign: bool) -> NDArray[Any]:
    found = classes if classes is not None else getattr(model, "classes_", None)
    if found is None and sign:
        found = np.array([-1, 1])
    if found is None:
        raise ValueError(
            f"{type(model).__name__} has no classes_; fit it first, or give the labels as classes=[...]."
        )
    names = np.asarray(found)
    if names.ndim != 1 or len(names) < 2:
        raise ValueError(f"a classifier of two labels or more is needed, got classes {found!r}.")
    return names


def _labels(model: Any, names: NDArray[Any], sign: bool) -> Callable[[Any], Codes]:
    asked = getattr(model, "predict", model)
    predict = _quiet(asked)
    if not callable(asked):
        raise TypeError(
            f"model must have predict, or be a function of rows, got {type(model).__name__}."
        )
    order = np.argsort(names, kind="stable")

    def labels(X: Any) -> Codes:
        found = np.asarray(to_numpy(predict(X)))
        if sign:
            return (found.reshape(len(found), -1)[:, 0] > 0).astype(np.intp)
        place = np.searchsorted(names, found, sorter=order)
        return order[np.minimum(place, len(order) - 1)].astype(np.intp)

    return labels


def _quiet(function: Any) -> Any:
    """A method of a model that was fitted on named columns says nothing when asked about plain arrays."""

    def call(X: Any) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            return function(X)

    return call


def dense_rows(X: Any) -> Any:
    """X as a table of floats: an array or a tensor; sparse rows are stored in full."""
    if is_torch(X):
        return X if X.is_floating_point() else X.double()
    if sp.issparse(X):
        if X.shape[0] * X.shape[1] > 1 << 28:
            raise ValueError(
                f"X is sparse with shape {X.shape}; attacks move every column and need it in full. "
                "Give fewer rows, or max_rows."
            )
        X = X.toarray()
    X = np.asarray(X)
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must be a table of shape (rows, columns), got shape {X.shape}.")
    if not np.isfinite(X).all():
        raise ValueError("X has NaN or infinite entries; impute or drop them first.")
    return X
