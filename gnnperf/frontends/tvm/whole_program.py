"""A program of several tasks as it runs: its tasks' functions, scheduled or not, linked and compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.tasks import TvmTask

MAIN, PREPARE = "main", "main_transform_params"
"""Of a program: what runs; what brings weights into the form that it takes them in, once, before it runs."""


@dataclass(frozen=True)
class WholeProgram:
    """A relax program with nothing scheduled, and the tasks that it is split into.

    module: an IRModule with a relax function `main` of inputs and weights, and perhaps one that prepares the
    weights. weights: as the program was saved with them. sites: task by function of the module.
    """

    module: Any
    target: Any
    weights: Sequence[NDArray[Any]] = ()
    tasks: Sequence[TvmTask] = ()
    sites: Mapping[str, str] = field(default_factory=dict)

    @property
    def prepares(self) -> bool:
        """Whether there is a function that prepares the weights."""
        return any(variable.name_hint == PREPARE for variable in self.module.functions)

    def linked(self, scheduled: Mapping[str, Any]) -> Any:
        """The module with the functions of some tasks scheduled. scheduled: IRModules by the task's name."""
        tvm = import_tvm()
        functions = {}
        for variable, function in self.module.functions.items():
            chosen = scheduled.get(self.sites.get(variable.name_hint, ""))
            if chosen is not None:
                function = chosen["main"].with_attr("global_symbol", variable.name_hint)
            functions[variable] = function
        return tvm.IRModule(functions, attrs=self.module.attrs)

    def compiled(self, scheduled: Mapping[str, Any]) -> Any:
        """An executable of relax's virtual machine, of what `linked` gives."""
        tvm = import_tvm()
        from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

        module = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(self.linked(scheduled))
        return tvm.compile(module, self.target)

    def machine(self, executable: Any) -> tuple[Any, list[Any]]:
        """A virtual machine that can run `main`, and the weights in the form that it takes them in."""
        tvm = import_tvm()
        machine = tvm.relax.VirtualMachine(executable, tvm.cpu())
        weights = [tvm.runtime.tensor(weight) for weight in self.weights]
        if self.prepares:
            weights = list(machine[PREPARE](tuple(weights)))
        return machine, weights
