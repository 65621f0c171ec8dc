"""The kernels of `unseen.py` in Numba, as its users write them: array expressions and products where these
are natural, `prange` over the outermost independent loop elsewhere."""

import math

import numba
import numpy as np
from numba import prange

jit = numba.njit(parallel=True, fastmath=True, cache=True)


@jit
def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    for i in prange(A.shape[0]):
        A[i] += u1[i] * v1 + u2[i] * v2
    x += beta * (y @ A) + z
    w[:] = alpha * (A @ x)


@jit
def covariance(data, cov):
    M = data.shape[0]
    centred = data - np.sum(data, axis=0) / M
    cov[:] = (centred.T @ centred) / (M - 1.0)


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
def horizontal_diffusion(u, coefficient, out):
    M, N, K = out.shape
    lap = np.empty((M + 2, N + 2, K))
    for i in prange(M + 2):
        for j in range(N + 2):
            for k in range(K):
                lap[i, j, k] = 4.0 * u[i + 1, j + 1, k] - (
                    u[i + 2, j + 1, k] + u[i, j + 1, k] + u[i + 1, j + 2, k] + u[i + 1, j, k]
                )
    for i in prange(M):
        for j in range(N):
            for k in range(K):
                here = u[i + 2, j + 2, k]
                right = lap[i + 2, j + 1, k] - lap[i + 1, j + 1, k]
                if right * (u[i + 3, j + 2, k] - here) > 0.0:
                    right = 0.0
                left = lap[i + 1, j + 1, k] - lap[i, j + 1, k]
                if left * (here - u[i + 1, j + 2, k]) > 0.0:
                    left = 0.0
                above = lap[i + 1, j + 2, k] - lap[i + 1, j + 1, k]
                if above * (u[i + 2, j + 3, k] - here) > 0.0:
                    above = 0.0
                below = lap[i + 1, j + 1, k] - lap[i + 1, j, k]
                if below * (here - u[i + 2, j + 1, k]) > 0.0:
                    below = 0.0
                out[i, j, k] = here - coefficient[i, j, k] * (right - left + above - below)


@jit
def vertical_advection(lower, upper, rhs, out):
    K, M, N = lower.shape
    factor = np.empty((K, M, N))
    for i in prange(M):
        for j in range(N):
            factor[0, i, j] = upper[0, i, j] / 4.0
            out[0, i, j] = rhs[0, i, j] / 4.0
        for k in range(1, K):
            for j in range(N):
                pivot = 4.0 - lower[k, i, j] * factor[k - 1, i, j]
                factor[k, i, j] = upper[k, i, j] / pivot
                out[k, i, j] = (rhs[k, i, j] - lower[k, i, j] * out[k - 1, i, j]) / pivot
        for k in range(K - 2, -1, -1):
            for j in range(N):
                out[k, i, j] -= factor[k, i, j] * out[k + 1, i, j]


@jit
def cavity_flow_step(u, v, p, b, un, vn):
    M, N = u.shape
    for i in prange(1, M - 1):
        for j in range(1, N - 1):
            ux, uy = u[i, j + 1] - u[i, j - 1], u[i + 1, j] - u[i - 1, j]
            vx, vy = v[i, j + 1] - v[i, j - 1], v[i + 1, j] - v[i - 1, j]
            b[i, j] = 50.0 * (ux + vy) - 0.25 * (ux * ux + 2.0 * uy * vx + vy * vy)
            sweep = 0.25 * (p[i, j + 1] + p[i, j - 1] + p[i + 1, j] + p[i - 1, j]) - 0.01 * b[i, j]
            un[i, j] = u[i, j] - 0.01 * (u[i, j] * ux + v[i, j] * uy + sweep)
            vn[i, j] = v[i, j] - 0.01 * (u[i, j] * vx + v[i, j] * vy + sweep)


@jit
def mlp_block(X, W1, b1, W2, b2, Y):
    for b in prange(X.shape[0]):
        hidden = np.maximum(X[b] @ W1 + b1, np.float32(0))
        Y[b] = X[b] + hidden @ W2 + b2


@jit
def group_norm(X, gamma, beta, Y):
    B, G, C, H, W = X.shape
    for item in prange(B * G):
        n, g = item // G, item % G
        total = square = np.float32(0)
        for c in range(C):
            for i in range(H):
                for j in range(W):
                    total += X[n, g, c, i, j]
                    square += X[n, g, c, i, j] * X[n, g, c, i, j]
        mean = total / np.float32(C * H * W)
        inverse = np.float32(1) / np.sqrt(square / np.float32(C * H * W) - mean * mean + np.float32(1e-5))
        for c in range(C):
            scale = gamma[g, c] * inverse
            for i in range(H):
                for j in range(W):
                    Y[n, g, c, i, j] = (X[n, g, c, i, j] - mean) * scale + beta[g, c]


@jit
def log_sum_exp(X, out):
    for i in prange(X.shape[0]):
        largest = np.max(X[i])
        total = 0.0
        for j in range(X.shape[1]):
            total += math.exp(X[i, j] - largest)
        out[i] = largest + math.log(total)


@jit
def nbody_accelerations(pos, mass, acc):
    for i in prange(pos.shape[0]):
        ax = ay = az = 0.0
        for j in range(pos.shape[0]):
            dx, dy, dz = pos[j, 0] - pos[i, 0], pos[j, 1] - pos[i, 1], pos[j, 2] - pos[i, 2]
            r2 = dx * dx + dy * dy + dz * dz + 0.01
            force = mass[j] / (r2 * math.sqrt(r2))
            ax += force * dx
            ay += force * dy
            az += force * dz
        acc[i, 0] += ax
        acc[i, 1] += ay
        acc[i, 2] += az


@jit
def sddmm(indptr, indices, values, X, Y, out):
    for i in prange(indptr.shape[0] - 1):
        for k in range(indptr[i], indptr[i + 1]):
            dot = np.float32(0)
            for d in range(X.shape[1]):
                dot += X[i, d] * Y[indices[k], d]
            out[k] += values[k] * dot


@jit
def gcn_layer(indptr, indices, values, X, T, out):
    projected = X @ T
    for i in prange(out.shape[0]):
        out[i] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            for f in range(out.shape[1]):
                out[i, f] += values[k] * projected[indices[k], f]
        for f in range(out.shape[1]):
            out[i, f] = max(out[i, f], np.float32(0))


@jit
def mandelbrot(cr, ci, norm, STEPS):
    M, N = cr.shape
    for i in prange(M):
        for j in range(N):
            zr = zi = 0.0
            for _ in range(STEPS):
                re, im = zr * zr - zi * zi + cr[i, j], 2.0 * zr * zi + ci[i, j]
                zr, zi = min(max(re, -2.0), 2.0), min(max(im, -2.0), 2.0)
            norm[i, j] = zr * zr + zi * zi
