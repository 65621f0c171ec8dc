"""Loops that put what passes a condition one after the other, without a branch for what does not.

for i in 0..n:                          for b in 0..n step 64:
    if x[i] > t:                            h = 0
        y[c] = x[i]                         for i in b..b + 64:
        c += 1                                  hits[h] = i; h += x[i] > t
                                            for k in 0..h:
                                                i = hits[k]; y[c] = x[i]; c += 1

A branch that data decides is guessed, and a wrong guess costs as much as twenty elements. Which elements pass
is written down without one; only these are gone through then (Ross 2004, "Selection conditions in main
memory", the loop without branches). Where nothing surprises, this takes up to 1.6 times as long; of few
elements, which a processor remembers from one call to the next, nothing does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from gnnperf.graph.vocabulary import OPERATIONS
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import access_counts, conjuncts, extent
from gnnperf.nests.coverage import own_of_iterations
from gnnperf.nests.guards import passing
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
    equals_number,
    loads,
    reads,
    subexpressions,
    substitute_node,
)
from gnnperf.nests.names import Names
from gnnperf.schedules.recipes.replaced_loops import replace_loops
from gnnperf.schedules.recipes.threads import SLOW

TOGETHER = 64
"""Elements of which it is written down at once which pass."""
FEWEST = 1 << 16
"""Elements of a loop; a processor remembers some ten thousand branches."""
CHEAP = 12
"""Operations of which what passes is made that may be done twice."""


def skip_misses(nest: LoopNest) -> LoopNest:
    """The scheduled nest, with such loops in two steps."""
    return replace_loops(nest, lambda lp: found.in_two_steps if (found := _match(lp, nest)) else None)


@dataclass(frozen=True)
class _Filter:
    """A loop that sets some locals (`first`), and, where `passes` holds, runs `kept`, which count."""

    loop: Loop
    first: tuple[Statement, ...]
    passes: Expr
    kept: tuple[Statement, ...]

    def in_two_steps(self, buffers: dict[str, Buffer], names: Names) -> Iterator[Node]:
        """The nodes instead; adds their local buffers."""
        count, start, size = names.fresh("passed"), self.loop.start, extent(self.loop) or 0
        hits, at = names.fresh("hits"), names.fresh("hit")
        buffers[hits] = Buffer(hits, "int64", (TOGETHER,), (1,), transient=True, scope="local")
        for name in (count, at):
            buffers[name] = Buffer(name, "int64", (), (), transient=True, scope="local")

        def block(first: Expr, elements: int) -> tuple[Node, ...]:
            passed, hit, each = Load(count), Load(at), Symbol(names.fresh("each"))
            noted = Statement(Load(hits, (passed,)), Symbol(self.loop.iterator))
            counted = Statement(passed, Op("select", (self.passes, Const(1), Const(0))), "add")
            stop = simplify(Op("add", (first, Const(elements))))
            found = replace(self.loop, start=first, stop=stop, body=(*self.first, noted, counted))
            body = (substitute_node(s, {self.loop.iterator: hit}) for s in (*self._needed(), *self.kept))
            gone = Loop(each.name, Const(0), passed, (Statement(hit, Load(hits, (each,))), *body))
            return (Statement(passed, Const(0)), found, replace(gone, independent=False))

        whole = size // TOGETHER * TOGETHER
        middle = simplify(Op("add", (start, Const(whole))))
        blocks = Symbol(names.fresh(f"{self.loop.iterator}_block"))
        yield Loop(blocks.name, start, middle, block(blocks, TOGETHER), TOGETHER, independent=False)
        if size > whole:
            yield from block(middle, size - whole)

    def _needed(self) -> list[Statement]:
        """Locals that what is kept is made of."""
        wanted, needed = {ld.buffer for s in self.kept for ld in reads(s)}, list[Statement]()
        for statement in reversed(self.first):
            if statement.target.buffer in wanted:
                needed.insert(0, statement)
                wanted |= {ld.buffer for ld in reads(statement)}
        return needed

    def is_cheap(self) -> bool:
        """May what is kept be made of locals that are set once more?"""
        values = [e for s in self._needed() for e in subexpressions(s.value) if isinstance(e, Op)]
        return len(values) <= CHEAP and not any(OPERATIONS.get(op.name) in SLOW for op in values)


def _match(loop: Loop, nest: LoopNest) -> _Filter | None:
    statements = [n for n in loop.body if isinstance(n, Statement)]
    is_plain = loop.step == 1 and loop.condition is None and loop.annotation is None and not loop.independent
    if not is_plain or len(statements) < len(loop.body) or (extent(loop) or 0) < FEWEST:
        return None
    counting = [(s, passes) for s in statements if (passes := _counts(s, nest)) is not None]
    if len(counting) != 1:
        return None
    (counter, passes), wanted = counting[0], {*conjuncts(counting[0][1])}
    kept = [s is counter or wanted <= {*conjuncts(s.guard)} for s in statements]
    begin = kept.index(True)
    if not all(kept[begin:]) or sum(kept) < 2:
        return None
    first, rest = statements[:begin], [passing(s, wanted) for s in statements[begin:] if s is not counter]
    rest.insert(statements.index(counter) - begin, Statement(counter.target, Const(1), "add"))
    own = own_of_iterations(loop, nest.buffers, access_counts(nest.body))
    changed = {s.target.buffer for s in rest}
    asked = {ld.buffer for s in first for ld in reads(s)} | {ld.buffer for ld in loads(passes)}
    if any(s.target.buffer not in own or s.target.indices for s in first) or asked & changed:
        return None
    found = _Filter(loop, tuple(first), passes, tuple(rest))
    return found if found.is_cheap() else None


def _counts(statement: Statement, nest: LoopNest) -> Expr | None:
    """The condition under which it adds one to a number; None where it does something else."""
    target, value = statement.target, statement.value
    integer = "int" in nest.buffers[target.buffer].dtype
    if statement.reduce != "add" or not integer or not all(isinstance(i, Const) for i in target.indices):
        return None
    if statement.guard is None and isinstance(value, Op) and value.name == "select":
        passes, one, other = value.args
        return passes if equals_number(one, 1) and equals_number(other, 0) else None
    return statement.guard if equals_number(value, 1) else None
