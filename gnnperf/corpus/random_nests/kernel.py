"""`RandomKernel`: a random kernel while it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeAlias

from gnnperf.corpus.random_nests.expressions import RandomExpressions

WORK_SHARE = 6.0
"""Contractions do more per byte: so many times the points take as long."""


class RandomKernel:
    """Sizes, arguments and statements. points: ranges, out of one of which the number of points of an
    iteration space is drawn, log-uniform."""

    def __init__(self, rng: Random, dtypes: Sequence[str], points: Sequence[tuple[float, float]]) -> None:
        self.rng = rng
        self.dtype = rng.choice(dtypes)
        self.ranges = points
        self.sizes: dict[str, int] = {}
        self.arguments: list[str] = []
        self.body: list[str] = []
        self.indices: list[tuple[str, str, str]] = []  # name, shape, extent of what it points into
        self.given: list[tuple[str, str]] = []  # name, what it holds
        self.expressions = RandomExpressions(rng, self.dtype)
        self._temporaries = 0

    # ----------------------------------------------------------------------- sizes

    def points(self, share: float = 1.0) -> float:
        """How many iterations, `share` times a usual number."""
        low, high = self.rng.choice(self.ranges)
        return share * low * float((high / low) ** self.rng.random())

    def loops(self, rank: int, points: float = 1.0, least: int = 4) -> list[str]:
        """Sizes N0, N1, ... whose product is about `points` times a usual number of points."""
        total = self.points(points)
        shares = [self.rng.uniform(0.5, 1.5) for _ in range(rank)]
        return [self.size(max(least, round(total ** (share / sum(shares))))) for share in shares]

    def size(self, value: float) -> str:
        """A further size N0, N1, ... of that value."""
        name = f"N{len(self.sizes)}"
        self.sizes[name] = round(value)
        return name

    # ----------------------------------------------------------------------- arrays

    def argument(self, shape: Sequence[str], dtype: str | None = None) -> str:
        name = f"A{len(self.arguments)}"
        self.arguments.append(f"{name}: dace.{dtype or self.dtype}[{', '.join(shape)}]")
        return name

    def temporary(self, shape: Sequence[str]) -> str:
        """An array of the kernel's own, or one more argument."""
        if self.rng.random() < 0.5:
            return self.argument(shape)
        name, self._temporaries = f"t{self._temporaries}", self._temporaries + 1
        self.body.append(f"    {name} = np.empty(({', '.join(shape)},), dtype=np.{self.dtype})")
        return name

    def index(self, shape: Sequence[str], extent: str) -> str:
        """An argument that points into `extent` elements."""
        name = self.argument(shape, "int32")
        self.indices.append((name, ", ".join(shape), extent))
        return name

    def give(self, shape: Sequence[str], content: str) -> str:
        """An integer argument that holds `content`: Python over the sizes and `rng`."""
        name = self.argument(shape, "int32")
        self.given.append((name, content))
        return name

    def element(self, dims: Sequence[str], dtype: str | None = None) -> str:
        """An array of its own at the loops over `dims`."""
        return f"{self.argument(dims, dtype)}[{at(dims)}]"

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
            i = loop_of(n)
            forms = [(n, i)] * 12 + [(f"2 * {n}", f"2 * {i}"), (f"{n} + 3", f"{i} + {rng.randint(1, 3)}")]
            extent, subscript = rng.choice([*forms, (n, f"{n} - 1 - {i}")])
            shape.append(extent)
            subscripts.append(subscript)
        return f"{self.argument(shape)}[{', '.join(subscripts)}]"

    # ----------------------------------------------------------------------- statements

    def map(self, ranges: Mapping[str, str], depth: int = 1) -> str:
        """The head of a parallel loop nest."""
        variables = ", ".join(loop_of(n) for n in ranges)
        return f"{'    ' * depth}for {variables} in dace.map[{', '.join(ranges.values())}]:"

    def nest(self, dims: Sequence[str], statements: Sequence[str], depth: int = 1) -> None:
        """A loop nest over `dims`, sometimes written in another order than the arrays are stored in."""
        order = list(dims)
        if self.rng.random() < 0.3:
            self.rng.shuffle(order)
        self.body.append(self.map({n: f"0:{n}" for n in order}, depth))
        self.body += [f"{'    ' * (depth + 1)}{s}" for s in statements]

    def write(self, *lines: str) -> None:
        """Lines of the function, as they are indented in it."""
        self.body += [f"    {line}" for line in lines]

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
        lines += [f'        "{array}": ({content}).astype(np.int32),' for array, content in self.given]
        return "\n".join([*lines, "    }", ""])


Kind: TypeAlias = Callable[[RandomKernel], None]
"""Writes one kernel."""


def loop_of(size: str) -> str:
    """The variable of the loop over a size."""
    return size.replace("N", "i").lower()


def at(dims: Sequence[str]) -> str:
    """Subscripts of an array at the loops over `dims`."""
    return ", ".join(map(loop_of, dims))
