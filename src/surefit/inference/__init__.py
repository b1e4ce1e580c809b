"""Interpretation: what a fit says about its coefficients, and how sure it is.

``model.summary(X, y)`` of a linear model gives a :class:`Summary`: coefficients with standard errors,
intervals and p-values where these mean something, and in words why not where they do not; the noise model;
likelihood, AIC, BIC and R^2. ``information`` holds the mathematics: the Fisher information in factored
form, and sandwiches built on it.
"""

from __future__ import annotations

from .summary import Noise, Summary

__all__ = ["Noise", "Summary"]
