r"""The Bayes classifier of given densities, and its risk (CLS-3).

    f*(x) = argmax_c P(c | x) = argmax_c pi_c p_c(x)

No rule has a smaller probability of error. It needs the class-conditional densities p_c and the priors
pi_c, which are unknown in practice; it is the yardstick where they are known. With a function that fits
a density to rows in place of densities, it is the plug-in rule, without that guarantee.

Certificate:

* *priors* (EXACT): they are those given, or the frequencies of the classes;
* *Bayes rule* (EXACT): on the training rows no class has a larger pi_c p_c(x) than the predicted one;
* *risk* (STATISTICAL, for given densities): the error on the training rows is as far from R* as chance
  allows. It fails where the rows do not come from these densities. Where R* needs sampling, ``verify``
  decides it.

References
----------
Devroye, Gyoerfi & Lugosi, A Probabilistic Theory of Pattern Recognition (1996), chapter 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._attributes import invalid_attributes, invalid_parameters
from ._bayes_risk import BayesRisk, closed_form, log_densities, monte_carlo, quadrature
from ._consistency import wrong_shapes
from .base import Certified
from .certificate import Claim, Kind

__all__ = ["BayesClassifier", "BayesRisk"]

Array = NDArray[np.float64]
_DELTA = 0.01  # of the claim about the risk


class BayesClassifier(ClassifierMixin, Certified):
    """The rule of the largest posterior, for given class-conditional densities.

    Parameters
    ----------
    densities : sequence of densities, or callable
        One density a class, in the order of the sorted labels: objects with ``log_prob``, such as
        :class:`surefit.densities.Gaussian`, or frozen scipy distributions. A callable takes the rows of
        a class and returns its density: ``Gaussian.fit``.
    priors : sequence of float, default=None
        Probabilities of the classes; their frequencies in y by default.
    classes : sequence, default=None
        The labels that the densities belong to, in their order; those in y, sorted, by default. Needed
        where y may lack one.
    certify : bool or "full", default=True
        Which claims to decide at fit time.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    priors_ : array of shape (n_classes,)
    densities_ : list
    certificate_ : Certificate

    Notes
    -----
    A model file holds no densities, so this classifier is not saved to one; pickle works where the
    densities do.

    Examples
    --------
    >>> from surefit.bayes import BayesClassifier
    >>> from surefit.densities import Gaussian
    >>> densities = [Gaussian([-1.0], [[1.0]]), Gaussian([1.0], [[1.0]])]
    >>> model = BayesClassifier(densities, priors=[0.5, 0.5]).fit([[-2.0], [0.5]], [-1, 1])
    >>> model.predict([[0.1]]).tolist(), round(model.risk().value, 4)
    ([1], 0.1587)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "densities": [list, tuple, callable],
        "priors": ["array-like", None],
        "classes": ["array-like", None],
        "certify": Certified._certify_constraint,
    }

    def __init__(
        self,
        densities: Any,
        priors: Sequence[float] | None = None,
        classes: Any = None,
        *,
        certify: bool | str = True,
    ) -> None:
        self.densities = densities
        self.priors = priors
        self.classes = classes
        self.certify = certify

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> BayesClassifier:
        """Take the classes, and the priors where they are not given, from y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        """
        X, y, _ = self._validate_training_data(X, y, None, reset=True)
        self.classes_ = np.unique(y) if self.classes is None else np.asarray(self.classes)
        unknown = np.setdiff1d(np.unique(y), self.classes_)
        if len(unknown):
            raise ValueError(
                f"y has labels {unknown[:5].tolist()} that are not in classes={self.classes_.tolist()}."
            )
        self.densities_ = self._known_densities(X, y)
        if len(self.densities_) != len(self.classes_):
            raise ValueError(
                f"densities has {len(self.densities_)} entries for {len(self.classes_)} classes: give one a "
                "class in the order of the sorted labels, or name the labels with classes."
            )
        self.priors_ = self._known_priors(y)
        log_densities(self.densities_, X[:1])  # an error now rather than at predict
        return self._seal(X, y, None)

    def _known_densities(self, X: Any, y: Any) -> list[Any]:
        """The densities given, or fitted to the rows of each class."""
        if callable(self.densities):
            return [self._fitted(X[y == label], label) for label in self.classes_]
        return list(self.densities)

    def _fitted(self, rows: Array, label: Any) -> Any:
        if len(rows) == 0:
            raise ValueError(f"densities cannot be fitted to class {label!r}: y has no row of it.")
        return self.densities(rows)

    def _known_priors(self, y: Any) -> Array:
        """The priors given, checked, or the frequencies."""
        if self.priors is None:
            return np.array([np.mean(y == label) for label in self.classes_])
        priors = np.asarray(self.priors, dtype=np.float64)
        fits = priors.shape == self.classes_.shape
        if not fits or not (priors >= 0).all() or abs(priors.sum() - 1.0) > 1e-9:
            raise ValueError(
                f"priors must be {len(self.classes_)} numbers >= 0 that sum to 1, one a class; got "
                f"{priors.tolist()}."
            )
        return priors / priors.sum()

    # ------------------------------------------------------------------ predictions

    def _joint(self, X: Any) -> Array:
        """log pi_c p_c(x), shape (n, classes)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        with np.errstate(divide="ignore"):
            prior = np.log(self.priors_)
        joint = log_densities(self.densities_, X) + prior
        nowhere = np.isneginf(joint).all(
            axis=1
        )  # outside every support: the priors are all there is
        joint[nowhere] = prior
        return joint

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest posterior; of several, the first in ``classes_``."""
        best = self._joint(X).argmax(axis=1)
        return self.classes_[best]

    def predict_log_proba(self, X: Any) -> Array:
        """log P(c | x), shape (n, classes)."""
        joint = self._joint(X)
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Array:
        """P(c | x), shape (n, classes)."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> Array:
        """log pi_c p_c(x); of two classes, the log-odds of the second."""
        joint = self._joint(X)
        if len(self.classes_) != 2:
            return joint
        with np.errstate(invalid="ignore"):
            return joint[:, 1] - joint[:, 0]

    def risk(
        self, *, n_samples: int = 100_000, delta: float = 0.05, random_state: Any = 0
    ) -> BayesRisk:
        """The probability of error of this rule under its own densities and priors: the least there is.

        Parameters
        ----------
        n_samples, delta, random_state
            For Monte Carlo: the number of draws, the probability with which the error may be larger, the
            seed.

        Returns
        -------
        BayesRisk
            ``value``, ``error``, ``method``: in closed form for two Gaussians with one covariance, by
            quadrature on the line (the error is then the quadrature's estimate), by Monte Carlo
            otherwise (Hoeffding's radius).
        """
        check_is_fitted(self)
        exact = self._exact_risk()
        if exact is not None:
            return exact
        if n_samples < 1 or not 0.0 < delta < 1.0:
            raise ValueError(
                f"n_samples must be positive and delta in (0, 1), got {n_samples} and {delta}."
            )
        return monte_carlo(
            self.densities_, self.priors_, int(n_samples), float(delta), random_state
        )

    def _exact_risk(self) -> BayesRisk | None:
        found = closed_form(self.densities_, self.priors_)
        if found is None and self.n_features_in_ == 1:
            found = quadrature(self.densities_, self.priors_)
        return found

    # ------------------------------------------------------------------ claims

    def _inconsistencies(self, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
        yield from invalid_parameters(self)
        yield from invalid_attributes(self)
        given = self.classes is not None  # in the order of the densities
        wanted = np.asarray(self.classes) if given else np.unique(y)
        if not np.array_equal(self.classes_, wanted):
            yield f"classes_ is {self.classes_.tolist()}, and must be {wanted.tolist()}"
            return
        if len(np.setdiff1d(np.unique(y), self.classes_)):
            yield f"y has labels that are not in classes_, {self.classes_.tolist()}"
        yield from wrong_shapes(self, {"priors_": self.classes_.shape})
        if len(self.densities_) != len(self.classes_):
            yield f"densities_ holds {len(self.densities_)} densities for {len(self.classes_)} classes"

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        if sample_weight is not None:
            raise ValueError("BayesClassifier takes no sample_weight: pass priors instead.")
        X, y, _ = self._validate(X, y, None, reset=reset, accept_sparse=False, dtype=np.float64)
        check_classification_targets(y)
        return X, y, None

    def _certify(
        self, X: Any, y: Any, sample_weight: Any, *, full: bool, tol: float
    ) -> list[Claim]:
        wanted = self._known_priors(y)
        same = self.priors_.shape == wanted.shape
        off = float(np.abs(self.priors_ - wanted).max(initial=0.0)) if same else math.inf
        source = "the frequencies of the classes" if self.priors is None else "those given"
        known = self._known_densities(X, y)  # not those that the model stored
        joint = log_densities(known, X) + np.log(np.maximum(wanted, 1e-323))
        chosen = np.searchsorted(self.classes_, self.predict(X), sorter=np.argsort(self.classes_))
        chosen = np.argsort(self.classes_)[chosen]
        best = joint.max(axis=1)
        slack = 1e-9 * np.maximum(1.0, np.abs(best))
        best_class = joint[np.arange(len(X)), chosen] >= best - slack  # a NaN is not
        nowhere = np.isneginf(best)  # outside every support
        wrong = int(np.count_nonzero(~(best_class | nowhere)))
        rule = (
            f"{wrong} of {len(X)} training rows are predicted as a class with a smaller posterior"
        )
        if not wrong:
            rule = f"all {len(X)} training rows are predicted as a class with the largest posterior"
        return [
            Claim.check(
                "priors", f"the priors are within {off:.1e} of {source}", Kind.EXACT, off, 1e-12, "CLS-3"
            ),
            Claim.check("Bayes rule", rule, Kind.EXACT, wrong, 0, "CLS-3"),
            self._risk_claim(X, y, full),
        ]  # fmt: skip

    def _risk_claim(self, X: Any, y: Any, full: bool) -> Claim:
        name, kind = "risk", Kind.STATISTICAL
        why = ""
        if callable(self.densities) or self.priors is None:
            why = "densities or priors were fitted to these rows: their risk is not the true one's"
            return Claim.undecided(name, why, kind, "CLS-3")
        risk = self._exact_risk() if full else closed_form(self.densities_, self.priors_)
        if risk is None and not full:
            why = "the risk needs quadrature or draws; surefit.verify or certify='full' decides it"
            return Claim.undecided(name, why, kind, "CLS-3")
        try:
            risk = self.risk(delta=_DELTA / 2) if risk is None else risk
        except TypeError as error:
            return Claim.undecided(name, str(error), kind, "CLS-3")
        errors = float(np.mean(self.predict(X) != y))
        radius = math.sqrt(math.log(4.0 / _DELTA) / (2.0 * len(X))) + risk.error
        statement = (
            f"the rows' error {errors:.4f} is {abs(errors - risk.value):.4f} from the Bayes risk "
            f"{risk.value:.4f}; rows from these densities stay within {radius:.4f} with probability "
            f"{1 - _DELTA:.0%}"
        )
        apart = abs(errors - risk.value)
        if radius >= max(risk.value, 1.0 - risk.value):
            why = f"{statement}: more rows would say something"
            return Claim.uninformative(name, why, kind, apart, radius, "CLS-3")
        return Claim.check(name, statement, kind, apart, radius, "CLS-3")

    def _remedy(self) -> str:
        return "The rows may not come from these densities and priors, or the model was changed: check both."

    def save(self, path: Any) -> None:
        """Refused: a model file holds no densities."""
        raise TypeError(
            f"cannot save {path}: BayesClassifier holds densities, which a model file cannot. Save their "
            "parameters, and build the classifier again."
        )
