"""In what context traces are applied to a function: with which rules, and with which post-processing."""

from __future__ import annotations

from typing import Any

from gnnperf.frontends.tvm.spaces import multiplies_bytes, plain_generator, vnni_generator


def context_of(module: Any, target: Any) -> Any:
    """The `TuneContext` of an unscheduled module: with the rules for a tensor instruction where the function
    multiplies what the instruction does and the target has it, else with MetaSchedule's own. Its choices are
    the same every time."""
    from tvm.s_tir import meta_schedule as ms

    return ms.TuneContext(
        mod=module,
        target=target,
        space_generator=vnni_generator() if multiplies_bytes(module, target) else plain_generator(),
        num_threads=1,
        rand_state=1,
    )
