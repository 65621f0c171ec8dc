"""What a user of NumPy and SciPy writes where the program in `linear_algebra.py` loops over elements."""

import numpy as np
import scipy.linalg


def matrix_polynomial(c, A, out):
    square = A @ A
    out[:] = c[1] * A + c[2] * square + c[3] * (square @ A)
    out[np.diag_indices(len(A))] += c[0]


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * A.T @ y + z
    w[:] = alpha * A @ x


def weighted_gram(X, weights, ridge, gram):
    np.matmul(X.T * weights, X, out=gram)
    gram[np.diag_indices(len(gram))] += ridge


def doitgen(A, C4, out):
    out += A @ C4


def mttkrp(X, B2, C2, out):
    out += np.einsum("ikr,kr->ir", X @ C2, B2)


def spectral_derivative(D, u, du):
    n = len(D)
    np.matmul(D, u.reshape(-1, n, n * n), out=du.reshape(-1, n, n * n))
    du += D @ u
    du += u @ D.T


def cholesky(A):
    lower = np.tril_indices(len(A))
    A[lower] = scipy.linalg.cholesky(A, lower=True, check_finite=False)[lower]


def lu(A):
    """In blocks, as LAPACK does."""
    block = 64
    for k in range(0, len(A), block):
        end = min(k + block, len(A))
        corner = A[k:end, k:end]
        for i in range(end - k - 1):
            corner[i + 1 :, i] /= corner[i, i]
            corner[i + 1 :, i + 1 :] -= np.outer(corner[i + 1 :, i], corner[i, i + 1 :])
        if end < len(A):
            solve = scipy.linalg.solve_triangular
            A[k:end, end:] = solve(corner, A[k:end, end:], lower=True, unit_diagonal=True, check_finite=False)
            A[end:, k:end] = solve(corner, A[end:, k:end].T, trans="T", check_finite=False).T
            A[end:, end:] -= A[end:, k:end] @ A[k:end, end:]


def lower_solve(L, B):
    B[:] = scipy.linalg.solve_triangular(L, B, lower=True, check_finite=False)
