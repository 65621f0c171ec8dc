"""MetaSchedule's design space of a workload, and random schedules from it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from typing import Any

from gnnperf.frontends.tvm.target import has_vnni
from gnnperf.frontends.tvm.weights import pack_inside
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.schedules.traces.allowed import check_trace
from gnnperf.schedules.traces.roles import roles_of

_BYTES = {"uint8", "int8"}  # types of the operands of VNNI's dot product
_WHOLE_SUM = 4096
"""Elements from which on a sum is split among threads."""
_PARTS = 32
"""Of such a sum, at most."""
_ATTEMPTS = 8  # per schedule wanted: some samples do not pass post-processing


class DesignSpace:
    """The schedules that rules of MetaSchedule, by default those for CPUs, give a module.

    Attributes:
        generator: the rules, post-processors and mutators. context: in which traces are applied. designs:
            sketches, with random decisions.
    """

    def __init__(self, module: Any, target: Any, generator: Any | None = None) -> None:
        """generator: rules in place of those of `generator_of`."""
        from tvm.s_tir import meta_schedule as ms

        self.module = module
        self.context = tune_context(module, target, generator)
        self.generator = self.context.space_generator
        self.designs = self.context.generate_design_space()
        self.arguments = ms.arg_info.ArgInfo.from_entry_func(module, remove_preproc=True)

    def sample(self, count: int, seed: int, attempts: int = _ATTEMPTS) -> Iterator[Any]:
        """Random schedules as `MeasureCandidate`s, `count` of them where `attempts` for each find so many."""
        from tvm.s_tir import Schedule
        from tvm.s_tir.schedule import Trace

        found = 0
        for attempt in range(count * attempts):
            if found == count:
                return
            schedule = Schedule(self.module, seed=seed + attempt + 1)
            design = self.designs[attempt % len(self.designs)]
            Trace(design.trace.insts, {}).apply_to_schedule(schedule, remove_postproc=True)
            schedule.enter_postproc()
            if all(postproc.apply(schedule) for postproc in self.generator.postprocs):
                found += 1
                yield self.candidate(schedule)

    def replay(self, trace: Any) -> Any:
        """A recorded trace as a `MeasureCandidate`. Raises InputError where it holds what schedules for
        processors do not need: it may be of anybody."""
        from tvm.s_tir import Schedule
        from tvm.s_tir.schedule import Trace

        instructions, decisions = trace
        check_trace(instructions, {int(position): value for position, value in decisions})
        schedule = Schedule(self.module)
        Trace.apply_json_to_schedule(trace, schedule)
        return self.candidate(schedule)

    def candidate(self, schedule: Any) -> Any:
        """A schedule of the module as a `MeasureCandidate`."""
        from tvm.s_tir.meta_schedule.search_strategy import MeasureCandidate

        return MeasureCandidate(schedule, self.arguments)


def seed_of(text: str) -> int:
    """For random choices of schedules: of one text the same every time, within what TVM takes."""
    return zlib.crc32(text.encode()) & 0x3FFFFFFF


def tune_context(module: Any, target: Any, generator: Any | None = None) -> Any:
    """The `TuneContext` of an unscheduled module. Its choices are the same every time. generator: rules in
    place of those of `generator_of`."""
    from tvm.s_tir import meta_schedule as ms

    return ms.TuneContext(
        mod=module,
        target=target,
        space_generator=generator or generator_of(module, target),
        num_threads=1,
        rand_state=1,
    )


def generator_of(module: Any, target: Any) -> Any:
    """Rules by what a function does: those for a tensor instruction where it multiplies what the instruction
    does and the target has it, those that tile what has no reduction, else MetaSchedule's own."""
    types = {str(parameter.dtype) for parameter in module["main"].params}
    if types >= _BYTES and has_vnni(str(target.attrs["mcpu"])):
        return vnni_generator()
    return plain_generator() if "R" in roles_of(module["main"]).loops else spatial_generator()


def workload_generator(workload: TvmWorkload) -> Any | None:
    """Rules in place of those of `generator_of`, where a corpus has others for a workload: the instruction
    for products of bytes takes packed weights."""
    return plain_generator() if workload.params.get("layout") == "plain" else None


def plain_generator() -> Any:
    """MetaSchedule's own rules for CPUs, which here tile sums of columns, too."""
    return _tiled_generator(intrinsic=None)


def spatial_generator() -> Any:
    """The rules for CPUs, and tiles for what has no reduction, of which MetaSchedule itself tiles nothing."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule import schedule_rule

    @derived_object
    class TileSpatial(schedule_rule.PyScheduleRule):  # type: ignore[misc]
        """Splits each loop of the output's block in two, the inner ones inside; or leaves them."""

        def _initialize_with_tune_context(self, context: Any) -> None:
            pass

        def apply(self, schedule: Any, block: Any) -> list[Any]:
            if len(schedule.get_loops(block)) < 2 or schedule.get_consumers(block):  # the root has no loops
                return [schedule]
            tiled = schedule.copy()
            splits = [
                tiled.split(loop, tiled.sample_perfect_tile(loop, n=2, max_innermost_factor=64))
                for loop in tiled.get_loops(block)
            ]
            tiled.reorder(*(outer for outer, _ in splits), *(inner for _, inner in splits))
            return [tiled, schedule]

        def clone(self) -> Any:
            return TileSpatial()

    rules = [_inline(strict=False), TileSpatial(), _annotate(max_vectorize_extent=64)]
    return ms.space_generator.PostOrderApply(sch_rules=rules, postprocs=_postprocs(), mutator_probs="llvm")


def vnni_generator() -> Any:
    """The rules for CPUs, and tiles that end in VNNI's dot product of 16 x 4 bytes. Without vectorized
    copies: those of packed weights fail in TVM's `vectorize_loop`."""
    from gnnperf.frontends.tvm.vnni import VNNI_DOT_16x4_INTRIN

    return _tiled_generator(VNNI_DOT_16x4_INTRIN)


def _tiled_generator(intrinsic: str | None) -> Any:
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule import schedule_rule

    tiles: dict[str, Any] = dict(
        structure="SSRSRS",
        tile_binds=None,
        max_innermost_factor=64,
        vector_load_lens=None,
        reuse_read=None,
        reuse_write=schedule_rule.ReuseType(req="may", levels=[1, 2], scope="global"),
    )
    rules = [
        schedule_rule.ApplyCustomRule(),
        schedule_rule.InlineConstantScalars(),
        _inline(strict=True),
        _split_sums(schedule_rule.AddRFactor(max_jobs_per_core=16, max_innermost_factor=64)),
        *([schedule_rule.MultiLevelTilingWithIntrin(intrinsic, **tiles)] if intrinsic else []),
        schedule_rule.MultiLevelTiling(**tiles, filter_fn=_reduces_columns),
        _annotate(max_vectorize_extent=1 if intrinsic else 64),
        schedule_rule.RandomComputeLocation(),
    ]
    postprocs = _postprocs(tensorize=intrinsic is not None)
    return ms.space_generator.PostOrderApply(sch_rules=rules, postprocs=postprocs, mutator_probs="llvm")


def _split_sums(rule: Any) -> Any:
    """What a rule does, and, of the sum of a whole array, parts that threads add up in vectors: MetaSchedule
    makes partial sums of threads or of lanes, not both."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir import Schedule
    from tvm.s_tir.meta_schedule import schedule_rule
    from tvm.tirx import IterVar

    @derived_object
    class SplitSums(schedule_rule.PyScheduleRule):  # type: ignore[misc]
        def _initialize_with_tune_context(self, context: Any) -> None:
            rule._initialize_with_tune_context(context)

        def apply(self, schedule: Schedule, block: Any) -> list[Any]:
            loops = schedule.get_loops(block)
            kinds = [variable.iter_type for variable in schedule.get(block).iter_vars]
            whole = len(kinds) == len(loops) and all(kind == IterVar.CommReduce for kind in kinds)
            if not whole or math.prod(int(schedule.get(loop).extent) for loop in loops) < _WHOLE_SUM:
                return [*rule.apply(schedule, block)]
            split = schedule.copy()  # the rule changes what it is given
            designs = [*rule.apply(schedule, block)]
            fused = split.fuse(*split.get_loops(block))
            rest, _ = split.split(fused, split.sample_perfect_tile(fused, 2, max_innermost_factor=64))
            extent = int(split.get(rest).extent)
            parts = max(n for n in range(1, _PARTS + 1) if extent % n == 0)
            outer, _ = split.split(rest, [parts, None])
            by_part = split.rfactor(outer, 0)
            split.rfactor(split.get_loops(by_part)[-1], 1)
            return [*designs, split]

        def clone(self) -> Any:
            return _split_sums(rule.clone())

    return SplitSums()


def _reduces_columns(_schedule: Any, sref: Any) -> bool:
    """Whether a block reduces along a dimension that is not contiguous in what it reads. It uses nothing
    twice, so MetaSchedule does not tile it; but only tiles add up neighbours in vectors."""
    from tvm.tirx import IterVar

    block = sref.stmt
    kinds = {variable.var.__chandle__(): variable.iter_type for variable in block.iter_vars}
    if IterVar.CommReduce not in kinds.values():
        return False
    innermost = [read.region[-1].min for read in block.reads if len(read.region) > 1]
    return any(
        type(index).__name__ == "Var" and kinds.get(index.__chandle__()) == IterVar.DataPar
        for index in innermost
    )


def _postprocs(tensorize: bool = False) -> list[Any]:
    """MetaSchedule's own for CPUs, with the functions' signatures kept (see `weights`)."""
    from tvm.s_tir.meta_schedule import postproc

    return [
        postproc.DisallowDynamicLoop(),
        postproc.RewriteParallelVectorizeUnroll(),
        postproc.RewriteReductionBlock(),
        *([postproc.RewriteTensorize(vectorize_init_loop=True)] if tensorize else []),
        postproc.RewriteLayout(),
        pack_inside(),
    ]


def _inline(strict: bool) -> Any:
    """Producers into consumers: only cheap ones that are read in the order of their writing, or all."""
    from tvm.s_tir.meta_schedule.schedule_rule import AutoInline

    return AutoInline(
        into_producer=False,
        into_consumer=True,
        inline_const_tensor=True,
        disallow_if_then_else=strict,
        require_injective=strict,
        require_ordered=strict,
        disallow_op=["tirx.exp"] if strict else None,
    )


def _annotate(max_vectorize_extent: int) -> Any:
    from tvm.s_tir.meta_schedule.schedule_rule import ParallelizeVectorizeUnroll

    return ParallelizeVectorizeUnroll(
        max_jobs_per_core=16,
        max_vectorize_extent=max_vectorize_extent,
        unroll_max_steps=[0, 16, 64, 512],
        unroll_explicit=True,
    )
