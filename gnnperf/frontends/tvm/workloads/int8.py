"""Products and convolutions of bytes, uint8 x int8 -> int32, with weights stored plainly or packed for the
four-way dot product of AVX-512 VNNI: 16 outputs x 4 inputs in the innermost axes."""

from __future__ import annotations

from typing import Any


def matmul_int8(m: int, n: int, k: int, layout: str = "packed") -> Any:
    """C[m, n] = A[m, k] B^T. layout of B: packed [n/16, k/4, 16, 4], or plain [n, k]."""
    from tvm import te

    packed = layout == "packed"
    a = te.placeholder((m, k), name="A", dtype="uint8")
    b = te.placeholder((n // 16, k // 4, 16, 4) if packed else (n, k), name="B", dtype="int8")
    r = te.reduce_axis((0, k), name="k")

    def element(i: Any, j: Any) -> Any:
        right = b[j // 16, r // 4, j % 16, r % 4] if packed else b[j, r]
        return te.sum(a[i, r].astype("int32") * right.astype("int32"), axis=r)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")])


def conv2d_int8(
    h: int, w: int, ci: int, co: int, kernel: int, stride: int = 1, layout: str = "packed", batch: int = 1
) -> Any:
    """NHWC, no padding. layout of weights: packed [kh, kw, co/16, ci/4, 16, 4], plain [kh, kw, co, ci]."""
    from tvm import te

    packed = layout == "packed"
    data = te.placeholder((batch, h, w, ci), name="data", dtype="uint8")
    blocks = (co // 16, ci // 4, 16, 4) if packed else (co, ci)
    weight = te.placeholder((kernel, kernel, *blocks), name="weight", dtype="int8")
    rh, rw = (te.reduce_axis((0, kernel), name=name) for name in ("rh", "rw"))
    rc = te.reduce_axis((0, ci), name="rc")

    def element(b: Any, y: Any, x: Any, c: Any) -> Any:
        inner = (c // 16, rc // 4, c % 16, rc % 4) if packed else (c, rc)
        left = data[b, y * stride + rh, x * stride + rw, rc].astype("int32")
        return te.sum(left * weight[(rh, rw, *inner)].astype("int32"), axis=[rh, rw, rc])

    shape = (batch, (h - kernel) // stride + 1, (w - kernel) // stride + 1, co)
    return te.create_prim_func([data, weight, te.compute(shape, element, name="out")])
