"""Clusters: k-means, with exact labels and a certificate that says how far from the best it can be."""

from __future__ import annotations

from .elbow import ElbowTable, elbow
from .functions import k_means, kmeans_plusplus
from .kmeans import KMeans
from .mini_batch import MiniBatchKMeans

__all__ = ["ElbowTable", "KMeans", "MiniBatchKMeans", "elbow", "k_means", "kmeans_plusplus"]
