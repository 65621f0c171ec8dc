"""Linear algebra and statistics in several steps, as PolyBench and tensor decompositions have them."""

import dace
import numpy as np

M, N, K, P, R = (dace.symbol(s, dtype=dace.int64) for s in "MNKPR")
f32, f64 = dace.float32, dace.float64


@dace.program
def mvt(A: f64[N, N], x1: f64[N], x2: f64[N], y1: f64[N], y2: f64[N]):
    """x1 += A y1 and x2 += A^T y2."""
    x1[:] = x1 + A @ y1
    x2[:] = x2 + y2 @ A


@dace.program
def three_mm(A: f64[M, K], B: f64[K, N], C: f64[N, P], D: f64[P, R], G: f64[M, R]):
    """G = (A B) (C D)."""
    G[:] = (A @ B) @ (C @ D)


@dace.program
def trmm_transposed(A: f64[M, M], B: f64[M, N], C: f64[M, N]):
    """C += A^T B for a unit lower triangular A."""
    for i, j in dace.map[0:M, 0:N]:
        for k in dace.map[i:M]:
            C[i, j] += A[k, i] * B[k, j]


@dace.program
def symm(A: f32[M, M], B: f32[M, N], C: f32[M, N]):
    """C += A B where only the lower triangle of the symmetric A is stored."""
    for i, j in dace.map[0:M, 0:N]:
        for k in dace.map[0 : i + 1]:
            C[i, j] += A[i, k] * B[k, j]
    for i, j in dace.map[0:M, 0:N]:
        for k in dace.map[i + 1 : M]:
            C[i, j] += A[k, i] * B[k, j]


@dace.program
def syr2k_lower(A: f64[M, K], B: f64[M, K], C: f64[M, M]):
    """C += A B^T + B A^T, the lower triangle only."""
    for i in dace.map[0:M]:
        for j, k in dace.map[0 : i + 1, 0:K]:
            C[i, j] += A[i, k] * B[j, k] + B[i, k] * A[j, k]


# --------------------------------------------------------------------------- statistics


@dace.program
def correlation(data: f32[M, N], corr: f32[N, N]):
    """Correlation of the columns."""
    centred = data - np.mean(data, axis=0)
    scale = np.sqrt(np.sum(centred * centred, axis=0)) + 0.1
    z = centred / scale
    for i, j, k in dace.map[0:N, 0:N, 0:M]:
        corr[i, j] += z[k, i] * z[k, j]


@dace.program
def variance_rows(A: f64[M, N], var: f64[M]):
    """Variance of every row, in two passes."""
    centred = A - np.mean(A, axis=1)[:, None]
    var[:] = np.mean(centred * centred, axis=1)


@dace.program
def weighted_moments(x: f32[M, N], w: f32[M, N], mean: f32[N], square: f32[N]):
    """First and second moments of the columns in one pass over the data."""
    for i, j in dace.map[0:M, 0:N]:
        mean[j] += w[i, j] * x[i, j]
        square[j] += w[i, j] * x[i, j] * x[i, j]


@dace.program
def centroid_update(X: f64[M, K], member: f64[M, N], C: f64[N, K]):
    """New centres of soft k-means: memberships transposed times points, normalised."""
    weight = np.sum(member, axis=0)
    total = member.T @ X
    C[:] = total / weight[:, None]
