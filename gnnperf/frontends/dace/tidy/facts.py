"""What the clean-up steps ask about pieces of code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gnnperf.nests.analysis import accesses, conjuncts, guarded_loads
from gnnperf.nests.coverage import carried
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    children,
    expressions_of,
    loads,
    map_expr,
    walk,
)

Block = tuple[Node, ...]


@dataclass
class Counts:
    """How often every buffer is loaded and stored."""

    uses: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)

    def touches(self, name: str) -> int:
        return self.uses[name] + self.writes[name]

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.uses + other.uses, self.writes + other.writes)

    def __sub__(self, other: Counts) -> Counts:
        return Counts(self.uses - other.uses, self.writes - other.writes)


@dataclass
class Code:
    """The buffers of the code that is cleaned up, and counts of its nodes (remembered: nodes do not
    change, and most of them stay from step to step)."""

    buffers: dict[str, Buffer]
    _known: dict[int, tuple[Node, Counts]] = field(default_factory=dict)

    def of(self, node: Node) -> Counts:
        known = self._known.get(id(node))
        if known is not None:
            return known[1]
        if isinstance(node, Loop):
            counts = self.bounds(node) + self.total(node.body)
        else:
            found = list(accesses(node))
            counts = Counts(
                Counter(a.load.buffer for a in found if not a.is_write),
                Counter(a.load.buffer for a in found if a.is_write),
            )
        self._known[id(node)] = (node, counts)  # holding the node keeps its id from being used again
        return counts

    def bounds(self, loop: Loop) -> Counts:
        return Counts(Counter(ld.buffer for b in expressions_of(loop) for ld in loads(b)))

    def total(self, nodes: Iterable[Node]) -> Counts:
        result = Counts()
        for node in nodes:
            counts = self.of(node)
            result.uses.update(counts.uses)
            result.writes.update(counts.writes)
        return result

    def new_version(self, name: str) -> str:
        """Another name for a scalar, which no buffer has."""
        return next(v for k in range(1, 1 << 30) if (v := f"{name}_v{k}") not in self.buffers)

    def is_local_scalar(self, name: str) -> bool:
        return self.buffers[name].scope == "local" and not self.buffers[name].shape


def carried_states(block: Block, code: Code) -> set[str]:
    """Scalars among what goes from one iteration of a loop with this body to the next."""
    return {name for name in carried(block) if code.is_local_scalar(name)}


def operations(expr: Expr) -> int:
    """Operations on values; arithmetic inside subscripts and on literals does not count."""
    if isinstance(expr, Load) or all(isinstance(e, Const) for e in children(expr)):
        return 0
    own = isinstance(expr, Op) and not expr.name.startswith("cast:")
    return own + sum(operations(c) for c in children(expr))


def guarded_alike(node: Node, name: str, guard: Expr | None) -> bool:
    """Is `name` loaded only where the guard holds?"""
    wanted = set(conjuncts(guard))
    return not wanted or all(
        load.buffer != name or wanted <= set(holds)
        for inner in walk((node,))
        for load, holds in guarded_loads(inner)
    )


def instead(expr: Expr, old: Expr, new: Expr) -> Expr:
    """The expression with another in the place of a part of it."""
    return map_expr(expr, lambda e: new if e == old else e)


def any_written(nodes: Iterable[Node], names: Iterable[str], code: Code) -> bool:
    wanted = set(names)
    return any(not wanted.isdisjoint(code.of(n).writes) for n in nodes)


Buffers = Mapping[str, Buffer]
