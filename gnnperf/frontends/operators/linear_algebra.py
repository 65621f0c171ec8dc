"""Matrix products and convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gnnperf.frontends.operators.operator import Epilogue, Operator, array, at, epilogue_of, loops, scalar
from gnnperf.nests import Const, LoopNest, Op, Statement, Symbol


@dataclass(frozen=True)
class MatMul(Operator):
    """`batch` products [m, k] x [k, n]; of a `linear` layer the second is stored as [n, k], and shared.

    batch, m, n, k: sizes. linear: whether it is `x @ w.T` of one weight matrix.
    """

    m: int
    n: int
    k: int
    batch: int = 1
    linear: bool = False
    epilogue: tuple[Epilogue, ...] = ()

    family: ClassVar[str] = "matmul"

    def fp32_nest(self) -> LoopNest:
        buffers = {
            "a": array("a", self.batch, self.m, self.k),
            "b": array("b", self.n, self.k) if self.linear else array("b", self.batch, self.k, self.n),
            "c": array("c", self.batch, self.m, self.n),
            "sum": scalar("sum"),
        }
        second = at("b", "j", "l") if self.linear else at("b", "i", "l", "j")
        product = Op("mul", (at("a", "i", "r", "l"), second))
        total = loops([("l", self.k)], Statement(at("sum"), product, "add", Const(0.0)))
        shape = (self.batch, self.m, self.n)
        write = epilogue_of(at("sum"), self.epilogue, buffers, at("c", "i", "r", "j"), shape)
        return LoopNest(
            "linear" if self.linear else "bmm",
            buffers,
            (loops([("i", self.batch), ("r", self.m), ("j", self.n)], total, write),),
        )


@dataclass(frozen=True)
class Convolution(Operator):
    """2D convolution, [batch, in_channels, height, width] with square kernels of `kernel` x `kernel`."""

    batch: int
    in_channels: int
    out_channels: int
    height: int
    width: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    epilogue: tuple[Epilogue, ...] = ()

    family: ClassVar[str] = "convolution"

    @property
    def out_height(self) -> int:
        return (self.height + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def out_width(self) -> int:
        return (self.width + 2 * self.padding - self.kernel) // self.stride + 1

    def fp32_nest(self) -> LoopNest:
        """The input is the padded one: halos are read like anything else."""
        inner, outer = self.in_channels // self.groups, self.out_channels // self.groups
        tall, wide = self.height + 2 * self.padding, self.width + 2 * self.padding
        buffers = {
            "x": array("x", self.batch, self.groups, inner, tall, wide),
            "w": array("w", self.groups, outer, inner, self.kernel, self.kernel),
            "y": array("y", self.batch, self.groups, outer, self.out_height, self.out_width),
            "sum": scalar("sum"),
        }
        row, column = (
            Op("add", (Op("mul", (Const(self.stride), Symbol(place))), Symbol(tap)))
            for place, tap in (("h", "p"), ("v", "q"))
        )
        product = Op("mul", (at("x", "i", "g", "c", row, column), at("w", "g", "o", "c", "p", "q")))
        taps = [("c", inner), ("p", self.kernel), ("q", self.kernel)]
        total = loops(taps, Statement(at("sum"), product, "add", Const(0.0)))
        shape = (self.batch, self.groups, outer, self.out_height, self.out_width)
        write = epilogue_of(at("sum"), self.epilogue, buffers, at("y", "i", "g", "o", "h", "v"), shape)
        names = zip(("i", "g", "o", "h", "v"), shape, strict=True)
        return LoopNest("convolution", buffers, (loops(list(names), total, write),))
