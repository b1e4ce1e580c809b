"""The bracket around the adversarial risk, for a list of radii: numbers, words, plot, JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate, Claim
from ..model_selection._claims import percent

__all__ = ["RobustnessCurve"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RobustnessCurve:
    """What is known of the adversarial risk at each radius.

    On the rows given, certified accuracy <= robust accuracy <= attacked accuracy. For the distribution they
    come from, the adversarial risk lies between ``low`` and ``high``, for all radii at once with
    probability 1 - delta.

    Attributes
    ----------
    eps : array of shape (m,)
        Radii, increasing.
    certified_accuracy : array of shape (m,)
        Share of rows that no allowed perturbation makes wrong.
    attacked_accuracy : array of shape (m,)
        Share of rows that no attack that was tried made wrong.
    exact : array of bool of shape (m,)
        Where the two agree.
    low, high : array of shape (m,)
        Limits of the true adversarial risk.
    n, n_given : int
        Rows evaluated, and rows given.
    norm : str
        "l2" or "linf".
    threat : str
        What the attacker may do, in words.
    method, attacks : str, tuple of str
        How rows were certified, and which attacks were tried.
    delta : float
    notes : tuple of str
        What was left out: rows, attacks that the time did not suffice for.
    claims : tuple of Claim
    """

    eps: Array
    certified_accuracy: Array
    attacked_accuracy: Array
    exact: NDArray[np.bool_]
    low: Array
    high: Array
    n: int
    n_given: int
    norm: str
    threat: str
    method: str
    attacks: tuple[str, ...]
    delta: float
    notes: tuple[str, ...]
    claims: tuple[Claim, ...]
    about: str = ""
    data_id: str = ""

    @property
    def risk_lower(self) -> Array:
        """The adversarial risk on these rows is at least this."""
        return 1.0 - self.attacked_accuracy

    @property
    def risk_upper(self) -> Array:
        """The adversarial risk on these rows is at most this."""
        return 1.0 - self.certified_accuracy

    @property
    def certificate(self) -> Certificate:
        """The claims, as a certificate."""
        return Certificate(self.claims, self.data_id, "", self.about)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, under names that do not change.

        ``eps``, ``certified_accuracy``, ``attacked_accuracy``, ``exact``, ``low`` and ``high`` are lists,
        one entry a radius; ``n``, ``n_given``, ``norm``, ``threat``, ``method``, ``attacks``, ``delta``,
        ``notes``, ``about``, ``data_id`` and ``claims`` are about the whole.
        """
        lists = {
            name: getattr(self, name).tolist()
            for name in ("eps", "certified_accuracy", "attacked_accuracy", "exact", "low", "high")
        }
        return {
            **lists,
            "n": self.n,
            "n_given": self.n_given,
            "norm": self.norm,
            "threat": self.threat,
            "method": self.method,
            "attacks": list(self.attacks),
            "delta": self.delta,
            "notes": list(self.notes),
            "about": self.about,
            "data_id": self.data_id,
            "claims": [claim.to_dict() for claim in self.claims],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> RobustnessCurve:
        """Inverse of :meth:`to_dict`."""
        numbers = ("eps", "certified_accuracy", "attacked_accuracy", "low", "high")
        arrays: dict[str, Any] = {k: np.asarray(record[k], dtype=np.float64) for k in numbers}
        words: dict[str, Any] = {
            k: str(record[k]) for k in ("norm", "threat", "method", "about", "data_id")
        }
        return cls(
            **arrays,
            **words,
            exact=np.asarray(record["exact"], dtype=np.bool_),
            n=int(record["n"]),
            n_given=int(record["n_given"]),
            delta=float(record["delta"]),
            attacks=tuple(str(name) for name in record["attacks"]),
            notes=tuple(str(note) for note in record["notes"]),
            claims=tuple(Claim.from_dict(claim) for claim in record["claims"]),
        )

    # ------------------------------------------------------------------ rendering

    def _title(self) -> str:
        of = f" of {self.about}" if self.about else ""
        return f"Robust accuracy{of} on {self.n} rows ({self.threat})"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        rows = []
        for e in range(len(self.eps)):
            low, high = self.certified_accuracy[e], self.attacked_accuracy[e]
            bracket = f"{low:.4f}" if self.exact[e] else f"{low:.4f} to {high:.4f}"
            kind = "exact" if self.exact[e] else "certified to attacked"
            truth = f"{1 - self.high[e]:.3f} to {1 - self.low[e]:.3f}"
            rows.append((f"{self.eps[e]:g}", bracket, kind, truth))
        return rows

    def __str__(self) -> str:
        lines = [self._title()]
        lines += [
            f"  eps {eps:<6} {bracket:<18} {kind:<22} true {truth}"
            for eps, bracket, kind, truth in self._rows()
        ]
        return "\n".join(lines + [f"  {line}" for line in self._footer()])

    def _footer(self) -> list[str]:
        tried = f"attacks tried: {', '.join(self.attacks)}" if self.attacks else "no attack needed"
        sure = percent(self.delta)
        return [
            f"{self.method}; {tried}",
            f"true: for the distribution of the rows, all radii at once with probability {sure}",
            *self.notes,
        ]

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(title=self._title(), title_justify="left", caption_justify="left")
        for name in ("eps", "robust accuracy", "", "true robust accuracy"):
            table.add_column(name, justify="left" if not name else "right", no_wrap=True)
        for row in self._rows():
            table.add_row(*row)
        table.caption = "\n".join(self._footer())
        return table

    def plot(self, ax: Any = None) -> Any:
        """Robust accuracy against the radius: the bracket on these rows, and the limits of the truth.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            None for new ones.

        Returns
        -------
        matplotlib axes
        """
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(5.0, 3.2), layout="constrained").subplots()
        ax.fill_between(
            self.eps, 1 - self.high, 1 - self.low, color="0.5", alpha=0.2, linewidth=0,
            label=f"true accuracy, {percent(self.delta)}",
        )  # fmt: skip
        if self.exact.all():
            ax.plot(self.eps, self.certified_accuracy, "o-", color="tab:blue", label="exact")
        else:
            ax.fill_between(
                self.eps, self.certified_accuracy, self.attacked_accuracy, color="tab:blue", alpha=0.2,
                linewidth=0,
            )  # fmt: skip
            ax.plot(
                self.eps, self.attacked_accuracy, "v-", color="tab:red", label="attacked (at most)"
            )
            ax.plot(
                self.eps,
                self.certified_accuracy,
                "^-",
                color="tab:blue",
                label="certified (at least)",
            )
        ax.set(
            xlabel=f"radius of the attack ({self.norm})",
            ylabel="robust accuracy",
            ylim=(-0.02, 1.02),
        )
        ax.legend(frameon=False)
        return ax
