"""Which tasks can be tuned: those that can be translated and verified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnnperf.frontends.tvm.translate import translate
from gnnperf.nests.analysis import written

if TYPE_CHECKING:
    from gnnperf.frontends.tvm.tasks import TvmTask


def objection_to(task: TvmTask) -> str | None:
    """Why a task is left as it is; None where it can be tuned."""
    if task.unsupported is not None:
        return task.unsupported
    program = translate(task.function)
    names = {name for node in program.body for name in written(node)}
    results = [name for name in program.parameters if name in names]
    if results != [program.parameters[-1]]:
        return f"its results are {', '.join(results) or 'none'}: expected one, the last of its parameters"
    if any(int(extent) == 0 for parameter in task.function.params for extent in parameter.shape):
        return "it has an array without elements"
    if not task.nest.has_loops:
        return "it has no loop"
    return None
