"""Scheduled functions as scheduled program graphs: tiles, annotations, bindings, caches, instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from gnnperf.frontends.tvm.expressions import Expressions
from gnnperf.frontends.tvm.fused_loops import divide, split_points
from gnnperf.frontends.tvm.intrinsics import tensor_instruction
from gnnperf.frontends.tvm.translate import TirTranslator
from gnnperf.frontends.tvm.unrolling import auto_unrolled
from gnnperf.frontends.tvm.weights import MARK
from gnnperf.frontends.tvm.workspaces import Workspaces
from gnnperf.graph import ProgramGraph
from gnnperf.nests import Annotation, Const, Expr, Load, Loop, LoopNest, Node, Op, Symbol, nest_graph
from gnnperf.nests.affine import affine
from gnnperf.nests.analysis import accesses
from gnnperf.nests.names import free_name

SERIAL, PARALLEL, VECTORIZED, UNROLLED, BOUND = range(5)
"""Kinds of loops, as in TVM's ForKind."""

_ANNOTATIONS = {
    PARALLEL: Annotation("parallel"),
    VECTORIZED: Annotation("vectorized"),
    UNROLLED: Annotation("unrolled"),
}
_LEVELS = {"blockIdx": "block", "threadIdx": "thread", "vthread": "virtual_thread"}
_NOTES = ("meta_schedule.parallel", "meta_schedule.vectorize", "meta_schedule.unroll_explicit")
_MAX_STEP = "pragma_auto_unroll_max_step"


def scheduled_graph(module: Any) -> ProgramGraph:
    """The program graph of a scheduled IRModule (its function `main`) or PrimFunc.

    Tile levels, parallel, vectorized and unrolled loops (also those that TVM unrolls because a pragma says
    so), bindings to blocks and threads, caches with their scope and the size that they are allocated with,
    tensor instructions. Raises UnsupportedConstruct where the IR lacks what the function does.
    """
    return nest_graph(scheduled_nest(module))


def scheduled_nest(module: Any) -> LoopNest:
    """The same as a nest."""
    function = _noted(module["main"] if hasattr(module, "functions") else module)
    translator = ScheduledTranslator(function)
    for parameter in function.params:
        translator.declare(parameter, transient=False)
    body = translator.leveled(tuple(translator.visit(function.body)))
    used = {a.load.buffer for n in body for a in accesses(n)}
    buffers = {
        k: replace(b, transient=False) if k in translator.given else translator.workspaces.sized(b)
        for k, b in translator.buffers.items()
        if k in used
    }
    return LoopNest("main", buffers, body)


def _noted(function: Any) -> Any:
    """The function with what MetaSchedule noted at its root block for later made loops, as its own
    post-processing does."""
    root = function.body.block if type(function.body).__name__ == "SBlockRealize" else None
    if root is None or not any(note in root.annotations for note in _NOTES):
        return function
    from tvm.s_tir import Schedule
    from tvm.s_tir.meta_schedule import postproc

    schedule = Schedule(function)
    postproc.RewriteParallelVectorizeUnroll().apply(schedule)
    return schedule.mod["main"]


class ScheduledTranslator(TirTranslator):
    """A translator that keeps what the schedule says of loops and buffers.

    levels: tile level of every loop, found where blocks bind their iterators. given: caches that are filled
    before the function runs.
    """

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.expression = _Expressions(self)
        self.splits = split_points(function.body)
        self.workspaces = Workspaces(function)
        self.given: set[str] = set()
        self.levels: dict[str, int] = {}
        self.ranges: dict[str, tuple[int, int]] = {}
        self.block_iterators: dict[int, tuple[int, tuple[str, ...]]] = {}

    # ------------------------------------------------------------------ loops

    def visit_For(self, loop: Any) -> list[Node]:
        start, extent = self.expression(loop.min), self.expression(loop.extent)
        handle = loop.loop_var.__chandle__()
        annotation = self.annotation(loop)
        bound = annotation is not None and annotation.kind in ("thread", "virtual_thread")
        if extent == Const(1):
            self.expression.values[handle] = start
            self.workspaces.enter(loop, (), bound)
            return self.pragma(loop, tuple(self.visit(loop.body)))
        parts = self.parts(loop, extent)
        names = []
        for _ in parts:
            names.append(free_name(loop.loop_var.name, self.iterators))
            self.iterators.add(names[-1])
        terms: list[Expr] = [] if start == Const(0) else [start]
        stride = 1
        for name, part in reversed([*zip(names, parts, strict=True)]):
            terms.append(Symbol(name) if stride == 1 else Op("mul", (Symbol(name), Const(stride))))
            if isinstance(part, Const):
                size = int(part.value.real)
                self.ranges[name] = (0, size - 1)
                stride *= size
        value = terms[0]
        for term in terms[1:]:
            value = Op("add", (value, term))
        self.expression.values[handle] = value
        self.workspaces.enter(loop, names, bound)
        body = tuple(self.visit(loop.body))
        self.workspaces.leave(len(names))
        if annotation is not None and annotation.kind == "parallel" and len(parts) > 1:
            annotation = replace(annotation, collapse=len(parts))
        for position in reversed(range(len(parts))):
            note = annotation
            if position and annotation is not None and annotation.kind == "parallel":
                note = None
            body = (Loop(names[position], Const(0), parts[position], body,
                         independent=names[position] not in self.ordered, annotation=note),)  # fmt: skip
        return self.pragma(loop, body)

    def parts(self, loop: Any, extent: Expr) -> list[Expr]:
        """Extents of the loops that were fused into this one, as far as its uses tell; outermost first."""
        found: list[Expr] = []
        rest = int(extent.value.real) if isinstance(extent, Const) else 0
        for point in sorted(self.splits.get(loop.loop_var.__chandle__(), ()), reverse=True):
            if rest and rest > point and rest % point == 0:
                found.append(Const(rest // point))
                rest = point
        return [*found, Const(rest)] if found else [extent]

    def annotation(self, loop: Any) -> Annotation | None:
        kind = int(loop.kind)
        if kind != BOUND:
            return _ANNOTATIONS.get(kind)
        level, _, axis = str(loop.thread_binding.thread_tag).partition(".")
        return Annotation(cast(Any, _LEVELS[level]), binding=cast(Any, axis or "x"))

    def pragma(self, loop: Any, body: tuple[Node, ...]) -> list[Node]:
        notes = loop.annotations
        if notes and _MAX_STEP in notes and int(notes[_MAX_STEP]) > 0:
            return list(auto_unrolled(body, int(notes[_MAX_STEP])))
        return list(body)

    # ------------------------------------------------------------------ blocks

    def block(self, block: Any, reduced: Sequence[tuple[Expr, Expr]]) -> list[Node]:
        if MARK in block.annotations:  # weights in another layout, brought into it before anything runs
            self.given |= {self.expression.names[w.source.__chandle__()] for w in block.writes}
            return []
        self.workspaces.enter(block, (), False)
        for iterator in block.iter_vars:
            handle = iterator.var.__chandle__()
            loops = self.level(self.expression.values[handle])
            self.block_iterators[handle] = (int(iterator.iter_type), loops)
        if block.match_buffers:
            return tensor_instruction(self, block)
        return super().block(block, reduced)

    def level(self, bound: Expr) -> tuple[str, ...]:
        """Set the tile levels of the loops that a block's iterator is bound to; these loops, outermost
        first."""
        if isinstance(bound, Symbol):
            self.levels.setdefault(bound.name, 0)
            return (bound.name,)
        form = affine(bound)
        names = [a.name for a in form.terms if isinstance(a, Symbol) and a.name in self.ranges]
        names.sort(key=lambda n: abs(form.coefficient(n)), reverse=True)
        for position, name in enumerate(reversed(names)):
            self.levels[name] = max(position, self.levels.get(name, 0))
        return tuple(names)

    def leveled(self, body: tuple[Node, ...]) -> tuple[Node, ...]:
        """The nodes with the tile levels found."""
        return tuple(
            replace(n, body=self.leveled(n.body), tile_level=self.levels.get(n.iterator, n.tile_level))
            if isinstance(n, Loop)
            else n
            for n in body
        )


class _Expressions(Expressions):
    """Divisions of fused loops are resolved, and accesses of workspaces are relative to where they live."""

    def __init__(self, translator: ScheduledTranslator) -> None:
        super().__init__()
        self.translator = translator

    def operation(self, name: str, left: Expr, right: Expr) -> Expr:
        found = super().operation(name, left, right)
        if isinstance(found, Op) and name in ("floordiv", "mod"):
            return divide(found, self.translator.ranges)
        return found

    def load(self, buffer: Any, indices: Any) -> Load:
        found = super().load(buffer, indices)
        return self.translator.workspaces.relative(buffer, found, self.translator)
