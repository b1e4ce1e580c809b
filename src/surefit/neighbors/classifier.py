r"""Classification by the vote of the nearest neighbours (CLS-2).

    f(x) = argmax_c  sum_{i in N_k(x)} w_i 1[y_i = c],

N_k(x) the k nearest training rows, w_i = 1 or 1 / distance. There is no training beyond keeping the
rows, so the certificate is about what is kept and how it is searched:

* *training rows kept* (EXACT): the stored rows and labels are those of the data;
* *exact neighbours* (EXACT): neighbour lists are those of exact arithmetic, ties by row number; at fit
  for a sample of the training rows as queries, in ``verify`` and ``certify="full"`` for all, and by
  :meth:`KNeighborsClassifier.certify_neighbors` for any others;
* *leave-one-out error* (STATISTICAL, in ``verify`` and with ``certify="full"``): its distance from the true
  error, whatever the distribution, for a k that was fixed before the rows were seen and data without ties.

The nearest rows say less the more features there are: distances concentrate, and the nearest row is hardly
nearer than the farthest.

References
----------
Cover & Hart, "Nearest neighbor pattern classification", IEEE Transactions on Information Theory 13 (1967);
Rogers & Wagner, Annals of Statistics 6 (1978).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, MultiOutputMixin, _fit_context
from sklearn.exceptions import DataConversionWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._consistency import wrong_shapes
from ..certificate import Claim, Kind
from ._claims import leave_one_out_claim
from ._weights import neighbour_weights
from .base import Neighbours

__all__ = ["KNeighborsClassifier"]

_CELLS = 1 << 22  # entries of a block of votes


class KNeighborsClassifier(ClassifierMixin, MultiOutputMixin, Neighbours):
    """The vote of the k nearest rows, a drop-in for :class:`sklearn.neighbors.KNeighborsClassifier`.

    Parameters
    ----------
    n_neighbors : int, default=5
    weights : {"uniform", "distance"}, callable or None, default="uniform"
        "distance" weights a neighbour by 1 / distance; a callable takes the array of distances.
    algorithm : {"auto", "ball_tree", "kd_tree", "brute"}, default="auto"
        Where candidates are looked for; in the Euclidean distance it does not change the neighbours.
    leaf_size : int, default=30
        For the trees of other metrics.
    p : float, default=2
        Power of the Minkowski metric.
    metric : str, callable or DistanceMetric, default="minkowski"
    metric_params : dict, default=None
    n_jobs : int, default=None
        For other metrics; the Euclidean search uses the threads that the matrix library is allowed.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array, or list of arrays for several outputs
    effective_metric_, effective_metric_params_ : str or callable, dict
    n_samples_fit_ : int
    outputs_2d_ : bool
    X_fit_ : {array, CSR matrix}
        The training rows.
    y_fit_ : array
        The labels as positions in ``classes_``.
    certificate_ : Certificate

    Examples
    --------
    >>> from surefit.neighbors import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=3).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict_proba([[0.9]]).round(3).tolist()
    [[0.667, 0.333]]
    >>> model.certificate_["exact neighbours"].status.name
    'HOLDS'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Neighbours._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],  # predict asks for a number
        "weights": [StrOptions({"uniform", "distance"}), callable, None],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        weights: Any = "uniform",
        algorithm: str = "auto",
        leaf_size: int = 30,
        p: Any = 2,
        metric: Any = "minkowski",
        metric_params: Any = None,
        n_jobs: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.algorithm = algorithm
        self.leaf_size = leaf_size
        self.p = p
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any) -> KNeighborsClassifier:
        """Keep the rows and their labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Or (n_samples, n_samples) distances where ``metric="precomputed"``.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        """
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1:
            message = (
                "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
                "to (n_samples,), for example using ravel()."
            )
            warnings.warn(message, DataConversionWarning, stacklevel=2)
        X, y, _ = self._validate_training_data(X, y, None, reset=True)
        self.outputs_2d_ = y.ndim == 2
        columns = y.reshape(len(y), -1)
        codes = np.empty(columns.shape, dtype=np.int64)
        classes = []
        for j in range(columns.shape[1]):
            labels, codes[:, j] = np.unique(columns[:, j], return_inverse=True)
            classes.append(labels)
        self.classes_: Any = classes if self.outputs_2d_ else classes[0]
        self.y_fit_ = codes if self.outputs_2d_ else codes[:, 0]
        self._keep(X)
        return self._seal(X, y, None)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the most votes; of several, the first in ``classes_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_queries, n_features), or None
            None for the training rows, each without itself: leave-one-out predictions.

        Returns
        -------
        array of shape (n_queries,) or (n_queries, n_outputs)
        """
        check_is_fitted(self)
        return self._predict_from_neighbours(*self.kneighbors(X))

    def predict_proba(self, X: Any) -> Any:
        """The share of each class in the vote.

        Returns
        -------
        array of shape (n_queries, n_classes), or a list of them, one an output
        """
        check_is_fitted(self)
        distances, indices = self.kneighbors(X)
        weights = neighbour_weights(distances, self.weights)
        shares = [self._votes(indices, weights, j) for j in range(len(self._outputs()))]
        for votes in shares:
            votes /= votes.sum(axis=1, keepdims=True)
        return shares if self.outputs_2d_ else shares[0]

    def _predict_from_neighbours(
        self, distances: Any, indices: Any, n_neighbors: int | None = None
    ) -> NDArray[Any]:
        """Predictions from lists of neighbours, nearest first, of which the first ``n_neighbors`` vote.

        The lists of the largest k serve every smaller one.
        """
        distances, indices = distances[:, :n_neighbors], indices[:, :n_neighbors]
        weights = neighbour_weights(distances, self.weights)
        outputs = self._outputs()
        found = np.empty((len(indices), len(outputs)), dtype=outputs[0].dtype)
        step = max(1, _CELLS // max(len(labels) for labels in outputs))
        for j, labels in enumerate(outputs):
            for start in range(0, len(indices), step):
                part = slice(start, start + step)
                votes = self._votes(indices[part], None if weights is None else weights[part], j)
                found[part, j] = labels[votes.argmax(axis=1)]
        return found if self.outputs_2d_ else found[:, 0]

    def _outputs(self) -> list[Any]:
        """The classes of each output."""
        return list(self.classes_) if self.outputs_2d_ else [self.classes_]

    def _votes(self, indices: Any, weights: Any, output: int) -> NDArray[np.float64]:
        """The weight of each class among the neighbours, shape (n_queries, n_classes)."""
        if weights is not None and (weights == 0).all(axis=1).any():
            raise ValueError(
                "All neighbors of some sample is getting zero weights. Please modify 'weights' to "
                "avoid this case if you are using a user-defined function."
            )
        codes = (self.y_fit_[:, output] if self.outputs_2d_ else self.y_fit_)[indices]
        votes = np.zeros((len(indices), len(self._outputs()[output])))
        rows = np.arange(len(indices))
        for i in range(codes.shape[1]):
            votes[rows, codes[:, i]] += 1.0 if weights is None else weights[:, i]
        return votes

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean accuracy; with X=None, that of leave-one-out predictions on the training rows."""
        return float(super().score(X, y, sample_weight))

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        X, y, _ = super()._validate_training_data(X, y, sample_weight, reset=reset)
        check_classification_targets(y)
        return X, y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, None

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        several = y.ndim == 2
        if self.outputs_2d_ is not several:
            yield f"outputs_2d_ is {self.outputs_2d_!r}, and y has the shape {y.shape}"
            return
        yield from wrong_shapes(self, {"y_fit_": y.shape})
        if self.y_fit_.dtype.kind not in "iu":
            yield f"y_fit_ must hold positions in classes_, and is {self.y_fit_.dtype}"
            return
        for j, labels in enumerate(self._outputs()):
            column = self.y_fit_[:, j] if several else self.y_fit_
            if not np.array_equal(np.unique(column), np.arange(len(labels))):
                yield f"y_fit_ and classes_ do not go together: {len(labels)} classes are not all in use"

    def _kept_targets(self) -> Any:
        codes = self.y_fit_.reshape(len(self.y_fit_), -1)
        outputs = self._outputs()
        sound = codes.shape[1] == len(outputs) and all(
            ((codes[:, j] >= 0) & (codes[:, j] < len(labels))).all()
            for j, labels in enumerate(outputs)
        )
        if not sound:
            return None
        labels = np.stack([labels[codes[:, j]] for j, labels in enumerate(outputs)], axis=1)
        return labels if self.outputs_2d_ else labels[:, 0]

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        claims = super()._certify(X, y, sample_weight, full=full, tol=tol)
        if not self.outputs_2d_:
            claims.append(self._leave_one_out(y, full))
        return claims

    def _leave_one_out(self, y: Any, full: bool) -> Claim:
        n, k = self.n_samples_fit_, self.n_neighbors
        why = ""
        if not full:
            why = "needs the neighbours of every training row; surefit.verify or certify='full' decides it"
        elif k > n - 2 or callable(self.weights):
            why = f"needs {k + 2} rows or more, and weights that are not a callable"
        elif len(y) != n or self._kept_targets() is None:
            why = "these are not the data of the fit"
        else:
            distances, indices = self._nearest(None, k + 1)
            if (distances[:, k] <= distances[:, k - 1] * (1.0 + 1e-12)).any():
                why = "some rows have several neighbours at the same distance, which the theorem excludes"
        if why:
            return Claim.undecided("leave-one-out error", why, Kind.STATISTICAL, "CLS-2")
        wrong = self._predict_from_neighbours(distances, indices, k) != y
        return leave_one_out_claim(float(np.mean(wrong)), n, k)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
