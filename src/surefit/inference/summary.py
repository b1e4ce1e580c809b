r"""What a fit says about its coefficients: the table, the noise model, and the caveats in words.

A :class:`Summary` is plain data: arrays, numbers and sentences. It prints itself as text, on a terminal
(rich) and in a notebook (HTML), draws itself as a forest plot, and turns into a dictionary or a data frame.
It is made by ``model.summary(X, y)``.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

__all__ = ["Noise", "Summary", "intervals"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Noise:
    """The distribution of the targets around the prediction, with its estimated size.

    Several targets have several numbers each, as arrays.

    Attributes
    ----------
    family : str
        "Gaussian", "Laplace", "asymmetric Laplace", "Bernoulli", "categorical" or "unspecified".
    scale : float or array
        The standard deviation of a Gaussian, b of a Laplace density, 1 where there is no such parameter.
    variance : float or array
        For the Gaussian the sum of squares over the residual degrees of freedom, which is unbiased where
        there is no penalty.
    variance_mle : float or array
        The maximum-likelihood estimate: for the Gaussian the mean square (REG-7), for the Laplace density
        2 b^2 with b the mean absolute error (REG-9).
    """

    family: str
    scale: Any = 1.0
    variance: Any = math.nan
    variance_mle: Any = math.nan

    def __str__(self) -> str:
        if self.family == "Gaussian" and np.isnan(self.variance).any():
            return f"Gaussian, variance {_several(self.variance_mle)} (maximum likelihood)"
        if self.family == "Gaussian":
            return (
                f"Gaussian, variance {_several(self.variance)} (per residual degree of freedom), "
                f"{_several(self.variance_mle)} (maximum likelihood)"
            )
        if "Laplace" in self.family:
            return f"{self.family}, b = {_several(self.scale)} (maximum likelihood)"
        if self.family == "unspecified":
            return f"unspecified, scale {_several(self.scale)}"
        return self.family


@dataclass(frozen=True, eq=False)
class Summary:
    """Coefficients with what is known about their uncertainty.

    Arrays over parameters have shape (k,), the intercept first where there is one; with several targets or
    classes they have shape (n_outputs, k), and what is a number below is an array of shape (n_outputs,).
    NaN means that there is no such number, and ``notes`` say why.

    Attributes
    ----------
    model : str
        Class name of the model.
    response : str
        What the coefficients add up to.
    names : tuple of str
        Names of the parameters.
    outputs : tuple of str
        Names of the targets or classes; empty when there is one.
    coef, std_error : array
        Estimates and their standard errors.
    statistic, p_value : array
        coef / std_error, and the probability of one at least as large if the parameter were 0.
    low, high : array
        Ends of the confidence intervals.
    covariance : array of shape (k, k) or (n_outputs, k, k), or None
        Of the estimates of one output.
    fisher_information : array of shape (k, k) or (n_outputs, k, k), or None
        -E of the second derivative of the log-likelihood (REG-8), without a penalty.
    level : float
        Confidence level of the intervals.
    method : str
        Where the standard errors come from.
    noise : Noise
    n_samples : float
        Rows of positive weight, or the sum of frequency weights.
    df_model : float or array
        Parameters in use: the rank, or the effective number under a penalty.
    df_resid : float or array
        What is left for the noise; the t distribution of the intervals has this many degrees of freedom.
    log_likelihood, aic, bic : float or array
        The parameters counted in AIC and BIC are ``df_model``; the noise scale is not counted.
    r2 : float or array
        Share of the variation explained, of the kind named by ``r2_kind``.
    r2_kind : str
    condition : float
        Condition number of the centred columns scaled to unit length.
    feature_scale : array of shape (k,)
        Standard deviation of each feature (NaN for the intercept).
    same_data : bool or None
        Whether these are the data of the fit; None when the fit was not certified.
    notes : tuple of str
        What to know before believing the numbers.
    """

    model: str
    response: str
    names: tuple[str, ...]
    outputs: tuple[str, ...]
    coef: Array
    std_error: Array
    statistic: Array
    p_value: Array
    low: Array
    high: Array
    covariance: Array | None
    fisher_information: Array | None
    level: float
    method: str
    noise: Noise
    n_samples: float
    df_model: Any
    df_resid: Any
    log_likelihood: Any
    aic: Any
    bic: Any
    r2: Any
    r2_kind: str
    condition: float
    feature_scale: Array
    same_data: bool | None
    notes: tuple[str, ...]

    # ------------------------------------------------------------------ as data

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; NaN and infinities become strings."""
        record = {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "noise"}
        record["noise"] = {f.name: _plain(getattr(self.noise, f.name)) for f in fields(Noise)}
        return record

    def to_frame(self, library: str | None = None) -> Any:
        """The table as a data frame, one row a parameter (and output).

        Parameters
        ----------
        library : {"pandas", "polars"}, optional
            By default pandas where it is installed, else polars.
        """
        if library not in (None, "pandas", "polars"):
            raise ValueError(f"library must be 'pandas' or 'polars', got {library!r}.")
        columns = self.columns()
        for name in (library,) if library else ("pandas", "polars"):
            try:
                return importlib.import_module(name).DataFrame(columns)
            except ImportError:
                continue
        wanted = library or "pandas or polars"
        raise ImportError(f"a data frame needs {wanted}: install it, or use to_dict().")

    def columns(self) -> dict[str, list[Any]]:
        """The table as lists: the output (where there are several), the parameter and its numbers."""
        outputs = len(self.outputs) or 1
        table: dict[str, list[Any]] = {}
        if self.outputs:
            table["output"] = [name for name in self.outputs for _ in self.names]
        table["parameter"] = list(self.names) * outputs
        for name in ("coef", "std_error", "statistic", "p_value", "low", "high"):
            table[name] = getattr(self, name).ravel().tolist()
        return table

    # ------------------------------------------------------------------ for people

    def __str__(self) -> str:
        from .render import as_text

        return as_text(self)

    def __repr__(self) -> str:
        shape = " x ".join(str(size) for size in self.coef.shape)
        return f"<Summary of {self.model}: {shape} parameters>"

    def __rich__(self) -> Any:
        from .render import as_rich

        return as_rich(self)

    def _repr_html_(self) -> str:
        from .render import as_html

        return as_html(self)

    def plot(
        self,
        ax: Any = None,
        *,
        sort: bool = True,
        most: int = 30,
        intercept: bool = False,
        per: str = "unit",
    ) -> Any:
        """A forest plot: each coefficient with its interval, and the line at zero.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        sort : bool, default=True
            Largest first; otherwise in the order of the features.
        most : int, default=30
            Draw at most this many features, the largest; the title says how many are left out.
        intercept : bool, default=False
            Whether to draw the intercept too.
        per : {"unit", "sd"}, default="unit"
            Coefficients as they are, or times the standard deviation of their feature, which makes features
            in different units comparable.

        Returns
        -------
        matplotlib Axes
        """
        from .forest import forest

        return forest(self, ax, sort=sort, most=most, intercept=intercept, per=per)


def intervals(
    coef: Array, std_error: Array, df: Array, level: float
) -> tuple[Array, Array, Array, Array]:
    """(statistic, p_value, low, high) under Student's t with ``df`` degrees of freedom; inf is the normal.

    Examples
    --------
    >>> parts = intervals(np.array([1.96]), np.array([1.0]), np.array([np.inf]), 0.95)
    >>> [round(float(part[0]), 3) for part in parts]
    [1.96, 0.05, 0.0, 3.92]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = coef / std_error
    df = np.broadcast_to(df, coef.shape)
    normal = np.isinf(df)
    finite = np.where(normal, 1.0, df)
    with np.errstate(invalid="ignore", over="ignore"):
        squared = np.minimum(statistic**2, np.finfo(np.float64).max / 4)
        heavy = special.betainc(finite / 2.0, 0.5, finite / (finite + squared))
        p_value = np.where(normal, 2.0 * special.ndtr(-np.abs(statistic)), heavy)
        upper = 0.5 + level / 2.0
        width = np.where(normal, special.ndtri(upper), special.stdtrit(finite, upper)) * std_error
    return statistic, p_value, coef - width, coef + width


def _several(value: Any) -> str:
    numbers = [f"{float(v):.6g}" for v in np.atleast_1d(value)]
    return (
        numbers[0]
        if len(numbers) == 1
        else "(" + ", ".join(numbers[:6]) + (", ...)" if len(numbers) > 6 else ")")
    )


def _plain(value: Any) -> Any:
    """JSON types from arrays, tuples and numbers."""
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else repr(float(value))
    return value
