"""Clusters: k-means, with exact labels and a certificate."""

from __future__ import annotations

from .functions import k_means, kmeans_plusplus
from .kmeans import KMeans
from .mini_batch import MiniBatchKMeans

__all__ = ["KMeans", "MiniBatchKMeans", "k_means", "kmeans_plusplus"]
