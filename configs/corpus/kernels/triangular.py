"""Triangular, banded and masked iteration spaces, and recurrences along one axis."""

import dace
import numpy as np

M, N, K, TSTEPS = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "K", "TSTEPS"))
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- triangles, bands, masks


@dace.program
def trmm(L: f64[M, M], B: f64[M, N], C: f64[M, N]):
    """C += L B with a lower triangular L."""
    for i, j in dace.map[0:M, 0:N]:
        for k in dace.map[0 : i + 1]:
            C[i, j] += L[i, k] * B[k, j]


@dace.program
def syrk_lower(A: f64[M, K], C: f64[M, M]):
    """C += A A^T, the lower triangle only."""
    for i in dace.map[0:M]:
        for j, k in dace.map[0 : i + 1, 0:K]:
            C[i, j] += A[i, k] * A[j, k]


@dace.program
def triangular_gemv(L: f32[N, N], x: f32[N], y: f32[N]):
    """y += L x with a lower triangular L."""
    for i in dace.map[0:N]:
        for j in dace.map[0 : i + 1]:
            y[i] += L[i, j] * x[j]


@dace.program
def causal_mask(scores: f32[M, N, N], out: f32[M, N, N]):
    """Scale, and put a large negative number above the diagonal."""
    for h, i, j in dace.map[0:M, 0:N, 0:N]:
        if j <= i:
            out[h, i, j] = np.float32(0.125) * scores[h, i, j]
        else:
            out[h, i, j] = np.float32(-1e9)


@dace.program
def mirror_upper(A: f64[N, N]):
    """Copy the upper triangle to the lower."""
    for i in dace.map[0:N]:
        for j in dace.map[i + 1 : N]:
            A[j, i] = A[i, j]


@dace.program
def banded_gemv(A: f64[N, 2 * K + 1], x: f64[N], y: f64[N]):
    """y += A x, A stored by diagonals, away from the ends."""
    for i in dace.map[K : N - K]:
        for d in dace.map[0 : 2 * K + 1]:
            y[i] += A[i, d] * x[i + d - K]


@dace.program
def masked_sum(A: f32[M, N], limit: f32, s: f32[M]):
    """Sum of the elements of every row that exceed a limit."""
    s[:] = np.sum(np.where(limit < A, A, 0.0), axis=1)


# --------------------------------------------------------------------------- recurrences


@dace.program
def cumulative_sum(A: f64[M, N], S: f64[M, N]):
    """Running sum along the first axis; the columns are independent."""
    S[0, :] = A[0, :]
    for i in range(1, M):
        S[i, :] = S[i - 1, :] + A[i, :]


@dace.program
def smooth_rows(X: f32[M, N], Y: f32[M, N]):
    """Exponential smoothing along every row; the rows are independent."""
    Y[:, 0] = X[:, 0]
    for j in range(1, N):
        Y[:, j] = 0.9 * Y[:, j - 1] + 0.1 * X[:, j]


@dace.program
def forward_substitution(L: f64[M, M], X: f64[M, N]):
    """X = L^-1 X for a unit lower triangular L and many right-hand sides."""
    for i in range(M):
        for j, k in dace.map[0:N, 0:i]:
            X[i, j] += -(0.01 * L[i, k]) * X[k, j]


@dace.program
def viterbi(emission: f32[TSTEPS, N], transition: f32[N, N], score: f32[N]):
    """Best path through a hidden Markov model: a max-plus product per time step."""
    for t in range(TSTEPS):
        paths = score[:, None] + transition
        score[:] = np.max(paths, axis=0) + emission[t]
