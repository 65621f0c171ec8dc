"""Small nests of every kind that recipes meet. Sizes are chosen not to divide by tiles or vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from nests import examples
from nests.examples import accumulate, add, array, assign, load, loop, loops, mul, nest, op
from nests.interpret import Memory, random_memory

from gnnperf.nests import LoopNest, Statement
from gnnperf.nests.ir import Reduction

Fill = Callable[[Memory, np.random.Generator], None]


@dataclass(frozen=True)
class Kernel:
    """`fill` sets the inputs that may not be arbitrary (subscripts, row starts)."""

    nest: LoopNest
    fill: Fill | None = None

    def memory(self, rng: np.random.Generator) -> Memory:
        memory = random_memory(self.nest, rng)
        if self.fill is not None:
            self.fill(memory, rng)
        return memory


def below(**limits: int) -> Fill:
    """Integer inputs anywhere in [0, limit)."""

    def fill(memory: Memory, rng: np.random.Generator) -> None:
        for name, limit in limits.items():
            memory[name][:] = rng.integers(0, limit, memory[name].size)

    return fill


def csr(columns: int) -> Fill:
    """Row starts that ascend, with empty rows among them."""

    def fill(memory: Memory, rng: np.random.Generator) -> None:
        nonzeros, rows = memory["values"].size, memory["indptr"].size - 1
        cuts = np.sort(rng.choice(nonzeros + 1, rows - 1))
        cuts[: rows // 3] = cuts[0]
        memory["indptr"][:] = [0, *cuts, nonzeros]
        memory["indices"][:] = rng.integers(0, columns, nonzeros)

    return fill


# --------------------------------------------------------------------------- dense linear algebra


def matrix_product(
    m: int, n: int, k: int, a: str = "ik", b: str = "kj", dtype: str = "float64", init: float | None = 0.0
) -> LoopNest:
    size = {"i": m, "j": n, "k": k}
    body = accumulate(load("C", "i", "j"), mul(load("A", *a), load("B", *b)), init=init)
    buffers = [
        array("A", *(size[x] for x in a), dtype=dtype),
        array("B", *(size[x] for x in b), dtype=dtype),
        array("C", m, n, dtype=dtype),
    ]
    return nest("gemm", buffers, loops(size, body))


def batched_product(b: int = 3, m: int = 7, n: int = 19, k: int = 11) -> LoopNest:
    body = accumulate(
        load("C", "b", "i", "j"), mul(load("A", "b", "i", "k"), load("B", "b", "k", "j")), init=0.0
    )
    buffers = [array("A", b, m, k), array("B", b, k, n), array("C", b, m, n)]
    return nest("batched", buffers, loops({"b": b, "i": m, "j": n, "k": k}, body))


def matrix_vector(m: int, n: int, transposed: bool = False) -> LoopNest:
    target, vector = ("j", "i") if transposed else ("i", "j")
    body = accumulate(load("y", target), mul(load("A", "i", "j"), load("x", vector)))
    sizes = {"i": m, "j": n}
    buffers = [array("A", m, n), array("x", sizes[vector]), array("y", sizes[target])]
    return nest("gemv", buffers, loops(sizes, body))


def triangular(n: int = 23, upper: bool = True) -> LoopNest:
    body = accumulate(load("C", "i", "j"), mul(load("A", "i", "k"), load("B", "k", "j")))
    inner = loop("k", n, body, start="i") if upper else loop("k", add("i", 1), body)
    buffers = [array(x, n, n) for x in "ABC"]
    return nest("trmm", buffers, loop("i", n, loop("j", n, inner)))


def triangular_in_place(n: int = 21, columns: int = 43) -> LoopNest:
    """Every row of B takes what the rows below give it, column by column; a sum and a spare array wait."""
    below = add("i", 1)
    body = [
        assign(load("t"), 0.0),
        loop("k", n, accumulate(load("t"), mul(load("A", "k", "i"), load("B", "k", "j"))), start=below),
        assign(load("w", 1), load("t")),
        loop("r", 2, accumulate(load("B", "i", "j"), mul(0.5, load("w", 1)))),
    ]
    local = [array("t", scope="local", transient=True), array("w", 2, scope="local", transient=True)]
    buffers = [array("A", n, n), array("B", n, columns), *local]
    return nest("trmm_in_place", buffers, loop("j", columns, loop("i", n, *body, independent=False)))


def strictly_upper(n: int = 23, gap: int = 2) -> LoopNest:
    """for j in range(i + gap, n): the last rows start behind their end."""
    value = add(load("A", "i", "j"), 1.0)
    inner = loop("j", n, assign(load("B", "i", "j"), value), start=add("i", gap))
    return nest("upper", [array("A", n, n), array("B", n, n)], loop("i", n, inner))


def strictly_upper_sums(n: int = 23, gap: int = 5) -> LoopNest:
    body = accumulate(load("s", "i"), load("A", "i", "j"), init=0.0)
    return nest(
        "upper_sums", [array("A", n, n), array("s", n)], loop("i", n, loop("j", n, body, start=add("i", gap)))
    )


def two_reductions(m: int = 11, n: int = 37) -> LoopNest:
    """x and y are reduced over different loops of one band, which a local scalar holds together."""
    body = [
        assign(load("t"), mul(load("A", "i", "j"), 2.0)),
        accumulate(load("x", "i"), load("t"), init=0.0),
        accumulate(load("y", "j"), load("t"), init=1.0),
    ]
    local = array("t", transient=True, scope="local")
    return nest(
        "atax", [array("A", m, n), array("x", m), array("y", n), local], loops({"i": m, "j": n}, *body)
    )


def strided_matrices(m: int = 9, n: int = 21) -> LoopNest:
    """Views into larger arrays: row pitch, column-major, offset."""
    buffers = [
        replace(array("A", m, n, strides=(40, 1)), offset=5),
        array("B", m, n, strides=(1, 13)),
        array("C", m, n, strides=(50, 2)),
    ]
    value = add(load("A", "i", "j"), load("B", "i", "j"))
    return nest("views", buffers, loops({"i": m, "j": n}, assign(load("C", "i", "j"), value)))


# --------------------------------------------------------------------------- reductions


def reduce_axis(
    axis: str, by: Reduction, shape: tuple[int, int, int] = (5, 7, 19), dtype: str = "float64"
) -> LoopNest:
    """Over one axis ("i", "j" or "k") or over all of them ("")."""
    kept = [x for x in "ijk" if x != axis] if axis else []
    size = dict(zip("ijk", shape, strict=True))
    init = {"add": 0, "mul": 1, "min": 90, "max": -9}[by]
    start = bool(init) if dtype == "bool" else init if "int" in dtype else float(init)
    element = load("A", "i", "j", "k")
    value = add(mul(element, 0.01), 1.0) if by == "mul" and dtype.startswith("float") else element
    body = accumulate(load("s", *kept), value, by, init=start)
    buffers = [array("A", *shape, dtype=dtype), array("s", *(size[x] for x in kept), dtype=dtype)]
    return nest(f"{by}_{axis or 'all'}", buffers, loops(size, body))


def sum_and_maximum(m: int = 9, n: int = 41) -> LoopNest:
    """Two reductions in one band, and a value of the loop iterator."""
    index = op("cast:float64", "j")
    body = [
        accumulate(load("s", "i"), mul(load("A", "i", "j"), index), init=0.5),
        accumulate(load("m", "i"), load("A", "i", "j"), "max"),
    ]
    return nest("moments", [array("A", m, n), array("s", m), array("m", m)], loops({"i": m, "j": n}, *body))


def guarded_sum(m: int = 8, n: int = 33) -> LoopNest:
    body = Statement(
        load("s", "i"), load("A", "i", "j"), "add", None, op("lt", op("mod", add("i", "j"), 3), 2)
    )
    return nest("guarded", [array("A", m, n), array("s", m)], loops({"i": m, "j": n}, body))


def polynomial(n: int = 40, k: int = 13, init: float | None = None) -> LoopNest:
    """Y[i + k] += X[i] W[k]: iterations of both loops meet in one element."""
    body = accumulate(load("Y", add("i", "k")), mul(load("X", "i"), load("W", "k")), init=init)
    return nest(
        "polynomial", [array("X", n), array("W", k), array("Y", n + k - 1)], loops({"i": n, "k": k}, body)
    )


# --------------------------------------------------------------------------- units of several nests


def softmax(rows: int, columns: int, dtype: str = "float64") -> LoopNest:
    shape = {"i": rows, "j": columns}
    e = op("exp", op("sub", load("X", "i", "j"), load("top", "i")))
    scratch = [array(n, rows, dtype=dtype, transient=True) for n in ("top", "total")]
    return nest(
        "softmax",
        [*(array(n, rows, columns, dtype=dtype) for n in "XY"), *scratch,
         array("e", rows, columns, dtype=dtype, transient=True)],
        loop("i", rows, assign(load("top", "i"), -1e30)),
        loops(shape, accumulate(load("top", "i"), load("X", "i", "j"), "max")),
        loops(shape, assign(load("e", "i", "j"), e)),
        loop("i", rows, assign(load("total", "i"), 0.0)),
        loops(shape, accumulate(load("total", "i"), load("e", "i", "j"))),
        loops(shape, assign(load("Y", "i", "j"), op("div", load("e", "i", "j"), load("total", "i")))),
    )  # fmt: skip


def product_and_bias(m: int = 13, n: int = 18, k: int = 10) -> LoopNest:
    """A contraction, then a streaming nest beside it."""
    product = accumulate(load("T", "i", "j"), mul(load("A", "i", "k"), load("B", "k", "j")), init=0.0)
    relu = op("max", add(load("T", "i", "j"), load("b", "j")), 0.0)
    buffers = [array("A", m, k), array("B", k, n), array("b", n), array("D", m, n)]
    return nest(
        "dense",
        [*buffers, array("T", m, n, transient=True)],
        loops({"i": m, "j": n, "k": k}, product),
        loops({"i": m, "j": n}, assign(load("D", "i", "j"), relu)),
    )


def stencil_chain(n: int = 21) -> LoopNest:
    """Horizontal diffusion: differences of differences, each over a smaller box."""

    def shifted(name: str, di: int, dj: int) -> object:
        return load(name, add("i", di), add("j", dj))

    around = add(*(shifted("X", *d) for d in ((1, 0), (-1, 0), (0, 1), (0, -1))))
    laplace = op("sub", mul(4.0, load("X", "i", "j")), around)
    flux = op("sub", shifted("L", 0, 1), load("L", "i", "j"))
    result = op("sub", load("X", "i", "j"), mul(0.1, op("sub", load("F", "i", "j"), shifted("F", 0, -1))))

    def sweep(target: str, value: object, margin: int) -> object:
        body = loop("j", n - margin, assign(load(target, "i", "j"), value), start=margin)
        return loop("i", n - margin, body, start=margin)

    return nest(
        "diffusion",
        [array("X", n, n), array("Y", n, n), *(array(t, n, n, transient=True) for t in "LF")],
        sweep("L", laplace, 1),
        loop("i", n - 2, loop("j", n - 2, assign(load("F", "i", "j"), flux), start=1), start=2),
        sweep("Y", result, 2),
    )  # fmt: skip


def pointwise_outputs(n: int = 40) -> LoopNest:
    """Several outputs from common parts, which cannot all be substituted without repeating work."""
    names = ["x", "y", "z", "w", "v"]
    return nest(
        "pointwise",
        [
            *(array(b, n) for b in names),
            array("t", n, transient=True),
            array("u", n, dtype="float32", transient=True),
        ],
        loop("i", n, assign(load("t", "i"), op("sqrt", add(load("x", "i"), 1.0)))),
        loop("i", n, assign(load("u", "i"), mul(load("t", "i"), load("y", "i")))),
        loop("i", n, assign(load("z", "i"), add(load("t", "i"), load("u", "i")))),
        loop("i", n, assign(load("w", "i"), op("sub", load("t", "i"), load("u", "i")))),
        loop("i", n, assign(load("y", "i"), mul(load("u", "i"), load("u", "i")))),
        loop("i", n, assign(load("v", "i"), add(load("y", "i"), load("z", "i")))),
    )  # fmt: skip


def rounded_copy(n: int = 50) -> LoopNest:
    """Scratch arrays of other types: storing truncates and rounds."""
    scaled = mul(load("x", "i"), 2.7)
    buffers = [array("x", n), array("y", n), array("z", n)]
    scratch = [
        array("whole", n, dtype="int32", transient=True),
        array("single", n, dtype="float32", transient=True),
    ]
    return nest(
        "rounded",
        [*buffers, *scratch],
        loop("i", n, assign(load("whole", "i"), scaled)),
        loop("i", n, assign(load("single", "i"), mul(load("x", "i"), 1e8))),
        loop("i", n, assign(load("y", "i"), add(load("whole", "i"), 0.25))),
        loop("i", n, assign(load("z", "i"), op("sub", load("single", "i"), mul(load("x", "i"), 1e8)))),
    )  # fmt: skip


def in_place_chain(n: int = 45) -> LoopNest:
    """x is overwritten by what was computed from it, then read again."""
    buffers = [array("x", n), array("y", n), array("t", n, transient=True)]
    return nest(
        "in_place",
        buffers,
        loop("i", n, assign(load("t", "i"), mul(load("x", "i"), 3.0))),
        loop("i", n, assign(load("x", "i"), add(load("t", "i"), 1.0))),
        loop("i", n, assign(load("y", "i"), mul(load("t", "i"), load("x", "i")))),
    )


# --------------------------------------------------------------------------- local scalars, sequential loops


def local_scalars(n: int = 43) -> LoopNest:
    """Two locals between three statements, and a choice."""
    t, u = load("t"), load("u")
    body = [
        assign(t, load("x", "i")),
        assign(u, op("sub", load("y", "i"), t)),
        assign(load("z", "i"), op("select", op("gt", u, 0.0), mul(t, u), op("max", t, 0.75))),
    ]
    registers = [array(name, transient=True, scope="local") for name in "tu"]
    return nest("locals", [*(array(b, n) for b in "xyz"), *registers], loop("i", n, *body))


def local_sum(rows: int = 9, columns: int = 33, independent: bool = True) -> LoopNest:
    """A local accumulator around a loop: an imperfect nest, sequential on request."""
    previous = load("y", "i") if not independent else load("A", "i", 0)
    body = [
        assign(load("sum"), 0.0),
        loop("k", columns, accumulate(load("sum"), load("A", "i", "k"))),
        assign(load("y", add("i", 1)), add(load("sum"), mul(0.5, previous))),
    ]
    buffers = [array("A", rows, columns), array("y", rows + 1), array("sum", transient=True, scope="local")]
    return nest("local_sum", buffers, loop("i", rows, *body, independent=independent))


def filters(channels: int = 21, samples: int = 17, contiguous: str = "samples") -> LoopNest:
    """A recursive filter for every channel, with two states in scalars."""
    at = ("c", "n") if contiguous == "samples" else ("n", "c")
    shape = (channels, samples) if contiguous == "samples" else (samples, channels)
    x, out, one, two = load("x", *at), load("out"), load("one"), load("two")
    step = [
        assign(out, add(mul(0.5, x), one)),
        assign(one, add(mul(0.25, x), mul(-0.5, out), two)),
        assign(two, op("select", op("gt", out, 1.0), mul(0.125, out), x)),
        assign(load("y", *at), out),
    ]
    body = [assign(one, 0.0), assign(two, 0.25), loop("n", samples, *step, independent=False)]
    scalars = [array(name, transient=True, scope="local") for name in ("one", "two", "out")]
    return nest("filters", [*(array(b, *shape) for b in "xy"), *scalars], loop("c", channels, *body))


def random_numbers(n: int = 43, steps: int = 6, dtype: str = "uint64") -> LoopNest:
    """A shift register for every element, and how often its highest bit was not set."""
    bits = int(dtype.removeprefix("uint"))
    state, count = load("state"), load("count")
    is_clear = op("eq", op("shr", state, bits - 1), 0)
    step = [
        assign(state, op("bitxor", state, op("shl", state, 13))),
        assign(state, op("bitxor", state, op("shr", state, 7))),
        accumulate(count, op("select", is_clear, 1, 0)),
    ]
    body = [
        assign(state, op("bitor", load("x", "i"), 12345)),
        assign(count, 0),
        loop("k", steps, *step, independent=False),
        assign(load("y", "i"), state),
        assign(load("z", "i"), count),
    ]
    buffers = [array("x", n, dtype=dtype), array("y", n, dtype=dtype), array("z", n, dtype=f"int{bits}")]
    scalars = [("state", dtype), ("count", f"int{bits}")]
    registers = [array(name, dtype=kind, transient=True, scope="local") for name, kind in scalars]
    return nest("random_numbers", [*buffers, *registers], loop("i", n, *body))


def scan(rows: int = 9, columns: int = 21, inner: bool = True) -> LoopNest:
    """A recurrence along the rows (the sequential loop inside), or along the columns (outside)."""
    if inner:
        value = add(mul(0.5, load("B", "i", op("sub", "j", 1))), load("A", "i", "j"))
        body = loop("j", columns, assign(load("B", "i", "j"), value), start=1, independent=False)
        return nest("scan", [array(x, rows, columns) for x in "AB"], loop("i", rows, body))
    value = add(mul(0.5, load("B", op("sub", "i", 1), "j")), load("A", "i", "j"))
    body = loop("j", columns, assign(load("B", "i", "j"), value))
    return nest(
        "scan_rows",
        [array(x, rows, columns) for x in "AB"],
        loop("i", rows, body, start=1, independent=False),
    )


def time_steps(steps: int = 4, n: int = 31) -> LoopNest:
    """Jacobi: a scratch array swapped with the result in every step."""

    def sweep(target: str, source: str) -> object:
        value = mul(1 / 3, add(*(load(source, add("i", d)) for d in (-1, 0, 1))))
        return loop("i", n - 1, assign(load(target, "i"), value), start=1)

    buffers = [array("A", n), array("B", n)]
    return nest("jacobi", buffers, loop("t", steps, sweep("B", "A"), sweep("A", "B"), independent=False))


def forces(steps: int = 3, n: int = 21) -> LoopNest:
    """Pairs in every step: differences, their powers, sums over one partner, then the move of all."""
    d = op("sub", load("x", "j"), load("x", "i"))
    far = op("pow", add(mul(load("d", "i", "j"), load("d", "i", "j")), 0.1), -1.5)
    pull = mul(load("d", "i", "j"), load("w", "i", "j"))
    body = [
        loops({"i": n, "j": n}, assign(load("d", "i", "j"), d)),
        loops({"i": n, "j": n}, assign(load("w", "i", "j"), far)),
        loop("i", n, assign(load("f", "i"), 0.0)),
        loops({"i": n, "j": n}, accumulate(load("f", "i"), pull)),
        loop("i", n, accumulate(load("v", "i"), mul(0.01, load("f", "i")))),
        loop("i", n, accumulate(load("x", "i"), mul(0.01, load("v", "i")))),
    ]
    scratch = [array(b, *shape, transient=True) for b, shape in (("d", (n, n)), ("w", (n, n)), ("f", (n,)))]
    return nest(
        "forces", [array("x", n), array("v", n), *scratch], loop("t", steps, *body, independent=False)
    )


def powers(n: int = 37) -> LoopNest:
    """Exponents that roots and products make, and one that they do not."""
    value = add(*(op("pow", load("x", "i"), e) for e in (-1.5, 0.5, 2.5, -2, 3, 0.3)))
    return nest("powers", [array("x", n), array("z", n)], loop("i", n, assign(load("z", "i"), value)))


def summed_in_order(steps: int = 5, n: int = 37, outermost: bool = True) -> LoopNest:
    """A reduction over a sequential loop that owns its initial value."""
    body = accumulate(load("y", "i"), load("A", "t", "i"), init=3.0)
    buffers = [array("A", steps, n), array("y", n)]
    if outermost:
        return nest("in_order", buffers, loop("t", steps, loop("i", n, body), independent=False))
    return nest("in_order", buffers, loop("t", steps, loop("i", n, body, independent=False)))


# --------------------------------------------------------------------------- indirection, other types


def spmv(rows: int = 15, columns: int = 11, nonzeros: int = 60, init: float | None = 0.0) -> LoopNest:
    value = mul(load("values", "p"), load("x", load("indices", "p")))
    body = accumulate(load("y", "i"), value, init=init)
    inner = loop("p", load("indptr", add("i", 1)), body, start=load("indptr", "i"))
    buffers = [
        array("values", nonzeros),
        array("indices", nonzeros, dtype="int32"),
        array("indptr", rows + 1, dtype="int32"),
        array("x", columns),
        array("y", rows),
    ]
    return nest("spmv", buffers, loop("i", rows, inner))


def sampled_product(rows: int = 15, columns: int = 11, nonzeros: int = 60, depth: int = 21) -> LoopNest:
    """A product of dense matrices at the entries of a CSR matrix: entries belong to rows by their bounds."""
    sample = mul(load("values", "k"), load("X", "i", "d"))
    body = accumulate(load("out", "k"), mul(sample, load("Y", load("indices", "k"), "d")))
    end = load("indptr", add("i", 1))
    entries = loop("k", end, loop("d", depth, body), start=load("indptr", "i"))
    buffers = [
        array("values", nonzeros),
        array("indices", nonzeros, dtype="int32"),
        array("indptr", rows + 1, dtype="int32"),
        array("X", rows, depth),
        array("Y", columns, depth),
        array("out", nonzeros),
    ]
    return nest("sddmm", buffers, loop("i", rows, entries))


def histogram(n: int = 300, bins: int = 7) -> LoopNest:
    body = accumulate(load("h", load("bin", "i")), load("w", "i"))
    return nest(
        "histogram", [array("bin", n, dtype="int32"), array("w", n), array("h", bins)], loop("i", n, body)
    )


def binned(n: int = 300, bins: int = 7) -> LoopNest:
    """A histogram of numbers: the bin is rounded after the arithmetic, not before."""
    middle = op("mul", add(load("x", "i"), load("y", "i")), 0.5 * bins)
    place = op("max", op("min", op("cast:int64", middle), bins - 1), 0)
    pair = op("max", op("min", op("cast:int64", add(load("x", "i"), load("y", "i"))), bins - 1), 0)
    body = [accumulate(load("h", place), 1), accumulate(load("g", pair), 1)]
    buffers = [array("x", n), array("y", n), array("h", bins), array("g", bins)]
    return nest("binned", buffers, loop("i", n, *body))


def named_bins(n: int = 300, bins: int = 7) -> LoopNest:
    """A histogram whose bin has a name, which is looked at twice."""
    named = assign(load("b"), op("cast:int64", op("mul", load("x", "i"), bins + 0.9)))
    place = op("select", op("gt", load("b"), bins - 1), bins - 1, op("max", load("b"), 0))
    buffers = [array("x", n), array("h", bins), array("b", dtype="int64", transient=True, scope="local")]
    return nest("named_bins", buffers, loop("i", n, named, accumulate(load("h", place), 1)))


def scatter_rows(n: int = 40, rows: int = 6, columns: int = 21) -> LoopNest:
    body = accumulate(load("out", load("row", "i"), "j"), load("w", "i", "j"))
    buffers = [array("row", n, dtype="int64"), array("w", n, columns), array("out", rows, columns)]
    return nest("scatter", buffers, loops({"i": n, "j": columns}, body))


def integers(n: int = 37, dtype: str = "int32") -> LoopNest:
    """Division towards zero and towards minus infinity, bits, on signed values."""
    a, b = op("sub", load("x", "i"), 2), load("y", "i")
    value = add(op("div", a, b), op("floordiv", a, b), op("mod", a, b), op("bitand", load("x", "i"), 3))
    value = add(value, op("abs", a), op("shl", load("x", "i"), 2))
    return nest(
        "integers", [array(x, n, dtype=dtype) for x in "xyz"], loop("i", n, assign(load("z", "i"), value))
    )


def unsigned(n: int = 37, dtype: str = "uint8") -> LoopNest:
    value = op("max", op("abs", load("x", "i")), mul(load("y", "i"), 100))
    return nest(
        "unsigned", [array(x, n, dtype=dtype) for x in "xyz"], loop("i", n, assign(load("z", "i"), value))
    )


def complex_mix(n: int = 37, dtype: str = "complex128") -> LoopNest:
    """Complex numbers beside real ones, integers and the loop iterator."""
    z, w, x = load("z", "i"), load("w", "i"), load("x", "i")
    value = add(mul(op("conj", z), x), mul(op("exp", mul(2j, z)), "i"), op("div", w, 3), op("pow", z, 2))
    parts = add(op("real", z), mul(op("imag", w), op("abs", z)))
    buffers = [array("x", n, dtype="float32"), *(array(b, n, dtype=dtype) for b in "zwu"), array("y", n)]
    return nest(
        "complex_mix",
        buffers,
        loop("i", n, assign(load("u", "i"), value)),
        loop("i", n, assign(load("y", "i"), parts)),
    )


def angles(n: int = 37) -> LoopNest:
    x, y = op("div", load("x", "i"), 2.0), load("y", "i")
    value = add(*(op(name, x) for name in ("tan", "asin", "acos", "atan", "sinh", "cosh")), op("atan2", y, x))
    return nest("angles", [array(b, n) for b in "xyz"], loop("i", n, assign(load("z", "i"), value)))


def choice(m: int = 9, n: int = 35, uniform: bool = False) -> LoopNest:
    """A choice per element, or one for all elements."""
    x = load("X", "i", "j")
    condition = op("lt", load("s", 0), 1.0) if uniform else op("gt", x, 0.9)
    value = op("select", condition, op("max", op("min", x, 1.2), 0.6), op("neg", op("sqrt", x)))
    return nest(
        "choice",
        [
            array("X", m, n, dtype="float32"),
            array("s", 1, dtype="float32"),
            array("Y", m, n, dtype="float32"),
        ],
        loops({"i": m, "j": n}, assign(load("Y", "i", "j"), value)),
    )


def padded(n: int = 35) -> LoopNest:
    """Neighbours that exist: an element that is not chosen is not read."""
    left = op("select", op("gt", "i", 0), load("A", op("sub", "i", 1)), 0.0)
    right = op("select", op("lt", load("A", "i"), 9.0), load("A", "i"), load("A", add("i", 1000)))
    return nest(
        "padded", [array("A", n), array("B", n)], loop("i", n, assign(load("B", "i"), add(left, right)))
    )


def far_choice(n: int = 35) -> LoopNest:
    """The condition is a vector, the element that is not chosen lies outside."""
    far = load("A", add("i", 1000))
    value = op("select", op("lt", load("B", "i"), 9.0), load("B", "i"), far)
    return nest(
        "far", [array("A", n), array("B", n), array("C", n)], loop("i", n, assign(load("C", "i"), value))
    )


def mask(m: int = 9, n: int = 35) -> LoopNest:
    """A comparison used as a number, and one that is stored."""
    above = op("gt", load("X", "i", "j"), 1.0)
    return nest(
        "mask",
        [array("X", m, n), array("Y", m, n), array("M", m, n, dtype="bool")],
        loops({"i": m, "j": n}, assign(load("Y", "i", "j"), mul(above, load("X", "i", "j")))),
        loops({"i": m, "j": n}, assign(load("M", "i", "j"), above)),
    )


def every_other(m: int = 9, n: int = 40) -> LoopNest:
    """Loops with a step."""
    inner = loop("j", n, assign(load("B", "i", "j"), mul(2.0, load("A", "i", "j"))), start=1, step=3)
    return nest("strided", [array("A", m, n), array("B", m, n)], loop("i", m, inner, step=2))


def every_second(m: int = 7, n: int = 45, dtype: str = "float64") -> LoopNest:
    """Two elements of every row at a time are added; the rows end with the last that is read."""
    first, second = load("A", "i", mul(2, "j")), load("A", "i", add(mul(2, "j"), 2))
    buffers = [array("A", m, 2 * n + 1, dtype=dtype), array("B", m, n, dtype=dtype)]
    return nest(
        "decimated", buffers, loops({"i": m, "j": n}, assign(load("B", "i", "j"), add(first, second)))
    )


def strided_convolution(f: int = 6, c: int = 3, h: int = 4, w: int = 21, dtype: str = "float64") -> LoopNest:
    """3x3 with stride two, channels first."""
    image = load("X", "c", add(mul(2, "h"), "r"), add(mul(2, "w"), "s"))
    body = accumulate(load("Y", "f", "h", "w"), mul(image, load("K", "f", "c", "r", "s")))
    buffers = [
        array("X", c, 2 * h + 1, 2 * w + 1, dtype=dtype), array("K", f, c, 3, 3, dtype=dtype),
        array("Y", f, h, w, dtype=dtype),
    ]  # fmt: skip
    return nest("conv2d", buffers, loops({"f": f, "h": h, "w": w, "c": c, "r": 3, "s": 3}, body))


def permutation(shape: tuple[int, ...], order: tuple[int, ...]) -> LoopNest:
    names = "abcd"[: len(shape)]
    target = load("B", *(names[d] for d in order))
    buffers = [array("A", *shape), array("B", *(shape[d] for d in order))]
    return nest(
        "permutation", buffers, loops(dict(zip(names, shape, strict=True)), assign(target, load("A", *names)))
    )


FAMILIES: dict[str, dict[str, Kernel]] = {
    "dense": {
        "gemm": Kernel(matrix_product(13, 37, 19)),
        "gemm_nt_fp32": Kernel(matrix_product(13, 37, 19, b="jk", dtype="float32")),
        "gemm_tn": Kernel(matrix_product(16, 32, 8, a="ki", init=None)),
        "gemm_tt_int64": Kernel(matrix_product(5, 9, 7, a="ki", b="jk", dtype="int64", init=None)),
        "gemm_complex": Kernel(matrix_product(9, 13, 7, dtype="complex128")),
        "batched": Kernel(batched_product()),
        "conv2d": Kernel(examples.conv2d(2, 5, 3, 18, 3)),
        "conv2d_strided": Kernel(strided_convolution()),
        "conv2d_strided_fp32": Kernel(strided_convolution(w=37, dtype="float32")),
        "contraction_9_deep": Kernel(examples.contraction(2)),
        "gemv": Kernel(matrix_vector(19, 43)),
        "gemv_transposed": Kernel(matrix_vector(19, 43, transposed=True)),
        "trmm_upper": Kernel(triangular()),
        "trmm_lower": Kernel(triangular(upper=False)),
        "strictly_upper": Kernel(strictly_upper()),
        "strictly_upper_sums": Kernel(strictly_upper_sums()),
        "two_reductions": Kernel(two_reductions()),
        "trailing_update": Kernel(examples.trailing_update(30, 11)),
    },
    "reductions": {
        **{f"{by}_{axis or 'all'}": Kernel(reduce_axis(axis, by))
           for by in ("add", "min", "max", "mul") for axis in ("i", "j", "k", "")},
        "add_complex": Kernel(reduce_axis("j", "add", dtype="complex128")),
        "add_complex_fp32": Kernel(reduce_axis("", "add", dtype="complex64")),
        "max_int32": Kernel(reduce_axis("k", "max", dtype="int32")),
        "min_uint8": Kernel(reduce_axis("k", "min", dtype="uint8")),
        "max_bool": Kernel(reduce_axis("j", "max", dtype="bool")),
        "add_fp32": Kernel(reduce_axis("", "add", dtype="float32")),
        "sum_and_maximum": Kernel(sum_and_maximum()),
        "guarded_sum": Kernel(guarded_sum()),
        "polynomial": Kernel(polynomial()),
        "polynomial_short": Kernel(polynomial(7, 33, init=0.5)),
    },
    "units": {
        "softmax": Kernel(softmax(7, 45)),
        "softmax_fp32": Kernel(softmax(9, 33, "float32")),
        "softmax_from_infinity": Kernel(examples.softmax(5, 37)),
        "dense_layer": Kernel(product_and_bias()),
        "stencil_chain": Kernel(stencil_chain()),
        "pointwise_outputs": Kernel(pointwise_outputs()),
        "rounded": Kernel(rounded_copy()),
        "in_place": Kernel(in_place_chain()),
        "locals": Kernel(local_scalars()),
        "local_sum": Kernel(local_sum()),
        "local_sum_sequential": Kernel(local_sum(independent=False)),
        "triangular_in_place": Kernel(triangular_in_place()),
        "filters": Kernel(filters()),
        "filters_in_lanes": Kernel(filters(contiguous="channels")),
        "random_numbers": Kernel(random_numbers()),
        "random_numbers_32": Kernel(random_numbers(dtype="uint32")),
        "scan": Kernel(scan()),
        "scan_rows": Kernel(scan(inner=False)),
        "time_steps": Kernel(time_steps()),
        "forces": Kernel(forces()),
        "in_order": Kernel(summed_in_order()),
        "in_order_inside": Kernel(summed_in_order(outermost=False)),
    },
    "sparse": {
        "spmm": Kernel(examples.spmm(15, 11, 60, 19), csr(11)),
        "spmm_full_vectors": Kernel(examples.spmm(15, 11, 60, 32), csr(11)),
        "spmv": Kernel(spmv(), csr(11)),
        "sddmm": Kernel(sampled_product(), csr(11)),
        "spmv_added": Kernel(spmv(init=None), csr(11)),
        "gather": Kernel(examples.gather(20, 21, 13), below(index=20)),
        "histogram": Kernel(histogram(), below(bin=7)),
        "binned": Kernel(binned()),
        "named_bins": Kernel(named_bins()),
        "scatter_rows": Kernel(scatter_rows(), below(row=6)),
    },
    "elementwise": {
        "stencil1d": Kernel(examples.stencil(1, 40)),
        "stencil2d": Kernel(examples.stencil(2, 19)),
        "stencil3d": Kernel(examples.stencil(3, 9)),
        "views": Kernel(strided_matrices()),
        "upsample": Kernel(examples.upsample(14, 18)),
        "integers": Kernel(integers()),
        "integers_64": Kernel(integers(dtype="int64")),
        "unsigned": Kernel(unsigned()),
        "choice": Kernel(choice()),
        "choice_for_all": Kernel(choice(uniform=True)),
        "complex": Kernel(complex_mix()),
        "complex_fp32": Kernel(complex_mix(dtype="complex64")),
        "angles": Kernel(angles()),
        "powers": Kernel(powers()),
        "padded": Kernel(padded()),
        "far_choice": Kernel(far_choice()),
        "mask": Kernel(mask()),
        "every_other": Kernel(every_other()),
        "every_second": Kernel(every_second()),
        "every_second_uint8": Kernel(every_second(n=70, dtype="uint8")),
        "transpose": Kernel(permutation((21, 35), (1, 0))),
        "permute_3d": Kernel(permutation((5, 9, 19), (2, 0, 1))),
        "permute_4d": Kernel(permutation((3, 5, 7, 11), (3, 1, 0, 2))),
    },
    "extremes": {
        "empty_reduction": Kernel(matrix_product(5, 17, 0)),
        "empty_rows": Kernel(matrix_product(0, 5, 5)),
        "one_element": Kernel(matrix_product(1, 1, 1)),
        "one_row": Kernel(matrix_product(1, 33, 9)),
        "softmax_one_column": Kernel(softmax(3, 1)),
        "softmax_no_row": Kernel(softmax(0, 5)),
        "sum_of_nothing": Kernel(reduce_axis("k", "add", (3, 4, 0))),
    },
}  # fmt: skip


def every_kernel() -> Iterator[tuple[str, Kernel]]:
    for family, kernels in FAMILIES.items():
        for name, kernel in kernels.items():
            yield f"{family}-{name}", kernel
