"""What a fitted factorisation answers: ratings of pairs, lists for users, factors of new users."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._namespace import array_namespace, is_torch, like, to_numpy
from ..design import as_design
from ..solvers.factor_als import fold_in
from ..solvers.factor_full import fold_in_full
from ..solvers.factor_problem import side

__all__ = ["Queries"]

_AT_ONCE = 1 << 22  # scores that are formed at a time


class Queries(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a factorisation that has ``user_factors_``, ``item_factors_`` and, perhaps, biases."""

    user_factors_: Any
    item_factors_: Any
    user_biases_: Any
    item_biases_: Any
    global_mean_: float
    seen_: Any
    biases: bool
    implicit: bool
    weighted_reg: bool

    @property
    def components_(self) -> Any:
        """The items' factors, transposed; with biases a last row of ones, for the users' biases."""
        V = self.item_factors_
        if not self.biases:
            return V.T
        return array_namespace(V).concat([V, V[:, :1] * 0 + 1], axis=1).T

    @property
    def _n_features_out(self) -> int:
        return int(self.item_factors_.shape[1]) + bool(self.biases)

    def _offset(self) -> Any:
        """What every user's row starts from: the mean and the items' biases."""
        V = self.item_factors_
        return self.global_mean_ + (self.item_biases_ if self.biases else V[:, 0] * 0)

    def transform(self, X: Any) -> Any:
        """Factors of users, new ones or old, for the items as fitted: one ridge solve a user.

        Parameters
        ----------
        X : {array-like, sparse matrix, tensor, RowBlocks} of shape (n_users, n_items)
            Their ratings, as in :meth:`fit`. A user without any gets 0.

        Returns
        -------
        array of shape (n_users, n_components), or one column more with biases: the users' biases
            After alternating least squares by Cholesky, those of the training users are ``user_factors_``.
        """
        check_is_fitted(self)
        X, _, _ = self._validate_training_data(X, None, None, reset=False)
        rows = getattr(X, "rows", X) if hasattr(X, "rows_by_rank") else X
        V = self.item_factors_
        if self.biases:
            V = array_namespace(V).concat([V, self.item_biases_[:, None]], axis=1)
        penalties = self._penalties()
        if sp.issparse(rows):
            V = to_numpy(V)
            csr = self._confidences(rows, self.global_mean_)
            counts = np.diff(csr.indptr).astype(np.float64)
            scale = counts if self.weighted_reg else np.ones(len(counts))
            new = side(csr, penalties.users, scale, implicit=self.implicit, dtype=V.dtype)
            Z: Any = fold_in(new, np.ascontiguousarray(V), biases=self.biases)
            return Z
        V = to_numpy(V).astype(np.float64)
        Z = fold_in_full(as_design(rows), V, self.global_mean_, penalties)
        return Z.to(rows.dtype) if is_torch(Z) else Z.astype(to_numpy(self.item_factors_[:1]).dtype)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """``fit(X).transform(X)``."""
        return self.fit(X).transform(X)

    def inverse_transform(self, Z: Any) -> Any:
        """All ratings of users with the factors Z (as :meth:`transform` gives them)."""
        check_is_fitted(self)
        Z = Z if is_torch(Z) else np.asarray(Z)
        if Z.ndim != 2 or Z.shape[1] != self._n_features_out:
            raise ValueError(
                f"Z must have {self._n_features_out} columns, as transform gives them, got shape "
                f"{tuple(Z.shape)}."
            )
        return Z @ like(self.components_, Z) + like(self._offset(), Z)

    def predict(self, users: Any, items: Any = None) -> Any:
        """Ratings of pairs of training users and items; of a matrix of ratings, the next item of each row.

        Parameters
        ----------
        users, items : int or array-like of int
            Numbers of training users and items, of one shape or broadcast. ``predict(X)`` with a matrix X of
            ratings, as in :meth:`transform`, gives for each row the number of the item of highest prediction
            that it has not rated (of all items, where it has rated all).

        Returns
        -------
        array
            mu + b_i + c_j + <u_i, v_j>; the preference in [0, 1] or so for implicit feedback.
        """
        check_is_fitted(self)
        if items is None:
            return self._next_items(users)
        i = self._known("users", users, self.user_factors_.shape[0])
        j = self._known("items", items, self.item_factors_.shape[0])
        i, j = np.broadcast_arrays(i, j)
        U, V = to_numpy(self.user_factors_), to_numpy(self.item_factors_)
        flat_i, flat_j = i.ravel(), j.ravel()
        out = np.empty(len(flat_i), dtype=V.dtype)
        step = max(1, _AT_ONCE // (4 * max(1, V.shape[1])))
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            out[part] = np.einsum("ij,ij->i", U[flat_i[part]], V[flat_j[part]])
        out += V.dtype.type(self.global_mean_)
        if self.biases:
            out += to_numpy(self.user_biases_)[flat_i] + to_numpy(self.item_biases_)[flat_j]
        return out.reshape(i.shape)[()]

    def _next_items(self, X: Any) -> NDArray[np.int64]:
        scores = to_numpy(self.inverse_transform(self.transform(X)))
        X, _, _ = self._validate_training_data(X, None, None, reset=False)
        rows = getattr(X, "rows", X) if hasattr(X, "rows_by_rank") else X
        if sp.issparse(rows):
            kept = self._confidences(rows)
            rated = np.repeat(np.arange(len(scores)), np.diff(kept.indptr))
            left = np.diff(kept.indptr) < scores.shape[1]
            hide = left[rated]
            scores[rated[hide], kept.indices[hide]] = -np.inf
        best: NDArray[np.int64] = scores.argmax(axis=1)
        return best

    def recommend(
        self, users: Any, n: int = 10, *, exclude_seen: bool = True
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The items of highest prediction for each user, highest first, ties by item number.

        Parameters
        ----------
        users : int or array-like of int
            Numbers of training users.
        n : int, default=10
        exclude_seen : bool, default=True
            Leave out what the user rated in training.

        Returns
        -------
        items, scores : arrays of shape (n,) or (n_users, n)
            Where a user has fewer than n items left, item -1 with score -inf fills the rest.
        """
        check_is_fitted(self)
        i = self._known("users", users, self.user_factors_.shape[0])
        if i.ndim > 1:
            raise ValueError(f"users must be a number or one-dimensional, got shape {i.shape}.")
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}.")
        if exclude_seen and self.seen_ is None:
            raise ValueError(
                "every user rated every item of a full matrix: pass exclude_seen=False, or mark what is "
                "missing with NaN."
            )
        U, V = to_numpy(self.user_factors_), to_numpy(self.item_factors_)
        offset = to_numpy(self._offset()).astype(V.dtype)
        flat = np.atleast_1d(i)
        items = np.full((len(flat), n), -1, dtype=np.int64)
        scores = np.full((len(flat), n), -np.inf, dtype=V.dtype)
        step, most = max(1, _AT_ONCE // len(V)), min(n, len(V))
        for start in range(0, len(flat), step):
            rows = flat[start : start + step]
            S = U[rows] @ V.T + offset
            if exclude_seen:
                seen = self.seen_[rows]
                S[np.repeat(np.arange(len(rows)), np.diff(seen.indptr)), seen.indices] = -np.inf
            if most < len(V):  # all that are as good as the n-th: ties are broken by number
                least = -np.partition(-S, most - 1, axis=1)[:, most - 1 : most]
            else:
                least = np.full((len(rows), 1), -np.inf, dtype=S.dtype)
            for r in range(len(rows)):
                found = np.flatnonzero((S[r] >= least[r]) & (S[r] > -np.inf))
                found = found[np.argsort(-S[r, found], kind="stable")][:most]
                items[start + r, : len(found)] = found
                scores[start + r, : len(found)] = S[r, found]
        if self.biases:
            scores += to_numpy(self.user_biases_)[flat][:, None]
        return (items[0], scores[0]) if i.ndim == 0 else (items, scores)

    def similar_items(self, item: int, n: int = 10) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The items whose factors have the largest cosine with those of ``item``, itself left out."""
        check_is_fitted(self)
        j = int(self._known("items", item, self.item_factors_.shape[0]))
        V = to_numpy(self.item_factors_)
        norms = np.linalg.norm(V, axis=1)
        cosines = V @ V[j] / np.maximum(norms * norms[j], np.finfo(V.dtype).tiny)
        order = np.argsort(-cosines, kind="stable")
        order = order[order != j][:n]
        return order, cosines[order]

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the root of the mean squared error on ratings of the training users, held out or not.

        Parameters
        ----------
        X : {array-like, sparse matrix} of the shape of the training data
            Row i holds ratings of training user i; what is stored (or not NaN) is scored.
        """
        check_is_fitted(self)
        X, _, _ = self._validate_training_data(X, None, None, reset=False)
        rows = getattr(X, "rows", X) if hasattr(X, "rows_by_rank") else X
        if rows.shape[0] != self.user_factors_.shape[0]:
            raise ValueError(
                f"X has {rows.shape[0]} rows, but the model has {self.user_factors_.shape[0]} users: score "
                "compares ratings of the users of the fit. For new users, transform their ratings first."
            )
        if sp.issparse(rows):
            i = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
            given = rows.data if not self.implicit else (rows.data > 0).astype(np.float64)
            errors = np.asarray(given - self.predict(i, rows.indices), dtype=np.float64)
            return -float(np.sqrt(np.mean(errors**2)))
        total, count = 0.0, 0
        U = self.user_factors_
        b = self.user_biases_ if self.biases else None
        for part, block in as_design(rows).blocks():
            found = like(U, block)[part] @ like(self.item_factors_, block).T + like(
                self._offset(), block
            )
            found = found if b is None else found + like(b, block)[part][:, None]
            total += float(((found - block) ** 2).sum())
            count += block.shape[0] * block.shape[1]
        return -float(np.sqrt(total / count))

    @staticmethod
    def _known(name: str, values: Any, size: int) -> NDArray[np.int64]:
        """Whole numbers below ``size``."""
        array = np.asarray(values)
        if array.dtype.kind not in "iu":
            raise ValueError(
                f"{name} must be whole numbers from 0 to {size - 1}, got {array.dtype}."
            )
        if array.size and (array.min() < 0 or array.max() >= size):
            wrong = array.min() if array.min() < 0 else array.max()
            raise ValueError(
                f"{name} holds {wrong}, but the model knows {name} 0 to {size - 1}. New users: transform."
            )
        return array.astype(np.int64)
