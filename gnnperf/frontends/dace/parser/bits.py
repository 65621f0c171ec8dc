"""Bits of counters and sizes: `i >> 1`, `i & 1`, `i ^ j`, which DaCe 1.0 has of data alone."""

from __future__ import annotations

import ast
import copy
from collections.abc import Set
from dataclasses import dataclass

import dace

from gnnperf.frontends.dace.parser.trees import assigned_in, names_in
from gnnperf.frontends.dace.parser.wrapping import POLYNOMIAL


def without_bits(function: ast.FunctionDef, symbols: Set[str]) -> None:
    """In place: with a power of two, they are quotients and remainders, which subscripts may have; else
    counters become data.

    symbols: global names of sizes and integers.
    """
    loops = [n for n in ast.walk(function) if isinstance(n, ast.For)]
    counters = {name for loop in loops for name in names_in(loop.target)}
    data = {a.arg for a in function.args.args} | {n for s in ast.walk(function) for n, _ in assigned_in(s)}
    bits = _Bits((counters | symbols) - data)
    function.body = [bits.visit(statement) for statement in function.body]
    ast.fix_missing_locations(function)


@dataclass
class _Bits(ast.NodeTransformer):
    known: Set[str]
    """Names of counters and sizes."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Invert) and self._is_known(node.operand):
            return ast.copy_location(ast.BinOp(ast.Constant(-1), ast.Sub(), node.operand), node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        one, other = node.left, node.right
        if not isinstance(node.op, ast.LShift | ast.RShift | ast.BitAnd | ast.BitOr | ast.BitXor) or not (
            self._is_known(one) and self._is_known(other) and names_in(node)
        ):
            return node
        if isinstance(one, ast.Constant) and not isinstance(node.op, ast.LShift | ast.RShift):
            one, other = other, one
        match other:
            case ast.Constant(value=int() as number) if found := _by_number(node.op, one, number):
                return ast.copy_location(found, node)
        return ast.copy_location(ast.BinOp(_as_data(one), node.op, _as_data(other)), node)

    def _is_known(self, written: ast.expr) -> bool:
        parts = {type(n) for n in ast.walk(written)}
        return parts <= POLYNOMIAL | {ast.FloorDiv, ast.Mod} and self.known >= {*names_in(written)}


def _by_number(op: ast.operator, value: ast.expr, number: int) -> ast.expr | None:
    """An operation on the bits of a value, and a number that is a power of two, or one less to mask with."""
    is_power = number > 0 and not number & (number - 1)
    match op:
        case ast.RShift():
            return ast.BinOp(value, ast.FloorDiv(), ast.Constant(1 << number))
        case ast.LShift():
            return ast.BinOp(value, ast.Mult(), ast.Constant(1 << number))
        case ast.BitAnd() if number >= 0 and not number & (number + 1):
            return ast.BinOp(value, ast.Mod(), ast.Constant(number + 1))
        case ast.BitAnd() if is_power:
            return ast.BinOp(_bit(value, number), ast.Mult(), ast.Constant(number))
        case ast.BitOr() | ast.BitXor() if is_power:
            times = number if isinstance(op, ast.BitOr) else 2 * number
            gone = ast.BinOp(_bit(copy.deepcopy(value), number), ast.Mult(), ast.Constant(times))
            return ast.BinOp(ast.BinOp(value, ast.Add(), ast.Constant(number)), ast.Sub(), gone)
    return None


def _bit(value: ast.expr, place: int) -> ast.expr:
    shifted = ast.BinOp(value, ast.FloorDiv(), ast.Constant(place)) if place > 1 else value
    return ast.BinOp(shifted, ast.Mod(), ast.Constant(2))


def _as_data(value: ast.expr) -> ast.expr:
    return ast.Call(ast.Constant(dace.int64), [value], []) if names_in(value) else value
