r"""The fairness audit: three criteria with exact simultaneous intervals, from counts.

:func:`audit` reads rows once, to count (group, label, decision); every number, limit and sentence follows
from the counts (:mod:`surefit.fair.criteria`). All limits hold at once with probability :math:`1-\delta`, for
any number of rows; with a score, half of :math:`\delta` goes to the calibration table. Groups with fewer than
``min_rows`` rows are named and left out: a gap is over the groups that could be measured.

The default of 30: a Clopper-Pearson interval at 95 % around 1/2 has length 0.37 on 30 rows and 0.53 on 13, so
that below 30 a rate is hardly bounded at all, and such a group would set the upper limit of every gap.

The rows must be fresh: drawn independently from the population the statement is about, and used by no fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..certificate import Certificate, Claim
from ._audit_claims import TOLERANCE, audit_claims, check_tolerance
from ._calibration import calibration_table, check_score
from ._groups import as_codes, columns_of, crossed, label_column, shown, too_many
from ._tables import forced_rates, group_gaps, group_rows, overall_row
from .criteria import RATES, STATED, differences, group_rates

__all__ = ["Audit", "audit"]

VERSION = 1
MOST = 1000  # groups of an attribute: more are no groups, and would say nothing


@dataclass(frozen=True)
class Audit:
    """What an audit found. Every field but ``claims`` is plain JSON data, with the keys below.

    Attributes
    ----------
    n : int
        Rows.
    delta, min_rows : float, int
        As they were given.
    positive : str
        The label that counts as 1.
    overall : dict
        ``counts`` and ``rates`` of all rows, as in ``table``.
    table : list of dict
        One for each group: ``attribute``, ``group``, ``n``, ``measured`` (bool), ``counts`` (``tp``, ``fp``,
        ``fn``, ``tn``), and ``rates``: name -> {``value`` (None without rows), ``n``, ``low``, ``high``,
        ``hoeffding``}. The rates are ``selection, tpr, fpr, ppv, npv, error, base_rate, fnr, tnr``.
    gaps : dict
        attribute -> criterion -> {``observed`` (None when not measured), ``low``, ``high``, ``ratio``,
        ``groups`` (highest and lowest), ``hoeffding``, ``over`` (the groups compared), ``why``}, and ``each``
        (rate -> how many groups) where two rates could not be measured in the same ones. The criteria are
        ``independence, separation, sufficiency`` and each rate.
    abstained : list of dict
        ``attribute``, ``group``, ``n``, ``rate`` (None for all of them) and ``why``.
    calibration : dict or None
        ``bins``, ``delta``, ``intervals``, ``attributes``: attribute -> {``observed, low, high, groups,
        refuted, cells``}; a cell has ``group, bin, n, mean_score, share, low, high``.
    incompatibility : dict
        attribute -> what :func:`incompatibility` returns, for this data's numbers.
    proxies : dict or None
        attribute -> what :func:`proxies` returns.
    claims : tuple of Claim
    """

    n: int
    delta: float
    min_rows: int
    positive: str
    overall: dict[str, Any]
    table: list[dict[str, Any]]
    gaps: dict[str, dict[str, Any]]
    abstained: list[dict[str, Any]]
    calibration: dict[str, Any] | None
    incompatibility: dict[str, Any]
    proxies: dict[str, Any] | None = None
    claims: tuple[Claim, ...] = field(default=())

    @property
    def certificate(self) -> Certificate:
        """The claims as a certificate."""
        return Certificate(self.claims, about="the fairness audit")

    @property
    def criteria(self) -> dict[str, str]:
        """The verdict on each criterion and attribute: "met", "violated" or "not decided"."""
        return {claim.name: claim.verdict for claim in self.claims if claim.verdict}

    @property
    def violated(self) -> tuple[Claim, ...]:
        """The claims whose gap exceeds its tolerance, beyond chance."""
        return self.certificate.violated

    @property
    def ok(self) -> bool:
        """True when no claim fails and no criterion is violated. It may still be that none is decided."""
        return self.certificate.ok and not self.violated

    @property
    def attributes(self) -> list[str]:
        """The sensitive attributes, crossed ones last."""
        return list(self.gaps)

    def pairs(self, rate: str = "selection", attribute: str | None = None) -> list[dict[str, Any]]:
        """The difference of a rate between any two measured groups, with its limits."""
        if rate not in RATES:
            raise ValueError(f"rate must be one of {', '.join(RATES)}, got {rate!r}.")
        attribute = self.attributes[0] if attribute is None else attribute
        if attribute not in self.gaps:
            raise ValueError(f"attribute must be one of {self.attributes}, got {attribute!r}.")
        over = self.gaps[attribute][rate]["over"]
        rows = [r for r in self.table if r["attribute"] == attribute and r["group"] in over]
        parts = {
            part: np.array([row["rates"][rate][part] for row in rows])
            for part in ("value", "n", "low", "high")
        }
        names = [row["group"] for row in rows]
        return differences(parts, names, range(len(rows)), self.delta)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, with the keys of the attributes, ``version`` and ``ok``."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain["claims"] = [claim.to_dict() for claim in self.claims]
        return {"version": VERSION, "ok": self.ok, **plain}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Audit:
        """Inverse of :meth:`to_dict`."""
        if record.get("version") != VERSION:
            raise ValueError(
                f"the record has version {record.get('version')!r}, this surefit reads {VERSION}."
            )
        values = {name: record[name] for name in cls.__dataclass_fields__}
        values["claims"] = tuple(Claim.from_dict(claim) for claim in record["claims"])
        return cls(**values)

    def __str__(self) -> str:
        from ._render import as_text

        return as_text(self)

    def __rich__(self) -> Any:
        from ._render import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        from ._render import as_html

        return as_html(self)

    def plot(self, ax: Any = None, *, rate: str = "selection", attribute: str | None = None) -> Any:
        """The rate of each group with its interval, on matplotlib axes, which are returned."""
        from ._render import plot_rates

        return plot_rates(self, ax, rate, attribute)


def audit(
    y: Any,
    decision: Any,
    score: Any = None,
    *,
    sensitive: Any,
    positive: Any = None,
    delta: float = 0.05,
    min_rows: int = 30,
    tolerance: float | Mapping[str, float] = TOLERANCE,
    features: Any = None,
    feature_names: Any = None,
) -> Audit:
    """Audit decisions against the three criteria, with exact finite-sample simultaneous intervals.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    decision : array-like of shape (n,)
        The model's decisions, in the same labels.
    score : array-like of shape (n,), optional
        P(positive) in [0, 1]: adds the calibration table.
    sensitive : array-like, 2-d array, data frame or dict of name -> column
        Several columns are audited one by one and crossed.
    positive : label, optional
        The label that counts as 1; the last in sort order by default. With more than two labels it is
        needed, and stands against the rest.
    delta : float, default=0.05
        Probability that any of the intervals is wrong.
    min_rows : int, default=30
        Groups (and denominators) with fewer rows are abstained on, and named.
    tolerance : float or dict, default=0.05
        Largest gap that is acceptable: one number, or numbers by criterion ("independence", "separation",
        "sufficiency", "error", "calibration"; the others keep the default). Each criterion is then *met*,
        *violated* or *not decided*. With 1 a criterion is measured and not judged.
    features : array of shape (n, p), optional
        Looks for proxies of each sensitive column among these (:func:`proxies`).
    feature_names : sequence of str, optional
        Names of the features.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = np.where(rng.random(4000) < 0.4, "f", "m")
    >>> y = rng.random(4000) < np.where(sex == "f", 0.3, 0.5)
    >>> decision = np.where(rng.random(4000) < 0.8, y, ~y)
    >>> found = audit(y, decision, sensitive={"sex": sex}, tolerance=0.02)
    >>> gap = found.gaps["sex"]["independence"]
    >>> round(gap["observed"], 3), gap["low"] > 0.04, gap["groups"]
    (0.113, True, ['m', 'f'])
    >>> found.criteria["independence (sex)"], found.ok
    ('violated', False)
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}.")
    if not (isinstance(min_rows, int | np.integer) and min_rows >= 1):
        raise ValueError(f"min_rows must be a whole number of at least 1, got {min_rows!r}.")
    allowed = check_tolerance(tolerance)
    if isinstance(tolerance, Mapping) and "calibration" in tolerance and score is None:
        raise ValueError("tolerance has 'calibration', which needs score=...: pass the scores.")
    truth, decided, label = _labels(y, decision, positive)
    n = len(truth)
    columns = columns_of(sensitive)
    groups = {}
    for name, column in columns.items():
        groups[name] = as_codes(column, f"sensitive[{name!r}]")
        if len(groups[name][1]) != n:
            raise ValueError(
                f"sensitive[{name!r}] has {len(groups[name][1])} rows, y has {n}: give one value for "
                "each row."
            )
        if len(groups[name][0]) > MOST:
            raise ValueError(
                f"sensitive[{name!r}] has {len(groups[name][0])} different values, of at most {MOST}: bin it "
                "first, for instance with numpy.digitize."
            )
    table: list[dict[str, Any]] = []
    gaps: dict[str, dict[str, Any]] = {}
    abstained: list[dict[str, Any]] = []
    if len(groups) > 1:
        cross, cells = " x ".join(groups), crossed(list(groups.values()))
        if len(cells[0]) <= MOST:
            groups[cross] = cells
        else:
            why = f"{len(cells[0])} cells, more than {MOST}: too many to cross"
            abstained.append({"attribute": cross, "group": "all", "n": n, "rate": None, "why": why})
    cell = 2 * truth + decided
    counts = {
        name: np.bincount(4 * codes + cell, minlength=4 * len(names)).reshape(-1, 2, 2)
        for name, (names, codes) in groups.items()
    }
    measured = {
        name: np.flatnonzero(c.sum(axis=(1, 2)) >= min_rows).tolist() for name, c in counts.items()
    }
    stated = STATED * (1 + sum(len(places) for places in measured.values()))
    share = delta if score is None else delta / 2.0
    overall = overall_row(np.bincount(cell, minlength=4).reshape(1, 2, 2), share, stated)
    for name, (names, _) in groups.items():
        rates = group_rates(counts[name], share, stated)
        table += group_rows(name, names, counts[name], rates, measured[name])
        gaps[name], left_out = group_gaps(name, names, rates, measured[name], min_rows, share)
        abstained += left_out
    calibration = None
    if score is not None:
        scores = check_score(score, n)
        calibration = calibration_table(scores, truth, groups, measured, delta / 2.0, min_rows)
    forced = forced_rates(overall, table, gaps)
    found = None
    if features is not None:
        from .proxies import proxies

        found = {
            name: proxies(features, column, feature_names=feature_names)
            for name, column in columns.items()
        }  # fmt: skip
    return Audit(
        n=n, delta=float(delta), min_rows=int(min_rows), positive=str(label), overall=overall, table=table,
        gaps=gaps, abstained=abstained, calibration=calibration, incompatibility=forced, proxies=found,
        claims=audit_claims(gaps, calibration, forced, delta, allowed, shown(label)),
    )  # fmt: skip


def _labels(y: Any, decision: Any, positive: Any) -> tuple[Any, Any, Any]:
    """Label and decision of each row as 0 or 1, and the positive label."""
    truth, labels = label_column(y, "y")
    decided, decisions = label_column(decision, "decision")
    if len(decided) != len(truth):
        raise ValueError(f"decision has {len(decided)} rows, y has {len(truth)}: they must match.")
    strange = [d for d in decisions if d not in labels and d != positive]
    if strange and len(labels) > 1:
        raise ValueError(
            f"decision has the label {strange[0]!r}, y has {labels}: pass decisions in the labels of y."
        )
    every = [*labels, *strange]  # where y has one label, decisions may have the other
    if positive is None:
        if len(every) > 2:
            raise too_many("y" if len(labels) > 2 else "decision", every)
        positive = max(every)
    elif positive not in [*every, *decisions]:
        raise ValueError(
            f"positive={positive!r} occurs neither in y (labels {labels}) nor in decision: give a label of y."
        )
    return (truth == positive).astype(np.int64), (decided == positive).astype(np.int64), positive
