"""Finance and fractals, images and signals, machine learning.

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

B, C, D, G, H, K, M, N, STEPS, W = (
    dace.symbol(s, dtype=dace.int64) for s in ("B", "C", "D", "G", "H", "K", "M", "N", "STEPS", "W")
)
f32, f64, i32 = dace.float32, dace.float64, dace.int32

# --------------------------------------------------------------------------- finance and fractals


@dace.program
def mandelbrot(cr: f64[M, N], ci: f64[M, N], norm: f64[M, N]):
    """Norm after a few clamped steps of z = z^2 + c, one arithmetic chain per pixel."""
    zr = np.zeros((M, N), dtype=np.float64)
    zi = np.zeros((M, N), dtype=np.float64)
    for _step in range(STEPS):
        re = zr * zr - zi * zi + cr
        im = 2.0 * zr * zi + ci
        zr[:] = np.minimum(np.maximum(re, -2.0), 2.0)
        zi[:] = np.minimum(np.maximum(im, -2.0), 2.0)
    norm[:] = zr * zr + zi * zi


@dace.program
def asian_option(noise: f64[STEPS, N], spot: f64, strike: f64, drift: f64, volatility: f64):
    """The price of an option on the mean of a share, over given random paths."""
    price = np.full((N,), spot, dtype=np.float64)
    total = np.zeros((N,), dtype=np.float64)
    for step in range(STEPS):
        price[:] = price * np.exp(drift + volatility * noise[step])
        total += price
    payoff = np.maximum(total / STEPS - strike, 0.0)
    return np.mean(payoff)


@dace.program
def american_put(value: f64[N + 1, M], strike: f64[M], spot: f64, up: f64, share: f64):
    """Puts of many strikes on a tree of prices, folded from its leaves to its root, in place."""
    for t in range(N):
        value[: N - t] = 0.9999 * (share * value[1 : N - t + 1] + (1.0 - share) * value[: N - t])
        for i, m in dace.map[0 : N - t, 0:M]:
            value[i, m] = max(value[i, m], strike[m] - spot * up ** (2 * i - (N - t - 1)))


# --------------------------------------------------------------------------- images and signals


@dace.program
def equalise_histogram(image: i32[M, N], out: i32[M, N]):
    """Grey levels spread evenly: count, add up, look up."""
    counts = np.zeros((256,), dtype=np.int32)
    below = np.zeros((256,), dtype=np.int32)
    for i, j in dace.map[0:M, 0:N]:
        counts[image[i, j]] += 1
    below[0] = counts[0]
    for level in range(1, 256):
        below[level] = below[level - 1] + counts[level]
    for i, j in dace.map[0:M, 0:N]:
        out[i, j] = (below[image[i, j]] * 255.0) / (M * N)


@dace.program
def gaussian_blur(image: f32[M, N], weights: f32[5], out: f32[M, N]):
    """A separable filter of five taps along columns, then along rows."""
    columns = np.zeros((M, N), dtype=np.float32)
    for k in range(5):
        columns[2:-2, :] += weights[k] * image[k : M - 4 + k, :]
    out[:] = 0
    for k in range(5):
        out[2:-2, 2:-2] += weights[k] * columns[2:-2, k : N - 4 + k]


@dace.program
def power_spectrum(signal: f64[M, N]):
    """Of every signal, by the definition of Fourier's transform."""
    angle = np.empty((N, N), dtype=np.float64)
    for i, k in dace.map[0:N, 0:N]:
        angle[i, k] = 6.283185307179586 * ((i * k) % N) / N
    real = signal @ np.cos(angle)
    imaginary = signal @ np.sin(angle)
    return (real * real + imaginary * imaginary) / N


# --------------------------------------------------------------------------- machine learning


@dace.program
def mlp_block(X: f32[B, M, K], W1: f32[K, N], b1: f32[N], W2: f32[N, K], b2: f32[K], Y: f32[B, M, K]):
    """Feed-forward block of a transformer: product, bias, ReLU, product, bias, residual."""
    hidden = np.maximum(np.einsum("bmk,kn->bmn", X, W1) + b1, 0.0)
    Y[:] = X + np.einsum("bmn,nk->bmk", hidden, W2) + b2


@dace.program
def group_norm(X: f32[B, G, C, H, W], gamma: f32[G, C], beta: f32[G, C], Y: f32[B, G, C, H, W]):
    """Every group of channels of every image to zero mean and unit variance, then scale and shift."""
    mean = np.mean(X, axis=(2, 3, 4))
    square = np.mean(X * X, axis=(2, 3, 4))
    for n, g, c, i, j in dace.map[0:B, 0:G, 0:C, 0:H, 0:W]:
        scale = gamma[g, c] / np.sqrt(square[n, g] - mean[n, g] * mean[n, g] + np.float32(1e-5))
        Y[n, g, c, i, j] = (X[n, g, c, i, j] - mean[n, g]) * scale + beta[g, c]


@dace.program
def gated_recurrence(x: f32[STEPS, B, D], U: f32[D, D], R: f32[D, D], h: f32[B, D]):
    """A minimal gated recurrent unit over a sequence: the state is updated in place."""
    for t in range(STEPS):
        gate = 1 / (1 + np.exp(-(x[t] + h @ U)))
        candidate = np.tanh(x[t] + (gate * h) @ R)
        h[:] = (1 - gate) * h + gate * candidate


# --------------------------------------------------------------------------- inputs


def inputs_mandelbrot(M: int, N: int, STEPS: int) -> dict[str, np.ndarray]:
    ci, cr = np.meshgrid(np.linspace(-1.2, 1.2, M), np.linspace(-2.0, 0.6, N), indexing="ij")
    return {"cr": cr, "ci": ci}


def inputs_asian_option(STEPS: int, N: int, seed: int) -> dict[str, np.ndarray | float]:
    noise = np.random.default_rng(seed).normal(size=(STEPS, N))
    return {"noise": noise, "spot": 100.0, "strike": 101.0, "drift": 1e-4, "volatility": 0.2 / STEPS**0.5}


def inputs_american_put(N: int, M: int) -> dict[str, np.ndarray | float]:
    spot, up, strike = 100.0, 1.0 + 0.2 / N**0.5, np.linspace(80.0, 120.0, M)
    leaves = spot * up ** (2 * np.arange(N + 1) - N)
    value = np.maximum(strike - leaves[:, None], 0.0)
    return {"value": value, "strike": strike, "spot": spot, "up": up, "share": 0.5}


def inputs_equalise_histogram(M: int, N: int, seed: int) -> dict[str, np.ndarray]:
    """A dark picture."""
    return {"image": (256 * np.random.default_rng(seed).random((M, N)) ** 3).astype(np.int32)}


def inputs_power_spectrum(M: int, N: int, seed: int) -> dict[str, np.ndarray]:
    return {"signal": np.random.default_rng(seed).normal(size=(M, N))}


def inputs_mlp_block(B: int, M: int, K: int, N: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"X": (B, M, K), "W1": (K, N), "b1": (N,), "W2": (N, K), "b2": (K,)}
    return {
        name: (rng.normal(size=shape) / shape[0] ** 0.5).astype(np.float32) for name, shape in shapes.items()
    }


def inputs_gated_recurrence(STEPS: int, B: int, D: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, weights = rng.normal(size=(STEPS, B, D)), rng.normal(size=(2, D, D)) / D**0.5
    state = {"x": x, "U": weights[0], "R": weights[1], "h": np.zeros((B, D))}
    return {name: value.astype(np.float32) for name, value in state.items()}
