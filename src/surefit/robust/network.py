r"""A network as attacks see it: logits on its device, frozen for the time of the attack (ADV-2, ADV-3).

An attack needs the gradient with respect to the *input*. While one runs, the parameters ask for no gradient
(which saves the products that weights' gradients take), the module is in evaluation mode, and both are
restored afterwards. Two forward passes are at hand:

* :meth:`Network.exact`: the module itself, in the precision of its weights. It alone decides labels.
* :meth:`Network.logits`: what the steps of an attack use: on a GPU by default a copy in bfloat16, with batch
  norms folded into the convolutions before them, and pictures in channels-last order. A wrong logit there
  can only weaken the attack, not what is claimed of it.

A module with one output column z stands for two classes: its logits are [0, z].
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Network", "Tally", "at_rest", "is_network", "network", "shapes_named"]


@dataclass
class Tally:
    """Rows that went forward and backward through a network."""

    forward: int = 0
    backward: int = 0


@dataclass(frozen=True, eq=False)
class Network:
    """A module, the labels of its outputs, and where it computes; see :func:`network`.

    Attributes
    ----------
    module : nn.Module
        The user's own.
    classes : array
        Labels; a code is a position in it.
    device : torch.device
    dtype : torch.dtype
        Of the weights.
    stand_in : callable
        What attacks differentiate: the module, or a fast copy of it.
    estimator : object or None
        Whose ``_tensor`` turns rows into tensors.
    ids : tensor or None
        Numbers of the rows given, of which their random numbers are a function; None for 0, 1, ...
    tally : Tally
    """

    module: Any
    classes: NDArray[Any]
    device: Any
    dtype: Any
    stand_in: Any
    half: bool = False
    estimator: Any = None
    ids: Any = None
    tally: Tally = field(default_factory=Tally)

    @property
    def about(self) -> str:
        """The class whose predictions these are."""
        return type(self.module if self.estimator is None else self.estimator).__name__

    # ------------------------------------------------------------------ rows

    def tensor(self, X: Any) -> Any:
        """Rows as a tensor on the device, in the precision of the weights."""
        import torch

        if self.estimator is not None and not isinstance(X, torch.Tensor):
            X = self.estimator._tensor(X)
        elif not isinstance(X, torch.Tensor):
            X = torch.as_tensor(np.asarray(X))
        x = X.detach().to(self.device, self.dtype)
        if x.ndim < 2:
            raise ValueError(
                f"X must have rows of features or pictures, shape (n, d) or (n, c, h, w), got "
                f"{tuple(x.shape)}."
            )
        if not bool(torch.isfinite(x).all()):
            raise ValueError("X has NaN or infinite entries; impute or drop them first.")
        return x

    def codes(self, y: Any) -> Any:
        """Positions of the labels in ``classes``, as a tensor on the device."""
        import torch

        y = y.detach().cpu().numpy() if isinstance(y, torch.Tensor) else np.asarray(y)
        if y.ndim != 1:
            raise ValueError(f"y must have one label a row, shape (n,), got shape {y.shape}.")
        order = np.argsort(self.classes, kind="stable")
        place = np.minimum(np.searchsorted(self.classes, y, sorter=order), len(order) - 1)
        found = order[place]
        unknown = self.classes[found] != y
        if unknown.any():
            raise ValueError(
                f"y has the label {y[unknown][0].item()!r} in row {int(np.flatnonzero(unknown)[0])}, which "
                f"the network does not know: its {len(self.classes)} classes: {self.classes.tolist()[:12]}."
            )
        return torch.as_tensor(found.astype(np.int64), device=self.device)

    def precise(self) -> Network:
        """The same with steps by the module itself, for points at the boundary: half precision misses it."""
        return dataclasses.replace(self, stand_in=self.module, half=False)

    # ------------------------------------------------------------------ outputs

    def logits(self, x: Any) -> Any:
        """Logits of the stand-in, float32 or better, differentiable in x."""
        import torch

        self.tally.forward += len(x)
        if self.half:
            return self._two(self.stand_in(x.to(torch.bfloat16, copy=True)), len(x)).float()
        return self._two(self.stand_in(x.clone()), len(x))  # a module may write into what it gets

    def exact(self, x: Any, batch_size: int = 512) -> Any:
        """Logits of the module itself, without gradient; an error names rows where one is NaN."""
        import torch

        parts = []
        with torch.no_grad():
            for first in range(0, len(x), batch_size):
                part = x[first : first + batch_size].clone()  # a module may write into it
                with shapes_named(part):
                    z = self.module(part)
                parts.append(self._two(z, len(part)))
        self.tally.forward += len(x)
        z = torch.cat(parts) if parts else torch.zeros(0, len(self.classes), device=self.device)
        if z.shape[1] != len(self.classes):
            raise ValueError(
                f"the network has {z.shape[1]} outputs for {len(self.classes)} classes; give classes=[...]."
            )
        bad = torch.isnan(z).any(dim=1)
        if bool(bad.any()):
            rows = torch.nonzero(bad).ravel().tolist()
            shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
            raise FloatingPointError(
                f"the network's logits are NaN on rows [{shown}]: no label follows. Look at these rows, "
                "and at weights that overflow."
            )
        return z

    def _two(self, z: Any, n: int) -> Any:
        """The outputs of n rows as logits of two classes or more."""
        import torch

        if not isinstance(z, torch.Tensor):
            raise TypeError(
                f"the network must give a tensor of logits, got {type(z).__name__}: wrap it in a module "
                "whose forward returns the logits alone."
            )
        if z.ndim < 2 and (n == 1 or z.shape == (n,)):  # squeezed
            z = z.reshape(n, -1)
        if z.ndim != 2 or len(z) != n:
            raise ValueError(
                f"the network must give one row of logits a sample, got shape {tuple(z.shape)} for {n} rows."
            )
        return torch.cat([torch.zeros_like(z), z], dim=1) if z.shape[1] == 1 else z

    # ------------------------------------------------------------------ the time of an attack

    @contextlib.contextmanager
    def held(self) -> Iterator[Network]:
        """Evaluation mode and parameters without gradient, both restored at the end."""
        wants = [(p, p.requires_grad) for p in self.module.parameters()]
        try:
            for p, _ in wants:
                p.requires_grad_(False)
            with at_rest(self.module):
                yield self
        finally:
            for p, want in wants:
                p.requires_grad_(want)


@contextlib.contextmanager
def shapes_named(x: Any) -> Iterator[None]:
    """What torch says of rows that a module does not take, with their shape."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, IndexError) as error:
        raise ValueError(
            f"the network does not take rows of shape {tuple(x.shape[1:])}: {error}"
        ) from error


@contextlib.contextmanager
def at_rest(module: Any) -> Iterator[None]:
    """Evaluation mode; each part's own mode is restored at the end."""
    modes = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def is_network(model: Any) -> bool:
    """Whether attacks go through torch: an nn.Module, a Network, or an estimator that holds a module.

    Never imports torch: where it was not imported, nothing is a network.

    Examples
    --------
    >>> import torch
    >>> is_network(torch.nn.Linear(2, 2)), is_network(len)
    (True, False)
    """
    if isinstance(model, Network):
        return True
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    module = getattr(model, "module_", model)
    return isinstance(module, torch.nn.Module)


def network(
    model: Any,
    classes: Any = None,
    device: Any = None,
    *,
    precision: str = "auto",
    compile: bool = False,  # torch's name for it
) -> Network:
    """A module or a fitted estimator of :mod:`surefit.nn`, ready to be attacked.

    Parameters
    ----------
    model : nn.Module, fitted estimator or Network
        An estimator has ``module_``, ``classes_`` and ``_tensor``. A Network is returned as it is.
    classes : array, default=None
        Labels of the outputs; None is the estimator's, or 0, 1, ...
    device : default=None
        None is where the module is; another device gets a copy of the module.
    precision : {"auto", "float32", "bf16"}, default="auto"
        Of the steps of attacks; "auto" is bf16 on CUDA. Labels are always decided by the module itself.
    compile : bool, default=False
        Whether the steps use ``torch.compile``.

    Returns
    -------
    Network

    Examples
    --------
    >>> import torch
    >>> net = network(torch.nn.Linear(2, 3))
    >>> net.classes.tolist(), net.half
    ([0, 1, 2], False)
    """
    if isinstance(model, Network):
        return model
    import torch

    from ..nn.precision import autocast
    from ._stand_in import stand_in

    module = getattr(model, "module_", model)
    if not isinstance(module, torch.nn.Module):
        raise TypeError(
            f"model must be an nn.Module or a fitted estimator with module_, got {type(model).__name__}."
        )
    weights = [*module.parameters(), *module.buffers()]
    places = {p.device for p in weights}
    if len(places) > 1:
        raise ValueError(
            f"the module's tensors lie on several devices, {sorted(map(str, places))}; move it to one."
        )
    where = next(iter(places), torch.device("cpu"))
    if device is not None and torch.device(device) != where:
        where = torch.device(device)
        if where.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device={device!r}: there is no CUDA device here; use device='cpu'.")
        module = copy.deepcopy(module).to(where)
    dtype = next((p.dtype for p in weights if p.is_floating_point()), torch.float32)
    found = classes if classes is not None else getattr(model, "classes_", None)
    names = np.arange(_outputs(module)) if found is None else np.asarray(found)
    if names.ndim != 1 or len(names) < 2:
        raise ValueError(f"a classifier of two labels or more is needed, got classes {found!r}.")
    if len(np.unique(names)) < len(names):
        raise ValueError(f"classes must differ from each other, one an output, got {found!r}.")
    half = autocast(precision, where, dtype) is not None
    fast = stand_in(module, half=half, compile=compile)
    estimator = model if hasattr(model, "module_") else None
    return Network(module, names, where, dtype, fast, half, estimator)


def _outputs(module: Any) -> int:
    """The number of classes, from the last layer with a size; one column stands for two."""
    sizes = [
        getattr(part, name)
        for part in module.modules()
        for name in ("out_features", "out_channels")
        if isinstance(getattr(part, name, None), int)
    ]
    if not sizes:
        raise ValueError(
            "the number of outputs cannot be read from the module: give classes=range(K)."
        )
    return max(2, int(sizes[-1]))
