"""surefit: machine learning in which every fit shows its work.

>>> import surefit
>>> from surefit.linear_model import Lasso
>>> from sklearn.datasets import load_diabetes
>>> X, y = load_diabetes(return_X_y=True)
>>> model = Lasso(alpha=0.1).fit(X, y)
>>> model.certificate_.ok
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public names and where they live; each module is imported when its name is first used.
_WHERE = {
    "Certificate": "certificate",
    "CertificateError": "certificate",
    "CertificateWarning": "certificate",
    "Claim": "certificate",
    "Kind": "certificate",
    "Status": "certificate",
    "verify": "certificate",
    "load": "io",
    "save": "io",
    "minimize": "solvers.minimize",
}
_MODULES = (
    "bayes",
    "cluster",
    "data",
    "decomposition",
    "densities",
    "distributed",
    "duality",
    "fair",
    "fingerprint",
    "geometry",
    "inference",
    "iterate",
    "kernel_ridge",
    "kernels",
    "linear_model",
    "losses",
    "mixture",
    "model_selection",
    "multiclass",
    "neighbors",
    "neural_network",
    "nn",
    "penalties",
    "preprocessing",
    "projections",
    "report",
    "robust",
    "separation",
    "solvers",
    "svm",
    "table",
    "testing",
    "text",
)

if TYPE_CHECKING:
    from .certificate import (
        Certificate,
        CertificateError,
        CertificateWarning,
        Claim,
        Kind,
        Status,
        verify,
    )
    from .io import load, save
    from .solvers.minimize import minimize

__all__ = [
    "Certificate",
    "CertificateError",
    "CertificateWarning",
    "Claim",
    "Kind",
    "Status",
    "__version__",
    "load",
    "minimize",
    "save",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'surefit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
