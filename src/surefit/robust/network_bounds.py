r"""Certified bounds for networks: no allowed perturbation can do worse than this.

For a row x of class y and the set of inputs that a :class:`Threat` allows,

.. math:: \min_{x'} \Big( z_y(x') - \max_{k \ne y} z_k(x') \Big) \ge \text{network_lower},

so that a positive number proves that the label cannot be changed. The differences :math:`z_y - z_k` are
bounded as such: the comparison is merged into the last layer.

=============  ====================================================================================
method         intervals of the hidden nodes; the margin
=============  ====================================================================================
interval       interval propagation (:mod:`.interval`); one pass, loose in depth
crown-ibp      interval propagation; linear bounds backwards from the margin (:mod:`.crown`)
crown          linear bounds for each hidden node that matters, too; tight, and dear for wide networks
alpha-crown    as crown, and the slopes of the margin's bound climb the gradient
auto           interval, then crown-ibp, then crown where it is affordable, each only on rows that are right
               at x and not yet certified; the best of what was computed
=============  ====================================================================================

All of them are sound, none is complete: a number below 0 says nothing. Computation is in float64 and its
rounding is subtracted (:mod:`.interval`, :mod:`.crown`). ``arithmetic`` says which passes of the module the
bound is about, besides the network of real numbers: by default those in the precision of its own weights,
with products as torch's settings allow them to be cut (:mod:`._arithmetic`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._counts import check_counts
from ._arithmetic import ARITHMETIC, as_it_runs
from ._graph import Graph, Window, build
from ._input_set import Ball, ball, check_threat
from ._relaxations import Activation
from ._tools import check_norm
from .crown import alpha_crown, crown_refine, lower_functional
from .interval import DOUBLE, Ranges, Rounding, interval_ranges
from .threat import Threat

__all__ = ["METHODS", "certified_radius", "network_bounds", "network_lower"]

METHODS = ("auto", "interval", "crown-ibp", "crown", "alpha-crown")
_CELLS = 1 << 19  # numbers in one block on the processor: 4 MB, which stay in its cache
_WORK = 2e10  # products a row up to which "auto" runs crown
_STEPS = 20


def network_lower(
    module: nn.Module,
    x: Any,
    codes: Any,
    threat: Threat,
    *,
    method: str = "auto",
    batch_size: int | None = None,
    arithmetic: str = "auto",
    steps: int = _STEPS,
) -> Tensor:
    r"""Lower bounds of each row's least margin over the inputs that are allowed.

    Parameters
    ----------
    module : nn.Module
        Gives scores of shape (n, classes), or (n, 1): one column z stands for the scores 0, z of two classes.
        It is at rest (``module.eval()``). Layers: see :data:`surefit.robust._graph.SUPPORTED`.
    x : float tensor or array of shape (n, ...)
    codes : integers of shape (n,)
        The classes 0, 1, ..., columns of the scores.
    threat : Threat
        Norm, radius and box; no other parts.
    method : {"auto", "interval", "crown-ibp", "crown", "alpha-crown"}
    batch_size : int, optional
        Rows at a time; chosen by memory otherwise.
    arithmetic : {"auto", "float64", "float32", "tf32", "bfloat16"}
        The passes of the module that the bound covers. "auto" is the precision of its weights, with products
        in TF32 or bfloat16 where torch's settings allow that at the time of the call: on a GPU convolutions
        by default. ``torch.backends.cudnn.conv.fp32_precision = "ieee"`` gives both the pass and the bound
        the precision of float32. "float64" leaves room for float64 rounding only, which is the network of
        real numbers in all but name.
    steps : int
        Gradient steps of "alpha-crown".

    Returns
    -------
    tensor of shape (n,), float64, on the module's device
        Above 0: certified.

    Examples
    --------
    >>> import torch
    >>> from surefit.robust import Threat
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2, dtype=torch.float64))
    >>> _ = net[0].weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]])), net[0].bias.data.zero_()
    >>> x = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    >>> round(network_lower(net, x, [0], Threat(0.5, norm=2)).item(), 9)       # 7 - 0.5 * 5
    4.5
    >>> round(network_lower(net, x, [0], Threat(0.5)).item(), 9)               # 7 - 0.5 * 7
    3.5
    """
    task = _Task(module, x, threat, method, batch_size, arithmetic, steps)
    return task.lower(task.codes(codes))


def network_bounds(
    module: nn.Module,
    x: Any,
    threat: Threat,
    *,
    method: str = "crown-ibp",
    batch_size: int | None = None,
    arithmetic: str = "auto",
    steps: int = _STEPS,
) -> tuple[Tensor, Tensor]:
    """Lower and upper bounds of each score over the inputs that are allowed.

    Parameters
    ----------
    module, x, threat, batch_size, arithmetic, steps
        As in :func:`network_lower`.
    method : {"auto", "interval", "crown-ibp", "crown", "alpha-crown"}
        "auto" is "crown" where it is affordable, else "crown-ibp".

    Returns
    -------
    lower, upper : tensors of shape (n, classes)

    Examples
    --------
    >>> import torch
    >>> from surefit.robust import Threat
    >>> net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU(), torch.nn.Linear(1, 1)).double()
    >>> _ = [p.data.fill_(1.0) for p in net.parameters()]                      # relu(x + 1) + 1
    >>> low, high = network_bounds(net, torch.zeros(1, 1), Threat(0.5))
    >>> round(low.item(), 6), round(high.item(), 6)
    (1.5, 2.5)
    """
    task = _Task(module, x, threat, method, batch_size, arithmetic, steps)
    k = task.graph.outputs
    a = torch.eye(k, dtype=torch.float64, device=task.x.device)
    a = torch.cat([a, -a])[None]
    chosen = task.dearest() if method == "auto" else method
    found = torch.cat([task.bound(b, a, chosen) for b in task.blocks(None, chosen)])
    return found[:, :k], -found[:, k:]


def certified_radius(
    module: nn.Module,
    x: Any,
    codes: Any,
    norm: Any = math.inf,
    *,
    most: float = 1.0,
    lower: Any = None,
    upper: Any = None,
    method: str = "auto",
    halvings: int = 12,
    batch_size: int | None = None,
    arithmetic: str = "auto",
) -> Tensor:
    """A radius within which no perturbation changes the label, for each row; 0 where none is found.

    Bisection between 0 and ``most``. A row certified at a radius is so at smaller ones, since the sets are
    nested; so the largest radius at which the bound was positive is returned, whatever the path.

    Parameters
    ----------
    module, x, codes, method, batch_size, arithmetic
        As in :func:`network_lower`.
    norm : {2, inf}, default=inf
    most : float
        The largest radius that is tried.
    lower, upper : default=None
        The box of :class:`Threat`.
    halvings : int
        The answer is short of what the method can show by at most most / 2**halvings.

    Returns
    -------
    tensor of shape (n,)

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2, dtype=torch.float64))
    >>> _ = net[0].weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]])), net[0].bias.data.zero_()
    >>> x = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    >>> round(certified_radius(net, x, [0], norm=2, most=2.0, halvings=20).item(), 4)     # 7 / 5
    1.4
    """
    if isinstance(most, bool) or not 0.0 < most < math.inf:
        raise ValueError(f"most must be a positive number, the largest radius tried, got {most!r}.")
    check_counts(halvings=halvings)
    order = check_norm(norm)
    start = _Task(module, x, Threat(0.0, order), method, batch_size, arithmetic, _STEPS)
    known = start.codes(codes)
    sure = torch.zeros(len(known), dtype=torch.float64, device=start.x.device)
    fails = torch.full_like(sure, most)
    right = start.lower(known) > 0
    tried = torch.full_like(sure, most)
    for turn in range(halvings + 1):
        for value in torch.unique(tried[right]).tolist():
            rows = (right & (tried == value)).nonzero()[:, 0]
            threat = Threat(value, order, lower=lower, upper=upper)
            part = _Task(
                module, start.x[rows], threat, method, batch_size, arithmetic, _STEPS,
                dtype=start.dtype, graph=start.graph,
            )  # fmt: skip
            good = part.lower(known[rows]) > 0
            sure[rows[good]] = value
            fails[rows[~good]] = value
        if turn == 0:
            right = right & (sure < most)
        tried = 0.5 * (sure + fails)
    return sure


class _Task:
    """The arguments, checked, and the graph."""

    def __init__(
        self, module: nn.Module, x: Any, threat: Threat, method: str, batch_size: int | None,
        arithmetic: str, steps: int, *, dtype: torch.dtype | None = None, graph: Graph | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(module, nn.Module):
            raise TypeError(f"module must be a torch.nn.Module, got {type(module).__name__}.")
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
        if batch_size is not None:
            check_counts(batch_size=batch_size)
        if steps != 0:
            check_counts(steps=steps)
        rows = torch.as_tensor(x)
        weights = (*module.parameters(), *module.buffers(), rows)  # rows where it has no numbers
        self.dtype = dtype or next((w.dtype for w in weights if w.is_floating_point()), rows.dtype)
        if not rows.is_floating_point() or rows.dim() < 2:
            raise ValueError(
                "x must hold rows of floating-point numbers, shape (n, ...), got "
                f"{rows.dtype} of shape {tuple(rows.shape)}."
            )
        if not bool(torch.isfinite(rows).all()):
            raise ValueError("x must be finite; it has NaN or infinite entries.")
        self.threat = check_threat(threat, math.prod(rows.shape[1:]))
        self.graph = graph or build(module, tuple(rows.shape[1:]))
        self.x = rows.detach().to(self.graph.device)
        self.method, self.batch_size, self.steps = method, batch_size, steps
        self.rounding = self._rounding(arithmetic)
        self.last = len(self.graph.nodes) - 1
        if graph is None and len(self.x):
            self._same_as(module)

    def _same_as(self, module: nn.Module) -> None:
        """Raise unless the nodes give the module's scores: what works in place can be misread."""
        few = self.x[:4].double()
        with torch.no_grad():
            scores = copy.deepcopy(module).double().eval()(few.clone())
            rounding, self.rounding = self.rounding, Rounding(DOUBLE)
            k = self.graph.outputs
            eye = torch.eye(k, dtype=torch.float64, device=few.device)
            block = ball(few, Threat(0.0, self.threat.norm), DOUBLE)
            found = self.bound(block, torch.cat([eye, -eye])[None], "interval")
            self.rounding = rounding
        if not bool(scores.isfinite().all()):
            raise NotImplementedError(
                f"{type(module).__name__} gives scores that are NaN or infinite at the first rows: no bound "
                "is given. Look at its weights, and at sums that overflow."
            )
        size = 1e-9 * (1.0 + float(scores.abs().max()))
        if not bool(((scores >= found[:, :k] - size) & (scores <= size - found[:, k:])).all()):
            raise NotImplementedError(
                f"{type(module).__name__} gives other scores than its list of layers, for instance because "
                "a layer changes its input in place while another still reads it: no bound is given."
            )

    def _rounding(self, arithmetic: str) -> Rounding:
        name = str(self.dtype).removeprefix("torch.") if arithmetic == "auto" else arithmetic
        if name not in ARITHMETIC and arithmetic == "auto":
            raise NotImplementedError(
                f"no bound is known for passes in {name}, whose small numbers underflow. Convert the module, "
                "for instance by module.float(), or choose arithmetic= yourself."
            )
        if name not in ARITHMETIC:
            raise ValueError(
                f"arithmetic must be 'auto' or one of {', '.join(ARITHMETIC)}, got {arithmetic!r}."
            )
        if (arithmetic, name) == ("auto", "float32"):
            return as_it_runs(self.graph)
        return ARITHMETIC[name]

    def codes(self, codes: Any) -> Tensor:
        known = torch.as_tensor(np.asarray(codes) if not isinstance(codes, Tensor) else codes)
        k = max(2, self.graph.outputs)
        if known.is_floating_point() or known.shape != (len(self.x),):
            raise ValueError(
                f"codes must be {len(self.x)} whole numbers, one a row of x, got {known.dtype} of shape "
                f"{tuple(known.shape)}."
            )
        if len(known) and (int(known.min()) < 0 or int(known.max()) >= k):
            raise ValueError(
                f"codes must lie between 0 and {k - 1}, the columns of the scores, got values from "
                f"{int(known.min())} to {int(known.max())}."
            )
        return known.to(self.graph.device, torch.int64)

    # ------------------------------------------------------------------ blocks of rows

    def blocks(self, rows: Tensor | None, method: str) -> list[Ball]:
        """The sets of inputs, in blocks that fit."""
        x = self.x if rows is None else self.x[rows]
        each = max(node.size for node in self.graph.nodes)  # numbers a row, at the widest node
        if method != "interval":
            each *= self.graph.outputs * (2 if method == "crown" else 1)
        height = self.batch_size or max(1, 4 * self._cells() // each)
        return [
            ball(x[i : i + height], self.threat, self.rounding.unit)
            for i in range(0, len(x), height)
        ]

    def _cells(self) -> int:
        if self.x.device.type == "cuda":
            return max(_CELLS, int(torch.cuda.mem_get_info(self.x.device)[0] // 160))
        return _CELLS

    def dearest(self) -> str:
        """crown where a row costs at most so many products."""
        return "crown" if _work(self.graph) <= _WORK else "crown-ibp"

    # ------------------------------------------------------------------ bounds

    def lower(self, codes: Tensor) -> Tensor:
        """The least margin of each row, by the chosen method."""
        found = torch.full((len(codes),), -math.inf, dtype=torch.float64, device=self.x.device)
        if self.method != "auto":
            return self._margins(None, codes, self.method, found)
        found = self._margins(None, codes, "interval", found)
        if self.threat.eps == 0.0:
            return self._margins(None, codes, "crown-ibp", found)
        plain = self._plain(codes)
        names = ["crown-ibp"] + (["crown"] if self.dearest() == "crown" else [])
        for name in names:
            rows = ((found <= 0) & (plain > 0)).nonzero()[:, 0]
            if len(rows):
                found[rows] = self._margins(rows, codes[rows], name, found[rows])
        return found

    def _plain(self, codes: Tensor) -> Tensor:
        """The margin at x itself, from below."""
        threat, self.threat = self.threat, Threat(0.0, self.threat.norm)
        try:
            start = torch.full((len(codes),), -math.inf, dtype=torch.float64, device=self.x.device)
            return self._margins(None, codes, "crown-ibp", start)
        finally:
            self.threat = threat

    def _margins(self, rows: Tensor | None, codes: Tensor, method: str, found: Tensor) -> Tensor:
        first, parts = 0, []
        for block in self.blocks(rows, method):
            mine = codes[first : first + len(block.x)]
            first += len(block.x)
            parts.append(self.bound(block, self._rivals(mine), method).min(dim=1).values)
        return torch.maximum(found, torch.cat(parts)) if parts else found

    def _rivals(self, codes: Tensor) -> Tensor:
        """z_y - z_k for k != y, as functionals of the scores: (n, q, k)."""
        k = self.graph.outputs
        if k == 1:
            return (2.0 * codes.to(torch.float64) - 1.0)[:, None, None]
        eye = torch.eye(k, dtype=torch.float64, device=self.x.device)
        every = eye[:, None, :] - eye[None, :, :]  # (y, k, scores)
        others = torch.stack([torch.cat([row[:y], row[y + 1 :]]) for y, row in enumerate(every)])
        return others[codes]

    def bound(self, block: Ball, a: Tensor, method: str) -> Tensor:
        """Lower bounds of functionals of the scores: (n, q)."""
        with torch.no_grad():
            refine: Callable[[Ranges, int], None] | None = None
            if method in ("crown", "alpha-crown"):
                cells = self._cells()

                def refine(ranges: Ranges, index: int) -> None:
                    crown_refine(ranges, index, cells)

            ranges = interval_ranges(self.graph, block, self.rounding, refine)
            found = lower_functional(ranges, self.last, a, deep=False)
            if method != "interval":
                found = torch.fmax(found, lower_functional(ranges, self.last, a))
        if method == "alpha-crown" and block.eps > 0.0:
            found = alpha_crown(ranges, self.last, a, found, steps=self.steps)
        return torch.where(found.isnan(), -math.inf, found.detach())  # an overflow shows nothing


def _work(graph: Graph) -> float:
    """Products that crown needs for a row: each hidden entry, twice, back through all nodes before it."""
    before, total = 0.0, 0.0
    for index, node in enumerate(graph.nodes):
        terms = getattr(node.op, "terms", 1)
        before += float(node.size) * terms
        readers = [n.op for n in graph.nodes if index in n.inputs]
        if index and any(isinstance(op, (Activation, Window)) for op in readers):
            total += 0.0 if node.inputs == (0,) else 2.0 * node.size * before
    return total
