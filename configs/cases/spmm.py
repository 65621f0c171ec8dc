"""Sparse times dense: Y = A X with A in CSR, on matrices of five structures.

`inputs_<structure>` and `inputs_<structure>_f32` build the arrays. No `from __future__ import annotations`
here: DaCe reads annotations as values.
"""

import dace
import numpy as np
import scipy.sparse

M, N, NNZ, F = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "NNZ", "F"))
f32, f64, i32 = dace.float32, dace.float64, dace.int32


@dace.program
def spmm(indptr: i32[M + 1], indices: i32[NNZ], values: f64[NNZ], X: f64[N, F], Y: f64[M, F]):
    Y[:] = 0
    for i in dace.map[0:M]:
        for k in dace.map[indptr[i] : indptr[i + 1]]:
            for f in dace.map[0:F]:
                Y[i, f] += values[k] * X[indices[k], f]


@dace.program
def spmm_f32(indptr: i32[M + 1], indices: i32[NNZ], values: f32[NNZ], X: f32[N, F], Y: f32[M, F]):
    Y[:] = 0
    for i in dace.map[0:M]:
        for k in dace.map[indptr[i] : indptr[i + 1]]:
            for f in dace.map[0:F]:
                Y[i, f] += values[k] * X[indices[k], f]


# --------------------------------------------------------------------------- structures
# Each returns the rows and columns of at least NNZ entries, duplicates among them.


def uniform(rng, M, N, NNZ):
    """Anywhere."""
    return rng.integers(0, M, 2 * NNZ), rng.integers(0, N, 2 * NNZ)


def banded(rng, M, N, NNZ):
    """Near the diagonal, in a band three times as wide as a row has entries."""
    half = max(1, 3 * NNZ // (2 * M))
    rows = rng.integers(0, M, 2 * NNZ)
    return rows, np.clip(rows * N // M + rng.integers(-half, half + 1, 2 * NNZ), 0, N - 1)


def power_law(rng, M, N, NNZ):
    """Few long rows and popular columns, as in graphs of citations."""
    rows = rng.permutation(M)[(M * rng.random(2 * NNZ) ** 2).astype(np.int64)]
    return rows, rng.permutation(N)[(N * rng.random(2 * NNZ) ** 3).astype(np.int64)]


def block(rng, M, N, NNZ):
    """Dense blocks of 8 x 8 anywhere, as from finite elements."""
    blocks, inside = NNZ // 32, np.arange(64)
    rows = 8 * rng.integers(0, M // 8, blocks)[:, None] + inside // 8
    columns = 8 * rng.integers(0, N // 8, blocks)[:, None] + inside % 8
    return rows.ravel(), columns.ravel()


def diagonal(rng, M, N, NNZ):
    """Half on diagonals, as from a stencil on a grid, half anywhere."""
    width = max(1, round(N**0.5))
    offsets = np.array([0, 1, -1, width, -width, 2, -2, 2 * width, -2 * width])[: max(1, NNZ // (2 * M))]
    rows = np.repeat(np.arange(M), len(offsets))
    columns = rows * N // M + np.tile(offsets, M)
    inside = (columns >= 0) & (columns < N)
    anywhere = uniform(rng, M, N, NNZ)
    return np.append(rows[inside], anywhere[0]), np.append(columns[inside], anywhere[1])


STRUCTURES = {s.__name__: s for s in (uniform, banded, power_law, block, diagonal)}


def matrix(structure, M, N, NNZ, seed=0):
    """A CSR matrix with exactly NNZ distinct entries, the first ones that the structure names."""
    rng = np.random.default_rng(seed)
    rows, columns = STRUCTURES[structure](rng, M, N, NNZ)
    keys, first = np.unique(rows.astype(np.int64) * N + columns, return_index=True)
    keys = keys[np.argsort(first)[:NNZ]]
    while len(keys) < NNZ:
        keys = np.union1d(keys, rng.integers(0, M * N, NNZ - len(keys)))
    return scipy.sparse.csr_matrix((rng.random(NNZ), (keys // N, keys % N)), shape=(M, N))


def _inputs(structure, dtype):
    def inputs(M: int, N: int, NNZ: int, F: int):
        sparse, rng = matrix(structure, M, N, NNZ), np.random.default_rng(1)
        return {
            "indptr": sparse.indptr.astype(np.int32),
            "indices": sparse.indices.astype(np.int32),
            "values": sparse.data.astype(dtype),
            "X": rng.random((N, F)).astype(dtype),
            "Y": np.zeros((M, F), dtype),
        }

    return inputs


for _structure in STRUCTURES:
    globals()[f"inputs_{_structure}"] = _inputs(_structure, np.float64)
    globals()[f"inputs_{_structure}_f32"] = _inputs(_structure, np.float32)
