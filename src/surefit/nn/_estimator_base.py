"""What estimators of networks share: checks of data, the module and its file, outputs, the certificate.

The module is the one place where weights live: attributes such as ``coefs_`` are views of it, and a file
holds its state dict. ``module_`` is in evaluation mode and takes what ``_tensor(X)`` gives.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import nn

from .._checkpoint import CheckpointError
from .._namespace import is_torch, to_numpy
from ..base import Certified, check_weights
from ..certificate import Claim
from ._draws import seeded
from ._held_out import HeldOut, errors_of
from ._network_claims import Problem, mean_loss, network_claims, sample_loss
from .checkpoints import fit_to
from .precision import pick_device

__all__ = ["ClassifierPart", "Network", "seeded", "too_large"]

ROWS, NUMBERS = 4096, 1 << 24  # passed at once in predictions, at most
_NOT_NUMPY = (torch.bfloat16,)  # types that numpy lacks; float32 holds their numbers


class Network(Certified):
    """Base of the estimators of networks."""

    device: Any
    warm_start: bool
    input_shape_: tuple[int, ...]
    dtypes: tuple[Any, ...] = (np.float32, np.float64)  # of X; whole numbers become the first
    sparse: bool = False
    _counts: ClassVar[tuple[str, ...]] = ("n_iter_", "n_outputs_", "descent_steps_")
    _may_be_nan: ClassVar[dict[str, str]] = {
        "sample_loss_": "of a module that does not compute in float64"
    }

    # ------------------------------------------------------------------ the module

    @property
    def module_(self) -> nn.Module:
        """The fitted module, in evaluation mode."""
        module = self.__dict__.get("_module")
        if module is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first.")
        return module

    def __sklearn_is_fitted__(self) -> bool:
        return "_module" in self.__dict__

    def _fresh(self) -> nn.Module:
        """A module with the weights that a fit begins with."""
        raise NotImplementedError

    def _loss(self) -> Callable[[Any, Any], torch.Tensor]:
        """(output, target) to one number a row."""
        raise NotImplementedError

    def _targets(self, y: Any) -> torch.Tensor:
        """y as the loss takes it."""
        raise NotImplementedError

    def _row_weights(self, y: Any, sample_weight: Any) -> NDArray[np.float64] | None:
        """Weights of the rows in the loss."""
        return None if sample_weight is None else np.asarray(to_numpy(sample_weight), np.float64)

    def _trained(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> Any:
        """Fit the module, and certify."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool = False) -> Any:
        """A fit that fails or is interrupted leaves no module that nobody fitted, and one that was gone on
        with as it was, but for the optimiser's moments."""
        before = self.__dict__.get("_module")
        kept, weights = {}, {}
        if before is not None and (incremental or self.warm_start):
            kept = {k: list(v) if isinstance(v, list) else v for k, v in self.__dict__.items()}
            weights = {k: v.detach().clone() for k, v in _tensors(before).items()}
        try:
            return self._trained(X, y, sample_weight, incremental=incremental)
        except BaseException:
            if kept:
                for name, value in _tensors(before).items():
                    value.data = weights[name]
                self.__dict__.clear()
                self.__dict__.update(kept)
                self.module_.eval()
                for name in ("_optimizer", "_descent"):
                    self.__dict__.pop(name, None)
            else:
                self.__dict__.pop("_module", None)
            raise

    # ------------------------------------------------------------------ data

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X as an array, or as a tensor where it is one; its shape is kept or compared."""
        given = tuple(getattr(X, "shape", ()))[1:]
        several = not reset and given and max(len(given), len(self.input_shape_)) > 1
        if several and given != tuple(self.input_shape_):
            raise ValueError(
                f"X has rows of shape {given}, but {type(self).__name__} is expecting rows of "
                f"shape {tuple(self.input_shape_)} as input."
            )
        if is_torch(X):
            X = _checked_tensor(X)
            if reset:
                self.n_features_in_ = int(X.shape[1])
                self.__dict__.pop("feature_names_in_", None)
        else:
            X = validate_data(
                self,
                X,
                reset=reset,
                allow_nd=True,
                dtype=list(self.dtypes),
                accept_sparse=["csr", "csc", "coo"] if self.sparse else False,
            )
            X = X.tocsr() if sp.issparse(X) else X
        shape = tuple(int(size) for size in X.shape[1:])
        if reset:
            self.input_shape_ = shape
        elif shape != self.input_shape_:
            kind = "features" if len(shape) == len(self.input_shape_) == 1 else "rows of shape"
            got, wanted = (
                (shape[0], self.input_shape_[0])
                if kind == "features"
                else (shape, self.input_shape_)
            )
            raise ValueError(
                f"X has {got} {kind}, but {type(self).__name__} is expecting {wanted} {kind} as input."
            )
        return X

    def _labels(self, y: Any) -> Any:
        """y, checked; subclasses know of which kind."""
        raise NotImplementedError

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        if reset:
            self.__dict__.pop("certificate_", None)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X = self._checked(X, reset=reset)
        y = self._labels(to_numpy(y) if is_torch(y) else y)
        n = X.shape[0]
        if len(y) != n:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {n} rows and "
                f"y has {len(y)}."
            )
        weight = to_numpy(sample_weight) if is_torch(sample_weight) else sample_weight
        if weight is not None:
            weight = check_weights(weight, np.empty((n, 1)))
        return X, y, weight

    def _tensor(self, X: Any) -> torch.Tensor:
        """X as ``module_`` takes it: a floating tensor on its device."""
        check_is_fitted(self)
        return self._placed(self._checked(X, reset=False))

    def _placed(self, X: Any) -> torch.Tensor:
        """Checked rows as the module takes them."""
        first = next((p for p in self.module_.parameters() if p.is_floating_point()), None)
        device = torch.device("cpu") if first is None else first.device
        dtype = torch.float32 if first is None else first.dtype
        X = X.toarray() if sp.issparse(X) else X
        X = X if is_torch(X) else torch.from_numpy(_writable(X))
        self._check_range(X, dtype)
        return self._shaped(X.to(device, dtype))

    def _check_range(self, X: Any, dtype: torch.dtype) -> None:
        """Features must be finite in the numbers of the module."""
        X = X if is_torch(X) else torch.from_numpy(_writable(X))
        if not X.is_floating_point() or torch.finfo(X.dtype).max <= torch.finfo(dtype).max:
            return
        low, high = X.aminmax() if X.numel() else (0.0, 0.0)
        largest = max(float(high), -float(low))
        if largest > torch.finfo(dtype).max:
            raise too_large(largest, dtype)

    def _shaped(self, X: Any) -> Any:
        """Rows of X, an array or a tensor, in the shape that the module takes."""
        return X

    def _outputs(self, X: Any) -> torch.Tensor:
        """What the module gives, on the processor."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        module = self.module_
        n, size = X.shape[0], max(1, min(ROWS, NUMBERS // max(1, math.prod(X.shape[1:]))))
        with torch.inference_mode():
            parts = [
                module(self._passed(X[start : start + size])).cpu() for start in range(0, n, size)
            ]
        found = torch.cat(parts)
        return found.float() if found.dtype in _NOT_NUMPY else found

    def _passed(self, X: Any) -> Any:
        """Checked rows as they are passed in predictions."""
        return self._placed(X)

    # ------------------------------------------------------------------ the certificate

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> Problem:
        return Problem(
            module=self.module_,
            inputs=lambda rows: self._placed(X[rows]),
            target=self._targets(y),
            weight=self._row_weights(y, sample_weight),
            loss=self._loss(),
            recorded=float(getattr(self, "final_loss_", np.nan)),
            recorded_sample=float(getattr(self, "sample_loss_", np.nan)),
            fresh=self._fresh,
            held=self._held_out(X, y),
            constant=self._constant(),
            **self._run_facts(X.shape[0]),
        )

    def _run_facts(self, n: int) -> dict[str, Any]:
        """What else the problem says of the run."""
        return {}

    def _held_out(self, X: Any, y: Any) -> HeldOut | None:
        """The rows that were held out, and what shows that no step has used them."""
        return None

    def _constant(self) -> Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor] | None:
        """(targets, weights) to the best constant output; None where the loss is a user's own."""
        return None

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        return network_claims(self._problem(X, y, sample_weight), full=full)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        """Add what is wrong with the module's numbers and shapes, with counts and with validation rows."""
        yield from super()._inconsistencies(X, y, sample_weight)
        for name, value in _tensors(self.module_).items():
            parameter = isinstance(value, nn.Parameter)
            flat = torch.view_as_real(value) if value.is_complex() else value
            if flat.is_floating_point() and bool(
                (~flat.isfinite()).any() if parameter else flat.isnan().any()
            ):  # buffers may be masks of infinities
                yield f"module_ has numbers in {name} that are not finite"
        if self.module_.training:
            yield "module_ is in training mode"
        shape = tuple(self.input_shape_)
        if not shape or self.n_features_in_ != shape[0]:
            yield f"n_features_in_ is {self.n_features_in_!r}, and rows have the shape {shape}"
        for name in self._counts:
            value = vars(self).get(name)
            if value is not None and (not isinstance(value, Integral) or value < 0):
                yield f"{name} is {value!r}; expected an integer from 0 on"
        yield from _invalid_rows(vars(self).get("validation_rows_"), X.shape[0])
        yield from self._wrong_outputs(X, y)

    def _wrong_outputs(self, X: Any, y: Any) -> Iterator[str]:
        """Whether the module gives what ``predict`` reads."""
        raise NotImplementedError

    def _record_loss(self, X: Any, y: Any, sample_weight: Any, compressed: Any = None) -> None:
        """Leave ``final_loss_``, the mean loss of the final weights over the rows, in evaluation mode, and
        ``sample_loss_``, that over some rows in float64, and ``held_errors_``, errors on rows kept out."""
        problem = self._problem(X, y, sample_weight)
        wide = problem.widened()
        inputs = wide.inputs
        if compressed is not None:  # the same rows, zeros left out
            inputs = compressed.to("cpu", next(problem.module.parameters()).dtype).__getitem__
        self.final_loss_ = mean_loss(wide.module, inputs, wide.target, wide.weight, wide.loss)[0]
        self.sample_loss_ = sample_loss(problem)
        self.held_errors_ = errors_of(problem)

    def _remedy(self) -> str:
        return (
            "Train longer, scale the features and targets (for instance with StandardScaler), lower the "
            "learning rate, or look at the layers named above."
        )

    # ------------------------------------------------------------------ files

    def _file_attributes(self) -> dict[str, Any]:
        """What a model file holds besides the public attributes."""
        module = self.__dict__.get("_module")
        if module is None:
            return {}
        state = {name: value.detach().cpu() for name, value in module.state_dict().items()}
        state = {k: v.float() if v.dtype in _NOT_NUMPY else v for k, v in state.items()}
        return {
            "state_": {k: torch.view_as_real(v) if v.is_complex() else v for k, v in state.items()}
        }

    def _loaded(self) -> None:
        """After the attributes came from a file: the module from its state."""
        state = self.__dict__.pop("state_", None)
        if state is None:
            return
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in state.items()}
        module = self._fresh()
        for name, value in module.state_dict().items():
            if value.is_complex() and name in tensors and tensors[name].shape[-1:] == (2,):
                tensors[name] = torch.view_as_complex(tensors[name])
        try:
            fit_to(module.state_dict(), tensors)
        except CheckpointError as error:
            words = str(error).split(" Build the module")[0].replace("checkpoint", "file")
            raise CheckpointError(f"{words} Give the module that was fitted.") from None
        for name, value in module.state_dict(keep_vars=True).items():  # each in its own numbers
            kept = tensors[name]
            if value.dtype not in _NOT_NUMPY or not torch.equal(
                kept.to(value.dtype).to(kept), kept
            ):
                value.data = value.data.to(kept.dtype)
        module.load_state_dict(tensors)
        with contextlib.suppress(ValueError):  # a device that is not here
            module.to(pick_device(self.device, module))
        self._module = module.eval()


class ClassifierPart(Network):
    """Labels, classes and class weights."""

    class_weight: Any
    classes_: Any

    def _labels(self, y: Any) -> Any:
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity.")
        check_classification_targets(y)
        return y

    def _codes(self, y: Any) -> NDArray[np.int64]:
        """The places of labels in ``classes_``."""
        y = np.asarray(y)
        if np.array_equal(self.classes_, np.arange(len(self.classes_))) and y.dtype.kind in "iu":
            codes = y.astype(np.int64)
            known = (codes >= 0) & (codes < len(self.classes_))
        else:
            unknown = ~np.isin(y, self.classes_)
            codes = np.searchsorted(self.classes_, np.where(unknown, self.classes_[0], y))
            known = ~unknown
        if not known.all():
            strange = np.unique(y[~known])[:5].tolist()
            raise ValueError(
                f"`y` has classes not in `self.classes_`: {strange}. `self.classes_` has "
                f"{self.classes_.tolist()}; give all of them to the first partial_fit(classes=...)."
            )
        return codes.astype(np.int64)

    def _known(self, y: Any) -> None:
        """An error for labels that are no classes, before there is a module: it would not be a fitted one."""
        if np.ndim(y) == 1:
            self._codes(y)

    def _row_weights(self, y: Any, sample_weight: Any) -> NDArray[np.float64] | None:
        weight = super()._row_weights(y, sample_weight)
        if self.class_weight is None:
            return weight
        balanced, several = self.class_weight == "balanced", np.ndim(y) > 1
        if several and not balanced:
            raise ValueError(
                f"class_weight={self.class_weight!r} is for one label a row, and y has {np.shape(y)[1]}: "
                'pass class_weight="balanced", or weigh rows with sample_weight.'
            )
        if several:  # the product over labels, as sklearn.utils.compute_sample_weight has it
            each = np.prod(
                [_balanced(label, weight) for label in (np.asarray(y) != 0).T.astype(int)], axis=0
            )
        elif balanced:
            each = _balanced(self._codes(y), weight)
        else:
            found = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_)
            each = found[self._codes(y)]
        return each * (1.0 if weight is None else weight)


def _balanced(codes: NDArray[Any], weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """For each row, all weight divided by (classes there are, times the weight of its own class).

    A row of weight 2 counts as two rows.
    """
    counts = np.bincount(codes, weights=weight).astype(np.float64)
    with np.errstate(divide="ignore"):
        share = counts.sum() / (np.count_nonzero(counts) * counts)
    return np.where(counts > 0, share, 0.0)[codes]


def _invalid_rows(rows: Any, n: int) -> Iterator[str]:
    """What is wrong with numbers of held-out rows; those beyond n are of other data, which is said."""
    if rows is None:
        return
    rows = np.asarray(rows)
    if rows.ndim != 1 or rows.dtype.kind != "i" or not len(rows):
        yield f"validation_rows_ is of shape {rows.shape} and type {rows.dtype}, not a list of rows"
    elif rows.min() < 0 or len(np.unique(rows)) < len(rows):
        yield "validation_rows_ names a row twice, or one below 0"


def _tensors(module: nn.Module | None) -> dict[str, torch.Tensor]:
    """The weights and buffers themselves."""
    return {} if module is None else dict([*module.named_parameters(), *module.named_buffers()])


def is_multilabel(y: Any) -> bool:
    """Whether y says yes or no to each of several labels."""
    return bool(type_of_target(y, input_name="y") == "multilabel-indicator")


def too_large(largest: float, dtype: torch.dtype) -> ValueError:
    """What to say of features that are infinite in the numbers of the module."""
    return ValueError(
        f"X holds numbers up to {largest:.3g}, too large for {dtype}, which the module computes in: scale "
        "the features (for instance with StandardScaler)."
    )


def _writable(X: NDArray[Any]) -> NDArray[Any]:
    """torch wants memory that may be written, in order, of a type that it has."""
    X = np.ascontiguousarray(X)  # which leaves a single row of a reversed array as it is
    return X if X.flags.writeable and min(X.strides, default=0) >= 0 else X.copy()


def _checked_tensor(X: Any) -> Any:
    X = X.detach()
    if X.layout != torch.strided or X.is_complex():
        raise TypeError(f"X is a {X.layout} tensor of {X.dtype}: pass a dense one of real numbers.")
    if X.ndim < 2:
        raise ValueError(
            f"Expected 2D array, got a tensor of shape {tuple(X.shape)} instead. Reshape your data."
        )
    for size, words in zip(X.shape, ("sample", "feature")):
        if size < 1:
            raise ValueError(
                f"Found array with 0 {words}(s) (shape={tuple(X.shape)}) while a minimum of 1 is required."
            )
    if X.is_floating_point() and not bool(X.isfinite().all()):
        kind = "NaN" if bool(X.isnan().any()) else "infinity"
        raise ValueError(f"Input X contains {kind}. Drop or impute it first.")
    return X
