"""Sparse matrices in CSR, CSC and ELLPACK, and the matrices they are measured on.

The `inputs_*` functions build the index arrays and return every array of the kernel: random data
would not be a valid sparse matrix.
"""

import dace
import numpy as np
import scipy.sparse

M, N, NNZ, F, WIDTH = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "NNZ", "F", "WIDTH"))
f32, f64, i32 = dace.float32, dace.float64, dace.int32
Csr = scipy.sparse.csr_matrix

# --------------------------------------------------------------------------- sparse times dense


def _spmm(dtype):
    @dace.program
    def spmm(indptr: i32[M + 1], indices: i32[NNZ], values: dtype[NNZ], X: dtype[N, F], Y: dtype[M, F]):
        """Y += A X, A in CSR, X with F columns."""
        for i in dace.map[0:M]:
            for k in dace.map[indptr[i] : indptr[i + 1]]:
                for f in dace.map[0:F]:
                    Y[i, f] += values[k] * X[indices[k], f]

    return spmm


spmm, spmm_f32 = _spmm(f64), _spmm(f32)


def _product(dtype):
    @dace.program
    def product(indptr: i32[M + 1], indices: i32[NNZ], values: dtype[NNZ], X: dtype[N, F], Y: dtype[M, F]):
        """Y = A X, A in CSR: nothing is read of Y."""
        Y[:] = 0
        for i in dace.map[0:M]:
            for k in dace.map[indptr[i] : indptr[i + 1]]:
                for f in dace.map[0:F]:
                    Y[i, f] += values[k] * X[indices[k], f]

    return product


product, product_f32 = _product(f64), _product(f32)


@dace.program
def neighbour_sum(indptr: i32[M + 1], indices: i32[NNZ], X: f32[N, F], Y: f32[M, F]):
    """Sum of the features of all neighbours: SpMM with a pattern and no values, as in GNN layers."""
    for i, f in dace.map[0:M, 0:F]:
        for k in range(indptr[i], indptr[i + 1]):
            Y[i, f] += X[indices[k], f]


# --------------------------------------------------------------------------- sparse times vector


def _spmv(dtype):
    @dace.program
    def spmv(indptr: i32[M + 1], indices: i32[NNZ], values: dtype[NNZ], x: dtype[N], y: dtype[M]):
        """y += A x, A in CSR."""
        for i in dace.map[0:M]:
            for k in dace.map[indptr[i] : indptr[i + 1]]:
                y[i] += values[k] * x[indices[k]]

    return spmv


spmv, spmv_f32 = _spmv(f64), _spmv(f32)


@dace.program
def spmv_ell(columns: i32[M, WIDTH], values: f64[M, WIDTH], x: f64[N], y: f64[M]):
    """y += A x, A in ELLPACK: the same number of entries in every row."""
    for i, w in dace.map[0:M, 0:WIDTH]:
        y[i] += values[i, w] * x[columns[i, w]]


@dace.program
def scaled_row_sums(indptr: i32[M + 1], values: f64[NNZ], d: f64[M], s: f64[M]):
    """Sums of squares of the rows of a CSR matrix, scaled: data-dependent bounds without a gather."""
    for i in dace.map[0:M]:
        for k in dace.map[indptr[i] : indptr[i + 1]]:
            s[i] += d[i] * values[k] * values[k]


# --------------------------------------------------------------------------- matrices


def _csr(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int], nnz: int, seed: int) -> Csr:
    """A CSR matrix with exactly `nnz` distinct entries: duplicates are replaced by random ones."""
    if nnz > shape[0] * shape[1]:
        raise ValueError(f"expected NNZ <= {shape[0] * shape[1]}, got {nnz}")
    rng = np.random.default_rng(seed)
    keys = np.unique(rows.astype(np.int64) * shape[1] + columns)
    while len(keys) < nnz:
        extra = rng.integers(0, shape[0] * shape[1], nnz - len(keys))
        keys = np.union1d(keys, extra)
    keys = np.sort(rng.permutation(keys)[:nnz])
    data = rng.random(nnz)
    return Csr((data, (keys // shape[1], keys % shape[1])), shape=shape)


def uniform_matrix(M: int, N: int, NNZ: int, seed: int = 0) -> Csr:
    """Entries anywhere with equal probability."""
    rng = np.random.default_rng(seed)
    return _csr(rng.integers(0, M, NNZ), rng.integers(0, N, NNZ), (M, N), NNZ, seed)


def banded_matrix(M: int, N: int, NNZ: int, seed: int = 0) -> Csr:
    """Entries near the diagonal, in a band three times as wide as a row has entries."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, M, 2 * NNZ)
    half = max(1, 3 * NNZ // (2 * M))
    columns = np.clip(rows * N // M + rng.integers(-half, half + 1, 2 * NNZ), 0, N - 1)
    return _csr(rows, columns, (M, N), NNZ, seed)


def power_law_matrix(M: int, N: int, NNZ: int, seed: int = 0) -> Csr:
    """Row lengths and column popularity follow a power law, as in social and citation graphs."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(M)[(M * rng.random(2 * NNZ) ** 2.0).astype(np.int64)]
    columns = rng.permutation(N)[(N * rng.random(2 * NNZ) ** 3.0).astype(np.int64)]
    return _csr(rows, columns, (M, N), NNZ, seed)


def block_matrix(M: int, N: int, NNZ: int, seed: int = 0) -> Csr:
    """Dense blocks of 8 x 8 anywhere, as finite elements with several unknowns per node have."""
    rng = np.random.default_rng(seed)
    blocks = -(-NNZ // 64) * 11 // 10
    inside = np.arange(64)
    rows = 8 * rng.integers(0, M // 8, blocks)[:, None] + inside // 8
    columns = 8 * rng.integers(0, N // 8, blocks)[:, None] + inside % 8
    return _csr(rows.ravel(), columns.ravel(), (M, N), NNZ, seed)


def diagonal_matrix(M: int, N: int, NNZ: int, seed: int = 0) -> Csr:
    """Half of the entries on diagonals, as a stencil on a square grid has them, half anywhere."""
    rng, width = np.random.default_rng(seed), max(3, round(N**0.5))
    offsets = np.array([0, 1, -1, width, -width, 2, -2, 2 * width, -2 * width])[: max(1, NNZ // (2 * M))]
    rows = np.repeat(np.arange(M), len(offsets))
    columns = rows * N // M + np.tile(offsets, M)
    inside = (columns >= 0) & (columns < N)
    anywhere = max(0, NNZ - int(inside.sum()))
    return _csr(
        np.append(rows[inside], rng.integers(0, M, anywhere)),
        np.append(columns[inside], rng.integers(0, N, anywhere)),
        (M, N), NNZ, seed,
    )  # fmt: skip


# --------------------------------------------------------------------------- inputs


def _products(build, dtype: type):
    """Inputs of `spmm*` (when F is given) and `spmv*` on a matrix made by `build`."""

    def inputs(M: int, N: int, NNZ: int, F: int | None = None) -> dict[str, np.ndarray]:
        matrix, rng = build(M, N, NNZ), np.random.default_rng(1)
        data = {
            "indptr": matrix.indptr.astype(np.int32),
            "indices": matrix.indices.astype(np.int32),
            "values": matrix.data.astype(dtype),
        }
        if F is None:
            return {**data, "x": rng.random(N).astype(dtype), "y": np.zeros(M, dtype)}
        return {**data, "X": rng.random((N, F)).astype(dtype), "Y": np.zeros((M, F), dtype)}

    return inputs


inputs_uniform = _products(uniform_matrix, np.float64)
inputs_uniform_f32 = _products(uniform_matrix, np.float32)
inputs_banded = _products(banded_matrix, np.float64)
inputs_banded_f32 = _products(banded_matrix, np.float32)
inputs_power_law = _products(power_law_matrix, np.float64)
inputs_power_law_f32 = _products(power_law_matrix, np.float32)
inputs_block = _products(block_matrix, np.float64)
inputs_block_f32 = _products(block_matrix, np.float32)
inputs_diagonal = _products(diagonal_matrix, np.float64)
inputs_diagonal_f32 = _products(diagonal_matrix, np.float32)


def inputs_neighbours(M: int, N: int, NNZ: int, F: int) -> dict[str, np.ndarray]:
    """A power-law graph for `neighbour_sum`."""
    data = inputs_power_law_f32(M, N, NNZ, F)
    del data["values"]
    return data


def inputs_rows(M: int, NNZ: int) -> dict[str, np.ndarray]:
    """Rows of uneven length for `scaled_row_sums`."""
    matrix, rng = power_law_matrix(M, M, NNZ), np.random.default_rng(1)
    return {
        "indptr": matrix.indptr.astype(np.int32),
        "values": matrix.data,
        "d": rng.random(M),
        "s": np.zeros(M),
    }


def inputs_ell(M: int, N: int, WIDTH: int) -> dict[str, np.ndarray]:
    """Columns near the diagonal for `spmv_ell`, as an unstructured mesh has them."""
    rng = np.random.default_rng(0)
    near = np.arange(M)[:, None] * N // M + rng.integers(-50 * WIDTH, 50 * WIDTH + 1, (M, WIDTH))
    return {
        "columns": np.clip(near, 0, N - 1).astype(np.int32),
        "values": rng.random((M, WIDTH)),
        "x": rng.random(N),
        "y": np.zeros(M),
    }
