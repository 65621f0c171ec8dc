"""Pointwise chains of two to about twenty operations, plain and with broadcasting."""

import dace
import numpy as np

M, N, K, B = (dace.symbol(s, dtype=dace.int64) for s in ("M", "N", "K", "B"))
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- chains


@dace.program
def axpy(a: f64, x: f64[N], y: f64[N]):
    """y += a x."""
    y[:] = a * x + y


@dace.program
def fma_relu(A: f32[M, N], B2: f32[M, N], C: f32[M, N], D: f32[M, N]):
    """D = max(A * B + C, 0), four streams."""
    for i, j in dace.map[0:M, 0:N]:
        D[i, j] = max(A[i, j] * B2[i, j] + C[i, j], np.float32(0))


@dace.program
def sigmoid(X: f32[M, N], Y: f32[M, N]):
    """The logistic function."""
    Y[:] = 1.0 / (1.0 + np.exp(-X))


@dace.program
def gelu(X: f32[N], Y: f32[N]):
    """GELU in its tanh form."""
    Y[:] = 0.5 * X * (1.0 + np.tanh(0.7978846 * (X + 0.044715 * X * X * X)))


@dace.program
def horner(X: f64[N], Y: f64[N]):
    """A polynomial of degree seven."""
    for i in dace.map[0:N]:
        x = X[i]
        Y[i] = 1.0 + x * (0.5 + x * (0.25 + x * (0.12 + x * (0.06 + x * (0.03 + x * (0.015 + x * 0.008))))))


@dace.program
def adam_update(p: f32[N], g: f32[N], m: f32[N], v: f32[N]):
    """One step of the Adam optimiser, three arrays updated in place."""
    m[:] = 0.9 * m + 0.1 * g
    v[:] = 0.999 * v + 0.001 * g * g
    p[:] = p - 0.001 * m / (np.sqrt(v) + 1e-8)


@dace.program
def complex_product(ar: f32[N], ai: f32[N], br: f32[N], bi: f32[N], cr: f32[N], ci: f32[N]):
    """Complex numbers stored as two arrays."""
    for i in dace.map[0:N]:
        cr[i] = ar[i] * br[i] - ai[i] * bi[i]
        ci[i] = ar[i] * bi[i] + ai[i] * br[i]


@dace.program
def soft_threshold(lam: f64, X: f64[M, N], Y: f64[M, N]):
    """Shrink towards zero, as in sparse coding: a select between three cases."""
    Y[:] = np.where(lam < X, X - lam, np.where(X + lam < 0.0, X + lam, 0.0))


@dace.program
def option_price(S: f64[N], strike: f64[N], years: f64[N], call: f64[N]):
    """Black-Scholes call price with a logistic approximation of the normal distribution."""
    root = 0.3 * np.sqrt(years + 0.1)
    d1 = (np.log((S + 0.5) / (strike + 0.5)) + 0.065 * (years + 0.1)) / root
    d2 = d1 - root
    n1 = 1.0 / (1.0 + np.exp(-1.5976 * d1 - 0.07056 * d1 * d1 * d1))
    n2 = 1.0 / (1.0 + np.exp(-1.5976 * d2 - 0.07056 * d2 * d2 * d2))
    call[:] = (S + 0.5) * n1 - (strike + 0.5) * np.exp(-0.02 * (years + 0.1)) * n2


# --------------------------------------------------------------------------- with broadcasting


@dace.program
def bias_relu(X: f32[M, N], b: f32[N], Y: f32[M, N]):
    """Bias per column, then ReLU."""
    Y[:] = np.maximum(X + b, 0.0)


@dace.program
def standardise(X: f64[M, N], mean: f64[N], std: f64[N], Y: f64[M, N]):
    """Shift and scale of columns, loops written with the strided axis innermost."""
    for j, i in dace.map[0:N, 0:M]:
        Y[i, j] = (X[i, j] - mean[j]) / (std[j] + 0.1)


@dace.program
def scale_rows(d: f64[M], X: f64[M, N], Y: f64[M, N]):
    """diag(d) X."""
    for i, j in dace.map[0:M, 0:N]:
        Y[i, j] = d[i] * X[i, j]


@dace.program
def shortest_path_step(D: f64[N, N], column: f64[N], row: f64[N]):
    """One step of Floyd-Warshall: D = min(D, column + row)."""
    for i, j in dace.map[0:N, 0:N]:
        D[i, j] = min(D[i, j], column[i] + row[j])


@dace.program
def channel_affine(X: f32[B, K, M, N], w: f32[K], b: f32[K], Y: f32[B, K, M, N]):
    """Scale and shift per channel of an image batch."""
    for n, c, i, j in dace.map[0:B, 0:K, 0:M, 0:N]:
        Y[n, c, i, j] = X[n, c, i, j] * w[c] + b[c]


@dace.program
def rotary_embedding(X: f32[B, M, 2 * K], c: f32[M, K], s: f32[M, K], Y: f32[B, M, 2 * K]):
    """Rotation of the even and odd features of every position, as in transformer attention."""
    for b, i, k in dace.map[0:B, 0:M, 0:K]:
        Y[b, i, 2 * k] = X[b, i, 2 * k] * c[i, k] - X[b, i, 2 * k + 1] * s[i, k]
        Y[b, i, 2 * k + 1] = X[b, i, 2 * k] * s[i, k] + X[b, i, 2 * k + 1] * c[i, k]
