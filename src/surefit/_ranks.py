"""Vectors over samples that are spread over ranks.

A :class:`RankVector` is the part of a vector that this rank holds. Formulas on its entries work on that
part; what sums over the samples (``v.sum()``, ``s @ v``, ``v.max()``, ``bool((v > 0).all())``) does so over
all ranks, and gives the same number on each. So a solver or a certificate that is written for one process
runs on many, as long as its sums are such expressions.

What is not known to be right here is refused (a sort, a median), rather than done with a part of the
vector. A contiguous slice ``v[first:last]`` is a block of this rank's rows, a plain array, which the caller
adds up himself; ``v[::k]`` is every k-th sample of all ranks. :func:`surefit._namespace.to_numpy` brings a
whole vector to every rank, as it brings one from a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .distributed import Alone

__all__ = ["RankVector", "Spread", "held_here"]


@dataclass(frozen=True)
class Spread:
    """How samples are spread: the group, the number held by ranks before this one, and by all."""

    group: Alone
    first: int
    total: int

    def strided(self, step: int) -> tuple[int, Spread]:
        """Where every ``step``-th sample of all ranks begins here, and how these are spread."""
        before = -(-self.first // step)
        return before * step - self.first, Spread(self.group, before, -(-self.total // step))


def _largest(spread: Spread, part: Any) -> Any:
    return spread.group.max(part)


def _smallest(spread: Spread, part: Any) -> Any:
    return -spread.group.max(-np.asarray(part, dtype=np.float64))


_REDUCTIONS: dict[Any, Callable[[Spread, Any], Any]] = {
    np.add: lambda spread, part: spread.group.sum(part),
    np.maximum: _largest,
    np.minimum: _smallest,
    np.logical_and: lambda spread, part: _smallest(spread, part).astype(bool),
    np.logical_or: lambda spread, part: _largest(spread, np.asarray(part, np.int64)).astype(bool),
}
_LEAST = {np.maximum: -np.inf, np.minimum: np.inf}
# Functions whose result has one row for each sample, computed from that sample alone
_BY_SAMPLE = {
    np.where, np.clip, np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.stack, np.astype,
    np.concatenate, np.column_stack, np.searchsorted, np.copyto, np.nan_to_num, np.isclose, np.isin,
}  # fmt: skip
_METHODS = {
    np.sum: "sum",
    np.max: "max",
    np.min: "min",
    np.all: "all",
    np.any: "any",
    np.mean: "mean",
}


class RankVector(np.ndarray[Any, Any]):
    """The samples of a vector, or of a matrix with a row for each, that this rank holds."""

    spread: Spread
    turned: bool  # samples run along the last axis: a transpose

    def __new__(cls, values: Any, spread: Spread, turned: bool = False) -> RankVector:
        made = np.asarray(values).view(cls)
        made.spread, made.turned = spread, turned
        return made

    def __array_finalize__(self, parent: Any) -> None:
        if parent is not None:
            self.spread = getattr(parent, "spread", None)  # type: ignore[assignment]
            self.turned = self.ndim > 1 and getattr(parent, "turned", False)

    @property
    def here(self) -> NDArray[Any]:
        """This rank's part as a plain array."""
        return self.view(np.ndarray)

    def everywhere(self) -> NDArray[Any]:
        """The whole vector, on every rank."""
        parts = self.spread.group.gather(np.ascontiguousarray(self.here))
        return np.concatenate(parts, axis=-1 if self.turned else 0)

    def like(self, values: Any) -> RankVector:
        """Values for the same samples."""
        return RankVector(values, self.spread, self.turned)

    @property
    def T(self) -> RankVector:
        return RankVector(self.here.T, self.spread, self.turned != (self.ndim > 1))

    def mean(self, axis: Any = None, **_: Any) -> Any:  # type: ignore[override]
        if axis not in (None, 0) or self.turned:
            raise TypeError(f"the mean along axis {axis} of a vector over ranks is not defined")
        count = self.here.size if axis is None else len(self.here)  # a mask may have left fewer
        return self.sum(axis=axis) / float(self.spread.group.sum(np.float64(count)))

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        return self.like(self.here.round(decimals))

    def __iter__(self) -> Any:  # of a transpose, its rows are vectors over samples
        return (self.like(row) for row in self.here) if self.turned else self._refuse()

    def transpose(self, *axes: Any) -> RankVector:
        return self.T if not axes else self._refuse()

    def dot(self, other: Any, out: Any = None) -> Any:
        return self @ other

    def __getitem__(self, key: Any) -> Any:
        first, *rest = key if isinstance(key, tuple) else (key,)
        if first is None and not self.turned:  # v[None, :]: samples run along the last axis
            if self.ndim > 1 or rest not in ([], [slice(None)]):
                raise IndexError(
                    "of a vector over ranks, the samples stay the first axis: v[:, None]"
                )
            return RankVector(self.here[None], self.spread, True)
        if self.turned or not isinstance(first, slice):
            return super().__getitem__(key)
        if first.step not in (None, 1):
            if (first.start, first.stop) != (None, None):
                raise IndexError(
                    "a strided slice of a vector over ranks takes all of it: v[::step]"
                )
            start, spread = self.spread.strided(first.step)
            return RankVector(self.here[(slice(start, None, first.step), *rest)], spread)
        if (first.start, first.stop) == (None, None):
            return super().__getitem__(key)
        return self.here[key]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [_plain(value) for value in inputs]
        if (out := options.get("out")) is not None:
            options["out"] = tuple(_plain(value) for value in out)
        if method == "__call__" and ufunc is np.matmul:
            return _product(*inputs)
        if method == "__call__":
            found = ufunc(*plain, **options)
            if out is not None:
                return out[0]
            owner = next(value for value in inputs if isinstance(value, RankVector))
            if isinstance(found, tuple):
                return tuple(owner.like(value) for value in found)
            return owner.like(found) if np.ndim(found) else found
        if method == "reduce" and ufunc in _REDUCTIONS:
            return self._reduced(ufunc, plain[0], options)
        raise TypeError(f"np.{ufunc.__name__}.{method} is not defined for vectors over ranks")

    def _reduced(self, ufunc: Any, values: Any, options: dict[str, Any]) -> Any:
        axis = options.get("axis", 0)
        axes = range(values.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        samples = values.ndim - 1 if self.turned else 0
        if not values.shape[samples] and ufunc in _LEAST:  # no sample here that a mask left
            options = {"initial": _LEAST[ufunc], **options}
        found = ufunc.reduce(values, **options)
        if samples not in [a % values.ndim for a in axes]:
            return self.like(found)
        return _REDUCTIONS[ufunc](self.spread, found)[()]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _METHODS:
            return getattr(args[0], _METHODS[function])(*args[1:], **kwargs)
        if function is np.dot:
            return _product(*args)
        if function is np.reshape:
            return args[0].reshape(*args[1:], **kwargs)
        if function in (np.shape, np.ndim, np.size):
            return function(args[0].here, *args[1:], **kwargs)
        if function not in _BY_SAMPLE:
            name = getattr(function, "__name__", str(function))
            raise TypeError(f"np.{name} is not defined for vectors over ranks")
        found = function(*_plain(args), **{name: _plain(value) for name, value in kwargs.items()})
        return self.like(found) if isinstance(found, np.ndarray) else found

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "sorting, ranking, running sums and loops over samples are not defined for vectors over ranks"
        )

    sort = argsort = argmax = argmin = cumsum = var = std = nonzero = partition = _refuse
    prod = cumprod = trace = swapaxes = tolist = argpartition = _refuse


def held_here(values: Any) -> Any:
    """What this rank holds of a vector over samples, as a fitted attribute; anything else as it is."""
    return values.here if isinstance(values, RankVector) else values


def _plain(value: Any) -> Any:
    """RankVectors, also within tuples and lists, as plain arrays of this rank's part."""
    if isinstance(value, RankVector):
        return value.here
    return type(value)(map(_plain, value)) if isinstance(value, (tuple, list)) else value


def _product(left: Any, right: Any) -> Any:
    """left @ right: a sum over all ranks where it runs over samples, else one row for each sample."""
    local = _plain(left) @ _plain(right)
    along = isinstance(left, RankVector) and (left.ndim == 1 or left.turned)
    across = isinstance(right, RankVector) and not right.turned
    if along and across:
        return left.spread.group.sum(local)[()]
    if along or across:
        raise TypeError("a product over samples needs both vectors spread over the ranks")
    return left.like(local) if isinstance(left, RankVector) else right.like(local)
