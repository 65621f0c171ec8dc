"""Where scratch buffers of a scheduled nest live: named registers or memory, and in which block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gnnperf.graph.vocabulary import ELEMENT_BYTES
from gnnperf.nests.affine import affine, evaluate, simplify
from gnnperf.nests.analysis import extent, touched, varies
from gnnperf.nests.blocks import Path, blocks_of, contexts
from gnnperf.nests.ir import (
    Buffer,
    Expr,
    Loop,
    LoopNest,
    Statement,
    Symbol,
    reads,
    substitute,
)
from gnnperf.schedules.recipes.vectors import is_vectorized


@dataclass(frozen=True)
class Storage:
    """registers: local arrays that become named variables. lanes: register buffers whose last dimension
    runs across vector lanes -> lanes of a full vector. declared: block -> scratch buffers it declares.
    overlapping: register buffers, and bodies of vectorised loops, whose last vector may hold elements of the
    one before."""

    registers: frozenset[str]
    lanes: Mapping[str, int]
    declared: Mapping[Path, tuple[str, ...]]
    overlapping: frozenset[str | Path]

    @staticmethod
    def plan(nest: LoopNest) -> Storage:
        blocks = blocks_of(nest)
        registers = _register_buffers(nest, blocks)
        declared: dict[Path, tuple[str, ...]] = {}
        for name, path in sorted(blocks.items()):
            declared[path] = (*declared.get(path, ()), name)
        lanes = _vector_dimensions(nest, registers)
        return Storage(registers, lanes, declared, _overlapping(nest, registers))

    def within(self, path: Path) -> set[str]:
        """Buffers declared in the block at `path` or below it."""
        return {n for p, names in self.declared.items() if p[: len(path)] == path for n in names}


def _register_buffers(nest: LoopNest, blocks: Mapping[str, Path]) -> frozenset[str]:
    """Local arrays all of whose subscripts are constant once unrolled loops are written out, that vectors go
    through from their first element on, and that no parallel loop uses from outside (its body is a function,
    which gets arrays)."""
    names = {k for k, b in nest.buffers.items() if b.scope == "local" and b.shape and k in blocks}
    for node, _, around in contexts(nest.body):
        if not isinstance(node, Statement):
            continue
        values: dict[str, Expr] = {}
        vectors: list[str] = []
        for loop in around:
            if _written_out(loop):
                values[loop.iterator] = substitute(loop.start, values)
            if is_vectorized(loop):
                vectors.append(loop.iterator)
        parallel = [d for d, lp in enumerate(around) if lp.annotation and lp.annotation.kind == "parallel"]
        for load in (node.target, *reads(node)):
            if load.buffer in names and (
                any(evaluate(substitute(simplify(i), values), {}) is None for i in load.indices)
                or any(varies(load, v) and not _from_the_first(load.indices[-1], v, values) for v in vectors)
                or any(len(blocks[load.buffer]) <= d for d in parallel)
            ):
                names.discard(load.buffer)
    return frozenset(names)


def _from_the_first(index: Expr, iterator: str, values: Mapping[str, Expr]) -> bool:
    """Does a subscript count a vectorised loop from 0?"""
    return affine(index).terms.get(Symbol(iterator)) == 1 and evaluate(substitute(index, values), {}) == 0


def _written_out(loop: Loop) -> bool:
    annotation = loop.annotation
    return (
        annotation is not None
        and annotation.kind in ("vectorized", "unrolled")
        and not annotation.factor
        and extent(loop) is not None
    )


def _vector_dimensions(nest: LoopNest, registers: frozenset[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node, _, around in contexts(nest.body):
        if not isinstance(node, Statement):
            continue
        vectors = {
            lp.iterator: lp.annotation.vector_bytes for lp in around
            if lp.annotation and lp.annotation.kind == "vectorized"
        }  # fmt: skip
        for load in (node.target, *reads(node)):
            widths = [width for name, width in vectors.items() if varies(load, name)]
            if load.buffer in registers and widths:
                found[load.buffer] = widths[0] // ELEMENT_BYTES[nest.buffers[load.buffer].dtype]
    return found


def _overlapping(nest: LoopNest, registers: frozenset[str]) -> frozenset[str | Path]:
    """Vectorised loops that may be repeated, and registers that only such go through; none that share
    registers with others."""
    loops: dict[Path, Loop] = {}
    apart = set[str]()
    for node, path, around in contexts(nest.body):
        if isinstance(node, Statement):
            vectors = [lp for lp in around if is_vectorized(lp)]
            if vectors:  # one, which holds statements alone
                loops[path] = vectors[-1]
            for load in (node.target, *reads(node)):
                if load.buffer in registers and not any(varies(load, lp.iterator) for lp in vectors):
                    apart.add(load.buffer)
    names = {path: touched(loop) & registers for path, loop in loops.items()}
    found = {path for path, loop in loops.items() if _repeatable(loop, nest.buffers, registers)}
    found = {p for p in found if all(nest.buffers[n].shape[-1] == extent(loops[p]) for n in names[p])}
    while others := {p for p in found if names[p] & apart.union(*(names[q] for q in loops.keys() - found))}:
        found -= others
    return frozenset(found.union(*(names[path] for path in found)))


def _repeatable(loop: Loop, buffers: Mapping[str, Buffer], registers: frozenset[str]) -> bool:
    """Do iterations that run again change nothing? They store what they did before, in memory that none of
    them reads, or add to registers of their own."""
    statements = [n for n in loop.body if isinstance(n, Statement)]
    own = {s.target.buffer for s in statements if not buffers[s.target.buffer].shape and s.reduce is None}
    stored = {s.target.buffer for s in statements} - registers - own
    return all(
        (varies(s.target, loop.iterator) or s.target.buffer in own)
        and not (s.reduce and s.target.buffer in stored)
        and stored.isdisjoint(ld.buffer for ld in reads(s))
        for s in statements
    )
