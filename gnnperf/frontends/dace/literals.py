"""Literals as precise as the numbers that they meet.

DaCe computes `0.25 * x[i]` of float32 in float64, as NumPy 1 does of single elements; arrays, and all that
NumPy 2 computes, stay float32. What is made of float32 numbers and literals alone, and stored as float32, is
computed in it here: vectors hold twice as many, and nothing is converted. What a program keeps as float64, a
sum that begins with 0.0 among it, stays so; so does what decides something, all in loops that carry numbers
from one iteration to the next, where roundings add up, and exponentials, which float64 alone may hold.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from gnnperf.nests.coverage import carried
from gnnperf.nests.ir import (
    Buffer,
    Const,
    Expr,
    Load,
    Loop,
    Node,
    Op,
    Statement,
    loads,
    map_node,
    reads,
    subexpressions,
    walk,
)
from gnnperf.schedules.recipes.vectors import COMPARISONS, ELEMENTWISE

Block = tuple[Node, ...]
Narrowed = Mapping[Statement, Expr]
_OPERATIONS = ELEMENTWISE - {"exp", "pow"}
_LARGEST_POWER = 4
_LEAST, _MOST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


def narrow_literals(body: Block, buffers: dict[str, Buffer]) -> Block:
    """The body with such statements in float32; locals of it that hold their values become float32."""
    narrowed, single = _narrowed(body, buffers)

    def changed(node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(map(changed, node.body)))
        return replace(node, value=narrowed.get(node, node.value))

    for name in single:
        buffers[name] = replace(buffers[name], dtype="float32")
    body = tuple(map(changed, body))
    return tuple(map_node(node, lambda e: _compared(e, buffers)) for node in body)


def _narrowed(body: Block, buffers: Mapping[str, Buffer]) -> tuple[Narrowed, Collection[str]]:
    """Statements with their values in float32, and the locals that are float32 then."""
    statements = [n for n in walk(body) if isinstance(n, Statement)]
    steady = {*_steady(body, buffers)}
    single = {s.target.buffer for s in steady if _may_hold_less(s, buffers)}
    while True:
        narrowed = {
            s: value for s in steady
            if (buffers[s.target.buffer].dtype == "float32" or s.target.buffer in single)
            and (value := _in_float32(s.value, single, buffers)) is not None
        }  # fmt: skip
        left = [s for s in statements if s not in narrowed]
        wide = {name for s in left for name in (s.target.buffer, *(ld.buffer for ld in reads(s)))}
        wide |= {ld.buffer for s in narrowed for ld in _kept_wide(s)}
        if single.isdisjoint(wide):
            return {s: v for s, v in narrowed.items() if v != s.value}, single
        single -= wide


def _steady(body: Block, buffers: Mapping[str, Buffer]) -> Iterator[Statement]:
    """Statements that are in no loop which carries numbers of its own from one iteration to the next."""
    for node in body:
        if isinstance(node, Statement):
            yield node
        elif node.condition is None and all(buffers[n].scope != "local" for n in carried(node.body)):
            yield from _steady(node.body, buffers)


def _may_hold_less(statement: Statement, buffers: Mapping[str, Buffer]) -> bool:
    """Does it set a local of float64 to what is made of numbers of the program?"""
    target = buffers[statement.target.buffer]
    is_local = target.scope == "local" and not target.shape and target.dtype == "float64"
    return (
        is_local
        and statement.reduce is None
        and any(isinstance(e, Load) for e in subexpressions(statement.value))
    )


def _kept_wide(statement: Statement) -> Iterator[Load]:
    """What a statement reads elsewhere than in its value, and in the conditions of its choices."""
    yield from reads(replace(statement, value=Const(0)))
    for e in subexpressions(statement.value):
        if isinstance(e, Op) and e.name == "select":
            yield from (ld for ld in subexpressions(e.args[0]) if isinstance(ld, Load))


def _in_float32(expr: Expr, single: Collection[str], buffers: Mapping[str, Buffer]) -> Expr | None:
    """The value in float32; None where it is made of anything else than float32 numbers and literals."""
    match expr:
        case Load(buffer=name):
            return expr if buffers[name].dtype == "float32" or name in single else None
        case Const(value=int() | float() as number) if not isinstance(number, bool):
            return expr if _is_held(number) else None
        case Op(name="cast:float64" | "cast:float32", args=(arg,)):
            return _in_float32(arg, single, buffers)
        case Op(name="pow", args=(base, Const(value=int() | float() as power))) if (
            abs(power) <= _LARGEST_POWER
        ):
            held = _in_float32(base, single, buffers)
            return None if held is None else replace(expr, args=(held, expr.args[1]))
        case Op(name=name, args=args) if name in _OPERATIONS:
            conditions = args[:1] if name == "select" else ()
            made = [_in_float32(arg, single, buffers) for arg in args[len(conditions) :]]
            known = [arg for arg in made if arg is not None]
            return replace(expr, args=(*conditions, *known)) if len(known) == len(made) else None
    return None


def _is_held(number: float) -> bool:
    """Is it a number in float32, too, and no zero that was none?"""
    return number == 0 or not math.isfinite(number) or _LEAST <= abs(number) <= _MOST


def _compared(expr: Expr, buffers: Mapping[str, Buffer]) -> Expr:
    """A comparison of float32 numbers with each other, or with literals that float32 has, in float32."""

    def held(e: Expr) -> Expr | None:
        match e:
            case Op(name="cast:float64", args=(Load() as load,)) | (Load() as load):
                return load if buffers[load.buffer].dtype == "float32" else None
            case Const(value=int() | float() as number):
                return e if float(np.float32(number)) == number else None
        return None

    if isinstance(expr, Op) and expr.name in COMPARISONS:
        one, other = map(held, expr.args)
        if one is not None and other is not None and loads(expr):
            return replace(expr, args=(one, other))
    return expr
