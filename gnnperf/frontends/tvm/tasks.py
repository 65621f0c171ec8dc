"""Tasks of a TVM kernel: functions that are tuned one by one, each as one loop nest."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from gnnperf.errors import UnsupportedConstruct
from gnnperf.frontends.tvm.blocks import has_root
from gnnperf.frontends.tvm.fast_import import import_tvm
from gnnperf.frontends.tvm.translate import TirProgram, translate
from gnnperf.frontends.tvm.weights import has_constant_weights
from gnnperf.graph import ProgramGraph
from gnnperf.nests import LoopNest, nest_graph, normalise
from gnnperf.nests.analysis import accesses, read, written
from gnnperf.nests.names import free_name

_VERIFIED = {"bool", "bfloat16", "float16", "float32", "float64"} | {
    f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)
}
"""Types of arrays whose values NumPy makes and compares."""


@dataclass(frozen=True)
class TvmTask:
    """One function of a kernel, with nothing scheduled.

    module: an IRModule whose only function is `main`. calls: how often the kernel runs it.
    """

    name: str
    module: Any
    calls: int = 1

    @property
    def function(self) -> Any:
        """The PrimFunc."""
        return self.module["main"]

    @property
    def constant_weights(self) -> bool:
        """Whether it has weights that are packed once, apart from what is timed."""
        return has_constant_weights(self.function)

    @cached_property
    def nest(self) -> LoopNest:
        """All of the task as one program in normal form: what one trace schedules."""
        return whole_nest(translate(self.function), self.name)

    @property
    def trip_counts(self) -> Mapping[str, float]:
        """Of loops whose bounds depend on data: none was measured."""
        return {}

    @cached_property
    def graph(self) -> ProgramGraph:
        """The program graph of `nest`."""
        return nest_graph(self.nest)

    @property
    def objection(self) -> str | None:
        """Why the task is left as it is; None where it can be tuned: translated and verified."""
        if self.unsupported is not None:
            return self.unsupported
        if unknown := sorted({str(parameter.dtype) for parameter in self.function.params} - _VERIFIED):
            return f"it has arrays of {', '.join(unknown)}, whose values cannot be verified"
        uses = uses_of(self.function)
        if not any(use.written for use in uses):
            return "it has no results: expected it to write to one of its parameters"
        if self.constant_weights and [use.written for use in uses].index(True) < len(uses) - 1:
            return "its weights are constant: expected one result, the last of its parameters"
        if any(int(extent) == 0 for parameter in self.function.params for extent in parameter.shape):
            return "it has an array without elements"
        if not has_root(self.function):
            return "its loops are not around blocks but inside of one, which TVM cannot schedule"
        if not self.nest.has_loops:
            return "it has no loop"
        return None

    @property
    def unsupported(self) -> str | None:
        """Why the task has no graph, if so."""
        try:
            self.nest  # noqa: B018
        except UnsupportedConstruct as reason:
            return str(reason)
        return None


class Use(NamedTuple):
    """What a function does with the values of a parameter. read: with those that it is called with."""

    read: bool
    written: bool


def uses_of(function: Any) -> list[Use]:
    """Of every parameter. Of a function that has no graph, the last is taken for the only result."""
    try:
        program = translate(function)
    except UnsupportedConstruct:
        last = len(function.params) - 1
        return [Use(n < last, n == last) for n in range(last + 1)]
    changed = {name for node in program.body for name in written(node)}
    needed = {name for node in program.body for name in read(node)}
    return [Use(name in needed or name not in changed, name in changed) for name in program.parameters]


def single(function: Any) -> Any:
    """An IRModule whose only function, `main`, is a PrimFunc."""
    tvm = import_tvm()
    return tvm.IRModule({"main": function.with_attr("global_symbol", "main")})


def free_identifier(name: str, taken: Container[str]) -> str:
    """A name of a task: one that functions can have, and no other has."""
    return free_name(re.sub(r"\W", "_", name), taken)


def whole_nest(program: TirProgram, name: str) -> LoopNest:
    """A function as one unit in normal form."""
    names = {access.load.buffer for node in program.body for access in accesses(node)}
    buffers = {k: replace(program.buffers[k], transient=k not in program.parameters) for k in sorted(names)}
    return normalise(LoopNest(name, buffers, program.body))
