"""Random kernels that go through grids in an order: time loops, recurrences, sweeps."""

from __future__ import annotations

from collections.abc import Mapping

from gnnperf.corpus.random_nests.basic import stencil_nest
from gnnperf.corpus.random_nests.kernel import Kind, RandomKernel, at


def time_stencil(k: RandomKernel) -> None:
    """Stencils between two or three fields, step by step."""
    dims = k.loops(k.rng.randint(1, 3), least=12)
    fields = [k.argument(dims) for _ in range(k.rng.randint(2, 3))]
    k.write(f"for t in range({k.rng.randint(2, 6)}):")
    for source, target in zip(fields, [*fields[1:], fields[0]], strict=True):
        stencil_nest(k, dims, source, target, 1, depth=2)


def time_fields(k: RandomKernel) -> None:
    """Coupled fields: one moves by the differences of the other, as waves do."""
    dims = k.loops(k.rng.randint(1, 2), least=12)
    u, v = k.argument(dims), k.argument(dims)
    k.write(f"for t in range({k.rng.randint(2, 6)}):")
    axis = k.rng.randrange(len(dims))
    here = at(dims)
    loops = [f"i{a}" for a in range(len(dims))]
    for source, target, shift in ((u, v, "- 1"), (v, u, "+ 1")):
        there = ", ".join(f"{i} {shift}" if a == axis else i for a, i in enumerate(loops))
        k.body.append(k.map({n: f"1:{n} - 1" for n in dims}, depth=2))
        step = f"{k.expressions.constant()} * ({source}[{here}] - {source}[{there}])"
        k.body.append(f"            {target}[{here}] = {target}[{here}] - {step}")


def scan(k: RandomKernel) -> None:
    """A recurrence along one axis; the others are independent."""
    rank = k.rng.randint(2, 3)
    dims, axis = k.loops(rank, least=6), k.rng.randrange(rank)
    n, others = dims[axis], [d for a, d in enumerate(dims) if a != axis]
    a, out = k.argument(dims), k.argument(dims)
    i, backward = f"i{axis}", k.rng.random() < 0.3
    order = k.rng.choice((1, 1, 2))
    here = at(dims)

    def before(steps: int) -> str:
        sign = "+" if backward else "-"
        return f"{out}[{here.replace(i, f'{i} {sign} {steps}')}]"

    c = k.expressions.constant
    value = k.rng.choice((
        f"0.5 * {before(1)} + {c()} * {a}[{here}]",
        f"{c()} * {before(1)} * {a}[{here}] + {c()}",
        f"max({before(1)}, {a}[{here}])",
        f"{a}[{here}] / (1.0 + {before(1)})",
    ))  # fmt: skip
    if order == 2:
        value = f"{value} - 0.25 * {before(2)}"
    steps = f"range({n} - {order + 1}, -1, -1)" if backward else f"range({order}, {n})"
    inner = [k.map({d: f"0:{d}" for d in others}, depth=0), f"for {i} in {steps}:"]
    if k.rng.random() < 0.6:
        inner.reverse()
    k.write(inner[0], f"    {inner[1]}", f"        {out}[{here}] = {value}")


def sweep(k: RandomKernel) -> None:
    """Forward elimination and back substitution of many tridiagonal systems."""
    rank = k.rng.randint(2, 3)
    dims, axis = k.loops(rank, points=0.5, least=6), k.rng.choice((0, rank - 1))
    n, others = dims[axis], {d: f"0:{d}" for a, d in enumerate(dims) if a != axis}
    a, b, x = (k.argument(dims) for _ in range(3))
    here, i = at(dims), f"i{axis}"
    previous, following = here.replace(i, f"{i} - 1"), here.replace(i, f"{i} + 1")
    c = k.expressions.constant()
    k.write(f"for {i} in range(1, {n}):")
    k.body.append(k.map(others, depth=2))
    k.write(f"        w = {c} * {a}[{here}] / ({b}[{previous}] + 2.0)")
    k.write(f"        {b}[{here}] = {b}[{here}] - 0.5 * w", f"        {x}[{here}] -= w * {x}[{previous}]")
    k.write(f"for {i} in range({n} - 2, -1, -1):")
    k.body.append(k.map(others, depth=2))
    k.write(f"        {x}[{here}] = ({x}[{here}] - {a}[{here}] * {x}[{following}]) / ({b}[{here}] + 2.0)")


KINDS: Mapping[str, Kind] = {
    "time_stencil": time_stencil,
    "time_fields": time_fields,
    "scan": scan,
    "sweep": sweep,
}
