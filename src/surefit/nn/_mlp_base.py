"""How a perceptron with scikit-learn's interface is fitted: by steps of the trainer, or by L-BFGS.

The objective, and what is certified, is in :mod:`surefit.nn.mlp`; steps are those of
:mod:`surefit.nn._descent`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Interval, Options, StrOptions
from torch import nn

from ._descent import Descent
from ._estimator_base import Network, too_large
from ._held_out import HeldOut
from .batches import mixed
from .perceptron import ACTIVATIONS, MLP
from .precision import pick_device
from .sparse_rows import SparseRows, mostly_zero
from .train import NonFiniteLoss, Training, train

__all__ = ["BaseMLP"]


class BaseMLP(Network):
    """What classifier and regressor share."""

    dtypes = (np.float64, np.float32)
    sparse = True
    _counts = (*Network._counts, "n_layers_", "t_")
    _may_be_infinite: ClassVar[dict[str, str]] = {
        "best_validation_score_": "until a score is better than none"
    }
    _may_be_nan: ClassVar[dict[str, str]] = {
        **Network._may_be_nan,
        "validation_scores_": "of predictions that are not finite",
    }
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
        whole = (isinstance(k, Real) and float(k) > 0 and float(k).is_integer() for k in hidden)
        if not all(whole):
            raise ValueError(f"hidden_layer_sizes must be whole numbers > 0, got {hidden}.")
        return [int(self.input_shape_[0]), *map(int, hidden), int(self.n_outputs_)]

    def _fresh(self) -> nn.Module:
        rng = check_random_state(self.random_state if not _has_state(self.random_state) else 0)
        return self._drawn(rng, torch.float64)

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from super()._inconsistencies(X, y, sample_weight)
        wanted = MLP(self._sizes(), self.activation, float(self.dropout))
        if repr(self.module_) != repr(wanted):
            yield "module_ is not the network of hidden_layer_sizes, activation and dropout"

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

    def _trained(self, X: Any, y: Any, sample_weight: Any, *, incremental: bool) -> Any:
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
        self.validation_rows_, compressed = None, None
        if self.solver == "lbfgs":
            stopped = self._by_lbfgs(X, self._targets(y), weight)
        else:
            stopped, compressed = self._by_steps(X, y, weight, rng, incremental)
        self._module.eval()
        if not all(bool(p.isfinite().all()) for p in self._module.parameters()):
            raise ValueError(
                "Solver produced non-finite parameter weights. The input data may contain large values and "
                "need to be preprocessed."
            )
        self.descent_steps_ = self._descent_steps(X.shape[0])
        self._record_loss(X, y, sample_weight, compressed)
        return self._seal(X, y, sample_weight, stopped)

    def _by_steps(
        self, X: Any, y: Any, weight: Any, rng: Any, incremental: bool
    ) -> tuple[str, SparseRows | None]:
        """(why the steps ended, all rows as they were trained on where these are compressed)."""
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
        everything = X, y, weight
        if weight is not None:
            weight = weight[rows]
            column = torch.from_numpy(weight).to(torch.float64)[:, None]
            target = torch.cat([target.reshape(n, -1).to(torch.float64), column], dim=1)
        descent.weighted = weight is not None
        counts = np.minimum(size, n - size * np.arange(-(-n // size)))
        watch = _Watch(self, descent, counts, everything, held, incremental)
        seed = mixed(int(rng.randint(2**31 - 1)), self.t_) >> 1
        self.n_iter_ = 0
        self._module.by_hand = True
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
        finally:
            self._module.by_hand = False
        if watch.best is not None:
            self._module.load_state_dict(watch.best)
        if not (watch.stop or incremental) and self.n_iter_ == self.max_iter:
            warnings.warn(
                f"Stochastic Optimizer: Maximum iterations ({self.max_iter}) reached and the optimization "
                "hasn't converged yet.",
                ConvergenceWarning,
                stacklevel=4,
            )
        compressed = data if whole and isinstance(data, SparseRows) else None
        return watch.stop or done.stop, compressed

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
        if X.data.size and np.abs(X.data).max() > torch.finfo(first.dtype).max:
            raise too_large(float(np.abs(X.data).max()), first.dtype)
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
        }

    def _held_out(self, X: Any, y: Any) -> HeldOut | None:
        held = getattr(self, "validation_rows_", None)
        return None if held is None else HeldOut(held, chosen=True)

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> Any:
        problem = super()._problem(X, y, sample_weight)
        if problem.weight is not None:
            problem.decay = float(self.alpha) / float(problem.weight.sum())
        return problem

    def _wrong_outputs(self, X: Any, y: Any) -> Iterator[str]:
        layers, sizes = self._layers(), self._sizes()
        found = [layer.in_features for layer in layers] + [layers[-1].out_features]
        if found != sizes:
            yield f"the layers have sizes {found}, and {sizes} follow from the data and the parameters"
        if self.n_layers_ != len(sizes):
            yield f"n_layers_ is {self.n_layers_!r}, and there are {len(sizes)}"
        if self.out_activation_ != self._read_out(y):
            yield f"out_activation_ is {self.out_activation_!r}, and y needs {self._read_out(y)!r}"

    def _read_out(self, y: Any) -> str:
        """The function of the outputs that follows from the targets."""
        raise NotImplementedError

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


# the record of a fit so far, as scikit-learn's
_RECORD = (
    "n_iter_", "t_", "loss_", "loss_curve_", "best_loss_", "_stale", "validation_scores_",
    "best_validation_score_",
)  # fmt: skip


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

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint holds beside the trainer's own."""
        state = {name: getattr(self.model, name, None) for name in _RECORD}
        return state | {"descent": self.descent.state_dict(), "stop": self.stop, "best": self.best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.descent.load_state_dict(state["descent"])
        self.stop, self.best = state["stop"], state["best"]
        for name in _RECORD:
            setattr(self.model, name, state[name])

    def _validate(self, module: nn.Module) -> None:
        m, (X, y, weight) = self.model, self.data
        module.eval()
        weight = None if weight is None else weight[self.held]
        score = m._judge(X[self.held], y[self.held], weight)
        module.train()
        m.validation_scores_.append(score)
        m._stale = m._stale + 1 if score < m.best_validation_score_ + m.tol else 0
        if score > m.best_validation_score_:
            m.best_validation_score_ = score
            self.best = {k: v.detach().clone() for k, v in module.state_dict().items()}


def _has_state(random_state: Any) -> bool:
    """Whether the draws of a fit cannot be repeated from the parameter."""
    return not isinstance(random_state, Integral)
