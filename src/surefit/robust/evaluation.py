"""What an evaluation of a network found: the bracket, the points, the claims, and the check of a stranger.

:meth:`Evaluation.recheck` recomputes the claims from the stored points alone, in numpy and with a
plain forward pass
of the module, and certified rows by computing their bounds again: it uses none of the attacks' code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .._attributes import attributes_claim
from .._namespace import to_numpy
from ..certificate import Certificate, Claim, Kind
from ..fingerprint import fingerprint
from ._risk_claims import population, population_claim, weaken
from .network import Network, at_rest, shapes_named
from .threat import Threat

__all__ = ["Evaluation", "claims_of"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Robust accuracy of a network on some rows: certified <= true <= attacked.

    Attributes
    ----------
    robust : array of bool of shape (n,)
        Right, and no attack that was tried made it wrong.
    certified : array of bool of shape (n,)
        Right, and no allowed perturbation makes it wrong.
    clean : array of bool of shape (n,)
        Right without an attack.
    x_adv : array or tensor like X
        Points of the allowed set with another label where ``robust`` is False and ``clean`` True;
        else the rows.
    by : array of str of shape (n,)
        What broke the row: "clean" where it was wrong already, "" where it stands.
    threat : Threat
    attacks : tuple of str
        Attacks that ran, in order.
    stands : tuple of int
        Rows that stood after each of them.
    seconds : tuple of float
        Time that each took.
    forward, backward : int
        Rows that went through the network, forward and back.
    queries : array of int of shape (n,)
    delta, fresh : float, bool
        Of the limits for the distribution of the rows.
    method : str
        How rows were certified, or why none was.
    notes : tuple of str
    claims : tuple of Claim
    """

    robust: Mask
    certified: Mask
    clean: Mask
    x_adv: Any
    by: NDArray[Any]
    threat: Threat
    attacks: tuple[str, ...]
    stands: tuple[int, ...]
    seconds: tuple[float, ...]
    forward: int
    backward: int
    queries: NDArray[np.int64]
    delta: float
    fresh: bool
    method: str
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    about: str = ""
    data_id: str = ""

    @property
    def clean_accuracy(self) -> float:
        """The share of rows that are right without an attack."""
        return float(self.clean.mean())

    @property
    def attacked_accuracy(self) -> float:
        """The robust accuracy on these rows is at most this."""
        return float(self.robust.mean())

    @property
    def certified_accuracy(self) -> float:
        """The robust accuracy on these rows is at least this."""
        return float(self.certified.mean())

    @property
    def limits(self) -> tuple[float, float]:
        """Clopper and Pearson's limits of the robust accuracy for the distribution of the rows."""
        if not self.fresh:
            return 0.0, 1.0
        low, high = population(~self.robust[None], self.certified[None], self.delta)
        return 1.0 - float(high[0]), 1.0 - float(low[0])

    @property
    def certificate(self) -> Certificate:
        """The claims, as a certificate."""
        return Certificate(self.claims, self.data_id, "", self.about)

    def recheck(self, model: Any, X: Any, y: Any, *, batch_size: int = 512) -> Certificate:
        """Recompute every claim from the stored points: for a stranger, with code that no attack uses.

        Parameters
        ----------
        model, X, y
            The network and the rows that the evaluation is about.
        batch_size : int, default=512

        Returns
        -------
        Certificate
        """
        n, given = len(self.robust), (np.shape(X)[0], np.shape(y)[0])
        if given != (n, n):
            raise ValueError(
                f"the evaluation is about {n} rows; X has {given[0]}, and y has {given[1]} labels."
            )
        wrong = _inconsistency(self)
        if wrong:
            return Certificate((attributes_claim(wrong),), data_of(X, y), "", self.about)
        lower = _lower(self, model, X, y, batch_size)
        claims = claims_of(self, model, X, y, batch_size, lower)
        data_id = data_of(X, y)
        same = Claim.check(
            "data", f"the rows are{'' if data_id == self.data_id else ' not'} those of the evaluation",
            Kind.EXACT, float(data_id != self.data_id), 0.0, "ADV-1",
        )  # fmt: skip
        return Certificate((*claims, same), data_id, "", self.about)

    def summary(self) -> list[tuple[str, int, float, float]]:
        """(attack, rows that stood after it, accuracy, seconds), one for each attack in order."""
        n = len(self.robust)
        return [
            (name, count, count / n, time)
            for name, count, time in zip(self.attacks, self.stands, self.seconds, strict=True)
        ]

    # ------------------------------------------------------------------ rendering

    def __str__(self) -> str:
        n, (low, high) = len(self.robust), self.limits
        lines = [f"Robust accuracy of {self.about} on {n} rows ({self.threat})"]
        lines.append(f"  {'clean':<14} {self.clean_accuracy:.4f}")
        lines += [f"  {name:<14} {share:.4f}" for name, _, share, _ in self.summary()]
        lines.append(
            f"  certified {self.certified_accuracy:.4f} <= robust accuracy <= attacked "
            f"{self.attacked_accuracy:.4f}"
        )
        lines.append(f"  {self.method}")
        if self.fresh:
            lines.append(
                f"  true: {math.floor(low * 1e3) / 1e3:.3f} to {math.ceil(high * 1e3) / 1e3:.3f} for the "
                f"distribution of the rows, with probability {100 * (1 - self.delta):g} %"
            )
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    __repr__ = __str__

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(str(self).split("\n")[0], style="table.title"))
        table.title_justify = "left"
        for name in ("", "rows that stand", "accuracy", "seconds"):
            table.add_column(name, justify="left" if not name else "right")
        table.add_row("clean", str(int(self.clean.sum())), f"{self.clean_accuracy:.4f}", "")
        for name, count, share, time in self.summary():
            table.add_row(Text(name), str(count), f"{share:.4f}", f"{time:.1f}")
        count = int(self.certified.sum())
        table.add_row("certified", str(count), f"{self.certified_accuracy:.4f}", "")
        return table

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; the points are left out."""
        return {
            "clean_accuracy": self.clean_accuracy,
            "attacked_accuracy": self.attacked_accuracy,
            "certified_accuracy": self.certified_accuracy,
            "limits": list(self.limits),
            "n": len(self.robust),
            "threat": str(self.threat),
            "attacks": [
                {"name": name, "stand": count, "accuracy": share, "seconds": time}
                for name, count, share, time in self.summary()
            ],
            "forward": self.forward,
            "backward": self.backward,
            "method": self.method,
            "delta": self.delta,
            "fresh": self.fresh,
            "notes": list(self.notes),
            "about": self.about,
            "data_id": self.data_id,
            "claims": [claim.to_dict() for claim in self.claims],
        }

    def with_claims(self, claims: tuple[Claim, ...], data_id: str) -> Evaluation:
        """The same, with its claims."""
        return dataclasses.replace(self, claims=claims, data_id=data_id)


# ------------------------------------------------------------------------ the check


def data_of(X: Any, y: Any) -> str:
    """The fingerprint of rows of any shape and their labels."""
    X = X.toarray() if sp.issparse(X) else X
    x, labels = np.asarray(to_numpy(X), dtype=np.float64), np.asarray(to_numpy(y))
    codes = np.unique(labels, return_inverse=True)[1]
    return fingerprint(x.reshape(len(x), -1), codes)


def _inconsistency(found: Evaluation) -> str:
    """What no evaluation leaves behind, in a sentence; the empty string for a sound one."""
    n = len(found.robust)
    masks = {name: getattr(found, name) for name in ("robust", "certified", "clean")}
    wrong = [name for name, mask in masks.items() if np.asarray(mask).dtype != np.bool_]
    if wrong:
        return f"{', '.join(wrong)}: not an array of True and False"
    lists = {**masks, "by": found.by, "queries": found.queries}
    wrong = [name for name, values in lists.items() if np.shape(values) != (n,)]
    wrong += ["x_adv"] if np.shape(found.x_adv)[0] != n else []
    if wrong:
        return f"{', '.join(wrong)}: not one entry for each of the {n} rows"
    return "" if 0.0 < found.delta < 1.0 else f"delta is {found.delta!r}"


def claims_of(
    found: Evaluation, model: Any, X: Any, y: Any, batch_size: int, lower: NDArray[np.float64]
) -> tuple[Claim, ...]:
    """The claims of an evaluation, from its points and masks, a forward pass, and numpy in float64.

    ``lower`` has a lower bound of each certified row's margin over the allowed set.
    """
    x, points = (
        np.asarray(to_numpy(part), dtype=np.float64).reshape(len(found.robust), -1)
        for part in (_seen(model, X), found.x_adv)
    )
    inside, n = found.threat.contains(x, _rounded(points, found.x_adv)), len(found.robust)
    clean, plain_sure = _right(model, X, y, batch_size)
    right, sure = _right(model, found.x_adv, y, batch_size)
    broken = ~found.robust
    outside = int((broken & ~inside).sum())
    kept = int((broken & right & sure).sum())  # still right, by more than rounding
    stale = int(((found.clean != clean) & plain_sure).sum())
    fell = found.robust & inside & ~right & sure  # counted as standing, and their point is wrong
    fell |= (found.by == "") != found.robust
    late = found.stands[-1:] not in ((), (n - int(broken.sum()),))
    late |= not fell.any() and not _tallied(found)
    examples = Claim.check(
        "adversarial examples",
        f"of {int(broken.sum())} rows counted as broken, {outside} have a stored point outside the "
        f"allowed set, and at {kept} of the points the network's own label is right; "
        f"{int(fell.sum()) + late} other entries contradict the points",
        Kind.EXACT, float(outside + kept + fell.sum() + late), 0.0, "ADV-2",
    )  # fmt: skip
    examples = weaken(examples, not broken.any(), "no row is counted as broken")
    both, open_ = int((found.certified & broken).sum()), int((~(lower > 0)).sum())
    apart = Claim.check(
        "certified rows",
        f"of {len(lower)} certified rows {both} were broken by an attack, and {open_} have no positive lower "
        "bound of their margin",
        Kind.EXACT, float(both + open_), 0.0, "ADV-1",
    )  # fmt: skip
    apart = weaken(apart, not found.certified.any(), "no row is certified")
    plain = Claim.check(
        "clean accuracy", f"the network's label differs from the stored one on {stale} of {n} rows",
        Kind.EXACT, float(stale), 0.0, "ADV-1",
    )  # fmt: skip
    low, high = found.certified_accuracy, found.attacked_accuracy
    if low > high:
        words = f"cannot be at least {low:.4f} (certified: {found.method}) and at most {high:.4f}"
    elif found.certified.any():
        words = f"lies between {low:.4f} (certified: {found.method}) and {high:.4f}"
    else:
        words = f"is at most {high:.4f}; no row is certified ({found.method})"
    names = ", ".join(found.attacks) or "no attack"
    words = f"the robust accuracy on these rows {words} ({names})"
    bracket = Claim.check("robust accuracy", words, Kind.BOUND, low - high, 0.0, "ADV-1")
    same = (
        0.0 == low < found.clean_accuracy <= high
    )  # what is true of any model as accurate as this
    bracket = weaken(bracket, same, "nothing was certified and nothing broken")
    below, above = population(broken[None], found.certified[None], found.delta)
    why = (
        ""
        if found.fresh
        else "the rows were used by a fit (fresh=False): nothing follows for other rows"
    )
    eps = np.array([found.threat.eps])
    return (
        examples,
        apart,
        plain,
        bracket,
        population_claim(eps, below, above, n, found.delta, why),
    )


def _tallied(found: Evaluation) -> bool:
    """Whether each attack is said to have broken as many rows as fell while it ran."""
    fell, names = -np.diff([found.clean.sum(), *found.stands]), np.array(found.attacks, dtype=str)
    by = found.by[found.clean]
    if len(fell) != len(names) or (fell < 0).any() or (found.by[~found.clean] != "clean").any():
        return False
    known = np.isin(by, ["", *names]).all()
    return bool(known) and all(fell[names == k].sum() == (by == k).sum() for k in set(names))


def _lower(found: Evaluation, model: Any, X: Any, y: Any, batch_size: int) -> NDArray[np.float64]:
    """Bounds of the certified rows' margins, anew; minus infinity where none can be computed."""
    rows = np.flatnonzero(found.certified)
    if not len(rows):
        return np.zeros(0)
    right = _right(model, X, y, batch_size)[0][rows]
    if found.threat.eps == 0.0:  # nothing may move: the label itself
        return np.where(right, math.inf, -math.inf)
    from .network_bounds import network_lower

    (module, classes, _), x = _parts(model, X), _seen(model, X)
    lower, rows = np.full(len(rows), -math.inf), rows[right]  # another label has no bound
    codes = np.asarray(to_numpy(y))[rows]
    if classes is None:
        codes = codes.astype(np.int64)
    else:
        order = np.argsort(classes, kind="stable")
        codes = order[np.searchsorted(classes, codes, sorter=order)]
    with contextlib.suppress(NotImplementedError), at_rest(module):
        lower[right] = network_lower(module, x[rows], codes, found.threat).cpu().numpy()
    return lower


def _seen(model: Any, X: Any) -> Any:
    """The rows as the module sees them: in the precision of its weights."""
    module, _, x = _parts(model, X)
    return x.to(next((p.dtype for p in module.parameters()), x.dtype))


def _rounded(points: NDArray[np.float64], given: Any) -> Any:
    """The points in their own precision, which is what the slack of ``contains`` is taken from."""
    single = str(getattr(given, "dtype", "float64")).endswith(("float32", "float16"))
    return points.astype(np.float32) if single else points


def _right(model: Any, X: Any, y: Any, batch_size: int) -> tuple[Mask, Mask]:
    """Which rows have their own label, and where that is not a matter of rounding."""
    import torch

    module, classes, x = _parts(model, X)
    weight = next(module.parameters(), torch.zeros(1))
    labels, outputs = np.asarray(to_numpy(y)), []
    with at_rest(module), torch.no_grad():
        for first in range(0, len(x), batch_size):
            part = x[first : first + batch_size].to(weight.device, weight.dtype, copy=True)
            with shapes_named(part):
                scores = module(part)
            outputs.append(scores.double().cpu().numpy().reshape(len(part), -1))
    z = np.concatenate(outputs)
    z = np.hstack([np.zeros_like(z), z]) if z.shape[1] == 1 else z
    names = np.arange(z.shape[1]) if classes is None else classes
    top = np.sort(z, axis=1)[:, ::-1]
    units = {torch.float32: 1e-5, torch.float64: 1e-12}
    unit = units.get(weight.dtype, 8.0 * torch.finfo(weight.dtype).eps)
    sure = top[:, 0] - top[:, 1] > unit * np.maximum(1.0, np.abs(z).max(axis=1))
    return names[z.argmax(axis=1)] == labels, sure


def _parts(model: Any, X: Any) -> tuple[Any, Any, Any]:
    """The module, the labels of its outputs where they are known, and the rows as a tensor."""
    import torch

    module, classes = getattr(model, "module_", model), getattr(model, "classes_", None)
    if isinstance(model, Network):
        module, classes = model.module, model.classes
    x = torch.as_tensor(X) if isinstance(X, torch.Tensor) else None
    if x is None:
        x = model._tensor(X) if hasattr(model, "_tensor") else torch.as_tensor(np.asarray(X))
    return module, None if classes is None else np.asarray(classes), x
