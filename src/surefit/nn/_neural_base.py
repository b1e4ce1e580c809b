"""How any module is fitted as an estimator: what ``NeuralClassifier`` and ``NeuralRegressor`` share."""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from ..stats import Repeats
from ._estimator_base import Network, seeded
from ._held_out import HeldOut
from ._split import find_copies, hold_out_rows, input_keys, weights_not_drawn
from .batches import mixed
from .optimizers import make_optimizer, maker_of, unshaped
from .precision import pick_device
from .train import train

__all__ = ["Neural"]


class _KeptOptimizer:
    """Makes the optimiser of an estimator once, so that its moments outlive a call of ``partial_fit``."""

    def __init__(self, model: Neural) -> None:
        self.model = model

    def __call__(self, groups: Any, lr: float) -> Any:
        m = self.model
        if "_optimizer" not in m.__dict__:
            m._optimizer = make_optimizer(m.optimizer, m.module_, lr, m.weight_decay)
        return m._optimizer

    def recipe(self) -> Any:
        """What a resumed run compares."""
        return maker_of(self.model.optimizer)


class Neural(Network):
    """What classifier and regressor share."""

    _optimizer: Any
    _given_again: ClassVar[frozenset[str]] = frozenset(
        {"module", "loss", "optimizer", "schedule", "augment"}
    )
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "module": [callable, nn.Module],
        "loss": [callable, None],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "optimizer": [str, callable],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "schedule": [str, callable],
        "warmup": [Interval(Real, 0, None, closed="left")],
        "accumulate": [Interval(Integral, 1, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "ema": [Interval(Real, 0, 1, closed="neither"), None],
        "precision": [StrOptions({"auto", "float32", "bf16"})],
        "compile": ["boolean", str],
        "device": "no_validation",
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "augment": [callable, None],
        "checkpoint": "no_validation",
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "certify": Network._certify_constraint,
    }

    # ------------------------------------------------------------------ the module

    def _outputs_wanted(self) -> int:
        raise NotImplementedError

    def _module_shape(self) -> tuple[int, ...]:
        """The shape of a row as the module takes it."""
        return tuple(self.input_shape_)

    def _maker(self) -> Any:
        """A module, or what makes one."""
        return self.module

    def _fresh(self, seed: int | None = None) -> nn.Module:
        maker = self._maker()
        with seeded(self.seed_ if seed is None else seed):
            shape = self._module_shape()
            if isinstance(maker, nn.Module):
                module = copy.deepcopy(maker)
            else:
                known = {
                    "shape": shape,
                    "n_features": math.prod(shape),
                    "n_outputs": self._outputs_wanted(),
                }
                names = inspect.signature(maker).parameters
                module = maker(**{name: known[name] for name in known if name in names})
            if not isinstance(module, nn.Module):
                raise TypeError(f"module must give an nn.Module, got {type(module).__name__}.")
            if module is self.__dict__.get("_module"):  # the one that it made before
                module = copy.deepcopy(module)
            if unshaped(module):  # whose sizes and weights come from a first row
                with torch.no_grad(), contextlib.suppress(RuntimeError):
                    module.eval()(torch.zeros(1, *shape))
                module.train()
        return module

    def _check_width(self, X: Any) -> None:
        """The module takes a row of X, and gives what the targets need."""
        module, wanted = self._module.eval(), self._outputs_wanted()
        with torch.inference_mode():
            try:
                output = module(self._placed(X[:1]))
            except RuntimeError as error:
                raise ValueError(
                    f"the module does not take rows of shape {self._module_shape()} (X has shape "
                    f"{tuple(X.shape)}): {str(error).splitlines()[0]}"
                ) from error
        shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        if not self._fits(shape, wanted):
            raise ValueError(
                f"the module's output for one row has shape {shape}, expected (1, {wanted}): "
                f"{self._why_width(wanted)}"
            )

    def _fits(self, shape: Any, wanted: int) -> bool:
        return bool(shape == (1, wanted))

    def _why_width(self, wanted: int) -> str:
        return f"one number for each of {wanted} targets."

    # ------------------------------------------------------------------ fitting

    def _trained(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> Any:
        fresh = "_module" not in self.__dict__ or not (self.warm_start or incremental)
        rng = check_random_state(self.random_state)
        if self.patience is not None and not self.validation_fraction:
            raise ValueError(
                f"patience={self.patience} needs validation rows: set validation_fraction, such as 0.1."
            )
        draw = int(rng.randint(2**31 - 1))
        if fresh:
            self.seed_ = draw
            module = self._fresh()
            module.to(pick_device(self.device, module))
            self._module = module
            self._check_width(X)
            self.n_iter_ = 0
            self.seen_rows_ = np.empty(0, dtype=np.uint64)
            self.__dict__.pop("_optimizer", None)
        if not incremental:
            self.__dict__.pop("_optimizer", None)
        first = next((p for p in self._module.parameters() if p.is_floating_point()), None)
        self._check_range(X, torch.float32 if first is None else first.dtype)
        target, weight = self._targets(y), self._row_weights(y, sample_weight)
        rows, held = np.arange(len(X)), None
        if self.validation_fraction and not incremental:
            rows, held = self._split(X, y)
        self.seen_rows_ = np.union1d(self.seen_rows_, input_keys(X)[rows])
        shaped = self._shaped(X)
        picked = torch.from_numpy(rows)
        data = (shaped, target) if held is None else (shaped[rows], target[picked])
        validation: Any = None
        if held is not None:
            validation = (shaped[held], target[torch.from_numpy(held)])
            if weight is not None and weight[held].any():
                validation = (*validation, weight[held])
        module, optimizer = self._module, _KeptOptimizer(self)
        done = train(
            module, data, self._loss(),
            epochs=1 if incremental else self.epochs, batch_size=self.batch_size,
            optimizer=optimizer, lr=self.lr, weight_decay=self.weight_decay,
            schedule="constant" if incremental else self.schedule,
            warmup=0 if incremental else self.warmup, accumulate=self.accumulate, clip=self.clip,
            ema=self.ema, precision=self.precision, compile=self.compile, device=self.device,
            seed=mixed(self.seed_, self.n_iter_) >> 1,
            sample_weight=None if weight is None else weight[rows],
            validation=validation, metrics=self._metrics() if held is not None else None,
            patience=None if incremental else self.patience, augment=self.augment,
            checkpoint=None if incremental else self.checkpoint, verbose=int(self.verbose),
        )  # fmt: skip
        if not incremental:
            self.__dict__.pop("_optimizer", None)
        history = done.history
        self.n_iter_ += len(history)
        before = [] if fresh else getattr(self, "loss_curve_", [])
        self.loss_curve_ = [*before, *history.loss]
        self.loss_ = self.loss_curve_[-1]
        self.validation_curve_ = list(history.validation)
        self.validation_rows_ = held
        self.descent_steps_ = self._descent_steps(len(rows), done.step, fresh and not incremental)
        self._record_loss(X, y, sample_weight)
        return self._seal(X, y, sample_weight, done.stop)

    def __getstate__(self) -> Any:
        """Without the optimiser's moments."""
        state = dict(super().__getstate__())
        state.pop("_optimizer", None)
        return state

    def _split(self, X: Any, y: Any, copies: Repeats | None = None) -> tuple[Any, Any]:
        """The rows of the steps and the rows held out: a function of the data and the weights' seed."""
        found = find_copies(X, y) if copies is None else copies
        share = float(self.validation_fraction)
        return hold_out_rows(share, found, self._strata(y), self.seed_)

    def _held_out(self, X: Any, y: Any) -> HeldOut | None:
        held = getattr(self, "validation_rows_", None)
        if held is None:
            return None
        if self.patience is not None:
            return HeldOut(held, chosen=True)
        copies = find_copies(X, y)
        return HeldOut(
            held,
            chosen=False,
            copies=copies,
            split=lambda: self._split(X, y, copies),
            keys=input_keys(X),
            seen=getattr(self, "seen_rows_", None),
            given_weights=lambda: weights_not_drawn(self._fresh, self.seed_),
            errors=getattr(self, "held_errors_", None),
        )

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        seen, errors = vars(self).get("seen_rows_"), vars(self).get("held_errors_")
        if seen is not None:
            seen = np.asarray(seen)
            if seen.ndim != 1 or seen.dtype != np.uint64 or (seen[1:] <= seen[:-1]).any():
                yield "seen_rows_ are not ascending keys of 64 bits"
        if errors is not None and not isinstance(errors, Integral):
            yield f"held_errors_ is {errors!r}; expected an integer"
        seed: Any = self.seed_
        if not isinstance(seed, Integral):
            yield f"seed_ is {seed!r}; expected an integer"

    def _wrong_outputs(self, X: Any, y: Any) -> Iterator[str]:
        wanted = self._outputs_wanted()
        with torch.inference_mode():
            try:
                shape = tuple(self.module_(self._placed(X[:1])).shape)
            except (RuntimeError, AttributeError) as error:
                yield f"module_ does not take the rows: {str(error).splitlines()[0]}"
                return
        if not self._fits(shape, wanted):
            yield f"module_ gives an output of shape {shape} for a row, and {wanted} are read"

    def _metrics(self) -> Any:
        return None

    def _strata(self, y: Any) -> Any:
        return None

    def _descent_steps(self, n: int, steps: int, fresh: bool) -> int | None:
        """Steps of the run, where it was plain gradient descent on all rows."""
        plain = self.optimizer == "sgd" and self.schedule == "constant" and not self.warmup
        plain = plain and self.clip is None and self.ema is None and self.augment is None
        kinds = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)
        still = not any(isinstance(part, kinds) for part in self._module.modules())
        whole = self.batch_size >= n and self.validation_rows_ is None
        return int(steps) if plain and still and whole and fresh else None

    def _run_facts(self, n: int) -> dict[str, Any]:
        steps = getattr(self, "descent_steps_", None)
        return {
            "compiled": self.compile,
            "decay": float(self.weight_decay),
            "descent": None if steps is None else (steps, float(self.lr)),
        }
