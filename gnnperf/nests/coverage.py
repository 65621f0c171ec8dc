"""Which buffers a piece of IR reads before it has written them, and which parts it surely writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gnnperf.nests.affine import affine, constant, from_affine, simplify
from gnnperf.nests.analysis import access_counts, conjuncts, guarded_loads, mentions, negated, written
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    Symbol,
    loads,
    reads,
    substitute,
    walk,
)

Block = tuple[Node, ...]
Box = tuple[tuple[Expr, Expr], ...]
"""Per dimension: start and (exclusive) stop."""


@dataclass
class Flow:
    """What a block needs from before it (`exposed`), and the boxes it surely writes."""

    exposed: set[str] = field(default_factory=set)
    boxes: dict[str, list[Box]] = field(default_factory=dict)

    def defines(self, buffer: Buffer) -> bool:
        """Is the whole buffer surely written?"""
        return any(_inside(whole_box(buffer), known) for known in self.boxes.get(buffer.name, ()))


def flow(block: Block) -> Flow:
    """The flow of a block that is run once."""
    collector = _Collector()
    stores = collector.block(block, ())
    boxes = {name: [s.box for s in found if not s.guard] for name, found in stores.items()}
    return Flow(collector.exposed, boxes)


def carried(block: Block) -> set[str]:
    """Buffers that go from one iteration of a loop with this body to the next, and are more than sums and
    extremes that nothing in it reads."""
    statements = [n for n in walk(block) if isinstance(n, Statement)]
    states = {s.target.buffer for s in statements if s.reduce is None}
    states |= {ld.buffer for s in statements for ld in reads(s)}
    return states & {s.target.buffer for s in statements} & flow(block).exposed


def own_of_iterations(loop: Loop, buffers: Mapping[str, Buffer], counts: Mapping[str, int]) -> set[str]:
    """Local buffers of which every iteration has its own: nothing outside touches them, and none is read
    before it is written. counts: how often all around the loop touches each buffer."""
    here = access_counts((loop,))
    local = {n for n, c in here.items() if buffers[n].scope == "local" and c == counts[n]}
    return local - flow(loop.body).exposed if local else local


@dataclass(frozen=True)
class _Store:
    """A box that is written where all conditions of `guard` hold; `starts`: by a reduction that owns its
    initial value, also where that is all it does."""

    box: Box
    guard: tuple[Expr, ...]
    starts: bool = False

    def over(self, loop: Loop) -> _Store | None:
        """What is written while the loop runs, where that is a box."""
        if self.starts and not any(mentions(e, loop.iterator) for ends in self.box for e in ends):
            return self
        box = _widen_write(self.box, loop)
        return None if box is None else replace(self, box=box)

    def varies(self, iterator: str) -> bool:
        """May the guard hold in some iterations only?"""
        return any(mentions(condition, iterator) for condition in self.guard)

    def depends_on(self, names: set[str]) -> bool:
        """Do the box or the guard change when these buffers do?"""
        expressions = (*self.guard, *(end for ends in self.box for end in ends))
        return any(ld.buffer in names for e in expressions for ld in loads(e))


MOST_STORES = 24
"""Of an array, among which those are looked for that make one box together."""


def _add_unions(stores: list[_Store]) -> None:
    """In place: boxes that two of the stores make together, where one begins in a dimension at which the
    other ends, and they are the same in all others."""
    done = 0
    while done < len(stores) <= MOST_STORES:
        last = stores[done]
        for other in stores[:done]:
            if other.guard == last.guard:
                union = _union(other.box, last.box)
                if union is not None and all(union != s.box or s.guard != last.guard for s in stores):
                    stores.append(_Store(union, last.guard, other.starts and last.starts))
        done += 1


def _union(one: Box, other: Box) -> Box | None:
    """Of two boxes beside each other; None where that is no box."""
    if len(one) != len(other):
        return None
    unlike = [d for d, ends in enumerate(zip(one, other, strict=True)) if ends[0] != ends[1]]
    if len(unlike) != 1:
        return None
    (d,) = unlike
    for (start, end), (begin, stop) in ((one[d], other[d]), (other[d], one[d])):
        if end == begin:
            return (*one[:d], (start, stop), *one[d + 1 :])
    return None


class _Collector:
    """Walks a block in program order. A read is covered by an earlier write of the same block (same
    iteration), or of a block around it, seen over the loops between the two. Writes whose extent or
    condition can have changed since are forgotten."""

    def __init__(self) -> None:
        self.levels: list[tuple[dict[str, list[_Store]], int]] = []
        self.loops: list[Loop] = []
        self.exposed: set[str] = set()

    def block(self, block: Block, entered: tuple[Loop, ...]) -> dict[str, list[_Store]]:
        self.loops.extend(entered)
        here: dict[str, list[_Store]] = {}
        self.levels.append((here, len(self.loops)))
        for node in block:
            if isinstance(node, Statement):
                self.statement(node, here)
                continue
            self.read(guarded_loads(node))
            changed = written(node)
            self.forget(changed)
            for name, stores in self.block(node.body, (node,)).items():
                kept = [s for s in stores if not s.varies(node.iterator) and not s.depends_on(changed)]
                known = here.setdefault(name, [])
                known.extend(wide for s in kept if (wide := s.over(node)) is not None)
                _add_unions(known)
        self.levels.pop()
        del self.loops[len(self.loops) - len(entered) :]
        return here

    def statement(self, node: Statement, here: dict[str, list[_Store]]) -> None:
        guard = tuple(conjuncts(node.guard))
        self.read(guarded_loads(node))
        if node.reduce is not None and node.init is None:
            self.read([(node.target, guard)])
        name = node.target.buffer
        self.forget({name})
        box = _element(node.target)
        store = _Store(box, guard, node.reduce is not None and node.init is not None)
        if store.depends_on({name}):
            return
        found = here.setdefault(name, [])
        found.append(store)
        _add_unions(found)
        while guard and _Store(box, (*guard[:-1], negated(guard[-1]))) in found:  # both arms of a branch
            guard = guard[:-1]
            found.append(_Store(box, guard))

    def forget(self, names: set[str]) -> None:
        for stores, _ in self.levels:
            for name, found in stores.items():
                stores[name] = [s for s in found if not s.depends_on(names)]

    def read(self, sources: Iterable[tuple[Load, tuple[Expr, ...]]]) -> None:
        for load, holds in sources:
            if not any(self.covered(load, holds, stores, depth) for stores, depth in self.levels):
                self.exposed.add(load.buffer)

    def covered(
        self, load: Load, guard: tuple[Expr, ...], stores: dict[str, list[_Store]], depth: int
    ) -> bool:
        loops = (_where(guard, loop) for loop in self.loops[depth:])
        box = _read_box(load, tuple(loops)) if load.buffer in stores else None
        if box is None:
            return False
        return any(set(s.guard) <= set(guard) and _inside(box, s.box) for s in stores[load.buffer])


def written_box(target: Load, loops: Sequence[Loop]) -> Box | None:
    """The elements that a store covers while the loops around it run, the first outermost; None where that is
    not a box."""
    box: Box | None = _element(target)
    for loop in reversed(loops):
        box = None if box is None else _widen_write(box, loop)
    return box


def read_boxes(node: Node, buffer: Buffer, around: tuple[Loop, ...] = ()) -> Iterator[Box]:
    """Around the elements of a buffer that a node reads, for each load; all where they are in no box."""
    if isinstance(node, Loop):
        sources = [ld for e in (node.start, node.stop, node.condition) if e is not None for ld in loads(e)]
        for child in node.body:
            yield from read_boxes(child, buffer, (*around, node))
    else:
        sources = [*reads(node)]
    for load in sources:
        if load.buffer == buffer.name:
            yield _read_box(load, around) or whole_box(buffer)


def whole_box(buffer: Buffer) -> Box:
    """All elements of a buffer."""
    return tuple((Const(0), Const(s) if isinstance(s, int) else s) for s in buffer.shape)


def _element(target: Load) -> Box:
    return tuple((simplify(i), simplify(Op("add", (i, Const(1))))) for i in target.indices)


def _widen_write(box: Box, loop: Loop) -> Box | None:
    """The union of a box over the loop's iterations, where that is a box."""
    if loop.condition is not None:
        return None
    varying = [d for d, ends in enumerate(box) if any(mentions(e, loop.iterator) for e in ends)]
    if not varying:  # written in every iteration: surely, if there is one
        span = constant(Op("sub", (loop.stop, loop.start)))
        return box if span is not None and span > 0 else None
    if len(varying) > 1 or loop.step != 1:
        return None
    (d,) = varying
    start, stop = (affine(e) for e in box[d])
    factors = {f.coefficient(loop.iterator) for f in (start, stop)}
    if factors not in ({1}, {-1}) or any(_hidden(f, loop.iterator) for f in (start, stop)):
        return None
    first, last = _ends(loop, factors.pop())
    ends = (
        simplify(substitute(from_affine(start), {loop.iterator: first})),
        simplify(substitute(from_affine(stop), {loop.iterator: last})),
    )
    return (*box[:d], ends, *box[d + 1 :])


def _ends(loop: Loop, factor: int) -> tuple[Expr, Expr]:
    """The values of the iterator at which `factor * iterator` is least and greatest."""
    last = simplify(Op("sub", (loop.stop, Const(1))))
    return (loop.start, last) if factor > 0 else (last, loop.start)


def _read_box(load: Load, loops: tuple[Loop, ...]) -> Box | None:
    """The elements a load touches while the given loops run; None where that is not a box."""
    box: list[tuple[Expr, Expr]] = []
    for index in load.indices:
        low = high = index
        for loop in reversed(loops):
            form = affine(low), affine(high)
            factors = {f.coefficient(loop.iterator) for f in form}
            if any(_hidden(f, loop.iterator) for f in form) or not (factors <= {0, 1} or factors <= {0, -1}):
                return None
            first, last = _ends(loop, sum(factors))
            low = simplify(substitute(low, {loop.iterator: first}))
            high = simplify(substitute(high, {loop.iterator: last}))
        box.append((simplify(low), simplify(Op("add", (high, Const(1))))))
    return tuple(box)


def _where(conditions: Iterable[Expr], loop: Loop) -> Loop:
    """The iterations in which conditions on the iterator may hold, where its bounds are constants."""
    start, stop = constant(loop.start), constant(loop.stop)
    if start is None or stop is None:
        return loop
    for condition in conditions:
        match condition:
            case Op("ge", (Symbol(loop.iterator), Const(int(limit)))):
                start = max(start, limit)
            case Op("lt", (Symbol(loop.iterator), Const(int(limit)))):
                stop = min(stop, limit)
            case Op("eq", (Symbol(loop.iterator), Const(int(limit)))):
                start, stop = max(start, limit), min(stop, limit + 1)
    return replace(loop, start=Const(start), stop=Const(stop))


def _hidden(form: object, iterator: str) -> bool:
    """Does the iterator occur inside an atom that is not the iterator itself?"""
    terms: Mapping[Expr, int] = form.terms  # type: ignore[attr-defined]
    return any(not isinstance(a, Symbol) and mentions(a, iterator) for a in terms)


def _inside(box: Box, known: Box) -> bool:
    if len(box) != len(known):
        return False
    return all(_at_most(k[0], b[0]) and _at_most(b[1], k[1]) for b, k in zip(box, known, strict=True))


def _at_most(low: Expr, high: Expr) -> bool:
    difference = constant(Op("sub", (high, low)))
    return difference is not None and difference >= 0
