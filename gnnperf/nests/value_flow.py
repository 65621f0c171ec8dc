"""Which computation's result which other one uses, through registers, transients or memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gnnperf.nests.ir import Buffer, Statement
from gnnperf.nests.iteration_space import Space


@dataclass(frozen=True, slots=True)
class Site:
    """One use of a buffer at `position` in program order, by graph node `node` inside loops `around`."""

    position: int
    buffer: str
    node: int
    around: tuple[Space, ...]
    statement: Statement | None
    is_write: bool


@dataclass(frozen=True, slots=True)
class ValueFlow:
    """From the writing to the using graph node; carried: into a later iteration of a sequential loop."""

    source: int
    target: int
    buffer: str
    carried: bool


def home_depths(sites: Sequence[Site], buffers: Mapping[str, Buffer]) -> dict[str, int]:
    """How many loops enclose the place where a buffer lives.

    0 for memory; a local buffer lives in the innermost body that holds all its uses, so every
    iteration of the loops around that body has its own.
    """
    around: dict[str, list[tuple[Space, ...]]] = defaultdict(list)
    for site in sites:
        around[site.buffer].append(site.around)
    return {name: _common(stacks) if buffers[name].scope == "local" else 0 for name, stacks in around.items()}


def flows(
    sites: Sequence[Site], buffers: Mapping[str, Buffer], homes: Mapping[str, int]
) -> Iterator[ValueFlow]:
    """Read-after-write dependences, in program order or carried by sequential loops.

    Reductions of one operation into the same buffer commute, hence depend on nothing of one another.
    """
    writers: dict[str, list[Site]] = defaultdict(list)
    for site in sites:
        if site.is_write:
            writers[site.buffer].append(site)
    for reader in sites:
        if reader.is_write and not _reads_target(reader):
            continue
        found = writers[reader.buffer]
        killed = False
        for writer in reversed(found):
            if writer.position < reader.position and not killed and not _commute(writer, reader):
                yield ValueFlow(writer.node, reader.node, reader.buffer, False)
                killed = not buffers[reader.buffer].shape and _overwrites(writer, reader)
        if not killed:
            for writer in found:
                if writer.position > reader.position and _carries(writer, reader, homes[reader.buffer]):
                    yield ValueFlow(writer.node, reader.node, reader.buffer, True)


def _reads_target(site: Site) -> bool:
    """A reduction that does not set its initial value combines with what was there."""
    return site.statement is not None and site.statement.reduce is not None and site.statement.init is None


def _commute(a: Site, b: Site) -> bool:
    return (
        b.is_write
        and a.statement is not None
        and b.statement is not None
        and (a.statement.reduce is not None and a.statement.reduce == b.statement.reduce)
    )


def _overwrites(writer: Site, reader: Site) -> bool:
    """Always runs between any earlier write and the reader."""
    statement = writer.statement
    return (
        statement is not None
        and statement.reduce is None
        and statement.guard is None
        and reader.around[: len(writer.around)] == writer.around
    )


def _carries(writer: Site, reader: Site, home: int) -> bool:
    if _commute(writer, reader):
        return False
    shared = reader.around[home : _common([writer.around, reader.around])]
    return any(not space.loop.independent for space in shared)


def _common(stacks: Sequence[tuple[Space, ...]]) -> int:
    """Length of the longest common prefix."""
    depth = 0
    for level in zip(*stacks, strict=False):
        if any(space is not level[0] for space in level):
            break
        depth += 1
    return depth
