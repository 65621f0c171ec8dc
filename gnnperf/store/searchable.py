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
from jaxtyping import Bool, Float32, Int64

from gnnperf.store import clusters
from gnnperf.store.clusters import Clusters, cluster

BESIDE = 50_000
"""Most rows that are compared one by one beside the lists, in a millisecond or two."""
WORTHLESS = 4
"""Reading scattered rows takes so many times what it takes to read as many in order."""
_NONE = np.zeros(0, np.int64)
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
    """Vectors, of which some are usable. clusters: of rows in lists. beside: usable rows that are in none."""

    def __init__(
        self,
        matrix: Float32[np.ndarray, "n d"],
        usable: Bool[np.ndarray, " n"],
        clusters: Clusters | None = None,
        unlisted: Int64[np.ndarray, " m"] = _NONE,
    ) -> None:
        """unlisted: rows that are in no list, usable or not."""
        self.matrix = matrix
        self.usable = usable
        self.clusters = clusters
        self._unlisted = unlisted
        self._count = int(usable.sum())
        self.beside = unlisted[usable[unlisted]]

    def extended(self, matrix: Float32[np.ndarray, "n d"], usable: Bool[np.ndarray, " n"]) -> Searchable:
        """With the same lists, where rows were added to the matrix, and others are usable."""
        added = np.arange(len(self.matrix), len(matrix))
        return Searchable(matrix, usable, self.clusters, np.append(self._unlisted, added))

    def search(
        self, query: Float32[np.ndarray, " d"], k: int
    ) -> tuple[Int64[np.ndarray, " k"], Float32[np.ndarray, " k"]]:
        """Rows and cosine distances of the k nearest to a unit vector (or all), nearest first."""
        k = min(k, self._count)
        if k < 1:
            return _NONE, np.zeros(0, np.float32)
        rows, similarity = self._listed(query, k) or self._exactly(query, k)
        order = np.lexsort((rows, -similarity))
        return rows[order], np.maximum(0, 1 - similarity[order])

    def _exactly(
        self, query: Float32[np.ndarray, " d"], k: int
    ) -> tuple[Int64[np.ndarray, " k"], Float32[np.ndarray, " k"]]:
        similarity = np.where(self.usable, self.matrix @ query, -np.inf).astype(np.float32)
        nearest = largest(similarity, k)
        return nearest, similarity[nearest]

    def _listed(
        self, query: Float32[np.ndarray, " d"], k: int
    ) -> tuple[Int64[np.ndarray, " k"], Float32[np.ndarray, " k"]] | None:
        """Of some lists and of what is in none; None where there are no lists, they hold too few, or so many
        are looked into that everything is read as fast."""
        clusters = self.clusters
        if clusters is None or WORTHLESS * clusters.probes > len(clusters.centroids):
            return None
        found = clusters.search(self.matrix, query, k, self.usable)
        if found is None:
            return None
        rows = np.append(found[0], self.beside)
        similarity = np.append(found[1], self.matrix[self.beside] @ query)
        nearest = largest(similarity, k)
        return rows[nearest], similarity[nearest]


def arranged(
    matrix: Float32[np.ndarray, "n d"],
    row_ids: Int64[np.ndarray, " n"],
    usable: Bool[np.ndarray, " n"],
    before: Searchable | None,
    kept: Iterable[Lists],
) -> tuple[Searchable, Lists | None]:
    """Some rows of a matrix of unit vectors, ready to be searched, and the lists that were made for that.

    Args:
        matrix: unit vectors.
        row_ids: what the rows are called in the store.
        usable: those that a query is compared with.
        before: of the first of these rows, whichever of them were usable.
        kept: lists that were made before; the first that is good enough is used, else lists are made.
    """
    count = int(usable.sum())
    if count < clusters.WORTH_IT:
        return Searchable(matrix, usable), None
    if before is not None and before.clusters is not None:
        found = before.extended(matrix, usable)
        if len(found.beside) <= BESIDE:
            return found, None
    for lists in kept:
        if lists.centroids.shape[1] == matrix.shape[1]:
            found = _listed(matrix, usable, lists, lists.of(row_ids))
            if len(found.beside) <= BESIDE and count - len(found.beside) > len(lists.row_ids) // 2:
                return found, None
    rows = np.flatnonzero(usable)
    made, order = cluster(matrix if count == len(matrix) else matrix[rows])
    of_row = np.full(len(matrix), len(made.centroids), np.int64)
    of_row[rows[order]] = np.repeat(np.arange(len(made.centroids)), np.diff(made.bounds))
    by_id = rows[np.argsort(row_ids[rows])]
    lists = Lists(made.centroids, made.probes, row_ids[by_id], of_row[by_id])
    return _listed(matrix, usable, lists, of_row), lists


def _listed(
    matrix: Float32[np.ndarray, "n d"],
    usable: Bool[np.ndarray, " n"],
    lists: Lists,
    of_row: Int64[np.ndarray, " n"],
) -> Searchable:
    order = np.argsort(of_row, kind="stable")  # those in no list come last
    bounds = np.searchsorted(of_row, np.arange(len(lists.centroids) + 1), sorter=order).astype(np.int64)
    end = int(bounds[-1])
    return Searchable(
        matrix, usable, Clusters(lists.centroids, bounds, lists.probes, order[:end]), order[end:]
    )


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
