"""Matrix products and convolutions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from gnnperf.errors import InputError
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
from gnnperf.frontends.operators.pointwise import Elementwise
from gnnperf.frontends.operators.rows import Softmax
from gnnperf.graph.workload import Workload
from gnnperf.nests import Buffer, Const, LoopNest, Op, Statement


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
    """Convolution of [batch, in_channels, *size] in one to three dimensions of space.

    size, kernel, stride, padding, dilation: by dimension; without a dilation, taps are next to each other.
    Raises InputError where `groups` does not divide both channels, and where no kernel fits the input.
    """

    batch: int
    in_channels: int
    out_channels: int
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...] = ()
    groups: int = 1
    epilogue: tuple[Epilogue, ...] = ()

    family: ClassVar[str] = "convolution"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise InputError(
                f"convolution: expected groups that divide {self.in_channels} and {self.out_channels} "
                f"channels, got {self.groups}"
            )
        if min(self.out_size) < 1:
            raise InputError(
                f"convolution: expected a kernel that fits the padded input {self._padded}, got {self.kernel}"
                f"{f' with dilation {self.dilation}' if self.dilation else ''}"
            )

    @property
    def out_size(self) -> tuple[int, ...]:
        return tuple(
            (wide - dilation * (kernel - 1) - 1) // stride + 1
            for wide, kernel, stride, dilation in zip(
                self._padded, self.kernel, self.stride, self._dilation, strict=True
            )
        )

    @property
    def _padded(self) -> tuple[int, ...]:
        return tuple(own + 2 * around for own, around in zip(self.size, self.padding, strict=True))

    @property
    def _dilation(self) -> tuple[int, ...]:
        return self.dilation or (1,) * len(self.size)

    def workload(self) -> Workload:
        """A product, but of depthwise ones: their kernels give each result to a thread, and memory rules."""
        found = super().workload()
        if self.groups < self.out_channels:
            return found
        return as_map(found, self.batch * self.out_channels * math.prod(self.out_size))

    def fp32_nest(self) -> LoopNest:
        """The input is the padded one: halos are read like anything else."""
        inner, outer = self.in_channels // self.groups, self.out_channels // self.groups
        shape = (self.batch, self.groups, outer, *self.out_size)
        buffers = {
            "x": array("x", self.batch, self.groups, inner, *self._padded),
            "w": array("w", self.groups, outer, inner, *self.kernel),
            "y": array("y", *shape),
            "sum": scalar("sum"),
        }
        places, taps = (tuple(f"{name}{axis}" for axis in range(len(self.size))) for name in "pt")
        read = windows(places, taps, self.stride, self._dilation)
        product = Op("mul", (at("x", "i", "g", "c", *read), at("w", "g", "o", "c", *taps)))
        around = [("c", inner), *zip(taps, self.kernel, strict=True)]
        total = loops(around, Statement(at("sum"), product, "add", Const(0.0)))
        names = ("i", "g", "o", *places)
        write = epilogue_of(at("sum"), self.epilogue, buffers, at("y", *names), shape)
        return LoopNest("convolution", buffers, (loops(list(zip(names, shape, strict=True)), total, write),))


@dataclass(frozen=True)
class FusedAttention(Operator):
    """`batch` (times heads) attentions of `queries` rows to `keys` rows of `width` values, in one kernel: the
    scores never reach memory."""

    batch: int
    queries: int
    keys: int
    width: int

    family: ClassVar[str] = "attention"

    def unfused(self) -> list[Operator]:
        """The four kernels that the reference implementation launches instead."""
        batch, queries, keys, dtype = self.batch, self.queries, self.keys, self.dtype
        return [
            MatMul(queries, keys, self.width, batch=batch, dtype=dtype),
            Elementwise("mul", batch * queries * keys, dtype=dtype),
            Softmax(batch * queries, keys, dtype=dtype),
            MatMul(queries, self.width, keys, batch=batch, dtype=dtype),
        ]

    def workload(self) -> Workload:
        """Two products of one size, as one with twice the reduction."""
        flops = 4.0 * self.batch * self.queries * self.keys * self.width
        one = as_map(super().workload(), 1)
        m, n, k = float(self.queries), float(self.width), 2.0 * self.keys
        return replace(one, kind="contraction", flops=flops, batch=float(self.batch), m=m, n=n, k=k)

    def fp32_nest(self) -> LoopNest:
        buffers = {
            "q": array("q", self.batch, self.queries, self.width),
            "k": array("k", self.batch, self.keys, self.width),
            "v": array("v", self.batch, self.keys, self.width),
            "y": array("y", self.batch, self.queries, self.width),
            "score": Buffer("score", "float32", (self.keys,), (1,), transient=True, scope="local"),
            **{name: scalar(name) for name in ("top", "sum")},
        }
        keys, score = ("j", self.keys), at("score", "j")
        product = Op("mul", (at("q", "i", "r", "l"), at("k", "i", "j", "l")))
        weight = Op("exp", (Op("sub", (score, at("top"))),))
        result = Op("div", (Op("mul", (weight, at("v", "i", "j", "d"))), at("sum")))
        row = (
            loops([keys, ("l", self.width)], Statement(score, product, "add", Const(0.0))),
            loops([keys], Statement(at("top"), score, "max", Const(float("-inf")))),
            loops([keys], Statement(at("sum"), weight, "add", Const(0.0))),
            loops([("d", self.width), keys], Statement(at("y", "i", "r", "d"), result, "add", Const(0.0))),
        )
        return LoopNest("attention", buffers, (loops([("i", self.batch), ("r", self.queries)], *row),))
