"""Bits that are set, counted by the one instruction that does so.

v = x - ((x >> 1) & 0x5555)                    n = popcount(x)
v = (v & 0x3333) + ((v >> 2) & 0x3333)
v = (v + (v >> 4)) & 0x0f0f
n = (v + (v >> 8)) & 0x1f

Programs add up the bits of a word in ever wider fields of it, in many ways (Warren, Hacker's Delight,
chapter 5). Whatever the way, each value on it is the sum of the word's bits, each times a whole number: so
are shifts, masks, sums, and products with numbers, as long as no field runs over. Where each bit comes to
count once or not at all, the value is the number of bits that are set of some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gnnperf.nests.dtypes import integer_bits, integer_dtype, is_integer
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    LoopNest,
    Node,
    Op,
    loads,
    map_expr,
    subexpressions,
)
from gnnperf.schedules.recipes.vectors import is_vectorized

FEWEST_BITS = 8
"""Bits that are worth the instruction."""


@dataclass(frozen=True)
class _BitSum:
    """The sum of the bits of a word, from the lowest on, each times its weight. A sign's is negative.

    wraps: of a sum that a signed type may not hold, bits that are right, the lowest of the value; 0: all are.
    """

    word: Expr
    weights: tuple[int, ...]
    wraps: int = 0

    def modulo(self, number: int) -> _BitSum | None:
        """The remainder, where it is a sum, too."""
        weights = tuple(weight % number for weight in self.weights)
        is_known = not self.wraps or (1 << self.wraps) % number == 0
        return replace(self, weights=weights, wraps=0) if is_known and sum(weights) < number else None

    def halved(self, times: int) -> _BitSum | None:
        """Shifted to the right, where what is lost would not carry."""
        lost = sum(weight % (1 << times) for weight in self.weights)
        if 0 < self.wraps <= times or lost >= 1 << times:
            return None
        weights = tuple(weight >> times for weight in self.weights)
        return replace(self, weights=weights, wraps=self.wraps and self.wraps - times)

    def times(self, number: int) -> _BitSum:
        return replace(self, weights=tuple(weight * number for weight in self.weights))

    def masked(self, mask: int) -> _BitSum | None:
        """Its fields that a mask keeps, where they are fields of its own."""
        found = replace(self.times(0), wraps=0)
        while mask:
            first = (mask & -mask).bit_length() - 1
            length = ((mask >> first) + 1 & ~(mask >> first)).bit_length() - 1
            below = self.modulo(1 << (first + length))
            field = below and below.halved(first)
            if field is None:
                return None
            found = found.with_other(field.times(1 << first), 1)
            mask &= mask + (1 << first)
        return found

    def with_other(self, other: _BitSum, sign: int) -> _BitSum:
        weights = tuple(a + sign * b for a, b in zip(self.weights, other.weights, strict=True))
        wraps = min(filter(None, (self.wraps, other.wraps)), default=0)
        return replace(self, weights=weights, wraps=wraps)


def count_bits(nest: LoopNest) -> LoopNest:
    """The nest with such values as `popcount`, an operation of emitted code alone."""
    parts = (e for s in nest.statements() for e in subexpressions(s.value))
    if not any(isinstance(e, Op) and e.name == "bitand" for e in parts):
        return nest
    return replace(nest, body=_Counting(nest.buffers).block(nest.body))


class _Counting:
    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self._buffers = buffers
        self._found: dict[Expr, _BitSum | None] = {}

    def block(self, body: tuple[Node, ...]) -> tuple[Node, ...]:
        found: list[Node] = []
        known: dict[Expr, Expr] = {}  # locals, and what this block has set them to
        for node in body:
            if isinstance(node, Loop):
                known = {}
                found.append(self._loop(node))
                continue
            value = map_expr(node.value, lambda e, known=known: known.get(e, e))  # type: ignore[misc]
            counted = self._counted(value)
            found.append(node if counted == value else replace(node, value=counted))
            target = self._buffers[node.target.buffer]
            known = {e: held for e, held in known.items() if not _reads(target.name, e, held)}
            is_set = node.reduce is None and node.guard is None and not _reads(target.name, value)
            if is_set and target.scope == "local" and is_integer(target.dtype):
                known[node.target] = Op(f"cast:{target.dtype}", (value,))
        return tuple(found)

    def _loop(self, loop: Loop) -> Loop:
        """What was of vectors is left to the compiler, which has the instruction for them, too."""
        body, annotation = self.block(loop.body), loop.annotation
        if body != loop.body and annotation is not None and is_vectorized(loop):
            annotation = replace(annotation, kind="simd")
        return replace(loop, body=body, annotation=annotation)

    def _counted(self, expr: Expr) -> Expr:
        if not isinstance(expr, Op):
            return expr
        found = self._sum(expr)
        if found is not None and {*found.weights} <= {0, 1} and sum(found.weights) >= FEWEST_BITS:
            mask = sum(weight << place for place, weight in enumerate(found.weights))
            kept = 0 in found.weights or len(found.weights) < 32  # C++ would widen a sign
            some = Op("bitand", (found.word, Const(mask))) if kept else found.word
            return Op(f"cast:{integer_dtype(expr, self._buffers)}", (Op("popcount", (some,)),))
        return Op(expr.name, tuple(map(self._counted, expr.args)))

    def _sum(self, expr: Expr) -> _BitSum | None:
        """What an integer is the sum of; a word that is nothing else, of its own bits."""
        if expr not in self._found:
            dtype = integer_dtype(expr, self._buffers)
            found = self._of_operation(expr) if isinstance(expr, Op) and dtype is not None else None
            held = None if found is None or dtype is None else _held_by(dtype, found)
            self._found[expr] = held or self._of_word(expr)
        return self._found[expr]

    def _of_word(self, expr: Expr) -> _BitSum | None:
        dtype = integer_dtype(expr, self._buffers)
        if isinstance(expr, Load):
            dtype = self._buffers[expr.buffer].dtype
        if dtype is None or not is_integer(dtype):
            return None
        bits = integer_bits(dtype)
        sign = 1 if dtype.startswith("u") else -1
        return _BitSum(expr, (*(1 << place for place in range(bits - 1)), sign << (bits - 1)))

    def _of_operation(self, expr: Op) -> _BitSum | None:
        match expr:
            case Op(name="add" | "sub" as name, args=(one, other)):
                first, second = self._sum(one), self._sum(other)
                if first is None or second is None or first.word != second.word:
                    return None
                return first.with_other(second, 1 if name == "add" else -1)
            case Op(name=name, args=(arg,)) if name.startswith(("cast:int", "cast:uint")):
                found = self._sum(arg)
                return found and _held_by(name.removeprefix("cast:"), found)
            case Op(name="bitand" | "mul" as name, args=(Const() as number, (Load() | Op()) as arg)):
                return self._of_operation(Op(name, (arg, number)))
            case Op(name=name, args=(arg, Const(value=int() as number))):
                found = self._sum(arg)
                if found is None:
                    return None
                match name:
                    case "shr" if number >= 0:
                        return found.halved(number)
                    case "shl" if number >= 0:
                        return found.times(1 << number)
                    case "mul" if number >= 0:
                        return found.times(number)
                    case "mod" if number > 0:
                        return found.modulo(number)
                    case "bitand":
                        return found.masked(number % (1 << 64))
        return None


def _reads(buffer: str, *exprs: Expr) -> bool:
    return any(load.buffer == buffer for expr in exprs for load in loads(expr))


def _held_by(dtype: str, found: _BitSum) -> _BitSum | None:
    """The same in a type; None where it does not hold all of it, and is no sum."""
    bits = integer_bits(dtype)
    if dtype.startswith("u"):
        return found.modulo(1 << bits)
    least, most = (sum(w for w in found.weights if w * sign > 0) for sign in (-1, 1))
    if -(1 << (bits - 1)) <= least and most < 1 << (bits - 1):
        return found
    return replace(found, wraps=min(filter(None, (found.wraps, bits))))
