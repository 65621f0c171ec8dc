"""Two rows, of which one becomes the other after every step, as one:

for i:                                              for i:
    cur[0] = first[i]                                   above = row[0]
    for j: cur[j + 1] = f(cur[j], prev[j + 1],          row[0] = first[i]
                          prev[j])                      for j:
    for j: prev[j] = cur[j]                                 here = row[j + 1]
                                                            row[j + 1] = f(row[j], here, above)
                                                            above = here

as alignments of sequences are written. What is one row needs no copy, and goes side by side with those below
it (`schedules/recipes/skewed_rows.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.analysis import accesses, rename_buffers, touched
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, Node, Op, Statement, Symbol, map_node, reads

Block = tuple[Node, ...]
MOST_KEPT = 4
"""Elements of the row above at once, and of those that a row begins with."""


def roll_rows(
    body: Block, buffers: dict[str, Buffer], live_after: Collection[str], fresh: Callable[[str], str]
) -> Block:
    """The body, where one row does for two; `buffers` gets scalars, with names that `fresh` finds.
    live_after: arrays that something reads later."""
    counts = _reads(body)

    def rolled(node: Node) -> Node:
        if not isinstance(node, Loop):
            return node
        node = replace(node, body=tuple(map(rolled, node.body)))
        while rows := next(_matches(node.body, buffers, live_after, counts), None):
            node = replace(node, body=rows.in_one(node.body, buffers, fresh))
        return node

    return tuple(map(rolled, body))


def _reads(nodes: Iterable[Node]) -> Counter[str]:
    return Counter(a.load.buffer for node in nodes for a in accesses(node) if not a.is_write)


@dataclass(frozen=True)
class _Rows:
    """Places in a block of the loop over elements and of the copy, whose statement is `copied`.

    target: number of the element that an iteration stores; first: that of the first one. fixed: numbers of
    elements before that are copied and never stored. above: how far back at most an element of the row above
    is that one is made of. here: is the one straight above read once this one is stored?
    """

    elements: int
    copy: int
    copied: Statement
    target: Expr
    first: int
    fixed: tuple[int, ...]
    above: int
    here: bool

    def in_one(self, block: Block, buffers: dict[str, Buffer], fresh: Callable[[str], str]) -> Block:
        row, new = self.copied.target.buffer, _name(self.copied.value)
        loop = block[self.elements]
        assert isinstance(loop, Loop)
        kept = []
        for _ in range(self.above + 1 if self.above or self.here else 0):
            kept.append(fresh(f"{row}_above"))
            buffers[kept[-1]] = Buffer(kept[-1], buffers[row].dtype, (), (), transient=True, scope="local")

        def read(expr: Expr) -> Expr:
            if isinstance(expr, Load) and expr.buffer == row:
                back = constant(Op("sub", (self.target, expr.indices[0])))
                return Load(kept[back]) if back is not None and 0 <= back < len(kept) else expr
            return expr

        inner = [rename_buffers(map_node(node, read), {new: row}) for node in loop.body]
        if kept:
            inner.insert(0, Statement(Load(kept[0]), Load(row, (self.target,))))
        inner += (Statement(Load(kept[n]), Load(kept[n - 1])) for n in range(len(kept) - 1, 0, -1))
        before = [Statement(Load(kept[n]), Load(row, (Const(self.first - n),))) for n in range(1, len(kept))]
        others = [
            rename_buffers(node, {new: row})
            for place, node in enumerate(block) if place not in (self.elements, self.copy)
        ]  # fmt: skip
        fixed = [Statement(Load(row, (Const(n),)), Load(new, (Const(n),))) for n in self.fixed]
        others[self.elements : self.elements] = [*fixed, replace(loop, body=tuple(inner))]
        return (*before, *others)


def _name(expr: Expr) -> str:
    assert isinstance(expr, Load)
    return expr.buffer


def _matches(
    block: Block, buffers: Mapping[str, Buffer], live_after: Collection[str], counts: Mapping[str, int]
) -> Iterator[_Rows]:
    here = _reads(block)
    for place, node in enumerate(block):
        copied = _copied(node)
        if copied is None:
            continue
        row, new = buffers[copied.target.buffer], buffers[_name(copied.value)]
        if not new.transient or new.name in live_after or counts[new.name] > here[new.name]:
            continue
        if (new.dtype, new.shape) != (row.dtype, row.shape) or len(row.shape) != 1:
            continue
        if rows := _rows(block, place, node, copied):
            yield rows


def _copied(node: Node) -> Statement | None:
    """`prev[j] = cur[j]`, of a loop that does nothing else."""
    if not (isinstance(node, Loop) and node.step == 1 and node.condition is None and len(node.body) == 1):
        return None
    (copy,) = node.body
    if not isinstance(copy, Statement) or copy.reduce or copy.guard is not None:
        return None
    source, at = copy.value, (Symbol(node.iterator),)
    if not isinstance(source, Load) or source.buffer == copy.target.buffer:
        return None
    return copy if source.indices == copy.target.indices == at else None


def _rows(block: Block, copy: int, copying: Node, copied: Statement) -> _Rows | None:
    row, new = copied.target.buffer, _name(copied.value)
    places = [n for n, node in enumerate(block) if touched(node) & {row, new} and n < copy]
    if not places or any(new in touched(node) for node in block[copy + 1 :]):
        return None
    *begin, elements = places
    loop = block[elements]
    assert isinstance(copying, Loop)
    if not isinstance(loop, Loop) or loop.step != 1 or loop.condition is not None:
        return None
    stores = [n for n, s in enumerate(loop.body) if isinstance(s, Statement) and s.target.buffer == new]
    start = constant(loop.start)
    if not stores or start is None:
        return None
    store = loop.body[stores[0]]
    assert isinstance(store, Statement)
    target = store.target.indices[0]
    behind = constant(Op("sub", (target, Symbol(loop.iterator))))
    if store.guard is not None or store.reduce or behind is None:
        return None
    first, stop = start + behind, simplify(Op("add", (loop.stop, Const(behind))))
    ready = _begun([block[n] for n in begin], row, new)
    least = constant(copying.start)
    if ready is None or least is None or simplify(copying.stop) != stop:
        return None
    begin_at = range(least, first)
    if not ready <= {*begin_at} or len(begin_at) > MOST_KEPT:
        return None
    above, waits, here = 0, False, False
    for place, node in enumerate(loop.body):
        for access in accesses(node):
            if access.load.buffer not in (row, new):
                continue
            back = constant(Op("sub", (target, access.load.indices[0])))
            if back is None or (access.is_write and (back or access.load.buffer == row)):
                return None
            if access.load.buffer == new:
                if back < 0 or first - back < least:
                    return None
                if back == 0 and not access.is_write and place <= stores[0]:
                    return None
                waits = waits or back > 0
            else:
                above = max(above, back)
                here = here or (back == 0 and place > stores[0])
    if not waits or above > min(MOST_KEPT, first):
        return None
    fixed = tuple(sorted({*begin_at} - ready))
    return _Rows(elements, copy, copied, target, first, fixed, above, here)


def _begun(nodes: list[Node], row: str, new: str) -> set[int] | None:
    """Numbers of the elements that statements store ahead of the others, each of which finds what it reads in
    one row as it did in two; None where one does not."""
    done: set[int] = set()
    for node in nodes:
        if (
            not isinstance(node, Statement)
            or node.guard is not None
            or node.reduce
            or node.target.buffer == row
        ):
            return None
        for load in reads(node):
            if load.buffer in (row, new):
                form = affine(load.indices[0])
                if not form.is_constant or (form.constant in done) != (load.buffer == new):
                    return None
        if node.target.buffer == new:
            form = affine(node.target.indices[0])
            if not form.is_constant:
                return None
            done.add(form.constant)
    return done
