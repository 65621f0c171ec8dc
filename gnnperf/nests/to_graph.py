"""LoopNest -> ProgramGraph."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gnnperf.graph.builder import GraphBuilder
from gnnperf.graph.fields import Value
from gnnperf.graph.program_graph import ProgramGraph
from gnnperf.graph.vocabulary import FLOPS, element_bytes
from gnnperf.nests.access_function import AccessFunction, access_function, sizes
from gnnperf.nests.affine import simplify
from gnnperf.nests.analysis import is_data_dependent
from gnnperf.nests.ir import Expr, Load, Loop, LoopNest, Node, Op, Statement, expressions_of
from gnnperf.nests.iteration_space import Space, enter, is_register
from gnnperf.nests.text import expression_text, statement_text
from gnnperf.nests.totals import totals
from gnnperf.nests.trip_counts import with_trip_counts
from gnnperf.nests.value_flow import Site, flows, home_depths


def nest_graph(nest: LoopNest, trip_counts: Mapping[str, float] | None = None) -> ProgramGraph:
    """The program graph of a nest, scheduled or not.

    trip_counts: measured mean trip counts of loops whose bounds depend on data, by iterator, beside
    those that loops carry. Where one is missing the loop has extent 0, is flagged `extent_unknown`, and
    counts as one iteration in totals. Parameters enter with their representative values.
    Raises InputError for a symbol that is neither an iterator nor a parameter.
    """
    nest = with_trip_counts(nest, trip_counts) if trip_counts else nest
    walk = _Walk(nest)
    walk.visit(nest.body, ())
    return walk.finish()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where expressions stand: the loops around them, the statement (None in loop bounds), and the
    accesses made there so far, so that equal loads share one."""

    around: tuple[Space, ...]
    statement: Statement | None
    seen: dict[Load, int]

    @property
    def instances(self) -> float:
        return self.around[-1].total if self.around else 1.0


class _Walk:
    """Goes through the nest once in program order; `finish` adds what needs the whole."""

    def __init__(self, nest: LoopNest) -> None:
        self.nest = nest
        self.builder = GraphBuilder()
        self.loops: dict[Space, int] = {}
        self.buffers: dict[str, int] = {}
        self.accesses: defaultdict[str, list[tuple[int, AccessFunction, float]]] = defaultdict(list)
        self.targets: dict[int, AccessFunction] = {}
        self.sites: list[Site] = []
        self.work: list[tuple[Value, tuple[Space, ...]]] = []

    def visit(self, body: tuple[Node, ...], around: tuple[Space, ...]) -> None:
        for node in body:
            if isinstance(node, Loop):
                self.visit(node.body, (*around, self.loop(node, around)))
            else:
                self.statement(node, around)

    def loop(self, loop: Loop, around: tuple[Space, ...]) -> Space:
        space = enter(loop, around, self.nest.buffers, self.nest.parameters)
        note = loop.annotation
        index = self.loops[space] = self.builder.node(
            "loop",
            loop.iterator,
            extent=space.trips or 0,
            extent_unknown=space.trips is None,
            extent_varies=len(space.governs) > 1,
            extent_power_of_two=_power_of_two(space.trips),
            iterations=space.total,
            step=loop.step,
            depth=len(around),
            ordered=not loop.independent,
            innermost=not any(isinstance(n, Loop) for n in loop.body),
            annotation=note.kind if note else "none",
            binding=note.binding if note else "none",
            omp_schedule=note.omp_schedule if note and note.kind == "parallel" else "none",
            chunk=note.chunk if note else 0,
            collapse=note.collapse if note and note.collapse > 1 else 0,
            tile_level=loop.tile_level,
        )
        self.contain(index, around)
        place = _Place(around, None, {})
        for bound in expressions_of(loop):
            self.read(bound, place, index, role="bound")
        return space

    def statement(self, statement: Statement, around: tuple[Space, ...]) -> None:
        place = _Place(around, statement, {})
        operations = Counter(_operations(statement.value))
        if statement.guard is not None:
            operations.update(_operations(statement.guard))
        if statement.reduce:
            operations[statement.reduce] += 1
        flops = sum(FLOPS.get(name, 0) * count for name, count in operations.items())
        if around and around[-1].axis != "none":
            index = self.intrinsic(statement, place, flops)
        else:
            index = self.builder.node(
                "compute",
                statement_text(statement),
                operations=operations,
                reduction=statement.reduce or "none",
                guarded=statement.guard is not None,
                flops=flops,
                instances=place.instances,
                dtype=self.nest.buffers[statement.target.buffer].dtype,
            )
        self.contain(index, around)
        self.work.append((flops, around))
        parts = {"value": statement.value, "guard": statement.guard, "initial": statement.init}
        for role, expr in parts.items():
            if expr is not None:
                self.read(expr, place, index, role=role)
        self.write(statement, place, index)

    def intrinsic(self, statement: Statement, place: _Place, flops: int) -> int:
        """A tensor instruction: a statement inside of loops that run along the instruction's axes. Its
        `assigns` edges say which loops one instruction covers, and which step from one to the next."""
        covered = [space for space in place.around if space.axis != "none"]
        extents = {f"{space.axis}_extent": space.trips or 0 for space in covered}
        points = math.prod(space.trips or 1 for space in covered)
        target = self.nest.buffers[statement.target.buffer].dtype
        sources = [self.nest.buffers[load.buffer].dtype for load in _outermost_loads(statement.value)]
        index = self.builder.node(
            "intrinsic",
            statement_text(statement),
            dtype=sources[0] if sources else target,
            accumulator_dtype=target if statement.reduce else "none",
            flops=flops * points,
            instances=place.instances / points,
            **{name: extent for name, extent in extents.items() if name != "batch_extent"},
        )
        for space in covered:
            note = space.loop.annotation
            self.assign(space, index, space.axis, space.trips or 0)
            for outer in place.around:
                if note is not None and outer.loop.iterator in note.steps:
                    self.assign(outer, index, space.axis, 1)
        return index

    def assign(self, space: Space, index: int, axis: str, covered: float) -> None:
        self.builder.edge(self.loops[space], index, "assigns", axis=axis, tile_extent=covered)

    def read(self, expr: Expr, place: _Place, consumer: int, **edge: Value) -> None:
        """Accesses for the outermost loads of an expression, feeding `consumer`."""
        for load in _outermost_loads(expr):
            self.site(load.buffer, consumer, place, is_write=False)
            if is_register(self.nest.buffers[load.buffer]):  # shows as a flow between computations
                continue
            key = Load(load.buffer, tuple(map(simplify, load.indices)))
            if key not in place.seen:
                place.seen[key] = self.access(load, place, "read")
                self.builder.edge(self.buffer(load.buffer), place.seen[key], "reads", role="memory")
            self.builder.edge(place.seen[key], consumer, "reads", **edge)

    def write(self, statement: Statement, place: _Place, compute: int) -> None:
        target = statement.target
        name = target.buffer
        if not is_register(self.nest.buffers[name]):
            access = self.access(target, place, "reduction" if statement.reduce else "write")
            self.builder.fields(access)["initialised"] = statement.init is not None
            self.targets[compute] = self.accesses[name][-1][1]
            self.builder.edge(compute, access, "writes")
            self.builder.edge(access, self.buffer(name), "writes")
        self.site(name, compute, place, is_write=True)

    def access(self, load: Load, place: _Place, kind: str) -> int:
        buffer = self.nest.buffers[load.buffer]
        function = access_function(load, self.nest.buffers, place.around, self.nest.parameters)
        item_bytes = element_bytes(buffer.dtype)
        index = self.builder.node(
            "access",
            expression_text(load),
            access_kind=kind,
            element_bytes=item_bytes,
            footprint_bytes=function.distinct * item_bytes,
            touches=place.instances,
            nonaffine=function.is_nonaffine,
            indirect=function.is_indirect,
            operations=Counter(name for s in function.subscripts for name in s.operations),
        )
        for space in place.around:
            self.index(space, index, function, item_bytes)
        for d, (expr, subscript) in enumerate(zip(load.indices, function.subscripts, strict=True)):
            if subscript.indirect:
                last = len(load.indices) - 1 - d
                self.read(expr, place, index, role="subscript", dimension=d, dimension_from_last=last)
        self.accesses[load.buffer].append((index, function, place.instances))
        return index

    def index(self, space: Space, access: int, function: AccessFunction, item_bytes: int) -> None:
        """One edge per dimension that the loop moves; one that says so where it moves none (reuse)."""
        loop = self.loops[space]
        if space not in function.moved_by:
            self.builder.edge(loop, access, "indexes", subscript="invariant")
            return
        for d, (subscript, stride) in enumerate(zip(function.subscripts, function.strides, strict=True)):
            if space in subscript.dependence:
                elements = subscript.coefficients.get(space, 0) * stride
                self.builder.edge(
                    loop,
                    access,
                    "indexes",
                    subscript=subscript.dependence[space],
                    stride_elements=elements,
                    stride_bytes=elements * item_bytes,
                    dimension=d,
                    dimension_from_last=len(function.shape) - 1 - d,
                    dimension_extent=function.shape[d],
                )

    def buffer(self, name: str) -> int:
        if name not in self.buffers:
            buffer = self.nest.buffers[name]
            shape = sizes(buffer.shape, self.nest.parameters)
            self.buffers[name] = self.builder.node(
                "buffer",
                name,
                dtype=buffer.dtype,
                element_bytes=element_bytes(buffer.dtype),
                rank=len(shape),
                size_bytes=math.prod(shape) * element_bytes(buffer.dtype),
                scope=buffer.scope,
                transient=buffer.transient,
                contiguous=_is_contiguous(shape, sizes(buffer.strides, self.nest.parameters)),
            )
        return self.buffers[name]

    def contain(self, index: int, around: tuple[Space, ...]) -> None:
        if around:
            self.builder.edge(self.loops[around[-1]], index, "contains", nesting_depth=len(around))

    def site(self, buffer: str, node: int, place: _Place, is_write: bool) -> None:
        self.sites.append(Site(len(self.sites), buffer, node, place.around, place.statement, is_write))

    # ------------------------------------------------------------------ what needs the whole

    def finish(self) -> ProgramGraph:
        homes = home_depths(self.sites, self.nest.buffers)
        writes = [s for s in self.sites if s.is_write]
        reduced = {space for s in writes for space in self.reduced_over(s, homes[s.buffer])}
        for space, index in self.loops.items():
            self.builder.fields(index)["loop_kind"] = _loop_kind(space, reduced)
            self.builder.fields(index)["reduces"] = space in reduced
        for flow in flows(self.sites, self.nest.buffers, homes):
            buffer = self.nest.buffers[flow.buffer]
            elements = math.prod(sizes(buffer.shape, self.nest.parameters))
            self.builder.edge(
                flow.source,
                flow.target,
                "flows",
                through="register" if is_register(buffer) else "transient" if buffer.transient else "memory",
                carried=flow.carried,
                carrier_bytes=elements * element_bytes(buffer.dtype),
            )
        for group in self.accesses.values():
            lowest = min(function.first for _, function, _ in group)
            for index, function, _ in group:
                self.builder.fields(index)["offset_elements"] = function.first - lowest
        traffic = {
            name: [(function, touches) for _, function, touches in group]
            for name, group in self.accesses.items()
            if self.nest.buffers[name].scope == "global"
        }
        return self.builder.build(totals(self.work, traffic, reduced, self.nest.buffers))

    def reduced_over(self, site: Site, home: int) -> Iterator[Space]:
        """Loops over which a reduction accumulates: inside the home of its target, not moving it."""
        if site.statement is not None and site.statement.reduce:
            function = self.targets.get(site.node)
            for space in site.around[home:]:
                if function is None or space not in function.moved_by:
                    yield space


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    expected = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != expected:
            return False
        expected *= extent
    return True


def _loop_kind(space: Space, reduced: set[Space]) -> str:
    if is_data_dependent(space.loop):
        return "data-dependent"
    if not space.loop.independent:
        return "sequential"
    return "reduction" if space in reduced else "spatial"


AS_COSTLY_AS = {"expm1": "exp", "erf": "exp", **dict.fromkeys(("log1p", "asinh", "acosh", "atanh"), "log")}
"""Operations that the vocabulary of graphs has no word for."""


def _operations(expr: Expr) -> Iterator[str]:
    """Operations on values; address arithmetic inside loads is not among them."""
    if isinstance(expr, Op):
        yield "cast" if expr.name.startswith("cast:") else AS_COSTLY_AS.get(expr.name, expr.name)
        for argument in expr.args:
            yield from _operations(argument)


def _outermost_loads(expr: Expr) -> Iterator[Load]:
    if isinstance(expr, Load):
        yield expr
    elif isinstance(expr, Op):
        for argument in expr.args:
            yield from _outermost_loads(argument)


def _power_of_two(trips: float | None) -> int:
    """Largest power of two that divides a whole trip count, 0 for others."""
    return int(trips) & -int(trips) if trips and float(trips).is_integer() else 0
