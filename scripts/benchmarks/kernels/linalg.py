"""Compositions of dense linear algebra, as a NumPy user writes them.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

K, L, M, N, P, Q, R = (dace.symbol(s, dtype=dace.int64) for s in "KLMNPQR")
f32, f64 = dace.float32, dace.float64

SIZES = {
    "gemm_chain": {"M": 360, "N": 400, "K": 380, "L": 340, "P": 320},
    "two_mm": {"M": 400, "N": 450, "K": 550, "L": 600},
    "three_mm": {"M": 384, "K": 420, "N": 360, "L": 400, "P": 440},
    "gemver": {"N": 2800},
    "atax": {"M": 2200, "N": 2500},
    "bicg": {"M": 2600, "N": 2100},
    "mvt": {"N": 2200},
    "doitgen": {"R": 90, "Q": 80, "P": 128},
    "mttkrp": {"M": 128, "K": 100, "L": 120, "R": 64},
    "covariance": {"M": 700, "N": 600},
    "correlation": {"M": 800, "N": 500},
}

# --------------------------------------------------------------------------- products of matrices


@dace.program
def gemm_chain(A: f32[M, N], B: f32[N, K], C: f32[K, L], D: f32[L, P], out: f32[M, P]):
    """Four matrices in a row."""
    out[:] = A @ B @ C @ D


@dace.program
def two_mm(alpha: f64, beta: f64, A: f64[M, K], B: f64[K, N], C: f64[N, L], D: f64[M, L]):
    """D = alpha A B C + beta D."""
    D[:] = alpha * A @ B @ C + beta * D


@dace.program
def three_mm(A: f64[M, K], B: f64[K, N], C: f64[N, L], D: f64[L, P], out: f64[M, P]):
    """(A B) (C D): two independent products, then theirs."""
    out[:] = (A @ B) @ (C @ D)


# --------------------------------------------------------------------------- matrices and vectors


@dace.program
def gemver(
    alpha: f64, beta: f64, A: f64[N, N], u1: f64[N], v1: f64[N], u2: f64[N], v2: f64[N],
    w: f64[N], x: f64[N], y: f64[N], z: f64[N],
):  # fmt: skip
    """A rank-two update, then products with the transposed and the plain matrix (BLAS 2.5)."""
    A += u1[:, np.newaxis] * v1 + u2[:, np.newaxis] * v2
    x += beta * y @ A + z
    w += alpha * A @ x


@dace.program
def atax(A: f64[M, N], x: f64[N], y: f64[N]):
    """y = A^T (A x)."""
    y[:] = (A @ x) @ A


@dace.program
def bicg(A: f64[M, N], p: f64[N], r: f64[M], s: f64[N], q: f64[M]):
    """Both products of a biconjugate gradient step: s = A^T r and q = A p."""
    s[:] = r @ A
    q[:] = A @ p


@dace.program
def mvt(A: f32[N, N], x1: f32[N], x2: f32[N], y1: f32[N], y2: f32[N]):
    """x1 += A y1 and x2 += A^T y2."""
    x1 += A @ y1
    x2 += y2 @ A


# --------------------------------------------------------------------------- tensors


@dace.program
def doitgen(A: f64[R, Q, P], C4: f64[P, P]):
    """Every matrix of a tensor times the same matrix, in place (multiresolution analysis)."""
    A[:] = np.reshape(np.reshape(A, (R * Q, P)) @ C4, (R, Q, P))


@dace.program
def mttkrp(X: f64[M, K, L], B: f64[K, R], C: f64[L, R], out: f64[M, R]):
    """Matricised tensor times Khatri-Rao product (CP decomposition)."""
    out[:] = np.einsum("ikl,kr,lr->ir", X, B, C)


# --------------------------------------------------------------------------- statistics


@dace.program
def covariance(data: f64[M, N], cov: f64[N, N]):
    """Covariances of N variables from M observations."""
    centred = data - np.mean(data, axis=0)
    cov[:] = centred.T @ centred / (M - 1.0)


@dace.program
def correlation(data: f32[M, N], corr: f32[N, N]):
    """Correlations of N variables from M observations."""
    centred = data - np.mean(data, axis=0)
    deviation = np.sqrt(np.sum(centred * centred, axis=0))
    standard = centred / deviation
    corr[:] = standard.T @ standard
