"""Which neighbouring nests can share their outermost loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gnnperf.nests.affine import affine
from gnnperf.nests.analysis import (
    Band,
    accesses,
    band,
    bound_dependences,
    extent,
    mentions,
    rebuild,
    rename_iterators,
    safe_parallel,
    varies,
    written,
)
from gnnperf.nests.ir import (
    Buffer,
    Load,
    Loop,
    LoopNest,
    Node,
    Statement,
    Symbol,
    walk,
)  # fmt: skip


def fuse_outermost(nest: LoopNest) -> LoopNest | None:
    """One outer loop around all top-level nests, or None where that would break a dependence.

    Each nest contributes its outermost *aligned* spatial loop: the loops whose iterators index the
    same position of every buffer that flows between nests.
    """
    nodes = list(nest.body)
    if len(nodes) < 2 or not all(isinstance(n, Loop) for n in nodes):
        return None
    chosen = _aligned_loops(nodes, nest.buffers)
    if chosen is None:
        return None
    first = chosen[0]
    inner: list[Node] = []
    for number, (node, loop) in enumerate(zip(nodes, chosen, strict=True)):
        rest = [lp for lp in band(node).loops if lp is not loop]
        body = rebuild(rest, band(node).body)
        inner.extend(share(n, loop.iterator, first.iterator, number) for n in body)
    return replace(nest, body=(replace(first, body=tuple(inner)),))


def share(node: Node, old: str, new: str, number: int) -> Node:
    """The shared iterator takes one name; the others are made unique per nest."""
    inner = {lp.iterator for lp in walk((node,)) if isinstance(lp, Loop)}
    names = {old: new}
    for name in sorted(inner):
        names[name] = f"{name}_{number}"
        while names[name] == new:
            names[name] += "_"
    return rename_iterators(node, names)


def _aligned_loops(nodes: Sequence[Node], buffers: Mapping[str, Buffer]) -> list[Loop] | None:
    candidates = [movable_outermost(band(n), buffers) for n in nodes]
    for lead in candidates[0]:
        chosen: list[Loop] | None = [lead]
        for options in candidates[1:]:
            assert chosen is not None
            match = next(
                (lp for lp in options if same_range(lp, lead) and _aligned(nodes, [*chosen, lp])), None
            )
            if match is None:
                chosen = None
                break
            chosen.append(match)
        if chosen is not None:
            return chosen
    return None


def movable_outermost(nest: Band, buffers: Mapping[str, Buffer]) -> list[Loop]:
    """Spatial loops that nothing keeps inside: no sequential loop and no loop of their bounds around."""
    found: list[Loop] = []
    around: set[str] = set()
    for loop in nest.loops:
        if not loop.independent:
            break
        around.add(loop.iterator)
        if not (bound_dependences(loop) & around) and _spatial(loop, buffers):
            found.append(loop)
    return found


def _spatial(loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    return safe_parallel(loop, buffers) and all(
        varies(s.target, loop.iterator) or buffers[s.target.buffer].scope == "local"
        for s in walk(loop.body)
        if isinstance(s, Statement)
    )


def same_range(a: Loop, b: Loop) -> bool:
    if bound_dependences(a) or bound_dependences(b):
        return a.start == b.start and a.stop == b.stop and a.step == b.step
    return extent(a) is not None and extent(a) == extent(b) and a.step == b.step and a.start == b.start


def _aligned(nodes: Sequence[Node], chosen: list[Loop]) -> bool:
    """Every buffer that is written by one nest and touched by another is addressed, in one and the
    same dimension, by exactly the shared iterator plus one and the same offset."""
    count = len(chosen)
    last = count - 1
    for other in range(last):
        shared = (written(nodes[other]) & {a.load.buffer for a in accesses(nodes[last])}) | (
            written(nodes[last]) & {a.load.buffer for a in accesses(nodes[other])}
        )
        for name in shared:
            keys = {
                alignment(a.load, chosen[i].iterator)
                for i in (other, last)
                for a in accesses(nodes[i])
                if a.load.buffer == name
            }
            if len(keys) != 1 or None in keys:
                return False
    return True


def alignment(load: Load, iterator: str) -> tuple[int, int] | None:
    """(dimension, offset) where the subscript is iterator + offset, and no other dimension varies."""
    found: tuple[int, int] | None = None
    for dimension, index in enumerate(load.indices):
        form = affine(index)
        if form.terms == {Symbol(iterator): 1} and found is None:
            found = (dimension, form.constant)
        elif any(mentions(atom, iterator) for atom in form.terms):
            return None
    return found
