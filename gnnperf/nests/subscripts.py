"""Bounds and subscripts in one canonical form; strided loops count their iterations."""

from __future__ import annotations

from dataclasses import replace

from gnnperf.nests.affine import simplify
from gnnperf.nests.ir import Const, Expr, Load, Loop, Node, Op, Symbol, map_node, substitute_node


def canonical_subscripts(node: Node) -> Node:
    """Bounds and subscripts in affine normal form, so that equal accesses are equal expressions."""

    def canonical(expr: Expr) -> Expr:
        return Load(expr.buffer, tuple(simplify(i) for i in expr.indices)) if isinstance(expr, Load) else expr

    node = map_node(node, canonical)
    if isinstance(node, Loop):
        return _unit_step(
            replace(
                node,
                start=simplify(node.start),
                stop=simplify(node.stop),
                body=tuple(canonical_subscripts(n) for n in node.body),
            )
        )
    return node


def _unit_step(loop: Loop) -> Loop:
    """A strided loop counts its iterations instead: the stride moves into the subscripts."""
    if loop.step == 1:
        return loop
    distance = Op("add", (Op("sub", (loop.stop, loop.start)), Const(loop.step - 1)))
    count = simplify(Op("floordiv", (distance, Const(loop.step))))
    value = Op("add", (loop.start, Op("mul", (Const(loop.step), Symbol(loop.iterator)))))
    body = tuple(canonical_subscripts(substitute_node(n, {loop.iterator: value})) for n in loop.body)
    return replace(loop, start=Const(0), stop=count, step=1, body=body)
