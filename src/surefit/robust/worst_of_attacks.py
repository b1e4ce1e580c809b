r"""The robust accuracy of a network, bracketed by several attacks and by certified bounds (ADV-1, ADV-2).

A row is *broken* when one of the attacks finds an allowed point that the network itself gives
another label. Attacks
run one after the other, the cheap ones first, and only on rows that still stand, so that the accuracy after
all of them is that of the pointwise worst. A row is *certified* when a lower bound of its margin over the
whole allowed set is positive (:mod:`.network_bounds`). Then

    certified accuracy <= robust accuracy on these rows <= attacked accuracy,

and the limits of Clopper and Pearson of the two counts bracket it for the distribution of the rows.

The order is that of AutoAttack: APGD with cross-entropy, APGD with targeted DLR, FAB (targeted), Square.

Reference: Croce & Hein, "Reliable evaluation of adversarial robustness with an ensemble of diverse
parameter-free attacks" (2020).
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from .._counts import check_counts
from .._namespace import to_numpy
from ._ball import check_threat, spread
from .adaptive_boundary import fab
from .auto_pgd import apgd
from .decision_based import decision_based
from .evaluation import Evaluation, claims_of, data_of
from .fgsm import fgsm
from .network import Network, is_network, network
from .pgd import pgd
from .square_attack import square
from .threat import Threat

__all__ = ["evaluate"]

_ATTACKS: dict[str, Callable[..., Any]] = {
    "fgsm": fgsm,
    "pgd": functools.partial(pgd, stop_early=True, restarts=2),
    "apgd-ce": functools.partial(apgd, loss="ce"),
    "apgd-dlr": functools.partial(apgd, loss="dlr"),
    "apgd-t": functools.partial(apgd, loss="targeted"),
    "fab-t": fab,
    "square": square,
    "decision": decision_based,
}
_STANDARD = ("apgd-ce", "apgd-t", "fab-t", "square")


def evaluate(
    model: Any,
    X: Any,
    y: Any,
    threat: Threat,
    *,
    attacks: Sequence[Any] | None = None,
    certify: bool = True,
    batch_size: int = 512,
    time_limit: float | None = None,
    delta: float = 0.05,
    fresh: bool = True,
    compact: bool = True,
    random_state: int = 0,
    verbose: int = 0,
    classes: Any = None,
) -> Evaluation:
    """Bracket the robust accuracy of a network.

    Parameters
    ----------
    model : nn.Module, fitted estimator of surefit.nn, or Network
    X : tensor or array of shape (n, d) or (n, c, h, w)
        Rows that no fit has used.
    y : array of shape (n,)
    threat : Threat
        eps, norm, lower and upper.
    attacks : sequence of str or callable, default=None
        Of "fgsm", "pgd", "apgd-ce", "apgd-dlr", "apgd-t", "fab-t", "square", "decision", or
        functions with the
        signature of attacks; what they find is verified here. None is apgd-ce, apgd-t, fab-t, square.
    certify : bool, default=True
        Whether to look for rows that no perturbation can break.
    batch_size : int, default=512
    time_limit : float, default=None
        Seconds after which no further attack is started. The result says which were left out.
    delta : float, default=0.05
        Probability that a statistical limit is wrong.
    fresh : bool, default=True
        Whether no fit has used these rows; without that nothing is claimed about other rows.
    compact : bool, default=True
        Whether rows that have fallen are attacked no more. Without it the same rows fall, later; but
        "decision" then walks with other random numbers.
    random_state : int, default=0
    verbose : int, default=0
        1 prints a line after each attack.
    classes : array, default=None
        See :func:`surefit.robust.network`.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import torch
    >>> from surefit.robust import Threat, evaluate
    >>> net = torch.nn.Linear(1, 2)
    >>> net.load_state_dict({"weight": torch.tensor([[-1.0], [1.0]]), "bias": torch.zeros(2)})
    <All keys matched successfully>
    >>> X, y = torch.tensor([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    >>> found = evaluate(net, X, y, Threat(1.5), attacks=["apgd-ce", "fab-t"])
    >>> found.robust.tolist(), found.by.tolist(), found.certificate.ok
    ([True, False, False, True], ['', 'apgd-ce', 'apgd-ce', ''], True)
    """
    start = time.monotonic()
    if not is_network(model):
        raise TypeError(
            f"evaluate is for networks, got {type(model).__name__}: use adversarial_risk, "
            "which takes any classifier."
        )
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}.")
    check_counts(batch_size=batch_size)
    chosen = _chosen(attacks)
    net = network(model, classes)
    forward, backward = net.tally.forward, net.tally.backward
    with net.held():
        x, codes = net.tensor(X), net.codes(y)
        check_threat(threat, tuple(x.shape[1:]))
        if len(x) != len(codes):
            raise ValueError(f"X has {len(x)} rows, but y has {len(codes)} labels.")
        if not len(x):
            raise ValueError("X has no rows: an accuracy needs at least one.")
        clean = (net.exact(x, batch_size).argmax(dim=1) == codes).cpu().numpy()
        stands, x_adv = clean.copy(), x.clone()
        by = np.where(clean, "", "clean").astype(object)
        queries = np.zeros(len(x), dtype=np.int64)
        ran, left, spent, notes = [], [], [], []
        for name, attack in chosen:
            begun = time.monotonic()
            if time_limit is not None and begun - start > time_limit:
                notes.append(f"time ran out: {name} was left out")
                continue
            rows = np.flatnonzero(stands if compact else clean)
            if len(rows) and threat.eps > 0.0:
                unproved = _attack(net, attack, x, codes, threat, rows, x_adv, stands, by, queries, name,
                                   random_state, batch_size, compact)  # fmt: skip
                if unproved:
                    notes.append(
                        f"{name} counted {unproved} rows as broken whose points lie outside the allowed set "
                        "or keep their label: they stand"
                    )
            ran.append(name)
            left.append(int(stands.sum()))
            spent.append(time.monotonic() - begun)
            if verbose:
                print(f"{name}: {left[-1]} of {len(x)} rows stand, {spent[-1]:.1f} s", flush=True)
        certified, lower, method = _certified(net, x, codes, threat, clean, certify)
    points: Any = x_adv
    if not isinstance(X, torch.Tensor):
        points = to_numpy(x_adv)
        points = points.reshape(np.shape(X)) if points.size == np.size(X) else points
    found = Evaluation(
        robust=stands, certified=certified, clean=clean, x_adv=points, by=by.astype(str), threat=threat,
        attacks=tuple(ran), stands=tuple(left), seconds=tuple(spent), forward=net.tally.forward - forward,
        backward=net.tally.backward - backward, queries=queries, delta=float(delta), fresh=bool(fresh),
        method=method, notes=tuple(notes), about=net.about,
    )  # fmt: skip
    asked = net.estimator if net.estimator is not None else net
    claims = claims_of(found, asked, X, y, batch_size, lower[certified])
    return found.with_claims(claims, data_of(X, y))


def _attack(
    net: Network, attack: Any, x: Any, codes: Any, threat: Threat, rows: Any, x_adv: Any, stands: Any,
    by: Any, queries: Any, name: str, random_state: int, batch_size: int, compact: bool,
) -> int:  # fmt: skip
    """Run one attack on some rows, and write what it found into the masks and points.

    Only what the module itself says of allowed points counts; the answer is how often an attack claimed more.
    """
    options: dict[str, Any] = {"random_state": random_state}
    if attack is decision_based:
        options["starts"] = x
    if getattr(attack, "func", attack) in (apgd, fab, square):
        options |= {"batch_size": batch_size, "compact": compact}
    places = torch.as_tensor(rows, device=net.device)
    labels = net.classes[codes[places].cpu().numpy()]
    result = attack(dataclasses.replace(net, ids=places), x[places], labels, threat, **options)
    queries[rows] += np.asarray(to_numpy(result.queries), dtype=np.int64)
    claimed = np.asarray(to_numpy(result.success), dtype=np.bool_) & stands[rows]
    places, tried = places[torch.as_tensor(claimed, device=net.device)], rows[claimed]
    if not len(tried):
        return 0
    found = torch.as_tensor(result.x_adv, device=net.device)[torch.as_tensor(claimed)]
    found = found.to(x_adv.dtype).reshape(x[places].shape)
    inside = threat.contains(*(to_numpy(part.flatten(1)) for part in (x[places], found)))
    mask = torch.as_tensor(inside, device=net.device) & found.flatten(1).isfinite().all(dim=1)
    label = net.exact(torch.where(spread(mask, found), found, x[places]), batch_size).argmax(dim=1)
    mask &= label != codes[places]
    new = tried[mask.cpu().numpy()]
    stands[new], by[new] = False, name
    x_adv[places[mask]] = found[mask]
    return len(tried) - len(new)


def _certified(
    net: Network, x: Any, codes: Any, threat: Threat, clean: Any, wanted: bool
) -> tuple[Any, Any, str]:
    """Rows whose margin has a positive lower bound, the bounds, and how, or why there are none."""
    nothing = np.full(len(x), -np.inf)
    if threat.eps == 0.0:
        return clean.copy(), np.where(clean, np.inf, -np.inf), "nothing may move: the label itself"
    if not wanted:
        return nothing > 0, nothing, "no bounds were asked for (certify=False)"
    try:
        from .network_bounds import network_lower

        below = network_lower(net.module, x, codes, threat)
    except (ImportError, NotImplementedError) as error:
        return nothing > 0, nothing, f"no certified bound: {error}"
    lower = below.cpu().numpy()
    return (lower > 0) & clean, lower, "linear bounds through the layers"


def _chosen(attacks: Any) -> list[tuple[str, Any]]:
    if attacks is None:
        attacks = _STANDARD
    names = [attacks] if isinstance(attacks, str) or callable(attacks) else list(attacks)
    unknown = [name for name in names if not callable(name) and name not in _ATTACKS]
    if unknown:
        raise ValueError(
            f"attacks must be functions or of {', '.join(_ATTACKS)}, got {unknown[0]!r}."
        )
    return [
        (str(getattr(a, "__name__", type(a).__name__)), a) if callable(a) else (a, _ATTACKS[a])
        for a in names
    ]
