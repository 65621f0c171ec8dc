"""Factorisations as their loops are written, and products with the own transpose."""

import dace
import numpy as np

M, N = (dace.symbol(s, dtype=dace.int64) for s in "MN")
f64 = dace.float64


@dace.program
def cholesky_right(A: f64[N, N]):
    """A finished column is taken from all that follow."""
    for k in range(N):
        A[k, k] = np.sqrt(A[k, k])
        A[k + 1 :, k] /= A[k, k]
        for j in range(k + 1, N):
            A[j:, j] -= A[j:, k] * A[j, k]


@dace.program
def cholesky_left(A: f64[N, N]):
    """All rows before are taken from one."""
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = np.sqrt(A[i, i])


@dace.program
def cholesky_apart(A: f64[N, N], L: f64[N, N]):
    """Out of place, by columns."""
    for j in range(N):
        L[j, j] = np.sqrt(A[j, j] - L[j, :j] @ L[j, :j])
        for i in range(j + 1, N):
            L[i, j] = (A[i, j] - L[i, :j] @ L[j, :j]) / L[j, j]


@dace.program
def cholesky_upper(A: f64[N, N]):
    """The upper triangle."""
    for i in range(N):
        for k in range(i):
            A[i, i:] -= A[k, i] * A[k, i:]
        A[i, i] = np.sqrt(A[i, i])
        A[i, i + 1 :] /= A[i, i]


@dace.program
def lu_right(A: f64[N, N]):
    """Without pivots; a finished row and column are taken from all that follow."""
    for k in range(N - 1):
        A[k + 1 :, k] /= A[k, k]
        for i, j in dace.map[k + 1 : N, k + 1 : N]:
            A[i, j] -= A[i, k] * A[k, j]


@dace.program
def lu_left(A: f64[N, N]):
    """The same, row by row."""
    for i in range(N):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, N):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


@dace.program
def scatter(X: f64[M, N], S: f64[N, N]):
    """Of rows around their mean."""
    Y = X - np.sum(X, axis=0) / M
    S[:] = (Y.T @ Y) / (M - 1)


@dace.program
def weighted_squares(X: f64[M, N], w: f64[M], S: f64[N, N]):
    """Normal equations with weights."""
    S[:] = X.T @ (w[:, np.newaxis] * X)


# --------------------------------------------------------------------------- inputs


def inputs_definite(N: int) -> dict[str, np.ndarray]:
    """Symmetric, far from singular."""
    A = np.random.default_rng(0).uniform(0, 1, (N, N))
    A = (A + A.T) / 2
    A[np.diag_indices(N)] += N
    return {"A": A}
