"""The first kinds of random kernels: one loop nest of each way to move through memory, and chains of two."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from gnnperf.corpus.random_nests.kernel import WORK_SHARE, Kind, RandomKernel, loop_of


def elementwise(k: RandomKernel) -> None:
    dims = k.loops(k.rng.randint(1, 4))
    lines, value = k.expressions.combine([k.load(dims) for _ in range(k.rng.randint(2, 4))])
    target = k.element(dims)
    if k.rng.random() < 0.25:
        a, b = k.load(dims), k.load(dims)
        lines += [f"if {a} > {b}:", f"    {target} = {value}", "else:", f"    {target} = {a}"]
    else:
        lines.append(f"{target} = {value}")
    k.nest(dims, lines)


def reduction(k: RandomKernel) -> None:
    """Sums over any of the loops, as a loop nest, or one axis reduced as NumPy writes it."""
    rank = k.rng.randint(2, 4)
    dims = k.loops(rank)
    if k.rng.random() < 0.5:
        kept = sorted(k.rng.sample(dims, k.rng.randint(1, rank - 1)))
        lines, value = k.expressions.combine([k.load(dims) for _ in range(k.rng.randint(1, 3))], plain=True)
        k.nest(dims, [*lines, f"{k.element(kept)} += {value}"])
        return
    axis = k.rng.randrange(rank)
    whole = k.expressions.of_arrays([k.argument(dims) for _ in range(k.rng.randint(1, 2))])
    target = k.argument([n for n in dims if n != dims[axis]])
    k.body.append(f"    {target}[:] = np.{k.rng.choice(('sum', 'max', 'min'))}({whole}, axis={axis})")


def stencil(k: RandomKernel) -> None:
    rank = k.rng.randint(1, 3)
    dims = k.loops(rank, least=12)
    stencil_nest(k, dims, k.argument(dims), k.argument(dims), k.rng.randint(1, 2))


def stencil_nest(
    k: RandomKernel, dims: Sequence[str], source: str, target: str, radius: int, depth: int = 1
) -> None:
    """Weighted points of a star or a box, sometimes with a coefficient for every cell."""
    rng, rank = k.rng, len(dims)
    reach = range(-radius, radius + 1)
    points = [p for p in itertools.product(reach, repeat=rank) if any(p)]
    if rng.random() < 0.6:
        points = [p for p in points if sum(map(bool, p)) == 1]
    chosen = [(0,) * rank, *rng.sample(points, min(len(points), rng.randint(2, 8)))]
    loops = [loop_of(n) for n in dims]

    def near(array: str, point: Sequence[int]) -> str:
        return f"{array}[{', '.join(f'{i} + {d}' if d else i for i, d in zip(loops, point, strict=True))}]"

    terms = [f"{k.expressions.constant()} * {near(source, p)}" for p in chosen]
    value = " + ".join(terms)
    if rng.random() < 0.4:
        value = f"{near(k.argument(dims), chosen[0])} * ({value})"
    order = list(dims) if rng.random() < 0.8 else list(reversed(dims))
    k.body.append(k.map({n: f"{radius}:{n} - {radius}" for n in order}, depth))
    k.body.append(f"{'    ' * depth}    {near(target, chosen[0])} = {value}")


def gather(k: RandomKernel) -> None:
    """Rows or elements that an index array names: copied, combined or summed up."""
    form = k.rng.choice(("element", "row", "column", "weighted", "bag"))
    wide = k.rng.choice((4, 8, 16, 32, 48))
    (n,) = k.loops(1, points={"element": 0.5, "bag": 0.3 / wide}.get(form, 1 / wide))
    k.sizes["M"] = round(k.sizes[n] * k.rng.choice((0.2, 1.0, 3.0))) + 64  # what is pointed into
    if form == "element":
        read = f"{k.argument(['M'])}[{k.index([n], 'M')}[i0]]"
        lines, value = k.expressions.combine([read, k.load([n])])
        k.nest([n], [*lines, f"{k.element([n])} = {value}"])
    elif form in ("row", "column"):
        k.sizes["D"] = wide
        dims = [n, "D"] if form == "row" else ["D", n]
        one = f"{k.index([n], 'M')}[i0]"
        if form == "row":
            read = f"{k.argument(['M', 'D'])}[{one}, d]"
        else:
            read = f"{k.argument(['D', 'M'])}[d, {one}]"
        lines, value = k.expressions.combine([read, k.element(dims)])
        k.nest(dims, [*lines, f"{k.element(dims)} = {value}"])
    else:
        k.sizes["K"] = k.rng.choice((4, 8, 16))
        row = ["D"] if form == "bag" else []
        if row:
            k.sizes["D"] = wide
        weight = f"{k.argument([n, 'K'])}[i0, k]"
        place = ", ".join([f"{k.index([n, 'K'], 'M')}[i0, k]", *map(loop_of, row)])
        k.nest([n, "K", *row], [f"{k.element([n, *row])} += {weight} * {k.argument(['M', *row])}[{place}]"])


def contraction(k: RandomKernel) -> None:
    """Products of two arrays that share loops, summed over one or two of them."""
    free, summed = k.rng.randint(1, 3), k.rng.randint(1, 2)
    dims = k.loops(free + summed, points=WORK_SHARE)
    outer, inner = dims[:free], dims[free:]
    split = k.rng.randint(1, free)
    left, right = [*outer[:split], *inner], [*outer[split:], *inner]
    if split > 1 and k.rng.random() < 0.3:  # a batch
        right.insert(0, outer[0])
    reads = []
    for operand in (left, right):
        if k.rng.random() < 0.5:
            k.rng.shuffle(operand)
        reads.append(k.element(operand))
    k.nest(dims, [f"{k.element(outer)} += {reads[0]} * {reads[1]}"])


def triangular(k: RandomKernel) -> None:
    """Loops that end, or begin, where an outer loop is: sums of rows, elementwise halves, products."""
    form = k.rng.choice(("sum", "half", "product"))
    points = k.points(WORK_SHARE if form == "product" else 1.0)
    k.sizes["N0"] = n = max(24, round(points ** (1 / 3) if form == "product" else math.sqrt(2 * points)))
    triangle = k.rng.choice(("0:i0 + 1", "i0:N0"))
    k.body.append("    for i0 in dace.map[0:N0]:")
    square = ["N0", "N0"]
    if form == "product":
        k.sizes["N1"] = max(8, n + k.rng.randint(-8, 8))
        a, b, c = k.argument(square), k.argument(["N0", "N1"]), k.argument(["N0", "N1"])
        k.body.append(f"        for i1, i2 in dace.map[0:N1, {triangle}]:")
        k.body.append(f"            {c}[i0, i1] += {a}[i0, i2] * {b}[i2, i1]")
        return
    k.body.append(f"        for i1 in dace.map[{triangle}]:")
    first = f"{k.argument(square)}[{k.rng.choice(('i0, i1', 'i1, i0'))}]"
    lines, value = k.expressions.combine([first, f"{k.argument(['N0'])}[i1]"], plain=True)
    target = f"{k.argument(['N0'])}[i0] +=" if form == "sum" else f"{k.argument(square)}[i0, i1] ="
    k.body += [*(f"            {s}" for s in lines), f"            {target} {value}"]


def chain(k: RandomKernel) -> None:
    """Statements that feed one another: stencils of stencils, or a reduction and what uses it."""
    if k.rng.random() < 0.5:
        dims = k.loops(k.rng.randint(2, 3), least=16)
        fields = [k.argument(dims) for _ in range(k.rng.randint(3, 4))]
        for step, (source, target) in enumerate(itertools.pairwise(fields), start=1):
            stencil_nest(k, dims, source, target, step)
        return
    dims = k.loops(2)
    a, b, out = (k.argument(dims) for _ in range(3))
    k.body.append(f"    t = {k.expressions.of_arrays([a, b])}")
    axis = k.rng.randrange(2)
    k.body.append(f"    s = np.{k.rng.choice(('sum', 'max'))}(t, axis={axis})")
    scale = "s[:, None]" if axis else "s"
    k.body.append(f"    {out}[:] = {k.rng.choice((f't / ({scale} + 1.5)', f't - {scale}', f't * {scale}'))}")


def integer(k: RandomKernel) -> None:
    k.rng.choice((elementwise, reduction, stencil))(k)


KINDS: Mapping[str, Kind] = {
    "elementwise": elementwise,
    "reduction": reduction,
    "stencil": stencil,
    "gather": gather,
    "contraction": contraction,
    "triangular": triangular,
    "chain": chain,
    "integer": integer,
}
