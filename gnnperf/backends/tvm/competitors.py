"""PyTorch beside tasks (`--beside torch`), as the operator that a task is, and beside exported programs."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import poisoned, solved
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.workloads import TvmWorkload
from gnnperf.frontends.tvm.workloads.recognise import recognised
from gnnperf.measure.competitors import Effort, PythonFunction, start
from gnnperf.measure.confine import available_threads
from gnnperf.measure.interleaved import Turn
from gnnperf.measure.problem import OUTPUT, Problem
from gnnperf.measure.supervisor import Failed

TORCH, COMPILED = "torch", "torch-compile"
OPERATORS = Path(__file__).with_name("torch_operators.py")
PROGRAM = Path(__file__).with_name("torch_program.py")


@dataclass(frozen=True)
class Torch:
    """The operators that tasks are."""

    target: Any
    name: str = TORCH

    def play(self, task: TvmTask, stack: ExitStack) -> Turn:
        """See `Competitor`."""
        workload = recognised(task)
        if workload is None:
            raise Failed("not_applicable", "has no operator that is known to compute just this")
        return torch_operator(workload, task.module, self.target, stack)


def torch_operator(workload: TvmWorkload, module: Any, target: Any, stack: ExitStack) -> Turn:
    """Start the process that runs PyTorch's operator of a workload, until the stack closes. Raises Failed.

    module: the workload's function, or one that should compute the same: what PyTorch is verified against.
    """
    problem = solved(module, build_kernel(module, target))
    updated = {**problem.inputs, OUTPUT: poisoned(problem.reference[OUTPUT]).numpy()}
    name = ("one", "two", "three")[len(problem.inputs) - 1]
    about = {"kind": workload.kind, "params": dict(workload.params)}
    return _started(replace(problem, inputs=updated), PythonFunction(OPERATORS, name, "torch", about), stack)


def torch_program(path: Path, stack: ExitStack, how: str = TORCH) -> Turn:
    """Start the process that runs an exported program (`.pt2`) on the example inputs that it was exported
    with, until the stack closes. how: `TORCH`, eagerly, or `COMPILED`, by torch.compile. Raises Failed."""
    name = "run" if how == TORCH else "run_compiled"
    function = PythonFunction(PROGRAM, name, "torch", {"path": str(path.resolve())})
    return _started(Problem({}, [], {}), function, stack)


def _started(problem: Problem, function: PythonFunction, stack: ExitStack) -> Turn:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gnnperf-torch-"))
    player = start(problem, Effort(), available_threads(), folder, function)
    return stack.enter_context(closing(player)).turn
