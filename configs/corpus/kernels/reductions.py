"""Sums, maxima, minima and sums of squares along each axis of vectors, matrices and tensors."""

import dace
import numpy as np

M, N, K = (dace.symbol(s, dtype=dace.int64) for s in "MNK")
f32, f64 = dace.float32, dace.float64


@dace.program
def dot_product(x: f64[N], y: f64[N], s: f64[1]):
    """s += x . y."""
    for i in dace.map[0:N]:
        s[0] += x[i] * y[i]


@dace.program
def frobenius(A: f64[M, N], s: f64[1]):
    """s += the sum of squares of a matrix."""
    for i, j in dace.map[0:M, 0:N]:
        s[0] += A[i, j] * A[i, j]


@dace.program
def sum_rows(A: f64[M, N], s: f64[M]):
    """Sum along the contiguous axis."""
    s[:] = np.sum(A, axis=1)


@dace.program
def sum_columns(A: f64[M, N], s: f64[N]):
    """Sum along the strided axis."""
    s[:] = np.sum(A, axis=0)


@dace.program
def sum_columns_f32(A: f32[M, N], s: f32[N]):
    """s += column sums, loops written with the strided axis innermost."""
    for j, i in dace.map[0:N, 0:M]:
        s[j] += A[i, j]


@dace.program
def max_rows(A: f32[M, N], m: f32[M]):
    """Largest element of every row."""
    m[:] = np.max(A, axis=1)


@dace.program
def min_columns(A: f64[M, N], m: f64[N]):
    """Smallest element of every column."""
    m[:] = np.min(A, axis=0)


@dace.program
def abs_max(A: f64[M, N], m: f64[1]):
    """Largest magnitude of a matrix."""
    m[0] = np.max(np.abs(A))


@dace.program
def sum_squares_middle(A: f32[M, N, K], s: f32[M, K]):
    """s += sums of squares along the middle axis of a tensor."""
    for i, k, j in dace.map[0:M, 0:K, 0:N]:
        s[i, k] += A[i, j, k] * A[i, j, k]


@dace.program
def sum_first_of_3(A: f64[M, N, K], s: f64[N, K]):
    """Sum along the slowest axis of a tensor."""
    s[:] = np.sum(A, axis=0)


@dace.program
def max_last_of_3(A: f32[M, N, K], m: f32[M, N]):
    """Largest element along the fastest axis of a tensor."""
    m[:] = np.max(A, axis=2)


@dace.program
def sum_outer_axes(A: f32[M, N, K], s: f32[N]):
    """Sum along the first and the last axis at once, as channel statistics need."""
    s[:] = np.sum(A, axis=(0, 2))


@dace.program
def value_range(A: f64[M, N], r: f64[M]):
    """Largest minus smallest element of every row: two reductions over one array."""
    r[:] = np.max(A, axis=1) - np.min(A, axis=1)
