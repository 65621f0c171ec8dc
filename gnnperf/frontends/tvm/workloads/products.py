"""Matrix products: plain, batched, with bias and activation, and the two halves of attention. float32,
or float16 with float32 sums."""

from __future__ import annotations

from typing import Any

from gnnperf.frontends.tvm.workloads.pointwise import activate


def matmul(m: int, n: int, k: int, layout: str = "nn", dtype: str = "float32") -> Any:
    """C[m, n] = A B. layout: of A and B, `n` as in the formula, `t` stored transposed. dtype: of A and B."""
    from tvm import te

    a = te.placeholder((m, k) if layout[0] == "n" else (k, m), dtype, name="A")
    b = te.placeholder((k, n) if layout[1] == "n" else (n, k), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: Any, j: Any) -> Any:
        left = a[i, r] if layout[0] == "n" else a[r, i]
        right = b[r, j] if layout[1] == "n" else b[j, r]
        return te.sum(left.astype("float32") * right.astype("float32"), axis=r)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")])


def batch_matmul(
    batch: int, m: int, n: int, k: int, layout: str = "nn", dtype: str = "float32"
) -> Any:  # fmt: skip
    """C[b, m, n] = A[b] B[b]. layout: of B, `nn` as in the formula, `nt` transposed. dtype: of A, B."""
    from tvm import te

    a = te.placeholder((batch, m, k), dtype, name="A")
    b = te.placeholder((batch, k, n) if layout == "nn" else (batch, n, k), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(s: Any, i: Any, j: Any) -> Any:
        right = b[s, r, j] if layout == "nn" else b[s, j, r]
        return te.sum(a[s, i, r].astype("float32") * right.astype("float32"), axis=r)

    return te.create_prim_func([a, b, te.compute((batch, m, n), element, name="C")])


def dense(m: int, n: int, k: int, activation: str = "relu") -> Any:
    """activation(A[m, k] W[n, k]^T + bias[n]), a layer with weights as PyTorch stores them."""
    from tvm import te

    a = te.placeholder((m, k), name="A")
    w = te.placeholder((n, k), name="W")
    bias = te.placeholder((n,), name="bias")
    r = te.reduce_axis((0, k), name="k")
    product = te.compute((m, n), lambda i, j: te.sum(a[i, r] * w[j, r], axis=r), name="product")
    out = te.compute((m, n), lambda i, j: activate(activation, product[i, j] + bias[j]), name="out")
    return te.create_prim_func([a, w, bias, out])


def attention_scores(heads: int, queries: int, keys: int, depth: int) -> Any:
    """softmax(Q K^T / sqrt(depth)) over the keys, per head."""
    from tvm import te, tirx, topi

    q = te.placeholder((heads, queries, depth), name="Q")
    k = te.placeholder((heads, keys, depth), name="K")
    r = te.reduce_axis((0, depth), name="d")
    scores = te.compute(
        (heads, queries, keys), lambda h, i, j: te.sum(q[h, i, r] * k[h, j, r], axis=r), name="scores"
    )
    factor = tirx.const(depth**-0.5, "float32")
    scaled = te.compute((heads, queries, keys), lambda h, i, j: scores[h, i, j] * factor, name="scaled")
    return te.create_prim_func([q, k, topi.nn.softmax(scaled, axis=-1)])


def attention_values(heads: int, queries: int, keys: int, depth: int) -> Any:
    """P V per head, into [queries, heads, depth]: the layout that the next projection reads."""
    from tvm import te

    p = te.placeholder((heads, queries, keys), name="P")
    v = te.placeholder((heads, keys, depth), name="V")
    r = te.reduce_axis((0, keys), name="k")
    out = te.compute(
        (queries, heads, depth), lambda i, h, d: te.sum(p[h, i, r] * v[h, r, d], axis=r), name="out"
    )
    return te.create_prim_func([p, v, out])
