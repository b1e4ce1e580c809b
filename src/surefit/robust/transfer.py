r"""Attacks through another model: transfer, and stealing the model first (ADV-8).

An attacker without access to f trains a surrogate, on similar data or on pairs (x, f(x)) that f itself
labelled, attacks that, and hopes that the points transfer. Labels near the boundary say most: :func:`steal`
bisects between rows of different labels, so that the boundary passes between two close points. For a linear
victim the pairs at distance h pin the normal down to an angle of order h.

Reference: Papernot, McDaniel, Goodfellow, Jha, Celik & Swami, "Practical black-box attacks against machine
learning" (2017).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._namespace import like
from ._attack import AttackResult, begin, finish
from .pgd import pgd
from .scores import dense_rows, scores
from .threat import Threat

__all__ = ["Stolen", "steal", "transfer"]


class Stolen(NamedTuple):
    """A surrogate trained on the victim's own labels.

    Attributes
    ----------
    model : estimator
        The surrogate, fitted.
    agreement : float
        Share of the given rows on which both give the same label.
    queries : int
        Labels asked for.
    """

    model: Any
    agreement: float
    queries: int


def transfer(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    surrogate: Any,
    attack: Any = pgd,
    random_state: Any = None,
    classes: Any = None,
    **options: Any,
) -> AttackResult:
    """Attack a surrogate, and try the points on the model.

    Parameters
    ----------
    model, X, y, threat, classes
        As in :func:`fgsm`; of the model only ``predict`` is called.
    surrogate : estimator
        A fitted classifier of the same labels.
    attack : callable, default=pgd
        Any attack of this module.
    random_state : default=None
        Of the attack.
    **options
        For the attack.

    Returns
    -------
    AttackResult
        ``queries`` is 0: the model was asked only whether the points succeed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from surefit.linear_model import LogisticRegression
    >>> from surefit.robust import Threat, transfer
    >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    >>> victim, other = DecisionTreeClassifier().fit(X, y), LogisticRegression().fit(X, y)
    >>> transfer(victim, X, y, Threat(1.5), surrogate=other).success.tolist()
    [False, True, True, False]
    """
    task = begin(model, X, y, threat, classes=classes)
    x0, _ = task.take()
    if not len(task.rows):
        return finish(task, x0, np.zeros(0, dtype=np.int64))
    labels = np.asarray(y)[task.rows]
    crafted = attack(surrogate, x0, labels, threat, random_state=random_state, **options)
    return finish(task, like(crafted.x_adv, x0), np.zeros(len(task.rows), dtype=np.int64))


def steal(
    model: Any,
    X: Any,
    *,
    learner: Any = None,
    pairs: int = 200,
    halvings: int = 12,
    random_state: Any = None,
    classes: Any = None,
) -> Stolen:
    """Train a surrogate on rows that the model itself labelled, most of them near its decision boundary.

    Parameters
    ----------
    model : estimator
        The victim; only ``predict`` is called.
    X : array-like of shape (n, d)
        Rows to begin with; no labels are needed.
    learner : estimator, default=None
        What is trained. None is ridge regression of the labels on the close pairs, which recovers a linear
        victim.
    pairs : int, default=200
        Pairs of rows with different labels between which the boundary is bisected.
    halvings : int, default=12
        Bisections; the two ends are then a 2^-halvings part of their distance apart. 0 for X alone.
    random_state : default=None
        Of the pairs.

    Returns
    -------
    Stolen

    Examples
    --------
    >>> import numpy as np
    >>> from surefit.linear_model import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> victim = LogisticRegression().fit(X, X @ [1.0, 2.0] > 0)
    >>> found = steal(victim, X, random_state=0)
    >>> w, v = victim.coef_[0], np.ravel(found.model.coef_)
    >>> bool(w @ v / np.linalg.norm(w) / np.linalg.norm(v) > 1 - 1e-6)
    True
    """
    from ..linear_model import RidgeClassifier

    X = np.asarray(dense_rows(X), dtype=np.float64)
    known, random = scores(model, classes=classes), check_random_state(random_state)
    codes = known.labels(X)
    if len(np.unique(codes)) < 2:
        raise ValueError(
            "the model gives all rows of X the same label, so there is no boundary between them to look for; "
            "give rows that spread wider."
        )
    queries = len(X)
    a, b = (random.randint(len(X), size=50 * pairs + 50) for _ in range(2))
    unlike = np.flatnonzero(codes[a] != codes[b])[:pairs]
    left, right, own = X[a[unlike]], X[b[unlike]], codes[a[unlike]]
    other = codes[b[unlike]]
    for _ in range(halvings):
        middle = (left + right) / 2.0
        label = known.labels(middle)
        queries += len(middle)
        near = label == own
        left = np.where(near[:, None], middle, left)
        right = np.where(near[:, None], right, middle)
        other = np.where(near, other, label)
    rows, labels = np.concatenate([left, right]), np.concatenate([own, other])
    if learner is None:
        fitted = RidgeClassifier(alpha=1e-12, certify=False)
    else:
        fitted = clone(learner)
        rows, labels = np.concatenate([rows, X]), np.concatenate([labels, codes])
    fitted.fit(rows, known.classes[labels])
    agreement = float(np.mean(fitted.predict(X) == known.classes[codes]))
    return Stolen(fitted, agreement, queries)
