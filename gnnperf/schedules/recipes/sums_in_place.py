"""Sums that are added to an array, added up there.

for i, k: t[i] += A[i, k] * y[k]         for i, k: x[i] += A[i, k] * y[k]
for i:    x[i] += t[i]

One sweep less, and the sum may share a loop with another that reads the same matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gnnperf.nests.affine import constant
from gnnperf.nests.analysis import Band, band, rebuild, touched
from gnnperf.nests.ir import Const, Load, LoopNest, Node, Statement, Symbol, loads, substitute


def sums_in_place(nest: LoopNest) -> LoopNest:
    """The nest with such sums added up where they are added to. Nothing else reads their scratch arrays, and
    nobody looks at the target between the two."""
    body = list(nest.body)
    for at in reversed(range(1, len(body))):
        if (added := _added(body[at], nest)) is None:
            continue
        target, scratch = added
        for before in range(at):
            made = _in_place(body, before, at, target, scratch)
            if made is not None:
                body[before : at + 1] = [made, *body[before + 1 : at]]
                break
    return replace(nest, body=tuple(body)) if len(body) < len(nest.body) else nest


def _statement(node: Node) -> tuple[Band, Statement] | None:
    """The only statement of a perfect nest that adds without a condition."""
    nest = band(node)
    if not nest.loops or len(nest.body) != 1 or not isinstance(nest.body[0], Statement):
        return None
    statement = nest.body[0]
    adds = statement.reduce == "add" and statement.guard is None
    return (nest, statement) if adds and all(lp.condition is None for lp in nest.loops) else None


def _added(node: Node, nest: LoopNest) -> tuple[Load, Load] | None:
    """(target, scratch array) of `x[i] += t[i]` over all elements of `t`."""
    found = _statement(node)
    if found is None:
        return None
    loops, statement = found
    target, value = statement.target, statement.value
    if not isinstance(value, Load) or statement.init is not None or value.buffer == target.buffer:
        return None
    scratch = nest.buffers[value.buffer]
    names = [Symbol(lp.iterator) for lp in loops.loops]
    whole = {lp.iterator: lp.stop for lp in loops.loops if lp.start == Const(0) and lp.step == 1}
    if not scratch.transient or not ({*value.indices} == {*names} == {*target.indices}):
        return None
    if len(value.indices) != len(names) or len(target.indices) != len(names):
        return None
    sizes = zip(value.indices, scratch.shape, strict=True)
    covered = all(isinstance(i, Symbol) and constant(whole.get(i.name, i)) == size for i, size in sizes)
    return (target, value) if covered else None


def _in_place(body: Sequence[Node], before: int, at: int, target: Load, scratch: Load) -> Node | None:
    """The node at `before` with its sum in the target, if it is what fills the scratch array."""
    found = _statement(body[before])
    if found is None:
        return None
    loops, statement = found
    empty = isinstance(statement.init, Const) and statement.init.value == 0
    if statement.target.buffer != scratch.buffer or not empty:
        return None
    others = [node for i, node in enumerate(body) if i not in (before, at)]
    if any(scratch.buffer in touched(node) for node in others):
        return None
    if any(target.buffer in touched(node) for node in body[before:at]):
        return None
    if any(ld.buffer == scratch.buffer for ld in loads(statement.value)):
        return None
    places = {s.name: e for s, e in zip(scratch.indices, statement.target.indices, strict=True)
              if isinstance(s, Symbol)}  # fmt: skip
    place = tuple(substitute(index, places) for index in target.indices)
    moved = replace(statement, target=Load(target.buffer, place), init=None)
    (made,) = rebuild(loops.loops, (moved,))
    return made
