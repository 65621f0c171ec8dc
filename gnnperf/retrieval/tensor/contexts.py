"""In what context traces are applied to a function: with which rules, and with which post-processing."""

from __future__ import annotations

from typing import Any

from gnnperf.frontends.tvm.target import has_vnni
from gnnperf.tuning.tensor.spaces import plain_generator, vnni_generator

BYTES = {"uint8", "int8"}
"""Types of the operands of VNNI's dot product."""


def context_of(module: Any, target: Any) -> Any:
    """The `TuneContext` of an unscheduled module: with the rules for a tensor instruction where the function
    multiplies what the instruction does and the target has it, else with MetaSchedule's own."""
    from tvm.s_tir import meta_schedule as ms

    types = {str(parameter.dtype) for parameter in module["main"].params}
    tensorized = types >= BYTES and has_vnni(str(target.attrs["mcpu"]))
    return ms.TuneContext(
        mod=module,
        target=target,
        space_generator=vnni_generator() if tensorized else plain_generator(),
        num_threads=1,
    )
