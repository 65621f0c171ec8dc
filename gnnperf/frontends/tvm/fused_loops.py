"""Fused loops seen as the loops that were fused: `x // 8` and `x % 8` become iterators of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from gnnperf.nests import Expr, Op
from gnnperf.nests.affine import Ranges, affine, constant, from_affine


def split_points(body: Any) -> Mapping[int, set[int]]:
    """By handle of a loop variable: sizes of the innermost parts that divisions cut it into.

    `(4 * t + v) // 32` cuts t at 8. Points that do not divide one another are left out.
    """
    import tvm_ffi
    from tvm.s_tir.stmt import SBlockRealize
    from tvm.tirx import FloorDiv, FloorMod

    points: dict[int, set[int]] = defaultdict(set)
    values: dict[int, Any] = {}

    def divided(node: Any) -> None:
        divisor = _constant(node.b)
        if divisor:
            for handle, scale in _scales(node.a, Fraction(1), values):
                point = divisor / scale
                if point.denominator == 1 and point > 1:
                    points[handle].add(int(point))

    def realized(node: Any) -> None:
        for iterator, value in zip(node.block.iter_vars, node.iter_values, strict=True):
            values[iterator.var.__chandle__()] = value

    tvm_ffi.structural_walk(body, [((FloorDiv, FloorMod), divided), (SBlockRealize, realized)], order="pre")
    return {handle: _chain(found) for handle, found in points.items()}


def divide(expr: Op, ranges: Ranges) -> Expr:
    """`floordiv` or `mod` by a constant, resolved where the remainder's range is known."""
    divisor = constant(expr.args[1])
    if divisor is None or divisor <= 0:
        return expr
    quotient, rest = affine(expr.args[0]).divided(divisor)
    ends = rest.reach(ranges)
    if ends is None or ends[0] < 0 or ends[1] >= divisor:
        return expr
    return from_affine(rest if expr.name == "mod" else quotient)


def _scales(value: Any, scale: Fraction, values: Mapping[int, Any]) -> Iterator[tuple[int, Fraction]]:
    """How much one step of each variable moves an expression; divisions inside divide that."""
    kind = type(value).__name__
    if kind == "Var":
        handle = value.__chandle__()
        if handle in values:
            yield from _scales(values[handle], scale, values)
        else:
            yield handle, scale
    elif kind == "Add":
        yield from _scales(value.a, scale, values)
        yield from _scales(value.b, scale, values)
    elif kind == "Mul" and (factor := _constant(value.b)):
        yield from _scales(value.a, scale * factor, values)
    elif kind == "FloorDiv" and (divisor := _constant(value.b)):
        yield from _scales(value.a, scale / divisor, values)
    elif kind == "FloorMod":
        yield from _scales(value.a, scale, values)


def _constant(value: Any) -> int:
    return int(value.value) if type(value).__name__ == "IntImm" else 0


def _chain(points: set[int]) -> set[int]:
    """The points, ascending, that divide one another."""
    kept: list[int] = []
    for point in sorted(points):
        if not kept or point % kept[-1] == 0:
            kept.append(point)
    return set(kept)
