r"""Multi-layer perceptrons with scikit-learn's interface (NN-1, NN-5).

With :math:`x^{(0)} = x` and :math:`x^{(l)} = \varphi(W^{(l)\top} x^{(l-1)} + b^{(l)})`, the last layer
linear, weights minimise

.. math:: \frac1n \sum_i \ell(x^{(L)}_i, y_i) + \frac{\alpha}{2n} \sum_l \|W^{(l)}\|_F^2 ,

:math:`\ell` the logistic loss of one output for two classes, softmax cross-entropy for more, half the
squared error for regression: scikit-learn's objective, parameters, initial weights (of Glorot and Bengio;
the same draws for the same seed) and steps. With ``shuffle=False`` losses agree with scikit-learn's to
rounding; the order of shuffled rows is surefit's (:mod:`surefit.nn.batches`). For several targets of a
regression ``loss_`` is the sum over targets, whose gradient scikit-learn takes too; the loss that it prints
is their mean.

No claim of optimality goes with the weights; see :mod:`surefit.nn._network_claims` for what is certified.

References
----------
Rumelhart, Hinton, Williams, "Learning representations by back-propagating errors", Nature 323, 1986.
Glorot, Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d
from torch import nn

from ._constant_claim import log_shares, weighted_mean
from ._estimator_base import ClassifierPart, is_multilabel
from ._mlp_base import BaseMLP
from .perceptron import MLP

__all__ = ["MLP", "MLPClassifier", "MLPRegressor"]

_CERTAIN = (1e-16, 1.0 - 1e-16)  # probabilities whose logits are finite


class MLPClassifier(ClassifierMixin, BaseMLP, ClassifierPart):
    """A multi-layer perceptron for classes, as ``sklearn.neural_network.MLPClassifier``.

    Two classes have one logistic output, more have a softmax; rows with several labels (an indicator matrix)
    have a logistic output a label.

    Parameters
    ----------
    hidden_layer_sizes, activation, solver, alpha, batch_size, learning_rate, learning_rate_init, power_t,
    max_iter, shuffle, random_state, tol, verbose, warm_start, momentum, nesterovs_momentum, early_stopping,
    validation_fraction, beta_1, beta_2, epsilon, n_iter_no_change, max_fun
        As in scikit-learn.
    dropout : float, default=0.0
        The share of hidden units that are left out of a step.
    augment : callable, optional
        Called on the inputs of each batch; see :func:`surefit.nn.train.train`.
    device : optional
        By default a GPU where there is one.
    compile : bool or str, default=False
        Train through ``torch.compile``.
    checkpoint : path, optional
        A folder for checkpoints of the run, from which it goes on; not with ``lbfgs``.
    certify : bool or "full", default=True
    class_weight : dict or "balanced", optional
        Weights of the classes, times those of the rows.

    Attributes
    ----------
    classes_ : ndarray
    coefs_, intercepts_ : list of ndarray
    module_ : nn.Module
        The network, in evaluation mode.
    loss_, best_loss_, loss_curve_, n_iter_, t_, n_layers_, n_outputs_, out_activation_, validation_scores_,
    best_validation_score_
        As in scikit-learn.
    final_loss_ : float
        The mean loss of the final weights over the rows of the fit, without the penalty.
    certificate_ : Certificate

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MLPClassifier((16,), solver="lbfgs", alpha=0.1, max_iter=2000, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.certificate_.ok
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseMLP._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: int = 10,
        max_fun: int = 15000,
        dropout: float = 0.0,
        augment: Any = None,
        device: Any = None,
        compile: bool | str = False,
        checkpoint: Any = None,
        certify: bool | str = True,
        class_weight: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.dropout = dropout
        self.augment = augment
        self.device = device
        self.compile = compile
        self.checkpoint = checkpoint
        self.certify = certify
        self.class_weight = class_weight

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPClassifier:
        """Fit the network to rows X with labels y."""
        again = self.warm_start and "_module" in self.__dict__
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=not again)
        classes = np.arange(y.shape[1]) if y.ndim > 1 else np.unique(y)
        if again:
            if not np.array_equal(classes, self.classes_):
                raise ValueError(
                    "warm_start can only be used where `y` has the same classes as in the previous call to "
                    f"fit. Previously got {self.classes_}, `y` has {classes}"
                )
        else:
            self._set_classes(classes, several=y.ndim > 1)
        return self._fit(X, y, sample_weight)

    @available_if(lambda self: self._online())
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> MLPClassifier:
        """One pass over rows X; ``classes`` lists all labels at the first call."""
        first = "_module" not in self.__dict__
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=first)
        if first:
            given = np.arange(y.shape[1]) if y.ndim > 1 else np.unique(classes)
            self._set_classes(given, several=y.ndim > 1)
            self._known(y)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes={classes!r} is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        return self._fit(X, y, sample_weight, incremental=True)

    def predict(self, X: Any) -> Any:
        """The most probable label of each row."""
        z = self._outputs(X).numpy()
        if self.out_activation_ == "softmax":
            return self.classes_[z.argmax(axis=1)]
        if self.n_outputs_ > 1:
            return (z > 0).astype(int)
        return self.classes_[np.minimum(z[:, 0] > 0, len(self.classes_) - 1).astype(int)]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The probability of each class."""
        z = self._outputs(X)
        if self.out_activation_ == "softmax":
            return z.softmax(dim=1).numpy()
        p = z.sigmoid().numpy()
        if self.n_outputs_ > 1:
            return p
        if len(self.classes_) == 1:  # which is certain, whatever the output
            return np.ones_like(p)
        # 1 - p would be 0 from z = 37 on
        return np.hstack([(-z).sigmoid().numpy(), p])

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithm of :meth:`predict_proba`, without underflow."""
        z = self._outputs(X)
        if self.out_activation_ == "softmax":
            return z.log_softmax(dim=1).numpy()
        yes = nn.functional.logsigmoid(z)
        if self.n_outputs_ > 1:
            return yes.numpy()
        if len(self.classes_) == 1:
            return np.zeros_like(yes.numpy())
        return torch.cat([nn.functional.logsigmoid(-z), yes], dim=1).numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    # ------------------------------------------------------------------ the problem

    def _set_classes(self, classes: Any, *, several: bool) -> None:
        self.classes_ = classes
        self.out_activation_ = "softmax" if len(classes) > 2 and not several else "logistic"
        self.n_outputs_ = len(classes) if several or len(classes) > 2 else 1

    def _labels(self, y: Any) -> Any:
        y = y if hasattr(y, "ndim") else np.asarray(y)
        if y.ndim == 2 and y.shape[1] > 1:
            y = check_array(y, accept_sparse=True, input_name="y", dtype=None)
            y = y.toarray() if hasattr(y, "toarray") else y
            check_classification_targets(y)
            if not is_multilabel(y):
                raise ValueError(
                    f"y must have one label a row, or be an indicator matrix of 0 and 1, got shape {y.shape}."
                )
            return y
        return super()._labels(y)

    def _targets(self, y: Any) -> torch.Tensor:
        if y.ndim > 1:
            if y.shape[1] != self.n_outputs_:
                raise ValueError(f"y has {y.shape[1]} labels a row, expected {self.n_outputs_}.")
            return torch.from_numpy(np.asarray(y, dtype=np.float64))
        codes = torch.from_numpy(self._codes(y))
        return codes if self.out_activation_ == "softmax" else codes.double()

    def _loss(self) -> Any:
        return _softmax_loss if self.out_activation_ == "softmax" else _logistic_loss

    def _read_out(self, y: Any) -> str:
        return "softmax" if np.ndim(y) == 1 and len(self.classes_) > 2 else "logistic"

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        wanted = len(self.classes_) if np.ndim(y) > 1 or len(self.classes_) > 2 else 1
        if self.n_outputs_ != wanted:
            yield f"n_outputs_ is {self.n_outputs_!r}, and {wanted} follow from the classes"

    def _constant(self) -> Any:
        if self.out_activation_ == "softmax":
            return lambda codes, weight: log_shares(codes, weight, len(self.classes_))
        return lambda target, weight: weighted_mean(target, weight).clamp(*_CERTAIN).logit()

    def _strata(self, y: Any) -> Any:
        return y if y.ndim == 1 and self.n_outputs_ == 1 else None

    def _judge(self, X: Any, y: Any, weight: Any) -> float:
        return float(accuracy_score(y, self.predict(X), sample_weight=weight))


class MLPRegressor(RegressorMixin, BaseMLP):
    """A multi-layer perceptron for numbers, as ``sklearn.neural_network.MLPRegressor``.

    Parameters
    ----------
    loss : {"squared_error", "poisson"}, default="squared_error"
        Half the squared error, or half the Poisson deviance with an exponential output.
    hidden_layer_sizes, activation, solver, alpha, batch_size, learning_rate, learning_rate_init, power_t,
    max_iter, shuffle, random_state, tol, verbose, warm_start, momentum, nesterovs_momentum, early_stopping,
    validation_fraction, beta_1, beta_2, epsilon, n_iter_no_change, max_fun
        As in scikit-learn.
    dropout : float, default=0.0
        The share of hidden units that are left out of a step.
    augment : callable, optional
        Called on the inputs of each batch; see :func:`surefit.nn.train.train`.
    device : optional
        By default a GPU where there is one.
    compile : bool or str, default=False
        Train through ``torch.compile``.
    checkpoint : path, optional
        A folder for checkpoints of the run, from which it goes on; not with ``lbfgs``.
    certify : bool or "full", default=True

    Attributes
    ----------
    coefs_, intercepts_ : list of ndarray
    module_ : nn.Module
        The network, in evaluation mode.
    loss_, best_loss_, loss_curve_, n_iter_, t_, n_layers_, n_outputs_, out_activation_, validation_scores_,
    best_validation_score_
        As in scikit-learn.
    final_loss_ : float
        The mean loss of the final weights over the rows of the fit, without the penalty.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-2, 2, 100)[:, None]
    >>> y = np.sin(2 * X[:, 0])
    >>> model = MLPRegressor(activation="tanh", solver="lbfgs", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseMLP._parameter_constraints,
        "loss": [StrOptions({"squared_error", "poisson"})],
    }

    def __init__(
        self,
        loss: str = "squared_error",
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        solver: str = "adam",
        alpha: float = 0.0001,
        batch_size: Any = "auto",
        learning_rate: str = "constant",
        learning_rate_init: float = 0.001,
        power_t: float = 0.5,
        max_iter: int = 200,
        shuffle: bool = True,
        random_state: Any = None,
        tol: float = 1e-4,
        verbose: bool = False,
        warm_start: bool = False,
        momentum: float = 0.9,
        nesterovs_momentum: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-8,
        n_iter_no_change: int = 10,
        max_fun: int = 15000,
        dropout: float = 0.0,
        augment: Any = None,
        device: Any = None,
        compile: bool | str = False,
        checkpoint: Any = None,
        certify: bool | str = True,
    ) -> None:
        self.loss = loss
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.power_t = power_t
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.tol = tol
        self.verbose = verbose
        self.warm_start = warm_start
        self.momentum = momentum
        self.nesterovs_momentum = nesterovs_momentum
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.n_iter_no_change = n_iter_no_change
        self.max_fun = max_fun
        self.dropout = dropout
        self.augment = augment
        self.device = device
        self.compile = compile
        self.checkpoint = checkpoint
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPRegressor:
        """Fit the network to rows X with numbers y."""
        again = self.warm_start and "_module" in self.__dict__
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=not again)
        self._set_outputs(y, not again)
        return self._fit(X, y, sample_weight)

    @available_if(lambda self: self._online())
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> MLPRegressor:
        """One pass over rows X."""
        first = "_module" not in self.__dict__
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=first)
        self._set_outputs(y, first)
        return self._fit(X, y, sample_weight, incremental=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def predict(self, X: Any) -> NDArray[Any]:
        """The number, or numbers, of each row."""
        z = self._outputs(X)
        z = z.exp() if self.loss == "poisson" else z
        return z.numpy() if self.n_outputs_ > 1 else z[:, 0].numpy()

    # ------------------------------------------------------------------ the problem

    def _set_outputs(self, y: Any, first: bool) -> None:
        outputs = 1 if y.ndim == 1 else y.shape[1]
        if first:
            self.n_outputs_ = outputs
            self.out_activation_ = "exp" if self.loss == "poisson" else "identity"
        elif outputs != self.n_outputs_:
            raise ValueError(f"y has {outputs} targets a row, expected {self.n_outputs_}.")

    def _labels(self, y: Any) -> Any:
        y = check_array(
            y, ensure_2d=False, allow_nd=True, dtype=[np.float64, np.float32], input_name="y"
        )
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if y.ndim > 2:
            raise ValueError(f"y must have one or more numbers a row, got shape {y.shape}.")
        if self.loss == "poisson" and y.min() < 0:
            raise ValueError(f'loss="poisson" needs y >= 0, its smallest is {y.min()}.')
        return y

    def _targets(self, y: Any) -> torch.Tensor:
        return torch.from_numpy(np.array(y).reshape(len(y), -1))

    def _read_out(self, y: Any) -> str:
        return "exp" if self.loss == "poisson" else "identity"

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        wanted = 1 if y.ndim == 1 else y.shape[1]
        if self.n_outputs_ != wanted:
            yield f"n_outputs_ is {self.n_outputs_!r}, and y has {wanted} targets a row"

    def _constant(self) -> Any:
        if self.loss == "poisson":
            return lambda target, weight: weighted_mean(target, weight).clamp_min(1e-300).log()
        return weighted_mean

    def _loss(self) -> Any:
        return _poisson_loss if self.loss == "poisson" else _squared_loss

    def _judge(self, X: Any, y: Any, weight: Any) -> float:
        found = self.predict(X)
        if not np.isfinite(found).all():  # no score, as in scikit-learn
            return np.nan
        return float(r2_score(y, found, sample_weight=weight))


# ------------------------------------------------------------------------ losses, one number a row


def _softmax_loss(z: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    if target.is_floating_point():  # came with weights, as a column
        target = target[:, 0].long()
    return nn.functional.cross_entropy(z, target, reduction="none")


def _logistic_loss(z: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    target = target.reshape(z.shape).to(z.dtype)
    return nn.functional.binary_cross_entropy_with_logits(z, target, reduction="none").sum(dim=1)


def _squared_loss(z: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return 0.5 * (z - target).square().sum(dim=1)


def _poisson_loss(z: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    best = torch.xlogy(target, target) - target
    return (z.exp() - target * z + best).sum(dim=1)
