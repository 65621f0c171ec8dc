"""From the embedding space to the plane, and who is near whom in the space itself."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64

PERPLEXITY = 30.0
"""Of t-SNE: about how many neighbours each nest holds on to."""
ITERATIONS, ANGLE = 750, 0.8
"""Of Barnes-Hut t-SNE: 20,000 nests take about a minute."""
FEW = 8
"""Fewer nests than this have no neighbourhoods to keep: they are projected on their principal axes."""


def project(embeddings: Float[np.ndarray, "n d"], seed: int = 0) -> Float64[np.ndarray, "n 2"]:
    """Places on the plane that keep neighbours together: t-SNE, started from the principal axes.

    Args:
        embeddings: n >= 1 rows of norm 1: their squared Euclidean distances, from which t-SNE takes
            similarities, are twice their cosine distances.

    Equal input gives equal output: t-SNE runs on one thread, as the order of its parallel sums is not fixed.
    On a busy machine that is also the faster way.
    """
    if len(embeddings) < FEW:
        return _principal_axes(embeddings)
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    perplexity = min(PERPLEXITY, (len(embeddings) - 1) / 3)
    model = TSNE(perplexity=perplexity, init="pca", angle=ANGLE, max_iter=ITERATIONS, random_state=seed)
    with threadpool_limits(1):
        return model.fit_transform(embeddings.astype(np.float32)).astype(np.float64)


def nearest_neighbours(
    embeddings: Float[np.ndarray, "n d"], k: int
) -> tuple[Int64[np.ndarray, "n k"], Float64[np.ndarray, "n k"]]:
    """The k nearest others of each row and their cosine distances, nearest first; exact.

    Where there are fewer others, k is their number. Rows have norm 1.
    """
    from sklearn.neighbors import NearestNeighbors

    k = min(k, len(embeddings) - 1)
    if k < 1:
        return np.zeros((len(embeddings), 0), np.int64), np.zeros((len(embeddings), 0))
    # Wide, because sklearn takes distances from |x|^2 - 2xy + |y|^2: near 0, float32 is mostly rounding.
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(embeddings.astype(np.float64))
    distances, indices = search.kneighbors()
    return indices, distances**2 / 2


def _principal_axes(embeddings: Float32[np.ndarray, "n d"]) -> Float64[np.ndarray, "n 2"]:
    centred = embeddings.astype(np.float64) - embeddings.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    places = np.zeros((len(embeddings), 2))
    axes = min(2, len(sizes))
    places[:, :axes] = left[:, :axes] * sizes[:axes]
    return places
