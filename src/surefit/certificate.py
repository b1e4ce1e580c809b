"""Certificates: claims about a fit that anyone can recompute.

A :class:`Claim` is one checked sentence with its number: it *holds* when the observed quantity is at
most its bound. A :class:`Certificate` is the list of claims about one fit, together with the
fingerprint of the data they are about. :func:`verify` recomputes them for a stranger.

This module depends on nothing else of surefit: a certificate can be read, printed and stored without
any solver at hand.

Examples
--------
>>> from surefit import Claim, Certificate, Kind
>>> claim = Claim.check("duality gap", "within 2e-09 of the minimum", Kind.OPTIMAL, 2e-9, 1e-6, "REG-14")
>>> claim.status.name
'HOLDS'
>>> Certificate((claim,)).ok
True
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "Certificate",
    "CertificateError",
    "CertificateWarning",
    "Claim",
    "Kind",
    "Status",
    "verify",
]


class CertificateWarning(ConvergenceWarning):
    """A fit ended, and one of its claims does not hold."""


class CertificateError(ValueError):
    """Raised by :meth:`Certificate.raise_if_failed`: a claim does not hold."""


class Kind(Enum):
    """What sort of statement a claim makes, strongest first."""

    OPTIMAL = "optimal"  # within the stated distance of the global minimum
    EXACT = "exact"  # an identity, true to rounding
    STATIONARY = "stationary"  # no first-order improvement; no optimality claim
    BOUND = "bound"  # a theorem's inequality, checked on this run
    STATISTICAL = "statistical"  # true with the stated probability
    EMPIRICAL = "empirical"  # an experiment that failed to refute


class Status(Enum):
    """The outcome of checking a claim."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


_MARKS = {Status.HOLDS: "✓", Status.FAILS: "✗", Status.UNDECIDED: "?"}
_COLOURS = {Status.HOLDS: "green", Status.FAILS: "red", Status.UNDECIDED: "yellow"}
_HEX = {Status.HOLDS: "#1a7f37", Status.FAILS: "#b42318", Status.UNDECIDED: "#9a6700"}
_KIND_ORDER = {kind: rank for rank, kind in enumerate(Kind)}


@dataclass(frozen=True, eq=False)
class Claim:
    """One sentence with its number; it holds iff ``observed <= bound``.

    Build it with :meth:`check`, which decides the status, or with :meth:`undecided`.

    Attributes
    ----------
    name : str
        Short name, such as ``"duality gap"``.
    statement : str
        The sentence a person reads. It quotes the observed number, so it stays true when the claim fails.
    kind : Kind
        What sort of statement this is.
    observed, bound : float
        The measured quantity, and the largest value at which the claim holds.
    status : Status
        HOLDS, FAILS or UNDECIDED.
    source : str
        The specification item behind it, such as ``"SVM-7"``.
    """

    name: str
    statement: str
    kind: Kind
    observed: float
    bound: float
    status: Status
    source: str = ""

    @classmethod
    def check(
        cls,
        name: str,
        statement: str,
        kind: Kind,
        observed: float,
        bound: float,
        source: str = "",
        *,
        floor: float = 0.0,
    ) -> Claim:
        """Decide a claim: it holds when ``observed <= bound``, or is below the rounding ``floor``.

        A NaN on either side fails, and so does an infinite number: nothing was shown. Where only the
        floor saves the claim, the statement says "to rounding".
        """
        observed, bound, floor = float(observed), float(bound), float(floor)
        if observed <= bound and observed < math.inf:
            return cls(name, statement, kind, observed, bound, Status.HOLDS, source)
        if observed <= floor and math.isfinite(floor):
            statement = f"{statement} (to rounding: below the floor {floor:.1e})"
            return cls(name, statement, kind, observed, floor, Status.HOLDS, source)
        return cls(name, statement, kind, observed, bound, Status.FAILS, source)

    @classmethod
    def undecided(cls, name: str, why: str, kind: Kind, source: str = "") -> Claim:
        """A claim that was not checked, with the reason and what would decide it."""
        return cls(name, why, kind, math.nan, math.nan, Status.UNDECIDED, source)

    @property
    def relation(self) -> str:
        """How the observed number compares with the bound, for printing."""
        return "<=" if self.status is Status.HOLDS else ">"

    def __eq__(self, other: object) -> bool:
        """Equal fields, an undecided claim's NaN counting as equal to itself."""
        return isinstance(other, Claim) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.to_dict().values()))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; NaN and infinities become strings."""
        return {
            "name": self.name,
            "statement": self.statement,
            "kind": self.kind.value,
            "observed": _number_out(self.observed),
            "bound": _number_out(self.bound),
            "status": self.status.value,
            "source": self.source,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Claim:
        """Inverse of :meth:`to_dict`."""
        return cls(
            name=str(record["name"]),
            statement=str(record["statement"]),
            kind=Kind(record["kind"]),
            observed=float(record["observed"]),
            bound=float(record["bound"]),
            status=Status(record["status"]),
            source=str(record.get("source", "")),
        )


@dataclass(frozen=True)
class Certificate:
    """The claims about one fit, strongest first, and the data they are about.

    Attributes
    ----------
    claims : tuple of Claim
    data_id : str
        Fingerprint of the training data (see :mod:`surefit.fingerprint`).
    stopped : str
        Which stopping rule ended the fit.
    about : str
        What the claims are about: usually the estimator's class name.
    """

    claims: tuple[Claim, ...]
    data_id: str = ""
    stopped: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.claims, key=lambda claim: _KIND_ORDER[claim.kind]))
        object.__setattr__(self, "claims", ordered)

    @property
    def ok(self) -> bool:
        """True when no claim fails. An undecided claim does not fail; it says what is missing."""
        return not self.failed

    @property
    def failed(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if claim.status is Status.FAILS)

    def __getitem__(self, name: str) -> Claim:
        for claim in self.claims:
            if claim.name == name:
                return claim
        known = ", ".join(repr(claim.name) for claim in self.claims) or "none"
        raise KeyError(f"no claim named {name!r}; this certificate has: {known}")

    def __contains__(self, name: object) -> bool:
        return any(claim.name == name for claim in self.claims)

    def raise_if_failed(self) -> Certificate:
        """Raise :class:`CertificateError` naming every failed claim; return self otherwise."""
        if self.failed:
            raise CertificateError(self.failure_message())
        return self

    def failure_message(self) -> str:
        """One line a failed claim, with the number and the bound it misses."""
        lines = [f"{self.about or 'fit'}: {len(self.failed)} claim(s) do not hold."]
        lines += [
            f"  {c.name}: {c.statement}; observed {c.observed:.3g}, needed <= {c.bound:.3g}."
            for c in self.failed
        ]
        if self.stopped:
            lines.append(f"  The fit ended because {self.stopped}.")
        return "\n".join(lines)

    # ------------------------------------------------------------------ rendering

    def _verdict(self) -> str:
        counts = [f"{sum(c.status is s for c in self.claims)} {s.value}" for s in Status]
        return ", ".join(text for text in counts if not text.startswith("0 ")) or "no claims"

    def __str__(self) -> str:
        head = f"Certificate of {self.about}" if self.about else "Certificate"
        lines = [f"{head}: {self._verdict()}"]
        for c in self.claims:
            lines.append(f"  {_MARKS[c.status]} {c.kind.name:<11} {c.name}: {c.statement}")
            if c.status is not Status.UNDECIDED:
                source = f"  [{c.source}]" if c.source else ""
                lines.append(f"    observed {c.observed:.3e} {c.relation} {c.bound:.3e}{source}")
        return "\n".join(lines + [f"  {line}" for line in self._footer()])

    def _footer(self) -> list[str]:
        lines = [f"the fit ended because {self.stopped}"] if self.stopped else []
        return lines + ([f"data {self.data_id}"] if self.data_id else [])

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        title = f"Certificate of {self.about}" if self.about else "Certificate"
        # names come from data: no markup is read
        table = Table(title=Text(title, style="table.title"))
        table.title_justify = "left"
        for column in ("", "kind", "claim", "observed", "bound"):
            numeric = column in ("observed", "bound")
            table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric)
        for c in self.claims:
            decided = c.status is not Status.UNDECIDED
            table.add_row(
                f"[{_COLOURS[c.status]}]{_MARKS[c.status]}[/]",
                c.kind.value,
                Text.assemble((c.name, "bold"), f"\n{c.statement}"),
                f"{c.observed:.2e}" if decided else "",
                f"{c.bound:.2e}" if decided else "",
            )
        table.caption = (
            Text("; ".join(self._footer()), style="table.caption") if self._footer() else None
        )
        table.caption_justify = "left"
        return table

    def _repr_html_(self) -> str:
        cell = "text-align:left;padding:2px 8px;vertical-align:top"
        styles = [f"{cell};white-space:nowrap"] * 5
        styles[2] = cell  # only the statement may wrap
        rows = []
        for c in self.claims:
            decided = c.status is not Status.UNDECIDED
            number = html.escape(f"{c.observed:.2e} {c.relation} {c.bound:.2e}") if decided else ""
            mark = f'<b style="color:{_HEX[c.status]}">{_MARKS[c.status]} {c.status.value}</b>'
            what = f"<b>{html.escape(c.name)}</b><br>{html.escape(c.statement)}"
            cells = (mark, c.kind.value, what, f"<code>{number}</code>", html.escape(c.source))
            row = [
                f'<td style="{style}">{text}</td>'
                for style, text in zip(styles, cells, strict=True)
            ]
            rows.append("<tr>" + "".join(row) + "</tr>")
        head = f"Certificate of {html.escape(self.about)}" if self.about else "Certificate"
        foot = html.escape("; ".join(self._footer()))
        return (
            f'<table><caption style="text-align:left"><b>{head}</b>: {self._verdict()}</caption>'
            f"<tbody>{''.join(rows)}</tbody></table><small>{foot}</small>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "about": self.about,
            "data_id": self.data_id,
            "stopped": self.stopped,
            "claims": [claim.to_dict() for claim in self.claims],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Certificate:
        """Inverse of :meth:`to_dict`."""
        return cls(
            claims=tuple(Claim.from_dict(claim) for claim in record["claims"]),
            data_id=str(record.get("data_id", "")),
            stopped=str(record.get("stopped", "")),
            about=str(record.get("about", "")),
        )


class SupportsCertify(Protocol):
    """What :func:`verify` needs of a model."""

    def _recertify(self, X: Any, y: Any, sample_weight: Any) -> Certificate: ...


def verify(
    model: SupportsCertify, X: Any, y: Any = None, *, sample_weight: Any = None
) -> Certificate:
    """Recompute every claim about a fitted model, from the data and the model alone.

    Nothing that the fit recorded about itself is trusted: the claims are evaluated anew in float64,
    including those that were too expensive to decide at fit time, and the data are compared with the
    fingerprint of the data the model was fitted on.

    Parameters
    ----------
    model : estimator
        A fitted surefit estimator, just fitted or loaded from a file.
    X, y, sample_weight : array-like
        The training data.

    Returns
    -------
    Certificate
        With one claim more than at fit time, ``"data"``: these are the data of the fit.

    Examples
    --------
    >>> import surefit
    >>> from surefit.linear_model import Ridge
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.1, 1.9]
    >>> model = Ridge().fit(X, y)
    >>> surefit.verify(model, X, y).ok
    True
    >>> surefit.verify(model, X, [0.0, 1.1, 2.9]).ok
    False
    """
    if not hasattr(model, "_recertify"):
        raise TypeError(
            f"model must be a fitted surefit estimator, got {type(model).__name__}; "
            "only surefit estimators carry claims that can be recomputed."
        )
    return model._recertify(X, y, sample_weight)


def _number_out(value: float) -> float | str:
    """JSON has no NaN or infinity: write them as the strings that ``float`` reads back."""
    return value if math.isfinite(value) else repr(value)
