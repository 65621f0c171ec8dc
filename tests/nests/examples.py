"""Small real nests built directly in the IR, for the tests of graphs, schedules and emission.

`EXAMPLES` maps a name to a function without required arguments that returns the nest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gnnperf.nests.ir import (
    Annotation,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Reduction,
    Statement,
    Symbol,
)

Operand = Expr | int | float | complex | str


def expr(value: Operand) -> Expr:
    """A name is a symbol, a number a constant."""
    if isinstance(value, str):
        return Symbol(value)
    return Const(value) if isinstance(value, int | float | complex) else value


def op(name: str, *args: Operand) -> Op:
    return Op(name, tuple(map(expr, args)))


def add(*args: Operand) -> Expr:
    first, *rest = map(expr, args)
    for other in rest:
        first = op("add", first, other)
    return first


def mul(a: Operand, b: Operand) -> Op:
    return op("mul", a, b)


def load(buffer: str, *indices: Operand) -> Load:
    return Load(buffer, tuple(map(expr, indices)))


def assign(target: Load, value: Operand, guard: Expr | None = None) -> Statement:
    return Statement(target, expr(value), guard=guard)


def accumulate(target: Load, value: Operand, by: Reduction = "add", init: Operand | None = None) -> Statement:
    return Statement(target, expr(value), by, None if init is None else expr(init))


def loop(iterator: str, stop: Operand, *body: Node, start: Operand = 0, **options: Any) -> Loop:
    return Loop(iterator, expr(start), expr(stop), body, **options)


def loops(extents: Mapping[str, Operand], *body: Node) -> Loop:
    """A perfect nest, outermost first."""
    for iterator, stop in reversed(extents.items()):
        body = (loop(iterator, stop, *body),)
    (outermost,) = body
    assert isinstance(outermost, Loop)
    return outermost


def array(
    name: str, *shape: int, dtype: str = "float64", strides: Sequence[int] | None = None, **options: Any
) -> Buffer:
    """Row-major unless strides (elements) are given."""
    dense = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    return Buffer(name, dtype, shape, tuple(strides or dense), **options)


def nest(name: str, buffers: Sequence[Buffer], *body: Node, **parameters: int) -> LoopNest:
    return LoopNest(name, {b.name: b for b in buffers}, body, parameters)


# --------------------------------------------------------------------------- linear algebra


def gemm(
    m: int = 128, n: int = 96, k: int = 64, transpose_a: bool = False, dtype: str = "float64"
) -> LoopNest:
    """C += A @ B, A stored transposed on request."""
    a = load("A", "k", "i") if transpose_a else load("A", "i", "k")
    body = accumulate(load("C", "i", "j"), mul(a, load("B", "k", "j")), init=0.0)
    buffers = [
        array("A", *((k, m) if transpose_a else (m, k)), dtype=dtype),
        array("B", k, n, dtype=dtype),
        array("C", m, n, dtype=dtype),
    ]
    return nest("gemm_tn" if transpose_a else "gemm", buffers, loops({"i": m, "k": k, "j": n}, body))


def triangular(n: int = 120) -> LoopNest:
    """syrk: C[i, j] += A[i, k] * A[j, k] for j <= i."""
    body = accumulate(load("C", "i", "j"), mul(load("A", "i", "k"), load("A", "j", "k")))
    inner = loop("j", add("i", 1), loop("k", 64, body))
    return nest("triangular", [array("A", n, 64), array("C", n, n)], loop("i", n, inner))


def trailing_update(n: int = 100, k: int = 40) -> LoopNest:
    """The inner update of LU at the representative step `k`: bounds and subscripts with a parameter."""
    value = op("sub", load("A", "i", "j"), mul(load("A", "i", "k"), load("A", "k", "j")))
    inner = loop("j", n, assign(load("A", "i", "j"), value), start=add("k", 1))
    return nest("trailing_update", [array("A", n, n)], loop("i", n, inner, start=add("k", 1)), k=k)


def contraction(n: int = 6) -> LoopNest:
    """Nine loops over a seven-dimensional array: O[a,b,c,d,e] += T[a,b,c,f,g,h,m] * W[d,e,f,g,h,m]."""
    names = "abcdefghm"
    value = mul(load("T", *"abcfghm"), load("W", *"defghm"))
    body = accumulate(load("O", *"abcde"), value, init=0.0)
    buffers = [array("T", *[n] * 7, dtype="float32"), array("W", *[n] * 6, dtype="float32")]
    return nest(
        "contraction", [*buffers, array("O", *[n] * 5, dtype="float32")], loops(dict.fromkeys(names, n), body)
    )


# --------------------------------------------------------------------------- convolution, stencils


def conv2d(
    batch: int = 2, size: int = 28, channels: int = 16, filters: int = 32, kernel: int = 3
) -> LoopNest:
    """NHWC, seven loops."""
    x = load("X", "n", add("h", "r"), add("w", "s"), "c")
    body = accumulate(load("Y", "n", "h", "w", "f"), mul(x, load("W", "r", "s", "c", "f")), init=0.0)
    extents = {"n": batch, "h": size, "w": size, "r": kernel, "s": kernel, "c": channels, "f": filters}
    padded = size + kernel - 1
    buffers = [
        array("X", batch, padded, padded, channels, dtype="float32"),
        array("W", kernel, kernel, channels, filters, dtype="float32"),
        array("Y", batch, size, size, filters, dtype="float32"),
    ]
    return nest("conv2d", buffers, loops(extents, body))


def stencil(rank: int = 2, n: int = 66) -> LoopNest:
    """Star stencil of radius 1 in `rank` dimensions, from A to B, interior points only."""
    iterators = "ijk"[:rank]
    points: list[Expr] = [load("A", *iterators)]
    for d in range(rank):
        for shift in (-1, 1):
            points.append(load("A", *(add(x, shift) if e == d else x for e, x in enumerate(iterators))))
    body: Node = assign(load("B", *iterators), mul(1 / len(points), add(*points)))
    for iterator in reversed(iterators):
        body = loop(iterator, n - 1, body, start=1)
    return nest(f"stencil{rank}d", [array("A", *[n] * rank), array("B", *[n] * rank)], body)


# --------------------------------------------------------------------------- reductions, softmax, elementwise


def reduction(axis: int = 1, rows: int = 256, columns: int = 512) -> LoopNest:
    body = accumulate(load("s", "ji"[axis]), load("A", "i", "j"), init=0.0)
    out = array("s", (columns, rows)[axis])
    return nest(
        f"reduction_axis{axis}", [array("A", rows, columns), out], loops({"i": rows, "j": columns}, body)
    )


def softmax(rows: int = 64, columns: int = 256) -> LoopNest:
    """Row maximum, exponentials and their sum, division: four loops over columns, two transients."""
    e = op("exp", op("sub", load("X", "i", "j"), load("top", "i")))
    shape = {"i": rows, "j": columns}
    return nest(
        "softmax",
        [
            array("X", rows, columns),
            array("Y", rows, columns),
            array("top", rows, transient=True),
            array("total", rows, transient=True),
        ],
        loops(shape, accumulate(load("top", "i"), load("X", "i", "j"), "max", init=-math.inf)),
        loops(shape, assign(load("Y", "i", "j"), e)),
        loops(shape, accumulate(load("total", "i"), load("Y", "i", "j"), init=0.0)),
        loops(shape, assign(load("Y", "i", "j"), op("div", load("Y", "i", "j"), load("total", "i")))),
    )


def elementwise_chain(n: int = 4096) -> LoopNest:
    """Two local scalars between three statements: z = tanh(x * y + 1) ** 2."""
    t, u = load("t"), load("u")
    body = [
        assign(t, add(mul(load("x", "i"), load("y", "i")), 1.0)),
        assign(u, op("tanh", t)),
        assign(load("z", "i"), mul(u, u)),
    ]
    registers = [array(name, dtype="float32", transient=True, scope="local") for name in "tu"]
    return nest(
        "elementwise_chain", [*(array(b, n, dtype="float32") for b in "xyz"), *registers], loop("i", n, *body)
    )


# --------------------------------------------------------------------------- data movement, indirection


def transpose(rows: int = 256, columns: int = 128) -> LoopNest:
    buffers = [array("A", rows, columns), array("B", columns, rows)]
    return nest(
        "transpose",
        buffers,
        loops({"i": rows, "j": columns}, assign(load("B", "j", "i"), load("A", "i", "j"))),
    )


def gather(rows: int = 1000, columns: int = 64, picked: int = 300) -> LoopNest:
    body = assign(load("out", "i", "f"), load("table", load("index", "i"), "f"))
    buffers = [
        array("table", rows, columns),
        array("index", picked, dtype="int64"),
        array("out", picked, columns),
    ]
    return nest("gather", buffers, loops({"i": picked, "f": columns}, body))


def spmm(rows: int = 500, columns: int = 400, nonzeros: int = 4000, features: int = 32) -> LoopNest:
    """CSR times dense: a loop whose bounds are loaded, and a gather of rows of B."""
    body = accumulate(load("C", "i", "f"), mul(load("values", "p"), load("B", load("indices", "p"), "f")))
    inner = loop("p", load("indptr", add("i", 1)), loop("f", features, body), start=load("indptr", "i"))
    buffers = [
        array("values", nonzeros),
        array("indices", nonzeros, dtype="int32"),
        array("indptr", rows + 1, dtype="int32"),
        array("B", columns, features),
        array("C", rows, features),
    ]
    return nest("spmm", buffers, loop("i", rows, inner))


def upsample(rows: int = 64, columns: int = 64) -> LoopNest:
    """Nearest-neighbour upsampling by two: subscripts that are not affine, under a guard."""
    source = load("A", op("floordiv", "i", 2), op("floordiv", "j", 2))
    guard = op("gt", source, 0.0)
    buffers = [array("A", rows // 2, columns // 2), array("B", rows, columns)]
    return nest(
        "upsample", buffers, loops({"i": rows, "j": columns}, assign(load("B", "i", "j"), source, guard))
    )


def recurrence(n: int = 100, m: int = 80) -> LoopNest:
    """A sequential loop around a parallel one: u[t + 1, i] = 0.5 * (u[t, i] + v[i])."""
    value = mul(0.5, add(load("u", "t", "i"), load("v", "i")))
    inner = loop("i", m, assign(load("u", add("t", 1), "i"), value))
    return nest("recurrence", [array("u", n + 1, m), array("v", m)], loop("t", n, inner, independent=False))


# --------------------------------------------------------------------------- scheduled


def tiled_gemm(m: int = 128, n: int = 100, k: int = 64, tile: int = 32) -> LoopNest:
    """gemm tiled over i and j (the tile does not divide n), with a register accumulator."""
    acc = load("acc")
    reduce = loop("k", k, accumulate(acc, mul(load("A", "i", "k"), load("B", "k", "j"))))
    points = loop(
        "j",
        op("min", add("jj", tile), n),
        assign(acc, 0.0),
        reduce,
        assign(load("C", "i", "j"), acc),
        start="jj",
        annotation=Annotation("simd"),
    )
    rows = loop("i", op("min", add("ii", tile), m), points, start="ii")
    tiles = loop("jj", n, rows, step=tile, tile_level=1)
    outer = loop(
        "ii",
        m,
        tiles,
        step=tile,
        tile_level=1,
        annotation=Annotation("parallel", "dynamic", chunk=1, collapse=2),
    )
    buffers = [array("A", m, k), array("B", k, n), array("C", m, n)]
    return nest("tiled_gemm", [*buffers, array("acc", transient=True, scope="local")], outer)


EXAMPLES: dict[str, Callable[[], LoopNest]] = {
    "contraction": contraction,
    "conv2d": conv2d,
    "elementwise_chain": elementwise_chain,
    "gather": gather,
    "gemm": gemm,
    "gemm_tn": lambda: gemm(transpose_a=True),
    "recurrence": recurrence,
    "reduction_axis0": lambda: reduction(0),
    "reduction_axis1": lambda: reduction(1),
    "softmax": softmax,
    "spmm": spmm,
    "stencil1d": lambda: stencil(1),
    "stencil2d": lambda: stencil(2),
    "stencil3d": lambda: stencil(3),
    "tiled_gemm": tiled_gemm,
    "trailing_update": trailing_update,
    "transpose": transpose,
    "triangular": triangular,
    "upsample": upsample,
}
