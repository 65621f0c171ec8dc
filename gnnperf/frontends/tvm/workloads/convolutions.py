"""Convolutions in one, two and three dimensions, dense, grouped, depthwise and transposed. float32, with
square kernels and the same stride and zero padding on all sides. Weights keep the layout they are given in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def conv1d(
    length: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0, batch: int = 1,
    layout: str = "NWC",
) -> Any:  # fmt: skip
    """layout: NWC (weights WIO) or NCW (weights OIW)."""
    return _convolution(batch, (length,), ci, co, kernel, stride, padding, 1, layout == "NWC")


def conv2d(
    h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0, batch: int = 1,
    layout: str = "NHWC", dtype: str = "float32",
) -> Any:  # fmt: skip
    """layout: NHWC (weights HWIO) or NCHW (weights OIHW). dtype: of data and weights; sums are float32."""
    return _convolution(batch, (h, w), ci, co, kernel, stride, padding, 1, layout == "NHWC", dtype)


def group_conv2d(
    h: int, w: int, ci: int, co: int, kernel: int, groups: int, stride: int = 1, padding: int = 0,
    batch: int = 1, layout: str = "NCHW",
) -> Any:  # fmt: skip
    """Output channels see the input channels of their group only."""
    return _convolution(batch, (h, w), ci, co, kernel, stride, padding, groups, layout == "NHWC")


def conv3d(
    d: int, h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, padding: int = 0, batch: int = 1,
    layout: str = "NDHWC",
) -> Any:  # fmt: skip
    """layout: NDHWC (weights DHWIO) or NCDHW (weights OIDHW)."""
    return _convolution(batch, (d, h, w), ci, co, kernel, stride, padding, 1, layout == "NDHWC")


def depthwise_conv2d(
    h: int, w: int, c: int, kernel: int, stride: int = 1, padding: int = 0, batch: int = 1,
    layout: str = "NHWC",
) -> Any:  # fmt: skip
    """One filter per channel. layout: NHWC (weights HWC) or NCHW (weights CHW)."""
    from tvm import te

    last = layout == "NHWC"
    data = te.placeholder((batch, h, w, c) if last else (batch, c, h, w), name="data")
    weight = te.placeholder((kernel, kernel, c) if last else (c, kernel, kernel), name="weight")
    source = _padded(data, padding, last)
    rh, rw = (te.reduce_axis((0, kernel), name=name) for name in ("rh", "rw"))

    def element(*index: Any) -> Any:
        n, position, channel = _parts(index, last)
        y, x = position[0] * stride + rh, position[1] * stride + rw
        if last:
            return te.sum(source[n, y, x, channel] * weight[rh, rw, channel], axis=[rh, rw])
        return te.sum(source[n, channel, y, x] * weight[channel, rh, rw], axis=[rh, rw])

    shape = _shape(batch, [_steps(s, kernel, stride, padding) for s in (h, w)], c, last)
    return te.create_prim_func([data, weight, te.compute(shape, element, name="out")])


def conv2d_transpose(
    h: int, w: int, ci: int, co: int, kernel: int, stride: int, padding: int = 0, batch: int = 1
) -> Any:
    """What takes the gradient of an NCHW convolution back to its input. Weights IOHW."""
    from tvm import te, topi

    data = te.placeholder((batch, ci, h, w), name="data")
    weight = te.placeholder((ci, co, kernel, kernel), name="weight")
    out = topi.nn.conv2d_transpose_nchw(data, weight, (stride, stride), (padding,) * 4, "float32", (0, 0))
    return te.create_prim_func([data, weight, out])


def _convolution(
    batch: int, sizes: Sequence[int], ci: int, co: int, kernel: int, stride: int, padding: int, groups: int,
    last: bool, dtype: str = "float32",
) -> Any:  # fmt: skip
    """last: channels are the last axis of data and weights, else the first."""
    from tvm import te

    rank = len(sizes)
    data = te.placeholder(_shape(batch, sizes, ci, last), dtype, name="data")
    window = (kernel,) * rank
    inner = ci // groups
    weight = te.placeholder((*window, inner, co) if last else (co, inner, *window), dtype, name="weight")
    source = _padded(data, padding, last)
    rc = te.reduce_axis((0, inner), name="rc")
    rs = [te.reduce_axis((0, kernel), name=f"r{axis}") for axis in "dhw"[3 - rank :]]

    def wide(value: Any) -> Any:
        return value.astype("float32")

    def element(*index: Any) -> Any:
        n, position, channel = _parts(index, last)
        at = [p * stride + r for p, r in zip(position, rs, strict=True)]
        c = rc if groups == 1 else channel // (co // groups) * inner + rc
        if last:
            return te.sum(wide(source[(n, *at, c)]) * wide(weight[(*rs, rc, channel)]), axis=[*rs, rc])
        return te.sum(wide(source[(n, c, *at)]) * wide(weight[(channel, rc, *rs)]), axis=[rc, *rs])

    shape = _shape(batch, [_steps(size, kernel, stride, padding) for size in sizes], co, last)
    return te.create_prim_func([data, weight, te.compute(shape, element, name="out")])


def _padded(data: Any, padding: int, last: bool) -> Any:
    """Zeros around the spatial axes, as a stage of its own."""
    from tvm import te, tirx

    if padding == 0:
        return data
    shape = [int(extent) for extent in data.shape]
    spatial = range(1, len(shape) - 1) if last else range(2, len(shape))

    def element(*index: Any) -> Any:
        inside = [index[a] >= padding for a in spatial]
        inside += [index[a] < padding + shape[a] for a in spatial]
        moved = [i - padding if a in spatial else i for a, i in enumerate(index)]
        return tirx.if_then_else(tirx.all(*inside), data[tuple(moved)], tirx.const(0, data.dtype))

    grown = tuple(extent + 2 * padding * (a in spatial) for a, extent in enumerate(shape))
    return te.compute(grown, element, name="padded")


def _steps(size: int, kernel: int, stride: int, padding: int) -> int:
    return (size + 2 * padding - kernel) // stride + 1


def _shape(batch: int, sizes: Sequence[int], channels: int, last: bool) -> tuple[int, ...]:
    return (batch, *sizes, channels) if last else (batch, channels, *sizes)


def _parts(index: Sequence[Any], last: bool) -> tuple[Any, Sequence[Any], Any]:
    """Batch, position and channel of an output element."""
    return (index[0], index[1:-1], index[-1]) if last else (index[0], index[2:], index[1])
