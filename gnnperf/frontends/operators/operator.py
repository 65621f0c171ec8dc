"""What every operator is: a loop nest, hence a program graph, hence a workload of a GPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar, Literal

from gnnperf.errors import InputError
from gnnperf.graph import ProgramGraph
from gnnperf.graph.vocabulary import PRECISIONS, check_precision
from gnnperf.graph.workload import Workload, workload_of
from gnnperf.nests import Buffer, Const, Expr, Load, Loop, LoopNest, Node, Op, Statement, Symbol, nest_graph
from gnnperf.nests.ir import row_major

Function = Literal[
    "add", "sub", "mul", "div", "pow", "max", "relu", "gelu", "silu", "sigmoid", "tanh", "exp", "sqrt", "neg",
    "abs", "log", "copy",
]  # fmt: skip

BINARY = frozenset(("add", "sub", "mul", "div", "pow", "max"))
"""Functions of two values."""

Epilogue = Literal["bias", "relu", "gelu", "silu", "sigmoid", "tanh", "scale", "add"]
"""What is done to a result before it is written: "bias" adds a vector along the last dimension, "add" a
tensor of the result's shape; the others are functions of one value, "scale" its multiple."""


@dataclass(frozen=True)
class Operator(ABC):
    """One launch of a kernel.

    epilogue: steps fused into it, in their order. dtype: of its tensors, one of PRECISIONS.
    Raises InputError for sizes below 1 and for an unknown dtype.
    """

    dtype: str = field(default="fp32", kw_only=True)

    family: ClassVar[str]
    """Operators that one library implements alike: "linear", "bmm", "softmax", ..."""

    def __post_init__(self) -> None:
        check_precision(self.dtype, self.family)
        for own in fields(self):
            value = getattr(self, own.name)
            least = 0 if own.name == "padding" else 1
            for size in value if own.type == "tuple[int, ...]" else (value,) if own.type == "int" else ():
                if size < least:
                    raise InputError(f"{self.family}: expected {own.name} of at least {least}, got {size}")

    @abstractmethod
    def fp32_nest(self) -> LoopNest:
        """Its loop nest, unscheduled, on fp32 tensors."""

    def nest(self) -> LoopNest:
        """Its loop nest, unscheduled. Tensors are stored as its dtype is; sums are those of fp32."""
        nest, stored = self.fp32_nest(), PRECISIONS[self.dtype]
        buffers = {
            name: replace(b, dtype=stored) if b.dtype == "float32" and b.scope == "global" else b
            for name, b in nest.buffers.items()
        }
        return replace(nest, buffers=buffers)

    def graph(self) -> ProgramGraph:
        """Its program graph."""
        return nest_graph(self.nest())

    def workload(self) -> Workload:
        """What a GPU has to do, read from its graph."""
        return workload_of(self.graph(), self.family, self.dtype)


def as_map(workload: Workload, results: int) -> Workload:
    """Of an operator with a thread for each of its short sums: memory counts, as if nothing were summed."""
    w = workload
    rest = Workload("map", w.flops, w.read_bytes, w.written_bytes, family=w.family, dtype=w.dtype)
    return replace(rest, rows=float(results))


# --------------------------------------------------------------------------- building nests


def array(name: str, *shape: int) -> Buffer:
    """A contiguous fp32 argument."""
    return Buffer(name, "float32", shape, row_major(shape))


def scalar(name: str) -> Buffer:
    """A register."""
    return Buffer(name, "float32", (), (), transient=True, scope="local")


def at(buffer: str, *iterators: str | Expr) -> Load:
    return Load(buffer, tuple(Symbol(i) if isinstance(i, str) else i for i in iterators))


def loops(extents: Sequence[tuple[str, int]], *body: Node) -> Loop:
    """Perfectly nested loops, the first outermost."""
    for iterator, extent in reversed(extents):
        body = (Loop(iterator, Const(0), Const(extent), body),)
    (outer,) = body
    assert isinstance(outer, Loop)
    return outer


def windows(
    places: Sequence[str], taps: Sequence[str], stride: Sequence[int], dilation: Sequence[int]
) -> list[Expr]:
    """The indices that windows at these places read, by dimension: `stride * place + dilation * tap`."""
    return [
        Op("add", (_times(s, Symbol(place)), _times(d, Symbol(tap))))
        for place, tap, s, d in zip(places, taps, stride, dilation, strict=True)
    ]


def _times(factor: int, of: Expr) -> Expr:
    return of if factor == 1 else Op("mul", (Const(factor), of))


def apply(function: Function | Epilogue, x: Expr, other: Expr | None = None) -> Expr:
    """A pointwise function of one value or of two."""
    one, half = Const(1.0), Const(0.5)
    if other is not None:
        return Op(function, (x, other))
    match function:
        case "relu":
            return Op("max", (x, Const(0.0)))
        case "sigmoid":
            return Op("div", (one, Op("add", (one, Op("exp", (Op("neg", (x,)),))))))
        case "silu":
            return Op("mul", (x, apply("sigmoid", x)))
        case "gelu":  # the approximation by tanh: the IR has no error function
            cubic = Op("add", (x, Op("mul", (Const(0.044715), Op("mul", (x, Op("mul", (x, x))))))))
            inner = Op("tanh", (Op("mul", (Const(0.7978845608), cubic)),))
            return Op("mul", (Op("mul", (half, x)), Op("add", (one, inner))))
        case "scale":
            return Op("mul", (x, half))
        case "copy":
            return x
        case _:
            return Op(function, (x,))


def epilogue_of(
    value: Expr, steps: Sequence[Epilogue], buffers: dict[str, Buffer], target: Load, shape: Sequence[int]
) -> Statement:
    """The statement that applies fused steps and writes the result; adds what they read to `buffers`."""
    for number, step in enumerate(steps):
        if step in ("bias", "add"):
            name = f"{step}{number}"
            vector = step == "bias"
            buffers[name] = array(name, *(shape[-1:] if vector else shape))
            value = Op("add", (value, Load(name, target.indices[-1:] if vector else target.indices)))
        else:
            value = apply(step, value)
    return Statement(target, value)
