"""MetaSchedule's design spaces of a workload for NVIDIA GPUs, sampled without one."""

from __future__ import annotations

from typing import Any

from gnnperf.frontends.tvm.spaces import DesignSpace

CUDA_CORES, TENSOR_CORES = "cuda", "cuda-tensorcore"
ATTEMPTS = 100
"""Samples per schedule wanted: of most operators few fit the threads and the memory of a block."""

_TENSORIZED = "meta_schedule.auto_tensorize"


def cuda_spaces(module: Any, target: Any) -> dict[str, DesignSpace]:
    """By its name: the space of MetaSchedule's rules, and, where the module multiplies matrices of float16
    into float32, that of schedules on tensor cores.

    Samples of both passed the check of the code against the limits of the target (VerifyGPUCode).
    """
    spaces = {CUDA_CORES: DesignSpace(module, target, cuda_generator())}
    if any(str(parameter.dtype) == "float16" for parameter in module["main"].params):
        space = DesignSpace(module, target, tensor_core_generator())
        space.designs = [design for design in space.designs if _TENSORIZED in str(design.trace)]
        if space.designs:
            spaces[TENSOR_CORES] = space
    return spaces


def cuda_generator() -> Any:
    """MetaSchedule's own rules for GPUs."""
    from tvm.s_tir import meta_schedule as ms

    return ms.space_generator.PostOrderApply(sch_rules="cuda", postprocs="cuda", mutator_probs="cuda")


def tensor_core_generator() -> Any:
    """MetaSchedule's rules for tensor cores (WMMA), with sums in float32, and those for GPUs after them."""
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.schedule_rule import MultiLevelTilingTensorCore, ReuseType
    from tvm.s_tir.tensor_intrin.cuda import get_wmma_intrin_group

    half: dict[str, Any] = dict(
        load_scope="shared", store_scope="shared", in_dtype="float16", out_dtype="float32"
    )
    groups = [get_wmma_intrin_group(**half, trans_b=transposed) for transposed in (False, True)]
    rule = MultiLevelTilingTensorCore(
        intrin_groups=groups,
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 4, 8, 16],
        reuse_read=ReuseType(req="must", levels=[4], scope="shared"),
        reuse_write=ReuseType(req="must", levels=[2], scope="shared"),
        use_software_pipeline=False,
    )
    return ms.space_generator.PostOrderApply(
        sch_rules=[rule, *ms.ScheduleRule.create("cuda")],
        postprocs="cuda-tensorcore",
        mutator_probs="cuda-tensorcore",
    )
