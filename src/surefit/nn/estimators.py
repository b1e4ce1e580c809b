r"""Any module as an estimator: ``NeuralClassifier`` and ``NeuralRegressor``.

A fit takes a fresh copy of the module, seeds torch by ``random_state``, and gives it to the trainer
(:func:`surefit.nn.train.train`), which minimises

.. math:: \frac{1}{\sum_i w_i} \sum_i w_i\, \ell(f_\theta(x_i), y_i) ,

:math:`\ell` cross-entropy of the outputs (one a class, without softmax) or the squared error, by default.
The module stays an ordinary ``nn.Module``. See :mod:`surefit.nn._network_claims` for what is certified; no
claim of optimality is."""

from __future__ import annotations

import contextlib
import copy
import inspect
import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, column_or_1d
from torch import nn

from ._estimator_base import ClassifierPart, Network, seeded
from .batches import mixed
from .optimizers import make_optimizer, unshaped
from .precision import pick_device
from .train import train

__all__ = ["NeuralClassifier", "NeuralRegressor"]


class Neural(Network):
    """What classifier and regressor share."""

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

    def _fresh(self) -> nn.Module:
        maker = self._maker()
        with seeded(self.seed_):
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
            self.__dict__.pop("_optimizer", None)
        if not incremental:
            self.__dict__.pop("_optimizer", None)
        first = next((p for p in self._module.parameters() if p.is_floating_point()), None)
        self._check_range(X, torch.float32 if first is None else first.dtype)
        target, weight = self._targets(y), self._row_weights(y, sample_weight)
        rows, held = np.arange(len(X)), None
        if self.validation_fraction and not incremental:
            rows, held = train_test_split(
                rows,
                random_state=rng,
                test_size=self.validation_fraction,
                stratify=self._strata(y),
            )
        shaped = self._shaped(X)
        picked = torch.from_numpy(rows)
        data = (shaped, target) if held is None else (shaped[rows], target[picked])
        validation: Any = None
        if held is not None:
            validation = (shaped[held], target[torch.from_numpy(held)])
            if weight is not None and weight[held].any():
                validation = (*validation, weight[held])
        module = self._module

        def optimizer(groups: Any, lr: float) -> Any:
            if "_optimizer" not in self.__dict__:
                self._optimizer = make_optimizer(self.optimizer, module, lr, self.weight_decay)
            return self._optimizer

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
            "held": getattr(self, "validation_rows_", None),
            "chosen": self.patience is not None,
        }


def squared_error(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean over targets of the squared error, one number a row."""
    return (output.reshape(target.shape) - target).square().reshape(len(target), -1).mean(dim=1)


def cross_entropy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Softmax cross-entropy, one number a row."""
    return nn.functional.cross_entropy(output, target, reduction="none")


def wrong(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """1 where the largest output is not the target's."""
    return (output.argmax(dim=1) != target).to(torch.float32)


class NeuralClassifier(ClassifierMixin, Neural, ClassifierPart):
    """A classifier from any module that gives one number a class.

    Parameters
    ----------
    module : nn.Module, class or function
        A module (copied at each fit), or what makes one: called with those of ``shape`` (of a row),
        ``n_features`` (their number) and ``n_outputs`` that its signature names.
    loss : callable, optional
        ``loss(output, target)``, one number a row; targets are places in ``classes_``. By default
        cross-entropy.
    epochs, batch_size, optimizer, lr, weight_decay, schedule, warmup, accumulate, clip, ema, precision,
    compile, device, augment, checkpoint, verbose
        See :func:`surefit.nn.train.train`.
    patience : int, optional
        Stop after so many epochs without a lower validation loss; needs ``validation_fraction``.
    validation_fraction : float, default=0.0
        The share of rows that no step uses.
    class_weight : dict or "balanced", optional
    warm_start : bool, default=False
        Go on from the weights of the last fit.
    random_state : int, RandomState or None
    certify : bool or "full", default=True

    Attributes
    ----------
    module_ : nn.Module
        In evaluation mode; gives logits of shape (n, classes).
    classes_ : ndarray
    loss_, loss_curve_, validation_curve_, n_iter_
        Losses by epoch, epochs done.
    final_loss_ : float
        The mean loss of the final weights over the rows of the fit.
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from torch import nn
    >>> X, y = load_iris(return_X_y=True)
    >>> def net(n_features, n_outputs):
    ...     return nn.Sequential(nn.Linear(n_features, 16), nn.ReLU(), nn.Linear(16, n_outputs))
    >>> model = NeuralClassifier(net, epochs=40, batch_size=30, lr=0.02, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.certificate_.ok
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Neural._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        module: Any,
        *,
        loss: Callable[[Any, Any], torch.Tensor] | None = None,
        epochs: int = 10,
        batch_size: int = 128,
        optimizer: Any = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        schedule: Any = "constant",
        warmup: float = 0,
        accumulate: int = 1,
        clip: float | None = None,
        ema: float | None = None,
        precision: str = "auto",
        compile: bool | str = False,
        device: Any = None,
        patience: int | None = None,
        validation_fraction: float = 0.0,
        class_weight: Any = None,
        augment: Any = None,
        checkpoint: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.module = module
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.accumulate = accumulate
        self.clip = clip
        self.ema = ema
        self.precision = precision
        self.compile = compile
        self.device = device
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.augment = augment
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the module to rows X with labels y."""
        again = self.warm_start and "_module" in self.__dict__
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=not again)
        if not again:
            self._set_classes(np.unique(y))
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """One pass over rows X; ``classes`` lists all labels at the first call."""
        first = "_module" not in self.__dict__
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=first)
        if first:
            self._set_classes(np.unique(classes))
            self._known(y)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: Any) -> Any:
        """The label of the largest output of each row."""
        best = self._outputs(X).argmax(dim=1).numpy()
        return self.classes_[best]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The softmax of the outputs."""
        return self._outputs(X).softmax(dim=1).numpy()

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithm of :meth:`predict_proba`, without underflow."""
        return self._outputs(X).log_softmax(dim=1).numpy()

    # ------------------------------------------------------------------ the problem

    def _set_classes(self, classes: Any) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, but y has one class: {classes.tolist()}."
            )
        self.classes_ = classes

    def _outputs_wanted(self) -> int:
        return len(self.classes_)

    def _why_width(self, wanted: int) -> str:
        return f"one number for each of the {wanted} classes {self.classes_[:10].tolist()}."

    def _targets(self, y: Any) -> torch.Tensor:
        return torch.from_numpy(self._codes(y))

    def _loss(self) -> Any:
        return cross_entropy if self.loss is None else self.loss

    def _metrics(self) -> Any:
        return {"error": wrong}

    def _strata(self, y: Any) -> Any:
        return y if np.unique(y, return_counts=True)[1].min() > 1 else None

    def _run_facts(self, n: int) -> dict[str, Any]:
        return super()._run_facts(n) | {"wrong": wrong}


class NeuralRegressor(RegressorMixin, Neural):
    """A regression by any module that gives one number a target.

    Parameters
    ----------
    module, epochs, batch_size, optimizer, lr, weight_decay, schedule, warmup, accumulate, clip, ema,
    precision, compile, device, patience, validation_fraction, augment, checkpoint, warm_start, verbose,
    random_state, certify
        As in :class:`NeuralClassifier`.
    loss : callable, optional
        ``loss(output, target)``, one number a row; the mean squared error over targets by default.

    Attributes
    ----------
    module_ : nn.Module
        In evaluation mode; gives numbers of shape (n,), (n, 1) or (n, targets).
    loss_, loss_curve_, validation_curve_, n_iter_, final_loss_, certificate_
        As in :class:`NeuralClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> X = np.linspace(-1, 1, 64)[:, None]
    >>> model = NeuralRegressor(nn.Linear(1, 1), epochs=60, batch_size=16, lr=0.1, random_state=0)
    >>> model.fit(X, 3 * X[:, 0] + 1).predict([[0.0], [1.0]]).round(2)
    array([1., 4.], dtype=float32)
    """

    def __init__(
        self,
        module: Any,
        *,
        loss: Callable[[Any, Any], torch.Tensor] | None = None,
        epochs: int = 10,
        batch_size: int = 128,
        optimizer: Any = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        schedule: Any = "constant",
        warmup: float = 0,
        accumulate: int = 1,
        clip: float | None = None,
        ema: float | None = None,
        precision: str = "auto",
        compile: bool | str = False,
        device: Any = None,
        patience: int | None = None,
        validation_fraction: float = 0.0,
        augment: Any = None,
        checkpoint: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.module = module
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.warmup = warmup
        self.accumulate = accumulate
        self.clip = clip
        self.ema = ema
        self.precision = precision
        self.compile = compile
        self.device = device
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.augment = augment
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.verbose = verbose
        self.random_state = random_state
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the module to rows X with numbers y."""
        again = self.warm_start and "_module" in self.__dict__
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=not again)
        self._set_outputs(y, not again)
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """One pass over rows X."""
        first = "_module" not in self.__dict__
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=first)
        self._set_outputs(y, first)
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: Any) -> NDArray[Any]:
        """The number, or numbers, of each row."""
        found = self._outputs(X)
        return (
            found.reshape(len(found), -1).numpy() if self.n_outputs_ else found.reshape(-1).numpy()
        )

    # ------------------------------------------------------------------ the problem

    def _set_outputs(self, y: Any, first: bool) -> None:
        outputs = 0 if y.ndim == 1 else y.shape[1]
        if first:
            self.n_outputs_ = outputs
        elif outputs != self.n_outputs_:
            raise ValueError(
                f"y has {outputs or 1} targets a row, expected {self.n_outputs_ or 1}."
            )

    def _outputs_wanted(self) -> int:
        return self.n_outputs_ or 1

    def _fits(self, shape: Any, wanted: int) -> bool:
        return bool(shape == (1, wanted) or (wanted == 1 and shape == (1,)))

    def _labels(self, y: Any) -> Any:
        y = check_array(
            y, ensure_2d=False, allow_nd=True, dtype=[np.float64, np.float32], input_name="y"
        )
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if y.ndim > 2:
            raise ValueError(f"y must have one or more numbers a row, got shape {y.shape}.")
        return y

    def _targets(self, y: Any) -> torch.Tensor:
        found = torch.from_numpy(np.array(y))
        first = next((p for p in self._module.parameters() if p.is_floating_point()), None)
        return found.to(torch.float32 if first is None else first.dtype)

    def _loss(self) -> Any:
        if self.loss is None:
            return squared_error
        given = self.loss
        return lambda output, target: given(output.reshape(target.shape), target)
