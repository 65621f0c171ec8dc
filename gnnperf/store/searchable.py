"""The embeddings that a query is compared with: those of one encoder that one device can use.

Few are compared one by one. Many are sorted into lists (`clusters.py`), of which a query looks into some.
The lists are kept between processes (`index_files.py`) and stay right when the store changes: rows are known
by their `row_id`, rows that are gone are left out, and rows that came later, which are in no list, are
compared one by one beside the lists, until there are so many that the lists are made anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int64

from gnnperf.store import clusters
from gnnperf.store.clusters import Clusters, cluster

BESIDE = 50_000
"""Most rows that are compared one by one beside the lists, in a millisecond or two."""
_BLOCK = 256
"""Values whose maximum is looked at before they are."""


@dataclass(frozen=True)
class Lists:
    """Which list each row is in, whatever the order of the rows.

    centroids: f32[c, d]. probes: lists that a query looks into. row_ids: ascending. list_of: of each of them.
    """

    centroids: Float32[np.ndarray, "c d"]
    probes: int
    row_ids: Int64[np.ndarray, " m"]
    list_of: Int64[np.ndarray, " m"]

    def of(self, row_ids: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        """The list of each row, and c of those that are in none."""
        count = len(self.centroids)
        if not len(self.row_ids):
            return np.full(len(row_ids), count, np.int64)
        places = np.minimum(np.searchsorted(self.row_ids, row_ids), len(self.row_ids) - 1)
        return np.where(self.row_ids[places] == row_ids, self.list_of[places], count)


class Searchable:
    """Vectors and, in `rows`, what they are rows of; the first `listed` are sorted by list."""

    def __init__(
        self,
        matrix: Float32[np.ndarray, "n d"],
        rows: Int64[np.ndarray, " n"],
        clusters: Clusters | None = None,
        listed: int = 0,
    ) -> None:
        self.matrix = matrix
        self.rows = rows
        self.clusters = clusters
        self.listed = listed

    def search(
        self, query: Float32[np.ndarray, " d"], k: int
    ) -> tuple[Int64[np.ndarray, " k"], Float32[np.ndarray, " k"]]:
        """Rows and cosine distances of the k nearest to a unit vector (or all), nearest first."""
        k = min(k, len(self.rows))
        if k < 1:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        places, similarity = self._listed(query, k) or self._exactly(query, k)
        rows = self.rows[places]
        order = np.lexsort((rows, -similarity))
        return rows[order], np.maximum(0, 1 - similarity[order])

    def _exactly(
        self, query: Float32[np.ndarray, " d"], k: int
    ) -> tuple[Int64[np.ndarray, " k"], Float32[np.ndarray, " k"]]:
        similarity = self.matrix @ query
        nearest = largest(similarity, k)
        return nearest, similarity[nearest]

    def _listed(
        self, query: Float32[np.ndarray, " d"], k: int
    ) -> tuple[Int64[np.ndarray, " k"], Float32[np.ndarray, " k"]] | None:
        """Of some lists and of what is in none; None where there are no lists, or they hold too few."""
        found = self.clusters.search(self.matrix, query, k) if self.clusters else None
        if found is None:
            return None
        beside = np.arange(self.listed, len(self.matrix))
        places = np.concatenate([found[0], beside])
        similarity = np.concatenate([found[1], self.matrix[self.listed :] @ query])
        nearest = largest(similarity, k)
        return places[nearest], similarity[nearest]


def arranged(
    matrix: Float32[np.ndarray, "n d"],
    row_ids: Int64[np.ndarray, " n"],
    rows: Int64[np.ndarray, " m"],
    kept: Iterable[Lists],
) -> tuple[Searchable, Lists | None]:
    """Some rows of a matrix of unit vectors, ready to be searched, and the lists that were made for that.

    Args:
        matrix: unit vectors.
        row_ids: what the rows are called in the store.
        rows: those that a query is compared with, ascending.
        kept: lists that were made before; the first that is good enough is used, else lists are made.
    """
    chosen = matrix if len(rows) == len(matrix) else matrix[rows]
    if len(rows) < clusters.WORTH_IT:
        return Searchable(chosen, rows), None
    ids = row_ids[rows]
    for lists in kept:
        if lists.centroids.shape[1] == matrix.shape[1]:
            of_row = lists.of(ids)
            if _serve(of_row, lists):
                return _sorted(chosen, rows, lists, of_row), None
    made, order = cluster(chosen)
    of_row = np.empty(len(rows), np.int64)
    of_row[order] = np.repeat(np.arange(len(made.centroids)), np.diff(made.bounds))
    by_id = np.argsort(ids)
    lists = Lists(made.centroids, made.probes, ids[by_id], of_row[by_id])
    return _sorted(chosen, rows, lists, of_row), lists


def _serve(of_row: Int64[np.ndarray, " n"], lists: Lists) -> bool:
    """Whether the lists hold nearly all rows, and not many that are gone."""
    beside = int((of_row == len(lists.centroids)).sum())
    return beside <= BESIDE and len(of_row) - beside > len(lists.row_ids) // 2


def _sorted(
    matrix: Float32[np.ndarray, "n d"],
    rows: Int64[np.ndarray, " n"],
    lists: Lists,
    of_row: Int64[np.ndarray, " n"],
) -> Searchable:
    order = np.argsort(of_row, kind="stable")  # those in no list come last
    bounds = np.searchsorted(of_row[order], np.arange(len(lists.centroids) + 1))
    found = Clusters(lists.centroids, bounds.astype(np.int64), lists.probes)
    return Searchable(matrix[order], rows[order], found, int(bounds[-1]))


def largest(values: Float32[np.ndarray, " n"], k: int) -> Int64[np.ndarray, " k"]:
    """Positions of the k largest values, in no order.

    They lie in the k blocks with the largest maxima, and the maxima of a million values take a hundredth of
    the time that a partition of them takes.
    """
    blocks = len(values) // _BLOCK
    if blocks <= 2 * k:
        return np.argpartition(-values, k - 1)[:k]
    maxima = values[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
    best = np.argpartition(-maxima, k - 1)[:k]
    inside = (best[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
    rows = np.concatenate([inside, np.arange(blocks * _BLOCK, len(values))])
    return rows[np.argpartition(-values[rows], k - 1)[:k]]
