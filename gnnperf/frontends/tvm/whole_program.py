"""A program of several tasks as it runs: its tasks' functions, scheduled or not, linked and compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from gnnperf.frontends.tvm.blocks import has_root
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.tasks import TvmTask
from gnnperf.frontends.tvm.torch_runtime import register

MAIN, PREPARE, PACK = "main", "main_transform_params", "main_pack_params"
"""Of a program: what runs; what brings weights, once, before it runs, into the form that its functions take;
and then into that which its schedules take."""


@dataclass(frozen=True)
class WholeProgram:
    """A relax program with nothing scheduled, and the tasks that it is split into.

    module: an IRModule with a relax function `main` of inputs and weights, and perhaps one that prepares the
    weights. weights: as the program was saved with them. sites: task by function of the module. kept:
    operators that PyTorch runs.
    """

    module: Any
    target: Any
    weights: Sequence[NDArray[Any]] = ()
    tasks: Sequence[TvmTask] = ()
    sites: Mapping[str, str] = field(default_factory=dict)
    kept: Sequence[str] = ()

    @property
    def computes(self) -> bool:
        """Whether TVM compiles any loops of it."""
        from tvm.tirx import PrimFunc

        return any(isinstance(function, PrimFunc) for function in self.module.functions.values())

    def linked(self, scheduled: Mapping[str, Any]) -> Any:
        """The module with the functions of some tasks scheduled, and what these need of weights in `PACK`.
        scheduled: IRModules by the task's name."""
        tvm = import_tvm()
        functions = {}
        for variable, function in self.module.functions.items():
            chosen = scheduled.get(self.sites.get(variable.name_hint, ""))
            if chosen is not None:
                function = chosen["main"].without_attr("global_symbol")
            functions[variable] = function
        module = tvm.IRModule(functions, attrs=self.module.attrs)
        return _packed(module) if scheduled and PREPARE in _by_name(module) else module

    def compiled(self, scheduled: Mapping[str, Any]) -> Compiled:
        """What `linked` gives, for relax's virtual machine."""
        tvm = import_tvm()
        module = self.linked(scheduled)
        preparing = [name for name in (PREPARE, PACK) if name in _by_name(module)]
        return Compiled(tvm.compile(module, self.target), preparing, self.weights, bool(self.kept))


@dataclass(frozen=True)
class Compiled:
    """executable: of relax's virtual machine. preparing: its functions that bring weights into the form that
    `main` takes them in, in this order. weights: as the program was saved with them."""

    executable: Any
    preparing: Sequence[str]
    weights: Sequence[NDArray[Any]]
    calls_torch: bool = False

    def machine(self) -> tuple[Any, list[Any]]:
        """A virtual machine that can run `main`, and the weights that this takes."""
        tvm = import_tvm()
        if self.calls_torch:
            register()
        machine = tvm.relax.VirtualMachine(self.executable, tvm.cpu())
        weights = [tvm.runtime.tensor(weight) for weight in self.weights]
        for name in self.preparing:
            weights = list(machine[name](tuple(weights)))
        return machine, weights


def _packed(module: Any) -> Any:
    """The module with what its schedules do to weights alone in `PACK`."""
    tvm = import_tvm()
    passes = tvm.relax.transform
    known = _by_name(module)
    others = {v: _rooted(f) for v, f in module.functions.items() if v.name_hint != PREPARE}
    split = passes.SplitLayoutRewritePreproc()(tvm.IRModule(others, attrs=module.attrs))
    lifted = passes.LiftTransformParams()(split)
    made = _by_name(lifted)
    functions = {v: f for v, f in lifted.functions.items() if v.name_hint != PREPARE}
    result = tvm.IRModule({**others, **functions, known[PREPARE]: module[PREPARE]}, attrs=module.attrs)
    result[PACK] = lifted[made[PREPARE]].with_attr("global_symbol", PACK)
    return passes.DeadCodeElimination([MAIN, PREPARE, PACK])(result)  # drops what still packs for itself


def _rooted(function: Any) -> Any:
    """The function, with a block around all of it: one that is a block itself TVM cannot look through."""
    tvm = import_tvm()
    if not isinstance(function, tvm.tirx.PrimFunc) or has_root(function):
        return function
    from tvm.s_tir import SBlock, SBlockRealize

    return function.with_body(SBlockRealize([], True, SBlock([], [], [], "root", function.body)))


def _by_name(module: Any) -> dict[str, Any]:
    """GlobalVars."""
    return {variable.name_hint: variable for variable in module.functions}
