"""The programs of `linear_algebra.py` as one writes them in Numba, where that is not the program itself."""

import math

import numba
import numpy as np
from numba import prange

jit = numba.njit(parallel=True, fastmath=True, cache=True)
plain = numba.njit(fastmath=True, cache=True)


@plain
def matrix_polynomial(c, A, out):
    square = A @ A
    cube = square @ A
    for i in range(A.shape[0]):
        for j in range(A.shape[0]):
            out[i, j] = c[1] * A[i, j] + c[2] * square[i, j] + c[3] * cube[i, j]
        out[i, i] += c[0]


@jit
def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    N = A.shape[0]
    parts = numba.get_num_threads()
    sums = np.zeros((parts, N))
    for part in prange(parts):
        for i in range(part * N // parts, (part + 1) * N // parts):
            for j in range(N):
                A[i, j] += u1[i] * v1[j] + u2[i] * v2[j]
                sums[part, j] += y[i] * A[i, j]
    x += beta * sums.sum(axis=0) + z
    for i in prange(N):
        total = 0.0
        for j in range(N):
            total += A[i, j] * x[j]
        w[i] = alpha * total


@jit
def least_squares_gradient(A, x, b):
    M, N = A.shape
    parts = numba.get_num_threads()
    sums = np.zeros((parts, N))
    for part in prange(parts):
        for i in range(part * M // parts, (part + 1) * M // parts):
            residual = -b[i]
            for j in range(N):
                residual += A[i, j] * x[j]
            for j in range(N):
                sums[part, j] += residual * A[i, j]
    return sums.sum(axis=0)


@jit
def power_iteration(A, x, STEPS):
    N = A.shape[0]
    y = np.empty(N)
    for step in range(STEPS + 1):
        for i in prange(N):
            total = 0.0
            for j in range(N):
                total += A[i, j] * x[j]
            y[i] = total
        if step < STEPS:
            x[:] = y / math.sqrt(np.sum(y * y))
    return np.sum(x * y)


@plain
def covariance(data, cov):
    M = data.shape[0]
    centred = data - np.sum(data, axis=0) / M
    cov[:] = (centred.T @ centred) / (M - 1.0)


@plain
def weighted_gram(X, weights, ridge, gram):
    scaled = X.copy()
    for i in range(X.shape[0]):
        scaled[i] *= weights[i]
    gram[:] = scaled.T @ X
    for i in range(X.shape[1]):
        gram[i, i] += ridge


@jit
def mahalanobis(X, mean, precision):
    M, N = X.shape
    out = np.empty(M)
    centred = X - mean
    applied = centred @ precision
    for i in prange(M):
        total = 0.0
        for j in range(N):
            total += applied[i, j] * centred[i, j]
        out[i] = math.sqrt(total)
    return out


@plain
def coarse_operator(P2, A):
    return P2.T @ (A @ P2)


@plain
def newton_inverse(A, X):
    X[:] = np.float32(2) * X - X @ (A @ X)


@jit
def doitgen(A, C4, out):
    for r in prange(A.shape[0]):
        out[r] += A[r] @ C4


@jit
def mttkrp(X, B2, C2, out):
    M, K = X.shape[:2]
    for i in prange(M):
        inner = X[i] @ C2
        for k in range(K):
            out[i] += inner[k] * B2[k]


@jit
def spectral_derivative(D, u, du):
    M, N = u.shape[:2]
    for e in prange(M):
        du[e] = 0.0
        for i in range(N):
            for a in range(N):
                for j in range(N):
                    for k in range(N):
                        du[e, i, j, k] += D[i, a] * u[e, a, j, k]
            for j in range(N):
                for a in range(N):
                    for k in range(N):
                        du[e, i, j, k] += D[j, a] * u[e, i, a, k]
                for k in range(N):
                    total = 0.0
                    for a in range(N):
                        total += D[k, a] * u[e, i, j, a]
                    du[e, i, j, k] += total


@jit
def cholesky(A):
    """Column by column: the rows below are independent."""
    N = A.shape[0]
    for j in range(N):
        total = A[j, j]
        for k in range(j):
            total -= A[j, k] * A[j, k]
        A[j, j] = math.sqrt(total)
        for i in prange(j + 1, N):
            dot = A[i, j]
            for k in range(j):
                dot -= A[i, k] * A[j, k]
            A[i, j] = dot / A[j, j]


@jit
def lu(A):
    N = A.shape[0]
    for k in range(N - 1):
        for i in prange(k + 1, N):
            factor = A[i, k] / A[k, k]
            A[i, k] = factor
            for j in range(k + 1, N):
                A[i, j] -= factor * A[k, j]


@jit
def lower_solve(L, B):
    """Every thread has columns of its own."""
    N, M = B.shape
    parts = numba.get_num_threads()
    for part in prange(parts):
        first, last = part * M // parts, (part + 1) * M // parts
        for i in range(N):
            for k in range(i):
                for j in range(first, last):
                    B[i, j] -= L[i, k] * B[k, j]
            for j in range(first, last):
                B[i, j] /= L[i, i]
