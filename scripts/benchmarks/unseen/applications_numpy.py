"""What a user of NumPy writes where the program in `applications.py` loops over elements."""

import numpy as np


def american_put(value, strike, spot, up, share):
    N = len(value) - 1
    for t in range(N):
        prices = spot * up ** (2 * np.arange(N - t) - (N - t - 1))
        waited = 0.9999 * (share * value[1 : N - t + 1] + (1.0 - share) * value[: N - t])
        value[: N - t] = np.maximum(waited, strike - prices[:, None])


def equalise_histogram(image, out):
    below = np.cumsum(np.bincount(image.reshape(-1), minlength=256)) * 255.0 / image.size
    np.take(below.astype(np.int32), image, out=out)


def power_spectrum(signal):
    """By the fast transform, whose numbers are the same."""
    found = np.fft.rfft(signal, axis=1)
    half = (found.real**2 + found.imag**2) / signal.shape[1]
    return np.hstack([half, half[:, -2 + signal.shape[1] % 2 : 0 : -1]])


def mlp_block(X, W1, b1, W2, b2, Y):
    Y[:] = X + np.maximum(X @ W1 + b1, 0) @ W2 + b2


def group_norm(X, gamma, beta, Y):
    axes = (2, 3, 4)
    scale = gamma[:, :, None, None] / np.sqrt(X.var(axes, keepdims=True) + np.float32(1e-5))
    Y[:] = (X - X.mean(axes, keepdims=True)) * scale + beta[:, :, None, None]
