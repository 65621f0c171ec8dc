"""The kernels of `dnn.py` in PyTorch: its fused operators where it has them, on views of the same arrays.

Each returns what it computed, by name; nothing is copied for the comparison's sake.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def masked_softmax(scores, mask):
    return {"weights": torch.softmax(torch.add(mask, scores, alpha=0.125), dim=2)}


def layer_norm_residual(x, residual, gamma, beta):
    return {"out": F.layer_norm(x + residual, x.shape[1:], gamma, beta)}


def attention(q, k, v):
    return {"out": F.scaled_dot_product_attention(q[None], k[None], v[None])[0]}


def mlp(x, w1, b1, w2, b2):
    hidden = F.gelu(torch.addmm(b1, x, w1), approximate="tanh")
    return {"out": torch.addmm(b2, hidden, w2).add_(x)}


def gated_mlp(x, w_gate, w_up, w_down):
    return {"out": F.silu(x @ w_gate).mul_(x @ w_up) @ w_down}


def conv2d(x, w, bias):
    # Channels last is how torch calls this layout; the permuted views are contiguous in it.
    y = F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), bias)
    return {"out": y.relu_().permute(0, 2, 3, 1)}


def conv2d_strided(x, w, scale, shift):
    y = F.conv2d(x, w, stride=2)
    return {"out": y.mul_(scale[:, None, None]).add_(shift[:, None, None]).relu_()}


def depthwise_separable(x, w_depth, b_depth, w_point):
    channels = len(w_point)
    weight = w_depth.permute(2, 0, 1)[:, None]
    y = F.conv2d(x.permute(0, 3, 1, 2), weight, b_depth, groups=channels)
    y = F.conv2d(F.relu6(y, inplace=True), w_point.t()[:, :, None, None])
    return {"out": y.permute(0, 2, 3, 1)}


def batch_norm(x, gamma, beta):
    return {"out": F.batch_norm(x, None, None, gamma, beta, training=True, eps=1e-5).relu_()}


def cross_entropy(logits, labels):
    return {"loss": F.cross_entropy(logits, labels, reduction="none")}
