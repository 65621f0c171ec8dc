"""Divisions and shifts of integers in 32 bits, where the program has them in 64 and nothing larger comes up.

DaCe computes with the numbers of a program's text in int64: `x[i] // 10` and `(x[i] >> k) & 1` of int32
become 64 bits wide. Vectors hold half as many of these, and no vector unit divides them: such loops stay
scalar. Additions, products and shifts by constants GCC narrows by itself.

A value is needed modulo 2^32 where it is stored in 32 bits or fewer. Sums, products and bits of it then need
no more of their operands; divisions, shifts to the right and comparisons need all of them, which the ranges
of what arrays and variables hold must show to fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gnnperf.nests.dtypes import integer_bits, integer_dtype, is_integer
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    LoopNest,
    Node,
    Op,
    Statement,
    expressions_of,
    loads,
    map_expr,
    subexpressions,
    walk,
)
from gnnperf.nests.value_ranges import ValueRanges, is_within, range_of_type
from gnnperf.schedules.recipes.vectors import COMPARISONS, is_vectorized

_MODULAR = frozenset("add sub mul neg bitand bitor bitxor".split())
_DIVISIONS = frozenset("floordiv mod div".split())
_WIDE = ("int64", "uint64")
_INT32, _UINT32 = range_of_type("int32"), range_of_type("uint32")


def narrow_integers(nest: LoopNest) -> LoopNest:
    """The nest with such statements in 32 bits, and with its own variables that hold what fits in them."""
    if not any(_gains(s.value, nest.buffers) or _adds_up(s, nest.buffers) for s in nest.statements()):
        return nest
    ranges = ValueRanges(nest)
    variables = _variables(nest, ranges)
    while left := _not_narrow(nest, _Narrowing(nest.buffers, ranges, variables)):
        variables = {name: dtype for name, dtype in variables.items() if name not in left}
    narrowing = _Narrowing(nest.buffers, ranges, variables)
    buffers = {name: replace(b, dtype=variables.get(name, b.dtype)) for name, b in nest.buffers.items()}

    def changed(node: Node) -> Node:
        if isinstance(node, Statement):
            return narrowing.statement(node, buffers[node.target.buffer].dtype)
        return node if is_vectorized(node) else replace(node, body=tuple(map(changed, node.body)))

    return replace(nest, body=tuple(map(changed, nest.body)), buffers=buffers)


def _not_narrow(nest: LoopNest, narrowing: _Narrowing) -> set[str]:
    """Of the narrowing's variables, those that are set to what needs more bits."""
    return {
        s.target.buffer
        for s in nest.statements()
        if s.target.buffer in narrowing.variables and narrowing.modulo(s.value) is None
    }


def _gains(value: Expr, buffers: Mapping[str, Buffer]) -> bool:
    """Does it divide in 64 bits, or shift by what varies?"""
    slow = (
        e for e in subexpressions(value)
        if isinstance(e, Op)
        and (e.name in _DIVISIONS or (e.name in ("shl", "shr") and not isinstance(e.args[1], Const)))
    )  # fmt: skip
    return any(integer_dtype(e, buffers) in _WIDE for e in slow)


def _adds_up(statement: Statement, buffers: Mapping[str, Buffer]) -> bool:
    """Does it add to a sum of its own in 64 bits? Half as many of these go into a vector."""
    target = buffers[statement.target.buffer]
    return statement.reduce == "add" and target.scope == "local" and target.dtype in _WIDE


def _variables(nest: LoopNest, ranges: ValueRanges) -> dict[str, str]:
    """Locals of 64 bits that hold what fits in 32, with the type for that; but those that places, bounds or
    vectors are made of."""
    kept = {load.buffer for expr in _kept_wide(nest.body) for load in loads(expr)}
    found: dict[str, str] = {}
    for name, buffer in nest.buffers.items():
        if buffer.scope == "local" and buffer.dtype in _WIDE and name not in kept:
            held = ranges.of(Load(name))
            if is_within(held, _INT32):
                found[name] = "int32"
            elif is_within(held, _UINT32):
                found[name] = "uint32"
    return found


def _kept_wide(body: tuple[Node, ...]) -> Iterator[Expr]:
    """Bounds, subscripts, and all that statements in vectors are made of."""
    for node in body:
        if isinstance(node, Statement):
            yield from (i for e in expressions_of(node) for load in loads(e) for i in load.indices)
        elif is_vectorized(node):
            yield from (e for s in walk((node,)) for e in expressions_of(s))
        else:
            yield from expressions_of(node)
            yield from _kept_wide(node.body)


class _Narrowing:
    def __init__(
        self, buffers: Mapping[str, Buffer], ranges: ValueRanges, variables: Mapping[str, str]
    ) -> None:
        """buffers: as they were. variables: those that are of 32 bits now, with their types."""
        self._buffers, self._ranges, self.variables = buffers, ranges, variables

    def statement(self, node: Statement, dtype: str) -> Statement:
        """dtype: of its target now."""
        worth_it = node.target.buffer in self.variables or _gains(node.value, self._buffers)
        is_narrow = is_integer(dtype) and integer_bits(dtype) <= 32
        value = self.modulo(node.value) if is_narrow and worth_it else None
        guard = None if node.guard is None else self._as_before(node.guard)
        return replace(node, value=self._as_before(node.value) if value is None else value, guard=guard)

    def _as_before(self, expr: Expr) -> Expr:
        """What reads variables, which are of 32 bits now, as it read them."""

        def wide(e: Expr) -> Expr:
            if isinstance(e, Load) and e.buffer in self.variables:
                return Op(f"cast:{self._buffers[e.buffer].dtype}", (e,))
            return e

        return map_expr(expr, wide)

    def modulo(self, expr: Expr) -> Expr | None:
        """In uint32: what the expression is modulo 2^32. None where that takes more bits."""
        match expr:
            case Const(value=int()):
                return Op("cast:uint32", (expr,))
            case Load(buffer=name):
                dtype = self.variables.get(name) or integer_dtype(expr, self._buffers)
                return Op("cast:uint32", (expr,)) if dtype in ("int32", "uint32") else None
            case Op(name=name, args=args) if name.startswith(("cast:int", "cast:uint")):
                held, kept = self.modulo(args[0]), integer_bits(name.removeprefix("cast:")) >= 32
                return held if held is None or kept else Op("cast:uint32", (Op(name, (held,)),))
            case Op(name=name, args=args) if name in _MODULAR:
                made = [self.modulo(arg) for arg in args]
                known = [arg for arg in made if arg is not None]
                return Op(name, (*known,)) if known == made else None
            case Op(name="select", args=(condition, one, other)):
                chosen = self.modulo(one), self.modulo(other)
                if chosen[0] is None or chosen[1] is None:
                    return None
                return Op("select", (self._condition(condition), chosen[0], chosen[1]))
            case Op(name="shl" | "shr" as name, args=(shifted, by)) if is_within(
                self._ranges.of(by), (0, 31)
            ):
                held = self.modulo(shifted) if name == "shl" else self._whole(shifted)
                return None if held is None else Op("cast:uint32", (Op(name, (held, self._shift(by))),))
            case Op(name=name, args=(divided, Const(value=int() as by))) if name in _DIVISIONS:
                held = self._whole(_without_periods(divided, by) if name == "mod" else divided)
                if held is None or not 0 < by < 2**31:
                    return None
                return Op("cast:uint32", (Op(name, (held, Const(by))),))
            case Op(name="min" | "max" as name, args=args):
                compared = self._compared(args)
                return None if compared is None else Op("cast:uint32", (Op(name, compared),))
        return None

    def _shift(self, by: Expr) -> Expr:
        return by if isinstance(by, Const) else Op("cast:int32", (self._as_before(by),))

    def _condition(self, condition: Expr) -> Expr:
        if isinstance(condition, Op) and condition.name in COMPARISONS:
            compared = self._compared(condition.args)
            if compared is not None:
                return Op(condition.name, compared)
        return self._as_before(condition)

    def _compared(self, args: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
        """In int32, where that and the type that C++ compares them in hold both."""
        held = range_of_type(integer_dtype(Op("add", args), self._buffers))
        whole = [self._whole(arg) for arg in args]
        ranges = [self._ranges.of(arg) for arg in args]
        fits = all(is_within(r, held) and is_within(r, _INT32) for r in ranges)
        return tuple(arg for arg in whole if arg is not None) if fits and None not in whole else None

    def _whole(self, expr: Expr) -> Expr | None:
        """In int32, or uint32, with all that it is; None where it may not fit."""
        held, found = self.modulo(expr), self._ranges.of(expr)
        if held is None:
            return None
        if is_within(found, _INT32):
            kept = held.args[0] if isinstance(held, Op) and held.name == "cast:uint32" else held
            return kept if isinstance(kept, Const) else Op("cast:int32", (kept,))
        return held if is_within(found, _UINT32) else None


def _without_periods(expr: Expr, period: int) -> Expr:
    """`(x + n) % n` is `x % n`: so DaCe writes what Python's `%` is."""
    match expr:
        case Op(name="add", args=(arg, Const(value=int() as number))) if number % period == 0:
            return _without_periods(arg, period)
    return expr
