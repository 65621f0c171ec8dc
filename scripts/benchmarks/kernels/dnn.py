"""Pieces of neural networks, as a NumPy user writes them, in the sizes of common models (fp32).

No `from __future__ import annotations` here: DaCe reads annotations as values.
"""

import dace
import numpy as np

B, C, D, F, H, T, W = (dace.symbol(s, dtype=dace.int64) for s in "BCDFHTW")
f32, i64 = dace.float32, dace.int64

SIZES = {
    "masked_softmax": {"H": 24, "T": 320},
    "layer_norm_residual": {"T": 2048, "D": 768},
    "attention": {"H": 8, "T": 384, "D": 64},
    "mlp": {"T": 256, "D": 512, "F": 2048},
    "gated_mlp": {"T": 192, "D": 512, "F": 1376},
    "conv2d": {"B": 4, "H": 56, "W": 56, "C": 64, "F": 64},
    "conv2d_strided": {"B": 4, "C": 64, "H": 28, "W": 28, "F": 128},
    "depthwise_separable": {"B": 4, "H": 56, "W": 56, "C": 96, "F": 128},
    "batch_norm": {"B": 16, "C": 64, "H": 56, "W": 56},
    "cross_entropy": {"B": 2048, "C": 1000},
}

# --------------------------------------------------------------------------- transformers


@dace.program
def masked_softmax(scores: f32[H, T, T], mask: f32[T, T], weights: f32[H, T, T]):
    """Attention weights: scaled scores and an additive mask, softmax over the keys."""
    z = scores * np.float32(0.125) + mask
    e = np.exp(z - np.max(z, axis=2)[:, :, np.newaxis])
    weights[:] = e / np.sum(e, axis=2)[:, :, np.newaxis]


@dace.program
def layer_norm_residual(x: f32[T, D], residual: f32[T, D], gamma: f32[D], beta: f32[D], out: f32[T, D]):
    """Post-norm residual connection: layer norm of a sum."""
    total = x + residual
    centred = total - np.mean(total, axis=1)[:, np.newaxis]
    variance = np.mean(centred * centred, axis=1)
    out[:] = centred / np.sqrt(variance + np.float32(1e-5))[:, np.newaxis] * gamma + beta


@dace.program
def attention(q: f32[H, T, D], k: f32[H, T, D], v: f32[H, T, D], out: f32[H, T, D]):
    """Scaled dot-product attention of all heads."""
    scores = q @ np.transpose(k, (0, 2, 1)) / np.sqrt(np.float32(D))
    e = np.exp(scores - np.max(scores, axis=2)[:, :, np.newaxis])
    out[:] = e / np.sum(e, axis=2)[:, :, np.newaxis] @ v


@dace.program
def mlp(x: f32[T, D], w1: f32[D, F], b1: f32[F], w2: f32[F, D], b2: f32[D], out: f32[T, D]):
    """Feed-forward block with GELU (tanh form) and a residual connection."""
    h = x @ w1 + b1
    g = (
        np.float32(0.5)
        * h
        * (np.float32(1) + np.tanh(np.float32(0.7978846) * (h + np.float32(0.044715) * h * h * h)))
    )
    out[:] = x + g @ w2 + b2


@dace.program
def gated_mlp(x: f32[T, D], w_gate: f32[D, F], w_up: f32[D, F], w_down: f32[F, D], out: f32[T, D]):
    """Feed-forward block with a SiLU gate (SwiGLU)."""
    gate = x @ w_gate
    up = x @ w_up
    out[:] = (gate / (np.float32(1) + np.exp(-gate)) * up) @ w_down


# --------------------------------------------------------------------------- convolutions


@dace.program
def conv2d(x: f32[B, H + 2, W + 2, C], w: f32[3, 3, C, F], bias: f32[F], out: f32[B, H, W, F]):
    """3x3 convolution of a padded image, channels last, with bias and ReLU."""
    total = np.zeros((B, H, W, F), dtype=np.float32)
    for b, i, j, f, r, s, c in dace.map[0:B, 0:H, 0:W, 0:F, 0:3, 0:3, 0:C]:
        total[b, i, j, f] += x[b, i + r, j + s, c] * w[r, s, c, f]
    out[:] = np.maximum(total + bias, np.float32(0))


@dace.program
def conv2d_strided(
    x: f32[B, C, 2 * H + 1, 2 * W + 1], w: f32[F, C, 3, 3], scale: f32[F], shift: f32[F], out: f32[B, F, H, W]
):
    """3x3 convolution of stride two, channels first, with folded batch norm and ReLU."""
    total = np.zeros((B, F, H, W), dtype=np.float32)
    for b, f, i, j, c, r, s in dace.map[0:B, 0:F, 0:H, 0:W, 0:C, 0:3, 0:3]:
        total[b, f, i, j] += x[b, c, 2 * i + r, 2 * j + s] * w[f, c, r, s]
    for b, f, i, j in dace.map[0:B, 0:F, 0:H, 0:W]:
        out[b, f, i, j] = max(total[b, f, i, j] * scale[f] + shift[f], np.float32(0))


@dace.program
def depthwise_separable(
    x: f32[B, H + 2, W + 2, C],
    w_depth: f32[3, 3, C],
    b_depth: f32[C],
    w_point: f32[C, F],
    out: f32[B, H, W, F],
):
    """MobileNet block, channels last: a 3x3 filter per channel, ReLU6, a 1x1 convolution."""
    filtered = np.zeros((B, H, W, C), dtype=np.float32)
    for r in range(3):
        for s in range(3):
            filtered += x[:, r : r + H, s : s + W, :] * w_depth[r, s]
    filtered = np.minimum(np.maximum(filtered + b_depth, np.float32(0)), np.float32(6))
    out[:] = np.einsum("bijc,cf->bijf", filtered, w_point)


# --------------------------------------------------------------------------- normalisation and loss


@dace.program
def batch_norm(x: f32[B, C, H, W], gamma: f32[C], beta: f32[C], out: f32[B, C, H, W]):
    """Batch norm with the statistics of the batch, channels first, then ReLU."""
    mean = np.mean(x, axis=(0, 2, 3))
    square = np.mean(x * x, axis=(0, 2, 3))
    scale = gamma / np.sqrt(square - mean * mean + np.float32(1e-5))
    shift = beta - mean * scale
    for b, c, i, j in dace.map[0:B, 0:C, 0:H, 0:W]:
        out[b, c, i, j] = max(x[b, c, i, j] * scale[c] + shift[c], np.float32(0))


@dace.program
def cross_entropy(logits: f32[B, C], labels: i64[B], loss: f32[B]):
    """Cross entropy of every sample: log-sum-exp of its logits less the logit of its label."""
    largest = np.max(logits, axis=1)
    total = np.sum(np.exp(logits - largest[:, np.newaxis]), axis=1)
    for b in dace.map[0:B]:
        loss[b] = np.log(total[b]) + largest[b] - logits[b, labels[b]]


# --------------------------------------------------------------------------- inputs


def _normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape, np.float32) * np.float32(
        scale
    )


def inputs_masked_softmax(H: int, T: int) -> dict[str, np.ndarray]:
    """A causal mask."""
    mask = np.where(np.tri(T, dtype=bool), np.float32(0), np.float32(-1e9))
    return {"scores": _normal(H, T, T, scale=4.0), "mask": mask}


def inputs_attention(H: int, T: int, D: int) -> dict[str, np.ndarray]:
    return {"q": _normal(H, T, D), "k": _normal(H, T, D, scale=0.9), "v": _normal(H, T, D, scale=1.1)}


def inputs_mlp(T: int, D: int, F: int) -> dict[str, np.ndarray]:
    """Weights scaled as at initialisation, so that activations are of order one."""
    w1, w2 = _normal(D, F, scale=D**-0.5), _normal(F, D, scale=F**-0.5)
    return {"x": _normal(T, D), "w1": w1, "b1": _normal(F), "w2": w2, "b2": _normal(D)}


def inputs_gated_mlp(T: int, D: int, F: int) -> dict[str, np.ndarray]:
    w_gate, w_down = _normal(D, F, scale=D**-0.5), _normal(F, D, scale=F**-0.5)
    return {"x": _normal(T, D), "w_gate": w_gate, "w_up": w_gate[::-1].copy(), "w_down": w_down}


def inputs_cross_entropy(B: int, C: int) -> dict[str, np.ndarray]:
    return {"logits": _normal(B, C, scale=3.0), "labels": np.random.default_rng(0).integers(0, C, B)}
