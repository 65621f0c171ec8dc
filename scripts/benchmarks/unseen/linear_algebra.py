"""Products, matrices with vectors, statistics, tensor contractions, factorisations.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

K, M, N, P, Q, R, S, STEPS = (
    dace.symbol(s, dtype=dace.int64) for s in ("K", "M", "N", "P", "Q", "R", "S", "STEPS")
)
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- products


@dace.program
def matrix_polynomial(c: f64[4], A: f64[N, N], out: f64[N, N]):
    """A polynomial of third degree of a matrix."""
    square = A @ A
    out[:] = c[1] * A + c[2] * square + c[3] * (square @ A)
    for i in dace.map[0:N]:
        out[i, i] += c[0]


@dace.program
def coarse_operator(P2: f64[N, M], A: f64[N, N]):
    """Galerkin's operator on a coarser grid: restrict, apply, prolong."""
    return P2.T @ A @ P2


@dace.program
def newton_inverse(A: f32[N, N], X: f32[N, N]):
    """One step of Newton's iteration towards the inverse of A."""
    X[:] = 2 * X - X @ (A @ X)


# --------------------------------------------------------------------------- a matrix and vectors


@dace.program
def gemver(
    alpha: f64,
    beta: f64,
    A: f64[N, N],
    u1: f64[N],
    v1: f64[N],
    u2: f64[N],
    v2: f64[N],
    w: f64[N],
    x: f64[N],
    y: f64[N],
    z: f64[N],
):
    """A rank-two update, then products with the transposed and the plain matrix (BLAS 2.5)."""
    for i, j in dace.map[0:N, 0:N]:
        A[i, j] = A[i, j] + u1[i] * v1[j] + u2[i] * v2[j]
    x[:] = x + beta * (y @ A) + z
    w[:] = alpha * (A @ x)


@dace.program
def least_squares_gradient(A: f64[M, N], x: f64[N], b: f64[M]):
    """The gradient of |A x - b|^2 / 2."""
    return A.T @ (A @ x - b)


@dace.program
def power_iteration(A: f64[N, N], x: f64[N]):
    """Some steps towards the largest eigenvector, in place, and the eigenvalue."""
    for _step in range(STEPS):
        y = A @ x
        x[:] = y / np.sqrt(np.sum(y * y))
    return np.sum(x * (A @ x))


# --------------------------------------------------------------------------- statistics


@dace.program
def covariance(data: f64[M, N], cov: f64[N, N]):
    """Covariance matrix of N variables from M observations."""
    centred = data - np.mean(data, axis=0)
    cov[:] = (centred.T @ centred) / (M - 1.0)


@dace.program
def weighted_gram(X: f64[M, N], weights: f64[M], ridge: f64, gram: f64[N, N]):
    """The matrix of weighted least squares with a ridge."""
    gram[:] = (X.T * weights) @ X
    for i in dace.map[0:N]:
        gram[i, i] = gram[i, i] + ridge


@dace.program
def mahalanobis(X: f64[M, N], mean: f64[N], precision: f64[N, N]):
    """The distance of every observation from the mean."""
    centred = X - mean
    return np.sqrt(np.sum((centred @ precision) * centred, axis=1))


# --------------------------------------------------------------------------- tensor contractions


@dace.program
def doitgen(A: f64[R, Q, P], C4: f64[P, S], out: f64[R, Q, S]):
    """The last mode of a tensor times a matrix (multiresolution analysis)."""
    for r, q, s, p in dace.map[0:R, 0:Q, 0:S, 0:P]:
        out[r, q, s] += A[r, q, p] * C4[p, s]


@dace.program
def mttkrp(X: f64[M, K, P], B2: f64[K, R], C2: f64[P, R], out: f64[M, R]):
    """Matricised tensor times Khatri-Rao product: three factors, two contracted indices."""
    for i, r, k, p in dace.map[0:M, 0:R, 0:K, 0:P]:
        out[i, r] += X[i, k, p] * B2[k, r] * C2[p, r]


@dace.program
def spectral_derivative(D: f64[N, N], u: f64[M, N, N, N], du: f64[M, N, N, N]):
    """Spectral elements: derivatives along the three axes of every element, added up."""
    du[:] = (
        np.einsum("ia,eajk->eijk", D, u) + np.einsum("ja,eiak->eijk", D, u) + np.einsum("ka,eija->eijk", D, u)
    )


# --------------------------------------------------------------------------- factorisations


@dace.program
def cholesky(A: f64[N, N]):
    """The lower factor of a symmetric positive definite matrix, in place."""
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, N):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


@dace.program
def lu(A: f64[N, N]):
    """Factors without pivoting, in place."""
    for k in range(N - 1):
        for i in dace.map[k + 1 : N]:
            A[i, k] = A[i, k] / A[k, k]
        for i, j in dace.map[k + 1 : N, k + 1 : N]:
            A[i, j] = A[i, j] - A[i, k] * A[k, j]


@dace.program
def lower_solve(L: f64[N, N], B: f64[N, M]):
    """A lower triangular system with many right-hand sides, in place."""
    for i in range(N):
        for k in range(i):
            B[i, :] -= L[i, k] * B[k, :]
        B[i, :] /= L[i, i]


# --------------------------------------------------------------------------- inputs


def inputs_cholesky(N: int, seed: int) -> dict[str, np.ndarray]:
    return {"A": _dominant(N, seed)}


def inputs_lu(N: int, seed: int) -> dict[str, np.ndarray]:
    return {"A": _dominant(N, seed)}


def inputs_lower_solve(N: int, M: int, seed: int) -> dict[str, np.ndarray]:
    return {"L": _dominant(N, seed) / N, "B": np.random.default_rng(seed).random((N, M))}


def inputs_mahalanobis(M: int, N: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"X": rng.normal(size=(M, N)), "mean": rng.normal(size=N), "precision": _dominant(N, seed)}


def inputs_newton_inverse(N: int, seed: int) -> dict[str, np.ndarray]:
    """A matrix near the unit matrix, and its first approximation."""
    A = np.eye(N) + 0.1 * np.random.default_rng(seed).normal(size=(N, N)) / np.sqrt(N)
    return {"A": A.astype(np.float32), "X": np.eye(N, dtype=np.float32)}


def _dominant(n: int, seed: int) -> np.ndarray:
    """Symmetric and diagonally dominant."""
    A = np.random.default_rng(seed).random((n, n))
    return (A + A.T) / 2 + n * np.eye(n)
