"""Reductions: sums and maxima, softmax, normalisations, pooling. float32."""

from __future__ import annotations

from typing import Any


def reduce(m: int, n: int, op: str, axis: int) -> Any:
    """sum, max, min, or mean_square of a matrix over one axis."""
    from tvm import te, topi

    data = te.placeholder((m, n), name="data")
    if op == "mean_square":
        squares = te.compute((m, n), lambda i, j: data[i, j] * data[i, j], name="squares")
        total = topi.sum(squares, axis=axis)
        count = float((m, n)[axis])
        return te.create_prim_func([data, topi.divide(total, te.const(count, "float32"))])
    return te.create_prim_func([data, getattr(topi, op)(data, axis=axis)])


def softmax(m: int, n: int, axis: int = 1) -> Any:
    """Softmax of a matrix over one axis."""
    from tvm import te, topi

    data = te.placeholder((m, n), name="data")
    return te.create_prim_func([data, topi.nn.softmax(data, axis=axis)])


def layer_norm(m: int, n: int) -> Any:
    """Each row to mean 0 and variance 1, then scaled and shifted per column."""
    from tvm import te, topi

    data = te.placeholder((m, n), name="data")
    gamma, beta = (te.placeholder((n,), name=name) for name in ("gamma", "beta"))
    return te.create_prim_func([data, gamma, beta, topi.nn.layer_norm(data, gamma, beta, [1], 1e-5)])


def rms_norm(m: int, n: int) -> Any:
    """Each row divided by its root mean square, then scaled per column."""
    from tvm import te, topi

    data, weight = te.placeholder((m, n), name="data"), te.placeholder((n,), name="weight")
    return te.create_prim_func([data, weight, topi.nn.rms_norm(data, weight, [1], 1e-5)])


def group_norm(c: int, h: int, w: int, groups: int, batch: int = 1) -> Any:
    """NCHW: each group of channels to mean 0 and variance 1, then scaled and shifted per channel."""
    from tvm import te, topi

    data = te.placeholder((batch, c, h, w), name="data")
    gamma, beta = (te.placeholder((c,), name=name) for name in ("gamma", "beta"))
    out = topi.nn.group_norm(data, gamma, beta, groups, 1, [2, 3], 1e-5)
    return te.create_prim_func([data, gamma, beta, out])


def pool2d(
    c: int, h: int, w: int, kernel: int, stride: int, op: str, padding: int = 0, batch: int = 1,
    layout: str = "NCHW",
) -> Any:  # fmt: skip
    """max or avg over windows; the average leaves padding out of the count."""
    from tvm import te, topi

    shape = (batch, c, h, w) if layout == "NCHW" else (batch, h, w, c)
    data = te.placeholder(shape, name="data")
    out = topi.nn.pool2d(
        data, [kernel] * 2, [stride] * 2, [1, 1], [padding] * 4, op, layout=layout, count_include_pad=False
    )
    return te.create_prim_func([data, out])


def global_pool(c: int, h: int, w: int, op: str, batch: int = 1, layout: str = "NCHW") -> Any:
    """max or avg over the whole picture, per channel."""
    from tvm import te, topi

    shape = (batch, c, h, w) if layout == "NCHW" else (batch, h, w, c)
    data = te.placeholder(shape, name="data")
    return te.create_prim_func([data, topi.nn.global_pool(data, op, layout=layout)])
