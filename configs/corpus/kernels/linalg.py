"""Dense linear algebra: matrix products in every orientation, rank updates, matrix-vector products.

Kernel files do without `from __future__ import annotations`: DaCe reads annotations as values.
"""

import dace

M, N, K = (dace.symbol(s, dtype=dace.int64) for s in "MNK")
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- gemm


def _gemm(dtype):
    @dace.program
    def gemm(A: dtype[M, K], B: dtype[K, N], C: dtype[M, N]):
        """C = A B."""
        C[:] = A @ B

    return gemm


gemm, gemm_f32 = _gemm(f64), _gemm(f32)


@dace.program
def gemm_tn(A: f64[K, M], B: f64[K, N], C: f64[M, N]):
    """C += A^T B, both operands read along rows of k."""
    for i, j, k in dace.map[0:M, 0:N, 0:K]:
        C[i, j] += A[k, i] * B[k, j]


@dace.program
def gemm_nt(A: f32[M, K], B: f32[N, K], C: f32[M, N]):
    """C = A B^T, dot products of rows."""
    C[:] = A @ B.T


@dace.program
def gemm_tt(A: f64[K, M], B: f64[N, K], C: f64[M, N]):
    """C += A^T B^T, no operand is contiguous along its own result dimension."""
    for i, j, k in dace.map[0:M, 0:N, 0:K]:
        C[i, j] += A[k, i] * B[j, k]


@dace.program
def gemm_scaled(alpha: f64, beta: f64, A: f64[M, K], B: f64[K, N], C: f64[M, N]):
    """C = alpha A B + beta C, as BLAS defines it."""
    C[:] = alpha * A @ B + beta * C


@dace.program
def two_mm(A: f32[M, K], B: f32[K, N], C: f32[N, K], D: f32[M, K]):
    """D = (A B) C, two products in a row."""
    T = A @ B
    D[:] = T @ C


# --------------------------------------------------------------------------- rank updates


@dace.program
def syrk(alpha: f64, A: f64[M, K], C: f64[M, M]):
    """C += alpha A A^T, the whole square."""
    for i, j, k in dace.map[0:M, 0:M, 0:K]:
        C[i, j] += alpha * A[i, k] * A[j, k]


@dace.program
def syr2k(A: f32[M, K], B: f32[M, K], C: f32[M, M]):
    """C += A B^T + B A^T, the whole square."""
    for i, j, k in dace.map[0:M, 0:M, 0:K]:
        C[i, j] += A[i, k] * B[j, k] + B[i, k] * A[j, k]


@dace.program
def ger(alpha: f64, x: f64[M], y: f64[N], A: f64[M, N]):
    """A += alpha x y^T."""
    for i, j in dace.map[0:M, 0:N]:
        A[i, j] = A[i, j] + alpha * x[i] * y[j]


@dace.program
def outer(x: f32[M], y: f32[N], A: f32[M, N]):
    """A = x y^T."""
    A[:] = x[:, None] * y


@dace.program
def outer3(a: f64[M], b: f64[N], c: f64[K], T: f64[M, N, K]):
    """T += a x b x c, a rank-one update of a third-order tensor."""
    for i, j, k in dace.map[0:M, 0:N, 0:K]:
        T[i, j, k] = T[i, j, k] + a[i] * b[j] * c[k]


# --------------------------------------------------------------------------- matrix-vector


@dace.program
def gemv(A: f64[M, N], x: f64[N], y: f64[M]):
    """y = A x."""
    y[:] = A @ x


@dace.program
def gemv_t(A: f64[M, N], x: f64[M], y: f64[N]):
    """y += A^T x: the reduction runs across rows."""
    for j, i in dace.map[0:N, 0:M]:
        y[j] += A[i, j] * x[i]


@dace.program
def gemv_t_f32(A: f32[M, N], x: f32[M], y: f32[N]):
    """y = x A."""
    y[:] = x @ A


@dace.program
def gesummv(alpha: f32, beta: f32, A: f32[M, N], B: f32[M, N], x: f32[N], y: f32[M]):
    """y = alpha A x + beta B x."""
    y[:] = alpha * A @ x + beta * B @ x


@dace.program
def atax(A: f64[M, N], x: f64[N], y: f64[N]):
    """y = A^T (A x), one matrix read twice."""
    y[:] = (A @ x) @ A


@dace.program
def bicg(A: f32[M, N], p: f32[N], r: f32[M], q: f32[M], s: f32[N]):
    """q += A p and s += A^T r, one matrix read in both orientations."""
    for i, j in dace.map[0:M, 0:N]:
        q[i] += A[i, j] * p[j]
    for i, j in dace.map[0:M, 0:N]:
        s[j] += A[i, j] * r[i]
