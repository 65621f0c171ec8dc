"""The blocks of a nest: what runs one after the other, in the nest itself or in one of its loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from gnnperf.nests.analysis import accesses
from gnnperf.nests.ir import Loop, LoopNest, Node, Statement, expressions_of, loads, reads

Path: TypeAlias = tuple[int, ...]
"""Child numbers from the root to a block: as many as there are loops around it."""


def contexts(
    body: tuple[Node, ...], path: Path = (), around: tuple[Loop, ...] = ()
) -> Iterator[tuple[Node, Path, tuple[Loop, ...]]]:
    """Every node with the block it stands in and the loops around it."""
    for number, node in enumerate(body):
        yield node, path, around
        if isinstance(node, Loop):
            yield from contexts(node.body, (*path, number), (*around, node))


def blocks_of(nest: LoopNest) -> dict[str, Path]:
    """Scratch buffer -> innermost block that contains every access. Scratch memory that is read before
    it is written carries values from one iteration of a sequential loop to the next: it is declared
    outside of that loop."""
    lowest: dict[str, Path] = {}
    for node, path, around in contexts(nest.body):
        if isinstance(node, Statement):
            used, defined = {a.load.buffer for a in accesses(node)}, _defines(node)
        else:
            used, defined = {ld.buffer for b in expressions_of(node) for ld in loads(b)}, None
        for name in used:
            buffer = nest.buffers[name]
            if buffer.scope == "global" and not buffer.transient:
                continue
            at = path
            if buffer.scope == "global" and name not in lowest and name != defined:
                at = path[: next((d for d, lp in enumerate(around) if not lp.independent), len(path))]
            lowest[name] = _common(lowest.get(name, at), at)
    return lowest


def _defines(statement: Statement) -> str | None:
    """The buffer that the statement writes without reading it."""
    if statement.reduce or statement.guard is not None:
        return None
    name = statement.target.buffer
    return None if any(ld.buffer == name for ld in reads(statement)) else name


def _common(a: Path, b: Path) -> Path:
    size = next((d for d, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return a[:size]
