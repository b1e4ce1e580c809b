"""What the k-means estimators share: validation, first centres, prediction."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _is_arraylike_not_scalar, check_is_fitted, validate_data

from .._consistency import wrong_counts, wrong_shapes
from .._namespace import is_torch, like, to_numpy
from ..base import ANYWHERE, Certified, check_weights, scale_error
from ..design import Design, RankRows, as_design
from ..inputs import _check_weights, is_native, validate_native_X, weights_over_ranks
from ..solvers.lloyd import describe, inertia, labeller_of
from ..solvers.seeding import plus_plus, random_rows

__all__ = ["Means", "initial_centres"]

Array = NDArray[np.float64]


class Means(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Certified):
    """A model whose ``cluster_centers_`` stand for the rows nearest to them."""

    paradigm = "unsupervised"
    n_clusters: int
    init: Any
    n_init: Any
    max_iter: int
    tol: float
    verbose: int
    random_state: Any
    cluster_centers_: Any
    labels_: Any
    inertia_: float
    _runs_by_default: ClassVar[int] = 10

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "certify": Certified._certify_constraint,
    }

    def _accepts(self) -> frozenset[str]:
        return ANYWHERE | {"ranks"}

    # ------------------------------------------------------------------ checks

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        if reset:
            self.__dict__.pop("certificate_", None)
        if is_native(X, sample_weight):
            X = validate_native_X(self, X, reset=reset)
            return X, None, _native_weights(sample_weight, X)
        X = _canonical(validate_data(self, X, reset=reset, **_CHECKS))
        return X, None, check_weights(sample_weight, X)

    def _queries(self, X: Any) -> Any:
        check_is_fitted(self)
        if is_native(X):
            return validate_native_X(self, X, reset=False)
        return _canonical(validate_data(self, X, reset=False, **_CHECKS))

    def _check_count(self, n: int) -> None:
        if n < self.n_clusters:
            raise ValueError(f"n_samples={n} should be >= n_clusters={self.n_clusters}.")

    def _runs(self) -> int:
        """How many times to start, from ``n_init`` and ``init``."""
        given, runs = _is_arraylike_not_scalar(self.init), self._runs_asked_for()
        if given and runs != 1:
            warnings.warn(
                f"Explicit initial center position passed: performing only one init in {type(self).__name__} "
                f"instead of n_init={runs}.",
                RuntimeWarning,
                stacklevel=3,
            )
            runs = 1
        return runs

    def _runs_asked_for(self) -> int:
        if self.n_init != "auto":
            return int(self.n_init)
        plain = isinstance(self.init, str) and self.init == "k-means++"
        return 1 if plain or _is_arraylike_not_scalar(self.init) else self._runs_by_default

    def _given_centres(self, X: Any) -> Array | None:
        """The array ``init``, checked; None where it is something else."""
        if not _is_arraylike_not_scalar(self.init):
            return None
        init = to_numpy(self.init) if is_torch(self.init) else self.init
        centres = check_array(init, dtype=as_design(X).dtype, copy=True, order="C")
        self._check_centres(centres, X)
        return np.asarray(centres, dtype=np.float64)

    def _check_centres(self, centres: Any, X: Any) -> None:
        for axis, count, words in (
            (0, self.n_clusters, "number of clusters"),
            (1, X.shape[1], "number of features of the data"),
        ):
            if centres.shape[axis] != count:
                raise ValueError(
                    f"The shape of the initial centers {centres.shape} does not match the {words} {count}."
                )

    # ------------------------------------------------------------------ consistency

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        yield from wrong_shapes(self, {"cluster_centers_": (self.n_clusters, int(X.shape[1]))})
        if hasattr(self, "n_iter_"):  # partial_fit leaves none
            yield from wrong_counts(self, n_iter_=1)
        if getattr(self, "inertia_", 0.0) < 0.0:
            yield f"inertia_ is {self.inertia_}, and a sum of squares is not negative"
        labels = (
            np.asarray(to_numpy(self.labels_)) if hasattr(self, "labels_") else np.zeros(0, int)
        )
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            yield f"labels_ must hold the numbers of centres, and is {labels.dtype}"
        elif ((labels < 0) | (labels >= self.n_clusters)).any():
            yield f"labels_ names clusters that are not among the {self.n_clusters}"

    # ------------------------------------------------------------------ use

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and the labels of the training rows; ``y`` is not used."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit, and the distances of the training rows to all centres; ``y`` is not used."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def predict(self, X: Any) -> Any:
        """The number of the nearest centre of each row, in exact arithmetic, ties to the lowest.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_samples, n_features)

        Returns
        -------
        array of int32 of shape (n_samples,), or a tensor on the device of X
        """
        return self._label(self._queries(X))

    def _label(self, X: Any) -> Any:
        design, centres = as_design(X), to_numpy(self.cluster_centers_).astype(np.float64)
        frame = describe(design, None, centres).frame
        labeller = labeller_of(design, frame, None, keep=False)
        labeller.step(centres, collect=False)
        return labeller.labels

    def transform(self, X: Any) -> Any:
        """Distances of each row to all centres, of shape (n_samples, n_clusters)."""
        X = self._queries(X)
        if is_torch(X):
            import torch

            return torch.cdist(X, like(to_numpy(self.cluster_centers_), X).to(X.dtype))
        centres = to_numpy(self.cluster_centers_)
        if isinstance(X, Design):
            parts = [euclidean_distances(block, centres) for _, block in X.blocks()]
            return np.concatenate(parts).astype(X.dtype, copy=False)
        return euclidean_distances(X, centres)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the sum of squared distances to the nearest centres; ``y`` is not used."""
        X = self._queries(X)
        weights = (
            _native_weights(sample_weight, X) if is_native(X) else check_weights(sample_weight, X)
        )
        centres = to_numpy(self.cluster_centers_).astype(np.float64)
        design = as_design(X)
        return -inertia(design, centres, self._label(X), held(weights, design))

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


_CHECKS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
    "accept_large_sparse": False,
}


def _canonical(X: Any) -> Any:
    """Sparse rows have no entry twice."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _native_weights(sample_weight: Any, X: Any) -> Any:
    """Checked weights next to tensors and row blocks; of rows over ranks, those of the rows held here."""
    if isinstance(X, RankRows):
        return weights_over_ranks(sample_weight, X)
    return _check_weights(sample_weight, X)


def stored_in(design: Design) -> Any:
    """The array or tensor that holds the rows held here; None where they are on disk."""
    return getattr(getattr(design, "local", design), "X", None)


def held(weights: Any, design: Design) -> Any:
    """The weights of the rows held here, next to them."""
    return None if weights is None else like(getattr(weights, "here", weights), stored_in(design))


def initial_centres(
    model: Any,
    X: Any,
    design: Design,
    weights: Any,
    given: Array | None,
    random_state: Any,
    k: int | None = None,
) -> Array:
    """First centres by the model's ``init``, in the precision of X, as float64."""
    k = model.n_clusters if k is None else k
    if given is not None:
        return given.copy()
    if isinstance(model.init, str) and model.init == "k-means++":
        return plus_plus(design, k, weights, random_state)[0]
    if isinstance(model.init, str):
        return random_rows(design, k, weights, random_state)[0]
    centres = model.init(X, k, random_state=random_state)
    centres = check_array(to_numpy(centres), dtype=design.dtype, copy=False, order="C")
    model._check_centres(centres, X)
    return np.asarray(centres, dtype=np.float64)


def check_scale(spread: float, reach: float) -> None:
    """Refuse rows whose squared distances overflow float64."""
    if not np.isfinite(4.0 * spread):
        raise scale_error("X", reach)
