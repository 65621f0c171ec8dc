"""The compositions of `linalg.py` in NumPy, whose products are those of its BLAS."""

from __future__ import annotations

import numpy as np


def gemm_chain(A, B, C, D, out):
    np.matmul(A @ B @ C, D, out=out)


def two_mm(alpha, beta, A, B, C, D):
    D *= beta
    D += alpha * A @ B @ C


def three_mm(A, B, C, D, out):
    np.matmul(A @ B, C @ D, out=out)


def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


def atax(A, x, y):
    np.matmul(A @ x, A, out=y)


def bicg(A, p, r, s, q):
    np.matmul(r, A, out=s)
    np.matmul(A, p, out=q)


def mvt(A, x1, x2, y1, y2):
    x1 += A @ y1
    x2 += y2 @ A


def doitgen(A, C4):
    A[:] = A @ C4


def mttkrp(X, B, C, out):
    np.einsum("ikr,kr->ir", X @ C, B, out=out)


def covariance(data, cov):
    centred = data - data.mean(axis=0)
    np.matmul(centred.T, centred, out=cov)
    cov /= len(data) - 1


def correlation(data, corr):
    centred = data - data.mean(axis=0)
    standard = centred / np.sqrt((centred * centred).sum(axis=0))
    np.matmul(standard.T, standard, out=corr)
