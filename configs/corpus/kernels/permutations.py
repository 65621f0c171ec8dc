"""Data movement: transposes and permutations of two to six dimensions."""

import dace
import numpy as np

B, C, H, W, M, N, K = (dace.symbol(s, dtype=dace.int64) for s in "BCHWMNK")
f32, f64 = dace.float32, dace.float64


@dace.program
def transpose(A: f64[M, N], T: f64[N, M]):
    """T = A^T, contiguous reads."""
    for i, j in dace.map[0:M, 0:N]:
        T[j, i] = A[i, j]


@dace.program
def transpose_f32(A: f32[M, N], T: f32[N, M]):
    """T = A^T."""
    T[:] = np.transpose(A)


@dace.program
def symmetrise(A: f64[N, N], S: f64[N, N]):
    """S = (A + A^T) / 2."""
    S[:] = 0.5 * (A + A.T)


@dace.program
def rotate_axes(A: f64[M, N, K], R: f64[K, M, N]):
    """The last axis becomes the first."""
    for i, j, k in dace.map[0:M, 0:N, 0:K]:
        R[k, i, j] = A[i, j, k]


@dace.program
def reverse_axes(A: f32[M, N, K], R: f32[K, N, M]):
    """Row-major to column-major."""
    R[:] = np.transpose(A, (2, 1, 0))


@dace.program
def nchw_to_nhwc(X: f32[B, C, H, W], Y: f32[B, H, W, C]):
    """Channels first to channels last."""
    Y[:] = np.transpose(X, (0, 2, 3, 1))


@dace.program
def split_heads(X: f32[B, M, H, K], Y: f32[B, H, M, K]):
    """Exchange of the two middle axes, as attention needs."""
    for b, i, h, k in dace.map[0:B, 0:M, 0:H, 0:K]:
        Y[b, h, i, k] = X[b, i, h, k]


@dace.program
def space_to_depth(X: f32[B, H, 2, W, 2, C], Y: f32[B, H, W, 2, 2, C]):
    """Every 2x2 patch of pixels into the channels."""
    for b, i, p, j, q, c in dace.map[0:B, 0:H, 0:2, 0:W, 0:2, 0:C]:
        Y[b, i, j, p, q, c] = X[b, i, p, j, q, c]
