"""What a profiler saw of products: the tiles of their kernels, and hence which of their sizes is which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gnnperf.nn.runtime.contraction import VARIANTS

COLUMNS = ("kernel_name", "grid_x", "grid_y", "grid_z")
_TILE = r"sgemm_(?P<n>\d+)x(?P<m>\d+)"
"""Kernels of cuBLAS for fp32 are named for the tile of the result that a block works out: along its rows in
memory, and across; the grid has a block for each along x and y."""


@dataclass(frozen=True)
class Launches:
    """Of n rows of a table, f64[n] each, NaN where it is not known: sides of the tile along the columns and
    the rows of the result, blocks along x, y and z."""

    along_n: NDArray[np.float64]
    along_m: NDArray[np.float64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    z: NDArray[np.float64]

    @staticmethod
    def of(table: pa.Table) -> Launches | None:
        """None where the table has not all of COLUMNS. Raises ArrowException."""
        if not set(COLUMNS) <= set(table.column_names):
            return None
        names = table["kernel_name"].cast(pa.string()).combine_chunks().dictionary_encode()
        tile = pc.extract_regex(names.dictionary, _TILE)
        index = names.indices.fill_null(len(names.dictionary)).to_numpy(zero_copy_only=False)
        sides = [np.append(_numbers(pc.struct_field(tile, side)), np.nan)[index] for side in ("n", "m")]
        return Launches(*sides, *(_numbers(table[name]) for name in COLUMNS[1:]))

    def fit(self, m: NDArray[np.float64], n: NDArray[np.float64]) -> int:
        """Rows whose grid is that of a result of m by n."""
        return int(((self.x == np.ceil(n / self.along_n)) & (self.y == np.ceil(m / self.along_m))).sum())

    def variant(self, batch: NDArray[np.float64]) -> NDArray[np.float64]:
        """f64[n]: index into VARIANTS of the kernel that ran; -1 where it is not known or none of them."""
        found = np.full(len(self.x), -1.0)
        split = self.z > batch
        for index, (along_n, along_m, parts) in enumerate(VARIANTS):
            found[(self.along_n == along_n) & (self.along_m == along_m) & (split == (parts > 1))] = index
        return found


def _numbers(column: pa.ChunkedArray | pa.Array) -> NDArray[np.float64]:
    return np.asarray(pc.fill_null(column.cast(pa.float64()), np.nan))
