"""Where the initial value of a reduction (`Statement.init`) is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gnnperf.nests.analysis import Band, band, initial_nest, varies
from gnnperf.nests.ir import Loop, Node, Statement
from gnnperf.nests.ranges import separates

if TYPE_CHECKING:
    from gnnperf.schedules.recipes.lower import BandLowering, Range


def place_initial_values(node: Node, own: frozenset[str] = frozenset()) -> tuple[Node, ...]:
    """`node`, with nests ahead of its loops that write the initial values that no band writes itself.

    A reduction starts where the outermost loop begins whose iterations meet in one element of its
    target. A band writes the value itself, ahead of its reduction loops. It cannot where it also
    reduces over a sequential loop, or where iterations of its spatial loops meet. `own`: buffers of one
    iteration, which keep theirs.
    """
    if isinstance(node, Statement):
        return (node,)
    nest = band(node)

    def meets(inner: Statement) -> bool:
        if inner.target.buffer in own:
            return False
        return not (_owns(nest, inner) if nest.is_perfect else separates(inner.target, node))

    ahead, rest = taken_ahead(node, meets)
    if not nest.is_perfect:
        rest = replace(rest, body=tuple(p for child in rest.body for p in place_initial_values(child, own)))
    return (*ahead, rest)


def taken_ahead(node: Loop, wanted: Callable[[Statement], bool]) -> tuple[list[Node], Loop]:
    """Nests that write the initial values of the reductions that are wanted, and the loop without them."""
    ahead: list[Node] = []

    def visit(inner: Node, around: tuple[Loop, ...]) -> Node:
        if isinstance(inner, Loop):
            return replace(inner, body=tuple(visit(child, (*around, inner)) for child in inner.body))
        if inner.init is None or not wanted(inner):
            return inner
        ahead.append(initial_nest(inner, around))
        return replace(inner, init=None)

    rest = visit(node, ())
    assert isinstance(rest, Loop)
    return ahead, rest


def _owns(nest: Band, statement: Statement) -> bool:
    return all(
        separates(statement.target, lp) if varies(statement.target, lp.iterator) else lp.independent
        for lp in nest.loops
    )


def explicit_init(statement: Statement) -> tuple[Statement, ...]:
    """A reduction over no loop at all: its initial value, then its one term."""
    if statement.init is None:
        return (statement,)
    return (Statement(statement.target, statement.init), replace(statement, init=None))


def init_statements(
    lowering: BandLowering, position: int, ranges: Mapping[str, Range], statements: list[Statement]
) -> tuple[tuple[Node, ...], list[Statement]]:
    """Initial values written to memory ahead of the outermost reduction loop."""
    nodes: list[Node] = []
    plain: list[Statement] = []
    for statement in statements:
        if statement.init is None or statement.target.buffer in lowering.own:
            plain.append(statement)
            continue
        dims = [n for n in lowering.remaining(position) if varies(statement.target, n)]
        nodes.extend(lowering.point_loops(dims, ranges, (Statement(statement.target, statement.init),)))
        plain.append(replace(statement, init=None))
    return tuple(nodes), plain
