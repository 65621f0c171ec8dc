"""Operators that touch every element once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from gnnperf.frontends.operators.operator import (
    BINARY,
    Epilogue,
    Function,
    Operator,
    apply,
    array,
    at,
    epilogue_of,
    loops,
)
from gnnperf.graph.vocabulary import PRECISIONS, element_bytes
from gnnperf.graph.workload import Workload
from gnnperf.nests import Buffer, Const, Expr, LoopNest


@dataclass(frozen=True)
class Elementwise(Operator):
    """`function` of `tensors` (1 or 2) inputs of `elements` values; a function of two with one tensor has a
    number for the second."""

    function: Function
    elements: int
    tensors: int = 1
    epilogue: tuple[Epilogue, ...] = ()

    family: ClassVar[str] = "elementwise"

    def fp32_nest(self) -> LoopNest:
        buffers = {"x": array("x", self.elements), "y": array("y", self.elements)}
        other: Expr | None = None
        if self.tensors == 2:
            buffers["z"] = array("z", self.elements)
            other = at("z", "e")
        elif self.function in BINARY:
            other = Const(3.0)
        value = apply(self.function, at("x", "e"), other)
        write = epilogue_of(value, self.epilogue, buffers, at("y", "e"), (self.elements,))
        return LoopNest(self.function, buffers, (loops([("e", self.elements)], write),))


@dataclass(frozen=True)
class Embedding(Operator):
    """`rows` rows of `width` values, gathered from a table of `vocabulary` rows."""

    rows: int
    width: int
    vocabulary: int

    family: ClassVar[str] = "embedding"

    def workload(self) -> Workload:
        """Of the table, no more rows are read than are asked for."""
        row = self.width * element_bytes(PRECISIONS[self.dtype])
        return replace(super().workload(), read_bytes=8.0 * self.rows + row * min(self.rows, self.vocabulary))

    def fp32_nest(self) -> LoopNest:
        buffers = {
            "table": array("table", self.vocabulary, self.width),
            "index": Buffer("index", "int64", (self.rows,), (1,)),
            "y": array("y", self.rows, self.width),
        }
        gathered = at("table", at("index", "r"), "c")
        write = epilogue_of(gathered, (), buffers, at("y", "r", "c"), (self.rows, self.width))
        return LoopNest("embedding", buffers, (loops([("r", self.rows), ("c", self.width)], write),))
