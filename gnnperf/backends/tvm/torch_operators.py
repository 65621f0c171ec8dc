"""The operators of `gnnperf.frontends.tvm.workloads` as PyTorch has them: what else one would have called.

Loaded by path in a process of its own (`gnnperf.measure.competitor_process`), which hands over the inputs x0,
x1, ... in the order of the TVM function. What can be done once is done once: weights are brought into the
layout that oneDNN wants outside of the timing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Call = Callable[[], Tensor]

_calls: dict[tuple[int, ...], Call] = {}


def one(x0: Tensor, kind: str, params: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """An operator of one input."""
    return _run(kind, params, x0)


def two(x0: Tensor, x1: Tensor, kind: str, params: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Of two."""
    return _run(kind, params, x0, x1)


def three(x0: Tensor, x1: Tensor, x2: Tensor, kind: str, params: Mapping[str, Any]) -> Mapping[str, Tensor]:
    """Of three."""
    return _run(kind, params, x0, x1, x2)


def _run(kind: str, params: Mapping[str, Any], *arrays: Tensor) -> Mapping[str, Tensor]:
    key = tuple(array.data_ptr() for array in arrays)
    call = _calls.get(key)
    if call is None:
        call = _calls[key] = OPERATORS[kind](*arrays, **params)
    return {"out": call()}


# --------------------------------------------------------------------------- products


def _matmul(a: Tensor, b: Tensor, layout: str = "nn", **_: Any) -> Call:
    left = a if layout[0] == "n" else a.mT
    right = b if layout[1] == "n" else b.mT
    return lambda: torch.matmul(left, right)


def _dense(a: Tensor, w: Tensor, bias: Tensor, activation: str = "relu", **_: Any) -> Call:
    if activation == "none":
        return lambda: F.linear(a, w, bias)
    activate = _ACTIVATIONS[activation]
    return lambda: activate(F.linear(a, w, bias))


def _attention_scores(q: Tensor, k: Tensor, depth: int, **_: Any) -> Call:
    keys, factor = k.mT, depth**-0.5
    return lambda: torch.softmax(torch.matmul(q, keys) * factor, -1)


def _attention_values(p: Tensor, v: Tensor, **_: Any) -> Call:
    return lambda: torch.matmul(p, v).transpose(0, 1).contiguous()


_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
}


# --------------------------------------------------------------------------- convolutions


def _convolution(
    data: Tensor,
    weight: Tensor,
    stride: int = 1,
    padding: int = 0,
    groups: int = 1,
    layout: str = "",
    **_: Any,
) -> Call:
    rank = data.dim() - 2
    convolve: Any = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
    last = layout.endswith("C") if layout else groups == 1  # as of the TVM functions
    if last:
        data = data.movedim(-1, 1)
        weight = weight.movedim((-1, -2), (0, 1))
        weight = weight.contiguous(memory_format=_LAST[rank]) if rank in _LAST else weight.contiguous()
        return lambda: convolve(data, weight, None, stride, padding, 1, groups).movedim(1, -1)
    return lambda: convolve(data, weight, None, stride, padding, 1, groups)


_LAST = {2: torch.channels_last, 3: torch.channels_last_3d}


def _depthwise(
    data: Tensor, weight: Tensor, c: int, stride: int = 1, padding: int = 0, layout: str = "NHWC", **_: Any
) -> Call:
    if layout == "NCHW":
        filters = weight.unsqueeze(1)
        return lambda: F.conv2d(data, filters, None, stride, padding, 1, c)
    pictures = data.permute(0, 3, 1, 2)
    filters = weight.permute(2, 0, 1).unsqueeze(1).contiguous(memory_format=torch.channels_last)
    return lambda: F.conv2d(pictures, filters, None, stride, padding, 1, c).permute(0, 2, 3, 1)


def _transposed(data: Tensor, weight: Tensor, stride: int, padding: int = 0, **_: Any) -> Call:
    return lambda: F.conv_transpose2d(data, weight, None, stride, padding)


# --------------------------------------------------------------------------- rows


def _reduce(data: Tensor, op: str, axis: int, **_: Any) -> Call:
    if op == "mean_square":
        return lambda: data.square().mean(axis)
    work: Any = {"sum": torch.sum, "max": torch.amax, "min": torch.amin}[op]
    return lambda: work(data, axis)


def _softmax(data: Tensor, axis: int = 1, **_: Any) -> Call:
    return lambda: torch.softmax(data, axis)


def _layer_norm(data: Tensor, gamma: Tensor, beta: Tensor, **_: Any) -> Call:
    return lambda: F.layer_norm(data, gamma.shape, gamma, beta, 1e-5)


def _rms_norm(data: Tensor, weight: Tensor, **_: Any) -> Call:
    return lambda: F.rms_norm(data, list(weight.shape), weight, 1e-5)


def _group_norm(data: Tensor, gamma: Tensor, beta: Tensor, groups: int, **_: Any) -> Call:
    return lambda: F.group_norm(data, groups, gamma, beta, 1e-5)


def _pool2d(
    data: Tensor, kernel: int, stride: int, op: str, padding: int = 0, layout: str = "NCHW", **_: Any
) -> Call:
    pictures = data if layout == "NCHW" else data.permute(0, 3, 1, 2)

    def pool() -> Tensor:
        if op == "max":
            return F.max_pool2d(pictures, kernel, stride, padding)
        return F.avg_pool2d(pictures, kernel, stride, padding, count_include_pad=False)

    return pool if layout == "NCHW" else lambda: pool().permute(0, 2, 3, 1)


def _global_pool(data: Tensor, op: str, layout: str = "NCHW", **_: Any) -> Call:
    axes = (2, 3) if layout == "NCHW" else (1, 2)
    work: Any = torch.amax if op == "max" else torch.mean
    return lambda: work(data, axes, keepdim=True)


# --------------------------------------------------------------------------- pointwise


def _elementwise(*arrays: Tensor, chain: str, **_: Any) -> Call:
    a, b = arrays[:2]
    last = arrays[-1]
    chains: dict[str, Call] = {
        "add_relu": lambda: torch.relu(a + b),
        "bias_gelu": lambda: F.gelu(a + b, approximate="tanh"),
        "silu_mul": lambda: F.silu(a) * b,
        "scale_shift": lambda: a * b + last,
        "residual": lambda: a * last + b,
        "tanh_gate": lambda: torch.tanh(a) * b + torch.tanh(a),
    }
    return chains[chain]


def _transpose(data: Tensor, order: tuple[int, ...], **_: Any) -> Call:
    return lambda: data.permute(*order).contiguous()


OPERATORS: Mapping[str, Callable[..., Call]] = {
    "matmul": _matmul,
    "batch_matmul": _matmul,
    "dense": _dense,
    "attention_scores": _attention_scores,
    "attention_values": _attention_values,
    "conv1d": _convolution,
    "conv2d": _convolution,
    "conv3d": _convolution,
    "group_conv2d": _convolution,
    "depthwise_conv2d": _depthwise,
    "conv2d_transpose": _transposed,
    "reduce": _reduce,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "pool2d": _pool2d,
    "global_pool": _global_pool,
    "elementwise": _elementwise,
    "transpose": _transpose,
}
"""Operator kind -> a call of PyTorch on given arrays; kinds of bytes have none."""
