"""What costs much and depends on some loops alone, computed once for all iterations of the others:

    for i, j: y[i, j] = x[i, j] * cos(lat[j])           for j: t[j] = cos(lat[j])
                                                        for i, j: y[i, j] = x[i, j] * t[j]

Compilers move out of a loop what does not depend on it. They make no array for what depends on a loop inside
of that: windows of a transform, weights of an interpolation, angles of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from gnnperf.nests.affine import constant
from gnnperf.nests.analysis import extent
from gnnperf.nests.dtypes import INTEGER, REAL, as_stored, value_dtype
from gnnperf.nests.ir import (
    LAZY,
    TRANSCENDENTAL,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    children,
    loads,
    map_expr,
    row_major,
    subexpressions,
    symbols,
    walk,
)

COSTS: Mapping[str, int] = {
    **dict.fromkeys(TRANSCENDENTAL, 10),
    **dict.fromkeys(("div", "sqrt"), 4),
    **dict.fromkeys(("floor", "ceil"), 2),
}
"""Of operations that take long, in additions; others cost one."""
LEAST_COST = 6
LEAST_USES = 8
"""How often what a table holds must be used at least: it is stored, and read again."""
MOST_ELEMENTS = 1 << 15
"""Tables stay in a core's cache."""


def is_costly(expr: Expr) -> bool:
    """Does it take longer to compute than to read again?"""
    costs = [_cost(e) for e in subexpressions(expr) if isinstance(e, Op)]
    return max(costs, default=0) > 1 and sum(costs) >= LEAST_COST


def _cost(operation: Op) -> int:
    match operation:
        case Op("pow", (_, Const(value=int() as exponent))) if abs(exponent) < 4:
            return 1
        case Op("pow", (Const(value=int()), exponent)) if not loads(exponent):  # a length: 2 ** level
            return 1
    return COSTS.get(operation.name, 1)


def tabulate(
    nodes: tuple[Node, ...], buffers: dict[str, Buffer], fresh: Callable[[str], str]
) -> tuple[Node, ...]:
    """The nodes, with tables before those that read them; `buffers` gets the tables, with names that `fresh`
    finds."""
    made: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            tables = _Tables(node, buffers, fresh)
            node = tables.read_in(node, ())
            made += tables.nodes
        made.append(node)
    return tuple(made)


@dataclass
class _Tables:
    """Of a loop: what is computed before it."""

    loop: Loop
    buffers: dict[str, Buffer]
    fresh: Callable[[str], str]
    nodes: list[Node] = field(default_factory=list)
    found: dict[tuple[Expr, str, tuple[Loop, ...]], Load] = field(default_factory=dict)
    """By what is computed, its dtype, and in which loops, without their bodies."""
    known: dict[str, Expr] = field(default_factory=dict)
    """What local scalars stand for, where nothing but iterators and arrays decides that."""

    def __post_init__(self) -> None:
        statements = [n for n in walk((self.loop,)) if isinstance(n, Statement)]
        names = [s.target.buffer for s in statements]
        self.changed = set(names)
        scalars = {n for n in names if self.buffers[n].scope == "local" and not self.buffers[n].shape}
        self.set_once = {n for n in scalars if names.count(n) == 1}

    def read_in(self, loop: Loop, around: tuple[Loop, ...]) -> Loop:
        """The loop, which reads tables."""
        stack, outside = (*around, loop), dict(self.known)
        body: list[Node] = []
        for node in loop.body:
            if isinstance(node, Loop):
                body.append(self.read_in(node, stack))
                continue
            body.append(self._reading(node, stack))
            if node.guard is None and node.reduce is None and node.target.buffer in self.set_once:
                name = node.target.buffer
                self.known[name] = as_stored(
                    self._meant(node.value), self.buffers[name].dtype, set(), self.buffers
                )
        self.known = outside
        return replace(loop, body=tuple(body))

    def _meant(self, expr: Expr) -> Expr:
        """The expression without local scalars that are known."""

        def meant(e: Expr) -> Expr:
            return self.known.get(e.buffer, e) if isinstance(e, Load) and not e.indices else e

        return map_expr(expr, meant)

    def _reading(self, statement: Statement, stack: tuple[Loop, ...]) -> Statement:
        if not is_costly(self._meant(statement.value)):
            return statement
        dtype = self.buffers[statement.target.buffer].dtype

        def read(expr: Expr, always: bool, place: bool = False) -> Expr:
            if isinstance(expr, Op) and (table := self._table(expr, dtype, stack, always, place)):
                return table
            lazy, places = isinstance(expr, Op) and expr.name in LAZY, isinstance(expr, Load)
            parts = [read(p, always and not (lazy and n), places) for n, p in enumerate(children(expr))]
            if isinstance(expr, Op):
                return Op(expr.name, tuple(parts))
            return Load(expr.buffer, tuple(parts)) if isinstance(expr, Load) else expr

        value = read(statement.value, statement.guard is None)
        return replace(statement, value=value)

    def _table(
        self, expr: Op, dtype: str, stack: tuple[Loop, ...], always: bool, is_place: bool
    ) -> Load | None:
        """What reads the value from a table; None where it is no matter for one. Places in arrays are in
        tables even if the outermost loops alone decide them: then it shows which."""
        meant = self._meant(expr)
        held = value_dtype(meant, self.buffers)
        if held is None or not is_costly(meant):
            return None
        names = symbols(meant)
        loops = [lp for lp in stack if lp.iterator in names]
        others = [lp for lp in stack if lp.iterator not in names]
        if not loops or len(loops) < len(names) or ([*stack[: len(loops)]] == loops and not is_place):
            return None
        sizes = [extent(lp) if lp.step == 1 and constant(lp.start) is not None else None for lp in loops]
        if None in sizes or prod(size or 0 for size in sizes) > MOST_ELEMENTS:
            return None
        uses = prod(LEAST_USES if (n := extent(lp)) is None else n for lp in others)
        sources = {ld.buffer for ld in loads(meant)}
        if uses < LEAST_USES or sources & self.changed or not (always or _is_harmless(meant)):
            return None
        if held in (INTEGER, REAL):
            is_real = held == REAL
            held = dtype if is_real and dtype.startswith("float") else "float64" if is_real else "int64"
        over = tuple(replace(lp, body=()) for lp in loops)
        if (meant, held, over) not in self.found:
            self.found[meant, held, over] = self._filled(meant, held, over)
        return self.found[meant, held, over]

    def _filled(self, value: Expr, dtype: str, loops: tuple[Loop, ...]) -> Load:
        """An element of a new table."""
        name = self.fresh("table")
        shape = tuple(extent(lp) or 0 for lp in loops)
        self.buffers[name] = Buffer(name, dtype, shape, row_major(shape), transient=True)
        element = Load(name, tuple(Op("sub", (Symbol(lp.iterator), lp.start)) for lp in loops))
        if dtype == "float32":
            value = Op("cast:float32", (Op("cast:float64", (value,)),))
        node: Node = Statement(element, value)
        for lp in reversed(loops):
            node = replace(lp, body=(node,))
        self.nodes.append(node)
        return element


def _is_harmless(expr: Expr) -> bool:
    """May it be computed where the program would not? It reads nothing, and divides no integer by zero."""
    divisors = [
        e.args[1] for e in subexpressions(expr) if isinstance(e, Op) and e.name in ("floordiv", "mod")
    ]
    return not loads(expr) and all(isinstance(divisor, Const) for divisor in divisors)
