"""Operators that reduce every row, and perhaps go over it again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnnperf.frontends.operators.operator import (
    Epilogue,
    Operator,
    array,
    as_map,
    at,
    epilogue_of,
    loops,
    scalar,
    windows,
)
from gnnperf.graph.workload import Workload
from gnnperf.nests import Const, LoopNest, Op, Statement


@dataclass(frozen=True)
class Softmax(Operator):
    """Softmax of `rows` rows of `columns` values: the maximum, the sum of exponentials, the quotients."""

    rows: int
    columns: int

    family: ClassVar[str] = "softmax"

    def fp32_nest(self) -> LoopNest:
        buffers = {name: array(name, self.rows, self.columns) for name in ("x", "y")}
        buffers |= {name: scalar(name) for name in ("top", "sum")}
        x, extent = at("x", "r", "c"), [("c", self.columns)]
        weight = Op("exp", (Op("sub", (x, at("top"))),))
        row = (
            loops(extent, Statement(at("top"), x, "max", Const(float("-inf")))),
            loops(extent, Statement(at("sum"), weight, "add", Const(0.0))),
            loops(extent, Statement(at("y", "r", "c"), Op("div", (weight, at("sum"))))),
        )
        return LoopNest("softmax", buffers, (loops([("r", self.rows)], *row),))


@dataclass(frozen=True)
class LayerNorm(Operator):
    """Layer normalisation of `rows` rows of `columns` values, with weight and bias."""

    rows: int
    columns: int

    family: ClassVar[str] = "layernorm"

    def fp32_nest(self) -> LoopNest:
        buffers = {name: array(name, self.rows, self.columns) for name in ("x", "y")}
        buffers |= {name: array(name, self.columns) for name in ("weight", "bias")}
        buffers |= {name: scalar(name) for name in ("sum", "squares", "mean", "scale")}
        x, columns = at("x", "r", "c"), Const(float(self.columns))
        moments = loops(
            [("c", self.columns)],
            Statement(at("sum"), x, "add", Const(0.0)),
            Statement(at("squares"), Op("mul", (x, x)), "add", Const(0.0)),
        )
        variance = Op("sub", (Op("div", (at("squares"), columns)), Op("mul", (at("mean"), at("mean")))))
        scaled = Op("mul", (Op("mul", (Op("sub", (x, at("mean"))), at("scale"))), at("weight", "c")))
        row = (
            moments,
            Statement(at("mean"), Op("div", (at("sum"), columns))),
            Statement(at("scale"), Op("div", (Const(1.0), Op("sqrt", (variance,))))),
            loops(
                [("c", self.columns)],
                Statement(at("y", "r", "c"), Op("add", (scaled, at("bias", "c")))),
            ),
        )
        return LoopNest("layer_norm", buffers, (loops([("r", self.rows)], *row),))


@dataclass(frozen=True)
class Reduction(Operator):
    """`rows` rows of `columns` values, each reduced to one."""

    function: Literal["add", "mul", "min", "max"]
    rows: int
    columns: int

    family: ClassVar[str] = "reduction"

    def fp32_nest(self) -> LoopNest:
        buffers = {"x": array("x", self.rows, self.columns), "y": array("y", self.rows)}
        start = {"add": 0.0, "mul": 1.0, "min": float("inf"), "max": float("-inf")}[self.function]
        combine = Statement(at("y", "r"), at("x", "r", "c"), self.function, Const(start))
        return LoopNest(
            f"reduce_{self.function}", buffers, (loops([("r", self.rows), ("c", self.columns)], combine),)
        )


@dataclass(frozen=True)
class Pooling(Operator):
    """Pooling of `planes` (batch times channels) images of `out_size` results each, in one to three
    dimensions.

    out_size, kernel, stride: by dimension.
    """

    function: Literal["add", "max"]
    planes: int
    out_size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    epilogue: tuple[Epilogue, ...] = ()

    family: ClassVar[str] = "pooling"

    def workload(self) -> Workload:
        return as_map(super().workload(), self.planes * math.prod(self.out_size))

    def fp32_nest(self) -> LoopNest:
        shape, axes = (self.planes, *self.out_size), range(len(self.out_size))
        read = [
            (extent - 1) * stride + kernel
            for extent, stride, kernel in zip(self.out_size, self.stride, self.kernel, strict=True)
        ]
        buffers = {"x": array("x", self.planes, *read), "y": array("y", *shape), "best": scalar("best")}
        places, taps = (tuple(f"{name}{axis}" for axis in axes) for name in "pt")
        value = at("x", "i", *windows(places, taps, self.stride, (1,) * len(axes)))
        start = Const(0.0 if self.function == "add" else float("-inf"))
        around = list(zip(taps, self.kernel, strict=True))
        total = loops(around, Statement(at("best"), value, self.function, start))
        names = ("i", *places)
        write = epilogue_of(at("best"), self.epilogue, buffers, at("y", *names), shape)
        nest = loops(list(zip(names, shape, strict=True)), total, write)
        return LoopNest(f"pool_{self.function}", buffers, (nest,))
