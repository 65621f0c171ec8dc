"""Random kernels of dense linear algebra: whole, banded and triangular matrices, and tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gnnperf.corpus.random_nests.kernel import WORK_SHARE, Kind, RandomKernel


def matvec(k: RandomKernel) -> None:
    """Matrices, as they are and transposed, times vectors."""
    m, n = k.loops(2)
    form = k.rng.choice(("plain", "transposed", "two", "both"))
    a = k.element([m, n])
    by_row, by_column = f"{k.element([m])} += ", f"{k.element([n])} += "
    x, y = k.element([n]), k.element([m])
    if form == "plain":
        k.nest([m, n], [f"{by_row}{a} * {x}"])
    elif form == "transposed":
        k.nest([m, n], [f"{by_column}{a} * {y}"])
    elif form == "two":
        c = k.expressions.constant()
        k.nest([m, n], [f"{by_row}{c} * {a} * {x} + {k.element([m, n])} * {k.element([n])}"])
    else:
        k.nest([m, n], [f"{by_row}{a} * {x}"])
        k.nest([m, n], [f"{by_column}{a} * {y}"])


def rank_update(k: RandomKernel) -> None:
    """Outer products: added to a matrix, or stored."""
    rank = k.rng.randint(2, 3)
    dims = k.loops(rank)
    terms = [" * ".join(k.element([n]) for n in dims) for _ in range(k.rng.randint(1, 2))]
    target, operator = k.element(dims), k.rng.choice(("=", "+="))
    k.nest(dims, [f"{target} {operator} {' + '.join(terms)}"])


def batched(k: RandomKernel) -> None:
    """Many small products: of matrices, or of matrices and vectors."""
    b, k.sizes["N1"] = k.size(1), k.rng.choice((3, 4, 6, 8, 12, 16, 24, 32, 48))
    row = "N1"
    column, inner = (k.size(max(2, k.sizes[row] + k.rng.randint(-2, 4))) for _ in range(2))
    vector = k.rng.random() < 0.3
    dims = [b, row, inner] if vector else [b, row, column, inner]
    work = math.prod(k.sizes[n] for n in dims[1:])
    k.sizes[b] = max(4, round(k.points(WORK_SHARE) / work))
    left, right = [b, row, inner], [b, inner] if vector else [b, inner, column]
    if k.rng.random() < 0.4:
        left[1:] = reversed(left[1:])
    if k.rng.random() < 0.4:
        right[1:] = reversed(right[1:])
    if k.rng.random() < 0.25:  # one matrix for all
        right.remove(b)
    a, c = k.element(left), k.element(right)
    k.nest(dims, [f"{k.element(dims[:-1])} += {a} * {c}"])


def tensor_product(k: RandomKernel) -> None:
    """Three or four tensors that share loops, in one statement."""
    form = k.rng.choice(("chain", "bilinear", "factors", "model"))
    p, q, r, s = k.loops(4, points=WORK_SHARE, least=3)
    operands, target = {
        "chain": (([p, q], [q, r], [r, s]), [p, s]),
        "bilinear": (([p, q], [q, r, s], [p, s]), [p, r]),
        "factors": (([p, q, r], [q, s], [r, s]), [p, s]),
        "model": (([p, s], [q, s], [r, s], [s]), [p, q, r]),
    }[form]
    reads = [k.element(sorted(o, reverse=k.rng.random() < 0.25)) for o in operands]
    k.nest([p, q, r, s], [f"{k.element(target)} += {' * '.join(reads)}"])


def _side(points: float, rank: int) -> int:
    """Of a square or a cube of which half is so many points."""
    return max(24, round((2 * points) ** (1 / rank)))


def triangular_product(k: RandomKernel) -> None:
    """Products with a triangular matrix, symmetric updates of one, and a solution with it."""
    form = k.rng.choice(("trmm", "syrk", "syr2k", "solve"))
    n = k.size(_side(k.points(WORK_SHARE), 3))
    m = k.size(max(8, k.sizes[n] + k.rng.randint(-16, 16)))
    lower, c = k.rng.random() < 0.5, k.expressions.constant()
    if form == "solve":
        t, x = k.argument([n, n]), k.argument([n, m])
        done, rows = ("0:i0", f"range(1, {n})") if lower else (f"i0 + 1:{n}", f"range({n} - 2, -1, -1)")
        k.write(f"for i0 in {rows}:", f"    for i1, i2 in dace.map[0:{m}, {done}]:")
        k.write(f"        {x}[i0, i1] += -(0.01 * {c} * {t}[i0, i2]) * {x}[i2, i1]")
        return
    triangle = "0:i0 + 1" if lower else f"i0:{n}"
    k.write(f"for i0 in dace.map[0:{n}]:")
    if form == "trmm":
        t, b, out = k.argument([n, n]), k.argument([n, m]), k.argument([n, m])
        entry = k.rng.choice(("i0, i2", "i2, i0"))
        k.write(f"    for i1, i2 in dace.map[0:{m}, {triangle}]:")
        k.write(f"        {out}[i0, i1] += {c} * {t}[{entry}] * {b}[i2, i1]")
        return
    turned = k.rng.random() < 0.5
    shape = [m, n] if turned else [n, m]
    a, out = k.argument(shape), k.argument([n, n])
    b = k.argument(shape) if form == "syr2k" else a
    one, other = ("i2, i0", "i2, i1") if turned else ("i0, i2", "i1, i2")
    value = f"{a}[{one}] * {b}[{other}]"
    if form == "syr2k":
        value = f"{value} + {b}[{one}] * {a}[{other}]"
    k.write(f"    for i1, i2 in dace.map[{triangle}, 0:{m}]:", f"        {out}[i0, i1] += {value}")


def banded(k: RandomKernel) -> None:
    """Bands of a matrix, stored by diagonals or whole, times a vector or a few of them."""
    width = k.rng.randint(1, 8)
    stored = k.rng.random() < 0.5
    side = k.points(2.0) / (2 * width + 1)
    n = k.size(max(40, side if stored else min(side, 1500)))
    a = k.argument([n, f"{2 * width + 1}"] if stored else [n, n])
    columns = [k.size(k.rng.choice((4, 8, 16)))] if k.rng.random() < 0.3 else []
    if columns:
        k.sizes[n] = max(40, k.sizes[n] // 4)
    x, y = k.argument([n, *columns]), k.argument([n, *columns])
    tail = ", i1" if columns else ""
    ranges = f"0:{columns[0]}, " if columns else ""
    variables = "i1, d" if columns else "d"
    k.write(f"for i0 in dace.map[{width}:{n} - {width}]:")
    if stored:
        k.write(f"    for {variables} in dace.map[{ranges}0:{2 * width + 1}]:")
        k.write(f"        {y}[i0{tail}] += {a}[i0, d] * {x}[i0 + d - {width}{tail}]")
    else:
        k.write(f"    for {variables} in dace.map[{ranges}i0 - {width}:i0 + {width} + 1]:")
        k.write(f"        {y}[i0{tail}] += {a}[i0, d] * {x}[d{tail}]")


def trapezoid(k: RandomKernel) -> None:
    """Rows that grow, shrink or move: elementwise, or summed."""
    n = k.size(_side(k.points(), 2))
    extra = k.rng.randint(2, 20)
    wide = f"{n} + {extra}"
    bounds = k.rng.choice((f"0:i0 + {extra}", f"i0:{wide}", f"i0:i0 + {extra}", f"{n} - 1 - i0:{wide}"))
    turned = k.rng.random() < 0.3
    a = k.argument([wide, n] if turned else [n, wide])
    read = f"{a}[i1, i0]" if turned else f"{a}[i0, i1]"
    lines, value = k.expressions.combine([read, f"{k.argument([wide])}[i1]"], plain=True)
    summed = k.rng.random() < 0.4
    target = f"{k.argument([n])}[i0] +=" if summed else f"{k.argument([n, wide])}[i0, i1] ="
    k.write(f"for i0 in dace.map[0:{n}]:", f"    for i1 in dace.map[{bounds}]:")
    k.write(*(f"        {line}" for line in (*lines, f"{target} {value}")))


KINDS: Mapping[str, Kind] = {
    "matvec": matvec,
    "rank_update": rank_update,
    "batched": batched,
    "tensor_product": tensor_product,
    "triangular_product": triangular_product,
    "banded": banded,
    "trapezoid": trapezoid,
}
