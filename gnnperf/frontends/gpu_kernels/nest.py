"""One configuration of a tunable kernel as a scheduled loop nest, and so as a program graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from gnnperf.frontends.gpu_kernels.description import Description
from gnnperf.frontends.gpu_kernels.plan import Plan, PlannedLoop, PlannedStage, plan
from gnnperf.frontends.gpu_kernels.statements import access
from gnnperf.graph import ProgramGraph
from gnnperf.nests import (
    Annotation,
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    Statement,
    Symbol,
    nest_graph,
)  # fmt: skip
from gnnperf.nests.analysis import rename_buffers, rename_iterators
from gnnperf.nests.ir import map_node, row_major, substitute_node, walk


def scheduled_graph(
    description: Description, configuration: Mapping[str, Any], sizes: Mapping[str, float] | None = None
) -> ProgramGraph:
    """The program graph of a kernel with a configuration applied. Raises InputError, also for a
    configuration that is not valid."""
    planned = plan(description, [configuration], sizes)
    planned.require_valid(description.name)
    return nest_graph(scheduled_nest(planned))


def scheduled_nest(planned: Plan, index: int = 0) -> LoopNest:
    """Configuration number `index` of a plan: loops bound to blocks and threads, copies to shared memory,
    results in registers until all is summed up. Launches follow one another; one that is repeated is in a
    loop of its own."""
    buffers, body = dict[str, Buffer](), list[Node]()
    for number, launch in enumerate(planned.launches):
        if (repeats := int(launch.repeats[index])) == 0:
            continue
        nest = _Builder(launch, index).nest()
        names = {name: f"{name}_{number}" for name, b in nest.buffers.items() if b.transient and number}
        for name, buffer in nest.buffers.items():
            buffers[names.get(name, name)] = replace(buffer, name=names.get(name, name))
        for node in nest.body:
            if number:
                loops = (n for n in walk((node,)) if isinstance(n, Loop))
                node = rename_iterators(node, {lp.iterator: f"{lp.iterator}_{number}" for lp in loops})
                node = rename_buffers(node, names)
            if repeats > 1:
                node = _counted(f"launch{number}", repeats, (node,), None, independent=False)
            body.append(node)
    return LoopNest(planned.description.name, buffers, tuple(body))


@dataclass(frozen=True)
class _Copy:
    """A stage of this configuration. inside: loops that move within its tile. lowest: least offset read."""

    stage: PlannedStage
    name: str
    tile: tuple[int, ...]
    inside: tuple[str, ...]
    lowest: tuple[int, ...]


class _Builder:
    def __init__(self, planned: Plan, index: int) -> None:
        self.plan, self.index = planned, index
        self.about = planned.description
        self.copies = {c.stage.about.buffer: c for c in map(self._copy, planned.stages) if c is not None}
        self.kept = {
            s.target.buffer
            for s, on in planned.statements
            if on[index] and s.target.buffer in self.about.registers and s.reduce
        }
        self.inner = planned.level("")

    def at(self, values: Any) -> int:
        return int(np.asarray(values)[self.index])

    def nest(self) -> LoopNest:
        statements = [self._compute(s) for s, on in self.plan.statements if on[self.index]]
        body = self._inner(self.inner, tuple(statements))
        body = (*self._copies(""), *body, *(n for name in sorted(self.kept) for n in self._write_back(name)))
        for loop in reversed([loop for loop in self.plan.loops if loop.level]):
            body = (self._loop(loop, body),)
        name = self.about.name
        return LoopNest(name, self._buffers(), body)

    # ------------------------------------------------------------------ loops

    def _inner(self, loops: Sequence[PlannedLoop], body: tuple[Node, ...]) -> tuple[Node, ...]:
        for loop in reversed(loops):
            body = (self._loop(loop, (*self._copies(loop.about.name), *body)),)
        return body

    def _loop(self, loop: PlannedLoop, body: tuple[Node, ...]) -> Loop:
        later = [x for x in self.plan.loops if x.about.axis == loop.about.axis]
        return _counted(
            loop.about.name, self.at(loop.extent), body, self._annotation(loop),
            level=len(later) - 1 - later.index(loop), independent=not loop.about.ordered,
        )  # fmt: skip

    def _annotation(self, loop: PlannedLoop) -> Annotation | None:
        if loop.level:
            level, _, axis = loop.about.bind.partition(".")
            return Annotation(
                cast(Literal["block", "thread"], level), binding=cast(Literal["x", "y", "z"], axis)
            )
        if self.at(loop.vectorized):
            return Annotation("vectorized")
        return Annotation("unrolled") if self.at(loop.unrolled) else None

    def _position(self, axis: str, loops: Sequence[PlannedLoop]) -> Expr:
        """The value of an axis, or how far it has moved within `loops`."""
        terms = (
            Op("mul", (Symbol(loop.about.name), Const(self.at(loop.step))))
            for loop in loops
            if loop.about.axis == axis
        )
        return _sum(terms)

    # ------------------------------------------------------------------ statements

    def _compute(self, statement: Statement) -> Statement:
        if statement.target.buffer in self.kept:
            name = statement.target.buffer
            indices = tuple(Symbol(loop.about.name) for loop in self._moving(statement.target))
            statement = replace(statement, target=Load(f"{name}_registers", indices))
        else:
            statement = replace(statement, init=None)
        target = statement.target

        def placed(expr: Expr) -> Expr:
            if isinstance(expr, Load) and expr != target and expr.buffer in self.copies:
                return self._staged(expr)
            return expr

        axes = {loop.about.axis: self._position(loop.about.axis, self.plan.loops) for loop in self.plan.loops}
        return cast(Statement, substitute_node(map_node(statement, placed), axes))

    def _moving(self, target: Load) -> list[PlannedLoop]:
        """Loops of a thread that move what it writes."""
        axes = {axis for c in access(target, self.about.name).coefficients for axis in c}
        return [loop for loop in self.inner if loop.about.axis in axes]

    def _write_back(self, name: str) -> tuple[Node, ...]:
        """Every thread stores what it kept in registers."""
        target = next(
            s.target for s, on in self.plan.statements if s.target.buffer == name and on[self.index]
        )
        own = [
            replace(loop, about=replace(loop.about, name=f"{loop.about.name}_{name}"))
            for loop in self._moving(target)
        ]
        bound = [loop for loop in self.plan.loops if loop.level]
        axes = {loop.about.axis: self._position(loop.about.axis, [*bound, *own]) for loop in self.plan.loops}
        value = Load(f"{name}_registers", tuple(Symbol(loop.about.name) for loop in own))
        body: tuple[Node, ...] = (substitute_node(Statement(target, value), axes),)
        for loop in reversed(own):
            body = (_counted(loop.about.name, self.at(loop.extent), body, self._annotation(loop)),)
        return body

    # ------------------------------------------------------------------ shared memory

    def _copy(self, stage: PlannedStage) -> _Copy | None:
        """None where there is none, or nothing reads it."""
        offsets = [
            a.offsets for a, on in self.plan.reads if a.buffer == stage.about.buffer and on[self.index]
        ]
        if not stage.active[self.index] or not offsets:
            return None
        return _Copy(
            stage,
            f"{stage.about.buffer}_shared",
            tuple(self.at(side) for side in stage.tile),
            tuple(loop.about.name for loop in self.plan.inside(stage.about)),
            tuple(map(min, zip(*offsets, strict=True))),
        )

    def _staged(self, load: Load) -> Load:
        """The same element in the tile."""
        copy = self.copies[load.buffer]
        one = access(load, self.about.name)
        moving = [loop for loop in self.plan.loops if loop.about.name in copy.inside]
        indices = []
        for coefficients, offset, lowest in zip(one.coefficients, one.offsets, copy.lowest, strict=True):
            terms: list[Expr] = [
                Op("mul", (self._position(axis, moving), Const(c))) for axis, c in coefficients.items()
            ]
            indices.append(_sum([*terms, Const(offset - lowest)]))
        return Load(copy.name, tuple(indices))

    def _copies(self, inside: str) -> Iterator[Node]:
        for name, copy in self.copies.items():
            if copy.stage.about.inside == inside:
                yield self._fill(name, copy)

    def _fill(self, name: str, copy: _Copy) -> Node:
        """All threads of the block copy the tile: consecutive ones along its rows, `vector` elements each."""
        one = next(a for a, on in self.plan.reads if a.buffer == name and on[self.index])
        outer = [loop for loop in self.plan.loops if loop.about.name not in copy.inside]
        shape = [self.at(t) for t in copy.stage.threads] + [1] * len(copy.tile)
        vector = self.at(copy.stage.vector)
        rest, target, source = self._thread(), list[Expr](), list[Expr]()
        loops: list[tuple[str, int, Annotation | None]] = []
        for d in reversed(range(len(copy.tile))):
            threads = shape[len(copy.tile) - 1 - d]
            wide = vector if d == len(copy.tile) - 1 else 1
            lane: Expr = Op("mod", (rest, Const(threads))) if threads > 1 else Const(0)
            rest = Op("floordiv", (rest, Const(threads))) if threads > 1 else rest
            iterator = f"{name}{d}"
            loops.append((iterator, -(-copy.tile[d] // (threads * wide)), None))
            place = _sum(
                [Op("mul", (Symbol(iterator), Const(threads * wide))), Op("mul", (lane, Const(wide)))]
            )
            if wide > 1:
                loops.append((f"{name}_lane", wide, Annotation("vectorized")))
                place = _sum([place, Symbol(f"{name}_lane")])
            begin = [
                Op("mul", (self._position(axis, outer), Const(c))) for axis, c in one.coefficients[d].items()
            ]
            target.insert(0, place)
            source.insert(0, _sum([*begin, Const(copy.lowest[d]), place]))
        body: tuple[Node, ...] = (Statement(Load(copy.name, tuple(target)), Load(name, tuple(source))),)
        order = sorted(loops, key=lambda loop: loop[2] is None)  # vectors innermost
        for iterator, extent, annotation in order:
            body = (_counted(iterator, extent, body, annotation),)
        return body[0]

    def _thread(self) -> Expr:
        """Number of a thread in its block, thread.x fastest."""
        number: Expr = Const(0)
        for bind in ("thread.z", "thread.y", "thread.x"):
            for loop in self.plan.loops:
                if loop.about.bind == bind:
                    number = _sum([Op("mul", (number, Const(self.at(loop.extent)))), Symbol(loop.about.name)])
        return number

    # ------------------------------------------------------------------ buffers

    def _buffers(self) -> dict[str, Buffer]:
        found = {}
        for name, about in self.about.buffers.items():
            shape = tuple(self.at(side) for side in self.plan.shapes[name])
            found[name] = Buffer(name, about.dtype, shape, row_major(shape))
            if (copy := self.copies.get(name)) is not None:
                padded = (*copy.tile[:-1], copy.tile[-1] + self.at(copy.stage.pad))
                found[copy.name] = Buffer(
                    copy.name, about.dtype, padded, row_major(padded), transient=True, scope="shared"
                )
            if name in self.kept:
                target = next(s.target for s, _ in self.plan.statements if s.target.buffer == name)
                extents = tuple(self.at(loop.extent) for loop in self._moving(target))
                registers = f"{name}_registers"
                found[registers] = Buffer(
                    registers, about.dtype, extents, row_major(extents), transient=True, scope="local"
                )
        return found


def _counted(
    iterator: str, extent: int, body: tuple[Node, ...], annotation: Annotation | None,
    level: int = 0, independent: bool = True,
) -> Loop:  # fmt: skip
    return Loop(
        iterator, Const(0), Const(extent), body,
        independent=independent, annotation=annotation, tile_level=level,
    )  # fmt: skip


def _sum(terms: Iterator[Expr] | Sequence[Expr]) -> Expr:
    total: Expr | None = None
    for term in terms:
        total = term if total is None else Op("add", (total, term))
    return Const(0) if total is None else total
