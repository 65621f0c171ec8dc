"""Random kernels, as DaCe source: they cover the space between the families that people name.

A number is a seed: it always gives the same kernel. Kinds take turns, and each kind is a family, so that
whole kinds can be held out. Inputs are in [0.1, 1.1) (integers: small), every operation keeps values near
that, and every output depends on them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from gnnperf.corpus.random_expressions import RandomExpressions

SMALL_POINTS, LARGE_POINTS = (2e4, 3e5), (1e6, 4e6)
"""Points of the iteration space, log-uniform: what stays in the caches and what does not."""
WORK_SHARE = 6.0
"""Contractions do more per byte: so many times the points take as long."""


@dataclass(frozen=True)
class RandomNest:
    """A kernel `name`, and a function `inputs` for its index arrays, in one source text."""

    number: int
    name: str
    family: str
    symbols: Mapping[str, int]
    source: str


def generate(number: int) -> RandomNest:
    """The random nest with this number."""
    kind = list(KINDS)[number % len(KINDS)]
    kernel = _Kernel(Random(f"random nest {number}"), integer=kind == "integer")
    KINDS[kind](kernel)
    name = f"random_{number}"
    return RandomNest(number, name, f"random_{kind}", kernel.sizes, kernel.source(name))


def write(number: int, folder: Path) -> Path:
    """Write the source to a file in `folder`: DaCe reads programs from files."""
    nest = generate(number)
    path = folder / f"{nest.name}.py"
    path.write_text(nest.source)
    return path


class _Kernel:
    """A kernel as it is written: sizes, arguments, statements."""

    def __init__(self, rng: Random, integer: bool) -> None:
        self.rng = rng
        self.dtype = rng.choice(("int32", "int64") if integer else ("float32", "float64"))
        self.sizes: dict[str, int] = {}
        self.arguments: list[str] = []
        self.body: list[str] = []
        self.indices: list[tuple[str, str, str]] = []  # name, shape, extent of what it points into
        self.expressions = RandomExpressions(rng, self.dtype)

    def loops(self, rank: int, points: float = 1.0, least: int = 4) -> list[str]:
        """Sizes N0, N1, ... whose product is about `points` times one of the usual numbers of points."""
        low, high = self.rng.choice((SMALL_POINTS, LARGE_POINTS))
        total = points * low * (high / low) ** self.rng.random()
        shares = [self.rng.uniform(0.5, 1.5) for _ in range(rank)]
        names = [f"N{len(self.sizes) + i}" for i in range(rank)]
        for name, share in zip(names, shares, strict=True):
            self.sizes[name] = max(least, round(total ** (share / sum(shares))))
        return names

    def argument(self, shape: Sequence[str], dtype: str | None = None) -> str:
        name = f"A{len(self.arguments)}"
        self.arguments.append(f"{name}: dace.{dtype or self.dtype}[{', '.join(shape)}]")
        return name

    def index(self, shape: Sequence[str], extent: str) -> str:
        """An argument that points into `extent` elements."""
        name = self.argument(shape, "int32")
        self.indices.append((name, ", ".join(shape), extent))
        return name

    def load(self, dims: Sequence[str]) -> str:
        """A read of an array of its own at the loops over some of the `dims`: permuted, broadcast, strided,
        shifted or reversed."""
        rng, kept = self.rng, list(dims)
        if len(kept) > 1 and rng.random() < 0.25:
            kept.remove(rng.choice(kept))
        if rng.random() < 0.3:
            rng.shuffle(kept)
        shape, subscripts = [], []
        for n in kept:
            i = _loop(n)
            forms = [(n, i)] * 12 + [(f"2 * {n}", f"2 * {i}"), (f"{n} + 3", f"{i} + {rng.randint(1, 3)}")]
            extent, subscript = rng.choice([*forms, (n, f"{n} - 1 - {i}")])
            shape.append(extent)
            subscripts.append(subscript)
        return f"{self.argument(shape)}[{', '.join(subscripts)}]"

    def map(self, ranges: Mapping[str, str], depth: int = 1) -> str:
        """The head of a parallel loop nest."""
        variables = ", ".join(_loop(n) for n in ranges)
        return f"{'    ' * depth}for {variables} in dace.map[{', '.join(ranges.values())}]:"

    def nest(self, dims: Sequence[str], statements: Sequence[str]) -> None:
        """A loop nest over `dims`, sometimes written in another order than the arrays are stored in."""
        order = list(dims)
        if self.rng.random() < 0.3:
            self.rng.shuffle(order)
        self.body += [self.map({n: f"0:{n}" for n in order}), *(f"        {s}" for s in statements)]

    def store(self, dims: Sequence[str]) -> str:
        return f"{self.argument(dims)}[{', '.join(_loop(n) for n in dims)}]"

    def source(self, name: str) -> str:
        symbols = list(self.sizes)
        lines = [
            "import dace",
            "import numpy as np",
            "",
            *(f'{n} = dace.symbol("{n}", dtype=dace.int64)' for n in symbols),
            "",
            "@dace.program",
            f"def {name}({', '.join(self.arguments)}):",
            *self.body,
            "",
            f"def inputs({', '.join(symbols)}):",
            "    rng = np.random.default_rng(0)",
            "    return {",
        ]
        for array, shape, extent in self.indices:
            drawn = f"rng.integers(0, {extent}, ({shape},))"
            if self.rng.random() < 0.4:
                drawn = f"np.sort({drawn}, axis=None).reshape({shape})"
            lines.append(f'        "{array}": {drawn}.astype(np.int32),')
        return "\n".join([*lines, "    }", ""])


def _loop(size: str) -> str:
    """The variable of the loop over a size."""
    return size.replace("N", "i").lower()


# --------------------------------------------------------------------------- kinds


def _elementwise(k: _Kernel) -> None:
    dims = k.loops(k.rng.randint(1, 4))
    lines, value = k.expressions.combine([k.load(dims) for _ in range(k.rng.randint(2, 4))])
    target = k.store(dims)
    if k.rng.random() < 0.25:
        a, b = k.load(dims), k.load(dims)
        lines += [f"if {a} > {b}:", f"    {target} = {value}", "else:", f"    {target} = {a}"]
    else:
        lines.append(f"{target} = {value}")
    k.nest(dims, lines)


def _reduction(k: _Kernel) -> None:
    """Sums over any of the loops, as a loop nest, or one axis reduced as NumPy writes it."""
    rank = k.rng.randint(2, 4)
    dims = k.loops(rank)
    if k.rng.random() < 0.5:
        kept = sorted(k.rng.sample(dims, k.rng.randint(1, rank - 1)))
        lines, value = k.expressions.combine([k.load(dims) for _ in range(k.rng.randint(1, 3))], plain=True)
        k.nest(dims, [*lines, f"{k.store(kept)} += {value}"])
        return
    axis = k.rng.randrange(rank)
    whole = k.expressions.of_arrays([k.argument(dims) for _ in range(k.rng.randint(1, 2))])
    target = k.argument([n for n in dims if n != dims[axis]])
    k.body.append(f"    {target}[:] = np.{k.rng.choice(('sum', 'max', 'min'))}({whole}, axis={axis})")


def _stencil(k: _Kernel) -> None:
    rank = k.rng.randint(1, 3)
    dims = k.loops(rank, least=12)
    _stencil_nest(k, dims, k.argument(dims), k.argument(dims), k.rng.randint(1, 2))


def _stencil_nest(k: _Kernel, dims: Sequence[str], source: str, target: str, radius: int) -> None:
    """Weighted points of a star or a box, sometimes with a coefficient for every cell."""
    rng, rank = k.rng, len(dims)
    reach = range(-radius, radius + 1)
    points = [p for p in itertools.product(reach, repeat=rank) if any(p)]
    if rng.random() < 0.6:
        points = [p for p in points if sum(map(bool, p)) == 1]
    chosen = [(0,) * rank, *rng.sample(points, min(len(points), rng.randint(2, 8)))]
    loops = [_loop(n) for n in dims]

    def at(array: str, point: Sequence[int]) -> str:
        return f"{array}[{', '.join(f'{i} + {d}' if d else i for i, d in zip(loops, point, strict=True))}]"

    terms = [f"{k.expressions.constant()} * {at(source, p)}" for p in chosen]
    value = " + ".join(terms)
    if rng.random() < 0.4:
        value = f"{at(k.argument(dims), chosen[0])} * ({value})"
    order = list(dims) if rng.random() < 0.8 else list(reversed(dims))
    k.body.append(k.map({n: f"{radius}:{n} - {radius}" for n in order}))
    k.body.append(f"        {at(target, chosen[0])} = {value}")


def _gather(k: _Kernel) -> None:
    """Rows or elements that an index array names: copied, combined or summed up."""
    form = k.rng.choice(("element", "row", "column", "weighted", "bag"))
    wide = k.rng.choice((4, 8, 16, 32, 48))
    (n,) = k.loops(1, points={"element": 0.5, "bag": 0.3 / wide}.get(form, 1 / wide))
    k.sizes["M"] = round(k.sizes[n] * k.rng.choice((0.2, 1.0, 3.0))) + 64  # what is pointed into
    if form == "element":
        read = f"{k.argument(['M'])}[{k.index([n], 'M')}[i0]]"
        lines, value = k.expressions.combine([read, k.load([n])])
        k.nest([n], [*lines, f"{k.store([n])} = {value}"])
    elif form in ("row", "column"):
        k.sizes["D"] = wide
        dims = [n, "D"] if form == "row" else ["D", n]
        at = f"{k.index([n], 'M')}[i0]"
        read = f"{k.argument(['M', 'D'])}[{at}, d]" if form == "row" else f"{k.argument(['D', 'M'])}[d, {at}]"
        lines, value = k.expressions.combine([read, f"{k.argument(dims)}[{', '.join(map(_loop, dims))}]"])
        k.nest(dims, [*lines, f"{k.store(dims)} = {value}"])
    else:
        k.sizes["K"] = k.rng.choice((4, 8, 16))
        row = ["D"] if form == "bag" else []
        if row:
            k.sizes["D"] = wide
        weight = f"{k.argument([n, 'K'])}[i0, k]"
        at = ", ".join([f"{k.index([n, 'K'], 'M')}[i0, k]", *map(_loop, row)])
        k.nest([n, "K", *row], [f"{k.store([n, *row])} += {weight} * {k.argument(['M', *row])}[{at}]"])


def _contraction(k: _Kernel) -> None:
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
        reads.append(f"{k.argument(operand)}[{', '.join(_loop(n) for n in operand)}]")
    k.nest(dims, [f"{k.store(outer)} += {reads[0]} * {reads[1]}"])


def _triangular(k: _Kernel) -> None:
    """Loops that end, or begin, where an outer loop is: sums of rows, elementwise halves, products."""
    form = k.rng.choice(("sum", "half", "product"))
    low, high = k.rng.choice((SMALL_POINTS, LARGE_POINTS))
    points = low * (high / low) ** k.rng.random() * (WORK_SHARE if form == "product" else 1.0)
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


def _chain(k: _Kernel) -> None:
    """Statements that feed one another: stencils of stencils, or a reduction and what uses it."""
    if k.rng.random() < 0.5:
        dims = k.loops(k.rng.randint(2, 3), least=16)
        fields = [k.argument(dims) for _ in range(k.rng.randint(3, 4))]
        for step, (source, target) in enumerate(itertools.pairwise(fields), start=1):
            _stencil_nest(k, dims, source, target, step)
        return
    dims = k.loops(2)
    a, b, out = (k.argument(dims) for _ in range(3))
    k.body.append(f"    t = {k.expressions.of_arrays([a, b])}")
    axis = k.rng.randrange(2)
    k.body.append(f"    s = np.{k.rng.choice(('sum', 'max'))}(t, axis={axis})")
    scale = "s[:, None]" if axis else "s"
    k.body.append(f"    {out}[:] = {k.rng.choice((f't / ({scale} + 1.5)', f't - {scale}', f't * {scale}'))}")


def _integer(k: _Kernel) -> None:
    k.rng.choice((_elementwise, _reduction, _stencil))(k)


KINDS: Mapping[str, Callable[[_Kernel], None]] = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "stencil": _stencil,
    "gather": _gather,
    "contraction": _contraction,
    "triangular": _triangular,
    "chain": _chain,
    "integer": _integer,
}
