"""Linear algebra and statistics in several steps, as PolyBench and tensor decompositions have them."""

import dace
import numpy as np

M, N, K, P, R = (dace.symbol(s, dtype=dace.int64) for s in "MNKPR")
f32, f64 = dace.float32, dace.float64


@dace.program
def gemver(
    A: f64[N, N], u1: f64[N], v1: f64[N], u2: f64[N], v2: f64[N], x: f64[N], y: f64[N], z: f64[N], w: f64[N]
):
    """A rank-two update and two products with the result, one of them transposed."""
    A[:] = A + u1[:, None] * v1 + u2[:, None] * v2
    x[:] = x + 0.01 * (y @ A) + z
    w[:] = w + 0.01 * (A @ x)


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
def doitgen(A: f64[M, N, P], C: f64[P, P], out: f64[M, N, P]):
    """The last axis of a three-dimensional array times a matrix."""
    for r, q, p, s in dace.map[0:M, 0:N, 0:P, 0:P]:
        out[r, q, p] += A[r, q, s] * C[s, p]


def _mttkrp(dtype):
    @dace.program
    def mttkrp(X: dtype[M, N, K], B: dtype[N, R], C: dtype[K, R], A: dtype[M, R]):
        """Matricised tensor times Khatri-Rao product, the kernel of CP decompositions."""
        for i, r, j, k in dace.map[0:M, 0:R, 0:N, 0:K]:
            A[i, r] += X[i, j, k] * B[j, r] * C[k, r]

    return mttkrp


mttkrp, mttkrp_f32 = _mttkrp(f64), _mttkrp(f32)


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
def covariance(data: f64[M, N], cov: f64[N, N]):
    """Covariance of the columns."""
    centred = data - np.mean(data, axis=0)
    for i, j, k in dace.map[0:N, 0:N, 0:M]:
        cov[i, j] += centred[k, i] * centred[k, j] / (M - 1)


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
