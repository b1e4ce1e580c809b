"""Fits of a grid that share their work: one file a family of models.

A search asks :func:`fold_plan` for a plan. It fits the candidates of each fold together (a Gram matrix, a
path, a kernel matrix or the neighbours once for all), and hands out real fitted models, or their scores where
the metric is known. The scores are those of separate fits: to rounding where a fit is linear algebra, and to
what ``tol`` allows where it is a limit.
"""

from .plan import FoldPlan, Scored, fold_plan

__all__ = ["FoldPlan", "Scored", "fold_plan"]
