"""A network as the attacks on tables see it: labels, margins and gradients of flat rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .._namespace import is_torch, to_numpy
from ._attack import AttackResult
from ._ball import check_threat, limits_of
from ._network_attack import begin, finish, margins
from ._network_attack import gradient as slope
from .network import Network, network
from .scores import Scores
from .threat import Threat

__all__ = ["network_certified", "network_decision_based", "network_scores"]

Mask = NDArray[np.bool_]
_BATCH = 4096


def network_scores(
    model: Any, *, classes: Any = None, shape: tuple[int, ...] | None = None
) -> Scores:
    """Labels, margins and gradients of a network, for rows that are flat or of its own shape."""
    net = network(model, classes)

    def tensor(X: Any) -> Any:
        x = net.tensor(X)
        return x if shape is None else x.reshape(-1, *shape)

    def back(values: Any, X: Any) -> Any:
        if is_torch(X):
            return values.to(X.dtype).reshape(
                X.shape[: values.ndim] if values.ndim == 1 else X.shape
            )
        kind = np.asarray(X).dtype if np.asarray(X).dtype.kind == "f" else np.float64
        found = to_numpy(values).astype(kind)
        return found if found.ndim == 1 else found.reshape(np.shape(X))

    def labels(X: Any) -> Any:
        with net.held():
            z = net.exact(tensor(X), _BATCH)
        return z.argmax(dim=1).cpu().numpy().astype(np.intp)

    def margin(X: Any, codes: Any) -> Any:
        with net.held():
            z = net.exact(tensor(X), _BATCH)
        return back(margins(z, _codes(codes, z)), X)

    def gradient(X: Any, codes: Any) -> Any:
        x, parts = tensor(X), []
        with net.held(), torch.enable_grad():
            for first in range(0, len(x), _BATCH):
                point = x[first : first + _BATCH].clone().requires_grad_(True)
                z = net.logits(point)
                value = margins(z, _codes(codes[first : first + _BATCH], z))
                parts.append(slope(value, point))
        net.tally.backward += len(x)
        return back(torch.cat(parts) if parts else x, X)

    return Scores(net.classes, labels, margin, gradient, None, "network", net)


def _codes(codes: Any, like: Any) -> Any:
    return torch.as_tensor(np.maximum(codes, 0), device=like.device, dtype=torch.int64)


def network_decision_based(
    model: Any, X: Any, y: Any, threat: Threat, *, starts: Any = None, classes: Any = None, **options: Any
) -> AttackResult:  # fmt: skip
    """The walk of :func:`decision_based` on flat rows; points come back in the shape that X has."""
    from .decision_based import decision_based

    net = network(model, classes)
    x = net.tensor(X)
    net.codes(y)
    check_threat(threat, tuple(x.shape[1:]))
    known = network_scores(net, shape=tuple(x.shape[1:]))
    flat = to_numpy(x.flatten(1))
    box = [part.to(x.dtype) for part in limits_of(threat, x)]
    if bool(((x >= box[0]) & (x <= box[1])).all()):
        # the walk leaves the box; f(clip(x)) has the labels of points that do not
        def labels(points: Any) -> Any:
            z = net.tensor(points).reshape(-1, *x.shape[1:])
            return plain(torch.minimum(torch.maximum(z, box[0]), box[1]))

        plain = known.labels
        known = dataclasses.replace(known, labels=labels)
    pool = None if starts is None else to_numpy(net.tensor(starts).flatten(1))
    walked = decision_based(known, flat, to_numpy(y), threat, starts=pool, **options)
    with net.held():  # allowed as those of the other attacks are: rounding included
        case = begin(net, X, y, threat, batch_size=_BATCH)
        points = torch.as_tensor(walked.x_adv, device=net.device, dtype=net.dtype)
        queries = torch.as_tensor(walked.queries, device=net.device)
        return finish(case, points.reshape(x.shape)[case.rows], queries[case.rows])


def network_certified(
    net: Network, X: Any, codes: Any, wrong: Mask, threats: list[Threat]
) -> tuple[Mask, str]:
    """Rows whose margin stays positive at each radius, and how; nothing where a layer has no bound."""
    certified = np.zeros((len(threats), len(codes)), dtype=np.bool_)
    try:
        from .network_bounds import network_lower

        x, places = net.tensor(X), torch.as_tensor(np.maximum(codes, 0), device=net.device)
        with net.held():
            for e, threat in enumerate(threats):
                below = network_lower(net.module, x, places, threat)
                certified[e] = (below > 0).cpu().numpy() & ~wrong & (codes >= 0)
    except (ImportError, NotImplementedError):
        return np.zeros_like(certified), ""
    return certified, "linear bounds through the layers"
