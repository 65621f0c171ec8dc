"""TVM functions cut into loop nests, as the frontend for DaCe cuts kernels: what the two have in common."""

from __future__ import annotations

from dataclasses import replace

from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.tasks import whole_nest
from gnnperf.frontends.tvm.translate import translate
from gnnperf.nests import LoopNest, partition
from gnnperf.nests.analysis import accesses


def units_of(task: TvmTask) -> list[LoopNest]:
    """The units of a task, each in normal form."""
    program = translate(task.function)
    found = []
    for unit in partition([(node,) for node in program.body], program.buffers, set(program.parameters)):
        others = [node for n, node in enumerate(program.body) if n not in unit]
        outside = {access.load.buffer for node in others for access in accesses(node)}
        body = tuple(program.body[n] for n in unit)
        found.append(replace(program, body=body, parameters=(*program.parameters, *sorted(outside))))
    return [whole_nest(one, f"{task.name}_{number}") for number, one in enumerate(found)]
