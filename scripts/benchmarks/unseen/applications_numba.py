"""The programs of `applications.py` as one writes them in Numba."""

import math

import numba
import numpy as np
from numba import prange

jit = numba.njit(parallel=True, fastmath=True, cache=True)


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


@jit
def asian_option(noise, spot, strike, drift, volatility):
    STEPS, N = noise.shape
    block = 512
    payoff = 0.0
    for part in prange((N + block - 1) // block):
        first, last = part * block, min(N, (part + 1) * block)
        price, total = np.full(last - first, spot), np.zeros(last - first)
        for step in range(STEPS):
            for i in range(last - first):
                price[i] *= math.exp(drift + volatility * noise[step, first + i])
                total[i] += price[i]
        found = 0.0
        for i in range(last - first):
            found += max(total[i] / STEPS - strike, 0.0)
        payoff += found
    return payoff / N


@jit
def american_put(value, strike, spot, up, share):
    """Every thread has strikes of its own."""
    N, M = value.shape[0] - 1, value.shape[1]
    powers = np.empty(2 * N + 1)
    for i in range(2 * N + 1):
        powers[i] = spot * up ** float(i - N)
    parts = numba.get_num_threads()
    for part in prange(parts):
        first, last = part * M // parts, (part + 1) * M // parts
        for t in range(N):
            for i in range(N - t):
                price = powers[N + 2 * i - (N - t - 1)]
                for m in range(first, last):
                    waited = 0.9999 * (share * value[i + 1, m] + (1.0 - share) * value[i, m])
                    value[i, m] = max(waited, strike[m] - price)


@jit
def equalise_histogram(image, out):
    M, N = image.shape
    parts = numba.get_num_threads()
    counts = np.zeros((parts, 256), np.int64)
    for part in prange(parts):
        for i in range(part * M // parts, (part + 1) * M // parts):
            for j in range(N):
                counts[part, image[i, j]] += 1
    levels, below = np.empty(256, np.int32), 0
    for level in range(256):
        below += counts[:, level].sum()
        levels[level] = np.int32(below * 255.0 / (M * N))
    for i in prange(M):
        for j in range(N):
            out[i, j] = levels[image[i, j]]


@jit
def gaussian_blur(image, weights, out):
    M, N = image.shape
    for i in prange(M):
        out[i] = 0
        if 2 <= i < M - 2:
            row = np.empty(N, np.float32)
            for j in range(N):
                row[j] = (
                    weights[0] * image[i - 2, j] + weights[1] * image[i - 1, j] + weights[2] * image[i, j]
                    + weights[3] * image[i + 1, j] + weights[4] * image[i + 2, j]
                )  # fmt: skip
            for j in range(2, N - 2):
                out[i, j] = (
                    weights[0] * row[j - 2] + weights[1] * row[j - 1] + weights[2] * row[j]
                    + weights[3] * row[j + 1] + weights[4] * row[j + 2]
                )  # fmt: skip


@numba.njit(fastmath=True, cache=True)
def power_spectrum(signal):
    N = signal.shape[1]
    cosines, sines = np.empty((N, N)), np.empty((N, N))
    table = 2.0 * math.pi / N * np.arange(N)
    cosine, sine = np.cos(table), np.sin(table)
    for i in range(N):
        for k in range(N):
            cosines[i, k], sines[i, k] = cosine[i * k % N], sine[i * k % N]
    real, imaginary = signal @ cosines, signal @ sines
    return (real * real + imaginary * imaginary) / N


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


@numba.njit(fastmath=True, cache=True)
def gated_recurrence(x, U, R, h):
    one = np.float32(1)
    for t in range(x.shape[0]):
        gate = one / (one + np.exp(-(x[t] + h @ U)))
        candidate = np.tanh(x[t] + (gate * h) @ R)
        h[:] = (one - gate) * h + gate * candidate
