"""Rows whose elements wait for the ones before go on side by side, each a few elements behind the row above.

for i in 0..n:                          for i in 0..n step 4:
    for j in 0..m:                          (the first elements of rows i, i + 1 and i + 2)
        A[i, j] += A[i - 1, j] *                for j in 3..m:
                   A[i, j - 1]                      A[i, j], A[i + 1, j - 1], A[i + 2, j - 2], A[i + 3, j - 3]
                                            (the last elements of rows i + 1, i + 2 and i + 3)

An element takes as long as its operations wait for each other; those of other rows fill the time. Rows are
skewed as in Wolfe 1986, "Loop skewing: the wavefront method revisited", within one thread's registers.
Threads have such rows in turn (`pipelined_rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from gnnperf.nests.affine import affine, constant, simplify
from gnnperf.nests.analysis import access_counts, accesses, extent, mentions, rename_buffers
from gnnperf.nests.coverage import carried, own_of_iterations
from gnnperf.nests.ir import (
    Annotation,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Reduction,
    Statement,
    Symbol,
    reads,
    substitute_node,
)
from gnnperf.nests.names import Names
from gnnperf.schedules.recipes.replaced_loops import replace_loops
from gnnperf.schedules.recipes.threads import private_reductions

MANY_ROWS, SOME_ROWS, FEW_ROWS = 8, 4, 2
"""Side by side: of real numbers, which have most registers, those of elements that read much; of integers."""
MANY_LOADS = 8
"""In an element: so many more would not all be in registers."""
MOST_BEHIND = 4
"""Elements that a row may be behind the one above."""
LEAST_SHARED = 1 << 15
"""Elements in all rows, for which threads are worth the waiting for each other."""
LEAST_STEPS = 4
"""Of all rows together, times those with some of them alone."""
MOST_STATEMENTS = 8
"""In an element: of longer ones, operations already fill the time."""


def share_rows(nest: LoopNest) -> LoopNest:
    """The scheduled nest, with loops over many such rows annotated "parallel"."""
    found = {id(loop): rows for loop in nest.loops() if (rows := _match(loop, nest))}

    def shared(node: Node) -> Node:
        if not isinstance(node, Loop) or (node.annotation is not None and node.annotation.kind == "parallel"):
            return node
        rows = found.get(id(node))
        if rows is None:
            return replace(node, body=tuple(map(shared, node.body)))
        elements = (extent(rows.loop) or 0) * (extent(rows.inner) or 0)
        private = private_reductions(node, nest.buffers, access_counts(nest.body))
        share = elements >= LEAST_SHARED and private is not None
        return replace(node, annotation=Annotation("parallel")) if share else node

    return replace(nest, body=tuple(map(shared, nest.body))) if found else nest


def skew_rows(nest: LoopNest) -> LoopNest:
    """The scheduled nest, with rows side by side wherever elements wait for each other and nothing forbids
    it. What an element is made of stays the same, in the same order; sums over all of them change theirs."""
    return replace_loops(nest, lambda lp: rows.side_by_side if (rows := _match(lp, nest)) else None)


@dataclass(frozen=True)
class _Rows:
    """A loop over rows: of each, what is `first`, and then the loop over its elements. behind: elements that
    a row has to be behind the one above, so that nothing an element needs is of the same step. most: of rows
    that go on side by side. own: local buffers of a row."""

    loop: Loop
    first: tuple[Statement, ...]
    inner: Loop
    behind: int
    most: int
    own: frozenset[str]

    def side_by_side(self, buffers: dict[str, Buffer], names: Names) -> Iterator[Loop]:
        """The loops instead; adds their local buffers. What is left of the rows goes on in halves, in one
        thread."""
        rows, start, left = self.most, self.loop.start, extent(self.loop)
        assert left is not None
        while rows > 1:
            if whole := left // rows * rows:
                stop = _plus(start, whole)
                yield self._together(rows, start, stop, buffers, names)
                start, left = stop, left - whole
            rows //= 2
        if left:
            yield replace(self.loop, start=start, annotation=None)

    def _together(self, rows: int, start: Expr, stop: Expr, buffers: dict[str, Buffer], names: Names) -> Loop:
        above = Symbol(names.fresh(f"{self.loop.iterator}_rows"))
        middle = self.behind * (rows - 1)
        before: list[Node] = []
        together: list[Node] = []
        after: list[Node] = []
        for number in range(rows):
            back = self.behind * number
            local = {name: names.fresh(name) for name in sorted(self.own)}
            buffers.update({new: replace(buffers[name], name=new) for name, new in local.items()})
            at = {self.loop.iterator: _plus(above, number)}
            skewed = at | {self.inner.iterator: _plus(Symbol(self.inner.iterator), -back)}
            before += (rename_buffers(substitute_node(n, at), local) for n in self.first)
            together += (rename_buffers(substitute_node(n, skewed), local) for n in self.inner.body)
            row = rename_buffers(substitute_node(self.inner, at), local)
            assert isinstance(row, Loop)
            if back < middle:
                before.append(replace(row, stop=_plus(row.start, middle - back)))
            if back:
                after.append(replace(row, start=_plus(row.stop, -back)))
        share = self.loop.annotation if rows == self.most else None
        behind = Annotation("pipelined", factor=self.behind * rows) if share else None
        steps = replace(
            self.inner, start=_plus(self.inner.start, middle), body=tuple(together), annotation=behind
        )
        body = (*before, steps, *after)
        return Loop(above.name, start, stop, body, rows, independent=False, annotation=share)


def _plus(expr: Expr, by: int) -> Expr:
    return simplify(Op("add", (expr, Const(by))))


def _match(loop: Loop, nest: LoopNest) -> _Rows | None:
    """A loop over rows that may go on side by side, and gain by it."""
    first, inner = loop.body[:-1], loop.body[-1] if loop.body else None
    begin = tuple(n for n in first if isinstance(n, Statement))
    if not isinstance(inner, Loop) or len(begin) < len(first) or not (_is_plain(loop) and _is_plain(inner)):
        return None
    if inner.annotation is not None or (loop.annotation is not None and loop.annotation.kind != "parallel"):
        return None
    statements = [n for n in inner.body if isinstance(n, Statement)]
    if not len(inner.body) == len(statements) <= MOST_STATEMENTS or any(s.init for s in statements):
        return None
    if any(mentions(bound, loop.iterator) for bound in (inner.start, inner.stop)):
        return None
    buffers, own = nest.buffers, own_of_iterations(loop, nest.buffers, access_counts(nest.body))
    changed = {s.target.buffer for s in statements} - own
    behind, waits = _behind_beginnings(begin, loop.iterator, inner, own), bool(carried(inner.body) & own)
    if behind is None:
        return None
    touched = {a.load for s in statements for a in accesses(s)}
    for name in changed - _only_summed(statements):
        stores = {s.target for s in statements if s.target.buffer == name}
        for store, load in product(stores, (t for t in touched if t.buffer == name)):
            found = _distances(store, load, loop.iterator, inner.iterator)
            if found is None:
                return None
            for rows, elements in found:
                if rows:
                    behind = max(behind, -elements // rows + 1)
                else:
                    waits = waits or elements > 0
    most = _most_rows(statements, own, buffers)
    while most > 1 and not (
        (extent(loop) or 0) >= 2 * most and (extent(inner) or 0) >= LEAST_STEPS * behind * (most - 1)
    ):
        most //= 2
    if not waits or behind > MOST_BEHIND or most == 1:
        return None
    return _Rows(loop, begin, inner, behind, most, frozenset(own))


def _most_rows(statements: Sequence[Statement], own: set[str], buffers: Mapping[str, Buffer]) -> int:
    if not all(buffers[s.target.buffer].dtype.startswith("float") for s in statements):
        return FEW_ROWS
    loads = {load for s in statements for load in reads(s) if load.buffer not in own}
    return MANY_ROWS if len(loads) <= MANY_LOADS else SOME_ROWS


def _behind_beginnings(first: Sequence[Statement], row: str, inner: Loop, own: set[str]) -> int | None:
    """Elements that rows above are to have done when one begins: none of the later ones stores what it begins
    with, or touches what that stores. None where that may be any."""
    statements = [n for n in inner.body if isinstance(n, Statement)]
    touched = {a.load for s in statements for a in accesses(s)}
    stored = {s.target for s in statements}
    pairs = [(load, stored) for s in first for load in reads(s)] + [(s.target, touched) for s in first]
    meet = [
        _elements_until(place, other, inner)
        for place, others in pairs if place.buffer not in own
        for other in others if other.buffer == place.buffer and not _is_later(place, other, row)
    ]  # fmt: skip
    known = [elements for elements in meet if elements is not None]
    return max(known, default=0) if len(known) == len(meet) else None


def _elements_until(place: Load, other: Load, inner: Loop) -> int | None:
    """Of the loop over elements, how many there are until `other` is past `place`; 0 where it is never
    there, None where that is not known."""
    start, stop = constant(inner.start), constant(inner.stop)
    until: int | None = None
    for one, two in zip(place.indices, other.indices, strict=True):
        fixed, moves = affine(one), affine(two)
        if fixed.is_constant and moves.terms.keys() == {Symbol(inner.iterator)}:
            at, rest = divmod(fixed.constant - moves.constant, moves.coefficient(inner.iterator))
            if rest or (start is not None and at < start) or (stop is not None and at >= stop):
                return 0
            until = at - start + 1 if start is not None else None
    return until


def _is_later(place: Load, other: Load, row: str) -> bool:
    """Is `other` at `place` in that row, or in rows below, if at all?"""
    forms = [(affine(one), affine(two)) for one, two in zip(place.indices, other.indices, strict=True)]
    return any(
        one.terms == two.terms and one.terms.keys() == {Symbol(row)}
        and (two.constant - one.constant) * one.coefficient(row) <= 0
        for one, two in forms
    )  # fmt: skip


def _is_plain(loop: Loop) -> bool:
    return not (loop.independent or loop.condition or loop.tile_level) and loop.step == 1


def _only_summed(statements: list[Statement]) -> set[str]:
    """Buffers that are reduced, in whatever order, and not read."""
    kinds: dict[str, set[Reduction | None]] = {}
    for s in statements:
        kinds.setdefault(s.target.buffer, set()).add(s.reduce)
    needed = {load.buffer for s in statements for load in reads(s)}
    return {name for name, found in kinds.items() if len(found) == 1 and None not in found} - needed


def _distances(store: Load, other: Load, row: str, element: str) -> list[tuple[int, int]] | None:
    """(rows, elements) from the iteration that stores to one that may touch the same place: of those of each
    row, the ones that ask for most. None where they are not known."""
    known: dict[str, int] = {}
    for one, two in zip(store.indices, other.indices, strict=True):
        form, ahead = affine(one), constant(Op("sub", (one, two)))
        if ahead is None or not all(isinstance(atom, Symbol) for atom in form.terms):
            continue  # of this dimension nothing is known
        moves = [name for name in (row, element) if form.coefficient(name)]
        if not moves and ahead:
            return []
        if len(moves) == 1:
            step = form.coefficient(moves[0])
            if ahead % step or known.setdefault(moves[0], ahead // step) != ahead // step:
                return []
    rows, elements = known.get(row), known.get(element)
    if rows == 0 or (rows is not None and elements is not None):
        return [(rows, elements or 0)]
    return [(0, elements), (1, -abs(elements))] if rows is None and elements is not None else None
