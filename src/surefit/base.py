"""What every surefit estimator is: a scikit-learn estimator whose fit leaves a certificate.

A subclass implements ``fit`` as scikit-learn asks, ends it with ``return self._seal(...)``, and adds one
method, ``_certify(X, y, sample_weight, full)``, which returns the claims. That method reads the data, the
public fitted attributes and at most an untrusted witness; it uses nothing of the solver.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .certificate import Certificate, CertificateWarning, Claim, Kind
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

    _certify_constraint: ClassVar[list[Any]] = ["boolean", StrOptions({"full"})]

    def _accepts(self) -> frozenset[str]:
        """The kinds of X that this estimator takes, with its present parameters."""
        return frozenset({"dense", "sparse"})

    @abstractmethod
    def _certify(self, X: Any, y: Any, sample_weight: Any, *, full: bool) -> list[Claim]:
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
        self.certificate_ = Certificate(
            claims=tuple(self._certify(X, y, sample_weight, full=full)),
            data_id=fingerprint(X, y, sample_weight),
            stopped=stopped,
            about=type(self).__name__,
        )
        if not self.certificate_.ok:
            message = self.certificate_.failure_message() + "\n  " + self._remedy()
            warnings.warn(message, CertificateWarning, stacklevel=4)  # past fit and its wrapper
        return self

    def _remedy(self) -> str:
        """What to try when a claim fails; part of the warning."""
        return (
            "Objective did not converge. You might want to increase the number of iterations "
            "(max_iter), raise tol, or scale the features (for instance with StandardScaler)."
        )

    def _recertify(self, X: Any, y: Any, sample_weight: Any) -> Certificate:
        """All claims again, for a stranger: used by :func:`surefit.verify`."""
        check_is_fitted(self)
        X, y, sample_weight = self._validate_training_data(X, y, sample_weight, reset=False)
        claims = self._certify(X, y, sample_weight, full=True)
        data_id = fingerprint(X, y, sample_weight)
        recorded = getattr(self, "certificate_", None)
        if recorded is not None and recorded.data_id:
            same = recorded.data_id == data_id
            words = "the data of the fit" if same else "not the data of the fit"
            statement = f"these are {words} (fingerprint {data_id})"
            claims.append(Claim.check("data", statement, Kind.EXACT, float(not same), 0.0, "DAT-1"))
        stopped = recorded.stopped if recorded is not None else ""
        return Certificate(tuple(claims), data_id, stopped, type(self).__name__)

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
