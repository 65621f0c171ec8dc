"""Approximate search among very many vectors: inverted lists around centroids (Jegou et al., TPAMI'11)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Int64
from threadpoolctl import ThreadpoolController

WORTH_IT = 100_000
"""Fewer vectors than this are searched exactly, in a few milliseconds."""
WANTED_RECALL = 0.995
"""Of the ten nearest, for vectors of the collection itself: what decides how many lists are looked into."""
_LEARNED_FROM = 64
"""Vectors for each centroid that k-means learns from."""
_QUERIES = 256
_CHUNK = 65_536


@dataclass(frozen=True)
class Clusters:
    """Vectors in lists by the centroid they are nearest to; list c is rows order[bounds[c]:bounds[c + 1]].

    centroids: f32[c, d], unit rows. probes: how many lists around a query are looked into. order: None where
    the vectors lie in the order of the lists.
    """

    centroids: Float32[np.ndarray, "c d"]
    bounds: Int64[np.ndarray, " c+1"]
    probes: int
    order: Int64[np.ndarray, " m"] | None = None

    def candidates(self, query: Float32[np.ndarray, " d"]) -> list[tuple[int, int]]:
        """Runs of rows [start, end) that are looked into."""
        near = np.argpartition(-(self.centroids @ query), self.probes - 1)[: self.probes]
        return [(int(self.bounds[c]), int(self.bounds[c + 1])) for c in near]

    def search(
        self,
        matrix: Float32[np.ndarray, "n d"],
        query: Float32[np.ndarray, " d"],
        k: int,
        usable: Bool[np.ndarray, " n"],
    ) -> tuple[Int64[np.ndarray, " m"], Float32[np.ndarray, " m"]] | None:
        """Rows and similarities of the k nearest usable rows that the lists hold, unsorted; None where
        they hold fewer than k."""
        runs = self.candidates(query)
        rows = np.concatenate([np.arange(start, end) for start, end in runs])
        with _blas().limit(limits=1):  # on a busy machine, one list takes longer to share out than to search
            if self.order is None:
                similarity = np.concatenate([matrix[start:end] @ query for start, end in runs])
            else:
                rows = self.order[rows]
                similarity = matrix[rows] @ query
        mine = usable[rows]
        rows, similarity = rows[mine], similarity[mine]
        if len(rows) < k:
            return None
        best = np.argpartition(-similarity, k - 1)[:k]
        return rows[best], similarity[best]


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def cluster(matrix: Float32[np.ndarray, "n d"]) -> tuple[Clusters, Int64[np.ndarray, " n"]]:
    """Centroids of unit vectors, and the order of the rows that puts each list in one run.

    The number of lists to look into is the least that finds `WANTED_RECALL` of the ten nearest of some of the
    vectors themselves. The same vectors give the same result.
    """
    from sklearn.cluster import MiniBatchKMeans

    chance = np.random.default_rng(0)
    count = max(1, round(len(matrix) ** 0.5))
    sample = matrix[chance.choice(len(matrix), min(len(matrix), _LEARNED_FROM * count), replace=False)]
    means = MiniBatchKMeans(count, batch_size=4096, n_init=1, max_iter=15, random_state=0)
    centroids = means.fit(sample).cluster_centers_.astype(np.float32)
    centroids /= np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), 1e-12)
    nearest = [
        np.argmax(matrix[start : start + _CHUNK] @ centroids.T, axis=1)
        for start in range(0, len(matrix), _CHUNK)
    ]
    of_row = np.concatenate(nearest)
    order = np.argsort(of_row, kind="stable")
    bounds = np.searchsorted(of_row[order], np.arange(count + 1))
    queries = matrix[chance.choice(len(matrix), min(_QUERIES, len(matrix)), replace=False)]
    return Clusters(centroids, bounds.astype(np.int64), _probes(matrix, queries, centroids, of_row)), order


def _probes(
    matrix: Float32[np.ndarray, "n d"],
    queries: Float32[np.ndarray, "q d"],
    centroids: Float32[np.ndarray, "c d"],
    of_row: Int64[np.ndarray, " n"],
) -> int:
    true = _exact(matrix, queries, min(10, len(matrix)))
    order = np.argsort(-(queries @ centroids.T), axis=1)
    position = np.empty_like(order)
    np.put_along_axis(position, order, np.arange(len(centroids))[None, :].repeat(len(queries), 0), axis=1)
    needed = np.sort(np.take_along_axis(position, of_row[true], axis=1).ravel())
    return int(needed[int(np.ceil(WANTED_RECALL * len(needed))) - 1]) + 1


def _exact(
    matrix: Float32[np.ndarray, "n d"], queries: Float32[np.ndarray, "q d"], k: int
) -> Int64[np.ndarray, "q k"]:
    """The k nearest rows of each query."""
    best = np.zeros((len(queries), 0), np.float32)
    rows = np.zeros((len(queries), 0), np.int64)
    for start in range(0, len(matrix), _CHUNK):
        found = queries @ matrix[start : start + _CHUNK].T
        best = np.concatenate([best, found], axis=1)
        rows = np.concatenate(
            [rows, np.arange(start, start + found.shape[1])[None].repeat(len(rows), 0)], axis=1
        )
        chosen = np.argpartition(-best, k - 1, axis=1)[:, :k]
        best, rows = np.take_along_axis(best, chosen, 1), np.take_along_axis(rows, chosen, 1)
    return rows
