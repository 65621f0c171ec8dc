"""The frontends that come with gnnperf, for its entry points: nothing is imported before it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnnperf.errors import InputError
from gnnperf.frontends.base import Given, Skipped, is_of
from gnnperf.graph import ProgramGraph

if TYPE_CHECKING:
    from gnnperf.frontends.dace import DaceKernel
    from gnnperf.frontends.tvm.program import TvmProgram


class DaceFrontend:
    """`@dace.program`s, SDFGs, and saved SDFGs."""

    def claims(self, kernel: Any) -> bool:
        """Also every text that no other frontend claims: its own messages say what is wrong with it."""
        return isinstance(kernel, str | Path) or is_of(kernel, "dace")

    def load(self, kernel: Any, given: Given) -> DaceKernel:
        """See `load_kernel`. Raises InputError."""
        from gnnperf.frontends.dace import load_kernel

        if not isinstance(given.inputs, Mapping | str | None):
            raise InputError(f"inputs: expected a dict of arrays by name, got {type(given.inputs).__name__}")
        return load_kernel(kernel, given.sizes, given.inputs, given.seed or 0)


class TvmFrontend:
    """TVM functions and modules, saved modules, and torch programs, which TVM imports."""

    def claims(self, kernel: Any) -> bool:
        if isinstance(kernel, str | Path):
            from gnnperf.frontends.tvm.load import is_tvm_kernel

            return is_tvm_kernel(str(kernel))
        tensors = isinstance(kernel, list | tuple) and len(kernel) > 0 and is_of(kernel[0], "tvm")
        return tensors or is_of(kernel, "tvm", "torch")

    def load(self, kernel: Any, given: Given) -> TvmProgram:
        """See `tvm_program`. Raises InputError."""
        from gnnperf.frontends.tvm.program import tvm_program

        return tvm_program(kernel, given)


class OperatorFrontend:
    """Operators of frameworks, by name and sizes: "linear:M=512,N=1024,K=768"."""

    def claims(self, kernel: Any) -> bool:
        if not isinstance(kernel, str):
            return False
        from gnnperf.frontends.operators import is_operator

        return is_operator(kernel)

    def load(self, kernel: Any, given: Given) -> UnscheduledProgram:
        """See `parse_operator`. Raises InputError."""
        from gnnperf.frontends.operators import parse_operator

        given.refuse("an operator", "sizes", "inputs", "seed")
        return UnscheduledProgram(kernel, "operators", parse_operator(kernel).graph())


class GpuKernelFrontend:
    """Tunable GPU kernels, by the name or the file of their description, with a configuration or without."""

    def claims(self, kernel: Any) -> bool:
        if not isinstance(kernel, str):
            return False
        from gnnperf.frontends.gpu_kernels import is_tunable

        return is_tunable(kernel)

    def load(self, kernel: Any, given: Given) -> UnscheduledProgram:
        """See `parse_configuration`. Raises InputError."""
        from gnnperf.frontends.gpu_kernels import parse_configuration, scheduled_graph

        given.refuse("a tunable kernel", "sizes", "inputs", "seed")
        description, configuration = parse_configuration(kernel)
        graph = scheduled_graph(description, configuration)
        return UnscheduledProgram(description.name, "gpu_kernels", graph, "configuration")


@dataclass(frozen=True)
class UnscheduledProgram:
    """A program that is its only task, and that nothing here runs: it is embedded, and predicted for GPUs."""

    name: str
    frontend: str
    graph: ProgramGraph
    schedule_kind: str = ""
    calls: int | None = 1
    objection: str | None = None
    skipped: Sequence[Skipped] = ()
    notes: Sequence[str] = ()

    @property
    def tasks(self) -> Sequence[UnscheduledProgram]:
        return (self,)
