"""Sparse times dense: Y = A X with A in CSR, on matrices of five structures.

`inputs_<structure>` and `inputs_<structure>_f32` build the arrays. No `from __future__ import annotations`
here: DaCe reads annotations as values.
"""

import dace
import numpy as np

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
# Each returns rows and columns of about n entries; duplicates are dropped.


def uniform(rng, M, N, n):
    """Anywhere."""
    return rng.integers(0, M, n), rng.integers(0, N, n)


def banded(rng, M, N, n):
    """Near the diagonal, in a band three times as wide as a row has entries."""
    half = max(1, 3 * n // (2 * M))
    rows = rng.integers(0, M, n)
    return rows, np.clip(rows * N // M + rng.integers(-half, half + 1, n), 0, N - 1)


def power_law(rng, M, N, n):
    """Few long rows and popular columns, as in graphs of citations."""
    rows = rng.permutation(M)[(M * rng.random(n) ** 2).astype(np.int64)]
    return rows, rng.permutation(N)[(N * rng.random(n) ** 3).astype(np.int64)]


def block(rng, M, N, n):
    """Dense blocks of 8 x 8 anywhere, as from finite elements."""
    blocks, inside = n // 64, np.arange(64)
    rows = 8 * rng.integers(0, M // 8, blocks)[:, None] + inside // 8
    columns = 8 * rng.integers(0, N // 8, blocks)[:, None] + inside % 8
    return rows.ravel(), columns.ravel()


def diagonal(rng, M, N, n):
    """Half on diagonals, as from a stencil on a grid, half anywhere."""
    width = max(3, round(N**0.5))
    offsets = np.array([0, 1, -1, width, -width, 2, -2, 2 * width, -2 * width])[: max(1, n // (2 * M))]
    rows = np.repeat(np.arange(M), len(offsets))
    columns = rows * N // M + np.tile(offsets, M)
    inside = (columns >= 0) & (columns < N)
    anywhere = uniform(rng, M, N, n // 2)
    return np.append(rows[inside], anywhere[0]), np.append(columns[inside], anywhere[1])


STRUCTURES = {s.__name__: s for s in (uniform, banded, power_law, block, diagonal)}


def csr(structure, M, N, NNZ, seed=0):
    """Row starts and columns of a matrix with exactly NNZ distinct entries, int32[M + 1] and int32[NNZ]."""
    if NNZ > M * N:
        raise ValueError(f"expected NNZ <= {M * N}, got {NNZ}")
    rng, keys = np.random.default_rng(seed), np.zeros(0, np.int64)
    make = STRUCTURES[structure]
    while len(keys) < NNZ:  # more than are missing, because of the duplicates
        rows, columns = make(rng, M, N, (NNZ - len(keys)) * 13 // 10 + 64)
        keys = np.unique(np.append(keys, rows * N + columns))
        make = uniform  # what a structure has no room for
    keys = np.delete(keys, rng.choice(len(keys), len(keys) - NNZ, replace=False))
    starts = np.append(0, np.cumsum(np.bincount(keys // N, minlength=M)))
    return starts.astype(np.int32), (keys % N).astype(np.int32)


def _inputs(structure, dtype):
    def inputs(M: int, N: int, NNZ: int, F: int):
        (indptr, indices), rng = csr(structure, M, N, NNZ), np.random.default_rng(1)
        return {
            "indptr": indptr,
            "indices": indices,
            "values": rng.random(NNZ).astype(dtype),
            "X": rng.random((N, F)).astype(dtype),
            "Y": np.zeros((M, F), dtype),
        }

    return inputs


for _structure in STRUCTURES:
    globals()[f"inputs_{_structure}"] = _inputs(_structure, np.float64)
    globals()[f"inputs_{_structure}_f32"] = _inputs(_structure, np.float32)
