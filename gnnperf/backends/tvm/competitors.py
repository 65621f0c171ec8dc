"""PyTorch beside tasks (`--beside torch`), as the operator that a task is, and beside exported programs."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.backends.tvm.kernel import build_kernel
from gnnperf.backends.tvm.problem import Problem
from gnnperf.errors import MeasureError
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.workloads import Workload
from gnnperf.frontends.tvm.workloads.recognise import recognised
from gnnperf.measure.competitors import Effort, Failed, PythonFunction, Starter, Turn
from gnnperf.measure.competitors import Problem as SharedProblem
from gnnperf.measure.confine import available_threads

TORCH = "torch"
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
        return _guarded(torch_operator(workload, task.module, self.target, stack))


def torch_operator(workload: Workload, module: Any, target: Any, stack: ExitStack) -> Turn:
    """Start the process that runs PyTorch's operator of a workload, until the stack closes. Raises Failed.

    module: the workload's function, or one that should compute the same: what PyTorch is verified against.
    """
    problem = Problem.random(module)
    problem.solve(module, target, build_kernel)
    names = [f"x{n}" for n in range(len(problem.inputs))]
    shared = SharedProblem(
        data={**dict(zip(names, problem.inputs, strict=True)), "out": problem.output().numpy()},
        symbols={"kind": workload.kind, "params": dict(workload.params)},  # type: ignore[dict-item]
        outputs=["out"],
        reference={"out": problem.reference},
        reduction_length=problem.tolerated_length(),
    )
    return _started(shared, OPERATORS, ("one", "two", "three")[len(names) - 1], stack)


def torch_program(path: Path, stack: ExitStack) -> Turn:
    """Start the process that runs an exported program (`.pt2`), eagerly, on the example inputs that it was
    exported with, until the stack closes. Raises Failed."""
    problem = SharedProblem(
        data={},
        symbols={"path": str(path.resolve())},  # type: ignore[dict-item]
        outputs=[],
        reference={},
    )
    return _guarded(_started(problem, PROGRAM, "run", stack))


def _started(problem: SharedProblem, file: Path, function: str, stack: ExitStack) -> Turn:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gnnperf-torch-"))
    start = Starter(problem, Effort(), available_threads(), folder)
    return stack.enter_context(start(PythonFunction(file, function, "torch"))).turn


def _guarded(turn: Turn) -> Turn:
    """What was verified and fails in its turn, all the same, ends the measurement."""

    def guarded() -> float:
        try:
            return turn()
        except Failed as failure:
            raise MeasureError(f"PyTorch: {failure.detail}") from None

    return guarded
