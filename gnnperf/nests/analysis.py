"""Facts about a nest that normalisation, graphs and schedules all need: strides, roles, dependence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gnnperf.errors import NotApplicable
from gnnperf.nests.affine import affine, constant, evaluate
from gnnperf.nests.ir import (
    EXPRESSIONS_KEPT,
    Buffer,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
    children,
    expressions_of,
    loads,
    map_node,
    reads,
    substitute_node,
    symbols,
    walk,
)


@dataclass(frozen=True)
class Access:
    load: Load
    is_write: bool


def accesses(node: Node) -> Iterator[Access]:
    """Every array access below a node, subscript loads included; a reduction target is one write."""
    for inner in walk((node,)):
        if isinstance(inner, Statement):
            yield from _of_statement(inner)
        else:
            yield from (Access(load, False) for e in expressions_of(inner) for load in loads(e))


@lru_cache(EXPRESSIONS_KEPT)
def _of_statement(statement: Statement) -> tuple[Access, ...]:
    return (*[Access(load, False) for load in reads(statement)], Access(statement.target, True))


def access_counts(body: Iterable[Node]) -> Counter[str]:
    """How often each buffer is addressed, reads of subscripts among it."""
    return Counter(access.load.buffer for node in body for access in accesses(node))


def written(node: Node) -> set[str]:
    return {a.load.buffer for a in accesses(node) if a.is_write}


def quantised(nests: Iterable[LoopNest]) -> frozenset[str]:
    """Arrays of integers that some of these nests make of real numbers (`image.astype(np.uint8)`), element by
    element, and copies of such arrays; none that anything else is stored in."""
    stores: dict[str, list[Expr | None]] = {}
    real: set[str] = set()
    for nest in nests:
        real |= {name for name, buffer in nest.buffers.items() if buffer.dtype.startswith("float")}
        for s in walk(nest.body):
            if isinstance(s, Statement) and nest.buffers[s.target.buffer].dtype.startswith(("int", "uint")):
                stores.setdefault(s.target.buffer, []).append(None if s.reduce else s.value)
    found: set[str] = set()

    def is_quantised(value: Expr | None) -> bool:
        if isinstance(value, Op) and value.name.startswith("cast:"):
            return any(load.buffer in real for load in loads(value))
        return isinstance(value, Load) and value.buffer in found

    while more := {n for n, values in stores.items() if all(map(is_quantised, values))} - found:
        found |= more
    return frozenset(found)


def touched(node: Node) -> set[str]:
    """Buffers that a node reads or writes."""
    return {a.load.buffer for a in accesses(node)}


def mentioned(node: Node) -> set[str]:
    """Names of the arrays, iterators and parameters in a node's expressions."""
    expressions = [e for n in walk((node,)) for e in expressions_of(n)]
    return touched(node).union(*map(symbols, expressions))


def read(node: Node) -> set[str]:
    """Buffers whose earlier contents a node may need (reductions without `init` read their target)."""
    names = {a.load.buffer for a in accesses(node) if not a.is_write}
    for inner in walk((node,)):
        if isinstance(inner, Statement) and inner.reduce and inner.init is None:
            names.add(inner.target.buffer)
    return names


def depends(earlier: Collection[Node], later: Collection[Node]) -> bool:
    """Flow, anti or output dependence of later nodes on earlier ones."""
    needs, writes = ({name for node in later for name in of(node)} for of in (read, written))
    return any(not (written(n).isdisjoint(needs | writes) and read(n).isdisjoint(writes)) for n in earlier)


def write_only(nest: LoopNest) -> frozenset[str]:
    """Arguments that the nest writes and whose contents it never needs."""
    needed = {name for node in nest.body for name in read(node)}
    return frozenset(nest.outputs) - needed


def stride(load: Load, iterator: str, buffers: Mapping[str, Buffer]) -> int | None:
    """Elements the address moves by per step of `iterator`; None where that is data-dependent."""
    if not varies(load, iterator):
        return 0
    total = 0
    for index, step in zip(load.indices, buffers[load.buffer].strides, strict=True):
        form = affine(index)
        coefficient = form.coefficient(iterator)
        if any(mentions(atom, iterator) for atom in form.terms if not isinstance(atom, Symbol)):
            return None
        if coefficient:
            size = step if isinstance(step, int) else constant(step)
            if size is None:
                return None
            total += coefficient * size
    return total


def depth(node: Node) -> int:
    """Of the loops in each other, the node's own included."""
    return 1 + max(map(depth, node.body), default=0) if isinstance(node, Loop) else 0


def mentions(expr: Expr, name: str) -> bool:
    return name in symbols(expr)


def conjuncts(guard: Expr | None) -> list[Expr]:
    """The conditions that a guard joins with `and`."""
    if guard is None:
        return []
    if isinstance(guard, Op) and guard.name == "and":
        return [c for a in guard.args for c in conjuncts(a)]
    return [guard]


def conjunction(conditions: Iterable[Expr]) -> Expr | None:
    """The guard that joins them with `and`; None where there are none."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else Op("and", (result, condition))
    return result


def negated(condition: Expr) -> Expr:
    if isinstance(condition, Op) and condition.name == "not":
        return condition.args[0]
    return Op("not", (condition,))


@lru_cache(EXPRESSIONS_KEPT)
def conditional_loads(expr: Expr) -> tuple[tuple[Load, tuple[Expr, ...]], ...]:
    """The loads of an expression, each with the conditions that it is made for: of choices (`select`), and
    what comes first in `and` and `or`."""
    arms: tuple[tuple[Expr, tuple[Expr, ...]], ...]
    match expr:
        case Load():
            return ((expr, ()), *(found for index in expr.indices for found in conditional_loads(index)))
        case Op("select", (condition, one, other)):
            arms = ((condition, ()), (one, tuple(conjuncts(condition))), (other, (negated(condition),)))
        case Op("and", (one, other)):
            arms = ((one, ()), (other, tuple(conjuncts(one))))
        case Op("or", (one, other)):
            arms = ((one, ()), (other, (negated(one),)))
        case _:
            arms = tuple((part, ()) for part in children(expr))
    return tuple((ld, (*to, *more)) for part, to in arms for ld, more in conditional_loads(part))


def guarded_loads(node: Node) -> Iterator[tuple[Load, tuple[Expr, ...]]]:
    """The loads of a node itself, not of those inside it, each with the conditions that it is made for."""
    if isinstance(node, Loop):
        for bound in expressions_of(node):
            yield from conditional_loads(bound)
        return
    holds = tuple(conjuncts(node.guard))
    parts = [(condition, holds[:i]) for i, condition in enumerate(holds)]  # evaluated where those before hold
    parts += [(e, holds) for e in (node.value, node.init, *node.target.indices) if e is not None]
    for part, before in parts:
        for load, chosen in conditional_loads(part):
            yield load, (*before, *chosen)


def varies(load: Load, iterator: str) -> bool:
    """Does the element addressed depend on the iterator?"""
    return iterator in symbols(load)


def apart(target: Load, loops: Sequence[Loop]) -> bool:
    """Does every iteration of these loops have an element of its own: an index for each of them?"""
    names = [lp.iterator for lp in loops]
    moving = [(index, [name for name in names if mentions(index, name)]) for index in target.indices]
    if sorted(name for _, found in moving for name in found) != sorted(names):
        return False
    return all(
        len(found) == 1 and affine(index).coefficient(found[0]) != 0 for index, found in moving if found
    )


def extent(loop: Loop, parameters: Mapping[str, int] | None = None) -> int | None:
    """Constant trip count of a loop (with parameters bound), else None."""
    length = evaluate(Op("sub", (loop.stop, loop.start)), parameters or {})
    return None if length is None or loop.condition is not None else max(0, -(-length // loop.step))


def longest_chain(
    block: Iterable[Node], value: Callable[[Expr, Mapping[str, int]], int | None], unknown: int = 1
) -> int:
    """How many roundings depend on each other, at most: those of reduction and sequential loops.

    value: of an integer expression, given those of iterators. unknown: trips of loops whose bounds have none.
    """

    def longest(
        nodes: Iterable[Node], values: Mapping[str, int], around: tuple[tuple[Loop, int], ...]
    ) -> int:
        found = [1]
        for node in nodes:
            if isinstance(node, Statement):
                found.append(
                    math.prod(
                        trips
                        for loop, trips in around
                        if not loop.independent or (node.reduce and not varies(node.target, loop.iterator))
                    )
                )
                continue
            start, stop = value(node.start, values), value(node.stop, values)
            trips, ends = unknown, {start or 0}
            if start is not None and stop is not None and node.condition is None:
                trips, ends = (
                    max(1, -(-(stop - start) // node.step)),
                    {start, stop - 1},
                )  # of triangles, either
            inside = (*around, (node, trips))
            found += [longest(node.body, {**values, node.iterator: end}, inside) for end in ends]
        return max(found)

    return longest(block, {}, ())


def bound_dependences(loop: Loop) -> set[str]:
    """Names that the loop's bounds mention: it must stay inside the loops of those iterators."""
    return set().union(*map(symbols, expressions_of(loop)))


def is_data_dependent(loop: Loop) -> bool:
    return any(map(loads, expressions_of(loop)))


@dataclass(frozen=True)
class Band:
    """A maximal perfectly nested stack of loops around its innermost nodes."""

    loops: tuple[Loop, ...]
    body: tuple[Node, ...]

    @property
    def iterators(self) -> list[str]:
        return [loop.iterator for loop in self.loops]

    @property
    def statements(self) -> list[Statement]:
        return [n for n in walk(self.body) if isinstance(n, Statement)]

    @property
    def is_perfect(self) -> bool:
        """Only statements at the innermost level."""
        return all(isinstance(n, Statement) for n in self.body)


def band(node: Node) -> Band:
    """The loops that are alone in each other, but for those over tiles inside, whose order is decided."""
    stack: list[Loop] = []
    body: tuple[Node, ...] = (node,)
    while (
        len(body) == 1
        and isinstance(body[0], Loop)
        and body[0].condition is None
        and not (stack and body[0].tile_level)
    ):
        stack.append(body[0])
        body = body[0].body
    return Band(tuple(stack), body)


def is_reduction(loop: Loop, statements: list[Statement], local: set[str]) -> bool:
    """An independent loop over which some non-local target stays put: its iterations combine."""
    return any(s.target.buffer not in local and not varies(s.target, loop.iterator) for s in statements)


def safe_parallel(loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    """May iterations run on different threads once reduction targets are privatised?

    The frontend promises independence; what remains unsafe is a plain store to a location that
    does not vary with the iterator, or with the points of its tile (several threads would write it).
    """
    if not loop.independent:
        return False
    names = {loop.iterator}
    if loop.tile_level:
        inner = (n for n in walk(loop.body) if isinstance(n, Loop))
        names |= {lp.iterator for lp in inner if lp.start == Symbol(loop.iterator)}
    return all(
        any(varies(s.target, name) for name in names)
        or s.reduce is not None
        or buffers[s.target.buffer].scope == "local"
        for s in walk(loop.body)
        if isinstance(s, Statement)
    )


def rebuild(loops: tuple[Loop, ...] | list[Loop], body: tuple[Node, ...]) -> tuple[Node, ...]:
    """Wrap `body` in `loops`, the first outermost."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def initial_nest(statement: Statement, around: tuple[Loop, ...]) -> Node:
    """Loops that write the initial value of a reduction, ahead of the loops around it."""
    assert statement.init is not None
    loops = [replace(lp, independent=True) for lp in around if varies(statement.target, lp.iterator)]
    left_out = {lp.iterator for lp in around} - {lp.iterator for lp in loops}
    if any(bound_dependences(lp) & left_out for lp in loops):
        raise NotApplicable("which elements a reduction initialises depends on its reduction loops")
    return rebuild(loops, (Statement(statement.target, statement.init),))[0]


def rename_iterators(node: Node, names: Mapping[str, str]) -> Node:
    """Iterators, at once, in the loops that bind them and wherever they occur."""
    return _rename_loops(substitute_node(node, {old: Symbol(new) for old, new in names.items()}), names)


def _rename_loops(node: Node, names: Mapping[str, str]) -> Node:
    if not isinstance(node, Loop):
        return node
    body = tuple(_rename_loops(n, names) for n in node.body)
    note = node.annotation
    if note is not None and note.steps:
        note = replace(note, steps=tuple(names.get(name, name) for name in note.steps))
    return replace(node, iterator=names.get(node.iterator, node.iterator), body=body, annotation=note)


def rename_buffers(node: Node, names: Mapping[str, str]) -> Node:
    """Buffers, at once, wherever they are read or written."""

    def renamed(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in names:
            return Load(names[expr.buffer], expr.indices)
        return expr

    return map_node(node, renamed)


def retarget(node: Node, name: str, value: Expr) -> Node:
    """The node with every access to the buffer `name` an access to `value`, or that value itself."""
    return map_node(node, lambda e: value if isinstance(e, Load) and e.buffer == name else e)


def points_of(loop: Loop) -> set[str]:
    """The iterator and, when it walks tiles, the iterators of the tiles' points: different iterations
    of the loop never share a value of any of them."""
    names = {loop.iterator}
    tiles = {loop.iterator} if loop.tile_level > 0 else set()
    for node in walk(loop.body):
        if isinstance(node, Loop) and isinstance(node.start, Symbol) and node.start.name in tiles:
            names.add(node.iterator)
            if node.tile_level > 0:
                tiles.add(node.iterator)
    return names
