"""TVM functions that several tests use; also a kernel file, as a user would write one."""

from __future__ import annotations

from typing import Any

from tvm import te, tirx, topi
from tvm.ir import IRModule


def placeholder(name: str, *shape: int, dtype: str = "float32") -> Any:
    return te.placeholder(shape, dtype, name=name)


def matmul(
    n: int = 96,
    m: int = 128,
    k: int = 64,
    dtype: str = "float32",
    acc: str = "float32",
    names: str = "ABCijk",
) -> tirx.PrimFunc:
    """C[n, m] = A[n, k] B[k, m]. names: of A, B, C and of the loops."""
    a, b = placeholder(names[0], n, k, dtype=dtype), placeholder(names[1], k, m, dtype=dtype)
    r = te.reduce_axis((0, k), names[5])

    def element(i: Any, j: Any) -> Any:
        return te.sum(a[i, r].astype(acc) * b[r, j].astype(acc), axis=r)

    return te.create_prim_func([a, b, te.compute((n, m), element, name=names[2])])


def packed(n: int = 64, m: int = 64, k: int = 64) -> tirx.PrimFunc:
    """C[n, m] = A[n, k] B, of bytes, with B packed as VNNI takes it."""
    a = placeholder("A", n, k, dtype="uint8")
    b = placeholder("B", m // 16, k // 4, 16, 4, dtype="int8")
    r = te.reduce_axis((0, k), "k")

    def element(i: Any, j: Any) -> Any:
        return te.sum(a[i, r].astype("int32") * b[j // 16, r // 4, j % 16, r % 4].astype("int32"), axis=r)

    return te.create_prim_func([a, b, te.compute((n, m), element, name="C")])


def conv2d(size: int = 16, channels: int = 8, filters: int = 12, padding: int = 0) -> list[Any]:
    x, w = placeholder("x", 1, size, size, channels), placeholder("w", 3, 3, channels, filters)
    return [x, w, topi.nn.conv2d_nhwc(x, w, 1, padding, 1)]


def softmax(n: int = 32, m: int = 48) -> list[Any]:
    x = placeholder("x", n, m)
    return [x, topi.nn.softmax(x, axis=-1)]


def stencil() -> list[Any]:
    a = placeholder("a", 66, 130)
    mean = te.compute(
        (64, 128),
        lambda i, j: (
            te.const(0.2, "float32")
            * (a[i + 1, j + 1] + a[i + 1, j] + a[i + 1, j + 2] + a[i + 2, j + 1] + a[i, j + 1])
        ),
    )
    return [a, mean]


def dense_chain(n: int = 32, m: int = 48, k: int = 64) -> list[Any]:
    """relu(A B^T + bias): a product and what follows it element by element."""
    a, b, bias = placeholder("A", n, k), placeholder("B", m, k), placeholder("bias", m)
    return [a, b, bias, topi.nn.relu(topi.add(topi.nn.dense(a, b), bias))]


def argmax() -> list[Any]:
    a = placeholder("a", 8, 8)
    return [a, topi.argmax(a, axis=1)]


def complex_products() -> list[Any]:
    """Products of the complex numbers of every row: real and imaginary parts need one another."""
    a, b = placeholder("a", 8, 8), placeholder("b", 8, 8)
    r = te.reduce_axis((0, 8), "r")
    both = te.comm_reducer(
        lambda x, y: (x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]),
        lambda *dtypes: (tirx.const(1, dtypes[0]), tirx.const(0, dtypes[1])),
    )
    return [a, b, te.compute((8,), lambda i: both((a[i, r], b[i, r]), axis=r), name="products")[1]]


def moments() -> list[Any]:
    """Sum and sum of squares of every row, found together."""
    a = placeholder("a", 32, 64)
    r = te.reduce_axis((0, 64), "r")
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] + y[1]),
        lambda *dtypes: (tirx.const(0, dtypes[0]), tirx.const(0, dtypes[1])),
    )
    return [a, *te.compute((32,), lambda i: both((a[i, r], a[i, r] * a[i, r]), axis=r), name="sums")]


def gather() -> list[Any]:
    table, index = placeholder("table", 64, 16), placeholder("index", 32, dtype="int32")
    return [table, index, te.compute((32, 16), lambda i, j: table[index[i], j], name="out")]


def distances(dtype: str = "int32") -> list[Any]:
    """In how many bits two rows of integers differ, for all pairs."""
    a, b = placeholder("a", 6, 8, dtype=dtype), placeholder("b", 5, 8, dtype=dtype)
    r = te.reduce_axis((0, 8), "r")

    def element(i: Any, j: Any) -> Any:
        return te.sum(tirx.popcount(a[i, r] ^ b[j, r]).astype("int32"), axis=r)

    return [a, b, te.compute((6, 5), element, name="distances")]


def finite_or_zero(n: int = 32) -> list[Any]:
    a = placeholder("a", n)
    finite = te.compute((n,), lambda i: te.if_then_else(te.isfinite(a[i]), a[i], 0.0))
    return [a, te.compute((n,), lambda i: te.if_then_else(te.isnan(a[i]), 0.0, finite[i]))]


def gelu() -> list[Any]:
    a = placeholder("a", 32, 32)
    return [a, te.compute((32, 32), lambda i, j: te.erf(te.sigmoid(te.rsqrt(a[i, j]))) * te.round(a[i, j]))]


def symbolic() -> tirx.PrimFunc:
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] + 1.0)])


def shifted() -> tirx.PrimFunc:
    """By a scalar argument."""
    a, n = placeholder("a", 32), te.var("n", "int32")
    return te.create_prim_func([a, n, te.compute((32,), lambda i: a[i] + n.astype("float32"))])


def of_any_length() -> IRModule:
    """A function that can be tuned, and two that cannot."""
    return IRModule({"product": matmul(), "symbolic": symbolic(), "shifted": shifted()})


def symbolic_dense() -> list[Any]:
    """Of a number of rows that is not known, with weights whose layout is free."""
    a, w = te.placeholder((te.var("n"), 48), name="a"), placeholder("w", 40, 48)
    return [a, w, topi.nn.dense(a, w)]


def both() -> IRModule:
    """Two functions in one module."""
    return IRModule({"product": matmul(), "rows": te.create_prim_func(softmax())})


SAVED = matmul(32, 32, 32)
NUMBER = 7
EMPTY = IRModule({})


def broken() -> None:
    raise RuntimeError("no such device\nand more")
