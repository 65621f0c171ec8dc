"""PyTorch beside tasks (`--beside torch`), as the operator that a task is, and beside exported programs."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnperf.errors import MeasureError
from gnnperf.evaluation.tensor.contenders import TORCH, torch_turn
from gnnperf.frontends.tvm import TvmTask
from gnnperf.frontends.tvm.workloads.recognise import recognised
from gnnperf.measure.competitors import Effort, Failed, PythonFunction, Starter
from gnnperf.measure.competitors import Problem as SharedProblem
from gnnperf.measure.confine import available_threads
from gnnperf.retrieval.tensor.beside import NoPlayer, Turn

PROGRAM = Path(__file__).with_name("torch_program.py")


@dataclass(frozen=True)
class Torch:
    """The operators that tasks are."""

    target: Any
    name: str = TORCH

    def play(self, task: TvmTask, stack: ExitStack) -> Turn:
        """See `Library`."""
        workload = recognised(task)
        if workload is None:
            raise NoPlayer("not_applicable", "has no operator that is known to compute just this")
        try:
            return _guarded(torch_turn(stack, workload, task.module, self.target))
        except Failed as failure:
            raise NoPlayer(*failure.args) from None


def torch_program(path: Path, stack: ExitStack) -> Turn:
    """Start the process that runs an exported program (`.pt2`), eagerly, on the example inputs that it was
    exported with, until the stack closes. Raises NoPlayer."""
    problem = SharedProblem(
        data={},
        symbols={"path": str(path.resolve())},  # type: ignore[dict-item]
        outputs=[],
        reference={},
    )
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gnnperf-torch-"))
    start = Starter(problem, Effort(), available_threads(), folder)
    try:
        player = stack.enter_context(start(PythonFunction(PROGRAM, "run", "torch")))
    except Failed as failure:
        raise NoPlayer(*failure.args) from None
    return _guarded(player.turn)


def _guarded(turn: Turn) -> Turn:
    """What was verified and fails in its turn, all the same, ends the measurement."""

    def guarded() -> float:
        try:
            return turn()
        except Failed as failure:
            raise MeasureError(f"PyTorch: {failure.args[1]}") from None

    return guarded
