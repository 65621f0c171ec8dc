"""Softmax-like and norm-like kernels: a reduction, then a pass over the same data."""

import dace
import numpy as np

B, C, H, W, M, N = (dace.symbol(s, dtype=dace.int64) for s in "BCHWMN")
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- softmax


def _softmax_rows(dtype):
    @dace.program
    def softmax_rows(X: dtype[M, N], Y: dtype[M, N]):
        """Softmax along the contiguous axis."""
        largest = np.max(X, axis=1)
        e = np.exp(X - largest[:, None])
        Y[:] = e / np.sum(e, axis=1)[:, None]

    return softmax_rows


softmax_rows, softmax_rows_f32 = _softmax_rows(f64), _softmax_rows(f32)


@dace.program
def softmax_columns(X: f64[M, N], Y: f64[M, N]):
    """Softmax along the strided axis."""
    e = np.exp(X - np.max(X, axis=0))
    Y[:] = e / np.sum(e, axis=0)


@dace.program
def attention_softmax(scale: f32, mask: f32[M, N], X: f32[B, H, M, N], Y: f32[B, H, M, N]):
    """Scaled and masked softmax over the keys of every head."""
    z = scale * X + mask
    e = np.exp(z - np.max(z, axis=3)[:, :, :, None])
    Y[:] = e / np.sum(e, axis=3)[:, :, :, None]


@dace.program
def softmax_gradient(Y: f32[M, N], dY: f32[M, N], dX: f32[M, N]):
    """Backward pass: dX = Y (dY - sum(Y dY))."""
    s = np.sum(Y * dY, axis=1)
    for i, j in dace.map[0:M, 0:N]:
        dX[i, j] = Y[i, j] * (dY[i, j] - s[i])


# --------------------------------------------------------------------------- norms


@dace.program
def layer_norm(X: f32[M, N], gamma: f32[N], beta: f32[N], Y: f32[M, N]):
    """Every row to zero mean and unit variance, then scale and shift."""
    centred = X - np.mean(X, axis=1)[:, None]
    variance = np.mean(centred * centred, axis=1)
    Y[:] = centred / np.sqrt(variance + 1e-5)[:, None] * gamma + beta


@dace.program
def rms_norm(X: f32[M, N], gamma: f32[N], Y: f32[M, N]):
    """Every row divided by its root mean square."""
    scale = 1.0 / np.sqrt(np.mean(X * X, axis=1) + 1e-5)
    Y[:] = X * scale[:, None] * gamma


@dace.program
def batch_norm_inference(
    X: f32[B, C, H, W], mean: f32[C], var: f32[C], g: f32[C], b: f32[C], Y: f32[B, C, H, W]
):
    """Batch normalisation with running statistics."""
    for n, c, i, j in dace.map[0:B, 0:C, 0:H, 0:W]:
        Y[n, c, i, j] = (X[n, c, i, j] - mean[c]) / np.sqrt(var[c] + np.float32(1e-5)) * g[c] + b[c]


@dace.program
def batch_norm_training(X: f32[B, H, W, C], g: f32[C], b: f32[C], Y: f32[B, H, W, C]):
    """Batch normalisation with the statistics of the batch, channels last."""
    centred = X - np.mean(X, axis=(0, 1, 2))
    variance = np.mean(centred * centred, axis=(0, 1, 2))
    Y[:] = centred / np.sqrt(variance + 1e-5) * g + b


@dace.program
def z_score_columns(X: f64[M, N], Y: f64[M, N]):
    """Every column to zero mean and unit standard deviation."""
    centred = X - np.mean(X, axis=0)
    std = np.sqrt(np.mean(centred * centred, axis=0))
    Y[:] = centred / std


@dace.program
def l2_normalise(X: f64[M, N], Y: f64[M, N]):
    """Every row to unit length."""
    length = np.sqrt(np.sum(X * X, axis=1))
    Y[:] = X / length[:, None]
