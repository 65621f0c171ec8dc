"""Loops over time in tiles: some steps of some rows, then the same steps of the next rows.

for t in 0..T:                          for t_f in 0..T step 8:
    for i in 1..n:                          for t_r in 1..n + 14 step 64:
        B[i, ...] = A[i - 1], A[i + 1]          for t in t_f..min(t_f + 8, T):
    for i in 1..n:                                  for i in the rows from t_r - 2 (t - t_f) on:
        A[i, ...] = B[i - 1], B[i + 1]                  B[i, ...] = A[i - 1], A[i + 1]
                                                    for i in the rows from t_r - 2 (t - t_f) - 1 on:
                                                        A[i, ...] = B[i - 1], B[i + 1]

Every sweep over the arrays is so many rows behind the one before that what it reads is there and what it
overwrites was read: rows are skewed (Wonnacott 2000, "Using time skewing to eliminate idle time due to memory
bandwidth and network limitations"). Arrays that do not fit in caches go through them once in a tile of steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from gnnperf.errors import NotApplicable
from gnnperf.nests.affine import constant, simplify
from gnnperf.nests.analysis import accesses, depth, mentions, written
from gnnperf.nests.fusion import alignment
from gnnperf.nests.ir import Buffer, Const, Expr, Load, Loop, LoopNest, Node, Op, Symbol, map_node
from gnnperf.nests.names import Names
from gnnperf.schedules.recipes.threads import span_bytes

TILE_BYTES = 1 << 21
"""A tile of this size, or at least of as many rows as it moves by while it goes through its steps, stays in
the caches in between: the longer it is, the less often threads wait for each other."""
MOST_BEHIND = 16
"""Rows that a step may be behind the one before: more is no stencil."""


@dataclass(frozen=True)
class _Sweep:
    """A part of a step that goes along the rows: `loop`. offsets: (buffer, row ahead of the iterator's,
    whether it is written) of all that the time loop writes."""

    loop: Loop
    start: int
    stop: int
    offsets: frozenset[tuple[str, int, bool]]


@dataclass(frozen=True)
class TimeLoop:
    """A loop over time and its sweeps. behind: rows that each sweep is behind the first of its step; a step
    is `shift` rows behind the one before."""

    loop: Loop
    sweeps: tuple[_Sweep, ...]
    behind: tuple[int, ...]
    shift: int

    @property
    def buffers(self) -> frozenset[str]:
        """What it writes, and so goes through again in every step."""
        return frozenset(name for sweep in self.sweeps for name, _, is_written in sweep.offsets if is_written)

    def swept_bytes(self, buffers: Mapping[str, Buffer]) -> int:
        """Size of these, as far as it is known."""
        return sum(span_bytes(buffers[name]) for name in self.buffers)


def tile_time(nest: LoopNest, steps: int) -> LoopNest:
    """The nest with its time loops in tiles of so many steps; unchanged where `steps` is 0.

    Raises NotApplicable where it has none, or steps that cannot be tiled. Inside independent loops nothing
    is: what one of their iterations goes through is better kept in caches by them.
    """
    if not steps:
        return nest
    names = Names.of(nest)
    found = {id(time.loop): time for time in _found(nest.body, nest.buffers, names)}
    if not found:
        raise NotApplicable("the nest has no loop over time whose steps can be tiled")

    def replaced(node: Node) -> Node:
        if time := found.get(id(node)):
            return _tiled(time, steps, names, time.swept_bytes(nest.buffers))
        return replace(node, body=tuple(map(replaced, node.body))) if isinstance(node, Loop) else node

    return replace(nest, body=tuple(map(replaced, nest.body)))


def time_loops(nest: LoopNest) -> list[TimeLoop]:
    """Those that `tile_time` tiles."""
    return list(_found(nest.body, nest.buffers, Names.of(nest)))


def _found(body: Sequence[Node], buffers: Mapping[str, Buffer], names: Names) -> Iterator[TimeLoop]:
    for node in body:
        if isinstance(node, Loop) and not node.independent:
            if (found := match_time_loop(node, buffers, names)) is not None:
                yield found
            else:
                yield from _found(node.body, buffers, names)


def is_time_loop(loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    """Whether `tile_time` tiles it."""
    return match_time_loop(loop, buffers, Names(set())) is not None


def match_time_loop(loop: Loop, buffers: Mapping[str, Buffer], names: Names) -> TimeLoop | None:
    """The loop as one over time, which goes along the rows of the same arrays in every step; None where it
    does anything else. names: for loops over single rows."""
    if loop.independent or loop.condition is not None or loop.step != 1:
        return None
    changed = written(loop) - _private(loop, buffers)
    if any(mentions(a.load, loop.iterator) for a in accesses(loop) if a.load.buffer in changed):
        return None
    sweeps = _sweeps(loop, changed, names)
    if sweeps is None:
        return None
    behind: list[int] = []
    for sweep in sweeps:
        earlier = zip(sweeps, behind, strict=False)
        lags = (b + lag for s, b in earlier if (lag := _lag(s, sweep)) is not None)
        behind.append(max(lags, default=0))
    placed = list(zip(sweeps, behind, strict=True))
    shift = max(
        b - c + lag for (s, b), (then, c) in product(placed, placed) if (lag := _lag(s, then)) is not None
    )
    return TimeLoop(loop, sweeps, tuple(behind), max(0, shift)) if shift <= MOST_BEHIND else None


def _private(loop: Loop, buffers: Mapping[str, Buffer]) -> set[str]:
    """Local buffers of a single part of a loop: they live inside it."""
    parts = [{a.load.buffer for a in accesses(part)} for part in loop.body]
    local = {name for name in set().union(*parts) if buffers[name].scope == "local"}
    return {name for name in local if sum(name in part for part in parts) == 1}


def _lag(first: _Sweep, then: _Sweep) -> int | None:
    """Rows that a later sweep must be behind, or may be ahead of, another, because of the rows that both
    touch and one of them writes; None where there are none."""
    lags = [
        b - a
        for (name, a, writes), (other, b, overwrites) in product(first.offsets, then.offsets)
        if name == other and (writes or overwrites)
    ]
    return max(lags, default=None)


def _sweeps(loop: Loop, changed: set[str], names: Names) -> tuple[_Sweep, ...] | None:
    """What the loop consists of; None where that does not go along the rows of what it changes. Those with
    most loops say which dimension the rows are; of it others may touch a single row, a border."""
    rows: dict[str, int] = {}
    found: dict[int, _Sweep] = {}
    for at in sorted(range(len(loop.body)), key=lambda n: -depth(loop.body[n])):
        sweep = _along(loop.body[at], changed, rows) or _single(loop.body[at], changed, rows, names)
        if sweep is None:
            return None
        found[at] = sweep
    if not all(sweep.offsets for sweep in found.values()):
        return None
    return tuple(found[at] for at in range(len(loop.body)))


def _along(node: Node, changed: set[str], rows: dict[str, int]) -> _Sweep | None:
    """A node whose outermost loop goes along the rows."""
    if not isinstance(node, Loop) or node.step != 1 or node.condition is not None:
        return None
    start, stop = constant(node.start), constant(node.stop)
    if start is None or stop is None:
        return None
    offsets = set()
    here = dict(rows)
    for access in accesses(node):
        if access.load.buffer not in changed:
            continue
        place = alignment(access.load, node.iterator)
        if place is None or here.setdefault(access.load.buffer, place[0]) != place[0]:
            return None
        offsets.add((access.load.buffer, place[1], access.is_write))
    rows |= here
    return _Sweep(node, start, stop, frozenset(offsets))


def _single(node: Node, changed: set[str], rows: Mapping[str, int], names: Names) -> _Sweep | None:
    """A node that touches fixed rows, as a loop over the one that it writes."""
    touched = [a for a in accesses(node) if a.load.buffer in changed]
    if any(a.load.buffer not in rows for a in touched):
        return None
    at = {a.load: constant(a.load.indices[rows[a.load.buffer]]) for a in touched}
    targets = {at[a.load] for a in touched if a.is_write}
    if len(targets) != 1 or None in at.values():
        return None
    (target,) = targets
    assert target is not None
    iterator = names.fresh("row")

    def moved(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or (row := at.get(expr)) is None:
            return expr
        indices = list(expr.indices)
        indices[rows[expr.buffer]] = simplify(Op("add", (Symbol(iterator), Const(row - target))))
        return Load(expr.buffer, tuple(indices))

    loop = Loop(iterator, Const(target), Const(target + 1), (map_node(node, moved),))
    offsets = frozenset(
        (a.load.buffer, row - target, a.is_write) for a in touched if (row := at[a.load]) is not None
    )
    return _Sweep(loop, target, target + 1, offsets)


def _tiled(time: TimeLoop, steps: int, names: Names, swept_bytes: int) -> Loop:
    loop, shift = time.loop, time.shift
    tile, rows = names.fresh(f"{loop.iterator}_steps"), names.fresh(f"{loop.iterator}_rows")
    placed = list(zip(time.sweeps, time.behind, strict=True))
    first = min(s.start + b for s, b in placed)
    stop = max(s.stop + b for s, b in placed)
    moves = max(1, shift) * steps
    height = max(moves, TILE_BYTES * (stop - first) // swept_bytes - moves) if swept_bytes else moves
    ahead = Op("mul", (Const(shift), Op("sub", (Symbol(loop.iterator), Symbol(tile)))))
    body = []
    for sweep, behind in placed:
        begin = Op("sub", (Symbol(rows), Op("add", (ahead, Const(behind)))))
        start = Op("max", (Const(sweep.start), simplify(begin)))
        end = Op("min", (Const(sweep.stop), simplify(Op("add", (begin, Const(height))))))
        body.append(replace(sweep.loop, start=start, stop=end))
    end = Op("min", (simplify(Op("add", (Symbol(tile), Const(steps)))), loop.stop))
    inner = replace(loop, start=Symbol(tile), stop=end, body=tuple(body))
    across = Loop(
        rows, Const(first), Const(stop + shift * (steps - 1)), (inner,), height, False, tile_level=2
    )
    return replace(loop, iterator=tile, body=(across,), step=steps, tile_level=2)
