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

import warnings
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Interval, Options, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d
from torch import nn

from ._descent import Descent
from ._estimator_base import ClassifierPart, Network, is_multilabel
from .batches import mixed
from .precision import pick_device
from .sparse_rows import SparseRows, linear, mostly_zero
from .train import NonFiniteLoss, Training, train

__all__ = ["MLP", "MLPClassifier", "MLPRegressor"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "identity": nn.Identity, "logistic": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU,
}  # fmt: skip


class MLP(nn.Sequential):
    """Linear layers with an activation between them; the last one is linear (NN-1).

    Parameters
    ----------
    sizes : sequence of int
        Inputs, hidden units of each layer, outputs.
    activation : {"relu", "tanh", "logistic", "identity"}
    dropout : float
        The share of hidden units that are left out of a step.

    Examples
    --------
    >>> net = MLP([2, 2, 1])
    >>> sum(p.numel() for p in net.parameters())
    9
    """

    def __init__(
        self, sizes: Sequence[int], activation: str = "relu", dropout: float = 0.0
    ) -> None:
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {list(ACTIVATIONS)}, got {activation!r}.")
        parts: list[nn.Module] = []
        for k, (inputs, outputs) in enumerate(pairwise(sizes)):
            if k:
                parts.append(ACTIVATIONS[activation]())
                parts += [nn.Dropout(dropout)] if dropout else []
            parts.append(nn.Linear(inputs, outputs))
        super().__init__(*parts)

    def forward(self, input: Any) -> torch.Tensor:
        """The outputs of rows, a tensor or :class:`~surefit.nn.sparse_rows.SparseRows`."""
        if not isinstance(input, SparseRows):
            return super().forward(input)
        first, *others = self
        output = linear(input, first.weight, first.bias)
        for part in others:
            output = part(output)
        return output

    def layers(self) -> list[nn.Linear]:
        """The linear layers."""
        return [part for part in self if isinstance(part, nn.Linear)]


class BaseMLP(Network):
    """What classifier and regressor share."""

    dtypes = (np.float64, np.float32)
    sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "solver": [StrOptions({"lbfgs", "sgd", "adam"})],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "learning_rate": [StrOptions({"constant", "invscaling", "adaptive"})],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "power_t": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
        "momentum": [Interval(Real, 0, 1, closed="both")],
        "nesterovs_momentum": ["boolean"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "beta_1": [Interval(Real, 0, 1, closed="left")],
        "beta_2": [Interval(Real, 0, 1, closed="left")],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), Options(Real, {np.inf})],
        "max_fun": [Interval(Integral, 1, None, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "augment": [callable, None],
        "device": [str, Hidden(torch.device), None],
        "compile": ["boolean", str],
        "checkpoint": [str, object, None],
        "certify": Network._certify_constraint,
    }

    def __getstate__(self) -> Any:
        """Without the optimiser's moments."""
        state = dict(super().__getstate__())
        state.pop("_descent", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ------------------------------------------------------------------ weights

    @property
    def coefs_(self) -> list[NDArray[Any]]:
        """The weights of each layer, inputs by outputs; on the processor views of ``module_``."""
        return [layer.weight.detach().cpu().numpy().T for layer in self._layers()]

    @coefs_.setter
    def coefs_(self, values: Any) -> None:
        for layer, value in zip(self._layers(), values, strict=True):
            layer.weight.data.copy_(torch.from_numpy(np.ascontiguousarray(np.asarray(value).T)))

    @property
    def intercepts_(self) -> list[NDArray[Any]]:
        """The biases of each layer."""
        return [layer.bias.detach().cpu().numpy() for layer in self._layers()]

    @intercepts_.setter
    def intercepts_(self, values: Any) -> None:
        for layer, value in zip(self._layers(), values, strict=True):
            layer.bias.data.copy_(torch.from_numpy(np.array(value)))

    def _layers(self) -> list[nn.Linear]:
        module = self.module_
        assert isinstance(module, MLP)
        return module.layers()

    def _sizes(self) -> list[int]:
        hidden = self.hidden_layer_sizes
        hidden = list(hidden) if hasattr(hidden, "__iter__") else [hidden]
        if any(size <= 0 for size in hidden):
            raise ValueError(f"hidden_layer_sizes must be > 0, got {hidden}.")
        return [int(self.input_shape_[0]), *map(int, hidden), int(self.n_outputs_)]

    def _fresh(self) -> nn.Module:
        rng = check_random_state(self.random_state if not _has_state(self.random_state) else 0)
        return self._drawn(rng, torch.float64)

    def _drawn(self, rng: Any, dtype: torch.dtype) -> MLP:
        """Weights uniform in +-sqrt(6 / (inputs + outputs)), or sqrt(2 / ...) before a sigmoid."""
        module = MLP(self._sizes(), self.activation, float(self.dropout)).to(dtype)
        factor = 2.0 if self.activation == "logistic" else 6.0
        for layer in module.layers():
            bound = np.sqrt(factor / (layer.in_features + layer.out_features))
            weight = rng.uniform(-bound, bound, (layer.in_features, layer.out_features))
            bias = rng.uniform(-bound, bound, layer.out_features)
            layer.weight.data.copy_(torch.from_numpy(weight.T.copy()))
            layer.bias.data.copy_(torch.from_numpy(bias))
        return module

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool = False) -> Any:
        fresh = "_module" not in self.__dict__ or not (self.warm_start or incremental)
        rng = check_random_state(self.random_state)
        double = X.dtype in (np.float64, torch.float64)
        if fresh:
            self._module = self._drawn(rng, torch.float64 if double else torch.float32)
            self.n_layers_ = len(self._sizes())
            self.t_ = 0
            self.loss_curve_: list[float] = []
            self.best_loss_: float | None = np.inf
            self.validation_scores_: list[float] | None = None
            self.best_validation_score_: float | None = None
            if self.early_stopping and self.solver != "lbfgs":
                self.validation_scores_, self.best_loss_ = [], None
                self.best_validation_score_ = -np.inf
            self._stale = 0
        if fresh or not incremental:
            self.__dict__.pop("_descent", None)
        self._began_fresh = fresh and not incremental
        weight = self._row_weights(y, sample_weight)
        self.validation_rows_ = None
        if self.solver == "lbfgs":
            stopped = self._by_lbfgs(X, self._targets(y), weight)
        else:
            stopped = self._by_steps(X, y, weight, rng, incremental)
        self._module.eval()
        if not all(bool(p.isfinite().all()) for p in self._module.parameters()):
            raise ValueError(
                "Solver produced non-finite parameter weights. The input data may contain large values and "
                "need to be preprocessed."
            )
        self.descent_steps_ = self._descent_steps(X.shape[0])
        self._record_loss(X, y, sample_weight)
        return self._seal(X, y, sample_weight, stopped)

    def _by_steps(self, X: Any, y: Any, weight: Any, rng: Any, incremental: bool) -> str:
        if self.early_stopping and incremental:
            raise ValueError("partial_fit does not support early_stopping=True")
        rows, held = np.arange(X.shape[0]), None
        if self.early_stopping:
            rows, held = train_test_split(
                rows,
                random_state=rng,
                test_size=self.validation_fraction,
                stratify=self._strata(y),
            )
            if len(held) < 2:
                raise ValueError(
                    "The validation set is too small. Increase 'validation_fraction' or the size of your "
                    "dataset."
                )
            self.validation_rows_ = held
        n = len(rows)
        size = min(200, n) if self.batch_size == "auto" else int(min(self.batch_size, n))
        if self.batch_size != "auto" and self.batch_size > n:
            warnings.warn(
                f"batch_size={self.batch_size} is larger than the {n} samples. It is going to be clipped.",
                stacklevel=4,
            )
        descent = self.__dict__.get("_descent")
        data = self._training_rows(X if held is None else X[rows])
        if descent is None:
            self._module.to(pick_device(self.device, self._module))
            descent = self._descent = Descent(self._module, self._loss(), self)
        whole = held is None
        target = self._targets(y)
        target = target if whole else target[torch.from_numpy(rows)]
        if weight is not None:
            weight = weight[rows]
            column = torch.from_numpy(weight).to(torch.float64)[:, None]
            target = torch.cat([target.reshape(n, -1).to(torch.float64), column], dim=1)
        descent.weighted = weight is not None
        counts = np.minimum(size, n - size * np.arange(-(-n // size)))
        watch = _Watch(self, descent, counts, (X, y, weight), held, incremental)
        seed = mixed(int(rng.randint(2**31 - 1)), self.t_) >> 1
        self.n_iter_ = 0
        try:
            done = train(
                self._module, (data, target), descent.loss,
                epochs=1 if incremental else self.max_iter, batch_size=size,
                optimizer=descent.optimizer, lr=self.learning_rate_init,
                weight_decay=self.alpha, schedule=descent.rate, precision="float32",
                compile=self.compile, device=self.device, seed=seed, shuffle=bool(self.shuffle),
                sample_weight=weight, augment=self.augment,
                checkpoint=None if incremental else self.checkpoint, callback=watch,
                verbose=2 * int(bool(self.verbose)),
            )  # fmt: skip
        except NonFiniteLoss as error:
            raise ValueError(
                "Solver produced non-finite parameter weights. The input data may contain large values and "
                f"need to be preprocessed: {error}"
            ) from error
        if watch.best is not None:
            self._module.load_state_dict(watch.best)
        if watch.stop:
            return watch.stop
        if not incremental and self.n_iter_ == self.max_iter:
            warnings.warn(
                f"Stochastic Optimizer: Maximum iterations ({self.max_iter}) reached and the optimization "
                "hasn't converged yet.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return done.stop

    def _training_rows(self, X: Any) -> Any:
        """X as the trainer's data: zeros are left out where there are many."""
        dense = self.augment is not None or self.compile or not mostly_zero(X)
        if sp.issparse(X):
            return X.toarray() if dense else X
        on_processor = pick_device(self.device, self._module).type == "cpu"
        return SparseRows.of(X) if on_processor and not dense else X

    def _passed(self, X: Any) -> Any:
        first = self._layers()[0].weight
        if not sp.issparse(X) or first.device.type != "cpu":
            return self._placed(X)
        return SparseRows.of(X).to("cpu", first.dtype)

    def _by_lbfgs(self, X: Any, target: torch.Tensor, weight: Any) -> str:
        """All rows at once, in float64."""
        from scipy.optimize import minimize
        from sklearn.utils.optimize import _check_optimize_result

        module = self._module
        dtype = next(module.parameters()).dtype
        module.double().train(False)
        device = pick_device(self.device, module)
        module.to(device)
        x = self._passed(X)
        target = target.to(device)
        if target.is_floating_point():
            target = target.double()
        w = torch.ones(len(x), dtype=torch.float64)
        if weight is not None:
            w = torch.from_numpy(weight)
        mass = float(w.sum())
        w = w.to(device) / mass
        learnt, loss = list(module.parameters()), self._loss()

        def objective(vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            nn.utils.vector_to_parameters(torch.from_numpy(vector).to(device), learnt)
            value = (loss(module(x), target) * w).sum()
            for p in learnt:
                if p.ndim > 1:
                    value = value + self.alpha / 2 / mass * p.square().sum()
            gradients = torch.autograd.grad(value, learnt)
            flat = torch.cat([g.reshape(-1) for g in gradients])
            return float(value.detach()), flat.cpu().numpy()

        start = nn.utils.parameters_to_vector(learnt).detach().cpu().numpy().copy()
        options = {"maxfun": self.max_fun, "maxiter": self.max_iter, "gtol": self.tol}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
        nn.utils.vector_to_parameters(torch.from_numpy(found.x.copy()).to(device), learnt)
        module.to(dtype)
        self.n_iter_ = _check_optimize_result("lbfgs", found, self.max_iter)
        self.loss_ = float(found.fun)
        self.loss_curve_ = [*self.loss_curve_, self.loss_]
        self.best_loss_ = self.loss_
        return f"L-BFGS: {found.message}"

    def _descent_steps(self, n: int) -> int | None:
        """How many steps of plain gradient descent on all rows the fit was, if it was that."""
        plain = self.solver == "sgd" and self.momentum == 0 and self.learning_rate == "constant"
        whole = self.batch_size != "auto" and self.batch_size >= n
        whole = whole or (self.batch_size == "auto" and n <= 200)
        simple = not (self.early_stopping or self.dropout or self.augment)
        return int(self.n_iter_) if plain and whole and simple and self._began_fresh else None

    def _run_facts(self, n: int) -> dict[str, Any]:
        steps = getattr(self, "descent_steps_", None)
        known = not _has_state(self.random_state)
        return {
            "compiled": self.compile,
            "decay": float(self.alpha) / n,
            "descent": (steps, float(self.learning_rate_init)) if steps and known else None,
            "held": getattr(self, "validation_rows_", None),
            "chosen": bool(self.early_stopping),
        }

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> Any:
        problem = super()._problem(X, y, sample_weight)
        if problem.weight is not None:
            problem.decay = float(self.alpha) / float(problem.weight.sum())
        return problem

    def _strata(self, y: Any) -> Any:
        return None

    def _judge(self, X: Any, y: Any, weight: Any) -> float:
        """The score of the present weights."""
        raise NotImplementedError

    def _online(self) -> bool:
        if self.solver == "lbfgs":
            raise AttributeError(
                "partial_fit is only available for stochastic optimizers. lbfgs is not stochastic."
            )
        return True


class _Watch:
    """Called after each epoch: scikit-learn's record, and its rule for stopping."""

    def __init__(
        self, model: Any, descent: Descent, counts: Any, data: Any, held: Any, incremental: bool
    ) -> None:
        self.model, self.descent, self.counts, self.data = model, descent, counts, data
        self.held, self.incremental, self.stop = held, incremental, ""
        self.best: dict[str, torch.Tensor] | None = None

    def __call__(self, live: Training) -> bool:
        m = self.model
        losses = np.array(live.history.step_loss[-len(self.counts) :])
        m.n_iter_ += 1
        m.loss_ = float((losses * self.counts).sum() / self.counts.sum())
        m.t_ += int(self.counts.sum())
        m.loss_curve_.append(m.loss_)
        if self.held is not None:
            self._validate(live.module)
        else:
            m._stale = m._stale + 1 if m.loss_ > m.best_loss_ - m.tol else 0
            m.best_loss_ = min(m.best_loss_, m.loss_)
        self.descent.epoch_ends(m.t_)
        if m._stale > m.n_iter_no_change:
            if self.descent.slower():
                m._stale = 0
            else:
                what = "validation score" if self.held is not None else "training loss"
                self.stop = (
                    f"the {what} did not improve by more than tol={m.tol:g} for "
                    f"{m.n_iter_no_change} epochs"
                )
                return True
        return False

    def _validate(self, module: nn.Module) -> None:
        m, (X, y, _) = self.model, self.data
        module.eval()
        score = m._judge(X[self.held], y[self.held], None)
        module.train()
        m.validation_scores_.append(score)
        m._stale = m._stale + 1 if score < m.best_validation_score_ + m.tol else 0
        if score > m.best_validation_score_:
            m.best_validation_score_ = score
            self.best = {k: v.detach().clone() for k, v in module.state_dict().items()}


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
        # 1 - p would be 0 from z = 37 on
        return np.hstack([(-z).sigmoid().numpy(), p])[:, : len(self.classes_)]

    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """The logarithm of :meth:`predict_proba`, without underflow."""
        z = self._outputs(X)
        if self.out_activation_ == "softmax":
            return z.log_softmax(dim=1).numpy()
        yes = nn.functional.logsigmoid(z)
        if self.n_outputs_ > 1:
            return yes.numpy()
        both = torch.cat([nn.functional.logsigmoid(-z), yes], dim=1)
        return both.numpy()[:, : len(self.classes_)]

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

    def _strata(self, y: Any) -> Any:
        return y if y.ndim == 1 and self.n_outputs_ == 1 else None

    def _judge(self, X: Any, y: Any, weight: Any) -> float:
        return float(accuracy_score(y, self.predict(X)))


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

    def _loss(self) -> Any:
        return _poisson_loss if self.loss == "poisson" else _squared_loss

    def _judge(self, X: Any, y: Any, weight: Any) -> float:
        return float(r2_score(y, self.predict(X)))


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


def _has_state(random_state: Any) -> bool:
    """Whether the draws of a fit cannot be repeated from the parameter."""
    return not isinstance(random_state, Integral)
