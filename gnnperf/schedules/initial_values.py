"""Where the initial value of a reduction (`Statement.init`) is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from gnnperf.errors import NotApplicable
from gnnperf.nests.analysis import band, bound_dependences, rebuild, varies
from gnnperf.nests.ir import Buffer, Loop, Node, Statement
from gnnperf.nests.ranges import separates

if TYPE_CHECKING:
    from gnnperf.schedules.lower import BandLowering, Range


def hoist_initial_values(
    node: Node, buffers: Mapping[str, Buffer], own: frozenset[str] = frozenset()
) -> tuple[tuple[Node, ...], Node]:
    """(nests that write initial values ahead of `node`, `node` without these).

    A band writes an initial value itself, ahead of its reduction loops. It cannot where the reduction
    also runs over a sequential loop or over a loop outside of the band, or where several iterations of
    its spatial loops meet in one element: there the value is written before everything else. `own`:
    buffers of one iteration, which keep theirs.
    """
    ahead: list[Node] = []

    def visit(inner: Node, around: tuple[Loop, ...], in_band: int) -> Node:
        if isinstance(inner, Loop):
            start = in_band if band(inner).is_perfect else len(around) + 1
            return replace(inner, body=tuple(visit(n, (*around, inner), start) for n in inner.body))
        if inner.init is None or inner.target.buffer in own or _band_owns(inner, around, in_band):
            return inner
        ahead.append(_initial_nest(inner, around))
        return replace(inner, init=None)

    rest = visit(node, (), 0)
    return tuple(ahead), rest


def _band_owns(statement: Statement, around: tuple[Loop, ...], in_band: int) -> bool:
    for depth, loop in enumerate(around):
        if varies(statement.target, loop.iterator):
            if not separates(statement.target, loop):
                return False
        elif depth < in_band or not loop.independent:
            return False
    return True


def _initial_nest(statement: Statement, around: tuple[Loop, ...]) -> Node:
    assert statement.init is not None
    loops = [replace(lp, independent=True) for lp in around if varies(statement.target, lp.iterator)]
    left_out = {lp.iterator for lp in around} - {lp.iterator for lp in loops}
    if any(bound_dependences(lp) & left_out for lp in loops):
        raise NotApplicable("which elements a reduction initialises depends on its reduction loops")
    return rebuild(loops, (Statement(statement.target, statement.init),))[0]


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
