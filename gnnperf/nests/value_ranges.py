"""What the integers that a nest computes can be, at least and at most."""

from __future__ import annotations

import math
from collections import defaultdict
from math import inf

from gnnperf.nests.analysis import apart, extent
from gnnperf.nests.blocks import blocks_of, contexts
from gnnperf.nests.dtypes import TRUTHS, integer_bits, integer_dtype, is_integer
from gnnperf.nests.ir import Const, Expr, Load, Loop, LoopNest, Op, Statement, Symbol
from gnnperf.nests.ranges import loops_of, value_range

Range = tuple[float, float]
"""Least and greatest value; infinite where unknown."""

UNKNOWN: Range = (-inf, inf)
_ROUNDS = 3
"""What buffers hold follows from what others hold: so many buffers after each other are seen through."""


def range_of_type(dtype: str | None) -> Range:
    """All that an integer type holds."""
    if dtype == "bool":
        return 0, 1
    if dtype is None or not is_integer(dtype):
        return UNKNOWN
    bits = integer_bits(dtype)
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def is_within(inner: Range, outer: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


class ValueRanges:
    """Of the integers in a nest, as the C++ that is emitted computes them."""

    def __init__(self, nest: LoopNest) -> None:
        self._nest = nest
        self._loops = loops_of(nest.body)
        self._held = {name: range_of_type(buffer.dtype) for name, buffer in nest.buffers.items()}
        stored: dict[str, list[tuple[Statement, float]]] = defaultdict(list)
        blocks = blocks_of(nest)
        for statement, _, around in contexts(nest.body):
            if isinstance(statement, Statement):
                name = statement.target.buffer
                # Every iteration has its own of what is local to it.
                outside = len(blocks[name]) if nest.buffers[name].scope == "local" else 0
                same = [loop for loop in around[outside:] if not apart(statement.target, [loop])]
                stored[name].append((statement, math.prod(map(_trips, same))))
        for name in nest.arguments:
            stored.pop(name, None)
        for _ in range(_ROUNDS):
            self._held |= {name: self._of_buffer(name, found) for name, found in stored.items()}

    def of(self, expr: Expr) -> Range:
        """Of the values of an integer expression."""
        match expr:
            case Const(value=int() as number):  # or a truth
                return int(number), int(number)
            case Symbol():
                return value_range(expr, self._loops)
            case Load(buffer=name):
                return self._held[name]
            case Op(name=name) if name in TRUTHS:
                return 0, 1
            case Op(name=name) if name.startswith("cast:"):
                return _held_by(name.removeprefix("cast:"), self.of(expr.args[0]))
            case Op():
                return _held_by(integer_dtype(expr, self._nest.buffers), self._of_operation(expr))
        return UNKNOWN

    def _of_buffer(self, name: str, stored: list[tuple[Statement, float]]) -> Range:
        """What is set, with all that is added to it at most."""
        dtype = self._nest.buffers[name].dtype
        first = [self.of(s.value) for s, _ in stored if s.reduce in (None, "min", "max")]
        added = [(self.of(s.value), times) for s, times in stored if s.reduce == "add"]
        plain = all(s.init is None for s, _ in stored) and len(first) + len(added) == len(stored)
        if not plain or not first or any(times == inf for _, times in added):
            return range_of_type(dtype)
        low, high = min(low for low, _ in first), max(high for _, high in first)
        low += sum(min(0.0, least) * times for (least, _), times in added)
        high += sum(max(0.0, most) * times for (_, most), times in added)
        return _held_by(dtype, (low, high))

    def _of_operation(self, expr: Op) -> Range:
        dtype = integer_dtype(expr, self._nest.buffers)
        operands = expr.args[1:] if expr.name == "select" else expr.args
        args = [_held_by(dtype, self.of(arg)) for arg in operands]
        if any(end in UNKNOWN for found in args for end in found):
            return UNKNOWN
        (low, high), other = args[0], args[-1]
        match expr.name:
            case "add":
                return low + other[0], high + other[1]
            case "sub":
                return low - other[1], high - other[0]
            case "neg":
                return -high, -low
            case "abs":
                return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
            case "min":
                return min(low, other[0]), min(high, other[1])
            case "max":
                return max(low, other[0]), max(high, other[1])
            case "select":
                return min(low, other[0]), max(high, other[1])
            case "mul":
                return _hull([a * b for a in (low, high) for b in other])
            case "shl" if is_within(other, (0, 63)):
                return _hull([int(a) << int(b) for a in (low, high) for b in other])
            case "shr" if is_within(other, (0, 63)):
                return _hull([int(a) >> int(b) for a in (low, high) for b in other])
            case "floordiv" if other[0] == other[1] > 0:
                return low // other[0], high // other[0]
            case "div" if other[0] == other[1] > 0:
                return _hull([abs(a) // other[0] * (1 if a >= 0 else -1) for a in (low, high)])
            case "mod" if other[0] == other[1] > 0:
                return (low, high) if is_within((low, high), (0, other[0] - 1)) else (0, other[0] - 1)
            case "bitand" if max(low, other[0]) >= 0:
                return 0, min(most for least, most in args if least >= 0)
            case "bitor" | "bitxor" if min(low, other[0]) >= 0:
                return 0, 2 ** int(max(high, other[1])).bit_length() - 1
        return UNKNOWN


def _trips(loop: Loop) -> float:
    """At most; infinite where that is not known."""
    trips = extent(loop)
    return inf if trips is None else trips


def _held_by(dtype: str | None, found: Range) -> Range:
    """What is too large for its type wraps around, to anything."""
    own = range_of_type(dtype)
    return found if is_within(found, own) else own


def _hull(values: list[float]) -> Range:
    return min(values), max(values)
