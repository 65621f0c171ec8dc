"""Layers of neural networks with more than one step: MLPs, attention, losses, gates, optimisers."""

import dace
import numpy as np

B, M, N, K, H, C, F, W = (dace.symbol(s, dtype=dace.int64) for s in "BMNKHCFW")
f32, f64 = dace.float32, dace.float64


@dace.program
def linear_relu(X: f32[B, K], V: f32[K, N], b: f32[N], Y: f32[B, N]):
    """One layer of a perceptron."""
    Y[:] = np.maximum(X @ V + b, 0)


@dace.program
def mlp(X: f32[B, K], V: f32[K, N], b: f32[N], U: f32[N, M], Y: f32[B, M]):
    """Two layers, with a rectifier between them."""
    hidden = np.maximum(X @ V + b, 0)
    Y[:] = hidden @ U


@dace.program
def swiglu(gate: f32[B, N], up: f32[B, N], Y: f32[B, N]):
    """The gated activation of transformer blocks."""
    Y[:] = gate / (1.0 + np.exp(-gate)) * up


@dace.program
def linear_backward(X: f32[B, K], dY: f32[B, N], V: f32[K, N], dX: f32[B, K], dV: f32[K, N], db: f32[N]):
    """Gradients of a linear layer: two products, transposed, and a sum over the batch."""
    for i, k, j in dace.map[0:B, 0:K, 0:N]:
        dX[i, k] += dY[i, j] * V[k, j]
    for k, j, i in dace.map[0:K, 0:N, 0:B]:
        dV[k, j] += X[i, k] * dY[i, j]
    for j, i in dace.map[0:N, 0:B]:
        db[j] += dY[i, j]


@dace.program
def attention_head(Q: f32[M, K], Ks: f32[N, K], V: f32[N, K], Y: f32[M, K]):
    """One head: scores, softmax over the keys, weighted values."""
    scores = Q @ Ks.T * 0.125
    e = np.exp(scores - np.max(scores, axis=1)[:, None])
    Y[:] = (e @ V) / np.sum(e, axis=1)[:, None]


@dace.program
def cross_entropy(logits: f32[B, N], target: f32[B, N], loss: f32[B]):
    """Log-softmax against soft targets."""
    z = logits - np.max(logits, axis=1)[:, None]
    log_sum = np.log(np.sum(np.exp(z), axis=1))
    loss[:] = np.sum(target * (log_sum[:, None] - z), axis=1)


@dace.program
def conv_bias_relu(X: f32[B, H, W, C], V: f32[3, 3, C, F], b: f32[F], Y: f32[B, H - 2, W - 2, F]):
    """3x3 convolution, channels last, with what follows it."""
    for n, i, j, f, r, s, c in dace.map[0:B, 0 : H - 2, 0 : W - 2, 0:F, 0:3, 0:3, 0:C]:
        Y[n, i, j, f] += X[n, i + r, j + s, c] * V[r, s, c, f]
    for n, i, j, f in dace.map[0:B, 0 : H - 2, 0 : W - 2, 0:F]:
        Y[n, i, j, f] = max(Y[n, i, j, f] + b[f], np.float32(0))


@dace.program
def lstm_gates(z: f32[B, 4, N], c: f32[B, N], h: f32[B, N]):
    """The pointwise part of an LSTM cell."""
    for b, j in dace.map[0:B, 0:N]:
        i_gate = np.float32(1) / (np.float32(1) + np.exp(-z[b, 0, j]))
        f_gate = np.float32(1) / (np.float32(1) + np.exp(-z[b, 1, j]))
        o_gate = np.float32(1) / (np.float32(1) + np.exp(-z[b, 2, j]))
        c[b, j] = f_gate * c[b, j] + i_gate * np.tanh(z[b, 3, j])
        h[b, j] = o_gate * np.tanh(c[b, j])


@dace.program
def residual_norm(X: f32[M, N], R: f32[M, N], g: f32[N], Y: f32[M, N]):
    """Add the residual, then normalise every row by its root mean square."""
    s = X + R
    scale = 1.0 / np.sqrt(np.mean(s * s, axis=1) + 1e-5)
    Y[:] = s * scale[:, None] * g


@dace.program
def upsample_nearest(X: f32[B, H, W, C], Y: f32[B, 2 * H, 2 * W, C]):
    """Every pixel four times, channels last."""
    for b, i, j, r, s, c in dace.map[0:B, 0:H, 0:W, 0:2, 0:2, 0:C]:
        Y[b, 2 * i + r, 2 * j + s, c] = X[b, i, j, c]


@dace.program
def im2col(X: f32[H + 2, W + 2, C], Y: f32[H, W, 3, 3, C]):
    """Patches of an image as rows of a matrix."""
    for i, j, r, s, c in dace.map[0:H, 0:W, 0:3, 0:3, 0:C]:
        Y[i, j, r, s, c] = X[i + r, j + s, c]
