"""Weights whose layout a function leaves free (`layout_free_buffers`), as operators of `topi` mark theirs.

MetaSchedule's RewriteLayout reads such a weight in the order in which the schedule needs it, from a copy that
a block makes which it marks. TVM's builder drops that block, and the function then takes the packed weight:
another signature. Here the signature stays. Where weights vary from call to call, the block is a part of the
function, scheduled as a copy; where they are constant, packing is a function of its own, which runs once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from gnnperf.frontends.tvm.blocks import has_root
from gnnperf.frontends.tvm.fast_import import import_tvm

FREE = "layout_free_buffers"
"""Attribute of functions: places of the parameters that it concerns."""
MARK = "meta_schedule.layout_rewrite_preproc"
"""Annotation of the blocks that pack."""
CONSTANT = "gnnperf.constant_weights"
"""Attribute of functions whose weights are the same in every call."""
PACKED_AHEAD = "-constant-weights"
"""End of the name of a baseline beside which schedules were timed that had their weights packed before."""
REUSED = 32
"""Reads of a weight's element from which on packing it in every call pays: of a product with a weight of
1280 x 768, four schedules with packing were slower than without at 16 rows and faster at 64."""
_ONE_BUILDER = Lock()
"""Candidates are compiled by several threads, which TVM's builders know nothing of: they share one stack."""
_AHEAD = 16
"""Iterations of the parallel loop for each core."""


def has_free_weights(function: Any) -> bool:
    """Whether a function marks weights as free of layout."""
    return FREE in (function.attrs or {}) and len(function.attrs[FREE]) > 0


def has_constant_weights(function: Any) -> bool:
    """Whether these are the same in every call."""
    return CONSTANT in (function.attrs or {})


def with_constant_weights(module: Any) -> Any:
    """The module, whose one function is `main`, with its free weights as constant ones."""
    function = module["main"]
    return (
        import_tvm().IRModule({"main": function.with_attr(CONSTANT, 1)})
        if has_free_weights(function)
        else module
    )


def packed_where_it_pays(module: Any) -> Any:
    """The module, whose weights vary, with those alone free of layout for which packing in every call pays:
    what it marks, or else what its sums read against the order of what they write, if each element is read
    `REUSED` times or more."""
    from tvm.s_tir import Schedule

    function = module["main"]
    if not has_root(function):
        return module
    schedule = Schedule(module)
    blocks = [schedule.get(handle) for handle in schedule.get_child_blocks(schedule.get_sblock("root"))]
    marked = [int(place) for place in function.attrs[FREE]] if has_free_weights(function) else []

    def reads(place: int) -> float:
        """Per element, of the block that reads it most."""
        weight = function.params[place]
        iterations = [
            math.prod(int(iterator.dom.extent) for iterator in block.iter_vars)
            for block in blocks
            if any(region.source.same_as(weight) for region in block.reads)
        ]
        return max(iterations, default=0) / max(1, math.prod(int(extent) for extent in weight.shape))

    free = marked or [n for n, p in enumerate(function.params) if _against_order(p, blocks)]
    kept = [place for place in free if reads(place) >= REUSED]
    if kept == marked:
        return module
    function = function.with_attr(FREE, kept) if kept else function.without_attr(FREE)
    return import_tvm().IRModule({"main": function})


def _against_order(parameter: Any, blocks: Sequence[Any]) -> bool:
    """Whether one block alone reads a parameter, as a factor that is transposed: neighbours in memory of what
    a sum of the block writes need elements of it that are far apart."""
    from tvm.tirx import IterVar, analysis

    readers = [(b, [*r.region]) for b in blocks for r in b.reads if r.source.same_as(parameter)]
    if len(readers) != 1 or any(w.source.same_as(parameter) for b in blocks for w in b.writes):
        return False
    ((block, region),) = readers
    written = [*block.writes[0].region] if len(block.writes) == 1 else []
    sums = any(iterator.iter_type == IterVar.CommReduce for iterator in block.iter_vars)
    if not (sums and written and region):
        return False
    *outer, last, lane = ({v.name for v in analysis.undefined_vars(r.min)} for r in (*region, written[-1]))
    return any(lane & one for one in outer) and not lane & last


def pack_inside() -> Any:
    """A post-processor for after RewriteLayout: what packs weights that vary is a copy in the function, in
    parallel and written in order."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.postproc import PyPostproc

    @derived_object
    class PackInside(PyPostproc):  # type: ignore[misc]
        def _initialize_with_tune_context(self, context: Any) -> None:
            self.cores = int(context.target.attrs.get("num-cores", 1))

        def apply(self, schedule: Any) -> bool:
            if not has_constant_weights(schedule.mod["main"]):
                for block in marked_blocks(schedule):
                    schedule.unannotate(block, MARK)
                    _schedule_copy(schedule, block, self.cores)
            return True

        def clone(self) -> Any:
            return PackInside()

    return PackInside()


def marked_blocks(schedule: Any) -> list[Any]:
    """Blocks of a schedule's function that pack weights."""
    children = schedule.get_child_blocks(schedule.get_sblock("root"))
    return [block for block in children if MARK in (schedule.get(block).annotations or {})]


def _schedule_copy(schedule: Any, handle: Any, cores: int) -> None:
    """Loops in the order of what is written, as far as the packed dimensions are digits of one index each."""
    block, loops = schedule.get(handle), list(schedule.get_loops(handle))
    digits = _digits(block)
    if digits is not None:
        extents = [int(extent) for extent in block.writes[0].source.shape]
        split: dict[int, list[Any]] = {}
        for axis, loop in enumerate(loops):
            factors = [n for n, of in zip(extents, digits, strict=True) if of == axis]
            split[axis] = list(schedule.split(loop, factors)) if len(factors) > 1 else [loop]
        loops = [split[axis].pop(0) for axis in digits]
        schedule.reorder(*loops)
    wanted, count, total = _AHEAD * cores, 0, 1
    while count < len(loops) - 1 and total < wanted:
        total *= int(schedule.get(loops[count]).extent)
        count += 1
    schedule.parallel(schedule.fuse(*loops[: max(count, 1)]))


def _digits(block: Any) -> list[int] | None:
    """For every dimension that is written, the place of the one index that it is a digit of; None where a
    dimension depends on several, or the digits are not those of the whole index."""
    from tvm.tirx import analysis

    variables = [iterator.var for iterator in block.iter_vars]
    (written,) = block.writes
    found = []
    for region in written.region:
        used = [
            n
            for n, v in enumerate(variables)
            if any(u.same_as(v) for u in analysis.undefined_vars(region.min))
        ]
        if len(used) != 1:
            return None
        found += used
    shape = [int(extent) for extent in written.source.shape]
    for axis, iterator in enumerate(block.iter_vars):
        if math.prod(n for n, of in zip(shape, found, strict=True) if of == axis) != int(iterator.dom.extent):
            return None
    return found


# --------------------------------------------------------------------------- constant weights


@dataclass(frozen=True)
class Packing:
    """How the functions of a module with constant weights are called in place of the one that it was.

    steps: functions that pack, each with the places of the values that it takes, and dtype and shape of those
    that it gives, which are numbered on after the arguments of the one function without its result. takes:
    the values that `main` takes, before its result.
    """

    steps: Sequence[tuple[str, Sequence[int], Sequence[tuple[str, tuple[int, ...]]]]]
    takes: Sequence[int]

    @property
    def weights(self) -> list[int]:
        """Places of the arguments that are packed."""
        return sorted({place for _, places, _ in self.steps for place in places})


def unpacked(module: Any) -> tuple[Any, Packing | None]:
    """A scheduled module with what packs constant weights as functions of its own; and how they are called,
    None where it packs none: then it is the module itself."""
    from tvm.s_tir import Schedule

    if not has_root(module["main"]) or not marked_blocks(Schedule(module)):
        return module, None
    tvm = import_tvm()
    relax = tvm.relax
    found = relax.transform.SplitLayoutRewritePreproc()(_called(module["main"]))
    calls = [binding for block in found["main"].body.blocks for binding in block.bindings]
    places = {parameter: place for place, parameter in enumerate(found["main"].params)}
    values: dict[Any, Sequence[int]] = {variable: [place] for variable, place in places.items()}
    steps: list[Any] = []
    functions: dict[str, Any] = {}
    count = len(places)
    for binding in calls:
        value = binding.value
        if isinstance(value, relax.TupleGetItem):
            values[binding.var] = [values[value.tuple_value][int(value.index)]]
        elif isinstance(value, relax.Var):
            values[binding.var] = values[value]
        else:
            callee, given = value.args[0], [n for argument in value.args[1] for n in values[argument]]
            function = found[callee]
            results = [(str(b.dtype), tuple(int(n) for n in b.shape)) for b in function.params[len(given) :]]
            steps.append((callee.name_hint, given, results))
            functions[callee.name_hint] = function
            values[binding.var] = range(count, count + len(results))
            count += len(results)
    ((name, takes, _),) = steps[-1:]
    main = functions.pop(name).with_attr("global_symbol", "main")
    others = {n: f.with_attr("global_symbol", n) for n, f in functions.items()}
    return tvm.IRModule({"main": main, **others}), Packing(steps[:-1], takes)


def _called(function: Any) -> Any:
    """A relax module with a function `main` that does nothing but call a TIR function."""
    relax = import_tvm().relax
    *given, result = [
        relax.Var(f"x{n}", relax.TensorType([int(e) for e in p.shape], p.dtype))
        for n, p in enumerate(function.params)
    ]
    with _ONE_BUILDER:
        builder = relax.BlockBuilder()
        callee = builder.add_func(function.with_attr("global_symbol", "scheduled"), "scheduled")
        with builder.function("main", given):
            with builder.dataflow():
                output = builder.emit_output(relax.call_tir(callee, given, result.ty))
            builder.emit_func_output(output)
        return builder.get()
