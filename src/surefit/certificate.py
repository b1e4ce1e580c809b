"""Certificates: claims about a fit that anyone can recompute.

A :class:`Claim` is one checked sentence with its number: it *holds* when the observed quantity is at
most its bound. A :class:`Certificate` is the list of claims about one fit, together with the
fingerprint of the data they are about. :func:`verify` recomputes them for anyone, and judges them by
the tolerance of whoever asks, not by that of the model.

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
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "DEFAULT_TOLERANCE",
    "Certificate",
    "CertificateError",
    "CertificateWarning",
    "Claim",
    "Kind",
    "Status",
    "verify",
]


DEFAULT_TOLERANCE = 1e-3  # of `verify`: a thousandth of the objective of the constant model
ROUNDING_LIMIT = 1e-3  # rounding excuses nothing larger than this, relative to the claim's scale


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
    UNDECIDED = "undecided"  # not shown either way; the statement says what would decide it
    UNINFORMATIVE = "uninformative"  # true, and nearly as wide as what is true of any model

    @property
    def mark(self) -> str:
        """The sign that stands for it in print."""
        return MARKS[self.value]


# The words that a claim is shown with: its status, or the verdict on its criterion.
MARKS = {
    "holds": "✓",
    "fails": "✗",
    "undecided": "?",
    "uninformative": "○",
    "met": "✓",
    "violated": "▲",
    "not decided": "?",
}
COLOURS = {
    "holds": "green",
    "fails": "red",
    "undecided": "yellow",
    "uninformative": "bright_black",
    "met": "green",
    "violated": "red",
    "not decided": "yellow",
}
HEX = {"green": "#1a7f37", "red": "#b42318", "yellow": "#9a6700", "bright_black": "#57606a"}
_KIND_ORDER = {kind: rank for rank, kind in enumerate(Kind)}


@dataclass(frozen=True, eq=False)
class Claim:
    """One sentence with its number; it holds iff ``observed <= bound``.

    Build it with :meth:`check`, :meth:`interval` or :meth:`criterion`, which decide the status, or with
    :meth:`undecided` or :meth:`uninformative`.

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
        HOLDS, FAILS, UNDECIDED or UNINFORMATIVE.
    source : str
        The specification item behind it, such as ``"SVM-7"``.
    estimate, low, high : float or None
        Of a claim that states an interval: the measured value and the ends of the interval.
    tolerance : float or None
        Of an interval that a criterion is about: the criterion asks for values of at most this. The
        interval can hold while the criterion is violated; see :attr:`verdict`.
    """

    name: str
    statement: str
    kind: Kind
    observed: float
    bound: float
    status: Status
    source: str = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    tolerance: float | None = None

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
        largest_floor: float = math.inf,
    ) -> Claim:
        """Decide a claim: it holds when ``observed <= bound``.

        A NaN anywhere fails, and so does an infinite observation: nothing was shown. Under an infinite
        bound every model passes, so the claim is uninformative. ``floor`` is what rounding alone can do
        to the observation: one between the bound and the floor holds "to rounding", unless the floor is above
        ``largest_floor``; the claim is then undecided.
        """
        observed, bound, floor = float(observed), float(bound), float(floor)
        claim = cls(name, statement, kind, observed, bound, Status.FAILS, source)
        if not math.isfinite(observed) or any(map(math.isnan, (bound, floor, largest_floor))):
            return claim
        if bound == math.inf:
            return replace(claim, status=Status.UNINFORMATIVE)
        if observed <= bound:
            return replace(claim, status=Status.HOLDS)
        if observed <= floor < math.inf:
            if floor > largest_floor:
                statement = f"{statement}; rounding alone can cause {floor:.1e}: nothing is shown"
                return replace(claim, statement=statement, status=Status.UNDECIDED)
            statement = f"{statement} (to rounding: below the floor {floor:.1e})"
            return replace(claim, statement=statement, bound=floor, status=Status.HOLDS)
        return claim

    @classmethod
    def undecided(cls, name: str, why: str, kind: Kind, source: str = "") -> Claim:
        """A claim that was not checked, with the reason and what would decide it."""
        return cls(name, why, kind, math.nan, math.nan, Status.UNDECIDED, source)

    @classmethod
    def uninformative(
        cls,
        name: str,
        why: str,
        kind: Kind,
        observed: float = math.nan,
        bound: float = math.nan,
        source: str = "",
    ) -> Claim:
        """A true sentence that says next to nothing, and what would make it say something."""
        return cls(name, why, kind, float(observed), float(bound), Status.UNINFORMATIVE, source)

    @classmethod
    def interval(
        cls,
        name: str,
        statement: str,
        kind: Kind,
        estimate: float,
        low: float,
        high: float,
        source: str = "",
        *,
        limits: tuple[float, float] = (0.0, 1.0),
        widest: float = 1.0,
        tolerance: float | None = None,
    ) -> Claim:
        """The claim that a quantity lies between ``low`` and ``high``.

        ``limits`` are the ends of its range. An interval wider than ``widest`` times the range is
        uninformative. ``observed`` is the length of the interval and ``bound`` the largest informative one.
        With a ``tolerance`` the claim also has a :attr:`verdict`: whether the quantity is at most that.
        """
        estimate, low, high = float(estimate), float(low), float(high)
        width, bound = high - low, widest * (limits[1] - limits[0])
        status = Status.HOLDS if width < bound else Status.UNINFORMATIVE
        if not (math.isfinite(estimate) and low <= estimate <= high and math.isfinite(width)):
            status = Status.FAILS
        return cls(
            name, statement, kind, width, bound, status, source, estimate, low, high, tolerance
        )

    @classmethod
    def criterion(
        cls,
        name: str,
        statement: str,
        kind: Kind,
        estimate: float,
        low: float,
        high: float,
        tolerance: float,
        source: str = "",
    ) -> Claim:
        """The claim that a quantity with the interval ``[low, high]`` is at most ``tolerance``.

        It is *met* (HOLDS) when the whole interval is, *violated* (FAILS) when none of it is, and not
        decided when the tolerance lies inside. ``observed`` is the end that decides.
        """
        estimate, low, high = float(estimate), float(low), float(high)
        tolerance = float(tolerance)
        sound = math.isfinite(estimate) and low <= estimate <= high and math.isfinite(tolerance)
        status = Status.HOLDS if high <= tolerance else Status.UNDECIDED
        if not sound or low > tolerance:
            status = Status.FAILS
        observed = low if status is Status.FAILS else high
        return cls(name, statement, kind, observed, tolerance, status, source, estimate, low, high)

    @property
    def verdict(self) -> str:
        """Whether the criterion of an interval is "met", "violated" or "not decided"; "" without one.

        It is met when the whole interval lies within the tolerance, and violated when none of it does.
        """
        if self.tolerance is None or self.low is None or self.high is None:
            return ""
        if self.high <= self.tolerance:
            return "met"
        return "violated" if self.low > self.tolerance else "not decided"

    @property
    def word(self) -> str:
        """The word that the claim is shown with: its status, or the verdict on its criterion."""
        if self.status is not Status.FAILS and self.verdict == "violated":
            return "violated"
        return self.status.value if self.status is not Status.HOLDS else self.verdict or "holds"

    @property
    def mark(self) -> str:
        """The sign that the claim is shown with."""
        return MARKS[self.word]

    @property
    def colour(self) -> str:
        """The colour that the claim is shown with on a terminal."""
        return COLOURS[self.word]

    @property
    def relation(self) -> str:
        """How the observed number compares with the bound, for printing."""
        return "<=" if self.observed <= self.bound else ">"

    @property
    def numbers(self) -> str:
        """The numbers behind the sentence: the interval, or the observation and its bound."""
        if self.low is not None and self.high is not None and self.estimate is not None:
            interval = f"{self.estimate:.3g} in [{self.low:.3g}, {self.high:.3g}]"
            return f"{interval}, tolerance {self.tolerance:g}" if self.verdict else interval
        if math.isnan(self.observed) and math.isnan(self.bound):
            return ""
        return f"{self.observed:.2e} {self.relation} {self.bound:.2e}"

    def __eq__(self, other: object) -> bool:
        """Equal fields, an undecided claim's NaN counting as equal to itself."""
        return isinstance(other, Claim) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.to_dict().values()))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; NaN and infinities become strings. An interval's fields stand last."""
        record: dict[str, Any] = {
            "name": self.name,
            "statement": self.statement,
            "kind": self.kind.value,
            "observed": _number_out(self.observed),
            "bound": _number_out(self.bound),
            "status": self.status.value,
            "source": self.source,
        }
        ends = {"estimate": self.estimate, "low": self.low, "high": self.high}
        ends["tolerance"] = self.tolerance
        record |= {key: _number_out(v) for key, v in ends.items() if v is not None}
        return record | ({"verdict": self.verdict} if self.verdict else {})

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Claim:
        """Inverse of :meth:`to_dict`."""
        keys = ("estimate", "low", "high", "tolerance")
        ends = {key: float(record[key]) for key in keys if key in record}
        return cls(
            name=str(record["name"]),
            statement=str(record["statement"]),
            kind=Kind(record["kind"]),
            observed=float(record["observed"]),
            bound=float(record["bound"]),
            status=Status(record["status"]),
            source=str(record.get("source", "")),
            **ends,
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
    notes : tuple of str
        What a reader should know besides, such as whose tolerance the claims were judged by.
    """

    claims: tuple[Claim, ...]
    data_id: str = ""
    stopped: str = ""
    about: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.claims, key=lambda claim: _KIND_ORDER[claim.kind]))
        object.__setattr__(self, "claims", ordered)

    @property
    def ok(self) -> bool:
        """True when no claim fails. An undecided claim does not fail; it says what is missing."""
        return not self.failed

    @property
    def proved(self) -> bool:
        """True when no claim fails and the fit is shown to be optimal (or exact), to the tolerance.

        Every claim of optimality must hold: none may be undecided or uninformative. A fit with claims
        of first order only (STATIONARY), such as k-means or a network, is never proved.
        """
        if not self.ok:
            return False
        optimal = [claim for claim in self.claims if claim.kind is Kind.OPTIMAL]
        if optimal:
            return all(claim.status is Status.HOLDS for claim in optimal)
        exact = [c for c in self.claims if c.kind is Kind.EXACT and c.name != "data"]
        local = any(claim.kind is Kind.STATIONARY for claim in self.claims)
        return not local and any(claim.status is Status.HOLDS for claim in exact)

    @property
    def failed(self) -> tuple[Claim, ...]:
        """The claims that do not hold."""
        return tuple(claim for claim in self.claims if claim.status is Status.FAILS)

    @property
    def violated(self) -> tuple[Claim, ...]:
        """The claims whose criterion is violated: they are true, and say that a tolerance is exceeded."""
        return tuple(claim for claim in self.claims if claim.word == "violated")

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
            f"  {c.name}: {c.statement} (observed {c.observed:.3g}, needed <= {c.bound:.3g})."
            for c in self.failed
        ]
        if self.stopped:
            lines.append(f"  The fit ended because {self.stopped}.")
        return "\n".join(lines)

    # ------------------------------------------------------------------ rendering

    def _verdict(self) -> str:
        sound = [c for c in self.claims if c.word != "violated"]
        counts = [f"{sum(c.status is s for c in sound)} {s.value}" for s in Status]
        counts += [f"{len(self.violated)} violated"]
        return ", ".join(text for text in counts if not text.startswith("0 ")) or "no claims"

    def __str__(self) -> str:
        head = f"Certificate of {self.about}" if self.about else "Certificate"
        lines = [f"{head}: {self._verdict()}"]
        for c in self.claims:
            lines.append(f"  {c.mark} {c.kind.name:<11} {c.name}: {c.statement}")
            if c.numbers:
                label = "observed " if c.estimate is None else "estimate "
                lines.append(f"    {label}{c.numbers}")
        return "\n".join(lines + [f"  {line}" for line in self._footer()])

    def _footer(self) -> list[str]:
        lines = [f"the fit ended because {self.stopped}"] if self.stopped else []
        lines += self.notes
        return lines + ([f"data {self.data_id}"] if self.data_id else [])

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        title = f"Certificate of {self.about}" if self.about else "Certificate"
        # names come from data: no markup is read
        table = Table(title=Text(title, style="table.title"))
        table.title_justify = "left"
        for column in ("", "kind", "claim", "numbers"):
            numeric = column == "numbers"
            table.add_column(column, justify="right" if numeric else "left", no_wrap=numeric)
        for c in self.claims:
            table.add_row(
                Text(c.mark, style=c.colour),
                c.kind.value,
                Text.assemble((c.name, "bold"), f"\n{c.statement}"),
                Text(c.numbers),
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
            number = html.escape(c.numbers)
            mark = f'<b style="color:{HEX[c.colour]}">{c.mark} {c.word}</b>'
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
            "notes": list(self.notes),
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
            notes=tuple(str(note) for note in record.get("notes", ())),
        )


class SupportsCertify(Protocol):
    """What :func:`verify` needs of a model."""

    def _recertify(self, X: Any, y: Any, sample_weight: Any, tol: float) -> Certificate: ...


def verify(
    model: SupportsCertify,
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    tol: float = DEFAULT_TOLERANCE,
) -> Certificate:
    """Recompute every claim about a fitted model, from the data and the model alone.

    Nothing that the fit recorded about itself is trusted: the claims are evaluated anew in float64,
    including those that were too expensive to decide at fit time, and the data are compared with the
    fingerprint of the data the model was fitted on. Attributes that are not finite, of a dtype that surefit
    does not store, or inconsistent with each other are a failed claim named ``"attributes"``.

    Parameters
    ----------
    model : estimator
        A fitted surefit estimator, just fitted or loaded from a file.
    X, y, sample_weight : array-like
        The training data.
    tol : float, default=1e-3
        The verifier's tolerance, relative to the scale of each claim (for a duality gap: the objective
        of the constant model). The model's own ``tol`` is not consulted; where it is looser, a
        note says so.

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
    tol = float(tol)
    if not 0.0 <= tol < math.inf:
        raise ValueError(f"tol must be a finite number that is not negative, got {tol!r}.")
    return model._recertify(X, y, sample_weight, tol)


def _number_out(value: float) -> float | str:
    """JSON has no NaN or infinity: write them as the strings that ``float`` reads back."""
    return value if math.isfinite(value) else repr(value)
