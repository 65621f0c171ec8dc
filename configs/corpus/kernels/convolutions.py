"""Convolutions in one, two and three dimensions, and pooling; channels first and channels last."""

import dace
import numpy as np

B, C, D, F, H, W, R, S = (dace.symbol(s, dtype=dace.int64) for s in "BCDFHWRS")
f32, f64 = dace.float32, dace.float64

# --------------------------------------------------------------------------- convolutions


@dace.program
def conv_1d(X: f32[B, C, W], K: f32[F, C, R], Y: f32[B, F, W - R + 1]):
    """Channels first."""
    for b, f, i, c, r in dace.map[0:B, 0:F, 0 : W - R + 1, 0:C, 0:R]:
        Y[b, f, i] += X[b, c, i + r] * K[f, c, r]


@dace.program
def conv_2d_nhwc(X: f32[B, H, W, C], K: f32[R, R, C, F], Y: f32[B, H - R + 1, W - R + 1, F]):
    """Channels last."""
    for b, i, j, f, r, s, c in dace.map[0:B, 0 : H - R + 1, 0 : W - R + 1, 0:F, 0:R, 0:R, 0:C]:
        Y[b, i, j, f] += X[b, i + r, j + s, c] * K[r, s, c, f]


@dace.program
def conv_2d_nchw(X: f32[B, C, H, W], K: f32[F, C, R, R], Y: f32[B, F, H - R + 1, W - R + 1]):
    """Channels first."""
    for b, f, i, j, c, r, s in dace.map[0:B, 0:F, 0 : H - R + 1, 0 : W - R + 1, 0:C, 0:R, 0:R]:
        Y[b, f, i, j] += X[b, c, i + r, j + s] * K[f, c, r, s]


@dace.program
def conv_2d_strided(X: f32[B, C, 2 * H + 1, 2 * W + 1], K: f32[F, C, 3, 3], Y: f32[B, F, H, W]):
    """3x3 with stride two, channels first."""
    for b, f, i, j, c, r, s in dace.map[0:B, 0:F, 0:H, 0:W, 0:C, 0:3, 0:3]:
        Y[b, f, i, j] += X[b, c, 2 * i + r, 2 * j + s] * K[f, c, r, s]


@dace.program
def conv_2d_pointwise(X: f32[B, H, W, C], K: f32[C, F], Y: f32[B, H, W, F]):
    """1x1 over channels last: a matrix product with a four-dimensional operand."""
    for b, i, j, f, c in dace.map[0:B, 0:H, 0:W, 0:F, 0:C]:
        Y[b, i, j, f] += X[b, i, j, c] * K[c, f]


@dace.program
def depthwise_nhwc(X: f32[B, H, W, C], K: f32[R, R, C], Y: f32[B, H - R + 1, W - R + 1, C]):
    """One filter per channel, channels last."""
    for b, i, j, c, r, s in dace.map[0:B, 0 : H - R + 1, 0 : W - R + 1, 0:C, 0:R, 0:R]:
        Y[b, i, j, c] += X[b, i + r, j + s, c] * K[r, s, c]


@dace.program
def depthwise_nchw(X: f32[B, C, H, W], K: f32[C, R, R], Y: f32[B, C, H - R + 1, W - R + 1]):
    """One filter per channel, channels first."""
    for b, c, i, j, r, s in dace.map[0:B, 0:C, 0 : H - R + 1, 0 : W - R + 1, 0:R, 0:R]:
        Y[b, c, i, j] += X[b, c, i + r, j + s] * K[c, r, s]


@dace.program
def image_filter(X: f64[H, W], K: f64[R, S], Y: f64[H - R + 1, W - S + 1]):
    """One large filter over one image."""
    for i, j, r, s in dace.map[0 : H - R + 1, 0 : W - S + 1, 0:R, 0:S]:
        Y[i, j] += X[i + r, j + s] * K[r, s]


@dace.program
def conv_3d(X: f32[B, C, D, H, W], K: f32[F, C, 3, 3, 3], Y: f32[B, F, D - 2, H - 2, W - 2]):
    """3x3x3, channels first."""
    for b, f, d, i, j, c, q, r, s in dace.map[0:B, 0:F, 0 : D - 2, 0 : H - 2, 0 : W - 2, 0:C, 0:3, 0:3, 0:3]:
        Y[b, f, d, i, j] += X[b, c, d + q, i + r, j + s] * K[f, c, q, r, s]


# --------------------------------------------------------------------------- pooling


@dace.program
def max_pool_nhwc(X: f32[B, 2 * H, 2 * W, C], Y: f32[B, H, W, C]):
    """2x2 maximum, channels last."""
    for b, i, j, c in dace.map[0:B, 0:H, 0:W, 0:C]:
        top = max(X[b, 2 * i, 2 * j, c], X[b, 2 * i, 2 * j + 1, c])
        Y[b, i, j, c] = max(top, max(X[b, 2 * i + 1, 2 * j, c], X[b, 2 * i + 1, 2 * j + 1, c]))


@dace.program
def average_pool_nchw(X: f32[B, C, 2 * H + 1, 2 * W + 1], Y: f32[B, C, H, W]):
    """3x3 mean with stride two, channels first."""
    for b, c, i, j, r, s in dace.map[0:B, 0:C, 0:H, 0:W, 0:3, 0:3]:
        Y[b, c, i, j] += X[b, c, 2 * i + r, 2 * j + s] / np.float32(9)


@dace.program
def global_average_pool(X: f32[B, C, H, W], Y: f32[B, C]):
    """Mean of every channel."""
    Y[:] = np.mean(X, axis=(2, 3))


@dace.program
def sum_pool_3d(X: f64[2 * D, 2 * H, 2 * W], Y: f64[D, H, W]):
    """Restriction of a multigrid method: the mean of eight fine cells."""
    for d, i, j, q, r, s in dace.map[0:D, 0:H, 0:W, 0:2, 0:2, 0:2]:
        Y[d, i, j] += 0.125 * X[2 * d + q, 2 * i + r, 2 * j + s]
