"""The judgement of one change: caught by recomputation, without effect, still true, or uncaught."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from surefit import Certificate, Status
from tests.tamper.changes import Place, altered, look, places, replaced, spelled, stripped
from tests.tamper.models import Fits, own_verify

__all__ = ["CAUGHT", "SAME", "TRUE", "UNCAUGHT", "Change", "Law", "Verdict", "changes_of"]

CAUGHT, SAME, TRUE, UNCAUGHT = "caught", "without effect", "true by oracle", "uncaught"
# Public methods that change the model, draw at random, write files, or print the parameters.
NOT_ASKED = re.compile(
    "fit|partial_fit|set_|get_|save|verify|sample|sparsify|densify|audit|path|attack|inverse|summary"
)
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*(?:e[-+]?\d+)?|nan|inf)\b")
WITHIN = re.compile(r"\bwithin ([\d.]+(?:e[-+]?\d+)?)")
SHARES = re.compile(r"[\d.]+(?:e[-+]?\d+)? %|; the coefficients are within.*")
NEAR = 1e-9  # predictions that differ by less, relatively, are the same
Oracle = Callable[[Fits, Any, Certificate, set[str]], str]


@dataclass(frozen=True)
class Change:
    """One change: its place, its name, and the changed model (built when asked for)."""

    place: str
    name: str
    build: Callable[[], Any]


@dataclass(frozen=True)
class Verdict:
    """What became of a change; for an uncaught one the claims that still hold, and what is false."""

    outcome: str
    change: Change
    words: str = ""


# ------------------------------------------------------------------------ the changes of a model


def _bare(fits: Fits) -> Any:
    """The model without a recorded certificate, or for a table with one that its sections repeat."""
    return stripped(fits.model) if fits.case.seal is None else fits.model


def changes_of(fits: Fits) -> Iterator[Change]:
    """All changes of one fitted model."""
    model = _bare(fits)
    for place in places(model):
        value = look(model, place)
        for name, other in altered(value, _constraints(model, place)):
            if not _identical(value, other):
                yield Change(spelled(place), name, _builder(model, place, other))
        for whose, twin in fits.others.items():
            try:
                other = look(twin, place)
            except (AttributeError, LookupError, TypeError):
                continue
            if not _identical(value, other):
                yield Change(spelled(place), f"of {whose}", _builder(model, place, other))
    for whose, twin in fits.others.items():
        yield Change(
            "all attributes", f"of {whose}", lambda twin=twin: _with_attributes(model, twin)
        )
    yield from _loose(model)


def _builder(model: Any, place: Place, value: Any) -> Callable[[], Any]:
    return lambda: replaced(model, place, value)


def _constraints(model: Any, place: Place) -> Any:
    """The constraints of a parameter that a place is."""
    owner = look(model, place[:-1])
    return getattr(type(owner), "_parameter_constraints", {}).get(place[-1][1], ())


def _with_attributes(model: Any, twin: Any) -> Any:
    """The model's parameters with the fitted attributes of another fit."""
    mixed = stripped(twin)
    for name, value in model.get_params(deep=False).items():
        vars(mixed)[name] = value
    return mixed


def _loose(model: Any) -> Iterator[Change]:
    """A tolerance of a million, and every fitted array replaced by fives."""
    if "tol" not in model.get_params(deep=False):
        return
    loose = replaced(model, (("attribute", "tol"),), 1e6)
    for place in places(loose):
        value = look(loose, place)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and place[-1][1][-1:] == "_":
            fives = _builder(loose, place, np.full_like(value, 5.0))
            yield Change(spelled(place), "all 5, with tol=1e6", fives)


def _identical(one: Any, other: Any) -> bool:
    """The same value of the same type: no change at all."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype == object:
            return all(_identical(a, b) for a, b in zip(one.ravel(), other.ravel()))
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    if sp.issparse(one):
        return bool(
            one.shape == other.shape and (one != other).nnz == 0 and one.dtype == other.dtype
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_identical, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_identical(one[k], other[k]) for k in one)
    if isinstance(one, BaseEstimator):
        return all(
            name in vars(other) and _identical(value, vars(other)[name])
            for name, value in vars(one).items()
            if name != "certificate_"
        )
    if hasattr(one, "state_dict"):
        a, b = one.state_dict(), other.state_dict()
        return a.keys() == b.keys() and all(bool((a[k] == b[k]).all()) for k in a)
    try:
        return bool(one == other) or bool(one != one and other != other)
    except (TypeError, ValueError, RuntimeError):
        return one is other


# ------------------------------------------------------------------------ the judgement


class Law:
    """The law for one fitted model: the unchanged model's answers and claims, and the oracle."""

    def __init__(self, fits: Fits, oracle: Oracle | None = None) -> None:
        self.fits, self.oracle = fits, oracle
        self.model = _bare(fits)
        self.answers = answers(self.model, fits)
        self.certificate = self._verify(self.model)
        assert not isinstance(self.certificate, str), self.certificate

    def judge(self, change: Change) -> Verdict:
        """The verdict on a change."""
        changed = change.build()
        if self.fits.case.seal is not None:
            changed = self.fits.case.seal(changed)
        certificate = self._verify(changed)
        if isinstance(certificate, str):
            words = certificate
            return Verdict(CAUGHT if "ValueError" in words else UNCAUGHT, change, words)
        if not certificate.ok:
            return Verdict(CAUGHT, change, certificate.failed[0].statement)
        given = answers(changed, self.fits)
        different = [name for name in self.answers if not _alike(self.answers[name], given[name])]
        missing, new = _compared(self.certificate, certificate)
        if certificate.claims and not self._same_parameters(changed):
            missing = []  # another problem, about which other claims are made
        if not different and not missing and not new:
            return Verdict(SAME, change)
        held = {c.name for c in certificate.claims if c.status is Status.HOLDS}
        how = f"differs: {', '.join(different) or 'claims only'}; "
        false = f"the claim {missing[0]!r} is missing" if missing else _broken(self.answers, given)
        if not false and self.oracle is None:
            false = "no oracle"
        if not false and self.oracle is not None:
            asked = held if different else new - self._weaker(changed, certificate)
            false = self.oracle(self.fits, changed, certificate, asked)
        if not false:
            return Verdict(TRUE, change)
        return Verdict(UNCAUGHT, change, f"{false}; {how}holds: {', '.join(sorted(held))}")

    def _same_parameters(self, changed: Any) -> bool:
        return _identical(changed.get_params(deep=False), self.model.get_params(deep=False))

    def _weaker(self, changed: Any, certificate: Certificate) -> set[str]:
        """Claims about the same problem that leave more room than before: as true as before.

        A witness that was changed makes a bound wider; the model and its parameters are the same.
        """
        if not self._same_parameters(changed):
            return set()
        before = {claim.name: claim.statement for claim in self.certificate.claims}
        return {
            claim.name
            for claim in certificate.claims
            if claim.name in before and _is_wider(before[claim.name], claim.statement)
        }

    def _verify(self, model: Any) -> Certificate | str:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return own_verify(model, self.fits.rows)
            except Exception as error:
                return f"{type(error).__name__}: {error}"


def answers(model: Any, fits: Fits) -> dict[str, Any]:
    """What a user gets from a model: every public method of the rows, on known and on unseen ones."""
    found = {}
    for name, takes_y in _methods(type(model)):
        for kind, X in (("known", fits.rows.X), ("unseen", fits.rows.unseen)):
            if takes_y and kind == "unseen":
                continue
            arguments = (X, fits.rows.y) if takes_y else (X,)
            extra = fits.rows.extra if kind == "known" else {}
            found[f"{name} of {kind} rows"] = _answer(model, name, arguments, extra)
    return found


def _answer(model: Any, name: str, arguments: tuple[Any, ...], extra: dict[str, Any]) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            method = getattr(model, name)
            known = inspect.signature(method).parameters
            return method(*arguments, **{k: v for k, v in extra.items() if k in known})
        except Exception as error:
            return f"raises {type(error).__name__}"


def _methods(cls: type) -> list[tuple[str, bool]]:
    """Public methods that need rows only, or rows and targets."""
    found = []
    for name, method in inspect.getmembers(cls, callable):
        if name.startswith("_") or NOT_ASKED.match(name):
            continue
        try:
            given = list(inspect.signature(method).parameters.values())[1:]
        except (TypeError, ValueError):
            continue
        needed = [p.name for p in given if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
        first = given[0].name if given else ""
        rows = first in ("X", "source", "table")
        if needed == ["X", "y"] or (rows and needed in ([first], [])):
            takes_y = "y" in needed or (len(given) > 1 and given[1].name == "y")
            found.append((name, takes_y))
    return found


def _alike(one: Any, other: Any) -> bool:
    """Equal to rounding, whatever the container."""
    if isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and one == other
    if isinstance(one, list | tuple) or isinstance(other, list | tuple):
        same = isinstance(other, list | tuple) and isinstance(one, list | tuple)
        return same and len(one) == len(other) and all(map(_alike, one, other))
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(other) and all(
            map(_alike, vars(one).values(), vars(other).values())
        )
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(_alike(one[key], other[key]) for key in one)
        )
    a, b = (np.asarray(v.toarray() if sp.issparse(v) else v) for v in (one, other))
    if a.shape != b.shape:
        return False
    if a.dtype == object and a.ndim:
        return all(map(_alike, a.ravel().tolist(), b.ravel().tolist()))
    if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        size = float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0))
        unequal = a.dtype.kind == "f" and not np.array_equal(np.isfinite(a), np.isfinite(b))
        return not unequal and bool(np.allclose(a, b, NEAR, NEAR * size, equal_nan=True))


def _broken(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The first answer that a user no longer gets; the empty string if there is none."""
    for name, answer in after.items():
        asked = name.partition(" ")[0]
        if asked not in ("predict", "decision_function", "transform", "score"):
            continue
        if isinstance(answer, str) and not isinstance(before[name], str):
            return f"{asked} {answer}"
    return ""


def _compared(one: Certificate, other: Certificate) -> tuple[list[str], set[str]]:
    """The names of claims that are missing, and of those that hold and say something new.

    A claim may be withdrawn (undecided, uninformative), but not be missing: whoever deletes an attribute
    would delete what is claimed about it.
    """
    before = {_plain(claim.name): claim for claim in one.claims}
    after = {_plain(claim.name): claim for claim in other.claims}
    new = set()
    for name, claim in after.items():
        if claim.status is not Status.HOLDS:
            continue
        known = before.get(name)
        held = known is not None and known.status is Status.HOLDS
        if known is None or not held or not _same_words(known.statement, claim.statement):
            new.add(claim.name)
    return [name for name in before if name not in after], new


def _plain(name: str) -> str:
    """A name whose labels are spelled alike as integers and as floats."""
    return re.sub(r"(\d)\.0\b", r"\1", name)


def _is_wider(one: str, other: str) -> bool:
    """The same sentence with a larger first number after "within"; shares in percent are not compared."""
    before, after = WITHIN.search(one), WITHIN.search(other)
    if before is None or after is None or float(after[1]) < float(before[1]):
        return False
    return _same_words(*(SHARES.sub("", WITHIN.sub("", words, count=1)) for words in (one, other)))


def _same_words(one: str, other: str) -> bool:
    """The same sentence with the same numbers, to rounding."""
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    return all(_near(a, b) for a, b in zip(_numbers(one), _numbers(other), strict=True))


def _numbers(words: str) -> list[float]:
    return [float(text.replace(",", "")) for text in NUMBER.findall(words)]


def _near(a: float, b: float) -> bool:
    """Equal to what is printed, or both nothing but rounding."""
    if a != a or b != b:
        return a != a and b != b
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b)) or max(abs(a), abs(b)) < 1e-9
