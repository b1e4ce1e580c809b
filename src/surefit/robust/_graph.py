"""A network as a list of nodes: affine maps, activations, maxima and sums.

``torch.fx`` writes down what the module's ``forward`` does; each call becomes a node, in an order in which
inputs come first. Only what is listed in :data:`SUPPORTED` is read; anything else raises
``NotImplementedError`` with its name, since a bound that skipped a layer would be wrong.

The network is the one at rest: batch norms use their running statistics and dropout does nothing. A module
with such a layer in training mode is refused; so is one with hooks, which ``torch.fx`` does not see, and one
that reads a value after another layer has written into it.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from ._layers import Affine, Convolution, Dense, Rearranged, Scaled
from ._relaxations import ELU, Activation, LeakyReLU, Sigmoid, Tanh

__all__ = ["SUPPORTED", "Graph", "Node", "Window", "build", "traced"]

SUPPORTED = (
    "Linear, Conv1d, Conv2d, BatchNorm1d, BatchNorm2d, ReLU, LeakyReLU, ELU, Tanh, Sigmoid, MaxPool2d, "
    "AvgPool1d, AvgPool2d, AdaptiveAvgPool to size 1, mean over pixels, Flatten, view, reshape, slices, "
    "padding with zeros, Dropout, Identity, sums of two branches, and sums, products and quotients with "
    "constants"
)
_IN_PLACE: dict[Any, str] = {
    operator.iadd: "add",
    operator.isub: "sub",
    operator.imul: "mul",
    operator.itruediv: "truediv",
}
_BATCH = -(2**40)  # stands for the number of rows wherever a module asks for it


@dataclass(frozen=True)
class Window:
    """A maximum over windows of pixels."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Node:
    """One step: ``op`` is None for the input and for a sum of two nodes."""

    name: str
    op: Affine | Activation | Window | None
    inputs: tuple[int, ...]
    shape: tuple[int, ...]  # without the batch

    @property
    def size(self) -> int:
        """How many numbers it gives for a row."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in order; the last one is the output."""

    nodes: tuple[Node, ...]
    device: torch.device

    @property
    def outputs(self) -> int:
        """Columns of the output."""
        return self.nodes[-1].size


def traced(module: nn.Module) -> fx.GraphModule:
    """What ``forward`` does, as ``torch.fx`` writes it down."""
    for name, part in module.named_modules():
        called = type(part).__call__ is nn.Module.__call__
        if part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part) or not called:
            raise _unsupported(
                name or type(module).__name__,
                "hooks and replaced forward functions (or __call__); remove them first, as "
                "torch.nn.utils.remove_weight_norm does",
            )
    root = module if list(module.children()) else nn.Sequential(module)  # a layer alone stays whole
    try:
        return fx.GraphModule(root, _Tracer().trace(root))
    except Exception as error:
        raise NotImplementedError(
            f"{type(module).__name__} cannot be written as a fixed list of layers ({error}); its forward "
            f"must not depend on values. Supported: {SUPPORTED}."
        ) from error


class _Proxy(fx.Proxy):
    """x += y stays what it is (``torch.fx`` writes x + y), since other names of x see it too."""

    def __iadd__(self, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.iadd, (self, other), {})

    def __isub__(self, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.isub, (self, other), {})

    def __imul__(self, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.imul, (self, other), {})

    def __itruediv__(self, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", operator.itruediv, (self, other), {})


class _Tracer(fx.Tracer):
    def proxy(self, node: fx.Node) -> fx.Proxy:
        return _Proxy(node, self)


def build(
    module: nn.Module | fx.GraphModule,
    shape: tuple[int, ...],
    *,
    dtype: torch.dtype | None = torch.float64,
    prune: bool = True,
) -> Graph:
    """The nodes of a module for rows of this shape; weights are copied to ``dtype``, None keeps them."""
    plan = module if isinstance(module, fx.GraphModule) else traced(module)
    return _Reader(plan, shape, dtype).read(prune)


class _Reader:
    def __init__(
        self, plan: fx.GraphModule, shape: tuple[int, ...], dtype: torch.dtype | None
    ) -> None:
        self.plan, self.dtype, self.nodes = plan, dtype, [Node("input", None, (), tuple(shape))]
        self.memory = [0]  # of each node: views have that of what they are views of
        self.written: dict[int, int] = {}  # the last node that wrote into a memory
        first = next((p for p in (*plan.parameters(), *plan.buffers())), None)
        self.device = torch.device("cpu") if first is None else first.device
        weights = (*plan.parameters(), *plan.buffers())
        kinds = (w.dtype for w in weights if w.is_floating_point())
        self.coarse = next(kinds, torch.float64)  # of the module's own constants

    def read(self, prune: bool) -> Graph:
        values: dict[fx.Node, Any] = {}
        inputs = 0
        for step in self.plan.graph.nodes:
            if step.op == "placeholder":
                inputs += 1
                if inputs > 1 and not step.args:
                    raise NotImplementedError(
                        f"forward takes more than one input ({step.target!r}); a network is bounded as a "
                        "function of one."
                    )
                values[step] = _Handle(0) if inputs == 1 else (step.args or (None,))[0]
                continue
            args = fx.node.map_arg(step.args, lambda n: values[n])
            kwargs = fx.node.map_arg(step.kwargs, lambda n: values[n])
            if step.op == "output":
                self._check_current(step.name, args)
                return self._graph(args[0], prune)
            values[step] = self._read(step, args, dict(kwargs))
        raise NotImplementedError("the module gives no output.")

    def _graph(self, out: Any, prune: bool) -> Graph:
        if not isinstance(out, _Handle):
            raise NotImplementedError(
                f"forward must return one tensor of scores, got {type(out).__name__}."
            )
        keep = {out.index}
        for index in range(out.index, -1, -1):
            if index in keep:
                keep.update(self.nodes[index].inputs)
        chosen = sorted(keep | {0}) if prune else list(range(len(self.nodes)))
        places = {old: new for new, old in enumerate(chosen)}
        nodes = [
            Node(n.name, n.op, tuple(places[i] for i in n.inputs), n.shape)
            for n in (self.nodes[old] for old in chosen if old <= out.index)
        ]
        if len(nodes[-1].shape) != 1:
            raise NotImplementedError(
                f"the output has shape (n, {', '.join(map(str, nodes[-1].shape))}); scores of shape "
                "(n, classes) are needed."
            )
        return Graph(tuple(nodes), self.device)

    # ------------------------------------------------------------------ one call

    def _read(self, step: fx.Node, args: Any, kwargs: dict[str, Any]) -> Any:
        """The value of a step; what cannot be read is named, and so is memory that was written over."""
        self._check_current(step.name, (args, kwargs))
        into = _written(step, args, kwargs, self.plan)
        try:
            value = self._step(step, args, kwargs)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise _unsupported(step.name, f"this use of {step.target} ({error})") from error
        if isinstance(into, _Handle) and isinstance(value, _Handle) and value != into:
            self.memory[value.index] = self.memory[into.index]
            self.written[self.memory[into.index]] = value.index
        return value

    def _check_current(self, name: str, values: Any) -> None:
        for handle in (h for h in _flat(values) if isinstance(h, _Handle)):
            if self.written.get(self.memory[handle.index], -1) > handle.index:
                raise NotImplementedError(
                    f"{name} reads a value that another layer changed in place: no bound is given. Make "
                    "that layer inplace=False."
                )

    def _step(self, step: fx.Node, args: Any, kwargs: dict[str, Any]) -> Any:
        name = str(step.target) if step.op in ("call_module", "get_attr") else step.name
        if step.op == "get_attr":
            value: Any = self.plan
            for part in str(step.target).split("."):
                value = getattr(value, part)
            return self._tensor(value) if isinstance(value, Tensor) else value
        if step.op == "call_module":
            return self._module(name, self.plan.get_submodule(str(step.target)), args[0])
        call = step.target if isinstance(step.target, str) else _name(step.target)
        if not any(isinstance(v, _Handle) for v in (*_flat(args), *_flat(kwargs))):
            return self._constant(name, step, args, kwargs)
        return self._call(name, call, list(args), kwargs)

    def _constant(self, name: str, step: fx.Node, args: Any, kwargs: dict[str, Any]) -> Any:
        """A function of constants; what the module's own precision makes of it must be nearly the same."""

        def value(given: Any, named: Any) -> Any:
            if step.op == "call_method":
                return getattr(given[0], str(step.target))(*given[1:], **named)
            return step.target(*given, **named)

        found = value(args, kwargs)
        if self.dtype in (None, self.coarse) or not _floating(found):
            return found

        def cast(v: Any) -> Any:
            return v.to(self.coarse) if _floating(v) else v

        own = value(*fx.node.map_aggregate((args, kwargs), cast)).to(found.dtype)
        room = 2.0 * torch.finfo(self.coarse).eps * found.abs() + 2.0**-126
        if not bool(((own - found).abs() <= room).all()):
            raise _unsupported(name, f"a constant that {self.coarse} rounds by more than a bit")
        return found

    def _module(self, name: str, m: nn.Module, x: _Handle) -> Any:
        if m.training and isinstance(
            m, (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)
        ):
            raise ValueError(
                f"{name} ({type(m).__name__}) is in training mode: bounds are about the network at rest, "
                "call module.eval() first."
            )
        if isinstance(m, (nn.Identity, nn.modules.dropout._DropoutNd)):
            return x
        if type(m) is nn.Linear:
            return self._affine(name, Dense(self._tensor(m.weight), self._maybe(m.bias)), x)
        if type(m) in (nn.Conv1d, nn.Conv2d):
            return self._affine(name, self._convolution(name, m), x)
        if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
            return self._affine(name, self._norm(name, m, self._shape(x)), x)
        if isinstance(m, nn.Flatten) and m.end_dim == -1:
            return self._call(name, "flatten", [x, m.start_dim], {})
        if isinstance(m, nn.Unflatten) and m.dim == 1 and isinstance(m.unflattened_size, tuple):
            rest = (*m.unflattened_size, *self._shape(x)[1:])
            return self._reshape(name, x, (_BATCH, *rest))
        if isinstance(m, nn.MaxPool2d) and not m.return_indices:
            options = {"padding": m.padding, "dilation": m.dilation, "ceil_mode": m.ceil_mode}
            return self._call(name, "max_pool2d", [x, m.kernel_size, m.stride], options)
        if isinstance(m, (nn.AvgPool1d, nn.AvgPool2d)):
            call = "avg_pool1d" if isinstance(m, nn.AvgPool1d) else "avg_pool2d"
            options = {
                "padding": m.padding, "ceil_mode": m.ceil_mode, "count_include_pad": m.count_include_pad,
                "divisor_override": getattr(m, "divisor_override", None),
            }  # fmt: skip
            return self._call(name, call, [x, m.kernel_size, m.stride], options)
        if isinstance(m, (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d)):
            call = f"adaptive_avg_pool{1 if isinstance(m, nn.AdaptiveAvgPool1d) else 2}d"
            return self._call(name, call, [x, m.output_size], {})
        if type(m) is nn.ZeroPad2d:
            return self._call(name, "pad", [x, tuple(m.padding)], {})
        if isinstance(m, nn.LeakyReLU):
            return self._call(name, "leaky_relu", [x, m.negative_slope], {})
        if isinstance(m, nn.ELU):
            return self._call(name, "elu", [x, m.alpha], {})
        if type(m) in (nn.ReLU, nn.Tanh, nn.Sigmoid):
            return self._call(name, type(m).__name__.lower(), [x], {})
        raise _unsupported(name, type(m).__name__)

    def _call(self, name: str, call: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        args = args or [kwargs.pop("input")]
        x, rest = args[0], args[1:]
        kwargs.pop("inplace", None)
        if kwargs.pop("out", None) is not None:
            raise _unsupported(name, f"{call} with out=")
        for old in ("input", "negative_slope", "alpha", "p"):
            if old in kwargs and (old != "alpha" or call == "elu"):
                rest = [*rest, kwargs.pop(old)]
        if call in ("relu", "relu_"):
            return self._add(name, LeakyReLU(0.0), (x,), self._shape(x))
        if call in ("leaky_relu", "leaky_relu_"):
            return self._add(
                name, LeakyReLU(float(rest[0]) if rest else 0.01), (x,), self._shape(x)
            )
        if call == "elu":
            return self._add(name, ELU(float(rest[0]) if rest else 1.0), (x,), self._shape(x))
        if call in ("tanh", "sigmoid"):
            return self._add(name, Tanh() if call == "tanh" else Sigmoid(), (x,), self._shape(x))
        if call in ("add", "iadd", "sub", "mul", "truediv", "div", "neg"):
            return self._arithmetic(name, call, args, kwargs)
        if call in ("view", "reshape") and not kwargs:
            wanted = rest[0] if len(rest) == 1 and isinstance(rest[0], (tuple, list)) else rest
            return self._reshape(name, x, tuple(wanted))
        if call == "flatten":
            start = rest[0] if rest else kwargs.get("start_dim", 0)
            if start < 1 or len(rest) > 1 or kwargs.get("end_dim", -1) != -1:
                raise _unsupported(name, "flatten that mixes rows or stops early; flatten(1)")
            return self._reshape(name, x, (_BATCH, *self._shape(x)[: start - 1], -1))
        if call in ("contiguous", "dropout", "dropout2d", "detach"):
            if kwargs.get("training") or kwargs.get("train") or rest[1:2] == [True]:
                raise ValueError(f"{name} is a dropout in training mode: call module.eval() first.")
            return x
        if call == "size":
            whole = torch.Size((_BATCH, *self._shape(x)))
            return whole if not rest else whole[rest[0]]
        if call == "getattr" and rest == ["shape"]:
            return torch.Size((_BATCH, *self._shape(x)))
        if call == "getitem":
            return self._slice(name, x, rest[0])
        if call == "pad":
            return self._pad(name, x, rest, kwargs)
        if call == "mean":
            return self._mean(name, x, rest, kwargs)
        if call in ("adaptive_avg_pool1d", "adaptive_avg_pool2d"):
            d = int(call[-2])
            if any(part != 1 for part in _tuple(rest[0], d)):
                raise _unsupported(name, f"{call} to size {rest[0]}; size 1")
            axes = tuple(range(-d, 0))
            terms = math.prod(self._shape(x)[-d:])
            return self._affine(
                name, Rearranged(lambda t: t.mean(dim=axes, keepdim=True), terms), x
            )
        if call in ("avg_pool1d", "avg_pool2d"):
            return self._average(name, call, x, rest, kwargs)
        if call == "max_pool2d":
            return self._maximum(name, x, rest, kwargs)
        raise _unsupported(name, call)

    # ------------------------------------------------------------------ kinds of nodes

    def _add(self, name: str, op: Any, inputs: tuple[Any, ...], shape: tuple[int, ...]) -> _Handle:
        places = tuple(i.index for i in inputs)
        self.nodes.append(Node(name, op, places, tuple(shape)))
        self.memory.append(len(self.nodes) - 1)
        return _Handle(len(self.nodes) - 1)

    def _view(self, name: str, function: Any, x: _Handle) -> _Handle:
        """An affine node that shares its input's memory."""
        seen = self._affine(name, Rearranged(function), x)
        self.memory[seen.index] = self.memory[x.index]
        return seen

    def _affine(self, name: str, op: Affine, x: _Handle) -> _Handle:
        weight = op.weight
        dtype = torch.float64 if weight is None else weight.dtype
        with torch.no_grad():
            probe = torch.zeros((1, *self._shape(x)), dtype=dtype, device=self.device)
            try:
                out = op.linear(probe)
            except (RuntimeError, IndexError) as error:
                raise ValueError(
                    f"{name} cannot take rows of shape {self._shape(x)}: {error}"
                ) from error
        return self._add(name, op, (x,), tuple(out.shape[1:]))

    def _convolution(self, name: str, m: Any) -> Convolution:
        d = m.weight.dim() - 2
        if m.padding_mode != "zeros":
            raise _unsupported(name, f"padding_mode={m.padding_mode!r}; zeros")
        padding = m.padding
        if isinstance(padding, str):
            both = [dil * (k - 1) for dil, k in zip(m.dilation, m.kernel_size)]
            if padding == "same" and any(total % 2 for total in both):
                raise _unsupported(name, "padding='same' with an even kernel")
            padding = tuple(t // 2 for t in both) if padding == "same" else (0,) * d
        return Convolution(
            self._tensor(m.weight), self._maybe(m.bias), _tuple(m.stride, d), _tuple(padding, d),
            _tuple(m.dilation, d), m.groups,
        )  # fmt: skip

    def _norm(self, name: str, m: Any, shape: tuple[int, ...]) -> Scaled:
        if m.running_mean is None:
            raise _unsupported(name, "batch norm without running statistics")
        mean, variance = self._tensor(m.running_mean), self._tensor(m.running_var)
        scale = 1.0 / torch.sqrt(variance + m.eps)
        if m.weight is not None:
            scale = scale * self._tensor(m.weight)
        shift = torch.zeros_like(mean) if m.bias is None else self._tensor(m.bias)
        ends = [1] * (len(shape) - 1)
        size = (shift.abs() + (mean * scale).abs()).reshape(-1, *ends)
        return Scaled(scale.reshape(-1, *ends), (shift - mean * scale).reshape(-1, *ends), size)

    def _arithmetic(self, name: str, call: str, args: list[Any], kwargs: dict[str, Any]) -> _Handle:
        a, b = (*args, kwargs.get("other"))[:2]
        if len(args) > 2 or kwargs.get("alpha", 1) != 1 or kwargs.get("rounding_mode") is not None:
            raise _unsupported(name, f"{call} with {args[2:] or kwargs}")
        if isinstance(a, _Handle) and isinstance(b, _Handle):
            if call not in ("add", "iadd") or self._shape(a) != self._shape(b):
                raise _unsupported(name, f"{call} of shapes {self._shape(a)}, {self._shape(b)}")
            return self._add(name, None, (a, b), self._shape(a))
        x, constant = (a, b) if isinstance(a, _Handle) else (b, a)
        ones = torch.ones((), dtype=self.dtype or torch.float32, device=self.device)
        if call == "neg":
            return self._affine(name, Scaled(-ones, None, None), x)
        value = self._tensor(constant) if isinstance(constant, Tensor) else ones * float(constant)
        if value.dim() > len(self._shape(x)):
            if value.dim() > len(self._shape(x)) + 1 or value.shape[0] != 1:
                raise _unsupported(name, f"{call} with a constant of shape {tuple(value.shape)}")
            value = value[0]
        ends = zip(reversed(value.shape), reversed(self._shape(x)))
        if any(had == 1 < given for given, had in ends):
            raise _unsupported(name, f"{call} with a constant that has more entries than a row")
        if call in ("add", "iadd"):
            return self._affine(name, Scaled(ones, value, None), x)
        if call == "sub":
            sign = 1.0 if x is a else -1.0
            return self._affine(name, Scaled(sign * ones, -sign * value, None), x)
        if call == "mul":
            return self._affine(name, Scaled(value, None, None), x)
        if x is not a:
            raise _unsupported(name, "a constant divided by the network")
        return self._affine(name, Scaled(1.0 / value, None, None), x)

    def _reshape(self, name: str, x: _Handle, wanted: tuple[Any, ...]) -> _Handle:
        size, rest = math.prod(self._shape(x)), [int(part) for part in wanted[1:]]
        if -1 in rest:
            others = -math.prod(rest)
            rest = [size // max(1, others) if part == -1 else part for part in rest]
        if wanted[0] not in (_BATCH, -1) or math.prod(rest) != size:
            raise _unsupported(
                name, f"reshape of rows of shape {self._shape(x)} to {wanted}, which mixes rows"
            )
        shape = tuple(rest)
        return self._view(name, lambda t: t.reshape(t.shape[0], *shape), x)

    def _slice(self, name: str, x: _Handle, index: Any) -> _Handle:
        whole = slice(None)
        parts = index if isinstance(index, tuple) else (index,)
        if parts[0] not in (whole, Ellipsis) or not all(
            p is Ellipsis or isinstance(p, slice) for p in parts
        ):
            raise _unsupported(name, f"indexing with {index}; slices that keep all rows")
        return self._view(name, lambda t: t[parts], x)

    def _pad(self, name: str, x: _Handle, rest: list[Any], kwargs: dict[str, Any]) -> _Handle:
        widths = tuple(rest[0] if rest else kwargs["pad"])
        mode = rest[1] if len(rest) > 1 else kwargs.get("mode", "constant")
        value = rest[2] if len(rest) > 2 else kwargs.get("value")
        if mode != "constant" or value or len(widths) > 2 * len(self._shape(x)):
            raise _unsupported(name, f"pad with mode={mode!r}, value={value!r}; zeros")
        return self._affine(name, Rearranged(lambda t: F.pad(t, widths)), x)

    def _mean(self, name: str, x: _Handle, rest: list[Any], kwargs: dict[str, Any]) -> _Handle:
        axes = rest[0] if rest else kwargs.get("dim")
        keep = bool(rest[1] if len(rest) > 1 else kwargs.get("keepdim", False))
        axes = axes if isinstance(axes, (tuple, list)) else (axes,)
        d = len(self._shape(x))
        if None in axes or any(a % (d + 1) == 0 for a in axes):
            raise _unsupported(name, f"mean over {axes}; axes other than rows")
        dims = tuple(a % (d + 1) for a in axes)
        terms = math.prod(self._shape(x)[a - 1] for a in dims)
        return self._affine(name, Rearranged(lambda t: t.mean(dim=dims, keepdim=keep), terms), x)

    def _average(
        self, name: str, call: str, x: _Handle, rest: list[Any], kwargs: dict[str, Any]
    ) -> _Handle:
        d = int(call[-2])
        kernel, stride, padding, include = _pool(rest, kwargs, d, "count_include_pad", True)
        if kwargs.get("ceil_mode") or kwargs.get("divisor_override") is not None or len(rest) > 3:
            raise _unsupported(name, f"{call} with ceil_mode or divisor_override")
        pool: Any = F.avg_pool1d if d == 1 else F.avg_pool2d
        terms = math.prod(kernel)
        return self._affine(
            name, Rearranged(lambda t: pool(t, kernel, stride, padding, False, include), terms), x
        )

    def _maximum(self, name: str, x: _Handle, rest: list[Any], kwargs: dict[str, Any]) -> _Handle:
        kernel, stride, padding, dilation = _pool(rest, kwargs, 2, "dilation", 1)
        if kwargs.get("ceil_mode") or _tuple(dilation, 2) != (1, 1) or len(rest) > 3:
            raise _unsupported(name, "max_pool2d with ceil_mode or dilation")
        if kwargs.get("return_indices") or len(self._shape(x)) != 3:
            raise _unsupported(
                name, "max_pool2d of other than (n, channels, height, width), or with indices"
            )
        probe = torch.zeros((1, *self._shape(x)), dtype=torch.float64)
        shape = F.max_pool2d(probe, kernel, stride, padding).shape[1:]
        window = Window((kernel[0], kernel[1]), (stride[0], stride[1]), (padding[0], padding[1]))
        return self._add(name, window, (x,), tuple(shape))

    # ------------------------------------------------------------------ small things

    def _shape(self, x: Any) -> tuple[int, ...]:
        if not isinstance(x, _Handle):
            raise _unsupported(
                "input", f"a constant where the network's values were expected ({x!r})"
            )
        return self.nodes[x.index].shape

    def _tensor(self, value: Tensor) -> Tensor:
        return value if self.dtype is None else value.detach().to(self.dtype)

    def _maybe(self, value: Tensor | None) -> Tensor | None:
        return None if value is None else self._tensor(value)


@dataclass(frozen=True)
class _Handle:
    index: int


def _pool(rest: list[Any], kwargs: dict[str, Any], d: int, last: str, default: Any) -> Any:
    kernel = _tuple(rest[0] if rest else kwargs["kernel_size"], d)
    stride = rest[1] if len(rest) > 1 else kwargs.get("stride")
    padding = rest[2] if len(rest) > 2 else kwargs.get("padding", 0)
    stride = kernel if stride is None or stride == () else _tuple(stride, d)
    return kernel, stride, _tuple(padding, d), kwargs.get(last, default)


def _tuple(value: Any, d: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (int(value),) * d


def _floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _flat(values: Any) -> list[Any]:
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, (tuple, list)):
        return [leaf for value in values for leaf in _flat(value)]
    return [values]


def _written(step: fx.Node, args: Any, kwargs: dict[str, Any], plan: fx.GraphModule) -> Any:
    """What a step writes into, if it works in place."""
    target = step.target
    if step.op == "call_module":
        inside = getattr(plan.get_submodule(str(target)), "inplace", False)
    else:
        name = target if isinstance(target, str) else getattr(target, "__name__", "")
        inside = kwargs.get("inplace", False) or target in _IN_PLACE or name.endswith("_")
    return (args[0] if args else kwargs.get("input")) if inside else None


def _name(function: Any) -> str:
    return _IN_PLACE.get(function) or str(getattr(function, "__name__", function)).lstrip("_")


def _unsupported(name: str, what: str) -> NotImplementedError:
    return NotImplementedError(f"{name}: no bound is known for {what}. Supported: {SUPPORTED}.")
