"""What the mixtures share: validation of X, and everything that follows from log pi_k + log p(x_n | k)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._namespace import array_namespace, is_torch, like, to_numpy
from ..base import Certified
from ..design import as_design
from ..inputs import is_native, validate_native_X

__all__ = ["Mixture", "log_total"]


def log_total(e: Any) -> Any:
    """log sum_k exp(e_nk) for each row."""
    xp = array_namespace(e)
    top = xp.max(e, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return top + xp.log(xp.sum(xp.exp(e - top[:, None]), axis=1))


class Mixture(DensityMixin, Certified):
    """p(x) = sum_k weights_k p(x | k), fitted by EM."""

    paradigm: ClassVar[str] = "unsupervised"
    n_components: int
    random_state: Any
    weights_: Any
    _may_be_infinite: ClassVar[dict[str, str]] = {
        "lower_bound_": "with max_iter=0 no E-step was made, and its value is minus infinity"
    }
    _least_rows: ClassVar[int] = 1
    _sparse: ClassVar[Any] = False

    def _accepts(self) -> frozenset[str]:
        return frozenset({"dense", "torch", "blocks", "ranks"})

    @abstractmethod
    def _log_joint(self, X: Any) -> Any:
        """log pi_k + log p(x_n | k) of checked rows: (n, K), float64, where X lives."""

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if is_native(X):
            return validate_native_X(self, X, reset=reset)
        return validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            accept_sparse=self._sparse,
            ensure_min_samples=self._least_rows if reset else 1,
            reset=reset,
        )

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        if sample_weight is not None:
            raise ValueError(
                f"{type(self).__name__} takes no sample_weight. Leave it out, or repeat the rows."
            )
        if reset:
            self.__dict__.pop("certificate_", None)
        X = self._checked(X, reset=reset)
        if reset and X.shape[0] < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {X.shape[0]}"
            )
        return X, None, None

    # ------------------------------------------------------------------ predictions

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._checked(X, reset=False)

    @staticmethod
    def _in_kind(values: Any, X: Any) -> Any:
        """In the precision of X, as scikit-learn gives it."""
        if is_torch(values):
            return values.to(getattr(X, "rows", X).dtype)
        return values.astype(np.float32) if X.dtype == np.float32 else values

    def _proba(self, X: Any) -> Any:
        e = self._log_joint(X)
        return array_namespace(e).exp(e - log_total(e)[:, None])

    def score_samples(self, X: Any) -> Any:
        """The log-likelihood of each row.

        Parameters
        ----------
        X : array-like, tensor or RowBlocks of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or a tensor on the device of X
        """
        X = self._rows(X)
        return self._in_kind(log_total(self._log_joint(X)), X)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like, tensor or RowBlocks of shape (n_samples, n_features)
        y : ignored
        """
        X = self._rows(X)
        design = as_design(X)
        total = to_numpy(log_total(self._log_joint(X)).sum())
        return float(design.group.sum(total)) / design.shape[0]

    def predict(self, X: Any) -> Any:
        """The most probable component of each row.

        Parameters
        ----------
        X : array-like, tensor or RowBlocks of shape (n_samples, n_features)
        """
        e = self._log_joint(self._rows(X))
        return array_namespace(e).argmax(e, axis=1)

    def predict_proba(self, X: Any) -> Any:
        """The posterior probabilities q_nk of the components, for each row.

        Parameters
        ----------
        X : array-like, tensor or RowBlocks of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components), or a tensor on the device of X
        """
        X = self._rows(X)
        return self._in_kind(self._proba(X), X)

    @abstractmethod
    def _drawn(self, rng: Any, counts: Any) -> Any:
        """Rows of the components one after the other, so many of each."""

    def sample(self, n_samples: int = 1) -> tuple[Any, Any]:
        """Rows drawn from the fitted model, component by component, and their components.

        Parameters
        ----------
        n_samples : int, default=1
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples} . The sampling requires at least one sample."
            )
        rng = check_random_state(self.random_state)
        weights = to_numpy(self.weights_).astype(np.float64)
        counts = rng.multinomial(n_samples, weights / weights.sum())
        rows, labels = self._drawn(rng, counts), np.repeat(np.arange(len(counts)), counts)
        if is_torch(self.weights_):
            return like(rows, self.weights_), like(labels, self.weights_)
        return rows, labels

    def _bring(self, values: Any, X: Any) -> Any:
        """A fitted attribute, in float64, next to X."""
        array = to_numpy(values).astype(np.float64)
        near = getattr(X, "rows", X)  # of rows over ranks, those held here
        return like(array, near) if is_torch(near) else array

    @abstractmethod
    def _n_parameters(self) -> int:
        """How many free parameters there are."""

    def bic(self, X: Any) -> float:
        """Bayes' information criterion of the model on X: the lower the better."""
        n = X.shape[0]
        return float(-2 * self.score(X) * n + self._n_parameters() * np.log(n))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion of the model on X: the lower the better."""
        return float(-2 * self.score(X) * X.shape[0] + 2 * self._n_parameters())
