r"""Any module as an estimator: ``NeuralClassifier`` and ``NeuralRegressor``.

A fit takes a fresh copy of the module, seeds torch by ``random_state``, and gives it to the trainer
(:func:`surefit.nn.train.train`), which minimises

.. math:: \frac{1}{\sum_i w_i} \sum_i w_i\, \ell(f_\theta(x_i), y_i) ,

:math:`\ell` cross-entropy of the outputs (one a class, without softmax) or the squared error, by default.
The module stays an ordinary ``nn.Module``. See :mod:`surefit.nn._network_claims` for what is certified; no
claim of optimality is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, column_or_1d
from torch import nn

from ._constant_claim import log_shares, weighted_mean
from ._estimator_base import ClassifierPart
from ._neural_base import Neural

__all__ = ["NeuralClassifier", "NeuralRegressor"]


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
        The share of rows that no step uses. Copies of a row fall on one side; the same data are split alike
        at each fit that goes on.
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
    validation_rows_ : ndarray or None
        The rows that were held out.
    seen_rows_ : ndarray of uint64
        A key of each row that any step of this estimator has used, ascending.
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

    def _constant(self) -> Any:
        if self.loss is not None:
            return None
        return lambda codes, weight: log_shares(codes, weight, len(self.classes_))

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

    def _wrong_outputs(self, X: Any, y: Any) -> Iterator[str]:
        yield from super()._wrong_outputs(X, y)
        wanted = 0 if y.ndim == 1 else y.shape[1]
        if self.n_outputs_ != wanted:
            yield f"n_outputs_ is {self.n_outputs_!r}, and {wanted} follow from y"

    def _constant(self) -> Any:
        return weighted_mean if self.loss is None else None

    def _loss(self) -> Any:
        if self.loss is None:
            return squared_error
        given = self.loss
        return lambda output, target: given(output.reshape(target.shape), target)
