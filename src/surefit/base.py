"""What every surefit estimator is: a scikit-learn estimator whose fit leaves a certificate.

A subclass implements ``fit`` as scikit-learn asks, ends it with ``return self._seal(...)``, and adds one
method, ``_certify(X, y, sample_weight, full, tol)``, which returns the claims. That method reads the data,
the public fitted attributes and at most an untrusted witness; it uses nothing of the solver. ``tol`` is the
tolerance of whoever judges: the estimator's own at the end of a fit, the verifier's in `surefit.verify`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._attributes import (
    UNUSABLE,
    attributes_claim,
    invalid_attributes,
    invalid_classes,
    invalid_counts,
    invalid_intercept,
    invalid_parameters,
)
from .certificate import DEFAULT_TOLERANCE, Certificate, CertificateWarning, Claim, Kind, Status
from .fingerprint import fingerprint
from .inputs import is_native, validate_native

__all__ = ["ANYWHERE", "SPREAD", "Certified", "check_weights", "scale_error"]

SPARSE_FORMATS = ("csr", "csc", "coo")
ANYWHERE = frozenset(
    {"dense", "sparse", "torch", "blocks"}
)  # kinds of X that every operation is there for
SPREAD = ANYWHERE | {"ranks"}  # the same, for fits that add up over ranks


class Certified(BaseEstimator, ABC):
    """Mixin: ``certificate_``, re-certification for :func:`surefit.verify`, ``save``.

    Every estimator has a keyword-only parameter ``certify``: ``True`` decides the claims that cost at
    most one prediction, one adjoint product and one fingerprint; ``"full"`` decides all of them;
    ``False`` skips them.
    """

    paradigm: ClassVar[str] = "supervised"
    certify: bool | str
    certificate_: Certificate
    # fitted attributes that may hold an infinity or a NaN, each with the reason
    _may_be_infinite: ClassVar[dict[str, str]] = {}
    _may_be_nan: ClassVar[dict[str, str]] = {}

    _certify_constraint: ClassVar[list[Any]] = ["boolean", StrOptions({"full"})]

    def _accepts(self) -> frozenset[str]:
        """The kinds of X that this estimator takes, with its present parameters."""
        return frozenset({"dense", "sparse"})

    @abstractmethod
    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        """The claims about this fit, from the data and the public fitted attributes alone."""

    @abstractmethod
    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        """Validated ``X, y, sample_weight``, the same at fit and at verification."""

    def _seal(self, X: Any, y: Any, sample_weight: Any, stopped: str = "") -> Any:
        """End of every fit: certify as the ``certify`` parameter asks, and warn of a failed claim."""
        if self.certify is False:
            self.__dict__.pop("certificate_", None)
            return self
        full = self.certify == "full"
        claims = self._certify(X, y, sample_weight, full=full, tol=self._own_tolerance())
        self.certificate_ = Certificate(
            claims=tuple(claims),
            data_id=self._data_id(X, y, sample_weight),
            stopped=stopped,
            about=type(self).__name__,
        )
        if not self.certificate_.ok:
            message = self.certificate_.failure_message() + "\n  " + self._remedy()
            warnings.warn(message, CertificateWarning, stacklevel=4)  # past fit and its wrapper
        return self

    def _own_tolerance(self) -> float:
        """The tolerance that a fit judges itself by: its ``tol``, where it has one."""
        tol = getattr(self, "tol", None)
        return float(tol) if isinstance(tol, Real) else DEFAULT_TOLERANCE

    def _data_id(self, X: Any, y: Any, sample_weight: Any) -> str:
        """The fingerprint of validated training data."""
        return fingerprint(X, y, sample_weight)

    def _remedy(self) -> str:
        """What to try when a claim fails; part of the warning."""
        return (
            "Objective did not converge. You might want to increase the number of iterations "
            "(max_iter), raise tol, or scale the features (for instance with StandardScaler)."
        )

    def _recertify(
        self, X: Any, y: Any, sample_weight: Any, tol: float = DEFAULT_TOLERANCE
    ) -> Certificate:
        """All claims again, at the verifier's tolerance: used by :func:`surefit.verify`."""
        check_is_fitted(self)
        notes = tuple(self._notes(tol))
        try:
            rows = self._validate_training_data(X, y, sample_weight, reset=False)
        except UNUSABLE:  # of the data, or of attributes that no longer fit them
            found = next(Certified._inconsistencies(self, X, y, sample_weight), None)
            if found is None:
                raise
            return Certificate((attributes_claim(found),), "", "", type(self).__name__, notes)
        X, y, sample_weight = rows
        claims = self._claims_again(X, y, sample_weight, tol)
        try:
            data_id = self._data_id(X, y, sample_weight)
        except UNUSABLE:  # of attributes that belong to the data, such as groups
            if all(claim.status is not Status.FAILS for claim in claims):
                raise
            return Certificate(tuple(claims), "", "", type(self).__name__, notes)
        recorded = getattr(self, "certificate_", None)
        if recorded is not None and recorded.data_id:
            same = recorded.data_id == data_id
            words = "the data of the fit" if same else "not the data of the fit"
            statement = f"these are {words} (fingerprint {data_id})"
            claims.append(Claim.check("data", statement, Kind.EXACT, float(not same), 0.0, "DAT-1"))
        stopped = recorded.stopped if recorded is not None else ""
        return Certificate(tuple(claims), data_id, stopped, type(self).__name__, notes)

    def _claims_again(self, X: Any, y: Any, sample_weight: Any, tol: float) -> list[Claim]:
        """The claims, or one that fails where the attributes are not those of any fit."""
        try:
            found = next(self._inconsistencies(X, y, sample_weight), None)
            if found is not None:
                return [attributes_claim(found)]
            return self._certify(X, y, sample_weight, full=True, tol=tol)
        except UNUSABLE as error:
            words = f"the claims cannot be computed from them ({type(error).__name__}: {error})"
            return [attributes_claim(words)]

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        """Sentences about parameters and attributes that no fit leaves; the first one counts.

        A subclass adds its own after these: what its public attributes must have in common with
        each other, with the data, and with what ``predict`` does.
        """
        yield from invalid_parameters(self)
        yield from invalid_attributes(self)
        yield from invalid_counts(self)
        yield from invalid_intercept(self)
        yield from invalid_classes(self, y)

    def _notes(self, tol: float) -> Iterator[str]:
        """What a reader of a verification should know besides its claims."""
        own = self._own_tolerance()
        note = f"judged at the verifier's tolerance {tol:g}"
        yield f"{note}; the model's own is looser, {own:g}" if own > tol else note

    def save(self, path: Any) -> None:
        """Write this estimator to a ``.surefit`` file; see :func:`surefit.save`."""
        from .io import save

        save(self, path)

    def _validate(self, X: Any, y: Any, sample_weight: Any, *, reset: bool, **checks: Any) -> Any:
        """:func:`sklearn.utils.validation.validate_data` plus non-negative sample weights.

        Tensors and row blocks, where this estimator takes them, are checked where they are.
        """
        if reset:
            self.__dict__.pop(
                "certificate_", None
            )  # a fit that breaks off leaves no old one behind
        if is_native(X, y, sample_weight):
            return validate_native(self, X, y, sample_weight, reset=reset, **checks)
        checks = {"accept_sparse": SPARSE_FORMATS, "dtype": [np.float64, np.float32], **checks}
        try:
            X, y = validate_data(self, X, y, reset=reset, **checks)
            y = np.asarray(y, dtype=np.float64) if checks.get("y_numeric") else y
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"X, and y of a regression, must hold numbers, but {error}. Encode text first, for "
                "instance with sklearn.preprocessing.OneHotEncoder."
            ) from error
        return X, y, check_weights(sample_weight, X)


def check_weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """Sample weights as float64, non-negative, not all zero; ``None`` stays ``None``."""
    if sample_weight is None:
        return None
    checked: NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return checked


def scale_error(name: str, largest: float, words: str = "") -> ValueError:
    """The error for values whose squares overflow float64; ``words`` to begin with."""
    return ValueError(
        f"{words}{name} has values as large as {largest:.3g}, whose squares overflow float64. "
        f"Rescale {name} first, for instance with sklearn.preprocessing.StandardScaler."
    )
